//! The study: the public contract between parties, and every number that follows from it.
//!
//! [`Draft`] is a study that was checked but not sealed; [`Study`] is sealed: its mixing key, μ, k
//! and noise scales are fixed and have been recomputed and compared. Only a [`Study`] can be
//! released under, so an unsealed or edited study cannot reach the private side. [`Extension`] is a
//! draft that adds parties to a sealed study; it takes its key from that one. [`AnyStudy`] reads
//! whichever of them a text holds.

mod any;
mod checks;
mod dates;
mod definition;
mod document;
mod draft;
mod extension;
pub mod id_rules;
mod mistakes;
mod reader;
mod seal;
mod sealed;

use std::fs;
use std::path::Path;

use crate::Error;

pub use any::{AnyStudy, Unsealed};
pub use dates::{DAYS, date_of, day_of};
pub use definition::{
    Calibration, Column, Definition, Domain, Format, IdKind, IdRule, LARGER, MISSING_TOKENS, Method, Missing,
    MixingKind, Overlap, Party, Preset, TableRows, Unknown,
};
pub use draft::Draft;
pub use extension::Extension;
pub use mistakes::{Mistake, Mistakes};
pub use seal::Seal;
pub use sealed::Study;

/// The text of a study file, unread.
pub fn read_text(path: &Path) -> Result<String, Error> {
    fs::read_to_string(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::InvalidData => {
            Error::NotOurs { path: path.to_owned(), expected: "study", detail: "it is not text".to_owned() }
        }
        _ => Error::read(path, error),
    })
}
