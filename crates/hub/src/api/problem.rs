//! Why a request was refused, as `application/problem+json` (RFC 9457).

use axum::Json;
use axum::extract::rejection::{BytesRejection, JsonRejection, PathRejection, QueryRejection};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use potluck_release::exchange;

use crate::Error;
use crate::store::Refusal;

/// A refusal on its way to whoever asked.
pub(crate) struct Problem {
    status: StatusCode,
    detail: String,
    received: Option<u64>,
    retry_after: Option<u64>,
}

impl Problem {
    pub(crate) fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self { status, detail: detail.into(), received: None, retry_after: None }
    }

    /// An upload that does not begin where the last one ended.
    pub(super) fn resume_at(received: u64) -> Self {
        let detail = format!("{received} bytes of this file have arrived; go on from there");
        Self { received: Some(received), ..Self::new(StatusCode::CONFLICT, detail) }
    }

    /// Something that will pass by itself.
    pub(crate) fn later(status: StatusCode, seconds: u64, detail: impl Into<String>) -> Self {
        Self { retry_after: Some(seconds), ..Self::new(status, detail) }
    }

    pub(crate) fn busy() -> Self {
        Self::later(StatusCode::SERVICE_UNAVAILABLE, 5, "the hub is busy; try again in a moment")
    }

    pub(super) fn unauthorized(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, detail)
    }

    /// The hub failed: what happened goes to its log, not to whoever asked.
    fn failed(error: &Error) -> Self {
        tracing::error!(%error, "a request failed");
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "the hub failed; its log says why. Try again later")
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        Self::failed(&error)
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::NotFound(detail) => Self::new(StatusCode::NOT_FOUND, detail),
            Refusal::Conflict(detail) => Self::new(StatusCode::CONFLICT, detail),
            Refusal::Unacceptable(detail) => Self::new(StatusCode::UNPROCESSABLE_ENTITY, detail),
            Refusal::Busy => Self::busy(),
            Refusal::Failed(error) => Self::failed(&error),
        }
    }
}

macro_rules! from_rejection {
    ($($rejection:ty),*) => {$(
        impl From<$rejection> for Problem {
            fn from(rejection: $rejection) -> Self {
                Self::new(rejection.status(), rejection.body_text())
            }
        }
    )*};
}
from_rejection!(JsonRejection, PathRejection, QueryRejection, BytesRejection);

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = exchange::Problem {
            kind: "about:blank".to_owned(),
            title: self.status.canonical_reason().unwrap_or("Problem").to_owned(),
            status: self.status.as_u16(),
            detail: self.detail,
            received: self.received,
        };
        let mut response = (self.status, Json(&body)).into_response();
        // Pages say the same in their own way.
        response.extensions_mut().insert(body);
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if let Some(seconds) = self.retry_after {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}
