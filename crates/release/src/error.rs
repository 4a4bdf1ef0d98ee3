//! What can go wrong with a published thing, and what to do about it.

use std::io;
use std::path::{Path, PathBuf};

use potluck_core::accounting::BudgetError;
use potluck_core::learn::LearnError;
use potluck_core::noise::SigmaError;
use thiserror::Error;

use crate::place::Place;
use crate::remedy::Problem;
use crate::study::Mistakes;

/// Whose fault an error is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// What was asked for cannot be done, whatever the input.
    Usage,
    /// The input is not usable as it is.
    Input,
    /// Something was changed, cut short or signed by somebody else.
    Integrity,
    /// The budget does not allow it.
    Budget,
    /// A hub cannot be reached, refused, or does not speak as it should.
    Remote,
}

impl Fault {
    /// What the command exits with, and what exceptions carry.
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Usage => 2,
            Self::Input => 3,
            Self::Budget => 4,
            Self::Integrity => 5,
            Self::Remote => 6,
        }
    }
}

/// An error about a study, release, public dataset or model.
#[derive(Debug, Error)]
pub enum Error {
    /// A file could not be read.
    #[error("cannot read {path}: {source}; check that the file exists and that you may read it")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A file could not be written.
    #[error(
        "cannot write {path}: {source}; check the folder, its permissions and the free space, then run it again"
    )]
    Write {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The file is there already.
    #[error("{path} exists already; choose another name, or replace it with --force")]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// The output would replace an input.
    #[error("{path} is needed and would be overwritten; choose another name for the output")]
    SameFile {
        /// The file.
        path: PathBuf,
    },
    /// The study file is not TOML.
    #[error(
        "the study is not in the expected form: {detail}\nsee docs/FORMAT.md, or start from `potluck study new`"
    )]
    StudySyntax {
        /// What the TOML reader said, with its position.
        detail: String,
    },
    /// The study says something that cannot be.
    #[error("{0}")]
    Study(Mistakes),
    /// The study has no seal.
    #[error("the study is not sealed; run `potluck study seal` and give the sealed file to every party")]
    NotSealed,
    /// The study was sealed before.
    #[error(
        "the study is sealed already; to change it, remove the [sealed] section and seal it again as a new study"
    )]
    AlreadySealed,
    /// The study extends another, which is not at hand.
    #[error("this study extends {base}; pass the sealed file of that study with --base FILE")]
    BaseMissing {
        /// The id of the study that it extends.
        base: String,
    },
    /// A base was given for a study that is sealed.
    #[error("the study is sealed and holds what it needs of the study it extends; leave --base out")]
    BaseNeedless,
    /// The party belongs to the study that is extended.
    #[error(
        "{party:?} releases under the study that lists it, {study:?} with id {id}, not under one that extends it; use the sealed file of that study"
    )]
    PartyOfBase {
        /// The party.
        party: String,
        /// The name of the study that lists it.
        study: String,
        /// The id of that study.
        id: String,
    },
    /// The seal does not follow from the study.
    #[error(
        "the study's seal is wrong: {what} does not follow from the rest of the study; it was edited after sealing: get the original file, or remove [sealed] and seal it as a new study"
    )]
    Seal {
        /// The number that is wrong.
        what: String,
    },
    /// Stages that are not those of the study.
    #[error("there are not as many stages as a release under this study has; start the release again")]
    Stages,
    /// No such party.
    #[error("the study has no party {party:?}; its parties are {known}")]
    UnknownParty {
        /// The name asked for.
        party: String,
        /// The names there are.
        known: String,
    },
    /// No such column.
    #[error("the public dataset has no column {column:?}; its columns are {known}")]
    UnknownColumn {
        /// The name asked for.
        column: String,
        /// The names there are.
        known: String,
    },
    /// A label or feature list that makes no regression.
    #[error("{0}")]
    Regression(String),
    /// Not a file of ours.
    #[error("{path} is not a potluck {expected}: {detail}")]
    NotOurs {
        /// The file.
        path: PathBuf,
        /// What was expected.
        expected: &'static str,
        /// What was found.
        detail: String,
    },
    /// Written by a later version.
    #[error("{path} has format {found}, this potluck reads format {known}; use the version that wrote it")]
    Format {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: u64,
        /// Ours.
        known: u32,
    },
    /// The content is not what its hash or signature says.
    #[error("{path} fails verification: {what}; get the file again from whoever published it")]
    Tampered {
        /// The file.
        path: PathBuf,
        /// What does not agree.
        what: String,
    },
    /// Releases that do not belong together.
    #[error("cannot join: {0}")]
    Join(Problem),
    /// A stage that cannot be audited.
    #[error("cannot audit: {0}")]
    Audit(String),
    /// A key file that cannot be used.
    #[error("{path} is not a usable key: {problem}")]
    Key {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: Problem,
    },
    /// A budget that cannot be had.
    #[error("privacy: {0}")]
    Budget(#[from] BudgetError),
    /// Noise that cannot be had.
    #[error("privacy: {0}")]
    Noise(#[from] SigmaError),
    /// The regression could not be computed.
    #[error("{0}")]
    Learn(#[from] LearnError),
}

impl Error {
    /// Whose fault it is.
    pub fn fault(&self) -> Fault {
        match self {
            Self::SameFile { .. } | Self::BaseNeedless => Fault::Usage,
            Self::Seal { .. } | Self::Tampered { .. } => Fault::Integrity,
            _ => Fault::Input,
        }
    }

    pub(crate) fn read(path: &Path, source: io::Error) -> Self {
        Self::Read { path: path.to_owned(), source }
    }

    pub(crate) fn write(path: &Path, source: io::Error) -> Self {
        Self::Write { path: path.to_owned(), source }
    }

    pub(crate) fn study(place: impl Into<Place>, problem: impl Into<Problem>) -> Self {
        Self::Study(Mistakes::one(place.into(), problem.into()))
    }

    pub(crate) fn tampered(path: &Path, what: impl Into<String>) -> Self {
        Self::Tampered { path: path.to_owned(), what: what.into() }
    }
}
