//! Coordinators: who may create studies, and who is signed in to the pages.

use jiff::Timestamp;
use rusqlite::{OptionalExtension, params};

use super::{Store, now};
use crate::Error;
use crate::token::{Token, TokenHash, random_bytes};

/// A session on the pages lasts so long.
const SESSION_SECONDS: i64 = 12 * 3600;

/// Somebody who may create studies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Coordinator {
    /// Their number.
    pub id: i64,
    /// Their name.
    pub name: String,
}

/// A coordinator who is signed in to the pages.
#[derive(Clone)]
pub struct Session {
    /// Who.
    pub coordinator: Coordinator,
    /// What forms of this session carry, so that no other site can send them.
    pub form_secret: String,
}

impl Store {
    /// Adds a coordinator and returns the token that is shown once; `replace` gives one who is
    /// there a new token and ends their sessions.
    pub fn add_coordinator(&self, name: &str, replace: bool) -> Result<Token, Error> {
        let token = Token::new("plc")?;
        let mut database = self.database();
        let transaction = database.transaction()?;
        let known: Option<i64> = transaction
            .query_row("SELECT id FROM coordinator WHERE name = ?1", [name], |row| row.get(0))
            .optional()?;
        match known {
            Some(_) if !replace => return Err(Error::CoordinatorExists(name.to_owned())),
            Some(id) => {
                transaction.execute(
                    "UPDATE coordinator SET token_hash = ?2 WHERE id = ?1",
                    params![id, token.hash().bytes()],
                )?;
                transaction.execute("DELETE FROM session WHERE coordinator = ?1", [id])?;
            }
            None => {
                transaction.execute(
                    "INSERT INTO coordinator (name, token_hash, created) VALUES (?1, ?2, ?3)",
                    params![name, token.hash().bytes(), now()],
                )?;
            }
        }
        transaction.commit()?;
        Ok(token)
    }

    /// All coordinators by name, each with the number of studies that they created.
    pub fn coordinators(&self) -> Result<Vec<(String, u64)>, Error> {
        let database = self.database();
        let mut statement = database.prepare(
            "SELECT coordinator.name, count(study.id)
             FROM coordinator LEFT JOIN study ON study.coordinator = coordinator.id
             GROUP BY coordinator.id ORDER BY coordinator.name",
        )?;
        let rows = statement.query_map([], |row| {
            let studies: i64 = row.get(1)?;
            Ok((row.get(0)?, studies.unsigned_abs()))
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Removes a coordinator: token and sessions are void at once. Their studies stay as they are,
    /// and nobody can invite parties to them anew; returns how many there are.
    pub fn remove_coordinator(&self, name: &str) -> Result<u64, Error> {
        let mut database = self.database();
        let transaction = database.transaction()?;
        let studies: Option<i64> = transaction
            .query_row(
                "SELECT (SELECT count(*) FROM study WHERE study.coordinator = coordinator.id)
                 FROM coordinator WHERE name = ?1",
                [name],
                |row| row.get(0),
            )
            .optional()?;
        let studies = studies.ok_or_else(|| Error::NoCoordinator(name.to_owned()))?;
        transaction.execute("DELETE FROM coordinator WHERE name = ?1", [name])?;
        transaction.commit()?;
        Ok(studies.unsigned_abs())
    }

    /// The coordinator who has this token.
    pub fn coordinator(&self, token: &str) -> Result<Option<Coordinator>, Error> {
        let hash = TokenHash::of(token);
        let found = self
            .database()
            .query_row(
                "SELECT id, name, token_hash FROM coordinator WHERE token_hash = ?1",
                [hash.bytes()],
                |row| Ok((row.get(0)?, row.get(1)?, row.get::<_, Vec<u8>>(2)?)),
            )
            .optional()?;
        Ok(found.filter(|(_, _, stored)| hash.matches(stored)).map(|(id, name, _)| Coordinator { id, name }))
    }

    /// Signs a coordinator in to the pages; the token is what the browser keeps.
    pub fn sign_in(&self, coordinator: &Coordinator) -> Result<Token, Error> {
        let token = Token::new("pls")?;
        let database = self.database();
        let time = Timestamp::now().as_second();
        database.execute("DELETE FROM session WHERE expires <= ?1", [time])?;
        database.execute(
            "INSERT INTO session (token_hash, coordinator, form_secret, expires) VALUES (?1, ?2, ?3, ?4)",
            params![
                token.hash().bytes(),
                coordinator.id,
                hex::encode(random_bytes()?),
                time + SESSION_SECONDS
            ],
        )?;
        Ok(token)
    }

    /// The session that the browser's token belongs to.
    pub fn session(&self, token: &str) -> Result<Option<Session>, Error> {
        let hash = TokenHash::of(token);
        let found = self
            .database()
            .query_row(
                "SELECT coordinator.id, coordinator.name, session.form_secret, session.token_hash
                 FROM session JOIN coordinator ON coordinator.id = session.coordinator
                 WHERE session.token_hash = ?1 AND session.expires > ?2",
                params![hash.bytes(), Timestamp::now().as_second()],
                |row| {
                    let coordinator = Coordinator { id: row.get(0)?, name: row.get(1)? };
                    Ok((Session { coordinator, form_secret: row.get(2)? }, row.get::<_, Vec<u8>>(3)?))
                },
            )
            .optional()?;
        Ok(found.filter(|(_, stored)| hash.matches(stored)).map(|(session, _)| session))
    }

    /// Signs out.
    pub fn sign_out(&self, token: &str) -> Result<(), Error> {
        self.database()
            .execute("DELETE FROM session WHERE token_hash = ?1", [TokenHash::of(token).bytes()])?;
        Ok(())
    }
}
