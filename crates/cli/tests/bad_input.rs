//! Bad input gets a clear error that names file, column and row but never a value, the listed exit
//! code, and leaves nothing written and nothing charged.
#![allow(clippy::unwrap_used)]

mod support;

use std::fs;

use support::{ROWS, STUDY, Workplace, north_csv, south_csv};

/// Runs a release of the north on another table; it must be refused.
#[track_caller]
fn refused_table(table: impl AsRef<[u8]>, words: &[&str]) {
    let place = Workplace::new();
    place.write("bad.csv", table);
    let outcome = place.release_north(&["--data", "bad.csv"]);
    outcome.refused(3, words);
    assert!(outcome.stderr.contains("bad.csv"), "the file is not named: {}", outcome.stderr);
    place.assert_untouched();
    // A refused table is no reason to be refused later.
    place.release_north(&[]).ok();
}

fn with_row(row: usize, line: &str) -> String {
    let mut lines: Vec<String> = north_csv().lines().map(str::to_owned).collect();
    line.clone_into(&mut lines[row]);
    lines.join("\n") + "\n"
}

#[test]
fn tables_of_the_wrong_shape() {
    refused_table(north_csv().replace("id,age,smoker", "id,years,smoker"), &["column \"age\"", "is missing"]);
    refused_table(north_csv().replace("id,age,smoker", "person,age,smoker"), &["column \"id\"", "--id"]);
    let extra: String = north_csv().lines().map(|line| format!("{line},x\n")).collect();
    refused_table(extra, &["column \"x\"", "not in the study", "--ignore-extra"]);
    refused_table(north_csv().replace("id,age,smoker", "id,age,age"), &["column 3", "same name"]);
    refused_table("", &["is empty"]);
    refused_table("id,age,smoker\n", &["fewer rows than the 40"]);
    refused_table("id,age,smoker\n0,20,no\n", &["fewer rows than the 40"]);
    refused_table(format!("{}77,30,no\n", north_csv()), &["more rows than the 40"]);
    refused_table(with_row(3, "2,22"), &["row 3", "2 fields", "header has 3"]);
    refused_table(b"id,age,smoker\n1,20,\xff\xfe\n".as_slice(), &["column \"smoker\"", "row 1", "UTF-8"]);
    // A character that lies across two rows is none.
    refused_table(
        b"id,age,smoker\n0,20,\xc3\n1,21,\xa9\n".as_slice(),
        &["column \"smoker\"", "row 1", "UTF-8"],
    );
    refused_table(b"PAR1 this is no Parquet".as_slice(), &["cannot be decoded"]);
    refused_table(b"\x1f\x8b\x08 this is no gzip".as_slice(), &["bad.csv"]);
    refused_table(b"ARROW1 this is no Arrow".as_slice(), &["cannot be decoded"]);
}

#[test]
fn extra_columns_can_be_ignored() {
    let place = Workplace::new();
    let extra: String = north_csv().lines().map(|line| format!("{line},x\n")).collect();
    place.write("wide.csv", extra);
    place.release_north(&["--data", "wide.csv", "--ignore-extra"]).ok();
}

#[test]
fn values_that_cannot_be_used() {
    refused_table(with_row(6, "5,secret,no"), &["column \"age\"", "row 6", "not a number"]);
    refused_table(with_row(8, "6,26,no"), &["column \"id\"", "row 8", "same as in row 7"]);
    refused_table(with_row(9, "008,28,no"), &["column \"id\"", "row 9", "plain decimal"]);
    refused_table(with_row(10, "9.0,28,no"), &["column \"id\"", "row 10", "plain decimal"]);
    refused_table(with_row(11, ",28,no"), &["column \"id\"", "row 11", "id is missing"]);
}

#[test]
fn messages_never_hold_a_value() {
    let strict = STUDY.replace("[\"no\", \"yes\"]", "[\"no\", \"yes\"]\nunknown = \"error\"");
    for line in ["5,secret,no", "secret,25,no", "5,25,secret", "5,25,no,secret"] {
        let place = Workplace::with_study(&strict);
        place.write("bad.csv", with_row(6, line));
        for flag in ["--ignore-extra", "--json"] {
            let outcome = place.release_north(&["--data", "bad.csv", flag]);
            assert_eq!(outcome.code, 3, "{}", outcome.stderr);
            assert!(!outcome.stderr.contains("secret"), "{}", outcome.stderr);
        }
    }
}

