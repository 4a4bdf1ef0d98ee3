//! `potluck inspect`.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use anyhow::Result;
use potluck_release::events::{Change, Event, EventLog};
use potluck_release::statement::{self, Guarantee};
use potluck_release::study::{Column, Domain};
use potluck_release::summary::{self, ColumnSummary, PartySummary};
use potluck_release::{Error, Model, PublicDataset, Release, Study};
use potluck_report::{described, limits};
use serde_json::{Value, json};

use super::Settings;
use super::fit;
use super::plan::{extends_text, released_text};
use crate::args::Inspect;
use crate::output::{number, table, wrapped};

/// A file of ours, verified.
pub(super) enum Document {
    Study(Box<Study>),
    Release(Box<Release>),
    Dataset(Box<PublicDataset>),
    Model(Box<Model>),
    Log(Box<EventLog>),
}

impl Document {
    /// Reads whatever the file turns out to be.
    pub(super) fn read(path: &Path) -> Result<Self> {
        let mut head = [0; 4];
        let read = File::open(path).and_then(|mut file| file.read(&mut head));
        read.map_err(|source| Error::Read { path: path.to_owned(), source })?;
        if &head == b"PAR1" {
            return match Release::read(path) {
                Ok(release) => Ok(Self::Release(Box::new(release))),
                Err(Error::NotOurs { .. }) => Ok(Self::Dataset(Box::new(PublicDataset::read(path)?))),
                Err(error) => Err(error.into()),
            };
        }
        if is_log(path) {
            return Ok(Self::Log(Box::new(EventLog::read(path)?)));
        }
        if head[0] == b'{' {
            return Ok(Self::Model(Box::new(Model::read(path)?)));
        }
        Ok(Self::Study(Box::new(Study::load(path)?)))
    }
}

/// Whether a file claims to be an event log: its first line is an event.
pub(super) fn is_log(path: &Path) -> bool {
    // The first event holds the study, which is no larger than this.
    const LONGEST: u64 = 64 << 20;
    let mut line = String::new();
    let read =
        File::open(path).and_then(|file| BufReader::new(file).take(LONGEST).read_line(&mut line)).is_ok();
    read && line.starts_with('{')
        && serde_json::from_str::<Value>(&line).is_ok_and(|value| value["potluck"] == "event")
}

pub(super) fn run(arguments: &Inspect, settings: &Settings<'_>) -> Result<()> {
    match Document::read(&arguments.file)? {
        Document::Study(study) => settings.printer.result(&study.to_json(), || study_text(&study)),
        Document::Release(release) => {
            let summary = summary::of_release(&release)?;
            let value = json!({
                "kind": "release",
                "study": release.study().to_json(),
                "study_id": release.study().id(),
                "party": release.party(),
                "columns": release.columns().names(),
                "rows": release.columns().rows(),
                "content_hash": release.content_hash(),
                "summary": &summary,
                "statement": statement::of_party(release.study(), release.party())?,
                "signed_by": release.signer().map(ToString::to_string),
            });
            settings.printer.result(&value, || release_text(&release, &summary))
        }
        Document::Dataset(dataset) => {
            let parties: Vec<_> = dataset
                .parties()
                .map(|(party, key)| json!({ "party": party, "signed_by": key.map(ToString::to_string) }))
                .collect();
            let summaries = summary::of_dataset(&dataset)?;
            let value = json!({
                "kind": "dataset",
                "study": dataset.study().to_json(),
                "study_id": dataset.study().id(),
                "parties": parties,
                "columns": dataset.columns().names(),
                "rows": dataset.columns().rows(),
                "content_hash": dataset.content_hash(),
                "summary": &summaries,
                "statement": statement::joint(dataset.study(), dataset.parties().count()),
            });
            settings.printer.result(&value, || dataset_text(&dataset, &summaries))
        }
        Document::Model(model) => settings.printer.result(&described(&model), || model_text(&model)),
        Document::Log(log) => {
            let value = json!({
                "kind": "events",
                "study": log.study().to_json(),
                "study_id": log.study().id(),
                "early": log.early(),
                "events": log.events(),
                "head": log.head(),
            });
            settings.printer.result(&value, || log_text(&log))
        }
    }
}

