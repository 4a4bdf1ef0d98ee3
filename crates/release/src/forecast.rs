//! What standard errors to expect, column by column, and how many people it would take to resolve
//! an effect: from public facts only.

use potluck_core::planning::forecast::{self as core, Case, Crowds, MOST_KINDS, POWER, RESOLVED, Released};
use serde::Serialize;

use crate::Error;
use crate::study::{Column, Study};

/// The size of an effect that people ask about if they do not say: a tenth of a standard deviation
/// of the label for one of the feature.
pub const USUAL_EFFECT: f64 = 0.1;

/// What people want to know of a study.
#[derive(Clone, Debug, PartialEq)]
pub struct Asked {
    /// The label; any column if none.
    pub label: Option<String>,
    /// The size of an effect, in standard deviations of the label for one of the feature.
    pub effect: f64,
    /// Which share of the smaller one's people any two parties have in common; what the study lets
    /// expect if it is not said.
    pub overlap: Option<f64>,
}

impl Default for Asked {
    fn default() -> Self {
        Self { label: None, effect: USUAL_EFFECT, overlap: None }
    }
}

/// What to expect of coefficients, in standard deviations of the label for one of the feature.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Forecast {
    /// The label that it is about; any column if none.
    pub label: Option<String>,
    /// The size of the effect that people are counted for.
    pub effect: f64,
    /// How often an effect of that size is told from 0 by so many people, at the 95% level.
    pub power: f64,
    /// What is assumed of the columns in each case.
    pub assumptions: Assumptions,
    /// Every column that can be a feature.
    pub columns: Vec<ColumnForecast>,
}

/// What is assumed of the columns in each case.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Assumptions {
    /// Of columns that suit the release.
    pub good: String,
    /// Of usual ones.
    pub typical: String,
    /// Of ones that are hard on it.
    pub hard: String,
}

/// What to expect of the coefficients of one column.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ColumnForecast {
    /// The party that holds it.
    pub party: String,
    /// Its name.
    pub column: String,
    /// Standard error of its coefficient, or of each level's.
    pub standard_error: StandardErrors,
    /// How many people it takes to resolve the effect.
    pub people: People,
}

/// Standard errors in each case.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct StandardErrors {
    /// In the good case.
    pub good: f64,
    /// In the typical one.
    pub typical: f64,
    /// In the hard one.
    pub hard: f64,
}

/// Numbers of people in each case: none where it is not known, or takes more than anybody has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct People {
    /// In the good case.
    pub good: Option<u64>,
    /// In the typical one.
    pub typical: Option<u64>,
    /// In the hard one.
    pub hard: Option<u64>,
}

/// Columns of one party of which the same is to be expected.
#[derive(Clone, Debug, PartialEq)]
pub struct Alike<'a> {
    /// The party.
    pub party: &'a str,
    /// Their names.
    pub columns: Vec<&'a str>,
    /// Standard error of a coefficient.
    pub standard_error: StandardErrors,
    /// How many people it takes to resolve the effect.
    pub people: People,
}

impl Alike<'_> {
    /// As "north: age, bmi and 3 more".
    pub fn name(&self) -> String {
        const NAMES: usize = 3;
        let shown = if self.columns.len() > NAMES { NAMES - 1 } else { self.columns.len() };
        let names = self.columns[..shown].join(", ");
        let name = match self.columns.len() - shown {
            0 => format!("{}: {names}", self.party),
            more => format!("{}: {names} and {more} more", self.party),
        };
        name.replace(char::is_control, "\u{fffd}")
    }
}

impl StandardErrors {
    /// From the good case to the hard one.
    pub fn all(self) -> [f64; 3] {
        [self.good, self.typical, self.hard]
    }
}

impl People {
    /// From the good case to the hard one.
    pub fn all(self) -> [Option<u64>; 3] {
        [self.good, self.typical, self.hard]
    }
}

