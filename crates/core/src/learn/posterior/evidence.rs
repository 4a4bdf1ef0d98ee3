//! What releases say, as the learner takes it.

use faer::Mat;

use super::people::People;
use crate::learn::{Clipping, LocalMoments, Released};

/// What the releases of all parties say, in standardised units.
#[derive(Debug, Clone)]
pub struct Evidence<'a> {
    /// The mixed rows.
    pub released: Released<'a>,
    /// The columns of each party.
    pub parties: Vec<Vec<usize>>,
    /// Covariance within parties; entries between parties are not used.
    pub covariance: Mat<f64>,
    /// Standard deviation of the noise in an off-diagonal entry of `covariance`, by column.
    pub covariance_noise: Vec<f64>,
    /// What of `covariance` was taken out because the ball makes it up, within parties.
    pub spurious: Mat<f64>,
    /// What clipping did to each column.
    pub clipping: Vec<Clipping>,
    /// Who is where.
    pub people: People,
}

impl<'a> Evidence<'a> {
    /// What mixed rows say together with the moments within each party, given with its columns and
    /// what clipping did to them.
    pub fn from_parties(
        released: Released<'a>,
        parties: &[(Vec<usize>, &LocalMoments, &[Clipping])],
    ) -> Self {
        let p = released.columns().len();
        let mut covariance = Mat::zeros(p, p);
        let mut spurious = Mat::zeros(p, p);
        let mut covariance_noise = vec![0.0; p];
        let mut clipping = vec![Clipping::NONE; p];
        for (members, moments, clipped) in parties {
            for (i, &row) in members.iter().enumerate() {
                for (j, &column) in members.iter().enumerate() {
                    covariance[(row, column)] = moments.covariance[i * members.len() + j];
                    spurious[(row, column)] = moments.spurious[i * members.len() + j];
                }
                covariance_noise[row] = moments.noise;
                clipping[row] = clipped[i];
            }
        }
        let people = People::everywhere(&released, parties.len());
        let parties = parties.iter().map(|(members, ..)| members.clone()).collect();
        Self { released, parties, covariance, covariance_noise, spurious, clipping, people }
    }

    /// The same of parties that hold different people.
    #[must_use]
    pub fn with_people(self, people: People) -> Self {
        Self { people, ..self }
    }

    /// The party that a column belongs to.
    pub(super) fn party_of(&self, column: usize) -> usize {
        self.parties.iter().position(|members| members.contains(&column)).unwrap_or(0)
    }

    /// The noise in a mixed column over the share of values that are present.
    pub(super) fn noise(&self, column: usize) -> f64 {
        self.released.noise()[column] / self.people.rates[column]
    }

    /// What mixed rows say that come without local moments: every column is a party of its own, its
    /// variance is that of its rows beyond the noise, and the regression goes through the origin.
    pub fn from_rows(released: Released<'a>) -> Self {
        let (k, n) = (released.k() as f64, released.n() as f64);
        let p = released.columns().len();
        let variances: Vec<f64> = released
            .columns()
            .iter()
            .zip(released.noise())
            .map(|(column, noise)| {
                let squares: f64 = column.iter().map(|z| z * z).sum();
                ((squares - k * noise * noise) / n).max(0.0)
            })
            .collect();
        let errors: Vec<f64> = variances
            .iter()
            .zip(released.noise())
            .map(|(variance, noise)| (variance * n / k + noise * noise) * k.sqrt() / n)
            .collect();
        let clipping = variances.iter().zip(&errors).map(|(variance, error)| Clipping {
            scale_error: (error / variance.max(3.0 * error)).powi(2) / 2.0,
            ..Clipping::NONE
        });
        Self {
            clipping: clipping.collect(),
            parties: (0..p).map(|column| vec![column]).collect(),
            covariance_noise: errors,
            spurious: Mat::zeros(p, p),
            covariance: Mat::from_fn(p, p, |i, j| if i == j { variances[i] } else { 0.0 }),
            people: People::everywhere(&released, p),
            released,
        }
    }
}

/// Evidence on some of the mixed rows: their number, and the products of their columns.
pub(super) struct Sample {
    pub(super) k: f64,
    /// How many rows there are in all.
    all: f64,
    /// Of the features, the label, and the presence of each party if there is any.
    pub(super) gram: Mat<f64>,
}

impl Sample {
    /// The mixed rows whose position is wanted.
    pub(super) fn of(
        evidence: &Evidence<'_>,
        label: usize,
        features: &[usize],
        wanted: impl Fn(usize) -> bool,
    ) -> Self {
        let (released, people) = (&evidence.released, &evidence.people);
        let chosen: Vec<usize> = features.iter().chain([&label]).copied().collect();
        let rows: Vec<usize> = (0..released.k()).filter(|&row| wanted(row)).collect();
        let z = Mat::from_fn(rows.len(), chosen.len() + people.presence.len(), |i, j| match chosen.get(j) {
            Some(&column) => people.value(column, released.columns()[column][rows[i]]),
            None => people.presence[j - chosen.len()].rows[rows[i]],
        });
        Self { k: rows.len() as f64, all: released.k() as f64, gram: z.transpose() * &z }
    }

    /// What these rows have of a number of people.
    pub(super) fn scaled(&self, people: f64) -> f64 {
        people * self.k / self.all
    }

    /// The rows of all samples together, which have none in common.
    pub(super) fn union(samples: &[Self]) -> Self {
        let size = samples.first().map_or(0, |sample| sample.gram.nrows());
        let mut gram = Mat::zeros(size, size);
        for sample in samples {
            gram += &sample.gram;
        }
        let all = samples.first().map_or(0.0, |sample| sample.all);
        Self { k: samples.iter().map(|sample| sample.k).sum(), all, gram }
    }

    /// The rows that are not in `part`, which is part of this.
    pub(super) fn without(&self, part: &Self) -> Self {
        Self { k: self.k - part.k, all: self.all, gram: &self.gram - &part.gram }
    }
}
