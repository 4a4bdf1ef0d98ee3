//! Published files, with entity tags and ranges.

use std::ops::Range;

use axum::body::Body;
use axum::extract::State;
use axum::http::header::{
    ACCEPT_RANGES, CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG,
    IF_NONE_MATCH, IF_RANGE, RANGE,
};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use potluck_release::exchange::{Problem as ProblemBody, PublishedFile};
use tokio::fs::File;
use tokio::io::{AsyncReadExt, AsyncSeekExt};
use tokio_util::io::ReaderStream;

use super::Path;
use super::problem::Problem;
use super::studies::find;
use crate::Error;
use crate::app::Shared;
use crate::store::Refusal;

const PARQUET: &str = "application/vnd.apache.parquet";
/// Bytes read from a file at a time.
const PIECE: usize = 1 << 16;

/// A party's release
#[utoipa::path(get, path = "/api/v1/studies/{study}/parties/{party}/release", tag = "files", params(("study" = String, Path, description = "The study id"), ("party" = String, Path, description = "The party")), responses(
    (status = 200, description = "The file", body = Vec<u8>, content_type = "application/vnd.apache.parquet"),
    (status = 206, description = "The part that was asked for", body = Vec<u8>, content_type = "application/vnd.apache.parquet"),
    (status = 304, description = "You have it"),
    (status = 404, description = "There is no such study, party or release", body = ProblemBody, content_type = "application/problem+json"),
    (status = 416, description = "The file has no such part", body = ProblemBody, content_type = "application/problem+json"),
))]
pub(super) async fn release(
    State(app): State<Shared>,
    Path((study, party)): Path<(String, String)>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let record = find(&app, &study).await?;
    let state = record.party(&party).ok_or_else(|| Refusal::no_party(&party))?;
    let file =
        state.release.as_ref().ok_or_else(|| Refusal::NotFound(format!("{party} has not released yet")))?;
    send(&app, &headers, file, &format!("{party}.release.parquet")).await
}

/// The public dataset of a study
#[utoipa::path(get, path = "/api/v1/studies/{study}/dataset", tag = "files", params(("study" = String, Path, description = "The study id")), responses(
    (status = 200, description = "The file", body = Vec<u8>, content_type = "application/vnd.apache.parquet"),
    (status = 206, description = "The part that was asked for", body = Vec<u8>, content_type = "application/vnd.apache.parquet"),
    (status = 304, description = "You have it"),
    (status = 404, description = "There is no such study, or no public dataset yet", body = ProblemBody, content_type = "application/problem+json"),
    (status = 416, description = "The file has no such part", body = ProblemBody, content_type = "application/problem+json"),
))]
pub(super) async fn dataset(
    State(app): State<Shared>,
    Path(study): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let record = find(&app, &study).await?;
    let dataset = record.dataset.as_ref().ok_or_else(|| {
        Refusal::NotFound(
            "the study has no public dataset yet; it appears when its parties have released".to_owned(),
        )
    })?;
    send(&app, &headers, &dataset.file, &format!("{}.parquet", record.study.definition().name())).await
}

/// Sends a stored file, or the part of it that was asked for.
async fn send(
    app: &Shared,
    headers: &HeaderMap,
    file: &PublishedFile,
    name: &str,
) -> Result<Response, Problem> {
    let part = match select(headers, &file.sha256, file.size) {
        Selection::Part(part) => part,
        other => return Ok(describe(other, &file.sha256, file.size, PARQUET, name, Body::empty())),
    };
    let path = app.store.object(&file.sha256);
    let failed = |error| Problem::from(Error::file(&path)(error));
    let mut opened = File::open(&path).await.map_err(failed)?;
    opened.seek(std::io::SeekFrom::Start(part.start)).await.map_err(failed)?;
    let stream = ReaderStream::with_capacity(opened.take(part.end - part.start), PIECE);
    Ok(describe(Selection::Part(part), &file.sha256, file.size, PARQUET, name, Body::from_stream(stream)))
}

/// Answers with bytes in memory, or the part of them that was asked for.
pub(super) fn answer_bytes(
    headers: &HeaderMap,
    kind: &'static str,
    name: &str,
    tag: &str,
    bytes: &[u8],
) -> Response {
    let size = bytes.len() as u64;
    let selection = select(headers, tag, size);
    let body = match &selection {
        Selection::Part(part) => Body::from(bytes[part.start as usize..part.end as usize].to_vec()),
        _ => Body::empty(),
    };
    describe(selection, tag, size, kind, name, body)
}

/// What a request asks for of a file.
#[derive(Debug, PartialEq)]
enum Selection {
    /// These bytes.
    Part(Range<u64>),
    /// Nothing: whoever asks has it.
    Known,
    /// What the file does not have.
    Outside,
}

