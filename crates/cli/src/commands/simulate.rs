//! `potluck simulate`: releases of made-up people in a study's shape, as a preview of accuracy.

use std::fmt::Write as _;
use std::ops::ControlFlow;

use anyhow::Result;
use potluck_release::files::{Audience, check_writable, write_file};
use potluck_release::preview::Preview;
use potluck_simulation::{Rehearsal, Wanted};

use super::Settings;
use super::plan::load;
use crate::args::Simulate;
use crate::output::{number, table};

pub(super) fn run(arguments: &Simulate, settings: &Settings<'_>) -> Result<()> {
    if let Some(path) = &arguments.report {
        check_writable(path, settings.existing)?;
    }
    let wanted = Wanted {
        label: arguments.label.clone(),
        releases: arguments.releases,
        rows: arguments.rows,
        signal: arguments.signal,
        correlation: arguments.correlation,
        overlap: arguments.overlap,
        missing: arguments.missing,
        seed: arguments.seed,
    };
    let (study, _) = load(&arguments.study, arguments.base.base.as_deref())?.numbers()?;
    let rehearsal = Rehearsal::new(&study, wanted)?;
    settings.printer.note("making up people …");
    let progress = settings.printer.progress("releases", u64::from(arguments.releases));
    let watch = |done| {
        progress.set(done);
        ControlFlow::Continue(())
    };
    let preview = rehearsal.preview(settings.resources.threads, &watch)?;
    drop(progress);
    if let Some(path) = &arguments.report {
        let page = potluck_report::preview_page(&preview);
        write_file(path, page.as_bytes(), settings.existing, Audience::Public)?;
        settings.printer.note(&format!("report in {}", path.display()));
    }
    settings.printer.result(&preview, || to_text(&preview))
}

fn to_text(preview: &Preview) -> String {
    let rows: Vec<Vec<String>> = preview
        .coefficients
        .iter()
        .map(|coefficient| {
            vec![
                format!("{} ({})", coefficient.name, coefficient.party),
                number(coefficient.non_private),
                number(coefficient.mean),
                number(coefficient.error),
                format!("± {}", number(coefficient.half_width)),
                format!("{:.0}%", 100.0 * coefficient.coverage),
                format!("{:.0}%", 100.0 * coefficient.with_findings),
            ]
        })
        .collect();
    let mut text = format!(
        "{} releases of {} made-up people in {} rows; {} on all other columns:\n\n",
        preview.releases, preview.rows, preview.released_rows, preview.label
    );
    let header = ["", "non-private", "mean private", "error", "95% interval", "held", "findings"];
    text.push_str(&table(&header, &rows));
    let _ = writeln!(
        text,
        "\nR²: non-private {:.3}, private {:.3} on average; its interval held the non-private one in {:.0}% of releases",
        preview.r_squared.non_private,
        preview.r_squared.mean,
        100.0 * preview.r_squared.coverage
    );
    let _ = writeln!(
        text,
        "Squared error of predictions, over that of predicting the mean: non-private {:.3}, private {:.3}",
        preview.loss.non_private, preview.loss.private
    );
    text.push_str("error: root of the mean squared distance from the non-private coefficient; held: share of intervals that hold it;\nfindings: share of releases that say themselves that something speaks against the coefficient\n");
    text
}
