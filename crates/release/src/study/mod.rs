//! The study: the public contract between parties, and every number that follows from it.
//!
//! [`Draft`] is a study that was checked but not sealed; [`Study`] is sealed: its mixing key, μ, k and noise
//! scales are fixed and have been recomputed and compared. Only a [`Study`] can be released under, so an
//! unsealed or edited study cannot reach the private side. [`Extension`] is a draft that adds parties to a sealed
//! study; it takes its key from that one.

mod document;
mod extension;
mod seal;

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use potluck_core::accounting::{Delta, Epsilon, Mu, MuSquared};
use potluck_core::calibrated::{Layout, PartyPlan};
use potluck_core::encoding::{Ball, Bounds, Encoder, LevelCount, Q};
use potluck_core::mixing::{Mixing, MixingKey};
use potluck_core::planning::{Prospect, smallest_useful_rows};
use potluck_core::stage::Stage;
use serde::{Deserialize, Serialize};

use crate::place::{Key, Place};
use crate::{Error, FORMAT, canonical};
use document::{ColumnSection, Document, PartySection, PrivacySection, StudySection};
pub use extension::Extension;
pub use seal::Seal;

/// Most parties of a study, those that it extends included: plans and fits take longer with each.
const MOST_PARTIES: usize = 256;

/// What identifies a subject, and so its column of the mixing matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum IdKind {
    /// Whole numbers in plain decimal.
    Integer,
    /// Text as it stands: no trimming, no normalisation.
    Text,
    /// The position in the table, from 0; row order is public.
    Row,
}

/// How a party releases its columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Method {
    /// Columns standardised privately, local moments, then random mixing with less noise.
    Calibrated,
    /// Random mixing, then the Gaussian mechanism (the paper's RMGM).
    Rmgm,
    /// The Gaussian mechanism on every row (the paper's DGM and BGM).
    Dgm,
}

/// Which matrix mixes the subjects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MixingKind {
    /// One sign a subject.
    Sparse,
    /// k signs a subject.
    Bernoulli,
    /// No mixing.
    Identity,
}

impl From<MixingKind> for Mixing {
    fn from(kind: MixingKind) -> Self {
        match kind {
            MixingKind::Sparse => Self::Sparse,
            MixingKind::Bernoulli => Self::Bernoulli,
            MixingKind::Identity => Self::Identity,
        }
    }
}

/// A named set of defaults.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Preset {
    /// As the paper does it: classical calibration, and the same row norm √d_max for every party.
    Paper,
}

/// How (ε, δ) becomes μ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Calibration {
    /// The exact curve of the Gaussian mechanism.
    Analytic,
    /// σ/Δ = √(2 ln(1.25/δ))/ε, only for ε ≤ 1.
    Classical,
}

/// What happens to a missing value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Missing {
    /// It is encoded as 0: the middle of the bounds, or no level.
    Midpoint,
    /// The table is refused.
    Error,
}

/// What happens to a value that is not among the levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Unknown {
    /// It counts as missing.
    Missing,
    /// It becomes the level `other`.
    Other,
    /// The table is refused.
    Error,
}

/// The values a column may take.
#[derive(Clone, Debug, PartialEq)]
pub enum Domain {
    /// Numbers, clamped to bounds.
    Numeric(Bounds),
    /// One of these levels.
    Categorical {
        /// The levels in the study's order.
        levels: Vec<String>,
        /// What happens to other values.
        unknown: Unknown,
    },
}

/// One column of a party.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    name: String,
    domain: Domain,
    missing: Missing,
    unit: Option<String>,
    description: Option<String>,
}

impl Column {
    /// Its name in the party's table.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The values it may take.
    pub fn domain(&self) -> &Domain {
        &self.domain
    }

    /// What happens to a missing value.
    pub fn missing(&self) -> Missing {
        self.missing
    }

    /// Whether a table is refused for a missing value here.
    pub fn refuses_missing(&self) -> bool {
        self.missing == Missing::Error
    }

