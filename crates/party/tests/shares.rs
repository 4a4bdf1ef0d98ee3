//! Releases from what tasks of a cluster added up: the same file as from the table, however it is
//! cut into shares, and nothing charged for shares that are not just what the stage asked for.
//! crates/python/tests/test_engines.py runs the tasks on executors.
#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch};
use potluck_core::accounting::MuSquared;
use potluck_party::release::release_with;
use potluck_party::sql::{
    Description, Dialect, ResultRow, Results, Share, Source, StagedRelease, Task, merged,
};
use potluck_party::{Error, Ledger, LostValues, Refusal};
use potluck_release::Study;
use potluck_release::files::Existing;
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use support::{PARTY, Subject, batch, cohorts, job, new_ledger, study, table};

const ROWS: u64 = 60;

fn subjects(ids: impl Iterator<Item = i64>) -> Vec<Subject> {
    ids.map(|id| Subject {
        id,
        age: (id % 7 != 0).then_some(id as f64 * 1.5),
        dose: Some((id as f64 / 9.0).sin() * 1.2),
        smoker: [Some("no"), Some("yes"), None][id as usize % 3],
        region: [Some("north"), Some("south"), Some("elsewhere"), None][id as usize % 4],
    })
    .collect()
}

fn source(study: &Study) -> Source {
    let description = Description {
        dialect: Dialect::Spark,
        table: "people".to_owned(),
        id: None,
        booleans: Vec::new(),
        dates: Vec::new(),
    };
    Source::new(study, PARTY, description).unwrap()
}

#[expect(clippy::unnecessary_wraps, reason = "releases ask for it so")]
fn seeded() -> Result<ChaCha20Rng, Error> {
    Ok(ChaCha20Rng::seed_from_u64(5))
}

/// What stands for an engine's hash of an id.
fn hash(id: i64) -> i64 {
    (id + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15_u64.cast_signed())
}

/// Rows as a task is given them.
fn given(people: &[Subject]) -> RecordBatch {
    let whole = batch(people);
    let mut columns: Vec<(&str, ArrayRef)> = ["age", "dose", "smoker", "region", "id"]
        .map(|name| (name, whole.column_by_name(name).unwrap().clone()))
        .into();
    let hashes = Int64Array::from_iter_values(people.iter().map(|one| hash(one.id)));
    columns.push(("hash", Arc::new(hashes)));
    RecordBatch::try_from_iter(columns).unwrap()
}

/// The types of the columns, and what the search for duplicate ids says.
fn ids(people: &[Subject]) -> Vec<ResultRow> {
    let check = |modulus: i64| people.iter().map(|one| hash(one.id) % modulus).sum::<i64>();
    let mut different: Vec<i64> = people.iter().map(|one| one.id).collect();
    different.sort_unstable();
    different.dedup();
    let (rows, checks) = (people.len(), [check(1 << 26), check((1 << 26) - 5)]);
    let text = format!("{rows} {} 0 {} {}", different.len(), checks[0], checks[1]);
    let types = "double;double;string;string;bigint".to_owned();
    vec![ResultRow::new("types".to_owned(), 0, types), ResultRow::new("ids".to_owned(), 0, text)]
}

fn added(task: &Task, people: &[Subject]) -> Result<Vec<u8>, Error> {
    let mut share = Share::new(Task::parse(&task.to_text())?)?;
    for people in people.chunks(7) {
        share.add(&given(people))?;
    }
    Ok(share.finish().to_vec())
}

/// Adds up the people in so many shares, and merges them as a tree.
fn whole(task: &Task, people: &[Subject], shares: usize) -> Vec<u8> {
    let mut level: Vec<Vec<u8>> = people
        .chunks(people.len().div_ceil(shares).max(1))
        .map(|people| added(task, people).unwrap())
        .collect();
    // A task whose partition is empty has a share too.
    level.push(added(task, &[]).unwrap());
    while level.len() > 1 {
        let merge = |shares: &[Vec<u8>]| merged(shares.iter().map(Vec::as_slice)).unwrap().to_vec();
        level = level.chunks(2).map(merge).collect();
    }
    level.remove(0)
}

fn staged<'a>(study: &'a Study, source: &'a Source) -> StagedRelease<'a> {
    StagedRelease { study, party: PARTY, budget: "patients", source, lost_values: LostValues::Accept }
}

fn results(staged: &StagedRelease<'_>, ledger: &Ledger, ids: Vec<ResultRow>, whole: Vec<u8>) -> Results {
    let query = staged.next_query(ledger).unwrap().unwrap();
    Results::of_shares("shares", &query.fingerprint, ids, whole.into())
}

#[test]
fn a_release_from_shares_is_that_from_the_table() {
    let people = subjects(0..ROWS as i64);
    let studies = [
        study(ROWS, "id = \"integer\"\nmethod = \"calibrated\"", ""),
        study(ROWS, "id = \"integer\"\nk = 9", "clip_norm = 1.1"),
        cohorts(1.0, ROWS - 9, &[]),
        cohorts(1.0, ROWS - 9, &["smoker", "dose"]),
    ];
    for (study, shares) in studies.iter().zip([1, 3, 5, 60]) {
        let folder = tempfile::tempdir().unwrap();
        let (out, reference) = (folder.path().join("out"), folder.path().join("reference"));
        let data = table(&people);
        let mut ledger = new_ledger(&folder.path().join("first"));
        release_with(&job(study, &data, &reference, 2), &mut ledger, &(), seeded).unwrap();
        let mut ledger = new_ledger(&folder.path().join("second"));
        let source = source(study);
        let staged = staged(study, &source);
        while let Some(task) = staged.next_task(&ledger).unwrap() {
            let results = results(&staged, &ledger, ids(&people), whole(&task, &people, shares));
            staged.feed_with(&mut ledger, &results, &(), seeded).unwrap();
        }
        staged.finish(&mut ledger, &out, Existing::Keep, None, &()).unwrap();
        assert!(fs::read(&out).unwrap() == fs::read(&reference).unwrap(), "the same release as from a file");
    }
}

