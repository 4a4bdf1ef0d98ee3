//! What a learner hands back: weights with their covariance, intervals, and the way to original
//! units.

use super::{LearnError, student};

/// A confidence level strictly between 0 and 1; 0.95 unless chosen otherwise.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Level(f64);

impl Level {
    /// Checks a level.
    pub fn new(level: f64) -> Result<Self, LearnError> {
        if level > 0.0 && level < 1.0 { Ok(Self(level)) } else { Err(LearnError::Level(level)) }
    }

    /// The level as a number.
    pub fn get(self) -> f64 {
        self.0
    }
}

impl Default for Level {
    fn default() -> Self {
        Self(0.95)
    }
}

/// A confidence interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// Lower end.
    pub lower: f64,
    /// Upper end.
    pub upper: f64,
}

impl Interval {
    /// The same in units that are larger by this factor, which is positive.
    #[must_use]
    pub fn scaled(&self, factor: f64) -> Self {
        Self { lower: self.lower * factor, upper: self.upper * factor }
    }

    /// Whether a value lies inside, ends included.
    pub fn contains(&self, value: f64) -> bool {
        self.lower <= value && value <= self.upper
    }
}

/// A symmetric matrix of covariances.
#[derive(Debug, Clone, PartialEq)]
pub struct Covariance {
    dim: usize,
    entries: Vec<f64>,
}

impl Covariance {
    /// Fills the matrix from its lower triangle: `entry(i, j)` is asked for i ≥ j only.
    pub(super) fn from_lower(dim: usize, entry: impl Fn(usize, usize) -> f64) -> Self {
        let entries = (0..dim * dim).map(|at| (at / dim, at % dim)).map(|(i, j)| entry(i.max(j), i.min(j)));
        Self { dim, entries: entries.collect() }
    }

    /// Rows, and columns.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// The covariance of two coefficients.
    pub fn get(&self, i: usize, j: usize) -> f64 {
        self.row(i)[j]
    }

    /// One row.
    pub fn row(&self, i: usize) -> &[f64] {
        &self.entries[i * self.dim..(i + 1) * self.dim]
    }

    /// The whole matrix, row after row.
    pub fn as_slice(&self) -> &[f64] {
        &self.entries
    }
}

/// Estimated coefficients with their covariance and degrees of freedom.
#[derive(Debug, Clone, PartialEq)]
pub struct Coefficients {
    weights: Vec<f64>,
    covariance: Covariance,
    degrees: usize,
}

impl Coefficients {
    /// Puts together an estimate; the covariance has one row per weight, and there is a degree of
    /// freedom.
    pub(super) fn new(weights: Vec<f64>, covariance: Covariance, degrees: usize) -> Self {
        debug_assert_eq!(weights.len(), covariance.dim);
        debug_assert!(degrees > 0);
        Self { weights, covariance, degrees }
    }

    /// The estimates.
    pub fn weights(&self) -> &[f64] {
        &self.weights
    }

    /// Their covariance.
    pub fn covariance(&self) -> &Covariance {
        &self.covariance
    }

    /// Degrees of freedom of the t intervals.
    pub fn degrees(&self) -> usize {
        self.degrees
    }

    /// The standard error of each estimate.
    pub fn standard_errors(&self) -> Vec<f64> {
        // A variance of exactly 0 may come out as a negative rounding error after a linear map.
        (0..self.weights.len()).map(|i| self.covariance.get(i, i).max(0.0).sqrt()).collect()
    }

    /// A two-sided t interval for each estimate.
    pub fn intervals(&self, level: Level) -> Vec<Interval> {
        let t = student::two_sided_quantile(level, self.degrees);
        let interval =
            |(&weight, se): (&f64, f64)| Interval { lower: weight - t * se, upper: weight + t * se };
        self.weights.iter().zip(self.standard_errors()).map(interval).collect()
    }

    /// Maps weights in encoded units to slopes and an intercept in original units.
    ///
    /// `features` holds the public scaling of each feature, in the order of the weights. From
    /// u_y = Σ w_j u_j and u = (x − mid)/half follow β_j = w_j·half_y/half_j and the intercept
    /// mid_y − Σ β_j·mid_j. Both are linear in w, so the covariance is mapped exactly.
    pub fn to_original(&self, features: &[Affine], label: Affine) -> Result<Original, LearnError> {
        let d = self.weights.len();
        if features.len() != d {
            return Err(LearnError::AffineCount { features: d, found: features.len() });
        }
        let scale: Vec<f64> = features.iter().map(|feature| label.half / feature.half).collect();
        let slopes: Vec<f64> = self.weights.iter().zip(&scale).map(|(weight, s)| weight * s).collect();
        let by_mid = |values: &[f64]| -> f64 { values.iter().zip(features).map(|(v, f)| v * f.mid).sum() };

        let among = |i: usize, j: usize| scale[i] * scale[j] * self.covariance.get(i, j);
        let with_intercept: Vec<f64> =
            (0..d).map(|i| -by_mid(&(0..d).map(|j| among(i, j)).collect::<Vec<_>>())).collect();
        let of_intercept = -by_mid(&with_intercept);
        let covariance = Covariance::from_lower(d + 1, |i, j| match (i, j) {
            (0, _) => of_intercept,
            (i, 0) => with_intercept[i - 1],
            (i, j) => among(i - 1, j - 1),
        });

        let mut weights = vec![label.mid - by_mid(&slopes)];
        weights.extend(slopes);
        Ok(Original(Self::new(weights, covariance, self.degrees)))
    }
}

/// The public scaling of a column, u = (x − mid)/half.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Affine {
    mid: f64,
    half: f64,
}

impl Affine {
    /// The scaling of a categorical entry, which is 0 or 1 in both units.
    pub const UNIT: Self = Self { mid: 0.0, half: 1.0 };

    /// The scaling of a numeric column: the midpoint and the half-width of its public bounds.
    pub fn new(mid: f64, half: f64) -> Result<Self, LearnError> {
        if mid.is_finite() && half.is_finite() && half > 0.0 {
            Ok(Self { mid, half })
        } else {
            Err(LearnError::Affine { mid, half })
        }
    }

    /// The midpoint.
    pub fn mid(self) -> f64 {
        self.mid
    }

    /// The half-width.
    pub fn half(self) -> f64 {
        self.half
    }
}

/// An intercept and slopes in the units the columns were declared in.
#[derive(Debug, Clone, PartialEq)]
pub struct Original(Coefficients);

impl Original {
    /// The label's value where every feature is 0.
    pub fn intercept(&self) -> f64 {
        self.0.weights[0]
    }

    /// The slope of each feature.
    pub fn slopes(&self) -> &[f64] {
        &self.0.weights[1..]
    }

    /// The same with more variance in the intercept: what the columns' centres add.
    #[must_use]
    pub fn with_intercept_variance(mut self, variance: f64) -> Self {
        self.0.covariance.entries[0] += variance;
        self
    }

    /// Intercept first, then slopes, with the covariance of all of them.
    pub fn coefficients(&self) -> &Coefficients {
        &self.0
    }
}
