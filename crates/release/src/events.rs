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
use crate::study::Study;
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
            let event: Event = serde_json::from_value(value)
                .map_err(|_| broken("it is no event that this potluck knows"))?;
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

    /// Appends an event if it may follow; otherwise says why not.
    pub fn append(&mut self, event: Event) -> Result<(), String> {
        check_place(self.events.last(), &event)?;
        match &event.change {
            Change::Created { .. } => return Err("the study was created before".to_owned()),
            Change::Invited { party } => {
                self.check_party(party)?;
                if self.keys.contains_key(party) {
                    return Err(format!("{party} accepted before it was invited again"));
                }
            }
            Change::Accepted { acceptance } => self.accept(acceptance)?,
            Change::Released { party, sha256, content_hash, .. } => {
                if !self.keys.contains_key(party) {
                    return Err(format!("{party} released without having accepted"));
                }
                let file = LoggedFile { sha256: sha256.clone(), content_hash: content_hash.clone() };
                if self.releases.insert(party.clone(), file).is_some() {
                    return Err(format!("{party} released twice"));
                }
            }
            Change::Published { parties, sha256, content_hash, .. } => {
                self.check_published(parties)?;
                self.datasets.push(LoggedFile { sha256: sha256.clone(), content_hash: content_hash.clone() });
            }
            Change::Extended { .. } => {}
        }
        self.events.push(event);
        Ok(())
    }

    fn check_party(&self, party: &str) -> Result<(), String> {
        match self.study.definition().party(party) {
            Ok(_) => Ok(()),
            Err(_) => Err(format!("the study has no party {party:?}")),
        }
    }

    fn accept(&mut self, acceptance: &Acceptance) -> Result<(), String> {
        self.check_party(&acceptance.party)?;
        if acceptance.study_id != self.study.id() {
            return Err("another study was accepted".to_owned());
        }
        let key = acceptance.verify().ok_or("the signature of an acceptance is not valid")?;
        match self.keys.insert(acceptance.party.clone(), key) {
            None => Ok(()),
            Some(_) => Err(format!("{} accepted twice", acceptance.party)),
        }
    }

    fn check_published(&self, parties: &[String]) -> Result<(), String> {
        for party in parties {
            self.check_party(party)?;
        }
        let own: Vec<&str> =
            self.study.definition().parties().iter().map(crate::study::Party::name).collect();
        if !self.early && own.len() != parties.len() {
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

/// Checks the links of the chain.
fn check_place(previous: Option<&Event>, event: &Event) -> Result<(), String> {
    if event.potluck != "event" {
        return Err("it is not an event".to_owned());
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
