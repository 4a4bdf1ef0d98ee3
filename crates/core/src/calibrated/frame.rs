//! How rows are standardised: what the noised sums of earlier stages say of each column, and the
//! box, the scale, the ball and the centre that follow from it
//! (docs/LEARNERS.md#what-a-calibrated-release-publishes).
//!
//! How well they fit a table does not matter for privacy: the lemmas hold for all of them.

use super::{CalibratedError, Layout, PartyPlan, STAGES};
use crate::encoding::{Ball, EncodingError, LARGEST_SCALED, Q, Scaling};
use crate::stage::moment_count;

/// Half-width of a column's box in standard deviations, before growth.
const BOX: f64 = 3.0;
/// Smallest standard deviation and half-width of a box that a column is scaled by.
const SMALLEST_SCALE: f64 = 1e-6;
/// The fixed scale of a level: a rare level must not be blown up.
const LEVEL_SCALE: f64 = 0.5;

/// What is known of a column before or after a round, in units of its public range.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Standard {
    /// Whether the column is numeric rather than a level.
    pub(crate) numeric: bool,
    pub(crate) mean: f64,
    /// Standard deviation of the noise in the mean.
    pub(crate) error: f64,
    /// Standard deviation, noise included.
    pub(crate) sd: f64,
    /// Share of its square that is not noise: for learners; nothing that is released depends on it.
    pub(crate) resolved: f64,
    /// The column's box.
    low: f64,
    high: f64,
}

impl Standard {
    /// The public range only.
    pub(super) fn public(numeric: bool) -> Self {
        let low = if numeric { -1.0 } else { 0.0 };
        Self { numeric, mean: 0.0, error: 0.0, sd: 1.0, resolved: 0.0, low, high: 1.0 }
    }

    /// The midpoint and half-width of the box; a level keeps its range.
    fn window(&self) -> (f64, f64) {
        if self.numeric {
            (f64::midpoint(self.low, self.high), ((self.high - self.low) / 2.0).max(SMALLEST_SCALE))
        } else {
            (0.0, 1.0)
        }
    }

    /// How values are encoded in the next round: the box is stretched to ±Q.
    ///
    /// # Privacy
    /// With `limit` Q, and with levels on their range, entries are as Lemma S takes them
    /// (docs/PRIVACY.md#standardisation-stages-1-and-2).
    pub(super) fn stretched(&self) -> Scaling {
        let (centre, scale) = self.window();
        Scaling { low: self.low, high: self.high, centre, scale, limit: Q }
    }

    /// What the column is divided by when rows are standardised.
    fn scale(&self) -> f64 {
        if self.numeric { self.sd } else { LEVEL_SCALE }
    }

    /// How values are encoded when rows are standardised.
    ///
    /// # Privacy
    /// Entries are at most 64Q in size: what Lemma B takes (docs/PRIVACY.md#ball).
    fn standardised(&self) -> Scaling {
        Scaling {
            low: self.low,
            high: self.high,
            centre: self.mean,
            scale: self.scale(),
            limit: LARGEST_SCALED,
        }
    }
}

/// How a party's rows are standardised: what both rounds have determined.
#[derive(Clone, Debug, PartialEq)]
pub struct Frame {
    /// Box, centre and scale of each encoded column.
    pub scalings: Vec<Scaling>,
    /// The ball that bounds a standardised row.
    pub ball: Ball,
    /// What the first round and the second said of each column.
    pub(crate) rounds: [Vec<Standard>; 2],
}

impl Frame {
    /// What follows from both rounds: a ball no larger than rows can reach, nor than ρ√d_e.
    ///
    /// # Privacy
    /// C ≤ Q²ρ²d_e whatever the rounds said, for which [`PartyPlan::new`] has checked that Lemma B
    /// and Theorem 3 hold (docs/PRIVACY.md#sums-and-noise-stay-in-range).
    fn new(rounds: [Vec<Standard>; 2], growth: f64, layout: &Layout) -> Result<Self, EncodingError> {
        let columns = &rounds[1];
        let farthest = |column: &Standard| {
            let reach = (column.high - column.mean).max(column.mean - column.low) / column.scale();
            reach * reach
        };
        let reach: f64 = columns.iter().map(farthest).sum::<f64>().sqrt();
        let natural = (layout.effective_width() as f64).sqrt();
        let radius = (growth * natural).min(reach.max(natural));
        Ok(Self {
            scalings: columns.iter().map(Standard::standardised).collect(),
            ball: Ball::of_radius(radius)?,
            rounds,
        })
    }
}

