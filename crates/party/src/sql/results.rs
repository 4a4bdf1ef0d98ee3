//! The result of a query: read, checked, and turned into the exact sums that noise is added to.
//!
//! Nothing here trusts the file: it may be of another query, cut short, added to or changed.
//! Messages say what is wrong, never a count or a sum.

use std::path::Path;

use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch, StringArray};
use potluck_core::encoding::Scaling;
use potluck_core::stage::{Stage, Statistic};
use potluck_release::Study;
use potluck_release::remedy::{Problem, Remedy};
use potluck_release::study::{Column, IdKind, TableRows};
use zeroize::Zeroizing;

use super::query::{CHECKS, Query, leading_counts, parts};
use super::share::Whole;
use super::source::Source;
use crate::lost::Lost;
use crate::sums::Sums;
use crate::table::plain;
use crate::{Error, LostValues, Refusal, Table};

/// The columns of a result.
pub const COLUMNS: [&str; 3] = ["part", "number", "value"];

/// One row of a result. No `Debug`: it is private.
pub struct ResultRow {
    /// What it says: `query`, `types`, `ids` or `sums`.
    pub part: String,
    /// Which mixed row the sums are of; 0 elsewhere.
    pub number: i64,
    /// What it says, as text.
    pub value: Zeroizing<String>,
}

impl ResultRow {
    /// A row as a database driver gives it.
    pub fn new(part: String, number: i64, value: String) -> Self {
        Self { part, number, value: Zeroizing::new(value) }
    }
}

/// Whether no value is missing.
fn is_full(array: &ArrayRef) -> bool {
    array.logical_null_count() == 0
}

/// What a query gave. No `Debug`: it is as private as the table.
pub struct Results {
    /// What to call it in messages.
    name: String,
    rows: Vec<ResultRow>,
    /// What the shares of the table come to, if tasks of a cluster added it up.
    added: Option<Zeroizing<Vec<u8>>>,
}

impl Results {
    /// The rows that a query gave; `name` stands for them in messages.
    pub fn new(name: &str, rows: impl IntoIterator<Item = ResultRow>) -> Self {
        Self { name: name.to_owned(), rows: rows.into_iter().collect(), added: None }
    }

    /// What tasks of a cluster added up for this query, together with what its
    /// [`of_ids`](Query::of_ids) gave.
    pub fn of_shares(
        name: &str,
        fingerprint: &str,
        ids: impl IntoIterator<Item = ResultRow>,
        added: Zeroizing<Vec<u8>>,
    ) -> Self {
        let query = ResultRow::new("query".to_owned(), 0, fingerprint.to_owned());
        Self { added: Some(added), ..Self::new(name, ids.into_iter().chain([query])) }
    }

    /// The same as Arrow batches.
    pub fn from_batches(
        name: &str,
        batches: impl IntoIterator<Item = Result<RecordBatch, Error>>,
    ) -> Result<Self, Error> {
        let mut results = Self::new(name, []);
        for batch in batches {
            results.add(&batch?)?;
        }
        Ok(results)
    }

    /// Reads a file that holds them: CSV with a header line, Parquet or Arrow.
    pub fn read(path: &Path, tmp: &Path) -> Result<Self, Error> {
        let table = Table::open(path, tmp)?;
        let (_, batches) = table.batches(&COLUMNS.map(str::to_owned))?;
        Self::from_batches(table.name(), batches)
    }

    fn add(&mut self, batch: &RecordBatch) -> Result<(), Error> {
        let [part, number, value] =
            COLUMNS.map(|name| batch.column_by_name(name).and_then(plain::plain).filter(is_full));
        let texts = |array: Option<ArrayRef>| -> Option<StringArray> { plain::texts(&array?) };
        let numbers = |array: &ArrayRef| -> Option<Int64Array> {
            plain::integers(array).or_else(|| plain::parsed(&plain::texts(array)?))
        };
        let read = || Some((texts(part)?, numbers(&number?)?, texts(value)?));
        let (parts, numbers, values) = read().ok_or_else(|| self.not_a_result())?;
        for (at, &number) in numbers.values().iter().enumerate() {
            self.rows.push(ResultRow::new(parts.value(at).to_owned(), number, values.value(at).to_owned()));
        }
        Ok(())
    }

    pub(super) fn problem(&self, problem: impl Into<Problem>) -> Error {
        Error::Table { table: self.name.clone(), problem: problem.into() }
    }

