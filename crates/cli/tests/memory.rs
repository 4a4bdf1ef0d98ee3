//! Where every subject keeps a row (dgm), rows pass through: a release fits in less memory than its
//! rows would take.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]

mod support;

use std::fmt::Write;
use std::process::{Command, Stdio};

use potluck_release::Release;
use support::{STUDY, Workplace};

const ROWS: usize = 2_000_000;
/// Four encoded columns of 64-bit sums.
const BYTES: usize = ROWS * 4 * 8;

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

    // A limit on the memory that the process may write to: if it asks for more, it ends.
    let limited = |arguments: &str| {
        let line = format!("ulimit -d {} && exec \"$0\" --threads 2 {arguments}", BYTES / 1024);
        let output = Command::new("sh")
            .args(["-c", &line, env!("CARGO_BIN_EXE_potluck")])
            .current_dir(place.folder())
            .env("POTLUCK_LEDGER", place.path("ledger.sqlite"))
            .stdin(Stdio::null())
            .output()
            .unwrap();
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
