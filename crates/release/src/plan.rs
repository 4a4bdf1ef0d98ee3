//! What a study promises, costs and allows to find out, from public facts only.

use potluck_core::planning::{FUTILE, TYPICAL_SIGNAL};
use serde::Serialize;

use crate::Error;
use crate::statement::Guarantee;
use crate::study::{IdKind, Study};

/// What to expect of a study before anyone touches data.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Plan {
    /// Name of the study.
    pub study: String,
    /// Whether it is sealed. The numbers are the same before and after.
    pub sealed: bool,
    /// Its id, once it is sealed.
    pub id: Option<String>,
    /// n: the number of subjects.
    pub rows: u64,
    /// Number of released rows.
    pub k: u64,
    /// One a party, in the study's order.
    pub parties: Vec<PlannedParty>,
    /// The guarantee of each party's release.
    pub per_party: Guarantee,
    /// The guarantee of all releases together.
    pub joint: Guarantee,
    /// How accurate regressions will be.
    pub outlook: PlannedOutlook,
    /// What a careful person would ask about.
    pub warnings: Vec<String>,
    /// Size of the numbers in the public dataset; the file itself is compressed and smaller.
    pub dataset_bytes: u64,
}

/// What to expect of one party's release.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PlannedParty {
    /// The party.
    pub party: String,
    /// Number of its columns.
    pub columns: usize,
    /// Number of its encoded columns.
    pub encoded_columns: usize,
    /// The row norm, or the largest that it can be.
    pub row_norm: f64,
    /// Standard deviation of the noise in the mixed rows, or the largest that it can be.
    pub noise: f64,
    /// How much of the variance of its released columns is noise, for typical columns.
    pub noise_share: f64,
    /// Size of the numbers in its release.
    pub release_bytes: u64,
}

/// What to expect of a regression of one column on all others.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PlannedOutlook {
    /// What the others explain of the column, in this outlook.
    pub signal: f64,
    /// Standard error of a coefficient, in standard deviations of the label for one of the feature.
    pub coefficient_error: f64,
    /// The same at the party with the largest.
    pub worst_coefficient_error: f64,
    /// Of what can be explained, the part that a fit recovers.
    pub recovered: f64,
    /// Standard error of R².
    pub r_squared_error: f64,
    /// From how many subjects on it is useful, where that is known.
    pub smallest_useful_rows: Option<u64>,
}

impl Plan {
    /// The plan of a study; `sealed` is false for one that shows what a draft would become.
    pub fn new(study: &Study, sealed: bool) -> Result<Self, Error> {
        let definition = study.definition();
        let shares = noise_shares(study);
        let parties = definition.parties().iter().zip(shares).map(|(party, noise_share)| {
            let (row_norm, noise) = study.mixed_noise(party.name())?;
            Ok(PlannedParty {
                party: party.name().to_owned(),
                columns: party.columns().len(),
                encoded_columns: party.width(),
                row_norm,
                noise,
                noise_share,
                release_bytes: bytes(study, party.width()),
            })
        });
        Ok(Self {
            study: definition.name().to_owned(),
            sealed,
            id: sealed.then(|| study.id().to_owned()),
            rows: definition.rows(),
            k: study.seal().k(),
            parties: parties.collect::<Result<_, Error>>()?,
            per_party: Guarantee::of_party(study),
            joint: Guarantee::joint(study, definition.parties().len()),
            outlook: outlook(study)?,
            warnings: warnings(study),
            dataset_bytes: bytes(study, definition.width()),
        })
    }
}

fn outlook(study: &Study) -> Result<PlannedOutlook, Error> {
    let outlook = study.prospect()?.outlook(TYPICAL_SIGNAL);
    Ok(PlannedOutlook {
        signal: TYPICAL_SIGNAL,
        coefficient_error: outlook.coefficient_error,
        worst_coefficient_error: outlook.worst_coefficient_error,
        recovered: outlook.recovered,
        r_squared_error: outlook.r_squared_error,
        smallest_useful_rows: study.smallest_useful_rows(),
    })
}

