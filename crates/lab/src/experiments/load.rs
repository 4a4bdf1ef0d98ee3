//! A hub under load: readers of pages, files and regressions, and parties that create studies,
//! accept and upload, all at once.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use indicatif::ProgressBar;
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::Serialize;
use serde_json::json;
use ureq::Agent;

use crate::args::{Common, Load};
use crate::hub_server::{COLUMNS, HubServer, agent, made_up_release, sealed, signing_key};
use crate::machine::Machine;
use crate::runner::{Work, write, write_json};
use crate::statistics::quantile;

/// The study that uploaders create anew each time.
const SMALL_STUDY: &str = "format = 1\n[study]\nname = \"NAME\"\nrows = 100000\nid = \"integer\"\nmethod = \"rmgm\"\nmixing = \"sparse\"\nk = 1000\n\
    [privacy]\nepsilon = 1.0\ndelta = 1e-6\n\
    [[party]]\nname = \"north\"\n[[party.column]]\nname = \"a\"\nlo = 0\nhi = 1\n[[party.column]]\nname = \"b\"\nlo = 0\nhi = 1\n\
    [[party]]\nname = \"south\"\n[[party.column]]\nname = \"c\"\nlo = 0\nhi = 1\n[[party.column]]\nname = \"d\"\nlo = 0\nhi = 1\n";

/// Seconds of each kind of request, and what went wrong.
#[derive(Default)]
struct Heard {
    seconds: BTreeMap<&'static str, Vec<f64>>,
    errors: Vec<String>,
}

impl Heard {
    /// Does one request and notes how it went.
    fn time(&mut self, kind: &'static str, request: impl FnOnce() -> Result<()>) {
        let start = Instant::now();
        match request() {
            Ok(()) => self.seconds.entry(kind).or_default().push(start.elapsed().as_secs_f64()),
            Err(error) => self.errors.push(format!("{kind}: {error}")),
        }
    }

    fn add(&mut self, other: Self) {
        for (kind, seconds) in other.seconds {
            self.seconds.entry(kind).or_default().extend(seconds);
        }
        self.errors.extend(other.errors);
    }

    fn count(&self) -> usize {
        self.seconds.values().map(Vec::len).sum()
    }
}

/// One kind of request, summed up.
#[derive(Serialize)]
struct Line {
    kind: &'static str,
    requests: usize,
    per_second: f64,
    median_ms: f64,
    p99_ms: f64,
}

pub(crate) fn run(arguments: &Load, common: &Common) -> Result<()> {
    let start = Instant::now();
    let count =
        |given: Option<usize>, usual, quick| given.unwrap_or(if common.quick { quick } else { usual });
    let time = Duration::from_secs(arguments.seconds.unwrap_or(if common.quick { 3 } else { 60 }));
    let readers = count(arguments.readers, 200, 20);
    let uploaders = count(arguments.uploaders, 20, 4);
    std::fs::create_dir_all("target/lab")?;
    let folder = tempfile::tempdir_in("target/lab")?;
    let bar = ProgressBar::new_spinner();
    bar.enable_steady_tick(Duration::from_millis(200));
    bar.set_message("making a study to read");
    let hub = HubServer::start(folder.path())?;
    let study = hub.publish_clinics(folder.path())?;
    bar.set_message("asking for nothing much: the limit of this machine");
    let bare = crowd(readers, 0, time / 6, |_, until| ask_bare(&hub, until))?;
    bar.set_message(format!("{readers} readers and {uploaders} uploaders for {} s", time.as_secs()));
    let began = Instant::now();
    let heard = crowd(readers, uploaders, time, |number, until| {
        if number < readers {
            read(&hub, &study, common.seed * 1_000_003 + number as u64, until)
        } else {
            publish(&hub, folder.path(), number, until)
        }
    })?;
    let seconds = began.elapsed().as_secs_f64();
    bar.finish_and_clear();
    for error in heard.errors.iter().take(10) {
        eprintln!("{error}");
    }
    let scene = Scene {
        readers,
        uploaders,
        seconds,
        bare: bare.count() as f64 / (time / 6).as_secs_f64(),
        peak: hub.peak_bytes()?,
    };
    report(
        &heard,
        &scene,
        Work { seconds: start.elapsed().as_secs_f64(), threads: common.threads().get() },
        common,
    )?;
    ensure!(
        heard.errors.is_empty() && bare.errors.is_empty(),
        "{} requests failed",
        heard.errors.len() + bare.errors.len()
    );
    Ok(())
}

/// Everybody at once, each until the time is over.
fn crowd(
    readers: usize,
    uploaders: usize,
    time: Duration,
    work: impl Fn(usize, Instant) -> Heard + Sync,
) -> Result<Heard> {
    let until = Instant::now() + time;
    std::thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> =
            (0..readers + uploaders).map(|number| scope.spawn(move || work(number, until))).collect();
        let mut heard = Heard::default();
        for thread in threads {
            heard.add(thread.join().map_err(|_| anyhow::anyhow!("a thread panicked"))?);
        }
        Ok(heard)
    })
}

fn get(agent: &Agent, url: &str, least: usize) -> Result<()> {
    let mut answer = agent.get(url).call()?;
    let status = answer.status();
    let length = answer.body_mut().with_config().limit(1 << 30).read_to_vec()?.len();
    ensure!(status == 200, "{url}: {status}");
    ensure!(length >= least, "{url}: only {length} bytes");
    Ok(())
}

