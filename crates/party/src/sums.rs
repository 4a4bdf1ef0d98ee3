//! One stage's exact sums as a private file, for an auditor inside the party.

use std::fmt::Write as _;
use std::num::NonZero;
use std::path::{Path, PathBuf};

use potluck_core::stage::Stage;
use potluck_release::Study;
use potluck_release::files::{Audience, Existing, write_file};

use crate::pass::{ExtraColumns, Input};
use crate::stage::Sums;
use crate::{Error, Table};

/// Computes the exact sums of the stage that follows on `earlier`, the noised sums of the stages before it, and writes them to a file in `state` that only its owner can
/// read. Nothing is charged, because nothing is published: the file is as private as the table.
#[expect(clippy::too_many_arguments, reason = "they are independent choices of the caller")]
pub fn write_sums(
    study: &Study,
    party: &str,
    earlier: &[Vec<i64>],
    table: &Table,
    id_column: &str,
    extra: ExtraColumns,
    threads: NonZero<usize>,
    tmp: &Path,
    state: &Path,
    existing: Existing,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<PathBuf, Error> {
    let stage = study.stage(party, earlier)?.ok_or(potluck_release::Error::Stages)?;
    let names = study.definition().party(party)?.encoded_names();
    let path = state.join(format!("{party}.{}.sums.csv", stage.name));
    potluck_release::files::check_writable(&path, existing)?;
    let sums = Input::new(study, party, table, id_column, extra, threads, tmp)?.sums(&stage, progress)?;
    write_file(&path, to_csv(&stage, &names, &sums).as_bytes(), existing, Audience::Owner)?;
    Ok(path)
}

fn to_csv(stage: &Stage, names: &[String], sums: &Sums) -> String {
    let mut text = String::from("row,column,sum\n");
    for (coordinate, sum) in sums.values().iter().enumerate() {
        let (row, column) = stage.label(coordinate, names);
        let column = if column.contains(['"', ',', '\n']) {
            format!("\"{}\"", column.replace('"', "\"\""))
        } else {
            column.to_owned()
        };
        writeln!(text, "{row},{column},{sum}").expect("writing to a String does not fail");
    }
    text
}
