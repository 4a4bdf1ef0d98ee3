//! Charts as SVG: a fixed palette drawn with plotters, and an accessible element around it.
//!
//! The drawing carries plain colours, so a chart that is saved on its own looks right. A page
//! recolours it, for dark screens too, by rules of the stylesheet that select on those very colours
//! (`.potluck-chart [fill="#1A2430"]`), so the drawing itself needs no second version.

mod axis;
pub(crate) mod coefficients;
pub(crate) mod noise;
pub(crate) mod noticed;
pub(crate) mod parts;
pub(crate) mod preview;
mod text;

use maud::{PreEscaped, html};
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use potluck_release::Model;
use potluck_release::model::{Coefficient, Term};

use crate::numbers;
use text::ellipsize;

/// How a chart is laid out. Text has the same size in both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Names beside the marks, 800 pixels wide: desktop and paper.
    Wide,
    /// Names above the marks, 360 pixels wide: phones.
    Narrow,
}

/// The colours of the drawing; the stylesheet has a rule for each.
mod palette {
    use plotters::style::RGBColor;

    /// Names and numbers.
    pub(super) const INK: RGBColor = RGBColor(0x1a, 0x24, 0x30);
    /// Steps, tick labels, axis titles.
    pub(super) const SOFT: RGBColor = RGBColor(0x55, 0x60, 0x6d);
    /// Grid lines and the empty part of bars.
    pub(super) const GRID: RGBColor = RGBColor(0xe1, 0xe5, 0xea);
    /// The line at 0.
    pub(super) const ZERO: RGBColor = RGBColor(0x6f, 0x7a, 0x87);
    /// Intervals that exclude 0.
    pub(super) const CLEAR: RGBColor = RGBColor(0x0b, 0x5a, 0x8a);
    /// Intervals that include 0.
    pub(super) const UNCLEAR: RGBColor = RGBColor(0x8b, 0x95, 0xa1);
    /// Privacy noise.
    pub(super) const NOISE: RGBColor = RGBColor(0xb4, 0x53, 0x09);
    /// People who share a released row.
    pub(super) const MIXING: RGBColor = RGBColor(0x2b, 0x84, 0xa8);
    /// People being a sample.
    pub(super) const SAMPLING: RGBColor = RGBColor(0x8b, 0x95, 0xa1);
    /// Correlations between parties that the releases leave open.
    pub(super) const CORRELATIONS: RGBColor = RGBColor(0x00, 0x80, 0x60);
    /// Allowance for clipped values.
    pub(super) const CLIPPING: RGBColor = RGBColor(0x6b, 0x3f, 0x8f);
    /// What lies behind the chart.
    pub(super) const SURFACE: RGBColor = RGBColor(0xff, 0xff, 0xff);

    #[cfg(test)]
    pub(super) const ALL: [RGBColor; 12] =
        [INK, SOFT, GRID, ZERO, CLEAR, UNCLEAR, NOISE, MIXING, CORRELATIONS, SAMPLING, CLIPPING, SURFACE];
}

/// Text sizes in pixels.
const NAME_SIZE: f64 = 13.0;
const SMALL_SIZE: f64 = 11.5;

/// Above this many rows the wide layout leaves the steps out, and every chart repeats its axis on
/// top.
const COMPACT_ABOVE: usize = 40;
const AXIS_TWICE_ABOVE: usize = 24;

/// Height of a line of legend.
const LEGEND_LINE: f64 = 20.0;

/// Between names and the scale.
const GAP: f64 = 18.0;

/// Where things are, in pixels.
#[derive(Clone, Copy, Debug)]
struct Geometry {
    layout: Layout,
    rows: usize,
    width: f64,
    /// Ends of the scale.
    left: f64,
    right: f64,
    top: f64,
    row_height: f64,
    height: f64,
}