impl Forecast {
    /// Columns of which the same is to be expected, together.
    pub fn alike(&self) -> Vec<Alike<'_>> {
        let mut all: Vec<Alike<'_>> = Vec::new();
        for ColumnForecast { party, column, standard_error, people } in &self.columns {
            let same = |of: &&mut Alike<'_>| {
                of.party == party && of.standard_error == *standard_error && of.people == *people
            };
            match all.iter_mut().find(same) {
                Some(of) => of.columns.push(column),
                None => all.push(Alike {
                    party,
                    columns: vec![column],
                    standard_error: *standard_error,
                    people: *people,
                }),
            }
        }
        all
    }

    /// Ends of a logarithmic scale of people that has room for all cases and for so many people;
    /// nothing where numbers of people are not known.
    pub fn scale(&self, rows: u64) -> Option<(f64, f64)> {
        let known: Vec<f64> = self
            .columns
            .iter()
            .flat_map(|of| of.people.all())
            .flatten()
            .map(|people| people as f64)
            .collect();
        if known.is_empty() {
            return None;
        }
        let ends = known.iter().copied().chain([rows as f64]);
        let low = ends.clone().fold(f64::INFINITY, f64::min).log10().floor();
        let high = ends.fold(0.0, f64::max).log10().ceil();
        Some((10_f64.powf(low), 10_f64.powf(high.max(low + 1.0))))
    }

    /// What to expect of a study; of one with very many kinds of columns, nothing.
    pub fn of(study: &Study, asked: &Asked) -> Result<Self, Error> {
        if !(asked.effect > 0.0 && asked.effect.is_finite()) {
            return Err(Error::Regression(format!(
                "an effect of {} cannot be asked about; give a size above 0, such as {USUAL_EFFECT}",
                asked.effect
            )));
        }
        let released = study.released()?;
        let label =
            asked.label.as_deref().map(|label| position_of_label(study, &released, label)).transpose()?;
        let mut columns = Vec::new();
        if released.columns().len() <= MOST_KINDS {
            let of_kind = of_kinds(&released, study.crowds().as_ref(), label, asked.effect);
            for (party, column, at) in positions(study, &released) {
                if asked.label.as_deref() == Some(column.name()) {
                    continue;
                }
                let (standard_error, people) = of_kind[at];
                let (party, column) = (party.to_owned(), column.name().to_owned());
                columns.push(ColumnForecast { party, column, standard_error, people });
            }
        }
        let words = |case: Case| case.words().to_owned();
        Ok(Self {
            label: asked.label.clone(),
            effect: asked.effect,
            power: POWER,
            assumptions: Assumptions {
                good: words(Case::Good),
                typical: words(Case::Typical),
                hard: words(Case::Hard),
            },
            columns,
        })
    }
}

/// Of each kind of columns, standard errors and numbers of people.
fn of_kinds(
    released: &Released,
    crowds: Option<&Crowds>,
    label: Option<usize>,
    effect: f64,
) -> Vec<(StandardErrors, People)> {
    let of = |at: usize| {
        let core::Range { good, typical, hard } = released.standard_error(at, label);
        let people = crowds.map_or_else(People::default, |crowds| {
            let core::Range { good, typical, hard } = crowds.to_resolve(effect, at, label);
            People { good, typical, hard }
        });
        (StandardErrors { good, typical, hard }, people)
    };
    (0..released.columns().len()).map(of).collect()
}

/// Every column with its party and where it stands among the kinds.
fn positions<'a>(
    study: &'a Study,
    released: &Released,
) -> impl Iterator<Item = (&'a str, &'a Column, usize)> {
    let parties = study.definition().parties().iter().enumerate();
    parties.flat_map(move |(at, party)| {
        party
            .columns()
            .iter()
            .filter_map(move |column| Some((party.name(), column, released.position(at, &column.encoder())?)))
    })
}

fn position_of_label(study: &Study, released: &Released, label: &str) -> Result<usize, Error> {
    let known = |(_, column, _): &(&str, &Column, usize)| column.encoded_names().len() == 1;
    let found = positions(study, released).filter(known).find(|(_, column, _)| column.name() == label);
    found.map(|(_, _, at)| at).ok_or_else(|| {
        let names: Vec<&str> =
            positions(study, released).filter(known).map(|(_, column, _)| column.name()).collect();
        Error::Regression(format!(
            "{label:?} is no column that can be a label here; choose one of {}",
            names.join(", ")
        ))
    })
}

/// Whether some effect that can exist is resolved in the good case: of this study, and by any
/// method of release at its privacy.
pub(crate) fn resolves(study: &Study) -> Result<[bool; 2], Error> {
    let any = |released: &Released| {
        let kinds = released.columns().len();
        // Where there are very many, the first are looked at.
        (0..kinds.min(MOST_KINDS))
            .any(|at| RESOLVED * Case::Good.pick(&released.standard_error(at, None)) <= core::LARGEST_EFFECT)
    };
    let itself = any(&study.released()?);
    Ok([itself, itself || study.other_ways().iter().any(any)])
}
