//! What the histogram of a numeric column adds to the sums of the first stage: a narrower box,
//! where the public bounds are much too wide.
//!
//! It works on noised counts, with additions, multiplications, divisions, square roots and
//! comparisons of doubles, in the order written here, so that every verifier gets the same box. How
//! well it does matters for accuracy alone. Its constants are explained in
//! docs/LEARNERS.md#what-a-calibrated-release-publishes.

use crate::encoding::Bins;

/// Lengths of runs of cells that may stand out …
const RUNS: [usize; 4] = [1, 2, 4, 8];
/// … and of those beside them that people who are missed may be in.
const BESIDE: [usize; 2] = [1, 2];
/// Noise deviations by which a run stands out anywhere …
const CLEAR: f64 = 4.0;
/// … and beside others where people are missed.
const WEAK: f64 = 1.5;
/// Share of the people who are not zeros that cells which stand out hold at least.
const SEEN: f64 = 0.5;
/// Noise deviations by which people outside the marked cells are noticed …
const MISSED: f64 = 2.5;
/// … and second moments outside the hull.
const TAILS: f64 = 3.0;
/// Half-width of the box in standard deviations, and what noise adds to it.
const REACH: (f64, f64) = (3.0, 20.0);
/// Noise of squares, as a share of the variance, that a box may leave rather than cut tails.
const NEED: f64 = 0.15;
/// What the histogram's variance is off by, of itself, when it is weighed against that of the sums.
const DOUBT: f64 = 2.0;
/// The box is narrowed only if it becomes narrower by this factor, larger where the sums see a
/// spread.
const PAYS: (f64, f64) = (1.5, 1.0);

/// What the sums of the first stage say of a column, in units of its public range.
#[derive(Clone, Copy, Debug)]
pub(super) struct FromSums {
    pub(super) mean: f64,
    /// Standard deviation of the noise in the mean.
    pub(super) error: f64,
    /// Without what noise adds.
    pub(super) variance: f64,
    /// Standard deviation of the noise in the mean square.
    pub(super) square_error: f64,
    /// The box.
    pub(super) low: f64,
    pub(super) high: f64,
}

/// Noised counts and how noisy they are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counted<'a> {
    pub(super) bins: &'a Bins,
    /// Of each cell.
    pub(super) cells: &'a [f64],
    pub(super) sigma: f64,
    /// All who have a value, at least 1.
    pub(super) people: f64,
    pub(super) people_sigma: f64,
}

/// The box of the first stage, narrowed where the sums leave it much too wide.
pub(super) fn narrowed(first: FromSums, counted: Counted<'_>, growth: f64) -> [f64; 2] {
    let Counted { bins, cells, sigma, people, .. } = counted;
    let FromSums { mean, error, variance, square_error, low, high } = first;
    let wide = [low, high];
    let Some(marked) = marked(counted) else { return wide };
    let (start, stop) = ends(&marked);
    let intervals = bins.intervals();
    let (left, right) = (intervals[start][0], intervals[stop - 1][1]);
    if left >= right {
        return wide;
    }
    let within = || intervals[start..stop].iter().zip(&cells[start..stop]);
    let (mut inside, mut total) = (0.0, 0.0);
    for ([a, b], count) in within() {
        inside += count;
        total += count * ((a + b) / 2.0);
    }
    inside = inside.max(people / 4.0);
    let m = (total / inside).max(left).min(right);
    let (mut below, mut above, mut of_mean, mut of_squares) = (0.0, 0.0, 0.0, 0.0);
    for ([a, b], count) in within() {
        let d = (a + b) / 2.0 - m;
        let square = d * d + (b - a) * (b - a) / 12.0;
        *(if d > 0.0 { &mut above } else { &mut below }) += count * square;
        of_mean += d * d;
        of_squares += square * square;
    }
    let (below, above) = ((below / inside).max(0.0), (above / inside).max(0.0));
    let found = below + above;
    let of_found = sigma * f64::sqrt(of_mean) / inside;
    let nu = sigma * f64::sqrt(of_squares) / inside;
    // What the sums say of the squares that the hull misses.
    let doubt = square_error * square_error + 4.0 * mean * mean * error * error;
    if variance + (mean - m) * (mean - m) - found > TAILS * f64::sqrt(doubt + nu * nu) {
        return wide;
    }
    let doubled = DOUBT * found;
    let trust = doubled * doubled / (doubled * doubled + doubt);
    let more = (variance - found).max(0.0) * trust + nu;
    let reach = (REACH.0 + REACH.1 * f64::sqrt(sigma / people)).max(f64::sqrt(NEED / square_error)) * growth;
    let a = low.max(left.min(m - reach * f64::sqrt(2.0 * below + more) - 2.0 * of_found));
    let b = high.min(right.max(m + reach * f64::sqrt(2.0 * above + more) + 2.0 * of_found));
    let pays = (PAYS.0 + PAYS.1 * variance / f64::sqrt(doubt)) * (b - a) < high - low;
    if a < b && pays { [a, b] } else { wide }
}

