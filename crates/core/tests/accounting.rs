//! Known answers for budgets: a table of noise multipliers, mpmath at 150 digits
//! (vectors/accounting), numerical integration.

#![allow(clippy::unwrap_used)] // a failed step is a failed test
#![allow(clippy::float_cmp)] // the floats compared are exact

use num_bigint::BigUint;
use potluck_core::accounting::{
    BudgetError, Delta, Epsilon, Mu, MuSquared, SHARES, Share, Shares, SharesError, delta_for, delta_upper,
    epsilon_for, satisfies, sigma_for, smallest_sigma,
};
use potluck_core::noise::{Sigma, SigmaError};
use serde_json::Value;

fn epsilon(value: f64) -> Epsilon {
    Epsilon::new(value).unwrap()
}

fn delta(value: f64) -> Delta {
    Delta::new(value).unwrap()
}

fn mu(numerator: u64) -> Mu {
    Mu::from_numerator(numerator).unwrap()
}

/// The records of one file of known answers.
fn vectors(json: &str, at_least: usize) -> Vec<Value> {
    let vectors: Vec<Value> = serde_json::from_str(json).unwrap();
    assert!(vectors.len() >= at_least, "only {} known answers", vectors.len());
    vectors
}

fn text<'a>(vector: &'a Value, key: &str) -> &'a str {
    vector[key].as_str().unwrap()
}

fn float(vector: &Value, key: &str) -> f64 {
    text(vector, key).parse().unwrap()
}

/// A number as numerator and denominator, so that comparisons with known answers are exact.
#[derive(Debug)]
struct Exact(BigUint, BigUint);

impl Exact {
    /// Decimal text such as `1.25e-3`.
    fn decimal(text: &str) -> Self {
        let (digits, exponent) = text.split_once('e').unwrap_or((text, "0"));
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let exponent = exponent.parse::<i32>().unwrap() - fraction.len() as i32;
        let power = BigUint::from(10u32).pow(exponent.unsigned_abs());
        let digits: BigUint = format!("{whole}{fraction}").parse().unwrap();
        if exponent < 0 { Self(digits, power) } else { Self(digits * power, BigUint::from(1u32)) }
    }

    /// A float ≥ 0. Multiplying by two until it is an integer is exact.
    fn float(mut value: f64) -> Self {
        let mut denominator = BigUint::from(1u32);
        while value.fract() != 0.0 {
            value *= 2.0;
            denominator *= 2u32;
        }
        Self(format!("{value:.0}").parse().unwrap(), denominator)
    }

    fn at_most(&self, other: &Self) -> bool {
        &self.0 * &other.1 <= &other.0 * &self.1
    }
}

#[test]
fn noise_multipliers_are_those_known() {
    for (e, d, classical, analytic) in [
        (1.0, 1e-5, Some("4.84481"), "3.73063"),
        (0.3, 1e-5, Some("16.1494"), "11.2380"),
        (0.1, 1e-5, Some("48.4481"), "30.7496"),
        (3.0, 1e-6, None, "1.54386"),
    ] {
        let six_digits = |mu: Mu| {
            let multiplier = 1.0 / mu.to_f64();
            let decimals = 5 - multiplier.log10().floor() as usize;
            format!("{multiplier:.decimals$}")
        };
        assert_eq!(six_digits(Mu::analytic(epsilon(e), delta(d)).unwrap()), analytic);
        let found = Mu::classical(epsilon(e), delta(d));
        match classical {
            Some(classical) => assert_eq!(six_digits(found.unwrap()), classical),
            None => assert_eq!(found, Err(BudgetError::ClassicalEpsilon(e))),
        }
    }
}

#[test]
fn six_parties_jointly() {
    let one = Mu::analytic(epsilon(1.0), delta(1e-5)).unwrap();
    let all = MuSquared::checked_sum([one.squared(); 6]).unwrap();
    assert_eq!(format!("{:.6}", all.mu_upper()), "0.656588");
    assert_eq!(format!("{:.5}", epsilon_for(all, delta(1e-5))), "2.70639");
}

#[test]
fn delta_is_the_true_value_rounded_up() {
    for vector in vectors(include_str!("../../../vectors/accounting/delta.json"), 80) {
        let at = mu(vector["mu_numerator"].as_u64().unwrap());
        let truth = Exact::decimal(text(&vector, "delta"));
        let found = delta_upper(epsilon(float(&vector, "epsilon")), at);
        assert!(truth.at_most(&Exact::float(found)), "{vector}: {found} is below the truth");
        assert!(
            !truth.at_most(&Exact::float(found.next_down())),
            "{vector}: {found} is not the nearest above"
        );
        let stated = delta_for(at.squared(), epsilon(float(&vector, "epsilon")));
        assert!(found < stated && stated < found * (1.0 + 1e-12), "{vector}: stated {stated}");
    }
}

