//! A validation finds what a release would refuse, all of it at once, counts exactly, and shows no
//! value; and a new release in which most values of a column are lost is refused before its charge.
#![allow(clippy::unwrap_used)]

mod support;

use std::fs;

use potluck_fixtures::sealed;
use potluck_party::ledger::State;
use potluck_party::release::{Terms, release_with};
use potluck_party::validation::{Kind, Levels, Validation, validate};
use potluck_party::{Error, Job, LostValues, Observer, Reading, Refusal, Step, Table};
use potluck_release::Study;
use proptest::prelude::*;
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use support::{PARTY, ROWS, access, any_subject, new_ledger, table, terms};

const PEOPLE: usize = 60;

fn study(settings: &str, smoker: &str) -> Study {
    let smoker = format!("smoker levels = [\"no\", \"yes\"]; {smoker}");
    let text = potluck_fixtures::study("test", PEOPLE as u64)
        .settings(&format!("method = \"rmgm\"\n{settings}"))
        .party(PARTY, &["age lo = 18; hi = 100", "height lo = 100; hi = 220", &smoker])
        .party("registry", &["outcome lo = 0; hi = 1"]);
    sealed(&text.to_string(), 7)
}

fn good(row: usize) -> String {
    format!("{row},{},{},{}", 20 + row, 150 + row, ["no", "yes"][row % 2])
}

fn csv(line: impl Fn(usize) -> String) -> String {
    potluck_fixtures::csv("id,age,height,smoker", PEOPLE, line)
}

fn opened(csv: &str) -> (tempfile::TempDir, Table) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("table.csv");
    fs::write(&path, csv).unwrap();
    let table = Table::open(&path, folder.path()).unwrap();
    (folder, table)
}

fn validated(study: &Study, csv: &str, levels: Levels) -> Validation {
    let (_folder, table) = opened(csv);
    let access = access(3);
    validate(&Reading { study, party: PARTY, table: &table, access: &access }, levels, &()).ok().unwrap()
}

/// The problems in words, and everything that is shown.
fn shown(validation: &Validation) -> (Vec<String>, String) {
    let problems = validation.problems.iter().map(|found| found.in_words(&found.error.to_string())).collect();
    (problems, validation.to_json(Error::to_string).to_string())
}

fn released(
    study: &Study,
    table: &Table,
    lost_values: LostValues,
) -> (Result<(), Error>, Vec<Refusal>, u128) {
    let folder = tempfile::tempdir().unwrap();
    let mut ledger = new_ledger(folder.path());
    let out = folder.path().join("out.parquet");
    let terms = Terms { lost_values, ..terms(study, "patients", &out) };
    let job = Job { terms, table, access: access(2) };
    let done = release_with(&job, &mut ledger, &(), || Ok(ChaCha20Rng::seed_from_u64(1))).map(|_| ());
    let refused = ledger.refusals().unwrap().iter().map(|refused| refused.reason).collect();
    (done, refused, ledger.budget("patients").unwrap().unwrap().spent.units())
}

#[test]
fn a_table_that_is_well_has_no_problems() {
    let validation = validated(&study("", ""), &csv(good), Levels::Counted);
    assert!(validation.problems.is_empty() && validation.warnings.is_empty());
    assert_eq!((validation.rows, validation.ids.as_ref().unwrap().rows), (Some(60), 60));
}

#[test]
fn everything_that_is_wrong_is_said_at_once_and_no_value_is() {
    let strict = study("", "unknown = \"error\"");
    let line = |row: usize| match row {
        3 | 4 => format!("{row},secretword,170,no"),
        7 => "7,30,170,HIV".to_owned(),
        9 => "8,30,170,no".to_owned(),
        11 => "011,30,170,no".to_owned(),
        12 => ",30,170,no".to_owned(),
        row => good(row),
    };
    let text = csv(line) + "900,30,170,yes\n";
    let validation = validated(&strict, &text, Levels::Counted);
    let (problems, all) = shown(&validation);
    let expected = [
        ("column \"age\", row 4: is not a number", "(and 1 row more)"),
        ("column \"smoker\", row 8: is not one of the study's levels", "levels are public)"),
        ("column \"id\", row 12: the id is not a whole number", ""),
        ("column \"id\", row 13: the id is missing", ""),
        ("column \"id\", row 10: the id is the same as in row 9", ""),
        ("has more rows than the 60 of the study", ""),
    ];
    assert_eq!(problems.len(), expected.len(), "{problems:#?}");
    for (start, end) in expected {
        assert!(
            problems.iter().any(|said| said.contains(start) && said.contains(end)),
            "{start}: {problems:#?}"
        );
    }
    for value in ["secretword", "HIV", "011", "900"] {
        assert!(!all.contains(value), "{value}: {all}");
    }
    assert_eq!(validation.ids.as_ref().unwrap().duplicates, 1);
}

