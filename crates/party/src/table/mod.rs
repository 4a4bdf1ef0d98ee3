//! Raw tables: CSV (plain or gzipped), Parquet, Arrow IPC, from a file or from standard input; or
//! Arrow batches that other software holds in memory.
//!
//! A table is read in batches, several times. A file is never held in memory, and what kind it is
//! shows in its first bytes, not in its name.

pub(crate) mod convert;
pub(crate) mod copy;
pub(crate) mod csv;
mod held;
mod ipc;
mod parallel;
pub(crate) mod plain;
mod positioned;

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom};
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use arrow_array::{RecordBatch, RecordBatchIterator, RecordBatchReader};
use arrow_ipc::reader::{FileReader, StreamReader};
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{ArrowError, Schema};
use flate2::read::MultiGzDecoder;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ParquetRecordBatchReaderBuilder};
use parquet::basic::Compression;
use parquet::file::metadata::{ColumnChunkMetaData, RowGroupMetaData};
use parquet::file::reader::ChunkReader;
use potluck_release::guard::guarded;
use potluck_release::parquet_file::{describe, has_plausible_pages};
use potluck_release::remedy::{Problem, Remedy};

use crate::Error;

use held::Held;
use positioned::PositionedFile;

pub(crate) use parallel::read_parts;
pub(crate) use positioned::read_exact_at;

/// Rows handed on at a time.
pub(crate) const BATCH: usize = 4096;

/// Rows that a batch on disk has at most: one thread decodes it.
const SPOOLED_BATCH: usize = 1 << 16;

/// A party's raw table.
pub struct Table {
    name: String,
    content: Content,
    batch: usize,
}

enum Content {
    File(Source, Format),
    Held(Held),
}

enum Source {
    Path(PathBuf),
    /// An unnamed private copy of standard input.
    Spool(File),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Format {
    Csv,
    GzipCsv,
    Parquet,
    ArrowFile,
    ArrowStream,
}

/// Batches of rows, in order.
pub(crate) type Batches = Box<dyn Iterator<Item = Result<Batch, Error>> + Send>;

/// Rows as they were read; what can be done by any thread is left to be done.
pub(crate) enum Batch {
    Decoded(RecordBatch),
    Csv(csv::Records),
}

impl Batch {
    fn rows(&self) -> usize {
        match self {
            Self::Decoded(batch) => batch.num_rows(),
            Self::Csv(records) => records.count(),
        }
    }

    pub(crate) fn decode(self) -> Result<RecordBatch, Error> {
        match self {
            Self::Decoded(batch) => Ok(batch),
            Self::Csv(records) => records.decode(),
        }
    }
}

/// A table with just the columns asked for, in the order asked for, in parts that can be read at
/// the same time.
pub(crate) struct Parts<'a> {
    /// What to call the table in messages.
    name: &'a str,
    /// Whether values are text that has to be parsed (CSV).
    pub(crate) text: bool,
    /// The position of each part's first row.
    pub(crate) first_rows: Vec<u64>,
    /// How many rows the table says it has, if it does.
    pub(crate) rows: Option<u64>,
    /// Opens a part, or all of them one after the other.
    open: Box<dyn Fn(Option<usize>) -> Result<Batches, Error> + Sync + 'a>,
}

impl<'a> Parts<'a> {
    /// A table that can only be read from start to end.
    fn whole(name: &'a str, text: bool, open: impl Fn() -> Result<Batches, Error> + Sync + 'a) -> Self {
        Self { name, text, first_rows: vec![0], rows: None, open: Box::new(move |_| open()) }
    }

    /// Opens a part, or all of them one after the other.
    pub(crate) fn open(&self, part: Option<usize>) -> Result<Batches, Error> {
        let batches = unless_damaged(self.name, || (self.open)(part))?;
        Ok(Box::new(Guarded { table: self.name.to_owned(), batches }))
    }
}

/// What tells whether a file was changed since.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Stamp {
    length: u64,
    modified: Option<SystemTime>,
    #[cfg(unix)]
    inode: (u64, u64),
}

