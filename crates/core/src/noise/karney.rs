//! Karney 2016, "Sampling exactly from the normal distribution" (ACM TOMS 42:1, article 3), Algorithm N.
//!
//! The deviate is ±(k + x): a whole part k, a uniform deviate x whose digits are drawn only as far as a
//! comparison or the final rounding needs them, and a sign. Steps and names follow the paper; each
//! function says which Bernoulli probability it realises. The proof that the product of those
//! probabilities is the normal density is in docs/PRIVACY.md#noise.
//!
//! Nothing here can be printed: all of it holds noise.

use rand_core::Rng;
use std::cmp::Ordering;

/// Random bits, taken from a generator one word at a time.
///
/// Bits are used from the low end of the word. When fewer are left than asked for, the rest is thrown
/// away: how many are thrown away depends on counts, never on the thrown bits, so what is used stays
/// uniform and independent.
pub(super) struct RandomBits<'r, R: ?Sized> {
    generator: &'r mut R,
    word: u64,
    left: u32,
}

impl<'r, R: Rng + ?Sized> RandomBits<'r, R> {
    pub(super) fn new(generator: &'r mut R) -> Self {
        Self { generator, word: 0, left: 0 }
    }

    /// `count` random bits, 1 ≤ `count` ≤ 63.
    #[inline]
    fn take(&mut self, count: u32) -> u64 {
        if self.left < count {
            self.word = self.generator.next_u64();
            self.left = u64::BITS;
        }
        let taken = self.word & ((1 << count) - 1);
        self.word >>= count;
        self.left -= count;
        taken
    }

    /// True with probability ½.
    #[inline]
    fn coin(&mut self) -> bool {
        self.take(1) == 1
    }

    /// A random digit of `DIGIT_BITS` bits. A full-word digit leaves the buffered bits alone.
    #[inline]
    fn digit<const DIGIT_BITS: u32>(&mut self) -> u64 {
        const {
            assert!(
                DIGIT_BITS > 0 && u64::BITS.is_multiple_of(DIGIT_BITS),
                "the width of a digit divides 64"
            );
        }
        if DIGIT_BITS == u64::BITS { self.generator.next_u64() } else { self.take(DIGIT_BITS) }
    }

    /// True with probability exactly 1/`n`, `n` ≥ 1: a uniform integer below `n`, by rejection, is 0.
    #[inline]
    fn one_in(&mut self, n: u64) -> bool {
        if n == 1 {
            return true;
        }
        let width = u64::BITS - (n - 1).leading_zeros();
        loop {
            let candidate = self.take(width);
            if candidate < n {
                return candidate == 0;
            }
        }
    }
}

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

    /// ⌊σx + ½⌋ for the exact deviate x, 1 ≤ σ < 2^53. At most σ.
    ///
    /// The known digits place x in a cell of width 2^−m. Once 2^m ≥ σ, the cell times σ is at most 1
    /// wide, so it holds at most one of the points j + ½ where the rounded value steps up. If it holds
    /// none, the rounding is decided; otherwise the further digits of x are compared with those of
    /// the step (j + ½)/σ, which long division yields one at a time.
    #[inline]
    pub(super) fn scale_and_round<R: Rng + ?Sized>(
        &mut self,
        sigma: u64,
        bits: &mut RandomBits<'_, R>,
    ) -> u64 {
        let mut prefix = u128::from(self.first);
        let mut known = DIGIT_BITS;
        let mut digits_used = 1;
        // Digit widths divide 64 and σ < 2^53, so `known` stops at 64 or before.
        while 1 << known < u128::from(sigma) {
            let digit = self.further_digit(digits_used, bits);
            prefix = prefix << DIGIT_BITS | u128::from(digit);
            known += DIGIT_BITS;
            digits_used += 1;
        }
        // In units of 2^−(known + 1), σx + ½ lies in [lowest, lowest + 2σ). Largest intermediate value:
        // 2σ·2^64 + 2^64 < 2^119.
        let twice_sigma = 2 * u128::from(sigma);
        let lowest = twice_sigma * prefix + (1 << known);
        let below = lowest >> (known + 1);
        let above = (lowest + twice_sigma - 1) >> (known + 1);
        if below == above {
            return below as u64;
        }
        // The step lies inside the cell, `remainder`/(2σ) of the way through it.
        let remainder = ((2 * below + 1) << known) - twice_sigma * prefix;
        if self.is_beyond_step(remainder, twice_sigma, digits_used, bits) {
            above as u64
        } else {
            below as u64
        }
    }

    /// Whether the digits of x from `index` on, read as a fraction, reach `remainder`/`divisor`, where
    /// `remainder` < `divisor` < 2^54.
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

