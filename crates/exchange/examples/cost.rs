//! Processor time a person of every step, and peak memory, on Linux:
//! `RAYON_NUM_THREADS=1 cargo run --release -p potluck-exchange --example cost -- 8192 3 10 20`
//! (people, then columns of each party). Rows and messages are in unnamed files.
#![allow(clippy::unwrap_used)]

use std::env;
use std::fs;
use std::io::{BufWriter, Seek, SeekFrom, Write};

use potluck_core::noise::Sigma;
use potluck_exchange::{AcceptedOffer, Entropy, Participant, Terms, offer};

/// Seconds of processor time that this process has used, on all cores.
fn processor() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    let after_name = stat.rsplit_once(')').unwrap().1;
    // User and system time, in hundredths of a second.
    after_name.split_whitespace().skip(11).take(2).map(|ticks| ticks.parse::<f64>().unwrap()).sum::<f64>()
        / 100.0
}

fn peak() -> String {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().to_owned()
}

fn main() {
    let numbers: Vec<usize> = env::args().skip(1).map(|number| number.parse().unwrap()).collect();
    let (people, all_columns) = numbers.split_first().expect("people, then columns");
    for &columns in all_columns {
        exchange(*people, columns);
    }
}

fn exchange(people: usize, columns: usize) {
    let party = |index| Participant {
        index,
        columns: columns as u16,
        norm: 256 * columns as u32,
        releases: [0; 32],
        nonce: [0; 32],
    };
    let to = vec![(party(1), Sigma::new(10_000).unwrap())];
    let terms = Terms::new([0; 32], 0, people as u64, party(0), to).unwrap();
    let mut rows = BufWriter::new(tempfile::tempfile().unwrap());
    for i in 0..people * columns {
        rows.write_all(&(((i * 7919 + i / 7) % 33) as i16 - 16).to_le_bytes()).unwrap();
    }
    let rows = rows.into_inner().unwrap();
    let (mut asked, mut answered) = (tempfile::tempfile().unwrap(), tempfile::tempfile().unwrap());
    let entropy = |byte| Entropy::new([byte; 32].into());

    let mut last = processor();
    let mut spent = || {
        let now = processor();
        let micros = (now - last) * 1e6 / people as f64;
        last = now;
        micros
    };
    let sent = offer(&terms, &rows, entropy(1), BufWriter::new(&asked)).unwrap();
    let offered = spent();
    let accepted = AcceptedOffer::check(&terms, 1, &asked, entropy(2)).unwrap();
    let checked = spent();
    accepted.reply(&rows, entropy(3), BufWriter::new(&answered)).unwrap();
    let replied = spent();
    let awaiting = sent.await_replies().remove(0);
    let reply = awaiting.accept(&asked, &answered, entropy(4)).unwrap();
    let accepted = spent();
    reply.outcome(entropy(5));
    let opened = spent() * people as f64 / 1e6;
    let bytes = |file: &mut fs::File| file.seek(SeekFrom::End(0)).unwrap() / people as u64;
    println!(
        "{people} people, {columns} columns each, in µs a person: offer {offered:.0}, its check \
         {checked:.0}, reply {replied:.0}, its check {accepted:.0}; sender {:.0}, recipient {:.0}; \
         outcome {opened:.2} s; {} and {} bytes a person; peak {}",
        offered + accepted,
        checked + replied,
        bytes(&mut asked),
        bytes(&mut answered),
        peak()
    );
}
