//! Correlations for readers.

use std::sync::Arc;

use potluck_core::learn::Level;
use potluck_release::correlations::{Correlations, Question, correlate};

use crate::app::Shared;
use crate::fits::{LEVEL, level};
use crate::store::{Refusal, StudyRecord};

/// Most columns that a reader may correlate: every pair takes a regression.
const MOST_COLUMNS: usize = 60;

/// What the query of an address says of correlations,
/// `column=…&column=…&given=…&level=…&together=true`, as it was sent.
pub(crate) struct CorrelationForm {
    pub(crate) columns: Vec<String>,
    pub(crate) given: Vec<String>,
    pub(crate) level: String,
    pub(crate) together: bool,
}

impl CorrelationForm {
    pub(crate) fn read(query: &str) -> Self {
        let mut read =
            Self { columns: Vec::new(), given: Vec::new(), level: LEVEL.to_string(), together: false };
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            match &*name {
                "column" => read.columns.push(value.into_owned()),
                "given" => read.given.push(value.into_owned()),
                "level" => read.level = value.into_owned(),
                "together" => read.together = value == "true",
                _ => {}
            }
        }
        read
    }

    /// What is asked for.
    pub(crate) fn question(&self) -> Result<Question, Refusal> {
        let unacceptable = |detail: String| Refusal::Unacceptable(detail);
        let level = level(&self.level).ok_or_else(|| {
            unacceptable(
                "level is a number between 0 and 1, such as 0.95, or a percentage, such as 95%".to_owned(),
            )
        })?;
        Ok(Question {
            columns: (!self.columns.is_empty()).then(|| self.columns.clone()),
            given: self.given.clone(),
            level: Level::new(level).map_err(|error| unacceptable(error.to_string()))?,
            together: self.together,
        })
    }
}

/// The correlations that a reader asks for, of the public dataset of a study.
pub(crate) async fn correlated(
    app: &Shared,
    record: &StudyRecord,
    question: Question,
) -> Result<Arc<Correlations>, Refusal> {
    let Some(dataset) = &record.dataset else {
        return Err(Refusal::NotFound(
            "the study has no public dataset yet; it appears when its parties have released".to_owned(),
        ));
    };
    let sha256 = dataset.file.sha256.clone();
    app.compute(move |app| {
        let key = format!("{sha256} {question:?}");
        if let Some(found) = app.fits.correlated(&key) {
            return Ok(found);
        }
        let dataset = app.fits.dataset(&app.store.object(&sha256), &sha256)?;
        let asked = question.columns.as_ref().map_or(dataset.columns().names().len(), Vec::len);
        if asked > MOST_COLUMNS {
            return Err(Refusal::Unacceptable(format!(
                "choose at most {MOST_COLUMNS} columns here, or use `potluck correlate`, which takes any number"
            )));
        }
        let found = correlate(&dataset, &question).map_err(|error| Refusal::Unacceptable(error.to_string()))?;
        Ok(app.fits.keep_correlated(key, found))
    })
    .await?
}
