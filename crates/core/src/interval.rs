//! Arithmetic that encloses: non-negative fixed-point intervals over big integers.
//!
//! An [`Interval`] holds a real number between `lo`·2^-bits and `hi`·2^-bits. Every operation
//! rounds its lower end down and its upper end up, and every truncated series adds a proved bound
//! of what was left out (docs/PRIVACY.md#accounting lists the bounds). So the enclosure is right at
//! every precision; precision only decides how tight it is. No floating point is used: all machines
//! get the same integers.

use std::ops::{Add, Mul, Sub};

use num_bigint::BigUint;

/// A non-negative rational number, exact.
#[derive(Clone)]
pub(crate) struct Ratio {
    pub(crate) numerator: BigUint,
    /// Never zero.
    pub(crate) denominator: BigUint,
}

impl Ratio {
    /// A finite float ≥ 0, exactly.
    pub(crate) fn from_f64(value: f64) -> Self {
        debug_assert!(value >= 0.0 && value.is_finite());
        let fraction = value.to_bits() & ((1 << 52) - 1);
        // value = significand · 2^(exponent − 1075); subnormal numbers have no implicit leading
        // bit.
        let (significand, exponent) = match value.to_bits() >> 52 {
            0 => (fraction, 1),
            exponent => (fraction | 1 << 52, exponent),
        };
        Self {
            numerator: BigUint::from(significand) << exponent.saturating_sub(1075),
            denominator: BigUint::from(1u32) << 1075u64.saturating_sub(exponent),
        }
    }

    /// Whether this number is at least `n`.
    pub(crate) fn at_least(&self, n: u64) -> bool {
        self.numerator >= &self.denominator * n
    }

    /// This number rounded up to an integer, or `limit` if it is more.
    pub(crate) fn ceil_up_to(&self, limit: u64) -> u64 {
        u64::try_from(div_up(&self.numerator, &self.denominator)).map_or(limit, |n| n.min(limit))
    }
}

/// A real number ≥ 0 known to lie in [lo, hi]·2^-bits.
#[derive(Clone, Debug)]
pub(crate) struct Interval {
    lo: BigUint,
    hi: BigUint,
    bits: u64,
}

impl Interval {
    /// Whether the number is at most `limit`, if that can be told.
    pub(crate) fn is_at_most(&self, limit: &Ratio) -> Option<bool> {
        let scaled = &limit.numerator << self.bits;
        if &self.hi * &limit.denominator <= scaled {
            Some(true)
        } else if &self.lo * &limit.denominator > scaled {
            Some(false)
        } else {
            None
        }
    }

    /// The two ends, each rounded up to a float. When they agree, it is the smallest float that is
    /// at least the number; the second one is never below it.
    pub(crate) fn ends_rounded_up(&self) -> (f64, f64) {
        (f64_up(&self.lo, self.bits), f64_up(&self.hi, self.bits))
    }

    /// An integer, exactly.
    pub(crate) fn integer(n: u32, bits: u64) -> Self {
        let value = BigUint::from(n) << bits;
        Self { lo: value.clone(), hi: value, bits }
    }

    /// A rational number, to within one unit.
    pub(crate) fn ratio(ratio: &Ratio, bits: u64) -> Self {
        let numerator = &ratio.numerator << bits;
        Self { lo: &numerator / &ratio.denominator, hi: div_up(&numerator, &ratio.denominator), bits }
    }

    /// The square root of a rational number, to within one unit.
    pub(crate) fn sqrt_of(ratio: &Ratio, bits: u64) -> Self {
        // ⌊√⌊v⌋⌋ = ⌊√v⌋ and ⌈√⌈v⌉⌉ = ⌈√v⌉.
        let square = Self::ratio(ratio, 2 * bits);
        Self { lo: sqrt_down(&square.lo), hi: sqrt_up(&square.hi), bits }
    }

    /// The square root.
    pub(crate) fn sqrt(&self) -> Self {
        Self {
            lo: sqrt_down(&(&self.lo << self.bits)),
            hi: sqrt_up(&(&self.hi << self.bits)),
            bits: self.bits,
        }
    }

    /// Half of this number.
    pub(crate) fn halved(&self) -> Self {
        Self { lo: &self.lo >> 1, hi: shr_up(&self.hi, 1), bits: self.bits }
    }

