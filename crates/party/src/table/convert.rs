//! From Arrow arrays of any type to the numbers, levels and subjects that a study speaks of.
//!
//! Messages name table, column and row, never a value.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Date64Type, Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, RecordBatch, StringArray};
use arrow_buffer::{ScalarBuffer, i256};
use arrow_schema::DataType;
use potluck_core::encoding::MISSING_LEVEL;
use potluck_core::mixing::{MixingKey, SubjectDigest};
use potluck_release::remedy::Problem;
use potluck_release::study::id_rules::{ID_SEPARATOR, apply_all};
use potluck_release::study::{Column, Domain, IdKind, IdRule, MISSING_TOKENS, Study, Unknown, day_of};

use super::plain;
use crate::rows::{ColumnValues, Rows};
use crate::{Error, Refusal};

const MILLISECONDS_A_DAY: i64 = 86_400_000;

/// Where values stand and who expects what of them, for messages.
struct Place<'a> {
    table: &'a str,
    column: &'a str,
    first: u64,
    by: By,
}

/// Who expects numbers or levels of a column.
#[derive(Clone, Copy)]
enum By {
    Study,
    Model,
}

impl By {
    fn bounds(self) -> &'static str {
        match self {
            Self::Study => "the study gives it bounds; cast it to a number, or give it levels",
            Self::Model => "the model takes numbers there; cast it to a number",
        }
    }

    fn levels(self) -> &'static str {
        match self {
            Self::Study => "the study gives it levels",
            Self::Model => "the model knows it by its levels",
        }
    }
}

impl Place<'_> {
    fn value(&self, index: usize, reason: Refusal, problem: impl Into<Problem>) -> Error {
        Error::Value {
            table: self.table.to_owned(),
            column: self.column.to_owned(),
            row: self.first + index as u64 + 1,
            problem: problem.into(),
        }
        .refusing(reason)
    }

    fn column(&self, problem: impl Into<Problem>) -> Error {
        Error::Column {
            table: self.table.to_owned(),
            column: self.column.to_owned(),
            problem: problem.into(),
        }
        .refusing(Refusal::Type)
    }

    /// The array as others read it.
    fn read<T>(&self, array: &ArrayRef, reader: impl Fn(&ArrayRef) -> Option<T>) -> Result<T, Error> {
        reader(array)
            .ok_or_else(|| self.column(format!("its values of type {} cannot be read", array.data_type())))
    }
}

/// How the numbers of a column are written in files without types.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Written {
    Digits,
    /// As dates too: their column's bounds are dates.
    Dates,
}

/// Numbers, NaN where missing.
fn numbers(
    place: &Place<'_>,
    array: &ArrayRef,
    text: bool,
    written: Written,
    tokens: &[impl AsRef<str>],
) -> Result<ScalarBuffer<f64>, Error> {
    let array = place.read(array, plain::plain)?;
    let values = match array.data_type() {
        DataType::Null => return Ok(vec![f64::NAN; array.len()].into()),
        DataType::Boolean => {
            let values = array.as_boolean();
            return Ok(values.iter().map(|value| value.map_or(f64::NAN, f64::from)).collect());
        }
        DataType::Date32 => {
            let days = array.as_primitive::<Date32Type>();
            return Ok(days.iter().map(|day| day.map_or(f64::NAN, f64::from)).collect());
        }
        DataType::Date64 => {
            let times = array.as_primitive::<Date64Type>();
            return Ok(times
                .iter()
                .map(|time| time.map_or(f64::NAN, |time| time.div_euclid(MILLISECONDS_A_DAY) as f64))
                .collect());
        }
        kind if kind.is_decimal() => return decimals(place, &array),
        kind if kind.is_numeric() => place.read(&array, plain::doubles)?,
        DataType::Utf8 if text => {
            return parse_numbers(place, array.as_string(), written, tokens).map(ScalarBuffer::from);
        }
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
            return Err(place.column(format!("holds text, but {}", place.by.bounds())));
        }
        DataType::Timestamp(..) => {
            return Err(place.column("holds timestamps; cast it to a date (counted in days) or to a number"));
        }
        other => {
            return Err(place.column(format!(
                "has type {other}, which has no order of numbers; cast it to a number, a date or a boolean"
            )));
        }
    };
    if values.null_count() == 0 {
        return Ok(values.values().clone());
    }
    Ok(values.iter().map(|value| value.unwrap_or(f64::NAN)).collect())
}

