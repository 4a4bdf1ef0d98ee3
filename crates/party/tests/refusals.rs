//! What a study may make a party refuse: by default nothing that a value could decide, and every
//! refusal is remembered.
#![allow(clippy::unwrap_used)]

mod support;

use std::fs;

use potluck_fixtures::sealed;
use potluck_party::release::release_with;
use potluck_party::{Error, Refusal, Table};
use potluck_release::Study;
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use support::{PARTY, job, ledger_with, new_ledger};

const ROWS: usize = 30;

fn study(method: &str, more: &str) -> Study {
    let diagnosis = format!("diagnosis levels = [\"none\", \"flu\", \"other\"]; {more}");
    let text = potluck_fixtures::study("test", ROWS as u64)
        .settings(&format!("method = \"{method}\""))
        .party(PARTY, &["age lo = 0; hi = 100", &diagnosis])
        .party("registry", &["outcome lo = 0; hi = 1"]);
    sealed(&text.to_string(), 7)
}

fn csv(rows: usize, changed: usize, line: &str) -> String {
    let row = |i: usize| format!("{i},{},{}\n", 20 + i, ["none", "flu", ""][i % 3]);
    let rows: String = (0..rows).map(|i| if i == changed { format!("{line}\n") } else { row(i) }).collect();
    format!("id,age,diagnosis\n{rows}")
}

/// The file of a release, with noise from a seed; and what the ledger remembers of refusals.
fn released(study: &Study, csv: &str) -> (Result<Vec<u8>, Error>, Vec<Refusal>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("table.csv");
    fs::write(&path, csv).unwrap();
    let table = Table::open(&path, folder.path()).unwrap();
    let mut ledger = new_ledger(folder.path());
    let out = folder.path().join("out.parquet");
    let done =
        release_with(&job(study, &table, &out, 2), &mut ledger, &(), || Ok(ChaCha20Rng::seed_from_u64(1)));
    let refused = ledger.refusals().unwrap().iter().map(|refused| refused.reason).collect();
    (done.map(|_| fs::read(&out).unwrap()), refused)
}

#[test]
fn an_unknown_level_counts_as_missing_unless_the_study_says_otherwise() {
    for method in ["calibrated", "rmgm"] {
        let by_default = study(method, "");
        assert_eq!(by_default.id(), study(method, "unknown = \"missing\"").id());
        let (with_unknown, refused) = released(&by_default, &csv(ROWS, 7, "7,27,HIV"));
        assert!(refused.is_empty());
        let with_unknown = with_unknown.unwrap();
        let (without, _) = released(&by_default, &csv(ROWS, 7, "7,27,"));
        assert!(with_unknown == without.unwrap(), "a release tells them apart");
        // The test would notice: a level makes a difference.
        let (known, _) = released(&by_default, &csv(ROWS, 7, "7,27,flu"));
        assert!(with_unknown != known.unwrap());

        let other = study(method, "unknown = \"other\"");
        let (with_unknown, _) = released(&other, &csv(ROWS, 7, "7,27,HIV"));
        let (with_other, _) = released(&other, &csv(ROWS, 7, "7,27,other"));
        assert!(with_unknown.unwrap() == with_other.unwrap());
    }
}

#[test]
fn every_refusal_that_depends_on_the_data_is_remembered_by_its_kind() {
    let strict = study("calibrated", "unknown = \"error\"");
    let complete = study("calibrated", "missing = \"error\"");
    let plain = study("calibrated", "");
    let cases = [
        (&strict, csv(ROWS, 7, "7,27,HIV"), Refusal::Value),
        (&complete, csv(ROWS, 2, "2,22,"), Refusal::Value),
        (&plain, csv(ROWS - 1, 99, ""), Refusal::Rows),
        (&plain, csv(ROWS + 1, 99, ""), Refusal::Rows),
        (&plain, csv(ROWS, 7, "6,27,flu"), Refusal::DuplicateId),
        (&plain, csv(ROWS, 7, ",27,flu"), Refusal::Id),
        (&plain, csv(ROWS, 7, "007,27,flu"), Refusal::Id),
        (&plain, csv(ROWS, 7, "7,many,flu"), Refusal::Number),
        (&plain, csv(ROWS, 7, "7,27"), Refusal::Line),
    ];
    for (study, csv, reason) in cases {
        let (failed, refused) = released(study, &csv);
        let failed = failed.err().unwrap();
        assert_eq!((failed.refusal(), refused.as_slice()), (Some(reason), [reason].as_slice()), "{failed}");
        assert!(!failed.to_string().contains("HIV") && !failed.to_string().contains("many"), "{failed}");
        assert!(!failed.to_string().contains("with this level"), "{failed}");
    }
    // An unknown level that counts as missing is refused where missing values are.
    let (failed, refused) = released(&complete, &csv(ROWS, 7, "7,27,HIV").replace(",\n", ",none\n"));
    assert!(failed.err().unwrap().to_string().contains("row 8") && refused == [Refusal::Value]);
}

/// Probing is as free as ever, but it no longer goes unseen; and it does not keep anyone from
/// releasing.
#[test]
fn refusals_add_up_and_charge_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let study = study("calibrated", "unknown = \"error\"");
    let definition = study.definition();
    let mut ledger = ledger_with(folder.path(), definition.epsilon(), definition.delta());
    let (bad, good) = (folder.path().join("bad.csv"), folder.path().join("good.csv"));
    fs::write(&bad, csv(ROWS, 7, "7,27,HIV")).unwrap();
    fs::write(&good, csv(ROWS, 7, "7,27,flu")).unwrap();
    let out = folder.path().join("out.parquet");
    let table = Table::open(&bad, folder.path()).unwrap();
    for times in 1..=3 {
        assert!(potluck_party::release(&job(&study, &table, &out, 1), &mut ledger, &()).is_err());
        let refusals = ledger.refusals().unwrap();
        assert_eq!(refusals.len(), times);
        assert!(refusals.iter().all(|refused| refused.study_id == study.id() && refused.party == PARTY));
    }
    assert_eq!(ledger.budget("patients").unwrap().unwrap().spent.units(), 0);
    let table = Table::open(&good, folder.path()).unwrap();
    potluck_party::release(&job(&study, &table, &out, 1), &mut ledger, &()).unwrap();
    assert_eq!(ledger.refusals().unwrap().len(), 3);
}
