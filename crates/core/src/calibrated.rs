//! The calibrated release: columns are standardised privately before they are mixed, and local moments are
//! published beside the mixed rows.
//!
//! Four stages, each of which re-encodes the raw values with parameters that follow from published results of the
//! stages before. Everything here is public: it works on noised sums, with additions, multiplications, divisions and
//! square roots of doubles only, so that every party and every verifier gets the same parameters bit for bit. The
//! proofs are in docs/PRIVACY.md#calibrated.

use thiserror::Error;

use crate::accounting::{Mu, SHARES, Share, Shares, SigmaError, sigma_for};
use crate::encoding::{
    Ball, Encoder, EncodingError, LARGEST_SCALED, Q, RowEncoder, Scaling, round_half_away,
};
use crate::mixing::Mixing;
use crate::noise::Sigma;
use crate::planning::kept_by_ball;
use crate::stage::{Stage, Statistic, moment_count, pairs};

/// Names of the four stages, in order.
pub const STAGES: [&str; 4] = ["standardise-1", "standardise-2", "moments", "mixed"];

/// Most moments that a party may publish: they stand in the manifest.
const MOST_MOMENTS: usize = 1 << 21;
/// Smallest and largest part of μ² that goes to standardisation and moments.
const LOCAL_PART: (f64, f64) = (0.05, 0.5);
/// The row norm grows once μ√(n/d_e) exceeds this.
const GROWTH_START: f64 = 200.0;
/// Half-width of a column's box in standard deviations, before growth.
const BOX: f64 = 3.0;
/// Smallest standard deviation and half-width of a box that a column is scaled by.
const SMALLEST_SCALE: f64 = 1e-6;
/// The fixed scale of a level: a rare level must not be blown up.
const LEVEL_SCALE: f64 = 0.5;

/// Largest attenuation by the ball that is undone: of a numeric column, and of a level.
const MOST_ATTENUATION: (f64, f64) = (1.5, 2.0);
/// Standard deviation beforehand of the logarithm of the attenuation by the ball.
const BALL_PART_PRIOR: f64 = 0.2;
/// Largest logarithm of the attenuation by the box that is undone, and its standard deviation beforehand.
const MOST_BOX_PART: f64 = 0.4;
const BOX_PART_PRIOR: f64 = 0.1;
/// A column counts as resolved by at least this much.
const LEAST_RESOLVED: f64 = 0.1;
/// By how much, in standard deviations, clipping may move a mean.
const CENTRE_DOUBT: f64 = 0.05;
/// Keeps precisions finite where nothing is noised.
const LEAST_VARIANCE: f64 = 1e-30;
/// How many scales of the distance between a column's mean and the middle of its range are tried, each half the one before.
const CENTRE_SCALES: i32 = 8;

/// Why a calibrated release cannot be planned or continued.
#[derive(Debug, Error, PartialEq)]
pub enum CalibratedError {
    /// A noise scale is out of range.
    #[error(transparent)]
    Sigma(#[from] SigmaError),
    /// The row norm is out of range.
    #[error(transparent)]
    Norm(#[from] EncodingError),
    /// There is not one share for each stage.
    #[error("a calibrated release has four stages, not {0}: give each its share of μ²")]
    Stages(usize),
    /// A stage's sums do not have the right number.
    #[error("stage {stage} has {found} sums where {expected} belong")]
    Sums {
        /// The stage.
        stage: &'static str,
        /// Sums that the stage has.
        expected: usize,
        /// Sums that there are.
        found: usize,
    },
    /// There would be too many moments.
    #[error(
        "it has too many columns for their moments, more than about two thousand; use fewer columns, or method rmgm"
    )]
    TooWide,
    /// Sums could exceed 64 bits.
    #[error("its sums could overflow: use fewer columns or fewer rows")]
    Overflow,
}

/// The columns of one party.
#[derive(Clone, Debug, PartialEq)]
pub struct Layout {
    encoders: Vec<Encoder>,
    /// For each encoded column, whether it is numeric rather than a level.
    numeric: Vec<bool>,
}

impl Layout {
    /// Columns with these encodings.
    pub fn new(encoders: Vec<Encoder>) -> Self {
        let kinds = |encoder: &Encoder| vec![matches!(encoder, Encoder::Numeric(_)); encoder.width()];
        let numeric = encoders.iter().flat_map(kinds).collect();
        Self { encoders, numeric }
    }

    /// d: number of encoded columns.
    pub fn width(&self) -> usize {
        self.numeric.len()
    }

    /// d_e: encoded columns that can vary on their own; the levels of a column sum to one.
    pub fn effective_width(&self) -> usize {
        let dependent = self.encoders.iter().filter(|encoder| encoder.width() > 1).count();
        self.width() - dependent
    }

    /// Δ²: by how much replacing a subject can change a standardisation round, in units where Q is 1.
    ///
    /// # Privacy
    /// Lemma S of docs/PRIVACY.md#calibrated.
    fn change_squared(&self) -> u128 {
        let change = |encoder: &Encoder| match encoder {
            Encoder::Numeric(_) => 4,
            Encoder::Categorical(levels) if levels.width() > 1 => 2,
            Encoder::Categorical(_) => 1,
        };
        self.encoders.iter().map(change).sum()
    }