impl Table {
    /// Opens a table; `-` copies standard input to an unnamed private file in `tmp` first.
    pub fn open(path: &Path, tmp: &Path) -> Result<Self, Error> {
        if path == Path::new("-") {
            return Self::spool(&mut io::stdin().lock(), "standard input", tmp);
        }
        let name = path.display().to_string();
        let read = |source| Error::Read { table: path.display().to_string(), source };
        let metadata = std::fs::metadata(path).map_err(read)?;
        if !metadata.is_file() {
            return Err(Error::Table {
                table: name,
                problem: Problem::with("is not a file", Remedy::OneFile),
            });
        }
        Self::of_file(name, Source::Path(path.to_owned()))
    }

    /// Copies a stream to an unnamed private file, so that it can be read several times.
    pub fn spool(stream: &mut dyn Read, name: &str, tmp: &Path) -> Result<Self, Error> {
        let mut file = tempfile::tempfile_in(tmp).map_err(Error::Temporary)?;
        io::copy(stream, &mut file).map_err(Error::Temporary)?;
        Self::of_file(name.to_owned(), Source::Spool(file))
    }

    fn of_file(name: String, source: Source) -> Result<Self, Error> {
        let format = sniff(&name, &source)?;
        Ok(Self { name, content: Content::File(source, format), batch: BATCH })
    }

    /// Holds the batches that a reader gives, as they are: what other software keeps in memory is
    /// not copied, and a stream is read once. With `keep`, only the columns of these names.
    ///
    /// Nobody may change the memory behind the batches while the table is in use.
    pub fn hold(
        name: &str,
        mut reader: Box<dyn RecordBatchReader + '_>,
        keep: Option<&[String]>,
    ) -> Result<Self, Error> {
        let held = Held::take(&mut only(&mut *reader, keep)).map_err(|_| stream_broke(name))?;
        Ok(Self { name: name.to_owned(), content: Content::Held(held), batch: BATCH })
    }

    /// Copies the batches that a reader gives to an unnamed private file, so that they can be read
    /// several times in little memory. With `keep`, only the columns of these names.
    pub fn spool_batches(
        name: &str,
        mut reader: Box<dyn RecordBatchReader + '_>,
        keep: Option<&[String]>,
        tmp: &Path,
    ) -> Result<Self, Error> {
        let batches = only(&mut *reader, keep);
        let schema = batches.schema();
        Self::spool_all(name, &schema, batches, tmp)
    }

    /// Takes the batches of a stream: they are held in memory while they fit into so many bytes,
    /// and beyond that copied to an unnamed private file. With `keep`, only the columns of these
    /// names.
    pub fn gather(
        name: &str,
        mut reader: Box<dyn RecordBatchReader + '_>,
        keep: Option<&[String]>,
        memory: u64,
        tmp: &Path,
    ) -> Result<Self, Error> {
        let mut batches = only(&mut *reader, keep);
        let schema = batches.schema();
        let (mut held, mut size) = (Vec::new(), 0);
        while let Some(batch) = batches.next() {
            let batch = batch.map_err(|_| stream_broke(name))?;
            size += batch.get_array_memory_size() as u64;
            held.push(batch);
            if size > memory {
                return Self::spool_all(name, &schema, held.into_iter().map(Ok).chain(batches), tmp);
            }
        }
        let held = held.into_iter().map(Ok);
        Self::hold(name, Box::new(RecordBatchIterator::new(held, schema)), None)
    }

