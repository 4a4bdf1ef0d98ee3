//! Raw rows: what a party holds about a batch of subjects, before encoding.

use potluck_core::mixing::SubjectDigest;

/// Values of one column. No `Debug`: these are the private values themselves.
pub(crate) enum Values {
    /// Numbers; NaN and ±inf are missing.
    Numbers(Vec<f64>),
    /// Level codes; `MISSING_LEVEL` is missing.
    Levels(Vec<u32>),
}

/// A batch of subjects. No `Debug`.
pub(crate) struct Rows {
    /// Position of the first one in the table, from 0.
    pub(crate) first: u64,
    /// How many there are.
    pub(crate) count: usize,
    /// Who they are.
    pub(crate) subjects: Vec<SubjectDigest>,
    /// What is known of them, column by column in the study's order.
    pub(crate) columns: Vec<Values>,
}
