//! The stylesheet, the script and the icon, under addresses that change whenever they do.

use std::sync::LazyLock;

use axum::extract::Path;
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use sha2::{Digest, Sha256};

use crate::api::problem::Problem;

/// Something that pages load.
pub(super) struct Asset {
    name: String,
    kind: &'static str,
    text: String,
}

impl Asset {
    fn new(stem: &str, ending: &str, kind: &'static str, text: String) -> Self {
        let hash = hex::encode(Sha256::digest(&text));
        Self { name: format!("{stem}-{}.{ending}", &hash[..16]), kind, text }
    }

    /// Its address.
    pub(super) fn address(&self) -> String {
        format!("/assets/{}", self.name)
    }
}

/// The rules of reports, then those of the hub.
pub(super) static STYLESHEET: LazyLock<Asset> = LazyLock::new(|| {
    let text = [potluck_report::STYLESHEET, include_str!("style.css")].concat();
    Asset::new("hub", "css", "text/css; charset=utf-8", text)
});
pub(super) static SCRIPT: LazyLock<Asset> = LazyLock::new(|| {
    Asset::new("hub", "js", "text/javascript; charset=utf-8", include_str!("script.js").to_owned())
});
pub(super) static ICON: LazyLock<Asset> =
    LazyLock::new(|| Asset::new("icon", "svg", "image/svg+xml", include_str!("icon.svg").to_owned()));

/// One of them. What an address holds never changes, so browsers may keep it.
pub(super) async fn asset(Path(name): Path<String>) -> Response {
    let Some(asset) = [&STYLESHEET, &SCRIPT, &ICON].into_iter().find(|asset| asset.name == name) else {
        return Problem::new(StatusCode::NOT_FOUND, "there is no such file; load the page again")
            .into_response();
    };
    let headers = [(CONTENT_TYPE, asset.kind), (CACHE_CONTROL, "public, max-age=31536000, immutable")];
    (headers, asset.text.as_str()).into_response()
}
