//! How well the best attack could tell whether a person's true values were used, as bars.

use super::{Geometry, Layout, NAME_SIZE, Said, axis_title, grid, palette, row_label, svg, text, upright};
use crate::drawing::{Anchor, Axis};

/// The rate of false alarms at which guarantees are compared, in percent.
const FALSE_ALARMS: f64 = 5.0;

/// What somebody sees, and how often they notice a person at most.
#[derive(Clone, Debug)]
pub struct Noticed {
    /// What they see, such as "one release".
    pub sight: String,
    /// The largest chance to notice, at a false alarm in 5 cases of 100.
    pub chance: f64,
}

/// The largest chance to notice a person, one row for each thing that somebody may see, beside
/// blind guessing.
pub fn noticed_plot_in(rows: &[Noticed], layout: Layout) -> String {
    let title = match layout {
        Layout::Wide => {
            vec!["cases of 100 in which a person is noticed at most, at 5 false alarms of 100".to_owned()]
        }
        Layout::Narrow => {
            vec![
                "cases of 100 in which a person is noticed".to_owned(),
                "at most, at 5 false alarms of 100".to_owned(),
            ]
        }
    };
    let widest = rows.iter().map(|row| text::ems(&row.sight) * NAME_SIZE).fold(0.0, f64::max);
    let geometry = Geometry::for_rows(layout, rows.len(), widest, title.len());
    let (left, right) = match layout {
        Layout::Wide => (geometry.left, geometry.right - 78.0),
        Layout::Narrow => (geometry.left, geometry.right),
    };
    let axis = Axis::linear((0.0, 100.0), (left, right));
    let said: Vec<String> =
        rows.iter().map(|row| format!("{}: {} of 100", row.sight, cases(row.chance))).collect();
    let said = Said {
        title: "How often a person is noticed at most".to_owned(),
        description: format!(
            "Bar chart, from 0 to 100 cases of 100; blind guessing notices 5. {}.",
            said.join("; ")
        ),
        rows: &said,
    };
    svg(&geometry, &said, |canvas| {
        let step = if layout == Layout::Wide { 20 } else { 25 };
        let ticks: Vec<_> =
            (0..=100).step_by(step).map(|at| (axis.at(f64::from(at)), at.to_string())).collect();
        grid(canvas, &geometry, &ticks);
        for (at, row) in rows.iter().enumerate() {
            let number = cases(row.chance);
            let beside = (layout == Layout::Narrow).then_some(number.as_str());
            row_label(canvas, &geometry, at, &row.sight, beside);
            let y = geometry.mark(at);
            let half = if layout == Layout::Wide { 8.0 } else { 5.5 };
            let end = axis.at((100.0 * row.chance).clamp(0.0, 100.0));
            canvas.bar((axis.at(0.0), y - half), (axis.at(100.0), y + half), palette::GRID);
            canvas.bar((axis.at(0.0), y - half), (end, y + half), palette::CLEAR);
            if layout == Layout::Wide {
                canvas.text(&number, (geometry.right, y), Anchor::End, NAME_SIZE, palette::INK);
            }
        }
        upright(canvas, &geometry, axis.at(FALSE_ALARMS), 1.4, palette::NOISE);
        axis_title(canvas, &geometry, &title);
    })
}

/// Cases of 100, as the statements have them.
fn cases(chance: f64) -> String {
    format!("{:.2}", 100.0 * chance)
}
