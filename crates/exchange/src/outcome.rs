//! Opening a reply and publishing: docs/EXCHANGE.md#result.

use std::sync::Arc;

use curve25519_dalek::constants::RISTRETTO_BASEPOINT_TABLE;
use curve25519_dalek::ristretto::RistrettoPoint;
use potluck_core::noise::rounded_gaussian;
use zeroize::Zeroize;

use crate::accepted_offer::refusing;
use crate::bases::integer;
use crate::error::{Check, Error, Message};
use crate::logarithm::Logarithms;
use crate::offer::Keys;
use crate::randomness::{Context, Entropy, Randomness};
use crate::terms::{Recipient, Terms};

/// Stands for "out of range" in the bytes of a result.
const OUT_OF_RANGE: i64 = i64::MIN;

/// A reply whose proof holds: the only thing that is ever opened.
pub struct AcceptedReply {
    pub(crate) terms: Arc<Terms>,
    pub(crate) recipient: Recipient,
    pub(crate) offer: [u8; 64],
    pub(crate) reply: [u8; 64],
    pub(crate) keys: Arc<Keys>,
    pub(crate) outputs: Vec<RistrettoPoint>,
}

/// What a pair publishes: its products with the noise of both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The party that encrypted.
    pub sender: u16,
    /// The party that multiplied.
    pub recipient: u16,
    /// SHA-512 of the terms.
    pub terms: [u8; 64],
    /// SHA-512 of the offer.
    pub offer: [u8; 64],
    /// SHA-512 of the reply.
    pub reply: [u8; 64],
    /// For each of the sender's columns, each of the recipient's; nothing where a value was out of
    /// range.
    pub values: Vec<Option<i64>>,
}

impl AcceptedReply {
    /// SHA-512 of the reply: what the sender's noise must be bound to, once, before it is drawn.
    pub fn hash(&self) -> &[u8; 64] {
        &self.reply
    }

    /// Adds the own noise, then looks for the numbers.
    ///
    /// # Privacy
    /// What is opened is the products with the recipient's noise, and every value has the own exact
    /// noise of scale σ before it is looked at; so the outcome, "out of range" included, is a
    /// function of the noised products (Theorem X, *as sender*, docs/EXCHANGE.md#theorem, and Lemma
    /// X1, docs/PRIVACY.md#exchange). A second outcome of one reply would be a second noise: the
    /// ledger stores the first before it is sent.
    pub fn outcome(self, entropy: Entropy) -> Outcome {
        let randomness = Randomness::new(
            entropy,
            &Context {
                role: "result",
                terms: &self.terms,
                recipient: Some(self.recipient.party.index),
                rows: &[],
                partner: &self.reply,
            },
        );
        let mut generator = randomness.purpose("noise").stream(0);
        let points = self.keys.0.len() + 2;
        let noised: Vec<RistrettoPoint> = self
            .keys
            .0
            .iter()
            .enumerate()
            .flat_map(|(j, key)| self.outputs.chunks(points).map(move |outputs| (j, key, outputs)))
            .map(|(j, (a, b), outputs)| {
                let mut noise = rounded_gaussian(self.recipient.sigma, &mut generator);
                let hidden = RISTRETTO_BASEPOINT_TABLE * &integer(noise);
                noise.zeroize();
                outputs[2 + j] - outputs[0] * a - outputs[1] * b + hidden
            })
            .collect();
        // Only now, with the noise in every one of them, are values looked at.
        let logarithms = Logarithms::new(self.recipient.range, noised.len());
        Outcome {
            sender: self.terms.sender().index,
            recipient: self.recipient.party.index,
            terms: *self.terms.hash(),
            offer: self.offer,
            reply: self.reply,
            values: noised.iter().map(|point| logarithms.find(point)).collect(),
        }
    }
}

impl Outcome {
    /// The message.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = header(&self.terms, &self.offer, &self.reply, self.sender, self.recipient);
        for value in &self.values {
            bytes.extend(value.unwrap_or(OUT_OF_RANGE).to_le_bytes());
        }
        bytes
    }

    /// Reads a result of the pair of these terms' sender and `recipient`, for the offer and the
    /// reply of these hashes.
    pub fn from_bytes(
        terms: &Terms,
        recipient: u16,
        offer: &[u8; 64],
        reply: &[u8; 64],
        bytes: &[u8],
    ) -> Result<Self, Error> {
        let sender = terms.sender().index;
        let refused = refusing(sender, Message::Result);
        let to = terms.recipient(recipient).ok_or(Error::NoRecipient(recipient))?;
        let header = header(terms.hash(), offer, reply, sender, recipient);
        let count = usize::from(terms.sender().columns) * usize::from(to.party.columns);
        let expected = header.len() + 8 * count;
        if bytes.len() != expected {
            let (expected, found) = (expected as u64, bytes.len() as u64);
            return Err(refused(Check::Length { expected, found }));
        }
        let values = bytes.strip_prefix(header.as_slice()).ok_or_else(|| refused(Check::Header))?;
        let (values, _) = values.as_chunks();
        let values = values
            .iter()
            .map(|value| match i64::from_le_bytes(*value) {
                OUT_OF_RANGE => Ok(None),
                value if value.unsigned_abs() <= to.range => Ok(Some(value)),
                _ => Err(refused(Check::Range)),
            })
            .collect::<Result<_, _>>()?;
        Ok(Self { sender, recipient, terms: *terms.hash(), offer: *offer, reply: *reply, values })
    }
}

fn header(terms: &[u8; 64], offer: &[u8; 64], reply: &[u8; 64], sender: u16, recipient: u16) -> Vec<u8> {
    let indices = [sender.to_le_bytes(), recipient.to_le_bytes()].concat();
    [b"PLXC-RS1".as_slice(), terms, offer, reply, &indices].concat()
}
