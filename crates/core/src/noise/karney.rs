//! Karney 2016, "Sampling exactly from the normal distribution" (ACM TOMS 42:1, article 3),
//! Algorithm N.
//!
//! The deviate is ±(k + x)/16: a whole part k, a uniform deviate x whose digits are drawn only as
//! far as a comparison or the final rounding needs them, and a sign. Karney has 1 in place of 1/16,
//! and draws k by trials; here one trial is enough, and it nearly always succeeds at its first
//! draw. Steps and names follow the paper; each function says which probability it realises. The
//! proof that the product of those probabilities is the normal density is in docs/PRIVACY.md#noise.
//!
//! Nothing here can be printed: all of it holds noise.

use super::bits::RandomBits;
use super::whole::whole;
use rand_core::Rng;
use std::cmp::Ordering;

/// The deviate is ±(k + x)/16. A power of two.
pub(super) const PARTS: u64 = 16;

/// A uniform deviate on (0, 1): its leading digit, and those after it that were needed so far.
pub(super) struct Uniform<const DIGIT_BITS: u32> {
    first: u64,
    rest: Vec<u64>,
}

impl<const DIGIT_BITS: u32> Uniform<DIGIT_BITS> {
    #[inline]
    fn new<R: Rng + ?Sized>(bits: &mut RandomBits<'_, R>) -> Self {
        Self {
            first: bits.digit::<DIGIT_BITS>(),
            rest: Vec::new(), // allocates nothing until a tie
        }
    }

    /// Digit `index` ≥ 1 after the leading one, drawn now if nobody has looked at it before.
    fn further_digit<R: Rng + ?Sized>(&mut self, index: usize, bits: &mut RandomBits<'_, R>) -> u64 {
        while self.rest.len() < index {
            self.rest.push(bits.digit::<DIGIT_BITS>());
        }
        self.rest[index - 1]
    }

    /// Whether `self` < `other`. Equality has probability 0, so some digit differs.
    #[inline]
    fn is_below<R: Rng + ?Sized>(&mut self, other: &mut Self, bits: &mut RandomBits<'_, R>) -> bool {
        match self.first.cmp(&other.first) {
            Ordering::Less => true,
            Ordering::Greater => false,
            Ordering::Equal => self.is_below_after_tie(other, bits),
        }
    }

    #[cold]
    fn is_below_after_tie<R: Rng + ?Sized>(
        &mut self,
        other: &mut Self,
        bits: &mut RandomBits<'_, R>,
    ) -> bool {
        let mut index = 1;
        loop {
            let own = self.further_digit(index, bits);
            let others = other.further_digit(index, bits);
            if own != others {
                return own < others;
            }
            index += 1;
        }
    }

    /// ⌊(σx + offset)/16 + ½⌋ for the exact deviate x, 1 ≤ σ < 2^53 and `offset` < 16.
    ///
    /// The known digits place x in a cell of width 2^−m. Once 16·2^m ≥ σ, the cell times σ/16 is at
    /// most 1 wide, so it holds at most one of the points j + ½ where the rounded value steps up.
    /// If it holds none, the rounding is decided; otherwise the further digits of x are compared
    /// with those of the step, which long division yields one at a time.
    ///
    /// # Privacy
    /// Exact, with probability 1 after finitely many digits: Lemma 2,
    /// docs/PRIVACY.md#digits-are-drawn-when-needed.
    #[inline]
    pub(super) fn scale_and_round<R: Rng + ?Sized>(
        &mut self,
        sigma: u64,
        offset: u64,
        bits: &mut RandomBits<'_, R>,
    ) -> u64 {
        let mut prefix = u128::from(self.first);
        let mut known = DIGIT_BITS;
        let mut digits_used = 1;
        // Digit widths divide 64 and σ < 2^53, so `known` stops at 64 or before.
        while u128::from(PARTS) << known < u128::from(sigma) {
            let digit = self.further_digit(digits_used, bits);
            prefix = prefix << DIGIT_BITS | u128::from(digit);
            known += DIGIT_BITS;
            digits_used += 1;
        }
        // In units of 2^−known/32, (σx + offset)/16 + ½ lies in [lowest, lowest + 2σ). Largest
        // intermediate value: 2σ·2^64 + 2^6·2^64 < 2^119.
        let unit = known + (2 * PARTS).ilog2();
        let twice_sigma = 2 * u128::from(sigma);
        let lowest = twice_sigma * prefix + (u128::from(2 * offset + PARTS) << known);
        let below = lowest >> unit;
        let above = (lowest + twice_sigma - 1) >> unit;
        if below == above {
            return below as u64;
        }
        // The step lies inside the cell, `remainder`/(2σ) of the way through it.
        let remainder = (above << unit) - lowest;
        if self.is_beyond_step(remainder, twice_sigma, digits_used, bits) {
            above as u64
        } else {
            below as u64
        }
    }

