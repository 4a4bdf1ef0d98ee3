//! How often intervals of the calibrated method hold the truth.

use std::fmt::Write as _;

use anyhow::Result;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::DELTA;
use crate::args::{Common, Coverage};
use crate::figure::{Panel, Scale, Series, grid};
use crate::methods::select;
use crate::population::{Placement, Population, PopulationMoments};
use crate::released::explained;
use crate::runner::{Task, Work, run as run_tasks, write, write_json};
use crate::seeds::Seed;
use crate::statistics::{Confidence, binomial_interval, quantile};
use crate::table::{Privacy, subjects};

const SIZES: [usize; 3] = [10_000, 100_000, 1_000_000];
const EPSILONS: [f64; 2] = [1.0, 0.3];
const LARGE: usize = 1_000_000;

/// What one repetition finds at one ε.
#[derive(Serialize, Deserialize)]
struct Found {
    /// Interval of each slope, in original units.
    intervals: Vec<[f64; 2]>,
    /// Whether there is a finding about each.
    findings: Vec<bool>,
    /// Interval of R².
    explained: [f64; 2],
    /// What R² truly is.
    truly_explained: f64,
}

impl Found {
    fn covers(&self, feature: usize, slope: f64) -> bool {
        let [low, high] = self.intervals[feature];
        low <= slope && slope <= high
    }

    fn covers_explained(&self) -> bool {
        self.explained[0] <= self.truly_explained && self.truly_explained <= self.explained[1]
    }
}

/// One line of the table.
struct Line<'a> {
    population: &'a Population,
    moments: &'a PopulationMoments,
    placement: Placement,
    n: usize,
    epsilon: f64,
    found: Vec<&'a Found>,
}

impl Line<'_> {
    /// In how many of the repetitions without a finding about it each slope is covered, and how
    /// many there are.
    fn by_feature(&self) -> Vec<(usize, usize)> {
        let of_feature = |(feature, &slope): (usize, &f64)| {
            let bare = self.found.iter().filter(|found| !found.findings[feature]);
            (bare.clone().filter(|found| found.covers(feature, slope)).count(), bare.count())
        };
        self.population.slopes.iter().enumerate().map(of_feature).collect()
    }

    /// Slopes that are covered, and all, over repetitions without a finding.
    fn total(&self) -> (usize, usize) {
        self.by_feature().iter().fold((0, 0), |(covered, all), of| (covered + of.0, all + of.1))
    }

    fn explained(&self) -> usize {
        self.found.iter().filter(|found| found.covers_explained()).count()
    }

    /// Median half-width of all intervals, in standard deviations of the label per standard
    /// deviation of the feature.
    fn half_width(&self) -> f64 {
        let half_widths = self.found.iter().flat_map(|found| {
            found
                .intervals
                .iter()
                .enumerate()
                .map(|(feature, [low, high])| self.moments.standardised(feature, (high - low) / 2.0))
        });
        quantile(&half_widths.collect::<Vec<_>>(), 0.5)
    }

    /// Coverage of all slopes together.
    fn coverage(&self) -> f64 {
        let (covered, trials) = self.total();
        covered as f64 / trials as f64
    }

    fn describe(&self, text: &mut String) {
        let by_feature = self.by_feature();
        let repeats = self.found.len();
        let share = |feature: usize| by_feature[feature].0 as f64 / by_feature[feature].1 as f64;
        let worst = (0..by_feature.len())
            .filter(|&feature| 2 * by_feature[feature].1 > repeats)
            .min_by(|&one, &other| share(one).total_cmp(&share(other)));
        let (covered, trials) = self.total();
        let with_finding = 1.0 - trials as f64 / (repeats * by_feature.len()) as f64;
        let shown = |(covered, trials): (usize, usize)| {
            if trials == 0 {
                return "–".to_owned();
            }
            let (low, high) = binomial_interval(covered, trials, Confidence::P95);
            format!("{:.3} ({low:.3} to {high:.3})", covered as f64 / trials as f64)
        };
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {repeats} | {with_finding:.2} | {} | {} | {:.3} | {} |",
            self.population.name,
            self.placement.name(),
            self.n,
            self.epsilon,
            shown((covered, trials)),
            worst.map_or("–".to_owned(), |worst| format!("x{}: {}", worst + 1, shown(by_feature[worst]))),
            self.half_width(),
            shown((self.explained(), repeats)),
        );
    }
}

