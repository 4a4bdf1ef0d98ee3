//! How the values of a numeric column are distributed, by the noised counts of its cells
//! (docs/LEARNERS.md#shapes-of-columns). In units of the public range.

use crate::calibrated::{CalibratedError, PartyPlan};
use crate::encoding::{Bins, Encoder};

/// Standard errors that intervals of quantiles reach: 95% of a bell.
const REACH: f64 = 1.959_963_984_540_054;

/// How the values of a numeric column are distributed. All shares are of the values that are
/// present.
#[derive(Clone, Debug, PartialEq)]
pub struct Distribution {
    /// Cells from left to right, without that of the zeros.
    cells: Vec<Cell>,
    /// The share of exact zeros with its standard error, and where they are, if they are counted.
    zeros: Option<(Known, f64)>,
    /// Standard deviation of a cell's noise as a share, and of the number of all values.
    noise: f64,
    of_all: f64,
    /// How many cells were counted.
    count: f64,
}

/// A share with its standard error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Known {
    /// The share.
    pub share: f64,
    /// Standard deviation of the noise in it.
    pub error: f64,
}

/// A quantile with its 95% interval, whose ends are those of cells.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quantile {
    /// The quantile.
    pub value: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

/// A cell, or a half of one beside the zeros.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Cell {
    from: f64,
    to: f64,
    /// Share of the values in it, and in all before it.
    share: f64,
    below: f64,
    /// Cells before it.
    before: f64,
}

impl Distribution {
    /// From noised counts, of which each has noise `sigma`, and how many values there are, with the
    /// noise in that.
    fn new(bins: &Bins, counts: &[f64], sigma: f64, (people, people_sigma): (f64, f64)) -> Self {
        let m = counts.len() as f64;
        // Both the cells and the count of the column say how many values there are.
        let sum: f64 = counts.iter().sum();
        let (of_sum, of_people) = (m * sigma * sigma, people_sigma * people_sigma);
        let all = ((sum * of_people + people * of_sum) / (of_people + of_sum)).max(1.0);
        let too_many = (sum - all) / m;
        let mut running = 0.0;
        let cumulative: Vec<f64> = counts
            .iter()
            .map(|count| {
                running += count - too_many;
                running / all
            })
            .collect();
        let below = rising(&cumulative);
        let noise = sigma / all;
        let mut cells = Vec::with_capacity(counts.len() + 1);
        let mut zeros = None;
        let mut before = 0.0;
        for (at, [from, to]) in bins.intervals().into_iter().enumerate() {
            let share = below[at] - before;
            let cell = Cell { from, to, share, below: before, before: at as f64 };
            if bins.zeros() == Some(at) {
                let known = Known { share: ((counts[at] - too_many) / all).clamp(0.0, 1.0), error: noise };
                zeros = Some((known, from));
            }
            cells.push(cell);
            before = below[at];
        }
        if let Some(at) = bins.zeros() {
            about_zeros(&mut cells, at);
        }
        let of_all = (of_sum * of_people / (of_sum + of_people)).sqrt() / all;
        Self { cells, zeros, noise, of_all, count: m }
    }

    /// The share of exact zeros, where they are counted: where the bounds hold 0.
    pub fn zeros(&self) -> Option<Known> {
        self.zeros.map(|(known, _)| known)
    }

    /// The share of values from `low` to below `high`.
    pub fn between(&self, low: f64, high: f64) -> Known {
        let ((cells, share), (before, below)) = (self.up_to(high), self.up_to(low));
        Known { share: share - below, error: self.error(cells - before, share - below) }
    }

    /// How many cells there are below `u`, and the share of values in them.
    fn up_to(&self, u: f64) -> (f64, f64) {
        let Some(cell) = self.cells.iter().rev().find(|cell| cell.from < u) else { return (0.0, 0.0) };
        let part = if cell.to > u { (u - cell.from) / (cell.to - cell.from) } else { 1.0 };
        (cell.before + part, cell.below + part * cell.share)
    }

    /// Standard error of a share of values in so many cells beside each other: the errors of all
    /// cells sum to that of the number of values.
    fn error(&self, cells: f64, share: f64) -> f64 {
        let bridge = cells * (self.count - cells) / self.count;
        let of_all = (cells / self.count - share) * self.of_all;
        (self.noise * self.noise * bridge.max(0.0) + of_all * of_all).sqrt()
    }

