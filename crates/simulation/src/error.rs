//! What a preview may fail with.

use potluck_release::Fault;
use thiserror::Error as ThisError;

/// Why there is no preview.
#[derive(Debug, ThisError)]
pub enum Error {
    /// A share is not one.
    #[error("--{name} must be at least 0 and below 1")]
    Share {
        /// Which argument it is.
        name: &'static str,
    },
    /// An overlap is not a share that can be tried.
    #[error("--overlap must be 0.01 to 1")]
    Overlap,
    /// Overlaps and missing values in a study that has neither.
    #[error(
        "in a study of format 1 all parties hold the same people and values count as there: leave --overlap and --missing out, or write the study with format = 2"
    )]
    SamePeople,
    /// Too few releases to say anything of their spread, or too many to wait for.
    #[error("--releases must be {least} to {most}")]
    Releases {
        /// The fewest.
        least: u32,
        /// The most.
        most: u32,
    },
    /// The people do not fit into memory.
    #[error(
        "{rows} made-up people do not fit into memory; try fewer with --rows, and read the trend from two sizes"
    )]
    TooMany {
        /// How many they are.
        rows: u64,
    },
    /// The label is no column, or one that cannot be a label.
    #[error("there is no such label; numeric columns and those with two levels can be one: {known}")]
    Label {
        /// Those that can.
        known: String,
    },
    /// The caller asked to stop.
    #[error("stopped before the last release")]
    Stopped,
    /// Of the study, its releases or their fit.
    #[error(transparent)]
    Release(#[from] potluck_release::Error),
}

impl Error {
    /// Whose fault it is.
    pub fn fault(&self) -> Fault {
        match self {
            Self::Share { .. }
            | Self::Overlap
            | Self::SamePeople
            | Self::Releases { .. }
            | Self::TooMany { .. }
            | Self::Stopped => Fault::Usage,
            Self::Label { .. } => Fault::Input,
            Self::Release(error) => error.fault(),
        }
    }
}
