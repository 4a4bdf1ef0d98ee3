//! The report on one model: the answer first, then what limits it, then everything needed to check
//! it.

use maud::{Markup, html};
use potluck_release::findings::{HEADING, Sentence};
use potluck_release::model::{Coefficient, Estimate, Kind, RSquared};
use potluck_release::statement::Guarantee;
use potluck_release::study::{Column, Domain, Format, Missing, Party, Unknown};
use potluck_release::summary::{self, ColumnSummary};
use potluck_release::{Model, PublicDataset};

use crate::chart::coefficients::is_cut;
use crate::chart::parts;
use crate::numbers::{self, Rounding};
use crate::people::{known_share, people_section, shapes};
use crate::privacy::statement_markup;
use crate::table::Table;
use crate::words::{self, capital, exactly, figure, name, sentence_markup, share};
use crate::{Layout, coefficient_plot_in, noise_plot_in, parts_plot_in};

/// More levels than this are counted, not listed.
const LEVELS: usize = 40;

/// The whole report as an HTML fragment: one `article` with its own heading.
pub fn article(model: &Model, dataset: &PublicDataset) -> String {
    markup(model, dataset).into_string()
}

/// What the fit found, for a page that has a heading of its own and says elsewhere what was
/// released and promised: the answer, what limits it and what the uncertainty is made of, as an
/// HTML fragment under headings of level 2 and 3.
pub fn outcome(model: &Model, dataset: &PublicDataset) -> String {
    let level = Level(2);
    let markup = html! {
        article .potluck-report .potluck-outcome {
            (head(model, dataset, level))
            section { (answer(model, level.below())) }
            section { (coefficients(model, level.below())) }
            section { (limits(model, dataset, level.below())) }
            section { (uncertainty(model, level.below())) }
            section { (diagnostics(model, level.below())) }
        }
    };
    markup.into_string()
}

/// How deep a heading stands in the page.
#[derive(Clone, Copy)]
pub(crate) struct Level(pub(crate) u8);

impl Level {
    fn below(self) -> Self {
        Self(self.0 + 1)
    }

    fn heading(self, words: &Markup) -> Markup {
        html! {
            @match self.0 {
                1 => h1 { (words) },
                2 => h2 { (words) },
                _ => h3 { (words) },
            }
        }
    }

    pub(crate) fn titled(self, words: &str) -> Markup {
        self.heading(&html! { (words) })
    }
}

pub(crate) fn markup(model: &Model, dataset: &PublicDataset) -> Markup {
    let level = Level(1);
    html! {
        article .potluck-report {
            (head(model, dataset, level))
            section { (answer(model, level.below())) }
            section { (coefficients(model, level.below())) }
            section { (limits(model, dataset, level.below())) }
            section { (uncertainty(model, level.below())) }
            section { (privacy(dataset)) }
            section { (diagnostics(model, level.below())) }
            section { (parties(dataset)) }
            (people_section(dataset))
            section { (columns(model, dataset)) }
            section { (provenance(model, dataset)) }
        }
    }
}

fn head(model: &Model, dataset: &PublicDataset, level: Level) -> Markup {
    let study = dataset.study();
    let parties = dataset.parties().count();
    let guarantee = |guarantee: &Guarantee| {
        html! {
            "ε = " (numbers::rounded_up(guarantee.epsilon))
            span .aside { "δ = " (numbers::significant(guarantee.delta, 6)) }
        }
    };
    let together = match parties {
        1 => "Privacy of all together".to_owned(),
        2 => "Privacy of both together".to_owned(),
        _ => format!("Privacy of all {parties} together"),
    };
    let fact = |what: &str, value: Markup| html! { div { dt { (what) } dd { (value) } } };
    html! {
        header {
            p .study { "Study " (name(&model.study)) }
            (level.heading(&html! { (words::regression(model.kind)) " of " (name(&model.label.name())) }))
            (mismatch(model, dataset))
            (opening(model))
            p .lead { (words::headline(model)) }
            dl .facts {
                (fact(people_of(model), html! { (numbers::count(model.diagnostics.rows)) }))
                (fact("Parties", html! { (numbers::count(parties as u64)) }))
                @match &model.classification {
                    Some(found) => {
                        (fact("Share", within(found.share, found.share_interval, 3)))
                        (fact("Area under the curve", within(found.area, found.area_interval, 2)))
                    }
                    None => (fact("R²", r_squared(model))),
                }
                (fact("Privacy of each release", guarantee(&Guarantee::of_party(study))))
                (fact(&together, guarantee(&Guarantee::joint(study, parties))))
            }
        }
    }
}

