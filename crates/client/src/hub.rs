//! One hub, and what can be asked of it.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use potluck_release::Study;
use potluck_release::events::{Acceptance, EventLog, Withdrawal};
use potluck_release::exchange::{
    API, Close, Closing, CreatedStudy, EventPage, Invitation, Invited, NewStudy, Problem, ProblemType,
    StudyDetails, StudyPage, UploadState,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use ureq::http::{HeaderValue, Method, Request, Response, StatusCode, header, request};
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};
use ureq::{Agent, AsSendBody, Body, Proxy};
use zeroize::Zeroizing;

use crate::error::printable;
use crate::retry::{Patience, asked_pause};
use crate::{Error, HubAddress, StudyAddress, Token};

/// The most that is taken of an answer in JSON or of a study.
const LARGEST_ANSWER: u64 = 16 << 20;
/// The most that is taken of an event log.
const LARGEST_LOG: u64 = 256 << 20;
/// The most that is read of a refusal.
const LARGEST_PROBLEM: u64 = 64 << 10;

/// What stands for itself in a part of a path or query (RFC 3986, "unreserved").
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// Called before a pause, with what went wrong and how long the pause is.
pub type RetryNotice = Box<dyn Fn(&Error, Duration)>;

/// How to talk to a hub.
pub struct Options {
    /// Certificates of the authorities to trust, in PEM form, instead of the well-known ones.
    pub ca_certificate: Option<PathBuf>,
    /// Who we are.
    pub token: Option<Token>,
    /// Whether tokens may travel unencrypted to another machine.
    pub insecure_http: bool,
    /// How long to go on trying since something last went well; zero: try once.
    pub patience: Duration,
    /// How long a connection may take to come about.
    pub connect: Duration,
    /// How long a connection may be silent. A hub checks a whole release before it answers its
    /// upload.
    pub idle: Duration,
    /// Who wants to know of pauses.
    pub on_retry: Option<RetryNotice>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            ca_certificate: None,
            token: None,
            insecure_http: false,
            patience: Duration::from_secs(60),
            connect: Duration::from_secs(10),
            idle: Duration::from_secs(120),
            on_retry: None,
        }
    }
}

/// Whether a request says who we are.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    Public,
    Token,
}

/// A hub.
pub struct Hub {
    address: HubAddress,
    agent: Agent,
    token: Option<Token>,
    patience: Duration,
    on_retry: Option<RetryNotice>,
}

/// A study as a hub gave it: its seal verified, and its id the one that was asked for.
pub struct Contract {
    /// The study.
    pub study: Study,
    /// Its text, as it was sealed.
    pub text: String,
}

/// The event log of a study, verified.
pub struct Log {
    /// What it says.
    pub log: EventLog,
    /// Its text, to be kept.
    pub text: String,
}

/// What came of creating a study.
pub struct NewInvitations {
    /// Whether the study is new at this hub.
    pub created: bool,
    /// A token a party; none if the study was there already, since tokens are shown once.
    pub invitations: Vec<(String, Token)>,
}

/// A regression to ask a hub for.
#[derive(Clone, Debug, Default)]
pub struct FitQuery<'a> {
    /// The column to explain.
    pub label: &'a str,
    /// The columns to explain it with; none: all others.
    pub features: &'a [String],
    /// How to learn; none: as the hub does by itself.
    pub learner: Option<&'a str>,
    /// Level of the intervals; none: as the hub does by itself.
    pub level: Option<f64>,
}

