//! `cargo xtask dist`: what a project would publish, built into target/dist, and each installed
//! into a clean place and tried there.

mod archive;
mod bill;
mod command;
mod crates;
mod debian;
mod python;
mod r;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use crate::Step;
use crate::packages::{OF_DIST, provide};
use crate::programs::{call_in, output, root, target};

/// What is built, and then what is tried, in order.
pub(crate) const STEPS: [Step; 14] = [
    ("clean folder", clean),
    ("command, completions and manual pages", command::build),
    ("archive", archive::build),
    ("Debian package", debian::build),
    ("wheel and source distribution", python::build),
    ("R package", r::build),
    ("crates", crates::build),
    ("bills of materials", bill::write),
    ("checksums", checksums),
    ("try the archive", archive::try_it),
    ("try the Debian package", debian::try_it),
    ("try the R package", r::try_it),
    ("try the wheel", python::try_wheel),
    ("try the source distribution", python::try_source),
];

/// Where everything goes that would be published.
fn folder() -> PathBuf {
    target().join("dist")
}

/// Where it is put together and tried.
fn workshop() -> PathBuf {
    target().join("dist-work")
}

/// An empty folder of this name in the workshop.
fn fresh(name: &str) -> Result<PathBuf, String> {
    let path = workshop().join(name);
    if path.exists() {
        fs::remove_dir_all(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    fs::create_dir_all(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(path)
}

fn clean() -> Result<(), String> {
    provide(&OF_DIST)?;
    let _ = fs::remove_dir_all(folder());
    fs::create_dir_all(folder()).map_err(|error| format!("{}: {error}", folder().display()))
}

/// The profile to build with: `release`, unless a quick trial asks for another.
fn profile() -> String {
    let mut arguments = env::args().skip_while(|argument| argument != "--profile");
    arguments.nth(1).unwrap_or_else(|| "release".to_owned())
}

/// The workspace's version.
fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

/// The platform that is built for, as Rust calls it.
fn host() -> Result<String, String> {
    let told = output("rustc", &["-vV"], &root())?;
    let line = told.lines().find_map(|line| line.strip_prefix("host: "));
    line.map(str::to_owned).ok_or_else(|| "rustc does not say what it builds for".to_owned())
}

/// The time of the last commit, in seconds: what is built twice from it carries the same times.
fn commit_time() -> Result<String, String> {
    Ok(output("git", &["log", "-1", "--format=%ct"], &root())?.trim().to_owned())
}

fn copy(from: &Path, to: &Path) -> Result<(), String> {
    let failed = |error| format!("{} to {}: {error}", from.display(), to.display());
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder).map_err(failed)?;
    }
    fs::copy(from, to).map(|_| ()).map_err(failed)
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    let failed = |error| format!("{}: {error}", path.display());
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(failed)?;
    }
    fs::write(path, text).map_err(failed)
}

/// The file in a folder whose name ends like this; there must be one.
fn only(folder: &Path, end: &str) -> Result<PathBuf, String> {
    let files = names(folder)?.into_iter().filter(|name| name.ends_with(end)).collect::<Vec<_>>();
    match files.as_slice() {
        [one] => Ok(folder.join(one)),
        other => Err(format!("one file *{end} was expected in {}, not {}", folder.display(), other.len())),
    }
}

/// The names in a folder, sorted.
fn names(folder: &Path) -> Result<Vec<String>, String> {
    let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let name = |entry: fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
    let mut names: Vec<String> = entries.filter_map(Result::ok).map(name).collect();
    names.sort();
    Ok(names)
}

fn checksums() -> Result<(), String> {
    let files = names(&folder())?;
    let arguments: Vec<&str> = files.iter().map(String::as_str).collect();
    let sums = output("sha256sum", &arguments, &folder())?;
    write(&folder().join("SHA256SUMS"), &sums)?;
    call_in(&folder(), "sha256sum", &["--check", "--quiet", "SHA256SUMS"])?;
    call_in(&folder(), "ls", &["-l", "--human-readable"])
}
