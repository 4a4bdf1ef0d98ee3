//! `potluck plan`.

use std::fmt::Write as _;
use std::io;
use std::path::Path;

use anyhow::Result;
use potluck_core::planning::USEFUL;
use potluck_release::files::{Audience, check_writable, refuse_same_file, write_file};
use potluck_release::forecast::{Alike, Asked, Forecast};
use potluck_release::plan::{ExpectedAccuracy, Plan, PlanOfParty};
use potluck_release::statement::{self, Guarantee};
use potluck_release::study::Format;
use potluck_release::{AnyStudy, Error, Study};
use potluck_report::{Layout, people_plot_in};

use super::Settings;
use crate::args;
use crate::exit::WrongUsage;
use crate::output::{alarming, counted, number, size, table, wrapped};

/// Characters of the scale of the picture.
const SCALE: usize = 44;

pub(super) fn run(arguments: &args::Plan, settings: &Settings<'_>) -> Result<()> {
    if let Some(path) = &arguments.plot {
        refuse_same_file(path, &[&arguments.study])?;
        check_writable(path, settings.existing)?;
    }
    let study = load(&arguments.study, arguments.base.base.as_deref())?;
    if arguments.overlap.is_some() && study.definition().format() == Format::One {
        return Err(WrongUsage(
            "in a study of format 1 all parties hold the same people: leave --overlap out, or write the study with format = 2".to_owned(),
        )
        .into());
    }
    let asked =
        Asked { label: arguments.label.clone(), effect: arguments.effect, overlap: arguments.overlap };
    let (study, plan) = Plan::asked(&study, &asked)?;
    if let Some(path) = &arguments.plot {
        let plot = people_plot_in(&plan.forecast, plan.rows, Layout::Wide).ok_or_else(|| {
            WrongUsage("how many people it takes is known of method calibrated without a given k only; leave --plot out".to_owned())
        })?;
        write_file(path, plot.as_bytes(), settings.existing, Audience::Public)?;
        settings.printer.note(&format!("plot in {}", path.display()));
    }
    settings.printer.result(&plan, || to_text(&study, &plan))
}

/// The study in a file; the one that it extends in another, if it is not sealed.
pub(super) fn load(path: &Path, base: Option<&Path>) -> Result<AnyStudy, Error> {
    let base = base.map(Study::load).transpose()?;
    AnyStudy::load(path, base.as_ref())
}

/// What an extension adds to, in words.
pub(super) fn extends_text(base: &Study, new: usize) -> String {
    format!(
        "It adds {} to study {:?}, id {}",
        counted(new, "party", "parties"),
        base.definition().name(),
        base.id()
    )
}

/// "200000 subjects", or about how many a party has where parties hold different people.
pub(super) fn subjects(study: &Study) -> String {
    let rows = study.definition().rows();
    match study.definition().format() {
        Format::One => format!("{rows} subjects"),
        Format::Two => format!("about {rows} subjects at each party"),
    }
}

/// What to expect, in words.
fn outlook_text(outlook: &ExpectedAccuracy) -> String {
    let percent = |share: f64| format!("{:.0}%", 100.0 * share);
    let mut text = format!(
        "Of the regression as a whole, of one column on all others, if they explain {} of it (typical columns):\n",
        percent(outlook.signal)
    );
    let _ = writeln!(text, "  standard error of R²: {}", number(outlook.r_squared_error));
    let _ = writeln!(text, "  of what can be explained, a fit recovers about {}", percent(outlook.recovered));
    if let Some(rows) = outlook.smallest_useful_rows {
        let _ = writeln!(text, "  useful (recovers {}) from about {rows} subjects on", percent(USEFUL));
    }
    if let Some(overlap) = outlook.overlap {
        let _ = writeln!(
            text,
            "  if any two parties have {} of the smaller one's people in common (--overlap says otherwise);\n  people whom a party shares with no other only add noise: leave them out if both can tell who they are",
            percent(overlap)
        );
    }
    text.push_str("`potluck simulate` tries it on made-up data in this shape.\n\n");
    text
}

