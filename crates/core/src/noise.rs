//! Noise: round(σ·g) for an integer σ and a standard normal g sampled exactly.
//!
//! The deviate comes from Karney 2016, "Sampling exactly from the normal distribution", Algorithm
//! N, on a finer grid: random bits and integer comparisons, no floating point and no approximation.
//! For an integer q, round(q + σg) = q + round(σg), so adding this noise to integer sums releases a
//! post-processing of the textbook Gaussian mechanism, with its guarantee and its exact
//! composition. The proofs are in docs/PRIVACY.md#noise.

mod bits;
mod karney;
mod sigma;
mod whole;

use bits::RandomBits;
use karney::{PARTS, standard_normal};
use rand_core::Rng;

pub use sigma::{Sigma, SigmaError};

/// Noised sums that are published as floats are kept within this, where every integer is an exact
/// `f64`.
///
/// # Privacy
/// A constant, so that clamping to it is post-processing: Theorem 3,
/// docs/PRIVACY.md#what-a-release-costs.
pub const NOISED_SUM_LIMIT: i64 = 1 << 53;

/// Draws round(σ·g), g a standard normal sampled exactly.
///
/// The result saturates at ±`i64::MAX`, which takes |g| > 2^10 and therefore has probability below
/// e^−500000. Successive calls do not share leftover random bits; to noise many sums use
/// [`add_noise`], which does.
///
/// # Privacy
///
/// If the bits of `rng` are ideal, the result is distributed exactly as the rounded (and saturated)
/// value of a real number drawn from N(0, σ²): Theorem 1 and Lemma 2, docs/PRIVACY.md#noise. What
/// it costs to publish a sum with this noise is for [`crate::accounting`] to say. The time a call
/// takes depends on the noise drawn; it knows nothing of the sum.
pub fn rounded_gaussian<R: Rng + ?Sized>(sigma: Sigma, rng: &mut R) -> i64 {
    rounded_gaussian_in_digits::<64, R>(sigma, rng)
}

/// [`rounded_gaussian`] with uniform deviates expanded in digits of `DIGIT_BITS` bits: 1, 2, 4, 8,
/// 16, 32 or 64.
///
/// The distribution does not depend on the width, only the number of bits consumed and the speed
/// do. With 64-bit digits two deviates tie once in 2^64 comparisons; narrow digits make ties and
/// undecided roundings everyday events, which is how the tests reach them.
///
/// # Privacy
///
/// As [`rounded_gaussian`]: Theorem 1 and Lemma 2, docs/PRIVACY.md#noise, hold for digits of any
/// width.
pub fn rounded_gaussian_in_digits<const DIGIT_BITS: u32, R: Rng + ?Sized>(sigma: Sigma, rng: &mut R) -> i64 {
    let noise = draw::<DIGIT_BITS, R>(sigma, &mut RandomBits::new(rng));
    noise.clamp(-i128::from(i64::MAX), i128::from(i64::MAX)) as i64
}

/// Adds independent noise round(σ·g) to each of `sums` and clamps the results to ±`limit`, a public
/// constant.
///
/// # Privacy
///
/// Each result is clamp(round(q + σg)) for the sum q and a fresh, exactly normal g: a function of
/// q + σg alone. If replacing one subject changes the sums by (δᵢ), the call as a whole is
/// √Σ(δᵢ/σ)² Gaussian-differentially private, given ideal bits from `rng`. No condition on the size
/// of the sums: nothing wraps. Proof: Theorem 3, docs/PRIVACY.md#what-a-release-costs.
pub fn add_noise<R: Rng + ?Sized>(sums: &mut [i64], sigma: Sigma, limit: i64, rng: &mut R) {
    let limit = i128::from(limit);
    let mut bits = RandomBits::new(rng);
    for sum in sums {
        let noised = i128::from(*sum) + draw::<64, R>(sigma, &mut bits);
        *sum = noised.clamp(-limit, limit) as i64;
    }
}

/// round(σ·g) without saturation: |result| ≤ σ(k + 1) < 2^53·2^64, far inside `i128`.
///
/// # Privacy
/// Exact: Theorem 1, docs/PRIVACY.md#the-deviate-is-exactly-normal, and Lemma 2,
/// docs/PRIVACY.md#digits-are-drawn-when-needed.
#[inline]
fn draw<const DIGIT_BITS: u32, R: Rng + ?Sized>(sigma: Sigma, bits: &mut RandomBits<'_, R>) -> i128 {
    let mut normal = standard_normal::<DIGIT_BITS, R>(bits);
    // ⌊σ(k + x)/16 + ½⌋ = w + ⌊(σx + r)/16 + ½⌋ for σk = 16w + r, because w is an integer.
    let scaled = u128::from(sigma.get()) * u128::from(normal.whole);
    let offset = (scaled % u128::from(PARTS)) as u64;
    let magnitude = (scaled / u128::from(PARTS)) as i128
        + i128::from(normal.fraction.scale_and_round(sigma.get(), offset, bits));
    if normal.negative { -magnitude } else { magnitude }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_chacha::ChaCha20Rng;
    use rand_core::SeedableRng;

    #[test]
    fn sums_at_the_ends_of_i64_are_clamped_not_wrapped() {
        let sigma = Sigma::new((1 << 53) - 1).expect("in range");
        let mut rng = ChaCha20Rng::seed_from_u64(1);
        let mut sums = [i64::MIN, i64::MAX].repeat(1000);
        add_noise(&mut sums, sigma, NOISED_SUM_LIMIT, &mut rng);
        assert_eq!(sums, [-NOISED_SUM_LIMIT, NOISED_SUM_LIMIT].repeat(1000));
    }

    #[test]
    fn clamping_keeps_what_lies_inside() {
        let sigma = Sigma::new(1 << 52).expect("in range");
        let mut noise = vec![0; 10_000];
        add_noise(&mut noise, sigma, NOISED_SUM_LIMIT, &mut ChaCha20Rng::seed_from_u64(2));
        let limit = NOISED_SUM_LIMIT;
        // P(|g| > 2) = 0.0455
        let clamped = noise.iter().filter(|n| n.abs() == limit).count();
        assert!((300..600).contains(&clamped), "{clamped} of 10000 clamped");
        assert!(noise.iter().all(|n| n.abs() <= limit));
    }

    #[test]
    fn noise_is_added_to_the_sum() {
        let sigma = Sigma::new(1000).expect("in range");
        let start: Vec<i64> = (-500..500).map(|i| i * 1_000_003).collect();
        let mut sums = start.clone();
        let mut noise = vec![0; start.len()];
        add_noise(&mut sums, sigma, NOISED_SUM_LIMIT, &mut ChaCha20Rng::seed_from_u64(3));
        add_noise(&mut noise, sigma, NOISED_SUM_LIMIT, &mut ChaCha20Rng::seed_from_u64(3));
        for ((sum, start), noise) in sums.iter().zip(&start).zip(&noise) {
            assert_eq!(sum - start, *noise);
        }
    }

    #[test]
    fn one_sum_at_a_time_is_the_single_draw() {
        let sigma = Sigma::new(77).expect("in range");
        let mut bulk = ChaCha20Rng::seed_from_u64(4);
        let mut single = ChaCha20Rng::seed_from_u64(4);
        for _ in 0..1000 {
            let mut sum = [0];
            add_noise(&mut sum, sigma, NOISED_SUM_LIMIT, &mut bulk);
            assert_eq!(sum[0], rounded_gaussian(sigma, &mut single));
        }
    }
}
