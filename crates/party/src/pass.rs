//! One pass over a table: validate every row and add up a stage's sums, on several threads.
//!
//! Workers take batches in turn, each into sums of its own; integer sums do not depend on who added what, so
//! the result is the same for any number of threads and any batch size.

use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use potluck_core::mixing::SubjectDigest;
use potluck_core::stage::{Stage, Statistic};
use potluck_release::study::{IdKind, Party, Study};

use crate::Error;
use crate::duplicates::DuplicateSearch;
use crate::stage::Sums;
use crate::table::convert::Converter;
use crate::table::{Batches, Table};

/// Sums larger than this in all are shared by the threads instead of kept by each.
const OWN_SUMS_LIMIT: usize = 1 << 25;

/// A party's table together with the study it is read for.
pub(crate) struct Input<'a> {
    study: &'a Study,
    party: &'a Party,
    table: &'a Table,
    id_column: &'a str,
    /// The party's columns, then the id column if there is one.
    columns: Vec<String>,
    threads: NonZero<usize>,
    tmp: PathBuf,
}

impl<'a> Input<'a> {
    /// Checks that the table has the columns that the study expects.
    pub(crate) fn new(
        study: &'a Study,
        party: &str,
        table: &'a Table,
        id_column: &'a str,
        extra: ExtraColumns,
        threads: NonZero<usize>,
        tmp: &Path,
    ) -> Result<Self, Error> {
        let party = study.definition().party(party)?;
        let mut columns: Vec<String> =
            party.columns().iter().map(|column| column.name().to_owned()).collect();
        if study.definition().id_kind() != IdKind::Row {
            if columns.iter().any(|column| column == id_column) {
                return Err(Error::Column {
                    table: table.name().to_owned(),
                    column: id_column.to_owned(),
                    problem: "is both the id and a column of the study; name another id column with --id"
                        .to_owned(),
                });
            }
            columns.push(id_column.to_owned());
        }
        let found = table.column_names()?;
        for column in &columns {
            if !found.contains(column) {
                // The table's own names are not shown: without a header line they would be values.
                let remedy = if column == id_column {
                    "is missing; name the column that holds the ids with --id"
                } else {
                    "is missing; the study expects it: check the spelling and the header line"
                };
                return Err(Error::Column {
                    table: table.name().to_owned(),
                    column: column.clone(),
                    problem: remedy.to_owned(),
                });
            }
        }
        if let (ExtraColumns::Refuse, Some(column)) =
            (extra, found.iter().find(|column| !columns.contains(column)))
        {
            return Err(Error::Column {
                table: table.name().to_owned(),
                column: column.clone(),
                problem: "is not in the study; remove it, or pass --ignore-extra to leave such columns alone"
                    .to_owned(),
            });
        }
        Ok(Self { study, party, table, id_column, columns, threads, tmp: tmp.to_owned() })
    }

