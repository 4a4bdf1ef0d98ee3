//! What releases say of their columns, in original units: for whoever wants to know what can be
//! seen in them.

use potluck_core::learn::{self, DeclaredOverlaps, Distribution, People, Released, distributions};
use serde::Serialize;

use crate::Error;
use crate::columns::Columns;
use crate::dataset::PublicDataset;
use crate::fit::{Calibrated, Encoded, PartyEvidence, terms};
use crate::model::{Term, noise_share};
use crate::release::Release;
use crate::study::{Party, Study};

/// A spread counts as seen when it exceeds its own noise by this many standard deviations.
const CLEARLY: f64 = 3.0;

/// What one release says of its columns.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PartySummary {
    /// The party.
    pub party: String,
    /// Encoded columns that can vary on their own; the levels of a column sum to one. The noise
    /// grows with its square root.
    pub free_columns: u64,
    /// Standard deviation of the noise in the mixed rows, in units of the released values.
    pub noise: f64,
    /// How many people it has, where parties hold different ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub people: Option<Known>,
    /// One an encoded column.
    pub columns: Vec<ColumnSummary>,
    /// Covariances between the party's encoded columns, in original units; of calibrated releases
    /// only.
    pub covariance: Option<Vec<Vec<f64>>>,
}

/// What a release says of one encoded column, in original units.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ColumnSummary {
    /// Name of the encoded column.
    pub name: String,
    /// The column of the study that it belongs to.
    pub column: String,
    /// Unit, for people.
    pub unit: Option<String>,
    /// The mean, or the share that has the level; of calibrated releases only.
    pub mean: Option<f64>,
    /// Standard deviation of the noise in the mean.
    pub mean_error: Option<f64>,
    /// Standard deviation between people, 0 where the noise hides it; of calibrated releases only.
    pub spread: Option<f64>,
    /// Spread before clipping over spread after it; of calibrated releases only.
    pub attenuation: Option<f64>,
    /// What the release kept of the column: values beyond count as its ends.
    pub range: [f64; 2],
    /// Standard deviation of the noise in a mixed row, which holds many people.
    pub noise: f64,
    /// Part of the variance of the mixed rows that is noise, as [`noise_share`] has it.
    pub noise_share: f64,
    /// Whether the spread stands clear of its noise; otherwise the column is drowned.
    pub resolved: bool,
    /// The share of the party's people whose value is missing, where that is told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing: Option<Known>,
    /// How the values of a numeric column are distributed, where that is told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub distribution: Option<Shape>,
}

/// A number with the standard deviation of the noise in it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Known {
    /// The number.
    pub value: f64,
    /// Its standard error.
    pub error: f64,
}

impl From<learn::Known> for Known {
    fn from(known: learn::Known) -> Self {
        Self { value: known.share, error: known.error }
    }
}

/// How the values of a column that are there are distributed, by its noised histogram.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Shape {
    /// Some quantiles.
    pub quantiles: Vec<Quantile>,
    /// The share of exact zeros, where the public range holds 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zeros: Option<Known>,
    /// The tails that the release cuts: the shares of values below and above the range that it
    /// keeps.
    pub beyond: [Known; 2],
    /// The shares of values in equal parts of the range that the release keeps, from left to right.
    pub bars: Vec<Known>,
}

/// The value that a share of all are below, with its 95% interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Quantile {
    /// The share.
    pub share: f64,
    /// The value.
    pub value: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

/// The quantiles that are told.
pub const QUANTILES: [f64; 5] = [0.05, 0.25, 0.5, 0.75, 0.95];
/// Parts of the range that a picture of a distribution has.
const BARS: usize = 32;

impl Shape {
    fn new(distribution: &Distribution, [low, high]: [f64; 2], original: impl Fn(f64) -> f64) -> Self {
        let quantile = |share: f64| {
            let learn::Quantile { value, low, high } = distribution.quantile(share);
            Quantile { share, value: original(value), low: original(low), high: original(high) }
        };
        let end = |bar: usize| low + (high - low) * bar as f64 / BARS as f64;
        Self {
            quantiles: QUANTILES.map(quantile).into(),
            zeros: distribution.zeros().map(Known::from),
            beyond: [distribution.between(-1.0, low).into(), distribution.between(high, 1.0).into()],
            bars: (0..BARS).map(|bar| distribution.between(end(bar), end(bar + 1)).into()).collect(),
        }
    }
}

impl PartySummary {
    /// What the party could release fewer of, so that its noise would be smaller: columns, or the
    /// levels of its only one; `None` where there is nothing to leave out.
    pub fn could_spare(&self) -> Option<&'static str> {
        let first = self.columns.first()?;
        if self.columns.iter().any(|column| column.column != first.column) {
            Some("columns")
        } else {
            (self.free_columns > 1).then_some("levels")
        }
    }
}

/// What a release says of its columns.
pub fn of_release(release: &Release) -> Result<PartySummary, Error> {
    of_party(release.study(), release.party(), &release.earlier_sums(), release.columns())
}

/// What the releases in a public dataset say of their columns, party after party.
pub fn of_dataset(dataset: &PublicDataset) -> Result<Vec<PartySummary>, Error> {
    let study = dataset.study();
    let summary = |(party, sums): (&str, Vec<Vec<i64>>)| of_party(study, party, &sums, dataset.columns());
    dataset.earlier_sums().map(summary).collect()
}

