//! Reports over real datasets, from harmless to hostile.

#![allow(clippy::unwrap_used)] // a failed step is a failed test

use std::fmt::Write as _;
use std::sync::LazyLock;

use potluck_fixtures::{sealed, signing_key};
use potluck_release::dataset::Completeness;
use potluck_release::findings::{Finding, FindingKind, HEADING};
use potluck_release::fit::{Regression, fit};
use potluck_release::model::{Estimate, Learner, Parts, RSquared};
use potluck_release::people;
use potluck_release::preview;
use potluck_release::statement::Guarantee;
use potluck_release::study::{self, Domain};
use potluck_release::summary;
use potluck_release::{Model, PublicDataset, Release, Study};
use potluck_report::{
    Layout, STYLESHEET, article, coefficient_plot, coefficient_plot_in, dataset_card, distributions_plot_in,
    limits, model_card, noise_plot, noise_plot_in, outcome, overlaps_plot_in, page, parts_plot,
    parts_plot_in, preview_page, privacy_statement, study_card,
};
use potluck_simulation::{Column, Exact, People, Simulation, Subjects};
use rand_chacha::ChaCha20Rng;
use rand_core::{Rng, SeedableRng};
use roxmltree::Document;

static CLINICS: LazyLock<String> = LazyLock::new(|| {
    let text = potluck_fixtures::study("clinics", 100_000)
        .settings("method = \"rmgm\"\nk = 200")
        .party("north", &["pressure lo = 80; hi = 200; unit = \"mmHg\"", "smoker levels = [\"no\", \"yes\"]"])
        .party(
            "south",
            &[
                "age lo = 18; hi = 100; unit = \"years\"; description = \"Age at the first visit.\"",
                "home levels = [\"city\", \"suburb\", \"country\"]",
            ],
        )
        .party("west", &["income lo = 0; hi = 120"]);
    text.to_string()
});

const HOSTILE: &str = r#"
format = 1
[study]
name = "</title><script>alert(1)</script> & co"
rows = 100000
id = "integer"
method = "rmgm"
k = 60
[privacy]
epsilon = 0.5
delta = 1e-6
[[party]]
name = "north"
[[party.column]]
name = "<script>alert('y')</script>"
lo = -1
hi = 1
unit = "\"><img src=x onerror=alert(2)>"
[[party.column]]
name = "R&D <b>"
lo = 0
hi = 10
unit = "<i>&amp;"
description = "]]><!-- <script src='https://example.org/x.js'> -->"
[[party.column]]
name = "a' onload='x"
levels = ["<svg/onload=1>", "&lt;", "\"quoted\""]
"#;

fn study(text: &str) -> Study {
    sealed(text, 3)
}

/// A well-spread integer in −2^20..2^20.
fn scramble(seed: u64) -> i64 {
    let mut x = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((x ^ (x >> 31)) >> 43) as i64 - (1 << 20)
}

/// Made-up releases of the first `parties` parties: every column is its own sequence plus a part of
/// the one before.
fn dataset(study: &Study, parties: usize) -> PublicDataset {
    let mut releases = Vec::new();
    for (at, party) in study.definition().parties().iter().take(parties).enumerate() {
        let (k, width) = (study.seal().k(), party.width() as u64);
        let own = |row: u64, column: u64| scramble(1 + row + 7919 * (column + 31 * at as u64));
        let noised: Vec<i64> = (0..k * width)
            .map(|cell| (cell / width, cell % width))
            .map(|(row, column)| 2 * own(row, column) + if column > 0 { own(row, column - 1) } else { 0 })
            .collect();
        let key = (at == 0).then(|| signing_key(9));
        releases.push(Release::new(study, party.name(), &[noised], key.as_ref()).unwrap());
    }
    PublicDataset::join(study, &releases, Completeness::Partial).unwrap()
}

fn model(dataset: &PublicDataset, label: &str, learner: Learner) -> Model {
    fit(dataset, &Regression { learner, ..Regression::of(label) }).unwrap()
}

fn clinics() -> (Model, PublicDataset) {
    let dataset = dataset(&study(&CLINICS), 3);
    (model(&dataset, "pressure", Learner::Ols), dataset)
}

/// The releases of made-up people: a column is its own noise plus a part of what all columns have
/// in common.
fn calibrated_dataset(study: &Study) -> PublicDataset {
    let mut rng = ChaCha20Rng::seed_from_u64(5);
    let rows = study.definition().rows() as usize;
    let mut uniform = |_| f64::from(rng.next_u32()) / f64::from(u32::MAX);
    let shared: Vec<f64> = (0..rows).map(&mut uniform).collect();
    let mut made = |column: &study::Column| {
        let parts = shared.iter().map(|own| f64::midpoint(*own, uniform(0)));
        match column.domain() {
            Domain::Numeric(bounds) => {
                Column::Numbers(parts.map(|part| bounds.lo() + (bounds.hi() - bounds.lo()) * part).collect())
            }
            Domain::Categorical { levels, .. } => {
                Column::Levels(parts.map(|part| (part * levels.len() as f64) as u32).collect())
            }
        }
    };
    let parties = study.definition().parties().iter();
    let columns = parties.map(|party| party.columns().iter().map(&mut made).collect());
    let people = People::new(rows, columns.collect());
    let subjects = Subjects::new(study.seal().key().clone(), rows);
    let simulation = Simulation::new(study, &people, &subjects);
    simulation.dataset(|_, _| Box::new(Exact(ChaCha20Rng::seed_from_u64(rng.next_u64())))).unwrap()
}

/// The study with the default method and these many people.
fn calibrated_study(text: &str, rows: u64) -> Study {
    let text = text.replace("method = \"rmgm\"\nk = 200\n", "").replace("method = \"rmgm\"\nk = 60\n", "");
    study(&text.replace("rows = 100000", &format!("rows = {rows}")))
}

fn calibrated_clinics() -> (Model, PublicDataset) {
    let dataset = calibrated_dataset(&calibrated_study(&CLINICS, 60_000));
    (model(&dataset, "pressure", Learner::Posterior), dataset)
}

/// A study with this many features, and the longest names there may be.
fn wide_study(features: usize) -> (Model, PublicDataset) {
    let mut text = CLINICS[..CLINICS.find("[[party]]").unwrap()].replace("k = 200", "k = 400");
    text.push_str("[[party]]\nname = \"north\"\n[[party.column]]\nname = \"y\"\nlo = 0\nhi = 1\n");
    for at in 0..features {
        let name = format!("{}_{at}", "measurement_of_something_quite_specific_".repeat(3));
        let unit = "a rather long unit that somebody thought necessary";
        writeln!(text, "[[party.column]]\nname = \"{name}\"\nlo = 0\nhi = 5\nunit = \"{unit}\"").unwrap();
    }
    let dataset = dataset(&study(&text), 1);
    (model(&dataset, "y", Learner::Ols), dataset)
}

fn charts(model: &Model) -> Vec<String> {
    [Layout::Wide, Layout::Narrow]
        .into_iter()
        .flat_map(|layout| {
            let parts = model.coefficients.iter().all(|one| one.parts.is_some());
            let second = if parts { parts_plot_in(model, layout) } else { noise_plot_in(model, layout) };
            [coefficient_plot_in(model, layout), second]
        })
        .collect()
}

