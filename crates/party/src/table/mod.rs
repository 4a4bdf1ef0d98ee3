//! Raw tables: CSV (plain or gzipped), Parquet, Arrow IPC; from a file or from standard input.
//!
//! A table is read in batches, several times, and never held in memory. What kind of file it is shows in its
//! first bytes, not in its name.

pub(crate) mod convert;
pub(crate) mod csv;
mod parallel;
mod positioned;

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::num::NonZero;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_ipc::reader::{FileReader, StreamReader};
use arrow_schema::ArrowError;
use flate2::read::MultiGzDecoder;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder,
};

use parquet::file::reader::Length;
use potluck_release::columns::is_plausible;

use crate::Error;

use positioned::PositionedFile;

pub(crate) use parallel::read_parts;
pub(crate) use positioned::read_exact_at;

/// Rows handed on at a time.
pub(crate) const BATCH: usize = 4096;

/// A party's raw table.
pub struct Table {
    name: String,
    source: Source,
    format: Format,
    batch: usize,
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
    Csv(csv::Rows),
}

impl Batch {
    fn rows(&self) -> usize {
        match self {
            Self::Decoded(batch) => batch.num_rows(),
            Self::Csv(rows) => rows.count(),
        }
    }

    pub(crate) fn decode(self) -> Result<RecordBatch, Error> {
        match self {
            Self::Decoded(batch) => Ok(batch),
            Self::Csv(rows) => rows.decode(),
        }
    }
}

/// A table with just the columns asked for, in the order asked for, in parts that can be read at the same time.
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
    pub(crate) open: Box<dyn Fn(Option<usize>) -> Result<Batches, Error> + Sync + 'a>,
}