fn ask_bare(hub: &HubServer, until: Instant) -> Heard {
    let agent = agent();
    let mut heard = Heard::default();
    while Instant::now() < until {
        heard.time("bare", || get(&agent, &format!("{}/healthz", hub.address), 2));
    }
    heard
}

/// A reader: pages, regressions and files in turn, each regression of other columns.
fn read(hub: &HubServer, study: &str, seed: u64, until: Instant) -> Heard {
    let agent = agent();
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut heard = Heard::default();
    let (page, api) =
        (format!("{}/studies/{study}", hub.address), format!("{}/api/v1/studies/{study}", hub.address));
    while Instant::now() < until {
        let query = random_regression(&mut rng);
        match rng.next_u32() % 20 {
            0..2 => heard.time("list of studies", || get(&agent, &hub.address, 500)),
            2..7 => heard.time("page of a study", || get(&agent, &page, 2_000)),
            7..13 => heard.time("explorer", || get(&agent, &format!("{page}/explore?{query}"), 5_000)),
            13..16 => heard.time("regression by API", || get(&agent, &format!("{api}/fit?{query}"), 500)),
            16..18 => heard.time("public dataset", || get(&agent, &format!("{api}/dataset"), 10_000)),
            _ => heard.time("event log", || get(&agent, &format!("{api}/events.jsonl"), 500)),
        }
    }
    heard
}

/// A label and two to six features, at random: few ask for the same.
fn random_regression(rng: &mut impl Rng) -> String {
    let mut column = || format!("x{}{}", rng.next_u32() % 3, rng.next_u32() % COLUMNS as u32);
    let label = column();
    let mut features: Vec<String> = (0..6).map(|_| column()).filter(|feature| *feature != label).collect();
    features.sort();
    features.dedup();
    let features: String = features.iter().map(|feature| format!("&feature={feature}")).collect();
    format!("label={label}{features}")
}

/// A coordinator and two parties, again and again: a new study, two acceptances, two uploads.
fn publish(hub: &HubServer, folder: &Path, number: usize, until: Instant) -> Heard {
    let agent = agent();
    let mut heard = Heard::default();
    let file = folder.join(format!("uploader-{number}.parquet"));
    let mut round = 0;
    while Instant::now() < until {
        round += 1;
        let seed = number as u64 * 1_000_000 + round;
        let text = SMALL_STUDY.replace("NAME", &format!("study {seed}"));
        let (study, text) = sealed(&text, seed).expect("the study is sound");
        let mut invitations = Vec::new();
        heard.time("create a study", || {
            invitations = hub.create(&agent, &text)?;
            Ok(())
        });
        for (party, token) in &invitations {
            let key = signing_key(seed);
            let bytes = made_up_release(&study, party, &key, &file).expect("the release is sound");
            heard.time("accept", || hub.accept(&agent, &study, party, token, &key));
            heard.time("upload a release", || hub.upload(&agent, &study, party, token, &bytes));
        }
    }
    heard
}

/// Under which conditions it was measured.
struct Scene {
    readers: usize,
    uploaders: usize,
    seconds: f64,
    /// Requests a second for an answer of three bytes.
    bare: f64,
    /// Peak memory of the hub.
    peak: u64,
}

fn report(heard: &Heard, scene: &Scene, work: Work, common: &Common) -> Result<()> {
    let line = |(kind, seconds): (&&'static str, &Vec<f64>)| Line {
        kind,
        requests: seconds.len(),
        per_second: seconds.len() as f64 / scene.seconds,
        median_ms: 1e3 * quantile(seconds, 0.5),
        p99_ms: 1e3 * quantile(seconds, 0.99),
    };
    let mut lines: Vec<Line> = heard.seconds.iter().map(line).collect();
    let all: Vec<f64> = heard.seconds.values().flatten().copied().collect();
    lines.push(line((&"all", &all)));
    let machine = Machine::new();
    let mut text = format!(
        "{}, {} cores, shared by the hub and those who ask. {} readers and {} uploaders for {:.0} s: {} requests, {} errors. \
         Peak memory of the hub: {:.0} MB. The same readers asking for /healthz alone: {:.0} requests/s.\n\n\
         | request | requests | a second | median, ms | p99, ms |\n|---|---|---|---|---|\n",
        machine.processor,
        machine.cores,
        scene.readers,
        scene.uploaders,
        scene.seconds,
        heard.count(),
        heard.errors.len(),
        scene.peak as f64 / 1e6,
        scene.bare
    );
    for line in &lines {
        let Line { kind, requests, per_second, median_ms, p99_ms } = line;
        let _ = writeln!(text, "| {kind} | {requests} | {per_second:.1} | {median_ms:.1} | {p99_ms:.1} |");
    }
    write(&common.out.join("load.md"), &text)?;
    print!("{text}");
    if let Some(path) = &common.json {
        let results = json!({
            "machine": machine, "readers": scene.readers, "uploaders": scene.uploaders, "seconds": scene.seconds,
            "errors": heard.errors.len(), "bare_per_second": scene.bare, "peak_bytes": scene.peak, "kinds": lines,
        });
        write_json(path, "load", work, &results)?;
    }
    Ok(())
}
