//! The learners against known answers (`vectors/learn`) and against the symmetries they must have.

#![allow(clippy::unwrap_used)] // a failed step is a failed test

use potluck_core::learn::{
    Affine, Coefficients, Estimand, Fit, LearnError, Level, Moments, Released, Ridge, Stability, debiased,
    ols,
};
use proptest::prelude::*;
use serde_json::Value;

type Learner = fn(&Released<'_>, usize, &[usize], Ridge) -> Result<Fit, LearnError>;

const LEARNERS: [(&str, Learner); 2] = [("ols", ols), ("debiased", debiased)];

fn vectors() -> Value {
    serde_json::from_str(include_str!("../../../vectors/learn/least-squares.json")).unwrap()
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|item| item.as_f64().unwrap()).collect()
}

fn matrix(value: &Value) -> Vec<Vec<f64>> {
    value.as_array().unwrap().iter().map(numbers).collect()
}

fn indices(value: &Value) -> Vec<usize> {
    value.as_array().unwrap().iter().map(|item| item.as_u64().unwrap() as usize).collect()
}

/// Agreement to 1e-9 of the largest entry of what is compared.
#[track_caller]
fn assert_close(found: &[f64], expected: &[f64], what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    let scale = expected.iter().fold(f64::MIN_POSITIVE, |most, value| most.max(value.abs()));
    for (a, b) in found.iter().zip(expected) {
        assert!((a - b).abs() <= 1e-9 * scale, "{what}: {found:?} instead of {expected:?}");
    }
}

/// Solves a task of the vectors file with one learner.
fn solve(task: &Value, learner: Learner) -> Result<Fit, LearnError> {
    let columns = matrix(&task["columns"]);
    let columns: Vec<&[f64]> = columns.iter().map(Vec::as_slice).collect();
    let noise = numbers(&task["noise"]);
    let released = Released::new(&columns, &noise, task["n"].as_u64().unwrap())?;
    let ridge = Ridge::new(task["ridge"].as_f64().unwrap_or(0.0))?;
    learner(&released, task["label"].as_u64().unwrap() as usize, &indices(&task["features"]), ridge)
}

fn interval_ends(coefficients: &Coefficients, level: Level) -> Vec<f64> {
    coefficients.intervals(level).iter().flat_map(|interval| [interval.lower, interval.upper]).collect()
}

#[test]
fn answers_agree_with_numpy() {
    for case in vectors()["cases"].as_array().unwrap() {
        for (name, learner) in LEARNERS {
            let what = format!("{} {name}", case["name"]);
            let expected = &case[name];
            let fit = solve(case, learner).unwrap();
            let found = &fit.coefficients;
            assert_close(found.weights(), &numbers(&expected["weights"]), &what);
            assert_close(fit.spectrum.eigenvalues(), &numbers(&expected["eigenvalues"]), &what);
            let error = expected["smallest_error"].as_f64().unwrap();
            assert_close(&[fit.spectrum.smallest_error()], &[error], &what);
            assert_close(found.covariance().as_slice(), &matrix(&expected["covariance"]).concat(), &what);
            assert_close(&found.standard_errors(), &numbers(&expected["standard_errors"]), &what);
            let level = Level::new(case["level"].as_f64().unwrap()).unwrap();
            assert_close(&interval_ends(found, level), &matrix(&expected["intervals"]).concat(), &what);
            assert_close(&fit.noise_share, &numbers(&expected["noise_share"]), &what);
            let variance = expected["residual_variance"].as_f64().unwrap();
            assert!((fit.residual_variance - variance).abs() < 1e-9 * (1.0 + variance.abs()), "{what}");
            match (fit.r_squared, expected["r_squared"].as_f64()) {
                (Some(a), Some(b)) => assert!((a - b).abs() < 1e-9, "{what}: {a} instead of {b}"),
                (a, b) => assert_eq!(a, b, "{what}"),
            }

            let (mid, half) = (numbers(&case["scaling"]["mid"]), numbers(&case["scaling"]["half"]));
            let affine = |j: usize| Affine::new(mid[j], half[j]).unwrap();
            let features: Vec<Affine> = indices(&case["features"]).into_iter().map(affine).collect();
            let label = affine(case["label"].as_u64().unwrap() as usize);
            let original = found.to_original(&features, label).unwrap();
            assert_close(original.coefficients().weights(), &numbers(&expected["original"]), &what);
            let covariance = matrix(&expected["original_covariance"]).concat();
            assert_close(original.coefficients().covariance().as_slice(), &covariance, &what);
        }
    }
}

#[test]
fn impossible_tasks_are_refused_by_name() {
    for task in vectors()["refused"].as_array().unwrap() {
        let expected = task["error"].as_str().unwrap();
        for (name, learner) in LEARNERS {
            let refusal = solve(task, learner).err();
            if task["learners"].as_array().unwrap().iter().any(|item| item == name) {
                let refusal = format!("{:?}", refusal.expect(expected));
                assert!(refusal.starts_with(expected), "{name}: {refusal} instead of {expected}");
            } else {
                assert_eq!(refusal, None, "{name}: {task}");
            }
        }
    }
}

