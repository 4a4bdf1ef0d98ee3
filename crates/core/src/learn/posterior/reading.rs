//! Coefficients to read effects from, with their variances: one step from the posterior mean
//! towards what the mixed rows say by themselves.
//!
//! b = w + H⁻¹(c − H_r w), where c and H_r are hardly shrunk. Errors of H and w enter as their
//! product only (debiased estimation: Zhang and Zhang 2014), so shrinkage does not bias b to first
//! order; the product is in the variance (docs/LEARNERS.md#intervals-of-posterior).

use faer::{Col, Mat};

use super::evidence::{Evidence, Sample};
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
    /// Variances of the equations by mixing and noise in the mixed rows, and the part that mixing
    /// alone would give.
    pub(super) mixed: Vec<f64>,
    pub(super) mixing_part: Vec<f64>,
    /// Covariances of the equations by correlations that are not known.
    pub(super) unknown: Mat<f64>,
    /// Variances by noise in the moments within parties.
    pub(super) local: Vec<f64>,
    /// Covariances by people being a sample.
    pub(super) sampling: Mat<f64>,
}

/// What mixed rows hold, and how many people that is.
struct Rows<'a> {
    learned: &'a Learned,
    k: f64,
    /// Of each coordinate, what a mixed row holds of its covariance with the label.
    with_label: Vec<f64>,
    /// Covariances between parties of what a mixed row holds.
    between: Mat<f64>,
    /// θ∘w over the people that the coordinates' parties have in common, and squares of what is not
    /// known of that.
    u: Mat<f64>,
    extra: Mat<f64>,
}

impl Rows<'_> {
    /// Variances of the equations if mixed rows have these variances along the coordinates and for
    /// the label.
    fn variances(&self, spreads: &[f64], label_spread: f64) -> Vec<f64> {
        let d = spreads.len();
        let white = &self.learned.white;
        let total = Mat::from_fn(d, d, |a, b| self.between[(a, b)] + if a == b { spreads[a] } else { 0.0 });
        let along = &self.u * total;
        let of = |a: usize| {
            let label = if white.own[a] { 0.0 } else { 1.0 / self.learned.shared_with_label[a] };
            let crossed: f64 = (0..d).map(|b| self.u[(a, b)] * self.with_label[b]).sum();
            let own: f64 = (0..d).map(|b| along[(a, b)] * self.u[(a, b)]).sum();
            let extra: f64 = (0..d).map(|b| self.extra[(a, b)] * spreads[b]).sum();
            let seen = label * label * label_spread - 2.0 * label * crossed + own;
            self.k * spreads[a] * (seen.max(0.0) + extra) * self.unknown(a)
        };
        (0..d).map(of).collect()
    }

    /// Where an overlap is hardly known, neither is the error of what is divided by it: E\[1/m²\]
    /// over 1/m².
    fn unknown(&self, a: usize) -> f64 {
        let Learned { white, home, overlap_doubts, .. } = self.learned;
        let doubt = |b: usize| overlap_doubts[(white.party[a], b)];
        let most = || white.party.iter().map(|&b| doubt(b)).fold(0.0, f64::max);
        let of = if white.own[a] { most() } else { doubt(*home) };
        (2.0 * of * of).exp()
    }
}

impl Linearised {
    /// Nothing if the matrix has no inverse.
    pub(super) fn at(
        evidence: &Evidence<'_>,
        learned: &Learned,
        sample: &Sample,
        h: &Mat<f64>,
    ) -> Option<Self> {
        let (k, d) = (sample.k, learned.means.len());
        let Learned { white, means, correlations, found, shared, lost, .. } = learned;
        let sizes = &white.sizes;
        let h_inverse = inverse(h)?;
        let means = Col::from_fn(d, |i| means[i]);
        let w = &h_inverse * &means;
        let explained = (means.transpose() * &w).clamp(0.0, 1.0);

        let theta = Mat::from_fn(d, d, |a, b| {
            if white.apart(a, b) { WIDE / (WIDE + correlations.variance[(a, b)]) } else { 0.0 }
        });
        let selected = lost * lost.transpose();
        let read = Mat::from_fn(d, d, |a, b| {
            f64::from(a == b) + theta[(a, b)] * correlations.found[(a, b)] - selected[(a, b)]
        });
        let b = &w + &h_inverse * (Col::from_fn(d, |i| found.values[i]) - &read * &w);

        let (doubt, _) = learned.weight_doubt(&h_inverse, explained);
        let squares: Vec<f64> = (0..d).map(|i| w[i] * w[i] + doubt[(i, i)]).collect();
        // Of each coordinate, how many of its people have a label.
        let held = sample.scaled(evidence.people.held[learned.home]);
        let labelled: Vec<f64> = white
            .own
            .iter()
            .zip(&learned.shared_with_label)
            .map(|(&own, &shared)| if own { held } else { shared })
            .collect();
        let per_person = |a: usize, b: usize| theta[(a, b)] / shared[(a, b)];
        let rows = Rows {
            learned,
            k,
            with_label: (0..d).map(|b| labelled[b] / k * means[b]).collect(),
            between: Mat::from_fn(d, d, |a, b| {
                if white.apart(a, b) { shared[(a, b)] / k * (h[(a, b)] + selected[(a, b)]) } else { 0.0 }
            }),
            u: Mat::from_fn(d, d, |a, b| per_person(a, b) * w[b]),
            extra: Mat::from_fn(d, d, |a, b| per_person(a, b).powi(2) * doubt[(b, b)]),
        };
        let mut mixed = rows.variances(&white.spreads, learned.label_spread);
        for (a, mixed) in mixed.iter_mut().enumerate() {
            let through = |b: usize| theta[(a, b)].powi(2) * squares[b] * learned.unmoved[(a, b)];
            *mixed += learned.unmoved_label[a] + (0..d).map(through).sum::<f64>();
        }
        let mixing_part = rows.variances(&white.mixing_spreads, learned.label_mixing_spread);
        let local = (0..d).map(|a| {
            let same: f64 = (0..d).filter(|&b| !white.apart(a, b)).map(|b| squares[b] * sizes[b]).sum();
            let of_label = if white.own[a] { 1.0 / learned.label_variance } else { 0.0 };
            white.noise[a].powi(2) * sizes[a] * (of_label + same + squares[a] * sizes[a])
        });
        let local = local.collect();
        // What people do that are not shared does not cancel.
        let cancels = |a: usize| (labelled[a] / sample.scaled(evidence.people.held[white.party[a]])).min(1.0);
        let cancelling = (0..d).map(cancels).sum::<f64>() / d as f64 * learned.label_rate;
        let per_person = (1.0 - explained * cancelling) / learned.label_rate;
        let sampling = Mat::from_fn(d, d, |a, b| h[(a, b)] * per_person / (labelled[a] * labelled[b]).sqrt());
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
        Some(Self { h_inverse, w, b, mixed, mixing_part, unknown, local, sampling })
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
