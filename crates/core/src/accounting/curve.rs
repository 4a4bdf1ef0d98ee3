//! The privacy curve of the Gaussian mechanism: δ(ε; μ), and decisions about it that are proved.
//!
//! With a = μ/2 − ε/μ, b = μ/2 + ε/μ and Mills' ratio R(x) = Φ(−x)/φ(x), and because e^ε φ(b) =
//! φ(a),
//!
//! δ(ε; μ) = φ(a)·(R(−a) − R(b)) if a ≤ 0, and 1 − φ(a)·(R(a) + R(b)) if a ≥ 0.
//!
//! Nothing large is left to cancel. The difference of the two ratios loses about log₂(1/μ) + 2
//! log₂(b) bits, which the working precision adds. a² and b² are rational functions of μ² and ε, so
//! they are exact.

use num_bigint::BigUint;

use super::budget::{Delta, Epsilon, Mu, MuSquared};
use super::memo::Memo;
use crate::interval::{Interval, Ratio, f64_up, sqrt_up};

/// The relative precisions tried, in bits, one after the other, until a question is decided.
const PRECISIONS: [u64; 6] = [64, 128, 256, 512, 1024, 2048];

/// The smallest float that is at least δ(ε; μ), at exactly this ε and μ.
///
/// # Privacy
/// A μ-GDP mechanism is (ε, δ)-DP, for the same neighbours, with δ the returned number
/// (Theorem 2, docs/PRIVACY.md#accounting).
pub fn delta_upper(epsilon: Epsilon, mu: Mu) -> f64 {
    Point::new(mu.squared(), epsilon.get()).delta_upper()
}

/// The δ at which a mechanism of this μ² is (ε, δ)-DP, rounded up.
///
/// # Privacy
/// A √μ²-GDP mechanism is (ε', δ')-DP, for the same neighbours, for every ε', δ' whose nearest
/// floats are `epsilon` and the result: the statement stays true in decimal text (Theorem 2,
/// docs/PRIVACY.md#what-is-exact-and-where-rounding-happens).
pub fn delta_for(mu_squared: MuSquared, epsilon: Epsilon) -> f64 {
    if mu_squared == MuSquared::ZERO {
        return 0.0;
    }
    Point::new(mu_squared, epsilon.get().next_down()).delta_upper().next_up().min(1.0)
}

/// The smallest ε at which a mechanism of this μ² is (ε, δ)-DP, rounded up; it may be 0, and above
/// 1000.
///
/// # Privacy
/// A √μ²-GDP mechanism is (ε', δ')-DP, for the same neighbours, for every ε', δ' whose nearest
/// floats are the result and `delta`: the statement stays true in decimal text (Theorem 2 and Lemma
/// 3, docs/PRIVACY.md#what-is-exact-and-where-rounding-happens).
pub fn epsilon_for(mu_squared: MuSquared, delta: Delta) -> f64 {
    static KNOWN: Memo<(MuSquared, u64), f64> = Memo::new();
    KNOWN.get((mu_squared, delta.get().to_bits()), || smallest_epsilon(mu_squared, delta))
}

fn smallest_epsilon(mu_squared: MuSquared, delta: Delta) -> f64 {
    let target = delta.get().next_down();
    if holds(mu_squared, 0.0, target) {
        return 0.0;
    }
    // Non-negative floats are ordered like their bit patterns. No ε reaches a target of 0: the
    // result is then infinite.
    let (mut bad, mut good) = (0, f64::MAX.to_bits());
    while good - bad > 1 {
        let middle = u64::midpoint(bad, good);
        if holds(mu_squared, f64::from_bits(middle), target) {
            good = middle;
        } else {
            bad = middle;
        }
    }
    f64::from_bits(good).next_up()
}

/// Whether δ(ε; μ) ≤ δ, for a finite ε ≥ 0 and 0 ≤ δ < 1.
///
/// # Privacy
/// Yes is an answer that was proved, of the formula of Theorem 2 (docs/PRIVACY.md#accounting).
/// Should no precision decide, which has never been seen, the answer is no.
pub(super) fn holds(mu_squared: MuSquared, epsilon: f64, delta: f64) -> bool {
    if mu_squared == MuSquared::ZERO {
        return true;
    }
    if delta <= 0.0 {
        return false;
    }
    let (point, limit) = (Point::new(mu_squared, epsilon), Ratio::from_f64(delta));
    let decide = |precision| match point.enclose(precision) {
        Enclosure::BelowFloats => Some(true),
        Enclosure::NextToOne => Some(false),
        Enclosure::Within(value) => value.is_at_most(&limit),
    };
    PRECISIONS.into_iter().find_map(decide).unwrap_or(false)
}

/// Whether μ ≤ ε/√(2 ln(1.25/δ)), that is 1.25/δ ≤ e^(ε²/2μ²), for μ > 0, 0 ≤ ε ≤ 1 and 0 ≤ δ < 1.
///
/// # Privacy
/// Yes is an answer that was proved, and Theorem 5 says what it is worth
/// (docs/PRIVACY.md#the-classical-calibration). Some precision always decides: e to a rational
/// power is not rational.
pub(super) fn holds_classically(mu_squared: MuSquared, epsilon: f64, delta: f64) -> bool {
    if delta <= 0.0 {
        return false;
    }
    let epsilon = Ratio::from_f64(epsilon);
    let exponent = Ratio {
        numerator: (&epsilon.numerator * &epsilon.numerator) << 63,
        denominator: &epsilon.denominator * &epsilon.denominator * mu_squared.units(),
    };
    if exponent.at_least(760) {
        return true; // 1.25/δ ≤ 1.25·2^1074 < e^745
    }
    let delta = Ratio::from_f64(delta);
    let limit = Ratio { numerator: delta.denominator * 5u32, denominator: delta.numerator * 4u32 };
    let decide = |precision| {
        let power = Interval::ratio(&exponent, precision).exp();
        power.is_at_most(&limit).map(|at_most| !at_most)
    };
    PRECISIONS.into_iter().find_map(decide).unwrap_or(false)
}