#[test]
fn names_that_are_wrong_are_all_named() {
    let text = csv(good).replacen("age,height,smoker", "agee,height,smokes", 1);
    let folder = opened(&text);
    let access =
        potluck_party::Access { extra_columns: potluck_party::reading::ExtraColumns::Refuse, ..access(1) };
    let (study, table) = (study("", ""), &folder.1);
    let reading = Reading { study: &study, party: PARTY, table, access: &access };
    let validation = validate(&reading, Levels::Counted, &()).ok().unwrap();
    let (problems, _) = shown(&validation);
    for words in
        ["\"age\": is missing", "\"smoker\": is missing", "\"agee\": is not in", "\"smokes\": is not in"]
    {
        assert!(problems.iter().any(|said| said.contains(words)), "{words}: {problems:#?}");
    }
    assert_eq!(validation.columns.len(), 1, "the column that is there is counted");
}

#[test]
fn values_are_counted_where_they_lie() {
    let line = |row: usize| match row {
        0 => "0,18,170,no".to_owned(),
        1 => "1,5,99,no".to_owned(),
        2 => "2,999,,No".to_owned(),
        3 => "3,,170,".to_owned(),
        4 | 5 => format!("{row},100,170,sometimes"),
        row => good(row),
    };
    let validation = validated(&study("", ""), &csv(line), Levels::Shown);
    assert!(validation.problems.is_empty(), "{:?}", shown(&validation).0);
    let Kind::Numbers(age) = &validation.columns[0].kind else { panic!("numbers") };
    assert_eq!((age.below, age.above, age.at_low, age.at_high, age.far), (1, 1, 1, 2, 1));
    assert_eq!((validation.columns[0].missing, validation.columns[1].missing), (1, 1));
    let Kind::Levels(smoker) = &validation.columns[2].kind else { panic!("levels") };
    let unknown = vec![("sometimes".to_owned(), 2), ("No".to_owned(), 1)];
    assert_eq!((smoker.unknown, smoker.unknown_levels.as_ref()), (3, Some(&unknown)));
    let all = validation.warnings.join("\n");
    assert!(all.contains("another unit") && all.contains("\"sometimes\" 2"), "{all}");
    // Not on request: not at all.
    let (_, all) = shown(&validated(&study("", ""), &csv(line), Levels::Counted));
    assert!(!all.contains("sometimes") && all.contains("5.0%"), "{all}");
}

#[test]
fn ids_that_others_may_write_differently_are_pointed_out() {
    let text = csv(|row| format!("P{row:04} {},30,170,no", ["x", "y"][row % 2]).replace("P0007", "p0007"));
    let validation = validated(&study("id = \"text\"", ""), &text, Levels::Counted);
    let all = validation.warnings.join("\n");
    for words in
        ["60 of 60 ids have a number with leading zeros", "have blanks", "small letters", "compare a few"]
    {
        assert!(all.contains(words), "{words}: {all}");
    }
}

#[test]
fn bounds_that_do_not_fit_are_pointed_out() {
    let validation =
        validated(&study("", ""), &csv(|row| format!("{row},18.{row:03},170,no")), Levels::Counted);
    let all = validation.warnings.join("\n");
    assert!(all.contains("\"age\": all values lie within a hundredth of 18 to 100"), "{all}");
    assert!(all.contains("\"height\": everybody has the same value"), "{all}");
}

#[test]
fn a_release_in_which_most_values_are_lost_is_refused_before_its_charge() {
    let study = study("", "");
    let ages = |age: &'static str, times: usize| {
        csv(move |row| if row < times { format!("{row},{age},170,no") } else { good(row) })
    };
    for (text, words) in [
        (ages("5000", PEOPLE), "outside of its bounds, 18 to 100"),
        (ages("", PEOPLE / 2 + 1), "are missing or outside"),
        (csv(|row| good(row).replace("yes", "Yes").replace("no", "No")), "none of its levels"),
    ] {
        let (_folder, table) = opened(&text);
        let (done, refused, spent) = released(&study, &table, LostValues::Refuse);
        let error = done.err().unwrap();
        assert!(error.to_string().contains(words), "{error}");
        assert!(error.to_string().contains("--accept-lost-values"), "{error}");
        assert_eq!((refused.as_slice(), spent), ([Refusal::LostValues].as_slice(), 0));
        let (problems, _) = shown(&validated(&study, &text, Levels::Counted));
        assert!(problems[0].contains(words), "{problems:?}");
        // Who means it may have it.
        let (done, refused, spent) = released(&study, &table, LostValues::Accept);
        assert!(done.is_ok() && refused.is_empty() && spent > 0);
    }
    // Just half is not most.
    let (_folder, table) = opened(&ages("5000", PEOPLE / 2));
    assert!(released(&study, &table, LostValues::Refuse).0.is_ok());
}

