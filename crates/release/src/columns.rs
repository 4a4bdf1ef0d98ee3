//! Named columns of f64 with a JSON manifest, as ordinary Parquet.
//!
//! Any Parquet reader can open the file; the manifest is the value of the metadata key `potluck`. A
//! file is written row by row, in memory that does not grow with the rows; reading holds the
//! columns.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use arrow_array::{Array, ArrayRef, Float64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ParquetRecordBatchReaderBuilder};
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::basic::{Compression, Encoding, Type, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::{KeyValue, ParquetMetaData, RowGroupMetaData};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::reader::Length;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::guard::guarded;
use crate::parquet_file::{describe, has_plausible_pages, most_of};
use crate::study::Format;
use crate::{Error, canonical};

const METADATA_KEY: &str = "potluck";

/// For whoever opens the file without this software. It is no part of the content.
const READ_ME_KEY: &str = "potluck.read_me";

/// What nobody should do with the rows of a published file, and what to do instead.
pub const READ_ME: &str = "Do not regress on these rows. They are not people: they are random mixtures of people (with mixing = \"identity\" single people), with noise added, on scales of their own; mixed.age is not age. Plain least squares on them (lm in R, statsmodels, scikit-learn, regr_slope in SQL) gives wrong coefficients with small standard errors. Instead: potluck fit FILE --label COLUMN --json; potluck.LinearRegression in Python; or the address /fit of the hub that publishes the study.";

/// Before the names of columns in files, so that nobody takes them for those of people. Files of
/// 0.1 do not have it.
pub const MIXED: &str = "mixed.";

/// Values in a row group, 8 MiB, unless its rows would be too few.
const GROUP_VALUES: usize = 1 << 20;
const LEAST_GROUP_ROWS: usize = 1 << 10;

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

    /// SHA-256 of each column.
    pub(crate) fn hashes(&self) -> Vec<Sha256> {
        let hash = |column: &Vec<f64>| {
            let mut hash = Sha256::new();
            add_values(&mut hash, column);
            hash
        };
        self.values.iter().map(hash).collect()
    }

    /// Writes the Parquet file; the same content always gives the same bytes.
    pub(crate) fn write(&self, sink: impl Write + Send, manifest: &Value) -> io::Result<()> {
        let mut writer = ColumnsWriter::new(sink, &self.names)?;
        for row in 0..self.rows() {
            for column in &self.values {
                writer.push(column[row])?;
            }
        }
        writer.close(|_| manifest.clone())
    }

    /// Reads columns and manifest of a file whose manifest says it is a `kind`.
    pub(crate) fn read(path: &Path, kind: &'static str) -> Result<(Self, Value), Error> {
        Self::read_if(path, kind, |_, _| Ok(()))
    }

    /// Reads columns and manifest of a file whose manifest says it is a `kind`, if `check` agrees
    /// to what the manifest and the file's own description say: nothing has been decoded by then.
    pub(crate) fn read_if(
        path: &Path,
        kind: &'static str,
        check: impl FnOnce(&Value, &ParquetMetaData) -> Result<(), Error>,
    ) -> Result<(Self, Value), Error> {
        let mut file = File::open(path).map_err(|error| Error::read(path, error))?;
        let mut magic = [0; 4];
        let header = file.read_exact(&mut magic);
        if header.is_err() || &magic != b"PAR1" {
            let detail = "it is not a Parquet file".to_owned();
            return Err(Error::NotOurs { path: path.to_owned(), expected: kind, detail });
        }
        let described = describe(&file).ok_or_else(|| damaged(path))?;
        let manifest = manifest(described.metadata(), path, kind)?;
        check(&manifest, described.metadata())?;
        let mut columns = Self::decode(file, described, path)?;
        for (name, own) in columns.names.iter_mut().zip(published(&manifest)) {
            if name.strip_prefix(MIXED) == Some(own) {
                own.clone_into(name);
            }
        }
        Ok((columns, manifest))
    }

    fn decode(file: File, described: ArrowReaderMetadata, path: &Path) -> Result<Self, Error> {
        let file = Arc::new(file);
        if !holds_numbers(described.metadata(), file.len())
            || !has_plausible_pages(&file, described.metadata(), |_| true)
        {
            return Err(damaged(path));
        }
        let file = Arc::into_inner(file).ok_or_else(|| damaged(path))?;
        let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(file, described);
        let names: Vec<String> = builder.schema().fields().iter().map(|field| field.name().clone()).collect();
        let mut values = vec![Vec::new(); names.len()];
        let mut rows = builder.metadata().file_metadata().num_rows();
        let read = || -> Result<(), Error> {
            for batch in builder.build().map_err(|_| damaged(path))? {
                let batch = batch.map_err(|_| damaged(path))?;
                // Pages may hold more than the file said.
                rows -= batch.num_rows() as i64;
                if rows < 0 {
                    return Err(damaged(path));
                }
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
        guarded(read).unwrap_or_else(|_| Err(damaged(path)))?;
        Ok(Self::new(names, values))
    }
}

/// The names of the study's columns, in order, as the manifest of a release or of a public dataset
/// has them.
fn published(manifest: &Value) -> impl Iterator<Item = &str> {
    let of_dataset = manifest["releases"].as_array().into_iter().flatten();
    let names = std::iter::once(manifest).chain(of_dataset).filter_map(|one| one["columns"].as_array());
    names.flatten().filter_map(Value::as_str)
}

fn damaged(path: &Path) -> Error {
    Error::tampered(path, "the Parquet file is damaged or cut short")
}

/// The manifest of a file, if it says that it is a `kind`.
fn manifest(metadata: &ParquetMetaData, path: &Path, kind: &'static str) -> Result<Value, Error> {
    let not_ours = |detail: String| Error::NotOurs { path: path.to_owned(), expected: kind, detail };
    let pairs = metadata.file_metadata().key_value_metadata().map(Vec::as_slice).unwrap_or_default();
    let mut texts = pairs.iter().filter(|pair| pair.key == METADATA_KEY).map(|pair| &pair.value);
    let (Some(Some(text)), None) = (texts.next(), texts.next()) else {
        return Err(not_ours("it does not have one potluck manifest".to_owned()));
    };
    let manifest: Value =
        serde_json::from_str(text).map_err(|_| Error::tampered(path, "the manifest is not valid JSON"))?;
    // A key that stands twice would say one thing to us and another to other readers.
    if canonical::json(&manifest) != text.as_bytes() {
        return Err(Error::tampered(path, "the manifest is not in canonical form"));
    }
    match manifest["potluck"].as_str() {
        Some(found) if found == kind => {}
        Some(found) => return Err(not_ours(format!("it is a {found}"))),
        None => return Err(not_ours("its manifest does not say what it is".to_owned())),
    }
    crate::check_format(&manifest, path, Format::NEWEST.number())?;
    Ok(manifest)
}

/// SHA-256 over the logical content: length and text of the canonical manifest, then the SHA-256 of
/// each column as little-endian f64.
pub(crate) fn content_hash(manifest: &Value, columns: Vec<Sha256>) -> [u8; 32] {
    let manifest = canonical::json(manifest);
    let mut hash = Sha256::new();
    hash.update((manifest.len() as u64).to_le_bytes());
    hash.update(&manifest);
    for column in columns {
        hash.update(column.finalize());
    }
    hash.finalize().into()
}

/// Hashes values as little-endian f64.
fn add_values(hash: &mut Sha256, values: &[f64]) {
    const VALUES: usize = 512;
    let mut bytes = [0; 8 * VALUES];
    for values in values.chunks(VALUES) {
        for (place, value) in bytes.chunks_exact_mut(8).zip(values) {
            place.copy_from_slice(&value.to_le_bytes());
        }
        hash.update(&bytes[..8 * values.len()]);
    }
}

/// Writes columns row by row and hashes them. It holds one row group, whose size depends on the
/// number of columns alone, so the same content always gives the same bytes.
pub(crate) struct ColumnsWriter<W: Write + Send> {
    parquet: ArrowWriter<W>,
    schema: SchemaRef,
    /// The values of the row group that is being filled, column by column.
    group: Vec<Vec<f64>>,
    group_rows: usize,
    /// The column of the next value.
    column: usize,
    hashes: Vec<Sha256>,
}

impl<W: Write + Send> ColumnsWriter<W> {
    pub(crate) fn new(sink: W, names: &[String]) -> io::Result<Self> {
        let field = |name: &String| Field::new(format!("{MIXED}{name}"), DataType::Float64, false);
        let fields: Vec<_> = names.iter().map(field).collect();
        let schema = Arc::new(Schema::new(fields));
        let properties = WriterProperties::builder()
            .set_created_by(crate::SOFTWARE.to_owned())
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .set_dictionary_enabled(false)
            .set_encoding(Encoding::BYTE_STREAM_SPLIT)
            .set_statistics_enabled(EnabledStatistics::None)
            .set_max_row_group_row_count(None)
            .build();
        // Without Arrow's own schema beside ours, readers that know Arrow still see our key.
        let options = ArrowWriterOptions::new().with_properties(properties).with_skip_arrow_metadata(true);
        Ok(Self {
            parquet: ArrowWriter::try_new_with_options(sink, Arc::clone(&schema), options)
                .map_err(sink_error)?,
            schema,
            group: vec![Vec::new(); names.len()],
            group_rows: (GROUP_VALUES / names.len().max(1)).max(LEAST_GROUP_ROWS),
            column: 0,
            hashes: vec![Sha256::new(); names.len()],
        })
    }

    /// Adds the next value of a row, or the first one of the next row.
    pub(crate) fn push(&mut self, value: f64) -> io::Result<()> {
        self.group[self.column].push(value);
        self.column += 1;
        if self.column == self.group.len() {
            self.column = 0;
            if self.group[0].len() == self.group_rows {
                self.flush()?;
            }
        }
        Ok(())
    }

    /// Writes what is left and the manifest, which may depend on the hashes of the columns.
    pub(crate) fn close(mut self, manifest: impl FnOnce(Vec<Sha256>) -> Value) -> io::Result<()> {
        assert_eq!(self.column, 0, "rows are whole");
        self.flush()?;
        let manifest = manifest(std::mem::take(&mut self.hashes));
        let text = String::from_utf8(canonical::json(&manifest)).expect("JSON is UTF-8");
        self.parquet.append_key_value_metadata(KeyValue::new(METADATA_KEY.to_owned(), text));
        self.parquet.append_key_value_metadata(KeyValue::new(READ_ME_KEY.to_owned(), READ_ME.to_owned()));
        self.parquet.close().map(|_| ()).map_err(sink_error)
    }

    fn flush(&mut self) -> io::Result<()> {
        for (hash, column) in self.hashes.iter_mut().zip(&self.group) {
            add_values(hash, column);
        }
        let columns = self.group.iter_mut().map(std::mem::take);
        let arrays = columns.map(|column| Arc::new(Float64Array::from(column)) as ArrayRef).collect();
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), arrays)
            .expect("columns have equal length and type f64");
        self.parquet.write(&batch).and_then(|()| self.parquet.flush()).map_err(sink_error)
    }
}

