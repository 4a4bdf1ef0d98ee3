//! The calibrated release of all parties, on columns in memory, and what is learned from it: the real stages and the
//! real learner, with the lab's noise.

use anyhow::{Context, Result};
use faer::linalg::solvers::Solve as _;
use faer::{Col, Mat};
use potluck_core::accounting::Mu;
use potluck_core::calibrated::{PartyPlan, Plan};
use potluck_core::encoding::EncodedRows;
use potluck_core::learn::{
    Affine, Clipping, Concern, Evidence, ExplainedShare, Interval, Level, LocalMoments, Released,
    ShareConcerns, Tails, explained_share, posterior,
};
use potluck_core::mixing::{Mixing, SubjectDigest, add_sparse};
use potluck_core::stage::{Stage, Statistic};

use crate::experiments::map::{Reading, Readings};
use crate::family::{Table, Truth};
use crate::holdings::Holdings;
use crate::noise::NoiseKind;
use crate::seeds::Seed;

/// Subjects encoded at a time: their rows stay in cache.
const BATCH: usize = 4096;

/// The last stage is the mixed rows.
const STAGES: usize = potluck_core::calibrated::STAGES.len();

/// How releases are made.
#[derive(Clone, Copy)]
pub(crate) struct Release {
    pub(crate) mu: Mu,
    pub(crate) noise: NoiseKind,
    /// Number of mixed rows; what public facts say if none.
    pub(crate) k: Option<u64>,
    /// Whether to keep the exact products of the rows that are mixed, to know the truth among cut values.
    pub(crate) keep_products: bool,
}

/// How one encoded column was released.
struct Units {
    /// From original to released units, with the attenuation by clipping undone.
    affine: Affine,
    /// Where it is taken to lie when predicting, in original units.
    believed_centre: f64,
    /// What the release kept of the column, in original units.
    range: [f64; 2],
}

/// What one party published beside its mixed rows.
struct Local {
    members: Vec<usize>,
    moments: LocalMoments,
    clipping: Vec<Clipping>,
}

/// The releases of all parties, as learners read them.
pub(crate) struct PublicDataset {
    rows: u64,
    /// Mixed rows in standardised units, column by column.
    columns: Vec<Vec<f64>>,
    noise: Vec<f64>,
    units: Vec<Units>,
    parties: Vec<Local>,
    /// For each column as the label, the features to learn from.
    features: Vec<Vec<usize>>,
    /// Exact products of the rows that were mixed, if they were to be kept.
    products: Option<Mat<f64>>,
}

/// A regression in original units: numbers as they are, levels as 0 and 1.
pub(crate) struct Model {
    /// Encoded columns of the features.
    pub(crate) features: Vec<usize>,
    /// Posterior means: what to predict with.
    pub(crate) slopes: Vec<f64>,
    pub(crate) intercept: f64,
    /// Slopes without shrinkage, with their intervals.
    pub(crate) estimates: Vec<f64>,
    pub(crate) intervals: Vec<Interval>,
    /// Whether there is a finding about each.
    pub(crate) findings: Vec<bool>,
    /// When predicting, inputs are clamped to these.
    pub(crate) inputs: Vec<[f64; 2]>,
    /// Predictions are clamped to this.
    pub(crate) output: [f64; 2],
}

