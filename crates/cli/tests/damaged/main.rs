//! Damaged files of every kind: a documented exit code, bounded memory, and no word of what is in
//! them.
//!
//! `POTLUCK_MUTATIONS` sets how many damaged files the command is given; the code that reads is
//! given ten times as many.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, unreachable_pub)]

mod mutate;
mod seeds;
#[path = "../support/mod.rs"]
mod support;

use std::num::NonZero;
use std::path::Path;
use std::process::{Command, Stdio};

use mutate::{Dice, damaged};
use potluck_party::Table;
use potluck_release::events::EventLog;
use potluck_release::guard::guarded;
use potluck_release::{AnyStudy, Model, PublicDataset, Release};
use rustix::process::{Resource, Rlimit, setrlimit};
use seeds::{FILE, Kind, SECRETS, Seed};
use support::{Outcome, Workplace};

/// Address space that the command may use, in KiB; and seconds of a processor, so that nothing can
/// hang.
const MEMORY: usize = 1 << 20;
const PROCESSOR: usize = 60;

/// Runs a command that reads the file "damaged".
fn run(place: &Workplace, command: &[&str]) -> Outcome {
    let line = format!("ulimit -v {MEMORY} && ulimit -t {PROCESSOR} && exec \"$0\" --threads 2 \"$@\"");
    let output = Command::new("sh")
        .args(["-c", &line, env!("CARGO_BIN_EXE_potluck")])
        .args(command.iter().map(|&word| if word == FILE { "damaged" } else { word }))
        .current_dir(place.folder())
        .env("POTLUCK_LEDGER", place.path("ledger.sqlite"))
        .env("RUST_BACKTRACE", "full")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    Outcome::new(&output)
}

/// What must not be, of what a command did with a damaged file.
fn complaint(outcome: &Outcome) -> Option<String> {
    let said = format!("{}{}", outcome.stdout, outcome.stderr);
    let forbidden = ["panicked", "backtrace", "memory allocation"];
    let found = forbidden.iter().chain(&SECRETS).find(|word| said.contains(**word));
    if !matches!(outcome.code, 0 | 2..=6) || found.is_some() {
        let said: String = outcome.stderr.chars().take(300).collect();
        return Some(format!("code {}, {found:?} in: {said}", outcome.code));
    }
    None
}

#[test]
fn good_files_are_read_without_a_word_of_what_is_in_them() {
    let (place, seeds) = seeds::prepare();
    for Seed { name, bytes, commands, .. } in &seeds {
        place.write("damaged", bytes);
        for command in commands {
            let outcome = run(&place, command).ok();
            assert_eq!(complaint(&outcome), None, "{name}: {command:?}");
        }
    }
}

/// How many damaged files there are to be.
fn count() -> usize {
    std::env::var("POTLUCK_MUTATIONS").map_or(300, |count| count.parse().unwrap())
}

/// What is read of a file of some kind, and what it says if it refuses.
fn read(kind: Kind, path: &Path) -> Result<(), String> {
    let said = |error: potluck_release::Error| error.to_string();
    match kind {
        Kind::Table => decode(path).map_err(|error| error.to_string()),
        Kind::Study => AnyStudy::load(path, None).map(drop).map_err(said),
        Kind::Release => Release::read(path).map(drop).map_err(said),
        Kind::Dataset => PublicDataset::read(path).map(drop).map_err(said),
        Kind::Model => Model::read(path).map(drop).map_err(said),
        Kind::Log => EventLog::read(path).map(drop).map_err(said),
    }
}

fn decode(path: &Path) -> Result<(), potluck_party::Error> {
    let table = Table::open(path, path.parent().unwrap())?;
    let names = table.column_names()?;
    table.rows()?;
    table.decode(&names, NonZero::new(2).unwrap()).map(drop)
}

#[test]
fn damaged_files_are_decoded_in_little_memory_and_without_a_panic() {
    // A process that asks for more ends. Commands that other tests start have the same limit.
    let most = Some(MEMORY as u64 * 1024);
    setrlimit(Resource::As, Rlimit { current: most, maximum: most }).unwrap();
    let (place, seeds) = seeds::prepare();
    let path = place.path("damaged");
    let mut refused = 0;
    for number in 0..10 * count() {
        let mut dice = Dice::new(0x1000_0000 + number as u64);
        let seed = &seeds[number % seeds.len()];
        let other = &seeds[dice.below(seeds.len())];
        place.write("damaged", damaged(&seed.bytes, &other.bytes, &mut dice));
        let result = guarded(|| read(seed.kind, &path));
        let Ok(result) = result else { panic!("{number}, {}: {}", seed.name, result.unwrap_err()) };
        if let Err(said) = result {
            refused += 1;
            let found = SECRETS.iter().find(|word| said.contains(**word));
            assert_eq!(found, None, "{number}, {}", seed.name);
        }
    }
    assert!(refused * 2 > 10 * count(), "only {refused} were noticed");
}

#[test]
fn damaged_files_are_refused_with_a_documented_exit_code() {
    let count = count();
    let (place, seeds) = seeds::prepare();
    let mut complaints = Vec::new();
    let mut refused = 0;
    for number in 0..count {
        let mut dice = Dice::new(number as u64);
        let seed = &seeds[number % seeds.len()];
        let other = &seeds[dice.below(seeds.len())];
        place.write("damaged", damaged(&seed.bytes, &other.bytes, &mut dice));
        let command = &seed.commands[dice.below(seed.commands.len())];
        let outcome = run(&place, command);
        refused += usize::from(outcome.code != 0);
        if let Some(complaint) = complaint(&outcome) {
            complaints.push(format!("{number}, {}: {command:?}: {complaint}", seed.name));
        }
    }
    assert!(complaints.is_empty(), "{} of {count}:\n{}", complaints.len(), complaints.join("\n"));
    assert!(refused * 2 > count, "only {refused} of {count} were noticed");
}

#[test]
fn a_record_that_does_not_end_is_refused_before_it_fills_the_memory() {
    let (place, _) = seeds::prepare();
    // After the quote all is one field.
    let rest = "SECRET-SENTINEL,1,no\n".repeat(5_000_000);
    let sums = ["sums", "study.toml", "--party", "north", "--data", FILE, "--state", "state"];
    for (start, word) in [("id,income,smoker\n1,2,no\n\"", "row 2 is too long"), ("id,\"", "header line")] {
        place.write("damaged", format!("{start}{rest}"));
        let outcome = run(&place, &sums);
        outcome.refused(3, &[word, "check its quotes"]);
        assert_eq!(complaint(&outcome), None);
    }
}
