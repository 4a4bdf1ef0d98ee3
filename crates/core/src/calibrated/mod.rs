//! The calibrated release: columns are standardised privately before they are mixed, and local
//! moments are published beside the mixed rows.
//!
//! Four stages, each of which re-encodes the raw values with parameters that follow from published
//! results of the stages before. Everything here is public: it works on noised sums, with
//! additions, multiplications, divisions and square roots of doubles only, so that every party and
//! every verifier gets the same parameters bit for bit. The proofs are in
//! docs/PRIVACY.md#calibrated.
//!
//! There are two formats. In format 1 all parties hold the same subjects, and rows are mixed with
//! signs. In format 2 ([`Layout::of_cohort`]) each holds its own, values may be missing, shapes of
//! columns take the place of the first round, and how many are there is published in every stage.
//!
//! Where parties can be online for three messages, the fourth stage is another: every two of them
//! exchange products of their rows on a coarse grid ([`ExchangedRows`], docs/EXCHANGE.md).
//!
//! What decides what is released stands here, and nothing else: columns ([`Layout`]), shares of the
//! budget ([`Plan`]), noise ([`ShapeNoise`], [`RoundNoise`], [`MomentNoise`], [`JointNoise`]), how
//! rows are standardised ([`Frame`]) and the stages ([`PartyPlan::stage`]). What learners make of
//! the results is in [`crate::learn`].

mod bins;
mod exchanged;
mod frame;
mod layout;
mod noise;
mod party;
mod plan;
mod shape;

use thiserror::Error;

use crate::accounting::SharesError;
use crate::encoding::EncodingError;
use crate::noise::SigmaError;

pub use bins::bins;
pub use exchanged::{ExchangedRows, GRID, LARGEST_NORM, MOST_EXCHANGED, range_of_products};
pub use frame::Frame;
pub(crate) use frame::Standard;
pub use layout::{Declared, Layout};
pub use noise::{JointNoise, MomentNoise, RoundNoise, ShapeNoise};
pub use party::PartyPlan;
pub use plan::Plan;

/// Names of the four stages in order, in format 1.
pub const STAGES: [&str; 4] = ["standardise-1", "standardise-2", "moments", "mixed"];
/// The same in format 2, where parties may hold different people.
pub const COHORT_STAGES: [&str; 4] = ["shapes", "standardise", "moments", "mixed"];

/// Why a calibrated release cannot be planned or continued.
#[derive(Debug, Error, PartialEq)]
pub enum CalibratedError {
    /// μ² cannot be shared out.
    #[error(transparent)]
    Shares(#[from] SharesError),
    /// A noise scale is out of range.
    #[error(transparent)]
    Sigma(#[from] SigmaError),
    /// The row norm is out of range.
    #[error(transparent)]
    Norm(#[from] EncodingError),
    /// There is not one share for each stage.
    #[error("a calibrated release has four stages, not {0}: give each its share of μ²")]
    Stages(usize),
    /// A stage's sums do not have the right number.
    #[error("stage {stage} has {found} sums where {expected} belong")]
    Sums {
        /// The stage.
        stage: &'static str,
        /// Sums that the stage has.
        expected: usize,
        /// Sums that there are.
        found: usize,
    },
    /// There would be too many moments.
    #[error(
        "it has too many columns for their moments, more than about two thousand; use fewer columns, or method rmgm"
    )]
    TooWide,
    /// Sums could exceed 64 bits.
    #[error("its sums could overflow: use fewer columns or fewer rows")]
    Overflow,
    /// A party has more columns than an exchange can prove anything of.
    #[error("an exchange takes at most {MOST_EXCHANGED} encoded columns of a party, not {0}: use fewer")]
    TooWideToExchange(usize),
    /// Products of two parties could not be found in their noised form.
    #[error(
        "its products with another party could leave the range that can be searched: use fewer columns or fewer rows, or a larger epsilon"
    )]
    Range,
    /// Parties of one study have releases of different formats.
    #[error("all parties of a study release in the same format")]
    Formats,
}
