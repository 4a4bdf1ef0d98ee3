//! What is promised to a person in the data, and what that means for those who run or extend the
//! study.

use std::sync::Arc;

use maud::{Markup, PreEscaped, html};
use potluck_release::Study;
use potluck_release::statement::Guarantee;
use potluck_report::words::name;
use potluck_report::{Layout, Noticed, noticed_plot_in, numbers, privacy_statement};

use super::parts::counted;
use crate::store::StudyRecord;

/// The promise in a picture, in numbers and in words: of the releases that are there, and of all
/// that may come.
pub(super) fn promise(record: &StudyRecord) -> Markup {
    let study = &record.study;
    let all: Vec<&str> = record.parties.iter().map(|party| party.name.as_str()).collect();
    let released: Vec<&str> = record
        .parties
        .iter()
        .filter(|party| party.release.is_some())
        .map(|party| party.name.as_str())
        .collect();
    html! {
        section #promise {
            h2 { "What is promised to a person in the data" }
            p {
                "Suppose somebody knows everything about everyone but one person, sees what is published, and wants to tell whether that person’s true values were used. "
                "If they may raise a false alarm in 5 cases of 100, blind guessing is right in 5 of 100. This is how often the best possible attack is right, at most:"
            }
            (picture(study, released.len(), all.len()))
            @if released.len() == all.len() {
                div .potluck-report .statement { (PreEscaped(privacy_statement(study, &all))) }
            } @else {
                h3 { "When all parties have released" }
                div .potluck-report .statement { (PreEscaped(privacy_statement(study, &all))) }
                h3 { "Now" }
                @if released.is_empty() {
                    p { "No party has released yet, so nothing about anybody is public." }
                } @else {
                    details {
                        summary { "With " (counted(released.len() as u64, "release", "releases")) " of " (all.len()) }
                        div .potluck-report .statement { (PreEscaped(privacy_statement(study, &released))) }
                    }
                }
            }
        }
    }
}

fn picture(study: &Study, released: usize, all: usize) -> Markup {
    let row = |sight: String, guarantee: Guarantee| Noticed { sight, chance: guarantee.detection };
    let mut rows = vec![row("one release".to_owned(), Guarantee::of_party(study))];
    if released > 1 && released < all {
        rows.push(row(format!("the {released} releases so far"), Guarantee::joint(study, released)));
    }
    if all > 1 {
        rows.push(row(format!("all {all} releases"), Guarantee::joint(study, all)));
    }
    html! {
        div .potluck-report {
            figure {
                (Layout::both(|layout| noticed_plot_in(&rows, layout)))
                figcaption { "The line is at 5 of 100: blind guessing. The closer a bar ends to it, the less the releases say about any one person." }
            }
        }
    }
}

/// The studies that this one extends and those that extend it, and how the joint guarantee grows
/// with them.
pub(super) fn relatives(record: &StudyRecord, extending: &[Arc<StudyRecord>]) -> Markup {
    let own = &record.study;
    let mut before = Vec::new();
    let mut base = own.base();
    while let Some(study) = base {
        before.push(study);
        base = study.base();
    }
    if before.is_empty() && extending.is_empty() {
        return html! {};
    }
    before.reverse();
    let row = |study: &Study, is_here: bool| {
        let parties = study.definition().parties().len();
        let joint = Guarantee::joint(study, parties);
        html! {
            tr .here[is_here] role="row" {
                th role="rowheader" scope="row" {
                    @if is_here { (name(study.definition().name())) " (this study)" } @else {
                        a href={ "/studies/" (study.id()) } { (name(study.definition().name())) }
                    }
                }
                td .number role="cell" data-label="Parties" { div { (parties) } }
                td .number role="cell" data-label="Joint ε" { div { (numbers::rounded_up(joint.epsilon)) } }
                td .number role="cell" data-label="Noticed at 5% false alarms" { div { (format!("{:.2}", joint.detection * 100.0)) " in 100" } }
            }
        }
    };
    let table = html! {
        table .cards role="table" {
            caption { "Joint guarantee of each study in this line, for a person in all its releases" }
            (super::parts::titles(&[("Study", false), ("Parties", true), ("Joint ε", true), ("Noticed at 5% false alarms", true)]))
            tbody role="rowgroup" {
                @for study in before { (row(study, false)) }
                (row(own, true))
                @for other in extending { (row(&other.study, false)) }
            }
        }
    };
    html! {
        section #line {
            h2 { "Studies in the same line" }
            p { "A study that extends another adds parties later and joins their columns to those that are there. Every release adds to what can be learned about a person who is in all of them, so the joint guarantee grows:" }
            (super::parts::scrolling("Studies in the same line", &table))
        }
    }
}
