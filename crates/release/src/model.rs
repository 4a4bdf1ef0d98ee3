//! A fitted regression as a file: coefficients in original units, their uncertainty, and what was
//! used.

use std::fmt;
use std::fs;
use std::path::Path;

use potluck_core::learn::{Level, two_sided_quantile};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::Error;
use crate::files::{Audience, Existing, write_file};
use crate::findings::Finding;
use crate::study::Unknown;

/// Share of a coefficient from which on people are told that the ridge takes it.
const NOTABLE_SHRINKAGE: f64 = 0.01;

/// How coefficients are learned from a public dataset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Learner {
    /// Least squares on the released rows: RMGM-OLS on rmgm releases, BGM-OLS on dgm releases.
    Ols,
    /// Least squares with the known noise variance subtracted: DGM-OLS on dgm releases.
    Debiased,
    /// Every covariance estimated by its posterior mean, given what is known of noise and mixing.
    Posterior,
}

impl Learner {
    /// Its name on the command line and in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ols => "ols",
            Self::Debiased => "debiased",
            Self::Posterior => "posterior",
        }
    }
}

/// What is regressed: the label itself, or the log odds of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// The label is linear in the features.
    #[default]
    Linear,
    /// The log odds of the label are linear in the features.
    Logistic,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Linear, Self::Logistic];

    /// Its name on the command line and in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Linear => "linear",
            Self::Logistic => "logistic",
        }
    }

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
    fn is_linear(&self) -> bool {
        *self == Self::Linear
    }
}

/// What the coefficients estimate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Estimand {
    /// The coefficients among the noisy columns: the noise pulls them towards 0, however many rows
    /// there are.
    Attenuated,
    /// The coefficients of the study's own rows.
    StudyRows,
    /// The coefficients of the study itself: of the regression of all its subjects.
    Study,
    /// The coefficients of the regression of all people of the label's party, where parties hold
    /// different people.
    LabelPeople,
    /// The log odds of the study itself: of the logistic regression of all its subjects.
    LogOdds,
    /// The log odds of the logistic regression of all people of the label's party, where parties
    /// hold different people.
    LabelLogOdds,
}

impl Estimand {
    const ALL: [Self; 6] = [
        Self::Attenuated,
        Self::StudyRows,
        Self::Study,
        Self::LabelPeople,
        Self::LogOdds,
        Self::LabelLogOdds,
    ];

    /// Whether it is about the people of the label's party, where parties hold different people.
    pub fn is_of_label_people(self) -> bool {
        matches!(self, Self::LabelPeople | Self::LabelLogOdds)
    }

    /// Its name in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Attenuated => "attenuated",
            Self::StudyRows => "study-rows",
            Self::Study => "study",
            Self::LabelPeople => "label-people",
            Self::LogOdds => "log-odds",
            Self::LabelLogOdds => "label-log-odds",
        }
    }

    /// What a file says; files of potluck 0.1 say it in a sentence, which may go on.
    fn parse(text: &str) -> Option<Self> {
        let of_sentence = |estimand: &Self| match estimand {
            Self::Attenuated => text.starts_with("coefficients among the noisy columns"),
            Self::StudyRows => text.starts_with("coefficients of the study's own rows"),
            Self::Study => text.starts_with("coefficients of the study itself"),
            Self::LabelPeople => text.starts_with("coefficients among the people of the label's party"),
            Self::LogOdds => text.starts_with("log odds of the study itself"),
            Self::LabelLogOdds => text.starts_with("log odds among the people of the label's party"),
        };
        Self::ALL.into_iter().find(|estimand| text == estimand.name() || of_sentence(estimand))
    }
}

impl fmt::Display for Estimand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Attenuated => "coefficients among the noisy columns, attenuated by the privacy noise",
            Self::StudyRows => "coefficients of the study's own rows",
            Self::Study => {
                "coefficients of the study itself, that is of the regression of all its subjects, missing values counting as the middle of their column"
            }
            Self::LabelPeople => {
                "coefficients among the people of the label's party, as if no value were missing"
            }
            Self::LogOdds => {
                "log odds of the study itself, that is of the logistic regression of all its subjects, as its moments tell them; missing values count as the middle of their column"
            }
            Self::LabelLogOdds => {
                "log odds among the people of the label's party, as moments tell them and as if no value were missing"
            }
        })
    }
}

impl Serialize for Estimand {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for Estimand {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| D::Error::custom("its estimand is none that this potluck knows"))
    }
}

