//! The study as it stands in TOML and JSON: plain data without promises. [`super::Draft`] and
//! [`super::Study`] are what it becomes once it is checked.
//!
//! What could not be read is absent; then there is a mistake that says so, and no study comes of
//! the document.

use std::collections::BTreeMap;

use serde::Serialize;

use super::definition::{
    Calibration, Column, Definition, Domain, IdKind, Method, Missing, MixingKind, Overlap, Party, Preset,
    Unknown,
};
use super::mistakes::Mistakes;
use super::reader::{FromNode, Node, Reader};
use super::{Study, checks};
use crate::Error;
use crate::place::{Key, Place};
use crate::remedy::Shape;

/// Declares a section: its keys with their types, which of them may be left out, and how to read
/// it.
macro_rules! section {
    (
        $(#[$doc:meta])*
        $name:ident = $head:literal {
            $($(#[$field_doc:meta])* $need:ident $field:ident: $kind:ty = $key:ident,)*
        }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, Serialize)]
        pub(super) struct $name {
            $(
                $(#[$field_doc])*
                #[serde(skip_serializing_if = "Option::is_none")]
                pub(super) $field: Option<$kind>,
            )*
        }

        impl FromNode for $name {
            const SHAPE: Shape = Shape::Section($head);

            fn from_node(node: &Node, reader: &mut Reader) -> Option<Self> {
                reader.section(node, |section| Self { $($field: section.$need(Key::$key),)* })
            }
        }
    };
}

section! {
    /// The whole document.
    Document = "sealed.base" {
        optional format: u64 = Format,
        required study: StudySection = Study,
        required privacy: PrivacySection = Privacy,
        required party: Vec<PartySection> = Party,
        optional overlap: Vec<OverlapSection> = Overlap,
        optional sealed: SealedSection = Sealed,
    }
}

section! {
    /// What the study is about.
    StudySection = "study" {
        required name: String = Name,
        required rows: u64 = Rows,
        required id: IdKind = Id,
        optional id_columns: Vec<String> = IdColumns,
        optional id_rules: Vec<String> = IdRules,
        optional preset: Preset = Preset,
        optional method: Method = Method,
        optional mixing: MixingKind = Mixing,
        optional k: u64 = K,
        optional missing_tokens: Vec<String> = MissingTokens,
        optional overlap: ShareRange = Overlap,
        /// The id of the study whose key, k and shares this one inherits.
        optional extends: String = Extends,
    }
}

section! {
    /// What each release promises.
    PrivacySection = "privacy" {
        required epsilon: f64 = Epsilon,
        required delta: f64 = Delta,
        optional calibration: Calibration = Calibration,
    }
}

section! {
    /// Who brings columns.
    PartySection = "party" {
        required name: String = Name,
        optional rows: u64 = Rows,
        optional clip_norm: f64 = ClipNorm,
        optional column: Vec<ColumnSection> = Column,
    }
}

section! {
    /// What is known of the people whom two parties share.
    OverlapSection = "overlap" {
        required parties: Vec<String> = Parties,
        required share: ShareRange = Share,
    }
}

/// A range of shares: the least and the largest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[serde(transparent)]
pub(super) struct ShareRange(pub(super) [f64; 2]);

impl FromNode for ShareRange {
    const SHAPE: Shape = Shape::Share;

    fn from_node(node: &Node, reader: &mut Reader) -> Option<Self> {
        if let Some(word) = String::from_node(node, reader) {
            return (word == "all").then_some(Self([1.0, 1.0]));
        }
        let range = Vec::<f64>::from_node(node, reader)?;
        range.try_into().ok().map(Self)
    }
}

/// A number on a column's scale, which may have been written as a date.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[serde(into = "f64")]
pub(super) struct Bound {
    pub(super) number: f64,
    pub(super) is_date: bool,
}

impl From<Bound> for f64 {
    fn from(bound: Bound) -> Self {
        bound.number
    }
}

impl From<f64> for Bound {
    fn from(number: f64) -> Self {
        Self { number, is_date: false }
    }
}

impl FromNode for Bound {
    const SHAPE: Shape = Shape::Bound;

    fn from_node(node: &Node, reader: &mut Reader) -> Option<Self> {
        match node.day() {
            Some(number) => Some(Self { number, is_date: true }),
            None => f64::from_node(node, reader).map(Self::from),
        }
    }
}

section! {
    /// A column and what its values may be.
    ColumnSection = "party.column" {
        required name: String = Name,
        optional lo: Bound = Lo,
        optional hi: Bound = Hi,
        optional typical: Bound = Typical,
        optional levels: Vec<String> = Levels,
        optional unknown: Unknown = Unknown,
        optional missing: Missing = Missing,
        optional unit: String = Unit,
        optional description: String = Description,
    }
}

section! {
    /// What sealing fixes.
    SealedSection = "sealed" {
        /// The study id; absent while it is computed.
        optional id: String = Id,
        required mixing_key: String = MixingKey,
        required mu: f64 = Mu,
        required shares: Vec<u32> = Shares,
        required k: u64 = K,
        required party: Vec<SealedParty> = Party,
        /// The whole sealed study that this one extends, so that no other file is needed to verify
        /// it.
        optional base: Box<Document> = Base,
    }
}

section! {
    /// What sealing fixes for one party.
    SealedParty = "sealed.party" {
        required name: String = Name,
        /// C: squared radius of the row-norm ball in units of 1/Q²; absent where it follows from
        /// published sums.
        optional norm_squared: u64 = NormSquared,
        /// Noise scales by name, in units of the integer sums.
        required sigma: BTreeMap<String, u64> = Sigma,
    }
}

impl Document {
    /// The id of the study that it says it extends.
    pub(super) fn extends(&self) -> Option<&str> {
        self.study.as_ref()?.extends.as_deref()
    }

    /// The same, where it does not say what happens to unknown levels, with what that meant in
    /// version 0.1: the table is refused. Nothing if it always says so. The id is over what was
    /// meant, so it tells which of the two it was.
    pub(super) fn as_version_0_1_read_it(&self) -> Option<Self> {
        let mut older = self.clone();
        let columns = older.party.iter_mut().flatten().flat_map(|party| party.column.iter_mut().flatten());
        let mut silent =
            columns.filter(|column| column.levels.is_some() && column.unknown.is_none()).peekable();
        silent.peek()?;
        silent.for_each(|column| column.unknown = Some(Unknown::Error));
        Some(older)
    }
}

/// A study as it was written: its document as far as it can be read, and what is wrong with the
/// rest.
pub(super) struct Source {
    tree: Node,
    pub(super) document: Document,
    mistakes: Mistakes,
    text: Option<String>,
}

impl Source {
    pub(super) fn from_toml(text: &str) -> Result<Self, Error> {
        Ok(Self { text: Some(text.to_owned()), ..Self::new(Node::from_toml(text)?) })
    }

    /// A study that was put together in a program: the tables and arrays of its TOML form, as JSON.
    pub(super) fn from_json(value: &serde_json::Value) -> Self {
        Self::new(Node::from_json(value))
    }

    fn new(tree: Node) -> Self {
        let mut reader = Reader::default();
        let document = reader.read(&tree, Place::default()).unwrap_or_default();
        Self { tree, document, mistakes: reader.mistakes, text: None }
    }

    /// Whether it claims to be sealed.
    pub(super) fn is_sealed(&self) -> bool {
        self.tree.get(Key::Sealed.name()).is_some()
    }

    /// The study as people wrote it, or would have.
    pub(super) fn text(&self) -> String {
        let written = || toml::to_string(&self.document).expect("a study is plain data");
        self.text.clone().unwrap_or_else(written)
    }

    /// What it defines, as an extension of `base` if it extends a study, or all that is wrong with
    /// it.
    pub(super) fn definition(&self, base: Option<&Study>) -> Result<Definition, Error> {
        let mut mistakes = self.mistakes.clone();
        let definition = checks::definition(&self.document, base, &mut mistakes);
        definition.ok_or_else(|| self.refused(mistakes))
    }

    /// The document, if all of it could be read.
    pub(super) fn sound(&self) -> Result<&Document, Error> {
        if self.mistakes.is_empty() { Ok(&self.document) } else { Err(self.refused(self.mistakes.clone())) }
    }

    /// An error about this study, with the lines of what is wrong.
    pub(super) fn locate(&self, error: Error) -> Error {
        if let Error::Study(mistakes) = error { self.refused(mistakes) } else { error }
    }

    fn refused(&self, mistakes: Mistakes) -> Error {
        Error::Study(mistakes.located(&self.tree))
    }
}

impl Definition {
    pub(super) fn to_document(&self) -> Document {
        let (epsilon, delta) = (self.epsilon.get(), self.delta.get());
        Document {
            format: Some(self.format.number().into()),
            study: Some(StudySection {
                name: Some(self.name.clone()),
                rows: Some(self.rows),
                id: Some(self.id),
                id_columns: (!self.id_columns.is_empty()).then(|| self.id_columns.clone()),
                id_rules: (!self.id_rules.is_empty())
                    .then(|| self.id_rules.iter().map(|rule| rule.word().to_owned()).collect()),
                preset: self.preset,
                method: Some(self.method),
                mixing: Some(self.mixing),
                k: self.k,
                missing_tokens: Some(self.missing_tokens.clone()),
                overlap: self.overlap.map(ShareRange),
                extends: self.extends.clone(),
            }),
            privacy: Some(PrivacySection {
                epsilon: Some(epsilon),
                delta: Some(delta),
                calibration: Some(self.calibration),
            }),
            party: Some(self.own_parties().iter().map(PartySection::from).collect()),
            overlap: (!self.overlaps.is_empty())
                .then(|| self.overlaps.iter().map(OverlapSection::from).collect()),
            sealed: None,
        }
    }
}

impl From<&Party> for PartySection {
    fn from(party: &Party) -> Self {
        Self {
            name: Some(party.name.clone()),
            rows: party.rows,
            clip_norm: party.clip_norm,
            column: Some(party.columns.iter().map(ColumnSection::from).collect()),
        }
    }
}

impl From<&Overlap> for OverlapSection {
    fn from(overlap: &Overlap) -> Self {
        Self { parties: Some(overlap.parties.to_vec()), share: Some(ShareRange(overlap.share)) }
    }
}

impl From<&Column> for ColumnSection {
    fn from(column: &Column) -> Self {
        let (lo, hi, levels, unknown) = match &column.domain {
            Domain::Numeric(bounds) => (Some(bounds.lo().into()), Some(bounds.hi().into()), None, None),
            Domain::Categorical { levels, unknown } => (None, None, Some(levels.clone()), Some(*unknown)),
        };
        Self {
            name: Some(column.name.clone()),
            lo,
            hi,
            typical: column.typical.map(Bound::from),
            levels,
            unknown,
            missing: Some(column.missing),
            unit: column.unit.clone(),
            description: column.description.clone(),
        }
    }
}
