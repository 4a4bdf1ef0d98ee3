//! What public facts determine for all parties: shares of the budget, and how many rows are mixed.

use num_bigint::BigUint;

use super::{CalibratedError, Layout, PartyPlan, STAGES};
use crate::accounting::{Mu, SHARES, Share, Shares, SharesError};

/// Smallest and largest part of μ² that goes to standardisation and moments.
const LOCAL_PART: (f64, f64) = (0.05, 0.5);
/// The row norm grows once μ√(n/d_e) exceeds this.
const GROWTH_START: f64 = 200.0;
/// A quarter of what goes to standardisation and moments where products are exchanged: 0.3 of μ² in
/// all.
const EXCHANGE_LOCAL_QUARTER: u32 = SHARES / 40 * 3;
/// The row norm then grows once nμ/(d_e√m) exceeds this, and up to so many times.
const EXCHANGE_GROWTH_START: f64 = 800.0;
const EXCHANGE_GROWTH_END: f64 = 3.0;

/// What public facts determine for all parties of a calibrated release.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    rows: u64,
    mu: Mu,
    shares: Shares,
    between: Between,
}

/// How columns of different parties come together.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Between {
    /// In k mixed rows of each party.
    Mixed { k: u64 },
    /// In products that every two of so many parties exchange.
    Exchanged { parties: u16 },
}

impl Plan {
    /// The plan for n = `rows` subjects, in format 2 about so many, and parties with these columns;
    /// k follows unless it is given.
    pub fn new(rows: u64, mu: Mu, parties: &[Layout], k: Option<u64>) -> Result<Self, CalibratedError> {
        let shares = shares(rows, mu, parties.iter().map(Layout::width).max().unwrap_or(1))?;
        let mut plan = Self { rows, mu, shares, between: Between::Mixed { k: 1 } };
        let cohorts = parties.iter().filter(|layout| layout.presence().is_some()).count();
        if cohorts != 0 && cohorts != parties.len() {
            return Err(CalibratedError::Formats);
        }
        let rule = || if cohorts == 0 { plan.mixed_rows(parties) } else { plan.buckets(parties) };
        plan.between = Between::Mixed { k: k.unwrap_or_else(rule) };
        Ok(plan)
    }

    /// The plan for n = `rows` subjects whose columns every two of so many parties exchange.
    ///
    /// # Privacy
    /// Three stages and all pairs of a party together are four shares, which sum to the whole:
    /// Lemma X1, docs/PRIVACY.md#exchange, is about the fourth.
    pub fn exchanged(rows: u64, mu: Mu, parties: u16) -> Result<Self, CalibratedError> {
        let quarter = EXCHANGE_LOCAL_QUARTER;
        let shares = Shares::new(&[quarter, quarter, 2 * quarter, SHARES - 4 * quarter])?;
        Ok(Self { rows, mu, shares, between: Between::Exchanged { parties } })
    }

    /// The plan with shares and k as given, whatever rule they came from: a party that comes later
    /// takes those of the parties before it.
    ///
    /// # Privacy
    /// Nothing else that other parties have enters a party's noise, and the noise keeps every stage
    /// within its share whatever the shares and k are; [`Shares`] sum to the whole (Theorem 6,
    /// docs/PRIVACY.md#latecomers).
    pub fn given(rows: u64, mu: Mu, shares: &Shares, k: u64) -> Result<Self, CalibratedError> {
        match shares.as_slice().len() {
            count if count == STAGES.len() => {
                Ok(Self { rows, mu, shares: shares.clone(), between: Between::Mixed { k } })
            }
            count => Err(CalibratedError::Stages(count)),
        }
    }

    /// The plan of one party.
    pub fn party(&self, layout: Layout) -> Result<PartyPlan, CalibratedError> {
        PartyPlan::new(self.clone(), layout)
    }

    /// Shares of μ² of the four stages; the last one is that of all pairs where products are
    /// exchanged.
    pub fn shares(&self) -> &Shares {
        &self.shares
    }

    /// Number of mixed rows; 0 where products are exchanged.
    pub fn k(&self) -> u64 {
        match self.between {
            Between::Mixed { k } => k,
            Between::Exchanged { .. } => 0,
        }
    }

