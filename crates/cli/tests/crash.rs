//! A release that dies at any step is finished by running the command again: nothing is lost,
//! nothing is charged twice, and what was drawn once is never drawn again.
#![allow(clippy::unwrap_used)]

mod support;

use std::env;
use std::fs;
use std::num::NonZero;
use std::path::Path;
use std::process::{Command, Stdio};

use potluck_party::ledger::State;
use potluck_party::reading::ExtraColumns;
use potluck_party::release::{Terms, release};
use potluck_party::{Access, Job, Ledger, LostValues, Observer, Resources, Step, Table};
use potluck_release::files::Existing;
use potluck_release::{Release, Study};
use support::{STUDY, Workplace};

/// Most stages of a release.
const STAGES: u32 = 4;

const STEP: &str = "POTLUCK_TEST_ABORT_AT";

/// Aborts the process as soon as a step is done.
struct AbortAt(Step);

impl Observer for AbortAt {
    fn step(&self, step: Step) {
        if step == self.0 {
            std::process::abort();
        }
    }
}

/// The child process: not a test of its own, and does nothing unless a parent asks.
#[test]
fn child_that_aborts() {
    let Ok(name) = env::var(STEP) else { return };
    let step = Step::all(STAGES).into_iter().find(|step| format!("{step:?}") == name).unwrap();
    let study = Study::load(Path::new("study.toml")).unwrap();
    let table = Table::open(Path::new("north.csv"), &env::temp_dir()).unwrap();
    let mut ledger = Ledger::open(Path::new("ledger.sqlite")).unwrap();
    let terms = Terms {
        study: &study,
        party: "north",
        budget: "people",
        out: Path::new("north.release.parquet"),
        existing: Existing::Keep,
        signing_key: None,
        lost_values: LostValues::Refuse,
    };
    let access = Access {
        id_column: "id".to_owned(),
        extra_columns: ExtraColumns::Ignore,
        resources: Resources::new(Some(NonZero::<usize>::MIN), None),
    };
    let job = Job { terms, table: &table, access };
    let _ = release(&job, &mut ledger, &AbortAt(step));
    panic!("the step was not reached");
}

fn abort_at(place: &Workplace, step: Step) {
    let status = Command::new(env::current_exe().unwrap())
        .args(["--exact", "child_that_aborts", "--nocapture"])
        .env(STEP, format!("{step:?}"))
        .current_dir(place.folder())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .unwrap();
    #[cfg(unix)]
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(6), "{step:?}: not aborted");
    assert!(!status.success());
}

/// The only session, and the noised integers it has stored.
fn session(place: &Workplace) -> (Option<State>, Vec<Vec<i64>>) {
    let ledger = Ledger::open(&place.path("ledger.sqlite")).unwrap();
    let study = Study::load(&place.path("study.toml")).unwrap();
    match ledger.session("people", study.id(), "north").unwrap() {
        None => (None, Vec::new()),
        Some(session) => {
            let mut stored = Vec::new();
            while let Some(stage) = study.stage("north", &stored).unwrap() {
                let position = stored.len() as u32;
                match ledger.stored_stage(&session, position, stage.coordinates()).unwrap() {
                    Some(stage) => stored.push(stage.all().unwrap()),
                    None => break,
                }
            }
            (Some(session.state), stored)
        }
    }
}

/// The noised integers of every stage of the published release.
fn published(place: &Workplace) -> Vec<Vec<i64>> {
    let release = Release::read(&place.path("north.release.parquet")).unwrap();
    let scale = release.mixed_stage().unwrap().scale();
    let columns = release.columns();
    let mixed = (0..columns.rows())
        .flat_map(|row| columns.values().iter().map(move |column| (column[row] * scale).round() as i64));
    let mut stages = release.earlier_sums();
    stages.push(mixed.collect());
    stages
}

#[test]
fn every_step_can_be_the_last() {
    every_step_of(&STUDY, STAGES);
}

#[test]
fn every_step_can_be_the_last_where_rows_are_kept() {
    every_step_of(&dgm(), 1);
}

/// Every subject keeps a row.
fn dgm() -> String {
    STUDY.replace("id = \"integer\"", "id = \"row\"\nmethod = \"dgm\"")
}

fn every_step_of(study: &str, stages: u32) {
    let release_north = |place: &Workplace| place.release_north(&["--ignore-extra"]).ok();
    let reference = Workplace::with_study(study);
    release_north(&reference);
    let one_charge = reference.spent();
    assert!(one_charge > 0);

    let steps = Step::all(stages);
    for &step in &steps {
        let place = Workplace::with_study(study);
        abort_at(&place, step);

        let position = |wanted| steps.iter().position(|&step| step == wanted).unwrap();
        let reached = |wanted| position(step) >= position(wanted);
        let (state, stored) = session(&place);
        if reached(Step::Published) {
            assert_eq!(state, Some(State::Published), "{step:?}");
        } else if reached(Step::Spent(0)) {
            assert_eq!(state, Some(State::Spent), "{step:?}: a draw may be out, so the charge must stand");
        } else {
            assert_eq!(state, None, "{step:?}: nothing was drawn, so nothing is charged");
        }
        assert_eq!(place.spent(), if reached(Step::Spent(0)) { one_charge } else { 0 }, "{step:?}");
        let expected = (0..stages).filter(|&stage| reached(Step::Stored(stage))).count();
        assert_eq!(stored.len(), expected, "{step:?}");
        let finished = fs::read(place.path("north.release.parquet")).ok();
        assert_eq!(finished.is_some(), reached(Step::Named), "{step:?}");

        // Again, with the real command.
        release_north(&place);
        assert_eq!(place.spent(), one_charge, "{step:?}: one release, one charge");
        place.run(&["verify", "north.release.parquet"]).ok();
        assert!(published(&place).starts_with(&stored), "{step:?}: stored noise was not used");
        let bytes = fs::read(place.path("north.release.parquet")).unwrap();
        if let Some(finished) = finished {
            assert!(bytes == finished, "{step:?}: the finished file changed");
        }

        // And once more: the same bytes, no charge.
        release_north(&place);
        assert!(fs::read(place.path("north.release.parquet")).unwrap() == bytes);
        assert_eq!(place.spent(), one_charge);
        let left: Vec<_> =
            fs::read_dir(place.folder()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert!(!left.iter().any(|name| name.to_string_lossy().contains("partial")), "{left:?}");

        // A file that was lost can be made again from the ledger, without the table.
        fs::remove_file(place.path("north.release.parquet")).unwrap();
        release_north(&place);
        assert!(fs::read(place.path("north.release.parquet")).unwrap() == bytes);
    }
}

/// Enough rows that part of them is in the ledger's file when the process dies.
#[test]
fn rows_that_were_being_stored_are_drawn_again() {
    const ROWS: usize = 300_000;
    let place = Workplace::with_study(&dgm().replace("rows = 40", &format!("rows = {ROWS}")));
    let rows: String = (0..ROWS).map(|i| format!("{},{}\n", i % 100, ["no", "yes"][i % 2])).collect();
    place.write("north.csv", format!("age,smoker\n{rows}"));
    let empty = fs::metadata(place.path("ledger.sqlite")).unwrap().len();
    abort_at(&place, Step::Noised(0));
    assert!(fs::metadata(place.path("ledger.sqlite")).unwrap().len() > empty + (1 << 20));
    assert_eq!(session(&place), (Some(State::Spent), Vec::new()));
    place.release_north(&[]).ok();
    let (state, stored) = session(&place);
    assert_eq!(state, Some(State::Published));
    assert!(published(&place) == stored);
}
