//! Exact search for duplicate ids in bounded memory.
//!
//! Every subject leaves a 16-byte fingerprint. Fingerprints are sorted in memory, in runs of bounded size that
//! spill to an unnamed temporary file; merging the runs brings equal ones side by side. Two different ids share
//! a fingerprint with probability below n²·2⁻¹²⁹, and then the table is refused, nothing worse.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::Error;

/// 64 MiB of fingerprints.
const RUN: usize = 1 << 22;

/// Collects fingerprints and finds one that came twice.
pub(crate) struct DuplicateSearch {
    folder: PathBuf,
    run: usize,
    pending: Vec<u128>,
    spilled: Vec<File>,
}

impl DuplicateSearch {
    pub(crate) fn new(folder: &Path) -> Self {
        Self::with_run(folder, RUN)
    }

    fn with_run(folder: &Path, run: usize) -> Self {
        Self { folder: folder.to_owned(), run, pending: Vec::new(), spilled: Vec::new() }
    }

    pub(crate) fn add(&mut self, fingerprints: impl Iterator<Item = u128>) -> Result<(), Error> {
        for fingerprint in fingerprints {
            self.pending.push(fingerprint);
            if self.pending.len() == self.run {
                self.spill().map_err(Error::Temporary)?;
            }
        }
        Ok(())
    }

    fn spill(&mut self) -> io::Result<()> {
        self.pending.sort_unstable();
        // Unnamed: it disappears with the process, whatever happens, and nobody else can open it.
        let mut writer = BufWriter::with_capacity(1 << 20, tempfile::tempfile_in(&self.folder)?);
        for fingerprint in self.pending.drain(..) {
            writer.write_all(&fingerprint.to_le_bytes())?;
        }
        let mut file = writer.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.seek(SeekFrom::Start(0))?;
        self.spilled.push(file);
        Ok(())
    }

    /// A fingerprint that came twice, if there is one.
    pub(crate) fn finish(mut self) -> Result<Option<u128>, Error> {
        if self.spilled.is_empty() {
            self.pending.sort_unstable();
            return Ok(self.pending.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0]));
        }
        self.spill().and_then(|()| self.merge()).map_err(Error::Temporary)
    }

    fn merge(self) -> io::Result<Option<u128>> {
        let mut runs: Vec<_> =
            self.spilled.into_iter().map(|file| BufReader::with_capacity(1 << 18, file)).collect();
        let mut heads = BinaryHeap::with_capacity(runs.len());
        for (index, run) in runs.iter_mut().enumerate() {
            if let Some(fingerprint) = next(run)? {
                heads.push(Reverse((fingerprint, index)));
            }
        }
        let mut last = None;
        while let Some(Reverse((fingerprint, index))) = heads.pop() {
            if last == Some(fingerprint) {
                return Ok(last);
            }
            last = Some(fingerprint);
            if let Some(following) = next(&mut runs[index])? {
                heads.push(Reverse((following, index)));
            }
        }
        Ok(None)
    }
}

fn next(run: &mut BufReader<File>) -> io::Result<Option<u128>> {
    let mut bytes = [0; 16];
    match run.read_exact(&mut bytes) {
        Ok(()) => Ok(Some(u128::from_le_bytes(bytes))),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    fn duplicate(values: &[u128], run: usize) -> Option<u128> {
        let mut search = DuplicateSearch::with_run(&std::env::temp_dir(), run);
        search.add(values.iter().copied()).unwrap();
        search.finish().unwrap()
    }

    proptest! {
        #[test]
        fn finds_exactly_what_a_set_finds(values in prop::collection::vec(0u128..200, 0..60), run in 1usize..70) {
            let mut seen = HashSet::new();
            let twice: HashSet<_> = values.iter().filter(|value| !seen.insert(**value)).copied().collect();
            match duplicate(&values, run) {
                Some(found) => prop_assert!(twice.contains(&found)),
                None => prop_assert!(twice.is_empty()),
            }
        }
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_reported() {
        let mut search = DuplicateSearch::with_run(Path::new("/nonexistent/folder"), 1);
        assert!(matches!(search.add([1].into_iter()), Err(Error::Temporary(_))));
    }
}
