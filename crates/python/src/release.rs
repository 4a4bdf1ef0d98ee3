//! Releases and audits.

use std::ffi::OsString;
use std::num::NonZero;
use std::path::{Path, PathBuf};

use potluck_party::ledger::Budget;
use potluck_party::release::{ExtraColumns, check_names, publish_stored};
use potluck_party::{Job, Ledger, Observer, entropy};
use potluck_release::files::{check_writable, refuse_same_file};
use potluck_release::plan::futility;
use potluck_release::release::Written;
use potluck_release::signing::SigningKey;
use potluck_release::study::IdKind;
use potluck_release::{Release, statement};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::errors::Error;
use crate::ledger::chosen;
use crate::study::{Study, existing};
use crate::table::{self, Given, Keeping};
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
    /// Whether its noise had been drawn before: then the table was not read, and this is the same release again.
    repeated: bool,
    /// What is left of the table's budget after this release, as μ²: the sum of squares that charges add up to, not ε.
    budget_left: f64,
    /// The table's budget in all, as μ².
    budget_total: f64,
}

impl Published {
    pub(crate) fn new(
        path: &Path,
        study: &potluck_release::Study,
        party: &str,
        written: &Written,
        repeated: bool,
        budget: Option<&Budget>,
    ) -> Self {
        Self {
            path: path.as_os_str().to_owned(),
            content_hash: written.content_hash.clone(),
            study_id: study.id().to_owned(),
            party: party.to_owned(),
            signed_by: written.signer.as_ref().map(ToString::to_string),
            repeated,
            budget_left: budget.map_or(0.0, |budget| budget.left().to_f64()),
            budget_total: budget.map_or(0.0, |budget| budget.total.to_f64()),
        }
    }
}

#[pymethods]
impl Published {
    fn __fspath__(&self) -> OsString {
        self.path.clone()
    }

    fn __repr__(&self) -> String {
        let share = if self.budget_total > 0.0 { self.budget_left / self.budget_total } else { 0.0 };
        format!(
            "<Published {}: release of {}, {:.1}% of the budget left>",
            self.path.display(),
            self.party,
            100.0 * share
        )
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
            self.budget_left,
            self.budget_total,
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
        budget_left: f64,
        budget_total: f64,
    ) -> Self {
        Self { path, content_hash, study_id, party, signed_by, repeated, budget_left, budget_total }
    }
}

pub(crate) fn extra_columns(ignore: bool) -> ExtraColumns {
    if ignore { ExtraColumns::Ignore } else { ExtraColumns::Refuse }
}

pub(crate) fn threads_to_use(threads: Option<NonZero<usize>>) -> NonZero<usize> {
    threads.unwrap_or_else(|| std::thread::available_parallelism().unwrap_or(NonZero::<usize>::MIN))
}

pub(crate) fn temporary_folder(folder: Option<PathBuf>) -> PathBuf {
    folder.unwrap_or_else(std::env::temp_dir)
}

/// The columns that a release reads, if others are to be left alone; otherwise all are looked at.
pub(crate) fn needed_columns(
    study: &potluck_release::Study,
    party: &str,
    id: &str,
    ignore_extra: bool,
) -> Result<Option<Vec<String>>, Error> {
    let party = study.own_party(party)?;
    if !ignore_extra {
        return Ok(None);
    }
    let mut names: Vec<String> = party.columns().iter().map(|column| column.name().to_owned()).collect();
    if study.definition().id_kind() != IdKind::Row {
        names.push(id.to_owned());
    }
    Ok(Some(names))
}

/// Publishes a party's columns; see potluck.release.
#[pyfunction]
#[pyo3(signature = (study, party, data, *, id, ledger, budget, out, signing_key, accept_low_accuracy, ignore_extra,
                    overwrite, spool, threads, tmp_dir, confirm, progress))]
