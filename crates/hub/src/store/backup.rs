//! Copies of everything that a hub holds.

use std::fs::{self, File};
use std::path::Path;

use rusqlite::{Connection, OpenFlags};

use super::objects::{Objects, sha256_of};
use super::{make_private, schema};
use crate::Error;

/// Copies everything that the hub in `data` holds to a new folder, consistent while the hub runs.
/// Every file is checked against its hash on the way, and the folder has its name only when it is
/// complete.
pub fn back_up(data: &Path, folder: &Path) -> Result<(), Error> {
    let source = data.join(schema::DATABASE);
    if !source.exists() {
        return Err(Error::Config(format!(
            "{} holds no hub; name its data folder with --data",
            data.display()
        )));
    }
    if folder.exists() {
        return Err(Error::Config(format!("{} exists already; choose a new folder", folder.display())));
    }
    let unfinished = folder.with_extension("unfinished");
    if unfinished.exists() {
        fs::remove_dir_all(&unfinished).map_err(Error::file(&unfinished))?;
    }
    make_private(&unfinished)?;
    // First the database: files that are added later are not named in it, and files are never
    // removed.
    let database = unfinished.join(schema::DATABASE);
    let original = Connection::open_with_flags(&source, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    original.busy_timeout(schema::BUSY)?;
    original.execute("VACUUM INTO ?1", [database.to_string_lossy()])?;
    let copied = Connection::open_with_flags(&database, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    let mut query = copied
        .prepare("SELECT sha256 FROM party WHERE sha256 IS NOT NULL UNION SELECT sha256 FROM dataset")?;
    let hashes = query.query_map([], |row| row.get::<_, String>(0))?.collect::<Result<Vec<_>, _>>()?;
    let (objects, copies) = (Objects::open(data)?, Objects::open(&unfinished)?);
    for hash in hashes {
        let path = copies.incoming().join(&hash);
        fs::copy(objects.path(&hash), &path).map_err(Error::file(&objects.path(&hash)))?;
        let (found, _) = sha256_of(&path).map_err(Error::file(&path))?;
        if found != hash {
            return Err(Error::damaged(format!(
                "{} is not what its name says",
                objects.path(&hash).display()
            )));
        }
        File::open(&path).and_then(|file| file.sync_all()).map_err(Error::file(&path))?;
        copies.keep(&path, &hash)?;
    }
    File::open(&database).and_then(|file| file.sync_all()).map_err(Error::file(&database))?;
    fs::rename(&unfinished, folder).map_err(Error::file(folder))
}