    fn squares(&self) -> Vec<usize> {
        (0..self.width()).filter(|&column| self.numeric[column]).collect()
    }
}

/// What public facts determine for all parties of a calibrated release.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plan {
    rows: u64,
    mu: Mu,
    shares: [Share; 4],
    k: u64,
}

impl Plan {
    /// The plan for n = `rows` subjects and parties with these columns; k follows unless it is given.
    pub fn new(rows: u64, mu: Mu, parties: &[Layout], k: Option<u64>) -> Result<Self, CalibratedError> {
        let shares = shares(rows, mu, parties.iter().map(Layout::width).max().unwrap_or(1))?;
        let mut plan = Self { rows, mu, shares, k: 1 };
        plan.k = k.unwrap_or_else(|| plan.mixed_rows(parties));
        Ok(plan)
    }

    /// The plan with shares and k as given, whatever rule they came from: a party that comes later takes those of the
    /// parties before it.
    ///
    /// # Privacy
    /// Nothing else that other parties have enters a party's noise, and the noise keeps every stage within its share
    /// whatever the shares and k are; [`Shares`] sum to the whole (docs/PRIVACY.md#latecomers).
    pub fn given(rows: u64, mu: Mu, shares: &Shares, k: u64) -> Result<Self, CalibratedError> {
        let shares = shares.as_slice();
        let shares = <[Share; 4]>::try_from(shares).map_err(|_| CalibratedError::Stages(shares.len()))?;
        Ok(Self { rows, mu, shares, k })
    }

    /// Shares of μ² of the four stages.
    pub fn shares(&self) -> [Share; 4] {
        self.shares
    }

    /// Number of mixed rows.
    pub fn k(&self) -> u64 {
        self.k
    }

    /// n: number of subjects.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// ρ: by how much row norms and boxes of a party exceed their smallest; clipping fades as n grows.
    fn growth(&self, layout: &Layout) -> f64 {
        let signal = self.mu.to_f64() * (self.rows as f64 / layout.effective_width() as f64).sqrt();
        (signal / GROWTH_START).sqrt().max(1.0)
    }

    /// μ_q of a stage.
    pub fn stage_mu(&self, stage: usize) -> f64 {
        self.mu.to_f64() * (f64::from(self.shares[stage].parts()) / f64::from(SHARES)).sqrt()
    }

    /// Standard deviation of the noise in a mean square of a standardisation round, in units of its window.
    pub fn round_error(&self, layout: &Layout) -> f64 {
        (layout.change_squared() as f64 / 2.77).sqrt() / (self.stage_mu(0) * self.rows as f64)
    }

    /// The largest row norm that a party can have.
    pub fn largest_norm(&self, layout: &Layout) -> f64 {
        self.growth(layout) * (layout.effective_width() as f64).sqrt()
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

    /// The plan of one party.
    pub fn party(&self, layout: Layout) -> Result<PartyPlan, CalibratedError> {
        let change = layout.change_squared();
        let q_squared = u128::from(Q.unsigned_abs()).pow(2);
        let round = RoundNoise {
            sum: sigma_for(self.mu, self.shares[0], (q_squared * change, 1))?,
            // B₂ = (11 + 5√5)/8 > 277/100.
            square: sigma_for(self.mu, self.shares[0], (q_squared * q_squared * change * 100, 277))?,
        };
        if moment_count(layout.width()) > MOST_MOMENTS {
            return Err(CalibratedError::TooWide);
        }
        let party = PartyPlan { plan: *self, growth: self.growth(&layout), layout, round };
        // Whatever is published later, noise and sums stay within their types.
        let largest = Ball::of_radius(self.largest_norm(&party.layout))?;
        party.moment_noise(largest)?;
        party.mixed_noise(largest)?;
        if u128::from(self.rows) * u128::from(largest.norm_squared()) >= 1 << 62 {
            return Err(CalibratedError::Overflow);
        }
        Ok(party)
    }
}

/// Parts of μ²: two standardisation rounds, moments, mixed rows.
fn shares(rows: u64, mu: Mu, widest: usize) -> Result<[Share; 4], SigmaError> {
    let need = GROWTH_START * widest as f64 / (rows as f64 * mu.to_f64());
    let local = (need * need).clamp(LOCAL_PART.0, LOCAL_PART.1);
    // A multiple of 4, so that its parts are whole.
    let quarter = (local * f64::from(SHARES) / 4.0).round() as u32;
    Ok([
        Share::new(quarter)?,
        Share::new(quarter)?,
        Share::new(2 * quarter)?,
        Share::new(SHARES - 4 * quarter)?,
    ])
}

/// Noise scales of a standardisation round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoundNoise {
    /// Of the sums, in units of Q.
    pub sum: u64,
    /// Of the sums of squares, in units of Q².
    pub square: u64,
}

/// Noise scales of the local moments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MomentNoise {
    /// Of the sums.
    pub sum: u64,
    /// Of the sums of squares.
    pub square: u64,
    /// Of the sums of products of two columns.
    pub product: u64,
}

