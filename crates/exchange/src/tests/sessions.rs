//! Replays, restored machines, and tables or messages that change while they are read.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::io::{self, Cursor, Read, Seek, SeekFrom};
use std::rc::Rc;

use curve25519_dalek::ristretto::RistrettoPoint;
use curve25519_dalek::scalar::Scalar;

use super::forger::points_of;
use super::honest::exchange;
use super::{RECIPIENT, SENDER, bytes_of, entropy, party, rows, sigma, terms};
use crate::bases::integer;
use crate::generators::Generators;
use crate::layout::{OfferLayout, ReplyLayout, Section};
use crate::logarithm::Logarithms;
use crate::transcript::Transcript;
use crate::{AcceptedOffer, Check, Entropy, Error, Outcome, Participant, Reading, SentOffer, Terms, offer};

const X: (usize, u32) = (2, 40);
const Y: (usize, u32) = (1, 30);

fn with(change: impl FnOnce(&mut Participant, &mut Participant, &mut ([u8; 32], u32, u64, u64))) -> Terms {
    let (mut from, mut to) = (party(SENDER, X.0, X.1), party(RECIPIENT, Y.0, Y.1));
    let mut rest = ([1; 32], 0, 3, 6);
    change(&mut from, &mut to, &mut rest);
    let (contract, attempt, people, scale) = rest;
    Terms::new(contract, attempt, people, from, vec![(to, sigma(scale))]).expect("valid")
}

/// Terms that differ from the usual in one field, by the name of the field.
fn variations() -> Vec<(&'static str, Terms)> {
    vec![
        ("contract", with(|_, _, rest| rest.0[31] ^= 1)),
        ("attempt", with(|_, _, rest| rest.1 += 1)),
        ("people", with(|_, _, rest| rest.2 += 1)),
        ("sigma", with(|_, _, rest| rest.3 += 1)),
        ("sender", with(|from, _, _| from.index += 1)),
        ("sender's columns", with(|from, _, _| from.columns += 1)),
        ("sender's norm", with(|from, _, _| from.norm += 1)),
        ("sender's releases", with(|from, _, _| from.releases[0] ^= 1)),
        ("sender's nonce", with(|from, _, _| from.nonce[0] ^= 1)),
        ("recipient", with(|_, to, _| to.index += 1)),
        ("recipient's columns", with(|_, to, _| to.columns += 1)),
        ("recipient's norm", with(|_, to, _| to.norm += 1)),
        ("recipient's releases", with(|_, to, _| to.releases[0] ^= 1)),
        ("recipient's nonce", with(|_, to, _| to.nonce[31] ^= 1)),
    ]
}

#[test]
fn every_field_of_the_terms_moves_the_challenge() {
    let e = |terms: &Terms, role| {
        Transcript::new(role, terms, &Generators::new(0)).challenge("e").scalar().to_bytes()
    };
    let usual = with(|_, _, _| ());
    let mut seen = BTreeSet::from([e(&usual, "offer"), e(&usual, "reply")]);
    for (field, terms) in variations() {
        assert!(seen.insert(e(&terms, "offer")), "{field} is not bound");
        assert_ne!(terms.hash(), usual.hash());
    }
    let weaker = super::weak_terms(3, X, Y, 6, 127);
    assert!(seen.insert(e(&weaker, "offer")), "repetitions are not bound");
}

#[test]
fn labels_lengths_and_names_of_challenges_keep_items_apart() {
    let squeeze = |items: &[(&str, &[u8])], name: &str| {
        let mut transcript = Transcript::empty();
        for (label, data) in items {
            transcript.item(label, data);
        }
        transcript.challenge(name).scalar().to_bytes()
    };
    let all = [
        squeeze(&[("a", b"bc")], "e"),
        squeeze(&[("ab", b"c")], "e"),
        squeeze(&[("a", b"b"), ("c", b"")], "e"),
        squeeze(&[("a", b"bc"), ("", b"")], "e"),
        // What would be the same without the lengths.
        squeeze(&[("a", b"b\x01c")], "e"),
        squeeze(&[("a", b"b"), ("c", b"")], "bits"),
        squeeze(&[("a", b"b\x01c")], "bits"),
        squeeze(&[("a", b"")], "e"),
        squeeze(&[("", b"")], "e"),
        squeeze(&[("a", b"bc")], "bits"),
        squeeze(&[("a", b"bc"), ("challenge", b"e")], "e"),
    ];
    assert_eq!(BTreeSet::from(all).len(), all.len());
}

