//! Encoded rows of a batch of subjects, column by column, so that every step runs on vectors of
//! subjects.
//!
//! The kernels are plain loops, compiled for each vector unit and chosen when the program runs.
//! They do what [`Scaling::encode`] and [`Ball::project`] do to one value and one row.

use pulp::{Arch, NullaryFnOnce};

use super::{Ball, Bounds, Scaling, truncate};

/// Rows worked on at a time: their columns, norms and factors stay in the first-level cache.
const TILE: usize = 256;

/// Encoded rows of a batch of subjects. No `Debug`: these are private. Its memory serves one batch
/// after the other.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct EncodedRows {
    count: usize,
    width: usize,
    groups: usize,
    /// The encoded columns, then a column of 0 and 1 for each presence group, then the cells of
    /// numeric columns.
    columns: Vec<i32>,
}

impl EncodedRows {
    /// Makes room for a batch; what the values are is left open.
    pub(super) fn resize(&mut self, count: usize, width: usize, groups: usize, cells: usize) {
        (self.count, self.width, self.groups) = (count, width, groups);
        self.columns.resize(count * (width + groups + cells), 0);
    }

    /// Number of rows.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Number of columns.
    pub fn width(&self) -> usize {
        self.width
    }

    /// The values of one column.
    pub fn column(&self, column: usize) -> &[i32] {
        &self.columns[column * self.count..][..self.count]
    }

    pub(super) fn column_mut(&mut self, column: usize) -> &mut [i32] {
        &mut self.columns[column * self.count..][..self.count]
    }

    /// Of each row, 1 if the values of the group are there, else 0.
    pub fn presence(&self, group: usize) -> &[i32] {
        self.column(self.width + group)
    }

    /// The cell of each value of a numeric column.
    pub(crate) fn cells(&self, numeric: usize) -> &[i32] {
        self.column(self.width + self.groups + numeric)
    }

    pub(super) fn cells_mut(&mut self, numeric: usize) -> &mut [i32] {
        self.column_mut(self.width + self.groups + numeric)
    }

    pub(super) fn presence_mut(&mut self, group: usize) -> &mut [i32] {
        self.column_mut(self.width + group)
    }

    /// The same values, row by row.
    pub fn to_rows(&self) -> Vec<i32> {
        let mut rows = Vec::with_capacity(self.width * self.count);
        self.append_rows(&mut rows);
        rows
    }

    /// Appends the same values, row by row.
    pub fn append_rows(&self, rows: &mut Vec<i32>) {
        self.each_tile(|_, tile| rows.extend_from_slice(tile));
    }

    /// Hands on some rows at a time, row by row, with the position of the first.
    pub(crate) fn each_tile(&self, mut take: impl FnMut(usize, &[i32])) {
        let mut rows = vec![0; TILE.min(self.count) * self.width];
        for first in (0..self.count).step_by(TILE) {
            let rows = &mut rows[..TILE.min(self.count - first) * self.width];
            for column in 0..self.width {
                let values = &self.column(column)[first..];
                for (row, &value) in rows.chunks_exact_mut(self.width).zip(values) {
                    row[column] = value;
                }
            }
            take(first, rows);
        }
    }

    /// Pulls every row into the ball, as [`Ball::project`] does one.
    ///
    /// # Privacy
    /// Afterwards Σq² ≤ C exactly for every row: Lemma B, docs/PRIVACY.md#ball.
    pub(super) fn project(&mut self, arch: Arch, ball: Ball) {
        arch.dispatch(Project { rows: self, ball });
    }

    /// Subtracts `centre` from every row; where the groups of columns are given, from the values
    /// that are there, so that a missing one stays 0.
    pub(super) fn shift(&mut self, centre: &[i32], groups: Option<&[usize]>) {
        for (column, &centre) in centre.iter().enumerate() {
            let Some(groups) = groups else {
                self.column_mut(column).iter_mut().for_each(|q| *q -= centre);
                continue;
            };
            let (values, presence) = self.columns.split_at_mut(self.width * self.count);
            let values = &mut values[column * self.count..][..self.count];
            let present = &presence[groups[column] * self.count..][..self.count];
            values.iter_mut().zip(present).for_each(|(q, present)| *q -= centre * present);
        }
    }

    /// Puts one more encoded column in the place of the presence groups: `weight` where any is
    /// there, else 0.
    pub(super) fn weigh(&mut self, weight: i32) {
        let (first, others) = self.columns[self.width * self.count..].split_at_mut(self.count);
        for other in others.chunks_exact(self.count.max(1)) {
            first.iter_mut().zip(other).for_each(|(any, present)| *any |= present);
        }
        for any in first {
            *any *= weight;
        }
        (self.width, self.groups) = (self.width + 1, 0);
        self.columns.truncate(self.width * self.count);
    }
}

