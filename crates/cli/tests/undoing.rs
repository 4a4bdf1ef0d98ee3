//! What can be undone at a hub before anything is published: an acceptance with the wrong key, and
//! a whole study; and certificates that are renewed while the hub runs.
#![cfg(unix)]
#![allow(clippy::unwrap_used)]

#[path = "support/server.rs"]
mod server;
mod support;

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use potluck_client::{Hub, HubAddress, Options, StudyAddress};
use server::{Server, write_certificates};
use support::{Outcome, Workplace};

/// A hub, a coordinator, and the parties north and south, invited to a study.
struct Scene {
    hub: Server,
    place: Workplace,
    url: String,
}

impl Scene {
    fn new() -> Self {
        let place = Workplace::new();
        let hub = Server::start(&place, 0, &[]);
        let mut scene = Self { hub, place, url: String::new() };
        let token = scene.run(&["hub", "coordinator", "add", "ada", "--data", "hub"]).ok().stdout;
        scene.place.write("ada.token", token);
        let hub = scene.hub.url.clone();
        let create = ["hub", "study", "create", "study.toml", "--hub", &hub, "--token-file", "ada.token"];
        let created = scene.run(&[create.as_slice(), &["--out", ".", "--json"]].concat()).json();
        created["url"].as_str().unwrap().clone_into(&mut scene.url);
        for key in ["north", "south", "wrong"] {
            scene.run(&["key", "new", "--out", &format!("{key}.key")]).ok();
        }
        let budget = ["--budget", "people", "--epsilon", "1", "--delta", "1e-5", "--ledger", "new.ledger"];
        scene.run(&[&["ledger", "init"], budget.as_slice()].concat()).ok();
        scene
    }

    fn run(&self, arguments: &[&str]) -> Outcome {
        let mut command = self.place.command(arguments);
        command.env("XDG_DATA_HOME", self.place.path("data"));
        command.env_remove("POTLUCK_HUB_TOKEN").env_remove("POTLUCK_INVITATION");
        Outcome::new(&command.output().unwrap())
    }

    /// Does something of a coordinator's to the study.
    fn coordinate(&self, what: &str, more: &[&str]) -> Outcome {
        let head = ["hub", "study", what, &self.url];
        self.run(&[head.as_slice(), more, &["--token-file", "ada.token"]].concat())
    }

    fn accept(&self, party: &str, key: &str, more: &[&str]) -> Outcome {
        let (token, key) = (format!("{party}.invitation"), format!("{key}.key"));
        let head = ["party", "accept", &self.url, "--token-file", &token, "--signing-key", &key, "--yes"];
        self.run(&[head.as_slice(), more].concat())
    }

    fn release(&self, party: &str) -> Outcome {
        let data = format!("{party}.csv");
        let head = ["party", "release", &self.url, "--party", party, "--data", &data];
        let tail = ["--yes", "--accept-low-accuracy", "--ledger", "new.ledger", "--retry-for", "5"];
        self.run(&[head.as_slice(), tail.as_slice()].concat())
    }

    fn withdraw(&self, party: &str) -> Outcome {
        self.run(&["party", "withdraw", &self.url, "--party", party, "--yes"])
    }

    fn spent(&self) -> String {
        let shown = self.run(&["ledger", "show", "--json", "--ledger", "new.ledger"]).json();
        shown["budgets"][0]["spent"].as_str().unwrap().to_owned()
    }

    /// The log of the study, verified and in words.
    fn log(&self) -> String {
        let address = StudyAddress::parse(&self.url).unwrap();
        let hub = Hub::new(address.hub(), Options::default()).unwrap();
        self.place.write("events.jsonl", hub.log(address.id()).unwrap().text);
        self.run(&["verify", "events.jsonl"]).ok();
        self.run(&["inspect", "events.jsonl"]).ok().stdout
    }

    fn status(&self) -> String {
        self.run(&["party", "status", &self.url]).ok().stdout
    }
}

