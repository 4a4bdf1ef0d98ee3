//! Invitations: shown once, with what the party does with them.

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use maud::{Markup, html};
use potluck_report::words::name;

use super::layout::{Page, Place};
use super::parts::{copy_button, snippet, trail};
use super::visitor::{Fields, Visitor};
use crate::Token;
use crate::api::problem::Problem;
use crate::app::Shared;
use crate::store::Refusal;

/// Invites a party anew.
pub(super) async fn invite(
    State(app): State<Shared>,
    visitor: Visitor,
    Path((study, party)): Path<(String, String)>,
    fields: Fields,
) -> Result<Response, Problem> {
    let coordinator = visitor.session_of(&fields)?.coordinator.clone();
    let (id, invited) = (study.clone(), party.clone());
    let (record, token) = app
        .blocking(move |app| -> Result<_, Refusal> {
            let record = app.store.study(&id)?.ok_or_else(Refusal::no_study)?;
            Ok((record, app.store.invite(&coordinator, &id, &invited)?))
        })
        .await?;
    let study_name = record.study.definition().name().to_owned();
    let page = format!("/studies/{study}");
    let body = html! {
        (trail(&[("/studies", "Studies"), (&page, &study_name)]))
        h1 { "A new invitation" }
        p .lead { "The invitation that " (name(&party)) " had before is void." }
        (invitations(&visitor.address, &study, &[(party, token)]))
        p { a .button href=(page) { "To the study" } }
    };
    let title = "A new invitation";
    Ok(Page { title, visitor: &visitor, place: Place::Elsewhere, body }.answer_once(StatusCode::CREATED))
}

/// Tokens with the commands that use them.
pub(super) fn invitations(address: &str, study: &str, tokens: &[(String, Token)]) -> Markup {
    html! {
        p .warning {
            strong { "These tokens are shown once. " }
            "The hub keeps only their hashes. Send each to its party by a safe channel: whoever has it can accept in the party’s name."
        }
        ol .invitations {
            @for (party, token) in tokens {
                li .card {
                    h2 { (name(party)) }
                    p { "The token, which the party saves in a file that only it can read:" }
                    div .snippet {
                        pre tabindex="0" aria-label={ "Token of " (party) } { code { (token.reveal()) } }
                        (copy_button(&format!("the token of {party}"), token.reveal()))
                    }
                    p { "What the party runs, with that file as " code { (party) ".token" } ":" }
                    (snippet(&format!("Commands for {party}"), &party_commands(address, study, party)))
                }
            }
        }
    }
}

/// What a party runs.
pub(super) fn party_commands(address: &str, study: &str, party: &str) -> String {
    let url = format!("{address}/studies/{study}");
    format!(
        "potluck key new --out {party}.key\npotluck party accept {url} --signing-key {party}.key --token-file {party}.token\npotluck party release {url} --data {party}.csv"
    )
}
