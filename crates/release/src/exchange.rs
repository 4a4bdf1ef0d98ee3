//! What a hub and those who talk to it say to each other, as JSON (docs/HUB.md).
//!
//! Plain data without promises: each side checks what it receives. With the feature `openapi` the
//! types describe themselves to the hub's API description.

use serde::{Deserialize, Serialize};

use crate::events::Event;
use crate::study::Mistake;

/// Where the API of a hub begins.
pub const API: &str = "/api/v1";

/// A study to create, by a coordinator.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct NewStudy {
    /// The sealed study, as TOML text.
    pub study: String,
    /// Whether a public dataset may appear before every party has released, with those present.
    #[serde(default)]
    pub early: bool,
}

/// A study that was created.
#[derive(Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CreatedStudy {
    /// The study id.
    pub id: String,
    /// One invitation a party; empty if the study was there already: tokens are shown once.
    pub invitations: Vec<Invitation>,
}

/// An invitation of one party. Whoever has the token can accept in the party's name, once.
#[derive(Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Invitation {
    /// The party.
    pub party: String,
    /// The secret to accept and upload with. It is shown once; the hub keeps its hash.
    pub token: String,
}

/// Whose invitation a token is.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Invited {
    /// The party.
    pub party: String,
    /// Whether it has accepted.
    pub accepted: bool,
    /// Whether it has released.
    pub released: bool,
}

/// How far an upload has come.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct UploadState {
    /// So many bytes of the file have arrived.
    pub received: u64,
    /// Whether the release is stored and public.
    pub complete: bool,
}

/// That a study is to be closed.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Close {
    /// Why, for everyone to read: one line of at most 500 characters, or nothing.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(max_length = 500))]
    pub reason: String,
}

/// When a study was closed, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Closing {
    /// When (RFC 3339, UTC).
    pub time: String,
    /// Why, in the coordinator's words; may be empty.
    pub reason: String,
}

/// A guarantee in numbers, rounded against us.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct GuaranteeNumbers {
    /// ε.
    pub epsilon: f64,
    /// δ.
    pub delta: f64,
    /// The Gaussian-DP parameter.
    pub mu: f64,
    /// The best chance to notice a person's data at a rate of false alarms of 5%.
    pub detection_at_5_percent: f64,
}

impl From<crate::statement::Guarantee> for GuaranteeNumbers {
    fn from(guarantee: crate::statement::Guarantee) -> Self {
        Self {
            epsilon: guarantee.epsilon,
            delta: guarantee.delta,
            mu: guarantee.mu,
            detection_at_5_percent: guarantee.detection,
        }
    }
}

/// A published file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PublishedFile {
    /// SHA-256 of its bytes, in hexadecimal.
    pub sha256: String,
    /// Its length in bytes.
    pub size: u64,
    /// SHA-256 over its logical content, as its manifest says.
    pub content_hash: String,
    /// When it was published (RFC 3339, UTC).
    pub time: String,
}

/// One party and how far it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PartyState {
    /// Its name.
    pub name: String,
    /// The study under which it releases: this one, or one that this one extends.
    pub study: String,
    /// The public Ed25519 key it registered when it accepted, in hexadecimal.
    pub key: Option<String>,
    /// When it accepted.
    pub accepted: Option<String>,
    /// Its release.
    pub release: Option<PublishedFile>,
}

/// The public dataset of a study.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DatasetState {
    /// The file.
    pub file: PublishedFile,
    /// Whose releases are in it.
    pub parties: Vec<String>,
}

/// A study in a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct StudySummary {
    /// The study id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// When it was created at this hub.
    pub created: String,
    /// Number of subjects.
    pub rows: u64,
    /// Number of parties, those of the studies it extends included.
    pub parties: u64,
    /// How many of them have accepted.
    pub accepted: u64,
    /// How many of them have released.
    pub released: u64,
    /// Whether there is a public dataset.
    pub dataset: bool,
    /// When and why its coordinator closed it before anyone released, if that happened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed: Option<Closing>,
}

/// Studies, newest first, a page at a time.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct StudyPage {
    /// The studies of this page.
    pub studies: Vec<StudySummary>,
    /// What to pass as `after` for the next page, if there is one.
    pub next: Option<u64>,
}

