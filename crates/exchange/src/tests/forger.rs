//! A prover without scruples, written from docs/EXCHANGE.md beside the crate's own: rows may be any
//! scalars, and every step may be done wrongly. With nothing wrong its messages are accepted, which
//! is the control of every test that expects a refusal.

use curve25519_dalek::ristretto::{CompressedRistretto, RistrettoPoint};
use curve25519_dalek::scalar::Scalar;
use curve25519_dalek::traits::Identity;
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use sha2::{Digest, Sha512};

use crate::bases::{integer, wide_integer};
use crate::generators::Generators;
use crate::layout::{OfferLayout, offer_header, reply_header};
use crate::randomness::{integer_mask, pair, uniform};
use crate::squares::Squares;
use crate::terms::Terms;
use crate::transcript::Transcript;

type Point = RistrettoPoint;

/// x and u of a row: anything.
#[derive(Clone)]
pub(crate) struct Row {
    pub(crate) x: Vec<Scalar>,
    pub(crate) u: [Scalar; 4],
}

/// A row as it should be; one that is too long gets no u.
pub(crate) fn row(x: &[i64], norm: u32) -> Row {
    let square: i64 = x.iter().map(|x| x * x).sum();
    let rest = u32::try_from(i64::from(norm) - square).unwrap_or(0);
    Row { x: x.iter().map(|&x| integer(x)).collect(), u: Squares::new(norm).of(rest).map(integer) }
}

pub(crate) fn fair_rows(rows: &[Vec<i64>], norm: u32) -> Vec<Row> {
    rows.iter().map(|x| row(x, norm)).collect()
}

/// i with i² = −1, so that v² + (iv)² = 0.
pub(crate) fn root_of_minus_one() -> Scalar {
    // 2 is no square modulo ℓ ≡ 5 (mod 8): 2^((ℓ − 1)/4).
    let exponent = {
        let mut bytes = (-Scalar::ONE).to_bytes();
        for _ in 0..2 {
            let mut carry = 0;
            for byte in bytes.iter_mut().rev() {
                let low = *byte & 1;
                *byte = *byte >> 1 | carry << 7;
                carry = low;
            }
        }
        bytes
    };
    let two = Scalar::from(2_u8);
    let root = exponent
        .iter()
        .rev()
        .flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1))
        .fold(Scalar::ONE, |power, bit| if bit == 1 { power * power * two } else { power * power });
    assert_eq!(root * root, -Scalar::ONE);
    root
}

/// What a forged offer does wrongly.
#[derive(Clone, Default)]
pub(crate) struct OfferCheats {
    /// Keys chosen at will, of which the forger may know nothing.
    pub(crate) keys: Option<Vec<Point>>,
    /// c₀′ of the first row belongs to r + 1.
    pub(crate) other_second: bool,
    /// Challenges are computed as if the keys were not hashed.
    pub(crate) keys_unbound: bool,
    /// Guesses the bits of the first row and shifts masks so that its entries cancel.
    pub(crate) guess: bool,
}

