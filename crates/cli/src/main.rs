//! The `potluck` command: raw arguments become settings, settings go to one module a command.

mod args;
mod commands;
mod exit;
mod interruption;
mod output;
mod parsing;
mod seclusion;

use std::process::ExitCode;

use potluck_release::guard;

use output::Printer;

fn main() -> ExitCode {
    // What a panic says may quote a value.
    guard::silence();
    seclusion::seclude();
    let arguments = parsing::parse();
    let printer = Printer::new(arguments.common.json);
    let result = guard::guarded(|| commands::run(arguments, &printer));
    match result.unwrap_or_else(|panicked| Err(panicked.into())) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let code = exit::code(&error);
            printer.error(&error, code);
            ExitCode::from(code)
        }
    }
}
