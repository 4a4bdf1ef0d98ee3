//! How much a release changes when one subject is replaced, measured through the real path with identical noise.
//!
//! The claim (docs/PRIVACY.md#mixed-rows): Σ(δᵢ/σᵢ)² ≤ μ² over the integer differences δ. It is checked in exact
//! integers, for random and extreme neighbours, with the id kept and with the id changed, for each mixing.
#![allow(clippy::unwrap_used)]

mod support;

use num_bigint::BigUint;
use potluck_release::Study;
use proptest::prelude::*;
use support::{PARTY, Subject, integers, release, study, table};

/// Whether Σ(δ/σ)² ≤ μ², that is Σδ²·2⁶⁴ ≤ σ²·m², where μ = m/2³².
fn within(differences: &[i64], sigma: u64, mu_numerator: u64) -> bool {
    let square = |x: u64| BigUint::from(x) * BigUint::from(x);
    let sum: BigUint = differences.iter().map(|d| square(d.unsigned_abs())).sum();
    sum << 64 <= square(sigma) * square(mu_numerator)
}

fn differences(study: &Study, one: &[Subject], other: &[Subject]) -> Vec<i64> {
    let published = |subjects| integers(study, &release(study, &table(subjects), 2, 1).unwrap());
    published(one).iter().zip(published(other)).map(|(a, b)| a - b).collect()
}

fn check(study: &Study, one: &[Subject], other: &[Subject]) -> Vec<i64> {
    let differences = differences(study, one, other);
    let sigma = study.mixed_rows(PARTY).unwrap().sigma;
    assert!(within(&differences, sigma, study.mu().numerator()), "the claimed sensitivity is exceeded");
    differences
}

fn any_number() -> impl Strategy<Value = Option<f64>> {
    prop_oneof![
        6 => (-50.0..150.0).prop_map(Some),
        1 => prop::sample::select(vec![
            0.0, -0.0, 100.0, -1.0, 1.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX, f64::MIN, 5e-324,
        ])
        .prop_map(Some),
        1 => Just(None),
    ]
}

fn any_subject(id: i64) -> impl Strategy<Value = Subject> {
    let smoker = prop::sample::select(vec![Some("no"), Some("yes"), None]);
    let region = prop::sample::select(vec![Some("north"), Some("south"), Some("elsewhere"), None]);
    (any_number(), any_number(), smoker, region).prop_map(move |(age, dose, smoker, region)| Subject {
        id,
        age,
        dose,
        smoker,
        region,
    })
}

const ROWS: usize = 12;

/// A table, the position of the subject that is replaced, and what replaces it (with the same id).
fn neighbours() -> impl Strategy<Value = (Vec<Subject>, usize, Subject)> {
    let rows: Vec<_> = (0..ROWS as i64).map(any_subject).collect();
    (rows, 0..ROWS, any_subject(0)).prop_map(|(rows, position, mut replacement)| {
        replacement.id = rows[position].id;
        (rows, position, replacement)
    })
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

fn extreme(id: i64, high: bool) -> Subject {
    let (age, dose) = if high { (f64::MAX, 1e9) } else { (f64::MIN, -1e9) };
    Subject { id, age: Some(age), dose: Some(dose), smoker: None, region: None }
}

fn middle(id: i64) -> Subject {
    Subject { id, age: None, dose: None, smoker: None, region: None }
}

/// The worst case comes close to the bound, so the bound is not merely loose, and a noise scale that is one
/// percent too small is caught.
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
        let sigma = study.mixed_rows(PARTY).unwrap().sigma;
        assert!(
            !within(&differences, sigma * 99 / 100, study.mu().numerator()),
            "the worst case is not tight"
        );
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
    // The differences of rows that were not pulled into the ball, held against the noise of the small ball.
    let unprojected = differences(&wide, &rows, &other);
    let sigma = narrow.mixed_rows(PARTY).unwrap().sigma;
    assert!(!within(&unprojected, sigma, narrow.mu().numerator()));
}
