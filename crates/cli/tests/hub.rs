//! A hub and its parties as processes of their own, over TLS, through a line that stops in
//! mid-upload: whoever is killed in the middle of a release or an upload, nothing is lost, nothing
//! is charged twice, and the public dataset verifies.
#![cfg(unix)]
#![allow(clippy::unwrap_used)]

#[path = "support/server.rs"]
mod server;
mod support;

use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use potluck_fixtures::{csv, study};
use potluck_party::Ledger;
use potluck_party::ledger::State;
use server::{Server, write_certificates};
use support::{Outcome, Workplace};

const ROWS: usize = 40_000;

const TLS: [&str; 4] = ["--tls-cert", "cert.pem", "--tls-key", "key.pem"];

/// Releases of some hundred kilobytes: large enough to stop in the middle of one.
fn three_parties() -> String {
    study("over the network", ROWS as u64)
        .settings("method = \"rmgm\"\nk = 30000")
        .party("north", &["age lo = 18; hi = 100"])
        .party("south", &["pressure lo = 80; hi = 200"])
        .party("registry", &["income lo = 0; hi = 100"])
        .to_string()
}

const PARTIES: [(&str, &str); 3] = [("north", "age"), ("south", "pressure"), ("registry", "income")];

/// Bytes of an upload after which the line stops.
const STOP_AFTER: i64 = 60_000;

/// A line between parties and hub that can stop, and that counts what it carries towards the hub.
struct Line {
    port: u16,
    left: Arc<AtomicI64>,
    carried: Arc<AtomicU64>,
}

impl Line {
    fn to(hub: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (left, carried) = (Arc::new(AtomicI64::new(i64::MAX)), Arc::new(AtomicU64::new(0)));
        let shared = (Arc::clone(&left), Arc::clone(&carried));
        thread::spawn(move || {
            for party in listener.incoming().map(Result::unwrap) {
                let Ok(hub) = TcpStream::connect(("127.0.0.1", hub)) else { continue };
                let (left, carried) = (Arc::clone(&shared.0), Arc::clone(&shared.1));
                let (from, into) = (party.try_clone().unwrap(), hub.try_clone().unwrap());
                thread::spawn(move || {
                    carry(from, into, |bytes| {
                        while left.load(Ordering::SeqCst) <= 0 {
                            thread::sleep(Duration::from_millis(10));
                        }
                        left.fetch_sub(bytes as i64, Ordering::SeqCst);
                        carried.fetch_add(bytes as u64, Ordering::SeqCst);
                    });
                });
                thread::spawn(move || carry(hub, party, |_| {}));
            }
        });
        Self { port, left, carried }
    }

    fn stop_after(&self, bytes: i64) {
        self.left.store(bytes, Ordering::SeqCst);
    }

    fn wait_until_stopped(&self) {
        let started = Instant::now();
        while self.left.load(Ordering::SeqCst) > 0 {
            assert!(started.elapsed() < Duration::from_secs(60), "the line did not stop");
            thread::sleep(Duration::from_millis(10));
        }
        // What was let through arrives.
        thread::sleep(Duration::from_millis(300));
    }

    fn go_on(&self) {
        self.carried.store(0, Ordering::SeqCst);
        self.left.store(i64::MAX, Ordering::SeqCst);
    }
}

fn carry(mut from: TcpStream, mut into: TcpStream, before: impl Fn(usize)) {
    let mut buffer = [0; 4096];
    while let Ok(read) = from.read(&mut buffer) {
        before(read);
        if read == 0 || into.write_all(&buffer[..read]).is_err() {
            break;
        }
    }
    let _ = (from.shutdown(Shutdown::Both), into.shutdown(Shutdown::Both));
}

fn command(place: &Workplace, arguments: &[&str]) -> Command {
    let mut command = place.command(arguments);
    command.env("XDG_DATA_HOME", place.path("data")).env("POTLUCK_CA_CERT", place.path("ca.pem"));
    command
}

