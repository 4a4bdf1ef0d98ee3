//! Arrow IPC that may be damaged: what its messages claim is held against the file before the
//! decoder believes it.
//!
//! The decoder makes room for whatever lengths of messages, buffers and columns it finds, and the
//! process ends where that is more memory than there is.

use std::fs::File;

use arrow_ipc::{FieldNode, Message, MessageHeader, RecordBatch, root_as_footer, root_as_message};
use potluck_release::guard::guarded;
use potluck_release::parquet_file::most_of;

use super::positioned::read_exact_at;

/// What stands before the length of a message, but in the oldest files.
const CONTINUATION: [u8; 4] = [0xff; 4];
/// What follows the footer: its length and the magic word.
const TAIL: u64 = 10;
/// Rows that a batch may always have. Beyond that every row takes a bit somewhere: columns of
/// nothing but nulls, or of runs, would be as long as they say.
const FEW_ROWS: u64 = 1 << 24;

/// Whether the messages of an Arrow file can be what they claim to be.
pub(super) fn is_plausible_file(file: &File) -> bool {
    guarded(|| Messages::of(file)?.check_blocks()).ok().flatten().is_some()
}

/// Whether the messages of an Arrow stream can be what they claim to be.
pub(super) fn is_plausible_stream(file: &File) -> bool {
    guarded(|| Messages::of(file)?.check_stream()).ok().flatten().is_some()
}

struct Messages<'a> {
    file: &'a File,
    length: u64,
}

impl<'a> Messages<'a> {
    fn of(file: &'a File) -> Option<Self> {
        Some(Self { file, length: file.metadata().ok()?.len() })
    }

    /// What stands in the file at some place, if it goes on for so long.
    fn bytes(&self, start: u64, length: u64) -> Option<Vec<u8>> {
        if start.checked_add(length)? > self.length {
            return None;
        }
        let mut bytes = vec![0; usize::try_from(length).ok()?];
        read_exact_at(self.file, start, &mut bytes).ok()?;
        Some(bytes)
    }

    fn array<const N: usize>(&self, start: u64) -> Option<[u8; N]> {
        self.bytes(start, N as u64)?.try_into().ok()
    }

    fn check_blocks(&self) -> Option<()> {
        let end = self.length.checked_sub(TAIL)?;
        let length = u64::try_from(i32::from_le_bytes(self.array(end)?)).ok()?;
        let footer = self.bytes(end.checked_sub(length)?, length)?;
        let footer = root_as_footer(&footer).ok()?;
        let blocks = footer.dictionaries().into_iter().chain(footer.recordBatches());
        for block in blocks.flatten() {
            let start = u64::try_from(block.offset()).ok()?;
            let head = u64::try_from(block.metaDataLength()).ok()?;
            let body = u64::try_from(block.bodyLength()).ok()?;
            let bytes = self.bytes(start, head)?;
            let prefix = if bytes.starts_with(&CONTINUATION) { 8 } else { 4 };
            let message = root_as_message(bytes.get(prefix..)?).ok()?;
            self.check_message(&message, start.checked_add(head)?, body)?;
        }
        Some(())
    }

    fn check_stream(&self) -> Option<()> {
        let mut at = 0;
        // A stream may end without saying so.
        while let Some(mut head) = self.array(at) {
            at += 4;
            if head == CONTINUATION {
                head = self.array(at)?;
                at += 4;
            }
            let length = u64::try_from(i32::from_le_bytes(head)).ok()?;
            if length == 0 {
                break;
            }
            let bytes = self.bytes(at, length)?;
            let message = root_as_message(&bytes).ok()?;
            at += length;
            let body = u64::try_from(message.bodyLength()).ok()?;
            self.check_message(&message, at, body)?;
            at += body;
        }
        Some(())
    }

    /// A message whose body begins at `start`.
    fn check_message(&self, message: &Message<'_>, start: u64, body: u64) -> Option<()> {
        if start.checked_add(body)? > self.length {
            return None;
        }
        match message.header_type() {
            MessageHeader::RecordBatch => self.check_batch(message.header_as_record_batch()?, start, body),
            MessageHeader::DictionaryBatch => {
                self.check_batch(message.header_as_dictionary_batch()?.data()?, start, body)
            }
            _ => Some(()),
        }
    }

    fn check_batch(&self, batch: RecordBatch<'_>, start: u64, body: u64) -> Option<()> {
        let mut decoded = 0_u64;
        for buffer in batch.buffers().into_iter().flatten() {
            let offset = u64::try_from(buffer.offset()).ok()?;
            let length = u64::try_from(buffer.length()).ok()?;
            if offset.checked_add(length)? > body {
                return None;
            }
            let size = if batch.compression().is_some() && length > 0 {
                self.decompressed(start + offset, length)?
            } else {
                length
            };
            decoded = decoded.checked_add(size)?;
        }
        let most = decoded.saturating_mul(8).max(FEW_ROWS);
        let nodes = batch.nodes().into_iter().flatten().map(FieldNode::length);
        let plausible = |rows: i64| u64::try_from(rows).is_ok_and(|rows| rows <= most);
        nodes.chain([batch.length()]).all(plausible).then_some(())
    }

    /// The size that a compressed buffer says it has, before its bytes.
    fn decompressed(&self, start: u64, length: u64) -> Option<u64> {
        let compressed = length.checked_sub(8)?;
        match i64::from_le_bytes(self.array(start)?) {
            // It was left as it is.
            -1 => Some(compressed),
            size => u64::try_from(size).ok().filter(|size| *size <= most_of(compressed)),
        }
    }
}
