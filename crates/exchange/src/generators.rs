//! The generators of docs/EXCHANGE.md#generators.

use curve25519_dalek::constants::RISTRETTO_BASEPOINT_POINT;
use curve25519_dalek::ristretto::RistrettoPoint;
use sha2::{Digest, Sha512};

/// Points of which nobody knows a logarithm to the base of others.
pub(crate) struct Generators {
    pub(crate) g: RistrettoPoint,
    pub(crate) g2: RistrettoPoint,
    pub(crate) b: RistrettoPoint,
    pub(crate) f: [RistrettoPoint; 4],
    pub(crate) l: Vec<RistrettoPoint>,
}

fn point(name: &str) -> RistrettoPoint {
    let hash = Sha512::new().chain_update("potluck exchange 1 generator ").chain_update(name);
    RistrettoPoint::from_uniform_bytes(&hash.finalize().into())
}

impl Generators {
    /// For commitments to rows of `columns` columns; an offer has no use for L and takes 0.
    pub(crate) fn new(columns: usize) -> Self {
        Self {
            g: RISTRETTO_BASEPOINT_POINT,
            g2: point("G'"),
            b: point("B"),
            f: std::array::from_fn(|k| point(&format!("F{}", k + 1))),
            l: (1..=columns).map(|l| point(&format!("L{l}"))).collect(),
        }
    }

    /// In the order in which challenges bind them.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        [self.g, self.g2, self.b]
            .iter()
            .chain(&self.f)
            .chain(&self.l)
            .flat_map(|point| point.compress().to_bytes())
            .collect()
    }
}
