//! A table in PostgreSQL whose rows this machine may see: they come here and are read like a file.
//!
//! All of them come by one statement (`COPY … TO STDOUT` in binary form), so by one snapshot, and
//! every pass of a release reads what it gave, from memory or from an unnamed private file. psql
//! carries it: it knows TLS, Kerberos, service files and passwords as people have set them up, and
//! none of that comes through here.

use std::io::{ErrorKind, Read};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::str::FromStr;

use arrow_array::cast::AsArray;
use arrow_array::{RecordBatch, RecordBatchIterator, RecordBatchReader};
use arrow_schema::ArrowError;
use potluck_release::Study;
use potluck_release::remedy::{Problem, Remedy};
use potluck_release::study::{Column, Domain, IdKind};

use crate::reading::{Access, ExtraColumns};
use crate::release::{Observer, progress};
use crate::sql::{Dialect, TableName, shown_type};
use crate::table::copy::{CopiedRows, Wire};
use crate::{Error, Refusal, Table};

/// Where a database is: a URL without a password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address(String);

impl Address {
    /// Whether a text is meant as one.
    pub fn is_meant(text: &str) -> bool {
        text.starts_with("postgresql://") || text.starts_with("postgres://")
    }
}

impl FromStr for Address {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let rest = text.split_once("://").filter(|_| Self::is_meant(text)).map(|(_, rest)| rest);
        let rest = rest.ok_or("the address of a database begins with postgresql://")?;
        let (before_query, query) = rest.split_once('?').unwrap_or((rest, ""));
        // A password may hold slashes; then nobody knows where it ends, and neither may we.
        let user = before_query.rsplit_once('@').map_or("", |(user, _)| user);
        let names_password =
            |parameter: &str| parameter.split('=').next().is_some_and(|name| name.contains("password"));
        if user.contains(':') || query.split('&').any(names_password) {
            return Err(
                "the address holds a password, which others on this machine can see (`ps` shows it); leave it out, change it if it was real, and put it into ~/.pgpass, a service file or the variable PGPASSWORD",
            );
        }
        Ok(Self(text.to_owned()))
    }
}

/// A table of PostgreSQL's, and the names and types of its columns. No row of it was read.
#[derive(Clone, Debug)]
pub struct Described {
    name: String,
    table: TableName,
    columns: Vec<(String, String)>,
}

/// The query for names and types of the columns of a table, of two texts a row.
pub fn columns_query(table: &str) -> Result<String, Error> {
    let quoted = Dialect::Postgres.text(&TableName::parse(table)?.quoted(Dialect::Postgres));
    Ok(format!(
        "SELECT CAST(attname AS pg_catalog.text), CAST(CAST(atttypid AS pg_catalog.regtype) AS pg_catalog.text) FROM pg_catalog.pg_attribute WHERE attrelid = CAST({quoted} AS pg_catalog.regclass) AND attnum > 0 AND NOT attisdropped ORDER BY attnum"
    ))
}

impl Described {
    /// A table whose columns have the names and types that [`columns_query`] gave.
    pub fn new(table: &str, columns: Vec<(String, String)>) -> Result<Self, Error> {
        Ok(Self { name: table.to_owned(), table: TableName::parse(table)?, columns })
    }

    /// Asks the database.
    pub fn ask(address: &Address, table: &str) -> Result<Self, Error> {
        let names = ["name", "type"].map(|name| (name.to_owned(), Wire::Text));
        let answer = answer(address, table, &in_binary(&columns_query(table)?))?;
        let mut columns = Vec::new();
        for batch in CopiedRows::new(&answer[..], &names) {
            let batch = batch.map_err(|_| strange(table))?;
            let [names, types] = [0, 1].map(|at| batch.column(at).as_string::<i32>());
            let pairs = names.iter().flatten().zip(types.iter().flatten());
            columns.extend(pairs.map(|(name, kind)| (name.to_owned(), kind.to_owned())));
        }
        Self::new(table, columns)
    }

    /// What to call it in messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The names of its columns.
    pub fn column_names(&self) -> Vec<String> {
        self.columns.iter().map(|(name, _)| name.clone()).collect()
    }

    /// The columns that a party's release reads, in the study's order and then the id's, with their
    /// types; refuses what cannot be read, before any row is.
    fn needed(&self, study: &Study, party: &str, access: &Access) -> Result<Vec<(String, Wire)>, Error> {
        let names = self.check_names(study, party, access)?;
        let own = study.own_party(party)?.columns();
        names.into_iter().map(|name| {
            let (_, kind) = self.columns.iter().find(|(known, _)| *known == name).expect("it was checked");
            let domain = own.iter().find(|column| column.name() == name).map(Column::domain);
            let wire = Wire::named(kind);
            let expected = match (wire, domain) {
                (Some(Wire::Text), Some(Domain::Numeric(_))) => {
                    "the study gives it bounds; cast it to a number in a view, or give it levels"
                }
                (Some(Wire::Float4 | Wire::Float8 | Wire::Numeric | Wire::Date), Some(Domain::Categorical { .. })) => {
                    "the study gives it levels, which are text, whole numbers or booleans; cast it in a view"
                }
                (None, _) => "that is not read; cast it in a view, so that what it means is said there",
                (Some(wire), _) => return Ok((name, wire)),
            };
            let problem = format!("has type {}, but {expected}", shown_type(kind)).into();
            Err(Error::Column { table: self.name.clone(), column: name, problem }.refusing(Refusal::Type))
        }).collect()
    }

