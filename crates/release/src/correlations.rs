//! Correlations of the columns of a public dataset, with intervals.

use potluck_core::learn::{self, Correlation, Level};
use serde::Serialize;

use crate::Error;
use crate::dataset::PublicDataset;
use crate::findings::{Finding, FindingKind};
use crate::fit::Material;

/// Which correlations to look at.
#[derive(Clone, Debug, Default)]
pub struct Question {
    /// Columns or `column=level` names; all when `None`.
    pub columns: Option<Vec<String>>,
    /// What is held fixed: partial correlations given these.
    pub given: Vec<String>,
    /// Level of the intervals.
    pub level: Level,
    /// Whether the level is that of all intervals together (Bonferroni), not of each alone.
    pub together: bool,
}

/// The correlations of columns, as data.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Correlations {
    /// Says what it is: `correlations`.
    pub potluck: &'static str,
    /// Name of the study.
    pub study: String,
    /// Id of the study.
    pub study_id: String,
    /// Content hash of the public dataset.
    pub dataset: String,
    /// Names of the encoded columns, those that go together next to each other.
    pub columns: Vec<String>,
    /// What is held fixed.
    pub given: Vec<String>,
    /// Level of each interval.
    pub level: f64,
    /// Level of all intervals together, if that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub level_together: Option<f64>,
    /// One a pair of different columns, the strongest first. Levels of one column exclude each
    /// other and have none.
    pub pairs: Vec<Pair>,
}

/// The correlation of two columns.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Pair {
    /// One of them.
    pub one: String,
    /// The other.
    pub other: String,
    /// The estimate.
    pub estimate: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
    /// Whether the interval excludes 0.
    pub resolved: bool,
    /// What published numbers say against it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<Finding>,
}

impl Pair {
    /// Whether its interval cannot be relied on.
    pub fn has_unsure_interval(&self) -> bool {
        self.findings.iter().any(Finding::is_about_unsure_interval)
    }
}

impl Correlations {
    /// The pair of two columns, whichever comes first.
    pub fn pair(&self, one: &str, other: &str) -> Option<&Pair> {
        let is = |pair: &&Pair| {
            (pair.one == one && pair.other == other) || (pair.one == other && pair.other == one)
        };
        self.pairs.iter().find(is)
    }

    /// The JSON text.
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).expect("correlations are finite numbers");
        text.push('\n');
        text
    }
}

/// The correlations that a public dataset tells.
pub fn correlate(dataset: &PublicDataset, question: &Question) -> Result<Correlations, Error> {
    let material = Material::new(dataset)?;
    let all = material.columns_named(question.columns.as_deref())?;
    let mut given = Vec::new();
    for name in &question.given {
        given.extend(material.beside_an_intercept(name)?);
    }
    let columns: Vec<usize> = all.into_iter().filter(|column| !given.contains(column)).collect();
    let pairs: Vec<(usize, usize)> = (0..columns.len())
        .flat_map(|at| columns[..at].iter().map(move |&before| (before, at)))
        .map(|(before, at)| (before, columns[at]))
        .filter(|&(one, other)| !material.are_of_one_column(one, other))
        .collect();
    if pairs.is_empty() {
        return Err(Error::Regression(
            "there are no two columns to correlate; name at least two that are not held fixed".to_owned(),
        ));
    }
    let level = if question.together {
        Level::new(1.0 - (1.0 - question.level.get()) / pairs.len() as f64)?
    } else {
        question.level
    };
    let evidence = material.evidence()?;
    let mut found = Vec::with_capacity(pairs.len());
    for (one, other) in pairs {
        let Correlation { estimate, interval, concerns } =
            learn::correlation(&evidence, one, other, &given, level)?;
        let mut findings: Vec<Finding> = concerns.iter().map(|concern| material.finding(concern)).collect();
        // Either column may stand for the label here.
        findings.retain(|finding| finding.kind != FindingKind::Confounders || !given.is_empty());
        found.push(Pair {
            one: material.name(one),
            other: material.name(other),
            estimate,
            low: interval.lower,
            high: interval.upper,
            resolved: interval.lower > 0.0 || interval.upper < 0.0,
            findings,
        });
    }
    found.sort_by(|a, b| b.estimate.abs().total_cmp(&a.estimate.abs()));
    let names: Vec<String> = columns.iter().map(|&column| material.name(column)).collect();
    let study = dataset.study();
    let mut correlations = Correlations {
        potluck: "correlations",
        study: study.definition().name().to_owned(),
        study_id: study.id().to_owned(),
        dataset: dataset.content_hash().to_owned(),
        columns: names,
        given: given.iter().map(|&column| material.name(column)).collect(),
        level: level.get(),
        level_together: question.together.then(|| question.level.get()),
        pairs: found,
    };
    correlations.columns = ordered(&correlations);
    Ok(correlations)
}

/// Columns in a chain in which each goes best with the one before, of those that are left; the
/// chain begins with the one that goes with the others most.
fn ordered(correlations: &Correlations) -> Vec<String> {
    let mut left = correlations.columns.clone();
    let size = |one: &str, other: &str| {
        correlations.pair(one, other).filter(|pair| pair.resolved).map_or(0.0, |pair| pair.estimate.abs())
    };
    let total = |one: &String| left.iter().map(|other| size(one, other)).sum::<f64>();
    let mut chain = Vec::with_capacity(left.len());
    // Of equals the first, so that nothing is moved without a reason.
    let most =
        |sizes: &[f64]| (0..sizes.len()).rev().max_by(|&a, &b| sizes[a].total_cmp(&sizes[b])).unwrap_or(0);
    let mut next = most(&left.iter().map(total).collect::<Vec<_>>());
    while !left.is_empty() {
        let last = left.remove(next);
        next = most(&left.iter().map(|other| size(&last, other)).collect::<Vec<_>>());
        chain.push(last);
    }
    chain
}
