//! What a model says and what limits it, in plain words.

use maud::{Markup, html};
use potluck_core::learn::Estimand;
use potluck_release::Model;
use potluck_release::model::{Coefficient, Estimate, Learner, RSquared, Term};
use potluck_release::study::{Definition, IdKind, Method};

use crate::numbers;

/// As many names as a sentence bears.
const NAMES: usize = 12;
/// As many names as a headline bears.
const FEW: usize = 6;

/// Whether an interval excludes 0.
pub(crate) fn distinguishable(value: &Estimate) -> bool {
    value.low > 0.0 || value.high < 0.0
}

/// "mmHg per year": the unit of a coefficient.
pub(crate) fn per_unit(model: &Model, coefficient: &Coefficient) -> String {
    let label = label_unit(model);
    match (&coefficient.term, &coefficient.unit) {
        (Term::Level { level, .. }, _) => format!("{label} if {level}"),
        (Term::Numeric { .. }, Some(unit)) => format!("{label} per {}", singular(unit)),
        (Term::Numeric { .. }, None) => format!("{label} per unit"),
    }
}

/// One of a unit that people write in the plural: a rise is per year, not per years.
fn singular(unit: &str) -> &str {
    const PLURALS: [&str; 12] = [
        "years", "months", "weeks", "days", "hours", "minutes", "seconds", "points", "degrees", "units",
        "visits", "times",
    ];
    if PLURALS.contains(&unit) { &unit[..unit.len() - 1] } else { unit }
}

/// The unit of the label, or what stands for it.
pub(crate) fn label_unit(model: &Model) -> String {
    match (&model.label, &model.label_unit) {
        (Term::Level { .. }, _) => "share".to_owned(),
        (Term::Numeric { .. }, Some(unit)) => unit.clone(),
        (Term::Numeric { column, .. }, None) => column.clone(),
    }
}

/// A name that somebody chose: its direction of writing stays its own.
pub(crate) fn name(name: &str) -> Markup {
    html! { bdi { (name) } }
}

/// Names in a sentence: "a, b and c", the last few counted where there are many.
pub(crate) fn names(all: &[String]) -> Markup {
    let shown = if all.len() > NAMES { NAMES - 1 } else { all.len() };
    let hidden = all.len() - shown;
    html! {
        @for (at, one) in all[..shown].iter().enumerate() {
            @if at > 0 {
                @if at + 1 == all.len() { " and " } @else { ", " }
            }
            (name(one))
        }
        @if hidden > 0 { " and " (numbers::count(hidden as u64)) " more" }
    }
}

/// The one sentence to take home.
pub(crate) fn headline(model: &Model) -> Markup {
    let level = numbers::level(model.level);
    let (clear, unclear) = split(model);
    html! {
        @match (clear.len(), unclear.len()) {
            (0, 1) => { "The coefficient cannot be told from 0 at the " (level) " level." }
            (1, 0) => { "The coefficient differs from 0 at the " (level) " level." }
            (0, all) => { "None of the " (numbers::count(all as u64)) " coefficients can be told from 0 at the " (level) " level." }
            (all, 0) => { "All " (numbers::count(all as u64)) " coefficients differ from 0 at the " (level) " level." }
            (some, others) => {
                (numbers::count(some as u64)) " of " (numbers::count((some + others) as u64))
                " coefficients differ" @if some == 1 { "s" } " from 0 at the " (level) " level"
                @if some <= FEW { ": " (names(&clear)) }
                "."
            }
        }
    }
}

/// Names of the features whose intervals exclude 0, and of the others.
fn split(model: &Model) -> (Vec<String>, Vec<String>) {
    let (clear, unclear): (Vec<_>, Vec<_>) =
        model.coefficients.iter().partition(|one| distinguishable(&one.value));
    let names = |some: Vec<&Coefficient>| some.into_iter().map(|one| one.term.name()).collect();
    (names(clear), names(unclear))
}

/// What limits a fit: points of a few words each, with what there is to say.
pub(crate) fn limits(model: &Model, definition: &Definition) -> Vec<(&'static str, Markup)> {
    let mut points = Vec::new();
    if let Some(fault) = model.diagnostics.fault() {
        points.push(("Not sound", html! { (sentence(fault)) }));
    }
    points.push(("Chance", chance(model)));
    points.push(("Privacy noise", noise(model)));
    points.push(("What is estimated", estimand(model)));
    if model.diagnostics.released_rows < model.diagnostics.rows {
        points.push(("Mixing", html! {
            (numbers::count(model.diagnostics.rows)) " people were mixed into " (numbers::count(model.diagnostics.released_rows))
            " released rows. Even without noise, estimates would vary about as much as those from a sample of "
            (numbers::count(model.diagnostics.released_rows)) " people."
        }));
    }
    if !model.free_intercept {
        points.push(("No free intercept", html! {
            "The fit passes through the middle of every public range. Where the average of a column lies far from that middle, the coefficients take up the difference."
        }));
    }
    points.push(("Fit", fit(model)));
    points
}

fn chance(model: &Model) -> Markup {
    let level = numbers::level(model.level);
    let (clear, unclear) = split(model);
    html! {
        @if !clear.is_empty() {
            "Distinguishable from 0 at the " (level) " level: " (names(&clear)) ". "
        }
        @if !unclear.is_empty() {
            "Not distinguishable from 0: " (names(&unclear))
            ". That is no evidence of no effect: the interval shows which effects remain possible. "
        }
        @if model.coefficients.len() > 1 {
            "Each interval is for its coefficient alone; of 100 coefficients that are truly 0, about "
            (numbers::significant((1.0 - model.level) * 100.0, 3)) " would seem to differ by chance."
        }
    }
}

