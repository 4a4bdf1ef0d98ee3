//! `potluck sums`.

use anyhow::{Context, Result};
use potluck_party::{Table, sums};
use potluck_release::{Release, Study};
use serde_json::json;

use super::Settings;
use super::release::extra_columns;
use crate::args::Sums;

pub(super) fn run(arguments: &Sums, settings: &Settings<'_>) -> Result<()> {
    let study = Study::load(&arguments.table.party.study)?;
    let table = Table::open(&arguments.table.data, &settings.tmp)?;
    std::fs::create_dir_all(&arguments.state)
        .with_context(|| format!("cannot make the folder {}", arguments.state.display()))?;
    let earlier = match &arguments.release {
        None => Vec::new(),
        Some(path) => {
            let stage = arguments.stage.map(|stage| stage as usize);
            Release::read(path)?.sums_before(&study, &arguments.table.party.name, stage)?
        }
    };
    let progress = settings.printer.progress("reading the table", study.definition().rows());
    let path = sums::write_sums(
        &study,
        &arguments.table.party.name,
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
