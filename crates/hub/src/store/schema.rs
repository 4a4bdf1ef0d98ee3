//! The database: tables and their versions.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use crate::Error;

/// Name of the database in the data folder.
pub(super) const DATABASE: &str = "hub.sqlite";

/// How long to wait for somebody else who writes.
pub(super) const BUSY: Duration = Duration::from_secs(10);

/// "hubp" in SQLite's application id.
const APPLICATION_ID: i32 = 0x6875_6270;

/// What takes a database from one version to the next; the number of entries is the current
/// version.
const MIGRATIONS: &[&str] = &["
CREATE TABLE coordinator (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    token_hash BLOB NOT NULL UNIQUE,
    created TEXT NOT NULL
) STRICT;
CREATE TABLE session (
    token_hash BLOB PRIMARY KEY,
    coordinator INTEGER NOT NULL REFERENCES coordinator(id) ON DELETE CASCADE,
    form_secret TEXT NOT NULL,
    expires INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE study (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    text TEXT NOT NULL,
    early INTEGER NOT NULL,
    extends TEXT REFERENCES study(id),
    coordinator INTEGER REFERENCES coordinator(id) ON DELETE SET NULL,
    created TEXT NOT NULL
) STRICT;
CREATE INDEX study_extends ON study (extends);
CREATE TABLE party (
    study TEXT NOT NULL REFERENCES study(id),
    position INTEGER NOT NULL,
    name TEXT NOT NULL,
    token_hash BLOB,
    key TEXT,
    accepted TEXT,
    sha256 TEXT,
    size INTEGER,
    content_hash TEXT,
    released TEXT,
    PRIMARY KEY (study, position),
    UNIQUE (study, name)
) STRICT, WITHOUT ROWID;
CREATE TABLE dataset (
    study TEXT NOT NULL REFERENCES study(id),
    position INTEGER NOT NULL,
    parties TEXT NOT NULL,
    sha256 TEXT NOT NULL,
    size INTEGER NOT NULL,
    content_hash TEXT NOT NULL,
    published TEXT NOT NULL,
    PRIMARY KEY (study, position)
) STRICT, WITHOUT ROWID;
CREATE TABLE event (
    study TEXT NOT NULL REFERENCES study(id),
    sequence INTEGER NOT NULL,
    line TEXT NOT NULL,
    PRIMARY KEY (study, sequence)
) STRICT, WITHOUT ROWID;
CREATE TRIGGER event_is_never_changed BEFORE UPDATE ON event BEGIN SELECT RAISE(ABORT, 'events are append-only'); END;
CREATE TRIGGER event_is_never_removed BEFORE DELETE ON event BEGIN SELECT RAISE(ABORT, 'events are append-only'); END;
"];

/// Opens the database, makes it if it is not there, and brings it up to date.
pub(super) fn open(path: &Path) -> Result<Connection, Error> {
    let flags =
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "foreign_keys", true)?;
    let number = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i32>(0));
    let (application, version) = (number("application_id")?, number("user_version")?);
    let foreign = |problem: &str| Error::Foreign { path: path.to_owned(), problem: problem.to_owned() };
    if application != APPLICATION_ID && (application != 0 || version != 0) {
        return Err(foreign("it is not the database of a hub; choose another data folder"));
    }
    let done = usize::try_from(version).unwrap_or(usize::MAX);
    let missing = MIGRATIONS.get(done..).ok_or_else(|| {
        foreign("a later potluck wrote it; run that version, or restore a backup made before the upgrade")
    })?;
    if !missing.is_empty() {
        let transaction = connection.transaction()?;
        for migration in missing {
            transaction.execute_batch(migration)?;
        }
        transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
        transaction.pragma_update(None, "user_version", MIGRATIONS.len() as i32)?;
        transaction.commit()?;
    }
    Ok(connection)
}
