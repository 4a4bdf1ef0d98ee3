//! What is counted of a party's columns and ids, and what of it a steward should look at.
//!
//! The counts are exact and private. They come from the built-in reader or from a query of an
//! engine, and are shown to the steward alone.

use potluck_release::study::{Column, Definition, Domain, IdKind, Unknown};
use serde_json::{Value, json};

/// A share of the rows from which on clipped values are worth a word.
const CLIPPED: f64 = 0.01;
/// The same of missing values.
const MISSING: f64 = 0.1;
/// The same of values at one bound.
const AT_BOUND: f64 = 0.5;
/// Values so many times the half-width from the middle have another unit, or are codes.
pub(crate) const FAR: f64 = 10.0;
/// Bounds so many times wider than the values leave next to nothing of their differences.
pub(crate) const NARROW: f64 = 100.0;
/// Undeclared levels that are remembered, to be shown on request.
pub(crate) const REMEMBERED_LEVELS: usize = 1000;
/// Undeclared levels that are shown.
const SHOWN_LEVELS: usize = 20;

/// What was counted of one column. No `Debug`: it is private.
pub struct ColumnCounts {
    /// Its name.
    pub column: String,
    /// Values that are missing.
    pub missing: u64,
    /// What its values are.
    pub kind: Kind,
    /// Whether everybody whose value is known has the same.
    pub constant: bool,
}

/// What a column's values are, and what was counted of them.
pub enum Kind {
    /// Numbers within bounds.
    Numbers(NumberCounts),
    /// Levels.
    Levels(LevelCounts),
}

/// What was counted of numbers.
#[derive(Clone, Default)]
pub struct NumberCounts {
    /// The lower bound.
    pub lo: f64,
    /// The upper bound.
    pub hi: f64,
    /// Text that is no number.
    pub unreadable: u64,
    /// Values below the lower bound, which count as it.
    pub below: u64,
    /// Values above the upper bound, which count as it.
    pub above: u64,
    /// Values just at the lower bound.
    pub at_low: u64,
    /// Values just at the upper bound.
    pub at_high: u64,
    /// Values further than ten half-widths from the middle.
    pub far: u64,
    /// Whether all values lie within a hundredth of the bounds.
    pub narrow: bool,
}

/// What was counted of levels.
pub struct LevelCounts {
    /// Values that are none of the levels.
    pub unknown: u64,
    /// What the study makes of them.
    pub unknown_counts_as: Unknown,
    /// Those levels with how often they stand there, if the steward asked for them: the most common
    /// first.
    pub unknown_levels: Option<Vec<(String, u64)>>,
}

/// What was counted of the ids. No `Debug`: it is private.
#[derive(Default)]
pub struct IdCounts {
    /// Rows.
    pub rows: u64,
    /// Rows whose id stands in an earlier row.
    pub duplicates: u64,
    /// Ids in which a number begins with a zero.
    pub leading_zeros: u64,
    /// Ids with capitals.
    pub capitals: u64,
    /// Ids with small letters.
    pub small: u64,
    /// Ids with blanks, at an end or within.
    pub blanks: u64,
}

/// "1.2%", with as many digits as tell it from nothing and from everything.
fn percent(count: u64, rows: u64) -> String {
    let share = 100.0 * count as f64 / rows as f64;
    match share {
        share if share < 0.01 => "under 0.01%".to_owned(),
        share if share < 1.0 => format!("{share:.2}%"),
        share if share < 99.95 || count == rows => format!("{share:.1}%"),
        _ => "over 99.9%".to_owned(),
    }
}

impl ColumnCounts {
    /// What a steward should look at, as clauses about the column.
    pub fn warnings(&self, rows: u64) -> Vec<String> {
        let mut warnings = Vec::new();
        if rows == 0 {
            return warnings;
        }
        if self.missing as f64 > MISSING * rows as f64 {
            warnings.push(format!(
                "{} of the values are missing and count as the middle, which pulls effects towards zero",
                percent(self.missing, rows)
            ));
        }
        match &self.kind {
            Kind::Numbers(counts) => warnings.extend(counts.warnings(rows, self.missing)),
            Kind::Levels(counts) => warnings.extend(counts.warning(rows)),
        }
        if self.constant {
            warnings.push("everybody has the same value, so nothing can be learnt from it".to_owned());
        }
        warnings
    }

