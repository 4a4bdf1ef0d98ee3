//! How many people have values, by the counts of releases whose parties hold different people
//! (docs/LEARNERS.md#different-people).

use crate::calibrated::{CalibratedError, PartyPlan};
use crate::planning::kept_by_ball;
use crate::stage::pairs;

/// How many people have the values of each encoded column, and of each two.
#[derive(Clone, Debug, PartialEq)]
pub struct PresentValues {
    /// By column, whether values may be missing; all others have one count.
    pub may_miss: Vec<bool>,
    /// By column, how many people have a value, at least 1, and the standard deviation of the noise
    /// in that.
    pub counts: Vec<(f64, f64)>,
    /// For each two columns, how many people have both, at least 1, row by row.
    pub pairs: Vec<f64>,
}

impl PresentValues {
    /// From the noised sums of a party's stages before the mixed rows; nothing in releases of
    /// format 1.
    pub(super) fn new(party: &PartyPlan, sums: &[Vec<i64>]) -> Result<Option<Self>, CalibratedError> {
        let (Some(presence), Some(joint)) = (party.layout().presence(), party.joint_noise()) else {
            return Ok(None);
        };
        let (counts, errors) = (party.present(sums)?, party.present_errors());
        let groups = party.layout().encoded_groups();
        let count = presence.count();
        let mut both: Vec<f64> = (0..count * count).map(|at| counts[at / count]).collect();
        let found = &sums[2][sums[2].len() - count * (count - 1) / 2..];
        for ((g, h), &sum) in pairs(count).zip(found) {
            let most = counts[g].min(counts[h]);
            // What its noise hides says nothing, and would blow up what is divided by it.
            let possible = (sum as f64).max(joint.both.get() as f64).min(most).max(1.0);
            both[g * count + h] = possible;
            both[h * count + g] = possible;
        }
        let always = (0..party.layout().encoders().len()).find(|&column| !presence.may_miss(column));
        let shared = always.map(|column| presence.group(column));
        Ok(Some(Self {
            may_miss: groups.iter().map(|&group| Some(group) != shared).collect(),
            counts: groups.iter().map(|&group| (counts[group], errors[group])).collect(),
            pairs: groups
                .iter()
                .flat_map(|&g| groups.iter().map(move |&h| (g, h)))
                .map(|(g, h)| both[g * count + h])
                .collect(),
        }))
    }
}

/// A party's moments as the ball left them.
pub(super) struct Clipped<'a> {
    /// For each two columns, how many people have both, row by row.
    pub(super) pairs: &'a [f64],
    /// Variances before the ball.
    pub(super) resolved: Vec<f64>,
    /// Covariances after it, row by row, with their noise.
    pub(super) covariance: &'a [f64],
    pub(super) noise: f64,
    pub(super) radius: f64,
}

impl Clipped<'_> {
    /// By what covariances are multiplied because the ball cuts people who have both values more
    /// than those who have one, row by row: variances, by which it is measured what it cut, are
    /// over the latter. Rows count as bell-shaped.
    pub(super) fn together(&self) -> Vec<f64> {
        let d = self.resolved.len();
        let given = |j: usize, o: usize| (self.pairs[j * d + o] / self.pairs[j * d + j]).min(1.0);
        let alone: Vec<f64> =
            (0..d).map(|j| self.kept(&(0..d).map(|o| given(j, o)).collect::<Vec<f64>>())).collect();
        let mut factors = vec![1.0; d * d];
        for (i, j) in pairs(d) {
            let there =
                |o: usize| if o == i || o == j { 1.0 } else { f64::midpoint(given(i, o), given(j, o)) };
            let both = self.kept(&(0..d).map(there).collect::<Vec<f64>>());
            factors[i * d + j] = (alone[i] * alone[j]).sqrt() / both;
            factors[j * d + i] = factors[i * d + j];
        }
        factors
    }

    /// The share of their spread that the ball leaves to rows in which columns are there so often:
    /// their squared norm is about g·χ²_h.
    fn kept(&self, there: &[f64]) -> f64 {
        let d = there.len();
        let before = |j: usize| self.resolved[j].clamp(0.02, 1.0);
        let after = |j: usize| self.covariance[j * d + j].max(3.0 * self.noise);
        let mean: f64 = (0..d).map(|j| there[j] * before(j)).sum();
        let own: f64 = (0..d).map(|j| there[j] * (3.0 - there[j]) / 2.0 * before(j).powi(2)).sum();
        let joint = |(i, j): (usize, usize)| {
            let square = (self.covariance[i * d + j].powi(2) - self.noise.powi(2)).max(0.0);
            there[i] * there[j] * before(i) * before(j) * (square / (after(i) * after(j))).min(1.0)
        };
        let half_variance = own + 2.0 * pairs(d).map(joint).sum::<f64>();
        kept_by_ball(mean * mean / half_variance, self.radius / mean.sqrt())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn numbers(value: &Value) -> Vec<f64> {
        value.as_array().unwrap().iter().map(|number| number.as_f64().unwrap()).collect()
    }

    fn matrix(value: &Value) -> Vec<f64> {
        value.as_array().unwrap().iter().flat_map(numbers).collect()
    }

    #[test]
    fn what_is_cut_together_agrees_with_the_reference() {
        let cases: Vec<Value> =
            serde_json::from_str(include_str!("../../../../../vectors/cohorts/together.json")).unwrap();
        assert_eq!(cases.len(), 2);
        for case in &cases {
            let clipped = Clipped {
                pairs: &matrix(&case["pairs"]),
                resolved: numbers(&case["resolved"]),
                covariance: &matrix(&case["covariance"]),
                noise: case["noise"].as_f64().unwrap(),
                radius: case["radius"].as_f64().unwrap(),
            };
            let expected = matrix(&case["expected"]);
            assert!(expected.iter().any(|factor| *factor > 1.005));
            for (found, expected) in clipped.together().iter().zip(&expected) {
                assert!((found - expected).abs() < 1e-6, "{found} instead of {expected}");
            }
        }
    }
}
