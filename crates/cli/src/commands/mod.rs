//! One module a command.

mod completions;
mod correlate;
mod data;
mod demo;
mod fit;
mod header;
mod hub;
mod ids;
mod inspect;
mod join;
mod key;
mod ledger;
mod manual;
mod party;
mod plan;
mod predict;
mod release;
mod simulate;
mod sql;
mod study;
mod sums;
mod validate;
mod verify;

use anyhow::Result;
use potluck_party::reading::ExtraColumns;
use potluck_party::{Access, Resources};
use potluck_release::files::Existing;

use crate::args::{Arguments, Command, Common};
use crate::output::Printer;

/// What every command needs.
pub(crate) struct Settings<'a> {
    printer: &'a Printer,
    existing: Existing,
    resources: Resources,
}

impl<'a> Settings<'a> {
    fn new(common: Common, printer: &'a Printer) -> Self {
        Self {
            printer,
            existing: if common.force { Existing::Replace } else { Existing::Keep },
            resources: Resources::new(common.threads, common.tmp_dir).with_memory(common.memory),
        }
    }

    /// How the command reads a party's table.
    fn access(&self, id_column: &str, ignore_extra: bool) -> Access {
        Access {
            id_column: id_column.to_owned(),
            extra_columns: ExtraColumns::ignored(ignore_extra),
            resources: self.resources.clone(),
        }
    }
}

pub(crate) fn run(arguments: Arguments, printer: &Printer) -> Result<()> {
    let settings = Settings::new(arguments.common, printer);
    match arguments.command {
        Command::Demo(arguments) => demo::run(&arguments, &settings),
        Command::Study(command) => study::run(&command, &settings),
        Command::Key(command) => key::run(&command, &settings),
        Command::Plan(arguments) => plan::run(&arguments, &settings),
        Command::Simulate(arguments) => simulate::run(&arguments, &settings),
        Command::Ids(arguments) => ids::run(&arguments, &settings),
        Command::Validate(arguments) => validate::run(&arguments, &settings),
        Command::Release(arguments) => release::run(&arguments, &settings),
        Command::Sql(arguments) => sql::run(&arguments, &settings),
        Command::Sums(arguments) => sums::run(&arguments, &settings),
        Command::Join(arguments) => join::run(&arguments, &settings),
        Command::Fit(arguments) => fit::run(&arguments, &settings),
        Command::Correlate(arguments) => correlate::run(&arguments, &settings),
        Command::Predict(arguments) => predict::run(&arguments, &settings),
        Command::Inspect(arguments) => inspect::run(&arguments, &settings),
        Command::Verify(arguments) => verify::run(&arguments, &settings),
        Command::Ledger(command) => ledger::run(&command, &settings),
        Command::Hub(command) => hub::run(command, &settings),
        Command::Party(command) => party::run(&command, &settings),
        Command::Completions { shell } => completions::run(shell, &settings),
        Command::Manual { folder } => manual::run(&folder, &settings),
    }
}
