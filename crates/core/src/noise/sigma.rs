//! The noise scale.

use thiserror::Error;

/// Scales from here on are refused.
const LIMIT: u64 = 1 << 53;

/// A noise scale σ: the standard deviation of the normal deviate before rounding, in units of the
/// sums.
///
/// An integer with 1 ≤ σ < 2^53, so that it is exact as an `f64` and σ times 64 binary digits fits
/// in 128-bit arithmetic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sigma(u64);

/// Why there is no noise scale.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SigmaError {
    /// σ = 0: the sums would be published as they are.
    #[error(
        "the noise scale σ is 0, which would publish the exact sums; \
         σ must be an integer of at least 1: round it up, never down"
    )]
    Zero,
    /// σ ≥ 2^53: most results would be clamped.
    #[error("the noise scale would reach 2^53; choose a larger epsilon, or give the party fewer columns")]
    TooLarge,
    /// A squared sensitivity with denominator zero.
    #[error("a squared sensitivity needs a denominator above 0")]
    Denominator,
}

impl Sigma {
    /// Accepts 1 ≤ σ < 2^53.
    ///
    /// # Privacy
    /// What the sampler is proved for: docs/PRIVACY.md#digits-are-drawn-when-needed, Lemma 2 and
    /// the table of what does not overflow.
    pub const fn new(sigma: u64) -> Result<Self, SigmaError> {
        match sigma {
            0 => Err(SigmaError::Zero),
            1..LIMIT => Ok(Self(sigma)),
            LIMIT.. => Err(SigmaError::TooLarge),
        }
    }

    /// The scale as an integer.
    pub const fn get(self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sigma_accepts_exactly_its_range() {
        assert_eq!(Sigma::new(0), Err(SigmaError::Zero));
        assert_eq!(Sigma::new(1).map(Sigma::get), Ok(1));
        assert_eq!(Sigma::new((1 << 53) - 1).map(Sigma::get), Ok((1 << 53) - 1));
        for refused in [1 << 53, (1 << 53) + 1, u64::MAX] {
            assert_eq!(Sigma::new(refused), Err(SigmaError::TooLarge));
        }
    }

    #[test]
    fn sigma_errors_say_what_to_do() {
        assert!(SigmaError::Zero.to_string().contains("round it up"));
        assert!(SigmaError::TooLarge.to_string().contains("choose a larger epsilon"));
    }
}
