//! A hub on a free port, and parties that release made-up sums.
#![allow(clippy::unwrap_used, dead_code, reason = "each test file uses its part")]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, mpsc};
use std::thread;

use potluck_fixtures::{clinics, sealed_with_text, signing_key};
use potluck_hub::config::Options;
use potluck_hub::{Config, Store};
use potluck_release::events::Acceptance;
use potluck_release::exchange::{CreatedStudy, NewStudy};
use potluck_release::files::Existing;
use potluck_release::release::Outline;
use potluck_release::signing::SigningKey;
use potluck_release::{Error, Study};
use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};
use tempfile::TempDir;
use ureq::{Agent, Body};

pub(crate) static STUDY: LazyLock<String> = LazyLock::new(|| {
    let text = clinics("three clinics", 1000).settings("method = \"rmgm\"\nmixing = \"sparse\"\nk = 40");
    text.to_string()
});

/// A hub that runs until the test process ends.
pub(crate) struct Hub {
    pub(crate) folder: TempDir,
    pub(crate) url: String,
    pub(crate) coordinator: String,
}

impl Hub {
    pub(crate) fn start() -> Self {
        Self::start_with(Options { requests_per_minute: Some(0), ..Options::default() })
    }

    pub(crate) fn start_with(options: Options) -> Self {
        let folder = TempDir::new().unwrap();
        let data = folder.path().join("data");
        let token = Store::open(&data).unwrap().add_coordinator("ada", false).unwrap();
        let options = Options { data: Some(data), listen: Some("127.0.0.1:0".parse().unwrap()), ..options };
        let config = Config::new(options).unwrap();
        let (sender, receiver) = mpsc::channel();
        thread::spawn(move || {
            potluck_hub::serve(config, |url| sender.send(url.to_owned()).unwrap()).unwrap();
        });
        Self { folder, url: receiver.recv().unwrap(), coordinator: token.reveal().to_owned() }
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    pub(crate) fn address(&self) -> &str {
        self.url.strip_prefix("http://").unwrap()
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        self.get_with(path, &[])
    }

    pub(crate) fn get_with(&self, path: &str, headers: &[(&str, &str)]) -> Answer {
        let mut request = agent().get(self.url.clone() + path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        Answer::of(request.call().unwrap())
    }

    pub(crate) fn post(&self, path: &str, token: &str, body: &impl Serialize) -> Answer {
        let request =
            agent().post(self.url.clone() + path).header("authorization", format!("Bearer {token}"));
        Answer::of(request.send_json(body).unwrap())
    }

    pub(crate) fn post_text(&self, path: &str, body: &str) -> Answer {
        Answer::of(agent().post(self.url.clone() + path).content_type("text/plain").send(body).unwrap())
    }

    pub(crate) fn put(&self, path: &str, token: &str, body: &[u8]) -> Answer {
        let request = agent().put(self.url.clone() + path).header("authorization", format!("Bearer {token}"));
        Answer::of(request.send(body).unwrap())
    }

    /// Creates a study and returns the parties with their tokens.
    pub(crate) fn create(&self, text: &str, early: bool) -> Vec<Member> {
        let study = Study::parse(text).unwrap();
        let answer =
            self.post("/api/v1/studies", &self.coordinator, &NewStudy { study: text.to_owned(), early });
        assert_eq!(answer.status, 201, "{}", answer.text());
        let created: CreatedStudy = serde_json::from_slice(&answer.body).unwrap();
        assert_eq!(created.id, study.id());
        let member = |(seed, invitation): (usize, potluck_release::exchange::Invitation)| Member {
            study: study.clone(),
            name: invitation.party,
            token: invitation.token,
            key: signing_key(seed as u8 + 1),
        };
        created.invitations.into_iter().enumerate().map(member).collect()
    }

    /// Creates the study, accepts and releases for everyone.
    pub(crate) fn finished(&self, text: &str) -> Vec<Member> {
        let members = self.create(text, false);
        for member in &members {
            assert_eq!(member.accept(self).status, 201);
            let answer = member.upload(self, &member.release(&self.folder.path().join("r.parquet")));
            assert_eq!(answer.status, 201, "{}", answer.text());
        }
        members
    }

    /// Files that the hub holds besides its database: published, and on their way.
    pub(crate) fn files(&self) -> (usize, usize) {
        let count = |folder: &Path| -> usize {
            let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
            entries.map(|path| if path.is_dir() { fs::read_dir(path).unwrap().count() } else { 1 }).sum()
        };
        (count(&self.data().join("objects")), count(&self.data().join("incoming")))
    }
}

/// A party that was invited.
pub(crate) struct Member {
    pub(crate) study: Study,
    pub(crate) name: String,
    pub(crate) token: String,
    pub(crate) key: SigningKey,
}

impl Member {
    pub(crate) fn path(&self, what: &str) -> String {
        format!("/api/v1/studies/{}/parties/{}/{what}", self.study.id(), self.name)
    }

    pub(crate) fn accept(&self, hub: &Hub) -> Answer {
        let acceptance = Acceptance::new(&self.study, &self.name, &self.key);
        hub.post(&self.path("acceptance"), &self.token, &acceptance)
    }

    /// The bytes of a signed release.
    pub(crate) fn release(&self, path: &Path) -> Vec<u8> {
        release(&self.study, &self.name, Some(&self.key), 0, path)
    }

    pub(crate) fn upload(&self, hub: &Hub, bytes: &[u8]) -> Answer {
        hub.put(&self.path(&format!("release?sha256={}", sha256(bytes))), &self.token, bytes)
    }
}

/// The bytes of a release with made-up sums; another seed gives other sums.
pub(crate) fn release(
    study: &Study,
    party: &str,
    key: Option<&SigningKey>,
    seed: i64,
    path: &Path,
) -> Vec<u8> {
    let mut earlier: Vec<Vec<i64>> = Vec::new();
    let mut count = study.first_stage(party).unwrap().coordinates();
    loop {
        let mut after = earlier.clone();
        after.push((0..count as i64).map(|i| 1000 * i % 7001 + 4000).collect());
        let Some(next) = study.stage(party, &after).unwrap() else { break };
        (earlier, count) = (after, next.coordinates());
    }
    let sums = (0..count as i64).map(|i| (i * 7919 + seed) % 90_001 - 45_000).collect::<Vec<_>>();
    let outline = Outline::new(study, party, &earlier, key).unwrap();
    let chunks = || Ok::<_, Error>(std::iter::once(Ok(sums.clone())));
    let (pending, _) = outline.write(path, Existing::Replace, chunks).unwrap();
    if let Some(pending) = pending {
        pending.publish().unwrap();
    }
    fs::read(path).unwrap()
}

pub(crate) fn sealed(text: &str) -> String {
    sealed_with(text, 7)
}

pub(crate) fn sealed_with(text: &str, key: u8) -> String {
    sealed_with_text(text, key).1
}

pub(crate) fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn agent() -> Agent {
    Agent::config_builder().http_status_as_error(false).build().into()
}

/// What the hub answered.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: ureq::http::HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    fn of(mut response: ureq::http::Response<Body>) -> Self {
        Self {
            status: response.status().as_u16(),
            headers: response.headers().clone(),
            body: response.body_mut().read_to_vec().unwrap(),
        }
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// Makes sure that this is a refusal in the proper form, and returns its reason.
    pub(crate) fn refusal(&self, status: u16) -> String {
        assert_eq!(self.status, status, "{}", self.text());
        assert_eq!(self.header("content-type"), "application/problem+json");
        let problem = self.json();
        assert_eq!(problem["status"], status);
        let kind = problem["type"].as_str().unwrap();
        assert!(kind.starts_with("urn:potluck:problem:"), "{kind}");
        problem["detail"].as_str().unwrap().to_owned()
    }
}
