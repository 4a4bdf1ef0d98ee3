//! `potluck plan`.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::Result;
use potluck_core::mixing::MixingKey;
use potluck_core::planning::{FUTILE, TYPICAL_SIGNAL, USEFUL};
use potluck_release::statement::{self, Guarantee};
use potluck_release::study::{IdKind, Party};
use potluck_release::{Draft, Error, Extension, Study};
use serde_json::{Value, json};

use super::Settings;
use crate::args::Plan;
use crate::exit::WrongUsage;
use crate::output::{counted, number, size, table};

pub(super) fn run(arguments: &Plan, settings: &Settings<'_>) -> Result<()> {
    let (study, sealed) = load(&arguments.study, arguments.base.base.as_deref())?;
    settings.printer.result(&to_json(&study, sealed)?, || to_text(&study, sealed))
}

/// The study; if it is not sealed yet, the numbers it would be sealed with. No number depends on the key.
pub(super) fn load(path: &Path, base: Option<&Path>) -> Result<(Study, bool)> {
    match (Study::load(path), base) {
        (Ok(study), None) => Ok((study, true)),
        (Ok(_), Some(_)) => {
            let message = format!(
                "{} is sealed and holds what it needs of the study it extends; leave --base out",
                path.display()
            );
            Err(WrongUsage(message).into())
        }
        (Err(Error::NotSealed), None) => Ok((Draft::load(path)?.seal(MixingKey::new([0; 32]))?, false)),
        (Err(Error::NotSealed), Some(base)) => {
            Ok((Extension::load(path, &Study::load(base)?)?.seal()?, false))
        }
        (Err(error), _) => Err(error.into()),
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
        "extends": definition.extends(),
        "rows": definition.rows(),
        "k": study.seal().k(),
        "own_parties": study.own_parties().iter().map(Party::name).collect::<Vec<_>>(),
        "parties": parties,
        "per_party": guarantee(Guarantee::of_party(study)),
        "joint": guarantee(Guarantee::joint(study, definition.parties().len())),
        "outlook": outlook_json(study)?,
        "warnings": warnings(study),
        "dataset_bytes": release_bytes(study, definition.width()),
    }))
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

fn outlook_json(study: &Study) -> Result<Value> {
    let outlook = study.prospect()?.outlook(TYPICAL_SIGNAL);
    Ok(json!({
        "signal": TYPICAL_SIGNAL,
        "coefficient_error": outlook.coefficient_error,
        "worst_coefficient_error": outlook.worst_coefficient_error,
        "recovered": outlook.recovered,
        "r_squared_error": outlook.r_squared_error,
        "smallest_useful_rows": study.smallest_useful_rows(),
    }))
}

/// Why a release under this study would be of no use, if it would be.
pub(super) fn futility(study: &Study) -> Option<String> {
    let outlook = study.prospect().ok()?.outlook(TYPICAL_SIGNAL);
    (outlook.recovered < FUTILE).then(|| {
        format!(
            "with {} subjects at this ε, predicting the mean would do as well as a regression: of what the other columns explain of one, a fit would recover about {:.0}%. {}",
            study.definition().rows(),
            100.0 * outlook.recovered,
            study.smallest_useful_rows().map_or_else(
                || "More subjects, a larger ε, fewer columns or method calibrated would help.".to_owned(),
                |rows| format!("About {rows} subjects, a larger ε or fewer columns would make it useful.")
            )
        )
    })
}

/// What to expect, in words.
fn outlook_text(study: &Study) -> String {
    let Ok(prospect) = study.prospect() else { return String::new() };
    let outlook = prospect.outlook(TYPICAL_SIGNAL);
    let percent = |share: f64| format!("{:.0}%", 100.0 * share);
    let mut text = format!(
        "What to expect of a regression of one column on all others, if they explain {} of it:\n",
        percent(TYPICAL_SIGNAL)
    );
    let _ = writeln!(
        text,
        "  standard error of a coefficient: {} (worst party {}), in standard deviations of the label for one of the feature",
        number(outlook.coefficient_error),
        number(outlook.worst_coefficient_error)
    );
    let _ = writeln!(text, "  standard error of R²: {}", number(outlook.r_squared_error));
    let _ = writeln!(text, "  of what can be explained, a fit recovers about {}", percent(outlook.recovered));
    if let Some(rows) = study.smallest_useful_rows() {
        let _ = writeln!(text, "  useful (recovers {}) from about {rows} subjects on", percent(USEFUL));
    }
    text.push_str("`potluck simulate` tries it on made-up data in this shape.\n\n");
    text
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
    if let Some(futility) = futility(study) {
        warnings.push(futility);
    } else if noise_shares(study).iter().any(|&share| share > 0.95) {
        warnings.push("more than 95% of a released column is noise: expect intervals that include zero. More subjects, a larger ε or fewer columns a party would help.".to_owned());
    }
    warnings
}

/// By party, how much of a released column's variance is noise, for a typical column.
fn noise_shares(study: &Study) -> Vec<f64> {
    let Ok(prospect) = study.prospect() else { return vec![1.0; study.definition().parties().len()] };
    let signal = study.definition().rows() as f64 / study.seal().k() as f64;
    prospect.parties().iter().map(|party| party.noise_ratio / (party.noise_ratio + signal)).collect()
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
    if let Some(base) = study.base() {
        text.insert_str(text.len() - 1, &format!("{}\n", extends_text(base, study.own_parties().len())));
    }
    let mut rows = Vec::new();
    let shares = noise_shares(study);
    for (at, party) in definition.parties().iter().enumerate() {
        let Ok((_, noise)) = study.mixed_noise(party.name()) else { continue };
        rows.push(vec![
            party.name().to_owned(),
            party.columns().len().to_string(),
            party.width().to_string(),
            number(noise),
            format!("{:.0}%", 100.0 * shares[at]),
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
    text.push_str("\nnoise share: how much of the variance of a party's released columns is noise, for typical columns\n\n");
    text.push_str(&outlook_text(study));
    let each = Guarantee::of_party(study);
    let joint = Guarantee::joint(study, definition.parties().len());
    let _ = writeln!(text, "Each party's release: {}", each.in_numbers());
    let _ = writeln!(text, "All releases jointly: {}\n", joint.in_numbers());
    for sentence in statement::joint(study, definition.parties().len()) {
        let _ = writeln!(text, "{sentence}");
    }
    text
}
