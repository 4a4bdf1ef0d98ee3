//! Signing in and out, for coordinators.

use axum::extract::{Query, State};
use axum::http::header::{CACHE_CONTROL, LOCATION, SET_COOKIE};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};
use serde::Deserialize;

use super::layout::{Page, Place};
use super::parts::alarm;
use super::visitor::{Fields, Visitor, cookie_name};
use crate::api::problem::Problem;
use crate::app::Shared;

/// Where to go after signing in.
#[derive(Deserialize)]
pub(super) struct Next {
    next: Option<String>,
}

/// The form.
pub(super) async fn form(visitor: Visitor, Query(next): Query<Next>) -> Response {
    answer(&visitor, next.next.as_deref(), false)
}

fn answer(visitor: &Visitor, next: Option<&str>, failed: bool) -> Response {
    let body = html! {
        div .narrow {
            h1 { "Sign in" }
            p .lead { "For coordinators: those who set up studies and invite parties. Reading needs no account." }
            @if failed { (alarm("That did not work.", "Check the token and try again.")) }
            (token_form(next))
            p .aside { "Whoever runs the hub makes a token with " code { "potluck hub coordinator add NAME" } ". A session lasts twelve hours." }
        }
    };
    let status = if failed { StatusCode::FORBIDDEN } else { StatusCode::OK };
    Page { title: "Sign in", visitor, place: Place::SignIn, body }.answer(status)
}

fn token_form(next: Option<&str>) -> Markup {
    html! {
        form .card method="post" action="/sign-in" {
            @if let Some(next) = next { input type="hidden" name="next" value=(next); }
            // Password managers keep a secret under a name.
            input type="text" name="name" value="coordinator" autocomplete="username" hidden;
            div .field {
                label for="token" { "Token" }
                input #token type="password" name="token" required autocomplete="current-password" spellcheck="false" autofocus;
            }
            button type="submit" { "Sign in" }
        }
    }
}

/// Signs in.
pub(super) async fn sign_in(
    State(app): State<Shared>,
    visitor: Visitor,
    fields: Fields,
) -> Result<Response, Problem> {
    let token = fields.get("token").unwrap_or_default().trim().to_owned();
    let session = app
        .blocking(move |app| match app.store.coordinator(&token)? {
            Some(coordinator) => app.store.sign_in(&coordinator).map(Some),
            None => Ok(None),
        })
        .await?;
    let next = fields.get("next");
    let Some(session) = session else { return Ok(answer(&visitor, next, true)) };
    let target = next.filter(|next| is_here(next)).unwrap_or("/studies");
    Ok(go(&app, target, session.reveal(), None))
}

/// Signs out.
pub(super) async fn sign_out(
    State(app): State<Shared>,
    visitor: Visitor,
    fields: Fields,
) -> Result<Response, Problem> {
    visitor.session_of(&fields)?;
    if let Some(token) = visitor.token.clone() {
        app.blocking(move |app| app.store.sign_out(&token)).await?;
    }
    Ok(go(&app, "/studies", "", Some(0)))
}

/// Goes on to a page of the hub with a cookie set or, with an age of 0, removed.
fn go(app: &Shared, target: &str, value: &str, age: Option<u32>) -> Response {
    let secure = if app.config.is_https() { "; Secure" } else { "" };
    let age = age.map_or(String::new(), |age| format!("; Max-Age={age}"));
    let cookie = format!("{}={value}; Path=/; HttpOnly; SameSite=Strict{secure}{age}", cookie_name(app));
    let mut response = StatusCode::SEE_OTHER.into_response();
    let mut set = |name: HeaderName, value: &str| {
        // A target that no header can hold leads to the list of studies instead.
        let value = HeaderValue::from_str(value).unwrap_or(HeaderValue::from_static("/studies"));
        response.headers_mut().insert(name, value);
    };
    set(LOCATION, target);
    set(SET_COOKIE, &cookie);
    set(CACHE_CONTROL, "no-store");
    response
}

/// Whether an address leads to a page of this hub and nowhere else.
fn is_here(address: &str) -> bool {
    address.starts_with('/')
        && !address.starts_with("//")
        && address.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_pages_of_this_hub_are_gone_to() {
        for address in ["/studies/new", "/studies/abc/explore?label=x&feature=y"] {
            assert!(is_here(address), "{address}");
        }
        for address in [
            "//evil.example",
            "/\\evil.example",
            "https://evil.example",
            "",
            "studies",
            "/a\r\nSet-Cookie: x",
        ] {
            assert!(!is_here(address), "{address}");
        }
    }
}
