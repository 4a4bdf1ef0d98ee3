//! Blocking client of a hub (docs/HUB.md): everything a coordinator, a party or the public asks of
//! it.
//!
//! A hub is not trusted. What can be checked is checked before it is handed on: a study's seal and
//! id, the chain of an event log, the hash of a file. Everything that is asked of a hub can be
//! asked again without harm, so a broken connection is tried again, uploads go on at the byte that
//! the hub has, downloads at the byte that we have.
//!
//! An address names a hub and a study there; a token says who asks:
//!
//! ```
//! use potluck_client::{StudyAddress, Token};
//!
//! # fn main() -> Result<(), potluck_client::Error> {
//! let id = "4f7bbc421ae2b4547b9286045734bd0d169bf033070e9db31706a620c5164197";
//! let address = StudyAddress::parse(&format!("https://hub.example.org/studies/{id}"))?;
//! assert_eq!((address.hub().host(), address.id()), ("hub.example.org", id));
//! assert!(StudyAddress::parse("https://hub.example.org/studies/mine").is_err());
//!
//! let token = Token::new(" a-token \n")?;
//! assert_eq!(token.secret(), "a-token");
//! # Ok(())
//! # }
//! ```
//!
//! A public dataset is taken when the event logs confirm it:
//!
//! ```no_run
//! use std::path::Path;
//!
//! use potluck_client::{Hub, Options, StudyAddress};
//! use potluck_release::files::Existing;
//!
//! # fn get(address: &StudyAddress) -> Result<(), potluck_client::Error> {
//! let hub = Hub::new(address.hub(), Options::default())?;
//! let study = hub.contract(address.id())?.study;
//! let out = Path::new("public.parquet");
//! let verified = hub.verified_dataset(&study, out, Existing::Keep, &mut |_, _| ())?;
//! println!("{} rows, latest: {}", verified.dataset.columns().rows(), verified.latest);
//! verified.file.publish()?;
//! # Ok(())
//! # }
//! ```

mod address;
mod error;
mod hub;
mod retry;
mod token;
mod transfer;
mod verified;

pub use address::{HubAddress, StudyAddress};
pub use error::Error;
pub use hub::{Contract, FitQuery, Hub, Log, NewInvitations, Options, RetryNotice};
pub use token::Token;
pub use transfer::{Downloaded, FileDigest, largest_dataset};
pub use verified::VerifiedDataset;
