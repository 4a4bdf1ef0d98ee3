//! One study: who brings what, how far they are, what is promised, and everything to download and
//! check.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use maud::{Markup, html};
use potluck_release::events::{Change, Event};
use potluck_release::exchange::{API, PartyState};
use potluck_release::study::{Column, Definition, Domain, Format, Unknown};
use potluck_release::warnings;
use potluck_report::words::{self, name};
use potluck_report::{Overview, numbers};

use super::closing::{closed, closing_form};
use super::invitations::party_steps;
use super::layout::{Page, Place};
use super::parts::{
    badge, counted, digest, guarantee, progress, rendered, scrolling, secret, size, snippet, time, titles,
    trail,
};
use super::promise::{promise, relatives};
use super::visitor::Visitor;
use crate::Error;
use crate::api::problem::Problem;
use crate::app::Shared;
use crate::remembered::Rendered;
use crate::store::{Refusal, Session, StudyRecord};

/// Events on the page; the log has all of them.
const EVENTS: u64 = 200;
/// Levels listed on the page.
const LEVELS: usize = 40;

/// The page of a study.
pub(super) async fn page(
    State(app): State<Shared>,
    visitor: Visitor,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    let address = visitor.address.clone();
    let rendered_page = app.blocking(move |app| render(app, &id, address)).await?;
    let record = &rendered_page.record;
    let study_name = record.study.definition().name();
    let own = visitor.session.as_ref().filter(|session| record.coordinator == Some(session.coordinator.id));
    let body = html! {
        (trail(&[("/studies", "Studies")]))
        @if let Some(session) = own { (coordination(record, session)) }
        (rendered(&rendered_page.html))
    };
    Ok(Page { title: study_name, visitor: &visitor, place: Place::Elsewhere, body }.answer(StatusCode::OK))
}

/// The page as it is in memory, or made anew if something has happened since.
fn render(app: &Shared, id: &str, address: String) -> Result<Arc<Rendered>, Refusal> {
    let record = app.store.study(id)?.ok_or_else(Refusal::no_study)?;
    let known = app.rendered.get(id);
    if let Some(known) = known.filter(|known| Arc::ptr_eq(&known.record, &record) && known.address == address)
    {
        return Ok(known);
    }
    let events = app.store.events(id, record.events.saturating_sub(EVENTS), EVENTS)?;
    let mut extending = Vec::new();
    for other in &record.extended_by {
        extending.extend(app.store.study(other)?);
    }
    let overview = overview(app, &record)?;
    let html = public(&record, overview.as_ref(), &extending, &events, &address).into_string();
    let fresh = Arc::new(Rendered { record, address, html });
    app.rendered.insert(id.to_owned(), Arc::clone(&fresh));
    Ok(fresh)
}

/// What the public dataset says of people and values, where its parties may hold different ones.
fn overview(app: &Shared, record: &StudyRecord) -> Result<Option<Overview>, Refusal> {
    let Some(published) = &record.dataset else { return Ok(None) };
    if record.study.definition().format() == Format::One {
        return Ok(None);
    }
    let sha256 = &published.file.sha256;
    let dataset = app.fits.dataset(&app.store.object(sha256), sha256)?;
    Ok(potluck_report::overview(&dataset).map_err(|error| Error::damaged(error.to_string()))?)
}

fn public(
    record: &StudyRecord,
    overview: Option<&Overview>,
    extending: &[Arc<StudyRecord>],
    events: &[Event],
    address: &str,
) -> Markup {
    html! {
        (head(record, overview))
        (contents(record, overview, extending))
        (parties(record))
        (columns(record))
        @if let Some(overview) = overview {
            section #people { h2 { "Who is where" } (rendered(&overview.details)) }
        }
        (promise(record))
        (relatives(record, extending))
        (downloads(record))
        (verify(record, address))
        (take_part(record, address))
        (log(record, events))
    }
}

