//! From raw values to small integers, and the ball that bounds one subject's row.
//!
//! A numeric column with public bounds becomes one integer in −Q..=Q; a categorical column with
//! public levels becomes 0/Q indicators (docs/PRIVACY.md#encoding). All later sums are sums of
//! these integers, so they are exact: they do not depend on row order, threads, batch size or the
//! engine that computed them.

mod ball;
mod bins;
mod presence;
mod rows;

use pulp::Arch;
use thiserror::Error;

pub use ball::{Ball, LARGEST_SCALED, MAX_NORM_SQUARED};
use bins::Places;
pub(crate) use bins::add_counts;
pub use bins::{Bins, NOWHERE};
pub use presence::Presence;
pub use rows::EncodedRows;
pub(crate) use rows::{Dot, Sum};
use rows::{Known, Level, Numbers, Present};

/// Resolution of the encoding: an encoded value of `Q` stands for 1. A constant of the file format.
pub const Q: i32 = 1 << 14;

/// The level code of a missing categorical value.
pub const MISSING_LEVEL: u32 = u32::MAX;

/// Why a public encoding parameter is not usable.
#[derive(Debug, Error, PartialEq)]
pub enum EncodingError {
    /// The bounds do not span an interval.
    #[error(
        "bounds must be finite numbers with lo < hi, at most 1e300 in size; choose the range the column is known to have"
    )]
    Bounds,
    /// Fewer than two levels.
    #[error("a categorical column needs at least two levels")]
    Levels,
    /// The radius is not positive or too large.
    #[error("a row norm must be positive and below 2048; lower clip_norm or give the party fewer columns")]
    Norm,
}

/// Public bounds of a numeric column; values outside are clamped to them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    lo: f64,
    hi: f64,
}

impl Bounds {
    /// Bounds with `lo < hi`, both finite.
    pub fn new(lo: f64, hi: f64) -> Result<Self, EncodingError> {
        let bounds = Self { lo, hi };
        let usable = lo.is_finite()
            && hi.is_finite()
            && lo.abs() <= 1e300
            && hi.abs() <= 1e300
            && lo < hi
            && bounds.half_width() > 0.0;
        usable.then_some(bounds).ok_or(EncodingError::Bounds)
    }

    /// Lower bound.
    pub fn lo(self) -> f64 {
        self.lo
    }

    /// Upper bound.
    pub fn hi(self) -> f64 {
        self.hi
    }

    /// The value that is encoded as 0.
    pub fn midpoint(self) -> f64 {
        f64::midpoint(self.lo, self.hi)
    }

    /// The distance from the midpoint that is encoded as ±Q.
    pub fn half_width(self) -> f64 {
        (self.hi - self.lo) / 2.0
    }

    /// A finite value in units of the half-width from the midpoint: u ∈ [−1, 1] up to rounding.
    #[inline(always)]
    fn unit(self, value: f64) -> f64 {
        (clamp(value, self.lo, self.hi) - self.midpoint()) / self.half_width()
    }

    /// A number in units of the half-width from the midpoint, clamped.
    pub(crate) fn unit_of(self, value: f64) -> f64 {
        self.unit(value)
    }

    /// The integer for one value on the public range: 0 for NaN and ±inf (missing), else the
    /// clamped value scaled to ±Q.
    ///
    /// # Privacy
    /// |result| ≤ Q for every input: Lemma E, docs/PRIVACY.md#encoding.
    pub fn encode(self, value: f64) -> i32 {
        if value.is_finite() { Scaling::UNIT.encode(self.unit(value)) } else { 0 }
    }
}

/// How a value u of an encoded column (numeric: in [−1, 1]; level: 0 or 1) becomes an integer:
/// clamped to [low, high], shifted, divided, rounded at resolution Q and clamped again.
///
/// The order of operations is part of the format, so that every engine gets the same integer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scaling {
    /// Values below are raised to it.
    pub low: f64,
    /// Values above are lowered to it.
    pub high: f64,
    /// What is encoded as 0.
    pub centre: f64,
    /// The distance from the centre that is encoded as Q.
    pub scale: f64,
    /// Largest result in size.
    pub limit: i32,
}

