//! The crates: a rehearsal of `cargo publish`.

use super::fresh;
use crate::programs::{call_in, root};

/// Crates that are for the project alone, or that are published as something else.
const KEPT: [&str; 4] = ["potluck-fixtures", "potluck-lab", "potluck-python", "xtask"];

/// Rehearses publishing in a copy of the last commit in which publishing is allowed: the workspace
/// forbids it until its owners decide otherwise.
pub(super) fn build() -> Result<(), String> {
    let place = fresh("crates")?;
    let seen = place.to_string_lossy();
    let copy = format!("git archive HEAD | tar --extract --directory '{seen}'");
    call_in(&root(), "sh", &["-c", &copy])?;
    call_in(&place, "sed", &["--in-place", "/^publish = false$/d", "Cargo.toml"])?;
    call_in(
        &place,
        "sh",
        &["-c", "sed --in-place '/^publish.workspace = true$/d' crates/*/Cargo.toml xtask/Cargo.toml"],
    )?;
    let kept: Vec<&str> = KEPT.iter().flat_map(|name| ["--exclude", name]).collect();
    // What is in them was compiled before, from the same commit.
    let options = ["--workspace", "--locked", "--no-verify", "--dry-run", "--allow-dirty"];
    call_in(&place, "cargo", &[&["publish"][..], &options, &kept].concat())
}