fn head(record: &StudyRecord, overview: Option<&Overview>) -> Markup {
    let definition = record.study.definition();
    let guarantees = record.guarantees();
    let fact = |what: &str, value: Markup| html! { div { dt { (what) } dd { (value) } } };
    html! {
        header .study-head {
            div .head { h1 { (name(definition.name())) } (badge(record)) }
            @if let Some(overview) = overview { (rendered(&overview.alarms)) }
            @if let Some(closing) = &record.closed { (closed(closing)) }
            dl .facts {
                (fact("Released", html! { (record.released()) " of " (record.parties.len()) " " (progress(record)) }))
                (fact(people_of(definition), html! { (numbers::count(definition.rows())) }))
                (fact("Columns", html! { (definition.columns().count()) }))
                (fact("Privacy of each release", guarantee(&guarantees.each)))
                (fact("Privacy of all together", guarantee(&guarantees.joint)))
            }
            p .aside {
                "Created " (time(&record.created)) ". Release method: " (words::method(definition)) "; people are identified by "
                (words::id_kind(definition)) ". "
                @if record.closed.is_some() {}
                @else if record.early { "A public dataset may appear before every party has released, with those present." }
                @else { "The public dataset appears when every party has released." }
            }
            div .aside { "Study id " (digest("in full:", record.study.id())) }
            @if record.dataset.is_some() {
                p .actions {
                    a .button href={ "/studies/" (record.study.id()) "/explore" } { "Explore the data" }
                    a .button .quiet href={ (API) "/studies/" (record.study.id()) "/dataset" } download { "Download the dataset" }
                }
            }
        }
    }
}

/// Whose number the study says.
fn people_of(definition: &Definition) -> &'static str {
    match definition.format() {
        Format::One => "People",
        Format::Two => "People of a party, about",
    }
}

fn contents(record: &StudyRecord, overview: Option<&Overview>, extending: &[Arc<StudyRecord>]) -> Markup {
    let has_line = record.study.base().is_some() || !extending.is_empty();
    html! {
        nav .contents aria-label="On this page" {
            ul {
                li { a href="#parties" { "Parties" } }
                li { a href="#columns" { "Columns" } }
                @if overview.is_some() { li { a href="#people" { "Who is where" } } }
                li { a href="#promise" { "Promise" } }
                @if has_line { li { a href="#line" { "Line" } } }
                li { a href="#downloads" { "Downloads" } }
                li { a href="#verify" { "Verify" } }
                li { a href="#take-part" { "Take part" } }
                li { a href="#log" { "Log" } }
            }
        }
    }
}

fn parties(record: &StudyRecord) -> Markup {
    let row = |party: &PartyState| {
        let columns = record.study.definition().party(&party.name).map_or(0, |party| party.columns().len());
        html! {
            tr role="row" {
                th role="rowheader" scope="row" {
                    (name(&party.name))
                    @if party.study != record.study.id() {
                        " " a .aside href={ "/studies/" (party.study) } { "of the study it extends" }
                    }
                }
                td .number role="cell" data-label="Columns" { div { (columns) } }
                td role="cell" data-label="Accepted, with key" { div {
                    @match (&party.accepted, &party.key) {
                        (Some(when), Some(key)) => { (time(when)) (digest("Key", key)) }
                        _ if record.closed.is_some() => span .pending { "No" },
                        _ => span .pending { "Invited" },
                    }
                } }
                td role="cell" data-label="Released" { div {
                    @match &party.release {
                        Some(file) => {
                            (time(&file.time)) br;
                            a href=(release_address(party)) download { "Release of " (party.name) } ", " (size(file.size))
                        }
                        None if record.closed.is_some() => span .pending { "No" },
                        None => span .pending { "Not yet" },
                    }
                } }
            }
        }
    };
    let table = html! {
        table .cards role="table" {
            caption { "Parties and how far they are" }
            (titles(&[("Party", false), ("Columns", true), ("Accepted, with key", false), ("Released", false)]))
            tbody role="rowgroup" { @for party in &record.parties { (row(party)) } }
        }
    };
    html! {
        section #parties {
            h2 { "Parties" }
            (scrolling("Parties", &table))
            p .aside { "A party accepts this exact study, by its id, and registers the key that its release must be signed with. Compare a key with the one that the party gives you." }
        }
    }
}

