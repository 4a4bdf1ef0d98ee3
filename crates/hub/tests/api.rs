//! The hub over HTTP: the life of a study, and everything that must be refused.
#![allow(clippy::unwrap_used)]

mod support;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, RecordBatch};
use potluck_fixtures::{signing_key, study};
use potluck_hub::config::Options;
use potluck_hub::store::back_up;
use potluck_hub::{Config, Store};
use potluck_release::events::{Acceptance, EventLog, Withdrawal};
use potluck_release::exchange::{Close, NewStudy};
use potluck_release::signing::SigningKey;
use potluck_release::{Extension, PublicDataset, Study};
use serde_json::json;
use support::{Hub, STUDY, release, sealed, sealed_with, sha256};

#[test]
fn a_study_lives_from_creation_to_its_public_dataset() {
    let hub = Hub::start();
    let text = sealed(&STUDY);
    let members = hub.create(&text, false);
    let study = members[0].study.clone();
    let at = format!("/api/v1/studies/{}", study.id());
    let again =
        hub.post("/api/v1/studies", &hub.coordinator, &NewStudy { study: text.clone(), early: false });
    assert_eq!((again.status, again.json()["invitations"].as_array().unwrap().len()), (200, 0));

    assert_eq!(hub.get(&format!("{at}/study.toml")).text(), text);
    let details = hub.get(&at).json();
    assert_eq!(
        (&details["accepted"], &details["released"], &details["dataset"]),
        (&json!(0), &json!(0), &json!(false))
    );
    assert!(details["joint"]["epsilon"].as_f64() > details["per_party"]["epsilon"].as_f64());

    for member in &members {
        let invitation = format!("{at}/invitation");
        let bearer = format!("Bearer {}", member.token);
        let whose = hub.get_with(&invitation, &[("authorization", &bearer)]).json();
        assert_eq!((&whose["party"], &whose["accepted"]), (&json!(member.name), &json!(false)));
        assert_eq!(member.accept(&hub).status, 201);
        assert_eq!(member.accept(&hub).status, 200);
    }
    let file = hub.folder.path().join("release.parquet");
    let (north, south) = (members[0].release(&file), members[1].release(&file));
    // In any order; no dataset before the last.
    assert_eq!(members[1].upload(&hub, &south).status, 201);
    assert_eq!(
        hub.get(&format!("{at}/dataset")).refusal(404),
        "the study has no public dataset yet; it appears when its parties have released"
    );
    assert_eq!(members[0].upload(&hub, &north).status, 201);
    assert_eq!(members[0].upload(&hub, &north).status, 200, "the same bytes again");

    assert_eq!(hub.get(&members[0].path("release")).body, north);
    let dataset = hub.get(&format!("{at}/dataset"));
    std::fs::write(&file, &dataset.body).unwrap();
    let joined = PublicDataset::read(&file).unwrap();
    assert_eq!(joined.parties().map(|(name, _)| name).collect::<Vec<_>>(), ["north", "south"]);

    let log = hub.get(&format!("{at}/events.jsonl"));
    let log = EventLog::parse(&log.text(), Path::new("events.jsonl")).unwrap();
    assert_eq!(log.study().id(), study.id());
    assert_eq!(log.keys()["north"], members[0].key.public());
    assert_eq!(log.releases()["south"].sha256, sha256(&south));
    assert_eq!(log.datasets().last().unwrap().content_hash, joined.content_hash());
    assert_eq!(log.head(), hub.get(&at).json()["head"]);
    let mut paged = Vec::new();
    let mut after = Some(0);
    while let Some(from) = after {
        let page = hub.get(&format!("{at}/events?limit=3&after={from}")).json();
        paged.extend(page["events"].as_array().unwrap().clone());
        after = page["next"].as_u64();
    }
    let hashes: Vec<_> = paged.iter().map(|event| event["hash"].as_str().unwrap()).collect();
    assert_eq!(hashes, log.events().iter().map(|event| event.hash.as_str()).collect::<Vec<_>>());
}

#[test]
fn an_early_study_shows_what_there_is() {
    let hub = Hub::start();
    let members = hub.create(&sealed(&STUDY), true);
    let dataset = format!("/api/v1/studies/{}/dataset", members[0].study.id());
    let file = hub.folder.path().join("file.parquet");
    for (count, member) in members.iter().enumerate() {
        assert_eq!(member.accept(&hub).status, 201);
        assert_eq!(member.upload(&hub, &member.release(&file)).status, 201);
        std::fs::write(&file, hub.get(&dataset).body).unwrap();
        assert_eq!(PublicDataset::read(&file).unwrap().parties().count(), count + 1);
    }
}

fn latecomer(base: &str) -> String {
    study("three clinics and a laboratory", 1000)
        .settings(&format!("extends = \"{base}\"\nmethod = \"rmgm\"\nmixing = \"sparse\""))
        .party("laboratory", &["sugar lo = 3; hi = 20"])
        .to_string()
}

fn sealed_latecomer(base: &Study) -> String {
    let extension = Extension::parse(&latecomer(base.id()), base).unwrap();
    extension.sealed_text(&extension.seal().unwrap())
}

#[test]
fn every_refusal_has_a_type_that_programs_can_rely_on() {
    let hub = Hub::start();
    let kind = |answer: support::Answer| answer.json()["type"].as_str().unwrap().to_owned();
    let new = NewStudy { study: "not a study".to_owned(), early: false };
    for (answer, name) in [
        (hub.get("/api/v1/nothing"), "not-found"),
        (hub.get("/api/v1/studies?limit=0"), "malformed"),
        (hub.post("/api/v1/studies", "nobody", &new), "unauthorized"),
        (hub.post("/api/v1/studies", &hub.coordinator, &new), "unacceptable"),
        (hub.put("/api/v1/studies", &hub.coordinator, b""), "method-not-allowed"),
    ] {
        assert_eq!(kind(answer), format!("urn:potluck:problem:{name}"));
    }
    let described = hub.get("/openapi.json").json();
    let types = described["components"]["schemas"]["ProblemType"]["enum"].to_string();
    assert!(types.contains("urn:potluck:problem:upload-offset"), "{types}");
}

