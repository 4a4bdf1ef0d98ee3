//! The API for programs: JSON under `/api/v1`, described at `/openapi.json`.

mod auth;
mod correlations;
mod download;
mod fit;
mod parties;
pub(crate) mod problem;
mod status;
mod studies;
mod upload;

use std::sync::Arc;

use axum::extract::{FromRequest, FromRequestParts};
use axum::{Json, Router};
use utoipa::openapi::path::{Operation, PathItem};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{ContentBuilder, InfoBuilder, License, OpenApi, OpenApiBuilder, Ref, ResponseBuilder};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::Shared;
use problem::Problem;

pub(crate) use studies::find;

/// Parts of the path, refused as a problem.
#[derive(FromRequestParts)]
#[from_request(via(axum::extract::Path), rejection(Problem))]
struct Path<T>(T);

/// The query, refused as a problem.
#[derive(FromRequestParts)]
#[from_request(via(axum::extract::Query), rejection(Problem))]
struct Query<T>(T);

/// A JSON body, refused as a problem.
#[derive(FromRequest)]
#[from_request(via(axum::Json), rejection(Problem))]
struct Body<T>(T);

fn answers() -> OpenApiRouter<Shared> {
    OpenApiRouter::with_openapi(preamble())
        .routes(routes!(studies::list, studies::create))
        .routes(routes!(studies::details))
        .routes(routes!(studies::close))
        .routes(routes!(studies::events))
        .routes(routes!(parties::invitation))
        .routes(routes!(parties::invite))
        .routes(routes!(parties::accept))
        .routes(routes!(parties::withdraw))
        .routes(routes!(upload::state))
        .routes(routes!(fit::fit))
        .routes(routes!(correlations::correlations))
        .routes(routes!(fit::plan))
        .routes(routes!(status::health))
        .routes(routes!(status::metrics))
}

/// What moves files: its bodies may be large and take as long as the network does. They are sent as
/// they are, because an entity tag is of exact bytes, and ranges count them.
fn file_transfers() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(studies::text))
        .routes(routes!(studies::log))
        .routes(routes!(download::release, upload::release))
        .routes(routes!(download::dataset))
}

/// Requests that are answered at once.
pub(crate) fn router(app: &Shared) -> Router {
    let description = Json(description());
    let (router, _) = answers().split_for_parts();
    router.route("/openapi.json", axum::routing::get(async move || description)).with_state(Arc::clone(app))
}

/// Requests that move files.
pub(crate) fn transfers(app: &Shared) -> Router {
    let (router, _) = file_transfers().split_for_parts();
    router.layer(axum::extract::DefaultBodyLimit::disable()).with_state(Arc::clone(app))
}

/// The description of the API (OpenAPI).
pub fn description() -> OpenApi {
    let (_, mut answers) = answers().split_for_parts();
    let (_, transfers) = file_transfers().split_for_parts();
    answers.merge(transfers);
    for operation in answers.paths.paths.values_mut().flat_map(operations) {
        for (status, description) in EVERYWHERE {
            let problem = Ref::from_schema_name("Problem");
            let content = ContentBuilder::new().schema(Some(problem)).build();
            let response = ResponseBuilder::new()
                .description(description)
                .content("application/problem+json", content)
                .build();
            operation.responses.responses.entry(status.to_owned()).or_insert_with(|| response.into());
        }
    }
    answers
}

/// Answers that any request may get.
const EVERYWHERE: [(&str, &str); 3] = [
    ("429", "You ask too often; wait as long as Retry-After says"),
    ("500", "The hub failed"),
    ("503", "The hub is busy; wait as long as Retry-After says"),
];

fn operations(path: &mut PathItem) -> impl Iterator<Item = &mut Operation> {
    [&mut path.get, &mut path.post, &mut path.put].into_iter().flatten()
}

fn preamble() -> OpenApi {
    let bearer = |description: &str| {
        SecurityScheme::Http(
            HttpBuilder::new()
                .scheme(HttpAuthScheme::Bearer)
                .description(Some(description.to_owned()))
                .build(),
        )
    };
    let components = utoipa::openapi::ComponentsBuilder::new()
        .security_scheme("coordinator", bearer("A coordinator's token, from `potluck hub coordinator add`."))
        .security_scheme("party", bearer("A party's invitation, from the coordinator."))
        .build();
    OpenApiBuilder::new()
        .info(
            InfoBuilder::new()
                .title("potluck hub")
                .version(env!("CARGO_PKG_VERSION"))
                .description(Some(
                    "Studies, releases and public datasets of a potluck hub. Errors are problem details (RFC 9457).",
                ))
                .license(Some(License::new("MIT OR Apache-2.0")))
                .build(),
        )
        .components(Some(components))
        .build()
}
