//! Where in a study something is wrong.

use std::fmt;

/// A key of a study file that is about the whole study.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// Version of the file.
    Format,
    /// The study's name.
    Name,
    /// Number of subjects.
    Rows,
    /// What identifies a subject.
    Id,
    /// How parties release.
    Method,
    /// How rows are mixed.
    Mixing,
    /// Number of released rows.
    K,
    /// Settings of a publication.
    Preset,
    /// Text that stands for a missing value.
    MissingTokens,
    /// The study that is extended.
    Extends,
    /// ε.
    Epsilon,
    /// δ.
    Delta,
    /// How noise follows from ε and δ.
    Calibration,
    /// The parties as a whole.
    Parties,
}

impl Key {
    /// How it is written, without its section.
    pub fn name(self) -> &'static str {
        match self {
            Self::Format => "format",
            Self::Name => "name",
            Self::Rows => "rows",
            Self::Id => "id",
            Self::Method => "method",
            Self::Mixing => "mixing",
            Self::K => "k",
            Self::Preset => "preset",
            Self::MissingTokens => "missing_tokens",
            Self::Extends => "extends",
            Self::Epsilon => "epsilon",
            Self::Delta => "delta",
            Self::Calibration => "calibration",
            Self::Parties => "party",
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let section = match self {
            Self::Format | Self::Parties => "",
            Self::Epsilon | Self::Delta | Self::Calibration => "privacy.",
            _ => "study.",
        };
        write!(f, "{section}{}", self.name())
    }
}

/// A place in a study.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A key that is about the whole study.
    Key(Key),
    /// A party.
    Party(String),
    /// The clip norm of a party.
    ClipNorm(String),
    /// A column.
    Column {
        /// Its party.
        party: String,
        /// Its name.
        column: String,
    },
}

impl Place {
    pub(crate) fn party(party: &str) -> Self {
        Self::Party(party.to_owned())
    }

    pub(crate) fn clip_norm(party: &str) -> Self {
        Self::ClipNorm(party.to_owned())
    }

    pub(crate) fn column(party: &str, column: &str) -> Self {
        Self::Column { party: party.to_owned(), column: column.to_owned() }
    }
}

impl From<Key> for Place {
    fn from(key: Key) -> Self {
        Self::Key(key)
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Key(key) => key.fmt(f),
            Self::Party(party) => write!(f, "party {party:?}"),
            Self::ClipNorm(party) => write!(f, "party {party:?}: clip_norm"),
            Self::Column { party, column } => write!(f, "party {party:?}, column {column:?}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_read_as_in_the_file() {
        for (place, text) in [
            (Key::Format.into(), "format"),
            (Key::MissingTokens.into(), "study.missing_tokens"),
            (Key::Epsilon.into(), "privacy.epsilon"),
            (Key::Parties.into(), "party"),
            (Place::party("north"), "party \"north\""),
            (Place::clip_norm("north"), "party \"north\": clip_norm"),
            (Place::column("north", "age"), "party \"north\", column \"age\""),
        ] {
            assert_eq!(place.to_string(), text);
        }
    }
}
