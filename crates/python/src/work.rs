//! Long calls: work on another thread while this one looks after Python.
//!
//! The calling thread lets go of the interpreter, wakes up now and then to run signal handlers and to report progress,
//! and asks the work to stop if either raises. So Ctrl-C works, and the work itself never waits for the interpreter.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use potluck_party::{Error as PartyError, Observer};
use pyo3::prelude::*;

use crate::errors::Error;

/// How often Python gets a turn.
const TURN: Duration = Duration::from_millis(50);

/// How far the work is, and whether it shall stop.
#[derive(Default)]
struct Watch {
    stop: AtomicBool,
    /// The pass, from 1; 0 before the first.
    pass: AtomicU32,
    rows: AtomicU64,
}

impl Observer for Watch {
    fn stage(&self, _name: &str, position: u32) {
        self.rows.store(0, Ordering::Relaxed);
        self.pass.store(position + 1, Ordering::Relaxed);
    }

    fn rows(&self, done: u64) {
        // Threads report out of order.
        self.rows.fetch_max(done, Ordering::Relaxed);
    }

    fn stop(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

impl Watch {
    /// Lets Python handle signals, and tells the caller how far we are.
    fn turn(&self, progress: Option<&Py<PyAny>>, last: &mut (u32, u64)) -> PyResult<()> {
        Python::attach(|py| {
            py.check_signals()?;
            let now = (self.pass.load(Ordering::Relaxed), self.rows.load(Ordering::Relaxed));
            if let Some(progress) = progress
                && now != *last
            {
                *last = now;
                progress.call1(py, now)?;
            }
            Ok(())
        })
    }
}

/// Lets Python handle signals, from a thread that has let go of the interpreter.
pub(crate) fn handle_signals() -> PyResult<()> {
    Python::attach(|py: Python<'_>| -> PyResult<()> { py.check_signals() })
}

/// Runs `work`, on which nothing hangs. If a signal handler raises, it is left to come to its end alone.
pub(crate) fn run_apart<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Error> {
    py.detach(|| {
        let (sender, receiver) = channel();
        let worker = std::thread::spawn(move || {
            // Nobody may be waiting any more.
            let _ = sender.send(work());
        });
        loop {
            match receiver.recv_timeout(TURN) {
                Ok(result) => return Ok(result),
                Err(RecvTimeoutError::Timeout) => handle_signals()?,
                Err(RecvTimeoutError::Disconnected) => match worker.join() {
                    Ok(()) => unreachable!("it sends before it ends"),
                    Err(panic) => std::panic::resume_unwind(panic),
                },
            }
        }
    })
}

/// Runs `work`; `progress` is called with the number of the pass and of the rows done in it.
///
/// If a signal handler or `progress` raises, the work is stopped and the exception is raised when it has ended, whatever
/// the work came to: a release that was published all the same can be asked for again at no charge.
pub(crate) fn run<T: Send>(
    py: Python<'_>,
    progress: Option<&Py<PyAny>>,
    work: impl FnOnce(&dyn Observer) -> Result<T, PartyError> + Send,
) -> Result<T, Error> {
    let watch = Watch::default();
    let (result, raised) = py.detach(|| {
        std::thread::scope(|scope| {
            let (sender, receiver) = channel::<()>();
            let worker = scope.spawn(|| {
                let result = work(&watch);
                // Wakes the other end up, which waits as long as this end is there.
                drop(sender);
                result
            });
            let (mut raised, mut last) = (None, (0, 0));
            while let Err(RecvTimeoutError::Timeout) = receiver.recv_timeout(TURN) {
                if raised.is_none()
                    && let Err(error) = watch.turn(progress, &mut last)
                {
                    watch.stop.store(true, Ordering::Relaxed);
                    raised = Some(error);
                }
            }
            match worker.join() {
                Ok(result) => (result, raised),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        })
    });
    match (raised, result) {
        (None, result) => Ok(result?),
        (Some(raised), result) => {
            if let Err(PartyError::Interrupted { .. }) = result {
                let note = "potluck: the charge stands, and the stages so far are stored; make the same call again to go on from there at no further charge.";
                // Python 3.10 has no notes.
                let _ = raised.value(py).call_method1("add_note", (note,));
            }
            Err(raised.into())
        }
    }
}
