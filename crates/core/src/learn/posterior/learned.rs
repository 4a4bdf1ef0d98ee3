//! Posterior means of the covariances with the label and of the matrix of all features, and the
//! weights they give (docs/LEARNERS.md#posterior, steps 4 to 7).

use faer::linalg::solvers::DenseSolveCore;
use faer::linalg::triangular_solve::solve_lower_triangular_in_place;
use faer::{Col, Mat, Par, Side};

use super::Related;
use super::correlations::{Correlations, Purpose};
use super::evidence::{Evidence, Sample};
use super::shifts::{LabelRows, Shifts, clear_of_singular};
use super::shrink::{Noisy, factors, geometric_grid};
use super::whiten::Whitened;
use crate::learn::LearnError;

/// Largest share of the label's variance that one party's features are believed to explain.
const MOST_EXPLAINED: f64 = 0.98;
/// How far H may go from what the label implies towards a singular matrix.
const MOST_TRUSTED: f64 = 0.9;

/// No party explains more than nearly all of the label.
fn cap_explained(white: &Whitened, parties: usize, means: &mut [f64]) {
    for b in 0..parties {
        let of_party: Vec<usize> = (0..means.len()).filter(|&i| white.party[i] == b).collect();
        let explained: f64 = of_party.iter().map(|&i| means[i].powi(2)).sum();
        if explained > MOST_EXPLAINED {
            for i in of_party {
                means[i] *= (MOST_EXPLAINED / explained).sqrt();
            }
        }
    }
}

pub(super) fn inverse(matrix: &Mat<f64>) -> Option<Mat<f64>> {
    matrix.llt(Side::Lower).ok().map(|factor| factor.inverse())
}

/// How far a step may be taken from a positive definite matrix so that it stays clear of a singular
/// one: 1 if all of it may.
pub(super) fn part_that_is_sound(from: &Mat<f64>, step: &Mat<f64>) -> Result<f64, LearnError> {
    let factor = from.llt(Side::Lower).map_err(|_| LearnError::Overflow)?;
    let mut half = step.clone();
    solve_lower_triangular_in_place(factor.L(), half.as_mut(), Par::Seq);
    let mut both = half.transpose().to_owned();
    solve_lower_triangular_in_place(factor.L(), both.as_mut(), Par::Seq);
    let d = step.nrows();
    let symmetric = Mat::from_fn(d, d, |i, j| f64::midpoint(both[(i, j)], both[(j, i)]));
    let values = symmetric.self_adjoint_eigenvalues(Side::Lower).map_err(|_| LearnError::Overflow)?;
    let smallest = values.first().copied().unwrap_or(0.0);
    Ok(f64::min(1.0, MOST_TRUSTED / f64::max(-smallest, 1e-9)))
}

/// H: the matrix of all features, so close to the estimated correlations that it is positive
/// definite with the label included.
fn joint_matrix(white: &Whitened, means: &[f64], estimate: &Mat<f64>) -> Result<Mat<f64>, LearnError> {
    let d = means.len();
    let implied = white.implied(means);
    let difference = estimate - &implied;
    let trust = part_that_is_sound(&white.left_by_parties(means), &difference)?;
    Ok(Mat::<f64>::identity(d, d) + implied + difference * faer::Scale(trust))
}

/// Everything about a regression that its intervals need.
pub(super) struct Learned {
    pub(super) white: Whitened,
    pub(super) label_variance: f64,
    /// The label's party, and the share of its people whose label is present.
    pub(super) home: usize,
    pub(super) label_rate: f64,
    /// Variance of a mixed row of the label, and the part of it that is not noise.
    pub(super) label_spread: f64,
    pub(super) label_mixing_spread: f64,
    /// Cosines between mixed rows along the coordinates.
    pub(super) cosines: Mat<f64>,
    /// Covariances with the label as they were found, with the variances of their errors.
    pub(super) found: Noisy,
    /// By what they are shrunk at first.
    pub(super) factors: Vec<f64>,
    /// Their posterior means.
    pub(super) means: Vec<f64>,
    pub(super) correlations: Correlations,
    /// How many people two coordinates' parties have in common, and a coordinate's and the label's.
    pub(super) shared: Mat<f64>,
    pub(super) shared_with_label: Vec<f64>,
    /// Variances of what is taken out of products because shared people differ from others, between
    /// coordinates and with the label; and the shifts.
    pub(super) unmoved: Mat<f64>,
    pub(super) unmoved_label: Vec<f64>,
    pub(super) shifts: Shifts,
    /// Standard deviations of the logarithms of what parties have in common.
    pub(super) overlap_doubts: Mat<f64>,
    /// By how much less features vary among the label's people, as a vector whose square is lost.
    pub(super) lost: Col<f64>,
    /// Correlations between parties before that.
    pub(super) between: Mat<f64>,
    pub(super) h: Mat<f64>,
    pub(super) h_inverse: Mat<f64>,
    /// Weights of the coordinates.
    pub(super) w: Col<f64>,
    /// From weights of coordinates to weights of features.
    pub(super) back: Mat<f64>,
}

