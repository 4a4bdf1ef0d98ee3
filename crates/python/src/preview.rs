//! Previews of studies.

use std::path::PathBuf;

use potluck_release::files::{Audience, write_file};
use potluck_release::preview;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::Error;
use crate::study::existing;
use crate::{json, work};

/// What to expect of a study: what releases of made-up people in its shape gave. It holds what
/// `potluck simulate --json` prints, by attribute or by key, and becomes plain data with dict() or
/// `to_dict`.
///
/// `coefficients` has one dictionary a feature: `non_private` is least squares on the made-up
/// people themselves, `mean` the mean of the `estimates`, `error` the root of their mean squared
/// distance from `non_private`, `half_width` the median half-width of the intervals, `coverage` the
/// share of them that hold `non_private`, and `with_findings` the share of releases in which
/// published numbers speak against the coefficient. `loss` is the mean squared error of predictions
/// over that of predicting the mean.
#[pyclass(frozen, module = "potluck")]
pub(crate) struct Preview {
    pub(crate) content: preview::Preview,
}

#[pymethods]
impl Preview {
    /// Name of the study.
    #[getter]
    fn study(&self) -> &str {
        &self.content.study
    }

    /// The label.
    #[getter]
    fn label(&self) -> &str {
        &self.content.label
    }

    /// Number of made-up people.
    #[getter]
    fn rows(&self) -> u64 {
        self.content.rows
    }

    /// Number of released rows that stand for them.
    #[getter]
    fn released_rows(&self) -> u64 {
        self.content.released_rows
    }

    /// Number of releases.
    #[getter]
    fn releases(&self) -> usize {
        self.content.releases
    }

    /// One dictionary a feature, in original units.
    #[getter]
    fn coefficients<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        json::to_python(py, &self.content.coefficients)
    }

    /// Share of the label's variance that the features explain: `non_private`, `mean` over the
    /// releases, and `coverage` of its intervals.
    #[getter]
    fn r_squared<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        json::to_python(py, &self.content.r_squared)
    }

    /// Mean squared error of predictions over that of predicting the mean: `non_private`, and
    /// `private` from releases.
    #[getter]
    fn loss<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        json::to_python(py, &self.content.loss)
    }

    /// All of it as plain data.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        json::to_python(py, &self.content)
    }

    /// All of it as `potluck simulate --json` prints it.
    fn to_json(&self) -> String {
        serde_json::to_string_pretty(&self.content).expect("a preview is plain data") + "\n"
    }

    fn keys<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.to_dict(py)?.call_method0("keys")
    }

    fn __getitem__<'py>(&self, py: Python<'py>, key: &str) -> PyResult<Bound<'py, PyAny>> {
        self.to_dict(py)?.cast::<PyDict>()?.as_any().get_item(key)
    }

    /// A page with a plot, as one HTML file that needs nothing else: its text, or a file at `path`.
    #[pyo3(signature = (path=None, *, overwrite=false))]
    fn report_html(
        &self,
        py: Python<'_>,
        path: Option<PathBuf>,
        overwrite: bool,
    ) -> Result<Option<String>, Error> {
        work::away(py, || {
            let page = potluck_report::preview_page(&self.content);
            let Some(path) = path else { return Ok::<_, Error>(Some(page)) };
            write_file(&path, page.as_bytes(), existing(overwrite), Audience::Public)?;
            Ok(None)
        })
    }

    /// Its JSON with what that leaves out, for pickle.
    #[expect(clippy::type_complexity, reason = "a function and its two arguments")]
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (String, Vec<f64>))> {
        let standard = self.content.coefficients.iter().map(|one| one.standard).collect();
        Ok((py.get_type::<Self>().getattr("_of")?, (self.to_json(), standard)))
    }

    #[staticmethod]
    fn _of(text: &str, standard: Vec<f64>) -> Result<Self, Error> {
        let mut content: preview::Preview = serde_json::from_str(text)
            .map_err(|error| Error::Input(format!("this is no preview: {error}")))?;
        for (coefficient, standard) in content.coefficients.iter_mut().zip(standard) {
            coefficient.standard = standard;
        }
        Ok(Self { content })
    }

    fn __repr__(&self) -> String {
        let preview::Preview { study, label, rows, releases, .. } = &self.content;
        format!("<Preview of {study:?}: {releases} releases of {rows} made-up people, label {label}>")
    }
}
