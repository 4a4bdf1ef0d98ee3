//! Coefficients to read effects from, with their variances: one step from the posterior mean
//! towards what the mixed rows say by themselves.
//!
//! b = w + H⁻¹(c − H_r w), where c and H_r are hardly shrunk. Errors of H and w enter as their
//! product only (debiased estimation: Zhang and Zhang 2014), so shrinkage does not bias b to first
//! order; the product is in the variance (docs/LEARNERS.md#intervals-of-posterior).

use faer::{Col, Mat};

use super::evidence::Sample;
use super::learned::{Learned, inverse};

/// Prior variance of a correlation between parties, for reading: hardly a restriction.
const WIDE: f64 = 0.25;

/// The estimating equations H_r b = c, linearised at one H.
pub(super) struct Linearised {
    pub(super) h_inverse: Mat<f64>,
    /// Weights of the coordinates that H gives.
    pub(super) w: Col<f64>,
    /// b, of the coordinates.
    pub(super) b: Col<f64>,
    /// Share of the label's variance that w explains.
    pub(super) explained: f64,
    /// Variances of the equations by mixing and noise in the mixed rows, and the part that mixing
    /// alone would give.
    pub(super) mixed: Vec<f64>,
    pub(super) mixing_part: Vec<f64>,
    /// Covariances of the equations by correlations that are not known.
    pub(super) unknown: Mat<f64>,
    /// Variances by noise in the moments within parties.
    pub(super) local: Vec<f64>,
}

impl Linearised {
    /// Nothing if the matrix has no inverse.
    pub(super) fn at(learned: &Learned, sample: &Sample, h: &Mat<f64>) -> Option<Self> {
        let (n, k, d) = (sample.n, sample.k, learned.means.len());
        let Learned { white, means, correlations, found, .. } = learned;
        let (t, lambda) = (&white.spreads, &white.variances);
        let h_inverse = inverse(h)?;
        let means = Col::from_fn(d, |i| means[i]);
        let w = &h_inverse * &means;
        let explained = (means.transpose() * &w).clamp(0.0, 1.0);

        let theta = Mat::from_fn(d, d, |a, b| {
            if white.apart(a, b) { WIDE / (WIDE + correlations.variance[(a, b)]) } else { 0.0 }
        });
        let read = Mat::from_fn(d, d, |a, b| f64::from(a == b) + theta[(a, b)] * correlations.found[(a, b)]);
        let b = &w + &h_inverse * (Col::from_fn(d, |i| found.values[i]) - &read * &w);

        let (doubt, _) = learned.weight_doubt(&h_inverse, explained);
        let squares: Vec<f64> = (0..d).map(|i| w[i] * w[i] + doubt[(i, i)]).collect();
        let total = Mat::from_fn(d, d, |a, b| {
            n / k * (h[(a, b)] - f64::from(a == b)) + if a == b { t[a] } else { 0.0 }
        });
        let u = Mat::from_fn(d, d, |a, b| theta[(a, b)] * w[b]);
        let (in_rows, in_mixing, with_label) = (&u * &total, &u * h, &u * &means);
        let along = |product: &Mat<f64>, a: usize| (0..d).map(|b| product[(a, b)] * u[(a, b)]).sum::<f64>();
        let (mut mixed, mut mixing_part, mut local) = (vec![0.0; d], vec![0.0; d], vec![0.0; d]);
        for a in 0..d {
            let counts = if white.own[a] { 0.0 } else { 1.0 };
            let extra = |b: usize| theta[(a, b)].powi(2) * doubt[(b, b)];
            let of_rows =
                counts * learned.label_spread - 2.0 * counts * n / k * with_label[a] + along(&in_rows, a);
            let of_mixing = counts - 2.0 * counts * with_label[a] + along(&in_mixing, a);
            let extra_rows: f64 = (0..d).map(|b| extra(b) * t[b]).sum();
            mixed[a] = k / (n * n) * t[a] * (of_rows.max(0.0) + extra_rows);
            mixing_part[a] = (of_mixing.max(0.0) + (0..d).map(extra).sum::<f64>()) / k;
            let same: f64 = (0..d).filter(|&b| !white.apart(a, b)).map(|b| squares[b] / lambda[b]).sum();
            let of_label = if white.own[a] { 1.0 / learned.label_variance } else { 0.0 };
            local[a] = white.noise[a].powi(2) / lambda[a] * (of_label + same + squares[a] / lambda[a]);
        }
        let hidden = Mat::from_fn(d, d, |a, b| {
            let theta = theta[(a, b)];
            let kept = theta * correlations.found[(a, b)];
            (1.0 - theta).powi(2) * (kept * kept + theta * correlations.variance[(a, b)])
        });
        let delta = &read - h;
        let second_order = &delta * doubt * delta.transpose();
        let unknown = Mat::from_fn(d, d, |a, b| {
            let first = if a == b {
                (0..d).map(|other| hidden[(a, other)] * squares[other]).sum()
            } else {
                hidden[(a, b)] * w[a] * w[b]
            };
            first + second_order[(a, b)]
        });
        Some(Self { h_inverse, w, b, explained, mixed, mixing_part, unknown, local })
    }

    /// How much of the variance of a coefficient is due to open correlations with each feature, up
    /// to a factor: the variance of a correlation times the square of the effect that it would
    /// carry over.
    pub(super) fn open(&self, learned: &Learned, rows: &Mat<f64>, coefficient: usize) -> Vec<f64> {
        let d = self.mixed.len();
        let white = &learned.white;
        let variance = &learned.correlations.variance;
        // Of each coordinate …
        let of_coordinate = |b: usize| {
            let carried = self.w[b].powi(2) + learned.found.variances[b] * learned.factors[b];
            (0..d)
                .filter(|&a| white.apart(a, b))
                .map(|a| rows[(coefficient, a)].powi(2) * variance[(a, b)].min(WIDE) * carried)
                .sum::<f64>()
        };
        let of_coordinates: Vec<f64> = (0..d).map(of_coordinate).collect();
        // … and of each feature by how much it is part of the coordinates.
        let of_feature = |j: usize| {
            let share = |b: usize| (white.transform[(b, j)] * white.inverse[(j, b)]).abs();
            (0..d).map(|b| share(b) * of_coordinates[b]).sum()
        };
        (0..d).map(of_feature).collect()
    }

    /// Covariances of the equations by the mixed rows, each times a share.
    pub(super) fn of_rows(&self, learned: &Learned, share: impl Fn(usize) -> f64) -> Mat<f64> {
        let d = self.mixed.len();
        let own = &learned.white.own;
        Mat::from_fn(d, d, |i, j| {
            let correlation = match (i == j, own[i] || own[j]) {
                (true, _) => 1.0,
                (false, true) => 0.0,
                (false, false) => learned.cosines[(i, j)],
            };
            share(i) * correlation * (self.mixed[i] * self.mixed[j]).sqrt()
        })
    }
}
