//! The ledger: what a party has spent, of which budget.
//!
//! A SQLite file at the party. A budget has a name, is set once, and may be raised. A release is a
//! session: it is reserved, spent from the moment the first noise may have been drawn, and
//! published. μ² is kept as a whole number of units of 2⁻⁶⁴, without rounding. Opening the ledger
//! locks out every other process.

mod balance;
mod raises;
mod refusals;
mod witness;

use std::env;
use std::path::{Path, PathBuf};

use potluck_core::accounting::{Delta, Epsilon, Mu, MuSquared};
use potluck_release::Study;
use potluck_release::study::Method;
use rusqlite::{Connection, ErrorCode, OpenFlags, Transaction, params};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

pub use raises::{Raise, Raised};
pub use refusals::Refused;
pub use witness::Forgotten;
use witness::Step;

use crate::{Error, NoBudget, Overspend};

/// "potl" in SQLite's application id.
const APPLICATION_ID: i32 = 0x706f_746c;
/// Version 2 keeps refusals, version 3 raises of budgets and version 4 the order of what was
/// charged and drawn; earlier ones become it when they are opened.
const VERSION: i32 = 4;
/// Noised integers stored together: 1 MiB.
pub const CHUNK: usize = 1 << 17;

const SCHEMA: &str = "
CREATE TABLE budget (
    name TEXT PRIMARY KEY,
    epsilon REAL NOT NULL,
    delta REAL NOT NULL,
    total TEXT NOT NULL,
    created TEXT NOT NULL DEFAULT (datetime('now')),
    checksum BLOB NOT NULL
) STRICT;
CREATE TABLE session (
    id INTEGER PRIMARY KEY,
    budget TEXT NOT NULL REFERENCES budget(name),
    study_id TEXT NOT NULL,
    study_name TEXT NOT NULL,
    party TEXT NOT NULL,
    charge TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('reserved', 'spent', 'published', 'void')),
    content_hash TEXT,
    created TEXT NOT NULL DEFAULT (datetime('now')),
    changed TEXT NOT NULL DEFAULT (datetime('now')),
    checksum BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX one_session ON session (budget, study_id, party) WHERE state <> 'void';
CREATE TABLE stage (
    session INTEGER NOT NULL REFERENCES session(id),
    position INTEGER NOT NULL,
    chunk INTEGER NOT NULL,
    chunks INTEGER NOT NULL,
    noised BLOB NOT NULL,
    checksum BLOB NOT NULL,
    PRIMARY KEY (session, position, chunk)
) STRICT;
";

/// How far a session has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Budget is set aside; no noise has been drawn.
    Reserved,
    /// Noise may have been drawn: the charge stands.
    Spent,
    /// The release is out.
    Published,
    /// Given back before any noise was drawn.
    Void,
}

impl State {
    /// Its name in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Reserved => "reserved",
            Self::Spent => "spent",
            Self::Published => "published",
            Self::Void => "void",
        }
    }

    fn parse(name: &str) -> Option<Self> {
        [Self::Reserved, Self::Spent, Self::Published, Self::Void]
            .into_iter()
            .find(|state| state.name() == name)
    }
}

/// What everything that is charged to it may cost together.
#[derive(Clone, Debug, PartialEq)]
pub struct Budget {
    /// What it is called: after the table that it protects.
    pub name: String,
    /// ε as set.
    pub epsilon: f64,
    /// δ as set.
    pub delta: f64,
    /// μ² in all.
    pub total: MuSquared,
    /// μ² of sessions that are not void.
    pub spent: MuSquared,
    /// When it was set (UTC).
    pub created: String,
}

impl Budget {
    /// μ² left.
    pub fn left(&self) -> MuSquared {
        self.total.checked_sub(self.spent).unwrap_or(MuSquared::ZERO)
    }

    /// The budget for machines: ε at its δ of what was spent, and of one further release; μ² exact,
    /// in units of 2⁻⁶⁴, which are too large for a JSON number.
    pub fn to_json(&self) -> Value {
        json!({
            "budget": self.name,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "epsilon_spent": self.spent_epsilon(),
            "epsilon_left": self.epsilon_left(),
            "total": self.total.units().to_string(),
            "spent": self.spent.units().to_string(),
            "left": self.left().units().to_string(),
            "created": self.created,
        })
    }
}

