//! What can be taken back before anything is published: an acceptance, and a whole study.

use potluck_release::events::{Change, Event, Withdrawal, check_reason};
use potluck_release::signing::PublicKey;
use rusqlite::{OptionalExtension, Transaction, params};

use super::{Coordinator, Refusal, Store, check_coordinator, check_open, is_closed, log, now};
use crate::Error;
use crate::token::Token;

/// What came of taking an acceptance back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Undoing {
    /// It counts no more.
    New,
    /// The very same withdrawal was taken before.
    Same,
}

/// What came of closing a study.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closure {
    /// It is closed now.
    New,
    /// It was closed before.
    Before,
}

impl Store {
    /// Takes back the acceptance that a party withdraws. Whoever calls has checked the party's
    /// token.
    pub fn withdraw(&self, study: &str, party: &str, withdrawal: &Withdrawal) -> Result<Undoing, Refusal> {
        if withdrawal.study_id != study || withdrawal.party != party {
            return Err(Refusal::Unacceptable(
                "the withdrawal is of another study or party than the address names".to_owned(),
            ));
        }
        // No release of the party is being checked while its key goes away.
        let _one_at_a_time = self.one_publication();
        self.change(study, |transaction| {
            check_open(transaction, study)?;
            let key = key_to_undo(transaction, study, party)?;
            let last = last_word(transaction, study, party)?;
            let Some(key) = key else {
                return match last.map(|event| event.change) {
                    Some(Change::Withdrawn { withdrawal: known }) if known == *withdrawal => Ok(Undoing::Same),
                    _ => Err(nothing_to_undo(party)),
                };
            };
            let key = PublicKey::from_hex(&key).ok_or_else(|| Error::damaged("a registered key cannot be read"))?;
            if last.is_none_or(|event| event.hash != withdrawal.acceptance) {
                return Err(Refusal::Conflict(format!(
                    "the withdrawal is of an acceptance that does not stand; read the event log again, and withdraw the latest acceptance of {party}"
                )));
            }
            if !withdrawal.is_signed_by(&key) {
                return Err(Refusal::Unacceptable(format!(
                    "the withdrawal is not signed by the key that {party} registered; if that key is lost, ask the coordinator to undo the acceptance"
                )));
            }
            undo(transaction, study, party)?;
            log(transaction, study, &now(), Change::Withdrawn { withdrawal: withdrawal.clone() })?;
            Ok(Undoing::New)
        })
    }

    /// Undoes a party's acceptance by the word of the study's coordinator and invites the party
    /// anew: the invitation before is void.
    pub fn revoke(&self, coordinator: &Coordinator, study: &str, party: &str) -> Result<Token, Refusal> {
        let token = Token::new("plp")?;
        let _one_at_a_time = self.one_publication();
        self.change(study, |transaction| {
            check_coordinator(transaction, study, coordinator)?;
            check_open(transaction, study)?;
            if key_to_undo(transaction, study, party)?.is_none() {
                return Err(nothing_to_undo(party));
            }
            undo(transaction, study, party)?;
            transaction.execute(
                "UPDATE party SET token_hash = ?3 WHERE study = ?1 AND name = ?2",
                params![study, party, token.hash().bytes()],
            )?;
            let time = now();
            log(transaction, study, &time, Change::Revoked { party: party.to_owned() })?;
            log(transaction, study, &time, Change::Invited { party: party.to_owned() })?;
            Ok(())
        })?;
        Ok(token)
    }

    /// Closes a study of this coordinator's before anyone has released: nothing more can happen to
    /// it.
    pub fn close_study(
        &self,
        coordinator: &Coordinator,
        study: &str,
        reason: &str,
    ) -> Result<Closure, Refusal> {
        check_reason(reason).map_err(|error| Refusal::Unacceptable(error.to_string()))?;
        // No release is being checked while the study is closed.
        let _one_at_a_time = self.one_publication();
        self.change(study, |transaction| {
            check_coordinator(transaction, study, coordinator)?;
            if is_closed(transaction, study)? {
                return Ok(Closure::Before);
            }
            let mut extending = transaction.prepare_cached("SELECT id FROM study WHERE extends = ?1 ORDER BY number")?;
            let others = extending.query_map([study], |row| row.get(0))?.collect::<Result<Vec<String>, _>>()?;
            for other in others {
                if !is_closed(transaction, &other)? {
                    return Err(Refusal::Conflict(format!(
                        "study {other} extends this one and needs its releases; close that one first"
                    )));
                }
            }
            let released: Option<String> = transaction
                .query_row(
                    "SELECT name FROM party WHERE study = ?1 AND released IS NOT NULL ORDER BY position LIMIT 1",
                    [study],
                    |row| row.get(0),
                )
                .optional()?;
            if let Some(party) = released {
                return Err(Refusal::Conflict(format!(
                    "{party} has released, and what is published stays published, so the study cannot be closed; parties that have not released may leave it at that, and columns that are still wanted can be asked for in another study"
                )));
            }
            log(transaction, study, &now(), Change::Closed { reason: reason.to_owned() })?;
            Ok(Closure::New)
        })
    }
}

/// The key that a party has registered and not used yet, if there is one.
fn key_to_undo(transaction: &Transaction<'_>, study: &str, party: &str) -> Result<Option<String>, Refusal> {
    let known: Option<(Option<String>, Option<String>)> = transaction
        .query_row("SELECT key, released FROM party WHERE study = ?1 AND name = ?2", [study, party], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
        .optional()?;
    match known {
        None => Err(Refusal::no_party(party)),
        Some((_, Some(_))) => Err(Refusal::Conflict(format!(
            "{party} has released, and what is published stays published; its acceptance cannot be undone"
        ))),
        Some((key, None)) => Ok(key),
    }
}

fn nothing_to_undo(party: &str) -> Refusal {
    Refusal::Conflict(format!("no acceptance of {party} stands; there is nothing to undo"))
}

fn undo(transaction: &Transaction<'_>, study: &str, party: &str) -> Result<(), Error> {
    transaction.execute(
        "UPDATE party SET key = NULL, accepted = NULL WHERE study = ?1 AND name = ?2",
        params![study, party],
    )?;
    Ok(())
}

/// The latest event in which a party accepted or withdrew.
fn last_word(transaction: &Transaction<'_>, study: &str, party: &str) -> Result<Option<Event>, Error> {
    let mut query =
        transaction.prepare_cached("SELECT line FROM event WHERE study = ?1 ORDER BY sequence DESC")?;
    let lines = query.query_map([study], |row| row.get::<_, String>(0))?;
    for line in lines {
        let event: Event =
            serde_json::from_str(&line?).map_err(|_| Error::damaged("an event cannot be read"))?;
        let whose = match &event.change {
            Change::Accepted { acceptance } => &acceptance.party,
            Change::Withdrawn { withdrawal } => &withdrawal.party,
            _ => continue,
        };
        if whose == party {
            return Ok(Some(event));
        }
    }
    Ok(None)
}
