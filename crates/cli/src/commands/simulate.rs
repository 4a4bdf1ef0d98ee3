//! `potluck simulate`: releases of made-up people in a study's shape, as a preview of accuracy.

use std::fmt::Write as _;
use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use anyhow::{Result, anyhow};
use potluck_core::encoding::{EncodedRows, Encoder, Values};
use potluck_core::learn::{Level, Released, Ridge, ols};
use potluck_core::mixing::{MixingKey, SubjectDigest};
use potluck_core::noise::{Sigma, rounded_gaussian};
use potluck_release::dataset::Completeness;
use potluck_release::files::{Audience, check_writable, write_file};
use potluck_release::fit::{DEFAULT_RIDGE, Regression, fit};
use potluck_release::model::{Learner, Term};
use potluck_release::study::{Column, Party};
use potluck_release::{Error, Model, PublicDataset, Release, Study};
use rand_chacha::ChaCha12Rng;
use rand_core::{Rng, SeedableRng};
use serde::Serialize;

use super::Settings;
use super::plan::load;
use crate::args::Simulate;
use crate::exit::WrongUsage;
use crate::output::{number, table};

/// Most made-up values held in memory: 4 GiB.
const MOST_VALUES: u64 = 1 << 29;
/// People encoded at a time.
const BLOCK: usize = 8192;
/// Standard deviation of a made-up column in units of half its public range.
const SPREAD: f64 = 0.25;
/// People whom predictions are judged by.
const JUDGED: usize = 10_000;

pub(super) fn run(arguments: &Simulate, settings: &Settings<'_>) -> Result<()> {
    if let Some(path) = &arguments.report {
        check_writable(path, settings.existing)?;
    }
    for (name, value) in [("--signal", arguments.signal), ("--correlation", arguments.correlation)] {
        if !(0.0..1.0).contains(&value) {
            return Err(WrongUsage(format!("{name} must be at least 0 and below 1")).into());
        }
    }
    let (study, _) = load(&arguments.study, arguments.base.base.as_deref())?.numbers()?;
    let study = match arguments.rows {
        None => study,
        Some(rows) => study.with_rows(rows)?,
    };
    let rows = study.definition().rows();
    if rows.saturating_mul(study.definition().columns().count() as u64) > MOST_VALUES {
        return Err(WrongUsage(format!(
            "{rows} made-up people do not fit into memory; try fewer with --rows, and read the trend from two sizes"
        ))
        .into());
    }
    let label = choose_label(&study, arguments.label.as_deref())?;
    settings.printer.note("making up people …");
    let people = People::new(&study, &label, arguments)?;
    let truth = people.regression()?;
    let progress = settings.printer.progress("releases", u64::from(arguments.releases));
    let threads = settings.resources.threads;
    let models = releases(&study, &people, arguments, threads, &|done| progress.set(done))?;
    drop(progress);
    let preview = Preview::new(&study, &label, &people, &truth, &models);
    if let Some(path) = &arguments.report {
        let page = potluck_report::preview_page(&preview.for_report());
        write_file(path, page.as_bytes(), settings.existing, Audience::Public)?;
        settings.printer.note(&format!("report in {}", path.display()));
    }
    settings.printer.result(&preview, || preview.to_text())
}

/// The column asked for, or the last that can be a label.
fn choose_label(study: &Study, name: Option<&str>) -> Result<String> {
    let can_be = |column: &Column| column.encoded_names().len() == 1;
    let columns: Vec<&Column> = study.definition().columns().map(|(_, column)| column).collect();
    let found = match name {
        None => columns.iter().rev().find(|column| can_be(column)).copied(),
        Some(name) => columns.iter().find(|column| column.name() == name && can_be(column)).copied(),
    };
    found.map(|column| column.name().to_owned()).ok_or_else(|| {
        let known: Vec<&str> =
            columns.iter().filter(|column| can_be(column)).map(|column| column.name()).collect();
        anyhow!(
            "there is no such label; numeric columns and those with two levels can be one: {}",
            known.join(", ")
        )
    })
}

/// Made-up values of one column.
enum Made {
    Numbers(Vec<f64>),
    Levels(Vec<u32>),
}

