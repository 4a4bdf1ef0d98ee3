//! Trying again: exponential back-off with jitter, for as long as patience lasts.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::thread;
use std::time::{Duration, Instant};

use crate::{Error, Hub};

const FIRST: Duration = Duration::from_millis(250);
const LONGEST: Duration = Duration::from_secs(15);
/// The longest pause that a hub can ask for: more is taken for this.
const LONGEST_ASKED: u64 = 24 * 60 * 60;

/// How long we go on trying since something last went well.
pub(crate) struct Patience<'a> {
    hub: &'a Hub,
    since: Instant,
    tries: u32,
}

impl<'a> Patience<'a> {
    pub(crate) fn new(hub: &'a Hub) -> Self {
        Self { hub, since: Instant::now(), tries: 0 }
    }

    /// Something went well.
    pub(crate) fn renew(&mut self) {
        (self.since, self.tries) = (Instant::now(), 0);
    }

    /// Waits before another try, or gives the error back where another try cannot help or patience
    /// is over.
    pub(crate) fn wait(&mut self, error: Error) -> Result<(), Error> {
        if !error.is_passing() {
            return Err(error);
        }
        let asked = match &error {
            Error::Refused { retry_after, .. } => retry_after.unwrap_or_default(),
            _ => Duration::ZERO,
        };
        let pause = back_off(self.tries, jitter()).max(asked);
        if self.since.elapsed().saturating_add(pause) > self.hub.patience() {
            return Err(error);
        }
        self.hub.tell_retry(&error, pause);
        thread::sleep(pause);
        self.tries += 1;
        Ok(())
    }
}

/// The pause that a `Retry-After` in seconds asks for; a date is not understood.
pub(crate) fn asked_pause(text: &str) -> Option<Duration> {
    let text = text.trim();
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    // What does not fit is longer than anybody waits.
    digits.then(|| Duration::from_secs(text.parse().unwrap_or(u64::MAX).min(LONGEST_ASKED)))
}

/// Between half and all of the pause, which doubles from try to try: clients that failed together
/// come back apart.
fn back_off(tries: u32, jitter: f64) -> Duration {
    let pause = FIRST.saturating_mul(1 << tries.min(10)).min(LONGEST);
    pause.mul_f64(0.5 + 0.5 * jitter)
}

/// Something in [0, 1) that differs between processes; nothing secret hangs on it.
fn jitter() -> f64 {
    (RandomState::new().build_hasher().finish() >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_limit_and_differ() {
        assert_eq!(back_off(0, 1.0), FIRST);
        assert_eq!(back_off(0, 0.0), FIRST / 2);
        assert_eq!(back_off(3, 1.0), FIRST * 8);
        assert_eq!(back_off(60, 1.0), LONGEST);
        assert_eq!(asked_pause(" 2 "), Some(Duration::from_secs(2)));
        for huge in ["86401", &u64::MAX.to_string(), &"9".repeat(40)] {
            assert_eq!(asked_pause(huge), Some(Duration::from_secs(LONGEST_ASKED)), "{huge}");
        }
        for other in ["", "-1", "1.5", "Wed, 21 Oct 2026 07:28:00 GMT"] {
            assert_eq!(asked_pause(other), None, "{other}");
        }
        assert!((0..100).map(|_| jitter()).all(|jitter| (0.0..1.0).contains(&jitter)));
    }
}
