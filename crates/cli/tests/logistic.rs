//! Logistic regressions and correlations by the command, on a table made for it.
#![allow(clippy::unwrap_used)]

mod support;

use std::fmt::Write as _;
use std::sync::LazyLock;

use serde_json::Value;
use support::Workplace;

const PEOPLE: u64 = 100_000;

/// A number in 0..1 for a person and a column, the same every time.
fn uniform(person: u64, column: u64) -> f64 {
    let mut x = (person * 16 + column).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((x ^ (x >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
}

/// Something like a standard bell.
fn bell(person: u64, column: u64) -> f64 {
    2.0 * ((0..3).map(|part| uniform(person, column + part)).sum::<f64>() - 1.5)
}

/// A public dataset in which a stroke has odds that age and smoking raise.
static STROKES: LazyLock<Workplace> = LazyLock::new(|| {
    let place = Workplace::empty();
    let study = potluck_fixtures::study("strokes", PEOPLE)
        .privacy(2.0, 1e-6)
        .party("clinic", &["age lo = -10; hi = 110; unit = \"years\"", "smoker levels = [\"no\", \"yes\"]"])
        .party(
            "registry",
            &["stroke levels = [\"no\", \"yes\"]", "region levels = [\"east\", \"north\", \"west\"]"],
        )
        .to_string();
    place.write("study.toml", study);
    place.run(&["study", "seal", "study.toml"]).ok();
    let (mut clinic, mut registry) = ("id,age,smoker\n".to_owned(), "id,stroke,region\n".to_owned());
    let yes_no = |yes: bool| if yes { "yes" } else { "no" };
    for person in 0..PEOPLE {
        let age = 50.0 + 15.0 * bell(person, 0);
        let smoker = uniform(person, 4) < 0.3;
        let odds = -1.5 + 0.05 * (age - 50.0) + 0.9 * f64::from(smoker);
        let stroke = uniform(person, 5) < 1.0 / (1.0 + (-odds).exp());
        let region = ["east", "north", "west"][(3.0 * uniform(person, 6)) as usize];
        writeln!(clinic, "{person},{age:.2},{}", yes_no(smoker)).unwrap();
        writeln!(registry, "{person},{},{region}", yes_no(stroke)).unwrap();
    }
    for (party, table) in [("clinic", clinic), ("registry", registry)] {
        place.write(&format!("{party}.csv"), table);
        place.line(&format!("ledger init --ledger {party}.ledger --budget t --epsilon 2 --delta 1e-6")).ok();
        let files = format!("--data {party}.csv --ledger {party}.ledger --out {party}.parquet");
        place.line(&format!("release study.toml --party {party} {files} --yes --accept-low-accuracy")).ok();
    }
    place.line("join study.toml clinic.parquet registry.parquet --out public.parquet").ok();
    place
});

fn coefficient<'a>(model: &'a Value, name: &str) -> &'a Value {
    let is =
        |one: &&Value| one["term"]["numeric"]["column"] == name || one["term"]["level"]["column"] == name;
    model["coefficients"].as_array().unwrap().iter().find(is).unwrap()
}

fn holds(value: &Value, truth: f64) -> bool {
    value["low"].as_f64().unwrap() <= truth && truth <= value["high"].as_f64().unwrap()
}

#[test]
fn a_logistic_regression_finds_the_odds_that_made_the_labels() {
    // Noise is drawn anew in every run: intervals are so wide that hardly any misses.
    let features = "--features age,smoker --model logistic --level 0.9999";
    let model = STROKES.line(&format!("fit public.parquet --label stroke {features} --json")).json();
    assert_eq!(model["kind"], "logistic");
    assert_eq!(model["estimand"], "log-odds");
    let (age, smoker) = (&coefficient(&model, "age")["value"], &coefficient(&model, "smoker")["value"]);
    assert!(holds(age, 0.05) && holds(smoker, 0.9), "{age} {smoker}");
    assert!(age["estimate"].as_f64().unwrap() > 0.0, "{age}");
    let found = &model["classification"];
    assert!((found["share"].as_f64().unwrap() - 0.26).abs() < 0.03, "{found}");
    let [low, high] = [0, 1].map(|end| found["area_interval"][end].as_f64().unwrap());
    assert!(low < 0.7 && 0.7 < high, "{found}");
    let linear = STROKES.line("fit public.parquet --label stroke --json").json();
    assert!(linear.get("kind").is_none() && linear.get("classification").is_none(), "as before");
    let text = STROKES.line(&format!("fit public.parquet --label stroke {features}")).ok().stdout;
    for words in ["Log odds of stroke", "odds ratio", "area under the curve", "approximation"] {
        assert!(text.contains(words), "no {words:?} in {text}");
    }
}

#[test]
fn predictions_are_probabilities_within_their_intervals() {
    let files = "--report report.html --out model.json";
    STROKES.line(&format!("fit public.parquet --label stroke --model logistic {files} --force")).ok();
    STROKES.write("new.csv", "id,age,smoker,region\n1,30,no,east\n2,80,yes,east\n3,,,north\n");
    let text = STROKES.line("predict model.json --data new.csv --id id").ok().stdout;
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("id,stroke=yes,stroke=yes.low,stroke=yes.high"));
    let rows: Vec<Vec<f64>> =
        lines.map(|line| line.split(',').map(|cell| cell.parse().unwrap()).collect()).collect();
    for row in &rows {
        assert!(0.0 <= row[2] && row[2] <= row[1] && row[1] <= row[3] && row[3] <= 1.0, "{row:?}");
    }
    assert!(rows[0][1] < rows[2][1] && rows[2][1] < rows[1][1], "{rows:?}");
    let json = STROKES.line("predict model.json --data new.csv --json").json();
    assert_eq!(json["predictions"].as_array().unwrap().len(), 3);
    assert!((json["predictions"][1]["high"].as_f64().unwrap() - rows[1][3]).abs() < 1e-4);
    let report = STROKES.read("report.html");
    for words in ["Logistic regression of", "Odds ratio", "Area under the curve", "--model logistic"] {
        assert!(report.contains(words), "no {words:?}");
    }
    let said = STROKES.line("inspect model.json").ok().stdout;
    assert!(said.contains("Log odds of stroke"), "{said}");
}