/// An offer, and a, b of its keys.
pub(crate) fn forge_offer(
    terms: &Terms,
    rows: &[Row],
    cheats: &OfferCheats,
    seed: u64,
) -> (Vec<u8>, Vec<(Scalar, Scalar)>) {
    let rng = &mut ChaCha20Rng::seed_from_u64(seed);
    let g = Generators::new(0);
    let d = usize::from(terms.sender().columns);
    let secret: Vec<(Scalar, Scalar)> = (0..d).map(|_| (uniform(rng), uniform(rng))).collect();
    let keys =
        cheats.keys.clone().unwrap_or_else(|| secret.iter().map(|(a, b)| g.g * a + g.g2 * b).collect());
    let encrypt = |x: &[Scalar], r: &Scalar| -> Vec<Point> {
        x.iter().zip(&keys).map(|(x, key)| g.g * x + key * r).collect()
    };
    let commit = |u: &[Scalar], t: &Scalar| -> Point {
        g.b * t + u.iter().zip(&g.f).map(|(u, f)| f * u).sum::<Point>()
    };
    let blinds: Vec<[Scalar; 2]> = rows.iter().map(|_| [uniform(rng), uniform(rng)]).collect();
    let masks: Vec<(Scalar, Vec<Scalar>, Scalar)> =
        rows.iter().map(|_| (uniform(rng), many(d + 4, rng), uniform(rng))).collect();
    let mut points = Vec::new();
    for (s, (row, ([r, t], (q, w, o)))) in rows.iter().zip(blinds.iter().zip(&masks)).enumerate() {
        let second = if cheats.other_second && s == 0 { r + Scalar::ONE } else { *r };
        points.extend([g.g * r, g.g2 * second]);
        points.extend(encrypt(&row.x, r));
        points.push(commit(&row.u, t));
        points.extend([g.g * q, g.g2 * q]);
        points.extend(encrypt(&w[..d], q));
        points.push(commit(&w[d..], o));
    }
    let entries: Vec<Vec<Scalar>> = rows.iter().map(|row| [&row.x[..], &row.u[..]].concat()).collect();
    let hats: Vec<(Scalar, Vec<Scalar>, Scalar)> = (0..terms.repetitions())
        .map(|_| {
            let mut z: Vec<Scalar> = (0..d + 4).map(|_| wide_integer(integer_mask(rng))).collect();
            if cheats.guess && uniform(rng).as_bytes()[0] & 1 == 1 {
                z.iter_mut().zip(&entries[0]).for_each(|(z, entry)| *z -= entry);
            }
            (uniform(rng), z, uniform(rng))
        })
        .collect();
    let mut mask_points = Vec::new();
    for (r, z, t) in &hats {
        mask_points.push(g.g * r);
        mask_points.extend(encrypt(&z[..d], r));
        mask_points.push(commit(&z[d..], t));
    }
    let mut transcript = Transcript::new("offer", terms, &g);
    let key_bytes = encoded(&keys);
    let unbound = encoded(&vec![Point::identity(); d]);
    transcript.item("keys", if cheats.keys_unbound { &unbound } else { &key_bytes });
    transcript.item("masks", &encoded(&mask_points));
    transcript.item("rows", &encoded(&points));
    let rho = transcript.challenge("rho").scalars(rows.len());
    let all_masks: Vec<&[Scalar]> = masks.iter().map(|(_, w, _)| &w[..]).collect();
    let norm = Norm::new(&g, &rho, &entries, &all_masks, rng);
    transcript.item("norm", &norm.section);
    let e = transcript.challenge("e").scalar();
    let bits = transcript.challenge("bits").bits(rows.len());

    let mut message = offer_header(terms);
    message.extend(key_bytes);
    message.extend(encoded(&mask_points));
    message.extend(encoded(&points));
    message.extend(&norm.section);
    for ((entries, [r, t]), (q, w, o)) in entries.iter().zip(&blinds).zip(&masks) {
        message.extend((e * r + q).as_bytes());
        entries.iter().zip(w).for_each(|(entry, w)| message.extend((e * entry + w).as_bytes()));
        message.extend((e * t + o).as_bytes());
    }
    message.extend(norm.closing(&e).as_bytes());
    for (k, (r, z, t)) in hats.iter().enumerate() {
        let chosen = || (0..rows.len()).filter(|&s| bits[s] >> k & 1 == 1);
        message.extend((r + chosen().map(|s| blinds[s][0]).sum::<Scalar>()).as_bytes());
        for (column, z) in z.iter().enumerate() {
            message.extend(cut(z + chosen().map(|s| entries[s][column]).sum::<Scalar>()));
        }
        message.extend((t + chosen().map(|s| blinds[s][1]).sum::<Scalar>()).as_bytes());
    }
    (message, secret)
}

/// What a forged reply does wrongly.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum ReplyCheat {
    Nothing,
    /// Adds so many times the first encrypted row to the outputs of column 0.
    Magnify(i64),
    /// Products are made with the entries of these columns instead.
    Columns(Vec<usize>),
    /// Shifts the outputs so that they cancel under the γ of the outputs before the shift.
    AfterGamma,
    /// η of the first column differs from what was committed before γ.
    LateNoise,
    /// q of the first column differs from what was committed before γ.
    LateQ,
    /// Guesses the bits of the first row.
    Guess,
}

