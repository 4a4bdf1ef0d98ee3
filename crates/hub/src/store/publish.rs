//! Publishing: a release that passes every check, and the public dataset that it completes.

use std::fs::File;
use std::path::Path;

use potluck_release::dataset::Completeness;
use potluck_release::events::Change;
use potluck_release::exchange::{PublishedFile, StudySummary};
use potluck_release::files::Existing;
use potluck_release::signing::PublicKey;
use potluck_release::{PublicDataset, Release, Study};
use rusqlite::{Transaction, params};

use super::objects::sha256_of;
use super::studies::summary;
use super::{Refusal, Store, StudyRecord, log, now};
use crate::Error;

/// What came of an upload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Publication {
    /// It is public now.
    New,
    /// The same bytes were public before.
    Same,
}

/// A public dataset that is stored but not named in the database yet.
struct NewDataset {
    study: String,
    parties: Vec<String>,
    file: PublishedFile,
}

/// The largest file that a release of `party` can be: its numbers, which do not compress, the frame that Parquet puts
/// around them, and the manifest, which holds the study and the sums of earlier stages.
pub fn largest_release(study: &Study, party: &str) -> Result<u64, potluck_release::Error> {
    let width = study.definition().party(party)?.width() as u64;
    let numbers = study.seal().k().saturating_mul(width).saturating_mul(8);
    let frame = numbers / 8 + 4096 * width + (1 << 16);
    let sums = 24 * (width * (width + 3) + 16);
    let study = 2 * study.to_json().to_string().len() as u64 + 256 * width;
    Ok(numbers + frame + sums + study)
}

impl Store {
    /// Checks an uploaded file and publishes it as the release of `party`. The file is moved if it is accepted;
    /// otherwise it stays where it is, and is the caller's to remove.
    pub fn publish_release(&self, study: &str, party: &str, file: &Path) -> Result<Publication, Refusal> {
        let _one_at_a_time = self.publishing.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let record = self.study(study)?.ok_or_else(Refusal::no_study)?;
        let (sha256, size) = sha256_of(file).map_err(Error::file(file))?;
        if let Some(publication) = published_before(&record, party, &sha256)? {
            return Ok(publication);
        }
        let release = check_release(&record, party, file)?;
        let time = now();
        let published = PublishedFile {
            sha256,
            size,
            content_hash: release.content_hash().to_owned(),
            time: time.clone(),
        };
        File::open(file).and_then(|file| file.sync_all()).map_err(Error::file(file))?;
        self.objects.keep(file, &published.sha256)?;
        let datasets = self.new_datasets(&record, &release)?;
        self.change(study, |transaction| {
            record_release(transaction, study, party, &published)?;
            for dataset in &datasets {
                record_dataset(transaction, dataset)?;
            }
            Ok(())
        })?;
        Ok(Publication::New)
    }

    /// Studies that extend this one, directly or not.
    fn extending(&self, study: &str) -> Result<Vec<std::sync::Arc<StudyRecord>>, Error> {
        let mut found = Vec::new();
        let mut next = vec![study.to_owned()];
        while let Some(id) = next.pop() {
            let record = self.study(&id)?.ok_or_else(|| Error::damaged("a study vanished"))?;
            next.extend(record.extended_by.iter().cloned());
            if id != study {
                found.push(record);
            }
        }
        Ok(found)
    }

    /// The public datasets that this release makes possible: of its own study and of those that extend it.
    fn new_datasets(&self, record: &StudyRecord, release: &Release) -> Result<Vec<NewDataset>, Refusal> {
        let mut datasets = Vec::new();
        let extending = self.extending(record.study.id())?;
        for record in std::iter::once(record).chain(extending.iter().map(AsRef::as_ref)) {
            let StudySummary { parties, released, .. } = summary(record);
            if record.early || released + 1 == parties {
                datasets.push(self.join(record, release)?);
            }
        }
        Ok(datasets)
    }

