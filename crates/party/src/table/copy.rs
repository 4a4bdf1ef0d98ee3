//! What PostgreSQL gives for `COPY … TO STDOUT (FORMAT binary)`, as Arrow batches.
//!
//! The form is that of PostgreSQL's documentation of COPY: a signature, then rows of fields, each
//! with its length before it. It does not say of which types they are; whoever asked knows. Values
//! come out as a file would hold them, so that what reads files reads them too: numerics as the
//! nearest doubles, infinite dates as missing.

use std::io::Read;
use std::sync::Arc;

use arrow_array::builder::{BooleanBuilder, PrimitiveBuilder, StringBuilder};
use arrow_array::types::{ArrowPrimitiveType, Date32Type, Float64Type, Int64Type};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};

/// What such a stream begins with.
const SIGNATURE: &[u8; 11] = b"PGCOPY\n\xff\r\n\0";

/// Rows of a batch.
const BATCH: usize = 1 << 14;

/// Bytes that are read at a time, at least.
const CHUNK: usize = 1 << 18;

/// PostgreSQL's own limit of a field.
const LONGEST_FIELD: usize = 1 << 30;

/// Days from 1970-01-01 to 2000-01-01, from which PostgreSQL counts.
const EPOCH: i32 = 10_957;

/// A type of PostgreSQL's whose values can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wire {
    Boolean,
    Int2,
    Int4,
    Int8,
    Float4,
    Float8,
    Numeric,
    Date,
    Text,
}

impl Wire {
    /// The type of this name; nothing for those that potluck does not read. `character` pads with
    /// blanks, and whether they count is for its owner to say.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "boolean" => Self::Boolean,
            "smallint" => Self::Int2,
            "integer" => Self::Int4,
            "bigint" => Self::Int8,
            "real" => Self::Float4,
            "double precision" => Self::Float8,
            "numeric" => Self::Numeric,
            "date" => Self::Date,
            "text" | "character varying" => Self::Text,
            _ => return None,
        })
    }

    /// Its name in a query.
    pub(crate) fn postgres(self) -> &'static str {
        match self {
            Self::Boolean => "pg_catalog.bool",
            Self::Int2 => "pg_catalog.int2",
            Self::Int4 => "pg_catalog.int4",
            Self::Int8 => "pg_catalog.int8",
            Self::Float4 => "pg_catalog.float4",
            Self::Float8 => "pg_catalog.float8",
            Self::Numeric => "pg_catalog.numeric",
            Self::Date => "pg_catalog.date",
            Self::Text => "pg_catalog.text",
        }
    }

    fn arrow(self) -> DataType {
        match self {
            Self::Boolean => DataType::Boolean,
            Self::Int2 | Self::Int4 | Self::Int8 => DataType::Int64,
            Self::Float4 | Self::Float8 | Self::Numeric => DataType::Float64,
            Self::Date => DataType::Date32,
            Self::Text => DataType::Utf8,
        }
    }
}

/// The schema that columns of these names and types come out with.
pub(crate) fn schema(columns: &[(String, Wire)]) -> SchemaRef {
    let field = |(name, wire): &(String, Wire)| Field::new(name, wire.arrow(), true);
    Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<_>>()))
}

/// The batches of a stream.
pub(crate) struct CopiedRows<R> {
    bytes: Bytes<R>,
    schema: SchemaRef,
    columns: Vec<Values>,
    begun: bool,
    ended: bool,
}

impl<R: Read> CopiedRows<R> {
    pub(crate) fn new(stream: R, columns: &[(String, Wire)]) -> Self {
        Self {
            bytes: Bytes { stream, buffer: Vec::new(), at: 0 },
            schema: schema(columns),
            columns: columns.iter().map(|&(_, wire)| Values::new(wire)).collect(),
            begun: false,
            ended: false,
        }
    }

