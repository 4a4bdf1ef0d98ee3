//! The mathematics of potluck on plain arrays: encoding, mixing, noise, accounting and learning.
//!
//! This crate knows no files, no clock, no network and no table format. It implements sections 4.1 to
//! 4.8 of the design restated in `docs/PRIVACY.md`; every function whose result guards somebody's
//! privacy has a `# Privacy` section that says what it promises and where the proof is.

pub mod accounting;
pub mod calibrated;
pub mod encoding;
mod interval;
pub mod learn;
pub mod mixing;
pub mod noise;
pub mod planning;
pub mod stage;
mod vector;