    /// The columns that a party's release reads, in the study's order and then the id's; refuses a
    /// table that lacks one.
    pub fn check_names(&self, study: &Study, party: &str, access: &Access) -> Result<Vec<String>, Error> {
        if study.definition().id_kind() == IdKind::Row {
            return Err(Error::Table {
                table: self.name.clone(),
                problem: Problem::with(
                    "has rows in no order, but the study's ids are positions",
                    Remedy::ExportInOrder,
                ),
            });
        }
        let access = Access { extra_columns: ExtraColumns::Ignore, ..access.clone() };
        access.check_names(study, party, &self.name, &self.column_names())?;
        Ok(access.needed_columns(study, party)?.expect("others are left alone"))
    }

    /// Refuses a table that a party's release cannot read.
    pub fn check(&self, study: &Study, party: &str, access: &Access) -> Result<(), Error> {
        self.needed(study, party, access).map(|_| ())
    }

    /// The statement that gives these columns. Casts say of which types they come, whatever becomes
    /// of the table meanwhile; and the encoding does not depend on the connection.
    fn copy(&self, columns: &[(String, Wire)], rows: &str) -> String {
        in_binary(&self.select(columns, |name, wire| format!("CAST({name} AS {})", wire.postgres()), rows))
    }

    fn select(
        &self,
        columns: &[(String, Wire)],
        expression: impl Fn(&str, Wire) -> String,
        rows: &str,
    ) -> String {
        let dialect = Dialect::Postgres;
        let expressions: Vec<String> = columns
            .iter()
            .map(|(name, wire)| {
                let name = dialect.identifier(name);
                format!("{} AS {name}", expression(&name, *wire))
            })
            .collect();
        format!("SELECT {} FROM {}{rows}", expressions.join(", "), self.table.quoted(dialect))
    }

    /// The query that gives the same rows by way of Arrow, which has no type for a numeric of any
    /// length, and no infinite dates.
    pub fn query(&self, study: &Study, party: &str, access: &Access) -> Result<String, Error> {
        let dialect = Dialect::Postgres;
        let expression = |name: &str, wire: Wire| match wire {
            Wire::Numeric => dialect.as_double(name),
            Wire::Date => format!("CASE WHEN {} THEN {name} END", dialect.call("isfinite", &[name])),
            other => format!("CAST({name} AS {})", other.postgres()),
        };
        Ok(self.select(&self.needed(study, party, access)?, expression, ""))
    }

    /// The same for what a party's release reads.
    pub fn copy_statement(&self, study: &Study, party: &str, access: &Access) -> Result<String, Error> {
        Ok(self.copy(&self.needed(study, party, access)?, ""))
    }

    /// The rows that the statement gives.
    pub fn batches<'a>(
        &self,
        study: &Study,
        party: &str,
        access: &Access,
        stream: impl Read + Send + 'a,
    ) -> Result<Box<dyn RecordBatchReader + Send + 'a>, Error> {
        let rows = CopiedRows::new(stream, &self.needed(study, party, access)?);
        let schema = rows.schema();
        Ok(Box::new(RecordBatchIterator::new(rows, schema)))
    }

    /// Lets the rows come, and keeps them as memory allows.
    pub fn read(
        &self,
        address: &Address,
        study: &Study,
        party: &str,
        access: &Access,
        observer: &dyn Observer,
    ) -> Result<Table, Error> {
        let columns = self.needed(study, party, access)?;
        // What it says of no rows holds no value.
        answer(address, &self.name, &self.copy(&columns, " LIMIT 0"))?;
        let mut running = Running::start(address, &self.name, &self.copy(&columns, ""))?;
        let rows = CopiedRows::new(running.rows.take().expect("it was not taken"), &columns);
        let (schema, report, mut done) = (rows.schema(), progress(observer), 0);
        let mut stopped = None;
        let counted = rows.map(|batch| {
            let batch = batch?;
            done += batch.num_rows() as u64;
            report(done).map_err(|error| {
                stopped = Some(error);
                ArrowError::ExternalError("stopped".into())
            })?;
            Ok::<RecordBatch, ArrowError>(batch)
        });
        let reader = Box::new(RecordBatchIterator::new(counted, schema));
        let resources = &access.resources;
        let table = Table::gather(&self.name, reader, None, resources.memory, &resources.tmp);
        match (stopped, table) {
            (Some(stopped), _) => Err(stopped),
            (None, Err(Error::Table { .. })) => Err(Running::failure(&self.name)),
            // Rows may be missing where it does not say that it is content.
            (None, Ok(_)) if !running.ends_well() => Err(Running::failure(&self.name)),
            (None, table) => table,
        }
    }
}

