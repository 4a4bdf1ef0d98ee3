//! The kernel for AVX2: one instruction multiplies sixteen values by their bits and adds them in
//! pairs.

use std::arch::x86_64::__m256i;

use pulp::x86::V3;

use super::super::lanes::Arrays;
use super::{Kernel, ROWS, Signs};

const PAIRS: usize = ROWS / 2;

/// Vectors of eight mixed rows that a word of signs fills.
const VECTORS: usize = 4;

pub(super) struct MultiplyAdd {
    simd: V3,
    width: usize,
    /// Two rows, as the low and the high half of a word, column by column.
    pairs: Vec<[i32; PAIRS]>,
    /// Bits of the two rows in 32 mixed rows.
    bits: Box<[[__m256i; VECTORS]; PAIRS]>,
}

impl MultiplyAdd {
    pub(super) fn new(simd: V3) -> Self {
        Self { simd, width: 0, pairs: Vec::new(), bits: Box::new([[pulp::cast([0_i32; 8]); VECTORS]; PAIRS]) }
    }

    /// Adds `COLUMNS` columns at once to their sums for one word of mixed rows.
    #[inline(always)]
    fn add_columns<const COLUMNS: usize>(
        &self,
        column: usize,
        sums: &mut [i32],
        stride: usize,
        first: usize,
    ) {
        let avx2 = self.simd.avx2;
        let mut totals: [[__m256i; VECTORS]; COLUMNS] = [[pulp::cast([0_i32; 8]); VECTORS]; COLUMNS];
        for (pair, bits) in self.bits.iter().enumerate() {
            for (at, totals) in totals.iter_mut().enumerate() {
                let values = self.simd.avx._mm256_set1_epi32(self.pairs[column + at][pair]);
                for (total, &bits) in totals.iter_mut().zip(bits) {
                    *total = avx2._mm256_add_epi32(*total, avx2._mm256_madd_epi16(values, bits));
                }
            }
        }
        for (at, totals) in totals.into_iter().enumerate() {
            let totals: [i32; 8 * VECTORS] = pulp::cast(totals);
            let sums = &mut sums[(column + at) * stride + first..][..8 * VECTORS];
            sums.iter_mut().zip(totals).for_each(|(sum, total)| *sum = sum.wrapping_add(total));
        }
    }
}

impl Kernel for MultiplyAdd {
    type Unit = Arrays;

    const LARGEST: u32 = i16::MAX as u32;

    #[inline(always)]
    fn unit(&self) -> Arrays {
        Arrays
    }

    #[inline(always)]
    fn load(&mut self, rows: &[i32], width: usize) {
        self.width = width;
        self.pairs.clear();
        self.pairs.resize(width, [0; PAIRS]);
        for (at, row) in rows.chunks_exact(width).enumerate() {
            for (pairs, &q) in self.pairs.iter_mut().zip(row) {
                pairs[at / 2] |= (q & 0xffff) << (at % 2 * 16);
            }
        }
    }

    #[inline(always)]
    fn add(&mut self, signs: &Signs, words: usize, sums: &mut [i32], stride: usize, first: usize) {
        for (word, signs) in signs.iter().take(words).enumerate() {
            for (bits, [a, b]) in self.bits.iter_mut().zip(signs.as_chunks().0) {
                let both: [u32; 8 * VECTORS] = std::array::from_fn(|i| (a >> i & 1) | (b >> i & 1) << 16);
                *bits = pulp::cast(both);
            }
            let first = first + 32 * word;
            let mut column = 0;
            while column + 2 <= self.width {
                self.add_columns::<2>(column, sums, stride, first);
                column += 2;
            }
            if column < self.width {
                self.add_columns::<1>(column, sums, stride, first);
            }
        }
    }
}