pub(crate) fn run(arguments: &Coverage, common: &Common) -> Result<()> {
    let cells = &arguments.cells;
    let kinds =
        vec![Population::correlated(), Population::strong(), Population::heavy_tailed(), Population::rare()];
    let kinds = select(kinds, cells.kinds.as_deref(), |kind| kind.name.to_owned())?;
    let default_sizes = if common.quick { &SIZES[..1] } else { &SIZES[..] };
    let sizes = cells.sizes.clone().unwrap_or_else(|| default_sizes.to_vec());
    let epsilons = cells.epsilons.clone().unwrap_or_else(|| EPSILONS.to_vec());
    let seeds = common.seeds.unwrap_or(if common.quick { 10 } else { 500 });
    let seeds_above = cells.seeds_above.unwrap_or(seeds.div_ceil(5));

    let base = Seed::new(common.seed);
    let moments: Vec<PopulationMoments> = kinds.iter().map(|kind| kind.moments(base)).collect();
    let mut tasks = Vec::new();
    for (kind, population) in kinds.iter().enumerate() {
        for placement in Placement::ALL {
            for &n in &sizes {
                for index in 0..if n >= LARGE { seeds_above } else { seeds } {
                    let key = format!("{} {placement:?} {n} {index} {epsilons:?}", population.name);
                    tasks.push(Task { key, cost: n as f64, cell: (kind, placement, n, index) });
                }
            }
        }
    }
    let (results, work): (Vec<Vec<Found>>, _) =
        run_tasks("coverage", common, &tasks, |&(kind, placement, n, index)| {
            let population = &kinds[kind];
            let seed = base.of(&format!("coverage {} {n} {index}", population.name));
            let holdings = population.holdings(n, placement, seed);
            let subjects = subjects(n, seed);
            let label = population.label();
            epsilons
                .iter()
                .map(|&epsilon| {
                    let privacy = Privacy { epsilon, delta: DELTA };
                    let release = common.release(privacy);
                    let seed = seed.of(&format!("{placement:?} {epsilon}"));
                    let model = release.run(&holdings, &subjects, seed)?.fit(label)?;
                    let found = &model.coefficients;
                    let slopes: Vec<f64> = found.iter().map(|one| one.prediction).collect();
                    Ok(Found {
                        intervals: found.iter().map(|one| [one.value.low, one.value.high]).collect(),
                        findings: found.iter().map(|one| !one.findings.is_empty()).collect(),
                        explained: explained(&model)?,
                        truly_explained: moments[kind].explained_by(&slopes),
                    })
                })
                .collect()
        })?;

    let mut lines = Vec::new();
    for (kind, population) in kinds.iter().enumerate() {
        for placement in Placement::ALL {
            for &n in &sizes {
                for (e, &epsilon) in epsilons.iter().enumerate() {
                    let of_cell = tasks.iter().zip(&results).filter(|(task, _)| {
                        let (of_kind, of_placement, of_n, _) = task.cell;
                        of_kind == kind && of_placement == placement && of_n == n
                    });
                    let found = of_cell.map(|(_, result)| &result[e]).collect();
                    let moments = &moments[kind];
                    lines.push(Line { population, moments, placement, n, epsilon, found });
                }
            }
        }
    }
    report(&lines, work, common)
}

fn report(lines: &[Line<'_>], work: Work, common: &Common) -> Result<()> {
    let mut text = String::from(
        "Coverage of 95% intervals, with Wilson's 95% intervals for it, as if coefficients were independent. Half-widths are medians, in standard deviations of the label per standard deviation of the feature. Coefficients with a finding are left out of their coverage. R² is that of the fitted model in the population. Parties hold x1 and x2, x3 and x4, x5 and x6; the label is alone or with the last two.\n\n\
         | data | label | n | ε | repeats | with a finding | all coefficients | worst coefficient | half-width | R² |\n|---|---|---|---|---|---|---|---|---|---|\n",
    );
    for line in lines {
        line.describe(&mut text);
    }
    write(&common.out.join("coverage.md"), &text)?;
    write(&common.out.join("coverage.svg"), &figure(lines))?;
    print!("{text}");
    if let Some(path) = &common.json {
        let results: Vec<_> = lines
            .iter()
            .map(|line| {
                let per_seed = |found: &&Found| {
                    let slopes = line.population.slopes.iter().enumerate();
                    let covered = |&(feature, &slope): &(usize, &f64)| {
                        !found.findings[feature] && found.covers(feature, slope)
                    };
                    slopes.filter(covered).count()
                };
                json!({
                    "data": line.population.name,
                    "label": line.placement.name(),
                    "n": line.n,
                    "epsilon": line.epsilon,
                    "coefficients": line.population.slopes.len(),
                    "covered": line.found.iter().map(per_seed).collect::<Vec<_>>(),
                    "without_finding": line.total().1,
                    "covered_by_coefficient": line.by_feature(),
                    "half_width": line.half_width(),
                    "explained_covered": line.explained(),
                })
            })
            .collect();
        write_json(path, "coverage", work, &results.into())?;
    }
    Ok(())
}

/// Coverage against n: a row of panels for each ε, a panel for each placement.
fn figure(lines: &[Line<'_>]) -> String {
    let mut epsilons: Vec<f64> = Vec::new();
    for line in lines {
        if !epsilons.contains(&line.epsilon) {
            epsilons.push(line.epsilon);
        }
    }
    let panel = |epsilon: f64, placement: Placement| {
        let mut series: Vec<Series> = Vec::new();
        for line in lines
            .iter()
            .filter(|line| line.epsilon.total_cmp(&epsilon).is_eq() && line.placement == placement)
        {
            let point = (line.n as f64, line.coverage());
            match series.iter_mut().find(|series| series.name == line.population.name) {
                Some(series) => series.points.push(point),
                None => series.push(Series { name: line.population.name.to_owned(), points: vec![point] }),
            }
        }
        Panel {
            title: format!("ε = {epsilon}, label {}: coverage", placement.name()),
            x_axis: "n".to_owned(),
            x_scale: Scale::Log,
            y_scale: Scale::Linear,
            y_range: Some((0.8, 1.0)),
            series,
            joined: true,
        }
    };
    let rows: Vec<Vec<Panel>> = epsilons
        .iter()
        .map(|&epsilon| Placement::ALL.iter().map(|&placement| panel(epsilon, placement)).collect())
        .collect();
    grid(&rows)
}
