//! What a running command holds in memory stays there.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::io::Write;
use std::process::Stdio;

use support::Workplace;

#[test]
fn no_core_is_dumped_of_a_running_command() {
    let place = Workplace::new();
    let mut command = place.command(&["release", "study.toml", "--party", "north", "--data", "-"]);
    command.args(["--out", "o", "--yes", "--accept-low-accuracy"]);
    let mut child = command.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // It reads on as long as there may be more, so it runs while we look.
    let mut input = child.stdin.take().unwrap();
    let process = format!("/proc/{}", child.id());
    let is_open = |file: std::io::Result<fs::DirEntry>| {
        let path = file.and_then(|file| fs::read_link(file.path())).unwrap_or_default();
        path.to_string_lossy().contains("deleted")
    };
    input.write_all(b"id,age,smoker\n").unwrap();
    // Until it has a temporary file; whoever is not root is not even told.
    while fs::read_dir(format!("{process}/fd")).is_ok_and(|mut files| !files.any(is_open)) {
        assert!(child.try_wait().unwrap().is_none(), "it ended early");
    }
    let limits = fs::read_to_string(format!("{process}/limits")).unwrap();
    let core = limits.lines().find(|line| line.starts_with("Max core file size")).unwrap();
    let words: Vec<&str> = core.split_whitespace().collect();
    assert_eq!(words[4..6], ["0", "0"], "{core}");
    drop(input);
    assert!(!child.wait().unwrap().success());
}