    fn spool_all(
        name: &str,
        schema: &Schema,
        batches: impl Iterator<Item = Result<RecordBatch, ArrowError>>,
        tmp: &Path,
    ) -> Result<Self, Error> {
        let file = tempfile::tempfile_in(tmp).map_err(Error::Temporary)?;
        let failed = |error: ArrowError| match error {
            ArrowError::IoError(_, error) => Error::Temporary(error),
            // Decoder messages may quote what they could not decode, so they are not passed on.
            _ => damaged(name),
        };
        let mut writer = StreamWriter::try_new(BufWriter::new(&file), schema).map_err(failed)?;
        for batch in batches {
            let batch = batch.map_err(|_| stream_broke(name))?;
            let rows = batch.num_rows();
            for at in (0..rows).step_by(SPOOLED_BATCH) {
                writer.write(&batch.slice(at, SPOOLED_BATCH.min(rows - at))).map_err(failed)?;
            }
        }
        writer.finish().map_err(failed)?;
        drop(writer);
        Self::of_file(name.to_owned(), Source::Spool(file))
    }

    /// The same table, read in batches of another size.
    #[must_use]
    pub fn with_batch_size(mut self, batch: usize) -> Self {
        self.batch = batch.max(1);
        self
    }

    /// What to call it in messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    fn problem(&self, problem: impl Into<Problem>) -> Error {
        Error::Table { table: self.name.clone(), problem: problem.into() }
    }

    fn damaged(&self) -> Error {
        damaged(&self.name)
    }

    /// Whether other software holds it in memory.
    pub(crate) fn is_in_memory(&self) -> bool {
        matches!(self.content, Content::Held(_))
    }

    /// The names of its columns.
    pub fn column_names(&self) -> Result<Vec<String>, Error> {
        let names: Vec<String> = match &self.content {
            Content::Held(held) => held.column_names(),
            Content::File(source, format @ (Format::Csv | Format::GzipCsv)) => {
                let mut reader = self.csv(source, *format)?;
                let header = reader.headers().map_err(|error| match error.kind() {
                    ::csv::ErrorKind::Utf8 { .. } => {
                        self.problem("its header line is not UTF-8 text; convert the file to UTF-8")
                    }
                    ::csv::ErrorKind::Io(error) if csv::is_too_long(error) => {
                        self.problem("its header line does not end; check its quotes")
                    }
                    _ => self.damaged(),
                })?;
                header.iter().map(str::to_owned).collect()
            }
            Content::File(source, Format::Parquet) => {
                let described = self.described(&file(&self.name, source)?)?;
                described.schema().fields().iter().map(|field| field.name().clone()).collect()
            }
            Content::File(source, format @ (Format::ArrowFile | Format::ArrowStream)) => {
                let reader = self.arrow(source, *format, None)?;
                reader.schema().fields().iter().map(|field| field.name().clone()).collect()
            }
        };
        // Without a header line these would be values, so the message gives positions.
        let mut seen = HashSet::new();
        if let Some(twice) = names.iter().position(|name| !seen.insert(name.as_str())) {
            let header = if matches!(self.content, Content::Held(_)) { "" } else { ", or add a header line" };
            return Err(self.problem(format!(
                "column {} has the same name as an earlier one; rename or remove one{header}",
                twice + 1
            )));
        }
        if let [only] = names.as_slice()
            && only.contains([';', '\t'])
        {
            return Err(self.problem("has one column only; columns must be separated by commas"));
        }
        Ok(names)
    }

    /// Whether the names of its columns are what its first line says. Without a header line that is
    /// a row.
    pub fn names_are_a_line(&self) -> bool {
        matches!(self.content, Content::File(_, Format::Csv | Format::GzipCsv))
    }

    /// How many rows it says it has, if it does without being read.
    pub fn rows(&self) -> Result<Option<u64>, Error> {
        Ok(self.parts(&[])?.rows)
    }

    /// Positions of `columns` in the table.
    fn positions(&self, columns: &[String]) -> Result<Vec<usize>, Error> {
        let names = self.column_names()?;
        let find = |column: &String| {
            names.iter().position(|name| name == column).ok_or_else(|| Error::Column {
                table: self.name.clone(),
                column: column.clone(),
                problem: "is missing; check the spelling and the header line".into(),
            })
        };
        columns.iter().map(find).collect()
    }

    /// What tells whether the table was changed since; nothing if nobody else can change it.
    pub(crate) fn stamp(&self) -> Result<Option<Stamp>, Error> {
        let Content::File(Source::Path(path), _) = &self.content else { return Ok(None) };
        let metadata =
            std::fs::metadata(path).map_err(|source| Error::Read { table: self.name.clone(), source })?;
        Ok(Some(Stamp {
            length: metadata.len(),
            modified: metadata.modified().ok(),
            #[cfg(unix)]
            inode: (
                std::os::unix::fs::MetadataExt::dev(&metadata),
                std::os::unix::fs::MetadataExt::ino(&metadata),
            ),
        }))
    }

    /// Decodes these columns and throws them away: the least that a pass over the table costs.
    /// Returns the number of rows.
    pub fn decode(&self, columns: &[String], threads: NonZero<usize>) -> Result<u64, Error> {
        let parts = self.parts(columns)?;
        let rows = AtomicU64::new(0);
        read_parts(
            &parts,
            threads,
            || (),
            |(), _, batch| {
                rows.fetch_add(batch.num_rows() as u64, Ordering::Relaxed);
                Ok(())
            },
        )?;
        Ok(rows.into_inner())
    }

    /// The table from start to end; and whether its values are text.
    pub(crate) fn batches(
        &self,
        columns: &[String],
    ) -> Result<(bool, impl Iterator<Item = Result<RecordBatch, Error>> + use<>), Error> {
        let parts = self.parts(columns)?;
        let batches = parts.open(None)?;
        Ok((parts.text, batches.map(|batch| batch.and_then(Batch::decode))))
    }

    /// The parts that the table is read in.
    pub(crate) fn parts(&self, columns: &[String]) -> Result<Parts<'_>, Error> {
        let positions = self.positions(columns)?;
        Ok(match &self.content {
            Content::Held(held) => held.parts(&self.name, positions, self.batch),
            Content::File(source, format @ (Format::Csv | Format::GzipCsv)) => {
                let layout = Arc::new(csv::Layout::new(&self.name, columns, positions));
                Parts::whole(&self.name, true, move || {
                    let reader = self.csv(source, *format)?;
                    Ok(Box::new(csv::RecordStream::new(reader, Arc::clone(&layout), self.batch)))
                })
            }
            Content::File(source, Format::Parquet) => self.row_groups(source, positions)?,
            Content::File(source, format @ (Format::ArrowFile | Format::ArrowStream)) => {
                let mut in_file_order = positions.clone();
                in_file_order.sort_unstable();
                Parts::whole(&self.name, false, move || {
                    let reader = self.arrow(source, *format, Some(in_file_order.clone()))?;
                    Ok(self.typed(reader, &positions))
                })
            }
        })
    }

    /// What a Parquet file says of itself, if its columns can be decompressed.
    fn described(&self, file: &impl ChunkReader) -> Result<ArrowReaderMetadata, Error> {
        let described = describe(file).ok_or_else(|| self.damaged())?;
        let mut columns = described.metadata().row_groups().iter().flat_map(RowGroupMetaData::columns);
        let unread = |column: &ColumnChunkMetaData| match column.compression() {
            Compression::BROTLI(_) => Some("Brotli"),
            Compression::LZO => Some("LZO"),
            _ => None,
        };
        match columns.find_map(unread) {
            None => Ok(described),
            Some(codec) => Err(self.problem(format!(
                "is compressed with {codec}, which is not supported; write it again with zstd, snappy, gzip or lz4, or not compressed"
            ))),
        }
    }

    /// Row groups of a Parquet file are parts.
    fn row_groups(&self, source: &Source, positions: Vec<usize>) -> Result<Parts<'_>, Error> {
        let read = |source| Error::Read { table: self.name.clone(), source };
        let file = PositionedFile::new(file(&self.name, source)?).map_err(read)?;
        let metadata = self.described(&file)?;
        let wanted = |leaf| positions.contains(&metadata.parquet_schema().get_column_root_idx(leaf));
        if !has_plausible_pages(&Arc::new(file.clone()), metadata.metadata(), wanted) {
            return Err(self.damaged());
        }
        let mut first_rows = Vec::new();
        let mut next = 0_u64;
        for group in metadata.metadata().row_groups() {
            first_rows.push(next);
            // What a file claims may be anything; batches are counted when they are read.
            next = next.saturating_add(group.num_rows() as u64);
        }
        let mask = ProjectionMask::roots(metadata.parquet_schema(), positions.iter().copied());
        let groups = first_rows.len();
        let open = move |group: Option<usize>| {
            let reader = ParquetRecordBatchReaderBuilder::new_with_metadata(file.clone(), metadata.clone())
                .with_row_groups(group.map_or_else(|| (0..groups).collect(), |group| vec![group]))
                .with_projection(mask.clone())
                .with_batch_size(self.batch)
                .build()
                .map_err(|_| self.damaged())?;
            Ok(self.typed(reader, &positions))
        };
        Ok(Parts { name: &self.name, text: false, first_rows, rows: Some(next), open: Box::new(open) })
    }

    /// Batches of a decoder that gives the columns at `positions` in the order of the file.
    fn typed<R>(&self, reader: R, positions: &[usize]) -> Batches
    where
        R: Iterator<Item = Result<RecordBatch, ArrowError>> + Send + 'static,
    {
        let order = reading_order(positions);
        let table = self.name.clone();
        let in_order = move |batch: Result<RecordBatch, ArrowError>| {
            let batch = batch.and_then(|batch| batch.project(&order));
            batch.map(Batch::Decoded).map_err(|_| damaged(&table))
        };
        Box::new(reader.map(in_order))
    }

    fn csv(&self, source: &Source, format: Format) -> Result<csv::Reader, Error> {
        let file = file(&self.name, source)?;
        let mut stream: Box<dyn Read + Send> = match format {
            Format::GzipCsv => Box::new(MultiGzDecoder::new(BufReader::new(file))),
            _ => Box::new(file),
        };
        // A byte order mark is not part of the first column's name.
        let mut head = Vec::new();
        let read = stream.by_ref().take(3).read_to_end(&mut head);
        read.map_err(|source| Error::Read { table: self.name.clone(), source })?;
        if head == [0xef, 0xbb, 0xbf] {
            head.clear();
        }
        Ok(csv::reader(Box::new(io::Cursor::new(head).chain(stream))))
    }

    fn arrow(
        &self,
        source: &Source,
        format: Format,
        projection: Option<Vec<usize>>,
    ) -> Result<Box<dyn RecordBatchReader + Send>, Error> {
        let file = file(&self.name, source)?;
        let is_file = format == Format::ArrowFile;
        if !(if is_file { ipc::is_plausible_file(&file) } else { ipc::is_plausible_stream(&file) }) {
            return Err(self.damaged());
        }
        let file = BufReader::new(file);
        unless_damaged(&self.name, || {
            Ok(if is_file {
                Box::new(FileReader::try_new(file, projection).map_err(|_| self.damaged())?) as Box<_>
            } else {
                Box::new(StreamReader::try_new(file, projection).map_err(|_| self.damaged())?) as Box<_>
            })
        })
    }
}