impl Geometry {
    /// For the features of a model above `title_lines` lines of axis title.
    fn new(layout: Layout, model: &Model, title_lines: usize) -> Self {
        let label = |one: &Coefficient| {
            let step = step(one).map_or(0.0, |step| text::ems(&step) * SMALL_SIZE);
            step.max(text::ems(&one.term.name()) * NAME_SIZE)
        };
        let widest = model.coefficients.iter().map(label).fold(0.0, f64::max);
        Self::for_rows(layout, model.coefficients.len(), widest, title_lines)
    }

    /// For so many rows, the widest label of which takes `widest` pixels.
    fn for_rows(layout: Layout, rows: usize, widest: f64, title_lines: usize) -> Self {
        let (width, left, right) = match layout {
            // A pixel more, so that rounding does not shorten the widest label.
            Layout::Wide => (800.0, (widest + GAP + 1.0).clamp(100.0, 270.0), 788.0),
            Layout::Narrow => (360.0, 8.0, 352.0),
        };
        let row_height = match layout {
            Layout::Wide if rows > COMPACT_ABOVE => 22.0,
            Layout::Wide => 38.0,
            Layout::Narrow => 44.0,
        };
        let top = if rows > AXIS_TWICE_ABOVE { 24.0 } else { 4.0 };
        let below = 26.0 + 17.0 * title_lines as f64;
        Self {
            layout,
            rows,
            width,
            left,
            right,
            top,
            row_height,
            height: top + row_height * rows as f64 + below,
        }
    }

    /// The same with room for so many lines of legend on top.
    fn below_legend(mut self, lines: usize) -> Self {
        let room = LEGEND_LINE * lines as f64 + 6.0;
        self.top += room;
        self.height += room;
        self
    }

    fn bottom(&self) -> f64 {
        self.top + self.row_height * self.rows as f64
    }

    /// Upper edge of a row.
    fn row_top(&self, row: usize) -> f64 {
        self.top + self.row_height * row as f64
    }

    /// Where the marks of a row are centred.
    fn mark(&self, row: usize) -> f64 {
        let part = match self.layout {
            Layout::Wide => 0.5,
            Layout::Narrow => 0.72,
        };
        self.row_top(row) + part * self.row_height
    }
}

/// A drawing in pixels. Plotters has whole units only, so the drawing is ten times as large as it
/// is shown.
struct Canvas<'a> {
    area: DrawingArea<SVGBackend<'a>, Shift>,
}

const UNITS: f64 = 10.0;
/// Plotters takes the height of a line and writes the size of the letters.
const LINE_TO_LETTERS: f64 = 1.24;
const DRAWN: &str = "a string takes every drawing";

fn units(x: f64) -> i32 {
    (x * UNITS).round() as i32
}

fn at((x, y): (f64, f64)) -> (i32, i32) {
    (units(x), units(y))
}

