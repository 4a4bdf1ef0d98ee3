//! Made-up populations with a yes/no label whose log odds are linear in the features, and what can
//! be said of predictions for it.

use anyhow::{Result, anyhow};
use faer::linalg::solvers::Solve as _;
use faer::{Col, Mat, Side};
use potluck_core::encoding::{Bounds, LevelCount};
use rand_core::SeedableRng;
use rand_distr::{Distribution, StandardNormal};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::holdings::{Column, Holdings};
use crate::seeds::Seed;
use crate::synthetic::uniform;

/// Features of a party.
const PARTY: usize = 2;
/// Subjects that the intercept is set by.
const INTERCEPT_ROWS: usize = 100_000;
/// Predicted probabilities are kept this far from 0 and 1 where their logarithm is taken.
const LEAST: f64 = 1e-4;

/// How a feature comes from a standard bell.
#[derive(Clone, Copy)]
enum Shape {
    Bell,
    /// Even between −√3 and √3.
    Even,
    /// e^(s·z), within 0 and 10.
    Skewed(f64),
    /// 1 for this share of people.
    Level(f64),
}

impl Shape {
    fn of(self, z: f64) -> f64 {
        match self {
            Self::Bell => z.clamp(-6.0, 6.0),
            Self::Even => 3.0_f64.sqrt() * (2.0 * below(z) - 1.0),
            Self::Skewed(s) => (s * z).exp().min(10.0),
            Self::Level(share) => f64::from(below(z) > 1.0 - share),
        }
    }

    fn column(self, n: usize) -> Column {
        let bounds = |low, high| Column::Numbers {
            bounds: Bounds::new(low, high).expect("bounds are in order"),
            values: Vec::with_capacity(n),
        };
        match self {
            Self::Bell => bounds(-6.0, 6.0),
            Self::Even => bounds(-(3.0_f64.sqrt()), 3.0_f64.sqrt()),
            Self::Skewed(_) => bounds(0.0, 10.0),
            Self::Level(_) => levels(n),
        }
    }
}

fn levels(n: usize) -> Column {
    Column::Levels { count: LevelCount::new(2).expect("two is enough"), codes: Vec::with_capacity(n) }
}

/// The share of a standard bell below z, to 1e-7 (Abramowitz and Stegun 1964, 26.2.17).
fn below(z: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.231_641_9 * z.abs());
    let series = t
        * (0.319_381_530
            + t * (-0.356_563_782 + t * (1.781_477_937 + t * (-1.821_255_978 + t * 1.330_274_429))));
    let tail = series * (-0.5 * z * z).exp() / (2.0 * std::f64::consts::PI).sqrt();
    if z > 0.0 { 1.0 - tail } else { tail }
}

pub(crate) fn probability(log_odds: f64) -> f64 {
    1.0 / (1.0 + (-log_odds).exp())
}

/// A population with a yes/no label.
pub(crate) struct Outcomes {
    pub(crate) name: &'static str,
    shapes: Vec<Shape>,
    /// Log odds per unit of each feature.
    pub(crate) slopes: Vec<f64>,
    /// Correlation of the bell behind a feature with the one before.
    link: f64,
    /// The share that the label applies to.
    share: f64,
}

impl Outcomes {
    /// Those that are reported.
    pub(crate) fn reported() -> Vec<Self> {
        use Shape::{Bell, Level, Skewed};
        let mixed = vec![Bell, Level(0.3), Bell, Level(0.1), Bell, Level(0.5)];
        let slopes = vec![0.8, -0.6, 0.4, 0.7, 0.0, 0.3];
        let of = |name, shapes, share| Self { name, shapes, slopes: slopes.clone(), link: 0.3, share };
        vec![
            of("bell-shaped", vec![Bell; 6], 0.3),
            of("levels", [0.3, 0.5, 0.1, 0.4, 0.2, 0.6].map(Level).to_vec(), 0.3),
            of("skewed", vec![Bell, Level(0.3), Skewed(0.7), Bell, Level(0.5), Bell], 0.3),
            of("5% label", mixed.clone(), 0.05),
            of("1% label", mixed, 0.01),
        ]
    }

