//! A made-up health survey of any length as a Parquet file such as pyarrow would write, and the
//! studies that read it.

use std::fs::{self, File};
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use arrow_array::{ArrayRef, Float64Array, Int64Array};
use arrow_schema::{DataType, Field, Schema};
use indicatif::{ProgressBar, ProgressStyle};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::{ArrowColumnChunk, ArrowColumnWriter, compute_leaves};
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;
use potluck_core::mixing::MixingKey;
use potluck_release::{Draft, Study};
use rand_core::{Rng, SeedableRng};
use rand_distr::{Distribution, StandardNormal};
use rand_xoshiro::Xoshiro256PlusPlus;
use rayon::prelude::*;

use crate::seeds::Seed;

/// The column of ids.
pub(crate) const ID: &str = "person";

/// The party that holds the survey.
pub(crate) const PARTY: &str = "clinic";

/// Counts changes of the values; files of other editions are not used again.
const EDITION: u32 = 1;

/// Rows of a row group: pyarrow's default.
const ROW_GROUP: u64 = 1 << 20;

/// Most bytes that a row takes on disk: 22 in the file, and 8 that a search for duplicate ids may
/// spill; rounded up.
const BYTES_A_ROW: u64 = 40;

/// A numeric column: what is public about it, and how its values are made.
pub(crate) struct Column {
    pub(crate) name: &'static str,
    pub(crate) lo: f64,
    pub(crate) hi: f64,
    typical: f64,
    /// Standard deviation; of the logarithm if values are skewed.
    spread: f64,
    skewed: bool,
    /// Digits after the decimal point.
    digits: i32,
    /// One value in so many is missing.
    gaps: Option<u64>,
}

const fn column(name: &'static str, bounds: (f64, f64), typical: f64, spread: f64, digits: i32) -> Column {
    Column { name, lo: bounds.0, hi: bounds.1, typical, spread, skewed: false, digits, gaps: None }
}

/// Whole numbers and decimals with few digits, as people write them down.
pub(crate) const COLUMNS: [Column; 10] = [
    column("age", (18.0, 100.0), 48.0, 17.0, 0),
    column("height", (120.0, 220.0), 171.0, 9.6, 1),
    column("weight", (30.0, 250.0), 79.0, 16.0, 1),
    column("waist", (50.0, 180.0), 94.0, 14.0, 1),
    column("systolic", (70.0, 240.0), 127.0, 17.0, 0),
    column("diastolic", (40.0, 150.0), 76.0, 11.0, 0),
    column("pulse", (30.0, 200.0), 72.0, 11.0, 0),
    Column { gaps: Some(40), ..column("glucose", (2.0, 30.0), 5.6, 1.1, 2) },
    column("cholesterol", (1.0, 15.0), 5.2, 1.1, 2),
    Column { skewed: true, ..column("income", (0.0, 500_000.0), 36_000.0, 0.6, 0) },
];

impl Column {
    fn values(&self, group: u64, count: u64) -> ArrayRef {
        let seed = Seed::new(EDITION.into()).of(&format!("survey {} {group}", self.name));
        let mut rng = Xoshiro256PlusPlus::from_seed(seed.bytes());
        let unit = 10_f64.powi(self.digits);
        let value = |_| {
            let normal: f64 = StandardNormal.sample(&mut rng);
            let exact = if self.skewed {
                self.typical * (self.spread * normal).exp()
            } else {
                self.typical + self.spread * normal
            };
            let missing = self.gaps.is_some_and(|gaps| rng.next_u64().is_multiple_of(gaps));
            (!missing).then(|| (exact * unit).round() / unit)
        };
        Arc::new((0..count).map(value).collect::<Float64Array>())
    }
}

/// Odd, so that multiplication by it modulo 2³² permutes (Knuth's golden ratio).
const MIX: u64 = 2_654_435_761;

/// Ids are different for up to 2³² rows, and in no order.
fn ids(group: u64, count: u64) -> ArrayRef {
    let first = group * ROW_GROUP;
    let id = |row: u64| (row.wrapping_mul(MIX) & 0xffff_ffff) as i64;
    Arc::new(Int64Array::from_iter_values((first..first + count).map(id)))
}

/// A survey on disk.
pub(crate) struct Survey {
    pub(crate) path: PathBuf,
    pub(crate) rows: u64,
}

