//! What the uncertainty of each coefficient is made of, as stacked bars.

use potluck_release::Model;
use potluck_release::model::{Coefficient, Kind, Parts};

use super::{
    Geometry, LEGEND_LINE, Layout, SMALL_SIZE, Said, axis_title, grid, palette, row_label, svg, text,
};
use crate::drawing::{Anchor, Axis, Canvas, Colour};
use crate::numbers;

/// The parts in the order in which they are drawn and listed.
const NAMES: [&str; PARTS] =
    ["privacy noise", "mixing", "open correlations", "sampling", "clipping", "who is where", "approximation"];
const COLOURS: [Colour; PARTS] = [
    palette::NOISE,
    palette::MIXING,
    palette::CORRELATIONS,
    palette::SAMPLING,
    palette::CLIPPING,
    palette::PEOPLE,
    palette::APPROXIMATION,
];
/// How many parts there are.
pub(crate) const PARTS: usize = 7;
/// Where that of clipping stands, and those that not every model has.
pub(crate) const CLIPPING: usize = 4;
const PEOPLE: usize = 5;
const APPROXIMATION: usize = 6;
/// Names beside each other in the legend: all in the wide layout where there is room for them.
const IN_WIDE_LINE: usize = 5;
const IN_NARROW_LINE: usize = 2;

/// Side of a colour's square in the legend, and what stands between it and its name.
const SWATCH: f64 = 11.0;
const SWATCH_GAP: f64 = 6.0;

/// Between two parts of a bar.
const SEAM: f64 = 1.5;

/// The parts of a coefficient's variance, in the order of their names, as the model has them.
pub(crate) fn shares(parts: &Parts) -> [f64; PARTS] {
    let Parts { privacy, mixing, correlations, sampling, clipping, people, approximation } = *parts;
    [privacy, mixing, correlations, sampling, clipping, people, approximation]
}

/// Where the parts stand that a model has: where all parties hold the same people, there is no part
/// of who is where, and only log odds are approximated.
fn places(model: &Model) -> Vec<usize> {
    let of_people = |one: &Coefficient| one.parts.is_some_and(|parts| parts.people > 0.0);
    let has = |part: &usize| match *part {
        PEOPLE => model.coefficients.iter().any(of_people),
        APPROXIMATION => model.kind == Kind::Logistic,
        _ => true,
    };
    (0..PARTS).filter(has).collect()
}

/// The names of the parts that a model has.
pub(crate) fn names(model: &Model) -> Vec<&'static str> {
    places(model).into_iter().map(|at| NAMES[at]).collect()
}

/// Something of each part, of those that a model has.
pub(crate) fn of_model(model: &Model, all: [f64; PARTS]) -> Vec<f64> {
    places(model).into_iter().map(|at| all[at]).collect()
}

/// What each coefficient's uncertainty is made of, in the wide layout.
pub fn parts_plot(model: &Model) -> String {
    parts_plot_in(model, Layout::Wide)
}

/// What each coefficient's uncertainty is made of: parts of its variance, 0 to 100%.
///
/// The bar of a feature whose parts are not known stays empty.
pub fn parts_plot_in(model: &Model, layout: Layout) -> String {
    let title = vec!["parts of the variance of the estimate".to_owned()];
    let places = places(model);
    let legend_lines = places.len().div_ceil(in_line(layout, places.len()));
    let geometry = Geometry::new(layout, model, title.len()).below_legend(legend_lines);
    let axis = Axis::linear((0.0, 100.0), (geometry.left, geometry.right - 12.0));
    let rows: Vec<String> = model.coefficients.iter().map(|one| in_words(one, &places)).collect();
    let said = Said {
        title: "What the uncertainty of each coefficient is made of".to_owned(),
        description: format!(
            "Stacked bars, one row a feature, from 0 to 100% of the variance of its estimate: {}. {}. A table gives the numbers.",
            names(model).join(", "),
            rows.join("; ")
        ),
        rows: &rows,
    };
    svg(&geometry, &said, |canvas| {
        legend(canvas, &geometry, &places);
        let step = if layout == Layout::Wide { 20 } else { 25 };
        let ticks: Vec<_> =
            (0..=100).step_by(step).map(|at| (axis.at(f64::from(at)), format!("{at}%"))).collect();
        grid(canvas, &geometry, &ticks);
        for (row, coefficient) in model.coefficients.iter().enumerate() {
            row_label(canvas, &geometry, row, &coefficient.term.name(), None);
            bar(canvas, &axis, geometry.mark(row), layout, coefficient.parts.as_ref());
        }
        axis_title(canvas, &geometry, &title);
    })
}

