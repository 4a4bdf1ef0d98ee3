//! How much a release changes when one subject is replaced, measured through the real path with
//! identical noise.
//!
//! The claim (docs/PRIVACY.md#mixed-rows): Σ(δᵢ/σᵢ)² ≤ μ² over the integer differences δ. It is
//! checked in exact integers, for random and extreme neighbours, with the id kept and with the id
//! changed, for each mixing.
#![allow(clippy::unwrap_used)]

mod support;

use potluck_core::accounting::Share;
use potluck_release::Study;
use proptest::prelude::*;
use support::{PARTY, ROWS, Subject, extreme, integers, middle, neighbours, release, study, table};

/// Whether Σ(δ/σ)² ≤ μ² for one σ.
fn within(differences: &[i64], sigma: u64, study: &Study) -> bool {
    support::within(differences, &[(differences.len(), sigma)], study.mu(), Share::WHOLE)
}

fn sigma(study: &Study) -> u64 {
    study.first_stage(PARTY).unwrap().noise[0].1.get()
}

fn differences(study: &Study, one: &[Subject], other: &[Subject]) -> Vec<i64> {
    let published = |subjects| integers(&release(study, &table(subjects), 2, 1).unwrap());
    published(one).iter().zip(published(other)).map(|(a, b)| a - b).collect()
}

fn check(study: &Study, one: &[Subject], other: &[Subject]) -> Vec<i64> {
    let differences = differences(study, one, other);
    assert!(within(&differences, sigma(study), study), "the claimed sensitivity is exceeded");
    differences
}

/// Every mixing, with natural and with reduced row norm, and the paper's preset.
fn studies() -> Vec<Study> {
    let rows = ROWS as u64;
    vec![
        study(rows, "id = \"integer\"", ""),
        study(rows, "id = \"integer\"", "clip_norm = 0.7"),
        study(rows, "id = \"integer\"\nmixing = \"bernoulli\"\nk = 9", ""),
        study(rows, "id = \"integer\"\nmixing = \"bernoulli\"\nk = 9", "clip_norm = 1.1"),
        study(rows, "id = \"row\"", ""),
        study(rows, "id = \"row\"\nmethod = \"dgm\"", ""),
        study(rows, "id = \"row\"\nmethod = \"dgm\"", "clip_norm = 0.3"),
        study(rows, "id = \"integer\"\npreset = \"paper\"", ""),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn replacing_values_stays_within_the_claim((rows, position, replacement) in neighbours()) {
        for study in studies() {
            let mut other = rows.clone();
            other[position] = replacement.clone();
            check(&study, &rows, &other);
        }
    }

    #[test]
    fn replacing_a_subject_and_its_id_stays_within_the_claim(
        (rows, position, replacement) in neighbours(),
        id in 1000i64..2000,
    ) {
        // Where ids give the signs; with `id = "row"` the slot stays.
        for study in &studies()[..4] {
            let mut other = rows.clone();
            other[position] = Subject { id, ..replacement.clone() };
            check(study, &rows, &other);
        }
    }
}

/// The worst case comes close to the bound, so the bound is not merely loose, and a noise scale
/// that is one percent too small is caught.
#[test]
fn the_worst_case_is_tight_and_less_noise_is_caught() {
    let studies = [
        study(ROWS as u64, "id = \"integer\"", "clip_norm = 1.4"),
        study(ROWS as u64, "id = \"integer\"\nmixing = \"bernoulli\"\nk = 9", "clip_norm = 1.4"),
        study(ROWS as u64, "id = \"row\"\nmethod = \"dgm\"", "clip_norm = 1.4"),
    ];
    for study in &studies {
        let mut rows: Vec<Subject> = (0..ROWS as i64).map(middle).collect();
        let mut other = rows.clone();
        rows[5] = extreme(5, true);
        other[5] = extreme(5, false);
        let differences = check(study, &rows, &other);
        let sigma = sigma(study);
        assert!(!within(&differences, sigma * 99 / 100, study), "the worst case is not tight");
    }
}

/// A reader that forgot to clamp or to project would be noticed: the control must fail.
#[test]
fn rows_outside_the_ball_would_be_caught() {
    let narrow = study(ROWS as u64, "id = \"integer\"", "clip_norm = 0.7");
    let wide = study(ROWS as u64, "id = \"integer\"", "");
    let mut rows: Vec<Subject> = (0..ROWS as i64).map(middle).collect();
    let mut other = rows.clone();
    rows[5] = extreme(5, true);
    other[5] = extreme(5, false);
    // The differences of rows that were not pulled into the ball, held against the noise of the
    // small ball.
    let unprojected = differences(&wide, &rows, &other);
    let sigma = sigma(&narrow);
    assert!(!within(&unprojected, sigma, &narrow));
}
