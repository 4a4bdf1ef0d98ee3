//! Hubs: what the public asks of them. Nothing is taken on a hub's word that can be checked.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use potluck_client::{HubAddress, Options, StudyAddress};
use potluck_release::events::EventLog;
use potluck_release::exchange::StudySummary;
use potluck_release::files::Existing;
use pyo3::prelude::*;

use crate::dataset::PublicDataset;
use crate::errors::{Error, StaleDatasetWarning};
use crate::study::Study;
use crate::{json, work};

/// Studies that are asked for at a time.
const PAGE: u32 = 100;

/// How to reach a hub.
#[derive(Clone)]
struct Way {
    address: HubAddress,
    ca_certificate: Option<PathBuf>,
    insecure_http: bool,
    patience: Duration,
}

impl Way {
    fn hub(self) -> Result<potluck_client::Hub, potluck_client::Error> {
        let options = Options {
            ca_certificate: self.ca_certificate,
            insecure_http: self.insecure_http,
            patience: self.patience,
            ..Options::default()
        };
        potluck_client::Hub::new(&self.address, options)
    }

    /// Asks the hub for something, while other Python threads run and Ctrl-C works.
    fn ask<T: Send + 'static>(
        &self,
        py: Python<'_>,
        request: impl FnOnce(&potluck_client::Hub) -> Result<T, potluck_client::Error> + Send + 'static,
    ) -> Result<T, Error> {
        let way = self.clone();
        Ok(work::run_apart(py, None, move |_| request(&way.hub()?))??)
    }
}

/// A hub, where parties publish and everyone reads; see potluck.connect.
#[pyclass(frozen, module = "potluck")]
pub(crate) struct Hub {
    way: Way,
    /// The study whose page was named.
    study: Option<String>,
}

/// A hub at an address. Nothing is sent yet; see potluck.connect.
#[pyfunction]
#[pyo3(signature = (url, *, ca_certificate, insecure_http, retry_for))]
pub(crate) fn connect(
    url: &str,
    ca_certificate: Option<PathBuf>,
    insecure_http: bool,
    retry_for: f64,
) -> Result<Hub, Error> {
    let (address, study) = match StudyAddress::parse(url) {
        Ok(page) => (page.hub().clone(), Some(page.id().to_owned())),
        Err(_) => (HubAddress::parse(url)?, None),
    };
    let patience = Duration::try_from_secs_f64(retry_for)
        .map_err(|_| Error::Usage("retry_for is a number of seconds, 0 or more".to_owned()))?;
    let way = Way { address, ca_certificate, insecure_http, patience };
    // Finds fault with the address and the certificate now.
    way.clone().hub()?;
    Ok(Hub { way, study })
}

#[pymethods]
impl Hub {
    /// Its address.
    #[getter]
    fn url(&self) -> String {
        self.way.address.to_string()
    }

    /// All studies at the hub in short, newest first, by the hub's word.
    fn studies<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>, Error> {
        let studies = self.way.ask(py, |hub| {
            let (mut studies, mut after) = (Vec::<StudySummary>::new(), None);
            loop {
                let page = hub.studies(PAGE, after)?;
                let ended = page.studies.is_empty();
                studies.extend(page.studies);
                after = page.next;
                if ended || after.is_none() {
                    return Ok(studies);
                }
            }
        })?;
        Ok(json::to_python(py, &studies)?)
    }

    /// A study at the hub, by its id or the address of its page; without, the one whose page was
    /// connected to. Nothing is sent yet.
    #[pyo3(signature = (id=None))]
    fn study(&self, id: Option<&str>) -> Result<HubStudy, Error> {
        let address = match (id, &self.study) {
            (Some(page), _) if page.contains("://") => StudyAddress::parse(page)?,
            (Some(id), _) => StudyAddress::parse(&StudyAddress::new(&self.way.address, id).to_string())?,
            (None, Some(id)) => StudyAddress::new(&self.way.address, id),
            (None, None) => {
                return Err(Error::Usage(
                    "name the study by its id, or connect to the address of its page".to_owned(),
                ));
            }
        };
        if address.hub() != &self.way.address {
            return Err(Error::Usage(format!(
                "{address} is at another hub; connect to that one, or give the study's id"
            )));
        }
        Ok(HubStudy { way: self.way.clone(), address, heads: Mutex::default() })
    }