/// One release, as the ledger knows it.
#[derive(Clone, Debug, PartialEq)]
pub struct Session {
    id: i64,
    /// The budget that it is charged to.
    pub budget: String,
    /// Id of the study.
    pub study_id: String,
    /// Name of the study.
    pub study_name: String,
    /// The party that releases.
    pub party: String,
    /// Its charge.
    pub charge: MuSquared,
    /// How far it has come.
    pub state: State,
    /// Content hash of the release, once it is published.
    pub content_hash: Option<String>,
    /// When it was reserved (UTC).
    pub created: String,
    /// When it last changed state (UTC).
    pub changed: String,
}

impl Session {
    /// The session for machines; its charge exact, in units of 2⁻⁶⁴.
    pub fn to_json(&self) -> Value {
        json!({
            "budget": self.budget,
            "study_id": self.study_id,
            "study": self.study_name,
            "party": self.party,
            "charge": self.charge.units().to_string(),
            "state": self.state.name(),
            "content_hash": self.content_hash,
            "created": self.created,
            "changed": self.changed,
        })
    }

    /// Over everything that counts, so that a changed digit is noticed.
    fn checksum(&self) -> Vec<u8> {
        checksum(&[
            "session",
            &self.budget,
            &self.study_id,
            &self.study_name,
            &self.party,
            &self.charge.units().to_string(),
            self.state.name(),
            self.content_hash.as_deref().unwrap_or_default(),
        ])
    }
}

fn budget_checksum(name: &str, epsilon: f64, delta: f64, total: MuSquared) -> Vec<u8> {
    let bits = |value: f64| value.to_bits().to_string();
    checksum(&["budget", name, &bits(epsilon), &bits(delta), &total.units().to_string()])
}

/// SHA-256 over fields, each with its length.
fn checksum(fields: &[&str]) -> Vec<u8> {
    let mut hash = Sha256::new();
    for field in fields {
        hash.update((field.len() as u64).to_le_bytes());
        hash.update(field);
    }
    hash.finalize().to_vec()
}

/// What a session is for.
#[derive(Clone, Copy, Debug)]
pub struct Purpose<'a> {
    /// Id of the study.
    pub study_id: &'a str,
    /// Name of the study.
    pub study_name: &'a str,
    /// The party that releases.
    pub party: &'a str,
    /// ε and δ that the study asks for.
    pub asked: (Epsilon, Delta),
    /// μ of the release.
    pub mu: Mu,
}

impl<'a> Purpose<'a> {
    /// The release of a party under a study; none yet where products are exchanged.
    pub fn of(study: &'a Study, party: &str) -> Result<Self, Error> {
        let definition = study.definition();
        if definition.method() == Method::Exchange {
            return Err(Error::Exchange);
        }
        Ok(Self {
            study_id: study.id(),
            study_name: definition.name(),
            party: study.own_party(party)?.name(),
            asked: (definition.epsilon(), definition.delta()),
            mu: study.mu(),
        })
    }
}

/// Our folder among what the user's programs keep, if the user has a home.
pub fn data_folder() -> Option<PathBuf> {
    let data = env::var_os("XDG_DATA_HOME").filter(|folder| !folder.is_empty()).map(PathBuf::from);
    let home = || env::var_os("HOME").map(|home| Path::new(&home).join(".local/share"));
    data.or_else(home).map(|folder| folder.join("potluck"))
}

/// The user's own ledger, if the user has a home.
pub fn default_path() -> Option<PathBuf> {
    data_folder().map(|folder| folder.join("ledger.sqlite"))
}

/// A party's record of what it has spent.
pub struct Ledger {
    connection: Connection,
    path: PathBuf,
    /// The folder of witnesses, if there is one.
    witnesses: Option<PathBuf>,
}

