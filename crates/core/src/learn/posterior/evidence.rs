//! What releases say, as the learner takes it.

use faer::Mat;

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
        let parties = parties.iter().map(|(members, ..)| members.clone()).collect();
        Self { released, parties, covariance, covariance_noise, spurious, clipping }
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
            released,
        }
    }
}

/// Evidence on some of the mixed rows: their number, the subjects they stand for, and the products
/// of their columns.
pub(super) struct Sample {
    pub(super) n: f64,
    pub(super) k: f64,
    pub(super) gram: Mat<f64>,
}

impl Sample {
    /// The mixed rows whose position is wanted; products of the features and, last, the label.
    pub(super) fn of(
        evidence: &Evidence<'_>,
        label: usize,
        features: &[usize],
        wanted: impl Fn(usize) -> bool,
    ) -> Self {
        let released = &evidence.released;
        let chosen: Vec<&[f64]> =
            features.iter().chain([&label]).map(|&column| released.columns()[column]).collect();
        let rows: Vec<usize> = (0..released.k()).filter(|&row| wanted(row)).collect();
        let z = Mat::from_fn(rows.len(), chosen.len(), |i, j| chosen[j][rows[i]]);
        let k = rows.len() as f64;
        Self { n: released.n() as f64 * k / released.k() as f64, k, gram: z.transpose() * &z }
    }

    /// The rows of all samples together, which have none in common.
    pub(super) fn union(samples: &[Self]) -> Self {
        let size = samples.first().map_or(0, |sample| sample.gram.nrows());
        let mut gram = Mat::zeros(size, size);
        for sample in samples {
            gram += &sample.gram;
        }
        let sum = |part: fn(&Self) -> f64| samples.iter().map(part).sum();
        Self { n: sum(|sample| sample.n), k: sum(|sample| sample.k), gram }
    }

    /// The rows that are not in `part`, which is part of this.
    pub(super) fn without(&self, part: &Self) -> Self {
        Self { n: self.n - part.n, k: self.k - part.k, gram: &self.gram - &part.gram }
    }
}
