//! A preview of a study on made-up people, as a page.

use maud::{Markup, PreEscaped, html};

use crate::chart::Layout;
use crate::chart::preview::preview_plot;
use crate::numbers;
use crate::page::document;
use crate::words::name;

/// What simulated releases of a study gave, in standard deviations.
#[derive(Clone, Debug)]
pub struct Preview<'a> {
    /// Name of the study.
    pub study: &'a str,
    /// The label.
    pub label: &'a str,
    /// Number of made-up people.
    pub rows: u64,
    /// Mean squared error of predictions over that of predicting the mean.
    pub loss: f64,
    /// The same without privacy.
    pub best_loss: f64,
    /// One a feature.
    pub coefficients: Vec<PreviewCoefficient<'a>>,
}

/// One coefficient over all simulated releases, in standard deviations of the label for one of the feature.
#[derive(Clone, Debug)]
pub struct PreviewCoefficient<'a> {
    /// The feature.
    pub name: &'a str,
    /// Least squares on the made-up people themselves.
    pub non_private: f64,
    /// The estimate of each release.
    pub estimates: Vec<f64>,
    /// Median half-width of the intervals.
    pub half_width: f64,
    /// Share of the releases in which published numbers speak against the coefficient.
    pub with_findings: f64,
}

/// One HTML file with the plot of a preview.
pub fn preview_page(preview: &Preview<'_>) -> String {
    let title = format!("Preview of {} · potluck", preview.study);
    document(&title, &article(preview), "Made from made-up people: no private data was read.")
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
                    (PreEscaped(preview_plot(preview, Layout::Wide)))
                    (PreEscaped(preview_plot(preview, Layout::Narrow)))
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