#[test]
fn everything_that_is_wrong_with_a_study_is_listed() {
    let hub = Hub::start();
    let wrong = STUDY.replacen("rows = 1000", "rows = \"many\"", 1).replacen("hi = ", "high = ", 1);
    let line = |word: &str| wrong.lines().position(|line| line.starts_with(word)).unwrap() + 1;
    let new = NewStudy { study: wrong.clone(), early: false };
    for answer in [hub.post_text("/api/v1/plan", &wrong), hub.post("/api/v1/studies", &hub.coordinator, &new)]
    {
        assert_eq!(answer.status, 422);
        let errors = answer.json()["errors"].clone();
        assert_eq!(errors.as_array().unwrap().len(), 2, "{errors}");
        assert_eq!(errors[0]["pointer"], "/study/rows");
        assert_eq!(errors[0]["place"], "study.rows");
        assert_eq!(errors[0]["line"], line("rows = "));
        assert!(errors[0]["detail"].as_str().unwrap().starts_with("is text; write a whole number"));
        assert_eq!(errors[1]["pointer"], "/party/0/column/0/high");
        assert_eq!(errors[1]["line"], line("high = "));
        assert!(answer.json()["detail"].as_str().unwrap().starts_with("2 things in the study are wrong"));
    }
    // Refusals of another kind have no such list.
    assert!(hub.get("/api/v1/nothing").json().get("errors").is_none());
}

#[test]
fn a_latecomer_adds_columns_and_the_joint_guarantee_grows() {
    let hub = Hub::start();
    let base = sealed(&STUDY);
    let study = Study::parse(&base).unwrap();
    let draft = latecomer(study.id());
    let extension = Extension::parse(&draft, &study).unwrap();
    let text = extension.sealed_text(&extension.seal().unwrap());
    let new = NewStudy { study: text.clone(), early: false };
    let refusal = hub.post("/api/v1/studies", &hub.coordinator, &new).refusal(409);
    assert!(refusal.contains(study.id()), "{refusal}");

    let members = hub.create(&base, false);
    let latecomers = hub.create(&text, false);
    assert_eq!(latecomers.iter().map(|member| member.name.as_str()).collect::<Vec<_>>(), ["laboratory"]);
    let details = |study: &Study| hub.get(&format!("/api/v1/studies/{}", study.id())).json();
    let (first, extended) = (details(&study), details(&latecomers[0].study));
    assert_eq!(first["extended_by"], json!([latecomers[0].study.id()]));
    assert_eq!(extended["extends"], study.id());
    assert_eq!(extended["parties"], 3);
    assert!(extended["joint"]["epsilon"].as_f64() > first["joint"]["epsilon"].as_f64());
    assert_eq!(extended["per_party"], first["per_party"]);
    // The plan of the draft finds what it extends here.
    let plan = hub.post_text("/api/v1/plan", &draft);
    assert_eq!((plan.status, &plan.json()["joint"]), (200, &extended["joint"]));

    // Each party releases under the study that lists it; the last one completes both datasets.
    let file = hub.folder.path().join("r.parquet");
    for (count, member) in latecomers.iter().chain(&members).enumerate() {
        let accepted = || details(&latecomers[0].study)["accepted"].clone();
        assert_eq!(accepted(), count, "parties of the base are counted, and nothing old is remembered");
        assert_eq!(member.accept(&hub).status, 201, "{}", member.name);
        assert_eq!(accepted(), count + 1);
    }
    let foreign = format!("/api/v1/studies/{}/parties/north/acceptance", latecomers[0].study.id());
    hub.post(&foreign, &members[0].token, &json!({})).refusal(401);
    for member in latecomers.iter().chain(&members) {
        assert_eq!(member.upload(&hub, &member.release(&file)).status, 201, "{}", member.name);
    }
    for (study, parties) in [(&study, 2), (&latecomers[0].study, 3)] {
        let at = format!("/api/v1/studies/{}", study.id());
        std::fs::write(&file, hub.get(&format!("{at}/dataset")).body).unwrap();
        assert_eq!(PublicDataset::read(&file).unwrap().parties().count(), parties);
        let log = hub.get(&format!("{at}/events.jsonl")).text();
        EventLog::parse(&log, Path::new("events.jsonl")).unwrap();
        assert_eq!(log.contains("extended"), parties == 2);
    }
    // What the page says to run takes the log of each study that a party released under.
    let page = |study: &Study| hub.get(&format!("/studies/{}", study.id())).text();
    assert!(page(&study).contains("potluck verify events.jsonl public.parquet"));
    assert!(page(&latecomers[0].study).contains("potluck verify events.jsonl events.*.jsonl public.parquet"));
    let fit = format!("/api/v1/studies/{}/fit?label=sugar&feature=age", latecomers[0].study.id());
    assert_eq!(hub.get(&fit).status, 200);
}

#[test]
fn lists_are_paged_newest_first() {
    let hub = Hub::start();
    for key in 0..5 {
        hub.create(&sealed_with(&STUDY.replace("three clinics", &format!("study {key}")), key), false);
    }
    let first = hub.get("/api/v1/studies?limit=2").json();
    assert_eq!(first["studies"][0]["name"], "study 4");
    let second = hub.get(&format!("/api/v1/studies?limit=2&after={}", first["next"])).json();
    let third = hub.get(&format!("/api/v1/studies?limit=2&after={}", second["next"])).json();
    assert_eq!(third["studies"].as_array().unwrap().len(), 1);
    assert!(third["next"].is_null());
    for bad in ["limit=0", "limit=101", "limit=x", "after=-1"] {
        hub.get(&format!("/api/v1/studies?{bad}")).refusal(400);
    }
}

