//! Uploads of releases: in one piece or several, taken up again where they broke off.

use std::io;
use std::path::{Path as FilePath, PathBuf};
use std::time::Duration;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::StatusCode;
use futures_util::StreamExt;
use potluck_release::exchange::{Problem as ProblemBody, UploadState};
use serde::Deserialize;
use tokio::fs::{self, OpenOptions};
use tokio::io::AsyncWriteExt;
use tokio::time::{Instant, timeout_at};
use utoipa::IntoParams;

use super::auth::Bearer;
use super::problem::Problem;
use super::studies::find;
use super::{Path, Query};
use crate::Error;
use crate::app::Shared;
use crate::store::{Publication, Refusal, StudyRecord, largest_release, published_before};

/// An upload may take this long and a second for so many bytes: whoever is slower does not hold the
/// party's place.
const PATIENCE: Duration = Duration::from_secs(60);
const BYTES_A_SECOND: u64 = 10_000;

/// Which file is uploaded.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct Asked {
    /// SHA-256 of the whole file, in hexadecimal.
    #[param(pattern = "^[0-9a-f]{64}$")]
    sha256: String,
}

/// Which part of which file is uploaded.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct Part {
    /// SHA-256 of the whole file, in hexadecimal.
    #[param(pattern = "^[0-9a-f]{64}$")]
    sha256: String,
    /// Where in the file the body begins: where the last upload broke off. Without it the upload
    /// begins anew.
    offset: Option<u64>,
    /// Length of the whole file. Without it the file ends with the body.
    size: Option<u64>,
}

/// How far an upload has come
#[utoipa::path(get, path = "/api/v1/studies/{study}/parties/{party}/upload", tag = "files", security(("party" = [])), params(("study" = String, Path, description = "The study id"), ("party" = String, Path, description = "The party"), Asked), responses(
    (status = 200, description = "What has arrived", body = UploadState),
    (status = 400, description = "The hash is missing or malformed", body = ProblemBody, content_type = "application/problem+json"),
    (status = 401, description = "The token invites to nothing here", body = ProblemBody, content_type = "application/problem+json"),
    (status = 403, description = "The token is another party's", body = ProblemBody, content_type = "application/problem+json"),
    (status = 404, description = "There is no such study or party", body = ProblemBody, content_type = "application/problem+json"),
    (status = 409, description = "Other bytes are public, or the party has not accepted", body = ProblemBody, content_type = "application/problem+json"),
))]
pub(super) async fn state(
    State(app): State<Shared>,
    Path((study, party)): Path<(String, String)>,
    bearer: Bearer,
    asked: Result<Query<Asked>, Problem>,
) -> Result<Json<UploadState>, Problem> {
    let record = find(&app, &study).await?;
    bearer.party(&app, &study, &party).await?;
    let Query(Asked { sha256 }) = asked?;
    check_hash(&sha256)?;
    if published_before(&record, &party, &sha256)?.is_some() {
        return Ok(Json(complete(&record, &party)));
    }
    let received = length(&incoming(&app, &record, &party, &sha256)).await?;
    Ok(Json(UploadState { received, complete: false }))
}

