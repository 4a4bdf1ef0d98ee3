//! Secrets that let their holder act: made here, shown once, kept as hashes.

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::Error;

/// A secret. It has no `Debug` and no `Serialize`; whoever shows it does so on purpose.
pub struct Token(String);

impl Token {
    /// A fresh token of 256 random bits. The prefix tells people, and those who search for leaked
    /// secrets, what it is.
    pub(crate) fn new(prefix: &str) -> Result<Self, Error> {
        Ok(Self(format!("{prefix}_{}", hex::encode(random_bytes()?))))
    }

    /// The text of the token.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    pub(crate) fn hash(&self) -> TokenHash {
        TokenHash::of(&self.0)
    }
}

/// What is kept of a token. It has 256 random bits, so a plain hash cannot be reversed by guessing.
#[derive(Clone)]
pub(crate) struct TokenHash([u8; 32]);

impl TokenHash {
    pub(crate) fn of(token: &str) -> Self {
        Self(Sha256::digest(token).into())
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Compares in constant time.
    pub(crate) fn matches(&self, stored: &[u8]) -> bool {
        self.0.ct_eq(stored).into()
    }
}

/// 32 bytes from the operating system.
#[expect(clippy::disallowed_methods, reason = "the one place where randomness enters the hub")]
pub(crate) fn random_bytes() -> Result<[u8; 32], Error> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|_| Error::Entropy)?;
    Ok(bytes)
}
