//! The client against a hub that says what a script tells it to: broken connections, wrong answers,
//! refusals.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use potluck_client::{Error, FileDigest, FitQuery, Hub, HubAddress, Options, Token};
use potluck_fixtures::{pair, sealed_with_text, signing_key};
use potluck_release::events::{Acceptance, Change, Event};
use potluck_release::files::Existing;
use potluck_release::{Fault, Study};

const SECRET: &str = "hidden-word";

fn study_text(key: u8) -> (Study, String) {
    sealed_with_text(&pair().to_string(), key)
}

/// What was asked.
struct Asked {
    /// Method and target.
    line: String,
    headers: BTreeMap<String, String>,
    body: Vec<u8>,
}

/// What the hub does with one connection.
enum Step {
    /// Hears the request out and answers.
    Answer(String),
    /// Answers as soon as it has seen the head of the request.
    AnswerEarly(String),
    /// Takes so many bytes of the body, then hangs up.
    HangUp(usize),
}

fn answer(status: &str, headers: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {length}\r\n{headers}\r\n{body}")
}

fn ok(body: &str) -> Step {
    Step::Answer(answer("200 OK", "Content-Type: application/json\r\n", body))
}

fn problem(status: &str, more: &str, body: &str) -> Step {
    let headers = format!("Content-Type: application/problem+json\r\n{more}");
    Step::Answer(answer(status, &headers, body))
}

fn state(received: u64, complete: bool) -> Step {
    ok(&format!("{{\"received\":{received},\"complete\":{complete}}}"))
}

/// One connection by the script.
fn converse<S: Read + Write>(stream: S, step: &Step) -> Asked {
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    stream.read_line(&mut line).unwrap();
    let line = line.trim_end().trim_end_matches(" HTTP/1.1").to_owned();
    let mut headers = BTreeMap::new();
    loop {
        let mut header = String::new();
        stream.read_line(&mut header).unwrap();
        let Some((name, value)) = header.trim_end().split_once(": ") else { break };
        headers.insert(name.to_lowercase(), value.to_owned());
    }
    let mut body = Vec::new();
    if !matches!(step, Step::AnswerEarly(_)) {
        if headers.contains_key("expect") {
            stream.get_mut().write_all(b"HTTP/1.1 100 Continue\r\n\r\n").unwrap();
        }
        let length: usize = headers.get("content-length").map_or(0, |length| length.parse().unwrap());
        let taken = if let Step::HangUp(most) = step { length.min(*most) } else { length };
        stream.by_ref().take(taken as u64).read_to_end(&mut body).unwrap();
    }
    if let Step::Answer(answer) | Step::AnswerEarly(answer) = step {
        let _ = stream.get_mut().write_all(answer.as_bytes());
        let _ = stream.get_mut().flush();
    }
    Asked { line, headers, body }
}

/// A hub that takes one connection a step, then is gone.
struct Scripted {
    address: HubAddress,
    thread: JoinHandle<Vec<Asked>>,
}

impl Scripted {
    fn new(steps: Vec<Step>) -> Self {
        Self::with(steps, "http", converse)
    }

    fn with(
        steps: Vec<Step>,
        scheme: &str,
        converse: impl Fn(TcpStream, &Step) -> Asked + Send + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let serve = move || steps.iter().map(|step| converse(listener.accept().unwrap().0, step)).collect();
        let address = HubAddress::parse(&format!("{scheme}://localhost:{port}")).unwrap();
        Self { address, thread: thread::spawn(serve) }
    }

    /// A client of it with little patience.
    fn client(&self) -> Hub {
        let token = Some(Token::new(SECRET).unwrap());
        Hub::new(&self.address, Options { token, patience: Duration::from_secs(5), ..Options::default() })
            .unwrap()
    }

    /// All that was asked.
    fn asked(self) -> Vec<Asked> {
        self.thread.join().unwrap()
    }
}

/// A file with bytes that tell where they are from.
fn file(folder: &tempfile::TempDir, size: usize) -> (PathBuf, Vec<u8>) {
    let bytes: Vec<u8> = (0..size).map(|at| (at % 251) as u8 ^ (at >> 8) as u8).collect();
    let path = folder.path().join("north.release.parquet");
    fs::write(&path, &bytes).unwrap();
    (path, bytes)
}

