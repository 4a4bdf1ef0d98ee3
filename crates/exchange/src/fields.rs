//! Reading the fields of a message: canonical encodings only.

use curve25519_dalek::ristretto::{CompressedRistretto, RistrettoPoint};
use curve25519_dalek::scalar::Scalar;

use crate::error::Check;

/// Opened sums lie strictly between ±2^121.
const SUM_LIMIT: u128 = 1 << 121;

/// The fields of a section, in order.
pub(crate) struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    fn take<const N: usize>(&mut self) -> [u8; N] {
        let (taken, rest) = self.0.split_first_chunk().expect("sections have the length of their fields");
        self.0 = rest;
        *taken
    }

    /// *point*.
    pub(crate) fn point(&mut self) -> Result<RistrettoPoint, Check> {
        CompressedRistretto(self.take()).decompress().ok_or(Check::Point)
    }

    pub(crate) fn points(&mut self, count: usize) -> Result<Vec<RistrettoPoint>, Check> {
        (0..count).map(|_| self.point()).collect()
    }

    /// *scalar*.
    pub(crate) fn scalar(&mut self) -> Result<Scalar, Check> {
        Option::from(Scalar::from_canonical_bytes(self.take())).ok_or(Check::Scalar)
    }

    pub(crate) fn scalars(&mut self, count: usize) -> Result<Vec<Scalar>, Check> {
        (0..count).map(|_| self.scalar()).collect()
    }

    /// *sum too large*.
    pub(crate) fn sum(&mut self) -> Result<i128, Check> {
        let sum = i128::from_le_bytes(self.take());
        if sum.unsigned_abs() < SUM_LIMIT { Ok(sum) } else { Err(Check::SumTooLarge) }
    }

    pub(crate) fn sums(&mut self, count: usize) -> Result<Vec<i128>, Check> {
        (0..count).map(|_| self.sum()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodings_that_are_not_canonical_are_refused() {
        // ℓ, which is zero, and p, which is zero: both have another encoding.
        let order = (-Scalar::ONE).to_bytes();
        let mut plus_one = order;
        plus_one[0] += 1;
        assert!(Fields::new(&order).scalar().is_ok());
        assert_eq!(Fields::new(&plus_one).scalar(), Err(Check::Scalar));
        let mut prime = [0xFF; 32];
        prime[0] = 0xED;
        prime[31] = 0x7F;
        assert_eq!(Fields::new(&prime).point(), Err(Check::Point));
        assert!(Fields::new(&[0; 32]).point().is_ok());
        let mut negative = [0; 32];
        negative[0] = 1;
        assert_eq!(Fields::new(&negative).point(), Err(Check::Point));
        assert_eq!(Fields::new(&[0xFF; 32]).point(), Err(Check::Point));
    }

    #[test]
    fn sums_end_below_the_limit_on_both_sides() {
        let read = |sum: i128| Fields::new(&sum.to_le_bytes()).sum();
        for sum in [(1_i128 << 121) - 1, 1 - (1_i128 << 121), 0] {
            assert_eq!(read(sum), Ok(sum));
        }
        for sum in [1_i128 << 121, -(1_i128 << 121), i128::MIN, i128::MAX] {
            assert_eq!(read(sum), Err(Check::SumTooLarge));
        }
    }
}
