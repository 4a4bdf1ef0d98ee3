//! Products of columns of different parties, along the coordinates: from mixed rows or from
//! exchanged blocks (docs/LEARNERS.md#posterior, step 3, and docs/LEARNERS.md#exchanged-blocks).

use faer::{Col, Mat};

use super::evidence::{Between, Blocks, Evidence, Sample};
use super::learned::MOST_TRUSTED;
use super::shifts::{LabelRows, Shifts};
use super::shrink::Noisy;
use super::whiten::Whitened;

/// How many times the noise in correlations of known size H stays clear of singular.
const NOISES_FROM_SINGULAR: f64 = 2.0;
/// Keeps precisions finite where nothing is noised.
const LEAST_VARIANCE: f64 = 1e-12;

/// What evidence says between parties, as it was found.
pub(super) struct Products {
    /// Correlations between parties, and the variance of the error of each.
    pub(super) crossed: Mat<f64>,
    pub(super) variance: Mat<f64>,
    /// Covariances with the label; those of its own party do not count.
    pub(super) with_label: Noisy,
    /// How many rows errors come from: without end where their variance is known.
    pub(super) rows: f64,
    /// By how much less features vary among the label's people, as a vector whose square is lost.
    pub(super) lost: Col<f64>,
    pub(super) mixed: Option<MixedRows>,
    /// How many people two coordinates' parties have in common, and a coordinate's and the label's.
    pub(super) shared: Mat<f64>,
    pub(super) shared_with_label: Vec<f64>,
    /// Variances of what is taken out of products because shared people differ from others, between
    /// coordinates and with the label; and the shifts. Everybody is everywhere where blocks are
    /// exchanged.
    pub(super) unmoved: Mat<f64>,
    pub(super) unmoved_label: Vec<f64>,
    pub(super) shifts: Shifts,
}

/// What mixed rows are like.
pub(super) struct MixedRows {
    /// Variance of a mixed row of the label, and the part of it that is not noise.
    pub(super) label_spread: f64,
    pub(super) label_mixing_spread: f64,
    /// Cosines between mixed rows along the coordinates.
    pub(super) cosines: Mat<f64>,
}

/// The regression that products are for.
pub(super) struct Wanted<'a> {
    pub(super) label: usize,
    pub(super) features: &'a [usize],
    /// The label's party, and its variance.
    pub(super) home: usize,
    pub(super) label_variance: f64,
}

impl Products {
    pub(super) fn new(
        evidence: &Evidence<'_>,
        sample: &Sample,
        white: &Whitened,
        wanted: &Wanted<'_>,
    ) -> Self {
        let (people, d) = (&evidence.people, wanted.features.len());
        let shared =
            Mat::from_fn(d, d, |i, j| sample.scaled(people.shared[(white.party[i], white.party[j])]));
        let shared_with_label: Vec<f64> =
            white.party.iter().map(|&party| sample.scaled(people.shared[(party, wanted.home)])).collect();
        match &evidence.between {
            Between::Mixed(_) => Self::of_rows(evidence, sample, white, wanted, (shared, shared_with_label)),
            Between::Exchanged(blocks) => {
                Self::of_blocks(blocks, sample, white, wanted, (shared, shared_with_label))
            }
        }
    }

    /// How far H may go from what the label implies towards a singular matrix. Where noise is of
    /// known size, it may go as near as the noise is large: the truth is a singular matrix where
    /// the label follows from the features alone.
    pub(super) fn most_trusted(&self, white: &Whitened) -> f64 {
        if self.mixed.is_some() {
            return MOST_TRUSTED;
        }
        let d = self.crossed.nrows();
        let of_features = (0..d).flat_map(|i| (0..i).map(move |j| (i, j)));
        let of_features = of_features.filter(|&(i, j)| white.apart(i, j)).map(|place| self.variance[place]);
        let of_label = (0..d).filter(|&i| !white.own[i]).map(|i| self.with_label.variances[i]);
        let (sum, count) =
            of_features.chain(of_label).fold((0.0, 0.0), |(sum, count), v| (sum + v, count + 1.0));
        // About the largest eigenvalue of a matrix of such noise.
        let noise = (d as f64 * sum / f64::max(count, 1.0)).sqrt();
        1.0 - (NOISES_FROM_SINGULAR * noise).min(1.0 - MOST_TRUSTED)
    }