    /// Whether a table is refused for a value that is not among the levels.
    pub fn refuses_unknown(&self) -> bool {
        match &self.domain {
            Domain::Categorical { unknown: Unknown::Error, .. } => true,
            Domain::Categorical { unknown: Unknown::Missing, .. } => self.refuses_missing(),
            Domain::Categorical { unknown: Unknown::Other, .. } | Domain::Numeric(_) => false,
        }
    }

    /// Unit of measurement, for people.
    pub fn unit(&self) -> Option<&str> {
        self.unit.as_deref()
    }

    /// What it means, for people.
    pub fn description(&self) -> Option<&str> {
        self.description.as_deref()
    }

    /// How it is encoded.
    pub fn encoder(&self) -> Encoder {
        match &self.domain {
            Domain::Numeric(bounds) => Encoder::Numeric(*bounds),
            Domain::Categorical { levels, .. } => {
                Encoder::Categorical(LevelCount::new(levels.len()).expect("checked when the study was read"))
            }
        }
    }

    /// Names of its encoded columns.
    pub fn encoded_names(&self) -> Vec<String> {
        match (&self.domain, self.encoder()) {
            (Domain::Categorical { levels, .. }, Encoder::Categorical(count)) => {
                levels[count.first_encoded()..].iter().map(|level| format!("{}={level}", self.name)).collect()
            }
            _ => vec![self.name.clone()],
        }
    }
}

/// One organisation and its columns.
#[derive(Clone, Debug, PartialEq)]
pub struct Party {
    name: String,
    clip_norm: Option<f64>,
    columns: Vec<Column>,
}

impl Party {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its columns, in the study's order.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// Number of encoded columns.
    pub fn width(&self) -> usize {
        self.columns.iter().map(|column| column.encoder().width()).sum()
    }

    /// Names of the encoded columns.
    pub fn encoded_names(&self) -> Vec<String> {
        self.columns.iter().flat_map(Column::encoded_names).collect()
    }
}

/// The parts of a study that people write, checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Definition {
    name: String,
    rows: u64,
    id: IdKind,
    preset: Option<Preset>,
    method: Method,
    mixing: MixingKind,
    k: Option<u64>,
    missing_tokens: Vec<String>,
    epsilon: Epsilon,
    delta: Delta,
    calibration: Calibration,
    extends: Option<String>,
    /// Those of the study that it extends first.
    parties: Vec<Party>,
    /// How many parties belong to the study that it extends.
    inherited: usize,
}

impl Definition {
    /// The study's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// n: the public number of subjects.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// What identifies a subject.
    pub fn id_kind(&self) -> IdKind {
        self.id
    }

    /// The named defaults in use.
    pub fn preset(&self) -> Option<Preset> {
        self.preset
    }

    /// How parties release.
    pub fn method(&self) -> Method {
        self.method
    }

    /// Which matrix mixes the subjects.
    pub fn mixing(&self) -> Mixing {
        self.mixing.into()
    }

    /// Text that stands for a missing value in CSV.
    pub fn missing_tokens(&self) -> &[String] {
        &self.missing_tokens
    }

    /// ε of each party's release.
    pub fn epsilon(&self) -> Epsilon {
        self.epsilon
    }

    /// δ of each party's release.
    pub fn delta(&self) -> Delta {
        self.delta
    }

    /// How (ε, δ) becomes μ.
    pub fn calibration(&self) -> Calibration {
        self.calibration
    }

    /// The id of the study that it extends, if it extends one.
    pub fn extends(&self) -> Option<&str> {
        self.extends.as_deref()
    }

    /// All parties in the study's order, those of the study that it extends first.
    pub fn parties(&self) -> &[Party] {
        &self.parties
    }

    /// The parties that the study itself lists.
    fn own_parties(&self) -> &[Party] {
        &self.parties[self.inherited..]
    }

    /// The party of this name.
    pub fn party(&self, name: &str) -> Result<&Party, Error> {
        self.parties.iter().find(|party| party.name == name).ok_or_else(|| Error::UnknownParty {
            party: name.to_owned(),
            known: self.parties.iter().map(|party| party.name.as_str()).collect::<Vec<_>>().join(", "),
        })
    }

