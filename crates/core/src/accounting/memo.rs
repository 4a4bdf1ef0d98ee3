//! What was computed before: an answer takes milliseconds of interval arithmetic, and the same few
//! budgets are asked for again and again.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{LazyLock, Mutex, PoisonError};

/// Answers kept; beyond that all are forgotten.
const MOST: usize = 4096;

/// A table of answers, shared by all threads.
pub(super) struct Memo<K, V>(LazyLock<Mutex<HashMap<K, V>>>);

impl<K: Eq + Hash, V: Copy> Memo<K, V> {
    pub(super) const fn new() -> Self {
        Self(LazyLock::new(Mutex::default))
    }

    /// The answer, computed if it is not known.
    pub(super) fn get(&self, key: K, compute: impl FnOnce() -> V) -> V {
        // A thread that panicked while it held the lock left a whole table.
        let known = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(&answer) = known().get(&key) {
            return answer;
        }
        let answer = compute();
        let mut known = known();
        if known.len() >= MOST {
            known.clear();
        }
        known.insert(key, answer);
        answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_computed_once_and_memory_is_bounded() {
        static MEMO: Memo<usize, usize> = Memo::new();
        assert_eq!(MEMO.get(7, || 49), 49);
        assert_eq!(MEMO.get(7, || unreachable!("it is known")), 49);
        for key in 0..3 * MOST {
            assert_eq!(MEMO.get(key, || key * key), key * key);
            assert!(MEMO.0.lock().is_ok_and(|known| known.len() <= MOST));
        }
    }
}