/// A table without a header line, or in the place of a study, is private from its first line on.
#[test]
fn the_first_line_of_a_table_is_not_shown() {
    let place = Workplace::new();
    let headerless = "123456,Jane Doe,secret\n123457,John Doe,secret\n";
    place.write("headerless.csv", headerless);
    place.write("twice.csv", "Jane,Jane,secret\n1,2,3\n");
    place.write("semicolons.csv", "Jane;secret;id\n1;2;3\n");
    let attempts: [&[&str]; 9] = [
        &["release", "study.toml", "--party", "north", "--data", "headerless.csv", "--out", "o", "--yes"],
        &["release", "study.toml", "--party", "north", "--data", "twice.csv", "--out", "o", "--yes"],
        &["release", "study.toml", "--party", "north", "--data", "semicolons.csv", "--out", "o", "--yes"],
        &["release", "headerless.csv", "--party", "north", "--data", "north.csv", "--out", "o", "--yes"],
        &["sums", "study.toml", "--party", "north", "--data", "headerless.csv", "--state", "s"],
        &["plan", "headerless.csv"],
        &["inspect", "headerless.csv"],
        &["verify", "headerless.csv"],
        &["study", "check", "headerless.csv"],
    ];
    for arguments in attempts {
        let outcome = place.run(arguments);
        outcome.refused(3, &[]);
        for word in ["Jane", "secret", "123456"] {
            assert!(!outcome.stderr.contains(word), "{arguments:?}: {}", outcome.stderr);
        }
    }
}

#[test]
fn missing_values_are_refused_only_where_the_study_says_so() {
    let place = Workplace::new();
    place.write("gaps.csv", with_row(6, "5,,NA"));
    place.release_north(&["--data", "gaps.csv"]).ok();

    let strict = Workplace::empty();
    strict.write("study.toml", STUDY.replace("unit = \"years\"", "missing = \"error\""));
    strict.run(&["study", "seal", "study.toml"]).ok();
    strict.run(&["ledger", "init", "--budget", "people", "--epsilon", "1", "--delta", "1e-5"]).ok();
    strict.write("north.csv", with_row(6, "5,,no"));
    strict.release_north(&[]).refused(3, &["column \"age\"", "row 6", "missing"]);
    strict.assert_untouched();
}

#[test]
fn typed_columns_of_the_wrong_type() {
    use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
    use std::sync::Arc;
    let ids = || Arc::new(Int64Array::from_iter_values(0..ROWS as i64)) as ArrayRef;
    let text = |word: &str| Arc::new(StringArray::from(vec![word; ROWS])) as ArrayRef;
    let number = || Arc::new(Float64Array::from(vec![30.0; ROWS])) as ArrayRef;
    let cases: [(ArrayRef, ArrayRef, ArrayRef, &[&str]); 4] = [
        (ids(), text("30"), text("no"), &["column \"age\"", "text", "cast"]),
        (ids(), number(), number(), &["column \"smoker\"", "Float64", "levels"]),
        (number(), number(), text("no"), &["column \"id\"", "Float64", "whole number"]),
        (text("7"), number(), text("no"), &["column \"id\"", "Utf8", "whole number"]),
    ];
    for (id, age, smoker, words) in cases {
        let batch = RecordBatch::try_from_iter([("id", id), ("age", age), ("smoker", smoker)]).unwrap();
        let mut writer = parquet::arrow::ArrowWriter::try_new(Vec::new(), batch.schema(), None).unwrap();
        writer.write(&batch).unwrap();
        refused_table(writer.into_inner().unwrap(), words);
    }
}

#[track_caller]
fn refused_study(from: &str, to: &str, words: &[&str]) {
    let place = Workplace::empty();
    let text = STUDY.replacen(from, to, 1);
    assert_ne!(text, *STUDY, "the study was not changed");
    place.write("study.toml", &text);
    for command in ["check", "seal"] {
        place.run(&["study", command, "study.toml"]).refused(3, words);
        assert_eq!(place.read("study.toml"), text);
    }
}

