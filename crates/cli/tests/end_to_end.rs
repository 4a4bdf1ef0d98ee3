//! The whole path with the real binary: the demo, the same by hand, and public tables split between
//! parties.
#![allow(clippy::unwrap_used)]

mod support;

use std::env;
use std::path::{Path, PathBuf};

use potluck_fixtures::{csv, study};
use serde_json::Value;
use support::Workplace;

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap()
}

/// Every private coefficient is where its standard error says, six of them wide.
fn assert_plausible(coefficient: &Value) {
    let private = &coefficient["private"];
    let error = number(&private["estimate"]) - number(&coefficient["true"]);
    assert!(error.abs() < 6.0 * number(&private["standard_error"]), "{coefficient}");
    let plain = number(&coefficient["non_private"]) - number(&coefficient["true"]);
    assert!(plain.abs() < 0.02 * number(&coefficient["true"]).abs(), "{coefficient}");
    assert!(number(&private["low"]) < number(&private["estimate"]));
}

#[test]
fn the_demo_writes_everything_it_names() {
    let place = Workplace::empty();
    let demo = place.run(&["demo", "--out", "demo", "--rows", "200000", "--json"]).json();
    let coefficients = demo["coefficients"].as_array().unwrap();
    assert_eq!(coefficients.len(), 5);
    coefficients.iter().for_each(assert_plausible);
    assert_eq!(demo["per_party"]["epsilon"], 1.0);
    assert!(number(&demo["joint"]["epsilon"]) > 1.0);

    let files = [
        "study.toml",
        "north.release.parquet",
        "south.release.parquet",
        "registry.release.parquet",
        "public.parquet",
    ];
    for file in files {
        place.run(&["verify", &format!("demo/{file}")]).ok();
    }
    let model = place.run(&["inspect", "demo/model.json"]).ok().stdout;
    assert!(model.contains("pressure (mmHg) by posterior"), "{model}");
    let report = place.read("demo/report.html");
    assert!(report.contains("<svg") && report.contains("pressure"));

    // A second demo does not overwrite the first unless asked to.
    let again = place.run(&["demo", "--out", "demo", "--rows", "1000"]);
    again.refused(3, &["--force"]);
    let text = place.run(&["demo", "--out", "demo", "--rows", "1000", "--force"]).ok().stdout;
    for word in ["true", "non-private", "private", "95% interval", "Each clinic's release: ε = 1", "jointly"]
    {
        assert!(text.contains(word), "no {word:?} in {text}");
    }
}

#[test]
fn the_same_by_hand_gives_the_same_kind_of_result() {
    let place = Workplace::empty();
    let demo = place.run(&["demo", "--out", "demo", "--rows", "100000", "--json"]).json();
    let sealed = place.read("demo/study.toml");
    place.write("study.toml", &sealed[..sealed.find("# Written by").unwrap()]);
    place.run(&["study", "check", "study.toml"]).ok();
    let plan = place.run(&["plan", "study.toml", "--json"]).json();
    place.run(&["study", "seal", "study.toml"]).ok();
    let sealed_plan = place.run(&["plan", "study.toml", "--json"]).json();
    assert_eq!(plan["joint"], sealed_plan["joint"]);
    assert_eq!(plan["parties"], sealed_plan["parties"]);
    assert_eq!(plan["sealed"], false);
    assert_eq!(sealed_plan["per_party"]["epsilon"], demo["per_party"]["epsilon"]);
    assert_eq!(sealed_plan["joint"]["epsilon"], demo["joint"]["epsilon"]);

    for party in ["north", "south", "registry"] {
        let ledger = format!("{party}.sqlite");
        let out = format!("{party}.release.parquet");
        let data = format!("demo/private/{party}.csv");
        let key = format!("{party}.key");
        place.run(&["key", "new", "--out", &key]).ok();
        place.line(&format!("ledger init --ledger {ledger} --budget patients --epsilon 1 --delta 1e-6")).ok();
        let released = place
            .line(&format!("release study.toml --party {party} --data {data} --ledger {ledger} --out {out} --signing-key {key} --yes --json"))
            .json();
        assert_eq!(released["repeated"], false);
        assert_eq!(released["epsilon_left"], 0.0);
    }
    let releases = ["north.release.parquet", "south.release.parquet", "registry.release.parquet"];
    let mut join = vec!["join", "study.toml", "--out", "public.parquet"];
    join.extend(releases.iter().rev());
    place.run(&join).ok();
    let keys = ["north=north.key.pub", "south=south.key.pub", "registry=registry.key.pub"];
    let mut verify = vec!["verify", "public.parquet"];
    for key in keys {
        verify.extend(["--key", key]);
    }
    let verified = place.run(&verify).ok().stdout;
    assert_eq!(verified.matches("signed with the key given").count(), 3, "{verified}");

    let model =
        place.line("fit public.parquet --label pressure --out model.json --report report.html --json").json();
    assert_eq!(serde_json::from_str::<Value>(&place.read("model.json")).unwrap(), model);
    for (coefficient, of_demo) in
        model["coefficients"].as_array().unwrap().iter().zip(demo["coefficients"].as_array().unwrap())
    {
        let error = number(&coefficient["value"]["estimate"]) - number(&of_demo["true"]);
        assert!(error.abs() < 6.0 * number(&coefficient["value"]["standard_error"]), "{coefficient}");
    }
    // The joint guarantee is in the model's own words, beside that of each party.
    let privacy = model["privacy"].to_string();
    assert!(privacy.contains("ε = 1,") && privacy.contains("joint"), "{privacy}");
    assert_eq!(place.run(&["fit", "public.parquet", "--label", "pressure", "--json"]).json(), model);
}