    /// Number of encoded columns of all parties.
    pub fn width(&self) -> usize {
        self.parties.iter().map(Party::width).sum()
    }

    /// Every column with its party.
    pub fn columns(&self) -> impl Iterator<Item = (&Party, &Column)> {
        self.parties.iter().flat_map(|party| party.columns.iter().map(move |column| (party, column)))
    }

    /// What the document says, as an extension of `base` if it extends a study.
    fn from_document(document: &Document, base: Option<&Study>) -> Result<Self, Error> {
        let Document { format, study, privacy, party, sealed: _ } = document;
        if *format != FORMAT {
            return Err(Error::study(
                Key::Format,
                format!(
                    "is {format}; this potluck knows format {FORMAT}: use the version that wrote the study"
                ),
            ));
        }
        check_name(&Key::Name.into(), &study.name, 200)?;
        let method = study.method.unwrap_or(match study.preset {
            Some(Preset::Paper) => Method::Rmgm,
            None => Method::Calibrated,
        });
        let mixing = study.mixing.unwrap_or(match method {
            Method::Calibrated | Method::Rmgm => MixingKind::Sparse,
            Method::Dgm => MixingKind::Identity,
        });
        let calibration = privacy.calibration.unwrap_or(match study.preset {
            Some(Preset::Paper) => Calibration::Classical,
            None => Calibration::Analytic,
        });
        let mut parties = base.map_or(Vec::new(), |base| base.definition.parties.clone());
        let inherited = parties.len();
        for section in party {
            parties.push(read_party(section)?);
        }
        let definition = Self {
            name: study.name.clone(),
            rows: study.rows,
            id: study.id,
            preset: study.preset,
            method,
            mixing,
            k: study.k,
            missing_tokens: study
                .missing_tokens
                .clone()
                .unwrap_or_else(|| MISSING_TOKENS.map(str::to_owned).to_vec()),
            epsilon: Epsilon::new(privacy.epsilon)
                .map_err(|error| Error::study(Key::Epsilon, error.to_string()))?,
            delta: Delta::new(privacy.delta).map_err(|error| Error::study(Key::Delta, error.to_string()))?,
            calibration,
            extends: study.extends.clone(),
            parties,
            inherited,
        };
        if let Some(base) = base {
            definition.check_base(base)?;
        }
        definition.check()?;
        Ok(definition)
    }

    /// Whether method, mixing, ids and preset go together.
    fn check_method(&self) -> Result<(), Error> {
        match (self.method, self.mixing, self.id) {
            (Method::Dgm, MixingKind::Identity, IdKind::Row)
            | (Method::Calibrated, MixingKind::Sparse, _)
            | (Method::Rmgm, MixingKind::Sparse | MixingKind::Bernoulli, _) => {}
            (Method::Calibrated, ..) => {
                return Err(Error::study(
                    Key::Mixing,
                    "method calibrated mixes sparsely: set mixing = \"sparse\", or leave it out",
                ));
            }
            (Method::Dgm, MixingKind::Identity, _) => {
                return Err(Error::study(
                    Key::Id,
                    "method dgm keeps one row a subject in the order of the table: set id = \"row\", or use method rmgm",
                ));
            }
            (Method::Dgm, ..) => {
                return Err(Error::study(Key::Mixing, "method dgm does not mix: set mixing = \"identity\""));
            }
            (Method::Rmgm, ..) => {
                return Err(Error::study(
                    Key::Mixing,
                    "method rmgm needs mixing = \"sparse\" or \"bernoulli\"",
                ));
            }
        }
        if self.preset == Some(Preset::Paper) && self.method == Method::Calibrated {
            return Err(Error::study(Key::Method, "preset paper is for the methods rmgm and dgm"));
        }
        if self.preset == Some(Preset::Paper) && self.calibration != Calibration::Classical {
            return Err(Error::study(Key::Calibration, "preset paper is calibrated by \"classical\""));
        }
        Ok(())
    }

