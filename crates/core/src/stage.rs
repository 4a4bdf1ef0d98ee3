//! Stages: the noised statistics that make up a release.
//!
//! A stage is a pure function from rows, and from published results of earlier stages, to integer sums, with one
//! noise scale a sum, such that replacing a subject changes the sums by at most the stage's share of the budget:
//! Σ(δᵢ/σᵢ)² ≤ μ_q². A [`Stage`] holds everything that is public about it: how rows are encoded, what is summed,
//! and the noise.

use crate::accounting::Share;
use crate::encoding::{Q, RowEncoder, Values};
use crate::mixing::{Mixing, SubjectDigest, add_bernoulli, add_sparse};
use crate::noise::{NOISED_SUM_LIMIT, Sigma, add_noise};
use rand_core::Rng;

/// What a stage sums over its rows.
#[derive(Clone, Debug, PartialEq)]
pub enum Statistic {
    /// Every encoded column, then the squares of these columns.
    Standardise {
        /// The columns whose squares are summed.
        squares: Vec<usize>,
    },
    /// Every encoded column, then its square, then the products of pairs i < j in the order (0,1), (0,2), …
    Moments,
    /// Rows mixed into k rows.
    Mixed {
        /// Which matrix mixes the subjects.
        mixing: Mixing,
        /// Number of mixed rows.
        k: u64,
    },
}

/// One noised statistic of a release.
#[derive(Clone, Debug, PartialEq)]
pub struct Stage {
    /// Its name in manifests and files.
    pub name: &'static str,
    /// Its part of the release's μ².
    pub share: Share,
    /// How rows are encoded.
    pub encoder: RowEncoder,
    /// What is summed.
    pub statistic: Statistic,
    /// The noise: runs of sums with the same scale, in order.
    pub noise: Vec<(usize, Sigma)>,
}

/// Sums that stay integers in a manifest are kept within this; no true sum reaches it.
const INTEGER_SUM_LIMIT: i64 = i64::MAX;

impl Stage {
    /// How many sums it has.
    pub fn coordinates(&self) -> usize {
        let width = self.encoder.width();
        match &self.statistic {
            Statistic::Standardise { squares } => width + squares.len(),
            Statistic::Moments => moment_count(width),
            Statistic::Mixed { k, .. } => *k as usize * width,
        }
    }

    /// Noised sums are clamped to ± this.
    pub fn sum_limit(&self) -> i64 {
        match self.statistic {
            Statistic::Mixed { .. } => NOISED_SUM_LIMIT,
            Statistic::Standardise { .. } | Statistic::Moments => INTEGER_SUM_LIMIT,
        }
    }

    /// Q√w: a published value of the mixed rows is the integer sum divided by this.
    pub fn scale(&self) -> f64 {
        match self.statistic {
            Statistic::Mixed { mixing, k } => f64::from(Q) * (mixing.column_norm_squared(k) as f64).sqrt(),
            Statistic::Standardise { .. } | Statistic::Moments => 1.0,
        }
    }

    /// Standard deviation of the noise in the first sum, in published units, that of rounding included.
    pub fn noise_level(&self) -> f64 {
        ((self.noise[0].1.get() as f64).powi(2) + 1.0 / 12.0).sqrt() / self.scale()
    }

    /// Row and column of a sum, for people and for engines; `names` are those of the encoded columns.
    pub fn label<'a>(&self, coordinate: usize, names: &'a [String]) -> (String, &'a str) {
        let width = self.encoder.width();
        match &self.statistic {
            Statistic::Mixed { .. } => ((coordinate / width).to_string(), &names[coordinate % width]),
            _ if coordinate < width => ("sum".to_owned(), &names[coordinate]),
            Statistic::Standardise { squares } => ("square".to_owned(), &names[squares[coordinate - width]]),
            Statistic::Moments if coordinate < 2 * width => ("square".to_owned(), &names[coordinate - width]),
            Statistic::Moments => {
                let (i, j) =
                    pairs(width).nth(coordinate - 2 * width).expect("the coordinate is one of the stage");
                (format!("times {}", names[i]), &names[j])
            }
        }
    }

    /// Encodes a batch of subjects, row by row.
    pub fn encode(&self, values: &[Values<'_>], count: usize) -> Vec<i32> {
        self.encoder.encode(values, count)
    }

    /// Adds encoded rows to the sums. `first` is the position of the first one in the table.
    pub fn accumulate(&self, subjects: &[SubjectDigest], first: u64, encoded: &[i32], sums: &mut [i64]) {
        let width = self.encoder.width();
        match &self.statistic {
            Statistic::Standardise { squares } => {
                let (own, squared) = sums.split_at_mut(width);
                for row in encoded.chunks_exact(width) {
                    for (sum, &q) in own.iter_mut().zip(row) {
                        *sum += i64::from(q);
                    }
                    for (sum, &j) in squared.iter_mut().zip(squares) {
                        *sum += i64::from(row[j]).pow(2);
                    }
                }
            }
            Statistic::Moments => {
                for row in encoded.chunks_exact(width) {
                    add_moments(row, sums);
                }
            }
            Statistic::Mixed { mixing: Mixing::Sparse, k } => add_sparse(subjects, encoded, width, *k, sums),
            Statistic::Mixed { mixing: Mixing::Bernoulli, k } => {
                add_bernoulli(subjects, encoded, width, *k, sums);
            }
            Statistic::Mixed { mixing: Mixing::Identity, .. } => {
                let start = first as usize * width;
                for (sum, &q) in sums[start..start + encoded.len()].iter_mut().zip(encoded) {
                    *sum += i64::from(q);
                }
            }
        }
    }
}

impl Stage {
    /// Adds the stage's noise to its sums.
    ///
    /// # Privacy
    /// This is the Gaussian mechanism of docs/PRIVACY.md#noise.
    pub fn add_noise<R: Rng + ?Sized>(&self, sums: &mut [i64], rng: &mut R) {
        let mut rest = sums;
        for &(count, sigma) in &self.noise {
            let (run, others) = rest.split_at_mut(count);
            add_noise(run, sigma, self.sum_limit(), rng);
            rest = others;
        }
        assert!(rest.is_empty(), "every sum has a noise scale");
    }
}

/// Sums, squares and products of so many columns.
pub(crate) fn moment_count(width: usize) -> usize {
    2 * width + width * width.saturating_sub(1) / 2
}

/// Pairs i < j in the order of their products among the moments.
pub(crate) fn pairs(width: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..width).flat_map(move |i| (i + 1..width).map(move |j| (i, j)))
}

fn add_moments(row: &[i32], sums: &mut [i64]) {
    let width = row.len();
    let (own, rest) = sums.split_at_mut(width);
    let (squares, mut products) = rest.split_at_mut(width);
    for (i, &q) in row.iter().enumerate() {
        let q = i64::from(q);
        own[i] += q;
        squares[i] += q * q;
        let (of_column, others) = products.split_at_mut(width - 1 - i);
        for (sum, &other) in of_column.iter_mut().zip(&row[i + 1..]) {
            *sum += q * i64::from(other);
        }
        products = others;
    }
}
