//! Figures: a grid of small panels with a common legend, as SVG.

use anyhow::{Result, anyhow};
use plotters::coord::Shift;
use plotters::coord::ranged1d::{AsRangedCoord, ValueFormatter};
use plotters::prelude::*;

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

const PANEL: (u32, u32) = (330, 260);
const LEGEND: u32 = 34;
const FONT: &str = "sans-serif";

/// Distinguishable also without colour vision (Okabe & Ito 2008).
const COLOURS: [RGBColor; 8] = [
    RGBColor(0, 0, 0),
    RGBColor(230, 159, 0),
    RGBColor(213, 94, 0),
    RGBColor(86, 180, 233),
    RGBColor(0, 114, 178),
    RGBColor(120, 200, 120),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
];

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// Draws rows of panels; series of the same name have the same colour everywhere.
pub(crate) fn grid(rows: &[Vec<Panel>]) -> Result<String> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0).max(1) as u32;
    let mut names: Vec<String> = Vec::new();
    for series in rows.iter().flatten().flat_map(|panel| &panel.series) {
        if !names.contains(&series.name) {
            names.push(series.name.clone());
        }
    }
    let size = (columns * PANEL.0, rows.len() as u32 * PANEL.1 + LEGEND);
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        root.fill(&WHITE).map_err(failed)?;
        let (legend, body) = root.split_vertically(LEGEND);
        draw_legend(&legend, &names)?;
        let areas = body.split_evenly((rows.len(), columns as usize));
        for (r, row) in rows.iter().enumerate() {
            for (c, panel) in row.iter().enumerate() {
                draw_panel(&areas[r * columns as usize + c], panel, &names)?;
            }
        }
        root.present().map_err(failed)?;
    }
    Ok(svg)
}

fn failed(error: impl std::fmt::Display) -> anyhow::Error {
    anyhow!("cannot draw: {error}")
}

fn colour(names: &[String], name: &str) -> RGBColor {
    let at = names.iter().position(|candidate| candidate == name).unwrap_or(0);
    COLOURS[at % COLOURS.len()]
}

fn draw_legend(area: &Area<'_>, names: &[String]) -> Result<()> {
    let mut x = 14;
    for name in names {
        let colour = colour(names, name);
        area.draw(&Rectangle::new([(x, 13), (x + 16, 19)], colour.filled())).map_err(failed)?;
        area.draw(&Text::new(name.clone(), (x + 22, 9), (FONT, 14).into_font())).map_err(failed)?;
        x += 40 + 8 * name.chars().count() as i32;
    }
    Ok(())
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

fn draw_panel(area: &Area<'_>, panel: &Panel, names: &[String]) -> Result<()> {
    let points = || panel.series.iter().flat_map(|series| &series.points);
    let x = range(points().map(|point| point.0), panel.x_scale);
    let y = panel.y_range.unwrap_or_else(|| range(points().map(|point| point.1), panel.y_scale));
    match (panel.x_scale, panel.y_scale) {
        (Scale::Log, Scale::Linear) => draw_chart(area, panel, names, (x.0..x.1).log_scale(), y.0..y.1),
        (Scale::Log, Scale::Log) => {
            draw_chart(area, panel, names, (x.0..x.1).log_scale(), (y.0..y.1).log_scale())
        }
        (Scale::Linear, Scale::Linear) => draw_chart(area, panel, names, x.0..x.1, y.0..y.1),
        (Scale::Linear, Scale::Log) => draw_chart(area, panel, names, x.0..x.1, (y.0..y.1).log_scale()),
    }
}

fn draw_chart<X, Y>(area: &Area<'_>, panel: &Panel, names: &[String], x: X, y: Y) -> Result<()>
where
    X: AsRangedCoord<Value = f64>,
    Y: AsRangedCoord<Value = f64>,
    X::CoordDescType: ValueFormatter<f64>,
    Y::CoordDescType: ValueFormatter<f64>,
{
    let mut chart = ChartBuilder::on(area)
        .caption(&panel.title, (FONT, 15))
        .margin(8)
        .x_label_area_size(36)
        .y_label_area_size(46)
        .build_cartesian_2d(x, y)
        .map_err(failed)?;
    chart
        .configure_mesh()
        .light_line_style(WHITE)
        .x_desc(&panel.x_axis)
        .x_labels(6)
        .y_labels(6)
        .x_label_formatter(&|value| short(*value))
        .y_label_formatter(&|value| short(*value))
        .label_style((FONT, 11))
        .draw()
        .map_err(failed)?;
    for series in &panel.series {
        let colour = colour(names, &series.name);
        let finite = series.points.iter().copied().filter(|(x, y)| x.is_finite() && y.is_finite());
        if panel.joined {
            let points: Vec<(f64, f64)> = finite.collect();
            chart.draw_series(LineSeries::new(points.clone(), colour.stroke_width(2))).map_err(failed)?;
            if points.len() < 20 {
                let dots = points.into_iter().map(|point| Circle::new(point, 2, colour.filled()));
                chart.draw_series(dots).map_err(failed)?;
            }
        } else {
            let dots = finite.map(|point| Circle::new(point, 2, colour.mix(0.6).filled()));
            chart.draw_series(dots).map_err(failed)?;
        }
    }
    Ok(())
}

/// A number on an axis: 0.5, 30, 1e6.
fn short(value: f64) -> String {
    if value == 0.0 || (1e-3..1e4).contains(&value.abs()) {
        let text = format!("{value:.3}");
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        format!("{value:.0e}")
    }
}