#[test]
fn an_offer_of_another_session_is_refused() {
    let x = rows(3, X.0, X.1, 0);
    let mut message = Vec::new();
    offer(&with(|_, _, _| ()), bytes_of(&x), entropy(1), &mut message).expect("within terms");
    for (field, terms) in variations() {
        let index = terms.recipients()[0].party.index;
        let error = AcceptedOffer::check(&terms, index, Cursor::new(&message), entropy(2)).err();
        match error {
            Some(Error::Refused { check: Check::Header | Check::Length { .. }, .. }) => {}
            _ => panic!("{field}"),
        }
        // A header of the other session does not help: the challenges are those of the first.
        if message.len() as u64 == OfferLayout::new(&terms).length {
            let mut renamed = message.clone();
            renamed[8..72].copy_from_slice(terms.hash());
            let error = AcceptedOffer::check(&terms, index, Cursor::new(&renamed), entropy(2)).err();
            assert!(
                matches!(error, Some(Error::Refused { check: Check::Norm | Check::Openings, .. })),
                "{field}"
            );
        }
    }
}

/// A sender with two recipients that are alike, so that only what is bound tells their replies
/// apart.
#[test]
fn replies_of_another_pair_session_or_role_are_refused() {
    let to = || vec![(party(4, 2, 40), sigma(6)), (party(5, 2, 40), sigma(6))];
    let make =
        |attempt, sender, to| Terms::new([1; 32], attempt, 3, party(sender, 2, 40), to).expect("valid");
    let (first, second) = (make(0, 1, to()), make(1, 1, to()));
    let (x, y) = (rows(3, 2, 40, 0), rows(3, 2, 40, 1));
    let mut asked = Vec::new();
    let kept = offer(&first, bytes_of(&x), entropy(1), &mut asked).expect("within terms").to_bytes();
    let reply_of = |terms: &Terms, asked: &[u8], recipient, seed| {
        let mut answered = Vec::new();
        AcceptedOffer::check(terms, recipient, Cursor::new(asked), entropy(seed))
            .expect("honest")
            .reply(bytes_of(&y), entropy(seed + 1), &mut answered)
            .expect("within terms");
        answered
    };
    let accept = |reply: &[u8]| {
        let awaiting = SentOffer::from_bytes(&first, &kept).expect("kept").await_replies().remove(0);
        assert_eq!(awaiting.recipient(), 4);
        awaiting.accept(Cursor::new(&asked), Cursor::new(reply), entropy(9)).map(|_| ())
    };
    let refused = |reply: &[u8], expected: &[Check]| match accept(reply) {
        Err(Error::Refused { party: 4, check, .. }) => assert!(expected.contains(&check), "{check}"),
        _ => panic!("accepted"),
    };
    let good = reply_of(&first, &asked, 4, 10);
    assert!(accept(&good).is_ok());

    // Another pair, with its own name and with the right one.
    let mut pair = reply_of(&first, &asked, 5, 20);
    refused(&pair, &[Check::Header]);
    pair[136..138].copy_from_slice(&4_u16.to_le_bytes());
    refused(&pair, &[Check::Norm, Check::Openings]);

    // Another session, and the sender's own reply to an offer of somebody else, renamed.
    for (terms, recipient) in [(second, 4), (make(0, 0, vec![(party(1, 2, 40), sigma(6))]), 1)] {
        let mut other_offer = Vec::new();
        offer(&terms, bytes_of(&x), entropy(30), &mut other_offer).expect("within terms");
        let mut other = reply_of(&terms, &other_offer, recipient, 40);
        refused(&other, &[Check::Header]);
        other[..138].copy_from_slice(&good[..138]);
        refused(&other, &[Check::Norm, Check::Openings]);
    }

    // An offer for a reply, and the other way round.
    let mut role = asked.clone();
    role.resize(good.len(), 0);
    refused(&role, &[Check::Header]);
    let mut role = good.clone();
    role.resize(asked.len(), 0);
    let error = AcceptedOffer::check(&first, 4, Cursor::new(&role), entropy(1)).err();
    assert!(matches!(error, Some(Error::Refused { check: Check::Header, .. })));
}