    /// What must hold between the parts of the study.
    fn check(&self) -> Result<(), Error> {
        self.check_method()?;
        if self.rows < 2 {
            return Err(Error::study(Key::Rows, "must be at least 2: one row cannot be hidden among others"));
        }
        if self.parties.len() > MOST_PARTIES {
            return Err(Error::study(
                Key::Parties,
                format!("there are more than {MOST_PARTIES}, which nobody has tried; split the study"),
            ));
        }
        if self.own_parties().is_empty() {
            return Err(Error::study(Key::Parties, "there is none; add a [[party]] with its columns"));
        }
        let mut names = HashSet::new();
        for party in &self.parties {
            if !names.insert(&party.name) {
                return Err(Error::study(Place::party(&party.name), "is named twice"));
            }
        }
        let mut names = HashSet::new();
        for (party, column) in self.columns() {
            for name in
                std::iter::once(column.name.clone()).chain(column.encoded_names()).collect::<HashSet<_>>()
            {
                if !names.insert(name) {
                    return Err(Error::study(
                        Place::column(&party.name, &column.name),
                        "the same name stands elsewhere in the study, or in one that it extends; column names must be unique across all parties",
                    ));
                }
            }
        }
        let width = self.width() as u64;
        if width < 2 {
            return Err(Error::study(Key::Parties, "a regression needs at least two columns in all"));
        }
        if self.rows < width {
            return Err(Error::study(
                Key::Rows,
                format!("there are {width} encoded columns but only {} rows", self.rows),
            ));
        }
        if let Some(k) = self.k {
            if self.method == Method::Dgm {
                return Err(Error::study(Key::K, "method dgm has one row a subject; leave k out"));
            }
            if k < width {
                return Err(Error::study(
                    Key::K,
                    format!(
                        "must be at least the number of encoded columns, {width}; leave it out for the default"
                    ),
                ));
            }
            if k > self.rows {
                return Err(Error::study(
                    Key::K,
                    format!("must not exceed the number of rows, {}", self.rows),
                ));
            }
        }
        for party in self.own_parties() {
            if self.method == Method::Calibrated && party.clip_norm.is_some() {
                return Err(Error::study(
                    Place::clip_norm(&party.name),
                    "method calibrated finds the row norm itself; leave clip_norm out",
                ));
            }
            let ball = self.ball(party)?;
            // Every sum of encoded rows and of their products fits i64, and the released numbers are exact in f64.
            let worst = u128::from(self.rows) * u128::from(ball.norm_squared());
            if worst >= 1 << 62 || u128::from(self.rows) * Q as u128 >= 1 << 52 {
                return Err(Error::study(
                    Place::party(&party.name),
                    "its sums could overflow: use fewer columns, fewer rows or a smaller clip_norm",
                ));
            }
        }
        Ok(())
    }

    /// The ball that bounds a subject's encoded row at `party`.
    pub(crate) fn ball(&self, party: &Party) -> Result<Ball, Error> {
        let columns = match self.preset {
            Some(Preset::Paper) => self.parties.iter().map(Party::width).max().unwrap_or(0),
            None => party.columns.len(),
        };
        let natural = Ball::of_columns(columns).map_err(Error::encoding(Place::party(&party.name)))?;
        match party.clip_norm {
            None => Ok(natural),
            Some(radius) => {
                let place = Place::clip_norm(&party.name);
                let ball = Ball::of_radius(radius).map_err(Error::encoding(place.clone()))?;
                if ball.norm_squared() > natural.norm_squared() {
                    return Err(Error::study(
                        place,
                        format!("is larger than any row can be, √{columns}; leave it out or lower it"),
                    ));
                }
                Ok(ball)
            }
        }
    }

    fn to_document(&self) -> Document {
        Document {
            format: FORMAT,
            study: StudySection {
                name: self.name.clone(),
                rows: self.rows,
                id: self.id,
                preset: self.preset,
                method: Some(self.method),
                mixing: Some(self.mixing),
                k: self.k,
                missing_tokens: Some(self.missing_tokens.clone()),
                extends: self.extends.clone(),
            },
            privacy: PrivacySection {
                epsilon: self.epsilon.get(),
                delta: self.delta.get(),
                calibration: Some(self.calibration),
            },
            party: self.own_parties().iter().map(write_party).collect(),
            sealed: None,
        }
    }
}

