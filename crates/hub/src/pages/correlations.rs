//! Correlations of the columns of a public dataset, as a picture and a table.

use axum::extract::{Path, RawQuery, State};
use axum::http::StatusCode;
use axum::response::Response;
use maud::{Markup, html};
use potluck_release::study::{Column, Party};
use potluck_report::words::{self, name};

use super::explorer::{not_yet, present};
use super::layout::{Page, Place};
use super::parts::{alarm, rendered, snippet, trail};
use super::visitor::Visitor;
use crate::api::find;
use crate::api::problem::Problem;
use crate::app::Shared;
use crate::correlated::{CorrelationForm, correlated};
use crate::fits::LEVEL;
use crate::store::{Refusal, StudyRecord};

/// The correlations of a study.
pub(super) async fn page(
    State(app): State<Shared>,
    visitor: Visitor,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let record = find(&app, &id).await?;
    let study_name = record.study.definition().name().to_owned();
    let title = format!("Correlations in {study_name}");
    let (address, explorer) = (format!("/studies/{id}"), format!("/studies/{id}/explore"));
    let head = html! {
        (trail(&[("/studies", "Studies"), (&address, &study_name), (&explorer, "Explore")]))
        h1 { "Correlations in " (name(&study_name)) }
    };
    let page = |body: Markup, status| {
        Page { title: &title, visitor: &visitor, place: Place::Elsewhere, body }.answer(status)
    };
    if record.dataset.is_none() {
        return Ok(page(html! { (head) (not_yet(&record)) }, StatusCode::OK));
    }
    let choice = CorrelationForm::read(&query.unwrap_or_default());
    let found = async { correlated(&app, &record, choice.question()?).await }.await;
    let (status, result) = match found {
        Ok(found) => {
            let html = potluck_report::correlations_outcome(&found);
            (StatusCode::OK, html! { (rendered(&html)) (use_it(&visitor, &id, &choice)) })
        }
        Err(Refusal::Unacceptable(detail)) => {
            (StatusCode::UNPROCESSABLE_ENTITY, alarm("These cannot be correlated.", &detail))
        }
        Err(other) => return Err(other.into()),
    };
    let body = html! {
        (head)
        div .explorer { (form(&record, &choice)) div #result .result { (result) } }
    };
    Ok(page(body, status))
}

fn form(record: &StudyRecord, choice: &CorrelationForm) -> Markup {
    let is_chosen = |column: &Column| {
        choice.columns.is_empty() || choice.columns.iter().any(|chosen| chosen == column.name())
    };
    let is_fixed = |column: &Column| choice.given.iter().any(|fixed| fixed == column.name());
    let boxes = |what: &str, checked: &dyn Fn(&Column) -> bool| {
        html! {
            @for party in present(record) {
                fieldset {
                    legend { (name(party.name())) }
                    @for column in party.columns() {
                        label .check {
                            input type="checkbox" name=(what) value=(column.name()) checked[checked(column)];
                            span { (name(column.name())) }
                        }
                    }
                }
            }
        }
    };
    html! {
        form #choose .card method="get" action={ "/studies/" (record.study.id()) "/correlations" } {
            h2 { "Choose" }
            fieldset .features {
                legend { "Columns" }
                (boxes("column", &is_chosen))
                p .aside { "With none chosen, all of them." }
            }
            details open[!choice.given.is_empty() || choice.together || choice.level != LEVEL.to_string()] {
                summary { "More" }
                fieldset .features {
                    legend { "Hold fixed" }
                    (boxes("given", &is_fixed))
                    p .aside { "Correlations are then partial ones: of what these columns do not tell." }
                }
                div .field {
                    label for="level" { "Level of the intervals" }
                    input #level name="level" inputmode="decimal" value=(choice.level) aria-describedby="level-hint";
                    p #level-hint .aside { "Such as 0.95, or 95%." }
                }
                label .check {
                    input type="checkbox" name="together" value="true" checked[choice.together];
                    span { "Intervals hold all together" }
                }
            }
            button type="submit" { "Show" }
        }
    }
}

fn use_it(visitor: &Visitor, id: &str, choice: &CorrelationForm) -> Markup {
    let columns: String =
        choice.columns.iter().map(|column| format!(" --column {}", words::quoted(column))).collect();
    let mut more = String::new();
    if !choice.given.is_empty() {
        more.push_str(&format!(" --given {}", words::quoted(&choice.given.join(","))));
    }
    if choice.together {
        more.push_str(" --together");
    }
    let commands = format!(
        "potluck hub get {}/studies/{id} --out public.parquet\npotluck correlate public.parquet{columns}{more}",
        visitor.address
    );
    html! {
        section .use {
            h3 { "Use it" }
            h4 { "Command line" }
            (snippet("Commands", &commands))
        }
    }
}

/// Columns that a study's parties have published, for a link to this page.
pub(super) fn has_several(record: &StudyRecord) -> bool {
    present(record).flat_map(Party::columns).take(2).count() > 1
}