#[test]
fn an_upload_goes_on_where_the_connection_broke() {
    let folder = tempfile::tempdir().unwrap();
    let (path, bytes) = file(&folder, 3_000_000);
    let hub = Scripted::new(vec![
        state(0, false),
        Step::HangUp(1_234_567),
        state(1_234_567, false),
        Step::Answer(answer("201 Created", "", "{\"received\":3000000,\"complete\":true}")),
    ]);
    let mut seen = Vec::new();
    let mut progress = |done, total| seen.push((done, total));
    let done = hub.client().upload("ab", "north", &path, &mut progress).unwrap();
    assert!(done.complete);
    let asked = hub.asked();
    let sha256 = FileDigest::of(&path).unwrap().sha256;
    assert_eq!(asked[0].line, format!("GET /api/v1/studies/ab/parties/north/upload?sha256={sha256}"));
    let put = |offset| {
        format!("PUT /api/v1/studies/ab/parties/north/release?sha256={sha256}&offset={offset}&size=3000000")
    };
    assert_eq!(asked[1].line, put(0));
    assert_eq!(asked[1].body, bytes[..1_234_567]);
    assert_eq!(asked[3].line, put(1_234_567));
    assert_eq!(asked[3].body, bytes[1_234_567..], "what the hub has is not sent again");
    assert!(asked.iter().all(|asked| asked.headers["authorization"] == format!("Bearer {SECRET}")));
    assert_eq!(seen.last().unwrap(), &(3_000_000, Some(3_000_000)));
}

#[test]
fn a_hub_that_is_elsewhere_in_the_file_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let (path, bytes) = file(&folder, 1000);
    let elsewhere = "{\"type\":\"offset\",\"title\":\"Elsewhere\",\"status\":409,\"received\":700}";
    let hub = Scripted::new(vec![
        state(0, false),
        problem("409 Conflict", "", elsewhere),
        Step::Answer(answer("202 Accepted", "", "{\"received\":1000,\"complete\":false}")),
        state(1000, true),
    ]);
    hub.client().upload("ab", "north", &path, &mut |_, _| {}).unwrap();
    let asked = hub.asked();
    assert_eq!(asked[2].body, bytes[700..]);
    assert!(asked[3].line.contains("offset=1000") && asked[3].body.is_empty(), "asks the hub to finish");
}

#[test]
fn a_large_file_goes_in_pieces() {
    let folder = tempfile::tempdir().unwrap();
    let size = (8 << 20) + 5;
    let (path, bytes) = file(&folder, size);
    let hub = Scripted::new(vec![state(0, false), state(8 << 20, false), state(size as u64, true)]);
    hub.client().upload("ab", "north", &path, &mut |_, _| {}).unwrap();
    let asked = hub.asked();
    assert_eq!([asked[1].body.as_slice(), &asked[2].body].concat(), bytes);
}

#[test]
fn other_bytes_and_refused_files_are_not_sent_again() {
    let folder = tempfile::tempdir().unwrap();
    let (path, _) = file(&folder, 1000);
    for (status, title) in
        [("409 Conflict", "Released already"), ("422 Unprocessable", "Not under this study")]
    {
        let body = format!("{{\"type\":\"x\",\"title\":\"{title}\",\"status\":1,\"detail\":\"because\"}}");
        let hub = Scripted::new(vec![state(0, false), problem(status, "", &body)]);
        let error = hub.client().upload("ab", "north", &path, &mut |_, _| {}).unwrap_err();
        assert_eq!(error.to_string(), format!("{title}: because"));
        assert_eq!(error.fault(), Fault::Remote);
        hub.asked();
    }
    // A refusal that comes before the body is heard, though nobody listens to the body.
    let refusal = answer(
        "413 Too Large",
        "Content-Type: application/problem+json\r\n",
        "{\"type\":\"x\",\"title\":\"Too large\",\"status\":413}",
    );
    let hub = Scripted::new(vec![state(0, false), Step::AnswerEarly(refusal)]);
    let error = hub.client().upload("ab", "north", &path, &mut |_, _| {}).unwrap_err();
    assert_eq!(error.status(), Some(413), "{error}");
    // What is there already is not sent.
    let hub = Scripted::new(vec![state(1000, true)]);
    assert!(hub.client().upload("ab", "north", &path, &mut |_, _| {}).unwrap().complete);
    assert_eq!(hub.asked().len(), 1);
}

