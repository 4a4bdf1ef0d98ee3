//! Where every subject keeps a row (dgm), rows pass through: a release fits in less memory than its
//! rows would take. Where columns may be kept between passes, they take no more than they may.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]

mod support;

use std::fmt::Write;
use std::process::{Command, Output, Stdio};

use potluck_release::Release;
use support::{STUDY, Workplace};

const ROWS: usize = 2_000_000;
/// Four encoded columns of 64-bit sums.
const BYTES: usize = ROWS * 4 * 8;

/// Runs the command with a limit on the memory that it may write to: if it asks for more, it ends.
fn within(bytes: usize, place: &Workplace, arguments: &str) -> Output {
    let line = format!("ulimit -d {} && exec \"$0\" --threads 2 {arguments}", bytes / 1024);
    Command::new("sh")
        .args(["-c", &line, env!("CARGO_BIN_EXE_potluck")])
        .current_dir(place.folder())
        .env("POTLUCK_LEDGER", place.path("ledger.sqlite"))
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

#[test]
fn a_release_that_keeps_every_row_does_not_hold_them() {
    let study = STUDY
        .replace("rows = 40", &format!("rows = {ROWS}"))
        .replace("id = \"integer\"", "id = \"row\"\nmethod = \"dgm\"")
        .replace("\"no\", \"yes\"", "\"no\", \"yes\", \"once\"");
    let place = Workplace::with_study(&study);
    let mut table = "age,smoker\n".to_owned();
    for row in 0..ROWS {
        writeln!(table, "{},{}", 20 + row % 70, ["no", "yes", "once"][row % 3]).unwrap();
    }
    place.write("north.csv", table);

    let limited = |arguments: &str| {
        let output = within(BYTES, &place, arguments);
        assert!(output.status.success(), "{arguments}: {}", String::from_utf8_lossy(&output.stderr));
    };
    let release =
        "release study.toml --party north --data north.csv --out out.parquet --yes --accept-low-accuracy";
    limited(release);
    let written = Release::read(&place.path("out.parquet")).unwrap();
    assert_eq!(written.columns().rows(), ROWS);
    // Again: the rows in the ledger are compared with the file that is there.
    limited(release);
    limited("sums study.toml --party north --data north.csv --state audit");
}

#[test]
fn columns_that_are_kept_between_passes_take_no_more_than_they_may() {
    const ROWS: usize = 400_000;
    const COLUMNS: usize = 40;
    let column = |at| format!("[[party.column]]\nname = \"c{at}\"\nlo = 0\nhi = 100\n");
    let columns: String = (0..COLUMNS).map(column).collect();
    let place = Workplace::with_study(&format!(
        "format = 1\n[study]\nname = \"wide\"\nrows = {ROWS}\nid = \"integer\"\n[privacy]\nepsilon = 1.0\ndelta = 1e-6\n[[party]]\nname = \"north\"\n{columns}[[party]]\nname = \"south\"\n[[party.column]]\nname = \"y\"\nlo = 0\nhi = 1\n"
    ));
    let names: Vec<String> = (0..COLUMNS).map(|at| format!("c{at}")).collect();
    let mut table = format!("id,{}\n", names.join(","));
    for row in 0..ROWS {
        write!(table, "{row}").unwrap();
        for at in 0..COLUMNS {
            write!(table, ",{}", (row * (at + 7) + at) % 101).unwrap();
        }
        table.push('\n');
    }
    place.write("north.csv", table);

    // Decoded, the columns take 128 MB, which is what the limit is.
    let limit = ROWS * COLUMNS * 8;
    let release = |more: &str, name: &str| {
        let ledger = format!("ledger init --ledger {name}.ledger --budget all --epsilon 1 --delta 1e-6");
        assert!(within(limit, &place, &ledger).status.success());
        let arguments = format!(
            "release study.toml --party north --data north.csv --out {name}.parquet --ledger {name}.ledger --yes --accept-low-accuracy {more}"
        );
        within(limit, &place, &arguments)
    };
    assert!(!release("--memory 4GB", "greedy").status.success(), "the limit shows what is kept");
    for (more, name) in [("--memory 0", "nothing"), ("", "default")] {
        let careful = release(more, name);
        assert!(careful.status.success(), "{more}: {}", String::from_utf8_lossy(&careful.stderr));
    }
}
