//! The noise-aware learner against the numerical reference (vectors/calibrated/make.py).
#![allow(clippy::unwrap_used)]

use faer::Mat;
use potluck_core::learn::{Evidence, LearnError, Level, posterior};
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

fn evidence(case: &Value) -> Evidence {
    let rows: Vec<Vec<f64>> = case["rows"].as_array().unwrap().iter().map(numbers).collect();
    let covariance: Vec<Vec<f64>> = case["covariance"].as_array().unwrap().iter().map(numbers).collect();
    let p = rows.len();
    Evidence {
        n: case["n"].as_f64().unwrap(),
        k: case["k"].as_f64().unwrap(),
        parties: case["parties"].as_array().unwrap().iter().map(indices).collect(),
        gram: Mat::from_fn(p, p, |i, j| rows[i].iter().zip(&rows[j]).map(|(a, b)| a * b).sum()),
        noise: numbers(&case["noise"]),
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
        let fit = posterior(&evidence(case), label, &indices(&case["features"])).unwrap();
        let expected = &case["expected"];
        assert_close(&fit.weights, &numbers(&expected["weights"]), what);
        assert_close(&fit.unshrunk, &numbers(&expected["unshrunk"]), what);
        assert_close(&fit.standard_errors, &numbers(&expected["standard_errors"]), what);
        let intervals = fit.intervals(Level::default());
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
        let evidence = evidence(case);
        let one = posterior(&evidence, label, &features).unwrap();
        let mut other = posterior(&evidence, label, &reversed).unwrap();
        other.weights.reverse();
        other.standard_errors.reverse();
        assert_close(&one.weights, &other.weights, "weights");
        assert_close(&one.standard_errors, &other.standard_errors, "standard errors");
    }
}

#[test]
fn impossible_choices_are_refused() {
    let evidence = evidence(&cases()[0]);
    assert!(matches!(posterior(&evidence, 0, &[]), Err(LearnError::NoFeatures)));
    assert!(matches!(posterior(&evidence, 0, &[0]), Err(LearnError::LabelAmongFeatures { .. })));
    assert!(matches!(posterior(&evidence, 0, &[99]), Err(LearnError::UnknownColumn { .. })));
}
