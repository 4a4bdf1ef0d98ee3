//! The life of a study at a hub: an append-only log of events, each holding the hash of the one before.
//!
//! Anyone can download the log and check it without trusting the hub: every hash follows from its event and the
//! one before it, the study is sealed and has the id it claims, every acceptance is signed by the key that it
//! registers, and events come in an order that is possible. What a hub can still do is to withhold the end of a log; whoever
//! kept the hash of an earlier end can tell whether a log goes on from it ([`EventLog::contains`]).

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::signing::{PublicKey, Signature, SigningKey};
use crate::study::{Party, Study};
use crate::{Error, FORMAT, canonical};

/// What stands where the first event has no predecessor.
const NO_PREDECESSOR: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// A party's word that it accepts the exact contract, signed with the key that it registers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Acceptance {
    /// The id of the study that is accepted.
    pub study_id: String,
    /// The party that accepts.
    pub party: String,
    /// The public Ed25519 key that it will sign its release with, in hexadecimal.
    pub key: String,
    /// The key's signature, in hexadecimal.
    pub signature: String,
}

impl Acceptance {
    /// Accepts the study in the name of `party`.
    pub fn new(study: &Study, party: &str, key: &SigningKey) -> Self {
        let mut acceptance = Self {
            study_id: study.id().to_owned(),
            party: party.to_owned(),
            key: key.public().to_string(),
            signature: String::new(),
        };
        acceptance.signature = key.sign_acceptance(&acceptance.message()).signature;
        acceptance
    }

    /// The key that was registered, if the signature is its own.
    pub fn verify(&self) -> Option<PublicKey> {
        let signature = Signature { public_key: self.key.clone(), signature: self.signature.clone() };
        signature.acceptor(&self.message())
    }

    fn message(&self) -> [u8; 32] {
        let said = json!({ "study_id": self.study_id, "party": self.party, "key": self.key });
        Sha256::digest(canonical::json(&said)).into()
    }
}

/// What changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "change", rename_all = "lowercase", deny_unknown_fields)]
pub enum Change {
    /// A coordinator created the study.
    Created {
        /// The sealed study, whole.
        study: Value,
        /// Whether a public dataset may appear before every party has released.
        early: bool,
    },
    /// A party was invited; an invitation before that is void.
    Invited {
        /// The party.
        party: String,
    },
    /// A party accepted and registered its key.
    Accepted {
        /// Its signed word.
        acceptance: Acceptance,
    },
    /// A party's release was published.
    Released {
        /// The party.
        party: String,
        /// SHA-256 of the file.
        sha256: String,
        /// Length of the file in bytes.
        size: u64,
        /// SHA-256 over its logical content.
        content_hash: String,
    },
    /// A public dataset was published.
    Published {
        /// Whose releases are in it.
        parties: Vec<String>,
        /// SHA-256 of the file.
        sha256: String,
        /// Length of the file in bytes.
        size: u64,
        /// SHA-256 over its logical content.
        content_hash: String,
    },
    /// Another study was created that extends this one.
    Extended {
        /// The id of that study.
        study_id: String,
    },
}

/// One state change of a study.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Event {
    /// Always `event`.
    potluck: String,
    /// Version of the format.
    format: u32,
    /// Its place in the log, from 1.
    pub sequence: u64,
    /// When (RFC 3339, UTC), by the hub's clock.
    pub time: String,
    /// The hash of the event before; zeros for the first.
    pub previous: String,
    /// What changed.
    #[serde(flatten)]
    pub change: Change,
    /// SHA-256 of the event's canonical JSON without this field.
    pub hash: String,
}

impl Event {
    /// The event that follows `previous` in a log, or begins one.
    pub fn following(previous: Option<&Event>, time: String, change: Change) -> Self {
        let mut event = Self {
            potluck: "event".to_owned(),
            format: FORMAT,
            sequence: previous.map_or(0, |previous| previous.sequence) + 1,
            time,
            previous: previous.map_or(NO_PREDECESSOR, |previous| &previous.hash).to_owned(),
            change,
            hash: String::new(),
        };
        event.hash = event.computed_hash();
        event
    }

    fn computed_hash(&self) -> String {
        let mut value = serde_json::to_value(self).expect("an event is plain data");
        value.as_object_mut().expect("an event is a JSON object").remove("hash");
        canonical::sha256_hex(&canonical::json(&value))
    }

