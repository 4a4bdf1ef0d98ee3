//! Studies and tables for tests, and releases of them through the functions that the command calls.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used)]

use std::num::NonZero;
use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use num_bigint::BigUint;
use potluck_core::accounting::{Delta, Epsilon, Mu, Share};
use potluck_fixtures::sealed;
use potluck_party::reading::ExtraColumns;
use potluck_party::release::{Terms, release_with};
use potluck_party::{Access, Error, Job, Ledger, LostValues, Observer, Reading, Resources, Table, audit};
use potluck_release::files::Existing;
use potluck_release::{Release, Study};
use proptest::prelude::*;
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;

/// The party every test releases for; a second one makes it a study.
pub const PARTY: &str = "clinic";

/// A study in which the clinic has two numeric columns and two categorical ones.
pub fn study(rows: u64, settings: &str, party_settings: &str) -> Study {
    study_at(1.0, rows, settings, party_settings)
}

/// The same at another ε.
pub fn study_at(epsilon: f64, rows: u64, settings: &str, party_settings: &str) -> Study {
    let method = if settings.contains("method") { "" } else { "method = \"rmgm\"" };
    let columns = [
        "age lo = 0; hi = 100",
        "dose lo = -1; hi = 1",
        "smoker levels = [\"no\", \"yes\"]",
        "region levels = [\"north\", \"south\", \"other\"]; unknown = \"other\"",
    ];
    let text = potluck_fixtures::study("test", rows)
        .settings(&format!("{method}\n{settings}"))
        .privacy(epsilon, 1e-5)
        .party(PARTY, &columns)
        .party("registry", &["outcome lo = 0; hi = 1"])
        .to_string()
        .replacen("[[party.column]]", &format!("{party_settings}\n[[party.column]]"), 1);
    sealed(&text, 7)
}

/// The same columns in a study of format 2, about so many people; these columns are never missing.
pub fn cohorts(epsilon: f64, rows: u64, never: &[&str]) -> Study {
    let columns = [
        "age lo = 0; hi = 100",
        "dose lo = -1; hi = 1",
        "smoker levels = [\"no\", \"yes\"]",
        "region levels = [\"north\", \"south\", \"other\"]; unknown = \"other\"",
    ];
    let columns = columns.map(|column| {
        let is_never = never.iter().any(|name| column.split_once(' ').is_some_and(|(own, _)| own == *name));
        if is_never { format!("{column}; missing = \"never\"") } else { column.to_owned() }
    });
    let text = potluck_fixtures::study("test", rows)
        .of_cohorts()
        .privacy(epsilon, 1e-5)
        .party(PARTY, &columns.each_ref().map(String::as_str))
        .party("registry", &["outcome lo = 0; hi = 1"])
        .to_string();
    sealed(&text, 7)
}

/// One subject of the clinic.
#[derive(Clone, Debug, PartialEq)]
pub struct Subject {
    pub id: i64,
    pub age: Option<f64>,
    pub dose: Option<f64>,
    pub smoker: Option<&'static str>,
    pub region: Option<&'static str>,
}

pub fn batch(subjects: &[Subject]) -> RecordBatch {
    let column = |array: ArrayRef| array;
    RecordBatch::try_from_iter([
        ("id", column(Arc::new(Int64Array::from_iter_values(subjects.iter().map(|s| s.id))))),
        ("age", column(Arc::new(subjects.iter().map(|s| s.age).collect::<Float64Array>()))),
        ("dose", column(Arc::new(subjects.iter().map(|s| s.dose).collect::<Float64Array>()))),
        ("smoker", column(Arc::new(subjects.iter().map(|s| s.smoker).collect::<StringArray>()))),
        ("region", column(Arc::new(subjects.iter().map(|s| s.region).collect::<StringArray>()))),
    ])
    .unwrap()
}

/// The subjects as a table in an unnamed temporary file, as if piped in.
pub fn table(subjects: &[Subject]) -> Table {
    spooled(&batch(subjects))
}

/// A batch as a table in an unnamed temporary file.
pub fn spooled(batch: &RecordBatch) -> Table {
    let mut bytes = Vec::new();
    let mut writer = arrow_ipc::writer::StreamWriter::try_new(&mut bytes, &batch.schema()).unwrap();
    writer.write(batch).unwrap();
    writer.finish().unwrap();
    drop(writer);
    Table::spool(&mut bytes.as_slice(), "test table", &std::env::temp_dir()).unwrap()
}

pub fn new_ledger(folder: &Path) -> Ledger {
    ledger_with(folder, Epsilon::new(1.0).unwrap(), Delta::new(1e-5).unwrap())
}

/// A ledger with a budget for the patients.
pub fn ledger_with(folder: &Path, epsilon: Epsilon, delta: Delta) -> Ledger {
    let mut ledger = Ledger::open_or_create(&folder.join("ledger.sqlite")).unwrap();
    ledger.set_budget("patients", epsilon, delta).unwrap();
    ledger
}

