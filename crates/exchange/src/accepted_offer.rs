//! Checking an offer: docs/EXCHANGE.md#offer, "What a recipient checks".

use std::io::{Read, Seek};
use std::sync::Arc;

use curve25519_dalek::ristretto::RistrettoPoint;
use curve25519_dalek::scalar::Scalar;
use rayon::prelude::*;

use crate::bases::wide_integer;
use crate::equations::{Equations, NormCheck};
use crate::error::{Check, Error, Message, Reading};
use crate::fields::Fields;
use crate::generators::Generators;
use crate::layout::{OFFER_HEADER, OfferLayout, Section, offer_header};
use crate::pinned::Pinned;
use crate::randomness::{Context, Entropy, Randomness, Streams, weight};
use crate::rows::chunks;
use crate::sums::SumWeights;
use crate::terms::{Recipient, Terms};
use crate::transcript::Transcript;

/// Rows that one task of a verifier works on: many, for large sums of points.
pub(crate) const BLOCK: usize = 256;

/// An offer whose proof holds: the only thing a reply can be made to.
pub struct AcceptedOffer<R> {
    pub(crate) terms: Arc<Terms>,
    pub(crate) recipient: Recipient,
    pub(crate) message: Pinned<R>,
    pub(crate) keys: Vec<RistrettoPoint>,
}

impl<R: Read + Seek> AcceptedOffer<R> {
    /// Checks `offer` as the recipient of this index. `entropy` gives the weights of the check.
    ///
    /// # Privacy
    /// Only ciphertexts whose proof holds may be multiplied by own rows: the proof *as recipient*
    /// of Theorem X (docs/EXCHANGE.md#theorem) begins here.
    pub fn check(terms: &Terms, recipient: u16, offer: R, entropy: Entropy) -> Result<Self, Error> {
        let terms = Arc::new(terms.clone());
        let to = terms.recipient(recipient).ok_or(Error::NoRecipient(recipient))?.clone();
        let layout = OfferLayout::new(&terms);
        let mut message = open(&terms, &layout, offer)?;
        let randomness = Randomness::new(
            entropy,
            &Context {
                role: "check offer",
                terms: &terms,
                recipient: Some(recipient),
                rows: &[],
                partner: message.hash(),
            },
        );
        let keys = Verifier::check(&terms, &layout, &mut message, &randomness)?;
        Ok(Self { terms, recipient: to, message, keys })
    }

    /// SHA-512 of the offer: what the reply will bind.
    pub fn hash(&self) -> &[u8; 64] {
        self.message.hash()
    }
}

/// *length* and *header* of an offer.
pub(crate) fn open<R: Read + Seek>(
    terms: &Terms,
    layout: &OfferLayout,
    offer: R,
) -> Result<Pinned<R>, Error> {
    let refused = refusing(terms.sender().index, Message::Offer);
    let expected = layout.length;
    let mut message = Pinned::open(offer, Reading::Message(Message::Offer), expected, |found| {
        refused(Check::Length { expected, found })
    })?;
    if *message.read(0, OFFER_HEADER)? != offer_header(terms) {
        return Err(refused(Check::Header));
    }
    Ok(message)
}

/// The keys H that an offer names.
pub(crate) fn keys<R: Read + Seek>(
    terms: &Terms,
    layout: &OfferLayout,
    message: &mut Pinned<R>,
) -> Result<Vec<RistrettoPoint>, Error> {
    let bytes = message.read(layout.keys.first, layout.keys.part)?;
    Fields::new(&bytes)
        .points(usize::from(terms.sender().columns))
        .map_err(refusing(terms.sender().index, Message::Offer))
}

/// Makes the error of a check that a party's message fails.
pub(crate) fn refusing(party: u16, message: Message) -> impl Fn(Check) -> Error + Copy + Sync {
    move |check| Error::Refused { party, message, check }
}

/// Binds a section of a message.
pub(crate) fn bind<R: Read + Seek>(
    transcript: &mut Transcript,
    label: &str,
    section: Section,
    message: &mut Pinned<R>,
) -> Result<(), Error> {
    transcript.begin(label, section.length());
    let mut first = section.first;
    let end = section.first + section.length();
    while first < end {
        let count = (end - first).min(1 << 20);
        transcript.update(&message.read(first, count as usize)?);
        first += count;
    }
    Ok(())
}

struct Verifier {
    columns: usize,
    e: Scalar,
    weights: Streams,
    sum_weights: SumWeights,
    norm: u32,
}