    /// The value that a share of all are below.
    pub fn quantile(&self, share: f64) -> Quantile {
        let reaches = |cell: &&Cell| cell.below + cell.share >= share;
        let last = self.cells.last().map_or(1.0, |cell| cell.to);
        let value = self.cells.iter().find(reaches).map_or(last, |cell| {
            let part = if cell.share > 0.0 { (share - cell.below) / cell.share } else { 0.0 };
            cell.from + part.clamp(0.0, 1.0) * (cell.to - cell.from)
        });
        // The true distribution may be above ours, and reach the share in an earlier cell.
        let above = |cell: &&Cell| {
            let end = cell.below + cell.share;
            end + REACH * self.error(cell.before + 1.0, end) >= share
        };
        let below = |cell: &&Cell| cell.below - REACH * self.error(cell.before, cell.below) <= share;
        let low = self.cells.iter().find(above).map_or(value, |cell| cell.from.min(value));
        let high = self.cells.iter().rev().find(below).map_or(value, |cell| cell.to.max(value));
        Quantile { value, low, high }
    }
}

/// The nearest numbers that rise from 0 to 1: the isotonic regression, by pooling.
fn rising(cumulative: &[f64]) -> Vec<f64> {
    let mut pools: Vec<(f64, usize)> = Vec::with_capacity(cumulative.len());
    for &value in cumulative {
        pools.push((value, 1));
        while let [.., (before, length), (after, more)] = pools[..] {
            if before <= after {
                break;
            }
            pools.truncate(pools.len() - 2);
            let both = length + more;
            pools.push(((before * length as f64 + after * more as f64) / both as f64, both));
        }
    }
    let mut found: Vec<f64> = pools
        .into_iter()
        .flat_map(|(value, length)| std::iter::repeat_n(value.clamp(0.0, 1.0), length))
        .collect();
    if let Some(last) = found.last_mut() {
        *last = 1.0;
    }
    found
}

/// Parts the bin before the cell of the zeros where they are: what is left of them comes before,
/// what is right of them after.
fn about_zeros(cells: &mut Vec<Cell>, at: usize) {
    let (bin, zeros) = (cells[at - 1], cells[at]);
    let part = (zeros.from - bin.from) / (bin.to - bin.from);
    let left = Cell { to: zeros.from, share: part * bin.share, ..bin };
    let zeros = Cell { below: left.below + left.share, ..zeros };
    let below = zeros.below + zeros.share;
    let right =
        Cell { from: zeros.to, to: bin.to, share: (1.0 - part) * bin.share, below, before: zeros.before };
    cells.splice(at - 1..=at, [left, zeros, right]);
}