impl Release {
    /// Runs every stage of every party.
    pub(crate) fn run(
        self,
        holdings: &Holdings,
        subjects: &[SubjectDigest],
        seed: Seed,
    ) -> Result<PublicDataset> {
        let layouts = holdings.layouts();
        let rows = holdings.rows() as u64;
        let plan = Plan::new(rows, self.mu, &layouts, self.k)?;
        let scales = holdings.public_scales();
        let width = scales.len();
        let mut dataset = PublicDataset {
            rows,
            columns: Vec::with_capacity(width),
            noise: Vec::with_capacity(width),
            units: Vec::with_capacity(width),
            parties: Vec::with_capacity(layouts.len()),
            features: (0..width).map(|label| holdings.features(label)).collect(),
            products: self.keep_products.then(|| Mat::zeros(width, width)),
        };
        let plans = layouts.into_iter().map(|layout| plan.party(layout)).collect::<Result<Vec<_>, _>>()?;
        // The sums of each party's stages.
        let mut sums: Vec<Vec<Vec<i64>>> = vec![Vec::new(); plans.len()];
        for position in 0..STAGES {
            let mut stages = Vec::with_capacity(plans.len());
            for (plan, sums) in plans.iter().zip(&sums) {
                stages.push(plan.stage(sums)?.context("a calibrated release has four stages")?);
            }
            let exact = match position {
                0 => holdings.first_sums(|| exact_sums(&stages, holdings)),
                _ if position + 1 == STAGES => {
                    mixed_sums(&stages, holdings, subjects, dataset.products.as_mut())
                }
                _ => exact_sums(&stages, holdings),
            };
            for (party, (stage, mut own)) in stages.iter().zip(exact).enumerate() {
                let mut noise = self.noise.start(seed.of(&format!("calibrated {party} {}", stage.name)));
                let mut start = 0;
                for &(count, sigma) in &stage.noise {
                    noise.add(&mut own[start..start + count], sigma, stage.sum_limit());
                    start += count;
                }
                if position + 1 == STAGES {
                    let level = if self.noise == NoiseKind::Off { 0.0 } else { stage.noise_level() };
                    dataset.add_mixed(stage, &own, level);
                }
                sums[party].push(own);
            }
        }
        for (plan, sums) in plans.iter().zip(&sums) {
            dataset.add_local(plan, sums, &scales)?;
        }
        Ok(dataset)
    }
}

/// The sums of a stage of every party.
fn exact_sums(stages: &[Stage], holdings: &Holdings) -> Vec<Vec<i64>> {
    let mut encoded = EncodedRows::default();
    let of_party = |(party, stage): (usize, &Stage)| {
        let mut sums = vec![0; stage.coordinates()];
        for first in (0..holdings.rows()).step_by(BATCH) {
            let end = holdings.rows().min(first + BATCH);
            stage.encode(&holdings.batch(party, first..end), end - first, &mut encoded);
            stage.accumulate(&[], first as u64, &encoded, &mut sums);
        }
        sums
    };
    stages.iter().enumerate().map(of_party).collect()
}

/// The mixed rows of every party, added up side by side: subjects fall into the same rows everywhere.
fn mixed_sums(
    stages: &[Stage],
    holdings: &Holdings,
    subjects: &[SubjectDigest],
    mut products: Option<&mut Mat<f64>>,
) -> Vec<Vec<i64>> {
    let &Statistic::Mixed { mixing: Mixing::Sparse, k } = &stages[0].statistic else {
        unreachable!("the last stage of a calibrated release mixes sparsely");
    };
    let width: usize = stages.iter().map(|stage| stage.encoder.width()).sum();
    let mut sums = vec![0; k as usize * width];
    let mut encoded = EncodedRows::default();
    let mut rows = vec![0; BATCH * width];
    for first in (0..holdings.rows()).step_by(BATCH) {
        let end = holdings.rows().min(first + BATCH);
        let rows = &mut rows[..(end - first) * width];
        let mut at = 0;
        for (party, stage) in stages.iter().enumerate() {
            stage.encode(&holdings.batch(party, first..end), end - first, &mut encoded);
            for column in 0..encoded.width() {
                for (row, &q) in rows.chunks_exact_mut(width).zip(encoded.column(column)) {
                    row[at] = q;
                }
                at += 1;
            }
        }
        if let Some(products) = products.as_deref_mut() {
            let batch = Mat::from_fn(end - first, width, |row, column| f64::from(rows[row * width + column]));
            *products += batch.transpose() * &batch;
        }
        add_sparse(&subjects[first..end], rows, width, k, &mut sums);
    }
    let mut at = 0;
    let of_party = |stage: &Stage| {
        let own = at..at + stage.encoder.width();
        at = own.end;
        sums.chunks_exact(width).flat_map(|row| &row[own.clone()]).copied().collect()
    };
    stages.iter().map(of_party).collect()
}

