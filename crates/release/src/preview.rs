//! What to expect of a study, from releases of made-up people: what `potluck simulate` says, in the
//! command and in Python.

use serde::{Deserialize, Serialize};

/// What releases of made-up people in a study's shape gave.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Preview {
    /// Name of the study.
    pub study: String,
    /// The label.
    pub label: String,
    /// Number of made-up people.
    pub rows: u64,
    /// Number of mixed rows.
    pub released_rows: u64,
    /// Number of releases.
    pub releases: usize,
    /// One a feature.
    pub coefficients: Vec<Coefficient>,
    /// Share of the label's variance that the features explain.
    pub r_squared: RSquared,
    /// Mean squared error of predictions over that of predicting the mean.
    pub loss: Loss,
}

/// One coefficient over all releases, in original units.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Coefficient {
    /// The feature.
    pub name: String,
    /// The party that releases it.
    pub party: String,
    /// Least squares on the made-up people themselves.
    pub non_private: f64,
    /// Mean of the estimates.
    pub mean: f64,
    /// Root of the mean squared distance from `non_private`.
    pub error: f64,
    /// Median half-width of the intervals.
    pub half_width: f64,
    /// Share of the intervals that hold `non_private`.
    pub coverage: f64,
    /// Share of the releases in which published numbers speak against the coefficient.
    pub with_findings: f64,
    /// The estimate of each release.
    pub estimates: Vec<f64>,
    /// From original units to standard deviations of the label for one of the feature.
    #[serde(skip)]
    pub standard: f64,
}

/// Share of the label's variance that the features explain.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RSquared {
    /// Of least squares on the made-up people themselves.
    pub non_private: f64,
    /// Mean of the estimates.
    pub mean: f64,
    /// Share of the intervals that hold `non_private`.
    pub coverage: f64,
}

/// Mean squared error of predictions over that of predicting the mean.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Loss {
    /// Of least squares on the made-up people themselves.
    pub non_private: f64,
    /// Of what releases give, on average.
    pub private: f64,
}
