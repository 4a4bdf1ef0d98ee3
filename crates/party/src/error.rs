//! What can go wrong on the private side. No message ever holds a value of the table.

use std::fmt;
use std::io;
use std::path::PathBuf;

use potluck_release::Fault;
use potluck_release::plan::Futility;
use potluck_release::remedy::Problem;
use potluck_release::statement::for_people;
use potluck_release::study::{LARGER, TableRows};
use thiserror::Error;

use crate::Refusal;
use crate::entropy::Unusable;
use crate::ledger::{Budget, Forgotten};

/// An error of the private side.
#[derive(Debug, Error)]
pub enum Error {
    /// The study or a published file.
    #[error(transparent)]
    Release(#[from] potluck_release::Error),
    /// The table could not be read.
    #[error("cannot read {table}: {source}; check that the file exists and that you may read it")]
    Read {
        /// The table.
        table: String,
        /// Why not.
        source: io::Error,
    },
    /// The file is not a table we know.
    #[error("{table}: {problem}")]
    Table {
        /// The table.
        table: String,
        /// What is wrong and what to do.
        problem: Problem,
    },
    /// A database did not give its table.
    #[error("{table}: {problem}")]
    Database {
        /// The table.
        table: String,
        /// What went wrong and what to do.
        problem: String,
    },
    /// A column is not usable.
    #[error("{table}, column {column:?}: {problem}")]
    Column {
        /// The table.
        table: String,
        /// The column.
        column: String,
        /// What is wrong and what to do.
        problem: Problem,
    },
    /// A value is not usable.
    #[error("{table}, column {column:?}, row {row}: {problem}")]
    Value {
        /// The table.
        table: String,
        /// The column.
        column: String,
        /// The row, from 1, not counting a header.
        row: u64,
        /// What is wrong and what to do.
        problem: Problem,
    },
    /// The table is refused for what stands in it.
    #[error("{source}")]
    Refused {
        /// The kind of reason.
        reason: Refusal,
        /// The reason in full, for the party's own eyes.
        source: Box<Error>,
    },
    /// A later stage could not be computed.
    #[error(
        "stage {stage} could not be computed: {source}\nThe charge stands, and the stages before it are stored: once this is mended, run the same command again; it goes on from there at no further charge"
    )]
    Interrupted {
        /// The stage, from 1.
        stage: u32,
        /// Why not.
        source: Box<Error>,
    },
    /// Whoever asked for it wants it to stop.
    #[error("stopped")]
    Stopped,
    /// The operating system gave no randomness that can be used.
    #[error(
        "the operating system gave no randomness that can be used ({0}); no noise was drawn: try again, and if that does not help, use another machine"
    )]
    Entropy(Unusable),
    /// A temporary file could not be used.
    #[error("cannot use a temporary file: {0}; choose another folder with --tmp-dir")]
    Temporary(io::Error),
    /// There is no ledger.
    #[error(
        "there is no ledger at {path}; make one with `potluck ledger init --ledger {path} --budget NAME --epsilon E --delta D`"
    )]
    NoLedger {
        /// Where it was looked for.
        path: PathBuf,
    },
    /// Somebody else has the ledger open.
    #[error("the ledger {path} is in use by another process; wait for it to finish and run this again")]
    LedgerInUse {
        /// The ledger.
        path: PathBuf,
    },
    /// The ledger is damaged.
    #[error(
        "the ledger {path} is damaged ({detail}); restore it from a backup: without it, what was spent is not known"
    )]
    LedgerDamaged {
        /// The ledger.
        path: PathBuf,
        /// What was found.
        detail: String,
    },
    /// The ledger is older than what was done with it.
    #[error("{0}")]
    LedgerBehind(Box<Behind>),
    /// The ledger could not be written.
    #[error("cannot write the ledger {path}: {detail}; check the folder, its permissions and the free space")]
    LedgerWrite {
        /// The ledger.
        path: PathBuf,
        /// What the database said.
        detail: String,
    },
    /// No such budget.
    #[error("{0}")]
    NoBudget(NoBudget),
    /// The budget exists already.
    #[error("the ledger has a budget {budget:?} already; a budget is set once")]
    BudgetExists {
        /// The budget.
        budget: String,
    },
    /// The release was charged to another budget.
    #[error(
        "the columns of {party} under this study are charged to budget {other:?} already, not to {budget:?}; one study and party is one release, and a second draw would reveal more than either budget counts. Go on with --budget {other}; nothing was read or charged"
    )]
    OtherBudget {
        /// The party.
        party: String,
        /// The budget that was named.
        budget: String,
        /// The budget that the release is charged to.
        other: String,
    },
    /// The release would be of no use.
    #[error("{0} To publish all the same, pass --accept-low-accuracy")]
    Futile(Futility),
    /// The budget does not allow the release.
    #[error("{}", .0.in_words("`potluck ledger raise`"))]
    Overspend(Box<Overspend>),
    /// Somebody else raised the budget meanwhile.
    #[error(
        "budget {budget:?} was raised by somebody else while you were asked; nothing was changed now: look at it again, and raise it if you still mean it"
    )]
    BudgetChanged {
        /// The budget.
        budget: String,
    },
    /// What was asked for is not more than the budget is.
    #[error(
        "budget {budget:?} is ε = {epsilon}, δ = {delta:e} already, which allows as much or more; a budget can be raised and never lowered, for what was released under it stays released"
    )]
    NoRaise {
        /// The budget.
        budget: String,
        /// Its ε.
        epsilon: f64,
        /// Its δ.
        delta: f64,
    },
}

