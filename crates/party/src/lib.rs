//! The private side of potluck: reads a party's raw table, runs the stages of a release, adds noise and keeps
//! the ledger.
//!
//! This is the only crate that can name a raw row. Nothing a server uses depends on it. Types that hold raw
//! values, exact sums or noise have no `Debug`, `Display` or `Serialize`.

mod duplicates;
pub mod entropy;
mod error;
pub mod ledger;
pub mod order;
mod pass;
pub mod predict;
pub mod reading;
mod refusal;
pub mod release;
mod rows;
pub mod sql;
mod stage;
pub mod sums;
pub mod table;

use std::sync::{Mutex, MutexGuard, PoisonError};

pub use error::{Error, NoBudget};
pub use ledger::Ledger;
pub use order::Order;
pub use reading::{Access, Reading, Resources};
pub use refusal::Refusal;
pub use release::{Job, Observer, Published, Step, release};
pub use table::Table;

/// Locks what stays sound when another thread panics while it holds the lock.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
