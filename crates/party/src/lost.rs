//! Values of which nothing is left in a release: missing ones, and those that are cut to a bound.
//!
//! A column in which they are most says next to nothing, whatever is charged for it: a column in
//! another unit, or bounds that were typed wrong. So the first pass counts them, and a new release
//! is refused before its charge unless people say that the table is meant so. That refusal depends
//! on the data (docs/PRIVACY.md#refusals).

use potluck_core::encoding::MISSING_LEVEL;
use potluck_release::remedy::{Problem, Remedy};
use potluck_release::study::{Column, Domain};

use crate::rows::{ColumnValues, Rows};
use crate::{Error, Refusal};

/// What becomes of a table in which most values of a column are lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LostValues {
    /// Refuse a new release before its charge.
    Refuse,
    /// Release it all the same.
    Accept,
}

impl LostValues {
    /// Accepted on request only.
    pub fn accepted(accept: bool) -> Self {
        if accept { Self::Accept } else { Self::Refuse }
    }
}

/// How many values of each column are lost. No `Debug`: these counts are private.
#[derive(Clone)]
pub(crate) struct Lost(Vec<u64>);

impl Lost {
    pub(crate) fn none(columns: usize) -> Self {
        Self(vec![0; columns])
    }

    /// Counts a batch.
    pub(crate) fn add(&mut self, columns: &[Column], rows: &Rows) {
        for ((lost, column), values) in self.0.iter_mut().zip(columns).zip(&rows.columns) {
            *lost += match (values, column.domain()) {
                (ColumnValues::Numbers(numbers), Domain::Numeric(bounds)) => {
                    let (lo, hi) = (bounds.lo(), bounds.hi());
                    // Neither holds of NaN.
                    numbers.iter().filter(|&&number| !(lo <= number && number <= hi)).count() as u64
                }
                (ColumnValues::Levels(codes), _) => {
                    codes.iter().filter(|&&code| code == MISSING_LEVEL).count() as u64
                }
                (ColumnValues::Numbers(_), Domain::Categorical { .. }) => {
                    unreachable!("values are read as the study says")
                }
            };
        }
    }

    /// Adds what somebody else counted, column by column; saturates, as an engine may claim
    /// anything.
    pub(crate) fn merge(&mut self, counts: impl IntoIterator<Item = u64>) {
        for (lost, more) in self.0.iter_mut().zip(counts) {
            *lost = lost.saturating_add(more);
        }
    }

    pub(crate) fn counts(&self) -> impl Iterator<Item = u64> {
        self.0.iter().copied()
    }

    /// Refuses a table of so many rows if most values of a column are lost.
    ///
    /// # Privacy
    /// The answer depends on the table and costs nothing, so it is recorded like other refusals. It
    /// is about counts over all rows: replacing one person's row changes it only where a count is
    /// just at half of them (docs/PRIVACY.md#refusals).
    pub(crate) fn refuse(&self, table: &str, columns: &[Column], rows: u64) -> Result<(), Error> {
        let mostly = |lost: u64| lost > rows / 2;
        let mut names = columns.iter().zip(self.counts()).filter(|(_, lost)| mostly(*lost));
        let Some((first, _)) = names.next() else { return Ok(()) };
        let others: Vec<String> = names.map(|(column, _)| format!("{:?}", column.name())).collect();
        let others = if others.is_empty() {
            String::new()
        } else {
            format!(", and so are those of {}", others.join(", "))
        };
        let what = match first.domain() {
            Domain::Numeric(bounds) => {
                format!("are missing or outside of its bounds, {} to {}", bounds.lo(), bounds.hi())
            }
            Domain::Categorical { .. } => "are missing or none of its levels".to_owned(),
        };
        let problem = format!(
            "more than half of its values {what}{others}; a release would say next to nothing of them"
        );
        Err(Error::Column {
            table: table.to_owned(),
            column: first.name().to_owned(),
            problem: Problem::with(problem, Remedy::AcceptLost),
        }
        .refusing(Refusal::LostValues))
    }
}
