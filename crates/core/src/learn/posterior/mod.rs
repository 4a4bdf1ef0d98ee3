//! The noise-aware learner: estimates every entry of the covariance by its posterior mean, in
//! coordinates in which the noise is diagonal, then solves.
//!
//! For squared loss the best coefficients are E[H | data]⁻¹E[c | data]. Within a party moments are
//! released; between parties they come from the mixed rows, whose Gram matrix is all that is needed
//! of them. Coefficients of a party's features are whitened by its own moments, correlations
//! between parties are shrunk by how well the data resolve them, and the matrix of all is kept
//! positive definite. That predicts well; effects are read from one step beyond it, which undoes
//! the shrinkage, at many matrices that the correlations may have (docs/LEARNERS.md#posterior).

mod clipping;
mod concerns;
mod correlations;
mod evidence;
mod explained;
mod learned;
mod mixture;
mod overlaps;
mod people;
mod points;
mod products;
mod reading;
mod sequence;
mod sharing;
mod shifts;
mod shrink;
mod whiten;

use faer::{Col, Mat};

use super::coefficients::Covariance;
use super::logistic::{self, Features, LogOdds, Outcome, Shape};
use super::{Coefficients, Interval, LearnError, Level};
use clipping::Losses;
pub use concerns::{Concern, ShareConcerns};
use correlations::Purpose;
use evidence::Sample;
pub use evidence::{Between, Blocks, Evidence};
pub use explained::{ExplainedShare, explained_share};
use learned::Learned;
use mixture::Mixture;
pub use overlaps::{Overlap, OverlapConcern};
pub use people::{DeclaredOverlaps, PartyPeople, People};
use reading::Linearised;
pub use shifts::{ColumnShift, column_shifts};

/// A regression learned from [`Evidence`], in standardised units.
#[derive(Debug, Clone)]
pub struct Posterior {
    /// Posterior mean weights: what to predict with.
    pub weights: Vec<f64>,
    /// Weights that shrinkage does not bias, with their covariance: what intervals are about.
    pub estimate: Coefficients,
    /// Their intervals, which need not be symmetric.
    pub intervals: Vec<Interval>,
    /// What each variance is made of.
    pub parts: Vec<VarianceParts>,
    /// What published numbers say against each coefficient.
    pub concerns: Vec<Vec<Concern>>,
    /// And against the explained share.
    pub share_concerns: ShareConcerns,
    /// Explained share of the label's variance as the posterior mean has it.
    pub explained: f64,
    /// What the other features say of each, as the posterior mean has it.
    pub related: Vec<Related>,
}

/// What the other features of a regression say of one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Related {
    /// How much of its variance they explain together.
    pub by_others: f64,
    /// The one that goes with it most, counted among the features, and their correlation.
    pub closest: Option<(usize, f64)>,
}

/// What the variance of a coefficient is made of, as shares that sum to one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct VarianceParts {
    /// Noise added for privacy.
    pub privacy: f64,
    /// Subjects that share a mixed row.
    pub mixing: f64,
    /// Correlations between parties that the release leaves open.
    pub correlations: f64,
    /// Subjects being a sample.
    pub sampling: f64,
    /// Allowance for values that were clipped.
    pub clipping: f64,
    /// What is not known of who is where: overlaps between parties, values missing at the same
    /// people of several, and people that parties chose.
    pub people: f64,
    /// Allowance for what moments do not say of log odds; nothing in a linear regression.
    pub approximation: f64,
}

/// What turns coordinates into coefficients, and errors of scale and clipping.
struct Reader<'a> {
    evidence: &'a Evidence<'a>,
    label: usize,
    features: &'a [usize],
    learned: &'a Learned,
    losses: &'a Losses,
    /// Which coefficients are about values as they were cut, so that nothing is undone.
    cut: Vec<bool>,
}

