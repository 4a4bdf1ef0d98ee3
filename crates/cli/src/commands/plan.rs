//! `potluck plan`.

use std::fmt::Write as _;
use std::io;
use std::path::Path;

use anyhow::Result;
use potluck_core::planning::USEFUL;
use potluck_release::plan::{ExpectedAccuracy, Plan, PlanOfParty};
use potluck_release::statement::{self, Guarantee};
use potluck_release::study::Format;
use potluck_release::{AnyStudy, Error, Study};

use super::Settings;
use crate::args;
use crate::exit::WrongUsage;
use crate::output::{alarming, counted, number, size, table};

pub(super) fn run(arguments: &args::Plan, settings: &Settings<'_>) -> Result<()> {
    let study = load(&arguments.study, arguments.base.base.as_deref())?;
    if arguments.overlap.is_some() && study.definition().format() == Format::One {
        return Err(WrongUsage(
            "in a study of format 1 all parties hold the same people: leave --overlap out, or write the study with format = 2".to_owned(),
        )
        .into());
    }
    let (study, plan) = Plan::of_at(&study, arguments.overlap)?;
    settings.printer.result(&plan, || to_text(&study, &plan))
}

/// The study in a file; the one that it extends in another, if it is not sealed.
pub(super) fn load(path: &Path, base: Option<&Path>) -> Result<AnyStudy, Error> {
    let base = base.map(Study::load).transpose()?;
    AnyStudy::load(path, base.as_ref())
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

/// "200000 subjects", or about how many a party has where parties hold different people.
pub(super) fn subjects(study: &Study) -> String {
    let rows = study.definition().rows();
    match study.definition().format() {
        Format::One => format!("{rows} subjects"),
        Format::Two => format!("about {rows} subjects at each party"),
    }
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
    if let Some(overlap) = outlook.overlap {
        let _ = writeln!(
            text,
            "  if any two parties have {} of the smaller one's people in common (--overlap says otherwise);\n  people whom a party shares with no other only add noise: leave them out if both can tell who they are",
            percent(overlap)
        );
    }
    text.push_str("`potluck simulate` tries it on made-up data in this shape.\n\n");
    text
}

fn to_text(study: &Study, plan: &Plan) -> String {
    let definition = study.definition();
    let mut text = format!(
        "Study {:?}: {}, {}, {}, {} released rows\n\n",
        definition.name(),
        subjects(study),
        counted(definition.parties().len(), "party", "parties"),
        counted(definition.width(), "encoded column", "encoded columns"),
        plan.k,
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
    text.push_str("\nnoise share: how much of the variance of a party's released columns is noise, for typical columns\n\n");
    text.push_str(&outlook_text(&plan.outlook));
    let each = Guarantee::of_party(study);
    let joint = Guarantee::joint(study, definition.parties().len());
    let _ = writeln!(text, "Each party's release: {}", each.in_numbers());
    let _ = writeln!(text, "All releases jointly: {}\n", joint.in_numbers());
    for sentence in statement::joint(study, definition.parties().len()) {
        let _ = writeln!(text, "{sentence}");
    }
    text
}