/// The distribution of every numeric column of a party, with its place among the encoded columns,
/// from the noised sums of the stages before the mixed rows; none in releases of format 1.
pub fn distributions(
    party: &PartyPlan,
    sums: &[Vec<i64>],
) -> Result<Vec<(usize, Distribution)>, CalibratedError> {
    let Some(noise) = party.shape_noise() else { return Ok(Vec::new()) };
    let (counts, errors) = (party.present(sums)?, party.present_errors());
    let layout = party.layout();
    let groups = layout.encoded_groups();
    let mut places = Vec::new();
    let mut next = 0;
    for encoder in layout.encoders() {
        if matches!(encoder, Encoder::Numeric(_)) {
            places.push(next);
        }
        next += encoder.width();
    }
    let bins = layout.bins();
    let cells: usize = bins.iter().map(Bins::count).sum();
    let (expected, found) = (party.stage(&[])?.map_or(0, |stage| stage.coordinates()), sums[0].len());
    if expected != found {
        return Err(CalibratedError::Sums { stage: crate::calibrated::COHORT_STAGES[0], expected, found });
    }
    let mut cells = &sums[0][found - cells..];
    let mut all = Vec::with_capacity(places.len());
    for (bins, place) in bins.iter().zip(places) {
        let (own, others) = cells.split_at(bins.count());
        cells = others;
        let own: Vec<f64> = own.iter().map(|&count| count as f64).collect();
        let group = groups[place];
        let people = (counts[group], errors[group]);
        all.push((place, Distribution::new(bins, &own, noise.cell.get() as f64, people)));
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use rand_chacha::ChaCha20Rng;
    use rand_core::{Rng, SeedableRng};

    use super::*;
    use crate::calibrated::bins;
    use crate::encoding::Bounds;

    fn uniform(rng: &mut ChaCha20Rng) -> f64 {
        f64::from(rng.next_u32()) / 4_294_967_296.0
    }

    fn normal(rng: &mut ChaCha20Rng) -> f64 {
        (0..12).map(|_| uniform(rng)).sum::<f64>() - 6.0
    }

    fn counted(bins: &Bins, values: &[f64]) -> Vec<f64> {
        let mut counts = vec![0.0; bins.count()];
        for &value in values {
            counts[bins.place(value) as usize] += 1.0;
        }
        counts
    }

    #[test]
    fn without_noise_shares_and_quantiles_are_those_of_the_values() {
        let bounds = Bounds::new(-1.0, 3.0).unwrap();
        let bins = bins(bounds, None);
        let mut values: Vec<f64> = (0..40_000).map(|i| f64::from(i) / 10_000.0 - 1.0 + 1e-5).collect();
        values.resize(50_000, 0.0);
        let found = Distribution::new(&bins, &counted(&bins, &values), 1e-9, (50_000.0, 1e-9));
        assert!((found.zeros().unwrap().share - 0.2).abs() < 1e-9);
        let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-3, "{a} is not {b}");
        let below = |u: f64| found.between(-1.0, u).share;
        near(below(bounds.unit_of(-0.5)), 0.1);
        near(below(bounds.unit_of(1.0)), 0.6);
        near(below(-1.0), 0.0);
        near(below(1.0), 1.0);
        near(found.quantile(0.1).value, bounds.unit_of(-0.5));
        near(found.quantile(0.6).value, bounds.unit_of(1.0));
        // Exact zeros are found as such, and what lies about them stays in order.
        let zero = bounds.unit_of(0.0);
        assert_eq!(found.quantile(0.3).value.to_bits(), zero.to_bits());
        assert!(found.cells.windows(2).all(|pair| pair[0].to <= pair[1].from));
    }

    #[test]
    fn intervals_hold_the_true_quantiles_and_errors_are_as_large_as_said() {
        let bounds = Bounds::new(-10.0, 30.0).unwrap();
        let bins = bins(bounds, None);
        let mut rng = ChaCha20Rng::seed_from_u64(5);
        let values: Vec<f64> = (0..20_000)
            .map(|_| if uniform(&mut rng) < 0.3 { 0.0 } else { 4.0 + 2.0 * normal(&mut rng) })
            .collect();
        let counts = counted(&bins, &values);
        let mut sorted = values.clone();
        sorted.sort_by(f64::total_cmp);
        let probabilities = [0.05, 0.25, 0.5, 0.75, 0.95];
        let (mut held, mut squares, mut shares) = (0, 0.0, 0.0);
        let draws = 200;
        let x = 5.0;
        let truth = values.iter().filter(|&&value| value < x).count() as f64 / 20_000.0;
        for _ in 0..draws {
            let noised: Vec<f64> = counts.iter().map(|count| count + 40.0 * normal(&mut rng)).collect();
            let people = 20_000.0 + 100.0 * normal(&mut rng);
            let found = Distribution::new(&bins, &noised, 40.0, (people, 100.0));
            for probability in probabilities {
                let quantile = found.quantile(probability);
                let truth = bounds.unit_of(sorted[(probability * 20_000.0) as usize]);
                held += usize::from(quantile.low <= truth && truth <= quantile.high);
            }
            let below = found.between(-1.0, bounds.unit_of(x));
            squares += ((below.share - truth) / below.error).powi(2);
            shares += (found.zeros().unwrap().share - 0.3).abs();
        }
        let covered = held as f64 / (draws * probabilities.len()) as f64;
        assert!(covered > 0.94, "{covered}");
        let ratio = (squares / f64::from(draws as u32)).sqrt();
        assert!((0.4..1.15).contains(&ratio), "{ratio}");
        assert!(shares / (draws as f64) < 0.01);
    }

    #[test]
    fn noise_alone_gives_shares_between_none_and_all() {
        let bounds = Bounds::new(0.0, 1.0).unwrap();
        let bins = bins(bounds, None);
        let mut rng = ChaCha20Rng::seed_from_u64(6);
        for _ in 0..20 {
            let noised: Vec<f64> = (0..bins.count()).map(|_| 500.0 * normal(&mut rng)).collect();
            let found = Distribution::new(&bins, &noised, 500.0, (1.0, 500.0));
            let mut last = 0.0;
            for step in 0..=20 {
                let below = found.between(-1.0, f64::from(step) / 10.0 - 1.0);
                assert!(last <= below.share && below.share <= 1.0 && below.error.is_finite());
                last = below.share;
            }
            for probability in [0.0, 0.5, 1.0] {
                let Quantile { value, low, high } = found.quantile(probability);
                assert!(-1.0 <= low && low <= value && value <= high && high <= 1.0);
            }
        }
    }
}
