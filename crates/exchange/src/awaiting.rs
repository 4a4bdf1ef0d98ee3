//! Checking a reply: docs/EXCHANGE.md#reply, "What the sender checks". No secret takes part.

use std::io::{Read, Seek};
use std::sync::Arc;

use curve25519_dalek::ristretto::RistrettoPoint;
use curve25519_dalek::scalar::Scalar;
use rayon::prelude::*;

use crate::accepted_offer::{BLOCK, bind, keys, open, refusing};
use crate::bases::wide_integer;
use crate::equations::{Equations, NormCheck};
use crate::error::{Check, Error, Message, Reading};
use crate::fields::Fields;
use crate::generators::Generators;
use crate::layout::{OfferLayout, REPLY_HEADER, ReplyLayout, Section, reply_header};
use crate::offer::Keys;
use crate::outcome::AcceptedReply;
use crate::pinned::Pinned;
use crate::products::Gamma;
use crate::randomness::{Context, Entropy, Randomness, Streams, weight};
use crate::reply::transcript;
use crate::rows::chunks;
use crate::sums::SumWeights;
use crate::terms::{Recipient, Terms};

/// A sender's wait for the reply of one recipient: it takes one reply.
pub struct Awaiting {
    terms: Arc<Terms>,
    recipient: Recipient,
    offer: [u8; 64],
    keys: Arc<Keys>,
}

impl Awaiting {
    pub(crate) fn new(terms: Arc<Terms>, recipient: Recipient, offer: [u8; 64], keys: Arc<Keys>) -> Self {
        Self { terms, recipient, offer, keys }
    }

    /// Whose reply this waits for.
    pub fn recipient(&self) -> u16 {
        self.recipient.party.index
    }

    /// Checks `reply` against the offer that was sent. `entropy` gives the weights of the check.
    ///
    /// # Privacy
    /// Only a reply whose proof holds is ever opened: it multiplies every row by one vector of
    /// integers within the recipient's bound (Theorem X, *as sender*, docs/EXCHANGE.md#theorem).
    /// The check itself depends on public bytes and weights alone, so a refusal tells nothing.
    pub fn accept<O: Read + Seek, R: Read + Seek>(
        self,
        offer: O,
        reply: R,
        entropy: Entropy,
    ) -> Result<AcceptedReply, Error> {
        let party = self.recipient.party.index;
        let refused = refusing(party, Message::Reply);
        let layout = ReplyLayout::new(&self.terms, self.recipient.party.columns);
        let offer_layout = OfferLayout::new(&self.terms);
        let mut offer = open(&self.terms, &offer_layout, offer)?;
        if *offer.hash() != self.offer {
            return Err(Error::OtherOffer { party: self.terms.sender().index });
        }
        let expected = layout.length;
        let mut reply = Pinned::open(reply, Reading::Message(Message::Reply), expected, |found| {
            refused(Check::Length { expected, found })
        })?;
        if *reply.read(0, REPLY_HEADER)? != reply_header(&self.terms, &self.offer, party) {
            return Err(refused(Check::Header));
        }
        let randomness = Randomness::new(
            entropy,
            &Context {
                role: "check reply",
                terms: &self.terms,
                recipient: Some(party),
                rows: &[],
                partner: reply.hash(),
            },
        );
        let messages = Messages { layout, offer_layout };
        let outputs =
            Verifier::check(&self.terms, &self.recipient, &messages, &mut offer, &mut reply, &randomness)?;
        Ok(AcceptedReply {
            reply: *reply.hash(),
            terms: self.terms,
            recipient: self.recipient,
            offer: self.offer,
            keys: self.keys,
            outputs,
        })
    }
}

struct Messages {
    layout: ReplyLayout,
    offer_layout: OfferLayout,
}

struct Verifier {
    columns: usize,
    e: Scalar,
    gamma: Gamma,
    weights: Streams,
    sum_weights: SumWeights,
    norm: u32,
}

/// The sums of a verifier: *openings* weighted, *outputs* one equation, *norm* one.
struct Checked {
    openings: Equations,
    outputs: Equations,
    norm: NormCheck,
}

impl Verifier {
    fn checked(&self) -> Checked {
        Checked {
            openings: Equations::new(self.columns, 0),
            outputs: Equations::new(self.columns, self.gamma.each - 2),
            norm: NormCheck::new(&self.e, self.norm),
        }
    }

