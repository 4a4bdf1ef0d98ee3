//! What every two parties exchange: products of standardised rows on a coarse grid
//! (docs/EXCHANGE.md).

use num_bigint::BigUint;

use super::{CalibratedError, PartyPlan};
use crate::accounting::scale_for_pair;
use crate::encoding::{Ball, EncodedRows, Q, RowEncoder, Values};
use crate::noise::Sigma;

/// Steps of the grid in a standard deviation.
pub const GRID: u16 = 16;
/// The largest bound of a row's squared norm, in steps.
pub const LARGEST_NORM: u32 = 1 << 20;
/// Encoded columns that a party may bring: the proof needs four more, and 256 in all.
pub const MOST_EXCHANGED: usize = 252;

/// A step in units of 1/Q.
const STEP: u32 = Q.unsigned_abs() / GRID as u32;
/// Results are searched in a range below this.
const RANGE_LIMIT: u64 = 1 << 40;

/// How a party encodes the rows that it exchanges, once its three stages are published.
#[derive(Clone, Debug, PartialEq)]
pub struct ExchangedRows {
    encoder: RowEncoder,
    norm: u32,
    offsets: Vec<f64>,
}

impl ExchangedRows {
    /// Number of columns.
    pub fn width(&self) -> usize {
        self.encoder.width()
    }

    /// C: no row has a larger squared norm, in steps.
    pub fn norm(&self) -> u32 {
        self.norm
    }

    /// About where the mean of each column lies in these rows, in standardised units: off 0 by at
    /// most half a step.
    pub fn offsets(&self) -> &[f64] {
        &self.offsets
    }

    /// Adds the rows of a batch, row by row; `encoded` is memory to work in.
    ///
    /// # Privacy
    /// |v|² ≤ C for every row: Lemma G, docs/PRIVACY.md#exchange.
    pub fn encode(
        &self,
        values: &[Values<'_>],
        count: usize,
        encoded: &mut EncodedRows,
        rows: &mut Vec<i16>,
    ) {
        self.encoder.encode(values, count, encoded);
        let mut row = vec![0; self.width()];
        for at in 0..count {
            for (column, v) in row.iter_mut().enumerate() {
                *v = nearest_step(encoded.column(column)[at]);
            }
            pull_in(&mut row, self.norm);
            rows.extend(&row);
        }
    }
}

/// The nearest step, the one further from 0 in the middle of two.
fn nearest_step(q: i32) -> i16 {
    let steps = i16::try_from((q.unsigned_abs() + STEP / 2) / STEP).expect("|q| ≤ 2²¹ is 2¹¹ steps");
    if q < 0 { -steps } else { steps }
}

/// Moves the largest entry a step towards 0 until the row is in its ball, which rounding may have
/// left.
///
/// # Privacy
/// Ends only where Σv² ≤ C, and does end: Lemma G, docs/PRIVACY.md#exchange.
fn pull_in(row: &mut [i16], norm: u32) {
    let mut squares: u64 = row.iter().map(|v| u64::from(v.unsigned_abs()).pow(2)).sum();
    while squares > u64::from(norm) {
        let largest = row.iter_mut().max_by_key(|v| v.unsigned_abs()).expect("a row has columns");
        squares -= 2 * u64::from(largest.unsigned_abs()) - 1;
        *largest -= largest.signum();
    }
}

/// C in steps of a ball in units of 1/Q: half a step is added to the radius, so that the ends of a
/// single column are where rounding puts them.
fn in_steps(ball: Ball) -> Option<u32> {
    let radius = u128::from(ball.norm_squared().isqrt()) + u128::from(STEP / 2);
    let squared = radius * radius / u128::from(STEP).pow(2);
    u32::try_from(squared).ok().filter(|norm| (1..=LARGEST_NORM).contains(norm))
}

/// The centre next to this one that puts the value of an absent level on a step, and with it that
/// of a present one: levels are a whole number of steps apart.
fn on_a_step(absent: i32, centre: i32) -> i32 {
    absent - i32::from(nearest_step(absent - centre)) * STEP.cast_signed()
}

/// ⌈√(n²CC′)⌉ + 17σ + 2, which results lie within but for chance, if it can be searched.
pub fn range_of_products(people: u64, norms: [u32; 2], sigma: Sigma) -> Option<u64> {
    let square = BigUint::from(people).pow(2) * norms[0] * norms[1];
    let root = square.sqrt();
    let up = if &root * &root == square { root } else { root + 1_u32 };
    let range = up + BigUint::from(sigma.get()) * 17_u32 + 2_u32;
    u64::try_from(range).ok().filter(|&range| range < RANGE_LIMIT)
}

impl PartyPlan {
    /// Whether a party whose rows may have this norm can exchange their products at all.
    pub(super) fn check_exchange(&self, largest: Ball) -> Result<(), CalibratedError> {
        if self.layout().width() > MOST_EXCHANGED {
            return Err(CalibratedError::TooWideToExchange(self.layout().width()));
        }
        in_steps(largest).map(|_| ()).ok_or(CalibratedError::Range)
    }

