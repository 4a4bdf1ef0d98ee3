//! Who is where: how many people each party holds and any two have in common, and which of their
//! values are missing (docs/LEARNERS.md#different-people).

use faer::Mat;

use super::overlaps::{Overlap, Pair, cosines, shares};
use crate::learn::{PresentValues, Released};

/// Smallest share of a party's people that is believed to have a value, and any two values.
const LEAST_RATE: (f64, f64) = (0.01, 1e-4);

/// Share of missing values beyond which it matters why they are missing.
const MANY_MISSING: f64 = 0.2;

/// What a release in buckets says of a party's people.
#[derive(Debug, Clone)]
pub struct PartyPeople<'a> {
    /// People in each bucket, with noise.
    pub presence: &'a [f64],
    /// Standard deviation of that noise.
    pub presence_noise: f64,
    /// How many of them have which values.
    pub values: &'a PresentValues,
}

/// What is declared of the people that two parties have in common, as a share of the smaller one's;
/// anything where nothing is.
#[derive(Debug, Clone, Default)]
pub struct DeclaredOverlaps {
    study: Option<[f64; 2]>,
    pairs: Vec<((usize, usize), [f64; 2])>,
}

impl DeclaredOverlaps {
    /// The same range for all pairs of parties.
    pub fn of_all(range: [f64; 2]) -> Self {
        Self { study: Some(range), pairs: Vec::new() }
    }

    /// Adds the range of two parties, which goes before that of all.
    #[must_use]
    pub fn with(mut self, (one, other): (usize, usize), range: [f64; 2]) -> Self {
        self.pairs.push(((one.min(other), one.max(other)), range));
        self
    }

    fn of(&self, one: usize, other: usize) -> [f64; 2] {
        let pair = (one.min(other), one.max(other));
        let declared = self.pairs.iter().rev().find(|(of, _)| *of == pair).map(|&(_, range)| range);
        declared.or(self.study).unwrap_or([0.0, 1.0])
    }
}

/// A party's presence about its mean.
#[derive(Debug, Clone)]
pub(super) struct Presence {
    pub(super) rows: Vec<f64>,
    pub(super) noise: f64,
}

/// Who is where, as the learner takes it.
#[derive(Debug, Clone)]
pub struct People {
    /// How many people each party holds, and the standard deviation of the noise in that.
    pub(super) held: Vec<f64>,
    held_errors: Vec<f64>,
    /// How many any two parties have in common, and the standard deviation of its logarithm.
    pub(super) shared: Mat<f64>,
    pub(super) doubts: Mat<f64>,
    /// Whether it is certain that they have all of the smaller one's in common.
    complete: Vec<bool>,
    /// What the presence of each two parties says.
    overlaps: Vec<Overlap>,
    /// By column, the share of a party's people whose value is present, and its relative error.
    pub(super) rates: Vec<f64>,
    pub(super) rate_errors: Vec<f64>,
    /// For each two columns of a party, the share of its people at whom both are present.
    pub(super) joint: Mat<f64>,
    /// Means of the mixed columns, which are taken out.
    means: Vec<f64>,
    /// Of each party; none where everybody is everywhere.
    pub(super) presence: Vec<Presence>,
}

impl People {
    /// All parties hold the same n people, and no value is missing.
    pub fn everywhere(released: &Released<'_>, parties: usize) -> Self {
        let (n, columns) = (released.n() as f64, released.columns().len());
        Self {
            held: vec![n; parties],
            held_errors: vec![0.0; parties],
            shared: Mat::from_fn(parties, parties, |_, _| n),
            doubts: Mat::zeros(parties, parties),
            complete: vec![true; parties * parties],
            overlaps: Vec::new(),
            rates: vec![1.0; columns],
            rate_errors: vec![0.0; columns],
            joint: Mat::from_fn(columns, columns, |_, _| 1.0),
            means: vec![0.0; columns],
            presence: Vec::new(),
        }
    }

