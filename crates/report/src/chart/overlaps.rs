//! Whom parties have in common: a dot with its interval for each two, beside what the study
//! declares.

use potluck_release::people::{Overlap, People};

use super::{
    Geometry, LEGEND_LINE, Layout, NAME_SIZE, SMALL_SIZE, Said, axis_title, grid, palette, row_label, svg,
    text,
};
use crate::drawing::{Anchor, Axis, Canvas};
use crate::numbers;

/// Pairs of parties that are drawn: those with the least in common.
const MOST: usize = 40;

/// What each two parties have in common, as a share of the smaller one's people.
pub fn overlaps_plot_in(people: &People, layout: Layout) -> String {
    let mut drawn: Vec<&Overlap> = people.overlaps.iter().collect();
    if drawn.len() > MOST {
        drawn.sort_by(|a, b| a.share.total_cmp(&b.share));
        drawn.truncate(MOST);
    }
    let names: Vec<String> = drawn.iter().map(|overlap| pair(overlap)).collect();
    let widest = names.iter().map(|name| text::ems(name) * NAME_SIZE).fold(0.0, f64::max);
    let title = vec!["share of the smaller party’s people".to_owned()];
    let geometry = Geometry::for_rows(layout, drawn.len(), widest, title.len()).below_legend(1);
    let (left, right) = match layout {
        Layout::Wide => (geometry.left, geometry.right - 130.0),
        Layout::Narrow => (geometry.left, geometry.right),
    };
    let axis = Axis::linear((0.0, 100.0), (left, right));
    let rows: Vec<String> = drawn
        .iter()
        .map(|overlap| {
            let [low, high] = overlap.interval.map(numbers::percent);
            format!("{}: {}, {low} to {high}", pair(overlap), numbers::percent(overlap.share))
        })
        .collect();
    let said = Said {
        title: "People whom parties have in common".to_owned(),
        description: format!(
            "One row for each two parties, from 0 to 100% of the smaller one’s people, with 95% intervals. {}.",
            rows.join("; ")
        ),
        rows: &rows,
    };
    svg(&geometry, &said, |canvas| {
        legend(canvas, &geometry);
        let step = if layout == Layout::Wide { 20 } else { 25 };
        let ticks: Vec<_> =
            (0..=100).step_by(step).map(|at| (axis.at(f64::from(at)), format!("{at}%"))).collect();
        grid(canvas, &geometry, &ticks);
        for (row, (overlap, name)) in drawn.iter().zip(&names).enumerate() {
            let number = interval(overlap);
            let beside = (layout == Layout::Narrow).then_some(number.as_str());
            row_label(canvas, &geometry, row, name, beside);
            marks(canvas, &axis, geometry.mark(row), overlap);
            if layout == Layout::Wide {
                let place = (geometry.right, geometry.mark(row));
                canvas.text(&number, place, Anchor::End, SMALL_SIZE, palette::SOFT);
            }
        }
        axis_title(canvas, &geometry, &title);
    })
}

/// "north, south".
fn pair(overlap: &Overlap) -> String {
    overlap.parties.join(", ")
}

/// "41% (38% to 44%)".
fn interval(overlap: &Overlap) -> String {
    let [low, high] = overlap.interval.map(numbers::percent);
    format!("{} ({low} to {high})", numbers::percent(overlap.share))
}

/// The declared range as a band, the interval as a line with the share as a dot on it: red where
/// something is wrong.
fn marks(canvas: &mut Canvas, axis: &Axis, y: f64, overlap: &Overlap) {
    let at = |share: f64| axis.at(100.0 * share);
    let [least, largest] = overlap.declared;
    if (least, largest) != (0.0, 1.0) {
        let (left, right) = (at(least) - 2.0, at(largest) + 2.0);
        canvas.bar((left, y - 8.0), (right, y + 8.0), palette::GRID);
    }
    let colour = if overlap.finding.is_some() { palette::NOISE } else { palette::CLEAR };
    let [low, high] = overlap.interval;
    canvas.line((at(low), y), (at(high), y), 2.0, colour);
    canvas.dot((at(overlap.share), y), 4.5, colour);
}

fn legend(canvas: &mut Canvas, geometry: &Geometry) {
    let y = LEGEND_LINE / 2.0;
    let mut x = geometry.left;
    for (name, colour) in [
        ("as it should be", palette::CLEAR),
        ("not as it should be", palette::NOISE),
        ("declared", palette::GRID),
    ] {
        canvas.bar((x, y - 5.5), (x + 11.0, y + 5.5), colour);
        canvas.text(name, (x + 17.0, y), Anchor::Start, SMALL_SIZE, palette::INK);
        x += 17.0 + text::ems(name) * SMALL_SIZE + 14.0;
    }
}
