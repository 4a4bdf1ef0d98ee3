//! Multiples of fixed points by secret numbers, in constant time.
//!
//! Tables hold halves of their points, and [`encode`] doubles: a batch of doubled points has
//! encodings without an inversion each.

use curve25519_dalek::ristretto::{RistrettoBasepointTable, RistrettoPoint};
use curve25519_dalek::scalar::Scalar;
use curve25519_dalek::traits::Identity;
use subtle::{Choice, ConditionallySelectable, ConstantTimeEq};

use crate::generators::Generators;

/// A point whose secret multiples are wanted. All results are halves, for [`encode`].
pub(crate) struct Base(RistrettoBasepointTable);

impl Base {
    pub(crate) fn new(point: &RistrettoPoint) -> Self {
        Self(RistrettoBasepointTable::create(&(point * half())))
    }

    /// Half of `scalar` times the point.
    pub(crate) fn times(&self, scalar: &Scalar) -> RistrettoPoint {
        &self.0 * scalar
    }
}

fn half() -> Scalar {
    Scalar::from(2_u8).invert()
}

/// Encodings of the doubles of these points.
pub(crate) fn encode(halves: &[RistrettoPoint]) -> Vec<u8> {
    RistrettoPoint::double_and_compress_batch(halves)
        .iter()
        .flat_map(curve25519_dalek::ristretto::CompressedRistretto::to_bytes)
        .collect()
}

/// [`encode`] for points at hand.
pub(crate) fn encode_whole(points: &[RistrettoPoint]) -> Vec<u8> {
    let half = half();
    encode(&points.iter().map(|point| point * half).collect::<Vec<_>>())
}

/// The scalar of a secret integer.
pub(crate) fn integer(value: i64) -> Scalar {
    wide_integer(i128::from(value))
}

/// The scalar of a secret integer of 128 bits.
pub(crate) fn wide_integer(value: i128) -> Scalar {
    let size = Scalar::from(value.unsigned_abs());
    let negative = Choice::from((value >> 127 & 1) as u8);
    Scalar::conditional_select(&size, &-size, negative)
}

/// How secret integers of at most ±`bound` are cut into windows of four bits: a public matter.
#[derive(Clone, Copy)]
pub(crate) struct Windows {
    bound: u64,
    pub(crate) count: usize,
}

impl Windows {
    /// For entries of rows whose squared norm is at most `norm`.
    pub(crate) fn new(norm: u32) -> Self {
        let bound = u64::from(norm.isqrt());
        let bits = u64::BITS - (2 * bound).leading_zeros();
        Self { bound, count: bits.div_ceil(4) as usize }
    }

    /// Window `index` of `value` + bound, which is not negative.
    fn digit(self, value: i64, index: usize) -> u8 {
        let shifted = value.wrapping_add_unsigned(self.bound) as u64;
        (shifted >> (4 * index) & 15) as u8
    }

    /// What adding the bound to every value added.
    pub(crate) fn shift(self) -> Scalar {
        Scalar::from(self.bound)
    }
}

/// 0, 1, …, 15 times a point.
pub(crate) struct Multiples([RistrettoPoint; 16]);

impl Multiples {
    pub(crate) fn new(point: &RistrettoPoint) -> Self {
        let mut all = [RistrettoPoint::identity(); 16];
        for k in 1..16 {
            all[k] = all[k - 1] + point;
        }
        Self(all)
    }

    /// The multiple for window `index` of a secret value; all entries are read.
    pub(crate) fn select(&self, windows: Windows, value: i64, index: usize) -> RistrettoPoint {
        let digit = windows.digit(value, index);
        let mut chosen = self.0[0];
        for (k, multiple) in (0_u8..).zip(&self.0).skip(1) {
            chosen.conditional_assign(multiple, k.ct_eq(&digit));
        }
        chosen
    }
}

/// A point whose multiples by entries of rows are wanted. Results are halves, for [`encode`].
pub(crate) struct SmallBase {
    windows: Windows,
    multiples: Vec<Multiples>,
    shift: RistrettoPoint,
}