/// What a coefficient belongs to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Term {
    /// A numeric column; inputs are clamped to its bounds.
    Numeric {
        /// The column.
        column: String,
        /// Lower bound.
        lo: f64,
        /// Upper bound.
        hi: f64,
    },
    /// One level of a categorical column: 1 if the column has it, else 0.
    Level {
        /// The column.
        column: String,
        /// The level.
        level: String,
        /// All levels of the column.
        levels: Vec<String>,
        /// What values that are no level count as.
        unknown: Unknown,
    },
}

impl Term {
    /// The column it comes from.
    pub fn column(&self) -> &str {
        match self {
            Self::Numeric { column, .. } | Self::Level { column, .. } => column,
        }
    }

    /// Name of its encoded column.
    pub fn name(&self) -> String {
        match self {
            Self::Numeric { column, .. } => column.clone(),
            Self::Level { column, level, .. } => format!("{column}={level}"),
        }
    }

    /// The range of its values.
    pub fn range(&self) -> (f64, f64) {
        match self {
            Self::Numeric { lo, hi, .. } => (*lo, *hi),
            Self::Level { .. } => (0.0, 1.0),
        }
    }
}

/// An estimate with its interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Estimate {
    /// The estimate, in original units.
    pub estimate: f64,
    /// Its standard error.
    pub standard_error: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

impl Estimate {
    /// Log odds as an odds ratio. Its standard error is that of the ratio to first order.
    #[must_use]
    pub fn ratio(&self) -> Self {
        let estimate = self.estimate.exp();
        Self {
            estimate,
            standard_error: estimate * self.standard_error,
            low: self.low.exp(),
            high: self.high.exp(),
        }
    }
}

/// The coefficient of one feature.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Coefficient {
    /// The feature.
    pub term: Term,
    /// The party that released it.
    pub party: String,
    /// Unit of the feature, for people.
    pub unit: Option<String>,
    /// Change of the label per unit of the feature.
    pub value: Estimate,
    /// The coefficient to predict with: shrunk where the data resolve little.
    pub prediction: f64,
    /// When predicting, inputs are clamped to this range: what the release kept of the column.
    pub range: [f64; 2],
    /// When predicting, what a missing value counts as.
    pub missing: f64,
    /// The coefficient in encoded units: comparable between features.
    pub encoded: Estimate,
    /// Part of the feature's released variance that is privacy noise, as [`noise_share`] has it.
    pub noise_share: f64,
    /// What the variance of the coefficient is made of, where the learner knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parts: Option<Parts>,
    /// What published numbers say against it. Without a finding, the interval holds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<Finding>,
    /// Values beyond this were certainly cut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<[f64; 2]>,
}

/// What the variance of a coefficient is made of, as shares that sum to one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parts {
    /// Noise added for privacy.
    pub privacy: f64,
    /// People who share a released row.
    pub mixing: f64,
    /// Correlations between parties that the releases leave open.
    #[serde(default)]
    pub correlations: f64,
    /// People being a sample.
    pub sampling: f64,
    /// Allowance for values that were clipped.
    pub clipping: f64,
    /// What is not known of who is where: what parties have in common, values missing at the same
    /// people of several, people that parties chose. Nothing where all parties hold the same
    /// people.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub people: f64,
    /// Allowance for what moments do not say of log odds. Nothing in a linear regression.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub approximation: f64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_nothing(share: &f64) -> bool {
    *share == 0.0
}

/// Share of the label's variance that the features explain.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RSquared {
    /// The estimate.
    pub estimate: f64,
    /// Lower and upper end of its interval, where the learner knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<[f64; 2]>,
}

/// What a logistic regression says of its label beside coefficients.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Classification {
    /// The share of people that the label applies to.
    pub share: f64,
    /// Lower and upper end of its interval: privacy noise, and people being a sample.
    pub share_interval: [f64; 2],
    /// Area under the curve of true against false positives on new people: how likely one whom the
    /// label applies to has a higher prediction than one whom it does not.
    pub area: f64,
    /// Lower and upper end of its interval.
    pub area_interval: [f64; 2],
    /// How much of predicted differences of shares shows on new people, before predictions were
    /// shrunk by as much as this can be believed: 1 is well calibrated.
    pub calibration: f64,
    /// Lower and upper end of its interval.
    pub calibration_interval: [f64; 2],
    /// Variance of the log odds between people.
    pub log_odds_variance: f64,
}

