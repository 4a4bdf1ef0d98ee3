//! What the learners promise about many releases: their bias, their intervals, and when they
//! explode.
//!
//! Every release here is drawn from a seeded generator, in floating point: this is no mechanism,
//! only a picture of one.

#![allow(clippy::unwrap_used)] // a failed step is a failed test

use potluck_core::learn::{Fit, LearnError, Level, Released, Ridge, Stability, debiased, ols};
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};

/// The study's coefficients; the label is the column after the features.
const TRUTH: [f64; 3] = [0.5, -0.3, 0.2];
const FEATURES: [usize; 3] = [0, 1, 2];
const LABEL: usize = 3;
/// The variance of a feature that is uniform on [-1, 1].
const VARIANCE: f64 = 1.0 / 3.0;
/// The part of a feature's released second moment that is noise.
const SHARE: f64 = 0.25;
const REPEATS: u64 = 300;

#[derive(Debug, Clone, Copy)]
enum Mixing {
    Identity,
    Bernoulli,
    Sparse,
}

/// Each mixing with rows of the study and released rows.
const DESIGNS: [(Mixing, usize, usize); 3] =
    [(Mixing::Identity, 1500, 1500), (Mixing::Bernoulli, 2000, 500), (Mixing::Sparse, 20_000, 2000)];

/// One study and its release.
struct Draw {
    table: Vec<Vec<f64>>,
    released: Vec<Vec<f64>>,
    noise: Vec<f64>,
    n: usize,
}

