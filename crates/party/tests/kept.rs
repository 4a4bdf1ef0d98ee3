//! What a release keeps between its passes: the same release as when every pass reads the table,
//! within the memory that it may use, and read no more than once.
#![allow(clippy::unwrap_used)]

mod support;

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchIterator, StringArray};
use potluck_party::release::release_with;
use potluck_party::{Error, Observer, Step, Table};
use potluck_release::{Release, Study};
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use support::{Subject, batch, job, ledger_with, study_at};

const ROWS: usize = 20_000;
/// Two numbers, two levels, and an id of eight bytes.
const BYTES_A_ROW: u64 = 2 * 8 + 2 * 4 + 8;

fn study(id: &str) -> Study {
    study_at(1000.0, ROWS as u64, &format!("id = \"{id}\"\nmethod = \"calibrated\""), "")
}

fn subjects() -> Vec<Subject> {
    let level = |at: usize, of: &[&'static str]| (!at.is_multiple_of(11)).then(|| of[at % of.len()]);
    (0..ROWS)
        .map(|at| Subject {
            id: at as i64 * 7919,
            age: (!at.is_multiple_of(13)).then(|| (at * 37 % 101) as f64),
            dose: Some((at as f64).sin()),
            smoker: level(at, &["no", "yes"]),
            region: level(at, &["north", "south", "elsewhere"]),
        })
        .collect()
}

fn csv(path: &Path) {
    let mut text = "id,age,dose,smoker,region\n".to_owned();
    for one in subjects() {
        let age = one.age.map_or(String::new(), |age| age.to_string());
        let (smoker, region) = (one.smoker.unwrap_or(""), one.region.unwrap_or(""));
        writeln!(text, "{},{age},{},{smoker},{region}", one.id, one.dose.unwrap()).unwrap();
    }
    fs::write(path, text).unwrap();
}

/// Releases with noise from one seed, with so much memory for what is kept.
fn release(study: &Study, table: &Table, memory: u64, observer: &dyn Observer) -> Result<Release, Error> {
    let folder = tempfile::tempdir().unwrap();
    let mut ledger = ledger_with(folder.path(), study.definition().epsilon(), study.definition().delta());
    let out = folder.path().join("out.parquet");
    let mut job = job(study, table, &out, 3);
    job.access.resources.memory = memory;
    release_with(&job, &mut ledger, observer, || Ok(ChaCha20Rng::seed_from_u64(5)))?;
    Ok(Release::read(&out).unwrap())
}

#[test]
fn a_release_is_the_same_however_much_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("table.csv");
    csv(&path);
    let whole = batch(&subjects());
    let texts: ArrayRef =
        Arc::new(subjects().iter().map(|one| Some(format!("p-{}", one.id))).collect::<StringArray>());
    let columns = whole.columns()[1..].iter().cloned();
    let names = ["id", "age", "dose", "smoker", "region"];
    let named =
        RecordBatch::try_from_iter(names.into_iter().zip([texts].into_iter().chain(columns))).unwrap();
    let held = |batch: &RecordBatch| {
        let reader = RecordBatchIterator::new([Ok(batch.clone())], batch.schema());
        Table::hold("table", Box::new(reader), None).unwrap()
    };
    let spooled = |batch: &RecordBatch| {
        let reader = RecordBatchIterator::new([Ok(batch.clone())], batch.schema());
        Table::spool_batches("table", Box::new(reader), None, folder.path()).unwrap()
    };
    let tables = [
        ("integer", Table::open(&path, folder.path()).unwrap()),
        ("integer", held(&whole)),
        ("integer", spooled(&whole)),
        ("text", spooled(&named)),
        ("text", held(&named)),
        ("row", spooled(&whole)),
    ];
    for (id, table) in tables {
        let study = study(id);
        let limits = [0, BYTES_A_ROW * ROWS as u64 / 2, BYTES_A_ROW * ROWS as u64 - 1, u64::MAX];
        let hashes =
            limits.map(|limit| release(&study, &table, limit, &()).ok().unwrap().content_hash().to_owned());
        assert!(hashes.iter().all(|hash| *hash == hashes[0]), "{id}: {hashes:?}");
    }
}

/// Damages a file after the first stage in a way that no stamp tells.
struct Damages<'a>(&'a Path);

impl Observer for Damages<'_> {
    fn step(&self, step: Step) {
        if step == Step::Stored(0) {
            let modified = fs::metadata(self.0).unwrap().modified().unwrap();
            let length = fs::metadata(self.0).unwrap().len() as usize;
            let header = "id,age,dose,smoker,region\n";
            let mut file = File::options().write(true).open(self.0).unwrap();
            file.write_all(format!("{header}{}", "?".repeat(length - header.len())).as_bytes()).unwrap();
            file.set_modified(modified).unwrap();
        }
    }
}

#[test]
fn a_table_that_fits_is_read_once_and_one_that_does_not_in_every_pass() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("table.csv");
    let study = study("integer");
    let attempt = |memory| {
        csv(&path);
        let table = Table::open(&path, folder.path()).unwrap();
        release(&study, &table, memory, &Damages(&path)).map(|release| release.content_hash().to_owned())
    };
    // Ids of a CSV file are kept as they are written there, each with where it ends.
    let ids: usize = subjects().iter().map(|one| one.id.to_string().len() + 4).sum();
    let fits = (BYTES_A_ROW - 8) * ROWS as u64 + ids as u64;
    let slack = 100;
    assert!(attempt(fits + slack).is_ok(), "what was kept is all that later passes need");
    assert!(attempt(fits - 1).is_err(), "nothing is kept beyond the limit");
    assert!(attempt(0).is_err(), "every pass reads the table");
}

/// Changes a file after the first stage, with another time.
struct Touches<'a>(&'a Path);

impl Observer for Touches<'_> {
    fn step(&self, step: Step) {
        if step == Step::Stored(0) {
            let modified = fs::metadata(self.0).unwrap().modified().unwrap();
            let file = File::options().write(true).open(self.0).unwrap();
            file.set_modified(modified + std::time::Duration::from_secs(1)).unwrap();
        }
    }
}

#[test]
fn a_table_that_changes_is_refused_although_it_was_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("table.csv");
    csv(&path);
    let table = Table::open(&path, folder.path()).unwrap();
    let refused = release(&study("integer"), &table, u64::MAX, &Touches(&path)).err().unwrap();
    let Error::Interrupted { source, .. } = refused else { panic!("{refused}") };
    assert!(source.to_string().contains("was changed while it was being read"), "{source}");
}
