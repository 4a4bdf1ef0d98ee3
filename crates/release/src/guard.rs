//! Panics, kept quiet.
//!
//! Decoders of other people's formats assert what they should check, and what they say when they
//! panic may quote what they were decoding. [`guarded`] turns such a panic into an error without a
//! word on stderr; [`silence`] keeps all others quiet too, in processes that hold rows. What is
//! kept of a panic is the line of source code that it comes from, never its text.

use std::cell::Cell;
use std::fmt;
use std::panic::{self, AssertUnwindSafe, PanicHookInfo, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, Once, PoisonError};

/// Whether panics that nobody guards against are silent as well.
static SILENT: AtomicBool = AtomicBool::new(false);

/// Where the last panic came from.
static PLACE: Mutex<Option<String>> = Mutex::new(None);

thread_local! {
    static GUARDED: Cell<u32> = const { Cell::new(0) };
}

/// Something panicked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Panicked {
    /// The line of source code, if it is known.
    pub place: Option<String>,
}

impl fmt::Display for Panicked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = self.place.as_deref().unwrap_or("an unknown place");
        write!(
            f,
            "potluck failed at {place}; this is a defect of potluck: report it with that place and without any data"
        )
    }
}

impl std::error::Error for Panicked {}

/// What `work` gives, unless it panics. Nothing is printed then, whatever the process does with
/// other panics.
pub fn guarded<T>(work: impl FnOnce() -> T) -> Result<T, Panicked> {
    listen();
    GUARDED.set(GUARDED.get() + 1);
    let result = catch_unwind(AssertUnwindSafe(work));
    GUARDED.set(GUARDED.get() - 1);
    result.map_err(|_| Panicked { place: last_place() })
}

/// From now on no panic of this process prints anything.
pub fn silence() {
    SILENT.store(true, Ordering::Relaxed);
    listen();
}

/// Where the last panic of the process came from.
pub fn last_place() -> Option<String> {
    PLACE.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

fn listen() {
    static LISTENING: Once = Once::new();
    LISTENING.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            *PLACE.lock().unwrap_or_else(PoisonError::into_inner) = place(info);
            if !SILENT.load(Ordering::Relaxed) && GUARDED.get() == 0 {
                before(info);
            }
        }));
    });
}

/// File and line; of a path on the machine that built this, only its end.
fn place(info: &PanicHookInfo<'_>) -> Option<String> {
    let location = info.location()?;
    let parts: Vec<&str> = location.file().split(['/', '\\']).collect();
    let end = parts[parts.len().saturating_sub(4)..].join("/");
    Some(format!("{end}:{}", location.line()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_an_error_that_has_a_place_and_no_text() {
        assert_eq!(guarded(|| 1), Ok(1));
        let secret = "987654321.125";
        let panicked = guarded(|| panic!("the value {secret} is bad")).unwrap_err();
        let said = format!("{panicked} {panicked:?}");
        assert!(said.contains("guard.rs:"), "{said}");
        assert!(!said.contains(secret), "{said}");
        // Also where the panic is within another guard.
        let nested = guarded(|| guarded(|| panic!("{secret}")).is_err());
        assert_eq!(nested, Ok(true));
    }
}
