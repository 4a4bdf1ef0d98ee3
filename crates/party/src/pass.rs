//! One pass over a table: validate every row and add up a stage's sums, on several threads.
//!
//! Each thread adds to sums of its own; integer sums do not depend on who added what, so the result
//! is the same for any number of threads and any batch size. Sums too large for a copy a thread are
//! shared behind a lock. If values are bad, the error is that of the first bad batch, however the
//! threads ran, and in it of the first bad column.

use std::cmp::Ordering::{Equal, Greater, Less};
use std::collections::HashMap;
use std::hash::RandomState;
use std::num::NonZero;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use arrow_array::RecordBatch;
use potluck_core::encoding::EncodedRows;
use potluck_core::mixing::SubjectDigest;
use potluck_core::stage::{Stage, Statistic};
use potluck_release::remedy::{Problem, Remedy};
use potluck_release::study::{IdKind, Party, Study};

use crate::duplicates::{Fingerprints, find_repeated};
use crate::lost::Lost;
use crate::reading::{Access, ExtraColumns, Reading};
use crate::sums::Sums;
use crate::table::convert::Converter;
use crate::table::{Stamp, Table, read_parts};
use crate::{Error, Refusal, lock};

/// Repeated fingerprints whose ids are compared at a time: bounds memory where every id is there
/// twice.
const CHECKED_AT_A_TIME: usize = 1 << 20;

/// Sums larger than this in all are shared by the threads instead of kept by each.
const OWN_SUMS_LIMIT: usize = 1 << 25;

/// Is told how many rows of a pass are done; an error ends the pass.
pub(crate) type Progress<'a> = dyn Fn(u64) -> Result<(), Error> + Sync + 'a;

/// A party's table together with the study it is read for.
pub(crate) struct Input<'a> {
    study: &'a Study,
    party: &'a Party,
    table: &'a Table,
    id_column: &'a str,
    /// The party's columns, then the id column if there is one.
    columns: Vec<String>,
    threads: NonZero<usize>,
    tmp: &'a Path,
    /// The table as it was at first.
    stamp: Option<Stamp>,
    /// Whether it was searched for duplicate ids.
    searched: AtomicBool,
    /// How many values are lost, once it was read.
    lost: Mutex<Lost>,
}

impl<'a> Input<'a> {
    /// Checks that the table has the columns that the study expects.
    pub(crate) fn new(reading: &Reading<'a>) -> Result<Self, Error> {
        let Reading { study, table, access, .. } = *reading;
        let party = study.own_party(reading.party)?;
        let columns = check_names(study, party, access, table.name(), &table.column_names()?)?;
        Ok(Self {
            study,
            party,
            table,
            id_column: &access.id_column,
            columns,
            threads: access.resources.threads,
            tmp: &access.resources.tmp,
            stamp: table.stamp()?,
            searched: AtomicBool::new(false),
            lost: Mutex::new(Lost::none(party.columns().len())),
        })
    }

