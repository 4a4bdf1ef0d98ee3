//! Creating a study: a form that shows the plan while it is filled in, and the invitations that
//! come of it.

mod form;
mod plan;
mod view;

use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use maud::html;
use potluck_core::mixing::MixingKey;
use potluck_release::exchange::{API, StudySummary};
use potluck_release::plan::Plan;
use potluck_release::{AnyStudy, Error as ReleaseError, Study};
use potluck_report::words::name;

use super::invitations::invitations;
use super::layout::{Page, Place};
use super::visitor::{Fields, Visitor};
use crate::api::problem::Problem;
use crate::app::Shared;
use crate::remembered::Created;
use crate::store::{Coordinator, Creation, Refusal, Session, StudyRecord};
use crate::token::random_bytes;
use crate::{Error, Token};
use form::{Action, StudyForm, problems, problems_of_sealed};
use view::{Advice, form_page};

/// Studies that can be chosen to be extended.
const BASES: u64 = 100;

/// The form, empty.
pub(super) async fn blank(State(app): State<Shared>, visitor: Visitor) -> Result<Response, Problem> {
    let Some(session) = &visitor.session else {
        return Ok(Redirect::to("/sign-in?next=/studies/new").into_response());
    };
    let form = StudyForm::blank(hex::encode(random_bytes()?));
    let bases = app.blocking(|app| app.store.studies(None, BASES)).await?.0;
    Ok(show(&visitor, session, &form, &bases, &Advice::default(), StatusCode::OK))
}

/// What a button of the form asks for.
pub(super) async fn submit(
    State(app): State<Shared>,
    visitor: Visitor,
    fields: Fields,
) -> Result<Response, Problem> {
    let session = visitor.session_of(&fields)?;
    let action = Action::read(fields.get("action").unwrap_or_default());
    let mut form = StudyForm::read(&fields);
    let extends = form.extends.trim().to_owned();
    let (bases, base) = app
        .blocking(move |app| -> Result<_, Error> {
            let base = if extends.is_empty() { None } else { app.store.study(&extends)? };
            Ok((app.store.studies(None, BASES)?.0, base))
        })
        .await?;
    if let Some(base) = &base {
        form.inherit(&base.study);
    }
    let focus = form.edit(action);
    match action {
        Action::Create | Action::CreateSealed => {
            let made = create(&app, &session.coordinator, &form, base, action == Action::CreateSealed).await;
            match made {
                Ok(made) => Ok(show_created(&visitor, &made)),
                Err(Failure::Form(problems)) => {
                    let advice = Advice { problems, told: true, ..Advice::default() };
                    Ok(show(&visitor, session, &form, &bases, &advice, StatusCode::UNPROCESSABLE_ENTITY))
                }
                Err(Failure::Hub(refusal)) => Err(refusal.into()),
            }
        }
        _ => {
            let (text, base) = (form.clone(), base.clone());
            let planned = app.compute(move |_| plan(&text, base.as_deref())).await?;
            // A live plan lists what is missing; whoever presses the button sees it at the fields.
            let told = action == Action::Plan && fields.get("live").is_none();
            let advice = match planned {
                Ok(plan) => Advice { plan: Some(plan), told, focus, ..Advice::default() },
                Err(problems) => Advice { problems, told, focus, ..Advice::default() },
            };
            Ok(show(&visitor, session, &form, &bases, &advice, StatusCode::OK))
        }
    }
}

fn show(
    visitor: &Visitor,
    session: &Session,
    form: &StudyForm,
    bases: &[StudySummary],
    advice: &Advice,
    status: StatusCode,
) -> Response {
    let body = form_page(session, form, bases, advice);
    Page { title: "New study", visitor, place: Place::New, body }.answer(status)
}

/// What the study would promise and cost. No number depends on the key.
fn plan(form: &StudyForm, base: Option<&StudyRecord>) -> Result<Plan, Vec<form::Problem>> {
    let planned =
        form.study(base.map(|base| &base.study)).and_then(|study| Plan::of(&AnyStudy::Unsealed(study)));
    planned.map(|(_, plan)| plan).map_err(|error| problems(&error))
}

/// Why no study was created.
enum Failure {
    /// The form says why.
    Form(Vec<form::Problem>),
    /// The hub refuses or fails.
    Hub(Refusal),
}

impl From<ReleaseError> for Failure {
    fn from(error: ReleaseError) -> Self {
        Self::Form(problems(&error))
    }
}

/// A study that was created.
struct Made {
    id: String,
    name: String,
    /// The study and its invitations, unless the same form was sent before.
    new: Option<(Study, Vec<(String, Token)>)>,
}

async fn create(
    app: &Shared,
    coordinator: &Coordinator,
    form: &StudyForm,
    base: Option<Arc<StudyRecord>>,
    is_sealed: bool,
) -> Result<Made, Failure> {
    let (form, coordinator) = (form.clone(), coordinator.clone());
    app.blocking(move |app| {
        let (study, text, sealed) = if is_sealed {
            let study = Study::parse(&form.sealed);
            let study = study.map_err(|error| Failure::Form(problems_of_sealed(&error)))?;
            (study, form.sealed.clone(), form.sealed.clone())
        } else {
            let unsealed = form.study(base.as_deref().map(|base| &base.study))?;
            let key = || random_bytes().map(MixingKey::new).map_err(|error| Failure::Hub(error.into()));
            let (study, sealed) = unsealed.seal(key)?;
            (study, unsealed.text().to_owned(), sealed)
        };
        let name = study.definition().name().to_owned();
        let tokens = Mutex::new(None);
        // Whoever sends the same form again, or presses the button twice, gets the study that came
        // of it the first time.
        let once = || -> Result<String, Refusal> {
            let (id, creation) = app.store.create_study(&coordinator, &sealed, form.early)?;
            if let Creation::New(invitations) = creation {
                *tokens.lock().unwrap_or_else(PoisonError::into_inner) = Some(invitations);
            }
            Ok(id)
        };
        match app.created.try_get_with(Created::of(&form.form, &text), once) {
            Ok(id) => {
                let tokens = tokens.into_inner().unwrap_or_else(PoisonError::into_inner);
                Ok(Made { id, name, new: tokens.map(|tokens| (study, tokens)) })
            }
            Err(refusal) => Err(match Arc::into_inner(refusal) {
                Some(Refusal::Unacceptable(message) | Refusal::Conflict(message)) if is_sealed => {
                    Failure::Form(vec![form::Problem::of_sealed(&message)])
                }
                Some(refusal) => Failure::Hub(refusal),
                None => Failure::Hub(Refusal::Conflict(
                    "the same form was sent twice at once, and the study was not created; send it again"
                        .to_owned(),
                )),
            }),
        }
    })
    .await
}

fn show_created(visitor: &Visitor, made: &Made) -> Response {
    let page = format!("/studies/{}", made.id);
    let body = html! {
        h1 { "Study created" }
        @match &made.new {
            Some((study, tokens)) => {
                p .lead { (name(&made.name)) " is sealed: nothing in it can change any more. Now invite its parties." }
                (invitations(&visitor.address, study, tokens))
            }
            None => {
                p .lead { (name(&made.name)) " was created before, and its invitations were shown then." }
                p { "If one got lost, issue a new one on the page of the study." }
            }
        }
        p .actions {
            a .button href=(page) { "To the study" }
            a .button .quiet href={ (API) "/studies/" (made.id) "/study.toml" } download="study.toml" { "Download the sealed study" }
        }
    };
    let status = if made.new.is_some() { StatusCode::CREATED } else { StatusCode::OK };
    Page { title: "Study created", visitor, place: Place::New, body }.answer_once(status)
}
