//! Drawings in pixels, written as SVG: marks, text, and axes with round ticks.
//!
//! Nothing is measured here: [`text::ems`] bounds how wide a text can be in any usual face.

pub mod axis;
pub mod text;

use maud::{Markup, PreEscaped, Render, html};

pub use axis::Axis;

/// A colour as in `#1A2430`.
pub type Colour = &'static str;

/// A place: from the left, from the top.
pub type Place = (f64, f64);

/// Which part of a text stands at its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    /// Its first letter.
    Start,
    /// Its middle.
    Middle,
    /// Its last letter.
    End,
}

impl Anchor {
    fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Middle => "middle",
            Self::End => "end",
        }
    }
}

/// To a tenth of a pixel, which no eye tells apart.
fn tenth(x: f64) -> f64 {
    // Of −0 the sum is 0.
    (x * 10.0).round() / 10.0 + 0.0
}

fn points(places: &[Place]) -> String {
    let point = |&(x, y): &Place| format!("{},{}", tenth(x), tenth(y));
    places.iter().map(point).collect::<Vec<_>>().join(" ")
}

/// What has been drawn so far; what is drawn later covers it.
///
/// # Examples
///
/// ```
/// use potluck_report::drawing::{Anchor, Canvas};
///
/// let mut canvas = Canvas::default();
/// canvas.line((0.0, 5.0), (40.0, 5.0), 1.5, "#55606D");
/// canvas.text("a & b", (0.0, 20.0), Anchor::Start, 12.0, "#1A2430");
/// let marks = canvas.into_marks().into_string();
/// assert!(marks.contains("points=\"0,5 40,5\"") && marks.contains(">a &amp; b</text>"));
/// ```
#[derive(Debug, Default)]
pub struct Canvas {
    marks: String,
}

impl Canvas {
    fn add(&mut self, mark: &Markup) {
        mark.render_to(&mut self.marks);
    }

    /// Everything that was drawn.
    pub fn into_marks(self) -> Markup {
        PreEscaped(self.marks)
    }

    /// A straight line.
    pub fn line(&mut self, from: Place, to: Place, width: f64, colour: Colour) {
        self.path(&[from, to], width, colour);
    }

    /// A line through several places.
    pub fn path(&mut self, places: &[Place], width: f64, colour: Colour) {
        self.add(&html! {
            polyline fill="none" stroke=(colour) stroke-width=(tenth(width)) points=(points(places)) {}
        });
    }

    /// A level line in dashes of four pixels.
    pub fn dashed(&mut self, (from, y): Place, to: f64, width: f64, colour: Colour) {
        const DASH: f64 = 4.0;
        let dashes = ((to - from) / (2.0 * DASH)).ceil().max(1.0) as usize;
        for start in (0..dashes).map(|at| from + 2.0 * DASH * at as f64) {
            self.line((start, y), ((start + DASH).min(to), y), width, colour);
        }
    }

    /// A filled dot.
    pub fn dot(&mut self, (x, y): Place, radius: f64, colour: Colour) {
        self.add(&html! { circle cx=(tenth(x)) cy=(tenth(y)) r=(tenth(radius)) fill=(colour) {} });
    }

    /// A dot of a cloud: others show through it.
    pub fn faint_dot(&mut self, (x, y): Place, radius: f64, colour: Colour) {
        self.add(&html! {
            circle cx=(tenth(x)) cy=(tenth(y)) r=(tenth(radius)) fill=(colour) opacity="0.6" {}
        });
    }

    /// A dot that is open: what lies behind it is covered by `inside`.
    pub fn ring(&mut self, (x, y): Place, radius: f64, width: f64, colour: Colour, inside: Colour) {
        self.add(&html! {
            circle cx=(tenth(x)) cy=(tenth(y)) r=(tenth(radius)) fill=(inside)
                stroke=(colour) stroke-width=(tenth(width)) {}
        });
    }

    /// A filled area with these corners.
    pub fn area(&mut self, corners: &[Place], colour: Colour) {
        self.add(&html! { polygon points=(points(corners)) fill=(colour) {} });
    }

    /// A filled rectangle between two opposite corners.
    pub fn bar(&mut self, from: Place, to: Place, colour: Colour) {
        let (left, top) = (tenth(from.0.min(to.0)), tenth(from.1.min(to.1)));
        let (right, bottom) = (tenth(from.0.max(to.0)), tenth(from.1.max(to.1)));
        self.add(&html! {
            rect x=(left) y=(top) width=(tenth(right - left)) height=(tenth(bottom - top)) fill=(colour) {}
        });
    }

    /// One line of text, with its middle at the height of its place.
    pub fn text(&mut self, text: &str, (x, y): Place, anchor: Anchor, size: f64, colour: Colour) {
        self.add(&html! {
            text x=(tenth(x)) y=(tenth(y)) dy="0.5ex" text-anchor=(anchor.name())
                font-family="sans-serif" font-size=(size) fill=(colour) { (text::printable(text)) }
        });
    }
}
