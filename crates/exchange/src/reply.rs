//! Making a reply: docs/EXCHANGE.md#reply.

use std::io::{Read, Seek, Write};

use curve25519_dalek::ristretto::RistrettoPoint;
use curve25519_dalek::scalar::Scalar;
use curve25519_dalek::traits::Identity;
use potluck_core::noise::rounded_gaussian;
use rayon::prelude::*;
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use crate::accepted_offer::{AcceptedOffer, refusing};
use crate::bases::{Bases, encode, encode_whole, integer};
use crate::error::{Error, Message};
use crate::fields::Fields;
use crate::generators::Generators;
use crate::layout::{OfferLayout, ReplyLayout, reply_header};
use crate::message::MessageWriter;
use crate::offer::BLOCK;
use crate::products::{Gamma, Products, secret_sum};
use crate::randomness::{Context, Entropy, Randomness, pair, uniform};
use crate::rows::{OwnRows, chunks};
use crate::sums::Sums;
use crate::terms::{Recipient, Terms};
use crate::transcript::{Challenge, Transcript};
use crate::witness::{NormSums, Secrets, respond};

/// A reply that was made. Its noise and masks are gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SentReply {
    hash: [u8; 64],
    offer: [u8; 64],
}

impl SentReply {
    /// SHA-512 of the message: to be recorded before it is sent.
    pub fn hash(&self) -> &[u8; 64] {
        &self.hash
    }

    /// SHA-512 of the offer that it answers.
    pub fn offer(&self) -> &[u8; 64] {
        &self.offer
    }
}

/// The beginning of the transcript of a reply.
pub(crate) fn transcript(
    terms: &Terms,
    recipient: &Recipient,
    offer: &[u8; 64],
    keys: &[RistrettoPoint],
    generators: &Generators,
) -> Transcript {
    let mut transcript = Transcript::new("reply", terms, generators);
    transcript.item("offer", offer);
    transcript.item("pair", &pair(terms, Some(recipient.party.index)));
    let keys: Vec<u8> = keys.iter().flat_map(|key| key.compress().to_bytes()).collect();
    transcript.item("keys", &keys);
    transcript
}

impl<R: Read + Seek> AcceptedOffer<R> {
    /// Multiplies the offer's encrypted rows by the own ones, adds exact noise, and proves it.
    /// `rows` are the recipient's, in the same order of people; `out` receives the message, which
    /// must not be sent if there is an error.
    ///
    /// # Privacy
    /// The message tells the sender the products with noise of scale σ and nothing more, whatever
    /// it computes, now or later: Theorem X, *as recipient*, docs/EXCHANGE.md#theorem. The noise is
    /// exact (Theorem 3, docs/PRIVACY.md#what-a-release-costs) and costs 2√(C_iC_j)/σ (Lemma X1,
    /// docs/PRIVACY.md#exchange).
    pub fn reply<T: Read + Seek, W: Write>(
        self,
        rows: T,
        entropy: Entropy,
        out: W,
    ) -> Result<SentReply, Error> {
        let (terms, recipient) = (self.terms.clone(), self.recipient.clone());
        let own = OwnRows::open(rows, &recipient.party, terms.people())?;
        let offer = *self.hash();
        let randomness = Randomness::new(
            entropy,
            &Context {
                role: "reply",
                terms: &terms,
                recipient: Some(recipient.party.index),
                rows: own.hash(),
                partner: &offer,
            },
        );
        let columns = usize::from(recipient.party.columns);
        let generators = Generators::new(columns);
        let transcript = transcript(&terms, &recipient, &offer, &self.keys, &generators);
        let sums =
            Sums::masks(terms.repetitions(), 1, columns + 4, &mut randomness.purpose("sums").stream(0));
        let maker = Maker {
            own,
            secrets: Secrets::new(&randomness),
            noise: Noise::draw(&recipient, self.keys.len(), &randomness),
            bases: Bases::new(&generators, recipient.party.norm),
            generators,
            ciphertexts: Ciphertexts { layout: OfferLayout::new(&terms), offer: self },
            columns,
        };
        let mut message = MessageWriter::new(out, transcript);
        message.write(&reply_header(&terms, &offer, recipient.party.index))?;
        let layout = ReplyLayout::new(&terms, recipient.party.columns);
        let hash = maker.write(&layout, sums, message)?;
        Ok(SentReply { hash, offer })
    }
}

