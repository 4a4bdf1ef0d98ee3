//! The stages of one party.

use super::frame::Standard;
use super::noise::{mixed_noise, round_counts, shape_counts};
use super::{
    COHORT_STAGES, CalibratedError, Frame, JointNoise, Layout, MomentNoise, Plan, RoundNoise, STAGES,
    ShapeNoise,
};
use crate::encoding::{Ball, Bins, LARGEST_SCALED, Q, RowEncoder, Scaling, round_half_away};
use crate::mixing::Mixing;
use crate::noise::{Sigma, SigmaError};
use crate::stage::{Stage, Statistic, moment_count};

/// Most moments that a party may publish: they stand in the manifest.
const MOST_MOMENTS: usize = 1 << 21;

/// What is encoded as 0 in the standardisation round of format 2 where a column has two levels.
pub(super) const TWO_LEVELS_CENTRE: f64 = 0.5;

/// What public facts determine for one party.
#[derive(Clone, Debug, PartialEq)]
pub struct PartyPlan {
    pub(super) plan: Plan,
    pub(super) layout: Layout,
    /// n, or in format 2 Nᵢ.
    pub(super) rows: u64,
    /// ρ.
    pub(super) growth: f64,
    pub(super) round: RoundNoise,
    /// In format 2.
    pub(super) cohort: Option<CohortNoise>,
}

/// The noise that only format 2 has.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct CohortNoise {
    pub(super) shapes: ShapeNoise,
    /// Of the counts of each presence group, among the shapes and in the standardisation round.
    pub(super) counts: [Vec<Sigma>; 2],
    pub(super) joint: JointNoise,
}

impl CohortNoise {
    fn new(plan: &Plan, layout: &Layout) -> Result<Self, SigmaError> {
        let (mu, [first, second, third]) = (plan.mu(), [0, 1, 2].map(|stage| plan.share(stage)));
        Ok(Self {
            shapes: ShapeNoise::new(mu, first, layout)?,
            counts: [shape_counts(mu, first, layout)?, round_counts(mu, second, layout)?],
            joint: JointNoise::new(mu, third, layout.groups())?,
        })
    }
}

