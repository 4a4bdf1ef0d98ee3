//! The validated numbers of a budget: ε, δ, μ and μ².

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use super::curve;
use super::memo::Memo;

/// Why a budget is not usable.
#[derive(Debug, Error, Clone, PartialEq)]
pub enum BudgetError {
    /// ε outside its range.
    #[error("epsilon must be above 0 and at most 1000, not {0}; common choices lie between 0.1 and 10")]
    Epsilon(f64),
    /// δ outside its range.
    #[error(
        "delta must be above 0 and below 1, not {0}; choose far less than one over the number of subjects"
    )]
    Delta(f64),
    /// μ is not a positive multiple of 2^-32 below 2^32.
    #[error(
        "mu must be a positive multiple of 2^-32 below 2^32, not {0}; copy it from a sealed study, unrounded"
    )]
    Mu(f64),
    /// Not even the smallest μ gives this guarantee.
    #[error(
        "epsilon = {epsilon}, delta = {delta} leaves no room for any release; choose a larger epsilon or delta"
    )]
    NoRoom {
        /// The ε asked for.
        epsilon: f64,
        /// The δ asked for.
        delta: f64,
    },
    /// The classical calibration is proved for ε ≤ 1 only.
    #[error(
        "the classical calibration holds for epsilon up to 1, not {0}; use the analytic one, which adds less noise"
    )]
    ClassicalEpsilon(f64),
    /// The text of a μ² is not a whole number of units.
    #[error("{0:?} is not a budget: expected mu squared as a whole number of units of 2^-64, below 2^128")]
    MuSquaredText(String),
}

/// ε of (ε, δ)-differential privacy: 0 < ε ≤ 1000.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Epsilon(f64);

impl Epsilon {
    /// The largest ε a study may ask for.
    pub const MAX: f64 = 1000.0;

    /// Checks the range.
    pub fn new(value: f64) -> Result<Self, BudgetError> {
        if value > 0.0 && value <= Self::MAX { Ok(Self(value)) } else { Err(BudgetError::Epsilon(value)) }
    }

    /// The number.
    pub fn get(self) -> f64 {
        self.0
    }
}

impl fmt::Display for Epsilon {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// δ of (ε, δ)-differential privacy: 0 < δ < 1.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Delta(f64);

impl Delta {
    /// Checks the range.
    pub fn new(value: f64) -> Result<Self, BudgetError> {
        if value > 0.0 && value < 1.0 { Ok(Self(value)) } else { Err(BudgetError::Delta(value)) }
    }

    /// The number.
    pub fn get(self) -> f64 {
        self.0
    }
}

impl fmt::Display for Delta {
    /// The shortest text that reads back as the same number, such as `1e-5`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::LowerExp::fmt(&self.0, f)
    }
}

/// μ of Gaussian differential privacy, a positive multiple of 2^-32.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mu(u64);

/// 2^32: how many steps of [`Mu`] make 1.
const STEPS: f64 = 4_294_967_296.0;

impl Mu {
    /// μ = `numerator`/2^32, which must not be zero.
    pub fn from_numerator(numerator: u64) -> Result<Self, BudgetError> {
        if numerator == 0 { Err(BudgetError::Mu(0.0)) } else { Ok(Self(numerator)) }
    }

    /// μ·2^32.
    pub fn numerator(self) -> u64 {
        self.0
    }

    /// The μ that is exactly `value`.
    pub fn from_f64(value: f64) -> Result<Self, BudgetError> {
        let numerator = value * STEPS; // exact: a power of two, and overflow fails the test below
        if (1.0..STEPS * STEPS).contains(&numerator) && numerator.fract() == 0.0 {
            Ok(Self(numerator as u64))
        } else {
            Err(BudgetError::Mu(value))
        }
    }

    /// μ as a float: exact below 2^21, which holds for every μ that [`Mu::analytic`] and
    /// [`Mu::classical`] give; the nearest float above.
    pub fn to_f64(self) -> f64 {
        self.0 as f64 / STEPS
    }

    /// μ², exactly.
    pub fn squared(self) -> MuSquared {
        MuSquared(u128::from(self.0) * u128::from(self.0))
    }