    /// Whether the digits of x from `index` on, read as a fraction, reach `remainder`/`divisor`,
    /// where `remainder` < `divisor` < 2^54.
    #[cold]
    fn is_beyond_step<R: Rng + ?Sized>(
        &mut self,
        mut remainder: u128,
        divisor: u128,
        mut index: usize,
        bits: &mut RandomBits<'_, R>,
    ) -> bool {
        loop {
            let dividend = remainder << DIGIT_BITS; // < 2^118
            let step_digit = dividend / divisor;
            remainder = dividend % divisor;
            match u128::from(self.further_digit(index, bits)).cmp(&step_digit) {
                Ordering::Less => return false,
                Ordering::Greater => return true,
                // The step ends here, and x with whatever digits follow is not below it.
                Ordering::Equal if remainder == 0 => return true,
                Ordering::Equal => index += 1,
            }
        }
    }
}

/// A standard normal deviate ±(whole + fraction)/16, as far as its digits are known.
pub(super) struct Normal<const DIGIT_BITS: u32> {
    pub(super) negative: bool,
    pub(super) whole: u64,
    pub(super) fraction: Uniform<DIGIT_BITS>,
}

/// Algorithm N in sixteenths: an exact standard normal deviate.
///
/// # Privacy
/// Its density is exactly φ, given ideal bits: Theorem 1,
/// docs/PRIVACY.md#the-deviate-is-exactly-normal.
#[inline]
pub(super) fn standard_normal<const DIGIT_BITS: u32, R: Rng + ?Sized>(
    bits: &mut RandomBits<'_, R>,
) -> Normal<DIGIT_BITS> {
    loop {
        if let Some((whole, fraction)) = propose(bits) {
            return Normal {
                negative: bits.coin(), // N6
                whole,
                fraction,
            };
        }
    }
}

/// Steps N1 to N5 once: proposes k and x, and keeps them with probability proportional to the
/// half-normal density at (k + x)/16 over that of proposing them.
#[inline]
fn propose<const DIGIT_BITS: u32, R: Rng + ?Sized>(
    bits: &mut RandomBits<'_, R>,
) -> Option<(u64, Uniform<DIGIT_BITS>)> {
    let k = whole::<DIGIT_BITS, R>(bits); // N1 and N2
    let mut x = Uniform::new(bits); // N3
    // N4: so many trials of exp(−x(2k + x)/(512·trials)) make one of exp(−x(2k + x)/512). A single
    // one while k < 256.
    let trials = k / (PARTS * PARTS) + 1;
    let denominator = 2 * PARTS * PARTS * trials;
    (0..trials).all(|_| accept_fraction(k, denominator, &mut x, bits)).then_some((k, x))
}

/// Algorithm B: true with probability exp(−x(2k + x)/`denominator`), where 2k + 1 ≤ `denominator`.
///
/// The longest run x > Z₁ > Z₂ > … > Zₙ in which each step also passes a test of probability
/// r = (2k + x)/`denominator` has P(length ≥ n) = (rx)^n/n!, and n is asked to be even.
#[inline]
fn accept_fraction<const DIGIT_BITS: u32, R: Rng + ?Sized>(
    k: u64,
    denominator: u64,
    x: &mut Uniform<DIGIT_BITS>,
    bits: &mut RandomBits<'_, R>,
) -> bool {
    let mut last: Option<Uniform<DIGIT_BITS>> = None; // None: the run is empty and its bound is x
    let mut run_is_even = true;
    loop {
        // Algorithm C: 2k of the cases pass the test, and one more does if a fresh deviate is below
        // x. The run may end before a deviate is drawn for it.
        let case = bits.below(denominator);
        if case > 2 * k {
            return run_is_even;
        }
        let mut next = Uniform::new(bits);
        let bound = last.as_mut().unwrap_or(&mut *x);
        if !next.is_below(bound, bits) {
            return run_is_even;
        }
        if case == 2 * k && !Uniform::new(bits).is_below(x, bits) {
            return run_is_even;
        }
        run_is_even = !run_is_even;
        last = Some(next);
    }
}

#[cfg(test)]
mod tests {
    use super::super::bits::tests::{Script, assert_brackets, exact_masses};
    use super::*;
    use num_bigint::BigUint;
    use proptest::prelude::*;

    /// ∫ f over [a, b] by Simpson's rule, for smooth f.
    fn integral(f: impl Fn(f64) -> f64, a: f64, b: f64) -> f64 {
        let panels = 200;
        let h = (b - a) / f64::from(panels);
        let sum: f64 = (0..panels)
            .map(|i| {
                let left = a + h * f64::from(i);
                f(left) + 4.0 * f(left + h / 2.0) + f(left + h)
            })
            .sum();
        sum * h / 6.0
    }