#[test]
fn downloads_have_tags_and_ranges() {
    let hub = Hub::start();
    let members = hub.finished(&sealed(&STUDY));
    let path = members[0].path("release");
    let whole = hub.get(&path);
    let tag = whole.header("etag").to_owned();
    assert_eq!(tag, format!("\"{}\"", sha256(&whole.body)));
    assert_eq!(hub.get_with(&path, &[("if-none-match", &tag)]).status, 304);
    let part = hub.get_with(&path, &[("range", "bytes=10-19"), ("if-range", &tag)]);
    assert_eq!((part.status, part.body.as_slice()), (206, &whole.body[10..20]));
    assert_eq!(part.header("content-range"), format!("bytes 10-19/{}", whole.body.len()));
    assert_eq!(hub.get_with(&path, &[("range", "bytes=10-"), ("if-range", "\"old\"")]).body, whole.body);
    for file in [path.clone(), format!("/api/v1/studies/{}/events.jsonl", members[0].study.id())] {
        // The client would undo a compression and not tell.
        let mut stream = TcpStream::connect(hub.address()).unwrap();
        write!(
            stream,
            "HEAD {file} HTTP/1.1\r\nhost: hub\r\naccept-encoding: gzip\r\nconnection: close\r\n\r\n"
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("content-length: "), "{answer}");
        assert!(!answer.contains("content-encoding"), "a tag is of exact bytes: {answer}");
    }
    let outside = hub.get_with(&path, &[("range", "bytes=99999999-")]);
    outside.refusal(416);
    assert_eq!(outside.header("content-range"), format!("bytes */{}", whole.body.len()));
}

#[test]
fn only_those_who_may_can_act() {
    let hub = Hub::start();
    let text = sealed(&STUDY);
    let new = NewStudy { study: text.clone(), early: false };
    for token in ["", "nonsense", "plc_0000"] {
        hub.post("/api/v1/studies", token, &new).refusal(401);
    }
    assert_eq!(hub.get("/api/v1/studies").json()["studies"], json!([]), "nothing was stored");
    let members = hub.create(&text, false);
    let (north, south) = (&members[0], &members[1]);
    let bytes = north.release(&hub.folder.path().join("r.parquet"));
    let upload = north.path(&format!("release?sha256={}", sha256(&bytes)));
    let acceptance = Acceptance::new(&north.study, "north", &north.key);

    hub.post("/api/v1/studies", &north.token, &new).refusal(401);
    for (token, status) in [("nonsense", 401), (hub.coordinator.as_str(), 401), (south.token.as_str(), 403)] {
        hub.post(&north.path("acceptance"), token, &acceptance).refusal(status);
        hub.put(&upload, token, &bytes).refusal(status);
        let state = north.path(&format!("upload?sha256={}", sha256(&bytes)));
        hub.get_with(&state, &[("authorization", &format!("Bearer {token}"))]).refusal(status);
    }
    hub.get(&format!("/api/v1/studies/{}/invitation", north.study.id())).refusal(401);
    assert_eq!(hub.files(), (0, 0));

    // A new invitation voids the old one; only the study's coordinator can issue it, and only
    // before acceptance.
    let invite = north.path("invitation");
    let other = Store::open(&hub.data()).unwrap().add_coordinator("eve", false).unwrap();
    hub.post(&invite, other.reveal(), &()).refusal(409);
    hub.post(&invite, &north.token, &()).refusal(401);
    let fresh = hub.post(&invite, &hub.coordinator, &());
    assert_eq!(fresh.status, 201);
    north.accept(&hub).refusal(401);
    let fresh = fresh.json()["token"].as_str().unwrap().to_owned();
    assert_eq!(hub.post(&north.path("acceptance"), &fresh, &acceptance).status, 201);
    // A party that accepted and lost its token gets a new one, and keeps its key.
    let newest = hub.post(&invite, &hub.coordinator, &()).json()["token"].as_str().unwrap().to_owned();
    hub.put(&upload, &fresh, &bytes).refusal(401);
    let other_key = Acceptance::new(&north.study, "north", &south.key);
    hub.post(&north.path("acceptance"), &newest, &other_key).refusal(409);
    assert_eq!(hub.put(&upload, &newest, &bytes).status, 201);
    hub.post(&invite, &hub.coordinator, &()).refusal(409);
    let log = hub.get(&format!("/api/v1/studies/{}/events.jsonl", north.study.id())).text();
    EventLog::parse(&log, Path::new("events.jsonl")).unwrap();
    // A coordinator whose token is replaced cannot use the old one.
    Store::open(&hub.data()).unwrap().add_coordinator("ada", true).unwrap();
    hub.post("/api/v1/studies", &hub.coordinator, &new).refusal(401);
}

#[test]
fn an_acceptance_is_of_the_exact_contract_and_binds_one_key() {
    let hub = Hub::start();
    let members = hub.create(&sealed(&STUDY), false);
    let north = &members[0];
    let refuse = |acceptance: &Acceptance, status| {
        hub.post(&north.path("acceptance"), &north.token, acceptance).refusal(status)
    };
    let good = Acceptance::new(&north.study, "north", &north.key);
    refuse(&Acceptance { study_id: "0".repeat(64), ..good.clone() }, 422);
    refuse(&Acceptance { party: "south".to_owned(), ..good.clone() }, 422);
    refuse(&Acceptance { key: members[1].key.public().to_string(), ..good.clone() }, 422);
    refuse(&Acceptance { signature: "0".repeat(128), ..good.clone() }, 422);
    refuse(&Acceptance { signature: "x".to_owned(), ..good.clone() }, 422);
    refuse(&Acceptance::new(&north.study, "south", &north.key), 422);
    assert_eq!(north.accept(&hub).status, 201);
    let other = signing_key(99);
    refuse(&Acceptance::new(&north.study, "north", &other), 409);
    let details = hub.get(&format!("/api/v1/studies/{}", north.study.id())).json();
    assert_eq!(details["party"][0]["key"], north.key.public().to_string());
}

