//! How rows are standardised: what the noised sums of earlier stages say of each column, and the
//! box, the scale, the ball and the centre that follow from it
//! (docs/LEARNERS.md#what-a-calibrated-release-publishes).
//!
//! How well they fit a table does not matter for privacy: the lemmas hold for all of them.

use std::iter::zip;

use super::party::{CohortNoise, TWO_LEVELS_CENTRE};
use super::shape::{Counted, FromSums, narrowed};
use super::{COHORT_STAGES, CalibratedError, Layout, PartyPlan, RoundNoise, STAGES};
use crate::encoding::{Ball, Bins, EncodingError, LARGEST_SCALED, Q, Scaling};
use crate::noise::Sigma;
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

    /// What the first stage said.
    pub(super) fn first_round(&self, earlier: &[Vec<i64>]) -> Result<Vec<Standard>, CalibratedError> {
        match &self.cohort {
            None => self.round(0, &self.before(), &earlier[0]),
            Some(cohort) => self.shaped(cohort, &earlier[0]),
        }
    }

    /// What the shapes say of each column: the sums as in a round, and the cells a narrower box.
    fn shaped(&self, cohort: &CohortNoise, sums: &[i64]) -> Result<Vec<Standard>, CalibratedError> {
        let (bins, groups) = (self.layout.bins(), self.layout.encoded_groups());
        let round = self.layout.width() + self.layout.squares().len() + self.layout.groups();
        self.check_count(0, sums, round + bins.iter().map(Bins::count).sum::<usize>())?;
        let (sums, mut cells) = sums.split_at(round);
        let mut columns = self.round(0, &self.before(), sums)?;
        let people = self.counted(0, sums);
        let mut squares = sums[self.layout.width()..].iter();
        for (bins, &column) in bins.iter().zip(&self.layout.squares()) {
            let (own, others) = cells.split_at(bins.count());
            cells = others;
            let cells: Vec<f64> = own.iter().map(|&count| count as f64).collect();
            let (n, q) = (people[column], f64::from(Q));
            let square = squares.next().map_or(0.0, |&square| square as f64 / (n * q * q));
            let Standard { mean, error, low, high, .. } = columns[column];
            let first = FromSums {
                mean,
                error,
                variance: (square - mean * mean).clamp(0.0, 1.0),
                square_error: cohort.shapes.round.square.get() as f64 / (n * q * q),
                low,
                high,
            };
            let counted = Counted {
                bins,
                cells: &cells,
                sigma: cohort.shapes.cell.get() as f64,
                people: n,
                people_sigma: cohort.counts[0][groups[column]].get() as f64,
            };
            [columns[column].low, columns[column].high] = narrowed(first, counted, self.growth);
        }
        Ok(columns)
    }

    /// Noise of the sums of a round.
    fn noise_of_round(&self, stage: usize) -> RoundNoise {
        match &self.cohort {
            Some(cohort) if stage == 0 => cohort.shapes.round,
            _ => self.round,
        }
    }

    /// How many subjects have the values of each encoded column, by the counts at the end of the
    /// sums of a standardisation round; n in format 1.
    fn counted(&self, stage: usize, sums: &[i64]) -> Vec<f64> {
        let Some(cohort) = &self.cohort else { return vec![self.rows as f64; self.layout.width()] };
        let present = &sums[sums.len() - self.layout.groups()..];
        let sigma = &cohort.counts[stage];
        let count = |&group: &usize| self.seen(present[group] as f64, sigma[group].get() as f64);
        self.layout.encoded_groups().iter().map(count).collect()
    }

    /// A count as it is divided by: one that its noise hides says nothing, and would blow up what
    /// is divided by it.
    fn seen(&self, count: f64, sigma: f64) -> f64 {
        count.max(sigma.min(self.rows as f64)).max(1.0)
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
        self.check_count(stage, sums, width + self.layout.squares().len() + self.layout.groups())?;
        let (q, noise) = (f64::from(Q), self.noise_of_round(stage));
        let mut columns = Vec::with_capacity(width);
        let mut next_square = width;
        let about = zip(self.counted(stage, sums), self.layout.two_levels());
        for ((before, &sum), (n, two_levels)) in before.iter().zip(sums).zip(about) {
            let error = noise.sum.get() as f64 / (n * q);
            let square_error = noise.square.get() as f64 / (n * q * q);
            let (a, h) = before.window();
            let mean = sum as f64 / (n * q);
            let centred = two_levels && self.cohort.is_some();
            let mean = if centred { mean + TWO_LEVELS_CENTRE } else { mean };
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
        let (width, groups) = (self.layout.width(), self.layout.groups());
        self.check_count(2, sums, moment_count(width, groups))?;
        let (own, q) = (self.layout.encoded_groups(), f64::from(Q));
        let counts = self.present(earlier)?;
        let mean = |(column, scaling): (usize, &Scaling)| {
            let end = |end: f64| (end - scaling.centre) / scaling.scale;
            // Over the rows that have the column itself.
            let (sum, all) = match own.get(column) {
                None => (sums[column], self.rows as f64 * q),
                Some(&group) => (sums[group * width + column], counts[group] * q),
            };
            (sum as f64 / all).clamp(end(scaling.low), end(scaling.high))
        };
        Ok(frame.scalings.iter().enumerate().map(mean).collect())
    }

    /// About how many subjects have each presence group: the counts of the second stage and the
    /// third, each by how well it is known, and at least as many as that is known to. None in
    /// format 1.
    pub fn present(&self, earlier: &[Vec<i64>]) -> Result<Vec<f64>, CalibratedError> {
        let (width, groups) = (self.layout.width(), self.layout.groups());
        let Some(cohort) = &self.cohort else { return Ok(Vec::new()) };
        self.check_count(1, &earlier[1], width + self.layout.squares().len() + groups)?;
        self.check_count(2, &earlier[2], moment_count(width, groups))?;
        let second = &earlier[1][earlier[1].len() - groups..];
        let third = &earlier[2][moment_count(width, groups) - groups * (groups - 1) / 2 - groups..];
        let variance = |sigma: Sigma| sigma.get() as f64 * sigma.get() as f64;
        let of_third = variance(cohort.joint.own);
        let count = |((&second, &third), &sigma): ((&i64, &i64), &Sigma)| {
            let of_second = variance(sigma);
            let count = (second as f64 * of_third + third as f64 * of_second) / (of_second + of_third);
            self.seen(count, (of_second * of_third / (of_second + of_third)).sqrt())
        };
        Ok(second.iter().zip(third).zip(&cohort.counts[1]).map(count).collect())
    }

    /// Standard deviation of the noise in each of the counts of [`Self::present`].
    pub fn present_errors(&self) -> Vec<f64> {
        let Some(cohort) = &self.cohort else { return Vec::new() };
        let variance = |sigma: Sigma| sigma.get() as f64 * sigma.get() as f64;
        let third = variance(cohort.joint.own);
        let error = |&sigma: &Sigma| (variance(sigma) * third / (variance(sigma) + third)).sqrt();
        cohort.counts[1].iter().map(error).collect()
    }

    fn check_count(&self, stage: usize, sums: &[i64], expected: usize) -> Result<(), CalibratedError> {
        if sums.len() == expected {
            return Ok(());
        }
        let names = if self.cohort.is_some() { COHORT_STAGES } else { STAGES };
        Err(CalibratedError::Sums { stage: names[stage], expected, found: sums.len() })
    }
}
