//! Reading the parts of a table on several threads.

use std::num::NonZero;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use arrow_array::RecordBatch;

use super::{Batch, Batches, Parts};
use crate::{Error, lock};

/// A part that is being read, with the position of its next row; nothing when it has been read.
type Open = Mutex<Option<(Batches, u64)>>;

/// Calls `take` with every batch and the position of its first row, and returns what each thread made with `start` and
/// `take` filled.
///
/// A thread reads a part of its own as long as there are any, then helps with those of others. If batches fail, the
/// error is that of the first in the table, however the threads ran: all batches before it are taken.
pub(crate) fn read_parts<T: Send>(
    parts: &Parts<'_>,
    threads: NonZero<usize>,
    start: impl Fn() -> T + Sync,
    take: impl Fn(&mut T, u64, RecordBatch) -> Result<(), Error> + Sync,
) -> Result<Vec<T>, Error> {
    let reading = Reading {
        parts,
        next: AtomicUsize::new(0),
        open: Mutex::default(),
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
    /// The next part that nobody has opened.
    next: AtomicUsize,
    open: Mutex<Vec<Arc<Open>>>,
    /// The position of the earliest batch that failed: nobody needs to look at it or beyond.
    failed_at: AtomicU64,
    failure: Mutex<Option<(u64, Error)>>,
}

impl Reading<'_> {
    /// A part to read: one that nobody has opened, or one to help with.
    fn choose(&self) -> Option<Arc<Open>> {
        let part = self.next.fetch_add(1, Ordering::Relaxed);
        if let Some(&first) = self.parts.first_rows.get(part)
            && first < self.failed_at.load(Ordering::Relaxed)
        {
            let batches = (self.parts.open)(Some(part));
            let batches = batches.map_err(|error| self.fail(first, error)).ok()?;
            let opened = Arc::new(Mutex::new(Some((batches, first))));
            lock(&self.open).push(Arc::clone(&opened));
            return Some(opened);
        }
        let mut open = lock(&self.open);
        // One that is locked is being read.
        open.retain(|part| part.try_lock().map_or(true, |part| part.is_some()));
        open.first().map(Arc::clone)
    }

    /// The next batch of a part and the position of its first row.
    fn batch(&self, part: &Open) -> Option<(u64, Batch)> {
        let mut reader = lock(part);
        let (batches, position) = reader.as_mut()?;
        let first = *position;
        let batch = if first < self.failed_at.load(Ordering::Relaxed) { batches.next() } else { None };
        match batch {
            Some(Ok(batch)) => {
                *position = position.saturating_add(batch.rows() as u64);
                return Some((first, batch));
            }
            Some(Err(error)) => self.fail(first, error),
            None => {}
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
