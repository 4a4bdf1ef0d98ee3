//! What public facts determine for all parties: shares of the budget, and how many rows are mixed.

use super::{CalibratedError, Layout, PartyPlan, STAGES};
use crate::accounting::{Mu, SHARES, Share, Shares, SharesError};

/// Smallest and largest part of μ² that goes to standardisation and moments.
const LOCAL_PART: (f64, f64) = (0.05, 0.5);
/// The row norm grows once μ√(n/d_e) exceeds this.
const GROWTH_START: f64 = 200.0;

/// What public facts determine for all parties of a calibrated release.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    rows: u64,
    mu: Mu,
    shares: Shares,
    k: u64,
}

impl Plan {
    /// The plan for n = `rows` subjects and parties with these columns; k follows unless it is
    /// given.
    pub fn new(rows: u64, mu: Mu, parties: &[Layout], k: Option<u64>) -> Result<Self, CalibratedError> {
        let shares = shares(rows, mu, parties.iter().map(Layout::width).max().unwrap_or(1))?;
        let mut plan = Self { rows, mu, shares, k: 1 };
        plan.k = k.unwrap_or_else(|| plan.mixed_rows(parties));
        Ok(plan)
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
            count if count == STAGES.len() => Ok(Self { rows, mu, shares: shares.clone(), k }),
            count => Err(CalibratedError::Stages(count)),
        }
    }

    /// The plan of one party.
    pub fn party(&self, layout: Layout) -> Result<PartyPlan, CalibratedError> {
        PartyPlan::new(self.clone(), layout)
    }

    /// Shares of μ² of the four stages.
    pub fn shares(&self) -> &Shares {
        &self.shares
    }

    /// Number of mixed rows.
    pub fn k(&self) -> u64 {
        self.k
    }

    /// n: number of subjects.
    pub fn rows(&self) -> u64 {
        self.rows
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
        let signal = self.mu.to_f64() * (self.rows as f64 / layout.effective_width() as f64).sqrt();
        (signal / GROWTH_START).sqrt().max(1.0)
    }

    /// The largest row norm that a party can have.
    pub fn largest_norm(&self, layout: &Layout) -> f64 {
        self.growth(layout) * (layout.effective_width() as f64).sqrt()
    }

    /// Standard deviation of the noise in a mean square of a standardisation round, in units of its
    /// window.
    pub fn round_error(&self, layout: &Layout) -> f64 {
        (layout.change_squared() as f64 / 2.77).sqrt() / (self.stage_mu(0) * self.rows as f64)
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
    use super::*;
    use crate::accounting::{Delta, Epsilon, satisfies};
    use crate::encoding::{Bounds, Encoder, Q};

    fn layout(columns: usize) -> Layout {
        Layout::new(vec![Encoder::Numeric(Bounds::new(0.0, 1.0).unwrap()); columns])
    }

    fn mu() -> Mu {
        Mu::analytic(Epsilon::new(1.0).unwrap(), Delta::new(1e-5).unwrap()).unwrap()
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
