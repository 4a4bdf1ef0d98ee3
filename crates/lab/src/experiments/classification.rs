//! Logistic regression from releases beside maximum likelihood on the rows themselves.

use std::fmt::Write as _;

use anyhow::{Context as _, Result};
use potluck_release::Model;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::DELTA;
use crate::args::{Classification, Common};
use crate::dataset::Dataset;
use crate::methods::select;
use crate::outcomes::{Outcomes, Rows, probability};
use crate::released::Released;
use crate::runner::{Task, run as run_tasks, write, write_json};
use crate::seeds::Seed;
use crate::statistics::{Confidence, binomial_interval, mean};
use crate::table::{Privacy, subjects};

const SIZES: [usize; 2] = [100_000, 1_000_000];
const EPSILONS: [f64; 2] = [1.0, 0.3];
const LARGE: usize = 1_000_000;
/// People that predictions are judged on.
const TEST: usize = 50_000;
const METHODS: [&str; 4] = ["maximum likelihood", "logistic", "linear", "share"];

/// What one repetition finds at one ε.
#[derive(Serialize, Deserialize)]
struct Found {
    /// Of each coefficient, the lower end, the estimate, the upper end and the truth.
    odds: Vec<[f64; 4]>,
    /// Whether there is a finding about each.
    findings: Vec<bool>,
    /// Interval of the area under the curve, and the area on new people.
    area: [f64; 3],
    /// Log loss and area under the curve of each method.
    judged: Vec<[f64; 2]>,
}

/// Where data come from.
enum Source {
    MadeUp { population: Outcomes, intercept: f64 },
    Table(Dataset),
}

impl Source {
    fn name(&self) -> &str {
        match self {
            Self::MadeUp { population, .. } => population.name,
            Self::Table(dataset) => &dataset.name,
        }
    }
}

/// What a release says, read for rows of features.
struct Reading<'a> {
    model: &'a Model,
    /// Of each coefficient, the feature that it belongs to.
    places: Vec<usize>,
}

impl<'a> Reading<'a> {
    fn new(model: &'a Model, released: &Released) -> Result<Self> {
        let place = |name: String| released.names().iter().position(|known| *known == name);
        let places = model.coefficients.iter().map(|one| place(one.term.name()));
        Ok(Self { model, places: places.collect::<Option<_>>().context("features are columns")? })
    }

    fn predict(&self, features: &[f64]) -> f64 {
        let value = |name: &str| {
            let at = self.model.coefficients.iter().position(|one| one.term.name() == name)?;
            Some(features[self.places[at]])
        };
        self.model.predict(|term| value(&term.name()))
    }
}

fn examine(
    released: &Released,
    label: usize,
    train: &Rows,
    test: &Rows,
    truth: Option<&[f64]>,
) -> Result<Found> {
    let logistic = released.fit_odds(label)?;
    let linear = released.fit(label)?;
    let (odds, line) = (Reading::new(&logistic, released)?, Reading::new(&linear, released)?);
    // Levels that others are compared with are no features of the rows' own regression either.
    let chosen = |rows: &Rows| Rows {
        width: odds.places.len(),
        features: rows
            .features
            .chunks_exact(rows.width)
            .flat_map(|row| odds.places.iter().map(|&at| row[at]))
            .collect(),
        labels: rows.labels.clone(),
    };
    let likeliest = chosen(train).maximum_likelihood()?;
    let truth = truth.unwrap_or(&likeliest[1..]);
    let share = train.share();
    let by_likelihood = |features: &[f64]| {
        let sum: f64 = likeliest[1..].iter().zip(&odds.places).map(|(slope, &at)| slope * features[at]).sum();
        probability(likeliest[0] + sum)
    };
    let judged = vec![
        test.judge(by_likelihood),
        test.judge(|features| odds.predict(features)),
        test.judge(|features| line.predict(features)),
        test.judge(|_| share),
    ];
    let found = logistic.classification.context("a logistic regression has a share")?;
    let [low, high] = found.area_interval;
    let values = logistic.coefficients.iter().zip(truth);
    Ok(Found {
        odds: values
            .map(|(one, &truth)| [one.value.low, one.value.estimate, one.value.high, truth])
            .collect(),
        findings: logistic
            .coefficients
            .iter()
            .map(|one| one.has_unsure_interval() || one.is_about_cut_values())
            .collect(),
        area: [low, judged[1][1], high],
        judged,
    })
}

