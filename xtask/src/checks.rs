//! What guards the source: format, lints, tests, documentation.

use std::fs;
use std::path::Path;

use crate::programs::{call, cargo, root};

pub(crate) fn format() -> Result<(), String> {
    cargo(&["fmt", "--all", "--check"])?;
    let mut wide = Vec::new();
    for folder in ["crates", "xtask"] {
        find_wide_comments(&root().join(folder), &mut wide)?;
    }
    if wide.is_empty() {
        Ok(())
    } else {
        Err(format!("wrap these comments at {COMMENT_WIDTH}:\n{}", wide.join("\n")))
    }
}

/// Comments are prose, which is read best in lines shorter than those of code.
const COMMENT_WIDTH: usize = 100;

/// Lines of Rust below a folder that hold only a comment and are too wide, unless one word makes
/// them so.
fn find_wide_comments(folder: &Path, wide: &mut Vec<String>) -> Result<(), String> {
    let unreadable = |error| format!("{} cannot be read: {error}", folder.display());
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if path.is_dir() {
            find_wide_comments(&path, wide)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).map_err(unreadable)?;
            let is_wide = |line: &str| line.chars().count() > COMMENT_WIDTH;
            for (at, line) in text.lines().enumerate() {
                let words = line.trim_start().trim_start_matches(['/', '!']).trim_start();
                let is_prose =
                    line.trim_start().starts_with("//") && words.contains(' ') && !words.starts_with('|');
                if is_prose && is_wide(line) {
                    wide.push(format!("  {}:{}", path.display(), at + 1));
                }
            }
        }
    }
    Ok(())
}

pub(crate) fn lints() -> Result<(), String> {
    cargo(&["clippy", "--workspace", "--all-targets", "--locked", "--profile", "ci", "--", "-D", "warnings"])
}

pub(crate) fn tests() -> Result<(), String> {
    cargo(&["test", "--workspace", "--locked", "--profile", "ci"])
}

pub(crate) fn documentation() -> Result<(), String> {
    // With the profile of the lints, whose metadata of all dependencies it can use.
    let arguments =
        ["doc", "--workspace", "--no-deps", "--locked", "--profile", "ci", "--document-private-items"];
    call("cargo", &arguments, &[("RUSTDOCFLAGS", "-D warnings")])
}

/// Everything, tests too: what is compiled here for the binary and the Python extension has the
/// features that the tests have compiled their dependencies with, so that each is compiled once.
pub(crate) fn build() -> Result<(), String> {
    cargo(&["build", "--workspace", "--lib", "--bins", "--tests", "--locked", "--profile", "ci"])
}
