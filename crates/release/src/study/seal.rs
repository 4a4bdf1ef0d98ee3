//! Sealing: the numbers of a study that public facts determine, computed once and verified by everyone.

use std::collections::BTreeMap;

use potluck_core::accounting::{Mu, Share, sigma_for};
use potluck_core::encoding::Ball;
use potluck_core::mixing::MixingKey;

use super::document::{SealedParty, SealedSection};
use super::{Calibration, Definition, Method};
use crate::Error;

/// Name of the noise scale of the mixed rows.
pub const MIXED: &str = "mixed";

/// Most sums that a party may have to hold: 8 GiB.
const MOST_SUMS: u128 = 1 << 30;

/// The sealed numbers of a study.
#[derive(Clone, Debug, PartialEq)]
pub struct Seal {
    key: MixingKey,
    mu: Mu,
    k: u64,
    parties: Vec<PartySeal>,
}

/// The sealed numbers of one party.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PartySeal {
    name: String,
    pub(super) ball: Ball,
    pub(super) sigma: u64,
}

impl Seal {
    /// Computes the seal.
    ///
    /// # Privacy
    /// Each party's σ is the smallest integer with σ²μ² ≥ 4CW, where 2√(CW) bounds the change of the mixed
    /// rows when one subject is replaced (docs/PRIVACY.md#mixed-rows).
    pub(super) fn compute(definition: &Definition, key: MixingKey) -> Result<Self, Error> {
        let (epsilon, delta) = (definition.epsilon(), definition.delta());
        let mu = match definition.calibration() {
            Calibration::Analytic => Mu::analytic(epsilon, delta)?,
            Calibration::Classical => Mu::classical(epsilon, delta)?,
        };
        let k = mixed_row_count(definition, mu);
        let parties = definition.parties().iter().map(|party| {
            let ball = definition.ball(party)?;
            if u128::from(k) * party.width() as u128 > MOST_SUMS {
                return Err(Error::study(
                    format!("party {:?}", party.name()),
                    "k released rows of its columns are too many to hold in memory; choose a smaller k, or fewer columns",
                ));
            }
            let weight = definition.mixing().column_norm_squared(k);
            let sensitivity_squared = 4 * u128::from(ball.norm_squared()) * u128::from(weight);
            let sigma = sigma_for(mu, Share::WHOLE, (sensitivity_squared, 1))?;
            Ok(PartySeal { name: party.name().to_owned(), ball, sigma })
        });
        Ok(Self { key, mu, k, parties: parties.collect::<Result<_, Error>>()? })
    }

    /// Recomputes the seal and compares it with what the study says.
    pub(super) fn verify(definition: &Definition, section: &SealedSection) -> Result<Self, Error> {
        let wrong = |what: &str| Error::Seal { what: what.to_owned() };
        let key = MixingKey::from_hex(&section.mixing_key).map_err(|_| wrong("mixing_key"))?;
        let seal = Self::compute(definition, key)?;
        let expected = seal.to_section();
        if expected.mu.to_bits() != section.mu.to_bits() {
            return Err(wrong("mu"));
        }
        if expected.shares != section.shares {
            return Err(wrong("shares"));
        }
        if expected.k != section.k {
            return Err(wrong("k"));
        }
        if expected.party != section.party {
            return Err(wrong("a party's norm_squared or sigma"));
        }
        Ok(seal)
    }

    pub(super) fn to_section(&self) -> SealedSection {
        let parties = self.parties.iter().map(|party| SealedParty {
            name: party.name.clone(),
            norm_squared: party.ball.norm_squared(),
            sigma: BTreeMap::from([(MIXED.to_owned(), party.sigma)]),
        });
        SealedSection {
            id: None,
            mixing_key: self.key.to_hex(),
            mu: self.mu.to_f64(),
            shares: vec![Share::WHOLE.parts()],
            k: self.k,
            party: parties.collect(),
        }
    }

    pub(super) fn party(&self, name: &str) -> &PartySeal {
        self.parties.iter().find(|party| party.name == name).expect("every party of the study is sealed")
    }

    /// The mixing key.
    pub fn key(&self) -> &MixingKey {
        &self.key
    }

    /// μ of each party's release.
    pub fn mu(&self) -> Mu {
        self.mu
    }

    /// Number of mixed rows.
    pub fn k(&self) -> u64 {
        self.k
    }
}

/// k: as given, else 10·√n·μ (the k = 10√n/σ of the paper's figure), at least three rows a column, at most n.
fn mixed_row_count(definition: &Definition, mu: Mu) -> u64 {
    match (definition.method(), definition.k) {
        (Method::Dgm, _) => definition.rows(),
        (Method::Rmgm, Some(k)) => k,
        (Method::Rmgm, None) => {
            let rule = (10.0 * (definition.rows() as f64).sqrt() * mu.to_f64()).floor() as u64;
            rule.max(3 * definition.width() as u64).min(definition.rows())
        }
    }
}