/// What public facts determine for one party.
#[derive(Clone, Debug, PartialEq)]
pub struct PartyPlan {
    plan: Plan,
    layout: Layout,
    growth: f64,
    round: RoundNoise,
}

impl PartyPlan {
    /// The party's columns.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Noise of both standardisation rounds.
    pub fn round_noise(&self) -> RoundNoise {
        self.round
    }

    /// The plan of all parties.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The largest row norm, and with it the largest noise in the mixed rows, in standardised units.
    pub fn largest_noise(&self) -> (f64, f64) {
        let norm = self.plan.largest_norm(&self.layout);
        (norm, 2.0 * norm / self.plan.stage_mu(3))
    }

    /// The next stage, given the noised sums of those before it; nothing after the last.
    ///
    /// # Privacy
    /// Each stage keeps within its share of μ² whatever the earlier sums are (docs/PRIVACY.md#calibrated).
    pub fn stage(&self, earlier: &[Vec<i64>]) -> Result<Option<Stage>, CalibratedError> {
        Ok(match earlier.len() {
            0 => Some(self.standardise(0, &Standard::public(&self.layout))),
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

    fn standardise(&self, position: usize, standard: &Standard) -> Stage {
        let squares = self.layout.squares();
        let mut noise = vec![(self.layout.width(), sigma(self.round.sum))];
        if !squares.is_empty() {
            noise.push((squares.len(), sigma(self.round.square)));
        }
        Stage {
            name: STAGES[position],
            share: self.plan.shares[position],
            encoder: RowEncoder::new(&self.layout.encoders, &standard.window()),
            statistic: Statistic::Standardise { squares },
            noise,
        }
    }

    fn moments(&self, frame: &Frame) -> Result<Stage, CalibratedError> {
        let noise = self.moment_noise(frame.ball)?;
        let width = self.layout.width();
        let mut runs = vec![(width, sigma(noise.sum)), (width, sigma(noise.square))];
        if width > 1 {
            runs.push((width * (width - 1) / 2, sigma(noise.product)));
        }
        Ok(Stage {
            name: STAGES[2],
            share: self.plan.shares[2],
            encoder: RowEncoder::new(&self.layout.encoders, &frame.scalings).within(frame.ball),
            statistic: Statistic::Moments,
            noise: runs,
        })
    }

    fn mixed(&self, frame: &Frame, means: &[f64]) -> Result<Stage, CalibratedError> {
        let centre = |mean: &f64| round_half_away(mean * f64::from(Q)).clamp(-LARGEST_SCALED, LARGEST_SCALED);
        let encoder = RowEncoder::new(&self.layout.encoders, &frame.scalings)
            .within(frame.ball)
            .about(means.iter().map(centre).collect());
        let k = self.plan.k;
        Ok(Stage {
            name: STAGES[3],
            share: self.plan.shares[3],
            encoder,
            statistic: Statistic::Mixed { mixing: Mixing::Sparse, k },
            noise: vec![(k as usize * self.layout.width(), sigma(self.mixed_noise(frame.ball)?))],
        })
    }

    /// 4σ_oμ_q ≥ 5C, 8σ_d²μ_q² ≥ 25C², 4σ_m²μ_q² ≥ 25C.
    ///
    /// # Privacy
    /// Lemma L of docs/PRIVACY.md#calibrated.
    fn moment_noise(&self, ball: Ball) -> Result<MomentNoise, SigmaError> {
        let c = u128::from(ball.norm_squared());
        let noise = |squared| sigma_for(self.plan.mu, self.plan.shares[2], squared);
        Ok(MomentNoise {
            sum: noise((25 * c, 4))?,
            square: noise((25 * c * c, 8))?,
            product: noise((25 * c * c, 16))?,
        })
    }

    /// ς²μ_q² ≥ 4C.
    ///
    /// # Privacy
    /// Theorem M of docs/PRIVACY.md#mixed-rows.
    fn mixed_noise(&self, ball: Ball) -> Result<u64, SigmaError> {
        sigma_for(self.plan.mu, self.plan.shares[3], (4 * u128::from(ball.norm_squared()), 1))
    }

    /// What one round says: mean and spread of each column within the window that it was encoded in.
    fn round(&self, position: usize, before: &Standard, sums: &[i64]) -> Result<Standard, CalibratedError> {
        let squares = self.layout.squares();
        let width = self.layout.width();
        check_count(position, sums, width + squares.len())?;
        let n = self.plan.rows as f64;
        let q = f64::from(Q);
        let error = self.round.sum as f64 / (n * q);
        let square_error = self.round.square as f64 / (n * q * q);
        let mut columns = Vec::with_capacity(width);
        let mut next_square = width;
        for (column, window) in before.columns.iter().enumerate() {
            let (a, h) = window.window();
            let mean = sums[column] as f64 / (n * q);
            let (mean, variance, inflation) = if window.numeric {
                let mean = mean.clamp(-1.0, 1.0);
                let square = sums[next_square] as f64 / (n * q * q);
                next_square += 1;
                (mean, (square - mean * mean).clamp(0.0, 1.0), square_error)
            } else {
                let mean = mean.clamp(0.0, 1.0);
                (mean, mean * (1.0 - mean), error)
            };
            let variance = variance + inflation;
            let mean = a + h * mean;
            let sd = (h * variance.sqrt()).max(SMALLEST_SCALE);
            let reach = BOX * self.growth * sd + 2.0 * (h * error);
            let (low, high) =
                if window.numeric { ((mean - reach).max(-1.0), (mean + reach).min(1.0)) } else { (0.0, 1.0) };
            let resolved = 1.0 - inflation / variance;
            let error = h * error;
            columns.push(ColumnStandard { numeric: window.numeric, mean, sd, low, high, resolved, error });
        }
        Ok(Standard { columns })
    }

    fn first_round(&self, earlier: &[Vec<i64>]) -> Result<Standard, CalibratedError> {
        self.round(0, &Standard::public(&self.layout), &earlier[0])
    }

    /// How rows are standardised, from the noised sums of both rounds.
    pub fn frame(&self, earlier: &[Vec<i64>]) -> Result<Frame, CalibratedError> {
        let first = self.first_round(earlier)?;
        let mut standard = self.round(1, &first, &earlier[1])?;
        let rounds = first.columns.iter().zip(&standard.columns).map(|(first, second)| Rounds {
            numeric: first.numeric,
            first_sd: first.sd,
            first_resolved: first.resolved,
            second_sd: second.sd,
            second_resolved: second.resolved,
            first_centre: first.mean,
            first_centre_error: first.error,
            centre_error: second.error,
        });
        let rounds = rounds.collect();
        for column in standard.columns.iter_mut().filter(|column| !column.numeric) {
            column.resolved *= (column.sd / LEVEL_SCALE) * (column.sd / LEVEL_SCALE);
            column.sd = LEVEL_SCALE;
        }
        let farthest = |column: &ColumnStandard| {
            let reach = (column.high - column.mean).max(column.mean - column.low) / column.sd;
            reach * reach
        };
        let reach: f64 = standard.columns.iter().map(farthest).sum::<f64>().sqrt();
        let natural = (self.layout.effective_width() as f64).sqrt();
        let radius = (self.growth * natural).min(reach.max(natural));
        let scaling = |column: &ColumnStandard| Scaling {
            low: column.low,
            high: column.high,
            centre: column.mean,
            scale: column.sd,
            limit: LARGEST_SCALED,
        };
        Ok(Frame {
            scalings: standard.columns.iter().map(scaling).collect(),
            resolved: standard.columns.iter().map(|column| column.resolved).collect(),
            rounds,
            ball: Ball::of_radius(radius)?,
        })
    }

    /// Covariances that the ball makes up between levels of different columns that have nothing to do with each other:
    /// where both are rare their tails are cut together.
    fn spurious(&self, frame: &Frame) -> Vec<f64> {
        let width = self.layout.width();
        let radius = (frame.ball.norm_squared() as f64).sqrt() / f64::from(Q);
        let mut levels = Vec::new();
        let mut sizes = Vec::new();
        let mut first = 0;
        for encoder in &self.layout.encoders {
            let next = first + encoder.width();
            if matches!(encoder, Encoder::Categorical(_)) {
                let cases = LevelColumn::new(first, &frame.scalings[first..next]);
                levels.push((sizes.len(), cases));
                sizes.push(levels[levels.len() - 1].1.size());
            } else {
                let variance = frame.resolved[first].clamp(0.0, 1.0);
                sizes.push((variance, 2.0 * variance * variance));
            }
            first = next;
        }
        let sum = |part: fn(&(f64, f64)) -> f64| sizes.iter().map(part).sum::<f64>();
        let (mean, variance) = (sum(|size| size.0), sum(|size| size.1));
        let mut spurious = vec![0.0; width * width];
        for (at, (place, one)) in levels.iter().enumerate() {
            for (other_place, other) in &levels[..at] {
                let rest = (
                    (mean - sizes[*place].0 - sizes[*other_place].0).max(0.0),
                    (variance - sizes[*place].1 - sizes[*other_place].1).max(0.0),
                );
                for (i, row) in one.covariances(other, rest, radius).iter().enumerate() {
                    for (j, &entry) in row.iter().enumerate() {
                        let (row, column) = (one.first + i, other.first + j);
                        spurious[row * width + column] = entry;
                        spurious[column * width + row] = entry;
                    }
                }
            }
        }
        spurious
    }

    /// Means within the party, in standardised units and within their boxes, from the noised sums of the third stage.
    fn local_means(&self, earlier: &[Vec<i64>], frame: &Frame) -> Result<Vec<f64>, CalibratedError> {
        let width = self.layout.width();
        let sums = &earlier[2];
        check_count(2, sums, moment_count(width))?;
        let all = self.plan.rows as f64 * f64::from(Q);
        let mean = |(scaling, &sum): (&Scaling, &i64)| {
            let end = |end: f64| (end - scaling.centre) / scaling.scale;
            (sum as f64 / all).clamp(end(scaling.low), end(scaling.high))
        };
        Ok(frame.scalings.iter().zip(sums).map(mean).collect())
    }

    /// Means and covariances within the party, in standardised units, from the noised sums of the third stage.
    pub fn local_moments(
        &self,
        earlier: &[Vec<i64>],
        frame: &Frame,
    ) -> Result<LocalMoments, CalibratedError> {
        let width = self.layout.width();
        let means = self.local_means(earlier, frame)?;
        let sums = &earlier[2];
        let n = self.plan.rows as f64;
        let q = f64::from(Q);
        let mut covariance = vec![0.0; width * width];
        for i in 0..width {
            covariance[i * width + i] = sums[width + i] as f64 / (n * q * q) - means[i] * means[i];
        }
        let spurious = self.spurious(frame);
        for ((i, j), &sum) in pairs(width).zip(&sums[2 * width..]) {
            let entry = sum as f64 / (n * q * q) - means[i] * means[j] - spurious[i * width + j];
            covariance[i * width + j] = entry;
            covariance[j * width + i] = entry;
        }
        let noise = self.moment_noise(frame.ball)?;
        Ok(LocalMoments {
            means,
            mean_noise: noise.sum as f64 / (n * q),
            covariance,
            spurious,
            noise: noise.product as f64 / (n * q * q),
        })
    }
}

/// A categorical column: how its entries are scaled, and how likely each level is.
struct LevelColumn<'a> {
    first: usize,
    scalings: &'a [Scaling],
    /// Of each level, and last of none.
    chances: Vec<f64>,
    /// Squared norms of the entries in each of these cases.
    sizes: Vec<f64>,
}

impl<'a> LevelColumn<'a> {
    fn new(first: usize, scalings: &'a [Scaling]) -> Self {
        let share: Vec<f64> = scalings.iter().map(|scaling| scaling.centre.clamp(0.0, 1.0)).collect();
        let total = share.iter().sum::<f64>().max(1.0);
        let mut chances: Vec<f64> = share.iter().map(|share| share / total).collect();
        chances.push(1.0 - chances.iter().sum::<f64>());
        let entry = |scaling: &Scaling, u: f64| ((u - scaling.centre) / scaling.scale).powi(2);
        let none: f64 = scalings.iter().map(|scaling| entry(scaling, 0.0)).sum();
        let size = |scaling: &Scaling| none - entry(scaling, 0.0) + entry(scaling, 1.0);
        let sizes = scalings.iter().map(size).chain([none]).collect();
        Self { first, scalings, chances, sizes }
    }

    /// Mean and variance of the squared norm.
    fn size(&self) -> (f64, f64) {
        let moment = |power: i32| -> f64 {
            self.chances.iter().zip(&self.sizes).map(|(chance, size)| chance * size.powi(power)).sum()
        };
        (moment(1), moment(2) - moment(1) * moment(1))
    }

    /// Covariances, after the ball, of independent entries of this column and another, the rest of the row having a
    /// squared norm of this mean and variance.
    fn covariances(&self, other: &Self, rest: (f64, f64), radius: f64) -> Vec<Vec<f64>> {
        let (mean, reach) = (rest.0, (3.0 * rest.1).sqrt());
        // Three points that have the mean and variance of a bell curve.
        let points = [((mean - reach).max(0.0), 1.0 / 6.0), (mean, 2.0 / 3.0), (mean + reach, 1.0 / 6.0)];
        let (a, b) = (self.chances.len(), other.chances.len());
        // Probabilities of pairs of cases, times the ball's factor and times its square; with their margins.
        let mut squared = vec![vec![0.0; b]; a];
        let (mut squared_left, mut squared_right, mut squared_all) = (vec![0.0; a], vec![0.0; b], 0.0);
        let (mut left, mut right, mut all) = (vec![0.0; a], vec![0.0; b], 0.0);
        for i in 0..a {
            for j in 0..b {
                for (rest, weight) in points {
                    let chance = weight * self.chances[i] * other.chances[j];
                    let size = (self.sizes[i] + other.sizes[j] + rest).max(1e-300);
                    let factor = (radius / size.sqrt()).min(1.0);
                    left[i] += chance * factor;
                    right[j] += chance * factor;
                    all += chance * factor;
                    squared[i][j] += chance * factor * factor;
                }
                squared_left[i] += squared[i][j];
                squared_right[j] += squared[i][j];
                squared_all += squared[i][j];
            }
        }
        let covariance = |i: usize, j: usize| {
            let (x, y) = (&self.scalings[i], &other.scalings[j]);
            let product = squared[i][j] - y.centre * squared_left[i] - x.centre * squared_right[j]
                + x.centre * y.centre * squared_all;
            let means = (left[i] - x.centre * all) * (right[j] - y.centre * all);
            (product - means) / (x.scale * y.scale)
        };
        (0..a - 1).map(|i| (0..b - 1).map(|j| covariance(i, j)).collect()).collect()
    }
}

fn check_count(stage: usize, sums: &[i64], expected: usize) -> Result<(), CalibratedError> {
    if sums.len() == expected {
        Ok(())
    } else {
        Err(CalibratedError::Sums { stage: STAGES[stage], expected, found: sums.len() })
    }
}

fn sigma(value: u64) -> Sigma {
    Sigma::new(value).expect("noise scales are at least 1 and below 2^53")
}

/// Mean, spread and box of one column, in units of its public range.
#[derive(Clone, Copy, Debug, PartialEq)]
struct ColumnStandard {
    numeric: bool,
    mean: f64,
    sd: f64,
    low: f64,
    high: f64,
    /// Share of the variance that is not noise.
    resolved: f64,
    /// Standard deviation of the noise in the mean.
    error: f64,
}

impl ColumnStandard {
    /// The midpoint and half-width of the box; a level keeps its range.
    fn window(&self) -> (f64, f64) {
        if self.numeric {
            (f64::midpoint(self.low, self.high), ((self.high - self.low) / 2.0).max(SMALLEST_SCALE))
        } else {
            (0.0, 1.0)
        }
    }
}

/// What is known of every column before a round.
#[derive(Clone, Debug, PartialEq)]
struct Standard {
    columns: Vec<ColumnStandard>,
}

impl Standard {
    /// The public range only.
    fn public(layout: &Layout) -> Self {
        let column = |&numeric: &bool| {
            let low = if numeric { -1.0 } else { 0.0 };
            ColumnStandard { numeric, mean: 0.0, sd: 1.0, low, high: 1.0, resolved: 0.0, error: 0.0 }
        };
        Self { columns: layout.numeric.iter().map(column).collect() }
    }

    /// How values are encoded in the next round: each box is stretched to ±Q.
    fn window(&self) -> Vec<Scaling> {
        let scaling = |column: &ColumnStandard| {
            let (centre, scale) = column.window();
            Scaling { low: column.low, high: column.high, centre, scale, limit: Q }
        };
        self.columns.iter().map(scaling).collect()
    }
}

/// How a party's rows are standardised: what both rounds have determined.
#[derive(Clone, Debug, PartialEq)]
pub struct Frame {
    /// Box, centre and scale of each encoded column.
    pub scalings: Vec<Scaling>,
    /// Variance of each column that the second round resolved, in standardised units: what clipping is measured by.
    pub resolved: Vec<f64>,
    /// What both rounds said of each column's spread.
    pub rounds: Vec<Rounds>,
    /// The ball that bounds a standardised row.
    pub ball: Ball,
}

impl Frame {
    /// Values of a column beyond this range, in units of its public one, are certainly cut: by the box, or because they
    /// would alone take a row out of the ball.
    pub fn kept(&self, column: usize) -> [f64; 2] {
        let scaling = &self.scalings[column];
        let reach = (self.ball.norm_squared() as f64).sqrt() / f64::from(Q) * scaling.scale;
        [scaling.low.max(scaling.centre - reach), scaling.high.min(scaling.centre + reach)]
    }
}

/// What both standardisation rounds said of one column, in units of its public range.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rounds {
    /// Whether the column is numeric rather than a level.
    pub numeric: bool,
    /// Standard deviation that the first round found, noise included.
    pub first_sd: f64,
    /// Share of its square that is not noise.
    pub first_resolved: f64,
    /// Standard deviation that the second round found, noise included.
    pub second_sd: f64,
    /// Share of its square that is not noise.
    pub second_resolved: f64,
    /// Mean that the first round found.
    pub first_centre: f64,
    /// Standard deviation of the noise in it.
    pub first_centre_error: f64,
    /// Standard deviation of the noise in the mean that the second round found, by which rows are centred.
    pub centre_error: f64,
}

impl Rounds {
    /// ψ: standard deviation before the box over that after it, shrunk by its own noise.
    fn box_part(&self) -> f64 {
        if !self.numeric {
            return 1.0;
        }
        let first = self.first_resolved.max(LEAST_RESOLVED);
        let second = self.second_resolved.max(LEAST_RESOLVED);
        let ratio = first * self.first_sd.powi(2) / (second * self.second_sd.powi(2));
        let log = (0.5 * ratio.ln()).clamp(0.0, MOST_BOX_PART);
        let error = (((1.0 - first) / first).powi(2) + ((1.0 - second) / second).powi(2)) / 4.0;
        let prior = BOX_PART_PRIOR * BOX_PART_PRIOR;
        (log * prior / (prior + error)).exp()
    }

