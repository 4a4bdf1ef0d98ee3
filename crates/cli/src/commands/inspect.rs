//! `potluck inspect`.

use std::fmt::Write as _;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use anyhow::Result;
use potluck_release::statement::{self, Guarantee};
use potluck_release::study::Domain;
use potluck_release::{Error, Model, PublicDataset, Release, Study};
use serde_json::json;

use super::Settings;
use super::fit;
use crate::args::Inspect;

/// A file of ours, verified.
pub(super) enum Document {
    Study(Box<Study>),
    Release(Box<Release>),
    Dataset(Box<PublicDataset>),
    Model(Box<Model>),
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
        if head[0] == b'{' {
            return Ok(Self::Model(Box::new(Model::read(path)?)));
        }
        Ok(Self::Study(Box::new(Study::load(path)?)))
    }
}

pub(super) fn run(arguments: &Inspect, settings: &Settings<'_>) -> Result<()> {
    match Document::read(&arguments.file)? {
        Document::Study(study) => settings.printer.result(&study.to_json(), || study_text(&study)),
        Document::Release(release) => {
            let value = json!({
                "kind": "release",
                "study": release.study().to_json(),
                "study_id": release.study().id(),
                "party": release.party(),
                "columns": release.columns().names(),
                "rows": release.columns().rows(),
                "content_hash": release.content_hash(),
                "statement": statement::of_party(release.study(), release.party())?,
                "signed_by": release.signer().map(ToString::to_string),
            });
            settings.printer.result(&value, || release_text(&release))
        }
        Document::Dataset(dataset) => {
            let parties: Vec<_> = dataset
                .parties()
                .map(|(party, key)| json!({ "party": party, "signed_by": key.map(ToString::to_string) }))
                .collect();
            let value = json!({
                "kind": "dataset",
                "study": dataset.study().to_json(),
                "study_id": dataset.study().id(),
                "parties": parties,
                "columns": dataset.columns().names(),
                "rows": dataset.columns().rows(),
                "content_hash": dataset.content_hash(),
                "statement": statement::joint(dataset.study(), dataset.parties().count()),
            });
            settings.printer.result(&value, || dataset_text(&dataset))
        }
        Document::Model(model) => settings.printer.result(&*model, || fit::to_text(&model)),
    }
}

fn study_text(study: &Study) -> String {
    let definition = study.definition();
    let mut text = format!(
        "Study {:?}\nid {}\n{} subjects, {} released rows\n",
        definition.name(),
        study.id(),
        definition.rows(),
        study.seal().k()
    );
    for party in definition.parties() {
        let _ = writeln!(text, "\n{}:", party.name());
        for column in party.columns() {
            let domain = match column.domain() {
                Domain::Numeric(bounds) => format!("{} to {}", bounds.lo(), bounds.hi()),
                Domain::Categorical { levels, .. } => levels.join(", "),
            };
            let unit = column.unit().map_or(String::new(), |unit| format!(" {unit}"));
            let description = column.description().map_or(String::new(), |text| format!(" — {text}"));
            let _ = writeln!(text, "  {}: {domain}{unit}{description}", column.name());
        }
    }
    let joint = Guarantee::joint(study, definition.parties().len());
    let _ = writeln!(text, "\neach release: {}", Guarantee::of_party(study).in_numbers());
    let _ = writeln!(text, "jointly:      {}", joint.in_numbers());
    text
}

fn release_text(release: &Release) -> String {
    let mut text = format!(
        "Release of {} under study {:?}\nstudy {}\ncontent {}\n{}\n{} rows of {}\n\n",
        release.party(),
        release.study().definition().name(),
        release.study().id(),
        release.content_hash(),
        signed(release.signer().map(ToString::to_string)),
        release.columns().rows(),
        release.columns().names().join(", "),
    );
    for sentence in statement::of_party(release.study(), release.party()).unwrap_or_default() {
        let _ = writeln!(text, "{sentence}");
    }
    text
}

fn dataset_text(dataset: &PublicDataset) -> String {
    let study = dataset.study();
    let mut text = format!(
        "Public dataset of study {:?}\nstudy {}\ncontent {}\n{} rows, standing for {} subjects\n",
        study.definition().name(),
        study.id(),
        dataset.content_hash(),
        dataset.columns().rows(),
        study.definition().rows(),
    );
    for (party, key) in dataset.parties() {
        let names = study.definition().party(party).map(potluck_release::study::Party::encoded_names);
        let columns = names.unwrap_or_default().join(", ");
        let _ = writeln!(text, "  {party}: {columns} ({})", signed(key.map(ToString::to_string)));
    }
    text.push('\n');
    let _ = writeln!(text, "each release: {}", Guarantee::of_party(study).in_numbers());
    for sentence in statement::joint(study, dataset.parties().count()) {
        let _ = writeln!(text, "{sentence}");
    }
    text
}

fn signed(key: Option<String>) -> String {
    key.map_or("not signed".to_owned(), |key| format!("signed by {key}"))
}
