//! What a prover keeps of its rows' proofs: blinds and masks, drawn again from their key whenever
//! they are needed, and the two sums of the norm.

use curve25519_dalek::ristretto::RistrettoPoint;
use curve25519_dalek::scalar::Scalar;
use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::bases::{Base, Bases, encode, integer};
use crate::randomness::{Randomness, Streams, uniform};

/// The secret streams of a message's proof.
pub(crate) struct Secrets {
    blinds: Streams,
    masks: Streams,
    norm: NormBlinds,
}

/// r, where a row is encrypted, and t of a row.
#[derive(Zeroize, ZeroizeOnDrop)]
pub(crate) struct Blinds {
    pub(crate) r: Scalar,
    pub(crate) t: Scalar,
}

/// q, where a row is encrypted, w with p, and o of a row.
#[derive(Zeroize, ZeroizeOnDrop)]
pub(crate) struct Masks {
    pub(crate) q: Scalar,
    pub(crate) w: Vec<Scalar>,
    pub(crate) o: Scalar,
}

/// β and γ.
#[derive(Zeroize, ZeroizeOnDrop)]
struct NormBlinds {
    beta: Scalar,
    gamma: Scalar,
}

impl Secrets {
    pub(crate) fn new(randomness: &Randomness) -> Self {
        let mut generator = randomness.purpose("norm").stream(0);
        Self {
            blinds: randomness.purpose("blinds"),
            masks: randomness.purpose("masks"),
            norm: NormBlinds { beta: uniform(&mut generator), gamma: uniform(&mut generator) },
        }
    }

    pub(crate) fn blinds(&self, row: u64) -> Blinds {
        let mut generator = self.blinds.stream(row);
        Blinds { r: uniform(&mut generator), t: uniform(&mut generator) }
    }

    /// For a row with this many entries, x and u.
    pub(crate) fn masks(&self, row: u64, entries: usize) -> Masks {
        let mut generator = self.masks.stream(row);
        Masks {
            q: uniform(&mut generator),
            w: (0..entries).map(|_| uniform(&mut generator)).collect(),
            o: uniform(&mut generator),
        }
    }

    /// f_b = eβ + γ.
    pub(crate) fn closing(&self, e: &Scalar) -> Scalar {
        e * self.norm.beta + self.norm.gamma
    }

    /// The section *norm*: E₁ and E₀.
    pub(crate) fn norm(&self, sums: &NormSums, bases: &Bases) -> Vec<u8> {
        let commit = |value: &Scalar, blind: &Scalar| bases.g.times(value) + bases.b.times(blind);
        encode(&[commit(&(sums.cross + sums.cross), &self.norm.beta), commit(&sums.square, &self.norm.gamma)])
    }
}

/// Σρ(Σxw + Σup) and Σρ(Σw² + Σp²).
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub(crate) struct NormSums {
    cross: Scalar,
    square: Scalar,
}

impl NormSums {
    pub(crate) fn new() -> Self {
        Self { cross: Scalar::ZERO, square: Scalar::ZERO }
    }

    pub(crate) fn add(&mut self, rho: &Scalar, entries: &[i64], masks: &Masks) {
        let cross: Scalar = entries.iter().zip(&masks.w).map(|(&entry, w)| integer(entry) * w).sum();
        let square: Scalar = masks.w.iter().map(|w| w * w).sum();
        self.cross += rho * cross;
        self.square += rho * square;
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.cross += other.cross;
        self.square += other.square;
    }
}

/// f = e·entry + w for all entries of a row.
pub(crate) fn respond(e: &Scalar, entries: &[i64], masks: &Masks) -> impl Iterator<Item = Scalar> {
    entries.iter().zip(&masks.w).map(move |(&entry, w)| e * integer(entry) + w)
}

/// Keys' bases, which a row is encrypted under.
pub(crate) struct Encryption<'a> {
    pub(crate) bases: &'a Bases,
    pub(crate) keys: &'a [Base],
}

impl Encryption<'_> {
    /// Halves of rG, rG′ and x_jG + rH_j.
    pub(crate) fn small(&self, x: &[i64], r: &Scalar, out: &mut Vec<RistrettoPoint>) {
        out.extend([self.bases.g.times(r), self.bases.g2.times(r)]);
        let each = self.keys.iter().zip(x);
        out.extend(each.map(|(key, &x)| self.bases.g_small.times(x) + key.times(r)));
    }

    /// Halves of qG, qG′ and w_jG + qH_j.
    pub(crate) fn full(&self, w: &[Scalar], q: &Scalar, out: &mut Vec<RistrettoPoint>) {
        out.extend([self.bases.g.times(q), self.bases.g2.times(q)]);
        let each = self.keys.iter().zip(w);
        out.extend(each.map(|(key, w)| self.bases.g.times(w) + key.times(q)));
    }
}
