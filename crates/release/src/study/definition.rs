//! What a study says once it is checked: parties, their columns, and the settings of the whole.

use std::collections::HashSet;

use potluck_core::accounting::{Delta, Epsilon};
use potluck_core::encoding::{Ball, Bounds, Encoder, LevelCount};
use potluck_core::mixing::Mixing;
use serde::{Deserialize, Serialize};

use super::checks;
use super::reader::{FromNode, Node, Reader};
use crate::Error;
use crate::place::Place;
use crate::remedy::Shape;

/// Text that stands for a missing value, in files that hold nothing but text; a study may say
/// otherwise.
pub const MISSING_TOKENS: [&str; 6] = ["", "NA", "NaN", "nan", "null", "NULL"];

/// Declares a setting that is one of a few words.
macro_rules! setting {
    ($(#[$doc:meta])* $name:ident { $($(#[$of_value:meta])* $value:ident = $word:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
        pub enum $name { $($(#[$of_value])* #[serde(rename = $word)] $value,)* }

        impl $name {
            /// How it is written.
            pub const fn word(self) -> &'static str {
                match self { $(Self::$value => $word,)* }
            }
        }

        impl FromNode for $name {
            const SHAPE: Shape = Shape::Word(&[$($word),*]);

            fn from_node(node: &Node, reader: &mut Reader) -> Option<Self> {
                match String::from_node(node, reader)?.as_str() {
                    $($word => Some(Self::$value),)*
                    _ => None,
                }
            }
        }
    };
}

setting! {
    /// What identifies a subject, and so its column of the mixing matrix.
    IdKind {
        /// Whole numbers in plain decimal.
        Integer = "integer",
        /// Text as it stands: no trimming, no normalisation.
        Text = "text",
        /// The position in the table, from 0; row order is public.
        Row = "row",
    }
}

setting! {
    /// How a party releases its columns.
    Method {
        /// Columns standardised privately, local moments, then random mixing with less noise.
        Calibrated = "calibrated",
        /// Random mixing, then the Gaussian mechanism (the paper's RMGM).
        Rmgm = "rmgm",
        /// The Gaussian mechanism on every row (the paper's DGM and BGM).
        Dgm = "dgm",
    }
}

setting! {
    /// Which matrix mixes the subjects.
    MixingKind {
        /// One sign a subject.
        Sparse = "sparse",
        /// k signs a subject.
        Bernoulli = "bernoulli",
        /// No mixing.
        Identity = "identity",
    }
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

setting! {
    /// A named set of defaults.
    Preset {
        /// As the paper does it: classical calibration, and the same row norm √d_max for every
        /// party.
        Paper = "paper",
    }
}

setting! {
    /// How (ε, δ) becomes μ.
    Calibration {
        /// The exact curve of the Gaussian mechanism.
        Analytic = "analytic",
        /// σ/Δ = √(2 ln(1.25/δ))/ε, only for ε ≤ 1.
        Classical = "classical",
    }
}

setting! {
    /// What happens to a missing value.
    Missing {
        /// It is encoded as 0: the middle of the bounds, or no level.
        Midpoint = "midpoint",
        /// The table is refused.
        Error = "error",
    }
}

setting! {
    /// What happens to a value that is not among the levels.
    Unknown {
        /// It counts as missing.
        Missing = "missing",
        /// It becomes the level `other`.
        Other = "other",
        /// The table is refused.
        Error = "error",
    }
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
    pub(super) name: String,
    pub(super) domain: Domain,
    pub(super) missing: Missing,
    pub(super) unit: Option<String>,
    pub(super) description: Option<String>,
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

    /// Its name and the encoded ones, each once.
    pub(super) fn all_names(&self) -> HashSet<String> {
        std::iter::once(self.name.clone()).chain(self.encoded_names()).collect()
    }
}

/// One organisation and its columns.
#[derive(Clone, Debug, PartialEq)]
pub struct Party {
    pub(super) name: String,
    pub(super) clip_norm: Option<f64>,
    pub(super) columns: Vec<Column>,
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
    pub(super) name: String,
    pub(super) rows: u64,
    pub(super) id: IdKind,
    pub(super) preset: Option<Preset>,
    pub(super) method: Method,
    pub(super) mixing: MixingKind,
    pub(super) k: Option<u64>,
    pub(super) missing_tokens: Vec<String>,
    pub(super) epsilon: Epsilon,
    pub(super) delta: Delta,
    pub(super) calibration: Calibration,
    pub(super) extends: Option<String>,
    /// Those of the study that it extends first.
    pub(super) parties: Vec<Party>,
    /// How many parties belong to the study that it extends.
    pub(super) inherited: usize,
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
    pub(super) fn own_parties(&self) -> &[Party] {
        &self.parties[self.inherited..]
    }

    /// Where the study lists a party of its own.
    pub(super) fn place_of(&self, party: &str) -> Place {
        let at = self.own_parties().iter().position(|own| own.name == party);
        Place::party(at.expect("it is a party of the study itself"), Some(party))
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

    /// The ball that bounds a subject's encoded row at `party`.
    pub(super) fn ball(&self, party: &Party) -> Ball {
        checks::ball(self.preset, &self.parties, party).expect("checked when the study was read")
    }
}
