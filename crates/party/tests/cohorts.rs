//! The stages of a release of format 2, through the functions that the command calls.
//!
//! The claim (docs/PRIVACY.md#calibrated-format-2): whatever the earlier stages published,
//! replacing one subject (values, which of them are there, id), adding one or removing one changes
//! a stage's sums by Σ(δᵢ/σᵢ)² ≤ μ²·share, and in the last two stages adding or removing by at most
//! half of that. It is checked stage by stage in exact integers, with the same earlier results for
//! both neighbours.
#![allow(clippy::unwrap_used)]

mod support;

use potluck_core::accounting::Share;
use potluck_core::calibrated::PartyPlan;
use potluck_core::encoding::{Q, Scaling};
use potluck_core::stage::{Stage, pairs};
use potluck_party::Refusal;
use potluck_release::study::LARGER;
use potluck_release::{PublicDataset, Study, dataset::Completeness};
use proptest::prelude::*;
use support::{
    PARTY, ROWS, Subject, any_subject, audited, cohorts, middle, neighbours, release, table, within,
};

/// Few rows need a large ε for the stages to resolve anything; the claim holds for any.
const LARGE: f64 = 1000.0;
/// With so little of it noise scales are large, so that rounding them up leaves no room.
const SMALL: f64 = 1e-3;

/// Studies in which nothing is declared never to be missing, some columns are, and all are.
fn studies(epsilon: f64) -> Vec<Study> {
    let never = [&[][..], &["smoker", "region"], &["age", "dose", "smoker", "region"]];
    never.map(|never| cohorts(epsilon, ROWS as u64, never)).into()
}

fn plan(study: &Study) -> &PartyPlan {
    study.calibrated(PARTY).unwrap().unwrap()
}

fn stage(study: &Study, earlier: &[Vec<i64>]) -> Stage {
    study.stage(PARTY, earlier).unwrap().unwrap()
}

fn noise(stage: &Stage) -> Vec<(usize, u64)> {
    stage.noise.iter().map(|&(count, sigma)| (count, sigma.get())).collect()
}

/// Differences of a stage's sums between two tables.
fn differences(study: &Study, earlier: &[Vec<i64>], one: &[Subject], other: &[Subject]) -> Vec<i64> {
    let sums = |subjects: &[Subject]| -> Vec<i64> {
        audited(study, &table(subjects), earlier, 2).into_iter().map(|(_, _, sum)| sum).collect()
    };
    sums(one).iter().zip(sums(other)).map(|(a, b)| a - b).collect()
}

/// The same, checked against the claim; `part` of the share is granted: 1, or 2 for half of it.
fn check(study: &Study, earlier: &[Vec<i64>], one: &[Subject], other: &[Subject], part: u32) -> Vec<i64> {
    let stage = stage(study, earlier);
    let differences = differences(study, earlier, one, other);
    assert!(
        within(&differences, &noise(&stage), study.mu(), granted(&stage, part)),
        "{}: the claimed sensitivity is exceeded",
        stage.name
    );
    differences
}

fn granted(stage: &Stage, part: u32) -> Share {
    assert_eq!(stage.share.parts() % part, 0, "shares can be halved");
    Share::new(stage.share.parts() / part).unwrap()
}

/// What adding or removing a subject may cost: all of the first stages, half of the last two.
fn part_of(earlier: usize) -> u32 {
    if earlier < 2 { 1 } else { 2 }
}

/// Checks every way in which tables are neighbours in one subject.
fn check_all(study: &Study, earlier: &[Vec<i64>], rows: &[Subject], position: usize, other: &Subject) {
    let mut replaced = rows.to_vec();
    replaced[position] = other.clone();
    check(study, earlier, rows, &replaced, 1);
    let mut without = rows.to_vec();
    without.remove(position);
    check(study, earlier, rows, &without, part_of(earlier.len()));
    let with = [rows, &[Subject { id: 5000, ..other.clone() }]].concat();
    check(study, earlier, &with, rows, part_of(earlier.len()));
}

/// Results that stages might have published, small, large and absurd.
fn any_results() -> impl Strategy<Value = Vec<Vec<i64>>> {
    let sum = prop_oneof![
        3 => -(1i64 << 20)..1 << 20,
        2 => -(1i64 << 34)..1 << 34,
        2 => -20i64..20,
        1 => prop::sample::select(vec![0, i64::MAX, -i64::MAX, 1 << 53]),
    ];
    prop::collection::vec(prop::collection::vec(sum, 800), 3)
}

