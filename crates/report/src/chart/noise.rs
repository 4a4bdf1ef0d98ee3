//! How much of each feature's released variance is privacy noise, as bars.

use potluck_release::Model;

use super::{Geometry, Layout, NAME_SIZE, Said, axis_title, grid, palette, row_label, svg};
use crate::drawing::{Anchor, Axis};
use crate::numbers;

/// The noise share of every feature, in the wide layout.
pub fn noise_plot(model: &Model) -> String {
    noise_plot_in(model, Layout::Wide)
}

/// The noise share of every feature: the part of its released variance that is privacy noise, 0 to
/// 100%.
pub fn noise_plot_in(model: &Model, layout: Layout) -> String {
    let title = vec!["part of the released variance that is privacy noise".to_owned()];
    let geometry = Geometry::new(layout, model, title.len());
    // Beside the bars there is room for their numbers.
    let (left, right) = match layout {
        Layout::Wide => (geometry.left, geometry.right - 78.0),
        Layout::Narrow => (geometry.left, geometry.right),
    };
    let axis = Axis::linear((0.0, 100.0), (left, right));
    let rows: Vec<String> = model
        .coefficients
        .iter()
        .map(|one| {
            let share = numbers::percent(one.noise_share);
            format!("{}, released by {}: {share} noise", one.term.name(), one.party)
        })
        .collect();
    let said = Said {
        title: "Privacy noise in each feature".to_owned(),
        description: format!(
            "Bar chart, one row a feature, from 0 to 100% of its released variance. {}.",
            rows.join("; ")
        ),
        rows: &rows,
    };
    svg(&geometry, &said, |canvas| {
        let step = if layout == Layout::Wide { 20 } else { 25 };
        let ticks: Vec<_> =
            (0..=100).step_by(step).map(|at| (axis.at(f64::from(at)), format!("{at}%"))).collect();
        grid(canvas, &geometry, &ticks);
        for (row, coefficient) in model.coefficients.iter().enumerate() {
            let number = numbers::percent(coefficient.noise_share);
            let beside = (layout == Layout::Narrow).then_some(number.as_str());
            row_label(canvas, &geometry, row, &coefficient.term.name(), beside);
            let y = geometry.mark(row);
            let half = if layout == Layout::Wide { 7.0 } else { 5.5 };
            let (zero, end) = (axis.at(0.0), axis.at(coefficient.noise_share * 100.0));
            canvas.bar((zero, y - half), (axis.at(100.0), y + half), palette::GRID);
            canvas.bar((zero, y - half), (end, y + half), palette::NOISE);
            if layout == Layout::Wide {
                canvas.text(&number, (geometry.right, y), Anchor::End, NAME_SIZE, palette::INK);
            }
        }
        axis_title(canvas, &geometry, &title);
    })
}
