//! A malicious recipient.

use std::collections::BTreeSet;
use std::io::Cursor;

use curve25519_dalek::scalar::Scalar;

use super::forger::{
    OfferCheats, ReplyCheat, Row, encoded, fair_rows, forge_offer, forge_reply, points_of, root_of_minus_one,
    row,
};
use super::{RECIPIENT, SENDER, entropy, terms, weak_terms};
use crate::bases::integer;
use crate::error::Error;
use crate::generators::Generators;
use crate::layout::{REPLY_HEADER, ReplyLayout};
use crate::squares::Squares;
use crate::{AcceptedReply, Check, Message, SentOffer, Terms};

const NORM: u32 = 102;

/// An honest offer, what its sender keeps, and the terms.
struct Offered {
    terms: Terms,
    message: Vec<u8>,
    kept: Vec<u8>,
}

fn offered(terms: Terms, x: &[Vec<i64>]) -> Offered {
    let rows = fair_rows(x, terms.sender().norm);
    let (message, keys) = forge_offer(&terms, &rows, &OfferCheats::default(), 5);
    let mut kept = b"potluck exchange sent offer 1".to_vec();
    kept.extend(terms.hash());
    kept.extend(<sha2::Sha512 as sha2::Digest>::digest(&message));
    for (a, b) in &keys {
        kept.extend([a.to_bytes(), b.to_bytes()].as_flattened());
    }
    Offered { terms, message, kept }
}

impl Offered {
    fn accept(&self, reply: &[u8]) -> Result<AcceptedReply, Check> {
        let sent = SentOffer::from_bytes(&self.terms, &self.kept).expect("kept");
        let awaiting = sent.await_replies().remove(0);
        match awaiting.accept(Cursor::new(&self.message), Cursor::new(reply), entropy(88)) {
            Ok(accepted) => Ok(accepted),
            Err(Error::Refused { party: RECIPIENT, message: Message::Reply, check }) => Err(check),
            Err(other) => panic!("{other}"),
        }
    }

    fn verdict(&self, rows: &[Row], cheat: &ReplyCheat) -> Result<(), Check> {
        let columns = usize::from(self.terms.recipients()[0].party.columns);
        let eta = vec![vec![3; usize::from(self.terms.sender().columns)]; columns];
        let reply = forge_reply(&self.terms, &self.message, rows, &eta, cheat, 6);
        self.accept(&reply).map(|_| ())
    }
}

fn small() -> Offered {
    offered(terms(3, (2, 61), (2, NORM), 9), &[vec![5, -6], vec![0, 3], vec![-1, -7]])
}

fn small_rows() -> Vec<Row> {
    fair_rows(&[vec![10, -1], vec![0, 3], vec![-7, -7]], NORM)
}

#[test]
fn a_forger_without_cheats_is_accepted_and_opened() {
    let offered = offered(terms(2, (2, 61), (1, NORM), 9), &[vec![5, -6], vec![0, 3]]);
    let rows = fair_rows(&[vec![10], vec![-4]], NORM);
    let reply = forge_reply(&offered.terms, &offered.message, &rows, &[vec![7, -8]], &ReplyCheat::Nothing, 6);
    let outcome = offered.accept(&reply).unwrap_or_else(|check| panic!("{check}")).outcome(entropy(1));
    for (value, expected) in outcome.values.iter().zip([50 + 7, -60 - 12 - 8]) {
        assert!((value.expect("in range") - expected).abs() <= 70, "the sender's noise alone");
    }
}

#[test]
fn rows_that_are_no_short_integers_are_refused() {
    let offered = small();
    let with = |bad: Row| {
        let mut rows = small_rows();
        rows[1] = bad;
        offered.verdict(&rows, &ReplyCheat::Nothing)
    };
    let (zero, huge, i) = (Scalar::ZERO, Scalar::from(3_u8).invert(), root_of_minus_one());
    assert_eq!(with(row(&[10, -1], NORM)), Ok(()));
    assert_eq!(with(row(&[10, 2], NORM)), Err(Check::Norm));
    assert_eq!(with(Row { u: [zero; 4], ..row(&[3, 3], NORM) }), Err(Check::Norm));
    let four = |number: u32| Squares::new(4 * NORM).of(number).map(integer);
    let half = Scalar::from(2_u8).invert();
    for bad in [
        Row { x: vec![huge, huge * i], u: four(NORM) },
        Row { x: vec![half, zero], u: four(4 * NORM - 1).map(|u| u * half) },
        Row { x: vec![integer(10), integer(2)], u: [huge, huge * i, i, i] },
    ] {
        assert!(matches!(with(bad), Err(Check::SumTooLarge | Check::Openings)));
    }
}