    /// Whether all products with another party will be found, whatever both publish before.
    ///
    /// # Privacy
    /// Ranges and noise grow with norms, so what Lemma X1, docs/PRIVACY.md#exchange, asks of every
    /// result can be met if it can be for the largest norms.
    pub fn check_pair(&self, other: &Self) -> Result<(), CalibratedError> {
        let largest = |party: &Self| -> Result<u32, CalibratedError> {
            let ball = Ball::of_radius(party.plan().largest_norm(party.layout()))?;
            in_steps(ball).ok_or(CalibratedError::Range)
        };
        let norms = [largest(self)?, largest(other)?];
        let sigma = self.scale_of_pair(norms)?;
        range_of_products(self.rows(), norms, sigma).map(|_| ()).ok_or(CalibratedError::Range)
    }

    /// σ of the noise that each of two parties adds to their products.
    ///
    /// # Privacy
    /// All pairs of a party keep within its last share of μ²: Lemma X1, docs/PRIVACY.md#exchange.
    pub fn scale_of_pair(&self, norms: [u32; 2]) -> Result<Sigma, CalibratedError> {
        let budget = (self.plan().mu(), self.plan().share(3));
        Ok(scale_for_pair(norms, [budget; 2], self.plan().exchanging().unwrap_or(2))?)
    }