impl Hub {
    /// A hub at this address. Nothing is sent yet.
    pub fn new(address: &HubAddress, options: Options) -> Result<Self, Error> {
        if !address.is_encrypted() && !address.is_loopback() && !options.insecure_http {
            return Err(Error::PlainHttp { hub: address.to_string() });
        }
        let mut tls = TlsConfig::builder();
        if let Some(path) = &options.ca_certificate {
            tls = tls.root_certs(RootCerts::Specific(Arc::new(certificates(path)?)));
        }
        let agent = Agent::config_builder()
            .tls_config(tls.build())
            .http_status_as_error(false)
            // A token goes to the hub that it is for, and nowhere else.
            .max_redirects(0)
            .max_redirects_will_error(false)
            .proxy(if address.is_loopback() { None } else { Proxy::try_from_env() })
            .user_agent(concat!("potluck/", env!("CARGO_PKG_VERSION")))
            .timeout_resolve(Some(options.connect))
            .timeout_connect(Some(options.connect))
            .timeout_per_read(Some(options.idle))
            .timeout_per_write(Some(options.idle))
            .build()
            .new_agent();
        Ok(Self {
            address: address.clone(),
            agent,
            token: options.token,
            patience: options.patience,
            on_retry: options.on_retry,
        })
    }

    /// Where it is.
    pub fn address(&self) -> &HubAddress {
        &self.address
    }

    /// The address of a study's page.
    pub fn page(&self, study: &str) -> StudyAddress {
        StudyAddress::new(&self.address, study)
    }

    pub(crate) fn patience(&self) -> Duration {
        self.patience
    }

    pub(crate) fn tell_retry(&self, error: &Error, pause: Duration) {
        if let Some(tell) = &self.on_retry {
            tell(error, pause);
        }
    }

    /// A page of the hub's studies, newest first.
    pub fn studies(&self, limit: u32, after: Option<u64>) -> Result<StudyPage, Error> {
        self.get("/studies", &paging(limit, after), Access::Public)
    }

    /// Creates a study; `text` is its sealed form. Creating it again is harmless, but gives no
    /// invitations.
    pub fn create_study(&self, study: &Study, text: &str, early: bool) -> Result<NewInvitations, Error> {
        let body = NewStudy { study: text.to_owned(), early };
        let (status, answer): (_, CreatedStudy) = self.post("/studies", &body, "the new study")?;
        if answer.id != study.id() {
            return Err(self.unsound("the id of the new study", "it is that of another study"));
        }
        let invitations = answer.invitations.into_iter().map(|invitation| self.invitation(study, invitation));
        Ok(NewInvitations {
            created: status == StatusCode::CREATED,
            invitations: invitations.collect::<Result<_, _>>()?,
        })
    }

    /// A new invitation of a party; the one before is void. A key that it has registered stays.
    pub fn invite(&self, study: &Study, party: &str) -> Result<Token, Error> {
        self.invite_by(study, party, "")
    }

    /// Undoes the acceptance of a party that has not released, and invites it anew.
    pub fn undo_acceptance(&self, study: &Study, party: &str) -> Result<Token, Error> {
        self.invite_by(study, party, "?undo_acceptance=true")
    }

    fn invite_by(&self, study: &Study, party: &str, query: &str) -> Result<Token, Error> {
        study.own_party(party)?;
        let path = format!("{}/invitation{query}", of_party(study.id(), party));
        let (_, answer) = self.post(&path, &(), "the invitation")?;
        let (invited, token) = self.invitation(study, answer)?;
        if invited == party { Ok(token) } else { Err(self.protocol("the invitation is another party's")) }
    }

    /// Closes a study before anyone has released; whether it is new, since doing so again is
    /// harmless.
    pub fn close(&self, study: &str, reason: &str) -> Result<(bool, Closing), Error> {
        let body = Close { reason: reason.to_owned() };
        let path = format!("{}/closing", of_study(study));
        let (status, closing) = self.post(&path, &body, "the closing")?;
        Ok((status == StatusCode::CREATED, closing))
    }

    /// An invitation of a party that there is: its name becomes that of a file.
    fn invitation(&self, study: &Study, invitation: Invitation) -> Result<(String, Token), Error> {
        let secret = Zeroizing::new(invitation.token);
        if study.own_party(&invitation.party).is_err() {
            return Err(self.protocol("an invitation is for a party that the study does not have"));
        }
        let token = Token::new(&secret).map_err(|_| self.protocol("an invitation holds no token"))?;
        Ok((invitation.party, token))
    }

