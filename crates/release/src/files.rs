//! Writing whole files so that a reader sees either nothing or everything.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::Error;

/// What to do when the file is there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// Leave it alone and report an error.
    Keep,
    /// Replace it.
    Replace,
}

/// Who may read the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audience {
    /// Anyone: it is, or may be, published.
    Public,
    /// Only its owner (mode 0600).
    Owner,
}

/// A file that is complete on disk under a temporary name beside its final one.
///
/// The temporary name is fixed, so that a second run after a crash overwrites what the first one left.
#[must_use = "the file appears under its name only when it is published"]
pub struct PendingFile {
    temporary: PathBuf,
    path: PathBuf,
}

impl PendingFile {
    /// Writes and syncs the bytes under the temporary name.
    pub fn write(path: &Path, bytes: &[u8], existing: Existing, audience: Audience) -> Result<Self, Error> {
        check_writable(path, existing)?;
        let pending = Self::new(path);
        pending.fill(bytes, audience).map_err(|error| {
            pending.discard();
            Error::write(path, error)
        })?;
        Ok(pending)
    }

    fn new(path: &Path) -> Self {
        let mut name = OsString::from(".");
        name.push(path.file_name().unwrap_or_default());
        name.push(".partial");
        Self { temporary: path.with_file_name(name), path: path.to_owned() }
    }

    fn fill(&self, bytes: &[u8], audience: Audience) -> io::Result<()> {
        self.discard();
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        if audience == Audience::Owner {
            use std::os::unix::fs::OpenOptionsExt;
            options.mode(0o600);
        }
        #[cfg(not(unix))]
        let _ = audience;
        let mut file = options.open(&self.temporary)?;
        file.write_all(bytes)?;
        file.sync_all()
    }

    fn discard(&self) {
        // Nothing to discard is the usual case, and a failure shows when the file is created.
        let _ = fs::remove_file(&self.temporary);
    }

    /// Gives the file its name.
    pub fn publish(self) -> Result<(), Error> {
        let renamed = fs::rename(&self.temporary, &self.path).and_then(|()| sync_folder(&self.path));
        renamed.map_err(|error| Error::write(&self.path, error))
    }
}

/// Refuses early, before anything is computed or charged, what [`PendingFile::write`] would refuse later.
pub fn check_writable(path: &Path, existing: Existing) -> Result<(), Error> {
    if path.file_name().is_none() || path.is_dir() {
        return Err(Error::write(path, io::Error::new(io::ErrorKind::InvalidInput, "it is a folder")));
    }
    if existing == Existing::Keep && path.exists() {
        return Err(Error::Exists { path: path.to_owned() });
    }
    let folder = folder(path);
    if !folder.is_dir() {
        let missing = io::Error::new(io::ErrorKind::NotFound, "its folder does not exist");
        return Err(Error::write(path, missing));
    }
    let trial = PendingFile::new(path);
    let tried = trial.fill(&[], Audience::Owner).map_err(|error| Error::write(path, error));
    trial.discard();
    tried
}

/// Writes a whole file: complete on disk first, then under its name.
pub fn write_file(path: &Path, bytes: &[u8], existing: Existing, audience: Audience) -> Result<(), Error> {
    PendingFile::write(path, bytes, existing, audience)?.publish()
}

fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    }
}

/// Makes the rename itself durable.
fn sync_folder(path: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(folder(path))?.sync_all() } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_appears_whole_and_is_not_replaced_unasked() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let pending = PendingFile::write(&path, b"one", Existing::Keep, Audience::Public).unwrap();
        assert!(!path.exists());
        pending.publish().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"one");
        assert!(write_file(&path, b"two", Existing::Keep, Audience::Public).is_err());
        assert_eq!(fs::read(&path).unwrap(), b"one");
        write_file(&path, b"two", Existing::Replace, Audience::Public).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no temporary file stays");
    }

    #[test]
    fn what_a_crash_left_behind_is_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let _abandoned = PendingFile::write(&path, b"half", Existing::Keep, Audience::Public).unwrap();
        write_file(&path, b"whole", Existing::Keep, Audience::Public).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"whole");
    }

    #[cfg(unix)]
    #[test]
    fn private_files_are_for_their_owner_only() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secret");
        write_file(&path, b"x", Existing::Keep, Audience::Owner).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn folders_that_do_not_exist_are_reported() {
        let folder = tempfile::tempdir().unwrap();
        let error = check_writable(&folder.path().join("no/such"), Existing::Keep).unwrap_err();
        assert!(error.to_string().contains("folder does not exist"), "{error}");
        assert!(check_writable(folder.path(), Existing::Replace).is_err());
    }
}
