//! Releases from sums that an engine computed: the same file as from a table, and nothing charged
//! for a result that is not just what the query asked for. tests/python/test_sql.py runs the
//! queries on the engines themselves.
#![allow(clippy::unwrap_used)]

mod support;

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::iter;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use potluck_core::accounting::{Delta, Epsilon, MuSquared};
use potluck_core::encoding::Bins;
use potluck_core::stage::{Stage, Statistic, pairs};
use potluck_party::release::release_with;
use potluck_party::sql::{
    Description, Dialect, Fed, Query, Remembered, ResultRow, Results, Source, StagedRelease,
};
use potluck_party::{Error, Ledger, LostValues, Observer, Refusal, Step};
use potluck_release::files::Existing;
use potluck_release::study::IdKind;
use potluck_release::{Release, Study};
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use support::{PARTY, Subject, audited, cohorts, job, ledger_with, new_ledger, study, table, terms};

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
    StagedRelease { study, party: PARTY, budget: "patients", source, lost_values: LostValues::Accept }
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
    let subject = |id: i64| study.seal().key().subject(id.to_string().as_bytes());
    // Any numbers that are the same whenever an id is read.
    let checks = |people: &[&Subject]| {
        let sum = |modulus: i64| people.iter().map(|one| one.id * 7919 % modulus).sum::<i64>();
        format!("{} {}", sum(67), sum(61))
    };
    let text = |people: &[&Subject], sums: &[i64]| {
        let sums: Vec<String> = sums.iter().map(ToString::to_string).collect();
        format!("{} {} 0 0 0 0 {}", people.len(), checks(people), sums.join(" "))
    };
    let everybody: Vec<&Subject> = people.iter().collect();
    let row = |part: &str, number: i64, value: String| (part.to_owned(), number, value);
    let positions = match study.definition().id_kind() {
        IdKind::Row => format!(" 0 {}", n - 1),
        IdKind::Integer | IdKind::Text => String::new(),
    };
    let mut rows = vec![
        row("query", 0, query.fingerprint.clone()),
        row("types", 0, types(dialect).to_owned()),
        row("ids", 0, format!("{n} {n} 0 {}{positions}", checks(&everybody))),
    ];
    match stage.statistic {
        Statistic::Mixed { k, .. } => {
            let mut mixed: BTreeMap<u64, Vec<&Subject>> = BTreeMap::new();
            for one in people {
                mixed.entry(subject(one.id).sparse_entry(k).0).or_default().push(one);
            }
            rows.extend(mixed.into_iter().map(|(bucket, people)| {
                row("sums", bucket as i64, text(&people, &exact[bucket as usize * width..][..width]))
            }));
        }
        Statistic::Standardise { .. } | Statistic::Moments => {
            let bins = stage.encoder.bins();
            let cells: usize = bins.iter().map(Bins::count).sum();
            let (sums, mut cells) = exact.split_at(exact.len() - cells);
            rows.push(row("sums", 0, text(&everybody, sums)));
            for (place, bins) in (0..).zip(bins) {
                let (own, others) = cells.split_at(bins.count());
                cells = others;
                let missing = n as i64 - own.iter().sum::<i64>();
                // The check sums of all stand at the first one.
                let mut sums = Some(checks(&everybody));
                for (cell, &count) in (0..).zip(iter::once(&missing).chain(own)) {
                    if count > 0 {
                        let sums = sums.take().unwrap_or_else(|| "0 0".to_owned());
                        rows.push(row("cells", place * 1024 + cell, format!("{count} {sums}")));
                    }
                }
            }
        }
    }
    if earlier.is_empty() {
        rows.push(row("lost", 0, "1 0 2 3".to_owned()));
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
        // The noise of each stage is that of a release from a file, so the next query is the same
        // as well.
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
    // Parties that hold different people, and a number of rows that is not quite right.
    for never in [&[][..], &["smoker", "dose"]] {
        let cohorts = cohorts(1.0, ROWS - 9, never);
        released(&cohorts, &people, description(Dialect::DuckDb), 8);
    }
    let positions = study(ROWS, "id = \"row\"\nmethod = \"calibrated\"", "");
    let with_positions = Description { id: Some("position".to_owned()), ..description(Dialect::Postgres) };
    released(&positions, &people, with_positions, 7);
}

