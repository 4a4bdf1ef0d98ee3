//! Parties that hold different people, or write the ids of the same people differently, with the
//! real binary: what everybody who looks is told first.
#![allow(clippy::unwrap_used)]

mod support;

use std::fmt::Write as _;

use serde_json::Value;
use support::Workplace;

const PEOPLE: u64 = 20_000;

/// A number in 0..1 for a person and a column, the same every time.
fn uniform(person: u64, column: u64) -> f64 {
    let mut x = (person * 8 + column).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((x ^ (x >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
}

/// The public dataset of a registry that knows ages, of which a tenth is missing, and a clinic that
/// measures scores. Ids of the first are like P000007, of the second like P7. The clinic has only
/// people above a certain age, if one is given.
fn joined(settings: &str, youngest: f64) -> (Workplace, String) {
    let place = Workplace::empty();
    let study = potluck_fixtures::study("scores", PEOPLE)
        .of_cohorts()
        .settings(&format!("id = \"text\"\n{settings}"))
        .privacy(20.0, 1e-6)
        .party("registry", &["age lo = 20; hi = 90; unit = \"years\"", "income lo = 0; hi = 100"])
        .party("clinic", &["score lo = 0; hi = 100"]);
    place.write("study.toml", study.to_string());
    place.run(&["study", "seal", "study.toml"]).ok();
    let (mut registry, mut clinic) = ("id,age,income\n".to_owned(), "id,score\n".to_owned());
    for person in 0..PEOPLE {
        let years = 20.0 + 70.0 * uniform(person, 1);
        let score = 10.0 + 0.5 * years + 20.0 * uniform(person, 2);
        let age = if uniform(person, 4) < 0.1 { String::new() } else { format!("{years:.2}") };
        let income = if uniform(person, 5) < 0.3 { 0.0 } else { 100.0 * uniform(person, 3) };
        writeln!(registry, "P{person:06},{age},{income:.2}").unwrap();
        if years >= youngest {
            writeln!(clinic, "P{person},{score:.2}").unwrap();
        }
    }
    for (party, table) in [("registry", registry), ("clinic", clinic)] {
        place.write(&format!("{party}.csv"), table);
        place.line(&format!("ledger init --ledger {party}.ledger --budget t --epsilon 20 --delta 1e-6")).ok();
        let files = format!("--data {party}.csv --ledger {party}.ledger --out {party}.parquet");
        place.line(&format!("release study.toml --party {party} {files} --yes --accept-low-accuracy")).ok();
    }
    let ran = place.line("join study.toml registry.parquet clinic.parquet --out public.parquet").ok();
    let said = ran.stderr.clone();
    (place, said)
}

fn first_line(text: &str) -> String {
    text.split("\n\n").next().unwrap().split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The words of a page from its heading on, without its marks.
fn words_of(page: &str) -> String {
    let mut text = String::new();
    let mut inside = false;
    for letter in page[page.find("</h1>").unwrap()..].chars() {
        match letter {
            '<' => inside = true,
            '>' => inside = false,
            letter if !inside => text.push(letter),
            _ => {}
        }
    }
    text
}

#[test]
fn ids_that_do_not_match_are_said_on_the_first_line_of_everything() {
    let (place, said) = joined("", 0.0);
    let warning = "Careful: registry and clinic have hardly anybody in common, at most ";
    assert!(said.starts_with(warning) && said.contains("do their ids match?"), "{said}");
    let inspected = place.line("inspect public.parquet").ok().stdout;
    assert!(inspected.starts_with(warning), "{inspected}");
    assert!(inspected.contains("nobody in common"), "{inspected}");

    let text = place.line("fit public.parquet --label score --report report.html").ok().stdout;
    let first = "Careful: The parties that hold score and age and income have hardly anybody in common: do their ids match? Do not rely on their intervals, nor on R².";
    assert_eq!(first_line(&text), first);
    assert!(text.lines().any(|line| line.contains("R² = ") && line.contains("nobody in common")), "{text}");
    let report = place.read("report.html");
    assert!(words_of(&report).starts_with(first), "{}", &words_of(&report)[..300]);
    for learner in ["ols", "debiased"] {
        let text = place.line(&format!("fit public.parquet --label score --learner {learner}")).ok().stdout;
        assert_eq!(first_line(&text), first);
    }

    // Programs get it, too.
    let model = place.line("fit public.parquet --label score --json").json();
    assert_eq!(model["coefficients"][0]["findings"][0]["kind"], "nobody-in-common");
    assert_eq!(model["diagnostics"]["r_squared_findings"][0]["kind"], "nobody-in-common");
    let people = &place.line("inspect public.parquet --json").json()["people"];
    assert_eq!(people["overlaps"][0]["finding"], "nobody-in-common");
}

#[test]
fn ids_that_rules_make_alike_match() {
    let (place, said) = joined("id_rules = [\"strip-zeros\"]", 0.0);
    assert!(!said.contains("Careful"), "{said}");
    let text = place.line("fit public.parquet --label score --report report.html").ok().stdout;
    assert!(!text.contains("do their ids match"), "{text}");
    assert!(text.contains("people of the label's party = ") && text.contains("  people\n"), "{text}");
    let model = place.line("fit public.parquet --label score --json").json();
    assert_eq!(model["estimand"], "label-people");
    let age = &model["coefficients"][0]["value"];
    let errors = (age["estimate"].as_f64().unwrap() - 0.5) / age["standard_error"].as_f64().unwrap();
    assert!(errors.abs() < 4.0, "{age}");

    let inspected = place.line("inspect public.parquet").ok().stdout;
    assert!(inspected.contains("differ from all of a party's by no more than noise hides"), "{inspected}");
    let document = place.line("inspect public.parquet --json").json();
    let close = |value: &Value, truth: f64, off: f64| {
        assert!((value.as_f64().unwrap() - truth).abs() < off, "{value} is not {truth}");
    };
    close(&document["people"]["overlaps"][0]["share"], 1.0, 0.2);
    let [age, income] = [0, 1].map(|at| &document["summary"][0]["columns"][at]);
    close(&document["summary"][0]["people"]["value"], PEOPLE as f64, 0.02 * PEOPLE as f64);
    close(&age["missing"]["value"], 0.1, 0.03);
    close(&income["missing"]["value"], 0.0, 0.03);
    close(&income["distribution"]["zeros"]["value"], 0.3, 0.02);
    close(&age["distribution"]["quantiles"][2]["value"], 55.0, 4.0);
    let interval = &income["distribution"]["quantiles"][3];
    let [low, value, high] = ["low", "value", "high"].map(|key| interval[key].as_f64().unwrap());
    assert!(low <= value && value <= high && low < 64.3 && 64.3 < high, "{interval}");
    let report = place.read("report.html");
    for said in ["Who is where", "Whom parties have in common", "How values are distributed", "who is where"]
    {
        assert!(report.contains(said), "no {said:?}");
    }
}

#[test]
fn people_whom_parties_share_are_told_apart_from_the_rest() {
    let (place, _) = joined("id_rules = [\"strip-zeros\"]", 55.0);
    let text = place.line("inspect public.parquet").ok().stdout;
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let said = "- The people whom registry shares with clinic differ from all of its own: age is ";
    assert!(text.contains(said) && text.contains("standard deviations higher."), "{text}");
    assert!(text.contains("Coefficients are about the people of the label's party."), "{text}");
    let people = &place.line("inspect public.parquet --json").json()["people"];
    let shifts = people["shifts"].as_array().unwrap();
    let age = shifts.iter().find(|shift| shift["column"] == "age").unwrap();
    // Half of all, the older ones: 17.5 of 70 years.
    let difference = age["difference"].as_f64().unwrap();
    assert!((difference - 17.5).abs() < 4.0 && age["clear"] == true, "{age}");
    assert!(shifts.iter().all(|shift| shift["column"] == "age" || shift["clear"] == false), "{people}");
}

#[test]
fn a_new_study_of_different_people_is_one_and_plans_with_a_guess() {
    let place = Workplace::empty();
    place.line("study new --format 2 --out study.toml").ok();
    place.line("study check study.toml").ok();
    let text = place.read("study.toml");
    for key in ["# overlap = ", "# id_rules = ", "# typical = ", "\n# rows = 80000", "missing = \"counted\""]
    {
        assert!(text.contains(key), "{key} is not in {text}");
    }
    // What it offers can be taken.
    let taken = text
        .replace("id = \"integer\"", "id = \"text\"")
        .replace("# overlap", "overlap")
        .replace("# id_rules", "id_rules")
        .replace("# rows", "rows")
        .replace("# typical", "typical");
    place.write("taken.toml", taken);
    place.line("study check taken.toml").ok();

    let outlook =
        |overlap: &str| place.line(&format!("plan study.toml {overlap} --json")).json()["outlook"].clone();
    let error = |outlook: &Value| outlook["coefficient_error"].as_f64().unwrap();
    let (all, half) = (outlook(""), outlook("--overlap 0.5"));
    assert_eq!((&all["overlap"], &half["overlap"]), (&Value::from(1.0), &Value::from(0.5)));
    assert!(error(&half) > 1.5 * error(&all), "{all} {half}");
    let rows = |outlook: &Value| outlook["smallest_useful_rows"].as_u64().unwrap();
    assert!(rows(&half) > 2 * rows(&all));
    let said = place.line("plan study.toml --overlap 0.5").ok().stdout;
    assert!(said.contains("have 50% of the smaller one's people in common"), "{said}");
    assert!(said.contains("only add noise"), "{said}");
    place.line("plan study.toml --overlap 1.5").refused(2, &["0 to 1"]);
    place.line("study new --out one.toml").ok();
    assert!(place.line("plan one.toml --json").json()["outlook"]["overlap"].is_null());
    place.line("plan one.toml --overlap 0.5").refused(2, &["format = 2"]);
    place.line("simulate one.toml --overlap 0.5 --rows 1000").refused(2, &["format = 2"]);
}

#[test]
fn a_steward_sees_what_rules_make_of_ids() {
    let place = Workplace::empty();
    let study = potluck_fixtures::study("ids", 1000)
        .of_cohorts()
        .settings("id = \"text\"\nid_columns = [\"code\", \"born\"]\nid_rules = [\"trim\", \"lowercase\", \"date\"]")
        .party("north", &["age lo = 0; hi = 100"])
        .party("south", &["score lo = 0; hi = 100"]);
    place.write("study.toml", study.to_string());
    let table =
        "code,born,age\n P7,1987/06/05,20\np8,1987-06-05,30\nP7\t,19870605,40\n\"x\u{1b}\",1990-01-01,50\n";
    place.write("north.csv", table);
    let outcome = place.line("ids study.toml --party north --data north.csv");
    let text = &outcome.stdout;
    assert_eq!(outcome.code, 3, "{}", outcome.stderr);
    assert!(
        outcome.stderr.contains("1 row has the id of an earlier one, and 0 have none"),
        "{}",
        outcome.stderr
    );
    for said in [
        "ids in code, born; rules of the study: trim, lowercase, date",
        "4 rows, 2 of whose ids the rules change",
        "1 row has the id of an earlier one, 1 of them because of the rules",
        "\"p7\" + \"1987-06-05\"",
        "Rows that would be taken for the same person:",
        "written nowhere",
        "\\u{1b}",
    ] {
        assert!(text.contains(said), "no {said:?} in {text}");
    }
    let counts = place.line("ids study.toml --party north --data north.csv --show 0").stdout;
    assert!(!counts.contains("p7") && counts.contains("4 rows"), "{counts}");
    let before = std::fs::read_dir(place.folder()).unwrap().count();
    assert_eq!(before, 2, "nothing is written");
    place.write("north.csv", table.replace("P7\t,19870605", ",19870605"));
    let json = place.line("ids study.toml --party north --data north.csv --json");
    let value: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!((&value["rows"], &value["missing"], &value["collisions"]), (&4.into(), &1.into(), &0.into()));
    place.line("ids study.toml --party west --data north.csv").refused(3, &["west"]);
}
