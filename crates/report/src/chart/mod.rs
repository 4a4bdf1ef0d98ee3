//! Charts as SVG: a drawing in a fixed palette, and an accessible element around it.
//!
//! The drawing carries plain colours, so a chart that is saved on its own looks right. A page
//! recolours it, for dark screens too, by rules of the stylesheet that select on those very colours
//! (`.potluck-chart [fill="#1A2430"]`), so the drawing itself needs no second version.

pub(crate) mod coefficients;
pub(crate) mod correlations;
pub(crate) mod distributions;
pub(crate) mod noise;
pub(crate) mod noticed;
pub(crate) mod overlaps;
pub(crate) mod parts;
pub(crate) mod people;
pub(crate) mod preview;

use maud::{Markup, PreEscaped, html};
use potluck_release::Model;
use potluck_release::model::{Coefficient, Term};

use crate::drawing::axis::TICK_SIZE as SMALL_SIZE;
use crate::drawing::text::{self, ellipsize};
use crate::drawing::{Anchor, Canvas, Colour};
use crate::numbers;

/// How a chart is laid out. Text has the same size in both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Names beside the marks, 800 pixels wide: desktop and paper.
    Wide,
    /// Names above the marks, 360 pixels wide: phones.
    Narrow,
}

impl Layout {
    /// A chart in both layouts, of which the stylesheet shows the one that fits.
    pub fn both(chart: impl Fn(Self) -> String) -> Markup {
        html! { (PreEscaped(chart(Self::Wide))) (PreEscaped(chart(Self::Narrow))) }
    }
}

/// The colours of the drawing; the stylesheet has a rule for each.
mod palette {
    use super::Colour;

    /// Names and numbers.
    pub(super) const INK: Colour = "#1A2430";
    /// Steps, tick labels, axis titles.
    pub(super) const SOFT: Colour = "#55606D";
    /// Grid lines and the empty part of bars.
    pub(super) const GRID: Colour = "#E1E5EA";
    /// The line at 0.
    pub(super) const ZERO: Colour = "#6F7A87";
    /// Intervals that exclude 0.
    pub(super) const CLEAR: Colour = "#0B5A8A";
    /// Intervals that include 0.
    pub(super) const UNCLEAR: Colour = "#8B95A1";
    /// Privacy noise.
    pub(super) const NOISE: Colour = "#B45309";
    /// People who share a released row.
    pub(super) const MIXING: Colour = "#2B84A8";
    /// People being a sample.
    pub(super) const SAMPLING: Colour = "#8B95A1";
    /// Correlations between parties that the releases leave open.
    pub(super) const CORRELATIONS: Colour = "#008060";
    /// Allowance for clipped values.
    pub(super) const CLIPPING: Colour = "#6B3F8F";
    /// Allowance for what moments do not say.
    pub(super) const APPROXIMATION: Colour = "#8A3B56";
    /// Who is where: what is not known of it.
    pub(super) const PEOPLE: Colour = "#A8326E";
    /// What lies behind the chart.
    pub(super) const SURFACE: Colour = "#FFFFFF";

    #[cfg(test)]
    pub(super) const ALL: [Colour; 14] = [
        INK,
        SOFT,
        GRID,
        ZERO,
        CLEAR,
        UNCLEAR,
        NOISE,
        MIXING,
        CORRELATIONS,
        SAMPLING,
        CLIPPING,
        PEOPLE,
        APPROXIMATION,
        SURFACE,
    ];
}

/// The size of names in pixels.
const NAME_SIZE: f64 = 13.0;

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

/// What is said about a chart to those who do not see it, and about each row to those who point at
/// it.
struct Said<'a> {
    title: String,
    description: String,
    rows: &'a [String],
}

