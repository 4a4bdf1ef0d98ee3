//! Pages for people: rendered here, usable without JavaScript, and without anything from elsewhere.
//!
//! Every page has a policy that forbids whatever does not come from the hub itself, inline styles
//! and scripts included. Names, units and descriptions come from strangers and are escaped wherever
//! they are shown. What a form may do is guarded twice: the browser must say that it comes from the
//! hub's own pages, and the form must carry its session's secret.

mod assets;
mod closing;
mod correlations;
mod errors;
mod explorer;
mod invitations;
mod layout;
mod new_study;
mod parts;
mod promise;
mod sign_in;
mod studies;
mod study;
mod visitor;

use std::sync::Arc;

use axum::Router;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use axum::routing::{get, post};
use tower_http::csrf::CsrfLayer;

use crate::api::problem::Problem;
use crate::app::Shared;

pub(crate) use errors::as_pages;

/// All pages.
pub(crate) fn router(app: &Shared) -> Router {
    let pages = Router::new()
        .route("/", get(studies::list))
        .route("/studies", get(studies::list))
        .route("/studies/new", get(new_study::blank).post(new_study::submit))
        .route("/studies/{study}", get(study::page))
        .route("/studies/{study}/explore", get(explorer::page))
        .route("/studies/{study}/correlations", get(correlations::page))
        .route("/studies/{study}/model.json", get(explorer::model))
        .route("/studies/{study}/parties/{party}/invitation", post(invitations::invite))
        .route("/studies/{study}/closing", post(closing::close))
        .route("/sign-in", get(sign_in::form).post(sign_in::sign_in))
        .route("/sign-out", post(sign_in::sign_out))
        .route("/assets/{name}", get(assets::asset))
        .with_state(Arc::clone(app));
    pages.layer(same_site(app).with_rejection_response(|_| {
        let detail = "this form was sent from another site; open the page here and send it again";
        Problem::new(StatusCode::FORBIDDEN, detail).into_response()
    }))
}

/// Refuses forms that a browser sends from somewhere else.
fn same_site(app: &Shared) -> CsrfLayer {
    let Some(origin) = app.config.origin() else { return CsrfLayer::new() };
    CsrfLayer::new().add_trusted_origin(&origin).unwrap_or_else(|error| {
        tracing::warn!(%error, "the public address is none that a browser would name");
        CsrfLayer::new()
    })
}