#[test]
fn analytic_mu_is_the_largest_on_the_grid() {
    for vector in vectors(include_str!("../../../vectors/accounting/mu.json"), 180) {
        let (e, d) = (float(&vector, "epsilon"), float(&vector, "delta"));
        let found = Mu::analytic(epsilon(e), delta(d)).unwrap();
        assert_eq!(found.numerator(), vector["numerator"].as_u64().unwrap(), "{vector}");
        assert_within_a_step_below(found, &vector);
        // One step more breaks the promise, so the check is not empty.
        let at = |mu| delta_upper(epsilon(e.next_down()), mu);
        assert!(at(found) <= d.next_down(), "{vector}");
        assert!(at(mu(found.numerator() + 1)) > d.next_down(), "{vector}");
    }
}

#[test]
fn classical_mu_is_the_largest_on_the_grid_and_below_the_analytic_one() {
    for vector in vectors(include_str!("../../../vectors/accounting/classical.json"), 78) {
        let (e, d) = (epsilon(float(&vector, "epsilon")), delta(float(&vector, "delta")));
        let found = Mu::classical(e, d).unwrap();
        assert_eq!(found.numerator(), vector["numerator"].as_u64().unwrap(), "{vector}");
        assert_within_a_step_below(found, &vector);
        assert!(found <= Mu::analytic(e, d).unwrap(), "{vector}");
    }
}

/// μ is at most the known answer and less than one step of 2^-32 below it, but for the one float by
/// which ε and δ are moved. (Next to 1 that float is no longer small beside 1 − δ.)
fn assert_within_a_step_below(found: Mu, vector: &Value) {
    let truth = Exact::decimal(text(vector, "mu"));
    let steps = |thousandths: u64| Exact(BigUint::from(thousandths), BigUint::from(1000u64 << 32));
    assert!(steps(found.numerator() * 1000).at_most(&truth), "{vector}");
    let close = !steps(found.numerator() * 1000 + 1001).at_most(&truth);
    assert!(close || float(vector, "delta") > 0.99, "{vector}");
}

#[test]
fn joint_epsilon_is_at_least_the_true_value_and_close_to_it() {
    for vector in vectors(include_str!("../../../vectors/accounting/epsilon.json"), 200) {
        let parties = vector["parties"].as_u64().unwrap() as usize;
        let one = mu(vector["mu_numerator"].as_u64().unwrap()).squared();
        let all = MuSquared::checked_sum(vec![one; parties]).unwrap();
        let found = epsilon_for(all, delta(float(&vector, "delta")));
        let truth = Exact::decimal(text(&vector, "epsilon"));
        assert!(truth.at_most(&Exact::float(found)), "{vector}: {found} is below the truth");
        let below = (found - 1e-13 * (1.0 + found)).max(0.0);
        assert!(found == 0.0 || Exact::float(below).at_most(&truth), "{vector}: {found} is too large");
        if found > 0.0 && found <= Epsilon::MAX {
            assert!(delta_for(all, epsilon(found)) <= float(&vector, "delta") * (1.0 + 1e-9), "{vector}");
        }
    }
}

