//! Audits inside a party.

use std::ffi::OsString;
use std::path::PathBuf;

use potluck_party::{Reading, audit};
use potluck_release::Release;
use pyo3::prelude::*;

use crate::errors::Error;
use crate::order::GivenAccess;
use crate::study::{Study, existing};
use crate::work;

/// Computes the exact sums of one stage, for an audit inside the party; see potluck.sums.
#[pyfunction]
#[pyo3(signature = (study, party, data, access, *, state, release, stage, overwrite, progress))]
#[expect(clippy::too_many_arguments, reason = "they are what potluck.sums is given, in Python's words")]
pub(crate) fn sums(
    py: Python<'_>,
    study: &Study,
    party: &str,
    data: &Bound<'_, PyAny>,
    access: GivenAccess,
    state: PathBuf,
    release: Option<PathBuf>,
    stage: Option<usize>,
    overwrite: bool,
    progress: Option<Py<PyAny>>,
) -> Result<OsString, Error> {
    let study = study.sealed_study()?;
    let keep = access.access.needed_columns(study, party)?;
    let earlier = match &release {
        Some(path) => work::away(py, || Release::read(path))?.sums_before(study, party, stage)?,
        None => Vec::new(),
    };
    let table = access.open(data, keep.as_deref())?;
    let reading = Reading { study, party, table: &table, access: &access.access };
    let path = work::run(py, progress.as_ref(), |observer| {
        observer.stage("", 0);
        audit::write(&reading, &earlier, &state, existing(overwrite), observer)
    })?;
    Ok(path.into_os_string())
}
