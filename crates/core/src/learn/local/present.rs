//! How many people have values, by the counts of releases whose parties hold different people
//! (docs/LEARNERS.md#different-people).

use crate::calibrated::{CalibratedError, PartyPlan};
use crate::noise::Sigma;
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
        let counts = party.present(sums)?;
        let variance = |sigma: Sigma| (sigma.get() as f64).powi(2);
        let (second, third) = (party.count_noise()[1], variance(joint.own));
        let error = |group: usize| {
            let second = variance(second[group]);
            (second * third / (second + third)).sqrt()
        };
        let groups = party.layout().encoded_groups();
        let count = presence.count();
        let mut both: Vec<f64> = (0..count * count).map(|at| counts[at / count]).collect();
        let found = &sums[2][sums[2].len() - count * (count - 1) / 2..];
        for ((g, h), &sum) in pairs(count).zip(found) {
            let possible = (sum as f64).min(counts[g]).min(counts[h]).max(1.0);
            both[g * count + h] = possible;
            both[h * count + g] = possible;
        }
        let always = (0..party.layout().encoders().len()).find(|&column| !presence.may_miss(column));
        let shared = always.map(|column| presence.group(column));
        Ok(Some(Self {
            may_miss: groups.iter().map(|&group| Some(group) != shared).collect(),
            counts: groups.iter().map(|&group| (counts[group], error(group))).collect(),
            pairs: groups
                .iter()
                .flat_map(|&g| groups.iter().map(move |&h| (g, h)))
                .map(|(g, h)| both[g * count + h])
                .collect(),
        }))
    }
}
