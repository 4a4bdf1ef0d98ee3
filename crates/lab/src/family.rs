//! Populations drawn at random from a wide family, unkind ones among them: correlations between
//! parties of any strength and sign, suppressors, confounders beside the label, many levels,
//! skewed, zero-inflated, heavy-tailed, bimodal and U-shaped columns, loose bounds.
//!
//! The truth is least squares on the same rows, raw values and all.

use faer::linalg::solvers::Solve as _;
use faer::{Col, Mat, Side};
use potluck_core::encoding::{Bounds, LevelCount};
use rand_core::SeedableRng;
use rand_distr::{Distribution, StandardNormal};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::{Deserialize, Serialize};

use crate::dataset::below;
use crate::holdings::{Column, Holdings};
use crate::seeds::Seed;
use crate::synthetic::uniform;

/// How unkind populations may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Temper {
    /// Bell-shaped, uniform, bimodal or U-shaped columns; residuals of a bell.
    Mild,
    /// The same with columns of 2 to 50 levels.
    Levels,
    /// Skewed, zero-inflated and heavy-tailed columns and labels as well.
    Tails,
}

impl Temper {
    pub(crate) const ALL: [Self; 3] = [Self::Mild, Self::Levels, Self::Tails];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Mild => "mild",
            Self::Levels => "levels",
            Self::Tails => "tails",
        }
    }
}

/// How a column is made of a bell-shaped one.
#[derive(Clone, Debug, PartialEq)]
enum Shape {
    Bell,
    Uniform,
    Bimodal,
    UShaped,
    /// exp(σz).
    LogNormal(f64),
    /// Nothing up to here, then a growing amount.
    ZeroInflated(f64),
    /// z·exp(hz²/2): Tukey's h.
    HeavyTailed(f64),
    /// Bell-shaped values between these are one level, with its effect.
    Levels {
        cuts: Vec<f64>,
        effects: Vec<f64>,
    },
}

impl Shape {
    fn value(&self, z: f64) -> f64 {
        let share = || 1.0 / (1.0 + (-1.702 * z).exp());
        match self {
            Self::Bell => z,
            Self::Uniform => share(),
            Self::Bimodal => 2.0 * z.signum() + 0.6 * z,
            Self::UShaped => (std::f64::consts::PI * (share() - 0.5)).sin(),
            Self::LogNormal(sigma) => (sigma * z).exp(),
            Self::ZeroInflated(from) => (z - from).max(0.0).powf(1.5),
            Self::HeavyTailed(h) => z * (h * z * z / 2.0).exp(),
            Self::Levels { effects, .. } => effects[self.code(z)],
        }
    }

    fn code(&self, z: f64) -> usize {
        match self {
            Self::Levels { cuts, .. } => cuts.partition_point(|&cut| cut < z),
            _ => 0,
        }
    }

    fn name(&self) -> String {
        match self {
            Self::Bell => "bell".to_owned(),
            Self::Uniform => "uniform".to_owned(),
            Self::Bimodal => "bimodal".to_owned(),
            Self::UShaped => "U".to_owned(),
            Self::LogNormal(sigma) => format!("log-normal {sigma:.1}"),
            Self::ZeroInflated(_) => "zeros".to_owned(),
            Self::HeavyTailed(_) => "heavy".to_owned(),
            Self::Levels { effects, .. } => format!("{} levels", effects.len()),
        }
    }
}

/// What the label is made of the features' sum and a residual.
#[derive(Clone, Copy, Debug, PartialEq)]
enum LabelShape {
    Linear,
    Exponential,
    ZeroInflated(f64),
    /// 1 above this.
    Binary(f64),
}

/// A population, drawn from the family.
pub(crate) struct Drawn {
    /// What kind of correlations and effects it has.
    pub(crate) story: String,
    shapes: Vec<Shape>,
    /// Party of each feature.
    parties: Vec<usize>,
    label_party: usize,
    /// Root of the correlation matrix of the bell-shaped columns.
    root: Mat<f64>,
    /// Effects in standard deviations of the features.
    effects: Vec<f64>,
    explained: f64,
    residual: Shape,
    label: LabelShape,
    /// By what factor bounds are wider than the values.
    looseness: f64,
}

