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

/// C in steps of a ball in units of 1/Q.
fn in_steps(ball: Ball) -> Option<u32> {
    let squared = ball.norm_squared() / u64::from(STEP).pow(2);
    u32::try_from(squared).ok().filter(|norm| (1..=LARGEST_NORM).contains(norm))
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
    /// Ranges and noise grow with norms, so the largest norms decide
    /// (docs/PRIVACY.md#sums-and-noise-stay-in-range).
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
        Ok(ExchangedRows { encoder: self.centred(&frame, &means), norm })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{Layout, Plan};
    use super::*;
    use crate::accounting::{Delta, Epsilon, Mu, satisfies};
    use crate::encoding::{Bounds, Encoder};

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
        let mu = Mu::analytic(Epsilon::new(1.0).unwrap(), Delta::new(1e-5).unwrap()).unwrap();
        let layout = Layout::new(vec![Encoder::Numeric(Bounds::new(0.0, 1.0).unwrap()); columns]);
        Plan::exchanged(rows, mu, parties)?.party(layout)
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
        let (few, many) = (party(20, 1_000_000, 3).unwrap(), party(200, 1 << 30, 3).unwrap());
        assert_eq!(few.check_pair(&few), Ok(()));
        assert_eq!(many.check_pair(&few), Err(CalibratedError::Range));
    }
}