/// The first of some numbers as results of the stages of a study.
fn results_of(study: &Study, numbers: &[Vec<i64>]) -> Vec<Vec<i64>> {
    let mut earlier = Vec::new();
    for numbers in numbers {
        earlier.push(numbers[..stage(study, &earlier).coordinates()].to_vec());
    }
    earlier
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, ..ProptestConfig::default() })]

    #[test]
    fn no_stage_of_format_2_exceeds_its_share_after_real_results(
        (rows, position, replacement) in neighbours(),
        id in prop::option::of(1000i64..2000),
        seed: u64,
    ) {
        let other = Subject { id: id.unwrap_or(replacement.id), ..replacement };
        for study in [SMALL, LARGE].into_iter().flat_map(studies) {
            let earlier = release(&study, &table(&rows), 2, seed).unwrap().earlier_sums();
            for stage in 0..=earlier.len() {
                check_all(&study, &earlier[..stage], &rows, position, &other);
            }
        }
    }

    #[test]
    fn no_stage_of_format_2_exceeds_its_share_after_any_results(
        (rows, position, replacement) in neighbours(),
        id in prop::option::of(1000i64..2000),
        numbers in any_results(),
    ) {
        let other = Subject { id: id.unwrap_or(replacement.id), ..replacement };
        for study in studies(LARGE) {
            let earlier = results_of(&study, &numbers);
            for stage in 1..=earlier.len() {
                check_all(&study, &earlier[..stage], &rows, position, &other);
            }
        }
    }

    #[test]
    fn a_row_without_any_value_is_not_there(
        rows in (0..ROWS as i64).map(any_subject).collect::<Vec<_>>(),
        numbers in any_results(),
    ) {
        let study = cohorts(LARGE, ROWS as u64, &[]);
        let earlier = results_of(&study, &numbers);
        let with = [&rows[..], &[middle(777)]].concat();
        for stage in 0..=earlier.len() {
            let differences = differences(&study, &earlier[..stage], &rows, &with);
            prop_assert!(differences.iter().all(|&difference| difference == 0));
        }
    }
}

/// Results after which every group has many subjects, and numeric columns are centred and narrow,
/// so that rows reach the ball.
fn narrow_results(study: &Study) -> Vec<Vec<i64>> {
    let groups = plan(study).layout().groups();
    let (width, squares) = (6, 2);
    let mut earlier = Vec::new();
    for at_groups in [width + squares, width + squares, width * groups + width + 15] {
        let mut sums = vec![0; stage(study, &earlier).coordinates()];
        sums[at_groups..at_groups + groups].fill(1 << 30);
        earlier.push(sums);
    }
    earlier
}

/// A subject whose standardised row is `x` in the numeric columns and 0 elsewhere, before the ball.
fn at(study: &Study, id: i64, x: [f64; 2]) -> Subject {
    let frame = plan(study).frame(&narrow_results(study)).unwrap();
    let u = |scaling: Scaling, x: f64| scaling.centre + scaling.scale * x;
    let (age, dose) = (u(frame.scalings[0], x[0]), u(frame.scalings[1], x[1]));
    Subject { id, age: Some(50.0 + 50.0 * age), dose: Some(dose), smoker: None, region: None }
}

fn ends(high: bool) -> Subject {
    Subject {
        id: 5,
        age: Some(if high { 1e9 } else { -1e9 }),
        dose: Some(if high { 1.0 } else { -1.0 }),
        smoker: Some(if high { "yes" } else { "no" }),
        region: Some(if high { "north" } else { "south" }),
    }
}

/// An id that falls into another bucket than that of subject 5.
fn elsewhere(study: &Study) -> i64 {
    let bucket = |id: i64| study.seal().key().subject(id.to_string().as_bytes()).bucket(study.seal().k());
    (1000..2000).find(|&id| bucket(id) != bucket(5)).unwrap()
}

fn others() -> Vec<Subject> {
    (0..5).chain(6..ROWS as i64).map(middle).collect()
}

/// Tables that differ in one subject: what one of them has of it, and the other.
fn pair(one: Option<Subject>, other: Option<Subject>) -> [Vec<Subject>; 2] {
    [one, other].map(|own| others().into_iter().chain(own).collect())
}