/// One reported coefficient of a population.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Truth {
    /// Shape of the feature.
    pub(crate) shape: String,
    /// Whether it sits beside the label.
    pub(crate) own: bool,
    /// Encoded column.
    pub(crate) column: usize,
    /// Least squares on the same rows, in original units, with its standard error.
    pub(crate) slope: f64,
    pub(crate) error: f64,
    /// From original units to standard deviations of the label per standard deviation of the
    /// feature.
    pub(crate) unit: f64,
}

impl Truth {
    /// Before anything is known of it.
    pub(crate) fn unknown(shape: String, own: bool, column: usize) -> Self {
        Self { shape, own, column, slope: 0.0, error: 0.0, unit: 0.0 }
    }
}

/// A table of a population, or any other whose truth is known.
pub(crate) struct Table {
    pub(crate) holdings: Holdings,
    pub(crate) label: usize,
    pub(crate) truth: Vec<Truth>,
    /// Covariances of the features and, last, the label, in original units.
    covariance: Mat<f64>,
}

impl Table {
    /// The table of these columns, with what least squares finds in them.
    pub(crate) fn new(holdings: Holdings, label: (usize, &[f64]), features: Vec<(Truth, Vec<f64>)>) -> Self {
        let (mut truth, encoded): (Vec<Truth>, Vec<Vec<f64>>) = features.into_iter().unzip();
        let covariance = least_squares(&mut truth, &encoded, label.1);
        Self { holdings, label: label.0, truth, covariance }
    }

    /// The variance inflation of a coefficient: 1 where no other feature says anything of it.
    pub(crate) fn inflation(&self, at: usize) -> f64 {
        let slopes: Vec<f64> = self.truth.iter().map(|truth| truth.slope).collect();
        let rest = 1.0 - self.explained_by(&slopes);
        let Truth { error, unit, .. } = self.truth[at];
        (error * unit).powi(2) * self.holdings.rows() as f64 / rest.max(1e-12)
    }

    /// The share of the label's variance that predictions with these slopes explain.
    pub(crate) fn explained_by(&self, slopes: &[f64]) -> f64 {
        let d = slopes.len();
        let w = Col::from_fn(d, |j| slopes[j]);
        let c = Col::from_fn(d, |j| self.covariance[(j, d)]);
        let explained = (&c * 2.0 - self.covariance.submatrix(0, 0, d, d) * &w).transpose() * &w;
        explained / self.covariance[(d, d)]
    }
}

struct Dice(Xoshiro256PlusPlus);

impl Dice {
    fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * f64::midpoint(uniform(&mut self.0), 1.0)
    }

    fn chance(&mut self, probability: f64) -> bool {
        self.between(0.0, 1.0) < probability
    }

    fn of<T: Clone>(&mut self, choices: &[T]) -> T {
        choices[below(&mut self.0, choices.len())].clone()
    }

    fn normal(&mut self) -> f64 {
        StandardNormal.sample(&mut self.0)
    }
}

impl Drawn {
    /// Draws a population.
    pub(crate) fn new(temper: Temper, seed: Seed) -> Self {
        let mut dice = Dice(Xoshiro256PlusPlus::from_seed(seed.of("population").bytes()));
        let count = 2 + below(&mut dice.0, 4);
        let d = count.max(3) + below(&mut dice.0, 11 - count.max(3));
        let parties: Vec<usize> =
            (0..d).map(|j| if j < count { j } else { below(&mut dice.0, count) }).collect();
        let alone = dice.chance(0.5);
        let label_party = if alone { count } else { below(&mut dice.0, count) };
        let all_bells = dice.chance(0.4);
        let shapes: Vec<Shape> = (0..d).map(|_| shape(temper, all_bells, &mut dice)).collect();
        let mut effects: Vec<f64> = {
            let share = dice.of(&[0.3, 0.6, 1.0]);
            (0..d).map(|_| if dice.chance(share) { dice.normal() } else { 0.0 }).collect()
        };
        if effects.iter().all(|&effect| effect == 0.0) {
            effects[0] = 1.0;
        }
        let (story, correlations) =
            relate(&mut effects, &parties, (!alone).then_some(label_party), &mut dice);
        let factor = correlations.llt(Side::Lower).expect("correlations are positive definite");
        let tails = temper == Temper::Tails;
        let residual = match (tails, below(&mut dice.0, 3)) {
            (true, 0) => Shape::HeavyTailed(0.2),
            (true, 1) => Shape::LogNormal(0.8),
            _ => Shape::Bell,
        };
        let label = match below(&mut dice.0, 4) {
            0 if tails => LabelShape::Exponential,
            1 if tails => LabelShape::ZeroInflated(dice.between(0.0, 0.7)),
            2 if temper == Temper::Levels => LabelShape::Binary(dice.between(0.0, 1.3)),
            _ => LabelShape::Linear,
        };
        Self {
            story,
            shapes,
            parties,
            label_party,
            root: factor.L().to_owned(),
            effects,
            explained: dice.of(&[0.1, 0.3, 0.3, 0.6, 0.9]),
            residual,
            label,
            looseness: dice.of(&[1.0, 1.0, 1.0, 3.0, 10.0]),
        }
    }

