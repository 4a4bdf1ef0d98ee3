//! Releases from tables that stay in their engines: what potluck/sql.py and potluck/spark.py drive.

use potluck_party::order::{Agreed, Prepared};
use potluck_party::sql::{
    CheckQuery, Description, Dialect, ResultRow, Results, Source, UnknownDialect, merged,
};
use potluck_release::guard::guarded;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3_arrow::input::AnyRecordBatch;

use crate::errors::{Error, while_handing_over};
use crate::order::Order;
use crate::release::Published;
use crate::study::{Study, validated};
use crate::work;

/// What the result of a query is called in messages.
const ANSWER: &str = "the answer of the engine";

/// A release from a table in an engine, stage by stage. The ledger is open only while a call lasts:
/// queries may take hours.
#[pyclass(module = "potluck._potluck")]
pub(crate) struct StagedRelease {
    agreed: Agreed,
    source: Source,
    /// Whether every stage was stored before.
    #[pyo3(get)]
    complete: bool,
}

#[pymethods]
impl StagedRelease {
    /// Refuses early what would be refused later, and asks before anything new is charged and an
    /// engine works on it.
    #[new]
    #[pyo3(signature = (study, party, order, *, dialect, table, id))]
    fn new(
        py: Python<'_>,
        study: &Study,
        party: &str,
        order: Order,
        dialect: &str,
        table: String,
        id: Option<String>,
    ) -> Result<Self, Error> {
        let source = source(study.sealed_study()?, party, dialect, table, id)?;
        let (prepared, asked) = order.prepare(py, study, party, None)?;
        let complete = matches!(prepared, Prepared::Repeated(_));
        let agreed = prepared.confirm(|question| {
            work::away(py, || question.first_query(&source))?;
            asked.agree(py, question)
        })?;
        Ok(Self { agreed, source, complete })
    }

    /// A query that gives no row, but the names of all columns.
    fn names_query(&self) -> String {
        self.source.names_query()
    }

    /// Takes the names that it gave.
    fn take_names(&self, names: Vec<String>) -> Result<(), Error> {
        Ok(self.source.check_names(self.agreed.study(), self.agreed.party(), &names)?)
    }

    /// A query for the types of the columns and of the id.
    fn types_query(&self) -> Result<String, Error> {
        Ok(self.source.types_query(self.agreed.study(), self.agreed.party())?)
    }

    /// Takes the answer to it; None if there was no row.
    fn take_types(&mut self, py: Python<'_>, types: Option<&str>) -> Result<(), Error> {
        match self.source.with_types(self.agreed.study(), self.agreed.party(), types) {
            Ok(source) => self.source = source,
            Err(error) => {
                py.detach(|| self.agreed.record_refusal(&self.source, &error))?;
                return Err(error.into());
            }
        }
        Ok(())
    }

    /// The position of the next stage, from 0, and its query; None if every stage is stored.
    fn next_query(&self, py: Python<'_>) -> Result<Option<(u32, String)>, Error> {
        let query = work::away(py, || self.agreed.next_query(&self.source))?;
        Ok(query.map(|query| (query.position, query.text)))
    }

    /// What tasks of a cluster do in place of that query: the position of the stage, what each task
    /// is told, the query for the rows that they add up, and the one for ids and types.
    fn next_task(&self, py: Python<'_>) -> Result<Option<(u32, String, String, String)>, Error> {
        let next = work::away(py, || -> Result<_, potluck_party::Error> {
            let task = self.agreed.next_task(&self.source)?;
            Ok(task.zip(self.agreed.next_query(&self.source)?))
        })?;
        Ok(next.map(|(task, query)| (query.position, task.to_text(), query.of_rows, query.of_ids)))
    }

    /// Takes what they came to, and what the query for ids and types gave, and stores it with noise
    /// added.
    fn feed_shares(
        &self,
        py: Python<'_>,
        ids: &Bound<'_, PyAny>,
        shares: Vec<PyBackedBytes>,
    ) -> Result<(), Error> {
        let ids = rows(ids)?;
        work::away(py, || -> Result<_, potluck_party::Error> {
            let whole = merged(shares.iter().map(|share| &**share))?;
            if let Some(query) = self.agreed.next_query(&self.source)? {
                let results = Results::of_shares(ANSWER, &query.fingerprint, ids, whole);
                self.agreed.feed(&self.source, &results)?;
            }
            Ok(())
        })
    }

