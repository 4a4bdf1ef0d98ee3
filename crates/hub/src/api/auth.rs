//! Who asks: a coordinator or a party, by bearer token.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use axum::http::StatusCode;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;

use super::problem::Problem;
use crate::app::Shared;
use crate::store::Coordinator;

/// The token of a request. It has no `Debug`.
pub(super) struct Bearer(Option<String>);

impl<S: Sync> FromRequestParts<S> for Bearer {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let value = parts.headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        let token = value.and_then(|value| {
            let (scheme, token) = value.split_once(' ')?;
            scheme.eq_ignore_ascii_case("bearer").then(|| token.trim().to_owned())
        });
        Ok(Self(token))
    }
}

impl Bearer {
    fn token(self, whose: &str) -> Result<String, Problem> {
        self.0.ok_or_else(|| {
            Problem::unauthorized(format!("this needs {whose} in the header `Authorization: Bearer TOKEN`"))
        })
    }

    /// The coordinator who asks.
    pub(super) async fn coordinator(self, app: &Shared) -> Result<Coordinator, Problem> {
        let token = self.token("a coordinator's token")?;
        let found = app.blocking(move |app| app.store.coordinator(&token)).await?;
        found.ok_or_else(|| Problem::unauthorized("no coordinator of this hub has that token"))
    }

    /// The party of the study that asks.
    pub(super) async fn invited(self, app: &Shared, study: &str) -> Result<String, Problem> {
        let token = self.token("a party's invitation")?;
        let study = study.to_owned();
        let found = app.blocking(move |app| app.store.invited(&study, &token)).await?;
        found.ok_or_else(|| {
            Problem::unauthorized(
                "that token is no invitation to this study; it may have been replaced by a newer one: ask the coordinator",
            )
        })
    }

    /// Makes sure that it is this party who asks.
    pub(super) async fn party(self, app: &Shared, study: &str, party: &str) -> Result<(), Problem> {
        let invited = self.invited(app, study).await?;
        if invited == party {
            return Ok(());
        }
        Err(Problem::new(
            StatusCode::FORBIDDEN,
            format!("that token is the invitation of {invited}, not of {party}"),
        ))
    }
}
