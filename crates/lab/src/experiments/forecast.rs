//! Whether the standard errors of releases lie in the range that `potluck plan` forecasts.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anyhow::{Context, Result};
use potluck_core::planning::forecast::{LARGEST_EFFECT, Range, Released};
use potluck_release::Study;
use potluck_release::study::Unsealed;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::DELTA;
use super::map::Reading;
use crate::args::{Common, Forecast};
use crate::family::{Drawn, Table, Temper};
use crate::inferred::Inferred;
use crate::methods::select;
use crate::runner::{Task, run as run_tasks, write, write_json};
use crate::seeds::Seed;
use crate::statistics::quantile;
use crate::table::{Privacy, subjects};

const EPSILONS: [f64; 3] = [3.0, 1.0, 0.3];
/// Bounds ten times as wide as the values.
const LOOSE: f64 = 10.0;
/// Half-widths of 95% intervals are so many standard errors.
const Z: f64 = 1.959_964;
/// From this variance inflation on, least squares does not know a coefficient either.
const COLLINEAR: f64 = 1e4;
/// The tables that the constants of the forecast were chosen on.
const CHOSEN_ON: [&str; 3] = ["bike_hour", "diamonds", "randhie"];

/// Where a table comes from.
#[derive(Clone, Copy)]
enum Source {
    Drawn { temper: Temper, population: usize, rows: usize },
    Read { table: usize, loose: bool, deal: usize },
}

impl Source {
    /// What a line of the results is about.
    fn line(self, tables: &[Inferred]) -> String {
        match self {
            Self::Drawn { temper, rows, .. } => format!("populations, {} | {rows}", temper.name()),
            Self::Read { table, loose, .. } => {
                let Inferred { name, .. } = &tables[table];
                let seen = if CHOSEN_ON.contains(&name.as_str()) { " (chosen on)" } else { "" };
                format!("{name}{seen}, bounds {} | ", if loose { "10× loose" } else { "as values" })
            }
        }
    }

    fn is_held_out(self, tables: &[Inferred]) -> bool {
        match self {
            Self::Drawn { .. } => true,
            Self::Read { table, .. } => !CHOSEN_ON.contains(&tables[table].name.as_str()),
        }
    }
}

/// What releases give for one coefficient, in standard deviations.
#[derive(Serialize, Deserialize)]
struct Realised {
    /// Encoded column.
    column: usize,
    /// Median half-width of its intervals, as standard errors.
    standard_error: f64,
    /// Root of the mean squared distance from the truth.
    error: f64,
}

#[derive(Serialize, Deserialize)]
struct Found {
    /// All that is public.
    draft: Value,
    label: usize,
    coefficients: Vec<Realised>,
}

impl Found {
    /// Each coefficient with what was forecast of it.
    fn with_forecasts(&self) -> Result<Vec<(&Realised, Range<f64>)>> {
        let study = Unsealed::from_json(&self.draft, None)?.preview()?;
        let released = study.released()?;
        let kinds = kinds(&study, &released).context("every column is of a kind")?;
        let forecast = |column: usize| released.standard_error(kinds[column], Some(kinds[self.label]));
        Ok(self.coefficients.iter().map(|one| (one, forecast(one.column))).collect())
    }
}

/// The kind of each encoded column.
fn kinds(study: &Study, released: &Released) -> Option<Vec<usize>> {
    let mut kinds = Vec::new();
    for (at, party) in study.definition().parties().iter().enumerate() {
        for column in party.columns() {
            let kind = released.position(at, &column.encoder())?;
            kinds.extend(vec![kind; column.encoded_names().len()]);
        }
    }
    Some(kinds)
}

/// How many lie within the range, below it and above it.
#[derive(Default)]
struct Places {
    within: usize,
    below: usize,
    above: usize,
}

impl Places {
    fn add(&mut self, value: f64, range: Range<f64>) {
        // Beyond the largest effect that can be, nothing is resolved, and no number says more.
        let capped = |value: f64| value.min(LARGEST_EFFECT);
        if capped(value) < capped(range.good) {
            self.below += 1;
        } else if capped(value) > capped(range.hard) {
            self.above += 1;
        } else {
            self.within += 1;
        }
    }