/// Whether the changes would still be within the claim if noise scales were changed.
fn holds_with(
    stage: &Stage,
    study: &Study,
    differences: &[i64],
    part: u32,
    change: impl Fn(usize, u64) -> u64,
) -> bool {
    let changed = noise(stage).into_iter().enumerate();
    let noise: Vec<(usize, u64)> = changed.map(|(run, (count, sigma))| (count, change(run, sigma))).collect();
    within(differences, &noise, study.mu(), granted(stage, part))
}

/// Worst cases: after how many stages, what is replaced by what (or added), and the part of the
/// share that it may cost.
fn worst_cases(study: &Study) -> Vec<(usize, [Vec<Subject>; 2], u32)> {
    // Directions with p·r = −C/4: there the moments change most.
    let angle = (-0.25_f64).acos();
    let towards = |id: i64, x: [f64; 2]| Some(at(study, id, x));
    let (p, r) = ([2.9, 0.0], [2.9 * angle.cos(), 2.9 * angle.sin()]);
    let (far, opposite) = ([2.9, 2.9], [-2.9, -2.9]);
    vec![
        (0, pair(Some(ends(true)), Some(ends(false))), 1),
        (0, pair(Some(ends(true)), None), 1),
        (1, pair(Some(ends(true)), Some(ends(false))), 1),
        (1, pair(Some(ends(true)), None), 1),
        (2, pair(towards(5, p), towards(5, r)), 1),
        (2, pair(towards(5, p), None), 2),
        (3, pair(towards(5, far), towards(5, opposite)), 1),
        (3, pair(towards(5, far), towards(elsewhere(study), far)), 1),
        (3, pair(towards(5, far), None), 2),
    ]
}

/// Every worst case comes within one percent of the bound, so noise that is one percent too small
/// is caught.
#[test]
fn the_worst_cases_of_format_2_are_tight_and_less_noise_is_caught() {
    for epsilon in [SMALL, 1.0] {
        // What smoker and region are makes no row shorter, and they always count as there.
        let study = cohorts(epsilon, ROWS as u64, &["smoker", "region"]);
        for (position, [one, other], part) in worst_cases(&study) {
            let earlier = &narrow_results(&study)[..position];
            let differences = check(&study, earlier, &one, &other, part);
            let stage = stage(&study, earlier);
            assert!(
                !holds_with(&stage, &study, &differences, part, |_, sigma| sigma * 99 / 100),
                "{}: the worst case is not tight",
                stage.name
            );
        }
    }
}

/// Counts of present values whose weight in Lemmas S1 and S′ is one percent too large would be
/// noticed, each on its own; so would values that appear or go missing.
#[test]
fn weights_that_are_one_percent_too_large_are_caught() {
    for study in studies(SMALL) {
        let missing = Subject { age: None, dose: None, smoker: None, region: None, ..ends(true) };
        for (position, last) in [(0, Some(missing)), (0, None), (1, None)] {
            let earlier = &narrow_results(&study)[..position];
            let [one, other] = pair(Some(ends(true)), last);
            let stage = stage(&study, earlier);
            let groups = plan(&study).layout().groups();
            let differences = check(&study, earlier, &one, &other, 1);
            if differences[8..8 + groups].contains(&0) {
                continue;
            }
            // Sums, squares, then a run for each group.
            for group in 0..groups {
                let change = |run: usize, sigma: u64| {
                    if run == 2 + group { (sigma as f64 / 1.01_f64.sqrt()) as u64 } else { sigma }
                };
                assert!(
                    !holds_with(&stage, &study, &differences, 1, change),
                    "{}: the weight of group {group} could be larger",
                    stage.name
                );
            }
        }
    }
}