    /// All there is to know of a study, by the hub's word.
    pub fn details(&self, study: &str) -> Result<StudyDetails, Error> {
        let details: StudyDetails = self.get(&of_study(study), &[], Access::Public)?;
        if details.summary.id != study {
            return Err(self.unsound("the description of the study", "it is that of another study"));
        }
        Ok(details)
    }

    /// The sealed study; its seal is recomputed and its id is the one asked for.
    pub fn contract(&self, study: &str) -> Result<Contract, Error> {
        let text = self.text(&format!("{}/study.toml", of_study(study)), "the study", LARGEST_ANSWER)?;
        let sealed = Study::parse(&text).map_err(|error| self.unsound("the study", &error.to_string()))?;
        if sealed.id() != study {
            return Err(self.unsound("the study", &format!("it has the id {}, not {study}", sealed.id())));
        }
        Ok(Contract { study: sealed, text })
    }

    /// A page of a study's events, unverified: only a whole log can be.
    pub fn events(&self, study: &str, limit: u32, after: Option<u64>) -> Result<EventPage, Error> {
        self.get(&format!("{}/events", of_study(study)), &paging(limit, after), Access::Public)
    }

    /// The whole event log of a study, verified.
    pub fn log(&self, study: &str) -> Result<Log, Error> {
        const WHAT: &str = "the event log";
        let path = format!("{}/events.jsonl", of_study(study));
        let text = self.text(&path, WHAT, LARGEST_LOG)?;
        let log = EventLog::parse(&text, Path::new(WHAT)).map_err(|error| match error {
            potluck_release::Error::Tampered { what, .. } => self.unsound(WHAT, &what),
            error => self.unsound(WHAT, &error.to_string()),
        })?;
        if log.study().id() != study {
            return Err(self.unsound(WHAT, "it is that of another study"));
        }
        Ok(Log { log, text })
    }

    /// Whose invitation our token is.
    pub fn invited(&self, study: &Study) -> Result<Invited, Error> {
        let path = format!("{}/invitation", of_study(study.id()));
        let invited: Invited = self.get(&path, &[], Access::Token)?;
        if study.own_party(&invited.party).is_err() {
            return Err(self.protocol("the invitation is for a party that the study does not have"));
        }
        Ok(invited)
    }

    /// Accepts a study and registers a key; whether it is new, since doing so again is harmless.
    pub fn accept(&self, acceptance: &Acceptance) -> Result<bool, Error> {
        let path = format!("{}/acceptance", of_party(&acceptance.study_id, &acceptance.party));
        self.post_then(&path, acceptance, |response| Ok(response.status() == StatusCode::CREATED))
    }

    /// Takes an acceptance back; whether it is new, since doing so again is harmless.
    pub fn withdraw(&self, withdrawal: &Withdrawal) -> Result<bool, Error> {
        let path = format!("{}/withdrawal", of_party(&withdrawal.study_id, &withdrawal.party));
        self.post_then(&path, withdrawal, |response| Ok(response.status() == StatusCode::CREATED))
    }

    /// How far the upload of the file with this hash has come.
    pub fn upload_state(&self, study: &str, party: &str, sha256: &str) -> Result<UploadState, Error> {
        self.patiently(|| self.upload_state_once(study, party, sha256))
    }

    pub(crate) fn upload_state_once(
        &self,
        study: &str,
        party: &str,
        sha256: &str,
    ) -> Result<UploadState, Error> {
        let path = format!("{}/upload", of_party(study, party));
        self.get_once(&path, &[("sha256", sha256.to_owned())], Access::Token)
    }

