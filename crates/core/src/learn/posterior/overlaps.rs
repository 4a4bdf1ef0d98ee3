//! How many people two parties have in common, from how alike the numbers of their people in
//! buckets are (docs/LEARNERS.md#different-people).

use faer::Mat;

use super::people::Presence;
use super::shrink::normalised;
use crate::learn::Interval;

/// Prior probability that all of the smaller party's people are in the larger one, where that is
/// not ruled out.
const ALL: f64 = 0.25;
/// Smallest share of the smaller party that two parties are believed to have in common.
const LEAST: f64 = 0.005;
/// Where the shares of all pairs of parties may lie, and how far apart they may be.
const LEVELS: (f64, f64, usize) = (0.025, 0.975, 20);
const ALIKE: [f64; 4] = [0.02, 0.07, 0.2, f64::INFINITY];
/// Prior probability that everybody is everywhere, where that is not ruled out.
const EVERYWHERE: f64 = 0.25;
/// Shares that are tried.
const GRID: usize = 400;
/// Cosines are no nearer to 1 than this.
const MOST_COSINE: f64 = 0.9999;
/// Largest standard deviation of the logarithm of an overlap that counts.
const MOST_DOUBT: f64 = 1.5;
/// Standard deviations from which on something is taken for certain.
const SURE: f64 = 3.0;
/// The same for an interval of 95%.
const TWO_SIDED: f64 = 1.959_963_984_540_054;
/// Errors that all pairs have in common: up to so many standard errors, in so many steps; and their
/// largest share of the variance.
const IN_COMMON: (f64, usize) = (3.0, 13);
const MOST_IN_COMMON: f64 = 0.9;

/// What the presence of two parties says of the people that they have in common.
#[derive(Debug, Clone, PartialEq)]
pub struct Overlap {
    /// The parties.
    pub parties: (usize, usize),
    /// How many people they are taken to have in common, given all pairs and what is declared.
    pub people: f64,
    /// The same as a share of the smaller party.
    pub share: f64,
    /// The share as their own presence says it, whatever is declared.
    pub observed: f64,
    /// Its 95% interval, within what is possible.
    pub interval: Interval,
    /// By how many standard errors presence is above nothing in common.
    pub above_nothing: f64,
    /// By how many standard errors it is outside of what is declared.
    pub beyond_declared: f64,
    /// The share is surely below this.
    most: f64,
    /// Whether they may have nobody in common, as far as is declared.
    may_be_nothing: bool,
}

/// What may be wrong with an overlap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OverlapConcern {
    /// The parties have hardly anybody in common: do their ids match?
    Nobody,
    /// There is too much noise to tell whether they have anybody in common, and nothing is
    /// declared.
    Unseen,
    /// The share is not what is declared.
    Undeclared,
}

impl OverlapConcern {
    /// All of them, the worst first.
    pub const ALL: [Self; 3] = [Self::Nobody, Self::Undeclared, Self::Unseen];
}

impl Overlap {
    /// What is loudly wrong, if anything.
    pub fn concern(&self) -> Option<OverlapConcern> {
        if self.above_nothing < SURE && self.most < 0.5 {
            return Some(OverlapConcern::Nobody);
        }
        if self.above_nothing < SURE && self.may_be_nothing {
            return Some(OverlapConcern::Unseen);
        }
        (self.beyond_declared > SURE).then_some(OverlapConcern::Undeclared)
    }
}

