//! The exchange as it should be.

use std::io::Cursor;

use super::{RECIPIENT, SENDER, bytes_of, entropy, party, products, rows, sigma, terms};
use crate::{AcceptedOffer, Error, Outcome, SentOffer, Terms, offer};

/// All of an exchange: its messages, and the outcome.
pub(crate) fn exchange(
    terms: &Terms,
    recipient: u16,
    x: &[Vec<i64>],
    y: &[Vec<i64>],
    seed: u64,
) -> (Vec<u8>, Vec<u8>, Outcome) {
    let (mut asked, mut answered) = (Vec::new(), Vec::new());
    let sent = offer(terms, bytes_of(x), entropy(seed), &mut asked).expect("rows within terms");
    AcceptedOffer::check(terms, recipient, Cursor::new(&asked), entropy(seed + 1))
        .expect("an honest offer")
        .reply(bytes_of(y), entropy(seed + 2), &mut answered)
        .expect("rows within terms");
    let awaiting = sent.await_replies().into_iter().find(|awaiting| awaiting.recipient() == recipient);
    let outcome = awaiting
        .expect("a recipient")
        .accept(Cursor::new(&asked), Cursor::new(&answered), entropy(seed + 3))
        .expect("an honest reply")
        .outcome(entropy(seed + 4));
    (asked, answered, outcome)
}

fn assert_near(outcome: &Outcome, expected: &[i64], scale: i64) {
    assert_eq!(outcome.values.len(), expected.len());
    for (value, expected) in outcome.values.iter().zip(expected) {
        let noise = value.expect("in range") - expected;
        // √2σ·6.6
        assert!(noise.abs() <= 10 * scale, "noise of {noise} at scale {scale}");
    }
}

#[test]
fn outcomes_are_products_and_two_noises() {
    for (people, sender, recipient, scale) in [
        (1, (1, 1), (1, 1), 1),
        (3, (2, 300), (3, 75), 50),
        (70, (3, 2560), (2, 768), 3000),
        (33, (1, 1 << 20), (5, 4096), 1 << 17),
    ] {
        let terms = terms(people, sender, recipient, scale);
        let x = rows(people, sender.0, sender.1, 0);
        let y = rows(people, recipient.0, recipient.1, 3);
        let (_, _, outcome) = exchange(&terms, RECIPIENT, &x, &y, 1);
        assert_near(&outcome, &products(&x, &y), scale as i64);
    }
}

#[test]
fn rows_beyond_one_chunk_and_one_block_count_like_any_other() {
    let people = crate::rows::CHUNK as usize + 259;
    let terms = terms(people, (1, 9), (1, 4), 20);
    let (x, y) = (rows(people, 1, 9, 1), rows(people, 1, 4, 2));
    let (_, _, outcome) = exchange(&terms, RECIPIENT, &x, &y, 9);
    assert_near(&outcome, &products(&x, &y), 20);
}

#[test]
fn the_noise_of_outcomes_has_twice_the_variance_of_its_scale() {
    let scale = 40;
    let terms = terms(1, (14, 14), (14, 14), scale);
    let ones = vec![vec![1; 14]];
    let mut squares = 0.0;
    let mut count = 0.0;
    for seed in 0..8 {
        let (_, _, outcome) = exchange(&terms, RECIPIENT, &ones, &ones, 100 * seed);
        for value in outcome.values {
            squares += ((value.expect("in range") - 1) as f64).powi(2);
            count += 1.0;
        }
    }
    let ratio: f64 = squares / count / (2.0 * (scale as f64).powi(2));
    // 1568 values: a standard error of 3.6%.
    assert!((ratio - 1.0).abs() < 0.15, "{ratio}");
}

#[test]
fn every_recipient_gets_the_same_offer_and_its_own_products() {
    let to = vec![(party(4, 2, 50), sigma(30)), (party(9, 1, 90), sigma(60))];
    let terms = Terms::new([5; 32], 2, 6, party(SENDER, 2, 80), to).expect("valid");
    let x = rows(6, 2, 80, 0);
    for (recipient, columns, norm, scale) in [(4, 2, 50, 30), (9, 1, 90, 60)] {
        let y = rows(6, columns, norm, 1);
        let (_, _, outcome) = exchange(&terms, recipient, &x, &y, 3);
        assert_near(&outcome, &products(&x, &y), scale);
    }
}

#[test]
fn permuted_rows_are_accepted_and_give_products_of_other_rows() {
    let terms = terms(5, (2, 200), (2, 100), 10);
    let (x, mut y) = (rows(5, 2, 200, 0), rows(5, 2, 100, 1));
    y.swap(0, 3);
    let (_, _, outcome) = exchange(&terms, RECIPIENT, &x, &y, 1);
    assert_near(&outcome, &products(&x, &y), 10);
}

#[test]
fn a_kept_offer_opens_replies_and_nothing_else_does() {
    let terms = terms(3, (2, 30), (1, 30), 5);
    let (x, y) = (rows(3, 2, 30, 0), rows(3, 1, 30, 1));
    let (mut asked, mut answered) = (Vec::new(), Vec::new());
    let sent = offer(&terms, bytes_of(&x), entropy(1), &mut asked).expect("rows within terms");
    let kept = sent.to_bytes();
    drop(sent);
    AcceptedOffer::check(&terms, RECIPIENT, Cursor::new(&asked), entropy(2))
        .expect("honest")
        .reply(bytes_of(&y), entropy(3), &mut answered)
        .expect("rows within terms");
    let again = SentOffer::from_bytes(&terms, &kept).expect("kept");
    let outcome = again
        .await_replies()
        .remove(0)
        .accept(Cursor::new(&asked), Cursor::new(&answered), entropy(4))
        .expect("honest")
        .outcome(entropy(5));
    assert_near(&outcome, &products(&x, &y), 5);

    let other = super::terms(3, (2, 31), (1, 30), 5);
    assert!(matches!(SentOffer::from_bytes(&other, &kept), Err(Error::Kept)));
    for wrong in [&kept[1..], &kept[..kept.len() - 1], &[], &[&kept[..], &[0]].concat()] {
        assert!(matches!(SentOffer::from_bytes(&terms, wrong), Err(Error::Kept)));
    }
    let mut wrong = kept.to_vec();
    *wrong.last_mut().expect("not empty") = 0xFF;
    assert!(matches!(SentOffer::from_bytes(&terms, &wrong), Err(Error::Kept)));
}

#[test]
fn own_rows_that_do_not_keep_to_the_terms_are_refused_before_anything_is_written() {
    let terms = terms(2, (2, 25), (1, 4), 5);
    let refused = |rows: &[Vec<i64>]| {
        let mut out = Vec::new();
        let error = offer(&terms, bytes_of(rows), entropy(1), &mut out).err().expect("refused");
        assert!(out.is_empty());
        error
    };
    assert!(offer(&terms, bytes_of(&[vec![3, 4], vec![5, 0]]), entropy(1), Vec::new()).is_ok());
    let long = refused(&[vec![3, 4], vec![5, 1]]);
    assert!(matches!(long, Error::OwnRowTooLong { party: SENDER }), "{long}");
    let extreme = refused(&[vec![-32768, -32768], vec![0, 0]]);
    assert!(matches!(extreme, Error::OwnRowTooLong { .. }), "{extreme}");
    for count in [1, 3] {
        let length = refused(&vec![vec![0, 0]; count]);
        assert!(matches!(length, Error::OwnRowsLength { expected: 8, .. }), "{length}");
    }
}
