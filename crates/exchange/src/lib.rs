//! Products of two parties' columns with noise of order 1/μ, by three messages that trust nobody:
//! the arithmetic of docs/EXCHANGE.md, which it implements to the byte.
//!
//! **Experimental**: nobody outside the project has reviewed it, and nothing else in potluck uses
//! it.
//!
//! The sender encrypts its rows ([`offer()`]); the recipient checks the proof
//! ([`AcceptedOffer::check`]), multiplies and adds its noise ([`AcceptedOffer::reply`]); the sender
//! checks that ([`Awaiting::accept`]), adds its own noise and publishes
//! ([`AcceptedReply::outcome`]). Each step consumes what it starts from, and there is no other way
//! to a step's value, so nothing that depends on a partner's rows is made before the partner's
//! proof was checked.
//!
//! No files, no network, no clock, no source of randomness: rows and messages are readers and
//! writers of the caller's, read in chunks so that memory does not depend on people, and randomness
//! is an argument. Nothing that holds rows, keys or noise can be printed.
//!
//! ```
//! use std::io::Cursor;
//!
//! use potluck_core::noise::Sigma;
//! use potluck_exchange::{AcceptedOffer, Entropy, Participant, Terms, offer};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let party = |index, columns, nonce| Participant {
//!     index,
//!     columns,
//!     norm: 100,
//!     releases: [0; 32],
//!     nonce: [nonce; 32],
//! };
//! let terms = Terms::new([0; 32], 0, 3, party(0, 1, 1), vec![(party(1, 1, 2), Sigma::new(5)?)])?;
//! let rows = |values: [i16; 3]| Cursor::new(values.map(i16::to_le_bytes).as_flattened().to_vec());
//! // In earnest, every one of these is 32 fresh bytes of the operating system.
//! let entropy = |byte| Entropy::new([byte; 32].into());
//!
//! let (mut asked, mut answered) = (Vec::new(), Vec::new());
//! let sent = offer(&terms, rows([10, -3, 2]), entropy(1), &mut asked)?;
//! AcceptedOffer::check(&terms, 1, Cursor::new(&asked), entropy(2))?
//!     .reply(rows([7, 7, -1]), entropy(3), &mut answered)?;
//! let awaiting = sent.await_replies().remove(0);
//! let accepted = awaiting.accept(Cursor::new(&asked), Cursor::new(&answered), entropy(4))?;
//! let outcome = accepted.outcome(entropy(5));
//! assert!((outcome.values[0].ok_or("in range")? - 47).abs() < 60, "47 and two noises of scale 5");
//! # Ok(())
//! # }
//! ```
//!
//! No step can be skipped,
//!
//! ```compile_fail,E0599
//! fn unchecked(awaiting: potluck_exchange::Awaiting, entropy: potluck_exchange::Entropy) {
//!     awaiting.outcome(entropy);
//! }
//! ```
//!
//! and none taken twice:
//!
//! ```compile_fail,E0382
//! use potluck_exchange::{AcceptedReply, Entropy};
//!
//! fn twice(reply: AcceptedReply, one: Entropy, other: Entropy) {
//!     reply.outcome(one);
//!     reply.outcome(other);
//! }
//! ```

mod accepted_offer;
mod awaiting;
mod bases;
mod equations;
mod error;
mod fields;
mod generators;
mod layout;
mod logarithm;
mod message;
mod offer;
mod outcome;
mod pinned;
mod products;
mod randomness;
mod reply;
mod rows;
mod squares;
mod sums;
mod terms;
#[cfg(test)]
mod tests;
mod transcript;
mod witness;

pub use accepted_offer::AcceptedOffer;
pub use awaiting::Awaiting;
pub use error::{Check, Error, Message, Reading};
pub use offer::{SentOffer, offer};
pub use outcome::{AcceptedReply, Outcome};
pub use randomness::Entropy;
pub use reply::SentReply;
pub use terms::{Participant, Recipient, Terms, TermsError};