fn study_text(study: &Study) -> String {
    let definition = study.definition();
    let mut text = format!(
        "Study {:?}\nid {}\n{} subjects, {}\n",
        definition.name(),
        study.id(),
        definition.rows(),
        released_text(study)
    );
    if let Some(base) = study.base() {
        let _ = writeln!(text, "{}", extends_text(base, study.own_parties().len()));
    }
    for party in definition.parties() {
        let origin = match study.study_of(party.name()) {
            Ok(earlier) if earlier.id() != study.id() => {
                format!(" (releases under {:?})", earlier.definition().name())
            }
            _ => String::new(),
        };
        let _ = writeln!(text, "\n{}{origin}:", party.name());
        for column in party.columns() {
            let _ = writeln!(text, "  {}", column_text(column));
        }
    }
    let joint = Guarantee::joint(study, definition.parties().len());
    let _ = writeln!(text, "\neach release: {}", Guarantee::of_party(study).in_numbers());
    let _ = writeln!(text, "jointly:      {}", joint.in_numbers());
    text
}

/// A column and the values it may take.
pub(super) fn column_text(column: &Column) -> String {
    let domain = match (column.domain(), column.dates()) {
        (_, Some([first, last])) => format!("{first} to {last}"),
        (Domain::Numeric(bounds), None) => format!("{} to {}", bounds.lo(), bounds.hi()),
        (Domain::Categorical { levels, .. }, None) => levels.join(", "),
    };
    let unit = column.unit().map_or(String::new(), |unit| format!(" {unit}"));
    let description = column.description().map_or(String::new(), |text| format!(" — {text}"));
    format!("{}: {domain}{unit}{description}", column.name())
}

fn release_text(release: &Release, summary: &PartySummary) -> String {
    let mut text = format!(
        "Release of {} under study {:?}\nstudy {}\ncontent {}\n{}\n{} rows, standing for {} subjects\n",
        release.party(),
        release.study().definition().name(),
        release.study().id(),
        release.content_hash(),
        signed(release.signer().map(ToString::to_string)),
        release.columns().rows(),
        release.study().definition().rows(),
    );
    let _ = writeln!(text, "\n{}\n{}", columns_text(summary), columns_legend(std::slice::from_ref(summary)));
    for sentence in statement::of_party(release.study(), release.party()).unwrap_or_default() {
        let _ = writeln!(text, "{sentence}");
    }
    text
}

fn dataset_text(dataset: &PublicDataset, summaries: &[PartySummary]) -> String {
    let study = dataset.study();
    let mut text = format!(
        "Public dataset of study {:?}\nstudy {}\ncontent {}\n{} rows, standing for {} subjects\n",
        study.definition().name(),
        study.id(),
        dataset.content_hash(),
        dataset.columns().rows(),
        study.definition().rows(),
    );
    for ((party, key), summary) in dataset.parties().zip(summaries) {
        let _ = writeln!(text, "\n{party} ({}):", signed(key.map(ToString::to_string)));
        text.push_str(&columns_text(summary));
    }
    let _ = writeln!(text, "\n{}", columns_legend(summaries));
    let _ = writeln!(text, "each release: {}", Guarantee::of_party(study).in_numbers());
    for sentence in statement::joint(study, dataset.parties().count()) {
        let _ = writeln!(text, "{sentence}");
    }
    text
}

fn log_text(log: &EventLog) -> String {
    let mut text =
        format!("Event log of study {:?}\nstudy {}\n\n", log.study().definition().name(), log.study().id());
    for event in log.events() {
        let Event { sequence, time, change, .. } = event;
        let _ = writeln!(text, "{sequence:>4}  {time}  {}", change_text(change));
    }
    let _ = writeln!(
        text,
        "\nhead {}\nKeep the head: whoever has it can tell later whether the log was changed.",
        log.head()
    );
    text
}

