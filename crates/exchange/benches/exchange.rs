//! What each side of a pair costs a person: making and checking an offer and a reply.
#![allow(clippy::unwrap_used)]

use std::io::{self, Cursor};

use divan::Bencher;
use divan::counter::ItemsCount;
use potluck_core::noise::Sigma;
use potluck_exchange::{AcceptedOffer, Entropy, Participant, SentOffer, Terms, offer};

const PEOPLE: usize = 2048;
const COLUMNS: [u16; 3] = [3, 10, 20];

fn main() {
    divan::main();
}

fn entropy(byte: u8) -> Entropy {
    Entropy::new([byte; 32].into())
}

/// 256·R² with R² = d.
fn terms(columns: u16) -> Terms {
    let party = |index| Participant {
        index,
        columns,
        norm: 256 * u32::from(columns),
        releases: [0; 32],
        nonce: [0; 32],
    };
    let to = vec![(party(1), Sigma::new(10_000).unwrap())];
    Terms::new([0; 32], 0, PEOPLE as u64, party(0), to).unwrap()
}

fn rows(columns: u16) -> Cursor<Vec<u8>> {
    let value = |i: usize| ((i * 7919 + i / 7) % 33) as i16 - 16;
    Cursor::new((0..PEOPLE * usize::from(columns)).flat_map(|i| value(i).to_le_bytes()).collect())
}

/// An offer, what its sender keeps, and a reply.
fn messages(columns: u16) -> (Vec<u8>, Vec<u8>, Vec<u8>) {
    let (terms, mut asked, mut answered) = (terms(columns), Vec::new(), Vec::new());
    let sent = offer(&terms, rows(columns), entropy(1), &mut asked).unwrap();
    let accepted = AcceptedOffer::check(&terms, 1, Cursor::new(&asked), entropy(2)).unwrap();
    accepted.reply(rows(columns), entropy(3), &mut answered).unwrap();
    (asked, sent.to_bytes().to_vec(), answered)
}

#[divan::bench(args = COLUMNS, sample_count = 3)]
fn make_an_offer(bencher: Bencher<'_, '_>, columns: u16) {
    let terms = terms(columns);
    bencher
        .counter(ItemsCount::new(PEOPLE))
        .bench_local(|| offer(&terms, rows(columns), entropy(1), io::sink()).unwrap().hash()[0]);
}

#[divan::bench(args = COLUMNS, sample_count = 3)]
fn check_an_offer(bencher: Bencher<'_, '_>, columns: u16) {
    let (asked, ..) = messages(columns);
    let terms = terms(columns);
    bencher
        .counter(ItemsCount::new(PEOPLE))
        .bench_local(|| AcceptedOffer::check(&terms, 1, Cursor::new(&asked), entropy(2)).unwrap().hash()[0]);
}

#[divan::bench(args = COLUMNS, sample_count = 3)]
fn make_a_reply(bencher: Bencher<'_, '_>, columns: u16) {
    let (asked, ..) = messages(columns);
    let terms = terms(columns);
    let accepted = || AcceptedOffer::check(&terms, 1, Cursor::new(&asked), entropy(2)).unwrap();
    bencher.counter(ItemsCount::new(PEOPLE)).with_inputs(accepted).bench_local_values(|accepted| {
        accepted.reply(rows(columns), entropy(3), io::sink()).unwrap().hash()[0]
    });
}

#[divan::bench(args = COLUMNS, sample_count = 3)]
fn check_a_reply(bencher: Bencher<'_, '_>, columns: u16) {
    let (asked, kept, answered) = messages(columns);
    let terms = terms(columns);
    let awaiting = || SentOffer::from_bytes(&terms, &kept).unwrap().await_replies().remove(0);
    bencher.counter(ItemsCount::new(PEOPLE)).with_inputs(awaiting).bench_local_values(|awaiting| {
        awaiting.accept(Cursor::new(&asked), Cursor::new(&answered), entropy(4)).unwrap().hash()[0]
    });
}
