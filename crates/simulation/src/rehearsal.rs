//! A study tried on made-up people: many releases of them, and what fits of these would say.

use std::num::NonZero;
use std::ops::{ControlFlow, RangeInclusive};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use potluck_core::mixing::MixingKey;
use potluck_core::planning::TYPICAL_SIGNAL;
use potluck_release::fit::{Regression, fit};
use potluck_release::preview::{Coefficient, Loss, Preview, RSquared};
use potluck_release::study::{Column, Definition, Format};
use potluck_release::{Model, Study};
use rand_chacha::ChaCha12Rng;
use rand_core::{Rng, SeedableRng};

use crate::error::Error;
use crate::noise::Exact;
use crate::people::{People, Subjects};
use crate::shape::{Truth, draw, scattered};
use crate::simulation::Simulation;

/// Most made-up values held in memory: 4 GiB.
const MOST_VALUES: u64 = 1 << 29;
/// Smallest share of their people that parties are tried with.
const LEAST_OVERLAP: f64 = 0.01;
/// How many releases one preview may have.
pub const RELEASES: RangeInclusive<u32> = 2..=10_000;

/// What to make up, and how often to release it.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// The label; the last column that can be one if `None`.
    pub label: Option<String>,
    /// Number of releases.
    pub releases: u32,
    /// Number of made-up people; the study's if `None`.
    pub rows: Option<u64>,
    /// Share of the label that all features together explain.
    pub signal: f64,
    /// Correlation between any two features.
    pub correlation: f64,
    /// Share of its people that two parties of the largest size have in common, in studies whose
    /// parties may hold different people; what the study lets expect if `None`.
    pub overlap: Option<f64>,
    /// Share of the values that are missing, of columns that the study says may miss.
    pub missing: f64,
    /// Changes every random choice.
    pub seed: u64,
}

impl Default for Wanted {
    fn default() -> Self {
        Self {
            label: None,
            releases: 20,
            rows: None,
            signal: TYPICAL_SIGNAL,
            correlation: 0.0,
            overlap: None,
            missing: 0.0,
            seed: 1,
        }
    }
}

impl Wanted {
    fn check(&self) -> Result<(), Error> {
        let shares = [("signal", self.signal), ("correlation", self.correlation), ("missing", self.missing)];
        for (name, value) in shares {
            if !(0.0..1.0).contains(&value) {
                return Err(Error::Share { name });
            }
        }
        if !RELEASES.contains(&self.releases) {
            return Err(Error::Releases { least: *RELEASES.start(), most: *RELEASES.end() });
        }
        if self.overlap.is_some_and(|share| !(LEAST_OVERLAP..=1.0).contains(&share)) {
            return Err(Error::Overlap);
        }
        Ok(())
    }

    /// How many people there are, whoever holds them.
    pub(crate) fn people(&self, definition: &Definition) -> u64 {
        let Some(share) = self.overlap else { return definition.rows() };
        let largest = definition.parties().iter().map(|party| definition.table_rows(party).expected()).max();
        (largest.unwrap_or(0) as f64 / share).ceil() as u64
    }
}

/// A study that can be tried on made-up people.
pub struct Rehearsal {
    study: Study,
    label: String,
    wanted: Wanted,
}

impl Rehearsal {
    /// Checks what is wanted of a study, before anything is made up.
    pub fn new(study: &Study, mut wanted: Wanted) -> Result<Self, Error> {
        wanted.check()?;
        match study.definition().format() {
            Format::One if wanted.overlap.is_some() || wanted.missing > 0.0 => return Err(Error::SamePeople),
            Format::One => {}
            Format::Two => {
                wanted.overlap =
                    Some(wanted.overlap.unwrap_or_else(|| study.usual_overlap()).max(LEAST_OVERLAP));
            }
        }
        let study = match wanted.rows {
            None => study.clone(),
            Some(rows) => study.with_rows(rows)?,
        };
        let rows = wanted.people(study.definition());
        if rows.saturating_mul(study.definition().columns().count() as u64) > MOST_VALUES {
            return Err(Error::TooMany { rows });
        }
        let label = choose_label(&study, wanted.label.as_deref())?;
        Ok(Self { study, label, wanted })
    }

