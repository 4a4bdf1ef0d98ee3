//! `potluck hub get`.

use std::path::{Path, PathBuf};

use anyhow::Result;
use potluck_client::VerifiedDataset;
use potluck_release::Study;
use potluck_release::files::{Audience, check_writable, write_file};
use potluck_release::statement::Guarantee;
use serde_json::json;

use super::Connection;
use crate::args::hub::HubGet;
use crate::commands::Settings;
use crate::exit::WrongUsage;
use crate::output::counted;

pub(super) fn run(arguments: &HubGet, settings: &Settings<'_>) -> Result<()> {
    check_writable(&arguments.out, settings.existing)?;
    if let Some(events) = &arguments.events {
        check_log_file(events, arguments, settings)?;
    }
    let address = &arguments.study;
    let hub = Connection::from(&arguments.connection).to(address.hub(), None, settings)?;
    let study = hub.contract(address.id())?.study;
    let kept: Vec<Option<PathBuf>> = study
        .lineage()
        .map(|member| arguments.events.as_deref().map(|events| log_file(events, member, &study)))
        .collect();
    for file in kept.iter().flatten().skip(1) {
        check_log_file(file, arguments, settings)?;
    }
    let progress = settings.printer.transfer("downloading");
    let verified = hub.verified_dataset(&study, &arguments.out, settings.existing, &mut |done, total| {
        progress.transferred(done, total);
    })?;
    drop(progress);
    let VerifiedDataset { dataset, logs, latest, file } = verified;
    for (log, file) in logs.iter().zip(&kept) {
        if let Some(file) = file {
            write_file(file, log.text.as_bytes(), settings.existing, Audience::Public)?;
        }
    }
    let digest = file.publish()?;
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
        "head": logs[0].log.head(),
        "logs": logs.iter().zip(&kept).map(|(log, file)| json!({
            "study_id": log.log.study().id(),
            "file": file.as_ref().map(|path| path.display().to_string()),
            "head": log.log.head(),
        })).collect::<Vec<_>>(),
    });
    settings.printer.result(&value, || {
        let against: String = logs
            .iter()
            .map(|log| {
                let under = if logs.len() > 1 {
                    format!(" of study {}", log.log.study().id())
                } else {
                    String::new()
                };
                let events = counted(log.log.events().len(), "event", "events");
                format!("verified against {events}{under}, head {}\n", log.log.head())
            })
            .collect();
        format!(
            "{} with the releases of {}\ncontent {}\n{against}{} rows, {} columns; joint guarantee {}\n",
            arguments.out.display(),
            parties.join(", "),
            dataset.content_hash(),
            dataset.columns().rows(),
            dataset.columns().names().len(),
            joint.in_short()
        )
    })
}

/// The file for the log of a study: the one that was named, with the id before its extension for a
/// study that is extended.
fn log_file(events: &Path, member: &Study, study: &Study) -> PathBuf {
    if member.id() == study.id() {
        return events.to_owned();
    }
    let mut name = events.file_stem().unwrap_or_default().to_owned();
    name.push(format!(".{}", member.id()));
    if let Some(extension) = events.extension() {
        name.push(".");
        name.push(extension);
    }
    events.with_file_name(name)
}

fn check_log_file(file: &Path, arguments: &HubGet, settings: &Settings<'_>) -> Result<()> {
    check_writable(file, settings.existing)?;
    if file == arguments.out {
        return Err(WrongUsage("--out and --events name the same file".to_owned()).into());
    }
    Ok(())
}