impl Scaling {
    /// The public range itself.
    pub const UNIT: Self = Self { low: -1.0, high: 1.0, centre: 0.0, scale: 1.0, limit: Q };

    /// The integer for u.
    ///
    /// # Privacy
    /// |result| ≤ `limit` for every input: Lemma E, docs/PRIVACY.md#encoding.
    #[inline(always)]
    pub fn encode(self, u: f64) -> i32 {
        let scaled = ((clamp(u, self.low, self.high) - self.centre) / self.scale) * f64::from(Q);
        round_half_away(scaled).max(self.limit.wrapping_neg()).min(self.limit)
    }
}

/// `f64::clamp` without its check of the bounds, which would keep loops from becoming vector
/// instructions.
#[inline(always)]
fn clamp(value: f64, low: f64, high: f64) -> f64 {
    let raised = if value < low { low } else { value };
    if raised > high { high } else { raised }
}

/// sign(y)·floor(|y| + 0.5), cut off at ±2³⁰. Spelled out because `round` differs between engines.
#[inline(always)]
pub(crate) fn round_half_away(y: f64) -> i32 {
    with_sign_of(y, floor(y.abs() + 0.5))
}

/// y without its fraction, cut off at ±2³⁰.
#[inline(always)]
fn truncate(y: f64) -> i32 {
    with_sign_of(y, floor(y.abs()))
}

#[inline(always)]
fn with_sign_of(y: f64, magnitude: i32) -> i32 {
    if y < 0.0 { magnitude.wrapping_neg() } else { magnitude }
}

/// ⌊y⌋ for y ≥ 0, cut off at 2³⁰ (so is NaN). `as i32` does the same, but not on vectors.
#[inline(always)]
fn floor(y: f64) -> i32 {
    const LIMIT: f64 = (1_u32 << 30) as f64;
    /// From here on doubles are whole numbers, and the number in the low bits of one is its
    /// distance from here.
    const WHOLE: f64 = (1_u64 << 52) as f64;
    let y = if y < LIMIT { y } else { LIMIT };
    let moved = y + WHOLE;
    let nearest = moved - WHOLE;
    (moved.to_bits() as i32).wrapping_sub(i32::from(nearest > y))
}

/// Number of public levels of a categorical column: at least two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LevelCount(u32);

impl LevelCount {
    /// A level count of at least two.
    pub fn new(count: usize) -> Result<Self, EncodingError> {
        match u32::try_from(count) {
            Ok(count) if (2..MISSING_LEVEL).contains(&count) => Ok(Self(count)),
            _ => Err(EncodingError::Levels),
        }
    }

    /// How many levels there are.
    pub fn get(self) -> usize {
        self.0 as usize
    }

    /// How many encoded columns they take: one if there are two levels, else one a level.
    pub fn width(self) -> usize {
        if self.0 == 2 { 1 } else { self.get() }
    }

    /// The first level that has an encoded column of its own.
    pub fn first_encoded(self) -> usize {
        self.get() - self.width()
    }
}

/// How one raw column becomes encoded columns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Encoder {
    /// One encoded column in −Q..=Q.
    Numeric(Bounds),
    /// Indicators: 0 or Q, at most one of them Q.
    Categorical(LevelCount),
}

impl Encoder {
    /// Number of encoded columns.
    pub fn width(self) -> usize {
        match self {
            Self::Numeric(_) => 1,
            Self::Categorical(levels) => levels.width(),
        }
    }
}

/// Values of one raw column for a batch of subjects. No `Debug`: these may be private.
#[derive(Clone, Copy)]
pub enum Values<'a> {
    /// Numbers; NaN and ±inf are missing.
    Numbers(&'a [f64]),
    /// Level codes; [`MISSING_LEVEL`] is missing.
    Levels(&'a [u32]),
}

impl Values<'_> {
    fn len(&self) -> usize {
        match self {
            Self::Numbers(numbers) => numbers.len(),
            Self::Levels(codes) => codes.len(),
        }
    }
}

