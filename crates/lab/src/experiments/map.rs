//! A map of where intervals hold: populations drawn at random from a wide family, unkind ones among
//! them.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anyhow::Result;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::DELTA;
use crate::args::{Common, Map};
use crate::family::{Drawn, Temper, Truth};
use crate::runner::{Task, run as run_tasks, write, write_json};
use crate::seeds::Seed;
use crate::statistics::{quantile, true_share_from};
use crate::table::{Privacy, subjects};

/// From this many subjects on there are fewer repetitions.
const LARGE: usize = 1_000_000;

/// What one release says of one coefficient, in standard deviations.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Reading {
    pub(crate) low: f64,
    pub(crate) estimate: f64,
    pub(crate) high: f64,
    /// If it is about cut values: the truth among them.
    pub(crate) cut: Option<f64>,
    /// The kind of the first finding, if there is one.
    pub(crate) finding: Option<String>,
    /// Numbers that findings are made of, for whoever tunes them.
    pub(crate) signs: Vec<f64>,
}

/// What one release says.
#[derive(Serialize, Deserialize)]
pub(crate) struct Readings {
    pub(crate) coefficients: Vec<Reading>,
    /// R²: lower end, truth, upper end.
    pub(crate) explained: [f64; 3],
    /// Whether there is a finding about R².
    pub(crate) share_finding: bool,
}

#[derive(Serialize, Deserialize)]
struct Found {
    description: String,
    truth: Vec<Truth>,
    /// By repetition.
    readings: Vec<Readings>,
}

/// Coverage of the cells of some part of the map.
#[derive(Default)]
struct Part {
    /// Of each cell, readings without a finding: covered, all.
    cells: Vec<(usize, usize)>,
    all_cells: usize,
    /// Readings without a finding: covered, all.
    bare: (usize, usize),
    readings: usize,
    with_finding: usize,
    /// Readings about cut values: covered, all.
    cut: (usize, usize),
    null: (usize, usize),
    half_widths: Vec<f64>,
    /// Of R², without a finding about it: covered, all.
    explained: (usize, usize),
}

impl Part {
    fn add_explained(&mut self, readings: &[Readings]) {
        for reading in readings.iter().filter(|reading| !reading.share_finding) {
            let [low, truth, high] = reading.explained;
            self.explained.0 += usize::from(low <= truth && truth <= high);
            self.explained.1 += 1;
        }
    }

    fn add(&mut self, truth: &Truth, readings: &[&Reading]) {
        let target = truth.slope * truth.unit;
        let bare: Vec<&&Reading> = readings.iter().filter(|reading| reading.finding.is_none()).collect();
        let covered = bare.iter().filter(|reading| reading.low <= target && target <= reading.high).count();
        // A cell of a few readings without a finding says nothing of its own.
        if 2 * bare.len() >= readings.len() {
            self.cells.push((covered, bare.len()));
        }
        self.all_cells += 1;
        self.bare.0 += covered;
        self.bare.1 += bare.len();
        for (reading, cut) in readings.iter().filter_map(|reading| Some((reading, reading.cut?))) {
            self.cut.0 += usize::from(reading.low <= cut && cut <= reading.high);
            self.cut.1 += 1;
        }
        self.readings += readings.len();
        self.with_finding += readings.len() - bare.len();
        if truth.slope.abs() < 2.0 * truth.error {
            let declared = bare.iter().filter(|reading| reading.low > 0.0 || reading.high < 0.0).count();
            self.null.0 += declared;
            self.null.1 += bare.len();
        }
        self.half_widths.extend(bare.iter().map(|reading| (reading.high - reading.low) / 2.0));
    }

    fn shares(&self) -> Vec<f64> {
        let enough = self.cells.iter().filter(|(_, all)| *all > 0);
        enough.map(|(covered, all)| *covered as f64 / *all as f64).collect()
    }