    /// Makes people up, has them released again and again on several threads, and looks at all
    /// fits; the same whatever the number of threads. `watch` hears how many releases there are,
    /// and may ask to stop.
    pub fn preview(
        &self,
        threads: NonZero<usize>,
        watch: &(dyn Fn(u64) -> ControlFlow<()> + Sync),
    ) -> Result<Preview, Error> {
        let people = draw(self.study.definition(), &self.label, &self.wanted);
        let truth = Truth::new(self.study.definition(), &self.label, &people)?;
        let held = self.wanted.overlap.map(|_| scattered(self.study.definition(), &people, &self.wanted));
        let models = self.models(held.as_ref().unwrap_or(&people), threads, watch)?;
        Ok(self.summary(&truth, &models))
    }

    /// The fit of each release.
    fn models(
        &self,
        people: &People,
        threads: NonZero<usize>,
        watch: &(dyn Fn(u64) -> ControlFlow<()> + Sync),
    ) -> Result<Vec<Model>, Error> {
        let count = self.wanted.releases;
        let (next, done) = (AtomicU32::new(0), AtomicU32::new(0));
        let found: Mutex<Vec<(u32, Result<Model, Error>)>> = Mutex::default();
        let work = || {
            while watch(done.load(Ordering::Relaxed).into()).is_continue() {
                let index = next.fetch_add(1, Ordering::Relaxed);
                if index >= count {
                    break;
                }
                let model = self.model(people, index);
                found.lock().unwrap_or_else(PoisonError::into_inner).push((index, model));
                done.fetch_add(1, Ordering::Relaxed);
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..threads.get().min(count as usize) {
                scope.spawn(work);
            }
        });
        let mut found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
        if found.len() < count as usize {
            return Err(Error::Stopped);
        }
        found.sort_by_key(|(index, _)| *index);
        found.into_iter().map(|(_, model)| model).collect()
    }

    /// One release of all parties, joined and fitted.
    fn model(&self, people: &People, index: u32) -> Result<Model, Error> {
        let seed = self.wanted.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(u64::from(index) + 1);
        let mut rng = ChaCha12Rng::seed_from_u64(seed);
        let mut key = [0; 32];
        rng.fill_bytes(&mut key);
        let subjects = Subjects::new(MixingKey::new(key), people.rows());
        let study = self.study.with_key(subjects.key().clone())?;
        let dataset = Simulation::new(&study, people, &subjects)
            .dataset(|_, _| Box::new(Exact(ChaCha12Rng::seed_from_u64(rng.next_u64()))))?;
        Ok(fit(&dataset, &Regression::of(&self.label))?)
    }

    fn summary(&self, truth: &Truth, models: &[Model]) -> Preview {
        let coefficients = models[0].coefficients.iter().enumerate().map(|(at, coefficient)| {
            let name = coefficient.term.name();
            let (non_private, standard) = truth.of(&name);
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
                standard,
                name,
            }
        });
        let shares: Vec<_> = models.iter().filter_map(|model| model.diagnostics.r_squared).collect();
        let held = shares.iter().filter(|share| {
            share.interval.is_some_and(|[low, high]| low <= truth.r_squared && truth.r_squared <= high)
        });
        Preview {
            study: self.study.definition().name().to_owned(),
            label: self.label.clone(),
            rows: self.study.definition().rows(),
            released_rows: self.study.seal().k(),
            releases: models.len(),
            r_squared: RSquared {
                non_private: truth.r_squared,
                mean: mean(shares.iter().map(|share| share.estimate)),
                coverage: held.count() as f64 / shares.len().max(1) as f64,
            },
            loss: Loss { non_private: truth.loss(), private: truth.loss_of_models(models) },
            coefficients: coefficients.collect(),
        }
    }
}

/// The column asked for, or the last that can be a label.
fn choose_label(study: &Study, name: Option<&str>) -> Result<String, Error> {
    let can_be = |column: &&Column| column.encoded_names().len() == 1;
    let columns: Vec<&Column> =
        study.definition().columns().map(|(_, column)| column).filter(can_be).collect();
    let found = match name {
        None => columns.last(),
        Some(name) => columns.iter().find(|column| column.name() == name),
    };
    found.map(|column| column.name().to_owned()).ok_or_else(|| {
        let known: Vec<&str> = columns.iter().map(|column| column.name()).collect();
        Error::Label { known: known.join(", ") }
    })
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = values.len() as f64;
    values.sum::<f64>() / count
}
