//! What limits the accuracy of a fit and what would help, in plain words and numbers.

use std::fmt;

use maud::{Markup, html};
use potluck_core::accounting::{Epsilon, Mu};
use potluck_core::calibrated::{Layout, Plan};
use potluck_release::findings::{self, Finding, FindingKind, Sentence};
use potluck_release::model::{Coefficient, Estimand, Kind, Learner};
use potluck_release::study::{Calibration, Method, Study};
use potluck_release::summary::{self, PartySummary};
use potluck_release::{Model, PublicDataset};

use crate::chart::parts::{self, CLIPPING, PARTS, shares};
use crate::numbers;
use crate::words::{self, named};

/// Clipping is spoken of where it makes up this much of the variance, or shrank a spread by this
/// factor.
const NOTABLE_CLIPPING: f64 = 0.1;
const NOTABLE_ATTENUATION: f64 = 1.1;
/// Open correlations are spoken of where they make up this much of the variance.
const NOTABLE_CORRELATIONS: f64 = 0.1;
/// So is what is not known of who is where.
const NOTABLE_PEOPLE: f64 = 0.1;
/// Remedies that would take more than this many times the people or ε are not offered.
const MOST_TIMES: u32 = 64;

/// One thing that limits a fit: a few words, and what there is to say about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    title: &'static str,
    text: Text,
}

impl Point {
    /// What it is about.
    pub fn title(&self) -> &'static str {
        self.title
    }

    pub(crate) fn markup(&self) -> Markup {
        html! {
            @for piece in &self.text.0 {
                @match piece {
                    Piece::Words(words) => (words),
                    Piece::Name(name) => (words::name(name)),
                    Piece::Figure(value, shown) => (words::exactly(*value, shown)),
                }
            }
        }
    }
}

/// The sentences as plain text, for terminals: names from strangers cannot steer them.
impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for piece in &self.text.0 {
            match piece {
                Piece::Words(words) | Piece::Figure(_, words) => f.write_str(words)?,
                Piece::Name(name) => f.write_str(&name.replace(char::is_control, "\u{fffd}"))?,
            }
        }
        Ok(())
    }
}

#[derive(Clone, Debug, PartialEq)]
enum Piece {
    Words(String),
    /// A name that somebody chose.
    Name(String),
    /// A number, exactly and as people read it.
    Figure(f64, String),
}

/// Sentences that can be shown on a page and on a terminal.
#[derive(Clone, Debug, Default, PartialEq)]
struct Text(Vec<Piece>);

impl Text {
    fn of(words: impl Into<String>) -> Self {
        Self::default().words(words)
    }

    fn words(mut self, words: impl Into<String>) -> Self {
        self.0.push(Piece::Words(words.into()));
        self
    }

    fn name(mut self, name: &str) -> Self {
        self.0.push(Piece::Name(name.to_owned()));
        self
    }

    /// A sentence about findings.
    fn sentence(self, sentence: &Sentence) -> Self {
        sentence.pieces().iter().fold(self, |text, piece| match piece {
            findings::Piece::Words(words) => text.words(words),
            findings::Piece::Name(name) => text.name(name),
        })
    }

    /// Names in a sentence, the last few counted where there are many.
    fn names(mut self, all: &[String]) -> Self {
        for (before, name) in named(all) {
            self = self.words(before);
            if let Some(name) = name {
                self = self.name(name);
            }
        }
        self
    }

    fn figure(mut self, value: f64, shown: String) -> Self {
        self.0.push(Piece::Figure(value, shown));
        self
    }

    fn percent(self, share: f64) -> Self {
        self.figure(share, numbers::percent(share))
    }

    fn when(self, condition: bool, more: impl FnOnce(Self) -> Self) -> Self {
        if condition { more(self) } else { self }
    }
}

