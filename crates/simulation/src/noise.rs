//! Noise for simulations.

use potluck_core::noise::{Sigma, add_noise};
use rand_core::Rng;

/// Where the noise of a stage comes from.
pub trait Noise {
    /// Adds round(σ·g) to integer sums, with g about normal, and clamps them to ± a limit.
    fn add(&mut self, sums: &mut [i64], sigma: Sigma, limit: i64);
}

/// The sampler that releases use, on random numbers of any source.
pub struct Exact<R>(pub R);

impl<R: Rng> Noise for Exact<R> {
    fn add(&mut self, sums: &mut [i64], sigma: Sigma, limit: i64) {
        add_noise(sums, sigma, limit, &mut self.0);
    }
}

/// None: shows what clipping and mixing do on their own.
pub struct Off;

impl Noise for Off {
    fn add(&mut self, _: &mut [i64], _: Sigma, _: i64) {}
}
