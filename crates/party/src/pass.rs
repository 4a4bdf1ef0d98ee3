//! One pass over a table: validate every row and add up a stage's sums, on several threads.
//!
//! Each thread adds to sums of its own; integer sums do not depend on who added what, so the result
//! is the same for any number of threads and any batch size. Sums too large for a copy a thread are
//! shared behind a lock. If values are bad, the error is that of the first bad batch, however the
//! threads ran, and in it of the first bad column.

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
use potluck_release::study::{IdKind, Party, Study, TableRows};

use crate::duplicates::{Fingerprints, find_repeated};
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
    /// The columns that make up an id.
    id_columns: Vec<String>,
    /// The party's columns, then those of the id.
    columns: Vec<String>,
    threads: NonZero<usize>,
    tmp: &'a Path,
    /// The table as it was at first.
    stamp: Option<Stamp>,
    /// Whether it was searched for duplicate ids.
    searched: AtomicBool,
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
            id_columns: access.id_columns(study),
            columns,
            threads: access.resources.threads,
            tmp: &access.resources.tmp,
            stamp: table.stamp()?,
            searched: AtomicBool::new(false),
        })
    }

    fn converter(&self, text: bool) -> Converter<'_> {
        Converter::new(self.table.name(), text, self.study, self.party.columns(), &self.id_columns)
    }

    /// How many rows the table may have.
    fn rows(&self) -> TableRows {
        self.study.definition().table_rows(self.party)
    }

    fn check_rows(&self, rows: u64) -> Result<(), Error> {
        Error::check_rows(self.table.name(), rows, self.rows())
    }

    /// Validates the whole table and returns the stage's exact sums. `progress` is told how many
    /// rows are done.
    ///
    /// The first pass looks for duplicate ids. Later ones refuse a table that was changed since,
    /// and read ids only if the stage mixes by them.
    pub(crate) fn sums(&self, stage: &Stage, progress: &Progress<'_>) -> Result<Sums, Error> {
        let rows = self.rows();
        let has_ids = self.study.definition().id_kind() != IdKind::Row;
        let search = has_ids && !self.searched.load(Ordering::Relaxed);
        let mixes = matches!(stage.statistic, Statistic::Mixed { .. });
        let columns =
            if search || mixes { &self.columns[..] } else { &self.columns[..self.party.columns().len()] };
        let parts = self.table.parts(columns)?;
        // Where the file says how many there are, nobody has to wait for a pass to know.
        if let Some(claimed) = parts.rows {
            self.check_rows(claimed)?;
        }
        let converter = self.converter(parts.text);
        let share = stage.coordinates().saturating_mul(self.threads.get()) > OWN_SUMS_LIMIT;
        let total = Mutex::new(Sums::zero(stage));
        let done = AtomicU64::new(0);
        let hash = RandomState::new();

        let start = || Worker {
            sums: (!share).then(|| Sums::zero(stage)),
            fingerprints: search.then(|| Fingerprints::new(self.tmp, self.threads, rows.expected())),
            encoded: EncodedRows::default(),
            subjects: Vec::new(),
        };
        let take = |worker: &mut Worker, first: u64, batch: RecordBatch| {
            // Too many rows are refused before any of them could overflow a sum.
            self.check_rows(first.saturating_add(batch.num_rows() as u64).max(rows.fewest()))?;
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
            values.encode(stage, &mut worker.encoded);
            match &mut worker.sums {
                Some(own) => own.add(stage, &worker.subjects, first, &worker.encoded),
                None => lock(&total).add(stage, &worker.subjects, first, &worker.encoded),
            }
            progress(done.fetch_add(values.count as u64, Ordering::Relaxed) + values.count as u64)
        };
        let workers = read_parts(&parts, self.threads, start, take)?;
        self.check_rows(done.into_inner())?;
        let mut fingerprints = Vec::with_capacity(workers.len());
        let mut total = total.into_inner().unwrap_or_else(PoisonError::into_inner);
        for worker in workers {
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
        Ok(total)
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
        let (text, batches) = self.table.batches(&self.id_columns)?;
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
                    return Err(Error::Value {
                        table: self.table.name().to_owned(),
                        column: self.id_columns.join(", "),
                        row,
                        problem: format!(
                            "the id is the same as in row {earlier}; a table has one row for each subject"
                        )
                        .into(),
                    }
                    .refusing(Refusal::DuplicateId));
                }
            }
            first += batch.num_rows() as u64;
        }
        Ok(())
    }

    /// Validates the whole table. `progress` is told how many rows are done.
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
        let (text, batches) = self.table.batches(&self.columns[..self.party.columns().len()])?;
        let converter = self.converter(text);
        let mut encoded = EncodedRows::default();
        let mut done = 0;
        for batch in batches {
            let batch = batch?;
            let first = done;
            done += batch.num_rows() as u64;
            self.check_rows(done.max(self.rows().fewest()))?;
            converter.rows(first, &batch)?.encode(stage, &mut encoded);
            sink(&encoded.to_rows())?;
        }
        self.check_rows(done)?;
        self.check_unchanged()
    }
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
    let id_columns = access.id_columns(study);
    let refuse = |column: &str, what: &str, remedy| Error::Column {
        table: table.to_owned(),
        column: column.to_owned(),
        problem: Problem::with(what, remedy),
    };
    let mut columns: Vec<String> = party.columns().iter().map(|column| column.name().to_owned()).collect();
    for id_column in &id_columns {
        if columns.contains(id_column) {
            return Err(refuse(id_column, "is both the id and a column of the study", Remedy::OtherIdColumn));
        }
        columns.push(id_column.clone());
    }
    for column in &columns {
        if !found.contains(column) {
            // The table's own names are not shown: without a header line they would be values.
            let remedy = if id_columns == [column.as_str()] && study.definition().id_columns().is_empty() {
                Remedy::IdColumn
            } else {
                Remedy::CheckSpelling
            };
            return Err(refuse(column, "is missing", remedy));
        }
    }
    if let (ExtraColumns::Refuse, Some(column)) =
        (access.extra_columns, found.iter().find(|column| !columns.contains(column)))
    {
        return Err(refuse(column, "is not in the study", Remedy::IgnoreExtra));
    }
    Ok(columns)
}

/// What a thread works with.
struct Worker {
    /// Nothing if all threads share one set of sums.
    sums: Option<Sums>,
    /// Nothing if nobody looks for duplicate ids.
    fingerprints: Option<Fingerprints>,
    /// The batch in hand, encoded, and who its subjects are.
    encoded: EncodedRows,
    subjects: Vec<SubjectDigest>,
}
