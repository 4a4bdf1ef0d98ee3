//! The hub: the place where parties in different organisations meet, and where the public sees, checks and uses
//! what they published.
//!
//! It stores only published things: sealed studies, public keys, signed releases, public datasets and the log of
//! what happened. It has no type for a raw row, and depends on nothing that has (docs/ARCHITECTURE.md). What it holds and what
//! it can and cannot do is in docs/HUB.md.
//!
//! [`Store`] is the state on disk; [`serve`] runs the HTTP server over it: `api` for programs, `pages` for
//! people.

mod api;
mod app;
pub mod config;
mod connections;
mod error;
mod fits;
mod limits;
mod metrics;
mod pages;
mod server;
pub mod store;
mod token;

pub use api::description;
pub use config::Config;
pub use error::Error;
pub use server::{log_to_stderr, serve};
pub use store::Store;
pub use token::Token;
