//! What clipping did to correlations beyond the loss of spread, as far as published numbers tell.
//!
//! A correlation r of columns i and j loses about the share θ·(e_i + e_j)·(1 − r²), where e is by
//! how much clipping attenuated each column. θ is not known; each kind of it has a mean, which is
//! undone, and a standard deviation, which intervals allow for. Where the numbers come from:
//! docs/LEARNERS.md#what-clipping-does.

use faer::{Col, Mat, Row};

use super::evidence::Evidence;
use super::learned::Learned;

/// Mean and standard deviation of θ between a numeric column and other parties (the mean is 0 for a
/// level).
const BETWEEN: (f64, f64) = (1.0 / 12.0, 1.0 / 8.0);
/// The same within a party.
const WITHIN: (f64, f64) = (0.3, 0.25);
/// The same for what a rare level loses where its partner saturates.
const RARE: (f64, f64) = (1.0, 0.5);

/// Standard deviation of the correction for covariances that the ball makes up within a party.
const SPURIOUS: f64 = 0.5;

/// By how much of what is predicted undoing the mean losses may change predictions. Beyond this,
/// what is undone is what noise left of the difference of two columns that are nearly one.
const MOST_UNDONE: f64 = 0.2;

/// What is known of all losses together.
pub(super) struct Losses {
    /// What losses do on average to Hw = c.
    mean: Mat<f64>,
    /// The part of it that rare levels lose.
    rare: Mat<f64>,
    /// For each θ, its standard deviation times what it does to the weights of the coordinates.
    pub(super) effects: Vec<Col<f64>>,
    /// Mean change of the explained share, and the variance of what is not known of it.
    pub(super) explained: (f64, f64),
}

/// Sums up losses as they are found.
struct Collector<'a> {
    learned: &'a Learned,
    mean: Mat<f64>,
    effects: Vec<Col<f64>>,
    explained: (f64, f64),
}

impl Collector<'_> {
    /// Adds a θ by what it does to covariances with the label and to H, each applied to w.
    fn add(&mut self, (mean, sd): (f64, f64), on_label: &Col<f64>, on_matrix: &Col<f64>) {
        let Learned { w, h_inverse, .. } = self.learned;
        self.effects.push(h_inverse * (on_label - on_matrix) * faer::Scale(sd));
        let explained = 2.0 * (w.transpose() * on_label) - w.transpose() * on_matrix;
        self.explained.0 += mean * explained;
        self.explained.1 += (sd * explained).powi(2);
    }
}

fn diagonal_times(diagonal: &[f64], matrix: &Mat<f64>) -> Mat<f64> {
    Mat::from_fn(matrix.nrows(), matrix.ncols(), |i, j| diagonal[i] * matrix[(i, j)])
}

impl Losses {
    pub(super) fn new(evidence: &Evidence<'_>, learned: &Learned, label: usize, features: &[usize]) -> Self {
        let d = features.len();
        let Learned { white, h, w, .. } = learned;
        let (a, inverse) = (&white.transform, &white.inverse);
        let lost = |column: usize| evidence.clipping[column].attenuation - 1.0;
        let e: Vec<f64> = features.iter().map(|&column| lost(column)).collect();
        let e_label = lost(label);
        let mean_of = |column: usize| if evidence.clipping[column].numeric { BETWEEN.0 } else { 0.0 };

        // Correlations between parties, and of others' coordinates with the label.
        let cross = Mat::from_fn(d, d, |i, j| {
            let x = if white.apart(i, j) { h[(i, j)] } else { 0.0 };
            x * (1.0 - (x * x).min(1.0))
        });
        let hw = h * w;
        let c: Vec<f64> = hw.iter().map(|c| c.clamp(-1.0, 1.0)).collect();
        let elsewhere: Vec<f64> = white.own.iter().map(|&own| f64::from(!own)).collect();
        let far: Vec<f64> =
            c.iter().zip(&elsewhere).map(|(c, elsewhere)| (1.0 - c * c) * elsewhere).collect();
        let far_times = |x: &Col<f64>| Col::from_fn(d, |i| far[i] * x[i]);

        let mut collector = Collector {
            learned,
            mean: Mat::zeros(d, d),
            effects: Vec::with_capacity(d + evidence.parties.len() + 2),
            explained: (0.0, 0.0),
        };
        let crossed = &cross * w;
        for j in 0..d {
            // E = e_j·A[:,j]·A⁻¹[j,:] has rank one, so everything about it is a few products with
            // vectors.
            let column = Col::from_fn(d, |i| a[(i, j)] * e[j]);
            let row = Row::from_fn(d, |i| inverse[(j, i)]);
            let on_label = far_times(&(&column * faer::Scale(&row * &hw)));
            let back = &cross * Col::from_fn(d, |i| row[i]);
            let along = column.transpose() * w;
            let on_matrix = &column * faer::Scale(&row * &crossed) + &back * faer::Scale(along);
            collector.add((mean_of(features[j]), BETWEEN.1), &on_label, &on_matrix);
        }
        let means: Vec<f64> = (0..d).map(|j| mean_of(features[j]) * e[j]).collect();
        let scaled = a * diagonal_times(&means, inverse);
        let on_matrix = &scaled * &cross;
        collector.mean += diagonal_times(&far, &(&scaled * h)) - &on_matrix - on_matrix.transpose();

        let zero = Col::zeros(d);
        collector.add((mean_of(label), BETWEEN.1), &(far_times(&hw) * faer::Scale(e_label)), &zero);
        collector.mean += diagonal_times(&far, h) * faer::Scale(mean_of(label) * e_label);

        within_parties(evidence, &mut collector, (label, features), (&e, e_label), &hw);

        // Where a level is rare, its partner is clipped just where the level applies.
        let excess = |column: usize| evidence.clipping[column].kurtosis;
        let spreads: Vec<f64> =
            (0..d).map(|i| (0..d).map(|j| inverse[(i, j)].powi(2)).sum::<f64>().sqrt()).collect();
        let with_label = inverse * Col::from_fn(d, |i| c[i]);
        let rare: Vec<f64> = (0..d)
            .map(|j| {
                let r = (with_label[j] / spreads[j]).clamp(-1.0, 1.0);
                ((e_label * excess(features[j]) + e[j] * excess(label)) * r * r / 3.0).min(0.5)
            })
            .collect();
        let on_label = diagonal_times(&elsewhere, &(a * diagonal_times(&rare, &(inverse * h))));
        collector.add(RARE, &(&on_label * w), &zero);
        collector.mean += &on_label * faer::Scale(RARE.0);

        made_up(evidence, &mut collector, label, features);

        Self {
            mean: collector.mean,
            rare: on_label,
            effects: collector.effects,
            explained: collector.explained,
        }
    }