/// Draws a chart and puts the accessible element around it.
fn svg(geometry: &Geometry, said: &Said<'_>, draw: impl FnOnce(&mut Canvas)) -> String {
    let Geometry { width, height, .. } = *geometry;
    let mut canvas = Canvas::default();
    draw(&mut canvas);
    let class = match geometry.layout {
        Layout::Wide => "potluck-chart potluck-wide",
        Layout::Narrow => "potluck-chart potluck-narrow",
    };
    let markup = html! {
        svg xmlns="http://www.w3.org/2000/svg" class=(class) role="img"
            width=(width) height=(height) viewBox={ "0 0 " (width) " " (height) } {
            title { (text::printable(&said.title)) }
            desc { (text::printable(&said.description)) }
            (canvas.into_marks())
            @for (row, words) in said.rows.iter().enumerate() {
                rect x="0" y=(geometry.row_top(row)) width=(width) height=(geometry.row_height)
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
fn row_label(canvas: &mut Canvas, geometry: &Geometry, row: usize, name: &str, beside: Option<&str>) {
    let (x, middle) = (geometry.left - GAP, geometry.mark(row));
    match geometry.layout {
        Layout::Wide => {
            let room = geometry.left - GAP;
            let name = ellipsize(name, room / NAME_SIZE);
            let step = beside.filter(|_| geometry.rows <= COMPACT_ABOVE);
            let raised = if step.is_some() { 8.0 } else { 0.0 };
            canvas.text(&name, (x, middle - raised), Anchor::End, NAME_SIZE, palette::INK);
            if let Some(step) = step {
                let step = ellipsize(step, room / SMALL_SIZE);
                canvas.text(&step, (x, middle + 8.0), Anchor::End, SMALL_SIZE, palette::SOFT);
            }
        }
        Layout::Narrow => {
            let (y, room) = (middle - 17.0, geometry.right - geometry.left);
            let for_beside =
                beside.map_or(0.0, |words| (text::ems(words) * SMALL_SIZE + 12.0).min(0.45 * room));
            let name = ellipsize(name, (room - for_beside) / NAME_SIZE);
            canvas.text(&name, (geometry.left, y), Anchor::Start, NAME_SIZE, palette::INK);
            if let Some(words) = beside {
                let words = ellipsize(words, (for_beside - 10.0) / SMALL_SIZE);
                canvas.text(&words, (geometry.right, y), Anchor::End, SMALL_SIZE, palette::SOFT);
            }
        }
    }
}

/// Grid lines with their labels below, and above where the chart is long.
fn grid(canvas: &mut Canvas, geometry: &Geometry, ticks: &[(f64, String)]) {
    let (top, bottom) = (geometry.top, geometry.bottom());
    for (x, label) in ticks {
        upright(canvas, geometry, *x, 1.0, palette::GRID);
        // A label at an end of the scale stays inside the chart.
        let half = text::ems(label) * SMALL_SIZE / 2.0;
        let x = x.clamp(half, (geometry.width - half).max(half));
        canvas.text(label, (x, bottom + 13.0), Anchor::Middle, SMALL_SIZE, palette::SOFT);
        if geometry.rows > AXIS_TWICE_ABOVE {
            canvas.text(label, (x, top - 12.0), Anchor::Middle, SMALL_SIZE, palette::SOFT);
        }
    }
}

/// A line across all rows. Names above the marks interrupt it.
fn upright(canvas: &mut Canvas, geometry: &Geometry, x: f64, width: f64, colour: Colour) {
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
fn axis_title(canvas: &mut Canvas, geometry: &Geometry, lines: &[String]) {
    let centre = f64::midpoint(geometry.left, geometry.right);
    // The title may be wider than the scale, but not than the chart.
    let room = 2.0 * (geometry.width - centre).min(centre) - 8.0;
    for (at, line) in lines.iter().enumerate() {
        let y = geometry.bottom() + 36.0 + 17.0 * at as f64;
        let line = ellipsize(line, room / SMALL_SIZE);
        canvas.text(&line, (centre, y), Anchor::Middle, SMALL_SIZE, palette::SOFT);
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
            for attribute in ["fill", "stroke"] {
                let rule = format!(".potluck-chart [{attribute}=\"{colour}\"]");
                assert!(STYLESHEET.contains(&rule), "{rule} is missing");
            }
        }
    }
}
