//! `potluck join`.

use std::path::{Path, PathBuf};

use anyhow::Result;
use potluck_release::dataset::Completeness;
use potluck_release::files::refuse_same_file;
use potluck_release::people;
use potluck_release::statement::Guarantee;
use potluck_release::{PublicDataset, Release, Study};
use serde_json::json;

use super::Settings;
use crate::args::Join;

pub(super) fn run(arguments: &Join, settings: &Settings<'_>) -> Result<()> {
    let inputs: Vec<&Path> =
        std::iter::once(&arguments.study).chain(&arguments.releases).map(PathBuf::as_path).collect();
    refuse_same_file(&arguments.out, &inputs)?;
    let study = Study::load(&arguments.study)?;
    let releases =
        arguments.releases.iter().map(|path| Release::read(path)).collect::<Result<Vec<_>, _>>()?;
    let completeness = if arguments.partial { Completeness::Partial } else { Completeness::All };
    let dataset = PublicDataset::join(&study, &releases, completeness)?;
    dataset.write(&arguments.out, settings.existing)?;
    let parties: Vec<&str> = dataset.parties().map(|(party, _)| party).collect();
    let joint = Guarantee::joint(&study, parties.len());
    let mut value = json!({
        "dataset": arguments.out.display().to_string(),
        "content_hash": dataset.content_hash(),
        "study_id": study.id(),
        "parties": parties,
        "rows": dataset.columns().rows(),
        "columns": dataset.columns().names(),
        "joint": { "epsilon": joint.epsilon, "delta": joint.delta, "mu": joint.mu },
    });
    if let Some(people) = people::of_dataset(&dataset)? {
        for sentence in people.alarms() {
            settings.printer.warn(&sentence.to_string());
        }
        value["people"] = json!(people);
    }
    settings.printer.result(&value, || {
        format!(
            "joined {} into {}\ncontent {}\n{} rows, {} columns; joint guarantee {}\n",
            parties.join(", "),
            arguments.out.display(),
            dataset.content_hash(),
            dataset.columns().rows(),
            dataset.columns().names().len(),
            joint.in_short()
        )
    })
}
