//! Made-up people, and the releases that the parties of a study would make of them, in memory.
//!
//! A [`Simulation`] goes the way of real releases: stages come from
//! [`Study::stage`](potluck_release::Study::stage), and their noised sums become releases that are
//! joined and fitted by what ships. Only people and noise are its own. [`People`] hold what an
//! experiment hands over, or are drawn in the shape of a study, which [`Rehearsal`] does for
//! previews; noise comes from where the caller says.
//!
//! This crate knows made-up people only. It reads no file, clock or entropy: equal seeds give equal
//! results, and noise that follows from a seed protects nobody. Real rows belong to potluck-party.

mod error;
mod noise;
mod people;
mod rehearsal;
mod shape;
mod simulation;

pub use error::Error;
pub use noise::{Exact, Noise, Off};
pub use people::{Column, People, Subjects};
pub use rehearsal::{RELEASES, Rehearsal, Wanted};
pub use simulation::Simulation;
