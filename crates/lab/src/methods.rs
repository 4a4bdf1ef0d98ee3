//! The registry of methods: what the experiments compare. A new method is one entry.

use anyhow::{Context, Result, bail};
use potluck_core::learn::{Moments, Ridge, Solution};
use potluck_core::mixing::Mixing;

use crate::table::{Cell, Privacy, Table};

/// What a method learned, in the units of the table's encoded rows.
pub(crate) struct Fitted {
    /// One a feature.
    pub(crate) weights: Vec<f64>,
    /// Of the moment matrix, for methods that invert it.
    pub(crate) eigenvalues: Vec<f64>,
    intercept: f64,
    /// When predicting, each feature is clamped to its range.
    inputs: Vec<[f64; 2]>,
    /// Predictions are clamped to this.
    output: [f64; 2],
}

impl Fitted {
    /// Weights without an intercept, as in the paper: only predictions are clamped, to [−1, 1].
    fn through_origin(solution: Solution) -> Self {
        let inputs = vec![[f64::NEG_INFINITY, f64::INFINITY]; solution.weights.len()];
        let Solution { weights, eigenvalues } = solution;
        Self { weights, eigenvalues, intercept: 0.0, inputs, output: [-1.0, 1.0] }
    }

    /// The prediction for a row, whose last value, the label, is not looked at.
    pub(crate) fn predict(&self, row: &[f64]) -> f64 {
        let terms = self.weights.iter().zip(&self.inputs).zip(row);
        let sum: f64 = terms.map(|((weight, [low, high]), value)| weight * value.clamp(*low, *high)).sum();
        (self.intercept + sum).clamp(self.output[0], self.output[1])
    }

    /// Mean squared error on the rows of a table.
    pub(crate) fn loss(&self, test: &Table) -> f64 {
        let mut row = Vec::new();
        let squares = (0..test.n()).map(|index| {
            row.clear();
            row.extend(test.row(index));
            (self.predict(&row) - row[test.label()]).powi(2)
        });
        squares.sum::<f64>() / test.n() as f64
    }
}

/// A way to learn a regression from what parties may publish.
pub(crate) trait Method: Sync + Send {
    /// Its name in tables and files.
    fn name(&self) -> String;

    /// Weights of all features for the label, in encoded units.
    fn fit(&self, cell: &Cell<'_>, privacy: Privacy, ridge: Ridge) -> Result<Fitted>;

    /// How many rows of the Bernoulli matrix it needs for n subjects.
    fn bernoulli_rows(&self, _n: usize, _privacy: Privacy) -> Result<u64> {
        Ok(0)
    }

    /// Whether it depends on (ε, δ) at all.
    fn is_private(&self) -> bool {
        true
    }
}

/// How many mixed rows a method publishes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum MixedRows {
    /// factor·√n/σ(ε, δ).
    Rule(f64),
    /// So many.
    Fixed(u64),
}

impl MixedRows {
    pub(crate) fn count(self, n: usize, privacy: Privacy) -> Result<u64> {
        Ok(match self {
            Self::Rule(factor) => {
                let k = factor * (n as f64).sqrt() * privacy.classical()?.to_f64();
                (k.floor() as u64).max(1)
            }
            Self::Fixed(k) => k,
        })
    }
}

/// Least squares on the data itself.
struct Ols;

impl Method for Ols {
    fn name(&self) -> String {
        "OLS".to_owned()
    }

    fn fit(&self, cell: &Cell<'_>, _: Privacy, ridge: Ridge) -> Result<Fitted> {
        let table = cell.table();
        let solution = cell.plain_moments()?.ols(table.label(), &table.features(), ridge)?;
        Ok(Fitted::through_origin(solution))
    }

    fn is_private(&self) -> bool {
        false
    }
}

/// Noise on every row, then plain least squares.
struct Bgm;

impl Method for Bgm {
    fn name(&self) -> String {
        "BGM".to_owned()
    }

    fn fit(&self, cell: &Cell<'_>, privacy: Privacy, ridge: Ridge) -> Result<Fitted> {
        let table = cell.table();
        let solution = cell.noisy_row_moments(privacy)?.ols(table.label(), &table.features(), ridge)?;
        Ok(Fitted::through_origin(solution))
    }
}

