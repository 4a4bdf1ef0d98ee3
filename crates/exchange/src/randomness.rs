//! Where masks, keys and noise come from: docs/EXCHANGE.md#where-randomness-comes-from.

use curve25519_dalek::scalar::Scalar;
use rand_chacha::ChaCha20Rng;
use rand_core::{Rng, SeedableRng};
use zeroize::{Zeroize, Zeroizing};

use crate::terms::{MASK_BITS, Terms};
use crate::transcript::Transcript;

/// 32 fresh, secret bytes of the operating system, for one step of one exchange. Used up by it.
pub struct Entropy(Zeroizing<[u8; 32]>);

impl Entropy {
    /// From bytes that nobody else knows and nothing else was made from.
    ///
    /// # Privacy
    /// Everything that protects rows in a message follows from these bytes, SHAKE256 taken for a
    /// random oracle: docs/EXCHANGE.md#theorem.
    pub fn new(bytes: Zeroizing<[u8; 32]>) -> Self {
        Self(bytes)
    }
}

/// What a step of an exchange derives its generators from.
pub(crate) struct Randomness(Transcript);

/// What a derivation is for, and what it depends on beside the entropy.
pub(crate) struct Context<'a> {
    pub(crate) role: &'static str,
    pub(crate) terms: &'a Terms,
    pub(crate) recipient: Option<u16>,
    /// Hash of the own rows.
    pub(crate) rows: &'a [u8],
    /// Hash of the partner's message.
    pub(crate) partner: &'a [u8],
}

impl Randomness {
    /// # Privacy
    /// The same entropy never meets other rows, terms or another message of the partner under the
    /// same masks or noise: all of them are absorbed.
    pub(crate) fn new(entropy: Entropy, context: &Context<'_>) -> Self {
        let Entropy(bytes) = entropy;
        let mut state = Transcript::empty();
        state.item("potluck exchange randomness 1", context.role.as_bytes());
        state.item("entropy", bytes.as_slice());
        state.item("terms", context.terms.bytes());
        state.item("pair", &pair(context.terms, context.recipient));
        state.item("rows", context.rows);
        state.item("partner", context.partner);
        Self(state)
    }

    pub(crate) fn purpose(&self, name: &str) -> Streams {
        let mut key = Zeroizing::new([0; 32]);
        self.0.squeeze("purpose", name).fill(key.as_mut_slice());
        Streams(key)
    }
}

/// The sender and this recipient, as transcripts bind them; nothing where no pair is meant.
pub(crate) fn pair(terms: &Terms, recipient: Option<u16>) -> Vec<u8> {
    let indices = recipient.map(|recipient| [terms.sender().index, recipient]);
    indices.iter().flatten().flat_map(|index| index.to_le_bytes()).collect()
}

/// The generators of one purpose, one for each number.
pub(crate) struct Streams(Zeroizing<[u8; 32]>);

impl Streams {
    pub(crate) fn stream(&self, number: u64) -> ChaCha20Rng {
        let mut generator = ChaCha20Rng::from_seed(*self.0);
        generator.set_stream(number);
        generator
    }
}

/// A uniform scalar.
pub(crate) fn uniform(generator: &mut ChaCha20Rng) -> Scalar {
    let mut wide = [0; 64];
    generator.fill_bytes(&mut wide);
    let scalar = Scalar::from_bytes_mod_order_wide(&wide);
    wide.zeroize();
    scalar
}

/// A uniform integer in [0, 2¹²⁰).
pub(crate) fn integer_mask(generator: &mut ChaCha20Rng) -> i128 {
    let mut bytes = [0; 16];
    generator.fill_bytes(&mut bytes[..usize::from(MASK_BITS / 8)]);
    let mask = i128::from_le_bytes(bytes);
    bytes.zeroize();
    mask
}

/// A uniform integer in [0, 2¹²⁸), as a weight.
pub(crate) fn weight(generator: &mut ChaCha20Rng) -> Scalar {
    let mut bytes = [0; 16];
    generator.fill_bytes(&mut bytes);
    Scalar::from(u128::from_le_bytes(bytes))
}
