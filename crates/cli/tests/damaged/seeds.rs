//! Good files of every kind, to be damaged. Their tables hold values that no message may repeat.

use std::io::Write;
use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, DictionaryArray, Float64Array, RecordBatch, StringArray, StringViewArray};
use arrow_ipc::CompressionType;
use arrow_ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, Encoding, GzipLevel, ZstdLevel};
use parquet::file::properties::{WriterProperties, WriterPropertiesBuilder, WriterVersion};
use potluck_release::Study;
use potluck_release::events::{Change, Event};

use crate::support::{Workplace, south_csv};

/// What stands in the place of the damaged file on a command line.
pub const FILE: &str = "FILE";

/// Parts of the private values: a number and a text.
pub const SECRETS: [&str; 3] = ["987654321", "SECRET", "SENTINEL"];

const ROWS: usize = 40;

fn study() -> String {
    potluck_fixtures::study("test", ROWS as u64)
        .settings("id = \"text\"")
        .party("north", &["income lo = 0; hi = 2000000000", "smoker levels = [\"no\", \"yes\"]"])
        .party("south", &["pressure lo = 80; hi = 200"])
        .to_string()
}

/// A good file, and the commands that read it.
pub struct Seed {
    pub name: &'static str,
    pub kind: Kind,
    pub bytes: Vec<u8>,
    pub commands: Vec<Vec<&'static str>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Table,
    Study,
    Release,
    Dataset,
    Model,
    Log,
}

/// A folder with all that the commands need beside the damaged file, and the good files.
pub fn prepare() -> (Workplace, Vec<Seed>) {
    let place = Workplace::with_study(&study());
    place.write("north.csv", csv());
    place.write("south.csv", south_csv());
    place.run(&["key", "new", "--out", "north.key"]).ok();
    place.release_north(&["--signing-key", "north.key"]).ok();
    place.run(&["ledger", "init", "--budget", "more", "--epsilon", "1", "--delta", "1e-5"]).ok();
    place
        .line("release study.toml --party south --data south.csv --out s.parquet --yes --accept-low-accuracy --budget more")
        .ok();
    place.run(&["join", "study.toml", "s.parquet", "north.release.parquet", "--out", "public.parquet"]).ok();
    place.run(&["fit", "public.parquet", "--label", "pressure", "--out", "model.json"]).ok();

    let mut seeds = tables();
    let read = |name: &str| std::fs::read(place.path(name)).unwrap();
    let published = |name, kind, bytes, commands: &[&[&'static str]]| Seed {
        name,
        kind,
        bytes,
        commands: commands.iter().map(|command| command.to_vec()).collect(),
    };
    seeds.push(published(
        "study",
        Kind::Study,
        read("study.toml"),
        &[&["study", "check", FILE], &["plan", FILE], &["inspect", FILE]],
    ));
    seeds.push(published(
        "draft",
        Kind::Study,
        study().into(),
        &[&["study", "check", FILE], &["plan", FILE], &["study", "seal", FILE, "--out", "sealed", "--force"]],
    ));
    seeds.push(published(
        "release",
        Kind::Release,
        read("north.release.parquet"),
        &[
            &["verify", FILE],
            &["inspect", FILE],
            &["join", "study.toml", FILE, "s.parquet", "--out", "j", "--force"],
        ],
    ));
    seeds.push(published(
        "dataset",
        Kind::Dataset,
        read("public.parquet"),
        &[&["verify", FILE], &["inspect", FILE], &["fit", FILE, "--label", "pressure"]],
    ));
    seeds.push(published(
        "model",
        Kind::Model,
        read("model.json"),
        &[&["inspect", FILE], &["predict", FILE, "--data", "north.csv"]],
    ));
    let study = Study::load(&place.path("study.toml")).unwrap();
    seeds.push(published(
        "event log",
        Kind::Log,
        log(&study).into(),
        &[&["verify", FILE], &["inspect", FILE]],
    ));
    (place, seeds)
}

fn log(study: &Study) -> String {
    let time = || "2026-01-31T00:00:00Z".to_owned();
    let created = Event::following(None, time(), Change::Created { study: study.to_json(), early: true });
    let invited = Event::following(Some(&created), time(), Change::Invited { party: "north".to_owned() });
    created.to_line() + &invited.to_line()
}

fn tables() -> Vec<Seed> {
    let table = |name, bytes| Seed {
        name,
        kind: Kind::Table,
        bytes,
        commands: vec![
            vec!["sums", "study.toml", "--party", "north", "--data", FILE, "--state", "state", "--force"],
            vec!["predict", "model.json", "--data", FILE],
        ],
    };
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(csv().as_bytes()).unwrap();
    let plain = || WriterProperties::builder().set_dictionary_enabled(false);
    let with = |compression| WriterProperties::builder().set_compression(compression);
    let delta = plain()
        .set_writer_version(WriterVersion::PARQUET_2_0)
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_column_encoding("id".into(), Encoding::DELTA_BYTE_ARRAY)
        .set_column_encoding("smoker".into(), Encoding::DELTA_LENGTH_BYTE_ARRAY);
    let ipc = |compression| IpcWriteOptions::default().try_with_compression(compression).unwrap();
    vec![
        table("CSV", csv().into()),
        table("CSV, gzipped", gzip.finish().unwrap()),
        table("Parquet", parquet(plain())),
        table("Parquet, Snappy", parquet(with(Compression::SNAPPY))),
        table("Parquet, Zstandard", parquet(with(Compression::ZSTD(ZstdLevel::default())))),
        table("Parquet, gzip", parquet(with(Compression::GZIP(GzipLevel::default())))),
        table("Parquet, LZ4", parquet(with(Compression::LZ4_RAW))),
        table("Parquet, version 2", parquet(delta)),
        table("Arrow file", ipc_file(&batch(Text::Plain), ipc(None))),
        table("Arrow file, LZ4", ipc_file(&batch(Text::Plain), ipc(Some(CompressionType::LZ4_FRAME)))),
        table("Arrow file, dictionary", ipc_file(&batch(Text::Dictionary), ipc(Some(CompressionType::ZSTD)))),
        table("Arrow stream", ipc_stream(&batch(Text::Dictionary), ipc(None))),
        table("Arrow stream, Zstandard", ipc_stream(&batch(Text::View), ipc(Some(CompressionType::ZSTD)))),
    ]
}

fn id(row: usize) -> String {
    format!("SECRET-SENTINEL-{row}")
}

fn income(row: usize) -> f64 {
    987_654_321.125 + row as f64 / 1024.0
}

fn smoker(row: usize) -> &'static str {
    ["no", "yes"][row % 2]
}