/// Whose number is told.
fn people_of(model: &Model) -> &'static str {
    if model.estimand.is_of_label_people() { "People of the label’s party" } else { "People" }
}

fn r_squared(model: &Model) -> Markup {
    let Some(RSquared { estimate, interval }) = model.diagnostics.r_squared else {
        return html! { "not estimable" };
    };
    html! {
        (share(estimate, 2))
        @if let Some([low, high]) = interval { span .aside { (share(low, 2)) " to " (share(high, 2)) } }
        (mark(model.r_squared_mark()))
    }
}

/// A share with its interval.
fn within(value: f64, [low, high]: [f64; 2], decimals: usize) -> Markup {
    html! {
        (share(value, decimals))
        span .aside { (share(low, decimals)) " to " (share(high, decimals)) }
    }
}

/// What speaks against a number, beside it; the same sign stands in the plot.
fn mark(words: Option<String>) -> Markup {
    html! { @if let Some(words) = words { " " span .mark { "◆ " (words) } } }
}

/// What a reader must know before the first number: what is wrong with the fit, and what published
/// numbers say against its coefficients.
pub(crate) fn opening(model: &Model) -> Markup {
    let all = model.findings();
    let (of_people, findings): (Vec<_>, Vec<_>) = all.iter().partition(|said| said.is_about_people());
    html! {
        @for said in of_people { (alarm(&said.sentence)) }
        @if let Some(fault) = model.diagnostics.fault() {
            p .warning role="note" {
                strong { "Do not rely on these coefficients. " }
                "In this fit " (fault) "."
            }
        }
        @if !findings.is_empty() {
            div .warning role="note" {
                p { strong { (HEADING) } }
                ul { @for said in &findings { li { (sentence_markup(&said.sentence)) } } }
            }
        }
    }
}

/// What stands above everything else.
pub(crate) fn alarm(sentence: &Sentence) -> Markup {
    html! { p .warning role="note" { strong { "Careful: " } (sentence_markup(sentence)) } }
}

/// Says so if the dataset is not the one that the model was fitted on.
fn mismatch(model: &Model, dataset: &PublicDataset) -> Markup {
    let other_dataset = model.dataset != dataset.content_hash() || model.study_id != dataset.study().id();
    html! {
        @if other_dataset {
            p .warning role="note" {
                strong { "This model was not fitted on this dataset. " }
                "The model names the dataset " code { (model.dataset) } ", the privacy statement and the columns below belong to "
                code { (dataset.content_hash()) } ". Fit again before you rely on either."
            }
        }
    }
}

pub(crate) fn answer(model: &Model, heading: Level) -> Markup {
    let level = numbers::level(model.level);
    html! {
        (heading.titled("The answer"))
        figure {
            (Layout::both(|layout| coefficient_plot_in(model, layout)))
            figcaption {
                "Dots are estimates, lines their " (level) " intervals. Filled: the interval excludes 0. Open and grey: it includes 0. "
                "Steps are half of the range that the release kept of a feature, so that features can be compared. "
                @if has_findings(model) { "Diamonds on dashed lines: something speaks against the coefficient, as said at the top. " }
                @if is_cut(model) { "An arrow head marks an interval that goes on beyond the axis. " }
                "The table has the same per unit of each feature."
            }
        }
    }
}

