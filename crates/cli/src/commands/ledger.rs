//! `potluck ledger init|raise|show|export`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use anyhow::Result;
use potluck_core::accounting::{Delta, Epsilon};
use potluck_party::ledger::{Budget, Forgotten, Raised, Refused, Session, State};
use potluck_party::{Ledger, Refusal};
use potluck_release::Error;
use potluck_release::statement::{Guarantee, for_people};

use super::Settings;
use super::release::ledger_path;
use crate::args::LedgerCommand;
use crate::output::{table, wrapped};

pub(super) fn run(command: &LedgerCommand, settings: &Settings<'_>) -> Result<()> {
    match command {
        LedgerCommand::Init { ledger, budget, epsilon, delta } => {
            let (epsilon, delta) = guarantee(*epsilon, *delta)?;
            let mut ledger = Ledger::open_or_create(&ledger_path(ledger)?)?;
            let budget = ledger.set_budget(budget, epsilon, delta)?;
            settings.printer.result(&budget.to_json(), || {
                format!(
                    "budget {:?} in {}: everything ever charged to it stays within ε = {}, δ = {delta}\n",
                    budget.name,
                    ledger.path().display(),
                    epsilon.get(),
                )
            })
        }
        LedgerCommand::Raise { ledger, budget, epsilon, delta, yes } => {
            let to = guarantee(*epsilon, *delta)?;
            raise(&ledger_path(ledger)?, budget, to, *yes, settings)
        }
        LedgerCommand::Show { ledger, delta, verbose } => {
            let delta = delta.map(Delta::new).transpose().map_err(Error::from)?;
            let ledger = Ledger::open(&ledger_path(ledger)?)?;
            let shown =
                Shown { sessions: ledger.sessions()?, raises: ledger.raises()?, delta, verbose: *verbose };
            let (budgets, refusals, forgotten) = (ledger.budgets()?, ledger.refusals()?, ledger.forgotten()?);
            settings.printer.result(&ledger.to_json()?, || {
                forgotten_text(&forgotten) + &shown.to_text(&budgets) + &refusals_text(&refusals)
            })
        }
        LedgerCommand::Export { ledger } => {
            let ledger = Ledger::open(&ledger_path(ledger)?)?;
            settings.printer.data(&(serde_json::to_string_pretty(&ledger.to_json()?)? + "\n"))
        }
    }
}

fn guarantee(epsilon: f64, delta: f64) -> Result<(Epsilon, Delta)> {
    Ok((Epsilon::new(epsilon).map_err(Error::from)?, Delta::new(delta).map_err(Error::from)?))
}

/// Says what a larger budget means, asks, and raises it.
fn raise(
    path: &Path,
    budget: &str,
    (epsilon, delta): (Epsilon, Delta),
    yes: bool,
    settings: &Settings<'_>,
) -> Result<()> {
    // The ledger is closed while a person thinks.
    let raise = Ledger::open(path)?.prepare_raise(budget, epsilon, delta)?;
    for sentence in raise.promise() {
        settings.printer.note(&sentence);
    }
    settings.printer.confirm(yes, &format!("Raise budget {budget:?}?"), "not agreed; nothing was changed")?;
    let raised = Ledger::open(path)?.raise(&raise)?;
    settings.printer.result(&raised.to_json(), || {
        format!(
            "budget {:?} in {}: everything ever charged to it stays within ε = {}, δ = {delta}; {}\n",
            raised.name,
            path.display(),
            raised.epsilon,
            left_text(&raised)
        )
    })
}

/// What a further release could have, at the budget's own δ.
pub(super) fn left_text(budget: &Budget) -> String {
    match budget.epsilon_left() {
        0.0 => format!("nothing is left of ε = {}, δ = {:e}", budget.epsilon, budget.delta),
        left => format!(
            "of ε = {}, δ = {:e} a further release may have up to ε = {left} at this δ",
            budget.epsilon, budget.delta
        ),
    }
}

/// What is shown of a ledger, beside its budgets.
struct Shown {
    sessions: Vec<Session>,
    raises: Vec<Raised>,
    /// Another δ at which to say what a further release could have.
    delta: Option<Delta>,
    /// Whether μ² is shown.
    verbose: bool,
}

impl Shown {
    fn to_text(&self, budgets: &[Budget]) -> String {
        if budgets.is_empty() {
            return "no budget yet; set one with `potluck ledger init`\n".to_owned();
        }
        budgets.iter().map(|budget| self.budget(budget)).collect::<Vec<_>>().join("\n")
    }