#[test]
fn predictions_follow_the_model() {
    let place = Workplace::empty();
    place.run(&["demo", "--out", "demo", "--rows", "50000"]).ok();
    let model: Value = serde_json::from_str(&place.read("demo/model.json")).unwrap();
    let table =
        "who,age,bmi,salt,exercise,smoker,ignored\na,40,25,5,3,no,x\nb,400,25,5,3,yes,x\nc,,25,5,3,,x\n";
    place.write("new.csv", table);
    let output = place.run(&["predict", "demo/model.json", "--data", "new.csv", "--id", "who"]).ok().stdout;
    let piped = place.run_with_input(&["predict", "demo/model.json", "--data", "-"], table).ok().stdout;
    let slope = |name: &str| {
        let coefficients = model["coefficients"].as_array().unwrap();
        let found = coefficients
            .iter()
            .find(|coefficient| coefficient["term"].to_string().contains(&format!("\"{name}\"")));
        found.unwrap().clone()
    };
    let part = |name: &str, value: Option<f64>| {
        let coefficient = slope(name);
        let (low, high) = (number(&coefficient["range"][0]), number(&coefficient["range"][1]));
        let input = value.map_or(number(&coefficient["missing"]), |value| value.clamp(low, high));
        number(&coefficient["prediction"]) * input
    };
    assert!(number(&slope("age")["range"][1]) <= 90.0, "values are kept within the public bounds");
    let base = number(&model["prediction_intercept"])
        + part("bmi", Some(25.0))
        + part("salt", Some(5.0))
        + part("exercise", Some(3.0));
    // Age 400 is clamped to what the release kept; missing values count as the centre of the
    // column.
    let expected = [
        base + part("age", Some(40.0)) + part("smoker", Some(0.0)),
        base + part("age", Some(400.0)) + part("smoker", Some(1.0)),
        base + part("age", None) + part("smoker", None),
    ];
    let (low, high) = (number(&model["label_range"][0]), number(&model["label_range"][1]));
    let lines: Vec<&str> = output.lines().collect();
    assert_eq!(lines[0], "who,pressure");
    for (line, (name, expected)) in lines[1..].iter().zip(["a", "b", "c"].iter().zip(expected)) {
        let (who, prediction) = line.split_once(',').unwrap();
        assert_eq!(who, *name);
        let prediction: f64 = prediction.parse().unwrap();
        // Written to the digits that a prediction deserves.
        assert!((prediction - expected.clamp(low, high)).abs() < 0.1, "{line}: {expected}");
    }
    assert_eq!(piped.lines().count(), 4);
    // A value that is no level counts as missing, or is refused, as the study has it.
    place.write("unknown.csv", table.replace(",yes,", ",secret,"));
    place.write("empty.csv", table.replace(",yes,", ",,"));
    let predicted = |model: &str, data: &str| place.run(&["predict", model, "--data", data]);
    let unknown = predicted("demo/model.json", "unknown.csv").ok().stdout;
    assert_eq!(unknown, predicted("demo/model.json", "empty.csv").ok().stdout);
    let mut strict = model.clone();
    for coefficient in strict["coefficients"].as_array_mut().unwrap() {
        if let Some(level) = coefficient["term"].get_mut("level") {
            assert_eq!(level["unknown"], "missing");
            level["unknown"] = "error".into();
        }
    }
    place.write("strict.json", strict.to_string());
    let unknown = predicted("strict.json", "unknown.csv");
    assert_eq!(unknown.code, 3);
    assert!(
        unknown.stderr.contains("column \"smoker\", row 2") && !unknown.stderr.contains("secret"),
        "{}",
        unknown.stderr
    );
}

