//! Time a row and peak memory of whole jobs against the number of rows.

use std::fmt::Write as _;
use std::num::NonZero;
use std::time::{Duration, Instant};

use anyhow::Result;
use indicatif::ProgressBar;
use serde_json::json;

use crate::args::{Common, Growth, JobKind};
use crate::figure::{Panel, Scale, Series, grid};
use crate::jobs::Ran;
use crate::machine::Machine;
use crate::runner::{Work, write, write_json};
use crate::statistics::quantile;
use crate::survey::Survey;

/// Runs of one job on one table.
pub(crate) struct Runs {
    pub(crate) kind: JobKind,
    runs: Vec<Ran>,
}

impl Runs {
    pub(crate) fn all_seconds(&self) -> Vec<f64> {
        self.runs.iter().map(|ran| ran.seconds).collect()
    }

    /// The median.
    pub(crate) fn seconds(&self) -> f64 {
        quantile(&self.all_seconds(), 0.5)
    }

    /// The largest.
    pub(crate) fn peak_bytes(&self) -> u64 {
        self.runs.iter().map(|ran| ran.peak_bytes).max().unwrap_or(0)
    }
}

/// Every job on one table.
pub(crate) struct Point {
    pub(crate) rows: u64,
    pub(crate) jobs: [Runs; 3],
}

impl Point {
    fn new(survey: &Survey) -> Self {
        Self { rows: survey.rows, jobs: JobKind::ALL.map(|kind| Runs { kind, runs: Vec::new() }) }
    }
}

/// Runs every job on every table in turn, again and again; `after` is called after each.
pub(crate) fn measure(
    surveys: &[Survey],
    runs: usize,
    threads: NonZero<usize>,
    bar: &ProgressBar,
    mut after: impl FnMut(&Survey, JobKind, &Ran) -> Result<()>,
) -> Result<Vec<Point>> {
    let folder = tempfile::tempdir_in("target/lab")?;
    let mut points: Vec<Point> = surveys.iter().map(Point::new).collect();
    for run in 1..=runs {
        for (survey, point) in surveys.iter().zip(&mut points) {
            for job in &mut point.jobs {
                bar.set_message(format!("{} rows, run {run} of {runs}: {}", survey.rows, job.kind.name()));
                let ran = job.kind.run(survey, folder.path(), threads)?;
                after(survey, job.kind, &ran)?;
                job.runs.push(ran);
            }
        }
    }
    Ok(points)
}

pub(crate) fn run(arguments: &Growth, common: &Common) -> Result<()> {
    let start = Instant::now();
    let default = if common.quick { vec![20_000, 200_000] } else { vec![1_000_000, 10_000_000, 100_000_000] };
    let sizes = arguments.sizes.clone().unwrap_or(default);
    let runs = common.seeds.unwrap_or(if common.quick { 1 } else { 3 }).max(1);
    let threads = common.threads();
    let surveys = sizes.into_iter().map(Survey::prepare).collect::<Result<Vec<_>>>()?;
    let bar = ProgressBar::new_spinner();
    bar.enable_steady_tick(Duration::from_millis(200));
    let points = measure(&surveys, runs, threads, &bar, |_, _, _| Ok(()))?;
    bar.finish_and_clear();
    if arguments.clean {
        surveys.into_iter().try_for_each(Survey::remove)?;
    }
    let work = Work { seconds: start.elapsed().as_secs_f64(), threads: threads.get() };
    report(&points, runs, work, common)
}

fn report(points: &[Point], runs: usize, work: Work, common: &Common) -> Result<()> {
    let machine = Machine::new();
    let mut text = format!(
        "{}, {} of {} cores; medians of {runs} runs, largest peaks.\n\n\
         | rows | job | seconds | ns a row | peak memory |\n|---|---|---|---|---|\n",
        machine.processor, work.threads, machine.cores
    );
    let mut results = Vec::new();
    for point in points {
        for job in &point.jobs {
            let (seconds, peak) = (job.seconds(), job.peak_bytes());
            let _ = writeln!(
                text,
                "| {} | {} | {seconds:.3} | {:.1} | {:.0} MB |",
                point.rows,
                job.kind.name(),
                1e9 * seconds / point.rows as f64,
                peak as f64 / 1e6
            );
            let peaks: Vec<u64> = job.runs.iter().map(|ran| ran.peak_bytes).collect();
            results.push(json!({
                "rows": point.rows, "job": job.kind.name(), "seconds": job.all_seconds(), "peak_bytes": peaks,
            }));
        }
    }
    write(&common.out.join("growth.md"), &text)?;
    write(&common.out.join("growth.svg"), &figure(points))?;
    print!("{text}");
    if let Some(path) = &common.json {
        write_json(path, "growth", work, &json!({ "machine": machine, "points": results }))?;
    }
    Ok(())
}

fn figure(points: &[Point]) -> String {
    let panel = |title: &str, y_scale: Scale, value: &dyn Fn(&Point, &Runs) -> f64| {
        let of_job = |(at, kind): (usize, JobKind)| Series {
            name: kind.name().to_owned(),
            points: points.iter().map(|point| (point.rows as f64, value(point, &point.jobs[at]))).collect(),
        };
        let series: Vec<Series> = JobKind::ALL.into_iter().enumerate().map(of_job).collect();
        Panel {
            title: title.to_owned(),
            x_axis: "rows".to_owned(),
            x_scale: Scale::Log,
            y_scale,
            y_range: (y_scale == Scale::Linear).then(|| {
                let highest = series.iter().flat_map(|series| &series.points).map(|point| point.1);
                (0.0, 1.05 * highest.fold(0.0, f64::max))
            }),
            series,
            joined: true,
        }
    };
    grid(&[vec![
        panel("time a row, ns", Scale::Linear, &|point, job| 1e9 * job.seconds() / point.rows as f64),
        panel("peak memory, MB", Scale::Log, &|_, job| job.peak_bytes() as f64 / 1e6),
    ]])
}
