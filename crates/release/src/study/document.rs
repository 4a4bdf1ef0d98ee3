//! The study as it stands in TOML and JSON: plain data without promises. [`super::Draft`] and
//! [`super::Study`] are what it becomes once it is checked.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Document {
    pub(crate) format: u32,
    pub(crate) study: StudySection,
    pub(crate) privacy: PrivacySection,
    pub(crate) party: Vec<PartySection>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sealed: Option<SealedSection>,
}

impl Document {
    /// The same, where it does not say what happens to unknown levels, with what that meant in version 0.1: the table is
    /// refused. Nothing if it always says so. The id is over what was meant, so it tells which of the two it was.
    pub(super) fn as_version_0_1_read_it(&self) -> Option<Self> {
        let mut older = self.clone();
        let columns = older.party.iter_mut().flat_map(|party| &mut party.column);
        let mut silent =
            columns.filter(|column| column.levels.is_some() && column.unknown.is_none()).peekable();
        silent.peek()?;
        silent.for_each(|column| column.unknown = Some(super::Unknown::Error));
        Some(older)
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StudySection {
    pub(crate) name: String,
    pub(crate) rows: u64,
    pub(crate) id: super::IdKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) preset: Option<super::Preset>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) method: Option<super::Method>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) mixing: Option<super::MixingKind>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) k: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) missing_tokens: Option<Vec<String>>,
    /// The id of the study whose key, k and shares this one inherits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) extends: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PrivacySection {
    pub(crate) epsilon: f64,
    pub(crate) delta: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) calibration: Option<super::Calibration>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PartySection {
    pub(crate) name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) clip_norm: Option<f64>,
    #[serde(default)]
    pub(crate) column: Vec<ColumnSection>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ColumnSection {
    pub(crate) name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) lo: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) hi: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) levels: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) unknown: Option<super::Unknown>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) missing: Option<super::Missing>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) unit: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) description: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SealedSection {
    /// The study id; absent while it is computed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) id: Option<String>,
    pub(crate) mixing_key: String,
    pub(crate) mu: f64,
    pub(crate) shares: Vec<u32>,
    pub(crate) k: u64,
    pub(crate) party: Vec<SealedParty>,
    /// The whole sealed study that this one extends, so that no other file is needed to verify it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) base: Option<Box<Document>>,
}

/// What sealing fixes for one party.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SealedParty {
    pub(crate) name: String,
    /// C: squared radius of the row-norm ball in units of 1/Q²; absent where it follows from published sums.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) norm_squared: Option<u64>,
    /// Noise scales by name, in units of the integer sums.
    pub(crate) sigma: BTreeMap<String, u64>,
}
