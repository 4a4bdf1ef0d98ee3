//! A scale from numbers to pixels, with round ticks.

use super::{SMALL_SIZE, text};
use crate::numbers;

/// A linear scale. Its ends are finite and apart.
#[derive(Clone, Copy, Debug)]
pub(super) struct Axis {
    lo: f64,
    hi: f64,
    left: f64,
    right: f64,
}

impl Axis {
    /// From `lo..hi` to `left..right`; an empty range becomes −1..1.
    pub(super) fn new((lo, hi): (f64, f64), (left, right): (f64, f64)) -> Self {
        // Beyond this, differences of numbers could overflow.
        let (lo, hi) = (lo.clamp(-1e300, 1e300), hi.clamp(-1e300, 1e300));
        let (lo, hi) = if hi - lo > 0.0 { (lo, hi) } else { (-1.0, 1.0) };
        Self { lo, hi, left, right }
    }

    /// Where a number is; numbers off the scale are at its end.
    pub(super) fn x(&self, value: f64) -> f64 {
        let part = ((value.clamp(self.lo, self.hi) - self.lo) / (self.hi - self.lo)).clamp(0.0, 1.0);
        self.left + part * (self.right - self.left)
    }

    pub(super) fn goes_below(&self, value: f64) -> bool {
        value < self.lo
    }

    pub(super) fn goes_above(&self, value: f64) -> bool {
        value > self.hi
    }

    /// Ticks at round numbers, as places and labels: about `most`, or as many as have room beside
    /// each other.
    pub(super) fn ticks(&self, most: usize) -> Vec<(f64, String)> {
        let room = |label: &str| text::ems(label) * SMALL_SIZE + 10.0;
        let fits = |pair: &[(f64, String)]| {
            pair[1].0 - pair[0].0 >= f64::midpoint(room(&pair[0].1), room(&pair[1].1))
        };
        let candidates = (1..=most).rev().map(|count| self.about(count));
        candidates.into_iter().find(|ticks| ticks.windows(2).all(fits)).unwrap_or_default()
    }

    fn about(&self, count: usize) -> Vec<(f64, String)> {
        let rough = (self.hi - self.lo) / count as f64;
        let power = 10_f64.powi(rough.log10().floor() as i32);
        // The round number nearest to the rough one, by ratio: √2, √10 and √50 are the borders.
        let round = match rough / power {
            part if part < 2_f64.sqrt() => 1.0,
            part if part < 10_f64.sqrt() => 2.0,
            part if part < 50_f64.sqrt() => 5.0,
            _ => 10.0,
        };
        let step = round * power;
        // Tiny and huge powers of ten are not exact; the slack keeps a tick at either end.
        let first = (self.lo / step - 1e-9).ceil() as i64;
        let last = (self.hi / step + 1e-9).floor() as i64;
        let largest = self.lo.abs().max(self.hi.abs());
        (first..=last)
            .map(|at| at as f64 * step)
            .map(|value| (self.x(value), numbers::tick(value, step, largest)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_few_and_inside() {
        for (lo, hi) in
            [(-0.13, 0.41), (0.0, 1e-12), (-3e12, 1e11), (-1e-300, 0.0), (0.0, 1e300), (-1.0, 1.0)]
        {
            let axis = Axis::new((lo, hi), (100.0, 500.0));
            let ticks = axis.ticks(6);
            assert!((2..=10).contains(&ticks.len()), "{lo} to {hi}: {ticks:?}");
            assert!(ticks.iter().all(|(x, _)| (100.0..=500.0).contains(x)), "{ticks:?}");
            assert!(
                ticks.iter().any(|(_, label)| label.trim_start_matches(['0', '.']).is_empty()),
                "{ticks:?}"
            );
        }
    }

    #[test]
    fn an_empty_range_has_room_around_zero() {
        let axis = Axis::new((0.0, 0.0), (0.0, 100.0));
        assert!((axis.x(0.0) - 50.0).abs() < 1e-9);
    }
}
