//! Coordinators and parties at a hub: the real binary against a stand-in that can be told to
//! misbehave.
#![allow(clippy::unwrap_used)]

#[path = "support/stand_in.rs"]
mod stand_in;
mod support;

use std::fs;

use potluck_fixtures::{pair, sealed, signing_key, study};
use potluck_release::dataset::Completeness;
use potluck_release::events::{Acceptance, Change, Event};
use potluck_release::files::Existing;
use potluck_release::{Extension, PublicDataset, Release, Study};
use serde_json::Value;
use stand_in::{COORDINATOR, StandIn};
use support::{Outcome, STUDY, Workplace};

/// A hub with the study, and the workplace of a coordinator and both parties.
struct Scene {
    hub: StandIn,
    place: Workplace,
    url: String,
}

impl Scene {
    fn new() -> Self {
        Self::with_study(&STUDY)
    }

    fn with_study(study: &str) -> Self {
        let (hub, place) = (StandIn::new(), Workplace::with_study(study));
        place.write("coordinator.token", COORDINATOR);
        let mut scene = Self { hub, place, url: String::new() };
        let created = scene.create(&["--out", "invitations", "--json"]).json();
        created["url"].as_str().unwrap().clone_into(&mut scene.url);
        for party in ["north", "south"] {
            scene.run(&["key", "new", "--out", &format!("{party}.key")]).ok();
        }
        scene
    }

    fn run(&self, arguments: &[&str]) -> Outcome {
        let data = self.place.path("data").display().to_string();
        let mut command = self.place.command(arguments);
        command.env("XDG_DATA_HOME", data).env_remove("POTLUCK_HUB_TOKEN").env_remove("POTLUCK_INVITATION");
        Outcome::new(&command.output().unwrap())
    }

    fn create(&self, more: &[&str]) -> Outcome {
        let mut arguments = vec!["hub", "study", "create", "study.toml", "--hub", &self.hub.url];
        arguments.extend(["--token-file", "coordinator.token"]);
        arguments.extend(more);
        self.run(&arguments)
    }

    fn accept(&self, party: &str, more: &[&str]) -> Outcome {
        let (token, key) = (format!("invitations/{party}.invitation"), format!("{party}.key"));
        let mut arguments = vec!["party", "accept", &self.url, "--token-file", &token, "--signing-key", &key];
        arguments.extend(more);
        self.run(&arguments)
    }

    fn release(&self, party: &str, more: &[&str]) -> Outcome {
        let data = format!("{party}.csv");
        let mut arguments = vec!["party", "release", &self.url, "--party", party, "--accept-low-accuracy"];
        if !more.contains(&"--data") {
            arguments.extend(["--data", &data]);
        }
        if !more.contains(&"--retry-for") {
            arguments.extend(["--retry-for", "5"]);
        }
        arguments.extend(["--yes", "--ledger"]);
        let ledger = format!("{party}.ledger");
        arguments.push(&ledger);
        arguments.extend(more);
        self.run(&arguments)
    }

    /// A ledger for one release of a party.
    fn ledger(&self, party: &str) {
        let ledger = format!("{party}.ledger");
        let init = [
            "ledger",
            "init",
            "--budget",
            "people",
            "--epsilon",
            "1",
            "--delta",
            "1e-5",
            "--ledger",
            &ledger,
        ];
        self.run(&init).ok();
    }

    fn spent(&self, party: &str) -> u128 {
        let ledger = format!("{party}.ledger");
        let shown = self.run(&["ledger", "show", "--json", "--ledger", &ledger]).json();
        shown["budgets"][0]["spent"].as_str().unwrap().parse().unwrap()
    }

    /// A file in the folder that a party keeps.
    fn kept(&self, party: &str, name: &str) -> String {
        let id = self.url.rsplit('/').next().unwrap();
        format!("data/potluck/parties/{id}-{party}/{name}")
    }

    fn status(&self, party: &str) -> Value {
        self.run(&["party", "status", &self.url, "--party", party, "--json"]).json()
    }
}

