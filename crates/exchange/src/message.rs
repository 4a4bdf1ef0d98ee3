//! Writing a message: its bytes, its hash, and the transcript of its challenges in one go.

use std::io::Write;

use sha2::{Digest, Sha512};

use crate::error::Error;
use crate::layout::Section;
use crate::transcript::Transcript;

pub(crate) struct MessageWriter<W> {
    out: W,
    hash: Sha512,
    written: u64,
    pub(crate) transcript: Transcript,
}

impl<W: Write> MessageWriter<W> {
    pub(crate) fn new(out: W, transcript: Transcript) -> Self {
        Self { out, hash: Sha512::new(), written: 0, transcript }
    }

    /// Bytes that no challenge binds.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.out.write_all(bytes).map_err(Error::Write)?;
        self.hash.update(bytes);
        self.written += bytes.len() as u64;
        Ok(())
    }

    /// Begins a section that challenges bind; `bind` brings its bytes.
    pub(crate) fn begin(&mut self, label: &str, section: Section) {
        self.transcript.begin(label, section.length());
    }

    pub(crate) fn bind(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.transcript.update(bytes);
        self.write(bytes)
    }

    /// A whole section that challenges bind.
    pub(crate) fn section(&mut self, label: &str, section: Section, bytes: &[u8]) -> Result<(), Error> {
        self.begin(label, section);
        self.bind(bytes)
    }

    /// The hash of the message, which has `length` bytes.
    pub(crate) fn finish(mut self, length: u64) -> Result<[u8; 64], Error> {
        assert_eq!(self.written, length, "every length follows from the terms");
        self.out.flush().map_err(Error::Write)?;
        Ok(self.hash.finalize().into())
    }
}