#[test]
fn labels_without_odds_are_refused_with_a_remedy() {
    let fit = |more: &str| STROKES.line(&format!("fit public.parquet --model logistic {more}"));
    fit("--label age").refused(3, &["\"age\" is a number", "column=level"]);
    fit("--label region").refused(3, &["more than two levels", "region=north"]);
    fit("--label stroke --learner ols").refused(3, &["no log odds", "posterior"]);
    fit("--label region=north --json").json();
}

#[test]
fn correlations_say_what_goes_together_and_what_is_not_resolved() {
    // Noise is drawn anew in every run: intervals are so wide that hardly any misses.
    let found = STROKES.line("correlate public.parquet --level 0.9999 --json").json();
    let pair = |found: &Value, one: &str, other: &str| {
        let names = [one, other];
        let is = |pair: &&Value| {
            names.contains(&pair["one"].as_str().unwrap()) && names.contains(&pair["other"].as_str().unwrap())
        };
        found["pairs"].as_array().unwrap().iter().find(is).cloned()
    };
    let age = pair(&found, "age", "stroke=yes").unwrap();
    assert!(holds(&age, 0.29), "{age}");
    let none = pair(&found, "age", "region=north").unwrap();
    assert!(holds(&none, 0.0), "{none}");
    assert!(pair(&found, "region=north", "region=west").is_none(), "levels exclude each other");
    let together = STROKES.line("correlate public.parquet --together --level 0.9999 --json").json();
    let wider = pair(&together, "age", "stroke=yes").unwrap();
    assert!(wider["high"].as_f64().unwrap() > age["high"].as_f64().unwrap());
    let given = STROKES
        .line("correlate public.parquet --columns age,stroke --given smoker --level 0.9999 --json")
        .json();
    assert_eq!(given["given"][0], "smoker=yes");
    assert!(holds(&given["pairs"][0], 0.29), "{given}");

    let text = STROKES.line("correlate public.parquet --report correlations.html --force").ok().stdout;
    assert!(text.contains("In brackets: not resolved.") && text.contains("by chance"), "{text}");
    let page = STROKES.read("correlations.html");
    assert!(page.contains("<svg") && page.contains("age and stroke=yes"), "{}", page.len());
    STROKES.line("correlate public.parquet --columns age").refused(3, &["at least two"]);
}
