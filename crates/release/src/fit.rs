//! Fitting: from a public dataset, a label and features to a [`Model`].

use potluck_core::encoding::Encoder;
use potluck_core::learn::{Affine, Coefficients, Fit, Level, Released, Ridge, Stability, debiased, ols};

use crate::dataset::PublicDataset;
use crate::model::{Coefficient, Diagnostics, Estimate, Learner, Model, Term};
use crate::statement;
use crate::study::{Column, Domain, Party, Study};
use crate::{Error, FORMAT, SOFTWARE};

/// λ of the paper's synthetic experiment; small beside the variance of any column that spans its bounds.
pub const DEFAULT_RIDGE: f64 = 1e-4;

/// Which regression to fit, and how.
#[derive(Clone, Debug)]
pub struct Regression {
    /// The label: a numeric column, a column with two levels, or `column=level`.
    pub label: String,
    /// Columns or `column=level` names; all columns but the label's when `None`.
    pub features: Option<Vec<String>>,
    /// How to learn.
    pub learner: Learner,
    /// λ added to the diagonal of the moment matrix.
    pub ridge: Ridge,
    /// Level of the intervals.
    pub level: Level,
}

/// One encoded column of the public dataset, with where it comes from.
struct Encoded<'a> {
    party: &'a Party,
    column: &'a Column,
    term: Term,
}

impl Encoded<'_> {
    fn affine(&self) -> Result<Affine, Error> {
        Ok(match self.column.encoder() {
            Encoder::Numeric(bounds) => Affine::new(bounds.midpoint(), bounds.half_width())?,
            Encoder::Categorical(_) => Affine::UNIT,
        })
    }
}

/// Every encoded column of the parties that are in the dataset, in its order.
fn encoded_columns<'a>(study: &'a Study, dataset: &PublicDataset) -> Vec<Encoded<'a>> {
    let present: Vec<&str> = dataset.parties().map(|(party, _)| party).collect();
    let columns = study.definition().columns().filter(|(party, _)| present.contains(&party.name()));
    columns
        .flat_map(|(party, column)| {
            terms(column).into_iter().map(move |term| Encoded { party, column, term })
        })
        .collect()
}

/// The terms of a column, one an encoded column.
fn terms(column: &Column) -> Vec<Term> {
    let name = column.name().to_owned();
    match (column.domain(), column.encoder()) {
        (Domain::Categorical { levels, unknown }, Encoder::Categorical(count)) => levels
            [count.first_encoded()..]
            .iter()
            .map(|level| Term::Level {
                column: name.clone(),
                level: level.clone(),
                levels: levels.clone(),
                unknown: *unknown,
            })
            .collect(),
        (Domain::Numeric(bounds), _) => {
            vec![Term::Numeric { column: name, lo: bounds.lo(), hi: bounds.hi() }]
        }
        (Domain::Categorical { .. }, Encoder::Numeric(_)) => unreachable!("levels are encoded as levels"),
    }
}

