//! Making an offer: docs/EXCHANGE.md#offer.

use std::io::{Read, Seek, Write};
use std::sync::Arc;

use curve25519_dalek::ristretto::RistrettoPoint;
use curve25519_dalek::scalar::Scalar;
use rayon::prelude::*;
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use crate::awaiting::Awaiting;
use crate::bases::{Base, Bases, encode};
use crate::error::Error;
use crate::generators::Generators;
use crate::layout::{OfferLayout, offer_header};
use crate::message::MessageWriter;
use crate::randomness::{Context, Entropy, Randomness, uniform};
use crate::rows::{OwnRows, chunks};
use crate::sums::Sums;
use crate::terms::Terms;
use crate::transcript::{Challenge, Transcript};
use crate::witness::{Encryption, NormSums, Secrets, respond};

/// Rows that one task works on.
pub(crate) const BLOCK: usize = 32;

/// The sender's keys a, b of each column: what opens its ciphertexts.
#[derive(Zeroize, ZeroizeOnDrop)]
pub(crate) struct Keys(pub(crate) Vec<(Scalar, Scalar)>);

impl Keys {
    /// H = aG + bG′.
    fn points(&self, generators: &Generators) -> Vec<RistrettoPoint> {
        self.0.iter().map(|(a, b)| generators.g * a + generators.g2 * b).collect()
    }
}

/// An offer that was made: its hash, and the keys that open replies to it.
///
/// Cannot be printed. Dropping it, and everything made from it, erases the keys, and with them
/// every chance to read a reply.
pub struct SentOffer {
    terms: Arc<Terms>,
    hash: [u8; 64],
    keys: Arc<Keys>,
}

/// Encrypts the own rows for all recipients and proves that each is a row of integers within the
/// bound. `rows` are the sender's, n × d integers i16, little-endian; `out` receives the message,
/// which must not be sent if there is an error.
///
/// # Privacy
/// The message reveals nothing of the rows if decisional Diffie–Hellman is hard in ristretto255,
/// for ever: Theorem X, docs/EXCHANGE.md#theorem. `entropy` is used for nothing else.
pub fn offer<R: Read + Seek, W: Write>(
    terms: &Terms,
    rows: R,
    entropy: Entropy,
    out: W,
) -> Result<SentOffer, Error> {
    let own = OwnRows::open(rows, terms.sender(), terms.people())?;
    let randomness = Randomness::new(
        entropy,
        &Context { role: "offer", terms, recipient: None, rows: own.hash(), partner: &[] },
    );
    let generators = Generators::new(0);
    let bases = Bases::new(&generators, terms.sender().norm);
    let mut generator = randomness.purpose("keys").stream(0);
    let columns = usize::from(terms.sender().columns);
    let keys = Keys((0..columns).map(|_| (uniform(&mut generator), uniform(&mut generator))).collect());
    let key_bases: Vec<Base> = keys.points(&generators).iter().map(Base::new).collect();
    let maker = Maker {
        own,
        secrets: Secrets::new(&randomness),
        encryption: Encryption { bases: &bases, keys: &key_bases },
        columns,
        people: terms.people(),
    };
    let transcript = Transcript::new("offer", terms, &generators);
    let masks = Sums::masks(terms.repetitions(), 2, columns + 4, &mut randomness.purpose("sums").stream(0));
    let mut message = MessageWriter::new(out, transcript);
    message.write(&offer_header(terms))?;
    let hash = maker.write(&OfferLayout::new(terms), masks, message)?;
    Ok(SentOffer { terms: Arc::new(terms.clone()), hash, keys: Arc::new(keys) })
}

struct Maker<'a, R> {
    own: OwnRows<R>,
    secrets: Secrets,
    encryption: Encryption<'a>,
    columns: usize,
    people: u64,
}