fn log_of(hub: &Hub, study: &Study) -> EventLog {
    let log = hub.get(&format!("/api/v1/studies/{}/events.jsonl", study.id()));
    EventLog::parse(&log.text(), Path::new("events.jsonl")).unwrap()
}

#[test]
fn an_acceptance_is_taken_back_by_the_key_that_made_it_and_once() {
    let hub = Hub::start();
    let members = hub.create(&sealed(&STUDY), false);
    let (north, south) = (&members[0], &members[1]);
    let path = north.path("withdrawal");
    let word =
        |acceptance: &str, key: &SigningKey| Withdrawal::new(north.study.id(), "north", acceptance, key);
    let none = word(&"0".repeat(64), &north.key);
    assert!(hub.post(&path, &north.token, &none).refusal(409).contains("nothing to undo"));
    for member in &members {
        assert_eq!(member.accept(&hub).status, 201);
    }
    let event = log_of(&hub, &north.study).acceptance("north").unwrap().to_owned();
    let good = word(&event, &north.key);
    // A token alone is not enough, nor is a key alone.
    for (token, status) in [("nonsense", 401), (hub.coordinator.as_str(), 401), (south.token.as_str(), 403)] {
        hub.post(&path, token, &good).refusal(status);
    }
    hub.post(&path, &north.token, &word(&event, &south.key)).refusal(422);
    hub.post(&path, &north.token, &none).refusal(409);
    hub.post(&path, &north.token, &Withdrawal { party: "south".to_owned(), ..good.clone() }).refusal(422);
    hub.post(&path, &north.token, &Withdrawal { study_id: event.clone(), ..good.clone() }).refusal(422);
    assert_eq!(log_of(&hub, &north.study).keys().len(), 2, "nothing happened");

    assert_eq!(hub.post(&path, &north.token, &good).status, 201);
    assert_eq!(hub.post(&path, &north.token, &good).status, 200, "the same again is harmless");
    let details = hub.get(&format!("/api/v1/studies/{}", north.study.id())).json();
    assert_eq!((&details["party"][0]["key"], &details["accepted"]), (&json!(null), &json!(1)));
    let file = hub.folder.path().join("r.parquet");
    let bytes = north.release(&file);
    assert!(north.upload(&hub, &bytes).refusal(409).contains("has not accepted"));
    // The same invitation takes another key; what was said about the first acceptance is spent.
    let other = signing_key(99);
    let acceptance = Acceptance::new(&north.study, "north", &other);
    assert_eq!(hub.post(&north.path("acceptance"), &north.token, &acceptance).status, 201);
    hub.post(&path, &north.token, &good).refusal(409);
    assert!(north.upload(&hub, &bytes).refusal(422).contains("another key"));
    let bytes = release(&north.study, "north", Some(&other), 0, &file);
    assert_eq!(north.upload(&hub, &bytes).status, 201);
    let event = log_of(&hub, &north.study).acceptance("north").unwrap().to_owned();
    let late = hub.post(&path, &north.token, &word(&event, &other)).refusal(409);
    assert!(late.contains("has released"), "{late}");
}

#[test]
fn a_coordinator_undoes_an_acceptance_with_a_new_invitation() {
    let hub = Hub::start();
    let members = hub.create(&sealed(&STUDY), false);
    let (north, south) = (&members[0], &members[1]);
    let undo = north.path("invitation?undo_acceptance=true");
    hub.post(&undo, &hub.coordinator, &()).refusal(409);
    assert_eq!(north.accept(&hub).status, 201);
    hub.post(&north.path("invitation?undo_acceptance=perhaps"), &hub.coordinator, &()).refusal(400);
    let other = Store::open(&hub.data()).unwrap().add_coordinator("eve", false).unwrap();
    for (token, status) in
        [("nonsense", 401), (&*north.token, 401), (&*south.token, 401), (other.reveal(), 409)]
    {
        hub.post(&undo, token, &()).refusal(status);
    }
    let fresh = hub.post(&undo, &hub.coordinator, &());
    assert_eq!(fresh.status, 201);
    north.accept(&hub).refusal(401);
    let acceptance = Acceptance::new(&north.study, "north", &south.key);
    let fresh = fresh.json()["token"].as_str().unwrap().to_owned();
    assert_eq!(hub.post(&north.path("acceptance"), &fresh, &acceptance).status, 201);
    let bytes = release(&north.study, "north", Some(&south.key), 0, &hub.folder.path().join("r.parquet"));
    let upload = north.path(&format!("release?sha256={}", sha256(&bytes)));
    assert_eq!(hub.put(&upload, &fresh, &bytes).status, 201);
    assert!(hub.post(&undo, &hub.coordinator, &()).refusal(409).contains("has released"));
    assert_eq!(log_of(&hub, &north.study).keys()["north"], south.key.public());
}