fn attribute(node: &roxmltree::Node<'_, '_>, name: &str) -> f64 {
    let value: f64 = node.attribute(name).unwrap().parse().unwrap();
    assert!(value.is_finite());
    value
}

/// The box that a text of a chart takes in a usual face, in pixels: left, right and middle.
fn extent(text: &roxmltree::Node<'_, '_>) -> (f64, f64, f64) {
    let width = 0.55 * attribute(text, "font-size") * text.text().unwrap().trim().chars().count() as f64;
    let x = attribute(text, "x");
    let left = match text.attribute("text-anchor").unwrap() {
        "end" => x - width,
        "middle" => x - width / 2.0,
        _ => x,
    };
    (left, left + width, attribute(text, "y"))
}

/// Everything that must hold of any chart.
fn check_chart(svg: &str) {
    let document = Document::parse(svg).unwrap_or_else(|error| panic!("{error} in {svg}"));
    let root = document.root_element();
    assert_eq!(root.attribute("role"), Some("img"));
    for name in ["title", "desc"] {
        let said =
            root.children().find(|node| node.has_tag_name(("http://www.w3.org/2000/svg", name))).unwrap();
        assert!(!said.text().unwrap().trim().is_empty());
    }
    assert!(!svg.contains("NaN") && !svg.contains("=\"inf"), "{svg}");
    let (width, height) = (attribute(&root, "width"), attribute(&root, "height"));
    let inside = |x: f64, y: f64| (0.0..=width).contains(&x) && (0.0..=height).contains(&y);
    for node in root.children().filter(roxmltree::Node::is_element) {
        match node.tag_name().name() {
            "circle" => assert!(inside(attribute(&node, "cx"), attribute(&node, "cy"))),
            "rect" => {
                let [x, y, width, height] = ["x", "y", "width", "height"].map(|name| attribute(&node, name));
                assert!(width >= 0.0 && height >= 0.0 && inside(x, y) && inside(x + width, y + height));
            }
            "polyline" | "polygon" => {
                for point in node.attribute("points").unwrap().split_whitespace() {
                    let (x, y) = point.split_once(',').unwrap();
                    assert!(inside(x.parse().unwrap(), y.parse().unwrap()), "{point} is outside");
                }
            }
            "text" | "title" | "desc" => {}
            other => panic!("a chart has no <{other}>"),
        }
    }
    let texts: Vec<_> = root
        .children()
        .filter(|node| node.tag_name().name() == "text")
        .map(|text| (extent(&text), text.text().unwrap().trim().to_owned()))
        .collect();
    for (at, ((left, right, y), text)) in texts.iter().enumerate() {
        assert!(*left >= -2.0 && *right <= width + 2.0, "{text:?} leaves the chart");
        for ((other_left, other_right, other_y), other) in &texts[..at] {
            let apart = (y - other_y).abs() >= 12.0 || left >= other_right || right <= other_left;
            assert!(apart, "{text:?} is over {other:?}");
        }
    }
}

/// Everything that must hold of any page.
fn check_page(model: &Model, dataset: &PublicDataset) -> String {
    let page = page(model, dataset);
    assert!(page.starts_with("<!DOCTYPE html><html lang=\"en\">"));
    check_self_contained(&page);
    assert!(!page.contains("NaN"));
    for svg in charts(model) {
        check_chart(&svg);
        assert!(page.contains(&svg));
    }
    check_headings(&page);
    check_guarantees(&page, dataset);
    check_numbers(&page, model);
    page
}

/// Only harmless elements and attributes, and no address in any of them.
fn check_self_contained(page: &str) {
    const ELEMENTS: &str = "html head meta title style body main footer article header section figure figcaption \
        h1 h2 h3 p ul li span strong bdi code pre data div dl dt dd table caption thead tbody tr th td \
        svg desc text circle rect polyline polygon";
    const ATTRIBUTES: &str = "lang charset http-equiv content name class role scope value data-label tabindex \
        width height viewBox x y dy cx cy r points fill stroke stroke-width opacity pointer-events \
        text-anchor font-family font-size";
    // Everything but the void elements is XML already.
    let mut parts = page.trim_start_matches("<!DOCTYPE html>").split("<meta ");
    let mut xml = parts.next().unwrap().to_owned();
    for part in parts {
        xml.push_str("<meta ");
        xml.push_str(&part.replacen('>', "/>", 1));
    }
    let document = Document::parse(&xml).unwrap();
    for node in document.descendants().filter(roxmltree::Node::is_element) {
        let name = node.tag_name().name();
        assert!(ELEMENTS.split_whitespace().any(|known| known == name), "<{name}> in a page");
        for attribute in node.attributes() {
            let (name, value) = (attribute.name(), attribute.value());
            assert!(ATTRIBUTES.split_whitespace().any(|known| known == name), "{name}={value:?} in a page");
            assert!(!value.contains("://") && !value.contains("url("), "{name}={value:?} in a page");
        }
    }
    let policy = "http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'sha256-";
    assert!(page.contains(policy));
}

fn check_headings(page: &str) {
    let mut last = 0;
    for (at, _) in page.match_indices("<h") {
        let Some(level) = page[at + 2..].chars().next().and_then(|digit| digit.to_digit(10)) else {
            continue;
        };
        assert!(level <= last + 1, "a heading of level {level} follows one of level {last}");
        assert!(level > 1 || last == 0, "there is one h1");
        last = level;
    }
    assert!(last > 0);
    assert!(!page.contains("<th>") && !page.contains("<th role=\"rowheader\">"));
}

fn check_guarantees(page: &str, dataset: &PublicDataset) {
    let study = dataset.study();
    let parties = dataset.parties().count();
    let alone = Guarantee::of_party(study).in_numbers();
    for (party, _) in dataset.parties() {
        let also = match study.definition().format() {
            study::Format::One => "",
            study::Format::Two => ", adding it or removing it",
        };
        assert!(page.contains(&format!(
            "in the table of {party}{also} changes the distribution of its release by at most {alone}"
        )));
    }
    let joint = Guarantee::joint(study, parties);
    assert!(page.contains("joint guarantee") && page.contains(&joint.in_numbers()));
    for guarantee in [Guarantee::of_party(study), joint] {
        for number in [guarantee.epsilon, guarantee.delta, guarantee.mu] {
            assert!(page.contains(&format!("<data value=\"{number:?}\">")), "{number} is missing");
        }
    }
}

/// The exact numbers of the coefficient table, row by row.
fn check_numbers(page: &str, model: &Model) {
    let start = page.find("<table").unwrap();
    let table = &page[start..page.find("</table>").unwrap() + "</table>".len()];
    let table = Document::parse(table).unwrap();
    let rows: Vec<Vec<f64>> = table
        .descendants()
        .filter(|node| node.has_tag_name("tr") && node.parent().unwrap().has_tag_name("tbody"))
        .map(|row| {
            let cells = row.descendants().filter(|node| node.has_tag_name("data"));
            cells.map(|cell| cell.attribute("value").unwrap().parse().unwrap()).collect()
        })
        .collect();
    let numbers = |value: &Estimate| vec![value.estimate, value.standard_error, value.low, value.high];
    let parts = model.coefficients.iter().all(|one| one.parts.is_some());
    let mut expected: Vec<Vec<f64>> = Vec::new();
    for coefficient in &model.coefficients {
        expected.push(numbers(&coefficient.value));
        let last = if parts { coefficient.prediction } else { coefficient.noise_share };
        expected.last_mut().unwrap().push(last);
    }
    expected.push(numbers(&model.intercept));
    if parts {
        expected.last_mut().unwrap().push(model.prediction_intercept);
    }
    assert_eq!(rows, expected);
}