/// Decimals as the nearest doubles, NaN where missing. Arrow's own cast rounds twice, digits first
/// and then the quotient, which other engines do not.
fn decimals(place: &Place<'_>, array: &ArrayRef) -> Result<ScalarBuffer<f64>, Error> {
    /// Up to here both the digits and the power of ten are doubles, and their quotient is rounded
    /// once.
    const EXACT_DIGITS: u128 = 1 << 53;
    const EXACT_SCALE: i8 = 22;
    let (wide, scale): (Vec<Option<i128>>, i8) = match *array.data_type() {
        DataType::Decimal32(_, scale) => (
            array.as_primitive::<Decimal32Type>().iter().map(|digits| digits.map(i128::from)).collect(),
            scale,
        ),
        DataType::Decimal64(_, scale) => (
            array.as_primitive::<Decimal64Type>().iter().map(|digits| digits.map(i128::from)).collect(),
            scale,
        ),
        DataType::Decimal128(_, scale) => (array.as_primitive::<Decimal128Type>().iter().collect(), scale),
        DataType::Decimal256(_, scale) => (Vec::new(), scale),
        _ => unreachable!("the array holds decimals"),
    };
    let text = |digits: &str| format!("{digits}e{}", -i32::from(scale)).parse::<f64>();
    if let DataType::Decimal256(..) = array.data_type() {
        let digits = array.as_primitive::<Decimal256Type>().iter();
        let nearest = |digits: Option<i256>| digits.map_or(Ok(f64::NAN), |digits| text(&digits.to_string()));
        return digits
            .map(nearest)
            .collect::<Result<Vec<f64>, _>>()
            .map(ScalarBuffer::from)
            .map_err(|_| place.column("its decimals cannot be read"));
    }
    let power = 10_f64.powi(i32::from(scale));
    let exact_power = (0..=EXACT_SCALE).contains(&scale);
    let nearest = |digits: Option<i128>| match digits {
        None => Ok(f64::NAN),
        Some(digits) if exact_power && digits.unsigned_abs() <= EXACT_DIGITS => Ok(digits as f64 / power),
        Some(digits) => text(&digits.to_string()),
    };
    wide.into_iter()
        .map(nearest)
        .collect::<Result<Vec<f64>, _>>()
        .map(ScalarBuffer::from)
        .map_err(|_| place.column("its decimals cannot be read"))
}

fn parse_numbers(
    place: &Place<'_>,
    array: &StringArray,
    written: Written,
    tokens: &[impl AsRef<str>],
) -> Result<Vec<f64>, Error> {
    let problem = match written {
        Written::Digits => {
            "is not a number; correct it, or leave it empty if it means a missing value (dates: count them in days, or use a file format with a date type)"
        }
        Written::Dates => {
            "is no date; write it as year, month and day, such as 1990-01-31, or leave it empty if it means a missing value"
        }
    };
    let parse = |(index, text): (usize, Option<&str>)| {
        let text = text.unwrap_or_default().trim_ascii();
        if tokens.iter().any(|token| token.as_ref() == text) {
            return Ok(f64::NAN);
        }
        if let Ok(number) = text.parse::<f64>() {
            return Ok(number);
        }
        let day = Some(text).filter(|_| written == Written::Dates).and_then(day_of);
        day.ok_or_else(|| place.value(index, Refusal::Number, problem))
    };
    array.iter().enumerate().map(parse).collect()
}

/// ColumnValues as the text that levels are compared with; `None` where missing.
fn texts(place: &Place<'_>, array: &ArrayRef) -> Result<StringArray, Error> {
    let array = place.read(array, plain::plain)?;
    let kind = array.data_type();
    let plain = matches!(
        kind,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Boolean | DataType::Null
    );
    if !plain && !kind.is_integer() {
        return Err(place.column(format!(
            "has type {kind}, but {}; levels are text, whole numbers or booleans",
            place.by.levels()
        )));
    }
    place.read(&array, plain::texts)
}