#[test]
fn guessing_the_bits_of_eight_repetitions_works_once_in_256() {
    let offered = offered(weak_terms(1, (1, 61), (2, NORM), 9, 8), &[vec![5]]);
    let huge = Scalar::from(3_u8).invert();
    let bad = Row { x: vec![huge, huge * root_of_minus_one()], u: Squares::new(NORM).of(NORM).map(integer) };
    let eta = [vec![0], vec![0]];
    let trials = 2048;
    let passed = (0..trials)
        .filter(|&seed| {
            let reply = forge_reply(
                &offered.terms,
                &offered.message,
                std::slice::from_ref(&bad),
                &eta,
                &ReplyCheat::Guess,
                seed,
            );
            offered.accept(&reply).is_ok()
        })
        .count();
    // Binomial with mean 8.
    assert!((1..=20).contains(&passed), "{passed} of {trials}");
}

#[test]
fn products_with_anything_but_the_committed_rows_are_refused() {
    let offered = small();
    let cheated = |cheat| offered.verdict(&small_rows(), &cheat);
    assert_eq!(cheated(ReplyCheat::Nothing), Ok(()));
    for times in [1, -1, 1_000_000] {
        assert_eq!(cheated(ReplyCheat::Magnify(times)), Err(Check::Outputs));
    }
    for columns in [vec![1, 0], vec![0, 0]] {
        assert_eq!(cheated(ReplyCheat::Columns(columns)), Err(Check::Outputs));
    }
    assert_eq!(cheated(ReplyCheat::AfterGamma), Err(Check::Outputs));
}

#[test]
fn noise_chosen_after_gamma_is_refused() {
    let offered = small();
    for cheat in [ReplyCheat::LateNoise, ReplyCheat::LateQ] {
        assert_eq!(offered.verdict(&small_rows(), &cheat), Err(Check::Openings));
    }
}

#[test]
fn permuted_rows_are_accepted() {
    let mut rows = small_rows();
    rows.rotate_left(1);
    assert_eq!(small().verdict(&rows, &ReplyCheat::Nothing), Ok(()));
}

#[test]
fn every_length_but_the_right_one_is_refused() {
    let offered = small();
    let eta = [vec![1, 2], vec![3, 4]];
    let reply = forge_reply(&offered.terms, &offered.message, &small_rows(), &eta, &ReplyCheat::Nothing, 6);
    let layout = ReplyLayout::new(&offered.terms, 2);
    let expected = layout.length;
    assert_eq!(expected, reply.len() as u64);
    let parts = [layout.masks, layout.rows, layout.responses, layout.sums].map(|section| section.part);
    for count in [1, 16, 32].into_iter().chain(parts) {
        for wrong in [&reply[..reply.len() - count], &[&reply[..], &vec![0; count]].concat()] {
            let found = wrong.len() as u64;
            let check = offered.accept(wrong).err();
            assert_eq!(check, Some(Check::Length { expected, found }));
        }
    }
}