fn run(place: &Workplace, arguments: &[&str]) -> Outcome {
    Outcome::new(&command(place, arguments).output().unwrap())
}

fn release(place: &Workplace, url: &str, party: &str) -> Command {
    let (data, ledger) = (format!("{party}.csv"), format!("{party}.ledger"));
    let mut command = command(place, &["party", "release", url, "--party", party, "--data", &data, "--yes"]);
    command.args(["--accept-low-accuracy", "--json", "--ledger", &ledger]);
    command
}

fn spent(place: &Workplace, party: &str) -> u128 {
    let ledger = format!("{party}.ledger");
    let shown = run(place, &["ledger", "show", "--json", "--ledger", &ledger]).json();
    shown["budgets"][0]["spent"].as_str().unwrap().parse().unwrap()
}

/// When the ledger last changed, seen from outside: looking into it would lock the release out.
fn ledger_stamp(place: &Workplace, party: &str) -> Option<SystemTime> {
    let file =
        |suffix: &str| fs::metadata(place.path(&format!("{party}.ledger{suffix}"))).ok()?.modified().ok();
    ["", "-wal", "-journal"].into_iter().filter_map(file).max()
}

fn new_ledger(place: &Workplace, party: &str) {
    let ledger = format!("{party}.ledger");
    let budget = ["--budget", "people", "--epsilon", "1", "--delta", "1e-5", "--ledger", &ledger];
    run(place, &[&["ledger", "init"], budget.as_slice()].concat()).ok();
}

/// Whether the charge of a release stands.
fn is_charged(place: &Workplace, url: &str, party: &str) -> bool {
    let ledger = Ledger::open(&place.path(&format!("{party}.ledger"))).unwrap();
    let session = ledger.session("people", url.rsplit('/').next().unwrap(), party).unwrap();
    session.is_some_and(|session| session.state == State::Spent)
}

/// Kills a release when the files of the ledger have changed so many times, several times a
/// transaction: the charge is reserved, spent, noise is stored. The line stops before the upload is
/// through, so that a kill that comes late is not too late.
fn kill_in_mid_release(place: &Workplace, line: &Line, url: &str, party: &str, changes: usize) {
    line.stop_after(STOP_AFTER);
    let mut stamp = ledger_stamp(place, party);
    let mut child = release(place, url, party).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let mut seen = 0;
    while seen < changes && line.left.load(Ordering::SeqCst) > 0 && child.try_wait().unwrap().is_none() {
        let now = ledger_stamp(place, party);
        if now != stamp {
            (stamp, seen) = (now, seen + 1);
        }
        thread::yield_now();
    }
    let _ = child.kill();
    child.wait().unwrap();
    line.go_on();
}

