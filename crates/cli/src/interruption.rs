//! Ctrl-C and its like, while a release is drawn: they stop it between two batches of rows, and
//! whatever ends a release early leaves a line that says how it stands.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use anyhow::{Error, Result};
use potluck_party::Published;
use potluck_party::order::Agreed;
use potluck_release::guard::guarded;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use crate::output::Printer;

/// What a shell says of a program that Ctrl-C ended.
const INTERRUPTED: i32 = 130;

/// Set by the first Ctrl-C or request to end, once somebody watches for them.
static STOP: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// Whether somebody wants the command to stop.
pub(crate) fn stop_requested() -> bool {
    STOP.get().is_some_and(|stop| stop.load(Ordering::Relaxed))
}

/// From here on, the first request to stop is remembered, and the second ends the process at once.
fn watch_for_requests() {
    STOP.get_or_init(|| {
        let stop = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            // Where a handler cannot be set, the signal ends the process as it always did.
            let _ = flag::register_conditional_shutdown(signal, INTERRUPTED, Arc::clone(&stop));
            let _ = flag::register(signal, Arc::clone(&stop));
        }
        stop
    });
}

/// Draws and writes a release. Whatever ends it early, an interrupt, an error or a defect, a line
/// says whether the charge stands and what to do next.
pub(crate) fn watched(
    agreed: &Agreed,
    printer: &Printer,
    draw: impl FnOnce() -> Result<Published, potluck_party::Error>,
) -> Result<Published> {
    watch_for_requests();
    let error: Error = match guarded(draw) {
        Ok(Ok(published)) => return Ok(published),
        // It says so itself.
        Ok(Err(error @ potluck_party::Error::Interrupted { .. })) => return Err(error.into()),
        Ok(Err(error)) => error.into(),
        Err(panicked) => panicked.into(),
    };
    printer.note(match agreed.is_charged() {
        Ok(true) => CHARGED,
        Ok(false) => "Nothing was charged, and nothing was published: the same command begins anew.",
        // The ledger says why not, which is an error of its own.
        Err(_) => "Whether it was charged could not be looked up: see `potluck ledger show`.",
    });
    Err(error)
}

const CHARGED: &str = "The charge stands, and the release is not out yet. Run the same command again: it goes on where it stopped, with the same noise and at no further charge.";
