//! Learners: linear regression of any released column on any others, and logistic regression of one
//! with two levels.
//!
//! Everything here reads published numbers only, so it costs no privacy and works in floating
//! point. A study of n rows was mixed into k released rows Z (docs/PRIVACY.md#mixed-rows); over the
//! mixing and the noise, `E[ZᵀZ] = DᵀD + k·diag(ς²)`, with D the encoded table and ς_j the standard
//! deviation of the noise in column j. The identity, bernoulli (divided by √k) and sparse mixings
//! all satisfy it, so one set of learners serves them all:
//!
//! - [`posterior()`] estimates every covariance by its posterior mean, from [`Evidence`]; of a
//!   calibrated release it reads [`LocalMoments`], too (docs/LEARNERS.md#posterior).
//! - [`logistic()`] reads the same posterior on the scale of log odds (docs/LEARNERS.md#logistic).
//! - [`ols`] ignores the noise: RMGM-OLS on `rmgm` releases, BGM-OLS on `dgm` releases.
//! - [`debiased`] takes the known noise variance out: DGM-OLS on `dgm` releases.
//!
//! [`ols`] and [`debiased`] are from Wu et al., "Differentially Private Multi-Party Data Release
//! for Linear Regression" (docs/LEARNERS.md#ols-and-debiased). They regress through the origin of
//! the encoded units; [`Coefficients::to_original`] turns the weights into slopes and an intercept
//! in the units the columns were declared in.

mod coefficients;
mod correlation;
mod least_squares;
mod local;
mod logistic;
mod moments;
mod posterior;
mod student;

pub use coefficients::{Affine, Coefficients, Covariance, Interval, Level, Original};
pub use correlation::{Correlation, correlation};
pub use least_squares::{Estimand, Fit, Ridge, Spectrum, Stability, debiased, ols};
pub use local::{
    Centre, Clipping, Distribution, Known, LocalMoments, PresentValues, Quantile, Tails, distributions,
};
pub use logistic::{Calibration, Discrimination, Doubt, Logistic, Outcome, Shape, logistic};
pub use moments::{Moments, Solution};
pub use posterior::{
    Between, Blocks, ColumnShift, Concern, DeclaredOverlaps, Evidence, ExplainedShare, Overlap,
    OverlapConcern, PartyPeople, People, Posterior, Related, ShareConcerns, VarianceParts, column_shifts,
    explained_share, posterior,
};
pub use student::{two_sided_quantile, two_sided_tail};

/// Why a fit was refused, and what to do about it. Columns are counted from 0.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum LearnError {
    /// There is no released row or no column.
    #[error("there are no released rows: join at least one release before fitting")]
    Empty,
    /// The number of noise levels is not the number of columns.
    #[error("{columns} columns came with {noise} noise levels: give one standard deviation per column")]
    NoiseCount {
        /// Released columns.
        columns: usize,
        /// Standard deviations given.
        noise: usize,
    },
    /// A noise level is negative, infinite or not a number.
    #[error("column {column} has noise {noise}: a standard deviation is finite and not negative")]
    Noise {
        /// The column.
        column: usize,
        /// The standard deviation given.
        noise: f64,
    },
    /// The columns do not all have k values.
    #[error("column {column} has {found} rows where the first has {expected}: join releases of one study")]
    Lengths {
        /// The column that differs.
        column: usize,
        /// Rows of the first column.
        expected: usize,
        /// Rows of this column.
        found: usize,
    },
    /// A released value is infinite or not a number.
    #[error("column {column}, row {row} is not a finite number: the file is damaged, fetch it again")]
    NotFinite {
        /// The column.
        column: usize,
        /// The released row.
        row: usize,
    },
    /// The study is said to have no rows.
    #[error("the study has 0 rows: give the `rows` of the study, not of the release")]
    NoRows,
    /// A regression without features.
    #[error("no features were chosen: name at least one column besides the label")]
    NoFeatures,
    /// A column that is not there.
    #[error("column {column} was chosen, but there are only {columns} columns")]
    UnknownColumn {
        /// The column asked for.
        column: usize,
        /// How many there are.
        columns: usize,
    },
    /// The label is also a feature.
    #[error("column {column} is both the label and a feature: leave it out of the features")]
    LabelAmongFeatures {
        /// The column.
        column: usize,
    },
    /// A feature was named twice.
    #[error("column {column} was chosen twice as a feature: name it once")]
    RepeatedFeature {
        /// The column.
        column: usize,
    },
    /// No degree of freedom is left for the intervals.
    #[error("{k} released rows cannot carry {d} features: choose at most {} features", k.saturating_sub(1))]
    TooFewRows {
        /// Released rows.
        k: usize,
        /// Features.
        d: usize,
    },
    /// A feature is zero in every released row.
    #[error("column {column} is zero in every released row, so nothing can be learned from it: leave it out")]
    ZeroColumn {
        /// The column.
        column: usize,
    },
    /// The moments do not fit into floating point.
    #[error("the moments of these columns overflow: check that values are in encoded units, about -1 to 1")]
    Overflow,
    /// The moment matrix has no inverse in double precision.
    #[error(
        "the features are linearly dependent (eigenvalues of the moment matrix range from {smallest:e} to \
         {largest:e} in size): leave one of the dependent features out, or use a ridge above 0"
    )]
    Singular {
        /// Smallest absolute eigenvalue.
        smallest: f64,
        /// Largest absolute eigenvalue.
        largest: f64,
    },
    /// A ridge that is negative, infinite or not a number.
    #[error("a ridge of {0} is not possible: choose 0 or a small positive number such as 1e-5")]
    Ridge(f64),
    /// A confidence level outside (0, 1).
    #[error("a confidence level of {0} is not possible: choose one between 0 and 1, such as 0.95")]
    Level(f64),
    /// A scaling without a finite midpoint and a positive finite half-width.
    #[error("a column with midpoint {mid} and half-width {half} cannot be scaled: check its bounds")]
    Affine {
        /// The midpoint given.
        mid: f64,
        /// The half-width given.
        half: f64,
    },
    /// The number of scalings is not the number of features.
    #[error("{features} features came with {found} scalings: give one per feature, in the same order")]
    AffineCount {
        /// Features of the fit.
        features: usize,
        /// Scalings given.
        found: usize,
    },
}