    /// I + Σ mean·J: undoes the mean losses of weights of the coordinates.
    pub(super) fn undo(&self, h_inverse: &Mat<f64>) -> Mat<f64> {
        let d = h_inverse.nrows();
        Mat::<f64>::identity(d, d) + h_inverse * &self.mean
    }

    /// Weights of the coordinates to predict with.
    pub(super) fn undone(&self, learned: &Learned) -> Col<f64> {
        let Learned { w, h, h_inverse, .. } = learned;
        let change = h_inverse * (&self.mean * w);
        let spread = |w: &Col<f64>| (w.transpose() * h * w).max(0.0).sqrt();
        let part = MOST_UNDONE * spread(w) / spread(&change).max(f64::MIN_POSITIVE);
        w + change * faer::Scale(part.min(1.0))
    }

    /// Derivative of the undone weights by the found covariances, times H: the loss of rare levels
    /// is cubic in them.
    pub(super) fn derivative(&self, h_inverse: &Mat<f64>) -> Mat<f64> {
        self.undo(h_inverse) + h_inverse * &self.rare * faer::Scale(2.0 * RARE.0)
    }
}

/// One θ for each party: how wrong the correction for covariances that its ball makes up may be.
fn made_up(evidence: &Evidence<'_>, collector: &mut Collector<'_>, label: usize, features: &[usize]) {
    let Learned { white, w, label_variance, .. } = collector.learned;
    let d = features.len();
    let a = &white.transform;
    let along = a.transpose() * w;
    for members in &evidence.parties {
        let mine: Vec<usize> = (0..d).filter(|&j| members.contains(&features[j])).collect();
        let mut on_label = Col::<f64>::zeros(d);
        let mut on_matrix = Col::<f64>::zeros(d);
        for &i in &mine {
            if members.contains(&label) {
                on_label[i] = evidence.spurious[(features[i], label)] / label_variance.sqrt();
            }
            for &j in &mine {
                on_matrix[i] += evidence.spurious[(features[i], features[j])] * along[j];
            }
        }
        collector.add((0.0, SPURIOUS), &(a * on_label), &(a * on_matrix));
    }
}

/// One θ for each party: correlations among its features, and with the label if it is the label's.
fn within_parties(
    evidence: &Evidence<'_>,
    collector: &mut Collector<'_>,
    (label, features): (usize, &[usize]),
    (e, e_label): (&[f64], f64),
    hw: &Col<f64>,
) {
    let learned = collector.learned;
    let Learned { white, h, w, label_variance, .. } = learned;
    let (a, inverse) = (&white.transform, &white.inverse);
    let d = features.len();
    let gram = inverse * inverse.transpose();
    let one_less = |share: f64| 1.0 - share.min(1.0);
    let mut in_all = Mat::<f64>::zeros(d, d);
    let mut with_label = vec![0.0; d];
    let mut parties: Vec<usize> = white.party.clone();
    parties.dedup();
    let (along, onto) = (a.transpose() * w, inverse * hw);
    for &party in &parties {
        let members: Vec<usize> = (0..d).filter(|&j| white.party_of_feature[j] == party).collect();
        let own = white.party.iter().zip(&white.own).any(|(&of, &own)| of == party && own);
        if members.len() < 2 && !own {
            continue;
        }
        let mut on_matrix = Col::<f64>::zeros(d);
        let mut on_label = Col::<f64>::zeros(d);
        for &i in &members {
            for &j in members.iter().filter(|&&j| j != i) {
                let r_squared = gram[(i, j)].powi(2) / (gram[(i, i)] * gram[(j, j)]);
                in_all[(i, j)] = gram[(i, j)] * (e[i] + e[j]) * one_less(r_squared);
                on_matrix[i] += in_all[(i, j)] * along[j];
            }
            if own {
                let covariance = evidence.covariance[(features[i], label)];
                let r_squared = covariance * covariance / (label_variance * gram[(i, i)]);
                with_label[i] = (e[i] + e_label) * one_less(r_squared);
                on_label[i] = with_label[i] * onto[i];
            }
        }
        collector.add(WITHIN, &(a * on_label), &(a * on_matrix));
    }
    let on_label = a * diagonal_times(&with_label, &(inverse * h));
    let on_matrix = a * in_all * a.transpose();
    collector.mean += (on_label - on_matrix) * faer::Scale(WITHIN.0);
}
