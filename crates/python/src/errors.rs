//! From errors of the crates to exceptions of the package.

use potluck_party::predict::PredictError;
use potluck_release::Fault;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;

/// Documented where they are defined, in potluck/_errors.py.
mod exceptions {
    pyo3::import_exception!(potluck._errors, UsageError);
    pyo3::import_exception!(potluck._errors, InputError);
    pyo3::import_exception!(potluck._errors, BudgetError);
    pyo3::import_exception!(potluck._errors, IntegrityError);
    pyo3::import_exception!(potluck._errors, RemoteError);
}
use exceptions::{BudgetError, InputError, IntegrityError, RemoteError, UsageError};

/// What a call from Python may fail with.
pub(crate) enum Error {
    /// Of the public side.
    Release(potluck_release::Error),
    /// Of the exchange with a hub.
    Client(potluck_client::Error),
    /// Of the private side.
    Party(potluck_party::Error),
    /// The call cannot work as it was made.
    Usage(String),
    /// The input is not usable.
    Input(String),
    /// Raised by Python itself.
    Python(PyErr),
}

impl From<potluck_release::Error> for Error {
    fn from(error: potluck_release::Error) -> Self {
        Self::Release(error)
    }
}

impl From<potluck_client::Error> for Error {
    fn from(error: potluck_client::Error) -> Self {
        Self::Client(error)
    }
}

impl From<potluck_party::Error> for Error {
    fn from(error: potluck_party::Error) -> Self {
        Self::Party(error)
    }
}

impl From<PredictError> for Error {
    fn from(error: PredictError) -> Self {
        match error {
            PredictError::Table(error) => Self::Party(error),
            PredictError::Output(_) => Self::Input(error.to_string()),
        }
    }
}

impl From<PyErr> for Error {
    fn from(error: PyErr) -> Self {
        Self::Python(error)
    }
}

impl From<Error> for PyErr {
    fn from(error: Error) -> Self {
        let (fault, message) = match error {
            Error::Python(error) => return error,
            Error::Release(error) => (error.fault(), error.to_string()),
            Error::Client(error) => (error.fault(), error.to_string()),
            Error::Party(error) => (error.fault(), error.to_string()),
            Error::Usage(message) => (Fault::Usage, message),
            Error::Input(message) => (Fault::Input, message),
        };
        let message = in_python(&message);
        match fault {
            Fault::Usage => UsageError::new_err(message),
            Fault::Input => InputError::new_err(message),
            Fault::Budget => BudgetError::new_err(message),
            Fault::Integrity => IntegrityError::new_err(message),
            Fault::Remote => RemoteError::new_err(message),
        }
    }
}

/// What the command calls things that messages tell people to do, and what they are called here. Longer ones first.
const REMEDIES: [(&str, &str); 19] = [
    (
        "make one with `potluck ledger init --ledger ",
        "make one with potluck.Ledger(…).init(table, epsilon, delta) at ",
    ),
    (
        "set one with `potluck ledger init --table ",
        "set one with potluck.Ledger(…).init(table, epsilon, delta) for ",
    ),
    (" --table NAME --epsilon E --delta D`", ""),
    ("NAME --epsilon E --delta D`", "it"),
    (" --epsilon E --delta D`", ""),
    (
        "run `potluck study seal` and give the sealed file to every party",
        "seal it with .seal(), save it, and give the sealed file to every party",
    ),
    ("or start from `potluck study new`", "or build it with Study.new(…)"),
    ("`potluck key new`", "potluck.new_signing_key(path)"),
    ("run the same command again", "make the same call again"),
    ("run the command again", "make the call again"),
    ("with --force", "with overwrite=True"),
    ("with --partial", "with partial=True"),
    ("pass --ignore-extra", "pass ignore_extra=True"),
    ("with --tmp-dir", "with tmp_dir=…"),
    ("pass --insecure-http", "pass insecure_http=True"),
    ("with --ca-cert", "with ca_certificate=…"),
    ("--ca-cert takes", "ca_certificate takes"),
    ("use `potluck release --data`", "use potluck.release"),
    ("--table", "table=…"),
];

/// The message in words of this package.
fn in_python(message: &str) -> String {
    let mut text = message.replace("with --id", "with id=…");
    for (command, python) in REMEDIES {
        text = text.replace(command, python);
    }
    text
}

/// What other software raised while it handed over a table. Its message may quote a value, so only its type is passed
/// on; an interrupt stays one.
pub(crate) fn while_handing_over(py: Python<'_>, table: &str, error: PyErr) -> Error {
    if !error.is_instance_of::<PyException>(py) {
        return Error::Python(error);
    }
    let kind = error.get_type(py).name().map_or_else(|_| "an error".to_owned(), |name| name.to_string());
    Error::Input(format!(
        "{table} could not be handed over as an Arrow table ({kind}); give every column one type, such as a number, text or a date"
    ))
}