    /// What releases in buckets say, given with the columns of each party.
    pub fn of_parties(
        released: &Released<'_>,
        parties: &[(Vec<usize>, PartyPeople<'_>)],
        declared: &DeclaredOverlaps,
    ) -> Self {
        let mut people = Self::everywhere(released, parties.len());
        let k = released.k() as f64;
        let mean = |values: &[f64]| values.iter().sum::<f64>() / k;
        people.means = released.columns().iter().map(|column| mean(column)).collect();
        for (party, (members, of)) in parties.iter().enumerate() {
            people.count(party, members, of, k);
            let middle = mean(of.presence);
            let rows = of.presence.iter().map(|value| value - middle).collect();
            people.presence.push(Presence { rows, noise: of.presence_noise });
        }
        people.compare(declared, k);
        people
    }

    /// How many people a party holds, which its presence adds up to, and how often values and pairs
    /// of values are present.
    fn count(&mut self, party: usize, members: &[usize], of: &PartyPeople<'_>, k: f64) {
        let (mut n, mut of_n) = (of.presence.iter().sum::<f64>(), of.presence_noise * k.sqrt());
        let PresentValues { may_miss, counts, pairs } = of.values;
        if let Some(always) = may_miss.iter().position(|&miss| !miss) {
            let (count, error) = counts[always];
            let precision = (of_n.powi(-2), error.powi(-2));
            n = (n * precision.0 + count * precision.1) / (precision.0 + precision.1);
            of_n = (precision.0 + precision.1).sqrt().recip();
        }
        self.held_errors[party] = of_n;
        // What noise hides says nothing of the number of people.
        n = n.max(of_n).max(1.0);
        self.held[party] = n;
        for (at, &column) in members.iter().enumerate() {
            if may_miss[at] {
                let (count, error) = counts[at];
                self.rates[column] = (count / n).clamp(LEAST_RATE.0, 1.0);
                self.rate_errors[column] = error / count.max(1.0);
            }
        }
        for (i, &row) in members.iter().enumerate() {
            for (j, &column) in members.iter().enumerate() {
                let (one, other) = (self.rates[row], self.rates[column]);
                let least = (one + other - 1.0).max(LEAST_RATE.1);
                let both = (pairs[i * members.len() + j] / n).clamp(LEAST_RATE.1, 1.0);
                let both = both.max(least).min(one.min(other));
                self.joint[(row, column)] = if i == j { one } else { both };
            }
        }
    }

    /// How many people any two parties have in common.
    fn compare(&mut self, declared: &DeclaredOverlaps, k: f64) {
        let parties = self.held.len();
        let cosines = cosines(&self.presence);
        let mut pairs = Vec::new();
        for one in 0..parties {
            self.shared[(one, one)] = self.held[one];
            for other in 0..one {
                let range = declared.of(one, other);
                let complete = range[0] >= 1.0;
                self.complete[one * parties + other] = complete;
                self.complete[other * parties + one] = complete;
                let held = (self.held[other], self.held[one]);
                let noise = (self.presence[other].noise, self.presence[one].noise);
                pairs.push(Pair::new((other, one), cosines[(one, other)], held, noise, k, range));
            }
        }
        for (pair, chances) in pairs.iter().zip(shares(&pairs, &cosines)) {
            let (overlap, doubt) = pair.posterior(&chances);
            let (one, other) = overlap.parties;
            for place in [(one, other), (other, one)] {
                self.shared[place] = overlap.people;
                self.doubts[place] = doubt;
            }
            self.overlaps.push(overlap);
        }
    }

    /// Whether it is certain that two parties have all of the smaller one's people in common.
    pub(super) fn is_complete(&self, one: usize, other: usize) -> bool {
        self.complete[one * self.held.len() + other]
    }

    /// A mixed value about its column's mean, over the share of values that are present.
    pub(super) fn value(&self, column: usize, released: f64) -> f64 {
        (released - self.means[column]) / self.rates[column]
    }

    /// How many people each party holds.
    pub fn held(&self) -> &[f64] {
        &self.held
    }

    /// What each two parties have in common; nothing where all hold the same people by the study's
    /// definition.
    pub fn overlaps(&self) -> &[Overlap] {
        &self.overlaps
    }

    /// What two parties have in common.
    pub fn overlap(&self, one: usize, other: usize) -> Option<&Overlap> {
        let pair = (one.min(other), one.max(other));
        self.overlaps.iter().find(|overlap| overlap.parties == pair)
    }

    /// By column, the share of values that are missing.
    pub fn missing(&self, column: usize) -> f64 {
        1.0 - self.rates[column]
    }

    /// By column of a party, the standard deviation of the noise in that share: of the count of its
    /// values, and of how many people the party holds.
    pub fn missing_error(&self, party: usize, column: usize) -> f64 {
        let of_people = self.held_errors[party] / self.held[party];
        self.rates[column] * (self.rate_errors[column].powi(2) + of_people * of_people).sqrt()
    }

    /// Standard deviation of the noise in how many people each party holds.
    pub fn held_error(&self, party: usize) -> f64 {
        self.held_errors[party]
    }

    /// Whether so many values are missing that it matters why.
    pub fn is_often_missing(&self, column: usize) -> bool {
        self.missing(column) > MANY_MISSING
    }
}
