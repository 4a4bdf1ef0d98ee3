//! The one place where randomness enters: from the operating system, for each stage of a release
//! anew.
//!
//! A seed is a hash of 32 bytes from the operating system and of what is particular to the moment:
//! the process, its clocks, and how many seeds it has made. The proofs rest on the 32 bytes alone.
//! The rest keeps noise from being drawn twice should those bytes come twice, and an answer that
//! cannot be random is refused (docs/PRIVACY.md#randomness).

use std::process;
use std::sync::{Mutex, OnceLock};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use potluck_core::mixing::MixingKey;
use potluck_release::signing::SigningKey;
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use sha2::{Digest, Sha256};
use thiserror::Error;
use zeroize::Zeroizing;

use crate::{Error, lock};

/// The generator of a stage's noise.
pub type SecureRng = ChaCha20Rng;

type Bytes = Zeroizing<[u8; 32]>;

/// Why the operating system's randomness cannot be used.
#[derive(Debug, Error)]
pub enum Unusable {
    /// There was no answer.
    #[error("{0}")]
    Failed(getrandom::Error),
    /// The answer was nothing but zeros.
    #[error("its answer was nothing but zeros")]
    Zeros,
    /// The answer was that of the time before.
    #[error("its answer was the same as the last one")]
    Repeated,
}

/// What the seeds of a process are made for; no two purposes share a seed.
#[derive(Clone, Copy)]
enum Purpose {
    Noise,
    MixingKey,
    SigningKey,
}

impl Purpose {
    fn name(self) -> &'static str {
        match self {
            Self::Noise => "potluck seed: noise",
            Self::MixingKey => "potluck seed: mixing key",
            Self::SigningKey => "potluck seed: signing key",
        }
    }
}

/// What tells one call of one process from any other: no secret.
#[derive(Clone, Copy)]
struct Moment {
    process: u32,
    /// Nanoseconds since 1970.
    wall_clock: u128,
    /// Nanoseconds since the process first asked.
    running: u128,
}

impl Moment {
    fn now() -> Self {
        static FIRST: OnceLock<Instant> = OnceLock::new();
        Self {
            process: process::id(),
            // A clock that is set before 1970 counts backwards from there.
            wall_clock: SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .unwrap_or_else(|before| before.duration())
                .as_nanos(),
            running: FIRST.get_or_init(Instant::now).elapsed().as_nanos(),
        }
    }
}

/// What a process remembers of the seeds it has made.
struct Seeds {
    made: u64,
    /// Hash of the source's last answer: enough to notice it again.
    last_answer: Option<[u8; 32]>,
}

impl Seeds {
    const fn new() -> Self {
        Self { made: 0, last_answer: None }
    }

    /// A seed from what `source` answers.
    ///
    /// # Privacy
    /// If the answer is uniform and secret, so is the seed, SHA-256 taken as a random oracle;
    /// whatever the answer is, seeds of different moments, purposes or counts differ: "What the
    /// proofs rest on" and "What the rest of the hash is for" in docs/PRIVACY.md#randomness.
    fn next(
        &mut self,
        purpose: Purpose,
        moment: Moment,
        source: impl FnOnce(&mut [u8; 32]) -> Result<(), getrandom::Error>,
    ) -> Result<Bytes, Error> {
        let mut answer = Zeroizing::new([0; 32]);
        source(&mut answer).map_err(|error| Error::Entropy(Unusable::Failed(error)))?;
        if *answer == [0; 32] {
            return Err(Error::Entropy(Unusable::Zeros));
        }
        let seen = Some(Sha256::digest(*answer).into());
        if self.last_answer == seen {
            return Err(Error::Entropy(Unusable::Repeated));
        }
        self.last_answer = seen;
        self.made += 1;
        // Every field but the name has a fixed length, and the name ends with a zero.
        let hash = Sha256::new()
            .chain_update(purpose.name())
            .chain_update([0])
            .chain_update(*answer)
            .chain_update(moment.process.to_le_bytes())
            .chain_update(moment.wall_clock.to_le_bytes())
            .chain_update(moment.running.to_le_bytes())
            .chain_update(self.made.to_le_bytes());
        Ok(Zeroizing::new(hash.finalize().into()))
    }
}

/// 32 bytes from the operating system.
#[expect(clippy::disallowed_methods, reason = "this is the one place")]
fn operating_system(bytes: &mut [u8; 32]) -> Result<(), getrandom::Error> {
    getrandom::fill(bytes)
}

/// A seed that was never used and never will be again.
fn seed(purpose: Purpose) -> Result<Bytes, Error> {
    static SEEDS: Mutex<Seeds> = Mutex::new(Seeds::new());
    lock(&SEEDS).next(purpose, Moment::now(), operating_system)
}

/// A generator seeded by the operating system.
///
/// # Privacy
/// The noise of every stage of every release comes from a generator of its own, made here. Theorem
/// 1 (docs/PRIVACY.md#the-deviate-is-exactly-normal) takes its bits for unbiased and independent;
/// what that rests on stands in docs/PRIVACY.md#what-the-proof-assumes and
/// docs/PRIVACY.md#randomness.
pub fn secure_rng() -> Result<SecureRng, Error> {
    Ok(ChaCha20Rng::from_seed(*seed(Purpose::Noise)?))
}

/// A fresh mixing key for a study. It will be public, but nobody may be able to choose it.
pub fn new_mixing_key() -> Result<MixingKey, Error> {
    Ok(MixingKey::new(*seed(Purpose::MixingKey)?))
}

