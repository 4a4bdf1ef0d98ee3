//! Bins of a numeric column: where a value lies, as a small integer.

use pulp::NullaryFnOnce;

use super::Bounds;

/// Values worked on at a time: they stay in the first-level cache.
const TILE: usize = 256;

/// The integer of a value that is in no bin, because it is missing.
pub const NOWHERE: i32 = -1;

/// Bins of a numeric column: intervals of its public range, and one of the number zero where the
/// range holds it.
///
/// Bin i holds the values u with exactly i edges at most u, where u ∈ [−1, 1] is the clamped value
/// in units of the public range; the last bin holds the values that are exactly 0 before that.
#[derive(Clone, Debug, PartialEq)]
pub struct Bins {
    edges: Vec<f64>,
    zero: bool,
}

impl Bins {
    /// Bins between these edges, which rise; with one for zeros where the bounds hold 0.
    pub fn new(edges: Vec<f64>, bounds: Bounds) -> Self {
        assert!(edges.is_sorted_by(|a, b| a < b), "edges rise");
        Self { edges, zero: bounds.lo() <= 0.0 && 0.0 <= bounds.hi() }
    }

    /// The edges, in units of the public range.
    pub fn edges(&self) -> &[f64] {
        &self.edges
    }

    /// Whether zeros have a bin of their own, the last one.
    pub fn has_zero(&self) -> bool {
        self.zero
    }

    /// How many bins there are.
    pub fn count(&self) -> usize {
        self.edges.len() + 1 + usize::from(self.zero)
    }

    /// The bin of a finite value.
    ///
    /// # Privacy
    /// Exactly one, for every input: Lemma S1, docs/PRIVACY.md#shapes.
    pub fn place(&self, value: f64, bounds: Bounds) -> i32 {
        if self.zero && value == 0.0 {
            return self.edges.len() as i32 + 1;
        }
        let u = bounds.unit(value);
        self.edges.iter().filter(|&&edge| edge <= u).count() as i32
    }
}

/// Finds the bins of the values of a column.
pub(super) struct Places<'a> {
    pub(super) values: &'a [f64],
    pub(super) bounds: Bounds,
    pub(super) bins: &'a Bins,
    /// What a missing value becomes.
    pub(super) missing: i32,
    pub(super) encoded: &'a mut [i32],
}

impl NullaryFnOnce for Places<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let zeros = self.bins.edges.len() as i32 + 1;
        let mut units = [0.0; TILE];
        for (places, values) in self.encoded.chunks_mut(TILE).zip(self.values.chunks(TILE)) {
            for (unit, &value) in units.iter_mut().zip(values) {
                *unit = self.bounds.unit(value);
            }
            places.fill(0);
            for &edge in &self.bins.edges {
                for (place, &unit) in places.iter_mut().zip(&units) {
                    *place += i32::from(edge <= unit);
                }
            }
            for (place, &value) in places.iter_mut().zip(values) {
                let here = if self.bins.zero && value == 0.0 { zeros } else { *place };
                *place = if value.is_finite() { here } else { self.missing };
            }
        }
    }
}

/// Adds to `counts` how many of the places are each bin.
pub(crate) fn add_counts(places: &[i32], counts: &mut [i64]) {
    for &place in places {
        if let Some(count) = usize::try_from(place).ok().and_then(|place| counts.get_mut(place)) {
            *count += 1;
        }
    }
}
