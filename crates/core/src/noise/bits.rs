//! Random bits, fetched from a generator in bulk.

use rand_core::Rng;
use zeroize::Zeroize;

/// Words fetched first: enough for one sample nearly always.
const FIRST_FETCH: usize = 4;

/// Words fetched at a time once many have been used.
const LARGEST_FETCH: usize = 64;

/// Random bits from a generator, read as little-endian words.
///
/// Each fetch asks the generator for twice as many words as the last, so a single sample leaves few
/// unused and many samples cost few calls. Bits are used from the low end of a word. When fewer are
/// left than asked for, the rest is thrown away, and so are the words left at the end. What is
/// thrown away depends on counts, never on the thrown bits, so what is used stays uniform and
/// independent.
pub(super) struct RandomBits<'r, R: ?Sized> {
    generator: &'r mut R,
    words: [[u8; 8]; LARGEST_FETCH],
    next: usize,
    fetched: usize,
    word: u64,
    left: u32,
}

impl<'r, R: Rng + ?Sized> RandomBits<'r, R> {
    pub(super) fn new(generator: &'r mut R) -> Self {
        Self { generator, words: [[0; 8]; LARGEST_FETCH], next: 0, fetched: 0, word: 0, left: 0 }
    }

    /// 64 random bits. They leave the bits of a word begun alone.
    #[inline]
    fn word(&mut self) -> u64 {
        if self.next == self.fetched {
            self.fetch();
        }
        let word = u64::from_le_bytes(self.words[self.next]);
        self.next += 1;
        word
    }

    #[cold]
    fn fetch(&mut self) {
        self.fetched = (2 * self.fetched).clamp(FIRST_FETCH, LARGEST_FETCH);
        self.next = 0;
        self.generator.fill_bytes(self.words[..self.fetched].as_flattened_mut());
    }

    /// `count` random bits, 1 ≤ `count` ≤ 63.
    #[inline]
    pub(super) fn take(&mut self, count: u32) -> u64 {
        if self.left < count {
            self.word = self.word();
            self.left = u64::BITS;
        }
        let taken = self.word & ((1 << count) - 1);
        self.word >>= count;
        self.left -= count;
        taken
    }

    /// True with probability ½.
    #[inline]
    pub(super) fn coin(&mut self) -> bool {
        self.take(1) == 1
    }

    /// A random digit of `DIGIT_BITS` bits. A digit of a whole word leaves the bits of a word begun
    /// alone.
    #[inline]
    pub(super) fn digit<const DIGIT_BITS: u32>(&mut self) -> u64 {
        const {
            assert!(
                DIGIT_BITS > 0 && u64::BITS.is_multiple_of(DIGIT_BITS),
                "the width of a digit divides 64"
            );
        }
        if DIGIT_BITS == u64::BITS { self.word() } else { self.take(DIGIT_BITS) }
    }

    /// A uniform integer below `n`, 2 ≤ `n` < 2^63, by rejection.
    #[inline]
    pub(super) fn below(&mut self, n: u64) -> u64 {
        let width = u64::BITS - (n - 1).leading_zeros();
        loop {
            let candidate = self.take(width);
            if candidate < n {
                return candidate;
            }
        }
    }
}