impl Ledger {
    /// Opens the ledger and keeps every other process out until it is dropped.
    pub fn open(path: &Path) -> Result<Self, Error> {
        if !path.exists() {
            return Err(Error::NoLedger { path: path.to_owned() });
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let ledger = Self::connect(path, flags)?;
        ledger.check()?;
        ledger.give_back_reservations()?;
        Ok(ledger)
    }

    /// Opens the ledger, making an empty one if there is none.
    pub fn open_or_create(path: &Path) -> Result<Self, Error> {
        // An empty file is what an interrupted start leaves behind.
        if std::fs::metadata(path).is_ok_and(|file| file.len() > 0) {
            return Self::open(path);
        }
        create_folder(path)
            .map_err(|error| Error::LedgerWrite { path: path.to_owned(), detail: error.to_string() })?;
        create_private_file(path)
            .map_err(|error| Error::LedgerWrite { path: path.to_owned(), detail: error.to_string() })?;
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let ledger = Self::connect(path, flags)?;
        let setup = format!(
            "BEGIN; {SCHEMA} {} {} {} PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {VERSION}; COMMIT;",
            refusals::SCHEMA,
            raises::SCHEMA,
            witness::SCHEMA
        );
        ledger.connection.execute_batch(&setup).map_err(|error| ledger.error(error))?;
        Ok(ledger)
    }

    fn connect(path: &Path, flags: OpenFlags) -> Result<Self, Error> {
        let connection =
            Connection::open_with_flags(path, flags).map_err(|error| sqlite_error(path, &error))?;
        let ledger = Self { connection, path: path.to_owned(), witnesses: witness::folder() };
        // An exclusive lock is taken by the first transaction and kept; a lock that is held shows
        // at once.
        ledger
            .connection
            .execute_batch(
                "PRAGMA locking_mode = EXCLUSIVE;
                 PRAGMA synchronous = EXTRA;
                 PRAGMA foreign_keys = ON;
                 PRAGMA busy_timeout = 0;
                 BEGIN EXCLUSIVE;
                 COMMIT;",
            )
            .map_err(|error| ledger.error(error))?;
        Ok(ledger)
    }

    fn check(&self) -> Result<(), Error> {
        let pragma = |name: &str| {
            self.connection
                .query_row(&format!("PRAGMA {name}"), [], |row| row.get::<_, i32>(0))
                .map_err(|error| self.error(error))
        };
        if pragma("application_id")? != APPLICATION_ID {
            return Err(self.damaged("it is not a potluck ledger"));
        }
        match pragma("user_version")? {
            VERSION => {}
            earlier @ 1..VERSION => {
                let later = [(2, refusals::SCHEMA), (3, raises::SCHEMA), (4, witness::SCHEMA)];
                let missing: String = later
                    .into_iter()
                    .filter(|(since, _)| earlier < *since)
                    .map(|(_, schema)| schema)
                    .collect();
                let upgrade = format!("BEGIN; {missing} PRAGMA user_version = {VERSION}; COMMIT;");
                self.connection.execute_batch(&upgrade).map_err(|error| self.error(error))?;
            }
            version => {
                return Err(
                    self.damaged(&format!("it has version {version}, this potluck knows version {VERSION}"))
                );
            }
        }
        // Stages may be large, and have checksums of their own.
        for table in ["budget", "session", "refusal", "raise", "identity", "step"] {
            let report: String = self
                .connection
                .query_row(&format!("PRAGMA quick_check({table})"), [], |row| row.get(0))
                .map_err(|error| self.error(error))?;
            if report != "ok" {
                return Err(self.damaged("the database is inconsistent"));
            }
        }
        Ok(())
    }

    /// Whoever held a reservation is gone, since we hold the lock, and had drawn no noise.
    fn give_back_reservations(&self) -> Result<(), Error> {
        for session in self.sessions()?.iter().filter(|session| session.state == State::Reserved) {
            self.set_state(session, &[State::Reserved], State::Void, None)?;
        }
        Ok(())
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// All of it for machines: budgets, sessions, refusals and raises; and charges that it has
    /// forgotten.
    pub fn to_json(&self) -> Result<Value, Error> {
        let budgets: Vec<Value> = self.budgets()?.iter().map(Budget::to_json).collect();
        let sessions: Vec<Value> = self.sessions()?.iter().map(Session::to_json).collect();
        let refusals: Vec<Value> = self.refusals()?.iter().map(Refused::to_json).collect();
        let raises: Vec<Value> = self.raises()?.iter().map(Raised::to_json).collect();
        let forgotten: Vec<Value> = self.forgotten()?.iter().map(Forgotten::to_json).collect();
        Ok(json!({
            "unit": "2^-64 of mu^2",
            "budgets": budgets,
            "sessions": sessions,
            "refusals": refusals,
            "raises": raises,
            "forgotten": forgotten,
        }))
    }

    /// Sets a budget, once.
    ///
    /// # Privacy
    /// The total is μ² of the largest μ that Theorem 2 of docs/PRIVACY.md#from-μ-to-ε-δ allows; it
    /// keeps everything that is charged to the budget (ε, δ)-DP together: Claim L of
    /// docs/PRIVACY.md#ledger.
    pub fn set_budget(&mut self, name: &str, epsilon: Epsilon, delta: Delta) -> Result<Budget, Error> {
        if self.budget(name)?.is_some() {
            return Err(Error::BudgetExists { budget: name.to_owned() });
        }
        let total = Mu::analytic(epsilon, delta).map_err(potluck_release::Error::from)?.squared();
        self.connection
            .execute(
                "INSERT INTO budget (name, epsilon, delta, total, checksum) VALUES (?1, ?2, ?3, ?4, ?5)",
                params![
                    name,
                    epsilon.get(),
                    delta.get(),
                    total.units().to_string(),
                    budget_checksum(name, epsilon.get(), delta.get(), total)
                ],
            )
            .map_err(|error| self.error(error))?;
        self.budget(name)?.ok_or_else(|| self.damaged("the budget just set is not there"))
    }

    /// The budget of this name.
    pub fn budget(&self, name: &str) -> Result<Option<Budget>, Error> {
        Ok(self.budgets()?.into_iter().find(|budget| budget.name == name))
    }

    /// All budgets, by name.
    pub fn budgets(&self) -> Result<Vec<Budget>, Error> {
        let mut statement = self
            .connection
            .prepare("SELECT name, epsilon, delta, total, created, checksum FROM budget ORDER BY name")
            .map_err(|error| self.error(error))?;
        let rows = statement
            .query_map([], |row| {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?, row.get(5)?))
            })
            .map_err(|error| self.error(error))?;
        let mut budgets = Vec::new();
        let sessions = self.sessions()?;
        for row in rows {
            let (name, epsilon, delta, total, created, checksum): (
                String,
                f64,
                f64,
                String,
                String,
                Vec<u8>,
            ) = row.map_err(|error| self.error(error))?;
            let total = self.units(&total)?;
            if checksum != budget_checksum(&name, epsilon, delta, total) {
                return Err(self.damaged("a budget does not match its checksum"));
            }
            let charges = sessions
                .iter()
                .filter(|session| session.budget == name && session.state != State::Void)
                .map(|session| session.charge);
            let spent = MuSquared::checked_sum(charges).ok_or_else(|| self.damaged("charges overflow"))?;
            budgets.push(Budget { name, epsilon, delta, total, spent, created });
        }
        Ok(budgets)
    }

