//! R²: the explained share of the label's variance, by cross-fitting over mixed rows or over parts
//! of exchanged blocks
//! (docs/LEARNERS.md#r-of-posterior).

use faer::{Col, Mat};

use super::clipping::Losses;
use super::correlations::Purpose;
use super::evidence::{Between, Blocks, Evidence, FOLDS, Sample};
use super::learned::Learned;
use super::sharing;
use super::shifts::Shift;
use crate::learn::{Interval, LearnError, Level, Released, student};

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

    /// The mean and the standard deviation of a share that is known to be positive: a bell cut off
    /// at 0.
    pub(in crate::learn) fn within_range(&self) -> (f64, f64) {
        let error = self.standard_error.max(f64::MIN_POSITIVE);
        let z = self.estimate / error;
        // Far below 0 the cut bell is an exponential one.
        if z < -8.0 {
            return (-error / z, -error / z);
        }
        let height = (-0.5 * z * z).exp() / (2.0 * std::f64::consts::PI).sqrt();
        let hazard = height / student::distribution(z, f64::from(u32::MAX));
        let mean = self.estimate + error * hazard;
        (mean.min(1.0), error * (1.0 - hazard * (hazard + z)).max(0.0).sqrt())
    }
}

/// How what is between parties judges weights: a mixed row scores x′Nx, x the label and each
/// party's part of the prediction.
struct Judge<'a> {
    evidence: &'a Evidence<'a>,
    label: usize,
    features: &'a [usize],
    /// The parties of the label and of each part.
    parties: Vec<usize>,
    /// For each feature, the part that it belongs to.
    place: Vec<usize>,
    own: Vec<bool>,
    /// N: every product between parties over the people that they have in common.
    products: Mat<f64>,
}

impl<'a> Judge<'a> {
    fn new(evidence: &'a Evidence<'a>, label: usize, features: &'a [usize]) -> Self {
        let home = evidence.party_of(label);
        let of_features: Vec<usize> = features.iter().map(|&column| evidence.party_of(column)).collect();
        let mut parties = of_features.clone();
        parties.sort_unstable();
        parties.dedup();
        let place =
            of_features.iter().map(|of| parties.iter().position(|party| party == of).unwrap_or(0) + 1);
        let place = place.collect();
        let own = of_features.iter().map(|&party| party == home).collect();
        parties.insert(0, home);
        let products = Mat::from_fn(parties.len(), parties.len(), |i, j| {
            let shared = evidence.people.shared[(parties[i], parties[j])];
            match (i, j) {
                _ if i == j => 0.0,
                (0, b) | (b, 0) if parties[b] == home => 0.0,
                (0, _) | (_, 0) => 1.0 / shared,
                _ => -1.0 / shared,
            }
        });
        Self { evidence, label, features, parties, place, own, products }
    }

    /// The label and the parties' parts in one row.
    fn parts(&self, released: &Released<'_>, row: usize, w: &[f64]) -> Vec<f64> {
        let columns = released.columns();
        let value = |column: usize| self.evidence.people.value(column, columns[column][row]);
        let mut parts = vec![0.0; self.parties.len()];
        parts[0] = value(self.label);
        for (j, &feature) in self.features.iter().enumerate() {
            parts[self.place[j]] += value(feature) * w[j];
        }
        parts
    }

    fn score(&self, released: &Released<'_>, row: usize, w: &[f64]) -> f64 {
        let parts = self.parts(released, row, w);
        let x = Col::from_fn(parts.len(), |i| parts[i]);
        x.transpose() * &self.products * &x
    }

    /// From features and the label to parts.
    fn loading(&self, w: &[f64]) -> Mat<f64> {
        let d = self.features.len();
        Mat::from_fn(d + 1, self.parties.len(), |i, part| match (i == d, part) {
            (true, 0) => 1.0,
            (false, part) if part == self.place[i] => w[i],
            _ => 0.0,
        })
    }

    /// Variance of a row's score if rows are bell-shaped, from the products of their columns
    /// (features, then label).
    fn score_variance(&self, sample: &Sample, w: &[f64]) -> f64 {
        let (d, loading) = (self.features.len(), self.loading(w));
        let covariance = loading.transpose() * sample.gram.submatrix(0, 0, d + 1, d + 1) * &loading;
        let product = &self.products * covariance * faer::Scale(1.0 / sample.k);
        let size = product.nrows();
        2.0 * (0..size)
            .map(|i| (0..size).map(|j| product[(i, j)] * product[(j, i)]).sum::<f64>())
            .sum::<f64>()
    }

