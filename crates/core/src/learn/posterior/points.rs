//! Matrices that the correlations between parties may have, given what is known of them.
//!
//! Where the mixed rows resolve a correlation only half, the posterior mean lies between two
//! stories: there is next to none, or there is a strong one. Coefficients are then not linear in
//! what is known, so they are linearised at many matrices instead of one, drawn from a posterior in
//! which each pair is one or the other (docs/LEARNERS.md#intervals-of-posterior).

use faer::{Mat, Side};

use super::correlations::symmetric;
use super::learned::Learned;
use super::sequence::Sequence;
use super::shrink::{Noisy, ScaleMixture, log_density, normalised};

/// How many matrices are drawn.
const DRAWS: usize = 40;
/// Variance of a strong correlation, and up to which variance one counts as not strong.
const STRONG: f64 = 0.25;
const SMALL: f64 = 0.03;
/// Share of pairs that are strong beforehand, and how many pairs' worth this counts.
const STRONG_SHARE: (f64, f64) = (0.15, 20.0);
/// The same for the variances of pairs that are not strong.
const PSEUDO: f64 = 2.0;
const MOST_ROUNDS: usize = 50;
/// No strong correlation is drawn beyond this.
const MOST: f64 = 0.95;
/// Smallest eigenvalue of a drawn matrix with the label included.
const FLOOR: f64 = 0.1;

/// For each pair, how likely each variance is that of its prior; the last one is [`STRONG`].
struct Stories {
    variances: Vec<f64>,
    chances: Vec<Vec<f64>>,
}

impl Stories {
    fn of(pairs: &Noisy) -> Self {
        let mut variances: Vec<f64> = ScaleMixture::scales().into_iter().filter(|&g| g <= SMALL).collect();
        let small = variances.len();
        variances.push(STRONG);
        let likelihoods: Vec<Vec<f64>> = pairs
            .values
            .iter()
            .zip(&pairs.variances)
            .map(|(&x, v)| variances.iter().map(|g| log_density(x, g + v).exp()).collect())
            .collect();
        // Where noise hides any strong correlation, effects are hidden as well: it is not counted
        // on there.
        let able: Vec<f64> = pairs.variances.iter().map(|v| STRONG / (STRONG + v)).collect();
        let mut weights = vec![1.0 / small as f64; small];
        let mut share = STRONG_SHARE.0;
        let mut chances: Vec<Vec<f64>> = Vec::new();
        for _ in 0..MOST_ROUNDS {
            chances = likelihoods
                .iter()
                .zip(&able)
                .map(|(likelihood, able)| {
                    let strong = share * able;
                    let prior = weights.iter().map(|weight| (1.0 - strong) * weight).chain([strong]);
                    let products: Vec<f64> = prior.zip(likelihood).map(|(a, b)| a * b).collect();
                    let total: f64 = products.iter().sum();
                    products.into_iter().map(|product| product / total).collect()
                })
                .collect();
            let total = |story: usize| chances.iter().map(|chances| chances[story]).sum::<f64>();
            let all_small: f64 = (0..small).map(total).sum();
            for (story, weight) in weights.iter_mut().enumerate() {
                *weight = (total(story) + PSEUDO / small as f64) / (all_small + PSEUDO);
            }
            share =
                (total(small) + STRONG_SHARE.0 * STRONG_SHARE.1) / (chances.len() as f64 + STRONG_SHARE.1);
        }
        Self { variances, chances }
    }
}

/// A matrix of all features, and how much it counts.
pub(super) struct Point {
    pub(super) h: Mat<f64>,
    pub(super) weight: f64,
}

/// Matrices that the correlations may have, with weights that sum to one.
pub(super) fn points(learned: &Learned) -> Vec<Point> {
    let pairs = &learned.correlations.of_features;
    if pairs.places.is_empty() {
        return vec![Point { h: learned.h.clone(), weight: 1.0 }];
    }
    let d = learned.means.len();
    let turn = &learned.white.to_features;
    let now = &learned.between;
    let turned = learned.white.of_features(now);
    let stories = Stories::of(&pairs.entries);
    let strong = stories.variances.len() - 1;
    let mut sequence = Sequence::new();
    let (mut drawn, mut logs) = (Vec::with_capacity(DRAWS), Vec::with_capacity(DRAWS));
    for _ in 0..DRAWS {
        let entries: Vec<f64> = (0..pairs.places.len())
            .map(|pair| {
                let (story, noise) = (sequence.uniform(), sequence.normal());
                let mut reached = 0.0;
                let chosen = stories.chances[pair].iter().position(|chance| {
                    reached += chance;
                    story <= reached
                });
                if chosen.unwrap_or(strong) < strong {
                    return turned[pairs.places[pair]];
                }
                let (x, v) = (pairs.entries.values[pair], pairs.entries.variances[pair]);
                let factor = STRONG / (STRONG + v);
                (factor * x + (factor * v).sqrt() * noise).clamp(-MOST, MOST)
            })
            .collect();
        let step = turn.transpose() * symmetric(d, &pairs.places, &entries) * turn - now;
        let (h, log) = sound_step(learned, &step);
        drawn.push(h);
        logs.push(log);
    }
    let weights = normalised(&logs);
    drawn.into_iter().zip(weights).map(|(h, weight)| Point { h, weight }).collect()
}

/// H and as much of a step as keeps it clear of singular with the label included; the logarithm of
/// its determinant.
fn sound_step(learned: &Learned, step: &Mat<f64>) -> (Mat<f64>, f64) {
    let d = learned.means.len();
    let logdet = |h: &Mat<f64>| {
        let factor = h.llt(Side::Lower).ok()?;
        Some(2.0 * (0..d).map(|i| factor.L()[(i, i)].ln()).sum::<f64>())
    };
    let clear = |h: &Mat<f64>| {
        let with_label = Mat::from_fn(d + 1, d + 1, |i, j| {
            let entry = match (i, j) {
                (0, 0) => 1.0,
                (0, a) | (a, 0) => learned.means[a - 1],
                (a, b) => h[(a - 1, b - 1)],
            };
            entry - if i == j { FLOOR } else { 0.0 }
        });
        with_label.llt(Side::Lower).is_ok()
    };
    let mut length = 1.0;
    while length > 0.01 {
        let h = &learned.h + step * length;
        if clear(&h)
            && let Some(log) = logdet(&h)
        {
            return (h, log);
        }
        length *= 0.85;
    }
    let log = logdet(&learned.h).unwrap_or(0.0);
    (learned.h.clone(), log)
}
