//! What a study says once it is checked: parties, their columns, and the settings of the whole.

use std::collections::HashSet;

use potluck_core::accounting::{Delta, Epsilon};
use potluck_core::calibrated::{Declared, Layout};
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

            /// The setting that is written like this.
            pub fn from_word(word: &str) -> Option<Self> {
                match word {
                    $($word => Some(Self::$value),)*
                    _ => None,
                }
            }
        }

        impl FromNode for $name {
            const SHAPE: Shape = Shape::Word(&[$($word),*]);

            fn from_node(node: &Node, reader: &mut Reader) -> Option<Self> {
                Self::from_word(&String::from_node(node, reader)?)
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
    /// What all parties do to ids before they are hashed.
    IdRule {
        /// Blanks (ASCII) are taken off both ends.
        Trim = "trim",
        /// A to Z become a to z.
        Lowercase = "lowercase",
        /// Zeros that begin a run of digits are taken off.
        StripZeros = "strip-zeros",
        /// All but ASCII letters and digits is dropped.
        Alphanumeric = "alphanumeric",
        /// Dates are written YYYY-MM-DD.
        Date = "date",
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
        /// In format 1: it is encoded as 0: the middle of the bounds, or no level.
        Midpoint = "midpoint",
        /// In format 2: how many are there is published, and fits allow for it.
        Counted = "counted",
        /// In format 2: the column is declared never to miss. A value that is missing nevertheless
        /// counts as there, in the middle of the column.
        Never = "never",
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

/// The format of a study and of the releases under it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// All parties hold the same subjects, whose number is public.
    One,
    /// Each party holds its own subjects, about so many; presence is published.
    Two,
}

impl Format {
    /// The newest one.
    pub const NEWEST: Self = Self::Two;
    /// The one that new studies are written in, where their method has it.
    pub const NEW: Self = Self::One;

    /// The format to write a new study in that says this of its method, preset and ids.
    pub fn of_new(method: Option<&str>, preset: Option<&str>, id: &str) -> Self {
        let calibrated = method.is_none_or(|method| method == Method::Calibrated.word());
        if calibrated && preset.is_none() && id != IdKind::Row.word() { Self::NEW } else { Self::One }
    }

    /// The format of this number, if there is one.
    pub fn from_number(number: u64) -> Option<Self> {
        match number {
            1 => Some(Self::One),
            2 => Some(Self::Two),
            _ => None,
        }
    }

    /// Its number, as files have it.
    pub fn number(self) -> u32 {
        match self {
            Self::One => 1,
            Self::Two => 2,
        }
    }
}

/// How many rows the table of a party may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableRows {
    /// Exactly so many.
    Exactly(u64),
    /// About so many: at most [`LARGER`] times as many.
    About(u64),
}

/// How many times as many rows as a study says about a party its table may have.
///
/// # Privacy
/// Sums are checked with a quarter of the range (docs/PRIVACY.md#about-so-many-rows).
pub const LARGER: u64 = 4;

impl TableRows {
    /// The most that there may be.
    pub fn most(self) -> u64 {
        match self {
            Self::Exactly(rows) => rows,
            Self::About(rows) => LARGER.saturating_mul(rows),
        }
    }

    /// The fewest that there may be.
    pub fn fewest(self) -> u64 {
        match self {
            Self::Exactly(rows) => rows,
            Self::About(_) => 0,
        }
    }

    /// How many there are, exactly or about.
    pub fn expected(self) -> u64 {
        match self {
            Self::Exactly(rows) | Self::About(rows) => rows,
        }
    }
}

/// What is declared of the people whom two parties share: a share of those of the smaller one.
#[derive(Clone, Debug, PartialEq)]
pub struct Overlap {
    pub(super) parties: [String; 2],
    pub(super) share: [f64; 2],
}

impl Overlap {
    /// The parties.
    pub fn parties(&self) -> [&str; 2] {
        self.parties.each_ref().map(String::as_str)
    }

    /// The least and the largest share that is possible.
    pub fn share(&self) -> [f64; 2] {
        self.share
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
    pub(super) typical: Option<f64>,
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

    /// A value that its numbers are known to be near, in format 2.
    pub fn typical(&self) -> Option<f64> {
        self.typical
    }

    /// Whether its values may be missing in a table that is not refused, and how many are there is
    /// told: in format 2.
    pub fn may_miss(&self) -> bool {
        self.missing == Missing::Counted
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
    /// Nᵢ, if it says so itself.
    pub(super) rows: Option<u64>,
    pub(super) format: Format,
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

    /// How they are laid out in the release of a table of so many rows.
    fn layout(&self, rows: TableRows) -> Layout {
        let encoders = self.columns.iter().map(Column::encoder).collect();
        match rows {
            TableRows::Exactly(_) => Layout::new(encoders),
            TableRows::About(rows) => {
                let declared =
                    |column: &Column| Declared { may_miss: column.may_miss(), typical: column.typical };
                let declared: Vec<Declared> = self.columns.iter().map(declared).collect();
                Layout::of_cohort(encoders, &declared, rows)
            }
        }
    }

    /// Number of encoded columns.
    pub fn width(&self) -> usize {
        self.columns.iter().map(|column| column.encoder().width()).sum()
    }

    /// Names of the encoded columns.
    pub fn encoded_names(&self) -> Vec<String> {
        self.columns.iter().flat_map(Column::encoded_names).collect()
    }

    /// The name of the published column that tells who is there, in format 2. No column of a study
    /// may have it.
    pub fn presence_name(&self) -> Option<String> {
        (self.format == Format::Two).then(|| format!("present@{}", self.name))
    }

    /// Names of the published columns: the encoded ones, then that of presence if there is one.
    pub fn published_names(&self) -> Vec<String> {
        self.encoded_names().into_iter().chain(self.presence_name()).collect()
    }

    /// Number of published columns.
    pub fn published_width(&self) -> usize {
        self.width() + usize::from(self.format == Format::Two)
    }
}

/// The parts of a study that people write, checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Definition {
    pub(super) format: Format,
    pub(super) name: String,
    pub(super) rows: u64,
    pub(super) id: IdKind,
    pub(super) id_columns: Vec<String>,
    pub(super) id_rules: Vec<IdRule>,
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
    /// The share that any two parties have in common, unless it is declared for the two.
    pub(super) overlap: Option<[f64; 2]>,
    pub(super) overlaps: Vec<Overlap>,
}

impl Definition {
    /// The study's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The format of the study and of the releases under it.
    pub fn format(&self) -> Format {
        self.format
    }

    /// n: the public number of subjects; in format 2 about how many there are.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// How many rows the table of a party may have.
    pub fn table_rows(&self, party: &Party) -> TableRows {
        match self.format {
            Format::One => TableRows::Exactly(self.rows),
            Format::Two => TableRows::About(party.rows.unwrap_or(self.rows)),
        }
    }

    /// How the columns of a party are laid out in its release.
    pub fn layout(&self, party: &Party) -> Layout {
        party.layout(self.table_rows(party))
    }

    /// The same of all parties if the study were about so many people, and each party about as much
    /// larger or smaller.
    pub(super) fn layouts_at(&self, rows: u64) -> Vec<Layout> {
        let scaled = |own: u64| {
            let scaled = u128::from(own) * u128::from(rows) / u128::from(self.rows.max(1));
            u64::try_from(scaled).unwrap_or(u64::MAX).max(2)
        };
        let layout = |party: &Party| {
            party.layout(match self.table_rows(party) {
                TableRows::Exactly(_) => TableRows::Exactly(rows),
                TableRows::About(own) => TableRows::About(scaled(own)),
            })
        };
        self.parties.iter().map(layout).collect()
    }

    /// The share of the smaller party's people that two parties are declared to have in common:
    /// from 0 to 1 if nothing is declared, everybody in format 1.
    pub fn overlap(&self, one: &str, other: &str) -> [f64; 2] {
        let both = |overlap: &&Overlap| {
            let [a, b] = overlap.parties();
            (a, b) == (one, other) || (b, a) == (one, other)
        };
        match (self.format, self.overlaps.iter().find(both)) {
            (Format::One, _) => [1.0, 1.0],
            (Format::Two, Some(overlap)) => overlap.share,
            (Format::Two, None) => self.overlap.unwrap_or([0.0, 1.0]),
        }
    }

    /// What identifies a subject.
    pub fn id_kind(&self) -> IdKind {
        self.id
    }

    /// The columns that make up an id in every party's table; empty if each party names its own.
    pub fn id_columns(&self) -> &[String] {
        &self.id_columns
    }

    /// What all parties do to ids, in this order.
    pub fn id_rules(&self) -> &[IdRule] {
        &self.id_rules
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
