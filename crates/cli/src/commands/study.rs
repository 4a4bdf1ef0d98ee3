//! `potluck study new|check|seal`.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::Result;
use potluck_core::accounting::{Delta, Epsilon};
use potluck_party::entropy;
use potluck_release::files::{Audience, Existing, refuse_same_file, write_file};
use potluck_release::study::{Format, Unsealed};
use potluck_release::{Error, Study, statement, warnings};
use serde_json::json;

use super::Settings;
use super::header::column_names;
use super::plan::{extends_text, load};
use crate::args::{StudyCommand, StudyNew};
use crate::output::counted;

pub(super) fn run(command: &StudyCommand, settings: &Settings<'_>) -> Result<()> {
    match command {
        StudyCommand::New(arguments) => new(arguments, settings),
        StudyCommand::Check { study, base } => check(study, base.base.as_deref(), settings),
        StudyCommand::Seal { study, base, out } => {
            seal(study, base.base.as_deref(), out.as_deref(), settings)
        }
    }
}

fn new(arguments: &StudyNew, settings: &Settings<'_>) -> Result<()> {
    Epsilon::new(arguments.epsilon).map_err(Error::from)?;
    Delta::new(arguments.delta).map_err(Error::from)?;
    let format = arguments.format.and_then(Format::from_number).unwrap_or(Format::NEW);
    let (rows_are, lines) = match format {
        Format::One => (
            "number of subjects; every party's table has exactly one row for each",
            "id = \"integer\"           # integer | text | row\n\
             method = \"calibrated\"    # calibrated | rmgm | dgm\n\
             mixing = \"sparse\"        # sparse | bernoulli (rmgm), identity (dgm)",
        ),
        Format::Two => (
            "about how many people a party has; tables may hold different people",
            "id = \"integer\"           # integer | text\n\
             # overlap = [0.5, 1]     # the least and the largest share of the smaller party's people that two have in\n\
             #                        # common, or \"all\"; for two of them: [[overlap]] parties = [\"a\", \"b\"], share = …\n\
             # id_rules = [\"trim\", \"lowercase\", \"strip-zeros\"] # | alphanumeric | date: what all do to ids of text\n\
             # id_columns = [\"born\", \"name\"] # columns that make up an id in every table",
        ),
    };
    let mut text = format!(
        r#"# A study: the public contract between the parties. Fill it in from what is publicly known about the columns,
# never by looking at the data: bounds and levels are published. Then: potluck study check, potluck study seal.
format = {format}

[study]
name = {name}
rows = {rows:<16} # {rows_are}
{lines}
# extends = ""           # the id of a sealed study to which the parties below are added

[privacy]                # of each party's release
epsilon = {epsilon:?}
delta = {delta:?}
"#,
        format = format.number(),
        name = quoted(&arguments.name),
        rows = arguments.rows,
        epsilon = arguments.epsilon,
        delta = arguments.delta,
    );
    if arguments.header.is_empty() {
        text.push_str(&example_parties(format));
    }
    for path in &arguments.header {
        let columns = column_names(path, arguments.yes_header, settings)?;
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        let name = party_name(stem.split('.').next().unwrap_or_default());
        if !columns.contains(&arguments.id) {
            settings.printer.note(&format!(
                "{}: no column is called {:?}; if one holds ids, remove it from the study or name it with --id",
                path.display(),
                arguments.id
            ));
        }
        write!(text, "\n[[party]]\nname = {}\n{}", quoted(&name), party_rows(format))?;
        for column in columns.iter().filter(|column| **column != arguments.id) {
            write!(
                text,
                "\n[[party.column]]\nname = {}\n# lo =                   # numeric: public bounds, values outside are clamped; of dates: 1990-01-31\n# hi =\n# levels = [\"no\", \"yes\"] # or categorical: public levels\n# unit = \"\"\n",
                quoted(column)
            )?;
        }
    }
    match &arguments.out {
        None => settings.printer.data(&text),
        Some(path) => Ok(write_file(path, text.as_bytes(), settings.existing, Audience::Public)?),
    }
}

/// What a party of format 2 may say of its own rows.
fn party_rows(format: Format) -> &'static str {
    match format {
        Format::One => "",
        Format::Two => {
            "# rows = 80000            # about how many people it has, if not as many as the study says\n"
        }
    }
}

