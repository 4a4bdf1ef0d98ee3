//! Fitted regressions.

use std::path::{Path, PathBuf};

use numpy::{PyArray1, PyArray2};
use potluck_core::learn::{Level, Ridge, two_sided_quantile, two_sided_tail};
use potluck_party::predict::{labels, log_odds, needed_columns, predictions, probabilities};
use potluck_party::{Observer, Resources, Table};
use potluck_release::Error as ReleaseError;
use potluck_release::files::{Audience, write_file};
use potluck_release::findings::{Finding, HEADING};
use potluck_release::fit::Regression;
use potluck_release::model::{Coefficient, Estimate, Kind, Learner, RSquared, Term};
use pyo3::prelude::*;

use crate::dataset::PublicDataset;
use crate::errors::Error;
use crate::study::existing;
use crate::table::{self, Keeping};
use crate::{json, work};

/// A regression learned from a public dataset; LinearRegression has it in scikit-learn's manner.
#[pyclass(frozen, module = "potluck")]
pub(crate) struct Model {
    content: potluck_release::Model,
}

impl Model {
    fn values<T>(&self, of: impl Fn(&Coefficient) -> T) -> Vec<T> {
        self.content.coefficients.iter().map(of).collect()
    }

    /// The intercept, then the coefficients.
    fn estimates(&self) -> impl Iterator<Item = &Estimate> {
        std::iter::once(&self.content.intercept).chain(self.content.coefficients.iter().map(|one| &one.value))
    }

    fn degrees(&self) -> usize {
        usize::try_from(self.content.diagnostics.degrees).unwrap_or(usize::MAX)
    }

    /// How many times as long both sides of an interval are at another level, by Student's t.
    fn stretch(&self, level: f64) -> Result<f64, Error> {
        let quantile = |level: f64| -> Result<f64, Error> {
            let level = Level::new(level).map_err(ReleaseError::from)?;
            Ok(two_sided_quantile(level, self.degrees()))
        };
        Ok(quantile(level)? / quantile(self.content.level)?)
    }
}