/// A reply of `rows` with noise `eta` (for each own column, each offered one).
#[expect(clippy::too_many_lines, reason = "the order of a reply, in one place")]
pub(crate) fn forge_reply(
    terms: &Terms,
    offer: &[u8],
    rows: &[Row],
    eta: &[Vec<i64>],
    cheat: &ReplyCheat,
    seed: u64,
) -> Vec<u8> {
    let rng = &mut ChaCha20Rng::seed_from_u64(seed);
    let to = &terms.recipients()[0].party;
    let (d, o) = (usize::from(to.columns), usize::from(terms.sender().columns));
    let g = Generators::new(d);
    let layout = OfferLayout::new(terms);
    let part = |first: u64, count: usize| points_of(&offer[first as usize..][..32 * count]);
    let keys = part(layout.keys.first, o);
    let ciphertexts: Vec<Vec<Point>> =
        (0..rows.len()).map(|s| part(layout.rows.at(s as u64), o + 2)).collect();
    let commit = |z: &[Scalar], t: &Scalar| -> Point {
        let bases = g.l.iter().chain(&g.f);
        g.b * t + z.iter().zip(bases).map(|(z, base)| base * z).sum::<Point>()
    };
    let entries: Vec<Vec<Scalar>> = rows.iter().map(|row| [&row.x[..], &row.u[..]].concat()).collect();
    let blinds: Vec<Scalar> = many(rows.len(), rng);
    let masks: Vec<(Vec<Scalar>, Scalar)> = rows.iter().map(|_| (many(d + 4, rng), uniform(rng))).collect();
    let mut points = Vec::new();
    for ((entries, t), (w, q)) in entries.iter().zip(&blinds).zip(&masks) {
        points.extend([commit(entries, t), commit(w, q)]);
    }
    let hats: Vec<(Vec<Scalar>, Scalar)> = (0..terms.repetitions())
        .map(|_| {
            let mut z: Vec<Scalar> = (0..d + 4).map(|_| wide_integer(integer_mask(rng))).collect();
            if *cheat == ReplyCheat::Guess && uniform(rng).as_bytes()[0] & 1 == 1 {
                z.iter_mut().zip(&entries[0]).for_each(|(z, entry)| *z -= entry);
            }
            (z, uniform(rng))
        })
        .collect();
    let mask_points: Vec<Point> = hats.iter().map(|(z, t)| commit(z, t)).collect();

    let committed: Vec<Vec<Scalar>> = eta
        .iter()
        .map(|eta| [vec![uniform(rng)], eta.iter().map(|&eta| integer(eta)).collect()].concat())
        .collect();
    let mut used = committed.clone();
    if *cheat == ReplyCheat::LateNoise {
        used[0][1] += integer(1000);
    }
    if *cheat == ReplyCheat::LateQ {
        used[0][0] += Scalar::ONE;
    }
    let hide = |v: &[Scalar]| -> Vec<Point> {
        let rest = keys.iter().zip(&v[1..]).map(|(key, noise)| key * v[0] + g.g * noise);
        [g.g * v[0], g.g2 * v[0]].into_iter().chain(rest).collect()
    };
    let taken = match cheat {
        ReplyCheat::Columns(taken) => taken.clone(),
        _ => (0..d).collect(),
    };
    let magnify = match cheat {
        ReplyCheat::Magnify(times) => integer(*times),
        _ => Scalar::ZERO,
    };
    let mut outputs = Vec::new();
    for l in 0..d {
        let hidden = hide(&used[l]);
        for (p, hidden) in hidden.iter().enumerate() {
            let product: Point = ciphertexts.iter().zip(rows).map(|(c, row)| c[p] * row.x[taken[l]]).sum();
            let more = if l == 0 { ciphertexts[0][p] * magnify } else { Point::identity() };
            outputs.push(product + hidden + more);
        }
    }
    let draw = |rng: &mut ChaCha20Rng| -> Vec<Vec<Scalar>> { (0..d).map(|_| many(o + 1, rng)).collect() };
    let (value_blinds, value_masks, mask_blinds) = (draw(rng), draw(rng), draw(rng));
    let pedersen = |values: &[Vec<Scalar>], blinds: &[Vec<Scalar>]| -> Vec<Point> {
        let pairs = values.iter().flatten().zip(blinds.iter().flatten());
        pairs.map(|(value, blind)| g.g * value + g.b * blind).collect()
    };
    let mut noise = pedersen(&committed, &value_blinds);
    noise.extend(pedersen(&value_masks, &mask_blinds));

    let offer_hash: [u8; 64] = Sha512::digest(offer).into();
    let begun = |outputs: &[Point]| {
        let mut transcript = Transcript::new("reply", terms, &g);
        transcript.item("offer", &offer_hash);
        transcript.item("pair", &pair(terms, Some(to.index)));
        transcript.item("keys", &encoded(&keys));
        transcript.item("masks", &encoded(&mask_points));
        transcript.item("rows", &encoded(&points));
        transcript.item("outputs", &encoded(outputs));
        transcript.item("noise", &encoded(&noise));
        transcript
    };
    if *cheat == ReplyCheat::AfterGamma {
        let gamma = begun(&outputs).challenge("gamma").scalars(d * (o + 2));
        outputs[0] += g.g * gamma[0].invert();
        outputs[2] -= g.g * gamma[2].invert();
    }
    let mut transcript = begun(&outputs);
    let rho = transcript.challenge("rho").scalars(rows.len());
    let gamma = transcript.challenge("gamma").scalars(d * (o + 2));
    let all_masks: Vec<&[Scalar]> = masks.iter().map(|(w, _)| &w[..]).collect();
    let norm = Norm::new(&g, &rho, &entries, &all_masks, rng);
    let mut mask = Point::identity();
    for l in 0..d {
        for (p, hidden) in hide(&value_masks[l]).iter().enumerate() {
            let gamma = gamma[l * (o + 2) + p];
            mask += hidden * gamma;
            mask += ciphertexts.iter().zip(&masks).map(|(c, (w, _))| c[p] * (gamma * w[l])).sum::<Point>();
        }
    }
    transcript.item("norm", &norm.section);
    transcript.item("output mask", &encoded(&[mask]));
    let e = transcript.challenge("e").scalar();
    let bits = transcript.challenge("bits").bits(rows.len());

    let mut message = reply_header(terms, &offer_hash, to.index);
    message.extend(encoded(&mask_points));
    message.extend(encoded(&points));
    message.extend(encoded(&outputs));
    message.extend(encoded(&noise));
    message.extend(&norm.section);
    message.extend(encoded(&[mask]));
    for ((entries, t), (w, q)) in entries.iter().zip(&blinds).zip(&masks) {
        entries.iter().zip(w).for_each(|(entry, w)| message.extend((e * entry + w).as_bytes()));
        message.extend((e * t + q).as_bytes());
    }
    message.extend(norm.closing(&e).as_bytes());
    for l in 0..d {
        for p in 0..=o {
            message.extend((e * used[l][p] + value_masks[l][p]).as_bytes());
            message.extend((e * value_blinds[l][p] + mask_blinds[l][p]).as_bytes());
        }
    }
    for (k, (z, t)) in hats.iter().enumerate() {
        let chosen = || (0..rows.len()).filter(|&s| bits[s] >> k & 1 == 1);
        for (column, z) in z.iter().enumerate() {
            message.extend(cut(z + chosen().map(|s| entries[s][column]).sum::<Scalar>()));
        }
        message.extend((t + chosen().map(|s| blinds[s]).sum::<Scalar>()).as_bytes());
    }
    message
}