    /// Joins what a study has with a release that is new.
    fn join(&self, record: &StudyRecord, new: &Release) -> Result<NewDataset, Refusal> {
        let mut releases = vec![new.clone()];
        for party in &record.parties {
            if let Some(file) = &party.release {
                let release = Release::read(&self.object(&file.sha256))
                    .map_err(|error| Error::damaged(format!("the release of {}: {error}", party.name)))?;
                releases.push(release);
            }
        }
        let completeness = if record.early { Completeness::Partial } else { Completeness::All };
        let failed = |error: potluck_release::Error| Error::damaged(error.to_string());
        let dataset = PublicDataset::join(&record.study, &releases, completeness).map_err(failed)?;
        let folder = self.incoming();
        let name = format!("{}-dataset.parquet", record.study.id());
        let path = folder.join(name);
        dataset.write(&path, Existing::Replace).map_err(failed)?;
        let (sha256, size) = sha256_of(&path).map_err(Error::file(&path))?;
        self.objects.keep(&path, &sha256)?;
        Ok(NewDataset {
            study: record.study.id().to_owned(),
            parties: dataset.parties().map(|(party, _)| party.to_owned()).collect(),
            file: PublishedFile {
                sha256,
                size,
                content_hash: dataset.content_hash().to_owned(),
                time: now(),
            },
        })
    }
}

/// Whether the party's release is public already: the same bytes are fine, others are not.
pub(crate) fn published_before(
    record: &StudyRecord,
    party: &str,
    sha256: &str,
) -> Result<Option<Publication>, Refusal> {
    let state = record.own_party(party).ok_or_else(|| Refusal::no_party(party))?;
    match &state.release {
        Some(file) if file.sha256 == sha256 => Ok(Some(Publication::Same)),
        Some(_) => Err(Refusal::Conflict(format!(
            "{party} has published its release of this study; other bytes would be another release, with fresh noise and a further charge: send the file that was published, or agree on a new study"
        ))),
        None if state.key.is_none() => Err(Refusal::Conflict(format!(
            "{party} has not accepted the study yet; run `potluck party accept` first"
        ))),
        None => Ok(None),
    }
}

/// Everything that must be true of a release before anyone may see it.
fn check_release(record: &StudyRecord, party: &str, file: &Path) -> Result<Release, Refusal> {
    let unacceptable = |problem: String| Refusal::Unacceptable(format!("the release is refused: {problem}"));
    let release =
        Release::read_for(file, &record.study, party).map_err(|error| unacceptable(reason(&error)))?;
    let registered =
        record.own_party(party).and_then(|state| state.key.as_deref()).and_then(PublicKey::from_hex);
    let registered = registered.ok_or_else(|| Error::damaged("a registered key cannot be read"))?;
    match release.signer() {
        None => Err(unacceptable("it is not signed; sign it with the key that you accepted with".to_owned())),
        Some(signer) if *signer != registered => Err(unacceptable(format!(
            "it is signed with another key than {party} registered ({registered}); sign it with that one"
        ))),
        Some(_) => Ok(release),
    }
}

/// What is wrong, without the path that the file has on this machine.
fn reason(error: &potluck_release::Error) -> String {
    use potluck_release::Error as Release;
    match error {
        Release::Tampered { what, .. } => what.clone(),
        Release::NotOurs { expected, detail, .. } => format!("it is not a potluck {expected}: {detail}"),
        Release::Format { found, known, .. } => {
            format!("it has format {found}, this hub reads format {known}")
        }
        Release::Read { .. } => "it cannot be read".to_owned(),
        other => other.to_string(),
    }
}

fn record_release(
    transaction: &Transaction<'_>,
    study: &str,
    party: &str,
    file: &PublishedFile,
) -> Result<(), Refusal> {
    let changed = transaction.execute(
        "UPDATE party SET sha256 = ?3, size = ?4, content_hash = ?5, released = ?6
         WHERE study = ?1 AND name = ?2 AND sha256 IS NULL",
        params![study, party, file.sha256, file.size as i64, file.content_hash, file.time],
    )?;
    if changed != 1 {
        return Err(Error::damaged("a party released twice").into());
    }
    let change = Change::Released {
        party: party.to_owned(),
        sha256: file.sha256.clone(),
        size: file.size,
        content_hash: file.content_hash.clone(),
    };
    Ok(log(transaction, study, &file.time, change)?)
}

fn record_dataset(transaction: &Transaction<'_>, dataset: &NewDataset) -> Result<(), Refusal> {
    let NewDataset { study, parties, file } = dataset;
    let names = serde_json::to_string(parties).expect("names are text");
    transaction.execute(
        "INSERT INTO dataset (study, position, parties, sha256, size, content_hash, published)
         SELECT ?1, count(*), ?2, ?3, ?4, ?5, ?6 FROM dataset WHERE study = ?1",
        params![study, names, file.sha256, file.size as i64, file.content_hash, file.time],
    )?;
    let change = Change::Published {
        parties: parties.clone(),
        sha256: file.sha256.clone(),
        size: file.size,
        content_hash: file.content_hash.clone(),
    };
    Ok(log(transaction, study, &file.time, change)?)
}
