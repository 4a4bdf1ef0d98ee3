//! Raw arguments.

use std::num::NonZero;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use potluck_release::study::Format;

use crate::holdings::Form;
use crate::noise::NoiseKind;
use crate::released::{Own, Release};
use crate::table::Privacy;

/// Reproduce every experiment of the paper, with our numbers beside the published ones, and measure
/// our own method.
#[derive(Parser)]
#[command(
    name = "potluck-lab",
    max_term_width = 110,
    after_help = "\
Examples:
  cargo run --release -p potluck-lab -- convergence --quick
  cargo run --release -p potluck-lab -- convergence --seeds 1000 --seeds-above 100
  cargo run --release -p potluck-lab -- convergence --methods calibrated --earlier results/convergence.json
  cargo run --release -p potluck-lab -- real-data --data-dir tables
  cargo run --release -p potluck-lab -- coverage --sizes 10000,100000 --epsilons 1 --kinds heavy
  cargo run --release -p potluck-lab -- robustness --data-dir tables --rows 20000
  cargo run --release -p potluck-lab -- bias --sizes 10000,1000000
  cargo run --release -p potluck-lab -- speed --json results/speed.json
  cargo run --release -p potluck-lab -- load --json results/load.json

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
    /// Number of repetitions [default: the paper's; 500 for coverage, 100 for robustness and bias,
    /// 5 for speed, 3 for growth]
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
    /// The form of studies of the calibrated method: format 1, or 2, or 2-undeclared, in which
    /// nothing is said of overlaps where everybody is everywhere [default: that of new studies]
    #[arg(long = "format", global = true, value_name = "FORM", value_parser = form)]
    pub(crate) form: Option<Form>,
    /// Forget what earlier runs found
    #[arg(long, global = true)]
    pub(crate) fresh: bool,
}

fn form(text: &str) -> Result<Form, String> {
    let (number, declares) = match text.strip_suffix("-undeclared") {
        Some(number) => (number, false),
        None => (text, true),
    };
    let format = number.parse().ok().and_then(Format::from_number);
    let form = format.map(|format| Form { method: Own::Calibrated, format, declares });
    form.ok_or_else(|| format!("write 1, {0} or {0}-undeclared", Format::NEWEST.number()))
}

impl Common {
    /// How the calibrated method releases.
    pub(crate) fn release(&self, privacy: Privacy) -> Release {
        Release { form: self.form(), privacy, noise: self.noise(), k: None }
    }

    /// The form of its studies.
    pub(crate) fn form(&self) -> Form {
        self.form.unwrap_or(Form { method: Own::Calibrated, format: Format::NEW, declares: true })
    }

    pub(crate) fn noise(&self) -> NoiseKind {
        if self.exact_noise { NoiseKind::Exact } else { NoiseKind::Fast }
    }

