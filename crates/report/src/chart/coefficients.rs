//! The coefficients of a model with their intervals, as dots and whiskers.

use potluck_release::Model;
use potluck_release::model::{Coefficient, Estimate, Kind, Term};

use super::{Geometry, Layout, Said, axis_title, grid, palette, rise, row_label, step, svg, upright};
use crate::drawing::{Axis, Canvas, Colour, Place};
use crate::numbers::{self, Rounding};
use crate::words::{self, label_unit, per_unit};

/// Intervals that include 0, and reach farther than half of all do, lengthen the scale on either
/// side by at most this part of it: they say little else than how wide they are.
const CUT: f64 = 0.25;

/// The coefficients with their intervals, each for a rise by its feature's step, in the wide
/// layout.
pub fn coefficient_plot(model: &Model) -> String {
    coefficient_plot_in(model, Layout::Wide)
}

/// The coefficients with their intervals, in the label's unit: one row a feature, each for a rise
/// by half of the range that the release kept of it, so that features can be compared.
///
/// Intervals that include 0 have an open dot and a muted colour; a coefficient that something
/// speaks against has a diamond on a dashed line; an arrow head ends a whisker that goes on beyond
/// the scale.
pub fn coefficient_plot_in(model: &Model, layout: Layout) -> String {
    let title = axis_lines(model, layout);
    let geometry = Geometry::new(layout, model, title.len());
    // Half a dot of room at both ends.
    let axis = Axis::linear(range(&model.coefficients), (geometry.left + 6.0, geometry.right - 6.0));
    let rows: Vec<String> = model.coefficients.iter().map(|one| in_words(model, one)).collect();
    let clear = model.coefficients.iter().filter(|one| one.value.excludes_zero()).count();
    let said = Said {
        title: format!(
            "Coefficients of the {} of {}",
            words::regression(model.kind).to_lowercase(),
            model.label.name()
        ),
        description: format!(
            "Dot-and-whisker plot, one row a feature: {clear} of {} intervals at the {} level exclude 0. {}{}. A table gives the numbers.",
            rows.len(),
            numbers::level(model.level),
            marked(model),
            title.join(" "),
        ),
        rows: &rows,
    };
    svg(&geometry, &said, |canvas| {
        grid(canvas, &geometry, &axis.ticks(if layout == Layout::Wide { 7 } else { 4 }));
        upright(canvas, &geometry, axis.at(0.0), 1.4, palette::ZERO);
        for (row, coefficient) in model.coefficients.iter().enumerate() {
            row_label(canvas, &geometry, row, &coefficient.term.name(), step(coefficient).as_deref());
            whisker(canvas, &axis, geometry.mark(row), coefficient);
        }
        axis_title(canvas, &geometry, &title);
    })
}

/// How many diamonds there are, for those who do not see them.
fn marked(model: &Model) -> String {
    match model.coefficients.iter().filter(|one| !one.findings.is_empty()).count() {
        0 => String::new(),
        count => format!("Diamonds on dashed lines: something speaks against {count} of the coefficients. "),
    }
}

/// Whether an interval goes on beyond the scale of the plot.
pub(crate) fn is_cut(model: &Model) -> bool {
    let axis = Axis::linear(range(&model.coefficients), (0.0, 1.0));
    let beyond = |one: &Coefficient| {
        let change = change(one);
        axis.goes_below(change.low) || axis.goes_above(change.high)
    };
    model.coefficients.iter().any(beyond)
}

/// By how much the label changes when the feature rises by its step.
fn change(coefficient: &Coefficient) -> Estimate {
    let (value, rise) = (&coefficient.value, rise(coefficient));
    Estimate {
        estimate: value.estimate * rise,
        standard_error: value.standard_error * rise,
        low: value.low * rise,
        high: value.high * rise,
    }
}