#[test]
fn a_usual_report_holds_together() {
    let (model, dataset) = clinics();
    let page = check_page(&model, &dataset);
    for said in [
        "Regression of <bdi>pressure</bdi>",
        "Study <bdi>clinics</bdi>",
        "mmHg per year",
        "mmHg if yes",
        "mmHg per unit",
        "attenuated by the privacy noise",
        "need not cover those of the study itself",
        "100,000 people were mixed into 200 released rows",
        "Age at the first visit.",
        "not signed",
        "potluck fit dataset.parquet --label pressure --features smoker=yes,age,home=city,home=suburb,home=country,income --learner ols --ridge 0.0001 --level 0.95 --report report.html",
        model.study_id.as_str(),
        dataset.content_hash(),
        model.software.as_str(),
    ] {
        assert!(page.contains(said), "{said:?} is missing");
    }
    let key = dataset.parties().find_map(|(_, key)| key).unwrap();
    assert!(page.contains(&key.to_string()));
    assert!(!page.contains("class=\"warning\""));
    assert!(page.contains(&article(&model, &dataset)));
    assert!(page.contains(&privacy_statement(dataset.study(), &["north", "south", "west"])));
    assert_eq!(page, potluck_report::page(&model, &dataset), "a report holds no date and no chance");
}

#[test]
fn the_simple_charts_are_the_wide_ones() {
    let (model, _) = clinics();
    assert_eq!(coefficient_plot(&model), coefficient_plot_in(&model, Layout::Wide));
    assert_eq!(noise_plot(&model), noise_plot_in(&model, Layout::Wide));
    assert_eq!(parts_plot(&model), parts_plot_in(&model, Layout::Wide));
}

#[test]
fn names_from_strangers_are_only_text() {
    let study = study(HOSTILE);
    let dataset = dataset(&study, 1);
    let model = model(&dataset, "<script>alert('y')</script>", Learner::Ols);
    let page = check_page(&model, &dataset);
    assert!(page.contains("&lt;script&gt;alert"));
    assert!(page.contains("R&amp;D &lt;b&gt;"));
    assert!(page.contains("<title>Regression of &lt;script&gt;"));
    let svg = coefficient_plot(&model);
    let svg = Document::parse(&svg).unwrap();
    let texts: Vec<_> = svg
        .descendants()
        .filter(|node| node.tag_name().name() == "text")
        .filter_map(|node| node.text())
        .collect();
    assert!(texts.iter().any(|text| text.trim() == "R&D <b>"), "{texts:?}");
    let levels: Vec<_> = texts.iter().filter(|text| text.contains("onload='x=")).collect();
    assert_eq!(levels.len(), 3, "{texts:?}");
}

#[test]
fn what_xml_cannot_hold_does_not_break_a_chart() {
    let (mut model, _) = clinics();
    let potluck_release::model::Term::Level { level, .. } = &mut model.coefficients[0].term else { panic!() };
    *level = "a\u{0}b\u{1b}c\u{ffff}".to_owned();
    model.coefficients[1].unit = Some("\u{7}".to_owned());
    for svg in charts(&model) {
        check_chart(&svg);
    }
}

#[test]
fn the_policy_names_the_stylesheet() {
    use base64ct::{Base64, Encoding};
    use sha2::{Digest, Sha256};
    let (model, dataset) = clinics();
    let page = page(&model, &dataset);
    let style = &page[page.find("<style>").unwrap() + 7..page.find("</style>").unwrap()];
    assert_eq!(style, STYLESHEET);
    assert!(page.contains(&format!("'sha256-{}'", Base64::encode_string(&Sha256::digest(style)))));
    assert!(!STYLESHEET.contains("url(") && !STYLESHEET.contains("@import") && !STYLESHEET.contains("</"));
}

#[test]
fn an_unsound_fit_says_so_first() {
    let (mut model, dataset) = clinics();
    let eigenvalues = model.diagnostics.eigenvalues.as_mut().unwrap();
    eigenvalues.sound = false;
    eigenvalues.stability = "the moment matrix is not positive definite".to_owned();
    eigenvalues.smallest = -0.25;
    model.diagnostics.residual_variance = Some(-0.01);
    model.diagnostics.r_squared = None;
    let page = check_page(&model, &dataset);
    let warning = page.find("Do not rely on these coefficients.").unwrap();
    assert!(warning < page.find("<svg").unwrap());
    assert!(page.contains("In this fit the moment matrix is not positive definite."));
    assert!(page.contains("R² cannot be estimated here"));
    assert!(page.contains("strong noise took the estimate below 0"));
}

#[test]
fn a_debiased_fit_does_not_claim_attenuation() {
    let dataset = dataset(&study(&CLINICS), 3);
    let model = model(&dataset, "pressure", Learner::Debiased);
    let page = check_page(&model, &dataset);
    assert!(page.contains("Coefficients of the study's own rows."));
    assert!(!page.contains("attenuated"));
}

#[test]
fn a_model_of_another_dataset_is_pointed_out() {
    let (mut model, dataset) = clinics();
    model.dataset = "0".repeat(64);
    let page = check_page(&model, &dataset);
    assert!(page.contains("This model was not fitted on this dataset."));
}

#[test]
fn missing_parties_are_named() {
    let dataset = dataset(&study(&CLINICS), 2);
    let model = model(&dataset, "pressure", Learner::Ols);
    let page = check_page(&model, &dataset);
    assert!(page.contains("not in this dataset"));
    assert!(page.contains("Both releases together"));
}

#[test]
fn a_level_can_be_the_label() {
    let dataset = dataset(&study(&CLINICS), 3);
    let model = model(&dataset, "home=city", Learner::Ols);
    let page = check_page(&model, &dataset);
    assert!(page.contains("share per year"));
    assert!(coefficient_plot(&model).contains("change of the share with home=city"));
}

#[test]
fn one_coefficient() {
    let (model, dataset) = wide_study(1);
    assert_eq!(model.coefficients.len(), 1);
    let page = check_page(&model, &dataset);
    assert!(page.contains("The coefficient "));
    assert!(page.contains("All releases together (only this one)"));
}

#[test]
fn a_hundred_coefficients_with_long_names() {
    let (model, dataset) = wide_study(100);
    assert_eq!(model.coefficients.len(), 100);
    let page = check_page(&model, &dataset);
    let svg = coefficient_plot(&model);
    for coefficient in &model.coefficients {
        let name = coefficient.term.name();
        assert!(svg.contains(&format!("<title>{name} ")), "the full name is in the title of its row");
        assert!(!svg.contains(&format!(">{name}</text>")), "the name itself is cut");
    }
    // The last digits tell the names apart, so they stay.
    assert!(svg.contains("_99</text>"));
    assert!(page.len() < 1_000_000);
}

