//! A witness beside the ledger: what it was charged with on this machine, in a file outside of it.
//!
//! A ledger that is restored from a backup, or copied and used twice, forgets charges and noise,
//! and nothing in it can tell. So every charge, and every stage whose noise was drawn, is also
//! written to a file in another folder, under a random identity of the ledger; before noise is
//! drawn both are compared. Whoever restores both, or goes on at another machine, deceives it.

use std::env;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use potluck_core::accounting::MuSquared;
use rusqlite::{OptionalExtension as _, Transaction, params};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Ledger, Session, checksum};
use crate::Error;
use crate::error::Behind;

pub(super) const SCHEMA: &str = "
CREATE TABLE identity (name TEXT PRIMARY KEY) STRICT;
INSERT INTO identity SELECT lower(hex(randomblob(16)));
CREATE TABLE step (
    position INTEGER PRIMARY KEY,
    session INTEGER NOT NULL REFERENCES session(id),
    what TEXT NOT NULL,
    head TEXT NOT NULL
) STRICT;
";

/// What a release does that cannot be taken back.
#[derive(Clone, Copy)]
pub(super) enum Step {
    /// Its charge stands.
    Charge,
    /// The noise of this stage is drawn and stored.
    Stage(u32),
}

impl Step {
    fn name(self) -> String {
        match self {
            Self::Charge => "charge".to_owned(),
            Self::Stage(position) => format!("stage {position}"),
        }
    }
}

/// One step as the witness keeps it, a line of JSON.
#[derive(Serialize, Deserialize)]
struct Line {
    position: i64,
    /// Hash of this step and of all before it.
    head: String,
    what: String,
    budget: String,
    study: String,
    party: String,
    /// μ² in units of 2⁻⁶⁴, of a charge; 0 of other steps.
    charge: String,
}

/// What a release did that the witness knows and the ledger does not.
#[derive(Clone, Debug, PartialEq)]
pub struct Forgotten {
    /// The budget that it was charged to.
    pub budget: String,
    /// Name of the study.
    pub study_name: String,
    /// The party that released.
    pub party: String,
    /// Its charge; nothing if only noise was forgotten.
    pub charge: MuSquared,
}

impl Forgotten {
    /// It for machines.
    pub fn to_json(&self) -> Value {
        json!({
            "budget": self.budget,
            "study": self.study_name,
            "party": self.party,
            "charge": self.charge.units().to_string(),
        })
    }
}

/// The folder of witnesses, if the user has a home: apart from the folder of ledgers.
pub(super) fn folder() -> Option<PathBuf> {
    let state = env::var_os("XDG_STATE_HOME").filter(|folder| !folder.is_empty()).map(PathBuf::from);
    let home = || env::var_os("HOME").map(|home| Path::new(&home).join(".local/state"));
    state.or_else(home).map(|folder| folder.join("potluck/ledgers"))
}

fn head_of(previous: &str, session: &Session, what: &str) -> String {
    let charge = session.charge.units().to_string();
    let fields = ["step", previous, what, &session.budget, &session.study_id, &session.party, &charge];
    hex::encode(checksum(&fields))
}

/// Adds a step to the chain, within the transaction that makes it; nothing if it is there.
pub(super) fn record(transaction: &Transaction<'_>, session: &Session, step: Step) -> rusqlite::Result<()> {
    let what = step.name();
    let known = "SELECT count(*) FROM step WHERE session = ?1 AND what = ?2";
    if transaction.query_row(known, params![session.id, what], |row| row.get::<_, i64>(0))? > 0 {
        return Ok(());
    }
    let last = "SELECT position, head FROM step ORDER BY position DESC LIMIT 1";
    let (position, head) = transaction
        .query_row(last, [], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?)))
        .optional()?
        .unwrap_or_default();
    transaction.execute(
        "INSERT INTO step (position, session, what, head) VALUES (?1, ?2, ?3, ?4)",
        params![position + 1, session.id, what, head_of(&head, session, &what)],
    )?;
    Ok(())
}

