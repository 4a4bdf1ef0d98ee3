//! A hub in the test's own process, as honest as the test wants it: the contract of the API without
//! the real one's care.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use potluck_client::FileDigest;
use potluck_release::dataset::Completeness;
use potluck_release::events::{Acceptance, Change, Event};
use potluck_release::exchange::NewStudy;
use potluck_release::files::Existing;
use potluck_release::{PublicDataset, Release, Study};
use serde_json::{Value, json};

pub const COORDINATOR: &str = "coordinator-secret";

/// What the hub holds, for tests to look at and to spoil.
#[derive(Default)]
pub struct Holdings {
    study: Option<(Study, String)>,
    pub events: Vec<Event>,
    invitations: usize,
    tokens: BTreeMap<String, String>,
    uploads: BTreeMap<String, Vec<u8>>,
    pub releases: BTreeMap<String, Vec<u8>>,
    pub dataset: Vec<u8>,
    /// Hang up after so many bytes of the next upload.
    pub hang_up_after: Option<usize>,
    /// Another study text to give out than the one that was created.
    pub false_study: Option<String>,
    /// Files to give out whatever else is known, by path below the start of the API.
    pub fixed: BTreeMap<String, Vec<u8>>,
    /// Says of every party that it has accepted.
    pub claims_acceptance: bool,
    /// Every request line.
    pub asked: Vec<String>,
}

/// A hub on a port of its own, for as long as the test runs.
pub struct StandIn {
    pub url: String,
    holdings: Arc<Mutex<Holdings>>,
}

struct Request {
    method: String,
    path: Vec<String>,
    query: BTreeMap<String, String>,
    token: String,
    body: Vec<u8>,
    cut: bool,
}

impl StandIn {
    pub fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let holdings = Arc::new(Mutex::new(Holdings::default()));
        let shared = Arc::clone(&holdings);
        thread::spawn(move || {
            for stream in listener.incoming() {
                serve(stream.unwrap(), &mut shared.lock().unwrap());
            }
        });
        Self { url, holdings }
    }

    pub fn change<T>(&self, change: impl FnOnce(&mut Holdings) -> T) -> T {
        change(&mut self.holdings.lock().unwrap())
    }
}

