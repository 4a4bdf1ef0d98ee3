//! Everything that may be published: the study, releases, the public dataset and fitted models.
//!
//! This crate owns their file formats, hashes and signatures (docs/FORMAT.md). It has no type for a
//! raw row, and neither has anything else that a server needs: that is the security argument of
//! docs/ARCHITECTURE.md.
//!
//! ```
//! use potluck_core::mixing::MixingKey;
//! use potluck_release::{AnyStudy, Error, Plan};
//!
//! let text = r#"
//! format = 1
//! study = { name = "blood pressure", rows = 200_000, id = "integer" }
//! privacy = { epsilon = 1.0, delta = 1e-6 }
//!
//! [[party]]
//! name = "north"
//! column = [{ name = "age", lo = 18, hi = 100 }, { name = "smoker", levels = ["no", "yes"] }]
//!
//! [[party]]
//! name = "south"
//! column = [{ name = "pressure", lo = 80, hi = 200, unit = "mmHg" }]
//! "#;
//!
//! // What it would promise and cost, before anyone touches data.
//! let study = AnyStudy::parse(text, None)?;
//! let (_, plan) = Plan::of(&study)?;
//! assert!(!plan.sealed && plan.parties.len() == 2 && plan.warnings.is_empty());
//!
//! // All parties release under the sealed study; its key comes from a good source of randomness.
//! let AnyStudy::Unsealed(unsealed) = study else { panic!("it has no seal") };
//! let (sealed, text) = unsealed.seal(|| Ok::<_, Error>(MixingKey::new([7; 32])))?;
//! assert_eq!(AnyStudy::parse(&text, None)?.sealed()?.id(), sealed.id());
//!
//! // All that is wrong with a study is said at once.
//! let wrong = text.replace("rows = 200_000", "rows = -1").replace("hi = 100", "high = 100");
//! let Err(Error::Study(mistakes)) = AnyStudy::parse(&wrong, None) else {
//!     panic!("it has mistakes")
//! };
//! let places: Vec<String> = mistakes.iter().map(|mistake| mistake.place().to_string()).collect();
//! assert_eq!(places, ["study.rows", "party \"north\", column \"age\": high"]);
//! # Ok::<(), Error>(())
//! ```

pub mod block;
mod canonical;
pub mod columns;
pub mod correlations;
pub mod dataset;
mod error;
pub mod events;
pub mod exchange;
pub mod files;
pub mod findings;
pub mod fit;
pub mod forecast;
pub mod guard;
mod headline;
pub mod model;
pub mod parquet_file;
pub mod people;
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
pub mod warnings;

pub use dataset::PublicDataset;
pub use error::{Error, Fault};
pub use model::Model;
pub use plan::Plan;
pub use release::Release;
pub use study::{AnyStudy, Draft, Extension, Study};

/// Version of the files that this crate writes, but for studies, releases and public datasets:
/// these have the format of their study (`study::Format`).
pub const FORMAT: u32 = 1;

/// Name and version of this software, as written into files.
pub const SOFTWARE: &str = concat!("potluck ", env!("CARGO_PKG_VERSION"));

/// Refuses a document of a format that is not ours.
fn check_format(document: &serde_json::Value, path: &std::path::Path, newest: u32) -> Result<(), Error> {
    match document["format"].as_u64() {
        Some(format) if (1..=u64::from(newest)).contains(&format) => Ok(()),
        found => Err(Error::Format { path: path.to_owned(), found: found.unwrap_or(0), known: newest }),
    }
}
