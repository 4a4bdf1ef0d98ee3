//! Planning: how accurate regressions will be, from public facts only.
//!
//! What standard errors of coefficients to expect is a range ([`forecast`]); how much of what can
//! be explained is recovered, one number.
//!
//! The learner's variance formulas need the strength of the signal and the spread of the columns,
//! which nobody may look at. So the outlook is for a typical table: columns are bell-shaped,
//! uncorrelated and well inside their bounds, and all features together explain a given share of
//! the label (docs/LEARNERS.md#planning). It is checked against simulated releases (`cargo run
//! --release -p potluck-lab -- planning`).

mod exchanged;
pub mod forecast;

use crate::accounting::Mu;
use crate::calibrated::{CalibratedError, Layout, Plan};

/// The signal that the outlook assumes: half of the label's variance is explained.
pub const TYPICAL_SIGNAL: f64 = 0.5;
/// A fit is useful if it recovers at least this part of the signal …
pub const USEFUL: f64 = 0.5;
/// … and no better than predicting the mean if it recovers less than this.
pub const FUTILE: f64 = 0.1;

/// Variance of a column that spreads evenly over its public range, in encoded units.
const EVEN_VARIANCE: f64 = 1.0 / 3.0;
/// Variance of R² over that of the products of label and prediction: 4 of the products themselves,
/// the rest of learning from four fifths of the rows.
const JUDGEMENT: f64 = 5.6;
/// Smallest share of their people that parties are planned to have in common.
const MOST_APART: f64 = 0.005;
/// Studies with more subjects than this are not planned.
const MOST_ROWS: f64 = 1e12;

/// The columns of one party as they will be released; they are all alike.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PartyOutlook {
    /// Number of encoded columns.
    pub columns: usize,
    /// Noise variance in a mixed row over a column's own variance.
    pub noise_ratio: f64,
    /// Standard deviation of the noise in a local covariance over a column's variance; nothing if
    /// none is published.
    pub local_noise: Option<f64>,
}

/// How a study will be released.
#[derive(Debug, Clone, PartialEq)]
pub struct Prospect {
    rows: f64,
    /// Mixed rows; none where products are exchanged.
    k: Option<f64>,
    parties: Vec<PartyOutlook>,
    /// How many people each party has, and which share of the smaller one's two have in common.
    people: Vec<f64>,
    shared: f64,
}

/// What to expect of a regression of one column on all others, averaged over the choice of the
/// label.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Outlook {
    /// Typical standard error of a coefficient, in standard deviations of the label for one of the
    /// feature.
    pub coefficient_error: f64,
    /// The same for the party whose columns fare worst.
    pub worst_coefficient_error: f64,
    /// Part of the explainable variance that the fit will explain.
    pub recovered: f64,
    /// Standard error of R².
    pub r_squared_error: f64,
}

impl Prospect {
    /// The prospect of a calibrated release.
    pub fn calibrated(plan: &Plan, parties: &[Layout]) -> Self {
        let rows = plan.rows() as f64;
        let people_of = |layout: &Layout| layout.rows().map_or(rows, |rows| rows as f64);
        let party = |layout: &Layout| {
            let width = layout.effective_width() as f64;
            let norm = plan.largest_norm(layout);
            let growth = norm / width.sqrt();
            // The second round sees a column that fills its box, ±3ρ standard deviations.
            let error = plan.round_error(layout);
            let resolved = 1.0 / (1.0 + 9.0 * growth * growth * error);
            let variance = resolved * kept_by_ball(width, growth);
            let mixed = (2.0 * norm / plan.stage_mu(3)).powi(2);
            let local = 1.25 * norm * norm / (plan.stage_mu(2) * people_of(layout));
            PartyOutlook {
                columns: layout.width(),
                noise_ratio: mixed / variance,
                local_noise: Some(local / variance),
            }
        };
        Self {
            rows,
            k: Some(plan.k() as f64),
            parties: parties.iter().map(party).collect(),
            people: parties.iter().map(people_of).collect(),
            shared: 1.0,
        }
    }