fn edit(model: &mut Model, value: impl Fn(usize) -> (f64, f64)) {
    for (at, coefficient) in model.coefficients.iter_mut().enumerate() {
        let (estimate, standard_error) = value(at);
        let made = Estimate {
            estimate,
            standard_error,
            low: estimate - 2.0 * standard_error,
            high: estimate + 2.0 * standard_error,
        };
        coefficient.value = made;
        coefficient.encoded = made;
        coefficient.prediction = 0.8 * estimate;
    }
}

#[test]
fn magnitudes_from_tiny_to_huge() {
    let (mut model, dataset) = clinics();
    for size in [1e-300, 1e-12, 1e-6, 1e-3, 1.0, 1e3, 1e6, 1e12, 1e300] {
        edit(&mut model, |at| (size * (1.5 * at as f64 - 3.0), 0.7 * size));
        check_page(&model, &dataset);
    }
    let mixed = |at: usize| (10_f64.powi(6 * at as i32 - 12), 0.3 * 10_f64.powi(6 * at as i32 - 12));
    edit(&mut model, mixed);
    let page = check_page(&model, &dataset);
    assert!(page.contains("1.00×10⁻¹²") && page.contains("1.00×10¹²"));
}

#[test]
fn every_interval_includes_zero() {
    let (mut model, dataset) = clinics();
    edit(&mut model, |at| (0.01 * at as f64, 1.0));
    let page = check_page(&model, &dataset);
    assert!(page.contains("None of the 6 coefficients can be told from 0 at the 95% level."));
    assert!(!page.contains("Resolved, that is") && page.contains("Not resolved: "));
    assert!(!coefficient_plot(&model).contains("#0B5A8A"), "nothing is drawn as clear of 0");
}

#[test]
fn an_interval_out_of_proportion_is_cut_and_the_others_stay_readable() {
    let (mut model, dataset) = clinics();
    edit(&mut model, |at| if at == 2 { (40.0, 1e6) } else { (0.2, 0.05) });
    let page = check_page(&model, &dataset);
    assert!(page.contains("An arrow head marks an interval that goes on beyond the axis."));
    assert_eq!(coefficient_plot(&model).matches("<polygon").count(), 2);
    edit(&mut model, |_| (0.2, 0.05));
    assert!(!check_page(&model, &dataset).contains("An arrow head"));
}

#[test]
fn numbers_that_are_none_draw_nothing_wrong() {
    let (mut model, _) = clinics();
    edit(&mut model, |at| {
        if at == 0 { (f64::NAN, 1.0) } else { (0.1, if at == 1 { f64::INFINITY } else { 0.1 }) }
    });
    model.coefficients[0].noise_share = f64::NAN;
    model.coefficients[1].noise_share = 1.7;
    for svg in charts(&model) {
        check_chart(&svg);
    }
    edit(&mut model, |_| (0.0, 0.0));
    for svg in charts(&model) {
        check_chart(&svg);
    }
}

/// The visible text of a page, without its style, its privacy statement and the hashes.
fn visible(page: &str) -> String {
    let between = |from: &str, to: &str| &page[page.find(from).unwrap()..page.find(to).unwrap()];
    let body = [
        between("<body", "<h2>Privacy</h2>"),
        between("<h2>Diagnostics</h2>", "<h2>Parties and signatures</h2>"),
        between("<h2>Columns</h2>", "<h2>Provenance</h2>"),
    ]
    .concat();
    let mut text = String::new();
    let mut inside = false;
    for letter in body.chars() {
        match letter {
            '<' => inside = true,
            '>' => inside = false,
            letter if !inside => text.push(letter),
            _ => {}
        }
    }
    text
}

/// No number in the text is written like 1.5e-7.
fn check_no_exponents(text: &str) {
    let letters: Vec<char> = text.chars().collect();
    for window in letters.windows(3) {
        let sign = window[2] == '-' || window[2].is_ascii_digit();
        assert!(
            !(window[0].is_ascii_digit() && window[1] == 'e' && sign),
            "{}",
            window.iter().collect::<String>()
        );
    }
}

#[test]
fn a_calibrated_report_holds_together() {
    let (model, dataset) = calibrated_clinics();
    let page = check_page(&model, &dataset);
    for said in [
        "What the uncertainty is made of",
        "What would help",
        "Main limit",
        "Privacy noise and mixing fall about as 1/√n",
        "times as many people (",
        "would halve their part of the standard errors",
        "in place of 1. ",
        "square root of the number of its columns",
        "To predict",
        "coefficients of the study itself",
        "<th role=\"rowheader\" scope=\"row\">Intercept</th>",
        "--learner posterior",
        "about its mean",
        "The spread of every column stands clear of its noise.",
    ] {
        assert!(page.contains(said) || page.contains(&said.replacen('c', "C", 1)), "{said:?} is missing");
    }
    assert!(!page.contains("Noise pulls them towards 0") && !page.contains("Implied intercept"));
    check_no_exponents(&visible(&page));
    let value = |number: f64| format!("<data value=\"{number:?}\">");
    let RSquared { estimate, interval } = model.diagnostics.r_squared.unwrap();
    let [low, high] = interval.unwrap();
    for number in [estimate, low, high] {
        assert_eq!(page.matches(&value(number)).count(), 3, "in the head, the limits and the diagnostics");
    }
    for coefficient in &model.coefficients {
        let Parts { privacy, mixing, correlations, sampling, clipping, .. } = coefficient.parts.unwrap();
        for number in [privacy, mixing, correlations, sampling, clipping, coefficient.prediction] {
            assert!(page.contains(&value(number)), "{number} is missing");
        }
    }
    for column in summary::of_dataset(&dataset).unwrap().iter().flat_map(|party| &party.columns) {
        let [low, high] = column.range;
        for number in
            [column.mean.unwrap(), column.spread.unwrap(), low, high, column.noise, column.noise_share]
        {
            assert!(page.contains(&value(number)), "{number} of {} is missing", column.name);
        }
    }
}

/// Noise alone varies too: where less of it came out than is expected, no share is above all.
#[test]
fn no_share_of_noise_is_larger_than_the_whole() {
    let text = CLINICS.replace("epsilon = 1.0", "epsilon = 0.01");
    assert_ne!(text, *CLINICS);
    let dataset = dataset(&study(&text), 3);
    let shares = |model: &Model| model.coefficients.iter().map(|one| one.noise_share).collect::<Vec<_>>();
    let model = model(&dataset, "pressure", Learner::Ols);
    let all = shares(&model);
    assert!(all.iter().all(|share| (0.0..=1.0).contains(share)), "{all:?}");
    let whole = |share: f64| share.to_bits() == 1_f64.to_bits();
    assert!(all.iter().any(|&share| whole(share)), "the test would notice: {all:?}");
    let page = check_page(&model, &dataset);
    assert!(page.contains("100%") && !page.contains("over 100%"));
    assert!(page.contains("A share of 100% means"));
    let parties = summary::of_dataset(&dataset).unwrap();
    let mut columns = parties.iter().flat_map(|party| &party.columns);
    assert!(columns.any(|column| whole(column.noise_share)));
}