/// A predicted probability with its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Probability {
    /// What predicts best.
    pub estimate: f64,
    /// Lower end of the interval for the share of people like this one.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// 1/(1 + e⁻ᵗ).
fn probability(log_odds: f64) -> f64 {
    1.0 / (1.0 + (-log_odds).exp())
}

/// Eigenvalues of the moment matrix that was inverted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Eigenvalues {
    /// The smallest.
    pub smallest: f64,
    /// Its standard error.
    pub smallest_error: f64,
    /// The smallest in absolute value.
    pub smallest_absolute: f64,
    /// Ratio of the largest to the smallest absolute eigenvalue.
    pub condition: f64,
    /// What they mean.
    pub stability: String,
    /// Whether the matrix stands clear of the noise.
    pub sound: bool,
}

/// Whether the fit can be relied upon.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Diagnostics {
    /// Number of subjects; where parties hold different people, about how many the label's party
    /// has.
    pub rows: u64,
    /// Number of released rows.
    pub released_rows: u64,
    /// Degrees of freedom of the intervals.
    pub degrees: u64,
    /// Of the moment matrix, for learners that invert it as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub eigenvalues: Option<Eigenvalues>,
    /// Residual variance of the released rows, in encoded units, where the learner looks at it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub residual_variance: Option<f64>,
    /// Share of the label's variance that the features explain, where it can be estimated.
    pub r_squared: Option<RSquared>,
    /// What published numbers say against it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub r_squared_findings: Vec<Finding>,
    /// Features that the others say nearly all of, where the learner looks at it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub collinear: Vec<Collinear>,
}

/// A feature that the others say nearly all of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Collinear {
    /// The feature.
    pub feature: String,
    /// How much of its variance the others explain together.
    pub by_others: f64,
    /// The one that goes with it most.
    pub closest: String,
    /// Their correlation.
    pub correlation: f64,
}

impl Diagnostics {
    /// What is wrong with the fit, if something is.
    pub fn fault(&self) -> Option<&str> {
        self.eigenvalues.as_ref().filter(|values| !values.sound).map(|values| values.stability.as_str())
    }
}

/// A regression learned from a public dataset.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Model {
    /// Says what the file is: `model`.
    pub potluck: String,
    /// File format.
    pub format: u32,
    /// Version that wrote it.
    pub software: String,
    /// Name of the study.
    pub study: String,
    /// Id of the study.
    pub study_id: String,
    /// Content hash of the public dataset.
    pub dataset: String,
    /// What is predicted.
    pub label: Term,
    /// Unit of the label, for people.
    pub label_unit: Option<String>,
    /// What is regressed; left out of files where it is the label itself.
    #[serde(default, skip_serializing_if = "Kind::is_linear")]
    pub kind: Kind,
    /// How it was learned.
    pub learner: Learner,
    /// λ added to the diagonal of the moment matrix.
    pub ridge: f64,
    /// Level of the intervals.
    pub level: f64,
    /// What the coefficients estimate.
    pub estimand: Estimand,
    /// The label's value where every feature is 0.
    pub intercept: Estimate,
    /// Whether the intercept was estimated; otherwise it follows from the bounds, because the fit
    /// goes through the middle of all of them.
    pub free_intercept: bool,
    /// The intercept to predict with.
    pub prediction_intercept: f64,
    /// Predictions are clamped to this range: what the release kept of the label.
    pub label_range: [f64; 2],
    /// Values of the label beyond this were certainly cut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label_kept: Option<[f64; 2]>,
    /// By how much a prediction for a new person misses the label, as a standard deviation, where
    /// the learner knows it; not of a label that is a level.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prediction_error: Option<f64>,
    /// One a feature.
    pub coefficients: Vec<Coefficient>,
    /// Covariance of intercept and coefficients, in original units.
    pub covariance: Vec<Vec<f64>>,
    /// Whether the fit can be relied upon.
    pub diagnostics: Diagnostics,
    /// Of the label of a logistic regression.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub classification: Option<Classification>,
    /// What the releases promise, in words.
    pub privacy: Vec<String>,
}

