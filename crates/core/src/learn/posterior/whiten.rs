//! Each party's features in coordinates in which its covariance is the identity and its noise
//! diagonal.

use faer::{Mat, Side};

use super::{Evidence, Sample};
use crate::learn::LearnError;

pub(super) struct Whitened {
    /// From features to coordinates.
    pub(super) transform: Mat<f64>,
    /// From coordinates back to features: the inverse of `transform`.
    pub(super) inverse: Mat<f64>,
    /// From coordinates to ones that are as much alike the features as uncorrelated ones can be,
    /// each standing for one feature of its party in the party's order: orthogonal.
    pub(super) to_features: Mat<f64>,
    /// λ: variances along the coordinates.
    pub(super) variances: Vec<f64>,
    /// For each feature, how much of it lies along coordinates whose variance noise hides.
    pub(super) raised: Vec<f64>,
    /// t = n/k + ς²/λ: the variance of a mixed row along each coordinate.
    pub(super) spreads: Vec<f64>,
    /// η: noise of the party's moments, by coordinate.
    pub(super) noise: Vec<f64>,
    /// Which party a coordinate belongs to, and which one a feature.
    pub(super) party: Vec<usize>,
    pub(super) party_of_feature: Vec<usize>,
    /// Whether it is the label's.
    pub(super) own: Vec<bool>,
    /// Covariance with the label, for the label's own party.
    pub(super) label_covariance: Vec<f64>,
}

impl Whitened {
    pub(super) fn new(
        evidence: &Evidence<'_>,
        sample: &Sample,
        label: usize,
        label_sd: f64,
        features: &[usize],
    ) -> Result<Self, LearnError> {
        let d = features.len();
        let mut white = Self {
            transform: Mat::zeros(d, d),
            inverse: Mat::zeros(d, d),
            to_features: Mat::zeros(d, d),
            variances: Vec::with_capacity(d),
            raised: vec![0.0; d],
            spreads: Vec::with_capacity(d),
            noise: Vec::with_capacity(d),
            party: Vec::with_capacity(d),
            party_of_feature: vec![0; d],
            own: Vec::with_capacity(d),
            label_covariance: Vec::with_capacity(d),
        };
        for (b, members) in evidence.parties.iter().enumerate() {
            let at = |column: &usize| features.iter().position(|feature| feature == column);
            let places: Vec<(usize, usize)> =
                members.iter().filter_map(|&column| at(&column).map(|place| (column, place))).collect();
            let Some(&(first, _)) = places.first() else { continue };
            let (own, eta) = (members.contains(&label), evidence.covariance_noise[first]);
            let q = places.len();
            let moments = shrunk_moments(evidence, &places, eta);
            let eigen = moments.self_adjoint_eigen(Side::Lower).map_err(|_| LearnError::Overflow)?;
            let start = white.variances.len();
            for r in 0..q {
                let least = 2.0 * eta * (q as f64).sqrt();
                let is_raised = eigen.S().column_vector()[r] < least;
                let variance = eigen.S().column_vector()[r].max(least);
                let mut covariance = 0.0;
                for (c, &(column, place)) in places.iter().enumerate() {
                    let entry = eigen.U()[(c, r)] / variance.sqrt();
                    white.transform[(start + r, place)] = entry;
                    white.inverse[(place, start + r)] = eigen.U()[(c, r)] * variance.sqrt();
                    white.to_features[(start + c, start + r)] = eigen.U()[(c, r)];
                    white.party_of_feature[place] = b;
                    white.raised[place] += if is_raised { eigen.U()[(c, r)].powi(2) } else { 0.0 };
                    covariance += entry * evidence.covariance[(column, label)];
                }
                white.variances.push(variance);
                white.spreads.push(sample.n / sample.k + evidence.released.noise()[first].powi(2) / variance);
                white.noise.push(eta);
                white.party.push(b);
                white.own.push(own);
                white.label_covariance.push(if own { covariance / label_sd } else { 0.0 });
            }
        }
        Ok(white)
    }

    /// Whether two coordinates belong to different parties.
    pub(super) fn apart(&self, i: usize, j: usize) -> bool {
        self.party[i] != self.party[j]
    }

    /// A symmetric matrix of coordinates, between ones that stand for one feature each.
    pub(super) fn of_features(&self, matrix: &Mat<f64>) -> Mat<f64> {
        &self.to_features * matrix * self.to_features.transpose()
    }

    /// Correlations between parties if the label, with these covariances, is all that parties have
    /// in common.
    pub(super) fn implied(&self, means: &[f64]) -> Mat<f64> {
        let d = means.len();
        Mat::from_fn(d, d, |i, j| if self.apart(i, j) { means[i] * means[j] } else { 0.0 })
    }

    /// What the label then leaves of the covariance of the coordinates: positive definite, since no
    /// party explains all of the label.
    pub(super) fn left_by_parties(&self, means: &[f64]) -> Mat<f64> {
        let d = means.len();
        Mat::from_fn(d, d, |i, j| {
            f64::from(i == j) - if self.apart(i, j) { 0.0 } else { means[i] * means[j] }
        })
    }
}

/// The party's covariance with entries off the diagonal shrunk by their noise, and variances kept
/// clear of it.
fn shrunk_moments(evidence: &Evidence<'_>, places: &[(usize, usize)], eta: f64) -> Mat<f64> {
    let q = places.len();
    let entry = |i: usize, j: usize| evidence.covariance[(places[i].0, places[j].0)];
    let mut squares = 0.0;
    for i in 0..q {
        for j in (0..q).filter(|&j| j != i) {
            squares += entry(i, j).powi(2);
        }
    }
    let keep = (1.0 - eta * eta * (q * (q - 1)) as f64 / f64::max(squares, 1e-300)).max(0.0);
    Mat::from_fn(q, q, |i, j| if i == j { entry(i, i).max(3.0 * eta) } else { keep * entry(i, j) })
}
