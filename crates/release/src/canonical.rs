//! Canonical JSON (RFC 8785) and the hashes over it.

use serde::Serialize;
use sha2::{Digest, Sha256};

/// The canonical JSON text of a value that has no map with non-text keys and no non-finite number.
pub(crate) fn json(value: &impl Serialize) -> Vec<u8> {
    serde_json_canonicalizer::to_vec(value).expect("our documents hold only finite numbers and text keys")
}

/// SHA-256 as lowercase hexadecimal.
pub(crate) fn sha256_hex(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}
