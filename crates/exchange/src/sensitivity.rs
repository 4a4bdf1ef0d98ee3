//! Noise scales and what they protect: Lemmas X1 and X2, docs/PRIVACY.md#exchange.

use potluck_core::accounting::{Mu, Share, sigma_for};
use potluck_core::noise::{Sigma, SigmaError};

/// The scale of the noise of a pair among `parties` parties: the smallest that keeps each of the
/// two, with an equal share for each of its pairs, within its part of μ².
///
/// # Privacy
/// σ² ≥ 4·C_i·C_j·(m − 1)/μ_x² for both, decided in integers and rounded up: Lemma X1,
/// docs/PRIVACY.md#exchange. Each party's μ_x² is `share` of its μ².
pub fn scale_for_pair(
    norms: [u32; 2],
    budgets: [(Mu, Share); 2],
    parties: u16,
) -> Result<Sigma, SigmaError> {
    let squared = 4 * u128::from(norms[0]) * u128::from(norms[1]) * u128::from(parties.max(2) - 1);
    let [one, other] = budgets.map(|(mu, share)| sigma_for(mu, share, (squared, 1)));
    Ok(one?.max(other?))
}

/// What all exchanged blocks of m parties with the same μ_x together cost a subject whose rows are
/// replaced at all `honest` ones, while the rest work together: a multiple of μ_x².
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JointShare {
    /// Numerator of the factor.
    pub numerator: u64,
    /// Denominator of the factor.
    pub denominator: u64,
}

/// The factor of μ_x² for `honest` of `parties` parties; `honest = parties` is the public's view.
///
/// # Privacy
/// max over a of [a(m − h) + a(h − a)/2]/(m − 1), exactly: Lemma X2, docs/PRIVACY.md#exchange. It
/// holds for pairs with equal shares of one μ_x.
pub fn joint_share(parties: u16, honest: u16) -> JointShare {
    let (m, h) = (u64::from(parties.max(2)), u64::from(honest.min(parties)));
    let largest = (0..=h).map(|a| 2 * a * (m - h) + a * (h - a)).max().unwrap_or(0);
    JointShare { numerator: largest, denominator: 2 * (m - 1) }
}
