//! The plan of a study: what it would promise, and what it would be good for.

use maud::{Markup, PreEscaped, html};
use potluck_core::planning::{FUTILE, USEFUL};
use potluck_release::plan::{Plan, PlanOfParty};
use potluck_report::words::name;
use potluck_report::{Layout, numbers, people_plot_in};

use super::super::parts::{guarantee, scrolling, size};

/// The plan in numbers and words.
pub(super) fn panel(plan: &Plan) -> Markup {
    let outlook = &plan.outlook;
    let number = |value: f64| numbers::significant(value, 2);
    let (class, verdict) = match outlook.recovered {
        recovered if recovered >= USEFUL => ("complete", "Useful"),
        recovered if recovered >= FUTILE => ("partial", "Of limited use"),
        _ => ("waiting", "Of no use"),
    };
    html! {
        p .verdict {
            span .badge .(class) { (verdict) }
            " Of what the other columns can explain of one, a regression would recover about "
            strong { (numbers::percent(outlook.recovered)) } "."
        }
        dl .facts {
            div { dt { "Privacy of each release" } dd { (guarantee(&plan.per_party)) } }
            div { dt { "Privacy of all together" } dd { (guarantee(&plan.joint)) } }
            div { dt { "Smallest useful study" } dd {
                @match outlook.smallest_useful_rows {
                    Some(rows) => { (numbers::count(rows)) " people" }
                    None => "not known",
                }
            } }
            div { dt { "Error of R²" } dd { "± " (number(outlook.r_squared_error)) } }
            div { dt { "Public dataset" } dd { (size(plan.dataset_bytes)) span .aside { (numbers::count(plan.k)) " rows" } } }
        }
        @for warning in &plan.warnings { p .warning { strong { "Careful: " } (warning) } }
        (scrolling("Plan by party", &parties(&plan.parties)))
        (coefficients(plan))
        p .aside {
            "A person in all releases has the joint guarantee, never that of one. The error of R² is a standard error, for typical columns that explain "
            (numbers::percent(outlook.signal)) " of the label. All of it follows from public facts; nobody’s data were touched."
        }
    }
}

/// What to expect of each coefficient, and how many people would resolve an effect.
fn coefficients(plan: &Plan) -> Markup {
    let forecast = &plan.forecast;
    let error = |error: f64| if error > 1.0 { "over 1".to_owned() } else { numbers::significant(error, 2) };
    let people = |people: Option<u64>| people.map_or("—".to_owned(), numbers::count);
    let assumed = &forecast.assumptions;
    let table = html! {
        table {
            caption { "Standard errors of coefficients, and people to tell an effect of " (numbers::significant(forecast.effect, 3)) " from 0" }
            thead { tr {
                th scope="col" { "Columns" }
                th .number scope="col" { "Error: good" } th .number scope="col" { "typical" } th .number scope="col" { "hard" }
                th .number scope="col" { "People: good" } th .number scope="col" { "typical" } th .number scope="col" { "hard" }
            } }
            tbody {
                @for of in forecast.alike() {
                    tr {
                        th scope="row" { (name(&of.name())) }
                        @for one in of.standard_error.all() { td .number { (error(one)) } }
                        @for one in of.people.all() { td .number { (people(one)) } }
                    }
                }
            }
        }
    };
    html! {
        @if !forecast.columns.is_empty() {
            (scrolling("Forecast of coefficients", &table))
            @if let (Some(wide), Some(narrow)) = (people_plot_in(forecast, plan.rows, Layout::Wide), people_plot_in(forecast, plan.rows, Layout::Narrow)) {
                figure { (PreEscaped(wide)) (PreEscaped(narrow)) }
            }
            p .aside {
                "Errors are in standard deviations of the label for one of the feature; an effect is told from 0 in " (numbers::percent(forecast.power)) " of cases. "
                "Good: " (assumed.good) ". Typical: " (assumed.typical) ". Hard: " (assumed.hard) ". "
                "—: more people than anybody has."
            }
        }
    }
}

fn parties(parties: &[PlanOfParty]) -> Markup {
    html! {
        table {
            caption { "What each party would release" }
            thead { tr { th scope="col" { "Party" } th .number scope="col" { "Columns" } th scope="col" { "Noise share" } th .number scope="col" { "Size" } } }
            tbody {
                @for party in parties {
                    tr {
                        th scope="row" { (name(&party.party)) }
                        td .number { (party.columns) }
                        td { (bar(party.noise_share)) " " (numbers::percent(party.noise_share)) }
                        td .number { (size(party.release_bytes)) }
                    }
                }
            }
        }
    }
}

/// A share as a bar beside its number.
fn bar(share: f64) -> Markup {
    let width = (100.0 * share.clamp(0.0, 1.0)).round();
    html! {
        svg .bar viewBox="0 0 100 10" width="72" height="8" preserveAspectRatio="none" aria-hidden="true" focusable="false" {
            rect .empty width="100" height="10" {}
            rect .noise width=(width) height="10" {}
        }
    }
}
