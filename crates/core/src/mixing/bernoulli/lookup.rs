//! The kernel for AVX-512: the method of Four Russians.
//!
//! Five rows have 32 sums of subsets, one for each combination of bits: a table of 32 words of 16
//! bits fits a register, and one permutation looks it up for 32 mixed rows. Values are split into a
//! low byte and the rest, so that sums over a block fit 16 bits.

use std::arch::x86_64::__m512i;
use std::hint::black_box;

use pulp::x86::V4;

use super::super::signs::WORDS;
use super::{Kernel, ROWS, Signs};

/// Rows that a table has the sums of.
const GROUP: usize = 5;

const GROUPS: usize = ROWS / GROUP;

/// Vectors of 32 mixed rows worked on at a time.
const VECTORS: usize = 4;

/// Columns worked on at a time: their sums fit the registers.
const COLUMNS: usize = 2;

/// Entries of a table whose subset holds row i of the group.
const WITH_ROW: [u32; GROUP] = [0xaaaa_aaaa, 0xcccc_cccc, 0xf0f0_f0f0, 0xff00_ff00, 0xffff_0000];

const _: () = assert!(ROWS.is_multiple_of(GROUP), "groups fill a block");
const _: () = assert!(255 * ROWS <= u16::MAX as usize, "sums of low bytes fit 16 bits");
const _: () = assert!(128 * ROWS <= i16::MAX as usize, "sums of the rest fit 16 bits");

fn zero() -> __m512i {
    pulp::cast([0_u32; 16])
}

pub(super) struct Lookup {
    simd: V4,
    width: usize,
    /// [`WITH_ROW`], and 1, 2, 4, … in every lane: kept from the compiler, which would make more
    /// instructions of them.
    with_row: [u32; GROUP],
    powers: [__m512i; GROUP],
    /// Low bytes and the rest of the loaded values.
    low: Vec<i16>,
    rest: Vec<i16>,
    /// Tables of low bytes and of the rest, column by column.
    tables: Vec<[[__m512i; 2]; GROUPS]>,
    /// Where to look in the tables of each group, for the mixed rows worked on.
    places: Vec<[[__m512i; VECTORS]; GROUPS]>,
}

impl Lookup {
    pub(super) fn new(simd: V4) -> Self {
        Self {
            simd,
            width: 0,
            with_row: black_box(WITH_ROW),
            powers: black_box([1_u16, 2, 4, 8, 16].map(|power| pulp::cast([power; 32]))),
            low: Vec::new(),
            rest: Vec::new(),
            tables: Vec::new(),
            places: vec![[[zero(); VECTORS]; GROUPS]; WORDS / VECTORS],
        }
    }

    /// The sums of all subsets of a column's values in five rows.
    #[inline(always)]
    fn table(&self, rows: [&[i16]; GROUP], column: usize) -> __m512i {
        let mut table = zero();
        for (row, with) in rows.into_iter().zip(self.with_row) {
            let value = self.simd.avx512f._mm512_set1_epi16(row[column]);
            table = self.simd.avx512bw._mm512_mask_add_epi16(table, with, table, value);
        }
        table
    }

    /// Finds where to look for `VECTORS` words of mixed rows.
    #[inline(always)]
    fn find_places(&mut self, signs: &[[u32; ROWS]], set: usize) {
        let avx512bw = self.simd.avx512bw;
        for (at, signs) in signs.iter().enumerate() {
            for (places, bits) in self.places[set].iter_mut().zip(signs.as_chunks::<GROUP>().0) {
                let mut place = zero();
                for (&bits, power) in bits.iter().zip(self.powers) {
                    place = avx512bw._mm512_mask_add_epi16(place, bits, place, power);
                }
                places[at] = place;
            }
        }
    }

