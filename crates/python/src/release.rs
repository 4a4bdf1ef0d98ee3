//! Releases and audits.

use std::num::NonZero;
use std::path::{Path, PathBuf};

use potluck_party::ledger::Budget;
use potluck_party::release::{ExtraColumns, check_columns};
use potluck_party::{Job, Ledger, Observer, entropy};
use potluck_release::files::refuse_same_file;
use potluck_release::plan::futility;
use potluck_release::release::Written;
use potluck_release::signing::SigningKey;
use potluck_release::study::IdKind;
use potluck_release::{Release, statement};
use pyo3::prelude::*;

use crate::errors::Error;
use crate::ledger::chosen;
use crate::study::{Study, existing};
use crate::table::{self, Keeping};
use crate::work;

/// What came of a release. It stands for its file wherever a path is asked for.
#[pyclass(frozen, get_all, module = "potluck")]
pub(crate) struct Published {
    /// The file.
    path: String,
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
    /// μ² that is left of the table's budget.
    budget_left: f64,
    /// μ² of the table's budget.
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
            path: path.to_string_lossy().into_owned(),
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
    fn __fspath__(&self) -> &str {
        &self.path
    }

    fn __repr__(&self) -> String {
        let share = 100.0 * self.budget_left / self.budget_total;
        format!("<Published {}: release of {}, {share:.1}% of the budget left>", self.path, self.party)
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
#[pyo3(signature = (study, party, data, *, id, ledger, table, out, signing_key, accept_low_accuracy, ignore_extra,
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
    table: Option<&str>,
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
    let ledger_path = chosen(ledger)?;
    let data_path = table::path(data)?;
    let inputs: Vec<&Path> = [data_path.as_ref(), Some(&ledger_path), signing_key.as_ref()]
        .into_iter()
        .flatten()
        .map(PathBuf::as_path)
        .collect();
    refuse_same_file(&out, &inputs)?;
    let signing_key = signing_key.as_deref().map(SigningKey::load).transpose()?;
    let mut ledger = py.detach(|| Ledger::open(&ledger_path))?;
    let budget = ledger.choose_table(table)?;
    let tmp = temporary_folder(tmp_dir);
    let keeping = if spool { Keeping::Disk(&tmp) } else { Keeping::Memory };
    let raw = table::open(data, keep.as_deref(), keeping, &tmp)?;
    let job = Job {
        study,
        party,
        table: &raw,
        id_column: id,
        extra_columns: extra_columns(ignore_extra),
        budget: &budget,
        out: &out,
        existing: existing(overwrite),
        signing_key: signing_key.as_ref(),
        threads: threads_to_use(threads),
        tmp: tmp.clone(),
    };
    if ledger.session(&budget, study.id(), party)?.is_none() {
        check_columns(&job)?;
        agree_first(py, study, party, &budget, &ledger, accept_low_accuracy, confirm.as_ref())?;
    }
    let published = work::run(py, progress.as_ref(), |observer: &dyn Observer| {
        potluck_party::release(&job, &mut ledger, observer)
    })?;
    let left = ledger.budget(&budget)?;
    Ok(Published::new(&out, study, party, &published.release, published.repeated, left.as_ref()))
}

/// Refuses what would be of no use, and asks before something that cannot be undone.
pub(crate) fn agree_first(
    py: Python<'_>,
    study: &potluck_release::Study,
    party: &str,
    budget: &str,
    ledger: &Ledger,
    accept_low_accuracy: bool,
    confirm: Option<&Py<PyAny>>,
) -> Result<(), Error> {
    if let Some(futility) = futility(study).filter(|_| !accept_low_accuracy) {
        let message = format!("{futility} To publish all the same, pass accept_low_accuracy=True");
        return Err(Error::Usage(message));
    }
    let Some(confirm) = confirm else { return Ok(()) };
    let charge = study.mu().squared().to_f64();
    let share = ledger.budget(budget)?.map_or(0.0, |budget| charge / budget.total.to_f64());
    let mut question = statement::of_release(study, party)?.join("\n");
    question.push_str(&format!(
        "\nPublish the columns of {party} and charge {:.1}% of the budget of table {budget:?}?",
        100.0 * share
    ));
    if confirm.call1(py, (question,))?.is_truthy(py)? {
        return Ok(());
    }
    Err(Error::Usage("not agreed; nothing was read, charged or written".to_owned()))
}

/// Computes the exact sums of one stage, for an audit inside the party; see potluck.sums.
#[pyfunction]
#[pyo3(signature = (study, party, data, *, state, id, release, stage, ignore_extra, overwrite, threads, tmp_dir))]
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
    threads: Option<NonZero<usize>>,
    tmp_dir: Option<PathBuf>,
) -> Result<String, Error> {
    let study = study.sealed_study()?;
    let keep = needed_columns(study, party, id, ignore_extra)?;
    let tmp = temporary_folder(tmp_dir);
    let earlier = match &release {
        Some(path) => py.detach(|| Release::read(path))?.sums_before(study, party, stage)?,
        None => Vec::new(),
    };
    let table = table::open(data, keep.as_deref(), Keeping::Memory, &tmp)?;
    let path = work::run(py, None, |observer| {
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
    Ok(path.to_string_lossy().into_owned())
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
