//! How far predictions hold on new people, and how well they tell them apart.

use super::curve::{Curve, nodes, sigmoid};
use super::scores::MOST_VARIANCE;
use super::{ExplainedShare, Interval, Level, Outcome};

/// What bell-shaped log odds may miss of the area, as a share of its distance from ½
/// (docs/LEARNERS.md#logistic).
const MISSED: f64 = 0.05;

/// Standard deviation beforehand of a calibration slope about 1.
const SLOPE_PRIOR: f64 = 0.25;
/// An estimate takes shrunk predictions for no less than half of what they should be; intervals do
/// not.
const MOST_SLOPE: f64 = 2.0;

/// How much of predicted differences shows on new people: the slope of the label on its linear
/// prediction. 1 is well calibrated; below, predictions are too far apart.
#[derive(Debug, Clone, Copy)]
pub struct Calibration {
    /// What predictions vary by, as a share of the label's variance.
    predicted: f64,
    explained: ExplainedShare,
}

impl Calibration {
    /// Of predictions that vary by this share of the label's variance. They explain twice their
    /// covariance with the label less that share, so the slope is half of both over it.
    pub(super) fn new(explained: ExplainedShare, predicted: f64) -> Self {
        Self { predicted: predicted.max(1e-6), explained }
    }

    fn with(&self, explained: f64) -> f64 {
        (explained + self.predicted) / (2.0 * self.predicted)
    }

    /// The slope.
    pub fn slope(&self) -> f64 {
        self.with(self.explained.estimate)
    }

    /// Its interval.
    pub fn interval(&self, level: Level) -> Interval {
        let Interval { lower, upper } = self.explained.interval(level);
        Interval { lower: self.with(lower), upper: self.with(upper) }
    }

    /// What linear coefficients to predict with are multiplied by: the slope as far as it can be
    /// believed, and never more than 1.
    pub(super) fn believed(&self) -> f64 {
        let doubt = (self.explained.standard_error / (2.0 * self.predicted)).powi(2);
        let prior = SLOPE_PRIOR * SLOPE_PRIOR;
        ((doubt + prior * self.slope()) / (doubt + prior)).clamp(0.0, 1.0)
    }

    /// The area under the curve of predictions with this slope: below ½ where they go against the
    /// label.
    fn area(&self, share: f64, slope: f64) -> f64 {
        let told = slope * slope * self.predicted;
        0.5 + slope.signum() * (area(share, log_odds_that_explain(share, told)) - 0.5)
    }
}

/// The area under the curve of true against false positives: how likely a person to whom the label
/// applies has higher predicted odds than one to whom it does not.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Discrimination {
    /// The estimate.
    pub area: f64,
    /// Its interval.
    pub interval: Interval,
}

impl Discrimination {
    /// From how predictions go with the label on new people: log odds that go with it as much.
    pub(super) fn of(outcome: &Outcome, calibration: &Calibration, level: Level) -> Self {
        let area = |slope: f64| calibration.area(outcome.share, slope);
        let slopes = calibration.interval(level);
        let likely = calibration.slope().clamp(0.0, MOST_SLOPE);
        let [low, middle, high] = [slopes.lower.min(likely), likely, slopes.upper.max(likely)].map(area);
        let widened = |end: f64| {
            let missed = MISSED * (middle - 0.5);
            middle + (end - middle).signum() * (end - middle).hypot(2.0 * missed)
        };
        Self {
            area: middle,
            interval: Interval { lower: widened(low).max(0.0), upper: widened(high).min(1.0) },
        }
    }
}

/// The variance of bell-shaped log odds that explain this part of the label's variance.
fn log_odds_that_explain(share: f64, explained: f64) -> f64 {
    let explains = |variance: f64| {
        let (_, curve) = Curve::with_mean(share, variance);
        variance * curve.slope * curve.slope / (share * (1.0 - share))
    };
    let (mut low, mut high) = (0.0, 4.0 * MOST_VARIANCE);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if explains(middle) < explained {
            low = middle;
        } else {
            high = middle;
        }
    }
    f64::midpoint(low, high)
}

/// The area under the curve of log odds with this variance.
fn area(share: f64, variance: f64) -> f64 {
    let (centre, curve) = Curve::with_mean(share, variance);
    let spread = variance.sqrt();
    let (mut below, mut area) = (0.0, 0.0);
    for (z, weight) in nodes() {
        let s = sigmoid(centre + spread * z);
        let without = weight * (1.0 - s) / (1.0 - curve.mean);
        area += weight * s / curve.mean * (below + without / 2.0);
        below += without;
    }
    area
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_explained_is_a_half_and_all_is_one() {
        assert!((area(0.3, log_odds_that_explain(0.3, -0.1)) - 0.5).abs() < 1e-6);
        assert!(area(0.3, 2000.0) > 0.97);
    }

    /// Where log odds are small, the area is ½ + √(V/π)/2, whatever the share.
    #[test]
    fn small_log_odds_have_the_area_of_two_bells() {
        for share in [0.05, 0.5] {
            let variance: f64 = 0.01;
            let expected = 0.5 + (variance / std::f64::consts::PI).sqrt() / 2.0;
            assert!((area(share, variance) - expected).abs() < 5e-4, "{}", area(share, variance));
        }
    }
}
