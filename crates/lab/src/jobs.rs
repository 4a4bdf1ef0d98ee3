//! Whole jobs of a party on a survey, each in a process of its own, so that its peak memory is its
//! own.

use std::fs::{self, File};
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use potluck_party::reading::ExtraColumns;
use potluck_party::release::Terms;
use potluck_party::{Access, Job, Ledger, LostValues, Reading, Resources, Table, audit, release};
use potluck_release::files::Existing;
use serde::{Deserialize, Serialize};

use crate::args::{Common, JobKind, OneJob};
use crate::survey::{ID, PARTY, Survey};

/// How a job went.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Ran {
    pub(crate) seconds: f64,
    /// The most memory that the process ever held.
    pub(crate) peak_bytes: u64,
    /// The exact sums, where the job is to write them.
    pub(crate) sums: Option<PathBuf>,
}

impl JobKind {
    /// Every job on a file, the quickest first.
    pub(crate) const ALL: [Self; 3] = [Self::Decode, Self::Sparse, Self::Release];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Decode => "decoding",
            Self::Sparse => "sparse pass",
            Self::Release => "calibrated release",
            Self::Held => "calibrated release of a table in memory",
        }
    }

    fn argument(self) -> &'static str {
        match self {
            Self::Decode => "decode",
            Self::Sparse => "sparse",
            Self::Release => "release",
            Self::Held => "held",
        }
    }

    /// Runs the job in a process of its own. Files go to `folder`.
    pub(crate) fn run(self, survey: &Survey, folder: &Path, threads: NonZero<usize>) -> Result<Ran> {
        let output = Command::new(std::env::current_exe()?)
            .args(["job", self.argument()])
            .arg(&survey.path)
            .args([&survey.rows.to_string(), "--threads", &threads.to_string(), "--folder"])
            .arg(folder)
            .output()?;
        if !output.status.success() {
            bail!("{} failed: {}", self.name(), String::from_utf8_lossy(&output.stderr).trim());
        }
        Ok(serde_json::from_slice(&output.stdout)?)
    }
}

/// The other end: does the job and prints how it went.
pub(crate) fn run(job: &OneJob, common: &Common) -> Result<()> {
    let survey = Survey { path: job.table.clone(), rows: job.rows };
    let threads = common.threads();
    let (seconds, sums) = match job.kind {
        JobKind::Decode => (decode(&survey, threads)?, None),
        JobKind::Sparse => {
            let (seconds, sums) = sparse(&survey, &job.folder, threads)?;
            (seconds, Some(sums))
        }
        JobKind::Release => {
            let open = |tmp: &Path| Ok(Table::open(&survey.path, tmp)?);
            (calibrated(&survey, open, &job.folder, threads)?, None)
        }
        JobKind::Held => {
            // As pyarrow would hold it: a batch a row group.
            let file = ParquetRecordBatchReaderBuilder::try_new(File::open(&survey.path)?)?;
            let table = Table::hold("survey", Box::new(file.with_batch_size(1 << 20).build()?), None)?;
            (calibrated(&survey, |_| Ok(table), &job.folder, threads)?, None)
        }
    };
    println!("{}", serde_json::to_string(&Ran { seconds, peak_bytes: peak_bytes()?, sums })?);
    Ok(())
}

fn decode(survey: &Survey, threads: NonZero<usize>) -> Result<f64> {
    let start = Instant::now();
    let table = Table::open(&survey.path, &std::env::temp_dir())?;
    let rows = table.decode(&Survey::column_names(), threads)?;
    let seconds = start.elapsed().as_secs_f64();
    ensure!(rows == survey.rows, "{rows} rows were decoded, not {}", survey.rows);
    Ok(seconds)
}

fn sparse(survey: &Survey, folder: &Path, threads: NonZero<usize>) -> Result<(f64, PathBuf)> {
    let study = survey.study("rmgm")?;
    let start = Instant::now();
    let access = access(folder, threads);
    let table = Table::open(&survey.path, folder)?;
    let reading = Reading { study: &study, party: PARTY, table: &table, access: &access };
    let sums = audit::write(&reading, &[], folder, Existing::Replace, &())?;
    Ok((start.elapsed().as_secs_f64(), sums))
}

/// How the survey is read.
fn access(tmp: &Path, threads: NonZero<usize>) -> Access {
    Access {
        id_column: ID.to_owned(),
        extra_columns: ExtraColumns::Refuse,
        resources: Resources::new(Some(threads), Some(tmp.to_owned())),
    }
}

/// From a new ledger to the published file.
fn calibrated(
    survey: &Survey,
    open: impl FnOnce(&Path) -> Result<Table>,
    folder: &Path,
    threads: NonZero<usize>,
) -> Result<f64> {
    let study = survey.study("calibrated")?;
    let state = tempfile::tempdir_in(folder)?;
    let definition = study.definition();
    let start = Instant::now();
    let mut ledger = Ledger::open_or_create(&state.path().join("ledger.sqlite"))?;
    ledger.set_budget("survey", definition.epsilon(), definition.delta())?;
    let job = Job {
        terms: Terms {
            study: &study,
            party: PARTY,
            budget: "survey",
            out: &state.path().join("release.parquet"),
            existing: Existing::Keep,
            signing_key: None,
            lost_values: LostValues::Refuse,
        },
        table: &open(state.path())?,
        access: access(state.path(), threads),
    };
    release(&job, &mut ledger, &())?;
    Ok(start.elapsed().as_secs_f64())
}

/// Peak resident memory of this process, as Linux counts it.
fn peak_bytes() -> Result<u64> {
    peak_bytes_of("/proc/self/status")
}

/// Peak resident memory of the process with this status file.
pub(crate) fn peak_bytes_of(status: &str) -> Result<u64> {
    let status = fs::read_to_string(status).context("peak memory is measured on Linux only")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.trim().trim_end_matches("kB").trim().parse::<u64>().ok());
    Ok(kib.context("the status of a process has no VmHWM")? * 1024)
}
