//! Why a table is refused for what stands in it.
//!
//! Such a refusal tells something about the data to everyone who learns of it, and nothing is
//! charged for it. So each one is recorded in the ledger, by kind alone (docs/PRIVACY.md#refusals).

/// The kind of a refusal that depends on the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Refusal {
    /// There are more or fewer rows than the study says.
    Rows,
    /// An id is missing, or is not written as the study's ids are.
    Id,
    /// An id stands in several rows.
    DuplicateId,
    /// There is text where a number should be.
    Number,
    /// A value is missing or not among the levels, and the study refuses that.
    Value,
    /// The values of a column have a type that the study's column cannot have.
    Type,
    /// A line of a file is not CSV, or not text.
    Line,
    /// Most values of a column are missing, outside of its bounds or none of its levels.
    LostValues,
}

impl Refusal {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Rows,
        Self::Id,
        Self::DuplicateId,
        Self::Number,
        Self::Value,
        Self::Type,
        Self::Line,
        Self::LostValues,
    ];

    /// Its name in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rows => "rows",
            Self::Id => "id",
            Self::DuplicateId => "duplicate-id",
            Self::Number => "number",
            Self::Value => "value",
            Self::Type => "type",
            Self::Line => "line",
            Self::LostValues => "lost-values",
        }
    }

    /// It in words, for people.
    pub fn in_words(self) -> &'static str {
        match self {
            Self::Rows => "number of rows",
            Self::Id => "missing or ill-written id",
            Self::DuplicateId => "duplicate id",
            Self::Number => "text where a number should be",
            Self::Value => "missing value or unknown level",
            Self::Type => "type of a column",
            Self::Line => "line that cannot be read",
            Self::LostValues => "most values of a column missing or out of range",
        }
    }

    pub(crate) fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|refusal| refusal.name() == name)
    }
}