    /// How many parties exchange products, if they do.
    pub fn exchanging(&self) -> Option<u16> {
        match self.between {
            Between::Mixed { .. } => None,
            Between::Exchanged { parties } => Some(parties),
        }
    }

    /// n: number of subjects; in format 2 about how many there are.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// The number of subjects of one party: n, or in format 2 its own Nᵢ.
    pub(super) fn rows_of(&self, layout: &Layout) -> u64 {
        layout.rows().unwrap_or(self.rows)
    }

    /// μ of the whole release.
    pub(super) fn mu(&self) -> Mu {
        self.mu
    }

    /// The share of a stage.
    pub(super) fn share(&self, stage: usize) -> Share {
        self.shares.as_slice()[stage]
    }

    /// μ_q of a stage.
    pub fn stage_mu(&self, stage: usize) -> f64 {
        self.mu.to_f64() * (f64::from(self.share(stage).parts()) / f64::from(SHARES)).sqrt()
    }

    /// ρ: by how much row norms and boxes of a party exceed their smallest; clipping fades as n
    /// grows.
    pub(super) fn growth(&self, layout: &Layout) -> f64 {
        let (rows, width) = (self.rows_of(layout) as f64, layout.effective_width() as f64);
        match self.between {
            Between::Mixed { .. } => {
                let signal = self.mu.to_f64() * (rows / width).sqrt();
                (signal / GROWTH_START).sqrt().max(1.0)
            }
            Between::Exchanged { parties } => {
                let signal = rows * self.mu.to_f64() / (width * f64::from(parties).sqrt());
                (signal / EXCHANGE_GROWTH_START).sqrt().sqrt().clamp(1.0, EXCHANGE_GROWTH_END)
            }
        }
    }

    /// The largest row norm that a party can have.
    pub fn largest_norm(&self, layout: &Layout) -> f64 {
        self.growth(layout) * (layout.effective_width() as f64).sqrt()
    }

    /// Standard deviation of the noise in a mean square of a standardisation round, in units of its
    /// window.
    pub fn round_error(&self, layout: &Layout) -> f64 {
        (layout.change_squared() as f64 / 2.77).sqrt() / (self.stage_mu(0) * self.rows_of(layout) as f64)
    }

    /// k: where the noise in the mixed rows of a typical column equals what mixing itself adds.
    fn mixed_rows(&self, parties: &[Layout]) -> u64 {
        let mut noise: Vec<f64> = Vec::new();
        for layout in parties {
            let noise_level = 2.0 * self.largest_norm(layout) / self.stage_mu(3);
            let variance = noise_level * noise_level;
            noise.extend(std::iter::repeat_n(variance, layout.width()));
        }
        noise.sort_by(f64::total_cmp);
        let middle = noise.len() / 2;
        let median = if noise.len().is_multiple_of(2) {
            f64::midpoint(noise[middle - 1], noise[middle])
        } else {
            noise[middle]
        };
        let rule = (self.rows as f64 / median).floor() as u64;
        rule.max(3 * noise.len() as u64).min(self.rows)
    }

    /// k of format 2: the geometric mean over encoded columns of Nᵢ/ςᵢ², which is best for a pair
    /// of columns on average; at least three rows a published column, at most the smallest Nᵢ.
    ///
    /// Whole numbers and their root, so that it is the same everywhere.
    fn buckets(&self, parties: &[Layout]) -> u64 {
        let (mut product, mut columns) = (BigUint::from(1_u32), 0_u32);
        for layout in parties {
            let noise_level = 2.0 * self.largest_norm(layout) / self.stage_mu(3);
            let rule = (self.rows_of(layout) as f64 / (noise_level * noise_level)).floor() as u64;
            let width = layout.width() as u32;
            product *= BigUint::from(rule.max(1)).pow(width);
            columns += width;
        }
        let rule = u64::try_from(product.nth_root(columns.max(1))).unwrap_or(u64::MAX);
        let published = u64::from(columns) + parties.len() as u64;
        let fewest = parties.iter().map(|layout| self.rows_of(layout)).min().unwrap_or(self.rows);
        rule.max(3 * published).min(fewest)
    }
}

