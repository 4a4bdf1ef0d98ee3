//! Studies: creating, listing and describing them, and their events.

use std::sync::Arc;

use potluck_release::Study;
use potluck_release::events::{Change, Event};
use potluck_release::exchange::{Closing, DatasetState, PartyState, PublishedFile, StudySummary};
use potluck_release::study::Method;
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::{
    Coordinator, Refusal, Store, StudyRecord, check_coordinator, check_open, is_closed, last_event, log, now,
};
use crate::Error;
use crate::token::Token;

/// Most studies that extend the same one: each has a dataset of its own.
const MOST_EXTENSIONS: i64 = 20;

/// What came of creating a study.
pub enum Creation {
    /// It is new: each party and the token that invites it.
    New(Vec<(String, Token)>),
    /// It was there already.
    Present,
}

impl Store {
    /// Creates a study from its sealed text and invites its parties; returns its id too.
    pub fn create_study(
        &self,
        coordinator: &Coordinator,
        text: &str,
        early: bool,
    ) -> Result<(String, Creation), Refusal> {
        let study = Study::parse(text).map_err(|error| Refusal::Study(error.into()))?;
        if study.definition().method() == Method::Exchange {
            return Err(Refusal::Conflict(
                "a hub does not carry the messages of method exchange yet; create a study of method calibrated"
                    .to_owned(),
            ));
        }
        let base = study.base().map(Study::id);
        if let Some(base) = base
            && self.study(base)?.is_none()
        {
            return Err(Refusal::Conflict(format!(
                "the study extends {base}, which this hub does not have; create that one first"
            )));
        }
        let names: Vec<&str> = study.own_parties().iter().map(potluck_release::study::Party::name).collect();
        let mut invitations = Vec::new();
        for name in &names {
            invitations.push(((*name).to_owned(), Token::new("plp")?));
        }
        let creation = self.change(study.id(), |transaction| {
            let known: Option<i64> = transaction
                .query_row("SELECT number FROM study WHERE id = ?1", [study.id()], |row| row.get(0))
                .optional()?;
            if known.is_some() {
                return Ok(Creation::Present);
            }
            if let Some(base) = base {
                if is_closed(transaction, base)? {
                    return Err(Refusal::Conflict(
                        "the study extends one that was closed, whose parties release nothing".to_owned(),
                    ));
                }
                let extensions: i64 =
                    transaction.query_row("SELECT count(*) FROM study WHERE extends = ?1", [base], |row| row.get(0))?;
                if extensions >= MOST_EXTENSIONS {
                    return Err(Refusal::Conflict(format!(
                        "{extensions} studies extend that one already; extend the latest of them"
                    )));
                }
            }
            let time = now();
            transaction.execute(
                "INSERT INTO study (id, name, text, early, extends, coordinator, created) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
                params![study.id(), study.definition().name(), text, early, base, coordinator.id, time],
            )?;
            log(transaction, study.id(), &time, Change::Created { study: study.to_json(), early })?;
            for (position, (party, token)) in invitations.iter().enumerate() {
                transaction.execute(
                    "INSERT INTO party (study, position, name, token_hash) VALUES (?1, ?2, ?3, ?4)",
                    params![study.id(), position as i64, party, token.hash().bytes()],
                )?;
                log(transaction, study.id(), &time, Change::Invited { party: party.clone() })?;
            }
            if let Some(base) = base {
                log(transaction, base, &time, Change::Extended { study_id: study.id().to_owned() })?;
            }
            Ok(Creation::New(invitations))
        })?;
        Ok((study.id().to_owned(), creation))
    }

