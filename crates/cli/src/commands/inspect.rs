//! `potluck inspect`.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use anyhow::Result;
use potluck_release::events::{Change, Event, EventLog};
use potluck_release::findings::FindingKind;
use potluck_release::people::{self, Overlap, People, SHIFTS_MEAN, declared};
use potluck_release::statement::{self, Guarantee};
use potluck_release::study::{Column, Domain};
use potluck_release::summary::{self, ColumnSummary, Known, PartySummary, Shape};
use potluck_release::{Error, Model, PublicDataset, Release, Study};
use potluck_report::{described, limits, numbers};
use serde_json::{Value, json};

use super::Settings;
use super::fit;
use super::plan::{extends_text, subjects};
use crate::args::Inspect;
use crate::output::{alarming, number, table, wrapped};

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
            let people = people::of_dataset(&dataset)?;
            let mut value = json!({
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
            if let Some(people) = &people {
                value["people"] = json!(people);
            }
            settings.printer.result(&value, || dataset_text(&dataset, &summaries, people.as_ref()))
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
        "Study {:?}\nid {}\n{}, {} released rows\n",
        definition.name(),
        study.id(),
        subjects(study),
        study.seal().k()
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
    let _ = writeln!(text, "\neach release: {}", Guarantee::of_party(study).in_short());
    let _ = writeln!(text, "jointly:      {}", joint.in_short());
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
        "Release of {} under study {:?}\nstudy {}\ncontent {}\n{}\n{} rows, standing for {}\n",
        release.party(),
        release.study().definition().name(),
        release.study().id(),
        release.content_hash(),
        signed(release.signer().map(ToString::to_string)),
        release.columns().rows(),
        summary.people.map_or_else(|| subjects(release.study()), about),
    );
    let _ = writeln!(text, "\n{}\n{}", columns_text(summary), columns_legend(std::slice::from_ref(summary)));
    text.push_str(&shapes_text(std::slice::from_ref(summary)));
    for sentence in statement::of_party(release.study(), release.party()).unwrap_or_default() {
        let _ = writeln!(text, "{sentence}");
    }
    text
}

fn dataset_text(dataset: &PublicDataset, summaries: &[PartySummary], people: Option<&People>) -> String {
    let study = dataset.study();
    let mut text = people.map_or_else(String::new, alarms);
    let _ = write!(
        text,
        "Public dataset of study {:?}\nstudy {}\ncontent {}\n{} rows, standing for {}\n",
        study.definition().name(),
        study.id(),
        dataset.content_hash(),
        dataset.columns().rows(),
        subjects(study),
    );
    for ((party, key), summary) in dataset.parties().zip(summaries) {
        let people = summary.people.map_or_else(String::new, |people| format!("{}, ", about(people)));
        let _ = writeln!(text, "\n{party} ({people}{}):", signed(key.map(ToString::to_string)));
        text.push_str(&columns_text(summary));
    }
    let _ = writeln!(text, "\n{}", columns_legend(summaries));
    text.push_str(&shapes_text(summaries));
    text.push_str(&people.map_or_else(String::new, people_text));
    let _ = writeln!(text, "each release: {}", Guarantee::of_party(study).in_short());
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

/// "about 10012 people (± 31)", with one standard error.
fn about(people: Known) -> String {
    format!("about {:.0} people (± {})", people.value, number(people.error))
}

/// What must be known before anything else: parties that seem to have the wrong people in common.
pub(super) fn alarms(people: &People) -> String {
    let mut text = String::new();
    for sentence in people.alarms() {
        let said = wrapped(&format!("Careful: {sentence}"), "");
        text.push_str(&alarming(said.trim_end(), &io::stdout()));
        text.push_str("\n\n");
    }
    text
}

/// Whom parties have in common, and how these differ from all of a party's.
fn people_text(people: &People) -> String {
    if people.overlaps.is_empty() {
        return String::new();
    }
    let row = |overlap: &Overlap| {
        let [one, other] = &overlap.parties;
        let [low, high] = overlap.interval.map(percent);
        vec![
            format!("{one}, {other}"),
            percent(overlap.share),
            format!("{low} to {high}"),
            declared(overlap.declared),
            percent(overlap.taken),
            format!("{:.0}", overlap.people),
            overlap.finding.map_or("", FindingKind::short).to_owned(),
        ]
    };
    let rows: Vec<Vec<String>> = people.overlaps.iter().map(row).collect();
    let header = ["in common", "share", "95% interval", "declared", "fits take", "people", ""];
    let mut text = format!("{}\n", table(&header, &rows));
    text.push_str("Shares are of the people of the smaller party. share: as the presence of the two shows it; fits take: given all parties and what the study declares.\n");
    let differences = people.differences();
    for sentence in &differences {
        text.push_str(&wrapped(&sentence.to_string(), "- "));
    }
    if differences.is_empty() {
        text.push_str(
            "The people whom parties share differ from all of a party's by no more than noise hides.\n\n",
        );
    } else {
        let _ = writeln!(text, "{}", wrapped(SHIFTS_MEAN, ""));
    }
    text
}

/// How the values of numeric columns are distributed, where releases tell.
fn shapes_text(summaries: &[PartySummary]) -> String {
    let columns = summaries.iter().flat_map(|summary| &summary.columns);
    let row = |(column, shape): (&ColumnSummary, &Shape)| {
        let unit = column.unit.as_ref().map_or(String::new(), |unit| format!(" ({unit})"));
        let mut row = vec![format!("{}{unit}", column.name)];
        row.extend(shape.quantiles.iter().map(|quantile| number(quantile.value)));
        row.push(shape.zeros.map_or("-".to_owned(), |zeros| percent(zeros.value)));
        row.extend(shape.beyond.iter().map(|share| percent(share.value)));
        row
    };
    let shaped = columns.filter_map(|column| Some((column, column.distribution.as_ref()?)));
    let rows: Vec<Vec<String>> = shaped.map(row).collect();
    if rows.is_empty() {
        return String::new();
    }
    let header = ["quantiles", "5%", "25%", "50%", "75%", "95%", "zeros", "cut low", "cut high"];
    format!(
        "{}\nOf the values that are there, by noised histograms: --json has the intervals. cut low, cut high: shares beyond the range kept.\n\n",
        table(&header, &rows)
    )
}

fn percent(share: f64) -> String {
    numbers::percent(share)
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
            column.missing.map_or("-".to_owned(), |missing| percent(missing.value)),
        ]
    };
    let mut header = vec!["", "mean", "spread", "range kept", "noise", "noise share", "column is"];
    if summary.columns.iter().any(|column| column.missing.is_some()) {
        header.push("missing");
    }
    let shown = |column| row(column).into_iter().take(header.len()).collect();
    let rows: Vec<Vec<String>> = summary.columns.iter().map(shown).collect();
    table(&header, &rows)
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
