//! Reading the parts of a table on several threads.
//!
//! Parts are the row groups of a Parquet file, the batches of a table in memory, or the whole of
//! any other. Each thread decodes a part of its own and, when there are no more, helps with the
//! parts of others; so a file of one row group, or a CSV, is decoded by one thread at a time while
//! the others work on what it gave.

use std::num::NonZero;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, TryLockError};

use arrow_array::RecordBatch;

use super::{Batch, Batches, Parts, damaged};
use crate::{Error, lock};

/// A part that is being read; nothing when it has been read.
type Open = Mutex<Option<Part>>;

struct Part {
    batches: Batches,
    /// The position of its next row.
    next: u64,
    /// The position of the first row after it, if that is known.
    end: Option<u64>,
}

/// Calls `take` with every batch and the position of its first row, and returns what each thread
/// made with `start` and `take` filled.
///
/// A thread reads a part of its own as long as there are any, then helps with those of others. If
/// batches fail, the error is that of the first in the table, however the threads ran: all batches
/// before it are taken.
pub(crate) fn read_parts<T: Send>(
    parts: &Parts<'_>,
    threads: NonZero<usize>,
    start: impl Fn() -> T + Sync,
    take: impl Fn(&mut T, u64, RecordBatch) -> Result<(), Error> + Sync,
) -> Result<Vec<T>, Error> {
    let reading = Reading {
        parts,
        opened: Mutex::default(),
        failed_at: AtomicU64::new(u64::MAX),
        failure: Mutex::new(None),
    };
    let work = || {
        let mut own = start();
        while let Some(part) = reading.choose() {
            while let Some((first, batch)) = reading.batch(&part) {
                if let Err(error) = batch.decode().and_then(|batch| take(&mut own, first, batch)) {
                    reading.fail(first, error);
                }
            }
        }
        own
    };
    let results = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads.get()).map(|_| scope.spawn(work)).collect();
        workers.into_iter().map(|worker| worker.join().expect("a worker does not panic")).collect()
    });
    match reading.failure.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner) {
        Some((_, error)) => Err(error),
        None => Ok(results),
    }
}

struct Reading<'a> {
    parts: &'a Parts<'a>,
    opened: Mutex<Opened>,
    /// The position of the earliest batch that failed: nobody needs to look at it or beyond.
    failed_at: AtomicU64,
    failure: Mutex<Option<(u64, Error)>>,
}

/// Parts that are being read, and how many were ever opened.
#[derive(Default)]
struct Opened {
    count: usize,
    parts: Vec<Arc<Open>>,
}

impl Reading<'_> {
    /// A part to read: one that nobody has opened, or one to help with.
    fn choose(&self) -> Option<Arc<Open>> {
        let mut opened = lock(&self.opened);
        let at = opened.count;
        let first_rows = &self.parts.first_rows;
        if let Some(&first) = first_rows.get(at)
            && first < self.failed_at.load(Ordering::Relaxed)
        {
            opened.count += 1;
            let part: Arc<Open> = Arc::default();
            // It is locked while it is opened, so that others wait to help.
            let mut reader = lock(&part);
            opened.parts.push(Arc::clone(&part));
            drop(opened);
            match self.parts.open(Some(at)) {
                Ok(batches) => {
                    let end = first_rows.get(at + 1).copied().or(self.parts.rows);
                    *reader = Some(Part { batches, next: first, end });
                }
                Err(error) => self.fail(first, error),
            }
            drop(reader);
            return Some(part);
        }
        opened.parts.retain(|part| match part.try_lock() {
            Ok(reader) => reader.is_some(),
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner().is_some(),
            // One that is locked is being read.
            Err(TryLockError::WouldBlock) => true,
        });
        opened.parts.first().map(Arc::clone)
    }

    /// The next batch of a part and the position of its first row.
    fn batch(&self, part: &Open) -> Option<(u64, Batch)> {
        let mut reader = lock(part);
        let part = reader.as_mut()?;
        let first = part.next;
        if first < self.failed_at.load(Ordering::Relaxed) {
            match part.batches.next() {
                Some(Ok(batch)) => {
                    part.next = first.saturating_add(batch.rows() as u64);
                    return Some((first, batch));
                }
                Some(Err(error)) => self.fail(first, error),
                None if part.end.is_some_and(|end| end != first) => {
                    self.fail(first, damaged(self.parts.name));
                }
                None => {}
            }
        }
        *reader = None;
        None
    }

    fn fail(&self, first: u64, error: Error) {
        self.failed_at.fetch_min(first, Ordering::Relaxed);
        let mut failure = lock(&self.failure);
        if failure.as_ref().is_none_or(|(earlier, _)| first < *earlier) {
            *failure = Some((first, error));
        }
    }
}