/// The positions that a name stands for: one encoded column, or all of a column.
fn positions(encoded: &[Encoded<'_>], name: &str) -> Result<Vec<usize>, Error> {
    let exact = encoded.iter().position(|candidate| candidate.term.name() == name);
    if let Some(position) = exact {
        return Ok(vec![position]);
    }
    let of_column: Vec<usize> =
        (0..encoded.len()).filter(|&position| encoded[position].column.name() == name).collect();
    if of_column.is_empty() {
        let mut known: Vec<&str> = encoded.iter().map(|candidate| candidate.column.name()).collect();
        known.dedup();
        return Err(Error::UnknownColumn { column: name.to_owned(), known: known.join(", ") });
    }
    Ok(of_column)
}

fn label_position(encoded: &[Encoded<'_>], name: &str) -> Result<usize, Error> {
    match positions(encoded, name)?.as_slice() {
        [position] => Ok(*position),
        several => {
            let levels: Vec<_> = several.iter().map(|&position| encoded[position].term.name()).collect();
            Err(Error::Regression(format!(
                "{name:?} has more than two levels and cannot be a label as a whole; choose one of {}",
                levels.join(", ")
            )))
        }
    }
}

/// The features asked for, or every column but the label's.
///
/// Whole categorical columns with more than two levels lose their first level from the second such column on:
/// each set of indicators sums to one, so two whole sets would be collinear.
fn feature_positions(
    encoded: &[Encoded<'_>],
    label: usize,
    names: Option<&[String]>,
) -> Result<Vec<usize>, Error> {
    let all: Vec<String>;
    let names = if let Some(names) = names {
        names
    } else {
        let mut columns: Vec<String> = Vec::new();
        for candidate in encoded {
            let name = candidate.column.name();
            if name != encoded[label].column.name() && columns.last().is_none_or(|last| last != name) {
                columns.push(name.to_owned());
            }
        }
        all = columns;
        &all
    };
    let mut chosen = Vec::new();
    let mut whole_sets = 0;
    for name in names {
        let mut own = positions(encoded, name)?;
        if own.len() > 1 {
            if own.contains(&label) {
                return Err(Error::Regression(format!(
                    "{name:?} is the label's own column; choose its other levels by name if you want them as features"
                )));
            }
            whole_sets += 1;
            if whole_sets > 1 {
                own.remove(0);
            }
        }
        for position in own {
            if position == label {
                return Err(Error::Regression(format!(
                    "{name:?} is both the label and a feature; leave it out of the features"
                )));
            }
            if chosen.contains(&position) {
                return Err(Error::Regression(format!("feature {name:?} is named twice; name it once")));
            }
            chosen.push(position);
        }
    }
    if chosen.is_empty() {
        return Err(Error::Regression("there is no feature; name at least one besides the label".to_owned()));
    }
    Ok(chosen)
}

fn estimates(coefficients: &Coefficients, level: Level) -> Vec<Estimate> {
    let intervals = coefficients.intervals(level);
    coefficients
        .weights()
        .iter()
        .zip(coefficients.standard_errors())
        .zip(intervals)
        .map(|((&estimate, standard_error), interval)| Estimate {
            estimate,
            standard_error,
            low: interval.lower,
            high: interval.upper,
        })
        .collect()
}

/// What the coefficients estimate, with a word on the ridge where it matters: no interval accounts for it.
fn estimand(fit: &Fit) -> String {
    let shrinkage = fit.ridge.get() / fit.spectrum.smallest_absolute();
    if shrinkage > 0.01 {
        format!(
            "{}, shrunk by a ridge of {} (by up to {:.0}%), which the intervals do not show",
            fit.estimand,
            fit.ridge.get(),
            100.0 * shrinkage.min(1.0)
        )
    } else {
        fit.estimand.to_string()
    }
}

/// Fits a regression on a public dataset.
pub fn fit(dataset: &PublicDataset, regression: &Regression) -> Result<Model, Error> {
    let study = dataset.study();
    let encoded = encoded_columns(study, dataset);
    let label = label_position(&encoded, &regression.label)?;
    let features = feature_positions(&encoded, label, regression.features.as_deref())?;

    let mut columns = Vec::with_capacity(encoded.len());
    let mut noise = Vec::with_capacity(encoded.len());
    for column in &encoded {
        let name = column.term.name();
        let values = dataset.columns().column(&name);
        columns.push(values.ok_or_else(|| Error::UnknownColumn { column: name, known: String::new() })?);
        noise.push(study.mixed_rows(column.party.name())?.noise());
    }
    let released = Released::new(&columns, &noise, study.definition().rows())?;
    let fit = match regression.learner {
        Learner::Ols => ols(&released, label, &features, regression.ridge)?,
        Learner::Debiased => debiased(&released, label, &features, regression.ridge)?,
    };

    let scalings = features.iter().map(|&j| encoded[j].affine()).collect::<Result<Vec<_>, _>>()?;
    let original = fit.coefficients.to_original(&scalings, encoded[label].affine()?)?;
    let in_units = estimates(original.coefficients(), regression.level);
    let in_encoded = estimates(&fit.coefficients, regression.level);
    let (intercept, slopes) = in_units.split_first().expect("the intercept comes first");

    let coefficients = features.iter().enumerate().map(|(at, &j)| Coefficient {
        term: encoded[j].term.clone(),
        party: encoded[j].party.name().to_owned(),
        unit: encoded[j].column.unit().map(str::to_owned),
        value: slopes[at],
        encoded: in_encoded[at],
        noise_share: fit.noise_share[at],
    });
    let covariance = original.coefficients().covariance();
    let parties = dataset.parties().count();
    let mut privacy = Vec::new();
    for (party, _) in dataset.parties() {
        privacy.push(statement::of_party(study, party)?.swap_remove(0));
    }
    privacy.extend(statement::joint(study, parties));
    Ok(Model {
        potluck: "model".to_owned(),
        format: FORMAT,
        software: SOFTWARE.to_owned(),
        study: study.definition().name().to_owned(),
        study_id: study.id().to_owned(),
        dataset: dataset.content_hash().to_owned(),
        label: encoded[label].term.clone(),
        label_unit: encoded[label].column.unit().map(str::to_owned),
        learner: regression.learner,
        ridge: regression.ridge.get(),
        level: regression.level.get(),
        estimand: estimand(&fit),
        intercept: *intercept,
        coefficients: coefficients.collect(),
        covariance: (0..covariance.dim()).map(|i| covariance.row(i).to_vec()).collect(),
        diagnostics: Diagnostics {
            rows: study.definition().rows(),
            released_rows: dataset.columns().rows() as u64,
            degrees: fit.coefficients.degrees() as u64,
            smallest_eigenvalue: fit.spectrum.smallest(),
            smallest_eigenvalue_error: fit.spectrum.smallest_error(),
            smallest_absolute_eigenvalue: fit.spectrum.smallest_absolute(),
            condition: fit.spectrum.condition(),
            stability: fit.spectrum.stability().to_string(),
            sound: fit.spectrum.stability() == Stability::Sound,
            residual_variance: fit.residual_variance,
            r_squared: fit.r_squared,
        },
        privacy,
    })
}