/// A standard normal deviate ±(whole + fraction), as far as its digits are known.
pub(super) struct Normal<const DIGIT_BITS: u32> {
    pub(super) negative: bool,
    pub(super) whole: u64,
    pub(super) fraction: Uniform<DIGIT_BITS>,
}

/// Algorithm N: an exact standard normal deviate.
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

/// Steps N1 to N5 once: proposes k and x, and keeps them with probability proportional to the half-normal
/// density at k + x over that of proposing them.
#[inline]
fn propose<const DIGIT_BITS: u32, R: Rng + ?Sized>(
    bits: &mut RandomBits<'_, R>,
) -> Option<(u64, Uniform<DIGIT_BITS>)> {
    let k = geometric::<DIGIT_BITS, R>(bits); // N1
    if !accept_whole::<DIGIT_BITS, R>(k, bits) {
        return None; // N2
    }
    let mut x = Uniform::new(bits); // N3
    // N4: k + 1 trials of exp(−x(2k + x)/(2k + 2)) make one of exp(−x(2k + x)/2).
    (0..=k).all(|_| accept_fraction(k, &mut x, bits)).then_some((k, x))
}

/// Algorithm G: k ≥ 0 with probability e^(−k/2)·(1 − e^(−1/2)).
///
/// k counts successful trials, one at a time, so it cannot overflow in any run that ends.
fn geometric<const DIGIT_BITS: u32, R: Rng + ?Sized>(bits: &mut RandomBits<'_, R>) -> u64 {
    let mut k = 0;
    while exp_minus_half::<DIGIT_BITS, R>(bits) {
        k += 1;
    }
    k
}

/// Step N2: true with probability e^(−k(k−1)/2), as k(k − 1) trials of e^(−1/2).
fn accept_whole<const DIGIT_BITS: u32, R: Rng + ?Sized>(k: u64, bits: &mut RandomBits<'_, R>) -> bool {
    (0..k).all(|_| (1..k).all(|_| exp_minus_half::<DIGIT_BITS, R>(bits)))
}

/// Algorithm H: true with probability e^(−1/2).
///
/// Von Neumann's trick: for the longest run ½ > U₁ > U₂ > … > Uₙ of uniform deviates,
/// P(length ≥ n) = 2^−n/n!, so n is even with probability Σ(−½)^n/n!. The leading bit of each U decides
/// U < ½; it is drawn by itself, and the rest of the deviate only where an order has to be compared.
#[inline]
fn exp_minus_half<const DIGIT_BITS: u32, R: Rng + ?Sized>(bits: &mut RandomBits<'_, R>) -> bool {
    if bits.coin() {
        return true; // U₁ ≥ ½: the run is empty
    }
    if bits.coin() {
        return false; // U₂ ≥ ½ > U₁: the run has length 1
    }
    let mut last = Uniform::<DIGIT_BITS>::new(bits);
    let mut run_is_even = false;
    loop {
        let mut next = Uniform::new(bits);
        if !next.is_below(&mut last, bits) {
            return run_is_even;
        }
        run_is_even = !run_is_even;
        if bits.coin() {
            return run_is_even;
        }
        last = next;
    }
}

