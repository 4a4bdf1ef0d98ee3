//! What Python calls a table: a file, or anything that hands over Arrow batches by the PyCapsule interface.

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use arrow_array::{RecordBatchIterator, RecordBatchReader};
use arrow_schema::ArrowError;
use potluck_party::Table;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyString;
use pyo3_arrow::input::AnyRecordBatch;

use crate::errors::{Error, while_handing_over};
use crate::work::handle_signals;

/// What becomes of a stream, which can be read only once, while it is needed several times.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keeping<'a> {
    /// Its batches are held in memory as they are.
    Memory,
    /// They go to an unnamed private file in this folder.
    Disk(&'a Path),
}

/// The path, if that is what it is.
pub(crate) fn path(data: &Bound<'_, PyAny>) -> PyResult<Option<PathBuf>> {
    if data.is_instance_of::<PyString>() || data.hasattr("__fspath__")? {
        return Ok(Some(data.extract()?));
    }
    Ok(None)
}

/// Opens a file, or takes the batches of an object; with `keep`, only the columns of these names.
pub(crate) fn open(
    data: &Bound<'_, PyAny>,
    keep: Option<&[String]>,
    keeping: Keeping<'_>,
    tmp: &Path,
) -> Result<Table, Error> {
    let py = data.py();
    if let Some(path) = path(data)? {
        // A file of this name, not standard input.
        let path = if path == Path::new("-") { Path::new("./-").to_owned() } else { path };
        return Ok(py.detach(|| Table::open(&path, tmp))?);
    }
    let kind = data.get_type().name()?;
    let name = format!("the {kind}");
    if !data.hasattr("__arrow_c_stream__")? && !data.hasattr("__arrow_c_array__")? {
        return Err(PyTypeError::new_err(format!(
            "data is a {kind}; give the path of a CSV, Parquet or Arrow file, or a table that speaks the Arrow PyCapsule interface, such as one of pandas, polars, pyarrow or DuckDB"
        ))
        .into());
    }
    let failed = |error| while_handing_over(py, &name, error);
    let reader = data.extract::<AnyRecordBatch>().and_then(AnyRecordBatch::into_reader).map_err(failed)?;
    let kept: Vec<String> = reader
        .schema()
        .fields()
        .iter()
        .map(|field| field.name().clone())
        .filter(|name| is_kept(name, keep))
        .collect();
    let raised = Mutex::new(None);
    let table = py.detach(|| {
        let reader = with_signals(reader, &raised);
        match keeping {
            Keeping::Memory => Table::hold(&name, reader, Some(&kept)),
            Keeping::Disk(tmp) => Table::spool_batches(&name, reader, Some(&kept), tmp),
        }
    });
    match raised.into_inner() {
        Ok(Some(error)) => Err(Error::Python(error)),
        _ => Ok(table?),
    }
}

/// Whether a column is asked for. The index that pandas adds to what it hands over is not a column of the table.
fn is_kept(name: &str, keep: Option<&[String]>) -> bool {
    match keep {
        Some(keep) => keep.iter().any(|kept| kept == name),
        None => !(name.starts_with("__index_level_") && name.ends_with("__")),
    }
}

/// The reader, which lets Python handle signals before each batch and ends with an error when a handler raises.
fn with_signals<'a>(
    mut reader: Box<dyn RecordBatchReader + Send>,
    raised: &'a Mutex<Option<PyErr>>,
) -> Box<dyn RecordBatchReader + 'a> {
    let schema = reader.schema();
    let next = move || {
        if let Err(error) = handle_signals() {
            if let Ok(mut raised) = raised.lock() {
                *raised = Some(error);
            }
            return Some(Err(ArrowError::ExternalError("interrupted".into())));
        }
        reader.next()
    };
    Box::new(RecordBatchIterator::new(std::iter::from_fn(next), schema))
}
