//! A share of a table, added up where it is by this package's own code: what a task of a cluster
//! does in a stage, in place of the query's sums.
//!
//! A [`Task`] holds nothing private: the study, which party it is, and what earlier stages
//! published. What a share comes to is as private as the table: numbers of eight bytes, which add
//! up to those of the whole table, in whatever tree. The engine still reads the ids to find
//! duplicates, and gives its own hash of every id beside the row; their sums tell that rows and ids
//! are of the same subjects (docs/PRIVACY.md#engines).

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, RecordBatch};
use potluck_core::encoding::EncodedRows;
use potluck_core::mixing::SubjectDigest;
use potluck_core::stage::{Stage, Statistic};
use potluck_release::Study;
use potluck_release::study::{Column, IdKind};
use serde::{Deserialize, Serialize};
use zeroize::{Zeroize, Zeroizing};

use super::query::{CHECKS, MODULI};
use crate::Error;
use crate::lost::Lost;
use crate::rows::Rows;
use crate::sums::Sums;
use crate::table::convert::{Converter, Ids};
use crate::table::plain;

/// What each task of a stage is told.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Task {
    /// The version of this package: another one might encode otherwise.
    version: String,
    /// The fingerprint of the query whose sums these are.
    fingerprint: String,
    study: String,
    party: String,
    /// The columns that hold the ids.
    ids: Vec<String>,
    /// The noised sums of the stages before.
    earlier: Vec<Vec<i64>>,
}

impl Task {
    pub(super) fn new(
        study: &Study,
        party: &str,
        ids: Vec<String>,
        earlier: &[Vec<i64>],
        fingerprint: &str,
    ) -> Self {
        Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            fingerprint: fingerprint.to_owned(),
            study: study.to_toml(),
            party: party.to_owned(),
            ids,
            earlier: earlier.to_vec(),
        }
    }

    /// As text, for the way there.
    pub fn to_text(&self) -> String {
        serde_json::to_string(self).expect("a task is plain data")
    }

    /// Reads what [`Self::to_text`] wrote.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let task: Self = serde_json::from_str(text).map_err(|_| wrong("the task of a stage is damaged"))?;
        if task.version == env!("CARGO_PKG_VERSION") {
            return Ok(task);
        }
        Err(wrong(&format!(
            "this is potluck {}, but the release is drawn by potluck {}; install the same version on every machine",
            env!("CARGO_PKG_VERSION"),
            task.version
        )))
    }
}

fn wrong(problem: &str) -> Error {
    Error::Table { table: "a share of the table".to_owned(), problem: problem.into() }
}

/// Rows of a share, added up while they come. No `Debug`.
pub struct Share {
    task: Task,
    study: Study,
    stage: Stage,
    encoded: EncodedRows,
    subjects: Vec<SubjectDigest>,
    counted: Counted,
    sums: Sums,
}

/// What is counted beside the sums. No `Debug`.
struct Counted {
    rows: i64,
    checks: [i64; CHECKS],
    lost: Lost,
    /// For each column whether it has values that the study refuses, and whether ids are.
    refused: Vec<bool>,
}

impl Share {
    /// A share without rows.
    pub fn new(task: Task) -> Result<Self, Error> {
        let study = Study::parse(&task.study)?;
        let stage = study.stage(&task.party, &task.earlier)?.ok_or(potluck_release::Error::Stages)?;
        let columns = study.own_party(&task.party)?.columns().len();
        Ok(Self {
            encoded: EncodedRows::default(),
            subjects: Vec::new(),
            counted: Counted {
                rows: 0,
                checks: [0; CHECKS],
                lost: Lost::none(columns),
                refused: vec![false; columns + 1],
            },
            sums: Sums::zero(&stage),
            task,
            study,
            stage,
        })
    }

    /// Adds rows: the party's columns in the study's order, those of the id, and the engine's hash
    /// of the id.
    ///
    /// Values that the study refuses do not end it: they are counted, and the whole is refused when
    /// it is known.
    pub fn add(&mut self, batch: &RecordBatch) -> Result<(), Error> {
        let party = self.study.own_party(&self.task.party)?;
        let columns = party.columns();
        if batch.num_columns() != columns.len() + self.task.ids.len() + 1 {
            return Err(wrong("has other columns than its query gives"));
        }
        let converter = Converter::new("the table", false, &self.study, columns, &self.task.ids);
        self.counted.add_rows(batch)?;
        let most = self.study.definition().table_rows(party).most();
        if self.counted.rows.cast_unsigned() > most {
            // The table is refused for its rows; more of them could overflow a sum.
            return Ok(());
        }
        let mut values = Vec::with_capacity(columns.len());
        for (i, (column, array)) in columns.iter().zip(batch.columns()).enumerate() {
            match converter.column(column, 0, array) {
                Ok(own) => values.push(own),
                Err(error) => note(error, &mut self.counted.refused[i])?,
            }
        }
        let id_arrays = &batch.columns()[columns.len()..batch.num_columns() - 1];
        let ids = match self.study.definition().id_kind() {
            IdKind::Row => positions(id_arrays).ok_or_else(|| wrong("has positions that are missing")),
            IdKind::Integer | IdKind::Text => converter.ids_in(0, id_arrays),
        };
        let ids = match ids {
            Ok(ids) => ids,
            Err(error) => return note(error, &mut self.counted.refused[columns.len()]),
        };
        if values.len() < columns.len() {
            return Ok(());
        }
        let rows = Rows { count: batch.num_rows(), columns: values };
        self.counted.lost.add(columns, &rows);
        if matches!(self.stage.statistic, Statistic::Mixed { .. }) {
            converter.subjects(&ids, &mut self.subjects);
        }
        rows.encode(&self.stage, &mut self.encoded);
        self.sums.add(&self.stage, &self.subjects, 0, &self.encoded);
        Ok(())
    }

