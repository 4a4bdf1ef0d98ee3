//! Rows of a table in a database that come to this machine: what potluck/sql.py drives where rows
//! are streamed.

use std::io::{self, Read};
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatchReader, StructArray};
use arrow_schema::{DataType, Field, Fields, Schema};
use potluck_party::Access;
use potluck_party::postgres::{self, Described};
use potluck_party::reading::ExtraColumns;
use potluck_party::sql::{Dialect, UnknownDialect, rows_query};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyCapsule, PyIterator};
use pyo3_arrow::ffi::{ArrayIterator, to_schema_pycapsule, to_stream_pycapsule};

use crate::errors::Error;
use crate::order::GivenAccess;
use crate::study::Study;

/// What of a table a party's release reads, and how to ask for it.
#[pyclass(module = "potluck._potluck")]
pub(crate) struct Pull {
    study: potluck_release::Study,
    party: String,
    access: Access,
    dialect: Dialect,
    table: String,
    found: Option<Described>,
}

#[pymethods]
impl Pull {
    #[new]
    #[pyo3(signature = (study, party, access, *, dialect, table))]
    fn new(
        study: &Study,
        party: String,
        access: GivenAccess,
        dialect: &str,
        table: String,
    ) -> Result<Self, Error> {
        let dialect = dialect.parse().map_err(|unknown: UnknownDialect| Error::Usage(unknown.to_string()))?;
        if dialect == Dialect::Spark {
            return Err(Error::Usage(
                "rows of Spark are not streamed; see engine=\"native\" of potluck.spark.release".to_owned(),
            ));
        }
        let access = Access { extra_columns: ExtraColumns::Ignore, ..access.access };
        Ok(Self { study: study.numbers()?, party, access, dialect, table, found: None })
    }

    /// A query that gives names and types of all columns, if the engine's names alone do not do.
    fn columns_query(&self) -> Result<Option<String>, Error> {
        Ok(match self.dialect {
            Dialect::Postgres => Some(postgres::columns_query(&self.table)?),
            Dialect::DuckDb | Dialect::Spark => None,
        })
    }

    /// A query that gives no row, but the names of all columns.
    fn names_query(&self) -> Result<String, Error> {
        Ok(format!("{} LIMIT 0", rows_query(self.dialect, &self.table, None)?))
    }

    /// Takes what it gave; refuses a table that the release could not read.
    fn take_columns(&mut self, columns: Vec<(String, String)>) -> Result<(), Error> {
        let found = Described::new(&self.table, columns)?;
        match self.dialect {
            Dialect::Postgres => found.check(&self.study, &self.party, &self.access)?,
            Dialect::DuckDb | Dialect::Spark => {
                found.check_names(&self.study, &self.party, &self.access)?;
            }
        }
        self.found = Some(found);
        Ok(())
    }

    /// The query that gives the rows, in types that Arrow has.
    fn rows_query(&self) -> Result<String, Error> {
        let found = self.found()?;
        Ok(match self.dialect {
            Dialect::Postgres => found.query(&self.study, &self.party, &self.access)?,
            Dialect::DuckDb | Dialect::Spark => {
                let columns = found.check_names(&self.study, &self.party, &self.access)?;
                rows_query(self.dialect, &self.table, Some(&columns))?
            }
        })
    }

    /// The statement that gives the rows of PostgreSQL in the binary form of COPY.
    fn copy_statement(&self) -> Result<String, Error> {
        Ok(self.found()?.copy_statement(&self.study, &self.party, &self.access)?)
    }

    /// What such a statement gives, piece by piece, as an Arrow stream.
    fn decoded<'py>(
        &self,
        py: Python<'py>,
        pieces: &Bound<'py, PyAny>,
    ) -> Result<Bound<'py, PyCapsule>, Error> {
        let pieces = Pieces { all: pieces.try_iter()?.unbind(), piece: None, taken: 0 };
        let rows = self.found()?.batches(&self.study, &self.party, &self.access, pieces)?;
        let fields = DataType::Struct(rows.schema().fields().clone());
        let structs = rows.map(|batch| batch.map(|batch| Arc::new(StructArray::from(batch)) as ArrayRef));
        let stream = ArrayIterator::new(structs, Arc::new(Field::new("", fields, false)));
        Ok(to_stream_pycapsule(py, Box::new(stream), None).map_err(PyErr::from)?)
    }

    /// The names of the columns as a schema whose types say nothing.
    fn schema<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyCapsule>, Error> {
        let names = self.found()?.column_names();
        let fields: Fields = names.iter().map(|name| Field::new(name, DataType::Null, true)).collect();
        Ok(to_schema_pycapsule(py, Schema::new(fields)).map_err(PyErr::from)?)
    }
}

impl Pull {
    fn found(&self) -> Result<&Described, Error> {
        Ok(self.found.as_ref().ok_or_else(|| PyValueError::new_err("the columns are not known yet"))?)
    }
}

/// Bytes that an iterator of Python gives piece by piece.
struct Pieces {
    all: Py<PyIterator>,
    piece: Option<PyBackedBytes>,
    /// How much of the piece was read.
    taken: usize,
}

impl Read for Pieces {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if let Some(piece) = &self.piece
                && self.taken < piece.len()
            {
                let count = buffer.len().min(piece.len() - self.taken);
                buffer[..count].copy_from_slice(&piece[self.taken..self.taken + count]);
                self.taken += count;
                return Ok(count);
            }
            let next = Python::attach(|py| -> PyResult<Option<PyBackedBytes>> {
                let piece = self.all.bind(py).clone().next().transpose()?;
                piece.map(|piece| piece.extract::<PyBackedBytes>().map_err(PyErr::from)).transpose()
            });
            // What the other side says may quote a value; whoever asked for the rows has it.
            self.piece = next.map_err(|_| io::Error::other("the rows stopped coming"))?;
            self.taken = 0;
            if self.piece.is_none() {
                return Ok(0);
            }
        }
    }
}
