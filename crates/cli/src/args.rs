//! Raw arguments, as people type them.

pub(crate) mod hub;
pub(crate) mod party;
mod size;

use std::num::NonZero;
use std::path::PathBuf;

use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use potluck_party::postgres::Address;
use potluck_party::sql::Dialect;
use potluck_release::model::{Kind, Learner};
use potluck_simulation::RELEASES;
use zeroize::Zeroizing;

use hub::HubCommand;
use party::PartyCommand;

/// Publish differentially private, randomly mixed columns; join them; fit linear regressions.
///
/// Organisations that hold different columns about the same people each publish, on their own and
/// once, a version of their columns that protects every person. Anyone can join what was published
/// and regress any column on any others.
#[derive(Parser)]
#[command(
    name = "potluck",
    version,
    max_term_width = 110,
    after_help = "\
Examples:
  potluck demo --out demo                            see the whole path on made-up data
  potluck study new --header clinic.csv > study.toml start a study
  potluck plan study.toml                            what it promises, before anyone touches data
  potluck release study.toml --party clinic --data clinic.csv --out clinic.release.parquet
  potluck join study.toml *.release.parquet --out public.parquet
  potluck fit public.parquet --label pressure --report report.html

Exit codes: 0 done; 1 a defect of potluck; 2 wrong usage; 3 bad input; 4 budget refused; 5 integrity or signature failure; 6 remote failure."
)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Args)]
#[command(next_help_heading = "Common options")]
pub(crate) struct Common {
    /// Print results as JSON, for machines
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Replace files that exist already
    #[arg(long, global = true)]
    pub(crate) force: bool,
    /// Number of threads [default: all cores]
    #[arg(long, global = true, value_name = "N")]
    pub(crate) threads: Option<NonZero<usize>>,
    /// Folder for temporary files, which hold private data while they last [default: the system's]
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) tmp_dir: Option<PathBuf>,
    /// Memory that may hold decoded columns between the passes of a release, such as 4GB; 0 reads
    /// the table in every pass [default: a quarter of what is available]
    #[arg(long, global = true, value_name = "SIZE", value_parser = size::bytes)]
    pub(crate) memory: Option<u64>,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// See the whole path on made-up data: three clinics release, join and fit
    Demo(Demo),
    /// Write, check and seal a study: the public contract between parties
    #[command(subcommand)]
    Study(StudyCommand),
    /// Make a key to sign releases with
    #[command(subcommand)]
    Key(KeyCommand),
    /// Show what a study promises and costs, from public facts only
    Plan(Plan),
    /// Try a study on made-up data in its shape, before anyone spends budget
    Simulate(Simulate),
    /// Look at what a study's rules make of the ids of a party's table, for your own eyes
    Ids(Ids),
    /// Look at a party's table before a release: everything that one would refuse, for your own
    /// eyes
    Validate(Validate),
    /// Publish a party's columns
    Release(Release),
    /// Print the query of a release's next stage, for a table in a database
    Sql(Sql),
    /// Compute a stage's exact sums, for an audit inside the party (a private file)
    Sums(Sums),
    /// Lay the releases of a study side by side
    Join(Join),
    /// Fit a linear or logistic regression on a public dataset
    Fit(Fit),
    /// Show how columns of a public dataset go together
    Correlate(Correlate),
    /// Predict with a model; CSV on stdout
    Predict(Predict),
    /// Describe a study, release, public dataset, model or event log
    Inspect(Inspect),
    /// Check hashes, signatures and consistency of published files
    Verify(Verify),
    /// Set and show privacy budgets
    #[command(subcommand)]
    Ledger(LedgerCommand),
    /// Run a hub, where parties in different organisations meet; create studies there, get public
    /// datasets
    #[command(subcommand)]
    Hub(HubCommand),
    /// Take part in a study at a hub: accept it, release, see how far it is
    #[command(subcommand)]
    Party(PartyCommand),
    /// Print a completion script for a shell
    #[command(
        after_help = "Example:\n  potluck completions bash > ~/.local/share/bash-completion/completions/potluck"
    )]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Write the manual pages into a folder
    #[command(after_help = "Example:\n  potluck manual ~/.local/share/man/man1 && man potluck-fit")]
    Manual {
        /// The folder; made if it does not exist
        #[arg(value_name = "DIR")]
        folder: PathBuf,
    },
}