/// The encrypted rows of an offer: c₀, c₀′, c_j.
struct Ciphertexts<R> {
    layout: OfferLayout,
    offer: AcceptedOffer<R>,
}

impl<R: Read + Seek> Ciphertexts<R> {
    /// Points of a row.
    fn width(&self) -> usize {
        self.offer.keys.len() + 2
    }

    fn read(&mut self, first: u64, count: usize) -> Result<Zeroizing<Vec<u8>>, Error> {
        let rows = self.layout.rows;
        self.offer.message.read(rows.at(first), count * rows.part)
    }
}

/// For every own column l: q and then η of every offered column, with what proves them.
#[derive(Zeroize, ZeroizeOnDrop)]
struct Noise {
    #[zeroize(skip)]
    each: usize,
    values: Vec<Scalar>,
    blinds: Vec<Scalar>,
    masks: Vec<Scalar>,
    mask_blinds: Vec<Scalar>,
}

impl Noise {
    /// # Privacy
    /// η is exact, of the scale in the terms, from a generator of its own: Theorem 3,
    /// docs/PRIVACY.md#what-a-release-costs.
    fn draw(recipient: &Recipient, offered: usize, randomness: &Randomness) -> Self {
        let mut exact = randomness.purpose("noise").stream(0);
        let mut generator = randomness.purpose("noise proof").stream(0);
        let columns = usize::from(recipient.party.columns);
        let mut values = Vec::with_capacity(columns * (offered + 1));
        for _ in 0..columns {
            values.push(uniform(&mut generator));
            for _ in 0..offered {
                let mut noise = rounded_gaussian(recipient.sigma, &mut exact);
                values.push(integer(noise));
                noise.zeroize();
            }
        }
        let mut masks = || values.iter().map(|_| uniform(&mut generator)).collect::<Vec<_>>();
        let (blinds, others, mask_blinds) = (masks(), masks(), masks());
        Self { each: offered + 1, values, blinds, masks: others, mask_blinds }
    }

    /// The section *noise*: Q of all columns, then Z.
    fn commitments(&self, bases: &Bases) -> Vec<u8> {
        let commit = |(value, blind): (&Scalar, &Scalar)| bases.g.times(value) + bases.b.times(blind);
        let values = self.values.iter().zip(&self.blinds).map(commit);
        let masks = self.masks.iter().zip(&self.mask_blinds).map(commit);
        encode(&values.chain(masks).collect::<Vec<_>>())
    }

    /// What is added to the products' outputs, or, of masks, to the output mask:
    /// q_lG, q_lG′, q_lH_j + η_{l,j}G, as points.
    fn hidden(values: &[Scalar], keys: &[RistrettoPoint], generators: &Generators) -> Vec<RistrettoPoint> {
        let q = &values[0];
        let each = keys.iter().zip(&values[1..]);
        [generators.g * q, generators.g2 * q]
            .into_iter()
            .chain(each.map(|(key, value)| secret_sum(&[*q, *value], &[*key, generators.g])))
            .collect()
    }
}

/// Own entries of a block of rows, their ciphertexts and weights ρ.
type Part<'a> = (&'a [i64], (&'a [u8], &'a [Scalar]));

struct Maker<R, T> {
    own: OwnRows<T>,
    secrets: Secrets,
    noise: Noise,
    bases: Bases,
    generators: Generators,
    ciphertexts: Ciphertexts<R>,
    columns: usize,
}

impl<R: Read + Seek, T: Read + Seek> Maker<R, T> {
    fn people(&self) -> u64 {
        self.ciphertexts.offer.terms.people()
    }