/// Text that stands for a missing value, in files that hold nothing but text; a study may say
/// otherwise.
pub const MISSING_TOKENS: [&str; 6] = ["", "NA", "NaN", "nan", "null", "NULL"];

fn check_name(place: &Place, name: &str, longest: usize) -> Result<(), Error> {
    let length = name.chars().count();
    if length == 0 || length > longest || name.chars().any(char::is_control) {
        return Err(Error::study(
            place.clone(),
            format!("a name has 1 to {longest} characters and no control characters"),
        ));
    }
    Ok(())
}

fn read_party(section: &PartySection) -> Result<Party, Error> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if section.name.is_empty() || section.name.len() > 64 || !section.name.chars().all(plain) {
        return Err(Error::study(
            Place::party(&section.name),
            "a party's name has 1 to 64 letters, digits, '-' or '_'",
        ));
    }
    if section.column.is_empty() {
        return Err(Error::study(
            Place::party(&section.name),
            "has no columns; add at least one [[party.column]]",
        ));
    }
    let columns = section.column.iter().map(|column| read_column(&section.name, column));
    Ok(Party {
        name: section.name.clone(),
        clip_norm: section.clip_norm,
        columns: columns.collect::<Result<_, _>>()?,
    })
}

fn read_column(party: &str, section: &ColumnSection) -> Result<Column, Error> {
    let here = Place::column(party, &section.name);
    check_name(&here, &section.name, 128)?;
    let domain = match (section.lo, section.hi, &section.levels) {
        (Some(lo), Some(hi), None) => {
            if section.unknown.is_some() {
                return Err(Error::study(here, "unknown is for columns with levels"));
            }
            Domain::Numeric(Bounds::new(lo, hi).map_err(Error::encoding(here.clone()))?)
        }
        (None, None, Some(levels)) => {
            LevelCount::new(levels.len()).map_err(Error::encoding(here.clone()))?;
            let distinct: HashSet<_> = levels.iter().collect();
            if distinct.len() != levels.len() {
                return Err(Error::study(here, "a level stands twice"));
            }
            for level in levels {
                check_name(&here, level, 128)?;
            }
            let unknown = section.unknown.unwrap_or(Unknown::Missing);
            if unknown == Unknown::Other && !levels.iter().any(|level| level == "other") {
                return Err(Error::study(here, "unknown = \"other\" needs a level \"other\""));
            }
            Domain::Categorical { levels: levels.clone(), unknown }
        }
        (_, _, Some(_)) => {
            return Err(Error::study(here, "has both bounds and levels; keep lo and hi, or levels"));
        }
        _ => {
            return Err(Error::study(
                here,
                "needs public bounds lo and hi, or public levels; choose them from what is known without looking at the data",
            ));
        }
    };
    for text in [&section.unit, &section.description].into_iter().flatten() {
        check_name(&here, text, 1000)?;
    }
    Ok(Column {
        name: section.name.clone(),
        domain,
        missing: section.missing.unwrap_or(Missing::Midpoint),
        unit: section.unit.clone(),
        description: section.description.clone(),
    })
}

fn write_party(party: &Party) -> PartySection {
    PartySection {
        name: party.name.clone(),
        clip_norm: party.clip_norm,
        column: party.columns.iter().map(write_column).collect(),
    }
}

fn write_column(column: &Column) -> ColumnSection {
    let (lo, hi, levels, unknown) = match &column.domain {
        Domain::Numeric(bounds) => (Some(bounds.lo()), Some(bounds.hi()), None, None),
        Domain::Categorical { levels, unknown } => (None, None, Some(levels.clone()), Some(*unknown)),
    };
    ColumnSection {
        name: column.name.clone(),
        lo,
        hi,
        levels,
        unknown,
        missing: Some(column.missing),
        unit: column.unit.clone(),
        description: column.description.clone(),
    }
}