#[expect(clippy::too_many_arguments, reason = "they are independent choices of the caller")]
#[expect(clippy::fn_params_excessive_bools, reason = "they are keyword arguments in Python")]
pub(crate) fn release(
    py: Python<'_>,
    study: &Study,
    party: &str,
    data: &Bound<'_, PyAny>,
    id: &str,
    ledger: Option<PathBuf>,
    budget: Option<&str>,
    out: PathBuf,
    signing_key: Option<PathBuf>,
    accept_low_accuracy: bool,
    ignore_extra: bool,
    overwrite: bool,
    spool: bool,
    threads: Option<NonZero<usize>>,
    tmp_dir: Option<PathBuf>,
    confirm: Option<Py<PyAny>>,
    progress: Option<Py<PyAny>>,
) -> Result<Published, Error> {
    let study = study.sealed_study()?;
    let keep = needed_columns(study, party, id, ignore_extra)?;
    let given = Given::new(data)?;
    let ledger_path = chosen(ledger)?;
    let inputs: Vec<&Path> =
        [given.path(), Some(ledger_path.as_path()), signing_key.as_deref()].into_iter().flatten().collect();
    refuse_same_file(&out, &inputs)?;
    let signing_key = signing_key.as_deref().map(SigningKey::load).transpose()?;
    let (extra, existing) = (extra_columns(ignore_extra), existing(overwrite));
    let tmp = temporary_folder(tmp_dir);

    // Everything that can be known before a row is read. The ledger, which others may need, is closed again while a person
    // thinks and while a stream is handed over.
    let first = work::away(py, || {
        let mut ledger = Ledger::open(&ledger_path)?;
        let budget = ledger.choose_table(budget)?;
        let key = signing_key.as_ref();
        if let Some(published) = publish_stored(study, party, &budget, &mut ledger, &out, existing, key, &())?
        {
            let left = ledger.budget(&budget)?;
            return Ok(First::Repeated(Published::new(
                &out,
                study,
                party,
                &published.release,
                published.repeated,
                left.as_ref(),
            )));
        }
        if ledger.session(&budget, study.id(), party)?.is_some() {
            return Ok(First::Begun { budget });
        }
        check_writable(&out, existing)?;
        ledger.check_budget(&budget, study.mu())?;
        let question = question(study, party, &budget, &ledger)?;
        Ok::<_, Error>(First::New { budget, question })
    })?;
    let (budget, question) = match first {
        First::Repeated(published) => return Ok(published),
        First::Begun { budget } => (budget, None),
        First::New { budget, question } => {
            refuse_futile(study, accept_low_accuracy)?;
            (budget, Some(question))
        }
    };
    let check = |table: &str, names: &[String]| check_names(study, party, table, id, extra, names);
    let raw = match given {
        Given::File(_) => {
            let table = given.open(py, keep.as_deref(), Keeping::Memory, &tmp)?;
            if let Some(question) = question {
                check(table.name(), &table.column_names()?)?;
                agree(py, question, confirm.as_ref())?;
            }
            table
        }
        Given::Object(..) => {
            if let Some(question) = question {
                if let Some((table, names)) = given.names(keep.as_deref()) {
                    check(table, &names)?;
                }
                agree(py, question, confirm.as_ref())?;
            }
            given.open(py, keep.as_deref(), Keeping::spooled(spool, &tmp), &tmp)?
        }
    };
    let job = Job {
        study,
        party,
        table: &raw,
        id_column: id,
        extra_columns: extra,
        budget: &budget,
        out: &out,
        existing,
        signing_key: signing_key.as_ref(),
        threads: threads_to_use(threads),
        tmp,
    };
    let mut ledger = work::away(py, || Ledger::open(&ledger_path))?;
    let published = work::run(py, progress.as_ref(), |observer: &dyn Observer| {
        potluck_party::release(&job, &mut ledger, observer)
    })?;
    let left = ledger.budget(&budget)?;
    Ok(Published::new(&out, study, party, &published.release, published.repeated, left.as_ref()))
}

