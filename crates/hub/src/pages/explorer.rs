//! The explorer: choose a label and features, see the regression.

use std::sync::Arc;

use axum::extract::{Path, RawQuery, State};
use axum::http::StatusCode;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};
use potluck_release::model::{Kind, Learner};
use potluck_release::study::{Column, Domain, Party};
use potluck_report::words::{self, name};

use super::correlations::has_several;
use super::layout::{Page, Place};
use super::parts::{alarm, copy_button, rendered, snippet, trail};
use super::visitor::Visitor;
use crate::api::find;
use crate::api::problem::Problem;
use crate::app::Shared;
use crate::fits::{FitForm, FitRequest, Fitted, LEVEL, fitted};
use crate::store::{Refusal, StudyRecord};

const LEARNERS: [Learner; 3] = [Learner::Posterior, Learner::Debiased, Learner::Ols];

/// The explorer of a study.
pub(super) async fn page(
    State(app): State<Shared>,
    visitor: Visitor,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let record = find(&app, &id).await?;
    let study_name = record.study.definition().name().to_owned();
    let title = format!("Explore {study_name}");
    let address = format!("/studies/{id}");
    let head = html! {
        (trail(&[("/studies", "Studies"), (&address, &study_name)]))
        h1 { "Explore " (name(&study_name)) }
        @if record.dataset.is_some() && has_several(&record) {
            p { a href={ (address) "/correlations" } { "How columns go together" } }
        }
    };
    let page = |body: Markup, status| {
        Page { title: &title, visitor: &visitor, place: Place::Elsewhere, body }.answer(status)
    };
    if record.dataset.is_none() {
        return Ok(page(html! { (head) (not_yet(&record)) }, StatusCode::OK));
    }
    let query = query.unwrap_or_default();
    let choice = FitForm::read(&query);
    let (status, result) = if choice.label.is_empty() {
        (StatusCode::OK, invitation(&record))
    } else {
        match fit(&app, &record, &choice).await {
            Ok(fitted) => {
                let html = app.blocking({
                    let fitted = Arc::clone(&fitted);
                    move |app| fitted.outcome(app).map(str::to_owned)
                });
                (StatusCode::OK, outcome(&visitor, &record, &query, &fitted, &html.await?))
            }
            Err(Refusal::Unacceptable(detail)) => {
                (StatusCode::UNPROCESSABLE_ENTITY, alarm("This regression cannot be fitted.", &detail))
            }
            Err(other) => return Err(other.into()),
        }
    };
    let body = html! {
        (head)
        div .explorer {
            (form(&record, &choice))
            div #result .result { (result) }
        }
    };
    Ok(page(body, status))
}

/// The model as a file.
pub(super) async fn model(
    State(app): State<Shared>,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let record = find(&app, &id).await?;
    let fitted = fit(&app, &record, &FitForm::read(&query.unwrap_or_default())).await?;
    let headers =
        [(CONTENT_TYPE, "application/json"), (CONTENT_DISPOSITION, "attachment; filename=\"model.json\"")];
    Ok((headers, fitted.model.to_json()).into_response())
}

async fn fit(app: &Shared, record: &StudyRecord, choice: &FitForm) -> Result<Arc<Fitted>, Refusal> {
    fitted(app, record, choice.request()?).await
}

/// Whether a column is chosen as a feature. Without any by name, all but the label's are.
fn is_chosen(column: &Column, choice: &FitForm) -> bool {
    if choice.features.is_empty() {
        return !choice.label.is_empty() && !is_of(&choice.label, column);
    }
    choice.features.iter().any(|feature| feature == column.name())
}

/// Whether a name stands for a column or one of its levels.
fn is_of(name: &str, column: &Column) -> bool {
    name == column.name() || column.encoded_names().iter().any(|encoded| encoded == name)
}

/// The parties whose columns are in the dataset.
pub(super) fn present(record: &StudyRecord) -> impl Iterator<Item = &Party> {
    let names = record.dataset.iter().flat_map(|dataset| &dataset.parties);
    names.filter_map(|party| record.study.definition().party(party).ok())
}

/// What can be explained: a number, one of two levels, or one level among several.
fn labels(column: &Column) -> Vec<String> {
    match column.domain() {
        Domain::Categorical { levels, .. } if levels.len() > 2 => column.encoded_names(),
        _ => vec![column.name().to_owned()],
    }
}

