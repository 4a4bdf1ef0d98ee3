//! How the values of each numeric column are distributed: a histogram a row, each on the range that
//! its release keeps.

use potluck_release::summary::{ColumnSummary, Shape};

use super::{Geometry, Layout, NAME_SIZE, SMALL_SIZE, Said, palette, row_label, svg, text};
use crate::drawing::{Anchor, Axis, Canvas};
use crate::numbers;

/// Columns that are drawn.
const MOST: usize = 60;
/// Height of a row: its bars, and the numbers below them.
const BARS: f64 = 36.0;
const NUMBERS: f64 = 20.0;

/// The histograms of the columns that have one; nothing where none has.
pub fn distributions_plot_in(columns: &[&ColumnSummary], layout: Layout) -> Option<String> {
    let shaped = columns.iter().filter_map(|column| Some((*column, column.distribution.as_ref()?)));
    let drawn: Vec<(&ColumnSummary, &Shape)> = shaped.take(MOST).collect();
    if drawn.is_empty() {
        return None;
    }
    let widest = drawn.iter().map(|(column, _)| text::ems(&column.name) * NAME_SIZE).fold(0.0, f64::max);
    let mut geometry = Geometry::for_rows(layout, drawn.len(), widest, 0);
    let above = if layout == Layout::Narrow { 20.0 } else { 0.0 };
    geometry.row_height = above + BARS + NUMBERS;
    geometry.height = geometry.top + geometry.row_height * drawn.len() as f64 + 4.0;
    let rows: Vec<String> = drawn.iter().map(|(column, shape)| in_words(column, shape)).collect();
    let said = Said {
        title: "How the values of columns are distributed".to_owned(),
        description: format!("Histograms, one row a column. {}. A table gives the numbers.", rows.join("; ")),
        rows: &rows,
    };
    Some(svg(&geometry, &said, |canvas| {
        for (row, (column, shape)) in drawn.iter().enumerate() {
            let top = geometry.row_top(row) + above;
            match layout {
                Layout::Wide => row_label(canvas, &geometry, row, &column.name, None),
                Layout::Narrow => {
                    let name = text::ellipsize(&column.name, (geometry.right - geometry.left) / NAME_SIZE);
                    canvas.text(&name, (geometry.left, top - 8.0), Anchor::Start, NAME_SIZE, palette::INK);
                }
            }
            histogram(canvas, &geometry, top, column.range, shape);
        }
    }))
}

fn histogram(canvas: &mut Canvas, geometry: &Geometry, top: f64, [low, high]: [f64; 2], shape: &Shape) {
    let axis = Axis::linear((low, high), (geometry.left, geometry.right));
    let floor = top + BARS;
    let most = shape.bars.iter().map(|bar| bar.value).fold(0.0, f64::max);
    let count = shape.bars.len() as f64;
    let end = |at: usize| geometry.left + (geometry.right - geometry.left) * at as f64 / count;
    for (at, bar) in shape.bars.iter().enumerate() {
        let height = if most > 0.0 { (BARS - 4.0) * bar.value / most } else { 0.0 };
        // What noise alone could have made is grey.
        let colour = if bar.value > 2.0 * bar.error { palette::MIXING } else { palette::GRID };
        if height >= 0.1 {
            canvas.bar((end(at) + 0.5, floor - height), (end(at + 1) - 0.5, floor), colour);
        }
    }
    canvas.line((geometry.left, floor), (geometry.right, floor), 1.0, palette::ZERO);
    let width = high - low;
    for (x, anchor) in [(low, Anchor::Start), (high, Anchor::End)] {
        canvas.text(
            &numbers::within(x, width),
            (axis.at(x), floor + 10.0),
            anchor,
            SMALL_SIZE,
            palette::SOFT,
        );
    }
    let Some(median) = shape.quantiles.get(shape.quantiles.len() / 2) else { return };
    let words = format!("median {}", numbers::within(median.value, width));
    let half = text::ems(&words) * SMALL_SIZE / 2.0;
    let ends = text::ems("−100,000") * SMALL_SIZE;
    let (first, last) = (geometry.left + ends + half, geometry.right - ends - half);
    let x = axis.at(median.value).clamp(first.min(last), last.max(first));
    canvas.line((axis.at(median.value), top), (axis.at(median.value), floor + 3.0), 1.5, palette::INK);
    canvas.text(&words, (x, floor + 10.0), Anchor::Middle, SMALL_SIZE, palette::INK);
}

fn in_words(column: &ColumnSummary, shape: &Shape) -> String {
    let quantile = |at: usize| shape.quantiles.get(at).map_or(f64::NAN, |quantile| quantile.value);
    let width = column.range[1] - column.range[0];
    let [low, middle, high] = [0, 2, 4].map(|at| numbers::within(quantile(at), width));
    format!("{}: median {middle}, 90% of the values between {low} and {high}", column.name)
}
