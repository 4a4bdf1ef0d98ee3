//! Something that is read more than once and must be the same each time: own rows, a message.
//!
//! Responses computed from other rows than the commitments would reveal the difference of the two,
//! and points that nobody proved must not be multiplied (docs/EXCHANGE.md#offer). So the first
//! reading keeps a hash of every block, and every later one is compared before it is used.

use std::io::{Read, Seek, SeekFrom};

use sha2::{Digest, Sha256, Sha512};
use zeroize::Zeroizing;

use crate::error::{Error, Reading};

const BLOCK: u64 = 1 << 16;

pub(crate) struct Pinned<R> {
    reader: R,
    what: Reading,
    length: u64,
    blocks: Vec<[u8; 32]>,
    hash: [u8; 64],
}

impl<R: Read + Seek> Pinned<R> {
    /// Reads everything once, if it has `length` bytes; `wrong_length` says what it means if not.
    pub(crate) fn open(
        mut reader: R,
        what: Reading,
        length: u64,
        wrong_length: impl FnOnce(u64) -> Error,
    ) -> Result<Self, Error> {
        let found = reader.seek(SeekFrom::End(0)).map_err(|error| Error::Read(what, error))?;
        if found != length {
            return Err(wrong_length(found));
        }
        reader.seek(SeekFrom::Start(0)).map_err(|error| Error::Read(what, error))?;
        let mut all = Sha512::new();
        let mut blocks = Vec::new();
        let mut buffer = Zeroizing::new(vec![0; BLOCK as usize]);
        let mut begin = 0;
        while begin < length {
            let block = &mut buffer[..BLOCK.min(length - begin) as usize];
            reader.read_exact(block).map_err(|error| Error::Read(what, error))?;
            all.update(&*block);
            blocks.push(Sha256::digest(&*block).into());
            begin += BLOCK;
        }
        Ok(Self { reader, what, length, blocks, hash: all.finalize().into() })
    }

    /// SHA-512 of everything.
    pub(crate) fn hash(&self) -> &[u8; 64] {
        &self.hash
    }

    /// `count` bytes from `first` on, the same as at the first reading.
    pub(crate) fn read(&mut self, first: u64, count: usize) -> Result<Zeroizing<Vec<u8>>, Error> {
        let end = first + count as u64;
        assert!(end <= self.length, "sections lie within the message");
        let begin = first / BLOCK * BLOCK;
        let stop = end.next_multiple_of(BLOCK).min(self.length);
        let mut bytes = Zeroizing::new(vec![0; (stop - begin) as usize]);
        let failed = |error| Error::Read(self.what, error);
        self.reader.seek(SeekFrom::Start(begin)).map_err(failed)?;
        self.reader.read_exact(&mut bytes).map_err(failed)?;
        let known = &self.blocks[(begin / BLOCK) as usize..];
        for (block, known) in bytes.chunks(BLOCK as usize).zip(known) {
            if <[u8; 32]>::from(Sha256::digest(block)) != *known {
                return Err(Error::Changed(self.what));
            }
        }
        let skip = (first - begin) as usize;
        Ok(Zeroizing::new(bytes[skip..skip + count].to_vec()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Message;
    use std::io::Cursor;

    const OFFER: Reading = Reading::Message(Message::Offer);

    #[test]
    fn what_is_read_again_is_what_was_read_or_an_error() {
        let bytes: Vec<u8> = (0..200_000_u32).map(|i| (i * 7 / 5) as u8).collect();
        let open =
            |length| Pinned::open(Cursor::new(bytes.clone()), OFFER, length, |_| Error::Kept).map_err(|_| ());
        assert!(open(199_999).is_err() && open(200_001).is_err());
        let mut pinned = open(200_000).expect("as long as said");
        for (first, count) in [(0, 1), (65_535, 2), (65_536, 65_536), (100, 199_900), (199_999, 1), (7, 0)] {
            let read = pinned.read(first, count).expect("unchanged");
            assert_eq!(*read, bytes[first as usize..][..count]);
        }
        pinned.reader.get_mut()[70_000] ^= 1;
        assert!(pinned.read(0, 65_536).is_ok());
        assert!(matches!(pinned.read(65_530, 10), Err(Error::Changed(OFFER))));
        pinned.reader.get_mut().truncate(66_000);
        assert!(matches!(pinned.read(65_530, 10), Err(Error::Read(OFFER, _))));
    }
}
