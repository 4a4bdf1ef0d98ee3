//! A malicious sender.

use std::io::Cursor;

use curve25519_dalek::ristretto::RistrettoPoint;
use curve25519_dalek::scalar::Scalar;
use curve25519_dalek::traits::Identity;

use super::forger::{OfferCheats, Row, encoded, fair_rows, forge_offer, points_of, root_of_minus_one, row};
use super::{RECIPIENT, SENDER, bytes_of, entropy, rows, terms, weak_terms};
use crate::bases::integer;
use crate::generators::Generators;
use crate::layout::{OfferLayout, ReplyLayout, Section};
use crate::logarithm::Logarithms;
use crate::squares::Squares;
use crate::{AcceptedOffer, Check, Error, Message, Terms, offer};

const NORM: u32 = 102;

fn verdict(terms: &Terms, message: &[u8]) -> Result<(), Check> {
    match AcceptedOffer::check(terms, RECIPIENT, Cursor::new(message), entropy(77)) {
        Ok(_) => Ok(()),
        Err(Error::Refused { party: SENDER, message: Message::Offer, check }) => Err(check),
        Err(other) => panic!("{other}"),
    }
}

fn small_terms() -> Terms {
    terms(3, (2, NORM), (1, 50), 9)
}

fn small_rows() -> Vec<Row> {
    fair_rows(&[vec![10, -1], vec![0, 3], vec![-7, -7]], NORM)
}

#[test]
fn a_forger_without_cheats_is_accepted() {
    let terms = small_terms();
    let (message, _) = forge_offer(&terms, &small_rows(), &OfferCheats::default(), 1);
    assert_eq!(verdict(&terms, &message), Ok(()));
}

#[test]
fn a_row_that_is_too_long_is_refused() {
    let terms = small_terms();
    let mut rows = small_rows();
    rows[1] = row(&[10, -2], NORM);
    let (message, _) = forge_offer(&terms, &rows, &OfferCheats::default(), 1);
    assert_eq!(verdict(&terms, &message), Err(Check::Norm));
    // Nor is one that is too short, though it would do no harm: the equation is exact.
    rows[1] = Row { u: [Scalar::ZERO; 4], ..row(&[3, 3], NORM) };
    let (message, _) = forge_offer(&terms, &rows, &OfferCheats::default(), 1);
    assert_eq!(verdict(&terms, &message), Err(Check::Norm));
}

#[test]
fn rows_whose_lengths_cancel_in_the_sum_are_refused() {
    let terms = small_terms();
    let mut rows = small_rows();
    let one = || Scalar::ONE;
    rows[0] = Row { x: vec![integer(11), Scalar::ZERO], u: [Scalar::ZERO; 4] }; // 121 = 102 + 19
    rows[1] = Row { x: vec![integer(9), one()], u: [one(), Scalar::ZERO, Scalar::ZERO, Scalar::ZERO] }; // 83
    let (message, _) = forge_offer(&terms, &rows, &OfferCheats::default(), 1);
    assert_eq!(verdict(&terms, &message), Err(Check::Norm));
}

/// Huge entries whose squares cancel modulo ℓ.
fn wrapped() -> Row {
    let huge = Scalar::from(3_u8).invert();
    Row { x: vec![huge, huge * root_of_minus_one()], u: Squares::new(NORM).of(NORM).map(integer) }
}

#[test]
fn a_row_that_wraps_around_is_refused() {
    let terms = small_terms();
    let mut rows = small_rows();
    rows[2] = wrapped();
    let (message, _) = forge_offer(&terms, &rows, &OfferCheats::default(), 1);
    assert!(matches!(verdict(&terms, &message), Err(Check::SumTooLarge | Check::Openings)));
}

#[test]
fn a_row_of_halves_is_refused() {
    let terms = small_terms();
    let half = Scalar::from(2_u8).invert();
    let mut rows = small_rows();
    let rest = Squares::new(4 * NORM).of(4 * NORM - 9).map(integer);
    rows[0] = Row { x: vec![half * integer(3), Scalar::ZERO], u: rest.map(|u| u * half) };
    let (message, _) = forge_offer(&terms, &rows, &OfferCheats::default(), 1);
    assert!(matches!(verdict(&terms, &message), Err(Check::SumTooLarge | Check::Openings)));
}

