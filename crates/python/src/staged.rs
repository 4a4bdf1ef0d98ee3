//! Releases from tables that stay in their engines: what potluck/sql.py and potluck/spark.py drive.

use std::path::PathBuf;

use potluck_party::Ledger;
use potluck_party::sql::{self, Description, Dialect, ResultRow, Results, Source};
use potluck_release::files::{Existing, refuse_same_file};
use potluck_release::guard::guarded;
use potluck_release::signing::SigningKey;
use pyo3::prelude::*;
use pyo3_arrow::input::AnyRecordBatch;

use crate::errors::{Error, while_handing_over};
use crate::ledger::chosen;
use crate::release::{Published, agree, question, refuse_futile};
use crate::study::{Study, existing};
use crate::work;

/// What the result of a query is called in messages.
const ANSWER: &str = "the answer of the engine";

/// A release from a table in an engine, stage by stage. The ledger is open only while a call lasts: queries may take hours.
#[pyclass(module = "potluck._potluck")]
pub(crate) struct StagedRelease {
    study: potluck_release::Study,
    party: String,
    source: Source,
    ledger: PathBuf,
    budget: String,
    out: PathBuf,
    existing: Existing,
    signing_key: Option<SigningKey>,
}

impl StagedRelease {
    fn open(&self) -> Result<Ledger, potluck_party::Error> {
        Ledger::open(&self.ledger)
    }

    fn staged(&self) -> sql::StagedRelease<'_> {
        sql::StagedRelease {
            study: &self.study,
            party: &self.party,
            budget: &self.budget,
            source: &self.source,
        }
    }
}

#[pymethods]
impl StagedRelease {
    #[new]
    #[pyo3(signature = (study, party, *, dialect, table, id, ledger, budget, out, overwrite, signing_key))]
    #[expect(clippy::too_many_arguments, reason = "they are independent choices of the caller")]
    fn new(
        py: Python<'_>,
        study: &Study,
        party: &str,
        dialect: &str,
        table: String,
        id: Option<String>,
        ledger: Option<PathBuf>,
        budget: Option<&str>,
        out: PathBuf,
        overwrite: bool,
        signing_key: Option<PathBuf>,
    ) -> Result<Self, Error> {
        let study = study.sealed_study()?.clone();
        let dialect: Dialect =
            dialect.parse().map_err(|unknown: sql::UnknownDialect| Error::Usage(unknown.to_string()))?;
        let description = Description { dialect, table, id, booleans: Vec::new(), dates: Vec::new() };
        let source = Source::new(&study, party, description)?;
        let ledger = chosen(ledger)?;
        let mut inputs = vec![ledger.as_path()];
        inputs.extend(signing_key.as_deref());
        refuse_same_file(&out, &inputs)?;
        let signing_key = signing_key.as_deref().map(SigningKey::load).transpose()?;
        let budget = work::away(py, || Ledger::open(&ledger)?.choose_table(budget))?;
        let existing = existing(overwrite);
        Ok(Self { study, party: party.to_owned(), source, ledger, budget, out, existing, signing_key })
    }

    /// Refuses early what would be refused later, and asks before anything new is charged; whether every stage is stored.
    #[pyo3(signature = (*, accept_low_accuracy, confirm))]
    fn begin(
        &self,
        py: Python<'_>,
        accept_low_accuracy: bool,
        confirm: Option<Py<PyAny>>,
    ) -> Result<bool, Error> {
        let ledger = work::away(py, || self.open())?;
        self.staged().check_out(&ledger, &self.out, self.existing)?;
        // Also looks at the budget, before anybody is asked and an engine works on it.
        let complete = self.staged().next_query(&ledger)?.is_none();
        if ledger.session(&self.budget, self.study.id(), &self.party)?.is_none() {
            refuse_futile(&self.study, accept_low_accuracy)?;
            let question = question(&self.study, &self.party, &self.budget, &ledger)?;
            drop(ledger);
            agree(py, question, confirm.as_ref())?;
        }
        Ok(complete)
    }

    /// A query that gives no row, but the names of all columns.
    fn names_query(&self) -> String {
        self.source.names_query()
    }

    /// Takes the names that it gave.
    fn take_names(&self, names: Vec<String>) -> Result<(), Error> {
        Ok(self.source.check_names(&self.study, &self.party, &names)?)
    }

    /// A query for the types of the columns and of the id.
    fn types_query(&self) -> Result<String, Error> {
        Ok(self.source.types_query(&self.study, &self.party)?)
    }

    /// Takes the answer to it; None if there was no row.
    fn take_types(&mut self, py: Python<'_>, types: Option<&str>) -> Result<(), Error> {
        match self.source.with_types(&self.study, &self.party, types) {
            Ok(source) => self.source = source,
            Err(error) => {
                py.detach(|| self.staged().record_refusal(&mut self.open()?, &error))?;
                return Err(error.into());
            }
        }
        Ok(())
    }

    /// The position of the next stage, from 0, and its query; None if every stage is stored.
    fn next_query(&self, py: Python<'_>) -> Result<Option<(u32, String)>, Error> {
        let query = work::away(py, || self.staged().next_query(&self.open()?))?;
        Ok(query.map(|query| (query.position, query.text)))
    }

    /// Takes the answer to it, rows of three or an Arrow stream, and stores it with noise added.
    fn feed(&self, py: Python<'_>, answer: &Bound<'_, PyAny>) -> Result<(), Error> {
        let results = if answer.hasattr("__arrow_c_stream__")? {
            let failed = |error| while_handing_over(py, ANSWER, error);
            let reader = answer.extract::<AnyRecordBatch>().and_then(AnyRecordBatch::into_reader);
            let batches = reader.map_err(failed)?.map(|batch| {
                // What the other side says may quote a sum.
                batch.map_err(|_| potluck_party::Error::Table {
                    table: ANSWER.to_owned(),
                    problem: "could not be read to its end; make the same call again".to_owned(),
                })
            });
            guarded(|| Results::from_batches(ANSWER, batches))??
        } else {
            let mut rows = Vec::new();
            for row in answer.try_iter()? {
                let (part, number, value) = row?.extract().map_err(|_| {
                    // What the conversion says may quote a sum.
                    Error::Input(format!("{ANSWER} has another form than the query gives; check that the dialect is the engine's"))
                })?;
                rows.push(ResultRow::new(part, number, value));
            }
            Results::new(ANSWER, rows)
        };
        work::away(py, || self.staged().feed(&mut self.open()?, &results, &()))?;
        Ok(())
    }

    /// Writes the release, once every stage is stored; `repeated` says whether it was so before this call.
    fn finish(&self, py: Python<'_>, repeated: bool) -> Result<Published, Error> {
        let (published, budget) = work::away(py, || {
            let mut ledger = self.open()?;
            let key = self.signing_key.as_ref();
            let published = self.staged().finish(&mut ledger, &self.out, self.existing, key, &())?;
            Ok::<_, potluck_party::Error>((published, ledger.budget(&self.budget)?))
        })?;
        Ok(Published::new(&self.out, &self.study, &self.party, &published.release, repeated, budget.as_ref()))
    }
}
