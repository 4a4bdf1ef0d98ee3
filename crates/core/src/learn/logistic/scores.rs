//! The score equations of logistic regression, `E[xσ(η)] = E[xy]`, from moments and each feature's
//! own distribution.
//!
//! With η bell-shaped, E[σ(η)] and E[σ'(η)] depend on its mean and variance V alone. A numeric
//! feature's equation is Stein's identity, Cov(x, σ(η)) = Cov(x, η)·E[σ'(η)] (scaled least squares:
//! Brillinger 1982; Erdogdu, Dicker and Bayati 2016). A level says exactly how often the label
//! applies with it and without it, and η is bell-shaped given either. So each equation gives
//! t = Cov(x, η) from c = Cov(x, y) once V is known, and the coefficients are S⁻¹t.

use faer::{Col, Mat};

use super::curve::Curve;
use super::{Outcome, Shape};

/// How often a label may at least, and at most, seem to apply where a level does, as a share of its
/// odds in all: noise takes it beyond 0 and 1.
const LEAST_ODDS: f64 = 0.02;
/// The same to predict with: noise that makes a rare level tell nearly all must not cost much.
const LEAST_ODDS_TO_PREDICT: f64 = 0.2;
/// Log odds that vary more than this tell nearly all people apart, and coefficients grow without
/// bound.
pub(super) const MOST_VARIANCE: f64 = 25.0;
const ROUNDS: usize = 60;
/// By how much a feature's shape is not that of a bell: standard deviations of its skewness and its
/// excess kurtosis, for one that stands clear of its bounds and for one that does not; and what is
/// not bell-shaped in log odds, given a feature, per unit of their variance
/// (docs/LEARNERS.md#logistic).
const CLEAR: (f64, f64) = (0.3, 0.6);
const BOUNDED: (f64, f64) = (1.0, 1.5);
const REST: f64 = 0.025;

/// Moments of the features in standardised units.
pub(in crate::learn) struct Features {
    covariance: Mat<f64>,
    inverse: Mat<f64>,
}

impl Features {
    /// A covariance matrix with its inverse; variances of levels are those that their shares imply,
    /// correlations stay.
    pub(in crate::learn) fn new(covariance: &Mat<f64>, inverse: &Mat<f64>, shapes: &[Shape]) -> Self {
        let stretch = |j: usize| match shapes[j] {
            Shape::Level { share, unit } => {
                let variance = share * (1.0 - share) / (unit * unit);
                (variance / covariance[(j, j)]).sqrt().clamp(0.5, 2.0)
            }
            Shape::Clear | Shape::Bounded => 1.0,
        };
        let by: Vec<f64> = (0..shapes.len()).map(stretch).collect();
        let d = by.len();
        Self {
            covariance: Mat::from_fn(d, d, |i, j| covariance[(i, j)] * by[i] * by[j]),
            inverse: Mat::from_fn(d, d, |i, j| inverse[(i, j)] / (by[i] * by[j])),
        }
    }

    pub(super) fn variance(&self, feature: usize) -> f64 {
        self.covariance[(feature, feature)]
    }

    /// Covariances with the label that linear coefficients imply.
    pub(super) fn covariances(&self, coefficients: &Col<f64>) -> Col<f64> {
        &self.covariance * coefficients
    }

    pub(super) fn covariance(&self) -> &Mat<f64> {
        &self.covariance
    }

    pub(super) fn inverse(&self) -> &Mat<f64> {
        &self.inverse
    }

    pub(super) fn coefficients(&self, t: &Col<f64>) -> Col<f64> {
        &self.inverse * t
    }
}

/// The equations at one variance of the log odds.
pub(super) struct Equations<'a> {
    shapes: &'a [Shape],
    features: &'a Features,
    share: f64,
    variance: f64,
    least_odds: f64,
    /// Mean of the log odds, and the curve there.
    pub(super) centre: f64,
    pub(super) curve: Curve,
}

/// One equation solved: Cov(x, η), and its derivative by Cov(x, y).
#[derive(Clone, Copy)]
struct Solved {
    t: f64,
    derivative: f64,
}

impl<'a> Equations<'a> {
    pub(super) fn at(shapes: &'a [Shape], features: &'a Features, share: f64, variance: f64) -> Self {
        let (centre, curve) = Curve::with_mean(share, variance);
        Self { shapes, features, share, variance, least_odds: LEAST_ODDS, centre, curve }
    }

