//! Blocking client of a hub (docs/HUB.md): everything a coordinator, a party or the public asks of it.
//!
//! A hub is not trusted. What can be checked is checked before it is handed on: a study's seal and id, the chain
//! of an event log, the hash of a file. Everything that is asked of a hub can be asked again without harm, so a
//! broken connection is tried again, uploads go on at the byte that the hub has, downloads at the byte that we have.

mod address;
mod error;
mod hub;
mod retry;
mod token;
mod transfer;

pub use address::{HubAddress, StudyAddress};
pub use error::{Error, Kind};
pub use hub::{Contract, FitQuery, Hub, Log, NewInvitations, Options, RetryNotice};
pub use token::Token;
pub use transfer::{Downloaded, FileDigest, largest_dataset};
