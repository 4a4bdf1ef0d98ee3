//! Keys to sign releases with.

use std::path::PathBuf;

use potluck_party::entropy;
use pyo3::prelude::*;

use crate::errors::Error;
use crate::study::existing;

/// Makes an Ed25519 key to sign releases with: the private key at `path`, readable by its owner
/// only, and the public key beside it, with `.pub` behind. Returns the public key.
#[pyfunction]
#[pyo3(signature = (path, *, overwrite=false))]
pub(crate) fn new_signing_key(path: PathBuf, overwrite: bool) -> Result<String, Error> {
    let key = entropy::new_signing_key()?;
    key.save_pair(&path, existing(overwrite))?;
    Ok(key.public().to_string())
}