#[test]
fn whoever_is_killed_nothing_is_lost_or_charged_twice() {
    let place = Workplace::empty();
    write_certificates(&place, "");
    place.write("study.toml", three_parties());
    run(&place, &["study", "seal", "study.toml"]).ok();
    for (party, column) in PARTIES {
        let table = csv(&format!("id,{column}"), ROWS, |at| format!("{at},{}", 80 + at % 20));
        place.write(&format!("{party}.csv"), table);
        run(&place, &["key", "new", "--out", &format!("{party}.key")]).ok();
        new_ledger(&place, party);
    }
    let mut hub = Server::start(&place, 0, &TLS);
    let line = Line::to(hub.port);
    let token = run(&place, &["hub", "coordinator", "add", "ada", "--data", "hub"]).ok().stdout;
    place.write("ada.token", token);
    let address = format!("https://127.0.0.1:{}", line.port);
    let create = ["hub", "study", "create", "study.toml", "--hub", &address, "--token-file", "ada.token"];
    let created = run(&place, &[create.as_slice(), &["--out", "invitations", "--json"]].concat()).json();
    let url = created["url"].as_str().unwrap().to_owned();
    for (party, _) in PARTIES {
        let (token, key) = (format!("invitations/{party}.invitation"), format!("{party}.key"));
        let accept = ["party", "accept", &url, "--token-file", &token, "--signing-key", &key, "--yes"];
        run(&place, &accept).ok();
        run(&place, &accept).ok();
    }

    // The party is killed in mid-upload, and started again.
    line.stop_after(STOP_AFTER);
    let mut child =
        release(&place, &url, "north").stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    line.wait_until_stopped();
    child.kill().unwrap();
    child.wait().unwrap();
    line.go_on();
    let charged = spent(&place, "north");
    assert!(charged > 0, "the release was drawn");
    let done = Outcome::new(&release(&place, &url, "north").output().unwrap()).json();
    assert_eq!(done["repeated"], true);
    let size = fs::metadata(done["release"].as_str().unwrap()).unwrap().len();
    let carried = line.carried.load(Ordering::SeqCst);
    assert!(carried < size, "all {size} bytes were sent again: {carried}");
    assert_eq!(spent(&place, "north"), charged);

    // The hub is killed in mid-upload, and started again; the party waits and goes on by itself.
    line.stop_after(STOP_AFTER);
    let child = release(&place, &url, "south").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    line.wait_until_stopped();
    hub.kill();
    line.go_on();
    let hub = Server::start(&place, hub.port, &TLS);
    let done = Outcome::new(&child.wait_with_output().unwrap()).json();
    assert_eq!((&done["repeated"], &done["public"]), (&false.into(), &false.into()), "one party is missing");
    assert_eq!(spent(&place, "south"), charged);
    let again = Outcome::new(&release(&place, &url, "south").output().unwrap()).json();
    assert_eq!((&again["repeated"], &again["sha256"]), (&true.into(), &done["sha256"]));

    // A party is killed in mid-release, early and later, and started again; until one of the kills
    // fell between the charge and the file, whatever the machine. Nothing is public by then, so
    // trying that anew is no second release.
    let published = || {
        run(&place, &["party", "status", &url, "--party", "registry", "--json"]).json()["you"]["released"]
            .clone()
    };
    let id = url.rsplit('/').next().unwrap();
    let file = place.path(&format!("data/potluck/parties/{id}-registry/registry.release.parquet"));
    let (mut between, mut changes) = (false, 0);
    for _ in 0..100 {
        changes += 1;
        kill_in_mid_release(&place, &line, &url, "registry", changes);
        assert!(spent(&place, "registry") <= charged, "killed after {changes} changes");
        assert_eq!(published(), false, "it was killed before it could release");
        let drawn = file.exists();
        between = is_charged(&place, &url, "registry") && !drawn;
        if between {
            assert_eq!(spent(&place, "registry"), charged);
            break;
        }
        if drawn {
            changes /= 2;
            fs::remove_file(&file).unwrap();
            for suffix in ["", "-wal", "-shm", "-journal"] {
                let _ = fs::remove_file(place.path(&format!("registry.ledger{suffix}")));
            }
            new_ledger(&place, "registry");
        }
    }
    assert!(between, "no kill fell between the charge and the file");
    let done = Outcome::new(&release(&place, &url, "registry").output().unwrap()).json();
    assert_eq!(done["public"], true);
    assert_eq!(spent(&place, "registry"), charged);

    let get = ["hub", "get", &url, "--out", "public.parquet", "--events", "events.jsonl", "--json"];
    let got = run(&place, &get).json();
    assert_eq!(got["latest"], true);
    let head = got["head"].as_str().unwrap();
    let verified =
        run(&place, &["verify", "events.jsonl", "public.parquet", "study.toml", "--head", head]).ok().stdout;
    assert!(verified.contains("published, the latest"), "{verified}");
    let status = run(&place, &["party", "status", &url, "--party", "north", "--json"]).json();
    assert_eq!((&status["you"]["released"], status["dataset"].is_object()), (&true.into(), true));
    run(&place, &["fit", "public.parquet", "--label", "pressure"]).ok();
    drop(hub);
    run(&place, &["party", "status", &url, "--party", "north", "--retry-for", "0"])
        .refused(6, &["cannot reach"]);
}
