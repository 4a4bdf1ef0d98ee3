//! What a study promises and costs, from public facts only: before anyone touches data.

use std::fmt;

use potluck_core::planning::{FUTILE, Outlook, TYPICAL_SIGNAL};
use serde::Serialize;

use crate::Error;
use crate::exchange::GuaranteeNumbers;
use crate::forecast::{Asked, Forecast, resolves};
use crate::statement::Guarantee;
use crate::study::{AnyStudy, Format, Study};
use crate::warnings;

/// What a study promises and costs.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Plan {
    /// Name of the study.
    pub study: String,
    /// Whether it is sealed.
    pub sealed: bool,
    /// Its id, if it is sealed.
    pub id: Option<String>,
    /// The id of the study that it extends.
    pub extends: Option<String>,
    /// Number of subjects.
    pub rows: u64,
    /// Number of released rows.
    pub k: u64,
    /// The parties that release under this very study.
    pub own_parties: Vec<String>,
    /// All parties, those of the studies it extends first.
    pub parties: Vec<PlanOfParty>,
    /// What each party's release promises.
    pub per_party: GuaranteeNumbers,
    /// What the releases of all parties promise together.
    pub joint: GuaranteeNumbers,
    /// What to expect of a regression.
    pub outlook: ExpectedAccuracy,
    /// What to expect of each coefficient, as a range.
    pub forecast: Forecast,
    /// What a careful person would ask about.
    pub warnings: Vec<String>,
    /// Size of the numbers in the public dataset; the file is compressed and smaller.
    pub dataset_bytes: u64,
}

/// One party's part.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PlanOfParty {
    /// Its name.
    pub party: String,
    /// Number of columns.
    pub columns: u64,
    /// Number of encoded columns.
    pub encoded_columns: u64,
    /// Largest norm of a row, in encoded units.
    pub row_norm: f64,
    /// Standard deviation of the noise in the released rows.
    pub noise: f64,
    /// How much of the variance of a released column is noise, for a typical column.
    pub noise_share: f64,
    /// Size of the numbers in its release; the file is compressed and smaller.
    pub release_bytes: u64,
}

/// What to expect of a regression of one column on all others.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ExpectedAccuracy {
    /// How much of the label the features are taken to explain.
    pub signal: f64,
    /// The share of the smaller one's people that any two parties are taken to have in common, in
    /// studies whose parties may hold different people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overlap: Option<f64>,
    /// Standard error of a coefficient, in standard deviations of the label for one of the feature.
    pub coefficient_error: f64,
    /// The same for the party whose coefficients are the least certain.
    pub worst_coefficient_error: f64,
    /// How much of what can be explained a fit recovers.
    pub recovered: f64,
    /// Standard error of R².
    pub r_squared_error: f64,
    /// The smallest number of subjects at which such a study becomes useful, where it is known.
    pub smallest_useful_rows: Option<u64>,
}

impl Plan {
    /// The plan of a study; of one that is not sealed yet, with the numbers it would be sealed
    /// with.
    pub fn new(study: &Study, sealed: bool, asked: &Asked) -> Result<Self, Error> {
        let definition = study.definition();
        let taken = asked.overlap.unwrap_or_else(|| study.usual_overlap());
        let shares = noise_shares(study)?;
        let mut parties = Vec::new();
        for (party, noise_share) in definition.parties().iter().zip(shares) {
            let (row_norm, noise) = study.mixed_noise(party.name())?;
            parties.push(PlanOfParty {
                party: party.name().to_owned(),
                columns: party.columns().len() as u64,
                encoded_columns: party.width() as u64,
                row_norm,
                noise,
                noise_share,
                release_bytes: bytes(study, party.width()),
            });
        }
        let outlook = study.prospect_at(taken)?.outlook(TYPICAL_SIGNAL);
        Ok(Self {
            study: definition.name().to_owned(),
            sealed,
            id: sealed.then(|| study.id().to_owned()),
            extends: definition.extends().map(str::to_owned),
            own_parties: study.own_parties().iter().map(|party| party.name().to_owned()).collect(),
            rows: definition.rows(),
            k: study.seal().k(),
            per_party: Guarantee::of_party(study).into(),
            joint: Guarantee::joint(study, definition.parties().len()).into(),
            outlook: ExpectedAccuracy {
                signal: TYPICAL_SIGNAL,
                overlap: (definition.format() == Format::Two).then_some(taken),
                coefficient_error: outlook.coefficient_error,
                worst_coefficient_error: outlook.worst_coefficient_error,
                recovered: outlook.recovered,
                r_squared_error: outlook.r_squared_error,
                smallest_useful_rows: study.smallest_useful_rows(taken),
            },
            forecast: Forecast::of(study, asked)?,
            warnings: warnings::of_study(study)?,
            dataset_bytes: bytes(study, definition.width()),
            parties,
        })
    }