/// Cells whose noise were that of one change instead of two, squares of moments without their √2,
/// and presence with a weight beyond √C, or with signs: all would be noticed.
#[test]
fn noise_that_forgets_a_part_of_the_change_is_caught() {
    let study = cohorts(SMALL, ROWS as u64, &["smoker", "region"]);
    let narrow = narrow_results(&study);
    let [one, other] = pair(Some(ends(true)), Some(ends(false)));
    let shapes = stage(&study, &[]);
    let cells = shapes.noise.len() - 1;
    let differences = check(&study, &[], &one, &other, 1);
    let halved = |run: usize, sigma: u64| if run == cells { sigma * 5 / 7 } else { sigma };
    assert!(!holds_with(&shapes, &study, &differences, 1, halved), "cells");

    let [one, other] = pair(Some(at(&study, 5, [2.9, 0.0])), Some(at(&study, 5, [0.0, 2.9])));
    let moments = stage(&study, &narrow[..2]);
    let differences = check(&study, &narrow[..2], &one, &other, 1);
    let squares = |run: usize, sigma: u64| if run == 1 { sigma * 5 / 7 } else { sigma };
    assert!(!holds_with(&moments, &study, &differences, 1, squares), "squares");

    let mixed = stage(&study, &narrow);
    let width = mixed.encoder.width();
    let (far, id) = ([2.9, 2.9], elsewhere(&study));
    let [one, other] = pair(Some(at(&study, 5, far)), Some(at(&study, id, far)));
    let mut differences = check(&study, &narrow, &one, &other, 1);
    // √C and a little more.
    differences.iter_mut().skip(width - 1).step_by(width).for_each(|present| *present = *present * 51 / 50);
    assert!(!holds_with(&mixed, &study, &differences, 1, |_, sigma| sigma), "the weight of presence");

    // With signs a subject may leave with −1 and come back with 1 in the same row.
    let [one, other] = pair(Some(at(&study, 5, far)), None);
    let mut differences = check(&study, &narrow, &one, &other, 2);
    assert!(holds_with(&mixed, &study, &differences, 1, |_, sigma| sigma));
    for difference in &mut differences {
        *difference *= 2;
    }
    assert!(!holds_with(&mixed, &study, &differences, 1, |_, sigma| sigma), "signs");

    // Without the ball.
    let mut differences = vec![0; moments.coordinates()];
    let at_squares = 6 * plan(&study).layout().groups();
    let farthest = 3.0 * f64::from(Q);
    differences[at_squares..at_squares + 2].fill((farthest * farthest) as i64);
    assert!(!holds_with(&moments, &study, &differences, 1, |_, sigma| sigma), "the ball");
}

#[test]
fn any_number_of_rows_is_released_but_not_more_than_four_times_as_many() {
    let study = cohorts(1.0, 20, &[]);
    let people =
        |count: u64| -> Vec<Subject> { (0..count as i64).map(|id| Subject { id, ..ends(true) }).collect() };
    for rows in [0, 1, 19, 20, 21, 20 * LARGER] {
        release(&study, &table(&people(rows)), 2, 1).unwrap();
    }
    let error = release(&study, &table(&people(20 * LARGER + 1)), 2, 1).unwrap_err();
    assert_eq!(error.refusal(), Some(Refusal::Rows));
    assert!(error.to_string().contains("more than 4 times the 20 rows"), "{error}");
    let twice = [people(20), people(1)].concat();
    assert_eq!(release(&study, &table(&twice), 2, 1).unwrap_err().refusal(), Some(Refusal::DuplicateId));
}

/// A file comes back as it was, presence tells how many people there are, and joins with others.
#[test]
fn a_release_of_format_2_tells_who_is_there() {
    let study = cohorts(LARGE, 400, &["smoker"]);
    let person = |id: i64| Subject {
        id,
        age: (id % 3 != 0).then_some(f64::from(id as i32 % 90)),
        dose: (id % 5 != 0).then_some(0.3),
        smoker: Some(["no", "yes"][id as usize % 2]),
        region: None,
    };
    let people: Vec<Subject> = (0..300).map(person).collect();
    let release = release(&study, &table(&people), 2, 3).unwrap();
    let names = release.columns().names();
    assert_eq!(names.last().map(String::as_str), Some("present@clinic"));
    let present: f64 = release.columns().column("present@clinic").unwrap().iter().sum();
    assert!((present - 300.0).abs() < 30.0, "{present}");
    let counts = plan(&study).present(&release.earlier_sums()).unwrap();
    // The shared group, age, dose, region.
    for (count, expected) in counts.iter().zip([300.0, 200.0, 240.0, 1.0]) {
        assert!((count - expected).abs() < 10.0, "{counts:?}");
    }
    let dataset = PublicDataset::join(&study, &[release], Completeness::Partial).unwrap();
    assert_eq!(dataset.columns().names().len(), 7);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("public.parquet");
    dataset.write(&path, potluck_release::files::Existing::Keep).unwrap();
    assert_eq!(PublicDataset::read(&path).unwrap().content_hash(), dataset.content_hash());
}