    pub(crate) fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    /// Whether there was a last row: a stream that was cut off has none.
    fn read_batch(&mut self) -> Result<Option<RecordBatch>, ArrowError> {
        if !self.begun {
            self.begun = true;
            self.read_header()?;
        }
        let mut rows = 0;
        while rows < BATCH && self.read_row()? {
            rows += 1;
        }
        if rows == 0 {
            return Ok(None);
        }
        let columns = self.columns.iter_mut().map(Values::finish).collect();
        RecordBatch::try_new(Arc::clone(&self.schema), columns).map(Some)
    }

    fn read_header(&mut self) -> Result<(), ArrowError> {
        let head = self.bytes.take(SIGNATURE.len() + 8)?;
        let (signature, rest) = head.split_at(SIGNATURE.len());
        let extension = rest.last_chunk::<4>().map_or(u32::MAX, |length| u32::from_be_bytes(*length));
        // Flags from bit 16 on change how rows are written.
        if signature != SIGNATURE || rest[..2] != [0, 0] || extension as usize > LONGEST_FIELD {
            return Err(unlike());
        }
        self.bytes.take(extension as usize).map(|_| ())
    }

    /// Whether there was another row.
    fn read_row(&mut self) -> Result<bool, ArrowError> {
        if self.ended {
            return Ok(false);
        }
        let fields = self.bytes.i16()?;
        if fields == -1 {
            self.ended = true;
            return Ok(false);
        }
        if usize::try_from(fields) != Ok(self.columns.len()) {
            return Err(unlike());
        }
        for column in &mut self.columns {
            match self.bytes.i32()? {
                -1 => column.push_missing(),
                length => {
                    let length = usize::try_from(length).ok().filter(|&length| length <= LONGEST_FIELD);
                    column.push(self.bytes.take(length.ok_or_else(unlike)?)?).ok_or_else(unlike)?;
                }
            }
        }
        Ok(true)
    }
}

impl<R: Read> Iterator for CopiedRows<R> {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = self.read_batch();
        self.ended |= batch.is_err();
        batch.transpose()
    }
}

/// It is not what was asked for. The bytes are private, so nothing more is said of them.
fn unlike() -> ArrowError {
    ArrowError::ParseError("not the binary form of COPY that was expected".to_owned())
}

/// A stream, read in large pieces.
struct Bytes<R> {
    stream: R,
    buffer: Vec<u8>,
    /// Where what was not taken yet begins.
    at: usize,
}

impl<R: Read> Bytes<R> {
    /// The next bytes.
    #[inline]
    fn take(&mut self, count: usize) -> Result<&[u8], ArrowError> {
        if self.buffer.len() - self.at < count {
            self.fill(count)?;
        }
        let start = self.at;
        self.at += count;
        Ok(&self.buffer[start..self.at])
    }

    #[inline]
    fn i16(&mut self) -> Result<i16, ArrowError> {
        let bytes = self.take(2)?;
        Ok(i16::from_be_bytes([bytes[0], bytes[1]]))
    }

    #[inline]
    fn i32(&mut self) -> Result<i32, ArrowError> {
        let bytes = self.take(4)?;
        Ok(i32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }

    /// Reads on until there are so many bytes.
    fn fill(&mut self, count: usize) -> Result<(), ArrowError> {
        self.buffer.drain(..self.at);
        self.at = 0;
        while self.buffer.len() < count {
            let filled = self.buffer.len();
            self.buffer.resize(filled + CHUNK, 0);
            let read = self.stream.read(&mut self.buffer[filled..]);
            self.buffer.truncate(filled + *read.as_ref().unwrap_or(&0));
            if read? == 0 {
                return Err(unlike());
            }
        }
        Ok(())
    }
}

/// Values of a column, as they come.
struct Values {
    wire: Wire,
    built: Built,
}

enum Built {
    Booleans(BooleanBuilder),
    Integers(PrimitiveBuilder<Int64Type>),
    Doubles(PrimitiveBuilder<Float64Type>),
    Dates(PrimitiveBuilder<Date32Type>),
    Texts(StringBuilder),
}

impl Values {
    fn new(wire: Wire) -> Self {
        fn numbers<T: ArrowPrimitiveType>() -> PrimitiveBuilder<T> {
            PrimitiveBuilder::with_capacity(BATCH)
        }
        let built = match wire {
            Wire::Boolean => Built::Booleans(BooleanBuilder::with_capacity(BATCH)),
            Wire::Int2 | Wire::Int4 | Wire::Int8 => Built::Integers(numbers()),
            Wire::Float4 | Wire::Float8 | Wire::Numeric => Built::Doubles(numbers()),
            Wire::Date => Built::Dates(numbers()),
            Wire::Text => Built::Texts(StringBuilder::new()),
        };
        Self { wire, built }
    }

