//! The state of a hub on disk: a SQLite database beside content-addressed files.
//!
//! Every change is one transaction that also appends to the study's event log; files are complete
//! and synced before the transaction that names them. So whatever happens, what the log says has
//! happened is there.

mod backup;
mod coordinators;
mod objects;
mod parties;
mod publish;
mod schema;
mod studies;
mod undoing;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::Duration;

use jiff::Timestamp;
use moka::sync::Cache;
use potluck_release::Study;
use potluck_release::events::{Change, Event};
use potluck_release::exchange::{Closing, DatasetState, GuaranteeNumbers, PartyState};
use potluck_release::statement::Guarantee;
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};

pub use backup::back_up;
pub use coordinators::{Coordinator, Session};
pub use parties::Acceptance;
pub(crate) use publish::published_before;
pub use publish::{Publication, largest_release};
pub use studies::Creation;
pub(crate) use studies::summary;
pub use undoing::{Closure, Undoing};

use crate::Error;
use objects::Objects;

/// Studies kept in memory, parsed and verified.
const STUDIES_IN_MEMORY: u64 = 1_000;

/// Why a request cannot be granted. The text is for whoever asked.
#[derive(Debug)]
pub enum Refusal {
    /// There is no such thing.
    NotFound(String),
    /// It does not fit the state of the study.
    Conflict(String),
    /// The study that was sent is not acceptable.
    Study(Box<potluck_release::Error>),
    /// What was sent is not acceptable.
    Unacceptable(String),
    /// There is too much to do; it will pass.
    Busy,
    /// The hub failed.
    Failed(Error),
}

impl<E: Into<Error>> From<E> for Refusal {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

impl Refusal {
    pub(crate) fn no_study() -> Self {
        Self::NotFound(
            "this hub has no study with that id; check the address, or ask the coordinator for it".to_owned(),
        )
    }

    pub(crate) fn closed() -> Self {
        Self::Conflict(
            "the study was closed by its coordinator before anyone released; nothing more can happen to it"
                .to_owned(),
        )
    }

    pub(crate) fn no_party(party: &str) -> Self {
        Self::NotFound(format!("the study has no party {party:?} of its own"))
    }
}

/// A study and everything that has happened to it.
#[derive(Clone, Debug)]
pub struct StudyRecord {
    /// The study, sealed and verified.
    pub study: Study,
    /// The study as TOML, as its coordinator gave it.
    pub text: String,
    /// Whether a public dataset may appear before every party has released.
    pub early: bool,
    /// When it was created here (RFC 3339, UTC).
    pub created: String,
    /// Who coordinates it.
    pub coordinator: Option<i64>,
    /// Its place in the list of studies.
    pub number: u64,
    /// All parties, those of the studies it extends first.
    pub parties: Vec<PartyState>,
    /// The latest public dataset.
    pub dataset: Option<DatasetState>,
    /// Studies that extend this one.
    pub extended_by: Vec<String>,
    /// When and why its coordinator closed it, if that happened.
    pub closed: Option<Closing>,
    /// The hash of the last event.
    pub head: String,
    /// The number of events.
    pub events: u64,
    guarantees: OnceLock<Guarantees>,
}

/// What the releases of a study promise.
#[derive(Clone, Debug)]
pub struct Guarantees {
    /// Each party's.
    pub each: GuaranteeNumbers,
    /// Those of all parties together.
    pub joint: GuaranteeNumbers,
}

impl StudyRecord {
    /// What the releases promise; computed when it is first asked for, because outward rounding
    /// takes milliseconds.
    pub fn guarantees(&self) -> &Guarantees {
        self.guarantees.get_or_init(|| Guarantees {
            each: Guarantee::of_party(&self.study).into(),
            joint: Guarantee::joint(&self.study, self.study.definition().parties().len()).into(),
        })
    }

    /// How many parties have accepted.
    pub fn accepted(&self) -> usize {
        self.parties.iter().filter(|party| party.accepted.is_some()).count()
    }

    /// How many parties have released.
    pub fn released(&self) -> usize {
        self.parties.iter().filter(|party| party.release.is_some()).count()
    }

    /// A party of this study or of one it extends.
    pub fn party(&self, name: &str) -> Option<&PartyState> {
        self.parties.iter().find(|party| party.name == name)
    }