#[test]
fn damaged_input_is_refused() {
    let good: &[f64] = &[1.0, 2.0, 3.0];
    let refusal = |columns: &[&[f64]], noise: &[f64], n| Released::new(columns, noise, n).err();
    assert_eq!(refusal(&[good, good], &[0.0, 1.0], 3), None);
    assert_eq!(refusal(&[], &[], 3), Some(LearnError::Empty));
    assert_eq!(refusal(&[&[], &[]], &[0.0, 0.0], 3), Some(LearnError::Empty));
    assert_eq!(refusal(&[good], &[0.0], 0), Some(LearnError::NoRows));
    assert_eq!(refusal(&[good, good], &[0.0], 3), Some(LearnError::NoiseCount { columns: 2, noise: 1 }));
    assert_eq!(
        refusal(&[good, &[1.0]], &[0.0, 0.0], 3),
        Some(LearnError::Lengths { column: 1, expected: 3, found: 1 })
    );
    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        assert_eq!(
            refusal(&[good, &[1.0, 2.0, bad]], &[0.0, 0.0], 3),
            Some(LearnError::NotFinite { column: 1, row: 2 })
        );
        assert!(matches!(refusal(&[good], &[bad], 3), Some(LearnError::Noise { column: 0, .. })));
        assert!(Ridge::new(bad).is_err() && Level::new(bad).is_err());
        assert!(Affine::new(bad, 1.0).is_err() && Affine::new(0.0, bad).is_err());
    }
    assert!(matches!(refusal(&[good], &[-1.0], 3), Some(LearnError::Noise { column: 0, .. })));
    assert!(Ridge::new(-1e-9).is_err() && Ridge::new(0.0).is_ok());
    assert!(Level::new(0.0).is_err() && Level::new(1.0).is_err());
    assert!(Affine::new(0.0, 0.0).is_err() && Affine::new(0.0, -1.0).is_err());
}

#[test]
fn each_fit_says_what_it_estimates() {
    let (x, y): (&[f64], &[f64]) = (&[1.0, -2.0, 1.5, 0.5], &[0.5, -1.0, 1.0, 0.0]);
    let columns = [x, y];
    let fit = |learner: Learner, noise: [f64; 2]| {
        learner(&Released::new(&columns, &noise, 4).unwrap(), 1, &[0], Ridge::NONE).unwrap()
    };
    assert_eq!(fit(ols, [0.5, 0.5]).estimand, Estimand::Attenuated);
    assert_eq!(fit(debiased, [0.5, 0.5]).estimand, Estimand::Study);
    // Noise in the label alone attenuates nothing.
    assert_eq!(fit(ols, [0.0, 0.5]).estimand, Estimand::Study);
    assert_eq!(fit(ols, [0.0, 0.5]).coefficients, fit(debiased, [0.0, 0.5]).coefficients);
    // More noise than the column holds turns its sign, and the result says that it is not to be
    // trusted.
    let indefinite = fit(debiased, [5.0, 0.5]);
    assert!(indefinite.noise_share[0] > 1.0);
    assert_eq!(indefinite.spectrum.stability(), Stability::Indefinite);
    assert_eq!(indefinite.r_squared, None);
}

#[test]
fn a_scaling_per_feature_is_required() {
    let columns: [&[f64]; 2] = [&[1.0, -2.0, 1.5], &[0.5, -1.0, 1.0]];
    let fit = ols(&Released::new(&columns, &[0.0; 2], 3).unwrap(), 1, &[0], Ridge::NONE).unwrap();
    let refusal = fit.coefficients.to_original(&[Affine::UNIT; 2], Affine::UNIT).err();
    assert_eq!(refusal, Some(LearnError::AffineCount { features: 1, found: 2 }));
    // Where both units are the same, so are the coefficients, and there is no intercept.
    let original = fit.coefficients.to_original(&[Affine::UNIT], Affine::UNIT).unwrap();
    assert_eq!(original.slopes(), fit.coefficients.weights());
    assert_eq!((original.intercept(), original.coefficients().standard_errors()[0]), (0.0, 0.0));
}

/// Four columns of 12 values, their noise and the rows of the study. The diagonal keeps the task
/// well posed.
fn dataset() -> impl Strategy<Value = (Vec<Vec<f64>>, Vec<f64>, u64)> {
    let column = proptest::collection::vec(-1.0..1.0, 12);
    let columns = proptest::collection::vec(column, 4).prop_map(|mut columns| {
        for (j, column) in columns.iter_mut().enumerate() {
            column[j] += 3.0;
        }
        columns
    });
    (columns, proptest::collection::vec(0.0..0.3, 4), 12..100_u64)
}

fn views(columns: &[Vec<f64>]) -> Vec<&[f64]> {
    columns.iter().map(Vec::as_slice).collect()
}