/// Level codes, `MISSING_LEVEL` where missing.
fn levels(
    place: &Place<'_>,
    array: &ArrayRef,
    codes: &HashMap<&str, u32>,
    unknown: Unknown,
    missing_text: impl Fn(&str) -> bool,
) -> Result<Vec<u32>, Error> {
    let code = |text: Option<&str>| {
        let Some(text) = text else { return Some(MISSING_LEVEL) };
        match (codes.get(text), unknown) {
            (Some(&code), _) => Some(code),
            (None, _) if missing_text(text) => Some(MISSING_LEVEL),
            (None, Unknown::Missing) => Some(MISSING_LEVEL),
            (None, Unknown::Other) => Some(codes["other"]),
            (None, Unknown::Error) => None,
        }
    };
    let not_a_level = |index| {
        place.value(
            index,
            Refusal::Value,
            "is not one of the study's levels, and the study refuses such values; correct it if it is a slip, or agree on unknown = \"missing\" or \"other\" (never on a level for the reason that it is in the table: levels are public)",
        )
    };
    if let Some(dictionary) = array.as_any_dictionary_opt() {
        // Each different text is looked up once; one that no row has may be anything.
        let of_values: Vec<Option<u32>> = texts(place, dictionary.values())?.iter().map(code).collect();
        let damaged = || place.column("its dictionary is damaged; write the file again");
        let keys = dictionary.keys().slice(0, array.len());
        let keys = plain::integers(&keys).ok_or_else(damaged)?;
        let find = |(index, key): (usize, Option<i64>)| match key.map(|key| of_values.get(key as usize)) {
            None => Ok(MISSING_LEVEL),
            Some(Some(&Some(code))) => Ok(code),
            Some(Some(None)) => Err(not_a_level(index)),
            Some(None) => Err(damaged()),
        };
        return keys.iter().enumerate().map(find).collect();
    }
    let texts = texts(place, array)?;
    texts.iter().enumerate().map(|(index, text)| code(text).ok_or_else(|| not_a_level(index))).collect()
}

fn level_codes(levels: &[String]) -> HashMap<&str, u32> {
    levels.iter().map(String::as_str).zip(0..).collect()
}

fn column_values(
    place: &Place<'_>,
    column: &Column,
    array: &ArrayRef,
    text: bool,
    tokens: &[String],
) -> Result<ColumnValues, Error> {
    let refused = |index| {
        place.value(
            index,
            Refusal::Value,
            if column.refuses_unknown() {
                "is missing or not one of the study's levels, and the study refuses that; complete the table, or agree on missing = \"midpoint\""
            } else {
                "is missing, and the study refuses missing values here; complete the table, or agree on missing = \"midpoint\""
            },
        )
    };
    let refuse = column.refuses_missing();
    match column.domain() {
        Domain::Numeric(_) => {
            let written = if column.dates().is_some() { Written::Dates } else { Written::Digits };
            let numbers = numbers(place, array, text, written, tokens)?;
            if refuse && let Some(index) = numbers.iter().position(|number| !number.is_finite()) {
                return Err(refused(index));
            }
            Ok(ColumnValues::Numbers(numbers))
        }
        Domain::Categorical { levels: names, unknown } => {
            let missing_text = |value: &str| text && tokens.iter().any(|token| token == value);
            let codes = levels(place, array, &level_codes(names), *unknown, missing_text)?;
            if refuse && let Some(index) = codes.iter().position(|&code| code == MISSING_LEVEL) {
                return Err(refused(index));
            }
            Ok(ColumnValues::Levels(codes))
        }
    }
}

/// Reads batches of one party's table as the study says.
pub(crate) struct Converter<'a> {
    table: &'a str,
    text: bool,
    columns: &'a [Column],
    id: Option<(&'a [String], IdKind)>,
    rules: &'a [IdRule],
    key: &'a MixingKey,
    tokens: &'a [String],
}

impl<'a> Converter<'a> {
    pub(crate) fn new(
        table: &'a str,
        text: bool,
        study: &'a Study,
        columns: &'a [Column],
        id_columns: &'a [String],
    ) -> Self {
        let definition = study.definition();
        let id = match definition.id_kind() {
            IdKind::Row => None,
            kind => Some((id_columns, kind)),
        };
        let (rules, tokens) = (definition.id_rules(), definition.missing_tokens());
        Self { table, text, columns, id, rules, key: study.seal().key(), tokens }
    }

