//! `potluck hub get`.

use anyhow::Result;
use potluck_release::PublicDataset;
use potluck_release::files::{Audience, check_writable, write_file};
use potluck_release::statement::Guarantee;
use serde_json::json;

use super::Connection;
use crate::args::hub::HubGet;
use crate::commands::Settings;
use crate::exit::WrongUsage;
use crate::output::counted;

const WHAT: &str = "the public dataset";

pub(super) fn run(arguments: &HubGet, settings: &Settings<'_>) -> Result<()> {
    check_writable(&arguments.out, settings.existing)?;
    if let Some(events) = &arguments.events {
        check_writable(events, settings.existing)?;
        if events == &arguments.out {
            return Err(WrongUsage("--out and --events name the same file".to_owned()).into());
        }
    }
    let address = &arguments.study;
    let hub = Connection::from(&arguments.connection).to(address.hub(), None, settings)?;
    let study = hub.contract(address.id())?.study;
    let progress = settings.printer.transfer("downloading");
    let downloaded =
        hub.download_dataset(&study, &arguments.out, settings.existing, None, &mut |done, total| {
            progress.transferred(done, total);
        })?;
    drop(progress);
    // After the dataset, so that the log speaks of it, even if it has just been published.
    let events = hub.log(study.id())?;
    let dataset = PublicDataset::read(downloaded.path()).map_err(|error| match error {
        potluck_release::Error::Tampered { what, .. } => hub.unsound(WHAT, &what),
        error => hub.unsound(WHAT, &error.to_string()),
    })?;
    let latest = events
        .log
        .check_dataset(&dataset, &downloaded.digest().sha256)
        .map_err(|what| hub.unsound(WHAT, &what))?;
    if let Some(path) = &arguments.events {
        write_file(path, events.text.as_bytes(), settings.existing, Audience::Public)?;
    }
    let digest = downloaded.publish()?;
    let parties: Vec<&str> = dataset.parties().map(|(party, _)| party).collect();
    let joint = Guarantee::joint(&study, parties.len());
    let value = json!({
        "dataset": arguments.out.display().to_string(),
        "content_hash": dataset.content_hash(),
        "sha256": digest.sha256,
        "study_id": study.id(),
        "parties": parties,
        "rows": dataset.columns().rows(),
        "columns": dataset.columns().names(),
        "joint": { "epsilon": joint.epsilon, "delta": joint.delta, "mu": joint.mu },
        "latest": latest,
        "events": arguments.events.as_ref().map(|path| path.display().to_string()),
        "head": events.log.head(),
    });
    settings.printer.result(&value, || {
        format!(
            "{} with the releases of {}\ncontent {}\nverified against {}, head {}\n{} rows, {} columns; joint guarantee {}\n",
            arguments.out.display(),
            parties.join(", "),
            dataset.content_hash(),
            counted(events.log.events().len(), "event", "events"),
            events.log.head(),
            dataset.columns().rows(),
            dataset.columns().names().len(),
            joint.in_numbers()
        )
    })
}