    /// The same if any two parties have this share of the smaller one's people in common. People
    /// whom a party shares with no other only add noise.
    #[must_use]
    pub fn with_overlap(self, share: f64) -> Self {
        let fewest = self.people.iter().copied().fold(f64::INFINITY, f64::min).min(self.rows);
        let shared = share.clamp(MOST_APART, 1.0);
        Self { rows: fewest * shared, shared, ..self }
    }

    /// The prospect of a release of mixed rows alone: k rows, and by party the number of columns
    /// and the noise in them.
    pub fn mixed(rows: u64, k: u64, parties: &[(usize, f64)]) -> Self {
        let party = |&(columns, noise): &(usize, f64)| PartyOutlook {
            columns,
            noise_ratio: noise * noise / EVEN_VARIANCE,
            local_noise: None,
        };
        let people = vec![rows as f64; parties.len()];
        Self {
            rows: rows as f64,
            k: Some(k as f64),
            parties: parties.iter().map(party).collect(),
            people,
            shared: 1.0,
        }
    }

    /// How much of what a release says of a typical column of each party is noise: of the variance
    /// of a mixed row, or of the square of a correlation of 1 that was exchanged.
    pub fn noise_shares(&self) -> impl Iterator<Item = f64> {
        let signal = self.k.map_or(self.rows, |k| self.rows / k);
        self.parties.iter().map(move |party| party.noise_ratio / (party.noise_ratio + signal))
    }

    /// The parties, in order.
    pub fn parties(&self) -> &[PartyOutlook] {
        &self.parties
    }

    /// Variance of the estimated correlation of two columns of these parties.
    fn variance(&self, one: usize, other: usize) -> f64 {
        match self.parties[one].local_noise {
            Some(noise) if one == other => 2.0 * noise * noise,
            _ => {
                // Where products are exchanged, there is noise alone.
                let held = |party: usize| self.k.map_or(0.0, |k| self.people[party] / k);
                let spread = |party: usize| held(party) + self.parties[party].noise_ratio;
                let both = self.shared * self.people[one].min(self.people[other]);
                self.k.unwrap_or(1.0) / (both * both) * spread(one) * spread(other)
            }
        }
    }

    /// What to expect if all features together explain `signal` of the label's variance.
    pub fn outlook(&self, signal: f64) -> Outlook {
        let count = |party: usize| self.parties[party].columns as f64;
        let all: f64 = (0..self.parties.len()).map(count).sum();
        let mut by_party = vec![(0.0, 0.0); self.parties.len()];
        let (mut recovered, mut r_squared) = (0.0, 0.0);
        for label in 0..self.parties.len() {
            let expected = self.with_label(label, signal);
            for (party, (sum, pairs)) in by_party.iter_mut().enumerate() {
                let features = count(label) * (count(party) - f64::from(party == label));
                *sum += features * expected.variances[party];
                *pairs += features;
            }
            recovered += count(label) * expected.recovered;
            r_squared += count(label) * expected.r_squared_error;
        }
        let errors: f64 = by_party.iter().map(|(sum, _)| sum).sum();
        let worst = by_party.iter().filter(|(_, pairs)| *pairs > 0.0).map(|(sum, pairs)| sum / pairs);
        Outlook {
            coefficient_error: (errors / (all * (all - 1.0))).sqrt(),
            worst_coefficient_error: worst.fold(0.0, f64::max).sqrt(),
            recovered: recovered / all,
            r_squared_error: r_squared / all,
        }
    }