    /// Converts a batch with the party's columns in order.
    pub(crate) fn rows(&self, first: u64, batch: &RecordBatch) -> Result<Rows, Error> {
        let mut columns = Vec::with_capacity(self.columns.len());
        for (column, array) in self.columns.iter().zip(batch.columns()) {
            columns.push(self.column(column, first, array)?);
        }
        Ok(Rows { count: batch.num_rows(), columns })
    }

    fn place<'p>(&'p self, column: &'p str, first: u64) -> Place<'p> {
        Place { table: self.table, column, first, by: By::Study }
    }

    /// Converts the values of one column, of rows from `first` on.
    pub(crate) fn column(
        &self,
        column: &Column,
        first: u64,
        array: &ArrayRef,
    ) -> Result<ColumnValues, Error> {
        column_values(&self.place(column.name(), first), column, array, self.text, self.tokens)
    }

    /// The texts that levels of a column are compared with.
    pub(crate) fn level_texts(
        &self,
        column: &Column,
        first: u64,
        array: &ArrayRef,
    ) -> Result<StringArray, Error> {
        texts(&self.place(column.name(), first), array)
    }

    /// Whether a text stands for a missing value.
    pub(crate) fn is_missing_text(&self, text: &str) -> bool {
        self.text && self.tokens.iter().any(|token| token == text)
    }