    #[test]
    fn order_of_two_deviates_is_fair_through_ties() {
        let (masses, undecided) = exact_masses(24, |bits| {
            let mut a = Uniform::<2>::new(bits);
            let mut b = Uniform::<2>::new(bits);
            let below = a.is_below(&mut b, bits);
            // The digits that decided stay: asking again draws nothing and answers the same.
            let used = bits.used();
            assert_eq!(b.is_below(&mut a, bits), !below);
            assert_eq!(bits.used(), used);
            below
        });
        assert!(undecided < 1e-3);
        assert_brackets(masses[&true], undecided, 0.5);
        assert_brackets(masses[&false], undecided, 0.5);
    }

    #[test]
    fn full_width_ties_are_broken_by_further_digits() {
        for (digits, below) in [([5, 5, 7, 7, 1, 2], true), ([5, 5, 7, 7, 2, 1], false)] {
            let mut script = Script::new(digits);
            let mut bits = RandomBits::new(&mut script);
            let mut a = Uniform::<64>::new(&mut bits);
            let mut b = Uniform::<64>::new(&mut bits);
            assert_eq!(a.is_below(&mut b, &mut bits), below);
            assert_eq!(bits.used(), 6 * 64);
        }
    }

    #[test]
    fn algorithm_b_has_its_probability() {
        for (k, denominator) in [(0, 2), (1, 4), (1, 3), (2, 6), (3, 8), (2, 16)] {
            // x is known to be in [cell/8, (cell + 1)/8), and uniform there.
            for cell in 0..8 {
                let (masses, undecided) = exact_masses(22, |bits| {
                    let mut x = Uniform::<1> { first: cell >> 2, rest: vec![cell >> 1 & 1, cell & 1] };
                    accept_fraction(k, denominator, &mut x, bits)
                });
                assert!(undecided < 0.2, "{undecided}");
                let start = cell as f64 / 8.0;
                let exponent = |x: f64| -x * (2.0 * k as f64 + x) / denominator as f64;
                let exact = 8.0 * integral(|x| exponent(x).exp(), start, start + 0.125);
                assert_brackets(masses[&true], undecided, exact);
            }
        }
    }

    #[test]
    fn one_proposal_of_algorithm_n_has_the_normal_masses() {
        let (masses, undecided) =
            exact_masses(28, |bits| propose::<1, _>(bits).map(|(whole, fraction)| (whole, fraction.first)));
        assert!(undecided < 0.03, "{undecided}");
        let total: f64 = (0..1000).map(|k| (-f64::from(k * k) / 512.0).exp()).sum();
        let bell = |t: f64| (-t * t / 512.0).exp() / total;
        for whole in 0..32 {
            for half in 0..2 {
                let start = whole as f64 + 0.5 * half as f64;
                let exact = integral(bell, start, start + 0.5);
                assert_brackets(masses[&Some((whole, half))], undecided, exact);
            }
        }
        let rejected = 1.0 - 16.0 * (std::f64::consts::PI / 2.0).sqrt() / total;
        assert_brackets(masses[&None], undecided, rejected);
    }

    /// |g| > 16: what no statistical test will ever see.
    #[test]
    fn whole_parts_from_256_on_take_two_trials() {
        const K: u64 = 258; // of the deviate 1 − 2^−192
        let x = 1 << 63;
        let cases = |first: u64, second: u64, third: u64| first | second << 10 | third << 20;
        for (further, kept, used) in [
            // Both runs end at once: kept.
            (vec![cases(2 * K + 1, 1023, 0)], true, 20),
            // The first run has one member: not kept, and there is no second trial.
            (vec![cases(2 * K - 1, 2 * K + 1, 0), x - 1], false, 64 + 20),
            // The second run has one member: not kept.
            (vec![cases(1023, 0, 1023), x - 1], false, 64 + 30),
            // The case in which a fresh deviate decides that the run stays empty.
            (vec![cases(2 * K, 1023, 0), x - 1, x + 1], true, 2 * 64 + 20),
            (vec![cases(2 * K, 1023, 0), x - 1, x - 1], false, 2 * 64 + 20),
        ] {
            let mut script = Script::new([u64::MAX, u64::MAX, u64::MAX, 0, x].into_iter().chain(further));
            let mut bits = RandomBits::new(&mut script);
            let proposal = propose::<64, _>(&mut bits).map(|(whole, fraction)| (whole, fraction.first));
            assert_eq!(proposal, kept.then_some((K, x)));
            assert_eq!(bits.used(), 5 * 64 + used);
        }
    }

