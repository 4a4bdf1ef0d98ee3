//! The calibrated method on every table of a folder: random parties, random labels, natural and
//! loose bounds.

use std::fmt::Write as _;

use anyhow::Result;
use potluck_core::learn::Ridge;
use potluck_core::mixing::Mixing;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{DELTA, REAL_RIDGE};
use crate::args::{Common, Robustness};
use crate::constant::{Place, least_excess};
use crate::inferred::Inferred;
use crate::methods::{
    Method, MixedRows, calibrated, largest_bernoulli, ols_with_intercept, released_mean, rmgm, select,
};
use crate::runner::{Task, Work, run as run_tasks, write, write_json};
use crate::seeds::Seed;
use crate::statistics::mean;
use crate::table::{Cell, Privacy};

const EPSILONS: [f64; 3] = [1.0, 0.3, 0.1];
/// By how much public bounds are wider than the values.
const BOUNDS: [(&str, f64); 2] = [("natural", 1.0), ("10× loose", 10.0)];
/// Values lie in [0, 1].
const MIDDLE: f64 = 0.5;
/// Where least squares leaves less of the label's variance than this, it is taken to leave as much:
/// some tables hold columns that sum to the label.
const LEAST_LOSS: f64 = 1e-3;

/// Mean squared errors in one repetition, in units of the test rows' variance around the training
/// mean.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct Losses {
    ols: f64,
    released_mean: f64,
    calibrated: f64,
    rmgm: f64,
    /// What the best constant loses that the releases allow.
    best_constant: f64,
}

/// All repetitions with one table, kind of bounds and ε.
struct Line<'a> {
    table: &'a Inferred,
    bounds: &'static str,
    epsilon: f64,
    losses: Vec<Losses>,
}

impl Line<'_> {
    fn values(&self, value: impl Fn(&Losses) -> f64) -> Vec<f64> {
        self.losses.iter().map(value).collect()
    }

    /// Mean log(loss/OLS), mean loss over that of the released mean, and the worst ratio of the
    /// two.
    fn summary(&self, method: fn(&Losses) -> f64) -> [f64; 3] {
        let logs = self.values(|losses| (method(losses) / losses.ols.max(LEAST_LOSS)).ln());
        let ratio = mean(&self.values(method)) / mean(&self.values(|losses| losses.released_mean));
        let worst = self.values(|losses| method(losses) / losses.released_mean);
        [mean(&logs), ratio, worst.into_iter().fold(0.0, f64::max)]
    }

    /// Mean loss over that of the mean of the training rows, which no release knows exactly.
    fn against_training_mean(&self) -> f64 {
        mean(&self.values(|losses| losses.calibrated))
    }

    /// The same for the best constant that the releases allow.
    fn best_constant(&self) -> f64 {
        mean(&self.values(|losses| losses.best_constant))
    }
}

pub(crate) fn run(arguments: &Robustness, common: &Common) -> Result<()> {
    let tables = Inferred::of_folder(&arguments.data_dir)?;
    let tables = select(tables, arguments.tables.as_deref(), |table| table.name.clone())?;
    let epsilons = arguments.epsilons.clone().unwrap_or_else(|| EPSILONS.to_vec());
    let seeds = common.seeds.unwrap_or(if common.quick { 3 } else { 100 });
    let most = if common.quick { arguments.rows.min(5000) } else { arguments.rows };
    let privacies: Vec<Privacy> = epsilons.iter().map(|&epsilon| Privacy { epsilon, delta: DELTA }).collect();
    let paper = rmgm(Mixing::Bernoulli, MixedRows::Rule(10.0));
    let methods = [ols_with_intercept(), released_mean(), calibrated(), paper];
    let ridge = Ridge::new(REAL_RIDGE)?;
    let base = Seed::new(common.seed);

    let mut tasks = Vec::new();
    for (at, table) in tables.iter().enumerate() {
        for (b, (bounds, _)) in BOUNDS.iter().enumerate() {
            for index in 0..seeds {
                let key = format!("{} {} {bounds} {index} {most} {epsilons:?}", table.name, table.rows());
                let cost = table.rows().min(most) as f64;
                tasks.push(Task { key, cost, cell: (at, b, index) });
            }
        }
    }
    // For each task: losses by ε.
    let (results, work): (Vec<Vec<Losses>>, _) =
        run_tasks("robustness", common, &tasks, |&(at, b, index)| {
            let table = &tables[at];
            // Both kinds of bounds see the same rows, parties and label.
            let seed = base.of(&format!("robustness {} {index}", table.name));
            let dealt = table.dealt(most, seed).loosened(BOUNDS[b].1);
            let (train, test) = dealt.split(seed);
            let rows = largest_bernoulli(&methods[3..], train.n(), &privacies)?;
            let cell = Cell::new(&train, seed.of(BOUNDS[b].0), common, rows);
            let unit = train.mean_loss(&test);
            let (means, covariance) = cell.plain_covariance();
            let place = |column: usize| Place {
                offset: means[column] - MIDDLE,
                variance: covariance[(column, column)].max(f64::MIN_POSITIVE),
            };
            let places: Vec<Place> = dealt.like_label().into_iter().map(place).collect();
            privacies
                .iter()
                .map(|&privacy| {
                    let loss = |method: &dyn Method| -> Result<f64> {
                        Ok(method.fit(&cell, privacy, ridge)?.loss(&test) / unit)
                    };
                    let noise = cell.calibrated(privacy)?.centre_noise(train.label())?;
                    Ok(Losses {
                        best_constant: 1.0 + least_excess(place(train.label()), &places, noise),
                        ols: loss(methods[0].as_ref())?,
                        released_mean: loss(methods[1].as_ref())?,
                        calibrated: loss(methods[2].as_ref())?,
                        rmgm: loss(methods[3].as_ref())?,
                    })
                })
                .collect()
        })?;

    let mut lines = Vec::new();
    for (at, table) in tables.iter().enumerate() {
        for (b, &(bounds, _)) in BOUNDS.iter().enumerate() {
            for (e, &epsilon) in epsilons.iter().enumerate() {
                let of_cell = tasks.iter().zip(&results).filter(|(task, _)| {
                    let (of_table, of_bounds, _) = task.cell;
                    of_table == at && of_bounds == b
                });
                lines.push(Line {
                    table,
                    bounds,
                    epsilon,
                    losses: of_cell.map(|(_, result)| result[e]).collect(),
                });
            }
        }
    }
    report(&lines, seeds, most, work, common)
}