    /// The counts for machines.
    pub fn to_json(&self) -> Value {
        let mut value = json!({ "column": self.column, "missing": self.missing, "constant": self.constant });
        let more = match &self.kind {
            Kind::Numbers(counts) => counts.to_json(),
            Kind::Levels(counts) => counts.to_json(),
        };
        if let (Value::Object(all), Value::Object(more)) = (&mut value, more) {
            all.extend(more);
        }
        value
    }
}

impl NumberCounts {
    fn warnings(&self, rows: u64, missing: u64) -> Vec<String> {
        let mut warnings = Vec::new();
        let (lo, hi) = (self.lo, self.hi);
        let outside = self.below + self.above;
        if outside as f64 > CLIPPED * rows as f64 {
            warnings.push(format!(
                "{} of the values lie outside of {lo} to {hi} and are cut to these bounds ({} below, {} above)",
                percent(outside, rows),
                self.below,
                self.above
            ));
        }
        if self.far > 0 {
            warnings.push(format!(
                "{} more than ten times the half-width of the bounds from their middle: another unit, or a code for missing values such as 999?",
                values_lie(self.far)
            ));
        }
        // A column that takes both its bounds and nothing else is a yes or no.
        let is_flag = self.at_low + self.at_high + missing + self.unreadable == rows
            && self.at_low > 0
            && self.at_high > 0;
        let at = |count: u64| !is_flag && count as f64 >= AT_BOUND * rows as f64;
        for (count, bound, side) in
            [(self.below + self.at_low, lo, "below"), (self.above + self.at_high, hi, "above")]
        {
            if at(count) {
                warnings.push(format!(
                    "{} of the values are at the bound {bound} or {side}",
                    percent(count, rows)
                ));
            }
        }
        if self.narrow {
            warnings.push(format!(
                "all values lie within a hundredth of {lo} to {hi}: noise is added in proportion to the bounds, so narrower ones, if public knowledge gives them, say much more"
            ));
        }
        warnings
    }

    fn to_json(&self) -> Value {
        json!({
            "unreadable": self.unreadable,
            "below": self.below,
            "above": self.above,
            "at_low": self.at_low,
            "at_high": self.at_high,
            "far": self.far,
            "narrow": self.narrow,
        })
    }
}

/// "1 value lies", "2 values lie".
fn values_lie(count: u64) -> String {
    format!("{count} {}", if count == 1 { "value lies" } else { "values lie" })
}

impl LevelCounts {
    /// Whether unknown levels count as missing.
    pub(crate) fn unknown_is_missing(&self) -> bool {
        self.unknown_counts_as == Unknown::Missing
    }

    fn warning(&self, rows: u64) -> Option<String> {
        let becomes = match self.unknown_counts_as {
            Unknown::Missing => "count as missing",
            Unknown::Other => "count as other",
            // A table with one is refused, which is a problem and not a warning.
            Unknown::Error => return None,
        };
        (self.unknown > 0).then(|| {
            let shown = match &self.unknown_levels {
                None => String::new(),
                Some(levels) => {
                    let mut shown: Vec<String> = levels
                        .iter()
                        .take(SHOWN_LEVELS)
                        .map(|(level, count)| format!("{level:?} {count}"))
                        .collect();
                    if levels.len() > SHOWN_LEVELS {
                        shown.push(format!("{} more", levels.len() - SHOWN_LEVELS));
                    }
                    format!(": {}", shown.join(", "))
                }
            };
            format!(
                "{} of the values are none of its levels and {becomes}{shown}",
                percent(self.unknown, rows)
            )
        })
    }

