//! Parquet files that may be damaged, or made to do harm: what they claim is held against what is
//! there before their decoder believes it.
//!
//! The decoder allocates what a file says it will need, and the process ends where that is more
//! than there is. So the sizes of pages, the shape of the schema and the lengths of delta-coded
//! lists are looked at first; and where the decoder asserts something that cannot be seen from
//! outside, a panic becomes an error ([`guarded`]).

use std::io::Read;
use std::sync::Arc;

use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use parquet::basic::{Encoding, Type};
use parquet::column::page::{Page, PageReader};
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, RowGroupMetaData};
use parquet::file::reader::ChunkReader;
use parquet::file::serialized_reader::SerializedPageReader;
use parquet::schema::types::ColumnDescriptor;

use crate::guard::guarded;
use crate::thrift::{I32, LIST, STRUCT, Thrift};

/// What a page or a buffer may always decompress to.
const SMALL: u64 = 1 << 26;
/// What it may decompress to for each byte that it takes, if that is more. Nobody's numbers are so
/// regular in such amounts.
const MOST_A_BYTE: u64 = 256;
/// How deep a schema may be.
const DEEPEST: usize = 64;
/// Bytes of a value of fixed length: decimals have 32.
const WIDEST: i32 = 1 << 12;

/// The most that so many bytes are believed to decompress to.
pub fn most_of(compressed: u64) -> u64 {
    compressed.saturating_mul(MOST_A_BYTE).max(SMALL)
}

/// What a Parquet file says of itself, if all of it lies within the file.
pub fn describe<R: ChunkReader>(file: &R) -> Option<ArrowReaderMetadata> {
    let length = file.len();
    let tail = file.get_bytes(length.checked_sub(8)?, 8).ok()?;
    let (size, magic) = tail.split_first_chunk()?;
    let size = u64::from(u32::from_le_bytes(*size));
    let start = length.checked_sub(8)?.checked_sub(size)?;
    if magic != b"PAR1" {
        return None;
    }
    let footer = file.get_bytes(start, size as usize).ok()?;
    has_plausible_schema(&footer)?;
    let metadata = guarded(|| ArrowReaderMetadata::load(file, ArrowReaderOptions::default()));
    metadata.ok()?.ok().filter(|metadata| is_within(metadata.metadata(), length))
}

/// Whether the pages of the columns (those at the ends of the schema's branches) that `wanted` asks
/// for can be what they claim to be.
pub fn has_plausible_pages<R: ChunkReader + 'static>(
    file: &Arc<R>,
    metadata: &ParquetMetaData,
    wanted: impl Fn(usize) -> bool,
) -> bool {
    metadata.row_groups().iter().all(|group| {
        let mut columns = group.columns().iter().enumerate().filter(|(at, _)| wanted(*at));
        columns.all(|(_, column)| {
            let pages = || are_pages_plausible(file, group, column);
            guarded(pages).ok().flatten().is_some()
        })
    })
}

/// Whether the places and sizes that a description claims lie within the file.
fn is_within(metadata: &ParquetMetaData, length: u64) -> bool {
    let within = |start: i64, size: i64| {
        let end = u64::try_from(start)
            .ok()
            .zip(u64::try_from(size).ok())
            .and_then(|(start, size)| start.checked_add(size));
        end.is_some_and(|end| end <= length)
    };
    metadata.row_groups().iter().all(|group| {
        group.num_rows() >= 0
            && group.columns().iter().all(|column| {
                let start = column.dictionary_page_offset().unwrap_or_else(|| column.data_page_offset());
                within(start, column.compressed_size())
                    && within(column.data_page_offset(), 0)
                    && column.uncompressed_size() >= 0
                    && column.num_values() >= 0
            })
    })
}