impl Made {
    fn slice(&self, range: std::ops::Range<usize>) -> Values<'_> {
        match self {
            Self::Numbers(numbers) => Values::Numbers(&numbers[range]),
            Self::Levels(codes) => Values::Levels(&codes[range]),
        }
    }
}

/// Made-up people: the columns of every party.
struct People {
    rows: usize,
    label: String,
    parties: Vec<(Party, Vec<Made>)>,
}

fn normal(rng: &mut ChaCha12Rng) -> f64 {
    const STEPS: u64 = 1 << 30;
    let sigma = Sigma::new(STEPS).expect("2^30 is a noise scale");
    rounded_gaussian(sigma, rng) as f64 / STEPS as f64
}

/// The level whose share of a bell curve cut into `levels` equal parts holds z.
fn level_of(z: f64, levels: usize) -> u32 {
    let share = 0.5 * libm::erfc(-z / std::f64::consts::SQRT_2);
    ((share * levels as f64) as usize).min(levels - 1) as u32
}

impl People {
    fn new(study: &Study, label: &str, arguments: &Simulate) -> Result<Self> {
        let rows = usize::try_from(study.definition().rows())?;
        let mut rng = ChaCha12Rng::seed_from_u64(arguments.seed);
        let common: Vec<f64> = (0..rows).map(|_| normal(&mut rng)).collect();
        let (shared, own) = (arguments.correlation.sqrt(), (1.0 - arguments.correlation).sqrt());
        let features = study.definition().columns().filter(|(_, column)| column.name() != label).count();
        // Signs take turns, so that the common part of the features mostly cancels out of the label.
        let mut signal = vec![0.0; rows];
        let mut sign = 1.0;
        let mut parties = Vec::new();
        let mut place = None;
        for party in study.definition().parties() {
            let mut columns = Vec::new();
            for column in party.columns() {
                if column.name() == label {
                    place = Some((parties.len(), columns.len()));
                    columns.push(Made::Numbers(Vec::new()));
                    continue;
                }
                let z: Vec<f64> = common.iter().map(|c| shared * c + own * normal(&mut rng)).collect();
                signal.iter_mut().zip(&z).for_each(|(signal, z)| *signal += sign * z);
                sign = -sign;
                columns.push(made(column, &z));
            }
            parties.push((party.clone(), columns));
        }
        let mean_square: f64 = signal.iter().map(|s| s * s).sum::<f64>() / rows as f64;
        let factor = if features == 0 { 0.0 } else { (arguments.signal / mean_square).sqrt() };
        let rest = (1.0 - arguments.signal).sqrt();
        let y: Vec<f64> = signal.iter().map(|s| factor * s + rest * normal(&mut rng)).collect();
        let (party, at) = place.ok_or_else(|| anyhow!("the label is not in the study"))?;
        let column = parties[party].0.columns()[at].clone();
        parties[party].1[at] = made(&column, &y);
        Ok(Self { rows, label: label.to_owned(), parties })
    }

    /// Encoded columns in original units, with their names, the label last.
    fn encoded(&self) -> Vec<(String, Vec<f64>)> {
        // As a fit does: beside an intercept, levels are compared with the first one.
        let mut encoded = Vec::new();
        let mut label = None;
        for (party, columns) in &self.parties {
            for (column, made) in party.columns().iter().zip(columns) {
                let names = column.encoded_names();
                let own: Vec<(String, Vec<f64>)> = match (made, column.encoder()) {
                    (Made::Numbers(numbers), Encoder::Numeric(bounds)) => {
                        let clamped = numbers.iter().map(|x| x.clamp(bounds.lo(), bounds.hi())).collect();
                        vec![(column.name().to_owned(), clamped)]
                    }
                    (Made::Levels(codes), Encoder::Categorical(levels)) => (levels.first_encoded()
                        ..levels.get())
                        .zip(names)
                        .skip(usize::from(levels.width() > 1))
                        .map(|(level, name)| {
                            (name, codes.iter().map(|&code| f64::from(code as usize == level)).collect())
                        })
                        .collect(),
                    _ => unreachable!("people are made up by the study"),
                };
                if column.name() == self.label {
                    label = own.into_iter().next();
                } else {
                    encoded.extend(own);
                }
            }
        }
        encoded.extend(label);
        encoded
    }

