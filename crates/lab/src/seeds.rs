//! Seeds: every random choice of an experiment has one of its own, so results do not depend on
//! threads or order.

use sha2::{Digest, Sha256};

/// A seed, derived from the experiment's seed and from what it is for.
#[derive(Clone, Copy)]
pub(crate) struct Seed([u8; 32]);

impl Seed {
    /// The seed of an experiment.
    pub(crate) fn new(seed: u64) -> Self {
        Self(Sha256::digest(format!("potluck-lab {seed}")).into())
    }

    /// The seed for one purpose.
    pub(crate) fn of(&self, purpose: &str) -> Self {
        let mut hash = Sha256::new_with_prefix(self.0);
        hash.update(purpose);
        Self(hash.finalize().into())
    }

    pub(crate) fn bytes(self) -> [u8; 32] {
        self.0
    }
}