#[test]
fn a_long_row_made_up_for_in_u_alone_is_refused() {
    let terms = small_terms();
    let huge = Scalar::from(3_u8).invert();
    let mut rows = small_rows();
    // 10² + 2² = C + 2, and u² = −2: v² + (iv)² + i² + i².
    let i = root_of_minus_one();
    rows[0] = Row { x: vec![integer(10), integer(2)], u: [huge, huge * i, i, i] };
    let (message, _) = forge_offer(&terms, &rows, &OfferCheats::default(), 1);
    assert!(matches!(verdict(&terms, &message), Err(Check::SumTooLarge | Check::Openings)));
}

#[test]
fn guessing_the_bits_of_eight_repetitions_works_once_in_256() {
    let terms = weak_terms(1, (2, NORM), (1, 50), 9, 8);
    let cheats = OfferCheats { guess: true, ..OfferCheats::default() };
    let trials = 2048;
    let passed = (0..trials)
        .filter(|&seed| {
            let (message, _) = forge_offer(&terms, &[wrapped()], &cheats, seed);
            verdict(&terms, &message).is_ok()
        })
        .count();
    // Binomial with mean 8: beyond 1 to 20 in fewer than one of 2000 choices of the seeds.
    assert!((1..=20).contains(&passed), "{passed} of {trials}");
    // With all 128 it never does.
    let terms = super::terms(1, (2, NORM), (1, 50), 9);
    let (message, _) = forge_offer(&terms, &[wrapped()], &cheats, 1);
    assert!(verdict(&terms, &message).is_err());
}

#[test]
fn a_second_point_of_another_r_is_refused() {
    let terms = small_terms();
    let cheats = OfferCheats { other_second: true, ..OfferCheats::default() };
    let (message, _) = forge_offer(&terms, &small_rows(), &cheats, 1);
    assert_eq!(verdict(&terms, &message), Err(Check::Openings));
}

#[test]
fn keys_that_the_challenge_does_not_bind_are_refused() {
    let terms = small_terms();
    let cheats = OfferCheats { keys_unbound: true, ..OfferCheats::default() };
    let (message, _) = forge_offer(&terms, &small_rows(), &cheats, 1);
    assert!(verdict(&terms, &message).is_err());
}

/// Whatever the keys, a reply shows products with noise under them and nothing else.
#[test]
fn keys_chosen_at_will_are_harmless() {
    let g = Generators::new(1);
    let shared = g.g * Scalar::from(99_u8);
    let keys = vec![RistrettoPoint::identity(), shared, shared, g.b, g.l[0], g.g];
    let (d, scale) = (keys.len(), 20);
    let terms = terms(3, (d, 600), (1, 50), scale);
    let (x, y) = (rows(3, d, 600, 0), rows(3, 1, 50, 1));
    let cheats = OfferCheats { keys: Some(keys.clone()), ..OfferCheats::default() };
    let (message, _) = forge_offer(&terms, &fair_rows(&x, 600), &cheats, 1);
    let mut reply = Vec::new();
    AcceptedOffer::check(&terms, RECIPIENT, Cursor::new(&message), entropy(2))
        .unwrap_or_else(|error| panic!("{error}"))
        .reply(bytes_of(&y), entropy(3), &mut reply)
        .unwrap_or_else(|error| panic!("{error}"));
    let layout = ReplyLayout::new(&terms, 1);
    let outputs = points_of(&reply[layout.outputs.first as usize..][..layout.outputs.length() as usize]);
    let sums = super::products(&x, &y);
    let near = |point: RistrettoPoint, expected: i64, what: &str| {
        let value = Logarithms::new(100_000, 1).find(&point).unwrap_or_else(|| panic!("{what}"));
        assert!((value - expected).abs() <= 10 * scale as i64, "{what}: {value}, not {expected}");
        assert_ne!(value, expected, "{what} has noise");
    };
    near(outputs[2], sums[0], "under zero");
    near(outputs[3] - outputs[4], sums[1] - sums[2], "under the same key twice");
    near(outputs[7] - outputs[0], sums[5], "under G");
    // The rest is hidden by q: under a key of its own nothing small shows.
    for hidden in [outputs[0], outputs[1], outputs[3], outputs[5], outputs[6]] {
        assert_eq!(Logarithms::new(100_000, 1).find(&hidden), None);
    }
}

