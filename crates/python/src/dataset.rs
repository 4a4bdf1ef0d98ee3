//! Public datasets.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use arrow_array::{ArrayRef, Float64Array, StructArray};
use arrow_schema::{DataType, Field, Fields, Schema};
use numpy::PyArray1;
use potluck_core::learn::Level;
use potluck_release::columns::MIXED;
use potluck_release::correlations::{Question, correlate};
use potluck_release::dataset::Completeness;
use potluck_release::files::Existing;
use potluck_release::findings::Sentence;
use potluck_release::people;
use potluck_release::statement::{self, Guarantee};
use potluck_release::{Error as ReleaseError, Release, summary};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyDict};
use pyo3_arrow::ffi::{ArrayIterator, to_schema_pycapsule, to_stream_pycapsule};
use serde_json::json;

use crate::errors::Error;
use crate::study::{Study, existing};
use crate::{json, work};

/// All releases of a study, laid side by side and verified.
///
/// It speaks the Arrow PyCapsule interface: pyarrow.table(dataset), polars.DataFrame(dataset) and
/// DuckDB take it as it is. Its columns are encoded: `column` for numbers, `column=level` for
/// levels, and its rows stand for many people each: in tables that are made of it, and in files,
/// columns are named `mixed.column`, so that nobody takes them for those of people.
#[pyclass(frozen, module = "potluck")]
pub(crate) struct PublicDataset {
    content: potluck_release::PublicDataset,
    /// The same columns in Arrow's form, once somebody asks for them.
    rows: OnceLock<StructArray>,
}

impl PublicDataset {
    pub(crate) fn verified(content: potluck_release::PublicDataset) -> Self {
        Self { content, rows: OnceLock::new() }
    }

    pub(crate) fn content(&self) -> &potluck_release::PublicDataset {
        &self.content
    }

    fn fields(&self) -> Fields {
        let names = self.content.columns().names().iter();
        names.map(|name| Field::new(format!("{MIXED}{name}"), DataType::Float64, false)).collect()
    }

    fn rows(&self) -> &StructArray {
        self.rows.get_or_init(|| {
            let column = |values: &Vec<f64>| Arc::new(Float64Array::from(values.clone())) as ArrayRef;
            let columns = self.content.columns().values().iter().map(column).collect();
            StructArray::new(self.fields(), columns, None)
        })
    }
}