fn release_address(party: &PartyState) -> String {
    format!("{API}/studies/{}/parties/{}/release", party.study, party.name)
}

fn columns(record: &StudyRecord) -> Markup {
    let table = html! {
        table .columns .cards role="table" {
            caption { "Columns by party, with their public range or levels" }
            (titles(&[("Column", false), ("Range or levels", false), ("Unit", false), ("Meaning", false)]))
            @for party in record.study.definition().parties() {
                tbody role="rowgroup" {
                    tr .group role="row" { th colspan="4" role="rowheader" scope="rowgroup" { (name(party.name())) } }
                    @for column in party.columns() {
                        tr role="row" {
                            th role="rowheader" scope="row" { (name(column.name())) }
                            td role="cell" data-label="Range or levels" { div { (values(column)) } }
                            td role="cell" data-label="Unit" { @if let Some(unit) = column.unit() { div { (name(unit)) } } }
                            td role="cell" data-label="Meaning" { @if column.description().is_some() || column.refuses_missing() { div {
                                @if let Some(description) = column.description() { (name(description)) " " }
                                @if column.refuses_missing() { span .aside { "Never missing." } }
                            } } }
                        }
                    }
                }
            }
        }
    };
    html! {
        section #columns {
            h2 { "Columns" }
            (scrolling("Columns", &table))
            @if let Ok(warnings) = warnings::of_study(&record.study) {
                @for warning in &warnings { p .warning { strong { "Careful: " } (warning) } }
            }
            p .aside { "Ranges and levels were agreed on without looking at the data. Values outside a range count as its end." }
        }
    }
}

fn values(column: &Column) -> Markup {
    if let Some([first, last]) = column.dates() {
        return html! { (first) " to " (last) };
    }
    html! {
        @match column.domain() {
            Domain::Numeric(bounds) => {
                (numbers::significant(bounds.lo(), 10)) " to " (numbers::significant(bounds.hi(), 10))
            }
            Domain::Categorical { levels, unknown } => {
                @for (at, level) in levels.iter().take(LEVELS).enumerate() {
                    @if at > 0 { ", " }
                    (name(level))
                }
                @if levels.len() > LEVELS { " and " (levels.len() - LEVELS) " more" }
                @match unknown {
                    Unknown::Missing => "; others count as missing",
                    Unknown::Other => "; others count as “other”",
                    Unknown::Error => "; never any other",
                }
            }
        }
    }
}

fn downloads(record: &StudyRecord) -> Markup {
    let id = record.study.id();
    let row = |what: Markup, address: String, bytes: Option<u64>, sha256: Option<&str>| {
        html! {
            tr role="row" {
                th role="rowheader" scope="row" { a href=(address) download { (what) } }
                td .number role="cell" data-label="Size" { @if let Some(bytes) = bytes { div { (size(bytes)) } } }
                td role="cell" data-label="SHA-256" { @if let Some(sha256) = sha256 { div { (digest("SHA-256", sha256)) } } }
            }
        }
    };
    let text = record.text.as_bytes();
    let table = html! {
        table .cards role="table" {
            caption { "Files to download" }
            (titles(&[("File", false), ("Size", true), ("SHA-256", false)]))
            tbody role="rowgroup" {
                @if let Some(dataset) = &record.dataset {
                    (row(html! { "Public dataset" }, format!("{API}/studies/{id}/dataset"), Some(dataset.file.size), Some(&dataset.file.sha256)))
                }
                (row(html! { "Study, sealed" }, format!("{API}/studies/{id}/study.toml"), Some(text.len() as u64), Some(&sha256(text))))
                @for party in &record.parties {
                    @if let Some(file) = &party.release {
                        (row(html! { "Release of " (name(&party.name)) }, release_address(party), Some(file.size), Some(&file.sha256)))
                    }
                }
                (row(html! { "Event log" }, format!("{API}/studies/{id}/events.jsonl"), None, None))
            }
        }
    };
    html! {
        section #downloads {
            h2 { "Downloads" }
            @if let Some(dataset) = &record.dataset {
                p { "The public dataset holds the releases of " (words::names(&dataset.parties)) ". It is ordinary Parquet, which pandas, polars, DuckDB and R read without potluck." }
                (instead_of_plain_regression(record))
            } @else if record.closed.is_some() {
                p { "The study was closed, so there is no public dataset." }
            } @else {
                p { "The public dataset is not here yet; it appears when " @if record.early { "the first party has" } @else { "all parties have" } " released." }
            }
            (scrolling("Downloads", &table))
        }
    }
}