    /// In a few words.
    pub(crate) fn describe(&self) -> String {
        let place =
            if self.parties.contains(&self.label_party) { "label with features" } else { "label alone" };
        let residual = self.residual.name();
        format!(
            "{}, {} features, {place}, label {:?}, residual {residual}, R² {}, bounds × {}",
            self.story,
            self.shapes.len(),
            self.label,
            self.explained,
            self.looseness
        )
    }

    /// A table of n subjects, and what least squares finds in it.
    pub(crate) fn table(&self, n: usize, seed: Seed) -> Table {
        let mut dice = Dice(Xoshiro256PlusPlus::from_seed(seed.of("table").bytes()));
        let d = self.shapes.len();
        let mut bells: Vec<Vec<f64>> = vec![Vec::with_capacity(n); d];
        let mut row = vec![0.0; d];
        for _ in 0..n {
            row.fill_with(|| dice.normal());
            for (j, bell) in bells.iter_mut().enumerate() {
                bell.push((0..=j).map(|i| self.root[(j, i)] * row[i]).sum());
            }
        }
        let mut sum = vec![0.0; n];
        let mut values: Vec<Vec<f64>> = Vec::with_capacity(d);
        for (j, shape) in self.shapes.iter().enumerate() {
            let column: Vec<f64> = bells[j].iter().map(|&z| shape.value(z)).collect();
            let (mean, sd) = mean_and_sd(&column);
            for (sum, value) in sum.iter_mut().zip(&column) {
                *sum += self.effects[j] * (value - mean) / sd.max(1e-9);
            }
            values.push(column);
        }
        let residuals: Vec<f64> = (0..n).map(|_| self.residual.value(dice.normal())).collect();
        let ((mean, sd), (residual_mean, residual_sd)) = (mean_and_sd(&sum), mean_and_sd(&residuals));
        let label: Vec<f64> = sum
            .iter()
            .zip(&residuals)
            .map(|(sum, residual)| {
                let y = self.explained.sqrt() * (sum - mean) / sd.max(1e-9)
                    + (1.0 - self.explained).sqrt() * (residual - residual_mean) / residual_sd;
                match self.label {
                    LabelShape::Linear => y,
                    LabelShape::Exponential => (0.6 * y).exp(),
                    LabelShape::ZeroInflated(from) => (y - from).max(0.0),
                    LabelShape::Binary(above) => f64::from(y > above),
                }
            })
            .collect();
        self.hold(n, &bells, values, &label)
    }

