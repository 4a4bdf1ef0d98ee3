//! Extensions: a study to which others add parties later.
//!
//! An extension lists new parties only. It inherits the mixing key, μ, shares and k of the study that it extends, its
//! base, so the rows of all parties are mixed alike and can be joined; and its sealed document holds that of the base,
//! so that nothing else is needed to verify it.

use std::path::Path;

use serde::Serialize;

use super::{Definition, Seal, Study, parse_unsealed, read_text, sealed_text};
use crate::Error;

/// Most studies in a lineage: each document holds the one before it, and readers of TOML and JSON limit how deep.
const LONGEST_LINEAGE: usize = 16;

/// A checked study that is not sealed yet and extends a sealed one.
///
/// It takes its mixing key from its base, so none can be given to it.
#[derive(Clone, Debug)]
pub struct Extension {
    definition: Definition,
    base: Study,
    text: String,
}

impl Extension {
    /// Reads an unsealed study and checks it as an extension of `base`.
    pub fn parse(text: &str, base: &Study) -> Result<Self, Error> {
        let document = parse_unsealed(text)?;
        match &document.study.extends {
            None => {
                return Err(Error::study(
                    "study.extends",
                    format!(
                        "is missing, so the study extends no other; add extends = \"{}\" to [study], or leave --base out",
                        base.id()
                    ),
                ));
            }
            Some(extends) if extends != base.id() => {
                return Err(Error::study(
                    "study.extends",
                    format!(
                        "is {extends:?}, but the study given as its base has the id {}; give the sealed file of the study that is extended, or correct the id",
                        base.id()
                    ),
                ));
            }
            Some(_) => {}
        }
        let definition = Definition::from_document(&document, Some(base))?;
        Ok(Self { definition, base: base.clone(), text: text.to_owned() })
    }

    /// Reads an unsealed study file and checks it as an extension of `base`.
    pub fn load(path: &Path, base: &Study) -> Result<Self, Error> {
        Self::parse(&read_text(path)?, base)
    }

    /// What the study says; its parties are those of the base and the new ones.
    pub fn definition(&self) -> &Definition {
        &self.definition
    }

    /// Fixes the noise of the new parties; everything else is the base's.
    pub fn seal(&self) -> Result<Study, Error> {
        Study::extending(self.definition.clone(), self.base.clone())
    }

    /// The text of the sealed study: the extension as people wrote it, with the seal and the base behind it.
    pub fn sealed_text(&self, study: &Study) -> String {
        sealed_text(&self.text, study)
    }
}

impl Definition {
    /// Whether the new parties can release under the key, μ, shares and k of `base`.
    pub(super) fn check_base(&self, base: &Study) -> Result<(), Error> {
        let of_base = &base.definition;
        must_agree("study.rows", &self.rows, &of_base.rows)?;
        must_agree("study.id", &self.id, &of_base.id)?;
        must_agree("study.preset", &self.preset, &of_base.preset)?;
        must_agree("study.method", &self.method, &of_base.method)?;
        must_agree("study.mixing", &self.mixing, &of_base.mixing)?;
        must_agree("privacy.epsilon", &self.epsilon.get(), &of_base.epsilon.get())?;
        must_agree("privacy.delta", &self.delta.get(), &of_base.delta.get())?;
        must_agree("privacy.calibration", &self.calibration, &of_base.calibration)?;
        let k = base.seal.k();
        if let Some(own) = self.k {
            must_agree("study.k", &own, &k)?;
        }
        let is_known = |name: &str| of_base.parties.iter().any(|party| party.name == name);
        if let Some(party) = self.own_parties().iter().find(|party| is_known(&party.name)) {
            return Err(Error::study(
                format!("party {:?}", party.name),
                "is a party of the study that this one extends; list new parties only, and give one that brings more columns another name",
            ));
        }
        if self.width() as u64 > k {
            return Err(Error::study(
                "party",
                format!(
                    "with those of the study that this one extends there are {} encoded columns, and its k = {k} released rows cannot tell so many apart; bring fewer columns, or agree on a new study",
                    self.width()
                ),
            ));
        }
        if base.lineage().count() >= LONGEST_LINEAGE {
            return Err(Error::study(
                "study.extends",
                format!(
                    "a study can be extended {} times in a row, and this one has been; agree on a new study",
                    LONGEST_LINEAGE - 1
                ),
            ));
        }
        Ok(())
    }
}

/// Refuses a setting that differs from that of the study that is extended.
fn must_agree<T: PartialEq + Serialize>(place: &str, own: &T, of_base: &T) -> Result<(), Error> {
    if own == of_base {
        return Ok(());
    }
    let written = |value: &T| serde_json::to_value(value).ok().filter(|value| !value.is_null());
    let name = place.rsplit('.').next().unwrap_or(place);
    let is = written(own).map_or_else(|| "is not given".to_owned(), |own| format!("is {own}"));
    let (was, remedy) = match written(of_base) {
        Some(value) => (format!("it is {value}"), format!("set {name} = {value}")),
        None => ("it is not given".to_owned(), format!("leave {name} out")),
    };
    Err(Error::study(
        place,
        format!(
            "{is}, but in the study that this one extends {was}; the releases would not go together: {remedy}, or agree on a new study"
        ),
    ))
}

impl Study {
    /// The sealed study of this definition, which extends `base` and has been checked against it.
    fn extending(definition: Definition, base: Self) -> Result<Self, Error> {
        let seal = Seal::inherit(&definition, &base.seal)?;
        Ok(Self::assemble(definition, seal, Some(Box::new(base))))
    }

    /// The same new parties as an extension of another base with the same parties.
    pub(super) fn onto(&self, base: Self) -> Result<Self, Error> {
        let definition = Definition {
            rows: base.definition.rows,
            k: self.definition.k.map(|_| base.seal.k()),
            extends: Some(base.id.clone()),
            ..self.definition.clone()
        };
        definition.check_base(&base)?;
        definition.check()?;
        Self::extending(definition, base)
    }
}
