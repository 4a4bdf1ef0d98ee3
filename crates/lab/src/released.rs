//! Calibrated releases of all parties in memory, through the join and the fit that ship.

use anyhow::{Context as _, Result};
use clap::ValueEnum;
use faer::linalg::solvers::Solve as _;
use faer::{Col, Mat};
use potluck_core::learn::{Clipping, Level, Tails, posterior};
use potluck_release::fit::{Material, Regression, fit};
use potluck_release::model::Kind;
use potluck_release::study::{Format, Method, Party};
use potluck_release::{Model, PublicDataset, Study};
use potluck_simulation::{Noise, Simulation, Subjects};

use crate::experiments::map::{Reading, Readings};
use crate::family::{Table, Truth};
use crate::holdings::{Form, Holdings};
use crate::noise::NoiseKind;
use crate::seeds::Seed;
use crate::table::Privacy;

/// A method of potluck's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Own {
    /// One release of each party, whose people are mixed
    Calibrated,
    /// Products that every two parties compute together
    Exchange,
}

impl Own {
    /// How studies and tables name it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Calibrated => Method::Calibrated.word(),
            Self::Exchange => Method::Exchange.word(),
        }
    }
}

/// How releases are made.
#[derive(Clone, Copy)]
pub(crate) struct Release {
    pub(crate) form: Form,
    pub(crate) privacy: Privacy,
    pub(crate) noise: NoiseKind,
    /// Number of mixed rows; what public facts say if none.
    pub(crate) k: Option<u64>,
}

impl Release {
    /// The same by this method.
    pub(crate) fn by(self, method: Own) -> Self {
        // Parties that exchange hold the same people.
        let format = if method == Own::Exchange { Format::One } else { self.form.format };
        Self { form: Form { method, format, ..self.form }, ..self }
    }

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
        let encoded = places(&study);
        let mut products = Mat::zeros(encoded.len(), encoded.len());
        let dataset = simulation.dataset_seen(self.noise(seed), |rows, width| {
            let rows = Mat::from_fn(rows.len() / width, encoded.len(), |row, column| {
                f64::from(rows[row * width + encoded[column]])
            });
            products += rows.transpose() * &rows;
        })?;
        Ok((Released { dataset }, products))
    }

    fn study(self, holdings: &Holdings, subjects: &Subjects) -> Result<Study> {
        holdings.study(self.form, holdings.largest(), self.privacy, self.k, subjects.key())
    }

    /// Every stage of a party has noise of its own.
    fn noise(self, seed: Seed) -> impl Fn(usize, &str) -> Box<dyn Noise> {
        move |party, stage| self.noise.start(seed.of(&format!("calibrated {party} {stage}")))
    }
}

/// The releases of all parties; encoded columns are counted party by party.
pub(crate) struct Released {
    dataset: PublicDataset,
}

impl Released {
    /// Names of the encoded columns.
    pub(crate) fn names(&self) -> Vec<String> {
        let parties = self.dataset.study().definition().parties();
        parties.iter().flat_map(Party::encoded_names).collect()
    }

    /// Learns the regression of an encoded column on all others.
    pub(crate) fn fit(&self, label: usize) -> Result<Model> {
        Ok(fit(&self.dataset, &Regression::of(&self.names()[label]))?)
    }

    /// Learns the logistic regression of an encoded column, which has two levels, on all others.
    pub(crate) fn fit_odds(&self, label: usize) -> Result<Model> {
        Ok(fit(&self.dataset, &Regression { kind: Kind::Logistic, ..Regression::of(&self.names()[label]) })?)
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
        let material = Material::new(&self.dataset)?.without_noise();
        let features: Vec<usize> = (0..self.names().len()).filter(|&column| column != label).collect();
        let found = posterior(&material.evidence()?, label, &features, Level::default())?;
        let slopes = found.estimate.weights().iter().zip(&features);
        Ok(slopes.map(|(weight, &feature)| weight * material.unit(label) / material.unit(feature)).collect())
    }

    /// What the releases say of the mean of an encoded column, in original units.
    pub(crate) fn centre(&self, column: usize) -> Result<f64> {
        Ok(Material::new(&self.dataset)?.believed_centre(column))
    }

    /// The standard deviation of the noise in it before it is believed less the less it is known.
    pub(crate) fn centre_noise(&self, column: usize) -> Result<f64> {
        Ok(Material::new(&self.dataset)?.centre_noise(column))
    }

    /// What intervals say of a regression whose truth is known, in standard deviations; `products`
    /// are those of the rows that were mixed.
    pub(crate) fn read(&self, table: &Table, products: &Mat<f64>) -> Result<Readings> {
        let model = self.fit(table.label)?;
        let material = Material::new(&self.dataset)?;
        let cut = cut_truth(products, table);
        // Of the rows as they were cut: what clipping took is not undone in them.
        let cut_unit = |column: usize| material.unit(column) / material.clipping(column).attenuation;
        let reading = |(at, truth): (usize, &Truth)| {
            let coefficient = &model.coefficients[at];
            let value = coefficient.value;
            let cut = || cut[at] * cut_unit(table.label) / cut_unit(truth.column) * truth.unit;
            Reading {
                cut: coefficient.is_about_cut_values().then(cut),
                low: value.low * truth.unit,
                estimate: value.estimate * truth.unit,
                high: value.high * truth.unit,
                finding: coefficient.findings.first().map(|finding| finding.kind.name().replace('-', " ")),
                signs: [table.label, truth.column]
                    .iter()
                    .flat_map(|&column| signs(material.clipping(column)))
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

/// Where the encoded columns stand in mixed rows of all parties side by side, in which presence may
/// follow on the columns of each.
fn places(study: &Study) -> Vec<usize> {
    let beside = usize::from(study.definition().format() == Format::Two);
    let parties = study.definition().parties().iter().enumerate();
    let mut places = Vec::new();
    for (party, names) in parties.map(|(party, of)| (party, of.encoded_names())) {
        places.extend((places.len()..places.len() + names.len()).map(|at| at + party * beside));
    }
    places
}

/// The interval of the share of the label's variance that a regression explains.
pub(crate) fn explained(model: &Model) -> Result<[f64; 2]> {
    let share = model.diagnostics.r_squared.context("the posterior learner finds the share")?;
    share.interval.context("with an interval")
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
fn signs(clipping: Clipping) -> [f64; 6] {
    let Tails { excess, excess_error, shift, shift_error } = clipping.tails;
    [excess, excess_error, shift, shift_error, clipping.attenuation, f64::from(clipping.numeric)]
}