/// Whether something speaks against a coefficient.
fn has_findings(model: &Model) -> bool {
    model.coefficients.iter().any(|one| !one.findings.is_empty())
}

/// The cells of one line of the table of coefficients; `last` is the coefficient to predict with,
/// or its noise share.
fn estimate_cells(
    what: Markup,
    unit: &str,
    value: &Estimate,
    last: impl Fn(Rounding) -> Markup,
) -> Vec<Markup> {
    let rounding = Rounding::of(value);
    let number = |x: f64| exactly(x, &rounding.show(x));
    vec![
        what,
        html! { (name(unit)) },
        html! { (number(value.estimate)) },
        html! { (number(value.standard_error)) },
        html! {
            (number(value.low)) " to " (number(value.high))
            @if !value.excludes_zero() { span .unseen { ", includes 0" } }
        },
        last(rounding),
    ]
}

/// Odds ratios with their intervals: by what the odds are multiplied per unit of a feature.
fn odds_ratios(model: &Model) -> Markup {
    let level = numbers::level(model.level);
    let interval = format!("{level} interval");
    let row = |one: &Coefficient| {
        let class = if one.value.excludes_zero() { "clear" } else { "unclear" };
        let ratio = one.value.ratio();
        let cells = vec![
            html! { (name(&one.term.name())) (mark(one.mark())) },
            html! { (name(&words::rise(one))) },
            figure(ratio.estimate, 3),
            html! {
                (figure(ratio.low, 3)) " to " (figure(ratio.high, 3))
                @if !one.value.excludes_zero() { span .unseen { ", includes 1" } }
            },
        ];
        (class, cells)
    };
    html! {
        (Table {
            caption: "Odds ratios",
            columns: &[("Feature", false), ("For", false), ("Odds ratio", true), (&interval, true)],
            rows: model.coefficients.iter().map(row).collect(),
        }.markup())
        p .aside {
            "Odds ratio: by what the odds of " (name(&model.label.name())) " are multiplied when the feature rises by one unit, the others held fixed; 1 changes nothing. "
            "Odds are the share it applies to over the share it does not."
        }
    }
}

fn coefficient_row(model: &Model, one: &Coefficient) -> (&'static str, Vec<Markup>) {
    let class = if one.value.excludes_zero() { "clear" } else { "unclear" };
    let what = html! { (name(&one.term.name())) (mark(one.mark())) };
    let last = |rounding: Rounding| {
        if has_parts(model) {
            exactly(one.prediction, &rounding.show(one.prediction))
        } else {
            exactly(one.noise_share, &numbers::percent(one.noise_share))
        }
    };
    (class, estimate_cells(what, &words::per_unit(model, one), &one.value, last))
}

fn intercept_row(model: &Model) -> (&'static str, Vec<Markup>) {
    let what = if model.free_intercept { "Intercept" } else { "Implied intercept" };
    let last = |rounding: Rounding| {
        let prediction = model.prediction_intercept;
        if has_parts(model) {
            exactly(prediction, &rounding.show(prediction))
        } else {
            html! { "—" }
        }
    };
    let cells = estimate_cells(html! { (what) }, &words::label_unit(model), &model.intercept, last);
    ("intercept", cells)
}

/// What values were cut to, where a coefficient is about cut values.
fn cut_to(model: &Model) -> Markup {
    let cuts = model.cut_to();
    html! {
        @if !cuts.is_empty() {
            p {
                "The releases cut at least what lies beyond these ranges, and coefficients about cut values are about what is left: "
                @for (at, cut) in cuts.iter().enumerate() {
                    @let width = cut.kept[1] - cut.kept[0];
                    @if at > 0 { "; " }
                    (name(&cut.name)) " "
                    (exactly(cut.kept[0], &numbers::within(cut.kept[0], width))) " to "
                    (exactly(cut.kept[1], &numbers::within(cut.kept[1], width)))
                    @if let Some(unit) = &cut.unit { " " (name(unit)) }
                }
                "."
            }
        }
    }
}