impl<R: Read + Seek> Maker<'_, R> {
    fn write<W: Write>(
        mut self,
        layout: &OfferLayout,
        mut sums: Sums,
        mut message: MessageWriter<W>,
    ) -> Result<[u8; 64], Error> {
        let one = Scalar::ONE;
        let keys: Vec<RistrettoPoint> = self.encryption.keys.iter().map(|key| key.times(&one)).collect();
        message.section("keys", layout.keys, &encode(&keys))?;
        message.section("masks", layout.masks, &self.sum_masks(&sums))?;
        message.begin("rows", layout.rows);
        for (first, count) in chunks(self.people) {
            for block in self.commitments(first, count)? {
                message.bind(&block)?;
            }
        }
        let norm = self.norm(message.transcript.challenge("rho"))?;
        message.section("norm", layout.norm, &self.secrets.norm(&norm, self.encryption.bases))?;
        let e = message.transcript.challenge("e").scalar();
        let mut bits = message.transcript.challenge("bits");
        for (first, count) in chunks(self.people) {
            for (block, partial) in self.responses(first, &e, &bits.bits(count), &sums)? {
                message.write(&block)?;
                sums.merge(&partial);
            }
        }
        message.write(self.secrets.closing(&e).as_bytes())?;
        for (blinds, entries) in sums.each() {
            message.write(blinds[0].as_bytes())?;
            for entry in entries {
                message.write(&entry.to_le_bytes())?;
            }
            message.write(blinds[1].as_bytes())?;
        }
        message.finish(layout.length)
    }

    /// The section *masks*: K₀, K₁ … K_d, K_U.
    fn sum_masks(&self, sums: &Sums) -> Vec<u8> {
        let (bases, keys) = (self.encryption.bases, self.encryption.keys);
        let mut halves = Vec::new();
        for (blinds, entries) in sums.each() {
            let entries = Sums::scalars(entries);
            let (x, u) = entries.split_at(self.columns);
            halves.push(bases.g.times(&blinds[0]));
            halves.extend(keys.iter().zip(x).map(|(key, x)| bases.g.times(x) + key.times(&blinds[0])));
            halves.push(bases.commit(u, &blinds[1]));
        }
        encode(&halves)
    }

    /// Blocks of the section *rows*: c₀, c₀′, c_j, U, M₀, M₀′, M_j, N.
    fn commitments(&mut self, first: u64, count: usize) -> Result<Vec<Vec<u8>>, Error> {
        let entries = self.own.entries(first, count)?;
        let width = self.columns + 4;
        let Self { secrets, encryption, columns, .. } = self;
        let block = |(index, block): (usize, &[i64])| {
            let mut halves = Vec::with_capacity(BLOCK * (2 * *columns + 6));
            for (row, entries) in (first + (index * BLOCK) as u64..).zip(block.chunks(width)) {
                let (x, u) = entries.split_at(*columns);
                let (blinds, masks) = (secrets.blinds(row), secrets.masks(row, width));
                let (w, p) = masks.w.split_at(*columns);
                encryption.small(x, &blinds.r, &mut halves);
                halves.push(encryption.bases.commit_small(u, &blinds.t));
                encryption.full(w, &masks.q, &mut halves);
                halves.push(encryption.bases.commit(p, &masks.o));
            }
            encode(&halves)
        };
        Ok(entries.par_chunks(BLOCK * width).enumerate().map(block).collect())
    }

    fn norm(&mut self, mut rho: Challenge) -> Result<NormSums, Error> {
        let width = self.columns + 4;
        let mut sums = NormSums::new();
        for (first, count) in chunks(self.people) {
            let entries = self.own.entries(first, count)?;
            let rho = rho.scalars(count);
            let secrets = &self.secrets;
            let blocks = entries.par_chunks(BLOCK * width).zip(rho.par_chunks(BLOCK)).enumerate();
            let partial: Vec<NormSums> = blocks
                .map(|(index, (entries, rho))| {
                    let mut sums = NormSums::new();
                    let numbers = first + (index * BLOCK) as u64..;
                    for ((row, entries), rho) in numbers.zip(entries.chunks(width)).zip(rho) {
                        sums.add(rho, entries, &secrets.masks(row, width));
                    }
                    sums
                })
                .collect();
            for partial in &partial {
                sums.merge(partial);
            }
        }
        Ok(sums)
    }

    /// Blocks of the section *responses*: f_r, f_j, g_k, f_t, and what the rows add to the sums.
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
            let mut bytes = Vec::with_capacity(BLOCK * 32 * (width + 2));
            let mut sums = sums.partial();
            let numbers = first + (index * BLOCK) as u64..;
            for ((row, entries), &bits) in numbers.zip(entries.chunks(width)).zip(bits) {
                let (blinds, masks) = (secrets.blinds(row), secrets.masks(row, width));
                bytes.extend((e * blinds.r + masks.q).as_bytes());
                respond(e, entries, &masks).for_each(|f| bytes.extend(f.as_bytes()));
                bytes.extend((e * blinds.t + masks.o).as_bytes());
                sums.add(bits, &[&blinds.r, &blinds.t], entries);
            }
            (bytes, sums)
        };
        Ok(blocks.map(block).collect())
    }
}

const KEPT: &[u8] = b"potluck exchange sent offer 1";

impl SentOffer {
    /// SHA-512 of the message: to be recorded before it is sent.
    pub fn hash(&self) -> &[u8; 64] {
        &self.hash
    }

    /// What a party keeps until the last result, in a private place.
    ///
    /// # Privacy
    /// These bytes open the offer: whoever has both reads the rows.
    pub fn to_bytes(&self) -> Zeroizing<Vec<u8>> {
        let mut bytes = Zeroizing::new(Vec::with_capacity(KEPT.len() + 128 + 64 * self.keys.0.len()));
        bytes.extend(KEPT);
        bytes.extend(self.terms.hash());
        bytes.extend(self.hash);
        for (a, b) in &self.keys.0 {
            bytes.extend(a.as_bytes());
            bytes.extend(b.as_bytes());
        }
        bytes
    }

    /// From [`SentOffer::to_bytes`], under the same terms.
    pub fn from_bytes(terms: &Terms, bytes: &[u8]) -> Result<Self, Error> {
        let columns = usize::from(terms.sender().columns);
        let rest = bytes
            .strip_prefix(KEPT)
            .and_then(|rest| rest.strip_prefix(terms.hash().as_slice()))
            .filter(|rest| rest.len() == 64 + 64 * columns)
            .ok_or(Error::Kept)?;
        let (hash, rest) = rest.split_first_chunk().ok_or(Error::Kept)?;
        let (encoded, _) = rest.as_chunks::<32>();
        let mut scalars = Zeroizing::new(Vec::with_capacity(2 * columns));
        for encoded in encoded {
            scalars.push(Option::<Scalar>::from(Scalar::from_canonical_bytes(*encoded)).ok_or(Error::Kept)?);
        }
        let (pairs, _) = scalars.as_chunks::<2>();
        let keys = Keys(pairs.iter().map(|&[a, b]| (a, b)).collect());
        Ok(Self { terms: Arc::new(terms.clone()), hash: *hash, keys: Arc::new(keys) })
    }

    /// One for each recipient, in the order of the terms: each takes one reply.
    pub fn await_replies(self) -> Vec<Awaiting> {
        self.terms
            .recipients()
            .iter()
            .map(|recipient| {
                Awaiting::new(self.terms.clone(), recipient.clone(), self.hash, self.keys.clone())
            })
            .collect()
    }
}