    /// The columns of a batch that hold its ids: the last ones.
    pub(crate) fn id_arrays<'b>(&self, batch: &'b RecordBatch) -> &'b [ArrayRef] {
        let count = self.id.map_or(0, |(names, _)| names.len());
        &batch.columns()[batch.num_columns() - count..]
    }

    /// The ids of a batch whose last columns hold them, checked; or positions, if there are none.
    pub(crate) fn ids(&self, first: u64, batch: &RecordBatch) -> Result<Ids, Error> {
        if self.id.is_none() {
            return Ok(Ids::positions(first, batch.num_rows() as u64));
        }
        self.ids_in(first, self.id_arrays(batch))
    }

    /// The ids of rows from `first` on that stand in these columns, checked.
    pub(crate) fn ids_in(&self, first: u64, columns: &[ArrayRef]) -> Result<Ids, Error> {
        let (names, kind) = self.id.expect("a study whose ids are positions has no id column");
        match (names, columns, self.rules) {
            ([name], [array], []) => self.plain_ids(name, kind, first, array),
            _ => self.ruled_ids(names, first, columns),
        }
    }

    /// The ids of rows from `first` on that stand as they are in one column, checked.
    fn plain_ids(&self, name: &str, kind: IdKind, first: u64, array: &ArrayRef) -> Result<Ids, Error> {
        let place = self.place(name, first);
        let array = place.read(array, plain::plain)?;
        let missing = |index| place.value(index, Refusal::Id, "the id is missing; every row needs one");
        if let Some(index) =
            array.logical_nulls().and_then(|nulls| (0..nulls.len()).find(|&at| nulls.is_null(at)))
        {
            return Err(missing(index));
        }
        let ids = match (kind, array.data_type()) {
            (IdKind::Integer, DataType::UInt64) => {
                return Ok(Ids::Unsigned(array.as_primitive::<UInt64Type>().values().clone()));
            }
            (IdKind::Integer, data_type) if data_type.is_integer() => {
                return Ok(Ids::Signed(place.read(&array, plain::integers)?.values().clone()));
            }
            (IdKind::Integer, DataType::Utf8) if self.text => array.as_string().clone(),
            (IdKind::Text, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View) => {
                texts(&place, &array)?
            }
            (IdKind::Integer, other) => {
                return Err(place.column(format!(
                    "holds ids of type {other}, but the study's ids are whole numbers; cast it to a whole number"
                )));
            }
            (_, other) => {
                return Err(place.column(format!(
                    "holds ids of type {other}, but the study's ids are text; cast it to text exactly as the other parties write it"
                )));
            }
        };
        for (index, id) in ids.iter().flatten().enumerate() {
            if id.is_empty() {
                return Err(missing(index));
            }
            if kind == IdKind::Integer && !is_plain_integer(id) {
                return Err(place.value(
                    index,
                    Refusal::Id,
                    "the id is not a whole number in plain decimal (no padding, no plus sign, no point); all parties must write ids alike, or the study must say id = \"text\"",
                ));
            }
        }
        Ok(Ids::Texts(ids))
    }

    /// The ids that the study's rules make of its id columns, the last ones of a batch.
    fn ruled_ids(&self, names: &[String], first: u64, columns: &[ArrayRef]) -> Result<Ids, Error> {
        let mut ids = vec![String::new(); columns.first().map_or(0, Array::len)];
        for (part, (name, array)) in names.iter().zip(columns).enumerate() {
            let place = Place { table: self.table, column: name, first, by: By::Study };
            for (index, text) in part_texts(&place, array)?.iter().enumerate() {
                let own = apply_all(self.rules, text.unwrap_or_default());
                if own.is_empty() {
                    let problem = "the id is missing, or nothing is left of it after the study's rules; every row needs one";
                    return Err(place.value(index, Refusal::Id, problem));
                }
                if part > 0 {
                    ids[index].push(ID_SEPARATOR);
                }
                ids[index].push_str(&own);
            }
        }
        Ok(Ids::Texts(ids.into_iter().map(Some).collect()))
    }

    /// The ids of rows from `first` on that stand in these columns, as they are written, and what
    /// the study's rules make of them: nothing where a part is missing.
    pub(crate) fn ids_as_written(&self, first: u64, columns: &[ArrayRef]) -> Result<Vec<WrittenId>, Error> {
        let (names, _) = self.id.expect("a study whose ids are positions has no id column");
        let mut ids = vec![(Vec::new(), Some(Vec::new())); columns.first().map_or(0, Array::len)];
        for (name, array) in names.iter().zip(columns) {
            let place = Place { table: self.table, column: name, first, by: By::Study };
            for ((written, id), text) in ids.iter_mut().zip(&part_texts(&place, array)?) {
                let text = text.unwrap_or_default();
                let own = apply_all(self.rules, text);
                written.push(text.to_owned());
                if own.is_empty() {
                    *id = None;
                } else if let Some(id) = id {
                    id.push(own);
                }
            }
        }
        Ok(ids)
    }

    /// Puts into `subjects` who the subjects with these ids are.
    pub(crate) fn subjects(&self, ids: &Ids, subjects: &mut Vec<SubjectDigest>) {
        subjects.clear();
        match ids {
            Ids::Signed(ids) => self.key.add_numbered(ids.iter().copied(), subjects),
            Ids::Unsigned(ids) => self.key.add_numbered(ids.iter().copied(), subjects),
            Ids::Texts(ids) => {
                let texts: Vec<&[u8]> = ids.iter().flatten().map(str::as_bytes).collect();
                self.key.add_subjects(&texts, subjects);
            }
        }
    }
}

/// An id as it is written, part by part, and what the study's rules make of it.
pub(crate) type WrittenId = (Vec<String>, Option<Vec<String>>);

/// A part of ids as text.
fn part_texts(place: &Place<'_>, array: &ArrayRef) -> Result<StringArray, Error> {
    let array = place.read(array, plain::plain)?;
    let known = array.data_type().is_integer()
        || matches!(
            array.data_type(),
            DataType::Date32 | DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View
        );
    if !known {
        return Err(place.column(format!(
            "holds ids of type {}; ids are made of text, whole numbers and dates",
            array.data_type()
        )));
    }
    match array.data_type() {
        DataType::Date32 => place.read(&array, plain::dates),
        _ => place.read(&array, plain::texts),
    }
}

/// The ids of a batch. No `Debug`: these are private.
pub(crate) enum Ids {
    Signed(ScalarBuffer<i64>),
    Unsigned(ScalarBuffer<u64>),
    Texts(StringArray),
}

impl Ids {
    /// Subjects that are told apart by their position.
    pub(crate) fn positions(first: u64, count: u64) -> Self {
        Self::Unsigned((first..first + count).collect())
    }