impl Learned {
    /// What features have to do with each other.
    pub(super) fn related(&self) -> Vec<Related> {
        let (to_features, to_coordinates) = (&self.white.inverse, &self.white.transform);
        let covariance = to_features * &self.h * to_features.transpose();
        let precision = to_coordinates.transpose() * &self.h_inverse * to_coordinates;
        let d = covariance.nrows();
        let of = |j: usize| {
            let correlation =
                |i: usize| covariance[(i, j)] / (covariance[(i, i)] * covariance[(j, j)]).sqrt();
            let others = (0..d).filter(|&i| i != j).map(|i| (i, correlation(i)));
            Related {
                by_others: (1.0 - 1.0 / (covariance[(j, j)] * precision[(j, j)])).clamp(0.0, 1.0),
                closest: others.max_by(|(_, one), (_, other)| one.abs().total_cmp(&other.abs())),
            }
        };
        (0..d).map(of).collect()
    }

    /// Learns from a sample whose products are those of the features and, last, the label.
    pub(super) fn new(
        evidence: &Evidence<'_>,
        sample: &Sample,
        label: usize,
        features: &[usize],
        purpose: Purpose,
    ) -> Result<Self, LearnError> {
        let (k, d, people) = (sample.k, features.len(), &evidence.people);
        let home = evidence.party_of(label);
        let label_rate = people.rates[label];
        let label_variance = evidence.covariance[(label, label)].max(3.0 * evidence.covariance_noise[label]);
        let label_sd = label_variance.sqrt();
        let label_mixing_spread = sample.scaled(people.held[home]) / k / label_rate;
        let label_spread = label_mixing_spread + evidence.noise(label).powi(2) / label_variance;
        let white = Whitened::new(evidence, sample, label, label_sd, features)?;
        let (t, sizes) = (&white.spreads, &white.sizes);
        let shared =
            Mat::from_fn(d, d, |i, j| sample.scaled(people.shared[(white.party[i], white.party[j])]));
        let shared_with_label: Vec<f64> =
            white.party.iter().map(|&party| sample.scaled(people.shared[(party, home)])).collect();

        // Correlations of the mixed rows along the coordinates, with the noise removed from their
        // scale, about the means of the people that parties have in common.
        let rotated = &white.transform * sample.gram.submatrix(0, 0, d, d) * white.transform.transpose();
        let with_label = &white.transform * sample.gram.col(d).subrows(0, d);
        let lengths: Vec<f64> = (0..d).map(|i| rotated[(i, i)].sqrt()).collect();
        let cosines = Mat::from_fn(d, d, |i, j| rotated[(i, j)] / (lengths[i] * lengths[j]));
        let label_length = sample.gram[(d, d)].sqrt();
        let label_rows = LabelRows { home, length: label_length, spread: label_spread };
        let shifts = Shifts::new(evidence, sample, &white, &lengths, &label_rows);
        let moved = |i: usize, j: usize| shifts.of(i, white.party[j]).times(shifts.of(j, white.party[i]));
        let moved_with_label = |i: usize| shifts.of(i, home).times(shifts.of_label(white.party[i]));
        let crossed = Mat::from_fn(d, d, |i, j| {
            if !white.apart(i, j) {
                return 0.0;
            }
            cosines[(i, j)] * (t[i] * t[j]).sqrt() * k / shared[(i, j)] - moved(i, j).mean
        });
        let unmoved = Mat::from_fn(d, d, |i, j| if white.apart(i, j) { moved(i, j).variance } else { 0.0 });
        let unmoved_label =
            (0..d).map(|i| if white.own[i] { 0.0 } else { moved_with_label(i).variance }).collect::<Vec<_>>();
        let variance =
            Mat::from_fn(d, d, |i, j| t[i] * t[j] * k / (shared[(i, j)] * shared[(i, j)]) + unmoved[(i, j)]);
        let between = |i: usize| {
            let cosine = with_label[i] / (lengths[i] * label_length);
            cosine * (t[i] * label_spread).sqrt() * k / shared_with_label[i] - moved_with_label(i).mean
        };
        let local = |i: usize| white.noise[i].powi(2) * sizes[i] * (1.0 / label_variance + sizes[i]);
        let mixed = |i: usize| {
            t[i] * label_spread * k / (shared_with_label[i] * shared_with_label[i]) + unmoved_label[i]
        };
        let found = Noisy {
            values: (0..d)
                .map(|i| if white.own[i] { white.label_covariance[i] } else { between(i) })
                .collect(),
            variances: (0..d).map(|i| if white.own[i] { local(i) } else { mixed(i) }).collect(),
        };
        if !found.values.iter().chain(&found.variances).all(|value| value.is_finite()) {
            return Err(LearnError::Overflow);
        }

        // Posterior means of the covariances with the label, first by themselves …
        let factors = factors(&found.values, &found.variances, &geometric_grid(2.0 / d as f64, 1e-2));
        let mut means: Vec<f64> = found.values.iter().zip(&factors).map(|(c, factor)| c * factor).collect();
        cap_explained(&white, evidence.parties.len(), &mut means);
        let correlations = Correlations::new(&white, crossed, variance, &means, k);
        // … then those of other parties given those of the label's own.
        let estimate = correlations.estimate(&white, &means, purpose)?;
        means = means_given_own(&white, &found, &means, &correlations, &estimate);
        cap_explained(&white, evidence.parties.len(), &mut means);

        let whole = joint_matrix(&white, &means, &correlations.estimate(&white, &means, purpose)?)?;
        let part = |party: usize| people.shared[(party, home)] / people.held[party];
        let lost = shifts.lost(&white, home, part);
        let some = lost.iter().any(|lost| *lost != 0.0);
        let lost = if some { clear_of_singular(&whole, lost) } else { lost };
        let h = &whole - &lost * lost.transpose();
        let h_inverse = inverse(&h).ok_or(LearnError::Overflow)?;
        let w = &h_inverse * Col::from_fn(d, |i| means[i]);
        let back = white.transform.transpose().to_owned() * faer::Scale(label_sd);
        Ok(Self {
            white,
            label_variance,
            home,
            label_rate,
            label_spread,
            label_mixing_spread,
            cosines,
            found,
            factors,
            means,
            correlations,
            shared,
            shared_with_label,
            unmoved,
            unmoved_label,
            shifts,
            overlap_doubts: people.doubts.clone(),
            lost,
            between: whole - Mat::<f64>::identity(d, d),
            h,
            h_inverse,
            w,
            back,
        })
    }

