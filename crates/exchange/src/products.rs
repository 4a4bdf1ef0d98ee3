//! Sums of encrypted rows times own rows, in constant time: docs/EXCHANGE.md#reply, outputs.

use curve25519_dalek::ristretto::RistrettoPoint;
use curve25519_dalek::scalar::Scalar;
use curve25519_dalek::traits::{Identity, MultiscalarMul};
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use crate::bases::{Multiples, Windows};

/// Σ_s y_{s,l}·c for every ciphertext point of a row and every own column l.
///
/// Own entries are shifted to be non-negative and cut into windows of four bits, as many as the
/// public bound needs; each window of each entry costs one addition whatever its value.
#[derive(Zeroize, ZeroizeOnDrop)]
pub(crate) struct Products {
    #[zeroize(skip)]
    windows: Windows,
    #[zeroize(skip)]
    columns: usize,
    /// For every point, own column and window.
    sums: Vec<RistrettoPoint>,
    /// For every point, the sum over rows.
    totals: Vec<RistrettoPoint>,
}

impl Products {
    /// For rows of `points` ciphertext points and `columns` own columns within `norm`.
    pub(crate) fn new(points: usize, columns: usize, norm: u32) -> Self {
        let windows = Windows::new(norm);
        Self {
            windows,
            columns,
            sums: vec![RistrettoPoint::identity(); points * columns * windows.count],
            totals: vec![RistrettoPoint::identity(); points],
        }
    }

    pub(crate) fn partial(&self) -> Self {
        Self {
            windows: self.windows,
            columns: self.columns,
            sums: vec![RistrettoPoint::identity(); self.sums.len()],
            totals: vec![RistrettoPoint::identity(); self.totals.len()],
        }
    }

    /// Adds a row: its ciphertext points, and the own entries y.
    pub(crate) fn add(&mut self, points: &[RistrettoPoint], y: &[i64]) {
        let each = self.columns * self.windows.count;
        for ((point, sums), total) in points.iter().zip(self.sums.chunks_mut(each)).zip(&mut self.totals) {
            *total += point;
            let multiples = Multiples::new(point);
            for (sums, &y) in sums.chunks_mut(self.windows.count).zip(y) {
                for (index, sum) in sums.iter_mut().enumerate() {
                    *sum += multiples.select(self.windows, y, index);
                }
            }
        }
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.sums.iter_mut().zip(&other.sums).for_each(|(sum, other)| *sum += other);
        self.totals.iter_mut().zip(&other.totals).for_each(|(sum, other)| *sum += other);
    }

    /// For every own column, the sum of every point: at `l·points + p`.
    pub(crate) fn finish(&self) -> Zeroizing<Vec<RistrettoPoint>> {
        let sixteen = Scalar::from(16_u8);
        let sum = |l: usize, p: usize| {
            let windows = &self.sums[(p * self.columns + l) * self.windows.count..][..self.windows.count];
            let shifted =
                windows.iter().rev().fold(RistrettoPoint::identity(), |sum, window| sum * sixteen + window);
            shifted - self.totals[p] * self.windows.shift()
        };
        let each = (0..self.columns).flat_map(|l| (0..self.totals.len()).map(move |p| (l, p)));
        Zeroizing::new(each.map(|(l, p)| sum(l, p)).collect())
    }
}

/// The challenges γ of the outputs: d_i + 2 for every own column.
pub(crate) struct Gamma {
    pub(crate) each: usize,
    pub(crate) scalars: Vec<Scalar>,
}

impl Gamma {
    /// Σ_lγ_{l,p}·f_l for every ciphertext point p, where f are secret masks or public responses.
    pub(crate) fn combine<'a>(&'a self, f: &'a [Scalar]) -> impl Iterator<Item = Scalar> + 'a {
        (0..self.each).map(move |p| f.iter().zip(self.of_point(p)).map(|(f, gamma)| gamma * f).sum())
    }

    fn of_point(&self, p: usize) -> impl Iterator<Item = &Scalar> {
        self.scalars.iter().skip(p).step_by(self.each)
    }
}

/// Σ scalars·points for secret scalars, in constant time.
pub(crate) fn secret_sum(scalars: &[Scalar], points: &[RistrettoPoint]) -> RistrettoPoint {
    RistrettoPoint::multiscalar_mul(scalars, points)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bases::integer;
    use crate::generators::Generators;

    #[test]
    fn products_are_sums_of_multiples_at_both_ends_of_the_bound() {
        let g = Generators::new(2);
        let points = [[g.g, g.l[0]], [g.g2, g.l[1]], [g.b, g.f[0]]];
        for norm in [2_u32, 2560, 1 << 20] {
            let bound = i64::from(norm.isqrt());
            let rows = [[bound, -bound, 0], [1 - bound, 0, bound], [-1, 1, bound / 2]];
            let mut products = Products::new(2, 3, norm);
            let mut other = products.partial();
            products.add(&points[0], &rows[0]);
            products.add(&points[1], &rows[1]);
            other.add(&points[2], &rows[2]);
            products.merge(&other);
            let expected: Vec<RistrettoPoint> = (0..3)
                .flat_map(|l| {
                    (0..2).map(move |p| {
                        rows.iter().zip(&points).map(|(row, points)| points[p] * integer(row[l])).sum()
                    })
                })
                .collect();
            assert_eq!(*products.finish(), expected);
        }
    }
}