    /// The name of the only budget, or the one given if there is such a budget.
    pub fn choose_budget(&self, name: Option<&str>) -> Result<String, Error> {
        let known: Vec<String> = self.budgets()?.into_iter().map(|budget| budget.name).collect();
        match (name, known.as_slice()) {
            (Some(name), known) if known.iter().any(|known| known == name) => Ok(name.to_owned()),
            (Some(name), _) => Err(Error::NoBudget(NoBudget::Unknown(name.to_owned()))),
            (None, [only]) => Ok(only.clone()),
            (None, []) => Err(Error::NoBudget(NoBudget::Any)),
            (None, several) => Err(Error::NoBudget(NoBudget::Several(several.to_vec()))),
        }
    }

    /// All sessions, oldest first.
    pub fn sessions(&self) -> Result<Vec<Session>, Error> {
        let mut statement = self
            .connection
            .prepare(
                "SELECT id, budget, study_id, study_name, party, charge, state, content_hash, created, changed,
                        checksum
                 FROM session ORDER BY id",
            )
            .map_err(|error| self.error(error))?;
        let rows = statement
            .query_map([], |row| {
                let (charge, state): (String, String) = (row.get(5)?, row.get(6)?);
                let session = Session {
                    id: row.get(0)?,
                    budget: row.get(1)?,
                    study_id: row.get(2)?,
                    study_name: row.get(3)?,
                    party: row.get(4)?,
                    charge: MuSquared::ZERO,
                    state: State::Void,
                    content_hash: row.get(7)?,
                    created: row.get(8)?,
                    changed: row.get(9)?,
                };
                Ok((session, charge, state, row.get::<_, Vec<u8>>(10)?))
            })
            .map_err(|error| self.error(error))?;
        let mut sessions = Vec::new();
        for row in rows {
            let (mut session, charge, state, checksum) = row.map_err(|error| self.error(error))?;
            session.charge = self.units(&charge)?;
            session.state =
                State::parse(&state).ok_or_else(|| self.damaged("a session has no known state"))?;
            if checksum != session.checksum() {
                return Err(self.damaged("a session does not match its checksum"));
            }
            sessions.push(session);
        }
        Ok(sessions)
    }