#[test]
fn an_upload_that_gets_nowhere_ends() {
    let folder = tempfile::tempdir().unwrap();
    let (path, _) = file(&folder, 1000);
    let hub = Scripted::new(vec![state(0, false), state(0, false)]);
    let token = Some(Token::new(SECRET).unwrap());
    let client =
        Hub::new(&hub.address, Options { token, patience: Duration::ZERO, ..Options::default() }).unwrap();
    let error = client.upload("ab", "north", &path, &mut |_, _| {}).unwrap_err();
    assert!(error.to_string().contains("does not get past 0 of 1000"), "{error}");
    let hub = Scripted::new(vec![state(2000, false)]);
    let error = hub.client().upload("ab", "north", &path, &mut |_, _| {}).unwrap_err();
    assert!(matches!(error, Error::Protocol { .. }), "{error}");
}

#[test]
fn a_busy_hub_is_asked_again_when_it_said() {
    let busy = "{\"type\":\"busy\",\"title\":\"Busy\",\"status\":429}";
    let page = "{\"studies\":[],\"next\":null}";
    let hub = Scripted::new(vec![problem("429 Too Many", "Retry-After: 1\r\n", busy), ok(page)]);
    let pauses = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&pauses);
    let options = Options {
        on_retry: Some(Box::new(move |error, pause| told.lock().unwrap().push((error.to_string(), pause)))),
        ..Options::default()
    };
    let started = Instant::now();
    let studies = Hub::new(&hub.address, options).unwrap().studies(10, Some(3)).unwrap();
    assert!(studies.studies.is_empty() && started.elapsed() >= Duration::from_secs(1));
    assert_eq!(*pauses.lock().unwrap(), [("Busy".to_owned(), Duration::from_secs(1))]);
    let asked = hub.asked();
    assert_eq!(asked[1].line, "GET /api/v1/studies?limit=10&after=3");
    assert!(!asked[0].headers.contains_key("authorization"), "what is public is asked without a token");

    // Longer than there is patience: the answer is the error.
    let hub = Scripted::new(vec![problem("503 Unavailable", "Retry-After: 3600\r\n", busy)]);
    let started = Instant::now();
    let error = hub.client().studies(10, None).unwrap_err();
    assert_eq!(error.status(), Some(503));
    assert!(started.elapsed() < Duration::from_secs(3));
}

#[test]
fn an_upload_waits_for_the_one_before_it() {
    let folder = tempfile::tempdir().unwrap();
    let (path, bytes) = file(&folder, 1000);
    let taken =
        "{\"type\":\"x\",\"title\":\"Conflict\",\"status\":409,\"detail\":\"another upload is under way\"}";
    let failed = "{\"type\":\"x\",\"title\":\"Failed\",\"status\":500}";
    let hub = Scripted::new(vec![
        state(0, false),
        problem("409 Conflict", "Retry-After: 1\r\n", taken),
        state(400, false),
        problem("500 Internal Server Error", "", failed),
        problem("502 Bad Gateway", "", failed),
        state(400, false),
        state(1000, true),
    ]);
    let started = Instant::now();
    hub.client().upload("ab", "north", &path, &mut |_, _| {}).unwrap();
    assert!(started.elapsed() >= Duration::from_secs(1));
    assert_eq!(hub.asked()[6].body, bytes[400..]);
}

#[test]
fn a_hub_that_asks_for_endless_patience_gets_none() {
    let busy = "{\"type\":\"busy\",\"title\":\"Busy\",\"status\":429}";
    for pause in [u64::MAX.to_string(), "9".repeat(40)] {
        let header = format!("Retry-After: {pause}\r\n");
        let hub = Scripted::new(vec![problem("429 Too Many", &header, busy)]);
        let started = Instant::now();
        assert_eq!(hub.client().studies(10, None).unwrap_err().status(), Some(429));
        assert!(started.elapsed() < Duration::from_secs(3));
    }
}