    /// This number over `other`, which must be known to be positive.
    pub(crate) fn over(&self, other: &Self) -> Self {
        debug_assert_eq!(self.bits, other.bits);
        Self {
            lo: (&self.lo << self.bits) / &other.hi,
            hi: div_up(&(&self.hi << self.bits), &other.lo),
            bits: self.bits,
        }
    }

    /// The same number with fewer digits after the point.
    fn coarsened(&self, bits: u64) -> Self {
        let drop = self.bits - bits;
        Self { lo: &self.lo >> drop, hi: shr_up(&self.hi, drop), bits }
    }

    /// The same number with more digits after the point, all zero.
    pub(crate) fn refined(&self, more: u64) -> Self {
        Self { lo: &self.lo << more, hi: &self.hi << more, bits: self.bits + more }
    }

    /// The sum of this number and one that is at most `excess`.
    pub(crate) fn plus_at_most(&self, excess: &Self) -> Self {
        debug_assert_eq!(self.bits, excess.bits);
        Self { lo: self.lo.clone(), hi: &self.hi + &excess.hi, bits: self.bits }
    }

    fn times_integer(&self, n: u64) -> Self {
        Self { lo: &self.lo * n, hi: &self.hi * n, bits: self.bits }
    }

    fn over_integer(&self, n: u64) -> Self {
        Self { lo: &self.lo / n, hi: (&self.hi + (n - 1)) / n, bits: self.bits }
    }

    /// At most one unit: where series stop.
    pub(crate) fn is_negligible(&self) -> bool {
        self.hi.bits() <= 1
    }

    /// e to this power.
    ///
    /// Taylor series of e^r at r = x/2^h < 2^-8, then h squarings. The terms after the last one
    /// added, t ≤ 1 unit, sum to at most t·(r + r² + …) < t.
    pub(crate) fn exp(&self) -> Self {
        let halvings = self.hi.bits().saturating_sub(self.bits) + 8;
        let guard = 8;
        // The same integers, with h more digits after the point, are x/2^h.
        let r = Self { bits: self.bits + halvings, ..self.clone() }.refined(guard);
        let mut sum = Self::integer(1, r.bits);
        let mut term = sum.clone();
        let mut n = 0;
        while !term.is_negligible() {
            n += 1;
            term = (&term * &r).over_integer(n);
            sum = &sum + &term;
        }
        sum.hi += 1u32;
        for _ in 0..halvings {
            sum = &sum * &sum;
        }
        sum.coarsened(self.bits)
    }

    /// π = 16 arctan(1/5) − 4 arctan(1/239) (Machin 1706).
    pub(crate) fn pi(bits: u64) -> Self {
        &Self::arctan_of_reciprocal(5, bits).times_integer(16)
            - &Self::arctan_of_reciprocal(239, bits).times_integer(4)
    }

    /// arctan(1/q) = 1/q − 1/(3q³) + 1/(5q⁵) − …, q ≥ 2: alternating with falling terms, so that
    /// the error is smaller than the first term left out, and of its sign.
    fn arctan_of_reciprocal(q: u64, bits: u64) -> Self {
        let mut series = Alternating::new(bits);
        let mut power = Self::integer(1, bits).over_integer(q);
        let mut odd = 1;
        loop {
            let term = power.over_integer(odd);
            if term.is_negligible() {
                return series.finish(&term);
            }
            series.push(&term);
            power = power.over_integer(q * q);
            odd += 2;
        }
    }

    /// Mills' ratio of the normal distribution, R(x) = Φ(−x)/φ(x) = ∫₀^∞ exp(−xt − t²/2) dt, for x
    /// = √x² ≥ 0, to about `bits` digits.
    pub(crate) fn mills(x_squared: &Ratio, bits: u64) -> Self {
        // The smallest term of the asymptotic series is about e^(−x²/2), and log₂(e)/2 > 7/10.
        if x_squared.at_least((bits + 8) * 10 / 7) {
            Self::mills_asymptotic(x_squared, bits)
        } else {
            Self::mills_convergent(x_squared, bits)
        }
    }

