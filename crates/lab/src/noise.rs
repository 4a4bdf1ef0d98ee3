//! Noise for experiments: the exact sampler, or a fast floating-point stand-in behind the same
//! trait.

use potluck_core::noise::Sigma;
use potluck_simulation::{Exact, Noise, Off};
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use rand_distr::{Distribution, StandardNormal};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::seeds::Seed;

/// Which sampler an experiment uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoiseKind {
    /// Floating point: fast, good enough to measure accuracy, never to protect anyone.
    Fast,
    /// The sampler that releases use.
    Exact,
    /// None: shows what clipping does on its own.
    Off,
}

impl NoiseKind {
    pub(crate) fn start(self, seed: Seed) -> Box<dyn Noise> {
        match self {
            Self::Fast => Box::new(Fast(Xoshiro256PlusPlus::from_seed(seed.bytes()))),
            Self::Exact => Box::new(Exact(ChaCha20Rng::from_seed(seed.bytes()))),
            Self::Off => Box::new(Off),
        }
    }
}

struct Fast(Xoshiro256PlusPlus);

impl Noise for Fast {
    fn add(&mut self, sums: &mut [i64], sigma: Sigma, limit: i64) {
        let sigma = sigma.get() as f64;
        for sum in sums {
            let g: f64 = StandardNormal.sample(&mut self.0);
            *sum = sum.saturating_add((sigma * g).round() as i64).clamp(-limit, limit);
        }
    }
}
