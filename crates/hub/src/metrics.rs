//! Numbers for those who run the hub, in the form that Prometheus reads.

use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use crate::process::Process;

/// Upper edges of the classes of durations, in seconds.
const SECONDS: [f64; 11] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0, 30.0];

/// What a request is counted under: never an address or a token.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(crate) struct RequestLabels {
    pub(crate) method: MethodLabel,
    /// The route, not the path.
    pub(crate) route: String,
    pub(crate) status: u16,
}

/// What the time of a request is counted under.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(crate) struct RouteLabels {
    pub(crate) method: MethodLabel,
    pub(crate) route: String,
}

/// Methods that the hub knows.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelValue)]
#[expect(clippy::upper_case_acronyms, reason = "methods are written so")]
pub(crate) enum MethodLabel {
    GET,
    POST,
    PUT,
    Other,
}

/// All the numbers.
pub(crate) struct Metrics {
    registry: Registry,
    pub(crate) requests: Family<RequestLabels, Counter>,
    pub(crate) seconds: Family<RouteLabels, Histogram, fn() -> Histogram>,
    pub(crate) fits: Counter,
    pub(crate) uploaded_bytes: Counter,
    pub(crate) studies: Gauge,
    pub(crate) releases: Gauge,
    process: Process,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::default();
        let process = Process::new(&mut registry);
        let metrics = Self {
            requests: Family::default(),
            seconds: Family::new_with_constructor(|| Histogram::new(SECONDS)),
            fits: Counter::default(),
            uploaded_bytes: Counter::default(),
            studies: Gauge::default(),
            releases: Gauge::default(),
            process,
            registry: Registry::default(),
        };
        let hub = registry.sub_registry_with_prefix("potluck_hub");
        hub.register("requests", "Requests answered", metrics.requests.clone());
        hub.register("request_seconds", "Time to answer a request", metrics.seconds.clone());
        hub.register("fits", "Regressions computed", metrics.fits.clone());
        hub.register("uploaded_bytes", "Bytes of releases received", metrics.uploaded_bytes.clone());
        hub.register("studies", "Studies", metrics.studies.clone());
        hub.register("releases", "Releases published", metrics.releases.clone());
        Self { registry, ..metrics }
    }
}

impl Metrics {
    /// The text that Prometheus reads.
    pub(crate) fn text(&self) -> String {
        self.process.look();
        let mut text = String::new();
        encode(&mut text, &self.registry).expect("text has room for numbers");
        text
    }
}