#[test]
fn a_party_with_one_column_is_not_told_to_bring_fewer() {
    let (_, dataset) = calibrated_clinics();
    let spare: Vec<_> =
        summary::of_dataset(&dataset).unwrap().iter().map(summary::PartySummary::could_spare).collect();
    assert_eq!(spare, [Some("columns"), Some("columns"), None]);

    let told = |north: &[&str]| {
        let text = potluck_fixtures::study("pairs", 300)
            .settings("method = \"calibrated\"")
            .party("north", north)
            .party("south", &["dose lo = 0; hi = 1"])
            .to_string();
        let dataset = calibrated_dataset(&study(&text));
        let points = limits(&model(&dataset, "dose", Learner::Posterior), Some(&dataset));
        points.iter().map(|point| format!("{}: {point}\n", point.title())).collect::<String>()
    };
    let said = told(&["age lo = 0; hi = 1"]);
    assert!(said.contains("Clipping fades with more people or a larger ε."), "{said}");
    assert!(said.contains("Columns of a party: Every party here has 1 column that can vary."), "{said}");
    assert!(!said.contains("fewer columns") && !said.contains("a quarter of them"), "{said}");
    let said = told(&["home levels = [\"city\", \"suburb\", \"country\", \"sea\"]"]);
    assert!(!said.contains("fewer columns at ") && said.contains("a quarter of them"), "{said}");
}

/// The made-up people are uniform sums, whose mean and spread are known.
#[test]
fn summaries_find_means_and_spreads() {
    let (_, dataset) = calibrated_clinics();
    let parties = summary::of_dataset(&dataset).unwrap();
    assert_eq!(parties.iter().map(|party| party.free_columns).collect::<Vec<_>>(), [2, 3, 1]);
    let column = |name: &str| {
        parties.iter().flat_map(|party| &party.columns).find(|column| column.name == name).unwrap()
    };
    // The mean of two uniforms has a standard deviation of 1/√24.
    let age = column("age");
    assert!((age.mean.unwrap() - 59.0).abs() < 3.0, "{age:?}");
    assert!((age.spread.unwrap() / (82.0 / 24_f64.sqrt()) - 1.0).abs() < 0.15, "{age:?}");
    assert!((18.0..40.0).contains(&age.range[0]) && (80.0..=100.0).contains(&age.range[1]), "{age:?}");
    assert!((column("smoker=yes").mean.unwrap() - 0.5).abs() < 0.1);
    assert!(parties.iter().flat_map(|party| &party.columns).all(|column| column.resolved));
}

#[test]
fn columns_of_few_people_are_drowned() {
    let dataset = calibrated_dataset(&calibrated_study(&CLINICS, 300));
    let parties = summary::of_dataset(&dataset).unwrap();
    let columns = || parties.iter().flat_map(|party| &party.columns);
    assert!(columns().any(|column| !column.resolved));
    assert!(columns().all(|column| (0.0..=1.0).contains(&column.noise_share)), "{parties:?}");
    let model = model(&dataset, "pressure", Learner::Posterior);
    let page = check_page(&model, &dataset);
    assert!(page.contains("Drowned in noise"));
    check_no_exponents(&visible(&page));
}

#[test]
fn what_limits_a_model_can_be_said_without_its_dataset() {
    let (mut model, dataset) = calibrated_clinics();
    let titles = |points: &[potluck_report::Point]| {
        points.iter().map(potluck_report::Point::title).collect::<Vec<_>>()
    };
    let alone = limits(&model, None);
    let both = limits(&model, Some(&dataset));
    assert!(titles(&alone).iter().all(|title| titles(&both).contains(title)));
    let party = both.iter().find(|point| point.title() == "Columns of a party").unwrap().to_string();
    assert!(
        party.starts_with("south adds the most noise: it has the most columns that can vary, 3. "),
        "{party}"
    );
    assert!(party.contains(" times that of west, which has 1. "), "{party}");

    let parts = |sampling: f64| Parts {
        privacy: 0.1,
        mixing: 0.05,
        correlations: 0.05,
        sampling,
        clipping: 0.8 - sampling,
        people: 0.0,
        approximation: 0.0,
    };
    for coefficient in &mut model.coefficients {
        coefficient.parts = Some(parts(0.7));
    }
    let said: Vec<String> = limits(&model, None).iter().map(ToString::to_string).collect();
    assert!(
        said.iter().any(|text| text.starts_with("Sampling: on average over the features, it makes up 70% "))
    );
    assert!(said.iter().any(|text| text.contains("only more people help")), "{said:?}");
    for coefficient in &mut model.coefficients {
        coefficient.parts = Some(parts(0.1));
    }
    let clipping = limits(&model, None).into_iter().find(|point| point.title() == "Clipping").unwrap();
    assert!(clipping.to_string().contains("Clipping fades with more people, a larger ε"), "{clipping}");
    model.label = potluck_release::model::Term::Numeric { column: "\u{1b}[2J".to_owned(), lo: 0.0, hi: 1.0 };
    assert!(limits(&model, None).iter().all(|point| !point.to_string().contains('\u{1b}')));
}

#[test]
fn columns_that_a_regression_does_not_use_are_named() {
    let dataset = calibrated_dataset(&calibrated_study(&CLINICS, 5_000));
    let features = Some(vec!["age".to_owned(), "income".to_owned()]);
    let regression = Regression { features, ..Regression::of("pressure") };
    let model = fit(&dataset, &regression).unwrap();
    let page = check_page(&model, &dataset);
    let said = "does not use <bdi>home</bdi> of <bdi>south</bdi>: a study without would carry less noise.";
    assert!(page.contains(said));
}

#[test]
fn hostile_names_are_only_text_in_calibrated_reports_too() {
    let dataset = calibrated_dataset(&calibrated_study(HOSTILE, 3_000));
    let model = model(&dataset, "<script>alert('y')</script>", Learner::Posterior);
    let page = check_page(&model, &dataset);
    assert!(page.contains("R&amp;D &lt;b&gt;"));
    assert!(parts_plot(&model).contains("R&amp;D &lt;b&gt;"));
}

#[test]
fn cards_are_text_only_and_leave_the_page_around_them_alone() {
    let study = calibrated_study(HOSTILE, 3_000);
    let dataset = calibrated_dataset(&study);
    let model = model(&dataset, "<script>alert('y')</script>", Learner::Posterior);
    for card in
        [study_card(&study, true), study_card(&study, false), dataset_card(&dataset), model_card(&model)]
    {
        assert!(card.contains("R&amp;D &lt;b&gt;"));
        assert!(!card.contains("<script") && !card.contains("<img") && !card.contains("<b>"));
        assert!(!card.contains(":root") && !card.contains("&quot;Segoe"));
        let outside = card.split("<style>").next().unwrap();
        assert!(outside.starts_with("<div class=\"potluck-card\">"), "{outside}");
    }
    assert!(study_card(&study, true).contains(&study.id()[..16]));
    assert!(study_card(&study, false).contains("not sealed yet"));
}