    /// What least squares gives on the people themselves: slopes by name, and R².
    fn regression(&self) -> Result<Truth> {
        let mut encoded = self.encoded();
        for (_, values) in &mut encoded {
            let mean = values.iter().sum::<f64>() / values.len() as f64;
            for value in values.iter_mut() {
                *value -= mean;
            }
        }
        let columns: Vec<&[f64]> = encoded.iter().map(|(_, values)| values.as_slice()).collect();
        let noise = vec![0.0; columns.len()];
        let released = Released::new(&columns, &noise, self.rows as u64).map_err(Error::from)?;
        let label = columns.len() - 1;
        let features: Vec<usize> = (0..label).collect();
        let fitted = ols(&released, label, &features, Ridge::NONE).map_err(Error::from)?;
        // Both losses are of the same people.
        let judged = self.rows.min(JUDGED);
        let (mut residuals, mut of_mean) = (0.0, 0.0);
        let label_mean = columns[label][..judged].iter().sum::<f64>() / judged as f64;
        for (row, y) in columns[label][..judged].iter().enumerate() {
            let slopes = fitted.coefficients.weights().iter();
            let prediction: f64 =
                slopes.zip(&columns[..label]).map(|(slope, values)| slope * values[row]).sum();
            residuals += (y - prediction).powi(2);
            of_mean += (y - label_mean).powi(2);
        }
        let spread =
            |values: &[f64]| (values.iter().map(|v| v * v).sum::<f64>() / values.len() as f64).sqrt();
        Ok(Truth {
            slopes: encoded
                .iter()
                .zip(fitted.coefficients.weights())
                .map(|((name, _), slope)| (name.clone(), *slope))
                .collect(),
            spreads: columns.iter().map(|values| spread(values)).collect(),
            r_squared: fitted.r_squared.unwrap_or(0.0),
            loss: residuals / of_mean,
        })
    }
}

/// Made-up values of a column for deviates with a bell curve.
fn made(column: &Column, z: &[f64]) -> Made {
    match column.encoder() {
        Encoder::Numeric(bounds) => {
            Made::Numbers(z.iter().map(|z| bounds.midpoint() + bounds.half_width() * SPREAD * z).collect())
        }
        Encoder::Categorical(levels) => Made::Levels(z.iter().map(|&z| level_of(z, levels.get())).collect()),
    }
}

/// The regression of the made-up people, without privacy.
struct Truth {
    slopes: Vec<(String, f64)>,
    /// Standard deviations of the features and, last, of the label.
    spreads: Vec<f64>,
    r_squared: f64,
    /// Mean squared error over that of predicting the mean, on the people whom predictions are judged by.
    loss: f64,
}

/// One party's release, from values in memory.
fn release(
    study: &Study,
    party: &Party,
    columns: &[Made],
    subjects: &[SubjectDigest],
    rng: &mut ChaCha12Rng,
) -> Result<Release> {
    let mut noised: Vec<Vec<i64>> = Vec::new();
    let mut encoded = EncodedRows::default();
    while let Some(stage) = study.stage(party.name(), &noised)? {
        let mut sums = vec![0; stage.coordinates()];
        for first in (0..subjects.len()).step_by(BLOCK) {
            let range = first..subjects.len().min(first + BLOCK);
            let values: Vec<Values<'_>> = columns.iter().map(|column| column.slice(range.clone())).collect();
            stage.encode(&values, range.len(), &mut encoded);
            stage.accumulate(&subjects[range], first as u64, &encoded, &mut sums);
        }
        stage.add_noise(&mut sums, rng);
        noised.push(sums);
    }
    Ok(Release::new(study.study_of(party.name())?, party.name(), &noised, None)?)
}