pub(crate) fn coefficients(model: &Model, heading: Level) -> Markup {
    let level = numbers::level(model.level);
    let interval = format!("{level} interval");
    let with_parts = has_parts(model);
    let mut rows: Vec<_> = model.coefficients.iter().map(|one| coefficient_row(model, one)).collect();
    rows.push(intercept_row(model));
    let odds = model.kind == Kind::Logistic;
    html! {
        (heading.titled("Coefficients"))
        @if odds { (odds_ratios(model)) }
        (Table {
            caption: if odds { "Log odds in original units" } else { "Coefficients in original units" },
            columns: &[
                ("Feature", false),
                ("Unit", false),
                ("Estimate", true),
                ("Standard error", true),
                (&interval, true),
                (if with_parts { "To predict" } else { "Noise share" }, true),
            ],
            rows,
        }.markup())
        (cut_to(model))
        @for sentence in model.collinear() { p { (sentence_markup(&sentence)) } }
        p .aside {
            "Estimate: change of " @if odds { "the log odds of " } (name(&model.label.name())) " per unit of the feature, the others held fixed. "
            @if with_parts {
                "To predict: the coefficient that predicts best, closer to 0 where the data resolve little. Read effects from the estimates; predict with this column, as " code { "potluck predict" } " does. "
            } @else {
                "Noise share: how much of the feature's released variance is privacy noise. "
            }
            "Intercept: " @if odds { "log odds of " } (name(&model.label.name())) " where every feature is 0"
            @if !model.free_intercept { ", as it follows from the public ranges" }
            "."
            @if has_findings(model) {
                " ◆: something speaks against the coefficient, as said at the top; the intercept follows from the coefficients, so it speaks against the intercept too."
            }
        }
    }
}

/// Whether it is known of every coefficient what its uncertainty is made of.
fn has_parts(model: &Model) -> bool {
    model.coefficients.iter().all(|one| one.parts.is_some())
}

fn limits(model: &Model, dataset: &PublicDataset, heading: Level) -> Markup {
    html! {
        (heading.titled("What limits it"))
        dl .points {
            @for point in crate::limits(model, Some(dataset)) {
                div { dt { (point.title()) } dd { (point.markup()) } }
            }
        }
    }
}

fn uncertainty(model: &Model, heading: Level) -> Markup {
    if !has_parts(model) {
        return html! {
            (heading.titled("Privacy noise in the features"))
            figure {
                (Layout::both(|layout| noise_plot_in(model, layout)))
                figcaption {
                    "The more of a column is noise, the wider the intervals, and the more least squares on the released rows pulls its coefficient towards 0."
                }
            }
        };
    }
    let names = parts::names(model);
    let rows = model.coefficients.iter().filter_map(|one| {
        let of_one = one.parts.as_ref()?;
        let mut cells = vec![name(&one.term.name())];
        let shown = parts::of_model(model, parts::shares(of_one));
        cells.extend(shown.into_iter().map(|share| exactly(share, &numbers::percent(share))));
        Some(("", cells))
    });
    let titles: Vec<String> = names.iter().map(|name| capital(name)).collect();
    let mut columns = vec![("Feature", false)];
    columns.extend(titles.iter().map(|title| (title.as_str(), true)));
    html! {
        (heading.titled("What the uncertainty is made of"))
        figure {
            (Layout::both(|layout| parts_plot_in(model, layout)))
            figcaption {
                "Privacy noise: what the parties added. Mixing: many people share a released row. Open correlations: how columns of different parties go together, as far as the releases do not tell. "
                "Sampling: these people stand for others. Clipping: an allowance for values that were cut. "
                @if names.contains(&"who is where") {
                    "Who is where: what is not known of whom parties have in common, and of values that are missing. "
                }
                @if names.contains(&"approximation") {
                    "Approximation: an allowance for what moments do not say of log odds. "
                }
                "Parts of the variance, which is the square of the standard error."
            }
        }
        (Table {
            caption: "Parts of the variance of each estimate",
            columns: &columns,
            rows: rows.collect(),
        }.markup())
    }
}