#[test]
fn an_r_squared_beyond_its_range_is_shown_within() {
    let (mut model, dataset) = calibrated_clinics();
    model.diagnostics.r_squared = Some(RSquared { estimate: -0.0625, interval: Some([-0.5, 1.25]) });
    let page = check_page(&model, &dataset);
    assert!(page.contains("R² is <data value=\"-0.0625\">0</data> (95% interval <data value=\"-0.5\">0</data> to <data value=\"1.25\">1</data>): the features explain 0% of"));
    assert!(page.contains("may fall outside 0 to 1 by chance"));
}

/// Widths of the coloured parts of a stacked chart, row by row.
fn bars(svg: &str) -> Vec<(f64, Vec<f64>)> {
    let document = Document::parse(svg).unwrap();
    let mut rows: Vec<(f64, Vec<f64>)> = Vec::new();
    for node in document.root_element().children().filter(|node| node.tag_name().name() == "rect") {
        let [width, height] = ["width", "height"].map(|name| attribute(&node, name));
        match node.attribute("fill").unwrap() {
            "#E1E5EA" => rows.push((width, Vec::new())),
            "#B45309" | "#2B84A8" | "#008060" | "#8B95A1" | "#6B3F8F" | "#A8326E" if height > 11.5 => {
                rows.last_mut().unwrap().1.push(width);
            }
            _ => {}
        }
    }
    rows
}

#[test]
fn the_parts_of_a_bar_fill_it() {
    let (mut model, _) = calibrated_clinics();
    let odd = [
        Some(Parts {
            privacy: 1.0,
            mixing: 0.0,
            correlations: 0.0,
            sampling: 0.0,
            clipping: 0.0,
            people: 0.0,
            approximation: 0.0,
        }),
        Some(Parts {
            privacy: 0.1,
            mixing: 0.1,
            correlations: 0.7,
            sampling: 0.02,
            clipping: 0.03,
            people: 0.05,
            approximation: 0.0,
        }),
        Some(Parts {
            privacy: f64::NAN,
            mixing: 0.2,
            correlations: 0.3,
            sampling: f64::INFINITY,
            clipping: 0.1,
            people: 0.0,
            approximation: 0.0,
        }),
        Some(Parts {
            privacy: -0.5,
            mixing: 1e300,
            correlations: 1e300,
            sampling: 1e300,
            clipping: 1e-300,
            people: 0.0,
            approximation: 0.0,
        }),
        None,
    ];
    for changed in [false, true] {
        if changed {
            for (coefficient, parts) in model.coefficients.iter_mut().zip(odd) {
                coefficient.parts = parts;
            }
        }
        for layout in [Layout::Wide, Layout::Narrow] {
            let svg = parts_plot_in(&model, layout);
            check_chart(&svg);
            let rows = bars(&svg);
            assert_eq!(rows.len(), model.coefficients.len());
            for (coefficient, (whole, parts)) in model.coefficients.iter().zip(rows) {
                let sum: f64 = parts.iter().sum();
                let expected = if coefficient.parts.is_some() { whole } else { 0.0 };
                assert!((sum - expected).abs() <= 0.4, "{parts:?} fill {sum} of {whole}");
            }
        }
    }
}

fn of_cohorts() -> PublicDataset {
    let text = CLINICS.replace("format = 1", "format = 2");
    calibrated_dataset(&calibrated_study(&text, 60_000))
}

#[test]
fn a_report_on_different_people_says_who_is_where() {
    let dataset = of_cohorts();
    let model = model(&dataset, "pressure", Learner::Posterior);
    assert!(model.coefficients.iter().all(|one| one.parts.unwrap().people > 0.0));
    let page = check_page(&model, &dataset);
    for said in [
        "Who is where",
        "Whom parties have in common",
        "How values are distributed",
        "Who is where: what is not known of whom parties have in common",
        "People of the label’s party",
        "Missing ones are counted",
    ] {
        assert!(page.contains(said), "{said:?} is missing");
    }
    let people = people::of_dataset(&dataset).unwrap().unwrap();
    assert_eq!(people.overlaps.len(), 3);
    for overlap in &people.overlaps {
        assert!(overlap.finding.is_none() && overlap.interval[1] > 0.99, "{overlap:?}");
        assert!(page.contains(&format!("<data value=\"{:?}\">", overlap.share)));
    }
    assert!(people.alarms().is_empty());
    let parties = summary::of_dataset(&dataset).unwrap();
    let columns: Vec<&summary::ColumnSummary> = parties.iter().flat_map(|party| &party.columns).collect();
    for layout in [Layout::Wide, Layout::Narrow] {
        check_chart(&overlaps_plot_in(&people, layout));
        check_chart(&distributions_plot_in(&columns, layout).unwrap());
        check_chart(&parts_plot_in(&model, layout));
    }
    for column in columns.iter().filter(|column| column.distribution.is_some()) {
        let shape = column.distribution.as_ref().unwrap();
        let whole: f64 = shape.bars.iter().chain(&shape.beyond).map(|share| share.value).sum();
        assert!((whole - 1.0).abs() < 1e-9, "{}: {whole}", column.name);
        assert!(shape.quantiles.windows(2).all(|pair| pair[0].value <= pair[1].value));
    }
    // Where all hold the same people, there is nothing of it.
    let (model, dataset) = calibrated_clinics();
    let plain = check_page(&model, &dataset);
    assert!(!plain.contains("Who is where") && !plain.contains("who is where"));
    assert_eq!(people::of_dataset(&dataset).unwrap(), None);
}

#[test]
fn parties_that_have_nobody_in_common_are_said_before_everything_else() {
    let dataset = of_cohorts();
    let model = model(&dataset, "pressure", Learner::Posterior);
    let model = with_findings(model, &[FindingKind::FeatureTails, FindingKind::NobodyInCommon]);
    let page = check_page(&model, &dataset);
    let text = text_of(&page[page.find("</h1>").unwrap()..]);
    let first = &model.findings()[0];
    assert_eq!(first.kind, FindingKind::NobodyInCommon);
    assert!(text.starts_with(&format!("Careful: {}", first.sentence)), "{}", &text[..200]);
    assert!(text.find(HEADING).unwrap() > first.sentence.to_string().len());
}

#[test]
fn extreme_calibrated_values() {
    let (mut model, dataset) = calibrated_clinics();
    for size in [1e-300, 1e-12, 1.0, 1e12, 1e300] {
        edit(&mut model, |at| (size * (1.5 * at as f64 - 3.0), 0.7 * size));
        model.coefficients[1].range = [-size, size];
        check_no_exponents(&visible(&check_page(&model, &dataset)));
    }
}

/// Relative luminance (WCAG 2.2) of "#rrggbb".
fn luminance(colour: &str) -> f64 {
    let part = |at: usize| {
        let value = f64::from(u8::from_str_radix(&colour[at..at + 2], 16).unwrap()) / 255.0;
        if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
    };
    0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5)
}

