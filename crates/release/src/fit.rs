//! Fitting: from a public dataset, a label and features to a [`Model`].

use potluck_core::calibrated::Frame;
use potluck_core::encoding::Encoder;
use potluck_core::learn::{
    self, Affine, Between, Blocks, Centre, Clipping, Coefficients, Concern, DeclaredOverlaps, Doubt,
    Evidence, ExplainedShare, Fit, Interval, Level, LocalMoments, Logistic, Outcome, Overlap, PartyPeople,
    People, Posterior, Related, Released, Ridge, Shape, ShareConcerns, Stability, VarianceParts, debiased,
    explained_share, logistic, ols, posterior, two_sided_quantile,
};

use crate::block::Pair;
use crate::dataset::PublicDataset;
use crate::findings::{Finding, FindingKind};
use crate::model::{
    Classification, Coefficient, Collinear, Diagnostics, Eigenvalues, Estimand, Estimate, Kind, Learner,
    Model, Parts, RSquared, Term, noise_share,
};
use crate::people;
use crate::statement;
use crate::study::{Column, Domain, Method, Party, Study};
use crate::{Error, FORMAT, SOFTWARE};

/// From this share on, what others explain of a feature is pointed out: its coefficient has ten
/// times the variance that it would have alone.
const NEARLY_ALL: f64 = 0.9;

/// λ of the paper's synthetic experiment; small beside the variance of any column that spans its
/// bounds.
pub const DEFAULT_RIDGE: f64 = 1e-4;

/// A number stands clear of its public bounds if they are this many standard deviations from its
/// mean: of a bell, hardly anything lies beyond.
const CLEAR_OF_BOUNDS: f64 = 2.5;

/// Which regression to fit, and how.
#[derive(Clone, Debug)]
pub struct Regression {
    /// The label: a numeric column, a column with two levels, or `column=level`.
    pub label: String,
    /// Columns or `column=level` names; all columns but the label's when `None`.
    pub features: Option<Vec<String>>,
    /// The label itself, or its log odds.
    pub kind: Kind,
    /// How to learn.
    pub learner: Learner,
    /// λ added to the diagonal of the moment matrix.
    pub ridge: Ridge,
    /// Level of the intervals.
    pub level: Level,
}

impl Regression {
    /// Of `label` on all other columns, by the default learner.
    pub fn of(label: &str) -> Self {
        Self {
            label: label.to_owned(),
            features: None,
            kind: Kind::Linear,
            learner: Learner::Posterior,
            ridge: Ridge::new(DEFAULT_RIDGE).expect("it is small and positive"),
            level: Level::default(),
        }
    }
}

/// One encoded column of the public dataset, with where it comes from.
pub(crate) struct Encoded<'a> {
    pub(crate) party: &'a Party,
    pub(crate) column: &'a Column,
    pub(crate) term: Term,
}

/// How an encoded column was released.
#[derive(Clone, Copy)]
pub(crate) struct Units {
    /// From original to released units.
    pub(crate) affine: Affine,
    /// Standard deviation of the noise in the mixed rows.
    pub(crate) noise: f64,
    /// What the release kept of the column, in original units.
    pub(crate) range: [f64; 2],
    /// Values beyond this were certainly cut, in original units.
    kept: Option<[f64; 2]>,
    /// What a missing value counts as, in original units.
    missing: f64,
    /// Standard deviation of the noise in the column's mean, in original units.
    pub(crate) mean_noise: f64,
    /// Where the column is taken to lie when predicting, in original units.
    believed_centre: f64,
}

impl Encoded<'_> {
    /// Middle and half-width of the public range.
    pub(crate) fn public(&self) -> (f64, f64) {
        match self.column.encoder() {
            Encoder::Numeric(bounds) => (bounds.midpoint(), bounds.half_width()),
            Encoder::Categorical(_) => (0.0, 1.0),
        }
    }

    fn is_numeric(&self) -> bool {
        matches!(self.column.encoder(), Encoder::Numeric(_))
    }
}

/// What the stages of a calibrated release published.
pub(crate) struct Calibrated {
    pub(crate) frame: Frame,
    pub(crate) moments: LocalMoments,
    pub(crate) clipping: Vec<Clipping>,
    centres: Vec<Centre>,
}

/// How one party's columns were released, and what it published of them beside the mixed rows.
pub(crate) struct PartyEvidence {
    pub(crate) noise: f64,
    /// The same of its column of presence, in people, if there is one.
    presence_noise: Option<f64>,
    pub(crate) calibrated: Option<Calibrated>,
}

