//! Releases.

use std::ffi::OsString;

use potluck_party::order::{Agreed, Prepared};
use potluck_party::{Observer, Table};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::errors::Error;
use crate::order::{Asked, GivenAccess, Order};
use crate::study::Study;
use crate::table::{Given, Keeping};
use crate::work;

/// What came of a release. It stands for its file wherever a path is asked for.
#[pyclass(frozen, get_all, module = "potluck")]
pub(crate) struct Published {
    /// The file.
    path: OsString,
    /// SHA-256 over its logical content.
    content_hash: String,
    /// Id of the study.
    study_id: String,
    /// Who released.
    party: String,
    /// The public key of its signature, if it is signed.
    signed_by: Option<String>,
    /// Whether its noise had been drawn before: then the table was not read, and this is the same
    /// release again.
    repeated: bool,
    /// The largest ε that one further release could have, at the budget's δ; 0 if none could.
    epsilon_left: f64,
    /// ε of the budget in all.
    budget_epsilon: f64,
    /// δ of the budget in all.
    budget_delta: f64,
}

impl From<potluck_party::Published> for Published {
    fn from(published: potluck_party::Published) -> Self {
        Self {
            path: published.path.into_os_string(),
            content_hash: published.release.content_hash,
            study_id: published.study_id,
            party: published.party,
            signed_by: published.release.signer.map(|key| key.to_string()),
            repeated: published.repeated,
            epsilon_left: published.budget.epsilon_left(),
            budget_epsilon: published.budget.epsilon,
            budget_delta: published.budget.delta,
        }
    }
}

#[pymethods]
impl Published {
    fn __fspath__(&self) -> OsString {
        self.path.clone()
    }

    fn __repr__(&self) -> String {
        let left = match self.epsilon_left {
            0.0 => "nothing of the budget is left".to_owned(),
            left => format!("ε = {left} of the budget is left"),
        };
        format!("<Published {}: release of {}, {left}>", self.path.display(), self.party)
    }

    /// Everything it knows, and what makes it of that again.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let known = (
            &self.path,
            &self.content_hash,
            &self.study_id,
            &self.party,
            &self.signed_by,
            self.repeated,
            self.epsilon_left,
            self.budget_epsilon,
            self.budget_delta,
        );
        Ok((py.get_type::<Self>().getattr("_of")?, known.into_pyobject(py)?))
    }

    /// For pickle.
    #[staticmethod]
    #[expect(clippy::too_many_arguments, reason = "they are the fields")]
    fn _of(
        path: OsString,
        content_hash: String,
        study_id: String,
        party: String,
        signed_by: Option<String>,
        repeated: bool,
        epsilon_left: f64,
        budget_epsilon: f64,
        budget_delta: f64,
    ) -> Self {
        Self {
            path,
            content_hash,
            study_id,
            party,
            signed_by,
            repeated,
            epsilon_left,
            budget_epsilon,
            budget_delta,
        }
    }
}

/// Publishes a party's columns; see potluck.release.
#[pyfunction]
pub(crate) fn release(
    py: Python<'_>,
    study: &Study,
    party: &str,
    data: &Bound<'_, PyAny>,
    order: Order,
    access: GivenAccess,
    progress: Option<Py<PyAny>>,
) -> Result<Published, Error> {
    let keep = access.access.needed_columns(study.sealed_study()?, party)?;
    let given = Given::new(data)?;
    let (prepared, asked) = order.prepare(py, study, party, given.path())?;
    if let Prepared::Repeated(agreed) = prepared {
        return Ok(work::away(py, || agreed.write(&()))?.into());
    }
    let (agreed, table) = open(py, given, prepared, &asked, keep.as_deref(), &access)?;
    let published = work::run(py, progress.as_ref(), |observer: &dyn Observer| {
        agreed.release(&table, &access.access, observer)
    })?;
    Ok(published.into())
}

/// Opens the table, and asks if the release is new: before a stream is handed over, which can be
/// read only once.
fn open(
    py: Python<'_>,
    given: Given<'_, '_>,
    prepared: Prepared,
    asked: &Asked,
    keep: Option<&[String]>,
    given_access: &GivenAccess,
) -> Result<(Agreed, Table), Error> {
    let access = &given_access.access;
    let tmp = &access.resources.tmp;
    if matches!(given, Given::File(_)) {
        let table = given.open(py, keep, Keeping::All, tmp)?;
        if let Prepared::New(question) = &prepared {
            question.check_names(access, table.name(), &table.column_names()?)?;
        }
        return Ok((prepared.confirm(|question| asked.agree(py, question))?, table));
    }
    if let Prepared::New(question) = &prepared
        && let Some((table, names)) = given.names(keep)?
    {
        question.check_names(access, table, &names)?;
    }
    let agreed = prepared.confirm(|question| asked.agree(py, question))?;
    Ok((agreed, given.open(py, keep, given_access.keeping(), tmp)?))
}
