//! Where a numeric column lies, from how many of its values lie in each bin.
//!
//! It works on noised counts, with additions, multiplications, divisions, square roots and
//! comparisons of doubles only. How well it does matters for accuracy alone.

use crate::encoding::{Bins, Bounds};

/// Bins count only if they hold more than so many standard deviations of their noise.
const SEEN: f64 = 3.0;

/// Mean and spread of a column in units of its public range, from noised counts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Located {
    pub(super) mean: f64,
    /// Variance, noise included.
    pub(super) variance: f64,
    /// Standard deviation of the noise in the mean.
    pub(super) error: f64,
    /// What noise may add to the variance.
    pub(super) inflation: f64,
}

/// Where a column lies whose bins have these noised counts; `sigma` is the scale of the noise.
/// Nothing if no bin stands out of the noise.
pub(super) fn located(bins: &Bins, bounds: Bounds, counts: &[i64], sigma: f64) -> Option<Located> {
    let spans = spans(bins, bounds);
    let seen = |&(at, _): &(usize, &[f64; 2])| counts[at] as f64 > SEEN * sigma;
    let hull = spans.iter().enumerate().filter(seen).map(|(_, &span)| span).reduce(|hull, span| {
        [if span[0] < hull[0] { span[0] } else { hull[0] }, if span[1] > hull[1] { span[1] } else { hull[1] }]
    })?;
    let inside: Vec<(f64, [f64; 2])> = spans
        .iter()
        .zip(counts)
        .filter(|(span, _)| span[0] >= hull[0] && span[1] <= hull[1])
        .map(|(&span, &count)| (count as f64, span))
        .collect();
    let people: f64 = inside.iter().map(|&(count, _)| count).sum::<f64>().max(1.0);
    let middle = |[low, high]: [f64; 2]| (low + high) / 2.0;
    let mean = inside.iter().map(|&(count, span)| count * middle(span)).sum::<f64>() / people;
    let mean = mean.clamp(hull[0], hull[1]);
    let square = |span: [f64; 2]| {
        let (from, width) = (middle(span) - mean, span[1] - span[0]);
        from * from + width * width / 12.0
    };
    let variance = inside.iter().map(|&(count, span)| count * square(span)).sum::<f64>() / people;
    let length = hull[1] - hull[0];
    let variance = variance.clamp(0.0, length * length);
    let from_mean = |&(_, span): &(f64, [f64; 2])| (middle(span) - mean) * (middle(span) - mean);
    let error = sigma / people * inside.iter().map(from_mean).sum::<f64>().sqrt();
    let squared = |&(_, span): &(f64, [f64; 2])| square(span) * square(span);
    let inflation = sigma / people * inside.iter().map(squared).sum::<f64>().sqrt();
    Some(Located { mean, variance, error, inflation })
}

/// From where to where each bin reaches, in units of the public range.
fn spans(bins: &Bins, bounds: Bounds) -> Vec<[f64; 2]> {
    let starts = std::iter::once(-1.0).chain(bins.edges().iter().copied());
    let ends = bins.edges().iter().copied().chain([1.0]);
    let zero = bins.has_zero().then(|| [bounds.unit_of(0.0); 2]);
    starts.zip(ends).map(|(start, end)| [start, end]).chain(zero).collect()
}

#[cfg(test)]
mod tests {
    use super::super::bins::bins;
    use super::*;

    #[test]
    fn a_narrow_column_within_loose_bounds_is_found() {
        let bounds = Bounds::new(-1000.0, 1000.0).unwrap();
        let bins = bins(bounds);
        let mut counts = vec![0_i64; bins.count()];
        for i in 0..10_000 {
            counts[bins.place(2.5 + f64::from(i % 100) / 50.0, bounds) as usize] += 1;
        }
        let located = located(&bins, bounds, &counts, 20.0).unwrap();
        assert!((located.mean * 1000.0 - 3.5).abs() < 0.5, "{located:?}");
        assert!((0.3..2.5).contains(&(located.variance.sqrt() * 1000.0)), "{located:?}");
    }

    #[test]
    fn noise_alone_locates_nothing() {
        let bounds = Bounds::new(0.0, 1.0).unwrap();
        let bins = bins(bounds);
        assert_eq!(located(&bins, bounds, &vec![30; bins.count()], 20.0), None);
    }
}
