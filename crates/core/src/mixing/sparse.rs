//! The products of the sparse matrix and of that of buckets with encoded rows, in exact integers.

use pulp::{Arch, NullaryFnOnce};

use super::SubjectDigest;

/// Adds to `sums` the rows of these subjects, each with its sign in its row of the sparse matrix.
///
/// # Privacy
/// The sum Σ b qᵀ of Theorem M, docs/PRIVACY.md#mixed-rows, in exact integers.
pub fn add_sparse(subjects: &[SubjectDigest], rows: &[i32], width: usize, k: u64, sums: &mut [i64]) {
    Arch::new().dispatch(AddSparse { signed: true, subjects, rows, width, k, sums });
}

/// Adds to `sums` the rows of these subjects, each to its bucket.
///
/// # Privacy
/// The sum Σ e_h v of Theorem M′, docs/PRIVACY.md#mixed-rows-and-presence-stage-4, in exact
/// integers.
pub fn add_buckets(subjects: &[SubjectDigest], rows: &[i32], width: usize, k: u64, sums: &mut [i64]) {
    Arch::new().dispatch(AddSparse { signed: false, subjects, rows, width, k, sums });
}

struct AddSparse<'a> {
    signed: bool,
    subjects: &'a [SubjectDigest],
    rows: &'a [i32],
    width: usize,
    k: u64,
    sums: &'a mut [i64],
}

impl NullaryFnOnce for AddSparse<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        for (subject, row) in self.subjects.iter().zip(self.rows.chunks_exact(self.width)) {
            let (bucket, sign) = subject.sparse_entry(self.k);
            let start = bucket as usize * self.width;
            // 0 for +, −1 (all bits set) for −: (q ^ flip) − flip is q with the sign.
            let flip = if self.signed { (sign >> 1) as i32 } else { 0 };
            for (sum, &q) in self.sums[start..start + self.width].iter_mut().zip(row) {
                // Overflow is excluded when the study is checked: n·C < 2⁶².
                *sum = sum.wrapping_add(i64::from((q ^ flip).wrapping_sub(flip)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mixing::{MixingKey, reference_product};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_product_is_that_of_the_definition(
            count in 0usize..60,
            width in 1usize..12,
            k in 1u64..200,
            values in prop::collection::vec(-(1i32 << 20)..=1 << 20, 12 * 60),
        ) {
            let key = MixingKey::new([5; 32]);
            let subjects: Vec<SubjectDigest> = (0..count).map(|id| key.subject(id.to_string().as_bytes())).collect();
            let rows = &values[..count * width];
            for signed in [true, false] {
                let expected = reference_product(&subjects, rows, width, k, |subject, i| {
                    let (bucket, sign) = subject.sparse_entry(k);
                    if bucket != i { 0 } else if signed { sign } else { 1 }
                });
                for arch in crate::vector::units() {
                    let mut sums = vec![7; k as usize * width];
                    arch.dispatch(AddSparse { signed, subjects: &subjects, rows, width, k, sums: &mut sums });
                    prop_assert!(sums.iter().zip(&expected).all(|(sum, expected)| sum - 7 == *expected));
                }
            }
        }
    }
}
