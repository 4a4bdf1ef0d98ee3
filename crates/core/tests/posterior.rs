//! The noise-aware learner against the numerical reference (vectors/calibrated/make.py).
#![allow(clippy::unwrap_used)]

use faer::Mat;
use potluck_core::learn::{Evidence, LearnError, Level, Released, posterior};
use serde_json::Value;

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|number| number.as_f64().unwrap()).collect()
}

fn indices(value: &Value) -> Vec<usize> {
    value.as_array().unwrap().iter().map(|number| number.as_u64().unwrap() as usize).collect()
}

fn cases() -> Vec<Value> {
    serde_json::from_str(include_str!("../../../vectors/calibrated/fits.json")).unwrap()
}

/// Calls `test` with the evidence of a case.
fn with_evidence<T>(case: &Value, test: impl FnOnce(&Evidence<'_>) -> T) -> T {
    let rows: Vec<Vec<f64>> = case["rows"].as_array().unwrap().iter().map(numbers).collect();
    let columns: Vec<&[f64]> = rows.iter().map(Vec::as_slice).collect();
    let noise = numbers(&case["noise"]);
    test(&evidence(case, &columns, &noise))
}

fn evidence<'a>(case: &Value, columns: &'a [&'a [f64]], noise: &'a [f64]) -> Evidence<'a> {
    let covariance: Vec<Vec<f64>> = case["covariance"].as_array().unwrap().iter().map(numbers).collect();
    let p = columns.len();
    Evidence {
        released: Released::new(columns, noise, case["n"].as_u64().unwrap()).unwrap(),
        parties: case["parties"].as_array().unwrap().iter().map(indices).collect(),
        covariance: Mat::from_fn(p, p, |i, j| covariance[i][j]),
        covariance_noise: numbers(&case["covariance_noise"]),
        attenuation: numbers(&case["attenuation"]),
    }
}

/// Agreement to 1e-6 of the largest entry of what is compared.
#[track_caller]
fn assert_close(found: &[f64], expected: &[f64], what: &str) {
    let scale = expected.iter().fold(0.0_f64, |most, value| most.max(value.abs()));
    assert_eq!(found.len(), expected.len(), "{what}");
    for (a, b) in found.iter().zip(expected) {
        assert!((a - b).abs() <= 1e-6 * scale, "{what}: {found:?} instead of {expected:?}");
    }
}

#[test]
fn fits_agree_with_the_reference() {
    let cases = cases();
    assert!(cases.len() >= 7);
    for case in &cases {
        let what = case["name"].as_str().unwrap();
        let label = case["label"].as_u64().unwrap() as usize;
        let fit =
            with_evidence(case, |evidence| posterior(evidence, label, &indices(&case["features"]))).unwrap();
        let expected = &case["expected"];
        assert_close(&fit.weights, &numbers(&expected["weights"]), what);
        assert_close(fit.estimate.weights(), &numbers(&expected["unshrunk"]), what);
        assert_close(&fit.estimate.standard_errors(), &numbers(&expected["standard_errors"]), what);
        let intervals = fit.estimate.intervals(Level::default());
        let (low, high): (Vec<f64>, Vec<f64>) = intervals.iter().map(|i| (i.lower, i.upper)).unzip();
        assert_close(&low, &numbers(&expected["low"]), what);
        assert_close(&high, &numbers(&expected["high"]), what);
    }
}

#[test]
fn the_order_of_features_does_not_matter() {
    for case in &cases() {
        let label = case["label"].as_u64().unwrap() as usize;
        let features = indices(&case["features"]);
        let reversed: Vec<usize> = features.iter().rev().copied().collect();
        let fit = |features: &[usize]| {
            with_evidence(case, |evidence| posterior(evidence, label, features)).unwrap()
        };
        let (one, mut other) = (fit(&features), fit(&reversed));
        other.weights.reverse();
        assert_close(&one.weights, &other.weights, "weights");
        let mut errors = other.estimate.standard_errors();
        errors.reverse();
        assert_close(&one.estimate.standard_errors(), &errors, "standard errors");
    }
}

#[test]
fn impossible_choices_are_refused() {
    with_evidence(&cases()[0], |evidence| {
        assert!(matches!(posterior(evidence, 0, &[]), Err(LearnError::NoFeatures)));
        assert!(matches!(posterior(evidence, 0, &[0]), Err(LearnError::LabelAmongFeatures { .. })));
        assert!(matches!(posterior(evidence, 0, &[99]), Err(LearnError::UnknownColumn { .. })));
    });
}