/// The cells that hold people: the run that stands out most, again and again. Nothing if too many
/// people are not found.
fn marked(counted: Counted<'_>) -> Option<Vec<bool>> {
    let Counted { bins, cells, sigma, people, people_sigma } = counted;
    let mut taken = vec![false; cells.len()];
    let (mut inside, mut size) = (0.0, 0.0);
    let mut take = |taken: &mut [bool], run: Run| {
        for cell in run.start..run.start + run.length {
            taken[cell] = true;
            inside += cells[cell];
        }
        size += run.length as f64;
        (inside, size)
    };
    let (mut held, mut cells_held) = (0.0, 0.0);
    while let Some(run) = best_run(cells, &taken, &RUNS, |length| 0..(cells.len() + 1).saturating_sub(length))
    {
        if run.clear <= CLEAR * sigma {
            break;
        }
        (held, cells_held) = take(&mut taken, run);
    }
    let zeros = bins.zeros().map_or(0.0, |at| cells[at]);
    let seen = if bins.zeros().is_some_and(|at| taken[at]) { held - zeros } else { held };
    if held == 0.0 || seen < SEEN * (people - zeros) || !taken.contains(&true) {
        return None;
    }
    while people - held > MISSED * f64::sqrt(cells_held * sigma * sigma + people_sigma * people_sigma) {
        let (start, stop) = ends(&taken);
        let beside = |length: usize| start.checked_sub(length).into_iter().chain([stop]);
        match best_run(cells, &taken, &BESIDE, beside) {
            Some(run) if run.clear > WEAK * sigma => (held, cells_held) = take(&mut taken, run),
            _ => break,
        }
    }
    Some(taken)
}

/// The first marked cell, and the one behind the last.
fn ends(marked: &[bool]) -> (usize, usize) {
    let first = marked.iter().position(|&is| is).unwrap_or(0);
    let last = marked.iter().rposition(|&is| is).unwrap_or(0);
    (first, last + 1)
}

/// A run of cells.
#[derive(Clone, Copy)]
struct Run {
    /// Its sum over the root of its length.
    clear: f64,
    start: usize,
    length: usize,
}