#[test]
fn an_offer_that_was_not_sent_opens_no_reply() {
    let terms = terms(3, X, Y, 6);
    let x = rows(3, X.0, X.1, 0);
    let (_, answered, _) = exchange(&terms, RECIPIENT, &x, &rows(3, Y.0, Y.1, 1), 1);
    let mut other = Vec::new();
    let sent = offer(&terms, bytes_of(&x), entropy(50), &mut Vec::new()).expect("within terms");
    offer(&terms, bytes_of(&x), entropy(51), &mut other).expect("within terms");
    let awaiting = sent.await_replies().remove(0);
    let error = awaiting.accept(Cursor::new(&other), Cursor::new(&answered), entropy(2)).err();
    assert!(matches!(error, Some(Error::OtherOffer { party: SENDER })));
}

#[test]
fn results_are_read_for_their_own_pair_and_range_only() {
    let terms = terms(3, X, Y, 6);
    let (_, _, outcome) = exchange(&terms, RECIPIENT, &rows(3, X.0, X.1, 0), &rows(3, Y.0, Y.1, 1), 1);
    let bytes = outcome.to_bytes();
    let read = |bytes: &[u8]| Outcome::from_bytes(&terms, RECIPIENT, &outcome.offer, &outcome.reply, bytes);
    assert_eq!(read(&bytes).expect("as written"), outcome);
    let check = |bytes: &[u8]| match read(bytes) {
        Err(Error::Refused { party: SENDER, check, .. }) => check,
        _ => panic!("accepted"),
    };
    for at in 0..204 {
        let mut changed = bytes.clone();
        changed[at] ^= 1;
        assert_eq!(check(&changed), Check::Header);
    }
    for wrong in [&bytes[..bytes.len() - 1], &[&bytes[..], &[0]].concat(), &[]] {
        assert!(matches!(check(wrong), Check::Length { .. }));
    }
    let range = terms.recipients()[0].range as i64;
    let with = |value: i64| [&bytes[..204], &value.to_le_bytes(), &bytes[212..]].concat();
    for (value, read_as) in [(range, Some(range)), (-range, Some(-range)), (i64::MIN, None)] {
        assert_eq!(read(&with(value)).expect("in range").values[0], read_as);
    }
    for value in [range + 1, -range - 1, i64::MAX, i64::MIN + 1] {
        assert_eq!(check(&with(value)), Check::Range);
    }
}

/// Bytes that are others once they have been read `readings` times from the beginning.
struct Changing {
    versions: [Cursor<Vec<u8>>; 2],
    readings: u32,
    begun: Rc<Cell<u32>>,
}

impl Changing {
    fn current(&mut self) -> &mut Cursor<Vec<u8>> {
        &mut self.versions[usize::from(self.begun.get() > self.readings)]
    }
}

impl Read for Changing {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.current().read(buffer)
    }
}

impl Seek for Changing {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        if to == SeekFrom::Start(0) {
            self.begun.set(self.begun.get() + 1);
        }
        self.current().seek(to)
    }
}

fn changing(first: Vec<u8>, then: Vec<u8>, readings: u32) -> Changing {
    let begun = Rc::new(Cell::new(0));
    Changing { versions: [Cursor::new(first), Cursor::new(then)], readings, begun }
}