fn form(record: &StudyRecord, choice: &FitForm) -> Markup {
    let known: Vec<String> = present(record).flat_map(Party::columns).flat_map(labels).collect();
    let columns: Vec<&str> = present(record).flat_map(Party::columns).map(Column::name).collect();
    let others: Vec<&String> =
        choice.features.iter().filter(|feature| !columns.contains(&feature.as_str())).collect();
    html! {
        form #choose .card method="get" action={ "/studies/" (record.study.id()) "/explore" } data-live="result" {
            h2 { "Choose" }
            div .field {
                label for="label" { "Explain" }
                select #label name="label" required {
                    @if choice.label.is_empty() { option value="" selected { "choose a column" } }
                    @else if !known.contains(&choice.label) { option value=(choice.label) selected { (choice.label) } }
                    @for party in present(record) {
                        optgroup label=(party.name()) {
                            @for label in party.columns().iter().flat_map(labels) {
                                option value=(label) selected[label == choice.label] { (label) }
                            }
                        }
                    }
                }
            }
            div .field {
                label for="model" { "as" }
                select #model name="model" aria-describedby="model-hint" {
                    @if !Kind::ALL.iter().any(|kind| kind.name() == choice.kind) {
                        option value=(choice.kind) selected { (choice.kind) }
                    }
                    @for kind in Kind::ALL {
                        option value=(kind.name()) selected[choice.kind == kind.name()] { (explained_as(kind)) }
                    }
                }
                p #model-hint .aside { "Odds are for a label with levels: odds ratios, and probabilities to predict." }
            }
            fieldset .features {
                legend { "with the help of" }
                @for party in present(record) {
                    fieldset {
                        legend { (name(party.name())) }
                        @for column in party.columns() {
                            (checkbox(column.name(), column.unit(), is_chosen(column, choice)))
                        }
                    }
                }
                @if !others.is_empty() {
                    fieldset { legend { "also chosen" } @for other in others { (checkbox(other, None, true)) } }
                }
                p .aside { "With none chosen, all other columns help." }
            }
            (more(choice))
            button type="submit" { "Fit" }
            p #status .aside role="status" {}
        }
    }
}

/// What is regressed, in words for the form.
fn explained_as(kind: Kind) -> &'static str {
    match kind {
        Kind::Linear => "its value, or its share (linear)",
        Kind::Logistic => "its odds (logistic)",
    }
}

fn checkbox(column: &str, unit: Option<&str>, checked: bool) -> Markup {
    html! {
        label .check {
            input type="checkbox" name="feature" value=(column) checked[checked];
            span { (name(column)) @if let Some(unit) = unit { " " span .aside { (name(unit)) } } }
        }
    }
}

fn more(choice: &FitForm) -> Markup {
    let is_usual = choice.learner == Learner::Posterior.name() && choice.level == LEVEL.to_string();
    let is_known = LEARNERS.iter().any(|learner| learner.name() == choice.learner);
    html! {
        details open[!is_usual] {
            summary { "More" }
            div .field {
                label for="learner" { "Learner" }
                select #learner name="learner" aria-describedby="learner-hint" {
                    @if !is_known { option value=(choice.learner) selected { (choice.learner) } }
                    @for learner in LEARNERS {
                        option value=(learner.name()) selected[choice.learner == learner.name()] { (learner.name()) }
                    }
                }
                p #learner-hint .aside { "posterior suits every purpose; the others are simpler, for comparison." }
            }
            div .field {
                label for="level" { "Level of the intervals" }
                input #level name="level" inputmode="decimal" value=(choice.level) aria-describedby="level-hint";
                p #level-hint .aside { "Such as 0.95, or 95%." }
            }
        }
    }
}

/// What is shown before anything is chosen.
fn invitation(record: &StudyRecord) -> Markup {
    let address = format!("/studies/{}/explore", record.study.id());
    html! {
        div .card .empty {
            h2 { "What would you like to explain?" }
            p { "Choose a column, and those that may help to explain it. Every regression comes from the published columns alone: it costs nobody any more privacy, and you may fit as many as you like." }
            ul .chips {
                @for label in present(record).flat_map(Party::columns).flat_map(labels).take(12) {
                    li { a .button .quiet href={ (address) "?" (encoded("label", &label)) } { "Explain " (name(&label)) } }
                }
            }
        }
    }
}

pub(super) fn not_yet(record: &StudyRecord) -> Markup {
    html! {
        div .card .empty {
            h2 { "Nothing to explore yet" }
            p {
                "The public dataset appears when "
                @if record.early { "the first party has released" } @else { "every party has released" }
                ". So far " (record.released()) " of " (record.parties.len()) " have. Come back, or watch the study’s log."
            }
            p { a .button href={ "/studies/" (record.study.id()) } { "To the study" } }
        }
    }
}