fn serve(stream: TcpStream, holdings: &mut Holdings) {
    let mut stream = BufReader::new(stream);
    let Some(request) = read(&mut stream, holdings) else { return };
    let answer = holdings.answer(&request);
    if request.cut {
        return;
    }
    let (status, kind, body) = answer;
    let head = format!(
        "HTTP/1.1 {status} X\r\nConnection: close\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    let _ = stream.get_mut().write_all(&[head.as_bytes(), &body].concat());
}

fn read(stream: &mut BufReader<TcpStream>, holdings: &mut Holdings) -> Option<Request> {
    let mut line = String::new();
    stream.read_line(&mut line).ok()?;
    holdings.asked.push(line.trim().to_owned());
    let mut words = line.split(' ');
    let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
    let (mut length, mut token, mut expects) = (0, String::new(), false);
    loop {
        let mut header = String::new();
        stream.read_line(&mut header).ok()?;
        let Some((name, value)) = header.trim_end().split_once(": ") else { break };
        match name.to_lowercase().as_str() {
            "content-length" => length = value.parse().unwrap(),
            "authorization" => value.strip_prefix("Bearer ").unwrap().clone_into(&mut token),
            "expect" => expects = true,
            _ => {}
        }
    }
    if expects {
        stream.get_mut().write_all(b"HTTP/1.1 100 Continue\r\n\r\n").ok()?;
    }
    let mut cut = false;
    if let Some(most) = holdings.hang_up_after.filter(|_| method == "PUT") {
        holdings.hang_up_after = None;
        (length, cut) = (length.min(most), true);
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).ok()?;
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let query = query.split('&').filter_map(|pair| pair.split_once('='));
    Some(Request {
        method,
        path: path.trim_start_matches("/api/v1/").split('/').map(str::to_owned).collect(),
        query: query.map(|(key, value)| (key.to_owned(), value.to_owned())).collect(),
        token,
        body,
        cut,
    })
}

type Answer = (u16, &'static str, Vec<u8>);

fn answer(status: u16, value: &Value) -> Answer {
    (status, "application/json", value.to_string().into_bytes())
}

fn problem(status: u16, title: &str) -> Answer {
    let value = json!({ "type": "x", "title": title, "status": status, "detail": "says the stand-in" });
    (status, "application/problem+json", value.to_string().into_bytes())
}

impl Holdings {
    fn log(&mut self, change: Change) {
        let time = format!("2026-01-31T00:00:{:02}Z", self.events.len());
        self.events.push(Event::following(self.events.last(), time, change));
    }

    fn invite(&mut self, party: &str) -> Value {
        self.invitations += 1;
        let token = format!("invitation-{party}-{}", self.invitations);
        self.tokens.retain(|_, name| name != party);
        self.tokens.insert(token.clone(), party.to_owned());
        self.log(Change::Invited { party: party.to_owned() });
        json!({ "party": party, "token": token })
    }

    fn key(&self, party: &str) -> Option<&str> {
        self.events.iter().find_map(|event| match &event.change {
            Change::Accepted { acceptance } if acceptance.party == party => Some(acceptance.key.as_str()),
            _ => None,
        })
    }

    fn answer(&mut self, request: &Request) -> Answer {
        let path: Vec<&str> = request.path.iter().map(String::as_str).collect();
        if let Some(body) = self.fixed.get(&request.path.join("/")) {
            return (200, "application/octet-stream", body.clone());
        }
        if let ("POST", ["studies"]) = (request.method.as_str(), path.as_slice()) {
            return self.create(request);
        }
        let Some((study, text)) = self.study.clone() else { return problem(404, "No such study") };
        if path.get(1) != Some(&study.id()) {
            return problem(404, "No such study");
        }
        let ours = self.tokens.get(&request.token).cloned();
        match (request.method.as_str(), &path[2..]) {
            ("GET", []) => answer(200, &details(&study, self)),
            ("GET", ["study.toml"]) => {
                (200, "text/plain", self.false_study.clone().unwrap_or(text).into_bytes())
            }
            ("GET", ["events.jsonl"]) => {
                let log: String = self.events.iter().map(Event::to_line).collect();
                (200, "application/jsonl", log.into_bytes())
            }
            ("GET", ["dataset"]) if self.dataset.is_empty() => problem(404, "No public dataset yet"),
            ("GET", ["dataset"]) => (200, "application/octet-stream", self.dataset.clone()),
            ("POST", ["parties", party, "invitation"]) if request.token == COORDINATOR => {
                let invitation = self.invite(party);
                answer(201, &invitation)
            }
            ("GET", ["invitation"]) if ours.is_some() => {
                let party = ours.unwrap();
                let accepted = self.claims_acceptance || self.key(&party).is_some();
                let released = self.releases.contains_key(&party);
                answer(200, &json!({ "party": party, "accepted": accepted, "released": released }))
            }
            ("POST", ["parties", party, "acceptance"]) if ours.as_deref() == Some(party) => {
                self.accept(serde_json::from_slice(&request.body).unwrap())
            }
            ("GET", ["parties", party, "upload"]) if ours.as_deref() == Some(party) => {
                let sha256 = &request.query["sha256"];
                let received = self.uploads.get(sha256).map_or(0, Vec::len);
                answer(200, &json!({ "received": received, "complete": self.releases.contains_key(*party) }))
            }
            ("PUT", ["parties", party, "release"]) if ours.as_deref() == Some(party) => {
                self.upload(&study, party, request)
            }
            _ => problem(401, "Not allowed"),
        }
    }

    fn create(&mut self, request: &Request) -> Answer {
        if request.token != COORDINATOR {
            return problem(401, "Not a coordinator");
        }
        let new: NewStudy = serde_json::from_slice(&request.body).unwrap();
        let study = Study::parse(&new.study).unwrap();
        let id = study.id().to_owned();
        if self.study.is_some() {
            return answer(200, &json!({ "id": id, "invitations": [] }));
        }
        self.log(Change::Created { study: study.to_json(), early: new.early });
        let parties = study.definition().parties().to_vec();
        self.study = Some((study, new.study));
        let invitations: Vec<Value> = parties.iter().map(|party| self.invite(party.name())).collect();
        answer(201, &json!({ "id": id, "invitations": invitations }))
    }

    fn accept(&mut self, acceptance: Acceptance) -> Answer {
        match self.key(&acceptance.party) {
            Some(key) if key == acceptance.key => return answer(200, &json!({})),
            Some(_) => return problem(409, "Another key is registered"),
            None => {}
        }
        assert!(acceptance.verify().is_some());
        self.log(Change::Accepted { acceptance });
        answer(201, &json!({}))
    }

    fn upload(&mut self, study: &Study, party: &str, request: &Request) -> Answer {
        let upload = self.uploads.entry(request.query["sha256"].clone()).or_default();
        assert_eq!(request.query["offset"], upload.len().to_string());
        upload.extend(&request.body);
        let received = upload.len();
        if received.to_string() != request.query["size"] {
            return answer(202, &json!({ "received": received, "complete": false }));
        }
        let bytes = upload.clone();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("release");
        std::fs::write(&path, &bytes).unwrap();
        let release = Release::read(&path).unwrap();
        let FileDigest { sha256, size } = FileDigest::of(&path).unwrap();
        assert_eq!((&sha256, release.party()), (&request.query["sha256"], party));
        let content_hash = release.content_hash().to_owned();
        self.log(Change::Released { party: party.to_owned(), sha256, size, content_hash });
        self.releases.insert(party.to_owned(), bytes);
        if self.releases.len() == study.definition().parties().len() {
            let mut releases = Vec::new();
            for bytes in self.releases.values() {
                std::fs::write(&path, bytes).unwrap();
                releases.push(Release::read(&path).unwrap());
            }
            let dataset = PublicDataset::join(study, &releases, Completeness::All).unwrap();
            dataset.write(&path, Existing::Replace).unwrap();
            self.dataset = std::fs::read(&path).unwrap();
            let FileDigest { sha256, size } = FileDigest::of(&path).unwrap();
            let parties = dataset.parties().map(|(party, _)| party.to_owned()).collect();
            let content_hash = dataset.content_hash().to_owned();
            self.log(Change::Published { parties, sha256, size, content_hash });
        }
        answer(201, &json!({ "received": received, "complete": true }))
    }
}

fn details(study: &Study, holdings: &Holdings) -> Value {
    let parties = study.definition().parties();
    let guarantee = json!({ "epsilon": 1.0, "delta": 1e-5, "mu": 0.2, "detection_at_5_percent": 0.1 });
    let party: Vec<Value> = parties
        .iter()
        .map(|party| json!({ "name": party.name(), "study": study.id(), "key": null, "accepted": null, "release": null }))
        .collect();
    json!({
        "id": study.id(), "name": study.definition().name(), "created": "2026-01-31T00:00:00Z", "rows": 40,
        "parties": parties.len(), "accepted": 0, "released": holdings.releases.len(),
        "dataset": !holdings.dataset.is_empty(), "early": false, "extends": null, "extended_by": [],
        "party": party, "dataset_file": null, "per_party": guarantee, "joint": guarantee,
        "head": holdings.events.last().unwrap().hash,
    })
}
