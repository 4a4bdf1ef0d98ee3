//! Calibrated releases of all parties in memory, through the join and the fit that ship.

use anyhow::{Context, Result};
use faer::linalg::solvers::Solve as _;
use faer::{Col, Mat};
use potluck_core::encoding::Encoder;
use potluck_core::learn::{Clipping, Evidence, Level, LocalMoments, Released as Rows, Tails, posterior};
use potluck_core::stage::Stage;
use potluck_release::fit::{Regression, fit};
use potluck_release::study::Party;
use potluck_release::{Model, PublicDataset, Study};
use potluck_simulation::{Noise, Simulation, Subjects};

use crate::experiments::map::{Reading, Readings};
use crate::family::{Table, Truth};
use crate::holdings::Holdings;
use crate::noise::NoiseKind;
use crate::seeds::Seed;
use crate::table::Privacy;

/// How releases are made.
#[derive(Clone, Copy)]
pub(crate) struct Release {
    pub(crate) privacy: Privacy,
    pub(crate) noise: NoiseKind,
    /// Number of mixed rows; what public facts say if none.
    pub(crate) k: Option<u64>,
}

impl Release {
    /// Runs every stage of every party, and joins what they publish.
    pub(crate) fn run(self, holdings: &Holdings, subjects: &Subjects, seed: Seed) -> Result<Released> {
        let study = self.study(holdings, subjects)?;
        let simulation = Simulation::new(&study, holdings.people(), subjects);
        Ok(Released { dataset: simulation.dataset(self.noise(seed))? })
    }

    /// The same with the exact products of the rows that were mixed, to know the truth among cut
    /// values.
    pub(crate) fn run_with_products(
        self,
        holdings: &Holdings,
        subjects: &Subjects,
        seed: Seed,
    ) -> Result<(Released, Mat<f64>)> {
        let study = self.study(holdings, subjects)?;
        let simulation = Simulation::new(&study, holdings.people(), subjects);
        let width = study.definition().width();
        let mut products = Mat::zeros(width, width);
        let sums = simulation.sums(self.noise(seed), |rows, width| {
            let rows =
                Mat::from_fn(rows.len() / width, width, |row, column| f64::from(rows[row * width + column]));
            products += rows.transpose() * &rows;
        })?;
        Ok((Released { dataset: simulation.join(&sums)? }, products))
    }

    fn study(self, holdings: &Holdings, subjects: &Subjects) -> Result<Study> {
        holdings.study(holdings.rows(), self.privacy, self.k, subjects.key())
    }

    /// Every stage of a party has noise of its own.
    fn noise(self, seed: Seed) -> impl Fn(usize, &Stage) -> Box<dyn Noise> {
        move |party, stage| self.noise.start(seed.of(&format!("calibrated {party} {}", stage.name)))
    }
}

/// The releases of all parties; encoded columns are counted party by party.
pub(crate) struct Released {
    dataset: PublicDataset,
}

/// What one party published beside its mixed rows.
struct Local {
    members: Vec<usize>,
    moments: LocalMoments,
    clipping: Vec<Clipping>,
    scales: Vec<Scale>,
}

/// How an encoded column was standardised.
#[derive(Clone, Copy)]
struct Scale {
    /// A standardised unit in original ones, before clipping is undone.
    unit: f64,
    /// Where the column is taken to lie when predicting, in original units.
    believed_centre: f64,
}

impl Released {
    /// Names of the encoded columns.
    pub(crate) fn names(&self) -> &[String] {
        self.dataset.columns().names()
    }

    /// Learns the regression of an encoded column on all others.
    pub(crate) fn fit(&self, label: usize) -> Result<Model> {
        Ok(fit(&self.dataset, &Regression::of(&self.names()[label]))?)
    }

    /// Learns the regression of an encoded column on those of its own party: what that could learn
    /// alone. Nothing if it has no other column.
    pub(crate) fn fit_beside(&self, label: usize) -> Result<Option<Model>> {
        let name = &self.names()[label];
        let parties = self.dataset.study().definition().parties();
        let own = parties.iter().find(|party| party.encoded_names().contains(name));
        let columns = own.into_iter().flat_map(Party::columns);
        let others = columns.filter(|column| !column.encoded_names().contains(name));
        let features: Vec<String> = others.map(|column| column.name().to_owned()).collect();
        if features.is_empty() {
            return Ok(None);
        }
        Ok(Some(fit(&self.dataset, &Regression { features: Some(features), ..Regression::of(name) })?))
    }

