//! The learner where parties hold different people and values are missing, against the numerical
//! reference (vectors/cohorts/reference.py).
#![allow(clippy::unwrap_used)]

mod support;

use faer::Mat;
use potluck_core::learn::{
    Between, DeclaredOverlaps, Evidence, Level, OverlapConcern, PartyPeople, People, PresentValues, Released,
    column_shifts, explained_share, posterior,
};
use serde_json::Value;
use support::{assert_close, clipping, flags, indices, matrix, numbers};

fn cases() -> Vec<Value> {
    serde_json::from_str(include_str!("../../../vectors/cohorts/fits.json")).unwrap()
}

fn declared(case: &Value) -> DeclaredOverlaps {
    matrix(&case["declared"]).iter().fold(DeclaredOverlaps::default(), |declared, of| {
        declared.with((of[0] as usize, of[1] as usize), [of[2], of[3]])
    })
}

/// Calls `test` with the evidence of a case.
fn with_evidence<T>(case: &Value, declared: &DeclaredOverlaps, test: impl FnOnce(&Evidence<'_>) -> T) -> T {
    let rows = matrix(&case["rows"]);
    let columns: Vec<&[f64]> = rows.iter().map(Vec::as_slice).collect();
    let noise = numbers(&case["noise"]);
    let released = Released::new(&columns, &noise, case["n"].as_u64().unwrap()).unwrap();
    let presence = matrix(&case["presence"]);
    let presence_noise = numbers(&case["presence_noise"]);
    let members: Vec<Vec<usize>> = case["parties"].as_array().unwrap().iter().map(indices).collect();
    let values: Vec<PresentValues> = (0..members.len())
        .map(|at| PresentValues {
            may_miss: flags(&case["may_miss"][at]),
            counts: matrix(&case["counts"][at]).iter().map(|of| (of[0], of[1])).collect(),
            pairs: matrix(&case["pairs"][at]).concat(),
        })
        .collect();
    let party = |at: usize| PartyPeople {
        presence: &presence[at],
        presence_noise: presence_noise[at],
        values: &values[at],
    };
    let parties: Vec<_> = members.iter().enumerate().map(|(at, of)| (of.clone(), party(at))).collect();
    let people = People::of_parties(&released, &parties, declared);
    let square = |name: &str| {
        let entries = matrix(&case[name]);
        Mat::from_fn(columns.len(), columns.len(), |i, j| entries[i][j])
    };
    test(&Evidence {
        between: Between::Mixed(released),
        parties: members,
        covariance: square("covariance"),
        covariance_noise: numbers(&case["covariance_noise"]),
        spurious: square("spurious"),
        clipping: clipping(case),
        people,
    })
}

/// Agreement to 1e-6 of the largest entry of what is compared.
#[track_caller]
#[test]
fn who_is_where_agrees_with_the_reference() {
    for case in &cases() {
        let (what, expected) = (case["name"].as_str().unwrap(), &case["expected"]);
        with_evidence(case, &declared(case), |evidence| {
            let people = &evidence.people;
            assert_close(people.held(), &numbers(&expected["held"]), what);
            let missing: Vec<f64> = (0..evidence.clipping.len()).map(|j| people.missing(j)).collect();
            assert_close(&missing, &numbers(&expected["missing"]), what);
            let shared: Vec<f64> = people.overlaps().iter().map(|overlap| overlap.people).collect();
            assert_close(&shared, &numbers(&expected["people"]), what);
            for (overlap, expected) in people.overlaps().iter().zip(matrix(&expected["observed"])) {
                let (lower, upper) = (overlap.interval.lower, overlap.interval.upper);
                let found = [overlap.observed, lower, upper, overlap.above_nothing, overlap.beyond_declared];
                assert_close(&found, &expected, what);
            }
            let shifts: Vec<Vec<f64>> = column_shifts(evidence)
                .iter()
                .map(|of| vec![of.column as f64, of.party as f64, of.shift, of.standard_error])
                .collect();
            assert_close(&shifts.concat(), &matrix(&expected["shifts"]).concat(), what);
        });
    }
}

#[test]
fn what_is_loudly_wrong_agrees_with_the_reference() {
    let mut seen = Vec::new();
    for case in &cases() {
        let expected = case["expected"]["findings"].as_array().unwrap().clone();
        with_evidence(case, &declared(case), |evidence| {
            let mut found = Vec::new();
            for overlap in evidence.people.overlaps() {
                let Some(concern) = overlap.concern() else { continue };
                let name = match concern {
                    OverlapConcern::Nobody => "no overlap",
                    OverlapConcern::Unseen => "overlap not seen",
                    OverlapConcern::Undeclared => "overlap outside the declared range",
                };
                found.push(serde_json::json!([name, [overlap.parties.0 as f64, overlap.parties.1 as f64]]));
            }
            for column in (0..evidence.clipping.len()).filter(|&j| evidence.people.is_often_missing(j)) {
                found.push(serde_json::json!(["many missing", column as f64]));
            }
            assert_eq!(found, expected, "{}", case["name"]);
        });
        seen.extend(expected.iter().map(|of| of[0].as_str().unwrap().to_owned()));
    }
    for kind in ["no overlap", "overlap not seen", "overlap outside the declared range", "many missing"] {
        assert!(seen.iter().any(|of| of == kind), "no case has {kind}");
    }
}

#[test]
fn fits_where_people_differ_agree_with_the_reference() {
    let cases = cases();
    assert!(cases.len() >= 8);
    let mut of_people = 0.0_f64;
    for case in &cases {
        let (what, expected) = (case["name"].as_str().unwrap(), &case["expected"]);
        let label = case["label"].as_u64().unwrap() as usize;
        let features = indices(&case["features"]);
        let (fit, share) = with_evidence(case, &declared(case), |evidence| {
            let fit = posterior(evidence, label, &features, Level::default()).unwrap();
            (fit, explained_share(evidence, label, &features).unwrap())
        });
        assert_close(&fit.weights, &numbers(&expected["weights"]), what);
        assert_close(fit.estimate.weights(), &numbers(&expected["unshrunk"]), what);
        assert_close(&fit.estimate.standard_errors(), &numbers(&expected["standard_errors"]), what);
        let (low, high): (Vec<f64>, Vec<f64>) = fit.intervals.iter().map(|i| (i.lower, i.upper)).unzip();
        assert_close(&low, &numbers(&expected["low"]), what);
        assert_close(&high, &numbers(&expected["high"]), what);
        let parts = matrix(&expected["parts"]);
        for (at, part) in fit.parts.iter().enumerate() {
            let found =
                [part.privacy, part.mixing, part.correlations, part.sampling, part.clipping, part.people];
            let expected: Vec<f64> = parts.iter().map(|kind| kind[at]).collect();
            assert_close(&found, &expected, what);
            assert!((found.iter().sum::<f64>() - 1.0).abs() < 1e-12, "{what}");
            of_people = of_people.max(part.people);
        }
        let interval = share.interval(Level::default());
        let found = [share.estimate, share.standard_error, (interval.upper - interval.lower) / 2.0];
        assert_close(&found, &numbers(&expected["explained_share"]), what);
    }
    assert!(of_people > 1e-3, "who is where is never in doubt");
}

#[test]
fn what_is_declared_of_a_pair_goes_before_what_is_declared_of_all() {
    let case = &cases()[1];
    let all = [1.0, 1.0];
    let declared = DeclaredOverlaps::of_all(all).with((2, 0), [0.1, 0.2]);
    with_evidence(case, &declared, |evidence| {
        for overlap in evidence.people.overlaps() {
            if overlap.parties == (0, 2) {
                assert!((0.1..=0.2001).contains(&overlap.share), "{overlap:?}");
            } else {
                assert!((overlap.share - 1.0).abs() < 1e-12, "{overlap:?}");
            }
        }
        assert!(column_shifts(evidence).iter().all(|of| of.column != 2 && of.column != 3));
    });
}

#[test]
fn a_study_that_declares_everybody_everywhere_is_told_when_ids_do_not_match() {
    let case = &cases()[1];
    with_evidence(case, &DeclaredOverlaps::of_all([1.0, 1.0]), |evidence| {
        for overlap in evidence.people.overlaps() {
            assert_eq!(overlap.concern(), Some(OverlapConcern::Undeclared), "{overlap:?}");
        }
    });
    with_evidence(&cases()[0], &DeclaredOverlaps::of_all([1.0, 1.0]), |evidence| {
        assert!(evidence.people.overlaps().iter().all(|overlap| overlap.concern().is_none()));
    });
}

/// Four numeric columns of one party, of which three may be missing, and stages summed without
/// noise.
mod moments {
    use potluck_core::accounting::Mu;
    use potluck_core::calibrated::{Declared, Layout, PartyPlan, Plan};
    use potluck_core::encoding::{Bounds, EncodedRows, Encoder, Q, Values};
    use potluck_core::learn::LocalMoments;

    const MAY_MISS: [bool; 4] = [true, false, true, true];

    fn party(rows: u64) -> PartyPlan {
        let encoder = || Encoder::Numeric(Bounds::new(-1.0, 1.0).unwrap());
        let declared = MAY_MISS.map(|may_miss| Declared { may_miss, typical: None });
        let layout = Layout::of_cohort((0..4).map(|_| encoder()).collect(), &declared, rows);
        let mu = Mu::from_f64(64.0).unwrap();
        let plan = Plan::new(rows, mu, std::slice::from_ref(&layout), None).unwrap();
        plan.party(layout).unwrap()
    }

    /// Columns that go together, with values missing here and there.
    fn table(rows: usize) -> Vec<Vec<f64>> {
        let wave = |row: usize, by: f64| (row as f64 * by).sin();
        let value = |row: usize, column: usize| {
            let missing = MAY_MISS[column] && (row * (7 + column)) % 11 < 2 * column + 1;
            let common = wave(row, 0.7);
            if missing { f64::NAN } else { 0.2 * common + 0.1 * wave(row, 1.3 + column as f64) }
        };
        (0..4).map(|column| (0..rows).map(|row| value(row, column)).collect()).collect()
    }

    #[test]
    fn covariances_are_those_of_the_people_who_have_both_values() {
        let rows = 20_000;
        let (party, columns) = (party(rows as u64), table(rows));
        let mut sums: Vec<Vec<i64>> = Vec::new();
        for _ in 0..3 {
            let stage = party.stage(&sums).unwrap().unwrap();
            let values: Vec<Values<'_>> = columns.iter().map(|column| Values::Numbers(column)).collect();
            let mut encoded = EncodedRows::default();
            stage.encode(&values, rows, &mut encoded);
            let mut found = vec![0; stage.coordinates()];
            stage.accumulate(&[], 0, &encoded, &mut found);
            sums.push(found);
        }
        let frame = party.frame(&sums).unwrap();
        let moments = LocalMoments::new(&party, &sums, &frame).unwrap();
        let present = moments.present.as_ref().unwrap();
        assert_eq!(present.may_miss, MAY_MISS);
        // The ball cuts nobody here, so that every moment can be computed directly.
        let radius = (frame.ball.norm_squared() as f64).sqrt() / f64::from(Q);
        let standardised = |row: usize, column: usize| {
            let scaling = frame.scalings[column];
            let x = columns[column][row];
            x.is_finite().then(|| (x.clamp(scaling.low, scaling.high) - scaling.centre) / scaling.scale)
        };
        for i in 0..4 {
            for j in 0..4 {
                let both: Vec<(f64, f64)> = (0..rows)
                    .filter(|&row| {
                        let square = (0..4).filter_map(|c| standardised(row, c)).map(|x| x * x).sum::<f64>();
                        assert!(square.sqrt() < radius, "somebody is cut");
                        true
                    })
                    .filter_map(|row| Some((standardised(row, i)?, standardised(row, j)?)))
                    .collect();
                let n = both.len() as f64;
                assert!((present.pairs[i * 4 + j] - n).abs() < 1e-6, "{i} {j}");
                let mean = |of: fn(&(f64, f64)) -> f64| both.iter().map(of).sum::<f64>() / n;
                let covariance = mean(|x| x.0 * x.1) - mean(|x| x.0) * mean(|x| x.1);
                assert!((moments.covariance[i * 4 + j] - covariance).abs() < 1e-3, "{i} {j}");
            }
            assert!((present.counts[i].0 - present.pairs[i * 5]).abs() < 1e-6);
            assert!(present.counts[i].1 > 0.0 && moments.mean_noise[i] > 0.0);
        }
    }
}
