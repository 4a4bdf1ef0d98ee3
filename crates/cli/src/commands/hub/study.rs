//! `potluck hub study create|invite|close`.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;
use potluck_client::{NewInvitations, StudyAddress, Token};
use potluck_release::events::check_reason;
use potluck_release::files::{Audience, Existing, check_writable, write_file};
use potluck_release::statement::Guarantee;
use potluck_release::study::read_text;
use potluck_release::{Error, Study};
use potluck_report::steps::PartyCommands;
use serde_json::{Value, json};
use zeroize::Zeroizing;

use super::{Connection, coordinator};
use crate::args::hub::{HubStudyClose, HubStudyCommand, HubStudyCreate, HubStudyInvite};
use crate::commands::Settings;
use crate::exit::WrongUsage;

pub(super) fn run(command: &HubStudyCommand, settings: &Settings<'_>) -> Result<()> {
    match command {
        HubStudyCommand::Create(arguments) => create(arguments, settings),
        HubStudyCommand::Invite(arguments) => invite(arguments, settings),
        HubStudyCommand::Close(arguments) => close(arguments, settings),
    }
}

fn create(arguments: &HubStudyCreate, settings: &Settings<'_>) -> Result<()> {
    let text = read_text(&arguments.study)?;
    let study = Study::parse(&text)?;
    if let Some(folder) = &arguments.out {
        // Tokens are shown once, so there must be a place for them before they are made.
        fs::create_dir_all(folder).map_err(|source| Error::Write { path: folder.clone(), source })?;
        for party in study.own_parties() {
            check_writable(&invitation_file(folder, party.name()), settings.existing)?;
        }
    }
    let token = coordinator(&arguments.coordinator)?;
    let hub = Connection::from(&arguments.connection).to(&arguments.hub, Some(token), settings)?;
    let joint = Guarantee::joint(&study, study.definition().parties().len());
    settings.printer.note(&format!(
        "Study {:?}, id {}\nEach party's release: {}\nAll releases jointly: {}",
        study.definition().name(),
        study.id(),
        Guarantee::of_party(&study).in_short(),
        joint.in_short()
    ));
    let NewInvitations { created, invitations } = hub.create_study(&study, &text, arguments.early)?;
    let address = hub.page(study.id());
    let mut shown = Vec::new();
    let mut lines = String::new();
    for (party, token) in &invitations {
        let file = arguments.out.as_ref().map(|folder| invitation_file(folder, party));
        let (value, line) = hand_out(party, token, file.as_deref(), &address, settings.existing)?;
        shown.push(value);
        lines.push_str(&line);
    }
    let value = json!({
        "study_id": study.id(),
        "url": address.to_string(),
        "created": created,
        "early": arguments.early,
        "joint": { "epsilon": joint.epsilon, "delta": joint.delta, "mu": joint.mu },
        "invitations": shown,
    });
    settings.printer.result(&value, || {
        let what = if created { "created" } else { "this study was there already:" };
        let more = if invitations.is_empty() {
            format!("Invitations are shown once, when a study is created. A new one: potluck hub study invite {address} PARTY\n")
        } else {
            let parties = invitations.iter().map(|(party, _)| steps(&address, &study, party));
            format!(
                "Give each party its own over a private channel, and what it runs, with the invitation in the file PARTY.invitation:\n{}",
                parties.collect::<String>()
            )
        };
        format!("{what} {address}\n{lines}{more}")
    })
}

/// What a party runs, from its invitation to its release.
fn steps(address: &StudyAddress, study: &Study, party: &str) -> String {
    let PartyCommands { accept, budget, release } = PartyCommands::new(&address.to_string(), study, party);
    let lines = [accept.as_str(), &budget, &release].join("\n").replace('\n', "\n  ");
    format!("\n{party} (without `ledger init` if its table has a budget; then name that one):\n  {lines}\n")
}

fn invite(arguments: &HubStudyInvite, settings: &Settings<'_>) -> Result<()> {
    if let Some(file) = &arguments.out {
        check_writable(file, settings.existing)?;
    }
    let token = coordinator(&arguments.coordinator)?;
    let address = &arguments.study;
    let hub = Connection::from(&arguments.connection).to(address.hub(), Some(token), settings)?;
    let study = hub.contract(address.id())?.study;
    let token = if arguments.undo_acceptance {
        hub.undo_acceptance(&study, &arguments.party)?
    } else {
        hub.invite(&study, &arguments.party)?
    };
    let (value, line) =
        hand_out(&arguments.party, &token, arguments.out.as_deref(), address, settings.existing)?;
    settings.printer.result(&value, || format!("{line}The invitation before is void.\n"))
}

fn close(arguments: &HubStudyClose, settings: &Settings<'_>) -> Result<()> {
    check_reason(&arguments.reason).map_err(|error| WrongUsage(format!("--reason: {error}")))?;
    let token = coordinator(&arguments.coordinator)?;
    let address = &arguments.study;
    let hub = Connection::from(&arguments.connection).to(address.hub(), Some(token), settings)?;
    let before = hub.log(address.id())?.log;
    if before.closed().is_none() {
        let question = format!(
            "Close study {:?} for good? {} of {} parties have accepted it.",
            before.study().definition().name(),
            before.keys().len(),
            before.study().own_parties().len()
        );
        settings.printer.confirm(arguments.yes, &question, "not agreed; nothing was closed")?;
    }
    let (new, _) = hub.close(address.id(), &arguments.reason)?;
    let log = hub.log(address.id())?.log;
    let Some((event, reason)) = log.closed() else {
        return Err(hub.unsound("the event log", "that the study is closed is not in it").into());
    };
    let value = json!({
        "study_id": address.id(),
        "url": address.to_string(),
        "closed": event.time,
        "reason": reason,
        "repeated": !new,
        "head": log.head(),
    });
    settings.printer.result(&value, || {
        let done = if new { "closed" } else { "closed before, at" };
        let time = if new { String::new() } else { format!(" {}:", event.time) };
        format!("{done}{time} {address}\n")
    })
}

fn invitation_file(folder: &Path, party: &str) -> PathBuf {
    folder.join(format!("{party}.invitation"))
}

/// Writes an invitation to its file, or shows it: as JSON, and as a line.
fn hand_out(
    party: &str,
    token: &Token,
    file: Option<&Path>,
    address: &StudyAddress,
    existing: Existing,
) -> Result<(Value, String)> {
    let Some(file) = file else {
        return Ok((
            json!({ "party": party, "token": token.secret() }),
            format!("invitation of {party}: {}\n", token.secret()),
        ));
    };
    let text = Zeroizing::new(format!("{}\n", token.secret()));
    write_file(file, text.as_bytes(), existing, Audience::Owner).map_err(|error| {
        let message = format!("{error}\nThe invitation of {party} is lost; make a new one with `potluck hub study invite {address} {party}`");
        anyhow::Error::from(error).context(message)
    })?;
    let name = file.display().to_string();
    Ok((json!({ "party": party, "file": name }), format!("invitation of {party}: {name}\n")))
}