/// A finding as Python gets it: its kind, the columns that it names, and a sentence.
type Told = (&'static str, Vec<String>, String);

/// How far an interval reaches from its estimate towards 0: intervals need not be symmetric.
fn towards_zero(one: &Estimate) -> f64 {
    if one.estimate < 0.0 { one.high - one.estimate } else { one.estimate - one.low }
}

/// Does something with the columns `keep` of a table, and reports how far it is.
fn over_table<T: Send>(
    py: Python<'_>,
    data: &Bound<'_, PyAny>,
    keep: &[String],
    tmp_dir: Option<PathBuf>,
    progress: Option<&Bound<'_, PyAny>>,
    read: impl FnOnce(&Table, &dyn Observer) -> Result<T, potluck_party::Error> + Send,
) -> Result<T, Error> {
    let table = table::open(data, Some(keep), Keeping::All, &Resources::new(None, tmp_dir).tmp)?;
    let rows = work::away(py, || table.rows())?.unwrap_or(0);
    work::reporting(py, progress, rows, " rows", |report| {
        work::run(py, report, |observer| read(&table, observer))
    })
}

#[pymethods]
impl Model {
    /// Reads a model file.
    #[staticmethod]
    fn load(path: PathBuf) -> Result<Self, Error> {
        Ok(Self { content: potluck_release::Model::read(&path)? })
    }

    /// Reads the text of a model file.
    #[staticmethod]
    fn parse(text: &str) -> Result<Self, Error> {
        Ok(Self { content: potluck_release::Model::parse(text, Path::new("the text"))? })
    }

    /// Writes the model file.
    #[pyo3(signature = (path, *, overwrite=false))]
    fn save(&self, path: PathBuf, overwrite: bool) -> Result<(), Error> {
        Ok(self.content.write(&path, existing(overwrite))?)
    }

    /// The text of the model file.
    fn to_json(&self) -> String {
        self.content.to_json()
    }

    /// The model file as plain data.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        json::to_python(py, &self.content)
    }

    /// One prediction a row of a table, in its order.
    #[pyo3(signature = (data, *, tmp_dir=None, progress=None))]
    fn predict<'py>(
        &self,
        py: Python<'py>,
        data: &Bound<'py, PyAny>,
        tmp_dir: Option<PathBuf>,
        progress: Option<&Bound<'py, PyAny>>,
    ) -> Result<Bound<'py, PyArray1<f64>>, Error> {
        let keep = needed_columns(&self.content);
        let predicted = over_table(py, data, &keep, tmp_dir, progress, |table, observer| {
            observer.stage("", 0);
            predictions(&self.content, table, observer)
        })?;
        Ok(PyArray1::from_vec(py, predicted))
    }

    /// The log odds of each row of a table, by a logistic regression.
    #[pyo3(signature = (data, *, tmp_dir=None, progress=None))]
    fn log_odds<'py>(
        &self,
        py: Python<'py>,
        data: &Bound<'py, PyAny>,
        tmp_dir: Option<PathBuf>,
        progress: Option<&Bound<'py, PyAny>>,
    ) -> Result<Bound<'py, PyArray1<f64>>, Error> {
        let keep = needed_columns(&self.content);
        let found = over_table(py, data, &keep, tmp_dir, progress, |table, observer| {
            observer.stage("", 0);
            log_odds(&self.content, table, observer)
        })?;
        Ok(PyArray1::from_vec(py, found.ok_or_else(not_logistic)?))
    }

    /// The probability of each row of a table with the ends of its interval, by a logistic
    /// regression.
    #[pyo3(signature = (data, *, tmp_dir=None, progress=None))]
    fn probabilities<'py>(
        &self,
        py: Python<'py>,
        data: &Bound<'py, PyAny>,
        tmp_dir: Option<PathBuf>,
        progress: Option<&Bound<'py, PyAny>>,
    ) -> Result<Bound<'py, PyArray2<f64>>, Error> {
        let keep = needed_columns(&self.content);
        let found = over_table(py, data, &keep, tmp_dir, progress, |table, observer| {
            observer.stage("", 0);
            probabilities(&self.content, table, observer)
        })?;
        let found = found.ok_or_else(not_logistic)?;
        let rows: Vec<Vec<f64>> = found.iter().map(|one| vec![one.estimate, one.low, one.high]).collect();
        if rows.is_empty() {
            return Ok(PyArray2::zeros(py, [0, 3], false));
        }
        Ok(PyArray2::from_vec2(py, &rows).map_err(PyErr::from)?)
    }

    /// What is regressed: "linear" or "logistic".
    #[getter]
    fn kind(&self) -> &'static str {
        self.content.kind.name()
    }

    /// The level that the label counts as 1, and all levels of its column; nothing of a number.
    #[getter]
    fn label_levels(&self) -> Option<(&str, Vec<String>)> {
        match &self.content.label {
            Term::Level { level, levels, .. } => Some((level, levels.clone())),
            Term::Numeric { .. } => None,
        }
    }

    /// Of the label of a logistic regression: the share of people it applies to, the area under
    /// the curve, and their intervals.
    #[getter]
    fn classification<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.content.classification.as_ref().map(|found| json::to_python(py, found)).transpose()
    }

    /// The ends of intervals of predictions, of this level, that hold the label of a new person.
    #[expect(clippy::type_complexity, reason = "two arrays")]
    fn prediction_intervals<'py>(
        &self,
        py: Python<'py>,
        predicted: Vec<f64>,
        level: f64,
    ) -> Result<(Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<f64>>), Error> {
        let level = Level::new(level).map_err(ReleaseError::from)?;
        let reach = self.content.prediction_reach(level)?;
        let ends = |&value: &f64| -> (f64, f64) { self.content.within_reach(value, reach).into() };
        let (low, high) = predicted.iter().map(ends).unzip();
        Ok((PyArray1::from_vec(py, low), PyArray1::from_vec(py, high)))
    }

    /// Predictions and labels of a table that has both, by row; a label that is missing is NaN, and
    /// one that is a level is 1 where a row has it, else 0.
    #[pyo3(signature = (data, *, tmp_dir=None, progress=None))]
    #[expect(clippy::type_complexity, reason = "two arrays")]
    fn predictions_and_labels<'py>(
        &self,
        py: Python<'py>,
        data: &Bound<'py, PyAny>,
        tmp_dir: Option<PathBuf>,
        progress: Option<&Bound<'py, PyAny>>,
    ) -> Result<(Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<f64>>), Error> {
        let mut keep = needed_columns(&self.content);
        keep.push(self.content.label.column().to_owned());
        let (predicted, labels) = over_table(py, data, &keep, tmp_dir, progress, |table, observer| {
            observer.stage("", 0);
            let predicted = predictions(&self.content, table, observer)?;
            observer.stage("", 1);
            Ok((predicted, labels(&self.content, table, observer)?))
        })?;
        Ok((PyArray1::from_vec(py, predicted), PyArray1::from_vec(py, labels)))
    }

    /// The columns that a table needs for `predict`.
    #[getter]
    fn inputs(&self) -> Vec<String> {
        needed_columns(&self.content)
    }

    /// What is predicted.
    #[getter]
    fn label(&self) -> String {
        self.content.label.name()
    }

    /// Unit of the label, for people.
    #[getter]
    fn label_unit(&self) -> Option<&str> {
        self.content.label_unit.as_deref()
    }

    /// What must be known before anything else, sentence by sentence: parties that seem to have the
    /// wrong people in common.
    #[getter]
    fn alarms(&self) -> Vec<String> {
        let findings = self.content.findings();
        let of_people = findings.iter().filter(|said| said.is_about_people());
        of_people.map(|said| said.sentence.to_string()).collect()
    }

    /// What the variance of each coefficient is made of, as shares by name, or None where the
    /// learner does not know.
    #[getter]
    fn parts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        json::to_python(py, &self.values(|one| one.parts))
    }

    /// Names of the features.
    #[getter]
    fn features(&self) -> Vec<String> {
        self.values(|one| one.term.name())
    }

    /// Estimates of the coefficients, in original units.
    #[getter]
    fn coefficients<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        PyArray1::from_vec(py, self.values(|one| one.value.estimate))
    }

    /// Coefficients to predict with: shrunk where the data resolve little.
    #[getter]
    fn prediction_coefficients<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        PyArray1::from_vec(py, self.values(|one| one.prediction))
    }

    /// The label's value where every feature is 0.
    #[getter]
    fn intercept(&self) -> f64 {
        self.content.intercept.estimate
    }

    /// The intercept to predict with.
    #[getter]
    fn prediction_intercept(&self) -> f64 {
        self.content.prediction_intercept
    }

    /// Whether the intercept was estimated; otherwise it follows from the bounds.
    #[getter]
    fn free_intercept(&self) -> bool {
        self.content.free_intercept
    }

    /// Standard errors of the intercept and the coefficients.
    #[getter]
    fn standard_errors<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        PyArray1::from_vec(py, self.estimates().map(|one| one.standard_error).collect())
    }

    /// Covariance of the intercept and the coefficients.
    #[getter]
    fn covariance<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        Ok(PyArray2::from_vec2(py, &self.content.covariance)?)
    }

    /// By how much a prediction for a new person misses the label, as a standard deviation, or
    /// None.
    #[getter]
    fn prediction_error(&self) -> Option<f64> {
        self.content.prediction_error
    }

    /// Share of the label's variance that the features explain, or None where it cannot be
    /// estimated.
    #[getter]
    fn r_squared(&self) -> Option<f64> {
        self.content.diagnostics.r_squared.map(|one: RSquared| one.estimate)
    }

    /// The interval of R², where the learner knows it.
    #[getter]
    fn r_squared_interval(&self) -> Option<(f64, f64)> {
        let [low, high] = self.content.diagnostics.r_squared.and_then(|one| one.interval)?;
        Some((low, high))
    }

    /// Degrees of freedom of the intervals.
    #[getter(degrees)]
    fn degrees_of_freedom(&self) -> u64 {
        self.content.diagnostics.degrees
    }

    /// Number of people; of the label's party, where parties hold different ones.
    #[getter]
    fn rows(&self) -> u64 {
        self.content.diagnostics.rows
    }

    /// Number of released rows.
    #[getter]
    fn released_rows(&self) -> u64 {
        self.content.diagnostics.released_rows
    }

    /// What is wrong with the fit, if something is.
    #[getter]
    fn fault(&self) -> Option<&str> {
        self.content.diagnostics.fault()
    }

    /// What the coefficients estimate.
    #[getter]
    fn estimand(&self) -> String {
        self.content.estimated()
    }

    /// What the releases promise, in words.
    #[getter]
    fn privacy(&self) -> Vec<String> {
        self.content.privacy.clone()
    }

    /// Level of the intervals.
    #[getter]
    fn level(&self) -> f64 {
        self.content.level
    }

    /// How it was learned.
    #[getter]
    fn learner(&self) -> &'static str {
        self.content.learner.name()
    }

    /// What speaks against each coefficient.
    #[getter]
    fn findings(&self) -> Vec<Vec<Told>> {
        self.values(|one| {
            let told = |finding: &Finding| {
                let text = self.content.said_of(one, finding).to_string();
                (finding.kind.name(), finding.columns.clone(), text)
            };
            one.findings.iter().map(told).collect()
        })
    }

    /// What speaks against each coefficient in a few words, or None.
    #[getter]
    fn marks(&self) -> Vec<Option<String>> {
        self.values(Coefficient::mark)
    }

    /// What speaks against R² in a few words, or None.
    #[getter]
    fn r_squared_mark(&self) -> Option<String> {
        self.content.r_squared_mark()
    }

    /// What to read before the first number beside `alarms`, sentence by sentence, under
    /// `findings_heading`.
    #[getter]
    fn opening(&self) -> Vec<String> {
        let fault = self.content.diagnostics.fault().map(|fault| format!("Careful: {fault}."));
        let findings = self.content.findings();
        let others = findings.iter().filter(|said| !said.is_about_people());
        fault.into_iter().chain(others.map(|said| said.sentence.to_string())).collect()
    }

    /// The sentence to take home.
    #[getter]
    fn headline(&self) -> String {
        self.content.headline().to_string()
    }

    /// What to know of features that the others say nearly all of, a sentence each.
    #[getter]
    fn collinear(&self) -> Vec<String> {
        self.content.collinear().iter().map(ToString::to_string).collect()
    }

    /// What each coefficient of a level compares it with, as "rather than no"; None for numbers.
    #[getter]
    fn references(&self) -> Vec<Option<String>> {
        self.values(|one| self.content.reference(&one.term).map(|reference| reference.to_string()))
    }

    /// What stands above the findings.
    #[getter]
    #[expect(clippy::unused_self, reason = "a getter of Python has one")]
    fn findings_heading(&self) -> &'static str {
        HEADING
    }

    /// What values were cut to, column by column, where a coefficient is about cut values.
    #[getter]
    fn cut_to(&self) -> Vec<String> {
        self.content.cut_to().iter().map(ToString::to_string).collect()
    }

    /// Intervals of the intercept and the coefficients, one a row; at the model's level unless
    /// another is given: then both sides are stretched or shortened, which is exact for symmetric
    /// intervals and about right for others.
    #[pyo3(signature = (level=None))]
    fn intervals<'py>(
        &self,
        py: Python<'py>,
        level: Option<f64>,
    ) -> Result<Bound<'py, PyArray2<f64>>, Error> {
        let rows: Vec<Vec<f64>> = match level {
            None => self.estimates().map(|one| vec![one.low, one.high]).collect(),
            Some(level) => {
                let stretch = self.stretch(level)?;
                let interval = |one: &Estimate| {
                    let end = |end: f64| one.estimate + stretch * (end - one.estimate);
                    vec![end(one.low), end(one.high)]
                };
                self.estimates().map(interval).collect()
            }
        };
        Ok(PyArray2::from_vec2(py, &rows).map_err(PyErr::from)?)
    }

    /// Two-sided p-values of the intercept and the coefficients: 1 less the level at which
    /// `intervals` reach 0.
    ///
    /// By Student's t, scaled to the side of the interval that lies towards 0: below 1 less the
    /// model's level just where the interval excludes 0.
    fn p_values<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyArray1<f64>>, Error> {
        let degrees = self.content.diagnostics.degrees as f64;
        let level = Level::new(self.content.level).map_err(ReleaseError::from)?;
        let quantile = two_sided_quantile(level, self.degrees());
        let tail =
            |one: &Estimate| two_sided_tail(quantile * one.estimate.abs() / towards_zero(one), degrees);
        Ok(PyArray1::from_vec(py, self.estimates().map(tail).collect()))
    }

    /// The report as one HTML page that needs nothing else.
    fn report_html(&self, py: Python<'_>, dataset: &PublicDataset) -> Result<String, Error> {
        work::away(py, || Ok::<_, Error>(potluck_report::page(&self.content, dataset.content())))
    }

    /// Writes the report to a file.
    #[pyo3(signature = (dataset, path, *, overwrite=false))]
    fn save_report(
        &self,
        py: Python<'_>,
        dataset: &PublicDataset,
        path: PathBuf,
        overwrite: bool,
    ) -> Result<(), Error> {
        let page = self.report_html(py, dataset)?;
        work::away(py, || write_file(&path, page.as_bytes(), existing(overwrite), Audience::Public))
    }

    /// The text of its file, and what makes it of that again.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (String,))> {
        Ok((py.get_type::<Self>().getattr("parse")?, (self.to_json(),)))
    }

    fn __repr__(&self) -> String {
        format!("<Model of {} by {}>", self.label(), self.features().join(", "))
    }

    fn _repr_html_(&self) -> String {
        potluck_report::model_card(&self.content)
    }
}

