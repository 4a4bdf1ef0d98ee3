//! Whole jobs beside other people's software in the same run, and whether they are as fast as they
//! ought to be.

mod fit;
mod mixing;
mod noise;
mod passes;
mod python;

use std::fmt::Write as _;
use std::fs;
use std::num::NonZero;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Result;
use indicatif::ProgressBar;
use serde::Serialize;
use serde_json::{Value, json};

use crate::args::{Common, Speed};
use crate::machine::Machine;
use crate::peers::Environment;
use crate::runner::{Work, write, write_json};
use crate::statistics::quantile;
use crate::survey::Survey;

/// Times of one contestant, one a run.
#[derive(Clone, Serialize)]
struct Timed {
    name: String,
    seconds: Vec<f64>,
}

impl Timed {
    fn median(&self) -> f64 {
        quantile(&self.seconds, 0.5)
    }

    /// The time of the other one over ours: the median over runs, in each of which both ran one
    /// after the other.
    fn times_as_fast_as(&self, other: &Self) -> f64 {
        1.0 / self.times_as_long_as(other)
    }

    fn times_as_long_as(&self, other: &Self) -> f64 {
        let ratios: Vec<f64> = self.seconds.iter().zip(&other.seconds).map(|(one, two)| one / two).collect();
        quantile(&ratios, 0.5)
    }
}

/// Somebody who does the job once and says how many seconds it took.
struct Contestant<'a> {
    name: String,
    run: Box<dyn FnMut() -> Result<f64> + 'a>,
}

impl<'a> Contestant<'a> {
    fn new(name: impl Into<String>, run: impl FnMut() -> Result<f64> + 'a) -> Self {
        Self { name: name.into(), run: Box::new(run) }
    }
}

/// Seconds that `work` takes.
fn clock<T>(work: impl FnOnce() -> Result<T>) -> Result<(f64, T)> {
    let start = Instant::now();
    let result = work()?;
    Ok((start.elapsed().as_secs_f64(), result))
}

/// What all figures are measured with.
struct Setup {
    quick: bool,
    runs: usize,
    threads: NonZero<usize>,
    /// None if peers are not to be run.
    peers: Option<Environment>,
    bar: ProgressBar,
}

impl Setup {
    /// Lets everybody run in turn, again and again, so that whatever else the machine does hits all
    /// alike.
    fn interleave(&self, job: &str, mut contestants: Vec<Contestant<'_>>) -> Result<Vec<Timed>> {
        let mut timed: Vec<Timed> = contestants
            .iter()
            .map(|contestant| Timed { name: contestant.name.clone(), seconds: Vec::new() })
            .collect();
        for run in 1..=self.runs {
            for (contestant, timed) in contestants.iter_mut().zip(&mut timed) {
                self.bar.set_message(format!("{job}, run {run} of {}: {}", self.runs, contestant.name));
                timed.seconds.push((contestant.run)()?);
            }
        }
        Ok(timed)
    }
}

/// One row of the table.
#[derive(Serialize)]
struct Figure {
    name: String,
    /// Our measured value.
    ours: String,
    /// What it stands beside.
    beside: String,
    /// How the two compare.
    ratio: Option<f64>,
    /// What the ratio means: "× as fast" or "× the time".
    unit: &'static str,
    goal: Option<Goal>,
    /// Of what this machine could do at most.
    share_of_peak: Option<f64>,
    timed: Vec<Timed>,
}

#[derive(Serialize)]
struct Goal {
    text: String,
    /// None if it was not measured.
    met: Option<bool>,
}

const AS_FAST: &str = "× as fast";
const THE_TIME: &str = "× the time";
const NO_PEER: &str = "not run (--no-peers)";

impl Figure {
    /// Our value alone.
    fn new(name: impl Into<String>, ours: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            ours: ours.into(),
            beside: "–".to_owned(),
            ratio: None,
            unit: AS_FAST,
            goal: None,
            share_of_peak: None,
            timed: Vec::new(),
        }
    }

    fn beside(mut self, beside: impl Into<String>) -> Self {
        self.beside = beside.into();
        self
    }

    fn ratio(mut self, ratio: Option<f64>, unit: &'static str) -> Self {
        (self.ratio, self.unit) = (ratio, unit);
        self
    }

    fn goal(mut self, text: impl Into<String>, met: Option<bool>) -> Self {
        self.goal = Some(Goal { text: text.into(), met });
        self
    }

    fn timed(mut self, timed: Vec<Timed>) -> Self {
        self.timed = timed;
        self
    }

    /// At least so many times as fast as a peer, if it ran.
    fn at_least(self, peer: Option<(&Timed, &Timed)>, times: f64) -> Self {
        let ratio = peer.map(|(ours, peer)| ours.times_as_fast_as(peer));
        self.ratio(ratio, AS_FAST).goal(format!("≥ {times} ×"), ratio.map(|ratio| ratio >= times))
    }

    /// At most so many times as long as something else of ours.
    fn at_most(self, ours: &Timed, other: &Timed, times: f64) -> Self {
        let ratio = ours.times_as_long_as(other);
        self.ratio(Some(ratio), THE_TIME).goal(format!("≤ {times} ×"), Some(ratio <= times))
    }

    fn line(&self) -> String {
        let ratio = self.ratio.map_or("–".to_owned(), |ratio| format!("{} {}", short(ratio), self.unit));
        let (goal, met) = self.goal.as_ref().map_or(("–", "–"), |goal| {
            (goal.text.as_str(), goal.met.map_or("–", |met| if met { "yes" } else { "**no**" }))
        });
        let peak = self.share_of_peak.map_or("–".to_owned(), |share| format!("{:.0}%", 100.0 * share));
        format!("| {} | {} | {} | {ratio} | {goal} | {met} | {peak} |\n", self.name, self.ours, self.beside)
    }
}