/// Two parties with what their presence says.
pub(super) struct Pair {
    overlap: Overlap,
    smaller: f64,
    /// Shares of the smaller party, and by how many standard errors presence is above each.
    grid: Vec<f64>,
    errors: Vec<f64>,
    may_be_all: bool,
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Between the presence of parties in buckets.
pub(super) fn cosines(presence: &[Presence]) -> Mat<f64> {
    let of = |i: usize, j: usize| dot(&presence[i].rows, &presence[j].rows);
    Mat::from_fn(presence.len(), presence.len(), |i, j| {
        if i == j {
            1.0
        } else {
            (of(i, j) / (of(i, i) * of(j, j)).sqrt().max(1e-300)).clamp(-MOST_COSINE, MOST_COSINE)
        }
    })
}

impl Pair {
    /// From the cosine of their presence in k buckets, and of each how many people it holds and the
    /// noise of its presence.
    pub(super) fn new(
        parties: (usize, usize),
        cosine: f64,
        held: (f64, f64),
        noise: (f64, f64),
        k: f64,
        declared: [f64; 2],
    ) -> Self {
        let smaller = held.0.min(held.1);
        let spread = |n: f64, noise: f64| n / k + noise * noise;
        // The cosine if all of the smaller party's people are in the other, and Fisher's z of ours.
        let full = smaller / k / (spread(held.0, noise.0) * spread(held.1, noise.1)).sqrt();
        let z = cosine.atanh();
        let place = |share: f64| (full * share).min(MOST_COSINE).atanh();
        let per_error = (k - 4.0).max(1.0).sqrt();
        let end = |errors: f64| ((z + errors / per_error).tanh() / full).clamp(0.0, 1.0);
        let [low, high] = declared;
        let (first, last) = (low.max(LEAST), high.max(LEAST));
        let count = if high > low { GRID } else { 1 };
        let step = (last - first) / (count.max(2) - 1) as f64;
        let grid: Vec<f64> =
            (0..count).map(|i| if i + 1 == count { last } else { first + i as f64 * step }).collect();
        Self {
            overlap: Overlap {
                parties,
                people: 0.0,
                share: 0.0,
                observed: z.tanh() / full,
                interval: Interval { lower: end(-TWO_SIDED), upper: end(TWO_SIDED) },
                above_nothing: z * per_error,
                beyond_declared: (z - place(high)).max(place(low) - z).max(0.0) * per_error,
                most: end(SURE),
                may_be_nothing: low <= 0.0,
            },
            smaller,
            errors: grid.iter().map(|&share| (z - place(share)) * per_error).collect(),
            may_be_all: high >= 1.0,
            grid,
        }
    }

    /// How well shares go with presence for each error that all pairs have in common, given in
    /// standard errors with its share of the variance; the best is 1.
    fn likelihoods(&self, nodes: &[f64], common: f64) -> Vec<Vec<f64>> {
        let log = |node: f64, above: f64| -0.5 * (above - common.sqrt() * node).powi(2) / (1.0 - common);
        let logs: Vec<Vec<f64>> =
            nodes.iter().map(|&node| self.errors.iter().map(|&above| log(node, above)).collect()).collect();
        let best = logs.iter().flatten().copied().fold(f64::NEG_INFINITY, f64::max);
        logs.iter().map(|of_node| of_node.iter().map(|log| (log - best).exp()).collect()).collect()
    }

    /// Chances of the shares beforehand.
    fn prior(&self, story: &Story) -> Vec<f64> {
        let raw = |share: &f64| (-0.5 * ((share - story.level) / story.apart).powi(2)).exp() + 1e-12;
        let mut prior: Vec<f64> = self.grid.iter().map(raw).collect();
        let total: f64 = prior.iter().sum();
        for chance in &mut prior {
            *chance /= total;
        }
        if self.may_be_all && prior.len() > 1 {
            for chance in &mut prior {
                *chance *= 1.0 - story.all;
            }
            if let Some(last) = prior.last_mut() {
                *last += story.all;
            }
        }
        prior
    }

