//! R²: the explained share of the label's variance, by cross-fitting
//! (docs/LEARNERS.md#r-of-posterior).

use faer::{Col, Mat};

use super::clipping::Losses;
use super::correlations::Purpose;
use super::evidence::{Evidence, Sample};
use super::learned::Learned;
use crate::learn::{Interval, LearnError, Level, student};

/// How many parts the mixed rows are split into.
const FOLDS: usize = 5;

/// Share of the label's variance that a regression explains on fresh data, with its uncertainty.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ExplainedShare {
    /// The estimate; noise can take it below 0 or above 1.
    pub estimate: f64,
    /// Its standard error.
    pub standard_error: f64,
    degrees: usize,
}

impl ExplainedShare {
    /// A two-sided t interval.
    pub fn interval(&self, level: Level) -> Interval {
        let reach = student::two_sided_quantile(level, self.degrees) * self.standard_error;
        Interval { lower: self.estimate - reach, upper: self.estimate + reach }
    }
}

/// How mixed rows judge weights: a row scores x′Nx, x the label and each party's part of the
/// prediction.
struct Judge<'a> {
    evidence: &'a Evidence<'a>,
    label: usize,
    features: &'a [usize],
    /// For each feature, the place of its party among those that have features.
    place: Vec<usize>,
    own: Vec<bool>,
    /// N.
    products: Mat<f64>,
}

impl<'a> Judge<'a> {
    fn new(evidence: &'a Evidence<'a>, label: usize, features: &'a [usize]) -> Self {
        let party_of = |column: usize| {
            evidence.parties.iter().position(|members| members.contains(&column)).unwrap_or(0)
        };
        let mut parties: Vec<usize> = features.iter().map(|&column| party_of(column)).collect();
        parties.sort_unstable();
        parties.dedup();
        let own_party = party_of(label);
        let place: Vec<usize> = features
            .iter()
            .map(|&column| parties.iter().position(|&party| party == party_of(column)).unwrap_or(0))
            .collect();
        let own = features.iter().map(|&column| party_of(column) == own_party).collect();
        let products = Mat::from_fn(parties.len() + 1, parties.len() + 1, |i, j| match (i, j) {
            _ if i == j => 0.0,
            (0, b) | (b, 0) => f64::from(parties[b - 1] != own_party),
            _ => -1.0,
        });
        Self { evidence, label, features, place, own, products }
    }

    /// The label and the parties' parts in one row.
    fn parts(&self, row: usize, w: &[f64]) -> Vec<f64> {
        let columns = self.evidence.released.columns();
        let mut parts = vec![0.0; self.products.nrows()];
        parts[0] = columns[self.label][row];
        for (j, &feature) in self.features.iter().enumerate() {
            parts[self.place[j] + 1] += columns[feature][row] * w[j];
        }
        parts
    }

    fn score(&self, row: usize, w: &[f64]) -> f64 {
        let parts = self.parts(row, w);
        let x = Col::from_fn(parts.len(), |i| parts[i]);
        x.transpose() * &self.products * &x
    }

    /// Variance of a row's score if rows are bell-shaped, from the products of their columns
    /// (features, then label).
    fn score_variance(&self, sample: &Sample, w: &[f64]) -> f64 {
        let d = self.features.len();
        let loading = Mat::from_fn(d + 1, self.products.nrows(), |i, part| match (i == d, part) {
            (true, 0) => 1.0,
            (false, part) if part == self.place[i] + 1 => w[i],
            _ => 0.0,
        });
        let covariance = loading.transpose() * &sample.gram * &loading;
        let product = &self.products * covariance * faer::Scale(1.0 / sample.k);
        let size = product.nrows();
        2.0 * (0..size)
            .map(|i| (0..size).map(|j| product[(i, j)] * product[(j, i)]).sum::<f64>())
            .sum::<f64>()
    }

