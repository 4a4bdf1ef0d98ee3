//! From errors of the crates to exceptions of the package.
//!
//! Errors of the crates hold what people can do as a value; here it is put in words of this
//! package.

use potluck_party::NoBudget;
use potluck_party::predict::PredictError;
use potluck_party::validation::Validation;
use potluck_release::Fault;
use potluck_release::guard::Panicked;
use potluck_release::remedy::{Command, Remedy, Voice};
use pyo3::exceptions::{PyException, PyImportError};
use pyo3::prelude::*;

use crate::json;

/// Documented where they are defined, in potluck/_errors.py.
mod exceptions {
    pyo3::import_exception!(potluck._errors, Error);
    pyo3::import_exception!(potluck._errors, UsageError);
    pyo3::import_exception!(potluck._errors, InputError);
    pyo3::import_exception!(potluck._errors, BudgetError);
    pyo3::import_exception!(potluck._errors, IntegrityError);
    pyo3::import_exception!(potluck._errors, RemoteError);
    pyo3::import_exception!(potluck._errors, StaleDatasetWarning);
}
pub(crate) use exceptions::StaleDatasetWarning;
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
    /// Something was changed or cut short.
    Integrity(String),
    /// Raised by Python itself.
    Python(PyErr),
    /// potluck itself failed.
    Defect(Panicked),
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

