//! The command with its completions and manual pages, as archive and package hold it.

use std::fs;
use std::path::{Path, PathBuf};

use super::{copy, fresh, profile, workshop, write};
use crate::programs::{call_in, cargo, output, root, target};

/// Completions by shell, and where each looks for them below a prefix.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "share/bash-completion/completions/potluck"),
    ("zsh", "share/zsh/vendor-completions/_potluck"),
    ("fish", "share/fish/vendor_completions.d/potluck.fish"),
];

/// Documents that come with the command.
const DOCUMENTS: [&str; 7] = [
    "README.md",
    "CHANGELOG.md",
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "docs/HUB.md",
    "docs/TUTORIAL.md",
    "docs/PRIVACY.md",
];

/// What is installed below a prefix such as /usr.
pub(super) fn prefix() -> PathBuf {
    workshop().join("prefix")
}

pub(super) fn build() -> Result<(), String> {
    let profile = profile();
    cargo(&["build", "--package", "potluck", "--locked", "--profile", &profile])?;
    let prefix = fresh("prefix")?;
    let command = prefix.join("bin/potluck");
    copy(&target().join(profile).join("potluck"), &command)?;
    call_in(&prefix, "strip", &["bin/potluck"])?;

    let program = command.to_string_lossy();
    for (shell, path) in COMPLETIONS {
        write(&prefix.join(path), &output(&program, &["completions", shell], &prefix)?)?;
    }
    call_in(&prefix, &program, &["manual", "share/man/man1"])?;
    for document in DOCUMENTS {
        let name = Path::new(document).file_name().expect("a document has a name");
        copy(&root().join(document), &prefix.join("share/doc/potluck").join(name))?;
    }
    Ok(())
}

/// Tries the command of an installation, as `sh` would find it, in an empty folder with nothing in
/// the environment. `enter` is what comes before the shell, to enter another root; `place` is where
/// the folder is seen from there.
pub(super) fn try_in(enter: &[&str], folder: &Path, place: &str, path: &str) -> Result<(), String> {
    copy(&root().join("xtask/src/dist/try_command.sh"), &folder.join("try_command.sh"))?;
    fs::create_dir_all(folder.join("empty")).map_err(|error| format!("{}: {error}", folder.display()))?;
    let line = format!("cd {place}/empty && sh ../try_command.sh");
    let path = format!("PATH={path}:/usr/bin:/bin");
    let home = format!("HOME={place}/empty");
    let shell = ["env", "--ignore-environment", &path, &home, "sh", "-c", &line];
    let all = [enter, &shell[..]].concat();
    call_in(folder, all[0], &all[1..])
}