impl Draw {
    fn fit(&self, learner: impl Fn(&Released<'_>) -> Result<Fit, LearnError>) -> Fit {
        let columns: Vec<&[f64]> = self.released.iter().map(Vec::as_slice).collect();
        learner(&Released::new(&columns, &self.noise, self.n as u64).unwrap()).unwrap()
    }

    /// The coefficients of the study's own rows.
    fn own_coefficients(&self) -> Vec<f64> {
        let columns: Vec<&[f64]> = self.table.iter().map(Vec::as_slice).collect();
        let exact = Released::new(&columns, &[0.0; 4], self.n as u64).unwrap();
        ols(&exact, LABEL, &FEATURES, Ridge::NONE).unwrap().coefficients.weights().to_vec()
    }
}

fn uniform(rng: &mut ChaCha8Rng) -> f64 {
    (rng.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
}

/// Box and Muller's transform.
fn normal(rng: &mut ChaCha8Rng) -> f64 {
    let radius = (-2.0 * (1.0 - uniform(rng)).ln()).sqrt();
    radius * (std::f64::consts::TAU * uniform(rng)).cos()
}

fn sign(rng: &mut ChaCha8Rng) -> f64 {
    if rng.next_u32() & 1 == 0 { -1.0 } else { 1.0 }
}

/// Draws n people, mixes them into k rows and adds noise of standard deviation `noise` to every
/// value.
fn draw(rng: &mut ChaCha8Rng, mixing: Mixing, n: usize, k: usize, noise: f64) -> Draw {
    let mut table = vec![vec![0.0; n]; 4];
    let mut mixed = vec![vec![0.0; k]; 4];
    for person in 0..n {
        let x: [f64; 3] = std::array::from_fn(|_| 2.0 * uniform(rng) - 1.0);
        let y = x.iter().zip(TRUTH).map(|(x, w)| x * w).sum::<f64>() + 0.2 * normal(rng);
        let row = [x[0], x[1], x[2], y];
        for (column, value) in table.iter_mut().zip(row) {
            column[person] = value;
        }
        let mut add = |to: usize, factor: f64| {
            for (column, value) in mixed.iter_mut().zip(row) {
                column[to] += factor * value;
            }
        };
        match mixing {
            Mixing::Identity => add(person, 1.0),
            Mixing::Sparse => add((rng.next_u64() % k as u64) as usize, sign(rng)),
            Mixing::Bernoulli => {
                for to in 0..k {
                    add(to, sign(rng) / (k as f64).sqrt());
                }
            }
        }
    }
    for value in mixed.iter_mut().flatten() {
        *value += noise * normal(rng);
    }
    Draw { table, released: mixed, noise: vec![noise; 4], n }
}

/// The noise at which `SHARE` of a feature's released second moment is noise: kς²/n = share/(1 −
/// share)·v.
fn noise_for(n: usize, k: usize) -> f64 {
    (SHARE / (1.0 - SHARE) * VARIANCE * n as f64 / k as f64).sqrt()
}

fn draws(mixing: Mixing, n: usize, k: usize) -> impl Iterator<Item = Draw> {
    (0..REPEATS).map(move |seed| draw(&mut ChaCha8Rng::seed_from_u64(seed), mixing, n, k, noise_for(n, k)))
}

fn plain(released: &Released<'_>) -> Result<Fit, LearnError> {
    ols(released, LABEL, &FEATURES, Ridge::NONE)
}

fn corrected(released: &Released<'_>) -> Result<Fit, LearnError> {
    debiased(released, LABEL, &FEATURES, Ridge::NONE)
}

/// The correction with the wrong sign: where every column has the same noise, that is a ridge of
/// kς²/n.
fn wrong_sign(released: &Released<'_>) -> Result<Fit, LearnError> {
    let added = released.k() as f64 / released.n() as f64 * released.noise()[0].powi(2);
    ols(released, LABEL, &FEATURES, Ridge::new(added).unwrap())
}

/// How many standard errors (of the mean over repeats) the farthest mean weight is from its target.
fn worst_bias(fits: &[Fit], target: &[f64]) -> f64 {
    let count = fits.len() as f64;
    let distance = |(j, target): (usize, &f64)| {
        let values = || fits.iter().map(|fit| fit.coefficients.weights()[j]);
        let mean = values().sum::<f64>() / count;
        let variance = values().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0);
        (mean - target).abs() / (variance / count).sqrt()
    };
    target.iter().enumerate().map(distance).fold(0.0, f64::max)
}

/// The part of 95% intervals that hold their target.
fn coverage(fits: &[Fit], targets: &[Vec<f64>]) -> f64 {
    let hits = fits.iter().zip(targets).map(|(fit, target)| {
        let intervals = fit.coefficients.intervals(Level::default());
        intervals.iter().zip(target).filter(|(interval, value)| interval.contains(**value)).count()
    });
    hits.sum::<usize>() as f64 / (fits.len() * TRUTH.len()) as f64
}

#[test]
fn plain_weights_are_attenuated_and_corrected_weights_are_not() {
    let attenuated = TRUTH.map(|weight| weight * (1.0 - SHARE));
    for (mixing, n, k) in DESIGNS {
        let (mut as_released, mut without_noise, mut control) = (vec![], vec![], vec![]);
        let mut targets = vec![];
        for draw in draws(mixing, n, k) {
            as_released.push(draw.fit(plain));
            without_noise.push(draw.fit(corrected));
            control.push(draw.fit(wrong_sign));
            // The bernoulli mixing is averaged over, not the people: its intervals are about these
            // people.
            targets.push(match mixing {
                Mixing::Bernoulli => draw.own_coefficients(),
                Mixing::Identity | Mixing::Sparse => TRUTH.to_vec(),
            });
        }

        let what = format!("{mixing:?}");
        assert!(worst_bias(&as_released, &attenuated) < 4.0, "{what}");
        assert!(worst_bias(&as_released, &TRUTH) > 10.0, "{what}");
        assert!(worst_bias(&without_noise, &TRUTH) < 4.0, "{what}");
        assert!(worst_bias(&control, &TRUTH) > 10.0, "{what}");

        let covered = coverage(&without_noise, &targets);
        assert!((0.90..0.99).contains(&covered), "{what}: {covered}");
        assert!(coverage(&control, &targets) < 0.90, "{what}");
        assert!(coverage(&as_released, &targets) < 0.90, "{what}");

        let shares: Vec<f64> = as_released.iter().flat_map(|fit| fit.noise_share.clone()).collect();
        let mean_share = shares.iter().sum::<f64>() / shares.len() as f64;
        assert!((mean_share - SHARE).abs() < 0.01, "{what}: {mean_share}");
        assert!(without_noise.iter().all(|fit| fit.spectrum.stability() == Stability::Sound), "{what}");

        // Residuals and R² of the study: 0.2² of noise in the label, the rest explained.
        let average =
            |value: &dyn Fn(&Fit) -> f64| without_noise.iter().map(value).sum::<f64>() / REPEATS as f64;
        let explained = VARIANCE * TRUTH.iter().map(|weight| weight * weight).sum::<f64>();
        let residual = average(&|fit| fit.residual_variance);
        assert!((residual - 0.04).abs() < 0.005, "{what}: {residual}");
        let r_squared = average(&|fit| fit.r_squared.unwrap());
        assert!((r_squared - explained / (explained + 0.04)).abs() < 0.05, "{what}: {r_squared}");
    }
}

#[test]
fn without_mixing_few_people_and_much_noise_explode_and_say_so() {
    // The paper's noise at ε = 1, δ = 1e-5 with two columns a party.
    let noise = 2.0 * 2.0_f64.sqrt() * 4.84481;
    let mut largest: f64 = 0.0;
    for seed in 0..100 {
        let draw = draw(&mut ChaCha8Rng::seed_from_u64(seed), Mixing::Identity, 400, 400, noise);
        let exploding = draw.fit(corrected);
        let length = |fit: &Fit| fit.coefficients.weights().iter().map(|w| w * w).sum::<f64>().sqrt();
        assert!(length(&exploding).is_finite());
        assert_ne!(exploding.spectrum.stability(), Stability::Sound, "seed {seed}");
        assert!(exploding.noise_share.iter().all(|share| *share > 0.7), "seed {seed}");
        largest = largest.max(length(&exploding));
        // Plain least squares on the same rows does not explode: it predicts about nothing.
        let small = draw.fit(plain);
        assert!(length(&small) < 0.5 && small.spectrum.stability() == Stability::Sound, "seed {seed}");
    }
    assert!(largest > 10.0, "{largest}");
}
