//! `potluck ledger init|show|export`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use anyhow::Result;
use potluck_core::accounting::{Delta, Epsilon};
use potluck_party::ledger::{Budget, Refused, Session, State};
use potluck_party::{Ledger, Refusal};
use potluck_release::Error;
use potluck_release::statement::Guarantee;

use super::Settings;
use super::release::ledger_path;
use crate::args::LedgerCommand;
use crate::output::table;

pub(super) fn run(command: &LedgerCommand, settings: &Settings<'_>) -> Result<()> {
    match command {
        LedgerCommand::Init { ledger, budget, epsilon, delta } => {
            let epsilon = Epsilon::new(*epsilon).map_err(Error::from)?;
            let delta = Delta::new(*delta).map_err(Error::from)?;
            let mut ledger = Ledger::open_or_create(&ledger_path(ledger)?)?;
            let budget = ledger.set_budget(budget, epsilon, delta)?;
            settings.printer.result(&budget.to_json(), || {
                format!(
                    "budget {:?} in {}: everything ever charged to it stays within ε = {}, δ = {} (μ² = {:.6})\n",
                    budget.name,
                    ledger.path().display(),
                    epsilon.get(),
                    delta.get(),
                    budget.total.to_f64()
                )
            })
        }
        LedgerCommand::Show { ledger } => {
            let ledger = Ledger::open(&ledger_path(ledger)?)?;
            let (budgets, sessions, refusals) = (ledger.budgets()?, ledger.sessions()?, ledger.refusals()?);
            settings
                .printer
                .result(&ledger.to_json()?, || to_text(&budgets, &sessions) + &refusals_text(&refusals))
        }
        LedgerCommand::Export { ledger } => {
            let ledger = Ledger::open(&ledger_path(ledger)?)?;
            settings.printer.data(&(serde_json::to_string_pretty(&ledger.to_json()?)? + "\n"))
        }
    }
}

fn to_text(budgets: &[Budget], sessions: &[Session]) -> String {
    if budgets.is_empty() {
        return "no budget yet; set one with `potluck ledger init`\n".to_owned();
    }
    let mut text = String::new();
    for budget in budgets {
        let spent = Guarantee::of_budget(budget.spent, budget.delta);
        let share = 100.0 * budget.spent.to_f64() / budget.total.to_f64();
        let _ = writeln!(
            text,
            "{}: budget ε = {}, δ = {}; {share:.1}% of μ² spent, which is {} so far",
            budget.name,
            budget.epsilon,
            budget.delta,
            spent.in_numbers()
        );
        let rows: Vec<Vec<String>> = sessions
            .iter()
            .filter(|session| session.budget == budget.name && session.state != State::Void)
            .map(|session| {
                vec![
                    session.study_name.clone(),
                    session.party.clone(),
                    session.state.name().to_owned(),
                    format!("{:.6}", session.charge.to_f64()),
                    session.changed.clone(),
                    session
                        .content_hash
                        .as_deref()
                        .map_or("-".to_owned(), |hash| hash.chars().take(16).collect()),
                ]
            })
            .collect();
        if !rows.is_empty() {
            text.push_str(&table(&["study", "party", "state", "μ²", "changed (UTC)", "content"], &rows));
        }
    }
    text
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
