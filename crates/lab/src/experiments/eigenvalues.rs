//! Distance against the smallest absolute eigenvalue of the Hessian: the paper's figure "small
//! eigenvalues".

use std::fmt::Write as _;

use anyhow::Result;
use potluck_core::learn::Ridge;
use serde_json::json;

use super::{DELTA, REAL_RIDGE, SYNTHETIC_RIDGE};
use crate::args::{Common, Eigenvalues};
use crate::dataset::Dataset;
use crate::figure::{Panel, Scale, Series, grid};
use crate::methods::{Fitted, largest_bernoulli, registry};
use crate::runner::{Task, Work, run as run_tasks, write, write_json};
use crate::seeds::Seed;
use crate::statistics::quantile;
use crate::synthetic::{distance, table};
use crate::table::{Cell, Privacy, Table};

const METHODS: [&str; 2] = ["DGM", "RMGM k=10√n/σ"];

/// One point: smallest absolute eigenvalue and distance.
type Point = (f64, f64);

fn smallest(fitted: &Fitted) -> f64 {
    fitted.eigenvalues.iter().fold(f64::INFINITY, |least, value| least.min(value.abs()))
}

/// The points of all methods on one table, measured from `truth` or from what least squares gives.
fn points(
    table: &Table,
    seed: Seed,
    truth: Option<&[f64]>,
    ridge: f64,
    common: &Common,
) -> Result<Vec<Point>> {
    let privacy = Privacy { epsilon: 1.0, delta: DELTA };
    let methods = registry();
    let ridge = Ridge::new(ridge)?;
    let rows = largest_bernoulli(&methods, table.n(), &[privacy])?;
    let cell = Cell::new(table, seed, common, rows);
    let plain = methods[0].fit(&cell, privacy, ridge)?.weights;
    let truth = truth.unwrap_or(&plain);
    let chosen = |name: &str| methods.iter().find(|method| method.name() == name);
    METHODS
        .iter()
        .filter_map(|name| chosen(name))
        .map(|method| {
            let fitted = method.fit(&cell, privacy, ridge)?;
            Ok((smallest(&fitted), distance(&fitted.weights, truth)))
        })
        .collect()
}

pub(crate) fn run(arguments: &Eigenvalues, common: &Common) -> Result<()> {
    let (n, seeds) = if common.quick { (1_000_000, 6) } else { (1_000_000, 100) };
    let seeds = common.seeds.unwrap_or(seeds);
    let base = Seed::new(common.seed);
    let mut figures = Vec::new();

    let tasks: Vec<Task<usize>> = (0..seeds)
        .map(|index| Task { key: format!("synthetic {n} {index}"), cost: 1.0, cell: index })
        .collect();
    let (synthetic, mut work): (Vec<Vec<Point>>, Work) = run_tasks("eigenvalues", common, &tasks, |index| {
        let seed = base.of(&format!("eigenvalues {n} {index}"));
        let (table, weights) = table(n, seed);
        points(&table, seed, Some(&weights), SYNTHETIC_RIDGE, common)
    })?;
    figures.push((format!("synthetic, n = {n}, ε = 1"), synthetic));

    match arguments.data_dir.as_ref().map(|folder| folder.join("insurance.csv")).filter(|file| file.exists())
    {
        None => eprintln!("insurance.csv is not there (--data-dir): only the synthetic half was run"),
        Some(file) => {
            let folder = file.parent().unwrap_or(&file).to_owned();
            let dataset = Dataset::built_in("insurance", &folder)?;
            let tasks: Vec<Task<usize>> = (0..seeds)
                .map(|index| Task { key: format!("insurance {index}"), cost: 1.0, cell: index })
                .collect();
            let (insurance, more) = run_tasks("eigenvalues", common, &tasks, |index| {
                let seed = base.of(&format!("eigenvalues insurance {index}"));
                let (train, _) = dataset.split(seed);
                points(&train, seed, None, REAL_RIDGE, common)
            })?;
            work = work.and(more);
            figures.push(("Insurance, ε = 1".to_owned(), insurance));
        }
    }
    report(&figures, work, common)
}

fn report(figures: &[(String, Vec<Vec<Point>>)], work: Work, common: &Common) -> Result<()> {
    let mut csv = "data,method,seed,smallest_absolute_eigenvalue,distance\n".to_owned();
    let mut text = String::new();
    let mut panels = Vec::new();
    let mut results = Vec::new();
    for (data, seeds) in figures {
        let mut series = Vec::new();
        for (m, method) in METHODS.iter().enumerate() {
            let points: Vec<Point> = seeds.iter().map(|points| points[m]).collect();
            for (seed, (eigenvalue, distance)) in points.iter().enumerate() {
                writeln!(csv, "\"{data}\",{method},{seed},{eigenvalue},{distance}")?;
            }
            let eigenvalues: Vec<f64> = points.iter().map(|point| point.0).collect();
            let distances: Vec<f64> = points.iter().map(|point| point.1).collect();
            let _ = writeln!(
                text,
                "{data}, {method}: smallest absolute eigenvalue {:.2e} (median {:.2e}), largest distance {:.3} (median {:.3})",
                quantile(&eigenvalues, 0.0),
                quantile(&eigenvalues, 0.5),
                quantile(&distances, 1.0),
                quantile(&distances, 0.5),
            );
            results.push(json!({ "data": data, "method": method, "points": points }));
            series.push(Series { name: (*method).to_owned(), points });
        }
        panels.push(Panel {
            title: format!("{data}: ‖ŵ−w*‖"),
            x_axis: "smallest absolute eigenvalue".to_owned(),
            x_scale: Scale::Log,
            y_scale: Scale::Log,
            y_range: None,
            series,
            joined: false,
        });
    }
    write(&common.out.join("eigenvalues.csv"), &csv)?;
    write(&common.out.join("eigenvalues.svg"), &grid(&[panels]))?;
    print!("{text}");
    if let Some(path) = &common.json {
        write_json(path, "eigenvalues", work, &results.into())?;
    }
    Ok(())
}
