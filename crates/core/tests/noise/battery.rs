//! Statistical tests of a sampler of round(σ·g), as one function over any sampler, so that the
//! shipped one and the negative controls are judged by the same code.
//!
//! Every test ends in a p-value against the exact distribution (or, for two-sample tests, against
//! stored samples of an independent sampler). The battery makes 125 of them. A sampler is rejected
//! if any is below [`REJECTED_BELOW`]. By the union bound, whatever the dependence between tests, a
//! correct sampler is rejected for about one seed in eight million; normal and χ² approximations
//! this far out may cost a factor of two or three of that. The seeds are fixed, and for them no
//! p-value is below 1e-4.

use super::special::{
    chi_square_upper_tail, kolmogorov_upper_tail, normal_between, normal_two_sided, normal_upper_tail,
    poisson_two_sided,
};

/// A p-value below this rejects the sampler.
pub(crate) const REJECTED_BELOW: f64 = 1e-9;

/// Smallest expected count of a χ² cell.
const SMALLEST_CELL: f64 = 50.0;

/// One p-value.
pub(crate) struct Finding {
    pub(crate) test: &'static str,
    pub(crate) sigma: u64,
    pub(crate) p: f64,
}

impl Finding {
    pub(crate) fn rejects(&self) -> bool {
        self.p.is_nan() || self.p < REJECTED_BELOW
    }
}

/// Counts of ⌊value / `bin_width`⌋ from an independent sampler; `counts[0]` belongs to `first_bin`.
pub(crate) struct Reference {
    pub(crate) test: &'static str,
    pub(crate) sigma: u64,
    pub(crate) bin_width: i64,
    pub(crate) first_bin: i64,
    pub(crate) counts: Vec<u64>,
}

/// Runs every test on `samples` values at each of several scales.
pub(crate) fn battery(
    sampler: &mut dyn FnMut(u64) -> i64,
    samples: usize,
    references: &[Reference],
) -> Vec<Finding> {
    let mut findings = Vec::new();
    for sigma in [1, 2, 3, 10, 17, 1000, 1_000_003] {
        let values: Vec<i64> = (0..samples).map(|_| sampler(sigma)).collect();
        let mut record = |test, p| findings.push(Finding { test, sigma, p });
        record("chi-square", chi_square(&values, sigma));
        record("kolmogorov", kolmogorov(&values, sigma));
        for (test, reach) in TAILS {
            record(test, tail(&values, sigma, reach));
        }
        for (test, power) in MOMENTS {
            record(test, moment(&values, sigma, power));
        }
        record("sign", sign(&values));
        record("mirror", mirror(&values, sigma));
        for (test, lag) in LAGS {
            record(test, correlation(&values, lag));
        }
        let squares: Vec<i64> = values.iter().map(|&v| v.saturating_mul(v)).collect();
        record("lag 1 of squares", correlation(&squares, 1));
        for reference in references.iter().filter(|reference| reference.sigma == sigma) {
            record(reference.test, two_sample(&values, reference));
        }
    }
    for (sigma, shifts) in LOW_BITS {
        let values: Vec<i64> = (0..samples / 4).map(|_| sampler(sigma)).collect();
        for &shift in shifts {
            findings.push(Finding { test: "low bits", sigma, p: uniform_byte(&values, shift) });
        }
    }
    findings
}

const TAILS: [(&str, f64); 4] = [("tail 3σ", 3.0), ("tail 4σ", 4.0), ("tail 4.5σ", 4.5), ("tail 5.5σ", 5.5)];
const MOMENTS: [(&str, i32); 4] = [("mean", 1), ("variance", 2), ("skewness", 3), ("kurtosis", 4)];
const LAGS: [(&str, usize); 3] = [("lag 1", 1), ("lag 2", 2), ("lag 3", 3)];
/// At scale σ the byte above `shift` is uniform but for e^(−2π²σ²/2^(2·shift + 16)), nothing at
/// these.
const LOW_BITS: [(u64, &[u32]); 3] = [(1 << 20, &[0, 8]), (1 << 40, &[0, 16, 24]), (1 << 52, &[0, 24, 40])];

/// A cell of a χ² test: what was seen and what was to be expected.
struct Cell {
    observed: f64,
    expected: f64,
}

