//! Parties: whose invitation a token is, and accepting it.

use potluck_release::events::{self, Change};
use rusqlite::{OptionalExtension, params};

use super::{Refusal, Store, check_open, log, now};
use crate::Error;
use crate::token::TokenHash;

/// What came of accepting an invitation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acceptance {
    /// The key is registered now.
    New,
    /// The same key was registered before.
    Same,
}

impl Store {
    /// The party of the study that this token invites.
    pub fn invited(&self, study: &str, token: &str) -> Result<Option<String>, Error> {
        let hash = TokenHash::of(token);
        let found: Option<(String, Vec<u8>)> = self
            .database()
            .query_row(
                "SELECT name, token_hash FROM party WHERE study = ?1 AND token_hash = ?2",
                params![study, hash.bytes()],
                |row| Ok((row.get(0)?, row.get(1)?)),
            )
            .optional()?;
        Ok(found.filter(|(_, stored)| hash.matches(stored)).map(|(name, _)| name))
    }

    /// Registers the key with which a party accepts the study. Whoever calls has checked the
    /// party's token.
    pub fn accept(
        &self,
        study: &str,
        party: &str,
        acceptance: &events::Acceptance,
    ) -> Result<Acceptance, Refusal> {
        if acceptance.study_id != study || acceptance.party != party {
            return Err(Refusal::Unacceptable(
                "the acceptance is of another study or party than the address names; accept the study that you were invited to".to_owned(),
            ));
        }
        let key = acceptance.verify().ok_or_else(|| {
            Refusal::Unacceptable("the acceptance is not signed by the key that it registers".to_owned())
        })?;
        self.change(study, |transaction| {
            check_open(transaction, study)?;
            let known: Option<Option<String>> = transaction
                .query_row("SELECT key FROM party WHERE study = ?1 AND name = ?2", [study, party], |row| row.get(0))
                .optional()?;
            match known {
                None => Err(Refusal::no_party(party)),
                Some(Some(known)) if known == key.to_string() => Ok(Acceptance::Same),
                Some(Some(_)) => Err(Refusal::Conflict(format!(
                    "{party} has accepted with another key; if that was the wrong one, `potluck party withdraw` takes it back before the release; if that was not you, tell the coordinator"
                ))),
                Some(None) => {
                    let time = now();
                    transaction.execute(
                        "UPDATE party SET key = ?3, accepted = ?4 WHERE study = ?1 AND name = ?2",
                        params![study, party, key.to_string(), time],
                    )?;
                    log(transaction, study, &time, Change::Accepted { acceptance: acceptance.clone() })?;
                    Ok(Acceptance::New)
                }
            }
        })
    }
}