/// The definition itself: the largest P(S) − e^ε Q(S) over events S, for P = N(μ, 1) and Q = N(0,
/// 1).
#[test]
fn delta_is_the_hockey_stick_divergence_of_two_shifted_normals() {
    let density = |x: f64| (-x * x / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
    for (e, m) in [(0.1, 0.05), (0.5, 1.0), (1.0, 0.268), (1.0, 3.0), (2.0, 0.656), (3.0, 1.5), (8.0, 4.0)] {
        let step = 1e-4;
        let divergence = |p: f64, q: f64| -> f64 {
            (-120_000..160_000)
                .map(|i| f64::from(i) * step)
                .map(|x| (density(x - p) - f64::exp(e) * density(x - q)).max(0.0) * step)
                .sum()
        };
        let m = Mu::from_f64((m * 1024f64).round() / 1024.0).unwrap();
        let expected = delta_upper(epsilon(e), m);
        for found in [divergence(m.to_f64(), 0.0), divergence(0.0, m.to_f64())] {
            assert!((found - expected).abs() < 1e-7, "ε = {e}, μ = {}: {found} ≠ {expected}", m.to_f64());
        }
    }
}

#[test]
fn the_ends_of_the_ranges() {
    // Far tails answer with the safe end of the float range.
    assert_eq!(delta_upper(epsilon(1000.0), mu(1)), f64::from_bits(1));
    assert_eq!(delta_upper(epsilon(1000.0), mu(u64::MAX)), 1.0);
    assert_eq!(delta_upper(epsilon(f64::from_bits(1)), mu(u64::MAX)), 1.0);
    // δ(0; μ) = 2Φ(μ/2) − 1 = μ/√(2π) + …
    let smallest = delta_upper(epsilon(f64::from_bits(1)), mu(1));
    assert!((smallest * 2f64.powi(32) - 0.398_942_280_401_432_7).abs() < 1e-15);

    assert_eq!(delta_for(MuSquared::ZERO, epsilon(1.0)), 0.0);
    assert_eq!(delta_for(MuSquared::from_units(u128::MAX), epsilon(1.0)), 1.0);
    assert_eq!(epsilon_for(MuSquared::ZERO, delta(1e-300)), 0.0);
    assert_eq!(epsilon_for(mu(1).squared(), delta(0.5)), 0.0);
    assert_eq!(epsilon_for(mu(1).squared(), delta(f64::from_bits(1))), f64::INFINITY);
    assert!(epsilon_for(MuSquared::from_units(u128::MAX), delta(1e-5)) > 2f64.powi(63));

    // Nothing on the grid is small enough, or δ has no float below it but 0.
    for (e, d) in [(1e-12, 1e-15), (1.0, f64::from_bits(1)), (f64::from_bits(1), 1e-12)] {
        let no_room = Err(BudgetError::NoRoom { epsilon: e, delta: d });
        assert_eq!(Mu::analytic(epsilon(e), delta(d)), no_room);
        assert_eq!(Mu::classical(epsilon(e), delta(d)), no_room);
    }
    assert!(Mu::analytic(epsilon(1000.0), delta(1.0f64.next_down())).unwrap().to_f64() < 100.0);
}

#[test]
fn budgets_out_of_range_are_refused() {
    for value in [0.0, -1.0, 1000.0f64.next_up(), f64::INFINITY, f64::NEG_INFINITY] {
        assert_eq!(Epsilon::new(value), Err(BudgetError::Epsilon(value)));
    }
    for value in [0.0, -1e-9, 1.0, f64::INFINITY] {
        assert_eq!(Delta::new(value), Err(BudgetError::Delta(value)));
    }
    assert!(
        Epsilon::new(f64::NAN).is_err() && Delta::new(f64::NAN).is_err() && Mu::from_f64(f64::NAN).is_err()
    );
    assert_eq!(epsilon(1000.0).to_string(), "1000");
    assert_eq!(delta(1e-5).to_string(), "1e-5");
}

#[test]
fn mu_is_on_its_grid() {
    assert_eq!(Mu::from_f64(0.25).unwrap().numerator(), 1 << 30);
    assert_eq!(Mu::from_f64(2f64.powi(-32)).unwrap(), mu(1));
    assert_eq!(Mu::from_f64(2f64.powi(32).next_down()).unwrap().numerator(), u64::MAX - 2047);
    let refused = [0.0, -0.25, 0.1, 2f64.powi(-33), 2f64.powi(32), f64::MAX, f64::INFINITY];
    for value in refused {
        assert_eq!(Mu::from_f64(value), Err(BudgetError::Mu(value)));
    }
    assert!(Mu::from_numerator(0).is_err());
}

#[test]
fn mu_squared_adds_without_rounding() {
    let largest = mu(u64::MAX).squared();
    assert_eq!(largest.units(), u128::from(u64::MAX) * u128::from(u64::MAX));
    assert_eq!(largest.checked_add(largest), None);
    assert_eq!(MuSquared::checked_sum([largest, mu(1).squared()]).unwrap().units(), largest.units() + 1);
    assert_eq!(MuSquared::checked_sum([]), Some(MuSquared::ZERO));
    assert_eq!(mu(3).squared().checked_sub(mu(2).squared()), Some(MuSquared::from_units(5)));
    assert_eq!(mu(2).squared().checked_sub(mu(3).squared()), None);
    assert_eq!(mu(1 << 31).squared().to_f64(), 0.25);
}

#[test]
fn mu_squared_as_text() {
    for units in [0, 1, u128::MAX] {
        let value = MuSquared::from_units(units);
        assert_eq!(value.to_string(), units.to_string());
        assert_eq!(value.to_string().parse(), Ok(value));
    }
    for text in ["", "-1", "+1", "1.0", " 1", "1e3", "340282366920938463463374607431768211456"] {
        assert_eq!(text.parse::<MuSquared>(), Err(BudgetError::MuSquaredText(text.to_owned())));
    }
}

#[test]
fn the_root_of_mu_squared_is_rounded_up() {
    assert_eq!(MuSquared::ZERO.mu_upper(), 0.0);
    assert_eq!(mu(1 << 31).squared().mu_upper(), 0.5);
    assert_eq!(MuSquared::from_units(u128::MAX).mu_upper(), 2f64.powi(32));
    for units in [1, 2, 3, 1 << 64, (1 << 64) + 1, 3 << 90] {
        let found = MuSquared::from_units(units).mu_upper();
        let at_most_squared = |root: f64| {
            let Exact(n, d) = Exact::float(root);
            Exact(BigUint::from(units), BigUint::from(1u32) << 64).at_most(&Exact(&n * &n, &d * &d))
        };
        assert!(at_most_squared(found) && !at_most_squared(found.next_down()), "{units}: {found}");
    }
}

#[test]
fn shares_sum_to_the_whole() {
    let quarters = Shares::new(&[SHARES / 4; 4]).unwrap();
    assert_eq!(quarters.as_slice()[3].parts(), 1 << 18);
    assert_eq!(Shares::new(&[SHARES]), Ok(Shares::whole()));
    assert_eq!(Shares::whole().as_slice(), [Share::WHOLE]);
    assert_eq!(Shares::new(&[SHARES - 1]), Err(SharesError::Sum(u64::from(SHARES) - 1)));
    assert_eq!(Shares::new(&[SHARES, 1]), Err(SharesError::Sum(u64::from(SHARES) + 1)));
    assert_eq!(Shares::new(&[]), Err(SharesError::Sum(0)));
    assert_eq!(Shares::new(&[SHARES, 0]), Err(SharesError::Share(0)));
    assert_eq!(Share::new(SHARES + 1), Err(SharesError::Share(SHARES + 1)));
}

#[test]
fn sigma_at_its_edges() {
    // μ = 1: σ = Δ when Δ² is a square, and the next integer when it is a little more.
    let one = mu(1 << 32);
    assert_eq!(sigma_for(one, Share::WHOLE, (49, 1)), Sigma::new(7));
    assert_eq!(sigma_for(one, Share::WHOLE, (49_000_001, 1_000_000)), Sigma::new(8));
    assert_eq!(sigma_for(one, Share::new(SHARES / 4).unwrap(), (49, 1)), Sigma::new(14));
    assert_eq!(sigma_for(one, Share::WHOLE, (0, 1)), Sigma::new(1));

    let limit = 1u128 << 53;
    let largest = Sigma::new((1 << 53) - 1).unwrap();
    assert_eq!(sigma_for(one, Share::WHOLE, ((limit - 1).pow(2), 1)), Ok(largest));
    assert_eq!(sigma_for(one, Share::WHOLE, ((limit - 1).pow(2) + 1, 1)), Err(SigmaError::TooLarge));
    assert_eq!(sigma_for(mu(1), Share::new(1).unwrap(), (u128::MAX, 1)), Err(SigmaError::TooLarge));
    assert_eq!(sigma_for(one, Share::WHOLE, (1, 0)), Err(SigmaError::Denominator));
    assert!(!satisfies(largest, one, Share::WHOLE, (0, 0)));
    assert!(satisfies(largest, mu(u64::MAX), Share::WHOLE, (u128::MAX, u128::MAX)));

    let ten = BigUint::from(10u32);
    assert_eq!(smallest_sigma(&ten, &BigUint::from(1u32)), Sigma::new(4));
    assert_eq!(smallest_sigma(&BigUint::ZERO, &ten), Sigma::new(1));
    assert_eq!(smallest_sigma(&ten, &BigUint::ZERO), Err(SigmaError::Denominator));
    let square = BigUint::from(largest.get()).pow(2);
    assert_eq!(smallest_sigma(&square, &BigUint::from(1u32)), Ok(largest));
    assert_eq!(smallest_sigma(&(square + 1u32), &BigUint::from(1u32)), Err(SigmaError::TooLarge));
}
