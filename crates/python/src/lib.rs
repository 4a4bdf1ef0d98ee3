//! probe
use pyo3::prelude::*;

/// Probe.
#[pyclass(frozen)]
struct Probe {
    /// A
    #[pyo3(get)]
    a: i32,
}

#[pymethods]
impl Probe {
    #[new]
    #[pyo3(signature = (a, *, b=3))]
    fn new(a: i32, b: i32) -> Self {
        Self { a: a + b }
    }
}

/// The native part of potluck.
#[pymodule]
mod _potluck {
    #[pymodule_export]
    use super::Probe;
}
