//! Everything that may be published: the study, releases, the public dataset and fitted models.
//!
//! This crate owns their file formats, hashes and signatures (docs/FORMAT.md). It has no type for a raw row,
//! and neither has anything else that a server needs: that is the security argument of docs/ARCHITECTURE.md.

mod canonical;
pub mod columns;
pub mod dataset;
mod error;
pub mod files;
pub mod fit;
pub mod model;
pub mod release;
pub mod signing;
pub mod statement;
pub mod study;

pub use dataset::PublicDataset;
pub use error::{Error, Fault};
pub use model::Model;
pub use release::Release;
pub use study::{Draft, Study};

/// Version of every file format that this crate writes and reads.
pub const FORMAT: u32 = 1;

/// Name and version of this software, as written into files.
pub const SOFTWARE: &str = concat!("potluck ", env!("CARGO_PKG_VERSION"));
