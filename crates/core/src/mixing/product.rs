//! The product of the mixing matrix with encoded rows, in exact integers.
//!
//! Rows and sums are row-major with `width` columns: `rows` has one row a subject, `sums` one row a mixed row.

use super::SubjectDigest;

/// Largest encoded value in size: what [`crate::encoding::Ball::project`] accepts.
const LARGEST: i64 = 1 << 20;

/// Subjects whose sums are kept in 32 bits before they are added to the 64-bit sums; their signs fit the second-level
/// cache.
const BLOCK: usize = 1 << 9;

/// Mixed rows worked on at a time: their sums fit the first-level cache.
const MIXED: usize = 1 << 9;

/// Subjects added at a time: each sum is loaded and stored once for all of them.
const GROUP: usize = 4;

const _: () = assert!(BLOCK as i64 * LARGEST <= i32::MAX as i64, "a block of rows cannot overflow 32 bits");
const _: () = assert!(
    MIXED.is_multiple_of(64) && BLOCK.is_multiple_of(GROUP),
    "blocks are made of whole words and groups"
);

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
    add_bernoulli_with(vector::fastest(), subjects, rows, width, k, sums);
}

fn add_bernoulli_with(
    add_group: vector::AddGroup,
    subjects: &[SubjectDigest],
    rows: &[i32],
    width: usize,
    k: u64,
    sums: &mut [i64],
) {
    let k = k as usize;
    let words_each = k.div_ceil(64);
    let mut words = vec![0; BLOCK * words_each];
    let mut flips = vec![0_i32; GROUP * MIXED];
    // Column by column, so that the inner loop runs over consecutive sums.
    let mut by_column = vec![0_i32; MIXED * width];
    // A last group that is not full has rows of zeros.
    let mut padded = vec![0_i32; BLOCK * width];
    for (subjects, rows) in subjects.chunks(BLOCK).zip(rows.chunks(BLOCK * width)) {
        debug_assert!(
            rows.iter().all(|&q| i64::from(q).abs() <= LARGEST),
            "rows were pulled into their ball"
        );
        for (subject, words) in subjects.iter().zip(words.chunks_exact_mut(words_each)) {
            subject.bernoulli_signs(words);
        }
        let used = subjects.len().next_multiple_of(GROUP);
        padded.fill(0);
        padded[..rows.len()].copy_from_slice(rows);
        for first in (0..k).step_by(MIXED) {
            let count = MIXED.min(k - first);
            let by_column = &mut by_column[..count * width];
            by_column.fill(0);
            for group in (0..used).step_by(GROUP) {
                let signs = vector::Signs {
                    words: &words[group * words_each..],
                    each: words_each,
                    first: first / 64,
                };
                let group = &padded[group * width..(group + GROUP) * width];
                add_group(signs, &mut flips[..GROUP * count], group, by_column);
            }
            for (j, column) in by_column.chunks_exact(count).enumerate() {
                for (i, &sum) in column.iter().enumerate() {
                    sums[(first + i) * width + j] += i64::from(sum);
                }
            }
        }
    }
}

/// The inner loop, compiled for each vector unit and chosen when the program runs.
#[allow(unsafe_code)]
mod vector {
    use super::GROUP;

    /// Signs of a group of subjects: each has `each` words, of which those from `first` on are wanted.
    #[derive(Clone, Copy)]
    pub(super) struct Signs<'a> {
        pub(super) words: &'a [u64],
        pub(super) each: usize,
        pub(super) first: usize,
    }

    /// Adds a group of rows with their signs to sums kept column by column; `flips` is scratch, one a subject and sum.
    pub(super) type AddGroup = fn(Signs<'_>, &mut [i32], &[i32], &mut [i32]);

    #[expect(clippy::inline_always, reason = "that is what compiles it for each vector unit")]
    #[inline(always)]
    fn plain(signs: Signs<'_>, flips: &mut [i32], rows: &[i32], by_column: &mut [i32]) {
        let count = flips.len() / GROUP;
        let width = rows.len() / GROUP;
        // 0 for +, −1 (all bits set) for −: (q ^ flip) − flip is q with the sign.
        for (subject, flips) in flips.chunks_exact_mut(count).enumerate() {
            let words = &signs.words[subject * signs.each + signs.first..];
            for (flips, word) in flips.chunks_mut(64).zip(words) {
                for (i, flip) in flips.iter_mut().enumerate() {
                    *flip = (word >> i & 1) as i32 - 1;
                }
            }
        }
        let (a, rest) = flips.split_at(count);
        let (b, rest) = rest.split_at(count);
        let (c, d) = rest.split_at(count);
        for (j, column) in by_column.chunks_exact_mut(count).enumerate() {
            let q = [rows[j], rows[width + j], rows[2 * width + j], rows[3 * width + j]];
            let signed = |q: i32, flip: i32| (q ^ flip).wrapping_sub(flip);
            for ((((sum, &a), &b), &c), &d) in column.iter_mut().zip(a).zip(b).zip(c).zip(d) {
                let pair = signed(q[0], a).wrapping_add(signed(q[1], b));
                let other = signed(q[2], c).wrapping_add(signed(q[3], d));
                *sum = sum.wrapping_add(pair.wrapping_add(other));
            }
        }
    }

    fn portable(signs: Signs<'_>, flips: &mut [i32], rows: &[i32], by_column: &mut [i32]) {
        plain(signs, flips, rows, by_column);
    }

    /// Every version that this processor can run, the fastest first.
    pub(super) fn versions() -> Vec<AddGroup> {
        let mut versions: Vec<AddGroup> = Vec::new();
        #[cfg(target_arch = "x86_64")]
        {
            #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
            fn avx512(signs: Signs<'_>, flips: &mut [i32], rows: &[i32], by_column: &mut [i32]) {
                plain(signs, flips, rows, by_column);
            }
            #[target_feature(enable = "avx2")]
            fn avx2(signs: Signs<'_>, flips: &mut [i32], rows: &[i32], by_column: &mut [i32]) {
                plain(signs, flips, rows, by_column);
            }
            let has_avx512 = is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512vl");
            if has_avx512 {
                // SAFETY: the processor has the features that the function is compiled for.
                versions.push(|signs, flips, rows, sums| unsafe { avx512(signs, flips, rows, sums) });
            }
            if is_x86_feature_detected!("avx2") {
                // SAFETY: the processor has the features that the function is compiled for.
                versions.push(|signs, flips, rows, sums| unsafe { avx2(signs, flips, rows, sums) });
            }
        }
        versions.push(portable);
        versions
    }

    /// The fastest version for this processor.
    pub(super) fn fastest() -> AddGroup {
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
            count in prop_oneof![0usize..40, 505usize..520],
            width in 1usize..5,
            k in prop_oneof![1u64..200, 505u64..520],
            values in prop::collection::vec(-(1i32 << 20)..=1 << 20, 4 * 520),
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
        for (count, k) in [(1, 1), (3, 63), (4, 64), (513, 65), (70, 512), (5, 513), (9, 1100)] {
            let subjects = subjects(count);
            let rows: Vec<i32> = (0..count as i32 * 3).map(|i| i.wrapping_mul(40_503) % (1 << 20)).collect();
            let sums = |version: vector::AddGroup| {
                let mut sums = vec![1; k * 3];
                add_bernoulli_with(version, &subjects, &rows, 3, k as u64, &mut sums);
                sums
            };
            let versions = vector::versions();
            let expected = sums(versions[versions.len() - 1]);
            assert!(versions.into_iter().all(|version| sums(version) == expected), "{count} {k}");
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
