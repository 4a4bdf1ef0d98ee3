//! SHA-256 of hex(key) ‖ ":" ‖ id for many ids.
//!
//! The 64 digits of the key fill the first block, so its work is done once. With AVX-512 the ids
//! that fit one more block are hashed sixteen at a time; elsewhere, and for longer ids, one by one,
//! with the processor's own instructions where it has them.

use pulp::NullaryFnOnce;
use sha2::block_api::compress256;
use sha2::{Digest, Sha256};

use super::SubjectDigest;
use super::lanes::{LANES, VectorUnit};

/// The longest id that fits a block with the colon before it, and the end mark and the length after
/// it.
const SHORT: usize = 64 - 1 - 9;

/// The state that SHA-256 starts from.
const START: [u32; 8] =
    [0x6a09_e667, 0xbb67_ae85, 0x3c6e_f372, 0xa54f_f53a, 0x510e_527f, 0x9b05_688c, 0x1f83_d9ab, 0x5be0_cd19];

#[rustfmt::skip]
const ROUNDS: [u32; 64] = [
    0x428a_2f98, 0x7137_4491, 0xb5c0_fbcf, 0xe9b5_dba5, 0x3956_c25b, 0x59f1_11f1, 0x923f_82a4, 0xab1c_5ed5,
    0xd807_aa98, 0x1283_5b01, 0x2431_85be, 0x550c_7dc3, 0x72be_5d74, 0x80de_b1fe, 0x9bdc_06a7, 0xc19b_f174,
    0xe49b_69c1, 0xefbe_4786, 0x0fc1_9dc6, 0x240c_a1cc, 0x2de9_2c6f, 0x4a74_84aa, 0x5cb0_a9dc, 0x76f9_88da,
    0x983e_5152, 0xa831_c66d, 0xb003_27c8, 0xbf59_7fc7, 0xc6e0_0bf3, 0xd5a7_9147, 0x06ca_6351, 0x1429_2967,
    0x27b7_0a85, 0x2e1b_2138, 0x4d2c_6dfc, 0x5338_0d13, 0x650a_7354, 0x766a_0abb, 0x81c2_c92e, 0x9272_2c85,
    0xa2bf_e8a1, 0xa81a_664b, 0xc24b_8b70, 0xc76c_51a3, 0xd192_e819, 0xd699_0624, 0xf40e_3585, 0x106a_a070,
    0x19a4_c116, 0x1e37_6c08, 0x2748_774c, 0x34b0_bcb5, 0x391c_0cb3, 0x4ed8_aa4a, 0x5b9c_ca4f, 0x682e_6ff3,
    0x748f_82ee, 0x78a5_636f, 0x84c8_7814, 0x8cc7_0208, 0x90be_fffa, 0xa450_6ceb, 0xbef9_a3f7, 0xc671_78f2,
];

/// SHA-256 after the 64 digits of a key.
#[derive(Clone)]
pub(super) struct Prefix {
    state: [u32; 8],
    /// The same, and the colon, for ids of any length.
    general: Sha256,
}

impl Prefix {
    pub(super) fn new(digits: &[u8; 64]) -> Self {
        let mut state = START;
        compress256(&mut state, &[*digits]);
        Self { state, general: Sha256::new_with_prefix(digits).chain_update(b":") }
    }

    /// The digest of one id.
    pub(super) fn subject(&self, id: &[u8]) -> SubjectDigest {
        if id.len() > SHORT {
            return SubjectDigest(self.general.clone().chain_update(id).finalize().into());
        }
        let mut state = self.state;
        compress256(&mut state, &[last_block(id)]);
        digest(state)
    }

    /// Appends the digests of many ids.
    pub(super) fn add_subjects(&self, ids: &[&[u8]], digests: &mut Vec<SubjectDigest>) {
        #[cfg(target_arch = "x86_64")]
        if let Some(simd) = pulp::x86::V4::try_new() {
            return simd.vectorize(InLanes { prefix: self, ids, unit: simd, digests });
        }
        digests.extend(ids.iter().map(|id| self.subject(id)));
    }
}