/// What the sink said, if it was the sink.
fn sink_error(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(source) => {
            source.downcast::<io::Error>().map_or_else(io::Error::other, |error| *error)
        }
        other => io::Error::other(other),
    }
}

/// Whether a file of so many bytes can hold as many numbers as it claims: noise does not compress,
/// so there are never many more of them than there are bytes. Codecs that cannot be told where to
/// stop are not believed at all.
fn holds_numbers(metadata: &ParquetMetaData, length: u64) -> bool {
    let codecs = |codec: Compression| {
        matches!(
            codec,
            Compression::UNCOMPRESSED | Compression::SNAPPY | Compression::ZSTD(_) | Compression::LZ4_RAW
        )
    };
    let columns = metadata.file_metadata().schema_descr().columns();
    let rows = u64::try_from(metadata.file_metadata().num_rows()).ok();
    let size = rows.and_then(|rows| rows.checked_mul(8)?.checked_mul(columns.len() as u64));
    size.is_some_and(|size| size <= most_of(length))
        && columns.iter().all(|column| column.physical_type() == Type::DOUBLE)
        && metadata
            .row_groups()
            .iter()
            .flat_map(RowGroupMetaData::columns)
            .all(|column| codecs(column.compression()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A file as 0.1 wrote it: nothing to read in it, and columns with the names of the study.
    fn of_before(columns: &Columns, manifest: &Value) -> Vec<u8> {
        let field = |name: &String| Field::new(name, DataType::Float64, false);
        let schema = Arc::new(Schema::new(columns.names.iter().map(field).collect::<Vec<_>>()));
        let options = ArrowWriterOptions::new().with_skip_arrow_metadata(true);
        let mut writer = ArrowWriter::try_new_with_options(Vec::new(), Arc::clone(&schema), options).unwrap();
        let arrays =
            columns.values.iter().map(|column| Arc::new(Float64Array::from(column.clone())) as ArrayRef);
        writer.write(&RecordBatch::try_new(schema, arrays.collect()).unwrap()).unwrap();
        let text = String::from_utf8(canonical::json(manifest)).unwrap();
        writer.append_key_value_metadata(KeyValue::new(METADATA_KEY.to_owned(), text));
        writer.into_inner().unwrap()
    }

    #[test]
    fn a_file_says_what_not_to_do_with_its_rows_and_its_content_stays_the_same() {
        let columns = Columns::new(vec!["age".to_owned()], vec![vec![0.5, -1.25, 3.0]]);
        let manifest = json!({ "potluck": "release", "format": 1, "columns": ["age"] });
        let mut bytes = Vec::new();
        columns.write(&mut bytes, &manifest).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file.parquet");
        let read = |bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            let (read, manifest) = Columns::read(&path, "release").unwrap();
            let metadata = describe(&File::open(&path).unwrap()).unwrap();
            let pairs = metadata.metadata().file_metadata().key_value_metadata().unwrap();
            let note = pairs.iter().find(|pair| pair.key == READ_ME_KEY).and_then(|pair| pair.value.clone());
            let hash = content_hash(&manifest, read.hashes());
            let names = metadata.metadata().file_metadata().schema_descr().column(0).name().to_owned();
            (read, hash, note, names)
        };
        let (now, hash, note, name) = read(&bytes);
        assert!(note.is_some_and(|note| note.starts_with("Do not regress on these rows")));
        assert_eq!((name.as_str(), now.names()), ("mixed.age", columns.names()));
        let (before, hash_before, note, name) = read(&of_before(&columns, &manifest));
        assert_eq!(name, "age");
        assert_eq!((before, hash_before, note), (now, hash, None), "files of before are read as ever");
    }

    #[test]
    fn a_column_that_a_study_calls_mixed_keeps_its_name() {
        let columns = Columns::new(vec!["mixed.age".to_owned()], vec![vec![0.5]]);
        let manifest = json!({ "potluck": "release", "format": 1, "columns": ["mixed.age"] });
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file.parquet");
        columns.write(File::create(&path).unwrap(), &manifest).unwrap();
        assert_eq!(Columns::read(&path, "release").unwrap().0, columns);
    }
}
