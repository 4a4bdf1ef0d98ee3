//! What a refusal tells, and to whom, with the real binary: nothing by default, and never without a
//! trace.
#![allow(clippy::unwrap_used)]

mod support;

use std::fs;

use support::{STUDY, Workplace, north_csv};

const LEVELS: &str = "levels = [\"no\", \"yes\"]\n";
const WARNING: &[&str] = &["Careful:", "north refuse its table", "levels of smoker", "no budget limits"];

fn strict() -> Workplace {
    Workplace::with_study(&STUDY.replace(LEVELS, &format!("{LEVELS}unknown = \"error\"\n")))
}

fn with_unknown() -> String {
    north_csv().replacen(",yes\n", ",HIV\n", 1)
}

#[test]
fn by_default_nobody_learns_from_an_exit_code_what_levels_there_are() {
    let place = Workplace::new();
    let plan = place.line("plan study.toml").ok().stdout;
    assert!(!plan.contains("refuse its table"), "{plan}");
    place.write("hiv.csv", with_unknown());
    let outcome = place.release_north(&["--data", "hiv.csv"]).ok();
    assert!(!outcome.stderr.contains("refuse"), "{}", outcome.stderr);
    assert_eq!(place.line("ledger show --json").json()["refusals"], serde_json::json!([]));
}

#[test]
fn a_study_that_refuses_is_warned_of_wherever_a_party_could_agree_to_it() {
    let place = strict();
    let plan = place.line("plan study.toml").ok().stdout;
    let warnings = place.line("plan study.toml --json").json()["warnings"].to_string();
    let release = place.release_north(&[]).ok().stderr;
    for text in [plan, warnings, release] {
        assert!(WARNING.iter().skip(1).all(|words| text.contains(words)), "{text}");
        assert!(!text.contains('\u{1b}'), "colours are for terminals: {text}");
    }
    let missing = STUDY.replace("hi = 100\n", "hi = 100\nmissing = \"error\"\n");
    let plan = Workplace::with_study(&missing).line("plan study.toml").ok().stdout;
    assert!(plan.contains("with a missing value of age"), "{plan}");
}

#[test]
fn refusals_are_counted_for_the_steward() {
    let place = strict();
    place.write("hiv.csv", with_unknown());
    place.write("short.csv", "id,age,smoker\n1,20,no\n");
    for _ in 0..2 {
        let outcome = place.release_north(&["--data", "hiv.csv"]);
        outcome.refused(3, WARNING);
        outcome.refused(3, &["unknown = \"missing\"", "levels are public"]);
        assert!(!outcome.stderr.contains("HIV"), "{}", outcome.stderr);
        place.assert_untouched();
    }
    let outcome = place.release_north(&["--data", "short.csv"]);
    outcome.refused(3, &["fewer rows", "refused 2 times"]);
    // What does not depend on rows is not counted.
    place.write("wrong.csv", "id,age\n1,20\n");
    place.release_north(&["--data", "wrong.csv"]).refused(3, &["is missing"]);

    let shown = place.line("ledger show").ok().stdout;
    for words in ["test", "north", "refusals", "3", "number of rows, missing value or unknown level"] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    let ledger = place.line("ledger show --json").json();
    let reasons: Vec<&str> =
        ledger["refusals"].as_array().unwrap().iter().map(|r| r["reason"].as_str().unwrap()).collect();
    assert_eq!(reasons, ["value", "value", "rows"]);
    assert_eq!(ledger, place.line("ledger export").json());
    assert!(!ledger.to_string().contains("HIV") && !ledger.to_string().contains("smoker"), "{ledger}");
}

#[test]
fn one_release_is_not_drawn_under_two_budgets() {
    let place = Workplace::new();
    place.line("ledger init --budget clients --epsilon 1 --delta 1e-5").ok();
    place.release_north(&["--budget", "people"]).ok();
    let before = place.line("ledger show --json").json();
    let again = ["--budget", "clients", "--out", "second.parquet"];
    let mut arguments = vec!["release", "study.toml", "--party", "north", "--data", "north.csv", "--yes"];
    arguments.extend(again);
    arguments.push("--accept-low-accuracy");
    place.run(&arguments).refused(4, &["\"people\"", "--budget people", "nothing was read or charged"]);
    let state =
        ["sql", "study.toml", "--party", "north", "--state", "s", "--table", "t", "--dialect", "duckdb"];
    place.run(&[state.as_slice(), &["--budget", "clients"]].concat()).refused(4, &["--budget people"]);
    assert!(!place.path("second.parquet").exists());
    assert_eq!(place.line("ledger show --json").json(), before);
    // The other party is another release.
    place.line("release study.toml --party south --data south.csv --budget clients --out s.parquet --yes --accept-low-accuracy").ok();
}

#[test]
fn a_release_that_was_drawn_is_written_again_without_its_table() {
    let place = Workplace::new();
    place.release_north(&[]).ok();
    let (spent, bytes) = (place.spent(), fs::read(place.path("north.release.parquet")).unwrap());
    fs::remove_file(place.path("north.csv")).unwrap();
    fs::remove_file(place.path("north.release.parquet")).unwrap();
    let again = place.release_north(&["--json"]).json();
    assert_eq!(again["repeated"], true);
    assert!(fs::read(place.path("north.release.parquet")).unwrap() == bytes);
    assert_eq!(place.spent(), spent);
}

/// What can be known without an answer is refused before anyone would be asked.
#[test]
fn budget_and_output_are_looked_at_before_anyone_is_asked() {
    let place = Workplace::new();
    let release =
        |more: &str| place.line(&format!("release study.toml --party north --data north.csv {more}"));
    place.write("mine.parquet", "mine");
    release("--out mine.parquet --accept-low-accuracy").refused(3, &["exists already"]);
    place.line("ledger init --ledger poor.sqlite --budget people --epsilon 0.1 --delta 1e-5").ok();
    let poor = "--out o --ledger poor.sqlite --accept-low-accuracy";
    release(poor).refused(4, &["does not allow"]);
    release("--out o --accept-low-accuracy").refused(2, &["charge 100.0% of budget", "--yes"]);
    place.assert_untouched();
}