#[test]
fn a_table_edited_between_two_readings_is_refused() {
    let terms = terms(3, X, Y, 6);
    let before = bytes_of(&rows(3, X.0, X.1, 0)).into_inner();
    let mut after = before.clone();
    after[0] ^= 1;
    // 1: hashing; 2: norms; 3: commitments; 4: the norm's sums; 5: responses.
    for readings in 1..=4 {
        let table = changing(before.clone(), after.clone(), readings);
        let error = offer(&terms, table, entropy(1), Vec::new()).err().expect("refused");
        assert!(matches!(error, Error::Changed(Reading::Rows)), "{readings}: {error}");
    }
    assert!(offer(&terms, changing(before, after, 5), entropy(1), Vec::new()).is_ok());

    let mut asked = Vec::new();
    let x = rows(3, X.0, X.1, 0);
    offer(&terms, bytes_of(&x), entropy(1), &mut asked).expect("within terms");
    let before = bytes_of(&rows(3, Y.0, Y.1, 1)).into_inner();
    let mut after = before.clone();
    after[2] ^= 1;
    for readings in 1..=4 {
        let table = changing(before.clone(), after.clone(), readings);
        let accepted = AcceptedOffer::check(&terms, RECIPIENT, Cursor::new(&asked), entropy(2));
        let error = accepted.expect("honest").reply(table, entropy(3), Vec::new()).err();
        assert!(matches!(error, Some(Error::Changed(Reading::Rows))), "{readings}");
    }
}

#[test]
fn a_message_that_changes_after_its_check_is_refused() {
    let terms = terms(3, X, Y, 6);
    let (x, y) = (rows(3, X.0, X.1, 0), rows(3, Y.0, Y.1, 1));
    let mut asked = Vec::new();
    offer(&terms, bytes_of(&x), entropy(1), &mut asked).expect("within terms");
    let mut after = asked.clone();
    let at = OfferLayout::new(&terms).rows.first as usize;
    after.copy_within(at + 32..at + 64, at);
    let mut refused = 0;
    for readings in 1..40 {
        let message = changing(asked.clone(), after.clone(), readings);
        let made = AcceptedOffer::check(&terms, RECIPIENT, message, entropy(2))
            .and_then(|accepted| accepted.reply(bytes_of(&y), entropy(3), Vec::new()));
        match made {
            Err(Error::Changed(_)) => refused += 1,
            Err(other) => panic!("{other}"),
            Ok(_) => break,
        }
    }
    assert!(refused > 10, "read that often: {refused}");
}

/// The points of a section, as encoded.
fn points(message: &[u8], section: Section) -> Vec<[u8; 32]> {
    let bytes = &message[section.first as usize..][..section.length() as usize];
    bytes.as_chunks().0.to_vec()
}

/// The responses of a section: f = e·entry + w.
fn responses(message: &[u8], section: Section) -> Vec<Scalar> {
    let scalar = |field: [u8; 32]| Scalar::from_canonical_bytes(field).expect("canonical");
    points(message, section).into_iter().map(scalar).collect()
}