/// What limits a fit, the most important first. With the public dataset there is more to say.
pub fn limits(model: &Model, dataset: Option<&PublicDataset>) -> Vec<Point> {
    let mut points = Vec::new();
    let mut point = |title, text| points.push(Point { title, text });
    if let Some(fault) = model.diagnostics.fault() {
        point("Not sound", Text::of(words::sentence(fault)));
    }
    point("What was resolved", resolved(model));
    let average = average_parts(model);
    match &average {
        Some(average) => point("Main limit", main_limit(model, average)),
        None => point("Privacy noise", noise(model)),
    }
    let study = dataset.map(PublicDataset::study);
    if let Some(average) = &average {
        point("What would help", remedies(model, average, study));
    }
    if let Some(text) = confounders(model) {
        point("Open confounders", text);
    }
    let parties = dataset.and_then(|dataset| summary::of_dataset(dataset).ok()).unwrap_or_default();
    let involved: Vec<&PartySummary> = parties.iter().filter(|party| is_involved(model, party)).collect();
    if involved.len() > 1 {
        point("Columns of a party", widest(model, &involved));
    }
    if let Some(text) = clipping(average.as_ref(), model, &involved) {
        point("Clipping", text);
    }
    point("What is estimated", estimand(model));
    let (rows, released) = (model.diagnostics.rows, model.diagnostics.released_rows);
    if released < rows {
        let (rows, released) = (numbers::count(rows), numbers::count(released));
        point(
            "Mixing",
            Text::of(format!(
                "{rows} people were mixed into {released} released rows. Even without noise, estimates between parties would vary about as much as those from a sample of {released} people."
            )),
        );
    }
    if !model.free_intercept {
        point(
            "No free intercept",
            Text::of(
                "The fit passes through the middle of every public range. Where the average of a column lies far from that middle, the coefficients take up the difference.",
            ),
        );
    }
    point("Fit", fit(model));
    points
}

fn resolved(model: &Model) -> Text {
    let level = numbers::level(model.level);
    let (clear, unclear) = model.clear_and_unclear();
    let unsure = model.of_which(Coefficient::has_unsure_interval);
    let chance = numbers::significant((1.0 - model.level) * 100.0, 3);
    Text::default()
        .when(!clear.is_empty(), |text| {
            text.words(format!("Resolved, that is with a {level} interval that excludes 0: "))
                .names(&clear)
                .words(". ")
        })
        .when(!unclear.is_empty(), |text| {
            text.words("Not resolved: ").names(&unclear).words(
                ". That is no evidence of no effect: the interval shows which effects remain possible. ",
            )
        })
        .when(!unsure.is_empty(), |text| {
            text.words(if unsure.len() == 1 { "Do not rely on the interval of " } else { "Do not rely on the intervals of " })
                .names(&unsure)
                .words(if model.kind == Kind::Logistic { ": what is said at the top speaks against it. " } else { ": noise hides too much. " })
        })
        .when(model.coefficients.len() > 1, |text| {
            text.words(format!(
                "Each interval is for its coefficient alone; of 100 coefficients that are truly 0, about {chance} would seem to differ by chance."
            ))
        })
}

/// The parts of the variances in the order of their names, averaged over the features; `None` where
/// one is not known.
fn average_parts(model: &Model) -> Option<[f64; PARTS]> {
    let count = model.coefficients.len() as f64;
    let mut average = [0.0; PARTS];
    for coefficient in &model.coefficients {
        for (sum, share) in average.iter_mut().zip(shares(coefficient.parts.as_ref()?)) {
            *sum += share / count;
        }
    }
    average.iter().all(|share| share.is_finite()).then_some(average)
}

fn main_limit(model: &Model, average: &[f64; PARTS]) -> Text {
    let of_model = parts::of_model(model, *average);
    let mut parts: Vec<(&str, f64)> = parts::names(model).into_iter().zip(of_model).collect();
    parts.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    let (first, largest) = parts[0];
    // Of the names only that of correlations is a plural.
    let verb = if first.ends_with('s') { "they make up " } else { "it makes up " };
    let mut text = Text::of(words::capital(first))
        .words(": on average over the features, ")
        .words(verb)
        .percent(largest)
        .words(" of the variance of an estimate. The rest: ");
    for (at, (name, share)) in parts[1..].iter().enumerate() {
        text = text.words(if at > 0 { ", " } else { "" }).words(format!("{name} ")).percent(*share);
    }
    text.words(".")
}

/// What looks like effects of some features and may be those of others, and what would tell them
/// apart.
fn confounders(model: &Model) -> Option<Text> {
    let all = model.findings();
    let mut open = all.iter().filter(|said| said.kind == FindingKind::Confounders).peekable();
    open.peek()?;
    let text = open.fold(Text::default(), |text, said| text.sentence(&said.sentence).words(" "));
    Some(text.words(
        "They would be told apart by releases with more people or a larger ε, which show how columns of different parties go together, or by one party that releases all of these columns.",
    ))
}

