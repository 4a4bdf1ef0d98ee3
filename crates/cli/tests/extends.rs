//! A latecomer adds columns to a study whose releases are published: sealed, released, joined,
//! fitted and verified with the real binary.
#![allow(clippy::unwrap_used)]

mod support;

use serde_json::Value;
use support::Workplace;

const ROWS: usize = 50_000;

/// A study of two of the demo's parties.
fn first() -> String {
    potluck_fixtures::study("first", ROWS as u64)
        .privacy(2.0, 1e-6)
        .party("north", &["age lo = 20; hi = 90", "bmi lo = 15; hi = 45"])
        .party("registry", &["smoker levels = [\"no\", \"yes\"]", "pressure lo = 90; hi = 190"])
        .to_string()
}

/// The study of the third, which extends the one with this id.
fn second(base: &str) -> String {
    potluck_fixtures::study("second", ROWS as u64)
        .settings(&format!("extends = \"{base}\""))
        .privacy(2.0, 1e-6)
        .party("south", &["salt lo = 2; hi = 16", "exercise lo = 0; hi = 12"])
        .to_string()
}

/// Made-up patients, a base study of two parties with both releases, and an unsealed study of a
/// third that extends it.
struct Latecomer {
    place: Workplace,
    /// What the demo says of the coefficients of the made-up patients.
    demo: Value,
    base: String,
}

impl Latecomer {
    fn new() -> Self {
        let place = Workplace::empty();
        let demo = place.line(&format!("demo --out demo --rows {ROWS} --json")).json();
        place.write("base.toml", first());
        let sealed = place.line("study seal base.toml --out base.sealed.toml --json").json();
        let base = sealed["id"].as_str().unwrap().to_owned();
        place.write("later.toml", second(&base));
        let latecomer = Self { place, demo, base };
        for party in ["north", "registry"] {
            latecomer.release("base.sealed.toml", party).ok();
        }
        latecomer
    }

    fn release(&self, study: &str, party: &str) -> support::Outcome {
        let ledger = format!("{party}.sqlite");
        if !self.place.path(&ledger).exists() {
            self.place
                .line(&format!("ledger init --ledger {ledger} --budget t --epsilon 2 --delta 1e-6"))
                .ok();
            self.place.line(&format!("key new --out {party}.key")).ok();
        }
        self.place.line(&format!(
            "release {study} --party {party} --data demo/private/{party}.csv --ledger {ledger} --signing-key {party}.key --out {party}.parquet --yes --accept-low-accuracy"
        ))
    }
}

fn joint(plan: &Value) -> f64 {
    plan["joint"]["epsilon"].as_f64().unwrap()
}

#[test]
fn a_latecomer_joins_a_study_that_is_published() {
    let latecomer = Latecomer::new();
    let place = &latecomer.place;

    // Planning, before it is sealed and after.
    let before = place.line("plan base.sealed.toml --json").json();
    place.line("plan later.toml").refused(3, &["extends", &latecomer.base, "--base FILE"]);
    let draft = place.line("plan later.toml --base base.sealed.toml --json").json();
    assert_eq!(draft["sealed"], false);
    assert_eq!(draft["parties"].as_array().unwrap().len(), 3);
    assert_eq!(draft["k"], before["k"]);
    assert_eq!(draft["per_party"], before["per_party"]);
    assert!(joint(&draft) > joint(&before), "the joint guarantee grows");
    assert_eq!(draft["parties"][0], before["parties"][0], "the parties of the base are as they were");
    assert_eq!(draft["own_parties"], serde_json::json!(["south"]));
    let checked = place.line("study check later.toml --base base.sealed.toml").ok().stdout;
    assert!(
        checked.contains("3 parties") && checked.contains("adds 1 party to study \"first\""),
        "{checked}"
    );
    place.line("simulate later.toml --base base.sealed.toml --label pressure --releases 2 --rows 3000").ok();
    place.line("study seal later.toml").refused(3, &["--base FILE"]);
    place
        .line("study seal later.toml --base base.sealed.toml --out base.sealed.toml --force")
        .refused(2, &["needed"]);
    place.line("study seal later.toml --base base.sealed.toml --out later.sealed.toml").ok();
    let sealed = place.line("plan later.sealed.toml --json").json();
    assert_eq!(sealed["joint"], draft["joint"]);
    assert_eq!(sealed["extends"], latecomer.base.as_str());
    place.line("plan later.sealed.toml --base base.sealed.toml").refused(2, &["leave --base out"]);
    place.line("simulate later.sealed.toml --releases 2 --rows 3000").ok();

    // Everyone releases under the study that lists them, and nobody is charged for trying
    // otherwise.
    std::fs::remove_file(place.path("base.sealed.toml")).unwrap();
    std::fs::rename(place.path("north.parquet"), place.path("kept.parquet")).unwrap();
    latecomer.release("later.sealed.toml", "north").refused(3, &["north", &latecomer.base, "first"]);
    assert!(!place.path("north.parquet").exists());
    place
        .line("sums later.sealed.toml --party north --data demo/private/north.csv --state audit")
        .refused(3, &[&latecomer.base]);
    latecomer.release("later.sealed.toml", "south").ok();
    place.line("sums later.sealed.toml --party south --data demo/private/south.csv --state audit").ok();
    let release = place.line("inspect south.parquet --json").json();
    assert_eq!(release["study"]["study"]["extends"], latecomer.base.as_str());

    // Joined under the extension; the label is the base's, a feature the latecomer's.
    let joined = place
        .line(
            "join later.sealed.toml kept.parquet south.parquet registry.parquet --out public.parquet --json",
        )
        .json();
    assert_eq!(joined["parties"], serde_json::json!(["north", "registry", "south"]));
    assert_eq!(joined["joint"]["epsilon"], sealed["joint"]["epsilon"]);
    let verified = place
        .line("verify later.sealed.toml public.parquet south.parquet kept.parquet --key north=north.key.pub --key registry=registry.key.pub --key south=south.key.pub")
        .ok()
        .stdout;
    assert_eq!(verified.matches("signed with the key given").count(), 5, "{verified}");
    let model =
        place.line("fit public.parquet --label pressure --out model.json --report report.html --json").json();
    assert_eq!(model["coefficients"].as_array().unwrap().len(), 5);
    for coefficient in latecomer.demo["coefficients"].as_array().unwrap() {
        let name = coefficient["name"].as_str().unwrap();
        let found = model["coefficients"].as_array().unwrap().iter().find(|found| {
            let term = &found["term"];
            let column = term["numeric"]["column"].as_str().or(term["level"]["column"].as_str());
            column.is_some_and(|column| name.starts_with(column))
        });
        let value = &found.unwrap_or_else(|| panic!("no {name} in {model}"))["value"];
        let error = value["estimate"].as_f64().unwrap() - coefficient["true"].as_f64().unwrap();
        assert!(error.abs() < 6.0 * value["standard_error"].as_f64().unwrap(), "{name}: {value}");
    }
    let privacy = model["privacy"].to_string();
    assert!(privacy.contains("all 3 releases"), "{privacy}");
    assert!(place.read("report.html").contains(&latecomer.base));
    place.write("new.csv", "age,bmi,smoker,salt,exercise\n40,24,no,6,5\n");
    assert_eq!(place.line("predict model.json --data new.csv").ok().stdout.lines().count(), 2);
    let described = place.line("inspect later.sealed.toml").ok().stdout;
    assert!(described.contains("north (releases under \"first\"):"), "{described}");
    place.line("inspect public.parquet").ok();
}