    fn describe(&self) -> String {
        let shares = self.shares();
        let of = |part: usize, all: usize| part as f64 / all.max(1) as f64;
        let held = shares.iter().filter(|&&share| share >= 0.9).count();
        if shares.is_empty() {
            return format!(
                "| {} | {:.2} | {:.3} | | | | | | | | | |",
                self.all_cells,
                of(self.with_finding, self.readings),
                of(self.cut.0, self.cut.1)
            );
        }
        format!(
            "| {} | {:.2} | {:.3} | {:.3} | {:.3} | {:.3} | {:.2} | {:.2} | {:.2} | {:.3} | {:.3} | {} |",
            self.all_cells,
            of(self.with_finding, self.readings),
            of(self.cut.0, self.cut.1),
            of(self.bare.0, self.bare.1),
            of(held, shares.len()),
            true_share_from(0.9, &self.cells),
            quantile(&shares, 0.5),
            quantile(&shares, 0.05),
            quantile(&shares, 0.0),
            of(self.null.0, self.null.1),
            quantile(&self.half_widths, 0.5),
            if self.explained.1 > 0 {
                format!("{:.3}", of(self.explained.0, self.explained.1))
            } else {
                String::new()
            },
        )
    }
}

/// Readings that share a finding: how often they hold the truth, and the one among cut values.
#[derive(Default)]
struct Hits {
    readings: usize,
    raw: usize,
    cut: (usize, usize),
}

impl Hits {
    fn add(&mut self, truth: &Truth, reading: &Reading) {
        let holds = |value: f64| reading.low <= value && value <= reading.high;
        self.readings += 1;
        self.raw += usize::from(holds(truth.slope * truth.unit));
        if let Some(cut) = reading.cut {
            self.cut.0 += usize::from(holds(cut));
            self.cut.1 += 1;
        }
    }

    fn describe(&self, all: usize) -> String {
        let share = |part: usize, all: usize| format!("{:.3}", part as f64 / all as f64);
        let cut = if self.cut.1 > 0 { share(self.cut.0, self.cut.1) } else { String::new() };
        format!("{} | {} | {cut} |", share(self.readings, all), share(self.raw, self.readings))
    }
}

/// Coverage by finding: what each of them tells.
fn hits(text: &mut String, found: &[(&str, &Found)]) {
    let mut by_kind: BTreeMap<(&str, String), Hits> = BTreeMap::new();
    let mut all: BTreeMap<&str, usize> = BTreeMap::new();
    for (cell, found) in found {
        for readings in &found.readings {
            for (truth, reading) in found.truth.iter().zip(&readings.coefficients) {
                let kind = reading.finding.clone().unwrap_or_else(|| "none".to_owned());
                by_kind.entry((cell, kind)).or_default().add(truth, reading);
                *all.entry(cell).or_default() += 1;
            }
        }
    }
    text.push_str("\nBy the first finding of a reading: its share, and how often it holds the truth of the values as they are, or of cut ones.\n\n| populations | n | ε | finding | share | as they are | cut |\n|---|---|---|---|---|---|---|\n");
    for ((cell, kind), hits) in &by_kind {
        let _ = writeln!(text, "| {cell} | {kind} | {}", hits.describe(all[cell]));
    }
}

const HEAD: &str = "cells | with a finding | cut values | coverage | cells ≥ 0.90 | without chance | median | 5% | worst | null declared | half-width | R² |\n|---|---|---|---|---|---|---|---|---|---|---|---|---|\n";

fn cell_name(&(temper, _, n, epsilon): &(Temper, usize, usize, f64)) -> String {
    format!("{} | {n} | {epsilon}", temper.name())
}