fn in_binary(query: &str) -> String {
    format!("COPY ({query}) TO STDOUT (FORMAT binary, ENCODING 'UTF8')")
}

fn failed(table: &str, problem: String) -> Error {
    Error::Database { table: table.to_owned(), problem }
}

fn strange(table: &str) -> Error {
    failed(
        table,
        "psql gives something else than PostgreSQL's binary form of COPY; check which program it is"
            .to_owned(),
    )
}

fn psql(address: &Address, statement: &str) -> Command {
    let mut psql = Command::new("psql");
    psql.args(["-X", "-q", "-w", "-v", "ON_ERROR_STOP=1"]);
    psql.args(["-d", &address.0, "-c", statement]).stdin(Stdio::null());
    psql
}

fn not_started(table: &str, error: &std::io::Error) -> Error {
    failed(
        table,
        match error.kind() {
            ErrorKind::NotFound => "needs psql, which is not on the path; install PostgreSQL's client (Debian: apt-get install postgresql-client), or use potluck.sql.release(…, read=\"stream\") in Python".to_owned(),
            _ => format!("psql cannot be started: {error}"),
        },
    )
}

/// What a statement gives that reads no row, so that what PostgreSQL says of it may be shown.
fn answer(address: &Address, table: &str, statement: &str) -> Result<Vec<u8>, Error> {
    let done = psql(address, statement).output().map_err(|error| not_started(table, &error))?;
    if done.status.success() {
        return Ok(done.stdout);
    }
    let said = String::from_utf8_lossy(&done.stderr);
    let said: Vec<&str> = said.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let mut problem = format!("PostgreSQL did not answer: {}", said.join("; "));
    if problem.contains("password") {
        problem.push_str("; put the password into ~/.pgpass, a service file or the variable PGPASSWORD");
    }
    Err(failed(table, problem))
}

/// psql at work; ended when it is no longer needed.
struct Running {
    child: Child,
    rows: Option<ChildStdout>,
}

impl Running {
    fn start(address: &Address, table: &str, statement: &str) -> Result<Self, Error> {
        // What PostgreSQL says while it reads rows may quote one.
        let child = psql(address, statement).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let mut child = child.map_err(|error| not_started(table, &error))?;
        let rows = child.stdout.take();
        Ok(Self { child, rows })
    }

    fn ends_well(&mut self) -> bool {
        self.child.wait().is_ok_and(|status| status.success())
    }

    fn failure(table: &str) -> Error {
        failed(
            table,
            "PostgreSQL stopped before all rows had come. What it said may quote a value of the table, so it is not shown: see the server's log, and run this again once it is mended".to_owned(),
        )
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended long ago.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_with_a_password_is_refused_without_showing_it() {
        for address in [
            "postgresql://user:hunter2@host/db",
            "postgres://user:hunter2@host",
            "postgresql://user:hunter/2@host/db",
            "postgresql://user:@host/db",
            "postgresql://host/db?password=hunter2",
            "postgresql:///db?host=/tmp&password=hunter2",
            "postgresql://host/db?sslpassword=hunter2&user=a",
        ] {
            let error = address.parse::<Address>().unwrap_err();
            assert!(error.contains("PGPASSWORD") && !error.contains("hunter"), "{address}");
        }
        for address in [
            "postgresql://",
            "postgresql:///clinic",
            "postgresql://user@host:5432/clinic",
            "postgres://[::1]:5433/clinic?sslmode=verify-full",
            "postgresql:///clinic?service=clinic",
        ] {
            assert!(address.parse::<Address>().is_ok(), "{address}");
        }
        assert!("patients.csv".parse::<Address>().is_err());
    }

    #[test]
    fn names_are_quoted_in_the_queries() {
        let query = columns_query("Clinic.\"it's \"\"odd\"\"\"").unwrap();
        assert!(query.contains(r#"CAST('"Clinic"."it''s ""odd"""' AS pg_catalog.regclass)"#), "{query}");
        let table = Described::new("t", vec![("a \"b\"".to_owned(), "real".to_owned())]).unwrap();
        let copy = table.copy(&[("a \"b\"".to_owned(), Wire::Float4)], "");
        assert_eq!(
            copy,
            r#"COPY (SELECT CAST("a ""b""" AS pg_catalog.float4) AS "a ""b""" FROM "t") TO STDOUT (FORMAT binary, ENCODING 'UTF8')"#
        );
    }
}
