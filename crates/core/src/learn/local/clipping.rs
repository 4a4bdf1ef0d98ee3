//! What clipping did to columns: loss of spread, tails, and what variance can be believed in. The
//! constants are explained in docs/LEARNERS.md#what-clipping-does.

use super::LocalMoments;
use crate::calibrated::{Frame, Standard};
use crate::encoding::Q;
use crate::planning::kept_by_ball;
use crate::stage::pairs;

/// Largest attenuation by the ball that is undone: of a numeric column, and of a level.
const MOST_ATTENUATION: (f64, f64) = (1.5, 2.0);
/// Standard deviation beforehand of the logarithm of the attenuation by the ball.
const BALL_PART_PRIOR: f64 = 0.2;
/// Largest logarithm of the attenuation by the box that is undone, and its standard deviation
/// beforehand.
const MOST_BOX_PART: f64 = 0.4;
const BOX_PART_PRIOR: f64 = 0.1;
/// A column counts as resolved by at least this much.
const LEAST_RESOLVED: f64 = 0.1;

/// What clipping did to a column, as far as published numbers tell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Clipping {
    /// φ: standard deviation before box and ball over that after them, within limits.
    pub attenuation: f64,
    /// ψ: the part of it that is due to the box.
    pub box_part: f64,
    /// Variance of the error of scale times attenuation, relative to their square.
    pub scale_error: f64,
    /// Excess kurtosis of a level; 0 for a numeric column.
    pub kurtosis: f64,
    /// Variance that can be believed in, from the rounds and the moments together; infinite where
    /// nothing was clipped.
    pub believable_variance: f64,
    /// Whether the column is numeric rather than a level.
    pub numeric: bool,
    /// What published numbers say of its tails.
    pub tails: Tails,
}

/// What published numbers say of the tails of a column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tails {
    /// Standard deviation before clipping over that after it, over what a bell would lose: 1 for a
    /// bell, more for heavy tails.
    pub excess: f64,
    /// Standard error of its logarithm.
    pub excess_error: f64,
    /// By how much clipping moved the mean, in standard deviations: 0 for a symmetric column.
    pub shift: f64,
    /// Its standard error.
    pub shift_error: f64,
}

impl Tails {
    /// Those of a column that was not clipped.
    pub const NONE: Self = Self { excess: 1.0, excess_error: 0.0, shift: 0.0, shift_error: 0.0 };
}

impl Clipping {
    /// Nothing was clipped.
    pub const NONE: Self = Self {
        attenuation: 1.0,
        box_part: 1.0,
        scale_error: 0.0,
        kurtosis: 0.0,
        believable_variance: f64::INFINITY,
        numeric: true,
        tails: Tails::NONE,
    };
}

/// The share of a round's square that is not noise, within limits.
fn resolved(round: &Standard) -> f64 {
    round.resolved.max(LEAST_RESOLVED)
}

/// Variance of the noise in a square of which so much is not noise, relative to its square.
fn doubt(resolved: f64) -> f64 {
    ((1.0 - resolved) / resolved).powi(2)
}

/// ψ: standard deviation before the box over that after it, shrunk by its own noise; with the
/// variance of what is not known of its logarithm.
fn box_part([first, second]: [&Standard; 2]) -> (f64, f64) {
    if !first.numeric {
        return (1.0, 0.0);
    }
    let (before, after) = (resolved(first), resolved(second));
    let ratio = before * first.sd.powi(2) / (after * second.sd.powi(2));
    let log = (0.5 * ratio.ln()).clamp(0.0, MOST_BOX_PART);
    let error = (doubt(before) + doubt(after)) / 4.0;
    let prior = BOX_PART_PRIOR * BOX_PART_PRIOR;
    ((log * prior / (prior + error)).exp(), prior * error / (prior + error))
}