fn remedies(model: &Model, average: &[f64; PARTS], study: Option<&Study>) -> Text {
    let [privacy, mixing, correlations, sampling, _, people, _] = *average;
    let alternatives = study.and_then(Alternatives::new);
    let rows = model.diagnostics.rows;
    let text = Text::of(
        "Privacy noise and mixing fall about as 1/√n, n being the number of people, and with a larger ε. ",
    );
    let text = match alternatives.as_ref().map(|alternatives| (alternatives.people(), alternatives.epsilon()))
    {
        None | Some((None, None)) => text,
        Some((Some(times), epsilon)) => {
            let people = numbers::count(rows.saturating_mul(u64::from(times)));
            let text = text.words(format!(
                "About {times} times as many people ({people}) would halve their part of the standard errors"
            ));
            let text = text.when(times > 4, |text| {
                text.words(" (4 times would not do, because a larger study also clips less)")
            });
            match epsilon {
                None => text.words(". "),
                Some((now, then)) => text.words(format!("; so would ε = {then} in place of {now}. ")),
            }
        }
        Some((None, Some((now, then)))) => text
            .words(format!("ε = {then} in place of {now} would halve their part of the standard errors. ")),
    };
    let text = text.when(correlations >= NOTABLE_CORRELATIONS, |text| {
        text.words("The part of open correlations falls with them, once the releases show how columns of different parties go together. ")
    });
    let text = text.when(people >= NOTABLE_PEOPLE, |text| {
        text.words("The part of who is where falls with them, and with more people in common; a study that declares what parties have in common leaves less open. ")
    });
    text.when(sampling > privacy + mixing + correlations + people, |text| {
        text.words("But here most of the variance is that people are a sample: only more people help, 4 times as many to halve the standard errors.")
    })
}

/// What the plan of a calibrated study says of others like it.
struct Alternatives<'a> {
    study: &'a Study,
    layouts: Vec<Layout>,
    /// k, where somebody chose it.
    k: Option<u64>,
    variance: f64,
}

impl<'a> Alternatives<'a> {
    fn new(study: &'a Study) -> Option<Self> {
        let definition = study.definition();
        let plans = definition.parties().iter().map(|party| study.calibrated(party.name()).ok().flatten());
        let layouts: Vec<Layout> =
            plans.map(|plan| plan.map(|plan| plan.layout().clone())).collect::<Option<_>>()?;
        let mut alternatives = Self { study, layouts, k: None, variance: 0.0 };
        // Later parties inherit k from the study that they extend; those of the first one tell
        // whether it is the rule's.
        let first = &alternatives.layouts[..study.origin().definition().parties().len()];
        let usual = Plan::new(definition.rows(), study.mu(), first, None).ok()?;
        alternatives.k = (usual.k() != study.seal().k()).then(|| study.seal().k());
        alternatives.variance = alternatives.variance_at(definition.rows(), study.mu())?;
        Some(alternatives)
    }

    /// Variance that noise and mixing would give the cross moment of two standardised columns of
    /// the widest party.
    fn variance_at(&self, rows: u64, mu: Mu) -> Option<f64> {
        let widest = self.layouts.iter().max_by_key(|layout| layout.effective_width())?;
        if self.study.definition().method() == Method::Exchange {
            let parties = u16::try_from(self.layouts.len()).ok()?;
            let party =
                Plan::exchanged(rows, mu, parties).and_then(|plan| plan.party(widest.clone())).ok()?;
            let (norm, noise) = party.largest_noise();
            return Some((norm * noise / rows as f64).powi(2));
        }
        let plan = Plan::new(rows, mu, &self.layouts, self.k).ok()?;
        let (n, k) = (rows as f64, plan.k() as f64);
        let noise = 2.0 * plan.largest_norm(widest) / plan.stage_mu(3);
        Some(k * ((n / k + noise * noise) / n).powi(2))
    }

    fn halves(&self, rows: u64, mu: Mu) -> bool {
        // Within a few percent of a quarter of the variance is a half of the error for people.
        self.variance_at(rows, mu).is_some_and(|variance| variance <= 0.26 * self.variance)
    }

    /// How many times as many people would halve the standard errors.
    fn people(&self) -> Option<u32> {
        let rows = self.study.definition().rows();
        (2..=MOST_TIMES).find(|&times| {
            rows.checked_mul(u64::from(times)).is_some_and(|rows| self.halves(rows, self.study.mu()))
        })
    }

