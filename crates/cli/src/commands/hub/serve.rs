//! `potluck hub serve|coordinator|backup`: what needs the hub's own folder.

use std::path::Path;

use anyhow::Result;
use potluck_hub::config::Options;
use potluck_hub::{Config, Store};
use serde_json::{Value, json};

use crate::args::hub::{CoordinatorCommand, HubServe};
use crate::commands::Settings;
use crate::output::{counted, table};

pub(super) fn serve(arguments: HubServe, settings: &Settings<'_>) -> Result<()> {
    let file = arguments.config.as_deref().map(Options::load).transpose()?.unwrap_or_default();
    let given = Options {
        listen: arguments.listen,
        data: arguments.data,
        tls_cert: arguments.tls_cert,
        tls_key: arguments.tls_key,
        allow_plain_http: arguments.allow_plain_http,
        public_url: arguments.public_url,
        name: arguments.name,
        requests_per_minute: arguments.requests_per_minute,
        trusted_proxy: arguments.trusted_proxy,
        client_timeout: arguments.client_timeout,
        connections: arguments.connections,
    };
    let config = Config::new(given.or(file))?;
    potluck_hub::log_to_stderr(settings.printer.is_json());
    potluck_hub::serve(config, |address| {
        // Whoever started the hub and closed its output does not want to know.
        let _ =
            settings.printer.result(&json!({ "listening": address }), || format!("listening on {address}\n"));
    })?;
    Ok(())
}

pub(super) fn coordinator(command: &CoordinatorCommand, settings: &Settings<'_>) -> Result<()> {
    match command {
        CoordinatorCommand::Add { name, data, replace } => {
            let token = Store::open(&data.data)?.add_coordinator(name, *replace)?;
            settings.printer.note("Keep this token secret; it is not shown again. It goes into POTLUCK_HUB_TOKEN or a file for --token-file.");
            let value = json!({ "coordinator": name, "token": token.reveal() });
            settings.printer.result(&value, || format!("{}\n", token.reveal()))
        }
        CoordinatorCommand::List { data } => {
            let all = Store::open(&data.data)?.coordinators()?;
            let value: Vec<Value> = all
                .iter()
                .map(|(name, studies)| json!({ "coordinator": name, "studies": studies }))
                .collect();
            settings.printer.result(&value, || {
                if all.is_empty() {
                    return "no coordinator yet; add one with `potluck hub coordinator add`\n".to_owned();
                }
                let rows: Vec<Vec<String>> =
                    all.iter().map(|(name, studies)| vec![name.clone(), studies.to_string()]).collect();
                table(&["coordinator", "studies"], &rows)
            })
        }
        CoordinatorCommand::Remove { name, data } => {
            let studies = Store::open(&data.data)?.remove_coordinator(name)?;
            settings.printer.result(&json!({ "removed": name, "studies": studies }), || {
                let left = match studies {
                    0 => String::new(),
                    some => format!(
                        "; {} as before, and nobody can invite parties to them anew",
                        counted(some as usize, "study stays", "studies stay")
                    ),
                };
                format!("removed {name}: the token and all sessions are void{left}\n")
            })
        }
    }
}

pub(super) fn back_up(data: &Path, out: &Path, settings: &Settings<'_>) -> Result<()> {
    potluck_hub::store::back_up(data, out)?;
    settings.printer.result(&json!({ "backup": out.display().to_string() }), || {
        format!("backed up to {}\n", out.display())
    })
}
