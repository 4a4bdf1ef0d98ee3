//! `potluck fit`.

use std::fmt::Write as _;

use anyhow::Result;
use potluck_core::learn::{Level, Ridge};
use potluck_release::files::{Audience, check_writable, refuse_same_file, write_file};
use potluck_release::fit::{Regression, fit};
use potluck_release::model::{Estimate, RSquared};
use potluck_release::{Error, Model, PublicDataset};

use super::Settings;
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
    let with_parts = model.coefficients.iter().all(|coefficient| coefficient.parts.is_some());
    let mut rows = Vec::new();
    for coefficient in &model.coefficients {
        let mut row = vec![
            coefficient.term.name(),
            number(coefficient.value.estimate),
            number(coefficient.value.standard_error),
            interval(&coefficient.value),
        ];
        match &coefficient.parts {
            Some(parts) if with_parts => {
                row.push(number(coefficient.prediction));
                let shares = [parts.privacy, parts.mixing, parts.sampling, parts.clipping];
                row.extend(shares.map(|share| format!("{:.0}%", 100.0 * share)));
            }
            _ => row.push(format!("{:.0}%", 100.0 * coefficient.noise_share.min(1.0))),
        }
        rows.push(row);
    }
    let mut intercept = if model.free_intercept {
        let value = &model.intercept;
        let mut cells = vec![
            "(intercept)".to_owned(),
            number(value.estimate),
            number(value.standard_error),
            interval(value),
        ];
        cells.extend(with_parts.then(|| number(model.prediction_intercept)));
        cells
    } else {
        vec!["(implied intercept)".to_owned(), number(model.intercept.estimate)]
    };
    let percent = format!("{}% interval", (1e6 * model.level).round() / 1e4);
    let mut header = vec!["", "estimate", "std. error", &percent];
    if with_parts {
        header.extend(["to predict", "privacy", "mixing", "sampling", "clipping"]);
    } else {
        header.push("noise share");
    }
    intercept.resize(header.len(), String::new());
    rows.push(intercept);
    let unit = model.label_unit.as_ref().map_or(String::new(), |unit| format!(" ({unit})"));
    let mut text = format!("{}{unit} by {}:\n\n", model.label.name(), model.learner.name());
    text.push_str(&table(&header, &rows));
    let diagnostics = &model.diagnostics;
    let r_squared = match &diagnostics.r_squared {
        None => "not known".to_owned(),
        Some(RSquared { estimate, interval: None }) => format!("{estimate:.3}"),
        Some(RSquared { estimate, interval: Some([low, high]) }) => {
            // Noise may take it beyond what a share can be; files have it as it is.
            let [estimate, low, high] = [estimate, low, high].map(|share| share.clamp(0.0, 1.0));
            format!("{estimate:.3} [{low:.3}, {high:.3}]")
        }
    };
    let _ = writeln!(
        text,
        "\nn = {}, released rows = {}, R² = {r_squared}",
        diagnostics.rows, diagnostics.released_rows,
    );
    if let Some(values) = &diagnostics.eigenvalues {
        let (smallest, error) = (number(values.smallest), number(values.smallest_error));
        let _ = writeln!(text, "smallest eigenvalue = {smallest} ± {error}");
    }
    let _ = writeln!(text, "These are {}.", model.estimated());
    if with_parts {
        let _ = writeln!(
            text,
            "privacy, mixing, sampling, clipping: what the variance of an estimate is made of. \"to predict\": the coefficient to predict with, shrunk where the data resolve little."
        );
    }
    if !model.free_intercept {
        let _ = writeln!(
            text,
            "No intercept is estimated: the fit passes through the middle of all bounds. Where the average of a column lies far from it, the slopes absorb the difference."
        );
    }
    if let Some(fault) = diagnostics.fault() {
        let _ = writeln!(text, "Careful: {fault}.");
    }
    text
}