impl Model {
    /// The JSON text.
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).expect("a model holds only finite numbers");
        text.push('\n');
        text
    }

    /// Writes the file.
    pub fn write(&self, path: &Path, existing: Existing) -> Result<(), Error> {
        write_file(path, self.to_json().as_bytes(), existing, Audience::Public)
    }

    /// Reads a model file.
    pub fn read(path: &Path) -> Result<Self, Error> {
        Self::parse(&fs::read_to_string(path).map_err(|error| Error::read(path, error))?, path)
    }

    /// Reads the text of a model file; `path` says in messages where it is from.
    pub fn parse(text: &str, path: &Path) -> Result<Self, Error> {
        let not_ours = |detail: String| Error::NotOurs { path: path.to_owned(), expected: "model", detail };
        let value: serde_json::Value =
            serde_json::from_str(text).map_err(|error| not_ours(format!("it is not JSON: {error}")))?;
        if value["potluck"] != "model" {
            return Err(not_ours("it does not say that it is a model".to_owned()));
        }
        crate::check_format(&value, path, crate::FORMAT)?;
        serde_json::from_value(value).map_err(|error| not_ours(error.to_string()))
    }

    /// The most by which the ridge shrinks a coefficient, as a share, where it matters: no interval
    /// accounts for it.
    pub fn shrinkage(&self) -> Option<f64> {
        let smallest = self.diagnostics.eigenvalues.as_ref()?.smallest_absolute;
        Some((self.ridge / smallest).min(1.0)).filter(|share| *share > NOTABLE_SHRINKAGE)
    }

    /// What a coefficient of a level compares it with: the levels of its column that are no
    /// features. Nothing for numbers, and where all levels are features.
    pub fn reference(&self, term: &Term) -> Option<Reference> {
        let Term::Level { column, level, levels, .. } = term else { return None };
        let is_feature = |level: &&String| {
            self.coefficients.iter().any(
                |one| matches!(&one.term, Term::Level { column: of, level: own, .. } if of == column && own == *level),
            )
        };
        let left: Vec<&String> =
            levels.iter().filter(|other| *other != level && !is_feature(other)).collect();
        match left.as_slice() {
            [] => None,
            [one] => Some(Reference::Level((*one).clone())),
            _ => Some(Reference::Others),
        }
    }

    /// What the coefficients are, as a clause: the estimand, a word on cut values where some are
    /// about them, and the ridge where it matters.
    pub fn estimated(&self) -> String {
        let ridge = self.shrinkage().map_or(String::new(), |share| {
            format!(
                ", shrunk by a ridge of {} (by up to {:.0}%), which the intervals do not show",
                self.ridge,
                100.0 * share
            )
        });
        self.estimated_without_ridge() + &ridge
    }

    /// The same without a word on the ridge.
    pub fn estimated_without_ridge(&self) -> String {
        format!("{}{}", self.estimand, self.cut_clause())
    }

    fn cut_clause(&self) -> &'static str {
        match self.coefficients.iter().filter(|one| one.is_about_cut_values()).count() {
            0 => "",
            count if count == self.coefficients.len() => ", and all values as the releases cut them",
            _ => "; those about cut values, of all values as the releases cut them",
        }
    }

    /// A feature's value as a model takes it: clamped to what the release kept of its column, or
    /// its centre if it is missing. The model knows nothing outside.
    fn input(one: &Coefficient, value: &impl Fn(&Term) -> Option<f64>) -> f64 {
        let [lo, hi] = one.range;
        value(&one.term).filter(|x| x.is_finite()).map_or(one.missing, |x| x.max(lo).min(hi))
    }

    /// What is linear in the features, by the coefficients to predict with: the label, or its log
    /// odds.
    fn linear(&self, value: &impl Fn(&Term) -> Option<f64>) -> f64 {
        let sum: f64 = self.coefficients.iter().map(|one| one.prediction * Self::input(one, value)).sum();
        self.prediction_intercept + sum
    }

    /// The prediction for one subject: `value(term)` is the subject's value of a feature, `None` if
    /// missing. It is clamped to what the release kept of the label; of a logistic regression it is
    /// a probability.
    pub fn predict(&self, value: impl Fn(&Term) -> Option<f64>) -> f64 {
        let linear = self.linear(&value);
        let [lo, hi] = self.label_range;
        match self.kind {
            Kind::Linear => linear.max(lo).min(hi),
            Kind::Logistic => probability(linear),
        }
    }

    /// The predicted log odds of one subject, by a logistic regression.
    pub fn log_odds(&self, value: impl Fn(&Term) -> Option<f64>) -> Option<f64> {
        (self.kind == Kind::Logistic).then(|| self.linear(&value))
    }

    /// The predicted probability of one subject with its interval, by a logistic regression.
    ///
    /// The interval is that of the estimates, which shrinkage does not bias, and is stretched to
    /// hold the prediction, which is shrunk. It is at the level of the model's intervals unless
    /// another is asked for.
    pub fn probability(
        &self,
        value: impl Fn(&Term) -> Option<f64>,
        level: Option<Level>,
    ) -> Option<Probability> {
        if self.kind != Kind::Logistic {
            return None;
        }
        let inputs: Vec<f64> = std::iter::once(1.0)
            .chain(self.coefficients.iter().map(|one| Self::input(one, &value)))
            .collect();
        let estimates =
            std::iter::once(&self.intercept).chain(self.coefficients.iter().map(|one| &one.value));
        let middle: f64 = estimates.zip(&inputs).map(|(one, input)| one.estimate * input).sum();
        let variance: f64 = self
            .covariance
            .iter()
            .zip(&inputs)
            .map(|(row, left)| {
                row.iter().zip(&inputs).map(|(entry, right)| left * entry * right).sum::<f64>()
            })
            .sum();
        let degrees = usize::try_from(self.diagnostics.degrees).unwrap_or(usize::MAX);
        let level = level.or(Level::new(self.level).ok()).unwrap_or_default();
        let reach = two_sided_quantile(level, degrees) * variance.max(0.0).sqrt();
        let estimate = probability(self.linear(&value));
        Some(Probability {
            estimate,
            low: probability(middle - reach).min(estimate),
            high: probability(middle + reach).max(estimate),
        })
    }

    /// Half the width of intervals of predictions at this level: so many standard errors of a
    /// prediction, as if what it misses were bell-shaped.
    pub fn prediction_reach(&self, level: Level) -> Result<f64, Error> {
        let error = self.prediction_error.ok_or_else(|| {
            Error::Regression(if matches!(self.label, Term::Level { .. }) {
                format!(
                    "predictions of {} are shares already, between 0 and 1, and have no interval; ask for none",
                    self.label.name()
                )
            } else {
                "this model does not say how far its predictions miss; fit again with the default learner and this potluck"
                    .to_owned()
            })
        })?;
        let degrees = usize::try_from(self.diagnostics.degrees).unwrap_or(usize::MAX);
        Ok(error * two_sided_quantile(level, degrees))
    }

    /// The interval that reaches so far from a prediction to both sides, within the label's public
    /// range.
    pub fn within_reach(&self, prediction: f64, reach: f64) -> [f64; 2] {
        let (lo, hi) = self.label.range();
        [(prediction - reach).max(lo), (prediction + reach).min(hi)]
    }
}