fn of_party(
    study: &Study,
    name: &str,
    sums: &[Vec<i64>],
    published: &Columns,
) -> Result<PartySummary, Error> {
    let party = study.definition().party(name)?;
    let encoded_values = published.select(&party.encoded_names()).ok_or(Error::Stages)?;
    let evidence = PartyEvidence::new(study, name, sums)?;
    let presence = party.presence_name().and_then(|name| published.column(&name));
    let mut columns = encoded(party)
        .zip(encoded_values.values())
        .enumerate()
        .map(|(at, (encoded, values))| of_column(&evidence, at, &encoded, values))
        .collect::<Result<Vec<_>, Error>>()?;
    let mut people = None;
    if let Some(presence) = presence {
        let noise = vec![evidence.noise; columns.len()];
        let values: Vec<&[f64]> = encoded_values.values().iter().map(Vec::as_slice).collect();
        let released = Released::new(&values, &noise, study.definition().rows())?;
        let of_party = ((0..columns.len()).collect(), evidence.people(presence)?);
        let found = People::of_parties(&released, &[of_party], &DeclaredOverlaps::default());
        people = Some(Known { value: found.held()[0], error: found.held_error(0) });
        let may_miss =
            party.columns().iter().flat_map(|column| vec![column.may_miss(); column.encoder().width()]);
        for (at, (column, may_miss)) in columns.iter_mut().zip(may_miss).enumerate() {
            let known = || Known { value: found.missing(at), error: found.missing_error(0, at) };
            column.missing = may_miss.then(known);
        }
        add_shapes(study, party, sums, &evidence, &mut columns)?;
    }
    let covariance = covariance(&evidence, party)?;
    let layout = study.definition().layout(party);
    Ok(PartySummary {
        party: name.to_owned(),
        free_columns: layout.effective_width() as u64,
        noise: evidence.noise,
        people,
        columns,
        covariance,
    })
}

/// How the values of numeric columns are distributed.
fn add_shapes(
    study: &Study,
    party: &Party,
    sums: &[Vec<i64>],
    evidence: &PartyEvidence,
    columns: &mut [ColumnSummary],
) -> Result<(), Error> {
    let (Some(plan), Some(calibrated)) = (study.calibrated(party.name())?, &evidence.calibrated) else {
        return Ok(());
    };
    let middles: Vec<(f64, f64)> = encoded(party).map(|encoded| encoded.public()).collect();
    for (at, distribution) in distributions(plan, sums).map_err(|_| Error::Stages)? {
        let (scaling, (mid, half)) = (calibrated.frame.scalings[at], middles[at]);
        let range = [scaling.low, scaling.high];
        columns[at].distribution = Some(Shape::new(&distribution, range, |u| mid + half * u));
    }
    Ok(())
}

fn covariance(evidence: &PartyEvidence, party: &Party) -> Result<Option<Vec<Vec<f64>>>, Error> {
    let Some(Calibrated { moments, .. }) = &evidence.calibrated else { return Ok(None) };
    let half = |(at, encoded): (usize, Encoded<'_>)| Ok(evidence.units(at, &encoded)?.affine.half());
    let halves: Vec<f64> = encoded(party).enumerate().map(half).collect::<Result<_, Error>>()?;
    let width = halves.len();
    let entry = |i: usize, j: usize| halves[i] * halves[j] * moments.covariance[i * width + j];
    Ok(Some((0..width).map(|i| (0..width).map(|j| entry(i, j)).collect()).collect()))
}

fn encoded(party: &Party) -> impl Iterator<Item = Encoded<'_>> {
    let of_column = move |column| terms(column).into_iter().map(move |term: Term| (column, term));
    party.columns().iter().flat_map(of_column).map(move |(column, term)| Encoded { party, column, term })
}

fn of_column(
    evidence: &PartyEvidence,
    at: usize,
    encoded: &Encoded<'_>,
    values: &[f64],
) -> Result<ColumnSummary, Error> {
    let units = evidence.units(at, encoded)?;
    let rows = values.len() as f64;
    let variance = values.iter().map(|value| value * value).sum::<f64>() / rows;
    let noise_variance = units.noise.powi(2);
    let mut summary = ColumnSummary {
        name: encoded.term.name(),
        column: encoded.column.name().to_owned(),
        unit: encoded.column.unit().map(str::to_owned),
        mean: None,
        mean_error: None,
        spread: None,
        attenuation: None,
        range: units.range,
        noise: units.affine.half() * units.noise,
        noise_share: noise_share(noise_variance / variance),
        resolved: variance - noise_variance > CLEARLY * (2.0 / rows).sqrt() * variance,
        missing: None,
        distribution: None,
    };
    if let Some(Calibrated { moments, clipping, .. }) = &evidence.calibrated {
        let variance = moments.covariance[at * moments.means.len() + at];
        summary.mean = Some(units.affine.mid());
        summary.mean_error = Some(units.mean_noise);
        summary.spread = Some(units.affine.half() * variance.max(0.0).sqrt());
        summary.attenuation = Some(clipping[at].attenuation);
        summary.resolved = variance > CLEARLY * 2_f64.sqrt() * moments.noise;
    }
    Ok(summary)
}
