//! The native part of the Python package `potluck`: the same calls as the command's, on the same
//! crates.
//!
//! What users see is in crates/python/python/potluck, which wraps some of this in Python's own
//! manners; the rest it hands on as it is. Long calls let other Python threads run and can be
//! interrupted (`work`); errors become exceptions of the package (`errors`). No message holds a
//! value of a table.

#![expect(clippy::needless_pass_by_value, reason = "what is converted from Python comes as a value")]

mod audit;
mod dataset;
mod errors;
mod hub;
mod json;
mod key;
mod ledger;
mod model;
mod order;
mod preview;
mod pull;
mod release;
mod share;
mod staged;
mod study;
mod table;
mod work;

use pyo3::prelude::*;

/// The native part of potluck; use the package `potluck`.
#[pymodule]
mod _potluck {
    use pyo3::prelude::*;

    #[pymodule_export]
    use super::audit::sums;
    #[pymodule_export]
    use super::dataset::{PublicDataset, join};
    #[pymodule_export]
    use super::hub::{Hub, HubStudy, connect};
    #[pymodule_export]
    use super::key::new_signing_key;
    #[pymodule_export]
    use super::ledger::Ledger;
    #[pymodule_export]
    use super::model::{Model, fit};
    #[pymodule_export]
    use super::preview::Preview;
    #[pymodule_export]
    use super::pull::Pull;
    #[pymodule_export]
    use super::release::{Published, release};
    #[pymodule_export]
    use super::share::{Share, merged};
    #[pymodule_export]
    use super::staged::{StagedRelease, StagedValidation};
    #[pymodule_export]
    use super::study::{Categorical, Numeric, Study};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        // Of this library alone: what a panic says may quote a value.
        potluck_release::guard::silence();
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