fn parse_toml(text: &str) -> Result<Document, Error> {
    // Only position and reason: the file may be a private table that was named by mistake.
    toml::from_str(text).map_err(|error: toml::de::Error| {
        let line =
            error.span().map_or(1, |span| text[..span.start.min(text.len())].matches('\n').count() + 1);
        Error::StudySyntax { detail: format!("line {line}: {}", error.message()) }
    })
}

fn parse_json(value: &serde_json::Value) -> Result<Document, Error> {
    Document::deserialize(value).map_err(|error| Error::StudySyntax { detail: error.to_string() })
}

/// The text of a study file, unread.
pub fn read_text(path: &Path) -> Result<String, Error> {
    fs::read_to_string(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::InvalidData => {
            Error::NotOurs { path: path.to_owned(), expected: "study", detail: "it is not text".to_owned() }
        }
        _ => Error::read(path, error),
    })
}

fn parse_unsealed(text: &str) -> Result<Document, Error> {
    let document = parse_toml(text)?;
    if document.sealed.is_some() { Err(Error::AlreadySealed) } else { Ok(document) }
}

/// The text of a study that was put together in a program.
fn unsealed_text(value: &serde_json::Value) -> Result<String, Error> {
    Ok(toml::to_string(&parse_json(value)?).expect("a study is plain data"))
}

/// The text of a sealed study: the draft as people wrote it, with the seal behind it.
fn sealed_text(text: &str, study: &Study) -> String {
    #[derive(Serialize)]
    struct Section<'a> {
        sealed: &'a document::SealedSection,
    }
    let sealed = study.document().sealed.expect("a study is sealed");
    let section = toml::to_string(&Section { sealed: &sealed }).expect("a seal is plain data");
    format!("{}\n# Written by `potluck study seal`; do not edit.\n{section}", text.trim_end())
}

/// A checked study that is not sealed yet and extends no other; one that does is an [`Extension`].
#[derive(Clone, Debug)]
pub struct Draft {
    definition: Definition,
    text: String,
}

impl Draft {
    /// Reads and checks an unsealed study.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let document = parse_unsealed(text)?;
        if let Some(base) = document.study.extends {
            return Err(Error::BaseMissing { base });
        }
        Ok(Self { definition: Definition::from_document(&document, None)?, text: text.to_owned() })
    }

    /// Reads and checks an unsealed study file.
    pub fn load(path: &Path) -> Result<Self, Error> {
        Self::parse(&read_text(path)?)
    }

    /// Checks an unsealed study that was put together in a program: the tables and arrays of its TOML form, as JSON.
    pub fn from_json(value: &serde_json::Value) -> Result<Self, Error> {
        Self::parse(&unsealed_text(value)?)
    }

    /// What the study says.
    pub fn definition(&self) -> &Definition {
        &self.definition
    }

    /// The study as people wrote it.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The study with all the numbers that it would be sealed with, for planning: none of them depends on the key.
    pub fn preview(&self) -> Result<Study, Error> {
        self.seal(MixingKey::new([0; 32]))
    }

    /// Fixes every number that public facts determine. The key is public, but must come from a good random source.
    pub fn seal(&self, key: MixingKey) -> Result<Study, Error> {
        let seal = Seal::compute(&self.definition, key)?;
        Ok(Study::assemble(self.definition.clone(), seal, None))
    }

    /// The text of the sealed study: the draft as people wrote it, with the seal behind it.
    pub fn sealed_text(&self, study: &Study) -> String {
        sealed_text(&self.text, study)
    }
}

/// A sealed study whose numbers have been recomputed and agree.
#[derive(Clone, Debug, PartialEq)]
pub struct Study {
    definition: Definition,
    seal: Seal,
    id: String,
    base: Option<Box<Study>>,
}

impl Study {
    /// Reads a sealed study and verifies its seal.
    pub fn parse(text: &str) -> Result<Self, Error> {
        Self::from_document(&parse_toml(text)?)
    }

