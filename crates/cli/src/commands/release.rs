//! `potluck release`.

use std::path::{Path, PathBuf};

use anyhow::Result;
use potluck_party::ledger::default_path;
use potluck_party::release::{ExtraColumns, check_columns};
use potluck_party::sql::{Fed, Remembered, Results, StagedRelease};
use potluck_party::{Job, Ledger, Published, Table};
use potluck_release::files::{Existing, is_same_file, refuse_same_file};
use potluck_release::plan::futility;
use potluck_release::signing::SigningKey;
use potluck_release::{Study, statement};
use serde_json::json;

use super::Settings;
use crate::args::{LedgerArguments, Release};
use crate::exit::WrongUsage;
use crate::output::counted;

pub(super) fn run(arguments: &Release, settings: &Settings<'_>) -> Result<()> {
    let mut order = Order::new(arguments, settings)?;
    match (&arguments.data, &arguments.state) {
        (Some(data), _) => {
            let published = order.read_table(data)?;
            order.report(&published)
        }
        (None, Some(state)) => order.take_sums(state),
        (None, None) => unreachable!("clap asks for one of them"),
    }
}

/// A release that somebody ordered.
pub(super) struct Order<'a> {
    arguments: &'a Release,
    settings: &'a Settings<'a>,
    study: Study,
    ledger: Ledger,
    budget: String,
    signing_key: Option<SigningKey>,
    /// What the state folder knows, if sums are handed in.
    remembered: Option<Remembered>,
}

impl<'a> Order<'a> {
    pub(super) fn new(arguments: &'a Release, settings: &'a Settings<'a>) -> Result<Self> {
        if arguments.data.as_deref() == Some(Path::new("-")) && !arguments.yes {
            // Standard input is the table, so it cannot answer.
            return Err(WrongUsage("reading the table from standard input needs --yes".to_owned()).into());
        }
        let study = Study::load(&arguments.party.study)?;
        study.own_party(&arguments.party.name)?;
        let remembered = match &arguments.state {
            Some(state) => Remembered::load(&study, &arguments.party.name, state)?,
            None => None,
        };
        let ledger_path = staged_ledger(&arguments.ledger, remembered.as_ref(), settings)?;
        let mut inputs = vec![arguments.party.study.as_path(), &ledger_path];
        inputs.extend(
            [&arguments.data, &arguments.sums, &arguments.signing_key]
                .into_iter()
                .flatten()
                .map(PathBuf::as_path),
        );
        refuse_same_file(&arguments.out, &inputs)?;
        let signing_key = arguments.signing_key.as_deref().map(SigningKey::load).transpose()?;
        let ledger = Ledger::open(&ledger_path)?;
        let budget = staged_budget(&ledger, arguments.budget.as_deref(), remembered.as_ref(), settings)?;
        Ok(Self { arguments, settings, study, ledger, budget, signing_key, remembered })
    }

