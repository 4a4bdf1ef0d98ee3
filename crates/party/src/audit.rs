//! One stage's exact sums as a private file, for an auditor inside the party.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use potluck_core::stage::Stage;
use potluck_release::files::{Audience, Existing, PendingFile, check_writable};

use crate::pass::Input;
use crate::reading::Reading;
use crate::release::progress;
use crate::sums::keeps_rows;
use crate::{Error, Observer};

/// Computes the exact sums of the stage that follows on `earlier`, the noised sums of the stages
/// before it, and writes them to a file in `state` that only its owner can read. Nothing is
/// charged, because nothing is published: the file is as private as the table.
pub fn write(
    reading: &Reading<'_>,
    earlier: &[Vec<i64>],
    state: &Path,
    existing: Existing,
    observer: &dyn Observer,
) -> Result<PathBuf, Error> {
    let Reading { study, party, .. } = *reading;
    let stage = study.stage(party, earlier)?.ok_or(potluck_release::Error::Stages)?;
    let names = study.own_party(party)?.published_names();
    let path = state.join(format!("{party}.{}.sums.csv", stage.name));
    check_writable(&path, existing)?;
    let input = Input::new(reading)?;
    let progress = progress(observer);
    let failed = |source| potluck_release::Error::Write { path: path.clone(), source };
    let sums = if keeps_rows(&stage) { None } else { Some(input.sums(&stage, &progress)?) };
    let write = |file: &mut _| -> Result<(), Error> {
        let mut lines = Lines { stage: &stage, names: &names, file: BufWriter::new(file), next: 0 };
        lines.file.write_all(b"row,column,sum\n").map_err(failed)?;
        match &sums {
            Some(sums) => lines.add(sums.values()).map_err(failed)?,
            // Every sum is a value of one row.
            None => input.in_order(&stage, &mut |encoded| {
                lines.add(encoded).map_err(failed)?;
                progress((lines.next / stage.encoder.width()) as u64)
            })?,
        }
        Ok(lines.file.flush().map_err(failed)?)
    };
    let (pending, ()) = PendingFile::fill(&path, existing, Audience::Owner, write)?;
    pending.publish()?;
    Ok(path)
}

/// The lines of the file, one a sum.
struct Lines<'a, W> {
    stage: &'a Stage,
    names: &'a [String],
    file: W,
    /// The coordinate of the next sum.
    next: usize,
}

impl<W: Write> Lines<'_, W> {
    fn add<T: Copy + Into<i64>>(&mut self, sums: &[T]) -> io::Result<()> {
        for &sum in sums {
            let (row, column) = self.stage.label(self.next, self.names);
            let sum: i64 = sum.into();
            if column.contains(['"', ',', '\n']) {
                writeln!(self.file, "{row},\"{}\",{sum}", column.replace('"', "\"\""))?;
            } else {
                writeln!(self.file, "{row},{column},{sum}")?;
            }
            self.next += 1;
        }
        Ok(())
    }
}
