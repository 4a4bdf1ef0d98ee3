//! Logistic regression of a label with two levels, from the same posterior as the linear one.
//!
//! Linear coefficients with the features' covariance say how every feature goes with the label;
//! the score equations ([`scores`]) turn that into log odds, at every matrix at which the posterior
//! learner reads coefficients, so that intervals come from the same mixture by the derivative of
//! the solution. What the equations miss has an allowance of its own (docs/LEARNERS.md#logistic).

mod curve;
mod discrimination;
mod scores;

use faer::{Col, Mat, Scale};

use super::{ExplainedShare, Interval, LearnError, Level, Posterior};
use curve::Curve;
pub use discrimination::{Calibration, Discrimination};
pub(in crate::learn) use scores::Features;
use scores::{Equations, MOST_VARIANCE, variance_of_log_odds};

/// The error of a rare label's share may be this part of it before log odds are lost in it.
const MOST_SHARE_ERROR: f64 = 0.2;
/// Log odds that vary more than this nearly tell people apart.
const SEPARATED: f64 = 0.6 * MOST_VARIANCE;
/// From this bend of the curve on, relative to its slope, the shape of a feature matters …
const NOTABLE_BEND: f64 = 0.3;
/// … if its effect, in log odds per standard deviation, is this far from 0.
const NOTABLE_TILT: f64 = 0.4;

/// The label: how often it applies, and how it was standardised.
#[derive(Debug, Clone, Copy)]
pub struct Outcome {
    /// The share of people it applies to.
    pub share: f64,
    /// The standard error of that share.
    pub error: f64,
    /// The unit in which the label was learned, in original ones.
    pub unit: f64,
    /// What the linear regression of the label explains of its variance.
    pub explained: ExplainedShare,
    /// Number of people.
    pub people: f64,
}

/// What is known of the distribution of a feature.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Shape {
    /// A number whose bulk stands clear of its public bounds, as a bell's would.
    Clear,
    /// A number that has a public bound within its bulk, on one side or on both.
    Bounded,
    /// 1 for this share of people, otherwise 0, learned in this unit.
    Level {
        /// The share.
        share: f64,
        /// The unit.
        unit: f64,
    },
}

/// What published numbers say against log odds, beyond what they say against a regression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doubt {
    /// The share of the label is too uncertain.
    RareLabel,
    /// The share of the level is too small beside the label's for its own odds to be seen.
    RareLevel,
    /// The feature is not shaped like a bell, and the label is rare or frequent enough for that to
    /// matter.
    Shape,
    /// Features tell nearly everybody apart: log odds grow without bound.
    Separated,
}

/// A logistic regression, in standardised units.
#[derive(Debug, Clone)]
pub struct Logistic {
    /// Its coefficients are log odds; the label's unit plays no part in them.
    pub posterior: Posterior,
    /// Log odds where every feature is at its centre, with the variance of their error.
    pub centre: (f64, f64),
    /// The same to predict with.
    pub prediction_centre: f64,
    /// Variance of the log odds among people.
    pub variance: f64,
    /// How far predictions hold on new people.
    pub calibration: Calibration,
    /// How well it tells people apart.
    pub discrimination: Discrimination,
    /// What speaks against each coefficient beyond its concerns.
    pub doubts: Vec<Vec<Doubt>>,
}

/// Log odds as a scale to read the posterior on.
pub(super) struct LogOdds<'a> {
    outcome: &'a Outcome,
    shapes: &'a [Shape],
    /// Variance of the log odds, and its standard error.
    variance: (f64, f64),
}

/// Log odds at one matrix.
pub(super) struct Tangent {
    pub(super) estimates: Vec<f64>,
    /// From errors of linear coefficients to those of log odds.
    pub(super) derivative: Mat<f64>,
}

fn column(values: &[f64]) -> Col<f64> {
    Col::from_fn(values.len(), |i| values[i])
}

impl<'a> LogOdds<'a> {
    /// What log odds vary by, given posterior mean coefficients at the posterior mean matrix.
    pub(super) fn new(outcome: &'a Outcome, shapes: &'a [Shape], features: &Features, means: &[f64]) -> Self {
        let means = column(means) * Scale(outcome.unit);
        let c = features.covariances(&means);
        let of_label = outcome.share * (1.0 - outcome.share);
        let linear = (means.transpose() * &c).max(1e-9 * of_label);
        let variance = |explained: f64| {
            let stretch = explained.max(0.0) * of_label / linear;
            variance_of_log_odds(outcome, shapes, features, &c, stretch)
        };
        let (explained, error) = outcome.explained.within_range();
        let [low, high] = [explained - error, explained + error].map(variance);
        Self { outcome, shapes, variance: (variance(explained), (high - low) / 2.0) }
    }

    /// Reads log odds from linear coefficients that shrinkage does not bias, linearised at the
    /// posterior means.
    pub(super) fn tangent(&self, features: &Features, means: &[f64], estimates: &[f64]) -> Tangent {
        self.tangent_at(features, means, estimates, (self.outcome.share, self.variance.0))
    }

    fn tangent_at(
        &self,
        features: &Features,
        means: &[f64],
        estimates: &[f64],
        (share, variance): (f64, f64),
    ) -> Tangent {
        let unit = Scale(self.outcome.unit);
        let at = features.covariances(&(column(means) * unit));
        let found = features.covariances(&(column(estimates) * unit));
        let (t, slopes) = Equations::at(self.shapes, features, share, variance).solve(&at);
        let d = slopes.nrows();
        let moved = Col::from_fn(d, |j| t[j] + slopes[j] * (found[j] - at[j]));
        let along = Mat::from_fn(d, d, |i, j| slopes[i] * features.covariance()[(i, j)]);
        Tangent {
            estimates: features.coefficients(&moved).iter().copied().collect(),
            derivative: features.inverse() * along * unit,
        }
    }