fn csv() -> String {
    let rows: String =
        (0..ROWS).map(|row| format!("{},{},{}\n", id(row), income(row), smoker(row))).collect();
    format!("id,income,smoker\n{rows}")
}

/// How text stands in an Arrow batch.
#[derive(Clone, Copy)]
enum Text {
    Plain,
    Dictionary,
    View,
}

fn batch(text: Text) -> RecordBatch {
    let smokers = (0..ROWS).map(smoker);
    let smokers: ArrayRef = match text {
        Text::Plain => Arc::new(StringArray::from_iter_values(smokers)),
        Text::Dictionary => Arc::new(smokers.collect::<DictionaryArray<Int32Type>>()),
        Text::View => Arc::new(StringViewArray::from_iter_values(smokers)),
    };
    let ids: ArrayRef = match text {
        Text::View => Arc::new(StringViewArray::from_iter_values((0..ROWS).map(id))),
        _ => Arc::new(StringArray::from_iter_values((0..ROWS).map(id))),
    };
    let income: ArrayRef = Arc::new(Float64Array::from_iter_values((0..ROWS).map(income)));
    RecordBatch::try_from_iter([("id", ids), ("income", income), ("smoker", smokers)]).unwrap()
}

fn parquet(properties: WriterPropertiesBuilder) -> Vec<u8> {
    let batch = batch(Text::Plain);
    let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties.build())).unwrap();
    writer.write(&batch.slice(0, 20)).unwrap();
    writer.flush().unwrap();
    writer.write(&batch.slice(20, 20)).unwrap();
    writer.into_inner().unwrap()
}

fn ipc_file(batch: &RecordBatch, options: IpcWriteOptions) -> Vec<u8> {
    let mut writer = FileWriter::try_new_with_options(Vec::new(), &batch.schema(), options).unwrap();
    writer.write(&batch.slice(0, 20)).unwrap();
    writer.write(&batch.slice(20, 20)).unwrap();
    writer.into_inner().unwrap()
}

fn ipc_stream(batch: &RecordBatch, options: IpcWriteOptions) -> Vec<u8> {
    let mut writer = StreamWriter::try_new_with_options(Vec::new(), &batch.schema(), options).unwrap();
    writer.write(&batch.slice(0, 20)).unwrap();
    writer.write(&batch.slice(20, 20)).unwrap();
    writer.into_inner().unwrap()
}
