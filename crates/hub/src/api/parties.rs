//! Inviting parties and accepting invitations.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use potluck_release::events::{Acceptance, Withdrawal};
use potluck_release::exchange::{Invitation, Invited, Problem as ProblemBody};
use serde::Deserialize;
use utoipa::IntoParams;

use super::auth::Bearer;
use super::problem::Problem;
use super::studies::find;
use super::{Body, Path, Query};
use crate::app::Shared;
use crate::store::{self, Store, Undoing};

/// What becomes of a key that the party has registered.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct Anew {
    /// Whether to undo an acceptance that stands: the party can then accept with another key.
    #[serde(default)]
    undo_acceptance: bool,
}

/// Whose invitation a token is
#[utoipa::path(get, path = "/api/v1/studies/{study}/invitation", tag = "parties", security(("party" = [])), params(("study" = String, Path, description = "The study id")), responses(
    (status = 200, description = "The party that the token invites", body = Invited),
    (status = 401, description = "The token invites to nothing here", body = ProblemBody, content_type = "application/problem+json"),
    (status = 404, description = "There is no such study", body = ProblemBody, content_type = "application/problem+json"),
))]
pub(super) async fn invitation(
    State(app): State<Shared>,
    Path(study): Path<String>,
    bearer: Bearer,
) -> Result<Json<Invited>, Problem> {
    let record = find(&app, &study).await?;
    let party = bearer.invited(&app, &study).await?;
    let state = record.own_party(&party);
    Ok(Json(Invited {
        accepted: state.is_some_and(|state| state.accepted.is_some()),
        released: state.is_some_and(|state| state.release.is_some()),
        party,
    }))
}

/// Invite a party anew
///
/// The invitation before it is void. A party that has accepted keeps the key that it registered,
/// unless `undo_acceptance` says otherwise; one that has released cannot be invited again.
#[utoipa::path(post, path = "/api/v1/studies/{study}/parties/{party}/invitation", tag = "parties", security(("coordinator" = [])), params(("study" = String, Path, description = "The study id"), ("party" = String, Path, description = "The party"), Anew), responses(
    (status = 201, description = "The new invitation, shown once", body = Invitation),
    (status = 400, description = "A parameter is malformed", body = ProblemBody, content_type = "application/problem+json"),
    (status = 401, description = "No coordinator's token", body = ProblemBody, content_type = "application/problem+json"),
    (status = 404, description = "There is no such study or party", body = ProblemBody, content_type = "application/problem+json"),
    (status = 409, description = "The party has released, there is nothing to undo, or the study is closed or another coordinator's", body = ProblemBody, content_type = "application/problem+json"),
))]
pub(super) async fn invite(
    State(app): State<Shared>,
    Path((study, party)): Path<(String, String)>,
    bearer: Bearer,
    anew: Result<Query<Anew>, Problem>,
) -> Result<(StatusCode, Json<Invitation>), Problem> {
    let coordinator = bearer.coordinator(&app).await?;
    let Query(anew) = anew?;
    let name = party.clone();
    let issue = if anew.undo_acceptance { Store::revoke } else { Store::invite };
    let token = app.blocking(move |app| issue(&app.store, &coordinator, &study, &name)).await?;
    Ok((StatusCode::CREATED, Json(Invitation { party, token: token.reveal().to_owned() })))
}

/// Accept a study and register a key
#[utoipa::path(post, path = "/api/v1/studies/{study}/parties/{party}/acceptance", tag = "parties", security(("party" = [])), request_body = Acceptance, params(("study" = String, Path, description = "The study id"), ("party" = String, Path, description = "The party")), responses(
    (status = 201, description = "Accepted", body = Acceptance),
    (status = 200, description = "The same was accepted before", body = Acceptance),
    (status = 400, description = "The body is not JSON", body = ProblemBody, content_type = "application/problem+json"),
    (status = 401, description = "The token invites to nothing here", body = ProblemBody, content_type = "application/problem+json"),
    (status = 403, description = "The token is another party's", body = ProblemBody, content_type = "application/problem+json"),
    (status = 404, description = "There is no such study or party", body = ProblemBody, content_type = "application/problem+json"),
    (status = 409, description = "Another key is registered, or the study is closed", body = ProblemBody, content_type = "application/problem+json"),
    (status = 415, description = "The body is not declared as JSON", body = ProblemBody, content_type = "application/problem+json"),
    (status = 422, description = "Not signed by the key, or of another study", body = ProblemBody, content_type = "application/problem+json"),
))]
pub(super) async fn accept(
    State(app): State<Shared>,
    Path((study, party)): Path<(String, String)>,
    bearer: Bearer,
    body: Result<Body<Acceptance>, Problem>,
) -> Result<(StatusCode, Json<Acceptance>), Problem> {
    find(&app, &study).await?;
    bearer.party(&app, &study, &party).await?;
    let Body(acceptance) = body?;
    let said = acceptance.clone();
    let outcome = app.blocking(move |app| app.store.accept(&study, &party, &said)).await?;
    let status = match outcome {
        store::Acceptance::New => StatusCode::CREATED,
        store::Acceptance::Same => StatusCode::OK,
    };
    Ok((status, Json(acceptance)))
}

/// Take an acceptance back, before the release
///
/// Signed with the key that was registered. Afterwards the party can accept with another key and
/// the same invitation.
#[utoipa::path(post, path = "/api/v1/studies/{study}/parties/{party}/withdrawal", tag = "parties", security(("party" = [])), request_body = Withdrawal, params(("study" = String, Path, description = "The study id"), ("party" = String, Path, description = "The party")), responses(
    (status = 201, description = "The acceptance counts no more", body = Withdrawal),
    (status = 200, description = "The same was withdrawn before", body = Withdrawal),
    (status = 400, description = "The body is not JSON", body = ProblemBody, content_type = "application/problem+json"),
    (status = 401, description = "The token invites to nothing here", body = ProblemBody, content_type = "application/problem+json"),
    (status = 403, description = "The token is another party's", body = ProblemBody, content_type = "application/problem+json"),
    (status = 404, description = "There is no such study or party", body = ProblemBody, content_type = "application/problem+json"),
    (status = 409, description = "The party has released, no such acceptance stands, or the study is closed", body = ProblemBody, content_type = "application/problem+json"),
    (status = 413, description = "The body is too large", body = ProblemBody, content_type = "application/problem+json"),
    (status = 415, description = "The body is not declared as JSON", body = ProblemBody, content_type = "application/problem+json"),
    (status = 422, description = "Not signed by the key that was registered, or of another study", body = ProblemBody, content_type = "application/problem+json"),
))]
pub(super) async fn withdraw(
    State(app): State<Shared>,
    Path((study, party)): Path<(String, String)>,
    bearer: Bearer,
    body: Result<Body<Withdrawal>, Problem>,
) -> Result<(StatusCode, Json<Withdrawal>), Problem> {
    find(&app, &study).await?;
    bearer.party(&app, &study, &party).await?;
    let Body(withdrawal) = body?;
    let said = withdrawal.clone();
    let outcome = app.blocking(move |app| app.store.withdraw(&study, &party, &said)).await?;
    let status = match outcome {
        Undoing::New => StatusCode::CREATED,
        Undoing::Same => StatusCode::OK,
    };
    Ok((status, Json(withdrawal)))
}