/// The block that ends the message: colon, id, end mark, zeros, length in bits.
fn last_block(id: &[u8]) -> [u8; 64] {
    let mut block = [0; 64];
    fill(&mut block, id);
    block[56..].copy_from_slice(&bits(id).to_be_bytes());
    block
}

/// Writes colon, id and end mark into an empty block.
#[inline(always)]
fn fill(block: &mut [u8; 64], id: &[u8]) {
    block[0] = b':';
    // Most ids are short: two copies of known length, which may overlap, are faster than one of any
    // length.
    match id.len() {
        8..=16 => {
            block[1..9].copy_from_slice(&id[..8]);
            block[id.len() - 7..=id.len()].copy_from_slice(&id[id.len() - 8..]);
        }
        4..=7 => {
            block[1..5].copy_from_slice(&id[..4]);
            block[id.len() - 3..=id.len()].copy_from_slice(&id[id.len() - 4..]);
        }
        length => block[1..=length].copy_from_slice(id),
    }
    block[1 + id.len()] = 0x80;
}

/// Length of the message in bits.
fn bits(id: &[u8]) -> u64 {
    8 * (64 + 1 + id.len() as u64)
}

fn digest(state: [u32; 8]) -> SubjectDigest {
    let mut bytes = [0; 32];
    for (bytes, word) in bytes.as_chunks_mut().0.iter_mut().zip(state) {
        *bytes = word.to_be_bytes();
    }
    SubjectDigest(bytes)
}

/// Hashes sixteen ids at a time.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
struct InLanes<'a, U> {
    prefix: &'a Prefix,
    ids: &'a [&'a [u8]],
    unit: U,
    digests: &'a mut Vec<SubjectDigest>,
}

impl<U: VectorUnit> NullaryFnOnce for InLanes<'_, U> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let digests = self.digests;
        let (whole, rest) = self.ids.as_chunks::<LANES>();
        for ids in whole {
            if ids.iter().all(|id| id.len() <= SHORT) {
                digests.extend(compress_lanes(self.unit, &self.prefix.state, ids));
            } else {
                digests.extend(ids.iter().map(|id| self.prefix.subject(id)));
            }
        }
        digests.extend(rest.iter().map(|id| self.prefix.subject(id)));
    }
}

/// The digests of sixteen short ids.
#[inline(always)]
fn compress_lanes<U: VectorUnit>(unit: U, start: &[u32; 8], ids: &[&[u8]; LANES]) -> [SubjectDigest; LANES] {
    let mut schedule = load_lanes(unit, ids);
    let mut first = [schedule[0]; 8];
    for (vector, &word) in first.iter_mut().zip(start) {
        *vector = unit.load(&[word; LANES]);
    }
    let mut state = first;
    for (sixteen, constants) in ROUNDS.as_chunks().0.iter().enumerate() {
        if sixteen > 0 {
            extend_schedule(unit, &mut schedule);
        }
        sixteen_rounds(unit, &mut state, &schedule, constants);
    }
    let mut digests = [SubjectDigest([0; 32]); LANES];
    for (at, (&first, last)) in first.iter().zip(state).enumerate() {
        let mut words = [0; LANES];
        unit.store(unit.add(first, last), &mut words);
        for (digest, word) in digests.iter_mut().zip(words) {
            digest.0.as_chunks_mut().0[at] = word.to_be_bytes();
        }
    }
    digests
}