/// E₁ and E₀ with their blinds.
struct Norm {
    section: Vec<u8>,
    beta: Scalar,
    gamma: Scalar,
}

impl Norm {
    fn new(
        g: &Generators,
        rho: &[Scalar],
        entries: &[Vec<Scalar>],
        masks: &[&[Scalar]],
        rng: &mut ChaCha20Rng,
    ) -> Self {
        let (beta, gamma) = (uniform(rng), uniform(rng));
        let dot = |a: &[Scalar], b: &[Scalar]| a.iter().zip(b).map(|(a, b)| a * b).sum::<Scalar>();
        let each = || rho.iter().zip(entries.iter().zip(masks));
        let cross: Scalar = each().map(|(rho, (z, w))| rho * dot(z, w)).sum();
        let square: Scalar = each().map(|(rho, (_, w))| rho * dot(w, w)).sum();
        let section = encoded(&[g.g * (cross + cross) + g.b * beta, g.g * square + g.b * gamma]);
        Self { section, beta, gamma }
    }

    fn closing(&self, e: &Scalar) -> Scalar {
        e * self.beta + self.gamma
    }
}

fn many(count: usize, rng: &mut ChaCha20Rng) -> Vec<Scalar> {
    (0..count).map(|_| uniform(rng)).collect()
}

pub(crate) fn encoded(points: &[Point]) -> Vec<u8> {
    points.iter().flat_map(|point| point.compress().to_bytes()).collect()
}

pub(crate) fn points_of(bytes: &[u8]) -> Vec<Point> {
    let (encodings, _) = bytes.as_chunks();
    encodings.iter().map(|encoding| CompressedRistretto(*encoding).decompress().expect("a point")).collect()
}

/// The integer of a scalar if it is small, and otherwise its lowest bits with the sign of ℓ's half.
fn cut(sum: Scalar) -> [u8; 16] {
    let (size, negative) = if sum.as_bytes()[31] >= 8 { (-sum, true) } else { (sum, false) };
    let low = i128::from_le_bytes(*size.as_bytes().first_chunk().expect("16 of 32")) & ((1 << 126) - 1);
    (if negative { -low } else { low }).to_le_bytes()
}