/// Algorithm B: true with probability exp(−x(2k + x)/(2k + 2)).
///
/// The longest run x > Z₁ > Z₂ > … > Zₙ in which each step also passes a test of probability
/// (2k + x)/(2k + 2) has P(length ≥ n) = (x(2k + x)/(2k + 2))^n/n!, and n is asked to be even.
#[inline]
fn accept_fraction<const DIGIT_BITS: u32, R: Rng + ?Sized>(
    k: u64,
    x: &mut Uniform<DIGIT_BITS>,
    bits: &mut RandomBits<'_, R>,
) -> bool {
    let mut last: Option<Uniform<DIGIT_BITS>> = None; // None: the run is empty and its bound is x
    let mut run_is_even = true;
    loop {
        // (2k + x)/(2k + 2) is k/(k + 1) + x·½/(k + 1): Algorithm C chooses the case, and the run may
        // end before a deviate is drawn for it.
        let compare_with_x = bits.one_in(k + 1);
        if compare_with_x && bits.coin() {
            return run_is_even;
        }
        let mut next = Uniform::new(bits);
        let bound = last.as_mut().unwrap_or(&mut *x);
        if !next.is_below(bound, bits) {
            return run_is_even;
        }
        if compare_with_x && !Uniform::new(bits).is_below(x, bits) {
            return run_is_even;
        }
        run_is_even = !run_is_even;
        last = Some(next);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use num_bigint::BigUint;
    use proptest::prelude::*;
    use std::collections::{BTreeMap, VecDeque};
    use std::convert::Infallible;

    /// Words to be handed out in order; after them, words that are merely arbitrary.
    struct Script {
        words: VecDeque<u64>,
        beyond: u64,
    }

    impl Script {
        fn new(words: impl IntoIterator<Item = u64>) -> Self {
            Self { words: words.into_iter().collect(), beyond: 0 }
        }
    }

    impl rand_core::TryRng for Script {
        type Error = Infallible;

        fn try_next_u32(&mut self) -> Result<u32, Infallible> {
            unimplemented!("the sampler draws whole words")
        }

        fn try_next_u64(&mut self) -> Result<u64, Infallible> {
            Ok(self.words.pop_front().unwrap_or_else(|| {
                self.beyond += 1;
                self.beyond.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29)
            }))
        }

        fn try_fill_bytes(&mut self, _: &mut [u8]) -> Result<(), Infallible> {
            unimplemented!("the sampler draws whole words")
        }
    }

    /// The exact probability of each outcome of `trial`, up to the mass of the bit strings of length
    /// `depth` that do not decide it: every string is tried, none is sampled.
    fn exact_masses<T: Ord>(
        depth: u32,
        mut trial: impl FnMut(&mut RandomBits<'_, Script>) -> T,
    ) -> (BTreeMap<T, f64>, f64) {
        assert!(depth < u64::BITS);
        let mut masses = BTreeMap::new();
        let mut undecided = 0.0;
        let mut string = 0_u64; // first bit lowest
        loop {
            let mut script = Script::new([string]);
            let mut bits = RandomBits::new(&mut script);
            let outcome = trial(&mut bits);
            // A trial that needs no bit never fetches the script.
            let left = bits.left;
            let used = if script.words.is_empty() { u64::BITS - left } else { 0 };
            let length = if script.beyond == 0 && used <= depth {
                *masses.entry(outcome).or_insert(0.0) += 0.5_f64.powi(used as i32);
                used
            } else {
                undecided += 0.5_f64.powi(depth as i32);
                depth
            };
            // The next string: the last 0 of those just used becomes 1, and all after it starts again.
            let zeros = !string & ((1 << length) - 1);
            if zeros == 0 {
                return (masses, undecided);
            }
            let last_zero = zeros.ilog2();
            string = string & ((1 << last_zero) - 1) | 1 << last_zero;
        }
    }

    #[track_caller]
    fn assert_brackets(lower: f64, undecided: f64, exact: f64) {
        let slack = 1e-12; // of the f64 sums in this test
        assert!(
            lower - slack <= exact && exact <= lower + undecided + slack,
            "{exact} is outside [{lower}, {lower} + {undecided}]"
        );
    }

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
    fn one_in_n_has_probability_one_in_n() {
        for n in 1..=9 {
            let (masses, undecided) = exact_masses(24, |bits| bits.one_in(n));
            assert!(undecided < 1e-2, "{undecided}");
            assert_brackets(masses[&true], undecided, 1.0 / n as f64);
        }
    }

    #[test]
    fn order_of_two_deviates_is_fair_through_ties() {
        let (masses, undecided) = exact_masses(24, |bits| {
            let mut a = Uniform::<2>::new(bits);
            let mut b = Uniform::<2>::new(bits);
            let below = a.is_below(&mut b, bits);
            // The digits that decided stay: asking again draws nothing and answers the same.
            let left = bits.left;
            assert_eq!(b.is_below(&mut a, bits), !below);
            assert_eq!(bits.left, left);
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
            assert_eq!((script.words.len(), script.beyond), (0, 0));
        }
    }

    #[test]
    fn algorithm_h_has_probability_exp_minus_half() {
        let exact = (-0.5_f64).exp();
        let (masses, undecided) = exact_masses(30, exp_minus_half::<1, _>);
        assert!(undecided < 1e-3, "{undecided}");
        assert_brackets(masses[&true], undecided, exact);
        let (masses, undecided) = exact_masses(30, exp_minus_half::<2, _>);
        assert!(undecided < 1e-3, "{undecided}");
        assert_brackets(masses[&true], undecided, exact);
    }

    #[test]
    fn algorithm_g_is_geometric() {
        let (masses, undecided) = exact_masses(22, geometric::<1, _>);
        assert!(undecided < 0.05, "{undecided}");
        for k in 0..6 {
            let exact = (-0.5 * k as f64).exp() * (1.0 - (-0.5_f64).exp());
            assert_brackets(masses[&k], undecided, exact);
        }
    }

    #[test]
    fn step_n2_has_its_probability() {
        for k in 0..=3 {
            let (masses, undecided) = exact_masses(24, |bits| accept_whole::<1, _>(k, bits));
            assert!(undecided < 0.02, "{undecided}");
            let exact = (-0.5 * k as f64 * (k as f64 - 1.0)).exp();
            assert_brackets(masses[&true], undecided, exact);
        }
    }

    #[test]
    fn algorithm_b_has_its_probability() {
        for k in 0..=3 {
            // x is known to be in [cell/8, (cell + 1)/8), and uniform there.
            for cell in 0..8 {
                let (masses, undecided) = exact_masses(22, |bits| {
                    let mut x = Uniform::<1> { first: cell >> 2, rest: vec![cell >> 1 & 1, cell & 1] };
                    accept_fraction(k, &mut x, bits)
                });
                assert!(undecided < 0.1, "{undecided}");
                let twice_k = 2.0 * k as f64;
                let start = cell as f64 / 8.0;
                let exact =
                    8.0 * integral(|x| (-x * (twice_k + x) / (twice_k + 2.0)).exp(), start, start + 0.125);
                assert_brackets(masses[&true], undecided, exact);
            }
        }
    }

    #[test]
    fn one_proposal_of_algorithm_n_has_the_normal_masses() {
        let (masses, undecided) =
            exact_masses(24, |bits| propose::<1, _>(bits).map(|(whole, fraction)| (whole, fraction.first)));
        assert!(undecided < 0.2, "{undecided}");
        let scale = 1.0 - (-0.5_f64).exp();
        let bell = |t: f64| scale * (-0.5 * t * t).exp();
        for (whole, half) in [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1)] {
            let start = whole as f64 + 0.5 * half as f64;
            let exact = integral(bell, start, start + 0.5);
            assert_brackets(masses[&Some((whole, half))], undecided, exact);
        }
        let rejected = 1.0 - scale * (std::f64::consts::PI / 2.0).sqrt();
        assert_brackets(masses[&None], undecided, rejected);
    }

    /// One narrow width: each rounded value has exactly its share of the uniform deviate.
    fn rounding_shares<const DIGIT_BITS: u32>() {
        for sigma in (1..=20).chain([31, 32, 33, 255, 256, 257]) {
            let (masses, undecided) =
                exact_masses(40, |bits| Uniform::<DIGIT_BITS>::new(bits).scale_and_round(sigma, bits));
            assert!(undecided < 1e-6, "{undecided}");
            let step = 1.0 / sigma as f64;
            for value in 0..=sigma {
                let ends = value == 0 || value == sigma;
                let share = if ends { step / 2.0 } else { step };
                assert_brackets(masses[&value], undecided, share);
            }
            assert_eq!(masses.len() as u64, sigma + 1);
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
        // 1/6, where ⌊3x + ½⌋ steps from 0 to 1, is 0.0010101…: its digits never end.
        let tail = 0xAAAA_AAAA_AAAA_AAAA;
        let first = 0x2AAA_AAAA_AAAA_AAAA;
        for (digits, rounded, drawn) in [
            (vec![first - 1], 0, 0),
            (vec![first + 1], 1, 0),
            (vec![first, tail - 1], 0, 1),
            (vec![first, tail + 1], 1, 1),
            (vec![first, tail, tail, tail - 1], 0, 3),
            (vec![first, tail, tail, tail + 1], 1, 3),
            // ½ ends at once, and x = ½ belongs above it: nothing more is drawn on either side.
            (vec![1 << 63], 2, 0),
            (vec![(1 << 63) - 1], 1, 0),
        ] {
            let mut script = Script::new(digits);
            let mut bits = RandomBits::new(&mut script);
            let mut x = Uniform::<64>::new(&mut bits);
            assert_eq!(x.scale_and_round(3, &mut bits), rounded);
            assert_eq!(x.rest.len(), drawn);
            assert_eq!((script.words.len(), script.beyond), (0, 0));
        }
    }

    #[test]
    fn rounding_reaches_both_ends_at_the_largest_scale() {
        let sigma = (1 << 53) - 1;
        for (digit, rounded) in [(0, 0), (u64::MAX, sigma)] {
            let mut script = Script::new([digit]);
            let mut bits = RandomBits::new(&mut script);
            let mut x = Uniform::<64>::new(&mut bits);
            assert_eq!(x.scale_and_round(sigma, &mut bits), rounded);
        }
    }

    proptest! {
        /// Full-width digits against big integers, aimed at the steps so that roundings stay undecided.
        #[test]
        fn rounding_agrees_with_big_integers(
            sigma in prop_oneof![1_u64..40, 1_u64..1 << 53, (1_u64 << 53) - 40..1 << 53],
            step in any::<prop::sample::Index>(),
            shared_digits in 0_usize..4,
            other in any::<[u64; 4]>(),
        ) {
            let divisor = u128::from(2 * sigma);
            let mut remainder = u128::from(2 * step.index(sigma as usize) as u64 + 1);
            let mut digits = other;
            for digit in &mut digits[..shared_digits] {
                let dividend = remainder << 64;
                *digit = (dividend / divisor) as u64;
                remainder = dividend % divisor;
            }
            let x = digits.iter().fold(BigUint::ZERO, |x, &digit| (x << 64) + digit);
            let expected = ((x * (2 * sigma)) + (BigUint::from(1_u8) << 256)) >> 257;

            let mut script = Script::new(digits);
            let mut bits = RandomBits::new(&mut script);
            let rounded = Uniform::<64>::new(&mut bits).scale_and_round(sigma, &mut bits);
            prop_assume!(script.beyond == 0); // four digits decided
            prop_assert_eq!(BigUint::from(rounded), expected);
        }
    }
}