    /// Variance of what is not known of its logarithm.
    fn box_part_error(&self) -> f64 {
        if !self.numeric {
            return 0.0;
        }
        let (first, second) =
            (self.first_resolved.max(LEAST_RESOLVED), self.second_resolved.max(LEAST_RESOLVED));
        let error = (((1.0 - first) / first).powi(2) + ((1.0 - second) / second).powi(2)) / 4.0;
        let prior = BOX_PART_PRIOR * BOX_PART_PRIOR;
        prior * error / (prior + error)
    }
}

/// What clipping did to a column, as far as published numbers tell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Clipping {
    /// φ: standard deviation before box and ball over that after them, within limits.
    pub attenuation: f64,
    /// ψ: the part of it that is due to the box.
    pub box_part: f64,
    /// Variance of the error of scale times attenuation, relative to their square.
    pub scale_error: f64,
    /// Excess kurtosis of a level; 0 for a numeric column.
    pub kurtosis: f64,
    /// Variance that can be believed in, from the rounds and the moments together; infinite where nothing was clipped.
    pub believable_variance: f64,
    /// Whether the column is numeric rather than a level.
    pub numeric: bool,
    /// What published numbers say of its tails.
    pub tails: Tails,
}

/// What published numbers say of the tails of a column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tails {
    /// Standard deviation before clipping over that after it, over what a bell would lose: 1 for a bell, more for
    /// heavy tails.
    pub excess: f64,
    /// Standard error of its logarithm.
    pub excess_error: f64,
    /// By how much clipping moved the mean, in standard deviations: 0 for a symmetric column.
    pub shift: f64,
    /// Its standard error.
    pub shift_error: f64,
}