    /// What to expect with a column of this party as the label.
    fn with_label(&self, label: usize, signal: f64) -> WithLabel {
        let parties = self.parties.len();
        // Features of each party, and of all.
        let counts: Vec<f64> = (0..parties)
            .map(|party| self.parties[party].columns as f64 - f64::from(party == label))
            .collect();
        let features: f64 = counts.iter().sum();
        let each = signal / features;
        let variance = |party: usize| {
            // Every other feature's share of the label passes through a correlation that is noisy,
            // too.
            let crossed = (0..parties).map(|other| {
                let v = self.variance(party, other);
                let kept = shrinkage(1.0 / features, v);
                let one = kept * kept * v + (1.0 - kept).powi(2) / features * shrinkage(v, 1.0 / features);
                (counts[other] - f64::from(other == party)).max(0.0) * each * one
            });
            self.variance(party, label) + crossed.sum::<f64>() + (1.0 - signal) / self.rows
        };
        let variances: Vec<f64> = (0..parties).map(variance).collect();

        // How large effects are is itself learned from the features; where they say little, the
        // prior decides.
        let over = |value: &dyn Fn(usize) -> f64| -> f64 {
            (0..parties).map(|party| counts[party] * value(party)).sum()
        };
        let known = over(&|party| shrinkage(each, variances[party]).powi(2)) / 4.0;
        let size = (known * each + prior_effect(features)) / (1.0 + known);
        let kept = |party: usize| shrinkage(size, variances[party]);
        let weight_squared = |party: usize| kept(party).powi(2) * (each + variances[party]);
        let explained = over(&|party| 2.0 * kept(party) * each - weight_squared(party));
        let noise = over(&|party| weight_squared(party) * self.variance(party, label));
        let sampling = 4.0 * signal * (1.0 - signal).powi(2) / self.rows;
        WithLabel {
            variances,
            recovered: (explained / signal).max(0.0),
            r_squared_error: (JUDGEMENT * noise + sampling).sqrt(),
        }
    }
}

/// What to expect with a column of one party as the label.
struct WithLabel {
    /// Variances of the coefficients of each party's features.
    variances: Vec<f64>,
    recovered: f64,
    r_squared_error: f64,
}

/// Mean prior variance of an effect, as the learner has it before it sees anything.
fn prior_effect(features: f64) -> f64 {
    const SHARES: [f64; 4] = [1.0, 0.5, 0.25, 0.1];
    // A grid of equal ratios from 0.01 to 1 has this mean.
    const GRID_MEAN: f64 = 0.22;
    let of_share = |share: &f64| share * share * (2.0 / (features * share)).min(0.3);
    0.9 * GRID_MEAN * SHARES.iter().map(of_share).sum::<f64>() / SHARES.iter().sum::<f64>()
}

/// The part of a signal of variance `signal` that is kept of an estimate with this error.
fn shrinkage(signal: f64, error: f64) -> f64 {
    signal / (signal + error)
}

/// E[min(χ²_d, ρ²d)]/d: the variance that a ball of radius ρ√d leaves of a bell-shaped row.
pub(crate) fn kept_by_ball(d: f64, growth: f64) -> f64 {
    let limit = growth * growth;
    let half = d / 2.0;
    let x = limit * half;
    lower_gamma(half + 1.0, x) + limit * (1.0 - lower_gamma(half, x))
}

/// The regularised lower incomplete gamma function P(a, x), by its series.
fn lower_gamma(a: f64, x: f64) -> f64 {
    let mut term = 1.0 / a;
    let mut sum = term;
    let mut n = a;
    while term > sum * 1e-14 {
        n += 1.0;
        term *= x / n;
        sum += term;
    }
    (sum.ln() + a * x.ln() - x - libm::lgamma(a)).exp().min(1.0)
}

pub use exchanged::smallest_useful_rows_of_exchange;

/// The smallest number of subjects at which a calibrated release of these columns becomes useful,
/// if there is one: `parties` says how they are laid out for so many, `overlap` what any two have
/// in common.
pub fn smallest_useful_rows(mu: Mu, parties: impl Fn(u64) -> Vec<Layout>, overlap: f64) -> Option<u64> {
    smallest_useful(|rows| {
        let parties = parties(rows);
        let plan = Plan::new(rows, mu, &parties, None)?;
        Ok(Prospect::calibrated(&plan, &parties).with_overlap(overlap))
    })
}

