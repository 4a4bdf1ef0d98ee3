//! People in the shape of a study: bell-shaped columns well inside their bounds, levels equally
//! frequent, and a label that all features together explain in part.

use potluck_core::encoding::Encoder;
use potluck_core::learn::{Released, Ridge, ols};
use potluck_core::noise::{Sigma, rounded_gaussian};
use potluck_release::model::Term;
use potluck_release::study::{self, Definition};
use potluck_release::{Error, Model};
use rand_chacha::ChaCha12Rng;
use rand_core::{Rng, SeedableRng};

use crate::people::{Column, People};
use crate::rehearsal::Wanted;

/// Standard deviation of a made-up column in units of half its public range.
const SPREAD: f64 = 0.25;
/// People whom predictions are judged by.
const JUDGED: usize = 10_000;

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

/// Made-up values of a column for deviates with a bell curve.
fn made(column: &study::Column, z: &[f64]) -> Column {
    match column.encoder() {
        Encoder::Numeric(bounds) => {
            Column::Numbers(z.iter().map(|z| bounds.midpoint() + bounds.half_width() * SPREAD * z).collect())
        }
        Encoder::Categorical(levels) => {
            Column::Levels(z.iter().map(|&z| level_of(z, levels.get())).collect())
        }
    }
}

/// Draws all people, whoever holds them; the label is one of the study's columns.
pub(crate) fn draw(definition: &Definition, label: &str, wanted: &Wanted) -> People {
    let rows = usize::try_from(wanted.people(definition)).expect("they fit into memory");
    let mut rng = ChaCha12Rng::seed_from_u64(wanted.seed);
    let common: Vec<f64> = (0..rows).map(|_| normal(&mut rng)).collect();
    let (shared, own) = (wanted.correlation.sqrt(), (1.0 - wanted.correlation).sqrt());
    let features = definition.columns().filter(|(_, column)| column.name() != label).count();
    // Signs take turns, so that the common part of the features mostly cancels out of the label.
    let mut signal = vec![0.0; rows];
    let mut sign = 1.0;
    let mut of_feature = |column: &study::Column, rng: &mut ChaCha12Rng| {
        let z: Vec<f64> = common.iter().map(|c| shared * c + own * normal(rng)).collect();
        signal.iter_mut().zip(&z).for_each(|(signal, z)| *signal += sign * z);
        sign = -sign;
        made(column, &z)
    };
    let mut place = None;
    let mut parties = Vec::new();
    for party in definition.parties() {
        let mut columns = Vec::new();
        for column in party.columns() {
            columns.push(if column.name() == label {
                place = Some((parties.len(), columns.len(), column));
                Column::Numbers(Vec::new())
            } else {
                of_feature(column, &mut rng)
            });
        }
        parties.push(columns);
    }
    let mean_square: f64 = signal.iter().map(|s| s * s).sum::<f64>() / rows as f64;
    let factor = if features == 0 { 0.0 } else { (wanted.signal / mean_square).sqrt() };
    let rest = (1.0 - wanted.signal).sqrt();
    let y: Vec<f64> = signal.iter().map(|s| factor * s + rest * normal(&mut rng)).collect();
    let (party, at, column) = place.expect("the label is a column of the study");
    parties[party][at] = made(column, &y);
    People::new(rows, parties)
}

/// The same people as their parties' tables have them: each holds some, and some of their values
/// are missing.
pub(crate) fn scattered(definition: &Definition, people: &People, wanted: &Wanted) -> People {
    let mut rng = ChaCha12Rng::seed_from_u64(!wanted.seed);
    let mut chance = |share: f64| f64::from(rng.next_u32()) < share * 4_294_967_296.0;
    let all = people.rows();
    let (mut held, mut parties) = (Vec::new(), Vec::new());
    for (party, columns) in definition.parties().iter().zip(people.parties()) {
        let share = definition.table_rows(party).expected() as f64 / all as f64;
        held.push((0..all).filter(|_| chance(share)).collect());
        let mut columns = columns.clone();
        for (column, made) in party.columns().iter().zip(&mut columns) {
            if column.may_miss() && wanted.missing > 0.0 {
                made.without(|| !chance(wanted.missing));
            }
        }
        parties.push(columns);
    }
    People::new(all, parties).held_by(held)
}

/// The regression of made-up people themselves, without privacy.
pub(crate) struct Truth {
    /// Encoded columns in original units around their means, with their names, the label last.
    encoded: Vec<(String, Vec<f64>)>,
    means: Vec<f64>,
    /// One a feature.
    slopes: Vec<f64>,
    pub(crate) r_squared: f64,
}

