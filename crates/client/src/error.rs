//! What can go wrong between us and a hub, and what to do about it.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use potluck_release::Fault;
use potluck_release::exchange::Problem;
use thiserror::Error;

/// An error of the exchange with a hub. None holds a token.
#[derive(Debug, Error)]
pub enum Error {
    /// Not an address.
    #[error("{text}: {problem}")]
    Address {
        /// What was given.
        text: String,
        /// What is wrong, and what to give instead.
        problem: &'static str,
    },
    /// Tokens would travel unencrypted.
    #[error(
        "{hub} is not encrypted, and tokens would travel in the clear; use its https:// address, or pass --insecure-http if the network between is yours alone"
    )]
    PlainHttp {
        /// The hub.
        hub: String,
    },
    /// Not a token.
    #[error(
        "that is no token: a token is one word of visible characters; give the one that you received, whole"
    )]
    Token,
    /// Not certificates.
    #[error(
        "{path} holds no usable certificate: {detail}; --ca-cert takes the certificate, in PEM form, of the authority that signed the hub's"
    )]
    Certificate {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        detail: String,
    },
    /// A file on our side.
    #[error("cannot use {path}: {source}; check the file and its permissions, then run this again")]
    File {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A file on our side, by the rules of published files.
    #[error(transparent)]
    Release(#[from] potluck_release::Error),
    /// No connection, or it broke.
    #[error(
        "cannot reach {hub}: {detail}; check the address and the network, then run this again: what was done stays done"
    )]
    Unreachable {
        /// The hub.
        hub: String,
        /// Why not.
        detail: String,
        /// Whether trying again may help.
        passing: bool,
    },
    /// Somebody answers whom we have no reason to trust.
    #[error(
        "{hub} shows a certificate that is not trusted: {detail}; if it is signed by an authority of your own, name that one's certificate with --ca-cert"
    )]
    Untrusted {
        /// The hub.
        hub: String,
        /// What the check said.
        detail: String,
    },
    /// The hub said no.
    #[error("{}", refusal(.problem))]
    Refused {
        /// Why.
        problem: Problem,
        /// When to ask again, if the hub said so.
        retry_after: Option<Duration>,
    },
    /// The other side does not speak as a hub does.
    #[error(
        "{hub} does not answer as a hub does: {what}; check the address, and that hub and client have the same version"
    )]
    Protocol {
        /// The hub.
        hub: String,
        /// What was said.
        what: String,
    },
    /// More than there can be.
    #[error(
        "{what} from {hub} is larger than {limit} bytes, which is more than there can be; nothing was kept"
    )]
    TooLarge {
        /// The hub.
        hub: String,
        /// What was asked for.
        what: String,
        /// The most that is taken.
        limit: u64,
    },
    /// What the hub sent does not verify.
    #[error("{what} from {hub} fails verification: {detail}; do not use it, and ask whoever runs the hub")]
    Unsound {
        /// The hub.
        hub: String,
        /// What was sent.
        what: String,
        /// What does not agree.
        detail: String,
    },
}

impl Error {
    /// Whose fault it is.
    pub fn fault(&self) -> Fault {
        match self {
            Self::Address { .. } | Self::PlainHttp { .. } | Self::Token => Fault::Usage,
            Self::Certificate { .. } | Self::File { .. } => Fault::Input,
            Self::Release(error) => error.fault(),
            Self::Unsound { .. } => Fault::Integrity,
            Self::Unreachable { .. }
            | Self::Untrusted { .. }
            | Self::Refused { .. }
            | Self::Protocol { .. }
            | Self::TooLarge { .. } => Fault::Remote,
        }
    }

    /// Whether the same request may succeed a little later.
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Unreachable { passing, .. } => *passing,
            Self::Refused { problem, retry_after } => {
                retry_after.is_some() || matches!(problem.status, 408 | 425 | 429 | 500 | 502..=504)
            }
            _ => false,
        }
    }

    /// The status of the hub's refusal.
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Refused { problem, .. } => Some(problem.status),
            _ => None,
        }
    }

    pub(crate) fn transport(hub: &str, error: ureq::Error) -> Self {
        let unreachable =
            |detail: String, passing| Self::Unreachable { hub: hub.to_owned(), detail, passing };
        match error {
            ureq::Error::Rustls(error) => Self::tls(hub, &error),
            ureq::Error::Io(error) => match error.get_ref().and_then(|inner| inner.downcast_ref()) {
                Some(error) => Self::tls(hub, error),
                None => unreachable(error.to_string(), true),
            },
            ureq::Error::Timeout(_) => unreachable("it did not answer in time".to_owned(), true),
            ureq::Error::HostNotFound => unreachable("there is no host of that name".to_owned(), false),
            ureq::Error::ConnectionFailed => unreachable("the connection failed".to_owned(), true),
            ureq::Error::ConnectProxyFailed(detail) => {
                unreachable(format!("the proxy refused ({})", printable(&detail)), true)
            }
            ureq::Error::InvalidProxyUrl => {
                unreachable("the proxy in the environment is not an address".to_owned(), false)
            }
            error => Self::Protocol { hub: hub.to_owned(), what: printable(&error.to_string()) },
        }
    }

    fn tls(hub: &str, error: &rustls::Error) -> Self {
        match error {
            rustls::Error::InvalidCertificate(reason) => {
                Self::Untrusted { hub: hub.to_owned(), detail: reason.to_string() }
            }
            error => Self::Unreachable {
                hub: hub.to_owned(),
                detail: format!("no encrypted connection came about ({error})"),
                passing: false,
            },
        }
    }
}

/// `title: detail`, as the hub said it.
fn refusal(problem: &Problem) -> String {
    let title = printable(&problem.title);
    if problem.detail.is_empty() { title } else { format!("{title}: {}", printable(&problem.detail)) }
}

/// What a stranger said, for the terminal: no control characters, and not without end.
pub(crate) fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(2000).collect()
}
