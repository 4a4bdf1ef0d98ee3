//! Sealing: the numbers of a study that public facts determine, computed once and verified by
//! everyone.

use std::collections::BTreeMap;
use std::fmt::Display;

use potluck_core::accounting::{Mu, Share, Shares, sigma_for};
use potluck_core::calibrated::{Layout, PartyPlan, Plan, STAGES};
use potluck_core::encoding::{Ball, RowEncoder};
use potluck_core::mixing::MixingKey;
use potluck_core::noise::Sigma;
use potluck_core::stage::{Stage, Statistic};

use super::document::{SealedParty, SealedSection};
use super::{Calibration, Column, Definition, Method, Party};
use crate::Error;
use crate::place::{Key, Place};

/// Name of the stage of mixed rows.
const MIXED: &str = STAGES[3];

/// Most sums that a party may have to hold: 8 GiB.
const MOST_SUMS: u128 = 1 << 30;

/// The sealed numbers of a study.
#[derive(Clone, Debug, PartialEq)]
pub struct Seal {
    terms: Terms,
    /// Of the parties that release under this very study.
    parties: Vec<PartySeal>,
}

/// What the parties of a study have in common with each other and with those of every study that
/// extends it.
#[derive(Clone, Debug, PartialEq)]
struct Terms {
    key: MixingKey,
    mu: Mu,
    shares: Shares,
    k: u64,
}

/// The sealed numbers of one party.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PartySeal {
    name: String,
    noise: PartyNoise,
}

/// What determines a party's noise.
#[derive(Clone, Debug, PartialEq)]
enum PartyNoise {
    /// One stage: the ball and the noise scale of the mixed rows.
    Mixed { ball: Ball, sigma: Sigma },
    /// Four stages, or three and exchanged products: what public facts say of them.
    Calibrated(Box<PartyPlan>),
}

impl PartySeal {
    pub(super) fn stage(
        &self,
        seal: &Seal,
        definition: &Definition,
        earlier: &[Vec<i64>],
    ) -> Result<Option<Stage>, Error> {
        match &self.noise {
            PartyNoise::Calibrated(plan) => {
                Ok(plan.stage(earlier).map_err(at(definition.place_of(&self.name)))?)
            }
            PartyNoise::Mixed { ball, sigma } if earlier.is_empty() => {
                let party = definition.party(&self.name)?;
                let encoder = RowEncoder::plain(&encoders(party)).within(*ball);
                Ok(Some(Stage {
                    name: MIXED,
                    share: Share::WHOLE,
                    noise: vec![(seal.k() as usize * encoder.width(), *sigma)],
                    encoder,
                    statistic: Statistic::Mixed { mixing: definition.mixing(), k: seal.k() },
                }))
            }
            PartyNoise::Mixed { .. } => Ok(None),
        }
    }

    pub(super) fn calibrated(&self) -> Option<&PartyPlan> {
        match &self.noise {
            PartyNoise::Calibrated(plan) => Some(plan),
            PartyNoise::Mixed { .. } => None,
        }
    }
}

fn encoders(party: &Party) -> Vec<potluck_core::encoding::Encoder> {
    party.columns().iter().map(Column::encoder).collect()
}

fn at<E: Display>(place: impl Into<Place>) -> impl FnOnce(E) -> Error {
    move |error| Error::study(place, error.to_string())
}

impl Seal {
    /// Computes the seal of a study that extends no other.
    pub(super) fn compute(definition: &Definition, key: MixingKey) -> Result<Self, Error> {
        let (epsilon, delta) = (definition.epsilon(), definition.delta());
        let mu = match definition.calibration() {
            Calibration::Analytic => Mu::analytic(epsilon, delta),
            Calibration::Classical => Mu::classical(epsilon, delta),
        }
        .map_err(at(Place::privacy(Key::Epsilon)))?;
        let (shares, k) = match definition.method() {
            Method::Calibrated => {
                let layouts: Vec<Layout> =
                    definition.parties().iter().map(|party| definition.layout(party)).collect();
                let plan =
                    Plan::new(definition.rows(), mu, &layouts, definition.k).map_err(at(Key::Party))?;
                (plan.shares().clone(), plan.k())
            }
            Method::Exchange => {
                let plan = exchange_plan(definition, mu)?;
                (plan.shares().clone(), plan.k())
            }
            Method::Rmgm | Method::Dgm => (Shares::whole(), mixed_row_count(definition, mu)),
        };
        Self::under(definition, Terms { key, mu, shares, k })
    }