    /// What these chances of the shares say: also the exponential of the mean of the logarithm of
    /// the number of people, and the standard deviation of that.
    pub(super) fn posterior(&self, chances: &[f64]) -> (Overlap, f64) {
        let logs: Vec<f64> = self.grid.iter().map(|share| (share * self.smaller).ln()).collect();
        let mean = dot(chances, &logs);
        let square: f64 = chances.iter().zip(&logs).map(|(chance, log)| chance * log * log).sum();
        let doubt = (square - mean * mean).max(0.0).sqrt().min(MOST_DOUBT);
        let people = mean.exp();
        let overlap = Overlap { people, share: people / self.smaller, ..self.overlap.clone() };
        (overlap, if self.grid.len() == 1 { 0.0 } else { doubt })
    }
}

/// What share of their variance the errors of all cosines have in common: the mean of their
/// correlations (Olkin and Siotani 1976).
fn in_common(cosines: &Mat<f64>) -> f64 {
    let c = |i: usize, j: usize| if i == j { 1.0 } else { cosines[(i, j)].max(0.0) };
    let places: Vec<(usize, usize)> =
        (0..cosines.nrows()).flat_map(|i| (0..i).map(move |j| (i, j))).collect();
    let correlation = |(i, j): (usize, usize), (k, l): (usize, usize)| {
        let squares = c(i, k).powi(2) + c(i, l).powi(2) + c(j, k).powi(2) + c(j, l).powi(2);
        let triples = c(i, j) * (c(i, k) * c(i, l) + c(j, k) * c(j, l))
            + c(k, l) * (c(i, k) * c(j, k) + c(i, l) * c(j, l));
        let covariance = 0.5 * c(i, j) * c(k, l) * squares + c(i, k) * c(j, l) + c(i, l) * c(j, k) - triples;
        covariance / ((1.0 - c(i, j).powi(2)) * (1.0 - c(k, l).powi(2)))
    };
    let found: Vec<f64> = (0..places.len())
        .flat_map(|at| (0..at).map(move |other| (at, other)))
        .map(|(at, other)| correlation(places[at], places[other]))
        .collect();
    if found.is_empty() {
        return 0.0;
    }
    (found.iter().sum::<f64>() / found.len() as f64).clamp(0.0, MOST_IN_COMMON)
}

/// What shares may be like beforehand: all of the smaller party with this probability, and
/// otherwise about a level that all pairs have in common.
struct Story {
    level: f64,
    apart: f64,
    all: f64,
    /// How likely the story is.
    chance: f64,
}

/// All of them. Where most parties share a fifth of their people, others probably do so, too.
fn stories() -> Vec<Story> {
    let (low, high, count) = LEVELS;
    let level = |i: usize| low + (high - low) * i as f64 / (count - 1) as f64;
    let chance = (1.0 - EVERYWHERE) / (count * ALIKE.len()) as f64;
    let about = |i: usize| ALIKE.map(|apart| Story { level: level(i), apart, all: ALL, chance });
    let everywhere = Story { level: 1.0, apart: 1e-3, all: 1.0, chance: EVERYWHERE };
    std::iter::once(everywhere).chain((0..count).flat_map(about)).collect()
}

/// What a pair's presence says to each story, for each error that all pairs have in common.
struct Reading {
    priors: Vec<Vec<f64>>,
    likelihoods: Vec<Vec<f64>>,
    evidences: Vec<Vec<f64>>,
}

impl Reading {
    fn new(pair: &Pair, stories: &[Story], nodes: &[f64], common: f64) -> Self {
        let priors: Vec<Vec<f64>> = stories.iter().map(|story| pair.prior(story)).collect();
        let likelihoods = pair.likelihoods(nodes, common);
        let evidence = |prior: &Vec<f64>| likelihoods.iter().map(|of| dot(prior, of).max(1e-300)).collect();
        Self { evidences: priors.iter().map(evidence).collect(), priors, likelihoods }
    }

    /// Chances of the shares, if `weights` are those of stories and errors, story by story.
    fn posterior(&self, weights: &[f64]) -> Vec<f64> {
        let mut chances = vec![0.0; self.priors[0].len()];
        let count = self.likelihoods.len();
        for (story, prior) in self.priors.iter().enumerate() {
            for (node, likelihood) in self.likelihoods.iter().enumerate() {
                let weight = weights[story * count + node] / self.evidences[story][node];
                for ((chance, prior), likelihood) in chances.iter_mut().zip(prior).zip(likelihood) {
                    *chance += weight * prior * likelihood;
                }
            }
        }
        let total: f64 = chances.iter().sum();
        chances.into_iter().map(|chance| chance / total).collect()
    }
}

/// For each pair the posterior chances of its shares, given the cosines of all parties' presence.
pub(super) fn shares(pairs: &[Pair], cosines: &Mat<f64>) -> Vec<Vec<f64>> {
    let (stories, common) = (stories(), in_common(cosines));
    let (most, count) = IN_COMMON;
    let nodes: Vec<f64> = (0..count).map(|i| most * (2.0 * i as f64 / (count - 1) as f64 - 1.0)).collect();
    let readings: Vec<Reading> =
        pairs.iter().map(|pair| Reading::new(pair, &stories, &nodes, common)).collect();
    let mut logs = Vec::with_capacity(stories.len() * count);
    for (at, story) in stories.iter().enumerate() {
        for (error, node) in nodes.iter().enumerate() {
            let of_pairs: f64 = readings.iter().map(|reading| reading.evidences[at][error].ln()).sum();
            logs.push(of_pairs + story.chance.ln() - 0.5 * node * node);
        }
    }
    let weights = normalised(&logs);
    readings.iter().map(|reading| reading.posterior(&weights)).collect()
}
