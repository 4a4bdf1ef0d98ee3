//! Runs the cells of an experiment on all cores, with progress, and takes up where an earlier run
//! stopped.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, anyhow};
use indicatif::{ProgressBar, ProgressStyle};
use rayon::prelude::*;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::args::Common;

/// One piece of work that stands alone.
pub(crate) struct Task<C> {
    /// Names it in the journal; the same key means the same result.
    pub(crate) key: String,
    /// How long it takes, compared with others.
    pub(crate) cost: f64,
    pub(crate) cell: C,
}

/// What an experiment took: time on the clock in which its tasks were computed, summed over
/// interrupted runs.
#[derive(Clone, Copy, Default)]
pub(crate) struct Work {
    pub(crate) seconds: f64,
    pub(crate) threads: usize,
}

impl Work {
    pub(crate) fn and(self, other: Self) -> Self {
        Self { seconds: self.seconds + other.seconds, threads: self.threads.max(other.threads) }
    }
}

/// When a task began and ended, in seconds since 1970: a later run must be able to compare.
type Span = (f64, f64);

fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |time| time.as_secs_f64())
}

/// Length of the union of the spans.
fn covered(mut spans: Vec<Span>) -> f64 {
    spans.sort_by(|one, other| one.0.total_cmp(&other.0));
    let mut until = f64::NEG_INFINITY;
    let mut seconds = 0.0;
    for (start, end) in spans {
        seconds += (end - start.max(until)).max(0.0);
        until = until.max(end);
    }
    seconds
}

/// Does all tasks, in parallel; results come in the order of the tasks, whatever the number of
/// threads.
pub(crate) fn run<C, T>(
    experiment: &str,
    common: &Common,
    tasks: &[Task<C>],
    work: impl Fn(&C) -> Result<T> + Sync,
) -> Result<(Vec<T>, Work)>
where
    C: Sync,
    T: Serialize + DeserializeOwned + Send,
{
    let journal = Journal::open(experiment, common)?;
    let total: f64 = tasks.iter().map(|task| task.cost).sum();
    let bar = ProgressBar::new((total * 1000.0 / total.max(f64::MIN_POSITIVE)) as u64);
    bar.set_style(
        ProgressStyle::with_template("{msg:14} {wide_bar} {percent}%, {elapsed} gone, {eta} left")
            .expect("the template is valid"),
    );
    bar.set_message(experiment.to_owned());
    bar.enable_steady_tick(Duration::from_millis(500));
    let done = Mutex::new(0.0);
    let one = |task: &Task<C>| -> Result<(T, Span)> {
        let result = if let Some((value, span)) = journal.found(&task.key) {
            let result = serde_json::from_value(value.clone())
                .with_context(|| format!("the journal {} is damaged: delete it", journal.path.display()))?;
            (result, *span)
        } else {
            let start = now();
            let result = work(&task.cell).with_context(|| task.key.clone())?;
            let span = (start, now());
            journal.note(&task.key, &result, span)?;
            (result, span)
        };
        let mut done = done.lock().map_err(|_| anyhow!("another task failed"))?;
        *done += task.cost;
        bar.set_position((*done / total * 1000.0) as u64);
        Ok(result)
    };
    let mut pool = rayon::ThreadPoolBuilder::new();
    if let Some(threads) = common.threads {
        pool = pool.num_threads(threads.get());
    }
    let pool = pool.build()?;
    // Tasks are handed out one by one, so that a long one does not hold others back.
    let results: Result<Vec<(T, Span)>> =
        pool.install(|| tasks.par_iter().with_max_len(1).map(one).collect());
    bar.finish_and_clear();
    let (results, spans) = results?.into_iter().unzip();
    Ok((results, Work { seconds: covered(spans), threads: pool.current_num_threads() }))
}

/// What earlier runs with the same settings have found.
struct Journal {
    path: PathBuf,
    found: HashMap<String, (Value, Span)>,
    file: Mutex<File>,
}