/// How a subject's raw values become one encoded row.
#[derive(Clone, Debug, PartialEq)]
pub struct RowEncoder {
    columns: Vec<(Encoder, Vec<Scaling>)>,
    width: usize,
    ball: Option<Ball>,
    centre: Vec<i32>,
    presence: Option<Presence>,
    bins: Vec<Bins>,
    weight: Option<i32>,
}

impl RowEncoder {
    /// Columns with one scaling for each of their encoded columns; without a ball.
    pub fn new(encoders: &[Encoder], scalings: &[Scaling]) -> Self {
        let width = encoders.iter().map(|encoder| encoder.width()).sum();
        assert_eq!(scalings.len(), width, "one scaling an encoded column");
        let mut rest = scalings;
        let mut columns = Vec::with_capacity(encoders.len());
        for &encoder in encoders {
            let (own, others) = rest.split_at(encoder.width());
            columns.push((encoder, own.to_vec()));
            rest = others;
        }
        Self {
            columns,
            width,
            ball: None,
            centre: Vec::new(),
            presence: None,
            bins: Vec::new(),
            weight: None,
        }
    }

    /// Columns on their public ranges; without a ball.
    pub fn plain(encoders: &[Encoder]) -> Self {
        let width = encoders.iter().map(|encoder| encoder.width()).sum();
        Self::new(encoders, &vec![Scaling::UNIT; width])
    }

    /// The same rows, pulled into a ball.
    #[must_use]
    pub fn within(mut self, ball: Ball) -> Self {
        self.ball = Some(ball);
        self
    }

    /// The same rows, then moved by −`centre`, then pulled into the ball again.
    ///
    /// # Privacy
    /// Entries stay below 2²¹ in between, as Lemma B wants them
    /// (docs/PRIVACY.md#mixed-rows-stage-4).
    #[must_use]
    pub fn about(mut self, centre: Vec<i32>) -> Self {
        assert_eq!(centre.len(), self.width, "one centre an encoded column");
        assert!(centre.iter().all(|c| c.abs() <= LARGEST_SCALED), "a centre is on the scale of the rows");
        self.centre = centre;
        self
    }

    /// The same rows, each with which of its values are there.
    #[must_use]
    pub fn with_presence(mut self, presence: Presence) -> Self {
        self.presence = Some(presence);
        self
    }

    /// The same rows, each with where its numbers lie among these cells, a set for each numeric
    /// column in order.
    #[must_use]
    pub fn with_bins(mut self, bins: Vec<Bins>) -> Self {
        let numeric = self.columns.iter().filter(|(encoder, _)| matches!(encoder, Encoder::Numeric(_)));
        assert_eq!(numeric.count(), bins.len(), "bins of every numeric column");
        self.bins = bins;
        self
    }

    /// The same rows with one more entry: `weight` if any value is there, else 0.
    ///
    /// # Privacy
    /// A row without any value is 0 everywhere, as if there were none (Theorem M′,
    /// docs/PRIVACY.md#mixed-rows-and-presence-stage-4).
    #[must_use]
    pub fn weighing(mut self, weight: i32) -> Self {
        assert!(self.presence.is_some(), "it is known which values are there");
        self.weight = Some(weight);
        self
    }

    /// Number of encoded columns, that of the weight included.
    pub fn width(&self) -> usize {
        self.width + usize::from(self.weight.is_some())
    }

    /// The entry that tells that any value is there, if rows have one.
    pub fn weight(&self) -> Option<i32> {
        self.weight
    }

    /// The presence groups, if it matters which values are there.
    pub fn presence(&self) -> Option<&Presence> {
        self.presence.as_ref()
    }

    /// G: how many presence groups encoded rows tell of.
    pub fn groups(&self) -> usize {
        match self.weight {
            None => self.presence.as_ref().map_or(0, Presence::count),
            Some(_) => 0,
        }
    }

    /// The first encoded column of a presence group.
    pub(crate) fn first_of_group(&self, group: usize) -> usize {
        let presence = self.presence.as_ref().expect("there are groups");
        let before = (0..self.columns.len()).take_while(|&column| presence.group(column) != group);
        before.map(|column| self.columns[column].1.len()).sum()
    }

    /// The cells that numeric columns are counted in, if they are.
    pub fn bins(&self) -> &[Bins] {
        &self.bins
    }