    /// Takes the answer to it, rows of three or an Arrow stream, and stores it with noise added.
    fn feed(&self, py: Python<'_>, answer: &Bound<'_, PyAny>) -> Result<(), Error> {
        let results = results(py, answer)?;
        work::away(py, || self.agreed.feed(&self.source, &results))?;
        Ok(())
    }

    /// Writes the release, once every stage is stored.
    fn finish(&self, py: Python<'_>) -> Result<Published, Error> {
        let published = work::away(py, || {
            if self.complete { self.agreed.write(&()) } else { self.agreed.finish(&self.source) }
        })?;
        Ok(published.into())
    }
}

/// Where a party's table is, as it was said.
fn source(
    study: &potluck_release::Study,
    party: &str,
    dialect: &str,
    table: String,
    id: Option<String>,
) -> Result<Source, Error> {
    let dialect: Dialect =
        dialect.parse().map_err(|unknown: UnknownDialect| Error::Usage(unknown.to_string()))?;
    let description = Description { dialect, table, id, booleans: Vec::new(), dates: Vec::new() };
    Ok(Source::new(study, party, description)?)
}

/// The answer to a query: rows of three, or an Arrow stream.
fn results(py: Python<'_>, answer: &Bound<'_, PyAny>) -> Result<Results, Error> {
    if answer.hasattr("__arrow_c_stream__")? {
        let failed = |error| while_handing_over(py, ANSWER, error);
        let reader = answer.extract::<AnyRecordBatch>().and_then(AnyRecordBatch::into_reader);
        let batches = reader.map_err(failed)?.map(|batch| {
            // What the other side says may quote a sum.
            batch.map_err(|_| potluck_party::Error::Table {
                table: ANSWER.to_owned(),
                problem: "could not be read to its end; make the same call again".into(),
            })
        });
        return Ok(guarded(|| Results::from_batches(ANSWER, batches))??);
    }
    Ok(Results::new(ANSWER, rows(answer)?))
}

/// Rows of three.
fn rows(answer: &Bound<'_, PyAny>) -> Result<Vec<ResultRow>, Error> {
    let mut rows = Vec::new();
    for row in answer.try_iter()? {
        let (part, number, value) = row?.extract().map_err(|_| {
            // What the conversion says may quote a sum.
            Error::Input(format!(
                "{ANSWER} has another form than the query gives; check that the dialect is the engine's"
            ))
        })?;
        rows.push(ResultRow::new(part, number, value));
    }
    Ok(rows)
}

/// A validation of a table in an engine: one query, whose counts are for the steward's own eyes.
#[pyclass(module = "potluck._potluck")]
pub(crate) struct StagedValidation {
    study: potluck_release::Study,
    party: String,
    source: Source,
}

#[pymethods]
impl StagedValidation {
    #[new]
    #[pyo3(signature = (study, party, *, dialect, table, id))]
    fn new(
        study: &Study,
        party: String,
        dialect: &str,
        table: String,
        id: Option<String>,
    ) -> Result<Self, Error> {
        let study = study.numbers()?;
        let source = source(&study, &party, dialect, table, id)?;
        Ok(Self { study, party, source })
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
    fn take_types(&mut self, types: Option<&str>) -> Result<(), Error> {
        self.source = self.source.with_types(&self.study, &self.party, types)?;
        Ok(())
    }

    /// The query that counts.
    fn query(&self) -> Result<String, Error> {
        Ok(CheckQuery::new(&self.study, &self.party, &self.source)?.text)
    }

    /// What its answer says of the table.
    fn take<'py>(&self, py: Python<'py>, answer: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>, Error> {
        let query = CheckQuery::new(&self.study, &self.party, &self.source)?;
        let validation = query.take(&self.study, &self.party, &self.source, &results(py, answer)?)?;
        validated(py, &validation)
    }
}
