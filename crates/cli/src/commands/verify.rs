//! `potluck verify`.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::Result;
use potluck_client::FileDigest;
use potluck_release::events::{EventLog, LogError};
use potluck_release::signing::PublicKey;
use potluck_release::{Error, Study};
use serde_json::{Value, json};

use super::Settings;
use super::inspect::{Document, is_log};
use crate::args::Verify;
use crate::exit::WrongUsage;
use crate::output::counted;

/// What the files are checked against.
struct Known {
    /// Keys given for parties.
    keys: BTreeMap<String, PublicKey>,
    /// Events that the logs must hold.
    heads: Vec<String>,
    /// At most one a study.
    logs: Vec<EventLog>,
}

impl Known {
    fn log_of(&self, study: &Study) -> Option<&EventLog> {
        self.logs.iter().find(|log| log.study().id() == study.id())
    }

    /// Whether `party` of a study has registered a key in a log.
    fn is_registered(&self, study: &Study, party: &str) -> bool {
        let log = study.study_of(party).ok().and_then(|under| self.log_of(under));
        log.is_some_and(|log| log.keys().contains_key(party))
    }

    /// How a file under a study stands to the log of that study, if there are logs.
    fn check(
        &self,
        study: &Study,
        check: impl FnOnce(&EventLog) -> Result<&'static str, Unproven>,
    ) -> Result<Option<&'static str>, Unproven> {
        match self.log_of(study) {
            Some(log) => check(log).map(Some),
            None if self.logs.is_empty() => Ok(None),
            None => Err(Unproven::NoLog { study_id: study.id().to_owned() }),
        }
    }
}

/// Why a file is not known to be what the logs say.
enum Unproven {
    /// It is not.
    Log(LogError),
    /// The log of its study is not among the files.
    NoLog { study_id: String },
    /// The log of another study that parties in it released under is not among the files.
    NoLogOfBase { study_id: String },
}

impl From<LogError> for Unproven {
    fn from(error: LogError) -> Self {
        Self::Log(error)
    }
}

impl fmt::Display for Unproven {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, study_id) = match self {
            Self::Log(error) => return error.fmt(f),
            Self::NoLog { study_id } => ("no event log of its study is among the files", study_id),
            Self::NoLogOfBase { study_id } => ("parties in it released under another study", study_id),
        };
        write!(
            f,
            "{what}; give that of study {study_id} too: `potluck hub get --events FILE` keeps the logs of a study and of all that it extends"
        )
    }
}

/// A file that is as it should be.
struct Good {
    line: String,
    report: Value,
    parties: Vec<String>,
}

pub(super) fn run(arguments: &Verify, settings: &Settings<'_>) -> Result<()> {
    let mut known = Known { keys: keys(arguments)?, heads: arguments.heads.clone(), logs: Vec::new() };
    let logs: Vec<&PathBuf> = arguments.files.iter().filter(|path| is_log(path)).collect();
    if logs.is_empty() && !known.heads.is_empty() {
        return Err(WrongUsage("--head needs an event log among the files".to_owned()).into());
    }
    for path in logs {
        // A log that is not good is reported in its turn; the other files are checked without it.
        let Ok(log) = EventLog::read(path) else { continue };
        if known.log_of(log.study()).is_some() {
            let message = format!("there are two of study {}; give one event log a study", log.study().id());
            return Err(WrongUsage(message).into());
        }
        known.logs.push(log);
    }
    let (mut good, mut bad) = (Vec::new(), Vec::new());
    for path in &arguments.files {
        match examine(path, &known) {
            Ok(file) => good.push(file),
            Err(error) => bad.push(error),
        }
    }
    let lines: String = good.iter().map(|file| file.line.as_str()).collect();
    let mut bad = bad.into_iter();
    if let Some(first) = bad.next() {
        if !lines.is_empty() {
            settings.printer.note(lines.trim_end());
        }
        for error in bad {
            settings.printer.note(&format!("also bad: {error}"));
        }
        return Err(first);
    }
    if let Some(party) = known.keys.keys().find(|party| !good.iter().any(|file| file.parties.contains(party)))
    {
        return Err(
            WrongUsage(format!("--key names {party:?}, but no file holds a release of that party")).into()
        );
    }
    let reports: Vec<Value> = good.into_iter().map(|file| file.report).collect();
    settings.printer.result(&reports, || lines)
}

/// The keys given on the command line.
fn keys(arguments: &Verify) -> Result<BTreeMap<String, PublicKey>> {
    let mut keys = BTreeMap::new();
    for argument in &arguments.keys {
        let (party, path) = argument
            .split_once('=')
            .ok_or_else(|| WrongUsage(format!("--key takes PARTY=FILE, not {argument:?}")))?;
        keys.insert(party.to_owned(), PublicKey::load(Path::new(path))?);
    }
    Ok(keys)
}