impl Tails {
    /// Those of a column that was not clipped.
    pub const NONE: Self = Self { excess: 1.0, excess_error: 0.0, shift: 0.0, shift_error: 0.0 };
}

impl Clipping {
    /// Nothing was clipped.
    pub const NONE: Self = Self {
        attenuation: 1.0,
        box_part: 1.0,
        scale_error: 0.0,
        kurtosis: 0.0,
        believable_variance: f64::INFINITY,
        numeric: true,
        tails: Tails::NONE,
    };
}

impl LocalMoments {
    /// What clipping did to each column.
    pub fn clipping(&self, frame: &Frame) -> Vec<Clipping> {
        let width = self.means.len();
        let bell = self.lost_by_a_bell(frame);
        let of_column = |column: usize| {
            let rounds = &frame.rounds[column];
            let after = self.covariance[column * width + column].max(3.0 * self.noise);
            let most = if rounds.numeric { MOST_ATTENUATION.0 } else { MOST_ATTENUATION.1 };
            let box_part = rounds.box_part();
            let doubt = |resolved: f64| ((1.0 - resolved) / resolved).powi(2);
            let second = rounds.second_resolved.max(LEAST_RESOLVED);
            let scale_error = (2.0 * (self.noise / after).powi(2) + doubt(second)) / 4.0;
            let found = (frame.resolved[column].max(0.0) / after).sqrt().clamp(1.0, most);
            let prior = BALL_PART_PRIOR * BALL_PART_PRIOR;
            let ball_part = (found.ln() * prior / (prior + scale_error)).exp();
            let share = frame.scalings[column].centre.clamp(0.0, 1.0);
            let variance = (share * (1.0 - share)).max(0.01);
            Clipping {
                attenuation: ball_part * box_part,
                box_part,
                scale_error: scale_error + rounds.box_part_error(),
                kurtosis: if rounds.numeric { 0.0 } else { ((1.0 - 6.0 * variance) / variance).max(0.0) },
                believable_variance: self.believable_variance(frame, column),
                numeric: rounds.numeric,
                tails: self.tails(frame, column, scale_error, bell),
            }
        };
        (0..width).map(of_column).collect()
    }

