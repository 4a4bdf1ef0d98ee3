//! Small statistics for tables: means, quantiles, binomial intervals and Kolmogorov's two-sample
//! test.

use std::collections::BTreeMap;

/// The mean.
pub(crate) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Standard error of the mean.
pub(crate) fn standard_error(values: &[f64]) -> f64 {
    let m = mean(values);
    let squares: f64 = values.iter().map(|value| (value - m).powi(2)).sum();
    (squares / (values.len() as f64 - 1.0) / values.len() as f64).sqrt()
}

/// The q-quantile, by linear interpolation.
pub(crate) fn quantile(values: &[f64], q: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = q * (sorted.len() - 1) as f64;
    let (low, high) = (sorted[at.floor() as usize], sorted[at.ceil() as usize]);
    low + (high - low) * at.fract()
}

/// How sure an interval is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Confidence {
    P95,
    P99,
}

/// Wilson's interval for a proportion.
pub(crate) fn binomial_interval(successes: usize, trials: usize, confidence: Confidence) -> (f64, f64) {
    let z: f64 = match confidence {
        Confidence::P95 => 1.959_963_984_540_1,
        Confidence::P99 => 2.575_829_303_548_9,
    };
    let (n, p) = (trials as f64, successes as f64 / trials as f64);
    let centre = (p + z * z / (2.0 * n)) / (1.0 + z * z / n);
    let half = z / (1.0 + z * z / n) * (p * (1.0 - p) / n + z * z / (4.0 * n * n)).sqrt();
    ((centre - half).max(0.0), (centre + half).min(1.0))
}

/// Of many shares that were seen as successes out of trials each, how many truly are at least
/// `level`: what chance adds to their spread is taken out by finding the distribution of shares
/// under which what was seen is the likeliest (Laird 1978), by expectation and maximisation.
pub(crate) fn true_share_from(level: f64, seen: &[(usize, usize)]) -> f64 {
    const POINTS: usize = 201;
    const ROUNDS: usize = 2000;
    let mut counts: BTreeMap<(usize, usize), f64> = BTreeMap::new();
    for &cell in seen {
        *counts.entry(cell).or_default() += 1.0;
    }
    // Away from 0 and 1, which nothing but a full house could come from.
    let point = |at: usize| ((at as f64 + 0.5) / POINTS as f64).min(0.9975);
    let likelihood = |&(successes, trials): &(usize, usize)| -> Vec<f64> {
        let misses = trials - successes;
        let log = |p: f64| successes as f64 * p.ln() + misses as f64 * (1.0 - p).ln();
        let logs: Vec<f64> = (0..POINTS).map(|at| log(point(at))).collect();
        let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        logs.into_iter().map(|log| (log - most).exp()).collect()
    };
    let cells: Vec<(Vec<f64>, f64)> = counts.iter().map(|(cell, count)| (likelihood(cell), *count)).collect();
    let mut weights = vec![1.0 / POINTS as f64; POINTS];
    for _ in 0..ROUNDS {
        let mut next = vec![0.0; POINTS];
        for (likelihood, count) in &cells {
            let total: f64 = weights.iter().zip(likelihood).map(|(weight, l)| weight * l).sum();
            for (next, (weight, l)) in next.iter_mut().zip(weights.iter().zip(likelihood)) {
                *next += count * weight * l / total / seen.len() as f64;
            }
        }
        weights = next;
    }
    (0..POINTS).filter(|&at| point(at) >= level).map(|at| weights[at]).sum()
}

/// Kolmogorov's largest distance between two samples, and the probability of one as large by
/// chance.
pub(crate) fn kolmogorov(one: &[f64], other: &[f64]) -> (f64, f64) {
    let (mut a, mut b) = (one.to_vec(), other.to_vec());
    a.sort_by(f64::total_cmp);
    b.sort_by(f64::total_cmp);
    let below =
        |sorted: &[f64], x: f64| sorted.partition_point(|&value| value <= x) as f64 / sorted.len() as f64;
    let distance = a.iter().chain(&b).map(|&x| (below(&a, x) - below(&b, x)).abs()).fold(0.0_f64, f64::max);
    let size = (a.len() * b.len()) as f64 / (a.len() + b.len()) as f64;
    let lambda = (size.sqrt() + 0.12 + 0.11 / size.sqrt()) * distance;
    let tail: f64 = (1..=100)
        .map(|j: i32| {
            let sign = if j % 2 == 1 { 2.0 } else { -2.0 };
            sign * (-2.0 * f64::from(j * j) * lambda * lambda).exp()
        })
        .sum();
    (distance, if lambda < 0.2 { 1.0 } else { tail.clamp(0.0, 1.0) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_interpolate() {
        let values = [4.0, 1.0, 3.0, 2.0];
        assert!((quantile(&values, 0.5) - 2.5).abs() < 1e-12);
        assert!((quantile(&values, 1.0) - 4.0).abs() < 1e-12);
        assert!((mean(&values) - 2.5).abs() < 1e-12);
        assert!((standard_error(&values) - 0.645_497).abs() < 1e-6);
    }

    #[test]
    fn wilson_intervals() {
        let (low, high) = binomial_interval(0, 100, Confidence::P99);
        assert!(low.abs() < 1e-12 && (high - 0.0622).abs() < 1e-3);
        let (low, high) = binomial_interval(500, 1000, Confidence::P99);
        assert!((low - 0.4595).abs() < 1e-3 && (high - 0.5405).abs() < 1e-3);
        let (low, high) = binomial_interval(475, 500, Confidence::P95);
        assert!((low - 0.9272).abs() < 1e-3 && (high - 0.9659).abs() < 1e-3);
    }

    /// Cells that all have the same share look different by chance alone; those of another do not
    /// hide among them.
    #[test]
    fn chance_is_taken_out_of_shares() {
        // Binomial counts without drawing: each count as often as is expected.
        let cells = |share: f64, trials: usize, cells: f64| -> Vec<(usize, usize)> {
            let mut chance = (1.0 - share).powi(trials as i32);
            let mut all = Vec::new();
            for successes in 0..=trials {
                all.extend(vec![(successes, trials); (cells * chance).round() as usize]);
                chance *= (trials - successes) as f64 / (successes as f64 + 1.0) * share / (1.0 - share);
            }
            all
        };
        let seen = |cells: &[(usize, usize)]| {
            cells.iter().filter(|(held, all)| *held as f64 >= 0.9 * *all as f64).count() as f64
                / cells.len() as f64
        };
        let same = cells(0.95, 20, 1000.0);
        assert!(seen(&same) < 0.93);
        assert!(true_share_from(0.9, &same) > 0.99);
        let mut mixed = cells(0.95, 60, 800.0);
        mixed.extend(cells(0.8, 60, 200.0));
        let found = true_share_from(0.9, &mixed);
        assert!((found - 0.8).abs() < 0.02, "{found}");
    }

    #[test]
    fn kolmogorov_tells_shifted_samples_apart() {
        let one: Vec<f64> = (0..500).map(|i| f64::from(i) / 500.0).collect();
        let other: Vec<f64> = one.iter().map(|x| x + 0.2).collect();
        assert!(kolmogorov(&one, &one).1 > 0.99);
        let (distance, p) = kolmogorov(&one, &other);
        assert!((distance - 0.2).abs() < 0.01 && p < 1e-6);
    }
}
