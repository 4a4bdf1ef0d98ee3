//! Correlations, for programs.

use axum::Json;
use axum::extract::{RawQuery, State};
use axum::response::{IntoResponse, Response};
use potluck_release::exchange::Problem as ProblemBody;

use super::Path;
use super::problem::Problem;
use super::studies::find;
use crate::app::Shared;
use crate::correlated::{CorrelationForm, correlated};

/// Correlations of the columns of a study's public dataset
///
/// As `potluck correlate --json` prints them: `columns` in an order in which those that go together
/// are next to each other, and `pairs` with estimate, interval and findings, the strongest first.
#[utoipa::path(get, path = "/api/v1/studies/{study}/correlations", tag = "regressions", params(
    ("study" = String, Path, description = "The study id"),
    ("column" = Option<Vec<String>>, Query, description = "A column; may be repeated; all without any"),
    ("given" = Option<Vec<String>>, Query, description = "A column to hold fixed: partial correlations; may be repeated"),
    ("level" = Option<f64>, Query, description = "Level of the intervals"),
    ("together" = Option<bool>, Query, description = "Whether the level is that of all intervals together"),
), responses(
    (status = 200, description = "The correlations", body = serde_json::Value),
    (status = 404, description = "There is no such study, or no public dataset yet", body = ProblemBody, content_type = "application/problem+json"),
    (status = 422, description = "These cannot be correlated", body = ProblemBody, content_type = "application/problem+json"),
))]
pub(super) async fn correlations(
    State(app): State<Shared>,
    Path(study): Path<String>,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let record = find(&app, &study).await?;
    let question = CorrelationForm::read(&query.unwrap_or_default()).question()?;
    let found = correlated(&app, &record, question).await?;
    Ok(Json(&*found).into_response())
}
