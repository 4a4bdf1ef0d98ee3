//! Just enough of Thrift's compact protocol to see what a Parquet file claims before its decoder
//! believes it.
//!
//! Stricter than a reader has to be: what is not exactly as the format says gives nothing.

use std::io::{self, Read};

pub(crate) const I32: u8 = 5;
pub(crate) const BINARY: u8 = 8;
pub(crate) const LIST: u8 = 9;
pub(crate) const STRUCT: u8 = 12;

/// How deep structures may lie in each other; Parquet's own go to about ten.
const DEEPEST: u32 = 32;

/// Reads values one after the other and counts their bytes.
pub(crate) struct Thrift<R> {
    source: R,
    length: u64,
}

impl<R: Read> Thrift<R> {
    pub(crate) fn new(source: R) -> Self {
        Self { source, length: 0 }
    }

    /// How many bytes were read.
    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    fn byte(&mut self) -> Option<u8> {
        let mut byte = [0];
        self.source.read_exact(&mut byte).ok()?;
        self.length += 1;
        Some(byte[0])
    }

    pub(crate) fn varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    pub(crate) fn zigzag(&mut self) -> Option<i64> {
        let value = self.varint()?;
        Some((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    /// A count or a size: an integer of 32 bits that is not negative.
    pub(crate) fn count(&mut self) -> Option<u64> {
        let value = i32::try_from(self.zigzag()?).ok()?;
        u64::try_from(value).ok()
    }

    /// Calls `each` with number and type of every field of a structure; it has to read the value.
    pub(crate) fn fields(&mut self, mut each: impl FnMut(&mut Self, i16, u8) -> Option<()>) -> Option<()> {
        let mut number = 0_i16;
        loop {
            let byte = self.byte()?;
            let kind = byte & 0x0f;
            if kind == 0 {
                return Some(());
            }
            number = match byte >> 4 {
                0 => i16::try_from(self.zigzag()?).ok()?,
                step => number.checked_add(i16::from(step))?,
            };
            each(self, number, kind)?;
        }
    }

    /// Number and type of the elements of a list.
    pub(crate) fn list(&mut self) -> Option<(u64, u8)> {
        let byte = self.byte()?;
        let length = match byte >> 4 {
            15 => self.varint()?,
            short => u64::from(short),
        };
        Some((length, byte & 0x0f))
    }

    /// Reads over the value of a field.
    pub(crate) fn skip(&mut self, kind: u8) -> Option<()> {
        self.skip_within(kind, DEEPEST)
    }

    fn skip_within(&mut self, kind: u8, depth: u32) -> Option<()> {
        let depth = depth.checked_sub(1)?;
        match kind {
            // The value is in the type.
            1 | 2 => Some(()),
            3 => self.byte().map(|_| ()),
            4..=6 => self.varint().map(|_| ()),
            7 => self.skip_bytes(8),
            BINARY => {
                let length = self.varint()?;
                self.skip_bytes(length)
            }
            LIST | 10 => {
                let (length, kind) = self.list()?;
                (0..length).try_for_each(|_| self.skip_element(kind, depth))
            }
            11 => {
                let length = self.varint()?;
                let kinds = if length == 0 { 0 } else { self.byte()? };
                (0..length).try_for_each(|_| {
                    self.skip_element(kinds >> 4, depth)?;
                    self.skip_element(kinds & 0x0f, depth)
                })
            }
            STRUCT => self.fields(|own, _, kind| own.skip_within(kind, depth)),
            _ => None,
        }
    }

    /// In a list, truth takes a byte.
    fn skip_element(&mut self, kind: u8, depth: u32) -> Option<()> {
        if matches!(kind, 1 | 2) { self.byte().map(|_| ()) } else { self.skip_within(kind, depth) }
    }

    fn skip_bytes(&mut self, length: u64) -> Option<()> {
        let skipped = io::copy(&mut self.source.by_ref().take(length), &mut io::sink()).ok()?;
        self.length += skipped;
        (skipped == length).then_some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_those_of_the_protocol() {
        let varint = |bytes: &[u8]| Thrift::new(bytes).varint();
        assert_eq!(varint(&[0x96, 0x01]), Some(150));
        assert_eq!(varint(&[0x80]), None, "cut short");
        assert_eq!(varint(&[0xff; 11]), None, "no end");
        assert_eq!(Thrift::new(&[0x03][..]).zigzag(), Some(-2));
        assert_eq!(Thrift::new(&[0x03][..]).count(), None);
        assert_eq!(Thrift::new(&[0xfe, 0xff, 0xff, 0xff, 0x0f][..]).count(), Some(i32::MAX as u64));
        assert_eq!(Thrift::new(&[0x80, 0x80, 0x80, 0x80, 0x10][..]).count(), None, "2³¹");
    }

    #[test]
    fn structures_are_read_over_to_their_end_and_not_beyond() {
        // {1: i32 1, 3: "ab", 4: [true, false], 20: {1: double}}, then 0xaa.
        let mut bytes = vec![0x15, 0x02, 0x28, 0x02, b'a', b'b', 0x19, 0x21, 0x01, 0x02, 0x0c, 0x28, 0x17];
        bytes.extend([0; 8]);
        bytes.extend([0, 0, 0xaa]);
        let mut thrift = Thrift::new(&bytes[..]);
        assert_eq!(thrift.skip(STRUCT), Some(()));
        assert_eq!(thrift.length(), bytes.len() as u64 - 1);
        for cut in 0..bytes.len() - 1 {
            assert_eq!(Thrift::new(&bytes[..cut]).skip(STRUCT), None, "{cut}");
        }
        assert_eq!(Thrift::new(&[0x1c; 1000][..]).skip(STRUCT), None, "too deep");
        assert_eq!(Thrift::new(&[0x18, 0xff, 0xff, 0xff, 0xff, 0x07][..]).skip(STRUCT), None, "too long");
    }
}
