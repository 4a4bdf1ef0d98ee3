//! The life of a study at a hub: an append-only log of events, each holding the hash of the one
//! before.
//!
//! Anyone can download the log and check it without trusting the hub: every hash follows from its
//! event and the one before it, the study is sealed and has the id it claims, every acceptance is
//! signed by the key that it registers, and events come in an order that is possible. What a hub
//! can still do is to withhold the end of a log; whoever kept the hash of an earlier end can tell
//! whether a log goes on from it ([`EventLog::contains`]).

mod error;
mod withdrawal;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

pub use error::LogError;
pub use withdrawal::Withdrawal;

use crate::signing::{PublicKey, Signature, SigningKey};
use crate::study::{Party, Study};
use crate::{Error, FORMAT, PublicDataset, Release, canonical};

/// What stands where the first event has no predecessor.
const NO_PREDECESSOR: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// The longest reason for closing a study, in characters.
const LONGEST_REASON: usize = 500;

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
    /// A party took its acceptance back before it released; its key counts no more.
    Withdrawn {
        /// Its signed word.
        withdrawal: Withdrawal,
    },
    /// A coordinator undid a party's acceptance before the party released, without its signature:
    /// because its key is lost, say. Its key counts no more.
    Revoked {
        /// The party.
        party: String,
    },
    /// A coordinator closed the study before anyone released: nothing more happens to it.
    Closed {
        /// Why, in the coordinator's words; may be empty.
        reason: String,
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

    /// Why the study was closed, if that is what happened.
    pub fn closing(&self) -> Option<&str> {
        match &self.change {
            Change::Closed { reason } => Some(reason),
            _ => None,
        }
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
    /// Whose releases are in it, in the study's order.
    pub parties: Vec<String>,
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
    /// By party, the hash of the event with the acceptance that stands.
    acceptances: BTreeMap<String, String>,
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
            crate::check_format(&value, path, FORMAT)?;
            if canonical::json(&value) != line.as_bytes() {
                return Err(broken("it is not in canonical form"));
            }
            let event: Event = serde_json::from_value(value)
                .map_err(|_| broken("it is no event that this potluck knows"))?;
            match &mut log {
                None => log = Some(Self::begin(event).map_err(|error| broken(&error.to_string()))?),
                Some(log) => log.append(event).map_err(|error| broken(&error.to_string()))?,
            }
        }
        log.ok_or_else(|| Error::NotOurs {
            path: path.to_owned(),
            expected: "event log",
            detail: "it is empty".to_owned(),
        })
    }

    fn begin(event: Event) -> Result<Self, LogError> {
        let Change::Created { study, early } = &event.change else {
            return Err(LogError::NoCreation);
        };
        let study = Study::from_json(study).map_err(|error| LogError::Study(Box::new(error)))?;
        check_place(None, &event)?;
        Ok(Self {
            study,
            early: *early,
            events: vec![event],
            keys: BTreeMap::new(),
            acceptances: BTreeMap::new(),
            releases: BTreeMap::new(),
            datasets: Vec::new(),
        })
    }

    /// Appends an event if it may follow; otherwise says why not, and the log stays as it is.
    pub fn append(&mut self, event: Event) -> Result<(), LogError> {
        check_place(self.events.last(), &event)?;
        if self.closed().is_some() {
            return Err(LogError::AfterClosing);
        }
        match &event.change {
            Change::Created { .. } => return Err(LogError::CreatedBefore),
            Change::Invited { party } => {
                self.check_member(party)?;
                if self.releases.contains_key(party) {
                    return Err(LogError::InvitedAfterRelease(party.clone()));
                }
            }
            Change::Accepted { acceptance } => {
                let key = self.check_acceptance(acceptance)?;
                self.keys.insert(acceptance.party.clone(), key);
                self.acceptances.insert(acceptance.party.clone(), event.hash.clone());
            }
            Change::Withdrawn { withdrawal } => {
                let key = self.check_undone(&withdrawal.party)?;
                let stands = self.acceptances.get(&withdrawal.party) == Some(&withdrawal.acceptance);
                if !stands || withdrawal.study_id != self.study.id() {
                    return Err(LogError::OtherWithdrawn);
                }
                if !withdrawal.is_signed_by(key) {
                    return Err(LogError::WithdrawalSignature);
                }
                self.undo_acceptance(&withdrawal.party);
            }
            Change::Revoked { party } => {
                self.check_undone(party)?;
                self.undo_acceptance(party);
            }
            Change::Closed { reason } => {
                check_reason(reason)?;
                if let Some(party) = self.releases.keys().next() {
                    return Err(LogError::ClosedAfterRelease(party.clone()));
                }
            }
            Change::Released { party, sha256, size, content_hash } => {
                self.check_member(party)?;
                if !self.keys.contains_key(party) {
                    return Err(LogError::NotAccepted(party.clone()));
                }
                if self.releases.contains_key(party) {
                    return Err(LogError::ReleasedTwice(party.clone()));
                }
                let file = logged(std::slice::from_ref(party), sha256, *size, content_hash)?;
                self.releases.insert(party.clone(), file);
            }
            Change::Published { parties, sha256, size, content_hash } => {
                self.check_published(parties)?;
                self.datasets.push(logged(parties, sha256, *size, content_hash)?);
            }
            Change::Extended { study_id } => check_hash(study_id)?,
        }
        self.events.push(event);
        Ok(())
    }

    /// Those who are invited to this study, accept it and release under it, in the study's order.
    fn members(&self) -> impl Iterator<Item = &str> {
        self.study.own_parties().iter().map(Party::name)
    }

    fn check_member(&self, party: &str) -> Result<(), LogError> {
        if self.members().any(|member| member == party) {
            Ok(())
        } else {
            Err(LogError::NoParty(party.to_owned()))
        }
    }

    /// The key of an acceptance that is to be undone, if it can be.
    fn check_undone(&self, party: &str) -> Result<&PublicKey, LogError> {
        self.check_member(party)?;
        if self.releases.contains_key(party) {
            return Err(LogError::UndoneAfterRelease(party.to_owned()));
        }
        self.keys.get(party).ok_or_else(|| LogError::NothingToUndo(party.to_owned()))
    }

    fn undo_acceptance(&mut self, party: &str) {
        self.keys.remove(party);
        self.acceptances.remove(party);
    }

    /// The key that an acceptance registers, if it may.
    fn check_acceptance(&self, acceptance: &Acceptance) -> Result<PublicKey, LogError> {
        let Acceptance { study_id, party, .. } = acceptance;
        self.check_member(party)?;
        if study_id != self.study.id() {
            return Err(LogError::OtherAccepted);
        }
        if self.keys.contains_key(party) {
            return Err(LogError::AcceptedTwice(party.clone()));
        }
        acceptance.verify().ok_or(LogError::Signature)
    }

    /// A public dataset holds releases that are there, in the study's order; all of them unless it
    /// may appear early.
    fn check_published(&self, parties: &[String]) -> Result<(), LogError> {
        let mut known = self.study.definition().parties().iter().map(Party::name);
        for party in parties {
            if !known.any(|known| known == party) {
                return Err(LogError::Misplaced(party.clone()));
            }
            if self.members().any(|member| member == party) && !self.releases.contains_key(party) {
                return Err(LogError::NotReleased(party.clone()));
            }
        }
        if parties.is_empty() {
            return Err(LogError::NoReleases);
        }
        if !self.early && self.study.definition().parties().len() != parties.len() {
            return Err(LogError::TooEarly);
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

    /// Whether the log has an event with this hash: it then goes on from where that one was the
    /// last.
    pub fn contains(&self, hash: &str) -> bool {
        self.events.iter().any(|event| event.hash == hash)
    }

    /// The event that closed the study, and why it was closed, if it was.
    pub fn closed(&self) -> Option<(&Event, &str)> {
        let last = self.events.last()?;
        last.closing().map(|reason| (last, reason))
    }

    /// The hash of the event with a party's acceptance, if it stands.
    pub fn acceptance(&self, party: &str) -> Option<&str> {
        self.acceptances.get(party).map(String::as_str)
    }

    /// The keys that parties registered, with acceptances that stand.
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

    /// Whether a release, whose file has this SHA-256, is the one that its party published;
    /// otherwise says why not.
    pub fn check_release(&self, release: &Release, sha256: &str) -> Result<(), LogError> {
        let party = release.party();
        self.check_study(release.study())?;
        self.check_signer(party, release.signer())?;
        let published = self.releases.get(party).ok_or_else(|| LogError::UnknownRelease(party.to_owned()))?;
        if published.content_hash != release.content_hash() {
            return Err(LogError::OtherRelease(party.to_owned()));
        }
        check_bytes(published, sha256)
    }

    /// Whether a public dataset, whose file has this SHA-256, was published, and is the latest;
    /// otherwise says why not.
    ///
    /// Parties that release under a study that this one extends are checked against the log of that
    /// study, which must be among `bases`.
    pub fn check_dataset<'a>(
        &'a self,
        dataset: &PublicDataset,
        sha256: &str,
        bases: impl IntoIterator<Item = &'a Self>,
    ) -> Result<bool, LogError> {
        let study = dataset.study();
        self.check_study(study)?;
        let logs: Vec<&Self> = std::iter::once(self).chain(bases).collect();
        for ((party, signer), (_, content_hash)) in dataset.parties().zip(dataset.release_hashes()) {
            let under = study.study_of(party).map_err(|error| LogError::Study(Box::new(error)))?;
            let missing =
                || LogError::MissingLog { party: party.to_owned(), study_id: under.id().to_owned() };
            let log = logs.iter().find(|log| log.study.id() == under.id()).ok_or_else(missing)?;
            log.check_signer(party, signer)?;
            if log.releases.get(party).is_none_or(|published| published.content_hash != content_hash) {
                return Err(LogError::OtherReleaseInDataset(party.to_owned()));
            }
        }
        let published =
            self.datasets.iter().rev().position(|file| file.content_hash == dataset.content_hash());
        let age = published.ok_or(LogError::UnknownDataset)?;
        let published = &self.datasets[self.datasets.len() - 1 - age];
        if !dataset.parties().map(|(party, _)| party).eq(&published.parties) {
            return Err(LogError::OtherParties(published.parties.clone()));
        }
        check_bytes(published, sha256)?;
        Ok(age == 0)
    }

    /// Whether it is the study of this log; otherwise says so.
    pub fn check_study(&self, study: &Study) -> Result<(), LogError> {
        if study.id() == self.study.id() { Ok(()) } else { Err(LogError::OtherStudy) }
    }

    fn check_signer(&self, party: &str, signer: Option<&PublicKey>) -> Result<(), LogError> {
        let registered = self.keys.get(party).ok_or_else(|| LogError::NoKey(party.to_owned()))?;
        if signer == Some(registered) { Ok(()) } else { Err(LogError::OtherSigner(party.to_owned())) }
    }
}