/// A fresh signing key.
pub fn new_signing_key() -> Result<SigningKey, Error> {
    Ok(SigningKey::from_seed(&seed(Purpose::SigningKey)?))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use rand_core::Rng;

    use super::*;

    const MOMENT: Moment = Moment { process: 7, wall_clock: 1_700_000_000_000_000_000, running: 5_000 };

    fn answering(byte: u8) -> impl FnOnce(&mut [u8; 32]) -> Result<(), getrandom::Error> {
        move |bytes| {
            bytes.fill(byte);
            Ok(())
        }
    }

    fn first(purpose: Purpose, moment: Moment, answer: u8) -> [u8; 32] {
        *Seeds::new().next(purpose, moment, answering(answer)).unwrap()
    }

    #[test]
    fn a_source_that_fails_is_an_error() {
        let failed =
            Seeds::new().next(Purpose::Noise, MOMENT, |_| Err(getrandom::Error::UNSUPPORTED)).err().unwrap();
        assert!(matches!(failed, Error::Entropy(Unusable::Failed(_))));
        assert!(failed.to_string().contains("no noise was drawn"), "{failed}");
    }

    #[test]
    fn answers_that_cannot_be_random_are_refused() {
        let mut seeds = Seeds::new();
        let zeros = seeds.next(Purpose::Noise, MOMENT, answering(0)).err();
        assert!(matches!(zeros, Some(Error::Entropy(Unusable::Zeros))));
        // As a source that does nothing would leave the bytes.
        let idle = seeds.next(Purpose::Noise, MOMENT, |_| Ok(())).err();
        assert!(matches!(idle, Some(Error::Entropy(Unusable::Zeros))));
        seeds.next(Purpose::Noise, MOMENT, answering(1)).unwrap();
        for purpose in [Purpose::Noise, Purpose::MixingKey, Purpose::SigningKey] {
            let later = Moment { running: MOMENT.running + 1, ..MOMENT };
            let repeated = seeds.next(purpose, later, answering(1)).err();
            assert!(matches!(repeated, Some(Error::Entropy(Unusable::Repeated))));
        }
        seeds.next(Purpose::Noise, MOMENT, answering(2)).unwrap();
    }

    /// The one that matters is the answer itself: all else is public, more or less.
    #[test]
    fn a_seed_depends_on_the_answer_and_on_everything_else() {
        let seeds = [
            first(Purpose::Noise, MOMENT, 1),
            first(Purpose::Noise, MOMENT, 2),
            first(Purpose::MixingKey, MOMENT, 1),
            first(Purpose::SigningKey, MOMENT, 1),
            first(Purpose::Noise, Moment { process: 8, ..MOMENT }, 1),
            first(Purpose::Noise, Moment { wall_clock: MOMENT.wall_clock + 1, ..MOMENT }, 1),
            first(Purpose::Noise, Moment { running: MOMENT.running + 1, ..MOMENT }, 1),
        ];
        assert_eq!(HashSet::from(seeds).len(), seeds.len());
        assert_eq!(first(Purpose::Noise, MOMENT, 1), seeds[0], "and on nothing but that");
        for bit in 0..256 {
            let flipped = |bytes: &mut [u8; 32]| {
                bytes.fill(1);
                bytes[bit / 8] ^= 1 << (bit % 8);
                Ok(())
            };
            assert_ne!(*Seeds::new().next(Purpose::Noise, MOMENT, flipped).unwrap(), seeds[0], "bit {bit}");
        }
    }

    /// Both copies remember the same and are given the same answer; a fork has another process id,
    /// and a machine that is started twice from one image another time.
    #[test]
    fn copies_of_a_process_that_get_the_same_answer_have_other_seeds() {
        let copied = |moment: Moment| {
            let mut seeds = Seeds::new();
            seeds.next(Purpose::Noise, MOMENT, answering(1)).unwrap();
            *seeds.next(Purpose::Noise, moment, answering(2)).unwrap()
        };
        assert_eq!(copied(MOMENT), copied(MOMENT));
        assert_ne!(copied(MOMENT), copied(Moment { process: 8, ..MOMENT }));
        assert_ne!(copied(MOMENT), copied(Moment { wall_clock: MOMENT.wall_clock + 1, ..MOMENT }));
    }

    /// A source that goes back and forth between two answers, at a clock that stands still.
    #[test]
    fn answers_that_come_again_later_give_other_seeds() {
        let mut seeds = Seeds::new();
        let made: HashSet<[u8; 32]> =
            (0..100).map(|i| *seeds.next(Purpose::Noise, MOMENT, answering(1 + i % 2)).unwrap()).collect();
        assert_eq!(made.len(), 100);
    }

    /// Every bit of 4096 seeds is set in half of them, give or take 7 standard deviations: a false
    /// alarm in fewer than one of 10⁹ runs, over all 256 bits.
    #[test]
    fn seeds_of_this_process_are_balanced_and_never_the_same() {
        let mut seen = HashSet::new();
        let mut set = [0_i32; 256];
        for _ in 0..4096 {
            let seed = *seed(Purpose::Noise).unwrap();
            (0..256).for_each(|bit| set[bit] += i32::from(seed[bit / 8] >> (bit % 8) & 1));
            seen.insert(seed);
        }
        assert_eq!(seen.len(), 4096);
        let deviation = 4096_f64.sqrt() / 2.0;
        assert!(set.iter().all(|&count| f64::from(count - 2048).abs() < 7.0 * deviation));
        assert_ne!(secure_rng().unwrap().next_u64(), secure_rng().unwrap().next_u64());
        assert_ne!(new_mixing_key().unwrap(), new_mixing_key().unwrap());
    }
}