/// Another number at one place of a text of numbers.
fn replace_count(text: &mut String, place: usize, number: &str) {
    let mut numbers: Vec<&str> = text.split(' ').collect();
    numbers[place] = number;
    *text = numbers.join(" ");
}

/// Everything that may be wrong with the answer to the first query, and what is said about it.
#[test]
fn a_result_that_is_not_quite_right_costs_nothing() {
    use Refusal::{DuplicateId, Id, Rows, Type, Value};
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
        ("too few types", "does not name a type for each", |rows| rows[1].2 = "real;bigint".to_owned()),
        ("ids twice", "the same id stands in several rows", |rows| replace_count(&mut rows[2].2, 1, "39")),
        ("no id", "ids are missing", |rows| replace_count(&mut rows[2].2, 2, "1")),
        ("fewer rows", "fewer rows", |rows| rows[2].2 = rows[2].2.replacen("40 40", "39 39", 1)),
        ("more rows", "more rows", |rows| rows[2].2 = rows[2].2.replacen("40 40", "41 41", 1)),
        ("rows that other rows contradict", "lacks sums", |rows| {
            rows[3].2 = rows[3].2.replacen("40 ", "39 ", 1);
        }),
        ("more rows in the sums", "no table of this study", |rows| {
            rows[3].2 = rows[3].2.replacen("40 ", "41 ", 1);
        }),
        ("no sums", "lacks sums", |rows| drop(rows.remove(3))),
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
            replace_count(&mut rows[3].2, 5, "3");
        }),
        ("other ids in the sums", "other subjects than those", |rows| replace_count(&mut rows[3].2, 1, "7")),
        ("other ids in the second check", "other subjects than those", |rows| {
            replace_count(&mut rows[3].2, 2, "7");
        }),
        ("other ids in the count", "other subjects than those", |rows| replace_count(&mut rows[2].2, 3, "7")),
        ("no check sums", "is not the result", |rows| rows[2].2 = "40 40 0".to_owned()),
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
    let mut refused = Vec::new();
    for (what, message, change) in changes {
        let mut rows = right.clone();
        change(&mut rows);
        let error = staged.feed(&mut ledger, &results(&rows), &()).err().unwrap();
        refused.extend(error.refusal());
        let error = error.to_string();
        assert!(error.contains(message), "{what}: {error}");
        assert_eq!(spent(&ledger), MuSquared::ZERO, "{what}");
        assert_eq!(staged.stored_stages(&ledger).unwrap(), 0, "{what}");
        // No sum of the table is in a message.
        for number in right[3].2.split(' ').filter(|number| number.len() > 3) {
            assert!(!error.contains(number), "{what}: {error}");
        }
    }
    // What depends on the table is remembered, and what only depends on the file is not.
    assert_eq!(refused, [Rows, Type, Type, Type, Type, Type, DuplicateId, Id, Rows, Rows, Value]);
    let recorded: Vec<Refusal> = ledger.refusals().unwrap().iter().map(|refused| refused.reason).collect();
    assert_eq!(recorded, refused);
    assert_eq!(staged.feed(&mut ledger, &results(&right), &()).unwrap(), Fed::Stored);
    // From here on the charge stands, and the message says so.
    let error =
        staged.feed(&mut ledger, &results(&[("query".to_owned(), 0, String::new())]), &()).err().unwrap();
    assert!(matches!(error, Error::Interrupted { stage: 2, .. }), "{error}");
    assert_eq!(staged.stored_stages(&ledger).unwrap(), 1);
}