impl Reader<'_> {
    /// Rows of `undone` for coefficients about values as they were, of `back` for those about cut
    /// ones. Standardised units are those in which clipping is undone, so that one scaling serves
    /// both.
    fn choose(&self, undone: &Mat<f64>) -> Mat<f64> {
        let back = &self.learned.back;
        let attenuation = |column: usize| self.evidence.clipping[column].attenuation;
        let unit = |i: usize| attenuation(self.features[i]) / attenuation(self.label);
        Mat::from_fn(undone.nrows(), undone.ncols(), |i, j| {
            if self.cut[i] { back[(i, j)] * unit(i) } else { undone[(i, j)] }
        })
    }

    /// From weights of coordinates to coefficients.
    fn undo(&self, h_inverse: &Mat<f64>) -> Mat<f64> {
        &self.learned.back * self.losses.undo(h_inverse)
    }

    /// Weights of features as far as they can be believed: where noise hides the spread of a
    /// column, little of what seems to go with it can be.
    fn believed(&self, weights: &Col<f64>) -> Vec<f64> {
        let believed = |column: usize| {
            let evidence = self.evidence;
            let seen = evidence.covariance[(column, column)].max(3.0 * evidence.covariance_noise[column]);
            (evidence.clipping[column].believable_variance / seen).min(1.0)
        };
        let of_label = believed(self.label);
        (0..weights.nrows()).map(|j| weights[j] * believed(self.features[j]) * of_label).collect()
    }

    /// Variances by errors of the columns' scales.
    fn of_scale(&self, weights: &[f64]) -> Vec<f64> {
        let error = |column: usize| {
            self.evidence.clipping[column].scale_error + self.evidence.people.rate_errors[column].powi(2)
        };
        let variance = |(j, weight): (usize, &f64)| {
            if self.cut[j] { 0.0 } else { weight * weight * (error(self.features[j]) + error(self.label)) }
        };
        weights.iter().enumerate().map(variance).collect()
    }

    /// For each unknown loss by clipping, what it does to the coefficients.
    fn effects(&self) -> Vec<Vec<f64>> {
        let of_loss = |effect: &Col<f64>| {
            let effect = &self.learned.back * effect;
            (0..effect.nrows()).map(|j| if self.cut[j] { 0.0 } else { effect[j] }).collect()
        };
        self.losses.effects.iter().map(of_loss).collect()
    }

    /// For each thing that is not known of who is where, what it does to the coefficients.
    fn effects_of_people(&self) -> Vec<Vec<f64>> {
        let back = self.choose(&self.learned.back);
        let doubts = sharing::doubts(self.evidence, self.learned, self.label, self.features);
        doubts.iter().map(|doubt| (&back * &doubt.effect).iter().copied().collect()).collect()
    }

    /// Posterior mean coefficients at one linearisation.
    fn means(&self, at: &Linearised) -> Vec<f64> {
        (self.choose(&self.undo(&at.h_inverse)) * &at.w).iter().copied().collect()
    }

    /// Moments of the features that go with a matrix.
    fn features(&self, h: &Mat<f64>, h_inverse: &Mat<f64>, shapes: &[Shape]) -> Features {
        let white = &self.learned.white;
        let covariance = &white.inverse * h * white.inverse.transpose();
        let inverse = white.transform.transpose() * h_inverse * &white.transform;
        Features::new(&covariance, &inverse, shapes)
    }

    /// Coefficients at one linearisation, with the rows that turn errors of its equations into
    /// theirs.
    fn read(&self, at: &Linearised) -> (Vec<f64>, Mat<f64>) {
        let undo = self.choose(&self.undo(&at.h_inverse));
        let derivative = self.choose(&(&self.learned.back * self.losses.derivative(&at.h_inverse)));
        ((&undo * &at.b).iter().copied().collect(), derivative * &at.h_inverse)
    }

    /// How many standard errors each coefficient is from 0 at one linearisation, uncertainty of
    /// clipping left out.
    fn standard_errors_from_zero(&self, at: &Linearised) -> Vec<f64> {
        let (estimates, rows) = self.read(at);
        let variances = variances(at, &rows);
        estimates.iter().zip(variances).map(|(estimate, variance)| estimate / variance.sqrt()).collect()
    }
}

/// Everything that the variance at one linearisation is made of.
struct Spread {
    rows: Mat<f64>,
    mixing: Mat<f64>,
    unknown: Mat<f64>,
    local: Mat<f64>,
    sampling: Mat<f64>,
}

impl Spread {
    fn new(at: &Linearised, rows: &Mat<f64>) -> Self {
        let d = rows.nrows();
        let through = |inner: &Mat<f64>| rows * inner * rows.transpose();
        Self {
            rows: through(&at.between),
            mixing: through(&at.mixing),
            unknown: through(&at.unknown),
            local: through(&Mat::from_fn(d, d, |i, j| if i == j { at.local[i] } else { 0.0 })),
            sampling: through(&at.sampling),
        }
    }
}

/// Variances of the coefficients at one linearisation, without clipping and scales.
fn variances(at: &Linearised, rows: &Mat<f64>) -> Vec<f64> {
    let d = rows.nrows();
    let inner = Mat::from_fn(d, d, |i, j| {
        let local = if i == j { at.local[i] } else { 0.0 };
        at.between[(i, j)] + at.unknown[(i, j)] + local + at.sampling[(i, j)]
    });
    let half = rows * inner;
    (0..d).map(|i| (0..d).map(|j| half[(i, j)] * rows[(i, j)]).sum::<f64>().max(0.0)).collect()
}

/// What predicts best.
struct ToPredict {
    weights: Vec<f64>,
    explained: f64,
    /// Log odds instead of the weights, where they are wanted.
    odds: Option<logistic::ToPredict>,
}

