//! `potluck plan`.

use std::fmt::Write as _;
use std::io;
use std::path::Path;

use anyhow::Result;
use potluck_core::planning::USEFUL;
use potluck_release::plan::{ExchangeOfParty, ExpectedAccuracy, Otherwise, Plan, PlanOfParty};
use potluck_release::statement::{self, Guarantee, rounded_up};
use potluck_release::study::Method;
use potluck_release::{AnyStudy, Error, Study};

use super::Settings;
use crate::args;
use crate::output::{alarming, counted, number, size, table};

pub(super) fn run(arguments: &args::Plan, settings: &Settings<'_>) -> Result<()> {
    let (study, plan) = Plan::of(&load(&arguments.study, arguments.base.base.as_deref())?)?;
    settings.printer.result(&plan, || to_text(&study, &plan))
}

/// The study in a file; the one that it extends in another, if it is not sealed.
pub(super) fn load(path: &Path, base: Option<&Path>) -> Result<AnyStudy, Error> {
    let base = base.map(Study::load).transpose()?;
    AnyStudy::load(path, base.as_ref())
}

/// How many rows a study releases, in words.
pub(super) fn released_text(study: &Study) -> String {
    match study.definition().method() {
        Method::Exchange => "products of every two parties".to_owned(),
        Method::Calibrated | Method::Rmgm | Method::Dgm => format!("{} released rows", study.seal().k()),
    }
}

/// What an extension adds to, in words.
pub(super) fn extends_text(base: &Study, new: usize) -> String {
    format!(
        "It adds {} to study {:?}, id {}",
        counted(new, "party", "parties"),
        base.definition().name(),
        base.id()
    )
}

/// What to expect, in words.
fn outlook_text(outlook: &ExpectedAccuracy) -> String {
    let percent = |share: f64| format!("{:.0}%", 100.0 * share);
    let mut text = format!(
        "What to expect of a regression of one column on all others, if they explain {} of it:\n",
        percent(outlook.signal)
    );
    let _ = writeln!(
        text,
        "  standard error of a coefficient: {} (worst party {}), in standard deviations of the label for one of the feature",
        number(outlook.coefficient_error),
        number(outlook.worst_coefficient_error)
    );
    let _ = writeln!(text, "  standard error of R²: {}", number(outlook.r_squared_error));
    let _ = writeln!(text, "  of what can be explained, a fit recovers about {}", percent(outlook.recovered));
    if let Some(rows) = outlook.smallest_useful_rows {
        let _ = writeln!(text, "  useful (recovers {}) from about {rows} subjects on", percent(USEFUL));
    }
    text
}

/// What parties of an exchange do, in words.
fn exchange_text(plan: &Plan) -> String {
    let names = |names: &[String]| if names.is_empty() { "–".to_owned() } else { names.join(", ") };
    let row = |party: &ExchangeOfParty| {
        vec![
            party.party.clone(),
            names(&party.offers_to),
            names(&party.replies_to),
            size(party.sends_bytes),
            size(party.receives_bytes),
        ]
    };
    let rows: Vec<_> = plan.exchange.iter().map(row).collect();
    format!(
        "What parties do: each publishes means and spreads of its columns; then every two of them exchange three\n\
         messages. One sends its encrypted rows, the other multiplies them with its own, and the first publishes the\n\
         noised products.\n{}\n",
        table(&["party", "sends its rows to", "multiplies those of", "sends", "receives"], &rows)
    )
}

/// What the other method would give, in a sentence.
fn otherwise_text(plan: &Plan, otherwise: &Otherwise) -> String {
    let asks = if otherwise.method == Method::Exchange.word() {
        "experimental: the same people at all parties, known to partners, and three messages"
    } else {
        "one file of each party, which need not be there at the same time"
    };
    format!(
        "With method = {:?} ({asks}): a fit would recover about {:.0}% instead of {:.0}%, with a standard error of a coefficient of {} instead of {}; jointly ε = {} instead of {}.\n",
        otherwise.method,
        100.0 * otherwise.outlook.recovered,
        100.0 * plan.outlook.recovered,
        number(otherwise.outlook.coefficient_error),
        number(plan.outlook.coefficient_error),
        rounded_up(otherwise.joint.epsilon),
        rounded_up(plan.joint.epsilon),
    )
}

fn to_text(study: &Study, plan: &Plan) -> String {
    let definition = study.definition();
    let mut text = format!(
        "Study {:?}: {} subjects, {}, {}, {}\n\n",
        definition.name(),
        definition.rows(),
        counted(definition.parties().len(), "party", "parties"),
        counted(definition.width(), "encoded column", "encoded columns"),
        released_text(study),
    );
    if let Some(base) = study.base() {
        text.insert_str(text.len() - 1, &format!("{}\n", extends_text(base, study.own_parties().len())));
    }
    let row = |party: &PlanOfParty| {
        vec![
            party.party.clone(),
            party.columns.to_string(),
            party.encoded_columns.to_string(),
            number(party.noise),
            format!("{:.0}%", 100.0 * party.noise_share),
            size(party.release_bytes),
        ]
    };
    let rows: Vec<_> = plan.parties.iter().map(row).collect();
    text.push_str(&table(&["party", "columns", "encoded", "noise sd", "noise share", "size"], &rows));
    if !plan.sealed {
        text.push_str("\nNot sealed yet: run `potluck study seal` when all parties agree.\n");
    }
    for warning in &plan.warnings {
        let _ = writeln!(text, "\n{}", alarming(&format!("Careful: {warning}"), &io::stdout()));
    }
    if plan.exchange.is_empty() {
        text.push_str("\nnoise share: how much of the variance of a party's released columns is noise, for typical columns\n\n");
    } else {
        text.push_str("\nnoise share: how much of the square of a correlation of 1 with another party is noise, for typical columns\n\n");
        text.push_str(&exchange_text(plan));
    }
    text.push_str(&outlook_text(&plan.outlook));
    if let Some(otherwise) = &plan.otherwise {
        text.push_str(&otherwise_text(plan, otherwise));
    }
    text.push_str("`potluck simulate` tries it on made-up data in this shape.\n\n");
    let each = Guarantee::of_party(study);
    let joint = Guarantee::joint(study, definition.parties().len());
    let _ = writeln!(text, "Each party's release: {}", each.in_numbers());
    let _ = writeln!(text, "All releases jointly: {}\n", joint.in_numbers());
    for sentence in statement::joint(study, definition.parties().len()) {
        let _ = writeln!(text, "{sentence}");
    }
    text
}
