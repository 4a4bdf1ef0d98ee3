//! A Debian package of the command, with the hub's systemd unit.

use std::fs;

use super::command::{prefix, try_in};
use super::{commit_time, folder, fresh, version, write};
use crate::programs::{call_in, output, root};

const COPYRIGHT: &str = "\
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: potluck

Files: *
Copyright: 2026 The potluck authors
License: MIT or Apache-2.0
 The licences are in /usr/share/doc/potluck/LICENSE-MIT and
 /usr/share/common-licenses/Apache-2.0. The licences of everything that the
 command is built from are in the bill of materials published with it.
";

fn architecture() -> Result<String, String> {
    Ok(output("dpkg", &["--print-architecture"], &root())?.trim().to_owned())
}

fn file_name() -> Result<String, String> {
    Ok(format!("potluck_{}_{}.deb", version(), architecture()?))
}

/// The newest version of the C library that the command asks for.
fn c_library() -> Result<String, String> {
    let find = "objdump -T bin/potluck | grep -o 'GLIBC_[0-9.]*' | sort -Vu | tail -n 1";
    let newest = output("sh", &["-c", find], &prefix())?;
    let version = newest.trim().strip_prefix("GLIBC_");
    version.map(str::to_owned).ok_or_else(|| "the command asks for no C library".to_owned())
}

pub(super) fn build() -> Result<(), String> {
    let tree = fresh("debian")?;
    let usr = tree.join("usr");
    call_in(&tree, "cp", &["--recursive", &prefix().to_string_lossy(), "usr"])?;
    call_in(&usr, "sh", &["-c", "gzip --best --no-name share/man/man1/*.1 share/doc/potluck/CHANGELOG.md"])?;
    // Debian has this licence once for all.
    fs::remove_file(usr.join("share/doc/potluck/LICENSE-APACHE")).map_err(|error| error.to_string())?;
    write(&usr.join("share/doc/potluck/copyright"), COPYRIGHT)?;
    let unit = root().join("deploy/potluck-hub.service");
    let unit = fs::read_to_string(&unit).map_err(|error| format!("{}: {error}", unit.display()))?;
    let unit = unit.replace("/usr/local/bin/potluck", "/usr/bin/potluck");
    write(&usr.join("lib/systemd/system/potluck-hub.service"), &unit)?;

    let size = output("du", &["--summarize", "--block-size=1024", "usr"], &tree)?;
    let size = size.split_whitespace().next().unwrap_or("0").to_owned();
    let control = format!(
        "\
Package: potluck
Version: {}
Architecture: {}
Maintainer: The potluck authors <maintainers@potluck.example>
Installed-Size: {size}
Depends: libc6 (>= {}), libgcc-s1
Section: science
Priority: optional
Description: differentially private data release for linear regression
 Organisations that hold different columns about the same people each publish,
 on their own and once, a differentially private, randomly mixed version of
 their columns. Anyone can join what was published and fit regressions.
 .
 The package has the command, which is also the hub where parties meet, and a
 systemd unit for a hub (potluck-hub.service, not enabled).
",
        version(),
        architecture()?,
        c_library()?,
    );
    write(&tree.join("DEBIAN/control"), &control)?;
    let sums = "find usr -type f | sort | xargs md5sum > DEBIAN/md5sums";
    call_in(&tree, "sh", &["-c", sums])?;
    call_in(&tree, "chmod", &["--recursive", "u=rwX,go=rX", "."])?;

    let package = folder().join(file_name()?);
    let time = format!("SOURCE_DATE_EPOCH={}", commit_time()?);
    let tree = tree.to_string_lossy();
    let build = ["dpkg-deb", "--root-owner-group", "--build", &tree, &package.to_string_lossy()];
    call_in(&folder(), "env", &[&[time.as_str()][..], &build].concat())
}

/// Installs it into a fresh root that has nothing but Debian's smallest system, tries it, and takes
/// it away again.
pub(super) fn try_it() -> Result<(), String> {
    let place = fresh("try-debian")?;
    let system = place.join("root");
    let seen = system.to_string_lossy();
    let release = output("sh", &["-c", ". /etc/os-release && echo $VERSION_CODENAME"], &place)?;
    // Where this system gets its packages from is known to work.
    let make = ["--variant=minbase", "--quiet", release.trim(), &seen];
    call_in(&place, "mmdebstrap", &make)?;
    call_in(&place, "cp", &[&folder().join(file_name()?).to_string_lossy(), "root/potluck.deb"])?;
    call_in(&place, "chroot", &[&seen, "dpkg", "--install", "/potluck.deb"])?;
    call_in(&place, "chroot", &[&seen, "dpkg", "--verify", "potluck"])?;
    call_in(&place, "mkdir", &["root/trial"])?;
    try_in(&["chroot", &seen], &system.join("trial"), "/trial", "/usr/bin")?;
    call_in(&place, "chroot", &[&seen, "dpkg", "--purge", "potluck"])?;
    if system.join("usr/bin/potluck").exists() {
        return Err("the package leaves its command behind".to_owned());
    }
    Ok(())
}
