//! `potluck ids`: what a study's rules make of the ids of a table, for its steward.

use std::fmt::Write as _;
use std::io;

use anyhow::{Result, bail};
use potluck_party::ids::{self, Example, Look};
use potluck_party::{Reading, Table};
use potluck_release::study::Definition;

use super::Settings;
use super::plan::load;
use crate::args;
use crate::output::{alarming, table};

pub(super) fn run(arguments: &args::Ids, settings: &Settings<'_>) -> Result<()> {
    let (study, _) = load(&arguments.party.study, arguments.base.base.as_deref())?.numbers()?;
    let access = settings.access(arguments.id.as_deref().unwrap_or("id"), true);
    let table = Table::open(&arguments.data, &access.resources.tmp)?;
    let reading = Reading { study: &study, party: &arguments.party.name, table: &table, access: &access };
    let progress = settings.printer.progress("reading the ids", study.definition().rows());
    let look = ids::look(&reading, arguments.show, &progress)?;
    settings.printer.result(&look.to_json(), || to_text(&look, study.definition()))?;
    match (look.collisions, look.missing) {
        (0, 0) => Ok(()),
        (collisions, missing) => bail!(
            "a release would refuse this table: {} the id of an earlier one, and {missing} have none",
            counted_rows(collisions)
        ),
    }
}

fn to_text(look: &Look, definition: &Definition) -> String {
    let Look { columns, rows, changed, missing, collisions, repeated, .. } = look;
    let rules: Vec<&str> = definition.id_rules().iter().map(|rule| rule.word()).collect();
    let rules = if rules.is_empty() { "none, ids count as they stand".to_owned() } else { rules.join(", ") };
    let mut text = format!("ids in {}; rules of the study: {rules}\n", columns.join(", "));
    let _ = writeln!(text, "{rows} rows, {changed} of whose ids the rules change");
    if *missing > 0 {
        let _ = writeln!(text, "{missing} without an id, or with nothing left of it");
    }
    let _ = match (collisions, collisions - repeated.min(collisions)) {
        (0, _) => writeln!(text, "no two rows have the same id"),
        (all, 0) => {
            writeln!(text, "{} the id of an earlier one, as they are written", counted_rows(*all))
        }
        (all, by_rules) => writeln!(
            text,
            "{} the id of an earlier one, {by_rules} of them because of the rules",
            counted_rows(*all)
        ),
    };
    if !look.examples.is_empty() {
        let _ = write!(text, "\n{}", examples(look.examples.iter(), columns));
    }
    if !look.alike.is_empty() {
        let heading = alarming("Rows that would be taken for the same person:", &io::stdout());
        let _ = write!(text, "\n{heading}\n\n{}", examples(look.alike.iter().flatten(), columns));
    }
    text.push_str("\nThis is private: it is for your screen, and is written nowhere.\n");
    text
}

/// "3 rows have".
fn counted_rows(rows: u64) -> String {
    if rows == 1 { "1 row has".to_owned() } else { format!("{rows} rows have") }
}

/// Ids as they are written, and what becomes of them.
fn examples<'a>(all: impl Iterator<Item = &'a Example>, columns: &[String]) -> String {
    let shown = |text: &String| format!("\"{}\"", text.escape_debug());
    let row = |example: &Example| {
        let id = example
            .id
            .as_ref()
            .map_or("missing".to_owned(), |id| id.iter().map(shown).collect::<Vec<_>>().join(" + "));
        let mut row = vec![example.row.to_string()];
        row.extend(example.written.iter().map(shown));
        row.push(id);
        row
    };
    let rows: Vec<Vec<String>> = all.map(row).collect();
    let mut header = vec!["row"];
    header.extend(columns.iter().map(String::as_str));
    header.push("becomes");
    table(&header, &rows)
}
