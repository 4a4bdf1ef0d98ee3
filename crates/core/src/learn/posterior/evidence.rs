//! What releases say, as the learner takes it.

use faer::Mat;

use super::people::People;
use super::sequence::Sequence;
use crate::learn::{Clipping, LearnError, LocalMoments, Released, check_choice};

/// How many parts evidence is split into where weights from some are judged by the others.
pub(super) const FOLDS: usize = 5;

/// What is known between columns of different parties.
#[derive(Debug, Clone)]
pub enum Between<'a> {
    /// Their mixed rows.
    Mixed(Released<'a>),
    /// Their covariances.
    Exchanged(Blocks),
}

/// Covariances between columns of different parties, in standardised units, with noise of known
/// size.
#[derive(Debug, Clone)]
pub struct Blocks {
    rows: u64,
    covariance: Mat<f64>,
    pub(super) noise: Mat<f64>,
}

impl Blocks {
    /// Noise of a covariance of which nothing is known; none exceeds a few standard deviations.
    const UNKNOWN: f64 = 1e3;

    /// Of n = `rows` subjects and so many columns, none of which is known.
    pub fn new(rows: u64, columns: usize) -> Self {
        let noise = Mat::from_fn(columns, columns, |_, _| Self::UNKNOWN);
        Self { rows, covariance: Mat::zeros(columns, columns), noise }
    }

    /// Adds the covariance of two columns, with the standard deviation of its noise.
    pub fn insert(&mut self, columns: (usize, usize), covariance: f64, noise: f64) {
        let (i, j) = columns;
        for place in [(i, j), (j, i)] {
            self.covariance[place] = covariance;
            self.noise[place] = noise;
        }
    }

    /// What of a column's squared covariances with others of these columns is noise.
    pub fn noise_share(&self, column: usize, others: &[usize]) -> f64 {
        let sum = |of: &Mat<f64>| others.iter().map(|&other| of[(column, other)].powi(2)).sum::<f64>();
        sum(&self.noise) / sum(&self.covariance).max(f64::MIN_POSITIVE)
    }
}

impl Between<'_> {
    fn columns(&self) -> usize {
        match self {
            Self::Mixed(released) => released.columns().len(),
            Self::Exchanged(blocks) => blocks.covariance.nrows(),
        }
    }

    /// n: number of subjects.
    pub(super) fn people(&self) -> u64 {
        match self {
            Self::Mixed(released) => released.n(),
            Self::Exchanged(blocks) => blocks.rows,
        }
    }

    /// Degrees of freedom of intervals.
    pub(super) fn degrees(&self) -> usize {
        let rows = match self {
            Self::Mixed(released) => released.k(),
            Self::Exchanged(blocks) => usize::try_from(blocks.rows).unwrap_or(usize::MAX),
        };
        rows.saturating_sub(1).max(3)
    }

    /// Refuses a label and features that do not name distinct columns, or too many of them.
    pub(super) fn check_choice(&self, label: usize, features: &[usize]) -> Result<(), LearnError> {
        match self {
            Self::Mixed(released) => released.check_choice(label, features),
            Self::Exchanged(_) => check_choice(self.columns(), label, features),
        }
    }
}

/// What the releases of all parties say, in standardised units.
#[derive(Debug, Clone)]
pub struct Evidence<'a> {
    /// What is known between parties.
    pub between: Between<'a>,
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
    /// What mixed rows or exchanged blocks say together with the moments within each party, given
    /// with its columns and what clipping did to them.
    pub fn from_parties(between: Between<'a>, parties: &[(Vec<usize>, &LocalMoments, &[Clipping])]) -> Self {
        let p = between.columns();
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
        let people = People::everywhere(between.people(), p, parties.len());
        let parties = parties.iter().map(|(members, ..)| members.clone()).collect();
        Self { between, parties, covariance, covariance_noise, spurious, clipping, people }
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

    /// The mixed rows, if there are any.
    pub fn released(&self) -> Option<&Released<'a>> {
        match &self.between {
            Between::Mixed(released) => Some(released),
            Between::Exchanged(_) => None,
        }
    }

    /// The noise in a mixed column over the share of values that are present; 0 if there is no such
    /// column.
    pub(super) fn noise(&self, column: usize) -> f64 {
        self.released().map_or(0.0, |released| released.noise()[column] / self.people.rates[column])
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
            people: People::everywhere(released.n(), p, p),
            between: Between::Mixed(released),
        }
    }
}

/// Evidence on some of the mixed rows, or some of the parts that exchanged blocks are split into:
/// how many, and the products of their columns.
pub(super) struct Sample {
    pub(super) k: f64,
    /// How many there are in all.
    all: f64,
    /// 1 for rows, each of which holds other people; as many as there are for parts, each of which
    /// is about everybody.
    people: f64,
    /// Of the features, the label, and the presence of each party if there is any.
    pub(super) gram: Mat<f64>,
}

impl Sample {
    /// All of the evidence.
    pub(super) fn whole(evidence: &Evidence<'_>, label: usize, features: &[usize]) -> Self {
        match &evidence.between {
            Between::Mixed(released) => Self::of_rows(evidence, released, (label, features), |_| true),
            Between::Exchanged(blocks) => {
                let chosen: Vec<usize> = features.iter().chain([&label]).copied().collect();
                let k = FOLDS as f64;
                Self {
                    k,
                    all: k,
                    people: k,
                    gram: Mat::from_fn(chosen.len(), chosen.len(), |i, j| {
                        k * blocks.covariance[(chosen[i], chosen[j])]
                    }),
                }
            }
        }
    }

