//! Ed25519 keys and signatures of releases.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use ed25519_dalek::pkcs8::spki::der::pem::LineEnding;
use ed25519_dalek::pkcs8::{DecodePrivateKey, DecodePublicKey, EncodePrivateKey, EncodePublicKey};
use ed25519_dalek::{Signer, VerifyingKey};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::Error;
use crate::files::{Audience, Existing, write_file};
use crate::remedy::{Problem, Remedy};

/// Keeps a signature of a release from meaning anything else.
const RELEASE: &[u8] = b"potluck release\0";

/// Keeps a signature under an acceptance from meaning anything else.
const ACCEPTANCE: &[u8] = b"potluck acceptance\0";

/// Keeps a signature under the withdrawal of an acceptance from meaning anything else.
const WITHDRAWAL: &[u8] = b"potluck withdrawal\0";

/// A party's private signing key. It has no `Debug` and no `Serialize`.
pub struct SigningKey(ed25519_dalek::SigningKey);

impl SigningKey {
    /// The key made of 32 secret random bytes.
    pub fn from_seed(seed: &Zeroizing<[u8; 32]>) -> Self {
        Self(ed25519_dalek::SigningKey::from_bytes(seed))
    }

    /// Reads a PKCS#8 PEM file.
    pub fn load(path: &Path) -> Result<Self, Error> {
        let text = Zeroizing::new(fs::read_to_string(path).map_err(|error| Error::read(path, error))?);
        ed25519_dalek::SigningKey::from_pkcs8_pem(&text).map(Self).map_err(|_| Error::Key {
            path: path.to_owned(),
            problem: Problem::with("it holds no Ed25519 private key in PEM form", Remedy::NewKey),
        })
    }

    /// Writes a PKCS#8 PEM file that only its owner can read.
    pub fn save(&self, path: &Path, existing: Existing) -> Result<(), Error> {
        let text = self.0.to_pkcs8_pem(LineEnding::LF).expect("an Ed25519 key has a PEM form");
        write_file(path, text.as_bytes(), existing, Audience::Owner)
    }

    /// Writes the private key, and the public key beside it with `.pub` behind; returns where that
    /// is.
    pub fn save_pair(&self, path: &Path, existing: Existing) -> Result<PathBuf, Error> {
        let mut name = path.as_os_str().to_owned();
        name.push(".pub");
        let public = PathBuf::from(name);
        self.save(path, existing)?;
        self.public().save(&public, existing)?;
        Ok(public)
    }

    /// The public half.
    pub fn public(&self) -> PublicKey {
        PublicKey(self.0.verifying_key())
    }

    pub(crate) fn sign_release(&self, content_hash: &[u8; 32]) -> Signature {
        self.sign(RELEASE, content_hash)
    }

    pub(crate) fn sign_acceptance(&self, hash: &[u8; 32]) -> Signature {
        self.sign(ACCEPTANCE, hash)
    }

    pub(crate) fn sign_withdrawal(&self, hash: &[u8; 32]) -> Signature {
        self.sign(WITHDRAWAL, hash)
    }

    fn sign(&self, context: &[u8], hash: &[u8; 32]) -> Signature {
        let signature = self.0.sign(&[context, hash].concat());
        Signature { public_key: self.public().to_string(), signature: hex::encode(signature.to_bytes()) }
    }
}

/// A party's public key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicKey(VerifyingKey);

impl PublicKey {
    /// Reads an SPKI PEM file.
    pub fn load(path: &Path) -> Result<Self, Error> {
        let text = fs::read_to_string(path).map_err(|error| Error::read(path, error))?;
        VerifyingKey::from_public_key_pem(&text).map(Self).map_err(|_| Error::Key {
            path: path.to_owned(),
            problem: Problem::with("it holds no Ed25519 public key in PEM form", Remedy::PublicKeyBeside),
        })
    }

    /// Writes an SPKI PEM file.
    pub fn save(&self, path: &Path, existing: Existing) -> Result<(), Error> {
        let text = self.0.to_public_key_pem(LineEnding::LF).expect("an Ed25519 key has a PEM form");
        write_file(path, text.as_bytes(), existing, Audience::Public)
    }

    /// Reads 64 hexadecimal digits, as [`Display`](fmt::Display) writes them.
    pub fn from_hex(text: &str) -> Option<Self> {
        let mut bytes = [0; 32];
        hex::decode_to_slice(text, &mut bytes).ok()?;
        VerifyingKey::from_bytes(&bytes).ok().map(Self)
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0.as_bytes()))
    }
}

/// A signature as it stands in a manifest or an event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Signature {
    pub(crate) public_key: String,
    pub(crate) signature: String,
}

impl Signature {
    /// The key that signed the release with this content, if the signature is good.
    pub(crate) fn signer(&self, content_hash: &[u8; 32]) -> Option<PublicKey> {
        self.verify(RELEASE, content_hash)
    }

    /// The key that signed the acceptance with this hash, if the signature is good.
    pub(crate) fn acceptor(&self, hash: &[u8; 32]) -> Option<PublicKey> {
        self.verify(ACCEPTANCE, hash)
    }

    /// The key that signed the withdrawal with this hash, if the signature is good.
    pub(crate) fn withdrawer(&self, hash: &[u8; 32]) -> Option<PublicKey> {
        self.verify(WITHDRAWAL, hash)
    }

    fn verify(&self, context: &[u8], hash: &[u8; 32]) -> Option<PublicKey> {
        let key = PublicKey::from_hex(&self.public_key)?;
        let mut bytes = [0; 64];
        hex::decode_to_slice(&self.signature, &mut bytes).ok()?;
        let signature = ed25519_dalek::Signature::from_bytes(&bytes);
        key.0.verify_strict(&[context, hash].concat(), &signature).ok()?;
        Some(key)
    }
}
