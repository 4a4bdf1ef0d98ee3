//! Everything that a release would refuse of a table, and what a steward should look at first:
//! before a study is sealed or after, at home, at no charge.
//!
//! What comes of it is private, and for the steward's own eyes: nothing is written to a file, a log
//! or a ledger, and nothing of it is in what is published (docs/PRIVACY.md#refusals). Values are
//! never in it, but for undeclared levels on request.

mod counts;
mod duplicate_ids;
mod tally;

use std::hash::RandomState;
use std::sync::atomic::{AtomicU64, Ordering};

use potluck_release::Study;
use potluck_release::study::{Column, Party};
use serde_json::{Value, json};

pub use counts::{ColumnCounts, IdCounts, Kind, LevelCounts, NumberCounts};
pub(crate) use counts::{FAR, NARROW, nothing};

use crate::duplicates::{Fingerprints, find_repeated};
use crate::lost::Lost;
use crate::pass::look_for_names;
use crate::reading::Reading;
use crate::release::progress;
use crate::table::convert::Converter;
use crate::table::read_parts;
use crate::{Error, Observer};

use duplicate_ids::count_duplicates;
use tally::Tally;

/// Something for which a release would refuse the table.
pub struct Found {
    /// The first of its kind.
    pub error: Error,
    /// How many rows more are refused for the same reason.
    pub more: u64,
}

impl Found {
    fn once(error: Error) -> Self {
        Self { error, more: 0 }
    }

    /// It in words, if the error is these.
    pub fn in_words(&self, error: &str) -> String {
        match self.more {
            0 => error.to_owned(),
            1 => format!("{error} (and 1 row more)"),
            more => format!("{error} (and {more} rows more)"),
        }
    }
}

/// What was counted, and what was found to be wrong on the way.
pub(crate) struct Counted {
    pub(crate) rows: u64,
    pub(crate) ids: Option<IdCounts>,
    pub(crate) columns: Vec<ColumnCounts>,
    pub(crate) problems: Vec<Found>,
}

/// What is known of a table before it is released. No `Debug`: it is private.
pub struct Validation {
    /// What to call the table.
    pub table: String,
    /// How many rows the study says there are.
    pub expected_rows: u64,
    /// The ids, if people are told apart by ids. Their rows are those of the table.
    pub ids: Option<IdCounts>,
    /// How many rows the table has; nothing if it could not be read to its end.
    pub rows: Option<u64>,
    /// What was counted of each column that the table has, in the study's order.
    pub columns: Vec<ColumnCounts>,
    /// Everything for which a release would refuse the table.
    pub problems: Vec<Found>,
    /// What a steward should look at, as sentences that name the column.
    pub warnings: Vec<String>,
}

impl Validation {
    /// What follows from the counts of a table: problems beside those that were found already, and
    /// warnings.
    pub(crate) fn of_counts(
        study: &Study,
        party: &Party,
        table: &str,
        id_column: &str,
        counted: Counted,
    ) -> Self {
        let Counted { rows, ids, columns, mut problems } = counted;
        let definition = study.definition();
        let allowed = definition.table_rows(party);
        let expected_rows = allowed.expected();
        problems.extend(Error::check_rows(table, rows, allowed).err().map(Found::once));
        let declared: Vec<Column> = party
            .columns()
            .iter()
            .filter(|column| columns.iter().any(|counts| counts.column == column.name()))
            .cloned()
            .collect();
        let mut lost = Lost::none(declared.len());
        lost.merge(columns.iter().map(counts::lost));
        problems.extend(lost.refuse(table, &declared, rows).err().map(Found::once));
        let mut warnings = Vec::new();
        let mut warn = |column: &str, clauses: Vec<String>| {
            warnings.extend(clauses.into_iter().map(|clause| format!("column {column:?}: {clause}")));
        };
        for counts in &columns {
            warn(&counts.column, counts.warnings(rows));
        }
        if let Some(ids) = &ids {
            warn(id_column, ids.warnings(definition));
        }
        Self { table: table.to_owned(), expected_rows, ids, rows: Some(rows), columns, problems, warnings }
    }

    /// A table that cannot be read to its end: what is wrong, and no counts.
    fn unread(table: &str, expected_rows: u64, problems: Vec<Found>) -> Self {
        Self {
            table: table.to_owned(),
            expected_rows,
            ids: None,
            rows: None,
            columns: Vec::new(),
            problems,
            warnings: Vec::new(),
        }
    }