    /// A party that releases under this very study.
    pub fn own_party(&self, name: &str) -> Option<&PartyState> {
        self.party(name).filter(|party| party.study == self.study.id())
    }
}

/// The state of a hub on disk.
pub struct Store {
    connection: Mutex<Connection>,
    objects: Objects,
    /// Held while a release is checked and published: one at a time, so that the last one sees all
    /// others.
    publishing: Mutex<()>,
    studies: Cache<String, Arc<StudyRecord>>,
}

impl Store {
    /// Opens the data folder of a hub, or makes one.
    pub fn open(data: &Path) -> Result<Self, Error> {
        make_private(data)?;
        let objects = Objects::open(data)?;
        objects.remove_abandoned()?;
        Ok(Self {
            connection: Mutex::new(schema::open(&data.join(schema::DATABASE))?),
            objects,
            publishing: Mutex::new(()),
            studies: Cache::builder()
                .max_capacity(STUDIES_IN_MEMORY)
                .time_to_idle(Duration::from_secs(3600))
                .build(),
        })
    }

    /// The database. What panicked while it held the lock left no transaction open.
    fn database(&self) -> MutexGuard<'_, Connection> {
        self.connection.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Whether the database answers.
    pub fn check(&self) -> Result<(), Error> {
        Ok(self.database().query_row("SELECT 1", [], |_| Ok(()))?)
    }

    /// The place of a published file.
    pub fn object(&self, sha256: &str) -> PathBuf {
        self.objects.path(sha256)
    }

    /// The folder where uploads are put together.
    pub fn incoming(&self) -> PathBuf {
        self.objects.incoming()
    }

    /// Does something to a study in one transaction, and forgets what memory holds of it, of what
    /// it extends and of what extends it: their records tell of each other.
    fn change<T>(
        &self,
        study: &str,
        change: impl FnOnce(&Transaction<'_>) -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        let mut database = self.database();
        let transaction = database.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let result = change(&transaction)?;
        let mut relatives = transaction.prepare_cached(
            "WITH RECURSIVE
                 earlier (id, extends) AS (
                     SELECT id, extends FROM study WHERE id = ?1
                     UNION SELECT study.id, study.extends FROM study JOIN earlier ON study.id = earlier.extends),
                 later (id) AS (SELECT ?1 UNION SELECT study.id FROM study JOIN later ON study.extends = later.id)
             SELECT id FROM earlier UNION SELECT id FROM later",
        )?;
        let changed = relatives.query_map([study], |row| row.get(0))?.collect::<Result<Vec<String>, _>>()?;
        drop(relatives);
        transaction.commit()?;
        // The database is still ours, so nobody can load an old record in between.
        for study in changed {
            self.studies.invalidate(&study);
        }
        Ok(result)
    }
}

/// Makes a folder that only its owner can look into, if it is not there.
pub(crate) fn make_private(folder: &Path) -> Result<(), Error> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder).map_err(Error::file(folder))
}

/// Now, to the second, in UTC.
fn now() -> String {
    Timestamp::from_second(Timestamp::now().as_second())
        .expect("the clock shows a time that exists")
        .to_string()
}

/// Makes sure that this coordinator created the study.
fn check_coordinator(
    transaction: &Transaction<'_>,
    study: &str,
    coordinator: &Coordinator,
) -> Result<(), Refusal> {
    let owner: Option<Option<i64>> = transaction
        .query_row("SELECT coordinator FROM study WHERE id = ?1", [study], |row| row.get(0))
        .optional()?;
    match owner {
        None => Err(Refusal::no_study()),
        Some(owner) if owner != Some(coordinator.id) => {
            Err(Refusal::Conflict("another coordinator created this study; only they can do that".to_owned()))
        }
        Some(_) => Ok(()),
    }
}

/// Makes sure that something can still happen to a study.
fn check_open(transaction: &Transaction<'_>, study: &str) -> Result<(), Refusal> {
    if is_closed(transaction, study)? { Err(Refusal::closed()) } else { Ok(()) }
}

fn is_closed(transaction: &Transaction<'_>, study: &str) -> Result<bool, Refusal> {
    let last = last_event(transaction, study)?.ok_or_else(Refusal::no_study)?;
    Ok(last.closing().is_some())
}

/// Appends an event to the log of a study.
fn log(transaction: &Transaction<'_>, study: &str, time: &str, change: Change) -> Result<(), Error> {
    let last = last_event(transaction, study)?;
    let event = Event::following(last.as_ref(), time.to_owned(), change);
    transaction.execute(
        "INSERT INTO event (study, sequence, line) VALUES (?1, ?2, ?3)",
        params![study, event.sequence as i64, event.to_line()],
    )?;
    Ok(())
}

fn last_event(connection: &Connection, study: &str) -> Result<Option<Event>, Error> {
    let line: Option<String> = connection
        .query_row("SELECT line FROM event WHERE study = ?1 ORDER BY sequence DESC LIMIT 1", [study], |row| {
            row.get(0)
        })
        .optional()?;
    line.map(|line| serde_json::from_str(&line).map_err(|_| Error::damaged("an event cannot be read")))
        .transpose()
}
