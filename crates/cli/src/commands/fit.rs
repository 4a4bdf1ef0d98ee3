//! `potluck fit`.

use std::fmt::Write as _;

use anyhow::Result;
use potluck_core::learn::{Level, Ridge};
use potluck_release::files::{Audience, check_writable, write_file};
use potluck_release::fit::{Regression, fit};
use potluck_release::model::Estimate;
use potluck_release::{Error, Model, PublicDataset};

use super::{Settings, refuse_same_file};
use crate::args::Fit;
use crate::exit::WrongUsage;
use crate::output::{number, table};

pub(super) fn run(arguments: &Fit, settings: &Settings<'_>) -> Result<()> {
    for path in [&arguments.report, &arguments.out].into_iter().flatten() {
        refuse_same_file(path, &[&arguments.dataset])?;
        check_writable(path, settings.existing)?;
    }
    if arguments.report.is_some() && arguments.report == arguments.out {
        return Err(WrongUsage(
            "--report and --out name the same file; give them different names".to_owned(),
        )
        .into());
    }
    let trimmed = |names: &Vec<String>| names.iter().map(|name| name.trim().to_owned()).collect();
    let features = if arguments.feature.is_empty() {
        arguments.features.as_ref().map(trimmed)
    } else {
        Some(arguments.feature.clone())
    };
    let dataset = PublicDataset::read(&arguments.dataset)?;
    let regression = Regression {
        label: arguments.label.clone(),
        features,
        learner: arguments.learner.into(),
        ridge: Ridge::new(arguments.ridge).map_err(Error::from)?,
        level: Level::new(arguments.level).map_err(Error::from)?,
    };
    let model = fit(&dataset, &regression)?;
    if let Some(path) = &arguments.out {
        model.write(path, settings.existing)?;
        settings.printer.note(&format!("model in {}", path.display()));
    }
    if let Some(path) = &arguments.report {
        let page = potluck_report::page(&model, &dataset);
        write_file(path, page.as_bytes(), settings.existing, Audience::Public)?;
        settings.printer.note(&format!("report in {}", path.display()));
    }
    settings.printer.result(&model, || to_text(&model))
}

pub(super) fn interval(estimate: &Estimate) -> String {
    format!("[{}, {}]", number(estimate.low), number(estimate.high))
}

pub(super) fn to_text(model: &Model) -> String {
    let mut rows = Vec::new();
    for coefficient in &model.coefficients {
        rows.push(vec![
            coefficient.term.name(),
            number(coefficient.value.estimate),
            number(coefficient.value.standard_error),
            interval(&coefficient.value),
            format!("{:.0}%", 100.0 * coefficient.noise_share.min(1.0)),
        ]);
    }
    rows.push(vec![
        "(implied intercept)".to_owned(),
        number(model.intercept.estimate),
        String::new(),
        String::new(),
        String::new(),
    ]);
    let percent = format!("{}% interval", (1e6 * model.level).round() / 1e4);
    let unit = model.label_unit.as_ref().map_or(String::new(), |unit| format!(" ({unit})"));
    let mut text = format!("{}{unit} by {}:\n\n", model.label.name(), model.learner.name());
    text.push_str(&table(&["", "estimate", "std. error", &percent, "noise share"], &rows));
    let diagnostics = &model.diagnostics;
    let _ = writeln!(
        text,
        "\nn = {}, released rows = {}, R² = {}, smallest eigenvalue = {} ± {}",
        diagnostics.rows,
        diagnostics.released_rows,
        diagnostics.r_squared.map_or("not known".to_owned(), |r| format!("{r:.3}")),
        number(diagnostics.smallest_eigenvalue),
        number(diagnostics.smallest_eigenvalue_error),
    );
    let _ = writeln!(text, "These are {}.", model.estimand);
    let _ = writeln!(
        text,
        "No intercept is estimated: the fit passes through the middle of all bounds. Where the average of a column lies far from it, the slopes absorb the difference."
    );
    if !diagnostics.sound {
        let _ = writeln!(text, "Careful: {}.", diagnostics.stability);
    }
    text
}
