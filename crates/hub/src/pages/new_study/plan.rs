//! The plan of a study: what it would promise, and what it would be good for.

use maud::{Markup, html};
use potluck_core::planning::{FUTILE, USEFUL};
use potluck_release::plan::{Plan, PlanOfParty};
use potluck_report::numbers;
use potluck_report::words::name;

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
            div { dt { "Error of a coefficient" } dd { "± " (number(outlook.coefficient_error)) span .aside { "worst party ± " (number(outlook.worst_coefficient_error)) } } }
            div { dt { "Error of R²" } dd { "± " (number(outlook.r_squared_error)) } }
            div { dt { "Public dataset" } dd { (size(plan.dataset_bytes)) span .aside { (numbers::count(plan.k)) " rows" } } }
        }
        @for warning in &plan.warnings { p .warning { strong { "Careful: " } (warning) } }
        (scrolling("Plan by party", &parties(&plan.parties)))
        p .aside {
            "A person in all releases has the joint guarantee, never that of one. Errors are standard errors, for columns that explain "
            (numbers::percent(outlook.signal)) " of the label: of a coefficient, in standard deviations of the label for one of the feature. All of it follows from public facts; nobody’s data were touched."
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
