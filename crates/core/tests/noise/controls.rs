//! Samplers that are wrong on purpose. Each looks like round(σ·g) at a glance, and each must be
//! rejected.

use potluck_core::noise::{Sigma, rounded_gaussian};
use rand_chacha::ChaCha20Rng;
use rand_core::Rng;
use std::f64::consts::TAU;

/// An exact standard normal, to 50 binary places: fine enough to build other samplers on.
fn normal(rng: &mut ChaCha20Rng) -> f64 {
    let sigma = Sigma::new(1 << 50).expect("in range");
    rounded_gaussian(sigma, rng) as f64 / (1_u64 << 50) as f64
}

/// Noise of 1.01 times the scale asked for.
pub(crate) fn wide(sigma: u64, rng: &mut ChaCha20Rng) -> i64 {
    (1.01 * sigma as f64 * normal(rng)).round() as i64
}

/// Box–Muller in single precision from 24-bit uniforms: what much software does.
pub(crate) fn box_muller_f32(sigma: u64, rng: &mut ChaCha20Rng) -> i64 {
    let mut uniform = || ((rng.next_u32() >> 8) as f32 + 0.5) / 16_777_216.0;
    let radius = (-2.0 * uniform().ln()).sqrt();
    (sigma as f32 * radius * (std::f32::consts::TAU * uniform()).cos()).round() as i64
}

/// Box–Muller in double precision from 53-bit uniforms: what careful software does.
pub(crate) fn box_muller_f64(sigma: u64, rng: &mut ChaCha20Rng) -> i64 {
    let mut uniform = || ((rng.next_u64() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
    let radius = (-2.0 * uniform().ln()).sqrt();
    (sigma as f64 * radius * (TAU * uniform()).cos()).round() as i64
}

/// Rounds down instead of to the nearest integer.
pub(crate) fn floored(sigma: u64, rng: &mut ChaCha20Rng) -> i64 {
    (sigma as f64 * normal(rng)).floor() as i64
}

/// Draws again beyond four standard deviations.
pub(crate) fn clipped(sigma: u64, rng: &mut ChaCha20Rng) -> i64 {
    loop {
        let g = normal(rng);
        if g.abs() < 4.0 {
            return (sigma as f64 * g).round() as i64;
        }
    }
}

/// The discrete Gaussian, P(j) ∝ exp(−j²/2σ²): a fine mechanism, but not the one that is proved.
pub(crate) fn discrete(sigma: u64, rng: &mut ChaCha20Rng) -> i64 {
    let scale = sigma as f64;
    loop {
        // Rejection from the rounded normal, whose mass at j is within a constant of the target's.
        let j = (scale * normal(rng)).round();
        let density = |x: f64| (-0.5 * (x / scale).powi(2)).exp();
        // The rounded normal's mass at j, by Simpson's rule.
        let mass: f64 = (0..4)
            .map(|i| {
                let left = j - 0.5 + f64::from(i) / 4.0;
                (density(left) + 4.0 * density(left + 0.125) + density(left + 0.25)) / 24.0
            })
            .sum();
        let uniform = (rng.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
        if uniform * 1.2 < density(j) / mass {
            return j as i64;
        }
    }
}

/// One draw in fifty repeats the one before it.
pub(crate) fn sticky(previous: &mut i64, sigma: u64, rng: &mut ChaCha20Rng) -> i64 {
    if !rng.next_u32().is_multiple_of(50) {
        *previous = rounded_gaussian(Sigma::new(sigma).expect("in range"), rng);
    }
    *previous
}

/// One draw in fifty loses its minus sign.
pub(crate) fn lopsided(sigma: u64, rng: &mut ChaCha20Rng) -> i64 {
    let noise = rounded_gaussian(Sigma::new(sigma).expect("in range"), rng);
    if rng.next_u32().is_multiple_of(50) { noise.abs() } else { noise }
}
