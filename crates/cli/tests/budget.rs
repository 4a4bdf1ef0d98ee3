//! Budgets in words that people plan with, with the real binary: what is left, what can be done,
//! raising one; and what is said of a release that ended early.
#![allow(clippy::unwrap_used)]

mod support;

use std::process::Stdio;
use std::time::{Duration, Instant};

use support::{STUDY, Workplace};

#[test]
fn what_is_left_is_said_as_the_largest_epsilon_of_one_more_release() {
    let place = Workplace::new();
    let shown = place.line("ledger show").ok().stdout;
    assert!(shown.contains("ε = 1, δ = 1e-5 in all; ε = 0 is spent"), "{shown}");
    assert!(shown.contains("may have up to ε = 1 at δ = 1e-5") && !shown.contains('μ'), "{shown}");
    let at_other = place.line("ledger show --delta 1e-8").ok().stdout;
    assert!(at_other.contains("at δ = 1e-5") && at_other.contains("at δ = 1e-8"), "{at_other}");
    assert!(place.line("ledger show --verbose").ok().stdout.contains("μ²"));
    place.release_north(&[]).ok();
    let shown = place.line("ledger show").ok().stdout;
    assert!(shown.contains("left: nothing that a release at δ = 1e-5 could have"), "{shown}");
    let budget = place.line("ledger show --json").json()["budgets"][0].clone();
    assert_eq!(budget["epsilon_left"], 0.0);
    assert!((0.999..1.001).contains(&budget["epsilon_spent"].as_f64().unwrap()), "{budget}");
}

#[test]
fn a_refusal_offers_what_is_possible_and_a_raise_makes_it_so() {
    let place = Workplace::new();
    place.release_north(&[]).ok();
    let south =
        "release study.toml --party south --data south.csv --out s.parquet --yes --accept-low-accuracy";
    let refused = place.line(south);
    refused
        .refused(4, &["ε = 1, δ = 1e-5", "Nothing is left", "potluck ledger raise", "weakens the promise"]);
    assert!(!refused.stderr.contains('μ') && !refused.stderr.contains("Lower"), "{}", refused.stderr);

    let raise = "ledger raise --budget people --epsilon 2 --delta 1e-5";
    let asked = place.line(raise);
    asked.refused(2, &["within ε = 1, δ = 1e-5", "within ε = 2, δ = 1e-5", "out already included", "--yes"]);
    place.line(south).refused(4, &["Nothing is left"]);
    let raised = place.line(&format!("{raise} --yes")).ok();
    assert!(
        raised.stdout.contains("ε = 2") && raised.stdout.contains("further release"),
        "{}",
        raised.stdout
    );
    place.line(south).ok();
    let shown = place.line("ledger show").ok().stdout;
    assert!(shown.contains("from ε = 1, δ = 1e-5 to ε = 2, δ = 1e-5"), "{shown}");
    assert_eq!(place.line("ledger export").json()["raises"][0]["epsilon"], 2.0);
    place.line(&format!("{raise} --yes")).refused(4, &["never lowered"]);
}

#[test]
fn a_ledger_from_a_backup_is_told_from_the_newest_one() {
    let place = Workplace::new();
    let (ledger, backup) = (place.path("ledger.sqlite"), place.path("backup.sqlite"));
    std::fs::copy(&ledger, &backup).unwrap();
    place.release_north(&[]).ok();
    std::fs::copy(&backup, &ledger).unwrap();
    let shown = place.line("ledger show").ok().stdout;
    assert!(shown.starts_with("Careful: this ledger is older") && shown.contains("north"), "{shown}");
    let south =
        "release study.toml --party south --data south.csv --out s.parquet --yes --accept-low-accuracy";
    let words = ["north under \"test\"", "nothing was read or charged", "newest copy", "nothing is left"];
    place.line(south).refused(4, &words);
    assert!(!place.path("s.parquet").exists());
}

/// Another study for the rest of a budget is offered an ε, and a release with it is charged.
#[test]
fn the_epsilon_that_is_offered_can_be_released() {
    let place = Workplace::with_study(&STUDY.replace("epsilon = 1.0", "epsilon = 0.8"));
    place.release_north(&[]).ok();
    let left = place.line("ledger show --json").json()["budgets"][0]["epsilon_left"].as_f64().unwrap();
    assert!(left > 0.1 && left < 0.8, "{left}");
    let release =
        "release other.toml --party south --data south.csv --out s.parquet --yes --accept-low-accuracy";
    place.write("other.toml", STUDY.replace("epsilon = 1.0", &format!("epsilon = {}", left + 0.001)));
    place.line("study seal other.toml").ok();
    place.line(release).refused(4, &[&format!("ε up to {left}")]);
    place.write("other.toml", STUDY.replace("epsilon = 1.0", &format!("epsilon = {left}")));
    place.line("study seal other.toml").ok();
    place.line(release).ok();
}

