//! Stages: the noised statistics that make up a release.
//!
//! A stage is a pure function from rows, and from published results of earlier stages, to integer
//! sums, with one noise scale a sum, such that replacing a subject changes the sums by at most the
//! stage's share of the budget: Σ(δᵢ/σᵢ)² ≤ μ_q². A [`Stage`] holds everything that is public about
//! it: how rows are encoded, what is summed, and the noise.

use crate::accounting::Share;
use crate::encoding::{Bins, Dot, EncodedRows, Q, RowEncoder, Sum, Values, add_counts};
use crate::mixing::{Mixing, SubjectDigest, add_bernoulli, add_buckets, add_sparse};
use crate::noise::{NOISED_SUM_LIMIT, Sigma, add_noise};
use pulp::Arch;
use rand_core::Rng;

/// What a stage sums over its rows. Where rows tell which presence groups they have, that is part
/// of it.
#[derive(Clone, Debug, PartialEq)]
pub enum Statistic {
    /// Every encoded column, then the squares of these columns; then how many rows have each
    /// presence group, if there are groups; then how many values lie in each cell of every numeric
    /// column, if they are counted.
    Standardise {
        /// The columns whose squares are summed.
        squares: Vec<usize>,
    },
    /// Every encoded column, then its square, then the products of pairs i < j in the order (0,1),
    /// (0,2), … With presence groups, every column over the rows that have each group, one group
    /// after the other, in the place of the columns; and at the end how many rows have each group,
    /// then how many have both of each pair.
    Moments,
    /// Rows mixed into k rows.
    Mixed {
        /// Which matrix mixes the subjects.
        mixing: Mixing,
        /// Number of mixed rows.
        k: u64,
    },
}

/// One noised statistic of a release.
#[derive(Clone, Debug, PartialEq)]
pub struct Stage {
    /// Its name in manifests and files.
    pub name: &'static str,
    /// Its part of the release's μ².
    pub share: Share,
    /// How rows are encoded.
    pub encoder: RowEncoder,
    /// What is summed.
    pub statistic: Statistic,
    /// The noise: runs of sums with the same scale, in order.
    pub noise: Vec<(usize, Sigma)>,
}

/// Rows whose products are summed at a time.
const MOMENT_ROWS: usize = 1 << 10;

/// Sums that stay integers in a manifest are kept within this; no true sum reaches it.
const INTEGER_SUM_LIMIT: i64 = i64::MAX;

impl Stage {
    /// How many sums it has.
    pub fn coordinates(&self) -> usize {
        let (width, groups) = (self.encoder.width(), self.encoder.groups());
        match &self.statistic {
            Statistic::Standardise { squares } => {
                let cells: usize = self.encoder.bins().iter().map(Bins::count).sum();
                width + squares.len() + groups + cells
            }
            Statistic::Moments => moment_count(width, groups),
            Statistic::Mixed { k, .. } => *k as usize * width,
        }
    }

    /// Noised sums are clamped to ± this.
    ///
    /// # Privacy
    /// A constant, so that clamping is post-processing: Theorem 3,
    /// docs/PRIVACY.md#what-a-release-costs.
    pub fn sum_limit(&self) -> i64 {
        match self.statistic {
            Statistic::Mixed { .. } => NOISED_SUM_LIMIT,
            Statistic::Standardise { .. } | Statistic::Moments => INTEGER_SUM_LIMIT,
        }
    }

    /// What a published value of an encoded column is the integer sum divided by: [`Self::scale`],
    /// or the weight of being there.
    pub fn scale_of(&self, column: usize) -> f64 {
        match self.encoder.weight() {
            Some(weight) if column + 1 == self.encoder.width() => f64::from(weight),
            _ => self.scale(),
        }
    }

    /// Q√w: a published value of the mixed rows is the integer sum divided by this.
    pub fn scale(&self) -> f64 {
        match self.statistic {
            Statistic::Mixed { mixing, k } => f64::from(Q) * (mixing.column_norm_squared(k) as f64).sqrt(),
            Statistic::Standardise { .. } | Statistic::Moments => 1.0,
        }
    }

    /// Standard deviation of the noise in the first sum, in published units, that of rounding
    /// included.
    pub fn noise_level(&self) -> f64 {
        ((self.noise[0].1.get() as f64).powi(2) + 1.0 / 12.0).sqrt() / self.scale()
    }

