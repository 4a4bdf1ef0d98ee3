//! The public dataset: the releases of a study laid side by side.

use std::fs::File;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::block::{Block, Pair};
use crate::columns::{Columns, content_hash};
use crate::files::{Audience, Existing, PendingFile};
use crate::release::{Release, ReleaseRecord, manifest, split_manifest};
use crate::remedy::{Problem, Remedy};
use crate::signing::PublicKey;
use crate::study::{Method, Study};
use crate::{Error, SOFTWARE};

const KIND: &str = "dataset";

/// Whether a public dataset may lack some parties of its study.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completeness {
    /// Every party must be there.
    All,
    /// Those present are enough.
    Partial,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct DatasetRecord {
    releases: Vec<ReleaseRecord>,
    /// What every two parties exchanged, in the study's order, where they did.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    blocks: Vec<Block>,
    software: String,
    content_hash: String,
}

impl DatasetRecord {
    fn manifest(&self, study: &Study, sealed: bool) -> Value {
        manifest(KIND, study, self, if sealed { &[] } else { &["content_hash"] })
    }
}

/// All releases of a study, joined. Verified: each release in it still matches its own hash and
/// signature.
#[derive(Clone, Debug)]
pub struct PublicDataset {
    study: Study,
    record: DatasetRecord,
    columns: Columns,
    signers: Vec<Option<PublicKey>>,
}

impl PublicDataset {
    /// Joins releases of one study, and of those that it extends, in the study's order of parties.
    pub fn join(study: &Study, releases: &[Release], completeness: Completeness) -> Result<Self, Error> {
        Self::join_exchanged(study, releases, &[], completeness)
    }

    /// The same with the blocks that parties exchanged.
    pub fn join_exchanged(
        study: &Study,
        releases: &[Release],
        blocks: &[Block],
        completeness: Completeness,
    ) -> Result<Self, Error> {
        for release in releases {
            check_belongs(study, release)?;
        }
        let mut chosen = Vec::new();
        let mut absent = Vec::new();
        for party in study.definition().parties() {
            let mut of_party = releases.iter().filter(|release| release.party() == party.name());
            match (of_party.next(), of_party.next()) {
                (Some(release), None) => chosen.push(release),
                (None, _) => absent.push(party.name()),
                (Some(_), Some(_)) => {
                    return Err(Error::Join(Problem::from(format!(
                        "there are two releases of {:?}; a party releases once: keep the one it published",
                        party.name()
                    ))));
                }
            }
        }
        if chosen.is_empty() {
            return Err(Error::Join("there is no release; name at least one release file".into()));
        }
        if completeness == Completeness::All && !absent.is_empty() {
            let missing = format!("the release of {} is missing", absent.join(" and of "));
            return Err(Error::Join(Problem::with(missing, Remedy::JoinPartial)));
        }
        let blocks = in_order(study, &chosen, blocks, completeness)?;
        let mut columns = Columns::new(Vec::new(), Vec::new());
        for release in &chosen {
            columns.extend(release.columns());
        }
        let mut record = DatasetRecord {
            releases: chosen.iter().map(|release| release.record().clone()).collect(),
            blocks,
            software: SOFTWARE.to_owned(),
            content_hash: String::new(),
        };
        record.content_hash = hex::encode(content_hash(&record.manifest(study, false), columns.hashes()));
        let signers = chosen.iter().map(|release| release.signer().cloned()).collect();
        Ok(Self { study: study.clone(), record, columns, signers })
    }

    /// Reads a public dataset and verifies it and every release in it.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let (columns, mut manifest) = Columns::read(path, KIND)?;
        let (study, record): (Study, DatasetRecord) = split_manifest(&mut manifest, path)?;
        let mut names = Vec::new();
        let mut signers = Vec::new();
        // In the study's order and each at most once, so that a column's place tells what it is.
        let mut parties = study.definition().parties().iter();
        for release in &record.releases {
            if !parties.any(|party| party.name() == release.party) {
                return Err(Error::tampered(path, "its releases are not in the study's order of parties"));
            }
            let own = study.definition().party(&release.party)?.published_names();
            let part = columns
                .select(&own)
                .ok_or_else(|| Error::tampered(path, "a column of a party is missing"))?;
            signers.push(release.verify(study.study_of(&release.party)?, &part, path)?);
            names.extend(own);
        }
        if columns.names() != names || names.is_empty() {
            return Err(Error::tampered(path, "its columns are not those of its releases"));
        }
        let sums =
            |release: &ReleaseRecord| (release.party.clone(), release.earlier_sums().unwrap_or_default());
        let published: Vec<(String, Vec<Vec<i64>>)> = record.releases.iter().map(sums).collect();
        check_blocks(&study, &published, &record.blocks).map_err(|what| Error::tampered(path, what))?;
        if hex::encode(content_hash(&record.manifest(&study, false), columns.hashes())) != record.content_hash
        {
            return Err(Error::tampered(path, "the content does not match its hash"));
        }
        Ok(Self { study, record, columns, signers })
    }

    /// Writes the file.
    pub fn write(&self, path: &Path, existing: Existing) -> Result<(), Error> {
        let manifest = self.record.manifest(&self.study, true);
        let write =
            |file: &mut File| self.columns.write(file, &manifest).map_err(|error| Error::write(path, error));
        let (pending, ()) = PendingFile::fill(path, existing, Audience::Public, write)?;
        pending.publish()
    }

    /// The study it belongs to: the last of its lineage, if it extends others.
    pub fn study(&self) -> &Study {
        &self.study
    }

    /// The published columns of all parties.
    pub fn columns(&self) -> &Columns {
        &self.columns
    }

    /// The parties whose releases are in it, each with the key of its valid signature, if it is
    /// signed.
    pub fn parties(&self) -> impl Iterator<Item = (&str, Option<&PublicKey>)> {
        let names = self.record.releases.iter().map(|release| release.party.as_str());
        names.zip(self.signers.iter().map(Option::as_ref))
    }

    /// The parties whose releases are in it, each with the content hash of its release.
    pub fn release_hashes(&self) -> impl Iterator<Item = (&str, &str)> {
        self.record.releases.iter().map(|release| (release.party.as_str(), release.content_hash()))
    }

    /// The noised sums of the stages before the mixed rows, of each party that is in it.
    pub fn earlier_sums(&self) -> impl Iterator<Item = (&str, Vec<Vec<i64>>)> {
        self.record.releases.iter().map(|release| {
            (release.party.as_str(), release.earlier_sums().expect("a public dataset is verified"))
        })
    }

    /// What every two parties exchanged, where they did.
    pub fn blocks(&self) -> &[Block] {
        &self.record.blocks
    }

    /// SHA-256 over the logical content, in hexadecimal.
    pub fn content_hash(&self) -> &str {
        &self.record.content_hash
    }
}

