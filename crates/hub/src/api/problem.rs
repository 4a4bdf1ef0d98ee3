//! Why a request was refused, as `application/problem+json` (RFC 9457).

use axum::Json;
use axum::extract::rejection::{BytesRejection, JsonRejection, PathRejection, QueryRejection};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use potluck_release::exchange::{self, ProblemType, StudyMistake};

use crate::Error;
use crate::store::Refusal;

/// A refusal on its way to whoever asked.
pub(crate) struct Problem {
    status: StatusCode,
    kind: ProblemType,
    detail: String,
    received: Option<u64>,
    errors: Vec<StudyMistake>,
    retry_after: Option<u64>,
}

impl Problem {
    pub(crate) fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        let (kind, detail) = (of_status(status), detail.into());
        Self { status, kind, detail, received: None, errors: Vec::new(), retry_after: None }
    }

    /// A study that is not acceptable.
    pub(super) fn study(error: &potluck_release::Error) -> Self {
        let errors = match error {
            potluck_release::Error::Study(mistakes) => mistakes.iter().map(StudyMistake::from).collect(),
            _ => Vec::new(),
        };
        Self { errors, ..Self::new(StatusCode::UNPROCESSABLE_ENTITY, error.to_string()) }
    }

    /// An upload that does not begin where the last one ended.
    pub(super) fn resume_at(received: u64) -> Self {
        let detail = format!("{received} bytes of this file have arrived; go on from there");
        let kind = ProblemType::UploadOffset;
        Self { kind, received: Some(received), ..Self::new(StatusCode::CONFLICT, detail) }
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

/// The kind of problem where the status says it.
fn of_status(status: StatusCode) -> ProblemType {
    match status {
        StatusCode::BAD_REQUEST => ProblemType::Malformed,
        StatusCode::UNAUTHORIZED => ProblemType::Unauthorized,
        StatusCode::FORBIDDEN => ProblemType::Forbidden,
        StatusCode::NOT_FOUND => ProblemType::NotFound,
        StatusCode::METHOD_NOT_ALLOWED => ProblemType::MethodNotAllowed,
        StatusCode::REQUEST_TIMEOUT => ProblemType::TooSlow,
        StatusCode::CONFLICT => ProblemType::Conflict,
        StatusCode::PAYLOAD_TOO_LARGE => ProblemType::TooLarge,
        StatusCode::UNSUPPORTED_MEDIA_TYPE => ProblemType::MediaType,
        StatusCode::RANGE_NOT_SATISFIABLE => ProblemType::Range,
        StatusCode::UNPROCESSABLE_ENTITY => ProblemType::Unacceptable,
        StatusCode::TOO_MANY_REQUESTS => ProblemType::TooManyRequests,
        StatusCode::SERVICE_UNAVAILABLE => ProblemType::Busy,
        StatusCode::INTERNAL_SERVER_ERROR => ProblemType::Failed,
        _ => ProblemType::Other,
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
            Refusal::Study(error) => Self::study(&error),
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
            kind: self.kind,
            title: self.status.canonical_reason().unwrap_or("Problem").to_owned(),
            status: self.status.as_u16(),
            detail: self.detail,
            received: self.received,
            errors: self.errors,
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
