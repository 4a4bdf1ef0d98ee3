//! What all pages have in common.

use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, VARY};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use maud::{DOCTYPE, Markup, html};

use super::assets::{ICON, SCRIPT, STYLESHEET};
use super::parts::secret;
use super::visitor::Visitor;

/// Only what the hub itself serves may be loaded, run or sent to.
const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// Where a page belongs in the navigation.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Studies,
    New,
    SignIn,
    Elsewhere,
}

/// A page on its way to a browser.
pub(super) struct Page<'a> {
    /// What the window is called.
    pub(super) title: &'a str,
    /// Who looks at it.
    pub(super) visitor: &'a Visitor,
    /// Where it belongs.
    pub(super) place: Place,
    /// What is on it.
    pub(super) body: Markup,
}

impl Page<'_> {
    /// The page as an answer.
    pub(super) fn answer(self, status: StatusCode) -> Response {
        let caching = if self.visitor.session.is_some() { "private, no-cache" } else { "public, no-cache" };
        self.answer_cached(status, caching)
    }

    /// The page as an answer that nobody keeps: it shows secrets.
    pub(super) fn answer_once(self, status: StatusCode) -> Response {
        self.answer_cached(status, "no-store")
    }

    fn answer_cached(self, status: StatusCode, caching: &'static str) -> Response {
        let mut response = (status, self.document().into_string()).into_response();
        let headers = response.headers_mut();
        for (name, value) in [
            (CONTENT_TYPE, "text/html; charset=utf-8"),
            (CONTENT_SECURITY_POLICY, POLICY),
            (CACHE_CONTROL, caching),
            (VARY, "cookie"),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        response
    }

    fn document(self) -> Markup {
        let hub = &self.visitor.hub;
        html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    title { (self.title) " · " (hub) }
                    link rel="stylesheet" href=(STYLESHEET.address());
                    link rel="icon" type="image/svg+xml" href=(ICON.address());
                    script src=(SCRIPT.address()) defer {}
                }
                body .hub {
                    a .skip href="#main" { "Skip to the content" }
                    header .top {
                        div .inner {
                            a .brand href="/" { (logo()) span { (hub) } }
                            (navigation(self.visitor, self.place))
                        }
                    }
                    main #main tabindex="-1" { (self.body) }
                    footer .bottom {
                        div .inner {
                            p { "This hub holds only published things: contracts, public keys, noised releases and the log of what happened. It has never seen a row about a person." }
                            p { (potluck_release::SOFTWARE) " · " a href="/openapi.json" { "API for programs" } }
                        }
                    }
                }
            }
        }
    }
}

fn navigation(visitor: &Visitor, place: Place) -> Markup {
    let current = |one: Place| (one == place).then_some("page");
    html! {
        nav aria-label="Site" {
            ul {
                li { a href="/studies" aria-current=[current(Place::Studies)] { "Studies" } }
                @match &visitor.session {
                    Some(session) => {
                        li { a href="/studies/new" aria-current=[current(Place::New)] { "New study" } }
                        li .who {
                            form method="post" action="/sign-out" {
                                (secret(session))
                                button .quiet type="submit" { "Sign out " bdi { (session.coordinator.name) } }
                            }
                        }
                    }
                    None => li { a href="/sign-in" aria-current=[current(Place::SignIn)] { "Sign in" } },
                }
            }
        }
    }
}

/// A pot with what everybody brought to it.
fn logo() -> Markup {
    html! {
        svg .logo viewBox="0 0 32 32" width="28" height="28" aria-hidden="true" focusable="false" {
            circle .dish-a cx="10" cy="8" r="3.4" {}
            circle .dish-b cx="17" cy="5.4" r="3.4" {}
            circle .dish-c cx="23" cy="9" r="3.4" {}
            path .pot d="M4 14h24v3.5A9.5 9.5 0 0 1 18.5 27h-5A9.5 9.5 0 0 1 4 17.5z" {}
            path .handles d="M2 15.5h2M28 15.5h2" {}
        }
    }
}
