//! What it costs to release from Python instead of Rust: the same table, from a file and in memory.

use anyhow::Result;
use serde_json::json;

use super::{Contestant, Figure, NO_PEER, Setup, count, duration};
use crate::args::JobKind;
use crate::survey::{ID, PARTY, Survey};

/// The most that Python may add.
const OVERHEAD: f64 = 1.05;

/// Where the table is, for people; whether that is memory; and the job that does the same in Rust.
const PLACES: [(&str, bool, JobKind); 2] =
    [("the same file", false, JobKind::Release), ("an Arrow table in memory", true, JobKind::Held)];

pub(super) fn figures(setup: &Setup, survey: &Survey) -> Result<Vec<Figure>> {
    if let Some(peers) = &setup.peers {
        peers.install_potluck()?;
    }
    PLACES.into_iter().map(|(place, in_memory, kind)| figure(setup, survey, place, in_memory, kind)).collect()
}

fn figure(setup: &Setup, survey: &Survey, place: &str, in_memory: bool, kind: JobKind) -> Result<Figure> {
    let name = format!("calibrated release from Python of {place}, {}", count(survey.rows));
    let Some(peers) = &setup.peers else {
        return Ok(Figure::new(name, NO_PEER).goal(format!("≤ {OVERHEAD} ×"), None));
    };
    let folder = tempfile::tempdir_in("target/lab")?;
    let arguments = json!({
        "study": survey.study("calibrated")?.to_toml(), "party": PARTY, "id": ID, "table": survey.path,
        "in_memory": in_memory, "threads": setup.threads, "folder": std::path::absolute(folder.path())?,
    });
    let mut python = peers.start("release.py", &arguments, setup.threads)?;
    let contestants = vec![
        Contestant::new("Python", || Ok(python.run()?.0)),
        Contestant::new("Rust", || Ok(kind.run(survey, folder.path(), setup.threads)?.seconds)),
    ];
    let timed = setup.interleave(&name, contestants)?;
    Ok(Figure::new(name, duration(timed[0].median()))
        .beside(format!("Rust: {}", duration(timed[1].median())))
        .at_most(&timed[0], &timed[1], OVERHEAD)
        .timed(timed.clone()))
}