pub fn job<'a>(study: &'a Study, table: &'a Table, out: &'a Path, threads: usize) -> Job<'a> {
    Job { terms: terms(study, "patients", out), table, access: access(threads) }
}

/// The clinic's release under a study, charged to a budget.
pub fn terms<'a>(study: &'a Study, budget: &'a str, out: &'a Path) -> Terms<'a> {
    let lost_values = LostValues::Accept;
    Terms { study, party: PARTY, budget, out, existing: Existing::Keep, signing_key: None, lost_values }
}

/// How the clinic's tables are read.
pub fn access(threads: usize) -> Access {
    Access {
        id_column: "id".to_owned(),
        extra_columns: ExtraColumns::Ignore,
        resources: Resources::new(NonZero::new(threads), None),
    }
}

/// Releases a table with noise from a seed, as the command does with noise from the operating
/// system.
pub fn release(study: &Study, table: &Table, threads: usize, seed: u64) -> Result<Release, Error> {
    let folder = tempfile::tempdir().unwrap();
    let definition = study.definition();
    let mut ledger = ledger_with(folder.path(), definition.epsilon(), definition.delta());
    let out = folder.path().join("out.parquet");
    let job = job(study, table, &out, threads);
    release_with(&job, &mut ledger, &() as &dyn Observer, || Ok(ChaCha20Rng::seed_from_u64(seed))).map(
        |published| {
            let read = Release::read(&out).unwrap();
            assert_eq!(read.content_hash(), published.release.content_hash);
            read
        },
    )
}

/// Whether Σ(δᵢ/σᵢ)² ≤ μ²·share, in exact integers, for runs of coordinates with the same σ.
pub fn within(differences: &[i64], noise: &[(usize, u64)], mu: Mu, share: Share) -> bool {
    let square = |x: u64| BigUint::from(x) * BigUint::from(x);
    let all: BigUint = noise.iter().map(|&(_, sigma)| square(sigma)).product();
    let mut sum = BigUint::ZERO;
    let mut start = 0;
    for &(count, sigma) in noise {
        let own: BigUint = differences[start..start + count].iter().map(|d| square(d.unsigned_abs())).sum();
        sum += own * &all / square(sigma);
        start += count;
    }
    assert_eq!(start, differences.len());
    // μ² is in units of 2⁻⁶⁴, the share in units of 2⁻²⁰.
    sum << 84 <= all * BigUint::from(mu.squared().units()) * share.parts()
}

pub fn any_number() -> impl Strategy<Value = Option<f64>> {
    prop_oneof![
        6 => (-50.0..150.0).prop_map(Some),
        1 => prop::sample::select(vec![
            0.0, -0.0, 100.0, -1.0, 1.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX, f64::MIN, 5e-324,
        ])
        .prop_map(Some),
        1 => Just(None),
    ]
}

pub fn any_subject(id: i64) -> impl Strategy<Value = Subject> {
    let smoker = prop::sample::select(vec![Some("no"), Some("yes"), None]);
    let region = prop::sample::select(vec![Some("north"), Some("south"), Some("elsewhere"), None]);
    (any_number(), any_number(), smoker, region).prop_map(move |(age, dose, smoker, region)| Subject {
        id,
        age,
        dose,
        smoker,
        region,
    })
}

pub const ROWS: usize = 12;

/// A table, the position of the subject that is replaced, and what replaces it (with the same id).
pub fn neighbours() -> impl Strategy<Value = (Vec<Subject>, usize, Subject)> {
    let rows: Vec<_> = (0..ROWS as i64).map(any_subject).collect();
    (rows, 0..ROWS, any_subject(0)).prop_map(|(rows, position, mut replacement)| {
        replacement.id = rows[position].id;
        (rows, position, replacement)
    })
}

pub fn extreme(id: i64, high: bool) -> Subject {
    let (age, dose) = if high { (f64::MAX, 1e9) } else { (f64::MIN, -1e9) };
    Subject { id, age: Some(age), dose: Some(dose), smoker: None, region: None }
}

pub fn middle(id: i64) -> Subject {
    Subject { id, age: None, dose: None, smoker: None, region: None }
}

/// The lines of the audit file of the stage that follows on `earlier`: row, column and exact sum.
pub fn audited(
    study: &Study,
    table: &Table,
    earlier: &[Vec<i64>],
    threads: usize,
) -> Vec<(String, String, i64)> {
    let folder = tempfile::tempdir().unwrap();
    let access = access(threads);
    let reading = Reading { study, party: PARTY, table, access: &access };
    let path = audit::write(&reading, earlier, folder.path(), Existing::Keep, &()).unwrap();
    csv::Reader::from_path(path).unwrap().deserialize().map(|line| line.unwrap()).collect()
}

/// The noised integers that a release publishes, row by row.
pub fn integers(release: &Release) -> Vec<i64> {
    let scale = release.mixed_stage().unwrap().scale();
    let columns = release.columns();
    (0..columns.rows())
        .flat_map(|row| columns.values().iter().map(move |column| (column[row] * scale).round() as i64))
        .collect()
}
