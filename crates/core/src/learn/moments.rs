//! Weights from second moments alone, for whoever cannot keep the released rows.

use faer::{Col, Mat, Side};

use super::{LearnError, Ridge};

/// The normal equations Hw = c, solved through the eigenvalues of H.
pub(super) struct Solved {
    /// Ascending.
    pub(super) eigenvalues: Vec<f64>,
    /// The eigenvector of the smallest eigenvalue.
    pub(super) smallest_vector: Col<f64>,
    pub(super) inverse: Mat<f64>,
    pub(super) weights: Col<f64>,
}

/// Solves Hw = c for a symmetric H that may be indefinite; only a singular one is an error.
pub(super) fn solve(h: &Mat<f64>, c: &Col<f64>) -> Result<Solved, LearnError> {
    let d = c.nrows();
    let eigen = h.self_adjoint_eigen(Side::Lower).map_err(|_| LearnError::Overflow)?;
    let (u, values) = (eigen.U(), eigen.S().column_vector());
    let eigenvalues: Vec<f64> = values.iter().copied().collect();
    let smallest = eigenvalues.iter().fold(f64::INFINITY, |least, value| least.min(value.abs()));
    let largest = eigenvalues.iter().fold(0.0_f64, |most, value| most.max(value.abs()));
    // Below this an eigenvalue is a rounding error of the largest; above it, exploding weights are
    // an answer.
    if smallest <= d as f64 * f64::EPSILON * largest {
        return Err(LearnError::Singular { smallest, largest });
    }
    let inverse = u * Mat::from_fn(d, d, |i, j| u[(j, i)] / values[i]);
    let weights = &inverse * c;
    Ok(Solved { eigenvalues, smallest_vector: u.col(0).to_owned(), inverse, weights })
}

/// Second moments of released columns, per row of the study: ZᵀZ/n, and what of it the noise adds
/// on average.
#[derive(Debug, Clone, PartialEq)]
pub struct Moments {
    values: Mat<f64>,
    noise: Vec<f64>,
}

/// Weights with the eigenvalues of the matrix that gave them.
#[derive(Debug, Clone, PartialEq)]
pub struct Solution {
    /// One a feature, in encoded units.
    pub weights: Vec<f64>,
    /// Of H, ascending.
    pub eigenvalues: Vec<f64>,
}

impl Moments {
    /// Moments of as many columns as there are noise variances; `value(i, j)` is the moment of
    /// columns i and j.
    pub fn new(noise: Vec<f64>, value: impl Fn(usize, usize) -> f64) -> Result<Self, LearnError> {
        let values = Mat::from_fn(noise.len(), noise.len(), value);
        let finite = |column: usize| (0..noise.len()).all(|row| values[(row, column)].is_finite());
        if noise.is_empty() {
            return Err(LearnError::Empty);
        }
        if let Some(column) = (0..noise.len()).find(|&j| !finite(j) || !noise[j].is_finite()) {
            return Err(LearnError::NotFinite { column, row: 0 });
        }
        Ok(Self { values, noise })
    }

    /// The weights of [`super::ols`].
    pub fn ols(&self, label: usize, features: &[usize], ridge: Ridge) -> Result<Solution, LearnError> {
        self.fit(label, features, ridge, 0.0)
    }

    /// The weights of [`super::debiased`].
    pub fn debiased(&self, label: usize, features: &[usize], ridge: Ridge) -> Result<Solution, LearnError> {
        self.fit(label, features, ridge, 1.0)
    }

    fn fit(
        &self,
        label: usize,
        features: &[usize],
        ridge: Ridge,
        correction: f64,
    ) -> Result<Solution, LearnError> {
        super::check_choice(self.noise.len(), label, features)?;
        let d = features.len();
        let h = Mat::from_fn(d, d, |i, j| {
            let (row, column) = (features[i], features[j]);
            let diagonal = if i == j { ridge.get() - correction * self.noise[column] } else { 0.0 };
            self.values[(row, column)] + diagonal
        });
        let c = Col::from_fn(d, |j| self.values[(label, features[j])]);
        let solved = solve(&h, &c)?;
        Ok(Solution { weights: solved.weights.iter().copied().collect(), eigenvalues: solved.eigenvalues })
    }
}
