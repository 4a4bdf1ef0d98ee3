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
    /// σ₁²μ_q² ≥ Q²Δ² and (277/100)σ₂²μ_q² ≥ Q⁴Δ², where Δ² is `change`.
    ///
    /// # Privacy
    /// A round keeps within its share, by Lemma S of
    /// docs/PRIVACY.md#standardisation-stages-1-and-2; with counts, see [`round_counts`] and
    /// [`ShapeNoise`].
    pub(super) fn new(mu: Mu, share: Share, change: u128) -> Result<Self, SigmaError> {
        let q_squared = u128::from(Q.unsigned_abs()).pow(2);
        Ok(Self {
            sum: sigma_for(mu, share, (q_squared * change, 1))?,
            // B₂ = (11 + 5√5)/8 > 277/100.
            square: sigma_for(mu, share, (q_squared * q_squared * change * 100, 277))?,
        })
    }
}

/// Noise scales of the shapes of columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShapeNoise {
    /// Of the sums and the sums of squares on the public range.
    pub round: RoundNoise,
    /// σ_b, of the counts of cells, in people.
    pub cell: Sigma,
}

impl ShapeNoise {
    /// That of a round with Δ₁² for Δ², and σ_b²μ_q² ≥ 2Δ₁².
    ///
    /// # Privacy
    /// Together with [`shape_counts`] the stage keeps within its share, by Lemma S1 of
    /// docs/PRIVACY.md#shapes-stage-1.
    pub(super) fn new(mu: Mu, share: Share, layout: &Layout) -> Result<Self, SigmaError> {
        let change = layout.shapes_change_squared();
        Ok(Self { round: RoundNoise::new(mu, share, change)?, cell: sigma_for(mu, share, (2 * change, 1))? })
    }
}

/// Noise scales of the counts of the presence groups among the shapes: w·σ_c²μ_q² ≥ Δ₁².
///
/// # Privacy
/// Lemma S1 of docs/PRIVACY.md#shapes-stage-1, with the weights w of the groups.
pub(super) fn shape_counts(mu: Mu, share: Share, layout: &Layout) -> Result<Vec<Sigma>, SigmaError> {
    counts(mu, share, layout.shapes_change_squared(), &layout.shapes_count_weights())
}

/// Noise scales of the counts of the presence groups in a standardisation round: w·σ_c²μ_q² ≥ Δ².
///
/// # Privacy
/// Together with [`RoundNoise`] the stage keeps within its share, by Lemma S′ of
/// docs/PRIVACY.md#standardisation-with-counts-stage-2, with the weights w of the groups.
pub(super) fn round_counts(mu: Mu, share: Share, layout: &Layout) -> Result<Vec<Sigma>, SigmaError> {
    counts(mu, share, layout.change_squared(), &layout.round_count_weights())
}

/// The smallest scales with w·σ²μ_q² ≥ Δ² for weights w in hundredths.
fn counts(mu: Mu, share: Share, change: u128, weights: &[u128]) -> Result<Vec<Sigma>, SigmaError> {
    weights.iter().map(|&hundredths| sigma_for(mu, share, (100 * change, hundredths))).collect()
}

/// Noise scales of the counts of presence groups among the local moments, in people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JointNoise {
    /// σ_p, of the counts of one group.
    pub own: Sigma,
    /// σ_n, of the counts of two groups together.
    pub both: Sigma,
}

impl JointNoise {
    /// σ_p²μ_q² ≥ 50G² and σ_n²μ_q² ≥ 25G².
    ///
    /// # Privacy
    /// Together with [`MomentNoise`] the stage keeps within its share, by Lemma L′ of
    /// docs/PRIVACY.md#local-moments-with-counts-stage-3.
    pub(super) fn new(mu: Mu, share: Share, groups: usize) -> Result<Self, SigmaError> {
        let squared = (groups as u128).pow(2);
        Ok(Self {
            own: sigma_for(mu, share, (50 * squared, 1))?,
            both: sigma_for(mu, share, (25 * squared, 1))?,
        })
    }
}

/// Noise scales of the local moments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MomentNoise {
    /// σ_m, of the sums, over all rows or over those that have a presence group.
    pub sum: Sigma,
    /// σ_d, of the sums of squares.
    pub square: Sigma,
    /// σ_o, of the sums of products of two columns.
    pub product: Sigma,
}

impl MomentNoise {
    /// 4σ_m²μ_q² ≥ 25CG, 8σ_d²μ_q² ≥ 25C² and 16σ_o²μ_q² ≥ 25C², with G = 1 without presence
    /// groups.
    ///
    /// # Privacy
    /// The stage keeps within its share, by Lemma L of docs/PRIVACY.md#local-moments-stage-3, or by
    /// Lemma L′ of docs/PRIVACY.md#local-moments-with-counts-stage-3.
    pub(super) fn new(mu: Mu, share: Share, ball: Ball, groups: usize) -> Result<Self, SigmaError> {
        let c = u128::from(ball.norm_squared());
        Ok(Self {
            sum: sigma_for(mu, share, (25 * c * groups.max(1) as u128, 4))?,
            square: sigma_for(mu, share, (25 * c * c, 8))?,
            product: sigma_for(mu, share, (25 * c * c, 16))?,
        })
    }
}

/// ς of the mixed rows, ς²μ_q² ≥ 4C.
///
/// # Privacy
/// The stage keeps within its share, by Theorem M of docs/PRIVACY.md#mixed-rows with w = 1; with a
/// column of weights at most √C, by Theorem M′ of
/// docs/PRIVACY.md#mixed-rows-and-presence-stage-4.
pub(super) fn mixed_noise(mu: Mu, share: Share, ball: Ball) -> Result<Sigma, SigmaError> {
    sigma_for(mu, share, (4 * u128::from(ball.norm_squared()), 1))
}