    fn units(&self, text: &str) -> Result<MuSquared, Error> {
        text.parse().map(MuSquared::from_units).map_err(|_| self.damaged("a charge is not a number"))
    }

    /// The live session of a party's release under a study, if there is one. Refuses if it is
    /// charged to another budget.
    ///
    /// # Privacy
    /// A study and a party are one release, drawn once, for budgets of one ledger may be about the
    /// same people: "One study and party, one draw", beside Claim L in docs/PRIVACY.md#ledger.
    pub fn session(&self, budget: &str, study_id: &str, party: &str) -> Result<Option<Session>, Error> {
        let live = |session: &Session| {
            session.study_id == study_id && session.party == party && session.state != State::Void
        };
        let mut live: Vec<Session> = self.sessions()?.into_iter().filter(live).collect();
        // A ledger of version 0.1 may have several, one a budget; each of them stands.
        if let Some(own) = live.iter().position(|session| session.budget == budget) {
            return Ok(Some(live.swap_remove(own)));
        }
        match live.pop() {
            None => Ok(None),
            Some(session) => Err(Error::OtherBudget {
                party: session.party,
                budget: budget.to_owned(),
                other: session.budget,
            }),
        }
    }

    /// The budget of this name, or why there is none.
    pub fn known_budget(&self, name: &str) -> Result<Budget, Error> {
        self.budget(name)?.ok_or_else(|| Error::NoBudget(NoBudget::Unknown(name.to_owned())))
    }

    /// Refuses a new release that the budget does not allow; charges nothing.
    pub fn check_budget(&self, name: &str, purpose: &Purpose<'_>) -> Result<(), Error> {
        let budget = self.known_budget(name)?;
        self.check_memory()?;
        if budget.left() < purpose.mu.squared() {
            let (epsilon, delta) = purpose.asked;
            return Err(Error::Overspend(Box::new(Overspend {
                asked: (epsilon.get(), delta.get()),
                possible: budget.affordable(delta).map(Epsilon::get),
                budget,
            })));
        }
        Ok(())
    }

    /// Takes up the session of this release, or reserves its charge.
    ///
    /// # Privacy
    /// The charges of all live sessions of a budget, this one included, never exceed its total: the
    /// filter of Theorem 4 (docs/PRIVACY.md#composition) that the proof of Claim L
    /// (docs/PRIVACY.md#ledger) rests on.
    pub fn reserve(&mut self, budget: &str, purpose: Purpose<'_>) -> Result<Session, Error> {
        if let Some(session) = self.session(budget, purpose.study_id, purpose.party)? {
            return Ok(session);
        }
        self.check_budget(budget, &purpose)?;
        let charge = purpose.mu.squared();
        let session = Session {
            id: 0,
            budget: budget.to_owned(),
            study_id: purpose.study_id.to_owned(),
            study_name: purpose.study_name.to_owned(),
            party: purpose.party.to_owned(),
            charge,
            state: State::Reserved,
            content_hash: None,
            created: String::new(),
            changed: String::new(),
        };
        self.connection
            .execute(
                "INSERT INTO session (budget, study_id, study_name, party, charge, state, checksum)
                 VALUES (?1, ?2, ?3, ?4, ?5, 'reserved', ?6)",
                params![
                    budget,
                    purpose.study_id,
                    purpose.study_name,
                    purpose.party,
                    charge.units().to_string(),
                    session.checksum()
                ],
            )
            .map_err(|error| self.error(error))?;
        self.session(budget, purpose.study_id, purpose.party)?
            .ok_or_else(|| self.damaged("the session just reserved is not there"))
    }

