//! `potluck key new`.

use anyhow::Result;
use potluck_party::entropy;
use serde_json::json;

use super::Settings;
use crate::args::KeyCommand;

pub(super) fn run(command: &KeyCommand, settings: &Settings<'_>) -> Result<()> {
    let KeyCommand::New { out } = command;
    let key = entropy::new_signing_key()?;
    let public = key.save_pair(out, settings.existing)?;
    let value = json!({ "private": out.display().to_string(), "public": public.display().to_string(), "public_key": key.public().to_string() });
    settings.printer.result(&value, || {
        format!(
            "private key: {} (keep it secret)\npublic key:  {} (give it to whoever verifies)\n{}\n",
            out.display(),
            public.display(),
            key.public()
        )
    })
}