    /// How rows are encoded that are exchanged, from the noised sums of all three stages.
    pub fn exchanged_rows(&self, sums: &[Vec<i64>]) -> Result<ExchangedRows, CalibratedError> {
        let frame = self.frame(sums)?;
        let means = self.local_means(sums, &frame)?;
        let norm = in_steps(frame.ball).ok_or(CalibratedError::Range)?;
        let mut centres = Self::centres(&means);
        for ((centre, scaling), numeric) in
            centres.iter_mut().zip(&frame.scalings).zip(self.layout().numeric())
        {
            if !numeric {
                *centre = on_a_step(scaling.encode(0.0), *centre);
            }
        }
        let offsets =
            means.iter().zip(&centres).map(|(mean, &centre)| mean - f64::from(centre) / f64::from(Q));
        Ok(ExchangedRows { norm, offsets: offsets.collect(), encoder: self.centred(&frame, centres) })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{Layout, Plan};
    use super::*;
    use crate::accounting::{Delta, Epsilon, Mu, satisfies};
    use crate::encoding::{Bounds, Encoder, LevelCount};

    fn squares(row: &[i16]) -> u64 {
        row.iter().map(|v| u64::from(v.unsigned_abs()).pow(2)).sum()
    }

    proptest! {
        #[test]
        fn rows_on_the_grid_stay_in_their_ball(
            row in prop::collection::vec(-(1_i32 << 21)..=1 << 21, 1..40),
            norm in 1_u32..=LARGEST_NORM,
        ) {
            let mut steps: Vec<i16> = row.iter().map(|&q| nearest_step(q)).collect();
            let before = steps.clone();
            pull_in(&mut steps, norm);
            prop_assert!(squares(&steps) <= u64::from(norm));
            if squares(&before) <= u64::from(norm) {
                prop_assert_eq!(&before, &steps);
            }
            for (before, after) in before.iter().zip(&steps) {
                prop_assert!(after.unsigned_abs() <= before.unsigned_abs());
                prop_assert!(i32::from(*before) * i32::from(*after) >= 0, "no entry changes its sign");
            }
        }
    }

    #[test]
    fn levels_are_as_far_apart_on_the_grid_as_they_are() {
        let (mu, levels) = (mu(), Encoder::Categorical(LevelCount::new(2).unwrap()));
        let party = Plan::exchanged(100_000, mu, 2).unwrap().party(Layout::new(vec![levels])).unwrap();
        for share in [30_000, 44_321, 7_777] {
            let present = i64::from(Q) * share;
            let mut sums = vec![vec![present], vec![present]];
            let frame = party.frame(&sums).unwrap();
            let [absent, there] = [0.0, 1.0].map(|u| i64::from(frame.scalings[0].encode(u)));
            sums.push(vec![absent * (100_000 - share) + there * share, 0]);
            let rows = party.exchanged_rows(&sums).unwrap();
            let (mut encoded, mut found) = (EncodedRows::default(), Vec::new());
            rows.encode(&[Values::Levels(&[0, 1])], 2, &mut encoded, &mut found);
            assert_eq!(found[1] - found[0], 2 * GRID.cast_signed(), "{share}");
            let mean = f64::from(found[0]) + 2.0 * f64::from(GRID) * share as f64 / 100_000.0;
            assert!((mean / f64::from(GRID) - rows.offsets()[0]).abs() < 1e-3, "{share}");
            assert!(rows.offsets()[0].abs() <= 0.5 / f64::from(GRID) + 1e-6);
        }
    }

    #[test]
    fn values_go_to_the_nearest_step() {
        for (q, step) in [(0, 0), (511, 0), (512, 1), (1535, 1), (-511, 0), (-512, -1), (1 << 21, 1 << 11)] {
            assert_eq!(nearest_step(q), step, "{q}");
        }
    }

    #[test]
    fn the_range_is_rounded_up() {
        let range =
            |people, a, b, sigma| range_of_products(people, [a, b], Sigma::new(sigma).expect("in range"));
        assert_eq!(range(10, 4, 9, 1), Some(60 + 17 + 2));
        assert_eq!(range(1, 1, 2, 3), Some(2 + 51 + 2));
        assert_eq!(range((1 << 20) - 1, 1 << 20, 1 << 20, 1), Some((1 << 40) - (1 << 20) + 19));
        assert_eq!(range(1 << 20, 1 << 20, 1 << 20, 1), None);
        assert_eq!(range(9, 1, 1, 1 << 40), None);
    }

    fn party(columns: usize, rows: u64, parties: u16) -> Result<PartyPlan, CalibratedError> {
        let layout = Layout::new(vec![Encoder::Numeric(Bounds::new(0.0, 1.0).unwrap()); columns]);
        Plan::exchanged(rows, mu(), parties)?.party(layout)
    }

    fn mu() -> Mu {
        Mu::analytic(Epsilon::new(1.0).unwrap(), Delta::new(1e-5).unwrap()).unwrap()
    }

    #[test]
    fn there_are_three_stages_and_the_pairs_share_the_rest() {
        let party = party(2, 100_000, 4).unwrap();
        let mut sums = Vec::new();
        while let Some(stage) = party.stage(&sums).unwrap() {
            sums.push(vec![0; stage.coordinates()]);
        }
        assert_eq!(sums.len(), 3);
        let rows = party.exchanged_rows(&sums).unwrap();
        assert_eq!(rows.width(), 2);
        let sigma = party.scale_of_pair([rows.norm(), 700]).unwrap();
        let cost = 4 * u128::from(rows.norm()) * 700 * 3;
        let (mu, share) = (party.plan().mu(), party.plan().share(3));
        assert!(satisfies(sigma, mu, share, (cost, 1)));
        assert!(!satisfies(Sigma::new(sigma.get() - 1).unwrap(), mu, share, (cost, 1)));
    }

    #[test]
    fn what_cannot_be_proved_or_found_is_refused() {
        assert!(party(252, 1000, 2).is_ok());
        assert_eq!(party(253, 1000, 2), Err(CalibratedError::TooWideToExchange(253)));
        let few = party(20, 1_000_000, 3).unwrap();
        assert_eq!(few.check_pair(&few), Ok(()));
        // So many people that sums stay exact, but products cannot be searched.
        let mut many = (20..31).filter_map(|power| party(200, 1 << power, 3).ok());
        assert!(many.any(|many| many.check_pair(&many) == Err(CalibratedError::Range)));
    }
}
