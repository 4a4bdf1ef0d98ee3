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
    /// Squared lengths of the rows of `transform`: 1/λ with λ the variance along a coordinate, if
    /// no value is missing.
    pub(super) sizes: Vec<f64>,
    /// For each feature, how much of it lies along coordinates whose variance noise hides.
    pub(super) raised: Vec<f64>,
    /// t: the variance of a mixed row along each coordinate, n/k + ς²/λ if no value is missing.
    pub(super) spreads: Vec<f64>,
    /// The part of it that is not noise.
    pub(super) mixing_spreads: Vec<f64>,
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
            sizes: Vec::with_capacity(d),
            raised: vec![0.0; d],
            spreads: Vec::with_capacity(d),
            mixing_spreads: Vec::with_capacity(d),
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
            let start = white.sizes.len();
            let least = 2.0 * eta * (q as f64).sqrt();
            let found = eigen.S().column_vector();
            let axes = Axes {
                vectors: eigen.U().to_owned(),
                variances: (0..q).map(|r| found[r].max(least)).collect(),
            };
            let turned = axes.turned(evidence, sample, b, &places)?;
            for r in 0..q {
                let mut covariance = 0.0;
                for (c, &(column, place)) in places.iter().enumerate() {
                    let entry = turned.transform[(r, c)];
                    white.transform[(start + r, place)] = entry;
                    white.inverse[(place, start + r)] = turned.inverse[(c, r)];
                    white.to_features[(start + c, start + r)] = turned.to_features[(c, r)];
                    white.party_of_feature[place] = b;
                    white.raised[place] += if found[r] < least { axes.vectors[(c, r)].powi(2) } else { 0.0 };
                    covariance += entry * evidence.covariance[(column, label)];
                }
                white.sizes.push(turned.sizes[r]);
                white.spreads.push(turned.spreads[r]);
                white.mixing_spreads.push(turned.mixing_spreads[r]);
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

/// Axes of a party's covariance with the variances along them.
struct Axes {
    vectors: Mat<f64>,
    variances: Vec<f64>,
}

/// Coordinates of one party: rows from features, columns back, and what a mixed row holds of them.
struct Turned {
    transform: Mat<f64>,
    inverse: Mat<f64>,
    to_features: Mat<f64>,
    sizes: Vec<f64>,
    spreads: Vec<f64>,
    mixing_spreads: Vec<f64>,
}

impl Axes {
    /// Coordinates along these axes, or, where values are missing, turned until what a mixed row
    /// holds is diagonal: values that are present over their shares, and noise.
    fn turned(
        &self,
        evidence: &Evidence<'_>,
        sample: &Sample,
        party: usize,
        places: &[(usize, usize)],
    ) -> Result<Turned, LearnError> {
        let (q, people) = (places.len(), &evidence.people);
        let held = sample.scaled(people.held[party]) / sample.k;
        let transform = Mat::from_fn(q, q, |r, c| self.vectors[(c, r)] / self.variances[r].sqrt());
        let inverse = Mat::from_fn(q, q, |c, r| self.vectors[(c, r)] * self.variances[r].sqrt());
        if places.iter().all(|&(column, _)| people.rates[column] >= 1.0) {
            let noise = evidence.noise(places[0].0).powi(2);
            return Ok(Turned {
                transform,
                inverse,
                to_features: self.vectors.clone(),
                sizes: self.variances.iter().map(|variance| 1.0 / variance).collect(),
                spreads: self.variances.iter().map(|variance| held + noise / variance).collect(),
                mixing_spreads: vec![held; q],
            });
        }
        let moments = &inverse * inverse.transpose();
        let column = |c: usize| places[c].0;
        let filled = Mat::from_fn(q, q, |c, o| {
            let rates = people.rates[column(c)] * people.rates[column(o)];
            held * moments[(c, o)] * people.joint[(column(c), column(o))] / rates
        });
        let noise = Mat::from_fn(q, q, |c, o| if c == o { evidence.noise(column(c)).powi(2) } else { 0.0 });
        let along = |matrix: &Mat<f64>| &transform * matrix * transform.transpose();
        let bucket = along(&(&filled + noise));
        let eigen = bucket.self_adjoint_eigen(Side::Lower).map_err(|_| LearnError::Overflow)?;
        let (by, spreads) = (eigen.U(), eigen.S().column_vector());
        let mixing = by.transpose() * along(&filled) * by;
        let transform = by.transpose() * &transform;
        Ok(Turned {
            sizes: (0..q).map(|r| (0..q).map(|c| transform[(r, c)].powi(2)).sum()).collect(),
            transform,
            inverse: inverse * by,
            to_features: &self.vectors * by,
            spreads: spreads.iter().copied().collect(),
            mixing_spreads: (0..q).map(|r| mixing[(r, r)]).collect(),
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