impl Journal {
    fn open(experiment: &str, common: &Common) -> Result<Self> {
        let settings = json!({
            "seed": common.seed,
            "exact": common.exact_noise,
            "format": common.form().format.number(),
            "declares": common.form().declares,
            "version": env!("CARGO_PKG_VERSION"),
            "program": program_hash()?,
        });
        let hash: String =
            Sha256::digest(settings.to_string()).iter().take(8).map(|b| format!("{b:02x}")).collect();
        let path = Path::new("target/lab").join(format!("{experiment}-{hash}.jsonl"));
        fs::create_dir_all("target/lab")?;
        if common.fresh {
            // Nothing to remove is fine.
            let _ = fs::remove_file(&path);
        }
        let mut found = HashMap::new();
        if let Ok(file) = File::open(&path) {
            for line in BufReader::new(file).lines() {
                // The last line may be cut short.
                if let Ok((key, value, span)) = serde_json::from_str::<(String, Value, Span)>(&line?) {
                    found.insert(key, (value, span));
                }
            }
        }
        let mut file = OpenOptions::new().create(true).append(true).open(&path)?;
        writeln!(file)?;
        Ok(Self { path, found, file: Mutex::new(file) })
    }

    fn found(&self, key: &str) -> Option<&(Value, Span)> {
        self.found.get(key)
    }

    fn note(&self, key: &str, result: &impl Serialize, span: Span) -> Result<()> {
        let line = serde_json::to_string(&(key, result, span))?;
        let mut file = self.file.lock().map_err(|_| anyhow!("another task failed"))?;
        writeln!(file, "{line}")?;
        Ok(())
    }
}

/// A changed program starts over: what it found before may not be what it would find now.
fn program_hash() -> Result<String> {
    let program = fs::read(std::env::current_exe()?)?;
    Ok(Sha256::digest(program).iter().take(8).map(|b| format!("{b:02x}")).collect())
}

/// Writes the results of an experiment with the command and the commit they come from, and what
/// they took.
pub(crate) fn write_json(path: &Path, experiment: &str, work: Work, results: &Value) -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let value = json!({
        "experiment": experiment,
        "command": format!("cargo run --release -p potluck-lab -- {}", arguments.join(" ")),
        "commit": commit(),
        "seconds": work.seconds,
        "threads": work.threads,
        "results": results,
    });
    write(path, &(serde_json::to_string(&value)? + "\n"))
}

/// The results of an earlier run, as [`write_json`] wrote them, and what made them; none without a
/// file.
pub(crate) fn earlier_results<T: DeserializeOwned>(path: Option<&Path>) -> Result<(Vec<T>, String)> {
    #[derive(Deserialize)]
    struct Earlier<T> {
        command: String,
        commit: Option<String>,
        results: Vec<T>,
    }
    let Some(path) = path else { return Ok((Vec::new(), String::new())) };
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let earlier: Earlier<T> = serde_json::from_str(&text)
        .with_context(|| format!("{} is not the JSON of this experiment", path.display()))?;
    let source = format!("{}, commit {}", earlier.command, earlier.commit.as_deref().unwrap_or("unknown"));
    Ok((earlier.results, source))
}

/// Writes a result file, making its folder.
pub(crate) fn write(path: &Path, text: &str) -> Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

/// The commit that is checked out, with a mark if files were changed since.
fn commit() -> Option<String> {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let head = git(&["rev-parse", "HEAD"])?;
    let changed = git(&["status", "--porcelain", "--untracked-files=no"])?;
    Some(if changed.is_empty() { head } else { format!("{head} and changes") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_in_which_tasks_overlap_counts_once() {
        assert!((covered(vec![(5.0, 6.0), (0.0, 2.0), (1.0, 3.0), (1.0, 1.5)]) - 4.0).abs() < 1e-12);
    }
}