/// Upload a release
///
/// The whole file, or the part of it from `offset` on. When the last byte has arrived, the release
/// is checked and published. The same bytes again are fine; other bytes are refused, since fresh
/// noise is a fresh release.
#[utoipa::path(put, path = "/api/v1/studies/{study}/parties/{party}/release", tag = "files", security(("party" = [])), request_body(content = Vec<u8>, content_type = "application/octet-stream"), params(("study" = String, Path, description = "The study id"), ("party" = String, Path, description = "The party"), Part), responses(
    (status = 201, description = "The release is public", body = UploadState),
    (status = 200, description = "The same bytes were public before", body = UploadState),
    (status = 202, description = "More bytes are needed", body = UploadState),
    (status = 400, description = "A parameter is missing or malformed, or the body is longer than was said", body = ProblemBody, content_type = "application/problem+json"),
    (status = 401, description = "The token invites to nothing here", body = ProblemBody, content_type = "application/problem+json"),
    (status = 403, description = "The token is another party's", body = ProblemBody, content_type = "application/problem+json"),
    (status = 404, description = "There is no such study or party", body = ProblemBody, content_type = "application/problem+json"),
    (status = 408, description = "The body came too slowly or broke off; what arrived is kept", body = ProblemBody, content_type = "application/problem+json"),
    (status = 409, description = "Other bytes are public, or the offset is not where the last upload ended, or another upload is under way", body = ProblemBody, content_type = "application/problem+json"),
    (status = 413, description = "Larger than a release of this study can be", body = ProblemBody, content_type = "application/problem+json"),
    (status = 422, description = "The release is refused, and nothing is stored", body = ProblemBody, content_type = "application/problem+json"),
))]
pub(super) async fn release(
    State(app): State<Shared>,
    Path((study, party)): Path<(String, String)>,
    bearer: Bearer,
    part: Result<Query<Part>, Problem>,
    headers: axum::http::HeaderMap,
    body: Body,
) -> Result<(StatusCode, Json<UploadState>), Problem> {
    let record = find(&app, &study).await?;
    bearer.party(&app, &study, &party).await?;
    let Query(part) = part?;
    check_hash(&part.sha256)?;
    if let Some(Publication::Same) = published_before(&record, &party, &part.sha256)? {
        return Ok((StatusCode::OK, Json(complete(&record, &party))));
    }
    let length = headers.get("content-length").and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    let size = size(&record, &party, &part, length)?;
    let Some(slot) = app.upload_slot(&study, &party) else {
        return Err(Problem::later(
            StatusCode::CONFLICT,
            2,
            format!("another upload of {party} is under way; try again in a moment"),
        ));
    };
    // Whoever held the place until now may have published.
    let record = find(&app, &study).await?;
    if let Some(Publication::Same) = published_before(&record, &party, &part.sha256)? {
        return Ok((StatusCode::OK, Json(complete(&record, &party))));
    }
    let path = incoming(&app, &record, &party, &part.sha256);
    remove_others(&app, &record, &party, &path).await?;
    let received = receive(&app, &path, part.offset, size, body).await?;
    if received < size {
        return Ok((StatusCode::ACCEPTED, Json(UploadState { received, complete: false })));
    }
    let publication = app
        .blocking(move |app| {
            // The place is taken until this is done, even if whoever uploads goes away.
            let _slot = slot;
            // From here on no other request can reach the file.
            let complete = path.with_extension("complete");
            std::fs::rename(&path, &complete).map_err(Error::file(&path))?;
            let publication = app.store.publish_release(&study, &party, &complete, &part.sha256);
            // What was published has been moved to its place; whatever else is not kept.
            let _ = std::fs::remove_file(&complete);
            publication
        })
        .await?;
    let status = match publication {
        Publication::New => StatusCode::CREATED,
        Publication::Same => StatusCode::OK,
    };
    Ok((status, Json(UploadState { received: size, complete: true })))
}

fn complete(record: &StudyRecord, party: &str) -> UploadState {
    let file = record.own_party(party).and_then(|state| state.release.as_ref());
    UploadState { received: file.map_or(0, |file| file.size), complete: true }
}

fn check_hash(sha256: &str) -> Result<(), Problem> {
    if sha256.len() == 64 && sha256.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) {
        return Ok(());
    }
    Err(Problem::new(
        StatusCode::BAD_REQUEST,
        "sha256 is the file's SHA-256: 64 hexadecimal digits in lower case",
    ))
}

