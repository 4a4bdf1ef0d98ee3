//! Why an event cannot follow, or a published file is not what a log says.

use thiserror::Error;

/// Why an event cannot follow, or a published file is not what a log says. Each is the end of a
/// sentence that names the event or the file.
#[derive(Debug, Error)]
pub enum LogError {
    /// The first event creates nothing.
    #[error("a log begins with the creation of the study")]
    NoCreation,
    /// What was created is no sealed study.
    #[error("{0}")]
    Study(Box<crate::Error>),
    /// A study is created once.
    #[error("the study was created before")]
    CreatedBefore,
    /// Invitations end with the release.
    #[error("{0} was invited after it had released")]
    InvitedAfterRelease(String),
    /// Only who accepted may release.
    #[error("{0} released without having accepted")]
    NotAccepted(String),
    /// A party releases once.
    #[error("{0} released twice")]
    ReleasedTwice(String),
    /// Not one of those who release under this study.
    #[error("the study has no party {0:?}")]
    NoParty(String),
    /// An acceptance of something else.
    #[error("another study was accepted")]
    OtherAccepted,
    /// A party accepts once.
    #[error("{0} accepted twice")]
    AcceptedTwice(String),
    /// Nothing happens to a study that is closed.
    #[error("something happened after the study was closed")]
    AfterClosing,
    /// What is published stays published.
    #[error("the study was closed after {0} had released")]
    ClosedAfterRelease(String),
    /// A reason that is too long or no plain text.
    #[error("a reason is one line of at most {0} characters")]
    Reason(usize),
    /// An acceptance ends with the release.
    #[error("the acceptance of {0} was undone after {0} had released")]
    UndoneAfterRelease(String),
    /// No acceptance stands.
    #[error("{0} has accepted nothing; there is nothing to undo")]
    NothingToUndo(String),
    /// A withdrawal of another acceptance than the one that stands.
    #[error("an acceptance was withdrawn that does not stand")]
    OtherWithdrawn,
    /// A withdrawal that the registered key did not sign.
    #[error("the signature of a withdrawal is not that of the key that was registered")]
    WithdrawalSignature,
    /// An acceptance that its key did not sign.
    #[error("the signature of an acceptance is not valid")]
    Signature,
    /// A dataset with parties that the study has not, or has elsewhere.
    #[error("{0:?} is no party of the study, or not in its place")]
    Misplaced(String),
    /// A dataset with a release that was not there.
    #[error("a public dataset holds a release of {0}, which had not released")]
    NotReleased(String),
    /// A dataset of nothing.
    #[error("a public dataset holds no release")]
    NoReleases,
    /// A dataset before its time.
    #[error("a public dataset appeared before every party had released")]
    TooEarly,
    /// The party has not released by this log.
    #[error("the log holds no release of {0}")]
    UnknownRelease(String),
    /// The party released something else.
    #[error("{0} published another release")]
    OtherRelease(String),
    /// The log of a study that a party released under is not at hand.
    #[error("{party} released under study {study_id}, whose event log is missing")]
    MissingLog {
        /// The party.
        party: String,
        /// The study that lists it.
        study_id: String,
    },
    /// A dataset with another release of a party than the published one.
    #[error("the release of {0} in it is not the one that {0} published")]
    OtherReleaseInDataset(String),
    /// A dataset that was not published.
    #[error("the log holds no such public dataset")]
    UnknownDataset,
    /// A dataset of other parties.
    #[error("by the log, it holds the releases of {}, which it does not", .0.join(", "))]
    OtherParties(Vec<String>),
    /// A file under another study.
    #[error("the event log is of another study")]
    OtherStudy,
    /// A party without a key.
    #[error("{0} has registered no key in the event log")]
    NoKey(String),
    /// A release that is signed with another key, or not at all.
    #[error("the release of {0} is not signed with the key that {0} registered")]
    OtherSigner(String),
    /// Other bytes with the same content.
    #[error("its content was published, but its bytes are not those of the published file")]
    OtherBytes,
    /// Something else where a hash should be.
    #[error("it holds no hash")]
    NoHash,
    /// No event of ours.
    #[error("it is not an event of this format")]
    Format,
    /// Something else where a time should be.
    #[error("its time is not in RFC 3339 form, in UTC")]
    Time,
    /// Numbers that do not count up.
    #[error("events are missing or out of order")]
    Order,
    /// The hash of another event before.
    #[error("it does not follow from the event before it")]
    Link,
    /// A hash that does not follow from the event.
    #[error("it does not match its hash")]
    Hash,
}
