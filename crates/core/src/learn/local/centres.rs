//! Where columns lie.

use super::LocalMoments;
use crate::calibrated::Frame;

/// By how much, in standard deviations, clipping may move a mean (docs/LEARNERS.md#posterior, step
/// 9).
const CENTRE_DOUBT: f64 = 0.05;
/// Keeps precisions finite where nothing is noised.
const LEAST_VARIANCE: f64 = 1e-30;
/// How many scales of the distance between a column's mean and the middle of its range are tried,
/// each half the one before (docs/LEARNERS.md#posterior, step 9).
const CENTRE_SCALES: i32 = 8;

/// Where a column lies, in units of its public range.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Centre {
    /// Its mean as published numbers have it.
    pub found: f64,
    /// Standard deviation of the noise in that.
    pub error: f64,
    /// What to predict with: nearer to the middle of the public range the less the mean is known,
    /// since people who set bounds mostly set them around what they expect.
    pub believed: f64,
}

impl Centre {
    /// A mean that was found with noise of this variance. How far from the middle columns lie is
    /// learned from the mean itself: every scale is as likely as the others beforehand.
    fn new(found: f64, noise: f64, numeric: bool) -> Self {
        let error = noise.sqrt();
        if !numeric {
            return Self { found, error, believed: found };
        }
        let variances = (0..CENTRE_SCALES).map(|step| 0.25_f64.powi(step) / 3.0);
        let (mut kept, mut total) = (0.0, 0.0);
        for variance in variances {
            let seen = variance + noise;
            let likelihood = (-0.5 * (seen.ln() + found * found / seen)).exp();
            kept += likelihood * variance / seen;
            total += likelihood;
        }
        Self { found, error, believed: found * kept / total }
    }
}

impl LocalMoments {
    /// Where each column lies, by both rounds and the moments, each as far as noise and clipping
    /// let it be believed.
    pub fn centres(&self, frame: &Frame) -> Vec<Centre> {
        let of_column = |column: usize| {
            let (scaling, [first, second]) = (&frame.scalings[column], frame.rounds(column));
            let noise = (scaling.scale * self.mean_noise[column]).powi(2);
            let cut = (CENTRE_DOUBT * scaling.scale).powi(2) * frame.resolved(column).clamp(0.0, 1.0);
            let moved = scaling.centre + scaling.scale * self.means[column];
            // What each says, the variance of its noise, and of what clipping may have done
            // besides.
            let sayings = [
                (first.mean, first.error.powi(2), 0.0),
                (scaling.centre, second.error.powi(2), 0.0),
                (moved, noise, cut),
            ];
            let precision = |noise: f64, cut: f64| (noise + cut + LEAST_VARIANCE).recip();
            let total: f64 = sayings.iter().map(|&(_, noise, cut)| precision(noise, cut)).sum();
            let weighted = |&(mean, noise, cut): &(f64, f64, f64)| mean * precision(noise, cut) / total;
            let error = |&(_, noise, cut): &(f64, f64, f64)| noise * (precision(noise, cut) / total).powi(2);
            let found = sayings.iter().map(weighted).sum();
            Centre::new(found, sayings.iter().map(error).sum(), first.numeric)
        };
        (0..self.means.len()).map(of_column).collect()
    }
}