/// A charge that stands is not mended by a refusal: whoever accepted such a table before can finish
/// the release without saying so again.
#[test]
fn a_release_that_was_charged_goes_on_whatever_is_lost() {
    struct StopAfter(Step);
    impl Observer for StopAfter {
        fn step(&self, step: Step) {
            assert_ne!(step, self.0, "the process ends here");
        }
    }
    let study = study("", "");
    let (folder, table) = opened(&csv(|row| format!("{row},5000,170,no")));
    let mut ledger = new_ledger(folder.path());
    let out = folder.path().join("out.parquet");
    let job = |lost_values| Job {
        terms: Terms { lost_values, ..terms(&study, "patients", &out) },
        table: &table,
        access: access(1),
    };
    let seed = || Ok(ChaCha20Rng::seed_from_u64(1));
    let ends = StopAfter(Step::Spent(0));
    let accepted = job(LostValues::Accept);
    let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        release_with(&accepted, &mut ledger, &ends, seed).map(|_| ())
    }));
    assert!(ended.is_err());
    assert_eq!(ledger.sessions().unwrap()[0].state, State::Spent);
    release_with(&job(LostValues::Refuse), &mut ledger, &(), seed).unwrap();
    assert!(ledger.refusals().unwrap().is_empty());
}

/// What the study's rules make of ids is what is validated, and a table of other people than
/// expected is no problem where each party holds its own.
#[test]
fn ids_of_several_columns_are_validated_by_the_rules_of_the_study() {
    let settings =
        "id = \"text\"\nid_columns = [\"born\", \"surname\"]\nid_rules = [\"lowercase\", \"date\"]";
    let text = potluck_fixtures::study("ids", PEOPLE as u64)
        .of_cohorts()
        .settings(settings)
        .party(PARTY, &["age lo = 0; hi = 100"])
        .party("registry", &["outcome lo = 0; hi = 1"]);
    let study = sealed(&text.to_string(), 7);
    let fine = "surname,born,age\nWu,1987-06-05,30\nLi,1990-01-02,40\n";
    let validation = validated(&study, fine, Levels::Counted);
    assert!(validation.problems.is_empty(), "{:?}", shown(&validation).0);
    assert_eq!(validation.ids.as_ref().unwrap().rows, 2);

    let alike = "surname,born,age\nWu,1987-06-05,30\nWU,1987/06/05,40\nwu,19870605,50\n,,60\n";
    let (problems, all) = shown(&validated(&study, alike, Levels::Counted));
    assert_eq!(problems.len(), 2, "{problems:?}");
    assert!(problems.iter().any(|problem| problem.contains("row 1") && problem.contains("1 row more")));
    assert!(!all.contains("1987") && !all.contains("wu") && !all.contains("WU"), "{all}");
    let (problems, _) = shown(&validated(&study, "surname,age\nWu,30\n", Levels::Counted));
    assert!(problems.len() == 1 && problems[0].contains("born"), "{problems:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// What a validation has no problem with is released, and what it has one with is refused, for
    /// the first of its reasons or another of them.
    #[test]
    fn a_validation_and_a_release_agree(
        subjects in prop::collection::vec(any_subject(0), ROWS - 1..=ROWS + 1),
        same in prop::option::of(0..ROWS - 1),
    ) {
        let study = support::study(ROWS as u64, "", "");
        let mut subjects = subjects;
        for (at, subject) in subjects.iter_mut().enumerate() {
            subject.id = at as i64;
        }
        if let Some(same) = same {
            subjects[same].id = 1;
        }
        let table = table(&subjects);
        let access = access(2);
        let reading = Reading { study: &study, party: PARTY, table: &table, access: &access };
        let found = validate(&reading, Levels::Counted, &()).unwrap_or_else(|error| panic!("{error}"));
        let reasons: Vec<Option<Refusal>> = found.problems.iter().map(|found| found.error.refusal()).collect();
        let (done, _, spent) = released(&study, &table, LostValues::Refuse);
        match done {
            Ok(()) => prop_assert!(reasons.is_empty(), "{reasons:?}"),
            Err(error) => {
                prop_assert!(reasons.contains(&error.refusal()), "{reasons:?}: {error}");
                prop_assert_eq!(spent, 0);
            }
        }
    }
}
