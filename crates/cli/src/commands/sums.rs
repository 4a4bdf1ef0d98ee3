//! `potluck sums`.

use std::path::Path;

use anyhow::{Context, Result, bail};
use potluck_party::{Table, sums};
use potluck_release::{Release, Study};
use serde_json::json;

use super::Settings;
use super::release::extra_columns;
use crate::args::Sums;

pub(super) fn run(arguments: &Sums, settings: &Settings<'_>) -> Result<()> {
    let study = Study::load(&arguments.table.study)?;
    let table = Table::open(&arguments.table.data, &settings.tmp)?;
    std::fs::create_dir_all(&arguments.state)
        .with_context(|| format!("cannot make the folder {}", arguments.state.display()))?;
    let earlier = match &arguments.release {
        None => Vec::new(),
        Some(path) => earlier_sums(&study, &arguments.table.party, path, arguments.stage)?,
    };
    let progress = settings.printer.progress("reading the table", study.definition().rows());
    let path = sums::write_sums(
        &study,
        &arguments.table.party,
        &earlier,
        &table,
        &arguments.table.id,
        extra_columns(arguments.table.ignore_extra),
        settings.threads,
        &settings.tmp,
        &arguments.state,
        settings.existing,
        &progress,
    )?;
    drop(progress);
    settings.printer.result(&json!({ "sums": path.display().to_string() }), || {
        format!("exact sums in {}: private, never publish them\n", path.display())
    })
}

/// The noised sums that stand in a release before one of its stages; the last stage unless another is asked for.
fn earlier_sums(study: &Study, party: &str, path: &Path, stage: Option<u32>) -> Result<Vec<Vec<i64>>> {
    let release = Release::read(path)?;
    if release.study().id() != study.id() || release.party() != party {
        bail!("{} is not the release of {party} under this study", path.display());
    }
    let mut earlier = release.earlier_sums();
    match stage {
        None => {}
        Some(stage) if stage >= 1 && stage as usize <= earlier.len() + 1 => {
            earlier.truncate(stage as usize - 1);
        }
        Some(_) => bail!("the release has stages 1 to {}; choose one of them", earlier.len() + 1),
    }
    Ok(earlier)
}