    /// Slopes of an encoded column on all others as they would be read if the releases had no
    /// noise, in original units.
    pub(crate) fn slopes_without_noise(&self, label: usize) -> Result<Vec<f64>> {
        let columns: Vec<&[f64]> = self.dataset.columns().values().iter().map(Vec::as_slice).collect();
        let noise = vec![0.0; columns.len()];
        let rows = Rows::new(&columns, &noise, self.dataset.study().definition().rows())?;
        let locals = self.locals()?;
        let parts: Vec<_> = locals
            .iter()
            .map(|local| (local.members.clone(), &local.moments, local.clipping.as_slice()))
            .collect();
        let evidence = Evidence::from_parties(rows, &parts);
        let features: Vec<usize> = (0..columns.len()).filter(|&column| column != label).collect();
        let found = posterior(&evidence, label, &features, Level::default())?;
        let units: Vec<f64> =
            columns_of(&locals).map(|(clipping, scale)| scale.unit * clipping.attenuation).collect();
        let slopes = found.estimate.weights().iter().zip(&features);
        Ok(slopes.map(|(weight, &feature)| weight * units[label] / units[feature]).collect())
    }

    /// What the releases say of the mean of an encoded column, in original units.
    pub(crate) fn centre(&self, column: usize) -> Result<f64> {
        let locals = self.locals()?;
        let (_, scale) = columns_of(&locals).nth(column).context("there is such a column")?;
        Ok(scale.believed_centre)
    }

    fn locals(&self) -> Result<Vec<Local>> {
        let study = self.dataset.study();
        let mut start = 0;
        let local = |(name, sums): (&str, Vec<Vec<i64>>)| {
            let plan = study.calibrated(name)?.context("the study is calibrated")?;
            let frame = plan.frame(&sums)?;
            let moments = LocalMoments::new(plan, &sums, &frame)?;
            let (clipping, centres) = (moments.clipping(&frame), moments.centres(&frame));
            let columns = study.definition().party(name)?.columns();
            let public = columns.iter().flat_map(|column| match column.encoder() {
                Encoder::Numeric(bounds) => vec![(bounds.midpoint(), bounds.half_width())],
                Encoder::Categorical(levels) => vec![(0.0, 1.0); levels.width()],
            });
            let scale = |(at, (middle, half)): (usize, (f64, f64))| Scale {
                unit: half * frame.scalings[at].scale,
                believed_centre: middle + half * centres[at].believed,
            };
            let scales: Vec<Scale> = public.enumerate().map(scale).collect();
            let members: Vec<usize> = (start..start + scales.len()).collect();
            start += scales.len();
            Ok(Local { members, moments, clipping, scales })
        };
        self.dataset.earlier_sums().map(local).collect()
    }

    /// What intervals say of a regression whose truth is known, in standard deviations; `products`
    /// are those of the rows that were mixed.
    pub(crate) fn read(&self, table: &Table, products: &Mat<f64>) -> Result<Readings> {
        let model = self.fit(table.label)?;
        let locals = self.locals()?;
        let columns: Vec<(&Clipping, &Scale)> = columns_of(&locals).collect();
        let cut = cut_truth(products, table);
        let reading = |(at, truth): (usize, &Truth)| {
            let coefficient = &model.coefficients[at];
            let value = coefficient.value;
            let cut = || cut[at] * columns[table.label].1.unit / columns[truth.column].1.unit * truth.unit;
            Reading {
                cut: coefficient.is_about_cut_values().then(cut),
                low: value.low * truth.unit,
                estimate: value.estimate * truth.unit,
                high: value.high * truth.unit,
                finding: coefficient.findings.first().map(|finding| finding.kind.name().replace('-', " ")),
                signs: [table.label, truth.column]
                    .iter()
                    .flat_map(|&column| signs(columns[column].0))
                    .chain(coefficient.parts.map(|parts| parts.correlations))
                    .collect(),
            }
        };
        let slopes: Vec<f64> = model.coefficients.iter().map(|coefficient| coefficient.prediction).collect();
        let [low, high] = explained(&model)?;
        Ok(Readings {
            explained: [low, table.explained_by(&slopes), high],
            share_finding: !model.diagnostics.r_squared_findings.is_empty(),
            coefficients: table.truth.iter().enumerate().map(reading).collect(),
        })
    }
}

/// The interval of the share of the label's variance that a regression explains.
pub(crate) fn explained(model: &Model) -> Result<[f64; 2]> {
    let share = model.diagnostics.r_squared.context("the posterior learner finds the share")?;
    share.interval.context("with an interval")
}

/// Every encoded column.
fn columns_of(locals: &[Local]) -> impl Iterator<Item = (&Clipping, &Scale)> {
    locals.iter().flat_map(|local| local.clipping.iter().zip(&local.scales))
}

/// Least squares among the rows as they were cut, in standardised units.
fn cut_truth(products: &Mat<f64>, table: &Table) -> Vec<f64> {
    let features: Vec<usize> = table.truth.iter().map(|truth| truth.column).collect();
    let d = features.len();
    let h = Mat::from_fn(d, d, |i, j| products[(features[i], features[j])]);
    let c = Col::from_fn(d, |i| products[(features[i], table.label)]);
    h.partial_piv_lu().solve(&c).iter().copied().collect()
}

/// What is published of the tails of a column.
fn signs(clipping: &Clipping) -> [f64; 6] {
    let Tails { excess, excess_error, shift, shift_error } = clipping.tails;
    [excess, excess_error, shift, shift_error, clipping.attenuation, f64::from(clipping.numeric)]
}
