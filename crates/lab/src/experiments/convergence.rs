//! P(‖ŵ−w*‖ > β) and E‖ŵ−w*‖ against n: the paper's figure "convergence".

use std::fmt::Write as _;

use anyhow::Result;
use potluck_core::learn::Ridge;
use serde::Deserialize;
use serde_json::json;

use super::{DELTA, SYNTHETIC_RIDGE};
use crate::args::{Common, Convergence};
use crate::figure::{Panel, Scale, Series, grid};
use crate::methods::{Method, largest_bernoulli, registry, select};
use crate::runner::{Task, Work, earlier_results, run as run_tasks, write, write_json};
use crate::seeds::Seed;
use crate::statistics::{Confidence, binomial_interval, mean, standard_error};
use crate::synthetic::{distance, table};
use crate::table::{Cell, Privacy};

const SIZES: [usize; 6] = [10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000];
const EPSILONS: [f64; 3] = [1.0, 0.3, 0.1];
const BETAS: [f64; 3] = [0.5, 0.2, 0.1];
/// The method that the paper's figure shows as RMGM.
const PUBLISHED_METHOD: &str = "RMGM k=10√n/σ";
/// How well a value can be read off the paper's figure.
const READING_ERROR: f64 = 0.03;

/// Values of RMGM read off the paper's figure: ε, β, then P(‖ŵ−w*‖ > β) for each n.
const PUBLISHED: [(f64, f64, [f64; 6]); 6] = [
    (1.0, 0.1, [1.0, 1.0, 1.0, 0.95, 0.68, 0.07]),
    (1.0, 0.2, [0.88, 0.65, 0.28, 0.02, 0.0, 0.0]),
    (0.3, 0.2, [1.0, 0.98, 0.91, 0.70, 0.30, 0.03]),
    (0.3, 0.5, [0.36, 0.05, 0.0, 0.0, 0.0, 0.0]),
    (0.1, 0.5, [0.97, 0.79, 0.30, 0.03, 0.0, 0.0]),
    (0.1, 0.2, [1.0, 1.0, 0.99, 0.97, 0.88, 0.66]),
];

/// Distances of one method at one n and ε, one a seed.
#[derive(Deserialize)]
struct Outcome {
    n: usize,
    epsilon: f64,
    method: String,
    distances: Vec<f64>,
    /// The earlier run that it comes from; none if this one.
    #[serde(default)]
    from: Option<String>,
}

impl Outcome {
    fn exceeding(&self, beta: f64) -> usize {
        self.distances.iter().filter(|&&distance| distance > beta).count()
    }

    fn probability(&self, beta: f64) -> f64 {
        self.exceeding(beta) as f64 / self.distances.len() as f64
    }
}

struct Setup {
    sizes: Vec<usize>,
    epsilons: Vec<f64>,
    seeds: usize,
    seeds_above: usize,
}

impl Setup {
    fn new(arguments: &Convergence, common: &Common) -> Self {
        let (sizes, epsilons, default) = if common.quick {
            (vec![10_000, 1_000_000], vec![1.0], 6)
        } else {
            (SIZES.to_vec(), EPSILONS.to_vec(), 1000)
        };
        let seeds = common.seeds.unwrap_or(default);
        let sizes = arguments.sizes.clone().unwrap_or(sizes);
        Self { sizes, epsilons, seeds, seeds_above: arguments.seeds_above.unwrap_or(seeds) }
    }

    fn covers(&self, outcome: &Outcome) -> bool {
        let same = |epsilon: &f64| (epsilon - outcome.epsilon).abs() < 1e-12;
        self.sizes.contains(&outcome.n) && self.epsilons.iter().any(same)
    }

    fn seeds_at(&self, n: usize) -> usize {
        if n > 300_000 { self.seeds_above } else { self.seeds }
    }
}