    fn tails(&self, frame: &Frame, column: usize, scale_error: f64, bell: f64) -> Tails {
        let rounds = &frame.rounds[column];
        let after = self.covariance[column * self.means.len() + column].max(3.0 * self.noise);
        let (first, second) =
            (rounds.first_resolved.max(LEAST_RESOLVED), rounds.second_resolved.max(LEAST_RESOLVED));
        let by_ball = (frame.resolved[column].max(0.0) / after).sqrt();
        let by_box =
            if rounds.numeric { (first / second).sqrt() * rounds.first_sd / rounds.second_sd } else { 1.0 };
        let scale = frame.scalings[column].scale;
        Tails {
            excess: by_ball * by_box / bell,
            excess_error: (scale_error + ((1.0 - first) / first).powi(2) / 4.0).sqrt(),
            shift: self.means[column],
            shift_error: self.mean_noise.hypot(rounds.centre_error / scale),
        }
    }

    /// Standard deviation before the ball over that after it if all columns were bell-shaped: the squared norm of a row
    /// is then about g·χ²_h, with the mean and variance that the covariance gives.
    fn lost_by_a_bell(&self, frame: &Frame) -> f64 {
        let width = self.means.len();
        let after = |i: usize| self.covariance[i * width + i].max(3.0 * self.noise);
        let before: Vec<f64> = frame.resolved.iter().map(|resolved| resolved.clamp(0.02, 1.0)).collect();
        let (mut squares, mut noise) = (0.0, 0.0);
        for (i, j) in pairs(width) {
            let product = after(i) * after(j);
            squares += before[i] * before[j] * (self.covariance[i * width + j].powi(2) / product).min(1.0);
            noise += before[i] * before[j] * self.noise.powi(2) / product;
        }
        let mean: f64 = before.iter().sum();
        let half_variance = before.iter().map(|v| v * v).sum::<f64>() + 2.0 * (squares - noise).max(0.0);
        let radius_squared = frame.ball.norm_squared() as f64 / f64::from(Q).powi(2);
        kept_by_ball(mean * mean / half_variance, (radius_squared / mean).sqrt()).sqrt().recip()
    }

