//! What every request can reach.

use std::collections::HashMap;
use std::num::NonZero;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use moka::sync::Cache;
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard, Semaphore};
use tokio::task::spawn_blocking;

use crate::fits::Fits;
use crate::metrics::Metrics;
use crate::remembered::{Created, Rendered};
use crate::store::Refusal;
use crate::{Config, Error, Store};

/// Rendered pages of studies kept in memory.
const PAGES: u64 = 500;
/// Forms that are remembered, and how long.
const FORMS: u64 = 1_000;
const FORMS_KEPT: Duration = Duration::from_secs(24 * 3600);

/// Computations that may wait for a core; whoever comes then is asked to come back.
const MOST_WAITING: usize = 400;

/// The running hub.
pub(crate) struct App {
    pub(crate) config: Config,
    pub(crate) store: Store,
    pub(crate) fits: Fits,
    pub(crate) metrics: Metrics,
    /// Pages of studies as they were last rendered, by study.
    pub(crate) rendered: Cache<String, Arc<Rendered>>,
    /// What came of forms that create studies, so that sending one twice creates one study.
    pub(crate) created: Cache<Created, String>,
    /// A core for each computation that takes long, and places to wait for one.
    cores: Arc<Semaphore>,
    waiting: Arc<Semaphore>,
    /// One upload of a party at a time.
    uploads: Mutex<HashMap<(String, String), Slot>>,
}

/// Held by whoever uploads.
type Slot = Arc<AsyncMutex<()>>;

/// How handlers hold it.
pub(crate) type Shared = Arc<App>;

impl App {
    pub(crate) fn open(config: Config) -> Result<Shared, Error> {
        let store = Store::open(&config.data)?;
        Ok(Arc::new(Self {
            config,
            store,
            fits: Fits::new(),
            metrics: Metrics::default(),
            rendered: Cache::new(PAGES),
            created: Cache::builder().max_capacity(FORMS).time_to_live(FORMS_KEPT).build(),
            cores: Arc::new(Semaphore::new(std::thread::available_parallelism().map_or(1, NonZero::get))),
            waiting: Arc::new(Semaphore::new(MOST_WAITING)),
            uploads: Mutex::default(),
        }))
    }

    /// Does what may wait for the disk or take long, away from the threads that serve connections.
    pub(crate) async fn blocking<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Shared) -> T + Send + 'static,
    ) -> T {
        let app = Arc::clone(self);
        match spawn_blocking(move || work(&app)).await {
            Ok(result) => result,
            // The panic goes on here, where the server turns it into an answer.
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        }
    }

    /// Computes something that takes long: no more at once than there are cores, even if whoever
    /// asked has gone away.
    pub(crate) async fn compute<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Shared) -> T + Send + 'static,
    ) -> Result<T, Refusal> {
        let place = Arc::clone(&self.waiting).try_acquire_owned().map_err(|_| Refusal::Busy)?;
        let core = Arc::clone(&self.cores).acquire_owned().await.map_err(|_| Refusal::Busy)?;
        drop(place);
        let work = move |app: &Shared| {
            let _until_done = core;
            work(app)
        };
        Ok(self.blocking(work).await)
    }

    /// The right to upload for a party, if nobody else is at it.
    pub(crate) fn upload_slot(&self, study: &str, party: &str) -> Option<OwnedMutexGuard<()>> {
        let mut uploads = self.uploads.lock().unwrap_or_else(PoisonError::into_inner);
        uploads.retain(|_, slot| Arc::strong_count(slot) > 1);
        let slot = uploads.entry((study.to_owned(), party.to_owned())).or_default();
        Arc::clone(slot).try_lock_owned().ok()
    }
}