    /// R(x) between consecutive partial sums of 1/x − 1/x³ + 3/x⁵ − 15/x⁷ + …, x > 0.
    ///
    /// Proof: the partial sums of e^−u, u = t²/2 ≥ 0, lie alternately above and below it; integrate
    /// them against e^(−xt). This holds for any number of terms, also where the terms have begun to
    /// grow.
    fn mills_asymptotic(x_squared: &Ratio, bits: u64) -> Self {
        let reciprocal =
            Ratio { numerator: x_squared.denominator.clone(), denominator: x_squared.numerator.clone() };
        let step = Self::ratio(&reciprocal, bits);
        let mut series = Alternating::new(bits);
        let mut term = Self::sqrt_of(&reciprocal, bits);
        let mut odd = 1;
        while !term.is_negligible() && x_squared.at_least(odd) {
            series.push(&term);
            term = &term.times_integer(odd) * &step;
            odd += 2;
        }
        series.finish(&term)
    }

    /// R(x) = √(2π)·e^(x²/2)/2 − S(x), S(x) = x + x³/3 + x⁵/(3·5) + x⁷/(3·5·7) + …
    ///
    /// Proof: S' = 1 + xS, so (φS)' = φ and Φ(x) = ½ + φ(x)S(x). Once 2k + 3 ≥ 2x², every term is
    /// at most half of the one before it, so those after the last one added, t ≤ 1 unit, sum to at
    /// most t.
    fn mills_convergent(x_squared: &Ratio, bits: u64) -> Self {
        // Both parts are below 1.26·e^(x²/2), and log₂(e)/2 < 3/4.
        let size = x_squared.ceil_up_to(u64::MAX);
        let working = bits + size * 3 / 4 + 16;
        let square = Self::ratio(x_squared, working);
        let mut term = Self::sqrt_of(x_squared, working);
        let mut sum = term.clone();
        let mut odd = 3;
        while !(term.is_negligible() && odd >= 2 * size) {
            term = (&term * &square).over_integer(odd);
            sum = &sum + &term;
            odd += 2;
        }
        sum.hi += 1u32;
        let whole = &Self::root_of_two_pi(working).halved() * &square.halved().exp();
        (&whole - &sum).coarsened(bits)
    }

    /// √(2π).
    pub(crate) fn root_of_two_pi(bits: u64) -> Self {
        Self::pi(bits).times_integer(2).sqrt()
    }
}

/// The sum of a series with signs + − + − …, whose error is at most the first term left out, and of
/// its sign.
struct Alternating {
    plus: Interval,
    minus: Interval,
    next_is_plus: bool,
}

impl Alternating {
    fn new(bits: u64) -> Self {
        let zero = Interval::integer(0, bits);
        Self { plus: zero.clone(), minus: zero, next_is_plus: true }
    }

    fn push(&mut self, term: &Interval) {
        let side = if self.next_is_plus { &mut self.plus } else { &mut self.minus };
        *side = &*side + term;
        self.next_is_plus = !self.next_is_plus;
    }

    fn finish(mut self, left_out: &Interval) -> Interval {
        let side = if self.next_is_plus { &mut self.plus } else { &mut self.minus };
        side.hi += &left_out.hi;
        &self.plus - &self.minus
    }
}

impl Add for &Interval {
    type Output = Interval;

    fn add(self, other: Self) -> Interval {
        debug_assert_eq!(self.bits, other.bits);
        Interval { lo: &self.lo + &other.lo, hi: &self.hi + &other.hi, bits: self.bits }
    }
}

impl Sub for &Interval {
    type Output = Interval;

    /// The difference of two numbers of which the first is known to be at least the second.
    fn sub(self, other: Self) -> Interval {
        debug_assert_eq!(self.bits, other.bits);
        let lo = if self.lo > other.hi { &self.lo - &other.hi } else { BigUint::ZERO };
        // self.hi ≥ the first number ≥ the second ≥ other.lo.
        Interval { lo, hi: &self.hi - &other.lo, bits: self.bits }
    }
}

impl Mul for &Interval {
    type Output = Interval;

    fn mul(self, other: Self) -> Interval {
        debug_assert_eq!(self.bits, other.bits);
        Interval {
            lo: (&self.lo * &other.lo) >> self.bits,
            hi: shr_up(&(&self.hi * &other.hi), self.bits),
            bits: self.bits,
        }
    }
}