#[test]
fn a_study_is_closed_by_its_coordinator_before_the_first_release_only() {
    let hub = Hub::start();
    let text = sealed(&STUDY);
    let members = hub.create(&text, true);
    let (north, south) = (&members[0], &members[1]);
    let at = format!("/api/v1/studies/{}", north.study.id());
    let closing = format!("{at}/closing");
    let because = |reason: &str| Close { reason: reason.to_owned() };
    assert_eq!(north.accept(&hub).status, 201);
    let other = Store::open(&hub.data()).unwrap().add_coordinator("eve", false).unwrap();
    for (token, status) in [("nonsense", 401), (&*north.token, 401), (other.reveal(), 409)] {
        hub.post(&closing, token, &because("spite")).refusal(status);
    }
    let nowhere = format!("/api/v1/studies/{}/closing", "0".repeat(64));
    hub.post(&nowhere, &hub.coordinator, &because("")).refusal(404);
    hub.post(&closing, &hub.coordinator, &because("two\nlines")).refusal(422);
    hub.post(&closing, &hub.coordinator, &because(&"x".repeat(501))).refusal(422);
    assert_eq!(hub.get(&at).json()["closed"], json!(null), "nothing happened");

    let done = hub.post(&closing, &hub.coordinator, &because("wrong bounds"));
    assert_eq!((done.status, &done.json()["reason"]), (201, &json!("wrong bounds")));
    let again = hub.post(&closing, &hub.coordinator, &because("other words"));
    assert_eq!((again.status, &again.json()["reason"]), (200, &json!("wrong bounds")));
    assert_eq!(hub.get(&at).json()["closed"]["reason"], "wrong bounds");
    assert_eq!(hub.get("/api/v1/studies").json()["studies"][0]["closed"]["reason"], "wrong bounds");
    let event = log_of(&hub, &north.study).acceptance("north").unwrap().to_owned();
    let bytes = north.release(&hub.folder.path().join("r.parquet"));
    let withdrawal = Withdrawal::new(north.study.id(), "north", &event, &north.key);
    for refused in [
        south.accept(&hub),
        north.upload(&hub, &bytes),
        hub.post(&north.path("withdrawal"), &north.token, &withdrawal),
        hub.post(&south.path("invitation"), &hub.coordinator, &()),
        hub.post(&north.path("invitation?undo_acceptance=true"), &hub.coordinator, &()),
    ] {
        let detail = refused.refusal(409);
        assert!(detail.contains("closed by its coordinator"), "{detail}");
    }
    assert_eq!(hub.files(), (0, 0), "nothing was kept");
    assert_eq!(log_of(&hub, &north.study).closed().unwrap().1, "wrong bounds");
    let new = NewStudy { study: sealed_latecomer(&Study::parse(&text).unwrap()), early: false };
    assert!(hub.post("/api/v1/studies", &hub.coordinator, &new).refusal(409).contains("was closed"));
}

#[test]
fn a_study_that_is_needed_or_has_a_release_is_not_closed() {
    let hub = Hub::start();
    let close = |study: &Study| {
        let path = format!("/api/v1/studies/{}/closing", study.id());
        hub.post(&path, &hub.coordinator, &Close::default())
    };
    let text = sealed(&STUDY);
    let members = hub.create(&text, false);
    let base = members[0].study.clone();
    let late = hub.create(&sealed_latecomer(&base), false);
    let refused = close(&base).refusal(409);
    assert!(refused.contains("extends this one") && refused.contains(late[0].study.id()), "{refused}");
    assert_eq!(close(&late[0].study).status, 201);
    assert_eq!(members[0].accept(&hub).status, 201, "the study that was extended goes on");
    let bytes = members[0].release(&hub.folder.path().join("r.parquet"));
    assert_eq!(members[0].upload(&hub, &bytes).status, 201);
    let refused = close(&base).refusal(409);
    assert!(refused.contains("north has released") && refused.contains("another study"), "{refused}");
}

#[test]
fn metrics_have_stable_names_and_count_routes() {
    let hub = Hub::start();
    let id = hub.create(&sealed(&STUDY), false)[0].study.id().to_owned();
    hub.get(&format!("/api/v1/studies/{id}"));
    hub.get(&format!("/studies/{id}"));
    hub.get("/api/v1/nothing/secret");
    hub.get("/api/v1/studies/none");
    let text = hub.get("/metrics").text();
    let value = |series: &str| -> f64 {
        let line = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("no {series} in:\n{text}")).parse().unwrap()
    };
    let one = |method: &str, route: &str, status: u16| {
        value(&format!(
            "potluck_hub_requests_total{{method=\"{method}\",route=\"{route}\",status=\"{status}\"}}"
        ))
    };
    assert!(one("POST", "/api/v1/studies", 201) >= 1.0);
    assert!(one("GET", "/api/v1/studies/{study}", 200) >= 1.0);
    assert!(one("GET", "/api/v1/studies/{study}", 404) >= 1.0);
    assert!(one("GET", "/studies/{study}", 200) >= 1.0);
    assert!(one("GET", "none", 404) >= 1.0);
    let of_study = "{method=\"GET\",route=\"/api/v1/studies/{study}\"}";
    assert!(value(&format!("potluck_hub_request_seconds_count{of_study}")) >= 2.0);
    assert!(value(&format!("potluck_hub_request_seconds_sum{of_study}")) >= 0.0);
    assert!(text.contains("potluck_hub_request_seconds_bucket{le=\"0.25\",method="));
    for name in [
        "potluck_hub_fits_total",
        "potluck_hub_uploaded_bytes_total",
        "potluck_hub_studies",
        "potluck_hub_releases",
    ] {
        assert!(value(name) >= 0.0);
    }
    if cfg!(target_os = "linux") {
        assert!(value("process_resident_memory_bytes") > 1e6);
        assert!(value("process_open_fds") > 3.0);
        assert!(value("process_max_fds") >= value("process_open_fds"));
    }
    assert!(value("process_start_time_seconds") > 1.7e9);
    assert!(!text.contains(&id) && !text.contains("secret"), "routes are counted, not addresses");
    assert!(text.ends_with("# EOF\n"));
}

