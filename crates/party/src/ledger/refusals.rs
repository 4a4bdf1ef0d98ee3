//! Refusals that depend on the data: they cost nothing, so the ledger counts them for the steward.

use rusqlite::params;
use serde_json::{Value, json};

use super::{Ledger, checksum};
use crate::{Error, Refusal};

pub(super) const SCHEMA: &str = "
CREATE TABLE refusal (
    id INTEGER PRIMARY KEY,
    study_id TEXT NOT NULL,
    study_name TEXT NOT NULL,
    party TEXT NOT NULL,
    reason TEXT NOT NULL,
    created TEXT NOT NULL DEFAULT (datetime('now')),
    checksum BLOB NOT NULL
) STRICT;
";

/// A table that was refused for what stands in it: when, under which study, and the kind of reason.
/// Never a value, a column or a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Id of the study.
    pub study_id: String,
    /// Name of the study.
    pub study_name: String,
    /// The party whose table it was.
    pub party: String,
    /// The kind of reason.
    pub reason: Refusal,
    /// When (UTC).
    pub created: String,
}

impl Refused {
    /// The refusal for machines.
    pub fn to_json(&self) -> Value {
        json!({
            "study_id": self.study_id,
            "study": self.study_name,
            "party": self.party,
            "reason": self.reason.name(),
            "created": self.created,
        })
    }
}

fn refusal_checksum(study_id: &str, study_name: &str, party: &str, reason: Refusal) -> Vec<u8> {
    checksum(&["refusal", study_id, study_name, party, reason.name()])
}

impl Ledger {
    /// All refusals, oldest first.
    pub fn refusals(&self) -> Result<Vec<Refused>, Error> {
        let mut statement = self
            .connection
            .prepare("SELECT study_id, study_name, party, reason, created, checksum FROM refusal ORDER BY id")
            .map_err(|error| self.error(error))?;
        let rows = statement
            .query_map([], |row| {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?, row.get(5)?))
            })
            .map_err(|error| self.error(error))?;
        let mut refusals = Vec::new();
        for row in rows {
            let (study_id, study_name, party, reason, created, checksum): (
                String,
                String,
                String,
                String,
                String,
                Vec<u8>,
            ) = row.map_err(|error| self.error(error))?;
            let reason =
                Refusal::parse(&reason).ok_or_else(|| self.damaged("a refusal has no known reason"))?;
            if checksum != refusal_checksum(&study_id, &study_name, &party, reason) {
                return Err(self.damaged("a refusal does not match its checksum"));
            }
            refusals.push(Refused { study_id, study_name, party, reason, created });
        }
        Ok(refusals)
    }

    /// Records that the table of a party was refused under a study, if the error says so of what
    /// stands in the table; other errors leave no trace.
    pub fn record_refusal(
        &mut self,
        study_id: &str,
        study_name: &str,
        party: &str,
        error: &Error,
    ) -> Result<(), Error> {
        let Some(reason) = error.refusal() else { return Ok(()) };
        self.connection
            .execute(
                "INSERT INTO refusal (study_id, study_name, party, reason, checksum) VALUES (?1, ?2, ?3, ?4, ?5)",
                params![
                    study_id,
                    study_name,
                    party,
                    reason.name(),
                    refusal_checksum(study_id, study_name, party, reason)
                ],
            )
            .map_err(|error| self.error(error))?;
        Ok(())
    }
}
