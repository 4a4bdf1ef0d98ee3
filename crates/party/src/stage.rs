//! Stages: the noised statistics that make up a release.
//!
//! A stage is a pure function from rows, and from published results of earlier stages, to integer sums, with
//! one noise scale a sum, such that replacing a subject changes the sums by at most the stage's share of the
//! budget: Σ(δᵢ/σᵢ)² ≤ μ_q².

use potluck_core::encoding::{Encoder, encode_levels, encode_numbers};
use potluck_core::mixing::{Mixing, add_bernoulli, add_sparse};
use potluck_core::noise::{Sigma, add_noise};
use potluck_release::study::{MIXED, MixedRows};
use rand_core::CryptoRng;
use zeroize::Zeroize;

use crate::rows::{Rows, Values};

/// Exact integer sums before noise. No `Debug`; wiped when dropped.
pub(crate) struct Sums(Vec<i64>);

impl Sums {
    pub(crate) fn zero(coordinates: usize) -> Self {
        Self(vec![0; coordinates])
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
    pub(crate) fn noised<R: CryptoRng>(mut self, stage: &dyn Stage, rng: &mut R) -> Vec<i64> {
        let mut start = 0;
        for (count, sigma) in stage.noise() {
            add_noise(&mut self.0[start..start + count], sigma, rng);
            start += count;
        }
        assert_eq!(start, self.0.len(), "every sum has a noise scale");
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

/// One noised statistic of a release.
pub(crate) trait Stage: Sync {
    /// Its name in manifests and files.
    fn name(&self) -> &'static str;

    /// How many sums it has.
    fn coordinates(&self) -> usize;

    /// The noise scales: runs of sums with the same scale, in order.
    fn noise(&self) -> Vec<(usize, Sigma)>;

    /// Row and column of a sum, for people and for engines.
    fn label(&self, coordinate: usize) -> (String, &str);

    /// What one batch contributes: encoded rows, one after the other.
    fn encode(&self, rows: &Rows) -> Vec<i32>;

    /// Adds encoded rows to the sums.
    fn accumulate(&self, rows: &Rows, encoded: &[i32], sums: &mut Sums);
}

/// The one stage of the paper's methods: rows in the ball, mixed.
pub(crate) struct MixedStage {
    mixed: MixedRows,
    sigma: Sigma,
}

impl MixedStage {
    pub(crate) fn new(mixed: MixedRows) -> Self {
        let sigma = Sigma::new(mixed.sigma).expect("sealing refuses noise scales out of range");
        Self { mixed, sigma }
    }

    fn width(&self) -> usize {
        self.mixed.names.len()
    }
}

impl Stage for MixedStage {
    fn name(&self) -> &'static str {
        MIXED
    }

    fn coordinates(&self) -> usize {
        self.mixed.k as usize * self.width()
    }

    fn noise(&self) -> Vec<(usize, Sigma)> {
        vec![(self.coordinates(), self.sigma)]
    }

    fn label(&self, coordinate: usize) -> (String, &str) {
        ((coordinate / self.width()).to_string(), &self.mixed.names[coordinate % self.width()])
    }

    fn encode(&self, rows: &Rows) -> Vec<i32> {
        let width = self.width();
        let mut encoded = vec![0; rows.count * width];
        let mut at = 0;
        for (encoder, values) in self.mixed.encoders.iter().zip(&rows.columns) {
            match (encoder, values) {
                (Encoder::Numeric(bounds), Values::Numbers(numbers)) => {
                    encode_numbers(*bounds, numbers, &mut encoded, width, at);
                }
                (Encoder::Categorical(levels), Values::Levels(codes)) => {
                    encode_levels(*levels, codes, &mut encoded, width, at);
                }
                _ => unreachable!("the table reader follows the study"),
            }
            at += encoder.width();
        }
        for row in encoded.chunks_exact_mut(width) {
            self.mixed.ball.project(row);
        }
        encoded
    }

    fn accumulate(&self, rows: &Rows, encoded: &[i32], sums: &mut Sums) {
        match self.mixed.mixing {
            Mixing::Sparse => add_sparse(&rows.subjects, encoded, self.width(), self.mixed.k, &mut sums.0),
            Mixing::Bernoulli => {
                add_bernoulli(&rows.subjects, encoded, self.width(), self.mixed.k, &mut sums.0);
            }
            Mixing::Identity => {
                let start = rows.first as usize * self.width();
                for (sum, &q) in sums.0[start..start + encoded.len()].iter_mut().zip(encoded) {
                    *sum += i64::from(q);
                }
            }
        }
    }
}