/// Encodes the values of a numeric column.
pub(super) struct Numbers<'a> {
    pub(super) values: &'a [f64],
    pub(super) bounds: Bounds,
    pub(super) scaling: Scaling,
    pub(super) encoded: &'a mut [i32],
}

impl NullaryFnOnce for Numbers<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        for (q, &number) in self.encoded.iter_mut().zip(self.values) {
            let encoded = self.scaling.encode(self.bounds.unit(number));
            *q = if number.is_finite() { encoded } else { 0 };
        }
    }
}

/// Encodes one level of a column of codes: `present` where it is the subject's level, 0 where the
/// level is missing.
pub(super) struct Level<'a> {
    pub(super) codes: &'a [u32],
    pub(super) code: u32,
    /// Codes from here on are missing.
    pub(super) end: u32,
    pub(super) present: i32,
    pub(super) absent: i32,
    pub(super) encoded: &'a mut [i32],
}

impl NullaryFnOnce for Level<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        for (q, &code) in self.encoded.iter_mut().zip(self.codes) {
            let known = if code < self.end { self.absent } else { 0 };
            *q = if code == self.code { self.present } else { known };
        }
    }
}

/// Tells which numbers are there: 1, or 0 for NaN and ±inf.
pub(super) struct Present<'a> {
    pub(super) values: &'a [f64],
    pub(super) present: &'a mut [i32],
}

impl NullaryFnOnce for Present<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        for (present, value) in self.present.iter_mut().zip(self.values) {
            *present = i32::from(value.is_finite());
        }
    }
}

/// Tells which levels are there: 1, or 0 for codes from `end` on.
pub(super) struct Known<'a> {
    pub(super) codes: &'a [u32],
    pub(super) end: u32,
    pub(super) present: &'a mut [i32],
}

impl NullaryFnOnce for Known<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        for (present, &code) in self.present.iter_mut().zip(self.codes) {
            *present = i32::from(code < self.end);
        }
    }
}

/// Pulls rows into a ball.
struct Project<'a> {
    rows: &'a mut EncodedRows,
    ball: Ball,
}

impl NullaryFnOnce for Project<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let limit = self.ball.norm_squared();
        for first in (0..self.rows.count).step_by(TILE) {
            let range = first..self.rows.count.min(first + TILE);
            let mut norms = [0_u64; TILE];
            for column in 0..self.rows.width {
                for (norm, &q) in norms.iter_mut().zip(&self.rows.column(column)[range.clone()]) {
                    let size = u64::from(q.unsigned_abs());
                    // Bounded by what `Ball::project` accepts.
                    *norm = norm.wrapping_add(size.wrapping_mul(size));
                }
            }
            if norms.iter().all(|&norm| norm <= limit) {
                continue;
            }
            let mut factors = [1.0; TILE];
            for (factor, &norm) in factors.iter_mut().zip(&norms) {
                let outside = (limit as f64 / norm as f64).sqrt();
                // Exactly 1 within the ball, so that rows there stay.
                *factor = if norm > limit { outside } else { 1.0 };
            }
            for column in 0..self.rows.width {
                for (q, factor) in self.rows.column_mut(column)[range.clone()].iter_mut().zip(&factors) {
                    *q = truncate(f64::from(*q) * factor);
                }
            }
        }
    }
}

/// The sum of a column.
pub(crate) struct Sum<'a>(pub(crate) &'a [i32]);

impl NullaryFnOnce for Sum<'_> {
    type Output = i64;

    #[inline(always)]
    fn call(self) -> i64 {
        // Overflow is excluded when the study is checked: n·C < 2⁶².
        self.0.iter().fold(0, |sum: i64, &q| sum.wrapping_add(i64::from(q)))
    }
}

/// The sum of products of two columns.
pub(crate) struct Dot<'a>(pub(crate) &'a [i32], pub(crate) &'a [i32]);

impl NullaryFnOnce for Dot<'_> {
    type Output = i64;

    #[inline(always)]
    fn call(self) -> i64 {
        // Overflow is excluded when the study is checked: n·C < 2⁶².
        let product = |(&p, &q): (&i32, &i32)| i64::from(p).wrapping_mul(i64::from(q));
        self.0.iter().zip(self.1).fold(0, |sum: i64, pair| sum.wrapping_add(product(pair)))
    }
}
