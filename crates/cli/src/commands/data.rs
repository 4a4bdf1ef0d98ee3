//! Where a party's rows are read from: a file, standard input, or a table in PostgreSQL.

use std::path::Path;

use anyhow::Result;
use potluck_party::postgres::{Address, Described};
use potluck_party::{Access, Error, Observer, Table};
use potluck_release::Study;

use crate::args::Data;
use crate::exit::WrongUsage;

/// What was named on the command line.
#[derive(Clone)]
pub(super) enum Place<'a> {
    File(&'a Path),
    Postgres(Address, &'a str),
}

impl<'a> Place<'a> {
    /// Refuses an address without a table, and a table of a file.
    pub(super) fn new(data: &'a Data, table: Option<&'a str>) -> Result<Self> {
        let wrong = |problem: &str| WrongUsage(problem.to_owned()).into();
        match (data, table) {
            (Data::File(path), None) => Ok(Self::File(path)),
            (Data::Address(address), Some(table)) => {
                Ok(Self::Postgres(address.parse().map_err(wrong)?, table))
            }
            (Data::File(_), Some(_)) => Err(wrong("a file is one table: leave --table out")),
            (Data::Address(_), None) => Err(wrong("say with --table which table of the database is yours")),
        }
    }

    /// Whether the table is what comes on standard input.
    pub(super) fn is_standard_input(&self) -> bool {
        matches!(self, Self::File(path) if *path == Path::new("-"))
    }

    /// Looks whether the table is there, and what its columns are called.
    pub(super) fn find(self, tmp: &Path) -> Result<Found, Error> {
        Ok(match self {
            Self::File(path) => Found::Table(Table::open(path, tmp)?),
            Self::Postgres(address, table) => {
                let described = Described::ask(&address, table)?;
                Found::Postgres(address, described)
            }
        })
    }
}

/// A table that is there.
pub(super) enum Found {
    Table(Table),
    /// No row of it has come.
    Postgres(Address, Described),
}

impl Found {
    /// Refuses a table whose columns have not the names that the study expects.
    pub(super) fn check_names(&self, study: &Study, party: &str, access: &Access) -> Result<(), Error> {
        match self {
            Self::Table(table) => access.check_names(study, party, table.name(), &table.column_names()?),
            Self::Postgres(_, table) => table.check(study, party, access),
        }
    }

    /// The table, whose rows can be read as often as it takes.
    pub(super) fn table(
        self,
        study: &Study,
        party: &str,
        access: &Access,
        observer: &dyn Observer,
    ) -> Result<Table, Error> {
        match self {
            Self::Table(table) => Ok(table),
            Self::Postgres(address, table) => table.read(&address, study, party, access, observer),
        }
    }
}
