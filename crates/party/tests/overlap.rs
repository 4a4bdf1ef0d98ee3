//! Regressions over releases of parties that hold different people, with values missing, through
//! the functions that the commands call.
#![allow(clippy::unwrap_used)]

mod support;

use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch};
use potluck_fixtures::sealed;
use potluck_party::release::{Terms, release_with};
use potluck_party::{Job, LostValues, Observer, Table};
use potluck_release::dataset::Completeness;
use potluck_release::files::Existing;
use potluck_release::findings::FindingKind;
use potluck_release::fit::{Regression, fit};
use potluck_release::{Model, PublicDataset, Release, Study};
use rand_chacha::ChaCha20Rng;
use rand_core::{Rng, SeedableRng};
use support::{access, ledger_with, spooled};

/// Everybody; each party holds about six in ten of them.
const PEOPLE: usize = 30_000;
const HELD: f64 = 0.6;
const SLOPES: [f64; 3] = [0.5, -0.3, 0.4];

struct Person {
    x: [f64; 3],
    y: f64,
}

fn uniform(rng: &mut ChaCha20Rng) -> f64 {
    f64::from(rng.next_u32()) / 4_294_967_296.0
}

/// About a standard normal number.
fn normal(rng: &mut ChaCha20Rng) -> f64 {
    (0..12).map(|_| uniform(rng)).sum::<f64>() - 6.0
}

fn people(rng: &mut ChaCha20Rng) -> Vec<Person> {
    let person = |_| {
        let common = normal(rng);
        let x = [0, 1, 2].map(|_| 0.5 * common + 0.9 * normal(rng));
        let mean: f64 = x.iter().zip(SLOPES).map(|(x, slope)| x * slope).sum();
        Person { x, y: mean + 0.7 * normal(rng) }
    };
    (0..PEOPLE).map(person).collect()
}

fn study(settings: &str) -> Study {
    let held = (PEOPLE as f64 * HELD) as u64;
    let text = potluck_fixtures::study("test", held)
        .settings(settings)
        .privacy(50.0, 1e-5)
        .party("one", &["x0 lo = -6; hi = 6", "x1 lo = -6; hi = 6"])
        .party("two", &["x2 lo = -6; hi = 6"])
        .party("three", &["y lo = -6; hi = 6"])
        .to_string();
    sealed(&text.replacen("format = 1", "format = 2", 1), 7)
}

/// A party's table: those of the people whom it holds, with a fifth of `x1` missing.
fn table(party: &str, people: &[Person], first_id: i64, rng: &mut ChaCha20Rng) -> Table {
    let mut ids = Vec::new();
    let mut columns: [Vec<Option<f64>>; 2] = [Vec::new(), Vec::new()];
    for (id, person) in people.iter().enumerate() {
        let (is_held, is_missing) = (uniform(rng) < HELD, uniform(rng) < 0.2);
        if !is_held {
            continue;
        }
        ids.push(first_id + id as i64);
        let [x0, x1, x2] = person.x;
        let values = match party {
            "one" => [Some(x0), (!is_missing).then_some(x1)],
            "two" => [Some(x2), None],
            _ => [Some(person.y), None],
        };
        columns.iter_mut().zip(values).for_each(|(column, value)| column.push(value));
    }
    let [first, second] = columns.map(|column| Arc::new(column.into_iter().collect::<Float64Array>()));
    let ids: ArrayRef = Arc::new(Int64Array::from(ids));
    let columns: Vec<(&str, ArrayRef)> = match party {
        "one" => vec![("id", ids), ("x0", first), ("x1", second)],
        "two" => vec![("id", ids), ("x2", first)],
        _ => vec![("id", ids), ("y", first)],
    };
    spooled(&RecordBatch::try_from_iter(columns).unwrap())
}

fn release(study: &Study, party: &str, table: &Table, seed: u64) -> Release {
    let folder = tempfile::tempdir().unwrap();
    let definition = study.definition();
    let mut ledger = ledger_with(folder.path(), definition.epsilon(), definition.delta());
    let out = folder.path().join("out.parquet");
    let terms = Terms {
        study,
        party,
        budget: "patients",
        out: &out,
        existing: Existing::Keep,
        signing_key: None,
        lost_values: LostValues::Refuse,
    };
    let job = Job { terms, table, access: access(1) };
    let noise = || Ok(ChaCha20Rng::seed_from_u64(seed));
    release_with(&job, &mut ledger, &() as &dyn Observer, noise).unwrap();
    Release::read(&out).unwrap()
}

/// The regression of `y` on all features; the first party counts its ids from `first_id`.
fn model(settings: &str, first_id: i64) -> Model {
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    let (study, people) = (study(settings), people(&mut rng));
    let mut one = |(at, party): (usize, &str)| {
        let first = if at == 0 { first_id } else { 0 };
        release(&study, party, &table(party, &people, first, &mut rng), at as u64)
    };
    let releases: Vec<Release> = ["one", "two", "three"].into_iter().enumerate().map(&mut one).collect();
    let dataset = PublicDataset::join(&study, &releases, Completeness::All).unwrap();
    fit(&dataset, &Regression::of("y")).unwrap()
}

fn kinds(model: &Model) -> Vec<FindingKind> {
    model.findings().iter().map(|said| said.kind).collect()
}

#[test]
fn slopes_are_those_of_the_people_whom_parties_have_in_common() {
    let model = model("", 0);
    for (coefficient, slope) in model.coefficients.iter().zip(SLOPES) {
        let value = &coefficient.value;
        let errors = (value.estimate - slope).abs() / value.standard_error;
        assert!(errors < 3.0, "{}: {value:?}", coefficient.term.name());
        assert!(value.high - value.low < 0.3, "{value:?}");
        let parts = coefficient.parts.unwrap();
        assert!(parts.people > 0.0, "{parts:?}");
        let all =
            [parts.privacy, parts.mixing, parts.correlations, parts.sampling, parts.clipping, parts.people];
        assert!((all.iter().sum::<f64>() - 1.0).abs() < 1e-9, "{parts:?}");
    }
    assert!(kinds(&model).iter().all(|kind| !matches!(kind, FindingKind::NobodyInCommon)));
}

#[test]
fn a_study_that_declares_too_much_in_common_is_told() {
    let model = model("overlap = \"all\"", 0);
    assert!(kinds(&model).contains(&FindingKind::OverlapUndeclared), "{:?}", kinds(&model));
    // What is declared is believed, and then slopes are too small.
    assert!(model.coefficients[0].value.high < SLOPES[0], "{:?}", model.coefficients[0].value);
}

#[test]
fn ids_that_do_not_match_are_said_loudly() {
    let model = model("", 1_000_000);
    let found = model.findings();
    let said = found.iter().find(|said| said.kind == FindingKind::NobodyInCommon).unwrap();
    assert_eq!(said.coefficients, ["x0", "x1"]);
    assert!(said.sentence.to_string().contains("do their ids match?"), "{}", said.sentence);
}