/// In every stage, a sum at the limit of what so many rows can have is taken, and one beyond it is
/// refused.
#[test]
fn impossible_sums_are_refused() {
    let people = subjects(ROWS);
    for study in [calibrated(), study(ROWS, "id = \"integer\"\nk = 9", "clip_norm = 1.1")] {
        let source = source(&study, Dialect::Postgres);
        let staged = staged(&study, &source);
        let folder = tempfile::tempdir().unwrap();
        let mut ledger = new_ledger(folder.path());
        let mut earlier = Vec::new();
        while let Some(query) = staged.next_query(&ledger).unwrap() {
            let stage = study.stage(PARTY, &earlier).unwrap().unwrap();
            let right = answer(&study, Dialect::Postgres, &people, &earlier, &query);
            let row = right[3].2.clone();
            let numbers: Vec<&str> = row.split(' ').collect();
            let count: i128 = numbers[0].parse().unwrap();
            for (at, limit) in limits(&stage).into_iter().enumerate() {
                // The largest that `count` rows can add up to, and the smallest.
                let (least, most) = limit.of(count);
                for beyond in [least - 1, most + 1, i128::from(i64::MAX), i128::from(i64::MIN)] {
                    let mut rows = right.clone();
                    replace_count(&mut rows[3].2, 7 + at, &beyond.to_string());
                    let error = staged.feed(&mut ledger, &results(&rows), &()).err().unwrap();
                    let error =
                        format!("{error} {:?}", std::error::Error::source(&error).map(ToString::to_string));
                    assert!(error.contains("no table of this study"), "{} {at}: {error}", stage.name);
                }
                for within in [least, most] {
                    let own = tempfile::tempdir().unwrap();
                    if earlier.is_empty() {
                        let mut rows = right.clone();
                        replace_count(&mut rows[3].2, 7 + at, &within.to_string());
                        let fed = staged.feed(&mut new_ledger(own.path()), &results(&rows), &());
                        assert_eq!(fed.unwrap(), Fed::Stored, "{} {at}", stage.name);
                    }
                }
            }
            assert_eq!(staged.stored_stages(&ledger).unwrap() as usize, earlier.len());
            staged.feed(&mut ledger, &results(&right), &()).unwrap();
            earlier = stored(&study, &ledger);
        }
        assert_eq!(spent(&ledger), study.mu().squared());
    }
}

/// The same of the counts and the presence of format 2.
#[test]
fn impossible_counts_are_refused() {
    let people = subjects(ROWS);
    let study = cohorts(1.0, ROWS, &["smoker"]);
    let source = source(&study, Dialect::Postgres);
    let staged = staged(&study, &source);
    let folder = tempfile::tempdir().unwrap();
    let mut ledger = new_ledger(folder.path());
    let mut earlier = Vec::new();
    while let Some(query) = staged.next_query(&ledger).unwrap() {
        let stage = study.stage(PARTY, &earlier).unwrap().unwrap();
        let right = answer(&study, Dialect::Postgres, &people, &earlier, &query);
        let numbers: Vec<i64> = right[3].2.split(' ').map(|number| number.parse().unwrap()).collect();
        let (count, sums) = (numbers[0], &numbers[7..]);
        let (width, groups) = (6, stage.encoder.groups());
        let counts = match &stage.statistic {
            Statistic::Standardise { squares } => width + squares.len()..sums.len(),
            Statistic::Moments => width * groups + width + pairs(width).count()..sums.len(),
            Statistic::Mixed { .. } => 0..0,
        };
        let mut wrong: Vec<(usize, i64)> =
            (0..sums.len()).flat_map(|at| [(at, i64::MAX), (at, i64::MIN)]).collect();
        wrong.extend(counts.flat_map(|at| [(at, -1), (at, count + 1)]));
        // Presence is a whole number of people.
        wrong.extend(stage.encoder.weight().map(|_| (width, sums[width] + 1)));
        for (at, number) in wrong {
            let mut rows = right.clone();
            replace_count(&mut rows[3].2, 7 + at, &number.to_string());
            let error = staged.feed(&mut ledger, &results(&rows), &()).err();
            let error = error.unwrap_or_else(|| panic!("{} {at} {number} was taken", stage.name));
            let error = format!("{error} {:?}", std::error::Error::source(&error).map(ToString::to_string));
            assert!(error.contains("no table of this study"), "{} {at}: {error}", stage.name);
        }
        staged.feed(&mut ledger, &results(&right), &()).unwrap();
        earlier = stored(&study, &ledger);
    }
    assert_eq!(earlier.len(), 4);
}

