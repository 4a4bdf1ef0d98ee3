//! The noise that the command really publishes, from the operating system's randomness.
//!
//! Releases of one table, by the real binary, each into a ledger of its own: their exact sums are
//! known, so the noise in every stage is, too. It must not come twice: not in two stages, not of
//! two parties, not in two processes, not under two methods. If it did, the difference of two
//! releases would be free of noise.
//!
//! Tried by hand, each of these changes to crates/party/src/entropy.rs fails
//! `noise_is_never_the_same_and_never_related`: a generator whose seed is all zeros; one whose seed
//! is any constant; a seed that is made once a process; a seed of the purpose and the count alone,
//! the same in every process. Zeros or a constant in place of the operating system's answer fail
//! already as errors. That the operating system is asked at all, rather than a clock, no statistics
//! can tell: the lint in clippy.toml expects the call where it is.
#![allow(clippy::unwrap_used)]

mod support;

use potluck_fixtures::{StudyText, csv};
use potluck_release::{Release, Study};
use support::Workplace;

const ROWS: usize = 1200;
/// Every stage begins with at least as many sums of one noise scale.
const COLUMNS: usize = 160;
/// Of the statistic below, which is standard normal for unrelated noise: P(|T| > 7.5) < 6.5e-14.
/// With fewer than 10³ of them a false alarm comes once in 10¹⁰ runs.
const LIMIT: f64 = 7.5;

/// The noise of one stage of one release, in units of its scale.
struct Stream {
    what: String,
    noise: Vec<f64>,
}

/// Σab/‖b‖ over the first `length` numbers: standard normal, whatever b is, if a is standard normal
/// and independent of b; about √`length` if the two are the same.
fn relation(a: &[f64], b: &[f64], length: usize) -> f64 {
    let pairs = || a.iter().zip(b).take(length);
    let norm: f64 = pairs().map(|(_, b)| b * b).sum();
    pairs().map(|(a, b)| a * b).sum::<f64>() / norm.sqrt()
}

/// Whether the statistic says that two streams have something to do with each other: as far as any
/// two stages have the same form, and as far as both go.
fn related(a: &Stream, b: &Stream) -> bool {
    let both = a.noise.len().min(b.noise.len());
    [COLUMNS, both].into_iter().any(|length| relation(&a.noise, &b.noise, length).abs() > LIMIT)
}

fn study(method: &str, id: &str) -> String {
    let text = potluck_fixtures::study("noise", ROWS as u64)
        .settings(&format!("id = \"{id}\"\nmethod = \"{method}\""));
    let with_party = |text: StudyText, party: &str| {
        let columns: Vec<String> =
            (0..COLUMNS).map(|column| format!("{party}{column} lo = 0; hi = 100")).collect();
        text.party(party, &columns.iter().map(String::as_str).collect::<Vec<_>>())
    };
    ["north", "south"].into_iter().fold(text, with_party).to_string()
}

fn table(party: &str) -> String {
    let names: Vec<String> = (0..COLUMNS).map(|column| format!("{party}{column}")).collect();
    csv(&format!("id,{}", names.join(",")), ROWS, |row| {
        let values: Vec<String> = (0..COLUMNS).map(|c| (row * (c + 7) % 101).to_string()).collect();
        format!("{row},{}", values.join(","))
    })
}

/// Releases the table of a party into a ledger of its own, in a process of its own.
fn release(place: &Workplace, party: &str, name: &str) -> Release {
    let (ledger, out) = (format!("{name}.sqlite"), format!("{name}.parquet"));
    place.line(&format!("ledger init --ledger {ledger} --budget people --epsilon 1 --delta 1e-5")).ok();
    place
        .line(&format!(
            "release study.toml --party {party} --data {party}.csv --ignore-extra --ledger {ledger} --out {out} --yes --accept-low-accuracy"
        ))
        .ok();
    Release::read(&place.path(&out)).unwrap()
}

