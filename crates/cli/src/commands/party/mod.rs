//! `potluck party`.

mod accept;
mod membership;
mod release;
mod status;
mod withdraw;

use anyhow::Result;
use potluck_client::Hub;
use potluck_release::events::{Change, EventLog};
use potluck_release::signing::PublicKey;
use potluck_release::{Release, Study};

use super::Settings;
use crate::args::party::PartyCommand;
use crate::exit::WrongUsage;
use crate::output::counted;
use membership::Membership;

pub(super) fn run(command: &PartyCommand, settings: &Settings<'_>) -> Result<()> {
    match command {
        PartyCommand::Accept(arguments) => accept::run(arguments, settings),
        PartyCommand::Withdraw(arguments) => withdraw::run(arguments, settings),
        PartyCommand::Release(arguments) => release::run(arguments, settings),
        PartyCommand::Status(arguments) => status::run(arguments, settings),
    }
}

/// Whether somebody vouches that the hub's log was restored from a backup.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Restored {
    No,
    Yes,
}

impl Restored {
    fn new(flag: bool) -> Self {
        if flag { Self::Yes } else { Self::No }
    }
}

/// The event log as the hub has it now, if it goes on from where we saw it last.
fn current_log(hub: &Hub, membership: &Membership) -> Result<EventLog> {
    let log = hub.log(&membership.study_id)?.log;
    check_continuity(hub, &log, &membership.head)?;
    Ok(log)
}

/// Refuses to go on with a study that its coordinator closed.
fn check_open(log: &EventLog) -> Result<()> {
    let Some((event, reason)) = log.closed() else { return Ok(()) };
    Err(WrongUsage(format!(
        "the study was closed by its coordinator on {}{}; nothing more can happen to it, and nothing was charged",
        event.time,
        because(reason)
    ))
    .into())
}

/// Whether the last word about a party's acceptance is that the coordinator undid it.
fn was_revoked(log: &EventLog, party: &str) -> bool {
    let word = log.events().iter().rev().find_map(|event| match &event.change {
        Change::Revoked { party: whose } if whose == party => Some(true),
        Change::Withdrawn { withdrawal } if withdrawal.party == party => Some(false),
        Change::Accepted { acceptance } if acceptance.party == party => Some(false),
        _ => None,
    });
    word == Some(true)
}

/// A coordinator's reason as the end of a sentence, if there is one.
fn because(reason: &str) -> String {
    if reason.is_empty() { String::new() } else { format!(", saying {reason:?}") }
}

/// Checks that a log goes on from the last event that we saw.
fn check_continuity(hub: &Hub, log: &EventLog, head: &str) -> Result<()> {
    if log.contains(head) {
        return Ok(());
    }
    let detail = format!(
        "it does not go on from event {head}, where it ended when this party last saw it: it was written anew or cut short (if whoever runs the hub says that it was restored from a backup, pass --log-was-restored once to `potluck party release` or `accept`)"
    );
    Err(hub.unsound("the event log", &detail).into())
}

/// The same, unless somebody vouches that the log was restored; they see what is given up.
fn check_continuity_unless(
    restored: Restored,
    hub: &Hub,
    log: &EventLog,
    head: &str,
    settings: &Settings<'_>,
) -> Result<()> {
    if restored == Restored::No || log.contains(head) {
        return check_continuity(hub, log, head);
    }
    settings.printer.note(&format!(
        "The event log does not go on from where this party last saw it.\n  it ended with event {head}\n  it ends with event  {} (of {})\nGoing on from there, since --log-was-restored says that the hub was restored from a backup.",
        log.head(),
        counted(log.events().len(), "event", "events")
    ));
    Ok(())
}

/// Our release, if it was drawn: verified, of this study, and signed with our key.
fn drawn_release(membership: &Membership, study: &Study, key: Option<&PublicKey>) -> Result<Option<Release>> {
    let path = membership.release_file();
    if !path.exists() {
        return Ok(None);
    }
    let wrong = |what: &str| {
        WrongUsage(format!(
            "{}: {what}; move it away and run this again: the same release is written anew, at no further charge",
            path.display()
        ))
    };
    let release = Release::read(&path).map_err(|error| wrong(&error.to_string()))?;
    if release.study() != study || release.party() != membership.party {
        return Err(wrong("it is not the release of this party under this study").into());
    }
    if key.is_some_and(|key| release.signer() != Some(key)) {
        return Err(wrong("it is not signed with the key that was registered").into());
    }
    Ok(Some(release))
}