/// Noise on every row, then least squares with the noise variance taken out.
struct Dgm;

impl Method for Dgm {
    fn name(&self) -> String {
        "DGM".to_owned()
    }

    fn fit(&self, cell: &Cell<'_>, privacy: Privacy, ridge: Ridge) -> Result<Fitted> {
        let table = cell.table();
        let solution = cell.noisy_row_moments(privacy)?.debiased(table.label(), &table.features(), ridge)?;
        Ok(Fitted::through_origin(solution))
    }
}

/// Mixing, noise, then plain least squares.
struct Rmgm {
    mixing: Mixing,
    rows: MixedRows,
}

impl Method for Rmgm {
    fn name(&self) -> String {
        let mixing = match self.mixing {
            Mixing::Sparse => " sparse",
            _ => "",
        };
        match self.rows {
            MixedRows::Rule(factor) => format!("RMGM{mixing} k={factor}√n/σ").replace("k=1√", "k=√"),
            MixedRows::Fixed(k) => format!("RMGM{mixing} k={k}"),
        }
    }

    fn fit(&self, cell: &Cell<'_>, privacy: Privacy, ridge: Ridge) -> Result<Fitted> {
        let k = self.rows.count(cell.table().n(), privacy)?;
        let moments = cell.mixed_moments(Some(privacy), self.mixing, k)?;
        let solution = moments.ols(cell.table().label(), &cell.table().features(), ridge)?;
        Ok(Fitted::through_origin(solution))
    }

    fn bernoulli_rows(&self, n: usize, privacy: Privacy) -> Result<u64> {
        if self.mixing == Mixing::Bernoulli { self.rows.count(n, privacy) } else { Ok(0) }
    }
}

/// Standardised columns, mixed rows and local moments; then the posterior learner. No ridge.
struct Calibrated {
    /// Whether features of all parties are used, or only those beside the label.
    of_all: bool,
}

impl Method for Calibrated {
    fn name(&self) -> String {
        if self.of_all { "calibrated" } else { "label's party alone" }.to_owned()
    }

    fn fit(&self, cell: &Cell<'_>, privacy: Privacy, ridge: Ridge) -> Result<Fitted> {
        let released = cell.calibrated(privacy)?;
        let label = cell.table().label();
        let model = if self.of_all { Some(released.fit(label)?) } else { released.fit_beside(label)? };
        let Some(model) = model else { return ReleasedMean.fit(cell, privacy, ridge) };
        // The label is last, so positions of features are places in a row.
        let names = released.names();
        let (_, names) = names.split_last().context("there is a label")?;
        let width = names.len();
        let mut fitted = Fitted {
            weights: vec![0.0; width],
            eigenvalues: Vec::new(),
            intercept: model.prediction_intercept,
            inputs: vec![[f64::NEG_INFINITY, f64::INFINITY]; width],
            output: model.label_range,
        };
        for coefficient in &model.coefficients {
            let name = coefficient.term.name();
            let at = names.iter().position(|known| *known == name).context("features are columns")?;
            fitted.weights[at] = coefficient.prediction;
            fitted.inputs[at] = coefficient.range;
        }
        Ok(fitted)
    }
}

/// The label's mean as the calibrated release has it: what any fit should improve on.
struct ReleasedMean;

impl Method for ReleasedMean {
    fn name(&self) -> String {
        "released mean".to_owned()
    }

    fn fit(&self, cell: &Cell<'_>, privacy: Privacy, _: Ridge) -> Result<Fitted> {
        let label = cell.table().label();
        Ok(Fitted {
            weights: vec![0.0; label],
            eigenvalues: Vec::new(),
            intercept: cell.calibrated(privacy)?.centre(label)?,
            inputs: vec![[0.0, 0.0]; label],
            output: [f64::NEG_INFINITY, f64::INFINITY],
        })
    }
}

/// Least squares with an intercept on the data itself.
struct OlsWithIntercept;

impl Method for OlsWithIntercept {
    fn name(&self) -> String {
        "OLS with intercept".to_owned()
    }

