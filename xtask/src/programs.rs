//! Running programs from the root of the repository, and where what they make goes.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

pub(crate) fn root() -> PathBuf {
    let manifest = env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| PathBuf::from("xtask"), PathBuf::from);
    manifest.parent().map_or_else(|| PathBuf::from("."), Path::to_path_buf)
}

/// Runs a program in the root, with these variables set.
pub(crate) fn call(program: &str, arguments: &[&str], variables: &[(&str, &str)]) -> Result<(), String> {
    let mut command = Command::new(program);
    command.args(arguments).envs(variables.iter().copied()).current_dir(root());
    shown(program, arguments, &mut command)
}

/// Runs a program in a folder.
pub(crate) fn call_in(folder: &Path, program: &str, arguments: &[&str]) -> Result<(), String> {
    shown(program, arguments, Command::new(program).args(arguments).current_dir(folder))
}

fn shown(program: &str, arguments: &[&str], command: &mut Command) -> Result<(), String> {
    let line = format!("{program} {}", arguments.join(" "));
    eprintln!("$ {line}");
    let status = command.status().map_err(|error| format!("cannot run {program}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("failed: {line}")) }
}

/// What a program prints, run in a folder.
pub(crate) fn output(program: &str, arguments: &[&str], folder: &Path) -> Result<String, String> {
    let line = format!("{program} {}", arguments.join(" "));
    let run = Command::new(program).args(arguments).current_dir(folder).stderr(Stdio::inherit()).output();
    let run = run.map_err(|error| format!("cannot run {program}: {error}"))?;
    if !run.status.success() {
        return Err(format!("failed: {line}"));
    }
    String::from_utf8(run.stdout).map_err(|_| format!("{line} prints what is no text"))
}

pub(crate) fn cargo(arguments: &[&str]) -> Result<(), String> {
    call("cargo", arguments, &[])
}

/// Whether a command can be run and succeeds; what it prints is of no interest.
pub(crate) fn succeeds(program: &str, arguments: &[&str]) -> bool {
    let silent = Command::new(program).args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).status();
    silent.is_ok_and(|status| status.success())
}

pub(crate) fn target() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), |folder| root().join(folder))
}
