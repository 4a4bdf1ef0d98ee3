//! Sealed studies: what parties release under.

use std::path::Path;

use potluck_core::accounting::{Mu, MuSquared};
use potluck_core::calibrated::{Layout, PartyPlan, Plan};
use potluck_core::encoding::{Ball, Q};
use potluck_core::mixing::MixingKey;
use potluck_core::planning::forecast::{Crowds, Released};
use potluck_core::planning::{Prospect, smallest_useful_rows};
use potluck_core::stage::Stage;
use serde::Serialize;

use super::document::{Document, SealedSection, Source};
use super::{Definition, Method, Party, Seal, checks, read_text};
use crate::place::{Key, Place};
use crate::{Error, canonical};

/// A sealed study whose numbers have been recomputed and agree.
#[derive(Clone, Debug, PartialEq)]
pub struct Study {
    definition: Definition,
    seal: Seal,
    id: String,
    base: Option<Box<Study>>,
}

impl Study {
    /// Reads a sealed study and verifies its seal.
    pub fn parse(text: &str) -> Result<Self, Error> {
        Self::from_source(&Source::from_toml(text)?)
    }

    /// Reads a sealed study file and verifies its seal.
    pub fn load(path: &Path) -> Result<Self, Error> {
        Self::parse(&read_text(path)?)
    }

    /// Reads the study out of a manifest and verifies its seal.
    pub(crate) fn from_json(value: &serde_json::Value) -> Result<Self, Error> {
        Self::from_source(&Source::from_json(value))
    }

    pub(super) fn from_source(source: &Source) -> Result<Self, Error> {
        if !source.is_sealed() && source.document.extends().is_none() {
            source.definition(None)?;
        }
        Self::from_document(source.sound()?).map_err(|error| source.locate(error))
    }

    fn from_document(document: &Document) -> Result<Self, Error> {
        let wrong = |what: &str| Error::Seal { what: what.to_owned() };
        let section = document.sealed.as_ref().ok_or(Error::NotSealed)?;
        let base = match (document.extends(), section.base.as_deref()) {
            (None, None) => None,
            (None, Some(_)) => return Err(wrong("base")),
            (Some(_), None) => return Err(wrong("base, which is missing,")),
            (Some(extends), Some(base)) => {
                let base = Self::from_document(base).map_err(of_base)?;
                if base.id() != extends {
                    return Err(wrong("base"));
                }
                Some(base)
            }
        };
        let definition = checks::checked(document, base.as_ref())?;
        let seal = Seal::verify(&definition, section, base.as_ref().map(Self::seal))?;
        let study = Self::assemble(definition, seal, base.map(Box::new));
        if section.id.as_deref() != Some(study.id()) {
            let older = document.as_version_0_1_read_it();
            return older.map_or_else(|| Err(wrong("its id")), |older| Self::from_document(&older));
        }
        Ok(study)
    }

    pub(super) fn assemble(definition: Definition, seal: Seal, base: Option<Box<Self>>) -> Self {
        let mut study = Self { definition, seal, id: String::new(), base };
        study.id = canonical::sha256_hex(&canonical::json(&study.document()));
        study
    }

    /// The whole document; the id is the hash of it without the id.
    pub(super) fn document(&self) -> Document {
        let mut sealed = self.seal.to_section();
        sealed.id = (!self.id.is_empty()).then(|| self.id.clone());
        sealed.base = self.base().map(|base| Box::new(base.document()));
        Document { sealed: Some(sealed), ..self.definition.to_document() }
    }

    /// The study as it stands in manifests.
    pub fn to_json(&self) -> serde_json::Value {
        serde_json::to_value(self.document()).expect("a study is plain data")
    }

    /// The study as a file of its own, as far as the document goes: what people wrote beside it is
    /// not known here.
    pub fn to_toml(&self) -> String {
        toml::to_string(&self.document()).expect("a study is plain data")
    }

    /// The text of the sealed study: the draft as people wrote it, with the seal behind it.
    pub(super) fn sealed_text(&self, draft: &str) -> String {
        #[derive(Serialize)]
        struct Section {
            sealed: Option<SealedSection>,
        }
        let section = Section { sealed: self.document().sealed };
        let section = toml::to_string(&section).expect("a seal is plain data");
        format!("{}\n# Written by `potluck study seal`; do not edit.\n{section}", draft.trim_end())
    }

    /// SHA-256 of the study's canonical JSON.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// What people wrote.
    pub fn definition(&self) -> &Definition {
        &self.definition
    }

