//! What a party publishes beside its mixed rows, as learners read it: local moments, what clipping
//! did to each column, and where each lies.
//!
//! All of it is estimated from published numbers, and decides how well a fit guesses, never what is
//! released. Its constants are explained in docs/LEARNERS.md#what-clipping-does.

mod centres;
mod clipping;
mod distribution;
mod made_up;
mod present;

use crate::calibrated::{CalibratedError, Frame, PartyPlan, Standard};
use crate::encoding::Q;
use crate::stage::pairs;
use present::Clipped;

pub use centres::Centre;
pub use clipping::{Clipping, Tails};
pub use distribution::{Distribution, Known, Quantile, distributions};
pub use present::PresentValues;

/// Means and covariances within one party, in standardised units, noise included.
#[derive(Clone, Debug, PartialEq)]
pub struct LocalMoments {
    /// Mean of each column, within its box.
    pub means: Vec<f64>,
    /// Standard deviation of the noise in each mean.
    pub mean_noise: Vec<f64>,
    /// Covariance matrix, row by row, without what the ball makes up.
    pub covariance: Vec<f64>,
    /// Covariances that the ball makes up between columns that have nothing to do with each other,
    /// row by row.
    pub spurious: Vec<f64>,
    /// η: standard deviation of the noise in an off-diagonal entry; a diagonal one has √2 times
    /// that.
    pub noise: f64,
    /// How many people have which values, in releases of format 2.
    pub present: Option<PresentValues>,
}

impl LocalMoments {
    /// Those of a party, from the noised sums of its stages before the mixed rows.
    pub fn new(party: &PartyPlan, sums: &[Vec<i64>], frame: &Frame) -> Result<Self, CalibratedError> {
        let means = party.local_means(sums, frame)?;
        let present = PresentValues::new(party, sums)?;
        let width = means.len();
        let groups = party.layout().encoded_groups();
        let (of_means, rest) = sums[2].split_at(width * party.layout().groups().max(1));
        let (n, q) = (party.plan().rows() as f64, f64::from(Q));
        // Over the people who have both values: how many they are, and the mean of the first.
        let both = |i: usize, j: usize| present.as_ref().map_or(n, |present| present.pairs[i * width + j]);
        let mean = |i: usize, j: usize| match groups.get(j) {
            Some(&group) if groups[i] != group => {
                let scaling = &frame.scalings[i];
                let end = |end: f64| (end - scaling.centre) / scaling.scale;
                let found = of_means[group * width + i] as f64 / (both(i, j) * q);
                found.clamp(end(scaling.low), end(scaling.high))
            }
            _ => means[i],
        };
        let mut covariance = vec![0.0; width * width];
        for i in 0..width {
            covariance[i * width + i] = rest[i] as f64 / (both(i, i) * q * q) - means[i] * means[i];
        }
        let spurious = made_up::covariances(party.layout(), frame);
        for ((i, j), &sum) in pairs(width).zip(&rest[width..]) {
            let product = sum as f64 / (both(i, j) * q * q);
            let entry = product - mean(i, j) * mean(j, i) - spurious[i * width + j];
            covariance[i * width + j] = entry;
            covariance[j * width + i] = entry;
        }
        let noise = party.moment_noise(frame.ball)?;
        let typical = present.as_ref().map_or(n, |present| {
            let squares: f64 = present.pairs.iter().map(|both| both.powi(-2)).sum();
            (present.pairs.len() as f64 / squares).sqrt()
        });
        let noise_of_product = noise.product.get() as f64 / (typical * q * q);
        if let Some(present) = &present {
            let clipped = Clipped {
                pairs: &present.pairs,
                resolved: (0..width).map(|column| frame.resolved(column)).collect(),
                covariance: &covariance,
                noise: noise_of_product,
                radius: frame.radius(),
            };
            for (entry, factor) in clipped.together().into_iter().enumerate() {
                covariance[entry] *= factor;
            }
        }
        Ok(Self {
            mean_noise: (0..width).map(|i| noise.sum.get() as f64 / (both(i, i) * q)).collect(),
            means,
            covariance,
            spurious,
            noise: noise_of_product,
            present,
        })
    }

    /// Variance of a column after clipping, as far above nothing as noise tells.
    fn after(&self, column: usize) -> f64 {
        self.covariance[column * self.means.len() + column].max(3.0 * self.noise)
    }
}

/// Frames as learners read them.
impl Frame {
    /// What both rounds said of a column.
    fn rounds(&self, column: usize) -> [&Standard; 2] {
        self.rounds.each_ref().map(|round| &round[column])
    }

    /// Variance of a column that the second round resolved, in standardised units: what clipping is
    /// measured by.
    fn resolved(&self, column: usize) -> f64 {
        let second = &self.rounds[1][column];
        let ratio = second.sd / self.scalings[column].scale;
        second.resolved * (ratio * ratio)
    }

    /// The radius of the ball, in standardised units.
    fn radius(&self) -> f64 {
        (self.ball.norm_squared() as f64).sqrt() / f64::from(Q)
    }

    /// Values of a column beyond this range, in units of its public one, are certainly cut: by the
    /// box, or because they would alone take a row out of the ball.
    pub fn kept(&self, column: usize) -> [f64; 2] {
        let scaling = &self.scalings[column];
        let reach = self.radius() * scaling.scale;
        [scaling.low.max(scaling.centre - reach), scaling.high.min(scaling.centre + reach)]
    }
}
