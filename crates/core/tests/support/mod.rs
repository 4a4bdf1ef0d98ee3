//! Cases of the numerical references of the learner, as tests read them.
// Not every test reads everything.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used)]

use potluck_core::learn::{Clipping, Tails};
use serde_json::Value;

pub fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|number| number.as_f64().unwrap()).collect()
}

pub fn matrix(value: &Value) -> Vec<Vec<f64>> {
    value.as_array().unwrap().iter().map(numbers).collect()
}

pub fn indices(value: &Value) -> Vec<usize> {
    value.as_array().unwrap().iter().map(|number| number.as_u64().unwrap() as usize).collect()
}

pub fn flags(value: &Value) -> Vec<bool> {
    value.as_array().unwrap().iter().map(|flag| flag.as_bool().unwrap()).collect()
}

pub fn clipping(case: &Value) -> Vec<Clipping> {
    let [attenuation, box_part, scale_error, kurtosis, believable_variance] =
        ["attenuation", "box_part", "scale_error", "kurtosis", "believable_variance"]
            .map(|name| numbers(&case[name]));
    let (numeric, tails) = (flags(&case["numeric"]), matrix(&case["tails"]));
    (0..attenuation.len())
        .map(|j| Clipping {
            attenuation: attenuation[j],
            box_part: box_part[j],
            scale_error: scale_error[j],
            kurtosis: kurtosis[j],
            believable_variance: believable_variance[j],
            numeric: numeric[j],
            tails: Tails {
                excess: tails[0][j],
                excess_error: tails[1][j],
                shift: tails[2][j],
                shift_error: tails[3][j],
            },
        })
        .collect()
}

pub fn assert_close(found: &[f64], expected: &[f64], what: &str) {
    let scale = expected.iter().fold(0.0_f64, |most, value| most.max(value.abs()));
    assert_eq!(found.len(), expected.len(), "{what}");
    for (a, b) in found.iter().zip(expected) {
        assert!((a - b).abs() <= 1e-6 * scale, "{what}: {found:?} instead of {expected:?}");
    }
}
