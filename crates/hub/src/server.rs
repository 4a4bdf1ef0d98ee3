//! The server: sockets, TLS, time-outs, and what happens around every request.

use std::any::Any;
use std::fs::File;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::{ConnectInfo, DefaultBodyLimit, MatchedPath, Request, State};
use axum::http::{HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::{Next, from_fn, from_fn_with_state, map_response_with_state};
use axum::response::{IntoResponse, Response};
use axum_server::Handle;
use axum_server::tls_rustls::RustlsAcceptor;
use hyper_util::rt::TokioTimer;
use potluck_release::guard::last_place;
use tokio::runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::compression::CompressionLayer;
use tower_http::timeout::{RequestBodyTimeoutLayer, ResponseBodyTimeoutLayer};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::api::problem::Problem;
use crate::app::{App, Shared};
use crate::certificate::Certificate;
use crate::connections::Connections;
use crate::limits::{self, Limits, limit_rate};
use crate::metrics::{MethodLabel, RequestLabels, RouteLabels};
use crate::store::make_private;
use crate::{Config, Error, api, pages};

/// The longest that the hub thinks about a request.
const ANSWER: Duration = Duration::from_secs(60);
/// How long requests may go on when the hub is told to stop.
const GRACE: Duration = Duration::from_secs(20);
/// The largest body, but for uploads, whose limit follows from the study.
const BODY: usize = 1 << 20;

/// Runs a hub until it is told to stop (SIGTERM, SIGINT). `ready` is called with its address once
/// it listens.
pub fn serve(config: Config, ready: impl FnOnce(&str) + Send) -> Result<(), Error> {
    let runtime = runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|source| Error::Listen { address: config.listen.to_string(), source })?;
    let result = runtime.block_on(run(config, ready));
    // A computation that nobody waits for any more does not hold up the end.
    runtime.shutdown_timeout(Duration::from_secs(1));
    result
}

async fn run(config: Config, ready: impl FnOnce(&str) + Send) -> Result<(), Error> {
    let cannot_listen = |source| Error::Listen { address: config.listen.to_string(), source };
    let tls = match &config.tls {
        Some(tls) => Some(Certificate::load(tls).await?),
        None => None,
    };
    let listener = TcpListener::bind(config.listen).map_err(cannot_listen)?;
    listener.set_nonblocking(true).map_err(cannot_listen)?;
    let address = listener.local_addr().map_err(cannot_listen)?;
    let _only_one = lock(&config.data)?;
    let app = App::open(config.clone())?;
    app.blocking(|app| app.store.publish_missing_datasets()).await?;
    let service = router(&app).into_make_service_with_connect_info::<SocketAddr>();
    let handle = Handle::new();
    tokio::spawn(stop_when_told(handle.clone())?);
    ready(&format!("{}://{address}", if tls.is_some() { "https" } else { "http" }));
    tracing::info!(%address, tls = tls.is_some(), data = %config.data.display(), "listening");
    let silence = config.client_timeout;
    let patient = |builder: &mut hyper_util::server::conn::auto::Builder<_>| {
        builder.http1().timer(TokioTimer::new()).header_read_timeout(silence);
    };
    let connections = Connections::new(config.connections);
    // HTTP/1 alone: telling the versions apart would let silent clients stay, and proxies speak the
    // others.
    let server = axum_server::from_tcp(listener).map_err(cannot_listen)?.handle(handle);
    let result = if let Some(tls) = tls {
        let acceptor =
            RustlsAcceptor::new(tls.config.clone()).handshake_timeout(silence).acceptor(connections);
        tokio::spawn(tls.keep_current(listen_for(SignalKind::hangup())?));
        let mut server = server.acceptor(acceptor).http1_only();
        patient(server.http_builder());
        server.serve(service).await
    } else {
        let mut server = server.acceptor(connections).http1_only();
        patient(server.http_builder());
        server.serve(service).await
    };
    result.map_err(cannot_listen)?;
    tracing::info!("stopped");
    Ok(())
}

/// Makes sure that no other hub uses the data folder: what hubs remember would contradict each
/// other.
fn lock(data: &Path) -> Result<File, Error> {
    make_private(data)?;
    let path = data.join("hub.lock");
    let file = File::create(&path).map_err(Error::file(&path))?;
    file.try_lock().map_err(|_| {
        Error::Config(format!("another hub uses {}; stop it, or choose another data folder", data.display()))
    })?;
    Ok(file)
}

fn listen_for(kind: SignalKind) -> Result<Signal, Error> {
    signal(kind).map_err(|error| Error::Config(format!("cannot wait for signals: {error}")))
}

/// Waits for SIGTERM or SIGINT, then lets requests that are under way finish.
fn stop_when_told(handle: Handle<SocketAddr>) -> Result<impl Future<Output = ()>, Error> {
    let mut terminate = listen_for(SignalKind::terminate())?;
    let mut interrupt = listen_for(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        tracing::info!("stopping");
        handle.graceful_shutdown(Some(GRACE));
    })
}