    /// All of it for machines, with errors in the words of `say`.
    pub fn to_json(&self, say: impl Fn(&Error) -> String) -> Value {
        let problems: Vec<String> =
            self.problems.iter().map(|found| found.in_words(&say(&found.error))).collect();
        json!({
            "rows": self.rows,
            "expected_rows": self.expected_rows,
            "ids": self.ids.as_ref().map(IdCounts::to_json),
            "columns": self.columns.iter().map(ColumnCounts::to_json).collect::<Vec<_>>(),
            "problems": problems,
            "warnings": self.warnings,
        })
    }
}

/// Whether undeclared levels are in what comes of a validation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Levels {
    /// Only how many values there are.
    Counted,
    /// The levels themselves.
    Shown,
}

/// Reads the whole table and counts. Nothing is charged, and nothing is written.
///
/// Fails only where the table cannot be looked at at all; what is wrong with it is in the result.
pub fn validate(reading: &Reading<'_>, levels: Levels, observer: &dyn Observer) -> Result<Validation, Error> {
    let Reading { study, party, table, access } = *reading;
    let party = study.own_party(party)?;
    let expected_rows = study.definition().table_rows(party).expected();
    let found = table.column_names()?;
    let (wanted, problems) = look_for_names(study, party, access, table.name(), &found);
    let mut problems: Vec<Found> = problems.into_iter().map(Found::once).collect();

    let columns: Vec<&Column> =
        party.columns().iter().filter(|column| found.iter().any(|name| name == column.name())).collect();
    let id_columns = access.id_columns(study);
    let has_ids = !id_columns.is_empty() && wanted.ends_with(&id_columns) && !misses(&found, &id_columns);
    let mut names: Vec<String> = columns.iter().map(|column| column.name().to_owned()).collect();
    if has_ids {
        names.extend_from_slice(&id_columns);
    }

    let parts = table.parts(&names)?;
    let converter = Converter::new(table.name(), parts.text, study, party.columns(), &id_columns);
    let (hash, threads, tmp) = (RandomState::new(), access.resources.threads, &access.resources.tmp);
    let progress = progress(observer);
    let done = AtomicU64::new(0);
    let start = || {
        let tally = Tally::new(columns.iter().copied(), levels == Levels::Shown);
        (tally, Fingerprints::new(tmp, threads, expected_rows))
    };
    let take = |(tally, fingerprints): &mut (Tally<'_>, Fingerprints), first, batch| {
        tally.add_columns(&converter, first, &batch)?;
        if has_ids {
            tally.add_ids(&converter, first, &batch, &mut |_, ids| {
                fingerprints.add(&ids.fingerprints(&hash))
            })?;
        }
        let rows = batch.num_rows() as u64;
        progress(done.fetch_add(rows, Ordering::Relaxed) + rows)
    };
    let counted = match read_parts(&parts, threads, start, take) {
        Ok(counted) => counted,
        Err(error) if error.is_about_the_file() => {
            problems.push(Found::once(error));
            return Ok(Validation::unread(table.name(), expected_rows, problems));
        }
        Err(error) => return Err(error),
    };

    let mut tally = Tally::new(columns.iter().copied(), levels == Levels::Shown);
    let mut fingerprints = Vec::with_capacity(counted.len());
    for (own, ids) in counted {
        tally.merge(own);
        fingerprints.push(ids);
    }
    let rows = tally.rows;
    let (columns, mut ids, refused) = tally.finish();
    problems.extend(refused.into_errors().map(|(error, more)| Found { error, more }));
    if has_ids {
        let repeated = find_repeated(&fingerprints, threads)?;
        let (duplicates, first) = count_duplicates(table, &id_columns, &converter, &repeated, &hash)?;
        ids.duplicates = duplicates;
        problems.extend(first.map(|error| Found { error, more: duplicates - 1 }));
    }
    let ids = has_ids.then_some(ids);
    let counted = Counted { rows, ids, columns, problems };
    Ok(Validation::of_counts(study, party, table.name(), &id_columns.join(", "), counted))
}

/// Whether some of these columns are not there.
fn misses(found: &[String], columns: &[String]) -> bool {
    columns.iter().any(|column| !found.contains(column))
}