    /// Takes a value; nothing if it has another form than its type.
    #[inline]
    fn push(&mut self, bytes: &[u8]) -> Option<()> {
        match (&mut self.built, self.wire) {
            (Built::Doubles(doubles), Wire::Float8) => {
                doubles.append_value(f64::from_be_bytes(bytes.try_into().ok()?));
            }
            (Built::Doubles(doubles), Wire::Float4) => {
                doubles.append_value(f32::from_be_bytes(bytes.try_into().ok()?).into());
            }
            (Built::Doubles(doubles), _) => doubles.append_value(numeric(bytes)?),
            (Built::Integers(integers), Wire::Int8) => {
                integers.append_value(i64::from_be_bytes(bytes.try_into().ok()?));
            }
            (Built::Integers(integers), Wire::Int4) => {
                integers.append_value(i32::from_be_bytes(bytes.try_into().ok()?).into());
            }
            (Built::Integers(integers), _) => {
                integers.append_value(i16::from_be_bytes(bytes.try_into().ok()?).into());
            }
            (Built::Booleans(booleans), _) => match bytes {
                [0] => booleans.append_value(false),
                [1] => booleans.append_value(true),
                _ => return None,
            },
            (Built::Dates(dates), _) => match i32::from_be_bytes(bytes.try_into().ok()?) {
                i32::MIN | i32::MAX => dates.append_null(),
                day => dates.append_value(day.checked_add(EPOCH)?),
            },
            (Built::Texts(texts), _) => texts.append_value(str::from_utf8(bytes).ok()?),
        }
        Some(())
    }

    fn push_missing(&mut self) {
        match &mut self.built {
            Built::Booleans(booleans) => booleans.append_null(),
            Built::Integers(integers) => integers.append_null(),
            Built::Doubles(doubles) => doubles.append_null(),
            Built::Dates(dates) => dates.append_null(),
            Built::Texts(texts) => texts.append_null(),
        }
    }

