//! A release that dies at any step is finished by running the command again: nothing is lost, nothing is charged
//! twice, and what was drawn once is never drawn again.
#![allow(clippy::unwrap_used)]

mod support;

use std::env;
use std::fs;
use std::num::NonZero;
use std::path::Path;
use std::process::{Command, Stdio};

use potluck_party::ledger::State;
use potluck_party::release::{ExtraColumns, release};
use potluck_party::{Job, Ledger, Observer, Step, Table};
use potluck_release::files::Existing;
use potluck_release::{Release, Study};
use support::Workplace;

/// Stages of a calibrated release.
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
    let job = Job {
        study: &study,
        party: "north",
        table: &table,
        id_column: "id",
        extra_columns: ExtraColumns::Refuse,
        budget: "people",
        out: Path::new("north.release.parquet"),
        existing: Existing::Keep,
        signing_key: None,
        threads: NonZero::<usize>::MIN,
        tmp: env::temp_dir(),
    };
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
            let stored = (0..STAGES).map_while(|stage| ledger.stored_stage(&session, stage).unwrap());
            (Some(session.state), stored.collect())
        }
    }
}

/// The noised integers of every stage of the published release.
fn published(place: &Workplace) -> Vec<Vec<i64>> {
    let release = Release::read(&place.path("north.release.parquet")).unwrap();
    let scale = release.mixed_stage().scale();
    let columns = release.columns();
    let mixed = (0..columns.rows())
        .flat_map(|row| columns.values().iter().map(move |column| (column[row] * scale).round() as i64));
    let mut stages = release.earlier_sums();
    stages.push(mixed.collect());
    stages
}

#[test]
fn every_step_can_be_the_last() {
    let reference = Workplace::new();
    reference.release_north(&[]).ok();
    let one_charge = reference.spent();
    assert!(one_charge > 0);

    let steps = Step::all(STAGES);
    for &step in &steps {
        let place = Workplace::new();
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
        let expected = (0..STAGES).filter(|&stage| reached(Step::Stored(stage))).count();
        assert_eq!(stored.len(), expected, "{step:?}");
        let finished = fs::read(place.path("north.release.parquet")).ok();
        assert_eq!(finished.is_some(), reached(Step::Named), "{step:?}");

        // Again, with the real command.
        place.release_north(&[]).ok();
        assert_eq!(place.spent(), one_charge, "{step:?}: one release, one charge");
        place.run(&["verify", "north.release.parquet"]).ok();
        assert!(published(&place).starts_with(&stored), "{step:?}: stored noise was not used");
        let bytes = fs::read(place.path("north.release.parquet")).unwrap();
        if let Some(finished) = finished {
            assert!(bytes == finished, "{step:?}: the finished file changed");
        }

        // And once more: the same bytes, no charge.
        place.release_north(&[]).ok();
        assert!(fs::read(place.path("north.release.parquet")).unwrap() == bytes);
        assert_eq!(place.spent(), one_charge);
        let left: Vec<_> =
            fs::read_dir(place.folder()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert!(!left.iter().any(|name| name.to_string_lossy().contains("partial")), "{left:?}");

        // A file that was lost can be made again from the ledger, without the table.
        fs::remove_file(place.path("north.release.parquet")).unwrap();
        place.release_north(&[]).ok();
        assert!(fs::read(place.path("north.release.parquet")).unwrap() == bytes);
    }
}