/// The joint counts are there for every pair of groups.
#[test]
fn joint_counts_are_those_of_the_table() {
    let study = cohorts(LARGE, ROWS as u64, &[]);
    let earlier = &narrow_results(&study)[..2];
    let people: Vec<Subject> = (0..ROWS as i64)
        .map(|id| Subject {
            id,
            age: (id % 2 == 0).then_some(1.0),
            dose: (id % 3 == 0).then_some(0.1),
            smoker: (id % 4 == 0).then_some("no"),
            region: None,
        })
        .collect();
    let sums: Vec<i64> =
        audited(&study, &table(&people), earlier, 3).into_iter().map(|(_, _, sum)| sum).collect();
    let has = |id: i64, group: usize| group < 3 && id % [2, 3, 4][group.min(2)] == 0;
    let both = |(g, h)| (0..ROWS as i64).filter(|&id| has(id, g) && has(id, h)).count() as i64;
    let own = (0..4).map(|g| both((g, g)));
    let expected: Vec<i64> = own.chain(pairs(4).map(both)).collect();
    assert_eq!(sums[sums.len() - expected.len()..], expected[..]);
}

/// A study with ids of this kind, and a table of it as CSV.
fn released_csv(
    settings: &str,
    header: &str,
    ids: &[&str],
) -> Result<potluck_release::Release, potluck_party::Error> {
    let text = potluck_fixtures::study("ids", 20)
        .of_cohorts()
        .settings(settings)
        .party(PARTY, &["age lo = 0; hi = 100"])
        .party("registry", &["outcome lo = 0; hi = 1"])
        .to_string();
    let study = potluck_fixtures::sealed(&text, 7);
    let csv = potluck_fixtures::csv(&format!("{header},age"), ids.len(), |row| {
        format!("{},{}", ids[row], 30 + row)
    });
    let table =
        potluck_party::Table::spool(&mut csv.as_bytes(), "test table", &std::env::temp_dir()).unwrap();
    release(&study, &table, 2, 9)
}

/// All parties apply the same rules, so ids that are written differently are the same.
#[test]
fn ids_that_the_rules_make_alike_fall_into_the_same_buckets() {
    let settings = "id = \"text\"\nid_rules = [\"trim\", \"lowercase\", \"strip-zeros\"]";
    let one = released_csv(settings, "id", &["P000007", "P000008", "x1"]).unwrap();
    let other = released_csv(settings, "id", &["P7", " p008 ", "X01"]).unwrap();
    assert_eq!(one.content_hash(), other.content_hash());
    // Other people may fall into the same few buckets by chance, but not all of them.
    let unlike = |ids: &[&str]| released_csv(settings, "id", ids).unwrap().columns() != one.columns();
    assert!(unlike(&["P1", "P2", "P3"]) || unlike(&["P4", "P5", "P6"]));
    let without = |ids: &[&str]| released_csv("id = \"text\"", "id", ids).unwrap();
    assert_ne!(without(&["P007", "P008", "P009"]).columns(), without(&["P7", "P8", "P9"]).columns());

    // Collisions and ids of which nothing is left are refused like other ids that cannot be.
    let refusal = |ids: &[&str]| released_csv(settings, "id", ids).unwrap_err().refusal();
    assert_eq!(refusal(&["P7", "p07", "x"]), Some(Refusal::DuplicateId));
    assert_eq!(refusal(&["P7", "  ", "x"]), Some(Refusal::Id));
}

#[test]
fn several_columns_make_up_an_id() {
    let settings =
        "id = \"text\"\nid_columns = [\"born\", \"surname\"]\nid_rules = [\"trim\", \"lowercase\", \"date\"]";
    let one = released_csv(settings, "surname,born", &["Wu,1987-06-05", "Li,1990-01-02"]).unwrap();
    let other = released_csv(settings, "born,surname", &["19870605,WU", "1990/01/02, li"]).unwrap();
    assert_eq!(one.content_hash(), other.content_hash());
    let missing = released_csv(settings, "surname", &["Wu"]).unwrap_err().to_string();
    assert!(missing.contains("born"), "{missing}");
    let same = released_csv(settings, "surname,born", &["Wu,1987-06-05", "WU,1987/06/05"]);
    assert_eq!(same.unwrap_err().refusal(), Some(Refusal::DuplicateId));
}
