//! What clipping does to the coefficients of the calibrated method, against n.

use std::fmt::Write as _;

use anyhow::Result;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::DELTA;
use crate::args::{Bias, Common};
use crate::figure::{Panel, Scale, Series, grid};
use crate::methods::select;
use crate::noise::NoiseKind;
use crate::population::{Placement, Population};
use crate::released::Release;
use crate::runner::{Task, Work, run as run_tasks, write, write_json};
use crate::seeds::Seed;
use crate::statistics::{mean, standard_error};
use crate::table::{Privacy, subjects};

const SIZES: [usize; 4] = [10_000, 100_000, 1_000_000, 10_000_000];
const EPSILONS: [f64; 2] = [1.0, 0.3];
const LARGE: usize = 1_000_000;
/// Without noise, so many mixed rows, so that mixing blurs little.
const SHARP: u64 = 100_000;

/// A population, who holds the label, and the features whose coefficients are looked at.
struct Case {
    name: &'static str,
    population: Population,
    placement: Placement,
    features: Vec<usize>,
}

/// Estimates over truth, minus 1, in one repetition.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct Found {
    /// Noise left out, but all that depends on ε as it would be.
    noiseless: f64,
    /// As released.
    noised: f64,
    /// As released, what predictions use: shrunk where the data resolve little.
    shrunk: f64,
}

fn cases() -> Vec<Case> {
    let between = |name: &'static str, population: Population, features: Vec<usize>| Case {
        name,
        population,
        placement: Placement::Alone,
        features,
    };
    // The label's own party holds the last two features; their moments with the label are released
    // as such.
    let within = |name: &'static str, population: Population, features: Vec<usize>| Case {
        placement: Placement::WithFeatures,
        ..between(name, population, features)
    };
    vec![
        between("correlated", Population::correlated(), vec![0, 1, 2, 4, 5]),
        between("heavy-tailed", Population::heavy_tailed(), vec![0, 1, 2, 4, 5]),
        between("5% binary", Population::rare_feature(), vec![0]),
        within("correlated, label's party", Population::correlated(), vec![4, 5]),
        within("rare label, its party", Population::rare(), vec![4]),
    ]
}

impl Case {
    /// By how much the slopes that are looked at exceed the truth, as a fraction, weighted by its
    /// square.
    fn excess(&self, found: &[f64]) -> f64 {
        let sum = |value: &dyn Fn(usize) -> f64| self.features.iter().map(|&j| value(j)).sum::<f64>();
        let truth = |j: usize| self.population.slopes[j];
        sum(&|j| found[j] * truth(j)) / sum(&|j| truth(j).powi(2)) - 1.0
    }
}

pub(crate) fn run(arguments: &Bias, common: &Common) -> Result<()> {
    let cells = &arguments.cells;
    let cases = select(cases(), cells.kinds.as_deref(), |case| case.name.to_owned())?;
    let default_sizes = if common.quick { &SIZES[..2] } else { &SIZES[..] };
    let sizes = cells.sizes.clone().unwrap_or_else(|| default_sizes.to_vec());
    let epsilons = cells.epsilons.clone().unwrap_or_else(|| EPSILONS.to_vec());
    let seeds = common.seeds.unwrap_or(if common.quick { 3 } else { 100 });
    let seeds_above = cells.seeds_above.unwrap_or(seeds.div_ceil(5).max(2));

    let base = Seed::new(common.seed);
    let mut tasks = Vec::new();
    for (case, of_case) in cases.iter().enumerate() {
        for &n in &sizes {
            let repeats = match n {
                0..LARGE => seeds,
                LARGE => seeds_above,
                // Averages of more subjects need fewer repetitions.
                _ => seeds_above.div_ceil(4).max(2),
            };
            for index in 0..repeats {
                let key = format!("{} {n} {index} {epsilons:?}", of_case.name);
                tasks.push(Task { key, cost: n as f64, cell: (case, n, index) });
            }
        }
    }
    let (results, work): (Vec<Vec<Found>>, _) = run_tasks("bias", common, &tasks, |&(case, n, index)| {
        let case = &cases[case];
        let seed = base.of(&format!("bias {} {n} {index}", case.name));
        let holdings = case.population.holdings(n, case.placement, seed);
        let subjects = subjects(n, seed);
        let label = case.population.label();
        epsilons
            .iter()
            .map(|&epsilon| {
                let seed = seed.of(&epsilon.to_string());
                let privacy = Privacy { epsilon, delta: DELTA };
                let usual = common.release(privacy);
                let sharp = Release { noise: NoiseKind::Off, k: Some(SHARP.min(n as u64)), ..usual };
                let noiseless = sharp.run(&holdings, &subjects, seed)?.slopes_without_noise(label)?;
                let noised = usual.run(&holdings, &subjects, seed)?.fit(label)?.coefficients;
                let estimates: Vec<f64> = noised.iter().map(|one| one.value.estimate).collect();
                let shrunk: Vec<f64> = noised.iter().map(|one| one.prediction).collect();
                Ok(Found {
                    noiseless: case.excess(&noiseless),
                    noised: case.excess(&estimates),
                    shrunk: case.excess(&shrunk),
                })
            })
            .collect()
    })?;

    let mut lines = Vec::new();
    for (position, case) in cases.iter().enumerate() {
        for (e, &epsilon) in epsilons.iter().enumerate() {
            for &n in &sizes {
                let of_cell = tasks.iter().zip(&results).filter(|(task, _)| {
                    let (of_case, of_n, _) = task.cell;
                    of_case == position && of_n == n
                });
                let found = of_cell.map(|(_, result)| result[e]).collect();
                lines.push(Line { name: case.name, epsilon, n, found });
            }
        }
    }
    report(&lines, work, common)
}

