//! Passes over a Parquet file: decoding, the sparse pass, the whole calibrated release; and pyarrow
//! with NumPy on the same file.

use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use potluck_core::stage::Statistic;
use serde_json::{Value, json};

use super::{Figure, NO_PEER, Setup, THE_TIME, Timed, count, duration, short};
use crate::args::JobKind;
use crate::experiments::growth::{self, Point, Runs};
use crate::jobs::Ran;
use crate::survey::{COLUMNS, ID, PARTY, Survey};

/// What a release may hold in memory: so much, and so much more a row.
const MEMORY: (u64, u64) = (300_000_000, 16);

/// Time a row must not rise by more than this when there are ten times as many rows.
const LINEAR: f64 = 1.25;

pub(super) struct Passes {
    /// The same jobs on a tenth of the rows.
    fewer: Point,
    point: Point,
    pub(super) k: u64,
    peer: Timed,
}

pub(super) fn measure(setup: &Setup, surveys: &[Survey; 2]) -> Result<Passes> {
    let survey = &surveys[1];
    let study = survey.study("rmgm")?;
    let Statistic::Mixed { k, .. } = study.first_stage(PARTY)?.statistic else {
        bail!("a study by rmgm has one stage of mixed rows");
    };
    let columns: Vec<Value> = COLUMNS
        .iter()
        .map(|column| json!({ "name": column.name, "lo": column.lo, "hi": column.hi }))
        .collect();
    let arguments = json!({
        "table": survey.path, "id": ID, "columns": columns, "k": k,
        "key": study.seal().key().to_hex(), "threads": setup.threads,
    });
    let mut peer = match &setup.peers {
        None => None,
        Some(peers) => Some(peers.start("sparse.py", &arguments, setup.threads)?),
    };
    let mut of_peer = Timed { name: "pyarrow + NumPy".to_owned(), seconds: Vec::new() };
    let compare = |of: &Survey, kind: JobKind, ran: &Ran| {
        if let (JobKind::Sparse, Some(peer)) = (kind, &mut peer)
            && of.rows == survey.rows
        {
            setup.bar.set_message(format!("{}: {}", count(survey.rows), of_peer.name));
            let (seconds, answer) = peer.run()?;
            of_peer.seconds.push(seconds);
            let sums: Vec<i64> = serde_json::from_value(answer["sums"].clone())?;
            ensure!(sums == our_sums(ran)?, "pyarrow + NumPy and potluck do not have the same sums");
        }
        Ok(())
    };
    let mut points = growth::measure(surveys, setup.runs, setup.threads, &setup.bar, compare)?.into_iter();
    let (Some(fewer), Some(point)) = (points.next(), points.next()) else {
        bail!("two tables were measured");
    };
    Ok(Passes { fewer, point, k, peer: of_peer })
}

/// The last column of the file of sums.
fn our_sums(ran: &Ran) -> Result<Vec<i64>> {
    let path: &Path = ran.sums.as_deref().context("the job wrote no sums")?;
    let mut reader = csv::Reader::from_path(path)?;
    reader.records().map(|record| Ok(record?.get(2).unwrap_or_default().parse()?)).collect()
}

impl Passes {
    pub(super) fn figures(&self, setup: &Setup) -> Vec<Figure> {
        let n = count(self.point.rows);
        let timed = |runs: &Runs| Timed { name: runs.kind.name().to_owned(), seconds: runs.all_seconds() };
        let [decode, sparse, release] = &self.point.jobs;
        let (decoding, pass, whole) = (timed(decode), timed(sparse), timed(release));
        let beside_decoding = format!("decoding the same columns: {}", duration(decoding.median()));
        let peer = setup.peers.as_ref().map(|_| &self.peer);
        let beside_peer =
            peer.map_or(NO_PEER.to_owned(), |peer| format!("{}: {}", peer.name, duration(peer.median())));
        let allowed = MEMORY.0 + MEMORY.1 * self.point.rows;
        let peak = release.peak_bytes();
        vec![
            Figure::new(
                format!("sparse pass from Parquet, {n} × 10, k = {}", self.k),
                duration(pass.median()),
            )
            .beside(&beside_decoding)
            .at_most(&pass, &decoding, 1.5)
            .timed(vec![pass.clone(), decoding.clone()]),
            Figure::new(format!("the same pass, sums compared, {n}"), duration(pass.median()))
                .beside(beside_peer)
                .at_least(peer.map(|peer| (&pass, peer)), 5.0)
                .timed(vec![pass, self.peer.clone()]),
            Figure::new(format!("whole calibrated release, {n} × 10"), duration(whole.median()))
                .beside(beside_decoding)
                .at_most(&whole, &decoding, 5.0)
                .timed(vec![whole, decoding]),
            Figure::new(format!("peak memory of that release, {n}"), format!("{:.0} MB", peak as f64 / 1e6))
                .goal(
                    format!("≤ {} MB (300 MB + 16 bytes a row)", allowed / 1_000_000),
                    Some(peak <= allowed),
                ),
        ]
    }

    pub(super) fn growth_figures(&self) -> Vec<Figure> {
        let of_job = |(few, many): (&Runs, &Runs)| {
            let a_row = |point: &Point, runs: &Runs| Timed {
                name: format!("a row of {}", count(point.rows)),
                seconds: runs.all_seconds().into_iter().map(|seconds| seconds / point.rows as f64).collect(),
            };
            let (few_timed, many_timed) = (a_row(&self.fewer, few), a_row(&self.point, many));
            let value = |timed: &Timed, runs: &Runs, rows: u64| {
                let (time, peak) = (short(1e9 * timed.median()), runs.peak_bytes() as f64 / 1e6);
                format!("{}: {time} ns a row, {peak:.0} MB", count(rows))
            };
            let ratio = many_timed.times_as_long_as(&few_timed);
            Figure::new(format!("{} as n grows", many.kind.name()), value(&many_timed, many, self.point.rows))
                .beside(value(&few_timed, few, self.fewer.rows))
                .ratio(Some(ratio), THE_TIME)
                .goal(format!("linear: ≤ {LINEAR} × a row"), Some(ratio <= LINEAR))
                .timed(vec![many_timed, few_timed])
        };
        self.fewer.jobs.iter().zip(&self.point.jobs).map(of_job).collect()
    }
}