/// The run of cells not taken that stands out most; of equal ones the shortest, then the leftmost.
fn best_run<S: IntoIterator<Item = usize>>(
    cells: &[f64],
    taken: &[bool],
    lengths: &[usize],
    starts: impl Fn(usize) -> S,
) -> Option<Run> {
    let mut best: Option<Run> = None;
    for &length in lengths {
        let root = (length as f64).sqrt();
        for start in starts(length) {
            let range = start..start + length;
            if range.end > cells.len() || taken[range.clone()].contains(&true) {
                continue;
            }
            let mut total = 0.0;
            for count in &cells[range] {
                total += count;
            }
            let clear = total / root;
            if clear > best.map_or(0.0, |best| best.clear) {
                best = Some(Run { clear, start, length });
            }
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::super::bins::bins;
    use super::*;
    use crate::encoding::Bounds;

    const WIDE: FromSums =
        FromSums { mean: 0.0, error: 0.01, variance: 0.0, square_error: 0.02, low: -1.0, high: 1.0 };

    fn box_of(bounds: Bounds, values: impl Iterator<Item = f64>, sigma: f64) -> [f64; 2] {
        let bins = bins(bounds, None);
        let mut cells = vec![0.0; bins.count()];
        values.for_each(|value| cells[bins.place(value) as usize] += 1.0);
        let people: f64 = cells.iter().sum();
        let counted = Counted { bins: &bins, cells: &cells, sigma, people, people_sigma: sigma };
        narrowed(WIDE, counted, 1.0)
    }

    #[test]
    fn a_narrow_column_within_loose_bounds_is_found() {
        let bounds = Bounds::new(-1000.0, 1000.0).unwrap();
        let [low, high] = box_of(bounds, (0..10_000).map(|i| 2.5 + f64::from(i % 100) / 50.0), 20.0);
        assert!(low < 0.0025 && 0.0045 < high && high - low < 0.1, "{low} {high}");
    }

    /// As vectors/shapes/reference.py has it, to the bit.
    #[test]
    fn cells_and_boxes_are_those_of_the_reference() {
        let vectors: serde_json::Value =
            serde_json::from_str(include_str!("../../../../vectors/shapes/shapes.json")).unwrap();
        let number = |value: &serde_json::Value| value.as_f64().unwrap();
        let numbers = |value: &serde_json::Value| -> Vec<f64> {
            value.as_array().unwrap().iter().map(number).collect()
        };
        let bins_of = |case: &serde_json::Value| {
            let bounds = Bounds::new(number(&case["lo"]), number(&case["hi"])).unwrap();
            bins(bounds, case["typical"].as_f64())
        };
        let bits = |numbers: &[f64]| numbers.iter().map(|number| number.to_bits()).collect::<Vec<_>>();
        for case in vectors["columns"].as_array().unwrap() {
            let (bins, expected) = (bins_of(case), case["cells"].as_array().unwrap());
            assert_eq!(bins.zeros().map(|at| at as u64), case["zero"].as_u64());
            assert_eq!(bins.count(), expected.len());
            for (own, expected) in bins.intervals().iter().zip(expected) {
                assert_eq!(bits(own), bits(&numbers(expected)));
            }
        }
        for case in vectors["boxes"].as_array().unwrap() {
            let (bins, cells, first) = (bins_of(case), numbers(&case["counts"]), numbers(&case["first"]));
            let counted = Counted {
                bins: &bins,
                cells: &cells,
                sigma: number(&case["sigma"]),
                people: number(&case["people"]),
                people_sigma: number(&case["people_sigma"]),
            };
            let [mean, error, variance, square_error, low, high] = first[..] else { panic!("six numbers") };
            let first = FromSums { mean, error, variance, square_error, low, high };
            let found = narrowed(first, counted, number(&case["growth"]));
            assert_eq!(bits(&found), bits(&numbers(&case["box"])), "{case}");
        }
    }

    #[test]
    fn nobody_who_is_seen_gives_no_box() {
        let bounds = Bounds::new(0.0, 1.0).unwrap();
        let [low, high] = box_of(bounds, (0..100).map(|i| f64::from(i) / 100.0), 50.0);
        assert!(low <= -1.0 && high >= 1.0);
    }

    #[test]
    fn counts_of_any_size_leave_a_box_within_that_of_the_sums() {
        let bounds = Bounds::new(-2.0, 1.0).unwrap();
        let bins = bins(bounds, None);
        let sizes = [0.0, 1.0, -1e6, 1e18, -1e18, 9.2e18];
        for pattern in 1..60_usize {
            let cells: Vec<f64> = (0..bins.count()).map(|cell| sizes[(cell * pattern) % 61 % 6]).collect();
            for people in [1.0, 1e9, 9.2e18] {
                let counted = Counted { bins: &bins, cells: &cells, sigma: 3.0, people, people_sigma: 2.0 };
                let [low, high] = narrowed(WIDE, counted, 1.0);
                assert!(-1.0 <= low && low < high && high <= 1.0, "{pattern} {people}");
            }
        }
    }
}
