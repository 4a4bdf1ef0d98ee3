//! The hub's certificate: read at the start, and again when its files change or SIGHUP says so.

use std::path::Path;
use std::time::Duration;

use axum_server::tls_rustls::RustlsConfig;
use sha2::{Digest, Sha256};
use tokio::fs;
use tokio::signal::unix::Signal;
use tokio::time::{MissedTickBehavior, interval};

use crate::Error;
use crate::config::Tls;

/// How often the files are looked at. They are small, and whoever renews a certificate does so
/// weeks ahead.
const LOOK_EVERY: Duration = Duration::from_secs(10);

/// A certificate in use, and which files it came from.
pub(crate) struct Certificate {
    files: Tls,
    pub(crate) config: RustlsConfig,
    /// Of the files as they were last tried, good or bad, so that each is reported once.
    tried: Option<Fingerprint>,
}

type Fingerprint = [u8; 32];

impl Certificate {
    /// Reads certificate and key; without a good pair the hub does not start.
    pub(crate) async fn load(files: &Tls) -> Result<Self, Error> {
        // Somebody else in this process may have chosen the same one before.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let (certificate, key) = read(files).await?;
        let tried = Some(fingerprint(&certificate, &key));
        let config =
            RustlsConfig::from_pem(certificate, key).await.map_err(|error| unusable(files, &error))?;
        Ok(Self { files: files.clone(), config, tried })
    }

    /// Goes on for as long as the hub runs. A pair that cannot be used is reported, and the one
    /// before stays in use; connections that are open keep theirs.
    pub(crate) async fn keep_current(mut self, mut hangup: Signal) {
        let mut ticks = interval(LOOK_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let told = tokio::select! {
                _ = hangup.recv() => true,
                _ = ticks.tick() => false,
            };
            self.look(told).await;
        }
    }

    async fn look(&mut self, told: bool) {
        let pair = read(&self.files).await;
        let now = pair.as_ref().ok().map(|(certificate, key)| fingerprint(certificate, key));
        if now == self.tried && !told {
            return;
        }
        self.tried = now;
        let reloaded = match pair {
            Ok((certificate, key)) => self
                .config
                .reload_from_pem(certificate, key)
                .await
                .map_err(|error| unusable(&self.files, &error)),
            Err(error) => Err(error),
        };
        match reloaded {
            Ok(()) => {
                tracing::info!(certificate = %self.files.certificate.display(), "the certificate was read again");
            }
            Err(error) => tracing::error!(%error, "the certificate before stays in use"),
        }
    }
}

async fn read(files: &Tls) -> Result<(Vec<u8>, Vec<u8>), Error> {
    let one = async |path: &Path| fs::read(path).await.map_err(|error| unusable(files, &error));
    Ok((one(&files.certificate).await?, one(&files.key).await?))
}

fn fingerprint(certificate: &[u8], key: &[u8]) -> Fingerprint {
    let mut both = Sha256::new();
    both.update(Sha256::digest(certificate));
    both.update(Sha256::digest(key));
    both.finalize().into()
}

fn unusable(files: &Tls, error: &std::io::Error) -> Error {
    Error::Tls(format!(
        "cannot use {} with {}: {error}; give a certificate chain and its private key, both in PEM form",
        files.certificate.display(),
        files.key.display()
    ))
}