    /// Others, to try constants on.
    pub(crate) fn tuning() -> Vec<Self> {
        use Shape::{Bell, Even, Level, Skewed};
        vec![
            Self {
                name: "tuning: bells and levels",
                shapes: vec![Bell, Level(0.2), Level(0.4), Bell, Level(0.05), Bell],
                slopes: vec![-0.5, 0.9, -0.7, 0.6, 0.5, 0.9],
                link: 0.5,
                share: 0.15,
            },
            Self {
                name: "tuning: even",
                shapes: vec![Even, Level(0.5), Even, Bell, Even, Level(0.15)],
                slopes: vec![0.7, 0.5, -0.5, 0.0, 0.3, -0.8],
                link: 0.2,
                share: 0.5,
            },
            Self {
                name: "tuning: slightly skewed",
                shapes: vec![Skewed(0.3), Bell, Skewed(0.3), Level(0.25), Bell, Level(0.5)],
                slopes: vec![1.5, 0.3, -1.2, 0.5, -0.4, 0.0],
                link: 0.2,
                share: 0.1,
            },
            Self {
                name: "tuning: rare",
                shapes: vec![Level(0.4), Bell, Level(0.2), Bell, Even, Bell],
                slopes: vec![0.8, 0.6, -0.4, -0.5, 0.3, 0.0],
                link: 0.4,
                share: 0.03,
            },
        ]
    }

    /// Position of the label among the encoded columns.
    pub(crate) fn label(&self) -> usize {
        self.shapes.len()
    }

    fn features(&self, rng: &mut Xoshiro256PlusPlus, features: &mut [f64]) -> f64 {
        let rest = (1.0 - self.link * self.link).sqrt();
        let mut previous: f64 = StandardNormal.sample(rng);
        let mut sum = 0.0;
        for ((feature, shape), slope) in features.iter_mut().zip(&self.shapes).zip(&self.slopes) {
            let own: f64 = StandardNormal.sample(rng);
            previous = self.link * previous + rest * own;
            *feature = shape.of(previous);
            sum += slope * *feature;
        }
        sum
    }

    /// Log odds where every feature is 0.
    pub(crate) fn intercept(&self, seed: Seed) -> f64 {
        let mut rng = Xoshiro256PlusPlus::from_seed(seed.of(self.name).bytes());
        let mut features = vec![0.0; self.shapes.len()];
        let sums: Vec<f64> = (0..INTERCEPT_ROWS).map(|_| self.features(&mut rng, &mut features)).collect();
        let share = |intercept: f64| {
            sums.iter().map(|sum| probability(intercept + sum)).sum::<f64>() / sums.len() as f64
        };
        let (mut low, mut high) = (-30.0, 30.0);
        for _ in 0..60 {
            let middle = f64::midpoint(low, high);
            if share(middle) < self.share { low = middle } else { high = middle }
        }
        f64::midpoint(low, high)
    }

    /// n people: features row by row, and labels.
    pub(crate) fn draw(&self, n: usize, intercept: f64, seed: Seed) -> Rows {
        let mut rng = Xoshiro256PlusPlus::from_seed(seed.bytes());
        let width = self.shapes.len();
        let mut rows = Rows { width, features: vec![0.0; n * width], labels: Vec::with_capacity(n) };
        for features in rows.features.chunks_exact_mut(width) {
            let odds = intercept + self.features(&mut rng, features);
            let drawn = f64::midpoint(uniform(&mut rng), 1.0);
            rows.labels.push(drawn < probability(odds));
        }
        rows
    }

    /// The same people as parties hold them: two features a party, the label alone.
    pub(crate) fn holdings(&self, rows: &Rows) -> Holdings {
        let n = rows.labels.len();
        let mut columns: Vec<Column> = self.shapes.iter().map(|shape| shape.column(n)).collect();
        for features in rows.features.chunks_exact(rows.width) {
            for (column, &value) in columns.iter_mut().zip(features) {
                match column {
                    Column::Numbers { values, .. } => values.push(value),
                    Column::Levels { codes, .. } => codes.push(u32::from(value > 0.5)),
                }
            }
        }
        let mut label = levels(n);
        if let Column::Levels { codes, .. } = &mut label {
            codes.extend(rows.labels.iter().map(|&label| u32::from(label)));
        }
        let mut parties: Vec<Vec<Column>> = Vec::new();
        for (at, column) in columns.into_iter().enumerate() {
            if at % PARTY == 0 {
                parties.push(Vec::new());
            }
            parties[at / PARTY].push(column);
        }
        parties.push(vec![label]);
        Holdings::new(n, parties)
    }
}