impl Truth {
    pub(crate) fn new(definition: &Definition, label: &str, people: &People) -> Result<Self, Error> {
        let mut encoded = encoded(definition, label, people);
        let mut means = Vec::with_capacity(encoded.len());
        for (_, values) in &mut encoded {
            let mean = values.iter().sum::<f64>() / values.len() as f64;
            for value in values.iter_mut() {
                *value -= mean;
            }
            means.push(mean);
        }
        let columns: Vec<&[f64]> = encoded.iter().map(|(_, values)| values.as_slice()).collect();
        let noise = vec![0.0; columns.len()];
        let released = Released::new(&columns, &noise, people.rows() as u64)?;
        let features: Vec<usize> = (0..columns.len() - 1).collect();
        let fitted = ols(&released, features.len(), &features, Ridge::NONE)?;
        Ok(Self {
            slopes: fitted.coefficients.weights().to_vec(),
            r_squared: fitted.r_squared.unwrap_or(0.0),
            encoded,
            means,
        })
    }

    /// The slope of a feature, and what takes it to standard deviations of the label for one of the
    /// feature.
    pub(crate) fn of(&self, name: &str) -> (f64, f64) {
        let spread =
            |values: &[f64]| (values.iter().map(|v| v * v).sum::<f64>() / values.len() as f64).sqrt();
        let (label, features) = self.encoded.split_last().expect("the label is last");
        match features.iter().position(|(candidate, _)| candidate == name) {
            Some(at) => (self.slopes[at], spread(&features[at].1) / spread(&label.1)),
            None => (0.0, 1.0),
        }
    }

    /// Mean squared error of least squares over that of predicting the mean, on some of the people.
    pub(crate) fn loss(&self) -> f64 {
        let (_, features) = self.encoded.split_last().expect("the label is last");
        self.loss_of(|row| {
            self.slopes.iter().zip(features).map(|(slope, (_, values))| slope * values[row]).sum()
        })
    }

    /// The same of the models' predictions.
    pub(crate) fn loss_of_models(&self, models: &[Model]) -> f64 {
        let label_mean = self.means.last().expect("the label is last");
        let losses = models.iter().map(|model| {
            let value = |term: &Term, row: usize| {
                let name = term.name();
                let at = self.encoded.iter().position(|(candidate, _)| *candidate == name)?;
                Some(self.encoded[at].1[row] + self.means[at])
            };
            self.loss_of(|row| model.predict(|term| value(term, row)) - label_mean)
        });
        losses.sum::<f64>() / models.len() as f64
    }

    fn loss_of(&self, predict: impl Fn(usize) -> f64) -> f64 {
        let (_, label) = self.encoded.last().expect("the label is last");
        let judged = &label[..label.len().min(JUDGED)];
        let centre = judged.iter().sum::<f64>() / judged.len() as f64;
        let (mut residuals, mut of_mean) = (0.0, 0.0);
        for (row, y) in judged.iter().enumerate() {
            residuals += (y - predict(row)).powi(2);
            of_mean += (y - centre).powi(2);
        }
        residuals / of_mean
    }
}

/// Encoded columns in original units, with their names, the label last. As in a fit, levels are
/// compared with the first one.
fn encoded(definition: &Definition, label: &str, people: &People) -> Vec<(String, Vec<f64>)> {
    let mut encoded = Vec::new();
    let mut of_label = Vec::new();
    for ((_, column), made) in definition.columns().zip(people.parties().iter().flatten()) {
        let own = match (made, column.encoder()) {
            (Column::Numbers(numbers), Encoder::Numeric(bounds)) => {
                let clamped = numbers.iter().map(|x| x.clamp(bounds.lo(), bounds.hi())).collect();
                vec![(column.name().to_owned(), clamped)]
            }
            (Column::Levels(codes), Encoder::Categorical(levels)) => {
                let shown = (levels.first_encoded()..levels.get()).zip(column.encoded_names());
                let indicator = |(level, name)| {
                    (name, codes.iter().map(|&code| f64::from(code as usize == level)).collect())
                };
                shown.skip(usize::from(levels.width() > 1)).map(indicator).collect()
            }
            _ => unreachable!("people are made up by the study"),
        };
        if column.name() == label { of_label = own } else { encoded.extend(own) }
    }
    encoded.extend(of_label);
    encoded
}
