//! What every way to release is asked for, and how tables are read, as potluck/_order.py hands it
//! over; and what people are asked.

use std::num::NonZero;
use std::path::{Path, PathBuf};

use potluck_party::order::{Prepared, Question};
use potluck_party::reading::ExtraColumns;
use potluck_party::{Access, LostValues, Resources, Table};
use pyo3::prelude::*;

use crate::errors::Error;
use crate::ledger::chosen;
use crate::study::{Study, existing};
use crate::table::{self, Keeping};
use crate::work;

/// How a table is read, and what becomes of a stream.
pub(crate) struct GivenAccess {
    pub(crate) access: Access,
    /// Nothing where memory decides.
    spool: Option<bool>,
}

impl GivenAccess {
    pub(crate) fn new(
        id: String,
        ignore_extra: bool,
        spool: Option<bool>,
        threads: Option<NonZero<usize>>,
        tmp_dir: Option<PathBuf>,
        memory: Option<u64>,
    ) -> Self {
        let extra_columns = ExtraColumns::ignored(ignore_extra);
        let resources = Resources::new(threads, tmp_dir).with_memory(memory);
        let access = Access { id_column: id, extra_columns, resources };
        Self { access, spool }
    }

    /// Opens a file, or takes the batches of an object; with `keep`, only the columns of these
    /// names.
    pub(crate) fn open(&self, data: &Bound<'_, PyAny>, keep: Option<&[String]>) -> Result<Table, Error> {
        table::open(data, keep, self.keeping(), &self.access.resources.tmp)
    }

    pub(crate) fn keeping(&self) -> Keeping<'_> {
        let resources = &self.access.resources;
        match self.spool {
            Some(spool) => Keeping::spooled(spool, &resources.tmp),
            None => Keeping::Memory(resources.memory, &resources.tmp),
        }
    }
}

// Not derived: that would turn what a field says of its value into another exception.
impl<'py> FromPyObject<'_, 'py> for GivenAccess {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        Ok(Self::new(
            given.getattr("id")?.extract()?,
            given.getattr("ignore_extra")?.extract()?,
            given.getattr("spool")?.extract()?,
            given.getattr("threads")?.extract()?,
            given.getattr("tmp_dir")?.extract()?,
            given.getattr("memory")?.extract()?,
        ))
    }
}

/// What is asked for of a release, wherever its table is.
pub(crate) struct Order {
    ledger: Option<PathBuf>,
    budget: Option<String>,
    out: Option<PathBuf>,
    signing_key: Option<PathBuf>,
    accept_low_accuracy: bool,
    accept_lost_values: bool,
    overwrite: bool,
    asked: Option<Py<PyAny>>,
}

impl<'py> FromPyObject<'_, 'py> for Order {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        Ok(Self {
            ledger: given.getattr("ledger")?.extract()?,
            budget: given.getattr("budget")?.extract()?,
            out: given.getattr("out")?.extract()?,
            signing_key: given.getattr("signing_key")?.extract()?,
            accept_low_accuracy: given.getattr("accept_low_accuracy")?.extract()?,
            accept_lost_values: given.getattr("accept_lost_values")?.extract()?,
            overwrite: given.getattr("overwrite")?.extract()?,
            asked: given.getattr("asked")?.extract()?,
        })
    }
}

impl Order {
    /// Checks everything that can be known before a row is read, and gives who is to be asked. The
    /// ledger, which others may need, is closed again.
    pub(crate) fn prepare(
        self,
        py: Python<'_>,
        study: &Study,
        party: &str,
        data: Option<&Path>,
    ) -> Result<(Prepared, Asked), Error> {
        let order = potluck_party::Order {
            study: study.sealed_study()?.clone(),
            party: party.to_owned(),
            ledger: chosen(self.ledger)?,
            budget: self.budget,
            out: self.out.unwrap_or_else(|| PathBuf::from(format!("{party}.release.parquet"))),
            existing: existing(self.overwrite),
            signing_key: self.signing_key,
            inputs: data.map(Path::to_owned).into_iter().collect(),
            accept_low_accuracy: self.accept_low_accuracy,
            lost_values: LostValues::accepted(self.accept_lost_values),
        };
        Ok((work::away(py, || order.prepare())?, Asked(self.asked)))
    }
}

/// Who is asked before something is charged, if anyone.
pub(crate) struct Asked(Option<Py<PyAny>>);

impl Asked {
    /// Asks whether a new release is meant.
    pub(crate) fn agree(&self, py: Python<'_>, question: &Question) -> Result<(), Error> {
        let Some(asked) = &self.0 else { return Ok(()) };
        if asked.call1(py, (in_words(question),))?.is_truthy(py)? {
            return Ok(());
        }
        Err(Error::Usage("not agreed; no row was read, and nothing was charged or written".to_owned()))
    }
}

fn in_words(question: &Question) -> String {
    let mut text = question.promise.join("\n");
    for warning in &question.warnings {
        text.push_str(&format!("\nCareful: {warning}"));
    }
    if question.refused > 0 {
        let times = if question.refused == 1 { "time" } else { "times" };
        text.push_str(&format!(
            "\nThe table was refused {} {times} under this study; Ledger.show() lists the reasons.",
            question.refused
        ));
    }
    text.push_str(&format!(
        "\nPublish the columns of {} and charge {:.1}% of budget {:?}?",
        question.party(),
        100.0 * question.share,
        question.budget()
    ));
    text
}