fn check_bytes(published: &LoggedFile, sha256: &str) -> Result<(), LogError> {
    if published.sha256 == sha256 { Ok(()) } else { Err(LogError::OtherBytes) }
}

fn logged(parties: &[String], sha256: &str, size: u64, content_hash: &str) -> Result<LoggedFile, LogError> {
    check_hash(sha256)?;
    check_hash(content_hash)?;
    Ok(LoggedFile {
        parties: parties.to_vec(),
        sha256: sha256.to_owned(),
        size,
        content_hash: content_hash.to_owned(),
    })
}

/// Whether this can be a reason for closing a study: short, and nothing that a terminal would act
/// upon.
pub fn check_reason(text: &str) -> Result<(), LogError> {
    if text.chars().count() <= LONGEST_REASON && !text.chars().any(char::is_control) {
        return Ok(());
    }
    Err(LogError::Reason(LONGEST_REASON))
}

fn check_hash(text: &str) -> Result<(), LogError> {
    let digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    if text.len() == 64 && text.bytes().all(digit) { Ok(()) } else { Err(LogError::NoHash) }
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
fn check_place(previous: Option<&Event>, event: &Event) -> Result<(), LogError> {
    if event.potluck != "event" || event.format != FORMAT {
        return Err(LogError::Format);
    }
    if !is_utc_time(&event.time) {
        return Err(LogError::Time);
    }
    if event.sequence != previous.map_or(0, |previous| previous.sequence) + 1 {
        return Err(LogError::Order);
    }
    if event.previous != previous.map_or(NO_PREDECESSOR, |previous| &previous.hash) {
        return Err(LogError::Link);
    }
    if event.computed_hash() != event.hash {
        return Err(LogError::Hash);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use potluck_core::mixing::MixingKey;
    use potluck_fixtures::pair;
    use zeroize::Zeroizing;

    use super::*;
    use crate::dataset::Completeness;
    use crate::study::{Draft, Extension};

    fn study(key: u8) -> Study {
        Draft::parse(&pair().to_string()).unwrap().seal(MixingKey::new([key; 32])).unwrap()
    }

    fn key(seed: u8) -> SigningKey {
        SigningKey::from_seed(&Zeroizing::new([seed; 32]))
    }

    fn hash(digit: char) -> String {
        digit.to_string().repeat(64)
    }

    fn created(early: bool) -> Change {
        Change::Created { study: study(1).to_json(), early }
    }

    fn invited(party: &str) -> Change {
        Change::Invited { party: party.to_owned() }
    }

    fn accepted(party: &str, seed: u8) -> Change {
        Change::Accepted { acceptance: Acceptance::new(&study(1), party, &key(seed)) }
    }

    fn released(party: &str, digit: char) -> Change {
        let (sha256, content_hash) = (hash(digit), hash('e'));
        Change::Released { party: party.to_owned(), sha256, size: 7, content_hash }
    }

    fn published(parties: &[&str]) -> Change {
        let parties = parties.iter().map(|&party| party.to_owned()).collect();
        Change::Published { parties, sha256: hash('5'), size: 9, content_hash: hash('6') }
    }

    /// A study from its creation to its extension, with every kind of event.
    fn life() -> Vec<Change> {
        vec![
            created(false),
            invited("north"),
            invited("south"),
            invited("south"),
            accepted("south", 2),
            accepted("north", 1),
            released("north", '1'),
            released("south", '2'),
            published(&["north", "south"]),
            Change::Extended { study_id: hash('a') },
        ]
    }

    /// A study in which acceptances are undone, and that is closed.
    fn short_life() -> Vec<Event> {
        let mut events = chain(&[created(false), accepted("north", 1), accepted("south", 2)]);
        let withdrawal = Withdrawal::new(study(1).id(), "north", &events[1].hash, &key(1));
        let rest = [
            Change::Withdrawn { withdrawal },
            accepted("north", 3),
            Change::Revoked { party: "south".to_owned() },
            invited("south"),
            Change::Closed { reason: "the bounds of age were wrong".to_owned() },
        ];
        for (minute, change) in rest.into_iter().enumerate() {
            let time = format!("2026-02-01T00:{minute:02}:00Z");
            events.push(Event::following(events.last(), time, change));
        }
        events
    }

    /// The events that follow from each other with these changes.
    fn chain(changes: &[Change]) -> Vec<Event> {
        let mut events: Vec<Event> = Vec::new();
        for (second, change) in changes.iter().enumerate() {
            let time = format!("2026-01-31T23:59:{second:02}Z");
            events.push(Event::following(events.last(), time, change.clone()));
        }
        events
    }

    fn text(events: &[Event]) -> String {
        events.iter().map(Event::to_line).collect()
    }

    fn parse(text: &str) -> Result<EventLog, Error> {
        EventLog::parse(text, Path::new("events.jsonl"))
    }

    fn log(changes: &[Change]) -> Result<EventLog, Error> {
        parse(&text(&chain(changes)))
    }

    fn file(parties: &[&str], sha256: char, size: u64, content_hash: char) -> LoggedFile {
        let parties = parties.iter().map(|&party| party.to_owned()).collect();
        LoggedFile { parties, sha256: hash(sha256), size, content_hash: hash(content_hash) }
    }

    #[track_caller]
    fn refused(result: Result<EventLog, Error>, word: &str) {
        let error = result.expect_err("it was accepted").to_string();
        assert!(error.contains(word), "no {word:?} in: {error}");
    }

    #[test]
    fn a_log_is_read_back_as_it_was_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("events.jsonl");
        let events = chain(&life());
        fs::write(&path, text(&events)).unwrap();
        let log = EventLog::read(&path).unwrap();
        // The hash stands for every field; numbers may be written in another way.
        assert_eq!(text(log.events()), text(&events));
        assert_eq!(log.study(), &study(1));
        assert!(!log.early());
        assert_eq!(log.head(), events.last().unwrap().hash);
        assert_eq!(log.keys()["north"], key(1).public());
        assert_eq!(log.keys()["south"], key(2).public());
        assert_eq!(log.releases()["south"], file(&["south"], '2', 7, 'e'));
        assert_eq!(log.datasets(), [file(&["north", "south"], '5', 9, '6')]);
        assert!(EventLog::read(&folder.path().join("none")).is_err());
    }

    #[test]
    fn an_acceptance_is_the_word_of_its_key_for_one_study_and_party() {
        let good = Acceptance::new(&study(1), "north", &key(1));
        assert_eq!(good.verify(), Some(key(1).public()));
        let other = key(2).public().to_string();
        for forged in [
            Acceptance { study_id: study(2).id().to_owned(), ..good.clone() },
            Acceptance { party: "south".to_owned(), ..good.clone() },
            Acceptance { key: other, ..good.clone() },
            Acceptance { key: "0".repeat(64), ..good.clone() },
            Acceptance { key: String::new(), ..good.clone() },
            Acceptance { signature: good.signature.replace(['a', '1'], "b"), ..good.clone() },
            Acceptance { signature: String::new(), ..good.clone() },
            Acceptance::new(&study(2), "north", &key(1)),
        ] {
            let mut changes = vec![created(false), Change::Accepted { acceptance: forged.clone() }];
            assert!(log(&changes).is_err(), "{forged:?}");
            // A release's signature is no acceptance, though the same key made it.
            let mut replayed = good.clone();
            replayed.signature = key(1).sign_release(&replayed.message()).signature;
            assert_eq!(replayed.verify(), None);
            changes[1] = Change::Accepted { acceptance: replayed };
            refused(log(&changes), "signature");
        }
        let elsewhere = Acceptance::new(&study(2), "north", &key(1));
        refused(log(&[created(false), Change::Accepted { acceptance: elsewhere }]), "another study");
    }

    /// Every value at the end of a path in a JSON document, with that path.
    fn leaves(value: &Value, path: String, into: &mut Vec<String>) {
        match value {
            Value::Object(fields) => {
                for (name, value) in fields {
                    leaves(value, format!("{path}/{name}"), into);
                }
            }
            Value::Array(values) => {
                for (at, value) in values.iter().enumerate() {
                    leaves(value, format!("{path}/{at}"), into);
                }
            }
            _ => into.push(path),
        }
    }

    /// Something else of the same type.
    fn changed(value: &Value) -> Value {
        match value {
            Value::String(text) => match text.chars().next() {
                // Still a digit, so that a hash stays one.
                Some('1') => Value::from(text.replacen('1', "2", 1)),
                Some(first) if first.is_ascii_hexdigit() => Value::from(text.replacen(first, "1", 1)),
                _ => Value::from(format!("{text}x")),
            },
            Value::Number(number) => match number.as_u64() {
                Some(number) => Value::from(number + 1),
                None => Value::from(number.as_f64().unwrap() + 1.0),
            },
            Value::Bool(value) => Value::from(!value),
            _ => Value::Null,
        }
    }

    fn line(value: &Value) -> String {
        String::from_utf8(canonical::json(value)).unwrap() + "\n"
    }

    #[test]
    fn every_change_of_every_field_is_noticed() {
        for events in [chain(&life()), short_life()] {
            every_change_is_noticed(&events);
        }
    }

    fn every_change_is_noticed(events: &[Event]) {
        let lines: Vec<String> = events.iter().map(Event::to_line).collect();
        let mut tried = 0;
        for at in 0..lines.len() {
            let value: Value = serde_json::from_str(&lines[at]).unwrap();
            let mut paths = Vec::new();
            leaves(&value, String::new(), &mut paths);
            let with = |value: &Value| {
                let mut lines = lines.clone();
                lines[at] = line(value);
                parse(&lines.concat())
            };
            assert!(with(&value).is_ok());
            for path in paths {
                let mut tampered = value.clone();
                let leaf = tampered.pointer_mut(&path).unwrap();
                *leaf = changed(leaf);
                assert_ne!(tampered, value);
                assert!(with(&tampered).is_err(), "event {}: {path}", at + 1);
                tried += 1;
            }
            for field in value.as_object().unwrap().keys() {
                let mut tampered = value.clone();
                tampered.as_object_mut().unwrap().remove(field);
                assert!(with(&tampered).is_err(), "event {} without {field}", at + 1);
            }
            let mut tampered = value.clone();
            tampered["more"] = json!(1);
            assert!(with(&tampered).is_err(), "event {} with more in it", at + 1);
        }
        assert!(tried > 70, "only {tried}");
    }

    #[test]
    fn an_acceptance_that_was_undone_counts_no_more() {
        let events = short_life();
        let after = |count: usize| parse(&text(&events[..count])).unwrap();
        assert_eq!(after(3).keys()["north"], key(1).public());
        assert_eq!(after(3).acceptance("north"), Some(events[1].hash.as_str()));
        assert_eq!((after(4).keys().get("north"), after(4).acceptance("north")), (None, None));
        assert_eq!(after(5).keys()["north"], key(3).public(), "another key can be registered");
        assert_eq!(after(6).keys().get("south"), None);
        assert!(after(7).closed().is_none());
        let whole = after(8);
        let (event, reason) = whole.closed().unwrap();
        assert_eq!((event.sequence, reason), (8, "the bounds of age were wrong"));
        // Nothing comes after that.
        let mut more = events.clone();
        let time = "2026-02-02T00:00:00Z".to_owned();
        more.push(Event::following(more.last(), time, invited("north")));
        refused(parse(&text(&more)), "after the study was closed");
    }

    #[test]
    fn a_withdrawal_is_the_word_of_the_registered_key_about_one_acceptance() {
        let id = study(1).id().to_owned();
        let began = chain(&[created(false), accepted("north", 1), accepted("south", 2)]);
        let attempt = |before: &[Event], withdrawal: Withdrawal| {
            let mut events = before.to_vec();
            let time = "2026-02-01T00:00:00Z".to_owned();
            events.push(Event::following(events.last(), time, Change::Withdrawn { withdrawal }));
            parse(&text(&events)).map(|_| events)
        };
        let good = Withdrawal::new(&id, "north", &began[1].hash, &key(1));
        let withdrawn = attempt(&began, good.clone()).unwrap();
        for (forged, word) in [
            (Withdrawal::new(&id, "north", &began[1].hash, &key(2)), "signature of a withdrawal"),
            (Withdrawal { signature: String::new(), ..good.clone() }, "signature of a withdrawal"),
            (
                Withdrawal { signature: key(1).sign_acceptance(&good.message()).signature, ..good.clone() },
                "signature of a withdrawal",
            ),
            (Withdrawal::new(&id, "south", &began[1].hash, &key(2)), "does not stand"),
            (Withdrawal::new(&id, "north", &began[0].hash, &key(1)), "does not stand"),
            (Withdrawal::new(study(2).id(), "north", &began[1].hash, &key(1)), "does not stand"),
            (Withdrawal::new(&id, "west", &began[1].hash, &key(1)), "no party"),
        ] {
            match attempt(&began, forged) {
                Ok(_) => panic!("it was accepted; expected {word:?}"),
                Err(error) => assert!(error.to_string().contains(word), "no {word:?} in: {error}"),
            }
        }
        let again = attempt(&withdrawn, good.clone()).unwrap_err();
        assert!(again.to_string().contains("nothing to undo"), "{again}");
        // The same key accepts anew: the word about the first acceptance is not about this one.
        let mut anew = withdrawn;
        let time = "2026-02-01T00:01:00Z".to_owned();
        anew.push(Event::following(anew.last(), time, accepted("north", 1)));
        parse(&text(&anew)).unwrap();
        let replayed = attempt(&anew, good).unwrap_err();
        assert!(replayed.to_string().contains("does not stand"), "{replayed}");
    }

    /// A hub can compute hashes anew, but it cannot sign for a party, nor change the study, nor
    /// keep the head.
    #[test]
    fn a_hub_that_rewrites_the_chain_is_noticed() {
        let honest = log(&life()).unwrap();
        for (at, change) in life().iter().enumerate() {
            let value = serde_json::to_value(change).unwrap();
            let mut paths = Vec::new();
            leaves(&value, String::new(), &mut paths);
            for path in paths {
                let mut tampered = value.clone();
                let leaf = tampered.pointer_mut(&path).unwrap();
                *leaf = changed(leaf);
                let Ok(change) = serde_json::from_value(tampered) else { continue };
                let mut changes = life();
                changes[at] = change;
                match log(&changes) {
                    Err(_) => {}
                    Ok(rewritten) => {
                        let guarded = path.starts_with("/acceptance") || path.starts_with("/study/");
                        assert!(!guarded, "event {}: {path}", at + 1);
                        assert_ne!(rewritten.head(), honest.head());
                        assert!(!rewritten.contains(honest.head()) && !honest.contains(rewritten.head()));
                    }
                }
            }
        }
    }

    #[test]
    fn events_stand_in_their_order() {
        let lines: Vec<String> = chain(&life()).iter().map(Event::to_line).collect();
        for at in 0..lines.len() - 1 {
            let mut swapped = lines.clone();
            swapped.swap(at, at + 1);
            assert!(parse(&swapped.concat()).is_err(), "{at}");
            let mut missing = lines.clone();
            missing.remove(at);
            assert!(parse(&missing.concat()).is_err(), "{at}");
            let mut doubled = lines.clone();
            doubled.insert(at, lines[at].clone());
            assert!(parse(&doubled.concat()).is_err(), "{at}");
        }
    }

    #[test]
    fn a_log_cut_short_is_good_but_ends_elsewhere() {
        let events = chain(&life());
        let whole = parse(&text(&events)).unwrap();
        for length in 1..events.len() {
            let cut = parse(&text(&events[..length])).unwrap();
            assert_ne!(cut.head(), whole.head());
            assert!(whole.contains(cut.head()), "the whole log goes on from where it was cut");
            assert!(!cut.contains(whole.head()), "whoever knows the end notices that it is missing");
        }
        let text = text(&events);
        assert!(parse(text.trim_end()).is_ok(), "the last line need not end");
        refused(parse(&text[..text.len() - 10]), "event 10: it is not JSON");
        refused(parse(""), "empty");
    }

    #[test]
    fn what_cannot_have_happened_is_refused() {
        let (new, open) = (created(false), created(true));
        for (changes, word) in [
            (vec![invited("north")], "begins with"),
            (vec![new.clone(), new.clone()], "created before"),
            (vec![new.clone(), invited("west")], "no party"),
            (vec![new.clone(), Change::Revoked { party: "north".to_owned() }], "nothing to undo"),
            (
                vec![
                    new.clone(),
                    accepted("north", 1),
                    released("north", '1'),
                    Change::Revoked { party: "north".to_owned() },
                ],
                "had released",
            ),
            (
                vec![
                    new.clone(),
                    accepted("north", 1),
                    released("north", '1'),
                    Change::Closed { reason: String::new() },
                ],
                "closed after north had released",
            ),
            (vec![new.clone(), Change::Closed { reason: "x".repeat(501) }], "reason"),
            (vec![new.clone(), Change::Closed { reason: "\u{1b}[2J".to_owned() }], "reason"),
            (
                vec![new.clone(), Change::Closed { reason: String::new() }, accepted("north", 1)],
                "after the study was closed",
            ),
            (
                vec![new.clone(), accepted("north", 1), released("north", '1'), invited("north")],
                "invited after",
            ),
            (vec![new.clone(), accepted("north", 1), accepted("north", 1)], "accepted twice"),
            (vec![new.clone(), accepted("north", 1), accepted("north", 2)], "accepted twice"),
            (vec![new.clone(), released("north", '1')], "without having accepted"),
            (vec![new.clone(), released("west", '1')], "no party"),
            (
                vec![new.clone(), accepted("north", 1), released("north", '1'), released("north", '2')],
                "released twice",
            ),
            (vec![new.clone(), accepted("north", 1), released("north", 'x')], "no hash"),
            (vec![new.clone(), Change::Extended { study_id: "x".to_owned() }], "no hash"),
            (vec![open.clone(), published(&[])], "no release"),
            (vec![open.clone(), published(&["west"])], "no party"),
            (vec![open.clone(), published(&["north"])], "had not released"),
            (
                vec![new.clone(), accepted("north", 1), released("north", '1'), published(&["north"])],
                "before every party",
            ),
            (
                vec![
                    open.clone(),
                    accepted("north", 1),
                    accepted("south", 2),
                    released("north", '1'),
                    released("south", '2'),
                    published(&["south", "north"]),
                ],
                "not in its place",
            ),
        ] {
            refused(log(&changes), word);
        }
        let early = [open, accepted("north", 1), released("north", '1'), published(&["north"])];
        assert!(log(&early).unwrap().early());
    }

    #[test]
    fn a_refused_event_leaves_the_log_as_it_was() {
        let mut log = log(&life()[..8]).unwrap();
        let before = (log.head().to_owned(), log.releases().clone(), log.keys().clone());
        for change in [released("north", '9'), accepted("north", 9), published(&["north"]), invited("north")]
        {
            let event = Event::following(log.events().last(), "2026-02-01T00:00:00.5Z".to_owned(), change);
            assert!(log.append(event).is_err());
            assert_eq!((log.head().to_owned(), log.releases().clone(), log.keys().clone()), before);
        }
        let next = Event::following(
            log.events().last(),
            "2026-02-01T00:00:00.123456Z".to_owned(),
            published(&["north", "south"]),
        );
        log.append(next).unwrap();
        assert!(log.contains(&before.0));
    }

    #[test]
    fn only_one_form_of_an_event_is_good() {
        let events = chain(&life());
        let good = text(&events);
        refused(parse(&good.replacen("{\"", "{ \"", 1)), "canonical");
        refused(parse(&good.replacen("\"format\":1", "\"format\":1,\"format\":1", 1)), "canonical");
        refused(parse(&good.replacen("\"format\":1", "\"format\":2", 1)), "format 2");
        refused(parse("not json\n"), "not JSON");
        refused(parse(&format!("{good}\n")), "not JSON");
        let mut other = events[0].clone();
        other.change = Change::Created { study: json!({ "format": 1 }), early: false };
        refused(parse(&Event::following(None, other.time, other.change).to_line()), "event 1");
    }

    #[test]
    fn files_are_checked_against_the_log() {
        let sums = |first| vec![vec![first, -7, 100_000, 3]];
        let release =
            |party, seed, first| Release::new(&study(1), party, &sums(first), Some(&key(seed))).unwrap();
        let (north, south) = (release("north", 1, 5), release("south", 2, 6));
        let join =
            |releases: &[Release]| PublicDataset::join(&study(1), releases, Completeness::All).unwrap();
        let dataset = join(&[north.clone(), south.clone()]);
        let out = |release: &Release| Change::Released {
            party: release.party().to_owned(),
            sha256: hash('1'),
            size: 7,
            content_hash: release.content_hash().to_owned(),
        };
        let public = |digit, dataset: &PublicDataset| Change::Published {
            parties: vec!["north".to_owned(), "south".to_owned()],
            sha256: hash(digit),
            size: 9,
            content_hash: dataset.content_hash().to_owned(),
        };
        let mut changes = vec![created(false), accepted("north", 1), accepted("south", 2), out(&north)];
        let partial = log(&changes).unwrap();
        changes.extend([out(&south), public('5', &dataset)]);
        let whole = log(&changes).unwrap();

        whole.check_release(&north, &hash('1')).unwrap();
        assert!(whole.check_release(&north, &hash('2')).unwrap_err().to_string().contains("bytes"));
        assert!(
            partial
                .check_release(&south, &hash('1'))
                .unwrap_err()
                .to_string()
                .contains("no release of south")
        );
        let again = release("north", 1, 8);
        assert!(whole.check_release(&again, &hash('1')).unwrap_err().to_string().contains("another release"));
        let stranger = release("north", 3, 5);
        assert!(
            whole.check_release(&stranger, &hash('1')).unwrap_err().to_string().contains("not signed with")
        );
        let unsigned = Release::new(&study(1), "north", &sums(5), None).unwrap();
        assert!(
            whole.check_release(&unsigned, &hash('1')).unwrap_err().to_string().contains("not signed with")
        );
        let elsewhere = Release::new(&study(2), "north", &sums(5), Some(&key(1))).unwrap();
        assert!(
            whole.check_release(&elsewhere, &hash('1')).unwrap_err().to_string().contains("another study")
        );

        assert!(whole.check_dataset(&dataset, &hash('5'), []).unwrap());
        assert!(whole.check_dataset(&dataset, &hash('1'), []).unwrap_err().to_string().contains("bytes"));
        assert!(
            partial
                .check_dataset(&dataset, &hash('5'), [])
                .unwrap_err()
                .to_string()
                .contains("release of south")
        );
        let other = join(&[again, south.clone()]);
        assert!(
            whole.check_dataset(&other, &hash('5'), []).unwrap_err().to_string().contains("release of north")
        );
        let forged = join(&[stranger, south]);
        assert!(
            whole.check_dataset(&forged, &hash('5'), []).unwrap_err().to_string().contains("not signed with")
        );
        let mut others = changes.clone();
        others[5] = public('5', &join(&[release("north", 1, 5), release("south", 2, 6)]));
        if let Change::Published { parties, .. } = &mut others[5] {
            parties.pop();
        }
        others[0] = created(true);
        let others = log(&others).unwrap();
        assert!(
            others
                .check_dataset(&dataset, &hash('5'), [])
                .unwrap_err()
                .to_string()
                .contains("of north, which")
        );
        let unpublished = log(&changes[..5]).unwrap();
        assert!(
            unpublished.check_dataset(&dataset, &hash('5'), []).unwrap_err().to_string().contains("no such")
        );
        changes.push(published(&["north", "south"]));
        assert!(
            !log(&changes).unwrap().check_dataset(&dataset, &hash('5'), []).unwrap(),
            "there is a later one"
        );
    }

    /// The hub that tells of a study that extends another can make up the parties of the other only
    /// if nobody looks at the other's log.
    #[test]
    fn parties_of_a_base_are_checked_against_its_log() {
        let base = study(1);
        let text = potluck_fixtures::study("u", 50)
            .settings(&format!("extends = \"{}\"\nmethod = \"rmgm\"\nk = 4", base.id()))
            .party("east", &["salt lo = 0; hi = 10"]);
        let wider = Extension::parse(&text.to_string(), &base).unwrap().seal().unwrap();
        let release = |party, seed, first| {
            let under = wider.study_of(party).unwrap();
            Release::new(under, party, &[vec![first, -7, 100_000, 3]], Some(&key(seed))).unwrap()
        };
        let out = |release: &Release| Change::Released {
            party: release.party().to_owned(),
            sha256: hash('1'),
            size: 7,
            content_hash: release.content_hash().to_owned(),
        };
        let (south, east) = (release("south", 2, 6), release("east", 3, 7));
        let base_log = log(&[
            created(false),
            accepted("north", 1),
            accepted("south", 2),
            out(&release("north", 1, 5)),
            out(&south),
        ])
        .unwrap();
        let check = |north: &Release, bases: &[EventLog]| {
            let releases = [north.clone(), south.clone(), east.clone()];
            let dataset = PublicDataset::join(&wider, &releases, Completeness::All).unwrap();
            let acceptance = Acceptance::new(&wider, "east", &key(3));
            let wider_log = log(&[
                Change::Created { study: wider.to_json(), early: false },
                Change::Accepted { acceptance },
                out(&east),
                Change::Published {
                    parties: dataset.parties().map(|(party, _)| party.to_owned()).collect(),
                    sha256: hash('5'),
                    size: 9,
                    content_hash: dataset.content_hash().to_owned(),
                },
            ])
            .unwrap();
            wider_log.check_dataset(&dataset, &hash('5'), bases)
        };
        let north = release("north", 1, 5);
        let bases = [base_log];
        assert!(check(&north, &bases).unwrap());
        assert!(check(&release("north", 9, 5), &bases).unwrap_err().to_string().contains("not signed with"));
        assert!(check(&release("north", 1, 8), &bases).unwrap_err().to_string().contains("release of north"));
        let missing = check(&north, &[]).unwrap_err();
        assert!(
            matches!(&missing, LogError::MissingLog { study_id, .. } if study_id == base.id()),
            "{missing}"
        );
        let early = log(&[created(true), accepted("north", 1)]).unwrap();
        assert!(check(&north, &[early]).unwrap_err().to_string().contains("release of north"));
    }

    #[test]
    fn times_are_in_utc() {
        for good in ["2026-01-31T23:59:59Z", "2026-01-31T23:59:59.123456789Z"] {
            assert!(is_utc_time(good), "{good}");
        }
        for bad in [
            "",
            "Z",
            "2026-01-31",
            "2026-01-31T23:59:59",
            "2026-01-31T23:59:59+00:00",
            "2026-01-31 23:59:59Z",
            "2026-01-31T23:59:59.Z",
            "2026-01-31T23:59:59.1\u{1b}Z",
            "2026-01-31T23:59:5üZ",
        ] {
            assert!(!is_utc_time(bad), "{bad:?}");
        }
    }
}
