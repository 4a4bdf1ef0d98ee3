//! Regressions for readers: datasets and fits are kept in memory.

use std::hash::{Hash, Hasher};
use std::path::Path;
use std::sync::{Arc, OnceLock, Weak};

use moka::sync::Cache;
use potluck_core::learn::{Level, Ridge};
use potluck_release::correlations::Correlations;
use potluck_release::fit::{DEFAULT_RIDGE, Regression, fit};
use potluck_release::model::{Kind, Learner};
use potluck_release::{Model, PublicDataset};

use crate::Error;
use crate::app::Shared;
use crate::store::{Refusal, StudyRecord};

/// Bytes of public datasets kept in memory.
const DATASET_BYTES: u64 = 1 << 30;
/// Bytes of fits kept in memory.
const FIT_BYTES: u64 = 1 << 28;
/// Answers about correlations kept in memory.
const CORRELATIONS: u64 = 200;
/// Most features that a reader may name: no study has more columns that make sense.
const MOST_FEATURES: usize = 10_000;

/// The level of the intervals where none is named.
pub(crate) const LEVEL: f64 = 0.95;

/// What the query of an address says of a regression,
/// `label=…&feature=…&feature=…&model=…&learner=…&level=…`, as it was sent: the explorer's form
/// keeps it even where it makes no sense.
pub(crate) struct FitForm {
    pub(crate) label: String,
    pub(crate) features: Vec<String>,
    pub(crate) kind: String,
    pub(crate) learner: String,
    pub(crate) level: String,
}

impl FitForm {
    pub(crate) fn read(query: &str) -> Self {
        let mut read = Self {
            label: String::new(),
            features: Vec::new(),
            kind: Kind::Linear.name().to_owned(),
            learner: Learner::Posterior.name().to_owned(),
            level: LEVEL.to_string(),
        };
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            match &*name {
                "label" => read.label = value.into_owned(),
                "feature" => read.features.push(value.into_owned()),
                "model" => read.kind = value.into_owned(),
                "learner" => read.learner = value.into_owned(),
                "level" => read.level = value.into_owned(),
                _ => {}
            }
        }
        read
    }

    /// The regression that is asked for, if one is.
    pub(crate) fn request(&self) -> Result<FitRequest, Refusal> {
        let unacceptable = |detail: &str| Refusal::Unacceptable(detail.to_owned());
        let learner = serde_json::from_value(self.learner.as_str().into())
            .map_err(|_| unacceptable("learner is posterior, debiased or ols"))?;
        let kind = serde_json::from_value(self.kind.as_str().into())
            .map_err(|_| unacceptable("model is linear or logistic"))?;
        let level = level(&self.level).ok_or_else(|| {
            unacceptable("level is a number between 0 and 1, such as 0.95, or a percentage, such as 95%")
        })?;
        if self.label.is_empty() {
            return Err(unacceptable("name the column to explain: label=COLUMN"));
        }
        Ok(FitRequest { label: self.label.clone(), features: self.features.clone(), kind, learner, level })
    }
}

/// A level as people write it: 0.95, or 95%.
pub(crate) fn level(text: &str) -> Option<f64> {
    let text = text.trim();
    match text.strip_suffix('%') {
        // Shifted as decimals, so that 95% is what 0.95 is.
        Some(percent) => format!("{}e-2", percent.trim()).parse().ok(),
        None => text.parse().ok(),
    }
}

/// Which regression a reader asks for.
#[derive(Clone, Debug)]
pub(crate) struct FitRequest {
    /// The label.
    pub(crate) label: String,
    /// The features; all others when there are none.
    pub(crate) features: Vec<String>,
    /// The label itself, or its log odds.
    pub(crate) kind: Kind,
    /// How to learn.
    pub(crate) learner: Learner,
    /// Level of the intervals.
    pub(crate) level: f64,
}

/// What makes two requests the same: the dataset's hash and the request.
#[derive(Clone)]
struct Key(String, FitRequest);

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
            && self.1.label == other.1.label
            && self.1.features == other.1.features
            && self.1.kind == other.1.kind
            && self.1.learner == other.1.learner
            && self.1.level.to_bits() == other.1.level.to_bits()
    }
}

impl Eq for Key {}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let FitRequest { label, features, kind, learner, level } = &self.1;
        (&self.0, label, features, kind, learner.name(), level.to_bits()).hash(state);
    }
}

/// A regression and the dataset it comes from.
pub(crate) struct Fitted {
    pub(crate) request: FitRequest,
    pub(crate) model: Model,
    /// The dataset's file.
    sha256: String,
    /// Kept as long as memory has room for it: fits must not hold on to datasets.
    dataset: Weak<PublicDataset>,
    outcome: OnceLock<String>,
}

