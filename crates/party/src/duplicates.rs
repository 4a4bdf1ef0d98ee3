//! Exact search for duplicate ids in bounded memory.
//!
//! Every id leaves a fingerprint of 8 bytes. Equal ones fall into the same of many parts, each
//! small enough to be searched in cache; whoever asks then looks whether ids with equal
//! fingerprints are equal. Beyond a limit fingerprints go to an unnamed temporary file.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::table::read_exact_at;
use crate::{Error, lock};

/// The first bits of a fingerprint choose its part.
const PART_BITS: u32 = 8;
const PARTS: usize = 1 << PART_BITS;

/// Fingerprints of a part that are collected in cache before they go to memory.
const OPEN: usize = 16;

/// Fingerprints of all threads that stay in memory: 1 GiB.
const IN_MEMORY: usize = 1 << 27;

/// Collects the fingerprints of one thread.
pub(crate) struct Fingerprints {
    folder: PathBuf,
    limit: usize,
    count: usize,
    open: Vec<[u64; OPEN]>,
    /// How many of the open ones of each part there are.
    filled: Vec<u8>,
    parts: Vec<Vec<u64>>,
    spilled: Option<Spilled>,
}

/// Fingerprints on disk.
struct Spilled {
    file: File,
    end: u64,
    /// Where those of each part are: start and number.
    segments: Vec<Vec<(u64, usize)>>,
}

impl Fingerprints {
    /// For one of so many threads that share so many rows.
    pub(crate) fn new(folder: &Path, threads: NonZero<usize>, rows: u64) -> Self {
        let mut new = Self::with_limit(folder, IN_MEMORY / threads);
        let expected = usize::try_from(rows).unwrap_or(usize::MAX).min(IN_MEMORY) / threads / PARTS;
        // A little more, as parts differ; pages that are not used cost nothing.
        new.parts.iter_mut().for_each(|part| part.reserve(expected + expected / 8));
        new
    }

    fn with_limit(folder: &Path, limit: usize) -> Self {
        Self {
            folder: folder.to_owned(),
            limit,
            count: 0,
            open: vec![[0; OPEN]; PARTS],
            filled: vec![0; PARTS],
            parts: vec![Vec::new(); PARTS],
            spilled: None,
        }
    }

    pub(crate) fn add(&mut self, fingerprints: &[u64]) -> Result<(), Error> {
        for &fingerprint in fingerprints {
            let part = (fingerprint >> (u64::BITS - PART_BITS)) as usize;
            let (open, filled) = (&mut self.open[part], &mut self.filled[part]);
            open[usize::from(*filled)] = fingerprint;
            *filled += 1;
            if usize::from(*filled) == OPEN {
                self.parts[part].extend_from_slice(open);
                *filled = 0;
            }
        }
        self.count += fingerprints.len();
        if self.count > self.limit {
            self.spill().map_err(Error::Temporary)?;
        }
        Ok(())
    }

    fn spill(&mut self) -> io::Result<()> {
        let spilled = match &mut self.spilled {
            Some(spilled) => spilled,
            // Unnamed: it disappears with the process, whatever happens, and nobody else can open
            // it.
            none => none.insert(Spilled {
                file: tempfile::tempfile_in(&self.folder)?,
                end: 0,
                segments: vec![Vec::new(); PARTS],
            }),
        };
        let mut writer = BufWriter::with_capacity(1 << 20, &spilled.file);
        for (part, segments) in self.parts.iter_mut().zip(&mut spilled.segments) {
            segments.push((spilled.end, part.len()));
            spilled.end += 8 * part.len() as u64;
            for fingerprint in part.drain(..) {
                writer.write_all(&fingerprint.to_le_bytes())?;
            }
        }
        self.count = 0;
        writer.flush()
    }

    /// Appends all fingerprints of a part.
    fn collect(&self, part: usize, all: &mut Vec<u64>) -> io::Result<()> {
        all.extend_from_slice(&self.parts[part]);
        all.extend_from_slice(&self.open[part][..usize::from(self.filled[part])]);
        let Some(spilled) = &self.spilled else { return Ok(()) };
        let mut bytes = Vec::new();
        for &(start, count) in &spilled.segments[part] {
            bytes.resize(8 * count, 0);
            read_exact_at(&spilled.file, start, &mut bytes)?;
            all.extend(bytes.as_chunks().0.iter().map(|bytes| u64::from_le_bytes(*bytes)));
        }
        Ok(())
    }
}