    /// The largest μ, in steps of 2^-32, whose releases are (ε, δ)-differentially private.
    ///
    /// # Privacy
    /// δ(ε'; μ) ≤ δ' for the returned μ and every ε', δ' whose nearest floats are `epsilon` and
    /// `delta`; so whatever is μ-GDP for the replacement of one subject is (ε', δ')-DP for it
    /// (Balle and Wang 2018, Theorem 8; Dong, Roth and Su 2022, Corollary 2.13; Theorem 2 and Lemma
    /// 3, docs/PRIVACY.md#accounting).
    pub fn analytic(epsilon: Epsilon, delta: Delta) -> Result<Self, BudgetError> {
        static KNOWN: Memo<(u64, u64), Option<Mu>> = Memo::new();
        let allowed = |mu: Self| curve::holds(mu.squared(), epsilon.0.next_down(), delta.0.next_down());
        KNOWN
            .get((epsilon.0.to_bits(), delta.0.to_bits()), || Self::largest(allowed))
            .ok_or(BudgetError::NoRoom { epsilon: epsilon.0, delta: delta.0 })
    }

    /// The largest μ, in steps of 2^-32, with 1/μ ≥ √(2 ln(1.25/δ))/ε, for ε ≤ 1: the calibration
    /// of Dwork and Roth (2014, Theorem A.1), for comparison with older work. [`Mu::analytic`]
    /// allows a larger μ.
    ///
    /// # Privacy
    /// The returned μ is at most that of [`Mu::analytic`], so the same promise holds; a ledger is
    /// charged the returned μ itself (Theorem 5, docs/PRIVACY.md#the-classical-calibration).
    pub fn classical(epsilon: Epsilon, delta: Delta) -> Result<Self, BudgetError> {
        if epsilon.0 > 1.0 {
            return Err(BudgetError::ClassicalEpsilon(epsilon.0));
        }
        Self::largest(|mu| curve::holds_classically(mu.squared(), epsilon.0.next_down(), delta.0.next_down()))
            .ok_or(BudgetError::NoRoom { epsilon: epsilon.0, delta: delta.0 })
    }

    /// The largest μ below 2^32 that is allowed, if small ones are allowed and large ones are not.
    fn largest(allowed: impl Fn(Self) -> bool) -> Option<Self> {
        let (mut good, mut bad) = (0, u64::MAX);
        while bad - good > 1 {
            let middle = u64::midpoint(good, bad);
            if allowed(Self(middle)) {
                good = middle;
            } else {
                bad = middle;
            }
        }
        Self::from_numerator(good).ok()
    }
}

/// μ² as an exact number of units of 2^-64: what ledgers keep, and what adds under composition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MuSquared(u128);

impl MuSquared {
    /// Nothing released.
    pub const ZERO: Self = Self(0);

    /// μ² = `units`/2^64.
    pub fn from_units(units: u128) -> Self {
        Self(units)
    }

    /// μ²·2^64.
    pub fn units(self) -> u128 {
        self.0
    }

    /// The sum, or nothing if it reaches 2^64; treat that as an exhausted budget.
    ///
    /// # Privacy
    /// What is μ₁-GDP and what is μ₂-GDP given any result of the first are together √(μ₁² +
    /// μ₂²)-GDP, for the same neighbours (Dong, Roth and Su 2022, Corollary 3.3; Theorem 4,
    /// docs/PRIVACY.md#composition).
    #[must_use]
    pub fn checked_add(self, other: Self) -> Option<Self> {
        self.0.checked_add(other.0).map(Self)
    }

    /// What is left of a total after `spent`, or nothing if more was spent.
    ///
    /// # Privacy
    /// The filter of Theorem 4, docs/PRIVACY.md#composition: releases that each fit into what is
    /// left keep within the total.
    #[must_use]
    pub fn checked_sub(self, spent: Self) -> Option<Self> {
        self.0.checked_sub(spent.0).map(Self)
    }

    /// The sum of all, or nothing if it reaches 2^64.
    ///
    /// # Privacy
    /// As for [`MuSquared::checked_add`], by Theorem 4 of docs/PRIVACY.md#composition: over the
    /// releases of a table, or over the parties that hold a subject.
    pub fn checked_sum(parts: impl IntoIterator<Item = Self>) -> Option<Self> {
        parts.into_iter().try_fold(Self::ZERO, Self::checked_add)
    }

    /// The nearest float, for display.
    pub fn to_f64(self) -> f64 {
        self.0 as f64 / (STEPS * STEPS)
    }

    /// The smallest float that is at least μ, for display.
    pub fn mu_upper(self) -> f64 {
        curve::sqrt_upper(self)
    }
}

impl fmt::Display for MuSquared {
    /// The number of units.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for MuSquared {
    type Err = BudgetError;

    /// Reads a number of units: decimal digits, no sign.
    fn from_str(text: &str) -> Result<Self, BudgetError> {
        let invalid = || BudgetError::MuSquaredText(text.to_owned());
        if !text.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(invalid());
        }
        text.parse().map(Self).map_err(|_| invalid())
    }
}
