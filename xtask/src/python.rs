//! Tests in Python, of the command beside other people's software and of the Python package.

use std::fs;
use std::path::PathBuf;

use crate::packages::{OF_TESTS, provide};
use crate::programs::{call, target};

/// Runs the real binary beside other people's software, R among it.
pub(crate) fn tests() -> Result<(), String> {
    call(&tools()?, &["-m", "pytest", "--quiet", "tests/python"], &[("POTLUCK", &binary())])
}

/// Pictures of a hub with the demo's study.
pub(crate) fn screenshots() -> Result<(), String> {
    call(&tools()?, &["tests/python/screenshots.py", "docs/images"], &[("POTLUCK", &binary())])
}

/// Builds the wheel once, installs it into an environment that has nothing else, and tests it
/// there.
pub(crate) fn package() -> Result<(), String> {
    let wheels = target().join("wheels");
    // Wheels of earlier versions are not what is tested.
    let _ = fs::remove_dir_all(&wheels);
    let out = wheels.to_string_lossy();
    let manifest = "crates/python/Cargo.toml";
    let build =
        ["-m", "maturin", "build", "--profile", "ci", "--locked", "--manifest-path", manifest, "--out", &out];
    call(&tools()?, &build, &[])?;
    let built = fs::read_dir(&wheels).map_err(|error| format!("there is no wheel: {error}"))?;
    let built: Vec<PathBuf> = built.filter_map(Result::ok).map(|entry| entry.path()).collect();
    let [wheel] = built.as_slice() else {
        return Err(format!("one wheel was expected, not {}", built.len()));
    };

    let python = environment("venv-package", &["--clear"])?;
    let install = ["-m", "pip", "install", "--quiet"];
    call(&python, &[&install[..], &[&wheel.to_string_lossy()]].concat(), &[])?;
    call(&python, &["-c", "import potluck; print('potluck', potluck.__version__)"], &[])?;
    call(&python, &[&install[..], &["--requirement", "crates/python/tests/requirements.txt"]].concat(), &[])?;
    call(&python, &["-m", "pytest", "--quiet", "crates/python/tests"], &[("POTLUCK", &binary())])
}

/// The Python of an environment that has what tests of the binary and the building of wheels need,
/// beside the packages of the system that tests use.
fn tools() -> Result<String, String> {
    provide(&OF_TESTS)?;
    let python = environment("venv", &[])?;
    let requirements = ["-m", "pip", "install", "--quiet", "--requirement", "tests/python/requirements.txt"];
    call(&python, &requirements, &[])?;
    Ok(python)
}

/// The Python of a virtual environment under target/.
pub(crate) fn environment(name: &str, options: &[&str]) -> Result<String, String> {
    let folder = target().join(name);
    let python = folder.join("bin/python");
    if !options.is_empty() || !python.exists() {
        let folder = folder.to_string_lossy();
        call("python3", &[&["-m", "venv"], options, &[&folder]].concat(), &[])
            .map_err(|error| format!("{error}\ninstall Python with venv: apt-get install python3-venv"))?;
    }
    Ok(python.to_string_lossy().into_owned())
}

/// The command, as the tests have built it.
fn binary() -> String {
    target().join("ci/potluck").to_string_lossy().into_owned()
}