    /// Correlations of the mixed rows along the coordinates, with the noise removed from their
    /// scale, about the means of the people that parties have in common.
    fn of_rows(
        evidence: &Evidence<'_>,
        sample: &Sample,
        white: &Whitened,
        wanted: &Wanted<'_>,
        (shared, shared_with_label): (Mat<f64>, Vec<f64>),
    ) -> Self {
        let (k, d, people) = (sample.k, wanted.features.len(), &evidence.people);
        let (home, t) = (wanted.home, &white.spreads);
        let label_mixing_spread = sample.scaled(people.held[home]) / k / people.rates[wanted.label];
        let label_spread = label_mixing_spread + evidence.noise(wanted.label).powi(2) / wanted.label_variance;
        let rotated = &white.transform * sample.gram.submatrix(0, 0, d, d) * white.transform.transpose();
        let with_label = &white.transform * sample.gram.col(d).subrows(0, d);
        let lengths: Vec<f64> = (0..d).map(|i| rotated[(i, i)].sqrt()).collect();
        let cosines = Mat::from_fn(d, d, |i, j| rotated[(i, j)] / (lengths[i] * lengths[j]));
        let label_length = sample.gram[(d, d)].sqrt();
        let label_rows = LabelRows { home, length: label_length, spread: label_spread };
        let shifts = Shifts::new(evidence, sample, white, &lengths, &label_rows);
        let moved = |i: usize, j: usize| shifts.of(i, white.party[j]).times(shifts.of(j, white.party[i]));
        let moved_with_label = |i: usize| shifts.of(i, home).times(shifts.of_label(white.party[i]));
        let crossed = Mat::from_fn(d, d, |i, j| {
            if !white.apart(i, j) {
                return 0.0;
            }
            cosines[(i, j)] * (t[i] * t[j]).sqrt() * k / shared[(i, j)] - moved(i, j).mean
        });
        let unmoved = Mat::from_fn(d, d, |i, j| if white.apart(i, j) { moved(i, j).variance } else { 0.0 });
        let unmoved_label: Vec<f64> =
            (0..d).map(|i| if white.own[i] { 0.0 } else { moved_with_label(i).variance }).collect();
        let between = |i: usize| {
            let cosine = with_label[i] / (lengths[i] * label_length);
            cosine * (t[i] * label_spread).sqrt() * k / shared_with_label[i] - moved_with_label(i).mean
        };
        let error = |i: usize| {
            t[i] * label_spread * k / (shared_with_label[i] * shared_with_label[i]) + unmoved_label[i]
        };
        let part = |party: usize| people.shared[(party, home)] / people.held[party];
        Self {
            variance: Mat::from_fn(d, d, |i, j| {
                t[i] * t[j] * k / (shared[(i, j)] * shared[(i, j)]) + unmoved[(i, j)]
            }),
            crossed,
            with_label: Noisy {
                values: (0..d).map(between).collect(),
                variances: (0..d).map(error).collect(),
            },
            rows: k,
            lost: shifts.lost(white, home, part),
            mixed: Some(MixedRows { label_spread, label_mixing_spread, cosines }),
            shared,
            shared_with_label,
            unmoved,
            unmoved_label,
            shifts,
        }
    }

    /// Covariances along the coordinates, with the noise that was added to them.
    fn of_blocks(
        blocks: &Blocks,
        sample: &Sample,
        white: &Whitened,
        wanted: &Wanted<'_>,
        (shared, shared_with_label): (Mat<f64>, Vec<f64>),
    ) -> Self {
        let d = wanted.features.len();
        let noise = |one: usize, other: usize| sample.noise_of_mean(blocks.noise[(one, other)].powi(2));
        let found = &white.transform * sample.gram.submatrix(0, 0, d, d) * white.transform.transpose();
        let squares = Mat::from_fn(d, d, |i, j| white.transform[(i, j)].powi(2));
        let errors = Mat::from_fn(d, d, |i, j| noise(wanted.features[i], wanted.features[j]));
        let errors = &squares * errors * squares.transpose();
        let apart = |entry: f64, i: usize, j: usize| if white.apart(i, j) { entry } else { 0.0 };
        let with_label = &white.transform * sample.gram.col(d).subrows(0, d);
        let of_label = Col::from_fn(d, |i| noise(wanted.features[i], wanted.label));
        let of_label = &squares * of_label;
        let sd = wanted.label_variance.sqrt();
        Self {
            crossed: Mat::from_fn(d, d, |i, j| apart(found[(i, j)] / sample.k, i, j)),
            variance: Mat::from_fn(d, d, |i, j| apart(errors[(i, j)].max(LEAST_VARIANCE), i, j)),
            with_label: Noisy {
                values: (0..d).map(|i| with_label[i] / (sample.k * sd)).collect(),
                variances: (0..d)
                    .map(|i| (of_label[i] / wanted.label_variance).max(LEAST_VARIANCE))
                    .collect(),
            },
            rows: f64::INFINITY,
            lost: Col::zeros(d),
            mixed: None,
            shared,
            shared_with_label,
            unmoved: Mat::zeros(d, d),
            unmoved_label: vec![0.0; d],
            shifts: Shifts::NONE,
        }
    }
}
