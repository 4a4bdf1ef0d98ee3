//! The product of the sparse matrix with encoded rows, in exact integers.

use super::SubjectDigest;

/// Adds to `sums` the rows of these subjects, each with its sign in its row of the sparse matrix.
pub fn add_sparse(subjects: &[SubjectDigest], rows: &[i32], width: usize, k: u64, sums: &mut [i64]) {
    for (subject, row) in subjects.iter().zip(rows.chunks_exact(width)) {
        let (bucket, sign) = subject.sparse_entry(k);
        let start = bucket as usize * width;
        for (sum, &q) in sums[start..start + width].iter_mut().zip(row) {
            *sum += sign * i64::from(q);
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
            let mut sums = vec![7; k as usize * width];
            add_sparse(&subjects, rows, width, k, &mut sums);
            let expected = reference_product(&subjects, rows, width, k, |subject, i| {
                let (bucket, sign) = subject.sparse_entry(k);
                if bucket == i { sign } else { 0 }
            });
            prop_assert!(sums.iter().zip(&expected).all(|(sum, expected)| sum - 7 == *expected));
        }
    }
}
