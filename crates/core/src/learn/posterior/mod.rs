//! The noise-aware learner: estimates every entry of the covariance by its posterior mean, in coordinates in which
//! the noise is diagonal, then solves.
//!
//! For squared loss the best coefficients are E[H | data]⁻¹E[c | data]. Within a party moments are released; between
//! parties they come from the mixed rows, whose Gram matrix is all that is needed of them. Coefficients of a party's
//! features are whitened by its own moments, correlations between parties are shrunk by how well the data resolve
//! them, and the matrix of all is kept positive definite.

mod clipping;
mod correlations;
mod explained;
mod shrink;
mod whiten;

use faer::linalg::solvers::DenseSolveCore;
use faer::linalg::triangular_solve::solve_lower_triangular_in_place;
use faer::{Col, Mat, Par, Side};

use super::coefficients::Covariance;
use super::{Coefficients, LearnError, Released};
use crate::calibrated::{Clipping, LocalMoments};
use clipping::Losses;
use correlations::Correlations;
pub use explained::{ExplainedShare, explained_share};
use shrink::{Noisy, factors, geometric_grid};
use whiten::Whitened;

/// Largest share of the label's variance that one party's features are believed to explain.
const MOST_EXPLAINED: f64 = 0.98;

/// What the releases of all parties say, in standardised units.
#[derive(Debug, Clone)]
pub struct Evidence<'a> {
    /// The mixed rows.
    pub released: Released<'a>,
    /// The columns of each party.
    pub parties: Vec<Vec<usize>>,
    /// Covariance within parties; entries between parties are not used.
    pub covariance: Mat<f64>,
    /// Standard deviation of the noise in an off-diagonal entry of `covariance`, by column.
    pub covariance_noise: Vec<f64>,
    /// What of `covariance` was taken out because the ball makes it up, within parties.
    pub spurious: Mat<f64>,
    /// What clipping did to each column.
    pub clipping: Vec<Clipping>,
}

impl<'a> Evidence<'a> {
    /// What mixed rows say together with the moments within each party, given with its columns and what clipping did to
    /// them.
    pub fn from_parties(
        released: Released<'a>,
        parties: &[(Vec<usize>, &LocalMoments, &[Clipping])],
    ) -> Self {
        let p = released.columns().len();
        let mut covariance = Mat::zeros(p, p);
        let mut spurious = Mat::zeros(p, p);
        let mut covariance_noise = vec![0.0; p];
        let mut clipping = vec![Clipping::NONE; p];
        for (members, moments, clipped) in parties {
            for (i, &row) in members.iter().enumerate() {
                for (j, &column) in members.iter().enumerate() {
                    covariance[(row, column)] = moments.covariance[i * members.len() + j];
                    spurious[(row, column)] = moments.spurious[i * members.len() + j];
                }
                covariance_noise[row] = moments.noise;
                clipping[row] = clipped[i];
            }
        }
        let parties = parties.iter().map(|(members, ..)| members.clone()).collect();
        Self { released, parties, covariance, covariance_noise, spurious, clipping }
    }

    /// What mixed rows say that come without local moments: every column is a party of its own, its variance is that
    /// of its rows beyond the noise, and the regression goes through the origin.
    pub fn from_rows(released: Released<'a>) -> Self {
        let (k, n) = (released.k() as f64, released.n() as f64);
        let p = released.columns().len();
        let variances: Vec<f64> = released
            .columns()
            .iter()
            .zip(released.noise())
            .map(|(column, noise)| {
                let squares: f64 = column.iter().map(|z| z * z).sum();
                ((squares - k * noise * noise) / n).max(0.0)
            })
            .collect();
        let errors: Vec<f64> = variances
            .iter()
            .zip(released.noise())
            .map(|(variance, noise)| (variance * n / k + noise * noise) * k.sqrt() / n)
            .collect();
        let clipping = variances.iter().zip(&errors).map(|(variance, error)| Clipping {
            scale_error: (error / variance.max(3.0 * error)).powi(2) / 2.0,
            ..Clipping::NONE
        });
        Self {
            clipping: clipping.collect(),
            parties: (0..p).map(|column| vec![column]).collect(),
            covariance_noise: errors,
            spurious: Mat::zeros(p, p),
            covariance: Mat::from_fn(p, p, |i, j| if i == j { variances[i] } else { 0.0 }),
            released,
        }
    }
}

