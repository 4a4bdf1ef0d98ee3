//! The ball that bounds one subject's row (docs/PRIVACY.md#ball).

use super::{EncodingError, Q, truncate};

/// Largest squared row norm, in units of 1/Q², for which [`Ball::project`] is proved exact.
///
/// # Privacy
/// C < 2⁵⁰: Lemma B, docs/PRIVACY.md#ball.
pub const MAX_NORM_SQUARED: u64 = (1 << 50) - 1;

/// Largest size of a scaled value.
///
/// # Privacy
/// Half of what Lemma B allows, so that a row that is moved keeps within it (docs/PRIVACY.md#ball).
pub const LARGEST_SCALED: i32 = 64 * Q;

/// The ball that holds every subject's encoded row: Σq² ≤ C.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ball {
    norm_squared: u64,
}

impl Ball {
    /// The ball with squared radius `norm_squared` in units of 1/Q².
    pub fn new(norm_squared: u64) -> Result<Self, EncodingError> {
        if norm_squared == 0 || norm_squared > MAX_NORM_SQUARED {
            return Err(EncodingError::Norm);
        }
        Ok(Self { norm_squared })
    }

    /// The ball that no row of `columns` numeric or categorical columns can leave: R² = `columns`.
    ///
    /// # Privacy
    /// C = cQ² of Lemma E, docs/PRIVACY.md#encoding.
    pub fn of_columns(columns: usize) -> Result<Self, EncodingError> {
        let squared = (columns as u64).checked_mul(u64::from(Q.unsigned_abs()).pow(2));
        Self::new(squared.ok_or(EncodingError::Norm)?)
    }

    /// The ball of radius `radius` in units of encoded values; C = ⌊(QR)²⌋ as computed is what
    /// counts from here on.
    pub fn of_radius(radius: f64) -> Result<Self, EncodingError> {
        let scaled = radius * f64::from(Q);
        let squared = (scaled * scaled).floor();
        if !(radius > 0.0 && squared >= 1.0 && squared <= MAX_NORM_SQUARED as f64) {
            return Err(EncodingError::Norm);
        }
        Self::new(squared as u64)
    }

    /// C: the squared radius in units of 1/Q².
    pub fn norm_squared(self) -> u64 {
        self.norm_squared
    }

    /// Shrinks a row towards 0 until it lies in the ball; leaves a row that does.
    ///
    /// # Privacy
    /// Afterwards Σq² ≤ C exactly, for every input with |q| ≤ 2²¹ and at most 2²⁰ entries: Lemma B,
    /// docs/PRIVACY.md#ball.
    pub fn project(self, row: &mut [i32]) {
        let norm_squared: u64 = row.iter().map(|&q| u64::from(q.unsigned_abs()).pow(2)).sum();
        if norm_squared > self.norm_squared {
            let factor = (self.norm_squared as f64 / norm_squared as f64).sqrt();
            for q in row {
                *q = truncate(f64::from(*q) * factor);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::EncodedRows;
    use super::*;
    use proptest::prelude::*;

    fn norm_squared(row: &[i32]) -> u64 {
        row.iter().map(|&q| u64::from(q.unsigned_abs()).pow(2)).sum()
    }

    #[test]
    fn ball_radii_follow_the_columns() {
        assert_eq!(Ball::of_columns(3).unwrap().norm_squared(), 3 << 28);
        assert_eq!(Ball::of_radius(1.0).unwrap().norm_squared(), 1 << 28);
        for radius in [0.0, -1.0, f64::NAN, 1e-9, 4096.0] {
            assert_eq!(Ball::of_radius(radius), Err(EncodingError::Norm), "{radius}");
        }
        assert_eq!(Ball::of_columns(1 << 23), Err(EncodingError::Norm));
    }

    /// A row as releases pull it in: as the last of a batch, on every vector unit.
    fn projected_in_batches(row: &[i32], c: u64) -> Vec<Vec<i32>> {
        let project = |arch| {
            let mut rows = EncodedRows::default();
            rows.resize(21, row.len(), 0, 0);
            for (column, &q) in row.iter().enumerate() {
                rows.column_mut(column)[20] = q;
            }
            rows.project(arch, Ball::new(c).unwrap());
            rows.to_rows()[20 * row.len()..].to_vec()
        };
        crate::vector::units().into_iter().map(project).collect()
    }

    proptest! {
        #[test]
        fn no_row_leaves_the_ball(mut row in prop::collection::vec(-(128 * Q)..=128 * Q, 1..40), c in 1u64..MAX_NORM_SQUARED) {
            let before = row.clone();
            Ball::new(c).unwrap().project(&mut row);
            prop_assert!(norm_squared(&row) <= c);
            prop_assert!(norm_squared(&before) > c || row == before);
            prop_assert!(projected_in_batches(&before, c).iter().all(|projected| *projected == row));
        }

        /// Rows just outside the ball are where rounding could go wrong.
        #[test]
        fn rows_just_outside_are_pulled_in(row in prop::collection::vec(-(128 * Q)..=128 * Q, 1..40), below in 1u64..3) {
            let norm = norm_squared(&row);
            prop_assume!(norm > below);
            let mut projected = row.clone();
            Ball::new(norm - below).unwrap().project(&mut projected);
            prop_assert!(norm_squared(&projected) <= norm - below);
            prop_assert!(projected_in_batches(&row, norm - below).iter().all(|other| *other == projected));
        }
    }
}
