//! `potluck fit`.

use std::fmt::Write as _;
use std::io;

use anyhow::Result;
use potluck_core::learn::{Level, Ridge};
use potluck_release::files::{Audience, check_writable, refuse_same_file, write_file};
use potluck_release::findings::{HEADING, Said};
use potluck_release::fit::{Regression, fit};
use potluck_release::model::{Coefficient, Estimate, Kind, Parts, RSquared, Term};
use potluck_release::{Error, Model, PublicDataset};

use super::Settings;
use crate::args::Fit;
use crate::exit::WrongUsage;
use crate::output::{alarming, number, table, wrapped};

pub(super) fn run(arguments: &Fit, settings: &Settings<'_>) -> Result<()> {
    for path in [&arguments.report, &arguments.out].into_iter().flatten() {
        refuse_same_file(path, &[&arguments.dataset])?;
        check_writable(path, settings.existing)?;
    }
    if arguments.report.is_some() && arguments.report == arguments.out {
        return Err(WrongUsage(
            "--report and --out name the same file; give them different names".to_owned(),
        )
        .into());
    }
    let trimmed = |names: &Vec<String>| names.iter().map(|name| name.trim().to_owned()).collect();
    let features = if arguments.feature.is_empty() {
        arguments.features.as_ref().map(trimmed)
    } else {
        Some(arguments.feature.clone())
    };
    let dataset = PublicDataset::read(&arguments.dataset)?;
    let regression = Regression {
        label: arguments.label.clone(),
        features,
        kind: arguments.model.into(),
        learner: arguments.learner.into(),
        ridge: Ridge::new(arguments.ridge).map_err(Error::from)?,
        level: Level::new(arguments.level).map_err(Error::from)?,
    };
    let model = fit(&dataset, &regression)?;
    if let Some(path) = &arguments.out {
        model.write(path, settings.existing)?;
        settings.printer.note(&format!("model in {}", path.display()));
    }
    if let Some(path) = &arguments.report {
        let page = potluck_report::page(&model, &dataset);
        write_file(path, page.as_bytes(), settings.existing, Audience::Public)?;
        settings.printer.note(&format!("report in {}", path.display()));
    }
    settings.printer.result(&model, || to_text(&model))
}

pub(super) fn interval(estimate: &Estimate) -> String {
    format!("[{}, {}]", number(estimate.low), number(estimate.high))
}

/// The regression for people: whether it is about the same people at all, the sentence to take
/// home, what else speaks against it, then the numbers, then what they mean.
pub(super) fn to_text(model: &Model) -> String {
    let unit = model.label_unit.as_ref().map_or(String::new(), |unit| format!(" ({unit})"));
    let mut text = alarms(model);
    let _ = writeln!(text, "{}", wrapped(&model.headline().to_string(), ""));
    text.push_str(&findings(model));
    let log_odds = if model.kind == Kind::Logistic { "Log odds of " } else { "" };
    let _ = writeln!(text, "{log_odds}{}{unit} by {}:\n", model.label.name(), model.learner.name());
    text.push_str(&coefficients(model));
    text.push_str(&odds_ratios(model));
    text.push_str(&collinear(model));
    text.push_str(&cut_to(model));
    text.push_str(&facts(model));
    text.push_str(&parts(model));
    text.push_str(&meaning(model));
    text
}

/// What a reader must know before the first number: nothing where nothing speaks against the fit.
pub(super) fn opening(model: &Model) -> String {
    alarms(model) + &findings(model)
}

/// Where parties do not seem to hold the same people, nothing else means anything.
fn alarms(model: &Model) -> String {
    let findings = model.findings();
    let of_people = findings.iter().filter(|said| said.is_about_people());
    let one = |said: &Said| {
        let said = wrapped(&format!("Careful: {}", said.sentence), "");
        format!("{}\n\n", alarming(said.trim_end(), &io::stdout()))
    };
    of_people.map(one).collect()
}