/// One release of all parties, joined and fitted.
fn one(study: &Study, people: &People, seed: u64) -> Result<Model> {
    let mut rng = ChaCha12Rng::seed_from_u64(seed);
    let mut key = [0; 32];
    rng.fill_bytes(&mut key);
    let study = study.with_key(MixingKey::new(key))?;
    let key = study.seal().key();
    let subjects: Vec<SubjectDigest> =
        (0..people.rows).map(|id| key.subject(id.to_string().as_bytes())).collect();
    let mut releases = Vec::new();
    for (party, columns) in &people.parties {
        releases.push(release(&study, party, columns, &subjects, &mut rng)?);
    }
    let dataset = PublicDataset::join(&study, &releases, Completeness::All)?;
    let regression = Regression {
        label: people.label.clone(),
        features: None,
        learner: Learner::Posterior,
        ridge: Ridge::new(DEFAULT_RIDGE).map_err(Error::from)?,
        level: Level::default(),
    };
    Ok(fit(&dataset, &regression)?)
}

/// Many releases, on several threads; the same whatever their number.
fn releases(
    study: &Study,
    people: &People,
    arguments: &Simulate,
    threads: NonZero<usize>,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Vec<Model>> {
    let count = arguments.releases as usize;
    let next = AtomicUsize::new(0);
    let done = AtomicUsize::new(0);
    let found: Mutex<Vec<(usize, Result<Model>)>> = Mutex::new(Vec::new());
    let work = || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= count {
                return;
            }
            let seed = arguments.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(index as u64 + 1);
            let model = one(study, people, seed);
            found.lock().unwrap_or_else(PoisonError::into_inner).push((index, model));
            progress(done.fetch_add(1, Ordering::Relaxed) as u64 + 1);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..threads.get().min(count) {
            scope.spawn(work);
        }
    });
    let mut found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    found.sort_by_key(|(index, _)| *index);
    found.into_iter().map(|(_, model)| model).collect()
}

/// One coefficient over all releases, in original units.
#[derive(Serialize)]
struct Coefficient {
    name: String,
    party: String,
    /// Least squares on the made-up people themselves.
    non_private: f64,
    /// Mean of the estimates.
    mean: f64,
    /// Root of the mean squared distance from `non_private`.
    error: f64,
    /// Median half-width of the intervals.
    half_width: f64,
    /// Share of the intervals that hold `non_private`.
    coverage: f64,
    /// Share of the releases in which published numbers speak against the coefficient.
    with_findings: f64,
    estimates: Vec<f64>,
    /// From original units to standard deviations of the label for one of the feature.
    #[serde(skip)]
    standard: f64,
}

/// What to expect of a study.
#[derive(Serialize)]
struct Preview {
    study: String,
    label: String,
    rows: u64,
    released_rows: u64,
    releases: usize,
    coefficients: Vec<Coefficient>,
    r_squared: RSquared,
    /// Mean squared error of predictions over that of predicting the mean.
    loss: Loss,
}

#[derive(Serialize)]
struct RSquared {
    non_private: f64,
    mean: f64,
    coverage: f64,
}

#[derive(Serialize)]
struct Loss {
    non_private: f64,
    private: f64,
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = values.len() as f64;
    values.sum::<f64>() / count
}

impl Preview {
    fn new(study: &Study, label: &str, people: &People, truth: &Truth, models: &[Model]) -> Self {
        let label_spread = truth.spreads.last().copied().unwrap_or(1.0);
        let coefficients = models[0].coefficients.iter().enumerate().map(|(at, coefficient)| {
            let name = coefficient.term.name();
            let position = truth.slopes.iter().position(|(candidate, _)| *candidate == name);
            let non_private = position.map_or(0.0, |position| truth.slopes[position].1);
            let values: Vec<_> = models.iter().map(|model| model.coefficients[at].value).collect();
            let held = values.iter().filter(|v| v.low <= non_private && non_private <= v.high).count();
            let found = models.iter().filter(|model| !model.coefficients[at].findings.is_empty()).count();
            Coefficient {
                party: coefficient.party.clone(),
                non_private,
                mean: mean(values.iter().map(|v| v.estimate)),
                error: mean(values.iter().map(|v| (v.estimate - non_private).powi(2))).sqrt(),
                half_width: median(values.iter().map(|v| (v.high - v.low) / 2.0).collect()),
                coverage: held as f64 / values.len() as f64,
                with_findings: found as f64 / values.len() as f64,
                estimates: values.iter().map(|v| v.estimate).collect(),
                standard: position.map_or(1.0, |position| truth.spreads[position] / label_spread),
                name,
            }
        });
        let shares: Vec<_> = models.iter().filter_map(|model| model.diagnostics.r_squared).collect();
        let held = shares.iter().filter(|share| {
            share.interval.is_some_and(|[low, high]| low <= truth.r_squared && truth.r_squared <= high)
        });
        Self {
            study: study.definition().name().to_owned(),
            label: label.to_owned(),
            rows: people.rows as u64,
            released_rows: study.seal().k(),
            releases: models.len(),
            r_squared: RSquared {
                non_private: truth.r_squared,
                mean: mean(shares.iter().map(|share| share.estimate)),
                coverage: held.count() as f64 / shares.len().max(1) as f64,
            },
            loss: Loss { non_private: truth.loss, private: loss(people, models) },
            coefficients: coefficients.collect(),
        }
    }

