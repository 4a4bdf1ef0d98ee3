//! One pass over a table: validate every row and add up a stage's sums, on several threads.
//!
//! The first pass of a release keeps what it decoded for those after it, if that fits the memory
//! that they may use.
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
use std::sync::{Mutex, OnceLock, PoisonError};

use arrow_array::RecordBatch;
use potluck_core::encoding::EncodedRows;
use potluck_core::mixing::SubjectDigest;
use potluck_core::stage::{Stage, Statistic};
use potluck_release::remedy::{Problem, Remedy};
use potluck_release::study::{Column, Domain, IdKind, Party, Study, TableRows};

use crate::duplicates::{Fingerprints, find_repeated};
use crate::kept::{Keeper, Kept, Piece};
use crate::lost::Lost;
use crate::reading::{Access, ExtraColumns, Reading};
use crate::rows::Rows;
use crate::sums::Sums;
use crate::table::convert::{Converter, Ids};
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
    /// How many bytes may be kept for later passes.
    memory: u64,
    /// What the first pass kept: nothing if it did not fit.
    kept: OnceLock<Option<Kept>>,
    /// How many values are lost, and of how many rows: the first pass counts.
    lost: OnceLock<LostOf>,
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
            memory: 0,
            kept: OnceLock::new(),
            lost: OnceLock::new(),
        })
    }

    /// The same for all passes of a release: the first one keeps what it decodes for the others, if
    /// that fits.
    pub(crate) fn for_passes(reading: &Reading<'a>) -> Result<Self, Error> {
        Ok(Self { memory: reading.access.resources.memory, ..Self::new(reading)? })
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
    /// take what the first one kept, and read ids only if the stage mixes by them.
    pub(crate) fn sums(&self, stage: &Stage, progress: &Progress<'_>) -> Result<Sums, Error> {
        let rows = self.rows();
        let has_ids = self.study.definition().id_kind() != IdKind::Row;
        let search = has_ids && !self.searched.load(Ordering::Relaxed);
        let adding = Adding::new(self, stage, progress);
        let start = || Worker {
            sums: (!adding.shares).then(|| Sums::zero(stage)),
            fingerprints: search.then(|| Fingerprints::new(self.tmp, self.threads, rows.expected())),
            lost: Lost::none(self.party.columns().len()),
            encoded: EncodedRows::default(),
            subjects: Vec::new(),
            pieces: Vec::new(),
        };
        let workers = match self.kept.get() {
            Some(Some(kept)) => kept.each(self.threads, start, |worker, piece| {
                adding.add(worker, piece.first, &piece.rows, piece.ids.as_ref())
            })?,
            _ => self.read(stage, search, &adding, start)?,
        };
        let found = adding.done.load(Ordering::Relaxed);
        self.check_rows(found)?;
        let mut fingerprints = Vec::with_capacity(workers.len());
        let mut total = adding.total.into_inner().unwrap_or_else(PoisonError::into_inner);
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
                self.check_repeated(repeated, &adding.hash)?;
            }
        }
        self.check_unchanged()?;
        self.searched.store(true, Ordering::Relaxed);
        self.lost.get_or_init(|| LostOf { values: lost, rows: found });
        Ok(total)
    }

    /// Refuses the table, which was read, if most values of a column are lost.
    pub(crate) fn refuse_lost(&self) -> Result<(), Error> {
        let lost = self.lost.get().expect("the first pass has counted");
        lost.values.refuse(self.table.name(), self.party.columns(), lost.rows)
    }

    /// Reads the table, adds up its rows, and keeps them for later passes if there are any that
    /// may.
    fn read(
        &self,
        stage: &Stage,
        search: bool,
        adding: &Adding<'_>,
        start: impl Fn() -> Worker + Sync,
    ) -> Result<Vec<Worker>, Error> {
        let rows = self.rows();
        let mixes = adding.mixes;
        let columns =
            if search || mixes { &self.columns[..] } else { &self.columns[..self.party.columns().len()] };
        let parts = self.table.parts(columns)?;
        // Where the file says how many there are, nobody has to wait for a pass to know.
        if let Some(claimed) = parts.rows {
            self.check_rows(claimed)?;
        }
        let converter = self.converter(parts.text);
        let keeper = self.keeper(stage, columns);
        let counts_lost = self.lost.get().is_none();
        let take = |worker: &mut Worker, first: u64, batch: RecordBatch| {
            // Too many rows are refused before any of them could overflow a sum.
            self.check_rows(first.saturating_add(batch.num_rows() as u64).max(rows.fewest()))?;
            let values = converter.rows(first, &batch)?;
            let has_ids = columns.len() > self.party.columns().len();
            let ids = if has_ids { Some(converter.ids(first, &batch)?) } else { None };
            if let (Some(fingerprints), Some(ids)) = (&mut worker.fingerprints, &ids) {
                fingerprints.add(&ids.fingerprints(&adding.hash))?;
            }
            if counts_lost {
                worker.lost.add(self.party.columns(), &values);
            }
            adding.add(worker, first, &values, ids.as_ref())?;
            if let Some(keeper) = &keeper {
                keeper.keep(&mut worker.pieces, Piece { first, rows: values, ids });
            }
            Ok(())
        };
        let mut workers = read_parts(&parts, self.threads, start, take)?;
        if let Some(keeper) = keeper {
            let pieces = workers.iter_mut().flat_map(|worker| std::mem::take(&mut worker.pieces)).collect();
            self.kept.get_or_init(|| keeper.finish(pieces));
        }
        Ok(workers)
    }

    /// What keeps the rows of a pass over these columns: nothing if no later pass could use them,
    /// or if they will not fit.
    fn keeper(&self, stage: &Stage, columns: &[String]) -> Option<Keeper> {
        let last = matches!(stage.statistic, Statistic::Mixed { .. });
        if last || self.kept.get().is_some() || columns.len() < self.columns.len() {
            return None;
        }
        let least: u64 = self.party.columns().iter().map(least_bytes).sum();
        let rows = self.rows().expected();
        (least.saturating_mul(rows) <= self.memory)
            .then(|| Keeper::new(self.memory, self.table.is_in_memory()))
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
                    return Err(same_id(self.table.name(), &self.id_columns.join(", "), row, earlier));
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
    let id_columns = access.id_columns(study);
    let mut problems = Vec::new();
    let refuse = |column: &str, what: &str, remedy| Error::Column {
        table: table.to_owned(),
        column: column.to_owned(),
        problem: Problem::with(what, remedy),
    };
    let mut columns: Vec<String> = party.columns().iter().map(|column| column.name().to_owned()).collect();
    for id_column in &id_columns {
        if columns.contains(id_column) {
            problems.push(refuse(
                id_column,
                "is both the id and a column of the study",
                Remedy::OtherIdColumn,
            ));
        } else {
            columns.push(id_column.clone());
        }
    }
    for column in &columns {
        if !found.contains(column) {
            // The table's own names are not shown: without a header line they would be values.
            let remedy = if id_columns == [column.as_str()] && study.definition().id_columns().is_empty() {
                Remedy::IdColumn
            } else {
                Remedy::CheckSpelling
            };
            problems.push(refuse(column, "is missing", remedy));
        }
    }
    if access.extra_columns == ExtraColumns::Refuse {
        let extra = found.iter().filter(|column| !columns.contains(column));
        problems.extend(extra.map(|column| refuse(column, "is not in the study", Remedy::IgnoreExtra)));
    }
    (columns, problems)
}

