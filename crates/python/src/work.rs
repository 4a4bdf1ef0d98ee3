//! Long calls: work on another thread while this one looks after Python.
//!
//! The calling thread lets go of the interpreter, wakes up now and then to run signal handlers and
//! to report progress, and asks the work to stop if either raises. So Ctrl-C works, and the work
//! itself never waits for the interpreter.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use potluck_party::{Error as PartyError, Observer};
use potluck_release::guard::guarded;
use pyo3::prelude::*;

use crate::errors::Error;

/// How often Python gets a turn.
const TURN: Duration = Duration::from_millis(50);

/// How far the work is, and whether it shall stop.
#[derive(Default)]
pub(crate) struct Watch {
    stop: AtomicBool,
    /// The pass, from 1; 0 before the first.
    pass: AtomicU32,
    /// Rows or bytes of this pass.
    done: AtomicU64,
    /// How many there are in all; 0 if that is not known here.
    total: AtomicU64,
}

impl Observer for Watch {
    fn stage(&self, _name: &str, position: u32) {
        self.done.store(0, Ordering::Relaxed);
        self.pass.store(position + 1, Ordering::Relaxed);
    }

    fn rows(&self, done: u64) {
        // Threads report out of order.
        self.done.fetch_max(done, Ordering::Relaxed);
    }

    fn stop(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

impl Watch {
    /// So many bytes have come, of so many if that is known.
    pub(crate) fn transferred(&self, done: u64, total: Option<u64>) {
        self.pass.store(1, Ordering::Relaxed);
        self.total.store(total.unwrap_or(0), Ordering::Relaxed);
        self.done.store(done, Ordering::Relaxed);
    }

    /// Lets Python handle signals, and tells the caller how far we are.
    fn turn(&self, progress: Option<&Py<PyAny>>, last: &mut (u32, u64)) -> PyResult<()> {
        Python::attach(|py| {
            py.check_signals()?;
            let now = (self.pass.load(Ordering::Relaxed), self.done.load(Ordering::Relaxed));
            if let Some(progress) = progress
                && now != *last
            {
                *last = now;
                let total = self.total.load(Ordering::Relaxed);
                if total > 0 {
                    progress.call1(py, (now.0, now.1, total))?;
                } else {
                    progress.call1(py, now)?;
                }
            }
            Ok(())
        })
    }
}

/// Does something that takes a while, but not long, and lets other threads of Python run meanwhile.
/// Should it panic, the exception does not say what the panic said, which may be a value.
pub(crate) fn away<T: Send, E: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> Result<T, E> + Send,
) -> Result<T, Error>
where
    Error: From<E>,
{
    Ok(py.detach(|| guarded(work))??)
}

/// Lets Python handle signals, from a thread that has let go of the interpreter.
pub(crate) fn handle_signals() -> PyResult<()> {
    Python::attach(|py: Python<'_>| -> PyResult<()> { py.check_signals() })
}

/// Calls `call` with what shall be told of progress, if anything, as potluck/_progress.py makes it
/// of what the user asked for. `total` is 0 where it is not known.
pub(crate) fn reporting<T>(
    py: Python<'_>,
    progress: Option<&Bound<'_, PyAny>>,
    total: u64,
    unit: &str,
    call: impl FnOnce(Option<&Py<PyAny>>) -> Result<T, Error>,
) -> Result<T, Error> {
    let manager = py.import("potluck._progress")?.call_method1("reporting", (progress, total, 1, unit))?;
    let report = manager.call_method0("__enter__")?;
    let report = (!report.is_none()).then(|| report.unbind());
    let result = call(report.as_ref());
    manager.call_method1("__exit__", (py.None(), py.None(), py.None()))?;
    result
}

/// Runs `work`, on which nothing hangs. If a signal handler or `progress` raises, it is left to
/// come to its end alone.
pub(crate) fn run_apart<T: Send + 'static>(
    py: Python<'_>,
    progress: Option<&Py<PyAny>>,
    work: impl FnOnce(&Watch) -> T + Send + 'static,
) -> Result<T, Error> {
    py.detach(|| {
        let watch = Arc::new(Watch::default());
        let (sender, receiver) = channel();
        let watched = Arc::clone(&watch);
        std::thread::spawn(move || {
            // Nobody may be waiting any more.
            let _ = sender.send(guarded(|| work(&watched)));
        });
        let mut last = (0, 0);
        loop {
            match receiver.recv_timeout(TURN) {
                Ok(result) => {
                    watch.turn(progress, &mut last)?;
                    return Ok(result?);
                }
                Err(RecvTimeoutError::Timeout) => watch.turn(progress, &mut last)?,
                Err(RecvTimeoutError::Disconnected) => unreachable!("it sends before it ends"),
            }
        }
    })
}

/// Runs `work`; `progress` is called with the number of the pass and of the rows done in it, and at
/// last with all rows of the last pass.
///
/// If a signal handler or `progress` raises, the work is stopped and the exception is raised when
/// it has ended, whatever the work came to: a release that was published all the same can be asked
/// for again at no charge.
pub(crate) fn run<T: Send, E: Into<Error> + Send>(
    py: Python<'_>,
    progress: Option<&Py<PyAny>>,
    work: impl FnOnce(&dyn Observer) -> Result<T, E> + Send,
) -> Result<T, Error> {
    let watch = Watch::default();
    let (result, raised) = py.detach(|| {
        std::thread::scope(|scope| {
            let (sender, receiver) = channel::<()>();
            let worker = scope.spawn(|| {
                let result = guarded(|| work(&watch));
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
            let result = worker.join().expect("its panics are caught");
            if matches!(result, Ok(Ok(_))) && raised.is_none() && watch.pass.load(Ordering::Relaxed) > 0 {
                watch.total.store(watch.done.load(Ordering::Relaxed), Ordering::Relaxed);
                raised = watch.turn(progress, &mut (0, 0)).err();
            }
            (result, raised)
        })
    });
    match (raised, result) {
        (None, result) => result?.map_err(Into::into),
        (Some(raised), result) => {
            if let Ok(Err(error)) = result
                && let Error::Party(PartyError::Interrupted { .. }) = error.into()
            {
                let note = "potluck: the charge stands, and the stages so far are stored; make the same call again to go on from there at no further charge.";
                // Python 3.10 has no notes.
                let _ = raised.value(py).call_method1("add_note", (note,));
            }
            Err(raised.into())
        }
    }
}