#[derive(Args)]
#[command(after_help = "Example:\n  potluck demo --out demo && open demo/report.html")]
pub(crate) struct Demo {
    /// Folder to write everything to; made if it does not exist
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// Number of made-up patients
    #[arg(long, default_value_t = 500_000, value_parser = clap::value_parser!(u64).range(100..=50_000_000))]
    pub(crate) rows: u64,
    /// ε of each clinic's release
    #[arg(long, default_value_t = 1.0, allow_negative_numbers = true)]
    pub(crate) epsilon: f64,
    /// δ of each clinic's release
    #[arg(long, default_value_t = 1e-6, allow_negative_numbers = true)]
    pub(crate) delta: f64,
}

#[derive(Subcommand)]
pub(crate) enum StudyCommand {
    /// Print a new study to fill in
    #[command(after_help = "\
Examples:
  potluck study new > study.toml
  potluck study new --header north.csv --header south.parquet --rows 200000 > study.toml

A --header file gives column names only, never values: bounds and levels must come from public knowledge.

A study is public, and a CSV file without a header line begins with a person. So its first line is
shown and asked about; where nobody can be asked, look at it and pass --yes-header. Parquet and
Arrow files name their columns themselves.

To add parties to a sealed study, write one with the new parties only and, under [study], the id of
the sealed one as `extends`; then: potluck study seal --base.")]
    New(StudyNew),
    /// Check a study without sealing it
    #[command(after_help = "\
Examples:
  potluck study check study.toml
  potluck study check later.toml --base study.sealed.toml")]
    Check {
        /// The study
        #[arg(value_name = "STUDY")]
        study: PathBuf,
        #[command(flatten)]
        base: BaseArgument,
    },
    /// Fix the mixing key and every number that follows from the study
    #[command(after_help = "\
Examples:
  potluck study seal study.toml --out study.sealed.toml
  potluck study seal later.toml --base study.sealed.toml --out later.sealed.toml

Without --out the file itself is sealed. Give the sealed file to every party; its id must be the same everywhere.

A study that extends another takes key, k and shares from it, so that all releases can be joined.
For a person in all of them, every party added makes the joint guarantee weaker.")]
    Seal {
        /// The study
        #[arg(value_name = "STUDY")]
        study: PathBuf,
        #[command(flatten)]
        base: BaseArgument,
        /// Where the sealed study goes [default: the same file]
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
}

/// What an unsealed study extends; a sealed one holds it.
#[derive(Args)]
pub(crate) struct BaseArgument {
    /// The sealed study that this one extends, while this one is not sealed
    #[arg(long, value_name = "FILE")]
    pub(crate) base: Option<PathBuf>,
}

#[derive(Args)]
pub(crate) struct StudyNew {
    /// A party's table, for its column names; the file's name becomes the party's
    #[arg(long, value_name = "FILE")]
    pub(crate) header: Vec<PathBuf>,
    /// The first lines of these CSV files hold names, not a person's values: do not ask
    #[arg(long, requires = "header")]
    pub(crate) yes_header: bool,
    /// The column that holds ids in these tables
    #[arg(long, default_value = "id", value_name = "COL")]
    pub(crate) id: String,
    /// Name of the study
    #[arg(long, default_value = "my-study")]
    pub(crate) name: String,
    /// Number of subjects
    #[arg(long, default_value_t = 100_000)]
    pub(crate) rows: u64,
    /// Format of the study: in 1 all parties hold the same people, in 2 they may hold different
    /// ones, with values missing [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=2))]
    pub(crate) format: Option<u64>,
    /// ε of each party's release
    #[arg(long, default_value_t = 1.0, allow_negative_numbers = true)]
    pub(crate) epsilon: f64,
    /// δ of each party's release
    #[arg(long, default_value_t = 1e-6, allow_negative_numbers = true)]
    pub(crate) delta: f64,
    /// Where the study goes [default: stdout]
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}

#[derive(Subcommand)]
pub(crate) enum KeyCommand {
    /// Make an Ed25519 key pair: FILE (private, mode 0600) and FILE.pub
    #[command(after_help = "Example:\n  potluck key new --out north.key")]
    New {
        /// Where the private key goes; the public key goes beside it, with .pub behind
        #[arg(long, value_name = "FILE")]
        out: PathBuf,
    },
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  potluck plan study.toml --json | jq .joint
  potluck plan study.toml --overlap 0.6
  potluck plan study.toml --label pressure --effect 0.05 --plot people.svg
  potluck plan later.toml --base study.sealed.toml")]
pub(crate) struct Plan {
    /// The study, sealed or not
    #[arg(value_name = "STUDY")]
    pub(crate) study: PathBuf,
    /// The label of the regression to forecast [default: any column]
    #[arg(long, value_name = "COL")]
    pub(crate) label: Option<String>,
    /// The size of an effect to count people for, in standard deviations of the label for one of
    /// the feature
    #[arg(long, value_name = "SIZE", default_value_t = potluck_release::forecast::USUAL_EFFECT, allow_negative_numbers = true)]
    pub(crate) effect: f64,
    /// Write a plot of how many people it takes, as SVG
    #[arg(long, value_name = "FILE")]
    pub(crate) plot: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) base: BaseArgument,
    /// Which share of the smaller one's people any two parties have in common, from 0 to 1, as far
    /// as you can guess [default: what the study declares, all of them where it declares nothing]
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub(crate) overlap: Option<f64>,
}

/// Who releases under which study.
#[derive(Args)]
pub(crate) struct PartyArguments {
    /// The sealed study
    #[arg(value_name = "STUDY")]
    pub(crate) study: PathBuf,
    /// Which party of the study you are
    #[arg(long = "party", value_name = "NAME")]
    pub(crate) name: String,
}

/// Where a party's table is.
#[derive(Clone)]
pub(crate) enum Data {
    /// A file; `-` is standard input.
    File(PathBuf),
    /// What is meant as the address of a database. It may hold a password by mistake, so it is not
    /// looked at here, where a message would show it.
    Address(Zeroizing<String>),
}

impl Data {
    fn parser() -> impl TypedValueParser<Value = Self> {
        OsStringValueParser::new().map(|given| match given.to_str() {
            Some(text) if Address::is_meant(text) => Self::Address(text.to_owned().into()),
            _ => Self::File(given.into()),
        })
    }

