//! Named columns of f64 with a JSON manifest, as ordinary Parquet.
//!
//! Any Parquet reader can open the file; the manifest is the value of the metadata key `potluck`.

use std::fs::File;
use std::io::Read;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use arrow_array::{Array, ArrayRef, Float64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::{KeyValue, ParquetMetaData};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::{Error, canonical};

const METADATA_KEY: &str = "potluck";

/// Columns of equal length, each with a name.
#[derive(Clone, Debug, PartialEq)]
pub struct Columns {
    names: Vec<String>,
    values: Vec<Vec<f64>>,
}

impl Columns {
    pub(crate) fn new(names: Vec<String>, values: Vec<Vec<f64>>) -> Self {
        assert_eq!(names.len(), values.len(), "one name a column");
        Self { names, values }
    }

    /// Names, in order.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Values, column by column.
    pub fn values(&self) -> &[Vec<f64>] {
        &self.values
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.values.first().map_or(0, Vec::len)
    }

    pub(crate) fn extend(&mut self, other: &Self) {
        self.names.extend_from_slice(&other.names);
        self.values.extend_from_slice(&other.values);
    }

    /// The values of the column with this name.
    pub fn column(&self, name: &str) -> Option<&[f64]> {
        let at = self.names.iter().position(|candidate| candidate == name)?;
        Some(&self.values[at])
    }

    pub(crate) fn select(&self, names: &[String]) -> Option<Self> {
        let values = names.iter().map(|name| self.column(name).map(<[f64]>::to_vec));
        Some(Self::new(names.to_vec(), values.collect::<Option<_>>()?))
    }

    /// SHA-256 over the logical content: length and text of the canonical manifest, then each column as
    /// little-endian f64.
    pub(crate) fn content_hash(&self, manifest: &Value) -> [u8; 32] {
        let manifest = canonical::json(manifest);
        let mut hash = Sha256::new();
        hash.update((manifest.len() as u64).to_le_bytes());
        hash.update(&manifest);
        for column in &self.values {
            for value in column {
                hash.update(value.to_le_bytes());
            }
        }
        hash.finalize().into()
    }

    /// The Parquet file as bytes; the same content always gives the same bytes.
    pub(crate) fn to_parquet(&self, manifest: &Value) -> Vec<u8> {
        let fields: Vec<_> =
            self.names.iter().map(|name| Field::new(name, DataType::Float64, false)).collect();
        let schema = Arc::new(Schema::new(fields));
        let arrays: Vec<ArrayRef> = self
            .values
            .iter()
            .map(|column| Arc::new(Float64Array::from_iter_values(column.iter().copied())) as ArrayRef)
            .collect();
        let batch = RecordBatch::try_new(Arc::clone(&schema), arrays)
            .expect("columns have equal length and type f64");
        let text = String::from_utf8(canonical::json(manifest)).expect("JSON is UTF-8");
        let properties = WriterProperties::builder()
            .set_created_by(crate::SOFTWARE.to_owned())
            .set_key_value_metadata(Some(vec![KeyValue::new(METADATA_KEY.to_owned(), text)]))
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .set_dictionary_enabled(false)
            .set_encoding(Encoding::BYTE_STREAM_SPLIT)
            .set_statistics_enabled(EnabledStatistics::None)
            .build();
        // Without Arrow's own schema beside ours, readers that know Arrow still see our key.
        let options = ArrowWriterOptions::new().with_properties(properties).with_skip_arrow_metadata(true);
        let mut writer = ArrowWriter::try_new_with_options(Vec::new(), schema, options)
            .expect("a schema of f64 columns can be written");
        writer.write(&batch).expect("writing to memory does not fail");
        writer.into_inner().expect("writing to memory does not fail")
    }

    /// Reads columns and manifest of a file whose manifest says it is a `kind`.
    pub(crate) fn read(path: &Path, kind: &'static str) -> Result<(Self, Value), Error> {
        let not_ours = |detail: String| Error::NotOurs { path: path.to_owned(), expected: kind, detail };
        let mut file = File::open(path).map_err(|error| Error::read(path, error))?;
        let length = file.metadata().map_err(|error| Error::read(path, error))?.len();
        let mut magic = [0; 4];
        let header = file.read_exact(&mut magic);
        if header.is_err() || &magic != b"PAR1" {
            return Err(not_ours("it is not a Parquet file".to_owned()));
        }
        let damaged = |_| Error::tampered(path, "the Parquet file is damaged or cut short");
        let builder = ParquetRecordBatchReaderBuilder::try_new(file).map_err(damaged)?;
        if !is_plausible(builder.metadata(), length) {
            return Err(damaged(ParquetError::EOF(String::new())));
        }
        let metadata = builder.metadata().file_metadata().key_value_metadata();
        let pairs = metadata.map(Vec::as_slice).unwrap_or_default();
        let mut texts = pairs.iter().filter(|pair| pair.key == METADATA_KEY).map(|pair| &pair.value);
        let (Some(Some(text)), None) = (texts.next(), texts.next()) else {
            return Err(not_ours("it does not have one potluck manifest".to_owned()));
        };
        let manifest: Value = serde_json::from_str(text)
            .map_err(|_| Error::tampered(path, "the manifest is not valid JSON"))?;
        // A key that stands twice would say one thing to us and another to other readers.
        if canonical::json(&manifest) != text.as_bytes() {
            return Err(Error::tampered(path, "the manifest is not in canonical form"));
        }
        match manifest["potluck"].as_str() {
            Some(found) if found == kind => {}
            Some(found) => return Err(not_ours(format!("it is a {found}"))),
            None => return Err(not_ours("its manifest does not say what it is".to_owned())),
        }
        crate::check_format(&manifest, path)?;
        let names: Vec<String> = builder.schema().fields().iter().map(|field| field.name().clone()).collect();
        let mut values = vec![Vec::new(); names.len()];
        let read = || -> Result<(), Error> {
            for batch in builder.build().map_err(damaged)? {
                let batch = batch.map_err(|_| Error::tampered(path, "the Parquet file is damaged"))?;
                for (column, array) in values.iter_mut().zip(batch.columns()) {
                    let array = array
                        .as_primitive_opt::<Float64Type>()
                        .filter(|array| array.null_count() == 0)
                        .ok_or_else(|| Error::tampered(path, "a column is not plain float64"))?;
                    column.extend_from_slice(array.values());
                }
            }
            Ok(())
        };
        // The decoder asserts some things of files that we cannot check beforehand.
        catch_unwind(AssertUnwindSafe(read))
            .unwrap_or_else(|_| Err(Error::tampered(path, "the Parquet file is damaged")))?;
        Ok((Self::new(names, values), manifest))
    }
}

/// Whether the places and sizes that a Parquet file claims lie within it. Its decoder takes them on trust.
pub fn is_plausible(metadata: &ParquetMetaData, length: u64) -> bool {
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
