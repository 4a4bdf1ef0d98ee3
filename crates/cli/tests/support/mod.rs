//! Runs the real `potluck` binary in a folder of its own.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::LazyLock;

use potluck_fixtures::clinics;
use serde_json::Value;
use tempfile::TempDir;

/// A folder with a sealed study, tables of two parties and a ledger with a budget for one release
/// each.
pub struct Workplace {
    folder: TempDir,
}

pub const ROWS: usize = 40;

pub static STUDY: LazyLock<String> = LazyLock::new(|| clinics("test", ROWS as u64).to_string());

pub fn north_csv() -> String {
    potluck_fixtures::north_csv(ROWS)
}

pub fn south_csv() -> String {
    potluck_fixtures::south_csv(ROWS)
}

/// What a command did.
pub struct Outcome {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Outcome {
    pub fn new(output: &Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    #[track_caller]
    pub fn ok(self) -> Self {
        assert_eq!(self.code, 0, "stdout: {}\nstderr: {}", self.stdout, self.stderr);
        self
    }

    #[track_caller]
    pub fn json(self) -> Value {
        serde_json::from_str(&self.ok().stdout).unwrap()
    }

    /// The command failed with this code and said all of these.
    #[track_caller]
    pub fn refused(&self, code: i32, words: &[&str]) {
        assert_eq!(self.code, code, "stdout: {}\nstderr: {}", self.stdout, self.stderr);
        for word in words {
            assert!(self.stderr.contains(word), "no {word:?} in: {}", self.stderr);
        }
        assert!(self.stdout.is_empty(), "a failed command printed data: {}", self.stdout);
    }
}

impl Workplace {
    /// A folder with everything ready to release.
    pub fn new() -> Self {
        Self::with_study(&STUDY)
    }

    /// The same with another study of the same parties.
    pub fn with_study(text: &str) -> Self {
        let place = Self::empty();
        place.write("study.toml", text);
        place.run(&["study", "seal", "study.toml"]).ok();
        place.write("north.csv", north_csv());
        place.write("south.csv", south_csv());
        place.run(&["ledger", "init", "--budget", "people", "--epsilon", "1", "--delta", "1e-5"]).ok();
        place
    }

    pub fn empty() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::write(self.path(name), content).unwrap();
    }

    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_potluck"));
        command
            .args(arguments)
            .current_dir(self.folder.path())
            .env("POTLUCK_LEDGER", self.path("ledger.sqlite"))
            .stdin(Stdio::null());
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Outcome {
        Outcome::new(&self.command(arguments).output().unwrap())
    }

    /// Runs a command line whose words hold no spaces.
    pub fn line(&self, line: &str) -> Outcome {
        self.run(&line.split_whitespace().collect::<Vec<_>>())
    }

    pub fn run_with_input(&self, arguments: &[&str], input: &str) -> Outcome {
        self.write("input", input);
        let input = fs::File::open(self.path("input")).unwrap();
        Outcome::new(&self.command(arguments).stdin(input).output().unwrap())
    }

    /// `release` of the north, with more arguments.
    pub fn release_north(&self, more: &[&str]) -> Outcome {
        let mut arguments = vec![
            "release",
            "study.toml",
            "--party",
            "north",
            "--out",
            "north.release.parquet",
            "--yes",
            "--accept-low-accuracy",
        ];
        if !more.contains(&"--data") {
            arguments.extend(["--data", "north.csv"]);
        }
        arguments.extend(more);
        self.run(&arguments)
    }

    /// μ² spent, in exact units.
    pub fn spent(&self) -> u128 {
        let ledger = self.run(&["ledger", "show", "--json"]).json();
        ledger["budgets"][0]["spent"].as_str().unwrap().parse().unwrap()
    }

    /// Nothing was published and nothing was charged.
    #[track_caller]
    pub fn assert_untouched(&self) {
        assert!(!self.path("north.release.parquet").exists(), "a file was written");
        assert_eq!(self.spent(), 0, "the budget was charged");
        let left = fs::read_dir(self.folder()).unwrap().filter_map(Result::ok).map(|entry| entry.file_name());
        let partial: Vec<_> = left.filter(|name| name.to_string_lossy().contains("partial")).collect();
        assert!(partial.is_empty(), "temporary files stayed: {partial:?}");
    }
}