    /// The file, if it is one.
    pub(crate) fn file(&self) -> Option<&PathBuf> {
        match self {
            Self::File(path) => Some(path),
            Self::Address(_) => None,
        }
    }
}

/// How to read a party's table.
#[derive(Args)]
pub(crate) struct TableArguments {
    #[command(flatten)]
    pub(crate) party: PartyArguments,
    /// Your table: CSV (also gzipped), Parquet or Arrow IPC; `-` reads standard input; or the
    /// address of a PostgreSQL database, `postgresql://HOST/NAME`, whose rows psql brings here
    #[arg(long, value_name = "FILE", value_parser = Data::parser())]
    pub(crate) data: Data,
    /// The table or view in the database that --data names: `table`, `schema.table` or
    /// `catalog.schema.table`
    #[arg(long, value_name = "TABLE")]
    pub(crate) table: Option<String>,
    /// The column that holds ids
    #[arg(long, default_value = "id", value_name = "COL")]
    pub(crate) id: String,
    /// Leave columns alone that the study does not name
    #[arg(long)]
    pub(crate) ignore_extra: bool,
}

/// What a release is refused for unless people say that they mean it.
#[derive(Args)]
pub(crate) struct AcceptArguments {
    /// Publish even if the plan says that predicting the mean would do as well as a regression
    #[arg(long = "accept-low-accuracy")]
    pub(crate) low_accuracy: bool,
    /// Publish even if most values of a column are missing or outside of its bounds
    #[arg(long = "accept-lost-values")]
    pub(crate) lost_values: bool,
}

/// Which ledger.
#[derive(Args)]
pub(crate) struct LedgerArguments {
    /// The ledger [default: potluck/ledger.sqlite in the user's data folder]
    #[arg(long, value_name = "FILE", env = "POTLUCK_LEDGER")]
    pub(crate) ledger: Option<PathBuf>,
}

/// Which budget of which ledger.
#[derive(Args)]
pub(crate) struct BudgetArguments {
    #[command(flatten)]
    pub(crate) ledger: LedgerArguments,
    /// The budget that is charged [default: the only one in the ledger]
    #[arg(long, value_name = "NAME")]
    pub(crate) budget: Option<String>,
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  potluck release study.toml --party north --data patients.csv --out north.release.parquet
  gunzip -c patients.csv.gz | potluck release study.toml --party north --data - --out north.release.parquet --yes
  potluck release study.toml --party north --data postgresql://db/clinic --table patients --out north.release.parquet
  potluck release study.toml --party north --sums sums.csv --state north.state --out north.release.parquet

From PostgreSQL rows come through psql (on the path, with ~/.pgpass, service files and PG variables as it reads them), in one snapshot, and are held in memory within --memory, beyond that in an unnamed private file. Columns that the study does not name stay there.

With --sums, a release from a table that stays in its database: hand in the result of each query that `potluck sql` prints; the last one writes the release.

A release is charged once. Run the same command again after a crash: it goes on where it stopped, with the same noise.")]
pub(crate) struct Release {
    #[command(flatten)]
    pub(crate) party: PartyArguments,
    /// Your table: CSV (also gzipped), Parquet or Arrow IPC; `-` reads standard input; or the
    /// address of a PostgreSQL database, `postgresql://HOST/NAME`, whose rows psql brings here
    #[arg(long, value_name = "FILE", value_parser = Data::parser(), required_unless_present = "state", conflicts_with = "state")]
    pub(crate) data: Option<Data>,
    /// The table or view in the database that --data names: `table`, `schema.table` or
    /// `catalog.schema.table`
    #[arg(long, value_name = "TABLE", requires = "data")]
    pub(crate) table: Option<String>,
    /// The result of the query that `potluck sql` printed: CSV with a header line, or Parquet
    /// (private)
    #[arg(long, value_name = "FILE", requires = "state")]
    pub(crate) sums: Option<PathBuf>,
    /// The folder that was given to `potluck sql`; without --sums, only writes a release whose
    /// stages are all stored
    #[arg(long, value_name = "DIR")]
    pub(crate) state: Option<PathBuf>,
    /// The column that holds ids
    #[arg(long, default_value = "id", value_name = "COL", conflicts_with = "state")]
    pub(crate) id: String,
    /// Leave columns alone that the study does not name
    #[arg(long, conflicts_with = "state")]
    pub(crate) ignore_extra: bool,
    #[command(flatten)]
    pub(crate) charged: BudgetArguments,
    /// Where the release goes
    #[arg(long, value_name = "FILE")]
    pub(crate) out: PathBuf,
    /// Sign with this key (from `potluck key new`)
    #[arg(long, value_name = "FILE")]
    pub(crate) signing_key: Option<PathBuf>,
    /// Do not ask before publishing
    #[arg(long)]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) accepted: AcceptArguments,
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  potluck simulate study.toml --label pressure
  potluck simulate study.toml --rows 100000 --releases 50 --report preview.html

People are made up from public facts: bell-shaped columns well inside their bounds, levels equally frequent, and a label
that all features together explain in part. No private data is read and nothing is charged.")]
pub(crate) struct Simulate {
    /// The study, sealed or not
    pub(crate) study: PathBuf,
    #[command(flatten)]
    pub(crate) base: BaseArgument,
    /// The label: a numeric column or one with two levels [default: the last such column]
    #[arg(long, value_name = "COLUMN")]
    pub(crate) label: Option<String>,
    /// Number of releases
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(i64::from(*RELEASES.start())..=i64::from(*RELEASES.end())))]
    pub(crate) releases: u32,
    /// Number of made-up people [default: the study's]
    #[arg(long, value_name = "N")]
    pub(crate) rows: Option<u64>,
    /// Share of the label that all features together explain
    #[arg(long, value_name = "SHARE", default_value_t = potluck_core::planning::TYPICAL_SIGNAL)]
    pub(crate) signal: f64,
    /// Correlation between any two features
    #[arg(long, value_name = "R", default_value_t = 0.0)]
    pub(crate) correlation: f64,
    /// Share of its people that a party has in common with another of the same size, in a study of
    /// format 2 [default: what the study declares, all of them where it declares nothing]
    #[arg(long, value_name = "SHARE")]
    pub(crate) overlap: Option<f64>,
    /// Share of the values that are missing, of columns that the study says may miss (format 2)
    #[arg(long, value_name = "SHARE", default_value_t = 0.0)]
    pub(crate) missing: f64,
    /// Changes every random choice
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Write a page with a plot: one self-contained HTML file
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum DialectArgument {
    /// PostgreSQL, from version 12 on
    Postgres,
    /// DuckDB, from version 1 on
    Duckdb,
    /// Spark SQL, from version 3.4 on
    Spark,
}

impl From<DialectArgument> for Dialect {
    fn from(dialect: DialectArgument) -> Self {
        match dialect {
            DialectArgument::Postgres => Self::Postgres,
            DialectArgument::Duckdb => Self::DuckDb,
            DialectArgument::Spark => Self::Spark,
        }
    }
}

#[derive(Args)]
#[command(after_help = "\
Example, a round for each stage until the release is written:
  potluck sql study.toml --party north --table clinic.patients --dialect postgres --state north.state > query.sql
  psql --csv --file query.sql > sums.csv
  potluck release study.toml --party north --sums sums.csv --state north.state --out north.release.parquet

The query computes exact sums and nothing else; they are as private as the table, and noise is added when they are handed in. Nothing is charged by printing a query. Names are taken as they stand, capitals included; a name with a dot in it stands in double quotes. Views work like tables: cast a column there if its type is refused.")]
pub(crate) struct Sql {
    #[command(flatten)]
    pub(crate) party: PartyArguments,
    /// The table or view in the database: `table`, `schema.table` or `catalog.schema.table`
    /// [default: as before]
    #[arg(long, value_name = "TABLE", requires = "dialect")]
    pub(crate) table: Option<String>,
    /// Whose SQL to write [default: as before]
    #[arg(long, value_enum, requires = "table")]
    pub(crate) dialect: Option<DialectArgument>,
    /// Folder that remembers where table and ledger are; made if it does not exist
    #[arg(long, value_name = "DIR")]
    pub(crate) state: PathBuf,
    /// The column that holds ids [default: id; for positions, a column must be named]
    #[arg(long, value_name = "COL", requires = "table")]
    pub(crate) id: Option<String>,
    /// A column with bounds that is stored as a boolean, may be repeated
    #[arg(long, value_name = "COL", requires = "table")]
    pub(crate) boolean: Vec<String>,
    /// A column with bounds that is stored as a date, may be repeated
    #[arg(long, value_name = "COL", requires = "table")]
    pub(crate) date: Vec<String>,
    #[command(flatten)]
    pub(crate) charged: BudgetArguments,
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  potluck validate study.toml --party north --data patients.csv
  potluck validate study.toml --party north --data patients.csv --show-values

A table in a database: print the query, run it, and look at what it gave:
  potluck validate study.toml --party north --table clinic.patients --dialect postgres > check.sql
  psql --csv --file check.sql > counts.csv
  potluck validate study.toml --party north --table clinic.patients --dialect postgres --counts counts.csv

What is printed is private: counts of your table, for your own screen. Nothing is charged, and nothing is written to any file, log or ledger. The exit code is 3 if a release would be refused.")]
pub(crate) struct Validate {
    #[command(flatten)]
    pub(crate) party: PartyArguments,
    #[command(flatten)]
    pub(crate) base: BaseArgument,
    /// Your table: CSV (also gzipped), Parquet or Arrow IPC; `-` reads standard input; or the
    /// address of a PostgreSQL database, `postgresql://HOST/NAME`, whose rows psql brings here
    #[arg(long, value_name = "FILE", value_parser = Data::parser(), required_unless_present = "table", conflicts_with = "dialect")]
    pub(crate) data: Option<Data>,
    /// The column that holds ids [default: id]
    #[arg(long, value_name = "COL")]
    pub(crate) id: Option<String>,
    /// Leave columns alone that the study does not name
    #[arg(long, conflicts_with = "dialect")]
    pub(crate) ignore_extra: bool,
    /// Show undeclared levels themselves, not only how many values have one
    #[arg(long, conflicts_with = "dialect")]
    pub(crate) show_values: bool,
    /// The table or view in a database: `table`, `schema.table` or `catalog.schema.table`
    #[arg(long, value_name = "TABLE")]
    pub(crate) table: Option<String>,
    /// Whose SQL to write, for a query that counts in the database
    #[arg(long, value_enum, requires = "table")]
    pub(crate) dialect: Option<DialectArgument>,
    /// What the query gave: CSV with a header line, or Parquet (private)
    #[arg(long, value_name = "FILE", requires = "dialect")]
    pub(crate) counts: Option<PathBuf>,
    /// A column with bounds that is stored as a boolean, may be repeated
    #[arg(long, value_name = "COL", requires = "dialect")]
    pub(crate) boolean: Vec<String>,
    /// A column with bounds that is stored as a date, may be repeated
    #[arg(long, value_name = "COL", requires = "dialect")]
    pub(crate) date: Vec<String>,
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  potluck ids study.toml --party north --data patients.csv
  potluck ids study.toml --party north --data patients.csv --show 0

What is printed is private: ids of your table, for your own screen; --show 0 prints counts alone. Nothing is charged, and nothing is written to any file, log or ledger. Read a few of them to the stewards of the other parties: what the rules make of the same person must be the same everywhere. The exit code is 3 if ids collide or are missing.")]
pub(crate) struct Ids {
    #[command(flatten)]
    pub(crate) party: PartyArguments,
    #[command(flatten)]
    pub(crate) base: BaseArgument,
    /// Your table: CSV (also gzipped), Parquet or Arrow IPC
    #[arg(long, value_name = "FILE")]
    pub(crate) data: PathBuf,
    /// The column that holds ids, unless the study names them [default: id]
    #[arg(long, value_name = "COL")]
    pub(crate) id: Option<String>,
    /// How many ids to show, and how many that collide
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub(crate) show: usize,
}

#[derive(Args)]
#[command(after_help = "\
Example:
  potluck sums study.toml --party north --data patients.csv --state audit
  potluck sums study.toml --party north --data patients.csv --state audit --release north.release.parquet --stage 3

The file is as private as the table: never publish it. Nothing is charged.")]
pub(crate) struct Sums {
    #[command(flatten)]
    pub(crate) table: TableArguments,
    /// Folder for the private file; made if it does not exist
    #[arg(long, value_name = "DIR")]
    pub(crate) state: PathBuf,
    /// The party's release, for stages after the first: they are encoded with what earlier stages
    /// published
    #[arg(long, value_name = "FILE")]
    pub(crate) release: Option<PathBuf>,
    /// Which stage of the release, from 1 [default: the last]
    #[arg(long, value_name = "N", requires = "release")]
    pub(crate) stage: Option<u32>,
}

#[derive(Args)]
#[command(
    after_help = "Example:\n  potluck join study.toml north.release.parquet south.release.parquet --out public.parquet"
)]
pub(crate) struct Join {
    /// The sealed study
    #[arg(value_name = "STUDY")]
    pub(crate) study: PathBuf,
    /// One release a party
    #[arg(value_name = "RELEASE", required = true)]
    pub(crate) releases: Vec<PathBuf>,
    /// Where the public dataset goes
    #[arg(long, value_name = "FILE")]
    pub(crate) out: PathBuf,
    /// Join what there is, even if parties are missing
    #[arg(long)]
    pub(crate) partial: bool,
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum LearnerArgument {
    /// Every covariance by its posterior mean, given what is known of noise and mixing: stable and
    /// the most accurate
    Posterior,
    /// Least squares with the known noise variance subtracted: unbiased, unstable if noise
    /// dominates
    Debiased,
    /// Least squares on the released rows as they are: stable, attenuated by the noise (the paper's
    /// RMGM-OLS and BGM-OLS)
    Ols,
}

impl From<LearnerArgument> for Learner {
    fn from(learner: LearnerArgument) -> Self {
        match learner {
            LearnerArgument::Posterior => Self::Posterior,
            LearnerArgument::Debiased => Self::Debiased,
            LearnerArgument::Ols => Self::Ols,
        }
    }
}

/// What is regressed, as an argument.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum KindArgument {
    /// The label itself
    Linear,
    /// The log odds of a label with two levels, or of `column=level`: odds ratios and probabilities
    Logistic,
}

impl From<KindArgument> for Kind {
    fn from(kind: KindArgument) -> Self {
        match kind {
            KindArgument::Linear => Self::Linear,
            KindArgument::Logistic => Self::Logistic,
        }
    }
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  potluck fit public.parquet --label pressure
  potluck fit public.parquet --label stroke=yes --model logistic
  potluck fit public.parquet --label pressure --features age,bmi,smoker --report report.html --out model.json
  potluck fit public.parquet --label region=north --learner ols --json")]
pub(crate) struct Fit {
    /// The public dataset
    #[arg(value_name = "DATASET")]
    pub(crate) dataset: PathBuf,
    /// The column to explain: numeric, with two levels, or `column=level`
    #[arg(long, value_name = "COL")]
    pub(crate) label: String,
    /// The columns to explain it with, separated by commas [default: all others]
    #[arg(long, value_name = "COL,…", value_delimiter = ',')]
    pub(crate) features: Option<Vec<String>>,
    /// One column to explain it with, may be repeated; for names with commas
    #[arg(long, value_name = "COL", conflicts_with = "features")]
    pub(crate) feature: Vec<String>,
    /// What to regress
    #[arg(long, value_enum, default_value_t = KindArgument::Linear)]
    pub(crate) model: KindArgument,
    /// How to learn
    #[arg(long, value_enum, default_value_t = LearnerArgument::Posterior)]
    pub(crate) learner: LearnerArgument,
    /// λ added to the diagonal of the moment matrix, by the learners ols and debiased
    #[arg(long, default_value_t = potluck_release::fit::DEFAULT_RIDGE, allow_negative_numbers = true)]
    pub(crate) ridge: f64,
    /// Level of the intervals
    #[arg(long, default_value_t = 0.95, allow_negative_numbers = true)]
    pub(crate) level: f64,
    /// Write a report: one self-contained HTML file
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
    /// Write the model
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  potluck correlate public.parquet
  potluck correlate public.parquet --columns pressure,salt --given age,bmi
  potluck correlate public.parquet --together --report correlations.html --json")]
pub(crate) struct Correlate {
    /// The public dataset
    #[arg(value_name = "DATASET")]
    pub(crate) dataset: PathBuf,
    /// The columns, separated by commas [default: all]
    #[arg(long, value_name = "COL,…", value_delimiter = ',')]
    pub(crate) columns: Option<Vec<String>>,
    /// One column, may be repeated; for names with commas
    #[arg(long, value_name = "COL", conflicts_with = "columns")]
    pub(crate) column: Vec<String>,
    /// Columns to hold fixed, separated by commas: partial correlations
    #[arg(long, value_name = "COL,…", value_delimiter = ',')]
    pub(crate) given: Vec<String>,
    /// Level of the intervals
    #[arg(long, default_value_t = 0.95, allow_negative_numbers = true)]
    pub(crate) level: f64,
    /// Widen the intervals so that all of them hold together at the level (Bonferroni)
    #[arg(long)]
    pub(crate) together: bool,
    /// Write a report with a picture: one self-contained HTML file
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
}

#[derive(Args)]
#[command(
    after_help = "Examples:\n  potluck predict model.json --data new.csv --id patient > predictions.csv\n  potluck predict model.json --data new.csv --id patient --interval 0.95\n\nAn interval holds the label of a new person with this probability, if what predictions miss is bell-shaped; \\\nit is as wide for everybody. Shares that a linear regression of a level predicts have none; probabilities of a logistic \
regression always have one, for the share of people like this one, at the model's level unless another is given."
)]
pub(crate) struct Predict {
    /// The model, from `potluck fit --out`
    #[arg(value_name = "MODEL")]
    pub(crate) model: PathBuf,
    /// A table with the model's features; `-` reads standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) data: PathBuf,
    /// A column to carry over beside the prediction
    #[arg(long, value_name = "COL")]
    pub(crate) id: Option<String>,
    /// Add the ends of intervals of this level, such as 0.95; those of probabilities come unasked
    #[arg(long, value_name = "LEVEL", allow_negative_numbers = true)]
    pub(crate) interval: Option<f64>,
}

#[derive(Args)]
#[command(after_help = "Example:\n  potluck inspect public.parquet")]
pub(crate) struct Inspect {
    /// A study, release, public dataset, model or event log
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  potluck verify public.parquet --key north=north.key.pub --key south=south.key.pub
  potluck verify events.jsonl public.parquet --head HASH
  potluck verify events.jsonl events.*.jsonl public.parquet      of a study that extends others

With event logs (from `potluck hub get --events`) the other files are checked against them: the
same study, signed with the keys that the parties registered, and published as they are. A study that
extends others needs the logs of all, since each party is in the log of the study that it released
under. --head is the hash of an event that you saw earlier: the log must go on from there.")]
pub(crate) struct Verify {
    /// Studies, releases, public datasets, and event logs, one a study
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// The public key a party's release must be signed with
    #[arg(long = "key", value_name = "PARTY=FILE")]
    pub(crate) keys: Vec<String>,
    /// An event that a log must hold, by its hash
    #[arg(long = "head", value_name = "HASH")]
    pub(crate) heads: Vec<String>,
}

#[derive(Subcommand)]
pub(crate) enum LedgerCommand {
    /// Set a budget, once
    #[command(after_help = "\
Example:
  potluck ledger init --budget patients --epsilon 2 --delta 1e-6

Everything ever charged to the budget stays within this (ε, δ). Charge all releases from one table to one budget, and name the budget after what the table holds, not after a file.")]
    Init {
        #[command(flatten)]
        ledger: LedgerArguments,
        /// What the budget is called
        #[arg(long, value_name = "NAME")]
        budget: String,
        /// ε of everything ever charged to it
        #[arg(long, allow_negative_numbers = true)]
        epsilon: f64,
        /// δ of everything ever charged to it
        #[arg(long, allow_negative_numbers = true)]
        delta: f64,
    },
    /// Raise a budget: weaken the promise to everyone in the table, past releases included
    #[command(after_help = "\
Example:
  potluck ledger raise --budget patients --epsilon 3 --delta 1e-6

It says what the new budget means, asks, and is recorded. A budget is never lowered: what was released under it stays released.")]
    Raise {
        #[command(flatten)]
        ledger: LedgerArguments,
        /// Which budget
        #[arg(long, value_name = "NAME")]
        budget: String,
        /// The new ε of everything ever charged to it
        #[arg(long, allow_negative_numbers = true)]
        epsilon: f64,
        /// The new δ of everything ever charged to it
        #[arg(long, allow_negative_numbers = true)]
        delta: f64,
        /// Do not ask before raising
        #[arg(long)]
        yes: bool,
    },
    /// Show what is left and what was spent, in ε
    #[command(after_help = "\
Examples:
  potluck ledger show
  potluck ledger show --delta 1e-8

ε of several releases does not add up, so what is left is the largest ε that one further release may have.")]
    Show {
        #[command(flatten)]
        ledger: LedgerArguments,
        /// Say also what a further release could have at this δ [default: the budget's]
        #[arg(long, allow_negative_numbers = true)]
        delta: Option<f64>,
        /// Show μ² too, which is what charges add up in
        #[arg(long)]
        verbose: bool,
    },
    /// Print the whole ledger as JSON, for an auditor
    #[command(after_help = "Example:\n  potluck ledger export > ledger.json")]
    Export {
        #[command(flatten)]
        ledger: LedgerArguments,
    },
}

/// A share, from 0 to 1.
fn share(text: &str) -> Result<f64, String> {
    let share: f64 = text.parse().map_err(|_| "give a number from 0 to 1, such as 0.6".to_owned())?;
    if (0.0..=1.0).contains(&share) {
        Ok(share)
    } else {
        Err("give a number from 0 to 1, such as 0.6".to_owned())
    }
}
