//! `potluck verify`.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;
use potluck_release::Error;
use potluck_release::signing::PublicKey;
use serde_json::{Value, json};

use super::Settings;
use super::inspect::Document;
use crate::args::Verify;
use crate::exit::WrongUsage;

pub(super) fn run(arguments: &Verify, settings: &Settings<'_>) -> Result<()> {
    let mut keys = BTreeMap::new();
    for argument in &arguments.keys {
        let (party, path) = argument
            .split_once('=')
            .ok_or_else(|| WrongUsage(format!("--key takes PARTY=FILE, not {argument:?}")))?;
        keys.insert(party.to_owned(), PublicKey::load(Path::new(path))?);
    }
    let mut reports = Vec::new();
    let mut lines = String::new();
    let mut seen = Vec::new();
    for path in &arguments.files {
        let (kind, id, signers) = match Document::read(path)? {
            Document::Study(study) => ("study", study.id().to_owned(), Vec::new()),
            Document::Release(release) => (
                "release",
                release.study().id().to_owned(),
                vec![(release.party().to_owned(), release.signer().cloned())],
            ),
            Document::Dataset(dataset) => (
                "dataset",
                dataset.study().id().to_owned(),
                dataset.parties().map(|(party, key)| (party.to_owned(), key.cloned())).collect(),
            ),
            Document::Model(_) => {
                return Err(Error::NotOurs {
                    path: path.clone(),
                    expected: "study, release or dataset",
                    detail: "it is a model, which carries no proof of where it comes from; fit it again from the dataset"
                        .to_owned(),
                }
                .into());
            }
        };
        check_signers(path, &signers, &keys)?;
        seen.extend(signers.iter().map(|(party, _)| party.clone()));
        let signed: Vec<Value> = signers
            .iter()
            .map(|(party, key)| {
                json!({
                    "party": party,
                    "signed_by": key.as_ref().map(ToString::to_string),
                    "key_checked": keys.contains_key(party),
                })
            })
            .collect();
        let words: Vec<String> = signers
            .iter()
            .map(|(party, key)| match (key, keys.contains_key(party)) {
                (Some(_), true) => format!("{party} signed with the key given"),
                (Some(key), false) => format!("{party} signed by {key} (compare, or give --key)"),
                (None, _) => format!("{party} not signed"),
            })
            .collect();
        let of = if kind == "study" { "with id" } else { "of study" };
        lines.push_str(&format!("{}: good {kind} {of} {id}", path.display()));
        if !words.is_empty() {
            lines.push_str(&format!("; {}", words.join("; ")));
        }
        lines.push('\n');
        reports.push(
            json!({ "file": path.display().to_string(), "kind": kind, "study_id": id, "signers": signed }),
        );
    }
    if let Some(party) = keys.keys().find(|party| !seen.contains(party)) {
        return Err(
            WrongUsage(format!("--key names {party:?}, but no file holds a release of that party")).into()
        );
    }
    settings.printer.result(&reports, || lines)
}

fn check_signers(
    path: &Path,
    signers: &[(String, Option<PublicKey>)],
    keys: &BTreeMap<String, PublicKey>,
) -> Result<()> {
    for (party, signer) in signers {
        let Some(expected) = keys.get(party) else { continue };
        if signer.as_ref() != Some(expected) {
            let how = if signer.is_some() { "is signed with another key" } else { "is not signed" };
            return Err(Error::Tampered {
                path: path.to_owned(),
                what: format!("the release of {party} {how}"),
            }
            .into());
        }
    }
    Ok(())
}