    fn for_report(&self) -> potluck_report::Preview<'_> {
        potluck_report::Preview {
            study: &self.study,
            label: &self.label,
            rows: self.rows,
            loss: self.loss.private,
            best_loss: self.loss.non_private,
            coefficients: self
                .coefficients
                .iter()
                .map(|coefficient| potluck_report::PreviewCoefficient {
                    name: &coefficient.name,
                    non_private: coefficient.non_private * coefficient.standard,
                    estimates: coefficient.estimates.iter().map(|e| e * coefficient.standard).collect(),
                    half_width: coefficient.half_width * coefficient.standard,
                    with_findings: coefficient.with_findings,
                })
                .collect(),
        }
    }

    fn to_text(&self) -> String {
        let rows: Vec<Vec<String>> = self
            .coefficients
            .iter()
            .map(|coefficient| {
                vec![
                    format!("{} ({})", coefficient.name, coefficient.party),
                    number(coefficient.non_private),
                    number(coefficient.mean),
                    number(coefficient.error),
                    format!("± {}", number(coefficient.half_width)),
                    format!("{:.0}%", 100.0 * coefficient.coverage),
                    format!("{:.0}%", 100.0 * coefficient.with_findings),
                ]
            })
            .collect();
        let mut text = format!(
            "{} releases of {} made-up people in {} rows; {} on all other columns:\n\n",
            self.releases, self.rows, self.released_rows, self.label
        );
        let header = ["", "non-private", "mean private", "error", "95% interval", "held", "findings"];
        text.push_str(&table(&header, &rows));
        let _ = writeln!(
            text,
            "\nR²: non-private {:.3}, private {:.3} on average; its interval held the non-private one in {:.0}% of releases",
            self.r_squared.non_private,
            self.r_squared.mean,
            100.0 * self.r_squared.coverage
        );
        let _ = writeln!(
            text,
            "Squared error of predictions, over that of predicting the mean: non-private {:.3}, private {:.3}",
            self.loss.non_private, self.loss.private
        );
        text.push_str("error: root of the mean squared distance from the non-private coefficient; held: share of intervals that hold it;\nfindings: share of releases that say themselves that something speaks against the coefficient\n");
        text
    }
}

/// Mean squared error of the models' predictions over that of predicting the mean, on some of the people.
fn loss(people: &People, models: &[Model]) -> f64 {
    let encoded = people.encoded();
    let Some(((_, label), features)) = encoded.split_last() else { return 1.0 };
    let judged = people.rows.min(JUDGED);
    let centre = label[..judged].iter().sum::<f64>() / judged as f64;
    let mut squares = 0.0;
    for model in models {
        for (row, y) in label[..judged].iter().enumerate() {
            let value = |term: &Term| {
                let name = term.name();
                features.iter().find(|(candidate, _)| *candidate == name).map(|(_, values)| values[row])
            };
            squares += (model.predict(value) - y).powi(2);
        }
    }
    let of_mean: f64 = label[..judged].iter().map(|y| (y - centre).powi(2)).sum();
    squares / (of_mean * models.len() as f64)
}