    fn check<O: Read + Seek, R: Read + Seek>(
        terms: &Terms,
        recipient: &Recipient,
        Messages { layout, offer_layout }: &Messages,
        offer: &mut Pinned<O>,
        reply: &mut Pinned<R>,
        randomness: &Randomness,
    ) -> Result<Vec<RistrettoPoint>, Error> {
        let refused = refusing(recipient.party.index, Message::Reply);
        let columns = usize::from(recipient.party.columns);
        let points = usize::from(terms.sender().columns) + 2;
        let generators = Generators::new(columns);
        let keys = keys(terms, offer_layout, offer)?;
        let mut transcript = transcript(terms, recipient, offer.hash(), &keys, &generators);
        bind(&mut transcript, "masks", layout.masks, reply)?;
        bind(&mut transcript, "rows", layout.rows, reply)?;
        bind(&mut transcript, "outputs", layout.outputs, reply)?;
        bind(&mut transcript, "noise", layout.noise, reply)?;
        let mut rho = transcript.challenge("rho");
        let gamma = Gamma { each: points, scalars: transcript.challenge("gamma").scalars(columns * points) };
        bind(&mut transcript, "norm", layout.norm, reply)?;
        bind(&mut transcript, "output mask", layout.output_mask, reply)?;
        let mut bits = transcript.challenge("bits");
        let verifier = Self {
            columns,
            e: transcript.challenge("e").scalar(),
            gamma,
            weights: randomness.purpose("weights"),
            sum_weights: SumWeights::new(
                terms.repetitions(),
                1,
                &mut randomness.purpose("sum weights").stream(0),
            ),
            norm: recipient.party.norm,
        };
        let mut all = verifier.checked();
        for (first, count) in chunks(terms.people()) {
            let rows = reply.read(layout.rows.at(first), count * layout.rows.part)?;
            let responses = reply.read(layout.responses.at(first), count * layout.responses.part)?;
            let ciphertexts = offer.read(offer_layout.rows.at(first), count * offer_layout.rows.part)?;
            let (rho, bits) = (rho.scalars(count), bits.bits(count));
            let blocks: Vec<_> = rows
                .par_chunks(BLOCK * layout.rows.part)
                .zip(responses.par_chunks(BLOCK * layout.responses.part))
                .zip(ciphertexts.par_chunks(BLOCK * offer_layout.rows.part))
                .zip(rho.par_chunks(BLOCK).zip(bits.par_chunks(BLOCK)))
                .enumerate()
                .map(|(index, (((rows, responses), ciphertexts), (rho, bits)))| {
                    let rows = rows.chunks(layout.rows.part);
                    let responses = responses.chunks(layout.responses.part);
                    let ciphertexts = ciphertexts.chunks(offer_layout.rows.part);
                    let mut checked = verifier.checked();
                    let first = first + (index * BLOCK) as u64;
                    let each = rows.zip(responses).zip(ciphertexts).zip(rho.iter().zip(bits));
                    for (number, (((points, responses), ciphertext), (rho, bits))) in (first..).zip(each) {
                        let row = Row { number, points, responses, ciphertext, rho, bits: *bits };
                        verifier.row(&row, &mut checked)?;
                    }
                    let Checked { openings, outputs, norm } = checked;
                    Ok(Checked { openings: openings.settled(), outputs: outputs.settled(), norm })
                })
                .collect();
            for block in blocks {
                let block: Checked = block.map_err(refused)?;
                all.openings.merge(&block.openings);
                all.outputs.merge(&block.outputs);
                all.norm.sum += block.norm.sum;
            }
        }
        let mut section = |section: Section| reply.read(section.first, section.length() as usize);
        let outputs = Fields::new(&section(layout.outputs)?).points(columns * points).map_err(refused)?;
        let noise = (section(layout.noise)?, section(layout.openings)?);
        let responses = verifier.noise(&noise.0, &noise.1, randomness, &mut all).map_err(refused)?;
        let mask = Fields::new(&section(layout.output_mask)?).point().map_err(refused)?;
        verifier.outputs(&outputs, mask, &responses, &mut all.outputs);
        let bounds = Fields::new(&section(layout.norm)?).points(2).map_err(refused)?;
        let closing = Fields::new(&section(layout.closing)?).scalar().map_err(refused)?;
        let (masks, sums) = (section(layout.masks)?, section(layout.sums)?);
        verifier.sums(&masks, &sums, layout, &mut all.openings).map_err(refused)?;
        if !all.norm.holds(&verifier.e, &closing, [bounds[0], bounds[1]], &generators) {
            return Err(refused(Check::Norm));
        }
        if !all.openings.hold(&generators, &[]) {
            return Err(refused(Check::Openings));
        }
        if !all.outputs.hold(&generators, &keys) {
            return Err(refused(Check::Outputs));
        }
        Ok(outputs)
    }

