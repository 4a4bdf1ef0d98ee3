//! The sums over random halves of the rows that show entries to be small integers.

use curve25519_dalek::scalar::Scalar;
use rand_chacha::ChaCha20Rng;
use zeroize::Zeroizing;

use crate::bases::wide_integer;
use crate::randomness::{integer_mask, uniform, weight};

/// The prover's side: for each repetition, masks and then masked sums of blinds and entries.
pub(crate) struct Sums {
    blinds_each: usize,
    entries_each: usize,
    pub(crate) blinds: Zeroizing<Vec<Scalar>>,
    pub(crate) entries: Zeroizing<Vec<i128>>,
}

impl Sums {
    /// The masks, uniform.
    ///
    /// # Privacy
    /// Blinds are hidden perfectly; a sum of n entries is hidden but for n·√C·2⁻¹²⁰
    /// (docs/EXCHANGE.md#theorem).
    pub(crate) fn masks(
        repetitions: usize,
        blinds_each: usize,
        entries_each: usize,
        generator: &mut ChaCha20Rng,
    ) -> Self {
        let mut sums = Self::zero(repetitions, blinds_each, entries_each);
        for repetition in 0..repetitions {
            for blind in &mut sums.blinds[repetition * blinds_each..][..blinds_each] {
                *blind = uniform(generator);
            }
            for entry in &mut sums.entries[repetition * entries_each..][..entries_each] {
                *entry = integer_mask(generator);
            }
        }
        sums
    }

    fn zero(repetitions: usize, blinds_each: usize, entries_each: usize) -> Self {
        Self {
            blinds_each,
            entries_each,
            blinds: Zeroizing::new(vec![Scalar::ZERO; repetitions * blinds_each]),
            entries: Zeroizing::new(vec![0; repetitions * entries_each]),
        }
    }

    /// Sums of nothing yet, of the same shape.
    pub(crate) fn partial(&self) -> Self {
        Self::zero(self.repetitions(), self.blinds_each, self.entries_each)
    }

    fn repetitions(&self) -> usize {
        self.blinds.len() / self.blinds_each
    }

    /// Adds a row to the repetitions whose public bit is set.
    pub(crate) fn add(&mut self, bits: u128, blinds: &[&Scalar], entries: &[i64]) {
        for repetition in (0..self.repetitions()).filter(|repetition| bits >> repetition & 1 == 1) {
            let sums = &mut self.blinds[repetition * self.blinds_each..][..self.blinds_each];
            for (sum, blind) in sums.iter_mut().zip(blinds) {
                *sum += *blind;
            }
            let sums = &mut self.entries[repetition * self.entries_each..][..self.entries_each];
            for (sum, entry) in sums.iter_mut().zip(entries) {
                *sum += i128::from(*entry);
            }
        }
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        for (sum, other) in self.blinds.iter_mut().zip(&*other.blinds) {
            *sum += other;
        }
        for (sum, other) in self.entries.iter_mut().zip(&*other.entries) {
            *sum += other;
        }
    }

    /// Blinds and entries of each repetition.
    pub(crate) fn each(&self) -> impl Iterator<Item = (&[Scalar], &[i128])> {
        self.blinds.chunks(self.blinds_each).zip(self.entries.chunks(self.entries_each))
    }

    /// Entries as scalars.
    pub(crate) fn scalars(entries: &[i128]) -> Zeroizing<Vec<Scalar>> {
        Zeroizing::new(entries.iter().map(|&entry| wide_integer(entry)).collect())
    }
}

/// The verifier's private weights of the sums' equations: one a repetition times one a column.
pub(crate) struct SumWeights {
    pub(crate) repetitions: Vec<Scalar>,
    pub(crate) columns: Vec<Scalar>,
}

impl SumWeights {
    pub(crate) fn new(repetitions: usize, columns: usize, generator: &mut ChaCha20Rng) -> Self {
        let mut weights = |count: usize| (0..count).map(|_| weight(generator)).collect();
        Self { repetitions: weights(repetitions), columns: weights(columns) }
    }

    /// The weight of a row with these bits, columns aside.
    pub(crate) fn row(&self, bits: u128) -> Scalar {
        (0_u32..)
            .zip(&self.repetitions)
            .filter(|(repetition, _)| bits >> repetition & 1 == 1)
            .map(|(_, weight)| weight)
            .sum()
    }
}
