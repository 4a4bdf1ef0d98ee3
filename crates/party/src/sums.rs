//! Exact sums of a stage, before and after noise.

use potluck_core::encoding::EncodedRows;
use potluck_core::mixing::{Mixing, SubjectDigest};
use potluck_core::noise::{Sigma, add_noise};
use potluck_core::stage::{Stage, Statistic};
use rand_core::CryptoRng;
use zeroize::Zeroize;

use crate::Error;
use crate::ledger::{CHUNK, StageWriter};

/// Whether the stage keeps a row for every subject: too many to hold, so they pass through in
/// blocks.
pub(crate) fn keeps_rows(stage: &Stage) -> bool {
    matches!(stage.statistic, Statistic::Mixed { mixing: Mixing::Identity, .. })
}

/// Exact integer sums before noise. No `Debug`; wiped when dropped.
pub(crate) struct Sums(Vec<i64>);

impl Sums {
    pub(crate) fn zero(stage: &Stage) -> Self {
        Self(vec![0; stage.coordinates()])
    }

    /// Sums that were computed elsewhere.
    pub(crate) fn from_exact(sums: Vec<i64>, stage: &Stage) -> Self {
        assert_eq!(sums.len(), stage.coordinates(), "every sum of the stage");
        Self(sums)
    }

    /// Adds encoded rows.
    pub(crate) fn add(
        &mut self,
        stage: &Stage,
        subjects: &[SubjectDigest],
        first: u64,
        encoded: &EncodedRows,
    ) {
        stage.accumulate(subjects, first, encoded, &mut self.0);
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        for (sum, part) in self.0.iter_mut().zip(&other.0) {
            // Overflow is excluded when the study is checked: n·C < 2⁶².
            *sum += part;
        }
    }

    /// Adds the stage's noise; the exact sums are gone afterwards.
    ///
    /// # Privacy
    /// This is the mechanism of Theorem 3, docs/PRIVACY.md#what-a-release-costs. That the scales
    /// suffice for the sums is Lemma S, Lemma L or Theorem M, as the stage says where it is made.
    pub(crate) fn noised<R: CryptoRng>(mut self, stage: &Stage, rng: &mut R) -> Vec<i64> {
        stage.add_noise(&mut self.0, rng);
        std::mem::take(&mut self.0)
    }

    /// The exact sums, for the party's own audit file.
    pub(crate) fn values(&self) -> &[i64] {
        &self.0
    }
}

impl Drop for Sums {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

/// Noise for a stage that keeps every row: rows go in, noised rows go to the ledger, a chunk at a
/// time. Chunks do not depend on how the rows come, so neither does the noise. No `Debug`; wiped
/// when dropped.
pub(crate) struct RowNoise<'a, R> {
    chunk: Vec<i64>,
    sigma: Sigma,
    limit: i64,
    rng: &'a mut R,
}

impl<'a, R: CryptoRng> RowNoise<'a, R> {
    pub(crate) fn new(stage: &Stage, rng: &'a mut R) -> Self {
        let &[(_, sigma)] = stage.noise.as_slice() else { unreachable!("all rows have the same noise") };
        Self { chunk: Vec::with_capacity(CHUNK), sigma, limit: stage.sum_limit(), rng }
    }

    /// Takes encoded rows.
    pub(crate) fn add(&mut self, mut encoded: &[i32], store: &mut StageWriter<'_>) -> Result<(), Error> {
        while !encoded.is_empty() {
            let (now, later) = encoded.split_at(encoded.len().min(CHUNK - self.chunk.len()));
            self.chunk.extend(now.iter().map(|&q| i64::from(q)));
            encoded = later;
            if self.chunk.len() == CHUNK {
                self.store(store)?;
            }
        }
        Ok(())
    }

    /// Stores what is left.
    pub(crate) fn finish(mut self, store: &mut StageWriter<'_>) -> Result<(), Error> {
        if self.chunk.is_empty() { Ok(()) } else { self.store(store) }
    }

    /// # Privacy
    /// Every row has noise of its own: the mechanism of Theorem 3
    /// (docs/PRIVACY.md#what-a-release-costs), a chunk at a time, with the scale of Theorem M
    /// (docs/PRIVACY.md#mixed-rows).
    fn store(&mut self, store: &mut StageWriter<'_>) -> Result<(), Error> {
        add_noise(&mut self.chunk, self.sigma, self.limit, self.rng);
        store.push(&self.chunk)?;
        self.chunk.clear();
        Ok(())
    }
}

impl<R> Drop for RowNoise<'_, R> {
    fn drop(&mut self) {
        self.chunk.zeroize();
    }
}