/// How a release stands in the ledger before its table is read.
enum First {
    /// All its stages are stored: it was written again.
    Repeated(Published),
    /// It was charged before, and some stages are missing.
    Begun { budget: String },
    /// It would be charged now.
    New { budget: String, question: String },
}

/// Refuses a release that would be of no use, unless it is wanted all the same.
pub(crate) fn refuse_futile(study: &potluck_release::Study, accept_low_accuracy: bool) -> Result<(), Error> {
    match futility(study).filter(|_| !accept_low_accuracy) {
        Some(futility) => {
            Err(Error::Usage(format!("{futility} To publish all the same, pass accept_low_accuracy=True")))
        }
        None => Ok(()),
    }
}

/// What a new release promises and costs, and whether that is meant.
pub(crate) fn question(
    study: &potluck_release::Study,
    party: &str,
    budget: &str,
    ledger: &Ledger,
) -> Result<String, Error> {
    let charge = study.mu().squared().to_f64();
    let share = ledger.budget(budget)?.map_or(0.0, |budget| charge / budget.total.to_f64());
    let mut question = statement::of_release(study, party)?.join("\n");
    if let Some(warning) = statement::refusals(study, party)? {
        question.push_str(&format!("\nCareful: {warning}"));
    }
    question.push_str(&format!(
        "\nPublish the columns of {party} and charge {:.1}% of the budget of table {budget:?}?",
        100.0 * share
    ));
    Ok(question)
}

/// Asks, if anyone is to be asked. No ledger should be open: a person may take long.
pub(crate) fn agree(py: Python<'_>, question: String, confirm: Option<&Py<PyAny>>) -> Result<(), Error> {
    let Some(confirm) = confirm else { return Ok(()) };
    if confirm.call1(py, (question,))?.is_truthy(py)? {
        return Ok(());
    }
    Err(Error::Usage("not agreed; no row was read, and nothing was charged or written".to_owned()))
}

/// Computes the exact sums of one stage, for an audit inside the party; see potluck.sums.
#[pyfunction]
#[pyo3(signature = (study, party, data, *, state, id, release, stage, ignore_extra, overwrite, spool, threads,
                    tmp_dir, progress))]
#[expect(clippy::too_many_arguments, reason = "they are independent choices of the caller")]
pub(crate) fn sums(
    py: Python<'_>,
    study: &Study,
    party: &str,
    data: &Bound<'_, PyAny>,
    state: PathBuf,
    id: &str,
    release: Option<PathBuf>,
    stage: Option<usize>,
    ignore_extra: bool,
    overwrite: bool,
    spool: bool,
    threads: Option<NonZero<usize>>,
    tmp_dir: Option<PathBuf>,
    progress: Option<Py<PyAny>>,
) -> Result<OsString, Error> {
    let study = study.sealed_study()?;
    let keep = needed_columns(study, party, id, ignore_extra)?;
    let tmp = temporary_folder(tmp_dir);
    let earlier = match &release {
        Some(path) => work::away(py, || Release::read(path))?.sums_before(study, party, stage)?,
        None => Vec::new(),
    };
    let table = table::open(data, keep.as_deref(), Keeping::spooled(spool, &tmp), &tmp)?;
    let path = work::run(py, progress.as_ref(), |observer| {
        observer.stage("", 0);
        potluck_party::sums::write_sums(
            study,
            party,
            &earlier,
            &table,
            id,
            extra_columns(ignore_extra),
            threads_to_use(threads),
            &tmp,
            &state,
            existing(overwrite),
            observer,
        )
    })?;
    Ok(path.into_os_string())
}

/// Makes an Ed25519 key to sign releases with: the private key at `path`, readable by its owner only, and the public
/// key beside it, with `.pub` behind. Returns the public key.
#[pyfunction]
#[pyo3(signature = (path, *, overwrite=false))]
pub(crate) fn new_signing_key(path: PathBuf, overwrite: bool) -> Result<String, Error> {
    let key = entropy::new_signing_key()?;
    key.save_pair(&path, existing(overwrite))?;
    Ok(key.public().to_string())
}