/// One line of the table.
struct Line<'a> {
    name: &'a str,
    n: usize,
    epsilon: f64,
    found: Vec<&'a Found>,
}

impl Line<'_> {
    /// Log odds without a finding that are covered, and all.
    fn covered(&self) -> (usize, usize) {
        let bare = self.found.iter().flat_map(|found| found.odds.iter().zip(&found.findings));
        let held = bare
            .filter(|(_, finding)| !**finding)
            .map(|([low, _, high, truth], _)| low <= truth && truth <= high);
        held.fold((0, 0), |(covered, all), held| (covered + usize::from(held), all + 1))
    }

    fn areas_covered(&self) -> usize {
        self.found
            .iter()
            .filter(|found| found.area[0] <= found.area[1] && found.area[1] <= found.area[2])
            .count()
    }

    fn with_finding(&self) -> f64 {
        let findings: Vec<f64> =
            self.found.iter().flat_map(|found| &found.findings).map(|&finding| f64::from(finding)).collect();
        mean(&findings)
    }

    fn of_method(&self, method: usize, what: usize) -> f64 {
        mean(&self.found.iter().map(|found| found.judged[method][what]).collect::<Vec<_>>())
    }

    fn describe(&self, text: &mut String) {
        let (covered, all) = self.covered();
        let repeats = self.found.len();
        let shown = |(covered, all): (usize, usize)| {
            if all == 0 {
                return "–".to_owned();
            }
            let (low, high) = binomial_interval(covered, all, Confidence::P95);
            format!("{:.3} ({low:.3} to {high:.3})", covered as f64 / all as f64)
        };
        let _ = write!(text, "| {} | {} | {} | {repeats} |", self.name, self.n, self.epsilon);
        for what in 0..2 {
            for method in 0..METHODS.len() - what {
                let _ = write!(text, " {:.4} |", self.of_method(method, what));
            }
        }
        let _ = writeln!(
            text,
            " {:.2} | {} | {} |",
            self.with_finding(),
            shown((covered, all)),
            shown((self.areas_covered(), repeats)),
        );
    }
}

/// What is asked for: made-up populations, then real tables.
fn sources(arguments: &Classification, base: Seed) -> Result<Vec<Source>> {
    let populations = if arguments.tuning { Outcomes::tuning() } else { Outcomes::reported() };
    let made_up = populations.into_iter().map(|population| {
        let intercept = population.intercept(base);
        Source::MadeUp { population, intercept }
    });
    let mut all: Vec<Source> = made_up.collect();
    if let Some(folder) = &arguments.data_dir {
        for name in Dataset::yes_no_names() {
            match Dataset::yes_no(name, folder)? {
                Some(dataset) => all.push(Source::Table(dataset)),
                None => eprintln!("{name}: its file is not in {}, left out", folder.display()),
            }
        }
    }
    select(all, arguments.cells.kinds.as_deref(), |source| source.name().to_owned())
}