    /// The event as a line of a log.
    pub fn to_line(&self) -> String {
        let line = canonical::json(self);
        String::from_utf8(line).expect("JSON is UTF-8") + "\n"
    }
}

/// What a log says of one published file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoggedFile {
    /// SHA-256 of the file.
    pub sha256: String,
    /// Length of the file in bytes.
    pub size: u64,
    /// SHA-256 over its logical content.
    pub content_hash: String,
}

/// The log of a study, verified.
#[derive(Clone, Debug)]
pub struct EventLog {
    study: Study,
    early: bool,
    events: Vec<Event>,
    keys: BTreeMap<String, PublicKey>,
    releases: BTreeMap<String, LoggedFile>,
    datasets: Vec<LoggedFile>,
}

impl EventLog {
    /// Reads a log (JSON Lines) and verifies it.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let text = fs::read_to_string(path).map_err(|error| Error::read(path, error))?;
        Self::parse(&text, path)
    }

    /// Verifies the text of a log; `path` is what errors call it.
    pub fn parse(text: &str, path: &Path) -> Result<Self, Error> {
        let mut log: Option<Self> = None;
        for (index, line) in text.lines().enumerate() {
            let broken = |what: &str| Error::tampered(path, format!("event {}: {what}", index + 1));
            let value: Value = serde_json::from_str(line).map_err(|_| broken("it is not JSON"))?;
            crate::check_format(&value, path)?;
            if canonical::json(&value) != line.as_bytes() {
                return Err(broken("it is not in canonical form"));
            }
            let event: Event =
                serde_json::from_value(value).map_err(|_| broken("it is no event that this potluck knows"))?;
            match &mut log {
                None => log = Some(Self::begin(event).map_err(|what| broken(&what))?),
                Some(log) => log.append(event).map_err(|what| broken(&what))?,
            }
        }
        log.ok_or_else(|| Error::NotOurs {
            path: path.to_owned(),
            expected: "event log",
            detail: "it is empty".to_owned(),
        })
    }

    fn begin(event: Event) -> Result<Self, String> {
        let Change::Created { study, early } = &event.change else {
            return Err("a log begins with the creation of the study".to_owned());
        };
        let study = Study::from_json(study).map_err(|error| error.to_string())?;
        check_place(None, &event)?;
        Ok(Self {
            study,
            early: *early,
            events: vec![event],
            keys: BTreeMap::new(),
            releases: BTreeMap::new(),
            datasets: Vec::new(),
        })
    }

    /// Appends an event if it may follow; otherwise says why not, and the log stays as it is.
    pub fn append(&mut self, event: Event) -> Result<(), String> {
        check_place(self.events.last(), &event)?;
        match &event.change {
            Change::Created { .. } => return Err("the study was created before".to_owned()),
            Change::Invited { party } => {
                self.check_member(party)?;
                if self.keys.contains_key(party) {
                    return Err(format!("{party} was invited after it had accepted"));
                }
            }
            Change::Accepted { acceptance } => {
                let key = self.check_acceptance(acceptance)?;
                self.keys.insert(acceptance.party.clone(), key);
            }
            Change::Released { party, sha256, size, content_hash } => {
                self.check_member(party)?;
                if !self.keys.contains_key(party) {
                    return Err(format!("{party} released without having accepted"));
                }
                if self.releases.contains_key(party) {
                    return Err(format!("{party} released twice"));
                }
                self.releases.insert(party.clone(), logged(sha256, *size, content_hash)?);
            }
            Change::Published { parties, sha256, size, content_hash } => {
                self.check_published(parties)?;
                self.datasets.push(logged(sha256, *size, content_hash)?);
            }
            Change::Extended { study_id } => check_hash(study_id)?,
        }
        self.events.push(event);
        Ok(())
    }

    /// Those who are invited to this study, accept it and release under it, in the study's order.
    fn members(&self) -> impl Iterator<Item = &str> {
        self.study.definition().parties().iter().map(Party::name)
    }

    fn check_member(&self, party: &str) -> Result<(), String> {
        if self.members().any(|member| member == party) {
            Ok(())
        } else {
            Err(format!("the study has no party {party:?}"))
        }
    }

    /// The key that an acceptance registers, if it may.
    fn check_acceptance(&self, acceptance: &Acceptance) -> Result<PublicKey, String> {
        let Acceptance { study_id, party, .. } = acceptance;
        self.check_member(party)?;
        if study_id != self.study.id() {
            return Err("another study was accepted".to_owned());
        }
        if self.keys.contains_key(party) {
            return Err(format!("{party} accepted twice"));
        }
        acceptance.verify().ok_or_else(|| "the signature of an acceptance is not valid".to_owned())
    }

    /// A public dataset holds releases that are there, in the study's order; all of them unless it may appear early.
    fn check_published(&self, parties: &[String]) -> Result<(), String> {
        let mut known = self.study.definition().parties().iter().map(Party::name);
        for party in parties {
            if !known.any(|known| known == party) {
                return Err(format!("{party:?} is no party of the study, or not in its place"));
            }
            if self.members().any(|member| member == party) && !self.releases.contains_key(party) {
                return Err(format!("a public dataset holds a release of {party}, which had not released"));
            }
        }
        if parties.is_empty() {
            return Err("a public dataset holds no release".to_owned());
        }
        if !self.early && self.study.definition().parties().len() != parties.len() {
            return Err("a public dataset appeared before every party had released".to_owned());
        }
        Ok(())
    }

    /// The study.
    pub fn study(&self) -> &Study {
        &self.study
    }

    /// Whether a public dataset may appear before every party has released.
    pub fn early(&self) -> bool {
        self.early
    }

    /// The events in order.
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// The hash of the last event.
    pub fn head(&self) -> &str {
        &self.events.last().expect("a log has a first event").hash
    }

    /// Whether the log has an event with this hash: it then goes on from where that one was the last.
    pub fn contains(&self, hash: &str) -> bool {
        self.events.iter().any(|event| event.hash == hash)
    }

    /// The keys that parties registered.
    pub fn keys(&self) -> &BTreeMap<String, PublicKey> {
        &self.keys
    }

    /// The releases by party.
    pub fn releases(&self) -> &BTreeMap<String, LoggedFile> {
        &self.releases
    }

    /// The public datasets, the latest last.
    pub fn datasets(&self) -> &[LoggedFile] {
        &self.datasets
    }
}