    pub(super) fn not_a_result(&self) -> Error {
        self.problem(Problem::with(
            "is not the result of a query: three columns part, number and value, none of them empty",
            Remedy::ExportResult,
        ))
    }

    /// The one row of a part.
    pub(super) fn only(&self, part: &str) -> Result<&str, Error> {
        let mut rows = self.rows.iter().filter(|row| row.part == part);
        match (rows.next(), rows.next()) {
            (Some(row), None) if row.number == 0 => Ok(&row.value),
            _ => Err(self.not_a_result()),
        }
    }

    /// Whether there is a row of a part.
    pub(super) fn has(&self, part: &str) -> bool {
        self.rows.iter().any(|row| row.part == part)
    }

    /// The fingerprint of the query that it claims to be the result of.
    pub(super) fn fingerprint(&self) -> Result<&str, Error> {
        self.only("query")
    }

    /// Checks everything and returns the exact sums of the stage.
    pub(super) fn sums(
        &self,
        study: &Study,
        party: &str,
        stage: &Stage,
        query: &Query,
        source: &Source,
        lost_values: LostValues,
    ) -> Result<Sums, Error> {
        let own = study.own_party(party)?;
        let columns = own.columns();
        if self.fingerprint()? != query.fingerprint {
            let other = format!(
                "is not the result of the query of stage {} ({}) for this study, party and table",
                query.position + 1,
                query.stage
            );
            return Err(self.problem(Problem::with(other, Remedy::ResultOfQuery)));
        }
        let allowed = study.definition().table_rows(own);
        // An empty table has no row to show its types.
        if !self.has("types") {
            return Err(Error::empty(source.name(), allowed));
        }
        source.check_types(study, party, self.only("types")?)?;
        let (rows, checks) = self.check_ids(study, source, allowed)?;
        let whole = self.whole(columns, stage, query)?;
        let exact = Zeroizing::new(match &whole {
            Some(whole) => self.check_whole(whole, columns, stage, source, rows, checks)?,
            None => self.add_up(columns, stage, source, rows, checks)?,
        });
        if self
            .rows
            .iter()
            .any(|row| row.part != "query" && !parts(query.position).contains(&row.part.as_str()))
        {
            return Err(self.not_a_result());
        }
        if query.position == 0 {
            let lost = self.lost(whole.as_ref(), columns, rows)?;
            if lost_values == LostValues::Refuse {
                lost.refuse(source.name(), columns, rows)?;
            }
        }
        Ok(Sums::from_exact(exact.to_vec(), stage))
    }

    /// Every row has an id of its own, and there are as many as the study allows. Returns how many,
    /// and the check sums of the ids.
    fn check_ids(
        &self,
        study: &Study,
        source: &Source,
        allowed: TableRows,
    ) -> Result<(u64, [i64; CHECKS]), Error> {
        let counts = self.integers(self.only("ids")?)?;
        let (&[rows, different, nameless], rest) =
            counts.split_first_chunk::<3>().ok_or_else(|| self.not_a_result())?;
        let (&checks, positions) = rest.split_first_chunk().ok_or_else(|| self.not_a_result())?;
        let id = |reason, problem: &str| source.column_problem(&source.id_name(), problem).refusing(reason);
        if nameless != 0 {
            return Err(id(Refusal::Id, "ids are missing; every row needs one"));
        }
        if different != rows {
            return Err(id(
                Refusal::DuplicateId,
                "the same id stands in several rows; a table has one row for each subject",
            ));
        }
        let found = u64::try_from(rows).map_err(|_| self.not_a_result())?;
        Error::check_rows(source.name(), found, allowed)?;
        match (study.definition().id_kind(), positions) {
            (IdKind::Row, &[first, last]) if first == 0 && i128::from(last) + 1 == i128::from(rows) => {
                Ok((found, checks))
            }
            (IdKind::Row, &[_, _]) => {
                Err(id(Refusal::Id, "positions are the whole numbers from 0 to one less than the rows"))
            }
            (IdKind::Text | IdKind::Integer, []) => Ok((found, checks)),
            _ => Err(self.not_a_result()),
        }
    }