/// Bytes that a decoded value of a column takes.
fn least_bytes(column: &Column) -> u64 {
    match column.domain() {
        Domain::Numeric(_) => 8,
        Domain::Categorical { .. } => 4,
    }
}

/// How the rows of a pass are added up, wherever they come from.
struct Adding<'a> {
    stage: &'a Stage,
    mixes: bool,
    /// Knows who subjects are.
    converter: Converter<'a>,
    /// Whether all threads share one set of sums.
    shares: bool,
    total: Mutex<Sums>,
    done: AtomicU64,
    hash: RandomState,
    progress: &'a Progress<'a>,
}

impl<'a> Adding<'a> {
    fn new(input: &'a Input<'_>, stage: &'a Stage, progress: &'a Progress<'a>) -> Self {
        Self {
            stage,
            mixes: matches!(stage.statistic, Statistic::Mixed { .. }),
            converter: input.converter(false),
            shares: stage.coordinates().saturating_mul(input.threads.get()) > OWN_SUMS_LIMIT,
            total: Mutex::new(Sums::zero(stage)),
            done: AtomicU64::new(0),
            hash: RandomState::new(),
            progress,
        }
    }

    /// Adds a batch: without ids, subjects are told apart by their position.
    fn add(&self, worker: &mut Worker, first: u64, rows: &Rows, ids: Option<&Ids>) -> Result<(), Error> {
        let count = rows.count as u64;
        if self.mixes {
            match ids {
                Some(ids) => self.converter.subjects(ids, &mut worker.subjects),
                None => self.converter.subjects(&Ids::positions(first, count), &mut worker.subjects),
            }
        }
        rows.encode(self.stage, &mut worker.encoded);
        match &mut worker.sums {
            Some(own) => own.add(self.stage, &worker.subjects, first, &worker.encoded),
            None => lock(&self.total).add(self.stage, &worker.subjects, first, &worker.encoded),
        }
        (self.progress)(self.done.fetch_add(count, Ordering::Relaxed) + count)
    }
}

/// How many values of each column are lost, of so many rows. No `Debug`: these are private.
struct LostOf {
    values: Lost,
    rows: u64,
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
    /// What it keeps for later passes.
    pieces: Vec<Piece>,
}