#[test]
fn colours_have_contrast() {
    let schemes: Vec<&str> =
        STYLESHEET.split(":root {\n").skip(1).map(|rest| &rest[..rest.find('}').unwrap()]).collect();
    assert_eq!(schemes.len(), 2, "light and dark");
    for scheme in schemes {
        let colour = |name: &str| {
            let start = scheme.find(&format!("--{name}: ")).unwrap() + name.len() + 4;
            &scheme[start..start + 7]
        };
        let contrast = |a: &str, b: &str| {
            let (a, b) = (luminance(colour(a)), luminance(colour(b)));
            (a.max(b) + 0.05) / (a.min(b) + 0.05)
        };
        for (text, surface) in [
            ("ink", "surface"),
            ("soft", "surface"),
            ("ink", "raised"),
            ("warning", "warning-surface"),
            ("warning", "surface"),
        ] {
            assert!(contrast(text, surface) >= 4.5, "{text} on {surface}");
        }
        for mark in ["clear", "unclear", "noise", "mixing", "correlations", "clipping", "people", "zero"] {
            assert!(contrast(mark, "surface") >= 3.0, "{mark} on surface");
        }
    }
}

const KINDS: [FindingKind; 5] = [
    FindingKind::LabelTails,
    FindingKind::FeatureTails,
    FindingKind::LabelUnresolved,
    FindingKind::FeatureUnresolved,
    FindingKind::Confounders,
];

/// The model with no findings but these: of the label on every coefficient and on R², others on the
/// second one.
fn with_findings(mut model: Model, kinds: &[FindingKind]) -> Model {
    let is_of_label =
        |kind: FindingKind| matches!(kind, FindingKind::LabelTails | FindingKind::LabelUnresolved);
    let finding = |kind: &FindingKind| Finding {
        kind: *kind,
        columns: if *kind == FindingKind::Confounders {
            vec!["salt & pepper".to_owned()]
        } else {
            Vec::new()
        },
    };
    for (at, coefficient) in model.coefficients.iter_mut().enumerate() {
        coefficient.findings =
            kinds.iter().filter(|&&kind| is_of_label(kind) || at == 1).map(finding).collect();
    }
    model.diagnostics.r_squared_findings =
        kinds.iter().filter(|&&kind| is_of_label(kind)).map(finding).collect();
    model
}

/// The text between the tags of markup.
fn text_of(markup: &str) -> String {
    let body = markup.rsplit("</style>").next().unwrap();
    let pieces = body.split('<').filter_map(|piece| piece.split_once('>')).map(|(_, text)| text);
    pieces.collect::<String>().replace("&amp;", "&")
}

#[test]
fn findings_of_each_kind_come_before_the_first_number() {
    let (model, dataset) = calibrated_clinics();
    for kind in KINDS {
        let model = with_findings(model.clone(), &[kind]);
        let said = model.findings();
        assert_eq!(said.len(), 1, "each once");
        let sentence = said[0].sentence.to_string();
        check_page(&model, &dataset);
        for shown in [page(&model, &dataset), outcome(&model, &dataset), model_card(&model)] {
            let text = text_of(&shown);
            let at = text.find(&sentence).unwrap_or_else(|| panic!("{sentence:?} is not in {text}"));
            assert!(text.find(HEADING).unwrap() < at);
            // The headline is the first to speak of numbers.
            assert!(at < text.find("95%").unwrap(), "{kind:?}: {text}");
            let note = shown.find("role=\"note\"").unwrap();
            assert!(note < shown.find("<data").unwrap() && note < shown.find("<svg").unwrap());
        }
    }
}

#[test]
fn nothing_is_marked_where_nothing_was_found() {
    let (model, dataset) = calibrated_clinics();
    let page = check_page(&with_findings(model, &[]), &dataset);
    for sign in [HEADING, "◆", "iamonds", "class=\"mark\"", "cut values"] {
        assert!(!page.contains(sign), "{sign}");
    }
}

/// The line of a feature in the table of coefficients.
fn row<'a>(page: &'a str, name: &str) -> &'a str {
    let table = page.find("<table").unwrap();
    let start = table + page[table..].find(&format!("<bdi>{name}</bdi>")).unwrap();
    &page[start..start + page[start..].find("</tr>").unwrap()]
}

#[test]
fn a_coefficient_with_a_finding_is_marked_in_table_and_plot_and_the_others_are_not() {
    let (model, dataset) = calibrated_clinics();
    for (kind, mark) in [
        (FindingKind::FeatureTails, "◆ feature cut"),
        (FindingKind::FeatureUnresolved, "◆ feature in noise"),
        (FindingKind::Confounders, "◆ open confounders"),
    ] {
        let plain = with_findings(model.clone(), &[]);
        let model = with_findings(model.clone(), &[kind]);
        let page = check_page(&model, &dataset);
        assert!(row(&page, &model.coefficients[1].term.name()).contains(mark));
        assert!(!row(&page, &model.coefficients[0].term.name()).contains('◆'));
        assert!(page.contains("Diamonds on dashed lines: something speaks against the coefficient"));
        for layout in [Layout::Wide, Layout::Narrow] {
            let (before, after) = (coefficient_plot_in(&plain, layout), coefficient_plot_in(&model, layout));
            let count = |svg: &str, element: &str| svg.matches(element).count();
            assert!(count(&after, "<polygon") > count(&before, "<polygon"), "a diamond");
            assert!(count(&after, "<polyline") > count(&before, "<polyline"), "dashes");
            assert!(count(&after, "<circle") < count(&before, "<circle"), "no dot");
            assert!(after.contains("something speaks against 1 of the coefficients."));
            let short = mark.trim_start_matches("◆ ");
            assert!(
                after.contains(&format!("; {short}\n</title>"))
                    || after.contains(&format!("; {short}</title>"))
            );
        }
    }
}

#[test]
fn a_finding_about_the_label_is_marked_on_every_coefficient_and_on_r_squared() {
    let (model, dataset) = calibrated_clinics();
    for (kind, mark, of_r_squared) in [
        (FindingKind::LabelTails, "◆ label cut", "It is about cut values."),
        (FindingKind::LabelUnresolved, "◆ label in noise", "Do not rely on it"),
    ] {
        let model = with_findings(model.clone(), &[kind]);
        let page = check_page(&model, &dataset);
        for coefficient in &model.coefficients {
            assert!(row(&page, &coefficient.term.name()).contains(mark));
        }
        // In the head and in the diagnostics.
        assert_eq!(page.matches(mark).count(), model.coefficients.len() + 2);
        assert!(page.contains(of_r_squared));
    }
}

#[test]
fn a_headline_says_which_intervals_cannot_be_relied_on_and_what_is_about_cut_values() {
    let (model, dataset) = calibrated_clinics();
    let lead = |kinds: &[FindingKind]| {
        let page = page(&with_findings(model.clone(), kinds), &dataset);
        let start = page.find("<p class=\"lead\">").unwrap();
        text_of(&page[start..start + page[start..].find("</p>").unwrap() + 4])
    };
    let second = model.coefficients[1].term.name();
    let plain = lead(&[]);
    assert!(
        lead(&[FindingKind::FeatureUnresolved])
            .ends_with(&format!("Do not rely on the interval of {second}."))
    );
    assert!(lead(&[FindingKind::FeatureTails]).ends_with(&format!("About cut values: {second}.")));
    assert!(lead(&[FindingKind::LabelUnresolved]).ends_with("Do not rely on any interval here."));
    assert!(lead(&[FindingKind::LabelTails]).ends_with("All coefficients are about cut values."));
    assert_eq!(lead(&[FindingKind::Confounders]), plain, "the interval allows for it");
}

