//! One module a command.

mod completions;
mod demo;
mod fit;
mod hub;
mod inspect;
mod join;
mod key;
mod ledger;
mod party;
mod plan;
mod predict;
mod release;
mod simulate;
mod study;
mod sums;
mod verify;

use std::env;
use std::num::NonZero;
use std::path::{Path, PathBuf};

use anyhow::Result;
use potluck_release::files::Existing;

use crate::args::{Arguments, Command, Common};
use crate::exit::WrongUsage;
use crate::output::Printer;

/// What every command needs.
pub(crate) struct Settings<'a> {
    printer: &'a Printer,
    existing: Existing,
    threads: NonZero<usize>,
    tmp: PathBuf,
}

impl<'a> Settings<'a> {
    fn new(common: &Common, printer: &'a Printer) -> Self {
        let cores = || std::thread::available_parallelism().unwrap_or(NonZero::<usize>::MIN);
        Self {
            printer,
            existing: if common.force { Existing::Replace } else { Existing::Keep },
            threads: common.threads.unwrap_or_else(cores),
            tmp: common.tmp_dir.clone().unwrap_or_else(env::temp_dir),
        }
    }
}

/// The folder for what the user's programs keep.
fn data_folder() -> Option<PathBuf> {
    let data = env::var_os("XDG_DATA_HOME").filter(|folder| !folder.is_empty()).map(PathBuf::from);
    data.or_else(|| env::var_os("HOME").map(|home| Path::new(&home).join(".local/share")))
}

/// Refuses to write over something that the command reads, even with --force.
fn refuse_same_file(out: &Path, inputs: &[&Path]) -> Result<()> {
    let Ok(out_file) = out.canonicalize() else { return Ok(()) };
    for input in inputs {
        if input.canonicalize().is_ok_and(|input| input == out_file) {
            let message = format!(
                "{} is needed and would be overwritten; choose another name for the output",
                out.display()
            );
            return Err(WrongUsage(message).into());
        }
    }
    Ok(())
}

pub(crate) fn run(arguments: Arguments, printer: &Printer) -> Result<()> {
    let settings = Settings::new(&arguments.common, printer);
    match arguments.command {
        Command::Demo(arguments) => demo::run(&arguments, &settings),
        Command::Study(command) => study::run(&command, &settings),
        Command::Key(command) => key::run(&command, &settings),
        Command::Plan(arguments) => plan::run(&arguments, &settings),
        Command::Simulate(arguments) => simulate::run(&arguments, &settings),
        Command::Release(arguments) => release::run(&arguments, &settings),
        Command::Sums(arguments) => sums::run(&arguments, &settings),
        Command::Join(arguments) => join::run(&arguments, &settings),
        Command::Fit(arguments) => fit::run(&arguments, &settings),
        Command::Predict(arguments) => predict::run(&arguments, &settings),
        Command::Inspect(arguments) => inspect::run(&arguments, &settings),
        Command::Verify(arguments) => verify::run(&arguments, &settings),
        Command::Ledger(command) => ledger::run(&command, &settings),
        Command::Hub(command) => hub::run(command, &settings),
        Command::Party(command) => party::run(&command, &settings),
        Command::Completions { shell } => completions::run(shell, &settings),
    }
}