pub(crate) fn run(arguments: &Convergence, common: &Common) -> Result<()> {
    let setup = Setup::new(arguments, common);
    let selection = &arguments.selection;
    let methods = select(registry(), selection.methods.as_deref(), |method| method.name())?;
    let names: Vec<String> = methods.iter().map(|method| method.name()).collect();
    let privacies: Vec<Privacy> =
        setup.epsilons.iter().map(|&epsilon| Privacy { epsilon, delta: DELTA }).collect();
    let mut tasks = Vec::new();
    for &n in &setup.sizes {
        let rows = largest_bernoulli(&methods, n, &privacies)?;
        for index in 0..setup.seeds_at(n) {
            let key = format!("n={n} seed={index} epsilons={:?} methods={names:?}", setup.epsilons);
            tasks.push(Task { key, cost: n as f64 * (rows as f64 + 300.0), cell: (n, index, rows) });
        }
    }
    let base = Seed::new(common.seed);
    let ridge = Ridge::new(SYNTHETIC_RIDGE)?;
    // For each task: distances by ε, then by method.
    let (results, work): (Vec<Vec<Vec<f64>>>, _) =
        run_tasks("convergence", common, &tasks, |&(n, index, rows)| {
            let seed = base.of(&format!("convergence {n} {index}"));
            let (table, weights) = table(n, seed);
            let cell = Cell::new(&table, seed, common, rows);
            privacies
                .iter()
                .map(|&privacy| {
                    let fit = |method: &dyn Method| -> Result<f64> {
                        Ok(distance(&method.fit(&cell, privacy, ridge)?.weights, &weights))
                    };
                    methods.iter().map(|method| fit(method.as_ref())).collect()
                })
                .collect()
        })?;

    let (mut outcomes, source): (Vec<Outcome>, _) = earlier_results(selection.earlier.as_deref())?;
    outcomes.retain(|outcome| setup.covers(outcome) && !names.contains(&outcome.method));
    for outcome in &mut outcomes {
        outcome.from.get_or_insert_with(|| source.clone());
    }
    for &n in &setup.sizes {
        for (e, &epsilon) in setup.epsilons.iter().enumerate() {
            for (m, method) in methods.iter().enumerate() {
                let of_size = tasks.iter().zip(&results).filter(|(task, _)| task.cell.0 == n);
                let distances = of_size.map(|(_, result)| result[e][m]).collect();
                outcomes.push(Outcome { n, epsilon, method: method.name(), distances, from: None });
            }
        }
    }
    report(&setup, &outcomes, work, common)
}

fn report(setup: &Setup, outcomes: &[Outcome], work: Work, common: &Common) -> Result<()> {
    let mut csv =
        "n,epsilon,method,seeds,p_above_0.5,p_above_0.2,p_above_0.1,mean,standard_error\n".to_owned();
    for outcome in outcomes {
        let probabilities: Vec<String> =
            BETAS.iter().map(|&beta| format!("{:.4}", outcome.probability(beta))).collect();
        writeln!(
            csv,
            "{},{},{},{},{},{:.6},{:.6}",
            outcome.n,
            outcome.epsilon,
            outcome.method,
            outcome.distances.len(),
            probabilities.join(","),
            mean(&outcome.distances),
            standard_error(&outcome.distances),
        )?;
    }
    write(&common.out.join("convergence.csv"), &csv)?;
    write(&common.out.join("convergence.svg"), &figure(setup, outcomes))?;
    let text = format!("{}\n{}", compare(outcomes), means(setup, outcomes));
    write(&common.out.join("convergence.md"), &text)?;
    print!("{text}");
    if let Some(path) = &common.json {
        let results: Vec<_> = outcomes
            .iter()
            .map(|outcome| {
                json!({
                    "n": outcome.n,
                    "epsilon": outcome.epsilon,
                    "method": outcome.method,
                    "distances": outcome.distances,
                    "from": outcome.from,
                })
            })
            .collect();
        write_json(path, "convergence", work, &results.into())?;
    }
    Ok(())
}