#[test]
fn what_values_were_cut_to_stands_below_the_coefficients() {
    let (model, dataset) = calibrated_clinics();
    let mut model = with_findings(model, &[FindingKind::FeatureTails]);
    model.label_kept = Some([90.125, 187.5]);
    model.coefficients[1].kept = Some([20.5, 80.5]);
    let page = check_page(&model, &dataset);
    for number in [90.125, 187.5, 20.5, 80.5] {
        assert!(page.contains(&format!("<data value=\"{number:?}\">")), "{number}");
    }
    let text = text_of(&page);
    assert!(text.contains("pressure 90.1 to 187.5 mmHg; age 20.5 to 80.5 years."), "{text}");
}

#[test]
fn limits_know_open_confounders_and_do_not_undo_what_was_cut() {
    let (model, _) = calibrated_clinics();
    let said = |kinds: &[FindingKind], title: &str| {
        let points = limits(&with_findings(model.clone(), kinds), None);
        points.into_iter().find(|point| point.title() == title).map(|point| point.to_string())
    };
    assert_eq!(said(&[], "Open confounders"), None);
    let confounders = said(&[FindingKind::Confounders], "Open confounders").unwrap();
    let name = model.coefficients[1].term.name();
    assert!(
        confounders
            .starts_with(&format!("What looks like an effect of {name} may come from salt & pepper: ")),
        "{confounders}"
    );
    let some = said(&[FindingKind::FeatureTails], "Clipping").unwrap();
    assert!(some.contains(&format!("but not for coefficients about cut values: {name}.")), "{some}");
    let all = said(&[FindingKind::LabelTails], "Clipping").unwrap();
    assert!(all.contains("The fit does not make up for that here"), "{all}");
    let resolved = said(&[FindingKind::FeatureUnresolved], "What was resolved").unwrap();
    assert!(resolved.contains(&format!("Do not rely on the interval of {name}: ")), "{resolved}");
}

#[test]
fn names_in_findings_are_only_text() {
    let study = calibrated_study(HOSTILE, 3_000);
    let dataset = calibrated_dataset(&study);
    let model = model(&dataset, "<script>alert('y')</script>", Learner::Posterior);
    for kind in KINDS {
        let page = check_page(&with_findings(model.clone(), &[kind]), &dataset);
        let note = &page[page.find("role=\"note\"").unwrap()..page.find("class=\"lead\"").unwrap()];
        assert!(note.contains("<bdi>") && !note.contains("<script") && !note.contains("<svg"), "{note}");
    }
}

#[test]
fn an_interval_is_drawn_as_it_lies_about_its_estimate() {
    let (model, _) = calibrated_clinics();
    let mut model = with_findings(model, &[]);
    for coefficient in &mut model.coefficients {
        coefficient.value = Estimate { estimate: 1.0, standard_error: 0.7, low: 0.8, high: 3.0 };
        coefficient.range = [0.0, 2.0];
    }
    let svg = coefficient_plot(&model);
    let document = Document::parse(&svg).unwrap();
    let drawn = |element: &str| {
        let nodes = document.root_element().children();
        nodes.filter(|node| node.tag_name().name() == element).collect::<Vec<_>>()
    };
    let dot = drawn("circle").into_iter().map(|dot| attribute(&dot, "cx")).next().unwrap();
    let x = |point: &str| point.split_once(',').unwrap().0.parse::<f64>().unwrap();
    let lies = |line: roxmltree::Node<'_, '_>| {
        let points: Vec<f64> = line.attribute("points").unwrap().split_whitespace().map(x).collect();
        (points[0] < points[1]).then(|| [points[0], points[1]])
    };
    let mut whisker =
        drawn("polyline").into_iter().filter(|line| line.attribute("stroke") == Some("#0B5A8A"));
    let ends = whisker.find_map(lies).unwrap();
    let ratio = (ends[1] - dot) / (dot - ends[0]);
    assert!((ratio - 10.0).abs() < 0.2, "{ends:?} about {dot}");
}

/// How wide the widest interval is that excludes 0, in pixels.
fn widest_of(svg: &str) -> f64 {
    let document = Document::parse(svg).unwrap();
    let lines = document.root_element().children().filter(|node| node.tag_name().name() == "polyline");
    let solid = lines.filter(|line| line.attribute("stroke") == Some("#0B5A8A")).map(|line| {
        let x = |point: &str| point.split_once(',').unwrap().0.parse::<f64>().unwrap();
        let points: Vec<f64> = line.attribute("points").unwrap().split_whitespace().map(x).collect();
        points[1] - points[0]
    });
    solid.fold(0.0, f64::max)
}

/// A rare level that nothing is known of must not make the plot about itself.
#[test]
fn one_unresolved_level_does_not_set_the_axis() {
    let (mut model, _) = calibrated_clinics();
    let others = |at| (0.2 + 0.01 * at as f64, 0.02);
    edit(&mut model, others);
    let level = model.coefficients.len() - 1;
    let without = widest_of(&coefficient_plot(&model));
    edit(&mut model, |at| if at == level { (0.0, 40.0) } else { others(at) });
    let svg = coefficient_plot(&model);
    check_chart(&svg);
    assert!(svg.contains("<polygon"), "what leaves the axis is marked");
    assert!(widest_of(&svg) > 0.6 * without, "{} of {without}", widest_of(&svg));
}

#[test]
fn an_interval_that_cannot_be_relied_on_does_not_squeeze_the_others() {
    let (model, _) = calibrated_clinics();
    let mut model = with_findings(model, &[FindingKind::FeatureUnresolved]);
    edit(&mut model, |at| if at == 1 { (4e6, 1e6) } else { (0.2, 0.05) });
    let squeezed = coefficient_plot(&with_findings(model.clone(), &[]));
    let svg = coefficient_plot(&model);
    check_chart(&svg);
    // The far end of the one is beyond the axis, and the widths of the others can be seen.
    assert!(svg.contains("<polygon") && svg != squeezed);
    assert!(widest_of(&svg) > 10.0, "{svg}");
}

#[test]
fn a_preview_says_in_which_share_of_releases_something_speaks_against_a_coefficient() {
    let coefficient = |name: &str, with_findings| preview::Coefficient {
        name: name.to_owned(),
        party: "south".to_owned(),
        non_private: 0.2,
        mean: 0.2,
        error: 0.1,
        half_width: 0.1,
        coverage: 1.0,
        with_findings,
        estimates: vec![0.1, 0.3],
        standard: 1.0,
    };
    let preview = |coefficients| preview::Preview {
        study: "clinics".to_owned(),
        label: "pressure".to_owned(),
        rows: 1000,
        released_rows: 200,
        releases: 2,
        coefficients,
        r_squared: preview::RSquared { non_private: 0.6, mean: 0.5, coverage: 1.0 },
        loss: preview::Loss { non_private: 0.4, private: 0.5 },
    };
    let found = preview_page(&preview(vec![coefficient("age", 0.5), coefficient("bmi", 0.0)]));
    assert!(found.contains("<li><bdi>age</bdi>: 50%</li>") && !found.contains("<bdi>bmi</bdi>: "));
    let nothing = preview_page(&preview(vec![coefficient("age", 0.0)]));
    assert!(!nothing.contains("speak against"));
}