impl PublicDataset {
    fn add_mixed(&mut self, stage: &Stage, sums: &[i64], noise: f64) {
        let width = stage.encoder.width();
        let scale = stage.scale();
        for column in 0..width {
            let values = sums.iter().skip(column).step_by(width).map(|&sum| sum as f64 / scale);
            self.columns.push(values.collect());
            self.noise.push(noise);
        }
    }

    fn add_local(&mut self, plan: &PartyPlan, sums: &[Vec<i64>], scales: &[(f64, f64)]) -> Result<()> {
        let frame = plan.frame(sums)?;
        let moments = LocalMoments::new(plan, sums, &frame)?;
        let (clipping, centres) = (moments.clipping(&frame), moments.centres(&frame));
        let first = self.units.len();
        for (at, scaling) in frame.scalings.iter().enumerate() {
            let (mid, half) = scales[first + at];
            let original = |u: f64| mid + half * u;
            self.units.push(Units {
                affine: Affine::new(
                    original(centres[at].found),
                    half * scaling.scale * clipping[at].attenuation,
                )?,
                believed_centre: original(centres[at].believed),
                range: [original(scaling.low), original(scaling.high)],
            });
        }
        self.parties.push(Local { members: (first..self.units.len()).collect(), moments, clipping });
        Ok(())
    }

