//! Exact search for duplicate ids in bounded memory.
//!
//! Every subject leaves a 16-byte fingerprint. Equal ones fall into the same of many parts, each small enough to be
//! searched in cache. Beyond a limit the parts go to an unnamed temporary file. Two different ids share a fingerprint
//! with probability below n²·2⁻¹²⁹, and then the table is refused, nothing worse.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::Error;
use crate::lock;

/// The first bits of a fingerprint choose its part.
const PART_BITS: u32 = 10;
const PARTS: usize = 1 << PART_BITS;

/// Fingerprints allocated together: 2 KiB.
const CHUNK: usize = 128;

/// Fingerprints of all threads that stay in memory: 1 GiB.
const IN_MEMORY: usize = 1 << 26;

/// Collects the fingerprints of one thread.
pub(crate) struct Fingerprints {
    folder: PathBuf,
    limit: usize,
    count: usize,
    /// Those of each part, in chunks.
    parts: Vec<Vec<Vec<u128>>>,
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
    pub(crate) fn new(folder: &Path, threads: NonZero<usize>) -> Self {
        Self::with_limit(folder, IN_MEMORY / threads)
    }

    fn with_limit(folder: &Path, limit: usize) -> Self {
        Self { folder: folder.to_owned(), limit, count: 0, parts: vec![Vec::new(); PARTS], spilled: None }
    }

    pub(crate) fn add(&mut self, fingerprints: impl Iterator<Item = u128>) -> Result<(), Error> {
        for fingerprint in fingerprints {
            let chunks = &mut self.parts[(fingerprint >> (u128::BITS - PART_BITS)) as usize];
            match chunks.last_mut() {
                Some(chunk) if chunk.len() < CHUNK => chunk.push(fingerprint),
                _ => {
                    let mut chunk = Vec::with_capacity(CHUNK);
                    chunk.push(fingerprint);
                    chunks.push(chunk);
                }
            }
            self.count += 1;
        }
        if self.count > self.limit {
            self.spill().map_err(Error::Temporary)?;
        }
        Ok(())
    }

    fn spill(&mut self) -> io::Result<()> {
        let spilled = match &mut self.spilled {
            Some(spilled) => spilled,
            // Unnamed: it disappears with the process, whatever happens, and nobody else can open it.
            none => none.insert(Spilled {
                file: tempfile::tempfile_in(&self.folder)?,
                end: 0,
                segments: vec![Vec::new(); PARTS],
            }),
        };
        let mut writer = BufWriter::with_capacity(1 << 20, &spilled.file);
        for (chunks, segments) in self.parts.iter_mut().zip(&mut spilled.segments) {
            let start = spilled.end;
            let mut count = 0;
            for fingerprint in chunks.drain(..).flatten() {
                writer.write_all(&fingerprint.to_le_bytes())?;
                count += 1;
            }
            spilled.end += 16 * count as u64;
            segments.push((start, count));
        }
        self.count = 0;
        writer.flush()
    }

    /// Appends all fingerprints of a part.
    fn collect(&self, part: usize, all: &mut Vec<u128>) -> io::Result<()> {
        for chunk in &self.parts[part] {
            all.extend_from_slice(chunk);
        }
        let Some(spilled) = &self.spilled else { return Ok(()) };
        let mut bytes = Vec::new();
        for &(start, count) in &spilled.segments[part] {
            bytes.resize(16 * count, 0);
            read_at(&spilled.file, start, &mut bytes)?;
            all.extend(bytes.as_chunks().0.iter().map(|bytes| u128::from_le_bytes(*bytes)));
        }
        Ok(())
    }
}

#[cfg(unix)]
fn read_at(file: &File, start: u64, bytes: &mut [u8]) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, bytes, start)
}

#[cfg(windows)]
fn read_at(file: &File, mut start: u64, mut bytes: &mut [u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        let read = std::os::windows::fs::FileExt::seek_read(file, bytes, start)?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        start += read as u64;
        bytes = &mut bytes[read..];
    }
    Ok(())
}