    /// Posterior mean weights of the features, clipping not undone.
    pub(super) fn weights(&self) -> Vec<f64> {
        (&self.back * &self.w).iter().copied().collect()
    }

    /// Share of the label's variance that the posterior mean explains.
    pub(super) fn explained(&self) -> f64 {
        (0..self.means.len()).map(|i| self.means[i] * self.w[i]).sum::<f64>().clamp(0.0, 1.0)
    }
}

/// Means of covariances with the label: of other parties' coordinates given those of the label's
/// own party, whose effects reach the label through the correlations.
fn means_given_own(
    white: &Whitened,
    found: &Noisy,
    means: &[f64],
    correlations: &Correlations,
    estimate: &Mat<f64>,
) -> Vec<f64> {
    let d = means.len();
    let (own, others): (Vec<usize>, Vec<usize>) = (0..d).partition(|&i| white.own[i]);
    if others.is_empty() {
        return means.to_vec();
    }
    let g = correlations.prior / 2.0;
    let unresolved = |a: usize, b: usize| {
        let v = correlations.variance[(a, b)];
        if g > 0.0 { g * v / (g + v) } else { 0.0 }
    };
    let base: Vec<f64> =
        others.iter().map(|&a| own.iter().map(|&b| estimate[(a, b)] * means[b]).sum()).collect();
    let beyond = Noisy {
        values: others.iter().zip(&base).map(|(&a, base)| found.values[a] - base).collect(),
        variances: others
            .iter()
            .map(|&a| {
                let through: f64 = own.iter().map(|&b| unresolved(a, b) * means[b].powi(2)).sum();
                found.variances[a] + through
            })
            .collect(),
    };
    let of_own = Noisy {
        values: own.iter().map(|&b| found.values[b]).collect(),
        variances: own.iter().map(|&b| found.variances[b]).collect(),
    };
    let mut given = means.to_vec();
    for ((&a, base), mean) in others.iter().zip(&base).zip(beyond.sparse_means(&of_own)) {
        given[a] = base + mean;
    }
    given
}

impl Learned {
    /// Posterior covariance of the weights of the coordinates that go with a matrix, and the
    /// explained share that is missed on average because they are not known.
    pub(super) fn weight_doubt(&self, h_inverse: &Mat<f64>, explained: f64) -> (Mat<f64>, f64) {
        let d = self.means.len();
        let doubt: Vec<f64> =
            self.found.variances.iter().zip(&self.factors).map(|(v, factor)| v * factor).collect();
        // tr(H⁻¹ diag(doubt) H⁻¹ H) = Σ doubt·H⁻¹ on the diagonal.
        let total: f64 = (0..d).map(|i| doubt[i] * h_inverse[(i, i)]).sum();
        let keep = (0.5 * (1.0 - explained) / total.max(1e-300)).min(1.0);
        let scaled = Mat::from_fn(d, d, |i, j| keep * doubt[i] * h_inverse[(i, j)]);
        (h_inverse * scaled, keep * total)
    }
}