#[test]
fn what_plan_warns_of_is_said_wherever_people_sign() {
    let text = STUDY.replace("delta = 1e-5", "delta = 0.1").replace("epsilon = 1.0", "epsilon = 12.0");
    let place = Workplace::empty();
    place.write("study.toml", text);
    let warnings = ["Careful: δ is larger than 1 in the number of subjects", "Careful: ε is large"];
    let check = place.line("study check study.toml").ok();
    let seal = place.line("study seal study.toml").ok();
    let plan = place.line("plan study.toml").ok();
    place.write("north.csv", support::north_csv());
    place.line("ledger init --budget people --epsilon 20 --delta 0.2").ok();
    let release =
        place.line("release study.toml --party north --data north.csv --out n --accept-low-accuracy");
    assert_eq!(release.code, 2);
    for (what, said) in [
        ("check", &check.stderr),
        ("seal", &seal.stderr),
        ("plan", &plan.stdout),
        ("release", &release.stderr),
    ] {
        assert!(warnings.iter().all(|words| said.contains(words)), "{what}: {said}");
        assert!(said.contains("joint guarantee"), "{what}: {said}");
    }
    let planned = place.line("plan study.toml --json").json()["warnings"].clone();
    assert_eq!(place.line("study check study.toml --json").json()["warnings"], planned);
}

#[test]
fn a_mistyped_command_and_a_workbook_are_recognised() {
    let place = Workplace::new();
    place.line("fti public.parquet").refused(2, &["fti", "did you mean 'fit'?"]);
    place.line("ledger shwo").refused(2, &["'show'"]);
    place.write(
        "north.xlsx",
        b"PK\x03\x04\x14\x00\x06\x00\x08\x00\x00\x00!\x00[Content_Types].xml".as_slice(),
    );
    place.write("north.xls", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1".as_slice());
    place.write("north.zip", b"PK\x03\x04\x14\x00\x00\x00north.csv".as_slice());
    for (file, words) in
        [("xlsx", "Excel workbook (.xlsx)"), ("xls", "old Excel (.xls)"), ("zip", "is a zip archive")]
    {
        let outcome = place.release_north(&["--data", &format!("north.{file}")]);
        outcome.refused(3, &[words]);
        assert!(file == "zip" || outcome.stderr.contains("CSV UTF-8"), "{}", outcome.stderr);
    }
    place.assert_untouched();
}

/// A table that takes a while to read, from a pipe that stays open.
#[cfg(unix)]
#[test]
fn ctrl_c_says_whether_the_charge_stands_and_what_to_do() {
    let rows = 3_000_000_u64;
    let place = Workplace::with_study(&STUDY.replace("rows = 40", &format!("rows = {rows}")));
    let line = |i: u64| format!("{i},{},{}\n", 20 + i % 80, ["no", "yes"][(i % 2) as usize]);
    let table: String = (0..rows).map(line).collect();
    place.write("north.csv", format!("id,age,smoker\n{table}"));
    let release = "release study.toml --party north --data north.csv --out north.release.parquet --yes --accept-low-accuracy --threads 1";
    let interrupted = |charged: bool| {
        let mut child = place
            .command(&release.split_whitespace().collect::<Vec<_>>())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // The ledger is locked while a release is drawn, so only its words tell when it is charged.
        let mut stderr = std::io::BufReader::new(child.stderr.take().unwrap());
        let mut said = String::new();
        let started = Instant::now();
        while charged && !said.contains("Charged.") {
            assert!(started.elapsed() < Duration::from_secs(120), "{said}");
            std::io::BufRead::read_line(&mut stderr, &mut said).unwrap();
        }
        if !charged {
            while !said.contains("notices whether") {
                std::io::BufRead::read_line(&mut stderr, &mut said).unwrap();
            }
            std::thread::sleep(Duration::from_millis(200));
        }
        let killed = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status();
        assert!(killed.unwrap().success());
        std::io::Read::read_to_string(&mut stderr, &mut said).unwrap();
        child.wait().unwrap();
        said
    };
    let before = interrupted(false);
    assert!(before.contains("Nothing was charged") && before.contains("stopped"), "{before}");
    place.assert_untouched();
    let after = interrupted(true);
    assert!(after.contains("The charge stands") && after.contains("run the same command again"), "{after}");
    let shown = place.line("ledger show").ok().stdout;
    assert!(shown.contains("charged, not yet published") && shown.contains("Run the same"), "{shown}");
    let spent = place.spent();
    place.line(release).ok();
    assert_eq!(place.spent(), spent, "one release, one charge");
}