#[test]
fn extensions_that_do_not_fit_or_were_edited_are_refused() {
    let place = Workplace::empty();
    place.write("base.toml", first());
    let seal = |line: &str| {
        place.line(&format!("study seal {line} --json")).json()["id"].as_str().unwrap().to_owned()
    };
    let base = seal("base.toml --out base.sealed.toml");
    let twin = seal("base.toml --out twin.sealed.toml");
    let later = second(&base);
    for (from, to, words) in [
        ("rows = 50000", "rows = 50001", ["study.rows", "set rows = 50000"]),
        ("epsilon = 2.0", "epsilon = 3.0", ["privacy.epsilon", "set epsilon = 2.0"]),
        ("name = \"south\"", "name = \"north\"", ["\"north\"", "new parties only"]),
        ("name = \"salt\"", "name = \"age\"", ["\"age\"", "unique"]),
    ] {
        place.write("later.toml", later.replace(from, to));
        place.line("study seal later.toml --base base.sealed.toml").refused(3, &words);
    }
    place.write("later.toml", &later);
    place.line("study seal later.toml --base twin.sealed.toml").refused(3, &["study.extends", &base, &twin]);
    place.line("study seal later.toml --base base.toml").refused(3, &["not sealed"]);
    place.line("study seal base.toml --base base.sealed.toml").refused(3, &["leave --base out"]);
    place.line("study seal later.toml --base base.sealed.toml --out later.sealed.toml").ok();
    place.line("verify later.sealed.toml").ok();

    let sealed = place.read("later.sealed.toml");
    // The base, whole and valid by itself, but not the one that is named.
    let (own, twin_text) = (place.read("base.sealed.toml"), place.read("twin.sealed.toml"));
    let key = |text: &str| {
        let line = text.lines().find(|line| line.starts_with("mixing_key")).unwrap();
        line.split('"').nth(1).unwrap().to_owned()
    };
    let swapped = sealed.replace(&base, &twin).replace(&key(&own), &key(&twin_text));
    let k = sealed.lines().find(|line| line.starts_with("k = ")).unwrap();
    let edits = [
        sealed.replacen(k, &format!("{k}1"), 1),
        sealed.replacen(&key(&own), &key(&twin_text), 1),
        sealed.replace(&key(&own), &key(&twin_text)),
        sealed.replace("name = \"first\"", "name = \"other\""),
        sealed.replacen("standardise-sum = ", "standardise-sum = 1", 1),
        swapped,
    ];
    for (at, edited) in edits.iter().enumerate() {
        assert_ne!(*edited, sealed, "{at}");
        place.write("edited.toml", edited);
        place.line("verify edited.toml").refused(5, &["seal is wrong"]);
    }
}
