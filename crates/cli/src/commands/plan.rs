//! `potluck plan`.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::Result;
use potluck_core::mixing::MixingKey;
use potluck_release::statement::{self, Guarantee};
use potluck_release::study::{IdKind, Party};
use potluck_release::{Draft, Error, Study};
use serde_json::{Value, json};

use super::Settings;
use crate::args::Plan;
use crate::output::{counted, number, size, table};

pub(super) fn run(arguments: &Plan, settings: &Settings<'_>) -> Result<()> {
    let (study, sealed) = load(&arguments.study)?;
    settings.printer.result(&to_json(&study, sealed)?, || to_text(&study, sealed))
}

/// The study; if it is not sealed yet, the numbers it would be sealed with. No number depends on the key.
fn load(path: &Path) -> Result<(Study, bool)> {
    match Study::load(path) {
        Ok(study) => Ok((study, true)),
        Err(Error::NotSealed) => Ok((Draft::load(path)?.seal(MixingKey::new([0; 32]))?, false)),
        Err(error) => Err(error.into()),
    }
}

fn guarantee(guarantee: Guarantee) -> Value {
    json!({
        "epsilon": guarantee.epsilon,
        "delta": guarantee.delta,
        "mu": guarantee.mu,
        "detection_at_5_percent": guarantee.detection,
    })
}

fn to_json(study: &Study, sealed: bool) -> Result<Value> {
    let definition = study.definition();
    let mut parties = Vec::new();
    for party in definition.parties() {
        let (row_norm, noise) = study.mixed_noise(party.name())?;
        parties.push(json!({
            "party": party.name(),
            "columns": party.columns().len(),
            "encoded_columns": party.width(),
            "row_norm": row_norm,
            "noise": noise,
            "release_bytes": release_bytes(study, party.width()),
        }));
    }
    Ok(json!({
        "study": definition.name(),
        "sealed": sealed,
        "id": sealed.then(|| study.id()),
        "rows": definition.rows(),
        "k": study.seal().k(),
        "parties": parties,
        "per_party": guarantee(Guarantee::of_party(study)),
        "joint": guarantee(Guarantee::joint(study, definition.parties().len())),
        "warnings": warnings(study),
        "dataset_bytes": release_bytes(study, definition.width()),
    }))
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
    let signal = definition.rows() as f64 / study.seal().k() as f64 / 3.0;
    let drowned =
        |party: &Party| study.mixed_noise(party.name()).is_ok_and(|(_, noise)| noise.powi(2) > 19.0 * signal);
    if definition.parties().iter().any(drowned) {
        warnings.push("more than 95% of a released column is noise: expect intervals that include zero. More subjects, a larger ε or fewer columns a party would help.".to_owned());
    }
    warnings
}

/// Size of the numbers in a file of so many columns; the file itself is compressed and smaller.
fn release_bytes(study: &Study, columns: usize) -> u64 {
    study.seal().k() * columns as u64 * 8
}

fn to_text(study: &Study, sealed: bool) -> String {
    let definition = study.definition();
    let k = study.seal().k();
    let mut text = format!(
        "Study {:?}: {} subjects, {}, {}, {k} released rows\n\n",
        definition.name(),
        definition.rows(),
        counted(definition.parties().len(), "party", "parties"),
        counted(definition.width(), "encoded column", "encoded columns"),
    );
    let mut rows = Vec::new();
    for party in definition.parties() {
        let Ok((_, noise)) = study.mixed_noise(party.name()) else { continue };
        // A column that spreads evenly over its bounds has variance 1/3 in encoded units.
        let signal = definition.rows() as f64 / k as f64 / 3.0;
        let variance = noise.powi(2);
        rows.push(vec![
            party.name().to_owned(),
            party.columns().len().to_string(),
            party.width().to_string(),
            number(noise),
            format!("{:.0}%", 100.0 * variance / (variance + signal)),
            size(release_bytes(study, party.width())),
        ]);
    }
    text.push_str(&table(&["party", "columns", "encoded", "noise sd", "noise share", "size"], &rows));
    if !sealed {
        text.push_str("\nNot sealed yet: run `potluck study seal` when all parties agree.\n");
    }
    for warning in warnings(study) {
        let _ = writeln!(text, "\nCareful: {warning}");
    }
    text.push_str("\nnoise share: how much of a released column's variance is noise, for a column that spreads evenly over its bounds\n\n");
    let each = Guarantee::of_party(study);
    let joint = Guarantee::joint(study, definition.parties().len());
    let _ = writeln!(text, "Each party's release: {}", each.in_numbers());
    let _ = writeln!(text, "All releases jointly: {}\n", joint.in_numbers());
    for sentence in statement::joint(study, definition.parties().len()) {
        let _ = writeln!(text, "{sentence}");
    }
    text
}