/// All there is to know of a study.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct StudyDetails {
    /// The study in short.
    #[serde(flatten)]
    pub summary: StudySummary,
    /// Whether a public dataset may appear before every party has released.
    pub early: bool,
    /// The study that this one extends.
    pub extends: Option<String>,
    /// Studies that extend this one.
    pub extended_by: Vec<String>,
    /// The parties and how far they are.
    pub party: Vec<PartyState>,
    /// The public dataset, if it is there.
    pub dataset_file: Option<DatasetState>,
    /// What each party's release promises.
    pub per_party: GuaranteeNumbers,
    /// What the releases of all parties promise together.
    pub joint: GuaranteeNumbers,
    /// The hash of the last event.
    pub head: String,
}

/// Events of a study in order, a page at a time.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct EventPage {
    /// The events of this page.
    pub events: Vec<Event>,
    /// What to pass as `after` for the next page, if there is one.
    pub next: Option<u64>,
}

/// What kind of problem a request met. The names stay as they are; docs/HUB.md says what each one
/// means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum ProblemType {
    /// The request is not put together as it should be.
    #[serde(rename = "urn:potluck:problem:malformed")]
    Malformed,
    /// A token is missing, or nobody here has it.
    #[serde(rename = "urn:potluck:problem:unauthorized")]
    Unauthorized,
    /// The token is somebody else's, or the request comes from another site.
    #[serde(rename = "urn:potluck:problem:forbidden")]
    Forbidden,
    /// There is no such thing, or not yet.
    #[serde(rename = "urn:potluck:problem:not-found")]
    NotFound,
    /// The address does not take this method.
    #[serde(rename = "urn:potluck:problem:method-not-allowed")]
    MethodNotAllowed,
    /// It does not fit the state of the study.
    #[serde(rename = "urn:potluck:problem:conflict")]
    Conflict,
    /// An upload does not begin where the last one ended; `received` says where that is.
    #[serde(rename = "urn:potluck:problem:upload-offset")]
    UploadOffset,
    /// The request did not arrive in time.
    #[serde(rename = "urn:potluck:problem:too-slow")]
    TooSlow,
    /// More than there can be.
    #[serde(rename = "urn:potluck:problem:too-large")]
    TooLarge,
    /// Another media type than the address takes.
    #[serde(rename = "urn:potluck:problem:media-type")]
    MediaType,
    /// A range that the file does not have.
    #[serde(rename = "urn:potluck:problem:range")]
    Range,
    /// What was sent is understood and refused.
    #[serde(rename = "urn:potluck:problem:unacceptable")]
    Unacceptable,
    /// Too many requests from one address.
    #[serde(rename = "urn:potluck:problem:too-many-requests")]
    TooManyRequests,
    /// The hub has too much to do; it will pass.
    #[serde(rename = "urn:potluck:problem:busy")]
    Busy,
    /// The hub failed.
    #[serde(rename = "urn:potluck:problem:failed")]
    Failed,
    /// No more than the status says.
    #[serde(rename = "about:blank", other)]
    Other,
}

/// Why a request was refused (RFC 9457, `application/problem+json`).
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Problem {
    /// What kind of problem.
    #[serde(rename = "type")]
    pub kind: ProblemType,
    /// The kind in words.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// What went wrong this time, and what to do.
    #[serde(default)]
    pub detail: String,
    /// For an upload at the wrong place: so many bytes of the file have arrived.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub received: Option<u64>,
    /// For a study that is not acceptable: all that is wrong with it, in the order of its text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<StudyMistake>,
}

/// Something that is wrong with a study.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct StudyMistake {
    /// Where it is, as a JSON pointer (RFC 6901) into the study.
    pub pointer: String,
    /// Where it is, in words.
    pub place: String,
    /// The line of the text where it is, unless something is missing that no line would hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// What is wrong and what to do.
    pub detail: String,
}

impl From<&Mistake> for StudyMistake {
    fn from(mistake: &Mistake) -> Self {
        Self {
            pointer: mistake.place().pointer(),
            place: mistake.place().to_string(),
            line: mistake.line(),
            detail: mistake.problem().to_string(),
        }
    }
}