/// The decoder makes room for as many children as an element of the schema claims, and goes down as
/// deep.
fn has_plausible_schema(footer: &[u8]) -> Option<()> {
    Thrift::new(footer).fields(|thrift, number, kind| match (number, kind) {
        (2, LIST) => {
            let (elements, kind) = thrift.list()?;
            let mut open: Vec<u64> = Vec::new();
            for at in 0..elements {
                let children = if kind == STRUCT { children(thrift)? } else { return None };
                while open.pop_if(|left| *left == 0).is_some() {}
                if let Some(left) = open.last_mut() {
                    *left -= 1;
                }
                if children > elements - at - 1 || open.len() > DEEPEST {
                    return None;
                }
                open.push(children);
            }
            Some(())
        }
        (2, _) => None,
        _ => thrift.skip(kind),
    })
}

/// How many children an element of the schema says it has.
fn children<R: Read>(thrift: &mut Thrift<R>) -> Option<u64> {
    let mut children = 0;
    thrift.fields(|thrift, number, kind| match (number, kind) {
        (5, I32) => thrift.count().map(|count| children = count),
        (5, _) => None,
        _ => thrift.skip(kind),
    })?;
    Some(children)
}

/// What the header of a page claims.
#[derive(Default)]
struct Claim {
    uncompressed: u64,
    compressed: u64,
    /// Of a page with values or a dictionary.
    values: u64,
    encoding: u64,
    dictionary: bool,
}

impl Claim {
    fn read<R: Read>(thrift: &mut Thrift<R>) -> Option<Self> {
        let mut claim = Self::default();
        thrift.fields(|thrift, number, kind| match (number, kind) {
            (2, I32) => thrift.count().map(|size| claim.uncompressed = size),
            (3, I32) => thrift.count().map(|size| claim.compressed = size),
            (5, STRUCT) => claim.read_values(thrift, 2),
            (7, STRUCT) => {
                claim.dictionary = true;
                claim.read_values(thrift, 2)
            }
            (8, STRUCT) => claim.read_values(thrift, 4),
            (2 | 3 | 5 | 7 | 8, _) => None,
            _ => thrift.skip(kind),
        })?;
        Some(claim)
    }

    /// Number of values, and the encoding, which is field `encoding`.
    fn read_values<R: Read>(&mut self, thrift: &mut Thrift<R>, encoding: i16) -> Option<()> {
        thrift.fields(|thrift, number, kind| match (number, kind) {
            (1, I32) => thrift.count().map(|values| self.values = values),
            (_, I32) if number == encoding => thrift.count().map(|encoding| self.encoding = encoding),
            (1, _) => None,
            _ if number == encoding => None,
            _ => thrift.skip(kind),
        })
    }

    fn is_plausible(&self) -> bool {
        // Every value of a dictionary takes a byte at least, and the decoder makes room for all of
        // them.
        self.uncompressed <= most_of(self.compressed)
            && (!self.dictionary || self.values <= self.uncompressed)
    }
}

fn are_pages_plausible<R: ChunkReader + 'static>(
    file: &Arc<R>,
    group: &RowGroupMetaData,
    column: &ColumnChunkMetaData,
) -> Option<()> {
    let described = column.column_descr();
    if described.physical_type() == Type::FIXED_LEN_BYTE_ARRAY && described.type_length() > WIDEST {
        return None;
    }
    let (mut at, length) = column.byte_range();
    let end = at.checked_add(length)?;
    let mut has_lists = false;
    while at < end {
        let mut thrift = Thrift::new(file.get_read(at).ok()?.take(end - at));
        let claim = Claim::read(&mut thrift).filter(Claim::is_plausible)?;
        at = at.checked_add(thrift.length())?.checked_add(claim.compressed)?;
        has_lists |= matches!(claim.encoding, 6 | 7);
    }
    if at > end {
        return None;
    }
    if has_lists {
        let rows = usize::try_from(group.num_rows()).ok()?;
        let mut pages = SerializedPageReader::new(Arc::clone(file), column, rows, None).ok()?;
        while let Some(page) = pages.get_next_page().ok()? {
            are_lists_plausible(&page, described)?;
        }
    }
    Some(())
}

