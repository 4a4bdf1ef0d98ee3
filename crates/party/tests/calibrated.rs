//! The stages of a calibrated release, through the functions that the command calls.
//!
//! The claim (docs/PRIVACY.md#calibrated): whatever the earlier stages published, replacing one
//! subject changes a stage's sums by Σ(δᵢ/σᵢ)² ≤ μ²·share. It is checked stage by stage in exact
//! integers, with the same earlier results for both neighbours: results of real releases, and
//! made-up ones that no release would give.
#![allow(clippy::unwrap_used)]

mod support;

use std::sync::atomic::{AtomicU32, Ordering};

use potluck_core::calibrated::PartyPlan;
use potluck_core::encoding::{Q, Scaling};
use potluck_core::stage::Stage;
use potluck_party::entropy::Unusable;
use potluck_party::release::{publish_stored, release_with};
use potluck_party::{Error, Observer, Refusal, Step, Table};
use potluck_release::Study;
use proptest::prelude::*;
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use support::{
    PARTY, ROWS, Subject, audited, job, middle, neighbours, new_ledger, release, study_at, table, terms,
    within,
};

/// Few rows need a large ε for the stages to resolve anything; the claim holds for any.
const LARGE: f64 = 1000.0;

fn calibrated(epsilon: f64, rows: u64) -> Study {
    study_at(epsilon, rows, "id = \"integer\"\nmethod = \"calibrated\"", "")
}

/// A stage's exact sums as the audit file has them, in the order of the stage.
fn exact_sums(study: &Study, table: &Table, earlier: &[Vec<i64>], threads: usize) -> Vec<i64> {
    audited(study, table, earlier, threads).into_iter().map(|(_, _, sum)| sum).collect()
}

fn stage(study: &Study, earlier: &[Vec<i64>]) -> Stage {
    study.stage(PARTY, earlier).unwrap().unwrap()
}

fn noise(stage: &Stage) -> Vec<(usize, u64)> {
    stage.noise.iter().map(|&(count, sigma)| (count, sigma.get())).collect()
}

/// Differences of a stage's sums between neighbours; panics if they exceed the claim.
fn check(study: &Study, earlier: &[Vec<i64>], one: &[Subject], other: &[Subject]) -> Vec<i64> {
    let stage = stage(study, earlier);
    let sums = |subjects| exact_sums(study, &table(subjects), earlier, 2);
    let differences: Vec<i64> = sums(one).iter().zip(sums(other)).map(|(a, b)| a - b).collect();
    assert!(
        within(&differences, &noise(&stage), study.mu(), stage.share),
        "{}: the claimed sensitivity is exceeded",
        stage.name
    );
    differences
}

/// What a real release of a table has published before its last stage.
fn published(study: &Study, subjects: &[Subject], seed: u64) -> Vec<Vec<i64>> {
    release(study, &table(subjects), 2, seed).unwrap().earlier_sums()
}

/// Results that stages might have published, small, large and absurd.
fn any_results() -> impl Strategy<Value = Vec<Vec<i64>>> {
    let sum = prop_oneof![
        3 => -(1i64 << 20)..1 << 20,
        2 => -(1i64 << 34)..1 << 34,
        1 => prop::sample::select(vec![0, i64::MAX, -i64::MAX, 1 << 53]),
    ];
    let stage = |coordinates: usize| prop::collection::vec(sum.clone(), coordinates);
    // Six encoded columns, two of them numeric.
    (stage(8), stage(8), stage(27)).prop_map(|(first, second, moments)| vec![first, second, moments])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    #[test]
    fn no_stage_exceeds_its_share_after_real_results(
        (rows, position, replacement) in neighbours(),
        id in prop::option::of(1000i64..2000),
        seed: u64,
    ) {
        let mut other = rows.clone();
        other[position] = Subject { id: id.unwrap_or(replacement.id), ..replacement };
        for study in [calibrated(1.0, ROWS as u64), calibrated(LARGE, ROWS as u64)] {
            let earlier = published(&study, &rows, seed);
            for stage in 0..=earlier.len() {
                check(&study, &earlier[..stage], &rows, &other);
            }
        }
    }

    #[test]
    fn no_stage_exceeds_its_share_after_any_results(
        (rows, position, replacement) in neighbours(),
        id in prop::option::of(1000i64..2000),
        earlier in any_results(),
    ) {
        let mut other = rows.clone();
        other[position] = Subject { id: id.unwrap_or(replacement.id), ..replacement };
        let study = calibrated(LARGE, ROWS as u64);
        for stage in 1..=earlier.len() {
            check(&study, &earlier[..stage], &rows, &other);
        }
    }
}