/// Parties to start from, in the words of a format.
fn example_parties(format: Format) -> String {
    match format {
        Format::One => EXAMPLE_PARTIES.to_owned(),
        Format::Two => {
            let north = format!("name = \"north\"\n{}", party_rows(format));
            EXAMPLE_PARTIES
                .replacen("name = \"north\"\n", &north, 1)
                .replacen(
                    "unit = \"years\"\n",
                    "unit = \"years\"\n# typical = 60           # a value that most are known to be near\n",
                    1,
                )
                .replacen(MISSING_IN_FORMAT_1, MISSING_IN_FORMAT_2, 1)
        }
    }
}

const MISSING_IN_FORMAT_1: &str =
    "missing = \"midpoint\"     # midpoint | error (tells by a refusal that somebody's value is missing)\n";
const MISSING_IN_FORMAT_2: &str = "missing = \"counted\"      # counted (how many are missing is published) | never (they count as there)\n                         # | error (tells by a refusal that somebody's value is missing)\n";

const EXAMPLE_PARTIES: &str = r#"
[[party]]
name = "north"

[[party.column]]
name = "age"
lo = 18                  # public bounds; values outside are clamped
hi = 100
unit = "years"

[[party.column]]
name = "smoker"
levels = ["no", "yes"]   # public levels
unknown = "missing"      # missing | other (needs that level) | error (tells by a refusal that somebody has another)

[[party]]
name = "south"

[[party.column]]
name = "pressure"
lo = 80
hi = 200
unit = "mmHg"
missing = "midpoint"     # midpoint | error (tells by a refusal that somebody's value is missing)
"#;

/// A TOML string.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn party_name(text: &str) -> String {
    let plain: String = text
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || c == '-' || c == '_' { c } else { '-' })
        .collect();
    if plain.is_empty() { "party".to_owned() } else { plain.chars().take(64).collect() }
}

fn check(path: &Path, base: Option<&Path>, settings: &Settings<'_>) -> Result<()> {
    let (study, sealed) = load(path, base)?.numbers()?;
    let definition = study.definition();
    let id = sealed.then(|| study.id());
    let value = json!({
        "study": definition.name(),
        "sealed": id.is_some(),
        "id": id,
        "extends": definition.extends(),
        "parties": definition.parties().len(),
        "encoded_columns": definition.width(),
        "joint": statement::joint(&study, definition.parties().len()),
        "warnings": warnings::of_study(&study)?,
    });
    settings.printer.result(&value, || {
        let state = match &id {
            Some(id) => format!("sealed, id {id}"),
            None => "not sealed yet: run `potluck study seal` when all parties agree".to_owned(),
        };
        let extends = study
            .base()
            .map_or(String::new(), |base| format!("{}\n", extends_text(base, study.own_parties().len())));
        format!(
            "{}: good. {}, {}; {state}\n{extends}",
            path.display(),
            counted(definition.parties().len(), "party", "parties"),
            counted(definition.width(), "encoded column", "encoded columns"),
        )
    })?;
    say_what_to_ask(&study, settings)
}

/// What people should know before they sign a study, beside the result.
fn say_what_to_ask(study: &Study, settings: &Settings<'_>) -> Result<()> {
    for sentence in statement::joint(study, study.definition().parties().len()) {
        settings.printer.note(&sentence);
    }
    for warning in warnings::of_study(study)? {
        settings.printer.warn(&warning);
    }
    Ok(())
}

fn seal(path: &Path, base: Option<&Path>, out: Option<&Path>, settings: &Settings<'_>) -> Result<()> {
    if let Some(base) = base {
        refuse_same_file(out.unwrap_or(path), &[base])?;
    }
    let base = base.map(Study::load).transpose()?;
    let (study, text) = Unsealed::load(path, base.as_ref())?.seal(entropy::new_mixing_key)?;
    match out {
        Some(out) => write_file(out, text.as_bytes(), settings.existing, Audience::Public)?,
        None => write_file(path, text.as_bytes(), Existing::Replace, Audience::Public)?,
    }
    let out = out.unwrap_or(path);
    let value = json!({
        "study": out.display().to_string(),
        "id": study.id(),
        "extends": study.definition().extends(),
        "k": study.seal().k(),
        "mu": study.mu().to_f64(),
        "joint": statement::joint(&study, study.definition().parties().len()),
        "warnings": warnings::of_study(&study)?,
    });
    settings.printer.result(&value, || {
        format!(
            "sealed {}\nid {}\nGive this file to every party; the id must be the same everywhere.\n",
            out.display(),
            study.id()
        )
    })?;
    say_what_to_ask(&study, settings)
}