    /// Deals the columns to their parties, the label last in its own.
    fn hold(&self, n: usize, bells: &[Vec<f64>], mut values: Vec<Vec<f64>>, label: &[f64]) -> Table {
        let count = self.parties.iter().chain([&self.label_party]).max().map_or(0, |&most| most + 1);
        let mut parties: Vec<Vec<Column>> = Vec::with_capacity(count);
        let mut encoded: Vec<Vec<f64>> = Vec::new();
        let mut truth = Vec::new();
        let (mut at, mut label_at) = (0, 0);
        for party in 0..count {
            let mut columns = Vec::new();
            for j in (0..self.shapes.len()).filter(|&j| self.parties[j] == party) {
                let shape = &self.shapes[j];
                let mut add = |values: Vec<f64>, column: usize| {
                    let own = party == self.label_party;
                    truth.push(Truth::unknown(shape.name(), own, column));
                    encoded.push(values);
                };
                if let Shape::Levels { effects, .. } = shape {
                    let codes: Vec<u32> = bells[j].iter().map(|&z| shape.code(z) as u32).collect();
                    let levels = LevelCount::new(effects.len()).expect("at least two levels");
                    for level in 1..effects.len() {
                        let indicator = codes.iter().map(|&code| f64::from(code as usize == level)).collect();
                        add(indicator, at + level - levels.first_encoded());
                    }
                    at += levels.width();
                    columns.push(Column::Levels { count: levels, codes });
                } else {
                    let values = std::mem::take(&mut values[j]);
                    add(values.clone(), at);
                    columns.push(Column::Numbers { bounds: self.bounds(&values), values });
                    at += 1;
                }
            }
            if party == self.label_party {
                label_at = at;
                at += 1;
                columns.push(if matches!(self.label, LabelShape::Binary(_)) {
                    let codes = label.iter().map(|&y| y as u32).collect();
                    Column::Levels { count: LevelCount::new(2).expect("two"), codes }
                } else {
                    Column::Numbers { bounds: self.bounds(label), values: label.to_vec() }
                });
            }
            parties.push(columns);
        }
        let features = truth.into_iter().zip(encoded).collect();
        Table::new(Holdings::new(n, parties), (label_at, label), features)
    }

    fn bounds(&self, values: &[f64]) -> Bounds {
        let (low, high) = values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), &value| {
            (low.min(value), high.max(value))
        });
        let (middle, half) = (f64::midpoint(low, high), (0.55 * (high - low)).max(1e-6) * self.looseness);
        Bounds::new(middle - half, middle + half).expect("a range has a width")
    }
}

fn shape(temper: Temper, all_bells: bool, dice: &mut Dice) -> Shape {
    if temper == Temper::Levels && dice.chance(0.35) {
        let most = if dice.chance(0.8) { 20.0_f64 } else { 50.0 };
        let count = dice.between(2.0_f64.ln(), most.ln()).exp().round() as usize;
        let weights: Vec<f64> = (0..count).map(|_| 0.5 - dice.between(0.0, 1.0).max(1e-12).ln()).collect();
        let total: f64 = weights.iter().sum();
        let mut reached = 0.0;
        let cuts = weights[..count - 1].iter().map(|weight| {
            reached += weight / total;
            bell_quantile(reached)
        });
        let cuts = cuts.collect();
        return Shape::Levels { cuts, effects: (0..count).map(|_| dice.normal()).collect() };
    }
    if temper == Temper::Tails && dice.chance(0.5) {
        let sigma = dice.between(0.4, 1.2);
        let from = dice.between(-0.3, 1.0);
        let h = dice.between(0.05, 0.25);
        return dice.of(&[Shape::LogNormal(sigma), Shape::ZeroInflated(from), Shape::HeavyTailed(h)]);
    }
    if all_bells {
        return Shape::Bell;
    }
    dice.of(&[Shape::Bell, Shape::Uniform, Shape::Bimodal, Shape::UShaped])
}

