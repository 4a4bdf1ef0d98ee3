//! `potluck hub …`.

mod serve;

use anyhow::Result;

use super::Settings;
use crate::args::HubCommand;

pub(super) fn run(command: HubCommand, settings: &Settings<'_>) -> Result<()> {
    match command {
        HubCommand::Serve(arguments) => serve::serve(arguments, settings),
        HubCommand::Coordinator(command) => serve::coordinator(&command, settings),
        HubCommand::Backup { data, out } => serve::back_up(&data.data, &out, settings),
    }
}
