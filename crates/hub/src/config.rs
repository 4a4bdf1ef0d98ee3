//! Settings of a hub: from a file, from flags and from the environment, the later over the earlier.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;

use crate::Error;

/// Requests a client may make in a minute, unless it is said otherwise.
const REQUESTS_PER_MINUTE: u32 = 600;

/// Seconds after which a client that sends nothing is let go, unless it is said otherwise.
const CLIENT_TIMEOUT: NonZeroU32 = NonZeroU32::new(15).expect("fifteen is not zero");

/// Connections at the same time, unless it is said otherwise: systems often allow 1024 open files.
const CONNECTIONS: NonZeroU32 = NonZeroU32::new(800).expect("eight hundred is not zero");

/// Settings as people give them; what is not given has a default.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Options {
    /// Address and port to listen on.
    pub listen: Option<SocketAddr>,
    /// The folder that holds everything.
    pub data: Option<PathBuf>,
    /// Certificate chain in PEM form.
    pub tls_cert: Option<PathBuf>,
    /// Private key of the certificate in PEM form.
    pub tls_key: Option<PathBuf>,
    /// Serve plain HTTP beyond this machine: only behind a proxy that does TLS.
    pub allow_plain_http: Option<bool>,
    /// The address that people use, if it is not that of the request.
    pub public_url: Option<String>,
    /// The name that pages show.
    pub name: Option<String>,
    /// Requests that a client may make in a minute; 0 for no limit.
    pub requests_per_minute: Option<u32>,
    /// A proxy in front of the hub, whose `X-Forwarded-For` is believed.
    pub trusted_proxy: Option<IpAddr>,
    /// Seconds after which a client that sends nothing is let go.
    pub client_timeout: Option<NonZeroU32>,
    /// Connections at the same time, half of them at most from one client.
    pub connections: Option<NonZeroU32>,
}

impl Options {
    /// Reads a TOML file.
    pub fn load(path: &Path) -> Result<Self, Error> {
        let text = fs::read_to_string(path).map_err(Error::file(path))?;
        toml::from_str(&text).map_err(|error| {
            Error::Config(format!("{}: {error}see docs/HUB.md for the settings", path.display()))
        })
    }

    /// These settings, and where they say nothing, the others.
    #[must_use]
    pub fn or(self, others: Self) -> Self {
        Self {
            listen: self.listen.or(others.listen),
            data: self.data.or(others.data),
            tls_cert: self.tls_cert.or(others.tls_cert),
            tls_key: self.tls_key.or(others.tls_key),
            allow_plain_http: self.allow_plain_http.or(others.allow_plain_http),
            public_url: self.public_url.or(others.public_url),
            name: self.name.or(others.name),
            requests_per_minute: self.requests_per_minute.or(others.requests_per_minute),
            trusted_proxy: self.trusted_proxy.or(others.trusted_proxy),
            client_timeout: self.client_timeout.or(others.client_timeout),
            connections: self.connections.or(others.connections),
        }
    }
}

/// Certificate and key.
#[derive(Clone, Debug)]
pub struct Tls {
    /// Certificate chain in PEM form.
    pub certificate: PathBuf,
    /// Private key in PEM form.
    pub key: PathBuf,
}

/// Settings that go together.
#[derive(Clone, Debug)]
pub struct Config {
    pub(crate) listen: SocketAddr,
    pub(crate) data: PathBuf,
    pub(crate) tls: Option<Tls>,
    pub(crate) public_url: Option<String>,
    pub(crate) name: String,
    pub(crate) requests_per_minute: Option<NonZeroU32>,
    pub(crate) trusted_proxy: Option<IpAddr>,
    pub(crate) client_timeout: Duration,
    pub(crate) connections: NonZeroU32,
}

impl Config {
    /// Checks that the settings go together and fills in defaults.
    pub fn new(options: Options) -> Result<Self, Error> {
        let refuse = |problem: &str| Err(Error::Config(problem.to_owned()));
        let Some(data) = options.data else {
            return refuse("say where the hub keeps its data: --data DIR");
        };
        let tls = match (options.tls_cert, options.tls_key) {
            (Some(certificate), Some(key)) => Some(Tls { certificate, key }),
            (None, None) => None,
            _ => return refuse("TLS needs both a certificate and its key: --tls-cert FILE --tls-key FILE"),
        };
        let listen = options.listen.unwrap_or_else(|| SocketAddr::from((Ipv4Addr::LOCALHOST, 8080)));
        if tls.is_none() && !listen.ip().is_loopback() && options.allow_plain_http != Some(true) {
            return refuse(
                "plain HTTP is served on this machine only, because tokens would travel in the clear: give --tls-cert and --tls-key, listen on 127.0.0.1, or pass --allow-plain-http if a proxy in front of the hub does TLS",
            );
        }
        let public_url = options.public_url.map(|url| url.trim_end_matches('/').to_owned());
        if public_url.as_ref().is_some_and(|url| !url.starts_with("https://") && !url.starts_with("http://"))
        {
            return refuse("--public-url must begin with https:// (or http://)");
        }
        Ok(Self {
            listen,
            data,
            tls,
            public_url,
            name: options.name.unwrap_or_else(|| "potluck hub".to_owned()),
            requests_per_minute: NonZeroU32::new(options.requests_per_minute.unwrap_or(REQUESTS_PER_MINUTE)),
            trusted_proxy: options.trusted_proxy,
            connections: options.connections.unwrap_or(CONNECTIONS),
            client_timeout: Duration::from_secs(
                options.client_timeout.unwrap_or(CLIENT_TIMEOUT).get().into(),
            ),
        })
    }

    /// What browsers call the site that the public address belongs to: scheme, host and port.
    pub(crate) fn origin(&self) -> Option<String> {
        let (scheme, rest) = self.public_url.as_ref()?.split_once("://")?;
        let host = rest.split(['/', '?', '#']).next()?;
        Some(format!("{scheme}://{host}"))
    }

    /// Whether browsers reach the hub by HTTPS.
    pub(crate) fn is_https(&self) -> bool {
        self.tls.is_some() || self.public_url.as_ref().is_some_and(|url| url.starts_with("https://"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(text: &str) -> Options {
        toml::from_str(text).expect("the test's settings are valid")
    }

    #[test]
    fn plain_http_stays_on_this_machine_unless_it_is_allowed() {
        let config = |text| Config::new(options(text));
        assert!(config("data = 'd'").is_ok_and(|config| config.listen.ip().is_loopback()));
        assert!(config("data = 'd'\nlisten = '[::1]:80'").is_ok());
        assert!(config("data = 'd'\nlisten = '0.0.0.0:80'").is_err());
        assert!(config("data = 'd'\nlisten = '0.0.0.0:80'\nallow-plain-http = false").is_err());
        assert!(config("data = 'd'\nlisten = '0.0.0.0:80'\nallow-plain-http = true").is_ok());
        assert!(config("data = 'd'\nlisten = '0.0.0.0:443'\ntls-cert = 'c'\ntls-key = 'k'").is_ok());
        assert!(config("data = 'd'\ntls-cert = 'c'").is_err());
        assert!(config("").is_err());
    }

    #[test]
    fn flags_go_before_the_file() {
        let file = options("data = 'file'\nname = 'from the file'\nrequests-per-minute = 0");
        let config = Config::new(options("data = 'flag'").or(file)).expect("the settings go together");
        assert_eq!((config.data.to_str(), config.name.as_str()), (Some("flag"), "from the file"));
        assert_eq!(config.requests_per_minute, None);
    }
}