/// The pairs of these parties, in order.
fn pairs(parties: &[(String, Vec<Vec<i64>>)]) -> Vec<[usize; 2]> {
    (0..parties.len()).flat_map(|one| (one + 1..parties.len()).map(move |other| [one, other])).collect()
}

/// Blocks of the releases that are joined, in the study's order.
fn in_order(
    study: &Study,
    releases: &[&Release],
    blocks: &[Block],
    completeness: Completeness,
) -> Result<Vec<Block>, Error> {
    if study.definition().method() != Method::Exchange {
        return match blocks {
            [] => Ok(Vec::new()),
            _ => Err(Error::Join("only parties of method exchange have blocks; leave them out".into())),
        };
    }
    let published: Vec<(String, Vec<Vec<i64>>)> =
        releases.iter().map(|release| (release.party().to_owned(), release.earlier_sums())).collect();
    let mut found = Vec::new();
    for [one, other] in pairs(&published) {
        let names = [&published[one].0, &published[other].0];
        let mut of_pair = blocks.iter().filter(|block| block.parties().iter().eq(names));
        match (of_pair.next(), of_pair.next()) {
            (Some(block), None) => found.push(block.clone()),
            (None, _) if completeness == Completeness::Partial => {}
            (None, _) => {
                let missing = format!("the result of {} with {} is missing", names[0], names[1]);
                return Err(Error::Join(Problem::with(missing, Remedy::JoinPartial)));
            }
            (Some(_), Some(_)) => {
                let twice = format!("there are two results of {} with {}; keep one", names[0], names[1]);
                return Err(Error::Join(twice.into()));
            }
        }
    }
    if let Some(block) = blocks.iter().find(|block| !found.contains(block)) {
        let [one, other] = block.parties();
        let problem = format!("the result of {one} with {other} belongs to parties that are not joined");
        return Err(Error::Join(problem.into()));
    }
    check_blocks(study, &published, &found).map_err(|what| Error::Join(what.into()))?;
    Ok(found)
}

/// What is wrong with blocks of parties that published these sums; each stands at most once, in the
/// study's order.
fn check_blocks(
    study: &Study,
    published: &[(String, Vec<Vec<i64>>)],
    blocks: &[Block],
) -> Result<(), &'static str> {
    if blocks.is_empty() {
        return Ok(());
    }
    if study.definition().method() != Method::Exchange {
        return Err("it has blocks that its study does not");
    }
    let mut pairs = pairs(published).into_iter();
    for block in blocks {
        let is_its = |pair: &[usize; 2]| pair.iter().map(|&at| published[at].0.as_str()).eq(block.parties());
        let Some([one, other]) = pairs.find(is_its) else {
            return Err("its blocks are not those of its parties, in the study's order");
        };
        let of = |at: usize| (published[at].0.as_str(), published[at].1.as_slice());
        let pair = Pair::new(study, [of(one), of(other)]);
        block.check(study, &pair.map_err(|_| "its stages are not those of the study")?)?;
    }
    Ok(())
}

/// Refuses a release that was not made under the study that lists its party.
fn check_belongs(study: &Study, release: &Release) -> Result<(), Error> {
    let (party, other) = (release.party(), release.study());
    if study.study_of(party).is_ok_and(|own| own.id() == other.id()) {
        return Ok(());
    }
    let remedy = if other.lineage().any(|earlier| earlier.id() == study.id()) {
        "that study extends this one: join all releases under it"
    } else {
        "releases of different studies do not mix the same way"
    };
    Err(Error::Join(Problem::from(format!(
        "the release of {party:?} belongs to another study ({}); {remedy}",
        other.definition().name(),
    ))))
}