/// All other findings.
fn findings(model: &Model) -> String {
    let fault = model.diagnostics.fault().map(|fault| format!("Careful: {fault}."));
    let findings = model.findings();
    let others = findings.iter().filter(|said| !said.is_about_people());
    let sentences: Vec<String> =
        fault.into_iter().chain(others.map(|said| said.sentence.to_string())).collect();
    if sentences.is_empty() {
        return String::new();
    }
    let mut text = alarming(&format!("{HEADING}:"), &io::stdout());
    text.push('\n');
    for sentence in sentences {
        text.push_str(&wrapped(&sentence, "- "));
    }
    text.push('\n');
    text
}

/// Whether the learner knows what the uncertainty is made of.
fn has_parts(model: &Model) -> bool {
    model.coefficients.iter().all(|coefficient| coefficient.parts.is_some())
}

/// One line a coefficient; the last column says what speaks against it, where something does.
fn coefficients(model: &Model) -> String {
    let last = if has_parts(model) { "to predict" } else { "noise share" };
    let percent = format!("{}% interval", (1e6 * model.level).round() / 1e4);
    let mut header = vec!["", "estimate", "std. error", &percent, last];
    if model.coefficients.iter().any(|coefficient| !coefficient.findings.is_empty()) {
        header.push("findings");
    }
    let mut rows: Vec<Vec<String>> =
        model.coefficients.iter().map(|coefficient| coefficient_row(model, coefficient)).collect();
    rows.push(intercept_row(model));
    for row in &mut rows {
        row.resize(header.len(), String::new());
    }
    table(&header, &rows)
}

/// A term, with what a level is compared with.
fn feature(model: &Model, term: &Term) -> String {
    match model.reference(term) {
        Some(reference) => format!("{} ({reference})", term.name()),
        None => term.name(),
    }
}

/// What to know of features that the others say nearly all of.
fn collinear(model: &Model) -> String {
    let said = model.collinear();
    let lines: String = said.iter().map(|sentence| wrapped(&sentence.to_string(), "- ")).collect();
    if lines.is_empty() { lines } else { format!("\nFeatures that go together:\n{lines}") }
}

fn coefficient_row(model: &Model, coefficient: &Coefficient) -> Vec<String> {
    let last =
        if has_parts(model) { number(coefficient.prediction) } else { percent(coefficient.noise_share) };
    let mut row = vec![
        feature(model, &coefficient.term),
        number(coefficient.value.estimate),
        number(coefficient.value.standard_error),
        interval(&coefficient.value),
        last,
    ];
    row.extend(coefficient.mark());
    row
}

fn intercept_row(model: &Model) -> Vec<String> {
    let value = &model.intercept;
    if !model.free_intercept {
        return vec!["(implied intercept)".to_owned(), number(value.estimate)];
    }
    let mut row =
        vec!["(intercept)".to_owned(), number(value.estimate), number(value.standard_error), interval(value)];
    row.extend(has_parts(model).then(|| number(model.prediction_intercept)));
    row
}

/// Odds ratios with their intervals. A table of its own: beside the log odds it would not fit on a
/// terminal.
fn odds_ratios(model: &Model) -> String {
    if model.kind == Kind::Linear {
        return String::new();
    }
    let row = |one: &Coefficient| {
        let ratio = one.value.ratio();
        vec![one.term.name(), number(ratio.estimate), interval(&ratio)]
    };
    let rows: Vec<Vec<String>> = model.coefficients.iter().map(row).collect();
    let percent = format!("{}% interval", (1e6 * model.level).round() / 1e4);
    format!("\nOdds ratios, per unit of each feature:\n\n{}", table(&["", "odds ratio", &percent], &rows))
}

/// What values were cut to, where a coefficient is about cut values.
fn cut_to(model: &Model) -> String {
    let cuts: Vec<String> = model.cut_to().iter().map(ToString::to_string).collect();
    if cuts.is_empty() { String::new() } else { format!("\nCut at least to: {}\n", cuts.join(", ")) }
}