fn plan(study: &Study) -> &PartyPlan {
    study.calibrated(PARTY).unwrap().unwrap()
}

/// Results after which both numeric columns are centred at the middle and narrow, so that rows
/// reach the ball.
fn narrow_results() -> Vec<Vec<i64>> {
    vec![vec![0; 8], vec![0; 8], vec![0; 27]]
}

/// A subject whose standardised row is `x` in the numeric columns and 0 elsewhere, before the ball.
fn at(study: &Study, id: i64, x: [f64; 2]) -> Subject {
    let frame = plan(study).frame(&narrow_results()).unwrap();
    let u = |scaling: Scaling, x: f64| scaling.centre + scaling.scale * x;
    let (age, dose) = (u(frame.scalings[0], x[0]), u(frame.scalings[1], x[1]));
    Subject { id, age: Some(50.0 + 50.0 * age), dose: Some(dose), smoker: None, region: None }
}

/// The worst case of every stage comes within one percent of the bound, so noise that is one
/// percent too small is caught.
#[test]
fn the_worst_cases_are_tight_and_less_noise_is_caught() {
    let study = calibrated(LARGE, ROWS as u64);
    let ends = |high: bool| Subject {
        id: 5,
        age: Some(if high { 1e9 } else { -1e9 }),
        dose: Some(if high { 1.0 } else { -1.0 }),
        smoker: Some(if high { "yes" } else { "no" }),
        region: Some(if high { "north" } else { "south" }),
    };
    // Directions with p·r = −1/4: there the moments change most.
    let angle = (-0.25_f64).acos();
    let (p, r) = (at(&study, 5, [2.9, 0.0]), at(&study, 5, [2.9 * angle.cos(), 2.9 * angle.sin()]));
    let pairs = [
        (0, ends(true), ends(false)),
        (1, ends(true), ends(false)),
        (2, p, r),
        (3, at(&study, 5, [2.2, 2.2]), at(&study, 5, [-2.2, -2.2])),
    ];
    for (position, one, other) in pairs {
        let mut rows: Vec<Subject> = (0..ROWS as i64).map(middle).collect();
        let mut changed = rows.clone();
        rows[5] = one;
        changed[5] = other;
        let earlier = &narrow_results()[..position];
        let differences = check(&study, earlier, &rows, &changed);
        let stage = stage(&study, earlier);
        let less: Vec<(usize, u64)> =
            noise(&stage).into_iter().map(|(count, sigma)| (count, sigma * 99 / 100)).collect();
        assert!(
            !within(&differences, &less, study.mu(), stage.share),
            "{}: the worst case is not tight",
            stage.name
        );
    }
}

/// A stage that forgot the ball would be noticed: the control must fail.
#[test]
fn rows_outside_the_ball_would_be_caught() {
    let study = calibrated(LARGE, ROWS as u64);
    let moments = stage(&study, &narrow_results()[..2]);
    let farthest = 3.0 * f64::from(Q);
    // What the squares of two such columns would change by without the ball, against the noise of
    // the stage.
    let mut differences = vec![0; moments.coordinates()];
    differences[6] = (farthest * farthest) as i64;
    differences[7] = (farthest * farthest) as i64;
    assert!(!within(&differences, &noise(&moments), study.mu(), moments.share));
}

fn people(rows: i64) -> Vec<Subject> {
    (0..rows)
        .map(|id| Subject {
            id: 3 * id - 50,
            age: (id % 11 != 0).then(|| f64::from((id * 37 % 101) as i32)),
            dose: (id % 7 != 0).then(|| f64::from((id * 53 % 41) as i32) / 20.0 - 1.0),
            smoker: [Some("no"), Some("yes"), None][id as usize % 3],
            region: [Some("north"), Some("south"), Some("elsewhere"), None][id as usize % 4],
        })
        .collect()
}