/// What to expect of each coefficient, and how many people would resolve an effect.
fn forecast_text(forecast: &Forecast, rows: u64) -> String {
    if forecast.columns.is_empty() {
        return String::new();
    }
    let of = forecast.label.as_ref().map_or("of any column".to_owned(), |label| format!("of {label}"));
    let mut text = format!(
        "What to expect of coefficients of a regression {of} on all others: standard errors, in standard deviations of\nthe label for one of the feature, and how many people it takes to tell an effect of {} from 0 ({:.0}% power):\n\n",
        forecast.effect,
        100.0 * forecast.power
    );
    let known = forecast.scale(rows).is_some();
    let mut header = vec!["", "std. error: good", "typical", "hard"];
    if known {
        header.extend(["people: good", "typical", "hard"]);
    }
    let all = forecast.alike();
    let row = |of: &Alike<'_>| {
        let errors = of
            .standard_error
            .all()
            .map(|error| if error > 1.0 { "> 1".to_owned() } else { two_digits(error) });
        let people =
            of.people.all().map(|people| people.map_or("—".to_owned(), |people| people.to_string()));
        [of.name()].into_iter().chain(errors).chain(people).take(header.len()).collect()
    };
    let lines: Vec<Vec<String>> = all.iter().map(row).collect();
    text.push_str(&table(&header, &lines));
    text.push_str(&picture(forecast, &all, rows));
    let assumed = &forecast.assumptions;
    text.push('\n');
    for (case, words) in [("good", &assumed.good), ("typical", &assumed.typical), ("hard", &assumed.hard)] {
        text.push_str(&wrapped(&format!("{case}: {words}"), "  "));
    }
    text.push_str("  > 1: not even an effect of one standard deviation can be told from 0; —: more people than anybody has\n\n");
    text
}

fn two_digits(error: f64) -> String {
    let decimals = (1.0 - error.log10().floor()).clamp(0.0, 17.0) as usize;
    format!("{error:.decimals$}")
}

/// Ranges of numbers of people on a logarithmic scale, from the good case to the hard one, with a
/// line where the study is.
fn picture(forecast: &Forecast, all: &[Alike<'_>], rows: u64) -> String {
    let Some((low, high)) = forecast.scale(rows) else { return String::new() };
    let place =
        |people: f64| ((people / low).log10() / (high / low).log10() * (SCALE - 1) as f64).round() as usize;
    let width = all.iter().map(|of| of.name().chars().count()).max().unwrap_or(0);
    let mut text = "\n".to_owned();
    for of in all {
        let mut line = vec![' '; SCALE];
        let [good, typical, hard] = of.people.all().map(|people| people.map(|people| place(people as f64)));
        if let Some(good) = good {
            line[good..=hard.unwrap_or(SCALE - 1)].fill('─');
            line[good] = '├';
            if let Some(hard) = hard {
                line[hard] = '┤';
            }
        }
        line[place(rows as f64)] = '│';
        if let Some(typical) = typical {
            line[typical] = '●';
        }
        let line: String = line.into_iter().collect();
        let _ = writeln!(text, "  {:width$}  {}", of.name(), line.trim_end());
    }
    let mut scale = vec![' '; SCALE + 5];
    let decades = low.log10().round() as i32..=high.log10().round() as i32;
    let step = (decades.clone().count() / 5 + 1).max(1);
    for decade in decades.step_by(step) {
        for (at, digit) in format!("10^{decade}").chars().enumerate() {
            scale[place(10_f64.powi(decade)) + at] = digit;
        }
    }
    let scale: String = scale.into_iter().collect();
    let _ = writeln!(text, "  {:width$}  {}", "", scale.trim_end());
    let _ = writeln!(text, "  {:width$}  people: ├ good, ● typical, ┤ hard; │ this study", "");
    text
}

fn to_text(study: &Study, plan: &Plan) -> String {
    let definition = study.definition();
    let mut text = format!(
        "Study {:?}: {}, {}, {}, {} released rows\n\n",
        definition.name(),
        subjects(study),
        counted(definition.parties().len(), "party", "parties"),
        counted(definition.width(), "encoded column", "encoded columns"),
        plan.k,
    );
    if let Some(base) = study.base() {
        text.insert_str(text.len() - 1, &format!("{}\n", extends_text(base, study.own_parties().len())));
    }
    let row = |party: &PlanOfParty| {
        vec![
            party.party.clone(),
            party.columns.to_string(),
            party.encoded_columns.to_string(),
            number(party.noise),
            format!("{:.0}%", 100.0 * party.noise_share),
            size(party.release_bytes),
        ]
    };
    let rows: Vec<_> = plan.parties.iter().map(row).collect();
    text.push_str(&table(&["party", "columns", "encoded", "noise sd", "noise share", "size"], &rows));
    if !plan.sealed {
        text.push_str("\nNot sealed yet: run `potluck study seal` when all parties agree.\n");
    }
    for warning in &plan.warnings {
        let _ = writeln!(text, "\n{}", alarming(&format!("Careful: {warning}"), &io::stdout()));
    }
    text.push_str("\nnoise share: how much of the variance of a party's released columns is noise, for typical columns\n\n");
    text.push_str(&forecast_text(&plan.forecast, plan.rows));
    text.push_str(&outlook_text(&plan.outlook));
    let each = Guarantee::of_party(study);
    let joint = Guarantee::joint(study, definition.parties().len());
    let _ = writeln!(text, "Each party's release: {}", each.in_short());
    let _ = writeln!(text, "All releases jointly: {}\n", joint.in_short());
    for sentence in statement::joint(study, definition.parties().len()) {
        let _ = writeln!(text, "{sentence}");
    }
    text
}