/// What changed, in words.
fn change_text(change: &Change) -> String {
    match change {
        Change::Created { early: false, .. } => {
            "study created; public when every party has released".to_owned()
        }
        Change::Created { early: true, .. } => {
            "study created; public with those who have released".to_owned()
        }
        Change::Invited { party } => format!("{party} invited"),
        Change::Accepted { acceptance } => format!("{} accepted, key {}", acceptance.party, acceptance.key),
        Change::Withdrawn { withdrawal } => format!("{} withdrew its acceptance", withdrawal.party),
        Change::Revoked { party } => format!("the acceptance of {party} undone by the coordinator"),
        Change::Closed { reason } if reason.is_empty() => "closed by the coordinator".to_owned(),
        Change::Closed { reason } => format!("closed by the coordinator: {reason}"),
        Change::Released { party, content_hash, .. } => format!("{party} released, content {content_hash}"),
        Change::Published { parties, content_hash, .. } => {
            format!("public dataset of {}, content {content_hash}", parties.join(", "))
        }
        Change::Extended { study_id } => format!("extended by study {study_id}"),
    }
}

/// What a release says of its columns, in original units.
fn columns_text(summary: &PartySummary) -> String {
    let known = |value: Option<f64>| value.map_or("-".to_owned(), number);
    let row = |column: &ColumnSummary| {
        let unit = column.unit.as_ref().map_or(String::new(), |unit| format!(" ({unit})"));
        let [low, high] = column.range;
        vec![
            format!("{}{unit}", column.name),
            known(column.mean),
            known(column.spread),
            format!("{} to {}", number(low), number(high)),
            number(column.noise),
            format!("{:.0}%", 100.0 * column.noise_share),
            if column.resolved { "resolved" } else { "drowned" }.to_owned(),
        ]
    };
    let rows: Vec<Vec<String>> = summary.columns.iter().map(row).collect();
    table(&["", "mean", "spread", "range kept", "noise", "noise share", "column is"], &rows)
}

/// What the columns of [`columns_text`] mean, and what is drowned.
fn columns_legend(summaries: &[PartySummary]) -> String {
    let columns = || summaries.iter().flat_map(|summary| &summary.columns);
    let is_drowned = |column: &&ColumnSummary| !column.resolved;
    let drowned: Vec<&str> = columns().filter(is_drowned).map(|column| column.name.as_str()).collect();
    let mut text = "In original units; of a level, the mean is the share that has it.\nspread: standard deviation between people; noise: that of the noise in a mixed row, which holds many people;\nnoise share: how much of the variance of the mixed rows is noise.\n".to_owned();
    if columns().all(|column| column.mean.is_none()) {
        text.push_str("This method publishes no means and spreads: only mixed rows.\n");
    }
    if drowned.is_empty() {
        text.push_str("The spread of every column stands clear of its noise.\n");
    } else {
        let parties = summaries.iter().filter(|party| party.columns.iter().any(|one| !one.resolved));
        let help = match parties.filter_map(PartySummary::could_spare).max_by_key(|&spare| spare == "columns")
        {
            None => "More people or a larger epsilon would help.".to_owned(),
            Some(spare) => format!("More people, a larger epsilon or fewer {spare} at the party would help."),
        };
        let _ = writeln!(text, "Drowned in noise: {}. {help}", drowned.join(", "));
    }
    text
}

/// What `fit` prints, and what limits accuracy.
fn model_text(model: &Model) -> String {
    let mut text = fit::to_text(model);
    for point in limits(model, None) {
        let _ = write!(text, "\n{}\n{}", point.title(), wrapped(&point.to_string(), "  "));
    }
    text
}

fn signed(key: Option<String>) -> String {
    key.map_or("not signed".to_owned(), |key| format!("signed by {key}"))
}