impl From<potluck_simulation::Error> for Error {
    fn from(error: potluck_simulation::Error) -> Self {
        use potluck_simulation::Error as E;
        match error {
            E::Release(error) => Self::Release(error),
            E::Share { name } => Self::Usage(format!("{name} must be at least 0 and below 1")),
            E::Overlap => Self::Usage("overlap must be 0.01 to 1".to_owned()),
            E::SamePeople => Self::Usage(
                "in a study of format 1 all parties hold the same people and values count as there: leave overlap and missing out, or build the study with format=2"
                    .to_owned(),
            ),
            E::Releases { least, most } => Self::Usage(format!("releases must be {least} to {most}")),
            E::TooMany { rows } => Self::Usage(format!(
                "{rows} made-up people do not fit into memory; try fewer with rows=…, and read the trend from two sizes"
            )),
            E::Label { .. } => Self::Input(error.to_string()),
            E::Stopped => Self::Usage(error.to_string()),
        }
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

impl From<Panicked> for Error {
    fn from(panicked: Panicked) -> Self {
        Self::Defect(panicked)
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
            Error::Defect(panicked) => return exceptions::Error::new_err(panicked.to_string()),
            Error::Release(error) => (error.fault(), of_release(&error)),
            Error::Client(error) => (error.fault(), of_client(&error)),
            Error::Party(error) => (error.fault(), of_party(&error)),
            Error::Usage(message) => (Fault::Usage, message),
            Error::Input(message) => (Fault::Input, message),
            Error::Integrity(message) => (Fault::Integrity, message),
        };
        match fault {
            Fault::Usage => UsageError::new_err(message),
            Fault::Input => InputError::new_err(message),
            Fault::Budget => BudgetError::new_err(message),
            Fault::Integrity => IntegrityError::new_err(message),
            Fault::Remote => RemoteError::new_err(message),
        }
    }
}

fn of_release(error: &potluck_release::Error) -> String {
    use potluck_release::Error as E;
    match error {
        E::Exists { path } => {
            format!(
                "{} exists already; choose another name, or replace it with overwrite=True",
                path.display()
            )
        }
        E::StudySyntax { detail } => format!(
            "the study is not in the expected form: {detail}\nsee docs/FORMAT.md, or build it with Study.new(…)"
        ),
        E::Study(mistakes) => mistakes.in_words(&Package),
        E::NotSealed => {
            "the study is not sealed; seal it with .seal(), save it, and give the sealed file to every party"
                .to_owned()
        }
        E::BaseMissing { base } => {
            format!("this study extends {base}; pass that study, sealed, with base=Study.load(…)")
        }
        E::BaseNeedless => {
            "the study is sealed and holds what it needs of the study it extends; leave base out".to_owned()
        }
        E::Join(problem) => format!("cannot join: {}", problem.in_words(&Package)),
        E::Key { path, problem } => {
            format!("{} is not a usable key: {}", path.display(), problem.in_words(&Package))
        }
        other => other.to_string(),
    }
}

fn of_client(error: &potluck_client::Error) -> String {
    use potluck_client::Error as E;
    match error {
        E::Release(error) => of_release(error),
        E::PlainHttp { hub } => format!(
            "{hub} is not encrypted, and what it says could be changed on its way; use its https:// address, or pass insecure_http=True if the network between is yours alone"
        ),
        E::Certificate { path, detail } => format!(
            "{} holds no usable certificate: {detail}; ca_certificate takes the certificate, in PEM form, of the authority that signed the hub's",
            path.display()
        ),
        E::Untrusted { hub, detail } => format!(
            "{hub} shows a certificate that is not trusted: {detail}; if it is signed by an authority of your own, name that one's certificate with ca_certificate=…"
        ),
        other => other.to_string(),
    }
}

/// An error of the private side in words of this package.
pub(crate) fn of_party(error: &potluck_party::Error) -> String {
    use potluck_party::Error as E;
    match error {
        E::Release(error) => of_release(error),
        E::Table { table, problem } => format!("{table}: {}", problem.in_words(&Package)),
        E::Column { table, column, problem } => {
            format!("{table}, column {column:?}: {}", problem.in_words(&Package))
        }
        E::Value { table, column, row, problem } => {
            format!("{table}, column {column:?}, row {row}: {}", problem.in_words(&Package))
        }
        E::Refused { source, .. } => of_party(source),
        E::Futile(futility) => format!("{futility} To publish all the same, pass accept_low_accuracy=True"),
        E::OtherBudget { party, budget, other } => format!(
            "the columns of {party} under this study are charged to budget {other:?} already, not to {budget:?}; one study and party is one release, and a second draw would reveal more than either budget counts. Go on with budget={other:?}; nothing was read or charged"
        ),
        E::Interrupted { stage, source } => format!(
            "stage {stage} could not be computed: {}\nThe charge stands, and the stages before it are stored: once this is mended, make the same call again; it goes on from there at no further charge",
            of_party(source)
        ),
        E::Temporary(source) => {
            format!("cannot use a temporary file: {source}; choose another folder with tmp_dir=…")
        }
        E::NoLedger { path } => format!(
            "there is no ledger at {}; make one with potluck.Ledger(…).init(budget, epsilon, delta)",
            path.display()
        ),
        E::Overspend(overspend) => overspend.in_words("Ledger.raise_budget(…)"),
        E::NoBudget(NoBudget::Unknown(name)) => format!(
            "the ledger has no budget {name:?}; set it with potluck.Ledger(…).init({name:?}, epsilon, delta)"
        ),
        E::NoBudget(NoBudget::Any) => {
            "the ledger has no budget yet; set one with potluck.Ledger(…).init(budget, epsilon, delta)"
                .to_owned()
        }
        E::NoBudget(NoBudget::Several(names)) => format!(
            "the ledger has the budgets {}; say with budget=… which one this release is charged to",
            names.join(", ")
        ),
        other => other.to_string(),
    }
}

/// The words of this package for what people can do.
struct Package;

impl Voice for Package {
    fn say(&self, remedy: &Remedy) -> String {
        let words = match remedy {
            Remedy::OtherIdColumn => "name another id column with id=…",
            Remedy::IdColumn => "name the column that holds the ids with id=…",
            Remedy::PositionColumn => "name with id=… a column of whole numbers that holds them, from 0",
            Remedy::IgnoreExtra => "remove it, or pass ignore_extra=True to leave such columns alone",
            Remedy::OneFile => "give one CSV, Parquet or Arrow file, or a table in memory",
            Remedy::WaitAndRepeat => "wait until nobody writes to it, then make the call again",
            Remedy::Export => "export the columns and use potluck.release",
            Remedy::SparseOrExport => {
                "agree on a study with mixing = \"sparse\", which has the same privacy and accuracy, or export the columns and use potluck.release"
            }
            Remedy::ExportInOrder => "export the columns in their public order and use potluck.release",
            // Which columns these are was found from the table itself.
            Remedy::NoBoolean => "the table was changed meanwhile: make the same call again",
            Remedy::NoDate => {
                "make the same call again if the table was changed meanwhile, or cast it to a date in a view"
            }
            Remedy::RemoveState => "remove it and make the call again",
            Remedy::ExportResult | Remedy::ResultOfQuery => "make the same call again",
            Remedy::AcceptLost => {
                "look at the table with study.validate(…); if it is meant so, pass accept_lost_values=True"
            }
            Remedy::NewKey => "make one with potluck.new_signing_key(path)",
            Remedy::PublicKeyBeside => "potluck.new_signing_key(path) writes one beside the private key",
            Remedy::JoinPartial => "add it, or join what there is with partial=True",
            Remedy::Extend { base } => {
                return format!("add extends = \"{base}\" to [study], or leave base out");
            }
            neutral @ (Remedy::CheckSpelling | Remedy::Write(_)) => return Command.say(neutral),
        };
        words.to_owned()
    }
}

/// A table that a release would refuse: every reason in one exception, which has what was counted
/// as its `report`.
pub(crate) fn of_problems(py: Python<'_>, validation: &Validation) -> Result<Error, Error> {
    let problems: Vec<String> =
        validation.problems.iter().map(|found| found.in_words(&of_party(&found.error))).collect();
    let message = match problems.as_slice() {
        [only] => only.clone(),
        many => format!("a release would refuse this table:\n- {}", many.join("\n- ")),
    };
    let error = InputError::new_err(message);
    error.value(py).setattr("report", json::to_python(py, &validation.to_json(of_party))?)?;
    Ok(Error::Python(error))
}

/// Whether this package raised it.
pub(crate) fn is_ours(py: Python<'_>, error: &PyErr) -> bool {
    error.is_instance_of::<exceptions::Error>(py)
}

/// What other software raised while it handed over a table. Its message may quote a value, so only
/// its type is passed on, unless it says that a package is missing; an interrupt stays one.
pub(crate) fn while_handing_over(py: Python<'_>, table: &str, error: PyErr) -> Error {
    if !error.is_instance_of::<PyException>(py) {
        return Error::Python(error);
    }
    if is_ours(py, &error) {
        return Error::Python(error);
    }
    if error.is_instance_of::<PyImportError>(py) {
        let said = error.value(py);
        return Error::Input(format!(
            "{table} could not be handed over as an Arrow table, because a package is missing ({said}); for tables of pandas: pip install potluck[pandas]"
        ));
    }
    let kind = error.get_type(py).name().map_or_else(|_| "an error".to_owned(), |name| name.to_string());
    Error::Input(format!(
        "{table} could not be handed over as an Arrow table ({kind}); give every column one type, such as a number, text or a date"
    ))
}