/// An extractor over all transcripts: equal first messages mean equal masks, equal commitments mean
/// equal blinds, and responses made with the same masks differ by a small number.
#[test]
fn no_mask_is_ever_under_two_challenges_though_the_entropy_repeats() {
    let same = || Entropy::new([9; 32].into());
    let x = rows(3, X.0, X.1, 0);
    let mut edited = x.clone();
    edited[1][0] += 1;
    let mut offers = Vec::new();
    for terms in [with(|_, _, _| ()), with(|from, _, _| from.nonce[3] ^= 1), with(|_, _, rest| rest.1 = 1)] {
        for table in [&x, &edited] {
            let make = || {
                let mut message = Vec::new();
                offer(&terms, bytes_of(table), same(), &mut message).expect("within terms");
                message
            };
            // The same step, done again: the same bytes, which is no second challenge.
            assert_eq!(make(), make());
            offers.push((terms.clone(), make()));
        }
    }
    let mut seen = BTreeSet::new();
    let mut all = Vec::new();
    for (terms, message) in &offers {
        let layout = OfferLayout::new(terms);
        for section in [layout.keys, layout.masks, layout.rows, layout.norm] {
            assert!(points(message, section).into_iter().all(|point| seen.insert(point)));
        }
        all.push(responses(message, layout.responses));
        all.push(responses(message, layout.closing));
    }
    let y = rows(3, Y.0, Y.1, 1);
    let mut edited = y.clone();
    edited[0][0] += 1;
    for (terms, message) in &offers {
        for table in [&y, &edited] {
            let mut answered = Vec::new();
            AcceptedOffer::check(terms, RECIPIENT, Cursor::new(message), entropy(2))
                .expect("honest")
                .reply(bytes_of(table), same(), &mut answered)
                .expect("within terms");
            let layout = ReplyLayout::new(terms, Y.0 as u16);
            for section in
                [layout.masks, layout.rows, layout.outputs, layout.noise, layout.norm, layout.output_mask]
            {
                assert!(points(&answered, section).into_iter().all(|point| seen.insert(point)));
            }
            all.push(responses(&answered, layout.responses));
            all.push(responses(&answered, layout.closing));
            all.push(responses(&answered, layout.openings));
        }
    }
    for (index, one) in all.iter().enumerate() {
        for other in &all[index + 1..] {
            for (one, other) in one.iter().zip(other) {
                let difference = one - other;
                let small = |d: &Scalar| d.as_bytes()[16..].iter().all(|&byte| byte == 0);
                assert!(!small(&difference) && !small(&-difference));
            }
        }
    }
}

/// Without q the sender, who knows r, could search for y.
#[test]
fn outputs_are_hidden_by_a_q_of_their_own() {
    let terms = terms(3, X, (2, 30), 6);
    let (x, y) = (rows(3, X.0, X.1, 0), rows(3, 2, 30, 1));
    let (asked, answered, _) = exchange(&terms, RECIPIENT, &x, &y, 1);
    let (offered, reply) = (OfferLayout::new(&terms), ReplyLayout::new(&terms, 2));
    let outputs = points_of(points(&answered, reply.outputs).as_flattened());
    let each = points_of(points(&asked, offered.rows).as_flattened());
    let width = X.0 + 2;
    let row = offered.rows.part / 32;
    let q: Vec<_> = (0..2 * width)
        .map(|at| {
            let (l, p) = (at / width, at % width);
            let product: RistrettoPoint = (0..3).map(|s| each[s * row + p] * integer(y[s][l])).sum();
            outputs[at] - product
        })
        .collect();
    let logarithms = Logarithms::new(100_000, 1);
    for point in [q[0], q[1], q[width], q[width + 1], q[0] - q[width], q[1] - q[width + 1]] {
        assert_eq!(logarithms.find(&point), None, "q is small, or the same in two columns");
    }
}

/// A mask of 120 bits hides sums; a smaller one would show in their size.
#[test]
fn opened_sums_spread_over_120_bits() {
    let terms = terms(3, X, Y, 6);
    let (asked, answered, _) = exchange(&terms, RECIPIENT, &rows(3, X.0, X.1, 0), &rows(3, Y.0, Y.1, 1), 1);
    let (offered, reply) = (OfferLayout::new(&terms), ReplyLayout::new(&terms, Y.0 as u16));
    for (message, sums, skip, entries) in
        [(asked, offered.sums, 32, X.0 + 4), (answered, reply.sums, 0, Y.0 + 4)]
    {
        let sums: Vec<i128> = (0..sums.parts)
            .flat_map(|repetition| {
                let first = sums.at(repetition) as usize + skip;
                message[first..first + 16 * entries].as_chunks().0.to_vec()
            })
            .map(i128::from_le_bytes)
            .collect();
        let unlike: BTreeSet<i128> = sums.iter().copied().collect();
        assert_eq!(unlike.len(), sums.len());
        // Each half of the range holds half of them: 128·5 and more, so within six standard errors.
        let above = sums.iter().filter(|&&sum| sum >= 1 << 119).count();
        let (count, above) = (sums.len() as f64, above as f64);
        assert!((above - count / 2.0).abs() < 3.0 * count.sqrt(), "{above} of {count}");
    }
}