/// What a coefficient of a level compares it with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reference {
    /// The one level that is left.
    Level(String),
    /// Those that are no features.
    Others,
}

/// As "rather than no".
impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Level(level) => write!(f, "rather than {}", level.replace(char::is_control, "\u{fffd}")),
            Self::Others => f.write_str("rather than another"),
        }
    }
}

/// The part of a released variance that is privacy noise, from the expected variance of the noise
/// over the released one. Where chance made the released one smaller, all of it is noise.
pub fn noise_share(ratio: f64) -> f64 {
    if ratio > 1.0 { 1.0 } else { ratio }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_estimated_is_read_from_files_of_any_version() {
        for estimand in Estimand::ALL {
            let text = serde_json::to_string(&estimand).unwrap();
            assert_eq!(text, format!("{:?}", estimand.name()));
            assert_eq!(serde_json::from_str::<Estimand>(&text).unwrap(), estimand);
            let sentence = serde_json::to_string(&estimand.to_string()).unwrap();
            assert_eq!(serde_json::from_str::<Estimand>(&sentence).unwrap(), estimand, "as 0.1 wrote it");
        }
        let shrunk = "\"coefficients among the noisy columns, attenuated by the privacy noise, shrunk by a ridge of 0.05 (by up to 4%), which the intervals do not show\"";
        assert_eq!(serde_json::from_str::<Estimand>(shrunk).unwrap(), Estimand::Attenuated);
        let earlier = "\"coefficients of the study itself, that is of the regression of all its subjects\"";
        assert_eq!(serde_json::from_str::<Estimand>(earlier).unwrap(), Estimand::Study);
        assert!(serde_json::from_str::<Estimand>("\"something else\"").is_err());
    }
}
