//! Sparse against Bernoulli mixing at equal k: the same distribution of errors, and where it is
//! not.

use std::fmt::Write as _;

use anyhow::Result;
use potluck_core::learn::Ridge;
use potluck_core::mixing::Mixing;
use rand_xoshiro::Xoshiro256PlusPlus;
use serde_json::json;

use super::{DELTA, SYNTHETIC_RIDGE};
use crate::args::Common;
use crate::figure::{Panel, Scale, Series, grid};
use crate::runner::{Task, run as run_tasks, write, write_json};
use crate::seeds::Seed;
use crate::statistics::{kolmogorov, mean, quantile};
use crate::synthetic::{distance, table_with, uniform};
use crate::table::{Cell, Privacy};

/// Features that spread evenly.
const EVEN: &str = "uniform";
/// One subject in a hundred far out, the others near the middle.
const HEAVY: &str = "heavy-tailed";
/// One value in a thousand far out, the others next to nothing: a handful of subjects carries
/// everything.
const EXTREME: &str = "a few extreme";

#[derive(Clone, Copy)]
struct Case {
    features: &'static str,
    n: usize,
    k: u64,
    /// ε, or none to see the mixing without the noise that hides it.
    epsilon: Option<f64>,
}

fn heavy_tailed(rng: &mut Xoshiro256PlusPlus) -> f64 {
    far_out(rng, 0.01, 0.05)
}

fn extreme(rng: &mut Xoshiro256PlusPlus) -> f64 {
    far_out(rng, 0.001, 0.01)
}

/// ±1 with this probability, else a value near 0.
fn far_out(rng: &mut Xoshiro256PlusPlus, probability: f64, near: f64) -> f64 {
    let far = uniform(rng) > 1.0 - 2.0 * probability;
    let value = uniform(rng);
    if far { value.signum() } else { near * value }
}

fn cases(quick: bool) -> Vec<Case> {
    let mut cases = Vec::new();
    for features in [EVEN, HEAVY] {
        for (n, ks) in [(10_000, [30, 100, 1000]), (100_000, [30, 300, 3000])] {
            for k in ks {
                if !(quick && n > 10_000) {
                    cases.push(Case { features, n, k, epsilon: Some(1.0) });
                }
            }
        }
        cases.push(Case { features, n: 2000, k: 200, epsilon: Some(1.0) });
        // Without noise: few subjects a mixed row, down to one.
        for k in [20, 200, 2000] {
            cases.push(Case { features, n: 2000, k, epsilon: None });
        }
    }
    for k in [200, 2000] {
        cases.push(Case { features: EXTREME, n: 2000, k, epsilon: None });
    }
    cases
}

pub(crate) fn run(common: &Common) -> Result<()> {
    let seeds = common.seeds.unwrap_or(if common.quick { 60 } else { 1000 });
    let cases = cases(common.quick);
    let base = Seed::new(common.seed);
    let ridge = Ridge::new(SYNTHETIC_RIDGE)?;
    let mut tasks = Vec::new();
    for case in &cases {
        for index in 0..seeds {
            let key = format!("{} {} {} {:?} {index}", case.features, case.n, case.k, case.epsilon);
            tasks.push(Task { key, cost: case.n as f64 * (case.k as f64 + 100.0), cell: (*case, index) });
        }
    }
    let (results, work): (Vec<(f64, f64)>, _) = run_tasks("mixing", common, &tasks, |&(case, index)| {
        let seed = base.of(&format!("mixing {} {} {} {index}", case.features, case.n, case.k));
        let feature = match case.features {
            HEAVY => heavy_tailed,
            EXTREME => extreme,
            _ => uniform,
        };
        // Without noise and without residuals any mixing would recover the weights exactly.
        let residual = if case.epsilon.is_some() { 0.0 } else { 0.3 };
        let (table, weights) = table_with(case.n, seed, residual, feature);
        let cell = Cell::new(&table, seed, common, case.k);
        let privacy = case.epsilon.map(|epsilon| Privacy { epsilon, delta: DELTA });
        let error = |mixing| -> Result<f64> {
            let moments = cell.mixed_moments(privacy, mixing, case.k)?;
            let solution = moments.ols(table.label(), &table.features(), ridge)?;
            Ok(distance(&solution.weights, &weights))
        };
        Ok((error(Mixing::Bernoulli)?, error(Mixing::Sparse)?))
    })?;

    let mut text = String::from(
        "| features | n | k | ε | bernoulli: mean (5%, 95%) | sparse: mean (5%, 95%) | ratio of means | Kolmogorov distance | p |\n|---|---|---|---|---|---|---|---|---|\n",
    );
    let mut panels = Vec::new();
    let mut json_results = Vec::new();
    for (case, results) in cases.iter().zip(results.chunks(seeds)) {
        let bernoulli: Vec<f64> = results.iter().map(|pair| pair.0).collect();
        let sparse: Vec<f64> = results.iter().map(|pair| pair.1).collect();
        let (distance, p) = kolmogorov(&bernoulli, &sparse);
        let summary = |values: &[f64]| {
            format!("{:.4} ({:.4}, {:.4})", mean(values), quantile(values, 0.05), quantile(values, 0.95))
        };
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} | {:.3} | {distance:.3} | {p:.3} |",
            case.features,
            case.n,
            case.k,
            case.epsilon.map_or("no noise".to_owned(), |epsilon| epsilon.to_string()),
            summary(&bernoulli),
            summary(&sparse),
            mean(&sparse) / mean(&bernoulli),
        );
        let quantiles = |values: &[f64]| {
            (0..=100)
                .map(|percent| (quantile(values, f64::from(percent) / 100.0), f64::from(percent) / 100.0))
                .collect()
        };
        panels.push(Panel {
            title: format!(
                "{}, n = {}, k = {}{}",
                case.features,
                case.n,
                case.k,
                if case.epsilon.is_some() { "" } else { ", no noise" }
            ),
            x_axis: "‖ŵ−w*‖".to_owned(),
            x_scale: Scale::Linear,
            y_scale: Scale::Linear,
            y_range: Some((0.0, 1.0)),
            series: vec![
                Series { name: "bernoulli".to_owned(), points: quantiles(&bernoulli) },
                Series { name: "sparse".to_owned(), points: quantiles(&sparse) },
            ],
            joined: true,
        });
        json_results.push(json!({
            "features": case.features, "n": case.n, "k": case.k, "epsilon": case.epsilon,
            "bernoulli": bernoulli, "sparse": sparse,
        }));
    }
    write(&common.out.join("mixing.md"), &text)?;
    let per_row = 4;
    let mut rows: Vec<Vec<Panel>> = Vec::new();
    while !panels.is_empty() {
        rows.push(panels.drain(..per_row.min(panels.len())).collect());
    }
    write(&common.out.join("mixing.svg"), &grid(&rows))?;
    print!("{text}");
    if let Some(path) = &common.json {
        write_json(path, "mixing", work, &json_results.into())?;
    }
    Ok(())
}
