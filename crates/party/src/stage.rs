//! Stages: the noised statistics that make up a release.
//!
//! A stage is a pure function from rows, and from published results of earlier stages, to integer sums, with
//! one noise scale a sum, such that replacing a subject changes the sums by at most the stage's share of the
//! budget: Σ(δᵢ/σᵢ)² ≤ μ_q².

use potluck_core::encoding::{Encoder, encode_levels, encode_numbers};
use potluck_core::mixing::Mixing;
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

    fn add_sparse(&self, rows: &Rows, encoded: &[i32], sums: &mut [i64]) {
        let width = self.width();
        for (subject, row) in rows.subjects.iter().zip(encoded.chunks_exact(width)) {
            let (bucket, sign) = subject.sparse_entry(self.mixed.k);
            let start = bucket as usize * width;
            for (sum, &q) in sums[start..start + width].iter_mut().zip(row) {
                *sum += sign * i64::from(q);
            }
        }
    }

    fn add_bernoulli(&self, rows: &Rows, encoded: &[i32], sums: &mut [i64]) {
        let (width, k) = (self.width(), self.mixed.k as usize);
        let mut words = vec![0; k.div_ceil(64)];
        let mut signs = vec![0_i64; k];
        // Column by column while the batch lasts, so that the inner loop runs over consecutive sums.
        let mut by_column = vec![0_i64; k * width];
        for (subject, row) in rows.subjects.iter().zip(encoded.chunks_exact(width)) {
            subject.bernoulli_signs(&mut words);
            for (i, sign) in signs.iter_mut().enumerate() {
                *sign = 2 * (words[i / 64] >> (i % 64) & 1) as i64 - 1;
            }
            for (column, &q) in by_column.chunks_exact_mut(k).zip(row) {
                let q = i64::from(q);
                for (sum, sign) in column.iter_mut().zip(&signs) {
                    *sum += sign * q;
                }
            }
        }
        for (j, column) in by_column.chunks_exact(k).enumerate() {
            for (i, sum) in column.iter().enumerate() {
                sums[i * width + j] += sum;
            }
        }
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
            Mixing::Sparse => self.add_sparse(rows, encoded, &mut sums.0),
            Mixing::Bernoulli => self.add_bernoulli(rows, encoded, &mut sums.0),
            Mixing::Identity => {
                let start = rows.first as usize * self.width();
                for (sum, &q) in sums.0[start..start + encoded.len()].iter_mut().zip(encoded) {
                    *sum += i64::from(q);
                }
            }
        }
    }
}