fn encoded(name: &str, value: &str) -> String {
    form_urlencoded::Serializer::new(String::new()).append_pair(name, value).finish()
}

fn outcome(visitor: &Visitor, record: &StudyRecord, query: &str, fitted: &Fitted, html: &str) -> Markup {
    let id = record.study.id();
    let permalink = format!("{}/studies/{id}/explore?{query}", visitor.address);
    html! {
        (rendered(html))
        section .use {
            h3 { "Use it" }
            div .field {
                label for="permalink" { "Address of this regression" }
                div .copied {
                    input #permalink type="text" readonly value=(permalink);
                    (copy_button("the address", &permalink))
                }
            }
            p { a .button .quiet href={ "/studies/" (id) "/model.json?" (query) } download="model.json" { "Download model.json" } }
            h4 { "Python" }
            (snippet("Python", &python(visitor, id, &fitted.request)))
            h4 { "Python, with the package potluck, which verifies the dataset" }
            (snippet("potluck in Python", &package(visitor, id, &fitted.request)))
            h4 { "Command line" }
            (snippet("Commands", &commands(visitor, id, &fitted.request)))
            p .aside { "What the parties released and promised is on the " a href={ "/studies/" (id) } { "page of the study" } "." }
        }
    }
}

/// The regression in Python, with nothing but its standard library: as the API gives it.
fn python(visitor: &Visitor, id: &str, request: &FitRequest) -> String {
    let mut query = vec![("label", quoted(&request.label))];
    query.extend(request.features.iter().map(|feature| ("feature", quoted(feature))));
    if request.kind != Kind::Linear {
        query.push(("model", quoted(request.kind.name())));
    }
    if request.learner != Learner::Posterior {
        query.push(("learner", quoted(request.learner.name())));
    }
    if request.level.to_bits() != LEVEL.to_bits() {
        query.push(("level", format!("{:?}", request.level)));
    }
    let query: Vec<String> = query.iter().map(|(name, value)| format!("(\"{name}\", {value})")).collect();
    let url = format!("{}/api/v1/studies/{id}/fit?", visitor.address);
    format!(
        "import json\nfrom urllib.parse import urlencode\nfrom urllib.request import urlopen\n\nquery = [{}]\nwith urlopen({} + urlencode(query)) as answer:\n    model = json.load(answer)\nfor one in model[\"coefficients\"]:\n    print(one[\"term\"], one[\"value\"], one.get(\"findings\", []))",
        query.join(", "),
        quoted(&url),
    )
}

/// The regression by the package, from the public dataset itself.
fn package(visitor: &Visitor, id: &str, request: &FitRequest) -> String {
    let mut arguments = format!("dataset, label={}", quoted(&request.label));
    if !request.features.is_empty() {
        let features: Vec<String> = request.features.iter().map(|feature| quoted(feature)).collect();
        arguments.push_str(&format!(", features=[{}]", features.join(", ")));
    }
    let (class, learner) = match request.kind {
        Kind::Linear => ("LinearRegression", request.learner),
        Kind::Logistic => ("LogisticRegression", Learner::Posterior),
    };
    let mut settings = Vec::new();
    if learner != Learner::Posterior {
        settings.push(format!("learner={}", quoted(learner.name())));
    }
    if request.level.to_bits() != LEVEL.to_bits() {
        settings.push(format!("level={:?}", request.level));
    }
    format!(
        "import potluck\n\ndataset = potluck.connect({}).study({}).dataset()\nmodel = potluck.{class}({}).fit({arguments})\nprint(model.summary())",
        quoted(&visitor.address),
        quoted(id),
        settings.join(", "),
    )
}

/// A string as Python takes it. JSON escapes what Python would misread, in the same way.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn commands(visitor: &Visitor, id: &str, request: &FitRequest) -> String {
    let mut fit = format!("potluck fit public.parquet --label {}", words::quoted(&request.label));
    if !request.features.is_empty() {
        fit.push_str(&format!(" {}", words::feature_arguments(&request.features)));
    }
    if request.kind != Kind::Linear {
        fit.push_str(&format!(" --model {}", request.kind.name()));
    }
    if request.learner != Learner::Posterior {
        fit.push_str(&format!(" --learner {}", request.learner.name()));
    }
    if request.level.to_bits() != LEVEL.to_bits() {
        fit.push_str(&format!(" --level {:?}", request.level));
    }
    format!("potluck hub get {}/studies/{id} --out public.parquet\n{fit}", visitor.address)
}