pub(crate) fn run(arguments: &Classification, common: &Common) -> Result<()> {
    let cells = &arguments.cells;
    let base = Seed::new(common.seed);
    let sources = sources(arguments, base)?;
    let default_sizes = if common.quick { &SIZES[..1] } else { &SIZES[..] };
    let sizes = cells.sizes.clone().unwrap_or_else(|| default_sizes.to_vec());
    let epsilons = cells.epsilons.clone().unwrap_or_else(|| EPSILONS.to_vec());
    let seeds = common.seeds.unwrap_or(if common.quick { 4 } else { 100 });
    let seeds_above = cells.seeds_above.unwrap_or(seeds.div_ceil(5));

    let mut tasks = Vec::new();
    for (source, of) in sources.iter().enumerate() {
        let sizes = match of {
            Source::MadeUp { .. } => sizes.clone(),
            Source::Table(dataset) => vec![dataset.rows() * 4 / 5],
        };
        for n in sizes {
            for index in 0..if n >= LARGE { seeds_above } else { seeds } {
                let key = format!("{} {n} {index} {epsilons:?}", of.name());
                tasks.push(Task { key, cost: n as f64, cell: (source, n, index) });
            }
        }
    }
    let (results, work): (Vec<Vec<Found>>, _) =
        run_tasks("classification", common, &tasks, |&(source, n, index)| {
            let seed = base.of(&format!("classification {} {n} {index}", sources[source].name()));
            let (holdings, train, test, label, truth);
            match &sources[source] {
                Source::MadeUp { population, intercept } => {
                    train = population.draw(n, *intercept, seed.of("train"));
                    test = population.draw(TEST, *intercept, seed.of("test"));
                    holdings = population.holdings(&train);
                    (label, truth) = (population.label(), Some(population.slopes.as_slice()));
                }
                Source::Table(dataset) => {
                    let split = dataset.split(seed);
                    (train, test) = (split.0.rows_and_labels(), split.1.rows_and_labels());
                    (label, truth) = (split.0.label(), None);
                    holdings = split.0.into_holdings();
                }
            }
            let subjects = subjects(holdings.rows(), seed);
            epsilons
                .iter()
                .map(|&epsilon| {
                    let privacy = Privacy { epsilon, delta: DELTA };
                    let released =
                        common.release(privacy).run(&holdings, &subjects, seed.of(&epsilon.to_string()))?;
                    examine(&released, label, &train, &test, truth)
                })
                .collect()
        })?;

    let mut lines: Vec<Line<'_>> = Vec::new();
    for (task, results) in tasks.iter().zip(&results) {
        let (source, n, _) = task.cell;
        for (&epsilon, found) in epsilons.iter().zip(results) {
            let name = sources[source].name();
            let same = |line: &&mut Line<'_>| {
                line.name == name && line.n == n && line.epsilon.total_cmp(&epsilon).is_eq()
            };
            match lines.iter_mut().find(same) {
                Some(line) => line.found.push(found),
                None => lines.push(Line { name, n, epsilon, found: vec![found] }),
            }
        }
    }
    let mut text = String::from(
        "Log loss and area under the curve on new people: of maximum likelihood on the rows themselves, of the logistic and the linear regression from the releases, and of always predicting the share. Then the share of coefficients with a finding that speaks against their intervals, coverage of 95% intervals of the others' log odds with Wilson's 95% intervals for it, and coverage of 95% intervals of the area. Parties hold two features each, the label is alone; real tables are dealt as in docs/RESULTS.md, and their truth is maximum likelihood on the same rows.\n\n\
         | data | n | ε | repeats | log loss: likelihood | logistic | linear | share | area: likelihood | logistic | linear | with a finding | log odds covered | area covered |\n|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n",
    );
    for line in &lines {
        line.describe(&mut text);
    }
    write(&common.out.join("classification.md"), &text)?;
    print!("{text}");
    if let Some(path) = &common.json {
        let of_line = |line: &Line<'_>| {
            let (covered, all) = line.covered();
            json!({
                "data": line.name, "n": line.n, "epsilon": line.epsilon, "methods": METHODS,
                "judged": line.found.iter().map(|found| &found.judged).collect::<Vec<_>>(),
                "covered": covered, "without_finding": all, "areas_covered": line.areas_covered(),
            })
        };
        let results: Vec<_> = lines.iter().map(of_line).collect();
        write_json(path, "classification", work, &results.into())?;
    }
    Ok(())
}