#[test]
fn only_a_sound_release_is_published() {
    let hub = Hub::start();
    let members = hub.create(&sealed(&STUDY), false);
    let (north, south) = (&members[0], &members[1]);
    let file = hub.folder.path().join("r.parquet");
    let good = north.release(&file);
    assert!(north.upload(&hub, &good).refusal(409).contains("has not accepted"));
    assert_eq!((north.accept(&hub).status, south.accept(&hub).status), (201, 201));

    let other_study = Study::parse(&sealed_with(&STUDY, 8)).unwrap();
    let mut flipped = good.clone();
    flipped[100] ^= 1;
    let cases: Vec<(&str, Vec<u8>, &str)> = vec![
        ("unsigned", release(&north.study, "north", None, 0, &file), "not signed"),
        ("another key", release(&north.study, "north", Some(&south.key), 0, &file), "another key"),
        ("another party", release(&north.study, "south", Some(&north.key), 0, &file), "another party"),
        ("another study", release(&other_study, "north", Some(&north.key), 0, &file), "another study"),
        ("a flipped bit", flipped, "refused"),
        ("cut short", good[..good.len() - 9].to_vec(), "refused"),
        ("half", good[..good.len() / 2].to_vec(), "refused"),
        ("garbage", b"PAR1 and nothing else PAR1".to_vec(), "refused"),
        ("a text", b"hello".to_vec(), "not a potluck release"),
        ("more rows", forged(&good, &file, 41, 1.0), "number of rows"),
        ("off the grid", forged(&good, &file, 40, 0.1), "refused"),
        ("not finite", forged(&good, &file, 40, f64::NAN), "refused"),
    ];
    for (what, bytes, reason) in cases {
        let refusal = north.upload(&hub, &bytes).refusal(422);
        assert!(refusal.contains(reason), "{what}: {refusal}");
        assert!(!refusal.contains("incoming") && !refusal.contains('/'), "{what}: {refusal}");
        assert_eq!(hub.files(), (0, 0), "{what}: nothing is stored");
    }
    // Announced as something else than it is.
    hub.put(&north.path(&format!("release?sha256={}", sha256(b"other"))), &north.token, &good).refusal(422);
    assert_eq!(hub.files(), (0, 0));
    let log = hub.get(&format!("/api/v1/studies/{}/events.jsonl", north.study.id())).text();
    assert!(!log.contains("\"released\""));

    assert_eq!(north.upload(&hub, &good).status, 201);
    let fresh = release(&north.study, "north", Some(&north.key), 5, &file);
    assert!(north.upload(&hub, &fresh).refusal(409).contains("another release"));
    assert_eq!(hub.get(&north.path("release")).body, good);
}

/// The manifest of a release around other columns.
fn forged(good: &[u8], file: &Path, rows: usize, value: f64) -> Vec<u8> {
    use parquet::arrow::ArrowWriter;
    use parquet::file::metadata::KeyValue;
    use parquet::file::reader::{FileReader, SerializedFileReader};
    std::fs::write(file, good).unwrap();
    let reader = SerializedFileReader::new(std::fs::File::open(file).unwrap()).unwrap();
    let manifest = reader.metadata().file_metadata().key_value_metadata().unwrap()[0].value.clone().unwrap();
    let column = || Arc::new(Float64Array::from(vec![value; rows])) as ArrayRef;
    let batch = RecordBatch::try_from_iter([("age", column()), ("smoker", column())]).unwrap();
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.append_key_value_metadata(KeyValue::new("potluck".to_owned(), manifest));
    writer.close().unwrap();
    bytes
}

#[test]
fn an_upload_goes_on_where_it_broke_off() {
    let hub = Hub::start();
    let members = hub.create(&sealed(&STUDY), false);
    let north = &members[0];
    assert_eq!(north.accept(&hub).status, 201);
    let bytes = north.release(&hub.folder.path().join("r.parquet"));
    let hash = sha256(&bytes);
    let part = |offset: usize, piece: &[u8]| {
        let path = north.path(&format!("release?sha256={hash}&offset={offset}&size={}", bytes.len()));
        hub.put(&path, &north.token, piece)
    };
    let received = || {
        let path = north.path(&format!("upload?sha256={hash}"));
        hub.get_with(&path, &[("authorization", &format!("Bearer {}", north.token))]).json()["received"]
            .as_u64()
    };
    assert_eq!(received(), Some(0));
    assert_eq!(part(0, &bytes[..100]).status, 202);
    assert_eq!(received(), Some(100));
    let wrong = part(50, &bytes[50..]);
    wrong.refusal(409);
    assert_eq!(wrong.json()["received"], 100);
    assert_eq!(wrong.json()["type"], "urn:potluck:problem:upload-offset");
    part(100, &[bytes.as_slice(), b"more"].concat()[100..]).refusal(400);

    // A connection that breaks in the middle of a body: what arrived is kept.
    let mut stream = TcpStream::connect(hub.address()).unwrap();
    write!(
        stream,
        "PUT {} HTTP/1.1\r\nhost: hub\r\nauthorization: Bearer {}\r\ncontent-length: {}\r\n\r\n",
        north.path(&format!("release?sha256={hash}&offset=100&size={}", bytes.len())),
        north.token,
        bytes.len() - 100
    )
    .unwrap();
    stream.write_all(&bytes[100..400]).unwrap();
    stream.flush().unwrap();
    while received() != Some(400) {
        std::thread::yield_now();
    }
    drop(stream);
    // The place is free again when the hub has noticed.
    let last = loop {
        let answer = part(400, &bytes[400..]);
        if answer.status != 409 {
            break answer;
        }
        assert_eq!(answer.header("retry-after"), "2");
    };
    assert_eq!(last.status, 201, "{}", last.text());
    assert_eq!(hub.get(&north.path("release")).body, bytes);
    assert_eq!(hub.files(), (1, 0));
    assert_eq!(part(0, &bytes).status, 200);
}

#[test]
fn what_is_too_large_is_refused_before_it_arrives() {
    let hub = Hub::start();
    let members = hub.create(&sealed(&STUDY), false);
    let north = &members[0];
    assert_eq!(north.accept(&hub).status, 201);
    let hash = "0".repeat(64);
    let size = |size: &str| {
        hub.put(&north.path(&format!("release?sha256={hash}&offset=0&size={size}")), &north.token, b"")
    };
    assert!(size("1000000000").refusal(413).contains("at most"));
    size("18446744073709551615").refusal(413);
    size("-1").refusal(400);
    hub.put(&north.path(&format!("release?sha256={}", "z".repeat(64))), &north.token, b"").refusal(400);
    hub.put(&north.path("release"), &north.token, b"").refusal(400);

    // By the header alone: the body never comes.
    let mut stream = TcpStream::connect(hub.address()).unwrap();
    let path = north.path(&format!("release?sha256={hash}"));
    write!(stream, "PUT {path} HTTP/1.1\r\nhost: hub\r\nauthorization: Bearer {}\r\ncontent-length: 99999999999\r\nconnection: close\r\n\r\n", north.token).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");

    let mut stream = TcpStream::connect(hub.address()).unwrap();
    let size = 50 << 20;
    write!(stream, "POST /api/v1/studies HTTP/1.1\r\nhost: hub\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\ncontent-length: {size}\r\nconnection: close\r\n\r\n", hub.coordinator).unwrap();
    // The hub hangs up long before all of it is sent.
    assert!((0..size >> 16).any(|_| stream.write_all(&vec![b' '; 1 << 16]).is_err()));
    assert_eq!(hub.files(), (0, 0));
}

