//! Reading a file at many places at once.
//!
//! Handles of one open file share a place in it, so threads that seek and read would get each
//! other's bytes. Here every read says where.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::sync::Arc;

use bytes::Bytes;
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::{ChunkReader, Length};

/// A file that any number of threads can read.
#[derive(Clone)]
pub(super) struct PositionedFile {
    file: Arc<File>,
    length: u64,
}

impl PositionedFile {
    pub(super) fn new(file: File) -> io::Result<Self> {
        let length = file.metadata()?.len();
        Ok(Self { file: Arc::new(file), length })
    }
}

impl Length for PositionedFile {
    fn len(&self) -> u64 {
        self.length
    }
}

impl ChunkReader for PositionedFile {
    type T = BufReader<FromPosition>;

    fn get_read(&self, start: u64) -> Result<Self::T> {
        Ok(BufReader::new(FromPosition { file: Arc::clone(&self.file), position: start }))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        // A length that the file claims may be anything.
        if start.checked_add(length as u64).is_none_or(|end| end > self.length) {
            return Err(ParquetError::EOF("beyond the end".to_owned()));
        }
        let mut bytes = vec![0; length];
        read_exact_at(&self.file, start, &mut bytes)?;
        Ok(bytes.into())
    }
}

/// A file from some place on.
pub(super) struct FromPosition {
    file: Arc<File>,
    position: u64,
}

impl Read for FromPosition {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let count = read_at(&self.file, self.position, bytes)?;
        self.position += count as u64;
        Ok(count)
    }
}

#[cfg(unix)]
fn read_at(file: &File, start: u64, bytes: &mut [u8]) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, bytes, start)
}

#[cfg(windows)]
fn read_at(file: &File, start: u64, bytes: &mut [u8]) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, bytes, start)
}

/// Fills `bytes` with what stands in the file from `start` on.
pub(crate) fn read_exact_at(file: &File, mut start: u64, mut bytes: &mut [u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match read_at(file, start, bytes) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => {
                start += count as u64;
                bytes = &mut bytes[count..];
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