    fn converter(&self, text: bool) -> Converter<'_> {
        Converter::new(self.table.name(), text, self.study, self.party.columns(), self.id_column)
    }

    fn wrong_rows(&self, how: &str) -> Error {
        Error::Table {
            table: self.table.name().to_owned(),
            problem: format!(
                "has {how} rows than the {} of the study; every party needs exactly one row for each subject of the study",
                self.study.definition().rows()
            ),
        }
    }

    /// Validates the whole table and returns the stage's exact sums. `progress` is told how many rows are done.
    pub(crate) fn sums(&self, stage: &Stage, progress: &(dyn Fn(u64) + Sync)) -> Result<Sums, Error> {
        let rows = self.study.definition().rows();
        let batches = self.table.batches(&self.columns)?;
        let converter = self.converter(batches.text);
        let queue = Queue::new(batches);
        let duplicates = Mutex::new(DuplicateSearch::new(&self.tmp));
        let threads = self.threads.get();
        let share = stage.coordinates().saturating_mul(threads) > OWN_SUMS_LIMIT;
        let total = Mutex::new(Sums::zero(stage));
        let done = AtomicU64::new(0);

        let work = || -> Result<(), (u64, Error)> {
            let mut own = (!share).then(|| Sums::zero(stage));
            while let Some((first, batch)) = queue.take()? {
                let fail = |error| queue.fail(first, error);
                if first + batch.num_rows() as u64 > rows {
                    return Err(fail(self.wrong_rows("more")));
                }
                let batch = converter.rows(first, &batch).map_err(fail)?;
                let encoded = Sums::encode(stage, &batch);
                match &mut own {
                    Some(own) => own.add(stage, &batch, &encoded),
                    None => lock(&total).add(stage, &batch, &encoded),
                }
                if self.study.definition().id_kind() != IdKind::Row {
                    let fingerprints = batch.subjects.iter().map(SubjectDigest::fingerprint);
                    lock(&duplicates).add(fingerprints).map_err(|error| queue.fail(first, error))?;
                }
                progress(done.fetch_add(batch.count as u64, Ordering::Relaxed) + batch.count as u64);
            }
            if let Some(own) = own {
                lock(&total).merge(&own);
            }
            Ok(())
        };
        let failures: Vec<(u64, Error)> = std::thread::scope(|scope| {
            let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
            let results = workers.into_iter().map(|worker| worker.join().expect("a worker does not panic"));
            results.filter_map(Result::err).collect()
        });
        // Batches are handed out in order, so the earliest failure is always among those found.
        if let Some((_, error)) = failures.into_iter().min_by_key(|(first, _)| *first) {
            return Err(error);
        }
        if done.into_inner() != rows {
            return Err(self.wrong_rows("fewer"));
        }
        let duplicates = duplicates.into_inner().unwrap_or_else(PoisonError::into_inner);
        if let Some(fingerprint) = duplicates.finish()? {
            return Err(self.locate_duplicate(fingerprint)?);
        }
        Ok(total.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    /// Reads the ids again to say which two rows share one.
    fn locate_duplicate(&self, fingerprint: u128) -> Result<Error, Error> {
        let batches = self.table.batches(&[self.id_column.to_owned()])?;
        let converter = self.converter(batches.text);
        let mut found = Vec::new();
        let mut first = 0;
        for batch in batches.next {
            let batch = batch?;
            for (index, subject) in converter.subjects(first, &batch)?.iter().enumerate() {
                if subject.fingerprint() == fingerprint {
                    found.push(first + index as u64 + 1);
                }
            }
            first += batch.num_rows() as u64;
            if found.len() > 1 {
                break;
            }
        }
        let (earlier, later) = (found.first().copied().unwrap_or(0), found.last().copied().unwrap_or(0));
        Ok(Error::Value {
            table: self.table.name().to_owned(),
            column: self.id_column.to_owned(),
            row: later,
            problem: format!("the id is the same as in row {earlier}; a table has one row for each subject"),
        })
    }

    /// Validates the whole table. `progress` is told how many rows are done.
    pub(crate) fn validate(&self, progress: &(dyn Fn(u64) + Sync)) -> Result<(), Error> {
        let stage = self.study.first_stage(self.party.name())?;
        let statistic = Statistic::Standardise { squares: Vec::new() };
        self.sums(&Stage { statistic, ..stage }, progress).map(|_| ())
    }

    /// Encodes the table for a stage and hands its rows on, batch by batch in the order of the table.
    pub(crate) fn in_order(
        &self,
        stage: &Stage,
        sink: &mut dyn FnMut(&[i32]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let rows = self.study.definition().rows();
        let batches = self.table.batches(&self.columns)?;
        let converter = self.converter(batches.text);
        let mut done = 0;
        for batch in batches.next {
            let batch = batch?;
            let first = done;
            done += batch.num_rows() as u64;
            if done > rows {
                return Err(self.wrong_rows("more"));
            }
            sink(&Sums::encode(stage, &converter.rows(first, &batch)?))?;
        }
        if done == rows { Ok(()) } else { Err(self.wrong_rows("fewer")) }
    }
}

/// Whether the table may have columns that the study does not name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExtraColumns {
    /// Refuse the table: it may be the wrong one.
    Refuse,
    /// Leave them alone.
    Ignore,
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Batches, handed to whoever asks next, with the position of their first row.
struct Queue {
    reader: Mutex<(Batches, u64)>,
    failed: AtomicBool,
}

impl Queue {
    fn new(batches: Batches) -> Self {
        Self { reader: Mutex::new((batches, 0)), failed: AtomicBool::new(false) }
    }

    fn take(&self) -> Result<Option<(u64, arrow_array::RecordBatch)>, (u64, Error)> {
        let mut reader = lock(&self.reader);
        if self.failed.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let (batches, first) = &mut *reader;
        match batches.next.next() {
            None => Ok(None),
            Some(Err(error)) => Err(self.fail(*first, error)),
            Some(Ok(batch)) => {
                let start = *first;
                *first += batch.num_rows() as u64;
                Ok(Some((start, batch)))
            }
        }
    }

    /// Notes that nobody needs to take another batch.
    fn fail(&self, first: u64, error: Error) -> (u64, Error) {
        self.failed.store(true, Ordering::Relaxed);
        (first, error)
    }
}