#[test]
fn slow_clients_are_let_go() {
    let hub = Hub::start_with(Options {
        client_timeout: NonZeroU32::new(1),
        requests_per_minute: Some(0),
        ..Options::default()
    });
    let members = hub.create(&sealed(&STUDY), false);
    let north = &members[0];
    assert_eq!(north.accept(&hub).status, 201);
    let upload = format!(
        "PUT {} HTTP/1.1\r\nhost: hub\r\nauthorization: Bearer {}\r\ncontent-length: 1000\r\n\r\nsome bytes",
        north.path(&format!("release?sha256={}&offset=0&size=1000", "0".repeat(64))),
        north.token,
    );
    let head = "GET /api/v1/studies HTTP/1.1\r\nhost: hub\r\n".to_owned();
    let post = "POST /api/v1/plan HTTP/1.1\r\nhost: hub\r\ncontent-length: 1000\r\n\r\nformat".to_owned();
    let preface = "PRI * HTTP/2.0\r\n".to_owned();
    for request in [String::new(), preface, head, post, upload] {
        let mut stream = TcpStream::connect(hub.address()).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        // Nothing more is sent. The hub answers or not, but it hangs up.
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        assert!(!answer.starts_with(b"HTTP/1.1 2"), "{}", String::from_utf8_lossy(&answer));
    }
    assert_eq!(hub.get("/healthz").status, 200);
}

#[test]
fn strange_paths_lead_nowhere() {
    let hub = Hub::start();
    let members = hub.finished(&sealed(&STUDY));
    let id = members[0].study.id().to_owned();
    let before = hub.files();
    for path in [
        "/api/v1/studies/..%2F..%2Fhub.sqlite".to_owned(),
        "/api/v1/studies/%00".to_owned(),
        "/api/v1/studies/%ff".to_owned(),
        format!("/api/v1/studies/{}/dataset", id.to_uppercase()),
        format!("/api/v1/studies/{id}/parties/..%2F..%2F..%2Fhub.sqlite/release"),
        format!("/api/v1/studies/{id}/parties/north%00/release"),
        format!("/api/v1/studies/{id}/parties/%2e%2e/release"),
        format!("/api/v1/studies/{id}/../../../hub.sqlite"),
        format!("/objects/{id}"),
        "/hub.sqlite".to_owned(),
        "//etc/passwd".to_owned(),
        "/assets/..%2F..%2Fhub.sqlite".to_owned(),
    ] {
        let mut stream = TcpStream::connect(hub.address()).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nhost: hub\r\nconnection: close\r\n\r\n").unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let answer = String::from_utf8_lossy(&answer);
        let status: u16 = answer[9..12].parse().unwrap();
        assert!(status == 404 || status == 400, "{path}: {answer}");
        assert!(!answer.contains("SQLite"), "{path}");
    }
    assert_eq!(hub.files(), before);
}

#[test]
fn a_client_that_asks_too_often_waits() {
    let hub = Hub::start_with(Options { requests_per_minute: Some(5), ..Options::default() });
    for _ in 0..5 {
        assert_eq!(hub.get("/api/v1/studies").status, 200);
    }
    let refused = hub.get("/api/v1/studies");
    refused.refusal(429);
    assert!(refused.header("retry-after").parse::<u64>().unwrap() >= 1);
}

#[test]
fn every_answer_tells_browsers_to_be_careful() {
    let hub = Hub::start();
    for path in ["/healthz", "/api/v1/studies", "/api/v1/nothing", "/openapi.json", "/", "/nothing"] {
        let answer = hub.get(path);
        assert_eq!(answer.header("x-content-type-options"), "nosniff", "{path}");
        assert_eq!(answer.header("referrer-policy"), "no-referrer", "{path}");
        assert!(answer.header("content-security-policy").contains("default-src 'none'"), "{path}");
        assert!(answer.header("content-security-policy").contains("frame-ancestors 'none'"), "{path}");
    }
    hub.get("/api/v1/nothing").refusal(404);
    hub.put("/api/v1/studies", "token", b"").refusal(405);
}

#[test]
fn fits_are_those_of_the_library() {
    let hub = Hub::start();
    let members = hub.finished(&sealed(&STUDY));
    let at = format!("/api/v1/studies/{}", members[0].study.id());
    let file = hub.folder.path().join("dataset.parquet");
    std::fs::write(&file, hub.get(&format!("{at}/dataset")).body).unwrap();
    let dataset = PublicDataset::read(&file).unwrap();
    for features in [vec!["age"], vec!["smoker"], vec!["age", "smoker"]] {
        let regression = potluck_release::fit::Regression {
            label: "pressure".to_owned(),
            features: Some(features.iter().map(|&feature| feature.to_owned()).collect()),
            kind: potluck_release::model::Kind::Linear,
            learner: potluck_release::model::Learner::Posterior,
            ridge: potluck_core::learn::Ridge::new(potluck_release::fit::DEFAULT_RIDGE).unwrap(),
            level: potluck_core::learn::Level::new(0.9).unwrap(),
        };
        let model = potluck_release::fit::fit(&dataset, &regression).unwrap();
        let query: String = features.iter().map(|feature| format!("&feature={feature}")).collect();
        let answer = hub.get(&format!("{at}/fit?label=pressure&level=0.9{query}"));
        assert_eq!(answer.text(), model.to_json());
        let answer = hub.get(&format!("{at}/fit?label=pressure&level=0.9{query}&words=true"));
        let described: serde_json::Value = serde_json::from_str(&answer.text()).unwrap();
        assert_eq!(described, potluck_report::described(&model));
        assert_eq!(described["estimated"], model.estimated());
    }
    for bad in [
        "",
        "label=",
        "label=nobody",
        "label=age&feature=nobody",
        "label=age&feature=age",
        "label=age&learner=magic",
        "label=age&level=2",
        "label=age&level=x",
        "label=age&words=many",
    ] {
        hub.get(&format!("{at}/fit?{bad}")).refusal(422);
    }
}

