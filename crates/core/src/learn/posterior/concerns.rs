//! Why a coefficient or its interval may mislead, as far as published numbers tell.
//!
//! Intervals allow for noise, mixing, sampling, open correlations and the clipping of bells. What
//! they cannot allow for is named here; a coefficient without a concern is one whose interval holds
//! (docs/RESULTS.md#the-map). The limits are explained in docs/LEARNERS.md#findings.

use super::evidence::Evidence;
use super::learned::Learned;
use super::overlaps::{Overlap, OverlapConcern};
use crate::learn::{Clipping, Tails};

/// A column is lopsided if clipping moved its mean by more than this many standard deviations,
/// beyond doubt.
const MOST_SHIFT: f64 = 0.03;
/// A column has heavy tails if it lost this much more spread than a bell would, beyond doubt …
const MOST_EXCESS: f64 = 1.04;
/// … and they matter for a coefficient if a change by as much would be more than this share of its
/// standard error.
const MOST_MOVED: f64 = 0.5;
/// Beyond this doubt of its spread, nothing is known of a column's tails.
const MOST_DOUBT: f64 = 1.0;
/// A coefficient hangs on open correlations if they make up more of its variance than this.
const MOST_OPEN: f64 = 0.6;

/// What published numbers say against a coefficient.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Concern {
    /// The label is lopsided or has heavy tails: its coefficients are about cut values.
    LabelTails,
    /// The feature is lopsided or has heavy tails: its coefficient is about cut values.
    FeatureTails,
    /// Noise hides the spread of the label.
    LabelUnresolved,
    /// Noise hides the spread of the feature.
    FeatureUnresolved,
    /// What may be an effect of the feature may also be one of these columns of other parties,
    /// whose correlation with it the releases leave open.
    Confounders(Vec<usize>),
    /// What the label's party and the feature's have in common is not as it should be.
    Overlap(OverlapConcern),
    /// Many labels are missing.
    LabelMissing,
    /// Many values of the feature are missing.
    FeatureMissing,
}

/// What published numbers say against the explained share.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ShareConcerns {
    /// The label is lopsided or has heavy tails.
    pub label_tails: bool,
    /// Noise hides the spread of the label.
    pub label_unresolved: bool,
    /// Features that are lopsided or have heavy tails.
    pub feature_tails: Vec<usize>,
    /// Features whose party and the label's do not have in common what they should, by what is
    /// wrong.
    pub overlaps: Vec<(OverlapConcern, Vec<usize>)>,
    /// Many labels are missing.
    pub label_missing: bool,
    /// Features of which many values are missing.
    pub feature_missing: Vec<usize>,
}

impl Concern {
    /// Its name, for tables.
    pub fn name(&self) -> &'static str {
        match self {
            Self::LabelTails => "label tails",
            Self::FeatureTails => "feature tails",
            Self::LabelUnresolved => "label unresolved",
            Self::FeatureUnresolved => "feature unresolved",
            Self::Confounders(_) => "confounders",
            Self::Overlap(OverlapConcern::Nobody) => "nobody in common",
            Self::Overlap(OverlapConcern::Unseen) => "overlap unseen",
            Self::Overlap(OverlapConcern::Undeclared) => "overlap undeclared",
            Self::LabelMissing => "label missing",
            Self::FeatureMissing => "feature missing",
        }
    }

    /// Whether a coefficient with this concern is about values as they were cut.
    pub fn is_about_cut_values(&self) -> bool {
        matches!(self, Self::LabelTails | Self::FeatureTails)
    }
}

/// Whether a column is lopsided, beyond doubt.
fn is_lopsided(clipping: &Clipping) -> bool {
    let Tails { shift, shift_error, .. } = clipping.tails;
    clipping.numeric && shift.abs() - 2.0 * shift_error > MOST_SHIFT
}

/// Whether a column has heavy tails, beyond doubt.
fn is_heavy(clipping: &Clipping) -> bool {
    let Tails { excess, excess_error, .. } = clipping.tails;
    clipping.numeric && excess * (1.0 - 2.0 * excess_error) > MOST_EXCESS
}

