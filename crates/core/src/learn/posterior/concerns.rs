//! Why a coefficient or its interval may mislead, as far as published numbers tell.
//!
//! Intervals allow for noise, mixing, sampling, open correlations and the clipping of bells. What they cannot allow for
//! is named here; a coefficient without a concern is one whose interval holds (docs/RESULTS.md#the-map).

use super::evidence::Evidence;
use super::learned::Learned;
use crate::calibrated::{Clipping, Tails};

/// A column is lopsided if clipping moved its mean by more than this many standard deviations, beyond doubt.
const MOST_SHIFT: f64 = 0.03;
/// A column has heavy tails if it lost this much more spread than a bell would, beyond doubt.
const MOST_EXCESS: f64 = 1.07;
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
    /// What may be an effect of the feature may also be one of these columns of other parties, whose correlation with it
    /// the releases leave open.
    Confounders(Vec<usize>),
}

impl Concern {
    /// Whether a coefficient with this concern is about values as they were cut.
    pub fn is_about_cut_values(&self) -> bool {
        matches!(self, Self::LabelTails | Self::FeatureTails)
    }

    /// Whether it is about the label, and so about every coefficient and about R².
    pub fn is_about_label(&self) -> bool {
        matches!(self, Self::LabelTails | Self::LabelUnresolved)
    }
}

/// Whether a column is lopsided or has heavy tails, beyond doubt.
fn has_tails(clipping: &Clipping) -> bool {
    let Tails { excess, excess_error, shift, shift_error } = clipping.tails;
    clipping.numeric
        && (shift.abs() - 2.0 * shift_error > MOST_SHIFT || excess * (1.0 - 2.0 * excess_error) > MOST_EXCESS)
}

/// Whether noise hides the spread of a column.
fn is_unresolved(evidence: &Evidence<'_>, column: usize) -> bool {
    let hidden = evidence.covariance[(column, column)] < 3.0 * evidence.covariance_noise[column];
    hidden || (evidence.clipping[column].numeric && evidence.clipping[column].tails.excess_error > MOST_DOUBT)
}

/// What columns say of each coefficient before anything is learned.
pub(super) fn of_columns(
    evidence: &Evidence<'_>,
    learned: &Learned,
    label: usize,
    features: &[usize],
) -> Vec<Vec<Concern>> {
    let of_label = [
        has_tails(&evidence.clipping[label]).then_some(Concern::LabelTails),
        is_unresolved(evidence, label).then_some(Concern::LabelUnresolved),
    ];
    let of_feature = |(at, &column): (usize, &usize)| {
        let unresolved = is_unresolved(evidence, column) || learned.white.raised[at] > 0.5;
        let own = [
            has_tails(&evidence.clipping[column]).then_some(Concern::FeatureTails),
            unresolved.then_some(Concern::FeatureUnresolved),
        ];
        of_label.iter().cloned().chain(own).flatten().collect()
    };
    features.iter().enumerate().map(of_feature).collect()
}

/// The columns whose open correlations with a feature matter most for its coefficient, if they do: `shares` says how much
/// of its variance is due to each feature, `open` how much to open correlations in all.
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