#[test]
fn studies_that_cannot_be() {
    refused_study("hi = 100", "hi = 18", &["\"age\"", "lo < hi"]);
    refused_study("hi = 100", "hi = 10", &["\"age\"", "lo < hi"]);
    refused_study("hi = 100\n", "", &["\"age\"", "bounds"]);
    refused_study("epsilon = 1.0", "epsilon = 0.0", &["epsilon"]);
    refused_study("epsilon = 1.0", "epsilon = -1.0", &["epsilon"]);
    refused_study("epsilon = 1.0", "epsilon = nan", &["epsilon"]);
    refused_study("delta = 1e-5", "delta = 0.0", &["delta"]);
    refused_study("delta = 1e-5", "delta = 1.0", &["delta"]);
    refused_study("rows = 40", "rows = 1", &["rows", "at least 2"]);
    refused_study("rows = 40", "rows = 0", &["rows"]);
    refused_study("rows = 40", "rows = 40\nk = 2", &["study.k", "at least"]);
    refused_study("rows = 40", "rows = 40\nk = 41", &["study.k", "exceed"]);
    refused_study("rows = 40", "rows = 1000000000000000", &["overflow"]);
    refused_study(
        "rows = 40",
        "rows = 40\ncolour = 3",
        &["line 5: study.colour", "the keys here are name, rows"],
    );
    refused_study("format = 1", "format = 3", &["format"]);
    refused_study("[\"no\", \"yes\"]", "[\"no\"]", &["\"smoker\"", "two levels"]);
    refused_study("[\"no\", \"yes\"]", "[\"no\", \"no\"]", &["\"smoker\"", "twice"]);
    refused_study("name = \"pressure\"", "name = \"age\"", &["unique"]);
    refused_study("name = \"south\"", "name = \"north\"", &["party \"north\": name: stands twice"]);
    refused_study("id = \"integer\"", "id = \"integer\"\nmethod = \"dgm\"", &["id = \"row\""]);
    refused_study("id = \"integer\"", "id = \"integer\"\nmixing = \"identity\"", &["mixing"]);
    refused_study("name = \"north\"", "name = \"north\"\nclip_norm = 9.0", &["clip_norm"]);
    refused_study("name = \"north\"", "name = \"no rth\"", &["name"]);
    refused_study("[[party]]", "[[party", &["not in the expected form"]);
}

#[test]
fn all_that_is_wrong_with_a_study_is_said_at_once_whatever_it_was_read_for() {
    let place = Workplace::empty();
    let text = STUDY
        .replace("rows = 40", "rows = \"forty\"")
        .replace("epsilon = 1.0", "epsilon = -1")
        .replace("hi = 100", "high = 100");
    place.write("study.toml", &text);
    let list = [
        "3 things in the study are wrong:\n",
        "\n  line 4: study.rows: is text; write a whole number",
        "\n  line 7: privacy.epsilon: epsilon must be above 0",
        "\n  line 14: party \"north\", column \"age\": high: is not a key that belongs here; did you mean hi?\n",
    ];
    for command in ["study check", "study seal", "plan", "simulate", "inspect"] {
        place.line(&format!("{command} study.toml")).refused(3, &list);
    }
    place.release_north(&[]).refused(3, &list);
}

#[test]
fn studies_that_are_not_sealed_or_were_edited() {
    let place = Workplace::new();
    let sealed = place.read("study.toml");
    place.write("study.toml", STUDY.as_str());
    place.release_north(&[]).refused(3, &["not sealed", "potluck study seal"]);
    let edits = [
        ("epsilon = 1.0", "epsilon = 2.0"),
        ("hi = 100", "hi = 120"),
        ("unit = \"years\"", "unit = \"months\""),
        ("standardise-sum = ", "standardise-sum = 1"),
        ("standardise-square = ", "standardise-square = 1"),
        ("mixing_key = \"", "mixing_key = \"0"),
        ("[sealed]\nid = \"", "[sealed]\nid = \"0"),
        ("k = ", "k = 3"),
        ("mu = 0.", "mu = 1."),
        ("shares = [131072,", "shares = [131071,"),
    ];
    let sealed_part = sealed.find("[sealed]").unwrap();
    for (from, to) in edits {
        let at = if STUDY.contains(from) { 0 } else { sealed_part };
        let found = sealed[at..].find(from).unwrap_or_else(|| panic!("no {from:?} in {sealed}"));
        let mut edited = sealed.clone();
        edited.replace_range(at + found..at + found + from.len(), to);
        place.write("study.toml", &edited);
        let outcome = place.release_north(&[]);
        outcome.refused(5, &["seal is wrong", "edited"]);
        place.assert_untouched();
    }
}