/// Weights, covariance, eigenvalues and the scalars of a fit, with the features taken in the given
/// order.
fn numbers_of(fit: &Fit, order: &[usize]) -> Vec<f64> {
    let coefficients = &fit.coefficients;
    let mut all: Vec<f64> = order.iter().map(|&i| coefficients.weights()[i]).collect();
    all.extend(order.iter().map(|&i| fit.noise_share[i]));
    all.extend(order.iter().flat_map(|&i| order.iter().map(move |&j| coefficients.covariance().get(i, j))));
    all.extend(fit.spectrum.eigenvalues());
    all.extend([fit.residual_variance, fit.r_squared.unwrap_or(-1.0), coefficients.degrees() as f64]);
    all
}

proptest! {
    #[test]
    fn the_order_of_rows_does_not_matter(
        (columns, noise, n) in dataset(),
        order in Just((0..12_usize).collect::<Vec<_>>()).prop_shuffle(),
    ) {
        let shuffled: Vec<Vec<f64>> =
            columns.iter().map(|column| order.iter().map(|&i| column[i]).collect()).collect();
        for (name, learner) in LEARNERS {
            let fit = |columns: &[Vec<f64>]| {
                learner(&Released::new(&views(columns), &noise, n).unwrap(), 3, &[0, 1, 2], Ridge::NONE).unwrap()
            };
            let order = [0, 1, 2];
            assert_close(&numbers_of(&fit(&shuffled), &order), &numbers_of(&fit(&columns), &order), name);
        }
    }

    #[test]
    fn reordered_features_reorder_the_answer(
        (columns, noise, n) in dataset(),
        order in Just(vec![0_usize, 1, 2]).prop_shuffle(),
    ) {
        let columns = views(&columns);
        let released = Released::new(&columns, &noise, n).unwrap();
        let ridge = Ridge::new(0.01).unwrap();
        for (name, learner) in LEARNERS {
            let plain = learner(&released, 3, &[0, 1, 2], ridge).unwrap();
            let reordered = learner(&released, 3, &order, ridge).unwrap();
            assert_close(&numbers_of(&reordered, &[0, 1, 2]), &numbers_of(&plain, &order), name);
        }
    }

    #[test]
    fn original_units_do_not_depend_on_the_bounds_that_were_declared(
        (columns, noise, n) in dataset(),
        factors in proptest::collection::vec(0.1..10.0, 4),
    ) {
        // Half-widths that are `factor` times larger shrink the encoded column, and its noise, as
        // much.
        let wider: Vec<Vec<f64>> = columns
            .iter()
            .zip(&factors)
            .map(|(column, factor)| column.iter().map(|value| value / factor).collect())
            .collect();
        let wider_noise: Vec<f64> = noise.iter().zip(&factors).map(|(sd, factor)| sd / factor).collect();
        let affine = |j: usize, factor: f64| Affine::new(7.0 - j as f64, 2.5 * factor).unwrap();
        for (name, learner) in LEARNERS {
            let original = |columns: &[Vec<f64>], noise: &[f64], factors: &[f64]| {
                let columns = views(columns);
                let released = Released::new(&columns, noise, n).unwrap();
                let fit = learner(&released, 3, &[0, 1, 2], Ridge::NONE).unwrap();
                let features: Vec<Affine> = (0..3).map(|j| affine(j, factors[j])).collect();
                fit.coefficients.to_original(&features, affine(3, factors[3])).unwrap()
            };
            let narrow = original(&columns, &noise, &[1.0; 4]);
            let wide = original(&wider, &wider_noise, &factors);
            let (narrow, wide) = (narrow.coefficients(), wide.coefficients());
            assert_close(wide.weights(), narrow.weights(), name);
            assert_close(wide.covariance().as_slice(), narrow.covariance().as_slice(), name);
            let level = Level::default();
            assert_close(&interval_ends(wide, level), &interval_ends(narrow, level), name);
        }
    }
}

/// Moments alone give the same weights as the rows they come from.
#[test]
fn moments_give_the_weights_of_the_rows() {
    for case in vectors()["cases"].as_array().unwrap() {
        let columns = matrix(&case["columns"]);
        let (k, n) = (columns[0].len() as f64, case["n"].as_f64().unwrap());
        let noise = numbers(&case["noise"]).iter().map(|sd| sd * sd * k / n).collect();
        let moment =
            |i: usize, j: usize| columns[i].iter().zip(&columns[j]).map(|(a, b)| a * b).sum::<f64>() / n;
        let moments = Moments::new(noise, moment).unwrap();
        let ridge = Ridge::new(case["ridge"].as_f64().unwrap_or(0.0)).unwrap();
        let (label, features) = (case["label"].as_u64().unwrap() as usize, indices(&case["features"]));
        let found = [
            ("ols", moments.ols(label, &features, ridge).unwrap()),
            ("debiased", moments.debiased(label, &features, ridge).unwrap()),
        ];
        for (name, solution) in found {
            assert_close(&solution.weights, &numbers(&case[name]["weights"]), name);
            assert_close(&solution.eigenvalues, &numbers(&case[name]["eigenvalues"]), name);
        }
        assert!(matches!(moments.ols(label, &[label], ridge), Err(LearnError::LabelAmongFeatures { .. })));
    }
    assert!(matches!(Moments::new(vec![], |_, _| 0.0), Err(LearnError::Empty)));
}
