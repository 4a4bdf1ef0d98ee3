//! What is read: a party's table, and how.

use std::env;
use std::num::NonZero;
use std::path::PathBuf;
use std::thread;

use potluck_release::Study;
use potluck_release::study::IdKind;

use crate::memory::allowance;
use crate::{Error, Table, pass};

/// What of the machine may be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resources {
    /// How many threads may work.
    pub threads: NonZero<usize>,
    /// Where temporary files go. They hold private data while they last.
    pub tmp: PathBuf,
    /// How many bytes of memory may hold decoded columns between the passes of a release.
    pub memory: u64,
}

impl Resources {
    /// What was asked for; by default a thread for each core, the system's temporary folder, and a
    /// quarter of the memory that is available.
    pub fn new(threads: Option<NonZero<usize>>, tmp: Option<PathBuf>) -> Self {
        let cores = || thread::available_parallelism().unwrap_or(NonZero::<usize>::MIN);
        Self {
            threads: threads.unwrap_or_else(cores),
            tmp: tmp.unwrap_or_else(env::temp_dir),
            memory: allowance(),
        }
    }

    /// The same with so many bytes for decoded columns, if that was asked for.
    #[must_use]
    pub fn with_memory(mut self, memory: Option<u64>) -> Self {
        self.memory = memory.unwrap_or(self.memory);
        self
    }
}

/// Whether the table may have columns that the study does not name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExtraColumns {
    /// Refuse the table: it may be the wrong one.
    Refuse,
    /// Leave them alone.
    Ignore,
}

impl ExtraColumns {
    /// Ignored on request only.
    pub fn ignored(ignore: bool) -> Self {
        if ignore { Self::Ignore } else { Self::Refuse }
    }
}

/// How a party's table is read: every choice that people have about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    /// The column that holds the ids, unless the study names the columns that do.
    pub id_column: String,
    /// Whether the table may have columns that the study does not name.
    pub extra_columns: ExtraColumns,
    /// What of the machine may be used.
    pub resources: Resources,
}

impl Access {
    /// Refuses a table with columns of these names that has not what the study expects, before the
    /// table itself is at hand.
    pub fn check_names(
        &self,
        study: &Study,
        party: &str,
        table: &str,
        found: &[String],
    ) -> Result<(), Error> {
        pass::check_names(study, study.own_party(party)?, self, table, found).map(|_| ())
    }

    /// The columns that are read, if others are left alone; otherwise all are looked at.
    pub fn needed_columns(&self, study: &Study, party: &str) -> Result<Option<Vec<String>>, Error> {
        let party = study.own_party(party)?;
        if self.extra_columns == ExtraColumns::Refuse {
            return Ok(None);
        }
        let mut names: Vec<String> = party.columns().iter().map(|column| column.name().to_owned()).collect();
        names.extend(self.id_columns(study));
        Ok(Some(names))
    }

    /// The columns that make up an id: those that the study names, or ours; none if positions are
    /// ids.
    pub(crate) fn id_columns(&self, study: &Study) -> Vec<String> {
        let definition = study.definition();
        match (definition.id_kind(), definition.id_columns()) {
            (IdKind::Row, _) => Vec::new(),
            (_, []) => vec![self.id_column.clone()],
            (_, columns) => columns.to_vec(),
        }
    }
}

/// What is read: the table of a party, for a study.
#[derive(Clone, Copy)]
pub struct Reading<'a> {
    /// The sealed study.
    pub study: &'a Study,
    /// Which of its parties we are.
    pub party: &'a str,
    /// Our raw table.
    pub table: &'a Table,
    /// How it is read.
    pub access: &'a Access,
}
