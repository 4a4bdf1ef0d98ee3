//! Counting batches of a table whatever stands in it.
//!
//! Values are read by the functions that a release reads them with. A batch that they refuse is
//! halved until the rows that are to blame stand alone, so that one bad value does not hide the
//! next, and what is refused is just what a release would refuse.

use std::cmp::Ordering::Equal;
use std::collections::{BTreeMap, HashMap};

use arrow_array::{Array, ArrayRef, RecordBatch};
use potluck_core::encoding::Bounds;
use potluck_release::study::{Column, Domain};

use super::counts::{
    ColumnCounts, FAR, IdCounts, Kind, LevelCounts, NARROW, NumberCounts, REMEMBERED_LEVELS, nothing,
};
use crate::rows::ColumnValues;
use crate::table::convert::{Converter, Ids};
use crate::{Error, Refusal};

/// Errors of one kind: the first, and how many rows more are the same.
pub(super) struct Same {
    row: u64,
    error: Error,
    rows: u64,
}

/// Everything that a release would refuse, one entry for each column and kind.
#[derive(Default)]
pub(super) struct Refused(BTreeMap<(usize, String), Same>);

impl Refused {
    /// Rows from `first` on that are refused alike, by the column at this place.
    fn add(&mut self, at: usize, first: u64, rows: u64, error: Error) {
        let found = Same { row: first, error, rows };
        self.insert((at, found.error.kind_of_problem()), found);
    }

    fn insert(&mut self, key: (usize, String), found: Same) {
        match self.0.get_mut(&key) {
            None => {
                self.0.insert(key, found);
            }
            Some(known) => {
                let rows = known.rows + found.rows;
                if found.row < known.row {
                    *known = found;
                }
                known.rows = rows;
            }
        }
    }

    pub(super) fn merge(&mut self, other: Self) {
        for (key, found) in other.0 {
            self.insert(key, found);
        }
    }

    /// The first error of each kind with the number of rows beside it, by column.
    pub(super) fn into_errors(self) -> impl Iterator<Item = (Error, u64)> {
        self.0.into_values().map(|same| (same.error, same.rows - 1))
    }
}

/// Reads columns of the same rows as far as they can be read: `good` takes what was read, `bad` the
/// rows that are refused.
fn as_far_as_possible<T>(
    first: u64,
    columns: &[ArrayRef],
    read: &impl Fn(u64, &[ArrayRef]) -> Result<T, Error>,
    good: &mut impl FnMut(u64, T) -> Result<(), Error>,
    bad: &mut impl FnMut(u64, u64, Error),
) -> Result<(), Error> {
    let rows = columns.first().map_or(0, Array::len);
    match read(first, columns) {
        Ok(values) => good(first, values),
        // Only what one value is to blame for can be found in one half and not in the other.
        Err(error) if rows > 1 && error.is_about_a_value() => {
            let middle = rows / 2;
            let part = |from: usize, count: usize| -> Vec<ArrayRef> {
                columns.iter().map(|column| column.slice(from, count)).collect()
            };
            as_far_as_possible(first, &part(0, middle), read, good, bad)?;
            as_far_as_possible(first + middle as u64, &part(middle, rows - middle), read, good, bad)
        }
        Err(error) => {
            bad(first, rows as u64, error);
            Ok(())
        }
    }
}

/// What one thread counted.
pub(super) struct Tally<'a> {
    columns: Vec<ColumnTally<'a>>,
    pub(super) ids: IdCounts,
    pub(super) refused: Refused,
    pub(super) rows: u64,
}

struct ColumnTally<'a> {
    column: &'a Column,
    counts: ColumnCounts,
    /// The least and the largest number.
    range: Option<(f64, f64)>,
    /// How many have each level of the study.
    levels: HashMap<&'a str, u64>,
    /// How often other levels stand there, if they are to be shown.
    unknown: HashMap<String, u64>,
}