    /// What the rows come to, as bytes that [`merged`] adds to those of other shares.
    pub fn finish(self) -> Zeroizing<Vec<u8>> {
        let Self { counted, sums, task, .. } = self;
        let mut numbers = Zeroizing::new(vec![counted.rows]);
        numbers.extend(counted.checks);
        numbers.extend(counted.lost.counts().map(u64::cast_signed));
        numbers.extend(counted.refused.iter().map(|&refused| i64::from(refused)));
        numbers.extend_from_slice(sums.values());
        packed(&task.fingerprint, &numbers)
    }
}

impl Counted {
    fn add_rows(&mut self, batch: &RecordBatch) -> Result<(), Error> {
        let hashes = batch.column(batch.num_columns() - 1);
        let hashes = hashes.as_primitive_opt::<Int64Type>().ok_or_else(|| wrong("has no hash of its ids"))?;
        for hash in hashes.iter().flatten() {
            for (check, modulus) in self.checks.iter_mut().zip(MODULI) {
                *check = check.wrapping_add(hash % modulus.cast_signed());
            }
        }
        self.rows += batch.num_rows() as i64;
        Ok(())
    }
}

/// Remembers that values are refused; other errors end the task.
fn note(error: Error, refused: &mut bool) -> Result<(), Error> {
    if !error.is_about_a_value() {
        return Err(error);
    }
    *refused = true;
    Ok(())
}

/// The only id column as positions, if none is missing.
fn positions(columns: &[arrow_array::ArrayRef]) -> Option<Ids> {
    let [column] = columns else { return None };
    let integers = plain::integers(column).filter(|integers| integers.null_count() == 0)?;
    Some(Ids::Signed(integers.values().clone()))
}

fn packed(fingerprint: &str, numbers: &[i64]) -> Zeroizing<Vec<u8>> {
    let mut bytes = Zeroizing::new(Vec::with_capacity(fingerprint.len() + 8 * numbers.len()));
    bytes.extend_from_slice(fingerprint.as_bytes());
    bytes.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
    bytes
}

/// The fingerprint and the numbers of a share.
fn unpacked(bytes: &[u8]) -> Option<(&str, impl ExactSizeIterator<Item = i64>)> {
    /// Hexadecimal digits of SHA-256.
    const FINGERPRINT: usize = 64;
    let (fingerprint, numbers) = bytes.split_at_checked(FINGERPRINT)?;
    let (numbers, rest) = numbers.as_chunks();
    let fingerprint = str::from_utf8(fingerprint).ok().filter(|_| rest.is_empty())?;
    Some((fingerprint, numbers.iter().map(|number| i64::from_le_bytes(*number))))
}

/// What several shares come to together. That they wrap around where tables are far too large does
/// no harm: such a table is refused for its rows.
pub fn merged<'a>(shares: impl IntoIterator<Item = &'a [u8]>) -> Result<Zeroizing<Vec<u8>>, Error> {
    let unlike = || {
        wrong(
            "is none of this stage: a machine runs another version of potluck, or a task of another release",
        )
    };
    let mut whole: Option<(&str, Zeroizing<Vec<i64>>)> = None;
    for share in shares {
        let (fingerprint, numbers) = unpacked(share).ok_or_else(unlike)?;
        match &mut whole {
            None => whole = Some((fingerprint, Zeroizing::new(numbers.collect()))),
            Some((known, sums)) if *known == fingerprint && sums.len() == numbers.len() => {
                sums.iter_mut().zip(numbers).for_each(|(sum, more)| *sum = sum.wrapping_add(more));
            }
            Some(_) => return Err(unlike()),
        }
    }
    let (fingerprint, numbers) = whole.ok_or_else(unlike)?;
    Ok(packed(fingerprint, &numbers))
}

/// What the shares of a whole table come to. No `Debug`; wiped when dropped.
pub(super) struct Whole {
    pub(super) rows: u64,
    pub(super) checks: [i64; CHECKS],
    pub(super) lost: Vec<u64>,
    /// For each column whether it has values that the study refuses, and at last whether ids are.
    pub(super) refused: Vec<bool>,
    pub(super) sums: Vec<i64>,
}

impl Whole {
    /// Nothing if they are not of this query.
    pub(super) fn of(share: &[u8], columns: &[Column], stage: &Stage, fingerprint: &str) -> Option<Self> {
        let (own, numbers) = unpacked(share)?;
        let (expected, width) = (1 + CHECKS + 2 * columns.len() + 1, stage.coordinates());
        if own != fingerprint || numbers.len() != expected + width {
            return None;
        }
        let mut numbers = numbers;
        let rows = u64::try_from(numbers.next()?).ok()?;
        let checks = [numbers.next()?, numbers.next()?];
        let lost = numbers.by_ref().take(columns.len()).map(u64::try_from);
        let lost = lost.collect::<Result<_, _>>().ok()?;
        let refused = numbers.by_ref().take(columns.len() + 1).map(|refused| refused != 0).collect();
        Some(Self { rows, checks, lost, refused, sums: numbers.collect() })
    }
}

impl Drop for Whole {
    fn drop(&mut self) {
        self.sums.zeroize();
    }
}