/// All tables together, with one kind of bounds and ε.
struct Overall {
    bounds: &'static str,
    epsilon: f64,
    /// Mean log(loss/OLS), mean and largest ratio to the released mean, worst ratio.
    numbers: [f64; 4],
}

fn overall(lines: &[Line<'_>]) -> Vec<Overall> {
    let mut groups: Vec<(&'static str, f64, Vec<[f64; 3]>)> = Vec::new();
    for line in lines {
        let summary = line.summary(|losses| losses.calibrated);
        let same = |(bounds, epsilon, _): &&mut (&str, f64, _)| {
            *bounds == line.bounds && epsilon.total_cmp(&line.epsilon).is_eq()
        };
        match groups.iter_mut().find(same) {
            Some((_, _, summaries)) => summaries.push(summary),
            None => groups.push((line.bounds, line.epsilon, vec![summary])),
        }
    }
    let of_group = |(bounds, epsilon, summaries): (&'static str, f64, Vec<[f64; 3]>)| {
        let column = |at: usize| summaries.iter().map(|summary| summary[at]).collect::<Vec<f64>>();
        let most = |at: usize| column(at).into_iter().fold(0.0, f64::max);
        Overall { bounds, epsilon, numbers: [mean(&column(0)), mean(&column(1)), most(1), most(2)] }
    };
    groups.into_iter().map(of_group).collect()
}

fn report(lines: &[Line<'_>], seeds: usize, most: usize, work: Work, common: &Common) -> Result<()> {
    let mut text = format!(
        "{seeds} random labels and dealings of the columns to 2 to 6 parties for each table; at most {most} random rows, of which a fifth are for testing. \
         The ratio is the mean loss over that of predicting the released mean, losses being in units of the label's variance; the worst is that of a single repetition. Beside it the mean loss over that of the mean of the training rows themselves, which holds the error of the released mean too, and what the best constant must lose that somebody could predict who knows the mean and spread of every column of the table, but of the label only what is released. RMGM has k = 10√n/σ. Where OLS leaves less than {LEAST_LOSS} of the label's variance, as much is put in its place.\n\n\
         | table | rows × columns | bounds | ε | calibrated: mean log(MSE/OLS) | ratio | worst | against the training mean | best constant | RMGM: mean log(MSE/OLS) | ratio | worst |\n|---|---|---|---|---|---|---|---|---|---|---|---|\n",
    );
    for line in lines {
        let [log, ratio, worst] = line.summary(|losses| losses.calibrated);
        let [rmgm_log, rmgm_ratio, rmgm_worst] = line.summary(|losses| losses.rmgm);
        let _ = writeln!(
            text,
            "| {} | {} × {} | {} | {} | {log:.3} | {ratio:.3} | {worst:.3} | {:.3} | {:.3} | {rmgm_log:.3} | {rmgm_ratio:.3} | {rmgm_worst:.2} |",
            line.table.name,
            line.table.rows(),
            line.table.width(),
            line.bounds,
            line.epsilon,
            line.against_training_mean(),
            line.best_constant(),
        );
    }
    text.push_str("\nCalibrated, over all tables:\n\n| bounds | ε | mean log(MSE/OLS) | mean ratio | largest ratio of a table | worst |\n|---|---|---|---|---|---|\n");
    for overall in overall(lines) {
        let [log, ratio, largest, worst] = overall.numbers;
        let _ = writeln!(
            text,
            "| {} | {} | {log:.3} | {ratio:.3} | {largest:.3} | {worst:.3} |",
            overall.bounds, overall.epsilon
        );
    }
    write(&common.out.join("robustness.md"), &text)?;
    print!("{text}");
    if let Some(path) = &common.json {
        let results: Vec<_> = lines
            .iter()
            .map(|line| {
                json!({
                    "table": line.table.name,
                    "bounds": line.bounds,
                    "epsilon": line.epsilon,
                    "ols": line.values(|losses| losses.ols),
                    "released_mean": line.values(|losses| losses.released_mean),
                    "calibrated": line.values(|losses| losses.calibrated),
                    "rmgm": line.values(|losses| losses.rmgm),
                    "best_constant": line.values(|losses| losses.best_constant),
                })
            })
            .collect();
        write_json(path, "robustness", work, &results.into())?;
    }
    Ok(())
}