    fn describe(&self) -> String {
        let all = (self.within + self.below + self.above).max(1) as f64;
        let share = |part: usize| format!("{:.3}", part as f64 / all);
        format!("{} | {} | {}", share(self.within), share(self.below), share(self.above))
    }
}

/// Some of the coefficients.
#[derive(Default)]
struct Part {
    standard_errors: Places,
    errors: Places,
    /// Realised over typical.
    ratios: Vec<f64>,
    /// Hard over good, both capped.
    widths: Vec<f64>,
    hopeless: usize,
}

impl Part {
    fn add(&mut self, realised: &Realised, range: Range<f64>) {
        self.standard_errors.add(realised.standard_error, range);
        self.errors.add(realised.error, range);
        self.ratios.push(realised.standard_error / range.typical);
        self.widths.push(range.hard.min(LARGEST_EFFECT) / range.good.min(LARGEST_EFFECT));
        self.hopeless += usize::from(range.hard >= LARGEST_EFFECT);
    }

    fn describe(&self) -> String {
        format!(
            "{} | {} | {} | {:.2} | {:.1} | {:.2} |",
            self.ratios.len(),
            self.standard_errors.describe(),
            self.errors.describe(),
            quantile(&self.ratios, 0.5),
            quantile(&self.widths, 0.5),
            self.hopeless as f64 / self.ratios.len().max(1) as f64,
        )
    }
}

/// The coefficients by line of the table, and in all.
#[derive(Default)]
struct Parts {
    lines: BTreeMap<String, Part>,
    all: Part,
    held_out: Part,
}

impl Parts {
    fn of(tasks: &[Task<(Source, f64)>], results: &[Found], tables: &[Inferred]) -> Result<Self> {
        let mut parts = Self::default();
        for (task, found) in tasks.iter().zip(results) {
            let (source, epsilon) = task.cell;
            let line = parts.lines.entry(format!("{} | {epsilon}", source.line(tables))).or_default();
            for (realised, range) in found.with_forecasts()? {
                line.add(realised, range);
                parts.all.add(realised, range);
                if source.is_held_out(tables) {
                    parts.held_out.add(realised, range);
                }
            }
        }
        Ok(parts)
    }
}