/// The delta encodings of texts begin with lists of lengths, for which the decoder makes room as
/// their own headers say.
fn are_lists_plausible(page: &Page, column: &ColumnDescriptor) -> Option<()> {
    let bytes: &[u8] = page.buffer();
    let values = match page {
        Page::DictionaryPage { .. } => return Some(()),
        // Levels come first, each list after its length.
        Page::DataPage { .. } => {
            let levels = [column.max_rep_level(), column.max_def_level()];
            levels.iter().filter(|level| **level > 0).try_fold(bytes, |bytes, _| {
                let (length, rest) = bytes.split_first_chunk()?;
                rest.get(u32::from_le_bytes(*length) as usize..)
            })?
        }
        Page::DataPageV2 { rep_levels_byte_len, def_levels_byte_len, .. } => {
            bytes.get(rep_levels_byte_len.checked_add(*def_levels_byte_len)? as usize..)?
        }
    };
    let most = u64::from(page.num_values());
    match page.encoding() {
        // Prefixes and then suffixes.
        Encoding::DELTA_BYTE_ARRAY if !values.is_empty() => {
            let suffixes = after_list(values, most)?;
            after_list(suffixes, most).map(|_| ())
        }
        Encoding::DELTA_LENGTH_BYTE_ARRAY if !values.is_empty() => after_list(values, most).map(|_| ()),
        _ => Some(()),
    }
}

