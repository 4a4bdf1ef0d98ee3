//! Cells of a numeric column: where a value lies, as a small integer.

use pulp::NullaryFnOnce;

use super::Bounds;

/// Values worked on at a time: they stay in the first-level cache.
const TILE: usize = 256;

/// The integer of a value that is in no cell, because it is missing.
pub const NOWHERE: i32 = -1;

/// Cells of a numeric column: intervals of its public range, and one of the exact zeros where the
/// bounds hold 0.
///
/// With u ∈ [−1, 1] the clamped value in units of the public range, the bin of a value is the
/// number of edges at most u. The cell of the zeros stands right after the bin that zero would be
/// in.
#[derive(Clone, Debug, PartialEq)]
pub struct Bins {
    bounds: Bounds,
    edges: Vec<f64>,
    zeros: Option<usize>,
}

impl Bins {
    /// Cells between these edges, which rise.
    pub fn new(edges: Vec<f64>, bounds: Bounds) -> Self {
        assert!(edges.is_sorted_by(|a, b| a < b), "edges rise");
        let mut bins = Self { bounds, edges, zeros: None };
        if bounds.lo() <= 0.0 && 0.0 <= bounds.hi() {
            bins.zeros = Some(bins.place(0.0) as usize + 1);
        }
        bins
    }

    /// The edges between bins, in units of the public range.
    pub fn edges(&self) -> &[f64] {
        &self.edges
    }

    /// How many cells there are.
    pub fn count(&self) -> usize {
        self.edges.len() + 1 + usize::from(self.zeros.is_some())
    }

    /// The cell of the exact zeros, if there is one.
    pub fn zeros(&self) -> Option<usize> {
        self.zeros
    }

    /// From where to where each cell reaches, in units of the public range.
    pub fn intervals(&self) -> Vec<[f64; 2]> {
        let starts = std::iter::once(-1.0).chain(self.edges.iter().copied());
        let ends = self.edges.iter().copied().chain([1.0]);
        let mut intervals: Vec<[f64; 2]> = starts.zip(ends).map(|(start, end)| [start, end]).collect();
        if let Some(zeros) = self.zeros {
            intervals.insert(zeros, [self.bounds.unit(0.0); 2]);
        }
        intervals
    }

    /// The cell of a finite value.
    ///
    /// # Privacy
    /// Exactly one, for every input: Lemma S1, docs/PRIVACY.md#shapes-stage-1.
    pub fn place(&self, value: f64) -> i32 {
        let u = self.bounds.unit(value);
        self.cell(value, self.edges.iter().filter(|&&edge| edge <= u).count() as i32)
    }

    /// The cell of a value in this bin.
    #[inline(always)]
    fn cell(&self, value: f64, bin: i32) -> i32 {
        let Some(zeros) = self.zeros else { return bin };
        let zeros = zeros as i32;
        if value == 0.0 { zeros } else { bin + i32::from(bin >= zeros) }
    }
}

/// Finds the cells of the values of a column.
pub(super) struct Places<'a> {
    pub(super) values: &'a [f64],
    pub(super) bins: &'a Bins,
    /// What a missing value becomes.
    pub(super) missing: i32,
    pub(super) cells: &'a mut [i32],
}

impl NullaryFnOnce for Places<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let mut units = [0.0; TILE];
        for (cells, values) in self.cells.chunks_mut(TILE).zip(self.values.chunks(TILE)) {
            for (unit, &value) in units.iter_mut().zip(values) {
                *unit = self.bins.bounds.unit(value);
            }
            cells.fill(0);
            for &edge in &self.bins.edges {
                for (bin, &unit) in cells.iter_mut().zip(&units) {
                    *bin += i32::from(edge <= unit);
                }
            }
            for (cell, &value) in cells.iter_mut().zip(values) {
                *cell = if value.is_finite() { self.bins.cell(value, *cell) } else { self.missing };
            }
        }
    }
}

/// Adds to `counts` how many there are of each cell.
pub(crate) fn add_counts(cells: &[i32], counts: &mut [i64]) {
    for &cell in cells {
        if let Some(count) = usize::try_from(cell).ok().and_then(|cell| counts.get_mut(cell)) {
            *count += 1;
        }
    }
}