    fn __repr__(&self) -> String {
        format!("<Hub {}>", self.way.address)
    }
}

/// A study at a hub.
#[pyclass(frozen, module = "potluck")]
pub(crate) struct HubStudy {
    way: Way,
    address: StudyAddress,
    /// By study, the head of its event log when it was last verified.
    heads: Mutex<BTreeMap<String, String>>,
}

impl HubStudy {
    /// Keeps the heads of logs that verified. A log that does not go on from where it was seen last
    /// was rolled back.
    fn keep_heads<'a>(&self, logs: impl IntoIterator<Item = &'a EventLog>) -> Result<(), Error> {
        let mut heads = self.heads.lock().unwrap_or_else(PoisonError::into_inner);
        for log in logs {
            let id = log.study().id();
            if let Some(head) = heads.get(id).filter(|head| !log.contains(head)) {
                return Err(Error::Integrity(format!(
                    "the event log of study {id} from {} does not go on from where it was seen before: the event {head} is not in it; do not use it, and ask whoever runs the hub",
                    self.way.address
                )));
            }
            heads.insert(id.to_owned(), log.head().to_owned());
        }
        Ok(())
    }
}

#[pymethods]
impl HubStudy {
    /// The study's id.
    #[getter]
    fn id(&self) -> &str {
        self.address.id()
    }

    /// The address of its page.
    #[getter]
    fn url(&self) -> String {
        self.address.to_string()
    }

    /// Who has accepted and released, and what is promised, by the hub's word.
    fn details<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>, Error> {
        let id = self.address.id().to_owned();
        let details = self.way.ask(py, move |hub| hub.details(&id))?;
        Ok(json::to_python(py, &details)?)
    }

    /// The sealed study itself: its seal is recomputed, and its id is the one that was asked for.
    fn contract(&self, py: Python<'_>) -> Result<Study, Error> {
        let id = self.address.id().to_owned();
        let contract = self.way.ask(py, move |hub| hub.contract(&id))?;
        Ok(Study::sealed_from(contract.study, contract.text))
    }

    /// Everything that has happened to it, verified from the first event on.
    fn events<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>, Error> {
        let id = self.address.id().to_owned();
        let log = self.way.ask(py, move |hub| hub.log(&id))?;
        self.keep_heads([&log.log])?;
        Ok(json::to_python(py, &log.log.events())?)
    }

    /// By study, this one and those that it extends: the hash of the last event of its log, as
    /// `events` or `dataset` last verified it. Keep it: a log that does not hold it later was
    /// rolled back, which these two notice by themselves.
    #[getter]
    fn heads(&self) -> BTreeMap<String, String> {
        self.heads.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Its public dataset, verified: the study's seal, every release and its signature, and the
    /// event log. Warns (`StaleDatasetWarning`) if the log speaks of a later one.
    #[pyo3(signature = (*, progress=None))]
    fn dataset(&self, py: Python<'_>, progress: Option<&Bound<'_, PyAny>>) -> Result<PublicDataset, Error> {
        let (way, id) = (self.way.clone(), self.address.id().to_owned());
        let verified = work::reporting(py, progress, 0, "B", |report| {
            work::run_apart(py, report, move |watch| {
                let hub = way.hub()?;
                let failed = |source| potluck_client::Error::File { path: std::env::temp_dir(), source };
                let folder = tempfile::tempdir().map_err(failed)?;
                let out = folder.path().join("public.parquet");
                let study = hub.contract(&id)?.study;
                let tell = &mut |done, total| watch.transferred(done, total);
                hub.verified_dataset(&study, &out, Existing::Keep, tell)
            })
        })??;
        self.keep_heads(verified.logs.iter().map(|log| &log.log))?;
        if !verified.latest {
            let message = format!(
                "{} sent a public dataset of study {} that is not the latest: its event log, head {}, speaks of a later one; ask again, and if it stays so, ask whoever runs the hub",
                self.way.address,
                self.address.id(),
                verified.logs[0].log.head()
            );
            let warning = py.get_type::<StaleDatasetWarning>();
            py.import("warnings")?.call_method1("warn", (message, warning))?;
        }
        Ok(PublicDataset::verified(verified.dataset))
    }

    fn __repr__(&self) -> String {
        format!("<HubStudy {}>", self.address)
    }
}