    /// ε as it is, and the one that would halve the standard errors.
    fn epsilon(&self) -> Option<(String, String)> {
        let definition = self.study.definition();
        let now = definition.epsilon().get();
        let mu = |epsilon: f64| {
            let epsilon = Epsilon::new(epsilon).ok()?;
            match definition.calibration() {
                Calibration::Analytic => Mu::analytic(epsilon, definition.delta()).ok(),
                Calibration::Classical => Mu::classical(epsilon, definition.delta()).ok(),
            }
        };
        let tenths = (11..=10 * MOST_TIMES).map(|tenths| now * f64::from(tenths) / 10.0);
        let then = tenths
            .into_iter()
            .find(|&epsilon| mu(epsilon).is_some_and(|mu| self.halves(definition.rows(), mu)))?;
        Some((numbers::significant(now, 6), numbers::significant(then, 2)))
    }
}

/// Whether a party released the label or a feature.
fn is_involved(model: &Model, party: &PartySummary) -> bool {
    party.columns.iter().any(|column| is_used(model, &column.name))
}

fn is_used(model: &Model, name: &str) -> bool {
    model.label.name() == name || model.coefficients.iter().any(|one| one.term.name() == name)
}

fn widest(model: &Model, parties: &[&PartySummary]) -> Text {
    let by_columns = |a: &&&PartySummary, b: &&&PartySummary| a.free_columns.cmp(&b.free_columns);
    let (Some(most), Some(least)) = (parties.iter().max_by(by_columns), parties.iter().min_by(by_columns))
    else {
        return Text::default();
    };
    let columns = |count: u64| {
        if count == 1 { "1 column".to_owned() } else { format!("{} columns", numbers::count(count)) }
    };
    let text = if most.free_columns == least.free_columns {
        Text::of(format!("Every party here has {} that can vary. ", columns(most.free_columns)))
    } else {
        let ratio = most.noise / least.noise;
        Text::default()
            .name(&most.party)
            .words(format!(
                " adds the most noise: it has the most columns that can vary, {}. ",
                numbers::count(most.free_columns)
            ))
            .when(ratio.is_finite() && ratio > 1.0, |text| {
                text.words("Its noise is ")
                    .figure(ratio, numbers::significant(ratio, 2))
                    .words(" times that of ")
                    .name(&least.party)
                    .words(format!(", which has {}. ", numbers::count(least.free_columns)))
            })
    };
    let text = text.when(most.free_columns > 1, |text| {
        text.words("The noise of a party grows with the square root of the number of its columns: a quarter of them would mean half the noise.")
    });
    let used = |column: &str| {
        model.label.column() == column || model.coefficients.iter().any(|one| one.term.column() == column)
    };
    let mut unused: Vec<String> =
        most.columns.iter().map(|column| column.column.clone()).filter(|column| !used(column)).collect();
    unused.dedup();
    text.when(!unused.is_empty(), |text| {
        text.words(" This regression does not use ")
            .names(&unused)
            .words(" of ")
            .name(&most.party)
            .words(": a study without would carry less noise.")
    })
}

fn clipping(average: Option<&[f64; PARTS]>, model: &Model, parties: &[&PartySummary]) -> Option<Text> {
    let share = average.map_or(0.0, |average| average[CLIPPING]);
    let cut = model.of_which(Coefficient::is_about_cut_values);
    let columns = parties.iter().flat_map(|party| party.columns.iter().map(move |column| (party, column)));
    let used = columns.filter(|(_, column)| is_used(model, &column.name));
    let most = used
        .filter_map(|(party, column)| column.attenuation.map(|attenuation| (attenuation, party, column)))
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .filter(|(attenuation, ..)| *attenuation >= NOTABLE_ATTENUATION);
    if share < NOTABLE_CLIPPING && most.is_none() && cut.is_empty() {
        return None;
    }
    let text = Text::of("A release cuts values and people that lie far out, so that nobody stands out. ");
    let text = match most {
        None => text,
        Some((attenuation, _, column)) => {
            let lost = 1.0 - 1.0 / attenuation;
            text.words("It shrank the spread of ")
                .name(&column.name)
                .words(" most, by about ")
                .percent(lost)
                .words(". ")
        }
    };
    let text = match cut.len() {
        0 => text.words("The fit makes up for that on average, and the intervals carry an allowance for it. "),
        count if count == model.coefficients.len() => text.words("The fit does not make up for that here, because the values are not spread like a bell: coefficients and intervals are about the cut values. "),
        _ => text
            .words("The fit makes up for that on average, and the intervals carry an allowance for it, but not for coefficients about cut values: ")
            .names(&cut)
            .words(". "),
    };
    Some(match most.map(|(_, party, _)| (party.could_spare(), party)) {
        None => text.words("Clipping fades with more people, a larger ε, or fewer columns at a party."),
        Some((None, _)) => text.words("Clipping fades with more people or a larger ε."),
        Some((Some(spare), party)) => text
            .words(format!("Clipping fades with more people, a larger ε, or fewer {spare} at "))
            .name(&party.party)
            .words("."),
    })
}