    /// Calls `learn` with what was published as learners take it.
    fn with_evidence<T>(&self, learn: impl FnOnce(&Evidence<'_>) -> Result<T>) -> Result<T> {
        let columns: Vec<&[f64]> = self.columns.iter().map(Vec::as_slice).collect();
        let released = Released::new(&columns, &self.noise, self.rows)?;
        let parties: Vec<(Vec<usize>, &LocalMoments, &[Clipping])> = self
            .parties
            .iter()
            .map(|local| (local.members.clone(), &local.moments, local.clipping.as_slice()))
            .collect();
        learn(&Evidence::from_parties(released, &parties))
    }

    /// Number of encoded columns.
    pub(crate) fn width(&self) -> usize {
        self.units.len()
    }

    /// What the release says of the mean of an encoded column, in original units.
    pub(crate) fn centre(&self, column: usize) -> f64 {
        self.units[column].believed_centre
    }

    /// The features that the label's own party holds: what it could learn from alone.
    pub(crate) fn beside(&self, label: usize) -> Vec<usize> {
        let own = self.parties.iter().find(|local| local.members.contains(&label));
        let is_own = |feature: &&usize| own.is_some_and(|local| local.members.contains(feature));
        self.features[label].iter().filter(is_own).copied().collect()
    }

    /// Learns the regression of an encoded column on all others.
    pub(crate) fn fit(&self, label: usize, level: Level) -> Result<Model> {
        self.fit_on(label, self.features[label].clone(), level)
    }

    /// Learns the regression of an encoded column on some others.
    pub(crate) fn fit_on(&self, label: usize, features: Vec<usize>, level: Level) -> Result<Model> {
        let fit = self.with_evidence(|evidence| Ok(posterior(evidence, label, &features, level)?))?;
        let scalings: Vec<Affine> = features.iter().map(|&j| self.units[j].affine).collect();
        let of_label = self.units[label].affine;
        let original = fit.estimate.to_original(&scalings, of_label)?;
        let units = |scaling: &Affine| of_label.half() / scaling.half();
        let intervals =
            fit.intervals.iter().zip(&scalings).map(|(interval, scaling)| interval.scaled(units(scaling)));
        let intervals: Vec<Interval> = intervals.collect();
        let slopes: Vec<f64> =
            fit.weights.iter().zip(&scalings).map(|(weight, scaling)| weight * units(scaling)).collect();
        let at_centre: f64 =
            slopes.iter().zip(&features).map(|(slope, &feature)| slope * self.centre(feature)).sum();
        Ok(Model {
            intercept: self.centre(label) - at_centre,
            slopes,
            estimates: original.slopes().to_vec(),
            findings: fit.concerns.iter().map(|concerns| !concerns.is_empty()).collect(),
            intervals,
            inputs: features.iter().map(|&j| self.units[j].range).collect(),
            output: self.units[label].range,
            features,
        })
    }

    /// Least squares among the rows as they were cut, in the units of fits.
    fn cut_truth(&self, label: usize, features: &[usize]) -> Vec<f64> {
        let Some(products) = &self.products else { return Vec::new() };
        let d = features.len();
        let h = Mat::from_fn(d, d, |i, j| products[(features[i], features[j])]);
        let c = Col::from_fn(d, |i| products[(features[i], label)]);
        let w = h.partial_piv_lu().solve(&c);
        let attenuation = |column: usize| self.clipping(column).attenuation;
        (0..d).map(|i| w[i] * attenuation(features[i]) / attenuation(label)).collect()
    }

    /// What clipping did to a column.
    fn clipping(&self, column: usize) -> Clipping {
        let of = |local: &Local| {
            local.members.iter().position(|&member| member == column).map(|at| local.clipping[at])
        };
        self.parties.iter().find_map(of).unwrap_or(Clipping::NONE)
    }

    /// What is published of the tails of a column.
    fn signs(&self, column: usize) -> [f64; 6] {
        let clipping = self.clipping(column);
        let Tails { excess, excess_error, shift, shift_error } = clipping.tails;
        [excess, excess_error, shift, shift_error, clipping.attenuation, f64::from(clipping.numeric)]
    }

    /// What intervals say of a regression whose truth is known, in standard deviations.
    pub(crate) fn read(&self, table: &Table, level: Level) -> Result<Readings> {
        let (label, truth) = (table.label, &table.truth);
        let features: &[usize] = &truth.iter().map(|truth| truth.column).collect::<Vec<_>>();
        let fit = self.with_evidence(|evidence| Ok(posterior(evidence, label, features, level)?))?;
        let share = self.with_evidence(|evidence| Ok(explained_share(evidence, label, features)?))?;
        let interval = share.interval(level);
        let of_label = self.units[label].affine.half();
        let cut = self.cut_truth(label, features);
        let reading = |(at, truth): (usize, &Truth)| {
            let unit = truth.unit * of_label / self.units[features[at]].affine.half();
            let interval = fit.intervals[at].scaled(unit);
            let is_cut = fit.concerns[at].iter().any(Concern::is_about_cut_values);
            Reading {
                cut: is_cut.then(|| cut[at] * unit),
                low: interval.lower,
                estimate: fit.estimate.weights()[at] * unit,
                high: interval.upper,
                finding: fit.concerns[at].first().map(|concern| concern.name().to_owned()),
                signs: [label, features[at]]
                    .iter()
                    .flat_map(|&column| self.signs(column))
                    .chain([fit.parts[at].correlations])
                    .collect(),
            }
        };
        let slope = |(at, &weight): (usize, &f64)| weight * of_label / self.units[features[at]].affine.half();
        let slopes: Vec<f64> = fit.weights.iter().enumerate().map(slope).collect();
        Ok(Readings {
            explained: [interval.lower, table.explained_by(&slopes), interval.upper],
            share_finding: fit.share_concerns != ShareConcerns::default(),
            coefficients: truth.iter().enumerate().map(reading).collect(),
        })
    }

    /// Share of the label's variance that the regression of an encoded column on all others explains.
    pub(crate) fn explained(&self, label: usize) -> Result<ExplainedShare> {
        self.with_evidence(|evidence| Ok(explained_share(evidence, label, &self.features[label])?))
    }
}