#[test]
fn a_download_cut_short_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let (study, _) = study_text(1);
    let out = folder.path().join("public.parquet");
    let head = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 10\r\nETag: \"v1\"\r\n\r\n";
    let rest = "HTTP/1.1 206 Partial Content\r\nConnection: close\r\nContent-Length: 6\r\nContent-Range: bytes 4-9/10\r\n\r\n";
    let hub = Scripted::new(vec![Step::Answer(format!("{head}0123")), Step::Answer(format!("{rest}456789"))]);
    let sha256 = "84d89877f0d4041efb6bf91a16f0248f2fd573e6af05c19f96bedb9f882f7882";
    let downloaded =
        hub.client().download_dataset(&study, &out, Existing::Keep, Some(sha256), &mut |_, _| {}).unwrap();
    assert!(!out.exists(), "it has its name only when it is published");
    assert_eq!(fs::read(downloaded.path()).unwrap(), b"0123456789");
    assert_eq!(downloaded.publish().unwrap(), FileDigest { sha256: sha256.to_owned(), size: 10 });
    assert_eq!(fs::read(&out).unwrap(), b"0123456789");
    let asked = hub.asked();
    assert_eq!(asked[0].line, format!("GET /api/v1/studies/{}/dataset", study.id()));
    assert_eq!(asked[0].headers["accept-encoding"], "identity");
    assert!(!asked[0].headers.contains_key("range"));
    assert_eq!(asked[1].headers["range"], "bytes=4-");
    assert_eq!(asked[1].headers["if-range"], "\"v1\"");

    // Another file by now: all of it, from the start.
    let hub = Scripted::new(vec![
        Step::Answer(format!("{head}0123")),
        Step::Answer(answer("200 OK", "ETag: \"v2\"\r\n", "newer")),
    ]);
    let downloaded =
        hub.client().download_dataset(&study, &out, Existing::Replace, None, &mut |_, _| {}).unwrap();
    assert_eq!(fs::read(downloaded.path()).unwrap(), b"newer");
    drop(downloaded);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "what is not published does not stay");
}

#[test]
fn a_download_with_another_hash_or_part_or_size_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (study, _) = study_text(1);
    let out = folder.path().join("public.parquet");
    let download = |steps, sha256: Option<&str>| {
        let hub = Scripted::new(steps);
        hub.client()
            .download_release(&study, "north", &out, Existing::Keep, sha256, &mut |_, _| {})
            .err()
            .unwrap()
    };
    let wrong = "0".repeat(64);
    let error = download(vec![Step::Answer(answer("200 OK", "", "x"))], Some(&wrong));
    assert_eq!(error.fault(), Fault::Integrity);
    assert!(error.to_string().contains("hash"), "{error}");
    let first = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 10\r\nETag: \"v1\"\r\n\r\n0123";
    let part = "HTTP/1.1 206 Partial Content\r\nConnection: close\r\nContent-Length: 1\r\nContent-Range: bytes 9-9/10\r\n\r\n9";
    let error = download(vec![Step::Answer(first.to_owned()), Step::Answer(part.to_owned())], None);
    assert!(error.to_string().contains("another part"), "{error}");
    let huge = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 99999999999999\r\n\r\nx";
    let error = download(vec![Step::Answer(huge.to_owned())], None);
    assert!(matches!(error, Error::TooLarge { .. }), "{error}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "nothing stays");
}

#[test]
fn refusals_are_shown_as_the_hub_said_them_and_harmless() {
    let body = "{\"type\":\"x\",\"title\":\"No such study\",\"status\":404,\"detail\":\"ask \\u001b[31m the coordinator\"}";
    let hub = Scripted::new(vec![problem("404 Not Found", "", body)]);
    let error = hub.client().details("ab").unwrap_err();
    assert_eq!(error.to_string(), "No such study: ask  [31m the coordinator");
    let plain = Step::Answer(answer("501 Not Implemented", "Content-Type: text/html\r\n", "<p>oops"));
    let hub = Scripted::new(vec![plain]);
    let error = hub.client().details("ab").unwrap_err().to_string();
    assert!(error.contains("status 501") && !error.contains("oops"), "{error}");
    let away = Step::Answer(answer("302 Found", "Location: https://elsewhere.example.org/\r\n", ""));
    let hub = Scripted::new(vec![away]);
    let error = hub.client().upload_state("ab", "north", "00").unwrap_err();
    assert!(error.to_string().contains("points to https://elsewhere.example.org/"), "{error}");
    assert_eq!(hub.asked().len(), 1, "the token does not travel on");
    let hub = Scripted::new(vec![ok("[1, 2")]);
    let error = hub.client().details("ab").unwrap_err();
    assert!(matches!(error, Error::Protocol { .. }), "{error}");
}