#[test]
fn every_length_but_the_right_one_is_refused() {
    let terms = small_terms();
    let (message, _) = forge_offer(&terms, &small_rows(), &OfferCheats::default(), 1);
    let expected = message.len() as u64;
    let cut = |count: usize| message[..message.len() - count].to_vec();
    let added = |count: usize| [&message[..], &vec![0; count][..]].concat();
    let layout = OfferLayout::new(&terms);
    let parts = [layout.keys, layout.masks, layout.rows, layout.responses, layout.sums];
    let counts = [1, 16, 32].into_iter().chain(parts.map(|section| section.part));
    for wrong in counts.flat_map(|count| [cut(count), added(count)]).chain([vec![]]) {
        let found = wrong.len() as u64;
        assert_eq!(verdict(&terms, &wrong), Err(Check::Length { expected, found }));
    }
    // The same of people: messages for one more or one fewer.
    for people in [2, 4] {
        let other = super::terms(people, (2, NORM), (1, 50), 9);
        assert!(matches!(verdict(&other, &message), Err(Check::Length { .. })));
    }
}

/// Every section with the kind of its fields.
fn sections(layout: &OfferLayout) -> Vec<(Section, bool)> {
    let OfferLayout { keys, masks, rows, norm, responses, closing, sums, .. } = layout;
    let points = [keys, masks, rows, norm].map(|section| (*section, true));
    let scalars = [responses, closing, sums].map(|section| (*section, false));
    points.into_iter().chain(scalars).collect()
}

#[test]
fn every_other_point_and_every_flipped_bit_is_refused() {
    let terms = weak_terms(2, (1, NORM), (1, 50), 9, 8);
    let rows = fair_rows(&[vec![10], vec![-3]], NORM);
    let (message, _) = forge_offer(&terms, &rows, &OfferCheats::default(), 1);
    assert_eq!(verdict(&terms, &message), Ok(()));
    let g = Generators::new(0);
    for (section, points) in sections(&OfferLayout::new(&terms)) {
        let end = section.first + section.length();
        for at in (section.first..end).step_by(if points { 32 } else { 16 }) {
            let at = at as usize;
            let mut changed = message.clone();
            if points {
                let field = &mut changed[at..at + 32];
                let other = points_of(field)[0] + g.g;
                field.copy_from_slice(&encoded(&[other]));
            } else {
                changed[at] ^= 1;
            }
            assert!(verdict(&terms, &changed).is_err(), "changed at {at}");
        }
    }
    for at in 0..crate::layout::OFFER_HEADER {
        let mut changed = message.clone();
        changed[at] ^= 0x10;
        assert_eq!(verdict(&terms, &changed), Err(Check::Header));
    }
}

#[test]
fn encodings_that_are_not_canonical_are_named() {
    let terms = weak_terms(2, (1, NORM), (1, 50), 9, 8);
    let rows = fair_rows(&[vec![10], vec![-3]], NORM);
    let (message, _) = forge_offer(&terms, &rows, &OfferCheats::default(), 1);
    let layout = OfferLayout::new(&terms);
    let with = |first: u64, bytes: &[u8]| {
        let mut changed = message.clone();
        changed[first as usize..][..bytes.len()].copy_from_slice(bytes);
        verdict(&terms, &changed)
    };
    for section in [layout.keys, layout.masks, layout.rows, layout.norm] {
        assert_eq!(with(section.first, &[0xFF; 32]), Err(Check::Point));
        assert_eq!(with(section.at(section.parts) - 32, &[0xFF; 32]), Err(Check::Point));
    }
    for section in [layout.responses, layout.closing, layout.sums] {
        assert_eq!(with(section.first, &[0xFF; 32]), Err(Check::Scalar));
        assert_eq!(with(section.at(section.parts) - 32, &[0xFF; 32]), Err(Check::Scalar));
    }
    let limit = (1_i128 << 121).to_le_bytes();
    for entry in 0..5 {
        assert_eq!(with(layout.sums.first + 32 + 16 * entry, &limit), Err(Check::SumTooLarge));
    }
}

#[test]
fn who_is_no_recipient_checks_nothing() {
    let terms = small_terms();
    let mut message = Vec::new();
    let x = [vec![1, 2], vec![3, 4], vec![5, 6]];
    offer(&terms, bytes_of(&x), entropy(1), &mut message).expect("rows within terms");
    for stranger in [0, SENDER, 5] {
        let error = AcceptedOffer::check(&terms, stranger, Cursor::new(&message), entropy(2)).err();
        assert!(matches!(error, Some(Error::NoRecipient(index)) if index == stranger));
    }
}
