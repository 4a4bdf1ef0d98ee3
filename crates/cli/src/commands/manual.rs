//! `potluck manual`.

use std::fs;
use std::path::Path;

use anyhow::Result;
use clap::{Command, CommandFactory};
use clap_mangen::Man;
use potluck_release::Error;
use potluck_release::files::{Audience, check_writable, write_file};

use super::Settings;
use crate::args::Arguments;

pub(super) fn run(folder: &Path, settings: &Settings<'_>) -> Result<()> {
    fs::create_dir_all(folder).map_err(|source| Error::Write { path: folder.to_owned(), source })?;
    let mut command = Arguments::command().disable_help_subcommand(true);
    command.build();
    let mut pages = Vec::new();
    add_pages(&command, "potluck", &mut pages)?;
    for (name, _) in &pages {
        check_writable(&folder.join(name), settings.existing)?;
    }
    for (name, text) in &pages {
        write_file(&folder.join(name), text, settings.existing, Audience::Public)?;
    }
    settings.printer.note(&format!("{} pages in {}", pages.len(), folder.display()));
    Ok(())
}

/// The page of a command and those of the commands below it: `potluck-study-seal.1`.
fn add_pages(command: &Command, name: &str, pages: &mut Vec<(String, Vec<u8>)>) -> Result<()> {
    let mut text = Vec::new();
    let page = command.clone().display_name(name.to_owned());
    Man::new(page).title(name).manual("potluck").render(&mut text)?;
    pages.push((format!("{name}.1"), text));
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        add_pages(below, &format!("{name}-{}", below.get_name()), pages)?;
    }
    Ok(())
}