/// E‖ŵ−w*‖ of every method.
fn means(setup: &Setup, outcomes: &[Outcome]) -> String {
    let mut methods: Vec<&str> = Vec::new();
    for outcome in outcomes {
        if !methods.contains(&outcome.method.as_str()) {
            methods.push(&outcome.method);
        }
    }
    let sizes: Vec<String> = setup.sizes.iter().map(|n| format!(" n = {n} |")).collect();
    let mut text =
        format!("E‖ŵ−w*‖:\n\n| ε | method |{}\n|---|---|{}\n", sizes.concat(), "---|".repeat(sizes.len()));
    for &epsilon in &setup.epsilons {
        for method in &methods {
            let cell = |&n: &usize| {
                let found = outcomes.iter().find(|outcome| {
                    outcome.n == n && (outcome.epsilon - epsilon).abs() < 1e-12 && outcome.method == *method
                });
                found.map_or(" – |".to_owned(), |outcome| format!(" {:.5} |", mean(&outcome.distances)))
            };
            let cells: Vec<String> = setup.sizes.iter().map(cell).collect();
            let _ = writeln!(text, "| {epsilon} | {method} |{}", cells.concat());
        }
    }
    text
}

/// Our values beside those of the paper's figure.
fn compare(outcomes: &[Outcome]) -> String {
    let mut text = String::from(
        "P(‖ŵ−w*‖ > β) of RMGM (k = 10√n/σ):\n\n| ε | β | n | seeds | published | ours | 99% interval | agrees |\n|---|---|---|---|---|---|---|---|\n",
    );
    let mut disagreements = 0;
    for (epsilon, beta, values) in PUBLISHED {
        for (&n, published) in SIZES.iter().zip(values) {
            let found = outcomes.iter().find(|outcome| {
                outcome.n == n
                    && (outcome.epsilon - epsilon).abs() < 1e-12
                    && outcome.method == PUBLISHED_METHOD
            });
            let Some(outcome) = found else { continue };
            let (low, high) =
                binomial_interval(outcome.exceeding(beta), outcome.distances.len(), Confidence::P99);
            let agrees = published >= low - READING_ERROR && published <= high + READING_ERROR;
            disagreements += usize::from(!agrees);
            let _ = writeln!(
                text,
                "| {epsilon} | {beta} | {n} | {} | {published} | {:.3} | {low:.3} to {high:.3} | {} |",
                outcome.distances.len(),
                outcome.probability(beta),
                if agrees { "yes" } else { "**no**" },
            );
        }
    }
    let _ = writeln!(
        text,
        "\n{disagreements} published values of RMGM (k = 10√n/σ) lie outside our 99% interval widened by the reading error of {READING_ERROR}."
    );
    text
}

fn figure(setup: &Setup, outcomes: &[Outcome]) -> String {
    let rows: Vec<Vec<Panel>> = setup
        .epsilons
        .iter()
        .map(|&epsilon| {
            let of_epsilon: Vec<&Outcome> =
                outcomes.iter().filter(|outcome| (outcome.epsilon - epsilon).abs() < 1e-12).collect();
            let series = |value: &dyn Fn(&Outcome) -> f64| {
                let mut series: Vec<Series> = Vec::new();
                for outcome in &of_epsilon {
                    let point = (outcome.n as f64, value(outcome));
                    match series.iter_mut().find(|series| series.name == outcome.method) {
                        Some(series) => series.points.push(point),
                        None => series.push(Series { name: outcome.method.clone(), points: vec![point] }),
                    }
                }
                series
            };
            let mut panels: Vec<Panel> = BETAS
                .iter()
                .map(|&beta| Panel {
                    title: format!("ε = {epsilon}: P(‖ŵ−w*‖ > {beta})"),
                    x_axis: "n".to_owned(),
                    x_scale: Scale::Log,
                    y_scale: Scale::Linear,
                    y_range: Some((0.0, 1.0)),
                    series: series(&|outcome| outcome.probability(beta)),
                    joined: true,
                })
                .collect();
            panels.push(Panel {
                title: format!("ε = {epsilon}: E‖ŵ−w*‖"),
                x_axis: "n".to_owned(),
                x_scale: Scale::Log,
                y_scale: Scale::Log,
                y_range: None,
                series: series(&|outcome| mean(&outcome.distances)),
                joined: true,
            });
            panels
        })
        .collect();
    grid(&rows)
}
