//! What a release promises to a person in the data, in words and numbers.

use potluck_core::accounting::{MuSquared, epsilon_for};
use serde::Serialize;

use crate::Error;
use crate::study::{Column, Format, IdKind, LARGER, Study, TableRows};

/// A guarantee in the three forms people ask for. Every number is rounded against us.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Guarantee {
    /// ε.
    pub epsilon: f64,
    /// δ.
    pub delta: f64,
    /// The Gaussian-DP parameter.
    pub mu: f64,
    /// The best chance to notice a person's data at a rate of false alarms of 5%.
    #[serde(rename = "detection_at_5_percent")]
    pub detection: f64,
}

impl Guarantee {
    /// Of one party's release.
    pub fn of_party(study: &Study) -> Self {
        let definition = study.definition();
        let mu = study.mu().to_f64();
        Self {
            epsilon: definition.epsilon().get(),
            delta: definition.delta().get(),
            mu,
            detection: detection(mu),
        }
    }

    /// Of the releases of `parties` parties together.
    ///
    /// # Privacy
    /// √(Σμ²) is what Theorem 4 (docs/PRIVACY.md#composition) proves, Theorem 6
    /// (docs/PRIVACY.md#latecomers) for studies that extend others.
    pub fn joint(study: &Study, parties: usize) -> Self {
        if parties <= 1 {
            return Self::of_party(study);
        }
        Self::of_budget(study.joint_mu_squared(parties), study.definition().delta().get())
    }

    /// Of everything charged to a budget, at this δ.
    ///
    /// # Privacy
    /// The smallest ε of Theorem 2 (docs/PRIVACY.md#from-μ-to-ε-δ) at this δ, rounded up.
    pub fn of_budget(mu_squared: MuSquared, delta: f64) -> Self {
        let epsilon = match potluck_core::accounting::Delta::new(delta) {
            Ok(delta) => epsilon_for(mu_squared, delta),
            Err(_) => f64::INFINITY,
        };
        let mu = mu_squared.mu_upper();
        Self { epsilon, delta, mu, detection: detection(mu) }
    }

    /// The guarantee with as many digits as matter: "ε = 1, δ = 1e-5 (0.269-GDP)".
    pub fn in_short(&self) -> String {
        format!("ε = {}, δ = {:e} ({}-GDP)", for_people(self.epsilon), self.delta, for_people(self.mu))
    }

    /// The guarantee as releases record it: "ε = 1, δ = 1e-5 (0.268052-GDP)".
    pub fn in_numbers(&self) -> String {
        format!("ε = {}, δ = {:e} ({}-GDP)", rounded_up(self.epsilon), self.delta, rounded_up(self.mu))
    }
}

/// Φ(Φ⁻¹(0.05) + μ): the largest power of a test at level 5% (Dong, Roth & Su 2022), rounded up.
fn detection(mu: f64) -> f64 {
    const QUANTILE_05: f64 = -1.644_853_626_951_472_7;
    let z = QUANTILE_05 + mu;
    let power = 0.5 * libm::erfc(-z / std::f64::consts::SQRT_2);
    // What is rounded up stays a chance.
    ((power * 1e4 + 1e-6).ceil() / 1e4).min(1.0)
}

/// How often a person is noticed at most, in words.
fn at_most(detection: f64) -> String {
    let cases = format!("at most {:.2} cases of 100", detection * 100.0);
    if detection < 1.0 {
        return cases;
    }
    format!("{cases}, which is no limit: at this ε, a person may be noticed every time")
}

/// Six significant digits, rounded up: what releases record, so that it never changes.
fn rounded_up(value: f64) -> f64 {
    up_to(6, value)
}

/// As many digits as matter to people: a number that somebody chose as it is, one that follows from
/// others with three significant digits, rounded up.
pub fn for_people(value: f64) -> f64 {
    let recorded = rounded_up(value);
    if recorded.to_bits() == value.to_bits() { value } else { up_to(3, value) }
}

/// So many significant digits, rounded up.
fn up_to(digits: usize, value: f64) -> f64 {
    let rounded = |value: f64| format!("{value:.*e}", digits - 1).parse().unwrap_or(value);
    let nearest: f64 = rounded(value);
    if nearest >= value || !value.is_finite() {
        return nearest;
    }
    let last_digit = 10_f64.powi(value.abs().log10().floor() as i32 + 1 - digits as i32);
    rounded(nearest + last_digit)
}

