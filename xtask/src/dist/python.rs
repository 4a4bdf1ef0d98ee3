//! The Python package as a wheel and as a source distribution.

use std::path::Path;

use super::{folder, fresh, only, profile, version};
use crate::programs::{call, call_in, root, target};
use crate::python::environment;

const MANIFEST: &str = "crates/python/Cargo.toml";

/// What builds wheels, as crates/python/pyproject.toml asks for it.
const MATURIN: &str = "maturin>=1.9.4,<2";

pub(super) fn build() -> Result<(), String> {
    let python = environment("venv-dist", &[])?;
    call(&python, &["-m", "pip", "install", "--quiet", MATURIN], &[])?;
    let out = folder();
    let out = out.to_string_lossy();
    let wheel = ["build", "--profile", &profile(), "--locked", "--manifest-path", MANIFEST, "--out", &out];
    call(&python, &[&["-m", "maturin"][..], &wheel].concat(), &[])?;
    call(&python, &["-m", "maturin", "sdist", "--manifest-path", MANIFEST, "--out", &out], &[])
}

pub(super) fn try_wheel() -> Result<(), String> {
    try_file("try-wheel", &only(&folder(), ".whl")?, &[])
}

/// Compiles it as everyone would who has no wheel; dependencies that were compiled before are used
/// again.
pub(super) fn try_source() -> Result<(), String> {
    let profile = format!("build-args=--profile {}", profile());
    try_file("try-source", &only(&folder(), &source_name())?, &["--config-settings", &profile])
}

fn source_name() -> String {
    format!("potluck-{}.tar.gz", version())
}

/// Installs a file into an environment that has nothing else, and tries it in an empty folder.
fn try_file(name: &str, file: &Path, options: &[&str]) -> Result<(), String> {
    let python = environment(name, &["--clear"])?;
    let compiled = target();
    let (compiled, file) = (compiled.to_string_lossy(), file.to_string_lossy());
    let install = [&["-m", "pip", "install", "--quiet"][..], options, &[&file]].concat();
    call(&python, &install, &[("CARGO_TARGET_DIR", &compiled)])?;
    let script = root().join("xtask/src/dist/try_package.py");
    call_in(&fresh(name)?, &python, &[&script.to_string_lossy()])
}