#[test]
fn a_party_that_accepted_with_the_wrong_key_takes_it_back_and_accepts_anew() {
    let scene = Scene::new();
    scene.accept("north", "wrong", &[]).ok();
    scene.accept("north", "north", &[]).refused(6, &["another key", "potluck party withdraw"]);
    let unasked = scene.run(&["party", "withdraw", &scene.url]);
    unasked.refused(2, &["Take back the acceptance of north", "--yes"]);

    let withdrawn = scene.withdraw("north").ok().stdout;
    assert!(withdrawn.contains("north has withdrawn"), "{withdrawn}");
    let status = scene.status();
    assert!(status.contains("no acceptance of yours stands"), "{status}");
    scene.withdraw("north").refused(2, &["nothing to undo"]);
    scene.release("north").refused(2, &["you have not accepted"]);
    assert_eq!(scene.spent(), "0", "nothing was charged");

    // The invitation is still good, and kept; the next command is the one that was printed.
    let accept = ["party", "accept", &scene.url, "--signing-key", "north.key", "--yes"];
    scene.run(&accept).ok();
    scene.release("north").ok();
    scene.withdraw("north").refused(2, &["has released", "stays published"]);
    let log = scene.log();
    assert!(log.contains("north withdrew its acceptance"), "{log}");
    assert_eq!(log.matches("north accepted").count(), 2, "{log}");
}

#[test]
fn a_release_that_was_drawn_is_signed_anew_after_a_withdrawal_at_no_further_charge() {
    let scene = Scene::new();
    scene.accept("north", "wrong", &[]).ok();
    // The release is drawn and charged, but the hub is gone before it is published.
    let id = scene.url.rsplit('/').next().unwrap();
    let file = scene.place.path(&format!("data/potluck/parties/{id}-north/north.release.parquet"));
    let release =
        ["release", "study.toml", "--party", "north", "--data", "north.csv", "--ledger", "new.ledger"];
    let signed = ["--signing-key", "wrong.key", "--yes", "--accept-low-accuracy", "--out"];
    let out = file.display().to_string();
    scene.run(&[release.as_slice(), &signed, &[&out]].concat()).ok();
    let charged = scene.spent();
    assert_ne!(charged, "0");

    let withdrawn = scene.withdraw("north").ok().stdout;
    assert!(withdrawn.contains("stays charged"), "{withdrawn}");
    assert!(!file.exists());
    scene.accept("north", "north", &[]).ok();
    let done = scene.release("north").ok();
    assert!(done.stdout.contains("at no further charge"), "{}", done.stdout);
    assert_eq!(scene.spent(), charged);
}

#[test]
fn a_coordinator_undoes_an_acceptance_whose_key_is_lost() {
    let scene = Scene::new();
    scene.accept("north", "wrong", &[]).ok();
    fs::remove_file(scene.place.path("wrong.key")).unwrap();
    scene.withdraw("north").refused(2, &["wrong.key", "--undo-acceptance"]);
    scene.coordinate("invite", &["south", "--undo-acceptance"]).refused(6, &["nothing to undo"]);
    scene.coordinate("invite", &["north", "--undo-acceptance", "--out", "fresh.invitation"]).ok();
    let status = scene.status();
    assert!(status.contains("the coordinator undid your acceptance"), "{status}");
    // The invitation before is void, and so is what was kept of it.
    scene.accept("north", "north", &[]).refused(6, &["no invitation to this study"]);
    let fresh = ["party", "accept", &scene.url, "--token-file", "fresh.invitation", "--signing-key"];
    scene.run(&[fresh.as_slice(), &["north.key", "--yes"]].concat()).ok();
    scene.release("north").ok();
    scene.coordinate("invite", &["north", "--undo-acceptance"]).refused(6, &["has released"]);
    let log = scene.log();
    assert!(log.contains("the acceptance of north undone by the coordinator"), "{log}");
}