impl Survey {
    /// Writes the file, unless it is there already.
    pub(crate) fn prepare(rows: u64) -> Result<Self> {
        let folder = Path::new("target/lab");
        fs::create_dir_all(folder)?;
        let path = std::path::absolute(folder.join(format!("survey-{EDITION}-{rows}.parquet")))?;
        if !path.exists() {
            check_space(folder, rows * BYTES_A_ROW)?;
            let pending = path.with_extension("pending");
            write(&pending, rows).with_context(|| format!("cannot write {}", pending.display()))?;
            fs::rename(&pending, &path)?;
        }
        Ok(Self { path, rows })
    }

    /// Deletes the file.
    pub(crate) fn remove(self) -> Result<()> {
        fs::remove_file(&self.path).with_context(|| format!("cannot delete {}", self.path.display()))
    }

    /// The names of its columns, id included.
    pub(crate) fn column_names() -> Vec<String> {
        let columns = COLUMNS.iter().map(|column| column.name.to_owned());
        columns.chain(std::iter::once(ID.to_owned())).collect()
    }

    /// A sealed study of two parties, one of which holds the survey.
    pub(crate) fn study(&self, method: &str) -> Result<Study> {
        let mut text = format!(
            "format = 1\n[study]\nname = \"survey\"\nrows = {}\nid = \"integer\"\nmethod = \"{method}\"\n\
             [privacy]\nepsilon = 1.0\ndelta = 1e-5\n[[party]]\nname = \"{PARTY}\"\n",
            self.rows
        );
        for Column { name, lo, hi, .. } in &COLUMNS {
            text.push_str(&format!("[[party.column]]\nname = \"{name}\"\nlo = {lo:?}\nhi = {hi:?}\n"));
        }
        text.push_str(
            "[[party]]\nname = \"registry\"\n[[party.column]]\nname = \"visits\"\nlo = 0.0\nhi = 50.0\n",
        );
        Ok(Draft::parse(&text)?.seal(MixingKey::new([7; 32]))?)
    }
}

/// An error if there is less room than this; where nobody can say, no error.
fn check_space(folder: &Path, needed: u64) -> Result<()> {
    let Ok(output) = Command::new("df").args(["-P", "-k"]).arg(folder).output() else { return Ok(()) };
    let text = String::from_utf8_lossy(&output.stdout);
    let field = text.lines().nth(1).and_then(|line| line.split_whitespace().nth(3));
    let Some(free) = field.and_then(|field| field.parse::<u64>().ok()).map(|free| free * 1024) else {
        return Ok(());
    };
    if free < needed {
        bail!(
            "the table may take {:.1} GB, but there are {:.1} GB free in {}; make room, or ask for fewer rows",
            needed as f64 / 1e9,
            free as f64 / 1e9,
            folder.display()
        );
    }
    Ok(())
}

fn write(path: &Path, rows: u64) -> Result<()> {
    let mut fields = vec![Field::new(ID, DataType::Int64, true)];
    fields.extend(COLUMNS.iter().map(|column| Field::new(column.name, DataType::Float64, true)));
    let schema = Arc::new(Schema::new(fields));
    let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
    let file = BufWriter::with_capacity(1 << 20, File::create(path)?);
    let (mut writer, groups) =
        ArrowWriter::try_new(file, Arc::clone(&schema), Some(properties))?.into_serialized_writer()?;
    let bar = ProgressBar::new(rows);
    bar.set_style(
        ProgressStyle::with_template("{msg:14} {wide_bar} {percent}%, {elapsed} gone, {eta} left")
            .expect("the template is valid"),
    );
    bar.set_message("writing table");
    for group in 0..rows.div_ceil(ROW_GROUP) {
        let count = ROW_GROUP.min(rows - group * ROW_GROUP);
        let encode = |(at, mut writer): (usize, ArrowColumnWriter)| -> Result<ArrowColumnChunk> {
            let values = if at == 0 { ids(group, count) } else { COLUMNS[at - 1].values(group, count) };
            for leaf in compute_leaves(schema.field(at), &values)? {
                writer.write(&leaf)?;
            }
            Ok(writer.close()?)
        };
        let columns = groups.create_column_writers(group as usize)?;
        let chunks: Result<Vec<ArrowColumnChunk>> = columns.into_par_iter().enumerate().map(encode).collect();
        let mut row_group = writer.next_row_group()?;
        for chunk in chunks? {
            chunk.append_to_row_group(&mut row_group)?;
        }
        row_group.close()?;
        bar.inc(count);
    }
    writer.close()?;
    bar.finish_and_clear();
    Ok(())
}