    fn set_state(
        &self,
        session: &Session,
        from: &[State],
        to: State,
        content_hash: Option<&str>,
    ) -> Result<(), Error> {
        let allowed: Vec<String> = from.iter().map(|state| format!("'{}'", state.name())).collect();
        let next = Session { state: to, content_hash: content_hash.map(str::to_owned), ..session.clone() };
        let changed = self
            .connection
            .execute(
                &format!(
                    "UPDATE session SET state = ?1, content_hash = ?2, checksum = ?3, changed = datetime('now')
                     WHERE id = ?4 AND state IN ({})",
                    allowed.join(", ")
                ),
                params![to.name(), content_hash, next.checksum(), session.id],
            )
            .map_err(|error| self.error(error))?;
        if changed == 1 { Ok(()) } else { Err(self.damaged("a session is not in the expected state")) }
    }

    /// Gives a reservation back: no noise has been drawn.
    pub fn give_back(&mut self, session: &Session) -> Result<(), Error> {
        self.set_state(session, &[State::Reserved], State::Void, None)
    }

    /// Makes the charge stand, before the first noise is drawn; the witness learns of it too.
    pub fn spend(&mut self, session: &Session) -> Result<(), Error> {
        self.check_memory()?;
        let path = self.path.clone();
        let failed = |error: rusqlite::Error| sqlite_error(&path, &error);
        let transaction = self.connection.unchecked_transaction().map_err(failed)?;
        self.set_state(session, &[State::Reserved, State::Spent], State::Spent, None)?;
        witness::record(&transaction, session, Step::Charge).map_err(failed)?;
        transaction.commit().map_err(failed)?;
        self.tell_witness()
    }

    /// Stores the `sums` noised integers of a stage for good: all that `fill` gives, or none if it
    /// fails. A stage is stored once.
    pub fn store_stage(
        &mut self,
        session: &Session,
        position: u32,
        sums: usize,
        fill: impl FnOnce(&mut StageWriter<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let path = self.path.clone();
        let failed = |error: rusqlite::Error| sqlite_error(&path, &error);
        let transaction = self.connection.transaction().map_err(failed)?;
        let mut writer = StageWriter {
            transaction: &transaction,
            path: &path,
            session: session.id,
            position,
            sums,
            stored: 0,
        };
        fill(&mut writer)?;
        assert_eq!(writer.stored, sums, "every sum of the stage is stored");
        witness::record(&transaction, session, Step::Stage(position)).map_err(failed)?;
        transaction.commit().map_err(failed)?;
        self.tell_witness()
    }

    /// The `sums` noised integers of a stage, if they were stored.
    pub fn stored_stage(
        &self,
        session: &Session,
        position: u32,
        sums: usize,
    ) -> Result<Option<StoredStage<'_>>, Error> {
        let (found, least, most): (i64, Option<i64>, Option<i64>) = self
            .connection
            .query_row(
                "SELECT count(*), min(chunks), max(chunks) FROM stage WHERE session = ?1 AND position = ?2",
                params![session.id, position],
                |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
            )
            .map_err(|error| self.error(error))?;
        if found == 0 {
            return Ok(None);
        }
        if [Some(found), least, most] != [Some(chunk_count(sums)); 3] {
            return Err(self.damaged("part of a stored stage is missing"));
        }
        Ok(Some(StoredStage { ledger: self, session: session.id, position, sums, read: 0 }))
    }

    /// Records that the release with this content is out.
    pub fn publish(&mut self, session: &Session, content_hash: &str) -> Result<(), Error> {
        self.set_state(session, &[State::Spent, State::Published], State::Published, Some(content_hash))
    }

    fn damaged(&self, detail: &str) -> Error {
        Error::LedgerDamaged { path: self.path.clone(), detail: detail.to_owned() }
    }

    #[expect(clippy::needless_pass_by_value, reason = "reads better with map_err")]
    fn error(&self, error: rusqlite::Error) -> Error {
        sqlite_error(&self.path, &error)
    }
}

