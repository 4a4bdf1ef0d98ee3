//! `potluck sql`.

use anyhow::Result;
use potluck_party::Ledger;
use potluck_party::sql::{Description, Remembered, Source, StagedRelease};
use potluck_release::Study;
use potluck_release::files::Existing;
use serde_json::json;

use super::Settings;
use super::release::{staged_budget, staged_ledger};
use crate::args::Sql;
use crate::exit::WrongUsage;

pub(super) fn run(arguments: &Sql, settings: &Settings<'_>) -> Result<()> {
    let study = Study::load(&arguments.party.study)?;
    let party = study.own_party(&arguments.party.name)?.name();
    let known = Remembered::load(&study, party, &arguments.state)?;
    let source = match (&arguments.table, arguments.dialect) {
        (Some(table), Some(dialect)) => Source::new(
            &study,
            party,
            Description {
                dialect: dialect.into(),
                table: table.clone(),
                id: arguments.id.clone(),
                booleans: arguments.boolean.clone(),
                dates: arguments.date.clone(),
            },
        )?,
        _ => known.as_ref().map(|known| known.source.clone()).ok_or_else(|| {
            WrongUsage(format!(
                "{} does not know where the table of {party} is; say it with --table and --dialect",
                arguments.state.display()
            ))
        })?,
    };
    let path = staged_ledger(&arguments.ledger, known.as_ref(), settings)?;
    let ledger = Ledger::open(&path)?;
    let budget = staged_budget(&ledger, arguments.budget.as_deref(), known.as_ref(), settings)?;
    let staged = StagedRelease { study: &study, party, budget: &budget, source: &source };
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