    /// Invites a party anew: the invitation before is void. A key that the party has registered
    /// stays.
    pub fn invite(&self, coordinator: &Coordinator, study: &str, party: &str) -> Result<Token, Refusal> {
        let token = Token::new("plp")?;
        self.change(study, |transaction| {
            check_coordinator(transaction, study, coordinator)?;
            check_open(transaction, study)?;
            let released: Option<Option<String>> = transaction
                .query_row(
                    "SELECT released FROM party WHERE study = ?1 AND name = ?2",
                    [study, party],
                    |row| row.get(0),
                )
                .optional()?;
            match released {
                None => return Err(Refusal::no_party(party)),
                Some(Some(_)) => {
                    return Err(Refusal::Conflict(format!(
                        "{party} has released; there is nothing left to invite it to"
                    )));
                }
                // A party that has accepted keeps its key: what is new is the token that it uploads
                // with.
                Some(None) => {}
            }
            transaction.execute(
                "UPDATE party SET token_hash = ?3 WHERE study = ?1 AND name = ?2",
                params![study, party, token.hash().bytes()],
            )?;
            log(transaction, study, &now(), Change::Invited { party: party.to_owned() })?;
            Ok(())
        })?;
        Ok(token)
    }

    /// A study and everything that has happened to it.
    pub fn study(&self, id: &str) -> Result<Option<Arc<StudyRecord>>, Error> {
        if let Some(record) = self.studies.get(id) {
            return Ok(Some(record));
        }
        // The lock is held until the record is in memory, so that no change slips in between.
        let database = self.database();
        let Some(record) = load(&database, id)? else { return Ok(None) };
        let record = Arc::new(record);
        self.studies.insert(id.to_owned(), Arc::clone(&record));
        Ok(Some(record))
    }

    /// Studies, newest first: those after the one with this number, and the number to go on from.
    pub fn studies(&self, after: Option<u64>, limit: u64) -> Result<(Vec<StudySummary>, Option<u64>), Error> {
        let ids = {
            let database = self.database();
            let mut query = database.prepare_cached(
                "SELECT number, id FROM study WHERE number < ?1 ORDER BY number DESC LIMIT ?2",
            )?;
            let before = after.and_then(|after| i64::try_from(after).ok()).unwrap_or(i64::MAX);
            let rows = query.query_map(params![before, limit as i64 + 1], |row| {
                Ok((row.get::<_, i64>(0)? as u64, row.get::<_, String>(1)?))
            })?;
            rows.collect::<Result<Vec<_>, _>>()?
        };
        let more = ids.len() as u64 > limit;
        let shown = &ids[..ids.len().min(limit as usize)];
        let mut summaries = Vec::with_capacity(shown.len());
        for (_, id) in shown {
            let record = self.study(id)?.ok_or_else(|| Error::damaged("a study vanished"))?;
            summaries.push(summary(&record));
        }
        Ok((summaries, shown.last().filter(|_| more).map(|(number, _)| *number)))
    }

    /// The number of studies, and of releases.
    pub fn counts(&self) -> Result<(u64, u64), Error> {
        let database = self.database();
        let count =
            |query| database.query_row(query, [], |row| row.get::<_, i64>(0)).map(|count| count as u64);
        Ok((
            count("SELECT count(*) FROM study")?,
            count("SELECT count(*) FROM party WHERE released IS NOT NULL")?,
        ))
    }

    /// Events of a study in order: those after this sequence number.
    pub fn events(&self, study: &str, after: u64, limit: u64) -> Result<Vec<Event>, Error> {
        let lines = self.event_lines(study, after, limit)?;
        let parse =
            |line: &String| serde_json::from_str(line).map_err(|_| Error::damaged("an event cannot be read"));
        lines.iter().map(parse).collect()
    }

    /// Events of a study as lines of its log.
    pub fn event_lines(&self, study: &str, after: u64, limit: u64) -> Result<Vec<String>, Error> {
        let database = self.database();
        let mut query = database.prepare_cached(
            "SELECT line FROM event WHERE study = ?1 AND sequence > ?2 ORDER BY sequence LIMIT ?3",
        )?;
        let clamp = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        let lines = query.query_map(params![study, clamp(after), clamp(limit)], |row| row.get(0))?;
        Ok(lines.collect::<Result<_, _>>()?)
    }
}

