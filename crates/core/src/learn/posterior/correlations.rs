//! Correlations between features of different parties (docs/LEARNERS.md#posterior, step 5).

use faer::{Mat, Side};

use super::learned::{MOST_TRUSTED, inverse, part_that_is_sound};
use super::shrink::{Noisy, ScaleMixture, geometric_grid, normalised};
use super::whiten::Whitened;
use crate::learn::LearnError;

/// Steps of the search for the best matrix.
const MOST_STEPS: usize = 60;

/// What correlations are estimated for.
#[derive(Clone, Copy)]
pub(super) enum Purpose {
    /// To read effects from, one step beyond: the step is the shorter the nearer the start.
    Reading,
    /// To predict. Weights are products of the inverse, so that a matrix a little too near to a
    /// singular one predicts far worse than one too far from it.
    Predicting,
}

impl Purpose {
    /// How strongly matrices of the features near singular ones are avoided: the prior has
    /// det(I + M) to half of this.
    fn barrier(self) -> f64 {
        match self {
            Self::Reading => 0.0,
            Self::Predicting => 20.0,
        }
    }
}

/// Correlations between parties, shrunk towards nothing or towards what the label implies,
/// whichever the data prefer, each by how large it seems.
pub(super) struct Correlations {
    /// As they were found.
    pub(super) found: Mat<f64>,
    /// Variance of the error of each entry.
    pub(super) variance: Mat<f64>,
    /// Prior variance of an entry if all were alike.
    pub(super) prior: f64,
    /// The same as found, between coordinates that stand for one feature each.
    pub(super) of_features: Pairs,
    /// What they are shrunk towards.
    about: Mat<f64>,
    /// Posterior means and variances beyond that, each by itself.
    shrunk: Noisy,
}

/// Entries between parties above the diagonal, with the variances of their errors.
pub(super) struct Pairs {
    pub(super) places: Vec<(usize, usize)>,
    pub(super) entries: Noisy,
}

/// A symmetric matrix with entries at these places and nothing elsewhere.
pub(super) fn symmetric(size: usize, places: &[(usize, usize)], entries: &[f64]) -> Mat<f64> {
    let mut matrix = Mat::zeros(size, size);
    for (&(i, j), &entry) in places.iter().zip(entries) {
        matrix[(i, j)] = entry;
        matrix[(j, i)] = entry;
    }
    matrix
}

impl Correlations {
    /// From what was found, `means` of the covariances with the label, and the number of mixed
    /// rows.
    pub(super) fn new(white: &Whitened, found: Mat<f64>, variance: Mat<f64>, means: &[f64], k: f64) -> Self {
        let d = found.nrows();
        let places: Vec<(usize, usize)> = (0..d)
            .flat_map(|i| (i + 1..d).map(move |j| (i, j)))
            .filter(|&(i, j)| white.apart(i, j))
            .collect();
        if places.is_empty() {
            let nothing = || Noisy { values: Vec::new(), variances: Vec::new() };
            let of_features = Pairs { places, entries: nothing() };
            let about = Mat::zeros(d, d);
            return Self { found, variance, prior: 0.0, of_features, about, shrunk: nothing() };
        }
        let (prior, trusted) = prior_of_all(&places, &found, &variance, means, k);
        let about = white.implied(means) * faer::Scale(trusted);
        let squares = Mat::from_fn(d, d, |i, j| white.to_features[(i, j)].powi(2));
        let errors = &squares * &variance * squares.transpose();
        let at = |matrix: &Mat<f64>| places.iter().map(|&place| matrix[place]).collect::<Vec<f64>>();
        let beyond = Noisy { values: at(&white.of_features(&(&found - &about))), variances: at(&errors) };
        let factors = ScaleMixture::of(&beyond).factors(&beyond);
        let times = |values: &[f64]| values.iter().zip(&factors).map(|(x, factor)| x * factor).collect();
        let shrunk = Noisy { values: times(&beyond.values), variances: times(&beyond.variances) };
        let entries = Noisy { values: at(&white.of_features(&found)), variances: at(&errors) };
        Self { found, variance, prior, of_features: Pairs { places, entries }, about, shrunk }
    }

    /// Their posterior means, given `means` of the covariances with the label: the matrix of the
    /// features and the label is kept clear of singular.
    pub(super) fn estimate(
        &self,
        white: &Whitened,
        means: &[f64],
        purpose: Purpose,
    ) -> Result<Mat<f64>, LearnError> {
        if self.of_features.places.is_empty() {
            return Ok(self.about.clone());
        }
        let start = white.of_features(&(white.implied(means) - &self.about));
        let left = white.of_features(&white.left_by_parties(means)) - &start;
        let descent = Descent {
            left,
            places: &self.of_features.places,
            shrunk: &self.shrunk,
            barrier: purpose.barrier(),
        };
        let beyond = descent.minimum(&start)?;
        Ok(white.to_features.transpose() * beyond * &white.to_features + &self.about)
    }
}