    fn budget(&self, budget: &Budget) -> String {
        let Budget { name, epsilon, delta, .. } = budget;
        let spent = for_people(budget.spent_epsilon());
        let mut text = format!("{name}: ε = {epsilon}, δ = {delta:e} in all; ε = {spent} is spent\n");
        let further = |delta: Delta| match budget.affordable(delta) {
            Some(epsilon) => {
                format!("  left: a further release may have up to ε = {} at δ = {delta}\n", epsilon.get())
            }
            None => format!("  left: nothing that a release at δ = {delta} could have\n"),
        };
        text.extend(Delta::new(*delta).ok().filter(|own| self.delta != Some(*own)).map(further));
        text.extend(self.delta.map(further));
        if self.verbose {
            let (spent, total) = (budget.spent.to_f64(), budget.total.to_f64());
            let _ = writeln!(text, "  μ²: {spent:.6} of {total:.6} spent ({:.1}%)", 100.0 * spent / total);
        }
        for raised in self.raises.iter().filter(|raised| raised.budget == *name) {
            let Raised { from: (old_epsilon, old_delta), to: (epsilon, delta), created, .. } = raised;
            let _ = writeln!(
                text,
                "  raised {created} UTC from ε = {old_epsilon}, δ = {old_delta:e} to ε = {epsilon}, δ = {delta:e}"
            );
        }
        let sessions: Vec<&Session> = self
            .sessions
            .iter()
            .filter(|session| session.budget == *name && session.state != State::Void)
            .collect();
        if !sessions.is_empty() {
            let rows: Vec<Vec<String>> = sessions.iter().map(|session| self.row(session, budget)).collect();
            let charged = format!("ε at δ = {delta:e}");
            let mut header = vec!["study", "party", "state", &charged, "changed (UTC)", "content"];
            if self.verbose {
                header.push("μ²");
            }
            text.push_str(&table(&header, &rows));
        }
        for session in sessions.iter().filter(|session| session.state == State::Spent) {
            text.push_str(&wrapped(
                &format!(
                    "{} under {:?}, id {}: charged, not yet published. Run the same `potluck release` again: it goes on where it stopped, with the same noise and at no further charge.",
                    session.party,
                    session.study_name,
                    session.study_id.chars().take(16).collect::<String>()
                ),
                "  ",
            ));
        }
        text
    }

    fn row(&self, session: &Session, budget: &Budget) -> Vec<String> {
        let state = match session.state {
            State::Spent => "charged, not yet published",
            other => other.name(),
        };
        let content = session.content_hash.as_deref();
        let mut row = vec![
            session.study_name.clone(),
            session.party.clone(),
            state.to_owned(),
            for_people(Guarantee::of_budget(session.charge, budget.delta).epsilon).to_string(),
            session.changed.clone(),
            content.map_or("-".to_owned(), |hash| hash.chars().take(16).collect()),
        ];
        if self.verbose {
            row.push(format!("{:.6}", session.charge.to_f64()));
        }
        row
    }
}

/// Releases that are known outside of the ledger only: what stands in it is too little.
fn forgotten_text(forgotten: &[Forgotten]) -> String {
    if forgotten.is_empty() {
        return String::new();
    }
    let rows: Vec<Vec<String>> = forgotten
        .iter()
        .map(|one| vec![one.budget.clone(), one.study_name.clone(), one.party.clone()])
        .collect();
    format!(
        "Careful: this ledger is older than what was released with it on this machine, as one restored from a backup is. More is spent or drawn than it says, and no noise is drawn with it. Put back its newest copy.\n{}\n",
        table(&["budget", "study", "party"], &rows)
    )
}

/// How often tables were refused for what stands in them, by study and party.
fn refusals_text(refusals: &[Refused]) -> String {
    if refusals.is_empty() {
        return String::new();
    }
    let mut by_study: BTreeMap<(&str, &str), Vec<&Refused>> = BTreeMap::new();
    for refused in refusals {
        by_study.entry((&refused.study_id, &refused.party)).or_default().push(refused);
    }
    let rows: Vec<Vec<String>> = by_study
        .iter()
        .map(|((study_id, party), refused)| {
            let last = refused[refused.len() - 1];
            let reasons: BTreeSet<Refusal> = refused.iter().map(|refused| refused.reason).collect();
            let reasons: Vec<&str> = reasons.into_iter().map(Refusal::in_words).collect();
            vec![
                last.study_name.clone(),
                (*party).to_owned(),
                study_id.chars().take(16).collect(),
                refused.len().to_string(),
                last.created.clone(),
                reasons.join(", "),
            ]
        })
        .collect();
    format!(
        "refused for what stands in the table; each refusal told that to everyone who learned of it, at no charge:\n{}",
        table(&["study", "party", "id", "refusals", "last (UTC)", "reasons"], &rows)
    )
}
