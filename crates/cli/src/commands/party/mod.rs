//! `potluck party`.

mod accept;
mod membership;
mod release;
mod status;

use anyhow::Result;
use potluck_client::{Hub, Log};
use potluck_release::signing::PublicKey;
use potluck_release::{Release, Study};

use super::Settings;
use crate::args::party::PartyCommand;
use crate::exit::WrongUsage;
use membership::Membership;

pub(super) fn run(command: &PartyCommand, settings: &Settings<'_>) -> Result<()> {
    match command {
        PartyCommand::Accept(arguments) => accept::run(arguments, settings),
        PartyCommand::Release(arguments) => release::run(arguments, settings),
        PartyCommand::Status(arguments) => status::run(arguments, settings),
    }
}

/// The event log as the hub has it now, if it goes on from where we saw it last.
fn current_log(hub: &Hub, membership: &Membership) -> Result<Log> {
    let log = hub.log(&membership.study_id)?;
    if !log.log.contains(&membership.head) {
        let detail = "it does not go on from where it ended when this party last saw it: it was written anew or cut short";
        return Err(hub.unsound("the event log", detail).into());
    }
    Ok(log)
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
