//! The report as a file of its own.

use base64ct::{Base64, Encoding};
use maud::{DOCTYPE, Markup, PreEscaped, html};
use potluck_release::{Model, PublicDataset};
use sha2::{Digest, Sha256};

use crate::article;

/// The rules that lay out [`article`](crate::article()) and recolour charts, for light and dark,
/// screen and paper.
pub const STYLESHEET: &str = include_str!("style.css");

/// One HTML file that holds the whole report and needs nothing else.
///
/// Its content security policy allows the one stylesheet inside it, by hash, and forbids all else:
/// whatever might get past escaping could neither run nor load anything.
pub fn page(model: &Model, dataset: &PublicDataset) -> String {
    let title = format!("Regression of {} · study {} · potluck", model.label.name(), model.study);
    document(&title, &article::markup(model, dataset), "Made from published releases only.")
}

/// A document of its own around a body.
pub(crate) fn document(title: &str, body: &Markup, source: &str) -> String {
    let hash = Base64::encode_string(&Sha256::digest(STYLESHEET));
    let policy =
        format!("default-src 'none'; style-src 'sha256-{hash}'; base-uri 'none'; form-action 'none'");
    let markup = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="referrer" content="no-referrer";
                title { (title) }
                style { (PreEscaped(STYLESHEET)) }
            }
            body .potluck-page {
                main { (body) }
                footer { p { (source) " " (potluck_release::SOFTWARE) "." } }
            }
        }
    };
    markup.into_string()
}
