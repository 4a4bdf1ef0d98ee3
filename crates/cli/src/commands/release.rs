//! `potluck release`.

use std::path::{Path, PathBuf};

use anyhow::Result;
use potluck_core::accounting::MuSquared;
use potluck_party::release::{ExtraColumns, check_columns};
use potluck_party::{Job, Ledger, Published, Table};
use potluck_release::plan::futility;
use potluck_release::signing::SigningKey;
use potluck_release::{Study, statement};
use serde_json::json;

use super::{Settings, data_folder, refuse_same_file};
use crate::args::{LedgerArguments, Release};
use crate::exit::WrongUsage;

/// A release that is out, and what it left of the budget.
pub(super) struct Outcome {
    pub(super) study: Study,
    pub(super) published: Published,
    budget: String,
    left: Option<(MuSquared, MuSquared)>,
}

/// Releases: checks, shows the statement, asks, and does it.
pub(super) fn publish(arguments: &Release, settings: &Settings<'_>) -> Result<Outcome> {
    if arguments.table.data == Path::new("-") && !arguments.yes {
        // Standard input is the table, so it cannot answer.
        return Err(WrongUsage("reading the table from standard input needs --yes".to_owned()).into());
    }
    let study = Study::load(&arguments.table.study)?;
    let party = arguments.table.party.as_str();
    study.own_party(party)?;
    let statement = statement::of_release(&study, party)?;
    let ledger_path = ledger_path(&arguments.ledger)?;
    let mut inputs = vec![arguments.table.study.as_path(), &arguments.table.data, &ledger_path];
    inputs.extend(arguments.signing_key.as_deref());
    refuse_same_file(&arguments.out, &inputs)?;
    let signing_key = arguments.signing_key.as_deref().map(SigningKey::load).transpose()?;
    let mut ledger = Ledger::open(&ledger_path)?;
    let budget = ledger.choose_table(arguments.budget.as_deref())?;
    let table = Table::open(&arguments.table.data, &settings.tmp)?;

    let job = Job {
        study: &study,
        party,
        table: &table,
        id_column: &arguments.table.id,
        extra_columns: extra_columns(arguments.table.ignore_extra),
        budget: &budget,
        out: &arguments.out,
        existing: settings.existing,
        signing_key: signing_key.as_ref(),
        threads: settings.threads,
        tmp: settings.tmp.clone(),
    };
    if ledger.session(&budget, study.id(), party)?.is_none() {
        check_columns(&job)?;
        if let Some(futility) = futility(&study).filter(|_| !arguments.accept_low_accuracy) {
            let message = format!("{futility} To publish all the same, pass --accept-low-accuracy");
            return Err(WrongUsage(message).into());
        }
        settings.printer.note(&format!("Study {:?}, id {}", study.definition().name(), study.id()));
        for sentence in &statement {
            settings.printer.note(sentence);
        }
        let charge = study.mu().squared().to_f64();
        let share = ledger.budget(&budget)?.map_or(0.0, |budget| charge / budget.total.to_f64());
        settings.printer.confirm(
            arguments.yes,
            &format!(
                "Publish the columns of {party} and charge {:.1}% of the budget of table {budget:?}?",
                100.0 * share
            ),
        )?;
    }
    let progress = settings.printer.progress("reading the table", study.definition().rows());
    let published = potluck_party::release(&job, &mut ledger, &progress)?;
    drop(progress);
    let left = ledger.budget(&budget)?.map(|budget| (budget.left(), budget.total));
    Ok(Outcome { study, published, budget, left })
}

pub(super) fn run(arguments: &Release, settings: &Settings<'_>) -> Result<()> {
    let Outcome { study, published, budget, left } = publish(arguments, settings)?;
    let release = &published.release;
    let value = json!({
        "release": arguments.out.display().to_string(),
        "content_hash": release.content_hash,
        "study_id": study.id(),
        "party": arguments.table.party,
        "signed_by": release.signer.as_ref().map(ToString::to_string),
        "repeated": published.repeated,
        "budget_left": left.map(|(left, _)| left.to_f64()),
        "budget_total": left.map(|(_, total)| total.to_f64()),
    });
    settings.printer.result(&value, || {
        let done = if published.repeated {
            "this release was drawn before; the table was not read, and the same release is in"
        } else {
            "published"
        };
        let charge = left.map_or(String::new(), |(left, total)| {
            format!("budget of {budget:?}: {:.1}% left\n", 100.0 * left.to_f64() / total.to_f64())
        });
        let unsigned = match &release.signer {
            Some(key) => format!("signed by {key}\n"),
            None => "not signed; `potluck key new` and --signing-key let others check who published it\n"
                .to_owned(),
        };
        format!("{done} {}\ncontent {}\n{unsigned}{charge}", arguments.out.display(), release.content_hash)
    })
}

pub(super) fn extra_columns(ignore: bool) -> ExtraColumns {
    if ignore { ExtraColumns::Ignore } else { ExtraColumns::Refuse }
}

/// The ledger named on the command line or in the environment, or the user's own.
pub(super) fn ledger_path(arguments: &LedgerArguments) -> Result<PathBuf> {
    if let Some(path) = &arguments.ledger {
        return Ok(path.clone());
    }
    data_folder().map(|folder| folder.join("potluck/ledger.sqlite")).ok_or_else(|| {
        WrongUsage("there is no home folder for the ledger: name it with --ledger".to_owned()).into()
    })
}