/// What not to do with the rows of the dataset, and what to do instead where people work.
fn instead_of_plain_regression(record: &StudyRecord) -> Markup {
    let columns = record.study.definition().columns();
    let label = columns
        .map(|(_, column)| column)
        .filter(|column| matches!(column.domain(), Domain::Numeric(_)))
        .last()
        .map_or("COLUMN", Column::name);
    let quoted = words::quoted(label);
    let text = serde_json::Value::from(label).to_string();
    let ways = [
        (
            "R",
            format!(
                "fit <- system2(\"potluck\", c(\"fit\", \"public.parquet\", \"--label\", shQuote({text}), \"--json\"), stdout = TRUE)\njsonlite::fromJSON(fit)$coefficients"
            ),
        ),
        (
            "Python",
            format!(
                "import potluck\ndataset = potluck.PublicDataset.load(\"public.parquet\")\npotluck.LinearRegression().fit(dataset, {text}).summary()"
            ),
        ),
        (
            "Command line, and DuckDB",
            format!(
                "potluck fit public.parquet --label {quoted} --out model.json\nduckdb -c \"SELECT unnest(coefficients) FROM read_json('model.json')\""
            ),
        ),
    ];
    html! {
        p .warning {
            strong { "Do not regress on its rows. " }
            "They are not people but mixtures of people, with noise, on scales of their own: plain least squares on them gives wrong coefficients that look certain. Use the "
            a href={ "/studies/" (record.study.id()) "/explore" } { "explorer" } ", or one of these:"
        }
        details {
            summary { "A regression done right, in R, Python and SQL" }
            @for (place, way) in &ways {
                p { (place) }
                (snippet(place, way))
            }
        }
    }
}

fn sha256(bytes: &[u8]) -> String {
    use sha2::{Digest, Sha256};
    hex::encode(Sha256::digest(bytes))
}

fn verify(record: &StudyRecord, address: &str) -> Markup {
    let id = record.study.id();
    let url = format!("{address}/studies/{id}");
    let commands = if record.dataset.is_some() {
        // Each party is in the log of the study that it released under; the logs of other studies
        // lie beside this one's.
        let logs = if record.study.base().is_some() { "events.jsonl events.*.jsonl" } else { "events.jsonl" };
        format!(
            "potluck hub get {url} --out public.parquet --events events.jsonl\npotluck verify {logs} public.parquet"
        )
    } else {
        format!(
            "curl --fail --output events.jsonl {address}{API}/studies/{id}/events.jsonl\npotluck verify events.jsonl"
        )
    };
    html! {
        section #verify {
            h2 { "Check it yourself" }
            p { "Nobody needs to trust this hub. These commands recompute every hash, check every signature against the keys that the parties registered, and check that each number of the study follows from its public part:" }
            (snippet("Commands to verify", &commands))
            div .aside { "Keep the hash of the last event: whoever has it can tell later whether the log was rewritten. It is now " (digest("in full:", &record.head)) }
        }
    }
}

fn take_part(record: &StudyRecord, address: &str) -> Markup {
    let missing =
        record.parties.iter().find(|party| party.release.is_none() && party.study == record.study.id());
    html! {
        section #take-part {
            h2 { "Take part" }
            @match missing {
                _ if record.closed.is_some() => p { "Nobody can: the study was closed." },
                Some(party) => {
                    p { "A party needs the invitation that the coordinator sends it. Its table never leaves it: the command reads the study, says what it promises, asks, and publishes noised sums only. For example, " (name(&party.name)) " with its invitation in a file:" }
                    (party_steps(address, &record.study, &party.name))
                    p .aside { "If the connection breaks, run it again: the same bytes are sent, and the budget is charged once." }
                }
                None => p { "All parties have released. Others can still join with new columns about the same people, through a study that extends this one; ask the coordinator." },
            }
        }
    }
}

