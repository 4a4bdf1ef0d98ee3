//! Who is where, and how values are distributed, as releases of parties that hold different people
//! tell.

use maud::{Markup, html};
use potluck_release::people::{self, Overlap, People, SHIFTS_MEAN, Shift, declared};
use potluck_release::summary::{self, ColumnSummary, Known, PartySummary, Shape};
use potluck_release::{Error, PublicDataset};

use crate::Layout;
use crate::article::{Level, alarm};
use crate::chart::distributions::distributions_plot_in;
use crate::chart::overlaps::overlaps_plot_in;
use crate::numbers;
use crate::table::Table;
use crate::words::{capital, exactly, name, sentence_markup};

/// Shifts that a table lists: those that stand clearest of their noise.
const MOST_SHIFTS: usize = 40;

/// What a public dataset says of people and values before anything is fitted, as HTML fragments
/// for a page that has headings of its own.
#[derive(Clone, Debug)]
pub struct Overview {
    /// What must be known before anything else; empty where nothing is wrong.
    pub alarms: String,
    /// All of it.
    pub details: String,
}

/// What a public dataset says; nothing where all parties hold the same people by the study's
/// definition.
pub fn overview(dataset: &PublicDataset) -> Result<Option<Overview>, Error> {
    let Some(people) = people::of_dataset(dataset)? else { return Ok(None) };
    let parties = summary::of_dataset(dataset)?;
    let columns: Vec<&ColumnSummary> = parties.iter().flat_map(|party| &party.columns).collect();
    let details = html! {
        div .potluck-report .potluck-outcome {
            (people_markup(&people, &parties))
            (missing(&parties))
            (shapes(&columns))
        }
    };
    Ok(Some(Overview { alarms: alarms(&people).into_string(), details: details.into_string() }))
}

/// What must be known before anything else.
fn alarms(people: &People) -> Markup {
    html! { @for sentence in people.alarms() { (alarm(&sentence)) } }
}

/// The same as a section of a report.
pub(crate) fn people_section(dataset: &PublicDataset) -> Markup {
    let known = people::of_dataset(dataset).ok().flatten().zip(summary::of_dataset(dataset).ok());
    html! {
        @if let Some((people, parties)) = known {
            section { (Level(2).titled("Who is where")) (people_markup(&people, &parties)) }
        }
    }
}

fn people_markup(people: &People, parties: &[PartySummary]) -> Markup {
    html! {
        (held(parties))
        @if !people.overlaps.is_empty() {
            (Level(3).titled("Whom parties have in common"))
            figure {
                (Layout::both(|layout| overlaps_plot_in(people, layout)))
                figcaption {
                    "Dots are shares of the smaller party’s people as the presence of the two shows them, lines their 95% intervals. Grey bands: what the study declares."
                }
            }
            (overlaps(people))
            (Level(3).titled("How shared people differ"))
            (shifts(people))
        }
    }
}

/// About how many people each party has.
fn held(parties: &[PartySummary]) -> Markup {
    let rows = parties.iter().filter_map(|party| {
        let Known { value, error } = party.people?;
        let shown = |number: f64| exactly(number, &numbers::significant(number, 3));
        let count = exactly(value, &numbers::count(value.max(0.0).round() as u64));
        Some(("", vec![name(&party.party), count, shown(error)]))
    });
    Table {
        caption: "People of each party, as its noised counts have it",
        columns: &[("Party", false), ("People, about", true), ("Standard error", true)],
        rows: rows.collect(),
    }
    .markup()
}

fn overlaps(people: &People) -> Markup {
    let share = |share: f64| exactly(share, &numbers::percent(share));
    let row = |overlap: &Overlap| {
        let [low, high] = overlap.interval;
        let cells = vec![
            html! { (name(&overlap.parties[0])) " and " (name(&overlap.parties[1])) },
            html! {
                (share(overlap.share))
                @if let Some(finding) = overlap.finding { " " span .mark { "◆ " (finding.short()) } }
            },
            html! { (share(low)) " to " (share(high)) },
            html! { (capital(&declared(overlap.declared))) },
            share(overlap.taken),
            exactly(overlap.people, &numbers::count(overlap.people.max(0.0).round() as u64)),
        ];
        ("", cells)
    };
    html! {
        (Table {
            caption: "What each two parties have in common, as a share of the smaller one’s people",
            columns: &[
                ("Parties", false),
                ("Share", true),
                ("95% interval", true),
                ("Declared", false),
                ("Fits take", true),
                ("People", true),
            ],
            rows: people.overlaps.iter().map(row).collect(),
        }.markup())
        p .aside {
            "Fits take the share that is most likely given all parties and what the study declares. People whom a party shares with no other only add noise."
        }
    }
}

