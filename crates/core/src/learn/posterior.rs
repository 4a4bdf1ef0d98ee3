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

use super::{Interval, LearnError, Level, check_choice, student};

/// How much of the undone clipping an interval allows for.
const ALLOWANCE: f64 = 0.25;
/// Largest share of the label's variance that one party's features are believed to explain.
const MOST_EXPLAINED: f64 = 0.98;
/// Points of a grid of prior variances.
const GRID: usize = 16;

/// What the releases of all parties say, in standardised units.
#[derive(Debug, Clone)]
pub struct Evidence {
    /// Number of subjects; a fraction of it when some mixed rows are held out.
    pub n: f64,
    /// Number of mixed rows.
    pub k: f64,
    /// The columns of each party.
    pub parties: Vec<Vec<usize>>,
    /// Z′Z of the mixed rows.
    pub gram: Mat<f64>,
    /// Standard deviation of the noise in the mixed rows, by column.
    pub noise: Vec<f64>,
    /// Covariance within parties; entries between parties are not used.
    pub covariance: Mat<f64>,
    /// Standard deviation of the noise in an off-diagonal entry of `covariance`, by column.
    pub covariance_noise: Vec<f64>,
    /// By how much clipping attenuated each column: the standard deviation before over that after it.
    pub attenuation: Vec<f64>,
}

/// A regression learned from [`Evidence`], in standardised units.
#[derive(Debug, Clone)]
pub struct Posterior {
    /// Posterior mean weights: what to predict with.
    pub weights: Vec<f64>,
    /// Weights without shrinkage of the label's covariances: what the intervals are about.
    pub unshrunk: Vec<f64>,
    /// Standard errors of `unshrunk`.
    pub standard_errors: Vec<f64>,
    /// Degrees of freedom of the intervals.
    pub degrees: usize,
    /// Explained share of the label's variance as the posterior mean has it.
    pub explained: f64,
}

