//! A table as the parties hold it and as they would encode it, in memory.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use anyhow::{Result, anyhow};
use faer::{Mat, Scale, Side};
use potluck_core::accounting::{Delta, Epsilon, Mu, Share, sigma_for};
use potluck_core::encoding::Q;
use potluck_core::learn::Moments;
use potluck_core::mixing::{Mixing, MixingKey, add_bernoulli, add_sparse};
use potluck_core::noise::{NOISED_SUM_LIMIT, Sigma};
use potluck_simulation::Subjects;
use rand_core::SeedableRng;
use rand_distr::{ChiSquared, Distribution, StandardNormal};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::args::Common;
use crate::holdings::Holdings;
use crate::noise::NoiseKind;
use crate::outcomes::Rows;
use crate::released::{Own, Released};
use crate::seeds::Seed;

/// Rows worked on at a time: they stay in cache.
const BLOCK: usize = 4096;

/// Rows of all parties side by side, as the paper's methods encode them; the label is the last
/// column.
pub(crate) struct Table {
    width: usize,
    rows: Vec<i32>,
    /// The largest number of columns of any party.
    largest_party: usize,
    /// The same columns, in the same order and units, as the parties hold them.
    holdings: Holdings,
}

impl Table {
    pub(crate) fn new(width: usize, rows: Vec<i32>, largest_party: usize, holdings: Holdings) -> Self {
        assert_eq!(rows.len(), width * holdings.rows(), "whole rows");
        Self { width, rows, largest_party, holdings }
    }

    pub(crate) fn n(&self) -> usize {
        self.rows.len() / self.width
    }

    pub(crate) fn label(&self) -> usize {
        self.width - 1
    }

    pub(crate) fn features(&self) -> Vec<usize> {
        (0..self.width - 1).collect()
    }

    /// Features in units of 1, and a yes/no label.
    pub(crate) fn rows_and_labels(&self) -> Rows {
        let width = self.width - 1;
        let mut rows = Rows { width, features: Vec::with_capacity(self.n() * width), labels: Vec::new() };
        for index in 0..self.n() {
            rows.features.extend(self.row(index).take(width));
            rows.labels.push(self.row(index).nth(width).is_some_and(|label| label > 0.5));
        }
        rows
    }

    /// The same columns as the parties hold them.
    pub(crate) fn into_holdings(self) -> Holdings {
        self.holdings
    }

    /// Fills a block with encoded rows from `first` on.
    fn copy_rows(&self, first: usize, block: &mut [i64]) {
        let rows = &self.rows[first * self.width..];
        block.iter_mut().zip(rows).for_each(|(z, &q)| *z = i64::from(q));
    }

    /// Encoded rows in units of 1.
    pub(crate) fn row(&self, index: usize) -> impl Iterator<Item = f64> {
        self.rows[index * self.width..(index + 1) * self.width].iter().map(|&q| f64::from(q) / f64::from(Q))
    }
}

impl Table {
    /// Mean squared error on test rows of predicting the mean of these rows.
    pub(crate) fn mean_loss(&self, test: &Self) -> f64 {
        let label = |table: &Self, row: usize| {
            f64::from(table.rows[row * table.width + table.label()]) / f64::from(Q)
        };
        let centre = (0..self.n()).map(|row| label(self, row)).sum::<f64>() / self.n() as f64;
        (0..test.n()).map(|row| (label(test, row) - centre).powi(2)).sum::<f64>() / test.n() as f64
    }
}

/// The privacy of each party's release.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Privacy {
    pub(crate) epsilon: f64,
    pub(crate) delta: f64,
}

impl Privacy {
    /// μ by the paper's classical calibration; σ(ε, δ) of the paper is 1/μ.
    pub(crate) fn classical(self) -> Result<Mu> {
        Ok(Mu::classical(Epsilon::new(self.epsilon)?, Delta::new(self.delta)?)?)
    }
}

