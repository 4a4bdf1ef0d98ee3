//! Cards: short fragments for notebooks, each with a stylesheet of its own that leaves the page
//! around it alone.

use maud::{Markup, PreEscaped, html};
use potluck_release::statement::Guarantee;
use potluck_release::{Model, PublicDataset, Study};

use crate::article::{Level, answer, coefficients, domain, opening, published};
use crate::numbers;
use crate::page::STYLESHEET;
use crate::table::Table;
use crate::words::{self, headline, name, regression};

/// What a card adds to the stylesheet: surface and type, which a page of its own would have.
const SURFACE: &str = ".potluck-card { padding: 0.25rem 1rem 1rem; max-width: 50rem; background: var(--surface); color: var(--ink); font: 0.9375rem/1.5 system-ui, -apple-system, \"Segoe UI\", Roboto, \"Helvetica Neue\", Arial, sans-serif; } .potluck-card .potluck-report section { margin-top: 1.25rem; }";

fn card(body: &Markup) -> String {
    // Colours belong to the card, not to the page.
    let rules = STYLESHEET.replace(":root", ".potluck-card");
    html! {
        div .potluck-card {
            style { (PreEscaped(rules)) (PreEscaped(SURFACE)) }
            article .potluck-report { (body) }
        }
    }
    .into_string()
}

fn facts(all: &[(&str, String)]) -> Markup {
    html! {
        dl .facts {
            @for (what, value) in all { div { dt { (what) } dd { (value) } } }
        }
    }
}

fn guarantee(guarantee: &Guarantee) -> String {
    format!("ε = {}, δ = {:e}", numbers::rounded_up(guarantee.epsilon), guarantee.delta)
}

/// A study at a glance; `sealed` is false for one that shows what a draft would become.
pub fn study_card(study: &Study, sealed: bool) -> String {
    let definition = study.definition();
    let rows: Vec<_> = definition
        .columns()
        .map(|(party, column)| {
            let meaning = html! { @if let Some(text) = column.description() { (name(text)) } };
            ("", vec![name(column.name()), name(party.name()), domain(column), meaning])
        })
        .collect();
    let id = if sealed { study.id().chars().take(16).collect() } else { "not sealed yet".to_owned() };
    card(&html! {
        h2 { "Study " (name(definition.name())) }
        (facts(&[
            ("People", numbers::count(definition.rows())),
            ("Released rows", words::released_rows(study)),
            ("Each release", guarantee(&Guarantee::of_party(study))),
            ("All together", guarantee(&Guarantee::joint(study, definition.parties().len()))),
            ("Id", id),
        ]))
        section {
            (Table {
                caption: "Columns of the study and their public ranges",
                columns: &[("Column", false), ("Party", false), ("Public range or levels", false), ("Meaning", false)],
                rows,
            }.markup())
        }
    })
}

/// A public dataset at a glance.
pub fn dataset_card(dataset: &PublicDataset) -> String {
    let study = dataset.study();
    let parties: Vec<&str> = dataset.parties().map(|(party, _)| party).collect();
    card(&html! {
        h2 { "Public dataset of study " (name(study.definition().name())) }
        (facts(&[
            ("People", numbers::count(study.definition().rows())),
            ("Released rows", numbers::count(dataset.columns().rows() as u64)),
            ("Parties", parties.join(", ")),
            ("Each release", guarantee(&Guarantee::of_party(study))),
            ("All together", guarantee(&Guarantee::joint(study, parties.len()))),
        ]))
        section { (published(dataset)) }
    })
}

/// A fitted regression at a glance: the plot and the coefficients.
pub fn model_card(model: &Model) -> String {
    card(&html! {
        h2 { (regression(model.kind)) " of " (name(&model.label.name())) }
        (opening(model))
        p { (headline(model)) }
        section { (answer(model, Level(2))) }
        section { (coefficients(model, Level(2))) }
    })
}