    /// The order of the sections is part of the proof: η and q are committed before γ, the output
    /// mask after γ and before e.
    fn write<W: Write>(
        mut self,
        layout: &ReplyLayout,
        mut sums: Sums,
        mut message: MessageWriter<W>,
    ) -> Result<[u8; 64], Error> {
        message.section("masks", layout.masks, &self.sum_masks(&sums))?;
        message.begin("rows", layout.rows);
        let norm = self.ciphertexts.offer.recipient.party.norm;
        let mut products = Products::new(self.ciphertexts.width(), self.columns, norm);
        for (first, count) in chunks(self.people()) {
            for (block, partial) in self.commitments(first, count, &products)? {
                message.bind(&block)?;
                products.merge(&partial);
            }
        }
        message.section("outputs", layout.outputs, &self.outputs(&products))?;
        message.section("noise", layout.noise, &self.noise.commitments(&self.bases))?;

        let gamma = Gamma {
            each: self.ciphertexts.width(),
            scalars: message.transcript.challenge("gamma").scalars(self.columns * self.ciphertexts.width()),
        };
        let (norm, output_mask) = self.masks(message.transcript.challenge("rho"), &gamma)?;
        message.section("norm", layout.norm, &self.secrets.norm(&norm, &self.bases))?;
        message.section("output mask", layout.output_mask, &encode_whole(&[output_mask]))?;

        let e = message.transcript.challenge("e").scalar();
        let mut bits = message.transcript.challenge("bits");
        for (first, count) in chunks(self.people()) {
            for (block, partial) in self.responses(first, &e, &bits.bits(count), &sums)? {
                message.write(&block)?;
                sums.merge(&partial);
            }
        }
        message.write(self.secrets.closing(&e).as_bytes())?;
        let noise = &self.noise;
        let values = noise.values.iter().zip(&noise.masks);
        let blinds = noise.blinds.iter().zip(&noise.mask_blinds);
        for ((value, mask), (blind, mask_blind)) in values.zip(blinds) {
            message.write((e * value + mask).as_bytes())?;
            message.write((e * blind + mask_blind).as_bytes())?;
        }
        for (blinds, entries) in sums.each() {
            for entry in entries {
                message.write(&entry.to_le_bytes())?;
            }
            message.write(blinds[0].as_bytes())?;
        }
        message.finish(layout.length)
    }

    /// The section *masks*: K̂.
    fn sum_masks(&self, sums: &Sums) -> Vec<u8> {
        let commit =
            |(blinds, entries): (&[Scalar], &[i128])| self.bases.commit(&Sums::scalars(entries), &blinds[0]);
        encode(&sums.each().map(commit).collect::<Vec<_>>())
    }

    /// Blocks of the section *rows*, K and N, with the products of the rows.
    fn commitments(
        &mut self,
        first: u64,
        count: usize,
        products: &Products,
    ) -> Result<Vec<(Vec<u8>, Products)>, Error> {
        let entries = self.own.entries(first, count)?;
        let ciphertexts = self.ciphertexts.read(first, count)?;
        let (width, points) = (self.columns + 4, self.ciphertexts.width());
        let part = self.ciphertexts.layout.rows.part;
        let Self { secrets, bases, columns, .. } = self;
        let block = |(index, (entries, ciphertexts)): (usize, (&[i64], &[u8]))| {
            let mut halves = Vec::with_capacity(2 * BLOCK);
            let mut products = products.partial();
            let rows = entries.chunks(width).zip(ciphertexts.chunks(part));
            for (row, (entries, ciphertext)) in (first + (index * BLOCK) as u64..).zip(rows) {
                let (blinds, masks) = (secrets.blinds(row), secrets.masks(row, width));
                halves.push(bases.commit_small(entries, &blinds.t));
                halves.push(bases.commit(&masks.w, &masks.o));
                products.add(&Fields::new(ciphertext).points(points)?, &entries[..*columns]);
            }
            Ok((encode(&halves), products))
        };
        let sender = self.ciphertexts.offer.terms.sender().index;
        entries
            .par_chunks(BLOCK * width)
            .zip(ciphertexts.par_chunks(BLOCK * part))
            .enumerate()
            .map(block)
            .collect::<Result<_, _>>()
            .map_err(refusing(sender, Message::Offer))
    }