    /// Reads a sealed study file and verifies its seal.
    pub fn load(path: &Path) -> Result<Self, Error> {
        Self::parse(&read_text(path)?)
    }

    /// Reads the study out of a manifest and verifies its seal.
    pub(crate) fn from_json(value: &serde_json::Value) -> Result<Self, Error> {
        Self::from_document(&parse_json(value)?)
    }

    fn from_document(document: &Document) -> Result<Self, Error> {
        let wrong = |what: &str| Error::Seal { what: what.to_owned() };
        let base = match (&document.study.extends, &document.sealed) {
            (None, None) => None,
            (Some(_), None) => return Err(Error::NotSealed),
            (None, Some(section)) if section.base.is_none() => None,
            (None, Some(_)) => return Err(wrong("base")),
            (Some(extends), Some(section)) => {
                let base = section.base.as_deref().ok_or_else(|| wrong("base, which is missing,"))?;
                let base = Self::from_document(base)?;
                if base.id() != extends {
                    return Err(wrong("base"));
                }
                Some(base)
            }
        };
        let definition = Definition::from_document(document, base.as_ref())?;
        let section = document.sealed.as_ref().ok_or(Error::NotSealed)?;
        let seal = Seal::verify(&definition, section, base.as_ref().map(Self::seal))?;
        let study = Self::assemble(definition, seal, base.map(Box::new));
        if section.id.as_deref() != Some(study.id()) {
            let older = document.as_version_0_1_read_it();
            return older.map_or_else(|| Err(wrong("its id")), |older| Self::from_document(&older));
        }
        Ok(study)
    }

    fn assemble(definition: Definition, seal: Seal, base: Option<Box<Self>>) -> Self {
        let mut study = Self { definition, seal, id: String::new(), base };
        study.id = canonical::sha256_hex(&canonical::json(&study.document()));
        study
    }

    /// The whole document; the id is the hash of it without the id.
    fn document(&self) -> Document {
        let mut sealed = self.seal.to_section();
        sealed.id = (!self.id.is_empty()).then(|| self.id.clone());
        sealed.base = self.base().map(|base| Box::new(base.document()));
        Document { sealed: Some(sealed), ..self.definition.to_document() }
    }

    /// The study as it stands in manifests.
    pub fn to_json(&self) -> serde_json::Value {
        serde_json::to_value(self.document()).expect("a study is plain data")
    }

    /// The study as a file of its own, as far as the document goes: what people wrote beside it is not known here.
    pub fn to_toml(&self) -> String {
        toml::to_string(&self.document()).expect("a study is plain data")
    }

    /// SHA-256 of the study's canonical JSON.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// What people wrote.
    pub fn definition(&self) -> &Definition {
        &self.definition
    }

    /// What follows from it.
    pub fn seal(&self) -> &Seal {
        &self.seal
    }

    /// The study that it extends, if it extends one.
    pub fn base(&self) -> Option<&Self> {
        self.base.as_deref()
    }