fn log(record: &StudyRecord, events: &[Event]) -> Markup {
    html! {
        section #log {
            h2 { "What happened" }
            @if record.events > events.len() as u64 {
                p { "The latest " (events.len()) " of " (numbers::count(record.events)) " events; the log has all of them." }
            }
            ol .log reversed {
                @for event in events.iter().rev() {
                    li value=(event.sequence) {
                        div .what { (in_words(&event.change)) }
                        div .aside { (time(&event.time)) (digest("Event hash", &event.hash)) }
                    }
                }
            }
        }
    }
}

/// What an event says.
fn in_words(change: &Change) -> Markup {
    html! {
        @match change {
            Change::Created { early, .. } => {
                "The study was created" @if *early { "; a dataset may appear early" } "."
            }
            Change::Invited { party } => { (name(party)) " was invited." }
            Change::Accepted { acceptance } => {
                (name(&acceptance.party)) " accepted the study and registered its key."
            }
            Change::Withdrawn { withdrawal } => {
                (name(&withdrawal.party)) " took its acceptance back, signed with the key that it had registered."
            }
            Change::Revoked { party } => { "The coordinator undid the acceptance of " (name(party)) "." }
            Change::Closed { reason } => {
                "The coordinator closed the study" @if reason.is_empty() { "." } @else { ": " bdi { (reason) } }
            }
            Change::Released { party, size: bytes, .. } => { (name(party)) " released, " (size(*bytes)) "." }
            Change::Published { parties, size: bytes, .. } => {
                "A public dataset was published with " (words::names(parties)) ", " (size(*bytes)) "."
            }
            Change::Extended { study_id } => {
                "A study was created that " a href={ "/studies/" (study_id) } { "extends this one" } "."
            }
        }
    }
}

/// What only the study's coordinator sees.
fn coordination(record: &StudyRecord, session: &Session) -> Markup {
    let own = record.parties.iter().filter(|party| party.study == record.study.id());
    let (accepted, invited): (Vec<_>, Vec<_>) = own.partition(|party| party.accepted.is_some());
    let late: Vec<_> = accepted.into_iter().filter(|party| party.release.is_none()).collect();
    let (missing, waiting) = (invited.len() as u64, late.len() as u64);
    html! {
        section .card .coordination aria-labelledby="coordination" {
            h2 #coordination { "For you, the coordinator" }
            @if record.closed.is_some() {
                p { "You closed this study." }
            } @else {
                @if invited.is_empty() {
                    p {
                        "Every party has accepted. "
                        @if waiting > 0 { (counted(waiting, "party has", "parties have")) " yet to release." } @else { "Every party has released." }
                    }
                } @else {
                    p { (counted(missing, "party has", "parties have")) " not accepted yet. If an invitation got lost, issue a new one; the one before is then void." }
                    (invite_forms(record, session, &invited, false))
                }
                @if !late.is_empty() {
                    details {
                        summary { "A party accepted with the wrong key" }
                        p { "Until it has released, the party can take its acceptance back with " code { "potluck party withdraw" } ". If its key is lost, undo the acceptance here: the party gets a new invitation and accepts with another key. Everyone sees that in the log." }
                        (invite_forms(record, session, &late, true))
                    }
                }
                (closing_form(record, session))
            }
        }
    }
}

/// A button for each party that makes a new invitation and, if `undo`, undoes its acceptance.
fn invite_forms(record: &StudyRecord, session: &Session, parties: &[&PartyState], undo: bool) -> Markup {
    html! {
        ul .invite {
            @for party in parties {
                li {
                    (name(&party.name))
                    form method="post" action={ "/studies/" (record.study.id()) "/parties/" (party.name) "/invitation" } {
                        (secret(session))
                        @if undo { input type="hidden" name="undo_acceptance" value="true"; }
                        button .quiet type="submit" {
                            @if undo { "Undo acceptance" span .unseen { " of " (party.name) } }
                            @else { "New invitation" span .unseen { " for " (party.name) } }
                        }
                    }
                }
            }
        }
    }
}