impl Verifier {
    fn check<R: Read + Seek>(
        terms: &Terms,
        layout: &OfferLayout,
        message: &mut Pinned<R>,
        randomness: &Randomness,
    ) -> Result<Vec<RistrettoPoint>, Error> {
        let refused = refusing(terms.sender().index, Message::Offer);
        let generators = Generators::new(0);
        let keys = keys(terms, layout, message)?;
        let mut transcript = Transcript::new("offer", terms, &generators);
        bind(&mut transcript, "keys", layout.keys, message)?;
        bind(&mut transcript, "masks", layout.masks, message)?;
        bind(&mut transcript, "rows", layout.rows, message)?;
        let mut rho = transcript.challenge("rho");
        bind(&mut transcript, "norm", layout.norm, message)?;
        let mut bits = transcript.challenge("bits");
        let columns = usize::from(terms.sender().columns);
        let verifier = Self {
            columns,
            e: transcript.challenge("e").scalar(),
            weights: randomness.purpose("weights"),
            sum_weights: SumWeights::new(
                terms.repetitions(),
                columns + 2,
                &mut randomness.purpose("sum weights").stream(0),
            ),
            norm: terms.sender().norm,
        };
        let mut equations = Equations::new(0, columns);
        let mut norm = NormCheck::new(&verifier.e, verifier.norm);
        for (first, count) in chunks(terms.people()) {
            let rows = message.read(layout.rows.at(first), count * layout.rows.part)?;
            let responses = message.read(layout.responses.at(first), count * layout.responses.part)?;
            let (rho, bits) = (rho.scalars(count), bits.bits(count));
            let blocks: Vec<_> = rows
                .par_chunks(BLOCK * layout.rows.part)
                .zip(responses.par_chunks(BLOCK * layout.responses.part))
                .zip(rho.par_chunks(BLOCK).zip(bits.par_chunks(BLOCK)))
                .enumerate()
                .map(|(index, ((rows, responses), (rho, bits)))| {
                    let block = Block { first: first + (index * BLOCK) as u64, rows, responses, rho, bits };
                    verifier.block(&block, layout)
                })
                .collect();
            for block in blocks {
                let (partial, partial_norm) = block.map_err(refused)?;
                equations.merge(&partial);
                norm.sum += partial_norm.sum;
            }
        }
        let bytes = message.read(layout.norm.first, layout.norm.part)?;
        let mut fields = Fields::new(&bytes);
        let bounds = [fields.point().map_err(refused)?, fields.point().map_err(refused)?];
        let closing = message.read(layout.closing.first, layout.closing.part)?;
        let closing = Fields::new(&closing).scalar().map_err(refused)?;
        let masks = message.read(layout.masks.first, layout.masks.length() as usize)?;
        let sums = message.read(layout.sums.first, layout.sums.length() as usize)?;
        verifier.sums(&mut equations, &masks, &sums, layout).map_err(refused)?;
        if !norm.holds(&verifier.e, &closing, bounds, &generators) {
            return Err(refused(Check::Norm));
        }
        if !equations.hold(&generators, &keys) {
            return Err(refused(Check::Openings));
        }
        Ok(keys)
    }

    /// *norm* and *openings* of a block of rows.
    fn block(&self, block: &Block<'_>, layout: &OfferLayout) -> Result<(Equations, NormCheck), Check> {
        let mut equations = Equations::new(0, self.columns);
        let mut norm = NormCheck::new(&self.e, self.norm);
        let rows = block.rows.chunks(layout.rows.part).zip(block.responses.chunks(layout.responses.part));
        for ((row, (points, responses)), (rho, bits)) in
            (block.first..).zip(rows).zip(block.rho.iter().zip(block.bits))
        {
            let mut points = Fields::new(points);
            let mut responses = Fields::new(responses);
            let commitments = points.points(self.columns + 3)?; // c₀, c₀′, c_j, U
            let firsts = points.points(self.columns + 3)?; // M₀, M₀′, M_j, N
            let f_r = responses.scalar()?;
            let f = responses.scalars(self.columns + 4)?;
            let f_t = responses.scalar()?;
            norm.add(rho, &f);

            let mut generator = self.weights.stream(row);
            let weights: Vec<Scalar> = commitments.iter().map(|_| weight(&mut generator)).collect();
            let sums = self.sum_weights.row(*bits);
            // c₀′ is in no sum.
            let columns = &self.sum_weights.columns;
            let in_sums = |index: usize| match index {
                0 => sums * columns[0],
                1 => Scalar::ZERO,
                _ => sums * columns[index - 1],
            };
            for (index, ((weight, commitment), first)) in
                weights.iter().zip(commitments).zip(firsts).enumerate()
            {
                equations.push(-(weight * self.e + in_sums(index)), commitment);
                equations.push(-weight, first);
            }
            let fixed = &mut equations.fixed;
            fixed.g += weights[0] * f_r;
            fixed.g2 += weights[1] * f_r;
            let (f, g) = f.split_at(self.columns);
            for ((weight, f), key) in weights[2..].iter().zip(f).zip(&mut fixed.keys) {
                fixed.g += weight * f;
                *key += weight * f_r;
            }
            let weight = weights[self.columns + 2];
            fixed.lf.iter_mut().zip(g).for_each(|(sum, g)| *sum += weight * g);
            fixed.b += weight * f_t;
        }
        Ok((equations.settled(), norm))
    }

    /// *sum too large*, and *openings* of the sums.
    fn sums(
        &self,
        equations: &mut Equations,
        masks: &[u8],
        sums: &[u8],
        layout: &OfferLayout,
    ) -> Result<(), Check> {
        let columns = &self.sum_weights.columns;
        let each = masks.chunks(layout.masks.part).zip(sums.chunks(layout.sums.part));
        for (weight, (masks, sums)) in self.sum_weights.repetitions.iter().zip(each) {
            let masks = Fields::new(masks).points(self.columns + 2)?; // K₀, K_j, K_U
            let mut sums = Fields::new(sums);
            let r = sums.scalar()?;
            let entries = sums.sums(self.columns + 4)?;
            let t = sums.scalar()?;
            for (column, mask) in columns.iter().zip(masks) {
                equations.push(-(weight * column), mask);
            }
            let fixed = &mut equations.fixed;
            fixed.g += weight * columns[0] * r;
            let (x, u) = entries.split_at(self.columns);
            for ((column, &x), key) in columns[1..].iter().zip(x).zip(&mut fixed.keys) {
                fixed.g += weight * column * wide_integer(x);
                *key += weight * column * r;
            }
            let weight = weight * columns[self.columns + 1];
            fixed.lf.iter_mut().zip(u).for_each(|(sum, &u)| *sum += weight * wide_integer(u));
            fixed.b += weight * t;
        }
        Ok(())
    }
}

/// A block of rows of an offer, with the challenges that concern them.
struct Block<'a> {
    first: u64,
    rows: &'a [u8],
    responses: &'a [u8],
    rho: &'a [Scalar],
    bits: &'a [u128],
}