/// A release that its budget does not allow.
#[derive(Debug)]
pub struct Overspend {
    /// The budget.
    pub budget: Budget,
    /// ε and δ that the study asks for.
    pub asked: (f64, f64),
    /// The largest ε that a release could have at the study's δ, if one could.
    pub possible: Option<f64>,
}

impl Overspend {
    /// What is wrong and what can be done; `raise` is how a budget is raised.
    pub fn in_words(&self, raise: &str) -> String {
        let Self { budget, asked: (epsilon, delta), possible } = self;
        let Budget { name, epsilon: total, delta: of_total, .. } = budget;
        let weaker = "which weakens the promise to everyone in the table";
        let remedy = match possible {
            Some(possible) => format!(
                "What is left allows one release with ε up to {possible} at this δ: agree with the other parties on a study with that, or raise the budget with {raise}, {weaker}."
            ),
            None => format!(
                "Nothing is left that a release at this δ could have: only a larger budget would allow one ({raise}), {weaker}."
            ),
        };
        format!(
            "budget {name:?} (ε = {total}, δ = {of_total:e} in all, of which ε = {} is spent) does not allow this release at ε = {epsilon}, δ = {delta:e}; nothing was written or charged. {remedy}",
            for_people(budget.spent_epsilon())
        )
    }
}

/// What a ledger has forgotten.
#[derive(Debug)]
pub struct Behind {
    /// The ledger.
    pub path: PathBuf,
    /// The releases that it has forgotten, or something of.
    pub forgotten: Vec<Forgotten>,
    /// The budgets that they were charged to, as far as the ledger knows them, with the charges.
    pub left: Vec<Budget>,
}

impl fmt::Display for Behind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let charges: Vec<String> =
            self.forgotten.iter().map(|one| format!("{} under {:?}", one.party, one.study_name)).collect();
        write!(
            f,
            "the ledger {} is older than what was released with it on this machine ({}), as one restored from a backup is; nothing was read or charged. Put back the newest copy of it. If that is lost, make a new ledger, with no more than these releases leave",
            self.path.display(),
            charges.join(", ")
        )?;
        for budget in &self.left {
            match budget.epsilon_left() {
                0.0 => write!(f, "; of budget {:?} nothing is left", budget.name)?,
                left => {
                    write!(f, "; of budget {:?}, ε = {left} at δ = {:e}", budget.name, budget.delta)?;
                }
            }
        }
        Ok(())
    }
}