/// The same sums by the textbook, one subject at a time, from the frame that was published.
fn sums_by_definition(study: &Study, subjects: &[Subject], earlier: &[Vec<i64>]) -> Vec<i64> {
    let stage = stage(study, earlier);
    let scalings: Vec<Scaling> =
        stage.encoder.columns().iter().flat_map(|(_, scalings)| scalings).copied().collect();
    let scale = |j: usize, u: Option<f64>| -> i64 {
        let Some(u) = u else { return 0 };
        let s = scalings[j];
        let y = (u.max(s.low).min(s.high) - s.centre) / s.scale * f64::from(Q);
        let rounded = if y < 0.0 { -((-y + 0.5).floor()) } else { (y + 0.5).floor() };
        (rounded as i64).clamp(-i64::from(s.limit), i64::from(s.limit))
    };
    let project = |row: &mut Vec<i64>| {
        let Some(ball) = stage.encoder.ball() else { return };
        let norm: i64 = row.iter().map(|q| q * q).sum();
        if norm as u64 > ball.norm_squared() {
            let factor = (ball.norm_squared() as f64 / norm as f64).sqrt();
            for q in row.iter_mut() {
                *q = (*q as f64 * factor).trunc() as i64;
            }
        }
    };
    let mut sums = vec![0; stage.coordinates()];
    for subject in subjects {
        let present = |is: Option<bool>| is.map(|is| if is { 1.0 } else { 0.0 });
        let region = subject.region.map(|region| if region == "elsewhere" { "other" } else { region });
        let mut row = vec![
            scale(0, subject.age.map(|age| (age.clamp(0.0, 100.0) - 50.0) / 50.0)),
            scale(1, subject.dose.map(|dose| dose.clamp(-1.0, 1.0))),
            scale(2, present(subject.smoker.map(|smoker| smoker == "yes"))),
            scale(3, present(region.map(|region| region == "north"))),
            scale(4, present(region.map(|region| region == "south"))),
            scale(5, present(region.map(|region| region == "other"))),
        ];
        project(&mut row);
        match earlier.len() {
            0 | 1 => {
                (0..6).for_each(|j| sums[j] += row[j]);
                (0..2).for_each(|j| sums[6 + j] += row[j] * row[j]);
            }
            2 => {
                (0..6).for_each(|j| sums[j] += row[j]);
                (0..6).for_each(|j| sums[6 + j] += row[j] * row[j]);
                let pairs = (0..6).flat_map(|i| (i + 1..6).map(move |j| (i, j)));
                pairs.enumerate().for_each(|(at, (i, j))| sums[12 + at] += row[i] * row[j]);
            }
            _ => {
                row.iter_mut().zip(stage.encoder.centre()).for_each(|(q, c)| *q -= i64::from(*c));
                project(&mut row);
                let digest = study.seal().key().subject(subject.id.to_string().as_bytes());
                let (bucket, sign) = digest.sparse_entry(study.seal().k());
                (0..6).for_each(|j| sums[bucket as usize * 6 + j] += sign * row[j]);
            }
        }
    }
    sums
}

#[test]
fn sums_of_every_stage_agree_with_the_textbook_on_any_number_of_threads() {
    let people = people(500);
    for epsilon in [1.0, LARGE] {
        let study = calibrated(epsilon, 500);
        let earlier = published(&study, &people, 7);
        let mut shuffled = people.clone();
        shuffled.reverse();
        for stage in 0..=earlier.len() {
            let expected = sums_by_definition(&study, &people, &earlier[..stage]);
            for threads in [1, 2, 5] {
                let table = table(&people).with_batch_size(37);
                assert!(exact_sums(&study, &table, &earlier[..stage], threads) == expected, "stage {stage}");
            }
            assert!(exact_sums(&study, &table(&shuffled), &earlier[..stage], 2) == expected, "stage {stage}");
        }
    }
}

