//! What a careful person would ask about before signing: found in one place, and said in the same
//! words by plan, check, seal, acceptance and release, by a hub's pages and by Python.

use crate::Error;
use crate::plan::{futility, noise_shares};
use crate::statement::{self, Guarantee};
use crate::study::{IdKind, Study};

/// From this ε on, a promise says little.
const LARGE_EPSILON: f64 = 10.0;

/// From this share of noise on, a column is mostly that.
const DROWNED: f64 = 0.95;

/// What there is to ask about a study, for whoever reads it.
pub fn of_study(study: &Study) -> Result<Vec<String>, Error> {
    let mut warnings = Vec::new();
    for party in study.own_parties() {
        warnings.extend(statement::refusals(study, party.name())?);
    }
    warnings.extend(of_everyone(study)?);
    Ok(warnings)
}

/// What there is to ask about a study, for the party that is about to sign it.
pub fn of_party(study: &Study, party: &str) -> Result<Vec<String>, Error> {
    let own = statement::refusals(study, party)?;
    Ok(own.into_iter().chain(of_everyone(study)?).collect())
}

/// What concerns all parties alike.
fn of_everyone(study: &Study) -> Result<Vec<String>, Error> {
    let definition = study.definition();
    let mut warnings = Vec::new();
    if definition.delta().get() * definition.rows() as f64 > 1.0 {
        warnings.push("δ is larger than 1 in the number of subjects, so it may allow publishing somebody's row; choose it well below.".to_owned());
    }
    let joint = Guarantee::joint(study, definition.parties().len());
    if definition.epsilon().get() > LARGE_EPSILON {
        warnings
            .push("ε is large: a release may let anyone recognise people with near certainty.".to_owned());
    } else if joint.epsilon > LARGE_EPSILON {
        warnings.push(format!(
            "all releases together promise little, {}: they may let anyone recognise people with near certainty, though each alone does not. A smaller ε or fewer parties would help.",
            joint.in_short()
        ));
    }
    if definition.id_kind() == IdKind::Row {
        warnings.push("subjects are told apart by their position: all parties must list the same people in the same order, and the order must not depend on the data.".to_owned());
    }
    if let Some(futility) = futility(study) {
        warnings.push(futility.to_string());
    } else if noise_shares(study)?.iter().any(|&share| share > DROWNED) {
        warnings.push("more than 95% of a released column is noise: expect intervals that include zero. More subjects, a larger ε or fewer columns a party would help.".to_owned());
    }
    Ok(warnings)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::study::Unsealed;

    fn study(epsilon: f64, delta: f64, parties: usize) -> Study {
        let party = |at: usize| {
            let column = json!({ "name": format!("c{at}"), "levels": ["x", "y"], "unknown": "error" });
            json!({ "name": format!("p{at}"), "column": [column] })
        };
        let document = json!({
            "format": 1,
            "study": { "name": "warned", "rows": 1_000_000, "id": "integer" },
            "privacy": { "epsilon": epsilon, "delta": delta },
            "party": (0..parties).map(party).collect::<Vec<_>>(),
        });
        Unsealed::from_json(&document, None).unwrap().preview().unwrap()
    }

    fn says(warnings: &[String], words: &str) -> bool {
        warnings.iter().any(|warning| warning.contains(words))
    }

    #[test]
    fn each_warning_is_said_where_it_holds_and_nowhere_else() {
        let kind = of_study(&study(1.0, 1e-8, 2)).unwrap();
        assert!(!says(&kind, "δ is larger") && !says(&kind, "ε is large") && !says(&kind, "together"));
        assert!(says(&of_study(&study(1.0, 1e-5, 2)).unwrap(), "δ is larger than 1 in the number"));
        assert!(says(&of_study(&study(11.0, 1e-8, 2)).unwrap(), "ε is large"));
        let together = of_study(&study(9.0, 1e-8, 4)).unwrap();
        assert!(says(&together, "all releases together promise little") && !says(&together, "ε is large"));
    }

    #[test]
    fn a_party_is_told_of_its_own_refusals_and_of_what_concerns_everyone() {
        let study = study(11.0, 1e-8, 2);
        let (all, own) = (of_study(&study).unwrap(), of_party(&study, "p1").unwrap());
        assert!(says(&all, "p0 refuse") && says(&all, "p1 refuse"));
        assert!(!says(&own, "p0 refuse") && says(&own, "p1 refuse") && says(&own, "ε is large"));
    }
}
