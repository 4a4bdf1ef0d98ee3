//! `potluck sums`.

use anyhow::{Context, Result};
use potluck_party::{Reading, audit};
use potluck_release::{Release, Study};
use serde_json::json;

use super::Settings;
use super::data::Place;
use crate::args::Sums;

pub(super) fn run(arguments: &Sums, settings: &Settings<'_>) -> Result<()> {
    let study = Study::load(&arguments.table.party.study)?;
    let party = arguments.table.party.name.as_str();
    let access = settings.access(&arguments.table.id, arguments.table.ignore_extra);
    let place = Place::new(&arguments.table.data, arguments.table.table.as_deref())?;
    let progress = settings.printer.progress("reading the table", study.definition().rows());
    let table = place.find(&access.resources.tmp)?.table(&study, party, &access, &progress)?;
    std::fs::create_dir_all(&arguments.state)
        .with_context(|| format!("cannot make the folder {}", arguments.state.display()))?;
    let earlier = match &arguments.release {
        None => Vec::new(),
        Some(path) => {
            Release::read(path)?.sums_before(&study, party, arguments.stage.map(|stage| stage as usize))?
        }
    };
    let reading = Reading { study: &study, party, table: &table, access: &access };
    let path = audit::write(&reading, &earlier, &arguments.state, settings.existing, &progress)?;
    drop(progress);
    settings.printer.result(&json!({ "sums": path.display().to_string() }), || {
        format!("exact sums in {}: private, never publish them\n", path.display())
    })
}