/// What becomes of the rows of a result, given the first and the last row of cells.
type CellChange = fn(&mut Vec<(String, i64, String)>, usize, usize);

/// Cells of histograms are of every row one a column, of the subjects whose ids were looked at.
#[test]
fn impossible_cells_are_refused() {
    let people = subjects(ROWS);
    let study = cohorts(1.0, ROWS, &["smoker"]);
    let source = source(&study, Dialect::Spark);
    let staged = staged(&study, &source);
    let folder = tempfile::tempdir().unwrap();
    let mut ledger = new_ledger(folder.path());
    let query = staged.next_query(&ledger).unwrap().unwrap();
    let right = answer(&study, Dialect::Spark, &people, &[], &query);
    let places: Vec<usize> = (0..right.len()).filter(|&at| right[at].0 == "cells").collect();
    let (first, last) = (places[0], places[places.len() - 1]);
    let wrong: [(&str, &str, CellChange); 9] = [
        ("a cell left out", "lacks sums", |rows, _, last| {
            rows.remove(last);
        }),
        ("a value too many", "lacks sums", |rows, first, _| {
            let count: i64 = rows[first].2.split(' ').next().unwrap().parse().unwrap();
            replace_count(&mut rows[first].2, 0, &(count + 1).to_string());
        }),
        ("other subjects", "other subjects", |rows, first, _| replace_count(&mut rows[first].2, 1, "7")),
        ("nobody in a row", "no table of this study", |rows, _, last| {
            replace_count(&mut rows[last].2, 0, "0");
        }),
        ("fewer than nobody", "no table of this study", |rows, _, last| {
            replace_count(&mut rows[last].2, 0, "-1");
        }),
        ("a cell twice", "no table of this study", |rows, first, _| rows.push(rows[first].clone())),
        ("a check sum too many", "no table of this study", |rows, first, _| rows[first].2.push_str(" 0")),
        ("a cell that is none", "not the result", |rows, first, _| rows[first].1 = 1023),
        ("a column that is none", "not the result", |rows, first, _| rows[first].1 = -1),
    ];
    for (name, expected, change) in wrong {
        let mut rows = right.clone();
        change(&mut rows, first, last);
        let error = staged.feed(&mut ledger, &results(&rows), &()).err();
        let error = error.unwrap_or_else(|| panic!("{name} was taken"));
        let error = format!("{error} {:?}", std::error::Error::source(&error).map(ToString::to_string));
        assert!(error.contains(expected), "{name}: {error}");
    }
    assert_eq!(staged.feed(&mut ledger, &results(&right), &()).unwrap(), Fed::Stored);
}

/// How large a sum over one row can be.
#[derive(Clone, Copy)]
enum Limit {
    /// Of entries whose squares are at most this.
    Entries(i128),
    /// Of squares of them.
    Squares(i128),
    /// Of products of two of them.
    Products(i128),
}

impl Limit {
    fn of(self, count: i128) -> (i128, i128) {
        match self {
            Self::Entries(limit) => {
                let most = (count * count * limit).isqrt();
                (-most, most)
            }
            Self::Squares(limit) => (0, count * limit),
            Self::Products(limit) => (-count * limit, count * limit),
        }
    }
}

/// For each sum of a row of the result.
fn limits(stage: &Stage) -> Vec<Limit> {
    let scalings = stage.encoder.columns().iter().flat_map(|(_, scalings)| scalings);
    let ball = stage.encoder.ball().map(|ball| i128::from(ball.norm_squared()));
    let squared: Vec<i128> = scalings
        .map(|scaling| ball.unwrap_or(i128::from(scaling.limit) * i128::from(scaling.limit)))
        .collect();
    let mut limits: Vec<Limit> = squared.iter().map(|&limit| Limit::Entries(limit)).collect();
    match &stage.statistic {
        Statistic::Mixed { .. } => {}
        Statistic::Standardise { squares } => {
            limits.extend(squares.iter().map(|&column| Limit::Squares(squared[column])));
        }
        Statistic::Moments => {
            limits.extend(squared.iter().map(|&limit| Limit::Squares(limit)));
            let largest = squared.iter().copied().max().unwrap();
            limits.extend(pairs(squared.len()).map(|_| Limit::Products(largest)));
        }
    }
    limits
}