    /// Computes the seal of a study that extends the one with the seal `base`: same key, μ, shares
    /// and k, and the noise of the new parties from them.
    ///
    /// # Privacy
    /// μ is what the study's (ε, δ) allows because the base's is, and both say the same (ε, δ), as
    /// Theorem 6 of docs/PRIVACY.md#latecomers asks. See [`Self::under`].
    pub(super) fn inherit(definition: &Definition, base: &Self) -> Result<Self, Error> {
        Self::under(definition, base.terms.clone())
    }

    /// The noise of the study's own parties.
    ///
    /// # Privacy
    /// Every noise scale is the smallest that satisfies its inequality for these shares and this k,
    /// whatever rule they came from: what the proof of Theorem 6 (docs/PRIVACY.md#latecomers) needs
    /// of Theorem M and Lemmas S and L.
    fn under(definition: &Definition, terms: Terms) -> Result<Self, Error> {
        for party in definition.own_parties() {
            if u128::from(terms.k) * party.published_width() as u128 > MOST_SUMS {
                return Err(Error::study(
                    definition.place_of(party.name()),
                    "k released rows of its columns are too many to hold in memory; choose a smaller k, or fewer columns",
                ));
            }
        }
        let parties = match definition.method() {
            Method::Calibrated => {
                let plan = Plan::given(definition.rows(), terms.mu, &terms.shares, terms.k);
                Self::calibrated(definition, &plan.map_err(at(Key::Party))?)?
            }
            Method::Exchange => {
                let parties = Self::calibrated(definition, &exchange_plan(definition, terms.mu)?)?;
                check_pairs(definition, &parties)?;
                parties
            }
            Method::Rmgm | Method::Dgm => Self::mixed(definition, &terms)?,
        };
        Ok(Self { terms, parties })
    }

    /// # Privacy
    /// Each party's σ is the smallest integer with σ²μ² ≥ 4CW, where 2√(CW) bounds the change of
    /// the mixed rows when one subject is replaced: Theorem M of docs/PRIVACY.md#mixed-rows.
    fn mixed(definition: &Definition, terms: &Terms) -> Result<Vec<PartySeal>, Error> {
        let weight = definition.mixing().column_norm_squared(terms.k);
        let party = |party: &Party| {
            let ball = definition.ball(party);
            let sensitivity_squared = 4 * u128::from(ball.norm_squared()) * u128::from(weight);
            let sigma = sigma_for(terms.mu, Share::WHOLE, (sensitivity_squared, 1))?;
            Ok(PartySeal { name: party.name().to_owned(), noise: PartyNoise::Mixed { ball, sigma } })
        };
        definition.own_parties().iter().map(party).collect()
    }

    fn calibrated(definition: &Definition, plan: &Plan) -> Result<Vec<PartySeal>, Error> {
        let party = |party: &Party| {
            let plan = plan.party(definition.layout(party)).map_err(at(definition.place_of(party.name())))?;
            Ok(PartySeal { name: party.name().to_owned(), noise: PartyNoise::Calibrated(Box::new(plan)) })
        };
        definition.own_parties().iter().map(party).collect()
    }

