//! The own rows, chunk by chunk: docs/EXCHANGE.md#rows.

use std::io::{Read, Seek};

use zeroize::Zeroizing;

use crate::error::{Error, Reading};
use crate::pinned::Pinned;
use crate::squares::Squares;
use crate::terms::Participant;

/// Rows that are held in memory at a time.
pub(crate) const CHUNK: u64 = 2048;

/// (first row, number of rows) of every chunk.
pub(crate) fn chunks(people: u64) -> impl Iterator<Item = (u64, usize)> {
    (0..people).step_by(CHUNK as usize).map(move |first| (first, CHUNK.min(people - first) as usize))
}

/// Own rows that keep to the terms, and stay the same however often they are read.
pub(crate) struct OwnRows<R> {
    pinned: Pinned<R>,
    columns: usize,
    norm: u32,
    squares: Squares,
}

impl<R: Read + Seek> OwnRows<R> {
    /// # Privacy
    /// Lemma X1 (docs/PRIVACY.md#exchange) needs every row within its bound; a longer one is
    /// refused before anything is made of it.
    pub(crate) fn open(reader: R, party: &Participant, people: u64) -> Result<Self, Error> {
        let columns = usize::from(party.columns);
        let expected = people * u64::from(party.columns) * 2;
        let pinned = Pinned::open(reader, Reading::Rows, expected, |found| Error::OwnRowsLength {
            party: party.index,
            expected,
            found,
        })?;
        let mut rows = Self { pinned, columns, norm: party.norm, squares: Squares::new(party.norm) };
        for (first, count) in chunks(people) {
            let values = rows.values(first, count)?;
            if values.chunks(columns).any(|row| squared_norm(row) > u64::from(party.norm)) {
                return Err(Error::OwnRowTooLong { party: party.index });
            }
        }
        Ok(rows)
    }

    /// SHA-512 of all rows.
    pub(crate) fn hash(&self) -> &[u8; 64] {
        self.pinned.hash()
    }

    fn values(&mut self, first: u64, count: usize) -> Result<Zeroizing<Vec<i64>>, Error> {
        let row = self.columns as u64 * 2;
        let bytes = self.pinned.read(first * row, count * self.columns * 2)?;
        let (pairs, _) = bytes.as_chunks();
        Ok(Zeroizing::new(pairs.iter().map(|pair| i64::from(i16::from_le_bytes(*pair))).collect()))
    }

    /// The entries x of these rows, each row with the four u that fill it up to C.
    pub(crate) fn entries(&mut self, first: u64, count: usize) -> Result<Zeroizing<Vec<i64>>, Error> {
        let values = self.values(first, count)?;
        let mut entries = Zeroizing::new(Vec::with_capacity(count * (self.columns + 4)));
        for row in values.chunks(self.columns) {
            entries.extend(row);
            entries.extend(self.squares.of(self.norm - squared_norm(row) as u32));
        }
        Ok(entries)
    }
}

/// At most 252·2^30: no overflow.
fn squared_norm(row: &[i64]) -> u64 {
    row.iter().map(|value| (value * value) as u64).sum()
}
