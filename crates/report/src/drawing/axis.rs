//! A scale from numbers to pixels, with round ticks.

use super::text;
use crate::numbers;

/// The size of the text of tick labels.
pub const TICK_SIZE: f64 = 11.5;

/// A scale, linear or logarithmic. Its ends are finite and apart.
#[derive(Clone, Copy, Debug)]
pub struct Axis {
    lo: f64,
    hi: f64,
    /// Where the ends of the scale are, in pixels; upright axes run from the bottom up.
    from: f64,
    to: f64,
    is_log: bool,
}

impl Axis {
    /// A linear scale from `lo..hi` to `from..to`; an empty range becomes −1..1.
    pub fn linear((lo, hi): (f64, f64), (from, to): (f64, f64)) -> Self {
        // Beyond this, differences of numbers could overflow.
        let (lo, hi) = (lo.clamp(-1e300, 1e300), hi.clamp(-1e300, 1e300));
        let (lo, hi) = if hi - lo > 0.0 { (lo, hi) } else { (-1.0, 1.0) };
        Self { lo, hi, from, to, is_log: false }
    }

    /// A logarithmic scale; a range that is empty or not of positive numbers becomes 0.1..1.
    pub fn logarithmic((lo, hi): (f64, f64), ends: (f64, f64)) -> Self {
        let (lo, hi) = if lo > 0.0 && hi > lo { (lo, hi) } else { (0.1, 1.0) };
        Self { is_log: true, ..Self::linear((lo.log10(), hi.log10()), ends) }
    }

    /// Where a number is; numbers off the scale are at its end, and what is no number at its start.
    pub fn at(&self, value: f64) -> f64 {
        let value = if self.is_log { value.log10() } else { value };
        if value.is_nan() {
            return self.from;
        }
        let part = ((value.clamp(self.lo, self.hi) - self.lo) / (self.hi - self.lo)).clamp(0.0, 1.0);
        self.from + part * (self.to - self.from)
    }

    pub(crate) fn goes_below(&self, value: f64) -> bool {
        value < self.lo
    }

    pub(crate) fn goes_above(&self, value: f64) -> bool {
        value > self.hi
    }

    /// Ticks at round numbers, as places and labels: about `most`, or as many as have room beside
    /// each other.
    pub fn ticks(&self, most: usize) -> Vec<(f64, String)> {
        self.with_room(most, |label| text::ems(label) * TICK_SIZE + 10.0)
    }

    /// The same for an upright axis.
    pub fn ticks_upright(&self, most: usize) -> Vec<(f64, String)> {
        self.with_room(most, |_| 1.5 * TICK_SIZE)
    }

    fn with_room(&self, most: usize, room: impl Fn(&str) -> f64) -> Vec<(f64, String)> {
        let fits = |pair: &[(f64, String)]| {
            (pair[1].0 - pair[0].0).abs() >= f64::midpoint(room(&pair[0].1), room(&pair[1].1))
        };
        let candidates =
            (1..=most).rev().map(|count| if self.is_log { self.about_log(count) } else { self.about(count) });
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
            .map(|value| (self.at(value), numbers::tick(value, step, largest)))
            .collect()
    }

    /// Powers of ten, with 2 and 5 times them where there are too few, or each second, third ….
    fn about_log(&self, count: usize) -> Vec<(f64, String)> {
        let powers = self.lo.floor() as i32..=self.hi.ceil() as i32;
        let many = powers.clone().filter(|&power| (self.lo..=self.hi).contains(&f64::from(power))).count();
        let (every, times): (usize, &[f64]) = match many {
            many if many > count => (many.div_ceil(count), &[1.0]),
            many if 3 * many.max(1) > count => (1, &[1.0]),
            _ => (1, &[1.0, 2.0, 5.0]),
        };
        powers
            .step_by(every)
            .flat_map(|power| times.iter().map(move |times| times * 10_f64.powi(power)))
            .filter(|value| (self.lo - 1e-9..=self.hi + 1e-9).contains(&value.log10()))
            .map(|value| (self.at(value), numbers::power_tick(value)))
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
            let axis = Axis::linear((lo, hi), (100.0, 500.0));
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
    fn ticks_of_a_logarithmic_scale_are_round_and_inside() {
        let labels = |range| {
            let ticks = Axis::logarithmic(range, (100.0, 500.0)).ticks(6);
            assert!(ticks.iter().all(|(x, _)| (100.0..=500.0).contains(x)), "{ticks:?}");
            ticks.into_iter().map(|(_, label)| label).collect::<Vec<_>>()
        };
        assert_eq!(labels((0.5, 20.0)), ["0.5", "1", "2", "5", "10", "20"]);
        assert_eq!(labels((900.0, 2e6)), ["1000", "10⁴", "10⁵", "10⁶"]);
        assert!((2..=6).contains(&labels((1e-12, 1e12)).len()));
        assert!(!labels((0.0, f64::NAN)).is_empty());
    }

    #[test]
    fn what_is_no_number_has_a_place_too() {
        let axis = Axis::linear((0.0, 1.0), (10.0, 20.0));
        assert!((axis.at(f64::NAN) - 10.0).abs() < 1e-9);
        assert!((Axis::logarithmic((1.0, 10.0), (10.0, 20.0)).at(-1.0) - 10.0).abs() < 1e-9);
    }

    #[test]
    fn an_empty_range_has_room_around_zero() {
        let axis = Axis::linear((0.0, 0.0), (0.0, 100.0));
        assert!((axis.at(0.0) - 50.0).abs() < 1e-9);
    }
}