fn privacy(dataset: &PublicDataset) -> Markup {
    let parties: Vec<&str> = dataset.parties().map(|(party, _)| party).collect();
    html! {
        h2 { "Privacy" }
        p {
            "Every party added noise to its own columns before they left it. This report was made from the released columns only, and making it cost no further privacy."
        }
        (statement_markup(dataset.study(), &parties))
    }
}

/// A line of a table of quantities: what it is, its value, what that means.
fn row(what: &str, value: Markup, meaning: Markup) -> (&'static str, Vec<Markup>) {
    ("", vec![html! { (what) }, value, meaning])
}

/// What a logistic regression says of its label, as lines of the diagnostics.
fn of_classification(model: &Model) -> Vec<(&'static str, Vec<Markup>)> {
    let Some(found) = &model.classification else { return Vec::new() };
    let level = numbers::level(model.level);
    let interval =
        |[low, high]: [f64; 2]| html! { (level) " interval " (share(low, 4)) " to " (share(high, 4)) };
    let [low, high] = found.calibration_interval;
    vec![
        row(
            "Share",
            share(found.share, 4),
            html! { "of people that " (name(&model.label.name())) " applies to; " (interval(found.share_interval)) },
        ),
        row(
            "Area under the curve",
            share(found.area, 4),
            html! {
                "how likely a person that it applies to has a higher prediction than one that it does not, among new people: "
                "½ is a guess, 1 is perfect; " (interval(found.area_interval))
            },
        ),
        row(
            "Calibration slope",
            figure(found.calibration, 3),
            html! {
                "how much of predicted differences shows on new people, 1 is all of it; " (level) " interval "
                (figure(low, 3)) " to " (figure(high, 3)) "; predictions are shrunk by it as far as it can be believed"
            },
        ),
        row("Variance of log odds", figure(found.log_odds_variance, 3), html! { "between people" }),
    ]
}

fn diagnostics(model: &Model, heading: Level) -> Markup {
    let facts = &model.diagnostics;
    let people = if model.estimand.is_of_label_people() {
        html! { "of the label's party, as its noised counts have it" }
    } else {
        html! { "rows of each party's table" }
    };
    let mut rows = vec![
        row("People (n)", html! { (numbers::count(facts.rows)) }, people),
        row(
            "Released rows (k)",
            html! { (numbers::count(facts.released_rows)) },
            html! { "rows of the public dataset" },
        ),
        row(
            "Degrees of freedom",
            html! { (numbers::count(facts.degrees)) },
            html! { "of Student's t in the intervals" },
        ),
        row("Learner", html! { code { (model.learner.name()) } }, html! { (words::learner(model.learner)) }),
    ];
    if let Some(values) = &facts.eigenvalues {
        rows.push(row(
            "Ridge",
            figure(model.ridge, 6),
            html! { "added to the diagonal of the moment matrix" },
        ));
        rows.push(row(
            "Smallest eigenvalue",
            html! { (figure(values.smallest, 4)) },
            html! { "of the moment matrix; standard error " (figure(values.smallest_error, 2)) "; " (values.stability) },
        ));
        rows.push(row(
            "Condition number",
            figure(values.condition, 4),
            html! { "largest absolute eigenvalue over the smallest, " (figure(values.smallest_absolute, 4)) },
        ));
    }
    if let Some(variance) = facts.residual_variance {
        rows.push(row(
            "Residual variance",
            figure(variance, 4),
            html! {
                "mean squared residual of one person, in encoded units"
                @if variance < 0.0 { "; strong noise took the estimate below 0" }
            },
        ));
    }
    rows.extend(of_classification(model));
    rows.push(row(
        if model.kind == Kind::Logistic { "R² of the linear regression" } else { "R²" },
        html! {
            @match facts.r_squared { Some(r_squared) => (share(r_squared.estimate, 4)), None => "not estimable" }
        },
        html! {
            "share of the label's variation about "
            @if model.free_intercept { "its mean" } @else { "the middle of its range" }
            @if let Some([low, high]) = facts.r_squared.and_then(|r_squared| r_squared.interval) {
                "; " (numbers::level(model.level)) " interval " (share(low, 4)) " to " (share(high, 4))
            }
            (mark(model.r_squared_mark()))
        },
    ));
    html! {
        (heading.titled("Diagnostics"))
        (Table {
            caption: "Diagnostics of the fit",
            columns: &[("Quantity", false), ("Value", true), ("Meaning", false)],
            rows,
        }.markup())
    }
}