impl<'a> Parts<'a> {
    /// A table that can only be read from start to end.
    fn whole(name: &'a str, text: bool, open: impl Fn() -> Result<Batches, Error> + Sync + 'a) -> Self {
        Self { name, text, first_rows: vec![0], rows: None, open: Box::new(move |_| open()) }
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
                problem: "is not a file; give one CSV, Parquet or Arrow file, or `-` to read standard input"
                    .to_owned(),
            });
        }
        let mut table =
            Self { name, source: Source::Path(path.to_owned()), format: Format::Csv, batch: BATCH };
        table.format = table.sniff()?;
        Ok(table)
    }

    /// Copies a stream to an unnamed private file, so that it can be read several times.
    pub fn spool(stream: &mut dyn Read, name: &str, tmp: &Path) -> Result<Self, Error> {
        let mut file = tempfile::tempfile_in(tmp).map_err(Error::Temporary)?;
        io::copy(stream, &mut file).map_err(Error::Temporary)?;
        let mut table =
            Self { name: name.to_owned(), source: Source::Spool(file), format: Format::Csv, batch: BATCH };
        table.format = table.sniff()?;
        Ok(table)
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

    fn file(&self) -> Result<File, Error> {
        let file = match &self.source {
            Source::Path(path) => File::open(path),
            Source::Spool(file) => file.try_clone().and_then(|mut file| {
                file.seek(SeekFrom::Start(0))?;
                Ok(file)
            }),
        };
        file.map_err(|source| Error::Read { table: self.name.clone(), source })
    }

    fn sniff(&self) -> Result<Format, Error> {
        let mut head = Vec::new();
        let read = self.file()?.take(6).read_to_end(&mut head);
        read.map_err(|source| Error::Read { table: self.name.clone(), source })?;
        Ok(match head.as_slice() {
            [] => return Err(self.problem("is empty; the first line of a CSV file names its columns")),
            [b'P', b'A', b'R', b'1', ..] => Format::Parquet,
            b"ARROW1" => Format::ArrowFile,
            [0xff, 0xff, 0xff, 0xff, ..] => Format::ArrowStream,
            [0x1f, 0x8b, ..] => Format::GzipCsv,
            _ => Format::Csv,
        })
    }

    fn problem(&self, problem: impl Into<String>) -> Error {
        Error::Table { table: self.name.clone(), problem: problem.into() }
    }

    fn damaged(&self) -> Error {
        damaged(&self.name)
    }

    /// The names of its columns.
    pub fn column_names(&self) -> Result<Vec<String>, Error> {
        let names: Vec<String> = match self.format {
            Format::Csv | Format::GzipCsv => {
                let mut reader = self.csv()?;
                let header = reader.headers().map_err(|error| match error.kind() {
                    ::csv::ErrorKind::Utf8 { .. } => {
                        self.problem("its header line is not UTF-8 text; convert the file to UTF-8")
                    }
                    _ => self.damaged(),
                })?;
                header.iter().map(str::to_owned).collect()
            }
            Format::Parquet => {
                let builder =
                    ParquetRecordBatchReaderBuilder::try_new(self.file()?).map_err(|_| self.damaged())?;
                builder.schema().fields().iter().map(|field| field.name().clone()).collect()
            }
            Format::ArrowFile | Format::ArrowStream => {
                let reader = self.arrow(None)?;
                reader.schema().fields().iter().map(|field| field.name().clone()).collect()
            }
        };
        // Without a header line these would be values, so the message gives positions.
        let mut seen = HashSet::new();
        if let Some(twice) = names.iter().position(|name| !seen.insert(name.as_str())) {
            return Err(self.problem(format!(
                "column {} has the same name as an earlier one; rename or remove one, or add a header line",
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

    /// Positions of `columns` in the table.
    fn positions(&self, columns: &[String]) -> Result<Vec<usize>, Error> {
        let names = self.column_names()?;
        let find = |column: &String| {
            names.iter().position(|name| name == column).ok_or_else(|| Error::Column {
                table: self.name.clone(),
                column: column.clone(),
                problem: "is missing; check the spelling and the header line".to_owned(),
            })
        };
        columns.iter().map(find).collect()
    }

    /// What tells whether the table was changed since; nothing if nobody else can change it.
    pub(crate) fn stamp(&self) -> Result<Option<Stamp>, Error> {
        let Source::Path(path) = &self.source else { return Ok(None) };
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

    /// Decodes these columns and throws them away: the least that a pass over the table costs. Returns the number of
    /// rows.
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
        let batches = (parts.open)(None)?;
        Ok((parts.text, batches.map(|batch| batch.and_then(Batch::decode))))
    }

    /// The parts that the table is read in.
    pub(crate) fn parts(&self, columns: &[String]) -> Result<Parts<'_>, Error> {
        let positions = self.positions(columns)?;
        Ok(match self.format {
            Format::Csv | Format::GzipCsv => {
                let layout = Arc::new(csv::Layout::new(&self.name, columns, positions));
                Parts::whole(&self.name, true, move || {
                    Ok(Box::new(csv::Batches::new(self.csv()?, Arc::clone(&layout), self.batch)))
                })
            }
            Format::Parquet => self.row_groups(positions)?,
            Format::ArrowFile | Format::ArrowStream => {
                let mut in_file_order = positions.clone();
                in_file_order.sort_unstable();
                Parts::whole(&self.name, false, move || {
                    Ok(self.typed(self.arrow(Some(in_file_order.clone()))?, &positions))
                })
            }
        })
    }

    /// Row groups of a Parquet file are parts.
    fn row_groups(&self, positions: Vec<usize>) -> Result<Parts<'_>, Error> {
        let read = |source| Error::Read { table: self.name.clone(), source };
        let file = PositionedFile::new(self.file()?).map_err(read)?;
        let metadata =
            ArrowReaderMetadata::load(&file, ArrowReaderOptions::default()).map_err(|_| self.damaged())?;
        if !is_plausible(metadata.metadata(), file.len()) {
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
        Box::new(Guarded(reader).map(in_order))
    }

    fn csv(&self) -> Result<::csv::Reader<Box<dyn Read + Send>>, Error> {
        let mut stream: Box<dyn Read + Send> = match self.format {
            Format::GzipCsv => Box::new(MultiGzDecoder::new(BufReader::new(self.file()?))),
            _ => Box::new(self.file()?),
        };
        // A byte order mark is not part of the first column's name.
        let mut head = Vec::new();
        let read = stream.by_ref().take(3).read_to_end(&mut head);
        read.map_err(|source| Error::Read { table: self.name.clone(), source })?;
        if head == [0xef, 0xbb, 0xbf] {
            head.clear();
        }
        let stream: Box<dyn Read + Send> = Box::new(io::Cursor::new(head).chain(stream));
        Ok(::csv::ReaderBuilder::new().buffer_capacity(1 << 18).from_reader(stream))
    }

    fn arrow(&self, projection: Option<Vec<usize>>) -> Result<Box<dyn RecordBatchReader + Send>, Error> {
        let file = BufReader::new(self.file()?);
        Ok(match self.format {
            Format::ArrowFile => Box::new(FileReader::try_new(file, projection).map_err(|_| self.damaged())?),
            _ => Box::new(StreamReader::try_new(file, projection).map_err(|_| self.damaged())?),
        })
    }
}

/// Decoder messages may quote what they could not decode, so they are not passed on.
fn damaged(table: &str) -> Error {
    Error::Table {
        table: table.to_owned(),
        problem: "cannot be decoded; it is damaged, cut short, or uses a feature that is not supported"
            .to_owned(),
    }
}

/// A decoder that asserts what it should check: a panic on a damaged file becomes an error.
struct Guarded<I>(I);

impl<I: Iterator<Item = Result<RecordBatch, ArrowError>>> Iterator for Guarded<I> {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        catch_unwind(AssertUnwindSafe(|| self.0.next()))
            .unwrap_or_else(|_| Some(Err(ArrowError::ParquetError(String::new()))))
    }
}

/// Readers give projected columns in the order of the file; this puts them into the order asked for.
fn reading_order(positions: &[usize]) -> Vec<usize> {
    let mut sorted = positions.to_vec();
    sorted.sort_unstable();
    positions
        .iter()
        .map(|position| sorted.binary_search(position).expect("every position is in the sorted list"))
        .collect()
}