/// Everything that the hub answers, with what goes around it.
fn router(app: &Shared) -> Router {
    // A client that sends no byte for so long is let go, in the head of a request as in its body.
    let silence = app.config.client_timeout;
    let transfers = api::transfers(app).layer(RequestBodyTimeoutLayer::new(silence));
    let answers = Router::new()
        .merge(api::router(app))
        .merge(pages::router(app))
        .fallback(not_found)
        .method_not_allowed_fallback(method_not_allowed)
        .layer(DefaultBodyLimit::max(BODY))
        .layer(RequestBodyTimeoutLayer::new(silence))
        .layer(from_fn(answer_in_time))
        .layer(CompressionLayer::new());
    let mut router = answers.merge(transfers).layer(ResponseBodyTimeoutLayer::new(4 * silence));
    if let Some(requests) = app.config.requests_per_minute {
        let limits = Arc::new(Limits::new(requests, app.config.trusted_proxy));
        router = router.layer(from_fn_with_state(limits, limit_rate));
    }
    router
        .layer(CatchPanicLayer::custom(panicked))
        .layer(from_fn_with_state(Arc::clone(app), pages::as_pages))
        .layer(map_response_with_state(Arc::clone(app), secure))
        .layer(from_fn_with_state(Arc::clone(app), record))
}

/// The answer to a request that panicked. The log gets the place in the source code and never what
/// the panic said, which may quote what was sent.
fn panicked(_said: Box<dyn Any + Send>) -> Response {
    tracing::error!(place = last_place(), "a request panicked");
    Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "the hub failed; its log says where").into_response()
}

async fn not_found(uri: Uri) -> Problem {
    let detail = if uri.path().starts_with("/api/") {
        "there is nothing at this address; /openapi.json lists what there is"
    } else {
        "this hub has no page at this address"
    };
    Problem::new(StatusCode::NOT_FOUND, detail)
}

async fn method_not_allowed() -> Problem {
    Problem::new(
        StatusCode::METHOD_NOT_ALLOWED,
        "this address does not take that method; /openapi.json lists what it takes",
    )
}

/// Gives up on what takes too long.
async fn answer_in_time(request: Request, next: Next) -> Response {
    match tokio::time::timeout(ANSWER, next.run(request)).await {
        Ok(response) => response,
        Err(_) => Problem::busy().into_response(),
    }
}

/// Headers that keep browsers careful, on every answer.
async fn secure(State(app): State<Shared>, mut response: Response) -> Response {
    let headers = response.headers_mut();
    if app.config.is_https() {
        headers.insert(header::STRICT_TRANSPORT_SECURITY, HeaderValue::from_static("max-age=31536000"));
    }
    let fixed = [
        ("x-content-type-options", "nosniff"),
        ("x-frame-options", "DENY"),
        ("referrer-policy", "no-referrer"),
        ("cross-origin-opener-policy", "same-origin"),
        ("permissions-policy", "camera=(), geolocation=(), microphone=()"),
    ];
    for (name, value) in fixed {
        headers.insert(name, HeaderValue::from_static(value));
    }
    if !headers.contains_key(header::CONTENT_SECURITY_POLICY) {
        headers.insert(
            header::CONTENT_SECURITY_POLICY,
            HeaderValue::from_static(
                "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
            ),
        );
    }
    response
}

/// Counts and logs a request: the route and the outcome, never a query, a header or a body.
async fn record(
    State(app): State<Shared>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    request: Request,
    next: Next,
) -> Response {
    let began = Instant::now();
    let client = limits::client(peer.ip(), request.headers(), app.config.trusted_proxy);
    let route = request.extensions().get::<MatchedPath>().map_or("none", MatchedPath::as_str).to_owned();
    let path = request.uri().path().to_owned();
    let method = request.method().clone();
    let response = next.run(request).await;
    let status = response.status().as_u16();
    let label = match method {
        Method::GET | Method::HEAD => MethodLabel::GET,
        Method::POST => MethodLabel::POST,
        Method::PUT => MethodLabel::PUT,
        _ => MethodLabel::Other,
    };
    let seconds = began.elapsed().as_secs_f64();
    let of_route = RouteLabels { method: label.clone(), route: route.clone() };
    app.metrics.seconds.get_or_create(&of_route).observe(seconds);
    app.metrics.requests.get_or_create(&RequestLabels { method: label, route, status }).inc();
    tracing::info!(%method, path, status, seconds, %client, "answered");
    response
}

/// Sends what happens to standard error, as text or, for machines, as JSON lines.
pub fn log_to_stderr(json: bool) {
    let asked = std::env::var("POTLUCK_HUB_LOG").ok().and_then(|asked| asked.parse().ok());
    let filter: Targets = asked.unwrap_or_else(|| Targets::new().with_default(LevelFilter::INFO));
    let lines = tracing_subscriber::fmt::layer().with_writer(io::stderr).with_target(false);
    let registry = tracing_subscriber::registry().with(filter);
    // Tests may have set one before.
    let _ = if json {
        registry.with(lines.json()).try_init()
    } else {
        registry.with(lines.with_ansi(false)).try_init()
    };
}

#[cfg(test)]
mod tests {
    use std::sync::{Mutex, PoisonError};

    use super::*;

    /// A log in memory.
    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Log {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn the_log_says_where_a_request_panicked_and_not_what_it_said() {
        let log = Log::default();
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt().with_writer(move || writer.clone()).finish();
        let secret = "987654321.125";
        let answer = tracing::subscriber::with_default(subscriber, || {
            assert!(potluck_release::guard::guarded(|| panic!("{secret}")).is_err());
            panicked(Box::new(secret.to_owned()))
        });
        assert_eq!(answer.status(), StatusCode::INTERNAL_SERVER_ERROR);
        let log = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
        assert!(log.contains("a request panicked") && log.contains("server.rs:"), "{log}");
        assert!(!log.contains(secret), "{log}");
    }
}
