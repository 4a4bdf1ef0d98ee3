//! What `potluck plan` predicts against what simulated releases give.

use std::fmt::Write as _;

use anyhow::{Context, Result};
use potluck_core::encoding::Bounds;
use potluck_core::mixing::MixingKey;
use potluck_core::planning::{Outlook, TYPICAL_SIGNAL};
use rand_core::SeedableRng;
use rand_distr::{Distribution, StandardNormal};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::DELTA;
use crate::args::{Common, Planning};
use crate::holdings::{Column, Holdings};
use crate::runner::{Task, run as run_tasks, write, write_json};
use crate::seeds::Seed;
use crate::statistics::mean;
use crate::table::{Privacy, subjects};

const SIZES: [usize; 3] = [10_000, 100_000, 1_000_000];
const EPSILONS: [f64; 2] = [1.0, 0.3];
const LARGE: usize = 1_000_000;
/// Columns of each party.
const LAYOUTS: [&[usize]; 4] = [&[2, 2, 2, 2, 2, 1], &[3, 3, 3], &[1, 1, 1, 1], &[6, 6]];
/// Public bounds, in standard deviations.
const BOUND: f64 = 5.0;

/// What one repetition finds at one ε.
#[derive(Serialize, Deserialize)]
struct Found {
    /// Mean square of the errors of the coefficients, in standard deviations.
    squared_error: f64,
    /// Part of the explainable variance that the fit explains.
    recovered: f64,
    /// By how much the estimate of R² misses what the fit explains.
    r_squared_miss: f64,
}

/// Bell-shaped, uncorrelated columns, one of which the others explain in part; all have variance 1.
fn holdings(layout: &[usize], n: usize, label: usize, seed: Seed) -> (Holdings, Vec<f64>) {
    let p: usize = layout.iter().sum();
    let mut rng = Xoshiro256PlusPlus::from_seed(seed.of("data").bytes());
    let slope = (TYPICAL_SIGNAL / (p - 1) as f64).sqrt();
    let slopes: Vec<f64> = (0..p - 1).map(|j| if j % 2 == 0 { slope } else { -slope }).collect();
    let mut columns = vec![Vec::with_capacity(n); p];
    for _ in 0..n {
        let mut normal = || -> f64 { StandardNormal.sample(&mut rng) };
        let features: Vec<f64> = slopes.iter().map(|_| normal()).collect();
        let signal: f64 = features.iter().zip(&slopes).map(|(x, slope)| x * slope).sum();
        let y = signal + (1.0 - TYPICAL_SIGNAL).sqrt() * normal();
        let mut features = features.into_iter();
        for (at, column) in columns.iter_mut().enumerate() {
            column.push(if at == label { y } else { features.next().unwrap_or(0.0) });
        }
    }
    let bounds = Bounds::new(-BOUND, BOUND).expect("bounds are apart");
    let mut columns = columns.into_iter().map(|values| Column::Numbers { bounds, values });
    let parties = layout.iter().map(|&width| columns.by_ref().take(width).collect()).collect();
    (Holdings::new(n, parties), slopes)
}

fn predicted(common: &Common, layout: &[usize], n: usize, epsilon: f64) -> Result<Outlook> {
    let (holdings, _) = holdings(layout, 1, 0, Seed::new(0));
    // Nothing that is expected depends on the key.
    let study = holdings.study(
        common.form(),
        n,
        Privacy { epsilon, delta: DELTA },
        None,
        &MixingKey::new([0; 32]),
    )?;
    Ok(study.prospect()?.outlook(TYPICAL_SIGNAL))
}

