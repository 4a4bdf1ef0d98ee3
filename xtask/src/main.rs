//! Project chores: `cargo xtask test` runs everything that guards the project; `cargo xtask docs`
//! builds the documentation. Standard library only, so that it builds at once.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

const HELP: &str = "\
cargo xtask test           format, lints, unit, property, doc, end-to-end, Python and browser tests; the wheel
cargo xtask python         the Python package alone, from its wheel
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
            ("python package", package),
        ],
        Some("python") => &[("python package", package)],
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

fn lints() -> Result<(), String> {
    cargo(&["clippy", "--workspace", "--all-targets", "--locked", "--profile", "ci", "--", "-D", "warnings"])
}

fn tests() -> Result<(), String> {
    cargo(&["test", "--workspace", "--locked", "--profile", "ci"])
}

fn documentation() -> Result<(), String> {
    // With the profile of the lints, whose metadata of all dependencies it can use.
    let arguments =
        ["doc", "--workspace", "--no-deps", "--locked", "--profile", "ci", "--document-private-items"];
    call("cargo", &arguments, &[("RUSTDOCFLAGS", "-D warnings")])
}

/// Debian's packages of what tests run beside potluck, each with a program that shows that it is
/// there.
const PACKAGES: [(&str, &str); 3] = [
    ("postgresql", "ls /usr/lib/postgresql/*/bin/initdb"),
    ("default-jre-headless", "java -version"),
    ("chromium", "test -x /usr/bin/chromium"),
];

/// Installs the packages that are missing if we are root; says how to if not.
fn packages() -> Result<(), String> {
    let missing: Vec<&str> = PACKAGES
        .iter()
        .filter(|(_, check)| !succeeds("sh", &["-c", check]))
        .map(|(package, _)| *package)
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    let install = [&["install", "--yes", "--no-install-recommends"][..], &missing].concat();
    if !succeeds("sh", &["-c", "test $(id -u) -eq 0"]) {
        return Err(format!("tests beside other software need packages: sudo apt-get {}", install.join(" ")));
    }
    call("apt-get", &["update", "--quiet"], &[])?;
    call("apt-get", &install, &[("DEBIAN_FRONTEND", "noninteractive")])
}

/// Whether a command can be run and succeeds; what it prints is of no interest.
fn succeeds(program: &str, arguments: &[&str]) -> bool {
    let silent = Command::new(program).args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).status();
    silent.is_ok_and(|status| status.success())
}

/// Everything, tests too: what is compiled here for the binary and the Python extension has the
/// features that the tests have compiled their dependencies with, so that each is compiled once.
fn build() -> Result<(), String> {
    cargo(&["build", "--workspace", "--lib", "--bins", "--tests", "--locked", "--profile", "ci"])
}

/// Runs the real binary beside other people's software.
fn python() -> Result<(), String> {
    call(&tools()?, &["-m", "pytest", "--quiet", "tests/python"], &[("POTLUCK", &binary())])
}

/// Pictures of a hub with the demo's study.
fn screenshots() -> Result<(), String> {
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
fn package() -> Result<(), String> {
    build()?;
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
    packages()?;
    let python = environment("venv", &[])?;
    let requirements = ["-m", "pip", "install", "--quiet", "--requirement", "tests/python/requirements.txt"];
    call(&python, &requirements, &[])?;
    Ok(python)
}

/// The Python of a virtual environment under target/.
fn environment(name: &str, options: &[&str]) -> Result<String, String> {
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

fn target() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), |folder| root().join(folder))
}