/// Evidence on some of the mixed rows: their number, the subjects they stand for, and the products of their columns.
struct Sample {
    n: f64,
    k: f64,
    gram: Mat<f64>,
}

impl Sample {
    /// The mixed rows whose position is wanted; products of the features and, last, the label.
    fn of(evidence: &Evidence<'_>, label: usize, features: &[usize], wanted: impl Fn(usize) -> bool) -> Self {
        let released = &evidence.released;
        let chosen: Vec<&[f64]> =
            features.iter().chain([&label]).map(|&column| released.columns()[column]).collect();
        let rows: Vec<usize> = (0..released.k()).filter(|&row| wanted(row)).collect();
        let z = Mat::from_fn(rows.len(), chosen.len(), |i, j| chosen[j][rows[i]]);
        let k = rows.len() as f64;
        Self { n: released.n() as f64 * k / released.k() as f64, k, gram: z.transpose() * &z }
    }

    /// The rows of all samples together, which have none in common.
    fn union(samples: &[Self]) -> Self {
        let size = samples.first().map_or(0, |sample| sample.gram.nrows());
        let mut gram = Mat::zeros(size, size);
        for sample in samples {
            gram += &sample.gram;
        }
        let sum = |part: fn(&Self) -> f64| samples.iter().map(part).sum();
        Self { n: sum(|sample| sample.n), k: sum(|sample| sample.k), gram }
    }

    /// The rows that are not in `part`, which is part of this.
    fn without(&self, part: &Self) -> Self {
        Self { n: self.n - part.n, k: self.k - part.k, gram: &self.gram - &part.gram }
    }
}

/// A regression learned from [`Evidence`], in standardised units.
#[derive(Debug, Clone)]
pub struct Posterior {
    /// Posterior mean weights: what to predict with.
    pub weights: Vec<f64>,
    /// Weights without shrinkage of the label's covariances, with their covariance: what intervals are about.
    pub estimate: Coefficients,
    /// What each variance is made of.
    pub parts: Vec<VarianceParts>,
    /// Explained share of the label's variance as the posterior mean has it.
    pub explained: f64,
}

/// What the variance of a coefficient is made of, as shares that sum to one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct VarianceParts {
    /// Noise added for privacy.
    pub privacy: f64,
    /// Subjects that share a mixed row.
    pub mixing: f64,
    /// Subjects being a sample.
    pub sampling: f64,
    /// Allowance for values that were clipped.
    pub clipping: f64,
}

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

fn smallest_eigenvalue(matrix: &Mat<f64>) -> Result<f64, LearnError> {
    let values = matrix.self_adjoint_eigenvalues(Side::Lower).map_err(|_| LearnError::Overflow)?;
    Ok(values.first().copied().unwrap_or(0.0))
}

fn inverse(matrix: &Mat<f64>) -> Option<Mat<f64>> {
    matrix.llt(Side::Lower).ok().map(|factor| factor.inverse())
}

/// H: the matrix of all features, so close to the estimated correlations that it is positive definite with the label
/// included; and how far it goes from what the label implies to what was estimated.
fn joint_matrix(white: &Whitened, means: &[f64], estimate: &Mat<f64>) -> Result<(Mat<f64>, f64), LearnError> {
    let d = means.len();
    let implied = Mat::from_fn(d, d, |i, j| if white.apart(i, j) { means[i] * means[j] } else { 0.0 });
    let rest = Mat::from_fn(d, d, |i, j| {
        f64::from(i == j) - if white.apart(i, j) { 0.0 } else { means[i] * means[j] }
    });
    let difference = estimate - &implied;
    let factor = rest.llt(Side::Lower).map_err(|_| LearnError::Overflow)?;
    let mut half = difference.clone();
    solve_lower_triangular_in_place(factor.L(), half.as_mut(), Par::Seq);
    let mut both = half.transpose().to_owned();
    solve_lower_triangular_in_place(factor.L(), both.as_mut(), Par::Seq);
    let symmetric = Mat::from_fn(d, d, |i, j| f64::midpoint(both[(i, j)], both[(j, i)]));
    let trust = f64::min(1.0, MOST_EXPLAINED / f64::max(-smallest_eigenvalue(&symmetric)?, 1e-9));
    let h = Mat::from_fn(d, d, |i, j| f64::from(i == j) + implied[(i, j)] + trust * difference[(i, j)]);
    Ok((h, trust))
}

