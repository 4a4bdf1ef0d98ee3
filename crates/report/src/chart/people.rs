//! How many people it takes to resolve an effect, from the good case to the hard one.

use potluck_release::forecast::{Alike, Forecast, People};

use super::{Geometry, Layout, NAME_SIZE, Said, axis_title, grid, palette, row_label, svg, text, upright};
use crate::drawing::{Axis, Canvas};
use crate::numbers;

/// How many people it takes to resolve the effect that a forecast is about, a row for columns of
/// which the same is to be expected, beside as many as a study has; nothing where it is not known.
pub fn people_plot_in(forecast: &Forecast, rows: u64, layout: Layout) -> Option<String> {
    let scale = forecast.scale(rows)?;
    let all = forecast.alike();
    let title = title(forecast);
    let widest = all.iter().map(|of| text::ems(&of.name()) * NAME_SIZE).fold(0.0, f64::max);
    let geometry = Geometry::for_rows(layout, all.len(), widest, title.len());
    let axis = Axis::logarithmic(scale, (geometry.left, geometry.right));
    let said: Vec<String> = all.iter().map(in_words).collect();
    let said = Said {
        title: "How many people it takes".to_owned(),
        description: format!(
            "Range chart on a logarithmic scale; the study has {} people. {}.",
            numbers::count(rows),
            said.join("; ")
        ),
        rows: &said,
    };
    Some(svg(&geometry, &said, |canvas| {
        grid(canvas, &geometry, &axis.ticks(if layout == Layout::Wide { 8 } else { 4 }));
        upright(canvas, &geometry, axis.at(rows as f64), 1.6, palette::NOISE);
        for (at, of) in all.iter().enumerate() {
            row_label(canvas, &geometry, at, &of.name(), None);
            range(canvas, &axis, geometry.mark(at), geometry.right, of.people);
        }
        axis_title(canvas, &geometry, &title);
    }))
}

fn title(forecast: &Forecast) -> Vec<String> {
    let effect = numbers::significant(forecast.effect, 3);
    let (what, how) = (
        format!("people to resolve an effect of {effect} with {} power", numbers::percent(forecast.power)),
        "good, typical (dot) and hard case; upright: this study".to_owned(),
    );
    vec![what, how]
}

/// A line from the good case to the hard one, on to the end of the scale where that takes more
/// people than anybody has, with a dot at the typical one.
fn range(canvas: &mut Canvas, axis: &Axis, y: f64, end: f64, people: People) {
    let place = |people: Option<u64>| people.map(|people| axis.at(people as f64));
    let Some(good) = place(people.good) else { return };
    let hard = place(people.hard);
    canvas.line((good, y), (hard.unwrap_or(end), y), 2.0, palette::CLEAR);
    for x in [Some(good), hard].into_iter().flatten() {
        canvas.line((x, y - 5.0), (x, y + 5.0), 2.0, palette::CLEAR);
    }
    if let Some(typical) = place(people.typical) {
        canvas.dot((typical, y), 4.5, palette::CLEAR);
    }
}

fn in_words(of: &Alike<'_>) -> String {
    let [good, typical, hard] = of.people.all().map(|people| match people {
        Some(people) => numbers::count(people),
        None => "more than anybody has".to_owned(),
    });
    format!("{}: {good} in the good case, {typical} in the typical one, {hard} in the hard one", of.name())
}
