//! Figures: a grid of small panels with a common legend, as SVG.

use potluck_report::drawing::axis::TICK_SIZE;
use potluck_report::drawing::{Anchor, Axis, Canvas, Colour, text};

/// How an axis runs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scale {
    Linear,
    Log,
}

/// One curve or cloud of points.
pub(crate) struct Series {
    pub(crate) name: String,
    pub(crate) points: Vec<(f64, f64)>,
}

/// One panel.
pub(crate) struct Panel {
    pub(crate) title: String,
    pub(crate) x_axis: String,
    pub(crate) x_scale: Scale,
    pub(crate) y_scale: Scale,
    pub(crate) y_range: Option<(f64, f64)>,
    pub(crate) series: Vec<Series>,
    /// A line through the points, or points alone.
    pub(crate) joined: bool,
}

/// What a panel takes, and the legend above all of them.
const PANEL: (f64, f64) = (330.0, 260.0);
const LEGEND: f64 = 34.0;

/// Between the edges of a panel and its scales: left, top, right, bottom.
const MARGINS: (f64, f64, f64, f64) = (54.0, 30.0, 14.0, 44.0);

/// The sizes of names and titles of axes, and of titles of panels.
const NAME_SIZE: f64 = 11.5;
const TITLE_SIZE: f64 = 12.5;

/// Series with fewer points than this show them on their line.
const SHOWN_POINTS: usize = 20;

const INK: Colour = "#1A2430";
const FRAME: Colour = "#55606D";
const GRID: Colour = "#E1E5EA";

/// Distinguishable also without colour vision (Okabe & Ito 2008).
const COLOURS: [Colour; 8] =
    ["#000000", "#E69F00", "#D55E00", "#56B4E9", "#0072B2", "#78C878", "#009E73", "#CC79A7"];

/// Draws rows of panels; series of the same name have the same colour everywhere.
pub(crate) fn grid(rows: &[Vec<Panel>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0).max(1) as f64;
    let mut names: Vec<&str> = Vec::new();
    for series in rows.iter().flatten().flat_map(|panel| &panel.series) {
        if !names.contains(&series.name.as_str()) {
            names.push(&series.name);
        }
    }
    let (width, height) = (columns * PANEL.0, rows.len() as f64 * PANEL.1 + LEGEND);
    let mut canvas = Canvas::default();
    canvas.bar((0.0, 0.0), (width, height), "#FFFFFF");
    draw_legend(&mut canvas, &names);
    for (r, row) in rows.iter().enumerate() {
        for (c, panel) in row.iter().enumerate() {
            draw_panel(&mut canvas, (c as f64 * PANEL.0, LEGEND + r as f64 * PANEL.1), panel, &names);
        }
    }
    let marks = canvas.into_marks().into_string();
    format!(
        "<svg width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" xmlns=\"http://www.w3.org/2000/svg\">\n{}</svg>\n",
        marks.replace("><", ">\n<")
    )
}

fn colour(names: &[&str], name: &str) -> Colour {
    let at = names.iter().position(|&candidate| candidate == name).unwrap_or(0);
    COLOURS[at % COLOURS.len()]
}

fn draw_legend(canvas: &mut Canvas, names: &[&str]) {
    let mut x = 14.0;
    for name in names {
        canvas.bar((x, 13.0), (x + 16.0, 19.0), colour(names, name));
        canvas.text(name, (x + 22.0, 16.0), Anchor::Start, NAME_SIZE, INK);
        x += 36.0 + text::ems(name) * NAME_SIZE;
    }
}

/// The range of finite values, a little widened; positive for a logarithmic axis.
fn range(values: impl Iterator<Item = f64>, scale: Scale) -> (f64, f64) {
    let usable = values.filter(|value| value.is_finite() && (scale == Scale::Linear || *value > 0.0));
    let (low, high) =
        usable.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), value| (l.min(value), h.max(value)));
    if low > high {
        return (0.1, 1.0);
    }
    match scale {
        Scale::Linear => {
            let room = 0.05 * (high - low).max(1e-9);
            (low - room, high + room)
        }
        Scale::Log => (low / 1.3, high * 1.3),
    }
}

fn axis(scale: Scale, range: (f64, f64), ends: (f64, f64)) -> Axis {
    match scale {
        Scale::Linear => Axis::linear(range, ends),
        Scale::Log => Axis::logarithmic(range, ends),
    }
}

fn draw_panel(canvas: &mut Canvas, (x, y): (f64, f64), panel: &Panel, names: &[&str]) {
    let points = || panel.series.iter().flat_map(|series| &series.points);
    let across = range(points().map(|point| point.0), panel.x_scale);
    let up = panel.y_range.unwrap_or_else(|| range(points().map(|point| point.1), panel.y_scale));
    let (left, right) = (x + MARGINS.0, x + PANEL.0 - MARGINS.2);
    let (top, bottom) = (y + MARGINS.1, y + PANEL.1 - MARGINS.3);
    let across = axis(panel.x_scale, across, (left, right));
    let up = axis(panel.y_scale, up, (bottom, top));

    let middle = f64::midpoint(left, right);
    // Titles may be wider than the scale, but not than the panel.
    canvas.text(&panel.title, (x + PANEL.0 / 2.0, y + 16.0), Anchor::Middle, TITLE_SIZE, INK);
    canvas.text(&panel.x_axis, (middle, bottom + 32.0), Anchor::Middle, NAME_SIZE, INK);
    for (at, label) in across.ticks(6) {
        canvas.line((at, top), (at, bottom), 1.0, GRID);
        canvas.text(&label, (at, bottom + 13.0), Anchor::Middle, TICK_SIZE, FRAME);
    }
    for (at, label) in up.ticks_upright(6) {
        canvas.line((left, at), (right, at), 1.0, GRID);
        canvas.text(&label, (left - 6.0, at), Anchor::End, TICK_SIZE, FRAME);
    }
    canvas.path(&[(left, top), (left, bottom), (right, bottom)], 1.0, FRAME);

    for series in &panel.series {
        let colour = colour(names, &series.name);
        let finite = series.points.iter().filter(|(x, y)| x.is_finite() && y.is_finite());
        let places: Vec<_> = finite.map(|&(x, y)| (across.at(x), up.at(y))).collect();
        if panel.joined {
            canvas.path(&places, 2.0, colour);
        }
        for &place in &places {
            if !panel.joined {
                canvas.faint_dot(place, 2.0, colour);
            } else if places.len() < SHOWN_POINTS {
                canvas.dot(place, 2.0, colour);
            }
        }
    }
}