/// Why a ledger has no budget to charge.
#[derive(Debug, Error)]
pub enum NoBudget {
    /// None of the name that was given.
    #[error(
        "the ledger has no budget {0:?}; set it with `potluck ledger init --budget {0} --epsilon E --delta D`"
    )]
    Unknown(String),
    /// None at all.
    #[error(
        "the ledger has no budget yet; set one with `potluck ledger init --budget NAME --epsilon E --delta D`"
    )]
    Any,
    /// Several, of these names, and none was given.
    #[error("the ledger has the budgets {}; say with --budget which one this release is charged to", .0.join(", "))]
    Several(Vec<String>),
}

impl Error {
    /// The table of an engine has no rows.
    pub(crate) fn empty(table: &str, allowed: TableRows) -> Self {
        let no_types = || {
            let problem = "is empty, and an engine does not say which types an empty table has".into();
            Self::Table { table: table.to_owned(), problem }.refusing(Refusal::Rows)
        };
        Self::check_rows(table, 0, allowed).err().unwrap_or_else(no_types)
    }

    /// Refuses a table that has more or fewer rows than it may have.
    ///
    /// # Privacy
    /// Of a study whose number of rows is approximate it tells that there are more than [`LARGER`]
    /// times as many, nothing else (docs/PRIVACY.md#refusals).
    pub(crate) fn check_rows(table: &str, found: u64, allowed: TableRows) -> Result<(), Self> {
        let problem = match allowed {
            _ if (allowed.fewest()..=allowed.most()).contains(&found) => return Ok(()),
            TableRows::Exactly(rows) => format!(
                "has {} rows than the {rows} of the study; every party needs exactly one row for each subject of the study",
                if found > rows { "more" } else { "fewer" }
            ),
            TableRows::About(rows) => format!(
                "has more than {LARGER} times the {rows} rows that the study says about; check that it is the right table, or agree on a study with a better number of rows"
            ),
        };
        let refused = Self::Table { table: table.to_owned(), problem: problem.into() };
        Err(refused.refusing(Refusal::Rows))
    }

    /// The same, known to depend on what stands in the table.
    pub(crate) fn refusing(self, reason: Refusal) -> Self {
        Self::Refused { reason, source: Box::new(self) }
    }

    /// Why the table was refused, if it was for what stands in it.
    pub fn refusal(&self) -> Option<Refusal> {
        match self {
            Self::Refused { reason, .. } => Some(*reason),
            Self::Interrupted { source, .. } => source.refusal(),
            _ => None,
        }
    }

    /// Whether one value is to blame, so that the rows beside it may be well.
    pub(crate) fn is_about_a_value(&self) -> bool {
        matches!(self, Self::Refused { source, .. } if matches!(**source, Self::Value { .. }))
    }

    /// Whether the table itself cannot be read to its end, whatever its values are.
    pub(crate) fn is_about_the_file(&self) -> bool {
        match self {
            Self::Refused { reason, .. } => *reason == Refusal::Line,
            Self::Table { .. } => true,
            _ => false,
        }
    }

    /// The same for all rows that are refused for the same reason.
    pub(crate) fn kind_of_problem(&self) -> String {
        match self {
            Self::Refused { source, .. } => source.kind_of_problem(),
            Self::Value { problem, .. } => problem.to_string(),
            other => other.to_string(),
        }
    }

    /// Whose fault it is.
    pub fn fault(&self) -> Fault {
        match self {
            Self::Release(error) => error.fault(),
            Self::Refused { source, .. } | Self::Interrupted { source, .. } => source.fault(),
            Self::NoLedger { .. }
            | Self::LedgerInUse { .. }
            | Self::NoBudget(_)
            | Self::BudgetExists { .. }
            | Self::OtherBudget { .. }
            | Self::Overspend(_)
            | Self::LedgerBehind(_)
            | Self::NoRaise { .. }
            | Self::BudgetChanged { .. } => Fault::Budget,
            Self::Database { .. } => Fault::Remote,
            Self::Futile(_) => Fault::Usage,
            Self::LedgerDamaged { .. } => Fault::Integrity,
            _ => Fault::Input,
        }
    }
}