#[test]
fn a_release_is_the_same_whatever_the_threads_and_reads_back() {
    let people = people(400);
    let study = calibrated(1.0, 400);
    let one = release(&study, &table(&people), 1, 11).unwrap();
    let other = release(&study, &table(&people), 5, 11).unwrap();
    assert_eq!(one.content_hash(), other.content_hash());
    assert_eq!(one.earlier_sums().len(), 3);
}

/// A table that is damaged after the first stage: the charge stands, the message says so, and a
/// good table finishes it.
#[test]
fn a_later_stage_that_fails_says_that_the_charge_stands() {
    struct Damage<'a>(&'a std::path::Path, &'a str);
    impl Observer for Damage<'_> {
        fn step(&self, step: Step) {
            if step == Step::Stored(1) {
                std::fs::write(self.0, self.1).unwrap();
            }
        }
    }
    let study = calibrated(1.0, 10);
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("people.csv");
    let rows: String = (0..10).map(|id| format!("{id},{},0.1,no,north\n", 20 + id)).collect();
    let good = format!("id,age,dose,smoker,region\n{rows}");
    std::fs::write(&data, &good).unwrap();
    let mut ledger = new_ledger(folder.path());
    let out = folder.path().join("out.parquet");
    let table = Table::open(&data, &std::env::temp_dir()).unwrap();
    let mut job = job(&study, &table, &out, 1);
    // What is kept from the first pass is not read again.
    job.access.resources.memory = 0;
    let seed = || Ok(ChaCha20Rng::seed_from_u64(5));
    let bad = good.replace(",25,", ",thirty,");
    let error = release_with(&job, &mut ledger, &Damage(&data, &bad), seed).err().unwrap().to_string();
    assert!(error.contains("stage 3") && error.contains("charge stands"), "{error}");
    assert!(!error.contains("thirty"), "{error}");
    assert_eq!(
        ledger.refusals().unwrap()[0].reason,
        Refusal::Number,
        "it tells as much as in the first stage"
    );
    let spent = ledger.budget("patients").unwrap().unwrap().spent;
    assert!(spent.units() > 0);

    std::fs::write(&data, &good).unwrap();
    release_with(&job, &mut ledger, &(), seed).unwrap();
    assert_eq!(ledger.budget("patients").unwrap().unwrap().spent, spent);
}

/// In the first stage nothing is charged; later the charge stands, and the release is taken up once
/// there is randomness.
#[test]
fn a_stage_without_randomness_draws_nothing() {
    let study = calibrated(1.0, 10);
    let people: Vec<Subject> = (0..10).map(middle).collect();
    let (folder, data) = (tempfile::tempdir().unwrap(), table(&people));
    let out = folder.path().join("out.parquet");
    let job = job(&study, &data, &out, 1);
    let mut ledger = new_ledger(folder.path());
    for good in [0, 2] {
        let asked = AtomicU32::new(0);
        let seed = || match asked.fetch_add(1, Ordering::Relaxed) {
            so_far if so_far < good => Ok(ChaCha20Rng::seed_from_u64(u64::from(so_far))),
            _ => Err(Error::Entropy(Unusable::Zeros)),
        };
        let error = release_with(&job, &mut ledger, &(), seed).err().unwrap();
        assert_eq!(matches!(error, Error::Interrupted { stage: 3, .. }), good == 2, "{error}");
        assert_eq!(ledger.budget("patients").unwrap().unwrap().spent.units() > 0, good == 2);
        assert!(!out.exists() && ledger.refusals().unwrap().is_empty());
    }
    release_with(&job, &mut ledger, &(), || Ok(ChaCha20Rng::seed_from_u64(9))).unwrap();
    assert_eq!(ledger.sessions().unwrap().len(), 2, "one was given back, one is published");
}

/// Wants to stop once rows of a stage are read.
struct StopIn {
    stage: u32,
    now: AtomicU32,
}

impl Observer for StopIn {
    fn stage(&self, _name: &str, position: u32) {
        self.now.store(position, Ordering::Relaxed);
    }

    fn stop(&self) -> bool {
        self.now.load(Ordering::Relaxed) >= self.stage
    }
}