    /// Eight bytes for each id, the same for equal ids.
    pub(crate) fn fingerprints(&self, hash: &RandomState) -> Vec<u64> {
        match self {
            Self::Signed(ids) => ids.iter().map(|&id| scatter(id as u64)).collect(),
            Self::Unsigned(ids) => ids.iter().map(|&id| scatter(id)).collect(),
            Self::Texts(ids) => ids.iter().flatten().map(|id| hash.hash_one(id)).collect(),
        }
    }

    /// The id at a position as text.
    pub(crate) fn text(&self, index: usize) -> String {
        match self {
            Self::Signed(ids) => ids[index].to_string(),
            Self::Unsigned(ids) => ids[index].to_string(),
            Self::Texts(ids) => ids.value(index).to_owned(),
        }
    }
}

/// A permutation of 64-bit numbers that spreads them (Stafford's variant 13).
fn scatter(id: u64) -> u64 {
    let x = (id ^ id >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let x = (x ^ x >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ x >> 31
}

/// Whether the text is a whole number as every engine prints it.
fn is_plain_integer(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let padded = digits.len() > 1 && digits.starts_with('0');
    let negative_zero = text.starts_with('-') && digits == "0";
    !digits.is_empty()
        && (text.parse::<u64>().is_ok() || text.parse::<i64>().is_ok())
        && digits.bytes().all(|digit| digit.is_ascii_digit())
        && !padded
        && !negative_zero
}

/// ColumnValues of a column for prediction: numbers as they are, and texts for levels.
pub(crate) enum Input {
    Numbers(ScalarBuffer<f64>),
    Texts(StringArray),
}

/// Reads a column for prediction, as numbers or as texts.
pub(crate) fn input(
    table: &str,
    column: &str,
    first: u64,
    array: &ArrayRef,
    text: bool,
    numeric: bool,
) -> Result<Input, Error> {
    let place = Place { table, column, first, by: By::Model };
    if numeric {
        numbers(&place, array, text, Written::Digits, &MISSING_TOKENS).map(Input::Numbers)
    } else {
        texts(&place, array).map(Input::Texts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::{Decimal128Array, Decimal256Array};
    use std::sync::Arc;

    /// Digits and power of ten, each rounded on its own, would give the double beside the nearest
    /// one.
    #[test]
    fn decimals_become_the_nearest_doubles() {
        let place = Place { table: "t", column: "c", first: 0, by: By::Study };
        let mut twice = 0;
        for (digits, scale) in (0..2000).map(|i| (12_345_678_901_234_567_890 + i * 7_919, (i % 38) as i8)) {
            let expected: f64 = format!("{digits}e-{scale}").parse().unwrap();
            let rounded_twice = digits as f64 / 10_f64.powi(scale.into());
            twice += i32::from(rounded_twice.to_bits() != expected.to_bits());
            let narrow = Decimal128Array::from(vec![Some(digits), Some(-digits), None, Some(0)])
                .with_precision_and_scale(38, scale)
                .unwrap();
            let wide = Decimal256Array::from(vec![Some(i256::from_i128(digits)), None])
                .with_precision_and_scale(60, scale)
                .unwrap();
            let narrow = decimals(&place, &(Arc::new(narrow) as ArrayRef)).ok().unwrap();
            assert_eq!(narrow[..2], [expected, -expected]);
            assert!(narrow[2].is_nan() && narrow[3] == 0.0);
            let wide = decimals(&place, &(Arc::new(wide) as ArrayRef)).ok().unwrap();
            assert_eq!(wide[0].to_bits(), expected.to_bits());
            assert!(wide[1].is_nan());
        }
        assert!(twice > 0, "the test would not notice");
        let cents = Decimal128Array::from(vec![1, 10, 29]).with_precision_and_scale(9, 2).unwrap();
        assert_eq!(*decimals(&place, &(Arc::new(cents) as ArrayRef)).ok().unwrap(), [0.01, 0.1, 0.29]);
    }

    #[test]
    fn plain_integers() {
        for good in ["0", "7", "-12", "9223372036854775807", "18446744073709551615"] {
            assert!(is_plain_integer(good), "{good}");
        }
        for bad in ["18446744073709551616", "", "-", "007", "+7", "7.0", "1e3", " 7", "-0", "٧"] {
            assert!(!is_plain_integer(bad), "{bad}");
        }
    }
}