fn file(table: &str, source: &Source) -> Result<File, Error> {
    let file = match source {
        Source::Path(path) => File::open(path),
        Source::Spool(file) => file.try_clone().and_then(|mut file| {
            file.seek(SeekFrom::Start(0))?;
            Ok(file)
        }),
    };
    file.map_err(|source| Error::Read { table: table.to_owned(), source })
}

fn sniff(table: &str, source: &Source) -> Result<Format, Error> {
    let mut head = Vec::new();
    let read = file(table, source)?.take(6).read_to_end(&mut head);
    read.map_err(|source| Error::Read { table: table.to_owned(), source })?;
    if let Some(problem) = workbook(table, source, &head)? {
        return Err(Error::Table { table: table.to_owned(), problem });
    }
    Ok(match head.as_slice() {
        [] => {
            return Err(Error::Table {
                table: table.to_owned(),
                problem: "is empty; the first line of a CSV file names its columns".into(),
            });
        }
        [b'P', b'A', b'R', b'1', ..] => Format::Parquet,
        b"ARROW1" => Format::ArrowFile,
        [0xff, 0xff, 0xff, 0xff, ..] => Format::ArrowStream,
        [0x1f, 0x8b, ..] => Format::GzipCsv,
        _ => Format::Csv,
    })
}