/// Three digits of a positive number.
fn short(value: f64) -> String {
    match value {
        100.0.. => format!("{value:.0}"),
        10.0.. => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// A time with a fitting unit.
fn duration(seconds: f64) -> String {
    if seconds < 1.0 { format!("{} ms", short(1e3 * seconds)) } else { format!("{} s", short(seconds)) }
}

pub(crate) fn run(arguments: &Speed, common: &Common) -> Result<()> {
    let start = Instant::now();
    let setup = Setup {
        quick: common.quick,
        runs: common.seeds.unwrap_or(if common.quick { 2 } else { 5 }).max(1),
        threads: common.threads(),
        peers: if arguments.no_peers { None } else { Some(Environment::prepare()?) },
        bar: ProgressBar::new_spinner(),
    };
    let rows = arguments.rows.unwrap_or(if common.quick { 200_000 } else { 10_000_000 });
    let surveys = [Survey::prepare(rows.div_ceil(10))?, Survey::prepare(rows)?];
    setup.bar.enable_steady_tick(Duration::from_millis(200));

    let mut figures = vec![noise::exact(&setup)?];
    figures.extend(mixing::bernoulli(&setup)?);
    let passes = passes::measure(&setup, &surveys)?;
    figures.extend(passes.figures(&setup));
    figures.extend(mixing::sparse(&setup, rows as usize, passes.k)?);
    figures.extend(passes.growth_figures());
    figures.extend(python::figures(&setup, &surveys[1])?);
    figures.push(convergence(&common.out));
    figures.extend(fit::figures(&setup)?);
    setup.bar.finish_and_clear();
    if arguments.clean {
        surveys.into_iter().try_for_each(Survey::remove)?;
    }
    report(
        &figures,
        &setup,
        Work { seconds: start.elapsed().as_secs_f64(), threads: setup.threads.get() },
        common,
    )
}

fn report(figures: &[Figure], setup: &Setup, work: Work, common: &Common) -> Result<()> {
    let machine = Machine::new();
    let packages = if setup.peers.is_some() { Environment::packages() } else { Vec::new() };
    let mut text = format!(
        "{}, {} of {} cores ({}); medians of {} interleaved runs.",
        machine.processor,
        setup.threads,
        machine.cores,
        machine.flags.join(", "),
        setup.runs
    );
    if !packages.is_empty() {
        let _ = write!(text, " Peers: {}.", packages.join(", ").replace("==", " "));
    }
    text.push_str(
        "\n\n| job | ours | beside | ratio | goal | met | share of peak |\n|---|---|---|---|---|---|---|\n",
    );
    for figure in figures {
        text.push_str(&figure.line());
    }
    write(&common.out.join("speed.md"), &text)?;
    print!("{text}");
    if let Some(path) = &common.json {
        let results =
            json!({ "machine": machine, "peers": packages, "runs": setup.runs, "figures": figures });
        write_json(path, "speed", work, &results)?;
    }
    Ok(())
}

/// A number of rows for people: 412,276 or 10 M.
fn count(rows: u64) -> String {
    if rows >= 1_000_000 && rows.is_multiple_of(100_000) {
        return format!("{} M rows", rows as f64 / 1e6);
    }
    let digits = rows.to_string();
    let groups: Vec<&str> = digits
        .as_bytes()
        .rchunks(3)
        .rev()
        .map(|group| std::str::from_utf8(group).expect("digits are text"))
        .collect();
    format!("{} rows", groups.join(","))
}

/// What `convergence` took when it last wrote its JSON.
fn convergence(out: &Path) -> Figure {
    let name = "the paper's whole synthetic figure";
    let path = out.join("convergence.json");
    let recorded: Value =
        fs::read_to_string(path).ok().and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
    let command = recorded["command"].as_str().unwrap_or_default();
    match (recorded["seconds"].as_f64(), recorded["threads"].as_u64()) {
        (Some(seconds), Some(threads)) => {
            let ours = format!("{:.1} minutes on {threads} threads", seconds / 60.0);
            Figure::new(name, ours)
                .beside(format!("printed by `{command}`"))
                .goal("≤ 15 minutes on 2 threads", (threads == 2).then_some(seconds <= 900.0))
        }
        _ => Figure::new(name, "not recorded").beside(
            "recorded by `cargo run --release -p potluck-lab -- convergence --json results/convergence.json`",
        ),
    }
}
