//! Small logarithms of points that are about to be published: baby steps and giant steps.

use std::collections::HashMap;

use curve25519_dalek::constants::RISTRETTO_BASEPOINT_POINT as G;
use curve25519_dalek::ristretto::RistrettoPoint;
use curve25519_dalek::scalar::Scalar;
use curve25519_dalek::traits::Identity;

use crate::bases::integer;

/// The most baby steps that are kept.
const MOST_STEPS: u64 = 1 << 20;

/// Giant steps whose encodings are computed at a time.
const BATCH: u64 = 64;

/// Finds v with P = v·G for |v| ≤ `range`.
pub(crate) struct Logarithms {
    range: u64,
    steps: u64,
    /// First bytes of the encoding of i·G → i.
    baby: HashMap<[u8; 8], u32>,
}

impl Logarithms {
    /// For `count` points.
    pub(crate) fn new(range: u64, count: usize) -> Self {
        let steps = (range.isqrt() * (count as u64).isqrt()).clamp(16, MOST_STEPS);
        let half = Scalar::from(2_u8).invert();
        let halves: Vec<RistrettoPoint> =
            std::iter::successors(Some(RistrettoPoint::identity()), |point| Some(point + G * half))
                .take(steps as usize)
                .collect();
        let baby = RistrettoPoint::double_and_compress_batch(&halves)
            .iter()
            .zip(0..)
            .map(|(encoding, i)| (prefix(encoding.as_bytes()), i))
            .collect();
        Self { range, steps, baby }
    }

    /// The logarithm, or nothing if it lies outside the range.
    pub(crate) fn find(&self, point: &RistrettoPoint) -> Option<i64> {
        let half = Scalar::from(2_u8).invert();
        let (middle, step) = (point * half, G * (Scalar::from(self.steps) * half));
        let (mut down, mut up) = (middle, middle);
        let last = self.range / self.steps + 1;
        let mut first = 0;
        while first <= last {
            // v = k·steps + i and v = i − k·steps, nearest to zero first.
            let mut halves = Vec::with_capacity(2 * BATCH as usize);
            for _ in 0..BATCH {
                halves.extend([down, up]);
                down -= step;
                up += step;
            }
            let encodings = RistrettoPoint::double_and_compress_batch(&halves);
            for (pair, k) in encodings.chunks(2).zip(first..) {
                for (encoding, sign) in pair.iter().zip([1, -1]) {
                    let Some(&i) = self.baby.get(&prefix(encoding.as_bytes())) else { continue };
                    let value = sign * (k * self.steps) as i64 + i64::from(i);
                    // Prefixes may agree by chance.
                    if value.unsigned_abs() <= self.range && G * integer(value) == *point {
                        return Some(value);
                    }
                }
            }
            first += BATCH;
        }
        None
    }
}

fn prefix(encoding: &[u8; 32]) -> [u8; 8] {
    *encoding.first_chunk().expect("32 bytes begin with 8")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithms_are_found_within_the_range_and_nowhere_else() {
        for (range, count) in [(2, 1), (100, 9), (1_000_003, 4)] {
            let logarithms = Logarithms::new(range, count);
            let last = range as i64;
            for value in [0, 1, -1, 2, 15, 16, 17, -15, -16, -17, last - 1, last, 1 - last, -last] {
                let inside = value.unsigned_abs() <= range;
                assert_eq!(logarithms.find(&(G * integer(value))), inside.then_some(value));
            }
            assert_eq!(logarithms.find(&(G * integer(last + 1))), None);
            assert_eq!(logarithms.find(&(G * integer(-1 - last))), None);
        }
    }
}