fn facts(model: &Model) -> String {
    let diagnostics = &model.diagnostics;
    let mark = model.r_squared_mark().map_or(String::new(), |mark| format!(" ({mark})"));
    let n = if model.estimand.is_of_label_people() { "people of the label's party" } else { "n" };
    let (rows, released) = (diagnostics.rows, diagnostics.released_rows);
    let known = r_squared(diagnostics.r_squared);
    let mut text = match &model.classification {
        None => format!("\n{n} = {rows}, released rows = {released}, R² = {known}{mark}\n"),
        Some(found) => {
            let within = |value: f64, [low, high]: [f64; 2]| format!("{value:.3} [{low:.3}, {high:.3}]");
            format!(
                "\n{n} = {rows}, released rows = {released}, R² of the linear regression = {known}{mark}\n\
                 share of {} = {}\n\
                 area under the curve = {} on new people\n\
                 calibration slope = {} on new people, before predictions were shrunk by it\n",
                model.label.name(),
                within(found.share, found.share_interval),
                within(found.area, found.area_interval),
                within(found.calibration, found.calibration_interval),
            )
        }
    };
    if let Some(values) = &diagnostics.eigenvalues {
        let (smallest, error) = (number(values.smallest), number(values.smallest_error));
        let _ = writeln!(text, "smallest eigenvalue = {smallest} ± {error}");
    }
    text
}

fn r_squared(known: Option<RSquared>) -> String {
    match known {
        None => "not known".to_owned(),
        Some(RSquared { estimate, interval: None }) => format!("{estimate:.3}"),
        Some(RSquared { estimate, interval: Some([low, high]) }) => {
            // Noise may take it beyond what a share can be; files have it as it is.
            let [estimate, low, high] = [estimate, low, high].map(|share| share.clamp(0.0, 1.0));
            format!("{estimate:.3} [{low:.3}, {high:.3}]")
        }
    }
}

/// What each variance is made of. A table of its own: beside the estimates it would not fit on a
/// terminal.
fn parts(model: &Model) -> String {
    if !has_parts(model) {
        return String::new();
    }
    let mut header = vec!["", "privacy", "mixing", "correlations", "sampling", "clipping"];
    header.extend((model.kind == Kind::Logistic).then_some("approximation"));
    let of_people = |coefficient: &Coefficient| coefficient.parts.is_some_and(|parts| parts.people > 0.0);
    if model.coefficients.iter().any(of_people) {
        header.push("people");
    }
    let row = |coefficient: &Coefficient| {
        let Parts { privacy, mixing, correlations, sampling, clipping, people, approximation } =
            coefficient.parts?;
        let approximation = (model.kind == Kind::Logistic).then_some(approximation);
        let shares = [privacy, mixing, correlations, sampling, clipping].into_iter();
        let shares = shares.chain(approximation).chain([people]).map(percent);
        Some([coefficient.term.name()].into_iter().chain(shares).take(header.len()).collect())
    };
    let rows: Vec<Vec<String>> = model.coefficients.iter().filter_map(row).collect();
    format!("\nWhat the variance of each estimate is made of:\n\n{}", table(&header, &rows))
}

fn percent(share: f64) -> String {
    format!("{:.0}%", 100.0 * share)
}

fn meaning(model: &Model) -> String {
    let mut text = format!("\nThese are {}.\n", model.estimated());
    if has_parts(model) {
        text.push_str("\"to predict\": the coefficient to predict with, shrunk where the data resolve little. correlations: those between parties that the releases leave open.\n");
    }
    if model.kind == Kind::Logistic {
        text.push_str("approximation: an allowance for what moments do not say of log odds. Predictions are probabilities.\n");
    }
    if !model.free_intercept {
        text.push_str("No intercept is estimated: the fit passes through the middle of all bounds. Where the average of a column lies far from it, the slopes absorb the difference.\n");
    } else if !model.findings().is_empty() {
        text.push_str("The intercept follows from the coefficients: what speaks against one of them speaks against it.\n");
    }
    text
}