/// Panics as soon as a step is done.
struct DieAt(Step);

impl Observer for DieAt {
    fn step(&self, step: Step) {
        assert!(step != self.0, "dies here");
    }
}

/// Everything that the command does, with the answers of an engine, up to the file.
fn run_through(
    study: &Study,
    people: &[Subject],
    ledger: &mut Ledger,
    out: &Path,
    seed: u64,
    observer: &dyn Observer,
) {
    let source = source(study, Dialect::Postgres);
    let staged = staged(study, &source);
    terms(study, "patients", out).check_out(ledger).unwrap();
    while let Some(query) = staged.next_query(ledger).unwrap() {
        let earlier = stored(study, ledger);
        let rows = results(&answer(study, Dialect::Postgres, people, &earlier, &query));
        staged.feed_with(ledger, &rows, observer, seeded(seed)).unwrap();
    }
    staged.finish(ledger, out, Existing::Keep, None, observer).unwrap();
}

/// The noised sums of every stage that the ledger has.
fn stored(study: &Study, ledger: &Ledger) -> Vec<Vec<i64>> {
    let mut stored = Vec::new();
    let Some(session) = ledger.session("patients", study.id(), PARTY).unwrap() else { return stored };
    while let Some(stage) = study.stage(PARTY, &stored).unwrap() {
        match ledger.stored_stage(&session, stored.len() as u32, stage.coordinates()).unwrap() {
            Some(stage) => stored.push(stage.all().unwrap()),
            None => break,
        }
    }
    stored
}

#[test]
fn a_release_from_sums_that_dies_at_any_step_is_taken_up() {
    let people = subjects(ROWS);
    let study = calibrated();
    for step in Step::all(4) {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("out");
        let mut ledger = new_ledger(folder.path());
        let died = catch_unwind(AssertUnwindSafe(|| {
            run_through(&study, &people, &mut ledger, &out, 1, &DieAt(step));
        }));
        assert!(died.is_err(), "{step:?} was not reached");
        drop(ledger);
        let mut ledger = Ledger::open(&folder.path().join("ledger.sqlite")).unwrap();
        let before = stored(&study, &ledger);
        // Another seed: noise that was drawn again would be another.
        run_through(&study, &people, &mut ledger, &out, 2, &());
        assert_eq!(stored(&study, &ledger)[..before.len()], before, "{step:?}");
        assert_eq!(spent(&ledger), study.mu().squared(), "{step:?}");
        let file = fs::read(&out).unwrap();
        run_through(&study, &people, &mut ledger, &out, 3, &());
        assert!(file == fs::read(&out).unwrap(), "{step:?}: the same bytes again");
        Release::read(&out).unwrap();
    }
}

