//! Rows that are kept (dgm) pass through in blocks: what is published is every row plus its noise,
//! however the table is read, and a table that changes while it is read is not published.
#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::path::Path;

use potluck_core::noise::{NOISED_SUM_LIMIT, add_noise};
use potluck_party::ledger::{CHUNK, State};
use potluck_party::release::release_with;
use potluck_party::{Error, Job, Ledger, Observer, Published, Step, Table};
use potluck_release::{Release, Study};
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use support::{PARTY, audited, integers, job, new_ledger, study};

/// Several chunks of the ledger, with six encoded columns.
const ROWS: usize = 100_000;

fn dgm() -> Study {
    study(ROWS as u64, "id = \"row\"\nmethod = \"dgm\"", "clip_norm = 1.5")
}

fn csv(last_age: &str) -> String {
    let mut text = "age,dose,smoker,region\n".to_owned();
    for row in 0..ROWS {
        let age = if row == ROWS - 1 { last_age.to_owned() } else { (row % 113).to_string() };
        let smoker = ["no", "yes", ""][row % 3];
        let region = ["north", "south", "west", "NA"][row % 4];
        text.push_str(&format!("{age},0.{},{smoker},{region}\n", row % 97));
    }
    text
}

fn open(path: &Path) -> Table {
    Table::open(path, &std::env::temp_dir()).unwrap()
}

fn rng() -> ChaCha20Rng {
    ChaCha20Rng::seed_from_u64(9)
}

/// Releases with noise from the seed.
fn release(job: &Job<'_>, ledger: &mut Ledger, observer: &dyn Observer) -> Result<Published, Error> {
    release_with(job, ledger, observer, || Ok(rng()))
}

#[test]
fn every_row_is_published_with_its_noise_however_the_table_is_read() {
    let study = dgm();
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("table.csv");
    fs::write(&data, csv("50")).unwrap();
    let mut expected: Vec<i64> = audited(&study, &open(&data), &[], 1).iter().map(|line| line.2).collect();
    assert_eq!(expected.len(), 6 * ROWS);
    let sigma = study.first_stage(PARTY).unwrap().noise[0].1;
    let mut noise = rng();
    for chunk in expected.chunks_mut(CHUNK) {
        add_noise(chunk, sigma, NOISED_SUM_LIMIT, &mut noise);
    }
    let mut bytes = Vec::new();
    for (threads, batch) in [(1, 8192), (3, 1000), (2, 300_000)] {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("out.parquet");
        let table = open(&data).with_batch_size(batch);
        release(&job(&study, &table, &out, threads), &mut new_ledger(folder.path()), &()).unwrap();
        if bytes.is_empty() {
            assert!(integers(&Release::read(&out).unwrap()) == expected);
            bytes = fs::read(&out).unwrap();
        }
        assert!(fs::read(&out).unwrap() == bytes, "batches of {batch}");
    }
}

/// The audit file of rows that are kept: the rows themselves, and nothing where the table is not
/// valid.
#[test]
fn the_audit_file_holds_the_rows() {
    let study = dgm();
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("table.csv");
    fs::write(&data, csv("50")).unwrap();
    let lines = audited(&study, &open(&data).with_batch_size(777), &[], 2);
    assert!(lines == audited(&study, &open(&data), &[], 1));
    let (row, column, sum) = &lines[6 * 3 + 1];
    assert_eq!((row.as_str(), column.as_str()), ("3", "dose"));
    // 0.3 of ±1, and the row is within its norm.
    assert_eq!(*sum, (0.3_f64 * f64::from(1 << 14)).round() as i64);
}

/// A table that changes after it was validated: the charge stands, nothing is stored or written,
/// and a good table finishes the release.
#[test]
fn a_table_that_changes_between_its_passes_is_not_published() {
    struct Change<'a>(&'a Path, &'a str);
    impl Observer for Change<'_> {
        fn step(&self, step: Step) {
            if step == Step::Spent(0) {
                let modified = fs::metadata(self.0).unwrap().modified().unwrap();
                fs::write(self.0, self.1).unwrap();
                let file = fs::File::options().append(true).open(self.0).unwrap();
                file.set_modified(modified + std::time::Duration::from_secs(1)).unwrap();
            }
        }
    }
    let study = dgm();
    let good = csv("50");
    let shorter = good.rsplit_once("50,").unwrap().0.to_owned();
    let longer = format!("{good}1,1,no,north\n");
    let other = csv("51");
    for (bad, word) in [
        (csv("fifty"), "row 100000"),
        (shorter, "fewer rows"),
        (longer, "more rows"),
        (other, "was changed while it was being read"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let (data, out) = (folder.path().join("table.csv"), folder.path().join("out.parquet"));
        fs::write(&data, &good).unwrap();
        let mut ledger = new_ledger(folder.path());
        let table = open(&data);
        let job = job(&study, &table, &out, 2);
        let failed = release(&job, &mut ledger, &Change(&data, &bad)).err().unwrap();
        assert!(matches!(failed, Error::Interrupted { stage: 1, .. }));
        let text = failed.to_string();
        assert!(text.contains(word) && text.contains("charge stands") && !text.contains("fifty"), "{text}");
        let session = ledger.session("patients", study.id(), PARTY).unwrap().unwrap();
        assert_eq!(session.state, State::Spent);
        assert!(ledger.stored_stage(&session, 0, 6 * ROWS).unwrap().is_none());
        assert!(!out.exists());

        fs::write(&data, &good).unwrap();
        assert!(!release(&job, &mut ledger, &()).unwrap().repeated);
        Release::read(&out).unwrap();

        // Again: the table is not read, and the file is left as it is.
        fs::remove_file(&data).unwrap();
        let before = fs::metadata(&out).unwrap().modified().unwrap();
        assert!(release(&job, &mut ledger, &()).unwrap().repeated);
        assert_eq!(fs::metadata(&out).unwrap().modified().unwrap(), before);
    }
}

#[test]
fn a_table_that_is_not_valid_is_not_charged() {
    let study = dgm();
    let folder = tempfile::tempdir().unwrap();
    let (data, out) = (folder.path().join("table.csv"), folder.path().join("out.parquet"));
    fs::write(&data, csv("fifty")).unwrap();
    let mut ledger = new_ledger(folder.path());
    let failed = release(&job(&study, &open(&data), &out, 2), &mut ledger, &()).err().unwrap();
    assert!(failed.refusal().is_some() && failed.to_string().contains("row 100000"), "{failed}");
    assert_eq!(ledger.budget("patients").unwrap().unwrap().spent.units(), 0);
    assert!(!out.exists());
}