/// A view of a public dataset as learners need it: k released rows in encoded units, the noise in
/// each column, and the number of rows of the study behind them.
#[derive(Debug, Clone, Copy)]
pub struct Released<'a> {
    columns: &'a [&'a [f64]],
    noise: &'a [f64],
    k: usize,
    n: u64,
}

impl<'a> Released<'a> {
    /// Checks and wraps released columns.
    ///
    /// `columns` holds one slice of k values per encoded column (integer/(Q√w)), `noise` the
    /// standard deviation ς of the noise in each column in the same units, and `n` the `rows` of
    /// the study. A value of this type has at least one row and one column, equal lengths, and
    /// finite numbers throughout.
    pub fn new(columns: &'a [&'a [f64]], noise: &'a [f64], n: u64) -> Result<Self, LearnError> {
        let k = columns.first().map_or(0, |column| column.len());
        if k == 0 {
            return Err(LearnError::Empty);
        }
        if n == 0 {
            return Err(LearnError::NoRows);
        }
        if noise.len() != columns.len() {
            return Err(LearnError::NoiseCount { columns: columns.len(), noise: noise.len() });
        }
        for (column, (values, &sd)) in columns.iter().zip(noise).enumerate() {
            if values.len() != k {
                return Err(LearnError::Lengths { column, expected: k, found: values.len() });
            }
            if !(sd.is_finite() && sd >= 0.0) {
                return Err(LearnError::Noise { column, noise: sd });
            }
            if let Some(row) = values.iter().position(|value| !value.is_finite()) {
                return Err(LearnError::NotFinite { column, row });
            }
        }
        Ok(Self { columns, noise, k, n })
    }

    /// Released rows.
    pub fn k(&self) -> usize {
        self.k
    }

    /// Rows of the study.
    pub fn n(&self) -> u64 {
        self.n
    }

    /// The k values of each encoded column.
    pub fn columns(&self) -> &'a [&'a [f64]] {
        self.columns
    }

    /// The standard deviation of the noise in each column.
    pub fn noise(&self) -> &'a [f64] {
        self.noise
    }

    /// Refuses a label and features that do not name distinct columns, or too many of them for k
    /// rows.
    fn check_choice(&self, label: usize, features: &[usize]) -> Result<(), LearnError> {
        check_choice(self.columns.len(), label, features)?;
        if self.k <= features.len() {
            return Err(LearnError::TooFewRows { k: self.k, d: features.len() });
        }
        Ok(())
    }
}

/// Refuses a label and features that do not name distinct columns.
fn check_choice(columns: usize, label: usize, features: &[usize]) -> Result<(), LearnError> {
    if features.is_empty() {
        return Err(LearnError::NoFeatures);
    }
    let mut chosen = vec![false; columns];
    for &column in features.iter().chain([&label]) {
        match chosen.get_mut(column) {
            None => return Err(LearnError::UnknownColumn { column, columns }),
            Some(seen) if *seen && column == label => return Err(LearnError::LabelAmongFeatures { column }),
            Some(seen) if *seen => return Err(LearnError::RepeatedFeature { column }),
            Some(seen) => *seen = true,
        }
    }
    Ok(())
}