#[test]
fn predictions_take_the_same_text_for_missing_in_every_column_and_come_as_json_too() {
    let place = Workplace::empty();
    place.run(&["demo", "--out", "demo", "--rows", "5000"]).ok();
    let predicted = |data: &str, more: &[&str]| {
        place.run(&[&["predict", "demo/model.json", "--data", data], more].concat())
    };
    let table = |age: &str, smoker: &str| {
        format!("who,age,bmi,salt,exercise,smoker\na,{age},25,5,3,{smoker}\nb,40,25,5,3,no\n")
    };
    place.write("empty.csv", table("", ""));
    let empty = predicted("empty.csv", &["--id", "who"]).ok().stdout;
    for missing in ["NA", "NaN", "nan", "null", "NULL"] {
        place.write("missing.csv", table(missing, missing));
        assert_eq!(predicted("missing.csv", &["--id", "who"]).ok().stdout, empty, "{missing}");
    }
    place.write("wrong.csv", table("forty", "no"));
    let refused = predicted("wrong.csv", &[]);
    refused.refused(3, &["column \"age\", row 1", "is not a number"]);
    assert!(refused.stdout.is_empty(), "nothing is written of what cannot be predicted");

    let json = predicted("empty.csv", &["--id", "who", "--json"]).json();
    assert_eq!(json["label"], "pressure");
    let rows = json["predictions"].as_array().unwrap();
    let lines: Vec<String> = rows
        .iter()
        .map(|row| format!("{},{:.1}", row["id"].as_str().unwrap(), number(&row["prediction"])))
        .collect();
    assert_eq!(lines, empty.lines().skip(1).collect::<Vec<_>>());
    let without_ids = predicted("empty.csv", &["--json"]).json();
    assert_eq!(without_ids["predictions"][0], serde_json::json!({ "prediction": rows[0]["prediction"] }));

    place.write("narrow.csv", "who,age\na,40\n");
    for more in [&[][..], &["--json"]] {
        let refused = predicted("narrow.csv", more);
        assert_eq!((refused.code, refused.stdout.as_str()), (3, ""));
    }
}

#[test]
fn a_ridge_is_stated_once_and_takes_no_warning_away() {
    let place = Workplace::empty();
    place.run(&["demo", "--out", "demo", "--rows", "5000"]).ok();
    let fit = |ridge: &str, report: &str| {
        let arguments = ["fit", "demo/public.parquet", "--label", "pressure", "--learner", "ols"];
        let more = ["--ridge", ridge, "--report", report, "--out", "model.json", "--force"];
        place.run(&[&arguments[..], &more].concat()).ok().stdout
    };
    for (ridge, times) in [("0", 0), ("5", 1)] {
        let said = fit(ridge, "report.html");
        let report = place.read("report.html");
        assert!(report.contains("need not cover those of the study itself"), "at a ridge of {ridge}");
        assert_eq!(report.matches("ridge of").count(), times, "at a ridge of {ridge}");
        assert_eq!(said.matches("shrunk by a ridge of").count(), times, "{said}");
        let model: Value = serde_json::from_str(&place.read("model.json")).unwrap();
        assert_eq!(model["estimand"], "attenuated");
    }
    // A file of potluck 0.1 says it in a sentence.
    let sentence = "coefficients among the noisy columns, attenuated by the privacy noise, shrunk by a ridge of 5 (by up to 4%), which the intervals do not show";
    let earlier = place.read("model.json").replace("\"attenuated\"", &format!("{sentence:?}"));
    place.write("earlier.json", earlier);
    let inspected = |model: &str| place.run(&["inspect", model]).ok().stdout;
    assert_eq!(inspected("earlier.json"), inspected("model.json"));
}

