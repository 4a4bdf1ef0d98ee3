//! What published numbers say against a coefficient or R²: each kind with its words, the same for the command, reports,
//! pages and Python.

use serde::{Deserialize, Serialize};

use crate::model::{Coefficient, Model};

/// What kind of trouble a finding names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FindingKind {
    /// The label is lopsided or has heavy tails; coefficients are about cut values.
    LabelTails,
    /// The feature is lopsided or has heavy tails; its coefficient is about cut values.
    FeatureTails,
    /// Noise hides the spread of the label.
    LabelUnresolved,
    /// Noise hides the spread of the feature.
    FeatureUnresolved,
    /// The releases cannot tell the feature's effect from that of columns of other parties.
    Confounders,
}

/// A finding about one coefficient or about R².
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Finding {
    /// What is the matter.
    pub kind: FindingKind,
    /// The columns of other parties that it is about, for [`FindingKind::Confounders`]; the features that it is about, for a
    /// finding of R².
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<String>,
}

impl Finding {
    /// Whether a coefficient with this finding is about values as the release cut them.
    pub fn is_about_cut_values(&self) -> bool {
        matches!(self.kind, FindingKind::LabelTails | FindingKind::FeatureTails)
    }

    /// In a few words, for a column of a table.
    pub fn short(&self) -> &'static str {
        match self.kind {
            FindingKind::LabelTails => "label cut",
            FindingKind::FeatureTails => "feature cut",
            FindingKind::LabelUnresolved => "label unknown",
            FindingKind::FeatureUnresolved => "feature unknown",
            FindingKind::Confounders => "confounders open",
        }
    }

    /// In a sentence, about the coefficient of `feature` with label `label`.
    fn sentence(&self, label: &str, feature: &str) -> String {
        match self.kind {
            FindingKind::LabelTails => format!(
                "{label} has long tails, which the release cut: coefficients are about cut values, and may differ from those of the values as they are."
            ),
            FindingKind::FeatureTails => format!(
                "{feature} has long tails, which the release cut: its coefficient is about cut values, and may differ from that of the values as they are."
            ),
            FindingKind::LabelUnresolved => {
                format!("Noise hides how much {label} varies: intervals may not hold.")
            }
            FindingKind::FeatureUnresolved => {
                format!("Noise hides how much {feature} varies: its interval may not hold.")
            }
            FindingKind::Confounders => format!(
                "What looks like an effect of {feature} may be one of {}: the releases do not tell how they go together.",
                listed(&self.columns)
            ),
        }
    }
}

/// "a", "a or b", "a, b or c".
fn listed(names: &[String]) -> String {
    match names {
        [] => "columns of other parties".to_owned(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}

/// A finding in words, and the coefficients that it is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// What is the matter.
    pub kind: FindingKind,
    /// The sentence.
    pub text: String,
    /// Names of the coefficients.
    pub coefficients: Vec<String>,
}

impl Model {
    /// Every finding of the fit in words, each once, those about all coefficients first.
    pub fn findings(&self) -> Vec<Said> {
        let label = self.label.name();
        let mut all: Vec<Said> = Vec::new();
        for coefficient in &self.coefficients {
            let feature = coefficient.term.name();
            for finding in &coefficient.findings {
                let text = finding.sentence(&label, &feature);
                match all.iter_mut().find(|said| said.kind == finding.kind && said.text == text) {
                    Some(said) => said.coefficients.push(feature.clone()),
                    None => all.push(Said { kind: finding.kind, text, coefficients: vec![feature.clone()] }),
                }
            }
        }
        all.sort_by_key(|said| said.kind);
        all
    }

    /// What the values of a coefficient were cut to, in words, if it is about cut values.
    pub fn cut_to(&self, coefficient: &Coefficient) -> Option<String> {
        if !coefficient.is_about_cut_values() {
            return None;
        }
        let range =
            |[low, high]: [f64; 2]| format!("{} to {}", rounded(low, high - low), rounded(high, high - low));
        Some(format!(
            "{} cut to {}, {} to {}",
            self.label.name(),
            range(self.label_kept.unwrap_or(self.label_range)),
            coefficient.term.name(),
            range(coefficient.kept.unwrap_or(coefficient.range)),
        ))
    }
}

/// A number with as many digits as a range of this width needs.
fn rounded(value: f64, width: f64) -> String {
    let digits = (2.0 - width.abs().max(f64::MIN_POSITIVE).log10().floor()).clamp(0.0, 12.0) as usize;
    format!("{value:.digits$}")
}

impl Coefficient {
    /// Whether it is about values as the release cut them.
    pub fn is_about_cut_values(&self) -> bool {
        self.findings.iter().any(Finding::is_about_cut_values)
    }
}