    /// This study and those that it extends, one after the other, the first of them last.
    pub fn lineage(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |study| study.base())
    }

    /// The study that its lineage began with; itself if it extends none.
    pub fn origin(&self) -> &Self {
        self.lineage().last().expect("a lineage has at least the study itself")
    }

    /// The parties that release under this very study, not under one that it extends.
    pub fn own_parties(&self) -> &[Party] {
        self.definition.own_parties()
    }

    /// The party of this name, if it releases under this very study.
    pub fn own_party(&self, name: &str) -> Result<&Party, Error> {
        let study = self.study_of(name)?;
        if study.id != self.id {
            return Err(Error::PartyOfBase {
                party: name.to_owned(),
                study: study.definition.name.clone(),
                id: study.id.clone(),
            });
        }
        self.definition.party(name)
    }

    /// The study of the lineage under which `party` releases.
    pub fn study_of(&self, party: &str) -> Result<&Self, Error> {
        self.definition.party(party)?;
        let lists = |study: &&Self| study.own_parties().iter().any(|own| own.name == party);
        Ok(self.lineage().find(lists).expect("every party is listed by one study of the lineage"))
    }

    /// μ of each party's release.
    pub fn mu(&self) -> Mu {
        self.seal.mu()
    }

    /// μ² of the releases of `parties` parties together, for a person who is in all of them.
    pub fn joint_mu_squared(&self, parties: usize) -> MuSquared {
        let each = std::iter::repeat_n(self.mu().squared(), parties);
        MuSquared::checked_sum(each).expect("μ² is below 2²⁰ and a study has fewer than 2⁴⁴ parties")
    }

    /// The next stage of the release of `party`, given the noised sums of the stages before it; nothing after the
    /// last one.
    pub fn stage(&self, party: &str, earlier: &[Vec<i64>]) -> Result<Option<Stage>, Error> {
        let study = self.study_of(party)?;
        study.seal.party(party).stage(&study.seal, &study.definition, earlier)
    }

    /// The first stage of the release of `party`.
    pub fn first_stage(&self, party: &str) -> Result<Stage, Error> {
        Ok(self.stage(party, &[])?.expect("a release has a first stage"))
    }

    /// The row norm of `party` and the noise in its mixed rows, in published units: what public facts say of them, or the
    /// largest that they can be.
    pub fn mixed_noise(&self, party: &str) -> Result<(f64, f64), Error> {
        if let Some(plan) = self.calibrated(party)? {
            return Ok(plan.largest_noise());
        }
        let stage = self.first_stage(party)?;
        let norm_squared = stage.encoder.ball().map_or(0, Ball::norm_squared);
        Ok(((norm_squared as f64).sqrt() / f64::from(Q), stage.noise_level()))
    }

    /// How accurate regressions will be, from public facts only.
    pub fn prospect(&self) -> Result<Prospect, Error> {
        let parties = self.definition.parties();
        let plans =
            parties.iter().map(|party| self.calibrated(party.name())).collect::<Result<Vec<_>, _>>()?;
        let plans: Option<Vec<&PartyPlan>> = plans.into_iter().collect();
        if let Some(plans) = plans {
            let layouts: Vec<Layout> = plans.iter().map(|plan| plan.layout().clone()).collect();
            return Ok(Prospect::calibrated(plans[0].plan(), &layouts));
        }
        let noise = parties.iter().map(|party| Ok((party.width(), self.mixed_noise(party.name())?.1)));
        let noise = noise.collect::<Result<Vec<_>, Error>>()?;
        Ok(Prospect::mixed(self.definition.rows(), self.seal.k(), &noise))
    }

    /// The smallest number of subjects at which a calibrated study of these columns at this privacy becomes useful;
    /// not known for other methods, or where k is given.
    pub fn smallest_useful_rows(&self) -> Option<u64> {
        if self.definition.method != Method::Calibrated || self.origin().definition.k.is_some() {
            return None;
        }
        let layout = |party: &Party| Layout::new(party.columns.iter().map(Column::encoder).collect());
        let layouts: Vec<Layout> = self.definition.parties.iter().map(layout).collect();
        smallest_useful_rows(self.mu(), &layouts)
    }

    /// The same study with another number of subjects, which makes it another study: for simulations.
    pub fn with_rows(&self, rows: u64) -> Result<Self, Error> {
        if let Some(base) = self.base() {
            return self.onto(base.with_rows(rows)?);
        }
        let definition = Definition { rows, ..self.definition.clone() };
        definition.check()?;
        let seal = Seal::compute(&definition, self.seal.key().clone())?;
        Ok(Self::assemble(definition, seal, None))
    }

    /// The same study under another mixing key, which makes it another study: for simulations.
    pub fn with_key(&self, key: MixingKey) -> Result<Self, Error> {
        if let Some(base) = self.base() {
            return self.onto(base.with_key(key)?);
        }
        Ok(Self::assemble(self.definition.clone(), Seal::compute(&self.definition, key)?, None))
    }

    /// What public facts determine for the release of `party`, if the method is calibrated.
    pub fn calibrated(&self, party: &str) -> Result<Option<&PartyPlan>, Error> {
        Ok(self.study_of(party)?.seal.party(party).calibrated())
    }
}
