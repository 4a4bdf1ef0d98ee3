//! Closing a study before anyone has released.

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, HeaderValue, LOCATION};
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};
use potluck_release::exchange::Closing;

use super::parts::{secret, time};
use super::visitor::{Fields, Visitor};
use crate::api::problem::Problem;
use crate::app::Shared;
use crate::store::{Session, StudyRecord};

/// Closes a study, and shows it again.
pub(super) async fn close(
    State(app): State<Shared>,
    visitor: Visitor,
    Path(study): Path<String>,
    fields: Fields,
) -> Result<Response, Problem> {
    let coordinator = visitor.session_of(&fields)?.coordinator.clone();
    let reason = fields.get("reason").unwrap_or_default().trim().to_owned();
    let id = study.clone();
    app.blocking(move |app| app.store.close_study(&coordinator, &id, &reason)).await?;
    let mut response = StatusCode::SEE_OTHER.into_response();
    // The id is that of a study, so it is made of hexadecimal digits.
    let target = HeaderValue::from_str(&format!("/studies/{study}"));
    response.headers_mut().insert(LOCATION, target.unwrap_or(HeaderValue::from_static("/studies")));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

/// The form, where the study can still be closed.
pub(super) fn closing_form(record: &StudyRecord, session: &Session) -> Markup {
    if record.parties.iter().any(|party| party.study == record.study.id() && party.release.is_some()) {
        return html! {};
    }
    html! {
        details {
            summary { "Close this study" }
            p { "Nobody has released yet, so the study can be closed: nothing more can happen to it, and everyone can read that and why. It cannot be opened again." }
            form method="post" action={ "/studies/" (record.study.id()) "/closing" } {
                (secret(session))
                div .field {
                    label for="reason" { "Reason, for everyone to read " span .aside { "(may be left out)" } }
                    input #reason type="text" name="reason" maxlength="500" autocomplete="off";
                }
                button .quiet type="submit" { "Close it for good" }
            }
        }
    }
}

/// What everyone sees of a study that was closed.
pub(super) fn closed(closing: &Closing) -> Markup {
    html! {
        div .alarm role="note" {
            p { strong { "This study was closed " } "on " (time(&closing.time)) " by its coordinator, before anyone released. Nothing more happens to it." }
            @if !closing.reason.is_empty() { p { "The reason given: " bdi { (closing.reason) } } }
        }
    }
}
