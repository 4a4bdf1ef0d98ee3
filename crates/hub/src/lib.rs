//! The hub: the place where parties in different organisations meet, and where the public sees,
//! checks and uses what they published.
//!
//! It stores only published things: sealed studies, public keys, signed releases, public datasets
//! and the log of what happened. It has no type for a raw row, and depends on nothing that has
//! (docs/ARCHITECTURE.md). What it holds and what it can and cannot do is in docs/HUB.md.
//!
//! [`Store`] is the state on disk; [`serve`] runs the HTTP server over it: `api` for programs,
//! `pages` for people.
//!
//! ```
//! use potluck_hub::config::Options;
//! use potluck_hub::{Config, Store, serve};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let folder = tempfile::tempdir()?;
//! let coordinator = Store::open(folder.path())?.add_coordinator("ada", false)?;
//! println!("ada's token, which is shown once: {}", coordinator.reveal());
//!
//! // Port 0 takes a free one. The hub runs until the process is told to stop.
//! let options = Options {
//!     data: Some(folder.path().to_owned()),
//!     listen: Some("127.0.0.1:0".parse()?),
//!     ..Options::default()
//! };
//! let config = Config::new(options)?;
//! let (listening, address) = std::sync::mpsc::channel();
//! let ready = move |url: &str| listening.send(url.to_owned()).expect("it is waited for");
//! std::thread::spawn(move || serve(config, ready));
//! assert!(address.recv()?.starts_with("http://127.0.0.1:"));
//! # Ok(())
//! # }
//! ```

mod api;
mod app;
mod certificate;
pub mod config;
mod connections;
mod correlated;
mod error;
mod fits;
mod limits;
mod metrics;
mod pages;
mod process;
mod remembered;
mod server;
pub mod store;
mod token;

pub use api::description;
pub use config::Config;
pub use error::Error;
pub use server::{log_to_stderr, serve};
pub use store::Store;
pub use token::Token;
