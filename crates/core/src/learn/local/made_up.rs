//! Covariances that the ball makes up (docs/LEARNERS.md#what-clipping-does).

use crate::calibrated::{Frame, Layout};
use crate::encoding::{Encoder, Scaling};

/// Covariances that the ball makes up between levels of different columns that have nothing to do
/// with each other: where both are rare their tails are cut together.
pub(super) fn covariances(layout: &Layout, frame: &Frame) -> Vec<f64> {
    let width = layout.width();
    let radius = frame.radius();
    let mut levels = Vec::new();
    let mut sizes = Vec::new();
    let mut first = 0;
    for encoder in layout.encoders() {
        let next = first + encoder.width();
        if matches!(encoder, Encoder::Categorical(_)) {
            let cases = LevelColumn::new(first, &frame.scalings[first..next]);
            levels.push((sizes.len(), cases));
            sizes.push(levels[levels.len() - 1].1.size());
        } else {
            let variance = frame.resolved(first).clamp(0.0, 1.0);
            sizes.push((variance, 2.0 * variance * variance));
        }
        first = next;
    }
    let sum = |part: fn(&(f64, f64)) -> f64| sizes.iter().map(part).sum::<f64>();
    let (mean, variance) = (sum(|size| size.0), sum(|size| size.1));
    let mut spurious = vec![0.0; width * width];
    for (at, (place, one)) in levels.iter().enumerate() {
        for (other_place, other) in &levels[..at] {
            let rest = (
                (mean - sizes[*place].0 - sizes[*other_place].0).max(0.0),
                (variance - sizes[*place].1 - sizes[*other_place].1).max(0.0),
            );
            for (i, row) in one.covariances(other, rest, radius).iter().enumerate() {
                for (j, &entry) in row.iter().enumerate() {
                    let (row, column) = (one.first + i, other.first + j);
                    spurious[row * width + column] = entry;
                    spurious[column * width + row] = entry;
                }
            }
        }
    }
    spurious
}

/// A categorical column: how its entries are scaled, and how likely each level is.
struct LevelColumn<'a> {
    first: usize,
    scalings: &'a [Scaling],
    /// Of each level, and last of none.
    chances: Vec<f64>,
    /// Squared norms of the entries in each of these cases.
    sizes: Vec<f64>,
}

impl<'a> LevelColumn<'a> {
    fn new(first: usize, scalings: &'a [Scaling]) -> Self {
        let share: Vec<f64> = scalings.iter().map(|scaling| scaling.centre.clamp(0.0, 1.0)).collect();
        let total = share.iter().sum::<f64>().max(1.0);
        let mut chances: Vec<f64> = share.iter().map(|share| share / total).collect();
        chances.push(1.0 - chances.iter().sum::<f64>());
        let entry = |scaling: &Scaling, u: f64| ((u - scaling.centre) / scaling.scale).powi(2);
        let none: f64 = scalings.iter().map(|scaling| entry(scaling, 0.0)).sum();
        let size = |scaling: &Scaling| none - entry(scaling, 0.0) + entry(scaling, 1.0);
        let sizes = scalings.iter().map(size).chain([none]).collect();
        Self { first, scalings, chances, sizes }
    }

    /// Mean and variance of the squared norm.
    fn size(&self) -> (f64, f64) {
        let moment = |power: i32| -> f64 {
            self.chances.iter().zip(&self.sizes).map(|(chance, size)| chance * size.powi(power)).sum()
        };
        (moment(1), moment(2) - moment(1) * moment(1))
    }

    /// Covariances, after the ball, of independent entries of this column and another, the rest of
    /// the row having a squared norm of this mean and variance.
    fn covariances(&self, other: &Self, rest: (f64, f64), radius: f64) -> Vec<Vec<f64>> {
        let (mean, reach) = (rest.0, (3.0 * rest.1).sqrt());
        // Three points that have the mean and variance of a bell curve.
        let points = [((mean - reach).max(0.0), 1.0 / 6.0), (mean, 2.0 / 3.0), (mean + reach, 1.0 / 6.0)];
        let (a, b) = (self.chances.len(), other.chances.len());
        // Probabilities of pairs of cases, times the ball's factor and times its square; with their
        // margins.
        let mut squared = vec![vec![0.0; b]; a];
        let (mut squared_left, mut squared_right, mut squared_all) = (vec![0.0; a], vec![0.0; b], 0.0);
        let (mut left, mut right, mut all) = (vec![0.0; a], vec![0.0; b], 0.0);
        for i in 0..a {
            for j in 0..b {
                for (rest, weight) in points {
                    let chance = weight * self.chances[i] * other.chances[j];
                    let size = (self.sizes[i] + other.sizes[j] + rest).max(1e-300);
                    let factor = (radius / size.sqrt()).min(1.0);
                    left[i] += chance * factor;
                    right[j] += chance * factor;
                    all += chance * factor;
                    squared[i][j] += chance * factor * factor;
                }
                squared_left[i] += squared[i][j];
                squared_right[j] += squared[i][j];
                squared_all += squared[i][j];
            }
        }
        let covariance = |i: usize, j: usize| {
            let (x, y) = (&self.scalings[i], &other.scalings[j]);
            let product = squared[i][j] - y.centre * squared_left[i] - x.centre * squared_right[j]
                + x.centre * y.centre * squared_all;
            let means = (left[i] - x.centre * all) * (right[j] - y.centre * all);
            (product - means) / (x.scale * y.scale)
        };
        (0..a - 1).map(|i| (0..b - 1).map(|j| covariance(i, j)).collect()).collect()
    }
}