fn shifts(people: &People) -> Markup {
    let mut clear: Vec<&Shift> = people.shifts.iter().filter(|shift| shift.clear).collect();
    if clear.is_empty() {
        return html! {
            p { "The people whom parties share differ from all of a party’s by no more than noise hides." }
        };
    }
    let certain = |shift: &Shift| (shift.shift / shift.standard_error).abs();
    clear.sort_by(|a, b| certain(b).total_cmp(&certain(a)));
    let number = |value: f64, digits| exactly(value, &numbers::significant(value, digits));
    let row = |shift: &&Shift| {
        let cells = vec![
            name(&shift.column),
            name(&shift.party),
            name(&shift.shared_with),
            number(shift.shift, 2),
            number(shift.standard_error, 2),
            number(shift.difference, 3),
        ];
        ("", cells)
    };
    html! {
        ul { @for sentence in people.differences() { li { (sentence_markup(&sentence)) } } }
        p { (SHIFTS_MEAN) }
        (Table {
            caption: "By how much means over shared people differ from those over all of a party’s",
            columns: &[
                ("Column", false),
                ("Party", false),
                ("Shared with", false),
                ("Difference (standard deviations)", true),
                ("Standard error", true),
                ("In its unit", true),
            ],
            rows: clear.iter().take(MOST_SHIFTS).map(row).collect(),
        }.markup())
    }
}

/// A share with its standard error.
pub(crate) fn known_share(known: Known) -> Markup {
    html! {
        (exactly(known.value, &numbers::percent(known.value)))
        @if known.error > 0.0 { " ± " (exactly(known.error, &numbers::percent(known.error))) }
    }
}

/// Which values are missing, where any may be.
fn missing(parties: &[PartySummary]) -> Markup {
    let columns = parties.iter().flat_map(|party| party.columns.iter().map(move |column| (party, column)));
    let rows: Vec<_> = columns
        .filter_map(|(party, column)| {
            Some(("", vec![name(&column.name), name(&party.party), known_share(column.missing?)]))
        })
        .collect();
    html! {
        @if !rows.is_empty() {
            (Level(3).titled("Missing values"))
            (Table {
                caption: "Share of a party’s people without a value, with one standard error",
                columns: &[("Column", false), ("Party", false), ("Missing", true)],
                rows,
            }.markup())
        }
    }
}

/// How values are distributed: a picture and a table; nothing where releases do not tell.
pub(crate) fn shapes(columns: &[&ColumnSummary]) -> Markup {
    let shaped: Vec<(&ColumnSummary, &Shape)> =
        columns.iter().filter_map(|column| Some((*column, column.distribution.as_ref()?))).collect();
    if shaped.is_empty() {
        return html! {};
    }
    let rows = shaped.iter().map(|(column, shape)| {
        let width = column.range[1] - column.range[0];
        let mut cells = vec![html! { (name(&column.name)) @if let Some(unit) = &column.unit { " " span .aside { (name(unit)) } } }];
        cells.extend(shape.quantiles.iter().map(|quantile| {
            html! {
                (exactly(quantile.value, &numbers::within(quantile.value, width)))
                span .aside {
                    " " (exactly(quantile.low, &numbers::within(quantile.low, width)))
                    " to " (exactly(quantile.high, &numbers::within(quantile.high, width)))
                }
            }
        }));
        cells.push(shape.zeros.map_or_else(|| html! { "—" }, known_share));
        cells.extend(shape.beyond.map(known_share));
        ("", cells)
    });
    let rows: Vec<_> = rows.collect();
    html! {
        (Level(3).titled("How values are distributed"))
        figure {
            (Layout::both(|layout| distributions_plot_in(columns, layout).unwrap_or_default()))
            figcaption {
                "Each column on the range that its release keeps, by its noised histogram. Grey bars are no higher than noise alone would often make them."
            }
        }
        (Table {
            caption: "Quantiles with 95% intervals, zeros, and what lies beyond the range kept",
            columns: &[
                ("Column", false),
                ("5%", true),
                ("25%", true),
                ("Median", true),
                ("75%", true),
                ("95%", true),
                ("Zeros", true),
                ("Below range", true),
                ("Above range", true),
            ],
            rows,
        }.markup())
        p .aside { "Of the values that are there. Shares come with one standard error; ends of intervals are those of the histogram’s cells." }
    }
}