impl SmallBase {
    pub(crate) fn new(point: &RistrettoPoint, norm: u32) -> Self {
        let windows = Windows::new(norm);
        let point = point * half();
        let sixteen = Scalar::from(16_u8);
        let multiples = std::iter::successors(Some(point), |point| Some(point * sixteen))
            .take(windows.count)
            .map(|point| Multiples::new(&point))
            .collect();
        Self { windows, multiples, shift: -(point * windows.shift()) }
    }

    /// Half of `value` times the point.
    pub(crate) fn times(&self, value: i64) -> RistrettoPoint {
        self.multiples
            .iter()
            .enumerate()
            .fold(self.shift, |sum, (index, window)| sum + window.select(self.windows, value, index))
    }
}

/// The points that commitments to rows are made of: as many L as columns in a reply, none in an
/// offer.
pub(crate) struct Bases {
    pub(crate) g: Base,
    pub(crate) g2: Base,
    pub(crate) b: Base,
    pub(crate) g_small: SmallBase,
    /// L, then F: for w and p.
    pub(crate) lf: Vec<Base>,
    /// L, then F: for x and u.
    pub(crate) lf_small: Vec<SmallBase>,
}

impl Bases {
    pub(crate) fn new(generators: &Generators, norm: u32) -> Self {
        let lf = || generators.l.iter().chain(&generators.f);
        Self {
            g: Base::new(&generators.g),
            g2: Base::new(&generators.g2),
            b: Base::new(&generators.b),
            g_small: SmallBase::new(&generators.g, norm),
            lf: lf().map(Base::new).collect(),
            lf_small: lf().map(|point| SmallBase::new(point, norm)).collect(),
        }
    }

    /// Half of Σ entries·(L, F) + blind·B.
    pub(crate) fn commit(&self, entries: &[Scalar], blind: &Scalar) -> RistrettoPoint {
        let parts = self.lf.iter().zip(entries).map(|(base, entry)| base.times(entry));
        self.b.times(blind) + parts.sum::<RistrettoPoint>()
    }

    /// Half of Σ entries·(L, F) + blind·B, for entries of rows.
    pub(crate) fn commit_small(&self, entries: &[i64], blind: &Scalar) -> RistrettoPoint {
        let parts = self.lf_small.iter().zip(entries).map(|(base, &entry)| base.times(entry));
        self.b.times(blind) + parts.sum::<RistrettoPoint>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_multiples_are_multiples_at_both_ends_of_every_bound() {
        let point = Generators::new(1).l[0];
        for norm in [1_u32, 2, 3, 4, 63, 64, 65, 2560, 46_080, 1 << 20] {
            let bound = i64::from(norm.isqrt());
            let base = SmallBase::new(&point, norm);
            for value in [-bound, 1 - bound, -1, 0, 1, bound - 1, bound] {
                assert_eq!(
                    encode(&[base.times(value)]),
                    (point * integer(value)).compress().to_bytes(),
                    "{value} at {norm}"
                );
            }
        }
    }

    #[test]
    fn encodings_are_those_of_single_points_the_identity_among_them() {
        let g = Generators::new(0);
        let points = [g.g, RistrettoPoint::identity(), g.b, g.g2 - g.g2, g.f[0] + g.f[1]];
        let single: Vec<u8> = points.iter().flat_map(|point| point.compress().to_bytes()).collect();
        assert_eq!(encode_whole(&points), single);
        let base = Base::new(&g.b);
        let scalar = Scalar::from(12_345_u64);
        assert_eq!(encode(&[base.times(&scalar)]), (g.b * scalar).compress().to_bytes());
    }

    #[test]
    fn integers_become_scalars_with_their_sign() {
        assert_eq!(integer(-5) + integer(5), Scalar::ZERO);
        assert_eq!(wide_integer(i128::MIN) + Scalar::from(1_u128 << 127), Scalar::ZERO);
        assert_eq!(integer(i64::MAX), Scalar::from(i64::MAX as u64));
    }
}