#[test]
fn a_study_is_closed_before_its_first_release_and_everyone_is_told() {
    let scene = Scene::new();
    scene.accept("north", "north", &[]).ok();
    scene.coordinate("close", &[]).refused(2, &["Close study \"test\" for good?", "--yes"]);
    scene.coordinate("close", &["--yes", "--reason", "two\nlines"]).refused(2, &["--reason", "one line"]);
    let closed = scene.coordinate("close", &["--yes", "--reason", "the bounds were wrong"]).ok();
    assert!(closed.stdout.starts_with("closed http"), "{}", closed.stdout);
    let again = scene.coordinate("close", &["--yes"]).ok().stdout;
    assert!(again.contains("closed before"), "{again}");

    scene
        .release("north")
        .refused(2, &["closed by its coordinator", "the bounds were wrong", "nothing was charged"]);
    assert_eq!(scene.spent(), "0");
    scene.withdraw("north").refused(2, &["closed by its coordinator"]);
    scene.accept("south", "south", &[]).refused(2, &["closed by its coordinator"]);
    scene.coordinate("invite", &["south"]).refused(6, &["closed by its coordinator"]);
    let status = scene.status();
    assert!(status.contains("the bounds were wrong") && status.contains("no public dataset"), "{status}");
    let log = scene.log();
    assert!(log.contains("closed by the coordinator: the bounds were wrong"), "{log}");
    let verified = scene.run(&["verify", "events.jsonl", "--json"]).json();
    assert_eq!(verified[0]["closed"], true, "{verified}");
}

#[test]
fn a_study_is_not_closed_after_its_first_release() {
    let scene = Scene::new();
    scene.accept("north", "north", &[]).ok();
    scene.release("north").ok();
    scene
        .coordinate("close", &["--yes"])
        .refused(6, &["north has released", "stays published", "another study"]);
}

#[test]
fn a_renewed_certificate_is_taken_without_a_restart_and_a_bad_one_is_not() {
    let place = Workplace::empty();
    for prefix in ["", "next-", "last-"] {
        write_certificates(&place, prefix);
    }
    let hub = Server::start(&place, 0, &["--tls-cert", "cert.pem", "--tls-key", "key.pem"]);
    // Whether the hub's certificate is from this authority.
    let trusts = |authority: &str| {
        let options = Options {
            ca_certificate: Some(place.path(authority)),
            patience: Duration::ZERO,
            ..Options::default()
        };
        let hub = Hub::new(&HubAddress::parse(&hub.url).unwrap(), options).unwrap();
        hub.studies(1, None).is_ok()
    };
    let tell = || {
        let told = Command::new("kill").args(["-HUP", &hub.id().to_string()]).status();
        assert!(told.unwrap().success());
    };
    let wait_for = |what: &str, done: &dyn Fn() -> bool| {
        let began = Instant::now();
        while !done() {
            assert!(began.elapsed() < Duration::from_secs(120), "{what}");
            std::thread::sleep(Duration::from_millis(50));
        }
    };
    let log = || fs::read_to_string(place.path("hub.log")).unwrap();
    assert!(trusts("ca.pem") && !trusts("next-ca.pem"));

    // A pair that does not go together, and a file that is no certificate: said, and not taken.
    fs::copy(place.path("next-cert.pem"), place.path("cert.pem")).unwrap();
    tell();
    wait_for("the bad pair is reported", &|| log().contains("the certificate before stays in use"));
    assert!(trusts("ca.pem"), "{}", log());
    place.write("cert.pem", "nonsense");
    let before = log().len();
    tell();
    wait_for("the bad file is reported", &|| log()[before..].contains("the certificate before stays in use"));
    assert!(trusts("ca.pem") && !log().contains("PRIVATE KEY"), "{}", log());

    // A good pair is taken at once when the hub is told, and before long when it is not.
    fs::copy(place.path("next-cert.pem"), place.path("cert.pem")).unwrap();
    fs::copy(place.path("next-key.pem"), place.path("key.pem")).unwrap();
    tell();
    wait_for("the next certificate is taken", &|| trusts("next-ca.pem"));
    fs::copy(place.path("last-key.pem"), place.path("key.pem")).unwrap();
    fs::copy(place.path("last-cert.pem"), place.path("cert.pem")).unwrap();
    wait_for("the last certificate is noticed", &|| trusts("last-ca.pem"));
    assert!(!trusts("ca.pem") && !trusts("next-ca.pem"));
}
