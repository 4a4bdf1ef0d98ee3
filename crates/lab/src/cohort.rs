//! Who holds whom, and which values are missing.

use potluck_core::encoding::MISSING_LEVEL;
use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::holdings::{Column, Holdings};
use crate::population::{Placement, Population};
use crate::seeds::Seed;
use crate::synthetic::uniform;

/// Whose values decide who is a member of which party; everybody else's membership is random.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Chosen {
    /// The label's party has more of those whose x1 is large.
    LabelsByFeature,
    /// The party of x1 has.
    FirstByFeature,
    /// The party of x1 has more of those whose label is large.
    FirstByLabel,
}

/// How parties and tables differ from everybody with every value.
#[derive(Clone, Copy)]
pub(crate) struct Cohort {
    pub(crate) name: &'static str,
    /// The share of everybody whom each party holds.
    share: f64,
    chosen: Option<Chosen>,
    /// The share of the first party's ids that are somebody else's, whom nobody holds.
    mistyped: f64,
    /// The share of values that are missing.
    missing: f64,
    /// Whether large values are missing more.
    by_value: bool,
}

impl Cohort {
    const EVERYBODY: Self =
        Self { name: "everybody", share: 1.0, chosen: None, mistyped: 0.0, missing: 0.0, by_value: false };

    pub(crate) fn all() -> Vec<Self> {
        let overlap = |name, share| Self { name, share, ..Self::EVERYBODY };
        let chosen = |name, chosen| Self { name, share: 0.5, chosen: Some(chosen), ..Self::EVERYBODY };
        let mistyped = |name, mistyped| Self { name, mistyped, ..Self::EVERYBODY };
        let missing = |name, missing| Self { name, missing, ..Self::EVERYBODY };
        vec![
            Self::EVERYBODY,
            overlap("overlap 80%", 0.8),
            overlap("overlap 50%", 0.5),
            overlap("overlap 20%", 0.2),
            chosen("selected by x1, label's party", Chosen::LabelsByFeature),
            chosen("selected by x1, its party", Chosen::FirstByFeature),
            chosen("selected by the label, x1's party", Chosen::FirstByLabel),
            mistyped("mistyped 10%", 0.1),
            mistyped("mistyped 30%", 0.3),
            missing("missing 10%", 0.1),
            missing("missing 30%", 0.3),
            Self { by_value: true, ..missing("missing by value 10%", 0.1) },
            Self { by_value: true, ..missing("missing by value 30%", 0.3) },
        ]
    }

    /// Whether each party holds as many people as any other, so that releases of format 1 can be
    /// made of them.
    pub(crate) fn is_even(&self) -> bool {
        self.chosen.is_none()
    }

    /// Tables of about n people at each party.
    pub(crate) fn holdings(
        &self,
        population: &Population,
        n: usize,
        placement: Placement,
        seed: Seed,
    ) -> Holdings {
        let everybody = (n as f64 / self.share).round() as usize;
        let mut rng = Xoshiro256PlusPlus::from_seed(seed.of("cohort").bytes());
        let mut parties = population.parties(everybody, placement, seed);
        if self.missing > 0.0 {
            parties.iter_mut().flatten().for_each(|column| self.lose(column, &mut rng));
        }
        if self.share >= 1.0 && self.mistyped <= 0.0 {
            return Holdings::new(everybody, parties);
        }
        let index = |party: usize| self.index_of(party, &parties);
        let mut held: Vec<Vec<usize>> = (0..parties.len())
            .map(|party| members(everybody, n, index(party).as_deref(), &mut rng))
            .collect();
        // Somebody else's id is that of a double whom nobody else holds.
        let mut doubled = Vec::new();
        for member in &mut held[0] {
            if share(&mut rng) < self.mistyped {
                doubled.push(*member);
                *member = everybody + doubled.len() - 1;
            }
        }
        parties.iter_mut().flatten().for_each(|column| column.double(&doubled));
        Holdings::new(everybody + doubled.len(), parties).held_by(held)
    }

    /// What decides who is a member of a party, in standard deviations.
    fn index_of(&self, party: usize, parties: &[Vec<Column>]) -> Option<Vec<f64>> {
        let (chooser, by) = match self.chosen? {
            Chosen::LabelsByFeature => (parties.len() - 1, parties[0].first()),
            Chosen::FirstByFeature => (0, parties[0].first()),
            Chosen::FirstByLabel => (0, parties[parties.len() - 1].last()),
        };
        if party == chooser { by.map(standardised) } else { None }
    }

