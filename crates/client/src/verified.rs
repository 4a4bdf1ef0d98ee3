//! Public datasets that the event logs of their studies confirm.

use std::path::Path;

use potluck_release::files::Existing;
use potluck_release::{PublicDataset, Study};

use crate::transfer::{Downloaded, Progress};
use crate::{Error, Hub, Log};

const WHAT: &str = "the public dataset";

/// A public dataset as a hub gave it: its study sealed, its releases signed by the registered keys,
/// and its bytes those that the event log speaks of.
pub struct VerifiedDataset {
    /// The dataset.
    pub dataset: PublicDataset,
    /// The logs that it was checked against: its study's, then those of the studies that this one
    /// extends.
    pub logs: Vec<Log>,
    /// Whether no later one has been published.
    pub latest: bool,
    /// Its file, which has no name yet.
    pub file: Downloaded,
}

impl Hub {
    /// Downloads the public dataset of a study to a temporary file beside `out`, and checks it
    /// against the event logs of the study and of those that it extends.
    pub fn verified_dataset(
        &self,
        study: &Study,
        out: &Path,
        existing: Existing,
        progress: Progress<'_>,
    ) -> Result<VerifiedDataset, Error> {
        let file = self.download_dataset(study, out, existing, None, progress)?;
        // After the dataset, so that the logs speak of it, even if it has just been published.
        let logs: Vec<Log> = study.lineage().map(|member| self.log(member.id())).collect::<Result<_, _>>()?;
        let (own, bases) = logs.split_first().expect("a study is in its own lineage");
        let dataset = PublicDataset::read(file.path()).map_err(|error| match error {
            potluck_release::Error::Tampered { what, .. } => self.unsound(WHAT, &what),
            error => self.unsound(WHAT, &error.to_string()),
        })?;
        let checked =
            own.log.check_dataset(&dataset, &file.digest().sha256, bases.iter().map(|base| &base.log));
        let latest = checked.map_err(|error| self.unsound(WHAT, &error.to_string()))?;
        Ok(VerifiedDataset { dataset, logs, latest, file })
    }
}