    /// The section *outputs*: the products, each with noise and hidden by q.
    fn outputs(&self, products: &Products) -> Vec<u8> {
        let keys = &self.ciphertexts.offer.keys;
        let hidden = self
            .noise
            .values
            .chunks(self.noise.each)
            .flat_map(|values| Noise::hidden(values, keys, &self.generators));
        let products = products.finish();
        let outputs: Vec<_> = products.iter().zip(hidden).map(|(product, hidden)| product + hidden).collect();
        encode_whole(&outputs)
    }

    /// What goes into E₁ and E₀, and the output mask M.
    fn masks(&mut self, mut rho: Challenge, gamma: &Gamma) -> Result<(NormSums, RistrettoPoint), Error> {
        let width = self.columns + 4;
        let part = self.ciphertexts.layout.rows.part;
        let refused = refusing(self.ciphertexts.offer.terms.sender().index, Message::Offer);
        let mut norm = NormSums::new();
        let mut output = RistrettoPoint::identity();
        for (first, count) in chunks(self.people()) {
            let entries = self.own.entries(first, count)?;
            let ciphertexts = self.ciphertexts.read(first, count)?;
            let rho = rho.scalars(count);
            let Self { secrets, columns, .. } = &*self;
            let block = |(index, (entries, (ciphertexts, rho))): (usize, Part<'_>)| {
                let mut norm = NormSums::new();
                let mut scalars = Zeroizing::new(Vec::with_capacity(BLOCK * gamma.each));
                let mut points = Vec::with_capacity(BLOCK * gamma.each);
                let rows = entries.chunks(width).zip(ciphertexts.chunks(part)).zip(rho);
                for (row, ((entries, ciphertext), rho)) in (first + (index * BLOCK) as u64..).zip(rows) {
                    let masks = secrets.masks(row, width);
                    norm.add(rho, entries, &masks);
                    scalars.extend(gamma.combine(&masks.w[..*columns]));
                    points.extend(Fields::new(ciphertext).points(gamma.each)?);
                }
                Ok((norm, secret_sum(&scalars, &points)))
            };
            let blocks: Vec<_> = entries
                .par_chunks(BLOCK * width)
                .zip(ciphertexts.par_chunks(BLOCK * part).zip(rho.par_chunks(BLOCK)))
                .enumerate()
                .map(block)
                .collect::<Result<_, _>>()
                .map_err(refused)?;
            for (partial, sum) in blocks {
                norm.merge(&partial);
                output += sum;
            }
        }
        let keys = &self.ciphertexts.offer.keys;
        for (masks, gamma) in self.noise.masks.chunks(self.noise.each).zip(gamma.scalars.chunks(gamma.each)) {
            output += secret_sum(gamma, &Noise::hidden(masks, keys, &self.generators));
        }
        Ok((norm, output))
    }

    /// Blocks of the section *responses*, f_l, g_k, f_t, and what the rows add to the sums.
    fn responses(
        &mut self,
        first: u64,
        e: &Scalar,
        bits: &[u128],
        sums: &Sums,
    ) -> Result<Vec<(Vec<u8>, Sums)>, Error> {
        let entries = self.own.entries(first, bits.len())?;
        let width = self.columns + 4;
        let secrets = &self.secrets;
        let blocks = entries.par_chunks(BLOCK * width).zip(bits.par_chunks(BLOCK)).enumerate();
        let block = |(index, (entries, bits)): (usize, (&[i64], &[u128]))| {
            let mut bytes = Vec::with_capacity(BLOCK * 32 * (width + 1));
            let mut sums = sums.partial();
            let numbers = first + (index * BLOCK) as u64..;
            for ((row, entries), &bits) in numbers.zip(entries.chunks(width)).zip(bits) {
                let (blinds, masks) = (secrets.blinds(row), secrets.masks(row, width));
                respond(e, entries, &masks).for_each(|f| bytes.extend(f.as_bytes()));
                bytes.extend((e * blinds.t + masks.o).as_bytes());
                sums.add(bits, &[&blinds.t], entries);
            }
            (bytes, sums)
        };
        Ok(blocks.map(block).collect())
    }
}