#[test]
fn results_are_bound_to_study_party_stage_dialect_and_table() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = new_ledger(folder.path());
    let mut fingerprints = HashSet::new();
    let mut add = |study: &Study, party: &str, description: Description| {
        let source = Source::new(study, party, description).unwrap();
        let lost_values = LostValues::Accept;
        let staged = StagedRelease { study, party, budget: "patients", source: &source, lost_values };
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
fn sums_of_one_release_are_not_noised_under_a_second_budget() {
    let folder = tempfile::tempdir().unwrap();
    let mut ledger = new_ledger(folder.path());
    ledger.set_budget("clients", Epsilon::new(1.0).unwrap(), Delta::new(1e-5).unwrap()).unwrap();
    let study = calibrated();
    let source = source(&study, Dialect::DuckDb);
    let first = staged(&study, &source);
    let query = first.next_query(&ledger).unwrap().unwrap();
    let rows = results(&answer(&study, Dialect::DuckDb, &subjects(ROWS), &[], &query));
    first.feed(&mut ledger, &rows, &()).unwrap();
    let second = StagedRelease { budget: "clients", ..staged(&study, &source) };
    let out = folder.path().join("out");
    let refusals = [
        second.next_query(&ledger).map(drop),
        second.feed(&mut ledger, &rows, &()).map(drop),
        second.stored_stages(&ledger).map(drop),
        terms(&study, "clients", &out).check_out(&ledger),
        second.finish(&mut ledger, &out, Existing::Keep, None, &()).map(drop),
    ];
    for refused in refusals {
        let Err(Error::OtherBudget { budget, other, .. }) = refused else { panic!("it was taken") };
        assert_eq!((budget.as_str(), other.as_str()), ("clients", "patients"));
    }
    assert_eq!(ledger.budget("clients").unwrap().unwrap().spent, MuSquared::ZERO);
}

#[test]
fn the_state_folder_remembers_the_table_of_one_release() {
    let folder = tempfile::tempdir().unwrap();
    let study = calibrated();
    let state = folder.path().join("state");
    let load = |study: &Study| Remembered::load(study, PARTY, &state);
    assert!(load(&study).unwrap().is_none());
    let remembered = Remembered {
        source: source(&study, Dialect::Spark),
        ledger: "/somewhere/ledger.sqlite".into(),
        budget: "patients".to_owned(),
    };
    remembered.save(&study, PARTY, &state).unwrap();
    assert_eq!(load(&study).unwrap(), Some(remembered));
    let other = support::study(ROWS + 1, "id = \"integer\"", "");
    assert!(load(&other).unwrap().is_none());
    fs::write(state.join("clinic.source.json"), "{").unwrap();
    assert!(load(&study).err().unwrap().to_string().contains("damaged"));
}

/// Most of a column is lost: the result is refused before its charge, unless people mean it, and
/// the refusal is remembered.
#[test]
fn lost_values_are_refused_from_an_engine_too() {
    let study = calibrated();
    let source = source(&study, Dialect::DuckDb);
    let folder = tempfile::tempdir().unwrap();
    let mut ledger = new_ledger(folder.path());
    let accepting = staged(&study, &source);
    let strict = StagedRelease { lost_values: LostValues::Refuse, ..staged(&study, &source) };
    let query = strict.next_query(&ledger).unwrap().unwrap();
    assert!(query.text.contains("potluck_lost_part"));
    let mut rows = answer(&study, Dialect::DuckDb, &subjects(ROWS), &[], &query);
    let at = rows.iter().position(|(part, _, _)| part == "lost").unwrap();
    // Sums of another form, counts that nobody can have, and no counts at all.
    for wrong in ["21 0 0", "41 0 0 0", "-1 0 0 0"] {
        wrong.clone_into(&mut rows[at].2);
        assert!(accepting.feed(&mut ledger, &results(&rows), &()).is_err(), "{wrong}");
    }
    let without: Vec<_> = rows.iter().filter(|(part, _, _)| part != "lost").cloned().collect();
    assert!(accepting.feed(&mut ledger, &results(&without), &()).is_err());
    assert!(ledger.refusals().unwrap().is_empty());
    "21 0 0 0".clone_into(&mut rows[at].2);
    let refused = strict.feed(&mut ledger, &results(&rows), &()).err().unwrap();
    assert_eq!(refused.refusal(), Some(Refusal::LostValues));
    assert!(refused.to_string().contains("\"age\"") && !refused.to_string().contains("21"), "{refused}");
    assert_eq!((spent(&ledger), ledger.refusals().unwrap().len()), (MuSquared::ZERO, 1));
    assert_eq!(accepting.feed(&mut ledger, &results(&rows), &()).unwrap(), Fed::Stored);
    // Later stages do not ask.
    let query = strict.next_query(&ledger).unwrap().unwrap();
    assert!(!query.text.contains("potluck_lost_part"));
}
