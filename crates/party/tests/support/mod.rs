//! Studies and tables for tests, and releases of them through the functions that the command calls.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used)]

use std::num::NonZero;
use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use potluck_core::accounting::{Delta, Epsilon};
use potluck_core::mixing::MixingKey;
use potluck_party::release::{ExtraColumns, release_with};
use potluck_party::{Error, Job, Ledger, Observer, Table};
use potluck_release::files::Existing;
use potluck_release::{Draft, Release, Study};
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;

/// The party every test releases for; a second one makes it a study.
pub const PARTY: &str = "clinic";

/// A study in which the clinic has two numeric columns and two categorical ones.
pub fn study(rows: u64, settings: &str, party_settings: &str) -> Study {
    let method = if settings.contains("method") { "" } else { "method = \"rmgm\"" };
    let text = format!(
        r#"format = 1
[study]
name = "test"
rows = {rows}
{method}
{settings}
[privacy]
epsilon = 1.0
delta = 1e-5
[[party]]
name = "clinic"
{party_settings}
[[party.column]]
name = "age"
lo = 0
hi = 100
[[party.column]]
name = "dose"
lo = -1
hi = 1
[[party.column]]
name = "smoker"
levels = ["no", "yes"]
[[party.column]]
name = "region"
levels = ["north", "south", "other"]
unknown = "other"
[[party]]
name = "registry"
[[party.column]]
name = "outcome"
lo = 0
hi = 1
"#
    );
    Draft::parse(&text).unwrap().seal(MixingKey::new([7; 32])).unwrap()
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
    let batch = batch(subjects);
    let mut bytes = Vec::new();
    let mut writer = arrow_ipc::writer::StreamWriter::try_new(&mut bytes, &batch.schema()).unwrap();
    writer.write(&batch).unwrap();
    writer.finish().unwrap();
    drop(writer);
    Table::spool(&mut bytes.as_slice(), "test table", &std::env::temp_dir()).unwrap()
}

pub fn new_ledger(folder: &Path) -> Ledger {
    let mut ledger = Ledger::open_or_create(&folder.join("ledger.sqlite")).unwrap();
    ledger.set_budget("patients", Epsilon::new(1.0).unwrap(), Delta::new(1e-5).unwrap()).unwrap();
    ledger
}

pub fn job<'a>(study: &'a Study, table: &'a Table, out: &'a Path, threads: usize) -> Job<'a> {
    Job {
        study,
        party: PARTY,
        table,
        id_column: "id",
        extra_columns: ExtraColumns::Ignore,
        budget: "patients",
        out,
        existing: Existing::Keep,
        signing_key: None,
        threads: NonZero::new(threads).unwrap(),
        tmp: std::env::temp_dir(),
    }
}

/// Releases a table with noise from a seed, as the command does with noise from the operating system.
pub fn release(study: &Study, table: &Table, threads: usize, seed: u64) -> Result<Release, Error> {
    let folder = tempfile::tempdir().unwrap();
    let mut ledger = new_ledger(folder.path());
    let out = folder.path().join("out.parquet");
    let job = job(study, table, &out, threads);
    release_with(&job, &mut ledger, &() as &dyn Observer, || Ok(ChaCha20Rng::seed_from_u64(seed))).map(
        |published| {
            let read = Release::read(&out).unwrap();
            assert_eq!(read.content_hash(), published.release.content_hash());
            read
        },
    )
}

/// The noised integers that a release publishes, row by row.
pub fn integers(release: &Release) -> Vec<i64> {
    let scale = release.mixed_stage().scale();
    let columns = release.columns();
    (0..columns.rows())
        .flat_map(|row| columns.values().iter().map(move |column| (column[row] * scale).round() as i64))
        .collect()
}