#[test]
fn methods_mixings_and_learners_work_end_to_end() {
    for (settings, more) in [
        ("id = \"integer\"", ""),
        ("id = \"integer\"\nmethod = \"rmgm\"\nmixing = \"bernoulli\"\nk = 400", ""),
        ("id = \"integer\"\npreset = \"paper\"", ""),
        ("id = \"row\"\nmethod = \"dgm\"", ""),
        ("id = \"row\"\nmethod = \"rmgm\"", "clip_norm = 0.8"),
        ("id = \"text\"\nk = 300", ""),
    ] {
        let place = Workplace::empty();
        place.run(&["demo", "--out", "demo", "--rows", "3000"]).ok();
        let sealed = place.read("demo/study.toml");
        let study = sealed[..sealed.find("# Written by").unwrap()]
            .replace("id = \"integer\"", settings)
            .replace("name = \"north\"", &format!("name = \"north\"\n{more}"));
        place.write("study.toml", study);
        place.run(&["study", "seal", "study.toml"]).ok();
        for party in ["north", "south", "registry"] {
            let ledger = format!("{party}.sqlite");
            let data = format!("demo/private/{party}.csv");
            let out = format!("{party}.parquet");
            place.line(&format!("ledger init --ledger {ledger} --budget t --epsilon 1 --delta 1e-6")).ok();
            // With `id = "row"` the ids are just another column.
            place
                .line(&format!("release study.toml --party {party} --data {data} --ledger {ledger} --out {out} --ignore-extra --yes --accept-low-accuracy"))
                .ok();
        }
        place.line("join study.toml north.parquet south.parquet registry.parquet --out public.parquet").ok();
        for learner in ["ols", "debiased", "posterior"] {
            let model = place
                .run(&["fit", "public.parquet", "--label", "pressure", "--learner", learner, "--json"])
                .json();
            assert_eq!(model["learner"], learner);
            assert_eq!(model["coefficients"].as_array().unwrap().len(), 5);
        }
    }
}

/// The folder of public tables, if there is one.
fn public_tables(test: &str) -> Option<PathBuf> {
    let folder = env::var_os("POTLUCK_DATA").map(PathBuf::from);
    if folder.is_none() {
        eprintln!("{test}: skipped, POTLUCK_DATA does not name a folder with public tables");
    }
    folder
}

/// Writes the chosen columns of a CSV file with row numbers as ids.
fn split(source: &Path, columns: &[&str], target: &Path) {
    let mut reader = csv::Reader::from_path(source).unwrap();
    let header = reader.headers().unwrap().clone();
    let positions: Vec<usize> =
        columns.iter().map(|column| header.iter().position(|name| name == *column).unwrap()).collect();
    let mut writer = csv::Writer::from_path(target).unwrap();
    writer.write_record(std::iter::once("id").chain(columns.iter().copied())).unwrap();
    for (id, record) in reader.records().enumerate() {
        let record = record.unwrap();
        let id = id.to_string();
        writer
            .write_record(std::iter::once(id.as_str()).chain(positions.iter().map(|&at| &record[at])))
            .unwrap();
    }
    writer.flush().unwrap();
}

/// Splits a table between parties, releases, joins and fits.
fn release_public_table(source: &Path, study: &str, parties: &[(&str, &[&str])], label: &str) -> Value {
    let place = Workplace::empty();
    place.write("study.toml", study);
    place.run(&["study", "seal", "study.toml"]).ok();
    let mut join =
        vec!["join".to_owned(), "study.toml".to_owned(), "--out".to_owned(), "public.parquet".to_owned()];
    for (party, columns) in parties {
        let data = format!("{party}.csv");
        split(source, columns, &place.path(&data));
        let (ledger, out) = (format!("{party}.sqlite"), format!("{party}.parquet"));
        place.line(&format!("ledger init --ledger {ledger} --budget t --epsilon 5 --delta 1e-5")).ok();
        place
            .line(&format!(
                "release study.toml --party {party} --data {data} --ledger {ledger} --out {out} --yes --accept-low-accuracy"
            ))
            .ok();
        join.push(out);
    }
    place.run(&join.iter().map(String::as_str).collect::<Vec<_>>()).ok();
    place.run(&["verify", "public.parquet"]).ok();
    place.line(&format!("fit public.parquet --label {label} --report report.html --json")).json()
}