/// A table with the seed of one repetition, and what several methods can share.
pub(crate) struct Cell<'a> {
    table: &'a Table,
    seed: Seed,
    common: &'a Common,
    /// The largest number of rows that anyone will ask of the Bernoulli matrix.
    bernoulli_rows: u64,
    subjects: OnceCell<Subjects>,
    bernoulli: OnceCell<Vec<i64>>,
    plain_gram: OnceCell<Mat<f64>>,
    noisy_rows: RefCell<HashMap<u64, Moments>>,
    released: RefCell<HashMap<(u64, &'static str), Rc<Released>>>,
}

impl<'a> Cell<'a> {
    pub(crate) fn new(table: &'a Table, seed: Seed, common: &'a Common, bernoulli_rows: u64) -> Self {
        Self {
            table,
            seed,
            common,
            bernoulli_rows,
            subjects: OnceCell::new(),
            bernoulli: OnceCell::new(),
            plain_gram: OnceCell::new(),
            noisy_rows: RefCell::default(),
            released: RefCell::default(),
        }
    }

    pub(crate) fn table(&self) -> &Table {
        self.table
    }

    /// The noise scale of the paper: 4·d_max·σ² for entries of (mixing/√w)·D, in units of the
    /// integer sums.
    fn sigma(&self, privacy: Privacy, weight: u64) -> Result<Sigma> {
        let norm_squared = self.table.largest_party as u128 * u128::from(Q.unsigned_abs()).pow(2);
        Ok(sigma_for(privacy.classical()?, Share::WHOLE, (4 * norm_squared * u128::from(weight), 1))?)
    }

    fn subjects(&self) -> &Subjects {
        self.subjects.get_or_init(|| subjects(self.table.n(), self.seed))
    }

    /// What every party publishes by a method of our own, at the same (ε, δ) a party.
    pub(crate) fn released(&self, method: Own, privacy: Privacy) -> Result<Rc<Released>> {
        let key = (privacy.epsilon.to_bits(), method.word());
        if let Some(released) = self.released.borrow().get(&key) {
            return Ok(Rc::clone(released));
        }
        let release = self.common.release(privacy).by(method);
        let seed = self.seed.of(&privacy.epsilon.to_string());
        let released = Rc::new(release.run(&self.table.holdings, self.subjects(), seed)?);
        self.released.borrow_mut().insert(key, Rc::clone(&released));
        Ok(released)
    }

    /// Exact sums of the Bernoulli mixing; the first k rows of one matrix serve every k.
    fn bernoulli_sums(&self, k: u64) -> &[i64] {
        let width = self.table.width;
        let sums = self.bernoulli.get_or_init(|| {
            let mut sums = vec![0; self.bernoulli_rows as usize * width];
            add_bernoulli(self.subjects().digests(), &self.table.rows, width, self.bernoulli_rows, &mut sums);
            sums
        });
        &sums[..k as usize * width]
    }

    /// D′D of the table itself, in units of 1.
    fn plain_gram(&self) -> &Mat<f64> {
        self.plain_gram.get_or_init(|| {
            self.gram(self.table.n(), f64::from(Q), |first, block| self.table.copy_rows(first, block))
        })
    }

    /// Second moments of the table itself.
    pub(crate) fn plain_moments(&self) -> Result<Moments> {
        self.moments(self.table.n(), f64::from(Q), 0.0, self.plain_gram())
    }

    /// Means and covariances of the table itself.
    pub(crate) fn plain_covariance(&self) -> (Vec<f64>, Mat<f64>) {
        let (n, width) = (self.table.n(), self.table.width);
        let mut means = vec![0.0; width];
        for index in 0..n {
            means.iter_mut().zip(self.table.row(index)).for_each(|(mean, value)| *mean += value / n as f64);
        }
        let mut covariance = Mat::<f64>::zeros(width, width);
        for first in (0..n).step_by(BLOCK) {
            let block = &self.table.rows[first * width..(first + BLOCK).min(n) * width];
            let z = Mat::from_fn(block.len() / width, width, |i, j| {
                f64::from(block[i * width + j]) / f64::from(Q) - means[j]
            });
            covariance += z.transpose() * &z;
        }
        covariance *= 1.0 / n as f64;
        (means, covariance)
    }

