//! What must hold for every budget: monotone curves, composition, and noise scales that are exactly
//! large enough.

#![allow(clippy::unwrap_used)] // a failed step is a failed test

use num_bigint::BigUint;
use potluck_core::accounting::{
    Delta, Epsilon, Mu, MuSquared, SHARES, Share, Shares, delta_for, delta_upper, epsilon_for, satisfies,
    sigma_for,
};
use potluck_core::noise::Sigma;
use proptest::prelude::*;

fn any_epsilon() -> impl Strategy<Value = Epsilon> {
    (-10.0..6.9f64).prop_map(|log| Epsilon::new(log.exp()).unwrap())
}

fn any_delta() -> impl Strategy<Value = Delta> {
    (-80.0..-0.01f64).prop_map(|log| Delta::new(log.exp()).unwrap())
}

/// μ from 2^-32 to 2^7, most of them where the curve is neither 0 nor 1.
fn any_mu() -> impl Strategy<Value = Mu> {
    (0.0..39.0f64).prop_map(|log| Mu::from_numerator(log.exp2() as u64).unwrap())
}

fn any_share() -> impl Strategy<Value = Share> {
    (1..=SHARES).prop_map(|parts| Share::new(parts).unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn delta_grows_with_mu(epsilon in any_epsilon(), mu in any_mu(), more in 1u64..1 << 40) {
        let larger = Mu::from_numerator(mu.numerator() + more).unwrap();
        prop_assert!(delta_upper(epsilon, mu) <= delta_upper(epsilon, larger));
    }

    #[test]
    fn delta_falls_with_epsilon(epsilon in any_epsilon(), mu in any_mu(), factor in 0.0..1.0f64) {
        let smaller = Epsilon::new(epsilon.get() * factor.max(1e-6)).unwrap();
        prop_assert!(delta_upper(epsilon, mu) <= delta_upper(smaller, mu));
    }

    #[test]
    fn analytic_mu_keeps_its_promise_and_the_next_one_breaks_it(epsilon in any_epsilon(), delta in any_delta()) {
        if let Ok(mu) = Mu::analytic(epsilon, delta) {
            let below = Epsilon::new(epsilon.get().next_down()).unwrap();
            let next = Mu::from_numerator(mu.numerator() + 1).unwrap();
            prop_assert!(delta_upper(below, mu) <= delta.get().next_down());
            prop_assert!(delta_upper(below, next) > delta.get().next_down());
            prop_assert_eq!(Mu::from_f64(mu.to_f64()).unwrap(), mu);
        }
    }

    #[test]
    fn stating_a_budget_gives_back_what_was_asked_for(epsilon in any_epsilon(), delta in any_delta()) {
        if let Ok(mu) = Mu::analytic(epsilon, delta) {
            prop_assert!(epsilon_for(mu.squared(), delta) <= epsilon.get());
            prop_assert!(delta_for(mu.squared(), epsilon) <= delta.get());
            // And no more than two steps of the grid are lost.
            let above = Mu::from_numerator(mu.numerator() + 2).unwrap();
            prop_assert!(epsilon_for(above.squared(), delta) > epsilon.get());
        }
    }

    #[test]
    fn classical_mu_is_at_most_the_analytic_one(log in -10.0..=0.0f64, delta in any_delta()) {
        let epsilon = Epsilon::new(log.exp()).unwrap();
        if let Ok(classical) = Mu::classical(epsilon, delta) {
            prop_assert!(classical <= Mu::analytic(epsilon, delta).unwrap());
        }
    }

    #[test]
    fn joint_epsilon_grows_with_every_party(
        mus in prop::collection::vec(1u64..1 << 35, 1..8),
        delta in any_delta(),
    ) {
        let squares: Vec<_> = mus.iter().map(|&m| Mu::from_numerator(m).unwrap().squared()).collect();
        let joint = MuSquared::checked_sum(squares.iter().copied()).unwrap();
        prop_assert_eq!(joint.units(), mus.iter().map(|&m| u128::from(m) * u128::from(m)).sum::<u128>());
        let fewer = MuSquared::checked_sum(squares.iter().copied().skip(1)).unwrap();
        prop_assert!(epsilon_for(fewer, delta) <= epsilon_for(joint, delta));
        // Basic composition, which adds every party's ε and δ, can only be worse.
        let each = Delta::new(delta.get() / mus.len() as f64).unwrap();
        let basic: f64 = squares.iter().map(|&square| epsilon_for(square, each)).sum();
        prop_assert!(epsilon_for(joint, delta) <= basic * (1.0 + 1e-12));
    }
}

proptest! {
    #[test]
    fn sigma_is_enough_and_one_less_is_not(
        mu in any_mu(),
        share in any_share(),
        numerator in (0u32..100).prop_flat_map(|bits| 0..=1u128 << bits),
        denominator in (0u32..100).prop_flat_map(|bits| 1..=1u128 << bits),
    ) {
        let sensitivity = (numerator, denominator);
        let holds = |sigma: u64| satisfies(Sigma::new(sigma).unwrap(), mu, share, sensitivity);
        if let Ok(sigma) = sigma_for(mu, share, sensitivity) {
            prop_assert!(holds(sigma.get()));
            prop_assert!(sigma.get() == 1 || !holds(sigma.get() - 1));
        } else {
            prop_assert!(!holds((1 << 53) - 1));
        }
    }

    #[test]
    fn perfect_squares_and_their_neighbours(
        (sigma, mu) in (1u32..53).prop_flat_map(|bits| (1..1u64 << bits, 1..1u64 << (63 - bits)))
    ) {
        // Δ² = σ²μ², exactly: numerator σ²·m² < 2^126, denominator 2^64.
        let square = (u128::from(sigma) * u128::from(mu)).pow(2);
        let mu = Mu::from_numerator(mu).unwrap();
        let sigma = Sigma::new(sigma).unwrap();
        prop_assert_eq!(sigma_for(mu, Share::WHOLE, (square, 1 << 64)), Ok(sigma));
        prop_assert!(!satisfies(sigma, mu, Share::WHOLE, (square + 1, 1 << 64)));
        prop_assert!(satisfies(sigma, mu, Share::WHOLE, (square - 1, 1 << 64)));
    }

    /// Σ Δᵢ²/σᵢ² ≤ μ² in exact rationals: the stages of a release keep within its budget together.
    #[test]
    fn stages_keep_within_the_release(
        mu in any_mu(),
        cuts in prop::collection::btree_set(1..SHARES, 0..5),
        squares in prop::collection::vec(1u64..1 << 40, 6),
    ) {
        let mut edges = vec![0];
        edges.extend(cuts);
        edges.push(SHARES);
        let parts: Vec<u32> = edges.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let shares = Shares::new(&parts).unwrap();
        let (mut numerator, mut denominator) = (BigUint::ZERO, BigUint::from(1u32));
        for (&share, &square) in shares.as_slice().iter().zip(&squares) {
            let Ok(sigma) = sigma_for(mu, share, (u128::from(square), 1)) else { return Ok(()) };
            let sigma_squared = BigUint::from(sigma.get()).pow(2);
            numerator = numerator * &sigma_squared + &denominator * square;
            denominator *= sigma_squared;
        }
        prop_assert!(numerator << 64 <= denominator * mu.squared().units());
    }
}
