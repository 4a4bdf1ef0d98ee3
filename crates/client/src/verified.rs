//! Public datasets that the event log of their study confirms.

use std::path::Path;

use potluck_release::files::Existing;
use potluck_release::{PublicDataset, Study};

use crate::transfer::{Downloaded, Progress};
use crate::{Error, Hub, Log};

const WHAT: &str = "the public dataset";

/// A public dataset as a hub gave it: its study sealed, its releases signed by the registered keys, and its bytes those
/// that the event log speaks of.
pub struct VerifiedDataset {
    /// The study.
    pub study: Study,
    /// The dataset.
    pub dataset: PublicDataset,
    /// The log that it was checked against.
    pub log: Log,
    /// Whether no later one has been published.
    pub latest: bool,
    /// Its file, which has no name yet.
    pub file: Downloaded,
}

impl Hub {
    /// Downloads the public dataset of a study to a temporary file beside `out`, and checks it against the study's event
    /// log.
    pub fn verified_dataset(
        &self,
        study: &str,
        out: &Path,
        existing: Existing,
        progress: Progress<'_>,
    ) -> Result<VerifiedDataset, Error> {
        let study = self.contract(study)?.study;
        let file = self.download_dataset(&study, out, existing, None, progress)?;
        // After the dataset, so that the log speaks of it, even if it has just been published.
        let log = self.log(study.id())?;
        let dataset = PublicDataset::read(file.path()).map_err(|error| match error {
            potluck_release::Error::Tampered { what, .. } => self.unsound(WHAT, &what),
            error => self.unsound(WHAT, &error.to_string()),
        })?;
        let checked = log.log.check_dataset(&dataset, &file.digest().sha256);
        let latest = checked.map_err(|what| self.unsound(WHAT, &what))?;
        Ok(VerifiedDataset { study, dataset, log, latest, file })
    }
}