/// Checks one file, by itself and against what is known.
fn examine(path: &Path, known: &Known) -> Result<Good> {
    let tampered = |what: String| Error::Tampered { path: path.to_owned(), what };
    let sha256 = || FileDigest::of(path).map(|digest| digest.sha256);
    let (kind, study, signers, standing) = match Document::read(path)? {
        Document::Log(log) => return examine_log(path, &log, known),
        Document::Study(study) => {
            let standing = known.check(&study, |_| Ok("the study of the log"));
            ("study", *study, Vec::new(), standing)
        }
        Document::Release(release) => {
            let sha256 = sha256()?;
            let standing = known.check(release.study(), |log| {
                Ok(log.check_release(&release, &sha256).map(|()| "published")?)
            });
            let signers = vec![(release.party().to_owned(), release.signer().cloned())];
            ("release", release.study().clone(), signers, standing)
        }
        Document::Dataset(dataset) => {
            let sha256 = sha256()?;
            let study = dataset.study();
            let standing = known.check(study, |log| {
                let missing =
                    |(party, _)| study.study_of(party).ok().filter(|&under| known.log_of(under).is_none());
                if let Some(under) = dataset.parties().find_map(missing) {
                    return Err(Unproven::NoLogOfBase { study_id: under.id().to_owned() });
                }
                let latest = log.check_dataset(&dataset, &sha256, &known.logs)?;
                Ok(if latest { "published, the latest" } else { "published; there is a later one" })
            });
            let signers = dataset.parties().map(|(party, key)| (party.to_owned(), key.cloned())).collect();
            ("dataset", study.clone(), signers, standing)
        }
        Document::Model(_) => {
            return Err(Error::NotOurs {
                path: path.to_owned(),
                expected: "study, release, dataset or event log",
                detail: "it is a model, which carries no proof of where it comes from; fit it again from the dataset"
                    .to_owned(),
            }
            .into());
        }
    };
    check_signers(path, &signers, &known.keys)?;
    let standing = standing.map_err(|unproven| tampered(unproven.to_string()))?;
    Ok(describe(path, kind, &study, signers, standing, known))
}

/// Says that a file is good, and who signed it.
fn describe(
    path: &Path,
    kind: &str,
    study: &Study,
    signers: Vec<(String, Option<PublicKey>)>,
    standing: Option<&str>,
    known: &Known,
) -> Good {
    let id = study.id();
    let registered = |party: &String| known.is_registered(study, party);
    let checked = |party: &String| known.keys.contains_key(party) || registered(party);
    let signed: Vec<Value> = signers
        .iter()
        .map(|(party, key)| {
            let signed_by = key.as_ref().map(ToString::to_string);
            json!({ "party": party, "signed_by": signed_by, "key_checked": checked(party) })
        })
        .collect();
    let mut words: Vec<String> = signers
        .iter()
        .map(|(party, key)| match key {
            Some(_) if known.keys.contains_key(party) => format!("{party} signed with the key given"),
            Some(_) if registered(party) => format!("{party} signed with the key it registered"),
            Some(key) => format!("{party} signed by {key} (compare, or give --key)"),
            None => format!("{party} not signed"),
        })
        .collect();
    words.extend(standing.map(str::to_owned));
    let of = if kind == "study" { "with id" } else { "of study" };
    let mut line = format!("{}: good {kind} {of} {id}", path.display());
    if !words.is_empty() {
        line.push_str(&format!("; {}", words.join("; ")));
    }
    line.push('\n');
    let file = path.display().to_string();
    let mut report = json!({ "file": file, "kind": kind, "study_id": id, "signers": signed });
    if let Some(standing) = standing {
        report["in_log"] = json!(standing);
    }
    Good { line, report, parties: signers.into_iter().map(|(party, _)| party).collect() }
}

fn examine_log(path: &Path, log: &EventLog, known: &Known) -> Result<Good> {
    let tampered = |what: String| Error::Tampered { path: path.to_owned(), what };
    let held = |head: &&String| known.logs.iter().any(|log| log.contains(head));
    if let Some(head) = known.heads.iter().find(|head| !held(head)) {
        return Err(tampered(format!("it holds no event {head}: it was cut short or written anew")).into());
    }
    for (party, expected) in &known.keys {
        if log.keys().get(party).is_some_and(|key| key != expected) {
            return Err(tampered(format!("{party} registered another key than the one given")).into());
        }
    }
    let id = log.study().id();
    let events = log.events().len();
    let line = format!(
        "{}: good event log of study {id}; {}{}, head {}\n",
        path.display(),
        counted(events, "event", "events"),
        if log.closed().is_some() { ", closed before any release" } else { "" },
        log.head()
    );
    let report = json!({
        "file": path.display().to_string(),
        "kind": "events",
        "study_id": id,
        "events": events,
        "closed": log.closed().is_some(),
        "head": log.head(),
        "keys": log.keys().iter().map(|(party, key)| (party.clone(), key.to_string())).collect::<BTreeMap<_, _>>(),
    });
    Ok(Good { line, report, parties: log.keys().keys().cloned().collect() })
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
