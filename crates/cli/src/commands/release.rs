//! `potluck release`, and the part of it that `potluck party release` shares.

use std::path::PathBuf;

use anyhow::Result;
use potluck_party::ledger::default_path;
use potluck_party::order::{Prepared, Question};
use potluck_party::{Access, LostValues, Order, Published};
use potluck_release::Study;
use serde_json::json;

use super::Settings;
use super::data::Place;
use super::ledger::left_text;
use super::sql::take_sums;
use crate::args::{Data, LedgerArguments, Release};
use crate::exit::WrongUsage;
use crate::interruption::watched;
use crate::output::{Printer, counted};

pub(super) fn run(arguments: &Release, settings: &Settings<'_>) -> Result<()> {
    match (&arguments.data, &arguments.state) {
        (Some(data), _) => {
            let study = Study::load(&arguments.party.study)?;
            let (ledger, budget) =
                (ledger_path(&arguments.charged.ledger)?, arguments.charged.budget.clone());
            let order = order(arguments, study, ledger, budget, settings);
            let access = settings.access(&arguments.id, arguments.ignore_extra);
            let place = Place::new(data, arguments.table.as_deref())?;
            let published = release_table(order, Some(place), &access, arguments.yes, settings.printer)?;
            report(&published, settings.printer)
        }
        (None, Some(state)) => take_sums(arguments, state, settings),
        (None, None) => unreachable!("clap asks for one of them"),
    }
}

/// What was asked for on the command line.
pub(super) fn order(
    arguments: &Release,
    study: Study,
    ledger: PathBuf,
    budget: Option<String>,
    settings: &Settings<'_>,
) -> Order {
    let inputs =
        [Some(&arguments.party.study), arguments.data.as_ref().and_then(Data::file), arguments.sums.as_ref()];
    Order {
        study,
        party: arguments.party.name.clone(),
        ledger,
        budget,
        out: arguments.out.clone(),
        existing: settings.existing,
        signing_key: arguments.signing_key.clone(),
        inputs: inputs.into_iter().flatten().cloned().collect(),
        accept_low_accuracy: arguments.accepted.low_accuracy,
        lost_values: LostValues::accepted(arguments.accepted.lost_values),
    }
}

/// Releases a table whose rows come here: says what is promised, asks, and does it. A release that
/// was drawn before needs no table.
pub(super) fn release_table(
    order: Order,
    place: Option<Place<'_>>,
    access: &Access,
    yes: bool,
    printer: &Printer,
) -> Result<Published> {
    if place.as_ref().is_some_and(Place::is_standard_input) && !yes {
        // Standard input is the table, so it cannot answer.
        return Err(WrongUsage("reading the table from standard input needs --yes".to_owned()).into());
    }
    let prepared = order.prepare()?;
    if let Prepared::Repeated(agreed) = prepared {
        return Ok(agreed.write(&())?);
    }
    let missing = || WrongUsage("the release is not drawn yet: name your table with --data".to_owned());
    let found = place.ok_or_else(missing)?.find(&access.resources.tmp)?;
    if let Prepared::New(question) = &prepared {
        found.check_names(question.study(), question.party(), access)?;
    }
    let agreed = prepared.confirm(|question| ask(question, yes, printer))?;
    let progress = printer.progress("reading the table", agreed.study().definition().rows());
    watched(&agreed, printer, || {
        let table = found.table(agreed.study(), agreed.party(), access, &progress)?;
        agreed.release(&table, access, &progress)
    })
}

/// Says what a new release promises and costs, and asks whether that is meant.
pub(super) fn ask(question: &Question, yes: bool, printer: &Printer) -> Result<()> {
    let study = question.study();
    printer.note(&format!("Study {:?}, id {}", study.definition().name(), study.id()));
    for sentence in &question.promise {
        printer.note(sentence);
    }
    for warning in &question.warnings {
        printer.warn(warning);
    }
    if question.refused > 0 {
        printer.note(&format!(
            "The table was refused {} under this study; `potluck ledger show` lists the reasons.",
            counted(question.refused, "time", "times")
        ));
    }
    printer.confirm(
        yes,
        &format!(
            "Publish the columns of {} and charge {:.1}% of budget {:?}?",
            question.party(),
            100.0 * question.share,
            question.budget()
        ),
        "not agreed; nothing was read, charged or written",
    )
}

/// Says what came of a release.
pub(super) fn report(published: &Published, printer: &Printer) -> Result<()> {
    let Published { path, study_id, party, release, repeated, budget } = published;
    let left = budget.epsilon_left();
    let value = json!({
        "release": path.display().to_string(),
        "content_hash": release.content_hash,
        "study_id": study_id,
        "party": party,
        "signed_by": release.signer.as_ref().map(ToString::to_string),
        "repeated": repeated,
        "epsilon_left": left,
        "budget_epsilon": budget.epsilon,
        "budget_delta": budget.delta,
    });
    printer.result(&value, || {
        let done = if *repeated {
            "this release was drawn before; the table was not read, and the same release is in"
        } else {
            "published"
        };
        let unsigned = match &release.signer {
            Some(key) => format!("signed by {key}\n"),
            None => "not signed; `potluck key new` and --signing-key let others check who published it\n"
                .to_owned(),
        };
        format!(
            "{done} {}\ncontent {}\n{unsigned}budget {:?}: {}\n",
            path.display(),
            release.content_hash,
            budget.name,
            left_text(budget)
        )
    })
}

/// The ledger named on the command line or in the environment, or the user's own.
pub(super) fn ledger_path(arguments: &LedgerArguments) -> Result<PathBuf> {
    if let Some(path) = &arguments.ledger {
        return Ok(path.clone());
    }
    default_path().ok_or_else(|| {
        WrongUsage("there is no home folder for the ledger: name it with --ledger".to_owned()).into()
    })
}
