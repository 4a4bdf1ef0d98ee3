//! Correlations between features of different parties.

use faer::{Mat, Side};

use super::shrink::{geometric_grid, normalised};
use super::whiten::Whitened;
use super::{inverse, smallest_eigenvalue};
use crate::learn::LearnError;

/// Which quantile of the prior variance intervals use.
const UPPER: f64 = 0.8;
const MOST_STEPS: usize = 30;

/// Correlations between parties, shrunk towards nothing or towards what the label implies, whichever the data prefer, with
/// the matrix kept positive definite.
pub(super) struct Correlations {
    pub(super) estimate: Mat<f64>,
    /// What was found beyond what it is shrunk towards.
    pub(super) beyond: Mat<f64>,
    /// Variance of the error of each entry.
    pub(super) variance: Mat<f64>,
    /// How much of each entry the data resolve.
    pub(super) resolved: Mat<f64>,
    /// Prior variance of an entry.
    pub(super) prior: f64,
    /// A value that the prior variance exceeds only now and then.
    pub(super) upper: f64,
}

impl Correlations {
    /// From what was found, `means` of the covariances with the label, and the number of mixed rows.
    pub(super) fn new(
        white: &Whitened,
        found: &Mat<f64>,
        variance: Mat<f64>,
        means: &[f64],
        k: f64,
    ) -> Result<Self, LearnError> {
        let d = found.nrows();
        let pairs: Vec<(usize, usize)> = (0..d)
            .flat_map(|i| (i + 1..d).map(move |j| (i, j)))
            .filter(|&(i, j)| white.apart(i, j))
            .collect();
        if pairs.is_empty() {
            let zero = || Mat::zeros(d, d);
            return Ok(Self {
                estimate: zero(),
                beyond: zero(),
                variance,
                resolved: zero(),
                prior: 0.0,
                upper: 0.0,
            });
        }
        let temper = 1.0 / (1.0 + 2.0 * d as f64 / k);
        let grid = geometric_grid(1.0 / d as f64, 1e-3);
        let mut logs = Vec::with_capacity(2 * grid.len());
        for implied in [0.0, 1.0] {
            for g in &grid {
                let log = |&(i, j): &(usize, usize)| {
                    let v = g + variance[(i, j)];
                    v.ln() + (found[(i, j)] - implied * means[i] * means[j]).powi(2) / v
                };
                logs.push(-0.5 * temper * pairs.iter().map(log).sum::<f64>());
            }
        }
        let weights = normalised(&logs);
        let (nothing, implied) = weights.split_at(grid.len());
        let of_grid: Vec<f64> = nothing.iter().zip(implied).map(|(a, b)| a + b).collect();
        let prior: f64 = of_grid.iter().zip(&grid).map(|(weight, g)| weight * g).sum();
        let mut reached = 0.0;
        let above = of_grid.iter().position(|weight| {
            reached += weight;
            reached >= UPPER
        });
        let upper = grid[above.unwrap_or(grid.len() - 1)];
        let trusted: f64 = implied.iter().sum();
        let about =
            Mat::from_fn(d, d, |i, j| if white.apart(i, j) { trusted * means[i] * means[j] } else { 0.0 });
        let beyond = found - &about;
        let g = prior / 2.0;
        let resolved =
            Mat::from_fn(d, d, |i, j| if white.apart(i, j) { g / (g + variance[(i, j)]) } else { 0.0 });
        let descent = Descent { pairs, found: &beyond, variance: &variance, resolved: &resolved, g };
        let estimate = descent.minimum()? + about;
        Ok(Self { estimate, beyond, variance, resolved, prior, upper })
    }
}

/// Minimises Σ(M−K)²/2V − logdet(I+M)/2g over the entries between parties.
struct Descent<'a> {
    pairs: Vec<(usize, usize)>,
    found: &'a Mat<f64>,
    variance: &'a Mat<f64>,
    resolved: &'a Mat<f64>,
    g: f64,
}

impl Descent<'_> {
    fn shifted(m: &Mat<f64>) -> Mat<f64> {
        Mat::from_fn(m.nrows(), m.ncols(), |i, j| m[(i, j)] + f64::from(i == j))
    }

    fn objective(&self, m: &Mat<f64>) -> f64 {
        let Ok(factor) = Self::shifted(m).llt(Side::Lower) else { return f64::INFINITY };
        let logdet: f64 = (0..m.nrows()).map(|i| factor.L()[(i, i)].ln()).sum();
        let misfit = |&pair: &(usize, usize)| (m[pair] - self.found[pair]).powi(2) / self.variance[pair];
        0.5 * self.pairs.iter().map(misfit).sum::<f64>() - logdet / self.g
    }

    fn step(&self, m: &Mat<f64>, inverse: &Mat<f64>) -> Mat<f64> {
        Mat::from_fn(m.nrows(), m.ncols(), |i, j| {
            let resolved = self.resolved[(i, j)];
            if resolved == 0.0 {
                return 0.0;
            }
            let pull = self.variance[(i, j)] / self.g * (inverse[(i, j)] + m[(i, j)]);
            resolved * (self.found[(i, j)] + pull) - m[(i, j)]
        })
    }

    fn minimum(&self) -> Result<Mat<f64>, LearnError> {
        let d = self.found.nrows();
        let mut m = Mat::from_fn(d, d, |i, j| self.resolved[(i, j)] * self.found[(i, j)]);
        let factor = f64::min(1.0, 0.9 / f64::max(-smallest_eigenvalue(&m)?, 1e-9));
        m *= factor;
        let mut value = self.objective(&m);
        for _ in 0..MOST_STEPS {
            let Some(inverse) = inverse(&Self::shifted(&m)) else { break };
            let step = self.step(&m, &inverse);
            let mut length = 1.0;
            let mut next = &m + &step;
            let mut next_value = self.objective(&next);
            while length > 1e-3 && (next_value.is_nan() || next_value >= value) {
                length *= 0.5;
                next = &m + &step * length;
                next_value = self.objective(&next);
            }
            if length <= 1e-3 {
                break;
            }
            let done = value - next_value < 1e-4 * (1.0 + value.abs());
            m = next;
            value = next_value;
            if done {
                break;
            }
        }
        Ok(m)
    }
}