/// What is wrong with a file that no reader here takes for a table, but people do.
fn workbook(table: &str, source: &Source, head: &[u8]) -> Result<Option<Problem>, Error> {
    const REMEDY: &str = "in the spreadsheet program, save the sheet as \"CSV UTF-8\", and give that file; look there whether dates and long numbers came out as they are meant";
    Ok(match head {
        // A workbook is a zip archive that names its kind among its first entries.
        [b'P', b'K', 3 | 5, 4 | 6, ..] => {
            let mut start = Vec::new();
            let read = file(table, source)?.take(1 << 14).read_to_end(&mut start);
            read.map_err(|source| Error::Read { table: table.to_owned(), source })?;
            let names = |name: &[u8]| start.windows(name.len()).any(|bytes| bytes == name);
            Some(if names(b"[Content_Types].xml") || names(b"xl/") {
                format!("is an Excel workbook (.xlsx), which is not read; {REMEDY}").into()
            } else if names(b"opendocument.spreadsheet") {
                format!("is an OpenDocument spreadsheet (.ods), which is not read; {REMEDY}").into()
            } else {
                "is a zip archive; unpack it, and give the CSV, Parquet or Arrow file in it".into()
            })
        }
        [0xd0, 0xcf, 0x11, 0xe0, ..] => {
            Some(format!("is a workbook of old Excel (.xls), which is not read; {REMEDY}").into())
        }
        _ => None,
    })
}

