//! Challenges: docs/EXCHANGE.md#transcript.

use curve25519_dalek::scalar::Scalar;
use sha3::digest::{ExtendableOutput, Update, XofReader};
use sha3::{Shake256, Shake256Reader};

use crate::generators::Generators;
use crate::terms::Terms;

/// A state that absorbs labelled items, each with its length.
#[derive(Clone)]
pub(crate) struct Transcript {
    state: Shake256,
    /// Bytes that the item begun still lacks.
    missing: u64,
}

impl Transcript {
    /// The beginning of every transcript of `role`.
    pub(crate) fn new(role: &str, terms: &Terms, generators: &Generators) -> Self {
        let mut transcript = Self::empty();
        transcript.item("potluck exchange 1", role.as_bytes());
        transcript.item("terms", terms.bytes());
        transcript.item("generators", &generators.bytes());
        transcript
    }

    pub(crate) fn empty() -> Self {
        Self { state: Shake256::default(), missing: 0 }
    }

    pub(crate) fn item(&mut self, label: &str, data: &[u8]) {
        self.begin(label, data.len() as u64);
        self.update(data);
    }

    /// Begins an item of `length` bytes, which `update` then brings.
    pub(crate) fn begin(&mut self, label: &str, length: u64) {
        assert_eq!(self.missing, 0, "an item is complete before the next");
        self.state.update(&[u8::try_from(label.len()).expect("labels are short")]);
        self.state.update(label.as_bytes());
        self.state.update(&length.to_le_bytes());
        self.missing = length;
    }

    pub(crate) fn update(&mut self, data: &[u8]) {
        self.missing = self.missing.checked_sub(data.len() as u64).expect("an item keeps to its length");
        self.state.update(data);
    }

    /// What this state says under a name; the state itself goes on without it.
    pub(crate) fn challenge(&self, name: &str) -> Challenge {
        self.squeeze("challenge", name)
    }

    pub(crate) fn squeeze(&self, label: &str, name: &str) -> Challenge {
        let mut copy = self.clone();
        copy.item(label, name.as_bytes());
        Challenge(copy.state.finalize_xof())
    }
}

/// A stream of challenges.
pub(crate) struct Challenge(Shake256Reader);

impl Challenge {
    pub(crate) fn fill(&mut self, bytes: &mut [u8]) {
        self.0.read(bytes);
    }

    pub(crate) fn scalar(&mut self) -> Scalar {
        let mut wide = [0; 64];
        self.fill(&mut wide);
        Scalar::from_bytes_mod_order_wide(&wide)
    }

    pub(crate) fn scalars(&mut self, count: usize) -> Vec<Scalar> {
        (0..count).map(|_| self.scalar()).collect()
    }

    /// The bits of `count` rows, one 128-bit word each.
    pub(crate) fn bits(&mut self, count: usize) -> Vec<u128> {
        (0..count)
            .map(|_| {
                let mut word = [0; 16];
                self.fill(&mut word);
                u128::from_le_bytes(word)
            })
            .collect()
    }
}
