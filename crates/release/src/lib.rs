//! Everything that may be published: the study, releases, the public dataset and fitted models.
//!
//! This crate owns their file formats, hashes and signatures (docs/FORMAT.md). It has no type for a raw row,
//! and neither has anything else that a server needs: that is the security argument of docs/ARCHITECTURE.md.

mod canonical;
pub mod columns;
pub mod dataset;
mod error;
pub mod events;
pub mod exchange;
pub mod files;
pub mod findings;
pub mod fit;
pub mod guard;
pub mod model;
pub mod parquet_file;
pub mod place;
pub mod plan;
pub mod preview;
pub mod release;
pub mod remedy;
pub mod signing;
pub mod statement;
pub mod study;
pub mod summary;
mod thrift;

pub use dataset::PublicDataset;
pub use error::{Error, Fault};
pub use model::Model;
pub use plan::Plan;
pub use release::Release;
pub use study::{Draft, Extension, Study};

/// Version of every file format that this crate writes and reads.
pub const FORMAT: u32 = 1;

/// Name and version of this software, as written into files.
pub const SOFTWARE: &str = concat!("potluck ", env!("CARGO_PKG_VERSION"));

/// Refuses a document of another format.
fn check_format(document: &serde_json::Value, path: &std::path::Path) -> Result<(), Error> {
    match document["format"].as_u64() {
        Some(format) if format == u64::from(FORMAT) => Ok(()),
        found => Err(Error::Format { path: path.to_owned(), found: found.unwrap_or(0), known: FORMAT }),
    }
}