fn parties(dataset: &PublicDataset) -> Markup {
    let definition = dataset.study().definition();
    let present: Vec<_> = dataset.parties().collect();
    let rows: Vec<_> = definition
        .parties()
        .iter()
        .map(|party| {
            let columns: Vec<String> =
                party.columns().iter().map(|column| column.name().to_owned()).collect();
            let signature = match present.iter().find(|(name, _)| *name == party.name()) {
                Some((_, Some(key))) => html! { "Ed25519 key " code { (key) } },
                Some((_, None)) => html! { "not signed" },
                None => html! { "not in this dataset" },
            };
            ("", vec![name(party.name()), words::names(&columns), signature])
        })
        .collect();
    html! {
        h2 { "Parties and signatures" }
        (Table {
            caption: "Parties, what they released and who signed it",
            columns: &[("Party", false), ("Columns", false), ("Signed by", false)],
            rows,
        }.markup())
        p .aside {
            "Every signature shown is valid for its release. It shows that the holder of the key published the release: compare the key with the one the party gave you."
        }
    }
}

fn columns(model: &Model, dataset: &PublicDataset) -> Markup {
    let rows: Vec<_> = dataset
        .study()
        .definition()
        .columns()
        .map(|(party, column)| ("", column_cells(model, party, column)))
        .collect();
    html! {
        h2 { "Columns" }
        (Table {
            caption: "Columns of the study and their public ranges",
            columns: &[("Column", false), ("Party", false), ("Role", false), ("Public range or levels", false), ("Meaning", false)],
            rows,
        }.markup())
        p .aside {
            "Ranges and levels were fixed without looking at the data. "
            @if dataset.study().definition().format() == Format::Two {
                "Values outside a range count as its end. Missing ones are counted, and fits allow for them as if they were missing by chance."
            } @else if model.free_intercept {
                "Values outside a range count as its end, missing ones as the centre of the column."
            } @else {
                "Values outside a range count as its end, missing numbers as the middle of the range, missing levels as none."
            }
        }
        (published(dataset))
    }
}