/// Parts of μ²: two standardisation rounds, moments, mixed rows.
fn shares(rows: u64, mu: Mu, widest: usize) -> Result<Shares, SharesError> {
    let need = GROWTH_START * widest as f64 / (rows as f64 * mu.to_f64());
    let local = (need * need).clamp(LOCAL_PART.0, LOCAL_PART.1);
    // A multiple of 4, so that its parts are whole.
    let quarter = (local * f64::from(SHARES) / 4.0).round() as u32;
    Shares::new(&[quarter, quarter, 2 * quarter, SHARES - 4 * quarter])
}

#[cfg(test)]
mod tests {
    use super::super::Declared;
    use super::*;
    use crate::accounting::{Delta, Epsilon, satisfies};
    use crate::encoding::{Bounds, Encoder, Q};

    fn layout(columns: usize) -> Layout {
        Layout::new(vec![Encoder::Numeric(Bounds::new(0.0, 1.0).unwrap()); columns])
    }

    fn mu() -> Mu {
        Mu::analytic(Epsilon::new(1.0).unwrap(), Delta::new(1e-5).unwrap()).unwrap()
    }

    fn cohort(columns: usize, rows: u64) -> Layout {
        let encoders = vec![Encoder::Numeric(Bounds::new(0.0, 1.0).unwrap()); columns];
        let declared = Declared { may_miss: true, typical: None };
        Layout::of_cohort(encoders, &vec![declared; columns], rows)
    }

    #[test]
    fn buckets_are_the_geometric_mean_of_what_each_column_would_choose() {
        let k = |parties: &[Layout]| Plan::new(1_000_000, mu(), parties, None).unwrap().k();
        let alone = |rows: u64| k(&[cohort(1, rows), cohort(1, rows)]) as f64;
        let together = k(&[cohort(1, 4_000_000), cohort(1, 1_000_000)]) as f64;
        assert!((together / (alone(4_000_000) * alone(1_000_000)).sqrt() - 1.0).abs() < 0.01);
        assert_eq!(k(&[cohort(30, 1_000), cohort(30, 1_000)]), 3 * 62);
        assert_eq!(k(&[cohort(30, 100), cohort(30, 1_000)]), 100);
    }

    #[test]
    fn parties_of_one_study_have_one_format() {
        let mixed = [layout(1), cohort(1, 1000)];
        assert_eq!(Plan::new(1000, mu(), &mixed, None), Err(CalibratedError::Formats));
    }

    #[test]
    fn given_shares_and_k_are_all_that_a_party_takes_from_the_others() {
        let (narrow, wide) = ([layout(2)], [layout(2), layout(90)]);
        for parties in [&narrow[..], &wide[..]] {
            let plan = Plan::new(100_000, mu(), parties, None).unwrap();
            let given = Plan::given(100_000, mu(), plan.shares(), plan.k()).unwrap();
            assert_eq!(given, plan);
            assert_eq!(given.party(layout(7)).unwrap(), plan.party(layout(7)).unwrap());
        }
        let plan = |parties: &[Layout]| Plan::new(100_000, mu(), parties, None).unwrap();
        assert_ne!(plan(&narrow).shares(), plan(&wide).shares(), "the rule looks at the widest party");
        let two = Shares::new(&[SHARES / 2; 2]).unwrap();
        assert_eq!(Plan::given(100_000, mu(), &two, 100), Err(CalibratedError::Stages(2)));
    }

    /// Both rounds have the same noise, so it has to do for the smaller of two shares that differ.
    #[test]
    fn both_rounds_keep_within_their_shares_whatever_these_are() {
        for (first, second) in [(1 << 10, 1 << 16), (1 << 16, 1 << 10)] {
            let shares = Shares::new(&[first, second, 1 << 18, SHARES - first - second - (1 << 18)]).unwrap();
            let party = Plan::given(100_000, mu(), &shares, 100).unwrap().party(layout(3)).unwrap();
            let change = 4 * 3 * u128::from(Q.unsigned_abs()).pow(2);
            for &share in &shares.as_slice()[..2] {
                assert!(satisfies(party.round_noise().sum, mu(), share, (change, 1)));
            }
        }
    }
}