    /// What follows from it.
    pub fn seal(&self) -> &Seal {
        &self.seal
    }

    /// The study that it extends, if it extends one.
    pub fn base(&self) -> Option<&Self> {
        self.base.as_deref()
    }

    /// This study and those that it extends, one after the other, the first of them last.
    pub fn lineage(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |study| study.base())
    }

    /// The study that its lineage began with; itself if it extends none.
    pub fn origin(&self) -> &Self {
        self.lineage().last().expect("a lineage has at least the study itself")
    }

    /// The parties that release under this very study, not under one that it extends.
    pub fn own_parties(&self) -> &[Party] {
        self.definition.own_parties()
    }

    /// The party of this name, if it releases under this very study.
    pub fn own_party(&self, name: &str) -> Result<&Party, Error> {
        let study = self.study_of(name)?;
        if study.id != self.id {
            return Err(Error::PartyOfBase {
                party: name.to_owned(),
                study: study.definition.name.clone(),
                id: study.id.clone(),
            });
        }
        self.definition.party(name)
    }

    /// The study of the lineage under which `party` releases.
    pub fn study_of(&self, party: &str) -> Result<&Self, Error> {
        self.definition.party(party)?;
        let lists = |study: &&Self| study.own_parties().iter().any(|own| own.name == party);
        Ok(self.lineage().find(lists).expect("every party is listed by one study of the lineage"))
    }

    /// μ of each party's release.
    pub fn mu(&self) -> Mu {
        self.seal.mu()
    }

    /// μ² of the releases of `parties` parties together, for a person who is in all of them.
    pub fn joint_mu_squared(&self, parties: usize) -> MuSquared {
        let each = std::iter::repeat_n(self.mu().squared(), parties);
        MuSquared::checked_sum(each).expect("μ² is below 2²⁰ and a study has fewer than 2⁴⁴ parties")
    }

    /// The next stage of the release of `party`, given the noised sums of the stages before it;
    /// nothing after the last one.
    pub fn stage(&self, party: &str, earlier: &[Vec<i64>]) -> Result<Option<Stage>, Error> {
        let study = self.study_of(party)?;
        study.seal.party(party).stage(&study.seal, &study.definition, earlier)
    }

    /// The first stage of the release of `party`.
    pub fn first_stage(&self, party: &str) -> Result<Stage, Error> {
        Ok(self.stage(party, &[])?.expect("a release has a first stage"))
    }

    /// The row norm of `party` and the noise in its mixed rows, in published units: what public
    /// facts say of them, or the largest that they can be.
    pub fn mixed_noise(&self, party: &str) -> Result<(f64, f64), Error> {
        if let Some(plan) = self.calibrated(party)? {
            return Ok(plan.largest_noise());
        }
        let stage = self.first_stage(party)?;
        let norm_squared = stage.encoder.ball().map_or(0, Ball::norm_squared);
        Ok(((norm_squared as f64).sqrt() / f64::from(Q), stage.noise_level()))
    }

    /// How accurate regressions will be, from public facts only.
    pub fn prospect(&self) -> Result<Prospect, Error> {
        self.prospect_at(self.usual_overlap())
    }

    /// The share of the smaller one's people that any two parties are taken to have in common, if
    /// nobody says more: the middle of what the study declares, all of them where it declares
    /// nothing.
    pub fn usual_overlap(&self) -> f64 {
        let definition = &self.definition;
        let names: Vec<&str> = definition.parties().iter().map(Party::name).collect();
        let pairs = names
            .iter()
            .enumerate()
            .flat_map(|(at, one)| names[..at].iter().map(move |other| (*one, *other)));
        let shares: Vec<f64> = pairs
            .map(|(one, other)| match definition.overlap(one, other) {
                [least, largest] if least <= 0.0 && largest >= 1.0 => 1.0,
                [least, largest] => f64::midpoint(least, largest),
            })
            .collect();
        if shares.is_empty() { 1.0 } else { shares.iter().sum::<f64>() / shares.len() as f64 }
    }

    /// The same if any two parties have this share of the smaller one's people in common.
    pub fn prospect_at(&self, overlap: f64) -> Result<Prospect, Error> {
        let parties = self.definition.parties();
        let plans =
            parties.iter().map(|party| self.calibrated(party.name())).collect::<Result<Vec<_>, _>>()?;
        let plans: Option<Vec<&PartyPlan>> = plans.into_iter().collect();
        if let Some(plans) = plans {
            let layouts: Vec<Layout> = plans.iter().map(|plan| plan.layout().clone()).collect();
            return Ok(Prospect::calibrated(plans[0].plan(), &layouts).with_overlap(overlap));
        }
        let noise = parties.iter().map(|party| Ok((party.width(), self.mixed_noise(party.name())?.1)));
        let noise = noise.collect::<Result<Vec<_>, Error>>()?;
        Ok(Prospect::mixed(self.definition.rows(), self.seal.k(), &noise))
    }

    /// How its columns are released, as far as standard errors go.
    pub fn released(&self) -> Result<Released, Error> {
        let parties = self.definition.parties();
        let plans = parties.iter().map(|party| self.calibrated(party.name()));
        let plans: Option<Vec<&PartyPlan>> = plans.collect::<Result<Option<Vec<_>>, _>>()?;
        if let Some(plans) = plans {
            let layouts: Vec<Layout> = plans.iter().map(|plan| plan.layout().clone()).collect();
            return Ok(Released::calibrated(plans[0].plan(), &layouts));
        }
        let noise = parties.iter().map(|party| Ok(self.mixed_noise(party.name())?.1));
        let noise = noise.collect::<Result<Vec<_>, Error>>()?;
        Ok(Released::mixed(self.definition.rows(), self.seal.k(), &self.layouts(), &noise))
    }

    /// Its columns released by the method that is made for few people, and by none but noise on
    /// each row: the other ways there are, at the same privacy.
    pub(crate) fn other_ways(&self) -> Vec<Released> {
        let (layouts, rows, mu) = (self.layouts(), self.definition.rows(), self.mu());
        let noise = |layout: &Layout| 2.0 * (layout.effective_width() as f64).sqrt() / mu.to_f64();
        let noise: Vec<f64> = layouts.iter().map(noise).collect();
        let width: usize = layouts.iter().map(Layout::width).sum();
        let fewest = (10.0 * (rows as f64).sqrt() * mu.to_f64()) as u64;
        let mixed = |k: u64| Released::mixed(rows, k, &layouts, &noise);
        let calibrated =
            Plan::new(rows, mu, &layouts, None).map(|plan| Released::calibrated(&plan, &layouts));
        let others = [mixed(fewest.max(3 * width as u64).min(rows)), mixed(rows)];
        calibrated.into_iter().chain(others).collect()
    }

    /// How many people it would take to resolve effects by a calibrated release of these columns at
    /// this privacy; not known for other methods, or where k is given.
    pub(crate) fn crowds(&self) -> Option<Crowds> {
        self.follows_the_rule().then(|| Crowds::new(self.mu(), &self.layouts()))
    }

    fn follows_the_rule(&self) -> bool {
        self.definition.method == Method::Calibrated && self.origin().definition.k.is_none()
    }

    fn layouts(&self) -> Vec<Layout> {
        self.definition.layouts_at(self.definition.rows)
    }

    /// The smallest number of subjects at which a calibrated study of these columns at this privacy
    /// becomes useful; not known for other methods, or where k is given.
    pub fn smallest_useful_rows(&self, overlap: f64) -> Option<u64> {
        if !self.follows_the_rule() {
            return None;
        }
        smallest_useful_rows(self.mu(), |rows| self.definition.layouts_at(rows), overlap)
    }

    /// The same study with another number of subjects, which makes it another study: for
    /// simulations.
    pub fn with_rows(&self, rows: u64) -> Result<Self, Error> {
        if let Some(base) = self.base() {
            return self.onto(base.with_rows(rows)?);
        }
        let definition = Definition { rows, ..self.definition.clone() };
        let definition = checks::checked(&definition.to_document(), None)?;
        let seal = Seal::compute(&definition, self.seal.key().clone())?;
        Ok(Self::assemble(definition, seal, None))
    }

    /// The same study under another mixing key, which makes it another study: for simulations.
    pub fn with_key(&self, key: MixingKey) -> Result<Self, Error> {
        if let Some(base) = self.base() {
            return self.onto(base.with_key(key)?);
        }
        Ok(Self::assemble(self.definition.clone(), Seal::compute(&self.definition, key)?, None))
    }

    /// What public facts determine for the release of `party`, if the method is calibrated.
    pub fn calibrated(&self, party: &str) -> Result<Option<&PartyPlan>, Error> {
        Ok(self.study_of(party)?.seal.party(party).calibrated())
    }
}

/// An error about a study, where that study stands as the base within another.
fn of_base(error: Error) -> Error {
    match error {
        Error::Study(mistakes) => Error::Study(mistakes.within(&Place::from(Key::Sealed).key(Key::Base))),
        other => other,
    }
}
