//! Writing whole files so that a reader sees either nothing or everything.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
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
/// The temporary name is fixed, so that a second run after a crash overwrites what the first one
/// left.
#[must_use = "the file appears under its name only when it is published"]
pub struct PendingFile {
    temporary: PathBuf,
    path: PathBuf,
}

impl PendingFile {
    /// Writes and syncs the bytes under the temporary name.
    pub fn write(path: &Path, bytes: &[u8], existing: Existing, audience: Audience) -> Result<Self, Error> {
        let write = |file: &mut File| file.write_all(bytes).map_err(|error| Error::write(path, error));
        Self::fill(path, existing, audience, write).map(|(pending, ())| pending)
    }

    /// Writes and syncs what `fill` gives under the temporary name; nothing stays if it fails.
    pub fn fill<T, E: From<Error>>(
        path: &Path,
        existing: Existing,
        audience: Audience,
        fill: impl FnOnce(&mut File) -> Result<T, E>,
    ) -> Result<(Self, T), E> {
        check_writable(path, existing)?;
        let pending = Self::new(path);
        let filled = pending.create(audience).map_err(|error| Error::write(path, error).into()).and_then(
            |mut file| {
                let value = fill(&mut file)?;
                file.sync_all().map_err(|error| Error::write(path, error))?;
                Ok(value)
            },
        );
        match filled {
            Ok(value) => Ok((pending, value)),
            Err(error) => {
                pending.discard();
                Err(error)
            }
        }
    }

    fn new(path: &Path) -> Self {
        let mut name = OsString::from(".");
        name.push(path.file_name().unwrap_or_default());
        name.push(".partial");
        Self { temporary: path.with_file_name(name), path: path.to_owned() }
    }

    fn create(&self, audience: Audience) -> io::Result<File> {
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
        options.open(&self.temporary)
    }

    /// Where it is until it is published.
    pub fn temporary(&self) -> &Path {
        &self.temporary
    }

    /// Removes it.
    pub fn discard(&self) {
        // Nothing to discard is the usual case, and a failure shows when the file is created.
        let _ = fs::remove_file(&self.temporary);
    }

    /// Gives the file its name.
    pub fn publish(self) -> Result<(), Error> {
        let renamed = fs::rename(&self.temporary, &self.path).and_then(|()| sync_folder(&self.path));
        renamed.map_err(|error| Error::write(&self.path, error))
    }
}

/// Refuses early, before anything is computed or charged, what [`PendingFile::fill`] would refuse
/// later.
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
    let tried = trial.create(Audience::Owner).map_err(|error| Error::write(path, error));
    trial.discard();
    tried.map(|_| ())
}

/// Refuses to write over something that is read, even where files may be replaced.
pub fn refuse_same_file(out: &Path, inputs: &[&Path]) -> Result<(), Error> {
    let same = inputs.iter().any(|input| is_same_file(out, input));
    if same { Err(Error::SameFile { path: out.to_owned() }) } else { Ok(()) }
}

/// Whether two paths lead to one file that is there.
pub fn is_same_file(one: &Path, other: &Path) -> bool {
    matches!((one.canonicalize(), other.canonicalize()), (Ok(one), Ok(other)) if one == other)
}

/// Writes a whole file: complete on disk first, then under its name.
pub fn write_file(path: &Path, bytes: &[u8], existing: Existing, audience: Audience) -> Result<(), Error> {
    PendingFile::write(path, bytes, existing, audience)?.publish()
}

/// What `fill` gives, if the file is there and holds just the bytes that `fill` writes.
pub(crate) fn holding<T, E>(
    path: &Path,
    fill: impl FnOnce(&mut Comparison) -> Result<T, E>,
) -> Result<Option<T>, E> {
    let Ok(present) = File::open(path) else { return Ok(None) };
    let mut comparison = Comparison { present: BufReader::new(present), differs: false };
    let filled = fill(&mut comparison);
    if comparison.differs {
        // An error is how the comparison ended.
        return Ok(None);
    }
    let value = filled?;
    Ok(comparison.present.fill_buf().is_ok_and(<[u8]>::is_empty).then_some(value))
}

/// Compares what is written with a file, and fails at the first difference.
pub(crate) struct Comparison {
    present: BufReader<File>,
    differs: bool,
}

impl Write for Comparison {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let present = self.present.fill_buf().unwrap_or_default();
        let length = present.len().min(bytes.len());
        self.differs |= present[..length] != bytes[..length] || (present.is_empty() && !bytes.is_empty());
        if self.differs {
            return Err(io::Error::other("the file holds something else"));
        }
        self.present.consume(length);
        Ok(length)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
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

    #[test]
    fn a_file_that_could_not_be_filled_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let fill = |file: &mut File| -> Result<(), Error> {
            file.write_all(b"half").unwrap();
            Err(Error::NotSealed)
        };
        assert!(PendingFile::fill(&path, Existing::Keep, Audience::Public, fill).is_err());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_file_is_compared_with_what_would_be_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let long = vec![7; 100_000];
        let holds = |bytes: &[u8]| holding(&path, |sink| sink.write_all(bytes)).unwrap().is_some();
        assert!(!holds(b""), "there is no file");
        fs::write(&path, &long).unwrap();
        assert!(holds(&long));
        assert!(!holds(&long[1..]) && !holds(&[long.as_slice(), b"x"].concat()) && !holds(b""));
        let mut changed = long;
        changed[99_999] = 8;
        assert!(!holds(&changed));
        fs::write(&path, b"").unwrap();
        assert!(holds(b"") && !holds(b"x"));
        let failed = holding(&path, |_| Err::<(), _>(Error::NotSealed));
        assert!(matches!(failed, Err(Error::NotSealed)));
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
