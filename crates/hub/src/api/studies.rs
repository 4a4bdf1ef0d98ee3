//! Studies and their events.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use potluck_release::exchange::{
    Close, Closing, CreatedStudy, EventPage, Invitation, NewStudy, Problem as ProblemBody, StudyDetails,
    StudyPage,
};
use serde::Deserialize;
use utoipa::IntoParams;

use super::auth::Bearer;
use super::download::answer_bytes;
use super::problem::Problem;
use super::{Body, Path, Query};
use crate::Error;
use crate::app::Shared;
use crate::store::{Closure, Creation, Refusal, StudyRecord, summary};

/// Most entries of a page.
const MOST: u64 = 100;

/// Which page of a list.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct Page {
    /// Most entries to return.
    #[param(minimum = 1, maximum = 100)]
    limit: Option<u64>,
    /// Where the last page ended: its `next`.
    after: Option<u64>,
}

impl Page {
    fn limit(&self) -> Result<u64, Problem> {
        let limit = self.limit.unwrap_or(MOST);
        if (1..=MOST).contains(&limit) {
            Ok(limit)
        } else {
            Err(Problem::new(StatusCode::BAD_REQUEST, format!("limit is from 1 to {MOST}")))
        }
    }
}

/// The study with this id.
pub(crate) async fn find(app: &Shared, id: &str) -> Result<Arc<StudyRecord>, Problem> {
    let id = id.to_owned();
    let record = app.blocking(move |app| app.store.study(&id)).await?;
    Ok(record.ok_or_else(Refusal::no_study)?)
}

/// Studies, newest first
#[utoipa::path(get, path = "/api/v1/studies", tag = "studies", params(Page), responses(
    (status = 200, description = "A page of studies", body = StudyPage),
    (status = 400, description = "Wrong limit", body = ProblemBody, content_type = "application/problem+json"),
))]
pub(super) async fn list(
    State(app): State<Shared>,
    Query(page): Query<Page>,
) -> Result<Json<StudyPage>, Problem> {
    let limit = page.limit()?;
    let (studies, next) = app.blocking(move |app| app.store.studies(page.after, limit)).await?;
    Ok(Json(StudyPage { studies, next }))
}

/// Create a study and invite its parties
///
/// The study is sealed. Invitations are shown once; the same study again is answered without them.
#[utoipa::path(post, path = "/api/v1/studies", tag = "studies", request_body = NewStudy, security(("coordinator" = [])), responses(
    (status = 201, description = "Created, with one invitation a party", body = CreatedStudy),
    (status = 200, description = "It was there already", body = CreatedStudy),
    (status = 400, description = "The body is not JSON", body = ProblemBody, content_type = "application/problem+json"),
    (status = 401, description = "No coordinator's token", body = ProblemBody, content_type = "application/problem+json"),
    (status = 409, description = "It extends a study that is not here", body = ProblemBody, content_type = "application/problem+json"),
    (status = 413, description = "The body is too large", body = ProblemBody, content_type = "application/problem+json"),
    (status = 415, description = "The body is not declared as JSON", body = ProblemBody, content_type = "application/problem+json"),
    (status = 422, description = "The study is not acceptable", body = ProblemBody, content_type = "application/problem+json"),
))]
pub(super) async fn create(
    State(app): State<Shared>,
    bearer: Bearer,
    body: Result<Body<NewStudy>, Problem>,
) -> Result<(StatusCode, Json<CreatedStudy>), Problem> {
    let coordinator = bearer.coordinator(&app).await?;
    let Body(new) = body?;
    let (id, creation) =
        app.blocking(move |app| app.store.create_study(&coordinator, &new.study, new.early)).await?;
    Ok(match creation {
        Creation::Present => (StatusCode::OK, Json(CreatedStudy { id, invitations: Vec::new() })),
        Creation::New(invitations) => {
            let show = |(party, token): (String, crate::Token)| Invitation {
                party,
                token: token.reveal().to_owned(),
            };
            let invitations = invitations.into_iter().map(show).collect();
            (StatusCode::CREATED, Json(CreatedStudy { id, invitations }))
        }
    })
}

/// All there is to know of a study
#[utoipa::path(get, path = "/api/v1/studies/{study}", tag = "studies", params(("study" = String, Path, description = "The study id")), responses(
    (status = 200, description = "The study", body = StudyDetails),
    (status = 404, description = "There is no such study", body = ProblemBody, content_type = "application/problem+json"),
))]
pub(super) async fn details(
    State(app): State<Shared>,
    Path(study): Path<String>,
) -> Result<Json<StudyDetails>, Problem> {
    let record = find(&app, &study).await?;
    let study = &record.study;
    Ok(Json(StudyDetails {
        summary: summary(&record),
        early: record.early,
        extends: study.base().map(|base| base.id().to_owned()),
        extended_by: record.extended_by.clone(),
        party: record.parties.clone(),
        dataset_file: record.dataset.clone(),
        per_party: record.guarantees().each.clone(),
        joint: record.guarantees().joint.clone(),
        head: record.head.clone(),
    }))
}