    /// The variance of a column, from the second round and the moments by how well each knows it, and shrunk towards 0 as
    /// far as both together do not.
    fn believable_variance(&self, frame: &Frame, column: usize) -> f64 {
        let rounds = &frame.rounds[column];
        let of_round = frame.resolved[column];
        let ratio = rounds.second_sd / frame.scalings[column].scale;
        let round_precision = 1.0 / ((1.0 - rounds.second_resolved) * ratio * ratio).powi(2).max(1e-300);
        let of_moments = self.covariance[column * self.means.len() + column];
        let moment_precision = 1.0 / (2.0 * self.noise * self.noise);
        let precision = round_precision + moment_precision;
        let found = ((of_round * round_precision + of_moments * moment_precision) / precision).max(0.0);
        found * found * found / (found * found + 1.0 / precision)
    }

    /// Where each column lies, by both rounds and the moments, each as far as noise and clipping let it be believed.
    pub fn centres(&self, frame: &Frame) -> Vec<Centre> {
        let of_column = |column: usize| {
            let (scaling, rounds) = (&frame.scalings[column], &frame.rounds[column]);
            let noise = (scaling.scale * self.mean_noise).powi(2);
            let cut = (CENTRE_DOUBT * scaling.scale).powi(2) * frame.resolved[column].clamp(0.0, 1.0);
            let moved = scaling.centre + scaling.scale * self.means[column];
            // What each says, the variance of its noise, and of what clipping may have done besides.
            let sayings = [
                (rounds.first_centre, rounds.first_centre_error.powi(2), 0.0),
                (scaling.centre, rounds.centre_error.powi(2), 0.0),
                (moved, noise, cut),
            ];
            let precision = |noise: f64, cut: f64| (noise + cut + LEAST_VARIANCE).recip();
            let total: f64 = sayings.iter().map(|&(_, noise, cut)| precision(noise, cut)).sum();
            let weighted = |&(mean, noise, cut): &(f64, f64, f64)| mean * precision(noise, cut) / total;
            let error = |&(_, noise, cut): &(f64, f64, f64)| noise * (precision(noise, cut) / total).powi(2);
            let found = sayings.iter().map(weighted).sum();
            Centre::new(found, sayings.iter().map(error).sum(), rounds.numeric)
        };
        (0..self.means.len()).map(of_column).collect()
    }
}

