//! Correlations for people: a picture, and a table of every pair.

use maud::{Markup, html};
use potluck_release::correlations::{Correlations, Pair};

use crate::Layout;
use crate::chart::correlations::correlation_plot_in;
use crate::numbers;
use crate::page::document;
use crate::table::Table;
use crate::words::{exactly, name, names};

/// Pairs that a page lists; the data have all.
const MOST_ROWS: usize = 300;

/// One HTML file that needs nothing else.
pub fn correlations_page(correlations: &Correlations) -> String {
    let title = format!("Correlations · study {} · potluck", correlations.study);
    let body = html! {
        article .potluck-report {
            header {
                p .study { "Study " (name(&correlations.study)) }
                h1 { (heading(correlations)) }
            }
            (found(correlations))
        }
    };
    document(&title, &body, "Made from published releases only.")
}

/// The same as an HTML fragment, for a page that has a heading of its own.
pub fn correlations_outcome(correlations: &Correlations) -> String {
    html! {
        article .potluck-report .potluck-outcome { h2 { (heading(correlations)) } (found(correlations)) }
    }
    .into_string()
}

fn heading(correlations: &Correlations) -> &'static str {
    if correlations.given.is_empty() { "Correlations" } else { "Partial correlations" }
}

fn found(correlations: &Correlations) -> Markup {
    let resolved = correlations.pairs.iter().filter(|pair| pair.resolved).count();
    let all = correlations.pairs.len();
    let level = numbers::level(correlations.level);
    html! {
        p .lead {
            (numbers::count(resolved as u64)) " of " (numbers::count(all as u64))
            @if all == 1 { " correlation is" } @else { " correlations are" }
            " told from 0 at the " (level) " level"
            @if !correlations.given.is_empty() { ", holding fixed " (names(&correlations.given)) }
            "."
        }
        section {
            figure {
                (Layout::both(|layout| correlation_plot_in(correlations, layout)))
                figcaption {
                    "Filled dots: the " (level) " interval excludes 0; blue goes up together, orange against each other. Open and grey: not resolved. "
                    "Columns that go together stand next to each other. Numbers name the columns above them."
                }
            }
            p .aside { (many(correlations)) }
        }
        section {
            (Table {
                caption: "Correlations with their intervals, the strongest first",
                columns: &[("Columns", false), ("Correlation", true), ("Interval", true), ("Findings", false)],
                rows: correlations.pairs.iter().take(MOST_ROWS).map(row).collect(),
            }.markup())
            @if all > MOST_ROWS {
                p .aside { "The " (numbers::count(MOST_ROWS as u64)) " strongest of " (numbers::count(all as u64)) "; the data have all." }
            }
        }
    }
}

/// What must be said where many things are looked at.
fn many(correlations: &Correlations) -> Markup {
    let all = correlations.pairs.len();
    html! {
        @if all == 1 { "There is one pair." } @else { @match correlations.level_together {
            Some(level) => {
                "Intervals hold all together at the " (numbers::level(level)) " level: each was made at " (numbers::level(correlations.level)) "."
            }
            None => {
                "Each interval is for its pair alone. Of " (numbers::count(all as u64)) " pairs that have nothing to do with each other, about "
                (numbers::significant((1.0 - correlations.level) * all as f64, 2)) " would seem to by chance; intervals that hold all together are one option away."
            }
        } }
    }
}

fn row(pair: &Pair) -> (&'static str, Vec<Markup>) {
    let class = if pair.resolved { "clear" } else { "unclear" };
    // What rounds to 0 has no sign.
    let shown = |value: f64| {
        let rounded = (value * 1000.0).round() / 1000.0 + 0.0;
        exactly(value, &format!("{rounded:.3}").replace('-', "−"))
    };
    let short: Vec<&str> = pair.findings.iter().map(|finding| finding.kind.short()).collect();
    let cells = vec![
        html! { (name(&pair.one)) " and " (name(&pair.other)) },
        shown(pair.estimate),
        html! {
            (shown(pair.low)) " to " (shown(pair.high))
            @if !pair.resolved { span .unseen { ", includes 0" } }
        },
        html! { @if !short.is_empty() { span .mark { "◆ " (short.join(", ")) } } },
    ];
    (class, cells)
}