    /// The plan of a study, sealed or not, and the study with all its numbers. None depends on the
    /// key.
    pub fn of(study: &AnyStudy) -> Result<(Study, Self), Error> {
        Self::asked(study, &Asked::default())
    }

    /// The same about a label, and the people that an effect of some size takes.
    pub fn asked(study: &AnyStudy, asked: &Asked) -> Result<(Study, Self), Error> {
        let (study, sealed) = study.numbers()?;
        let plan = Self::new(&study, sealed, asked)?;
        Ok((study, plan))
    }
}

fn outlook(study: &Study) -> Result<Outlook, Error> {
    Ok(study.prospect()?.outlook(TYPICAL_SIGNAL))
}

/// Why a release under a study would be of no use.
#[derive(Clone, Debug, PartialEq)]
pub struct Futility {
    /// Number of subjects.
    pub rows: u64,
    /// How much of what can be explained a fit would recover.
    pub recovered: f64,
    /// Whether some effect could be told from 0, if the columns suit the release: by this method,
    /// and by any.
    pub resolves: [bool; 2],
    /// The smallest number of subjects at which such a study becomes useful, where it is known.
    pub smallest_useful_rows: Option<u64>,
}

impl fmt::Display for Futility {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "with {} subjects at this ε, predicting the mean would do as well as a regression: of what the other columns explain of one, a fit would recover about {:.0}%. ",
            self.rows,
            100.0 * self.recovered
        )?;
        match self.resolves {
            [true, _] => {}
            [false, true] => f.write_str("Not even an effect of one standard deviation could be told from 0, however well the columns suit the release; another method of release could. ")?,
            [false, false] => f.write_str("No method of release could tell even an effect of one standard deviation from 0, however well the columns suit it. ")?,
        }
        match self.smallest_useful_rows {
            None => f.write_str("More subjects, a larger ε, fewer columns or method calibrated would help."),
            Some(rows) => {
                write!(f, "About {rows} subjects, a larger ε or fewer columns would make it useful.")
            }
        }
    }
}

/// Why a release under this study would be of no use, if it would be.
pub fn futility(study: &Study) -> Option<Futility> {
    let recovered = outlook(study).ok()?.recovered;
    let resolves = resolves(study).ok()?;
    (recovered < FUTILE || !resolves[0]).then(|| Futility {
        rows: study.definition().rows(),
        recovered,
        resolves,
        smallest_useful_rows: study.smallest_useful_rows(study.usual_overlap()),
    })
}

/// By party, how much of a released column's variance is noise, for a typical column.
pub(crate) fn noise_shares(study: &Study) -> Result<Vec<f64>, Error> {
    let signal = study.definition().rows() as f64 / study.seal().k() as f64;
    let prospect = study.prospect()?;
    Ok(prospect.parties().iter().map(|party| party.noise_ratio / (party.noise_ratio + signal)).collect())
}

/// Size of the numbers in a file of so many columns.
fn bytes(study: &Study, columns: usize) -> u64 {
    study.seal().k() * columns as u64 * 8
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::study::{Draft, Unsealed};

    fn draft() -> Unsealed {
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
        Unsealed::from_json(&document, None).unwrap()
    }

    #[test]
    fn a_study_put_together_in_a_program_is_the_one_that_is_written() {
        let draft = draft();
        assert_eq!(Draft::parse(draft.text()).unwrap().definition(), draft.definition());
        let study = draft.preview().unwrap();
        assert_eq!(Study::parse(&study.to_toml()).unwrap(), study);
        let unknown = json!({ "format": 1, "colour": "red" });
        assert!(matches!(Unsealed::from_json(&unknown, None), Err(Error::Study(_))));
    }

    #[test]
    fn a_plan_does_not_depend_on_the_seal() {
        let study = draft().preview().unwrap();
        let plan = |sealed| Plan::new(&study, sealed, &Asked::default()).unwrap();
        let (before, after) = (plan(false), plan(true));
        assert_eq!(after.id.as_deref(), Some(study.id()));
        assert_eq!(Plan { sealed: true, id: after.id.clone(), ..before.clone() }, after);
        assert_eq!(before.parties.iter().map(|party| party.encoded_columns).collect::<Vec<_>>(), [2, 3]);
        // Ids by position, and a δ that would allow publishing ten rows.
        assert!(before.warnings.iter().any(|warning| warning.contains("position")));
        assert!(before.warnings.iter().any(|warning| warning.contains("δ is larger")));
    }
}
