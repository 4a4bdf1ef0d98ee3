//! Where in a study something is wrong.

use std::fmt;

macro_rules! keys {
    ($($key:ident = $word:literal,)*) => {
        /// A key of a study file (docs/FORMAT.md), in the order of its section.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Key {
            $(#[doc = concat!("`", $word, "`.")] $key,)*
        }

        impl Key {
            /// How it is written.
            pub fn name(self) -> &'static str {
                match self { $(Self::$key => $word,)* }
            }
        }
    };
}

keys! {
    Format = "format",
    Study = "study",
    Privacy = "privacy",
    Name = "name",
    Rows = "rows",
    Id = "id",
    IdColumns = "id_columns",
    IdRules = "id_rules",
    Method = "method",
    Mixing = "mixing",
    MixingKey = "mixing_key",
    Mu = "mu",
    Shares = "shares",
    K = "k",
    Preset = "preset",
    Extends = "extends",
    Overlap = "overlap",
    Parties = "parties",
    Share = "share",
    MissingTokens = "missing_tokens",
    Epsilon = "epsilon",
    Delta = "delta",
    Calibration = "calibration",
    ClipNorm = "clip_norm",
    Lo = "lo",
    Hi = "hi",
    Typical = "typical",
    Levels = "levels",
    Unknown = "unknown",
    Missing = "missing",
    Unit = "unit",
    Description = "description",
    NormSquared = "norm_squared",
    Sigma = "sigma",
    Party = "party",
    Column = "column",
    Sealed = "sealed",
    Base = "base",
}

/// A step from a part of a study to a part of that part.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// A key.
    Key(Key),
    /// Something that is written where a key belongs.
    Other(String),
    /// One of a list.
    Item {
        /// Its position, from 0.
        at: usize,
        /// Its name, if it has one.
        name: Option<String>,
    },
}

impl Step {
    fn key(&self) -> Option<&str> {
        match self {
            Self::Key(key) => Some(key.name()),
            Self::Other(word) => Some(word),
            Self::Item { .. } => None,
        }
    }
}

/// A place in a study: the steps to it. Places are ordered as in a file that has its sections in
/// the usual order.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place(Vec<Step>);

impl Place {
    /// The steps to it.
    pub fn steps(&self) -> &[Step] {
        &self.0
    }

    /// The place as a JSON pointer (RFC 6901).
    pub fn pointer(&self) -> String {
        let step = |step: &Step| match step {
            Step::Item { at, .. } => format!("/{at}"),
            key => format!("/{}", key.key().unwrap_or_default().replace('~', "~0").replace('/', "~1")),
        };
        self.0.iter().map(step).collect()
    }

    /// A key of the section `[study]`.
    pub(crate) fn study(key: Key) -> Self {
        Self::from(Key::Study).key(key)
    }

    /// A key of the section `[privacy]`.
    pub(crate) fn privacy(key: Key) -> Self {
        Self::from(Key::Privacy).key(key)
    }

    /// A party that the study itself lists.
    pub(crate) fn party(at: usize, name: Option<&str>) -> Self {
        Self::from(Key::Party).item(at, name)
    }

    /// A key of this place.
    pub(crate) fn key(&self, key: Key) -> Self {
        self.then(Step::Key(key))
    }

    /// One of the list at this place.
    pub(crate) fn item(&self, at: usize, name: Option<&str>) -> Self {
        let name = name.filter(|name| !name.is_empty()).map(str::to_owned);
        self.then(Step::Item { at, name })
    }

    /// One step on.
    pub(crate) fn then(&self, step: Step) -> Self {
        Self(self.0.iter().cloned().chain([step]).collect())
    }

    /// The same place of a study that stands within another, at `outer`.
    pub(crate) fn within(&self, outer: &Self) -> Self {
        Self([&outer.0[..], &self.0].concat())
    }

    /// Whether this place is `other` or holds it.
    pub(crate) fn holds(&self, other: &Self) -> bool {
        other.0.starts_with(&self.0)
    }
}

impl From<Key> for Place {
    fn from(key: Key) -> Self {
        Self(vec![Step::Key(key)])
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("the study");
        }
        for (position, step) in self.0.iter().enumerate() {
            let before = position.checked_sub(1).map(|before| &self.0[before]);
            let of_list = matches!(self.0.get(position + 1), Some(Step::Item { .. }));
            match (before, step) {
                (_, Step::Item { at, name: None }) => write!(f, " {}", at + 1)?,
                (_, Step::Item { name: Some(name), .. }) => write!(f, " {name:?}")?,
                (None, _) => {}
                (Some(_), _) if of_list => f.write_str(", ")?,
                (Some(Step::Item { .. }), _) => f.write_str(": ")?,
                (Some(_), _) => f.write_str(".")?,
            }
            let plain = |c: char| c.is_alphanumeric() || c == '-' || c == '_';
            match step.key() {
                Some(key) if key.chars().all(plain) => f.write_str(key)?,
                Some(key) => write!(f, "{key:?}")?,
                None => {}
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_read_as_in_the_file() {
        let column = Place::party(0, Some("north")).key(Key::Column).item(1, Some("age"));
        let other = Place::from(Key::Sealed).key(Key::Base).then(Step::Other("a/b \n".to_owned()));
        for (place, text, pointer) in [
            (Key::Format.into(), "format", "/format"),
            (Place::study(Key::MissingTokens), "study.missing_tokens", "/study/missing_tokens"),
            (Place::privacy(Key::Epsilon), "privacy.epsilon", "/privacy/epsilon"),
            (Key::Party.into(), "party", "/party"),
            (Place::party(0, Some("north")), "party \"north\"", "/party/0"),
            (Place::party(1, Some("")).key(Key::ClipNorm), "party 2: clip_norm", "/party/1/clip_norm"),
            (column.key(Key::Lo), "party \"north\", column \"age\": lo", "/party/0/column/1/lo"),
            (other, "sealed.base.\"a/b \\n\"", "/sealed/base/a~1b \n"),
            (Place::default(), "the study", ""),
        ] {
            assert_eq!((place.to_string().as_str(), place.pointer().as_str()), (text, pointer));
        }
    }

    #[test]
    fn places_are_ordered_as_in_a_file() {
        let column = |party: usize, at: usize| Place::party(party, None).key(Key::Column).item(at, None);
        let places = [
            Key::Format.into(),
            Place::study(Key::Rows),
            Place::study(Key::Preset),
            Place::privacy(Key::Delta),
            column(0, 0).key(Key::Hi),
            column(0, 0).then(Step::Other("Hi".to_owned())),
            column(0, 1),
            column(1, 0),
            Key::Sealed.into(),
        ];
        assert!(places.is_sorted());
    }
}
