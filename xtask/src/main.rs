//! Project chores: `cargo xtask test` runs everything that guards the project; `cargo xtask docs` builds the
//! documentation. Standard library only, so that it builds at once.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

const HELP: &str = "\
cargo xtask test           format, lints, unit, property, doc, end-to-end, Python and browser tests
cargo xtask docs           build the API documentation
cargo xtask screenshots    take the pictures of the hub's pages that the README shows

Tests that need the public tables of docs/TUTORIAL.md look for them in the folder named by POTLUCK_DATA,
and say so when they skip.";

fn main() -> ExitCode {
    let steps: &[Step] = match env::args().nth(1).as_deref() {
        Some("test") => &[
            ("format", format),
            ("lints", lints),
            ("tests", tests),
            ("documentation", documentation),
            ("python", python),
        ],
        Some("docs") => &[("documentation", documentation)],
        Some("screenshots") => &[("build", build), ("screenshots", screenshots)],
        _ => {
            eprintln!("{HELP}");
            return ExitCode::from(2);
        }
    };
    run(steps)
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
    match env::var_os("POTLUCK_DATA") {
        Some(folder) => report.push(format!("  public tables from {}", Path::new(&folder).display())),
        None => report.push("  skipped  tests on public tables: POTLUCK_DATA is not set".to_owned()),
    }
    eprintln!("\n{}", report.join("\n"));
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn root() -> PathBuf {
    let manifest = env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| PathBuf::from("xtask"), PathBuf::from);
    manifest.parent().map_or_else(|| PathBuf::from("."), Path::to_path_buf)
}

fn call(program: &str, arguments: &[&str], variables: &[(&str, &str)]) -> Result<(), String> {
    let shown = format!("{program} {}", arguments.join(" "));
    eprintln!("$ {shown}");
    let status = Command::new(program)
        .args(arguments)
        .envs(variables.iter().copied())
        .current_dir(root())
        .status()
        .map_err(|error| format!("cannot run {program}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("failed: {shown}")) }
}

fn cargo(arguments: &[&str]) -> Result<(), String> {
    call("cargo", arguments, &[])
}

fn format() -> Result<(), String> {
    cargo(&["fmt", "--all", "--check"])
}

fn lints() -> Result<(), String> {
    cargo(&["clippy", "--workspace", "--all-targets", "--locked", "--profile", "ci", "--", "-D", "warnings"])
}

fn tests() -> Result<(), String> {
    cargo(&["test", "--workspace", "--locked", "--profile", "ci"])
}

fn documentation() -> Result<(), String> {
    let arguments = ["doc", "--workspace", "--no-deps", "--locked", "--document-private-items"];
    call("cargo", &arguments, &[("RUSTDOCFLAGS", "-D warnings")])
}

fn build() -> Result<(), String> {
    cargo(&["build", "--workspace", "--locked", "--profile", "ci"])
}

/// Python tests run the real binary beside other people's software.
fn python() -> Result<(), String> {
    in_python(&["-m", "pytest", "--quiet", "tests/python"])
}

/// Pictures of a hub with the demo's study.
fn screenshots() -> Result<(), String> {
    in_python(&["tests/python/screenshots.py", "docs/images"])
}

/// Runs Python with what its programs here need, in a virtual environment under target/.
fn in_python(arguments: &[&str]) -> Result<(), String> {
    chromium()?;
    let target = target();
    let environment = target.join("venv");
    let python = environment.join("bin/python");
    if !python.exists() {
        let environment = environment.to_string_lossy();
        call("python3", &["-m", "venv", &environment], &[])
            .map_err(|error| format!("{error}\ninstall Python with venv: apt-get install python3-venv"))?;
    }
    let python = python.to_string_lossy();
    call(
        &python,
        &["-m", "pip", "install", "--quiet", "--requirement", "tests/python/requirements.txt"],
        &[],
    )?;
    let binary = target.join("ci/potluck");
    let binary = binary.to_string_lossy();
    call(&python, arguments, &[("POTLUCK", &binary)])
}

/// The browser that tests drive: Debian's, installed if we may.
fn chromium() -> Result<(), String> {
    const INSTALL: [&str; 4] = ["install", "--yes", "--no-install-recommends", "chromium"];
    if Path::new("/usr/bin/chromium").exists() {
        return Ok(());
    }
    let is_root =
        Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout.trim_ascii() == b"0");
    if !is_root {
        return Err(format!("the browser tests need Chromium: run `sudo apt-get {}`", INSTALL.join(" ")));
    }
    call("apt-get", &["update", "--quiet"], &[])?;
    call("apt-get", &INSTALL, &[("DEBIAN_FRONTEND", "noninteractive")])
}

fn target() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), |folder| root().join(folder))
}
