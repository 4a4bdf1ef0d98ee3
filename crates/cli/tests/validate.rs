//! A private look at a table before a release, with the real binary: all problems at once, nothing
//! charged or written, and the refusal that it foretells.
#![allow(clippy::unwrap_used)]

mod support;

use std::collections::BTreeSet;
use std::fs;

use support::{ROWS, STUDY, Workplace, north_csv};

/// Every file of the folder with its content.
fn everything(place: &Workplace) -> BTreeSet<(String, Vec<u8>)> {
    let files = fs::read_dir(place.folder()).unwrap().filter_map(Result::ok);
    let read = |file: fs::DirEntry| (file.file_name().into_string().unwrap(), fs::read(file.path()).unwrap());
    files.map(read).collect()
}

#[test]
fn a_good_table_is_called_so_before_sealing_and_after() {
    let place = Workplace::new();
    place.write("draft.toml", STUDY.as_str());
    for study in ["draft.toml", "study.toml"] {
        let said = place.line(&format!("validate {study} --party north --data north.csv")).ok().stdout;
        assert!(said.contains("40 rows, as the study says") && said.contains("40 ids, each once"), "{said}");
        assert!(said.contains("nothing stands out"), "{said}");
    }
}

#[test]
fn all_problems_are_shown_at_once_and_nothing_is_written() {
    let place = Workplace::new();
    let table =
        north_csv().replacen("\n3,23,yes", "\n2,many,Yes", 1).replacen("\n9,29,yes", "\n9,5000,HIV", 1);
    place.write("bad.csv", table);
    let before = everything(&place);
    let outcome = place.line("validate study.toml --party north --data bad.csv");
    assert_eq!(outcome.code, 3, "{}", outcome.stderr);
    for words in
        ["row 4: is not a number", "row 4: the id is the same as in row 3", "5.0% of the values are none"]
    {
        assert!(outcome.stdout.contains(words), "{words}: {}", outcome.stdout);
    }
    assert!(outcome.stderr.contains("for the 2 problems above"), "{}", outcome.stderr);
    for value in ["many", "HIV", "5000", "Yes"] {
        assert!(
            !outcome.stdout.contains(value) && !outcome.stderr.contains(value),
            "{value}: {}",
            outcome.stdout
        );
    }
    let shown = place.line("validate study.toml --party north --data bad.csv --show-values");
    assert!(shown.stdout.contains("\"HIV\" 1") && shown.stdout.contains("\"Yes\" 1"), "{}", shown.stdout);
    assert!(!shown.stdout.contains("5000"), "levels only: {}", shown.stdout);
    assert_eq!(everything(&place), before, "a validation writes nothing");
    place.assert_untouched();
    assert_eq!(place.line("ledger show --json").json()["refusals"], serde_json::json!([]));
}

#[test]
fn a_table_in_which_every_age_is_5000_is_not_released_silently() {
    let place = Workplace::new();
    let table =
        potluck_fixtures::csv("id,age,smoker", ROWS, |i| format!("{i},5000,{}", ["no", "yes"][i % 2]));
    place.write("wrong.csv", table);
    let validated = place.line("validate study.toml --party north --data wrong.csv --json");
    assert_eq!(validated.code, 3);
    let counts: serde_json::Value = serde_json::from_str(&validated.stdout).unwrap();
    assert_eq!(counts["columns"][0]["above"], ROWS);
    assert_eq!(counts["columns"][0]["far"], ROWS);
    let refused = place.release_north(&["--data", "wrong.csv"]);
    refused.refused(3, &["column \"age\"", "more than half", "potluck validate", "--accept-lost-values"]);
    place.assert_untouched();
    assert_eq!(place.line("ledger show --json").json()["refusals"][0]["reason"], "lost-values");
    place.release_north(&["--data", "wrong.csv", "--accept-lost-values"]).ok();
    assert!(place.spent() > 0);
}

#[test]
fn a_query_for_a_database_is_printed_and_its_counts_are_read() {
    let place = Workplace::new();
    let asked = "validate study.toml --party north --table clinic.people --dialect duckdb";
    let printed = place.line(asked).ok();
    assert!(
        printed.stdout.contains("\"clinic\".\"people\"") && printed.stdout.ends_with(";\n"),
        "{}",
        printed.stdout
    );
    assert!(printed.stderr.contains("--counts FILE"), "{}", printed.stderr);
    let fingerprint =
        place.line(&format!("{asked} --json")).json()["fingerprint"].as_str().unwrap().to_owned();
    let counts = |ids: &str, columns: &str| {
        format!(
            "part,number,value\nquery,0,{fingerprint}\ntypes,0,DOUBLE;VARCHAR;BIGINT\nids,0,{ids}\ncolumns,0,{columns}\n"
        )
    };
    place.write("counts.csv", counts("40 40 0 0 0 0 0", "0 0 1 0 0 1 0 0 2 3 0"));
    let said = place.line(&format!("{asked} --counts counts.csv")).ok().stdout;
    for words in ["40 rows, as the study says", "another unit", "7.5% of the values are none of its levels"] {
        assert!(said.contains(words), "{words}: {said}");
    }
    place.write("counts.csv", counts("41 39 1 0 0 0 0", "0 41 0 0 0 0 1 0 0 0 0"));
    let bad = place.line(&format!("{asked} --counts counts.csv"));
    assert_eq!(bad.code, 3);
    for words in ["ids are missing", "stands in several rows", "more rows", "more than half of its values"] {
        assert!(bad.stdout.contains(words), "{words}: {}", bad.stdout);
    }
    // Counts of another table are not taken.
    place
        .line("validate study.toml --party north --table other --dialect duckdb --counts counts.csv")
        .refused(3, &["is not the result of the query"]);
    place.assert_untouched();
}