    /// The model that the hub fits on the public dataset of a study.
    pub fn fit(&self, study: &str, query: &FitQuery<'_>) -> Result<Value, Error> {
        let mut pairs = vec![("label", query.label.to_owned())];
        pairs.extend(query.features.iter().map(|feature| ("feature", feature.clone())));
        pairs.extend(query.learner.map(|learner| ("learner", learner.to_owned())));
        pairs.extend(query.level.map(|level| ("level", level.to_string())));
        self.get(&format!("{}/fit", of_study(study)), &pairs, Access::Public)
    }

    /// What a study, sealed or not, promises and costs.
    pub fn plan(&self, text: &str) -> Result<Value, Error> {
        self.patiently(|| {
            let request = self
                .request(Method::POST, "/plan", &[], Access::Public)?
                .header(header::CONTENT_TYPE, "text/plain; charset=utf-8");
            self.json(self.send(request, text)?, "the plan")
        })
    }

    /// Tries again for as long as patience lasts. Only for what can be repeated without harm.
    pub(crate) fn patiently<T>(&self, mut attempt: impl FnMut() -> Result<T, Error>) -> Result<T, Error> {
        let mut patience = Patience::new(self);
        loop {
            match attempt() {
                Ok(value) => return Ok(value),
                Err(error) => patience.wait(error)?,
            }
        }
    }

