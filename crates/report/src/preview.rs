//! A preview of a study on made-up people, as a page.

use maud::{Markup, html};
use potluck_release::preview;

use crate::chart::Layout;
use crate::chart::preview::preview_plot;
use crate::numbers;
use crate::page::document;
use crate::words::name;

/// What simulated releases of a study gave, in standard deviations.
pub(crate) struct Preview<'a> {
    study: &'a str,
    /// The label.
    pub(crate) label: &'a str,
    rows: u64,
    /// Mean squared error of predictions over that of predicting the mean.
    loss: f64,
    /// The same without privacy.
    best_loss: f64,
    /// One a feature.
    pub(crate) coefficients: Vec<PreviewCoefficient<'a>>,
}

/// One coefficient over all simulated releases, in standard deviations of the label for one of the
/// feature.
pub(crate) struct PreviewCoefficient<'a> {
    /// The feature.
    pub(crate) name: &'a str,
    /// Least squares on the made-up people themselves.
    pub(crate) non_private: f64,
    /// The estimate of each release.
    pub(crate) estimates: Vec<f64>,
    /// Median half-width of the intervals.
    pub(crate) half_width: f64,
    /// Share of the releases in which published numbers speak against the coefficient.
    with_findings: f64,
}

impl<'a> Preview<'a> {
    fn new(preview: &'a preview::Preview) -> Self {
        let coefficients = preview.coefficients.iter().map(|one| PreviewCoefficient {
            name: &one.name,
            non_private: one.non_private * one.standard,
            estimates: one.estimates.iter().map(|estimate| estimate * one.standard).collect(),
            half_width: one.half_width * one.standard,
            with_findings: one.with_findings,
        });
        Self {
            study: &preview.study,
            label: &preview.label,
            rows: preview.rows,
            loss: preview.loss.private,
            best_loss: preview.loss.non_private,
            coefficients: coefficients.collect(),
        }
    }
}

/// One HTML file with the plot of a preview.
pub fn preview_page(preview: &preview::Preview) -> String {
    let title = format!("Preview of {} · potluck", preview.study);
    document(&title, &article(&Preview::new(preview)), "Made from made-up people: no private data was read.")
}

fn article(preview: &Preview<'_>) -> Markup {
    let releases = preview.coefficients.first().map_or(0, |one| one.estimates.len());
    let percent = |loss: f64| numbers::percent(1.0 - loss);
    html! {
        article .potluck-report {
            header {
                p .study { "Study " (name(preview.study)) }
                h1 { "What a regression of " (name(preview.label)) " would look like" }
                p .lead {
                    (numbers::count(releases as u64)) " simulated releases of " (numbers::count(preview.rows))
                    " made-up people in the study's shape. Predictions from the releases explain " (percent(preview.loss))
                    " of " (name(preview.label)) "; without privacy it would be " (percent(preview.best_loss)) "."
                }
            }
            section {
                figure {
                    (Layout::both(|layout| preview_plot(preview, layout)))
                    figcaption {
                        "Each grey dot is the estimate of one release. The upright line is the coefficient without privacy, the band about it the typical 95% interval. "
                        "A band that reaches across 0 means that a release would hardly tell the coefficient from 0."
                    }
                }
                (findings(preview))
            }
        }
    }
}

/// The features whose coefficients releases themselves would speak against.
fn findings(preview: &Preview<'_>) -> Markup {
    let found: Vec<_> = preview.coefficients.iter().filter(|one| one.with_findings > 0.0).collect();
    html! {
        @if !found.is_empty() {
            div .warning role="note" {
                p { strong { "Releases in which published numbers speak against a coefficient" } }
                ul { @for one in found { li { (name(one.name)) ": " (numbers::percent(one.with_findings)) } } }
            }
        }
    }
}
