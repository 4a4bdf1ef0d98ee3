//! Messages and numbers made by vectors/exchange/reference.py, which was written from the document
//! alone; and messages made here, which that program checks.

use std::fs;
use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::{entropy, sigma};
use crate::generators::Generators;
use crate::layout::{OfferLayout, ReplyLayout, Section};
use crate::randomness::pair;
use crate::transcript::Transcript;
use crate::{AcceptedOffer, Error, Participant, SentOffer, Terms, offer};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/exchange")
}

fn known() -> Value {
    serde_json::from_str(include_str!("../../../../vectors/exchange/known.json")).expect("valid JSON")
}

fn number(value: &Value) -> u64 {
    value.as_u64().expect("a number")
}

fn terms_of(case: &Value) -> Terms {
    let party = |who: &Value, releases, nonce| Participant {
        index: number(&who["index"]) as u16,
        columns: number(&who["columns"]) as u16,
        norm: number(&who["norm"]) as u32,
        releases: [releases; 32],
        nonce: [nonce; 32],
    };
    let to = party(&case["recipient"], 3, 5);
    let (attempt, people) = (number(&case["attempt"]) as u32, number(&case["people"]));
    let sender = party(&case["sender"], 2, 4);
    Terms::new([1; 32], attempt, people, sender, vec![(to, sigma(number(&case["sigma"])))]).expect("valid")
}

