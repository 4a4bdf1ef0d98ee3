//! Raw rows: what a party holds about a batch of subjects, before encoding.

use arrow_buffer::ScalarBuffer;
use potluck_core::encoding::{EncodedRows, Values};
use potluck_core::stage::Stage;

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
    /// How many there are.
    pub(crate) count: usize,
    /// What is known of them, column by column in the study's order.
    pub(crate) columns: Vec<ColumnValues>,
}

impl Rows {
    /// Encodes the batch for a stage.
    pub(crate) fn encode(&self, stage: &Stage, encoded: &mut EncodedRows) {
        let values: Vec<Values<'_>> = self.columns.iter().map(ColumnValues::borrow).collect();
        stage.encode(&values, self.count, encoded);
    }
}