impl PartyEvidence {
    pub(crate) fn new(study: &Study, party: &str, sums: &[Vec<i64>]) -> Result<Self, Error> {
        let mixed = study.stage(party, sums)?;
        let calibrated = match study.calibrated(party)? {
            None => None,
            Some(plan) => {
                let unsound = |_| Error::Stages;
                let frame = plan.frame(sums).map_err(unsound)?;
                let moments = LocalMoments::new(plan, sums, &frame).map_err(unsound)?;
                let (clipping, centres) = (moments.clipping(&frame), moments.centres(&frame));
                Some(Calibrated { frame, moments, clipping, centres })
            }
        };
        let Some(mixed) = mixed else {
            return Ok(Self { noise: study.mixed_noise(party)?.1, presence_noise: None, calibrated });
        };
        // Noise is one in all columns; what a published value is divided by is not.
        let presence_noise = mixed.encoder.weight().map(|_| {
            let last = mixed.encoder.width() - 1;
            mixed.noise_level() * mixed.scale() / mixed.scale_of(last)
        });
        Ok(Self { noise: mixed.noise_level(), presence_noise, calibrated })
    }

    /// What the party publishes of its people, with its column of presence.
    pub(crate) fn people<'a>(&'a self, presence: &'a [f64]) -> Result<PartyPeople<'a>, Error> {
        let moments = &self.calibrated.as_ref().ok_or(Error::Stages)?.moments;
        let values = moments.present.as_ref().ok_or(Error::Stages)?;
        Ok(PartyPeople { presence, presence_noise: self.presence_noise.ok_or(Error::Stages)?, values })
    }

