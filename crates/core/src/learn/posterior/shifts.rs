//! How the people that two parties have in common differ from all of a party's, and what that means
//! for the label's (docs/LEARNERS.md#different-people).

use faer::{Col, Mat, Side};

use super::evidence::{Evidence, Sample};
use super::whiten::Whitened;

/// Prior probability that an overlap is not a random part of a party's people.
const SELECTED: f64 = 0.5;
/// Prior variances of a shift that are tried, as shares of the largest.
const SCALES: (f64, usize) = (1e-3, 12);
/// Largest square of what selection takes from the features' variance.
const MOST_SELECTED: f64 = 0.8;

/// Means over the people that a party shares with another less those over all of its own, in
/// standard deviations, as far as they are believed: for each other party, of every coordinate, and
/// of the label. None where there can be none.
pub(super) struct Shifts {
    coordinates: Vec<Vec<Shift>>,
    label: Vec<Shift>,
}

/// A shift of a mean with the variance of its error.
#[derive(Clone, Copy)]
pub(super) struct Shift {
    pub(super) mean: f64,
    pub(super) variance: f64,
}

impl Shift {
    pub(super) const NONE: Self = Self { mean: 0.0, variance: 0.0 };

    /// The product of two shifts: its mean and its variance, if their errors have nothing in
    /// common.
    pub(super) fn times(self, other: Self) -> Self {
        let square = |of: Self| of.mean * of.mean + of.variance;
        let mean = self.mean * other.mean;
        Self { mean, variance: square(self) * square(other) - mean * mean }
    }
}

/// The label as the mixed rows hold it: its party, the length of its column, and the variance of a
/// row.
pub(super) struct LabelRows {
    pub(super) home: usize,
    pub(super) length: f64,
    pub(super) spread: f64,
}

impl Shifts {
    /// `lengths` are those of the mixed rows along the coordinates.
    ///
    /// Noise in two shifts is as large as that in the product between parties that they correct, or
    /// larger where few people are shared, so what is not believed of them is not taken out.
    pub(super) fn new(
        evidence: &Evidence<'_>,
        sample: &Sample,
        white: &Whitened,
        lengths: &[f64],
        label: &LabelRows,
    ) -> Self {
        let (people, d, k) = (&evidence.people, lengths.len(), sample.k);
        let mut found = Self { coordinates: Vec::new(), label: Vec::new() };
        for (other, presence) in people.presence.iter().enumerate() {
            let at = d + 1 + other;
            let length = sample.gram[(at, at)].sqrt();
            let spread = sample.scaled(people.held[other]) / k + presence.noise.powi(2);
            let shift = |party: usize, product: f64, own_length: f64, own_spread: f64| {
                if party == other || people.is_complete(party, other) {
                    return None;
                }
                let shared = sample.scaled(people.shared[(other, party)]);
                let both = own_spread * spread;
                let mean = product / (own_length * length) * both.sqrt() * k / shared;
                Some(Shift { mean, variance: both * k / (shared * shared) })
            };
            let along = &white.transform * sample.gram.col(at).subrows(0, d);
            let of = |i: usize| shift(white.party[i], along[i], lengths[i], white.spreads[i]);
            let share = |party: usize| people.shared[(party, other)] / people.held[party];
            let mut coordinates = vec![Shift::NONE; d];
            let mut parties = white.party.clone();
            parties.dedup();
            for party in parties {
                let (places, seen): (Vec<usize>, Vec<Shift>) =
                    (0..d).filter(|&i| white.party[i] == party).filter_map(|i| Some((i, of(i)?))).unzip();
                let (most, _) = selection(share(party));
                for (i, shift) in places.into_iter().zip(believed(&seen, most)) {
                    coordinates[i] = shift;
                }
            }
            found.coordinates.push(coordinates);
            let of_label = shift(label.home, sample.gram[(d, at)], label.length, label.spread);
            let (most, _) = selection(share(label.home));
            let of_label = of_label.and_then(|seen| believed(&[seen], most).pop());
            found.label.push(of_label.unwrap_or(Shift::NONE));
        }
        found
    }

    /// The shift of a coordinate on the people shared with a party.
    pub(super) fn of(&self, coordinate: usize, party: usize) -> Shift {
        self.coordinates.get(party).map_or(Shift::NONE, |of| of[coordinate])
    }

    /// The shift of the label on the people shared with a party.
    pub(super) fn of_label(&self, party: usize) -> Shift {
        self.label.get(party).copied().unwrap_or(Shift::NONE)
    }

    /// What the label's people are like: by how much less features vary among them, as a vector
    /// whose square is lost. `share` is the part of a party's people that the label's party holds.
    pub(super) fn lost(&self, white: &Whitened, home: usize, share: impl Fn(usize) -> f64) -> Col<f64> {
        let of = |i: usize| {
            let (_, theta) = selection(share(white.party[i]));
            self.of(i, home).mean * theta.sqrt()
        };
        let lost = Col::from_fn(white.party.len(), of);
        let square = lost.squared_norm_l2();
        if square > MOST_SELECTED { lost * faer::Scale((MOST_SELECTED / square).sqrt()) } else { lost }
    }
}