/// The length of the whole file, if it is one that a release of the party can have.
fn size(record: &StudyRecord, party: &str, part: &Part, length: Option<u64>) -> Result<u64, Problem> {
    let bad = |detail: &str| Err(Problem::new(StatusCode::BAD_REQUEST, detail));
    let offset = part.offset.unwrap_or(0);
    let end = length.and_then(|length| offset.checked_add(length));
    let Some(size) = part.size.or(end) else {
        return bad("say how long the file is: size=BYTES, or the header Content-Length");
    };
    if offset > size || end.is_some_and(|end| end > size) {
        return bad("the body is longer than the file is said to be");
    }
    let most =
        largest_release(&record.study, party).map_err(|error| Refusal::Unacceptable(error.to_string()))?;
    if size > most {
        return Err(Problem::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            format!("a release of {party} in this study has at most {most} bytes"),
        ));
    }
    Ok(size)
}

/// Where the bytes of an upload are put together.
fn incoming(app: &Shared, record: &StudyRecord, party: &str, sha256: &str) -> PathBuf {
    app.store.incoming().join(format!("{}{sha256}.part", prefix(record, party)))
}

/// What the names of a party's uploads begin with: never what somebody sent.
fn prefix(record: &StudyRecord, party: &str) -> String {
    let position = record.parties.iter().position(|state| state.name == party).unwrap_or(usize::MAX);
    format!("{}-{position}-", record.study.id())
}

/// Removes what is left of other files that the party began to upload.
async fn remove_others(
    app: &Shared,
    record: &StudyRecord,
    party: &str,
    keep: &FilePath,
) -> Result<(), Problem> {
    let folder = app.store.incoming();
    let prefix = prefix(record, party);
    let mut entries = fs::read_dir(&folder).await.map_err(Error::file(&folder))?;
    while let Some(entry) = entries.next_entry().await.map_err(Error::file(&folder))? {
        if entry.file_name().to_string_lossy().starts_with(&prefix) && entry.path() != keep {
            fs::remove_file(entry.path()).await.map_err(Error::file(&entry.path()))?;
        }
    }
    Ok(())
}

async fn length(path: &FilePath) -> Result<u64, Problem> {
    match fs::metadata(path).await {
        Ok(metadata) => Ok(metadata.len()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
        Err(error) => Err(Error::file(path)(error).into()),
    }
}

/// Appends a body to the file, and says how long the file is then. What arrived before a connection
/// broke is kept.
async fn receive(
    app: &Shared,
    path: &FilePath,
    offset: Option<u64>,
    size: u64,
    body: Body,
) -> Result<u64, Problem> {
    let mut received = length(path).await?;
    let failed = |error| Problem::from(Error::file(path)(error));
    let mut file = OpenOptions::new().create(true).append(true).open(path).await.map_err(failed)?;
    match offset {
        None => {
            file.set_len(0).await.map_err(failed)?;
            received = 0;
        }
        Some(offset) if offset != received => return Err(Problem::resume_at(received)),
        Some(_) => {}
    }
    let deadline = Instant::now() + PATIENCE + Duration::from_secs(size / BYTES_A_SECOND);
    let mut stream = body.into_data_stream();
    loop {
        let Ok(next) = timeout_at(deadline, stream.next()).await else {
            return broken(file, received).await;
        };
        let Some(piece) = next else { break };
        let Ok(piece) = piece else { return broken(file, received).await };
        if received + piece.len() as u64 > size {
            return Err(Problem::new(
                StatusCode::BAD_REQUEST,
                "the body is longer than the file is said to be",
            ));
        }
        file.write_all(&piece).await.map_err(failed)?;
        received += piece.len() as u64;
        app.metrics.uploaded_bytes.inc_by(piece.len() as u64);
    }
    file.flush().await.map_err(failed)?;
    Ok(received)
}

/// The body broke off: what arrived stays for the next try.
async fn broken(mut file: fs::File, received: u64) -> Result<u64, Problem> {
    // If it cannot be written, the next try begins a little earlier.
    let _ = file.flush().await;
    Err(Problem::new(
        StatusCode::REQUEST_TIMEOUT,
        format!("the body came too slowly or broke off after {received} bytes of the file; go on from there"),
    ))
}
