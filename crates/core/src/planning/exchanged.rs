//! What to expect where products are exchanged.

use super::{PartyOutlook, Prospect, kept_by_ball, smallest_useful};
use crate::accounting::Mu;
use crate::calibrated::{Layout, Plan};

/// Variance of the noise in a sum of products of two parties over that of their squared norms, in
/// each one's factor: √2 of 2RR′√(m − 1)/μ_x, half of it in each.
pub(super) fn noise_of_pair(plan: &Plan) -> f64 {
    let partners = f64::from(plan.exchanging().unwrap_or(2).saturating_sub(1));
    (8.0 * partners).sqrt() / plan.stage_mu(3)
}

impl Prospect {
    /// The prospect of parties that exchange products: noise in a correlation is that of both over
    /// what the ball leaves of both columns.
    pub fn exchanged(plan: &Plan, parties: &[Layout]) -> Self {
        let rows = plan.rows() as f64;
        let of_pair = noise_of_pair(plan);
        let party = |layout: &Layout| {
            let width = layout.effective_width() as f64;
            let norm = plan.largest_norm(layout);
            let growth = norm / width.sqrt();
            // The second round sees a column that fills its box, ±3ρ standard deviations.
            let error = plan.round_error(layout);
            let resolved = 1.0 / (1.0 + 9.0 * growth * growth * error);
            let variance = resolved * kept_by_ball(width, growth);
            let local = 1.25 * norm * norm / (plan.stage_mu(2) * rows);
            PartyOutlook {
                columns: layout.width(),
                noise_ratio: of_pair * norm * norm / variance,
                local_noise: Some(local / variance),
            }
        };
        Self {
            rows,
            k: None,
            parties: parties.iter().map(party).collect(),
            people: vec![rows; parties.len()],
            shared: 1.0,
        }
    }
}

/// The smallest number of subjects at which an exchange of these columns becomes useful, if there
/// is one.
pub fn smallest_useful_rows_of_exchange(mu: Mu, parties: &[Layout]) -> Option<u64> {
    let count = u16::try_from(parties.len()).ok()?;
    smallest_useful(|rows| Ok(Prospect::exchanged(&Plan::exchanged(rows, mu, count)?, parties)))
}

#[cfg(test)]
mod tests {
    use super::super::{TYPICAL_SIGNAL, USEFUL, smallest_useful_rows};
    use super::*;
    use crate::accounting::{Delta, Epsilon};
    use crate::encoding::{Bounds, Encoder};

    #[test]
    fn an_exchange_needs_far_fewer_people() {
        let mu = Mu::analytic(Epsilon::new(1.0).unwrap(), Delta::new(1e-5).unwrap()).unwrap();
        let layout = Layout::new(vec![Encoder::Numeric(Bounds::new(0.0, 1.0).unwrap()); 2]);
        let layouts = vec![layout; 3];
        let exchanged = smallest_useful_rows_of_exchange(mu, &layouts).unwrap();
        let mixed = smallest_useful_rows(mu, |_| layouts.clone(), 1.0).unwrap();
        assert!(exchanged * 10 < mixed, "{exchanged} and {mixed}");
        let outlook = |rows| {
            let plan = Plan::exchanged(rows, mu, 3).unwrap();
            Prospect::exchanged(&plan, &layouts).outlook(TYPICAL_SIGNAL)
        };
        assert!(outlook(exchanged).recovered >= USEFUL && outlook(exchanged / 2).recovered < USEFUL);
        assert!(outlook(10 * exchanged).coefficient_error < outlook(exchanged).coefficient_error);
    }
}
