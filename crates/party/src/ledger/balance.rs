//! Budgets in ε: what was spent, and what a further release could have.
//!
//! Charges add up as μ², and ε is no sum: two releases at ε = 1 are together less than ε = 2. So
//! what is left is said as the largest ε that one further release could have, at a δ.

use potluck_core::accounting::{Delta, Epsilon, Mu, MuSquared, epsilon_for};

use super::Budget;

/// Digits of an ε that is offered.
const DIGITS: i32 = 4;

impl Budget {
    /// ε, at this δ, of everything that was charged so far; 0 if nothing was. Rounded up.
    pub fn spent_epsilon(&self) -> f64 {
        let delta = Delta::new(self.delta);
        if self.spent == MuSquared::ZERO {
            0.0
        } else {
            delta.map_or(f64::INFINITY, |delta| epsilon_for(self.spent, delta))
        }
    }

    /// The largest ε that one further release could have at the budget's own δ; 0 if none could.
    pub fn epsilon_left(&self) -> f64 {
        let further = Delta::new(self.delta).ok().and_then(|delta| self.affordable(delta));
        further.map_or(0.0, Epsilon::get)
    }

    /// The largest ε that one further release could have at this δ, to four digits; nothing if none
    /// could.
    pub fn affordable(&self, delta: Delta) -> Option<Epsilon> {
        affordable(self.left(), delta)
    }
}

/// The largest ε of four digits with which a release costs no more than this.
///
/// # Privacy
/// Nothing rests on it: what may be charged is decided by μ², in whole units (Claim L,
/// docs/PRIVACY.md#ledger). It is rounded down until a study sealed with it fits.
fn affordable(left: MuSquared, delta: Delta) -> Option<Epsilon> {
    if left == MuSquared::ZERO {
        return None;
    }
    // The smallest ε that says all of it: 0 where δ alone does, and no ε of a study is as small.
    let limit = epsilon_for(left, delta).min(Epsilon::MAX);
    if limit <= 0.0 {
        return None;
    }
    let place = DIGITS - 1 - limit.log10().floor() as i32;
    let digits = (limit * 10_f64.powi(place)).floor() as u32;
    // The limit has the rounding of a charge in it, so the next ε above may fit; below it all do.
    (0..5).find_map(|below| {
        // Read as people will write it.
        let text = format!("{}e{}", (digits + 1).checked_sub(below)?, -place);
        let epsilon = Epsilon::new(text.parse().ok()?).ok()?;
        let fits = Mu::analytic(epsilon, delta).is_ok_and(|mu| mu.squared() <= left);
        fits.then_some(epsilon)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mu_squared(epsilon: f64, delta: f64) -> MuSquared {
        Mu::analytic(Epsilon::new(epsilon).unwrap(), Delta::new(delta).unwrap()).unwrap().squared()
    }

    #[test]
    fn what_is_offered_fits_and_a_little_more_does_not() {
        for (left, delta) in [
            (mu_squared(1.0, 1e-5), 1e-5),
            (mu_squared(1.0, 1e-5), 1e-8),
            (mu_squared(0.0123, 1e-6), 1e-6),
            (MuSquared::from_units(mu_squared(3.0, 1e-6).units() / 3), 1e-6),
        ] {
            let epsilon = affordable(left, Delta::new(delta).unwrap()).unwrap().get();
            assert!(mu_squared(epsilon, delta) <= left, "{epsilon}");
            assert!(mu_squared(epsilon * 1.001, delta) > left, "{epsilon}");
        }
        let whole = affordable(mu_squared(1.0, 1e-5), Delta::new(1e-5).unwrap()).unwrap();
        assert_eq!(whole.get().to_bits(), 1_f64.to_bits());
        assert!(affordable(MuSquared::ZERO, Delta::new(1e-5).unwrap()).is_none());
        assert!(affordable(MuSquared::from_units(1), Delta::new(1e-5).unwrap()).is_none());
    }
}