/// One line of the table.
struct Line {
    name: &'static str,
    epsilon: f64,
    n: usize,
    found: Vec<Found>,
}

impl Line {
    fn values(&self, value: impl Fn(&Found) -> f64) -> Vec<f64> {
        self.found.iter().map(value).collect()
    }
}

fn report(lines: &[Line], work: Work, common: &Common) -> Result<()> {
    let mut text = String::from(
        "E[estimate]/true − 1, ± its standard error. Without noise only clipping is left; estimates are not shrunk, predictions are. The label is alone in its party unless it says otherwise.\n\n\
         | data | ε | n | repeats | without noise | as released | predictions |\n|---|---|---|---|---|---|---|\n",
    );
    for line in lines {
        let shown = |value: fn(&Found) -> f64| {
            let values = line.values(value);
            format!("{:+.1}% ± {:.1}", 100.0 * mean(&values), 100.0 * standard_error(&values))
        };
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} | {} |",
            line.name,
            line.epsilon,
            line.n,
            line.found.len(),
            shown(|found| found.noiseless),
            shown(|found| found.noised),
            shown(|found| found.shrunk),
        );
    }
    write(&common.out.join("bias.md"), &text)?;
    write(&common.out.join("bias.svg"), &figure(lines))?;
    print!("{text}");
    if let Some(path) = &common.json {
        let results: Vec<_> = lines
            .iter()
            .map(|line| {
                json!({
                    "data": line.name,
                    "epsilon": line.epsilon,
                    "n": line.n,
                    "noiseless": line.values(|found| found.noiseless),
                    "noised": line.values(|found| found.noised),
                    "predictions": line.values(|found| found.shrunk),
                })
            })
            .collect();
        write_json(path, "bias", work, &results.into())?;
    }
    Ok(())
}

/// Bias without noise against n: a panel for each ε.
fn figure(lines: &[Line]) -> String {
    let mut panels: Vec<(f64, Panel)> = Vec::new();
    for line in lines {
        let at = panels.iter().position(|(epsilon, _)| epsilon.total_cmp(&line.epsilon).is_eq());
        let at = at.unwrap_or_else(|| {
            let panel = Panel {
                title: format!("ε = {}: E[estimate]/true − 1, without noise", line.epsilon),
                x_axis: "n".to_owned(),
                x_scale: Scale::Log,
                y_scale: Scale::Linear,
                y_range: None,
                series: Vec::new(),
                joined: true,
            };
            panels.push((line.epsilon, panel));
            panels.len() - 1
        });
        let series = &mut panels[at].1.series;
        let point = (line.n as f64, mean(&line.values(|found| found.noiseless)));
        match series.iter_mut().find(|series| series.name == line.name) {
            Some(series) => series.points.push(point),
            None => series.push(Series { name: line.name.to_owned(), points: vec![point] }),
        }
    }
    grid(&[panels.into_iter().map(|(_, panel)| panel).collect()])
}
