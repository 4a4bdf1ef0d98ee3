//! The noise of each stage: the smallest scales that its lemma allows.

use super::Layout;
use crate::accounting::{Mu, Share, sigma_for};
use crate::encoding::{Ball, Q};
use crate::noise::{Sigma, SigmaError};

/// Noise scales of a standardisation round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoundNoise {
    /// σ₁, of the sums, in units of Q.
    pub sum: Sigma,
    /// σ₂, of the sums of squares, in units of Q².
    pub square: Sigma,
}

impl RoundNoise {
    /// σ₁²μ_q² ≥ Q²Δ² and (277/100)σ₂²μ_q² ≥ Q⁴Δ².
    ///
    /// # Privacy
    /// A round keeps within its share, by Lemma S of
    /// docs/PRIVACY.md#standardisation-stages-1-and-2.
    pub(super) fn new(mu: Mu, share: Share, layout: &Layout) -> Result<Self, SigmaError> {
        let change = layout.change_squared();
        let q_squared = u128::from(Q.unsigned_abs()).pow(2);
        Ok(Self {
            sum: sigma_for(mu, share, (q_squared * change, 1))?,
            // B₂ = (11 + 5√5)/8 > 277/100.
            square: sigma_for(mu, share, (q_squared * q_squared * change * 100, 277))?,
        })
    }
}

/// Noise scales of the local moments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MomentNoise {
    /// σ_m, of the sums.
    pub sum: Sigma,
    /// σ_d, of the sums of squares.
    pub square: Sigma,
    /// σ_o, of the sums of products of two columns.
    pub product: Sigma,
}

impl MomentNoise {
    /// 4σ_m²μ_q² ≥ 25C, 8σ_d²μ_q² ≥ 25C² and 16σ_o²μ_q² ≥ 25C².
    ///
    /// # Privacy
    /// The stage keeps within its share, by Lemma L of docs/PRIVACY.md#local-moments-stage-3.
    pub(super) fn new(mu: Mu, share: Share, ball: Ball) -> Result<Self, SigmaError> {
        let c = u128::from(ball.norm_squared());
        Ok(Self {
            sum: sigma_for(mu, share, (25 * c, 4))?,
            square: sigma_for(mu, share, (25 * c * c, 8))?,
            product: sigma_for(mu, share, (25 * c * c, 16))?,
        })
    }
}

/// ς of the mixed rows, ς²μ_q² ≥ 4C.
///
/// # Privacy
/// The stage keeps within its share, by Theorem M of docs/PRIVACY.md#mixed-rows with w = 1.
pub(super) fn mixed_noise(mu: Mu, share: Share, ball: Ball) -> Result<Sigma, SigmaError> {
    sigma_for(mu, share, (4 * u128::from(ball.norm_squared()), 1))
}
