//! The command as an archive to unpack anywhere.

use super::command::{prefix, try_in};
use super::{commit_time, folder, fresh, host, version};
use crate::programs::call_in;

fn name() -> Result<String, String> {
    Ok(format!("potluck-{}-{}", version(), host()?))
}

pub(super) fn build() -> Result<(), String> {
    let name = name()?;
    let archive = folder().join(format!("{name}.tar.gz"));
    let time = format!("--mtime=@{}", commit_time()?);
    let rename = format!("--transform=s,^\\.,{name},");
    let file = archive.to_string_lossy();
    // The same order, owners and times, so that two archives of one commit are the same bytes.
    let options = ["--sort=name", "--owner=0", "--group=0", "--numeric-owner", &time, &rename];
    let all = [&["--create", "--gzip", "--file", &file][..], &options, &["."]].concat();
    call_in(&prefix(), "tar", &all)
}

pub(super) fn try_it() -> Result<(), String> {
    let place = fresh("try-archive")?;
    let name = name()?;
    let archive = folder().join(format!("{name}.tar.gz"));
    call_in(&place, "tar", &["--extract", "--file", &archive.to_string_lossy()])?;
    let seen = place.to_string_lossy();
    try_in(&[], &place, &seen, &format!("{seen}/{name}/bin"))
}