/// The smallest float that is at least n·2^-bits, which must be below 2^1000.
pub(crate) fn f64_up(n: &BigUint, bits: u64) -> f64 {
    // Keep 53 digits, or as many as a subnormal number has: multiples of 2^-1074.
    let drop = n.bits().saturating_sub(53).max(bits.saturating_sub(1074));
    let kept = u64::try_from(shr_up(n, drop)).expect("at most 2^53") as f64;
    // The first product is exact because it is a normal number, the second because the result is a
    // float.
    let exponent = drop as i32 - bits as i32;
    let first = exponent.max(-1000);
    kept * power_of_two(first) * power_of_two(exponent - first)
}

/// 2^exponent, for −1022 ≤ exponent ≤ 1023.
fn power_of_two(exponent: i32) -> f64 {
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

/// ⌈n/d⌉.
pub(crate) fn div_up(n: &BigUint, d: &BigUint) -> BigUint {
    (n + d - 1u32) / d
}

/// ⌈n/2^k⌉.
fn shr_up(n: &BigUint, k: u64) -> BigUint {
    let down = n >> k;
    if n.trailing_zeros().is_some_and(|zeros| zeros < k) { down + 1u32 } else { down }
}

/// ⌊√n⌋.
fn sqrt_down(n: &BigUint) -> BigUint {
    let root = n.sqrt();
    debug_assert!(&root * &root <= *n && (&root + 1u32) * (&root + 1u32) > *n);
    root
}

/// ⌈√n⌉.
pub(crate) fn sqrt_up(n: &BigUint) -> BigUint {
    let root = sqrt_down(n);
    if &root * &root == *n { root } else { root + 1u32 }
}

#[cfg(test)]
#[allow(clippy::float_cmp)] // the floats compared are exact
mod tests {
    use proptest::prelude::*;

    use super::*;

    impl Interval {
        /// Whether two enclosures of one number, the second at least as fine, have a point in
        /// common.
        pub(crate) fn overlaps(&self, fine: &Self) -> bool {
            let coarse = self.refined(fine.bits - self.bits);
            coarse.lo <= fine.hi && fine.lo <= coarse.hi
        }

        /// Whether the width is at most 2^-precision of the number.
        pub(crate) fn is_relatively_within(&self, precision: u64) -> bool {
            (&self.hi - &self.lo) << precision <= self.lo
        }
    }

    fn ratio(numerator: u64, denominator: u64) -> Ratio {
        Ratio { numerator: numerator.into(), denominator: denominator.into() }
    }

    /// Checks that the interval holds the number of which these are the first digits (so that it
    /// lies between them and one more in the last place), to a relative width of 2^-precision.
    fn assert_encloses(interval: &Interval, digits: &str, precision: u64) {
        let (whole, fraction) = digits.split_once('.').unwrap();
        let below: BigUint = format!("{whole}{fraction}").parse().unwrap();
        let denominator = BigUint::from(10u32).pow(fraction.len() as u32);
        assert!(&interval.lo * &denominator <= (&below + 1u32) << interval.bits, "{digits}: {interval:?}");
        assert!(&interval.hi * &denominator >= &below << interval.bits, "{digits}: {interval:?}");
        assert!(interval.is_relatively_within(precision), "{digits}: {interval:?}");
    }

    #[test]
    fn constants() {
        assert_encloses(&Interval::pi(128), "3.1415926535897932384626433832795028841971693", 120);
        assert_encloses(&Interval::root_of_two_pi(128), "2.5066282746310005024157652848110452530069867", 120);
    }

    #[test]
    fn exponentials() {
        for (exponent, digits) in [
            (ratio(0, 1), "1.000000000000000000000000000000000000000000"),
            (ratio(1, 3), "1.3956124250860895286281253196025868375979065"),
            (ratio(1, 1), "2.7182818284590452353602874713526624977572470"),
        ] {
            assert_encloses(&Interval::ratio(&exponent, 128).exp(), digits, 124);
        }
        let large = Interval::ratio(&ratio(100, 1), 64).exp();
        assert_encloses(&large, "26881171418161354484126255515800135873611118.7", 56);
    }

    #[test]
    fn mills_ratios() {
        for (x, digits) in [
            ((0, 1), "1.2533141373155002512078826424055226265034933"),
            ((1, 2), "0.87636445645369234672785314263984886086010979"),
            ((1, 1), "0.65567954241879847154387123073081128339928233"),
            ((3, 1), "0.30459029871010329573361254651572220194332086"),
            ((10, 1), "0.099028596471731921395337188595310578345522351"),
            ((30, 1), "0.033296419072497213381868401852872790022761820"),
            ((1000, 1), "0.00099999900000299998500010499905501039486486702"),
        ] {
            let found = Interval::mills(&ratio(x.0 * x.0, x.1 * x.1), 100);
            assert_encloses(&found, digits, 85);
        }
    }

    #[test]
    fn both_series_of_mills_ratio_agree() {
        for x_squared in 1..300 {
            for bits in [16, 40, 80, 160] {
                let fine = Interval::mills_convergent(&ratio(x_squared, 1), 200);
                let x_squared = ratio(x_squared, 1);
                assert!(Interval::mills_convergent(&x_squared, bits).overlaps(&fine));
                assert!(Interval::mills_asymptotic(&x_squared, bits).overlaps(&fine));
            }
        }
    }

    #[test]
    fn roots_and_quotients_are_rounded_outward() {
        let root = Interval::sqrt_of(&ratio(2, 1), 0);
        assert_eq!((root.lo, root.hi), (1u32.into(), 2u32.into()));
        let exact = Interval::sqrt_of(&ratio(9, 4), 1);
        assert_eq!((exact.lo, exact.hi), (3u32.into(), 3u32.into()));
        let third = Interval::ratio(&ratio(1, 3), 4);
        assert_eq!((third.lo.clone(), third.hi.clone()), (5u32.into(), 6u32.into()));
        let back = Interval::integer(1, 4).over(&third);
        assert_eq!((back.lo, back.hi), (42u32.into(), 52u32.into()));
        assert_eq!(third.is_at_most(&ratio(6, 16)), Some(true));
        assert_eq!(third.is_at_most(&ratio(1, 3)), None);
        assert_eq!(third.is_at_most(&ratio(5, 16)), None);
        assert_eq!(third.is_at_most(&ratio(4, 16)), Some(false));
    }

    #[test]
    fn floats_are_rounded_up() {
        assert_eq!(f64_up(&BigUint::ZERO, 10), 0.0);
        assert_eq!(f64_up(&BigUint::from(1u32), 1074), f64::from_bits(1));
        assert_eq!(f64_up(&BigUint::from(1u32), 3000), f64::from_bits(1));
        assert_eq!(f64_up(&((BigUint::from(1u32) << 1074) + 1u32), 1074), 1f64.next_up());
        assert_eq!(f64_up(&((BigUint::from(1u32) << 53) - 1u32), 53), 1f64.next_down());
        assert_eq!(f64_up(&((BigUint::from(1u32) << 54) - 1u32), 54), 1.0);
    }

    proptest! {
        #[test]
        fn floats_are_exact_ratios(bits in 0..f64::to_bits(1e300)) {
            let value = f64::from_bits(bits);
            let Ratio { numerator, denominator } = Ratio::from_f64(value);
            let shift = denominator.trailing_zeros().unwrap();
            prop_assert_eq!(f64_up(&numerator, shift), value);
            prop_assert_eq!(f64_up(&((numerator << 1) + 1u32), shift + 1), value.next_up());
        }

        #[test]
        fn more_bits_never_contradict_fewer(n in 0u64..1 << 20, d in 1u64..1 << 14, bits in 8u64..64) {
            let x = ratio(n, d * 64);
            let enclose = |bits| [
                Interval::ratio(&x, bits).exp(),
                Interval::sqrt_of(&x, bits),
                Interval::ratio(&x, bits).sqrt(),
                Interval::mills(&x, bits),
            ];
            for (coarse, fine) in enclose(bits).iter().zip(&enclose(bits + 100)) {
                prop_assert!(coarse.lo <= coarse.hi);
                prop_assert!(coarse.overlaps(fine), "{:?} {:?}", coarse, fine);
            }
        }
    }
}
