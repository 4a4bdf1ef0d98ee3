//! What a model says, in plain words.

use maud::{Markup, html};
use potluck_release::findings::{Piece, Sentence};
use potluck_release::model::{Coefficient, Kind, Learner, Term};
use potluck_release::study::{DAYS, Definition, IdKind, Method};
use potluck_release::{Model, Study};

use crate::numbers;

/// As many names as a sentence bears.
const NAMES: usize = 12;

/// "Regression" or "Logistic regression".
pub(crate) fn regression(kind: Kind) -> &'static str {
    match kind {
        Kind::Linear => "Regression",
        Kind::Logistic => "Logistic regression",
    }
}

/// "mmHg per year": the unit of a coefficient.
pub(crate) fn per_unit(model: &Model, coefficient: &Coefficient) -> String {
    let label = label_unit(model);
    match (&coefficient.term, &coefficient.unit) {
        (term @ Term::Level { level, .. }, _) => match model.reference(term) {
            Some(reference) => format!("{label} if {level} {reference}"),
            None => format!("{label} if {level}"),
        },
        (Term::Numeric { .. }, Some(unit)) => format!("{label} per {}", singular(unit)),
        (Term::Numeric { .. }, None) => format!("{label} per unit"),
    }
}

/// "one year more": the rise of a feature that a coefficient is about.
pub(crate) fn rise(coefficient: &Coefficient) -> String {
    match (&coefficient.term, &coefficient.unit) {
        (Term::Level { level, .. }, _) => format!("{level}, not another"),
        (Term::Numeric { .. }, Some(unit)) => format!("one {} more", singular(unit)),
        (Term::Numeric { .. }, None) => "one unit more".to_owned(),
    }
}

/// One of a unit that people write in the plural: a rise is per year, not per years.
fn singular(unit: &str) -> &str {
    const PLURALS: [&str; 12] = [
        "years", "months", "weeks", "days", "hours", "minutes", "seconds", "points", "degrees", "units",
        "visits", "times",
    ];
    // Days are counted from a first one, but a rise has none.
    let unit = if unit == DAYS { "days" } else { unit };
    if PLURALS.contains(&unit) { &unit[..unit.len() - 1] } else { unit }
}

/// The unit of the label, or what stands for it.
pub(crate) fn label_unit(model: &Model) -> String {
    if model.kind == Kind::Logistic {
        return "log odds".to_owned();
    }
    match (&model.label, &model.label_unit) {
        (Term::Level { .. }, _) => "share".to_owned(),
        (Term::Numeric { .. }, Some(unit)) => unit.clone(),
        (Term::Numeric { column, .. }, None) => column.clone(),
    }
}

/// A name that somebody chose: its direction of writing stays its own.
pub fn name(name: &str) -> Markup {
    html! { bdi { (name) } }
}

/// Names in a sentence: "a, b and c", the last few counted where there are many. Each comes with
/// the words before it; words without a name may end the list.
pub(crate) fn named(all: &[String]) -> Vec<(String, Option<&str>)> {
    let shown = if all.len() > NAMES { NAMES - 1 } else { all.len() };
    let before = |at: usize| match at {
        0 => "",
        at if at + 1 == all.len() => " and ",
        _ => ", ",
    };
    let mut pieces: Vec<_> = all[..shown]
        .iter()
        .enumerate()
        .map(|(at, one)| (before(at).to_owned(), Some(one.as_str())))
        .collect();
    if shown < all.len() {
        pieces.push((format!(" and {} more", numbers::count((all.len() - shown) as u64)), None));
    }
    pieces
}

/// Names in a sentence, as markup.
pub fn names(all: &[String]) -> Markup {
    html! {
        @for (before, one) in named(all) {
            (before)
            @if let Some(one) = one { (name(one)) }
        }
    }
}

/// A sentence about findings, as markup.
pub(crate) fn sentence_markup(sentence: &Sentence) -> Markup {
    html! {
        @for piece in sentence.pieces() {
            @match piece { Piece::Words(words) => (words), Piece::Name(one) => (name(one)) }
        }
    }
}

/// The sentence to take home, and what must be said with it.
pub(crate) fn headline(model: &Model) -> Markup {
    sentence_markup(&model.headline())
}

/// A number for people that carries its exact value for machines.
pub(crate) fn figure(value: f64, digits: usize) -> Markup {
    exactly(value, &numbers::significant(value, digits))
}

/// A share of one for people, within 0 and 1, that carries its exact value for machines.
pub(crate) fn share(value: f64, decimals: usize) -> Markup {
    exactly(value, &numbers::share(value, decimals))
}

