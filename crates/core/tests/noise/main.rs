//! Is the noise what docs/PRIVACY.md#noise says it is?
//!
//! Statistics against the exact distribution and against independent exact samplers, replays
//! against an independent implementation on the same random words, and samplers that are wrong on
//! purpose, which the same statistics must reject. The building blocks are tested exhaustively
//! beside the code.

mod battery;
mod controls;
mod special;

use battery::{Finding, Reference, battery};
use potluck_core::noise::{NOISED_SUM_LIMIT, Sigma, add_noise, rounded_gaussian, rounded_gaussian_in_digits};
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use serde_json::Value;
use sha2::{Digest, Sha256};

const SAMPLES: usize = 2_000_000;
/// For controls whose defect is gross.
const FEWER_SAMPLES: usize = 500_000;

fn sigma(value: u64) -> Sigma {
    Sigma::new(value).expect("the tests use valid scales")
}

fn seeded(seed: u64) -> ChaCha20Rng {
    ChaCha20Rng::seed_from_u64(seed)
}

fn vectors(text: &str) -> Value {
    serde_json::from_str(text).expect("vectors/noise/make.py writes JSON")
}

fn references() -> Vec<Reference> {
    let files = [
        ("against MPFR", include_str!("../../../../vectors/noise/mpfr.json")),
        ("against OpenDP", include_str!("../../../../vectors/noise/opendp.json")),
    ];
    let mut references = Vec::new();
    for (test, text) in files {
        for histogram in vectors(text)["histograms"].as_array().expect("a list") {
            let counts = histogram["counts"].as_array().expect("a list");
            references.push(Reference {
                test,
                sigma: histogram["sigma"].as_u64().expect("an integer"),
                bin_width: histogram["bin_width"].as_i64().expect("an integer"),
                first_bin: histogram["first_bin"].as_i64().expect("an integer"),
                counts: counts.iter().map(|count| count.as_u64().expect("a count")).collect(),
            });
        }
    }
    references
}

fn judge(samples: usize, mut sampler: impl FnMut(u64) -> i64) -> Vec<Finding> {
    battery(&mut sampler, samples, &references())
}

#[track_caller]
fn assert_accepted(findings: &[Finding]) {
    let smallest = findings.iter().map(|finding| finding.p).fold(1.0, f64::min);
    println!("smallest of {} p-values: {smallest:e}", findings.len());
    for finding in findings {
        assert!(!finding.rejects(), "{} at σ = {}: p = {:e}", finding.test, finding.sigma, finding.p);
    }
}

/// Rejected, by each of these tests at each of these scales.
#[track_caller]
fn assert_rejected(findings: &[Finding], by: &[(&str, &[u64])]) {
    let rejecting: Vec<_> =
        findings.iter().filter(|finding| finding.rejects()).map(|f| (f.test, f.sigma)).collect();
    println!("rejected by {} of {} tests", rejecting.len(), findings.len());
    for &(test, scales) in by {
        for &scale in scales {
            assert!(rejecting.contains(&(test, scale)), "{test} at σ = {scale} accepts the control");
        }
    }
}

#[test]
fn single_draws_of_noise_have_the_exact_distribution() {
    let mut rng = seeded(1);
    assert_accepted(&judge(SAMPLES, |scale| rounded_gaussian(sigma(scale), &mut rng)));
}

#[test]
fn bulk_noise_has_the_exact_distribution() {
    let mut rng = seeded(2);
    let mut block = Vec::new();
    let mut block_scale = 0;
    let findings = judge(SAMPLES / 2, |scale| {
        if block.is_empty() || block_scale != scale {
            block_scale = scale;
            block = vec![0; 1000];
            add_noise(&mut block, sigma(scale), NOISED_SUM_LIMIT, &mut rng);
        }
        block.pop().expect("just filled")
    });
    // At 2^52 one value in 22 is clamped, and ±2^53 ends in zero bits: only there does the clamp
    // show.
    let inside: Vec<_> = findings.into_iter().filter(|finding| finding.sigma < 1 << 50).collect();
    assert_accepted(&inside);
}

#[test]
fn noise_from_one_bit_digits_has_the_exact_distribution() {
    let mut rng = seeded(3);
    assert_accepted(&judge(SAMPLES / 2, |scale| rounded_gaussian_in_digits::<1, _>(sigma(scale), &mut rng)));
}

#[test]
fn noise_from_eight_bit_digits_has_the_exact_distribution() {
    let mut rng = seeded(4);
    assert_accepted(&judge(SAMPLES / 2, |scale| rounded_gaussian_in_digits::<8, _>(sigma(scale), &mut rng)));
}

#[test]
fn noise_one_percent_too_wide_is_rejected() {
    let mut rng = seeded(10);
    let findings = judge(SAMPLES, |scale| controls::wide(scale, &mut rng));
    let every_scale: &[u64] = &[1, 2, 3, 10, 17, 1000, 1_000_003];
    assert_rejected(
        &findings,
        &[
            ("chi-square", every_scale),
            ("variance", every_scale),
            ("kurtosis", every_scale),
            ("kolmogorov", &[1000, 1_000_003]),
            ("against MPFR", &[1, 3, 17, 1_000_003]),
            ("against OpenDP", &[1000]),
        ],
    );
}

#[test]
fn noise_in_single_precision_is_rejected() {
    let mut rng = seeded(11);
    let findings = judge(FEWER_SAMPLES, |scale| controls::box_muller_f32(scale, &mut rng));
    assert_rejected(&findings, &[("low bits", &[1 << 40, 1 << 52])]);
}

#[test]
fn noise_in_double_precision_is_rejected() {
    let mut rng = seeded(12);
    let findings = judge(FEWER_SAMPLES, |scale| controls::box_muller_f64(scale, &mut rng));
    assert_rejected(&findings, &[("low bits", &[1 << 52])]);
}

