//! What every request can reach.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use moka::sync::Cache;
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};
use tokio::task::spawn_blocking;

use crate::fits::Fits;
use crate::metrics::Metrics;
use crate::pages::{Created, Rendered};
use crate::{Config, Error, Store};

/// Rendered pages of studies kept in memory.
const PAGES: u64 = 500;
/// Forms that are remembered, and how long.
const FORMS: u64 = 1_000;
const FORMS_KEPT: Duration = Duration::from_secs(24 * 3600);

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

    /// The right to upload for a party, if nobody else is at it.
    pub(crate) fn upload_slot(&self, study: &str, party: &str) -> Option<OwnedMutexGuard<()>> {
        let mut uploads = self.uploads.lock().unwrap_or_else(PoisonError::into_inner);
        uploads.retain(|_, slot| Arc::strong_count(slot) > 1);
        let slot = uploads.entry((study.to_owned(), party.to_owned())).or_default();
        Arc::clone(slot).try_lock_owned().ok()
    }
}
