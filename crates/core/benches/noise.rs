//! Exact Gaussian noise, in samples a second, beside the rate at which ChaCha20 makes the 64-bit
//! words it is made of.
#![allow(clippy::unwrap_used)]

use divan::Bencher;
use divan::counter::ItemsCount;
use potluck_core::noise::{NOISED_SUM_LIMIT, Sigma, add_noise, rounded_gaussian};
use rand_chacha::ChaCha20Rng;
use rand_core::{Rng, SeedableRng};

const SUMS: usize = 100_000;
const SCALES: [u64; 4] = [1, 1000, 1 << 30, (1 << 53) - 1];

#[divan::bench(args = SCALES)]
fn noise_on_many_sums(bencher: Bencher<'_, '_>, sigma: u64) {
    let sigma = Sigma::new(sigma).unwrap();
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    let mut sums = vec![0; SUMS];
    bencher
        .counter(ItemsCount::new(SUMS))
        .bench_local(|| add_noise(&mut sums, sigma, NOISED_SUM_LIMIT, &mut rng));
}

#[divan::bench(args = SCALES)]
fn noise_one_call_a_sample(bencher: Bencher<'_, '_>, sigma: u64) {
    let sigma = Sigma::new(sigma).unwrap();
    let mut rng = ChaCha20Rng::seed_from_u64(2);
    let mut sums = vec![0; SUMS];
    bencher
        .counter(ItemsCount::new(SUMS))
        .bench_local(|| sums.fill_with(|| rounded_gaussian(sigma, &mut rng)));
}

#[divan::bench]
fn words_of_chacha20(bencher: Bencher<'_, '_>) {
    let mut rng = ChaCha20Rng::seed_from_u64(3);
    let mut words = vec![[0; 8]; SUMS];
    bencher.counter(ItemsCount::new(SUMS)).bench_local(|| rng.fill_bytes(words.as_flattened_mut()));
}

fn main() {
    divan::main();
}
