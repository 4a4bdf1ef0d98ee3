//! Whether the hub is well, for those who run it.

use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;

use super::problem::Problem;
use crate::app::Shared;

/// Whether the hub can answer
#[utoipa::path(get, path = "/healthz", tag = "status", responses(
    (status = 200, description = "It can", body = String, content_type = "text/plain"),
    (status = 500, description = "It cannot", body = potluck_release::exchange::Problem, content_type = "application/problem+json"),
))]
pub(super) async fn health(State(app): State<Shared>) -> Result<impl IntoResponse, Problem> {
    app.blocking(|app| app.store.check()).await?;
    Ok(([(CONTENT_TYPE, "text/plain; charset=utf-8")], "ok\n"))
}

/// Numbers for Prometheus
#[utoipa::path(get, path = "/metrics", tag = "status", responses(
    (status = 200, description = "Counters, gauges and histograms", body = String, content_type = "application/openmetrics-text"),
))]
pub(super) async fn metrics(State(app): State<Shared>) -> Result<impl IntoResponse, Problem> {
    let (studies, releases) = app.blocking(|app| app.store.counts()).await?;
    app.metrics.studies.set(studies as i64);
    app.metrics.releases.set(releases as i64);
    Ok(([(CONTENT_TYPE, "application/openmetrics-text; version=1.0.0; charset=utf-8")], app.metrics.text()))
}