    /// The number of threads to use.
    pub(crate) fn threads(&self) -> NonZero<usize> {
        self.threads.or_else(|| std::thread::available_parallelism().ok()).unwrap_or(NonZero::<usize>::MIN)
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
    /// How often 95% intervals of the calibrated method hold the truth, on four kinds of data
    Coverage(Coverage),
    /// Parties that hold different people, and missing values: errors, what is kept of effects, and
    /// coverage
    Cohorts(Cohorts),
    /// Where intervals hold and where they do not: populations drawn at random, unkind ones among
    /// them
    Map(Map),
    /// The calibrated method on every table of a folder, with random parties and labels
    Robustness(Robustness),
    /// What clipping does to the coefficients of the calibrated method, against n
    Bias(Bias),
    /// What `potluck plan` predicts against what simulated releases give
    Planning(Planning),
    /// Logistic regression from releases beside maximum likelihood on the rows themselves
    Classification(Classification),
    /// Whether standard errors lie in the range that `potluck plan` forecasts, on every table of a
    /// folder and on populations drawn at random
    Forecast(Forecast),
    /// How long whole jobs take, beside other people's software in the same run
    Speed(Speed),
    /// Time and peak memory of whole jobs against n
    Growth(Growth),
    /// A hub under many readers and uploaders at once
    Load(Load),
    /// A hub in this process, for `load`
    #[command(hide = true)]
    HubServer {
        /// Its data folder
        data: PathBuf,
    },
    /// One job in this process, for `speed` and `growth`
    #[command(hide = true)]
    Job(OneJob),
}

#[derive(Args)]
pub(crate) struct Convergence {
    /// Table sizes n, separated by commas [default: the paper's six]
    #[arg(long, value_name = "N,…", value_delimiter = ',')]
    pub(crate) sizes: Option<Vec<usize>>,
    /// Number of repetitions for n above 300,000 [default: as --seeds]
    #[arg(long, value_name = "N")]
    pub(crate) seeds_above: Option<usize>,
    #[command(flatten)]
    pub(crate) selection: Selection,
}

/// Which methods to run.
#[derive(Args)]
pub(crate) struct Selection {
    /// Only methods whose name starts so, separated by commas; without RMGM no mixing by Bernoulli
    /// is computed
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    pub(crate) methods: Option<Vec<String>>,
    /// The JSON of an earlier run: methods that are not run are taken from it
    #[arg(long, value_name = "FILE")]
    pub(crate) earlier: Option<PathBuf>,
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
    #[command(flatten)]
    pub(crate) selection: Selection,
}

/// Which cells of an experiment on made-up data to run.
#[derive(Args)]
pub(crate) struct Cells {
    /// Table sizes n, separated by commas [default: powers of ten]
    #[arg(long, value_name = "N,…", value_delimiter = ',')]
    pub(crate) sizes: Option<Vec<usize>>,
    /// ε of each party, separated by commas [default: 1,0.3]
    #[arg(long, value_name = "E,…", value_delimiter = ',')]
    pub(crate) epsilons: Option<Vec<f64>>,
    /// Only kinds of data whose name starts so, separated by commas
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    pub(crate) kinds: Option<Vec<String>>,
    /// Number of repetitions for n from 1,000,000 on [default: a fifth of --seeds]
    #[arg(long, value_name = "N")]
    pub(crate) seeds_above: Option<usize>,
}

#[derive(Args)]
#[command(after_help = "\
Example:
  potluck-lab coverage --sizes 10000 --epsilons 1 --kinds correlated,heavy --seeds 100

Data are new in every repetition. The truth is the slopes of the best linear prediction in the population, \
after values are clipped to their public bounds.")]
pub(crate) struct Coverage {
    #[command(flatten)]
    pub(crate) cells: Cells,
    /// How parties release
    #[arg(long, value_enum, default_value_t = Own::Calibrated)]
    pub(crate) method: Own,
}

#[derive(Args)]
#[command(after_help = "\
Example:
  potluck-lab cohorts --cases overlap,mistyped --sizes 100000 --epsilons 1 --kinds strong --seeds 40

Data are new in every repetition. The truth is the slopes of the best linear prediction in the population. \
Every release is made in format 1 too where each party has one row for each of as many people.")]
pub(crate) struct Cohorts {
    #[command(flatten)]
    pub(crate) cells: Cells,
    /// Only cases whose name starts so, separated by commas
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    pub(crate) cases: Option<Vec<String>>,
}

#[derive(Args)]
#[command(after_help = "\
Example:
  potluck-lab map --populations 20 --sizes 10000,100000 --epsilons 1,0.3 --seeds 40 --seed 7

Another --seed draws other populations. The truth is least squares on the same rows.")]
pub(crate) struct Map {
    /// Number of populations of each temper [default: 24]
    #[arg(long, value_name = "N")]
    pub(crate) populations: Option<usize>,
    /// Table sizes n, separated by commas [default: 100000]
    #[arg(long, value_delimiter = ',', value_name = "N,…")]
    pub(crate) sizes: Option<Vec<usize>>,
    /// ε of each party, separated by commas [default: 1]
    #[arg(long, value_delimiter = ',', value_name = "E,…")]
    pub(crate) epsilons: Option<Vec<f64>>,
    /// Number of repetitions for n from 1,000,000 on [default: half of --seeds]
    #[arg(long, value_name = "N")]
    pub(crate) seeds_above: Option<usize>,
    /// How parties release
    #[arg(long, value_enum, default_value_t = Own::Calibrated)]
    pub(crate) method: Own,
}

#[derive(Args)]
#[command(after_help = "\
Example:
  potluck-lab bias --sizes 10000,100000 --epsilons 1 --seeds 20

Sizes of 10,000,000 take 1 GB of memory a thread.")]
pub(crate) struct Bias {
    #[command(flatten)]
    pub(crate) cells: Cells,
}

#[derive(Args)]
#[command(after_help = "\
Example:
  potluck-lab robustness --data-dir tables --seeds 20 --epsilons 1

Every .csv and .csv.gz in the folder is used. Numbers are bounded by their smallest and largest value, or ten \
times as loosely; text of at most 8 values is levels; constants, running numbers and other text are left out, \
and so are rows with a missing value.")]
pub(crate) struct Robustness {
    /// Folder with the tables
    #[arg(long, value_name = "DIR", env = "POTLUCK_DATA")]
    pub(crate) data_dir: PathBuf,
    /// Largest number of rows of a table that one repetition uses, chosen at random
    #[arg(long, value_name = "N", default_value_t = 50_000)]
    pub(crate) rows: usize,
    /// ε of each party, separated by commas [default: 1,0.3,0.1]
    #[arg(long, value_name = "E,…", value_delimiter = ',')]
    pub(crate) epsilons: Option<Vec<f64>>,
    /// Only tables whose file name starts so, separated by commas
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    pub(crate) tables: Option<Vec<String>>,
}

#[derive(Args)]
#[command(after_help = "\
Example:
  potluck-lab classification --sizes 100000 --epsilons 1 --kinds levels --seeds 20

Data are new in every repetition. Real tables get a yes/no label: whether a number is above its median, or above 0.")]
pub(crate) struct Classification {
    #[command(flatten)]
    pub(crate) cells: Cells,
    /// Folder with the tables; without it only made-up data are run
    #[arg(long, value_name = "DIR", env = "POTLUCK_DATA")]
    pub(crate) data_dir: Option<PathBuf>,
    /// Populations to try constants on, instead of those that are reported
    #[arg(long)]
    pub(crate) tuning: bool,
}

#[derive(Args)]
#[command(after_help = "\
Example:
  potluck-lab forecast --data-dir tables --seed 2 --seeds 10

Tables are read as in `robustness`, with bounds as tight as the values and ten times as loose. The constants \
of the forecast were chosen with --seed 1 and 3 and the tables bike_hour, diamonds and randhie; another \
--seed draws other populations, labels and dealings.")]
pub(crate) struct Forecast {
    /// Folder with the tables; without it only populations are released
    #[arg(long, value_name = "DIR", env = "POTLUCK_DATA")]
    pub(crate) data_dir: Option<PathBuf>,
    /// Only tables whose file name starts so, separated by commas
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    pub(crate) tables: Option<Vec<String>>,
    /// Number of populations of each temper, and of labels and dealings of each table
    #[arg(long, value_name = "N")]
    pub(crate) draws: Option<usize>,
    /// Sizes n of populations, separated by commas [default: 10000, 100000]
    #[arg(long, value_name = "N,…", value_delimiter = ',')]
    pub(crate) sizes: Option<Vec<usize>>,
    /// Largest number of rows of a table that one repetition uses, chosen at random
    #[arg(long, value_name = "N", default_value_t = 50_000)]
    pub(crate) rows: usize,
    /// ε of each party, separated by commas [default: 3,1,0.3]
    #[arg(long, value_name = "E,…", value_delimiter = ',')]
    pub(crate) epsilons: Option<Vec<f64>>,
}

#[derive(Args)]
pub(crate) struct Planning {
    /// Table sizes n, separated by commas [default: 10⁴, 10⁵, 10⁶]
    #[arg(long, value_name = "N,…", value_delimiter = ',')]
    pub(crate) sizes: Option<Vec<usize>>,
}

#[derive(Args)]
#[command(after_help = "\
Example:
  potluck-lab speed --json results/speed.json

Peers are Python packages; they are installed into target/lab/peers once, and beside them our own, built from here. Tables are made once and kept in target/lab.")]
pub(crate) struct Speed {
    /// Without other people's software: nothing is installed
    #[arg(long)]
    pub(crate) no_peers: bool,
    /// Rows of the table that whole jobs read [default: 10000000]
    #[arg(long, value_name = "N")]
    pub(crate) rows: Option<u64>,
    /// Delete the tables afterwards
    #[arg(long)]
    pub(crate) clean: bool,
}

#[derive(Args)]
#[command(after_help = "\
Example:
  potluck-lab growth --clean

The table of 100,000,000 rows needs up to 4 GB of disk while it is in use.")]
pub(crate) struct Growth {
    /// Table sizes n, separated by commas [default: 1000000,10000000,100000000]
    #[arg(long, value_name = "N,…", value_delimiter = ',')]
    pub(crate) sizes: Option<Vec<u64>>,
    /// Delete the tables afterwards
    #[arg(long)]
    pub(crate) clean: bool,
}

#[derive(Args)]
#[command(after_help = "\
Example:
  potluck-lab load --json results/load.json

The hub runs in a process of its own on this machine, and shares its cores with those who ask.")]
pub(crate) struct Load {
    /// How long everybody goes on asking [default: 60; 3 with --quick]
    #[arg(long)]
    pub(crate) seconds: Option<u64>,
    /// Readers at the same time [default: 200; 20 with --quick]
    #[arg(long, value_name = "N")]
    pub(crate) readers: Option<usize>,
    /// Parties at the same time that create studies, accept and upload [default: 20; 4 with
    /// --quick]
    #[arg(long, value_name = "N")]
    pub(crate) uploaders: Option<usize>,
}

/// What a party does with a table from start to end.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum JobKind {
    /// Decode the columns, nothing else
    Decode,
    /// The exact sums of sparse mixing
    Sparse,
    /// A calibrated release
    Release,
    /// The same of a table that is in memory
    Held,
}

#[derive(Args)]
pub(crate) struct OneJob {
    pub(crate) kind: JobKind,
    pub(crate) table: PathBuf,
    pub(crate) rows: u64,
    /// Where files of the job go
    #[arg(long)]
    pub(crate) folder: PathBuf,
}