impl PartyPlan {
    /// What is known before the first round: the public ranges only.
    pub(super) fn before(&self) -> Vec<Standard> {
        self.layout.numeric().iter().map(|&numeric| Standard::public(numeric)).collect()
    }

    /// What the first round said.
    pub(super) fn first_round(&self, earlier: &[Vec<i64>]) -> Result<Vec<Standard>, CalibratedError> {
        self.round(0, &self.before(), &earlier[0])
    }

    /// What one round says: mean and spread of each column within the window that it was encoded
    /// in.
    fn round(
        &self,
        stage: usize,
        before: &[Standard],
        sums: &[i64],
    ) -> Result<Vec<Standard>, CalibratedError> {
        let width = self.layout.width();
        check_count(stage, sums, width + self.layout.squares().len())?;
        let n = self.plan.rows() as f64;
        let q = f64::from(Q);
        let error = self.round.sum.get() as f64 / (n * q);
        let square_error = self.round.square.get() as f64 / (n * q * q);
        let mut columns = Vec::with_capacity(width);
        let mut next_square = width;
        for (before, &sum) in before.iter().zip(sums) {
            let (a, h) = before.window();
            let mean = sum as f64 / (n * q);
            let (mean, variance, inflation) = if before.numeric {
                let mean = mean.clamp(-1.0, 1.0);
                let square = sums[next_square] as f64 / (n * q * q);
                next_square += 1;
                (mean, (square - mean * mean).clamp(0.0, 1.0), square_error)
            } else {
                let mean = mean.clamp(0.0, 1.0);
                (mean, mean * (1.0 - mean), error)
            };
            let variance = variance + inflation;
            let mean = a + h * mean;
            let sd = (h * variance.sqrt()).max(SMALLEST_SCALE);
            let reach = BOX * self.growth * sd + 2.0 * (h * error);
            let (low, high) =
                if before.numeric { ((mean - reach).max(-1.0), (mean + reach).min(1.0)) } else { (0.0, 1.0) };
            let resolved = 1.0 - inflation / variance;
            let error = h * error;
            columns.push(Standard { numeric: before.numeric, mean, error, sd, resolved, low, high });
        }
        Ok(columns)
    }

    /// How rows are standardised, from the noised sums of both rounds.
    pub fn frame(&self, earlier: &[Vec<i64>]) -> Result<Frame, CalibratedError> {
        let first = self.first_round(earlier)?;
        let second = self.round(1, &first, &earlier[1])?;
        Ok(Frame::new([first, second], self.growth, &self.layout)?)
    }

    /// Means within the party, in standardised units and within their boxes, from the noised sums
    /// of the third stage.
    pub(crate) fn local_means(
        &self,
        earlier: &[Vec<i64>],
        frame: &Frame,
    ) -> Result<Vec<f64>, CalibratedError> {
        let sums = &earlier[2];
        check_count(2, sums, moment_count(self.layout.width()))?;
        let all = self.plan.rows() as f64 * f64::from(Q);
        let mean = |(scaling, &sum): (&Scaling, &i64)| {
            let end = |end: f64| (end - scaling.centre) / scaling.scale;
            (sum as f64 / all).clamp(end(scaling.low), end(scaling.high))
        };
        Ok(frame.scalings.iter().zip(sums).map(mean).collect())
    }
}

fn check_count(stage: usize, sums: &[i64], expected: usize) -> Result<(), CalibratedError> {
    if sums.len() == expected {
        Ok(())
    } else {
        Err(CalibratedError::Sums { stage: STAGES[stage], expected, found: sums.len() })
    }
}
