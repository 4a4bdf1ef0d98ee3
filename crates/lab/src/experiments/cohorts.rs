//! Parties that hold different people, and missing values: what a fit still says.

use std::fmt::Write as _;

use anyhow::Result;
use potluck_release::Model;
use potluck_release::findings::FindingKind;
use potluck_release::study::Format;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::DELTA;
use crate::args::{Cohorts, Common};
use crate::cohort::Cohort;
use crate::holdings::Form;
use crate::methods::select;
use crate::population::{Placement, Population, PopulationMoments};
use crate::released::{Release, explained};
use crate::runner::{Task, run as run_tasks, write, write_json};
use crate::seeds::Seed;
use crate::statistics::{mean, quantile, standard_error};
use crate::table::{Privacy, subjects};

const SIZES: [usize; 1] = [100_000];
const EPSILONS: [f64; 2] = [1.0, 0.3];
const LARGE: usize = 1_000_000;
const FORMATS: [Format; 2] = [Format::Two, Format::One];

/// What one release's fit says, in standard deviations.
#[derive(Serialize, Deserialize)]
struct Found {
    /// Distance of the weights to predict with from the truth.
    error: f64,
    /// b·β/β·β of what is read.
    kept: f64,
    /// Whether the interval of each coefficient holds the truth, for those whose intervals claim
    /// to.
    held: Vec<Option<bool>>,
    half_widths: Vec<f64>,
    explained_held: bool,
    /// Whether there is a finding about people or missing values.
    loud: bool,
}

impl Found {
    fn of(model: &Model, population: &Population, moments: &PopulationMoments) -> Result<Self> {
        let (mut error, mut along, mut length) = (0.0, 0.0, 0.0);
        let (mut held, mut half_widths) = (Vec::new(), Vec::new());
        let mut loud = false;
        for (at, (one, &slope)) in model.coefficients.iter().zip(&population.slopes).enumerate() {
            let standardised = |slope| moments.standardised(at, slope);
            let truth = standardised(slope);
            error += (standardised(one.prediction) - truth).powi(2);
            along += standardised(one.value.estimate) * truth;
            length += truth * truth;
            let kinds = || one.findings.iter().map(|finding| finding.kind);
            let is_about_values =
                |kind| matches!(kind, FindingKind::LabelMissing | FindingKind::FeatureMissing);
            let is_about_people = |kind| {
                matches!(
                    kind,
                    FindingKind::NobodyInCommon | FindingKind::OverlapUnseen | FindingKind::OverlapUndeclared
                )
            };
            loud |= kinds().any(|kind| is_about_values(kind) || is_about_people(kind));
            let claims = kinds().all(|kind| is_about_values(kind) || kind == FindingKind::Confounders);
            held.push(claims.then_some(one.value.low <= slope && slope <= one.value.high));
            half_widths.push(standardised(one.value.high - one.value.low) / 2.0);
        }
        let slopes: Vec<f64> = model.coefficients.iter().map(|one| one.prediction).collect();
        let [low, high] = explained(model)?;
        let truly = moments.explained_by(&slopes);
        Ok(Self {
            error: error.sqrt(),
            kept: along / length,
            held,
            half_widths,
            explained_held: low <= truly && truly <= high,
            loud,
        })
    }
}

/// All releases of a cell in one format.
struct Line<'a>(Vec<&'a Found>);

impl Line<'_> {
    fn values(&self, of: impl Fn(&Found) -> f64) -> Vec<f64> {
        self.0.iter().map(|found| of(found)).collect()
    }

    /// Intervals that hold among those that claim to; the same of one coefficient.
    fn holds(&self, of: impl Fn(usize) -> bool) -> (usize, usize) {
        let claims = self.0.iter().flat_map(|found| found.held.iter().enumerate());
        let claims: Vec<bool> = claims.filter(|(at, _)| of(*at)).filter_map(|(_, held)| *held).collect();
        (claims.iter().filter(|held| **held).count(), claims.len())
    }

    fn cover(&self) -> String {
        let (held, all) = self.holds(|_| true);
        if all == 0 { "–".to_owned() } else { format!("{:.3}", held as f64 / all as f64) }
    }

    fn width(&self) -> f64 {
        let all: Vec<f64> = self.0.iter().flat_map(|found| found.half_widths.clone()).collect();
        quantile(&all, 0.5)
    }

    fn describe(&self) -> String {
        if self.0.is_empty() {
            return "– | – | – | –".to_owned();
        }
        let (errors, kept) = (self.values(|found| found.error), self.values(|found| found.kept));
        let error = |values: &[f64]| if values.len() > 1 { standard_error(values) } else { f64::NAN };
        format!(
            "{:.3} ± {:.3} | {:.3} ± {:.3} | {} | {:.3}",
            mean(&errors),
            error(&errors),
            mean(&kept),
            error(&kept),
            self.cover(),
            self.width()
        )
    }
}

type Cell = (usize, usize, Placement, usize, usize);