/// Where a column lies, in units of its public range.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Centre {
    /// Its mean as published numbers have it.
    pub found: f64,
    /// Standard deviation of the noise in that.
    pub error: f64,
    /// What to predict with: nearer to the middle of the public range the less the mean is known, since people who set
    /// bounds mostly set them around what they expect.
    pub believed: f64,
}

impl Centre {
    /// A mean that was found with noise of this variance. How far from the middle columns lie is learned from the mean
    /// itself: every scale is as likely as the others beforehand.
    fn new(found: f64, noise: f64, numeric: bool) -> Self {
        let error = noise.sqrt();
        if !numeric {
            return Self { found, error, believed: found };
        }
        let variances = (0..CENTRE_SCALES).map(|step| 0.25_f64.powi(step) / 3.0);
        let (mut kept, mut total) = (0.0, 0.0);
        for variance in variances {
            let seen = variance + noise;
            let likelihood = (-0.5 * (seen.ln() + found * found / seen)).exp();
            kept += likelihood * variance / seen;
            total += likelihood;
        }
        Self { found, error, believed: found * kept / total }
    }
}

/// Means and covariances within one party, in standardised units, noise included.
#[derive(Clone, Debug, PartialEq)]
pub struct LocalMoments {
    /// Mean of each column, within its box.
    pub means: Vec<f64>,
    /// Standard deviation of the noise in a mean.
    pub mean_noise: f64,
    /// Covariance matrix, row by row, without what the ball makes up.
    pub covariance: Vec<f64>,
    /// Covariances that the ball makes up between columns that have nothing to do with each other, row by row.
    pub spurious: Vec<f64>,
    /// η: standard deviation of the noise in an off-diagonal entry; a diagonal one has √2 times that.
    pub noise: f64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accounting::{Delta, Epsilon};
    use crate::encoding::Bounds;

    fn layout(columns: usize) -> Layout {
        Layout::new(vec![Encoder::Numeric(Bounds::new(0.0, 1.0).unwrap()); columns])
    }

    #[test]
    fn given_shares_and_k_are_all_that_a_party_takes_from_the_others() {
        let mu = Mu::analytic(Epsilon::new(1.0).unwrap(), Delta::new(1e-5).unwrap()).unwrap();
        let (narrow, wide) = ([layout(2)], [layout(2), layout(90)]);
        for parties in [&narrow[..], &wide[..]] {
            let plan = Plan::new(100_000, mu, parties, None).unwrap();
            let shares = Shares::new(&plan.shares().map(Share::parts)).unwrap();
            let given = Plan::given(100_000, mu, &shares, plan.k()).unwrap();
            assert_eq!(given, plan);
            assert_eq!(given.party(layout(7)).unwrap(), plan.party(layout(7)).unwrap());
        }
        let shares = |parties: &[Layout]| Plan::new(100_000, mu, parties, None).unwrap().shares();
        assert_ne!(shares(&narrow), shares(&wide), "the rule looks at the widest party");
        let two = Shares::new(&[SHARES / 2; 2]).unwrap();
        assert_eq!(Plan::given(100_000, mu, &two, 100), Err(CalibratedError::Stages(2)));
    }
}
