//! The one place where randomness enters: from the operating system, for each release anew.

use potluck_core::mixing::MixingKey;
use potluck_release::signing::SigningKey;
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use zeroize::Zeroizing;

use crate::Error;

/// The generator of a release's noise.
pub type SecureRng = ChaCha20Rng;

/// 32 bytes from the operating system.
#[expect(clippy::disallowed_methods, reason = "this is the one place")]
fn operating_system_bytes() -> Result<Zeroizing<[u8; 32]>, Error> {
    let mut bytes = Zeroizing::new([0; 32]);
    getrandom::fill(&mut *bytes).map_err(Error::Entropy)?;
    Ok(bytes)
}

/// A generator seeded by the operating system.
///
/// # Privacy
/// Every release's noise comes from a generator made here (docs/PRIVACY.md#randomness).
pub fn secure_rng() -> Result<SecureRng, Error> {
    Ok(ChaCha20Rng::from_seed(*operating_system_bytes()?))
}

/// A fresh mixing key for a study. It will be public, but nobody may be able to choose it.
pub fn new_mixing_key() -> Result<MixingKey, Error> {
    Ok(MixingKey::new(*operating_system_bytes()?))
}

/// A fresh signing key.
pub fn new_signing_key() -> Result<SigningKey, Error> {
    Ok(SigningKey::from_seed(&operating_system_bytes()?))
}