impl PartyPlan {
    /// The plan of a party with these columns.
    ///
    /// # Privacy
    /// A standardisation round has the noise that its share needs, in format 1 both that of the
    /// smaller one. Whatever is published later, noise and sums stay in the range for which Lemma B
    /// and Theorem 3 are proved: n·C < 2⁶², in format 2 Nᵢ·C < 2⁶⁰ for tables of at most 4Nᵢ rows,
    /// and every scale is below 2⁵³, for the largest C that any results can give
    /// (docs/PRIVACY.md#sums-and-noise-stay-in-range).
    pub(super) fn new(plan: Plan, layout: Layout) -> Result<Self, CalibratedError> {
        let is_cohort = layout.presence().is_some();
        let share = if is_cohort { plan.share(1) } else { plan.share(0).min(plan.share(1)) };
        let round = RoundNoise::new(plan.mu(), share, layout.change_squared())?;
        if moment_count(layout.width(), layout.groups()) > MOST_MOMENTS {
            return Err(CalibratedError::TooWide);
        }
        let cohort = if is_cohort { Some(CohortNoise::new(&plan, &layout)?) } else { None };
        let (growth, rows) = (plan.growth(&layout), plan.rows_of(&layout));
        let party = Self { plan, layout, rows, growth, round, cohort };
        let largest = Ball::of_radius(party.plan.largest_norm(&party.layout))?;
        party.moment_noise(largest)?;
        if party.plan.exchanging().is_some() {
            party.check_exchange(largest)?;
        } else {
            party.mixed_noise(largest)?;
        }
        let most = if is_cohort { 1 << 60 } else { 1 << 62 };
        if u128::from(rows) * u128::from(largest.norm_squared()) >= most {
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

    /// n: number of subjects; in format 2 Nᵢ, about how many this party has.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Noise of the standardisation rounds.
    pub fn round_noise(&self) -> RoundNoise {
        self.round
    }

    /// Noise of the shapes of columns, in format 2.
    pub fn shape_noise(&self) -> Option<ShapeNoise> {
        self.cohort.as_ref().map(|cohort| cohort.shapes)
    }

    /// Noise of the joint counts of presence groups, in format 2.
    pub fn joint_noise(&self) -> Option<JointNoise> {
        self.cohort.as_ref().map(|cohort| cohort.joint)
    }

    /// Noise of the counts of each presence group in the first stage and in the second; without
    /// any in format 1.
    pub fn count_noise(&self) -> [&[Sigma]; 2] {
        self.cohort.as_ref().map_or([&[][..]; 2], |cohort| cohort.counts.each_ref().map(Vec::as_slice))
    }

    /// Noise of the local moments of rows in this ball.
    pub(crate) fn moment_noise(&self, ball: Ball) -> Result<MomentNoise, SigmaError> {
        MomentNoise::new(self.plan.mu(), self.plan.share(2), ball, self.layout.groups())
    }

    /// Noise of the mixed rows in this ball.
    fn mixed_noise(&self, ball: Ball) -> Result<Sigma, SigmaError> {
        mixed_noise(self.plan.mu(), self.plan.share(3), ball)
    }

    /// The largest row norm, and with it the largest noise in the mixed rows, in standardised
    /// units; where products are exchanged, the noise in a sum of products with a party of the same
    /// norm over that norm, which is what noise in a mixed row is for a person who has one.
    pub fn largest_noise(&self) -> (f64, f64) {
        let norm = self.plan.largest_norm(&self.layout);
        let pairs = self.plan.exchanging().map_or(1.0, |parties| 2.0 * (f64::from(parties) - 1.0));
        (norm, 2.0 * norm * pairs.sqrt() / self.plan.stage_mu(3))
    }

    /// The next stage, given the noised sums of those before it; nothing after the last, which is
    /// the third where products are exchanged.
    ///
    /// # Privacy
    /// Each stage keeps within its share of μ² whatever the earlier sums are: Lemma S, Lemma L and
    /// Theorem M of docs/PRIVACY.md#calibrated, in format 2 Lemmas S1, S′ and L′ and Theorem M′ of
    /// docs/PRIVACY.md#calibrated-format-2; by Theorem 4 of docs/PRIVACY.md#composition the release
    /// keeps within μ².
    pub fn stage(&self, earlier: &[Vec<i64>]) -> Result<Option<Stage>, CalibratedError> {
        Ok(match earlier.len() {
            0 => Some(match &self.cohort {
                None => self.standardise(0, &self.before(), self.round, &[]),
                Some(cohort) => self.shapes(cohort),
            }),
            1 => Some(self.standardise(1, &self.first_round(earlier)?, self.round, self.count_noise()[1])),
            2 => Some(self.moments(&self.frame(earlier)?)?),
            3 if self.plan.exchanging().is_none() => {
                let frame = self.frame(earlier)?;
                let means = self.local_means(earlier, &frame)?;
                Some(self.mixed(&frame, &means)?)
            }
            _ => None,
        })
    }

    /// A stage of these rows, which tell their presence groups in format 2.
    fn at(
        &self,
        position: usize,
        encoder: RowEncoder,
        statistic: Statistic,
        noise: Vec<(usize, Sigma)>,
    ) -> Stage {
        let (names, encoder) = match self.layout.presence() {
            None => (STAGES, encoder),
            Some(presence) => (COHORT_STAGES, encoder.with_presence(presence.clone())),
        };
        // A run is of at least one sum.
        let noise = noise.into_iter().filter(|&(count, _)| count > 0).collect();
        Stage { name: names[position], share: self.plan.share(position), encoder, statistic, noise }
    }

    /// The round on the public ranges, with the cells of numeric columns.
    fn shapes(&self, cohort: &CohortNoise) -> Stage {
        let mut stage = self.standardise(0, &self.before(), cohort.shapes.round, &cohort.counts[0]);
        let bins = self.layout.bins();
        let cells: usize = bins.iter().map(Bins::count).sum();
        stage.noise.extend((cells > 0).then_some((cells, cohort.shapes.cell)));
        stage.encoder = stage.encoder.with_bins(bins);
        stage
    }

    fn standardise(
        &self,
        position: usize,
        before: &[Standard],
        noise: RoundNoise,
        counts: &[Sigma],
    ) -> Stage {
        let mut scalings: Vec<Scaling> = before.iter().map(Standard::stretched).collect();
        let squares = self.layout.squares();
        let mut runs = vec![(self.layout.width(), noise.sum), (squares.len(), noise.square)];
        runs.extend(counts.iter().map(|&sigma| (1, sigma)));
        if self.cohort.is_some() {
            for (scaling, two_levels) in scalings.iter_mut().zip(self.layout.two_levels()) {
                // ±Q/2, so that Lemmas S1 and S′ have weight left for the count.
                scaling.centre = if two_levels { TWO_LEVELS_CENTRE } else { scaling.centre };
            }
        }
        let encoder = RowEncoder::new(self.layout.encoders(), &scalings);
        self.at(position, encoder, Statistic::Standardise { squares }, runs)
    }

    fn moments(&self, frame: &Frame) -> Result<Stage, CalibratedError> {
        let noise = self.moment_noise(frame.ball)?;
        let (width, groups) = (self.layout.width(), self.layout.groups());
        let pairs = |of: usize| of * of.saturating_sub(1) / 2;
        let mut runs =
            vec![(width * groups.max(1), noise.sum), (width, noise.square), (pairs(width), noise.product)];
        if let Some(cohort) = &self.cohort {
            runs.extend([(groups, cohort.joint.own), (pairs(groups), cohort.joint.both)]);
        }
        let encoder = RowEncoder::new(self.layout.encoders(), &frame.scalings).within(frame.ball);
        Ok(self.at(2, encoder, Statistic::Moments, runs))
    }

    /// Means in units of 1/Q.
    pub(super) fn centres(means: &[f64]) -> Vec<i32> {
        let centre = |mean: &f64| round_half_away(mean * f64::from(Q)).clamp(-LARGEST_SCALED, LARGEST_SCALED);
        means.iter().map(centre).collect()
    }

    /// Standardised rows about these centres, within the ball.
    pub(super) fn centred(&self, frame: &Frame, centres: Vec<i32>) -> RowEncoder {
        RowEncoder::new(self.layout.encoders(), &frame.scalings).within(frame.ball).about(centres)
    }

    fn mixed(&self, frame: &Frame, means: &[f64]) -> Result<Stage, CalibratedError> {
        let encoder = self.centred(frame, Self::centres(means));
        let k = self.plan.k();
        let is_cohort = self.cohort.is_some();
        let mixing = if is_cohort { Mixing::Buckets } else { Mixing::Sparse };
        let sums = k as usize * (self.layout.width() + usize::from(is_cohort));
        let noise = vec![(sums, self.mixed_noise(frame.ball)?)];
        let mut stage = self.at(3, encoder, Statistic::Mixed { mixing, k }, noise);
        if is_cohort {
            stage.encoder = stage.encoder.weighing(presence_weight(frame.ball));
        }
        Ok(stage)
    }
}

/// W = ⌊√C⌋: the largest weight of presence that needs no more noise.
///
/// # Privacy
/// W² ≤ C, as Theorem M′ asks (docs/PRIVACY.md#mixed-rows-and-presence-stage-4).
fn presence_weight(ball: Ball) -> i32 {
    i32::try_from(ball.norm_squared().isqrt()).expect("C is below 2⁵⁰")
}