fn noise(model: &Model) -> Text {
    let by_share = |a: &&Coefficient, b: &&Coefficient| a.noise_share.total_cmp(&b.noise_share);
    let (Some(least), Some(most)) =
        (model.coefficients.iter().min_by(by_share), model.coefficients.iter().max_by(by_share))
    else {
        return Text::default();
    };
    let one = |text: Text, coefficient: &Coefficient| {
        text.words(format!("{} (", numbers::percent(coefficient.noise_share)))
            .name(&coefficient.term.name())
            .words(")")
    };
    let text = if model.coefficients.len() == 1 {
        one(Text::of("Noise makes up "), most).words(" of the variance that was released for the feature.")
    } else {
        let text = one(Text::of("Noise makes up between "), least).words(" and ");
        one(text, most).words(" of the variance that was released for a feature.")
    };
    text.when(most.noise_share >= 1.0, |text| {
        text.words(" A share of 100% means that the released variance is no larger than the noise alone would make it: nothing of the feature itself is visible.")
    })
}

fn estimand(model: &Model) -> Text {
    let attenuated = model.estimand == Estimand::Attenuated;
    let shrinkage = model.shrinkage();
    Text::of(words::sentence(&model.estimated_without_ridge()))
        .when(!attenuated, |text| {
            text.words(" They are what the parties' tables would give side by side and without noise; the intervals say how far the estimates may be from it")
                .words(if model.findings().is_empty() { "." } else { ", except where a finding says otherwise." })
        })
        .when(attenuated, |text| {
            text.words(" Noise pulls them towards 0, most where its share is largest: a feature that is uncorrelated with the others keeps 1 minus its noise share of its coefficient. The intervals are about these attenuated values and need not cover those of the study itself.")
        })
        .when(shrinkage.is_some(), |text| {
            text.words(format!(
                " A ridge of {} shrinks them, by up to {}: the intervals do not show that.",
                numbers::significant(model.ridge, 6),
                numbers::percent(shrinkage.unwrap_or_default())
            ))
        })
        .words(" They describe what goes together in these people, not what causes what.")
}

/// Whether a finding of some kind speaks against R².
fn has(model: &Model, kind: impl Fn(&Finding) -> bool) -> bool {
    model.diagnostics.r_squared_findings.iter().any(kind)
}

fn fit(model: &Model) -> Text {
    let where_from = match model.learner {
        Learner::Ols => "in the released rows, noise included",
        Learner::Debiased => "in the study, with the noise taken out",
        Learner::Posterior => "in the study, judged by rows that were held out",
    };
    let about = if model.free_intercept { "its mean" } else { "the middle of its range" };
    let Some(r_squared) = model.diagnostics.r_squared else {
        return Text::of(
            "R² cannot be estimated here: the noise outweighs what was released of the label or of the features.",
        );
    };
    let share = |text: Text, value: f64| text.figure(value, numbers::share(value, 3));
    let text = share(Text::of("R² is "), r_squared.estimate);
    let text = match r_squared.interval {
        None => text,
        Some([low, high]) => {
            let text = text.words(format!(" ({} interval ", numbers::level(model.level)));
            share(share(text, low).words(" to "), high).words(")")
        }
    };
    let outside = r_squared
        .interval
        .into_iter()
        .flatten()
        .chain([r_squared.estimate])
        .any(|x| !(0.0..=1.0).contains(&x));
    text.words(": the features explain ")
        .words(numbers::percent(r_squared.estimate.clamp(0.0, 1.0)))
        .words(" of the variation of ")
        .name(&model.label.name())
        .words(format!(" about {about}, {where_from}."))
        .when(has(model, Finding::is_about_cut_values), |text| text.words(" It is about cut values."))
        .when(has(model, Finding::is_about_unsure_interval), |text| {
            text.words(" Do not rely on it: noise hides how much ")
                .name(&model.label.name())
                .words(" varies.")
        })
        .when(outside, |text| {
            text.words(" Estimates of R² may fall outside 0 to 1 by chance; here they are shown as 0 or 1.")
        })
}
