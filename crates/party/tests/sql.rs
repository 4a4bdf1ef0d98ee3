//! Releases from sums that an engine computed: the same file as from a table, and nothing charged for a result that is
//! not just what the query asked for. tests/python/test_sql.py runs the queries on the engines themselves.
#![allow(clippy::unwrap_used)]

mod support;

use std::collections::{BTreeMap, HashSet};
use std::fs;

use potluck_core::accounting::{Delta, Epsilon, MuSquared};
use potluck_core::stage::Statistic;
use potluck_party::release::release_with;
use potluck_party::sql::{Description, Dialect, Fed, Query, ResultRow, Results, Source, StagedRelease};
use potluck_party::{Error, Ledger};
use potluck_release::files::Existing;
use potluck_release::study::IdKind;
use potluck_release::{Release, Study};
use proptest::prelude::*;
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use support::{PARTY, Subject, audited, job, ledger_with, new_ledger, study, table};

const ROWS: u64 = 40;

fn calibrated() -> Study {
    study(ROWS, "id = \"integer\"\nmethod = \"calibrated\"", "")
}

fn description(dialect: Dialect) -> Description {
    Description {
        dialect,
        table: "clinic.people".to_owned(),
        id: None,
        booleans: Vec::new(),
        dates: Vec::new(),
    }
}

fn source(study: &Study, dialect: Dialect) -> Source {
    Source::new(study, PARTY, description(dialect)).unwrap()
}

fn staged<'a>(study: &'a Study, source: &'a Source) -> StagedRelease<'a> {
    StagedRelease { study, party: PARTY, budget: "patients", source }
}

fn subjects(rows: u64) -> Vec<Subject> {
    (0..rows as i64)
        .map(|id| Subject {
            id,
            age: (id % 7 != 0).then_some(id as f64 * 1.5),
            dose: Some((id as f64 / 9.0).sin() * 1.2),
            smoker: [Some("no"), Some("yes"), None][id as usize % 3],
            region: [Some("north"), Some("south"), Some("elsewhere"), None][id as usize % 4],
        })
        .collect()
}

/// Types that the columns and the id may have.
fn types(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Postgres => "double precision;real;text;character varying;bigint",
        Dialect::DuckDb => "DOUBLE;DECIMAL(9,2);VARCHAR;ENUM;UBIGINT",
        Dialect::Spark => "double;decimal(9,2);string;string;bigint",
    }
}

/// What an engine would answer: the row of each part, and the sums of the built-in reader.
fn answer(
    study: &Study,
    dialect: Dialect,
    people: &[Subject],
    earlier: &[Vec<i64>],
    query: &Query,
) -> Vec<(String, i64, String)> {
    let stage = study.stage(PARTY, earlier).unwrap().unwrap();
    let exact: Vec<i64> =
        audited(study, &table(people), earlier, 1).into_iter().map(|(_, _, sum)| sum).collect();
    let (n, width) = (people.len(), stage.encoder.width());
    let text = |counts: usize, sums: &[i64]| {
        let numbers: Vec<String> =
            [counts as i64, 0, 0, 0, 0].iter().chain(sums).map(ToString::to_string).collect();
        numbers.join(" ")
    };
    let row = |part: &str, number: i64, value: String| (part.to_owned(), number, value);
    let positions = match study.definition().id_kind() {
        IdKind::Row => format!(" 0 {}", n - 1),
        IdKind::Integer | IdKind::Text => String::new(),
    };
    let mut rows = vec![
        row("query", 0, query.fingerprint.clone()),
        row("types", 0, types(dialect).to_owned()),
        row("ids", 0, format!("{n} {n} 0{positions}")),
    ];
    match stage.statistic {
        Statistic::Mixed { k, .. } => {
            let mut counts: BTreeMap<u64, usize> = BTreeMap::new();
            for subject in people {
                let digest = study.seal().key().subject(subject.id.to_string().as_bytes());
                *counts.entry(digest.sparse_entry(k).0).or_default() += 1;
            }
            rows.extend(counts.into_iter().map(|(bucket, count)| {
                row("sums", bucket as i64, text(count, &exact[bucket as usize * width..][..width]))
            }));
        }
        Statistic::Standardise { .. } | Statistic::Moments => rows.push(row("sums", 0, text(n, &exact))),
    }
    rows
}

fn results(rows: &[(String, i64, String)]) -> Results {
    let row =
        |(part, number, value): &(String, i64, String)| ResultRow::new(part.clone(), *number, value.clone());
    Results::new("result.csv", rows.iter().map(row))
}

