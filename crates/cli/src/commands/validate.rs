//! `potluck validate`: a private look at a table, for whoever is about to release it.

use std::fmt::Write as _;
use std::io;

use anyhow::{Result, bail};
use potluck_party::sql::{CheckQuery, Description, Results, Source};
use potluck_party::validation::{self, ColumnCounts, IdCounts, Kind, Levels, Validation};
use potluck_party::{Error, Reading};
use potluck_release::Study;
use serde_json::json;

use super::Settings;
use super::data::Place;
use super::plan::load;
use crate::args::{self, DialectArgument};
use crate::exit::WrongUsage;
use crate::output::{alarming, table, wrapped};

pub(super) fn run(arguments: &args::Validate, settings: &Settings<'_>) -> Result<()> {
    let (study, _) = load(&arguments.party.study, arguments.base.base.as_deref())?.numbers()?;
    let validation = match (&arguments.data, &arguments.table, arguments.dialect) {
        (None, Some(table), Some(dialect)) => {
            let source = source(arguments, &study, table, dialect)?;
            let query = CheckQuery::new(&study, &arguments.party.name, &source)?;
            let Some(counts) = &arguments.counts else { return print(&query, settings) };
            let results = Results::read(counts, &settings.resources.tmp)?;
            query.take(&study, &arguments.party.name, &source, &results)?
        }
        (Some(data), table, _) => of_rows(arguments, Place::new(data, table.as_deref())?, &study, settings)?,
        (None, ..) => {
            let message =
                "say whose SQL to write with --dialect, or where the table's database is with --data";
            return Err(WrongUsage(message.to_owned()).into());
        }
    };
    settings.printer.result(&validation.to_json(Error::to_string), || to_text(&validation))?;
    match validation.problems.len() {
        0 => Ok(()),
        1 => bail!("a release would refuse this table, for the problem above"),
        many => bail!("a release would refuse this table, for the {many} problems above"),
    }
}

fn of_rows(
    arguments: &args::Validate,
    place: Place<'_>,
    study: &Study,
    settings: &Settings<'_>,
) -> Result<Validation> {
    let access = settings.access(arguments.id.as_deref().unwrap_or("id"), arguments.ignore_extra);
    let progress = settings.printer.progress("reading the table", study.definition().rows());
    let party = arguments.party.name.as_str();
    let table = place.find(&access.resources.tmp)?.table(study, party, &access, &progress)?;
    let reading = Reading { study, party, table: &table, access: &access };
    let levels = if arguments.show_values { Levels::Shown } else { Levels::Counted };
    Ok(validation::validate(&reading, levels, &progress)?)
}

fn source(
    arguments: &args::Validate,
    study: &Study,
    table: &str,
    dialect: DialectArgument,
) -> Result<Source> {
    let description = Description {
        dialect: dialect.into(),
        table: table.to_owned(),
        id: arguments.id.clone(),
        booleans: arguments.boolean.clone(),
        dates: arguments.date.clone(),
    };
    Ok(Source::new(study, &arguments.party.name, description)?)
}

fn print(query: &CheckQuery, settings: &Settings<'_>) -> Result<()> {
    settings.printer.note(
        "run the query, save its result as CSV with a header line or as Parquet, keep it private, and add --counts FILE to this command",
    );
    let value = json!({ "fingerprint": query.fingerprint, "query": query.text });
    settings.printer.result(&value, || format!("{};\n", query.text))
}

fn to_text(validation: &Validation) -> String {
    let Validation { table: name, expected_rows, rows, .. } = validation;
    let mut text = match rows {
        Some(rows) if rows == expected_rows => format!("{name}: {rows} rows, as the study says\n"),
        Some(rows) => format!("{name}: {rows} rows; the study says {expected_rows}\n"),
        None => format!("{name}: could not be read to its end, so nothing is counted\n"),
    };
    if let Some(ids) = &validation.ids {
        text.push_str(&ids_text(ids));
    }
    if !validation.columns.is_empty() {
        let rows: Vec<Vec<String>> = validation.columns.iter().map(row).collect();
        let header = ["column", "missing", "below", "above", "at bounds", "no number", "no level", ""];
        let _ = write!(text, "\n{}", table(&header, &rows));
        text.push_str("  These counts are private: they are for your screen, and are written nowhere.\n");
    }
    if !validation.problems.is_empty() {
        let heading = alarming("A release would refuse this table:", &io::stdout());
        let _ = writeln!(text, "\n{heading}");
        for problem in &validation.problems {
            text.push_str(&wrapped(&problem.in_words(&problem.error.to_string()), "- "));
        }
    }
    if !validation.warnings.is_empty() {
        text.push_str("\nLook at this before you release:\n");
        for warning in &validation.warnings {
            text.push_str(&wrapped(warning, "- "));
        }
    }
    if validation.problems.is_empty() {
        let end =
            if validation.warnings.is_empty() { "nothing stands out" } else { "a release would take it" };
        let _ = writeln!(text, "\nThe table is what the study asks for; {end}.");
    }
    text
}

fn ids_text(ids: &IdCounts) -> String {
    let IdCounts { rows, duplicates, leading_zeros, capitals, small, blanks } = *ids;
    let mut parts = vec![format!("{rows} ids")];
    parts.push(match duplicates {
        0 => "each once".to_owned(),
        some => format!("{some} of them in an earlier row already"),
    });
    let mut more = |count: u64, what: &str| {
        if count > 0 {
            parts.push(format!("{count} with {what}"));
        }
    };
    more(leading_zeros, "leading zeros");
    more(capitals, "capitals");
    more(small, "small letters");
    more(blanks, "blanks");
    format!("{}\n", parts.join(", "))
}

fn row(counts: &ColumnCounts) -> Vec<String> {
    let dash = || "-".to_owned();
    let mut row = vec![counts.column.clone(), counts.missing.to_string()];
    let mut notes = Vec::new();
    match &counts.kind {
        Kind::Numbers(numbers) => {
            let at_bounds = numbers.at_low + numbers.at_high;
            let cells = [numbers.below, numbers.above, at_bounds, numbers.unreadable];
            row.extend(cells.map(|count| count.to_string()));
            row.push(dash());
            if numbers.far > 0 {
                notes.push(format!("{} far outside", numbers.far));
            }
            if numbers.narrow {
                notes.push("bounds far too wide".to_owned());
            }
        }
        Kind::Levels(levels) => {
            row.extend([dash(), dash(), dash(), dash(), levels.unknown.to_string()]);
        }
    }
    if counts.constant {
        notes.push("constant".to_owned());
    }
    row.push(notes.join(", "));
    row
}