/// The prior variance if that of all entries is the same, and how far the data prefer what the
/// label implies to nothing.
fn prior_of_all(
    places: &[(usize, usize)],
    found: &Mat<f64>,
    variance: &Mat<f64>,
    means: &[f64],
    k: f64,
) -> (f64, f64) {
    let d = means.len() as f64;
    let temper = 1.0 / (1.0 + 2.0 * d / k);
    let grid = geometric_grid(1.0 / d, 1e-3);
    let mut logs = Vec::with_capacity(2 * grid.len());
    for implied in [0.0, 1.0] {
        for g in &grid {
            let log = |&(i, j): &(usize, usize)| {
                let v = g + variance[(i, j)];
                v.ln() + (found[(i, j)] - implied * means[i] * means[j]).powi(2) / v
            };
            logs.push(-0.5 * temper * places.iter().map(log).sum::<f64>());
        }
    }
    let weights = normalised(&logs);
    let prior = weights.iter().zip(grid.iter().cycle()).map(|(weight, g)| weight * g).sum();
    (prior, weights[grid.len()..].iter().sum())
}

/// Minimises Σ(M − x̄)²/2E − logdet(left + M)/2 − barrier·logdet(I + M)/2 over the entries between
/// parties, x̄ their posterior means by themselves, E the posterior variances, and left + M what
/// the label leaves of the covariance of the features: it is singular where the matrix of the
/// features and the label is.
struct Descent<'a> {
    left: Mat<f64>,
    places: &'a [(usize, usize)],
    shrunk: &'a Noisy,
    barrier: f64,
}

impl Descent<'_> {
    /// What the label leaves, and I + M.
    fn both(&self, entries: &[f64]) -> (Mat<f64>, Mat<f64>) {
        let d = self.left.nrows();
        let between = symmetric(d, self.places, entries);
        (&self.left + &between, between + Mat::<f64>::identity(d, d))
    }

    fn objective(&self, entries: &[f64]) -> f64 {
        let half_logdet = |matrix: &Mat<f64>| {
            let factor = matrix.llt(Side::Lower).ok()?;
            Some((0..matrix.nrows()).map(|i| factor.L()[(i, i)].ln()).sum::<f64>())
        };
        let (left, features) = self.both(entries);
        let (Some(with_label), Some(alone)) = (half_logdet(&left), half_logdet(&features)) else {
            return f64::INFINITY;
        };
        let Noisy { values, variances } = self.shrunk;
        let misfit: f64 =
            (0..entries.len()).map(|at| (entries[at] - values[at]).powi(2) / variances[at]).sum();
        0.5 * misfit - with_label - self.barrier * alone
    }

    /// Newton's step with the diagonal of the Hessian.
    fn step(&self, entries: &[f64]) -> Option<Vec<f64>> {
        let (left, features) = self.both(entries);
        let (left, features) = (inverse(&left)?, inverse(&features)?);
        let of_entry = |(at, &(i, j)): (usize, &(usize, usize))| {
            let variance = self.shrunk.variances[at];
            let pull = left[(i, j)] + self.barrier * features[(i, j)];
            let bend_of = |inverse: &Mat<f64>| inverse[(i, j)].powi(2) + inverse[(i, i)] * inverse[(j, j)];
            let bend = bend_of(&left) + self.barrier * bend_of(&features);
            -((entries[at] - self.shrunk.values[at]) / variance - pull) / (1.0 / variance + bend)
        };
        Some(self.places.iter().enumerate().map(of_entry).collect())
    }

    /// From entries with which left + M is far from singular.
    fn minimum(&self, start: &Mat<f64>) -> Result<Mat<f64>, LearnError> {
        let d = self.left.nrows();
        let step = symmetric(d, self.places, &self.shrunk.values) - start;
        let first =
            start + &step * faer::Scale(part_that_is_sound(&(&self.left + start), &step, MOST_TRUSTED)?);
        let mut entries: Vec<f64> = self.places.iter().map(|&place| first[place]).collect();
        let mut value = self.objective(&entries);
        if !value.is_finite() {
            entries = self.places.iter().map(|&place| start[place]).collect();
            value = self.objective(&entries);
        }
        for _ in 0..MOST_STEPS {
            let Some(step) = self.step(&entries) else { break };
            let along = |length: f64| -> Vec<f64> {
                entries.iter().zip(&step).map(|(entry, step)| entry + length * step).collect()
            };
            let mut length = 1.0;
            let mut next = along(length);
            let mut next_value = self.objective(&next);
            while length > 1e-4 && (next_value.is_nan() || next_value >= value) {
                length *= 0.5;
                next = along(length);
                next_value = self.objective(&next);
            }
            if length <= 1e-4 {
                break;
            }
            let done = value - next_value < 1e-5 * (1.0 + value.abs());
            entries = next;
            value = next_value;
            if done {
                break;
            }
        }
        Ok(symmetric(d, self.places, &entries))
    }
}
