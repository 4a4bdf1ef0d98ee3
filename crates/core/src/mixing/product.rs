//! The product of the mixing matrix with encoded rows, in exact integers.
//!
//! Rows and sums are row-major with `width` columns: `rows` has one row a subject, `sums` one row a mixed row.

use super::SubjectDigest;

/// Largest encoded value in size: what [`crate::encoding::Ball::project`] accepts.
const LARGEST: i64 = 1 << 20;

/// Rows whose sums are kept in 32 bits before they are added to the 64-bit sums.
const BLOCK: usize = 1 << 10;

const _: () =
    assert!(BLOCK as i64 * LARGEST <= i32::MAX as i64 + 1, "a block of rows cannot overflow 32 bits");

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

/// Adds to `sums` the rows of these subjects, with their signs in every row of the Bernoulli matrix.
pub fn add_bernoulli(subjects: &[SubjectDigest], rows: &[i32], width: usize, k: u64, sums: &mut [i64]) {
    let k = k as usize;
    let mut words = vec![0; k.div_ceil(64)];
    let mut flips = vec![0_i32; k];
    // Column by column, so that the inner loop runs over consecutive sums.
    let mut by_column = vec![0_i32; k * width];
    let add_row = vector::add_row();
    for (subjects, rows) in subjects.chunks(BLOCK).zip(rows.chunks(BLOCK * width)) {
        by_column.fill(0);
        for (subject, row) in subjects.iter().zip(rows.chunks_exact(width)) {
            debug_assert!(
                row.iter().all(|&q| i64::from(q).abs() <= LARGEST),
                "the row was pulled into its ball"
            );
            subject.bernoulli_signs(&mut words);
            add_row(&words, &mut flips, row, &mut by_column);
        }
        for (j, column) in by_column.chunks_exact(k).enumerate() {
            for (i, &sum) in column.iter().enumerate() {
                sums[i * width + j] += i64::from(sum);
            }
        }
    }
}

/// The inner loop, compiled for each vector unit and chosen when the program runs.
#[allow(unsafe_code)]
mod vector {
    /// Adds a row with the signs in `words` to sums kept column by column; `flips` is scratch of length k.
    pub(super) type AddRow = fn(&[u64], &mut [i32], &[i32], &mut [i32]);

    #[expect(clippy::inline_always, reason = "that is what compiles it for each vector unit")]
    #[inline(always)]
    fn plain(words: &[u64], flips: &mut [i32], row: &[i32], by_column: &mut [i32]) {
        // 0 for +, −1 (all bits set) for −: (q ^ flip) − flip is q with the sign.
        for (flips, word) in flips.chunks_mut(64).zip(words) {
            for (i, flip) in flips.iter_mut().enumerate() {
                *flip = (word >> i & 1) as i32 - 1;
            }
        }
        for (column, &q) in by_column.chunks_exact_mut(flips.len()).zip(row) {
            for (sum, &flip) in column.iter_mut().zip(&*flips) {
                *sum = sum.wrapping_add((q ^ flip).wrapping_sub(flip));
            }
        }
    }

    fn portable(words: &[u64], flips: &mut [i32], row: &[i32], by_column: &mut [i32]) {
        plain(words, flips, row, by_column);
    }

    /// Every version that this processor can run, the fastest first.
    pub(super) fn versions() -> Vec<AddRow> {
        let mut versions: Vec<AddRow> = Vec::new();
        #[cfg(target_arch = "x86_64")]
        {
            #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
            fn avx512(words: &[u64], flips: &mut [i32], row: &[i32], by_column: &mut [i32]) {
                plain(words, flips, row, by_column);
            }
            #[target_feature(enable = "avx2")]
            fn avx2(words: &[u64], flips: &mut [i32], row: &[i32], by_column: &mut [i32]) {
                plain(words, flips, row, by_column);
            }
            let has_avx512 = is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512vl");
            if has_avx512 {
                // SAFETY: the processor has the features that the function is compiled for.
                versions.push(|words, flips, row, sums| unsafe { avx512(words, flips, row, sums) });
            }
            if is_x86_feature_detected!("avx2") {
                // SAFETY: the processor has the features that the function is compiled for.
                versions.push(|words, flips, row, sums| unsafe { avx2(words, flips, row, sums) });
            }
        }
        versions.push(portable);
        versions
    }

    /// The fastest version for this processor.
    pub(super) fn add_row() -> AddRow {
        versions()[0]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mixing::MixingKey;
    use proptest::prelude::*;

    /// The product by its definition.
    fn plain(
        subjects: &[SubjectDigest],
        rows: &[i32],
        width: usize,
        k: u64,
        entry: impl Fn(&SubjectDigest, u64) -> i64,
    ) -> Vec<i64> {
        let mut sums = vec![0; k as usize * width];
        for (subject, row) in subjects.iter().zip(rows.chunks_exact(width)) {
            for i in 0..k {
                for (j, &q) in row.iter().enumerate() {
                    sums[i as usize * width + j] += entry(subject, i) * i64::from(q);
                }
            }
        }
        sums
    }

    fn subjects(count: usize) -> Vec<SubjectDigest> {
        let key = MixingKey::new([5; 32]);
        (0..count).map(|id| key.subject(id.to_string().as_bytes())).collect()
    }

    proptest! {
        #[test]
        fn products_are_those_of_the_definition(
            count in 0usize..40,
            width in 1usize..5,
            k in 1u64..200,
            values in prop::collection::vec(-(1i32 << 20)..=1 << 20, 200),
        ) {
            let subjects = subjects(count);
            let rows = &values[..count * width];
            let mut sums = vec![7; k as usize * width];
            add_sparse(&subjects, rows, width, k, &mut sums);
            let expected = plain(&subjects, rows, width, k, |subject, i| {
                let (bucket, sign) = subject.sparse_entry(k);
                if bucket == i { sign } else { 0 }
            });
            prop_assert!(sums.iter().zip(&expected).all(|(sum, expected)| sum - 7 == *expected));

            let mut sums = vec![-3; k as usize * width];
            add_bernoulli(&subjects, rows, width, k, &mut sums);
            let expected = plain(&subjects, rows, width, k, |subject, i| {
                let mut words = vec![0; k.div_ceil(64) as usize];
                subject.bernoulli_signs(&mut words);
                if words[i as usize / 64] >> (i % 64) & 1 == 1 { 1 } else { -1 }
            });
            prop_assert!(sums.iter().zip(&expected).all(|(sum, expected)| sum + 3 == *expected));
        }
    }

    #[test]
    fn every_vector_unit_gives_the_same_sums() {
        for k in [1, 63, 64, 65, 200, 1027] {
            let words: Vec<u64> =
                (0..(k as u64).div_ceil(64)).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
            let row = [5, -(1 << 20), 0, 1 << 20];
            let sums = |add_row: vector::AddRow| {
                let mut sums: Vec<i32> = (0..k as i32 * 4).collect();
                add_row(&words, &mut vec![9; k], &row, &mut sums);
                sums
            };
            let versions = vector::versions();
            let expected = sums(versions[versions.len() - 1]);
            assert!(versions.into_iter().all(|version| sums(version) == expected), "{k}");
        }
    }

    #[test]
    fn blocks_of_the_largest_values_do_not_overflow() {
        let count = 2 * BLOCK + 3;
        let subjects = vec![MixingKey::new([5; 32]).subject(b"same"); count];
        let rows = vec![1 << 20; count];
        let mut sums = vec![0; 2];
        add_bernoulli(&subjects, &rows, 1, 2, &mut sums);
        assert!(sums.iter().all(|sum| sum.unsigned_abs() == (count as u64) << 20));
    }
}
