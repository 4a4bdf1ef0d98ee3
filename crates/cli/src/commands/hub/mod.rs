//! `potluck hub`.

mod get;
mod serve;
mod study;

use std::env;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use potluck_client::{Hub, HubAddress, Options, Token};

use super::Settings;
use crate::args::hub::{ConnectionArguments, CoordinatorArguments, HubCommand};
use crate::exit::WrongUsage;

pub(super) fn run(command: HubCommand, settings: &Settings<'_>) -> Result<()> {
    match command {
        HubCommand::Serve(arguments) => serve::serve(arguments, settings),
        HubCommand::Coordinator(command) => serve::coordinator(&command, settings),
        HubCommand::Backup { data, out } => serve::back_up(&data.data, &out, settings),
        HubCommand::Study(command) => study::run(&command, settings),
        HubCommand::Get(arguments) => get::run(&arguments, settings),
    }
}

/// How to reach a hub, as people said it now or earlier.
pub(super) struct Connection {
    pub(super) ca_cert: Option<PathBuf>,
    pub(super) insecure_http: bool,
    pub(super) patience: Duration,
}

impl From<&ConnectionArguments> for Connection {
    fn from(arguments: &ConnectionArguments) -> Self {
        Self {
            ca_cert: arguments.ca_cert.clone(),
            insecure_http: arguments.insecure_http,
            patience: Duration::from_secs(arguments.retry_for),
        }
    }
}

impl Connection {
    /// A hub that tells of its pauses. Nothing is sent yet.
    pub(super) fn to(
        self,
        address: &HubAddress,
        token: Option<Token>,
        settings: &Settings<'_>,
    ) -> Result<Hub> {
        let printer = settings.printer.clone();
        let options = Options {
            ca_certificate: self.ca_cert,
            token,
            insecure_http: self.insecure_http,
            patience: self.patience,
            on_retry: Some(Box::new(move |error, pause| {
                printer.note(&format!("{error}\ntrying again in {:.1} s", pause.as_secs_f64()));
            })),
            ..Options::default()
        };
        Ok(Hub::new(address, options)?)
    }
}

/// The secret in an environment variable.
pub(super) fn token_in_environment(name: &str) -> Result<Option<Token>> {
    match env::var(name) {
        Ok(text) if !text.trim().is_empty() => Ok(Some(Token::new(&text)?)),
        _ => Ok(None),
    }
}

/// The coordinator's secret.
fn coordinator(arguments: &CoordinatorArguments) -> Result<Token> {
    if let Some(path) = &arguments.token_file {
        return Ok(Token::load(path)?);
    }
    token_in_environment("POTLUCK_HUB_TOKEN")?.ok_or_else(|| {
        let message = "a coordinator's token is needed: give --token-file, or set POTLUCK_HUB_TOKEN; whoever runs the hub makes one with `potluck hub coordinator add`";
        WrongUsage(message.to_owned()).into()
    })
}
