//! Invitations: shown once, with what the party does with them.

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use maud::{Markup, html};
use potluck_release::Study;
use potluck_report::steps::PartyCommands;
use potluck_report::words::name;

use super::layout::{Page, Place};
use super::parts::{copy_button, snippet, trail};
use super::visitor::{Fields, Visitor};
use crate::Token;
use crate::api::problem::Problem;
use crate::app::Shared;
use crate::store::{Refusal, Store};

/// Invites a party anew.
pub(super) async fn invite(
    State(app): State<Shared>,
    visitor: Visitor,
    Path((study, party)): Path<(String, String)>,
    fields: Fields,
) -> Result<Response, Problem> {
    let coordinator = visitor.session_of(&fields)?.coordinator.clone();
    let (id, invited) = (study.clone(), party.clone());
    let undo = fields.get("undo_acceptance") == Some("true");
    let (record, token) = app
        .blocking(move |app| -> Result<_, Refusal> {
            let record = app.store.study(&id)?.ok_or_else(Refusal::no_study)?;
            let issue = if undo { Store::revoke } else { Store::invite };
            Ok((record, issue(&app.store, &coordinator, &id, &invited)?))
        })
        .await?;
    let study_name = record.study.definition().name().to_owned();
    let page = format!("/studies/{study}");
    let body = html! {
        (trail(&[("/studies", "Studies"), (&page, &study_name)]))
        h1 { "A new invitation" }
        p .lead {
            "The invitation that " (name(&party)) " had before is void"
            @if undo { ", and its acceptance is undone: it accepts again, with the key that it wants to sign with" }
            "."
        }
        (invitations(&visitor.address, &record.study, &[(party, token)]))
        p { a .button href=(page) { "To the study" } }
    };
    let title = "A new invitation";
    Ok(Page { title, visitor: &visitor, place: Place::Elsewhere, body }.answer_once(StatusCode::CREATED))
}

/// Tokens with the commands that use them.
pub(super) fn invitations(address: &str, study: &Study, tokens: &[(String, Token)]) -> Markup {
    html! {
        p .warning {
            strong { "These tokens are shown once. " }
            "The hub keeps only their hashes. Send each to its party by a safe channel: whoever has it can accept in the party’s name."
        }
        ol .invitations {
            @for (party, token) in tokens {
                li .card {
                    h2 { (name(party)) }
                    p { "The token, which the party saves as " code { (invitation_file(party)) } ", a file that only it can read:" }
                    div .snippet {
                        pre tabindex="0" aria-label={ "Token of " (party) } { code { (token.reveal()) } }
                        (copy_button(&format!("the token of {party}"), token.reveal()))
                    }
                    p { "What the party runs, where that file is:" }
                    (party_steps(address, study, party))
                }
            }
        }
    }
}

fn invitation_file(party: &str) -> String {
    format!("{party}.invitation")
}

/// What a party runs, from its invitation to its release.
pub(super) fn party_steps(address: &str, study: &Study, party: &str) -> Markup {
    let commands = PartyCommands::new(&format!("{address}/studies/{}", study.id()), study, party);
    let step = |what: &str, text: &str| html! { (snippet(&format!("Commands for {party}, {what}"), text)) };
    html! {
        ol .steps {
            li { p { "Accept the study, with a key to sign with:" } (step("to accept", &commands.accept)) }
            li { p { "Set a budget, if the table has none yet; otherwise name its budget in the last command:" } (step("for a budget", &commands.budget)) }
            li { p { "Release, from a table with ids in a column " code { "id" } ":" } (step("to release", &commands.release)) }
        }
    }
}