    fn converter(&self, text: bool) -> Converter<'_> {
        Converter::new(self.table.name(), text, self.study, self.party.columns(), self.id_column)
    }

    fn wrong_rows(&self, how: &str) -> Error {
        Error::wrong_rows(self.table.name(), how, self.study.definition().rows())
    }

    /// Validates the whole table and returns the stage's exact sums. `progress` is told how many
    /// rows are done.
    ///
    /// The first pass looks for duplicate ids. Later ones refuse a table that was changed since,
    /// and read ids only if the stage mixes by them.
    pub(crate) fn sums(&self, stage: &Stage, progress: &Progress<'_>) -> Result<Sums, Error> {
        let rows = self.study.definition().rows();
        let has_ids = self.study.definition().id_kind() != IdKind::Row;
        let search = has_ids && !self.searched.load(Ordering::Relaxed);
        let mixes = matches!(stage.statistic, Statistic::Mixed { .. });
        let columns =
            if search || mixes { &self.columns[..] } else { &self.columns[..self.party.columns().len()] };
        let parts = self.table.parts(columns)?;
        // Where the file says how many there are, nobody has to wait for a pass to know.
        match parts.rows.map(|claimed| claimed.cmp(&rows)) {
            Some(Greater) => return Err(self.wrong_rows("more")),
            Some(Less) => return Err(self.wrong_rows("fewer")),
            Some(Equal) | None => {}
        }
        let converter = self.converter(parts.text);
        let share = stage.coordinates().saturating_mul(self.threads.get()) > OWN_SUMS_LIMIT;
        let total = Mutex::new(Sums::zero(stage));
        let done = AtomicU64::new(0);
        let hash = RandomState::new();

        let start = || Worker {
            sums: (!share).then(|| Sums::zero(stage)),
            fingerprints: search.then(|| Fingerprints::new(self.tmp, self.threads, rows)),
            lost: Lost::none(self.party.columns().len()),
            encoded: EncodedRows::default(),
            subjects: Vec::new(),
        };
        let take = |worker: &mut Worker, first: u64, batch: RecordBatch| {
            if first.saturating_add(batch.num_rows() as u64) > rows {
                return Err(self.wrong_rows("more"));
            }
            let values = converter.rows(first, &batch)?;
            if search || mixes {
                let ids = converter.ids(first, &batch)?;
                if let Some(fingerprints) = &mut worker.fingerprints {
                    fingerprints.add(&ids.fingerprints(&hash))?;
                }
                if mixes {
                    converter.subjects(&ids, &mut worker.subjects);
                }
            }
            worker.lost.add(self.party.columns(), &values);
            values.encode(stage, &mut worker.encoded);
            match &mut worker.sums {
                Some(own) => own.add(stage, &worker.subjects, first, &worker.encoded),
                None => lock(&total).add(stage, &worker.subjects, first, &worker.encoded),
            }
            progress(done.fetch_add(values.count as u64, Ordering::Relaxed) + values.count as u64)
        };
        let workers = read_parts(&parts, self.threads, start, take)?;
        if done.into_inner() != rows {
            return Err(self.wrong_rows("fewer"));
        }
        let mut fingerprints = Vec::with_capacity(workers.len());
        let mut total = total.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut lost = Lost::none(self.party.columns().len());
        for worker in workers {
            lost.merge(worker.lost.counts());
            if let Some(own) = worker.sums {
                total.merge(&own);
            }
            fingerprints.extend(worker.fingerprints);
        }
        if search {
            for repeated in find_repeated(&fingerprints, self.threads)?.chunks(CHECKED_AT_A_TIME) {
                self.check_repeated(repeated, &hash)?;
            }
        }
        self.check_unchanged()?;
        self.searched.store(true, Ordering::Relaxed);
        *lock(&self.lost) = lost;
        Ok(total)
    }

    /// Refuses the table if most values of a column were lost in the last pass.
    pub(crate) fn refuse_lost(&self) -> Result<(), Error> {
        let rows = self.study.definition().rows();
        lock(&self.lost).refuse(self.table.name(), self.party.columns(), rows)
    }

    /// What was checked in an earlier pass holds for this one only if the table is the same.
    fn check_unchanged(&self) -> Result<(), Error> {
        if self.table.stamp()? == self.stamp {
            return Ok(());
        }
        Err(Error::Table {
            table: self.table.name().to_owned(),
            problem: Problem::with("was changed while it was being read", Remedy::WaitAndRepeat),
        })
    }

    /// Reads the ids again to see whether two that have the same fingerprint are the same.
    fn check_repeated(&self, repeated: &[u64], hash: &RandomState) -> Result<(), Error> {
        let (text, batches) = self.table.batches(&[self.id_column.to_owned()])?;
        let converter = self.converter(text);
        let mut rows: HashMap<String, u64> = HashMap::new();
        let mut first = 0;
        for batch in batches {
            let batch = batch?;
            let ids = converter.ids(first, &batch)?;
            for (index, fingerprint) in ids.fingerprints(hash).iter().enumerate() {
                let row = first + index as u64 + 1;
                if repeated.binary_search(fingerprint).is_ok()
                    && let Some(earlier) = rows.insert(ids.text(index), row)
                {
                    return Err(same_id(self.table.name(), self.id_column, row, earlier));
                }
            }
            first += batch.num_rows() as u64;
        }
        Ok(())
    }

    /// Validates the whole table, as the first pass of a release. `progress` is told how many rows
    /// are done.
    pub(crate) fn validate(&self, progress: &Progress<'_>) -> Result<(), Error> {
        let stage = self.study.first_stage(self.party.name())?;
        let statistic = Statistic::Standardise { squares: Vec::new() };
        self.sums(&Stage { statistic, ..stage }, progress).map(|_| ())
    }

    /// Encodes the table for a stage and hands its rows on, batch by batch in the order of the
    /// table.
    pub(crate) fn in_order(
        &self,
        stage: &Stage,
        sink: &mut dyn FnMut(&[i32]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let rows = self.study.definition().rows();
        let (text, batches) = self.table.batches(&self.columns[..self.party.columns().len()])?;
        let converter = self.converter(text);
        let mut encoded = EncodedRows::default();
        let mut done = 0;
        for batch in batches {
            let batch = batch?;
            let first = done;
            done += batch.num_rows() as u64;
            if done > rows {
                return Err(self.wrong_rows("more"));
            }
            converter.rows(first, &batch)?.encode(stage, &mut encoded);
            sink(&encoded.to_rows())?;
        }
        if done == rows { self.check_unchanged() } else { Err(self.wrong_rows("fewer")) }
    }
}