    /// Units of the party's encoded column at `at`.
    pub(crate) fn units(&self, at: usize, encoded: &Encoded<'_>) -> Result<Units, Error> {
        let (mid, half) = encoded.public();
        let Some(Calibrated { frame, clipping, centres, .. }) = &self.calibrated else {
            let (lo, hi) = encoded.term.range();
            let missing = if encoded.is_numeric() { mid } else { 0.0 };
            let affine = Affine::new(mid, half)?;
            return Ok(Units {
                affine,
                noise: self.noise,
                range: [lo, hi],
                kept: None,
                missing,
                mean_noise: 0.0,
                believed_centre: mid,
            });
        };
        let scaling = frame.scalings[at];
        let original = |u: f64| mid + half * u;
        Ok(Units {
            affine: Affine::new(
                original(centres[at].found),
                half * scaling.scale * clipping[at].attenuation,
            )?,
            noise: self.noise,
            range: [original(scaling.low), original(scaling.high)],
            kept: Some(frame.kept(at).map(original)),
            missing: original(scaling.centre),
            mean_noise: half * centres[at].error,
            believed_centre: original(centres[at].believed),
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
pub(crate) fn terms(column: &Column) -> Vec<Term> {
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
/// Each whole set of indicators sums to one. Beside a free intercept, every categorical column with
/// more than two levels therefore loses its first level, which the others are compared with;
/// without one, from the second such column on.
fn feature_positions(
    encoded: &[Encoded<'_>],
    label: usize,
    names: Option<&[String]>,
    free_intercept: bool,
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
    let mut whole_sets = u32::from(free_intercept);
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
    if free_intercept {
        refuse_whole_sets(encoded, &chosen)?;
    }
    if chosen.is_empty() {
        return Err(Error::Regression("there is no feature; name at least one besides the label".to_owned()));
    }
    Ok(chosen)
}

/// Refuses features that name all levels of a column one by one: beside an intercept they are
/// collinear.
fn refuse_whole_sets(encoded: &[Encoded<'_>], chosen: &[usize]) -> Result<(), Error> {
    for &first in chosen {
        let column = encoded[first].column.name();
        let of_column = |position: &usize| encoded[*position].column.name() == column;
        let all = (0..encoded.len()).filter(of_column).count();
        if all > 1 && chosen.iter().copied().filter(of_column).count() == all {
            return Err(Error::Regression(format!(
                "the features name every level of {column:?}; leave one out to compare the others with, or name the column itself"
            )));
        }
    }
    Ok(())
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

/// What least squares estimate.
fn estimand(fit: &Fit) -> Estimand {
    if fit.estimand == learn::Estimand::Study { Estimand::StudyRows } else { Estimand::Attenuated }
}

/// Everything about a public dataset that learners need. Encoded columns are counted in its order.
pub struct Material<'a> {
    study: &'a Study,
    encoded: Vec<Encoded<'a>>,
    columns: Vec<&'a [f64]>,
    noise: Vec<f64>,
    units: Vec<Units>,
    parties: Vec<(Vec<usize>, PartyEvidence)>,
    /// Covariances between parties, where these exchanged their products.
    blocks: Option<Blocks>,
    /// Of each party its name and column of presence, where parties hold different people.
    presence: Vec<(&'a str, &'a [f64])>,
}

impl<'a> Material<'a> {
    /// What a public dataset says.
    pub fn new(dataset: &'a PublicDataset) -> Result<Self, Error> {
        let study = dataset.study();
        let encoded = encoded_columns(study, dataset);
        let mut units = Vec::with_capacity(encoded.len());
        let mut parties = Vec::new();
        for (party, sums) in dataset.earlier_sums() {
            let evidence = PartyEvidence::new(study, party, &sums)?;
            let members: Vec<usize> =
                (units.len()..units.len() + study.definition().party(party)?.width()).collect();
            for (at, &column) in members.iter().enumerate() {
                units.push(evidence.units(at, &encoded[column])?);
            }
            parties.push((members, evidence));
        }
        let mut presence = Vec::new();
        let mut columns = Vec::with_capacity(units.len());
        for (party, _) in dataset.parties() {
            let named = |name: &String| dataset.columns().column(name).ok_or(Error::Stages);
            let party = study.definition().party(party)?;
            for name in party.encoded_names() {
                columns.push(named(&name)?);
            }
            if let Some(name) = party.presence_name() {
                presence.push((party.name(), named(&name)?));
            }
        }
        let noise = units.iter().map(|units: &Units| units.noise).collect();
        let members: Vec<&[usize]> = parties.iter().map(|(members, _)| members.as_slice()).collect();
        let is_exchange = study.definition().method() == Method::Exchange;
        let blocks = is_exchange.then(|| exchanged(dataset, &members)).transpose()?;
        Ok(Self { study, encoded, columns, noise, units, parties, blocks, presence })
    }

    /// The same, of releases that are known to have no noise in their mixed rows, whatever their
    /// study says.
    #[must_use]
    pub fn without_noise(mut self) -> Self {
        self.noise.fill(0.0);
        self
    }

    /// The unit in which an encoded column is learned, in original ones: what clipping took of its
    /// spread is undone.
    pub fn unit(&self, column: usize) -> f64 {
        self.units[column].affine.half()
    }

    /// Where an encoded column is taken to lie when predicting, in original units.
    pub fn believed_centre(&self, column: usize) -> f64 {
        self.units[column].believed_centre
    }

    /// The standard deviation of the noise in the mean of an encoded column, in original units.
    pub fn centre_noise(&self, column: usize) -> f64 {
        self.units[column].mean_noise
    }

    /// What clipping did to an encoded column, as far as its release says.
    pub fn clipping(&self, column: usize) -> Clipping {
        let of_party = |(members, evidence): &(Vec<usize>, PartyEvidence)| {
            let at = members.iter().position(|&member| member == column)?;
            Some(evidence.calibrated.as_ref()?.clipping[at])
        };
        self.parties.iter().find_map(of_party).unwrap_or(Clipping::NONE)
    }

    /// The name of an encoded column, and that of its party.
    pub(crate) fn column(&self, column: usize) -> (String, &str) {
        let Encoded { party, term, .. } = &self.encoded[column];
        (term.name(), party.name())
    }

    /// Whether parties hold different people, and tell who is there.
    pub(crate) fn has_presence(&self) -> bool {
        !self.presence.is_empty()
    }

    fn released(&self) -> Result<Released<'_>, Error> {
        if self.blocks.is_some() {
            return Err(Error::Regression(
                "parties of method exchange publish no mixed rows; leave the learner out, or choose posterior".to_owned(),
            ));
        }
        Ok(Released::new(&self.columns, &self.noise, self.study.definition().rows())?)
    }

    fn is_calibrated(&self) -> bool {
        self.parties.iter().all(|(_, evidence)| evidence.calibrated.is_some())
    }

    /// What learners read.
    pub fn evidence(&self) -> Result<Evidence<'_>, Error> {
        let between = match &self.blocks {
            Some(blocks) => Between::Exchanged(blocks.clone()),
            None if self.is_calibrated() => Between::Mixed(self.released()?),
            None => return Ok(Evidence::from_rows(self.released()?)),
        };
        let mut parts = Vec::with_capacity(self.parties.len());
        for (members, evidence) in &self.parties {
            let Calibrated { moments, clipping, .. } = evidence.calibrated.as_ref().ok_or(Error::Stages)?;
            parts.push((members.clone(), moments, clipping.as_slice()));
        }
        let evidence = Evidence::from_parties(between, &parts);
        match evidence.released().filter(|_| !self.presence.is_empty()) {
            None => Ok(evidence),
            Some(released) => {
                let people = self.people(released)?;
                Ok(evidence.with_people(people))
            }
        }
    }

    /// What of a column's mixed rows, or of its covariances with other parties, is noise.
    fn noise_share(&self, column: usize) -> f64 {
        if let Some(blocks) = &self.blocks {
            let elsewhere = self.parties.iter().filter(|(members, _)| !members.contains(&column));
            let others: Vec<usize> = elsewhere.flat_map(|(members, _)| members.clone()).collect();
            return blocks.noise_share(column, &others);
        }
        let squares: f64 = self.columns[column].iter().map(|z| z * z).sum();
        self.noise[column].powi(2) * self.columns[column].len() as f64 / squares
    }

    /// Who is where, as columns of presence and counts of values say.
    fn people(&self, released: &Released<'_>) -> Result<People, Error> {
        let mut parties = Vec::with_capacity(self.parties.len());
        let mut declared = DeclaredOverlaps::default();
        for (at, ((members, evidence), &(name, presence))) in
            self.parties.iter().zip(&self.presence).enumerate()
        {
            parties.push((members.clone(), evidence.people(presence)?));
            for (other, &(before, _)) in self.presence[..at].iter().enumerate() {
                declared = declared.with((other, at), self.study.definition().overlap(before, name));
            }
        }
        Ok(People::of_parties(released, &parties, &declared))
    }

    /// Name of an encoded column.
    pub(crate) fn name(&self, column: usize) -> String {
        self.encoded[column].term.name()
    }

    /// Whether two encoded columns are levels of one.
    pub(crate) fn are_of_one_column(&self, one: usize, other: usize) -> bool {
        self.encoded[one].column.name() == self.encoded[other].column.name()
    }

    /// The encoded columns that these names stand for, each once; all without names.
    pub(crate) fn columns_named(&self, names: Option<&[String]>) -> Result<Vec<usize>, Error> {
        let Some(names) = names else { return Ok((0..self.encoded.len()).collect()) };
        let mut all = Vec::new();
        for name in names {
            for position in positions(&self.encoded, name)? {
                if !all.contains(&position) {
                    all.push(position);
                }
            }
        }
        Ok(all)
    }

    /// The encoded columns that a name stands for, without the level that others are compared with.
    pub(crate) fn beside_an_intercept(&self, name: &str) -> Result<Vec<usize>, Error> {
        let mut own = positions(&self.encoded, name)?;
        if own.len() > 1 {
            own.remove(0);
        }
        Ok(own)
    }

    /// What the learner is concerned about, by the names of columns.
    pub(crate) fn finding(&self, concern: &Concern) -> Finding {
        let kind = match concern {
            Concern::LabelTails => FindingKind::LabelTails,
            Concern::FeatureTails => FindingKind::FeatureTails,
            Concern::LabelUnresolved => FindingKind::LabelUnresolved,
            Concern::FeatureUnresolved => FindingKind::FeatureUnresolved,
            Concern::Confounders(_) => FindingKind::Confounders,
            Concern::Overlap(concern) => people::kind(*concern),
            Concern::LabelMissing => FindingKind::LabelMissing,
            Concern::FeatureMissing => FindingKind::FeatureMissing,
        };
        let columns = if let Concern::Confounders(of) = concern { self.names(of) } else { Vec::new() };
        Finding { kind, columns }
    }

    /// What the learner is concerned about in the explained share.
    fn share_findings(&self, concerns: &ShareConcerns) -> Vec<Finding> {
        let finding = |kind, columns: &[usize]| Finding { kind, columns: self.names(columns) };
        let of_label = |is: bool, kind| is.then(|| finding(kind, &[]));
        let of_features = |columns: &[usize], kind| (!columns.is_empty()).then(|| finding(kind, columns));
        let of_overlaps =
            concerns.overlaps.iter().map(|(concern, columns)| finding(people::kind(*concern), columns));
        let of_values = [
            of_label(concerns.label_tails, FindingKind::LabelTails),
            of_label(concerns.label_unresolved, FindingKind::LabelUnresolved),
            of_features(&concerns.feature_tails, FindingKind::FeatureTails),
            of_label(concerns.label_missing, FindingKind::LabelMissing),
            of_features(&concerns.feature_missing, FindingKind::FeatureMissing),
        ];
        of_overlaps.chain(of_values.into_iter().flatten()).collect()
    }

    /// What is wrong with the people that the label's party and those of the features have in
    /// common, whatever learns.
    fn overlap_findings(&self, label: usize, features: &[usize]) -> Result<Vec<Vec<Finding>>, Error> {
        if !self.has_presence() {
            return Ok(vec![Vec::new(); features.len()]);
        }
        let people = self.people(&self.released()?)?;
        let party_of = |column: usize| self.parties.iter().position(|(members, _)| members.contains(&column));
        let of_feature = |&column: &usize| {
            let overlap = party_of(label).zip(party_of(column)).and_then(|(a, b)| people.overlap(a, b));
            let kind = overlap.and_then(Overlap::concern).map(people::kind);
            kind.map(|kind| Finding { kind, columns: Vec::new() }).into_iter().collect()
        };
        Ok(features.iter().map(of_feature).collect())
    }

    /// Features that the others say nearly all of.
    fn collinear(&self, features: &[usize], related: &[Related]) -> Vec<Collinear> {
        let name = |at: usize| self.encoded[features[at]].term.name();
        let of = |(at, related): (usize, &Related)| {
            let (closest, correlation) = related.closest.filter(|_| related.by_others > NEARLY_ALL)?;
            let by_others = related.by_others;
            Some(Collinear { feature: name(at), by_others, closest: name(closest), correlation })
        };
        related.iter().enumerate().filter_map(of).collect()
    }

    /// By how much predictions of a number miss it, as a standard deviation, where the features
    /// explain this much of it: of that, one standard error less is believed.
    fn prediction_error(&self, evidence: &Evidence<'_>, label: usize, share: &ExplainedShare) -> Option<f64> {
        let explained = (share.estimate - share.standard_error).clamp(0.0, 1.0);
        let units = &self.units[label];
        let seen = evidence.covariance[(label, label)].max(evidence.covariance_noise[label]);
        let rest = units.affine.half().powi(2) * seen * (1.0 - explained);
        self.encoded[label].is_numeric().then(|| (rest + units.mean_noise.powi(2)).sqrt())
    }

    /// Names of the columns that these encoded ones belong to, each once.
    fn names(&self, encoded: &[usize]) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for &at in encoded {
            let name = self.encoded[at].column.name();
            if names.iter().all(|known| known != name) {
                names.push(name.to_owned());
            }
        }
        names
    }

    /// A coefficient with where it comes from.
    fn coefficient(&self, at: usize, shown: &Shown) -> Coefficient {
        let Encoded { party, column, term } = &self.encoded[at];
        let units = &self.units[at];
        Coefficient {
            term: term.clone(),
            party: party.name().to_owned(),
            unit: column.unit().map(str::to_owned),
            value: shown.value,
            prediction: shown.prediction,
            range: units.range,
            missing: units.missing,
            encoded: shown.encoded,
            noise_share: noise_share(shown.noise_share),
            parts: shown.parts,
            findings: shown.findings.clone(),
            kept: units.kept,
        }
    }
}

/// What parties exchanged, given the columns of each in the dataset's order.
fn exchanged(dataset: &PublicDataset, members: &[&[usize]]) -> Result<Blocks, Error> {
    let study = dataset.study();
    let columns = members.iter().map(|members| members.len()).sum();
    let published: Vec<(&str, Vec<Vec<i64>>)> = dataset.earlier_sums().collect();
    let mut found = Blocks::new(study.definition().rows(), columns);
    for block in dataset.blocks() {
        let place = |name: &str| published.iter().position(|(party, _)| *party == name).ok_or(Error::Stages);
        let [sender, recipient] = block.parties();
        let (one, other) = (place(sender)?, place(recipient)?);
        let pair = Pair::new(study, [(sender, &published[one].1), (recipient, &published[other].1)])?;
        let each = (0..members[one].len()).flat_map(|i| (0..members[other].len()).map(move |j| [i, j]));
        for ([i, j], value) in each.zip(block.values()) {
            if let &Some(value) = value {
                let columns = (members[one][i], members[other][j]);
                found.insert(columns, pair.covariance(value, [i, j]), pair.noise());
            }
        }
    }
    Ok(found)
}

/// What a learner says of one coefficient.
struct Shown {
    value: Estimate,
    prediction: f64,
    encoded: Estimate,
    noise_share: f64,
    parts: Option<Parts>,
    findings: Vec<Finding>,
}

/// What a learner found, in the units of the released rows.
struct Found {
    coefficients: Coefficients,
    /// What to predict with.
    weights: Vec<f64>,
    parts: Option<Vec<VarianceParts>>,
    /// Intervals of the weights, where they are not those of the covariance.
    intervals: Option<Vec<Interval>>,
    findings: Vec<Vec<Finding>>,
    noise_share: Vec<f64>,
    estimand: Estimand,
    diagnostics: Diagnostics,
    /// By how much predictions miss, where it is known.
    prediction_error: Option<f64>,
}

impl Found {
    fn least_squares(fit: Fit, findings: Vec<Vec<Finding>>, dataset: &PublicDataset) -> Self {
        let spectrum = &fit.spectrum;
        let eigenvalues = Eigenvalues {
            smallest: spectrum.smallest(),
            smallest_error: spectrum.smallest_error(),
            smallest_absolute: spectrum.smallest_absolute(),
            condition: spectrum.condition(),
            stability: spectrum.stability().to_string(),
            sound: spectrum.stability() == Stability::Sound,
        };
        Self {
            estimand: estimand(&fit),
            diagnostics: Diagnostics {
                degrees: fit.coefficients.degrees() as u64,
                eigenvalues: Some(eigenvalues),
                residual_variance: Some(fit.residual_variance),
                r_squared: fit.r_squared.map(|estimate| RSquared { estimate, interval: None }),
                ..diagnostics(dataset)
            },
            weights: fit.coefficients.weights().to_vec(),
            findings,
            coefficients: fit.coefficients,
            parts: None,
            intervals: None,
            noise_share: fit.noise_share,
            prediction_error: None,
        }
    }

    fn posterior(
        material: &Material<'_>,
        label: usize,
        features: &[usize],
        level: Level,
        dataset: &PublicDataset,
    ) -> Result<Self, Error> {
        let evidence = material.evidence()?;
        let fit = posterior(&evidence, label, features, level)?;
        let r_squared = explained_share(&evidence, label, features)?;
        let fitted = Fitted { evidence: &evidence, label, features, level };
        Ok(Self::of_posterior(material, &fitted, fit, &r_squared, dataset))
    }

    fn of_posterior(
        material: &Material<'_>,
        &Fitted { evidence, label, features, level }: &Fitted<'_>,
        fit: Posterior,
        r_squared: &ExplainedShare,
        dataset: &PublicDataset,
    ) -> Self {
        let interval = r_squared.interval(level);
        let finding = |concern: &Concern| material.finding(concern);
        let findings: Vec<Vec<Finding>> =
            fit.concerns.iter().map(|concerns| concerns.iter().map(finding).collect()).collect();
        let of_share = material.share_findings(&fit.share_concerns);
        let noise_share = features.iter().map(|&j| material.noise_share(j));
        // Where everybody is everywhere, these are all.
        let rows = people_of(evidence, label).round() as u64;
        Self {
            estimand: if material.has_presence() { Estimand::LabelPeople } else { Estimand::Study },
            diagnostics: Diagnostics {
                rows,
                degrees: fit.estimate.degrees() as u64,
                r_squared: Some(RSquared {
                    estimate: r_squared.estimate,
                    interval: Some([interval.lower, interval.upper]),
                }),
                r_squared_findings: of_share,
                collinear: material.collinear(features, &fit.related),
                ..diagnostics(dataset)
            },
            prediction_error: material.prediction_error(evidence, label, r_squared),
            coefficients: fit.estimate,
            weights: fit.weights,
            parts: Some(fit.parts),
            intervals: Some(fit.intervals),
            findings,
            noise_share: noise_share.collect(),
        }
    }
}

/// What was asked of what.
struct Fitted<'a> {
    evidence: &'a Evidence<'a>,
    label: usize,
    features: &'a [usize],
    level: Level,
}

/// About how many people the label's party has.
fn people_of(evidence: &Evidence<'_>, label: usize) -> f64 {
    let home = evidence.parties.iter().position(|members| members.contains(&label));
    home.map_or(0.0, |home| evidence.people.held()[home])
}

/// A logistic regression, with what it says of its label.
struct FoundOdds {
    found: Found,
    scale: LabelScale,
    classification: Classification,
}

impl FoundOdds {
    fn new(
        material: &Material<'_>,
        label: usize,
        features: &[usize],
        level: Level,
        dataset: &PublicDataset,
    ) -> Result<Self, Error> {
        let evidence = material.evidence()?;
        let explained = explained_share(&evidence, label, features)?;
        let outcome = material.outcome(label, explained, people_of(&evidence, label));
        let shape = |&feature: &usize| material.shape(feature, people_of(&evidence, feature));
        let shapes: Vec<Shape> = features.iter().map(shape).collect();
        let Logistic { posterior, centre, prediction_centre, variance, calibration, discrimination, doubts } =
            logistic(&evidence, label, features, level, &outcome, &shapes)?;
        let degrees = posterior.estimate.degrees();
        let fitted = Fitted { evidence: &evidence, label, features, level };
        let mut found = Found::of_posterior(material, &fitted, posterior, &explained, dataset);
        found.estimand = if material.has_presence() { Estimand::LabelLogOdds } else { Estimand::LogOdds };
        for (findings, doubts) in found.findings.iter_mut().zip(&doubts) {
            let mut kinds: Vec<FindingKind> = doubts.iter().map(|&doubt| of_doubt(doubt)).collect();
            kinds.dedup();
            findings.extend(kinds.into_iter().map(|kind| Finding { kind, columns: Vec::new() }));
        }
        let sampling = outcome.share * (1.0 - outcome.share) / outcome.people;
        let reach = two_sided_quantile(level, degrees) * outcome.error.hypot(sampling.sqrt());
        let (area, slopes) = (discrimination.interval, calibration.interval(level));
        Ok(Self {
            found,
            scale: LabelScale {
                affine: Affine::new(centre.0, 1.0)?,
                variance: centre.1,
                believed_centre: prediction_centre,
            },
            classification: Classification {
                share: outcome.share,
                share_interval: [(outcome.share - reach).max(0.0), (outcome.share + reach).min(1.0)],
                area: discrimination.area,
                area_interval: [area.lower, area.upper],
                calibration: calibration.slope(),
                calibration_interval: [slopes.lower, slopes.upper],
                log_odds_variance: variance,
            },
        })
    }
}

fn of_doubt(doubt: Doubt) -> FindingKind {
    match doubt {
        Doubt::RareLabel | Doubt::Separated => FindingKind::OddsUnbounded,
        Doubt::RareLevel => FindingKind::LevelRare,
        Doubt::Shape => FindingKind::FeatureShape,
    }
}

/// What a label is where every feature is at its centre, and the unit of coefficients.
struct LabelScale {
    affine: Affine,
    /// Variance of the error of the value at the centre.
    variance: f64,
    believed_centre: f64,
}

impl LabelScale {
    /// Of a label in its own units.
    fn of(units: &Units) -> Self {
        Self {
            affine: units.affine,
            variance: units.mean_noise.powi(2),
            believed_centre: units.believed_centre,
        }
    }
}

impl Material<'_> {
    /// What is known of a label as an outcome that people have or not.
    fn outcome(&self, label: usize, explained: ExplainedShare, people: f64) -> Outcome {
        let units = &self.units[label];
        let people = people.max(2.0);
        // A share that noise takes to 0 or beyond is not known to be more than its noise.
        let least = units.mean_noise.max(1.0 / people).min(0.5);
        Outcome {
            share: units.affine.mid().clamp(least, 1.0 - least),
            error: units.mean_noise,
            unit: units.affine.half(),
            explained,
            people,
        }
    }

    /// What is known of the shape of a feature of so many people.
    fn shape(&self, feature: usize, people: f64) -> Shape {
        let (units, encoded) = (&self.units[feature], &self.encoded[feature]);
        let (mid, half) = (units.affine.mid(), units.affine.half());
        if !encoded.is_numeric() {
            let least = units.mean_noise.max(1.0 / people.max(2.0)).min(0.5);
            return Shape::Level { share: mid.clamp(least, 1.0 - least), unit: half };
        }
        let (low, high) = encoded.term.range();
        let nearest = (mid - low).min(high - mid);
        if nearest > CLEAR_OF_BOUNDS * half { Shape::Clear } else { Shape::Bounded }
    }
}

/// What is known before anything is learned.
fn diagnostics(dataset: &PublicDataset) -> Diagnostics {
    Diagnostics {
        rows: dataset.study().definition().rows(),
        released_rows: dataset.columns().rows() as u64,
        degrees: 0,
        eigenvalues: None,
        residual_variance: None,
        r_squared: None,
        r_squared_findings: Vec::new(),
        collinear: Vec::new(),
    }
}

/// Fits a regression on a public dataset.
pub fn fit(dataset: &PublicDataset, regression: &Regression) -> Result<Model, Error> {
    let study = dataset.study();
    let material = Material::new(dataset)?;
    let label = label_position(&material.encoded, &regression.label)?;
    let features = feature_positions(
        &material.encoded,
        label,
        regression.features.as_deref(),
        material.is_calibrated(),
    )?;
    if regression.kind == Kind::Logistic {
        refuse_log_odds(&material, label, regression.learner)?;
    }
    let label_units = &material.units[label];
    let of_label = LabelScale::of(label_units);
    let of_people = || material.overlap_findings(label, &features);
    let (found, of_label, classification) = match (regression.kind, regression.learner) {
        (Kind::Logistic, _) => {
            let odds = FoundOdds::new(&material, label, &features, regression.level, dataset)?;
            (odds.found, odds.scale, Some(odds.classification))
        }
        (_, Learner::Ols) => {
            let fit = ols(&material.released()?, label, &features, regression.ridge)?;
            (Found::least_squares(fit, of_people()?, dataset), of_label, None)
        }
        (_, Learner::Debiased) => {
            let fit = debiased(&material.released()?, label, &features, regression.ridge)?;
            (Found::least_squares(fit, of_people()?, dataset), of_label, None)
        }
        (_, Learner::Posterior) => {
            (Found::posterior(&material, label, &features, regression.level, dataset)?, of_label, None)
        }
    };

    let scalings: Vec<Affine> = features.iter().map(|&j| material.units[j].affine).collect();
    let original = found.coefficients.to_original(&scalings, of_label.affine)?;
    let means = original
        .slopes()
        .iter()
        .zip(&features)
        .map(|(slope, &j)| (slope * material.units[j].mean_noise).powi(2));
    let mean_variance = of_label.variance + means.sum::<f64>();
    let original = original.with_intercept_variance(mean_variance);
    let mut in_units = estimates(original.coefficients(), regression.level);
    let mut in_encoded = estimates(&found.coefficients, regression.level);
    for (at, interval) in found.intervals.iter().flatten().enumerate() {
        let units = interval.scaled(of_label.affine.half() / scalings[at].half());
        (in_units[at + 1].low, in_units[at + 1].high) = (units.lower, units.upper);
        (in_encoded[at].low, in_encoded[at].high) = (interval.lower, interval.upper);
    }
    let (intercept, slopes) = in_units.split_first().expect("the intercept comes first");
    let of_features: Vec<&Units> = features.iter().map(|&j| &material.units[j]).collect();
    let predictive = predictive(&found.weights, &of_features, &of_label);

    let coefficients = features.iter().enumerate().map(|(at, &j)| {
        let parts = found.parts.as_ref().map(|parts| {
            let VarianceParts { privacy, mixing, correlations, sampling, clipping, people, approximation } =
                parts[at];
            Parts { privacy, mixing, correlations, sampling, clipping, people, approximation }
        });
        let shown = Shown {
            value: slopes[at],
            prediction: predictive.1[at],
            encoded: in_encoded[at],
            noise_share: found.noise_share[at],
            parts,
            findings: found.findings[at].clone(),
        };
        material.coefficient(j, &shown)
    });
    let covariance = original.coefficients().covariance();
    Ok(Model {
        potluck: "model".to_owned(),
        format: FORMAT,
        software: SOFTWARE.to_owned(),
        study: study.definition().name().to_owned(),
        study_id: study.id().to_owned(),
        dataset: dataset.content_hash().to_owned(),
        label: material.encoded[label].term.clone(),
        label_unit: material.encoded[label].column.unit().map(str::to_owned),
        kind: regression.kind,
        learner: regression.learner,
        ridge: regression.ridge.get(),
        level: regression.level.get(),
        estimand: found.estimand,
        intercept: *intercept,
        free_intercept: material.is_calibrated(),
        prediction_intercept: predictive.0,
        label_range: if classification.is_some() { [0.0, 1.0] } else { label_units.range },
        label_kept: label_units.kept,
        prediction_error: found.prediction_error,
        coefficients: coefficients.collect(),
        covariance: (0..covariance.dim()).map(|i| covariance.row(i).to_vec()).collect(),
        diagnostics: found.diagnostics,
        classification,
        privacy: promises(dataset)?,
    })
}

/// What the releases promise, in words: each alone, then all together.
fn promises(dataset: &PublicDataset) -> Result<Vec<String>, Error> {
    let study = dataset.study();
    let mut privacy = Vec::new();
    for (party, _) in dataset.parties() {
        privacy.push(statement::of_party(study, party)?.swap_remove(0));
    }
    privacy.extend(statement::joint(study, dataset.parties().count()));
    Ok(privacy)
}

/// Intercept and slopes in original units for weights in those of the released rows.
fn predictive(weights: &[f64], features: &[&Units], label: &LabelScale) -> (f64, Vec<f64>) {
    let slope = |(weight, units): (&f64, &&Units)| weight * label.affine.half() / units.affine.half();
    let slopes: Vec<f64> = weights.iter().zip(features).map(slope).collect();
    let at_centre: f64 =
        slopes.iter().zip(features).map(|(slope, units)| slope * units.believed_centre).sum();
    (label.believed_centre - at_centre, slopes)
}

/// Refuses log odds of a number, and learners that have none.
fn refuse_log_odds(material: &Material<'_>, label: usize, learner: Learner) -> Result<(), Error> {
    let encoded = &material.encoded[label];
    if encoded.is_numeric() {
        return Err(Error::Regression(format!(
            "{:?} is a number, and only a label with levels has odds; choose a column with two levels or column=level, or fit a linear regression",
            encoded.term.name()
        )));
    }
    if learner != Learner::Posterior {
        return Err(Error::Regression(format!(
            "the learner {:?} has no log odds; choose posterior, or fit a linear regression",
            learner.name()
        )));
    }
    if !material.is_calibrated() {
        return Err(Error::Regression(
            "log odds need what calibrated releases say of each column, and these are of another method; fit a linear regression".to_owned(),
        ));
    }
    Ok(())
}