impl<'a> Tally<'a> {
    pub(super) fn new(columns: impl Iterator<Item = &'a Column>, show_levels: bool) -> Self {
        let of = |column: &'a Column| ColumnTally {
            column,
            counts: nothing(column, show_levels),
            range: None,
            levels: match column.domain() {
                Domain::Numeric(_) => HashMap::new(),
                Domain::Categorical { levels, .. } => {
                    levels.iter().map(|level| (level.as_str(), 0)).collect()
                }
            },
            unknown: HashMap::new(),
        };
        Self {
            columns: columns.map(of).collect(),
            ids: IdCounts::default(),
            refused: Refused::default(),
            rows: 0,
        }
    }

    /// Counts a batch that has these columns, in this order.
    pub(super) fn add_columns(
        &mut self,
        converter: &Converter<'_>,
        first: u64,
        batch: &RecordBatch,
    ) -> Result<(), Error> {
        self.rows += batch.num_rows() as u64;
        for (at, (tally, array)) in self.columns.iter_mut().zip(batch.columns()).enumerate() {
            let refused = &mut self.refused;
            let column = tally.column;
            if let Domain::Categorical { .. } = column.domain() {
                tally.add_levels(converter, first, array);
            }
            let mut lost = (0, 0);
            as_far_as_possible(
                first,
                std::slice::from_ref(array),
                &|first, arrays| converter.column(column, first, &arrays[0]),
                &mut |_, values| {
                    if let (ColumnValues::Numbers(numbers), Domain::Numeric(bounds)) =
                        (values, column.domain())
                    {
                        tally.add_numbers(&numbers, *bounds);
                    }
                    Ok(())
                },
                &mut |row, rows, error| {
                    match error.refusal() {
                        Some(Refusal::Value) => lost.0 += rows,
                        _ => lost.1 += rows,
                    }
                    refused.add(at, row, rows, error);
                },
            )?;
            if let Kind::Numbers(counts) = &mut tally.counts.kind {
                tally.counts.missing += lost.0;
                counts.unreadable += lost.1;
            }
        }
        Ok(())
    }

    /// Counts the ids of a batch whose last columns they are; `each` is given those that can be
    /// read.
    pub(super) fn add_ids(
        &mut self,
        converter: &Converter<'_>,
        first: u64,
        batch: &RecordBatch,
        each: &mut impl FnMut(u64, &Ids) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let columns = converter.id_arrays(batch);
        // Behind all columns, in the order of problems.
        let at = self.columns.len();
        let (counts, refused) = (&mut self.ids, &mut self.refused);
        counts.rows += batch.num_rows() as u64;
        as_far_as_possible(
            first,
            columns,
            &|first, columns| converter.ids_in(first, columns),
            &mut |first, ids| {
                counts.add(&ids);
                each(first, &ids)
            },
            &mut |row, rows, error| refused.add(at, row, rows, error),
        )
    }

    pub(super) fn merge(&mut self, other: Self) {
        for (own, other) in self.columns.iter_mut().zip(other.columns) {
            own.merge(other);
        }
        self.ids.merge(&other.ids);
        self.refused.merge(other.refused);
        self.rows += other.rows;
    }

    /// What was counted of each column, the ids, and what a release would refuse.
    pub(super) fn finish(self) -> (Vec<ColumnCounts>, IdCounts, Refused) {
        (self.columns.into_iter().map(ColumnTally::finish).collect(), self.ids, self.refused)
    }
}