#[test]
fn a_sealed_study_is_not_sealed_again() {
    let place = Workplace::new();
    let sealed = place.read("study.toml");
    place.run(&["study", "seal", "study.toml"]).refused(3, &["sealed already"]);
    assert_eq!(place.read("study.toml"), sealed);
}

#[test]
fn parties_and_files_that_do_not_exist() {
    let place = Workplace::new();
    let release = |party, data, study| {
        place
            .line(&format!("release {study} --party {party} --data {data} --out north.release.parquet --yes"))
    };
    release("west", "north.csv", "study.toml").refused(3, &["\"west\"", "north, south"]);
    release("north", "nowhere.csv", "study.toml").refused(3, &["nowhere.csv", "exists"]);
    release("north", ".", "study.toml").refused(3, &["not a file"]);
    release("north", "north.csv", "nowhere.toml").refused(3, &["nowhere.toml"]);
    release("north", "south.csv", "study.toml").refused(3, &["column \"age\"", "south.csv"]);
    place.assert_untouched();
}

#[test]
fn outputs_that_cannot_be_written() {
    let place = Workplace::new();
    place.write("there.parquet", "something of mine");
    let out = |out| {
        place.line(&format!(
            "release study.toml --party north --data north.csv --yes --accept-low-accuracy --out {out}"
        ))
    };
    out("there.parquet").refused(3, &["there.parquet", "--force"]);
    assert_eq!(place.read("there.parquet"), "something of mine");
    out("no/such/folder/x.parquet").refused(3, &["folder does not exist"]);
    out(".").refused(3, &["folder"]);
    // A folder that exists but takes no files, whoever asks.
    #[cfg(target_os = "linux")]
    out("/proc/x.parquet").refused(3, &["/proc/x.parquet"]);
    // What the command reads is not overwritten, even if asked to.
    for input in ["study.toml", "north.csv", "ledger.sqlite"] {
        let before = fs::read(place.path(input)).unwrap();
        place
            .line(&format!("release study.toml --party north --data north.csv --yes --force --out {input}"))
            .refused(2, &[input, "overwritten"]);
        assert!(fs::read(place.path(input)).unwrap() == before, "{input}");
    }
    place.assert_untouched();
}

/// Files that cannot grow, as on a full disk: a clear error, nothing half done, and a second run
/// with more room finishes the release. (A disk that is full only for the release itself is the
/// crash test's step `Stored`.)
#[cfg(unix)]
#[test]
fn a_full_disk_loses_nothing() {
    let place = Workplace::empty();
    // Large enough that the release does not fit where the ledger does.
    place.write("study.toml", STUDY.replace("rows = 40", "rows = 40\nk = 40"));
    place.run(&["study", "seal", "study.toml"]).ok();
    place.write("north.csv", north_csv());
    place.run(&["ledger", "init", "--budget", "people", "--epsilon", "1", "--delta", "1e-5"]).ok();
    fs::create_dir(place.path("full")).unwrap();
    let script = "trap '' XFSZ; ulimit -f 0; exec \"$0\" \"$@\"";
    let mut limited = std::process::Command::new("sh");
    limited
        .args(["-c", script, env!("CARGO_BIN_EXE_potluck")])
        .args([
            "release",
            "study.toml",
            "--party",
            "north",
            "--data",
            "north.csv",
            "--yes",
            "--accept-low-accuracy",
        ])
        .args(["--out", "north.release.parquet"])
        .current_dir(place.folder())
        .env("POTLUCK_LEDGER", place.path("ledger.sqlite"));
    let output = limited.output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{stderr}");
    assert!(stderr.contains("cannot write"), "{stderr}");
    assert!(!place.path("north.release.parquet").exists());
    place.release_north(&[]).ok();
    place.run(&["verify", "north.release.parquet"]).ok();
}