fn seeded(seed: u64) -> impl Fn() -> Result<ChaCha20Rng, Error> {
    move || Ok(ChaCha20Rng::seed_from_u64(seed))
}

fn spent(ledger: &Ledger) -> MuSquared {
    ledger.budget("patients").unwrap().unwrap().spent
}

/// Takes a release through all its stages, and returns the bytes of its file.
fn released(study: &Study, people: &[Subject], description: Description, seed: u64) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let (out, reference) = (folder.path().join("out"), folder.path().join("reference"));
    let mut ledger = new_ledger(&folder.path().join("first"));
    let data = table(people);
    release_with(&job(study, &data, &reference, 2), &mut ledger, &(), seeded(seed)).unwrap();
    let earlier = Release::read(&reference).unwrap().earlier_sums();

    let mut ledger = new_ledger(&folder.path().join("second"));
    let dialect = description.dialect;
    let source = Source::new(study, PARTY, description).unwrap();
    let staged = staged(study, &source);
    for stage in 0..=earlier.len() {
        assert!(staged.finish(&mut ledger, &out, Existing::Keep, None, &()).is_err());
        let query = staged.next_query(&ledger).unwrap().unwrap();
        assert_eq!(query.position as usize, stage);
        assert_eq!(spent(&ledger) == MuSquared::ZERO, stage == 0, "asking is free");
        let rows = results(&answer(study, dialect, people, &earlier[..stage], &query));
        // The noise of each stage is that of a release from a file, so the next query is the same as well.
        for expected in [Fed::Stored, Fed::Known] {
            assert_eq!(staged.feed_with(&mut ledger, &rows, &(), seeded(seed)).unwrap(), expected);
        }
        assert_eq!(spent(&ledger), study.mu().squared(), "one charge");
    }
    assert!(staged.next_query(&ledger).unwrap().is_none());
    for repeated in [false, true] {
        let published = staged.finish(&mut ledger, &out, Existing::Keep, None, &()).unwrap();
        assert_eq!(published.repeated, repeated);
    }
    let bytes = fs::read(&out).unwrap();
    assert!(bytes == fs::read(&reference).unwrap(), "the same release as from a file");
    bytes
}

#[test]
fn a_release_from_sums_is_that_from_the_table() {
    let people = subjects(ROWS);
    let calibrated = calibrated();
    let files: HashSet<Vec<u8>> = Dialect::ALL
        .into_iter()
        .map(|dialect| released(&calibrated, &people, description(dialect), 5))
        .collect();
    assert_eq!(files.len(), 1);
    released(
        &study(ROWS, "id = \"integer\"\nk = 9", "clip_norm = 1.1"),
        &people,
        description(Dialect::Postgres),
        6,
    );
    let positions = study(ROWS, "id = \"row\"\nmethod = \"calibrated\"", "");
    let with_positions = Description { id: Some("position".to_owned()), ..description(Dialect::Postgres) };
    released(&positions, &people, with_positions, 7);
}