impl Fitted {
    /// What it found, as an HTML fragment; rendered when it is first asked for.
    pub(crate) fn outcome(&self, app: &Shared) -> Result<&str, Error> {
        if let Some(outcome) = self.outcome.get() {
            return Ok(outcome);
        }
        let dataset = match self.dataset.upgrade() {
            Some(dataset) => dataset,
            None => app.fits.dataset(&app.store.object(&self.sha256), &self.sha256)?,
        };
        Ok(self.outcome.get_or_init(|| potluck_report::outcome(&self.model, &dataset)))
    }
}

/// Datasets and fits in memory.
pub(crate) struct Fits {
    datasets: Cache<String, Arc<PublicDataset>>,
    fitted: Cache<Key, Arc<Fitted>>,
    /// By dataset and question.
    correlated: Cache<String, Arc<Correlations>>,
}

impl Fits {
    pub(crate) fn new() -> Self {
        let bytes = |_: &String, dataset: &Arc<PublicDataset>| {
            let columns = dataset.columns();
            u32::try_from(8 * columns.rows() * columns.names().len()).unwrap_or(u32::MAX)
        };
        Self {
            datasets: Cache::builder().max_capacity(DATASET_BYTES).weigher(bytes).build(),
            fitted: Cache::builder().max_capacity(FIT_BYTES).weigher(fit_bytes).build(),
            correlated: Cache::builder().max_capacity(CORRELATIONS).build(),
        }
    }

    pub(crate) fn correlated(&self, key: &str) -> Option<Arc<Correlations>> {
        self.correlated.get(key)
    }

    pub(crate) fn keep_correlated(&self, key: String, found: Correlations) -> Arc<Correlations> {
        let found = Arc::new(found);
        self.correlated.insert(key, Arc::clone(&found));
        found
    }

    pub(crate) fn dataset(&self, path: &Path, sha256: &str) -> Result<Arc<PublicDataset>, Error> {
        let read = || PublicDataset::read(path).map(Arc::new).map_err(|error| error.to_string());
        self.datasets.try_get_with(sha256.to_owned(), read).map_err(|error| Error::damaged(error.as_str()))
    }
}

/// About how much memory a fit takes: a covariance of its coefficients, and a line or more for each
/// in what is shown.
fn fit_bytes(_: &Key, fitted: &Arc<Fitted>) -> u32 {
    let terms = fitted.model.coefficients.len() + 1;
    u32::try_from(20_000 + 4_000 * terms + 16 * terms * terms).unwrap_or(u32::MAX)
}

/// The regression that a reader asks for, on the public dataset of a study.
pub(crate) async fn fitted(
    app: &Shared,
    record: &StudyRecord,
    request: FitRequest,
) -> Result<Arc<Fitted>, Refusal> {
    let Some(dataset) = &record.dataset else {
        return Err(Refusal::NotFound(
            "the study has no public dataset yet; it appears when its parties have released".to_owned(),
        ));
    };
    let sha256 = dataset.file.sha256.clone();
    let key = Key(sha256.clone(), request.clone());
    if let Some(fitted) = app.fits.fitted.get(&key) {
        return Ok(fitted);
    }
    let regression = regression(request.clone())?;
    app.compute(move |app| {
        if let Some(fitted) = app.fits.fitted.get(&key) {
            return Ok(fitted);
        }
        let dataset = app.fits.dataset(&app.store.object(&sha256), &sha256)?;
        let model = fit(&dataset, &regression).map_err(|error| Refusal::Unacceptable(error.to_string()))?;
        let fitted = Arc::new(Fitted {
            request,
            model,
            dataset: Arc::downgrade(&dataset),
            sha256,
            outcome: OnceLock::new(),
        });
        app.fits.fitted.insert(key, Arc::clone(&fitted));
        app.metrics.fits.inc();
        Ok(fitted)
    })
    .await?
}

fn regression(request: FitRequest) -> Result<Regression, Refusal> {
    let unacceptable = |error: potluck_core::learn::LearnError| Refusal::Unacceptable(error.to_string());
    if request.features.len() > MOST_FEATURES {
        return Err(Refusal::Unacceptable(format!("name at most {MOST_FEATURES} features")));
    }
    Ok(Regression {
        label: request.label,
        features: (!request.features.is_empty()).then_some(request.features),
        kind: request.kind,
        learner: request.learner,
        ridge: Ridge::new(DEFAULT_RIDGE).map_err(unacceptable)?,
        level: Level::new(request.level).map_err(unacceptable)?,
    })
}