impl Canvas<'_> {
    fn line(&self, from: (f64, f64), to: (f64, f64), width: f64, colour: RGBColor) {
        let style = colour.stroke_width(units(width) as u32);
        self.area.draw(&PathElement::new(vec![at(from), at(to)], style)).expect(DRAWN);
    }

    /// A line in dashes of four pixels.
    fn dashed(&self, (from, y): (f64, f64), to: f64, width: f64, colour: RGBColor) {
        const DASH: f64 = 4.0;
        let dashes = ((to - from) / (2.0 * DASH)).ceil().max(1.0) as usize;
        for start in (0..dashes).map(|at| from + 2.0 * DASH * at as f64) {
            self.line((start, y), ((start + DASH).min(to), y), width, colour);
        }
    }

    fn dot(&self, centre: (f64, f64), radius: f64, colour: RGBColor) {
        self.area.draw(&Circle::new(at(centre), units(radius), colour.filled())).expect(DRAWN);
    }

    /// A dot that is open: what lies behind it is covered.
    fn ring(&self, centre: (f64, f64), radius: f64, width: f64, colour: RGBColor) {
        self.dot(centre, radius, palette::SURFACE);
        let style = colour.stroke_width(units(width) as u32);
        self.area.draw(&Circle::new(at(centre), units(radius), style)).expect(DRAWN);
    }

    fn diamond(&self, (x, y): (f64, f64), radius: f64, colour: RGBColor) {
        let corners = [(x - radius, y), (x, y - radius), (x + radius, y), (x, y + radius)].map(at).to_vec();
        self.area.draw(&Polygon::new(corners, colour)).expect(DRAWN);
    }

    fn bar(&self, from: (f64, f64), to: (f64, f64), colour: RGBColor) {
        self.area.draw(&Rectangle::new([at(from), at(to)], colour.filled())).expect(DRAWN);
    }

    /// An arrow head whose tip is at `tip`, pointing right for a positive `length`.
    fn arrow(&self, tip: (f64, f64), length: f64, colour: RGBColor) {
        let (x, y) = tip;
        let corners = [tip, (x - length, y - 4.5), (x - length, y + 4.5)].map(at).to_vec();
        self.area.draw(&Polygon::new(corners, colour)).expect(DRAWN);
    }

    fn text(&self, text: &str, anchor: (f64, f64), side: HPos, size: f64, colour: RGBColor) {
        let style = TextStyle::from(("sans-serif", size * UNITS * LINE_TO_LETTERS).into_font())
            .color(&colour)
            .pos(Pos::new(side, VPos::Center));
        self.area.draw(&Text::new(text::printable(text), at(anchor), style)).expect(DRAWN);
    }
}

/// What is said about a chart to those who do not see it, and about each row to those who point at
/// it.
struct Said<'a> {
    title: String,
    description: String,
    rows: &'a [String],
}

/// Draws a chart and puts the accessible element around it.
fn svg(geometry: &Geometry, said: &Said<'_>, draw: impl FnOnce(&Canvas<'_>)) -> String {
    let (width, height) = (units(geometry.width), units(geometry.height));
    let mut drawing = String::new();
    {
        let backend = SVGBackend::with_string(&mut drawing, (width as u32, height as u32));
        let canvas = Canvas { area: backend.into_drawing_area() };
        draw(&canvas);
        canvas.area.present().expect(DRAWN);
    }
    let start = drawing.find('>').map_or(0, |end| end + 1);
    let marks = &drawing[start..drawing.rfind("</svg>").unwrap_or(drawing.len())];
    let class = match geometry.layout {
        Layout::Wide => "potluck-chart potluck-wide",
        Layout::Narrow => "potluck-chart potluck-narrow",
    };
    let markup = html! {
        svg xmlns="http://www.w3.org/2000/svg" class=(class) role="img"
            width=(geometry.width) height=(geometry.height) viewBox={ "0 0 " (width) " " (height) } {
            title { (text::printable(&said.title)) }
            desc { (text::printable(&said.description)) }
            (PreEscaped(marks))
            @for (row, words) in said.rows.iter().enumerate() {
                rect x="0" y=(units(geometry.row_top(row))) width=(width) height=(units(geometry.row_height))
                    fill="none" pointer-events="all" {
                    title { (text::printable(words)) }
                }
            }
        }
    };
    markup.into_string()
}

/// Writes the name of a feature beside or above its marks, and a few words under or beside the
/// name.
fn row_label(canvas: &Canvas<'_>, geometry: &Geometry, row: usize, name: &str, beside: Option<&str>) {
    let (x, middle) = (geometry.left - GAP, geometry.mark(row));
    match geometry.layout {
        Layout::Wide => {
            let room = geometry.left - GAP;
            let name = ellipsize(name, room / NAME_SIZE);
            let step = beside.filter(|_| geometry.rows <= COMPACT_ABOVE);
            let raised = if step.is_some() { 8.0 } else { 0.0 };
            canvas.text(&name, (x, middle - raised), HPos::Right, NAME_SIZE, palette::INK);
            if let Some(step) = step {
                let step = ellipsize(step, room / SMALL_SIZE);
                canvas.text(&step, (x, middle + 8.0), HPos::Right, SMALL_SIZE, palette::SOFT);
            }
        }
        Layout::Narrow => {
            let (y, room) = (middle - 17.0, geometry.right - geometry.left);
            let for_beside =
                beside.map_or(0.0, |words| (text::ems(words) * SMALL_SIZE + 12.0).min(0.45 * room));
            let name = ellipsize(name, (room - for_beside) / NAME_SIZE);
            canvas.text(&name, (geometry.left, y), HPos::Left, NAME_SIZE, palette::INK);
            if let Some(words) = beside {
                let words = ellipsize(words, (for_beside - 10.0) / SMALL_SIZE);
                canvas.text(&words, (geometry.right, y), HPos::Right, SMALL_SIZE, palette::SOFT);
            }
        }
    }
}