/// Reads the conditions and the range of a request for a file with this tag and size.
fn select(headers: &HeaderMap, tag: &str, size: u64) -> Selection {
    let text = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    let tag = format!("\"{tag}\"");
    let names = |one: &str| one.trim() == "*" || one.trim().trim_start_matches("W/") == tag;
    if text(IF_NONE_MATCH).is_some_and(|known| known.split(',').any(names)) {
        return Selection::Known;
    }
    let whole = Selection::Part(0..size);
    if text(IF_RANGE).is_some_and(|condition| condition != tag) {
        return whole;
    }
    let Some(range) = text(RANGE).and_then(|range| range.strip_prefix("bytes=")) else { return whole };
    let Some((first, last)) = range.split_once('-').filter(|_| !range.contains(',')) else { return whole };
    let number = |text: &str| text.trim().parse::<u64>().ok();
    let range = match (number(first), number(last)) {
        (Some(first), Some(last)) if first <= last => first..last.saturating_add(1).min(size),
        (Some(first), None) if last.trim().is_empty() => first..size,
        (None, Some(count)) if first.trim().is_empty() && count > 0 => size.saturating_sub(count)..size,
        (None, Some(0)) if first.trim().is_empty() => return Selection::Outside,
        _ => return whole,
    };
    if range.start < range.end { Selection::Part(range) } else { Selection::Outside }
}

/// The answer with its headers.
fn describe(
    selection: Selection,
    tag: &str,
    size: u64,
    kind: &'static str,
    name: &str,
    body: Body,
) -> Response {
    let mut response = match &selection {
        Selection::Part(part) if *part == (0..size) => body.into_response(),
        Selection::Part(_) => (StatusCode::PARTIAL_CONTENT, body).into_response(),
        Selection::Known => StatusCode::NOT_MODIFIED.into_response(),
        Selection::Outside => {
            Problem::new(StatusCode::RANGE_NOT_SATISFIABLE, format!("the file has {size} bytes"))
                .into_response()
        }
    };
    let headers = response.headers_mut();
    let mut set = |name, value: String| {
        if let Ok(value) = HeaderValue::try_from(value) {
            headers.insert(name, value);
        }
    };
    set(ETAG, format!("\"{tag}\""));
    set(ACCEPT_RANGES, "bytes".to_owned());
    // What is behind an address may change while parties release; whoever has a copy asks whether
    // it is the latest.
    set(CACHE_CONTROL, "public, no-cache".to_owned());
    match selection {
        Selection::Part(part) => {
            set(CONTENT_TYPE, kind.to_owned());
            set(CONTENT_LENGTH, (part.end - part.start).to_string());
            set(CONTENT_DISPOSITION, format!("attachment; filename=\"{}\"", plain(name)));
            if part != (0..size) {
                set(CONTENT_RANGE, format!("bytes {}-{}/{size}", part.start, part.end - 1));
            }
        }
        Selection::Outside => set(CONTENT_RANGE, format!("bytes */{size}")),
        Selection::Known => {}
    }
    response
}

/// A file name without what headers or file systems could misread.
fn plain(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_') { c } else { '_' };
    name.chars().map(plain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(pairs: &[(&'static str, &str)]) -> Selection {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.insert(*name, value.parse().expect("a header value"));
        }
        select(&headers, "tag", 100)
    }

    #[test]
    fn ranges_select_bytes() {
        for (range, expected) in [
            ("bytes=0-", 0..100),
            ("bytes=10-19", 10..20),
            ("bytes=99-99", 99..100),
            ("bytes=90-1000", 90..100),
            ("bytes=90-18446744073709551615", 90..100),
            ("bytes=-7", 93..100),
            ("bytes=-1000", 0..100),
            // What is not understood is ignored.
            ("bytes=5-4", 0..100),
            ("bytes=a-b", 0..100),
            ("bytes=0-1,5-6", 0..100),
            ("lines=0-1", 0..100),
        ] {
            assert_eq!(asked(&[("range", range)]), Selection::Part(expected), "{range}");
        }
        for range in ["bytes=100-", "bytes=200-300", "bytes=-0"] {
            assert_eq!(asked(&[("range", range)]), Selection::Outside, "{range}");
        }
    }

    #[test]
    fn conditions_are_kept() {
        assert_eq!(asked(&[("if-none-match", "\"tag\"")]), Selection::Known);
        assert_eq!(asked(&[("if-none-match", "\"other\", W/\"tag\"")]), Selection::Known);
        assert_eq!(asked(&[("if-none-match", "\"other\"")]), Selection::Part(0..100));
        assert_eq!(asked(&[("range", "bytes=10-"), ("if-range", "\"tag\"")]), Selection::Part(10..100));
        assert_eq!(asked(&[("range", "bytes=10-"), ("if-range", "\"old\"")]), Selection::Part(0..100));
    }
}