/// The id of a row stands in an earlier one.
pub(crate) fn same_id(table: &str, id_column: &str, row: u64, earlier: u64) -> Error {
    Error::Value {
        table: table.to_owned(),
        column: id_column.to_owned(),
        row,
        problem: format!("the id is the same as in row {earlier}; a table has one row for each subject")
            .into(),
    }
    .refusing(Refusal::DuplicateId)
}

/// The columns to read, the party's and then the id column if there is one, of a table with columns
/// of these names; refuses one that has not what the study expects.
pub(crate) fn check_names(
    study: &Study,
    party: &Party,
    access: &Access,
    table: &str,
    found: &[String],
) -> Result<Vec<String>, Error> {
    let (columns, problems) = look_for_names(study, party, access, table, found);
    problems.into_iter().next().map_or(Ok(columns), Err)
}

/// The same, and everything that is wrong with the names.
pub(crate) fn look_for_names(
    study: &Study,
    party: &Party,
    access: &Access,
    table: &str,
    found: &[String],
) -> (Vec<String>, Vec<Error>) {
    let id_column = access.id_column.as_str();
    let mut problems = Vec::new();
    let refuse = |column: &str, what: &str, remedy| Error::Column {
        table: table.to_owned(),
        column: column.to_owned(),
        problem: Problem::with(what, remedy),
    };
    let mut columns: Vec<String> = party.columns().iter().map(|column| column.name().to_owned()).collect();
    if study.definition().id_kind() != IdKind::Row {
        if columns.iter().any(|column| column == id_column) {
            problems.push(refuse(
                id_column,
                "is both the id and a column of the study",
                Remedy::OtherIdColumn,
            ));
        } else {
            columns.push(id_column.to_owned());
        }
    }
    for column in &columns {
        if !found.contains(column) {
            // The table's own names are not shown: without a header line they would be values.
            let remedy = if column == id_column { Remedy::IdColumn } else { Remedy::CheckSpelling };
            problems.push(refuse(column, "is missing", remedy));
        }
    }
    if access.extra_columns == ExtraColumns::Refuse {
        let extra = found.iter().filter(|column| !columns.contains(column));
        problems.extend(extra.map(|column| refuse(column, "is not in the study", Remedy::IgnoreExtra)));
    }
    (columns, problems)
}

/// What a thread works with.
struct Worker {
    /// Nothing if all threads share one set of sums.
    sums: Option<Sums>,
    /// Nothing if nobody looks for duplicate ids.
    fingerprints: Option<Fingerprints>,
    lost: Lost,
    /// The batch in hand, encoded, and who its subjects are.
    encoded: EncodedRows,
    subjects: Vec<SubjectDigest>,
}
