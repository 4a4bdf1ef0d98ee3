//! Many releases of the same made-up people: one dot an estimate.

use super::{Geometry, Layout, NAME_SIZE, Said, axis_title, grid, palette, row_label, svg, text, upright};
use crate::drawing::Axis;
use crate::numbers;
use crate::preview::{Preview, PreviewCoefficient};

/// Estimates further out than this many interval widths are drawn at the end of the scale.
const CUT: f64 = 3.0;

/// The estimates of every release, the typical interval about the non-private coefficient, and that
/// coefficient.
pub(crate) fn preview_plot(preview: &Preview<'_>, layout: Layout) -> String {
    let title = match layout {
        Layout::Wide => vec![format!(
            "change of {} in its standard deviations when a feature rises by one of its own",
            preview.label
        )],
        Layout::Narrow => vec![
            format!("change of {} in its standard deviations", preview.label),
            "when a feature rises by one of its own".to_owned(),
        ],
    };
    let widest = preview.coefficients.iter().map(|one| text::ems(one.name) * NAME_SIZE).fold(0.0, f64::max);
    let geometry = Geometry::for_rows(layout, preview.coefficients.len(), widest, title.len());
    let axis = Axis::linear(range(&preview.coefficients), (geometry.left + 6.0, geometry.right - 6.0));
    let rows: Vec<String> = preview.coefficients.iter().map(in_words).collect();
    let said = Said {
        title: format!("Simulated coefficients of the regression of {}", preview.label),
        description: format!(
            "One row a feature, one dot a release, a line where the non-private coefficient is. {}.",
            rows.join("; ")
        ),
        rows: &rows,
    };
    svg(&geometry, &said, |canvas| {
        grid(canvas, &geometry, &axis.ticks(if layout == Layout::Wide { 7 } else { 4 }));
        upright(canvas, &geometry, axis.at(0.0), 1.4, palette::ZERO);
        for (row, one) in preview.coefficients.iter().enumerate() {
            row_label(canvas, &geometry, row, one.name, None);
            let y = geometry.mark(row);
            let (low, high) = (one.non_private - one.half_width, one.non_private + one.half_width);
            canvas.bar((axis.at(low), y - 6.0), (axis.at(high), y + 6.0), palette::GRID);
            for &estimate in &one.estimates {
                canvas.dot((axis.at(estimate), y), 2.6, palette::UNCLEAR);
            }
            canvas.line(
                (axis.at(one.non_private), y - 9.0),
                (axis.at(one.non_private), y + 9.0),
                2.4,
                palette::CLEAR,
            );
        }
        axis_title(canvas, &geometry, &title);
    })
}

fn range(coefficients: &[PreviewCoefficient<'_>]) -> (f64, f64) {
    let mut widths: Vec<f64> = coefficients.iter().map(|one| one.half_width).collect();
    widths.sort_by(f64::total_cmp);
    let usual = widths.get(widths.len() / 2).copied().unwrap_or(1.0);
    let ends = coefficients.iter().flat_map(|one| {
        let reach = one.half_width.min(CUT * usual);
        [one.non_private - reach, one.non_private + reach]
    });
    let (low, high) = ends
        .filter(|end| end.is_finite())
        .fold((0.0_f64, 0.0_f64), |(low, high), end| (low.min(end), high.max(end)));
    let margin = 0.05 * (high - low);
    (low - margin, high + margin)
}

fn in_words(one: &PreviewCoefficient<'_>) -> String {
    format!(
        "{}: non-private {}, typical interval plus or minus {}",
        one.name,
        numbers::significant(one.non_private, 3),
        numbers::significant(one.half_width, 3)
    )
}
