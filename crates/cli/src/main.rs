//! The `potluck` command: raw arguments become settings, settings go to one module a command.

mod args;
mod commands;
mod exit;
mod output;

use std::process::ExitCode;

use clap::Parser;

use args::Arguments;
use output::Printer;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let printer = Printer::new(arguments.common.json);
    match commands::run(arguments, &printer) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let code = exit::code(&error);
            printer.error(&error, code);
            ExitCode::from(code)
        }
    }
}