/// Close a study before anyone has released
///
/// Nothing more happens to a study that is closed; it stays readable. After the first release a
/// study cannot be closed.
#[utoipa::path(post, path = "/api/v1/studies/{study}/closing", tag = "studies", request_body = Close, security(("coordinator" = [])), params(("study" = String, Path, description = "The study id")), responses(
    (status = 201, description = "Closed", body = Closing),
    (status = 200, description = "It was closed before", body = Closing),
    (status = 400, description = "The body is not JSON", body = ProblemBody, content_type = "application/problem+json"),
    (status = 401, description = "No coordinator's token", body = ProblemBody, content_type = "application/problem+json"),
    (status = 404, description = "There is no such study", body = ProblemBody, content_type = "application/problem+json"),
    (status = 409, description = "A party has released, an open study extends this one, or it is another coordinator's", body = ProblemBody, content_type = "application/problem+json"),
    (status = 413, description = "The body is too large", body = ProblemBody, content_type = "application/problem+json"),
    (status = 415, description = "The body is not declared as JSON", body = ProblemBody, content_type = "application/problem+json"),
    (status = 422, description = "The reason is too long, or not one line", body = ProblemBody, content_type = "application/problem+json"),
))]
pub(super) async fn close(
    State(app): State<Shared>,
    Path(study): Path<String>,
    bearer: Bearer,
    body: Result<Body<Close>, Problem>,
) -> Result<(StatusCode, Json<Closing>), Problem> {
    let coordinator = bearer.coordinator(&app).await?;
    find(&app, &study).await?;
    let Body(Close { reason }) = body?;
    let id = study.clone();
    let outcome = app.blocking(move |app| app.store.close_study(&coordinator, &id, reason.trim())).await?;
    let closing = find(&app, &study).await?.closed.clone();
    let closing = closing.ok_or_else(|| Error::damaged("a study that was closed is open"))?;
    let status = match outcome {
        Closure::New => StatusCode::CREATED,
        Closure::Before => StatusCode::OK,
    };
    Ok((status, Json(closing)))
}

/// The sealed study, as its parties accept it
#[utoipa::path(get, path = "/api/v1/studies/{study}/study.toml", tag = "studies", params(("study" = String, Path, description = "The study id")), responses(
    (status = 200, description = "The study, in TOML", body = String, content_type = "application/toml"),
    (status = 404, description = "There is no such study", body = ProblemBody, content_type = "application/problem+json"),
))]
pub(super) async fn text(
    State(app): State<Shared>,
    Path(study): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let record = find(&app, &study).await?;
    Ok(answer_bytes(&headers, "application/toml", "study.toml", record.study.id(), record.text.as_bytes()))
}

/// Events of a study, in order
#[utoipa::path(get, path = "/api/v1/studies/{study}/events", tag = "studies", params(("study" = String, Path, description = "The study id"), Page), responses(
    (status = 200, description = "A page of events", body = EventPage),
    (status = 400, description = "Wrong limit", body = ProblemBody, content_type = "application/problem+json"),
    (status = 404, description = "There is no such study", body = ProblemBody, content_type = "application/problem+json"),
))]
pub(super) async fn events(
    State(app): State<Shared>,
    Path(study): Path<String>,
    Query(page): Query<Page>,
) -> Result<Json<EventPage>, Problem> {
    let limit = page.limit()?;
    let after = page.after.unwrap_or(0);
    let record = find(&app, &study).await?;
    let events = app.blocking(move |app| app.store.events(&study, after, limit)).await?;
    let next = events.last().map(|event| event.sequence).filter(|&last| last < record.events);
    Ok(Json(EventPage { events, next }))
}

/// The whole log of a study, for `potluck verify`
#[utoipa::path(get, path = "/api/v1/studies/{study}/events.jsonl", tag = "studies", params(("study" = String, Path, description = "The study id")), responses(
    (status = 200, description = "One event a line", body = String, content_type = "application/jsonl"),
    (status = 404, description = "There is no such study", body = ProblemBody, content_type = "application/problem+json"),
))]
pub(super) async fn log(
    State(app): State<Shared>,
    Path(study): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    find(&app, &study).await?;
    let lines = app.blocking(move |app| app.store.event_lines(&study, 0, u64::MAX)).await?;
    let head = lines.last().and_then(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let head = head.and_then(|event| event["hash"].as_str().map(str::to_owned)).unwrap_or_default();
    Ok(answer_bytes(&headers, "application/jsonl", "events.jsonl", &head, lines.concat().as_bytes())
        .into_response())
}