/// People with their labels.
pub(crate) struct Rows {
    pub(crate) width: usize,
    /// Row after row.
    pub(crate) features: Vec<f64>,
    pub(crate) labels: Vec<bool>,
}

impl Rows {
    pub(crate) fn share(&self) -> f64 {
        self.labels.iter().filter(|&&label| label).count() as f64 / self.labels.len() as f64
    }

    /// Log odds that make these labels likeliest: the intercept, then one a feature (iteratively
    /// reweighted least squares). A ridge that nobody sees lets columns depend on each other.
    pub(crate) fn maximum_likelihood(&self) -> Result<Vec<f64>> {
        let d = self.width + 1;
        let mut found = Col::<f64>::zeros(d);
        let mut row = vec![1.0; d];
        for _ in 0..100 {
            let mut hessian = Mat::<f64>::from_fn(d, d, |i, j| if i == j { 1e-6 } else { 0.0 });
            let mut gradient = Col::from_fn(d, |j| -1e-6 * found[j]);
            for (features, &label) in self.features.chunks_exact(self.width).zip(&self.labels) {
                row[1..].copy_from_slice(features);
                let s = probability((0..d).map(|j| row[j] * found[j]).sum());
                let (weight, residual) = (s * (1.0 - s), f64::from(label) - s);
                for i in 0..d {
                    gradient[i] += row[i] * residual;
                    for j in 0..=i {
                        hessian[(i, j)] += weight * row[i] * row[j];
                    }
                }
            }
            let factor =
                hessian.llt(Side::Lower).map_err(|_| anyhow!("the features depend on each other"))?;
            let step = factor.solve(&gradient);
            found += &step;
            if step.norm_max() < 1e-8 {
                return Ok(found.iter().copied().collect());
            }
        }
        Err(anyhow!("maximum likelihood did not converge"))
    }

    /// Mean log loss and area under the curve of predicted probabilities, one for each row's
    /// features.
    pub(crate) fn judge(&self, predict: impl Fn(&[f64]) -> f64) -> [f64; 2] {
        let mut predictions: Vec<(f64, bool)> = self
            .features
            .chunks_exact(self.width)
            .zip(&self.labels)
            .map(|(features, &label)| (predict(features), label))
            .collect();
        let loss = |&(prediction, label): &(f64, bool)| {
            let p = prediction.clamp(LEAST, 1.0 - LEAST);
            -if label { p.ln() } else { (1.0 - p).ln() }
        };
        let loss = predictions.iter().map(loss).sum::<f64>() / predictions.len() as f64;
        [loss, area(&mut predictions)]
    }
}

/// How likely one of the labelled has a higher prediction than one of the others; a tie counts
/// half.
fn area(predictions: &mut [(f64, bool)]) -> f64 {
    predictions.sort_by(|one, other| one.0.total_cmp(&other.0));
    let (mut below, mut area) = (0.0, 0.0);
    for tied in predictions.chunk_by(|one, other| one.0.total_cmp(&other.0).is_eq()) {
        let with = tied.iter().filter(|(_, label)| *label).count() as f64;
        let without = tied.len() as f64 - with;
        area += with * (below + without / 2.0);
        below += without;
    }
    let with = predictions.len() as f64 - below;
    area / (below * with)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// Maximum likelihood finds the log odds that every population claims.
    #[test]
    fn labels_follow_the_log_odds() {
        let seed = Seed::new(3);
        for population in Outcomes::reported().into_iter().chain(Outcomes::tuning()) {
            let intercept = population.intercept(seed);
            let rows = population.draw(100_000, intercept, seed.of("rows"));
            assert!((rows.share() / population.share - 1.0).abs() < 0.1, "{}", population.name);
            let found = rows.maximum_likelihood().unwrap();
            for (found, slope) in found[1..].iter().zip(&population.slopes) {
                assert!((found - slope).abs() < 0.3, "{}: {found} for {slope}", population.name);
            }
        }
    }

    #[test]
    fn areas_count_pairs() {
        let predictions = [(0.1, false), (0.4, true), (0.4, false), (0.8, true)];
        assert!((area(&mut predictions.to_vec()) - 3.5 / 4.0).abs() < 1e-12);
    }
}
