//! Raw arguments.

use std::num::NonZero;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::noise::NoiseKind;

/// Reproduce every experiment of the paper, with our numbers beside the published ones.
#[derive(Parser)]
#[command(
    name = "potluck-lab",
    max_term_width = 110,
    after_help = "\
Examples:
  cargo run --release -p potluck-lab -- convergence --quick
  cargo run --release -p potluck-lab -- convergence --seeds 1000 --seeds-above 100
  cargo run --release -p potluck-lab -- real-data --data-dir tables

An interrupted run goes on where it stopped: results are kept in target/lab until the program changes."
)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(subcommand)]
    pub(crate) experiment: Experiment,
}

#[derive(Args)]
#[command(next_help_heading = "Common options")]
pub(crate) struct Common {
    /// A small version that takes seconds
    #[arg(long, global = true)]
    pub(crate) quick: bool,
    /// Number of repetitions [default: the paper's]
    #[arg(long, global = true, value_name = "N")]
    pub(crate) seeds: Option<usize>,
    /// Changes every random choice
    #[arg(long, global = true, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Per-seed values as JSON, with command and commit
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Folder for tables and figures
    #[arg(long, global = true, value_name = "DIR", default_value = "results")]
    pub(crate) out: PathBuf,
    /// Number of threads [default: all cores]
    #[arg(long, global = true, value_name = "N")]
    pub(crate) threads: Option<NonZero<usize>>,
    /// Draw noise with the exact sampler that releases use, instead of a fast stand-in
    #[arg(long, global = true)]
    pub(crate) exact_noise: bool,
    /// Forget what earlier runs found
    #[arg(long, global = true)]
    pub(crate) fresh: bool,
}

impl Common {
    pub(crate) fn noise(&self) -> NoiseKind {
        if self.exact_noise { NoiseKind::Exact } else { NoiseKind::Fast }
    }
}

#[derive(Subcommand)]
pub(crate) enum Experiment {
    /// The figure "convergence": P(‖ŵ−w*‖ > β) and E‖ŵ−w*‖ against n
    Convergence(Convergence),
    /// The figure "small eigenvalues": distance against the smallest absolute eigenvalue
    Eigenvalues(Eigenvalues),
    /// The table of test losses on real data
    RealData(RealData),
    /// Sparse against Bernoulli mixing at equal k
    Mixing,
}

#[derive(Args)]
pub(crate) struct Convergence {
    /// Table sizes n, separated by commas [default: the paper's six]
    #[arg(long, value_name = "N,…", value_delimiter = ',')]
    pub(crate) sizes: Option<Vec<usize>>,
    /// Number of repetitions for n above 300,000 [default: as --seeds]
    #[arg(long, value_name = "N")]
    pub(crate) seeds_above: Option<usize>,
}

#[derive(Args)]
pub(crate) struct Eigenvalues {
    /// Folder with insurance.csv; without it only the synthetic half runs
    #[arg(long, value_name = "DIR", env = "POTLUCK_DATA")]
    pub(crate) data_dir: Option<PathBuf>,
}

#[derive(Args)]
pub(crate) struct RealData {
    /// Folder with the tables; those that are not there are left out
    #[arg(long, value_name = "DIR", env = "POTLUCK_DATA")]
    pub(crate) data_dir: PathBuf,
    /// Datasets of your own, each described by a small TOML file; replaces the built-in ones
    #[arg(long, value_name = "FILE")]
    pub(crate) dataset: Vec<PathBuf>,
}
