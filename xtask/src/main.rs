//! Project chores: `cargo xtask test` runs everything that guards the project, `cargo xtask dist`
//! builds what would be published; one module a chore. Standard library only, so that it builds at
//! once.

mod checks;
mod dist;
mod packages;
mod programs;
mod python;

use std::env;
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

const HELP: &str = "\
cargo xtask test           format, lints, unit, property, doc, end-to-end, Python, R and browser tests; the wheel
cargo xtask python         the Python package alone, from its wheel
cargo xtask docs           build the API documentation
cargo xtask screenshots    take the pictures of the hub's pages that the README shows
cargo xtask dist           build what would be published, into target/dist, and try each in a clean place;
                           with --profile ci a quick trial, not to be published

Tests that need the public tables of docs/TUTORIAL.md look for them in the folder named by POTLUCK_DATA,
and say so when they skip.";

fn main() -> ExitCode {
    match env::args().nth(1).as_deref() {
        Some("test") => run(&[
            ("format", checks::format),
            ("lints", checks::lints),
            ("tests", checks::tests),
            ("documentation", checks::documentation),
            ("python", python::tests),
            ("python package", python::package),
        ]),
        Some("python") => run(&[("python package", python::package)]),
        Some("docs") => run(&[("documentation", checks::documentation)]),
        Some("screenshots") => run(&[("build", checks::build), ("screenshots", python::screenshots)]),
        Some("dist") => run(&dist::STEPS),
        _ => {
            eprintln!("{HELP}");
            ExitCode::from(2)
        }
    }
}

type Step = (&'static str, fn() -> Result<(), String>);

/// Runs the steps in order, stops at the first failure, and says what ran.
fn run(steps: &[Step]) -> ExitCode {
    let mut report = Vec::new();
    let mut failed = false;
    for (name, step) in steps {
        if failed {
            report.push(format!("  not run  {name}"));
            continue;
        }
        eprintln!("\n==> {name}");
        let start = Instant::now();
        let result = step();
        let seconds = start.elapsed().as_secs();
        match result {
            Ok(()) => report.push(format!("  ok       {name} ({seconds} s)")),
            Err(error) => {
                eprintln!("{error}");
                failed = true;
                report.push(format!("  FAILED   {name} ({seconds} s)"));
            }
        }
    }
    if env::args().nth(1).as_deref() != Some("dist") {
        report.push(public_tables());
    }
    eprintln!("\n{}", report.join("\n"));
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// Whether tests on public tables found them.
fn public_tables() -> String {
    match env::var_os("POTLUCK_DATA") {
        Some(folder) => format!("  public tables from {}", Path::new(&folder).display()),
        None => "  skipped  tests on public tables: POTLUCK_DATA is not set".to_owned(),
    }
}