/// The smallest number of subjects at which what is expected becomes useful, if there is one.
fn smallest_useful(prospect: impl Fn(u64) -> Result<Prospect, CalibratedError>) -> Option<u64> {
    let useful = |rows: f64| -> Result<bool, CalibratedError> {
        Ok(prospect(rows as u64)?.outlook(TYPICAL_SIGNAL).recovered >= USEFUL)
    };
    let (mut low, mut high) = (2.0_f64, MOST_ROWS);
    if !useful(high).unwrap_or(false) {
        return None;
    }
    // Two digits are more than the assumptions deserve.
    while high / low > 1.01 {
        let middle = (low * high).sqrt();
        if useful(middle).unwrap_or(false) {
            high = middle;
        } else {
            low = middle;
        }
    }
    let digit = 10_f64.powf(high.log10().floor() - 1.0);
    Some(((high / digit).ceil() * digit) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accounting::{Delta, Epsilon};
    use crate::calibrated::Declared;
    use crate::encoding::{Bounds, Encoder};

    fn layouts() -> Vec<Layout> {
        let column = || Encoder::Numeric(Bounds::new(0.0, 1.0).unwrap());
        vec![
            Layout::new(vec![column(), column()]),
            Layout::new(vec![column(), column()]),
            Layout::new(vec![column()]),
        ]
    }

    fn outlook(epsilon: f64, rows: u64) -> Outlook {
        let mu = Mu::analytic(Epsilon::new(epsilon).unwrap(), Delta::new(1e-5).unwrap()).unwrap();
        let layouts = layouts();
        let plan = Plan::new(rows, mu, &layouts, None).unwrap();
        Prospect::calibrated(&plan, &layouts).outlook(TYPICAL_SIGNAL)
    }

    #[test]
    fn more_people_and_more_budget_are_better() {
        for (better, worse) in
            [(outlook(1.0, 100_000), outlook(1.0, 10_000)), (outlook(1.0, 100_000), outlook(0.3, 100_000))]
        {
            assert!(better.coefficient_error < worse.coefficient_error);
            assert!(better.recovered > worse.recovered);
        }
    }

    #[test]
    fn the_smallest_useful_size_is_where_the_outlook_becomes_useful() {
        let mu = Mu::analytic(Epsilon::new(1.0).unwrap(), Delta::new(1e-5).unwrap()).unwrap();
        let rows = smallest_useful_rows(mu, |_| layouts(), 1.0).unwrap();
        assert!(outlook(1.0, rows).recovered >= USEFUL);
        assert!(outlook(1.0, rows / 2).recovered < USEFUL);
    }

    #[test]
    fn people_whom_parties_do_not_share_only_add_noise() {
        let mu = Mu::analytic(Epsilon::new(1.0).unwrap(), Delta::new(1e-5).unwrap()).unwrap();
        let column = || Encoder::Numeric(Bounds::new(0.0, 1.0).unwrap());
        let declared = [Declared { may_miss: true, typical: None }];
        let error = |people: [u64; 2], overlap: f64| {
            let layouts = people.map(|rows| Layout::of_cohort(vec![column()], &declared, rows));
            let plan = Plan::new(people[0], mu, &layouts, None).unwrap();
            Prospect::calibrated(&plan, &layouts).with_overlap(overlap).outlook(0.5).coefficient_error
        };
        let all = error([100_000, 100_000], 1.0);
        // Errors grow about as the share falls, and with people whom only one party has.
        let half = error([100_000, 100_000], 0.5);
        assert!((1.8..2.3).contains(&(half / all)), "{}", half / all);
        assert!(error([100_000, 400_000], 1.0) > 1.05 * all);
    }

    #[test]
    fn the_ball_keeps_what_chi_squared_says() {
        // d = 2: E[min(χ², 2)]/2 = 1 − 1/e.
        assert!((kept_by_ball(2.0, 1.0) - (1.0 - (-1.0_f64).exp())).abs() < 1e-12);
        assert!((kept_by_ball(5.0, 4.0) - 1.0).abs() < 1e-6);
    }
}
