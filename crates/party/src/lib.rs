//! The private side of potluck: reads a party's raw table, runs the stages of a release, adds noise
//! and keeps the ledger.
//!
//! This is the only crate that can name a raw row. Nothing a server uses depends on it. Types that
//! hold raw values, exact sums or noise have no `Debug`, `Display` or `Serialize`.
//!
//! A release, from the study to the file:
//!
//! ```
//! use potluck_core::accounting::{Delta, Epsilon};
//! use potluck_party::reading::ExtraColumns;
//! use potluck_party::{Access, Error, Ledger, LostValues, Order, Resources, Table, entropy};
//! use potluck_release::files::Existing;
//! use potluck_release::{Draft, Release};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let draft = Draft::parse(
//!     r#"
//!     format = 1
//!     study = { name = "blood pressure", rows = 50, id = "integer" }
//!     privacy = { epsilon = 1.0, delta = 1e-5 }
//!     party = [
//!         { name = "clinic", column = [{ name = "pressure", lo = 80, hi = 200 }] },
//!         { name = "registry", column = [{ name = "smoker", levels = ["no", "yes"] }] },
//!     ]
//!     "#,
//! )?;
//! let study = draft.seal(entropy::new_mixing_key()?)?;
//!
//! // What the clinic has: a table, and a ledger with a budget for it.
//! let folder = tempfile::tempdir()?;
//! let file = |name: &str| folder.path().join(name);
//! let (data, ledger, out) = (file("patients.csv"), file("ledger"), file("release.parquet"));
//! let people: String = (0..50).map(|id| format!("{id},{}\n", 100 + id)).collect();
//! std::fs::write(&data, format!("id,pressure\n{people}"))?;
//! Ledger::open_or_create(&ledger)?.set_budget("patients", Epsilon::new(1.0)?, Delta::new(1e-5)?)?;
//!
//! let order = Order {
//!     study,
//!     party: "clinic".to_owned(),
//!     ledger: ledger.clone(),
//!     budget: None,
//!     out: out.clone(),
//!     existing: Existing::Keep,
//!     signing_key: None,
//!     inputs: vec![data.clone()],
//!     accept_low_accuracy: true, // fifty people are few
//!     lost_values: LostValues::Refuse,
//! };
//! // Nothing is charged before people have agreed to what is promised.
//! let agreed = order.prepare()?.confirm(|question| {
//!     question.promise.iter().for_each(|sentence| println!("{sentence}"));
//!     Ok::<_, Error>(())
//! })?;
//! let access = Access {
//!     id_column: "id".to_owned(),
//!     extra_columns: ExtraColumns::Refuse,
//!     resources: Resources::new(None, None),
//! };
//! let published = agreed.release(&Table::open(&data, folder.path())?, &access, &())?;
//!
//! assert_eq!(Release::read(&out)?.content_hash(), published.release.content_hash);
//! assert_eq!(Ledger::open(&ledger)?.budgets()?[0].spent, published.budget.spent);
//! # Ok(())
//! # }
//! ```

pub mod audit;
mod duplicates;
pub mod entropy;
mod error;
pub mod ids;
mod kept;
pub mod ledger;
mod lost;
mod memory;
pub mod order;
mod pass;
pub mod postgres;
pub mod predict;
pub mod reading;
mod refusal;
pub mod release;
mod rows;
pub mod sql;
mod sums;
pub mod table;
pub mod validation;

use std::sync::{Mutex, MutexGuard, PoisonError};

pub use error::{Error, NoBudget, Overspend};
pub use ledger::Ledger;
pub use lost::LostValues;
pub use order::Order;
pub use reading::{Access, Reading, Resources};
pub use refusal::Refusal;
pub use release::{Job, Observer, Published, Step, release};
pub use table::Table;

/// Locks what stays sound when another thread panics while it holds the lock.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