    /// The same in parts whose noise is independent: every so manieth mixed row; or blocks that
    /// noise of their own size has been added to and taken from, which splits a normal variable
    /// into independent ones (Rasines and Young 2023).
    pub(super) fn parts(evidence: &Evidence<'_>, label: usize, features: &[usize]) -> Vec<Self> {
        match &evidence.between {
            Between::Mixed(released) => (0..FOLDS.min(released.k()))
                .map(|part| Self::of_rows(evidence, released, (label, features), |row| row % FOLDS == part))
                .collect(),
            Between::Exchanged(blocks) => Self::split(blocks, label, features),
        }
    }

    fn split(blocks: &Blocks, label: usize, features: &[usize]) -> Vec<Self> {
        let chosen: Vec<usize> = features.iter().chain([&label]).copied().collect();
        let (size, k) = (chosen.len(), FOLDS as f64);
        let mut grams = vec![Mat::zeros(size, size); FOLDS];
        let mut sequence = Sequence::new();
        for i in 0..size {
            for j in 0..i {
                let place = (chosen[i], chosen[j]);
                let draws: [f64; FOLDS] = std::array::from_fn(|_| sequence.normal());
                let mean = draws.iter().sum::<f64>() / k;
                for (gram, draw) in grams.iter_mut().zip(draws) {
                    let part = blocks.covariance[place] + blocks.noise[place] * k.sqrt() * (draw - mean);
                    gram[(i, j)] = part;
                    gram[(j, i)] = part;
                }
            }
        }
        grams.into_iter().map(|gram| Self { k: 1.0, all: k, people: k, gram }).collect()
    }

    /// The mixed rows whose position is wanted.
    fn of_rows(
        evidence: &Evidence<'_>,
        released: &Released<'_>,
        (label, features): (usize, &[usize]),
        wanted: impl Fn(usize) -> bool,
    ) -> Self {
        let people = &evidence.people;
        let chosen: Vec<usize> = features.iter().chain([&label]).copied().collect();
        let rows: Vec<usize> = (0..released.k()).filter(|&row| wanted(row)).collect();
        let z = Mat::from_fn(rows.len(), chosen.len() + people.presence.len(), |i, j| match chosen.get(j) {
            Some(&column) => people.value(column, released.columns()[column][rows[i]]),
            None => people.presence[j - chosen.len()].rows[rows[i]],
        });
        let (k, all) = (rows.len() as f64, released.k() as f64);
        Self { k, all, people: 1.0, gram: z.transpose() * &z }
    }

    /// What these rows have of a number of people; parts of blocks are about all of them.
    pub(super) fn scaled(&self, people: f64) -> f64 {
        people * (self.k * self.people / self.all).min(1.0)
    }

    /// Variance of the noise in the mean of these parts, where that of all has this one.
    pub(super) fn noise_of_mean(&self, noise: f64) -> f64 {
        noise * self.all / self.k
    }

    /// The rows of all samples together, which have none in common.
    pub(super) fn union(samples: &[Self]) -> Self {
        let size = samples.first().map_or(0, |sample| sample.gram.nrows());
        let mut gram = Mat::zeros(size, size);
        for sample in samples {
            gram += &sample.gram;
        }
        let (all, people) = samples.first().map_or((0.0, 1.0), |sample| (sample.all, sample.people));
        Self { k: samples.iter().map(|sample| sample.k).sum(), all, people, gram }
    }

    /// The rows that are not in `part`, which is part of this.
    pub(super) fn without(&self, part: &Self) -> Self {
        Self { k: self.k - part.k, gram: &self.gram - &part.gram, all: self.all, people: self.people }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parts have the mean that was published, noise of five times its variance, and nothing to do
    /// with each other.
    #[test]
    fn parts_of_blocks_are_independent_and_their_mean_is_the_block() {
        const SIZE: usize = 90;
        let noise = |i: usize, j: usize| 1.0 + ((i + j) % 3) as f64;
        let mut blocks = Blocks::new(1000, SIZE);
        let mut published = Sequence::new();
        // Sequences are the same, so that noise and draws must not come from the same place.
        for _ in 0..1_000_003 {
            published.uniform();
        }
        for i in 0..SIZE {
            for j in 0..i {
                blocks.insert((i, j), noise(i, j) * published.normal(), noise(i, j));
            }
        }
        let features: Vec<usize> = (0..SIZE - 1).collect();
        let parts = Sample::split(&blocks, SIZE - 1, &features);
        assert_eq!(parts.len(), FOLDS);
        let whole = Sample::union(&parts);
        let mut products = Mat::<f64>::zeros(FOLDS, FOLDS);
        let mut count = 0.0;
        for i in 0..SIZE {
            for j in 0..i {
                let mean = whole.gram[(i, j)] / whole.k;
                assert!((mean - blocks.covariance[(i, j)]).abs() < 1e-9);
                count += 1.0;
                for one in 0..FOLDS {
                    for other in 0..FOLDS {
                        let of = |part: usize| parts[part].gram[(i, j)] / noise(i, j);
                        products[(one, other)] += of(one) * of(other);
                    }
                }
            }
        }
        for one in 0..FOLDS {
            for other in 0..FOLDS {
                let found = products[(one, other)] / count;
                let expected = if one == other { FOLDS as f64 } else { 0.0 };
                // 4,005 entries: five standard errors.
                assert!((found - expected).abs() < 5.0 * FOLDS as f64 * (2.0 / count).sqrt(), "{found}");
            }
        }
        let noise = blocks.noise[(1, 0)].powi(2);
        assert!((parts[0].noise_of_mean(noise) - 5.0 * noise).abs() < 1e-12);
        assert!((whole.without(&parts[0]).noise_of_mean(noise) - 1.25 * noise).abs() < 1e-12);
        assert!(
            (whole.scaled(1000.0) - 1000.0).abs() < 1e-9 && (parts[0].scaled(1000.0) - 1000.0).abs() < 1e-9
        );
    }
}