/// What the release of `party` promises.
pub fn of_party(study: &Study, party: &str) -> Result<Vec<String>, Error> {
    let definition = study.definition();
    let columns = definition.party(party)?.columns();
    let mut names: Vec<String> = columns.iter().take(8).map(|column| column.name().to_owned()).collect();
    if columns.len() > names.len() {
        names.push(format!("{} more", columns.len() - names.len()));
    }
    let guarantee = Guarantee::of_party(study);
    let change = match (definition.id_kind(), definition.format()) {
        (_, Format::Two) => {
            format!(
                "Replacing one person's row, id included, in the table of {party}, adding it or removing it"
            )
        }
        (IdKind::Row, Format::One) => format!("Replacing the values in one row in the table of {party}"),
        (IdKind::Integer | IdKind::Text, Format::One) => {
            format!("Replacing one person's row, id included, in the table of {party}")
        }
    };
    let rows = match definition.table_rows(definition.party(party)?) {
        TableRows::Exactly(rows) => format!("the table has {rows} rows"),
        TableRows::About(rows) => format!("the table has about {rows} rows, at most {LARGER} times as many"),
    };
    Ok(vec![
        format!("{change} changes the distribution of its release by at most {}.", guarantee.in_numbers()),
        format!(
            "In other words: whoever knows everything but one person's {}, and accepts a false alarm in 5 cases of 100, notices whether that person's true values were used in {}.",
            names.join(", "),
            at_most(guarantee.detection)
        ),
        format!(
            "This holds whatever else is known, for any number of regressions, and forever. Taken as public: the study itself, that {rows}, and that the release exists."
        ),
    ])
}

/// What the release of `party` promises, alone and together with those of the other parties of the
/// study.
pub fn of_release(study: &Study, party: &str) -> Result<Vec<String>, Error> {
    Ok([of_party(study, party)?, joint(study, study.definition().parties().len())].concat())
}

/// What `party` gives away, beside its release, if the study makes it refuse a table for what
/// stands in it; nothing if the study does not.
pub fn refusals(study: &Study, party: &str) -> Result<Option<String>, Error> {
    let columns = study.definition().party(party)?.columns();
    let named = |refuses: fn(&Column) -> bool, what: &str| {
        let names: Vec<&str> = columns.iter().filter(|column| refuses(column)).map(Column::name).collect();
        (!names.is_empty()).then(|| format!("{what} {}", names.join(", ")))
    };
    let reasons: Vec<String> = [
        named(Column::refuses_unknown, "with a value that is not among the levels of"),
        named(Column::refuses_missing, "with a missing value of"),
    ]
    .into_iter()
    .flatten()
    .collect();
    if reasons.is_empty() {
        return Ok(None);
    }
    Ok(Some(format!(
        "this study makes {party} refuse its table if there is a single row {}. A refusal is an answer about the data that no noise protects and no budget limits: everyone who learns of it, by an error, an exit code or a release that does not come, knows that somebody has such a value, and the author of the next study can ask again with other levels. Agree to this only if everyone may know the answer; otherwise ask for unknown = \"missing\" or \"other\", and missing = \"midpoint\".",
        reasons.join(", or ")
    )))
}

/// What the releases of `parties` parties promise together.
pub fn joint(study: &Study, parties: usize) -> Vec<String> {
    let guarantee = Guarantee::joint(study, parties);
    let all = study.definition().parties().len();
    let mut sentences = if parties == 1 {
        vec![format!("The joint guarantee of one release is its own: {}.", guarantee.in_numbers())]
    } else {
        vec![
            format!(
                "A person whose rows are in all {parties} releases has the joint guarantee {}: the releases together reveal more than each alone.",
                guarantee.in_numbers()
            ),
            format!(
                "At a false alarm in 5 cases of 100, the person's presence with true values is noticed in {}.",
                at_most(guarantee.detection)
            ),
        ]
    };
    if parties < all {
        sentences.push(format!(
            "The study has {all} parties; a person in the releases of all of them has {}.",
            Guarantee::joint(study, all).in_numbers()
        ));
    }
    sentences
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn six_digits_are_never_less_than_the_value() {
        for (value, expected) in [
            (1.0, 1.0),
            (2.706_385_1, 2.70639),
            (0.268_051_2, 0.268_052),
            (1e-20, 1e-20),
            (0.0, 0.0),
            (999_999.9, 1e6),
        ] {
            assert_eq!(rounded_up(value).to_bits(), f64::to_bits(expected), "{value}");
        }
        assert!(rounded_up(f64::INFINITY).is_infinite());
    }

    #[test]
    fn people_see_as_many_digits_as_matter_and_never_less_than_the_value() {
        for (value, expected) in
            [(1.2345, 1.2345), (2.706_385_1, 2.71), (0.268_051_2, 0.269), (99.92, 99.92), (99.999_999, 100.0)]
        {
            assert_eq!(for_people(value).to_bits(), f64::to_bits(expected), "{value}");
        }
        assert!(for_people(f64::INFINITY).is_infinite());
    }

    #[test]
    fn nobody_is_noticed_more_often_than_always() {
        for mu in [6.0, 7.0, 9.84, 40.0, f64::INFINITY] {
            assert!(detection(mu) <= 1.0, "{mu}");
        }
        assert_eq!(at_most(0.2706), "at most 27.06 cases of 100");
        let always = at_most(detection(9.84));
        assert!(always.starts_with("at most 100.00 cases of 100, which is no limit"), "{always}");
    }

    #[test]
    fn detection_is_the_power_of_the_best_test() {
        // Φ(Φ⁻¹(0.05) + μ) at μ = 0 and μ = 1, from tables: 0.05 and 0.25951.
        assert!((detection(0.0) - 0.05).abs() < 2e-4);
        assert!((detection(1.0) - 0.2596).abs() < 2e-4);
    }
}