/// Grid lines with their labels below, and above where the chart is long.
fn grid(canvas: &Canvas<'_>, geometry: &Geometry, ticks: &[(f64, String)]) {
    let (top, bottom) = (geometry.top, geometry.bottom());
    for (x, label) in ticks {
        upright(canvas, geometry, *x, 1.0, palette::GRID);
        // A label at an end of the scale stays inside the chart.
        let half = text::ems(label) * SMALL_SIZE / 2.0;
        let x = x.clamp(half, (geometry.width - half).max(half));
        canvas.text(label, (x, bottom + 13.0), HPos::Center, SMALL_SIZE, palette::SOFT);
        if geometry.rows > AXIS_TWICE_ABOVE {
            canvas.text(label, (x, top - 12.0), HPos::Center, SMALL_SIZE, palette::SOFT);
        }
    }
}

/// A line across all rows. Names above the marks interrupt it.
fn upright(canvas: &Canvas<'_>, geometry: &Geometry, x: f64, width: f64, colour: RGBColor) {
    match geometry.layout {
        Layout::Wide => canvas.line((x, geometry.top), (x, geometry.bottom()), width, colour),
        Layout::Narrow => {
            for middle in (0..geometry.rows).map(|row| geometry.mark(row)) {
                canvas.line((x, middle - 8.0), (x, middle + 8.0), width, colour);
            }
        }
    }
}

/// The lines of the axis title, below the tick labels.
fn axis_title(canvas: &Canvas<'_>, geometry: &Geometry, lines: &[String]) {
    let centre = f64::midpoint(geometry.left, geometry.right);
    // The title may be wider than the scale, but not than the chart.
    let room = 2.0 * (geometry.width - centre).min(centre) - 8.0;
    for (at, line) in lines.iter().enumerate() {
        let y = geometry.bottom() + 36.0 + 17.0 * at as f64;
        let line = ellipsize(line, room / SMALL_SIZE);
        canvas.text(&line, (centre, y), HPos::Center, SMALL_SIZE, palette::SOFT);
    }
}

/// By how much a feature rises in the charts: half of the range that its release kept, or a whole
/// level.
fn rise(coefficient: &Coefficient) -> f64 {
    let [lo, hi] = coefficient.range;
    match coefficient.term {
        Term::Numeric { .. } => hi / 2.0 - lo / 2.0,
        Term::Level { .. } => 1.0,
    }
}

/// The rise of a numeric feature in words.
fn step(coefficient: &Coefficient) -> Option<String> {
    match &coefficient.term {
        Term::Numeric { .. } => {
            let rise = numbers::significant(rise(coefficient), 3);
            let unit = coefficient.unit.as_ref().map_or(String::new(), |unit| format!(" {unit}"));
            Some(format!("+{rise}{unit}"))
        }
        Term::Level { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::palette;
    use crate::STYLESHEET;

    #[test]
    fn the_stylesheet_recolours_the_whole_palette() {
        for colour in palette::ALL {
            let hex = format!("#{:02X}{:02X}{:02X}", colour.0, colour.1, colour.2);
            for attribute in ["fill", "stroke"] {
                let rule = format!(".potluck-chart [{attribute}=\"{hex}\"]");
                assert!(STYLESHEET.contains(&rule), "{rule} is missing");
            }
        }
    }
}
