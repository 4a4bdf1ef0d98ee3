//! What the releases promise, in numbers and in words: for each party alone and for all together,
//! always both.

use maud::{Markup, html};
use potluck_release::statement::{self, Guarantee};
use potluck_release::study::Study;

use crate::numbers;
use crate::table::Table;
use crate::words::name;

/// What the releases of these parties promise, each alone and all together, as an HTML fragment.
///
/// Parties that the study does not have are left out.
pub fn privacy_statement(study: &Study, parties: &[&str]) -> String {
    statement_markup(study, parties).into_string()
}

pub(crate) fn statement_markup(study: &Study, parties: &[&str]) -> Markup {
    let statements: Vec<(&str, Vec<String>)> = parties
        .iter()
        .filter_map(|&party| statement::of_party(study, party).ok().map(|sentences| (party, sentences)))
        .collect();
    let of_all = |sentence: &String| statements.iter().all(|(_, sentences)| sentences.contains(sentence));
    // What is said of every party is said once.
    let shared: Vec<&String> = match statements.as_slice() {
        [(_, first), _, ..] => first.iter().filter(|sentence| of_all(sentence)).collect(),
        _ => Vec::new(),
    };
    let count = statements.len();
    html! {
        (table(study, &statements))
        h3 { "Each release alone" }
        dl .parties {
            @for (party, sentences) in &statements {
                dt { (name(party)) }
                @for sentence in sentences.iter().filter(|sentence| !shared.contains(sentence)) {
                    dd { (sentence) }
                }
            }
        }
        @for sentence in shared { p { (sentence) } }
        h3 { (together(count)) }
        @for sentence in statement::joint(study, count) { p { (sentence) } }
    }
}

fn table(study: &Study, statements: &[(&str, Vec<String>)]) -> Markup {
    let alone = Guarantee::of_party(study);
    let cells = |what: Markup, guarantee: &Guarantee| {
        vec![
            what,
            html! { data value=(numbers::exact(guarantee.epsilon)) { (numbers::rounded_up(guarantee.epsilon)) } },
            html! { data value=(numbers::exact(guarantee.delta)) { (numbers::significant(guarantee.delta, 6)) } },
            html! { data value=(numbers::exact(guarantee.mu)) { (numbers::rounded_up(guarantee.mu)) } },
            html! { (format!("{:.2}", guarantee.detection * 100.0)) " in 100" },
        ]
    };
    let mut rows: Vec<_> = statements
        .iter()
        .map(|(party, _)| ("", cells(html! { "Release of " (name(party)) }, &alone)))
        .collect();
    let joint = Guarantee::joint(study, statements.len());
    rows.push(("joint", cells(html! { (together(statements.len())) }, &joint)));
    Table {
        caption: "Guarantees of each release and of all together",
        columns: &[
            ("Guarantee", false),
            ("ε", true),
            ("δ", true),
            ("μ (Gaussian DP)", true),
            ("Noticed at 5% false alarms", true),
        ],
        rows,
    }
    .markup()
}

/// What the releases together are called.
fn together(count: usize) -> String {
    match count {
        1 => "All releases together (only this one)".to_owned(),
        2 => "Both releases together".to_owned(),
        _ => format!("All {count} releases together"),
    }
}