    /// What exchanged blocks say of the weights: covariances with the label and between features of
    /// different parties.
    fn of_blocks(&self, part: &Sample, w: &[f64]) -> f64 {
        let d = self.features.len();
        let mut explained = 0.0;
        for i in 0..d {
            if !self.own[i] {
                explained += 2.0 * w[i] * part.gram[(i, d)];
            }
            for j in (0..i).filter(|&j| self.place[i] != self.place[j]) {
                explained -= 2.0 * w[i] * part.gram[(i, j)] * w[j];
            }
        }
        explained / part.k
    }

    /// Variance of that by the noise in all of the blocks.
    fn noise_of_blocks(&self, blocks: &Blocks, w: &[f64]) -> f64 {
        let mut variance = 0.0;
        for (i, &feature) in self.features.iter().enumerate() {
            if !self.own[i] {
                variance += (2.0 * w[i] * blocks.noise[(feature, self.label)]).powi(2);
            }
            for (j, &other) in self.features[..i].iter().enumerate() {
                if self.place[i] != self.place[j] {
                    variance += (2.0 * w[i] * w[j] * blocks.noise[(feature, other)]).powi(2);
                }
            }
        }
        variance
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

/// Weights from four fifths of the evidence, judged by the rest.
struct Judged {
    /// What is explained of the label's variance: by what is between parties, and by moments.
    between: f64,
    local: f64,
    /// Variance of `between`, with that of what is taken out because shared people differ from
    /// others.
    variance: f64,
    /// Mean of the squared length of the weights.
    squares: f64,
}

impl Judged {
    fn new(judge: &Judge<'_>, parts: &[Sample], whole: &Sample) -> Result<Self, LearnError> {
        let Judge { evidence, label, features, .. } = *judge;
        let mut weights = Vec::with_capacity(parts.len());
        let (mut local, mut squares, mut of_moved) = (0.0, 0.0, 0.0);
        for part in parts {
            let others = whole.without(part);
            let learned = Learned::new(evidence, &others, label, features, Purpose::Predicting)?;
            let w = learned.weights();
            let weight = part.k / whole.k;
            let selected = (learned.lost.transpose() * &learned.w).powi(2) * learned.label_variance;
            let moved = moved(&learned);
            of_moved += weight * moved.variance * learned.label_variance.powi(2);
            local += weight * (judge.local(&w) + selected - moved.mean * learned.label_variance);
            squares += weight * w.iter().map(|w| w * w).sum::<f64>();
            weights.push(w);
        }
        let (between, variance) = match &evidence.between {
            Between::Mixed(released) => by_rows(judge, released, parts, whole, &weights),
            Between::Exchanged(blocks) => by_blocks(judge, blocks, parts, &weights),
        };
        Ok(Self { between, local, variance: variance + of_moved, squares })
    }
}

/// The sum of the scores of mixed rows, each judging the weights from the parts without it, and its
/// variance: that of the scores, or of bell-shaped rows if larger.
fn by_rows(
    judge: &Judge<'_>,
    released: &Released<'_>,
    parts: &[Sample],
    whole: &Sample,
    weights: &[Vec<f64>],
) -> (f64, f64) {
    let k = released.k();
    let mut scores = vec![0.0; k];
    let mut of_gram = 0.0;
    for (fold, (part, w)) in parts.iter().zip(weights).enumerate() {
        for row in (fold..k).step_by(FOLDS) {
            scores[row] = judge.score(released, row, w);
        }
        of_gram += part.k / whole.k * judge.score_variance(whole, w);
    }
    let total: f64 = scores.iter().sum();
    let mean = total / k as f64;
    let of_scores = scores.iter().map(|score| (score - mean).powi(2)).sum::<f64>() / (k as f64 - 1.0);
    (total, 2.0 * k as f64 * of_gram.max(of_scores))
}

/// The same of parts of blocks.
fn by_blocks(judge: &Judge<'_>, blocks: &Blocks, parts: &[Sample], weights: &[Vec<f64>]) -> (f64, f64) {
    let count = parts.len() as f64;
    let (mut total, mut variance) = (0.0, 0.0);
    for (part, w) in parts.iter().zip(weights) {
        total += judge.of_blocks(part, w) / count;
        variance += judge.noise_of_blocks(blocks, w) / count;
    }
    (total, 2.0 * variance)
}

/// What scores hold because the people that two parties have in common differ from others: the
/// products of the means of the label and of the parties' parts over these people, in the label's
/// variance.
fn moved(learned: &Learned) -> Shift {
    let Learned { white, w, shifts, home, .. } = learned;
    let mut parties = white.party.clone();
    parties.dedup();
    let part = |party: usize, other: usize| {
        let mine = (0..w.nrows()).filter(|&i| white.party[i] == party);
        mine.fold(Shift::NONE, |sum, i| {
            let shift = shifts.of(i, other);
            Shift {
                mean: sum.mean + w[i] * shift.mean,
                variance: sum.variance + w[i].powi(2) * shift.variance,
            }
        })
    };
    let mut moved = Shift::NONE;
    let mut add = |sign: f64, product: Shift| {
        moved.mean += 2.0 * sign * product.mean;
        moved.variance += 4.0 * product.variance;
    };
    for (at, &party) in parties.iter().enumerate() {
        if party != *home {
            add(1.0, part(party, *home).times(shifts.of_label(party)));
        }
        for &other in &parties[..at] {
            add(-1.0, part(party, other).times(part(other, party)));
        }
    }
    moved
}

/// What share of the label's variance the regression explains on fresh data. Weights come from four
/// fifths of the evidence and are judged by the rest.
pub fn explained_share(
    evidence: &Evidence<'_>,
    label: usize,
    features: &[usize],
) -> Result<ExplainedShare, LearnError> {
    evidence.between.check_choice(label, features)?;
    let judge = Judge::new(evidence, label, features);
    // Products of the rows of each part: those of any other choice of parts are sums of them.
    let parts = Sample::parts(evidence, label, features);
    let whole = Sample::union(&parts);
    let judged = Judged::new(&judge, &parts, &whole)?;
    let learned = Learned::new(evidence, &whole, label, features, Purpose::Predicting)?;
    let label_variance = learned.label_variance;
    let people = &evidence.people;
    let judging = judge.parties.iter().map(|&party| people.shared[(party, learned.home)]);
    let n = judging.fold(f64::INFINITY, f64::min) * learned.label_rate;
    let found = (judged.local + judged.between) / label_variance - learned.fitted_by_chance(n);

    let squares = judged.squares;
    let label_noise = evidence.covariance_noise[label];
    let noisiest = evidence.covariance_noise.iter().copied().fold(0.0, f64::max);
    let with_own = if judge.own.contains(&true) { 4.0 * label_noise.powi(2) * squares } else { 0.0 };
    let of_moments = with_own + 2.0 * (noisiest * squares).powi(2);
    let of_sampling = 4.0 * label_variance.powi(2) * found.max(0.0) * (1.0 - found.min(1.0)).powi(2) / n;
    let of_label = 2.0 * (found * label_noise / label_variance).powi(2);
    // What clipping did, and what of the label lies beyond its box: anything from nothing to all of
    // it is lost.
    let (shift, of_clipping) = Losses::new(evidence, &learned, label, features).explained;
    let of_people: f64 = sharing::doubts(evidence, &learned, label, features)
        .iter()
        .map(|doubt| doubt.explained.powi(2))
        .sum();
    // Weights from four fifths of the evidence miss a quarter more than those from all.
    let (_, missed) = learned.weight_doubt(&learned.h_inverse, learned.explained());
    let estimate = found + shift + missed / (FOLDS - 1) as f64;
    let lost = estimate.max(0.0) * (1.0 - evidence.clipping[label].box_part.powi(-2));
    let variance = (judged.variance + of_moments + of_sampling) / label_variance.powi(2)
        + of_clipping
        + of_people
        + of_label
        + lost * lost / 12.0;
    Ok(ExplainedShare {
        estimate: estimate - lost / 2.0,
        standard_error: variance.sqrt(),
        degrees: evidence.between.degrees(),
    })
}