fn whisker(canvas: &mut Canvas, axis: &Axis, y: f64, coefficient: &Coefficient) {
    let value = &change(coefficient);
    if [value.low, value.estimate, value.high].iter().any(|end| end.is_nan()) {
        return;
    }
    let clear = value.excludes_zero();
    let (colour, width): (Colour, f64) = if clear { (palette::CLEAR, 2.4) } else { (palette::UNCLEAR, 1.8) };
    let (low, high) = (axis.at(value.low), axis.at(value.high));
    let is_marked = !coefficient.findings.is_empty();
    if is_marked {
        canvas.dashed((low, y), high, width, colour);
    } else {
        canvas.line((low, y), (high, y), width, colour);
    }
    for (end, beyond, outwards) in
        [(low, axis.goes_below(value.low), -1.0), (high, axis.goes_above(value.high), 1.0)]
    {
        if beyond {
            arrow(canvas, (end + outwards * 5.0, y), outwards * 9.0, colour);
        } else {
            canvas.line((end, y - 4.0), (end, y + 4.0), width, colour);
        }
    }
    if axis.goes_below(value.estimate) || axis.goes_above(value.estimate) {
        return;
    }
    let centre = (axis.at(value.estimate), y);
    match (is_marked, clear) {
        (false, true) => canvas.dot(centre, 5.0, colour),
        (false, false) => canvas.ring(centre, 4.4, 1.8, colour, palette::SURFACE),
        (true, true) => diamond(canvas, centre, 7.0, colour),
        (true, false) => {
            diamond(canvas, centre, 7.0, colour);
            diamond(canvas, centre, 4.4, palette::SURFACE);
        }
    }
}

fn diamond(canvas: &mut Canvas, (x, y): Place, radius: f64, colour: Colour) {
    canvas.area(&[(x - radius, y), (x, y - radius), (x + radius, y), (x, y + radius)], colour);
}

/// An arrow head that points right for a positive `length`.
fn arrow(canvas: &mut Canvas, (x, y): Place, length: f64, colour: Colour) {
    canvas.area(&[(x, y), (x - length, y - 4.5), (x - length, y + 4.5)], colour);
}

/// The ends of the scale: 0, every interval that excludes 0, the shorter half of the others, and
/// the rest where they are not out of proportion. Intervals that nothing is known from, or that
/// cannot be relied on, must not squeeze the others.
fn range(coefficients: &[Coefficient]) -> (f64, f64) {
    let extent = |value: &Estimate| value.low.abs().max(value.high.abs());
    let is_finite = |value: &Estimate| extent(value).is_finite();
    let changes: Vec<Estimate> = coefficients.iter().map(change).filter(is_finite).collect();
    let sure = coefficients.iter().filter(|one| !one.has_unsure_interval());
    let sure: Vec<Estimate> = sure.map(change).filter(is_finite).collect();
    let measure = if sure.is_empty() { &changes } else { &sure };
    let mut extents: Vec<f64> = measure.iter().map(extent).collect();
    extents.sort_by(f64::total_cmp);
    // The lower one of two in the middle, so that of two coefficients one does not set the scale.
    let usual = extents.get(extents.len().saturating_sub(1) / 2).copied().unwrap_or(1.0);
    let whole = measure.iter().filter(|value| value.excludes_zero() || extent(value) <= usual);
    let span = |(low, high): (f64, f64), value: &Estimate| (low.min(value.low), high.max(value.high));
    let (low, high) = whole.fold((0.0_f64, 0.0_f64), span);
    let more = CUT * (high - low);
    let ends = changes.iter().fold((low, high), span);
    let (low, high) = (ends.0.max(low - more), ends.1.min(high + more));
    let margin = 0.03 * (high - low);
    (low - margin, high + margin)
}

/// What the axis shows.
fn axis_lines(model: &Model, layout: Layout) -> Vec<String> {
    let name = model.label.name();
    let change = match (&model.label, &model.label_unit) {
        _ if model.kind == Kind::Logistic => format!("change of the log odds of {name}"),
        (Term::Numeric { .. }, Some(unit)) => format!("change of {name} in {unit}"),
        (Term::Numeric { .. }, None) => format!("change of {name}"),
        (Term::Level { .. }, _) => format!("change of the share with {name}"),
    };
    let when =
        ["when a feature rises by the step".to_owned(), "at its name, or its level applies".to_owned()];
    match layout {
        Layout::Wide => vec![change, when.join(" ")],
        Layout::Narrow => [change].into_iter().chain(when).collect(),
    }
}

/// Everything about one row, in original units too.
fn in_words(model: &Model, coefficient: &Coefficient) -> String {
    let clause = |value: &Estimate| {
        let rounding = Rounding::of(value);
        let [estimate, low, high] = [value.estimate, value.low, value.high].map(|x| rounding.show(x));
        format!("{estimate} ({low} to {high})")
    };
    format!(
        "{}{}, released by {}: {} {}; {} {}{}",
        coefficient.term.name(),
        step(coefficient).map_or_else(String::new, |step| format!(" ({step})")),
        coefficient.party,
        clause(&change(coefficient)),
        label_unit(model),
        clause(&coefficient.value),
        per_unit(model, coefficient),
        coefficient.mark().map_or_else(String::new, |mark| format!("; {mark}")),
    )
}