#[test]
fn an_answer_without_end_is_refused() {
    let body = " ".repeat((16 << 20) + 1);
    let hub = Scripted::new(vec![ok(&body)]);
    let error = hub.client().details("ab").unwrap_err();
    assert!(matches!(error, Error::TooLarge { .. }), "{error}");
}

#[test]
fn studies_and_logs_are_verified() {
    let (study, text) = study_text(1);
    let (other, other_text) = study_text(2);
    let plain = |text: &str| Step::Answer(answer("200 OK", "Content-Type: text/plain\r\n", text));
    let hub = Scripted::new(vec![
        plain(&text),
        plain(&other_text),
        plain(&text.replace("hi = 100", "hi = 101")),
        plain("<html>"),
    ]);
    let client = hub.client();
    let contract = client.contract(study.id()).unwrap();
    assert_eq!((contract.study, contract.text), (study.clone(), text));
    for word in ["it has the id", "seal", "not in the expected form"] {
        let error = client.contract(study.id()).err().unwrap();
        assert_eq!(error.fault(), Fault::Integrity);
        assert!(error.to_string().contains(word), "{error}");
    }

    let time = "2026-01-31T23:59:59Z".to_owned();
    let created =
        Event::following(None, time.clone(), Change::Created { study: study.to_json(), early: false });
    let invited = Change::Invited { party: "north".to_owned() };
    let log = created.to_line() + &Event::following(Some(&created), time, invited).to_line();
    let hub = Scripted::new(vec![plain(&log), plain(&log), plain(&log.replace("23:59:59Z", "23:59:58Z"))]);
    let client = hub.client();
    let read = client.log(study.id()).unwrap();
    assert_eq!((read.log.events().len(), read.text), (2, log));
    for (id, word) in [(other.id(), "another study"), (study.id(), "hash")] {
        let error = client.log(id).err().unwrap();
        assert_eq!(error.fault(), Fault::Integrity);
        assert!(error.to_string().contains(word), "{error}");
    }
}

#[test]
fn a_coordinator_creates_and_a_party_accepts() {
    let (study, text) = study_text(1);
    let body = format!(
        "{{\"id\":\"{}\",\"invitations\":[{{\"party\":\"north\",\"token\":\"n\"}},{{\"party\":\"south\",\"token\":\"s\"}}]}}",
        study.id()
    );
    let again = format!("{{\"id\":\"{}\",\"invitations\":[]}}", study.id());
    let traversal = body.replace("\"north\"", "\"../x\"");
    let hub = Scripted::new(vec![
        Step::Answer(answer("201 Created", "", &body)),
        ok(&again),
        Step::Answer(answer("201 Created", "", &traversal)),
        Step::Answer(answer("201 Created", "", "{\"party\":\"south\",\"token\":\"t\"}")),
        ok("{\"party\":\"north\",\"accepted\":false,\"released\":false}"),
        Step::Answer(answer("201 Created", "", "")),
        ok("{}"),
    ]);
    let client = hub.client();
    let new = client.create_study(&study, &text, true).unwrap();
    let invitations: Vec<_> =
        new.invitations.iter().map(|(party, token)| (party.as_str(), token.secret())).collect();
    assert_eq!((new.created, invitations), (true, vec![("north", "n"), ("south", "s")]));
    let repeated = client.create_study(&study, &text, true).unwrap();
    assert!(!repeated.created && repeated.invitations.is_empty());
    assert!(client.create_study(&study, &text, true).is_err(), "a party's name becomes a file's");
    assert_eq!(client.invite(&study, "south").unwrap().secret(), "t");
    assert_eq!(client.invited(&study).unwrap().party, "north");
    let key = signing_key(7);
    let acceptance = Acceptance::new(&study, "north", &key);
    assert!(client.accept(&acceptance).unwrap());
    assert!(!client.accept(&acceptance).unwrap());
    let asked = hub.asked();
    let sent: serde_json::Value = serde_json::from_slice(&asked[0].body).unwrap();
    assert_eq!((sent["study"].as_str().unwrap(), &sent["early"]), (text.as_str(), &true.into()));
    assert_eq!(asked[3].line, format!("POST /api/v1/studies/{}/parties/south/invitation", study.id()));
    assert!(asked[3].body.is_empty());
    assert_eq!(asked[5].line, format!("POST /api/v1/studies/{}/parties/north/acceptance", study.id()));
    assert_eq!(serde_json::from_slice::<Acceptance>(&asked[5].body).unwrap(), acceptance);
    assert!(asked.iter().all(|asked| asked.headers["authorization"] == format!("Bearer {SECRET}")));
}

