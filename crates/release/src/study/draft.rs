//! Drafts: studies that are checked and not sealed yet.

use potluck_core::mixing::MixingKey;

use super::document::Source;
use super::{Definition, Seal, Study};
use crate::Error;

/// A checked study that is not sealed yet and extends no other; one that does is an
/// [`Extension`](super::Extension).
#[derive(Clone, Debug)]
pub struct Draft {
    definition: Definition,
    text: String,
}

impl Draft {
    /// Reads and checks an unsealed study.
    pub fn parse(text: &str) -> Result<Self, Error> {
        Self::from_source(&Source::from_toml(text)?)
    }

    pub(super) fn from_source(source: &Source) -> Result<Self, Error> {
        if source.is_sealed() {
            return Err(Error::AlreadySealed);
        }
        if let Some(base) = source.document.extends() {
            return Err(Error::BaseMissing { base: base.to_owned() });
        }
        Ok(Self { definition: source.definition(None)?, text: source.text() })
    }

    /// What the study says.
    pub fn definition(&self) -> &Definition {
        &self.definition
    }

    /// The study as people wrote it.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The study with all the numbers that it would be sealed with, for planning: none of them
    /// depends on the key.
    pub fn preview(&self) -> Result<Study, Error> {
        self.seal(MixingKey::new([0; 32]))
    }

    /// Fixes every number that public facts determine. The key is public, but must come from a good
    /// random source.
    pub fn seal(&self, key: MixingKey) -> Result<Study, Error> {
        let seal = Seal::compute(&self.definition, key)?;
        Ok(Study::assemble(self.definition.clone(), seal, None))
    }

    /// The text of the sealed study: the draft as people wrote it, with the seal behind it.
    pub fn sealed_text(&self, study: &Study) -> String {
        study.sealed_text(&self.text)
    }
}
