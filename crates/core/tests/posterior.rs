//! The noise-aware learner, and what it learns from, against the numerical reference
//! (vectors/calibrated/reference.py).
#![allow(clippy::unwrap_used)]

mod support;

use faer::Mat;
use potluck_core::accounting::Mu;
use potluck_core::calibrated::{Layout, PartyPlan, Plan};
use potluck_core::encoding::{Bounds, Encoder, LevelCount};
use potluck_core::learn::{
    Between, Clipping, Concern, Evidence, LearnError, Level, LocalMoments, People, Released, explained_share,
    posterior,
};
use serde_json::Value;
use support::{assert_close, clipping, indices, matrix, numbers};

fn cases() -> Vec<Value> {
    serde_json::from_str(include_str!("../../../vectors/calibrated/fits.json")).unwrap()
}

/// Calls `test` with the evidence of a case.
fn with_evidence<T>(case: &Value, test: impl FnOnce(&Evidence<'_>) -> T) -> T {
    let rows = matrix(&case["rows"]);
    let columns: Vec<&[f64]> = rows.iter().map(Vec::as_slice).collect();
    let noise = numbers(&case["noise"]);
    let released = Released::new(&columns, &noise, case["n"].as_u64().unwrap()).unwrap();
    let covariance = matrix(&case["covariance"]);
    let spurious = matrix(&case["spurious"]);
    let evidence = if case["rows_only"].as_bool().unwrap() {
        Evidence::from_rows(released)
    } else {
        Evidence {
            parties: case["parties"].as_array().unwrap().iter().map(indices).collect(),
            covariance: Mat::from_fn(columns.len(), columns.len(), |i, j| covariance[i][j]),
            covariance_noise: numbers(&case["covariance_noise"]),
            spurious: Mat::from_fn(columns.len(), columns.len(), |i, j| spurious[i][j]),
            clipping: clipping(case),
            people: People::everywhere(
                released.n(),
                columns.len(),
                case["parties"].as_array().unwrap().len(),
            ),
            between: Between::Mixed(released),
        }
    };
    test(&evidence)
}

/// Agreement to 1e-6 of the largest entry of what is compared.
#[track_caller]
/// Concerns by the names that the reference gives them, and the confounders if there are any.
fn said(concerns: &[Concern]) -> (Vec<&str>, Option<Vec<usize>>) {
    let mut confounders = None;
    let mut names = Vec::new();
    for concern in concerns {
        match concern {
            Concern::LabelTails => names.push("label tails"),
            Concern::FeatureTails => names.push("feature tails"),
            Concern::LabelUnresolved => names.push("label unresolved"),
            Concern::FeatureUnresolved => names.push("feature unresolved"),
            Concern::Confounders(columns) => confounders = Some(columns.clone()),
            other => names.push(other.name()),
        }
    }
    (names, confounders)
}

#[test]
fn fits_agree_with_the_reference() {
    let cases = cases();
    assert!(cases.len() >= 13);
    for case in &cases {
        let what = case["name"].as_str().unwrap();
        let label = case["label"].as_u64().unwrap() as usize;
        let features = indices(&case["features"]);
        let fit =
            with_evidence(case, |evidence| posterior(evidence, label, &features, Level::default())).unwrap();
        let expected = &case["expected"];
        assert_close(&fit.weights, &numbers(&expected["weights"]), what);
        assert_close(fit.estimate.weights(), &numbers(&expected["unshrunk"]), what);
        assert_close(&fit.estimate.standard_errors(), &numbers(&expected["standard_errors"]), what);
        let (low, high): (Vec<f64>, Vec<f64>) = fit.intervals.iter().map(|i| (i.lower, i.upper)).unzip();
        assert_close(&low, &numbers(&expected["low"]), what);
        assert_close(&high, &numbers(&expected["high"]), what);
        let parts = matrix(&expected["parts"]);
        for (at, part) in fit.parts.iter().enumerate() {
            let found = [part.privacy, part.mixing, part.correlations, part.sampling, part.clipping];
            let expected: Vec<f64> = parts.iter().map(|kind| kind[at]).collect();
            assert_close(&found, &expected, what);
            assert!((found.iter().sum::<f64>() - 1.0).abs() < 1e-12, "{what}");
        }
        for (at, concerns) in fit.concerns.iter().enumerate() {
            let (of_columns, named) = said(concerns);
            assert_eq!(serde_json::json!(of_columns), expected["concerns"][at], "{what}");
            assert_eq!(serde_json::json!(named), expected["confounders"][at], "{what}");
        }
        let share = with_evidence(case, |evidence| explained_share(evidence, label, &features)).unwrap();
        let interval = share.interval(Level::default());
        let found = [share.estimate, share.standard_error, (interval.upper - interval.lower) / 2.0];
        assert_close(&found, &numbers(&expected["explained_share"]), what);
    }
}

#[test]
fn the_order_of_features_does_not_matter() {
    for case in &cases() {
        let label = case["label"].as_u64().unwrap() as usize;
        let features = indices(&case["features"]);
        let reversed: Vec<usize> = features.iter().rev().copied().collect();
        let fit = |features: &[usize]| {
            with_evidence(case, |evidence| posterior(evidence, label, features, Level::default())).unwrap()
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
        assert!(matches!(posterior(evidence, 0, &[], Level::default()), Err(LearnError::NoFeatures)));
        assert!(matches!(
            posterior(evidence, 0, &[0], Level::default()),
            Err(LearnError::LabelAmongFeatures { .. })
        ));
        assert!(matches!(
            posterior(evidence, 0, &[99], Level::default()),
            Err(LearnError::UnknownColumn { .. })
        ));
    });
}

fn party(case: &Value) -> PartyPlan {
    let encoder = |levels: &usize| match levels {
        0 => Encoder::Numeric(Bounds::new(-1.0, 1.0).unwrap()),
        &levels => Encoder::Categorical(LevelCount::new(levels).unwrap()),
    };
    let layout = Layout::new(indices(&case["columns"]).iter().map(encoder).collect());
    let mu = Mu::from_f64(case["mu"].as_f64().unwrap()).unwrap();
    let plan = Plan::new(case["n"].as_u64().unwrap(), mu, std::slice::from_ref(&layout), None).unwrap();
    plan.party(layout).unwrap()
}

#[test]
fn frames_and_moments_agree_with_the_reference() {
    let cases: Vec<Value> =
        serde_json::from_str(include_str!("../../../vectors/calibrated/frames.json")).unwrap();
    assert_eq!(cases.len(), 3);
    for case in &cases {
        let what = case["name"].as_str().unwrap();
        let party = party(case);
        let sums: Vec<Vec<i64>> = serde_json::from_value(case["sums"].clone()).unwrap();
        let frame = party.frame(&sums).unwrap();
        let moments = LocalMoments::new(&party, &sums, &frame).unwrap();
        let expected = &case["expected"];
        let scalings = |part: fn(&potluck_core::encoding::Scaling) -> f64| {
            frame.scalings.iter().map(part).collect::<Vec<f64>>()
        };
        assert_close(&scalings(|s| s.low), &numbers(&expected["low"]), what);
        assert_close(&scalings(|s| s.high), &numbers(&expected["high"]), what);
        assert_close(&scalings(|s| s.centre), &numbers(&expected["centre"]), what);
        assert_close(&scalings(|s| s.scale), &numbers(&expected["scale"]), what);
        let norm = frame.ball.norm_squared() as f64;
        assert_close(&[norm], &[expected["norm_squared"].as_f64().unwrap()], what);
        assert_close(&moments.means, &numbers(&expected["means"]), what);
        assert_close(&moments.covariance, &matrix(&expected["covariance"]).concat(), what);
        assert_close(&moments.spurious, &matrix(&expected["spurious"]).concat(), what);
        assert_close(&[moments.noise], &[expected["noise"].as_f64().unwrap()], what);
        let clipping = moments.clipping(&frame);
        let found = |part: fn(&Clipping) -> f64| clipping.iter().map(part).collect::<Vec<f64>>();
        assert_close(&found(|c| c.attenuation), &numbers(&expected["attenuation"]), what);
        assert_close(&found(|c| c.box_part), &numbers(&expected["box_part"]), what);
        assert_close(&found(|c| c.scale_error), &numbers(&expected["scale_error"]), what);
        assert_close(&found(|c| c.kurtosis), &numbers(&expected["kurtosis"]), what);
        let tails = matrix(&expected["tails"]);
        assert_close(&found(|c| c.tails.excess), &tails[0], what);
        assert_close(&found(|c| c.tails.excess_error), &tails[1], what);
        assert_close(&found(|c| c.tails.shift), &tails[2], what);
        assert_close(&found(|c| c.tails.shift_error), &tails[3], what);
        let believable = found(|c| c.believable_variance);
        assert_close(&believable, &numbers(&expected["believable_variance"]), what);
        let centres = moments.centres(&frame);
        let found: Vec<f64> = centres.iter().map(|centre| centre.found).collect();
        assert_close(&found, &numbers(&expected["centres"]), what);
        let believed: Vec<f64> = centres.iter().map(|centre| centre.believed).collect();
        assert_close(&believed, &numbers(&expected["believed_centres"]), what);
    }
}