/// By how much the mean of a column over the people that its party shares with another differs from
/// that over all of its own, in standard deviations of the column.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ColumnShift {
    /// The column.
    pub column: usize,
    /// The other party.
    pub party: usize,
    /// The difference.
    pub shift: f64,
    /// Its standard error.
    pub standard_error: f64,
}

/// All shifts of columns that can be: none where everybody is everywhere.
pub fn column_shifts(evidence: &Evidence<'_>) -> Vec<ColumnShift> {
    let people = &evidence.people;
    let k = evidence.released.k() as f64;
    let mut found = Vec::new();
    for (column, released) in evidence.released.columns().iter().enumerate() {
        let home = evidence.party_of(column);
        let variance = evidence.covariance[(column, column)].max(3.0 * evidence.covariance_noise[column]);
        let own_spread =
            people.held[home] / k / people.rates[column] + evidence.noise(column).powi(2) / variance;
        for (party, presence) in people.presence.iter().enumerate() {
            if party == home || people.is_complete(home, party) {
                continue;
            }
            let (mut product, mut own, mut other) = (0.0, 0.0, 0.0);
            for (&value, present) in released.iter().zip(&presence.rows) {
                let value = people.value(column, value);
                product += value * present;
                own += value * value;
                other += present * present;
            }
            let both = own_spread * (people.held[party] / k + presence.noise.powi(2));
            let shared = people.shared[(home, party)];
            let cosine = product / (own * other).sqrt().max(f64::MIN_POSITIVE);
            found.push(ColumnShift {
                column,
                party,
                shift: cosine * both.sqrt() * k / shared,
                standard_error: (both * k).sqrt() / shared,
            });
        }
    }
    found
}

/// As much of what is lost as leaves a matrix that is not nearly singular.
pub(super) fn clear_of_singular(whole: &Mat<f64>, mut lost: Col<f64>) -> Col<f64> {
    let smallest = |matrix: &Mat<f64>| {
        matrix.self_adjoint_eigenvalues(Side::Lower).ok().and_then(|values| values.first().copied())
    };
    let least = 0.1 * smallest(whole).unwrap_or(1.0).min(1.0);
    for _ in 0..20 {
        let left = whole - &lost * lost.transpose();
        if smallest(&left).is_some_and(|smallest| smallest > least) {
            break;
        }
        lost *= faer::Scale(0.8);
    }
    lost
}

/// Gaussian selection of a share of the people: largest shift of a mean in standard deviations, and
/// loss of variance for each squared shift (Pearson 1903; Aitken 1934; Lawley 1943).
fn selection(share: f64) -> (f64, f64) {
    let share = share.clamp(1e-3, 0.999);
    let alpha = normal_quantile(share);
    let most = (-0.5 * alpha * alpha).exp() / (2.0 * std::f64::consts::PI).sqrt() / share;
    (most, 1.0 + alpha / most)
}

/// The x that a bell is below with this probability.
fn normal_quantile(probability: f64) -> f64 {
    let below = |x: f64| 0.5 * libm::erfc(-x * std::f64::consts::FRAC_1_SQRT_2);
    let (mut low, mut high) = (-10.0, 10.0);
    for _ in 0..80 {
        let middle = f64::midpoint(low, high);
        if below(middle) < probability { low = middle } else { high = middle }
    }
    f64::midpoint(low, high)
}

/// Posterior means and variances of shifts: none with probability 1 − [`SELECTED`], else N(0, g), g
/// on a grid.
fn believed(shifts: &[Shift], most: f64) -> Vec<Shift> {
    let (low, count) = SCALES;
    let grid: Vec<f64> =
        (0..count).map(|i| most * most * low.powf(1.0 - i as f64 / (count - 1) as f64)).collect();
    // Of each g, the likelihood over that of no shift.
    let log = |g: &f64| -> f64 {
        let of = |Shift { mean, variance }: &Shift| {
            -0.5 * ((1.0 + g / variance).ln() - mean * mean * (1.0 / variance - 1.0 / (g + variance)))
        };
        shifts.iter().map(of).sum()
    };
    let logs: Vec<f64> = grid.iter().map(log).collect();
    let largest = logs.iter().copied().fold(0.0, f64::max);
    let weights: Vec<f64> = logs.iter().map(|log| (log - largest).exp() * SELECTED / count as f64).collect();
    let total = weights.iter().sum::<f64>() + (-largest).exp() * (1.0 - SELECTED);
    let posterior = |Shift { mean, variance }: &Shift| {
        let (mut first, mut second) = (0.0, 0.0);
        for (weight, g) in weights.iter().zip(&grid) {
            let factor = g / (g + variance);
            first += weight / total * factor * mean;
            second += weight / total * ((factor * mean).powi(2) + factor * variance);
        }
        Shift { mean: first, variance: (second - first * first).max(0.0) }
    };
    let found: Vec<Shift> = shifts.iter().map(posterior).collect();
    let size = found.iter().map(|shift| shift.mean * shift.mean).sum::<f64>().sqrt();
    let keep = (most / size.max(1e-300)).min(1.0);
    found.into_iter().map(|shift| Shift { mean: shift.mean * keep, ..shift }).collect()
}