#[test]
fn a_data_folder_has_one_hub() {
    let hub = Hub::start();
    let options = Options {
        data: Some(hub.data()),
        listen: Some("127.0.0.1:0".parse().unwrap()),
        ..Options::default()
    };
    let error =
        potluck_hub::serve(Config::new(options).unwrap(), |_| panic!("it must not start")).unwrap_err();
    assert!(error.to_string().contains("another hub"), "{error}");
}

#[test]
fn a_dataset_that_is_missing_is_made_when_the_hub_starts() {
    let hub = Hub::start();
    let members = hub.finished(&sealed(&STUDY));
    let copy = hub.folder.path().join("copy");
    back_up(&hub.data(), &copy).unwrap();
    // As if the hub had died between the last release and the dataset.
    let database = rusqlite::Connection::open(copy.join("hub.sqlite")).unwrap();
    assert_eq!(database.execute("DELETE FROM dataset", []).unwrap(), 1);
    database.execute_batch("DROP TRIGGER event_is_never_removed").unwrap();
    let last = "DELETE FROM event WHERE sequence = (SELECT max(sequence) FROM event)";
    assert_eq!(database.execute(last, []).unwrap(), 1);
    drop(database);
    let store = Store::open(&copy).unwrap();
    let dataset = || store.study(members[0].study.id()).unwrap().unwrap().dataset.clone();
    assert_eq!(dataset(), None);
    store.publish_missing_datasets().unwrap();
    let made = dataset().unwrap();
    assert_eq!(made.parties, ["north", "south"]);
    store.publish_missing_datasets().unwrap();
    assert_eq!(dataset(), Some(made), "once is enough");
    let log = store.event_lines(members[0].study.id(), 0, 100).unwrap().concat();
    EventLog::parse(&log, Path::new("events.jsonl")).unwrap();
}

/// Whoever uploads and hangs up while the hub checks cannot reach the file any more.
#[test]
fn an_upload_that_is_being_checked_is_out_of_reach() {
    let hub = Hub::start();
    let members = hub.create(&sealed(&STUDY.replace("k = 40", "k = 1000")), false);
    let north = &members[0];
    assert_eq!(north.accept(&hub).status, 201);
    let bytes = north.release(&hub.folder.path().join("r.parquet"));
    let path = north.path(&format!("release?sha256={}", sha256(&bytes)));
    for _ in 0..20 {
        let mut stream = TcpStream::connect(hub.address()).unwrap();
        write!(
            stream,
            "PUT {path} HTTP/1.1\r\nhost: hub\r\nauthorization: Bearer {}\r\ncontent-length: {}\r\n\r\n",
            north.token,
            bytes.len()
        )
        .unwrap();
        stream.write_all(&bytes).unwrap();
        drop(stream);
        let more = format!("{path}&offset={}&size={}", bytes.len(), bytes.len() + 4);
        let answer = hub.put(&more, &north.token, b"more");
        // Before it is checked the file can still be spoilt by its own party, and is refused then.
        assert!([200, 409, 422].contains(&answer.status), "{}", answer.text());
    }
    let answer = loop {
        let answer = north.upload(&hub, &bytes);
        if answer.status != 409 {
            break answer;
        }
    };
    assert!([200, 201].contains(&answer.status), "{}", answer.text());
    assert_eq!(hub.get(&north.path("release")).body, bytes);
    assert_eq!(hub.files(), (1, 0));
}

#[test]
fn a_backup_holds_everything() {
    let hub = Hub::start();
    let members = hub.finished(&sealed(&STUDY));
    let id = members[0].study.id();
    let copy = hub.folder.path().join("copy");
    back_up(&hub.data(), &copy).unwrap();
    assert!(back_up(&hub.data(), &copy).is_err(), "a backup is never written over");
    assert!(back_up(&hub.folder.path().join("nowhere"), &hub.folder.path().join("other")).is_err());
    assert!(!hub.folder.path().join("nowhere").exists(), "a mistyped folder is not made");
    let (first, second) = (Store::open(&hub.data()).unwrap(), Store::open(&copy).unwrap());
    assert_eq!(first.event_lines(id, 0, 100).unwrap(), second.event_lines(id, 0, 100).unwrap());
    let record = second.study(id).unwrap().unwrap();
    let dataset = record.dataset.clone().unwrap();
    PublicDataset::read(&second.object(&dataset.file.sha256)).unwrap();
    for party in &record.parties {
        assert!(second.object(&party.release.as_ref().unwrap().sha256).exists());
    }
}

#[test]
fn a_coordinator_who_is_removed_can_do_nothing_more_and_their_studies_stay() {
    let hub = Hub::start();
    let store = Store::open(&hub.data()).unwrap();
    let members = hub.create(&sealed(&STUDY), false);
    store.add_coordinator("eve", false).unwrap();
    assert_eq!(store.coordinators().unwrap(), [("ada".to_owned(), 1), ("eve".to_owned(), 0)]);
    assert_eq!(store.remove_coordinator("eve").unwrap(), 0);
    assert_eq!(store.remove_coordinator("ada").unwrap(), 1);
    assert!(store.coordinator(&hub.coordinator).unwrap().is_none(), "the token is void");
    assert!(store.coordinators().unwrap().is_empty());
    assert!(store.remove_coordinator("ada").is_err());
    let id = members[0].study.id();
    assert_eq!(hub.get(&format!("/api/v1/studies/{id}")).status, 200);
}