#[test]
fn a_study_runs_from_creation_to_a_verified_dataset() {
    let scene = Scene::new();
    let repeated = scene.create(&[]).ok();
    assert!(repeated.stdout.contains("was there already"), "{}", repeated.stdout);
    assert!(repeated.stderr.contains("All releases jointly: ε ="), "{}", repeated.stderr);
    let invitation = scene.place.read("invitations/north.invitation");

    // The steward sees what is promised and asked before agreeing.
    let asked = scene.accept("north", &[]);
    asked.refused(2, &["As north you are asked", "age: 18 to 100 years", "joint guarantee", "--yes"]);
    for party in ["north", "south"] {
        scene.ledger(party);
        let accepted = scene.accept(party, &["--yes"]).ok();
        assert!(accepted.stdout.contains("potluck party release"), "{}", accepted.stdout);
        let again = scene.accept(party, &["--json"]).json();
        assert_eq!(again["repeated"], true);
    }
    #[cfg(unix)]
    for private in ["invitations/north.invitation", &scene.kept("north", "membership.json")] {
        use std::os::unix::fs::PermissionsExt;
        let mode = fs::metadata(scene.place.path(private)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{private}");
    }
    let state = scene.status("north");
    assert_eq!(
        (&state["you"]["accepted"], &state["you"]["drawn"], &state["dataset"]),
        (&true.into(), &Value::Null, &Value::Null)
    );

    let north = scene.release("north", &["--json"]).json();
    assert_eq!((&north["repeated"], &north["public"]), (&false.into(), &false.into()));
    scene
        .run(&["hub", "get", &scene.url, "--out", "public.parquet"])
        .refused(6, &["No public dataset yet: says"]);
    let south = scene.release("south", &["--json"]).json();
    assert_eq!(south["public"], true);

    let got = scene.run(&[
        "hub",
        "get",
        &scene.url,
        "--out",
        "public.parquet",
        "--events",
        "events.jsonl",
        "--json",
    ]);
    let got = got.json();
    assert_eq!((&got["latest"], &got["parties"]), (&true.into(), &serde_json::json!(["north", "south"])));
    assert_eq!(
        fs::read(scene.place.path("public.parquet")).unwrap(),
        scene.hub.change(|hub| hub.dataset.clone())
    );
    assert_eq!(scene.status("south")["you"]["released"], true);
    let head = got["head"].as_str().unwrap();
    let verified =
        scene.run(&["verify", "public.parquet", "events.jsonl", "study.toml", "--head", head]).ok().stdout;
    assert!(verified.contains("north signed with the key it registered; south signed"), "{verified}");
    assert!(
        verified.contains("published, the latest") && verified.contains("the study of the log"),
        "{verified}"
    );
    let inspected = scene.run(&["inspect", "events.jsonl"]).ok().stdout;
    for words in
        ["north invited", "south accepted, key", "north released, content", "public dataset of north, south"]
    {
        assert!(inspected.contains(words), "{inspected}");
    }
    assert_eq!(scene.run(&["inspect", "events.jsonl", "--json"]).json()["head"], got["head"]);

    // No secret is printed, and none is in a file that others can read.
    let secret = invitation.trim();
    for text in [verified, inspected, scene.place.read("events.jsonl")] {
        assert!(!text.contains(secret) && !text.contains(COORDINATOR));
    }
}

#[test]
fn a_broken_upload_goes_on_with_the_same_bytes_and_one_charge() {
    let scene = Scene::new();
    scene.ledger("north");
    scene.accept("north", &["--yes"]).ok();
    // The first try ends in mid-upload, and nobody tries again.
    scene.hub.change(|hub| hub.hang_up_after = Some(1000));
    let broken = scene.release("north", &["--retry-for", "0"]);
    broken.refused(6, &["cannot reach", "run this again"]);
    let charged = scene.spent("north");
    assert!(charged > 0);
    let drawn = fs::read(scene.place.path(&scene.kept("north", "north.release.parquet"))).unwrap();
    let status = scene.status("north");
    assert_eq!((status["you"]["drawn"].is_string(), &status["you"]["released"]), (true, &false.into()));
    let said = scene.run(&["party", "status", &scene.url]).ok().stdout;
    assert!(said.contains("drawn but not uploaded"), "{said}");

    // Another ledger knows nothing of the release: it must not be charged for another one.
    scene.ledger("south");
    let mut other = vec!["party", "release", &scene.url, "--ledger", "south.ledger", "--data", "north.csv"];
    other.extend(["--yes", "--accept-low-accuracy"]);
    scene.run(&other).refused(2, &["is drawn, but not charged to budget \"people\""]);
    assert_eq!(scene.spent("south"), 0);

    // The table is gone by then: it is not needed any more. The connection breaks once more, and is
    // taken up.
    fs::remove_file(scene.place.path("north.csv")).unwrap();
    scene.hub.change(|hub| hub.hang_up_after = Some(500));
    let done = scene.release("north", &["--json"]).json();
    assert_eq!(done["repeated"], true);
    assert_eq!(scene.hub.change(|hub| hub.releases["north"].clone()), drawn);
    assert_eq!(scene.spent("north"), charged);
    let offsets = scene.hub.change(|hub| hub.asked.clone());
    for offset in ["offset=0&", "offset=1000&", "offset=1500&"] {
        assert_eq!(offsets.iter().filter(|line| line.contains(offset)).count(), 1, "{offset}");
    }
    let again = scene.release("north", &[]).ok();
    assert!(again.stdout.contains("published before"), "{}", again.stdout);
    assert_eq!(scene.spent("north"), charged);
}

#[test]
fn nothing_is_charged_unless_the_hub_is_as_it_should_be() {
    let scene = Scene::new();
    scene.ledger("north");
    let untouched = |scene: &Scene| {
        assert_eq!(scene.spent("north"), 0);
        assert!(!scene.place.path(&scene.kept("north", "north.release.parquet")).exists());
    };
    scene.release("north", &[]).refused(2, &["not accepted", "party accept"]);
    scene.accept("north", &["--yes"]).ok();

    // Another study under the same address.
    let other = scene.place.read("study.toml").replace("hi = 100", "hi = 101");
    scene.hub.change(|hub| hub.false_study = Some(other));
    scene.release("north", &[]).refused(5, &["fails verification", "seal"]);
    scene.hub.change(|hub| hub.false_study = None);
    untouched(&scene);

    // A log that was cut short.
    let last = scene.hub.change(|hub| hub.events.pop().unwrap());
    scene.release("north", &[]).refused(5, &["the event log", "cut short"]);
    scene.hub.change(|hub| hub.events.push(last));
    untouched(&scene);

    // A key that is not the registered one.
    fs::rename(scene.place.path("north.key"), scene.place.path("kept.key")).unwrap();
    scene.run(&["key", "new", "--out", "north.key", "--force"]).ok();
    scene.release("north", &[]).refused(2, &["not the key that was registered"]);
    scene.accept("north", &["--yes"]).refused(6, &["Another key is registered"]);
    fs::rename(scene.place.path("kept.key"), scene.place.path("north.key")).unwrap();
    untouched(&scene);

    // A void invitation.
    let invite = ["hub", "study", "invite", &scene.url, "north", "--token-file", "coordinator.token"];
    let new = scene.run(&invite).ok().stdout;
    scene.release("north", &[]).refused(6, &["Not allowed: says the stand-in"]);
    scene.hub.change(|hub| hub.events.pop());
    untouched(&scene);
    let token = new.split_whitespace().nth(3).unwrap();
    scene.run(&["party", "accept", &scene.url, "--token", token, "--signing-key", "north.key"]).ok();

    // Nobody there.
    let gone = scene.url.replace("127.0.0.1", "localhost");
    scene
        .run(&["party", "release", &gone, "--data", "north.csv"])
        .refused(2, &["you accepted this study at"]);
    scene.release("north", &["--data", "no.csv"]).refused(3, &["no.csv"]);
    untouched(&scene);
    scene.release("north", &[]).ok();
}

#[test]
fn wrong_usage_of_a_hub_is_explained() {
    let scene = Scene::new();
    let create = |study: &str, url: &str, more: &[&str]| {
        let mut arguments = vec!["hub", "study", "create", study, "--hub", url, "--retry-for", "0"];
        arguments.extend(more);
        scene.run(&arguments)
    };
    let token = ["--token-file", "coordinator.token"];
    scene.place.write("draft.toml", support::STUDY.as_str());
    create("draft.toml", &scene.hub.url, &token).refused(3, &["not sealed", "potluck study seal"]);
    create("study.toml", &scene.hub.url, &[]).refused(2, &["POTLUCK_HUB_TOKEN"]);
    create("study.toml", "http://hub.example.org", &token).refused(2, &["--insecure-http"]);
    create("study.toml", &scene.url, &token).refused(2, &["address of a study"]);
    create("study.toml", "http://127.0.0.1:1", &token).refused(6, &["cannot reach http://127.0.0.1:1"]);
    create("study.toml", &scene.hub.url, &[token[0], token[1], "--out", "invitations"])
        .refused(3, &["north.invitation exists already"]);
    scene.place.write("wrong.token", "guessed");
    create("study.toml", &scene.hub.url, &["--token-file", "wrong.token"]).refused(6, &["Not a coordinator"]);
    scene.run(&["party", "status", &scene.hub.url]).refused(2, &["/studies/"]);
    scene
        .run(&["party", "accept", &scene.url, "--signing-key", "north.key"])
        .refused(2, &["POTLUCK_INVITATION"]);
    let refused =
        scene.run(&["party", "accept", &scene.url, "--signing-key", "north.key", "--token", "a wrong one"]);
    refused.refused(2, &["no token"]);
    assert!(!refused.stderr.contains("a wrong one"));
    let status = scene.run(&["party", "status", &scene.url]).ok().stdout;
    assert!(status.contains("you have not accepted it"), "{status}");
}

#[test]
fn a_false_dataset_or_log_is_refused() {
    let scene = Scene::new();
    for party in ["north", "south"] {
        scene.ledger(party);
        scene.accept(party, &["--yes"]).ok();
        scene.release(party, &[]).ok();
    }
    let get = ["hub", "get", &scene.url, "--out", "public.parquet", "--events", "events.jsonl"];
    let honest = scene.hub.change(|hub| hub.dataset.clone());
    // A release is a good file, but no public dataset; a changed byte; a dataset that is not in the
    // log.
    let false_ones = scene.hub.change(|hub| {
        let mut changed = hub.dataset.clone();
        changed[1000] ^= 1;
        [hub.releases["north"].clone(), changed]
    });
    for bytes in false_ones {
        scene.hub.change(|hub| hub.dataset = bytes);
        scene.run(&get).refused(5, &["the public dataset from", "fails verification"]);
    }
    scene.hub.change(|hub| hub.dataset = honest);
    let last = scene.hub.change(|hub| hub.events.pop().unwrap());
    scene.run(&get).refused(5, &["no such public dataset"]);
    scene.hub.change(|hub| hub.events.push(last));
    let left: Vec<_> =
        fs::read_dir(scene.place.folder()).unwrap().flatten().map(|entry| entry.file_name()).collect();
    assert!(
        !left.iter().any(|name| name.to_string_lossy().contains("public") || name == "events.jsonl"),
        "{left:?}"
    );
    scene.run(&get).ok();
    scene.run(&get).refused(3, &["exists already"]);

    // `verify` names what is good before what is bad.
    let log = scene.place.read("events.jsonl");
    scene.place.write("cut.jsonl", log.lines().take(3).map(|line| format!("{line}\n")).collect::<String>());
    scene.place.write("forged.jsonl", log.replace("T00:00:00Z", "T00:00:01Z"));
    let head =
        scene.run(&["verify", "events.jsonl", "--json"]).json()[0]["head"].as_str().unwrap().to_owned();
    let forged = scene.run(&["verify", "study.toml", "forged.jsonl", "public.parquet"]);
    forged.refused(
        5,
        &["study.toml: good study", "public.parquet: good dataset", "event 1: it does not match"],
    );
    scene.run(&["verify", "cut.jsonl", "--head", &head]).refused(5, &["cut short"]);
    scene
        .run(&["verify", "cut.jsonl", "public.parquet"])
        .refused(5, &["cut.jsonl: good event log", "registered no key"]);
    scene.run(&["verify", "public.parquet", "--head", &head]).refused(2, &["--head needs"]);
    scene.run(&["verify", "cut.jsonl", "events.jsonl"]).refused(2, &["one event log"]);
    scene.run(&["verify", "events.jsonl", "--key", "north=south.key.pub"]).refused(5, &["another key"]);
    scene.run(&["verify", "events.jsonl", "--key", "north=north.key.pub"]).ok();
    scene.run(&["inspect", "forged.jsonl"]).refused(5, &["event 1"]);
    let release = scene.kept("north", "north.release.parquet");
    let verified = scene.run(&["verify", "events.jsonl", &release]).ok().stdout;
    assert!(verified.contains("north signed with the key it registered; published"), "{verified}");
}

#[test]
fn the_contract_is_shown_whatever_the_hub_says() {
    let scene = Scene::new();
    scene.hub.change(|hub| hub.claims_acceptance = true);
    scene.accept("north", &[]).refused(2, &["As north you are asked", "joint guarantee", "--yes"]);
    let accepted =
        scene.hub.change(|hub| hub.asked.iter().filter(|line| line.contains("acceptance")).count());
    assert_eq!(accepted, 0, "nothing was signed");
    scene.accept("north", &["--yes"]).ok();
    // Agreed with our own signature: not asked again.
    let again = scene.accept("north", &[]).ok();
    assert!(!again.stderr.contains("you are asked"), "{}", again.stderr);
}

#[test]
fn a_party_is_warned_of_a_study_that_makes_it_refuse() {
    let levels = "levels = [\"no\", \"yes\"]\n";
    let scene = Scene::with_study(&STUDY.replace(levels, &format!("{levels}unknown = \"error\"\n")));
    scene.accept("north", &[]).refused(2, &["Careful: this study makes north refuse its table", "smoker"]);
    let other = scene.accept("south", &["--yes"]).ok();
    assert!(!other.stderr.contains("refuse its table"), "{}", other.stderr);
}

#[test]
fn a_restored_log_is_taken_only_where_somebody_says_so() {
    let scene = Scene::new();
    for party in ["north", "south"] {
        scene.ledger(party);
        scene.accept(party, &["--yes"]).ok();
    }
    let head = |party: &str| {
        let kept: Value =
            serde_json::from_str(&scene.place.read(&scene.kept(party, "membership.json"))).unwrap();
        kept["head"].as_str().unwrap().to_owned()
    };
    // South accepted after the backup.
    let old = head("south");
    let lost = scene.hub.change(|hub| hub.events.pop().unwrap());
    assert_eq!(lost.hash, old);
    let new = scene.hub.change(|hub| hub.events.last().unwrap().hash.clone());
    for refused in [
        scene.release("south", &[]),
        scene.accept("south", &["--yes"]),
        scene.run(&["party", "status", &scene.url, "--party", "south"]),
    ] {
        refused.refused(5, &["cut short", &old, "--log-was-restored"]);
        assert_eq!(head("south"), old, "what was seen is not forgotten");
    }
    scene.release("south", &["--log-was-restored"]).refused(2, &[&old, &new, "not accepted"]);
    assert_eq!((scene.spent("south"), head("south")), (0, new.clone()));
    // Once is enough.
    scene.accept("south", &["--yes"]).ok();
    scene.release("south", &[]).ok();
    scene.release("north", &["--log-was-restored"]).ok();

    // Cut short once more: accepting anew takes it too, and says so.
    let old = head("north");
    scene.hub.change(|hub| hub.events.truncate(hub.events.len() - 2));
    let new = scene.hub.change(|hub| hub.events.last().unwrap().hash.clone());
    scene.accept("north", &["--yes"]).refused(5, &["--log-was-restored"]);
    let taken = scene.accept("north", &["--log-was-restored"]).ok();
    assert!(taken.stderr.contains(&old) && taken.stderr.contains(&new), "{}", taken.stderr);
    assert_eq!(head("north"), new);
}

#[test]
fn a_steward_of_several_parties_sees_them_all() {
    let scene = Scene::new();
    for party in ["north", "south"] {
        scene.ledger(party);
        scene.accept(party, &["--yes"]).ok();
    }
    scene.release("north", &[]).ok();
    let status = scene.run(&["party", "status", &scene.url]).ok().stdout;
    assert!(status.contains("you (north): released; nothing is left"), "{status}");
    assert!(status.contains("you (south): accepted;") && status.contains("--party south"), "{status}");
    let status = scene.run(&["party", "status", &scene.url, "--json"]).json();
    assert_eq!(status["you"], Value::Null);
    assert_eq!(
        (&status["yours"][0]["released"], &status["yours"][1]["released"]),
        (&true.into(), &false.into())
    );
    scene.run(&["party", "release", &scene.url, "--yes"]).refused(2, &["north and south", "--party"]);
}

/// A study of north and south, and one of east that extends it, with their logs and a public
/// dataset.
struct Lineage {
    base: Study,
    wider: Study,
    text: String,
}

impl Lineage {
    fn new() -> Self {
        let base = sealed(&pair().to_string(), 1);
        let wider = study("wider", 50)
            .settings(&format!("extends = \"{}\"\nmethod = \"rmgm\"\nk = 4", base.id()))
            .party("east", &["salt lo = 0; hi = 100"]);
        let wider = Extension::parse(&wider.to_string(), &base).unwrap();
        let sealed = wider.seal().unwrap();
        Self { base, text: wider.sealed_text(&sealed), wider: sealed }
    }

    fn release(&self, party: &str, seed: u8, first: i64) -> Release {
        let under = self.wider.study_of(party).unwrap();
        Release::new(under, party, &[vec![first, -7, 100_000, 3]], Some(&signing_key(seed))).unwrap()
    }

    /// The log of a study in which these were accepted and released.
    fn log(study: &Study, releases: &[(&Release, u8)]) -> Vec<Change> {
        let mut changes = vec![Change::Created { study: study.to_json(), early: false }];
        for &(release, seed) in releases {
            let acceptance = Acceptance::new(study, release.party(), &signing_key(seed));
            changes.push(Change::Accepted { acceptance });
            changes.push(Change::Released {
                party: release.party().to_owned(),
                sha256: "0".repeat(64),
                size: 1,
                content_hash: release.content_hash().to_owned(),
            });
        }
        changes
    }

    /// What a hub gives out, if these are the releases in its public dataset; `honest` is north's
    /// own.
    fn serve(&self, scene: &Scene, honest: &Release, north: &Release) {
        let (south, east) = (self.release("south", 2, 6), self.release("east", 3, 7));
        let releases = [north.clone(), south.clone(), east.clone()];
        let dataset = PublicDataset::join(&self.wider, &releases, Completeness::All).unwrap();
        let path = scene.place.path("served.parquet");
        dataset.write(&path, Existing::Replace).unwrap();
        let digest = potluck_client::FileDigest::of(&path).unwrap();
        let mut wider = Self::log(&self.wider, &[(&east, 3)]);
        wider.push(Change::Published {
            parties: dataset.parties().map(|(party, _)| party.to_owned()).collect(),
            sha256: digest.sha256,
            size: digest.size,
            content_hash: dataset.content_hash().to_owned(),
        });
        let lines = |changes: Vec<Change>| {
            let mut events: Vec<Event> = Vec::new();
            for change in changes {
                events.push(Event::following(events.last(), "2026-01-31T00:00:00Z".to_owned(), change));
            }
            events.iter().map(Event::to_line).collect::<String>().into_bytes()
        };
        let base = lines(Self::log(&self.base, &[(honest, 1), (&south, 2)]));
        scene.hub.change(|hub| {
            let (of_base, of_wider) = (self.base.id(), self.wider.id());
            hub.fixed.insert(format!("studies/{of_wider}/study.toml"), self.text.clone().into_bytes());
            hub.fixed.insert(format!("studies/{of_wider}/dataset"), fs::read(&path).unwrap());
            hub.fixed.insert(format!("studies/{of_wider}/events.jsonl"), lines(wider));
            hub.fixed.insert(format!("studies/{of_base}/events.jsonl"), base);
        });
    }
}

#[test]
fn made_up_columns_of_a_party_of_the_base_are_refused() {
    let scene = Scene::new();
    let lineage = Lineage::new();
    let url = format!("{}/studies/{}", scene.hub.url, lineage.wider.id());
    let (base_log, honest) = (format!("events.{}.jsonl", lineage.base.id()), lineage.release("north", 1, 5));
    let get =
        ["hub", "get", &url, "--out", "public.parquet", "--events", "events.jsonl", "--json", "--force"];

    lineage.serve(&scene, &honest, &honest);
    let got = scene.run(&get).json();
    assert_eq!(got["logs"][1]["study_id"], lineage.base.id());
    let heads = [got["logs"][0]["head"].as_str().unwrap(), got["logs"][1]["head"].as_str().unwrap()];
    let verify = ["verify", "public.parquet", "events.jsonl", &base_log];
    let more = ["--head", heads[0], "--head", heads[1]];
    let verified = scene.run(&[verify.as_slice(), &more].concat()).ok().stdout;
    assert!(verified.contains("north signed with the key it registered"), "{verified}");
    // As the page of the study has it, in a shell.
    #[cfg(unix)]
    {
        let command = "\"$0\" verify events.jsonl events.*.jsonl public.parquet";
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", command, env!("CARGO_BIN_EXE_potluck")]).current_dir(scene.place.folder());
        assert!(shell.status().unwrap().success());
    }
    let unknown = "0".repeat(64);
    scene.run(&[verify.as_slice(), &["--head", &unknown]].concat()).refused(5, &["holds no event"]);
    // Which log is missing, and where it is.
    let words = [lineage.base.id(), "hub get --events"];
    scene.run(&["verify", "public.parquet", "events.jsonl"]).refused(5, &words);
    scene.run(&["verify", "public.parquet", &base_log]).refused(5, &[lineage.wider.id(), "hub get --events"]);
    scene.run(&["verify", "public.parquet"]).ok();

    // North's columns are made up, signed with another key or with its own; the extension's log
    // says that all is well.
    for (forged, word) in [
        (lineage.release("north", 9, 5), "not signed with the key that north registered"),
        (lineage.release("north", 1, 8), "not the one that north published"),
    ] {
        lineage.serve(&scene, &honest, &forged);
        scene.run(&get).refused(5, &[word]);
        fs::copy(scene.place.path("served.parquet"), scene.place.path("forged.parquet")).unwrap();
        let log = scene
            .hub
            .change(|hub| hub.fixed[&format!("studies/{}/events.jsonl", lineage.wider.id())].clone());
        scene.place.write("forged.jsonl", log);
        scene.run(&["verify", "forged.parquet", "forged.jsonl", &base_log]).refused(5, &[word]);
        scene.run(&["verify", "forged.parquet", "forged.jsonl"]).refused(5, &words);
    }
    // A hub that does not give out the log of the base.
    lineage.serve(&scene, &honest, &honest);
    scene.hub.change(|hub| hub.fixed.remove(&format!("studies/{}/events.jsonl", lineage.base.id())));
    scene.run(&get).refused(6, &["No such study"]);
}