/// Before the first noise nothing is charged; afterwards the same release is taken up.
#[test]
fn a_release_that_is_stopped_can_be_taken_up() {
    let study = calibrated(1.0, 200);
    let table = table(&people(200));
    let seed = || Ok(ChaCha20Rng::seed_from_u64(5));
    let expected = release(&study, &table, 1, 5).unwrap();
    for stage in 0..4 {
        let folder = tempfile::tempdir().unwrap();
        let mut ledger = new_ledger(folder.path());
        let out = folder.path().join("out.parquet");
        let job = job(&study, &table, &out, 2);
        let observer = StopIn { stage, now: AtomicU32::new(0) };
        let error = release_with(&job, &mut ledger, &observer, seed).err().unwrap();
        let spent = ledger.budget("patients").unwrap().unwrap().spent;
        if stage == 0 {
            assert!(matches!(error, Error::Stopped));
            assert_eq!(spent.units(), 0);
        } else {
            assert!(
                matches!(&error, Error::Interrupted { source, .. } if matches!(**source, Error::Stopped))
            );
            assert_eq!(spent, study.mu().squared());
        }
        assert!(!out.exists());
        let published = release_with(&job, &mut ledger, &(), seed).unwrap();
        assert_eq!(published.release.content_hash, expected.content_hash());
        assert_eq!(ledger.budget("patients").unwrap().unwrap().spent, study.mu().squared());
    }
}

/// What every stage is stored of needs no table: it comes out the same; anything less is not
/// published.
#[test]
fn a_release_comes_out_the_same_without_its_table_once_all_of_it_is_stored() {
    let study = calibrated(1.0, 200);
    let table = table(&people(200));
    let seed = || Ok(ChaCha20Rng::seed_from_u64(5));
    let folder = tempfile::tempdir().unwrap();
    let mut ledger = new_ledger(folder.path());
    let (out, again) = (folder.path().join("out.parquet"), folder.path().join("again.parquet"));
    let job = job(&study, &table, &out, 2);
    let stored = |ledger: &mut _| publish_stored(&terms(&study, "patients", &again), ledger, &()).unwrap();
    assert!(stored(&mut ledger).is_none(), "nothing is known of it");
    let observer = StopIn { stage: 2, now: AtomicU32::new(0) };
    release_with(&job, &mut ledger, &observer, seed).err().unwrap();
    assert!(stored(&mut ledger).is_none() && !again.exists(), "stages are missing");
    release_with(&job, &mut ledger, &(), seed).unwrap();
    assert!(stored(&mut ledger).unwrap().repeated);
    assert_eq!(std::fs::read(&out).unwrap(), std::fs::read(&again).unwrap());
}

/// Ids are searched for duplicates in the first pass, so a table that is another one later must not
/// be read on.
#[test]
fn a_table_that_changes_between_passes_is_refused() {
    struct Change<'a>(&'a std::path::Path, String);
    impl Observer for Change<'_> {
        fn step(&self, step: Step) {
            if step == Step::Stored(0) {
                let modified = std::fs::metadata(self.0).unwrap().modified().unwrap();
                std::fs::write(self.0, &self.1).unwrap();
                let file = std::fs::File::options().append(true).open(self.0).unwrap();
                file.set_modified(modified + std::time::Duration::from_secs(1)).unwrap();
            }
        }
    }
    let study = calibrated(1.0, 10);
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("people.csv");
    let rows: String = (0..10).map(|id| format!("{id},{},0.1,no,north\n", 20 + id)).collect();
    let good = format!("id,age,dose,smoker,region\n{rows}");
    let seed = || Ok(ChaCha20Rng::seed_from_u64(5));
    // The second has an id twice, and is as long; the first differs by its time alone.
    for later in [good.clone(), good.replace("\n7,", "\n6,")] {
        std::fs::write(&data, &good).unwrap();
        let own = tempfile::tempdir_in(&folder).unwrap();
        let mut ledger = new_ledger(own.path());
        let table = Table::open(&data, &std::env::temp_dir()).unwrap();
        let out = folder.path().join("out.parquet");
        let job = job(&study, &table, &out, 2);
        let error = release_with(&job, &mut ledger, &Change(&data, later), seed).err().unwrap();
        let problem = std::error::Error::source(&error).unwrap().to_string();
        assert!(problem.contains("was changed while it was being read"), "{problem}");
        assert!(!out.exists());
    }
}