    /// Row and column of a sum, for people and for engines; `names` are those of the encoded
    /// columns.
    pub fn label<'a>(&self, coordinate: usize, names: &'a [String]) -> (String, &'a str) {
        let (width, groups) = (self.encoder.width(), self.encoder.groups());
        let of_group = |group: usize| names[self.encoder.first_of_group(group)].as_str();
        let pair = |at: usize, of: usize| pairs(of).nth(at).expect("the coordinate is one of the stage");
        let labelled = |row: &str, column: usize| (row.to_owned(), names[column].as_str());
        match &self.statistic {
            Statistic::Mixed { .. } => labelled(&(coordinate / width).to_string(), coordinate % width),
            Statistic::Standardise { .. } if coordinate < width => labelled("sum", coordinate),
            Statistic::Standardise { squares } => match coordinate - width {
                at if at < squares.len() => labelled("square", squares[at]),
                at if at < squares.len() + groups => ("present".to_owned(), of_group(at - squares.len())),
                at => {
                    let mut rest = at - squares.len() - groups;
                    for (bins, column) in self.encoder.bins().iter().zip(self.encoder.numeric()) {
                        if rest < bins.count() {
                            return labelled(&format!("cell {rest}"), column);
                        }
                        rest -= bins.count();
                    }
                    unreachable!("the coordinate is one of the stage")
                }
            },
            Statistic::Moments => {
                let sums = width * groups.max(1);
                let products = width * width.saturating_sub(1) / 2;
                match coordinate {
                    at if at < sums && groups == 0 => labelled("sum", at),
                    at if at < sums => labelled(&format!("sum with {}", of_group(at / width)), at % width),
                    at if at < sums + width => labelled("square", at - sums),
                    at if at < sums + width + products => {
                        let (i, j) = pair(at - sums - width, width);
                        labelled(&format!("times {}", names[i]), j)
                    }
                    at => match (at - sums - width - products, groups) {
                        (at, groups) if at < groups => ("present".to_owned(), of_group(at)),
                        (at, groups) => {
                            let (g, h) = pair(at - groups, groups);
                            (format!("present with {}", of_group(g)), of_group(h))
                        }
                    },
                }
            }
        }
    }

    /// Encodes a batch of subjects into `rows`.
    ///
    /// # Privacy
    /// As [`RowEncoder::encode`]: Lemma E, docs/PRIVACY.md#encoding, and Lemma B,
    /// docs/PRIVACY.md#ball.
    pub fn encode(&self, values: &[Values<'_>], count: usize, rows: &mut EncodedRows) {
        self.encoder.encode(values, count, rows);
    }

    /// Adds encoded rows to the sums. `first` is the position of the first one in the table;
    /// `subjects` may be empty unless rows are mixed.
    ///
    /// # Privacy
    /// Exact integer sums over rows, whose change by one subject Lemma S, Lemma L and Theorem M
    /// bound (docs/PRIVACY.md#calibrated, docs/PRIVACY.md#mixed-rows).
    pub fn accumulate(
        &self,
        subjects: &[SubjectDigest],
        first: u64,
        encoded: &EncodedRows,
        sums: &mut [i64],
    ) {
        self.accumulate_on(Arch::new(), subjects, first, encoded, sums);
    }

    fn accumulate_on(
        &self,
        arch: Arch,
        subjects: &[SubjectDigest],
        first: u64,
        encoded: &EncodedRows,
        sums: &mut [i64],
    ) {
        let (width, groups) = (self.encoder.width(), self.encoder.groups());
        match &self.statistic {
            Statistic::Standardise { squares } => {
                let (own, rest) = sums.split_at_mut(width);
                let (squared, rest) = rest.split_at_mut(squares.len());
                let (present, mut cells) = rest.split_at_mut(groups);
                for (column, sum) in own.iter_mut().enumerate() {
                    *sum += arch.dispatch(Sum(encoded.column(column)));
                }
                for (sum, &column) in squared.iter_mut().zip(squares) {
                    *sum += arch.dispatch(Dot(encoded.column(column), encoded.column(column)));
                }
                add_presence(arch, encoded, present);
                for (numeric, bins) in self.encoder.bins().iter().enumerate() {
                    let (own, others) = cells.split_at_mut(bins.count());
                    add_counts(encoded.cells(numeric), own);
                    cells = others;
                }
            }
            Statistic::Moments => add_moments(arch, encoded, groups, sums),
            Statistic::Mixed { mixing: Mixing::Buckets, k } => {
                assert_eq!(subjects.len(), encoded.count(), "one subject a row");
                encoded.each_tile(|first, rows| add_buckets(&subjects[first..], rows, width, *k, sums));
            }
            Statistic::Mixed { mixing: Mixing::Sparse, k } => {
                assert_eq!(subjects.len(), encoded.count(), "one subject a row");
                encoded.each_tile(|first, rows| add_sparse(&subjects[first..], rows, width, *k, sums));
            }
            Statistic::Mixed { mixing: Mixing::Bernoulli, k } => {
                add_bernoulli(subjects, &encoded.to_rows(), width, *k, sums);
            }
            Statistic::Mixed { mixing: Mixing::Identity, .. } => {
                let rows = encoded.to_rows();
                let start = first as usize * width;
                for (sum, &q) in sums[start..start + rows.len()].iter_mut().zip(&rows) {
                    *sum += i64::from(q);
                }
            }
        }
    }
}

