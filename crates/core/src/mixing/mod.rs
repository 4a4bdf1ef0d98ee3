//! The public k × n matrix that mixes subjects, derived from subject ids and the study's mixing
//! key.
//!
//! A subject's column of the matrix comes from SHA-256(hex(key) ‖ ":" ‖ id), so parties need no
//! common row order and no alignment round: the same person gets the same signs everywhere. Every
//! privacy guarantee holds for any fixed matrix, so nothing here is secret.

mod bernoulli;
mod hashing;
mod lanes;
mod signs;
mod sparse;

use std::fmt;

use rand_chacha::ChaCha12Rng;
use rand_core::{Rng, SeedableRng};
use thiserror::Error;

use hashing::Prefix;

pub use bernoulli::add_bernoulli;
pub use sparse::{add_buckets, add_sparse};

/// The key text is not 64 hexadecimal digits.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("a mixing key is 64 lowercase hexadecimal digits; run `potluck study seal` to make one")]
pub struct InvalidKey;

/// Which matrix mixes the subjects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mixing {
    /// The identity: every subject keeps a row of its own, k = n.
    Identity,
    /// Every entry is a fair ±1: the paper's B.
    Bernoulli,
    /// One ±1 in each column, in a random row.
    Sparse,
    /// One 1 in each column, in a random row: subjects are added up in buckets.
    Buckets,
}

impl Mixing {
    /// w: the squared norm of every column of the matrix.
    ///
    /// # Privacy
    /// Replacing a subject changes the mixed rows by at most 2√(Cw): Theorem M,
    /// docs/PRIVACY.md#mixed-rows.
    pub fn column_norm_squared(self, k: u64) -> u64 {
        match self {
            Self::Identity | Self::Sparse | Self::Buckets => 1,
            Self::Bernoulli => k,
        }
    }
}

/// The 32 public bytes that, with the subject ids, determine the mixing matrix of a study.
#[derive(Clone)]
pub struct MixingKey {
    bytes: [u8; 32],
    prefix: Prefix,
}

impl MixingKey {
    /// The key made of these bytes.
    pub fn new(bytes: [u8; 32]) -> Self {
        let mut digits = [0; 64];
        hex::encode_to_slice(bytes, &mut digits).expect("32 bytes are 64 digits");
        Self { bytes, prefix: Prefix::new(&digits) }
    }

    /// Reads 64 lowercase hexadecimal digits.
    pub fn from_hex(text: &str) -> Result<Self, InvalidKey> {
        let mut bytes = [0; 32];
        hex::decode_to_slice(text, &mut bytes).map_err(|_| InvalidKey)?;
        if text.bytes().any(|digit| digit.is_ascii_uppercase()) {
            return Err(InvalidKey);
        }
        Ok(Self::new(bytes))
    }

    /// 64 lowercase hexadecimal digits.
    pub fn to_hex(&self) -> String {
        hex::encode(self.bytes)
    }

    /// The digest that stands for the subject whose id is `id` (UTF-8 text).
    pub fn subject(&self, id: &[u8]) -> SubjectDigest {
        self.prefix.subject(id)
    }

    /// Appends the digests that stand for the subjects with these ids; faster than one by one.
    pub fn add_subjects(&self, ids: &[&[u8]], subjects: &mut Vec<SubjectDigest>) {
        self.prefix.add_subjects(ids, subjects);
    }

    /// The same for ids that are whole numbers, written in plain decimal.
    pub fn add_numbered<N: itoa::Integer>(
        &self,
        ids: impl IntoIterator<Item = N>,
        subjects: &mut Vec<SubjectDigest>,
    ) {
        // So few at a time that their texts stay in the first-level cache.
        let mut buffers = [itoa::Buffer::new(); 256];
        let mut ids = ids.into_iter();
        loop {
            let texts: Vec<&[u8]> =
                buffers.iter_mut().zip(&mut ids).map(|(buffer, id)| buffer.format(id).as_bytes()).collect();
            if texts.is_empty() {
                return;
            }
            self.add_subjects(&texts, subjects);
        }
    }
}

impl PartialEq for MixingKey {
    fn eq(&self, other: &Self) -> bool {
        self.bytes == other.bytes
    }
}

impl fmt::Debug for MixingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("MixingKey").field(&self.to_hex()).finish()
    }
}

/// What stands for a subject in mixing.
///
/// It has no `Debug`: whoever knows the key and guesses an id can recognise it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct SubjectDigest([u8; 32]);

impl SubjectDigest {
    /// The row and the sign of the subject's only entry in the sparse matrix with `k` rows.
    ///
    /// # Privacy
    /// One entry of ±1, so w = 1 in Theorem M, docs/PRIVACY.md#mixed-rows.
    pub fn sparse_entry(&self, k: u64) -> (u64, i64) {
        let [a, b, c, d, e, f, g, h, ..] = self.0;
        let head = u64::from_be_bytes([a, b, c, d, e, f, g, h]);
        // The first 15 hexadecimal digits choose the row, the 16th the sign.
        ((head >> 4) % k, if head & 0xf < 8 { 1 } else { -1 })
    }

    /// The bucket of the subject among `k`: the row of its only entry, which is 1.
    ///
    /// # Privacy
    /// One entry of 1, never −1, as Theorem M′ needs
    /// (docs/PRIVACY.md#mixed-rows-and-presence-stage-4).
    pub fn bucket(&self, k: u64) -> u64 {
        self.sparse_entry(k).0
    }

    /// Fills `words` with the subject's column of the Bernoulli matrix: bit i (little-endian) is
    /// row i, 1 for +1.
    ///
    /// # Privacy
    /// k entries of ±1, so w = k in Theorem M, docs/PRIVACY.md#mixed-rows.
    pub fn bernoulli_signs(&self, words: &mut [u64]) {
        let mut stream = ChaCha12Rng::from_seed(self.0);
        for word in words {
            *word = stream.next_u64();
        }
    }

    /// The digest as lowercase hexadecimal.
    pub fn to_hex(&self) -> String {
        hex::encode(self.0)
    }
}

/// The product of a mixing matrix with encoded rows by its definition, for tests.
#[cfg(test)]
fn reference_product(
    subjects: &[SubjectDigest],
    rows: &[i32],
    width: usize,
    k: u64,
    entry: impl Fn(&SubjectDigest, u64) -> i64,
) -> Vec<i64> {
    let mut sums = vec![0; k as usize * width];
    for (subject, row) in subjects.iter().zip(rows.chunks_exact(width)) {
        for i in 0..k {
            let entry = entry(subject, i);
            for (j, &q) in row.iter().enumerate() {
                sums[i as usize * width + j] += entry * i64::from(q);
            }
        }
    }
    sums
}