#[test]
fn ledgers_that_are_missing_damaged_in_use_or_exhausted() {
    let place = Workplace::new();
    place
        .run(&["ledger", "init", "--budget", "people", "--epsilon", "9", "--delta", "1e-5"])
        .refused(4, &["already"]);
    place.release_north(&["--budget", "animals"]).refused(4, &["\"animals\"", "ledger init"]);
    place.release_north(&["--ledger", "elsewhere.sqlite"]).refused(4, &["no ledger", "ledger init"]);
    place.write("garbage.sqlite", "this is not a database, however long one looks at it");
    place.release_north(&["--ledger", "garbage.sqlite"]).refused(5, &["damaged", "backup"]);
    let ledger = fs::read(place.path("ledger.sqlite")).unwrap();
    place.write("cut.sqlite", &ledger[..ledger.len() / 2]);
    place.release_north(&["--ledger", "cut.sqlite"]).refused(5, &["damaged"]);
    place.assert_untouched();

    // Another process holds the ledger open.
    let held = potluck_party::Ledger::open(&place.path("ledger.sqlite")).unwrap();
    place.release_north(&[]).refused(4, &["in use"]);
    drop(held);
    place.assert_untouched();

    // One release is what the budget allows.
    place.release_north(&[]).ok();
    let spent = place.spent();
    let again = Workplace::empty();
    again.write("study.toml", STUDY.as_str());
    again.run(&["study", "seal", "study.toml"]).ok();
    let other = again.path("study.toml");
    place
        .run(&[
            "release",
            other.to_str().unwrap(),
            "--party",
            "north",
            "--data",
            "north.csv",
            "--yes",
            "--accept-low-accuracy",
            "--out",
            "second.parquet",
        ])
        .refused(4, &["budget", "nothing was written or charged"]);
    assert!(!place.path("second.parquet").exists());
    assert_eq!(place.spent(), spent);
}

#[test]
fn releases_that_do_not_belong_together() {
    let place = Workplace::new();
    place.release_north(&[]).ok();
    let joined = |arguments: &[&str]| {
        let mut all = vec!["join", "study.toml", "--out", "public.parquet"];
        all.extend(arguments);
        place.run(&all)
    };
    joined(&["north.release.parquet"]).refused(3, &["south", "--partial"]);
    joined(&["north.release.parquet", "north.release.parquet"]).refused(3, &["two releases", "north"]);
    joined(&["north.csv"]).refused(3, &["not a potluck release"]);
    joined(&["nowhere.parquet"]).refused(3, &["nowhere.parquet"]);

    let other = Workplace::new();
    other.release_north(&[]).ok();
    fs::copy(other.path("north.release.parquet"), place.path("foreign.parquet")).unwrap();
    joined(&["foreign.parquet"]).refused(3, &["another study"]);
    assert!(!place.path("public.parquet").exists());
    joined(&["north.release.parquet", "--partial"]).ok();
    place.run(&["fit", "public.parquet", "--label", "pressure"]).refused(3, &["no column \"pressure\""]);
}

#[test]
fn files_that_were_tampered_with() {
    let place = Workplace::new();
    place.run(&["key", "new", "--out", "north.key"]).ok();
    place.run(&["key", "new", "--out", "other.key"]).ok();
    place.release_north(&["--signing-key", "north.key"]).ok();
    place.run(&["verify", "north.release.parquet", "--key", "north=north.key.pub"]).ok();
    place
        .run(&["verify", "north.release.parquet", "--key", "north=other.key.pub"])
        .refused(5, &["another key"]);
    place.run(&["verify", "north.release.parquet", "--key", "south=north.key.pub"]).refused(2, &["south"]);
    place.run(&["verify", "north.release.parquet", "--key", "north"]).refused(2, &["PARTY=FILE"]);

    let bytes = fs::read(place.path("north.release.parquet")).unwrap();
    for cut in [0, 3, 50, bytes.len() / 2, bytes.len() - 1] {
        place.write("cut.parquet", &bytes[..cut]);
        let outcome = place.run(&["verify", "cut.parquet"]);
        assert!(outcome.code == 5 || outcome.code == 3, "{cut}: {}", outcome.stderr);
        if cut > 3 {
            assert_eq!(outcome.code, 5, "{cut}: {}", outcome.stderr);
        }
    }
    // Any byte that is changed is noticed, or changes nothing that the file says.
    let original = place.run(&["inspect", "north.release.parquet", "--json"]).json();
    let step = (bytes.len() / 150).max(1);
    let mut noticed = 0;
    for position in (4..bytes.len()).step_by(step) {
        let mut changed = bytes.clone();
        changed[position] ^= 0x41;
        place.write("changed.parquet", &changed);
        let outcome = place.run(&["verify", "changed.parquet"]);
        assert_ne!(outcome.code, 101, "panicked at {position}: {}", outcome.stderr);
        if outcome.code == 0 {
            assert_eq!(place.run(&["inspect", "changed.parquet", "--json"]).json(), original, "{position}");
        } else {
            noticed += 1;
        }
    }
    assert!(noticed > 100, "only {noticed} changes were noticed");
}