/// Why a release under this study would be of no use, if it would be.
pub fn futility(study: &Study) -> Option<String> {
    let outlook = study.prospect().ok()?.outlook(TYPICAL_SIGNAL);
    (outlook.recovered < FUTILE).then(|| {
        format!(
            "with {} subjects at this ε, predicting the mean would do as well as a regression: of what the other columns explain of one, a fit would recover about {:.0}%. {}",
            study.definition().rows(),
            100.0 * outlook.recovered,
            study.smallest_useful_rows().map_or_else(
                || "More subjects, a larger ε, fewer columns or method calibrated would help.".to_owned(),
                |rows| format!("About {rows} subjects, a larger ε or fewer columns would make it useful.")
            )
        )
    })
}

/// What a careful person would ask about, from public facts.
fn warnings(study: &Study) -> Vec<String> {
    let definition = study.definition();
    let mut warnings = Vec::new();
    if definition.delta().get() * definition.rows() as f64 > 1.0 {
        warnings.push("δ is larger than 1 in the number of subjects, so it may allow publishing somebody's row; choose it well below.".to_owned());
    }
    if definition.epsilon().get() > 10.0 {
        warnings
            .push("ε is large: a release may let anyone recognise people with near certainty.".to_owned());
    }
    if definition.id_kind() == IdKind::Row {
        warnings.push("subjects are told apart by their position: all parties must list the same people in the same order, and the order must not depend on the data.".to_owned());
    }
    if let Some(futility) = futility(study) {
        warnings.push(futility);
    } else if noise_shares(study).iter().any(|&share| share > 0.95) {
        warnings.push("more than 95% of a released column is noise: expect intervals that include zero. More subjects, a larger ε or fewer columns a party would help.".to_owned());
    }
    warnings
}

/// By party, how much of a released column's variance is noise, for a typical column.
fn noise_shares(study: &Study) -> Vec<f64> {
    let Ok(prospect) = study.prospect() else { return vec![1.0; study.definition().parties().len()] };
    let signal = study.definition().rows() as f64 / study.seal().k() as f64;
    prospect.parties().iter().map(|party| party.noise_ratio / (party.noise_ratio + signal)).collect()
}

/// Size of the numbers in a file of so many columns.
fn bytes(study: &Study, columns: usize) -> u64 {
    study.seal().k() * columns as u64 * 8
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::study::Draft;

    fn draft() -> Draft {
        let column = |name: &str| json!({ "name": name, "lo": 0, "hi": 1, "unit": null });
        let document = json!({
            "format": 1,
            "study": { "name": "plan", "rows": 100_000, "id": "row", "k": null },
            "privacy": { "epsilon": 1.0, "delta": 1e-4 },
            "party": [
                { "name": "north", "column": [column("a"), column("b")] },
                { "name": "south", "column": [{ "name": "c", "levels": ["x", "y", "z"] }] },
            ],
        });
        Draft::from_json(&document).unwrap()
    }

    #[test]
    fn a_study_put_together_in_a_program_is_the_one_that_is_written() {
        let draft = draft();
        assert_eq!(Draft::parse(draft.text()).unwrap().definition(), draft.definition());
        let study = draft.preview().unwrap();
        assert_eq!(Study::parse(&study.to_toml()).unwrap(), study);
        let unknown = json!({ "format": 1, "colour": "red" });
        assert!(matches!(Draft::from_json(&unknown), Err(Error::StudySyntax { .. })));
    }

    #[test]
    fn a_plan_does_not_depend_on_the_seal() {
        let study = draft().preview().unwrap();
        let (before, after) = (Plan::new(&study, false).unwrap(), Plan::new(&study, true).unwrap());
        assert_eq!(after.id.as_deref(), Some(study.id()));
        assert_eq!(Plan { sealed: true, id: after.id.clone(), ..before.clone() }, after);
        assert_eq!(before.parties.iter().map(|party| party.encoded_columns).collect::<Vec<_>>(), [2, 3]);
        // Ids by position, and a δ that would allow publishing ten rows.
        assert!(before.warnings.iter().any(|warning| warning.contains("position")));
        assert!(before.warnings.iter().any(|warning| warning.contains("δ is larger")));
    }
}
