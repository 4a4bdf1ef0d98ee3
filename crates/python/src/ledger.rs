//! Ledgers.

use std::env;
use std::ffi::OsString;
use std::path::PathBuf;

use potluck_core::accounting::{Delta, Epsilon};
use potluck_party::ledger::default_path;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyType};

use crate::errors::Error;
use crate::{json, work};

/// A party's record of what it has spent, of which budget: a file.
///
/// Without a path: the one that the environment variable POTLUCK_LEDGER names, or
/// potluck/ledger.sqlite in the user's data folder. The file is open only while a call lasts.
#[pyclass(frozen, module = "potluck")]
pub(crate) struct Ledger {
    path: PathBuf,
}

/// The ledger named, or the user's own.
pub(crate) fn chosen(path: Option<PathBuf>) -> Result<PathBuf, Error> {
    let named = || env::var_os("POTLUCK_LEDGER").filter(|path| !path.is_empty()).map(PathBuf::from);
    path.or_else(named).or_else(default_path).ok_or_else(|| {
        Error::Usage("there is no home folder for the ledger: give the path of one".to_owned())
    })
}

#[pymethods]
impl Ledger {
    #[new]
    #[pyo3(signature = (path=None))]
    fn new(path: Option<PathBuf>) -> Result<Self, Error> {
        Ok(Self { path: chosen(path)? })
    }

    /// Where the file is.
    #[getter]
    fn path(&self) -> OsString {
        self.path.clone().into_os_string()
    }

    fn __fspath__(&self) -> OsString {
        self.path()
    }

    /// Sets a budget, once: everything that is ever charged to it stays within (ε, δ). Charge all
    /// releases from one table to one budget.
    fn init<'py>(
        &self,
        py: Python<'py>,
        budget: &str,
        epsilon: f64,
        delta: f64,
    ) -> Result<Bound<'py, PyAny>, Error> {
        let epsilon = Epsilon::new(epsilon).map_err(potluck_release::Error::from)?;
        let delta = Delta::new(delta).map_err(potluck_release::Error::from)?;
        let budget = work::away(py, || {
            potluck_party::Ledger::open_or_create(&self.path)?.set_budget(budget, epsilon, delta)
        })?;
        Ok(json::to_python(py, &budget.to_json())?)
    }

    /// Raises a budget to a larger (ε, δ). Everything ever charged to it, releases that are out
    /// already included, then has that guarantee and no better one; it is recorded and cannot be
    /// taken back. With `confirm=True` somebody at the keyboard is asked; a callable is given the
    /// question and returns whether to go on; False asks nobody.
    #[pyo3(signature = (budget, epsilon, delta, *, confirm=None))]
    fn raise_budget<'py>(
        &self,
        py: Python<'py>,
        budget: &str,
        epsilon: f64,
        delta: f64,
        confirm: Option<&Bound<'py, PyAny>>,
    ) -> Result<Bound<'py, PyAny>, Error> {
        let epsilon = Epsilon::new(epsilon).map_err(potluck_release::Error::from)?;
        let delta = Delta::new(delta).map_err(potluck_release::Error::from)?;
        let raise = work::away(py, || {
            potluck_party::Ledger::open(&self.path)?.prepare_raise(budget, epsilon, delta)
        })?;
        // Whoever does not say otherwise is asked: it concerns everyone in the table.
        let confirm = match confirm {
            Some(confirm) => confirm.clone(),
            None => PyBool::new(py, true).to_owned().into_any(),
        };
        let asked = py.import("potluck._order")?.call_method1("asked", (confirm,))?;
        if !asked.is_none() {
            let question = format!("{}\nRaise the budget?", raise.promise().join("\n"));
            if !asked.call1((question,))?.is_truthy()? {
                return Err(Error::Usage("not agreed; nothing was changed".to_owned()));
            }
        }
        let raised = work::away(py, || potluck_party::Ledger::open(&self.path)?.raise(&raise))?;
        Ok(json::to_python(py, &raised.to_json())?)
    }

    /// Budgets, sessions, refusals and raises, as `potluck ledger show --json` prints them: of each
    /// budget ε at its δ of what was spent, and the largest of one further release. μ² is exact:
    /// text, in units of 2⁻⁶⁴.
    fn show<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>, Error> {
        let shown = work::away(py, || potluck_party::Ledger::open(&self.path)?.to_json())?;
        Ok(json::to_python(py, &shown)?)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("Ledger({})", self.path().into_pyobject(py)?.repr()?))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> (Bound<'py, PyType>, (OsString,)) {
        (py.get_type::<Self>(), (self.path(),))
    }
}