#[test]
fn insurance_between_three_parties() {
    let Some(folder) = public_tables("insurance_between_three_parties") else { return };
    let regions = "region levels = [\"northeast\", \"northwest\", \"southeast\", \"southwest\"]";
    let study = study("insurance", 1338)
        .privacy(5.0, 1e-5)
        .party("registry", &["age lo = 18; hi = 64", "sex levels = [\"female\", \"male\"]", regions])
        .party(
            "clinic",
            &["bmi lo = 15; hi = 55", "smoker levels = [\"no\", \"yes\"]", "children lo = 0; hi = 5"],
        )
        .party("insurer", &["charges lo = 0; hi = 65000"]);
    let parties: [(&str, &[&str]); 3] = [
        ("registry", &["age", "sex", "region"]),
        ("clinic", &["bmi", "smoker", "children"]),
        ("insurer", &["charges"]),
    ];
    let model = release_public_table(&folder.join("insurance.csv"), &study.to_string(), &parties, "charges");
    // The regions are compared with the first of them.
    assert_eq!(model["coefficients"].as_array().unwrap().len(), 8);
    assert_eq!(model["diagnostics"]["rows"], 1338);
}

#[test]
fn randhie_between_insurer_clinic_and_register() {
    let Some(folder) = public_tables("randhie_between_insurer_clinic_and_register") else { return };
    let clinic =
        ["physlm lo = 0; hi = 1", "disea lo = 0; hi = 60", "hlthg lo = 0; hi = 1", "hlthf lo = 0; hi = 1"];
    let study = study("randhie", 20190)
        .privacy(5.0, 1e-5)
        .party(
            "insurer",
            &["lncoins lo = 0; hi = 5", "idp lo = 0; hi = 1", "lpi lo = 0; hi = 8", "fmde lo = 0; hi = 9"],
        )
        .party("clinic", &[clinic.as_slice(), &["hlthp lo = 0; hi = 1"]].concat())
        .party("register", &["mdvis lo = 0; hi = 80"]);
    let parties: [(&str, &[&str]); 3] = [
        ("insurer", &["lncoins", "idp", "lpi", "fmde"]),
        ("clinic", &["physlm", "disea", "hlthg", "hlthf", "hlthp"]),
        ("register", &["mdvis"]),
    ];
    let model = release_public_table(&folder.join("randhie.csv"), &study.to_string(), &parties, "mdvis");
    assert_eq!(model["coefficients"].as_array().unwrap().len(), 9);
}

#[test]
fn a_simulation_previews_a_study_without_data() {
    let place = Workplace::empty();
    place.run(&["demo", "--out", "demo", "--rows", "1000"]).ok();
    let simulate = |threads: &str| {
        place
            .line(&format!(
                "simulate demo/study.toml --rows 20000 --releases 4 --label bmi --threads {threads} --json"
            ))
            .json()
    };
    let preview = simulate("1");
    assert_eq!(preview["rows"], 20000);
    assert_eq!(preview["label"], "bmi");
    let coefficients = preview["coefficients"].as_array().unwrap();
    assert_eq!(coefficients.len(), 5);
    for coefficient in coefficients {
        assert_eq!(coefficient["estimates"].as_array().unwrap().len(), 4);
        assert!(number(&coefficient["half_width"]) > 0.0);
    }
    assert_eq!(preview, simulate("3"), "the number of threads makes no difference");
    let text =
        place.line("simulate demo/study.toml --rows 20000 --releases 2 --report preview.html").ok().stdout;
    assert!(text.contains("pressure on all other columns") && text.contains("non-private"), "{text}");
    let page = place.read("preview.html");
    assert!(page.contains("<svg") && page.contains("made-up people"));
}

#[test]
fn every_stage_can_be_audited() {
    let place = Workplace::new();
    place.release_north(&[]).ok();
    let sums = "sums study.toml --party north --data north.csv --state audit";
    place.line(sums).ok();
    assert!(place.read("audit/north.standardise-1.sums.csv").contains("square,age,"));
    for (stage, name) in [(2, "standardise-2"), (3, "moments"), (4, "mixed")] {
        place.line(&format!("{sums} --release north.release.parquet --stage {stage}")).ok();
        assert!(place.read(&format!("audit/north.{name}.sums.csv")).starts_with("row,column,sum"));
    }
    assert!(place.read("audit/north.moments.sums.csv").contains("times age,smoker=yes,"));
    place.line(&format!("{sums} --release north.release.parquet --stage 5")).refused(3, &["stages 1 to 4"]);
    place.line(&format!("{sums} --stage 2")).refused(2, &["--release"]);
}

