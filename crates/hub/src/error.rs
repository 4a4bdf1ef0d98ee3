//! What can go wrong with running a hub, and what to do about it.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// An error of the hub itself; what is wrong with a request is a
/// [`Refusal`](crate::store::Refusal).
#[derive(Debug, Error)]
pub enum Error {
    /// The settings do not go together.
    #[error("{0}")]
    Config(String),
    /// A file or folder cannot be used.
    #[error("cannot use {path}: {source}; check that it exists and that the hub may read and write it")]
    File {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {source}; is another server running there?")]
    Listen {
        /// The address.
        address: String,
        /// Why not.
        source: io::Error,
    },
    /// The certificate or key cannot be used.
    #[error("TLS: {0}")]
    Tls(String),
    /// The database failed.
    #[error("the hub's database failed: {0}")]
    Database(#[from] rusqlite::Error),
    /// The database is not one of ours, or of a later version.
    #[error("{path}: {problem}")]
    Foreign {
        /// The database.
        path: PathBuf,
        /// What is wrong and what to do.
        problem: String,
    },
    /// What is stored does not verify.
    #[error("stored data are damaged: {0}; restore the data folder from a backup (docs/HUB.md)")]
    Damaged(String),
    /// The operating system has no randomness.
    #[error("the operating system gave no random bytes")]
    Entropy,
    /// There is a coordinator of that name.
    #[error(
        "there is a coordinator {0:?} already; choose another name, or pass --replace to give it a new token"
    )]
    CoordinatorExists(String),
    /// There is no coordinator of that name.
    #[error("there is no coordinator {0:?}; `potluck hub coordinator list` shows who there is")]
    NoCoordinator(String),
}

impl Error {
    pub(crate) fn file(path: &Path) -> impl FnOnce(io::Error) -> Self {
        |source| Self::File { path: path.to_owned(), source }
    }

    pub(crate) fn damaged(what: impl Into<String>) -> Self {
        Self::Damaged(what.into())
    }
}
