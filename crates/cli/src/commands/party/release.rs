//! `potluck party release`.

use anyhow::Result;
use potluck_client::{FileDigest, Hub};
use potluck_party::ledger::State;
use potluck_party::{Ledger, LostValues, Order};
use potluck_release::events::EventLog;
use potluck_release::files::Existing;
use potluck_release::signing::{PublicKey, SigningKey};
use potluck_release::{Release, Study};
use serde_json::json;

use super::membership::Membership;
use super::{Restored, check_continuity_unless, check_open, current_log, drawn_release, was_revoked};
use crate::args::Data;
use crate::args::party::PartyRelease;
use crate::commands::Settings;
use crate::commands::data::Place;
use crate::commands::release::{ledger_path, release_table};
use crate::exit::WrongUsage;

pub(super) fn run(arguments: &PartyRelease, settings: &Settings<'_>) -> Result<()> {
    let address = &arguments.membership.study;
    let mut membership = Membership::find(&arguments.membership, arguments.party.as_deref())?
        .ok_or_else(|| not_accepted(&address.to_string()))?;
    let key = SigningKey::load(&membership.signing_key)?.public();
    let study = membership.study()?;
    let hub = membership.connect(&arguments.connection, settings)?;
    let restored = Restored::new(arguments.log.log_was_restored);
    let published = check_membership(&hub, &mut membership, &study, &key, restored, settings)?;

    let drawn = drawn_release(&membership, &study, Some(&key))?;
    if let Some(content_hash) = &published
        && drawn.as_ref().is_none_or(|release| release.content_hash() != content_hash)
    {
        let detail = format!(
            "{} has published a release with content {content_hash}, which is not in {}; nothing was drawn or charged",
            membership.party,
            membership.folder().display()
        );
        return Err(hub.unsound("the event log", &detail).into());
    }
    let repeated = match &drawn {
        Some(_) if published.is_some() => true,
        Some(release) if is_recorded(arguments, release)? => true,
        _ => draw(arguments, &membership, &study, settings)?,
    };
    let release = drawn_release(&membership, &study, Some(&key))?.ok_or_else(|| {
        WrongUsage(format!("{} is gone; run this again", membership.release_file().display()))
    })?;

    let file = membership.release_file();
    let progress = settings.printer.transfer("uploading");
    hub.upload(study.id(), &membership.party, &file, &mut |done, total| progress.transferred(done, total))?;
    drop(progress);
    let digest = FileDigest::of(&file)?;
    let log = current_log(&hub, &membership)?;
    log.check_release(&release, &digest.sha256)
        .map_err(|error| hub.unsound("the event log", &error.to_string()))?;
    log.head().clone_into(&mut membership.head);
    membership.save()?;
    let value = json!({
        "release": file.display().to_string(),
        "content_hash": release.content_hash(),
        "sha256": digest.sha256,
        "study_id": study.id(),
        "url": address.to_string(),
        "party": membership.party,
        "signed_by": key.to_string(),
        "repeated": repeated,
        "public": !log.datasets().is_empty(),
        "head": log.head(),
    });
    settings.printer.result(&value, || {
        let done = match (repeated, published.is_some()) {
            (_, true) => "published before:",
            (true, false) => "drawn before, at no further charge; published now:",
            (false, false) => "published",
        };
        let left = log.releases().len();
        let all = study.own_parties().len();
        format!(
            "{done} {}\ncontent {}\nsigned by {key}\n{left} of {all} parties have released: {address}\n",
            file.display(),
            release.content_hash()
        )
    })
}

fn not_accepted(address: &str) -> WrongUsage {
    WrongUsage(format!(
        "you have not accepted this study from here; run `potluck party accept {address} --token-file FILE --signing-key FILE` first"
    ))
}

/// What is left to do where no acceptance of ours stands.
fn undone(log: &EventLog, party: &str, address: &str) -> WrongUsage {
    if !was_revoked(log, party) {
        return not_accepted(address);
    }
    WrongUsage(format!(
        "the coordinator undid the acceptance of {party}; if you asked for that, run `potluck party accept {address} --token-file FILE --signing-key FILE` with the new invitation; nothing was charged"
    ))
}

/// Checks with the hub, before anything is charged, that this is the study we accepted, and that
/// the hub knows us and our key; gives the content hash of our release if it is published.
fn check_membership(
    hub: &Hub,
    membership: &mut Membership,
    study: &Study,
    key: &PublicKey,
    restored: Restored,
    settings: &Settings<'_>,
) -> Result<Option<String>> {
    if hub.contract(&membership.study_id)?.study != *study {
        return Err(hub.unsound("the study", "it is not the one that was accepted").into());
    }
    let log = hub.log(&membership.study_id)?.log;
    check_continuity_unless(restored, hub, &log, &membership.head, settings)?;
    if !log.contains(&membership.head) {
        // Said once, whatever comes next.
        log.head().clone_into(&mut membership.head);
        membership.save()?;
    }
    check_open(&log)?;
    match log.keys().get(&membership.party) {
        Some(registered) if registered == key => {}
        Some(_) => {
            let message = format!(
                "{} is not the key that was registered; put the registered key back there, since the hub takes no other",
                membership.signing_key.display()
            );
            return Err(WrongUsage(message).into());
        }
        None => return Err(undone(&log, &membership.party, &hub.page(study.id()).to_string()).into()),
    }
    let invited = hub.invited(study)?;
    if invited.party != membership.party {
        let detail = format!("our token is that of {:?}, not of {:?}", invited.party, membership.party);
        return Err(hub.unsound("the invitation", &detail).into());
    }
    Ok(log.releases().get(&membership.party).map(|release| release.content_hash.clone()))
}

/// Whether the ledger knows that this release is out.
fn is_recorded(arguments: &PartyRelease, release: &Release) -> Result<bool> {
    let ledger = Ledger::open(&ledger_path(&arguments.charged.ledger)?)?;
    let budget = ledger.choose_budget(arguments.charged.budget.as_deref())?;
    let session = ledger.session(&budget, release.study().id(), release.party())?.ok_or_else(|| {
        // Drawing another one would be a second charge, and the hub takes one release only.
        WrongUsage(format!(
            "the release is drawn, but not charged to budget {budget:?} of the ledger {}; name the ledger and budget that it was charged to with --ledger and --budget",
            ledger.path().display()
        ))
    })?;
    Ok(session.state == State::Published && session.content_hash.as_deref() == Some(release.content_hash()))
}

/// Draws the release, or takes it up where it stopped, into the state folder; whether it had been
/// drawn before.
fn draw(
    arguments: &PartyRelease,
    membership: &Membership,
    study: &Study,
    settings: &Settings<'_>,
) -> Result<bool> {
    let order = Order {
        study: study.clone(),
        party: membership.party.clone(),
        ledger: ledger_path(&arguments.charged.ledger)?,
        budget: arguments.charged.budget.clone(),
        out: membership.release_file(),
        // A release that is there is never replaced by another: that would be a second charge.
        existing: Existing::Keep,
        signing_key: Some(membership.signing_key.clone()),
        inputs: [membership.study_file()]
            .into_iter()
            .chain(arguments.data.as_ref().and_then(Data::file).cloned())
            .collect(),
        accept_low_accuracy: arguments.accepted.low_accuracy,
        lost_values: LostValues::accepted(arguments.accepted.lost_values),
    };
    let access = settings.access(&arguments.id, arguments.ignore_extra);
    let table = arguments.table.as_deref();
    let place = arguments.data.as_ref().map(|data| Place::new(data, table)).transpose()?;
    Ok(release_table(order, place, &access, arguments.yes, settings.printer)?.repeated)
}
