//! Pages for people: rendered here, usable without JavaScript, and without anything from elsewhere.

use axum::Router;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};

use crate::app::Shared;

/// All pages.
pub(crate) fn router(_app: &Shared) -> Router {
    Router::new()
}

/// What people see where there is nothing.
pub(crate) fn not_found() -> Response {
    (StatusCode::NOT_FOUND, "not found").into_response()
}
