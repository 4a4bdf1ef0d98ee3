//! Refusals and failures as pages, for those who use a browser.

use axum::extract::{Request, State};
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::middleware::Next;
use axum::response::Response;
use maud::html;
use potluck_release::exchange;

use super::layout::{Page, Place};
use super::visitor::Visitor;
use crate::app::Shared;

/// Turns every refusal outside the API into a page.
pub(crate) async fn as_pages(State(app): State<Shared>, request: Request, next: Next) -> Response {
    if is_for_programs(request.uri()) {
        return next.run(request).await;
    }
    let (headers, uri) = (request.headers().clone(), request.uri().clone());
    let response = next.run(request).await;
    let status = response.status();
    let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    if !(status.is_client_error() || status.is_server_error()) || kind.starts_with("text/html") {
        return response;
    }
    let (mut parts, _) = response.into_parts();
    let detail = parts.extensions.remove::<exchange::Problem>().map(|problem| problem.detail);
    let mut page = page(&app, &headers, &uri, status, detail.as_deref()).await;
    if let Some(wait) = parts.headers.remove(RETRY_AFTER) {
        page.headers_mut().insert(RETRY_AFTER, wait);
    }
    page
}

fn is_for_programs(uri: &Uri) -> bool {
    uri.path().starts_with("/api/") || ["/openapi.json", "/healthz", "/metrics"].contains(&uri.path())
}

async fn page(
    app: &Shared,
    headers: &HeaderMap,
    uri: &Uri,
    status: StatusCode,
    detail: Option<&str>,
) -> Response {
    // Whoever asks too often, or asks a hub that failed, must not make it work for the page that
    // says so.
    let headers = if status.is_client_error() && status != StatusCode::TOO_MANY_REQUESTS {
        headers
    } else {
        &HeaderMap::new()
    };
    let visitor = match Visitor::of(app, headers, uri).await {
        Ok(visitor) => visitor,
        Err(_) => {
            Visitor { hub: app.config.name.clone(), address: String::new(), session: None, token: None }
        }
    };
    let (title, advice) = words(status);
    let body = html! {
        div .narrow .failure {
            p .code aria-hidden="true" { (status.as_u16()) }
            h1 { (title) }
            @if let Some(detail) = detail { p .lead { (sentence(detail)) } }
            p { (advice) }
            p { a .button href="/studies" { "All studies" } }
        }
    };
    Page { title, visitor: &visitor, place: Place::Elsewhere, body }.answer(status)
}

/// What happened, and what to do about it.
fn words(status: StatusCode) -> (&'static str, &'static str) {
    match status {
        StatusCode::NOT_FOUND => {
            ("There is nothing here", "The address may be mistyped, or from another hub.")
        }
        StatusCode::METHOD_NOT_ALLOWED => (
            "That does not work here",
            "This address cannot be used in that way; follow the links of the pages.",
        ),
        StatusCode::PAYLOAD_TOO_LARGE => ("That is too much", "Send less: a form holds up to one megabyte."),
        StatusCode::FORBIDDEN => ("That is not allowed", "Nothing was changed."),
        StatusCode::CONFLICT => ("That does not fit", "Nothing was changed."),
        StatusCode::TOO_MANY_REQUESTS => ("Slow down, please", "Wait a moment, then load the page again."),
        status if status.is_server_error() => ("The hub failed", "Nothing was lost. Try again in a while."),
        _ => ("That cannot be done", "Check what was sent, and try again."),
    }
}

/// The detail with a capital and a full stop.
pub(super) fn sentence(detail: &str) -> String {
    let mut letters = detail.chars();
    let first: String = letters.next().into_iter().flat_map(char::to_uppercase).collect();
    let end = if detail.ends_with(['.', '?', '!']) { "" } else { "." };
    format!("{first}{}{end}", letters.as_str())
}