fn not_logistic() -> Error {
    Error::Usage("a linear regression has no odds; fit a LogisticRegression".to_owned())
}

fn kind(name: &str) -> Result<Kind, Error> {
    Kind::ALL.into_iter().find(|kind| kind.name() == name).ok_or_else(|| {
        let known: Vec<&str> = Kind::ALL.iter().map(|kind| kind.name()).collect();
        Error::Usage(format!("there is no kind of regression {name:?}; choose one of {}", known.join(", ")))
    })
}

fn learner(name: &str) -> Result<Learner, Error> {
    let all = [Learner::Posterior, Learner::Debiased, Learner::Ols];
    all.into_iter().find(|learner| learner.name() == name).ok_or_else(|| {
        let known: Vec<&str> = all.iter().map(|learner| learner.name()).collect();
        Error::Usage(format!("there is no learner {name:?}; choose one of {}", known.join(", ")))
    })
}

/// Fits a regression on a public dataset; see potluck.LinearRegression and
/// potluck.LogisticRegression.
#[pyfunction]
#[pyo3(signature = (dataset, label, features, *, kind, learner, ridge, level))]
#[expect(clippy::too_many_arguments, reason = "they have names in Python")]
pub(crate) fn fit(
    py: Python<'_>,
    dataset: &PublicDataset,
    label: String,
    features: Option<Vec<String>>,
    kind: &str,
    learner: &str,
    ridge: f64,
    level: f64,
) -> Result<Model, Error> {
    let regression = Regression {
        label,
        features,
        kind: self::kind(kind)?,
        learner: self::learner(learner)?,
        ridge: Ridge::new(ridge).map_err(ReleaseError::from)?,
        level: Level::new(level).map_err(ReleaseError::from)?,
    };
    let content = work::away(py, || potluck_release::fit::fit(dataset.content(), &regression))?;
    Ok(Model { content })
}