/// Chooses correlations, and effects to go with them.
fn relate(
    effects: &mut [f64],
    parties: &[usize],
    label_party: Option<usize>,
    dice: &mut Dice,
) -> (String, Mat<f64>) {
    let d = effects.len();
    let mut correlations = Mat::<f64>::identity(d, d);
    let story = dice.of(&["independent", "factors", "chain", "pair", "suppressor", "confounder", "twins"]);
    let mut far: Vec<(usize, usize)> = (0..d)
        .flat_map(|i| (0..d).map(move |j| (i, j)))
        .filter(|&(i, j)| i != j && parties[i] != parties[j])
        .collect();
    crate::dataset::shuffle(&mut far, &mut dice.0);
    let sign = dice.of(&[-1.0, 1.0]);
    let r = dice.of(&[0.3, 0.5, 0.7, 0.9, 0.95]) * sign;
    let mut join = |i: usize, j: usize| {
        correlations[(i, j)] = r;
        correlations[(j, i)] = r;
    };
    match story {
        "factors" => {
            let strength = dice.between(0.2, 1.2);
            let count = 1 + below(&mut dice.0, 2);
            let loadings = Mat::from_fn(d, count, |_, _| strength * dice.normal());
            let sum = &loadings * loadings.transpose() + Mat::<f64>::identity(d, d);
            correlations = Mat::from_fn(d, d, |i, j| sum[(i, j)] / (sum[(i, i)] * sum[(j, j)]).sqrt());
            return (format!("factors of strength {strength:.1}"), correlations);
        }
        "chain" => {
            let link = dice.of(&[0.3, 0.5, 0.7]);
            correlations = Mat::from_fn(d, d, |i, j| f64::powi(link, i.abs_diff(j) as i32));
            return (format!("chain of {link}"), correlations);
        }
        "pair" => {
            let (i, j) = far[0];
            join(i, j);
            let size = dice.between(0.5, 1.5);
            effects[i] = size;
            effects[j] = dice.of(&[size, -0.7 * size, 0.0]);
        }
        "suppressor" => {
            let (i, j) = far[0];
            join(i, j);
            effects[j] = dice.between(0.5, 1.5);
            effects[i] = -r * effects[j];
        }
        "confounder" => {
            // The cause sits elsewhere; what it moves sits beside the label, if anything does.
            let beside = far.iter().find(|(i, _)| Some(parties[*i]) == label_party);
            let (i, j) = *beside.unwrap_or(&far[0]);
            join(i, j);
            effects[i] = 0.0;
            effects[j] = dice.between(0.8, 2.0);
        }
        "twins" => {
            let mut used = vec![false; d];
            for (i, j) in far {
                if !used[i] && !used[j] {
                    (used[i], used[j]) = (true, true);
                    join(i, j);
                    let size = dice.between(0.5, 1.5);
                    effects[i] = size;
                    effects[j] = dice.of(&[size, -0.7 * size, 0.0]);
                }
            }
        }
        _ => return (story.to_owned(), correlations),
    }
    (format!("{story} of {r}"), correlations)
}

fn mean_and_sd(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / n;
    (mean, variance.sqrt())
}

/// Below which value a bell curve has this share, by bisection of its density's integral.
fn bell_quantile(share: f64) -> f64 {
    let (mut low, mut high) = (-8.0, 8.0);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        let tail = potluck_core::learn::two_sided_tail(f64::abs(middle), 1e9) / 2.0;
        let below = if middle > 0.0 { 1.0 - tail } else { tail };
        if below < share {
            low = middle;
        } else {
            high = middle;
        }
    }
    f64::midpoint(low, high)
}

/// Least squares of the label on the encoded columns and an intercept; covariances of all of them.
fn least_squares(truth: &mut [Truth], columns: &[Vec<f64>], label: &[f64]) -> Mat<f64> {
    let n = label.len();
    let d = columns.len();
    let all: Vec<&[f64]> = columns.iter().map(Vec::as_slice).chain([label]).collect();
    let means: Vec<f64> = all.iter().map(|column| mean_and_sd(column).0).collect();
    let centred = Mat::from_fn(n, d + 1, |row, column| all[column][row] - means[column]);
    let products = centred.transpose() * &centred * faer::Scale(1.0 / n as f64);
    let h = Mat::from_fn(d, d, |i, j| products[(i, j)] + if i == j { 1e-12 } else { 0.0 });
    let c = Col::from_fn(d, |i| products[(i, d)]);
    let factor = h.llt(Side::Lower).expect("features are not collinear");
    let w = factor.solve(&c);
    let rest = (products[(d, d)] - c.transpose() * &w).max(0.0);
    for (j, one) in truth.iter_mut().enumerate() {
        let unit = Col::from_fn(d, |i| f64::from(i == j));
        let inverse = factor.solve(&unit)[j];
        one.slope = w[j];
        one.error = (rest * inverse / n as f64).sqrt();
        one.unit = (products[(j, j)] / products[(d, d)]).sqrt();
    }
    products
}
