//! What published numbers say against a regression stands first in what the command says of it.
#![allow(clippy::unwrap_used)]

mod support;

use std::fmt::Write as _;

use serde_json::{Value, json};
use support::Workplace;

fn study() -> String {
    potluck_fixtures::study("incomes", 20_000)
        .privacy(2.0, 1e-6)
        .party("bank", &["income lo = 0; hi = 1000; unit = \"thousand\"", "loans lo = -1e6; hi = 1e6"])
        .party("clinic", &["age lo = 20; hi = 90; unit = \"years\"", "score lo = 0; hi = 100"])
        .to_string()
}

/// A number in 0..1 for a person and a column, the same every time.
fn uniform(person: u64, column: u64) -> f64 {
    let mut x = (person * 8 + column).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((x ^ (x >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
}

/// A public dataset in which incomes have a long tail and loans vary far less than their bounds
/// allow.
fn incomes() -> Workplace {
    let place = Workplace::empty();
    place.write("study.toml", study());
    place.run(&["study", "seal", "study.toml"]).ok();
    let (mut bank, mut clinic) = ("id,income,loans\n".to_owned(), "id,age,score\n".to_owned());
    for person in 0..20_000 {
        let income = 20.0 * (-uniform(person, 0).ln()).exp().min(50.0);
        let age = 20.0 + 70.0 * uniform(person, 1);
        let score = 30.0 + 0.3 * age + 20.0 * uniform(person, 2);
        writeln!(bank, "{person},{income:.3},{:.3}", uniform(person, 3)).unwrap();
        writeln!(clinic, "{person},{age:.2},{score:.2}").unwrap();
    }
    for (party, table) in [("bank", bank), ("clinic", clinic)] {
        place.write(&format!("{party}.csv"), table);
        place.line(&format!("ledger init --ledger {party}.ledger --budget t --epsilon 2 --delta 1e-6")).ok();
        let files = format!("--data {party}.csv --ledger {party}.ledger --out {party}.parquet");
        place.line(&format!("release study.toml --party {party} {files} --yes --accept-low-accuracy")).ok();
    }
    place.line("join study.toml bank.parquet clinic.parquet --out public.parquet").ok();
    place
}

/// The line of a coefficient in the first table.
fn row<'a>(text: &'a str, name: &str) -> &'a str {
    text.lines().find(|line| line.trim_start().starts_with(&format!("{name} "))).unwrap()
}

/// What stands between two empty lines, as one line.
fn paragraph(text: &str, at: usize) -> String {
    text.split("\n\n").nth(at).unwrap().split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_fit_says_first_what_speaks_against_it() {
    let place = incomes();
    let text = place.line("fit public.parquet --label score").ok().stdout;
    let (headline, rest) = text.split_once("\n\n").unwrap();
    assert!(headline.contains("at the 95% level"), "{text}");
    assert!(rest.starts_with("Before you rely on these numbers:\n- income"), "{text}");
    assert_eq!(text.matches("lopsided").count(), 1, "each finding once: {text}");
    assert!(text.contains("Privacy noise hides how much loans varies between people"), "{text}");
    let table = text.find("estimate  std. error").unwrap();
    assert!(text.find("loans varies").unwrap() < table, "before the table");
    assert!(row(&text, "income").contains("feature cut"), "{text}");
    assert!(row(&text, "loans").contains("feature in noise"), "{text}");
    assert!(!row(&text, "age").contains("feature"), "{text}");
    assert!(text.contains("\nCut at least to: "), "{text}");
    assert!(text.contains("privacy  mixing  correlations  sampling  clipping"), "{text}");
}

#[test]
fn a_label_that_was_cut_is_marked_on_r_squared_too() {
    let place = incomes();
    let text = place.line("fit public.parquet --label income --features age,score").ok().stdout;
    let opening = paragraph(&text, 1);
    assert!(opening.contains(": every coefficient and R² are about the cut values"), "{text}");
    let r_squared = text.lines().find(|line| line.contains("R² = ")).unwrap();
    assert!(r_squared.ends_with("(label cut)"), "{r_squared}");
    assert!(row(&text, "age").contains("label cut") && row(&text, "score").contains("label cut"), "{text}");
}

#[test]
fn an_inspected_model_begins_with_each_kind_of_finding() {
    let place = Workplace::empty();
    place.run(&["demo", "--out", "demo", "--rows", "20000"]).ok();
    let mut model: Value = serde_json::from_str(&place.read("demo/model.json")).unwrap();
    let clear = |model: &mut Value| {
        model["diagnostics"].as_object_mut().unwrap().remove("r_squared_findings");
        for coefficient in model["coefficients"].as_array_mut().unwrap() {
            coefficient.as_object_mut().unwrap().remove("findings");
        }
    };
    clear(&mut model);
    let inspected = |model: &Value, more: &[&str]| {
        place.write("model.json", model.to_string());
        place.run(&[&["inspect", "model.json"], more].concat()).ok()
    };
    let plain = inspected(&model, &[]).stdout;
    assert!(paragraph(&plain, 1).starts_with("pressure (mmHg) by posterior"), "{plain}");
    assert!(!plain.contains("findings"), "{plain}");
    for (kind, words, mark) in [
        ("label-tails", "the coefficients of age are about the cut values", "label cut"),
        ("feature-tails", "age is lopsided or has heavy tails", "feature cut"),
        ("label-unresolved", "do not rely on the intervals of age", "label in noise"),
        ("feature-unresolved", "do not rely on its interval", "feature in noise"),
        ("confounders", "What looks like an effect of age may come from salt", "open confounders"),
    ] {
        clear(&mut model);
        let columns = if kind == "confounders" { json!(["salt"]) } else { json!([]) };
        model["coefficients"][0]["findings"] = json!([{ "kind": kind, "columns": columns }]);
        let text = inspected(&model, &[]).stdout;
        let opening = paragraph(&text, 1);
        assert!(opening.starts_with("Before you rely on these numbers: - "), "{text}");
        assert!(opening.contains(words), "{text}");
        assert!(row(&text, "age").ends_with(mark), "{text}");
        assert!(!row(&text, "bmi").contains(mark), "{text}");
        let said = inspected(&model, &["--json"]).json()["findings"].clone();
        assert_eq!((&said[0]["kind"], &said[0]["coefficients"]), (&json!(kind), &json!(["age"])));
    }
}