/// A fingerprint that came twice, the smallest if there are several.
pub(crate) fn find_duplicate(
    collected: &[Fingerprints],
    threads: NonZero<usize>,
) -> Result<Option<u128>, Error> {
    let next = AtomicUsize::new(0);
    let found: Mutex<io::Result<Option<u128>>> = Mutex::new(Ok(None));
    let work = || {
        let (mut all, mut table) = (Vec::new(), Vec::new());
        loop {
            let part = next.fetch_add(1, Ordering::Relaxed);
            if part >= PARTS || lock(&found).is_err() {
                return;
            }
            all.clear();
            let collected = collected.iter().try_for_each(|own| own.collect(part, &mut all));
            let result = collected.map(|()| smallest_duplicate(&all, &mut table));
            let mut found = lock(&found);
            match (result, &mut *found) {
                (Ok(Some(new)), Ok(known)) => *known = Some(known.map_or(new, |known| known.min(new))),
                (Err(error), _) => *found = Err(error),
                _ => {}
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..threads.get() {
            scope.spawn(work);
        }
    });
    found.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner).map_err(Error::Temporary)
}

/// The smallest value that stands twice among `values`, by a hash table of their places.
fn smallest_duplicate(values: &[u128], table: &mut Vec<u32>) -> Option<u128> {
    let size = (2 * values.len()).next_power_of_two();
    table.clear();
    table.resize(size, 0);
    let mut smallest: Option<u128> = None;
    for (place, &value) in values.iter().enumerate() {
        // The first bits are the same in the whole part, the last are as random.
        let mut slot = value as usize & (size - 1);
        loop {
            match table[slot] {
                0 => {
                    table[slot] = place as u32 + 1;
                    break;
                }
                taken if values[taken as usize - 1] == value => {
                    smallest = Some(smallest.map_or(value, |smallest| smallest.min(value)));
                    break;
                }
                _ => slot = (slot + 1) & (size - 1),
            }
        }
    }
    smallest
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    const THREADS: NonZero<usize> = NonZero::new(3).unwrap();

    /// Spread over all parts, like fingerprints, but with equal ones.
    fn spread(value: u16) -> u128 {
        u128::from(value).wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835)
    }

    proptest! {
        #[test]
        fn finds_exactly_what_a_set_finds(
            values in prop::collection::vec(prop_oneof![0u16..40, any::<u16>()], 0..400),
            limit in 1usize..200,
            batch in 1usize..50,
        ) {
            let values: Vec<u128> = values.into_iter().map(spread).collect();
            let mut seen = HashSet::new();
            let twice = values.iter().filter(|value| !seen.insert(**value)).min().copied();
            let mut collected: Vec<Fingerprints> =
                (0..3).map(|_| Fingerprints::with_limit(&std::env::temp_dir(), limit)).collect();
            for (at, batch) in values.chunks(batch).enumerate() {
                collected[at % 3].add(batch.iter().copied()).unwrap();
            }
            prop_assert_eq!(find_duplicate(&collected, THREADS).unwrap(), twice);
        }
    }

    #[test]
    fn many_that_fall_into_one_part_are_told_apart() {
        let mut own = Fingerprints::with_limit(&std::env::temp_dir(), usize::MAX);
        own.add((0..10_000).map(|value| value << 20)).unwrap();
        assert_eq!(find_duplicate(std::slice::from_ref(&own), THREADS).unwrap(), None);
        own.add([7 << 20].into_iter()).unwrap();
        assert_eq!(find_duplicate(&[own], THREADS).unwrap(), Some(7 << 20));
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_reported() {
        let mut own = Fingerprints::with_limit(Path::new("/nonexistent/folder"), 0);
        assert!(matches!(own.add([1].into_iter()), Err(Error::Temporary(_))));
    }
}