fn logged(sha256: &str, size: u64, content_hash: &str) -> Result<LoggedFile, String> {
    check_hash(sha256)?;
    check_hash(content_hash)?;
    Ok(LoggedFile { sha256: sha256.to_owned(), size, content_hash: content_hash.to_owned() })
}

fn check_hash(text: &str) -> Result<(), String> {
    let digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    if text.len() == 64 && text.bytes().all(digit) { Ok(()) } else { Err("it holds no hash".to_owned()) }
}

/// Whether a text has the form `2026-01-31T23:59:59Z`, with or without fractions of a second.
fn is_utc_time(text: &str) -> bool {
    const FORM: &[u8] = b"0000-00-00T00:00:00";
    let Some((seconds, fraction)) = text.strip_suffix('Z').and_then(|text| text.split_at_checked(FORM.len()))
    else {
        return false;
    };
    let fits = |(byte, &form): (u8, &u8)| if form == b'0' { byte.is_ascii_digit() } else { byte == form };
    let fraction_fits = match fraction.strip_prefix('.') {
        Some(digits) => !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()),
        None => fraction.is_empty(),
    };
    seconds.bytes().zip(FORM).all(fits) && fraction_fits
}

/// Checks the links of the chain.
fn check_place(previous: Option<&Event>, event: &Event) -> Result<(), String> {
    if event.potluck != "event" || event.format != FORMAT {
        return Err("it is not an event of this format".to_owned());
    }
    if !is_utc_time(&event.time) {
        return Err("its time is not in RFC 3339 form, in UTC".to_owned());
    }
    if event.sequence != previous.map_or(0, |previous| previous.sequence) + 1 {
        return Err("events are missing or out of order".to_owned());
    }
    if event.previous != previous.map_or(NO_PREDECESSOR, |previous| &previous.hash) {
        return Err("it does not follow from the event before it".to_owned());
    }
    if event.computed_hash() != event.hash {
        return Err("it does not match its hash".to_owned());
    }
    Ok(())
}