pub(crate) fn run(arguments: &Cohorts, common: &Common) -> Result<()> {
    let cells = &arguments.cells;
    let kinds =
        vec![Population::correlated(), Population::strong(), Population::heavy_tailed(), Population::rare()];
    let kinds = select(kinds, cells.kinds.as_deref(), |kind| kind.name.to_owned())?;
    let cohorts = select(Cohort::all(), arguments.cases.as_deref(), |cohort| cohort.name.to_owned())?;
    let sizes = cells.sizes.clone().unwrap_or_else(|| SIZES.to_vec());
    let epsilons = cells.epsilons.clone().unwrap_or_else(|| EPSILONS.to_vec());
    let seeds = common.seeds.unwrap_or(if common.quick { 2 } else { 60 });
    let seeds_above = cells.seeds_above.unwrap_or(seeds.div_ceil(5));

    let base = Seed::new(common.seed);
    let moments: Vec<PopulationMoments> = kinds.iter().map(|kind| kind.moments(base)).collect();
    let mut tasks: Vec<Task<Cell>> = Vec::new();
    for (c, cohort) in cohorts.iter().enumerate() {
        for (kind, population) in kinds.iter().enumerate() {
            for placement in Placement::ALL {
                for &n in &sizes {
                    for index in 0..if n >= LARGE { seeds_above } else { seeds } {
                        let key = format!(
                            "{} {} {placement:?} {n} {index} {epsilons:?}",
                            cohort.name, population.name
                        );
                        tasks.push(Task { key, cost: n as f64, cell: (c, kind, placement, n, index) });
                    }
                }
            }
        }
    }
    let one = |&(c, kind, placement, n, index): &Cell| -> Result<Vec<Vec<Found>>> {
        let (cohort, population) = (&cohorts[c], &kinds[kind]);
        // The same people in every case.
        let seed = base.of(&format!("cohorts {} {n} {index}", population.name));
        let holdings = cohort.holdings(population, n, placement, seed);
        let subjects = subjects(holdings.rows(), seed);
        let of_epsilon = |&epsilon: &f64| {
            let formats = if cohort.is_even() { &FORMATS[..] } else { &FORMATS[..1] };
            let of_format = |&format: &Format| {
                let usual = common.release(Privacy { epsilon, delta: DELTA });
                let release = Release { form: Form { format, declares: false, ..usual.form }, ..usual };
                let seed = seed.of(&format!("{placement:?} {epsilon} {}", format.number()));
                let model = release.run(&holdings, &subjects, seed)?.fit(population.label())?;
                Found::of(&model, population, &moments[kind])
            };
            formats.iter().map(of_format).collect()
        };
        epsilons.iter().map(of_epsilon).collect()
    };
    let (results, work) = run_tasks("cohorts", common, &tasks, one)?;

    let mut text = String::from(
        "Releases of format 2 where parties hold different people or values are missing, and of format 1 of the same tables where each party has as many rows. Nothing is declared of overlaps; values may be missing anywhere. Error: distance of the weights to predict with from the truth, in standard deviations, ± its standard error; kept: mean of b·β/β·β of what is read; cover: 95% intervals that hold, of all coefficients without a finding about tails, spread or people; worst: of the coefficient that is held least; width: median half-width; loud: fits with a finding about people or missing values.\n\n\
         | case | data | label | n | ε | repeats | error | kept | cover | width | worst | R² | loud | format 1: error | kept | cover | width |\n|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n",
    );
    let mut lines = Vec::new();
    let mut last: Option<(usize, usize, Placement, usize)> = None;
    for task in &tasks {
        let (c, kind, placement, n, _) = task.cell;
        if last.replace((c, kind, placement, n)) == Some((c, kind, placement, n)) {
            continue;
        }
        for (e, &epsilon) in epsilons.iter().enumerate() {
            let of_cell = |format: usize| {
                let same = |task: &&Task<Cell>| {
                    (task.cell.0, task.cell.1, task.cell.2, task.cell.3) == (c, kind, placement, n)
                };
                let all = tasks.iter().zip(&results).filter(|(task, _)| same(task));
                Line(all.filter_map(|(_, found)| found[e].get(format)).collect())
            };
            let (two, one) = (of_cell(0), of_cell(1));
            let coefficients = 0..kinds[kind].slopes.len();
            let shares = coefficients.map(|at| two.holds(|other| other == at));
            let enough = shares.filter(|(_, all)| 2 * all > two.0.len());
            let worst = enough.map(|(held, all)| held as f64 / all as f64).min_by(f64::total_cmp);
            let share = |of: fn(&Found) -> bool| mean(&two.values(|found| f64::from(u8::from(of(found)))));
            let _ = writeln!(
                text,
                "| {} | {} | {} | {n} | {epsilon} | {} | {} | {} | {:.3} | {:.2} | {} |",
                cohorts[c].name,
                kinds[kind].name,
                placement.name(),
                two.0.len(),
                two.describe(),
                worst.map_or("–".to_owned(), |worst| format!("{worst:.3}")),
                share(|found| found.explained_held),
                share(|found| found.loud),
                one.describe(),
            );
            lines.push(json!({
                "case": cohorts[c].name, "data": kinds[kind].name, "label": placement.name(), "n": n,
                "epsilon": epsilon, "format 2": two.0, "format 1": one.0,
            }));
        }
    }
    write(&common.out.join("cohorts.md"), &text)?;
    print!("{text}");
    if let Some(path) = &common.json {
        write_json(path, "cohorts", work, &lines.into())?;
    }
    Ok(())
}