/// Joins neighbouring cells until each expects `smallest` or more. Nothing observed is lost.
fn pool(cells: impl IntoIterator<Item = Cell>, smallest: f64) -> Vec<Cell> {
    let mut pooled: Vec<Cell> = Vec::new();
    for cell in cells {
        match pooled.last_mut() {
            Some(last) if last.expected < smallest => {
                last.observed += cell.observed;
                last.expected += cell.expected;
            }
            _ => pooled.push(cell),
        }
    }
    if pooled.len() > 1 && pooled.last().is_some_and(|last| last.expected < smallest) {
        let (short, last) = (pooled.pop(), pooled.last_mut());
        if let (Some(short), Some(last)) = (short, last) {
            last.observed += short.observed;
            last.expected += short.expected;
        }
    }
    pooled
}

/// The p-value of Pearson's statistic. Cells too few or too empty to judge by reject: they prove
/// nothing.
fn pearson(cells: &[Cell]) -> f64 {
    if cells.len() < 2 || cells.iter().any(|cell| cell.expected < SMALLEST_CELL) {
        return 0.0;
    }
    let statistic = cells.iter().map(|cell| (cell.observed - cell.expected).powi(2) / cell.expected).sum();
    chi_square_upper_tail(statistic, cells.len() - 1)
}

/// Counts of ⌊value / width⌋ in bins `first..=last`; what lies outside counts at the nearer end.
fn count(values: &[i64], width: i64, first: i64, last: i64) -> Vec<u64> {
    let mut counts = vec![0; (last - first + 1) as usize];
    for value in values {
        counts[(value.div_euclid(width).clamp(first, last) - first) as usize] += 1;
    }
    counts
}

/// Pearson's χ² over single integers (of at most 200 to a σ, else equal bins) with exact
/// probabilities.
fn chi_square(values: &[i64], sigma: u64) -> f64 {
    let width = (sigma / 20).max(1) as i64;
    let last = 8 * sigma as i64 / width;
    let counts = count(values, width, -last, last);
    // Bin b holds the integers from b·width up to (b + 1)·width − 1, hence the reals from half
    // below.
    let edge = |bin: i64| ((bin * width) as f64 - 0.5) / sigma as f64;
    let cells = (-last..=last).zip(counts).map(|(bin, count)| {
        let from = if bin == -last { f64::NEG_INFINITY } else { edge(bin) };
        let to = if bin == last { f64::INFINITY } else { edge(bin + 1) };
        Cell { observed: count as f64, expected: values.len() as f64 * normal_between(from, to) }
    });
    pearson(&pool(cells, SMALLEST_CELL))
}

/// Two-sample χ² against stored counts, over cells that both samples together fill well.
fn two_sample(values: &[i64], reference: &Reference) -> f64 {
    let last = reference.first_bin + reference.counts.len() as i64 - 1;
    let own = count(values, reference.bin_width, reference.first_bin, last);
    let own_total = values.len() as f64;
    let other_total = reference.counts.iter().sum::<u64>() as f64;
    let share = own_total / (own_total + other_total);
    // Given the joint count of a cell, a correct sampler contributes its share of it.
    let cells = own
        .iter()
        .zip(&reference.counts)
        .map(|(&own, &other)| Cell { observed: own as f64, expected: share * (own + other) as f64 });
    let cells = pool(cells, 40.0 * SMALLEST_CELL);
    if cells.len() < 2 || cells.iter().any(|cell| cell.expected < SMALLEST_CELL) {
        return 0.0;
    }
    let statistic = cells
        .iter()
        .map(|cell| (cell.observed - cell.expected).powi(2) / (cell.expected * (1.0 - share)))
        .sum();
    chi_square_upper_tail(statistic, cells.len() - 1)
}

/// Kolmogorov's distance between the empirical and the exact distribution function, at every
/// integer. Conservative at small σ, where the distribution has few steps.
fn kolmogorov(values: &[i64], sigma: u64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    let n = sorted.len() as f64;
    let mut distance = 0.0_f64;
    let mut below = 0;
    for equal in sorted.chunk_by(|a, b| a == b) {
        let upto = below + equal.len();
        let value = equal[0] as f64;
        let before = 1.0 - normal_upper_tail((value - 0.5) / sigma as f64);
        let after = 1.0 - normal_upper_tail((value + 0.5) / sigma as f64);
        distance = distance.max((before - below as f64 / n).abs()).max((after - upto as f64 / n).abs());
        below = upto;
    }
    kolmogorov_upper_tail(distance, sorted.len())
}

