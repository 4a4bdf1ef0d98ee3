//! Public datasets.

use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, StructArray};
use arrow_schema::{DataType, Field, Fields, Schema};
use potluck_release::dataset::Completeness;
use potluck_release::statement::{self, Guarantee};
use potluck_release::{Release, summary};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use pyo3_arrow::ffi::{ArrayIterator, to_schema_pycapsule, to_stream_pycapsule};
use serde_json::json;

use crate::errors::Error;
use crate::json;
use crate::study::{Study, existing};

/// All releases of a study, laid side by side and verified.
///
/// It speaks the Arrow PyCapsule interface: pyarrow.table(dataset), polars.DataFrame(dataset) and DuckDB take it as it
/// is. Its columns are encoded: `column` for numbers, `column=level` for levels, and its rows stand for many people each.
#[pyclass(frozen, module = "potluck")]
pub(crate) struct PublicDataset {
    content: potluck_release::PublicDataset,
}

impl PublicDataset {
    pub(crate) fn verified(content: potluck_release::PublicDataset) -> Self {
        Self { content }
    }

    pub(crate) fn content(&self) -> &potluck_release::PublicDataset {
        &self.content
    }

    fn fields(&self) -> Fields {
        let names = self.content.columns().names().iter();
        names.map(|name| Field::new(name, DataType::Float64, false)).collect()
    }
}

#[pymethods]
impl PublicDataset {
    /// Reads a public dataset and verifies it and every release in it.
    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf) -> Result<Self, Error> {
        Ok(Self { content: py.detach(|| potluck_release::PublicDataset::read(&path))? })
    }

    /// Writes the file: ordinary Parquet, which any reader opens.
    #[pyo3(signature = (path, *, overwrite=false))]
    fn save(&self, py: Python<'_>, path: PathBuf, overwrite: bool) -> Result<(), Error> {
        Ok(py.detach(|| self.content.write(&path, existing(overwrite)))?)
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

    /// What each party's release says of its columns, in original units: means, spreads, covariances, and how much of it
    /// is noise.
    fn moments<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>, Error> {
        let moments = py.detach(|| summary::of_dataset(&self.content))?;
        Ok(json::to_python(py, &moments)?)
    }

    /// What the releases promise to a person in the data, in words: each alone, then all together.
    fn privacy_statement(&self) -> Result<String, Error> {
        let study = self.content.study();
        let mut sentences = Vec::new();
        for (party, _) in self.content.parties() {
            sentences.extend(statement::of_party(study, party)?);
        }
        sentences.extend(statement::joint(study, self.content.parties().count()));
        Ok(sentences.join("\n"))
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
    fn to_pandas<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Self::to_arrow(slf)?.call_method0("to_pandas")
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
        let fields = self.fields();
        let column = |values: &Vec<f64>| Arc::new(Float64Array::from(values.clone())) as ArrayRef;
        let columns: Vec<ArrayRef> = self.content.columns().values().iter().map(column).collect();
        let rows: ArrayRef = Arc::new(StructArray::new(fields.clone(), columns, None));
        let field = Arc::new(Field::new_struct("", fields, false));
        let reader = Box::new(ArrayIterator::new(std::iter::once(Ok(rows)), field));
        Ok(to_stream_pycapsule(py, reader, requested_schema)?)
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

/// Lays the releases of a study side by side: paths, or what release() returned. With `partial`, parties may be missing.
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
    let content = py.detach(|| {
        let releases = releases.iter().map(|path| Release::read(path)).collect::<Result<Vec<_>, _>>()?;
        potluck_release::PublicDataset::join(study, &releases, completeness)
    })?;
    Ok(PublicDataset { content })
}