/// Whether the tails of a column speak against a coefficient that is so many standard errors from
/// 0. Corrections for what clipping took are for bells: where a column lost more, the coefficient
/// may be off by about as much.
fn speak_against(clipping: &Clipping, standard_errors: f64) -> bool {
    let moved = standard_errors.abs() * (clipping.tails.excess - 1.0);
    is_lopsided(clipping) || (is_heavy(clipping) && moved > MOST_MOVED)
}

/// Whether noise hides the spread of a column.
fn is_unresolved(evidence: &Evidence<'_>, column: usize) -> bool {
    let hidden = evidence.covariance[(column, column)] < 3.0 * evidence.covariance_noise[column];
    hidden || (evidence.clipping[column].numeric && evidence.clipping[column].tails.excess_error > MOST_DOUBT)
}

/// What columns say of each coefficient, given how many standard errors it would be from 0 if all
/// clipping were undone.
pub(super) fn of_columns(
    evidence: &Evidence<'_>,
    learned: &Learned,
    (label, features): (usize, &[usize]),
    standard_errors: &[f64],
) -> Vec<Vec<Concern>> {
    let label_unresolved = is_unresolved(evidence, label);
    let of_feature = |(at, &column): (usize, &usize)| {
        let tails = |of: usize| speak_against(&evidence.clipping[of], standard_errors[at]);
        let unresolved = is_unresolved(evidence, column) || learned.white.raised[at] > 0.5;
        let people = &evidence.people;
        let overlap = people.overlap(evidence.party_of(column), learned.home).and_then(Overlap::concern);
        [
            tails(label).then_some(Concern::LabelTails),
            label_unresolved.then_some(Concern::LabelUnresolved),
            tails(column).then_some(Concern::FeatureTails),
            unresolved.then_some(Concern::FeatureUnresolved),
            overlap.map(Concern::Overlap),
            people.is_often_missing(label).then_some(Concern::LabelMissing),
            people.is_often_missing(column).then_some(Concern::FeatureMissing),
        ]
        .into_iter()
        .flatten()
        .collect()
    };
    features.iter().enumerate().map(of_feature).collect()
}

/// What columns say of the explained share; tails of features are named.
pub(super) fn of_share(evidence: &Evidence<'_>, label: usize, features: &[usize]) -> ShareConcerns {
    let has_tails = |column: usize| {
        let clipping = &evidence.clipping[column];
        is_lopsided(clipping) || is_heavy(clipping)
    };
    let people = &evidence.people;
    let home = evidence.party_of(label);
    let overlap = |column: usize| people.overlap(evidence.party_of(column), home).and_then(Overlap::concern);
    let of_concern = |concern: OverlapConcern| {
        let about: Vec<usize> =
            features.iter().copied().filter(|&column| overlap(column) == Some(concern)).collect();
        (!about.is_empty()).then_some((concern, about))
    };
    let often_missing = |column: &usize| people.is_often_missing(*column);
    ShareConcerns {
        label_tails: has_tails(label),
        label_unresolved: is_unresolved(evidence, label),
        feature_tails: features.iter().copied().filter(|&column| has_tails(column)).collect(),
        overlaps: OverlapConcern::ALL.into_iter().filter_map(of_concern).collect(),
        label_missing: people.is_often_missing(label),
        feature_missing: features.iter().copied().filter(often_missing).collect(),
    }
}

/// The columns whose open correlations with a feature matter most for its coefficient, if they do:
/// `shares` says how much of its variance is due to each feature, `open` how much to open
/// correlations in all.
pub(super) fn confounders(open: f64, shares: &[f64], features: &[usize]) -> Option<Concern> {
    if open <= MOST_OPEN {
        return None;
    }
    let mut order: Vec<usize> = (0..shares.len()).filter(|&j| shares[j] > 0.0).collect();
    order.sort_by(|&i, &j| shares[j].total_cmp(&shares[i]));
    let total: f64 = shares.iter().sum();
    let mut named = Vec::new();
    let mut reached = 0.0;
    for j in order.into_iter().take(3) {
        named.push(features[j]);
        reached += shares[j];
        if reached > 0.8 * total {
            break;
        }
    }
    Some(Concern::Confounders(named))
}