    fn to_json(&self) -> Value {
        let mut value = json!({ "unknown": self.unknown });
        if let Some(levels) = &self.unknown_levels {
            let levels: Vec<Value> =
                levels.iter().map(|(level, count)| json!({ "level": level, "values": count })).collect();
            value["unknown_levels"] = levels.into();
        }
        value
    }
}

impl IdCounts {
    /// What another party may write differently, as clauses about the id column.
    pub fn warnings(&self, definition: &Definition) -> Vec<String> {
        let mut warnings = Vec::new();
        if definition.id_kind() != IdKind::Text {
            return warnings;
        }
        let of = |count: u64| format!("{count} of {} ids", self.rows);
        if self.leading_zeros > 0 {
            warnings.push(format!(
                "{} have a number with leading zeros: to a party that writes it without them they are other people",
                of(self.leading_zeros)
            ));
        }
        if self.capitals > 0 && self.small > 0 {
            warnings.push(format!(
                "{} have capitals and {} small letters: \"A1\" and \"a1\" are different people",
                of(self.capitals),
                self.small
            ));
        }
        if self.blanks > 0 {
            warnings.push(format!(
                "{} have blanks, at an end or within: they are part of the id",
                of(self.blanks)
            ));
        }
        if !warnings.is_empty() {
            warnings
                .push("agree with the other parties on how ids are written, and compare a few".to_owned());
        }
        warnings
    }

    /// The counts for machines.
    pub fn to_json(&self) -> Value {
        json!({
            "rows": self.rows,
            "duplicates": self.duplicates,
            "leading_zeros": self.leading_zeros,
            "capitals": self.capitals,
            "small_letters": self.small,
            "blanks": self.blanks,
        })
    }
}

/// How many values of a column are lost in a release: see [`crate::lost`].
pub(super) fn lost(counts: &ColumnCounts) -> u64 {
    let more = match &counts.kind {
        Kind::Numbers(numbers) => numbers.below + numbers.above + numbers.unreadable,
        Kind::Levels(levels) => match levels.unknown_counts_as {
            Unknown::Missing | Unknown::Error => levels.unknown,
            Unknown::Other => 0,
        },
    };
    counts.missing.saturating_add(more)
}

/// Counts of nothing, for a column.
pub(crate) fn nothing(column: &Column, show_levels: bool) -> ColumnCounts {
    let kind = match column.domain() {
        Domain::Numeric(bounds) => {
            Kind::Numbers(NumberCounts { lo: bounds.lo(), hi: bounds.hi(), ..NumberCounts::default() })
        }
        Domain::Categorical { unknown, .. } => Kind::Levels(LevelCounts {
            unknown: 0,
            unknown_counts_as: *unknown,
            unknown_levels: show_levels.then(Vec::new),
        }),
    };
    ColumnCounts { column: column.name().to_owned(), missing: 0, kind, constant: false }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(change: impl FnOnce(&mut NumberCounts)) -> Vec<String> {
        let mut counts = NumberCounts { lo: 18.0, hi: 100.0, ..NumberCounts::default() };
        change(&mut counts);
        counts.warnings(1000, 0)
    }

    #[test]
    fn clipped_values_are_worth_a_word_from_one_percent_on() {
        assert!(numbers(|counts| counts.above = 10).is_empty());
        let said = numbers(|counts| (counts.below, counts.above) = (4, 7)).join("");
        assert!(
            said.contains("1.1%") && said.contains("18 to 100") && said.contains("4 below, 7 above"),
            "{said}"
        );
    }

    #[test]
    fn a_yes_or_no_is_not_a_column_at_its_bound() {
        assert!(numbers(|counts| (counts.at_low, counts.at_high) = (900, 100)).is_empty());
        let said = numbers(|counts| counts.at_low = 600);
        assert!(said[0].contains("60.0% of the values are at the bound 18"), "{said:?}");
    }

    #[test]
    fn shares_are_told_from_nothing_and_everything() {
        assert_eq!(percent(1, 1_000_000), "under 0.01%");
        assert_eq!(percent(999_999, 1_000_000), "over 99.9%");
        assert_eq!(percent(1000, 1000), "100.0%");
    }
}