/// The smallest float that is at least √μ².
pub(super) fn sqrt_upper(mu_squared: MuSquared) -> f64 {
    // In units of 2^-96, finer than the floats from 2^-32 up.
    f64_up(&sqrt_up(&(BigUint::from(mu_squared.units()) << 128)), 96)
}

/// A point (ε, μ) of the curve, with ε ≥ 0 and μ > 0.
struct Point {
    a_is_negative: bool,
    a_squared: Ratio,
    b_squared: Ratio,
}

/// What is known of δ(ε; μ).
enum Enclosure {
    /// Between 0 and the smallest positive float.
    BelowFloats,
    /// Between the largest float below 1 and 1.
    NextToOne,
    Within(Interval),
}

impl Point {
    fn new(mu_squared: MuSquared, epsilon: f64) -> Self {
        // μ² = units/2^64 and ε = e/s; then a, b = (μ² ∓ 2ε)/2μ = (units·s ∓ 2^65·e)/(2^65·s·μ).
        let units = BigUint::from(mu_squared.units());
        let epsilon = Ratio::from_f64(epsilon);
        let (left, right) = (&units * &epsilon.denominator, epsilon.numerator << 65);
        let a_is_negative = left < right;
        let difference = if a_is_negative { &right - &left } else { &left - &right };
        let sum = left + right;
        let denominator: BigUint = (units * &epsilon.denominator * &epsilon.denominator) << 66;
        Self {
            a_is_negative,
            a_squared: Ratio { numerator: &difference * &difference, denominator: denominator.clone() },
            b_squared: Ratio { numerator: &sum * &sum, denominator },
        }
    }

    /// Encloses δ(ε; μ), with about `precision` significant bits.
    fn enclose(&self, precision: u64) -> Enclosure {
        if self.a_is_negative && self.a_squared.at_least(40 * 40) {
            return Enclosure::BelowFloats; // δ ≤ Φ(−40) < e^−800 < 2^-1074
        }
        if !self.a_is_negative && self.a_squared.at_least(9 * 9) {
            return Enclosure::NextToOne; // 1 − δ ≤ 2Φ(−9) < e^−40 < 2^-53
        }
        // R(−a) − R(b) is above about μ/b² ≥ 2^-32/b², and φ(a) above 2^(−¾a² − 2).
        let close = 32 + u64::BITS - self.b_squared.ceil_up_to(u64::MAX).leading_zeros();
        let small = self.a_squared.ceil_up_to(1600) * 3 / 4 + 2;
        let ratio_bits = precision + u64::from(close) + 16;
        let bits = ratio_bits + small;
        let one = Interval::integer(1, bits);
        let power = Interval::ratio(&self.a_squared, bits).halved().exp();
        let density = one.over(&(&power * &Interval::root_of_two_pi(bits)));
        let at_a = Interval::mills(&self.a_squared, ratio_bits).refined(small);
        let at_b = Interval::mills(&self.b_squared, ratio_bits).refined(small);
        Enclosure::Within(if self.a_is_negative {
            &density * &(&at_a - &at_b)
        } else {
            &one - &(&density * &(&at_a + &at_b))
        })
    }

    /// The smallest float that is at least δ(ε; μ).
    fn delta_upper(&self) -> f64 {
        let mut bound = 1.0f64;
        for precision in PRECISIONS {
            match self.enclose(precision) {
                Enclosure::BelowFloats => return f64::from_bits(1),
                Enclosure::NextToOne => return 1.0,
                Enclosure::Within(value) => {
                    let (low, high) = value.ends_rounded_up();
                    bound = bound.min(high);
                    if low >= high {
                        break;
                    }
                }
            }
        }
        bound
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn enclosures_are_as_tight_as_asked_and_do_not_contradict_each_other() {
        let mut within = 0;
        for units in [1, 1 << 20, 1 << 44, 1 << 60, 1 << 62, 1 << 64, 1 << 68, 1 << 74, 1 << 100, u128::MAX] {
            for multiple in [0.0, 1e-3, 0.2, 0.9, 1.0, 1.1, 3.0, 8.0, 20.0, 39.0] {
                // ε = μ²/2 + (multiple − 1)·μ, so that a = 1 − multiple, or 0 if that is negative.
                let mu = sqrt_upper(MuSquared::from_units(units));
                let point =
                    Point::new(MuSquared::from_units(units), (mu * (mu / 2.0 + multiple - 1.0)).max(0.0));
                let fine = point.enclose(300);
                for precision in [8, 64, 128] {
                    match (point.enclose(precision), &fine) {
                        (Enclosure::Within(coarse), Enclosure::Within(fine)) => {
                            assert!(coarse.is_relatively_within(precision), "{units} {multiple} {precision}");
                            assert!(coarse.overlaps(fine), "{units} {multiple} {precision}");
                            within += 1;
                        }
                        (Enclosure::BelowFloats, Enclosure::BelowFloats)
                        | (Enclosure::NextToOne, Enclosure::NextToOne) => {}
                        _ => panic!("{units} {multiple}: which end it is depends on the precision"),
                    }
                }
            }
        }
        assert!(within > 200);
    }
}
