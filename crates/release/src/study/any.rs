//! Studies of which kind shows in their text only: the one reader of the command, the hub and
//! Python.

use std::path::Path;

use potluck_core::mixing::MixingKey;

use super::document::Source;
use super::{Definition, Draft, Extension, Study, read_text};
use crate::Error;

/// A checked study that is not sealed yet.
#[derive(Clone, Debug)]
pub enum Unsealed {
    /// It extends no other.
    Draft(Box<Draft>),
    /// It extends a sealed one.
    Extension(Box<Extension>),
}

impl Unsealed {
    /// Reads and checks an unsealed study file, as an extension of `base` if that is given.
    pub fn load(path: &Path, base: Option<&Study>) -> Result<Self, Error> {
        Self::from_source(&Source::from_toml(&read_text(path)?)?, base)
    }

    /// Checks an unsealed study that was put together in a program, as an extension of `base` if
    /// that is given: the tables and arrays of its TOML form, as JSON.
    pub fn from_json(value: &serde_json::Value, base: Option<&Study>) -> Result<Self, Error> {
        Self::from_source(&Source::from_json(value), base)
    }

    fn from_source(source: &Source, base: Option<&Study>) -> Result<Self, Error> {
        Ok(match base {
            None => Self::Draft(Box::new(Draft::from_source(source)?)),
            Some(base) => Self::Extension(Box::new(Extension::from_source(source, base)?)),
        })
    }

    /// What the study says.
    pub fn definition(&self) -> &Definition {
        match self {
            Self::Draft(draft) => draft.definition(),
            Self::Extension(extension) => extension.definition(),
        }
    }

    /// The study as people wrote it.
    pub fn text(&self) -> &str {
        match self {
            Self::Draft(draft) => draft.text(),
            Self::Extension(extension) => extension.text(),
        }
    }

    /// The sealed study and its text. Only a study that extends no other needs a key.
    pub fn seal<E: From<Error>>(
        &self,
        key: impl FnOnce() -> Result<MixingKey, E>,
    ) -> Result<(Study, String), E> {
        let study = match self {
            Self::Draft(draft) => draft.seal(key()?)?,
            Self::Extension(extension) => extension.seal()?,
        };
        let text = study.sealed_text(self.text());
        Ok((study, text))
    }

    /// The study with all the numbers that it would be sealed with, for planning: none of them
    /// depends on the key.
    pub fn preview(&self) -> Result<Study, Error> {
        match self {
            Self::Draft(draft) => draft.preview(),
            Self::Extension(extension) => extension.seal(),
        }
    }
}

/// A study, sealed or not.
#[derive(Clone, Debug)]
pub enum AnyStudy {
    /// It is not sealed yet.
    Unsealed(Unsealed),
    /// It is sealed.
    Sealed {
        /// The study.
        study: Box<Study>,
        /// The study as people wrote it, with the seal behind it.
        text: String,
    },
}

impl AnyStudy {
    /// Reads a study: checks it, and verifies its seal if it has one. One that is not sealed and
    /// extends another needs that one as `base`.
    pub fn parse(text: &str, base: Option<&Study>) -> Result<Self, Error> {
        Self::from_source(&Source::from_toml(text)?, base)
    }

    /// Reads a study file as [`Self::parse`] reads its text.
    pub fn load(path: &Path, base: Option<&Study>) -> Result<Self, Error> {
        Self::parse(&read_text(path)?, base)
    }

    /// Reads a study as [`Self::parse`] does; `find` is asked for the study that an unsealed one
    /// extends.
    pub fn parse_with(text: &str, find: impl FnOnce(&str) -> Option<Study>) -> Result<Self, Error> {
        let source = Source::from_toml(text)?;
        let base = if source.is_sealed() { None } else { source.document.extends().and_then(find) };
        Self::from_source(&source, base.as_ref())
    }

    fn from_source(source: &Source, base: Option<&Study>) -> Result<Self, Error> {
        if !source.is_sealed() {
            return Ok(Self::Unsealed(Unsealed::from_source(source, base)?));
        }
        let study = Box::new(Study::from_source(source)?);
        if base.is_some() {
            Err(Error::BaseNeedless)
        } else {
            Ok(Self::Sealed { study, text: source.text() })
        }
    }

    /// What the study says.
    pub fn definition(&self) -> &Definition {
        match self {
            Self::Unsealed(unsealed) => unsealed.definition(),
            Self::Sealed { study, .. } => study.definition(),
        }
    }

    /// The study as people wrote it.
    pub fn text(&self) -> &str {
        match self {
            Self::Unsealed(unsealed) => unsealed.text(),
            Self::Sealed { text, .. } => text,
        }
    }

    /// The sealed study, if it is sealed.
    pub fn sealed(&self) -> Result<&Study, Error> {
        match self {
            Self::Unsealed(_) => Err(Error::NotSealed),
            Self::Sealed { study, .. } => Ok(study),
        }
    }

    /// The study with all its numbers, those that it would be sealed with if it is not, and whether
    /// it is sealed.
    pub fn numbers(&self) -> Result<(Study, bool), Error> {
        match self {
            Self::Unsealed(unsealed) => Ok((unsealed.preview()?, false)),
            Self::Sealed { study, .. } => Ok(((**study).clone(), true)),
        }
    }
}