    /// How many values of each column are lost, as a first stage says.
    fn lost(&self, whole: Option<&Whole>, columns: &[Column], rows: u64) -> Result<Lost, Error> {
        let counts = match whole {
            Some(whole) => whole.lost.clone(),
            None => self.counts("lost")?,
        };
        if counts.len() != columns.len() || counts.iter().any(|&count| count > rows) {
            return Err(self.inconsistent());
        }
        let mut lost = Lost::none(columns.len());
        lost.merge(counts);
        Ok(lost)
    }

    /// The counts of a part, none of them below zero.
    pub(super) fn counts(&self, part: &str) -> Result<Vec<u64>, Error> {
        let counts = self.integers(self.only(part)?)?;
        let counts: Option<Vec<u64>> = counts.iter().map(|&count| u64::try_from(count).ok()).collect();
        counts.ok_or_else(|| self.not_a_result())
    }

    /// Puts the sums at their places, and looks whether they can be sums of so many rows.
    fn add_up(
        &self,
        columns: &[Column],
        stage: &Stage,
        source: &Source,
        rows: u64,
        checks: [i64; CHECKS],
    ) -> Result<Vec<i64>, Error> {
        let leading = leading_counts(columns);
        let (slots, width) = match stage.statistic {
            Statistic::Mixed { k, .. } => (k as usize, stage.encoder.width()),
            Statistic::Standardise { .. } | Statistic::Moments => (1, stage.coordinates()),
        };
        let mut sums = Zeroizing::new(vec![0; stage.coordinates()]);
        let mut seen = vec![false; slots];
        let mut total = 0_u64;
        let mut checks = checks.map(i128::from);
        let mut refused = vec![false; columns.len()];
        for row in self.rows.iter().filter(|row| row.part == "sums") {
            let values = self.integers(&row.value)?;
            let slot = usize::try_from(row.number).ok().filter(|&slot| slot < slots);
            let Some(slot) = slot.filter(|&slot| !seen[slot] && values.len() == leading + width) else {
                return Err(self.problem(
                    "does not have every sum just once; it was changed or is of another stage: run the query again",
                ));
            };
            seen[slot] = true;
            let (counts, exact) = values.split_at(leading);
            let (own_checks, bad_values) = counts[1..].split_at(CHECKS);
            // A row of sums is of one subject at least.
            let count = u64::try_from(counts[0]).ok().filter(|&count| count > 0);
            let count = count.filter(|count| total.checked_add(*count).is_some_and(|total| total <= rows));
            let count = count.ok_or_else(|| self.inconsistent())?;
            total += count;
            for (check, &own) in checks.iter_mut().zip(own_checks) {
                *check -= i128::from(own);
            }
            for (refused, &bad) in refused.iter_mut().zip(bad_values) {
                *refused |= bad != 0;
            }
            if !possible(stage, count, exact) {
                return Err(self.inconsistent());
            }
            sums[slot * width..][..width].copy_from_slice(exact);
        }
        if let Some(column) = refused.iter().position(|&refused| refused) {
            return Err(source.refused_values(&columns[column]).refusing(Refusal::Value));
        }
        if total != rows {
            return Err(self.lacks_sums());
        }
        if checks != [0; CHECKS] {
            return Err(self.other_subjects());
        }
        // The sums have an owner from here on that wipes them.
        Ok(std::mem::take(&mut *sums))
    }

    /// What tasks of a cluster added up, if they did.
    fn whole(&self, columns: &[Column], stage: &Stage, query: &Query) -> Result<Option<Whole>, Error> {
        let Some(added) = &self.added else { return Ok(None) };
        Whole::of(added, columns, stage, &query.fingerprint).map(Some).ok_or_else(|| self.not_a_result())
    }

    /// The sums, if they can be those of so many rows, and are of the subjects whose ids were
    /// looked at.
    fn check_whole(
        &self,
        whole: &Whole,
        columns: &[Column],
        stage: &Stage,
        source: &Source,
        rows: u64,
        checks: [i64; CHECKS],
    ) -> Result<Vec<i64>, Error> {
        if whole.rows != rows {
            return Err(self.lacks_sums());
        }
        // Ids that are refused here and were not there are others.
        if whole.checks != checks || whole.refused[columns.len()] {
            return Err(self.other_subjects());
        }
        if let Some(column) = whole.refused[..columns.len()].iter().position(|&refused| refused) {
            return Err(source.refused_values(&columns[column]).refusing(Refusal::Value));
        }
        let width = match stage.statistic {
            Statistic::Mixed { .. } => stage.encoder.width(),
            Statistic::Standardise { .. } | Statistic::Moments => stage.coordinates(),
        };
        if !whole.sums.chunks(width).all(|sums| possible(stage, rows, sums)) {
            return Err(self.inconsistent());
        }
        Ok(whole.sums.clone())
    }

