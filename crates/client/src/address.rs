//! Addresses of hubs and of studies at hubs: what people pass around.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use ureq::http::Uri;

use crate::Error;

/// Where a hub is: scheme, host, port, and the path that it is served under, if it is not the root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HubAddress {
    base: String,
    host: String,
    encrypted: bool,
}

impl HubAddress {
    /// Reads `https://hub.example.org`; the address of a study there is none.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let (hub, path) = split(text)?;
        if path.split('/').any(|part| part == "studies") {
            return Err(bad(text, "this is the address of a study; give that of its hub, up to /studies"));
        }
        Ok(hub.under(path))
    }

    fn under(mut self, path: &str) -> Self {
        self.base.push_str(path);
        self
    }

    /// The host's name or number.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Whether what is said to it is encrypted on the way.
    pub fn is_encrypted(&self) -> bool {
        self.encrypted
    }

    /// Whether it is on this machine, so that nothing travels over a network.
    pub fn is_loopback(&self) -> bool {
        let host = self.host.trim_start_matches('[').trim_end_matches(']');
        host.eq_ignore_ascii_case("localhost")
            || host.parse().is_ok_and(|address: IpAddr| address.is_loopback())
    }
}

impl fmt::Display for HubAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.base)
    }
}

impl FromStr for HubAddress {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Self::parse(text)
    }
}

/// A study at a hub: the address of its page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StudyAddress {
    hub: HubAddress,
    id: String,
}

impl StudyAddress {
    /// Reads `https://hub.example.org/studies/ID`.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let (hub, path) = split(text)?;
        let (base, id) = path.rsplit_once("/studies/").ok_or_else(|| {
            bad(text, "a study's address ends in /studies/ and its id; copy it from the study's page")
        })?;
        if id.len() != 64 || !id.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) {
            return Err(bad(
                text,
                "after /studies/ comes the study's id, 64 hexadecimal digits; copy it whole",
            ));
        }
        Ok(Self { hub: hub.under(base), id: id.to_owned() })
    }

    /// The study `id` at a hub.
    pub fn new(hub: &HubAddress, id: &str) -> Self {
        Self { hub: hub.clone(), id: id.to_owned() }
    }

    /// The hub.
    pub fn hub(&self) -> &HubAddress {
        &self.hub
    }

    /// The id of the study.
    pub fn id(&self) -> &str {
        &self.id
    }
}

impl fmt::Display for StudyAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/studies/{}", self.hub, self.id)
    }
}

impl FromStr for StudyAddress {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Self::parse(text)
    }
}

fn bad(text: &str, problem: &'static str) -> Error {
    Error::Address { text: text.to_owned(), problem }
}

/// The hub at the root of its host, and the path without a slash at its end.
fn split(text: &str) -> Result<(HubAddress, &str), Error> {
    const FORM: &str =
        "an address has the form https://hub.example.org/studies/ID, or https://hub.example.org for a hub";
    let uri: Uri = text.parse().map_err(|_| bad(text, FORM))?;
    let encrypted = match uri.scheme_str() {
        Some("https") => true,
        Some("http") => false,
        _ => return Err(bad(text, FORM)),
    };
    let (Some(authority), Some(host)) = (uri.authority(), uri.host().filter(|host| !host.is_empty())) else {
        return Err(bad(text, FORM));
    };
    // Not quoted: what stands there may be a password.
    if authority.as_str().contains('@') {
        return Err(bad(
            "the address",
            "it holds a user name; a hub knows people by tokens, given separately",
        ));
    }
    if uri.query().is_some() || text.contains('#') {
        return Err(bad(text, "leave out what follows the study's id"));
    }
    let scheme = if encrypted { "https" } else { "http" };
    let hub = HubAddress { base: format!("{scheme}://{authority}"), host: host.to_owned(), encrypted };
    let start = text.find(authority.as_str()).map_or(text.len(), |at| at + authority.as_str().len());
    Ok((hub, text[start..].trim_end_matches('/')))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

    #[test]
    fn a_study_has_a_hub_and_an_id() {
        for hub in [
            "https://hub.example.org",
            "http://127.0.0.1:8080",
            "https://example.org/potluck",
            "https://[::1]:1",
        ] {
            let text = format!("{hub}/studies/{ID}");
            for text in [text.clone(), format!("{text}/")] {
                let address = StudyAddress::parse(&text).unwrap();
                assert_eq!((address.hub().to_string().as_str(), address.id()), (hub, ID));
                assert_eq!(address.to_string(), format!("{hub}/studies/{ID}"));
            }
            assert_eq!(HubAddress::parse(hub).unwrap(), HubAddress::parse(&format!("{hub}/")).unwrap());
            assert_eq!(StudyAddress::new(&HubAddress::parse(hub).unwrap(), ID).to_string(), text);
        }
    }

    #[test]
    fn other_addresses_are_refused_with_a_reason() {
        let upper = ID.to_uppercase();
        for (text, word) in [
            ("hub.example.org", "form"),
            ("ftp://hub.example.org", "form"),
            ("https://", "form"),
            ("", "form"),
            ("https://hub.example.org", "/studies/"),
            ("https://hub.example.org/studies", "/studies/"),
            (&format!("https://hub.example.org/studies/{}", &ID[1..]), "64"),
            (&format!("https://hub.example.org/studies/{upper}"), "64"),
            (&format!("https://hub.example.org/studies/{ID}?x=1"), "leave out"),
            (&format!("https://hub.example.org/studies/{ID}/explore"), "64"),
        ] {
            let error = StudyAddress::parse(text).unwrap_err().to_string();
            assert!(error.contains(word), "{text}: {error}");
        }
        let error = HubAddress::parse(&format!("https://hub.example.org/studies/{ID}")).unwrap_err();
        assert!(error.to_string().contains("address of a study"), "{error}");
        let error = HubAddress::parse("https://me:hidden@hub.example.org").unwrap_err().to_string();
        assert!(error.contains("user name") && !error.contains("hidden"), "{error}");
    }

    #[test]
    fn loopback_is_known() {
        for (text, loopback) in [
            ("http://localhost:1", true),
            ("http://127.0.0.1", true),
            ("http://127.8.8.8:80", true),
            ("http://[::1]:8080", true),
            ("http://hub.example.org", false),
            ("http://localhost.example.org", false),
            ("http://10.0.0.1", false),
        ] {
            let hub = HubAddress::parse(text).unwrap();
            assert_eq!(hub.is_loopback(), loopback, "{text}");
            assert!(!hub.is_encrypted());
        }
    }
}