/// Everything about a regression that its intervals need.
struct Learned {
    white: Whitened,
    label_variance: f64,
    label_spread: f64,
    /// Cosines between mixed rows along the coordinates.
    cosines: Mat<f64>,
    /// Covariances with the label as they were found, with the variances of their errors.
    found: Noisy,
    /// By what they are shrunk at first.
    factors: Vec<f64>,
    /// Their posterior means.
    means: Vec<f64>,
    correlations: Correlations,
    h: Mat<f64>,
    h_inverse: Mat<f64>,
    trust: f64,
    /// Weights of the coordinates.
    w: Col<f64>,
    /// From weights of coordinates to weights of features.
    back: Mat<f64>,
}

impl Learned {
    /// Learns from a sample whose products are those of the features and, last, the label.
    fn new(
        evidence: &Evidence<'_>,
        sample: &Sample,
        label: usize,
        features: &[usize],
    ) -> Result<Self, LearnError> {
        let (n, k, d) = (sample.n, sample.k, features.len());
        let label_variance = evidence.covariance[(label, label)].max(3.0 * evidence.covariance_noise[label]);
        let label_sd = label_variance.sqrt();
        let label_spread = n / k + evidence.released.noise()[label].powi(2) / label_variance;
        let white = Whitened::new(evidence, sample, label, label_sd, features)?;
        let (t, lambda) = (&white.spreads, &white.variances);

        // Correlations of the mixed rows along the coordinates, with the noise removed from their scale.
        let rotated = &white.transform * sample.gram.submatrix(0, 0, d, d) * white.transform.transpose();
        let with_label = &white.transform * sample.gram.col(d).subrows(0, d);
        let lengths: Vec<f64> = (0..d).map(|i| rotated[(i, i)].sqrt()).collect();
        let cosines = Mat::from_fn(d, d, |i, j| rotated[(i, j)] / (lengths[i] * lengths[j]));
        let label_length = sample.gram[(d, d)].sqrt();
        let crossed = Mat::from_fn(d, d, |i, j| {
            if white.apart(i, j) { cosines[(i, j)] * (t[i] * t[j]).sqrt() * k / n } else { 0.0 }
        });
        let variance = Mat::from_fn(d, d, |i, j| t[i] * t[j] * k / (n * n));
        let between =
            |i: usize| with_label[i] / (lengths[i] * label_length) * (t[i] * label_spread).sqrt() * k / n;
        let local = |i: usize| white.noise[i].powi(2) / lambda[i] * (1.0 / label_variance + 1.0 / lambda[i]);
        let mixed = |i: usize| t[i] * label_spread * k / (n * n);
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
        let correlations = Correlations::new(&white, &crossed, variance, &means, k)?;
        // … then those of other parties given those of the label's own.
        means = means_given_own(&white, &found, &means, &correlations);
        cap_explained(&white, evidence.parties.len(), &mut means);

        let (h, trust) = joint_matrix(&white, &means, &correlations.estimate)?;
        let h_inverse = inverse(&h).ok_or(LearnError::Overflow)?;
        let w = &h_inverse * Col::from_fn(d, |i| means[i]);
        let back = white.transform.transpose().to_owned() * faer::Scale(label_sd);
        Ok(Self {
            white,
            label_variance,
            label_spread,
            cosines,
            found,
            factors,
            means,
            correlations,
            h,
            h_inverse,
            trust,
            w,
            back,
        })
    }

    /// Posterior mean weights of the features, clipping not undone.
    fn weights(&self) -> Vec<f64> {
        (&self.back * &self.w).iter().copied().collect()
    }

    /// Share of the label's variance that the posterior mean explains.
    fn explained(&self) -> f64 {
        (0..self.means.len()).map(|i| self.means[i] * self.w[i]).sum::<f64>().clamp(0.0, 1.0)
    }

    /// How much of a correlation between parties went into H.
    fn theta(&self, a: usize, b: usize) -> f64 {
        self.trust * self.correlations.resolved[(a, b)]
    }
}

