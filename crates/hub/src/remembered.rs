//! What pages leave in memory, so that nothing is done twice.

use std::sync::Arc;

use sha2::{Digest, Sha256};

use crate::store::StudyRecord;

/// What everybody sees of a study, as it was rendered for this state of it.
pub(crate) struct Rendered {
    pub(crate) record: Arc<StudyRecord>,
    pub(crate) address: String,
    pub(crate) html: String,
}

/// A form and what was in it when it was sent.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Created([u8; 32]);

impl Created {
    pub(crate) fn of(form: &str, text: &str) -> Self {
        let mut hash = Sha256::new();
        hash.update(Sha256::digest(form));
        hash.update(text);
        Self(hash.finalize().into())
    }
}
