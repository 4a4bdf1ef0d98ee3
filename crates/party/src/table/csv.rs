//! CSV as batches of text columns.
//!
//! Records can only be found one after the other, so that is all that is done while reading;
//! whether fields are text is checked by whoever takes the batch.

use std::io::{self, Read};
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions, StringArray};
use arrow_buffer::{Buffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, Field, Schema};

use super::Batch;
use crate::{Error, Refusal};

/// A batch ends early when the text of its columns is larger than this.
const LARGEST: usize = 1 << 26;

/// Bytes that a record may take: a quote that is not closed makes one record of all that follows.
const LONGEST_RECORD: u64 = 1 << 26;

/// Reads records of bounded length.
pub(super) type Reader = csv::Reader<Bounded>;

pub(super) fn reader(stream: Box<dyn Read + Send>) -> Reader {
    let bounded = Bounded { stream, since_a_record: 0 };
    csv::ReaderBuilder::new().buffer_capacity(1 << 18).from_reader(bounded)
}

/// A stream that fails when too many of its bytes were read since the last record.
pub(super) struct Bounded {
    stream: Box<dyn Read + Send>,
    since_a_record: u64,
}

impl Read for Bounded {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        if self.since_a_record > LONGEST_RECORD {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let count = self.stream.read(bytes)?;
        self.since_a_record += count as u64;
        Ok(count)
    }
}

/// Whether reading failed because a record did not end.
pub(super) fn is_too_long(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::FileTooLarge
}

/// What is wanted of the records.
pub(crate) struct Layout {
    table: String,
    schema: Arc<Schema>,
    positions: Vec<usize>,
}

impl Layout {
    pub(super) fn new(table: &str, columns: &[String], positions: Vec<usize>) -> Self {
        let fields: Vec<_> = columns.iter().map(|name| Field::new(name, DataType::Utf8, false)).collect();
        Self { table: table.to_owned(), schema: Arc::new(Schema::new(fields)), positions }
    }

    fn problem(&self, problem: String) -> Error {
        Error::Table { table: self.table.clone(), problem: problem.into() }
    }
}

/// Reads records, some at a time.
pub(super) struct RecordStream {
    reader: Reader,
    record: csv::ByteRecord,
    layout: Arc<Layout>,
    batch: usize,
    row: u64,
}

impl RecordStream {
    pub(super) fn new(reader: Reader, layout: Arc<Layout>, batch: usize) -> Self {
        Self { reader, record: csv::ByteRecord::new(), layout, batch, row: 0 }
    }

    fn read(&mut self) -> Result<Option<Batch>, Error> {
        let mut columns = vec![Column { bytes: Vec::new(), ends: vec![0] }; self.layout.positions.len()];
        let first = self.row;
        let mut size = 0;
        let mut count = 0;
        while count < self.batch && size < LARGEST {
            match self.reader.read_byte_record(&mut self.record) {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => return Err(self.problem(&error)),
            }
            self.reader.get_mut().since_a_record = 0;
            self.row += 1;
            count += 1;
            for (column, &position) in columns.iter_mut().zip(&self.layout.positions) {
                let field = &self.record[position];
                size += field.len();
                column.bytes.extend_from_slice(field);
                let end = i32::try_from(column.bytes.len()).map_err(|_| {
                    self.layout.problem(format!("row {} is too long; check its quotes", self.row))
                })?;
                column.ends.push(end);
            }
        }
        let records = Records { first, count, columns, layout: Arc::clone(&self.layout) };
        Ok((count > 0).then_some(Batch::Csv(records)))
    }

    /// Never the reader's own message: it may quote the line.
    fn problem(&self, error: &csv::Error) -> Error {
        let problem = match error.kind() {
            csv::ErrorKind::UnequalLengths { expected_len, len, .. } => format!(
                "row {} has {len} fields where the header has {expected_len}; check its quotes and separators",
                self.row + 1
            ),
            csv::ErrorKind::Io(error) if is_too_long(error) => {
                format!("row {} is too long; check its quotes", self.row + 1)
            }
            csv::ErrorKind::Io(_) => {
                let problem = format!("cannot be read after row {}; it is damaged or cut short", self.row);
                return self.layout.problem(problem);
            }
            _ => format!("row {} is not valid CSV; check its quotes and separators", self.row + 1),
        };
        self.layout.problem(problem).refusing(Refusal::Line)
    }
}

impl Iterator for RecordStream {
    type Item = Result<Batch, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        self.read().transpose()
    }
}

/// The fields of one column, one after the other.
#[derive(Clone)]
struct Column {
    bytes: Vec<u8>,
    ends: Vec<i32>,
}

/// Records as they were read. No `Debug`: these are private.
pub(crate) struct Records {
    /// Position of the first one in the table.
    first: u64,
    count: usize,
    columns: Vec<Column>,
    layout: Arc<Layout>,
}

impl Records {
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Text columns, if everything is UTF-8.
    pub(super) fn decode(mut self) -> Result<RecordBatch, Error> {
        if let Some(error) = self.first_that_is_not_text() {
            return Err(error);
        }
        let array = |column: Column| -> ArrayRef {
            let offsets = OffsetBuffer::new(ScalarBuffer::from(column.ends));
            let array = StringArray::try_new(offsets, Buffer::from_vec(column.bytes), None);
            Arc::new(array.expect("every field is text"))
        };
        let arrays = std::mem::take(&mut self.columns).into_iter().map(array).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(self.count));
        let batch = RecordBatch::try_new_with_options(Arc::clone(&self.layout.schema), arrays, &options);
        Ok(batch.expect("text columns of equal length"))
    }

    fn first_that_is_not_text(&self) -> Option<Error> {
        // Fields that are text make a text; the other way round a character could lie across two
        // fields.
        let whole = |column: &Column| {
            std::str::from_utf8(&column.bytes)
                .is_ok_and(|text| column.ends.iter().all(|&end| text.is_char_boundary(end as usize)))
        };
        if self.columns.iter().all(whole) {
            return None;
        }
        let is_text = |column: &Column, row: usize| {
            std::str::from_utf8(&column.bytes[column.ends[row] as usize..column.ends[row + 1] as usize])
                .is_ok()
        };
        let bad = |row: usize| Some((row, self.columns.iter().position(|column| !is_text(column, row))?));
        let (row, column) = (0..self.count).find_map(bad)?;
        Some(
            Error::Value {
                table: self.layout.table.clone(),
                column: self.layout.schema.field(column).name().clone(),
                row: self.first + row as u64 + 1,
                problem: "is not UTF-8 text; convert the file to UTF-8".into(),
            }
            .refusing(Refusal::Line),
        )
    }
}