impl Posterior {
    /// A two-sided t interval for each weight.
    pub fn intervals(&self, level: Level) -> Vec<Interval> {
        let t = student::two_sided_quantile(level, self.degrees);
        let interval = |(&b, &se): (&f64, &f64)| Interval { lower: b - t * se, upper: b + t * se };
        self.unshrunk.iter().zip(&self.standard_errors).map(interval).collect()
    }
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
    fn new(evidence: &Evidence, label: usize, label_sd: f64, features: &[usize]) -> Result<Self, LearnError> {
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
                white.spreads.push(evidence.n / evidence.k + evidence.noise[first].powi(2) / variance);
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

/// Learns the regression of `label` on `features`.
pub fn posterior(evidence: &Evidence, label: usize, features: &[usize]) -> Result<Posterior, LearnError> {
    check_choice(evidence.noise.len(), label, features)?;
    let (n, k, d) = (evidence.n, evidence.k, features.len());
    let label_variance = evidence.covariance[(label, label)].max(3.0 * evidence.covariance_noise[label]);
    let label_sd = label_variance.sqrt();
    let label_spread = n / k + evidence.noise[label].powi(2) / label_variance;
    let white = Whitened::new(evidence, label, label_sd, features)?;
    let (t, lambda) = (&white.spreads, &white.variances);

    // Correlations of the mixed rows along the coordinates, with the noise removed from their scale.
    let gram = Mat::from_fn(d, d, |i, j| evidence.gram[(features[i], features[j])]);
    let rotated = &white.transform * gram * white.transform.transpose();
    let with_label = &white.transform * Col::from_fn(d, |j| evidence.gram[(features[j], label)]);
    let lengths: Vec<f64> = (0..d).map(|i| rotated[(i, i)].sqrt()).collect();
    let cosines = Mat::from_fn(d, d, |i, j| rotated[(i, j)] / (lengths[i] * lengths[j]));
    let label_length = evidence.gram[(label, label)].sqrt();
    let raw = Mat::from_fn(d, d, |i, j| {
        if white.apart(i, j) { cosines[(i, j)] * (t[i] * t[j]).sqrt() * k / n } else { 0.0 }
    });
    let variance = Mat::from_fn(d, d, |i, j| t[i] * t[j] * k / (n * n));
    let between =
        |i: usize| with_label[i] / (lengths[i] * label_length) * (t[i] * label_spread).sqrt() * k / n;
    let c: Vec<f64> =
        (0..d).map(|i| if white.own[i] { white.label_covariance[i] } else { between(i) }).collect();
    let local = |i: usize| white.noise[i].powi(2) / lambda[i] * (1.0 / label_variance + 1.0 / lambda[i]);
    let mixed = |i: usize| t[i] * label_spread * k / (n * n);
    let v: Vec<f64> = (0..d).map(|i| if white.own[i] { local(i) } else { mixed(i) }).collect();
    if !c.iter().chain(&v).all(|value| value.is_finite()) {
        return Err(LearnError::Overflow);
    }

    // Posterior means of the covariances with the label.
    let (factors, _) = shrinkage(&c, &v, &geometric_grid(2.0 / d as f64, 1e-2), 1.0);
    let mut means: Vec<f64> = c.iter().zip(&factors).map(|(c, factor)| c * factor).collect();
    cap_explained(&white, evidence.parties.len(), &mut means);

    let correlations = Correlations::new(&white, &raw, &variance, k)?;
    let (h, trust) = joint_matrix(&white, &means, &correlations.estimate)?;
    let h_inverse = inverse(&h).ok_or(LearnError::Overflow)?;
    let w = &h_inverse * Col::from_fn(d, |i| means[i]);
    let back = white.transform.transpose() * Mat::<f64>::identity(d, d) * label_sd;
    let weights = &back * &w;
    let unshrunk = &back * (&h_inverse * Col::from_fn(d, |i| c[i]));

    // Variance of each estimating equation: mixing and noise between parties, what the prior hides, local noise.
    let theta = |a: usize, b: usize| trust * correlations.resolved[(a, b)];
    let equation = |a: usize| -> f64 {
        let counts = if white.own[a] { 0.0 } else { 1.0 };
        let u: Vec<f64> = (0..d).map(|b| theta(a, b) * w[b]).collect();
        let mut mixed = counts * label_spread;
        for b in 0..d {
            mixed -= 2.0 * counts * u[b] * n / k * means[b];
            for e in 0..d {
                let total = n / k * (h[(b, e)] - f64::from(b == e)) + if b == e { t[b] } else { 0.0 };
                mixed += u[b] * total * u[e];
            }
        }
        let hidden: f64 = (0..d)
            .filter(|&b| white.apart(a, b))
            .map(|b| (1.0 - theta(a, b)).powi(2) * correlations.prior * w[b].powi(2))
            .sum();
        let local: f64 =
            (0..d).filter(|&b| !white.apart(a, b)).map(|b| w[b].powi(2) / lambda[b]).sum::<f64>()
                + w[a].powi(2) / lambda[a]
                + if white.own[a] { 1.0 / label_variance } else { 0.0 };
        k / (n * n) * t[a] * mixed.max(0.0) + hidden + white.noise[a].powi(2) / lambda[a] * local
    };
    let equations: Vec<f64> = (0..d).map(equation).collect();
    let explained = (0..d).map(|i| means[i] * w[i]).sum::<f64>().clamp(0.0, 1.0);
    let spread = Mat::from_fn(d, d, |i, j| {
        let correlation = match (i == j, white.own[i] || white.own[j]) {
            (true, _) => 1.0,
            (false, true) => 0.0,
            (false, false) => cosines[(i, j)],
        };
        correlation * (equations[i] * equations[j]).sqrt()
    });
    let covariance = &h_inverse * spread * &h_inverse + &h_inverse * ((1.0 - explained) / n);
    let covariance = &back * covariance * back.transpose();
    let standard_errors = (0..d).map(|i| {
        let clipping = evidence.attenuation[features[i]] + evidence.attenuation[label] - 2.0;
        (covariance[(i, i)].max(0.0) + (ALLOWANCE * weights[i] * clipping).powi(2)).sqrt()
    });
    let standard_errors: Vec<f64> = standard_errors.collect();
    Ok(Posterior {
        weights: weights.iter().copied().collect(),
        unshrunk: unshrunk.iter().copied().collect(),
        standard_errors,
        degrees: (k as usize).saturating_sub(1).max(3),
        explained,
    })
}