    /// Adds `COLUMNS` columns at once to their sums for `VECTORS` words of mixed rows.
    #[inline(always)]
    fn add_columns<const COLUMNS: usize>(
        &self,
        column: usize,
        set: usize,
        sums: &mut [i32],
        stride: usize,
        first: usize,
    ) {
        let avx512bw = self.simd.avx512bw;
        let tables: [&[[__m512i; 2]; GROUPS]; COLUMNS] = std::array::from_fn(|at| &self.tables[column + at]);
        let mut totals = [[[zero(); 2]; VECTORS]; COLUMNS];
        for (group, places) in self.places[set].iter().enumerate() {
            for (table, totals) in tables.iter().zip(&mut totals) {
                for (&place, totals) in places.iter().zip(totals) {
                    for (total, &table) in totals.iter_mut().zip(&table[group]) {
                        let found = avx512bw._mm512_permutexvar_epi16(place, table);
                        *total = avx512bw._mm512_add_epi16(*total, found);
                    }
                }
            }
        }
        for (at, totals) in totals.iter().enumerate() {
            let sums = &mut sums[(column + at) * stride + first..][..32 * VECTORS];
            for (sums, &[low, rest]) in sums.as_chunks_mut::<32>().0.iter_mut().zip(totals) {
                self.add_wide(sums, low, rest);
            }
        }
    }

    /// Adds low bytes and 256 times the rest to 32 sums.
    #[inline(always)]
    fn add_wide(&self, sums: &mut [i32; 32], low: __m512i, rest: __m512i) {
        let avx512f = self.simd.avx512f;
        let half = |all: __m512i, upper: bool| {
            if upper {
                avx512f._mm512_extracti64x4_epi64::<1>(all)
            } else {
                avx512f._mm512_castsi512_si256(all)
            }
        };
        for (sums, upper) in sums.as_chunks_mut::<16>().0.iter_mut().zip([false, true]) {
            let low = avx512f._mm512_cvtepu16_epi32(half(low, upper));
            let rest = avx512f._mm512_slli_epi32::<8>(avx512f._mm512_cvtepi16_epi32(half(rest, upper)));
            let total = avx512f._mm512_add_epi32(pulp::cast(*sums), avx512f._mm512_add_epi32(low, rest));
            *sums = pulp::cast(total);
        }
    }
}

impl Kernel for Lookup {
    type Unit = V4;

    const LARGEST: u32 = i16::MAX as u32;

    #[inline(always)]
    fn unit(&self) -> V4 {
        self.simd
    }

    #[inline(always)]
    fn load(&mut self, rows: &[i32], width: usize) {
        self.width = width;
        let split = |values: &mut Vec<i16>, part: fn(i32) -> i16| {
            values.clear();
            values.extend(rows.iter().map(|&q| part(q)));
            values.resize(ROWS * width, 0);
        };
        split(&mut self.low, |q| (q & 0xff) as i16);
        split(&mut self.rest, |q| (q >> 8) as i16);
        self.tables.resize(width, [[zero(); 2]; GROUPS]);
        let mut tables = std::mem::take(&mut self.tables);
        for group in 0..GROUPS {
            let start = group * GROUP * width;
            let [low, rest]: [[&[i16]; GROUP]; 2] = [&self.low, &self.rest]
                .map(|values| std::array::from_fn(|i| &values[start + i * width..][..width]));
            for (column, tables) in tables.iter_mut().enumerate() {
                tables[group][0] = self.table(low, column);
                tables[group][1] = self.table(rest, column);
            }
        }
        self.tables = tables;
    }

    #[inline(always)]
    fn add(&mut self, signs: &Signs, words: usize, sums: &mut [i32], stride: usize, first: usize) {
        let sets = words.div_ceil(VECTORS);
        for (set, signs) in signs.chunks_exact(VECTORS).take(sets).enumerate() {
            self.find_places(signs, set);
        }
        // The tables of a few columns stay in the first-level cache for all mixed rows.
        let mut column = 0;
        while column + COLUMNS <= self.width {
            for set in 0..sets {
                self.add_columns::<COLUMNS>(column, set, sums, stride, first + 32 * VECTORS * set);
            }
            column += COLUMNS;
        }
        for column in column..self.width {
            for set in 0..sets {
                self.add_columns::<1>(column, set, sums, stride, first + 32 * VECTORS * set);
            }
        }
    }
}
