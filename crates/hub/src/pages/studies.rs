//! The list of studies.

use std::sync::Arc;

use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use maud::{Markup, html};
use potluck_report::numbers;
use potluck_report::words::name;
use serde::Deserialize;

use super::layout::{Page, Place};
use super::parts::{badge, counted, guarantee, progress, time};
use super::visitor::Visitor;
use crate::Error;
use crate::api::problem::Problem;
use crate::app::Shared;
use crate::store::StudyRecord;

/// Studies on a page.
const STUDIES: u64 = 20;

/// Which page.
#[derive(Deserialize)]
pub(super) struct After {
    after: Option<u64>,
}

/// A page of studies, newest first.
pub(super) async fn list(
    State(app): State<Shared>,
    visitor: Visitor,
    Query(After { after }): Query<After>,
) -> Result<Response, Problem> {
    let (records, next) = app.blocking(move |app| load(app, after)).await?;
    let body = html! {
        div .hero {
            h1 { "Studies" }
            p .lead {
                "Organisations that hold different columns about the same people meet here: each publishes its own, once, noised and mixed so that no person stands out. "
                "Anyone can lay the published columns side by side, fit regressions on them as often as they like, and check every step."
            }
        }
        @if records.is_empty() { (empty(&visitor, after.is_some())) } @else {
            ol .studies { @for record in &records { li { (card(record)) } } }
        }
        @if after.is_some() || next.is_some() {
            nav .pages aria-label="Pages" {
                @if after.is_some() { a .button .quiet href="/studies" { "Newest studies" } }
                @if let Some(next) = next { a .button .quiet href={ "/studies?after=" (next) } rel="next" { "Older studies" } }
            }
        }
    };
    Ok(Page { title: "Studies", visitor: &visitor, place: Place::Studies, body }.answer(StatusCode::OK))
}

fn load(app: &Shared, after: Option<u64>) -> Result<(Vec<Arc<StudyRecord>>, Option<u64>), Error> {
    let (summaries, next) = app.store.studies(after, STUDIES)?;
    let mut records = Vec::with_capacity(summaries.len());
    for summary in summaries {
        let record = app.store.study(&summary.id)?.ok_or_else(|| Error::damaged("a study vanished"))?;
        // Computed here, away from the threads that serve connections.
        record.guarantees();
        records.push(record);
    }
    Ok((records, next))
}

fn card(record: &StudyRecord) -> Markup {
    let id = record.study.id();
    let definition = record.study.definition();
    let columns = definition.columns().count() as u64;
    html! {
        article .card .study-card {
            div .head {
                h2 { a href={ "/studies/" (id) } { (name(definition.name())) } }
                (badge(record))
            }
            p .aside {
                (counted(columns, "column", "columns")) " of " (counted(record.parties.len() as u64, "party", "parties"))
                ", since " (time(&record.created))
            }
            dl .facts {
                div { dt { "Released" } dd { (record.released()) " of " (record.parties.len()) " " (progress(record)) } }
                div { dt { "People" } dd { (numbers::count(definition.rows())) } }
                div { dt { "Privacy of all together" } dd { (guarantee(&record.guarantees().joint)) } }
            }
            @if record.dataset.is_some() {
                p .actions { a href={ "/studies/" (id) "/explore" } { "Explore" span .unseen { " " (definition.name()) } } }
            }
        }
    }
}

fn empty(visitor: &Visitor, is_later: bool) -> Markup {
    html! {
        div .card .empty {
            @if is_later {
                h2 { "No more studies" }
                p { "These were all." }
            } @else {
                h2 { "The table is laid" }
                p { "No study has been created here yet. A coordinator describes who brings which columns, sees at once what the study would promise and how accurate it would be, and invites the parties." }
                @if visitor.session.is_some() {
                    p { a .button href="/studies/new" { "Create the first study" } }
                } @else {
                    p { a .button href="/sign-in?next=/studies/new" { "Sign in to create one" } }
                }
            }
        }
    }
}
