//! Who looks at a page, and what their forms say.

use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::header::{CONTENT_TYPE, COOKIE, HOST};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, Uri};
use subtle::ConstantTimeEq;

use crate::api::problem::Problem;
use crate::app::Shared;
use crate::store::Session;

/// What forms carry so that no other site can send them.
pub(super) const FORM_SECRET: &str = "form_secret";

/// Somebody who looks at a page.
pub(super) struct Visitor {
    /// The hub's name.
    pub(super) hub: String,
    /// The hub's address as they know it, without a slash at the end.
    pub(super) address: String,
    /// Who they are, if they signed in.
    pub(super) session: Option<Session>,
    /// The token of their session.
    pub(super) token: Option<String>,
}

impl FromRequestParts<Shared> for Visitor {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &Shared) -> Result<Self, Problem> {
        Self::of(app, &parts.headers, &parts.uri).await
    }
}

impl Visitor {
    /// Who sends a request with these headers.
    pub(super) async fn of(app: &Shared, headers: &HeaderMap, uri: &Uri) -> Result<Self, Problem> {
        let token = cookie(headers, cookie_name(app));
        let session = match token.clone() {
            Some(token) => app.blocking(move |app| app.store.session(&token)).await?,
            None => None,
        };
        let address = app.config.public_url.clone().unwrap_or_else(|| {
            let scheme = if app.config.is_https() { "https" } else { "http" };
            format!("{scheme}://{}", host(headers, uri).unwrap_or("localhost"))
        });
        Ok(Self { hub: app.config.name.clone(), address, session, token })
    }

    /// The session of a form, if the form carries its secret.
    pub(super) fn session_of(&self, form: &Fields) -> Result<&Session, Problem> {
        let session = self.session.as_ref().ok_or_else(|| {
            Problem::new(
                StatusCode::FORBIDDEN,
                "you are not signed in, or your session has ended; sign in and send the form again",
            )
        })?;
        let sent = form.get(FORM_SECRET).unwrap_or_default();
        if bool::from(sent.as_bytes().ct_eq(session.form_secret.as_bytes())) {
            return Ok(session);
        }
        Err(Problem::new(
            StatusCode::FORBIDDEN,
            "the form does not belong to your session; load the page again and send the form from there",
        ))
    }
}

/// The name of the cookie that holds a session's token. Browsers bind the prefix to this host and
/// to HTTPS.
pub(super) fn cookie_name(app: &Shared) -> &'static str {
    if app.config.is_https() { "__Host-potluck-session" } else { "potluck-session" }
}

fn cookie(headers: &HeaderMap, name: &str) -> Option<String> {
    let values = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = values.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(one, _)| *one == name).map(|(_, value)| value.to_owned())
}

/// The host that the request names, if it looks like one.
fn host<'a>(headers: &'a HeaderMap, uri: &'a Uri) -> Option<&'a str> {
    let named = headers.get(HOST).and_then(|host| host.to_str().ok());
    let host = named.or_else(|| uri.authority().map(axum::http::uri::Authority::as_str))?;
    let usual = |c: char| c.is_ascii_alphanumeric() || ".-:[]".contains(c);
    (!host.is_empty() && host.chars().all(usual)).then_some(host)
}

/// The fields of a form, in order. It has no `Debug`: some hold tokens.
pub(super) struct Fields(Vec<(String, String)>);

impl Fields {
    /// The first field of this name.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.iter().find(|(one, _)| *one == name).map(|(_, value)| value)
    }

    /// All fields.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    #[cfg(test)]
    pub(super) fn of(pairs: &[(&str, &str)]) -> Self {
        Self(pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
    }
}

impl FromRequest<Shared> for Fields {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &Shared) -> Result<Self, Problem> {
        let kind =
            request.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        if !kind.starts_with("application/x-www-form-urlencoded") {
            return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "send the form as the page has it"));
        }
        let body = Bytes::from_request(request, app).await?;
        // Browsers send line breaks of text areas as CR LF.
        let pairs = form_urlencoded::parse(&body)
            .map(|(name, value)| (name.into_owned(), value.replace("\r\n", "\n")))
            .collect();
        Ok(Self(pairs))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cookies_are_found_by_their_whole_name() {
        let mut headers = HeaderMap::new();
        headers
            .append(COOKIE, "a=1; potluck-session=secret; other-potluck-session=x".parse().expect("a value"));
        assert_eq!(cookie(&headers, "potluck-session").as_deref(), Some("secret"));
        assert_eq!(cookie(&headers, "session"), None);
    }

    #[test]
    fn a_host_that_could_not_be_one_is_not_shown() {
        let mut headers = HeaderMap::new();
        let uri = Uri::from_static("/");
        assert_eq!(host(&headers, &uri), None);
        headers.insert(HOST, "hub.example.org:8443".parse().expect("a value"));
        assert_eq!(host(&headers, &uri), Some("hub.example.org:8443"));
        headers.insert(HOST, "x'; rm -rf ~".parse().expect("a value"));
        assert_eq!(host(&headers, &uri), None);
    }
}
