//! The registry of methods: what the experiments compare. A new method is one entry.

use anyhow::Result;
use potluck_core::learn::{Ridge, Solution};
use potluck_core::mixing::Mixing;

use crate::table::{Cell, Privacy};

/// A way to learn a regression from what parties may publish.
pub(crate) trait Method: Sync + Send {
    /// Its name in tables and files.
    fn name(&self) -> String;

    /// Weights of all features for the label, in encoded units.
    fn fit(&self, cell: &Cell<'_>, privacy: Privacy, ridge: Ridge) -> Result<Solution>;

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
pub(crate) enum Rows {
    /// factor·√n/σ(ε, δ).
    Rule(f64),
    /// So many.
    Fixed(u64),
}

impl Rows {
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

    fn fit(&self, cell: &Cell<'_>, _: Privacy, ridge: Ridge) -> Result<Solution> {
        Ok(cell.plain_moments()?.ols(cell.table().label(), &cell.table().features(), ridge)?)
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

    fn fit(&self, cell: &Cell<'_>, privacy: Privacy, ridge: Ridge) -> Result<Solution> {
        Ok(cell.noisy_row_moments(privacy)?.ols(cell.table().label(), &cell.table().features(), ridge)?)
    }
}

/// Noise on every row, then least squares with the noise variance taken out.
struct Dgm;

impl Method for Dgm {
    fn name(&self) -> String {
        "DGM".to_owned()
    }

    fn fit(&self, cell: &Cell<'_>, privacy: Privacy, ridge: Ridge) -> Result<Solution> {
        Ok(cell.noisy_row_moments(privacy)?.debiased(
            cell.table().label(),
            &cell.table().features(),
            ridge,
        )?)
    }
}

/// Mixing, noise, then plain least squares.
struct Rmgm {
    mixing: Mixing,
    rows: Rows,
}

impl Method for Rmgm {
    fn name(&self) -> String {
        let mixing = match self.mixing {
            Mixing::Sparse => " sparse",
            _ => "",
        };
        match self.rows {
            Rows::Rule(factor) => format!("RMGM{mixing} k={factor}√n/σ").replace("k=1√", "k=√"),
            Rows::Fixed(k) => format!("RMGM{mixing} k={k}"),
        }
    }

    fn fit(&self, cell: &Cell<'_>, privacy: Privacy, ridge: Ridge) -> Result<Solution> {
        let k = self.rows.count(cell.table().n(), privacy)?;
        let moments = cell.mixed_moments(Some(privacy), self.mixing, k)?;
        Ok(moments.ols(cell.table().label(), &cell.table().features(), ridge)?)
    }

    fn bernoulli_rows(&self, n: usize, privacy: Privacy) -> Result<u64> {
        if self.mixing == Mixing::Bernoulli { self.rows.count(n, privacy) } else { Ok(0) }
    }
}

/// The paper's RMGM with this mixing and number of rows.
pub(crate) fn rmgm(mixing: Mixing, rows: Rows) -> Box<dyn Method> {
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
            methods.push(rmgm(mixing, Rows::Rule(factor)));
        }
    }
    methods
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
