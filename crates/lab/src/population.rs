//! Made-up populations whose best linear prediction is known exactly.
//!
//! Features are clipped to their public bounds before the label is made of them, and the label's
//! mean is linear in them, so the slopes that make the label are those of the best linear
//! prediction.

use faer::{Col, Mat};
use potluck_core::encoding::{Bounds, LevelCount};
use rand_core::SeedableRng;
use rand_distr::{Distribution, StandardNormal, StudentT};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::holdings::{Column, Holdings};
use crate::seeds::Seed;
use crate::synthetic::uniform;

/// Subjects that moments are computed from.
const MOMENT_ROWS: usize = 1_000_000;
/// Features of a party.
const PARTY: usize = 2;
/// Degrees of freedom of heavy tails: the fewest with a variance.
const TAIL: f64 = 3.0;

/// How a feature is distributed; numbers have mean 0 and variance 1 before they are clipped.
#[derive(Clone, Copy)]
enum Shape {
    Gaussian,
    HeavyTailed,
    /// 1 with this probability.
    Binary(f64),
}

#[derive(Clone, Copy)]
enum Label {
    /// A residual of this shape and size; public bounds that values next to never reach.
    Number { shape: Shape, residual: f64, bound: f64 },
    /// 1 with the probability that the slopes and this intercept give.
    Binary { intercept: f64 },
}

/// Who holds the label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Placement {
    /// A party with no other column.
    Alone,
    /// A party with features.
    WithFeatures,
}

impl Placement {
    pub(crate) const ALL: [Self; 2] = [Self::Alone, Self::WithFeatures];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Alone => "alone",
            Self::WithFeatures => "with features",
        }
    }
}

/// A population to draw tables from.
pub(crate) struct Population {
    pub(crate) name: &'static str,
    shapes: Vec<Shape>,
    /// Change of the label per unit of each feature.
    pub(crate) slopes: Vec<f64>,
    /// Correlation of a Gaussian feature with the one before.
    link: f64,
    /// Public bounds of numeric features.
    bound: f64,
    label: Label,
}

/// Second moments of a population after clipping.
pub(crate) struct PopulationMoments {
    slopes: Col<f64>,
    /// Of the features.
    covariance: Mat<f64>,
    label_variance: f64,
}

impl Population {
    /// Gaussian features, each correlated with its neighbours.
    pub(crate) fn correlated() -> Self {
        Self {
            name: "correlated",
            shapes: vec![Shape::Gaussian; 6],
            slopes: vec![0.4, -0.3, 0.3, 0.0, 0.2, -0.2],
            link: 0.5,
            bound: 6.0,
            label: Label::Number { shape: Shape::Gaussian, residual: 1.0, bound: 8.0 },
        }
    }

    /// One coefficient explains nearly all that is explained.
    pub(crate) fn strong() -> Self {
        Self {
            name: "strong",
            slopes: vec![1.0, 0.0, 0.0, 0.1, 0.0, -0.1],
            link: 0.2,
            label: Label::Number { shape: Shape::Gaussian, residual: 0.6, bound: 8.0 },
            ..Self::correlated()
        }
    }

    /// Features and residuals with tails as of Student's t with 3 degrees of freedom.
    pub(crate) fn heavy_tailed() -> Self {
        Self {
            name: "heavy-tailed",
            shapes: vec![Shape::HeavyTailed; 6],
            link: 0.0,
            bound: 15.0,
            label: Label::Number { shape: Shape::HeavyTailed, residual: 1.0, bound: 40.0 },
            ..Self::correlated()
        }
    }

    /// A feature that 5% have and a label that 9% have.
    pub(crate) fn rare() -> Self {
        Self {
            name: "rare",
            slopes: vec![0.15, 0.01, 0.04, 0.0, -0.02, -0.005],
            bound: 3.0,
            label: Label::Binary { intercept: 0.07 },
            ..Self::rare_feature()
        }
    }

    /// A feature that 5% have, and a numeric label.
    pub(crate) fn rare_feature() -> Self {
        let gaussian = Shape::Gaussian;
        Self {
            name: "5% binary",
            shapes: vec![
                Shape::Binary(0.05),
                gaussian,
                Shape::Binary(0.4),
                gaussian,
                Shape::Binary(0.2),
                gaussian,
            ],
            slopes: vec![0.8, 0.3, 0.4, 0.0, -0.3, -0.2],
            link: 0.0,
            bound: 6.0,
            label: Label::Number { shape: Shape::Gaussian, residual: 1.0, bound: 8.0 },
        }
    }

    /// Position of the label among the encoded columns.
    pub(crate) fn label(&self) -> usize {
        self.shapes.len()
    }

    /// Calls `row` with the features and the label of n subjects.
    fn draw(&self, n: usize, seed: Seed, mut row: impl FnMut(&[f64], f64)) {
        let mut rng = Xoshiro256PlusPlus::from_seed(seed.of("data").bytes());
        let tail = StudentT::new(TAIL).expect("degrees of freedom are positive");
        let normalise = (TAIL / (TAIL - 2.0)).sqrt();
        let mut value = |shape: Shape| -> f64 {
            match shape {
                Shape::Gaussian => StandardNormal.sample(&mut rng),
                Shape::HeavyTailed => tail.sample(&mut rng) / normalise,
                Shape::Binary(probability) => f64::from(uniform(&mut rng) < 2.0 * probability - 1.0),
            }
        };
        let rest = (1.0 - self.link * self.link).sqrt();
        let mut features = vec![0.0; self.shapes.len()];
        for _ in 0..n {
            let mut previous = None;
            for (feature, &shape) in features.iter_mut().zip(&self.shapes) {
                let mut own = value(shape);
                if matches!(shape, Shape::Gaussian) {
                    own = previous.map_or(own, |previous: f64| self.link * previous + rest * own);
                    previous = Some(own);
                }
                *feature = own.clamp(-self.bound, self.bound);
            }
            let sum: f64 = self.slopes.iter().zip(&features).map(|(slope, feature)| slope * feature).sum();
            let label = match self.label {
                Label::Number { shape, residual, bound } => {
                    (sum + residual * value(shape)).clamp(-bound, bound)
                }
                Label::Binary { intercept } => value(Shape::Binary(intercept + sum)),
            };
            row(&features, label);
        }
    }