/// What was published of each stage, in whole numbers.
fn published(release: &Release) -> Vec<Vec<i64>> {
    let scale = release.mixed_stage().unwrap().scale();
    let columns = release.columns();
    let value = |row: usize| columns.values().iter().map(move |column| (column[row] * scale).round() as i64);
    let mut stages = release.earlier_sums();
    stages.push((0..columns.rows()).flat_map(value).collect());
    stages
}

/// The noise of each stage: what was published less the exact sums, which the party's own auditor
/// sees.
fn noise(place: &Workplace, party: &str, name: &str, release: &Release) -> Vec<Stream> {
    let stages = published(release);
    let study = Study::load(&place.path("study.toml")).unwrap();
    let stream = |(position, published): (usize, &Vec<i64>)| {
        let stage = study.stage(party, &stages[..position]).unwrap().unwrap();
        let state = format!("{name}.audit");
        place
            .line(&format!(
                "sums study.toml --party {party} --data {party}.csv --ignore-extra --state {state} --release {name}.parquet --stage {}",
                position + 1
            ))
            .ok();
        let audited = place.read(&format!("{state}/{party}.{}.sums.csv", stage.name));
        let exact = audited.lines().skip(1).map(|line| line.rsplit(',').next().unwrap().parse::<i64>());
        let sigmas = stage.noise.iter().flat_map(|&(count, sigma)| std::iter::repeat_n(sigma, count));
        let noise: Vec<f64> = published
            .iter()
            .zip(exact)
            .zip(sigmas)
            .map(|((&published, exact), sigma)| (published - exact.unwrap()) as f64 / sigma.get() as f64)
            .collect();
        assert_eq!(noise.len(), stage.coordinates());
        Stream { what: format!("{name}, {}", stage.name), noise }
    };
    stages.iter().enumerate().map(stream).collect()
}

/// Two releases of each table under a study: what they published, and their noise.
fn releases(method: &str, id: &str, parties: &[&str], stages: usize) -> Vec<Stream> {
    let place = Workplace::empty();
    place.write("study.toml", study(method, id));
    place.line("study seal study.toml").ok();
    let mut streams = Vec::new();
    for party in parties {
        place.write(&format!("{party}.csv"), table(party));
        let mut before: Option<Vec<Vec<i64>>> = None;
        for run in 1..=2 {
            let name = format!("{method}-{party}-{run}");
            let release = release(&place, party, &name);
            let now = published(&release);
            assert_eq!(now.len(), stages);
            for (stage, (now, before)) in now.iter().zip(before.iter().flatten()).enumerate() {
                assert!(now != before, "{name}: stage {stage} came out as in the release before");
            }
            streams.extend(noise(&place, party, &name, &release));
            before = Some(now);
        }
    }
    streams
}

#[test]
fn noise_is_never_the_same_and_never_related() {
    let mut streams = releases("calibrated", "integer", &["north", "south"], 4);
    streams.extend(releases("rmgm", "integer", &["north"], 1));
    streams.extend(releases("dgm", "row", &["north"], 1));
    assert_eq!(streams.len(), 2 * 2 * 4 + 2 + 2);

    for stream in &streams {
        // It is noise of the right size: outside of this in fewer than one of 10¹⁴ cases, χ² with
        // 320 degrees of freedom or more.
        let length = stream.noise.len();
        let size = stream.noise.iter().map(|z| z * z).sum::<f64>() / length as f64;
        assert!(length >= 2 * COLUMNS && (0.5..2.0).contains(&size), "{}: {size}", stream.what);
        // The statistic notices what it must: the same noise again, or the same with a little
        // added.
        let faint: Vec<f64> =
            stream.noise.iter().enumerate().map(|(i, z)| z + 0.1 * (i as f64).sin()).collect();
        assert!(related(stream, stream) && related(&Stream { what: String::new(), noise: faint }, stream));
    }
    for (at, stream) in streams.iter().enumerate() {
        for other in &streams[..at] {
            assert!(!related(stream, other), "{} has the noise of {}", stream.what, other.what);
        }
    }
}