#[test]
fn shares_of_something_else_cost_nothing() {
    let study = study(ROWS, "id = \"integer\"\nmethod = \"calibrated\"", "");
    let people = subjects(0..ROWS as i64);
    let folder = tempfile::tempdir().unwrap();
    let mut ledger = new_ledger(folder.path());
    let source = source(&study);
    let staged = staged(&study, &source);
    let task = staged.next_task(&ledger).unwrap().unwrap();
    let good = whole(&task, &people, 3);
    let twice = subjects((0..ROWS as i64 - 1).chain([3]));
    let others = subjects(1..=ROWS as i64);
    let mut other_task = good.clone();
    other_task[0] ^= 1;
    let mut impossible = good.clone();
    let end = impossible.len() - 1;
    impossible[end] = 0x7f;
    for (problem, reason, ids, whole) in [
        (
            "the same id stands in several rows",
            Some(Refusal::DuplicateId),
            ids(&twice),
            whole(&task, &twice, 2),
        ),
        ("fewer rows", Some(Refusal::Rows), ids(&people[1..]), whole(&task, &people[1..], 2)),
        ("other subjects than those", None, ids(&people), whole(&task, &others, 2)),
        ("other subjects than those", None, ids(&people), whole(&task, &twice, 2)),
        ("lacks sums", None, ids(&people), whole(&task, &people[1..], 2)),
        ("is not the result of a query", None, ids(&people), other_task),
        ("is not the result of a query", None, ids(&people), good[..good.len() - 8].to_vec()),
        ("is not the result of a query", None, ids(&people), good[..10].to_vec()),
        ("no table of this study", None, ids(&people), impossible),
    ] {
        let results = results(&staged, &ledger, ids, whole);
        let error = staged.feed_with(&mut ledger, &results, &(), seeded).map(|_| ()).unwrap_err();
        assert!(error.to_string().contains(problem), "{problem}: {error}");
        assert_eq!(error.refusal(), reason, "{problem}");
        assert_eq!(ledger.budget("patients").unwrap().unwrap().spent, MuSquared::ZERO);
    }
    let results = results(&staged, &ledger, ids(&people), good.clone());
    staged.feed_with(&mut ledger, &results, &(), seeded).unwrap();
    // Shares of the first stage are none of the second.
    let task = staged.next_task(&ledger).unwrap().unwrap();
    assert!(merged([good.as_slice(), &added(&task, &people).unwrap()]).is_err());
}

#[test]
fn values_and_ids_that_the_study_refuses_are_found() {
    let text = "missing = \"error\"";
    let strict = potluck_fixtures::study("strict", ROWS)
        .settings("id = \"integer\"\nmethod = \"calibrated\"")
        .privacy(1.0, 1e-5)
        .party(
            PARTY,
            &[
                &format!("age lo = 0; hi = 100; {text}"),
                "dose lo = -1; hi = 1",
                "smoker levels = [\"no\", \"yes\"]",
                "region levels = [\"north\", \"south\", \"other\"]; unknown = \"other\"",
            ],
        )
        .party("registry", &["outcome lo = 0; hi = 1"])
        .to_string();
    let study = potluck_fixtures::sealed(&strict, 7);
    let people = subjects(0..ROWS as i64);
    let folder = tempfile::tempdir().unwrap();
    let mut ledger = new_ledger(folder.path());
    let source = source(&study);
    let staged = staged(&study, &source);
    let task = staged.next_task(&ledger).unwrap().unwrap();
    let results = results(&staged, &ledger, ids(&people), whole(&task, &people, 3));
    let error = staged.feed_with(&mut ledger, &results, &(), seeded).map(|_| ()).unwrap_err();
    assert_eq!(error.refusal(), Some(Refusal::Value));
    assert!(error.to_string().contains("\"age\""), "{error}");

    // An id that is missing is for the engine to find; a share without it is of other subjects.
    let good = given(&people);
    let mut columns = good.columns().to_vec();
    columns[4] =
        Arc::new((0..good.num_rows() as i64).map(|id| (id != 9).then_some(id)).collect::<Int64Array>());
    assert_eq!(columns[4].null_count(), 1);
    let mut share = Share::new(task).unwrap();
    share.add(&RecordBatch::try_new(good.schema(), columns).unwrap()).unwrap();
    let missing = Results::of_shares(
        "shares",
        &staged.next_query(&ledger).unwrap().unwrap().fingerprint,
        ids(&people),
        share.finish(),
    );
    let error = staged.feed_with(&mut ledger, &missing, &(), seeded).map(|_| ()).unwrap_err();
    assert!(error.to_string().contains("other subjects"), "{error}");
}

#[test]
fn another_version_of_the_package_does_not_add_up() {
    let study = study(ROWS, "id = \"integer\"\nmethod = \"calibrated\"", "");
    let folder = tempfile::tempdir().unwrap();
    let source = source(&study);
    let task = staged(&study, &source).next_task(&new_ledger(folder.path())).unwrap().unwrap();
    let other = task.to_text().replacen(env!("CARGO_PKG_VERSION"), "0.0.0", 1);
    let error = Task::parse(&other).map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("potluck 0.0.0") && error.contains("same version"), "{error}");
    assert!(Task::parse("{}").is_err());
}
