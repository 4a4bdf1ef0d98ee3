//! One module an experiment.

pub(crate) mod bias;
pub(crate) mod classification;
pub(crate) mod cohorts;
pub(crate) mod convergence;
pub(crate) mod coverage;
pub(crate) mod eigenvalues;
pub(crate) mod forecast;
pub(crate) mod growth;
pub(crate) mod load;
pub(crate) mod map;
pub(crate) mod mixing;
pub(crate) mod planning;
pub(crate) mod real_data;
pub(crate) mod robustness;
pub(crate) mod speed;

/// δ of every experiment.
const DELTA: f64 = 1e-5;

/// λ of the synthetic experiments.
const SYNTHETIC_RIDGE: f64 = 1e-4;

/// λ of the experiments on real data.
const REAL_RIDGE: f64 = 1e-5;
