//! Attacks on the exchange, and the exchange as it should be: docs/EXCHANGE.md#tests.

mod forger;
mod honest;
mod known_answers;
mod offers;
mod replies;
mod sessions;
mod sources;

use std::io::Cursor;

use potluck_core::noise::Sigma;

use crate::{Entropy, Participant, Terms};

pub(crate) const SENDER: u16 = 1;
pub(crate) const RECIPIENT: u16 = 4;

pub(crate) fn party(index: u16, columns: usize, norm: u32) -> Participant {
    let columns = u16::try_from(columns).expect("few columns");
    Participant { index, columns, norm, releases: [7; 32], nonce: [index as u8; 32] }
}

pub(crate) fn sigma(scale: u64) -> Sigma {
    Sigma::new(scale).expect("in range")
}

/// Terms of the sender and one recipient.
pub(crate) fn terms(people: usize, sender: (usize, u32), recipient: (usize, u32), scale: u64) -> Terms {
    weak_terms(people, sender, recipient, scale, 128)
}

/// [`terms`] with fewer repetitions of the proof that entries are integers.
pub(crate) fn weak_terms(
    people: usize,
    sender: (usize, u32),
    recipient: (usize, u32),
    scale: u64,
    repetitions: u16,
) -> Terms {
    let to = vec![(party(RECIPIENT, recipient.0, recipient.1), sigma(scale))];
    let from = party(SENDER, sender.0, sender.1);
    Terms::with_repetitions([1; 32], 0, people as u64, from, to, repetitions).expect("valid terms")
}

pub(crate) fn entropy(seed: u64) -> Entropy {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    Entropy::new(bytes.into())
}

pub(crate) fn bytes_of(rows: &[Vec<i64>]) -> Cursor<Vec<u8>> {
    Cursor::new(rows.iter().flatten().flat_map(|value| (*value as i16).to_le_bytes()).collect())
}

/// Rows that fill their ball well, and some at its ends.
pub(crate) fn rows(people: usize, columns: usize, norm: u32, seed: usize) -> Vec<Vec<i64>> {
    let root = i64::from(norm.isqrt());
    let fair = i64::from((norm / columns as u32).isqrt());
    (0..people)
        .map(|s| match (s + seed) % 5 {
            0 => (0..columns).map(|j| if j == s % columns { root } else { 0 }).collect(),
            1 => (0..columns).map(|j| if j == s % columns { -root } else { 0 }).collect(),
            2 => vec![0; columns],
            _ => (0..columns)
                .map(|j| (s * 7919 + j * 104_729 + seed * 31) as i64 % (2 * fair + 1) - fair)
                .collect(),
        })
        .collect()
}

/// Σ_s x_{s,j}·y_{s,l}, for each j each l.
pub(crate) fn products(x: &[Vec<i64>], y: &[Vec<i64>]) -> Vec<i64> {
    let (columns, others) = (x[0].len(), y[0].len());
    let product = |j: usize, l: usize| x.iter().zip(y).map(|(x, y)| x[j] * y[l]).sum();
    (0..columns).flat_map(|j| (0..others).map(move |l| (j, l))).map(|(j, l)| product(j, l)).collect()
}
