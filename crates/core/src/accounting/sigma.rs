//! Shares of a budget, and the smallest integer noise scale that stays within one.

use num_bigint::BigUint;
use thiserror::Error;

use super::budget::Mu;
use crate::interval::{div_up, sqrt_up};
use crate::noise::{Sigma, SigmaError};

/// How many parts of μ² there are to share out: 2^20.
pub const SHARES: u32 = 1 << 20;

/// Why μ² cannot be shared out like this.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
pub enum SharesError {
    /// A share is zero or more than the whole.
    #[error("a share must be between 1 and 2^20 parts, not {0}")]
    Share(u32),
    /// The shares do not add up to the whole.
    #[error("shares must sum to 2^20 parts, not {0}; change one of them so that they do")]
    Sum(u64),
}

/// A share of a release's μ²: 1 to 2^20 parts out of [`SHARES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Share(u32);

impl Share {
    /// All of it: for a release of one stage.
    pub const WHOLE: Self = Self(SHARES);

    /// A share of this many parts.
    pub fn new(parts: u32) -> Result<Self, SharesError> {
        if (1..=SHARES).contains(&parts) { Ok(Self(parts)) } else { Err(SharesError::Share(parts)) }
    }

    /// Parts out of [`SHARES`].
    pub fn parts(self) -> u32 {
        self.0
    }
}

/// The shares of all stages of a release; they sum to the whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shares(Vec<Share>);

impl Shares {
    /// Shares of these many parts, one for each stage.
    ///
    /// # Privacy
    /// The parts sum to exactly [`SHARES`], so stages that each keep within their share of μ² make
    /// a release that keeps within μ² (Theorem 4, docs/PRIVACY.md#composition).
    pub fn new(parts: &[u32]) -> Result<Self, SharesError> {
        let shares = parts.iter().map(|&parts| Share::new(parts)).collect::<Result<Vec<_>, _>>()?;
        let sum = parts.iter().map(|&parts| u64::from(parts)).sum();
        if sum == u64::from(SHARES) { Ok(Self(shares)) } else { Err(SharesError::Sum(sum)) }
    }

    /// All of it, for a release of one stage.
    pub fn whole() -> Self {
        Self(vec![Share::WHOLE])
    }

    /// One share for each stage, in order.
    pub fn as_slice(&self) -> &[Share] {
        &self.0
    }
}

/// The smallest σ with σ²·`denominator` ≥ `numerator`.
///
/// # Privacy
/// The inequality of Theorem 1 holds for the integers themselves; nothing is rounded but σ, up
/// (docs/PRIVACY.md#what-is-exact-and-where-rounding-happens).
pub fn smallest_sigma(numerator: &BigUint, denominator: &BigUint) -> Result<Sigma, SigmaError> {
    if *denominator == BigUint::ZERO {
        return Err(SigmaError::Denominator);
    }
    // σ² is an integer, so it is at least the ratio when it is at least the ratio rounded up.
    let sigma = sqrt_up(&div_up(numerator, denominator));
    Sigma::new(u64::try_from(sigma).map_err(|_| SigmaError::TooLarge)?.max(1))
}

/// The smallest σ with σ²·μ²·share/2^20 ≥ Δ², where Δ² is `sensitivity_squared`, a numerator and a
/// denominator.
///
/// # Privacy
/// A stage that adds σ times a standard normal deviate to each coordinate, where replacing one
/// subject moves the vector of sums by at most Δ in ℓ2 norm, is √(μ²·share/2^20)-GDP for that
/// replacement (Theorem 1, docs/PRIVACY.md#the-mechanism).
pub fn sigma_for(mu: Mu, share: Share, sensitivity_squared: (u128, u128)) -> Result<Sigma, SigmaError> {
    let (needed, granted) = inequality(mu, share, sensitivity_squared);
    smallest_sigma(&needed, &granted)
}

/// Whether σ²·μ²·share/2^20 ≥ Δ²: the inequality that [`sigma_for`] promises, decided exactly.
///
/// # Privacy
/// What Theorem 1 of docs/PRIVACY.md#the-mechanism asks for; a verifier that gets `true` needs to
/// trust nobody's arithmetic.
pub fn satisfies(sigma: Sigma, mu: Mu, share: Share, sensitivity_squared: (u128, u128)) -> bool {
    let (needed, granted) = inequality(mu, share, sensitivity_squared);
    sensitivity_squared.1 > 0 && granted * sigma.get() * sigma.get() >= needed
}

/// n and d for which σ²·μ²·share/2^20 ≥ Δ² means σ²·d ≥ n. μ² comes in units of 2^-64.
fn inequality(mu: Mu, share: Share, (numerator, denominator): (u128, u128)) -> (BigUint, BigUint) {
    let needed = BigUint::from(numerator) << (64 + SHARES.ilog2());
    let granted = BigUint::from(mu.squared().units()) * share.0 * denominator;
    (needed, granted)
}
