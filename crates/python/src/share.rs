//! A share of a table, added up by a task of a cluster: what potluck/spark.py runs on executors.

use potluck_party::sql::Task;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;
use pyo3_arrow::PyRecordBatch;

use crate::errors::Error;
use crate::work;

/// Rows of a share, added up while they come.
#[pyclass(module = "potluck._potluck")]
pub(crate) struct Share(Option<potluck_party::sql::Share>);

#[pymethods]
impl Share {
    #[new]
    fn new(py: Python<'_>, task: &str) -> Result<Self, Error> {
        let share = work::away(py, || potluck_party::sql::Share::new(Task::parse(task)?))?;
        Ok(Self(Some(share)))
    }

    /// Adds a batch of Arrow.
    fn add(&mut self, py: Python<'_>, batch: PyRecordBatch) -> Result<(), Error> {
        let Some(share) = &mut self.0 else { return Err(finished()) };
        let batch = batch.into_inner();
        work::away(py, || share.add(&batch))
    }

    /// What it comes to, for `merged`. Nothing can be added afterwards.
    fn finish<'py>(&mut self, py: Python<'py>) -> Result<Bound<'py, PyBytes>, Error> {
        let share = self.0.take().ok_or_else(finished)?;
        Ok(PyBytes::new(py, &share.finish()))
    }
}

fn finished() -> Error {
    PyValueError::new_err("the share is finished").into()
}

/// What several shares come to together.
#[pyfunction]
pub(crate) fn merged(py: Python<'_>, shares: Vec<PyBackedBytes>) -> Result<Bound<'_, PyBytes>, Error> {
    let whole = potluck_party::sql::merged(shares.iter().map(|share| &**share))?;
    Ok(PyBytes::new(py, &whole))
}