fn chunk_count(sums: usize) -> i64 {
    sums.div_ceil(CHUNK) as i64
}

/// Takes the noised integers of a stage, within one transaction.
pub struct StageWriter<'a> {
    transaction: &'a Transaction<'a>,
    path: &'a Path,
    session: i64,
    position: u32,
    sums: usize,
    stored: usize,
}

impl StageWriter<'_> {
    /// Stores the next [`CHUNK`] integers; the last time, what is left.
    pub fn push(&mut self, noised: &[i64]) -> Result<(), Error> {
        assert_eq!(noised.len(), CHUNK.min(self.sums - self.stored), "all chunks but the last are full");
        let bytes: Vec<u8> = noised.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.transaction
            .prepare_cached(
                "INSERT INTO stage (session, position, chunk, chunks, noised, checksum) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            )
            .and_then(|mut statement| {
                statement.execute(params![
                    self.session,
                    self.position,
                    (self.stored / CHUNK) as i64,
                    chunk_count(self.sums),
                    bytes,
                    Sha256::digest(&bytes).as_slice()
                ])
            })
            .map_err(|error| sqlite_error(self.path, &error))?;
        self.stored += noised.len();
        Ok(())
    }
}

/// The noised integers of a stage, chunk by chunk.
pub struct StoredStage<'a> {
    ledger: &'a Ledger,
    session: i64,
    position: u32,
    sums: usize,
    read: usize,
}

impl StoredStage<'_> {
    /// All of them at once.
    pub fn all(self) -> Result<Vec<i64>, Error> {
        let mut noised = Vec::with_capacity(self.sums);
        for chunk in self {
            noised.extend(chunk?);
        }
        Ok(noised)
    }

    fn chunk(&self) -> Result<Vec<i64>, Error> {
        let length = CHUNK.min(self.sums - self.read);
        let chunk = |row: &rusqlite::Row<'_>| {
            let (bytes, checksum) = (row.get_ref(0)?.as_blob()?, row.get_ref(1)?.as_blob()?);
            let sound = bytes.len() == 8 * length && Sha256::digest(bytes).as_slice() == checksum;
            let value = |value: &[u8]| i64::from_le_bytes(value.try_into().expect("chunks of eight bytes"));
            Ok(sound.then(|| bytes.chunks_exact(8).map(value).collect()))
        };
        self.ledger
            .connection
            .prepare_cached(
                "SELECT noised, checksum FROM stage WHERE session = ?1 AND position = ?2 AND chunk = ?3",
            )
            .and_then(|mut statement| {
                statement.query_row(params![self.session, self.position, (self.read / CHUNK) as i64], chunk)
            })
            .map_err(|error| self.ledger.error(error))?
            .ok_or_else(|| self.ledger.damaged("a stored stage does not match its checksum"))
    }
}

impl Iterator for StoredStage<'_> {
    type Item = Result<Vec<i64>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.read == self.sums {
            return None;
        }
        let chunk = self.chunk();
        // Nothing follows on a chunk that cannot be read.
        self.read = match &chunk {
            Ok(chunk) => self.read + chunk.len(),
            Err(_) => self.sums,
        };
        Some(chunk)
    }
}

fn sqlite_error(path: &Path, error: &rusqlite::Error) -> Error {
    let path = path.to_owned();
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Error::LedgerInUse { path },
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            Error::LedgerDamaged { path, detail: "it is not a readable database".to_owned() }
        }
        Some(
            ErrorCode::DiskFull
            | ErrorCode::ReadOnly
            | ErrorCode::CannotOpen
            | ErrorCode::PermissionDenied
            | ErrorCode::SystemIoFailure,
        ) => Error::LedgerWrite { path, detail: error.to_string() },
        _ => Error::LedgerDamaged { path, detail: error.to_string() },
    }
}

fn create_folder(path: &Path) -> std::io::Result<()> {
    match path.parent() {
        Some(folder) if folder != Path::new("") => std::fs::create_dir_all(folder),
        _ => Ok(()),
    }
}

/// An empty file that only its owner can read.
fn create_private_file(path: &Path) -> std::io::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).map(|_| ())
}