    /// Makes values of a column missing.
    fn lose(&self, column: &mut Column, rng: &mut Xoshiro256PlusPlus) {
        let gone: Vec<bool> = if self.by_value {
            let index = standardised(column);
            let middle = middle_of(&index, self.missing);
            index.iter().map(|z| share(rng) < logistic(middle + z)).collect()
        } else {
            (0..column.len()).map(|_| share(rng) < self.missing).collect()
        };
        column.lose(&gone);
    }
}

/// n of everybody at random, or more of those with a large index.
fn members(everybody: usize, n: usize, index: Option<&[f64]>, rng: &mut Xoshiro256PlusPlus) -> Vec<usize> {
    if let Some(index) = index {
        let middle = middle_of(index, n as f64 / everybody as f64);
        let chosen = |(at, z): (usize, &f64)| (share(rng) < logistic(middle + z)).then_some(at);
        return index.iter().enumerate().filter_map(chosen).collect();
    }
    // As many as are wanted of those that are left (Knuth's algorithm S).
    let mut rows = Vec::with_capacity(n);
    for at in 0..everybody {
        if share(rng) * ((everybody - at) as f64) < (n - rows.len()) as f64 {
            rows.push(at);
        }
    }
    rows
}

/// The values of these people.
fn rows<T: Copy>(values: &[T], people: &[usize]) -> Vec<T> {
    people.iter().map(|&at| values[at]).collect()
}

/// A uniform number in [0, 1).
fn share(rng: &mut Xoshiro256PlusPlus) -> f64 {
    f64::midpoint(1.0, uniform(rng))
}

fn logistic(z: f64) -> f64 {
    1.0 / (1.0 + (-z).exp())
}

/// What added to an index gives so many in the mean.
fn middle_of(index: &[f64], wanted: f64) -> f64 {
    let (mut low, mut high) = (-12.0, 12.0);
    for _ in 0..40 {
        let middle = f64::midpoint(low, high);
        let found = index.iter().map(|z| logistic(middle + z)).sum::<f64>() / index.len() as f64;
        if found < wanted { low = middle } else { high = middle }
    }
    f64::midpoint(low, high)
}

/// A column in standard deviations about its mean.
fn standardised(column: &Column) -> Vec<f64> {
    let values: Vec<f64> = match column {
        Column::Numbers { values, .. } => values.clone(),
        Column::Levels { codes, .. } => codes.iter().map(|&code| f64::from(code)).collect(),
    };
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let spread = (values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n).sqrt();
    values.iter().map(|x| (x - mean) / spread.max(f64::MIN_POSITIVE)).collect()
}

impl Column {
    fn len(&self) -> usize {
        match self {
            Self::Numbers { values, .. } => values.len(),
            Self::Levels { codes, .. } => codes.len(),
        }
    }

    /// Adds the values of these people once more.
    fn double(&mut self, people: &[usize]) {
        match self {
            Self::Numbers { values, .. } => values.extend_from_slice(&rows(values, people)),
            Self::Levels { codes, .. } => codes.extend_from_slice(&rows(codes, people)),
        }
    }

    fn lose(&mut self, gone: &[bool]) {
        match self {
            Self::Numbers { values, .. } => {
                values
                    .iter_mut()
                    .zip(gone)
                    .filter(|(_, gone)| **gone)
                    .for_each(|(value, _)| *value = f64::NAN);
            }
            Self::Levels { codes, .. } => {
                let lost = codes.iter_mut().zip(gone).filter(|(_, gone)| **gone);
                lost.for_each(|(code, _)| *code = MISSING_LEVEL);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_are_chosen_as_are_wanted() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(4);
        let rows = members(1_000, 200, None, &mut rng);
        assert_eq!(rows.len(), 200);
        assert!(rows.windows(2).all(|pair| pair[0] < pair[1]), "nobody twice");
        let index: Vec<f64> = (0..20_000).map(|at| f64::from(at) / 10_000.0 - 1.0).collect();
        let rows = members(index.len(), 5_000, Some(&index), &mut rng);
        assert!(rows.len().abs_diff(5_000) < 300, "{}", rows.len());
        let mean = rows.iter().map(|&row| index[row]).sum::<f64>() / rows.len() as f64;
        assert!(mean > 0.15, "those with a large index more often: {mean}");
    }
}