    /// A row of *norm*, *openings* and *outputs*.
    fn row(&self, row: &Row<'_>, checked: &mut Checked) -> Result<(), Check> {
        let [k, n] = {
            let mut points = Fields::new(row.points);
            [points.point()?, points.point()?]
        };
        let mut responses = Fields::new(row.responses);
        let f = responses.scalars(self.columns + 4)?;
        let f_t = responses.scalar()?;
        checked.norm.add(row.rho, &f);

        let weight = weight(&mut self.weights.stream(row.number));
        let sums = self.sum_weights.row(row.bits) * self.sum_weights.columns[0];
        checked.openings.push(-(weight * self.e + sums), k);
        checked.openings.push(-weight, n);
        let fixed = &mut checked.openings.fixed;
        fixed.lf.iter_mut().zip(&f).for_each(|(sum, f)| *sum += weight * f);
        fixed.b += weight * f_t;

        let points = Fields::new(row.ciphertext).points(self.gamma.each)?;
        for (scalar, point) in self.gamma.combine(&f[..self.columns]).zip(points) {
            checked.outputs.push(-scalar, point);
        }
        Ok(())
    }

    /// *openings* of the noise; gives z, which *outputs* needs.
    fn noise(
        &self,
        commitments: &[u8],
        openings: &[u8],
        randomness: &Randomness,
        checked: &mut Checked,
    ) -> Result<Vec<Scalar>, Check> {
        let count = self.columns * (self.gamma.each - 1);
        let mut points = Fields::new(commitments);
        let (values, masks) = (points.points(count)?, points.points(count)?);
        let mut openings = Fields::new(openings);
        let mut generator = randomness.purpose("noise weights").stream(0);
        let mut responses = Vec::with_capacity(count);
        for (value, mask) in values.into_iter().zip(masks) {
            let (z, blind) = (openings.scalar()?, openings.scalar()?);
            let weight = weight(&mut generator);
            checked.openings.push(-(weight * self.e), value);
            checked.openings.push(-weight, mask);
            checked.openings.fixed.g += weight * z;
            checked.openings.fixed.b += weight * blind;
            responses.push(z);
        }
        Ok(responses)
    }

    /// *outputs*, rows aside: eΣγO + M, less
    /// Σ(γ_{l,0}z_{l,0}G + γ′_{l,0}z_{l,0}G′ + Σγ_{l,j}(z_{l,0}H_j + z_{l,j}G)).
    fn outputs(
        &self,
        outputs: &[RistrettoPoint],
        mask: RistrettoPoint,
        responses: &[Scalar],
        equations: &mut Equations,
    ) {
        for (gamma, output) in self.gamma.scalars.iter().zip(outputs) {
            equations.push(self.e * gamma, *output);
        }
        equations.push(Scalar::ONE, mask);
        let fixed = &mut equations.fixed;
        let columns = self.gamma.scalars.chunks(self.gamma.each);
        for (gamma, z) in columns.zip(responses.chunks(self.gamma.each - 1)) {
            fixed.g -= gamma[0] * z[0];
            fixed.g2 -= gamma[1] * z[0];
            for ((gamma, noise), key) in gamma[2..].iter().zip(&z[1..]).zip(&mut fixed.keys) {
                fixed.g -= gamma * noise;
                *key -= gamma * z[0];
            }
        }
    }

    /// *sum too large*, and *openings* of the sums.
    fn sums(
        &self,
        masks: &[u8],
        sums: &[u8],
        layout: &ReplyLayout,
        equations: &mut Equations,
    ) -> Result<(), Check> {
        let each = masks.chunks(layout.masks.part).zip(sums.chunks(layout.sums.part));
        for (weight, (mask, sums)) in self.sum_weights.repetitions.iter().zip(each) {
            let weight = weight * self.sum_weights.columns[0];
            let mut sums = Fields::new(sums);
            equations.push(-weight, Fields::new(mask).point()?);
            for (sum, entry) in equations.fixed.lf.iter_mut().zip(sums.sums(self.columns + 4)?) {
                *sum += weight * wide_integer(entry);
            }
            equations.fixed.b += weight * sums.scalar()?;
        }
        Ok(())
    }
}

/// A row of a reply and of the offer, with the challenges that concern it.
struct Row<'a> {
    number: u64,
    points: &'a [u8],
    responses: &'a [u8],
    ciphertext: &'a [u8],
    rho: &'a Scalar,
    bits: u128,
}