#[pymethods]
impl PublicDataset {
    /// Reads a public dataset and verifies it and every release in it.
    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf) -> Result<Self, Error> {
        Ok(Self::verified(work::away(py, || potluck_release::PublicDataset::read(&path))?))
    }

    /// Writes the file: ordinary Parquet, which any reader opens.
    #[pyo3(signature = (path, *, overwrite=false))]
    fn save(&self, py: Python<'_>, path: PathBuf, overwrite: bool) -> Result<(), Error> {
        work::away(py, || self.content.write(&path, existing(overwrite)))
    }

    /// The study that it belongs to.
    #[getter]
    fn study(&self) -> Study {
        Study::of_dataset(self.content.study())
    }

    /// The parties whose releases are in it.
    #[getter]
    fn parties(&self) -> Vec<&str> {
        self.content.parties().map(|(party, _)| party).collect()
    }

    /// By party, the public key of the valid signature of its release, or None if it is not signed.
    #[getter]
    fn signed_by(&self) -> std::collections::BTreeMap<&str, Option<String>> {
        self.content.parties().map(|(party, key)| (party, key.map(ToString::to_string))).collect()
    }

    /// Names of the encoded columns.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.content.columns().names().to_vec()
    }

    /// SHA-256 over its logical content.
    #[getter]
    fn content_hash(&self) -> &str {
        self.content.content_hash()
    }

    fn __len__(&self) -> usize {
        self.content.columns().rows()
    }

    /// What each party's release says of its columns, in original units: means, spreads,
    /// covariances, how much of it is noise, and in studies of format 2 how many people it has,
    /// which values are missing and how they are distributed.
    fn moments<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>, Error> {
        let moments = work::away(py, || summary::of_dataset(&self.content))?;
        Ok(json::to_python(py, &moments)?)
    }

    /// How columns go together: correlations with intervals, as plain data.
    #[pyo3(signature = (columns=None, *, given=Vec::new(), level=0.95, together=false))]
    fn correlations<'py>(
        &self,
        py: Python<'py>,
        columns: Option<Vec<String>>,
        given: Vec<String>,
        level: f64,
        together: bool,
    ) -> Result<Bound<'py, PyAny>, Error> {
        let level = Level::new(level).map_err(ReleaseError::from)?;
        let question = Question { columns, given, level, together };
        let found = work::away(py, || correlate(&self.content, &question))?;
        let found = json::to_python(py, &found)?;
        Ok(py.import("potluck._correlations")?.call_method1("Correlations", (found,))?)
    }

    /// Whom parties have in common, and how these differ from all of a party's; None where all
    /// parties hold the same people by the study's definition.
    fn people<'py>(&self, py: Python<'py>) -> Result<Option<Bound<'py, PyAny>>, Error> {
        let Some(found) = work::away(py, || people::of_dataset(&self.content))? else { return Ok(None) };
        let told = |sentences: Vec<Sentence>| sentences.iter().map(ToString::to_string).collect::<Vec<_>>();
        let mut value = serde_json::to_value(&found).expect("what is said of people is plain data");
        value["alarms"] = json!(told(found.alarms()));
        value["differences"] = json!(told(found.differences()));
        Ok(Some(json::to_python(py, &value)?))
    }

    /// What the releases promise to a person in the data, in words: each alone, then all together.
    fn privacy_statement<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>, Error> {
        let study = self.content.study();
        let mut sentences = Vec::new();
        for (party, _) in self.content.parties() {
            sentences.extend(statement::of_party(study, party)?);
        }
        sentences.extend(statement::joint(study, self.content.parties().count()));
        Ok(py.import("potluck._text")?.call_method1("Text", (sentences.join("\n"),))?)
    }

    /// The guarantee of each release and of all together, in numbers.
    fn guarantee<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let study = self.content.study();
        let joint = Guarantee::joint(study, self.content.parties().count());
        json::to_python(py, &json!({ "per_party": Guarantee::of_party(study), "joint": joint }))
    }

    /// A pyarrow.Table of it.
    fn to_arrow<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("pyarrow")?.call_method1("table", (slf,))
    }

    /// A pandas.DataFrame of it.
    fn to_pandas<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let columns = PyDict::new(py);
        for (name, values) in self.content.columns().names().iter().zip(self.content.columns().values()) {
            columns.set_item(format!("{MIXED}{name}"), PyArray1::from_slice(py, values))?;
        }
        py.import("pandas")?.call_method1("DataFrame", (columns,))
    }

    /// A polars.DataFrame of it.
    fn to_polars<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("polars")?.call_method1("DataFrame", (slf,))
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        Ok(to_schema_pycapsule(py, Schema::new(self.fields()))?)
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let rows: ArrayRef = Arc::new(self.rows().clone());
        let field = Arc::new(Field::new_struct("", self.fields(), false));
        let reader = Box::new(ArrayIterator::new(std::iter::once(Ok(rows)), field));
        Ok(to_stream_pycapsule(py, reader, requested_schema)?)
    }

    /// The bytes of its file, and what makes it of them again.
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> Result<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,)), Error> {
        let py = slf.py();
        let dataset = &slf.get().content;
        let bytes = work::away(py, || {
            in_folder(|path| {
                dataset.write(path, Existing::Keep)?;
                std::fs::read(path).map_err(|source| ReleaseError::Read { path: path.to_owned(), source })
            })
        })?;
        Ok((py.get_type::<Self>().getattr("_of_bytes")?, (PyBytes::new(py, &bytes),)))
    }

    /// Reads the bytes of a file and verifies them, for pickle.
    #[staticmethod]
    fn _of_bytes(py: Python<'_>, bytes: Vec<u8>) -> Result<Self, Error> {
        let content = work::away(py, || {
            in_folder(|path| {
                std::fs::write(path, bytes)
                    .map_err(|source| ReleaseError::Write { path: path.to_owned(), source })?;
                potluck_release::PublicDataset::read(path)
            })
        })?;
        Ok(Self::verified(content))
    }

    fn __repr__(&self) -> String {
        format!(
            "<PublicDataset {:?}: {} rows standing for {} people, {} columns of {}>",
            self.content.study().definition().name(),
            self.__len__(),
            self.content.study().definition().rows(),
            self.content.columns().names().len(),
            self.parties().join(", ")
        )
    }

    fn _repr_html_(&self) -> String {
        potluck_report::dataset_card(&self.content)
    }
}

/// Calls `call` with the path of a file that is not there yet, in a folder that does not stay.
fn in_folder<T>(call: impl FnOnce(&Path) -> Result<T, ReleaseError>) -> Result<T, ReleaseError> {
    let failed = |source| ReleaseError::Write { path: std::env::temp_dir(), source };
    let folder = tempfile::tempdir().map_err(failed)?;
    call(&folder.path().join("public.parquet"))
}

/// Lays the releases of a study side by side: paths, or what release() returned. With `partial`,
/// parties may be missing.
#[pyfunction]
#[pyo3(signature = (study, releases, *, partial=false))]
pub(crate) fn join(
    py: Python<'_>,
    study: &Study,
    releases: Vec<PathBuf>,
    partial: bool,
) -> Result<PublicDataset, Error> {
    let study = study.sealed_study()?;
    let completeness = if partial { Completeness::Partial } else { Completeness::All };
    let content = work::away(py, || {
        let releases = releases.iter().map(|path| Release::read(path)).collect::<Result<Vec<_>, _>>()?;
        potluck_release::PublicDataset::join(study, &releases, completeness)
    })?;
    Ok(PublicDataset::verified(content))
}