pub(crate) fn run(arguments: &Planning, common: &Common) -> Result<()> {
    let default_sizes = if common.quick { &SIZES[..1] } else { &SIZES[..] };
    let sizes = arguments.sizes.clone().unwrap_or_else(|| default_sizes.to_vec());
    let seeds = common.seeds.unwrap_or(if common.quick { 6 } else { 100 });
    let base = Seed::new(common.seed);
    let release = |epsilon: f64| common.release(Privacy { epsilon, delta: DELTA });
    let mut tasks = Vec::new();
    for layout in LAYOUTS {
        for &n in &sizes {
            for index in 0..if n >= LARGE { seeds.div_ceil(5) } else { seeds } {
                let key = format!("{layout:?} {n} {index}");
                tasks.push(Task { key, cost: n as f64, cell: (layout, n, index) });
            }
        }
    }
    let (results, work): (Vec<Vec<Found>>, _) =
        run_tasks("planning", common, &tasks, |&(layout, n, index)| {
            let seed = base.of(&format!("planning {layout:?} {n} {index}"));
            // Every column is the label in turn.
            let label = index % layout.iter().sum::<usize>();
            let (holdings, slopes) = holdings(layout, n, label, seed);
            let subjects = subjects(n, seed);
            let of_epsilon = |(at, epsilon): (usize, f64)| {
                let released = release(epsilon).run(&holdings, &subjects, seed.of(&at.to_string()))?;
                let model = released.fit(label)?;
                let found = model.coefficients.iter().zip(&slopes);
                let squares = found.clone().map(|(one, slope)| (one.value.estimate - slope).powi(2));
                let gain = |w: f64, slope: f64| 2.0 * w * slope - w * w;
                let explained: f64 = found.map(|(one, &slope)| gain(one.prediction, slope)).sum();
                let r_squared = model.diagnostics.r_squared.context("the posterior learner finds it")?;
                Ok(Found {
                    squared_error: squares.sum::<f64>() / slopes.len() as f64,
                    recovered: explained / TYPICAL_SIGNAL,
                    r_squared_miss: r_squared.estimate - explained,
                })
            };
            EPSILONS.into_iter().enumerate().map(of_epsilon).collect()
        })?;

    let mut text = String::from(
        "What `potluck plan` predicts, and what simulated releases of bell-shaped, uncorrelated columns give, every column being the label in turn; features explain half of it. Errors of coefficients are in standard deviations of the label for one of the feature; `recovered` is the part of the explainable variance that a fit explains on new people. ε is that of each party.\n\n\
         | columns by party | n | ε | repeats | coefficient error: planned | measured | ratio | R² error: planned | measured | ratio | recovered: planned | measured |\n|---|---|---|---|---|---|---|---|---|---|---|---|\n",
    );
    let mut values = Vec::new();
    for layout in LAYOUTS {
        for &n in &sizes {
            for (e, epsilon) in EPSILONS.into_iter().enumerate() {
                let of_cell =
                    tasks.iter().zip(&results).filter(|(task, _)| task.cell.0 == layout && task.cell.1 == n);
                let found: Vec<&Found> = of_cell.map(|(_, result)| &result[e]).collect();
                let over =
                    |part: &dyn Fn(&Found) -> f64| found.iter().map(|found| part(found)).collect::<Vec<_>>();
                let plan = predicted(common, layout, n, epsilon)?;
                let error = mean(&over(&|found| found.squared_error)).sqrt();
                let r_squared = mean(&over(&|found| found.r_squared_miss.powi(2))).sqrt();
                let recovered = mean(&over(&|found| found.recovered));
                let _ = writeln!(
                    text,
                    "| {layout:?} | {n} | {epsilon} | {} | {:.3} | {error:.3} | {:.2} | {:.3} | {r_squared:.3} | {:.2} | {:.2} | {recovered:.2} |",
                    found.len(),
                    plan.coefficient_error,
                    plan.coefficient_error / error,
                    plan.r_squared_error,
                    plan.r_squared_error / r_squared,
                    plan.recovered,
                );
                values.push(json!({
                    "layout": layout, "n": n, "epsilon": epsilon, "repeats": found.len(),
                    "planned": { "coefficient_error": plan.coefficient_error, "r_squared_error": plan.r_squared_error, "recovered": plan.recovered },
                    "measured": { "coefficient_error": error, "r_squared_error": r_squared, "recovered": recovered },
                    "squared_errors": over(&|found| found.squared_error),
                }));
            }
        }
    }
    write(&common.out.join("planning.md"), &text)?;
    print!("{text}");
    if let Some(path) = &common.json {
        write_json(path, "planning", work, &values.into())?;
    }
    Ok(())
}