    /// Recomputes the seal, from that of the study it extends if it does, and compares it with what
    /// the study says.
    pub(super) fn verify(
        definition: &Definition,
        section: &SealedSection,
        base: Option<&Self>,
    ) -> Result<Self, Error> {
        let wrong = |what: &str| Error::Seal { what: what.to_owned() };
        let key = section.mixing_key.as_deref().and_then(|hex| MixingKey::from_hex(hex).ok());
        let key = key.ok_or_else(|| wrong("mixing_key"))?;
        let seal = match base {
            None => Self::compute(definition, key)?,
            Some(base) if base.terms.key == key => Self::inherit(definition, base)?,
            Some(_) => return Err(wrong("mixing_key")),
        };
        let expected = seal.to_section();
        if expected.mu.map(f64::to_bits) != section.mu.map(f64::to_bits) {
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

    /// The seal as it stands in the study, without the study's id and the study that it extends.
    pub(super) fn to_section(&self) -> SealedSection {
        let parties = self.parties.iter().map(|party| match &party.noise {
            PartyNoise::Mixed { ball, sigma } => SealedParty {
                name: Some(party.name.clone()),
                norm_squared: Some(ball.norm_squared()),
                sigma: Some(BTreeMap::from([(MIXED.to_owned(), sigma.get())])),
            },
            PartyNoise::Calibrated(plan) => SealedParty {
                name: Some(party.name.clone()),
                norm_squared: None,
                sigma: Some(known_before(plan)),
            },
        });
        SealedSection {
            id: None,
            mixing_key: Some(self.key().to_hex()),
            mu: Some(self.mu().to_f64()),
            shares: Some(self.shares().iter().map(|share| share.parts()).collect()),
            k: Some(self.k()),
            party: Some(parties.collect()),
            base: None,
        }
    }

    pub(super) fn party(&self, name: &str) -> &PartySeal {
        self.parties.iter().find(|party| party.name == name).expect("every own party of the study is sealed")
    }

    /// The mixing key.
    pub fn key(&self) -> &MixingKey {
        &self.terms.key
    }

    /// μ of each party's release.
    pub fn mu(&self) -> Mu {
        self.terms.mu
    }

    /// Shares of μ², one a stage, out of 2²⁰.
    pub fn shares(&self) -> &[Share] {
        self.terms.shares.as_slice()
    }

    /// Number of mixed rows; 0 where products are exchanged.
    pub fn k(&self) -> u64 {
        self.terms.k
    }
}

/// The plan of a study whose parties exchange products, every two of them.
fn exchange_plan(definition: &Definition, mu: Mu) -> Result<Plan, Error> {
    let parties = u16::try_from(definition.parties().len()).expect("a study has few parties");
    Plan::exchanged(definition.rows(), mu, parties).map_err(at(Key::Party))
}

/// Refuses a study in which some products could not be found.
fn check_pairs(definition: &Definition, parties: &[PartySeal]) -> Result<(), Error> {
    for (position, party) in parties.iter().enumerate() {
        for other in &parties[..position] {
            if let (Some(one), Some(other)) = (party.calibrated(), other.calibrated()) {
                one.check_pair(other).map_err(at(definition.place_of(&party.name)))?;
            }
        }
    }
    Ok(())
}

/// The noise scales of a calibrated release that public facts determine.
fn known_before(plan: &PartyPlan) -> BTreeMap<String, u64> {
    let round = plan.round_noise();
    let mut scales = vec![("standardise-sum", round.sum), ("standardise-square", round.square)];
    if let (Some(shapes), Some(joint)) = (plan.shape_noise(), plan.joint_noise()) {
        scales.extend([("shapes-sum", shapes.round.sum), ("shapes-square", shapes.round.square)]);
        scales.push(("shapes-cell", shapes.cell));
        scales.extend([("moments-present", joint.own), ("moments-both-present", joint.both)]);
    }
    scales.into_iter().map(|(name, sigma)| (name.to_owned(), sigma.get())).collect()
}

/// k: as given, else 10·√n·μ (the k = 10√n/σ of the paper's figure), at least three rows a column,
/// at most n.
fn mixed_row_count(definition: &Definition, mu: Mu) -> u64 {
    match (definition.method(), definition.k) {
        (Method::Dgm, _) => definition.rows(),
        (_, Some(k)) => k,
        (_, None) => {
            let rule = (10.0 * (definition.rows() as f64).sqrt() * mu.to_f64()).floor() as u64;
            rule.max(3 * definition.width() as u64).min(definition.rows())
        }
    }
}