/// Everything that may be wrong with the answer to the first query, and what is said about it.
#[test]
fn a_result_that_is_not_quite_right_costs_nothing() {
    type Change = fn(&mut Vec<(String, i64, String)>);
    let changes: &[(&str, &str, Change)] = &[
        ("another query", "is not the result of the query of stage 1", |rows| rows[0].2 = "0".repeat(64)),
        ("no query", "is not the result of a query", |rows| drop(rows.remove(0))),
        ("two queries", "is not the result of a query", |rows| rows.insert(0, rows[0].clone())),
        ("empty", "is not the result of a query", Vec::clear),
        ("no types: an empty table", "fewer rows", |rows| drop(rows.remove(1))),
        ("text for a number", "holds text, but the study gives it bounds", |rows| {
            rows[1].2 = "text;real;text;text;bigint".to_owned();
        }),
        ("a time for a number", "no order of numbers", |rows| {
            rows[1].2 = "timestamp without time zone;real;text;text;bigint".to_owned();
        }),
        ("padded levels", "levels are text", |rows| rows[1].2 = "real;real;character;text;bigint".to_owned()),
        ("numbers as ids", "ids are whole numbers", |rows| {
            rows[1].2 = "real;real;text;text;numeric".to_owned();
        }),
        ("text ids", "ids are whole numbers", |rows| rows[1].2 = "real;real;text;text;text".to_owned()),
        ("too few types", "is not the result", |rows| rows[1].2 = "real;bigint".to_owned()),
        ("ids twice", "the same id stands in several rows", |rows| rows[2].2 = "40 39 0".to_owned()),
        ("no id", "ids are missing", |rows| rows[2].2 = "40 39 1".to_owned()),
        ("fewer rows", "fewer rows", |rows| rows[2].2 = "39 39 0".to_owned()),
        ("more rows", "more rows", |rows| rows[2].2 = "41 41 0".to_owned()),
        ("rows that other rows contradict", "lacks sums", |rows| {
            rows[3].2 = rows[3].2.replacen("40 ", "39 ", 1);
        }),
        ("more rows in the sums", "no table of this study", |rows| {
            rows[3].2 = rows[3].2.replacen("40 ", "41 ", 1);
        }),
        ("no sums", "lacks sums", |rows| drop(rows.pop())),
        ("sums twice", "just once", |rows| rows.push(rows[3].clone())),
        ("sums elsewhere", "just once", |rows| rows[3].1 = 1),
        ("sums before the first", "just once", |rows| rows[3].1 = -1),
        ("a sum too few", "just once", |rows| {
            let cut = rows[3].2.rfind(' ').unwrap();
            rows[3].2.truncate(cut);
        }),
        ("a sum too many", "just once", |rows| rows[3].2.push_str(" 0")),
        ("a fraction", "whole numbers", |rows| rows[3].2.push_str(".5")),
        ("an exponent", "whole numbers", |rows| rows[3].2.push_str("e3")),
        ("a padded number", "whole numbers", |rows| rows[3].2.insert(0, '0')),
        ("two spaces", "whole numbers", |rows| rows[3].2 = rows[3].2.replacen(' ', "  ", 1)),
        ("a sum that does not fit", "whole numbers", |rows| rows[3].2.push_str("0000000000000000000")),
        ("refused values", "the study refuses them", |rows| {
            rows[3].2 = rows[3].2.replacen("40 0 0 0 0 ", "40 0 0 3 0 ", 1);
        }),
        ("an unheard-of part", "is not the result of a query", |rows| {
            rows.push(("more".to_owned(), 0, String::new()));
        }),
    ];
    let study = calibrated();
    let source = source(&study, Dialect::Postgres);
    let staged = staged(&study, &source);
    let folder = tempfile::tempdir().unwrap();
    let mut ledger = new_ledger(folder.path());
    let query = staged.next_query(&ledger).unwrap().unwrap();
    let right = answer(&study, Dialect::Postgres, &subjects(ROWS), &[], &query);
    for (what, message, change) in changes {
        let mut rows = right.clone();
        change(&mut rows);
        let error = staged.feed(&mut ledger, &results(&rows), &()).err().unwrap().to_string();
        assert!(error.contains(message), "{what}: {error}");
        assert_eq!(spent(&ledger), MuSquared::ZERO, "{what}");
        assert_eq!(staged.stored_stages(&ledger).unwrap(), 0, "{what}");
        // No sum of the table is in a message.
        for number in right[3].2.split(' ').filter(|number| number.len() > 3) {
            assert!(!error.contains(number), "{what}: {error}");
        }
    }
    assert_eq!(staged.feed(&mut ledger, &results(&right), &()).unwrap(), Fed::Stored);
    // From here on the charge stands, and the message says so.
    let error =
        staged.feed(&mut ledger, &results(&[("query".to_owned(), 0, String::new())]), &()).err().unwrap();
    assert!(matches!(error, Error::Interrupted { stage: 2, .. }), "{error}");
    assert_eq!(staged.stored_stages(&ledger).unwrap(), 1);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Sums that no rows can have are refused, whichever it is.
    #[test]
    fn impossible_sums_are_refused(at in 0_usize..8, size in (1_i64 << 48)..i64::MAX, negative: bool) {
        let study = calibrated();
        let source = source(&study, Dialect::Postgres);
        let staged = staged(&study, &source);
        let folder = tempfile::tempdir().unwrap();
        let mut ledger = new_ledger(folder.path());
        let query = staged.next_query(&ledger).unwrap().unwrap();
        let mut rows = answer(&study, Dialect::Postgres, &subjects(ROWS), &[], &query);
        let mut numbers: Vec<String> = rows[3].2.split(' ').map(str::to_owned).collect();
        numbers[5 + at] = (if negative { -size } else { size }).to_string();
        rows[3].2 = numbers.join(" ");
        let error = staged.feed(&mut ledger, &results(&rows), &()).err().unwrap().to_string();
        prop_assert!(error.contains("no table of this study"), "{}", error);
        prop_assert_eq!(spent(&ledger), MuSquared::ZERO);
    }
}

