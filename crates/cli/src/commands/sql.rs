//! `potluck sql`, and what `potluck release` does with the results of its queries.

use std::path::{Path, PathBuf};

use anyhow::Result;
use potluck_party::order::{Agreed, Prepared};
use potluck_party::sql::{Description, Fed, Query, Remembered, Results, Source, StagedRelease};
use potluck_party::{Ledger, LostValues};
use potluck_release::Study;
use potluck_release::files::{Existing, is_same_file};
use serde_json::json;

use super::Settings;
use super::release::{ask, ledger_path, order, report};
use crate::args::{LedgerArguments, Release, Sql};
use crate::exit::WrongUsage;
use crate::output::counted;

pub(super) fn run(arguments: &Sql, settings: &Settings<'_>) -> Result<()> {
    let study = Study::load(&arguments.party.study)?;
    let party = study.own_party(&arguments.party.name)?.name();
    let known = Remembered::load(&study, party, &arguments.state)?;
    let source = source(arguments, &study, party, known.as_ref())?;
    let path = same_ledger(&arguments.charged.ledger, known.as_ref(), settings)?;
    let ledger = Ledger::open(&path)?;
    let budget = same_budget(arguments.charged.budget.as_deref(), known.as_ref(), settings)?;
    let budget = ledger.choose_budget(budget.as_deref())?;
    let lost_values = LostValues::Refuse; // decided when a result is taken
    let staged = StagedRelease { study: &study, party, budget: &budget, source: &source, lost_values };
    let begun = staged.stored_stages(&ledger)? > 0;
    if begun && known.is_some_and(|known| known.source != source) && settings.existing == Existing::Keep {
        return Err(WrongUsage(
            "earlier stages of this release came from another table; all stages need the same rows: leave --table and --dialect out, or pass --force if it is the same table under another name"
                .to_owned(),
        )
        .into());
    }
    let query = staged.next_query(&ledger)?;
    let remembered =
        Remembered { source: source.clone(), ledger: std::path::absolute(path)?, budget: budget.clone() };
    remembered.save(&study, party, &arguments.state)?;
    print(arguments, party, query.as_ref(), settings)
}

/// Where the party's table is: as it was said now, or before.
fn source(arguments: &Sql, study: &Study, party: &str, known: Option<&Remembered>) -> Result<Source> {
    let (Some(table), Some(dialect)) = (&arguments.table, arguments.dialect) else {
        return known.map(|known| known.source.clone()).ok_or_else(|| {
            WrongUsage(format!(
                "{} does not know where the table of {party} is; say it with --table and --dialect",
                arguments.state.display()
            ))
            .into()
        });
    };
    let description = Description {
        dialect: dialect.into(),
        table: table.clone(),
        id: arguments.id.clone(),
        booleans: arguments.boolean.clone(),
        dates: arguments.date.clone(),
    };
    Ok(Source::new(study, party, description)?)
}

/// Prints the query of the next stage; nothing if every stage is stored.
fn print(arguments: &Sql, party: &str, query: Option<&Query>, settings: &Settings<'_>) -> Result<()> {
    let release = format!(
        "potluck release {} --party {party} --state {} --out FILE",
        arguments.party.study.display(),
        arguments.state.display()
    );
    let Some(query) = query else {
        settings.printer.note(&format!("every stage is stored; write the release with\n  {release}"));
        return settings.printer.result(&json!({ "query": null, "next": release }), String::new);
    };
    let release = format!("{release} --sums RESULT");
    settings.printer.note(&format!(
        "stage {} ({}): run the query, save its result as CSV with a header line or as Parquet, and keep it private; then\n  {release}",
        query.position + 1,
        query.stage
    ));
    let value = json!({
        "stage": query.stage,
        "position": query.position,
        "fingerprint": query.fingerprint,
        "query": query.text,
        "next": release,
    });
    settings.printer.result(&value, || format!("{};\n", query.text))
}

/// Takes the result of a query, if there is one, and writes the release if it was the last.
pub(super) fn take_sums(arguments: &Release, state: &Path, settings: &Settings<'_>) -> Result<()> {
    let (study, party) = (Study::load(&arguments.party.study)?, arguments.party.name.as_str());
    study.own_party(party)?;
    let remembered = Remembered::load(&study, party, state)?.ok_or_else(|| {
        WrongUsage(format!(
            "{} knows of no query for {party} under this study; print one with `potluck sql`",
            state.display()
        ))
    })?;
    let ledger = same_ledger(&arguments.charged.ledger, Some(&remembered), settings)?;
    let budget = same_budget(arguments.charged.budget.as_deref(), Some(&remembered), settings)?;
    let prepared = order(arguments, study, ledger, budget, settings).prepare()?;
    let source = &remembered.source;
    let agreed = match (&arguments.sums, prepared) {
        (Some(results), prepared) => feed(arguments, prepared, source, results, settings)?,
        (None, Prepared::Repeated(agreed) | Prepared::Begun(agreed)) => agreed,
        (None, Prepared::New(question)) => {
            return name_next(arguments, state, &question.first_query(source)?, settings);
        }
    };
    match agreed.next_query(source)? {
        None => report(&agreed.finish(source)?, settings.printer),
        Some(next) => name_next(arguments, state, &next, settings),
    }
}

/// Asks if the release is new, and takes the result of a query.
fn feed(
    arguments: &Release,
    prepared: Prepared,
    source: &Source,
    results: &Path,
    settings: &Settings<'_>,
) -> Result<Agreed> {
    let results = Results::read(results, &settings.resources.tmp)?;
    let agreed = prepared.confirm(|question| ask(question, arguments.yes, settings.printer))?;
    if agreed.feed(source, &results)? == Fed::Known {
        settings.printer.note("this result was taken before; its noise is drawn and stored");
    }
    Ok(agreed)
}

/// Says which stage is next.
fn name_next(arguments: &Release, state: &Path, next: &Query, settings: &Settings<'_>) -> Result<()> {
    let command = format!(
        "potluck sql {} --party {} --state {}",
        arguments.party.study.display(),
        arguments.party.name,
        state.display()
    );
    // Stages are stored in their order.
    let stored = next.position;
    let value = json!({ "stored_stages": stored, "next_stage": next.stage, "next": command });
    settings.printer.result(&value, || {
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

/// The ledger of a release: the one that its earlier steps had, if there were any.
fn same_ledger(
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

/// The budget that a release is charged to, if that was said: now, or at one of its earlier steps.
fn same_budget(
    named: Option<&str>,
    remembered: Option<&Remembered>,
    settings: &Settings<'_>,
) -> Result<Option<String>> {
    let known = remembered.map(|remembered| remembered.budget.as_str());
    let budget = named.or(known);
    match known.filter(|known| Some(*known) != budget && settings.existing == Existing::Keep) {
        Some(known) => Err(WrongUsage(format!(
            "earlier steps of this release were for the budget of {known:?}; leave the other one out, or pass --force if nothing came of them"
        ))
        .into()),
        None => Ok(budget.map(str::to_owned)),
    }
}