/// The study in short.
pub(crate) fn summary(record: &StudyRecord) -> StudySummary {
    StudySummary {
        id: record.study.id().to_owned(),
        name: record.study.definition().name().to_owned(),
        created: record.created.clone(),
        rows: record.study.definition().rows(),
        parties: record.parties.len() as u64,
        accepted: record.accepted() as u64,
        released: record.released() as u64,
        dataset: record.dataset.is_some(),
        closed: record.closed.clone(),
    }
}

fn load(database: &Connection, id: &str) -> Result<Option<StudyRecord>, Error> {
    let row = database
        .query_row("SELECT text, early, created, coordinator, number FROM study WHERE id = ?1", [id], |row| {
            Ok((row.get::<_, String>(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get::<_, i64>(4)?))
        })
        .optional()?;
    let Some((text, early, created, coordinator, number)) = row else { return Ok(None) };
    let study = Study::parse(&text).map_err(|error| Error::damaged(format!("study {id}: {error}")))?;
    let mut parties = Vec::new();
    let mut chain = vec![&study];
    while let Some(base) = chain.last().and_then(|study| study.base()) {
        chain.push(base);
    }
    for study in chain.into_iter().rev() {
        parties.extend(load_parties(database, study.id())?);
    }
    let head = last_event(database, id)?.ok_or_else(|| Error::damaged("a study has no events"))?;
    let mut extending = database.prepare_cached("SELECT id FROM study WHERE extends = ?1 ORDER BY number")?;
    let extended_by = extending.query_map([id], |row| row.get(0))?.collect::<Result<_, _>>()?;
    Ok(Some(StudyRecord {
        text,
        early,
        created,
        coordinator,
        number: number as u64,
        parties,
        dataset: load_dataset(database, id)?,
        extended_by,
        closed: head.closing().map(|reason| Closing { time: head.time.clone(), reason: reason.to_owned() }),
        head: head.hash,
        events: head.sequence,
        guarantees: std::sync::OnceLock::new(),
        study,
    }))
}

fn load_parties(database: &Connection, study: &str) -> Result<Vec<PartyState>, Error> {
    let mut query = database.prepare_cached(
        "SELECT name, key, accepted, sha256, size, content_hash, released FROM party WHERE study = ?1 ORDER BY position",
    )?;
    let parties = query.query_map([study], |row| {
        let release = match row.get::<_, Option<String>>(3)? {
            Some(_) => Some(published_file(row, 3)?),
            None => None,
        };
        Ok(PartyState {
            name: row.get(0)?,
            study: study.to_owned(),
            key: row.get(1)?,
            accepted: row.get(2)?,
            release,
        })
    })?;
    Ok(parties.collect::<Result<_, _>>()?)
}

fn load_dataset(database: &Connection, study: &str) -> Result<Option<DatasetState>, Error> {
    let found = database
        .query_row(
            "SELECT sha256, size, content_hash, published, parties FROM dataset WHERE study = ?1 ORDER BY position DESC LIMIT 1",
            [study],
            |row| Ok((published_file(row, 0)?, row.get::<_, String>(4)?)),
        )
        .optional()?;
    let Some((file, parties)) = found else { return Ok(None) };
    let parties =
        serde_json::from_str(&parties).map_err(|_| Error::damaged("a dataset's parties cannot be read"))?;
    Ok(Some(DatasetState { file, parties }))
}

/// The columns sha256, size, content_hash and time from this place on.
fn published_file(row: &Row<'_>, at: usize) -> rusqlite::Result<PublishedFile> {
    Ok(PublishedFile {
        sha256: row.get(at)?,
        size: row.get::<_, i64>(at + 1)? as u64,
        content_hash: row.get(at + 2)?,
        time: row.get(at + 3)?,
    })
}
