//! What is not known of who is where, and what that does to a regression
//! (docs/LEARNERS.md#different-people): overlaps, values that are missing at the same people of two
//! parties, and what selection does beyond its correction.

use faer::{Col, Mat};

use super::evidence::Evidence;
use super::learned::Learned;

/// Standard deviation of the unknown correlation between "missing here" and "missing there", for
/// columns of two parties.
const DEPENDENT: f64 = 0.2;
/// Relative standard deviation of the correction for what selection does to covariances.
const SELECTION_DOUBT: f64 = 0.5;

/// What one thing that is not known may do.
pub(super) struct Doubt {
    /// To the weights of the coordinates, one standard deviation of it.
    pub(super) effect: Col<f64>,
    /// To the explained share.
    pub(super) explained: f64,
}

/// Standard deviation of a factor whose logarithm has this one.
fn as_factor(sd: f64) -> f64 {
    (sd * sd).exp_m1().sqrt() * (sd * sd / 2.0).exp()
}

/// All of it; nothing where everybody is everywhere.
pub(super) fn doubts(
    evidence: &Evidence<'_>,
    learned: &Learned,
    label: usize,
    features: &[usize],
) -> Vec<Doubt> {
    let Learned { white, w, h_inverse, means, lost, home, overlap_doubts, .. } = learned;
    let d = w.nrows();
    let missed = |column: usize| {
        let rate = evidence.people.rates[column];
        (1.0 - rate) / rate
    };
    let of_party = |party: usize| {
        let mine: Vec<f64> =
            (0..d).filter(|&j| white.party_of_feature[j] == party).map(|j| missed(features[j])).collect();
        mine.iter().sum::<f64>() / mine.len() as f64
    };
    let mut parties = white.party.clone();
    parties.dedup();
    let mut found = Vec::new();
    let mut add = |sd: f64, on_label: &Col<f64>, on_matrix: &Col<f64>| {
        let explained = 2.0 * (w.transpose() * on_label) - w.transpose() * on_matrix;
        let effect = h_inverse * (on_label - on_matrix) * faer::Scale(sd);
        found.push(Doubt { effect, explained: sd * explained });
    };
    let none = Col::<f64>::zeros(d);
    for (at, &party) in parties.iter().enumerate() {
        let doubt = |other: usize, missed: f64| {
            overlap_doubts[(party, other)].powi(2) + DEPENDENT.powi(2) * of_party(party) * missed
        };
        let of_label = if party == *home { 0.0 } else { doubt(*home, missed(label)) };
        if of_label > 0.0 {
            let mine = |i: usize| if white.party[i] == party { means[i] } else { 0.0 };
            add(as_factor(of_label.sqrt()), &Col::from_fn(d, mine), &none);
        }
        for &other in &parties[..at] {
            let between = doubt(other, of_party(other));
            if between > 0.0 {
                let pair = |i: usize, j: usize| {
                    let parties = (white.party[i], white.party[j]);
                    parties == (party, other) || parties == (other, party)
                };
                let block = Mat::from_fn(d, d, |i, j| if pair(i, j) { learned.between[(i, j)] } else { 0.0 });
                add(as_factor(between.sqrt()), &none, &(block * w));
            }
        }
    }
    if lost.iter().any(|lost| *lost != 0.0) {
        let through = lost.transpose() * w;
        add(SELECTION_DOUBT, &none, &(lost * faer::Scale(-through)));
    }
    found
}