impl ToPredict {
    fn new(
        evidence: &Evidence<'_>,
        sample: &Sample,
        label: usize,
        features: &[usize],
        odds: Option<Wanted<'_>>,
    ) -> Result<Self, LearnError> {
        let learned = Learned::new(evidence, sample, label, features, Purpose::Predicting)?;
        let losses = Losses::new(evidence, &learned, label, features);
        let cut = vec![false; features.len()];
        let reader = Reader { evidence, label, features, learned: &learned, losses: &losses, cut };
        let weights = reader.believed(&(&learned.back * losses.undone(&learned)));
        let explained = learned.explained();
        let Some(Wanted { outcome, shapes }) = odds else {
            return Ok(Self { weights, explained, odds: None });
        };
        let moments = reader.features(&learned.h, &learned.h_inverse, shapes);
        let odds = logistic::ToPredict::new(outcome, shapes, &moments, &weights, explained);
        Ok(Self { weights: odds.weights.clone(), explained, odds: Some(odds) })
    }
}

/// The log odds of what are wanted instead of the label itself.
#[derive(Clone, Copy)]
struct Wanted<'a> {
    outcome: &'a Outcome,
    shapes: &'a [Shape],
}

/// Learns the regression of `label` on `features`, with intervals of this level.
pub fn posterior(
    evidence: &Evidence<'_>,
    label: usize,
    features: &[usize],
    level: Level,
) -> Result<Posterior, LearnError> {
    Ok(learn(evidence, label, features, level, None)?.posterior)
}

/// Learns the logistic regression of `label` on `features`: with the scale that coefficients are
/// read on, the features' moments, and log odds to predict with.
pub(super) fn log_odds<'a>(
    evidence: &Evidence<'_>,
    label: usize,
    features: &[usize],
    level: Level,
    outcome: &'a Outcome,
    shapes: &'a [Shape],
) -> Result<(Posterior, LogOdds<'a>, Features, logistic::ToPredict), LearnError> {
    let wanted = Wanted { outcome, shapes };
    let found = learn(evidence, label, features, level, Some(wanted))?;
    let (scale, moments) = found.odds.ok_or(LearnError::Overflow)?;
    let to_predict = found.to_predict.ok_or(LearnError::Overflow)?;
    Ok((found.posterior, scale, moments, to_predict))
}

/// A regression, on the scale that was wanted.
struct Found<'a> {
    posterior: Posterior,
    odds: Option<(LogOdds<'a>, Features)>,
    to_predict: Option<logistic::ToPredict>,
}

/// Coefficients at one linearisation, on the scale that is wanted.
struct Read {
    estimates: Vec<f64>,
    /// From errors of the equations to those of the coefficients.
    rows: Mat<f64>,
    /// From errors of linear coefficients to those of the wanted ones, if they differ.
    derivative: Option<Mat<f64>>,
}