    fn lacks_sums(&self) -> Error {
        self.problem(
            "lacks sums, or the table was changed while the query ran; run the query again when nobody writes to the table",
        )
    }

    fn other_subjects(&self) -> Error {
        self.problem(
            "adds up other subjects than those whose ids it counts: the table was changed while the query ran, or gives other rows each time it is read, as a view with a LIMIT or a sample does; store what is meant as a table of its own, and run the query again",
        )
    }

    fn inconsistent(&self) -> Error {
        self.problem("has sums that no table of this study can have; it was changed: run the query again")
    }

    /// Whole numbers with single spaces between them, each written in one way only.
    pub(super) fn integers(&self, text: &str) -> Result<Zeroizing<Vec<i64>>, Error> {
        let parse = |text: &str| {
            let number: i64 = text.parse().ok()?;
            (number.to_string() == text).then_some(number)
        };
        let numbers: Option<Vec<i64>> = text.split(' ').map(parse).collect();
        numbers.map(Zeroizing::new).ok_or_else(|| {
            self.problem("has values that are not whole numbers in plain decimal; export it again as it came")
        })
    }
}

/// Whether `count` rows can have these sums.
fn possible(stage: &Stage, count: u64, sums: &[i64]) -> bool {
    let scalings = || stage.encoder.columns().iter().flat_map(|(_, scalings)| scalings);
    let largest_squared = |scaling: &Scaling| {
        let own = i128::from(scaling.limit).pow(2);
        // With a ball no entry exceeds its radius, centred or not.
        stage.encoder.ball().map_or(own, |ball| i128::from(ball.norm_squared()))
    };
    let limits: Vec<i128> = scalings().map(largest_squared).collect();
    let count = i128::from(count);
    let sum_fits = |sum: i64, limit: i128| i128::from(sum).pow(2) <= count * count * limit;
    let square_fits = |sum: i64, limit: i128| (0..=count * limit).contains(&i128::from(sum));
    let (groups, bins) = (stage.encoder.groups(), stage.encoder.bins());
    let counts_fit = |counts: &[i64]| counts.iter().all(|&sum| (0..=count).contains(&i128::from(sum)));
    let (own, rest) = sums.split_at(limits.len() * if is_moments(stage) { groups.max(1) } else { 1 });
    let own_fit = own.iter().zip(limits.iter().cycle()).all(|(&sum, &limit)| sum_fits(sum, limit));
    let rest_fit = match &stage.statistic {
        Statistic::Mixed { .. } => match (stage.encoder.weight(), rest) {
            (Some(weight), &[present]) => {
                let weight = i128::from(weight);
                (0..=count * weight).contains(&i128::from(present)) && i128::from(present) % weight == 0
            }
            (weight, rest) => weight.is_none() && rest.is_empty(),
        },
        Statistic::Standardise { squares } => {
            let (squared, counts) = rest.split_at(squares.len());
            let (present, mut cells) = counts.split_at(groups);
            let in_cells = bins.iter().all(|bins| {
                let (own, others) = cells.split_at(bins.count());
                cells = others;
                counts_fit(own) && own.iter().map(|&sum| i128::from(sum)).sum::<i128>() <= count
            });
            squared.iter().zip(squares).all(|(&sum, &column)| square_fits(sum, limits[column]))
                && counts_fit(present)
                && in_cells
        }
        Statistic::Moments => {
            let (squares, rest) = rest.split_at(limits.len());
            let (products, counts) = rest.split_at(limits.len() * (limits.len() - 1) / 2);
            let limit = limits.iter().copied().max().unwrap_or(0);
            squares.iter().zip(&limits).all(|(&sum, &limit)| square_fits(sum, limit))
                && products.iter().all(|&sum| i128::from(sum).abs() <= count * limit)
                && counts_fit(counts)
        }
    };
    own_fit && rest_fit && sums.iter().all(|sum| sum.unsigned_abs() <= stage.sum_limit().unsigned_abs())
}

fn is_moments(stage: &Stage) -> bool {
    matches!(stage.statistic, Statistic::Moments)
}
