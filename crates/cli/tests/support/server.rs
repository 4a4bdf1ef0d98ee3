//! A hub as a process of its own, and certificates for it.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used)]

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};

use crate::support::Workplace;

/// A running hub with its data in `hub` and its log in `hub.log`; it is killed when the test ends.
pub struct Server {
    child: Child,
    pub port: u16,
    pub url: String,
}

impl Server {
    pub fn start(place: &Workplace, port: u16, more: &[&str]) -> Self {
        let listen = format!("127.0.0.1:{port}");
        let mut command = place.command(&["hub", "serve", "--data", "hub", "--listen", &listen]);
        command.args(more);
        let log = File::options().create(true).append(true).open(place.path("hub.log")).unwrap();
        let mut child = command.stdout(Stdio::piped()).stderr(log).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let url = line.trim().rsplit(' ').next().unwrap().to_owned();
        let port = url.rsplit(':').next().unwrap().parse();
        Self { child, port: port.unwrap_or_else(|_| panic!("the hub said {line:?}")), url }
    }

    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = (self.child.kill(), self.child.wait());
    }
}

/// Certificates of an authority and of a hub on this machine: `ca.pem`, `cert.pem` and `key.pem`
/// with a prefix.
pub fn write_certificates(place: &Workplace, prefix: &str) {
    let authority_key = KeyPair::generate().unwrap();
    let mut authority = CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    place.write(&format!("{prefix}ca.pem"), authority.self_signed(&authority_key).unwrap().pem());
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    let certificate = certificate.signed_by(&key, &Issuer::new(authority, authority_key)).unwrap();
    place.write(&format!("{prefix}cert.pem"), certificate.pem());
    place.write(&format!("{prefix}key.pem"), key.serialize_pem());
}