#[test]
fn noise_rounded_down_is_rejected() {
    let mut rng = seeded(13);
    let findings = judge(FEWER_SAMPLES, |scale| controls::floored(scale, &mut rng));
    assert_rejected(
        &findings,
        &[
            ("chi-square", &[1, 2, 3, 10, 17]),
            ("mean", &[1, 2, 3, 10, 17]),
            ("sign", &[1, 2, 3, 10, 17]),
            ("against MPFR", &[1, 3, 17]),
        ],
    );
}

#[test]
fn noise_without_far_tails_is_rejected() {
    let mut rng = seeded(14);
    let findings = judge(FEWER_SAMPLES, |scale| controls::clipped(scale, &mut rng));
    assert_rejected(&findings, &[("tail 4σ", &[17, 1000, 1_000_003])]);
}

#[test]
fn noise_from_the_discrete_gaussian_is_rejected() {
    let mut rng = seeded(15);
    let findings = judge(FEWER_SAMPLES, |scale| controls::discrete(scale, &mut rng));
    assert_rejected(&findings, &[("chi-square", &[1, 2]), ("variance", &[1, 2]), ("against MPFR", &[1])]);
}

#[test]
fn noise_that_repeats_is_rejected() {
    let mut rng = seeded(16);
    let mut previous = 0;
    let findings = judge(FEWER_SAMPLES, |scale| controls::sticky(&mut previous, scale, &mut rng));
    assert_rejected(&findings, &[("lag 1", &[3, 17, 1_000_003])]);
}

#[test]
fn noise_that_loses_signs_is_rejected() {
    let mut rng = seeded(17);
    let findings = judge(FEWER_SAMPLES, |scale| controls::lopsided(scale, &mut rng));
    assert_rejected(&findings, &[("sign", &[3, 17, 1_000_003]), ("mirror", &[17, 1_000_003])]);
}

/// Values where nothing is expected, and no spread at all, are never a perfect score.
#[test]
fn constant_noise_is_rejected_in_every_test_of_shape() {
    for constant in [0, 1, i64::from(i32::MAX), i64::MIN, i64::MAX] {
        let findings = judge(10_000, |_| constant);
        assert_rejected(
            &findings,
            &[
                ("chi-square", &[1, 2, 3, 10, 17, 1000, 1_000_003]),
                ("against MPFR", &[1, 3, 17, 1_000_003]),
                ("against OpenDP", &[1000]),
                ("low bits", &[1 << 20, 1 << 40, 1 << 52]),
                ("lag 1", &[1, 17]),
            ],
        );
    }
}

#[test]
fn the_same_seed_gives_the_same_noise() {
    let draw = |seed| {
        let mut sums = vec![0; 1000];
        add_noise(&mut sums, sigma(12_345), NOISED_SUM_LIMIT, &mut seeded(seed));
        sums
    };
    assert_eq!(draw(20), draw(20));
    assert_ne!(draw(20), draw(21));
}

/// The replays of vectors/noise/replay.json, where deviates are exact fractions.
fn assert_replays(entries: &Value, mut draw: impl FnMut(u64, u64, usize, &mut ChaCha20Rng) -> Vec<i64>) {
    let entries = entries.as_array().expect("a list");
    assert!(!entries.is_empty());
    for entry in entries {
        let number = |key: &str| entry[key].as_u64().expect("an integer");
        let text = |key: &str| entry[key].as_str().expect("a string");
        let seed = hex::decode(text("seed")).expect("hexadecimal");
        let mut rng = ChaCha20Rng::from_seed(seed.try_into().expect("32 bytes"));
        let values = draw(number("sigma"), number("digit_bits"), number("count") as usize, &mut rng);
        let first: Vec<_> = entry["first"].as_array().expect("a list").iter().map(Value::as_i64).collect();
        let own: Vec<_> = values[..first.len()].iter().map(|&value| Some(value)).collect();
        let (scale, width) = (number("sigma"), number("digit_bits"));
        assert_eq!(own, first, "σ = {scale}, {width}-bit digits");
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        let digest = hex::encode(Sha256::digest(&bytes));
        assert_eq!(digest, text("sha256_of_le_i64"), "σ = {scale}, {width}-bit digits");
    }
}

#[test]
fn bulk_noise_replays_the_reference() {
    let replays = vectors(include_str!("../../../../vectors/noise/replay.json"));
    assert_replays(&replays["add_noise_to_zeros"], |scale, width, count, rng| {
        assert_eq!(width, 64, "the shipped width");
        let mut sums = vec![0; count];
        add_noise(&mut sums, sigma(scale), NOISED_SUM_LIMIT, rng);
        sums
    });
}

#[test]
fn noise_of_every_digit_width_replays_the_reference() {
    let replays = vectors(include_str!("../../../../vectors/noise/replay.json"));
    assert_replays(&replays["rounded_gaussian_in_digits"], |scale, width, count, rng| {
        let sample = match width {
            1 => rounded_gaussian_in_digits::<1, ChaCha20Rng>,
            2 => rounded_gaussian_in_digits::<2, ChaCha20Rng>,
            4 => rounded_gaussian_in_digits::<4, ChaCha20Rng>,
            8 => rounded_gaussian_in_digits::<8, ChaCha20Rng>,
            16 => rounded_gaussian_in_digits::<16, ChaCha20Rng>,
            32 => rounded_gaussian_in_digits::<32, ChaCha20Rng>,
            64 => rounded_gaussian::<ChaCha20Rng>,
            other => panic!("no digits of {other} bits"),
        };
        (0..count).map(|_| sample(sigma(scale), rng)).collect()
    });
}
