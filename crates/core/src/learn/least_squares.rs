//! Least squares on released rows, as released ([`ols`]) and with the noise taken out
//! ([`debiased`]).

use std::fmt;

use faer::{Col, Mat, MatRef, unzip, zip};

use super::moments::{Solved, solve};
use super::{Coefficients, Covariance, LearnError, Released};

/// The ridge λ ≥ 0 added to the diagonal of the moment matrix; 0 unless chosen otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Ridge(f64);

impl Ridge {
    /// No ridge.
    pub const NONE: Self = Self(0.0);

    /// Checks a ridge.
    pub fn new(lambda: f64) -> Result<Self, LearnError> {
        if lambda.is_finite() && lambda >= 0.0 { Ok(Self(lambda)) } else { Err(LearnError::Ridge(lambda)) }
    }

    /// λ as a number.
    pub fn get(self) -> f64 {
        self.0
    }
}

/// What the weights of a fit estimate. A ridge above 0 shrinks either further.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Estimand {
    /// The coefficients among the noisy columns. However many rows are released, they stay away
    /// from the study's own: a feature uncorrelated with the others keeps 1 − [`Fit::noise_share`]
    /// of its weight.
    Attenuated,
    /// The coefficients of the study's own rows.
    Study,
}

impl fmt::Display for Estimand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Attenuated => "coefficients among the noisy columns, attenuated by the privacy noise",
            Self::Study => "coefficients of the study's own rows",
        })
    }
}

/// Whether the moment matrix H stands clear of the noise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stability {
    /// Every eigenvalue is positive and at least three standard errors from 0.
    Sound,
    /// The smallest eigenvalue is positive, but less than three standard errors from 0: weights and
    /// standard errors may be many times too large.
    WithinNoise,
    /// Some eigenvalue is not positive, so H is no matrix of moments: the noise outweighs the data
    /// in some direction, and the weights say little.
    Indefinite,
}

impl fmt::Display for Stability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Sound => "the moment matrix stands clear of the noise",
            Self::WithinNoise => {
                "the smallest eigenvalue of the moment matrix is within the noise: weights may explode; use \
                 fewer features or a ridge"
            }
            Self::Indefinite => {
                "the moment matrix is not positive definite, the noise outweighs the data: do not rely on \
                 these weights; use fewer features or a ridge"
            }
        })
    }
}

/// The eigenvalues of the moment matrix H that was inverted, ridge included.
#[derive(Debug, Clone, PartialEq)]
pub struct Spectrum {
    eigenvalues: Vec<f64>,
    smallest_error: f64,
}

impl Spectrum {
    /// All eigenvalues in ascending order.
    pub fn eigenvalues(&self) -> &[f64] {
        &self.eigenvalues
    }

    /// The smallest eigenvalue; negative when H is indefinite.
    pub fn smallest(&self) -> f64 {
        self.eigenvalues[0]
    }

    /// The standard error of H in the direction of the smallest eigenvalue.
    pub fn smallest_error(&self) -> f64 {
        self.smallest_error
    }

    /// The eigenvalue nearest to 0, by size.
    pub fn smallest_absolute(&self) -> f64 {
        self.eigenvalues.iter().fold(f64::INFINITY, |least, value| least.min(value.abs()))
    }

    /// The largest eigenvalue, by size.
    pub fn largest_absolute(&self) -> f64 {
        self.eigenvalues.iter().fold(0.0, |most, value| most.max(value.abs()))
    }

    /// The condition number of H.
    pub fn condition(&self) -> f64 {
        self.largest_absolute() / self.smallest_absolute()
    }

    /// What the eigenvalues say about the weights.
    pub fn stability(&self) -> Stability {
        if self.smallest() <= 0.0 {
            Stability::Indefinite
        } else if self.smallest() < 3.0 * self.smallest_error {
            Stability::WithinNoise
        } else {
            Stability::Sound
        }
    }
}

/// A regression learned from released rows. Everything is in encoded units and in the order of the
/// features.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Fit {
    /// Weights with their covariance.
    pub coefficients: Coefficients,
    /// What the weights estimate.
    pub estimand: Estimand,
    /// The ridge that was used.
    pub ridge: Ridge,
    /// The eigenvalues of the moment matrix.
    pub spectrum: Spectrum,
    /// For each feature, the expected part of its released second moment that is noise,
    /// kς_j² / Z_jᵀZ_j. Chance may take it above 1.
    pub noise_share: Vec<f64>,
    /// The mean squared residual of one row of the study. From [`ols`] it holds the noise of label
    /// and features too; from [`debiased`] it does not, and strong noise may take the estimate
    /// below 0.
    pub residual_variance: f64,
    /// The share of the label's second moment, taken about its midpoint and not about its mean,
    /// that the features explain: from [`ols`] on the released rows, noise and all, from
    /// [`debiased`] in the study. It is optimistic unless k is many times the number of features.
    /// None where it means nothing: the label's moment comes out at 0 or below, H is indefinite, or
    /// more than all would be explained.
    pub r_squared: Option<f64>,
}

