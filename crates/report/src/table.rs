//! Tables that turn into cards on a phone and stay tables for those who listen to them.

use maud::{Markup, html};

/// A table whose first column names the rows.
pub(crate) struct Table<'a> {
    /// What it shows, for those who listen; sighted readers have the heading.
    pub(crate) caption: &'a str,
    /// Titles of the columns, and whether they hold numbers.
    pub(crate) columns: &'a [(&'a str, bool)],
    /// Rows of cells, each with a class of its own.
    pub(crate) rows: Vec<(&'static str, Vec<Markup>)>,
}

impl Table<'_> {
    pub(crate) fn markup(&self) -> Markup {
        // The roles repeat what the elements mean, because a stylesheet that lays rows out as cards
        // makes some browsers forget it.
        html! {
            table role="table" {
                caption { (self.caption) }
                thead role="rowgroup" {
                    tr role="row" {
                        @for (title, number) in self.columns {
                            th role="columnheader" scope="col" .number[*number] { (title) }
                        }
                    }
                }
                tbody role="rowgroup" {
                    @for (class, cells) in &self.rows {
                        tr role="row" class=[(!class.is_empty()).then_some(class)] {
                            @for (at, (cell, (title, number))) in cells.iter().zip(self.columns).enumerate() {
                                @if at == 0 {
                                    th role="rowheader" scope="row" { (cell) }
                                } @else {
                                    td role="cell" .number[*number] data-label=(title) { div { (cell) } }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}