pub(crate) fn run(arguments: &Forecast, common: &Common) -> Result<()> {
    let tables = match &arguments.data_dir {
        None => Vec::new(),
        Some(folder) => {
            select(Inferred::of_folder(folder)?, arguments.tables.as_deref(), |table| table.name.clone())?
        }
    };
    let draws = arguments.draws.unwrap_or(if common.quick { 2 } else { 12 });
    let repeats = common.seeds.unwrap_or(if common.quick { 3 } else { 10 });
    let epsilons = arguments.epsilons.clone().unwrap_or_else(|| EPSILONS.to_vec());
    let sizes = arguments
        .sizes
        .clone()
        .unwrap_or_else(|| if common.quick { vec![3000] } else { vec![10_000, 100_000] });
    let most = if common.quick { arguments.rows.min(3000) } else { arguments.rows };
    let base = Seed::new(common.seed);
    let mut tasks = Vec::new();
    for draw in 0..draws {
        let drawn = Temper::ALL.into_iter().flat_map(|temper| {
            let of = move |&rows| Source::Drawn { temper, population: draw, rows };
            sizes.iter().map(of).collect::<Vec<_>>()
        });
        let read = (0..tables.len())
            .flat_map(|table| [false, true].map(|loose| Source::Read { table, loose, deal: draw }));
        for source in drawn.chain(read) {
            for &epsilon in &epsilons {
                let (name, rows) = match source {
                    Source::Drawn { temper, population, rows } => {
                        (format!("{} {population} {rows}", temper.name()), rows)
                    }
                    Source::Read { table, loose, deal } => (
                        format!("{} {loose} {deal} {most}", tables[table].name),
                        tables[table].rows().min(most),
                    ),
                };
                let key = format!("{name} {epsilon} {repeats}");
                tasks.push(Task { key, cost: rows as f64 + 1e4, cell: (source, epsilon) });
            }
        }
    }
    let (results, work): (Vec<Found>, _) = run_tasks("forecast", common, &tasks, |&(source, epsilon)| {
        let (table, seed) = match source {
            Source::Drawn { temper, population, rows } => {
                let seed = base.of(&format!("forecast {} {population}", temper.name()));
                (Drawn::new(temper, seed).table(rows, seed.of(&rows.to_string())), seed)
            }
            Source::Read { table, loose, deal } => {
                let table = &tables[table];
                let seed = base.of(&format!("forecast {} {deal}", table.name));
                let dealt = table.dealt(most, seed).loosened(if loose { LOOSE } else { 1.0 });
                (dealt.with_truth(), seed)
            }
        };
        let privacy = Privacy { epsilon, delta: DELTA };
        let release = common.release(privacy);
        let mut readings = Vec::with_capacity(repeats);
        for repeat in 0..repeats {
            let seed = seed.of(&format!("{epsilon} {repeat}"));
            let (released, products) =
                release.run_with_products(&table.holdings, &subjects(table.holdings.rows(), seed), seed)?;
            readings.push(released.read(&table, &products)?.coefficients);
        }
        let known = |at: &usize| table.inflation(*at) < COLLINEAR;
        Ok(Found {
            draft: table.holdings.draft(common.form(), table.holdings.rows(), privacy, None),
            label: table.label,
            coefficients: (0..table.truth.len())
                .filter(known)
                .map(|at| realised(&table, &readings, at))
                .collect(),
        })
    })?;

    let Parts { lines, all, held_out } = Parts::of(&tasks, &results, &tables)?;
    let mut text = format!(
        "Standard errors of coefficients in {repeats} releases, and the range from the good case to the hard one that the planner forecasts from public facts: {draws} populations of each temper, {draws} labels and dealings of each table to 2 to 6 parties, of at most {most} rows (seed {}). \"intervals\": the median half-width of the 95% intervals over 1.96; \"errors\": the root of the mean squared distance from least squares on the same rows (among cut values where the fit says that a coefficient is about these). What exceeds one standard deviation of the label for one of the feature counts as one, since no effect could be told from 0. Ratio: intervals over the typical case, median; width: hard over good case, median; hard > 1: share of coefficients whose hard case says that nothing can be told.\n\n\
         | data | n | ε | coefficients | intervals within | below | above | errors within | below | above | ratio | width | hard > 1 |\n|---|---|---|---|---|---|---|---|---|---|---|---|---|\n",
        common.seed
    );
    for (name, part) in &lines {
        let _ = writeln!(text, "| {name} | {}", part.describe());
    }
    let _ = writeln!(text, "| all | | | {}", all.describe());
    let _ =
        writeln!(text, "| all but the tables that constants were chosen on | | | {}", held_out.describe());
    write(&common.out.join("forecast.md"), &text)?;
    print!("{text}");
    if let Some(path) = &common.json {
        let values: Vec<Value> = tasks
            .iter()
            .zip(&results)
            .map(|(task, found)| json!({ "cell": task.key, "found": found }))
            .collect();
        write_json(path, "forecast", work, &values.into())?;
    }
    Ok(())
}

fn realised(table: &Table, readings: &[Vec<Reading>], at: usize) -> Realised {
    let truth = &table.truth[at];
    let of = |part: &dyn Fn(&Reading) -> f64| -> Vec<f64> {
        readings.iter().map(|reading| part(&reading[at])).collect()
    };
    let misses = of(&|one| (one.estimate - one.cut.unwrap_or(truth.slope * truth.unit)).powi(2));
    Realised {
        column: truth.column,
        standard_error: quantile(&of(&|one| (one.high - one.low) / (2.0 * Z)), 0.5),
        error: (misses.iter().sum::<f64>() / misses.len() as f64).sqrt(),
    }
}
