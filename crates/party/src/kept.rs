//! What the first pass of a release keeps for the later ones: decoded columns and ids, in memory
//! only.
//!
//! A release reads its table four times. Decoding it once is a third of the work of a pass, so what
//! fits the limit is kept. Where it does not fit, nothing is kept, and every pass reads the table.

use std::num::NonZero;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use arrow_array::StringArray;
use arrow_buffer::{ArrowNativeType, Buffer, ScalarBuffer};
use zeroize::Zeroize;

use crate::rows::{ColumnValues, Rows};
use crate::table::convert::Ids;
use crate::{Error, lock};

/// A batch of the table, decoded. No `Debug`: these are the private values themselves.
pub(crate) struct Piece {
    /// The position of its first row.
    pub(crate) first: u64,
    pub(crate) rows: Rows,
    /// Nothing where subjects are told apart by their position.
    pub(crate) ids: Option<Ids>,
}

impl Piece {
    /// Bytes that it takes.
    fn size(&self) -> u64 {
        let column = |column: &ColumnValues| match column {
            ColumnValues::Numbers(numbers) => 8 * numbers.len(),
            ColumnValues::Levels(codes) => 4 * codes.len(),
        };
        let columns: usize = self.rows.columns.iter().map(column).sum();
        let ids = match &self.ids {
            None => 0,
            Some(Ids::Signed(ids)) => 8 * ids.len(),
            Some(Ids::Unsigned(ids)) => 8 * ids.len(),
            Some(Ids::Texts(ids)) => 4 * ids.offsets().len() + text_length(ids),
        };
        (columns + ids) as u64
    }

    /// Lets go of what its buffers are only a small part of, such as a whole message of a file.
    fn detach(&mut self) {
        for column in &mut self.rows.columns {
            match column {
                ColumnValues::Numbers(numbers) => detach(numbers),
                ColumnValues::Levels(codes) => codes.shrink_to_fit(),
            }
        }
        match &mut self.ids {
            Some(Ids::Signed(ids)) => detach(ids),
            Some(Ids::Unsigned(ids)) => detach(ids),
            Some(Ids::Texts(ids)) if ids.values().capacity() > 2 * text_length(ids) + 4096 => {
                *ids = ids.iter().collect();
            }
            Some(Ids::Texts(_)) | None => {}
        }
    }
}

/// Bytes of all texts, which may be a part of a larger buffer.
fn text_length(texts: &StringArray) -> usize {
    let offsets = texts.offsets();
    (offsets[offsets.len() - 1] - offsets[0]) as usize
}

/// Copies values out of a buffer of which they are a small part.
fn detach<T: ArrowNativeType>(values: &mut ScalarBuffer<T>) {
    if values.inner().capacity() > 2 * values.inner().len() + 4096 {
        *values = values.to_vec().into();
    }
}

/// Overwrites what nobody else holds: batches of other software stay as they are.
impl Drop for Piece {
    fn drop(&mut self) {
        for column in self.rows.columns.drain(..) {
            match column {
                ColumnValues::Numbers(numbers) => erase(numbers),
                ColumnValues::Levels(mut codes) => codes.zeroize(),
            }
        }
        match self.ids.take() {
            Some(Ids::Signed(ids)) => erase(ids),
            Some(Ids::Unsigned(ids)) => erase(ids),
            Some(Ids::Texts(ids)) => erase_text(ids.into_parts().1),
            None => {}
        }
    }
}

/// Overwrites numbers of eight bytes, word by word: byte by byte would take as long as a pass.
fn erase<T: ArrowNativeType>(numbers: ScalarBuffer<T>) {
    if let Ok(mut bytes) = numbers.into_inner().into_mutable() {
        bytes.typed_data_mut::<u64>().zeroize();
    }
}

fn erase_text(buffer: Buffer) {
    if let Ok(mut bytes) = buffer.into_mutable() {
        bytes.as_slice_mut().zeroize();
    }
}

/// Keeps batches while they are read, up to a limit.
pub(crate) struct Keeper {
    limit: u64,
    size: AtomicU64,
    full: AtomicBool,
    /// Whether batches may be parts of something larger that goes with them.
    detach: bool,
}

impl Keeper {
    /// Keeps no more than so many bytes. Batches of a table in memory stay where they are anyway.
    pub(crate) fn new(limit: u64, in_memory: bool) -> Self {
        Self { limit, size: AtomicU64::new(0), full: AtomicBool::new(false), detach: !in_memory }
    }

    /// Keeps a batch among a thread's own, or drops them all if it is too much.
    pub(crate) fn keep(&self, own: &mut Vec<Piece>, mut piece: Piece) {
        let size = piece.size();
        if self.size.fetch_add(size, Ordering::Relaxed) + size > self.limit {
            self.full.store(true, Ordering::Relaxed);
        }
        if self.full.load(Ordering::Relaxed) {
            own.clear();
            return;
        }
        if self.detach {
            piece.detach();
        }
        own.push(piece);
    }

    /// What the threads kept, if it is all of the table.
    pub(crate) fn finish(&self, pieces: Vec<Piece>) -> Option<Kept> {
        (!self.full.load(Ordering::Relaxed)).then_some(Kept(pieces))
    }
}

/// A whole table, decoded.
pub(crate) struct Kept(Vec<Piece>);

impl Kept {
    /// Calls `take` with every batch on several threads, and returns what each thread made with
    /// `start` and `take` filled. An error ends it.
    pub(crate) fn each<T: Send>(
        &self,
        threads: NonZero<usize>,
        start: impl Fn() -> T + Sync,
        take: impl Fn(&mut T, &Piece) -> Result<(), Error> + Sync,
    ) -> Result<Vec<T>, Error> {
        let next = AtomicUsize::new(0);
        let failure = Mutex::new(None);
        let work = || {
            let mut own = start();
            while let Some(piece) = self.0.get(next.fetch_add(1, Ordering::Relaxed)) {
                if let Err(error) = take(&mut own, piece) {
                    next.store(self.0.len(), Ordering::Relaxed);
                    lock(&failure).get_or_insert(error);
                }
            }
            own
        };
        let results = std::thread::scope(|scope| {
            let workers: Vec<_> = (0..threads.get()).map(|_| scope.spawn(work)).collect();
            workers.into_iter().map(|worker| worker.join().expect("a worker does not panic")).collect()
        });
        match failure.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner) {
            Some(error) => Err(error),
            None => Ok(results),
        }
    }
}
