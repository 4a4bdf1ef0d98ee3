//! Regressions and plans, for programs.

use axum::Json;
use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use potluck_release::AnyStudy;
use potluck_release::exchange::Problem as ProblemBody;
use potluck_release::plan::Plan;
use potluck_report::described;

use super::Path;
use super::problem::Problem;
use super::studies::find;
use crate::app::Shared;
use crate::fits::{FitForm, fitted};

/// A regression on the public dataset of a study
///
/// The model as `potluck fit --json` prints it, or with `words=true` as `potluck inspect --json`
/// does, with every finding as a sentence. Features are repeated; without any, all other columns
/// are features.
///
/// A coefficient that published numbers speak against has `findings`, each with a `kind`
/// (`label-tails`, `feature-tails`, `label-unresolved`, `feature-unresolved` or `confounders`) and,
/// for confounders, the `columns` that an effect may come from. With `…-tails` it is about values
/// as the releases cut them, with `…-unresolved` its interval cannot be relied on.
/// A logistic regression may have `odds-unbounded`, `level-rare` and `feature-shape` besides, with
/// which an interval cannot be relied on; its coefficients are log odds, and `classification` has
/// the share of the label and the area under the curve.
/// `diagnostics.r_squared_findings` has the same for R². Show them first. An interval of the
/// learner posterior holds where there is none.
#[utoipa::path(get, path = "/api/v1/studies/{study}/fit", tag = "regressions", params(
    ("study" = String, Path, description = "The study id"),
    ("label" = String, Query, description = "The column to explain: numeric, with two levels, or `column=level`"),
    ("feature" = Option<Vec<String>>, Query, description = "A column to explain it with; may be repeated"),
    ("model" = Option<String>, Query, description = "linear or logistic"),
    ("learner" = Option<String>, Query, description = "posterior, debiased or ols"),
    ("level" = Option<f64>, Query, description = "Level of the intervals"),
    ("words" = Option<bool>, Query, description = "With what can be said of the model, as `potluck inspect --json` prints it"),
), responses(
    (status = 200, description = "The model", body = serde_json::Value),
    (status = 404, description = "There is no such study, or no public dataset yet", body = ProblemBody, content_type = "application/problem+json"),
    (status = 422, description = "The regression cannot be fitted", body = ProblemBody, content_type = "application/problem+json"),
))]
pub(super) async fn fit(
    State(app): State<Shared>,
    Path(study): Path<String>,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let record = find(&app, &study).await?;
    let query = query.unwrap_or_default();
    let request = FitForm::read(&query).request()?;
    let words = wants_words(&query)?;
    let fitted = fitted(&app, &record, request).await?;
    if words {
        return Ok(Json(described(&fitted.model)).into_response());
    }
    Ok(([(CONTENT_TYPE, "application/json")], fitted.model.to_json()).into_response())
}

/// Whether a program asks for the model with what can be said of it.
fn wants_words(query: &str) -> Result<bool, Problem> {
    let asked = form_urlencoded::parse(query.as_bytes()).filter(|(name, _)| name == "words").last();
    asked.map_or(Ok(false), |(_, value)| {
        value.parse().map_err(|_| Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "words is true or false"))
    })
}

/// What a study would promise and cost
///
/// The study is TOML, sealed or not. Nothing is stored.
#[utoipa::path(post, path = "/api/v1/plan", tag = "regressions", request_body(content = String, content_type = "text/plain"), responses(
    (status = 200, description = "The plan", body = Plan),
    (status = 400, description = "The body cannot be read", body = ProblemBody, content_type = "application/problem+json"),
    (status = 413, description = "The body is too large", body = ProblemBody, content_type = "application/problem+json"),
    (status = 422, description = "The study is not acceptable", body = ProblemBody, content_type = "application/problem+json"),
))]
pub(super) async fn plan(
    State(app): State<Shared>,
    body: Result<Bytes, BytesRejection>,
) -> Result<Json<Plan>, Problem> {
    let body = body?;
    let text = String::from_utf8(body.to_vec())
        .map_err(|_| Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "the study is not UTF-8 text"))?;
    let find = |app: &Shared, id: &str| app.store.study(id).ok().flatten().map(|record| record.study.clone());
    let plan =
        move |app: &_| AnyStudy::parse_with(&text, |id| find(app, id)).and_then(|study| Plan::of(&study));
    let (_, plan) = app.compute(plan).await?.map_err(|error| Problem::study(&error))?;
    Ok(Json(plan))
}