/// Means of covariances with the label: of other parties' coordinates given those of the label's own party, whose effects
/// reach the label through the correlations.
fn means_given_own(white: &Whitened, found: &Noisy, means: &[f64], correlations: &Correlations) -> Vec<f64> {
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
        others.iter().map(|&a| own.iter().map(|&b| correlations.estimate[(a, b)] * means[b]).sum()).collect();
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

/// Variances of the estimating equations: what the errors of covariances and correlations do to Hb = c.
struct Equations {
    /// Mixing and noise in the mixed rows, and the part of it that mixing alone would give.
    mixed: Vec<f64>,
    mixing_part: Vec<f64>,
    /// Correlations that shrinkage hid, and the part of them that mixing alone would hide.
    hidden: Mat<f64>,
    hidden_mixing: Mat<f64>,
    /// Noise in the moments within parties.
    local: Vec<f64>,
}

impl Equations {
    fn new(learned: &Learned, sample: &Sample) -> Self {
        let (n, k, d) = (sample.n, sample.k, learned.means.len());
        let Learned { white, w, h, means, correlations, .. } = learned;
        let (t, lambda) = (&white.spreads, &white.variances);
        let doubt = WeightDoubt::new(learned).variances;
        let squares: Vec<f64> = (0..d).map(|i| w[i] * w[i] + doubt[i]).collect();
        let total = Mat::from_fn(d, d, |b, e| {
            n / k * (h[(b, e)] - f64::from(b == e)) + if b == e { t[b] } else { 0.0 }
        });
        let (mut mixed, mut mixing_part, mut local) = (vec![0.0; d], vec![0.0; d], vec![0.0; d]);
        for a in 0..d {
            let counts = if white.own[a] { 0.0 } else { 1.0 };
            let u = Col::from_fn(d, |b| learned.theta(a, b) * w[b]);
            let with_label: f64 = (0..d).map(|b| u[b] * means[b]).sum();
            let extra = |b: usize| learned.theta(a, b).powi(2) * doubt[b];
            let of_rows = counts * learned.label_spread - 2.0 * counts * n / k * with_label
                + u.transpose() * &total * &u;
            let of_mixing = counts - 2.0 * counts * with_label + u.transpose() * h * &u;
            let extra_rows: f64 = (0..d).map(|b| extra(b) * t[b]).sum();
            mixed[a] = k / (n * n) * t[a] * (of_rows.max(0.0) + extra_rows);
            mixing_part[a] = (of_mixing.max(0.0) + (0..d).map(extra).sum::<f64>()) / k;
            let same: f64 = (0..d).filter(|&b| !white.apart(a, b)).map(|b| squares[b] / lambda[b]).sum();
            let of_label = if white.own[a] { 1.0 / learned.label_variance } else { 0.0 };
            local[a] = white.noise[a].powi(2) / lambda[a] * (of_label + same + squares[a] / lambda[a]);
        }
        // How large a correlation may be that was shrunk away.
        let g = correlations.upper;
        let size = |a: usize, b: usize| {
            if !white.apart(a, b) || g == 0.0 {
                return 0.0;
            }
            let v = correlations.variance[(a, b)];
            let kept = g / (g + v) * correlations.beyond[(a, b)];
            (1.0 - learned.theta(a, b)).powi(2) * (kept * kept + g * v / (g + v))
        };
        let of_mixing = |a: usize, b: usize| ((n / k).powi(2) / (t[a] * t[b])).min(1.0);
        let covariance = |entry: &dyn Fn(usize, usize) -> f64| {
            Mat::from_fn(d, d, |a, b| {
                if a == b {
                    (0..d).map(|other| entry(a, other) * squares[other]).sum()
                } else {
                    entry(a, b) * w[a] * w[b]
                }
            })
        };
        Self {
            mixed,
            mixing_part,
            hidden: covariance(&size),
            hidden_mixing: covariance(&|a, b| size(a, b) * of_mixing(a, b)),
            local,
        }
    }
}

/// What is not known of the weights of the coordinates.
struct WeightDoubt {
    /// Posterior variances: shrunk weights understate what errors in H are multiplied by.
    variances: Vec<f64>,
    /// Explained share that is missed on average because the weights are not known.
    missed: f64,
}

impl WeightDoubt {
    fn new(learned: &Learned) -> Self {
        let d = learned.means.len();
        let h_inverse = &learned.h_inverse;
        let doubt: Vec<f64> =
            learned.found.variances.iter().zip(&learned.factors).map(|(v, factor)| v * factor).collect();
        // tr(H⁻¹ diag(doubt) H⁻¹ H) = Σ doubt·H⁻¹ on the diagonal.
        let total: f64 = (0..d).map(|i| doubt[i] * h_inverse[(i, i)]).sum();
        let keep = (0.5 * (1.0 - learned.explained()) / total.max(1e-300)).min(1.0);
        let variance = |i: usize| keep * (0..d).map(|j| h_inverse[(i, j)].powi(2) * doubt[j]).sum::<f64>();
        Self { variances: (0..d).map(variance).collect(), missed: keep * total }
    }
}

/// Learns the regression of `label` on `features`.
pub fn posterior(evidence: &Evidence<'_>, label: usize, features: &[usize]) -> Result<Posterior, LearnError> {
    evidence.released.check_choice(label, features)?;
    let sample = Sample::of(evidence, label, features, |_| true);
    let learned = Learned::new(evidence, &sample, label, features)?;
    let losses = Losses::new(evidence, &learned, label, features);
    let equations = Equations::new(&learned, &sample);
    let Learned { h, h_inverse, back, w, .. } = &learned;
    let d = features.len();
    let explained = learned.explained();

    let undo = back * &losses.undo;
    // Where noise hides the spread of a column, little of what seems to go with it can be believed.
    let believed = |column: usize| {
        let seen = evidence.covariance[(column, column)].max(3.0 * evidence.covariance_noise[column]);
        (evidence.clipping[column].believable_variance / seen).min(1.0)
    };
    let found_weights = &undo * w;
    let weights = Col::from_fn(d, |j| found_weights[j] * believed(features[j]) * believed(label));
    let found = Col::from_fn(d, |i| learned.found.values[i]);
    let estimate = &undo * (h_inverse * found);
    // Each row turns errors of the equations into the error of one coefficient.
    let rows = back * &losses.derivative * h_inverse;

    let own = |i: usize| learned.white.own[i];
    let spread = |share: &dyn Fn(usize) -> f64| {
        Mat::from_fn(d, d, |i, j| {
            let correlation = match (i == j, own(i) || own(j)) {
                (true, _) => 1.0,
                (false, true) => 0.0,
                (false, false) => learned.cosines[(i, j)],
            };
            share(i) * correlation * (equations.mixed[i] * equations.mixed[j]).sqrt()
        })
    };
    let share = |i: usize| (equations.mixing_part[i] / equations.mixed[i].max(1e-300)).min(1.0);
    let local = Mat::from_fn(d, d, |i, j| if i == j { equations.local[i] } else { 0.0 });
    let through = |inner: &Mat<f64>| &rows * inner * rows.transpose();
    let of_rows = through(&spread(&|_| 1.0));
    let of_mixing = through(&spread(&share));
    let of_hidden = through(&equations.hidden);
    let of_hidden_mixing = through(&equations.hidden_mixing);
    let of_local = through(&local);
    let of_sampling = through(h) * faer::Scale((1.0 - explained) / sample.n);
    let effects: Vec<Col<f64>> = losses.effects.iter().map(|effect| back * effect).collect();
    let scale_error = |column: usize| evidence.clipping[column].scale_error;
    let of_scale = |i: usize| weights[i].powi(2) * (scale_error(features[i]) + scale_error(label));

    let covariance = Covariance::from_lower(d, |i, j| {
        let clipping: f64 = effects.iter().map(|effect| effect[i] * effect[j]).sum();
        of_rows[(i, j)]
            + of_hidden[(i, j)]
            + of_local[(i, j)]
            + of_sampling[(i, j)]
            + clipping
            + if i == j { of_scale(i) } else { 0.0 }
    });
    let parts = (0..d).map(|i| {
        let total = covariance.get(i, i);
        let mixing = of_mixing[(i, i)].clamp(0.0, of_rows[(i, i)].max(0.0))
            + of_hidden_mixing[(i, i)].clamp(0.0, of_hidden[(i, i)].max(0.0));
        let clipping: f64 = effects.iter().map(|effect| effect[i] * effect[i]).sum();
        let sampling = of_sampling[(i, i)];
        let privacy = total - mixing - sampling - clipping;
        VarianceParts {
            privacy: privacy / total,
            mixing: mixing / total,
            sampling: sampling / total,
            clipping: clipping / total,
        }
    });
    Ok(Posterior {
        parts: parts.collect(),
        weights: weights.iter().copied().collect(),
        estimate: Coefficients::new(
            estimate.iter().copied().collect(),
            covariance,
            evidence.released.k().saturating_sub(1).max(3),
        ),
        explained,
    })
}