impl ColumnTally<'_> {
    fn add_numbers(&mut self, numbers: &[f64], bounds: Bounds) {
        let Kind::Numbers(counts) = &mut self.counts.kind else { return };
        let (lo, hi) = (bounds.lo(), bounds.hi());
        let distant = FAR * bounds.half_width();
        for &number in numbers {
            if !number.is_finite() {
                self.counts.missing += 1;
                continue;
            }
            counts.below += u64::from(number < lo);
            counts.above += u64::from(number > hi);
            counts.at_low += u64::from(number.partial_cmp(&lo) == Some(Equal));
            counts.at_high += u64::from(number.partial_cmp(&hi) == Some(Equal));
            counts.far += u64::from((number - bounds.midpoint()).abs() > distant);
            let (least, most) = self.range.get_or_insert((number, number));
            (*least, *most) = (least.min(number), most.max(number));
        }
    }

    /// Counts levels, known and unknown; whether the study refuses them is another question.
    fn add_levels(&mut self, converter: &Converter<'_>, first: u64, array: &ArrayRef) {
        // What has no text at all is refused where the column is read.
        let Ok(texts) = converter.level_texts(self.column, first, array) else { return };
        let Kind::Levels(counts) = &mut self.counts.kind else { return };
        for text in &texts {
            let Some(text) = text else {
                self.counts.missing += 1;
                continue;
            };
            if let Some(known) = self.levels.get_mut(text) {
                *known += 1;
            } else if converter.is_missing_text(text) {
                self.counts.missing += 1;
            } else {
                counts.unknown += 1;
                if counts.unknown_levels.is_some() {
                    let room = self.unknown.len() < REMEMBERED_LEVELS;
                    match self.unknown.get_mut(text) {
                        Some(times) => *times += 1,
                        None if room => {
                            self.unknown.insert(text.to_owned(), 1);
                        }
                        None => {}
                    }
                }
            }
        }
    }

    fn merge(&mut self, other: Self) {
        self.counts.missing += other.counts.missing;
        match (&mut self.counts.kind, &other.counts.kind) {
            (Kind::Numbers(own), Kind::Numbers(other)) => own.merge(other),
            (Kind::Levels(own), Kind::Levels(other)) => own.unknown += other.unknown,
            _ => unreachable!("both are of one column"),
        }
        self.range = match (self.range, other.range) {
            (Some((least, most)), Some((low, high))) => Some((least.min(low), most.max(high))),
            (own, other) => own.or(other),
        };
        for (level, times) in other.levels {
            *self.levels.entry(level).or_default() += times;
        }
        for (level, times) in other.unknown {
            *self.unknown.entry(level).or_default() += times;
        }
    }

    fn finish(self) -> ColumnCounts {
        let mut counts = self.counts;
        match &mut counts.kind {
            Kind::Numbers(numbers) => {
                if let Some((least, most)) = self.range {
                    counts.constant = least >= most;
                    let width = most.min(numbers.hi) - least.max(numbers.lo);
                    numbers.narrow = !counts.constant
                        && least >= numbers.lo
                        && most <= numbers.hi
                        && width * NARROW < numbers.hi - numbers.lo;
                }
            }
            Kind::Levels(LevelCounts { unknown, unknown_levels, .. }) => {
                let held = self.levels.values().filter(|&&times| times > 0).count();
                counts.constant = held == 1 && *unknown == 0;
                if unknown_levels.is_some() {
                    let mut levels: Vec<(String, u64)> = self.unknown.into_iter().collect();
                    levels.sort_by(|one, other| other.1.cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
                    *unknown_levels = Some(levels);
                }
            }
        }
        counts
    }
}

impl NumberCounts {
    fn merge(&mut self, other: &Self) {
        self.unreadable += other.unreadable;
        self.below += other.below;
        self.above += other.above;
        self.at_low += other.at_low;
        self.at_high += other.at_high;
        self.far += other.far;
    }
}

impl IdCounts {
    fn add(&mut self, ids: &Ids) {
        let Ids::Texts(texts) = ids else { return };
        for id in texts.iter().flatten() {
            self.leading_zeros += u64::from(has_leading_zeros(id));
            self.capitals += u64::from(id.chars().any(char::is_uppercase));
            self.small += u64::from(id.chars().any(char::is_lowercase));
            self.blanks += u64::from(id.chars().any(char::is_whitespace));
        }
    }

    fn merge(&mut self, other: &Self) {
        self.rows += other.rows;
        self.leading_zeros += other.leading_zeros;
        self.capitals += other.capitals;
        self.small += other.small;
        self.blanks += other.blanks;
    }
}

/// Whether a number in the id begins with a zero that more digits follow: "007", "P07", but not
/// "P0" nor "P10".
fn has_leading_zeros(id: &str) -> bool {
    let bytes = id.as_bytes();
    let digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    (0..bytes.len()).any(|at| bytes[at] == b'0' && digit(at + 1) && (at == 0 || !digit(at - 1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leading_zeros_of_numbers_within_ids() {
        for id in ["007", "P07", "a-00", "P7-01"] {
            assert!(has_leading_zeros(id), "{id}");
        }
        for id in ["", "0", "7", "P0", "P10", "100", "1.5", "x"] {
            assert!(!has_leading_zeros(id), "{id}");
        }
    }
}
