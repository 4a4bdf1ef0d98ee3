//! Correlations as a triangle of dots: the larger, the stronger.

use maud::html;
use potluck_release::correlations::{Correlations, Pair};

use super::{Layout, NAME_SIZE, SMALL_SIZE, palette};
use crate::drawing::text::{self, ellipsize};
use crate::drawing::{Anchor, Canvas};
use crate::numbers;

/// More columns than this are too small to see: the first ones of the chain are drawn.
const MOST: usize = 40;
/// Cells that are narrower than this have no room for a number.
const ROOM_FOR_NUMBER: f64 = 38.0;

/// Where things are, in pixels.
struct Grid {
    left: f64,
    top: f64,
    cell: f64,
    width: f64,
    height: f64,
}

impl Grid {
    fn new(layout: Layout, names: &[String]) -> Self {
        let widest = names.iter().map(|name| text::ems(name)).fold(0.0, f64::max) * NAME_SIZE + 34.0;
        let (width, left) = match layout {
            Layout::Wide => (800.0, widest.clamp(80.0, 260.0)),
            Layout::Narrow => (360.0, widest.clamp(60.0, 130.0)),
        };
        let cell = ((width - left - 8.0) / names.len() as f64).min(52.0);
        let top = 26.0;
        Self { left, top, cell, width, height: top + cell * names.len() as f64 + 8.0 }
    }

    fn middle(&self, at: usize) -> f64 {
        self.cell * (at as f64 + 0.5)
    }
}

/// What the triangle shows, with its words beside it for those who do not see it.
///
/// A filled dot is a correlation whose interval excludes 0, blue for a positive and orange for a
/// negative one; an open ring is one that the releases leave open; a dashed cell has an interval
/// that cannot be relied on.
pub fn correlation_plot_in(correlations: &Correlations, layout: Layout) -> String {
    let names = &correlations.columns[..correlations.columns.len().min(MOST)];
    let grid = Grid::new(layout, names);
    let mut canvas = Canvas::default();
    let room = (grid.left - 34.0) / NAME_SIZE;
    let mut cells = Vec::new();
    for (row, name) in names.iter().enumerate() {
        let y = grid.top + grid.middle(row);
        let number = (row + 1).to_string();
        canvas.text(&number, (22.0, y), Anchor::End, SMALL_SIZE, palette::SOFT);
        canvas.text(&ellipsize(name, room), (28.0, y), Anchor::Start, NAME_SIZE, palette::INK);
        let x = grid.left + grid.middle(row);
        canvas.text(&number, (x, grid.top + grid.middle(row)), Anchor::Middle, SMALL_SIZE, palette::SOFT);
        for (column, other) in names[..row].iter().enumerate() {
            let at = (grid.left + grid.middle(column), y);
            if let Some(pair) = correlations.pair(name, other) {
                dot(&mut canvas, &grid, at, pair);
                cells.push((at, in_words(pair)));
            }
        }
    }
    let class = match layout {
        Layout::Wide => "potluck-chart potluck-wide",
        Layout::Narrow => "potluck-chart potluck-narrow",
    };
    let resolved = correlations.pairs.iter().filter(|pair| pair.resolved).count();
    let words = format!(
        "Triangle of dots, one a pair of columns: {resolved} of {} intervals at the {} level exclude 0. A table gives the numbers.",
        correlations.pairs.len(),
        numbers::level(correlations.level),
    );
    let (width, height) = (grid.width, grid.height);
    let half = grid.cell / 2.0;
    let markup = html! {
        svg xmlns="http://www.w3.org/2000/svg" class=(class) role="img"
            width=(width) height=(height) viewBox={ "0 0 " (width) " " (height) } {
            title { "Correlations of columns" }
            desc { (words) }
            (canvas.into_marks())
            @for ((x, y), words) in &cells {
                rect x=(x - half) y=(y - half) width=(grid.cell) height=(grid.cell) fill="none" pointer-events="all" {
                    title { (text::printable(words)) }
                }
            }
        }
    };
    markup.into_string()
}

fn dot(canvas: &mut Canvas, grid: &Grid, (x, y): (f64, f64), pair: &Pair) {
    let with_number = grid.cell >= ROOM_FOR_NUMBER;
    let (most, raised) = if with_number { (0.28 * grid.cell, 7.0) } else { (0.44 * grid.cell, 0.0) };
    let radius = most * pair.estimate.abs().sqrt().max(0.12);
    let place = (x, y - raised);
    let colour = match (pair.resolved, pair.estimate > 0.0) {
        (false, _) => palette::UNCLEAR,
        (true, true) => palette::CLEAR,
        (true, false) => palette::NOISE,
    };
    if pair.resolved && !pair.has_unsure_interval() {
        canvas.dot(place, radius, colour);
    } else {
        canvas.ring(place, radius, 1.4, colour, palette::SURFACE);
    }
    if with_number {
        let shown = two_decimals(pair.estimate);
        let ink = if pair.resolved { palette::INK } else { palette::UNCLEAR };
        canvas.text(&shown, (x, y + 0.33 * grid.cell), Anchor::Middle, 11.0, ink);
    }
}

/// As ".42" and "−.10": the digit before the point says nothing.
fn two_decimals(value: f64) -> String {
    let text = format!("{:.2}", value.abs());
    let text = text.strip_prefix('0').unwrap_or(&text).to_owned();
    if value < 0.0 && text != ".00" { format!("−{text}") } else { text }
}

fn in_words(pair: &Pair) -> String {
    let Pair { one, other, estimate, low, high, resolved, .. } = pair;
    let open = if *resolved { "" } else { ", not resolved" };
    format!("{one} and {other}: {estimate:.2} ({low:.2} to {high:.2}){open}").replace('-', "−")
}

#[cfg(test)]
mod tests {
    use super::two_decimals;

    #[test]
    fn correlations_are_short() {
        assert_eq!(two_decimals(0.421), ".42");
        assert_eq!(two_decimals(-0.1), "−.10");
        assert_eq!(two_decimals(-0.001), ".00");
        assert_eq!(two_decimals(1.0), "1.00");
    }
}