    /// The encoded columns that are numeric.
    pub(crate) fn numeric(&self) -> Vec<usize> {
        let of_column = |(encoder, scalings): &(Encoder, Vec<Scaling>)| {
            vec![matches!(encoder, Encoder::Numeric(_)); scalings.len()]
        };
        let numeric: Vec<bool> = self.columns.iter().flat_map(of_column).collect();
        (0..numeric.len()).filter(|&column| numeric[column]).collect()
    }

    /// The columns, each with the scalings of its encoded columns.
    pub fn columns(&self) -> &[(Encoder, Vec<Scaling>)] {
        &self.columns
    }

    /// The ball, if rows are pulled into one.
    pub fn ball(&self) -> Option<Ball> {
        self.ball
    }

    /// By how much rows are moved within their ball; empty if they are not.
    pub fn centre(&self) -> &[i32] {
        &self.centre
    }

    /// Encodes a batch of `count` subjects into `rows`. Missing values become 0.
    ///
    /// # Privacy
    /// A row depends on its own subject only. Without a ball every entry keeps its limit, and of a
    /// column of levels at most one entry is not that of an absent level (Lemma E,
    /// docs/PRIVACY.md#encoding); with a ball Σq² ≤ C (Lemma B, docs/PRIVACY.md#ball).
    pub fn encode(&self, values: &[Values<'_>], count: usize, rows: &mut EncodedRows) {
        self.encode_on(Arch::new(), values, count, rows);
    }

    pub(crate) fn encode_on(&self, arch: Arch, values: &[Values<'_>], count: usize, rows: &mut EncodedRows) {
        assert_eq!(values.len(), self.columns.len(), "values of every column");
        assert!(values.iter().all(|values| values.len() == count), "a value a subject");
        let groups = self.presence.as_ref().map_or(0, Presence::count);
        rows.resize(count, self.width, groups, self.bins.len());
        let mut at = 0;
        let mut bins = self.bins.iter().enumerate();
        for (column, ((encoder, scalings), values)) in self.columns.iter().zip(values).enumerate() {
            match (encoder, values) {
                (&Encoder::Numeric(bounds), Values::Numbers(numbers)) => {
                    arch.dispatch(Numbers {
                        values: numbers,
                        bounds,
                        scaling: scalings[0],
                        encoded: rows.column_mut(at),
                    });
                    if let Some((at, bins)) = bins.next() {
                        let counted = self.presence.as_ref().is_none_or(|presence| presence.may_miss(column));
                        let missing = if counted { NOWHERE } else { bins.place(bounds.midpoint()) };
                        arch.dispatch(Places { values: numbers, bins, missing, cells: rows.cells_mut(at) });
                    }
                }
                (Encoder::Categorical(levels), Values::Levels(codes)) => {
                    for (level, (scaling, at)) in (levels.first_encoded()..).zip(scalings.iter().zip(at..)) {
                        arch.dispatch(Level {
                            codes,
                            code: level as u32,
                            end: levels.0,
                            present: scaling.encode(1.0),
                            absent: scaling.encode(0.0),
                            encoded: rows.column_mut(at),
                        });
                    }
                }
                _ => unreachable!("whoever reads the table follows the encoders"),
            }
            at += scalings.len();
        }
        let groups = self.presence.as_ref().map(|presence| self.tell_presence(arch, presence, values, rows));
        if let Some(ball) = self.ball {
            rows.project(arch, ball);
            if !self.centre.is_empty() {
                rows.shift(&self.centre, groups.as_deref());
                rows.project(arch, ball);
            }
        }
        if let Some(weight) = self.weight {
            rows.weigh(weight);
        }
    }

    /// Says of every row which groups are there; returns the group of each encoded column.
    fn tell_presence(
        &self,
        arch: Arch,
        presence: &Presence,
        values: &[Values<'_>],
        rows: &mut EncodedRows,
    ) -> Vec<usize> {
        let mut groups = Vec::with_capacity(self.width);
        for (column, ((encoder, scalings), values)) in self.columns.iter().zip(values).enumerate() {
            let group = presence.group(column);
            groups.extend(std::iter::repeat_n(group, scalings.len()));
            match (encoder, values) {
                _ if !presence.may_miss(column) => rows.presence_mut(group).fill(1),
                (Encoder::Numeric(_), Values::Numbers(values)) => {
                    arch.dispatch(Present { values, present: rows.presence_mut(group) });
                }
                (Encoder::Categorical(levels), Values::Levels(codes)) => {
                    arch.dispatch(Known { codes, end: levels.0, present: rows.presence_mut(group) });
                }
                _ => unreachable!("whoever reads the table follows the encoders"),
            }
        }
        groups
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn bounds_encode_to_the_grid() {
        let bounds = Bounds::new(18.0, 100.0).unwrap();
        assert_eq!(bounds.encode(18.0), -Q);
        assert_eq!(bounds.encode(100.0), Q);
        assert_eq!(bounds.encode(59.0), 0);
        assert_eq!(bounds.encode(-1e308), -Q);
        assert_eq!(bounds.encode(1e308), Q);
        for missing in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(bounds.encode(missing), 0);
        }
    }

    #[test]
    fn floors_are_those_of_the_standard_library() {
        let limit = f64::from(1 << 30);
        let near =
            |y: f64| [y.next_down(), y, y.next_up(), y + 0.5, (y + 0.5).next_down(), (y + 0.5).next_up()];
        for y in [1.0, 2.0, 3.0, 16_383.0, 16_384.0, 1e6, 1e9, limit - 1.0].into_iter().flat_map(near) {
            assert_eq!(floor(y), y.floor() as i32, "{y}");
            assert_eq!(truncate(-y), -(y.floor() as i32), "{y}");
        }
        assert_eq!([0.0, 5e-324, 0.5, 1.0_f64.next_down()].map(floor), [0; 4]);
        assert_eq!([limit, 1e300, f64::INFINITY, f64::NAN].map(floor), [1 << 30; 4]);
    }

    #[test]
    fn halves_round_away_from_zero() {
        let half_step = Bounds::new(-f64::from(Q), f64::from(Q)).unwrap();
        assert_eq!(half_step.encode(0.5), 1);
        assert_eq!(half_step.encode(-0.5), -1);
        assert_eq!(half_step.encode(1.49), 1);
        assert_eq!(half_step.encode(-0.0), 0);
    }

    /// Where half the width is a rounding error of the middle, only the last clamp keeps values on
    /// the grid.
    #[test]
    fn bounds_next_to_each_other_stay_on_the_grid() {
        for lo in [1.0_f64, 1e9, -3.0, 1e-300, 123.456] {
            let bounds = Bounds::new(lo, lo.next_up()).unwrap();
            for value in [lo, lo.next_up(), f64::MAX, f64::MIN, lo.next_down()] {
                assert!((-Q..=Q).contains(&bounds.encode(value)), "{lo} {value}");
            }
        }
    }

    #[test]
    fn unusable_bounds_are_refused() {
        for (lo, hi) in
            [(1.0, 1.0), (2.0, 1.0), (f64::NAN, 1.0), (0.0, f64::INFINITY), (-1e308, 1e308), (0.0, 5e-324)]
        {
            assert_eq!(Bounds::new(lo, hi), Err(EncodingError::Bounds), "{lo} {hi}");
        }
    }

    #[test]
    fn two_levels_take_one_column_and_more_take_one_each() {
        let two = RowEncoder::plain(&[Encoder::Categorical(LevelCount::new(2).unwrap())]);
        let mut rows = EncodedRows::default();
        two.encode(&[Values::Levels(&[0, 1, MISSING_LEVEL, 2])], 4, &mut rows);
        assert_eq!(rows.to_rows(), [0, Q, 0, 0]);
        let levels = RowEncoder::plain(&[Encoder::Categorical(LevelCount::new(3).unwrap())]);
        levels.encode(&[Values::Levels(&[0, 2, MISSING_LEVEL])], 3, &mut rows);
        assert_eq!(rows.to_rows(), [Q, 0, 0, 0, 0, Q, 0, 0, 0]);
        assert_eq!(LevelCount::new(1), Err(EncodingError::Levels));
    }

    /// One row by the definitions.
    fn reference_row(encoder: &RowEncoder, number: f64, code: u32) -> Vec<i32> {
        let mut row = Vec::new();
        for (column, scalings) in encoder.columns() {
            match column {
                Encoder::Numeric(bounds) => {
                    let u = (number.clamp(bounds.lo, bounds.hi) - bounds.midpoint()) / bounds.half_width();
                    let scaling = scalings[0];
                    let y =
                        (u.clamp(scaling.low, scaling.high) - scaling.centre) / scaling.scale * f64::from(Q);
                    let rounded = y.signum() * (y.abs() + 0.5).floor();
                    let limit = f64::from(scaling.limit);
                    row.push(if number.is_finite() { rounded.clamp(-limit, limit) as i32 } else { 0 });
                }
                Encoder::Categorical(levels) => {
                    for (at, scaling) in scalings.iter().enumerate() {
                        let is_level = code as usize == at + levels.first_encoded();
                        let known = (code as usize) < levels.get();
                        row.push(if known { scaling.encode(f64::from(u8::from(is_level))) } else { 0 });
                    }
                }
            }
        }
        if let Some(ball) = encoder.ball() {
            ball.project(&mut row);
            if !encoder.centre().is_empty() {
                row.iter_mut().zip(encoder.centre()).for_each(|(q, centre)| *q -= centre);
                ball.project(&mut row);
            }
        }
        row
    }

    proptest! {
        #[test]
        fn encoded_numbers_stay_on_the_grid(lo in -1e12f64..1e12, width in 1e-6f64..1e12, value: f64) {
            let bounds = Bounds::new(lo, lo + width).unwrap();
            prop_assert!((-Q..=Q).contains(&bounds.encode(value)));
        }

        #[test]
        fn encoding_is_monotone(lo in -1e6f64..1e6, width in 1e-3f64..1e6, a in -2e6f64..2e6, b in -2e6f64..2e6) {
            let bounds = Bounds::new(lo, lo + width).unwrap();
            prop_assert!(bounds.encode(a.min(b)) <= bounds.encode(a.max(b)));
        }

        /// Whatever the vector unit, the batch size and the values, rows are those of the
        /// definitions.
        #[test]
        fn every_vector_unit_encodes_as_the_definitions_say(
            numbers in prop::collection::vec(
                prop_oneof![-3.0f64..3.0, any::<f64>(), Just(f64::NAN), Just(f64::INFINITY), Just(-0.0)], 0..300),
            centre in -0.5f64..0.5,
            scale in prop_oneof![1e-3f64..2.0, Just(1e-300)],
            radius in 0.01f64..4.0,
            shift in -Q..=Q,
            with_ball in any::<bool>(),
            shifted in any::<bool>(),
        ) {
            let codes: Vec<u32> = (0..numbers.len() as u32)
                .map(|i| if i % 5 == 4 { MISSING_LEVEL } else { i * 7 % 4 })
                .collect();
            let scaling = Scaling { low: -0.9, high: 0.8, centre, scale, limit: LARGEST_SCALED };
            let encoders = [
                Encoder::Numeric(Bounds::new(-1.0, 2.0).unwrap()),
                Encoder::Categorical(LevelCount::new(3).unwrap()),
                Encoder::Categorical(LevelCount::new(2).unwrap()),
            ];
            let mut encoder = RowEncoder::new(&encoders, &[scaling; 5]);
            if with_ball {
                encoder = encoder.within(Ball::of_radius(radius).unwrap());
                if shifted {
                    encoder = encoder.about(vec![shift; 5]);
                }
            }
            let values = [Values::Numbers(&numbers), Values::Levels(&codes), Values::Levels(&codes)];
            let expected: Vec<i32> = numbers
                .iter()
                .zip(&codes)
                .flat_map(|(&number, &code)| reference_row(&encoder, number, code))
                .collect();
            // What was there before must not matter.
            let mut rows = EncodedRows::default();
            for arch in crate::vector::units() {
                encoder.encode_on(arch, &values, numbers.len(), &mut rows);
                prop_assert!(rows.to_rows() == expected, "{arch:?}");
            }
        }
    }
}