#[test]
fn results_are_bound_to_study_party_stage_dialect_and_table() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = new_ledger(folder.path());
    let mut fingerprints = HashSet::new();
    let mut add = |study: &Study, party: &str, description: Description| {
        let source = Source::new(study, party, description).unwrap();
        let staged = StagedRelease { study, party, budget: "patients", source: &source };
        let query = staged.next_query(&ledger).unwrap().unwrap();
        assert!(query.text.contains(&format!("'{}'", query.fingerprint)));
        for character in ["%", "::", "?"] {
            assert!(!query.text.contains(character), "drivers read {character} as their own");
        }
        assert!(fingerprints.insert(query.fingerprint));
    };
    let one = calibrated();
    let other = study(ROWS + 1, "id = \"integer\"\nmethod = \"calibrated\"", "");
    for dialect in Dialect::ALL {
        add(&one, PARTY, description(dialect));
        add(&other, PARTY, description(dialect));
        add(&one, "registry", description(dialect));
        add(&one, PARTY, Description { table: "people".to_owned(), ..description(dialect) });
        add(&one, PARTY, Description { id: Some("person".to_owned()), ..description(dialect) });
        add(&one, PARTY, Description { booleans: vec!["age".to_owned()], ..description(dialect) });
        add(&one, PARTY, Description { dates: vec!["age".to_owned()], ..description(dialect) });
    }
}

#[test]
fn what_no_query_can_do_is_refused_with_a_way_out() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = new_ledger(folder.path());
    let query_error = |study: &Study, id: Option<&str>| {
        let description = Description { id: id.map(str::to_owned), ..description(Dialect::DuckDb) };
        match Source::new(study, PARTY, description) {
            Err(error) => error.to_string(),
            Ok(source) => staged(study, &source).next_query(&ledger).err().unwrap().to_string(),
        }
    };
    let bernoulli = study(ROWS, "id = \"integer\"\nmixing = \"bernoulli\"\nk = 9", "");
    assert!(query_error(&bernoulli, None).contains("mixing = \"sparse\""));
    let identity = study(ROWS, "id = \"row\"\nmethod = \"dgm\"", "");
    assert!(query_error(&identity, Some("position")).contains("potluck release --data"));
    let positions = study(ROWS, "id = \"row\"\nmethod = \"calibrated\"", "");
    assert!(query_error(&positions, None).contains("--id"));
    assert!(query_error(&calibrated(), Some("age")).contains("both the id and a column"));
    assert!(query_error(&calibrated(), Some("a\nb")).contains("not the name of a column"));

    let wrong = |change: fn(&mut Description)| {
        let mut description = description(Dialect::Postgres);
        change(&mut description);
        Source::new(&calibrated(), PARTY, description).err().unwrap().to_string()
    };
    assert!(wrong(|d| d.booleans = vec!["smoker".to_owned()]).contains("not a column with bounds"));
    assert!(wrong(|d| d.dates = vec!["nothing".to_owned()]).contains("not a column with bounds"));
    assert!(
        wrong(|d| (d.booleans, d.dates) = (vec!["age".to_owned()], vec!["age".to_owned()])).contains("both")
    );
    assert!(wrong(|d| d.table = "people.".to_owned()).contains("not the name of a table"));
    assert!(wrong(|d| d.table = "é".repeat(40)).contains("cuts off"));
}

#[test]
fn the_budget_is_looked_at_before_an_engine_works() {
    let folder = tempfile::tempdir().unwrap();
    let small = ledger_with(folder.path(), Epsilon::new(0.5).unwrap(), Delta::new(1e-5).unwrap());
    let study = calibrated();
    let source = source(&study, Dialect::Spark);
    assert!(matches!(staged(&study, &source).next_query(&small), Err(Error::Overspend { .. })));
    let elsewhere = StagedRelease { budget: "nothing", ..staged(&study, &source) };
    assert!(matches!(elsewhere.next_query(&small), Err(Error::NoBudget(_))));
}

#[test]
fn the_state_folder_remembers_the_table_of_one_release() {
    let folder = tempfile::tempdir().unwrap();
    let study = calibrated();
    let state = folder.path().join("state");
    assert!(Source::load(&study, PARTY, &state).unwrap().is_none());
    let source = source(&study, Dialect::Spark);
    source.save(&study, PARTY, &state).unwrap();
    assert_eq!(Source::load(&study, PARTY, &state).unwrap(), Some(source));
    let other = support::study(ROWS + 1, "id = \"integer\"", "");
    assert!(Source::load(&other, PARTY, &state).unwrap().is_none());
    fs::write(state.join("clinic.source.json"), "{").unwrap();
    assert!(Source::load(&study, PARTY, &state).err().unwrap().to_string().contains("damaged"));
}
