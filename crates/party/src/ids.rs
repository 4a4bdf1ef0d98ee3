//! What a study's rules make of the ids of a party's table: for the eyes of its steward alone.
//!
//! Nothing here is charged, kept or published. Types that hold ids have no `Debug` and no
//! `Serialize`: only [`Look::to_json`] writes them out, for who asked.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

use potluck_release::study::IdKind;
use serde_json::{Value, json};

use crate::reading::Reading;
use crate::release::progress;
use crate::table::convert::Converter;
use crate::{Error, Observer};

/// What a look at ids found.
pub struct Look {
    /// The columns that make up an id.
    pub columns: Vec<String>,
    /// Rows of the table.
    pub rows: u64,
    /// Rows whose id the rules change.
    pub changed: u64,
    /// Rows without an id, or of whose id nothing is left.
    pub missing: u64,
    /// Rows with the id of an earlier row, in all and as they are written already.
    pub collisions: u64,
    /// Those of them that are the same as they are written.
    pub repeated: u64,
    /// Some ids; those that the rules change first.
    pub examples: Vec<Example>,
    /// Some ids that several rows have, with these rows.
    pub alike: Vec<Vec<Example>>,
}

/// The id of one row.
#[derive(Clone)]
pub struct Example {
    /// The row, from 1.
    pub row: u64,
    /// What stands in its columns.
    pub written: Vec<String>,
    /// What becomes of it, part by part; nothing if a part is missing.
    pub id: Option<Vec<String>>,
}

impl Example {
    fn to_json(&self) -> Value {
        json!({ "row": self.row, "written": self.written, "id": self.id })
    }

    fn is_changed(&self) -> bool {
        self.id.as_ref() != Some(&self.written)
    }
}

impl Look {
    /// All of it, for programs.
    pub fn to_json(&self) -> Value {
        let of = |examples: &[Example]| examples.iter().map(Example::to_json).collect::<Vec<_>>();
        json!({
            "columns": self.columns,
            "rows": self.rows,
            "changed": self.changed,
            "missing": self.missing,
            "collisions": self.collisions,
            "repeated": self.repeated,
            "examples": of(&self.examples),
            "alike": self.alike.iter().map(|rows| of(rows)).collect::<Vec<_>>(),
        })
    }
}

/// Reads the ids of a table twice: to count, and to find a few that collide. At most `show`
/// examples of each kind.
pub fn look(reading: &Reading<'_>, show: usize, observer: &dyn Observer) -> Result<Look, Error> {
    reading.study.own_party(reading.party)?;
    let columns = reading.access.id_columns(reading.study);
    if reading.study.definition().id_kind() == IdKind::Row {
        return Err(Error::Table {
            table: reading.table.name().to_owned(),
            problem: "has no ids to look at: the study identifies people by their position".into(),
        });
    }
    let hash = RandomState::new();
    let (mut rows, mut changed, mut missing) = (0, 0, 0);
    let (mut ids, mut written) = (Vec::new(), Vec::new());
    let (mut examples, mut others) = (Vec::new(), Vec::new());
    observer.stage("", 0);
    each(reading, &columns, observer, |example| {
        rows = example.row;
        let keep = if example.is_changed() { &mut examples } else { &mut others };
        if keep.len() < show {
            keep.push(example.clone());
        }
        match &example.id {
            None => missing += 1,
            Some(id) => {
                changed += u64::from(example.is_changed());
                ids.push(hash.hash_one(id));
                written.push(hash.hash_one(&example.written));
            }
        }
    })?;
    examples.extend(others.into_iter().take(show - examples.len()));
    let (collisions, same) = repeats(&mut ids);
    let (repeated, _) = repeats(&mut written);
    drop((ids, written));
    let mut alike: HashMap<u64, Vec<Example>> = HashMap::new();
    if !same.is_empty() {
        observer.stage("", 1);
        each(reading, &columns, observer, |example| {
            let Some(of) = example.id.as_ref().map(|id| hash.hash_one(id)) else { return };
            let known = alike.len();
            if same.binary_search(&of).is_ok() && (alike.contains_key(&of) || known < show) {
                let rows = alike.entry(of).or_default();
                if rows.len() < MOST_ALIKE {
                    rows.push(example);
                }
            }
        })?;
    }
    let mut alike: Vec<Vec<Example>> = alike.into_values().collect();
    alike.sort_by_key(|rows| rows.first().map(|example| example.row));
    Ok(Look { columns, rows, changed, missing, collisions, repeated, examples, alike })
}

/// Rows of one id that are shown.
const MOST_ALIKE: usize = 4;

/// Calls `take` with the id of every row, in order.
fn each(
    reading: &Reading<'_>,
    columns: &[String],
    observer: &dyn Observer,
    mut take: impl FnMut(Example),
) -> Result<(), Error> {
    let report = progress(observer);
    let (text, batches) = reading.table.batches(columns)?;
    let converter = Converter::new(reading.table.name(), text, reading.study, &[], columns);
    let mut first = 0;
    for batch in batches {
        let batch = batch?;
        for (at, (written, id)) in converter.ids_as_written(first, batch.columns())?.into_iter().enumerate() {
            take(Example { row: first + at as u64 + 1, written, id });
        }
        first += batch.num_rows() as u64;
        report(first)?;
    }
    Ok(())
}

/// How many of these repeat an earlier one, and which do, in order; sorts them.
fn repeats(hashes: &mut [u64]) -> (u64, Vec<u64>) {
    hashes.sort_unstable();
    let again = hashes.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0]);
    let mut same: Vec<u64> = again.collect();
    let count = same.len() as u64;
    same.dedup();
    (count, same)
}