    fn fit(&self, cell: &Cell<'_>, _: Privacy, _: Ridge) -> Result<Fitted> {
        // Enough to choose among weights that predict alike where columns depend on each other.
        const RIDGE: f64 = 1e-9;
        let table = cell.table();
        let (means, covariance) = cell.plain_covariance();
        let scale = |j: usize| covariance[(j, j)].sqrt().max(f64::MIN_POSITIVE);
        let correlations =
            Moments::new(vec![0.0; means.len()], |i, j| covariance[(i, j)] / scale(i) / scale(j))?;
        let features = table.features();
        let solution = correlations.ols(table.label(), &features, Ridge::new(RIDGE)?)?;
        let to_units = |(weight, j): (&f64, &usize)| weight * scale(table.label()) / scale(*j);
        let weights: Vec<f64> = solution.weights.iter().zip(&features).map(to_units).collect();
        let at_means: f64 = weights.iter().zip(&means).map(|(weight, mean)| weight * mean).sum();
        Ok(Fitted {
            intercept: means[table.label()] - at_means,
            eigenvalues: solution.eigenvalues,
            inputs: vec![[f64::NEG_INFINITY, f64::INFINITY]; weights.len()],
            output: [-1.0, 1.0],
            weights,
        })
    }

    fn is_private(&self) -> bool {
        false
    }
}

/// potluck's own method.
pub(crate) fn calibrated() -> Box<dyn Method> {
    Box::new(Calibrated { of_all: true })
}

/// The same from the columns beside the label alone: what its party could do without the others.
pub(crate) fn label_party_alone() -> Box<dyn Method> {
    Box::new(Calibrated { of_all: false })
}

/// What potluck's own method is held against: the mean it releases.
pub(crate) fn released_mean() -> Box<dyn Method> {
    Box::new(ReleasedMean)
}

/// What potluck's own method would find without privacy.
pub(crate) fn ols_with_intercept() -> Box<dyn Method> {
    Box::new(OlsWithIntercept)
}

/// The paper's RMGM with this mixing and number of rows.
pub(crate) fn rmgm(mixing: Mixing, rows: MixedRows) -> Box<dyn Method> {
    Box::new(Rmgm { mixing, rows })
}

/// Data that is not private, and the two methods that publish every row.
pub(crate) fn row_methods() -> Vec<Box<dyn Method>> {
    vec![Box::new(Ols), Box::new(Bgm), Box::new(Dgm)]
}

/// Every method of the synthetic experiments.
pub(crate) fn registry() -> Vec<Box<dyn Method>> {
    let mut methods = row_methods();
    for mixing in [Mixing::Bernoulli, Mixing::Sparse] {
        for factor in [1.0, 10.0] {
            methods.push(rmgm(mixing, MixedRows::Rule(factor)));
        }
    }
    methods.push(calibrated());
    methods
}

/// Keeps the entries whose name starts with one of `wanted`, whatever the case; all if none is
/// wanted.
pub(crate) fn select<T>(
    entries: Vec<T>,
    wanted: Option<&[String]>,
    name: impl Fn(&T) -> String,
) -> Result<Vec<T>> {
    let Some(wanted) = wanted else { return Ok(entries) };
    let starts = |entry: &T, prefix: &String| name(entry).to_lowercase().starts_with(&prefix.to_lowercase());
    for prefix in wanted {
        if !entries.iter().any(|entry| starts(entry, prefix)) {
            let names: Vec<String> = entries.iter().map(&name).collect();
            bail!("nothing is called {prefix:?}; there are {}", names.join(", "));
        }
    }
    Ok(entries.into_iter().filter(|entry| wanted.iter().any(|prefix| starts(entry, prefix))).collect())
}

/// The largest Bernoulli matrix that any of the methods needs.
pub(crate) fn largest_bernoulli(methods: &[Box<dyn Method>], n: usize, privacies: &[Privacy]) -> Result<u64> {
    let mut largest = 0;
    for method in methods {
        for &privacy in privacies {
            largest = largest.max(method.bernoulli_rows(n, privacy)?);
        }
    }
    Ok(largest)
}
