//! Exact sums of a stage, before and after noise.

use potluck_core::encoding::{EncodedRows, Values};
use potluck_core::stage::Stage;
use rand_core::CryptoRng;
use zeroize::Zeroize;

use crate::rows::Rows;

/// Exact integer sums before noise. No `Debug`; wiped when dropped.
pub(crate) struct Sums(Vec<i64>);

impl Sums {
    pub(crate) fn zero(stage: &Stage) -> Self {
        Self(vec![0; stage.coordinates()])
    }

    /// Encodes a batch for the stage.
    pub(crate) fn encode(stage: &Stage, rows: &Rows, encoded: &mut EncodedRows) {
        let values: Vec<Values<'_>> = rows.columns.iter().map(|values| values.borrow()).collect();
        stage.encode(&values, rows.count, encoded);
    }

    /// Adds encoded rows.
    pub(crate) fn add(&mut self, stage: &Stage, rows: &Rows, encoded: &EncodedRows) {
        stage.accumulate(&rows.subjects, rows.first, encoded, &mut self.0);
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        for (sum, part) in self.0.iter_mut().zip(&other.0) {
            // Overflow is excluded when the study is checked: n·C < 2⁶².
            *sum += part;
        }
    }

    /// Adds the stage's noise; the exact sums are gone afterwards.
    ///
    /// # Privacy
    /// This is the Gaussian mechanism of docs/PRIVACY.md#noise.
    pub(crate) fn noised<R: CryptoRng>(mut self, stage: &Stage, rng: &mut R) -> Vec<i64> {
        stage.add_noise(&mut self.0, rng);
        std::mem::take(&mut self.0)
    }

    /// The exact sums, for the party's own audit file.
    pub(crate) fn values(&self) -> &[i64] {
        &self.0
    }
}

impl Drop for Sums {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}
