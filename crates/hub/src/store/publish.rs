//! Publishing: a release that passes every check, and the public dataset that it completes.

use std::fs::File;
use std::path::Path;
use std::sync::{Arc, MutexGuard, PoisonError};

use potluck_release::dataset::Completeness;
use potluck_release::events::Change;
use potluck_release::exchange::{PartyState, PublishedFile};
use potluck_release::files::Existing;
use potluck_release::signing::PublicKey;
use potluck_release::{PublicDataset, Release, Study};
use rusqlite::{Transaction, params};

use super::objects::sha256_of;
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

/// The largest file that a release of `party` can be: its numbers, which do not compress, the frame
/// that Parquet puts around them, and the manifest, which holds the study and the sums of earlier
/// stages.
pub fn largest_release(study: &Study, party: &str) -> Result<u64, potluck_release::Error> {
    let width = study.definition().party(party)?.published_width() as u64;
    let numbers = study.seal().k().saturating_mul(width).saturating_mul(8);
    let frame = numbers / 8 + 4096 * width + (1 << 16);
    // Counts of format 2: cells, and presence groups with each other and with columns.
    let groups = study.calibrated(party)?.map_or(0, |plan| plan.layout().groups() as u64);
    let counts = match groups {
        0 => 0,
        _ => 2 * study.first_stage(party)?.coordinates() as u64 + groups * (width + groups + 5),
    };
    let sums = 24 * (width * (width + 3) + 16 + counts);
    let study = 2 * study.to_json().to_string().len() as u64 + 256 * width;
    Ok(numbers + frame + sums + study)
}

impl Store {
    /// Checks an uploaded file, announced by its hash, and publishes it as the release of `party`.
    /// The file is moved if it is accepted; otherwise it stays where it is, and is the caller's to
    /// remove.
    pub fn publish_release(
        &self,
        study: &str,
        party: &str,
        file: &Path,
        announced: &str,
    ) -> Result<Publication, Refusal> {
        let _one_at_a_time = self.one_publication();
        let record = self.study(study)?.ok_or_else(Refusal::no_study)?;
        if let Some(publication) = published_before(&record, party, announced)? {
            return Ok(publication);
        }
        let (sha256, size) = sha256_of(file).map_err(Error::file(file))?;
        if sha256 != announced {
            return Err(Refusal::Unacceptable(
                "the bytes that arrived do not have the hash that was announced; nothing was stored: send the file again from the start".to_owned(),
            ));
        }
        let release = check_release(&record, party, file)?;
        let content_hash = release.content_hash().to_owned();
        drop(release);
        let published = PublishedFile { sha256, size, content_hash, time: now() };
        File::open(file).and_then(|file| file.sync_all()).map_err(Error::file(file))?;
        self.objects.keep(file, &published.sha256)?;
        self.change(study, |transaction| record_release(transaction, study, party, &published))?;
        // The release is public. If a dataset cannot be made now, it is when the hub starts the
        // next time.
        if let Err(error) = self.publish_datasets(study) {
            tracing::error!(%error, study, "a public dataset could not be made");
        }
        Ok(Publication::New)
    }

    /// Makes every public dataset that should be there and is not: after a crash, say.
    pub fn publish_missing_datasets(&self) -> Result<(), Error> {
        let _one_at_a_time = self.one_publication();
        let ids = {
            let database = self.database();
            let mut query = database.prepare("SELECT id FROM study WHERE extends IS NULL ORDER BY number")?;
            query.query_map([], |row| row.get(0))?.collect::<Result<Vec<String>, _>>()?
        };
        for id in ids {
            if let Err(error) = self.publish_datasets(&id) {
                tracing::error!(%error, study = id, "a public dataset could not be made");
            }
        }
        Ok(())
    }

    pub(super) fn one_publication(&self) -> MutexGuard<'_, ()> {
        self.publishing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the public datasets of a study and of those that extend it, where their releases have
    /// come since.
    fn publish_datasets(&self, study: &str) -> Result<(), Error> {
        let own = self.study(study)?.ok_or_else(|| Error::damaged("a study vanished"))?;
        for record in std::iter::once(own).chain(self.extending(study)?) {
            if record.closed.is_some() {
                continue;
            }
            let released = |party: &&PartyState| party.release.is_some();
            let parties: Vec<&str> =
                record.parties.iter().filter(released).map(|party| party.name.as_str()).collect();
            let enough =
                if record.early { !parties.is_empty() } else { parties.len() == record.parties.len() };
            if !enough || record.dataset.as_ref().is_some_and(|dataset| dataset.parties == parties) {
                continue;
            }
            let dataset = self.join(&record)?;
            let recorded =
                self.change(record.study.id(), |transaction| record_dataset(transaction, &dataset));
            if let Err(Refusal::Failed(error)) = recorded {
                return Err(error);
            }
        }
        Ok(())
    }

    /// Studies that extend this one, directly or not.
    fn extending(&self, study: &str) -> Result<Vec<Arc<StudyRecord>>, Error> {
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

    /// Joins the releases that a study has.
    fn join(&self, record: &StudyRecord) -> Result<NewDataset, Error> {
        let mut releases = Vec::new();
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
        let path = self.incoming().join(format!("{}-dataset.parquet", record.study.id()));
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
        None if record.closed.is_some() => Err(Refusal::closed()),
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