    fn finish(&mut self) -> ArrayRef {
        match &mut self.built {
            Built::Booleans(booleans) => Arc::new(booleans.finish()),
            Built::Integers(integers) => Arc::new(integers.finish()),
            Built::Doubles(doubles) => Arc::new(doubles.finish()),
            Built::Dates(dates) => Arc::new(dates.finish()),
            Built::Texts(texts) => Arc::new(texts.finish()),
        }
    }
}

/// The double that is nearest to a numeric: groups of four decimal digits, of which the first
/// counts 10000^weight.
fn numeric(bytes: &[u8]) -> Option<f64> {
    /// Up to here both the digits and the power of ten are doubles, and their quotient or product
    /// is rounded once.
    const EXACT_DIGITS: u64 = 1 << 53;
    const EXACT_POWER: i32 = 22;
    let (head, digits) = bytes.split_first_chunk::<8>()?;
    let word = |at: usize| u16::from_be_bytes([head[at], head[at + 1]]);
    let (groups, weight, sign) = (usize::from(word(0)), i32::from(word(2).cast_signed()), word(4));
    let sign = match sign {
        0 => 1.0,
        0x4000 => -1.0,
        0xC000 => return Some(f64::NAN),
        0xD000 => return Some(f64::INFINITY),
        0xF000 => return Some(f64::NEG_INFINITY),
        _ => return None,
    };
    let (digits, rest) = digits.as_chunks::<2>();
    if digits.len() != groups || !rest.is_empty() {
        return None;
    }
    let digits = || digits.iter().map(|digit| u16::from_be_bytes(*digit));
    if digits().any(|digit| digit > 9999) {
        return None;
    }
    let power = 4 * (weight + 1 - groups as i32);
    let whole = digits().try_fold(0_u64, |whole, digit| {
        whole.checked_mul(10_000)?.checked_add(digit.into()).filter(|&whole| whole <= EXACT_DIGITS)
    });
    let size = match whole {
        Some(0) => 0.0,
        Some(whole) if (0..=EXACT_POWER).contains(&power) => whole as f64 * 10_f64.powi(power),
        Some(whole) if (-EXACT_POWER..0).contains(&power) => whole as f64 / 10_f64.powi(-power),
        _ => {
            let mut text: String = digits().map(|digit| format!("{digit:04}")).collect();
            text.push_str(&format!("e{power}"));
            text.parse().ok()?
        }
    };
    Some(sign * size)
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::Array;
    use arrow_array::cast::AsArray;
    use proptest::prelude::*;

    const ALL: [Wire; 9] = [
        Wire::Boolean,
        Wire::Int2,
        Wire::Int4,
        Wire::Int8,
        Wire::Float4,
        Wire::Float8,
        Wire::Numeric,
        Wire::Date,
        Wire::Text,
    ];

    fn stream(rows: &[Vec<Option<Vec<u8>>>]) -> Vec<u8> {
        let mut bytes = [&SIGNATURE[..], &[0; 8]].concat();
        for row in rows {
            bytes.extend((row.len() as i16).to_be_bytes());
            for field in row {
                match field {
                    None => bytes.extend((-1_i32).to_be_bytes()),
                    Some(field) => {
                        bytes.extend((field.len() as i32).to_be_bytes());
                        bytes.extend(field);
                    }
                }
            }
        }
        bytes.extend((-1_i16).to_be_bytes());
        bytes
    }

    fn read(bytes: &[u8], wires: &[Wire]) -> Result<Vec<RecordBatch>, ArrowError> {
        let columns: Vec<(String, Wire)> =
            wires.iter().enumerate().map(|(at, &wire)| (format!("c{at}"), wire)).collect();
        CopiedRows::new(bytes, &columns).collect()
    }

    /// As PostgreSQL writes a numeric.
    fn of_numeric(groups: &[u16], weight: i16, sign: u16) -> Vec<u8> {
        let head = [groups.len() as u16, weight.cast_unsigned(), sign, 0];
        head.iter().chain(groups).flat_map(|word| word.to_be_bytes()).collect()
    }

    #[test]
    fn values_of_every_type_are_read() {
        let row: Vec<Option<Vec<u8>>> = vec![
            Some(vec![1]),
            Some((-7_i16).to_be_bytes().to_vec()),
            Some(70_000_i32.to_be_bytes().to_vec()),
            Some(i64::MIN.to_be_bytes().to_vec()),
            Some(0.1_f32.to_be_bytes().to_vec()),
            Some((-0.0_f64).to_be_bytes().to_vec()),
            Some(of_numeric(&[12, 5000], 0, 0x4000)),
            Some((-1_i32).to_be_bytes().to_vec()),
            Some("é".into()),
        ];
        let infinite =
            vec![None, None, None, None, None, None, None, Some(i32::MAX.to_be_bytes().to_vec()), None];
        let batches = read(&stream(&[row, infinite]), &ALL).unwrap();
        let [batch] = batches.as_slice() else { panic!("one batch") };
        assert!(batch.column(0).as_boolean().value(0));
        assert_eq!(batch.column(1).as_primitive::<Int64Type>().value(0), -7);
        assert_eq!(batch.column(2).as_primitive::<Int64Type>().value(0), 70_000);
        assert_eq!(batch.column(3).as_primitive::<Int64Type>().value(0), i64::MIN);
        let double = |column: usize| batch.column(column).as_primitive::<Float64Type>().value(0).to_bits();
        assert_eq!([double(4), double(5), double(6)], [f64::from(0.1_f32), -0.0, -12.5].map(f64::to_bits));
        assert_eq!(batch.column(7).as_primitive::<Date32Type>().value(0), 10_956);
        assert_eq!(batch.column(8).as_string::<i32>().value(0), "é");
        assert!(batch.columns().iter().all(|column| column.is_null(1)));
    }

    #[test]
    fn numerics_that_are_no_numbers_are_doubles_of_the_same_kind() {
        assert!(numeric(&of_numeric(&[], 0, 0xC000)).unwrap().is_nan());
        assert_eq!(numeric(&of_numeric(&[], 0, 0xD000)), Some(f64::INFINITY));
        assert_eq!(numeric(&of_numeric(&[], 0, 0xF000)), Some(f64::NEG_INFINITY));
        assert_eq!(numeric(&of_numeric(&[], 0, 0)), Some(0.0));
        assert_eq!(numeric(&of_numeric(&[1], 0, 1)), None);
        assert_eq!(numeric(&of_numeric(&[10_000], 0, 0)), None);
    }

    #[test]
    fn a_stream_that_is_cut_off_or_of_another_form_is_refused() {
        let whole = stream(&[vec![Some(vec![0, 1])], vec![Some(vec![0, 2])]]);
        assert!(read(&whole, &[Wire::Int2]).is_ok());
        for end in 0..whole.len() {
            assert!(read(&whole[..end], &[Wire::Int2]).is_err(), "{end}");
        }
        for other in [Wire::Int4, Wire::Boolean, Wire::Float8, Wire::Numeric, Wire::Date] {
            assert!(read(&whole, &[other]).is_err(), "{other:?}");
        }
        assert!(read(&whole, &[Wire::Int2, Wire::Int2]).is_err());
        assert!(read(&stream(&[vec![Some(vec![0xff])]]), &[Wire::Text]).is_err());
    }

    #[test]
    fn many_rows_come_in_several_batches() {
        let rows: Vec<Vec<Option<Vec<u8>>>> =
            (0..40_000_i64).map(|row| vec![Some(row.to_be_bytes().to_vec())]).collect();
        let batches = read(&stream(&rows), &[Wire::Int8]).unwrap();
        let values = batches.iter().flat_map(|batch| batch.column(0).as_primitive::<Int64Type>().values());
        assert!(values.copied().eq(0..40_000));
        assert!(batches.len() > 1);
    }

    proptest! {
        /// Whatever groups and weight: the double is the one that Rust reads from the same digits.
        #[test]
        fn a_numeric_becomes_the_nearest_double(
            groups in prop::collection::vec(0_u16..10_000, 0..9),
            weight in -20_i16..20,
            negative: bool,
        ) {
            let text: String = groups.iter().map(|group| format!("{group:04}")).collect();
            let power = 4 * (i32::from(weight) + 1 - groups.len() as i32);
            let expected: f64 = format!("0{text}e{power}").parse().unwrap();
            let found = numeric(&of_numeric(&groups, weight, if negative { 0x4000 } else { 0 })).unwrap();
            prop_assert_eq!(found.to_bits(), (if negative { -expected } else { expected }).to_bits());
        }

        #[test]
        fn bytes_of_any_kind_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = read(&[&SIGNATURE[..], &[0; 8], &bytes].concat(), &[Wire::Numeric, Wire::Text]);
        }
    }
}
