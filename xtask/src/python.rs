//! Tests in Python, of the command beside other people's software and of the Python package.

use std::env;
use std::fs;
use std::path::PathBuf;

use crate::checks;
use crate::packages::{OF_TESTS, provide};
use crate::programs::{call, root, target};

/// Runs the real binary beside other people's software, R among it.
pub(crate) fn tests() -> Result<(), String> {
    call(&tools()?, &["-m", "pytest", "--quiet", "tests/python"], &[("POTLUCK", &binary())])
}

/// Pictures of a hub with the demo's study.
pub(crate) fn screenshots() -> Result<(), String> {
    call(&tools()?, &["tests/python/screenshots.py", "docs/images"], &[("POTLUCK", &binary())])
}

/// Packs the extension that the workspace has built into a wheel. `maturin build` would compile it
/// and all it depends on again, with other features and another Python; the wheel's metadata are
/// maturin's.
fn wheel(python: &str) -> Result<PathBuf, String> {
    let wheels = target().join("wheels");
    // Wheels of earlier versions are not what is tested.
    let _ = fs::remove_dir_all(&wheels);
    let (unpacked, packed) = (wheels.join("unpacked"), wheels.join("packed"));
    let module = unpacked.join("potluck");
    let made = |error| format!("the wheel cannot be made: {error}");
    fs::create_dir_all(&module).map_err(made)?;
    fs::create_dir_all(&packed).map_err(made)?;
    for entry in fs::read_dir(root().join("crates/python/python/potluck")).map_err(made)? {
        let path = entry.map_err(made)?.path();
        if let (true, Some(name)) = (path.is_file(), path.file_name()) {
            fs::copy(&path, module.join(name)).map_err(made)?;
        }
    }
    let (prefix, suffix) = (env::consts::DLL_PREFIX, env::consts::DLL_SUFFIX);
    let built = target().join(format!("ci/{prefix}_potluck{suffix}"));
    fs::copy(built, module.join("_potluck.abi3.so")).map_err(made)?;
    let (unpacked, packed) = (unpacked.to_string_lossy(), packed.to_string_lossy());
    let describe =
        ["-m", "maturin", "pep517", "write-dist-info", "--manifest-path", "crates/python/Cargo.toml"];
    let describe = [&describe[..], &["--interpreter", python, "--metadata-directory", &unpacked]].concat();
    call(python, &describe, &[])?;
    call(python, &["-m", "wheel", "pack", &unpacked, "--dest-dir", &packed], &[])?;
    let built = fs::read_dir(&*packed).map_err(made)?;
    let built: Vec<PathBuf> = built.filter_map(Result::ok).map(|entry| entry.path()).collect();
    match <[PathBuf; 1]>::try_from(built) {
        Ok([wheel]) => Ok(wheel),
        Err(built) => Err(format!("one wheel was expected, not {}", built.len())),
    }
}

/// Installs the wheel into an environment that has nothing else, and tests it there.
pub(crate) fn package() -> Result<(), String> {
    checks::build()?;
    let wheel = wheel(&tools()?)?;
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