/// What follows a delta-coded list of at most so many integers.
fn after_list(bytes: &[u8], most: u64) -> Option<&[u8]> {
    let mut thrift = Thrift::new(bytes);
    let (block, parts, values) = (thrift.varint()?, thrift.varint()?, thrift.varint()?);
    thrift.zigzag()?;
    if values > most || parts == 0 || !block.is_multiple_of(parts) || block == 0 {
        return None;
    }
    let a_part = block / parts;
    let mut rest = bytes.get(thrift.length() as usize..)?;
    let mut left = values.saturating_sub(1);
    while left > 0 {
        let mut thrift = Thrift::new(rest);
        thrift.zigzag()?;
        rest = rest.get(thrift.length() as usize..)?;
        let (widths, after) = rest.split_at_checked(usize::try_from(parts).ok()?)?;
        rest = after;
        for &width in widths {
            if left == 0 {
                break;
            }
            let size = u64::from(width).checked_mul(a_part)? / 8;
            // The last part may end early.
            let Some(after) = rest.get(usize::try_from(size).ok()?..) else {
                return (left <= a_part).then_some(&[]);
            };
            rest = after;
            left = left.saturating_sub(a_part);
        }
    }
    Some(rest)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, RecordBatch, StringArray};
    use bytes::Bytes;
    use parquet::arrow::ArrowWriter;
    use parquet::basic::{Compression, ZstdLevel};
    use parquet::file::properties::{WriterProperties, WriterVersion};

    use super::*;

    /// A field of a structure that holds an integer of 32 bits; `step` is how far its number is
    /// from the one before.
    fn integer(step: u8, value: u64) -> Vec<u8> {
        let mut bytes = vec![step << 4 | I32];
        let mut left = value * 2;
        while left > 0x7f {
            bytes.push(left as u8 | 0x80);
            left >>= 7;
        }
        bytes.push(left as u8);
        bytes
    }

    fn header(uncompressed: u64, compressed: u64, dictionary: Option<u64>) -> Vec<u8> {
        let mut bytes = [integer(1, 0), integer(1, uncompressed), integer(1, compressed)].concat();
        if let Some(values) = dictionary {
            bytes.push(4 << 4 | STRUCT);
            bytes.extend([integer(1, values), integer(1, 0), vec![0]].concat());
        }
        bytes.push(0);
        bytes
    }

    fn is_believed(header: &[u8]) -> bool {
        Claim::read(&mut Thrift::new(header)).is_some_and(|claim| claim.is_plausible())
    }

    #[test]
    fn pages_are_believed_in_proportion_to_their_bytes() {
        assert!(is_believed(&header(1 << 26, 1, None)));
        assert!(!is_believed(&header((1 << 26) + 1, 1, None)));
        assert!(!is_believed(&header(i32::MAX as u64, 1 << 22, None)));
        assert!(is_believed(&header(i32::MAX as u64, 1 << 23, None)));
        assert!(!is_believed(&header(1 << 31, 1 << 30, None)), "more than 32 bits hold");
        assert!(is_believed(&header(4000, 100, Some(1000))));
        assert!(!is_believed(&header(4000, 100, Some(4001))));
        let whole = header(4000, 100, Some(1000));
        for cut in 0..whole.len() {
            assert!(!is_believed(&whole[..cut]), "{cut}");
        }
    }

    /// A footer whose schema has elements with so many children each.
    fn footer(children: &[u64]) -> Vec<u8> {
        let elements: Vec<u8> = children.iter().flat_map(|&n| [integer(5, n), vec![0]].concat()).collect();
        let length = children.len() as u8;
        [integer(1, 2), vec![1 << 4 | LIST, 0xf0 | STRUCT, length], elements, vec![0]].concat()
    }

    #[test]
    fn schemas_are_believed_as_far_as_they_go() {
        let is_believed = |children: &[u64]| has_plausible_schema(&footer(children)).is_some();
        assert!(is_believed(&[2, 0, 0]));
        assert!(is_believed(&[2, 1, 0, 0]));
        assert!(!is_believed(&[3, 0, 0]), "more children than elements");
        assert!(!is_believed(&[i32::MAX as u64, 0, 0]));
        assert!(is_believed(&[[1; 60].as_slice(), &[0]].concat()));
        assert!(!is_believed(&[[1; 100].as_slice(), &[0]].concat()), "too deep");
    }

    #[test]
    fn lists_are_believed_as_far_as_the_page_has_values() {
        // Blocks of 128 in 4 parts, one value, which stands in the head.
        let list = [0x80, 0x01, 0x04, 0x01, 0x02, 0xaa];
        assert_eq!(after_list(&list, 1), Some(&[0xaa][..]));
        assert_eq!(after_list(&list, 0), None);
        let endless = [0x80, 0x01, 0x04, 0xff, 0xff, 0xff, 0xff, 0x7f, 0x02];
        assert_eq!(after_list(&endless, 1000), None);
        assert_eq!(after_list(&[0x80, 0x01, 0x00, 0x01, 0x02], 1), None, "no parts");
    }

    #[test]
    fn good_files_are_believed_in_every_encoding() {
        let text = |row: usize| (!row.is_multiple_of(7)).then(|| "ab".repeat(row % 13) + &row.to_string());
        let texts: ArrayRef = Arc::new((0..5000).map(text).collect::<StringArray>());
        let batch = RecordBatch::try_from_iter([("text", texts)]).unwrap();
        let encodings = [
            Encoding::PLAIN,
            Encoding::RLE_DICTIONARY,
            Encoding::DELTA_LENGTH_BYTE_ARRAY,
            Encoding::DELTA_BYTE_ARRAY,
        ];
        for encoding in encodings {
            for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
                let dictionary = encoding == Encoding::RLE_DICTIONARY;
                let mut properties = WriterProperties::builder()
                    .set_writer_version(version)
                    .set_compression(Compression::ZSTD(ZstdLevel::default()))
                    .set_data_page_row_count_limit(700)
                    .set_write_batch_size(100)
                    .set_dictionary_enabled(dictionary);
                if !dictionary {
                    properties = properties.set_encoding(encoding);
                }
                let mut writer =
                    ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties.build())).unwrap();
                writer.write(&batch).unwrap();
                let file = Arc::new(Bytes::from(writer.into_inner().unwrap()));
                let described = describe(&*file).unwrap();
                assert!(has_plausible_pages(&file, described.metadata(), |_| true), "{encoding} {version:?}");
                for cut in [1, 8, 100, file.len() / 2] {
                    assert!(describe(&file.slice(..file.len() - cut)).is_none(), "{cut}");
                }
            }
        }
    }
}
