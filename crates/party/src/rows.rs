//! Raw rows: what a party holds about a batch of subjects, before encoding.

use arrow_buffer::ScalarBuffer;
use potluck_core::encoding::Values;
use potluck_core::mixing::SubjectDigest;

/// Values of one column. No `Debug`: these are the private values themselves.
pub(crate) enum ColumnValues {
    /// Numbers; NaN and ±inf are missing.
    Numbers(ScalarBuffer<f64>),
    /// Level codes; `MISSING_LEVEL` is missing.
    Levels(Vec<u32>),
}

impl ColumnValues {
    pub(crate) fn borrow(&self) -> Values<'_> {
        match self {
            Self::Numbers(numbers) => Values::Numbers(numbers),
            Self::Levels(codes) => Values::Levels(codes),
        }
    }
}

/// A batch of subjects. No `Debug`.
pub(crate) struct Rows {
    /// Position of the first one in the table, from 0.
    pub(crate) first: u64,
    /// How many there are.
    pub(crate) count: usize,
    /// Who they are; empty if nobody asked.
    pub(crate) subjects: Vec<SubjectDigest>,
    /// What is known of them, column by column in the study's order.
    pub(crate) columns: Vec<ColumnValues>,
}