impl Read {
    fn new(
        reader: &Reader<'_>,
        at: &Linearised,
        h: &Mat<f64>,
        odds: Option<&(LogOdds<'_>, Features)>,
        shapes: &[Shape],
    ) -> Self {
        let (estimates, rows) = reader.read(at);
        let Some((scale, _)) = odds else { return Self { estimates, rows, derivative: None } };
        let moments = reader.features(h, &at.h_inverse, shapes);
        let tangent = scale.tangent(&moments, &reader.means(at), &estimates);
        Self {
            rows: &tangent.derivative * rows,
            estimates: tangent.estimates,
            derivative: Some(tangent.derivative),
        }
    }

    /// Errors of linear coefficients as errors of these.
    fn carried(&self, linear: Vec<f64>) -> Vec<f64> {
        let Some(derivative) = &self.derivative else { return linear };
        (derivative * Col::from_fn(linear.len(), |i| linear[i])).iter().copied().collect()
    }
}

/// The product of what the effects do to two coefficients, summed.
fn product(effects: &[Vec<f64>], i: usize, j: usize) -> f64 {
    effects.iter().map(|effect| effect[i] * effect[j]).sum()
}

fn learn<'a>(
    evidence: &Evidence<'_>,
    label: usize,
    features: &[usize],
    level: Level,
    wanted: Option<Wanted<'a>>,
) -> Result<Found<'a>, LearnError> {
    evidence.between.check_choice(label, features)?;
    let sample = Sample::whole(evidence, label, features);
    let learned = Learned::new(evidence, &sample, label, features, Purpose::Reading)?;
    let losses = Losses::new(evidence, &learned, label, features);
    let d = features.len();
    let base = Linearised::at(evidence, &learned, &sample, &learned.h).ok_or(LearnError::Overflow)?;
    let undoing =
        Reader { evidence, label, features, learned: &learned, losses: &losses, cut: vec![false; d] };
    let standard_errors = undoing.standard_errors_from_zero(&base);
    let mut concerns = concerns::of_columns(evidence, &learned, (label, features), &standard_errors);
    let cut = concerns.iter().map(|of| of.iter().any(Concern::is_about_cut_values)).collect();
    let reader = Reader { cut, ..undoing };
    let degrees = evidence.between.degrees();

    let shapes = wanted.map_or(&[][..], |wanted| wanted.shapes);
    let odds = wanted.map(|Wanted { outcome, shapes }| {
        let moments = reader.features(&learned.h, &base.h_inverse, shapes);
        (LogOdds::new(outcome, shapes, &moments, &reader.means(&base)), moments)
    });
    let at_base = Read::new(&reader, &base, &learned.h, odds.as_ref(), shapes);
    let approximation = odds.as_ref().map_or_else(Vec::new, |(scale, moments)| {
        scale.effects(moments, &reader.means(&base), &reader.read(&base).0)
    });
    let carried = |effects: Vec<Vec<f64>>| -> Vec<Vec<f64>> {
        effects.into_iter().map(|effect| at_base.carried(effect)).collect()
    };
    let (effects, of_people) = (carried(reader.effects()), carried(reader.effects_of_people()));
    let clipping = |i: usize, j: usize| product(&effects, i, j);
    let people = |i: usize, j: usize| product(&of_people, i, j);
    let missed = |i: usize, j: usize| product(&approximation, i, j);
    let spread = Spread::new(&base, &at_base.rows);
    let linear = |at: &Linearised| reader.believed(&(reader.undo(&at.h_inverse) * &at.w));
    let of_scale = reader.of_scale(&at_base.carried(linear(&base)));

    let mut mixture = Mixture::new(degrees);
    for point in points::points(&learned) {
        let Some(at) = Linearised::at(evidence, &learned, &sample, &point.h) else { continue };
        let read = Read::new(&reader, &at, &point.h, odds.as_ref(), shapes);
        let mut variances = variances(&at, &read.rows);
        let there = read.carried(linear(&at));
        for (j, of_scale) in reader.of_scale(&there).into_iter().enumerate() {
            variances[j] += of_scale + clipping(j, j) + people(j, j) + missed(j, j);
        }
        mixture.add(point.weight, read.estimates, variances);
    }

    // The covariance is that at the posterior mean, with the variances of the mixture.
    let at_mean = |i: usize, j: usize| {
        spread.rows[(i, j)]
            + spread.unknown[(i, j)]
            + spread.local[(i, j)]
            + spread.sampling[(i, j)]
            + clipping(i, j)
            + people(i, j)
            + missed(i, j)
            + if i == j { of_scale[i] } else { 0.0 }
    };
    let wider: Vec<f64> = (0..d).map(|j| (mixture.variance(j) / at_mean(j, j)).sqrt()).collect();
    let covariance = Covariance::from_lower(d, |i, j| at_mean(i, j) * wider[i] * wider[j]);
    let parts: Vec<VarianceParts> = (0..d)
        .map(|i| {
            let mixing = spread.mixing[(i, i)].clamp(0.0, spread.rows[(i, i)].max(0.0));
            let privacy = spread.rows[(i, i)] - mixing + spread.local[(i, i)] + of_scale[i];
            let correlations = spread.unknown[(i, i)] + (mixture.variance(i) - at_mean(i, i)).max(0.0);
            let (sampling, clipping, people) = (spread.sampling[(i, i)], clipping(i, i), people(i, i));
            let approximation = missed(i, i);
            let total = privacy + mixing + correlations + sampling + clipping + people + approximation;
            VarianceParts {
                privacy: privacy / total,
                mixing: mixing / total,
                correlations: correlations / total,
                sampling: sampling / total,
                clipping: clipping / total,
                people: people / total,
                approximation: approximation / total,
            }
        })
        .collect();
    for (j, of) in concerns.iter_mut().enumerate() {
        let open = base.open(&learned, &at_base.rows, j);
        of.extend(concerns::confounders(parts[j].correlations, &open, features));
    }
    let tail = (1.0 - level.get()) / 2.0;
    let interval =
        |j: usize| Interval { lower: mixture.quantile(j, tail), upper: mixture.quantile(j, 1.0 - tail) };
    let to_predict = ToPredict::new(evidence, &sample, label, features, wanted)?;
    let posterior = Posterior {
        weights: to_predict.weights,
        explained: to_predict.explained,
        parts,
        concerns,
        share_concerns: concerns::of_share(evidence, label, features),
        related: learned.related(),
        estimate: Coefficients::new((0..d).map(|j| mixture.quantile(j, 0.5)).collect(), covariance, degrees),
        intervals: (0..d).map(interval).collect(),
    };
    Ok(Found { posterior, odds, to_predict: to_predict.odds })
}