    fn get<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &[(&str, String)],
        access: Access,
    ) -> Result<T, Error> {
        self.patiently(|| self.get_once(path, query, access))
    }

    fn get_once<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &[(&str, String)],
        access: Access,
    ) -> Result<T, Error> {
        let response = self.send(self.request(Method::GET, path, query, access)?, ())?;
        self.json(response, "the answer")
    }

    fn text(&self, path: &str, what: &str, limit: u64) -> Result<String, Error> {
        self.patiently(|| {
            let response = self.send(self.request(Method::GET, path, &[], Access::Public)?, ())?;
            let bytes = self.read(response, what, limit)?;
            String::from_utf8(bytes).map_err(|_| self.protocol(&format!("{what} is not text")))
        })
    }

    /// Posts something that can be posted again without harm.
    fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
        what: &str,
    ) -> Result<(StatusCode, T), Error> {
        self.post_then(path, body, |response| Ok((response.status(), self.json(response, what)?)))
    }

    fn post_then<T>(
        &self,
        path: &str,
        body: &impl Serialize,
        then: impl Fn(Response<Body>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let body = serde_json::to_vec(body).expect("what we post is plain data");
        // Nothing to say is said with an empty body.
        let body = if body == b"null" { Vec::new() } else { body };
        self.patiently(|| {
            let mut request = self.request(Method::POST, path, &[], Access::Token)?;
            if !body.is_empty() {
                request = request.header(header::CONTENT_TYPE, "application/json");
            }
            then(self.send(request, body.as_slice())?)
        })
    }

    /// A request below the start of the API.
    pub(crate) fn request(
        &self,
        method: Method,
        path: &str,
        query: &[(&str, String)],
        access: Access,
    ) -> Result<request::Builder, Error> {
        let mut uri = format!("{}{API}{path}", self.address);
        for (at, (key, value)) in query.iter().enumerate() {
            uri.push(if at == 0 { '?' } else { '&' });
            uri.push_str(&format!("{key}={}", utf8_percent_encode(value, RESERVED)));
        }
        let mut request = Request::builder().method(method).uri(uri);
        if access == Access::Token {
            let token = self.token.as_ref().ok_or(Error::Token)?;
            let text = Zeroizing::new(format!("Bearer {}", token.secret()));
            let mut value = HeaderValue::from_str(&text).map_err(|_| Error::Token)?;
            value.set_sensitive(true);
            request = request.header(header::AUTHORIZATION, value);
        }
        Ok(request)
    }

    /// Sends a request and gives the answer if it is a success.
    pub(crate) fn send(
        &self,
        request: request::Builder,
        body: impl AsSendBody,
    ) -> Result<Response<Body>, Error> {
        let request = request.body(body).map_err(|error| self.transport(error.into()))?;
        let response = self.agent.run(request).map_err(|error| self.transport(error))?;
        if response.status().is_success() { Ok(response) } else { Err(self.refusal(response)) }
    }

    /// Why a request was refused.
    fn refusal(&self, response: Response<Body>) -> Error {
        let status = response.status();
        let headers = response.headers();
        let text = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
        if status.is_redirection() {
            let target = text(header::LOCATION).map_or("elsewhere".to_owned(), printable);
            return self.protocol(&format!("it points to {target}"));
        }
        let retry_after = text(header::RETRY_AFTER).and_then(asked_pause);
        let described =
            text(header::CONTENT_TYPE).is_some_and(|kind| kind.starts_with("application/problem+json"));
        let mut body = Vec::new();
        let read = response.into_body().into_reader().take(LARGEST_PROBLEM).read_to_end(&mut body);
        let problem = read.ok().filter(|_| described).and_then(|_| serde_json::from_slice(&body).ok());
        let mut problem: Problem = problem.unwrap_or_else(|| Problem {
            kind: ProblemType::Other,
            title: format!("{} answers with status {status}", self.address),
            status: 0,
            detail: String::new(),
            received: None,
            errors: Vec::new(),
        });
        problem.status = status.as_u16();
        Error::Refused { problem, retry_after }
    }

    pub(crate) fn json<T: DeserializeOwned>(&self, response: Response<Body>, what: &str) -> Result<T, Error> {
        let bytes = self.read(response, what, LARGEST_ANSWER)?;
        serde_json::from_slice(&bytes).map_err(|error| {
            // The reason without the text: it may hold a token.
            self.protocol(&format!("{what} is not in the expected form (line {})", error.line()))
        })
    }

    fn read(&self, response: Response<Body>, what: &str, limit: u64) -> Result<Vec<u8>, Error> {
        let mut bytes = Vec::new();
        let read = response.into_body().into_reader().take(limit + 1).read_to_end(&mut bytes);
        read.map_err(|error| self.transport(error.into()))?;
        if bytes.len() as u64 > limit {
            return Err(self.too_large(what, limit));
        }
        Ok(bytes)
    }

    pub(crate) fn transport(&self, error: ureq::Error) -> Error {
        Error::transport(&self.address.to_string(), error)
    }

    pub(crate) fn protocol(&self, what: &str) -> Error {
        Error::Protocol { hub: self.address.to_string(), what: what.to_owned() }
    }

    pub(crate) fn too_large(&self, what: &str, limit: u64) -> Error {
        Error::TooLarge { hub: self.address.to_string(), what: what.to_owned(), limit }
    }

    /// Says that what the hub sent does not verify.
    pub fn unsound(&self, what: &str, detail: &str) -> Error {
        Error::Unsound { hub: self.address.to_string(), what: what.to_owned(), detail: printable(detail) }
    }
}

pub(crate) fn of_study(study: &str) -> String {
    format!("/studies/{}", utf8_percent_encode(study, RESERVED))
}

pub(crate) fn of_party(study: &str, party: &str) -> String {
    format!("{}/parties/{}", of_study(study), utf8_percent_encode(party, RESERVED))
}

fn paging(limit: u32, after: Option<u64>) -> Vec<(&'static str, String)> {
    let mut query = vec![("limit", limit.to_string())];
    query.extend(after.map(|after| ("after", after.to_string())));
    query
}

/// All certificates of a PEM file.
fn certificates(path: &Path) -> Result<Vec<Certificate<'static>>, Error> {
    let bytes = fs::read(path).map_err(|source| Error::File { path: path.to_owned(), source })?;
    let unusable = |detail: &str| Error::Certificate { path: path.to_owned(), detail: detail.to_owned() };
    let mut certificates = Vec::new();
    for item in parse_pem(&bytes) {
        if let PemItem::Certificate(certificate) = item.map_err(|_| unusable("it is not in PEM form"))? {
            certificates.push(certificate);
        }
    }
    if certificates.is_empty() { Err(unusable("there is none in it")) } else { Ok(certificates) }
}
