//! The noise-aware learner: estimates every entry of the covariance by its posterior mean, in coordinates in which
//! the noise is diagonal, then solves.
//!
//! For squared loss the best coefficients are E[H | data]⁻¹E[c | data]. Within a party moments are released; between
//! parties they come from the mixed rows, whose Gram matrix is all that is needed of them. Coefficients of a party's
//! features are whitened by its own moments, correlations between parties are shrunk by how well the data resolve
//! them, and the matrix of all is kept positive definite.

use faer::linalg::solvers::DenseSolveCore;
use faer::linalg::triangular_solve::solve_lower_triangular_in_place;
use faer::{Col, Mat, Par, Side};

use super::coefficients::{Covariance, Interval, Level};
use super::student;
use super::{Coefficients, LearnError, Released};
use crate::calibrated::LocalMoments;

/// How much of the undone clipping an interval allows for.
const ALLOWANCE: f64 = 0.25;
/// Largest share of the label's variance that one party's features are believed to explain.
const MOST_EXPLAINED: f64 = 0.98;
/// Points of a grid of prior variances.
const GRID: usize = 16;

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
    /// By how much clipping attenuated each column: the standard deviation before over that after it.
    pub attenuation: Vec<f64>,
}

impl<'a> Evidence<'a> {
    /// What mixed rows say together with the moments within each party, given with its columns and by how much clipping
    /// attenuated them.
    pub fn from_parties(released: Released<'a>, parties: &[(Vec<usize>, &LocalMoments, &[f64])]) -> Self {
        let p = released.columns().len();
        let mut covariance = Mat::zeros(p, p);
        let mut covariance_noise = vec![0.0; p];
        let mut attenuation = vec![1.0; p];
        for (members, moments, attenuated) in parties {
            for (i, &row) in members.iter().enumerate() {
                for (j, &column) in members.iter().enumerate() {
                    covariance[(row, column)] = moments.covariance[i * members.len() + j];
                }
                covariance_noise[row] = moments.noise;
                attenuation[row] = attenuated[i];
            }
        }
        let parties = parties.iter().map(|(members, ..)| members.clone()).collect();
        Self { released, parties, covariance, covariance_noise, attenuation }
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
        let errors = variances
            .iter()
            .zip(released.noise())
            .map(|(variance, noise)| (variance * n / k + noise * noise) * k.sqrt() / n);
        Self {
            parties: (0..p).map(|column| vec![column]).collect(),
            covariance_noise: errors.collect(),
            covariance: Mat::from_fn(p, p, |i, j| if i == j { variances[i] } else { 0.0 }),
            attenuation: vec![1.0; p],
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

/// Each party's features in coordinates in which its covariance is the identity and its noise diagonal.
struct Whitened {
    /// From features to coordinates.
    transform: Mat<f64>,
    /// Variances along the coordinates.
    variances: Vec<f64>,
    /// n/k + ς²/λ: the variance of a mixed row along each coordinate.
    spreads: Vec<f64>,
    /// Noise of the party's moments, by coordinate.
    noise: Vec<f64>,
    party: Vec<usize>,
    own: Vec<bool>,
    /// Covariance with the label, for the label's own party.
    label_covariance: Vec<f64>,
}

impl Whitened {
    fn new(
        evidence: &Evidence<'_>,
        sample: &Sample,
        label: usize,
        label_sd: f64,
        features: &[usize],
    ) -> Result<Self, LearnError> {
        let d = features.len();
        let mut white = Self {
            transform: Mat::zeros(d, d),
            variances: Vec::with_capacity(d),
            spreads: Vec::with_capacity(d),
            noise: Vec::with_capacity(d),
            party: Vec::with_capacity(d),
            own: Vec::with_capacity(d),
            label_covariance: Vec::with_capacity(d),
        };
        for (b, members) in evidence.parties.iter().enumerate() {
            let at = |column: &usize| features.iter().position(|feature| feature == column);
            let places: Vec<(usize, usize)> =
                members.iter().filter_map(|&column| at(&column).map(|place| (column, place))).collect();
            let q = places.len();
            let Some(&(first, _)) = places.first() else { continue };
            let eta = evidence.covariance_noise[first];
            let entry = |i: usize, j: usize| evidence.covariance[(places[i].0, places[j].0)];
            let mut squares = 0.0;
            for i in 0..q {
                for j in (0..q).filter(|&j| j != i) {
                    squares += entry(i, j).powi(2);
                }
            }
            let keep = (1.0 - eta * eta * (q * (q - 1)) as f64 / f64::max(squares, 1e-300)).max(0.0);
            let moments =
                Mat::from_fn(
                    q,
                    q,
                    |i, j| if i == j { entry(i, i).max(3.0 * eta) } else { keep * entry(i, j) },
                );
            let eigen = moments.self_adjoint_eigen(Side::Lower).map_err(|_| LearnError::Overflow)?;
            let start = white.variances.len();
            for r in 0..q {
                let variance = eigen.S().column_vector()[r].max(2.0 * eta * (q as f64).sqrt());
                for (c, &(_, place)) in places.iter().enumerate() {
                    white.transform[(start + r, place)] = eigen.U()[(c, r)] / variance.sqrt();
                }
                let own = members.contains(&label);
                let covariance: f64 = places
                    .iter()
                    .map(|&(column, place)| {
                        white.transform[(start + r, place)] * evidence.covariance[(column, label)]
                    })
                    .sum();
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
    fn apart(&self, i: usize, j: usize) -> bool {
        self.party[i] != self.party[j]
    }
}

/// Posterior means of x ~ N(θ, v), θ ~ N(0, g), with g averaged over a grid by its tempered likelihood: the factor
/// for each x, and the mean of g.
fn shrinkage(x: &[f64], v: &[f64], grid: &[f64], temper: f64) -> (Vec<f64>, f64) {
    let likelihood = |g: &f64| -> f64 {
        let sum: f64 = x.iter().zip(v).map(|(x, v)| (g + v).ln() + x * x / (g + v)).sum();
        -0.5 * temper * sum
    };
    let logs: Vec<f64> = grid.iter().map(likelihood).collect();
    let largest = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weights: Vec<f64> = logs.iter().map(|log| (log - largest).exp()).collect();
    let total: f64 = weights.iter().sum();
    let factor = |v: &f64| weights.iter().zip(grid).map(|(w, g)| w * g / (g + v)).sum::<f64>() / total;
    let mean = weights.iter().zip(grid).map(|(w, g)| w * g).sum::<f64>() / total;
    (v.iter().map(factor).collect(), mean)
}

/// Points from `low` to 1 in equal ratios, times `scale`.
fn geometric_grid(scale: f64, low: f64) -> Vec<f64> {
    (0..GRID).map(|i| scale * low.powf(1.0 - i as f64 / (GRID - 1) as f64)).collect()
}

fn smallest_eigenvalue(matrix: &Mat<f64>) -> Result<f64, LearnError> {
    let values = matrix.self_adjoint_eigenvalues(Side::Lower).map_err(|_| LearnError::Overflow)?;
    Ok(values.first().copied().unwrap_or(0.0))
}

fn inverse(matrix: &Mat<f64>) -> Option<Mat<f64>> {
    matrix.llt(Side::Lower).ok().map(|factor| factor.inverse())
}

/// Correlations between parties, shrunk towards 0 with the matrix kept positive definite.
struct Correlations {
    estimate: Mat<f64>,
    /// How much of each entry the data resolve.
    resolved: Mat<f64>,
    /// Prior variance of an entry.
    prior: f64,
}

impl Correlations {
    /// Minimises Σ(M−K)²/2V − logdet(I+M)/2g over the blocks between parties.
    fn new(white: &Whitened, raw: &Mat<f64>, variance: &Mat<f64>, k: f64) -> Result<Self, LearnError> {
        let d = raw.nrows();
        let pairs: Vec<(usize, usize)> = (0..d)
            .flat_map(|i| (i + 1..d).map(move |j| (i, j)))
            .filter(|&(i, j)| white.apart(i, j))
            .collect();
        if pairs.is_empty() {
            return Ok(Self { estimate: Mat::zeros(d, d), resolved: Mat::zeros(d, d), prior: 0.0 });
        }
        let x: Vec<f64> = pairs.iter().map(|&pair| raw[pair]).collect();
        let v: Vec<f64> = pairs.iter().map(|&pair| variance[pair]).collect();
        let (_, prior) =
            shrinkage(&x, &v, &geometric_grid(1.0 / d as f64, 1e-3), 1.0 / (1.0 + 2.0 * d as f64 / k));
        let g = prior / 2.0;
        let resolved =
            Mat::from_fn(d, d, |i, j| if white.apart(i, j) { g / (g + variance[(i, j)]) } else { 0.0 });
        let objective = |m: &Mat<f64>| -> f64 {
            let shifted = Mat::from_fn(d, d, |i, j| m[(i, j)] + f64::from(i == j));
            let Ok(factor) = shifted.llt(Side::Lower) else { return f64::INFINITY };
            let logdet: f64 = (0..d).map(|i| factor.L()[(i, i)].ln()).sum();
            let misfit: f64 = pairs.iter().map(|&pair| (m[pair] - raw[pair]).powi(2) / variance[pair]).sum();
            0.5 * misfit - logdet / g
        };
        let mut m = Mat::from_fn(d, d, |i, j| resolved[(i, j)] * raw[(i, j)]);
        let factor = f64::min(1.0, 0.9 / f64::max(-smallest_eigenvalue(&m)?, 1e-9));
        m *= factor;
        let mut value = objective(&m);
        for _ in 0..30 {
            let shifted = Mat::from_fn(d, d, |i, j| m[(i, j)] + f64::from(i == j));
            let Some(inverse) = inverse(&shifted) else { break };
            let step = Mat::from_fn(d, d, |i, j| {
                if !white.apart(i, j) {
                    return 0.0;
                }
                let pull = variance[(i, j)] / g * (inverse[(i, j)] + m[(i, j)]);
                resolved[(i, j)] * (raw[(i, j)] + pull) - m[(i, j)]
            });
            let mut length = 1.0;
            let mut next = &m + &step;
            let mut next_value = objective(&next);
            while length > 1e-3 && (next_value.is_nan() || next_value >= value) {
                length *= 0.5;
                next = &m + &step * length;
                next_value = objective(&next);
            }
            if length <= 1e-3 {
                break;
            }
            let done = value - next_value < 1e-4 * (1.0 + value.abs());
            m = next;
            value = next_value;
            if done {
                break;
            }
        }
        Ok(Self { estimate: m, resolved, prior })
    }
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
    /// Correlations with the label as they were found.
    raw: Vec<f64>,
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
        let raw: Vec<f64> =
            (0..d).map(|i| if white.own[i] { white.label_covariance[i] } else { between(i) }).collect();
        let local = |i: usize| white.noise[i].powi(2) / lambda[i] * (1.0 / label_variance + 1.0 / lambda[i]);
        let mixed = |i: usize| t[i] * label_spread * k / (n * n);
        let errors: Vec<f64> = (0..d).map(|i| if white.own[i] { local(i) } else { mixed(i) }).collect();
        if !raw.iter().chain(&errors).all(|value| value.is_finite()) {
            return Err(LearnError::Overflow);
        }

        // Posterior means of the covariances with the label.
        let (factors, _) = shrinkage(&raw, &errors, &geometric_grid(2.0 / d as f64, 1e-2), 1.0);
        let mut means: Vec<f64> = raw.iter().zip(&factors).map(|(c, factor)| c * factor).collect();
        cap_explained(&white, evidence.parties.len(), &mut means);

        let correlations = Correlations::new(&white, &crossed, &variance, k)?;
        let (h, trust) = joint_matrix(&white, &means, &correlations.estimate)?;
        let h_inverse = inverse(&h).ok_or(LearnError::Overflow)?;
        let w = &h_inverse * Col::from_fn(d, |i| means[i]);
        let back = white.transform.transpose() * Mat::<f64>::identity(d, d) * label_sd;
        Ok(Self {
            white,
            label_variance,
            label_spread,
            cosines,
            raw,
            means,
            correlations,
            h,
            h_inverse,
            trust,
            w,
            back,
        })
    }

    /// Posterior mean weights of the features.
    fn weights(&self) -> Vec<f64> {
        (&self.back * &self.w).iter().copied().collect()
    }

    /// Share of the label's variance that the posterior mean explains.
    fn explained(&self) -> f64 {
        (0..self.means.len()).map(|i| self.means[i] * self.w[i]).sum::<f64>().clamp(0.0, 1.0)
    }

    /// Variance of each estimating equation: mixing and noise between parties, what the prior hides, local noise.
    fn equations(&self, sample: &Sample) -> Vec<f64> {
        let (n, k, d) = (sample.n, sample.k, self.means.len());
        let Self { white, w, h, means, .. } = self;
        let (t, lambda) = (&white.spreads, &white.variances);
        let theta = |a: usize, b: usize| self.trust * self.correlations.resolved[(a, b)];
        let total = Mat::from_fn(d, d, |b, e| {
            n / k * (h[(b, e)] - f64::from(b == e)) + if b == e { t[b] } else { 0.0 }
        });
        let equation = |a: usize| -> f64 {
            let counts = if white.own[a] { 0.0 } else { 1.0 };
            let u = Col::from_fn(d, |b| theta(a, b) * w[b]);
            let with_label: f64 = (0..d).map(|b| u[b] * n / k * means[b]).sum();
            let mixed = counts * self.label_spread - 2.0 * counts * with_label + u.transpose() * &total * &u;
            let hidden: f64 = (0..d)
                .filter(|&b| white.apart(a, b))
                .map(|b| (1.0 - theta(a, b)).powi(2) * self.correlations.prior * w[b].powi(2))
                .sum();
            let local: f64 =
                (0..d).filter(|&b| !white.apart(a, b)).map(|b| w[b].powi(2) / lambda[b]).sum::<f64>()
                    + w[a].powi(2) / lambda[a]
                    + if white.own[a] { 1.0 / self.label_variance } else { 0.0 };
            k / (n * n) * t[a] * mixed.max(0.0) + hidden + white.noise[a].powi(2) / lambda[a] * local
        };
        (0..d).map(equation).collect()
    }

    /// Covariance of the unshrunk weights of the features, given the variances of their equations.
    fn covariance(&self, equations: &[f64]) -> Mat<f64> {
        let d = equations.len();
        let spread = Mat::from_fn(d, d, |i, j| {
            let correlation = match (i == j, self.white.own[i] || self.white.own[j]) {
                (true, _) => 1.0,
                (false, true) => 0.0,
                (false, false) => self.cosines[(i, j)],
            };
            correlation * (equations[i] * equations[j]).sqrt()
        });
        &self.back * &self.h_inverse * spread * &self.h_inverse * self.back.transpose()
    }
}

/// Learns the regression of `label` on `features`.
pub fn posterior(evidence: &Evidence<'_>, label: usize, features: &[usize]) -> Result<Posterior, LearnError> {
    evidence.released.check_choice(label, features)?;
    let sample = Sample::of(evidence, label, features, |_| true);
    let learned = Learned::new(evidence, &sample, label, features)?;
    let d = features.len();
    let weights = learned.weights();
    let unshrunk = &learned.back * (&learned.h_inverse * Col::from_fn(d, |i| learned.raw[i]));
    let equations = learned.equations(&sample);
    let of_equations = learned.covariance(&equations);
    let explained = learned.explained();
    let of_sampling =
        &learned.back * &learned.h_inverse * learned.back.transpose() * ((1.0 - explained) / sample.n);
    let clipping = |i: usize| {
        let undone = evidence.attenuation[features[i]] + evidence.attenuation[label] - 2.0;
        (ALLOWANCE * weights[i] * undone).powi(2)
    };
    let covariance = Covariance::from_lower(d, |i, j| {
        of_equations[(i, j)] + of_sampling[(i, j)] + if i == j { clipping(i) } else { 0.0 }
    });
    let parts = (0..d).map(|i| VarianceParts {
        privacy: of_equations[(i, i)] / covariance.get(i, i),
        mixing: 0.0,
        sampling: of_sampling[(i, i)] / covariance.get(i, i),
        clipping: clipping(i) / covariance.get(i, i),
    });
    Ok(Posterior {
        parts: parts.collect(),
        estimate: Coefficients::new(
            unshrunk.iter().copied().collect(),
            covariance,
            evidence.released.k().saturating_sub(1).max(3),
        ),
        weights,
        explained,
    })
}

/// Share of the label's variance that a regression explains, with its uncertainty.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ExplainedShare {
    /// The estimate; noise can take it below 0 or above 1.
    pub estimate: f64,
    /// Its standard error.
    pub standard_error: f64,
    degrees: usize,
}

impl ExplainedShare {
    /// A two-sided t interval.
    pub fn interval(&self, level: Level) -> Interval {
        let reach = student::two_sided_quantile(level, self.degrees) * self.standard_error;
        Interval { lower: self.estimate - reach, upper: self.estimate + reach }
    }
}

/// How many parts the mixed rows are split into for cross-fitting.
const FOLDS: usize = 5;

/// What share of the label's variance a regression learned from as many rows explains, by cross-fitting: weights come from
/// four fifths of the mixed rows and are judged by the rest.
pub fn explained_share(
    evidence: &Evidence<'_>,
    label: usize,
    features: &[usize],
) -> Result<ExplainedShare, LearnError> {
    evidence.released.check_choice(label, features)?;
    let (n, k, d) = (evidence.released.n() as f64, evidence.released.k(), features.len());
    let label_variance = evidence.covariance[(label, label)].max(3.0 * evidence.covariance_noise[label]);
    let party_of = |column: usize| evidence.parties.iter().position(|members| members.contains(&column));
    let party: Vec<Option<usize>> = features.iter().map(|&column| party_of(column)).collect();
    let own: Vec<bool> = party.iter().map(|&of_feature| of_feature == party_of(label)).collect();
    let columns = evidence.released.columns();

    let mut scores = vec![0.0; k];
    let mut local = 0.0;
    let mut squares = 0.0;
    for fold in 0..FOLDS {
        let sample = Sample::of(evidence, label, features, |row| row % FOLDS != fold);
        let w = Learned::new(evidence, &sample, label, features)?.weights();
        let held_out: Vec<usize> = (fold..k).step_by(FOLDS).collect();
        for &row in &held_out {
            let mut of_party = vec![0.0; evidence.parties.len()];
            let (mut all, mut elsewhere) = (0.0, 0.0);
            for j in 0..d {
                let part = columns[features[j]][row] * w[j];
                all += part;
                elsewhere += if own[j] { 0.0 } else { part };
                of_party[party[j].unwrap_or(0)] += part;
            }
            let within: f64 = of_party.iter().map(|part| part * part).sum();
            scores[row] = 2.0 * columns[label][row] * elsewhere - (all * all - within);
        }
        let weight = held_out.len() as f64 / k as f64;
        let mut explained = 0.0;
        for i in 0..d {
            if own[i] {
                explained += 2.0 * w[i] * evidence.covariance[(features[i], label)];
            }
            for j in (0..d).filter(|&j| party[i] == party[j]) {
                explained -= w[i] * evidence.covariance[(features[i], features[j])] * w[j];
            }
        }
        local += weight * explained;
        squares += weight * w.iter().map(|w| w * w).sum::<f64>();
    }
    let total: f64 = scores.iter().sum();
    let estimate = (local + total / n) / label_variance;
    let mean = total / k as f64;
    let variance = scores.iter().map(|score| (score - mean).powi(2)).sum::<f64>() / (k as f64 - 1.0);
    let noisiest = evidence.covariance_noise.iter().copied().fold(0.0, f64::max);
    let of_moments =
        if own.contains(&true) { 4.0 * evidence.covariance_noise[label].powi(2) * squares } else { 0.0 }
            + 2.0 * (noisiest * squares).powi(2);
    let of_sampling =
        4.0 * label_variance.powi(2) * estimate.max(0.0) * (1.0 - estimate.min(1.0)).powi(2) / n;
    let standard_error =
        (2.0 * k as f64 * variance / (n * n) + of_moments + of_sampling).sqrt() / label_variance;
    Ok(ExplainedShare { estimate, standard_error, degrees: (k - 1).max(3) })
}