fn noise(model: &Model) -> Markup {
    let by_share = |a: &&Coefficient, b: &&Coefficient| a.noise_share.total_cmp(&b.noise_share);
    let (Some(least), Some(most)) =
        (model.coefficients.iter().min_by(by_share), model.coefficients.iter().max_by(by_share))
    else {
        return html! {};
    };
    let one = |coefficient: &Coefficient| {
        html! { (numbers::percent(coefficient.noise_share)) " (" (name(&coefficient.term.name())) ")" }
    };
    html! {
        @if model.coefficients.len() == 1 {
            "Noise makes up " (one(most)) " of the variance that was released for the feature."
        } @else {
            "Noise makes up between " (one(least)) " and " (one(most)) " of the variance that was released for a feature."
        }
        @if most.noise_share > 1.0 {
            " A share over 100% means that the released variance is smaller than the noise alone would make it on average: nothing of the feature itself is visible."
        }
    }
}

fn estimand(model: &Model) -> Markup {
    let attenuated = model.estimand == Estimand::Attenuated.to_string();
    html! {
        (sentence(&model.estimand))
        @if model.estimand == Estimand::Study.to_string() {
            " They are what the parties' tables would give side by side and without noise; the intervals say how far the estimates may be from it."
        }
        @if attenuated {
            " Noise pulls them towards 0, most where its share is largest: a feature that is uncorrelated with the others keeps 1 minus its noise share of its coefficient. The intervals are about these attenuated values and need not cover those of the study itself."
        }
        @let smallest = model.diagnostics.eigenvalues.as_ref().map_or(f64::INFINITY, |values| values.smallest_absolute);
        @let shrinkage = model.ridge / smallest;
        @if shrinkage > 0.01 {
            " A ridge of " (numbers::significant(model.ridge, 6)) " shrinks them, by up to "
            (numbers::percent(shrinkage.min(1.0))) ": the intervals do not show that."
        }
        " They describe what goes together in these people, not what causes what."
    }
}

fn fit(model: &Model) -> Markup {
    let where_from = match model.learner {
        Learner::Ols => "in the released rows, noise included",
        Learner::Debiased => "in the study, with the noise taken out",
        Learner::Posterior => "in the study, judged by rows that were held out",
    };
    html! {
        @match model.diagnostics.r_squared {
            Some(RSquared { estimate: share, interval }) => {
                "R² is " (figure(share, 3))
                @if let Some([low, high]) = interval { " (interval " (figure(low, 3)) " to " (figure(high, 3)) ")" }
                ": the features explain " (numbers::percent(share)) " of the variation of "
                (name(&model.label.name())) " about the middle of its range, " (where_from) "."
            }
            None => {
                "R² cannot be estimated here: the noise outweighs what was released of the label or of the features."
            }
        }
    }
}

/// A number for people that carries its exact value for machines.
pub(crate) fn figure(value: f64, digits: usize) -> Markup {
    html! { data value=(numbers::exact(value)) { (numbers::significant(value, digits)) } }
}

/// How a learner works.
pub(crate) fn learner(learner: Learner) -> &'static str {
    match learner {
        Learner::Ols => "least squares on the released rows",
        Learner::Debiased => "least squares with the known noise variance subtracted",
        Learner::Posterior => {
            "every covariance by its posterior mean, given what is known of noise and mixing"
        }
    }
}

/// How parties release.
pub(crate) fn method(definition: &Definition) -> &'static str {
    match definition.method() {
        Method::Calibrated => {
            "columns standardised privately, local moments, then random mixing of people, each with Gaussian noise (calibrated)"
        }
        Method::Rmgm => "random mixing of people, then Gaussian noise (rmgm)",
        Method::Dgm => "Gaussian noise on every row (dgm)",
    }
}

/// What identifies a person.
pub(crate) fn id_kind(definition: &Definition) -> &'static str {
    match definition.id_kind() {
        IdKind::Integer => "whole numbers",
        IdKind::Text => "text",
        IdKind::Row => "the position in the table",
    }
}

/// A clause as a sentence.
fn sentence(clause: &str) -> String {
    let mut letters = clause.chars();
    let first: String = letters.next().into_iter().flat_map(char::to_uppercase).collect();
    format!("{first}{}.", letters.as_str())
}

/// The commands that check the dataset and fit the model again.
pub(crate) fn commands(model: &Model) -> String {
    let features: Vec<String> = model.coefficients.iter().map(|one| one.term.name()).collect();
    let features = if features.iter().any(|name| name.contains(',') || name.trim() != name) {
        features.iter().map(|name| format!("--feature {}", quoted(name))).collect::<Vec<_>>().join(" ")
    } else {
        format!("--features {}", quoted(&features.join(",")))
    };
    // The defaults of `potluck fit` may change; what a report says must not.
    format!(
        "potluck verify dataset.parquet\npotluck fit dataset.parquet --label {} {features} --learner {} --ridge {:?} --level {:?} --report report.html",
        quoted(&model.label.name()),
        model.learner.name(),
        model.ridge,
        model.level,
    )
}

/// A word as a POSIX shell takes it.
fn quoted(word: &str) -> String {
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