#[test]
fn regressions_that_cannot_be() {
    let place = Workplace::new();
    place.release_north(&[]).ok();
    place
        .line("release study.toml --party south --data south.csv --out s.parquet --yes --ledger s.sqlite")
        .refused(4, &["no ledger"]);
    place
        .run(&[
            "ledger",
            "init",
            "--ledger",
            "s.sqlite",
            "--budget",
            "t",
            "--epsilon",
            "1",
            "--delta",
            "1e-5",
        ])
        .ok();
    place.write("south.csv", south_csv());
    place
        .line("release study.toml --party south --data south.csv --out s.parquet --yes --accept-low-accuracy --ledger s.sqlite")
        .ok();
    place.run(&["join", "study.toml", "s.parquet", "north.release.parquet", "--out", "public.parquet"]).ok();
    let fit = |arguments: &[&str]| {
        let mut all = vec!["fit", "public.parquet"];
        all.extend(arguments);
        place.run(&all)
    };
    fit(&["--label", "height"]).refused(3, &["no column \"height\"", "age"]);
    fit(&["--label", "age", "--features", "age"]).refused(3, &["both the label and a feature"]);
    fit(&["--label", "age", "--features", "smoker,smoker"]).refused(3, &["twice"]);
    fit(&["--label", "age", "--level", "1.5"]).refused(3, &["level"]);
    fit(&["--label", "age", "--ridge", "-1"]).refused(3, &["ridge"]);
    fit(&["--label", "age", "--learner", "magic"]).refused(2, &["magic"]);
    fit(&["--label", "age", "--out", "no/such/model.json"]).refused(3, &["folder does not exist"]);
    place.run(&["fit", "north.release.parquet", "--label", "age"]).refused(3, &["it is a release"]);
    place.run(&["predict", "study.toml", "--data", "north.csv"]).refused(3, &["not a potluck model"]);
    fit(&["--label", "smoker", "--learner", "ols"]).ok();
}

#[test]
fn wrong_usage() {
    let place = Workplace::new();
    place.run(&["release"]).refused(2, &["--party"]);
    place.run(&["no-such-command"]).refused(2, &["no-such-command"]);
    place
        .run(&["fit", "x.parquet", "--label", "a", "--report", "same", "--out", "same"])
        .refused(2, &["same file"]);
    place
        .run_with_input(
            &["release", "study.toml", "--party", "north", "--data", "-", "--out", "o"],
            &north_csv(),
        )
        .refused(2, &["--yes"]);
    // Nobody is there to agree.
    place
        .line("release study.toml --party north --data north.csv --out north.release.parquet --accept-low-accuracy")
        .refused(2, &["--yes"]);
    // Forty people are too few for a regression to be of use.
    place
        .line("release study.toml --party north --data north.csv --out north.release.parquet --yes")
        .refused(2, &["40 subjects", "--accept-low-accuracy"]);
    place.run(&["simulate", "study.toml", "--signal", "1.5"]).refused(2, &["--signal"]);
    place.run(&["simulate", "study.toml", "--label", "height"]).refused(3, &["no such label", "age"]);
    place.run(&["simulate", "study.toml", "--rows", "400000000"]).refused(2, &["memory", "--rows"]);
    place.assert_untouched();
}
