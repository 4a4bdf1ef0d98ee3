//! `potluck plan`.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::Result;
use potluck_core::planning::USEFUL;
use potluck_release::plan::{PlannedOutlook, PlannedParty};
use potluck_release::{Draft, Error, Plan, Study, statement};

use super::Settings;
use crate::args;
use crate::output::{counted, number, size, table};

pub(super) fn run(arguments: &args::Plan, settings: &Settings<'_>) -> Result<()> {
    let (study, sealed) = load(&arguments.study)?;
    let plan = Plan::new(&study, sealed)?;
    settings.printer.result(&plan, || to_text(&study, &plan))
}

/// The study; if it is not sealed yet, with the numbers it would be sealed with.
pub(super) fn load(path: &Path) -> Result<(Study, bool)> {
    match Study::load(path) {
        Ok(study) => Ok((study, true)),
        Err(Error::NotSealed) => Ok((Draft::load(path)?.preview()?, false)),
        Err(error) => Err(error.into()),
    }
}

/// What to expect, in words.
fn outlook_text(outlook: &PlannedOutlook) -> String {
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
    text.push_str("`potluck simulate` tries it on made-up data in this shape.\n\n");
    text
}

fn to_text(study: &Study, plan: &Plan) -> String {
    let definition = study.definition();
    let mut text = format!(
        "Study {:?}: {} subjects, {}, {}, {} released rows\n\n",
        plan.study,
        plan.rows,
        counted(plan.parties.len(), "party", "parties"),
        counted(definition.width(), "encoded column", "encoded columns"),
        plan.k,
    );
    let row = |party: &PlannedParty| {
        vec![
            party.party.clone(),
            party.columns.to_string(),
            party.encoded_columns.to_string(),
            number(party.noise),
            format!("{:.0}%", 100.0 * party.noise_share),
            size(party.release_bytes),
        ]
    };
    let rows: Vec<Vec<String>> = plan.parties.iter().map(row).collect();
    text.push_str(&table(&["party", "columns", "encoded", "noise sd", "noise share", "size"], &rows));
    if !plan.sealed {
        text.push_str("\nNot sealed yet: run `potluck study seal` when all parties agree.\n");
    }
    for warning in &plan.warnings {
        let _ = writeln!(text, "\nCareful: {warning}");
    }
    text.push_str("\nnoise share: how much of the variance of a party's released columns is noise, for typical columns\n\n");
    text.push_str(&outlook_text(&plan.outlook));
    let _ = writeln!(text, "Each party's release: {}", plan.per_party.in_numbers());
    let _ = writeln!(text, "All releases jointly: {}\n", plan.joint.in_numbers());
    for sentence in statement::joint(study, plan.parties.len()) {
        let _ = writeln!(text, "{sentence}");
    }
    text
}