#[test]
fn every_other_point_and_every_flipped_bit_is_refused() {
    let offered = offered(weak_terms(2, (1, 61), (1, NORM), 9, 8), &[vec![5], vec![-6]]);
    let rows = fair_rows(&[vec![10], vec![-3]], NORM);
    let reply = forge_reply(&offered.terms, &offered.message, &rows, &[vec![4]], &ReplyCheat::Nothing, 6);
    assert!(offered.accept(&reply).is_ok());
    let layout = ReplyLayout::new(&offered.terms, 1);
    let points = [layout.masks, layout.rows, layout.outputs, layout.noise, layout.norm, layout.output_mask];
    let scalars = [layout.responses, layout.closing, layout.openings, layout.sums];
    let g = Generators::new(0);
    for section in points {
        for at in (section.first..section.first + section.length()).step_by(32) {
            let mut changed = reply.clone();
            let field = &mut changed[at as usize..][..32];
            let other = points_of(field)[0] + g.g;
            field.copy_from_slice(&encoded(&[other]));
            assert!(offered.accept(&changed).is_err(), "changed at {at}");
            changed[at as usize..][..32].fill(0xFF);
            assert_eq!(offered.accept(&changed).err(), Some(Check::Point));
        }
    }
    for section in scalars {
        for at in (section.first..section.first + section.length()).step_by(16) {
            let mut changed = reply.clone();
            changed[at as usize] ^= 1;
            assert!(offered.accept(&changed).is_err(), "changed at {at}");
        }
        let mut changed = reply.clone();
        changed[section.at(section.parts) as usize - 32..][..32].fill(0xFF);
        assert_eq!(offered.accept(&changed).err(), Some(Check::Scalar));
    }
    let mut changed = reply.clone();
    changed[layout.sums.first as usize..][..16].copy_from_slice(&i128::MIN.to_le_bytes());
    assert_eq!(offered.accept(&changed).err(), Some(Check::SumTooLarge));
    for at in 0..REPLY_HEADER {
        let mut changed = reply.clone();
        changed[at] ^= 1;
        assert_eq!(offered.accept(&changed).err(), Some(Check::Header));
    }
}

#[test]
fn numbers_out_of_range_are_published_as_such_with_the_noise_in_them() {
    // Range: 5 + 17·9 + 2 = 160. Noise of the recipient puts the value at its very edge, so that
    // the sender's decides; were the range looked at before, all would be inside.
    let offered = offered(terms(1, (1, 5), (1, 5), 9), &[vec![0]]);
    let range = offered.terms.recipients()[0].range as i64;
    assert_eq!(range, 160);
    let edge = forge_reply(
        &offered.terms,
        &offered.message,
        &[row(&[0], 5)],
        &[vec![range]],
        &ReplyCheat::Nothing,
        6,
    );
    let outcomes: Vec<Option<i64>> = (0..64)
        .map(|seed| {
            let accepted = offered.accept(&edge).unwrap_or_else(|check| panic!("{check}"));
            accepted.outcome(entropy(seed)).values[0]
        })
        .collect();
    let outside = outcomes.iter().filter(|value| value.is_none()).count();
    assert!((16..=48).contains(&outside), "{outside} of 64");
    // Far outside and back in by noise alone: a recipient cannot tell more than that.
    let far = forge_reply(
        &offered.terms,
        &offered.message,
        &[row(&[0], 5)],
        &[vec![i64::MAX]],
        &ReplyCheat::Nothing,
        6,
    );
    let accepted = offered.accept(&far).unwrap_or_else(|check| panic!("{check}"));
    assert_eq!(accepted.outcome(entropy(1)).values, [None]);
    assert_eq!(SENDER, offered.terms.sender().index);
}

/// A restored machine may meet another reply with the same entropy, and must not subtract the same
/// noise from both.
#[test]
fn noise_of_a_result_depends_on_the_reply_it_opens() {
    let offered = offered(terms(1, (1, 4), (1, 4), 1 << 20), &[vec![0]]);
    // All zero, so that what is published is the sender's noise.
    let noise = |reply: u64, seed: u64| {
        let zero = [row(&[0], 4)];
        let (terms, message) = (&offered.terms, &offered.message);
        let reply = forge_reply(terms, message, &zero, &[vec![0]], &ReplyCheat::Nothing, reply);
        let accepted = offered.accept(&reply).unwrap_or_else(|check| panic!("{check}"));
        accepted.outcome(entropy(seed)).values[0]
    };
    assert_eq!(noise(1, 5), noise(1, 5), "the same step again");
    let all = BTreeSet::from([noise(1, 5), noise(2, 5), noise(1, 6), noise(2, 6)]);
    assert_eq!(all.len(), 4);
}