#[test]
fn a_fit_is_asked_for_by_name() {
    let hub = Scripted::new(vec![ok("{\"potluck\":\"model\"}"), ok("{\"k\":4}")]);
    let features = ["a&b=c".to_owned(), "größe".to_owned()];
    let query = FitQuery { label: "x y", features: &features, learner: Some("ols"), level: Some(0.9) };
    let client = hub.client();
    assert_eq!(client.fit("ab", &query).unwrap()["potluck"], "model");
    assert_eq!(client.plan("format = 1").unwrap()["k"], 4);
    let asked = hub.asked();
    assert_eq!(
        asked[0].line,
        "GET /api/v1/studies/ab/fit?label=x%20y&feature=a%26b%3Dc&feature=gr%C3%B6%C3%9Fe&learner=ols&level=0.9"
    );
    assert_eq!(
        (asked[1].line.as_str(), asked[1].body.as_slice()),
        ("POST /api/v1/plan", b"format = 1".as_slice())
    );
}

#[test]
fn nobody_there_is_said_with_a_remedy() {
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let address = HubAddress::parse(&format!("http://{closed}")).unwrap();
    let hub = Hub::new(&address, Options { patience: Duration::ZERO, ..Options::default() }).unwrap();
    let error = hub.studies(1, None).unwrap_err();
    assert_eq!(error.fault(), Fault::Remote);
    assert!(error.to_string().contains("cannot reach") && error.is_passing(), "{error}");
    let plain = HubAddress::parse("http://hub.example.org").unwrap();
    let error = Hub::new(&plain, Options::default()).err().unwrap();
    assert!(error.to_string().contains("--insecure-http") && error.fault() == Fault::Usage, "{error}");
    assert!(Hub::new(&plain, Options { insecure_http: true, ..Options::default() }).is_ok());
    // Without a token, nothing is sent that needs one.
    assert!(matches!(hub.upload_state("ab", "north", "00"), Err(Error::Token)));
}

#[test]
fn a_private_authority_is_trusted_only_if_it_is_named() {
    use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
    let folder = tempfile::tempdir().unwrap();
    let ca_key = KeyPair::generate().unwrap();
    let mut ca = CertificateParams::new(Vec::new()).unwrap();
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let ca_file = folder.path().join("ca.pem");
    fs::write(&ca_file, ca.self_signed(&ca_key).unwrap().pem()).unwrap();
    let issuer = Issuer::new(ca, ca_key);
    let key = KeyPair::generate().unwrap();
    let certificate =
        CertificateParams::new(vec!["localhost".to_owned()]).unwrap().signed_by(&key, &issuer).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![certificate.der().clone()],
            rustls::pki_types::PrivateKeyDer::Pkcs8(key.serialize_der().into()),
        )
        .unwrap();
    let config = Arc::new(config);
    let encrypted = move |mut stream: TcpStream, step: &Step| {
        let mut tls = rustls::ServerConnection::new(Arc::clone(&config)).unwrap();
        match tls.complete_io(&mut stream) {
            Ok(_) => converse(rustls::StreamOwned::new(tls, stream), step),
            Err(_) => Asked { line: "no trust".to_owned(), headers: BTreeMap::new(), body: Vec::new() },
        }
    };
    let page = || ok("{\"studies\":[],\"next\":null}");
    let hub = Scripted::with(vec![page(), page()], "https", encrypted);
    let error = Hub::new(&hub.address, Options::default()).unwrap().studies(1, None).unwrap_err();
    assert!(matches!(error, Error::Untrusted { .. }), "{error:?}");
    assert!(error.to_string().contains("--ca-cert") && error.fault() == Fault::Remote, "{error}");
    let options = || Options { ca_certificate: Some(ca_file.clone()), ..Options::default() };
    assert!(Hub::new(&hub.address, options()).unwrap().studies(1, None).is_ok());
    assert_eq!(hub.asked()[0].line, "no trust");
    fs::write(&ca_file, "nothing").unwrap();
    let error = Hub::new(&HubAddress::parse("https://localhost").unwrap(), options()).err().unwrap();
    assert!(matches!(error, Error::Certificate { .. }) && error.fault() == Fault::Input, "{error}");
}