/// The last blocks of the messages, word by word.
#[inline(always)]
fn load_lanes<U: VectorUnit>(unit: U, ids: &[&[u8]; LANES]) -> [U::Vector; 16] {
    let mut blocks = [[0_u8; 64]; LANES];
    let mut longest = 0;
    for (block, id) in blocks.iter_mut().zip(ids) {
        fill(block, id);
        longest = longest.max(id.len());
    }
    let mut words = [[0; LANES]; 16];
    for (at, words) in words.iter_mut().enumerate().take((longest + 2).div_ceil(4)) {
        for (word, block) in words.iter_mut().zip(&blocks) {
            *word = u32::from_be_bytes(block.as_chunks().0[at]);
        }
    }
    // The lengths are below 2³² bits, and nothing else reaches the last words.
    for (word, id) in words[15].iter_mut().zip(ids) {
        *word = bits(id) as u32;
    }
    let mut vectors = [unit.load(&words[0]); 16];
    for (vector, words) in vectors.iter_mut().zip(&words) {
        *vector = unit.load(words);
    }
    vectors
}

/// Calls a macro for each of sixteen steps: a loop would keep vectors in memory instead of
/// registers.
macro_rules! sixteen {
    ($step:ident) => {
        $step!(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)
    };
}

/// The next sixteen words of the message schedule.
#[inline(always)]
fn extend_schedule<U: VectorUnit>(unit: U, w: &mut [U::Vector; 16]) {
    macro_rules! step {
        ($($at:literal),*) => {$(
            let (early, recent) = (w[($at + 1) % 16], w[($at + 14) % 16]);
            let early =
                unit.xor(unit.xor(unit.rotate::<25>(early), unit.rotate::<14>(early)), unit.shift::<3>(early));
            let recent =
                unit.xor(unit.xor(unit.rotate::<15>(recent), unit.rotate::<13>(recent)), unit.shift::<10>(recent));
            w[$at] = unit.add(unit.add(w[$at], early), unit.add(w[($at + 9) % 16], recent));
        )*};
    }
    sixteen!(step);
}

#[inline(always)]
fn sixteen_rounds<U: VectorUnit>(
    unit: U,
    state: &mut [U::Vector; 8],
    schedule: &[U::Vector; 16],
    constants: &[u32; 16],
) {
    let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = *state;
    macro_rules! step {
        ($($at:literal),*) => {$(
            let sum_e = unit.xor(unit.xor(unit.rotate::<26>(e), unit.rotate::<21>(e)), unit.rotate::<7>(e));
            let choice = unit.xor(g, unit.and(e, unit.xor(f, g)));
            let constant = unit.load(&[constants[$at]; LANES]);
            let t = unit.add(unit.add(h, sum_e), unit.add(choice, unit.add(constant, schedule[$at])));
            let sum_a = unit.xor(unit.xor(unit.rotate::<30>(a), unit.rotate::<19>(a)), unit.rotate::<10>(a));
            let majority = unit.xor(unit.and(a, b), unit.and(c, unit.xor(a, b)));
            (h, g, f, e) = (g, f, e, unit.add(d, t));
            (d, c, b, a) = (c, b, a, unit.add(t, unit.add(sum_a, majority)));
        )*};
    }
    sixteen!(step);
    *state = [a, b, c, d, e, f, g, h];
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mixing::lanes::Arrays;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_way_of_hashing_is_sha_256(
            key: [u8; 32],
            ids in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..70), 0..60),
            short in any::<bool>(),
        ) {
            let digits = hex::encode(key);
            let prefix = Prefix::new(digits.as_bytes().try_into().unwrap());
            let longest = if short { SHORT } else { 70 };
            let ids: Vec<&[u8]> = ids.iter().map(|id| &id[..id.len().min(longest)]).collect();
            let plain = |id: &&[u8]| -> [u8; 32] {
                Sha256::new_with_prefix(&digits).chain_update(b":").chain_update(id).finalize().into()
            };
            let expected: Vec<[u8; 32]> = ids.iter().map(plain).collect();
            let one_by_one = ids.iter().map(|id| prefix.subject(id)).collect();
            let (mut best, mut arrays) = (Vec::new(), Vec::new());
            prefix.add_subjects(&ids, &mut best);
            InLanes { prefix: &prefix, ids: &ids, unit: Arrays, digests: &mut arrays }.call();
            for digests in [best, one_by_one, arrays] {
                prop_assert!(digests.iter().map(|digest| digest.0).eq(expected.iter().copied()));
            }
        }
    }
}
