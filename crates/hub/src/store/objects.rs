//! Published files, each under the SHA-256 of its bytes, and uploads on their way to become one.
//!
//! ```text
//! objects/ab/cdef…           a published file
//! incoming/STUDY-N-SHA.part  what has arrived of the release of party number N
//! ```

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use sha2::{Digest, Sha256};

use crate::Error;

/// Uploads that nobody went on with for so long are removed.
const ABANDONED: Duration = Duration::from_secs(7 * 24 * 3600);

pub(super) struct Objects {
    folder: PathBuf,
}

impl Objects {
    pub(super) fn open(data: &Path) -> Result<Self, Error> {
        let objects = Self { folder: data.to_owned() };
        for folder in [objects.published(), objects.incoming()] {
            fs::create_dir_all(&folder).map_err(Error::file(&folder))?;
        }
        Ok(objects)
    }

    fn published(&self) -> PathBuf {
        self.folder.join("objects")
    }

    /// Where files are put together before they are published.
    pub(super) fn incoming(&self) -> PathBuf {
        self.folder.join("incoming")
    }

    /// The place of the published file with this hash. The hash is one of ours: hexadecimal digits.
    pub(super) fn path(&self, sha256: &str) -> PathBuf {
        let (group, rest) = sha256.split_at(2);
        self.published().join(group).join(rest)
    }

    /// Moves a file that is complete and synced to its place. It may be there already.
    pub(super) fn keep(&self, file: &Path, sha256: &str) -> Result<(), Error> {
        let path = self.path(sha256);
        let group = path.parent().expect("an object lies in a group");
        fs::create_dir_all(group).map_err(Error::file(group))?;
        fs::rename(file, &path).map_err(Error::file(&path))?;
        for folder in [group, &self.published()] {
            File::open(folder).and_then(|folder| folder.sync_all()).map_err(Error::file(folder))?;
        }
        Ok(())
    }

    /// Removes uploads that nobody went on with.
    pub(super) fn remove_abandoned(&self) -> Result<(), Error> {
        let folder = self.incoming();
        for entry in fs::read_dir(&folder).map_err(Error::file(&folder))?.flatten() {
            let age = entry.metadata().and_then(|metadata| metadata.modified()).ok();
            let age = age.and_then(|changed| SystemTime::now().duration_since(changed).ok());
            if age.is_some_and(|age| age > ABANDONED) {
                fs::remove_file(entry.path()).map_err(Error::file(&entry.path()))?;
            }
        }
        Ok(())
    }
}

/// SHA-256 of a file's bytes in hexadecimal, and its length.
pub(crate) fn sha256_of(path: &Path) -> io::Result<(String, u64)> {
    let mut file = File::open(path)?;
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 1 << 17];
    let mut size = 0;
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok((hex::encode(hash.finalize()), size)),
            read => {
                hash.update(&buffer[..read]);
                size += read as u64;
            }
        }
    }
}