    /// The same where levels tell less of the label, to predict with.
    pub(super) fn cautious(self) -> Self {
        Self { least_odds: LEAST_ODDS_TO_PREDICT, ..self }
    }

    fn solved(&self, feature: usize, c: f64) -> Solved {
        let Shape::Level { share: level, unit } = self.shapes[feature] else {
            return Solved { t: c / self.curve.slope, derivative: 1.0 / self.curve.slope };
        };
        let within = |share: f64| {
            let odds = self.share / (1.0 - self.share);
            let (least, most) = (self.least_odds * odds, odds / self.least_odds);
            share.clamp(least / (1.0 + least), most / (1.0 + most))
        };
        // How often the label applies with the level and without it.
        let with = within(self.share + c * unit / level);
        let without = within(self.share - c * unit / (1.0 - level));
        let spread = level * (1.0 - level);
        let mut difference = c * unit / spread / self.curve.slope;
        let (mut slopes, mut last) = ((self.curve.slope, self.curve.slope), f64::INFINITY);
        for _ in 0..ROUNDS {
            let left = (self.variance - spread * difference * difference).max(0.0);
            let (high, above) = Curve::with_mean(with, left);
            let (low, below) = Curve::with_mean(without, left);
            slopes = (above.slope, below.slope);
            let step = high - low - difference;
            difference += 0.7 * step;
            if step.abs() < 1e-9 || step.abs() >= 2.0 * last {
                break;
            }
            last = step.abs();
        }
        Solved { t: spread / unit * difference, derivative: (1.0 - level) / slopes.0 + level / slopes.1 }
    }

    /// Covariances of features and log odds, with their derivatives by those of features and label.
    pub(super) fn solve(&self, c: &Col<f64>) -> (Col<f64>, Col<f64>) {
        let solved: Vec<Solved> = (0..c.nrows()).map(|j| self.solved(j, c[j])).collect();
        let d = solved.len();
        (Col::from_fn(d, |j| solved[j].t), Col::from_fn(d, |j| solved[j].derivative))
    }

    /// Standard deviations of what the equations miss, since neither features nor log odds are
    /// quite as they assume.
    pub(super) fn missed(&self, t: &Col<f64>) -> Col<f64> {
        let (bend, third) = (self.curve.bend / self.curve.slope, self.curve.third / self.curve.slope);
        let rest = REST * self.variance * bend.hypot(third);
        let of = |j: usize| {
            let spread = self.features.variance(j).max(f64::MIN_POSITIVE).sqrt();
            let tilt = t[j] / spread;
            let (skewness, kurtosis) = match self.shapes[j] {
                Shape::Level { .. } => (0.0, 0.0),
                Shape::Clear => CLEAR,
                Shape::Bounded => BOUNDED,
            };
            // Cov(x, f(η)) in the cumulants of x: Stein's identity is its first term.
            let skewed = skewness / 2.0 * tilt * tilt * bend;
            let peaked = kurtosis / 6.0 * tilt * tilt * tilt * third;
            spread * rest.hypot(skewed).hypot(peaked)
        };
        Col::from_fn(t.nrows(), of)
    }
}

/// The variance that log odds have if they explain the label as linear coefficients with these
/// covariances do: the fixed point of V = tᵀS⁻¹t·`stretch`. [`MOST_VARIANCE`] where there is none.
pub(super) fn variance_of_log_odds(
    outcome: &Outcome,
    shapes: &[Shape],
    features: &Features,
    c: &Col<f64>,
    stretch: f64,
) -> f64 {
    let implied = |variance: f64| {
        let (t, _) = Equations::at(shapes, features, outcome.share, variance).solve(c);
        stretch * (t.transpose() * features.coefficients(&t))
    };
    // The implied variance begins above and falls below once; it does not where there is no
    // solution.
    let (mut low, mut high) = (0.0, MOST_VARIANCE);
    if implied(high) >= high {
        return high;
    }
    for _ in 0..40 {
        let middle = f64::midpoint(low, high);
        if implied(middle) > middle {
            low = middle;
        } else {
            high = middle;
        }
        if high - low < 1e-7 {
            break;
        }
    }
    f64::midpoint(low, high)
}