    /// Second moments of all rows with noise: what DGM and BGM learn from.
    pub(crate) fn noisy_row_moments(&self, privacy: Privacy) -> Result<Moments> {
        let key = privacy.epsilon.to_bits();
        if let Some(moments) = self.noisy_rows.borrow().get(&key) {
            return Ok(moments.clone());
        }
        let sigma = self.sigma(privacy, 1)?;
        let seed = self.seed.of(&format!("rows {}", privacy.epsilon));
        let (n, width) = (self.table.n(), self.table.width);
        let gram = if self.common.noise() == NoiseKind::Fast && n > 2 * width {
            noisy_gram(self.plain_gram(), n, variance(sigma).sqrt() / f64::from(Q), seed)?
        } else {
            let mut noise = self.common.noise().start(seed);
            self.gram(n, f64::from(Q), |first, block| {
                self.table.copy_rows(first, block);
                noise.add(block, sigma, NOISED_SUM_LIMIT);
            })
        };
        let moments = self.moments(n, f64::from(Q), variance(sigma), &gram)?;
        self.noisy_rows.borrow_mut().insert(key, moments.clone());
        Ok(moments)
    }

    /// Second moments of k mixed rows, with noise unless `privacy` is none: what RMGM learns from.
    pub(crate) fn mixed_moments(&self, privacy: Option<Privacy>, mixing: Mixing, k: u64) -> Result<Moments> {
        let width = self.table.width;
        let weight = mixing.column_norm_squared(k);
        let mut sums = match mixing {
            Mixing::Bernoulli => self.bernoulli_sums(k).to_vec(),
            Mixing::Sparse => {
                let mut sums = vec![0; k as usize * width];
                add_sparse(self.subjects().digests(), &self.table.rows, width, k, &mut sums);
                sums
            }
            Mixing::Identity | Mixing::Buckets => anyhow::bail!("{mixing:?} is not a mixing of rmgm"),
        };
        let mut noise_variance = 0.0;
        if let Some(privacy) = privacy {
            let sigma = self.sigma(privacy, weight)?;
            let purpose = format!("{mixing:?} {k} {}", privacy.epsilon);
            self.common.noise().start(self.seed.of(&purpose)).add(&mut sums, sigma, NOISED_SUM_LIMIT);
            noise_variance = variance(sigma);
        }
        let scale = f64::from(Q) * (weight as f64).sqrt();
        let gram = self.gram(k as usize, scale, |first, block| {
            block.copy_from_slice(&sums[first * width..first * width + block.len()]);
        });
        self.moments(k as usize, scale, noise_variance, &gram)
    }

    /// Z′Z over `k` rows of integers divided by `scale`, block by block.
    fn gram(&self, k: usize, scale: f64, mut fill: impl FnMut(usize, &mut [i64])) -> Mat<f64> {
        let width = self.table.width;
        let mut gram = Mat::<f64>::zeros(width, width);
        let mut block = vec![0_i64; BLOCK * width];
        let mut z = Mat::<f64>::zeros(BLOCK, width);
        for first in (0..k).step_by(BLOCK) {
            let count = BLOCK.min(k - first);
            let block = &mut block[..count * width];
            fill(first, block);
            for (j, column) in z.col_iter_mut().enumerate() {
                let values = block[j..].iter().step_by(width);
                column.iter_mut().zip(values).for_each(|(z, &sum)| *z = sum as f64);
            }
            let z = z.subrows(0, count);
            gram += z.transpose() * z;
        }
        gram * Scale(1.0 / (scale * scale))
    }

    /// Moments over `k` rows whose products are known.
    fn moments(&self, k: usize, scale: f64, noise_variance: f64, gram: &Mat<f64>) -> Result<Moments> {
        let n = self.table.n() as f64;
        let noise = noise_variance / (scale * scale) * k as f64 / n;
        Ok(Moments::new(vec![noise; self.table.width], |i, j| gram[(i, j)] / n)?)
    }
}

