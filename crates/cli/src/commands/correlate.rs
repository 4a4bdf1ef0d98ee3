//! `potluck correlate`.

use std::fmt::Write as _;

use anyhow::Result;
use potluck_core::learn::Level;
use potluck_release::correlations::{Correlations, Pair, Question, correlate};
use potluck_release::files::{Audience, check_writable, refuse_same_file, write_file};
use potluck_release::{Error, PublicDataset};

use super::Settings;
use crate::args::Correlate;
use crate::output::{table, wrapped};

/// More columns than this do not fit beside each other on a terminal.
const MOST_BESIDE: usize = 12;

pub(super) fn run(arguments: &Correlate, settings: &Settings<'_>) -> Result<()> {
    if let Some(path) = &arguments.report {
        refuse_same_file(path, &[&arguments.dataset])?;
        check_writable(path, settings.existing)?;
    }
    let trimmed = |names: &Vec<String>| names.iter().map(|name| name.trim().to_owned()).collect();
    let columns = if arguments.column.is_empty() {
        arguments.columns.as_ref().map(trimmed)
    } else {
        Some(arguments.column.clone())
    };
    let question = Question {
        columns,
        given: arguments.given.iter().map(|name| name.trim().to_owned()).collect(),
        level: Level::new(arguments.level).map_err(Error::from)?,
        together: arguments.together,
    };
    let found = correlate(&PublicDataset::read(&arguments.dataset)?, &question)?;
    if let Some(path) = &arguments.report {
        let page = potluck_report::correlations_page(&found);
        write_file(path, page.as_bytes(), settings.existing, Audience::Public)?;
        settings.printer.note(&format!("report in {}", path.display()));
    }
    settings.printer.result(&found, || to_text(&found))
}

fn to_text(found: &Correlations) -> String {
    let mut text = String::new();
    if !found.given.is_empty() {
        let _ = writeln!(text, "Partial correlations, holding fixed {}:\n", found.given.join(", "));
    }
    text.push_str(&triangle(found));
    text.push_str(&pairs(found));
    let all = found.pairs.len();
    if all == 1 {
        return text;
    }
    text.push('\n');
    let said = match found.level_together {
        Some(level) => format!("Intervals hold all together at the {level} level."),
        None => format!(
            "Each interval is for its pair alone: of {all} pairs that have nothing to do with each other, about {:.2} would seem to by chance. --together widens them so that all hold.",
            (1.0 - found.level) * all as f64,
        ),
    };
    text.push_str(&wrapped(&said, ""));
    text
}

/// The triangle of all pairs; what is not resolved stands in brackets.
fn triangle(found: &Correlations) -> String {
    let columns = &found.columns;
    if columns.len() > MOST_BESIDE {
        return String::new();
    }
    let cell = |one: &String, other: &String| match found.pair(one, other) {
        None => String::new(),
        Some(pair) if pair.resolved => format!("{:.2}", pair.estimate),
        Some(pair) => format!("({:.2})", pair.estimate),
    };
    let numbers: Vec<String> = (1..columns.len()).map(|number| number.to_string()).collect();
    let mut header = vec![""];
    header.extend(numbers.iter().map(String::as_str));
    let rows: Vec<Vec<String>> = columns
        .iter()
        .enumerate()
        .map(|(at, one)| {
            let name = format!("{} {one}", at + 1);
            let beside = (0..columns.len() - 1)
                .map(|other| if other < at { cell(one, &columns[other]) } else { String::new() });
            std::iter::once(name).chain(beside).collect()
        })
        .collect();
    format!("{}\nIn brackets: not resolved.\n\n", table(&header, &rows))
}

fn pairs(found: &Correlations) -> String {
    let percent = format!("{}% interval", (1e6 * found.level).round() / 1e4);
    let mut header = vec!["", "", "correlation", &percent];
    if found.pairs.iter().any(|pair| !pair.findings.is_empty()) {
        header.push("findings");
    }
    let row = |pair: &Pair| {
        let short: Vec<&str> = pair.findings.iter().map(|finding| finding.kind.short()).collect();
        let mut row = vec![
            pair.one.clone(),
            pair.other.clone(),
            format!("{:.3}", pair.estimate),
            format!("[{:.3}, {:.3}]", pair.low, pair.high),
            short.join(", "),
        ];
        row.truncate(header.len());
        row
    };
    let rows: Vec<Vec<String>> = found.pairs.iter().map(row).collect();
    table(&header, &rows)
}