fn rows_of(rows: &Value) -> Vec<Vec<i64>> {
    let row =
        |row: &Value| row.as_array().expect("a row").iter().map(|v| v.as_i64().expect("a number")).collect();
    rows.as_array().expect("rows").iter().map(row).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &Value) -> Vec<u8> {
    let text = text.as_str().expect("text").as_bytes();
    let digit = |digit: u8| (digit as char).to_digit(16).expect("a digit") as u8;
    text.chunks(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
}

#[test]
fn generators_and_terms_are_those_of_the_document() {
    let known = known();
    let g = Generators::new(10);
    let points = &known["generators"];
    for (name, point) in [
        ("G'", g.g2),
        ("B", g.b),
        ("F1", g.f[0]),
        ("F2", g.f[1]),
        ("F3", g.f[2]),
        ("F4", g.f[3]),
        ("L1", g.l[0]),
        ("L2", g.l[1]),
        ("L10", g.l[9]),
    ] {
        assert_eq!(points[name], hex(point.compress().as_bytes()), "{name}");
    }
    for case in known["exchanges"].as_array().expect("exchanges") {
        let terms = terms_of(case);
        assert_eq!(case["terms"], hex(terms.bytes()));
        assert_eq!(number(&case["range"]), terms.recipients()[0].range);
    }
}

#[test]
fn challenges_are_those_of_the_document() {
    for case in known()["exchanges"].as_array().expect("exchanges") {
        let terms = terms_of(case);
        let name = case["name"].as_str().expect("a name");
        let read = |kind| fs::read(folder().join(format!("python/{name}.{kind}"))).expect("a message");
        let (asked, answered) = (read("offer"), read("reply"));
        let part = |message: &[u8], section: Section| {
            message[section.first as usize..][..section.length() as usize].to_vec()
        };
        let people = terms.people() as usize;
        let layout = OfferLayout::new(&terms);
        let mut transcript = Transcript::new("offer", &terms, &Generators::new(0));
        transcript.item("keys", &part(&asked, layout.keys));
        transcript.item("masks", &part(&asked, layout.masks));
        transcript.item("rows", &part(&asked, layout.rows));
        let rho = transcript.challenge("rho").scalars(people);
        assert_eq!(case["rho"], hex(rho[people - 1].as_bytes()));
        transcript.item("norm", &part(&asked, layout.norm));
        assert_eq!(case["e"], hex(transcript.challenge("e").scalar().as_bytes()));
        let bits = transcript.challenge("bits").bits(people);
        assert_eq!(case["bits"], hex(&bits[people - 1].to_le_bytes()));

        let to = &terms.recipients()[0].party;
        let columns = usize::from(to.columns);
        let reply = ReplyLayout::new(&terms, to.columns);
        let mut transcript = Transcript::new("reply", &terms, &Generators::new(columns));
        transcript.item("offer", &<sha2::Sha512 as sha2::Digest>::digest(&asked));
        transcript.item("pair", &pair(&terms, Some(to.index)));
        transcript.item("keys", &part(&asked, layout.keys));
        transcript.item("masks", &part(&answered, reply.masks));
        transcript.item("rows", &part(&answered, reply.rows));
        transcript.item("outputs", &part(&answered, reply.outputs));
        transcript.item("noise", &part(&answered, reply.noise));
        let count = columns * (usize::from(terms.sender().columns) + 2);
        let gamma = transcript.challenge("gamma").scalars(count);
        assert_eq!(case["gamma"], hex(gamma[count - 1].as_bytes()));
        transcript.item("norm", &part(&answered, reply.norm));
        transcript.item("output mask", &part(&answered, reply.output_mask));
        assert_eq!(case["reply_e"], hex(transcript.challenge("e").scalar().as_bytes()));
    }
}

#[test]
fn messages_of_the_other_program_are_accepted_and_opened() {
    for case in known()["exchanges"].as_array().expect("exchanges") {
        let terms = terms_of(case);
        let name = case["name"].as_str().expect("a name");
        let read = |kind| fs::read(folder().join(format!("python/{name}.{kind}"))).expect("a message");
        let (asked, answered) = (read("offer"), read("reply"));
        let index = terms.recipients()[0].party.index;
        AcceptedOffer::check(&terms, index, Cursor::new(&asked), entropy(1)).expect("accepted");
        let outcome = SentOffer::from_bytes(&terms, &unhex(&case["kept"]))
            .expect("kept")
            .await_replies()
            .remove(0)
            .accept(Cursor::new(&asked), Cursor::new(&answered), entropy(2))
            .expect("accepted")
            .outcome(entropy(3));
        let opened = rows_of(&case["opened"]);
        let scale = number(&case["sigma"]) as i64;
        for (value, opened) in outcome.values.iter().zip(opened.iter().flatten()) {
            assert!((value.expect("in range") - opened).abs() <= 8 * scale, "the sender's noise alone");
        }
    }
}

/// Makes the messages in vectors/exchange/rust: all of one exchange.
fn messages(case: &Value) -> [Vec<u8>; 3] {
    let terms = terms_of(case);
    let (mut asked, mut answered) = (Vec::new(), Vec::new());
    let index = terms.recipients()[0].party.index;
    let rows = |name: &str| super::bytes_of(&rows_of(&case[name]));
    let sent = offer(&terms, rows("sender_rows"), entropy(1), &mut asked).expect("within terms");
    AcceptedOffer::check(&terms, index, Cursor::new(&asked), entropy(2))
        .expect("honest")
        .reply(rows("recipient_rows"), entropy(3), &mut answered)
        .expect("within terms");
    let outcome = sent
        .await_replies()
        .remove(0)
        .accept(Cursor::new(&asked), Cursor::new(&answered), entropy(4))
        .expect("honest")
        .outcome(entropy(5));
    [asked, answered, outcome.to_bytes()]
}

/// `POTLUCK_REMAKE_VECTORS=1` writes them anew.
#[test]
fn messages_are_those_that_were_made_before() {
    let remake = std::env::var_os("POTLUCK_REMAKE_VECTORS").is_some();
    for case in known()["exchanges"].as_array().expect("exchanges") {
        let name = case["name"].as_str().expect("a name");
        for (bytes, kind) in messages(case).iter().zip(["offer", "reply", "result"]) {
            let path = folder().join(format!("rust/{name}.{kind}"));
            if remake {
                fs::create_dir_all(folder().join("rust")).expect("a folder");
                fs::write(&path, bytes).expect("written");
            }
            assert!(fs::read(&path).expect("a message") == *bytes, "{name}.{kind} is another");
        }
    }
}

/// The other program accepts them, and refuses every one of its changes to them.
#[test]
fn messages_are_accepted_by_the_other_program() {
    let output = Command::new("python3")
        .arg(folder().join("check.py"))
        .output()
        .expect("python3 runs; the standard library is enough");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn terms_with_other_numbers_refuse_messages_of_the_other_program() {
    let known = known();
    let case = &known["exchanges"][0];
    let asked = fs::read(folder().join("python/two-by-one.offer")).expect("a message");
    let mut other = case.clone();
    other["attempt"] = 8.into();
    let terms = terms_of(&other);
    let error = AcceptedOffer::check(&terms, 3, Cursor::new(&asked), entropy(1)).err();
    assert!(matches!(error, Some(Error::Refused { .. })));
}
