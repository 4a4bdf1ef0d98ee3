//! `potluck party accept`.

use std::io;
use std::path::{Path, PathBuf};

use anyhow::Result;
use potluck_client::Token;
use potluck_release::events::Acceptance;
use potluck_release::signing::SigningKey;
use potluck_release::study::{IdKind, TableRows};
use potluck_release::{Error, Study, statement, warnings};
use serde_json::json;

use super::membership::{Membership, prepare_folder};
use super::{Restored, check_continuity, check_continuity_unless, check_open, drawn_release};
use crate::args::party::PartyAccept;
use crate::commands::Settings;
use crate::commands::hub::{Connection, token_in_environment};
use crate::commands::inspect::column_text;
use crate::exit::WrongUsage;

pub(super) fn run(arguments: &PartyAccept, settings: &Settings<'_>) -> Result<()> {
    let address = &arguments.membership.study;
    let key = SigningKey::load(&arguments.signing_key)?;
    let token = invitation(arguments)?;
    let hub = Connection::from(&arguments.connection).to(address.hub(), Some(token.clone()), settings)?;
    let contract = hub.contract(address.id())?;
    let study = &contract.study;
    let invited = hub.invited(study)?;
    let party = invited.party.as_str();
    let (folder, kept) = prepare_folder(&arguments.membership, party)?;
    let before = hub.log(study.id())?.log;
    if let Some(kept) = &kept {
        let restored = Restored::new(arguments.log.log_was_restored);
        check_continuity_unless(restored, &hub, &before, &kept.head, settings)?;
    }
    check_open(&before)?;
    // Only our own signature says that we agreed; the hub's word does not.
    if before.keys().get(party) != Some(&key.public()) {
        for line in asked(study, party, before.early())? {
            settings.printer.note(&line);
        }
        for warning in warnings::of_party(study, party)? {
            settings.printer.warn(&warning);
        }
        let question = format!("Accept this study for {party}, with the key {}?", key.public());
        let declined = "not agreed; nothing was signed";
        settings.printer.confirm(arguments.yes, &question, declined)?;
    }
    let new = hub.accept(&Acceptance::new(study, party, &key))?;
    let log = hub.log(study.id())?.log;
    check_continuity(&hub, &log, before.head())?;
    if log.keys().get(party) != Some(&key.public()) {
        return Err(hub.unsound("the event log", "our acceptance with our key is not in it").into());
    }
    let mut membership = Membership::new(folder, address, party, token, absolute(&arguments.signing_key)?);
    membership.ca_cert = arguments.connection.ca_cert.as_deref().map(absolute).transpose()?;
    membership.insecure_http = arguments.connection.insecure_http;
    log.head().clone_into(&mut membership.head);
    membership.save_study(&contract.text)?;
    if drawn_release(&membership, study, Some(&key.public())).is_err() {
        // It is signed with the key of an acceptance that was undone.
        membership.set_release_aside()?;
    }
    membership.save()?;
    let value = json!({
        "study_id": study.id(),
        "url": address.to_string(),
        "party": party,
        "key": key.public().to_string(),
        "repeated": !new,
        "state": membership.folder().display().to_string(),
        "head": log.head(),
    });
    settings.printer.result(&value, || {
        let done = if new { "accepted" } else { "accepted before, with the same key:" };
        format!(
            "{done} {address}\nas {party}, key {}\nkept in {}\nNext: potluck party release {address} --data FILE\n",
            key.public(),
            membership.folder().display()
        )
    })
}

/// The invitation: from a file, the command line or the environment.
fn invitation(arguments: &PartyAccept) -> Result<Token> {
    if let Some(path) = &arguments.token_file {
        return Ok(Token::load(path)?);
    }
    if let Some(text) = &arguments.token {
        return Ok(Token::new(text)?);
    }
    if let Some(token) = token_in_environment("POTLUCK_INVITATION")? {
        return Ok(token);
    }
    // The one that this study was accepted with before, if we are one party in it.
    let kept = Membership::find_all(&arguments.membership, None)?;
    if let [membership] = kept.as_slice() {
        return Ok(membership.token.clone());
    }
    let message = "an invitation is needed: give --token-file, or set POTLUCK_INVITATION; the coordinator of the study makes one";
    Err(WrongUsage(message.to_owned()).into())
}

/// What a party agrees to, in words.
fn asked(study: &Study, party: &str, early: bool) -> Result<Vec<String>> {
    let definition = study.definition();
    let ids = match definition.id_kind() {
        IdKind::Integer => ", each with an id that is a whole number",
        IdKind::Text => ", each with an id that is text",
        IdKind::Row => ", in the order that all parties agreed on",
    };
    let rows = match definition.table_rows(definition.party(party)?) {
        TableRows::Exactly(rows) => format!("with exactly {rows} rows"),
        TableRows::About(rows) => format!("with about {rows} rows"),
    };
    let mut lines = vec![
        format!("Study {:?}, id {}", definition.name(), study.id()),
        format!(
            "As {party} you are asked to release, once, these columns of a table {rows}, one a person{ids}:"
        ),
    ];
    for column in definition.party(party)?.columns() {
        lines.push(format!("  {}", column_text(column)));
    }
    lines.extend(statement::of_release(study, party)?);
    lines.push(if early {
        "The public dataset may appear before every party has released, with those present.".to_owned()
    } else {
        "The public dataset appears when every party has released.".to_owned()
    });
    lines.push(
        "Accepting reads nothing from your table and charges nothing; it binds your key to this study."
            .to_owned(),
    );
    Ok(lines)
}

/// The same path from whatever folder the next command is run.
fn absolute(path: &Path) -> Result<PathBuf> {
    let failed = |source: io::Error| Error::Read { path: path.to_owned(), source };
    Ok(std::path::absolute(path).map_err(failed)?)
}
