//! The public dataset: the releases of a study laid side by side.

use std::fs::File;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::columns::{Columns, content_hash};
use crate::files::{Audience, Existing, PendingFile};
use crate::release::{Release, ReleaseRecord, manifest, split_manifest};
use crate::remedy::{Problem, Remedy};
use crate::signing::PublicKey;
use crate::study::Study;
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
        let mut columns = Columns::new(Vec::new(), Vec::new());
        for release in &chosen {
            columns.extend(release.columns());
        }
        let mut record = DatasetRecord {
            releases: chosen.iter().map(|release| release.record().clone()).collect(),
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

    /// SHA-256 over the logical content, in hexadecimal.
    pub fn content_hash(&self) -> &str {
        &self.record.content_hash
    }
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