fn bar(canvas: &mut Canvas, axis: &Axis, y: f64, layout: Layout, parts: Option<&Parts>) {
    let half = if layout == Layout::Wide { 9.0 } else { 7.0 };
    canvas.bar((axis.at(0.0), y - half), (axis.at(100.0), y + half), palette::GRID);
    let mut from = 0.0;
    for (share, colour) in drawn(parts).into_iter().zip(COLOURS) {
        let to = from + 100.0 * share;
        let (left, right) = (axis.at(from), axis.at(to));
        if share > 0.0 {
            canvas.bar((left, y - half), (right, y + half), colour);
        }
        // What follows starts after a seam, unless the part is too narrow to be seen beside it.
        if from > 0.0 && right - left > 2.0 * SEAM {
            canvas.bar((left, y - half), (left + SEAM, y + half), palette::SURFACE);
        }
        from = to;
    }
}

/// The shares as they are drawn: none below 0, and together 1, or all 0 where nothing is known.
fn drawn(parts: Option<&Parts>) -> [f64; PARTS] {
    let sound = |share: f64| if share.is_finite() { share.max(0.0) } else { 0.0 };
    let shares = parts.map_or([0.0; PARTS], |parts| shares(parts).map(sound));
    let largest = shares.into_iter().fold(0.0, f64::max);
    if largest == 0.0 {
        return shares;
    }
    // Divided by the largest first, so that the sum of huge numbers stays finite.
    let shares = shares.map(|share| share / largest);
    let sum: f64 = shares.iter().sum();
    shares.map(|share| share / sum)
}

fn in_line(layout: Layout, parts: usize) -> usize {
    match layout {
        Layout::Wide if parts <= IN_WIDE_LINE => parts,
        Layout::Wide => parts.div_ceil(2),
        Layout::Narrow => IN_NARROW_LINE,
    }
}

fn legend(canvas: &mut Canvas, geometry: &Geometry, places: &[usize]) {
    let width = |name: &str| SWATCH + SWATCH_GAP + text::ems(name) * SMALL_SIZE + 14.0;
    let in_line = in_line(geometry.layout, places.len());
    let mut x = geometry.left;
    for (at, &place) in places.iter().enumerate() {
        let (name, colour) = (NAMES[place], COLOURS[place]);
        if at % in_line == 0 {
            x = geometry.left;
        }
        let y = LEGEND_LINE * ((at / in_line) as f64 + 0.5);
        canvas.bar((x, y - SWATCH / 2.0), (x + SWATCH, y + SWATCH / 2.0), colour);
        canvas.text(name, (x + SWATCH + SWATCH_GAP, y), Anchor::Start, SMALL_SIZE, palette::INK);
        // In several lines the names stand below each other.
        let widest = places.iter().map(|&place| width(NAMES[place])).fold(0.0, f64::max);
        x += if in_line < places.len() { widest } else { width(name) };
    }
}

fn in_words(coefficient: &Coefficient, places: &[usize]) -> String {
    let parts = match &coefficient.parts {
        None => "not known".to_owned(),
        Some(parts) => {
            let shares = shares(parts);
            let part = |&at: &usize| format!("{} {}", numbers::percent(shares[at]), NAMES[at]);
            places.iter().map(part).collect::<Vec<_>>().join(", ")
        }
    };
    format!("{}, released by {}: {parts}", coefficient.term.name(), coefficient.party)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_whole_whatever_the_shares() {
        for shares in [
            [0.4, 0.2, 0.1, 0.1, 0.1, 0.05, 0.05],
            [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
            [0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0],
            [1e300, 1e300, 1e300, 0.0, 1e-300, 1e300, 0.1],
            [f64::NAN, 0.5, 0.0, f64::INFINITY, 0.5, f64::NAN, 0.0],
            [-1.0, 2.0, 0.0, 0.0, 1.0, 0.5, 0.5],
        ] {
            let [privacy, mixing, correlations, sampling, clipping, people, approximation] = shares;
            let drawn = drawn(Some(&Parts {
                privacy,
                mixing,
                correlations,
                sampling,
                clipping,
                people,
                approximation,
            }));
            assert!((drawn.iter().sum::<f64>() - 1.0).abs() < 1e-12, "{shares:?} {drawn:?}");
            assert!(drawn.iter().all(|&share| share >= 0.0), "{shares:?} {drawn:?}");
        }
        let is_empty = |shares: [f64; PARTS]| shares.iter().all(|&share| share <= 0.0);
        assert!(is_empty(drawn(None)));
        let unknown = Parts {
            privacy: f64::NAN,
            mixing: 0.0,
            correlations: 0.0,
            sampling: 0.0,
            clipping: -1.0,
            people: 0.0,
            approximation: 0.0,
        };
        assert!(is_empty(drawn(Some(&unknown))));
    }
}