/// What the releases say of each column.
pub(crate) fn published(dataset: &PublicDataset) -> Markup {
    let Ok(parties) = summary::of_dataset(dataset) else { return html! {} };
    let columns: Vec<&ColumnSummary> = parties.iter().flat_map(|party| &party.columns).collect();
    let drowned: Vec<String> =
        columns.iter().filter(|column| !column.resolved).map(|column| column.name.clone()).collect();
    let number = |value: f64| exactly(value, &numbers::significant(value, 4));
    let optional = |value: Option<f64>| value.map_or_else(|| html! { "—" }, number);
    let with_missing = columns.iter().any(|column| column.missing.is_some());
    let rows: Vec<_> = columns
        .iter()
        .map(|column| {
            let class = if column.resolved { "" } else { "unclear" };
            let [low, high] = column.range;
            let cells = vec![
                name(&column.name),
                optional(column.mean),
                optional(column.spread),
                html! { (number(low)) " to " (number(high)) },
                number(column.noise),
                exactly(column.noise_share, &numbers::percent(column.noise_share)),
                html! { @if column.resolved { "resolved" } @else { "drowned" } },
            ];
            let missing = with_missing.then(|| column.missing.map_or_else(|| html! { "—" }, known_share));
            (class, cells.into_iter().chain(missing).collect())
        })
        .collect();
    let mut titles = vec![
        ("Column", false),
        ("Mean", true),
        ("Spread", true),
        ("Range kept", true),
        ("Noise", true),
        ("Noise share", true),
        ("Column is", false),
    ];
    titles.extend(with_missing.then_some(("Missing", true)));
    html! {
        h3 { "What the releases show of them" }
        (Table {
            caption: "What the releases show of each column, in original units",
            columns: &titles,
            rows,
        }.markup())
        p .aside {
            "In original units; of a level, the mean is the share that has it. Spread: standard deviation between people. "
            "Noise: its standard deviation in a mixed row, which holds many people. Noise share: how much of the variance of the mixed rows is noise. "
            @if drowned.is_empty() {
                "The spread of every column stands clear of its noise."
            } @else {
                "Drowned in noise, so that not even their spread can be told: " (words::names(&drowned)) "."
            }
            @if with_missing { " Missing: share of the party’s people without a value, with one standard error." }
        }
        (shapes(&columns))
    }
}

fn column_cells(model: &Model, party: &Party, column: &Column) -> Vec<Markup> {
    let role = if model.label.column() == column.name() {
        "label"
    } else if model.coefficients.iter().any(|one| one.term.column() == column.name()) {
        "feature"
    } else {
        "not used"
    };
    vec![
        name(column.name()),
        name(party.name()),
        html! { (role) },
        domain(column),
        html! {
            @if let Some(description) = column.description() { (name(description)) " " }
            @if matches!(column.missing(), Missing::Error | Missing::Never) { span .aside { "Never missing." } }
        },
    ]
}

/// The public range or levels of a column.
pub(crate) fn domain(column: &Column) -> Markup {
    if let Some([first, last]) = column.dates() {
        return html! { (first) " to " (last) };
    }
    match column.domain() {
        Domain::Numeric(bounds) => html! {
            (numbers::significant(bounds.lo(), 10)) " to " (numbers::significant(bounds.hi(), 10))
            @if let Some(unit) = column.unit() { " " (name(unit)) }
        },
        Domain::Categorical { levels, unknown } => html! {
            @for (at, level) in levels.iter().take(LEVELS).enumerate() {
                @if at > 0 { ", " }
                (name(level))
            }
            @if levels.len() > LEVELS { " and " (numbers::count((levels.len() - LEVELS) as u64)) " more" }
            @if *unknown == Unknown::Other { "; others count as “other”" }
        },
    }
}

fn provenance(model: &Model, dataset: &PublicDataset) -> Markup {
    let definition = dataset.study().definition();
    html! {
        h2 { "Provenance" }
        dl .facts-list {
            dt { "Study" } dd { (name(&model.study)) }
            dt { "Study id" } dd { code { (model.study_id) } }
            @for base in dataset.study().lineage().skip(1) {
                dt { "Extends" } dd { (name(base.definition().name())) ", id " code { (base.id()) } }
            }
            dt { "Dataset hash" } dd { code { (model.dataset) } }
            dt { "Release method" } dd { (words::method(definition)) "; people are identified by " (words::id_kind(definition)) }
            dt { "Fitted with" } dd { (model.software) }
        }
        h3 { "Do it again" }
        p { "With the public dataset that has this hash, and no other secret or key, anyone gets the same numbers:" }
        pre tabindex="0" { code { (words::commands(model)) } }
    }
}