    /// One narrow width: each rounded value has exactly its share of the uniform deviate.
    fn rounding_shares<const DIGIT_BITS: u32>() {
        for sigma in (1..=20).chain([31, 32, 33, 255, 256, 257]) {
            for offset in 0..PARTS {
                let (masses, undecided) = exact_masses(40, |bits| {
                    Uniform::<DIGIT_BITS>::new(bits).scale_and_round(sigma, offset, bits)
                });
                assert!(undecided < 1e-6, "{undecided}");
                // Where (σx + offset)/16 reaches `value` − ½.
                let step = |value: u64| {
                    let x = (16.0 * (value as f64 - 0.5) - offset as f64) / sigma as f64;
                    x.clamp(0.0, 1.0)
                };
                for value in 0..=sigma {
                    let share = step(value + 1) - step(value);
                    let found = masses.get(&value).copied();
                    assert_eq!(found.is_some(), share > 0.0);
                    assert_brackets(found.unwrap_or(0.0), undecided, share);
                }
                assert!(masses.keys().all(|&value| value <= sigma));
            }
        }
    }

    #[test]
    fn rounding_gives_each_value_its_share() {
        rounding_shares::<1>();
        rounding_shares::<2>();
        rounding_shares::<4>();
        rounding_shares::<8>();
    }

    #[test]
    fn rounding_waits_for_the_digit_that_decides() {
        // ⌊(3x + 7)/16 + ½⌋ steps from 0 to 1 at ⅓ = 0.010101…, whose digits never end.
        let third = 0x5555_5555_5555_5555;
        for (sigma, digits, rounded) in [
            (3, vec![third - 1], 0),
            (3, vec![third + 1], 1),
            (3, vec![third, third - 1], 0),
            (3, vec![third, third + 1], 1),
            (3, vec![third, third, third, third - 1], 0),
            (3, vec![third, third, third, third + 1], 1),
            // ½ ends at once, and x = ½ belongs above it: nothing more is drawn on either side.
            (2, vec![1 << 63], 1),
            (2, vec![(1 << 63) - 1], 0),
        ] {
            let count = digits.len() as u32;
            let mut script = Script::new(digits);
            let mut bits = RandomBits::new(&mut script);
            let mut x = Uniform::<64>::new(&mut bits);
            assert_eq!(x.scale_and_round(sigma, 7, &mut bits), rounded);
            assert_eq!(bits.used(), 64 * count);
        }
    }

    #[test]
    fn rounding_reaches_both_ends_at_the_largest_scale() {
        let sigma = (1 << 53) - 1;
        for (digit, offset, rounded) in
            [(0, 0, 0), (0, 15, 1), (u64::MAX, 0, 1 << 49), (u64::MAX, 15, (1 << 49) + 1)]
        {
            let mut script = Script::new([digit]);
            let mut bits = RandomBits::new(&mut script);
            let mut x = Uniform::<64>::new(&mut bits);
            assert_eq!(x.scale_and_round(sigma, offset, &mut bits), rounded);
        }
    }

    proptest! {
        /// Full-width digits against big integers, aimed at the steps so that roundings stay
        /// undecided.
        #[test]
        fn rounding_agrees_with_big_integers(
            sigma in prop_oneof![16_u64..300, 16_u64..1 << 53, (1_u64 << 53) - 40..1 << 53],
            offset in 0..PARTS,
            step in any::<prop::sample::Index>(),
            shared_digits in 0_usize..4,
            other in any::<[u64; 4]>(),
        ) {
            // x reaches the step at numerator/2σ.
            let half_up = step.index((sigma / 16 + 1) as usize) as u64 + u64::from(offset >= 8);
            let numerator = 16 * (2 * half_up + 1) - 2 * offset;
            let divisor = u128::from(2 * sigma);
            let mut remainder = u128::from(numerator);
            prop_assume!(remainder < divisor);
            let mut digits = other;
            for digit in &mut digits[..shared_digits] {
                let dividend = remainder << 64;
                *digit = (dividend / divisor) as u64;
                remainder = dividend % divisor;
            }
            let x = digits.iter().fold(BigUint::ZERO, |x, &digit| (x << 64) + digit);
            let expected = ((x * (2 * sigma)) + (BigUint::from(2 * offset + 16) << 256)) >> 261;

            let mut script = Script::new(digits);
            let mut bits = RandomBits::new(&mut script);
            let rounded = Uniform::<64>::new(&mut bits).scale_and_round(sigma, offset, &mut bits);
            prop_assume!(bits.used() <= 4 * 64); // four digits decided
            prop_assert_eq!(BigUint::from(rounded), expected);
        }
    }
}