    /// For each thing that the equations take as known, what its error does to the coefficients.
    pub(super) fn effects(&self, features: &Features, means: &[f64], estimates: &[f64]) -> Vec<Vec<f64>> {
        let Outcome { share, error, .. } = *self.outcome;
        let (variance, doubt) = self.variance;
        let read = |share: f64, variance: f64| {
            self.tangent_at(features, means, estimates, (share, variance)).estimates
        };
        let half = |high: Vec<f64>, low: Vec<f64>| -> Vec<f64> {
            high.iter().zip(&low).map(|(high, low)| (high - low) / 2.0).collect()
        };
        let least = share.min(1.0 - share) / 2.0;
        let step = error.min(least);
        let mut effects = vec![
            half(read(share, variance + doubt), read(share, (variance - doubt).max(0.0))),
            half(read(share + step, variance), read(share - step, variance)),
        ];
        let c = features.covariances(&(column(means) * Scale(self.outcome.unit)));
        let equations = Equations::at(self.shapes, features, share, variance);
        let missed = equations.missed(&equations.solve(&c).0);
        for feature in 0..missed.nrows() {
            let along = features.inverse().col(feature) * Scale(missed[feature]);
            effects.push(along.iter().copied().collect());
        }
        effects
    }

    /// Log odds at the centre of the features, with the variance of their error.
    fn centre(&self) -> (f64, f64) {
        let Outcome { share, error, people, .. } = *self.outcome;
        let (variance, doubt) = self.variance;
        let (centre, curve) = Curve::with_mean(share, variance);
        let (moved, _) = Curve::with_mean(share, variance + doubt);
        let sampling = share * (1.0 - share) / people;
        let spread = (error * error + sampling) / (curve.slope * curve.slope);
        (centre, spread + (moved - centre).powi(2))
    }

    /// What speaks against log odds that are these, in standardised units.
    fn doubts(&self, features: &Features, estimates: &[f64]) -> Vec<Vec<Doubt>> {
        let Outcome { share, error, .. } = *self.outcome;
        let (_, curve) = Curve::with_mean(share, self.variance.0);
        let rare = share.min(1.0 - share);
        let t = features.covariances(&column(estimates));
        let of = |j: usize| {
            let tilt = t[j] / features.variance(j).max(f64::MIN_POSITIVE).sqrt();
            let bent = (curve.bend / curve.slope).abs() > NOTABLE_BEND && tilt.abs() > NOTABLE_TILT;
            let hidden = |level: f64| level.min(1.0 - level) * rare < 3.0 * error * level.max(1.0 - level);
            [
                (error > MOST_SHARE_ERROR * rare).then_some(Doubt::RareLabel),
                matches!(self.shapes[j], Shape::Level { share, .. } if hidden(share))
                    .then_some(Doubt::RareLevel),
                (self.shapes[j] == Shape::Bounded && bent).then_some(Doubt::Shape),
                (self.variance.0 > SEPARATED).then_some(Doubt::Separated),
            ]
            .into_iter()
            .flatten()
            .collect()
        };
        (0..t.nrows()).map(of).collect()
    }
}

/// Log odds to predict with.
pub(super) struct ToPredict {
    pub(super) weights: Vec<f64>,
    /// Where every feature is at its centre.
    pub(super) centre: f64,
    pub(super) calibration: Calibration,
}

impl ToPredict {
    /// From linear coefficients to predict with, which explain this share of the label as the
    /// posterior mean has it: log odds whose predictions have the moments that the linear ones
    /// give, as far as these hold on new people.
    pub(super) fn new(
        outcome: &Outcome,
        shapes: &[Shape],
        features: &Features,
        weights: &[f64],
        explained: f64,
    ) -> Self {
        let calibration = Calibration::new(outcome.explained, explained);
        let believed = Scale(outcome.unit * calibration.believed());
        let c = features.covariances(&(column(weights) * believed));
        let variance = variance_of_log_odds(outcome, shapes, features, &c, 1.0);
        let equations = Equations::at(shapes, features, outcome.share, variance).cautious();
        let (t, _) = equations.solve(&c);
        Self {
            weights: features.coefficients(&t).iter().copied().collect(),
            centre: equations.centre,
            calibration,
        }
    }
}

/// Learns the logistic regression of a label with two levels on `features`, one shape each, with
/// intervals of this level.
pub fn logistic(
    evidence: &super::Evidence<'_>,
    label: usize,
    features: &[usize],
    level: Level,
    outcome: &Outcome,
    shapes: &[Shape],
) -> Result<Logistic, LearnError> {
    let read = super::posterior::log_odds(evidence, label, features, level, outcome, shapes)?;
    let (posterior, scale, moments, to_predict) = read;
    let known = posterior.estimate.weights().iter().chain(&posterior.weights);
    let ends = posterior.intervals.iter().flat_map(|interval| [interval.lower, interval.upper]);
    if !known.copied().chain(ends).all(f64::is_finite) {
        return Err(LearnError::Overflow);
    }
    Ok(Logistic {
        doubts: scale.doubts(&moments, posterior.estimate.weights()),
        posterior,
        centre: scale.centre(),
        prediction_centre: to_predict.centre,
        variance: scale.variance.0,
        discrimination: Discrimination::of(outcome, &to_predict.calibration, level),
        calibration: to_predict.calibration,
    })
}
