//! Plain data for Python: dictionaries, lists, numbers and text.

use pyo3::prelude::*;
use serde::Serialize;

/// What the data would be after writing it as JSON and reading it in Python.
pub(crate) fn to_python<'py>(py: Python<'py>, data: &impl Serialize) -> PyResult<Bound<'py, PyAny>> {
    let text = serde_json::to_string(data).expect("plain data has a JSON form");
    py.import("json")?.call_method1("loads", (text,))
}