/// The fingerprints that came more than once, sorted.
pub(crate) fn find_repeated(collected: &[Fingerprints], threads: NonZero<usize>) -> Result<Vec<u64>, Error> {
    let next = AtomicUsize::new(0);
    let found: Mutex<io::Result<Vec<u64>>> = Mutex::new(Ok(Vec::new()));
    let work = || {
        let (mut all, mut places, mut repeated) = (Vec::new(), Vec::new(), Vec::new());
        loop {
            let part = next.fetch_add(1, Ordering::Relaxed);
            if part >= PARTS || lock(&found).is_err() {
                return;
            }
            all.clear();
            let collected = collected.iter().try_for_each(|own| own.collect(part, &mut all));
            find_in_part(&all, &mut places, &mut repeated);
            match (collected, &mut *lock(&found)) {
                (Ok(()), Ok(found)) => found.append(&mut repeated),
                (Err(error), found) => *found = Err(error),
                _ => {}
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..threads.get() {
            scope.spawn(work);
        }
    });
    let found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    let mut found = found.map_err(Error::Temporary)?;
    found.sort_unstable();
    found.dedup();
    Ok(found)
}

/// Appends the values that stand more than once, by a hash table of their places.
fn find_in_part(values: &[u64], places: &mut Vec<u32>, repeated: &mut Vec<u64>) {
    let size = (2 * values.len()).next_power_of_two();
    places.clear();
    places.resize(size, 0);
    for (place, &value) in values.iter().enumerate() {
        // The first bits are the same in the whole part, the last are as random.
        let mut slot = value as usize & (size - 1);
        loop {
            match places[slot] {
                0 => {
                    places[slot] = place as u32 + 1;
                    break;
                }
                taken if values[taken as usize - 1] == value => {
                    repeated.push(value);
                    break;
                }
                _ => slot = (slot + 1) & (size - 1),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::{BTreeSet, HashSet};

    const THREADS: NonZero<usize> = NonZero::new(3).unwrap();

    /// Spread over all parts, like fingerprints, but with equal ones.
    fn spread(value: u16) -> u64 {
        u64::from(value).wrapping_mul(0x9E37_79B9_7F4A_7C15)
    }

    proptest! {
        #[test]
        fn finds_exactly_what_a_set_finds(
            values in prop::collection::vec(prop_oneof![0u16..40, any::<u16>()], 0..900),
            limit in 1usize..200,
            batch in 1usize..50,
        ) {
            let values: Vec<u64> = values.into_iter().map(spread).collect();
            let mut seen = HashSet::new();
            let twice: BTreeSet<u64> = values.iter().filter(|value| !seen.insert(**value)).copied().collect();
            let mut collected: Vec<Fingerprints> =
                (0..3).map(|_| Fingerprints::with_limit(&std::env::temp_dir(), limit)).collect();
            for (at, batch) in values.chunks(batch).enumerate() {
                collected[at % 3].add(batch).unwrap();
            }
            prop_assert!(find_repeated(&collected, THREADS).unwrap().iter().eq(&twice));
        }
    }

    #[test]
    fn many_that_fall_into_one_part_are_told_apart() {
        let mut own = Fingerprints::with_limit(&std::env::temp_dir(), usize::MAX);
        own.add(&(0..10_000).map(|value| value << 20).collect::<Vec<_>>()).unwrap();
        assert!(find_repeated(std::slice::from_ref(&own), THREADS).unwrap().is_empty());
        own.add(&[7 << 20]).unwrap();
        assert_eq!(find_repeated(&[own], THREADS).unwrap(), [7 << 20]);
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_reported() {
        let mut own = Fingerprints::with_limit(Path::new("/nonexistent/folder"), 0);
        assert!(matches!(own.add(&[1]), Err(Error::Temporary(_))));
    }
}