pub(crate) fn run(arguments: &Map, common: &Common) -> Result<()> {
    let populations = arguments.populations.unwrap_or(if common.quick { 2 } else { 24 });
    let repeats = common.seeds.unwrap_or(if common.quick { 3 } else { 40 });
    let repeats_above = arguments.seeds_above.unwrap_or(repeats.div_ceil(2));
    let sizes = arguments.sizes.clone().unwrap_or_else(|| vec![if common.quick { 3_000 } else { 100_000 }]);
    let epsilons = arguments.epsilons.clone().unwrap_or_else(|| vec![1.0]);
    let base = Seed::new(common.seed);
    let mut tasks = Vec::new();
    for temper in Temper::ALL {
        for population in 0..populations {
            for &n in &sizes {
                let repeats = if n >= LARGE { repeats_above } else { repeats };
                for &epsilon in &epsilons {
                    let key = format!("{} {population} {n} {epsilon} {repeats}", temper.name());
                    tasks.push(Task { key, cost: n as f64 + 2e4, cell: (temper, population, n, epsilon) });
                }
            }
        }
    }
    let (results, work): (Vec<Found>, _) =
        run_tasks("map", common, &tasks, |&(temper, population, n, epsilon)| {
            let seed = base.of(&format!("map {} {population}", temper.name()));
            let drawn = Drawn::new(temper, seed);
            let table = drawn.table(n, seed.of(&format!("{n}")));
            let privacy = Privacy { epsilon, delta: DELTA };
            let release = common.release(privacy);
            let repeats = if n >= LARGE { repeats_above } else { repeats };
            let mut readings = Vec::with_capacity(repeats);
            for repeat in 0..repeats {
                let seed = seed.of(&format!("{n} {epsilon} {repeat}"));
                let (released, products) =
                    release.run_with_products(&table.holdings, &subjects(n, seed), seed)?;
                readings.push(released.read(&table, &products)?);
            }
            Ok(Found { description: drawn.describe(), truth: table.truth, readings })
        })?;

    let mut text = String::from(
        "Coverage of 95% intervals on populations drawn at random (seed SEED). A cell is a coefficient of a population; null: least squares on the same rows does not find it either (|t| < 2), declared: the interval leaves 0 out. \"cut values\" is the coverage of readings about cut values of the truth among these; what follows it is about readings without a finding, cells having at least half of their readings without one: the share of cells that held at least 0.90 of the truths, and that share when the chance in so many repetitions is taken out (the distribution of coverages under which what was seen is the likeliest); R² about fits without a finding about R².\n\n",
    )
    .replace("SEED", &common.seed.to_string());
    let mut by_cell: BTreeMap<String, Part> = BTreeMap::new();
    let mut by_shape: BTreeMap<String, Part> = BTreeMap::new();
    let mut whole = Part::default();
    for (task, found) in tasks.iter().zip(&results) {
        let temper = task.cell.0;
        let cell = by_cell.entry(cell_name(&task.cell)).or_default();
        cell.add_explained(&found.readings);
        whole.add_explained(&found.readings);
        for (at, truth) in found.truth.iter().enumerate() {
            let of: Vec<&Reading> = found.readings.iter().map(|reading| &reading.coefficients[at]).collect();
            cell.add(truth, &of);
            whole.add(truth, &of);
            let place = if truth.own { "beside the label" } else { "elsewhere" };
            let shape = truth.shape.split(' ').next_back().unwrap_or_default();
            let shape =
                if shape == "levels" { shape } else { truth.shape.split(' ').next().unwrap_or_default() };
            by_shape.entry(format!("{} | {shape} | {place}", temper.name())).or_default().add(truth, &of);
        }
    }
    let _ = write!(text, "| populations | n | ε | {}", HEAD.replace("|---|\n", "|---|---|---|---|\n"));
    for (name, part) in &by_cell {
        let _ = writeln!(text, "| {name} {}", part.describe());
    }
    let _ = writeln!(text, "| all | | {}", whole.describe());
    let _ = write!(
        text,
        "\n| populations | feature | where | {}",
        HEAD.replace("|---|\n", "|---|---|---|---|\n")
    );
    for (name, part) in &by_shape {
        let _ = writeln!(text, "| {name} {}", part.describe());
    }
    let names: Vec<String> = tasks.iter().map(|task| cell_name(&task.cell)).collect();
    let named: Vec<(&str, &Found)> = names.iter().map(String::as_str).zip(&results).collect();
    hits(&mut text, &named);
    write(&common.out.join("map.md"), &text)?;
    print!("{text}");
    if let Some(path) = &common.json {
        let results: Vec<_> = tasks
            .iter()
            .zip(&results)
            .map(|(task, found)| {
                let (temper, population, n, epsilon) = task.cell;
                json!({"temper": temper.name(), "population": population, "n": n, "epsilon": epsilon,
                       "description": found.description, "truth": found.truth, "readings": found.readings})
            })
            .collect();
        write_json(path, "map", work, &results.into())?;
    }
    Ok(())
}