/// The number of values at least `reach`·σ from 0, as a Poisson count.
fn tail(values: &[i64], sigma: u64, reach: f64) -> f64 {
    let start = (reach * sigma as f64).ceil();
    let beyond = values.iter().filter(|value| value.unsigned_abs() as f64 >= start).count();
    let probability = 2.0 * normal_upper_tail((start - 0.5) / sigma as f64);
    poisson_two_sided(beyond, values.len() as f64 * probability)
}

/// E(G + U)^power in units of σ, for G normal and U uniform on (−½, ½): the moments of the rounded
/// value, up to terms of e^(−2π²σ²) < 3e-9 (Sheppard's correction).
fn exact_moment(power: i32, sigma: f64) -> f64 {
    if power % 2 == 1 {
        return 0.0;
    }
    let mut sum = 0.0;
    let mut binomial = 1.0;
    let mut normal_moment = 1.0; // E G^(2i) = 1·3·5·…·(2i − 1)
    for i in 0..=power / 2 {
        let rest = power - 2 * i;
        let uniform_moment = (0.5 / sigma).powi(rest) / f64::from(rest + 1);
        sum += binomial * normal_moment * uniform_moment;
        binomial *= f64::from(rest * (rest - 1)) / f64::from((2 * i + 1) * (2 * i + 2));
        normal_moment *= f64::from(2 * i + 1);
    }
    sum
}

/// The raw moment of that power about the known mean 0, against its exact value and variance.
fn moment(values: &[i64], sigma: u64, power: i32) -> f64 {
    let scale = sigma as f64;
    let n = values.len() as f64;
    let mean = values.iter().map(|&value| (value as f64 / scale).powi(power)).sum::<f64>() / n;
    let exact = exact_moment(power, scale);
    let variance = exact_moment(2 * power, scale) - exact * exact;
    normal_two_sided((mean - exact) / (variance / n).sqrt())
}

/// As many positive as negative values.
fn sign(values: &[i64]) -> f64 {
    let positive = values.iter().filter(|&&value| value > 0).count() as f64;
    let negative = values.iter().filter(|&&value| value < 0).count() as f64;
    if positive + negative == 0.0 {
        return 0.0;
    }
    normal_two_sided((positive - negative) / (positive + negative).sqrt())
}

/// Positive and negative values of each size equally often.
fn mirror(values: &[i64], sigma: u64) -> f64 {
    let width = (sigma / 10).max(1) as i64;
    let sizes = 8 * sigma as i64 / width;
    let positive: Vec<i64> = values.iter().filter(|&&v| v > 0).map(|&v| v - 1).collect();
    let negative: Vec<i64> = values.iter().filter(|&&v| v < 0).map(|&v| -(v + 1)).collect();
    let cells = count(&positive, width, 0, sizes)
        .into_iter()
        .zip(count(&negative, width, 0, sizes))
        .map(|(p, n)| Cell { observed: p as f64, expected: (p + n) as f64 / 2.0 });
    let cells = pool(cells, SMALLEST_CELL);
    if cells.iter().any(|cell| cell.expected < SMALLEST_CELL) {
        return 0.0;
    }
    let statistic = cells.iter().map(|c| (c.observed - c.expected).powi(2) / (c.expected / 2.0)).sum();
    chi_square_upper_tail(statistic, cells.len())
}

/// The correlation of each value with the one `lag` draws later is 0 up to n^(−1/2).
fn correlation(values: &[i64], lag: usize) -> f64 {
    let n = values.len() as f64;
    let mean = values.iter().map(|&value| value as f64).sum::<f64>() / n;
    let centred = |value: i64| value as f64 - mean;
    let variance = values.iter().map(|&value| centred(value).powi(2)).sum::<f64>() / n;
    let pairs = values.iter().zip(&values[lag..]);
    let covariance = pairs.map(|(&a, &b)| centred(a) * centred(b)).sum::<f64>() / n;
    normal_two_sided(covariance / variance * n.sqrt())
}

/// The 8 bits above the lowest `shift` are uniform.
fn uniform_byte(values: &[i64], shift: u32) -> f64 {
    let mut counts = [0_u64; 256];
    for value in values {
        counts[(value >> shift & 0xFF) as usize] += 1;
    }
    let expected = values.len() as f64 / 256.0;
    let cells: Vec<Cell> = counts.iter().map(|&count| Cell { observed: count as f64, expected }).collect();
    pearson(&cells)
}