impl Stage {
    /// Adds the stage's noise to its sums.
    ///
    /// # Privacy
    /// This is the Gaussian mechanism: Theorem 1, docs/PRIVACY.md#the-mechanism, with exact noise
    /// by Theorem 3, docs/PRIVACY.md#what-a-release-costs.
    pub fn add_noise<R: Rng + ?Sized>(&self, sums: &mut [i64], rng: &mut R) {
        let mut rest = sums;
        for &(count, sigma) in &self.noise {
            let (run, others) = rest.split_at_mut(count);
            add_noise(run, sigma, self.sum_limit(), rng);
            rest = others;
        }
        assert!(rest.is_empty(), "every sum has a noise scale");
    }
}

/// Sums, squares and products of so many columns, and counts of so many presence groups.
pub(crate) fn moment_count(width: usize, groups: usize) -> usize {
    let pairs = |of: usize| of * of.saturating_sub(1) / 2;
    width * groups.max(1) + width + pairs(width) + groups + pairs(groups)
}

/// Pairs i < j in the order of their products among the moments.
pub fn pairs(width: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..width).flat_map(move |i| (i + 1..width).map(move |j| (i, j)))
}

/// Adds how many rows have each presence group.
fn add_presence(arch: Arch, encoded: &EncodedRows, sums: &mut [i64]) {
    for (group, sum) in sums.iter_mut().enumerate() {
        *sum += arch.dispatch(Sum(encoded.presence(group)));
    }
}

fn add_moments(arch: Arch, encoded: &EncodedRows, groups: usize, sums: &mut [i64]) {
    let width = encoded.width();
    let (own, rest) = sums.split_at_mut(width * groups.max(1));
    let (squares, rest) = rest.split_at_mut(width);
    let (products, rest) = rest.split_at_mut(width * width.saturating_sub(1) / 2);
    let (present, both) = rest.split_at_mut(groups);
    // A few rows of all columns at a time stay in cache however many columns there are.
    for first in (0..encoded.count()).step_by(MOMENT_ROWS) {
        let tile = |column: &'_ [i32]| first..column.len().min(first + MOMENT_ROWS);
        let column = |j: usize| &encoded.column(j)[tile(encoded.column(j))];
        let presence = |g: usize| &encoded.presence(g)[tile(encoded.presence(g))];
        for j in 0..width {
            if groups == 0 {
                own[j] += arch.dispatch(Sum(column(j)));
            }
            for g in 0..groups {
                own[g * width + j] += arch.dispatch(Dot(column(j), presence(g)));
            }
            squares[j] += arch.dispatch(Dot(column(j), column(j)));
        }
        for (sum, (i, j)) in products.iter_mut().zip(pairs(width)) {
            *sum += arch.dispatch(Dot(column(i), column(j)));
        }
        for (g, sum) in present.iter_mut().enumerate() {
            *sum += arch.dispatch(Sum(presence(g)));
        }
        for (sum, (g, h)) in both.iter_mut().zip(pairs(groups)) {
            *sum += arch.dispatch(Dot(presence(g), presence(h)));
        }
    }
}

#[cfg(test)]
mod cohort_tests;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encoding::{Bounds, Encoder};
    use proptest::prelude::*;

    fn stage(width: usize, statistic: Statistic) -> Stage {
        let bounds = Bounds::new(-1.0, 1.0).unwrap();
        Stage {
            name: "test",
            share: Share::WHOLE,
            encoder: RowEncoder::plain(&vec![Encoder::Numeric(bounds); width]),
            statistic,
            noise: Vec::new(),
        }
    }

    proptest! {
        /// Sums of every vector unit are those of a plain loop.
        #[test]
        fn sums_are_those_of_a_plain_loop(
            width in 1usize..6,
            count in prop_oneof![0usize..40, 1020usize..1030],
            numbers in prop::collection::vec(-1.5f64..1.5, 6 * 1030),
        ) {
            let columns: Vec<&[f64]> = numbers.chunks(1030).take(width).map(|column| &column[..count]).collect();
            let values: Vec<Values<'_>> = columns.iter().map(|column| Values::Numbers(column)).collect();
            let squares: Vec<usize> = (0..width).rev().collect();
            for statistic in [Statistic::Standardise { squares: squares.clone() }, Statistic::Moments] {
                let stage = stage(width, statistic);
                let mut encoded = EncodedRows::default();
                stage.encode(&values, count, &mut encoded);
                let rows = encoded.to_rows();
                let products: Vec<(usize, usize)> = match stage.statistic {
                    Statistic::Moments => (0..width).map(|j| (j, j)).chain(pairs(width)).collect(),
                    _ => squares.iter().map(|&j| (j, j)).collect(),
                };
                let mut expected = vec![5; stage.coordinates()];
                for row in rows.chunks_exact(width) {
                    for (sum, &q) in expected.iter_mut().zip(row) {
                        *sum += i64::from(q);
                    }
                    for (sum, &(i, j)) in expected[width..].iter_mut().zip(&products) {
                        *sum += i64::from(row[i]) * i64::from(row[j]);
                    }
                }
                for arch in crate::vector::units() {
                    let mut sums = vec![5; stage.coordinates()];
                    stage.accumulate_on(arch, &[], 0, &encoded, &mut sums);
                    prop_assert_eq!(&sums, &expected);
                }
            }
        }
    }
}
