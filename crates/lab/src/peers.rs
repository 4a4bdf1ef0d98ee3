//! Peers: other people's software that does the same job, in Python. The scripts are in
//! crates/lab/peers; what they need is installed into a virtual environment of the lab's own.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context, Result, anyhow, bail};
use serde_json::Value;

/// Where the virtual environment is.
const FOLDER: &str = "target/lab/peers";

/// What builds our own package.
const BUILDER: &str = "maturin==1.16.0";

/// What is installed there.
const REQUIREMENTS: &str = include_str!("../peers/requirements.txt");

/// A Python that has everything the peers need.
pub(crate) struct Environment {
    python: PathBuf,
}

impl Environment {
    /// Makes the environment, unless it is there already.
    pub(crate) fn prepare() -> Result<Self> {
        let python = std::path::absolute(Path::new(FOLDER).join("bin/python"))?;
        let stamp = Path::new(FOLDER).join("installed.txt");
        if !fs::read_to_string(&stamp).is_ok_and(|installed| installed == REQUIREMENTS) {
            eprintln!("installing the peers into {FOLDER}: {}", Self::packages().join(", "));
            call(Command::new("python3").args(["-m", "venv", "--clear", FOLDER])).context(
                "the peers need Python 3.11 or later with venv (apt-get install python3-venv); run without them: --no-peers",
            )?;
            let list = Path::new(FOLDER).join("requirements.txt");
            fs::write(&list, REQUIREMENTS)?;
            call(Command::new(&python).args(["-m", "pip", "install", "--quiet", "--requirement"]).arg(&list))
                .context("the peers are installed from the network once; run without them: --no-peers")?;
            fs::rename(&list, &stamp)?;
        }
        Ok(Self { python })
    }

    /// Builds the Python package from here, as the lab itself is built, and installs it beside the
    /// peers.
    pub(crate) fn install_potluck(&self) -> Result<()> {
        let wheels = Path::new(FOLDER).join("wheels");
        if wheels.exists() {
            fs::remove_dir_all(&wheels)?;
        }
        let pip = |arguments: &[&str]| {
            call(Command::new(&self.python).args(["-m", "pip", "install", "--quiet"]).args(arguments))
        };
        pip(&[BUILDER])?;
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../python/Cargo.toml");
        let build = ["-m", "maturin", "build", "--release", "--locked", "--quiet", "--manifest-path"];
        call(Command::new(&self.python).args(build).arg(manifest).arg("--out").arg(&wheels))?;
        let wheel = fs::read_dir(&wheels)?.next().context("maturin built no wheel")??.path();
        pip(&["--force-reinstall", "--no-deps", &wheel.to_string_lossy()])
    }

    /// Packages with their versions.
    pub(crate) fn packages() -> Vec<&'static str> {
        REQUIREMENTS.lines().filter(|line| !line.is_empty()).collect()
    }

    /// Starts a peer; it is ready when this returns.
    pub(crate) fn start(&self, script: &str, arguments: &Value, threads: NonZero<usize>) -> Result<Peer> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers").join(script);
        let mut command = Command::new(&self.python);
        command.arg(path).stdin(Stdio::piped()).stdout(Stdio::piped());
        for variable in ["OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"] {
            command.env(variable, threads.to_string());
        }
        let mut child = command.spawn().with_context(|| format!("cannot run {script}"))?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            bail!("{script} has no pipes");
        };
        let mut peer =
            Peer { script: script.to_owned(), child, input: Some(input), output: BufReader::new(output) };
        peer.ask(&arguments.to_string())?;
        Ok(peer)
    }
}

fn call(command: &mut Command) -> Result<()> {
    let shown = format!("{command:?}");
    let status = command.status().with_context(|| format!("cannot run {shown}"))?;
    if status.success() { Ok(()) } else { Err(anyhow!("failed: {shown}")) }
}

/// A peer that is kept between runs, so that it loads its libraries and its data once.
pub(crate) struct Peer {
    script: String,
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Peer {
    /// Does the job once; returns its seconds and whatever else the script reports.
    pub(crate) fn run(&mut self) -> Result<(f64, Value)> {
        let answer = self.ask("run")?;
        let seconds = answer["seconds"].as_f64().with_context(|| format!("{}: no seconds", self.script))?;
        Ok((seconds, answer))
    }

    /// Sends one line and reads one.
    fn ask(&mut self, question: &str) -> Result<Value> {
        if let Some(input) = &mut self.input {
            writeln!(input, "{question}").with_context(|| format!("{} has ended", self.script))?;
        }
        let mut line = String::new();
        if self.output.read_line(&mut line)? == 0 {
            bail!("{} failed; see its message above", self.script);
        }
        serde_json::from_str(&line)
            .with_context(|| format!("{} does not answer in JSON: {line}", self.script))
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // The script ends with its input.
        self.input = None;
        let _ = self.child.wait();
    }
}