/// Levels are compared with the first one on both sides.
#[test]
fn a_simulation_with_many_levels_compares_like_with_like() {
    let place = Workplace::empty();
    let study = study("levels", 100_000)
        .privacy(5.0, 1e-6)
        .party("a", &["colour levels = [\"red\", \"green\", \"blue\"]"])
        .party("b", &["y lo = -1; hi = 1"]);
    place.write("study.toml", study.to_string());
    let preview = place.line("simulate study.toml --label y --releases 6 --json").json();
    let coefficients = preview["coefficients"].as_array().unwrap();
    assert_eq!(coefficients.len(), 2);
    let held: f64 = coefficients.iter().map(|coefficient| number(&coefficient["coverage"])).sum();
    assert!(held >= 1.0, "{preview}");
}

#[test]
fn levels_are_compared_with_one_that_is_left_out() {
    let place = Workplace::empty();
    let study = study("levels", 60)
        .privacy(5.0, 1e-6)
        .party("a", &["colour levels = [\"red\", \"green\", \"blue\"]", "y lo = -1; hi = 1"]);
    place.write("study.toml", study.to_string());
    place.run(&["study", "seal", "study.toml"]).ok();
    let line = |id: usize| format!("{id},{},0.{id}", ["red", "green", "blue"][id % 3]);
    place.write("a.csv", csv("id,colour,y", 60, line));
    place.run(&["ledger", "init", "--budget", "t", "--epsilon", "5", "--delta", "1e-6"]).ok();
    place.line("release study.toml --party a --data a.csv --out a.parquet --yes --accept-low-accuracy").ok();
    place.line("join study.toml a.parquet --out public.parquet").ok();
    let names = |line: &str| {
        let model = place.line(line).json();
        let coefficients = model["coefficients"].as_array().unwrap().clone();
        coefficients.iter().map(|c| c["term"]["level"]["level"].to_string()).collect::<Vec<_>>()
    };
    let all = names("fit public.parquet --label y --json");
    assert_eq!(all, ["\"green\"", "\"blue\""]);
    let some = names("fit public.parquet --label y --features colour=red,colour=blue --json");
    assert_eq!(some, ["\"red\"", "\"blue\""]);
    place
        .line("fit public.parquet --label y --features colour=red,colour=green,colour=blue")
        .refused(3, &["every level", "leave one out"]);
}

#[test]
fn a_column_of_dates_is_released_from_text_as_from_a_file_with_types() {
    let place = Workplace::empty();
    let text = study("births", 40)
        .party("north", &["born lo = 1930-01-01; hi = 2010-12-31"])
        .party("south", &["weight lo = 0; hi = 100"]);
    place.write("study.toml", text.to_string());
    place.run(&["study", "seal", "study.toml"]).ok();
    let shown = place.run(&["inspect", "study.toml"]).ok().stdout;
    assert!(shown.contains("born: 1930-01-01 to 2010-12-31"), "{shown}");
    place.run(&["ledger", "init", "--budget", "people", "--epsilon", "2", "--delta", "1e-5"]).ok();
    let days: Vec<i32> = (0..40).map(|at| 7000 + 311 * at - 20_000).collect();
    let dates = |day: &i32| potluck_release::study::date_of(f64::from(*day)).unwrap();
    place.write("text.csv", csv("id,born", 40, |at| format!("{at},{}", dates(&days[at]))));
    place.write("days.csv", csv("id,born", 40, |at| format!("{at},{}", days[at])));
    place.write(
        "wrong.csv",
        csv("id,born", 40, |at| format!("{at},{}", if at == 3 { "31.01.1990" } else { "" })),
    );
    let sums = |table: &str| {
        let arguments = ["sums", "study.toml", "--party", "north", "--data", table];
        place.run(&[arguments.as_slice(), &["--state", "audit", "--force"]].concat()).ok();
        let mut files = std::fs::read_dir(place.path("audit")).unwrap().map(|file| file.unwrap().path());
        std::fs::read_to_string(files.next().unwrap()).unwrap()
    };
    assert_eq!(sums("text.csv"), sums("days.csv"));
    let refused = place.run(&["validate", "study.toml", "--party", "north", "--data", "wrong.csv"]);
    assert!(
        refused.stdout.contains("is no date") || refused.stderr.contains("is no date"),
        "{}",
        refused.stdout
    );
}