impl LocalMoments {
    /// What clipping did to each column.
    pub fn clipping(&self, frame: &Frame) -> Vec<Clipping> {
        let bell = self.lost_by_a_bell(frame);
        let of_column = |column: usize| {
            let [first, second] = frame.rounds(column);
            let numeric = first.numeric;
            let after = self.after(column);
            let most = if numeric { MOST_ATTENUATION.0 } else { MOST_ATTENUATION.1 };
            let (box_part, box_error) = box_part([first, second]);
            let scale_error = (2.0 * (self.noise / after).powi(2) + doubt(resolved(second))) / 4.0;
            let found = (frame.resolved(column).max(0.0) / after).sqrt().clamp(1.0, most);
            let prior = BALL_PART_PRIOR * BALL_PART_PRIOR;
            let ball_part = (found.ln() * prior / (prior + scale_error)).exp();
            let share = frame.scalings[column].centre.clamp(0.0, 1.0);
            let variance = (share * (1.0 - share)).max(0.01);
            Clipping {
                attenuation: ball_part * box_part,
                box_part,
                scale_error: scale_error + box_error,
                kurtosis: if numeric { 0.0 } else { ((1.0 - 6.0 * variance) / variance).max(0.0) },
                believable_variance: self.believable_variance(frame, column),
                numeric,
                tails: self.tails(frame, column, scale_error, bell),
            }
        };
        (0..self.means.len()).map(of_column).collect()
    }

    fn tails(&self, frame: &Frame, column: usize, scale_error: f64, bell: f64) -> Tails {
        let [first, second] = frame.rounds(column);
        let (before, after) = (resolved(first), resolved(second));
        let by_ball = (frame.resolved(column).max(0.0) / self.after(column)).sqrt();
        let by_box = if first.numeric { (before / after).sqrt() * first.sd / second.sd } else { 1.0 };
        Tails {
            excess: by_ball * by_box / bell,
            excess_error: (scale_error + doubt(before) / 4.0).sqrt(),
            shift: self.means[column],
            shift_error: self.mean_noise[column].hypot(second.error / frame.scalings[column].scale),
        }
    }

    /// Standard deviation before the ball over that after it if all columns were bell-shaped: the
    /// squared norm of a row is then about g·χ²_h, with the mean and variance that the covariance
    /// gives.
    fn lost_by_a_bell(&self, frame: &Frame) -> f64 {
        let width = self.means.len();
        let before: Vec<f64> = (0..width).map(|column| frame.resolved(column).clamp(0.02, 1.0)).collect();
        let (mut squares, mut noise) = (0.0, 0.0);
        for (i, j) in pairs(width) {
            let product = self.after(i) * self.after(j);
            squares += before[i] * before[j] * (self.covariance[i * width + j].powi(2) / product).min(1.0);
            noise += before[i] * before[j] * self.noise.powi(2) / product;
        }
        let mean: f64 = before.iter().sum();
        let half_variance = before.iter().map(|v| v * v).sum::<f64>() + 2.0 * (squares - noise).max(0.0);
        let radius_squared = frame.ball.norm_squared() as f64 / f64::from(Q).powi(2);
        kept_by_ball(mean * mean / half_variance, (radius_squared / mean).sqrt()).sqrt().recip()
    }

    /// The variance of a column, from the second round and the moments by how well each knows it,
    /// and shrunk towards 0 as far as both together do not.
    fn believable_variance(&self, frame: &Frame, column: usize) -> f64 {
        let [_, second] = frame.rounds(column);
        let of_round = frame.resolved(column);
        let ratio = second.sd / frame.scalings[column].scale;
        let round_precision = 1.0 / ((1.0 - second.resolved) * ratio * ratio).powi(2).max(1e-300);
        let of_moments = self.covariance[column * self.means.len() + column];
        let moment_precision = 1.0 / (2.0 * self.noise * self.noise);
        let precision = round_precision + moment_precision;
        let found = ((of_round * round_precision + of_moments * moment_precision) / precision).max(0.0);
        found * found * found / (found * found + 1.0 / precision)
    }
}