    /// What published moments say of the weights: covariance with the label and variance, within
    /// parties.
    fn local(&self, w: &[f64]) -> f64 {
        let mut explained = 0.0;
        for (i, &feature) in self.features.iter().enumerate() {
            if self.own[i] {
                explained += 2.0 * w[i] * self.evidence.covariance[(feature, self.label)];
            }
            for (j, &other) in self.features.iter().enumerate() {
                if self.place[i] == self.place[j] {
                    explained -= w[i] * self.evidence.covariance[(feature, other)] * w[j];
                }
            }
        }
        explained
    }
}

/// What share of the label's variance the regression explains on fresh data. Weights come from four
/// fifths of the mixed rows and are judged by the rest.
pub fn explained_share(
    evidence: &Evidence<'_>,
    label: usize,
    features: &[usize],
) -> Result<ExplainedShare, LearnError> {
    evidence.released.check_choice(label, features)?;
    let (n, k) = (evidence.released.n() as f64, evidence.released.k());
    let judge = Judge::new(evidence, label, features);
    // Products of the rows of each part: those of any other choice of parts are sums of them.
    let of_part = |part: usize| Sample::of(evidence, label, features, |row| row % FOLDS == part);
    let parts: Vec<Sample> = (0..FOLDS.min(k)).map(of_part).collect();
    let whole = Sample::union(&parts);
    let mut scores = vec![0.0; k];
    let (mut local, mut squares, mut of_gram) = (0.0, 0.0, 0.0);
    for (fold, part) in parts.iter().enumerate() {
        let w = Learned::new(evidence, &whole.without(part), label, features, Purpose::Predicting)?.weights();
        let held_out: Vec<usize> = (fold..k).step_by(FOLDS).collect();
        for &row in &held_out {
            scores[row] = judge.score(row, &w);
        }
        let weight = held_out.len() as f64 / k as f64;
        of_gram += weight * judge.score_variance(&whole, &w);
        local += weight * judge.local(&w);
        squares += weight * w.iter().map(|w| w * w).sum::<f64>();
    }
    let learned = Learned::new(evidence, &whole, label, features, Purpose::Predicting)?;
    let label_variance = learned.label_variance;
    let total: f64 = scores.iter().sum();
    let found = (local + total / n) / label_variance;
    let mean = total / k as f64;
    let of_scores = scores.iter().map(|score| (score - mean).powi(2)).sum::<f64>() / (k as f64 - 1.0);

    let label_noise = evidence.covariance_noise[label];
    let noisiest = evidence.covariance_noise.iter().copied().fold(0.0, f64::max);
    let with_own = if judge.own.contains(&true) { 4.0 * label_noise.powi(2) * squares } else { 0.0 };
    let of_moments = with_own + 2.0 * (noisiest * squares).powi(2);
    let of_sampling = 4.0 * label_variance.powi(2) * found.max(0.0) * (1.0 - found.min(1.0)).powi(2) / n;
    let of_rows = 2.0 * k as f64 * of_gram.max(of_scores) / (n * n);
    let of_label = 2.0 * (found * label_noise / label_variance).powi(2);
    // What clipping did, and what of the label lies beyond its box: anything from nothing to all of
    // it is lost.
    let (shift, of_clipping) = Losses::new(evidence, &learned, label, features).explained;
    // Weights from four fifths of the rows miss a quarter more than those from all.
    let (_, missed) = learned.weight_doubt(&learned.h_inverse, learned.explained());
    let estimate = found + shift + missed / (FOLDS - 1) as f64;
    let lost = estimate.max(0.0) * (1.0 - evidence.clipping[label].box_part.powi(-2));
    let variance = (of_rows + of_moments + of_sampling) / label_variance.powi(2)
        + of_clipping
        + of_label
        + lost * lost / 12.0;
    Ok(ExplainedShare {
        estimate: estimate - lost / 2.0,
        standard_error: variance.sqrt(),
        degrees: (k - 1).max(3),
    })
}