/// Plain least squares on the released rows: RMGM-OLS on `rmgm` releases, BGM-OLS on `dgm`
/// releases.
///
/// H = ZᵀZ/n + λI over the features, c = Zᵀz_y/n, w = H⁻¹c. The noise stays in H, so the weights
/// are attenuated; with mixing this fades as n/k grows, without mixing it never does. The
/// covariance is a sandwich over the released rows, so it holds privacy noise and mixing and
/// assumes nothing about residuals.
pub fn ols(
    released: &Released<'_>,
    label: usize,
    features: &[usize],
    ridge: Ridge,
) -> Result<Fit, LearnError> {
    // Without noise in the features nothing is attenuated.
    let silent = features.iter().all(|&j| released.noise().get(j).is_some_and(|&sd| sd <= 0.0));
    let estimand = if silent { Estimand::Study } else { Estimand::Attenuated };
    fit(released, label, features, ridge, estimand, 0.0)
}

/// Least squares with the known noise variance taken out: DGM-OLS on `dgm` releases.
///
/// H = ZᵀZ/n − (k/n)·diag(ς²) + λI over the features, c = Zᵀz_y/n, w = H⁻¹c. The noise of label and
/// features is independent, so c needs no correction. H may have eigenvalues near or below 0, and
/// then the weights explode: they are returned all the same, and [`Spectrum::stability`] says so.
pub fn debiased(
    released: &Released<'_>,
    label: usize,
    features: &[usize],
    ridge: Ridge,
) -> Result<Fit, LearnError> {
    fit(released, label, features, ridge, Estimand::Study, 1.0)
}

/// Both learners; `correction` is the multiple of the noise variance to take out.
fn fit(
    released: &Released<'_>,
    label: usize,
    features: &[usize],
    ridge: Ridge,
    estimand: Estimand,
    correction: f64,
) -> Result<Fit, LearnError> {
    released.check_choice(label, features)?;
    let d = features.len();
    let (k, n) = (released.k() as f64, released.n() as f64);
    // Noise variance per study row, feature by feature and of the label.
    let noise = |column: usize| released.noise()[column].powi(2) * k / n;

    // Features first, label last: one product gives every moment.
    let chosen: Vec<usize> = features.iter().copied().chain([label]).collect();
    let mut z = Mat::from_fn(released.k(), d + 1, |i, j| released.columns()[chosen[j]][i]);
    let moments = z.transpose() * &z / n;
    if let Some(j) = (0..d).find(|&j| moments[(j, j)] <= 0.0) {
        return Err(LearnError::ZeroColumn { column: features[j] });
    }
    let h = Mat::from_fn(d, d, |i, j| {
        let diagonal = if i == j { ridge.get() - correction * noise(features[j]) } else { 0.0 };
        moments[(i, j)] + diagonal
    });
    let c = Col::from_fn(d, |j| moments[(d, j)]);
    if !(all_finite(moments.as_ref()) && all_finite(h.as_ref())) {
        return Err(LearnError::Overflow);
    }

    let Solved { eigenvalues, smallest_vector, inverse, weights: w } = solve(&h, &c)?;
    let squares: Vec<f64> = (z.subcols(0, d) * &smallest_vector).iter().map(|along| along * along).collect();
    let spectrum = Spectrum { eigenvalues, smallest_error: k.sqrt() / n * variance(&squares).sqrt() };
    let (smallest, largest) = (spectrum.smallest_absolute(), spectrum.largest_absolute());

    let residuals = &z * Col::from_fn(d + 1, |j| if j < d { -w[j] } else { 1.0 });
    // Row i contributes z_i(z_yi − z_iᵀw), plus the same constant in every row (the correction and
    // the ridge), to the equations n(c − Hw) = 0. Centring takes the constant out.
    for mut column in z.subcols_mut(0, d).col_iter_mut() {
        zip!(column.as_mut(), &residuals).for_each(|unzip!(score, residual)| *score *= residual);
        let mean = column.sum() / k;
        zip!(column).for_each(|unzip!(score)| *score -= mean);
    }
    let degrees = released.k() - d;
    let scores = z.subcols(0, d);
    let spread = scores.transpose() * scores * (k / (n * n * degrees as f64));
    let covariance = &inverse * spread * &inverse;
    if !(all_finite(covariance.as_ref()) && w.iter().all(|weight| weight.is_finite())) {
        return Err(LearnError::Singular { smallest, largest });
    }

    let residual_noise: f64 = noise(label)
        + features.iter().zip(w.iter()).map(|(&j, weight)| noise(j) * weight * weight).sum::<f64>();
    let squared = residuals.squared_norm_l2() / n;
    let label_moment = moments[(d, d)] - correction * noise(label);
    let explained =
        if correction > 0.0 { (c.transpose() * &w) / label_moment } else { 1.0 - squared / label_moment };
    // More than everything cannot be explained: the noise has swallowed the residuals.
    let defined = label_moment > 0.0 && spectrum.smallest() > 0.0 && explained <= 1.0;

    Ok(Fit {
        coefficients: Coefficients::new(
            w.iter().copied().collect(),
            Covariance::from_lower(d, |i, j| covariance[(i, j)]),
            degrees,
        ),
        estimand,
        ridge,
        noise_share: features
            .iter()
            .enumerate()
            .map(|(j, &column)| noise(column) / moments[(j, j)])
            .collect(),
        residual_variance: squared * k / degrees as f64 - correction * residual_noise,
        r_squared: defined.then(|| explained.max(0.0)),
        spectrum,
    })
}

fn all_finite(matrix: MatRef<'_, f64>) -> bool {
    matrix.col_iter().all(|column| column.iter().all(|value| value.is_finite()))
}

/// The sample variance of at least two values.
fn variance(values: &[f64]) -> f64 {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0)
}