impl<R: ?Sized> Drop for RandomBits<'_, R> {
    fn drop(&mut self) {
        self.words[..self.fetched].as_flattened_mut().zeroize();
        self.word.zeroize();
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use rand_chacha::ChaCha20Rng;
    use rand_core::SeedableRng;
    use std::collections::BTreeMap;
    use std::convert::Infallible;

    /// Words to be handed out in order; after them, words that are merely arbitrary.
    pub(in super::super) struct Script {
        words: Vec<u64>,
        served: usize,
    }

    impl Script {
        pub(in super::super) fn new(words: impl IntoIterator<Item = u64>) -> Self {
            Self { words: words.into_iter().collect(), served: 0 }
        }
    }

    impl rand_core::TryRng for Script {
        type Error = Infallible;

        fn try_next_u32(&mut self) -> Result<u32, Infallible> {
            unimplemented!("words are fetched in bulk")
        }

        fn try_next_u64(&mut self) -> Result<u64, Infallible> {
            let beyond = (self.served as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29);
            let word = self.words.get(self.served).copied().unwrap_or(beyond);
            self.served += 1;
            Ok(word)
        }

        fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
            let (words, rest) = bytes.as_chunks_mut();
            assert!(rest.is_empty());
            for word in words {
                *word = self.try_next_u64()?.to_le_bytes();
            }
            Ok(())
        }
    }

    impl RandomBits<'_, Script> {
        /// How many bits were used up, those thrown away within a word included.
        pub(in super::super) fn used(&self) -> u32 {
            let words = self.generator.served - (self.fetched - self.next);
            u64::BITS * words as u32 - self.left
        }
    }

    /// The exact probability of each outcome of `trial`, up to the mass of the bit strings of
    /// length `depth` that do not decide it: every string is tried, none is sampled.
    pub(in super::super) fn exact_masses<T: Ord>(
        depth: u32,
        mut trial: impl FnMut(&mut RandomBits<'_, Script>) -> T,
    ) -> (BTreeMap<T, f64>, f64) {
        assert!(depth < u64::BITS);
        let mut masses = BTreeMap::new();
        let mut undecided = 0.0;
        let mut string = 0_u64; // first bit lowest
        loop {
            let mut script = Script::new([string]);
            let mut bits = RandomBits::new(&mut script);
            let outcome = trial(&mut bits);
            let used = bits.used();
            let length = if used <= depth {
                *masses.entry(outcome).or_insert(0.0) += 0.5_f64.powi(used as i32);
                used
            } else {
                undecided += 0.5_f64.powi(depth as i32);
                depth
            };
            // The next string: the last 0 of those just used becomes 1, and all after it starts
            // again.
            let zeros = !string & ((1 << length) - 1);
            if zeros == 0 {
                return (masses, undecided);
            }
            let last_zero = zeros.ilog2();
            string = string & ((1 << last_zero) - 1) | 1 << last_zero;
        }
    }

    #[track_caller]
    pub(in super::super) fn assert_brackets(lower: f64, undecided: f64, exact: f64) {
        let slack = 1e-12; // of the f64 sums in this test
        assert!(
            lower - slack <= exact && exact <= lower + undecided + slack,
            "{exact} is outside [{lower}, {lower} + {undecided}]"
        );
    }

    #[test]
    fn bulk_words_are_those_of_single_calls() {
        let mut generator = ChaCha20Rng::seed_from_u64(1);
        let mut single = ChaCha20Rng::seed_from_u64(1);
        let mut bits = RandomBits::new(&mut generator);
        for _ in 0..10_000 {
            assert_eq!(bits.digit::<64>(), single.next_u64());
            let word = single.next_u64();
            assert_eq!(bits.take(24), word & 0xFF_FFFF);
            // A word of its own goes past the word begun.
            assert_eq!(bits.digit::<64>(), single.next_u64());
            assert_eq!(bits.take(40), word >> 24);
        }
    }

    #[test]
    fn bits_short_of_a_request_are_thrown_away() {
        let mut script = Script::new([0b1_0110, u64::MAX]);
        let mut bits = RandomBits::new(&mut script);
        assert_eq!(bits.take(3), 0b110);
        assert_eq!(bits.take(60), 0b10);
        assert_eq!(bits.take(2), 0b11); // not the one bit left
        assert_eq!(bits.used(), 66);
    }

    #[test]
    fn fetches_double_up_to_the_largest() {
        let mut script = Script::new([]);
        let mut bits = RandomBits::new(&mut script);
        let mut fetches = Vec::new();
        for _ in 0..200 {
            bits.digit::<64>();
            if bits.next == 1 {
                fetches.push(bits.fetched);
            }
        }
        assert_eq!(fetches, [4, 8, 16, 32, 64, 64, 64]);
    }

    #[test]
    fn integers_below_n_are_equally_likely() {
        for n in 2..=9 {
            let (masses, undecided) = exact_masses(24, |bits| bits.below(n));
            assert!(undecided < 1e-2, "{undecided}");
            assert_eq!(masses.len() as u64, n);
            for mass in masses.values() {
                assert_brackets(*mass, undecided, 1.0 / n as f64);
            }
        }
    }
}
