//! The stages of one party.

use super::frame::Standard;
use super::noise::mixed_noise;
use super::{CalibratedError, Frame, Layout, MomentNoise, Plan, RoundNoise, STAGES};
use crate::encoding::{Ball, LARGEST_SCALED, Q, RowEncoder, Scaling, round_half_away};
use crate::mixing::Mixing;
use crate::noise::{Sigma, SigmaError};
use crate::stage::{Stage, Statistic, moment_count};

/// Most moments that a party may publish: they stand in the manifest.
const MOST_MOMENTS: usize = 1 << 21;

/// What public facts determine for one party.
#[derive(Clone, Debug, PartialEq)]
pub struct PartyPlan {
    pub(super) plan: Plan,
    pub(super) layout: Layout,
    /// ρ.
    pub(super) growth: f64,
    pub(super) round: RoundNoise,
}

impl PartyPlan {
    /// The plan of a party with these columns.
    ///
    /// # Privacy
    /// Both rounds have the noise that the smaller of their shares needs. Whatever is published
    /// later, noise and sums stay in the range for which Lemma B and Theorem 3 are proved:
    /// n·C < 2⁶², and every scale is below 2⁵³, for the largest C that any results can give
    /// (docs/PRIVACY.md#sums-and-noise-stay-in-range).
    pub(super) fn new(plan: Plan, layout: Layout) -> Result<Self, CalibratedError> {
        let round = RoundNoise::new(plan.mu(), plan.share(0).min(plan.share(1)), &layout)?;
        if moment_count(layout.width()) > MOST_MOMENTS {
            return Err(CalibratedError::TooWide);
        }
        let party = Self { growth: plan.growth(&layout), plan, layout, round };
        let largest = Ball::of_radius(party.plan.largest_norm(&party.layout))?;
        party.moment_noise(largest)?;
        party.mixed_noise(largest)?;
        if u128::from(party.plan.rows()) * u128::from(largest.norm_squared()) >= 1 << 62 {
            return Err(CalibratedError::Overflow);
        }
        Ok(party)
    }

    /// The party's columns.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The plan of all parties.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Noise of both standardisation rounds.
    pub fn round_noise(&self) -> RoundNoise {
        self.round
    }

    /// Noise of the local moments of rows in this ball.
    pub(crate) fn moment_noise(&self, ball: Ball) -> Result<MomentNoise, SigmaError> {
        MomentNoise::new(self.plan.mu(), self.plan.share(2), ball)
    }

    /// Noise of the mixed rows in this ball.
    fn mixed_noise(&self, ball: Ball) -> Result<Sigma, SigmaError> {
        mixed_noise(self.plan.mu(), self.plan.share(3), ball)
    }

    /// The largest row norm, and with it the largest noise in the mixed rows, in standardised
    /// units.
    pub fn largest_noise(&self) -> (f64, f64) {
        let norm = self.plan.largest_norm(&self.layout);
        (norm, 2.0 * norm / self.plan.stage_mu(3))
    }

    /// The next stage, given the noised sums of those before it; nothing after the last.
    ///
    /// # Privacy
    /// Each stage keeps within its share of μ² whatever the earlier sums are: Lemma S, Lemma L and
    /// Theorem M of docs/PRIVACY.md#calibrated; by Theorem 4 of docs/PRIVACY.md#composition the
    /// release keeps within μ².
    pub fn stage(&self, earlier: &[Vec<i64>]) -> Result<Option<Stage>, CalibratedError> {
        Ok(match earlier.len() {
            0 => Some(self.standardise(0, &self.before())),
            1 => Some(self.standardise(1, &self.first_round(earlier)?)),
            2 => Some(self.moments(&self.frame(earlier)?)?),
            3 => {
                let frame = self.frame(earlier)?;
                let means = self.local_means(earlier, &frame)?;
                Some(self.mixed(&frame, &means)?)
            }
            _ => None,
        })
    }

    fn standardise(&self, position: usize, before: &[Standard]) -> Stage {
        let scalings: Vec<Scaling> = before.iter().map(Standard::stretched).collect();
        let squares = self.layout.squares();
        let mut noise = vec![(self.layout.width(), self.round.sum)];
        if !squares.is_empty() {
            noise.push((squares.len(), self.round.square));
        }
        Stage {
            name: STAGES[position],
            share: self.plan.share(position),
            encoder: RowEncoder::new(self.layout.encoders(), &scalings),
            statistic: Statistic::Standardise { squares },
            noise,
        }
    }

    fn moments(&self, frame: &Frame) -> Result<Stage, CalibratedError> {
        let noise = self.moment_noise(frame.ball)?;
        let width = self.layout.width();
        let mut runs = vec![(width, noise.sum), (width, noise.square)];
        if width > 1 {
            runs.push((width * (width - 1) / 2, noise.product));
        }
        Ok(Stage {
            name: STAGES[2],
            share: self.plan.share(2),
            encoder: RowEncoder::new(self.layout.encoders(), &frame.scalings).within(frame.ball),
            statistic: Statistic::Moments,
            noise: runs,
        })
    }

    fn mixed(&self, frame: &Frame, means: &[f64]) -> Result<Stage, CalibratedError> {
        let centre = |mean: &f64| round_half_away(mean * f64::from(Q)).clamp(-LARGEST_SCALED, LARGEST_SCALED);
        let encoder = RowEncoder::new(self.layout.encoders(), &frame.scalings)
            .within(frame.ball)
            .about(means.iter().map(centre).collect());
        let k = self.plan.k();
        Ok(Stage {
            name: STAGES[3],
            share: self.plan.share(3),
            encoder,
            statistic: Statistic::Mixed { mixing: Mixing::Sparse, k },
            noise: vec![(k as usize * self.layout.width(), self.mixed_noise(frame.ball)?)],
        })
    }
}