    fn party(&self) -> &'a str {
        &self.arguments.party.name
    }

    fn is_new(&self) -> Result<bool> {
        Ok(self.ledger.session(&self.budget, self.study.id(), self.party())?.is_none())
    }

    /// Releases a table that is in a file: checks, says what is promised, asks, and does it.
    pub(super) fn read_table(&mut self, data: &Path) -> Result<Published> {
        let table = Table::open(data, &self.settings.tmp)?;
        let job = Job {
            study: &self.study,
            party: self.party(),
            table: &table,
            id_column: &self.arguments.id,
            extra_columns: extra_columns(self.arguments.ignore_extra),
            budget: &self.budget,
            out: &self.arguments.out,
            existing: self.settings.existing,
            signing_key: self.signing_key.as_ref(),
            threads: self.settings.threads,
            tmp: self.settings.tmp.clone(),
        };
        if self.is_new()? {
            check_columns(&job)?;
            self.agree()?;
        }
        let progress = self.settings.printer.progress("reading the table", self.study.definition().rows());
        Ok(potluck_party::release(&job, &mut self.ledger, &progress)?)
    }

    /// Takes the result of a query, and writes the release if it was the last one.
    fn take_sums(&mut self, state: &Path) -> Result<()> {
        let remembered = self.remembered.as_ref().ok_or_else(|| {
            WrongUsage(format!(
                "{} knows of no query for {} under this study; print one with `potluck sql`",
                state.display(),
                self.party()
            ))
        })?;
        let staged = StagedRelease {
            study: &self.study,
            party: self.party(),
            budget: &self.budget,
            source: &remembered.source,
        };
        staged.check_out(&self.ledger, &self.arguments.out, self.settings.existing)?;
        if let Some(path) = &self.arguments.sums {
            let results = Results::read(path, &self.settings.tmp)?;
            if self.is_new()? {
                self.agree()?;
            }
            if staged.feed(&mut self.ledger, &results, &())? == Fed::Known {
                self.settings.printer.note("this result was taken before; its noise is drawn and stored");
            }
        }
        let Some(next) = staged.next_query(&self.ledger)? else {
            let (out, existing) = (&self.arguments.out, self.settings.existing);
            let key = self.signing_key.as_ref();
            let published = staged.finish(&mut self.ledger, out, existing, key, &())?;
            return self.report(&published);
        };
        let command = format!(
            "potluck sql {} --party {} --state {}",
            self.arguments.party.study.display(),
            self.party(),
            state.display()
        );
        let stored = staged.stored_stages(&self.ledger)?;
        let value = json!({ "stored_stages": stored, "next_stage": next.stage, "next": command });
        self.settings.printer.result(&value, || {
            let stored = match stored {
                0 => String::new(),
                stored => {
                    format!("{} stored, noise included; ", counted(stored as usize, "stage is", "stages are"))
                }
            };
            format!(
                "{stored}the release is not written yet\nnext: stage {} ({}), {command}\n",
                next.position + 1,
                next.stage
            )
        })
    }

    /// Says what a new release promises and costs, and asks whether that is meant.
    fn agree(&self) -> Result<()> {
        let (study, printer) = (&self.study, self.settings.printer);
        if let Some(futility) = futility(study).filter(|_| !self.arguments.accept_low_accuracy) {
            let message = format!("{futility} To publish all the same, pass --accept-low-accuracy");
            return Err(WrongUsage(message).into());
        }
        printer.note(&format!("Study {:?}, id {}", study.definition().name(), study.id()));
        for sentence in statement::of_release(study, self.party())? {
            printer.note(&sentence);
        }
        if let Some(warning) = statement::refusals(study, self.party())? {
            printer.warn(&warning);
        }
        let refused = self.ledger.refusals()?;
        let refused = refused.iter().filter(|refused| refused.study_id == study.id());
        match refused.filter(|refused| refused.party == self.party()).count() {
            0 => {}
            times => printer.note(&format!(
                "The table was refused {} under this study; `potluck ledger show` lists the reasons.",
                counted(times, "time", "times")
            )),
        }
        let charge = study.mu().squared().to_f64();
        let share = self.ledger.budget(&self.budget)?.map_or(0.0, |budget| charge / budget.total.to_f64());
        printer.confirm(
            self.arguments.yes,
            &format!(
                "Publish the columns of {} and charge {:.1}% of the budget of table {:?}?",
                self.party(),
                100.0 * share,
                self.budget
            ),
        )
    }

    fn report(&self, published: &Published) -> Result<()> {
        let out = self.arguments.out.display();
        let left = self.ledger.budget(&self.budget)?.map(|budget| (budget.left(), budget.total));
        let release = &published.release;
        let value = json!({
            "release": out.to_string(),
            "content_hash": release.content_hash,
            "study_id": self.study.id(),
            "party": self.party(),
            "signed_by": release.signer.as_ref().map(ToString::to_string),
            "repeated": published.repeated,
            "budget_left": left.map(|(left, _)| left.to_f64()),
            "budget_total": left.map(|(_, total)| total.to_f64()),
        });
        self.settings.printer.result(&value, || {
            let done = if published.repeated {
                "this release was drawn before; the table was not read, and the same release is in"
            } else {
                "published"
            };
            let charge = left.map_or(String::new(), |(left, total)| {
                format!("budget of {:?}: {:.1}% left\n", self.budget, 100.0 * left.to_f64() / total.to_f64())
            });
            let unsigned = match &release.signer {
                Some(key) => format!("signed by {key}\n"),
                None => "not signed; `potluck key new` and --signing-key let others check who published it\n"
                    .to_owned(),
            };
            format!("{done} {out}\ncontent {}\n{unsigned}{charge}", release.content_hash)
        })
    }
}

pub(super) fn extra_columns(ignore: bool) -> ExtraColumns {
    if ignore { ExtraColumns::Ignore } else { ExtraColumns::Refuse }
}

/// The ledger of a release: the one that its earlier steps had, if it goes by steps.
pub(super) fn staged_ledger(
    arguments: &LedgerArguments,
    remembered: Option<&Remembered>,
    settings: &Settings<'_>,
) -> Result<PathBuf> {
    let Some(remembered) = remembered else {
        return ledger_path(arguments);
    };
    let Some(named) = &arguments.ledger else { return Ok(remembered.ledger.clone()) };
    let named = std::path::absolute(named)?;
    let same = named == remembered.ledger || is_same_file(&named, &remembered.ledger);
    if same || settings.existing == Existing::Replace {
        return Ok(named);
    }
    Err(WrongUsage(format!(
        "earlier steps of this release were for the ledger {}; noise for the same sums in two ledgers is two releases, and only one of them is charged in each: leave --ledger out, or pass --force if the ledger was moved",
        remembered.ledger.display()
    ))
    .into())
}

/// Whose budget a release is charged to: the one that its earlier steps named, if it goes by steps.
pub(super) fn staged_budget(
    ledger: &Ledger,
    named: Option<&str>,
    remembered: Option<&Remembered>,
    settings: &Settings<'_>,
) -> Result<String> {
    let known = remembered.map(|remembered| remembered.budget.as_str());
    let budget = ledger.choose_table(named.or(known))?;
    match known.filter(|known| *known != budget && settings.existing == Existing::Keep) {
        Some(known) => Err(WrongUsage(format!(
            "earlier steps of this release were for the budget of {known:?}; leave the other one out, or pass --force if nothing came of them"
        ))
        .into()),
        None => Ok(budget),
    }
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