/// (D + N)′(D + N) for n rows N of independent normal noise of this size, given D′D: its exact
/// distribution without drawing a number for each value.
///
/// With an orthonormal basis Q of a space of p dimensions that holds the columns of D, Q′N = G is p
/// × p normal and what of N is orthogonal to Q has independent products W, Wishart with n − p
/// degrees. So D′N = SG with S = √(D′D), and N′N = G′G + W.
fn noisy_gram(plain: &Mat<f64>, n: usize, size: f64, seed: Seed) -> Result<Mat<f64>> {
    let mut rng = Xoshiro256PlusPlus::from_seed(seed.bytes());
    let p = plain.nrows();
    let eigen = plain.self_adjoint_eigen(Side::Lower).map_err(|_| anyhow!("the moments are not finite"))?;
    let (vectors, values) = (eigen.U(), eigen.S().column_vector());
    let root = Mat::from_fn(p, p, |i, j| vectors[(i, j)] * values[j].max(0.0).sqrt()) * vectors.transpose();
    let normal = Mat::from_fn(p, p, |_, _| size * Distribution::<f64>::sample(&StandardNormal, &mut rng));
    // Bartlett's decomposition of the Wishart matrix.
    let mut factor = Mat::<f64>::zeros(p, p);
    for i in 0..p {
        factor[(i, i)] = size * ChiSquared::new((n - p - i) as f64)?.sample(&mut rng).sqrt();
        for j in 0..i {
            factor[(i, j)] = size * Distribution::<f64>::sample(&StandardNormal, &mut rng);
        }
    }
    let cross = &root * &normal;
    Ok(plain + &cross + cross.transpose() + normal.transpose() * &normal + &factor * factor.transpose())
}

/// What stands for subjects 0, 1, … under a mixing key of the seed's own.
pub(crate) fn subjects(n: usize, seed: Seed) -> Subjects {
    Subjects::new(MixingKey::new(seed.of("mixing key").bytes()), n)
}

/// Variance of rounded noise.
fn variance(sigma: Sigma) -> f64 {
    (sigma.get() as f64).powi(2) + 1.0 / 12.0
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// The noise of rows, drawn one by one and drawn through their products, has the same mean and
    /// spread.
    #[test]
    fn products_of_noise_have_the_distribution_of_noisy_rows() {
        const ROWS: usize = 40;
        const REPEATS: u64 = 4000;
        let d = Mat::from_fn(ROWS, 3, |i, j| ((i * (j + 2)) % 7) as f64 / 3.0 - 1.0);
        let plain = d.transpose() * &d;
        let size = 0.7;
        let by_rows = |seed: Seed| {
            let mut rng = Xoshiro256PlusPlus::from_seed(seed.bytes());
            let z = Mat::from_fn(ROWS, 3, |i, j| {
                d[(i, j)] + size * Distribution::<f64>::sample(&StandardNormal, &mut rng)
            });
            z.transpose() * &z
        };
        let by_products = |seed: Seed| noisy_gram(&plain, ROWS, size, seed).unwrap();
        let draw = |name: &str, sample: &dyn Fn(Seed) -> Mat<f64>| -> Vec<[f64; 3]> {
            let seed = |repeat: u64| Seed::new(repeat).of(name);
            (0..REPEATS)
                .map(|repeat| sample(seed(repeat)))
                .map(|m| [m[(0, 0)], m[(0, 1)], m[(1, 2)]])
                .collect()
        };
        let (rows, products) = (draw("rows", &by_rows), draw("products", &by_products));
        for entry in 0..3 {
            let moments = |sample: &[[f64; 3]]| {
                let mean = sample.iter().map(|m| m[entry]).sum::<f64>() / REPEATS as f64;
                let variance = sample.iter().map(|m| (m[entry] - mean).powi(2)).sum::<f64>() / REPEATS as f64;
                (mean, variance)
            };
            let ((mean, variance), (other_mean, other_variance)) = (moments(&rows), moments(&products));
            let error = (2.0 * variance / REPEATS as f64).sqrt();
            assert!((mean - other_mean).abs() < 5.0 * error, "{entry}: {mean} {other_mean}");
            // The spread of a sample variance of 4,000 is 2.2%.
            assert!((variance / other_variance).ln().abs() < 0.16, "{entry}: {variance} {other_variance}");
        }
    }
}