/// The reader with just the columns of these names, in its own order.
fn only<'a>(reader: &'a mut dyn RecordBatchReader, keep: Option<&[String]>) -> impl RecordBatchReader + 'a {
    let schema = reader.schema();
    let kept = |position: &usize| keep.is_none_or(|keep| keep.contains(schema.field(*position).name()));
    let positions: Vec<usize> = (0..schema.fields().len()).filter(kept).collect();
    let projected = schema.project(&positions).expect("positions of the schema itself");
    let batches = reader.map(move |batch| batch.and_then(|batch| batch.project(&positions)));
    RecordBatchIterator::new(batches, Arc::new(projected))
}

/// Whoever gives the batches could not go on; what it says may quote a value.
fn stream_broke(table: &str) -> Error {
    Error::Table {
        table: table.to_owned(),
        problem: "could not be read to its end; whoever holds it stopped giving rows".into(),
    }
}

/// Decoder messages may quote what they could not decode, so they are not passed on.
fn damaged(table: &str) -> Error {
    Error::Table {
        table: table.to_owned(),
        problem: "cannot be decoded; it is damaged, cut short, or uses a feature that is not supported"
            .into(),
    }
}

/// What a decoder gives. It may assert what it should check: a panic on a damaged file becomes an
/// error.
fn unless_damaged<T>(table: &str, decode: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    guarded(decode).unwrap_or_else(|_| Err(damaged(table)))
}

/// Batches of a decoder that may panic.
struct Guarded {
    table: String,
    batches: Batches,
}

impl Iterator for Guarded {
    type Item = Result<Batch, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        unless_damaged(&self.table, || self.batches.next().transpose()).transpose()
    }
}

/// Readers give projected columns in the order of the file; this puts them into the order asked
/// for.
fn reading_order(positions: &[usize]) -> Vec<usize> {
    let mut sorted = positions.to_vec();
    sorted.sort_unstable();
    positions
        .iter()
        .map(|position| sorted.binary_search(position).expect("every position is in the sorted list"))
        .collect()
}
