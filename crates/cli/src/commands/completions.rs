//! `potluck completions`.

use anyhow::Result;
use clap::CommandFactory;
use clap_complete::{Shell, generate};

use super::Settings;
use crate::args::Arguments;

pub(super) fn run(shell: Shell, settings: &Settings<'_>) -> Result<()> {
    let mut script = Vec::new();
    generate(shell, &mut Arguments::command(), "potluck", &mut script);
    settings.printer.data(&String::from_utf8_lossy(&script))
}
