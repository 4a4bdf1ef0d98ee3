//! `study new --header`: the first line of a table goes into a public study only if it holds names
//! of columns.
#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::process::{Command, Stdio};

use support::{Outcome, Workplace};

const NAMED: &str = "id,age,smoker\n1,20,no\n";
/// A table without a header line, in which nothing gives that away.
const NAMELESS: &str = "Jane,female,Springfield\nJohn,male,Shelbyville\n";

#[test]
fn names_are_taken_from_a_line_that_is_confirmed() {
    let place = Workplace::empty();
    place.write("north.csv", NAMED);
    let draft = place.line("study new --header north.csv --yes-header").ok().stdout;
    assert!(draft.contains("name = \"north\"") && draft.contains("name = \"age\""), "{draft}");
    assert!(!draft.contains("20") && !draft.contains("name = \"id\""), "{draft}");
    // From a pipe too.
    let draft = place.run_with_input(&["study", "new", "--header", "-", "--yes-header"], NAMED).ok().stdout;
    assert!(draft.contains("name = \"smoker\""), "{draft}");
    place.line("study new --yes-header").refused(2, &["--header"]);
}

#[test]
fn a_line_that_nobody_confirms_goes_nowhere() {
    let place = Workplace::empty();
    place.write("north.csv", NAMELESS);
    let refused = |outcome: Outcome| {
        outcome.refused(2, &["--yes-header", "a person"]);
        for value in ["Jane", "female", "Springfield"] {
            assert!(!outcome.stderr.contains(value), "{}", outcome.stderr);
        }
    };
    refused(place.line("study new --header north.csv"));
    refused(place.line("study new --header north.csv --json"));
    refused(place.line("study new --header north.csv --out study.toml"));
    assert!(!place.path("study.toml").exists());
    // An answer that is piped in is nobody's.
    refused(place.run_with_input(&["study", "new", "--header", "north.csv"], "y\n"));
    refused(place.run_with_input(&["study", "new", "--header", "-"], NAMELESS));
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    std::io::Write::write_all(&mut gzip, NAMELESS.as_bytes()).unwrap();
    place.write("north.csv.gz", gzip.finish().unwrap());
    refused(place.line("study new --header north.csv.gz"));
}

#[test]
fn a_line_that_cannot_be_names_is_refused_whatever_is_confirmed() {
    let place = Workplace::empty();
    for line in [
        "Jane,41,Springfield",
        "Jane,,Springfield",
        "Jane,1983-05-17,Springfield",
        "Jane,17 May 1983,Springfield",
        "Jane,jane@example.org,Springfield",
        "Jane,\"1,234.50\",Springfield",
        "Jane,Jane,Springfield",
    ] {
        place.write("north.csv", format!("{line}\nJohn,x,Shelbyville\n"));
        let outcome = place.line("study new --header north.csv --yes-header");
        outcome.refused(3, &["north.csv", "2", "header line"]);
        for value in ["Jane", "41", "1983", "May", "jane@", "234", "Springfield", "John"] {
            assert!(!outcome.stderr.contains(value), "{line}: {}", outcome.stderr);
        }
    }
}

#[test]
fn a_schema_needs_no_confirmation() {
    use arrow_array::{ArrayRef, Float64Array, RecordBatch};
    use std::sync::Arc;
    let place = Workplace::empty();
    let values: ArrayRef = Arc::new(Float64Array::from(vec![20.0]));
    let batch = RecordBatch::try_from_iter([("id", values.clone()), ("age", values)]).unwrap();
    let mut parquet = parquet::arrow::ArrowWriter::try_new(Vec::new(), batch.schema(), None).unwrap();
    parquet.write(&batch).unwrap();
    place.write("north.parquet", parquet.into_inner().unwrap());
    let mut arrow = arrow_ipc::writer::StreamWriter::try_new(Vec::new(), &batch.schema()).unwrap();
    arrow.write(&batch).unwrap();
    place.write("south.arrow", arrow.into_inner().unwrap());
    let draft = place.line("study new --header north.parquet --header south.arrow").ok().stdout;
    assert_eq!(draft.matches("name = \"age\"").count(), 2, "{draft}");
}

/// Runs the command at a terminal of its own, where somebody types an answer.
#[cfg(target_os = "linux")]
fn at_a_terminal(place: &Workplace, answer: &str) -> Outcome {
    const AT_A_TERMINAL: &str = "import os, pty, subprocess, sys
ours, theirs = pty.openpty()
os.write(ours, sys.argv[1].encode())
command = subprocess.Popen(sys.argv[2:], stdin=theirs, stdout=sys.stdout, stderr=theirs)
os.close(theirs)
code = command.wait()
shown = b''
try:
    while part := os.read(ours, 4096):
        shown += part
except OSError:
    pass
os.write(2, shown)
sys.exit(code)";
    let output = Command::new("python3")
        .args(["-c", AT_A_TERMINAL, answer, env!("CARGO_BIN_EXE_potluck")])
        .args(["study", "new", "--header", "north.csv"])
        .current_dir(place.folder())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    Outcome::new(&output)
}

#[cfg(target_os = "linux")]
#[test]
fn at_a_terminal_the_line_is_shown_and_asked_about() {
    let place = Workplace::empty();
    place.write("north.csv", NAMED);
    let agreed = at_a_terminal(&place, "y\n").ok();
    assert!(agreed.stderr.contains("smoker") && agreed.stderr.contains("public study"), "{}", agreed.stderr);
    assert!(agreed.stdout.contains("name = \"smoker\""), "{}", agreed.stdout);
    place.write("north.csv", NAMELESS);
    for answer in ["n\n", "\n", "Jane\n"] {
        at_a_terminal(&place, answer).refused(2, &["Springfield", "not agreed"]);
    }
    assert_eq!(fs::read_dir(place.folder()).unwrap().count(), 1);
}