impl Ledger {
    /// The steps of this ledger in order, as the witness keeps them.
    fn steps(&self) -> Result<Vec<Line>, Error> {
        let sessions = self.sessions()?;
        let mut statement = self
            .connection
            .prepare("SELECT position, session, what, head FROM step ORDER BY position")
            .map_err(|error| self.error(error))?;
        let rows = statement
            .query_map([], |row| Ok((row.get(0)?, row.get::<_, i64>(1)?, row.get(2)?, row.get(3)?)))
            .map_err(|error| self.error(error))?;
        let (mut lines, mut previous) = (Vec::new(), String::new());
        for row in rows {
            let (position, id, what, head): (i64, i64, String, String) =
                row.map_err(|error| self.error(error))?;
            let session = sessions.iter().find(|session| session.id == id);
            let session = session.ok_or_else(|| self.damaged("a step has no session"))?;
            if head != head_of(&previous, session, &what) {
                return Err(self.damaged("a step does not follow from those before it"));
            }
            previous.clone_from(&head);
            let charge = if what == Step::Charge.name() { session.charge.units() } else { 0 };
            lines.push(Line {
                position,
                head,
                what,
                budget: session.budget.clone(),
                study: session.study_name.clone(),
                party: session.party.clone(),
                charge: charge.to_string(),
            });
        }
        Ok(lines)
    }

    fn witness(&self) -> Result<Option<PathBuf>, Error> {
        let name: String = self
            .connection
            .query_row("SELECT name FROM identity", [], |row| row.get(0))
            .map_err(|error| self.error(error))?;
        Ok(self.witnesses.as_ref().map(|folder| folder.join(name)))
    }

    /// What was done with this ledger on this machine and is not in it, one for each release: it is
    /// older than that.
    pub fn forgotten(&self) -> Result<Vec<Forgotten>, Error> {
        let Some(witness) = self.witness()? else { return Ok(Vec::new()) };
        let own = self.steps()?;
        let is_known =
            |line: &Line| own.iter().any(|own| (own.position, &own.head) == (line.position, &line.head));
        let mut forgotten: Vec<Forgotten> = Vec::new();
        for line in read(&witness).into_iter().filter(|line| !is_known(line)) {
            let Ok(units) = line.charge.parse() else { continue };
            let charge = MuSquared::from_units(units);
            let of_release =
                |one: &&mut Forgotten| (&one.study_name, &one.party) == (&line.study, &line.party);
            match forgotten.iter_mut().find(of_release) {
                Some(one) => one.charge = MuSquared::checked_sum([one.charge, charge]).unwrap_or(charge),
                None => forgotten.push(Forgotten {
                    budget: line.budget,
                    study_name: line.study,
                    party: line.party,
                    charge,
                }),
            }
        }
        Ok(forgotten)
    }

    /// Refuses to draw noise from a ledger that has forgotten some.
    ///
    /// # Privacy
    /// Claim L of docs/PRIVACY.md#ledger is about everything ever charged and drawn, and an older
    /// copy does not know all of it ("A ledger that is restored" there).
    pub(super) fn check_memory(&self) -> Result<(), Error> {
        let forgotten = self.forgotten()?;
        if forgotten.is_empty() {
            return Ok(());
        }
        let mut left = self.budgets()?;
        for budget in &mut left {
            let missing = forgotten.iter().filter(|one| one.budget == budget.name).map(|one| one.charge);
            let spent = MuSquared::checked_sum(missing.chain([budget.spent]));
            budget.spent = spent.unwrap_or(budget.total);
        }
        left.retain(|budget| forgotten.iter().any(|one| one.budget == budget.name));
        Err(Error::LedgerBehind(Box::new(Behind { path: self.path.clone(), forgotten, left })))
    }

    /// Writes what the witness does not know yet. It is a net, not a promise: where it cannot be
    /// written, the ledger is all there is.
    pub(super) fn tell_witness(&self) -> Result<(), Error> {
        let Some(witness) = self.witness()? else { return Ok(()) };
        let known = read(&witness);
        let is_new = |line: &Line| !known.iter().any(|known| known.head == line.head);
        let text: String = self
            .steps()?
            .iter()
            .filter(|line| is_new(line))
            .filter_map(|line| serde_json::to_string(line).ok())
            .map(|line| line + "\n")
            .collect();
        let _ = append(&witness, &text);
        Ok(())
    }
}

/// The lines of a witness; one that a crash tore is passed over.
fn read(witness: &Path) -> Vec<Line> {
    let text = fs::read_to_string(witness).unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

fn append(witness: &Path, text: &str) -> io::Result<()> {
    if let Some(folder) = witness.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(witness)?;
    // A line that was torn must not swallow the next one.
    let is_torn = fs::read(witness)?.last().is_some_and(|last| *last != b'\n');
    file.write_all(format!("{}{text}", if is_torn { "\n" } else { "" }).as_bytes())?;
    file.sync_all()
}
