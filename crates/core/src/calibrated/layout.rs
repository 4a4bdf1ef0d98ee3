//! The columns of one party.

use crate::encoding::Encoder;

/// The columns of one party.
#[derive(Clone, Debug, PartialEq)]
pub struct Layout {
    encoders: Vec<Encoder>,
    /// For each encoded column, whether it is numeric rather than a level.
    numeric: Vec<bool>,
}

impl Layout {
    /// Columns with these encodings.
    pub fn new(encoders: Vec<Encoder>) -> Self {
        let kinds = |encoder: &Encoder| vec![matches!(encoder, Encoder::Numeric(_)); encoder.width()];
        let numeric = encoders.iter().flat_map(kinds).collect();
        Self { encoders, numeric }
    }

    /// The encoding of each column.
    pub(crate) fn encoders(&self) -> &[Encoder] {
        &self.encoders
    }

    /// For each encoded column, whether it is numeric rather than a level.
    pub(super) fn numeric(&self) -> &[bool] {
        &self.numeric
    }

    /// d: number of encoded columns.
    pub fn width(&self) -> usize {
        self.numeric.len()
    }

    /// d_e: encoded columns that can vary on their own; the levels of a column sum to one.
    pub fn effective_width(&self) -> usize {
        let dependent = self.encoders.iter().filter(|encoder| encoder.width() > 1).count();
        self.width() - dependent
    }

    /// Encoded columns whose squares a standardisation round sums up.
    pub(super) fn squares(&self) -> Vec<usize> {
        (0..self.width()).filter(|&column| self.numeric[column]).collect()
    }

    /// Δ²: by how much replacing a subject can change a standardisation round, in units where Q is
    /// 1.
    ///
    /// # Privacy
    /// 4 for a numeric column, 2 for one with more than two levels, 1 for one with two: Lemma S,
    /// docs/PRIVACY.md#standardisation-stages-1-and-2.
    pub(super) fn change_squared(&self) -> u128 {
        let change = |encoder: &Encoder| match encoder {
            Encoder::Numeric(_) => 4,
            Encoder::Categorical(levels) if levels.width() > 1 => 2,
            Encoder::Categorical(_) => 1,
        };
        self.encoders.iter().map(change).sum()
    }
}
