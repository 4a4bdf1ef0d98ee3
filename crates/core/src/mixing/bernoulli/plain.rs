//! The kernel for any processor: values, masked, four subjects at a time.

use super::super::lanes::Arrays;
use super::super::signs::BLOCK;
use super::{Kernel, ROWS, Signs};
use crate::encoding::LARGEST_SCALED;

/// Subjects added at a time: each sum is loaded and stored once for all of them.
const GROUP: usize = 4;

#[derive(Default)]
pub(super) struct Plain {
    width: usize,
    rows: Vec<i32>,
}

impl Kernel for Plain {
    type Unit = Arrays;

    const LARGEST: u32 = LARGEST_SCALED.unsigned_abs();

    #[inline(always)]
    fn unit(&self) -> Arrays {
        Arrays
    }

    #[inline(always)]
    fn load(&mut self, rows: &[i32], width: usize) {
        self.width = width;
        self.rows.clear();
        self.rows.extend_from_slice(rows);
        self.rows.resize(ROWS * width, 0);
    }

    #[inline(always)]
    fn add(&mut self, signs: &Signs, words: usize, sums: &mut [i32], stride: usize, first: usize) {
        let count = 32 * words;
        let mut masks = [[0_i32; BLOCK]; GROUP];
        for (group, rows) in self.rows.chunks_exact(GROUP * self.width).enumerate() {
            for (at, mask) in masks.iter_mut().enumerate() {
                let subject = group * GROUP + at;
                for (mask, words) in mask.as_chunks_mut::<32>().0.iter_mut().zip(signs) {
                    let word = words[subject];
                    for (i, mask) in mask.iter_mut().enumerate() {
                        *mask = -((word >> i & 1) as i32);
                    }
                }
            }
            let [a, b, c, d] = masks.each_ref().map(|mask| &mask[..count]);
            for j in 0..self.width {
                let q: [i32; GROUP] = std::array::from_fn(|at| rows[at * self.width + j]);
                let sums = &mut sums[j * stride + first..][..count];
                for ((((sum, a), b), c), d) in sums.iter_mut().zip(a).zip(b).zip(c).zip(d) {
                    let pair = (q[0] & a).wrapping_add(q[1] & b);
                    let other = (q[2] & c).wrapping_add(q[3] & d);
                    *sum = sum.wrapping_add(pair.wrapping_add(other));
                }
            }
        }
    }
}
