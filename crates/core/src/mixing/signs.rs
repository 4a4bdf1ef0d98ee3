//! Signs of the Bernoulli matrix: ChaCha12 key streams of sixteen subjects side by side, one a
//! vector lane.
//!
//! The stream of a subject is that of [`SubjectDigest::bernoulli_signs`]; here it comes in blocks,
//! for many subjects at once, so that signs stay in cache and are never stored.

use super::SubjectDigest;
use super::lanes::{LANES, VectorUnit};

/// Words of 32 signs in a block of the key stream.
pub(super) const WORDS: usize = 16;

/// Mixed rows that a block of the key stream has signs for.
pub(super) const BLOCK: usize = 32 * WORDS;

/// "expand 32-byte k", as the cipher has it.
const CONSTANTS: [u32; 4] = [0x6170_7865, 0x3320_646e, 0x7962_2d32, 0x6b20_6574];

const DOUBLE_ROUNDS: usize = 6;

/// The keys of sixteen subjects: word w of subject l is `[w][l]`.
#[derive(Clone, Copy)]
pub(super) struct Keys([[u32; LANES]; 8]);

impl Keys {
    /// The keys of at most sixteen subjects; the others are zero.
    pub(super) fn new(subjects: &[SubjectDigest]) -> Self {
        let mut keys = [[0; LANES]; 8];
        for (lane, subject) in subjects.iter().enumerate() {
            for (word, bytes) in keys.iter_mut().zip(subject.0.as_chunks::<4>().0) {
                word[lane] = u32::from_le_bytes(*bytes);
            }
        }
        Self(keys)
    }

    /// Block `counter` of the key streams, computed by `unit`: bit i of word w of subject l,
    /// `[w][l]`, is the sign in mixed row 512·counter + 32w + i.
    #[inline(always)]
    pub(super) fn block<U: VectorUnit>(&self, unit: U, counter: u64) -> [U::Vector; WORDS] {
        let word = |w: usize| match w {
            0..4 => unit.load(&[CONSTANTS[w]; LANES]),
            4..12 => unit.load(&self.0[w - 4]),
            12 => unit.load(&[counter as u32; LANES]),
            13 => unit.load(&[(counter >> 32) as u32; LANES]),
            _ => unit.load(&[0; LANES]),
        };
        let mut state: [U::Vector; WORDS] = std::array::from_fn(word);
        for _ in 0..DOUBLE_ROUNDS {
            quarter_rounds(unit, &mut state, [[0, 4, 8, 12], [1, 5, 9, 13], [2, 6, 10, 14], [3, 7, 11, 15]]);
            quarter_rounds(unit, &mut state, [[0, 5, 10, 15], [1, 6, 11, 12], [2, 7, 8, 13], [3, 4, 9, 14]]);
        }
        std::array::from_fn(|w| unit.add(state[w], word(w)))
    }
}

#[inline(always)]
fn quarter_rounds<U: VectorUnit>(unit: U, state: &mut [U::Vector; WORDS], places: [[usize; 4]; 4]) {
    for [a, b, c, d] in places {
        state[a] = unit.add(state[a], state[b]);
        state[d] = unit.rotate::<16>(unit.xor(state[d], state[a]));
        state[c] = unit.add(state[c], state[d]);
        state[b] = unit.rotate::<12>(unit.xor(state[b], state[c]));
        state[a] = unit.add(state[a], state[b]);
        state[d] = unit.rotate::<8>(unit.xor(state[d], state[a]));
        state[c] = unit.add(state[c], state[d]);
        state[b] = unit.rotate::<7>(unit.xor(state[b], state[c]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mixing::MixingKey;
    use crate::mixing::lanes::Arrays;

    #[test]
    fn blocks_are_those_of_the_key_stream_of_each_subject() {
        let key = MixingKey::new([7; 32]);
        let subjects: Vec<SubjectDigest> = (0..LANES as u8).map(|id| key.subject(&[id])).collect();
        let keys = Keys::new(&subjects);
        for counter in 0..5 {
            let block = keys.block(Arrays, counter);
            for (lane, subject) in subjects.iter().enumerate() {
                let mut words = vec![0; (counter as usize + 1) * WORDS / 2];
                subject.bernoulli_signs(&mut words);
                let expected = &words[counter as usize * WORDS / 2..];
                for (pair, &word) in block.as_chunks::<2>().0.iter().zip(expected) {
                    assert_eq!(u64::from(pair[0][lane]) | u64::from(pair[1][lane]) << 32, word);
                }
            }
        }
    }
}