/// What is shown of a number, with its exact value for machines.
pub(crate) fn exactly(value: f64, shown: &str) -> Markup {
    html! {
        @if value.is_nan() { (shown) } @else { data value=(numbers::exact(value)) { (shown) } }
    }
}

/// How a learner works.
pub fn learner(learner: Learner) -> &'static str {
    match learner {
        Learner::Ols => "least squares on the released rows",
        Learner::Debiased => "least squares with the known noise variance subtracted",
        Learner::Posterior => {
            "every covariance by its posterior mean, given what is known of noise and mixing"
        }
    }
}

/// How many rows are released.
pub fn released_rows(study: &Study) -> String {
    match study.definition().method() {
        Method::Exchange => "none, but products of every two parties".to_owned(),
        Method::Calibrated | Method::Rmgm | Method::Dgm => numbers::count(study.seal().k()),
    }
}

/// How parties release.
pub fn method(definition: &Definition) -> &'static str {
    match definition.method() {
        Method::Calibrated => {
            "columns standardised privately, local moments, then random mixing of people, each with Gaussian noise (calibrated)"
        }
        Method::Rmgm => "random mixing of people, then Gaussian noise (rmgm)",
        Method::Dgm => "Gaussian noise on every row (dgm)",
        Method::Exchange => {
            "columns standardised privately, local moments, then products that every two parties compute together, each with Gaussian noise (exchange, experimental)"
        }
    }
}

/// What identifies a person.
pub fn id_kind(definition: &Definition) -> &'static str {
    match definition.id_kind() {
        IdKind::Integer => "whole numbers",
        IdKind::Text => "text",
        IdKind::Row => "the position in the table",
    }
}

/// A clause as a sentence.
pub(crate) fn sentence(clause: &str) -> String {
    format!("{}.", capital(clause))
}

/// The words with a capital letter first.
pub(crate) fn capital(words: &str) -> String {
    let mut letters = words.chars();
    let first: String = letters.next().into_iter().flat_map(char::to_uppercase).collect();
    format!("{first}{}", letters.as_str())
}

/// The commands that check the dataset and fit the model again.
pub(crate) fn commands(model: &Model) -> String {
    let features: Vec<String> = model.coefficients.iter().map(|one| one.term.name()).collect();
    let features = feature_arguments(&features);
    let kind = if model.kind == Kind::Logistic { " --model logistic" } else { "" };
    // The defaults of `potluck fit` may change; what a report says must not.
    format!(
        "potluck verify dataset.parquet\npotluck fit dataset.parquet --label {}{kind} {features} --learner {} --ridge {:?} --level {:?} --report report.html",
        quoted(&model.label.name()),
        model.learner.name(),
        model.ridge,
        model.level,
    )
}

/// Features as `potluck fit` takes them on a command line.
pub fn feature_arguments(features: &[String]) -> String {
    if features.iter().any(|name| name.contains(',') || name.trim() != name) {
        features.iter().map(|name| format!("--feature {}", quoted(name))).collect::<Vec<_>>().join(" ")
    } else {
        format!("--features {}", quoted(&features.join(",")))
    }
}

/// A word as a POSIX shell takes it.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-=.,:/@%+".contains(c);
    if !word.is_empty() && !word.starts_with('-') && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_for_the_shell() {
        assert_eq!(quoted("smoker=yes,age"), "smoker=yes,age");
        assert_eq!(quoted("blood pressure"), "'blood pressure'");
        assert_eq!(quoted("it's $(here)"), r"'it'\''s $(here)'");
        assert_eq!(quoted(""), "''");
    }

    #[test]
    fn many_names_are_counted() {
        let all: Vec<String> = (0..20).map(|at| format!("x{at}")).collect();
        assert_eq!(names(&all[..1]).into_string(), "<bdi>x0</bdi>");
        assert_eq!(names(&all[..3]).into_string(), "<bdi>x0</bdi>, <bdi>x1</bdi> and <bdi>x2</bdi>");
        assert!(names(&all).into_string().ends_with("<bdi>x10</bdi> and 9 more"));
    }

    #[test]
    fn units_are_singular_after_per() {
        assert_eq!(singular("years"), "year");
        assert_eq!(singular("kg/m²"), "kg/m²");
        assert_eq!(singular("siemens"), "siemens");
    }

    #[test]
    fn a_clause_becomes_a_sentence() {
        assert_eq!(sentence("the noise outweighs"), "The noise outweighs.");
        assert_eq!(sentence(""), ".");
    }
}