    /// A table of n subjects: two features a party, the label last.
    pub(crate) fn holdings(&self, n: usize, placement: Placement, seed: Seed) -> Holdings {
        Holdings::new(n, self.parties(n, placement, seed))
    }

    /// Its columns, party by party.
    pub(crate) fn parties(&self, n: usize, placement: Placement, seed: Seed) -> Vec<Vec<Column>> {
        let mut columns: Vec<Column> =
            self.shapes.iter().map(|&shape| column(shape, self.bound, n)).collect();
        let mut label = match self.label {
            Label::Number { shape, bound, .. } => column(shape, bound, n),
            Label::Binary { .. } => column(Shape::Binary(0.5), 1.0, n),
        };
        self.draw(n, seed, |features, own| {
            for (column, &value) in columns.iter_mut().zip(features).chain([(&mut label, &own)]) {
                match column {
                    Column::Numbers { values, .. } => values.push(value),
                    Column::Levels { codes, .. } => codes.push(u32::from(value > 0.5)),
                }
            }
        });
        let mut parties: Vec<Vec<Column>> = Vec::new();
        for (at, column) in columns.into_iter().enumerate() {
            if at % PARTY == 0 {
                parties.push(Vec::new());
            }
            parties[at / PARTY].push(column);
        }
        match (placement, parties.last_mut()) {
            (Placement::WithFeatures, Some(last)) => last.push(label),
            _ => parties.push(vec![label]),
        }
        parties
    }

    /// Second moments, from a large sample.
    pub(crate) fn moments(&self, seed: Seed) -> PopulationMoments {
        let d = self.shapes.len();
        let n = MOMENT_ROWS as f64;
        let mut sums = vec![0.0; d + 1];
        let mut products = Mat::<f64>::zeros(d + 1, d + 1);
        self.draw(MOMENT_ROWS, seed.of("moments"), |features, label| {
            let value = |j: usize| if j < d { features[j] } else { label };
            for i in 0..=d {
                sums[i] += value(i);
                for j in 0..=i {
                    products[(i, j)] += value(i) * value(j);
                }
            }
        });
        let entry = |i: usize, j: usize| products[(i.max(j), i.min(j))] / n - sums[i] * sums[j] / (n * n);
        PopulationMoments {
            slopes: Col::from_fn(d, |j| self.slopes[j]),
            covariance: Mat::from_fn(d, d, entry),
            label_variance: entry(d, d),
        }
    }
}

fn column(shape: Shape, bound: f64, n: usize) -> Column {
    match shape {
        Shape::Binary(_) => {
            Column::Levels { count: LevelCount::new(2).expect("two is enough"), codes: Vec::with_capacity(n) }
        }
        Shape::Gaussian | Shape::HeavyTailed => Column::Numbers {
            bounds: Bounds::new(-bound, bound).expect("bounds of populations are positive"),
            values: Vec::with_capacity(n),
        },
    }
}

impl PopulationMoments {
    /// The share of the label's variance that predictions with these slopes explain in the
    /// population. This is what intervals of R² are about: the fitted model on new subjects, not
    /// the best one.
    pub(crate) fn explained_by(&self, slopes: &[f64]) -> f64 {
        let w = Col::from_fn(slopes.len(), |j| slopes[j]);
        let explained = (&self.slopes * 2.0 - &w).transpose() * &self.covariance * &w;
        explained / self.label_variance
    }

    /// A slope in standard deviations of the label per standard deviation of the feature.
    pub(crate) fn standardised(&self, feature: usize, slope: f64) -> f64 {
        slope * (self.covariance[(feature, feature)] / self.label_variance).sqrt()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use faer::prelude::Solve;

    /// Least squares on a large sample finds the slopes that every population claims.
    #[test]
    fn the_best_linear_prediction_has_the_slopes() {
        let all = [
            Population::correlated(),
            Population::strong(),
            Population::heavy_tailed(),
            Population::rare(),
            Population::rare_feature(),
        ];
        for population in all {
            let (n, d) = (200_000, population.label());
            let mut sums = vec![0.0; d + 1];
            let mut products = Mat::<f64>::zeros(d + 1, d + 1);
            population.draw(n, Seed::new(3), |features, label| {
                let row: Vec<f64> = features.iter().copied().chain([label]).collect();
                for i in 0..=d {
                    sums[i] += row[i] / n as f64;
                    for j in 0..=d {
                        products[(i, j)] += row[i] * row[j] / n as f64;
                    }
                }
            });
            let covariance = Mat::from_fn(d + 1, d + 1, |i, j| products[(i, j)] - sums[i] * sums[j]);
            let label = Col::from_fn(d, |i| covariance[(i, d)]);
            let found = covariance.submatrix(0, 0, d, d).partial_piv_lu().solve(&label);
            for (j, slope) in population.slopes.iter().enumerate() {
                let error = 5.0 * (covariance[(d, d)] / covariance[(j, j)] / n as f64).sqrt();
                assert!((found[j] - slope).abs() < 1.5 * error, "{} {j}: {}", population.name, found[j]);
            }
        }
    }
}
