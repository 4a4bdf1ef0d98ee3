//! The exact sums: the same whatever the threads, batches, order and file format, equal to the
//! audit file and to an independent calculation, and released with just the noise that was drawn.
#![allow(clippy::unwrap_used)]

mod support;

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchIterator, RecordBatchReader};
use flate2::write::GzEncoder;
use parquet::arrow::ArrowWriter;
use parquet::basic::{BrotliLevel, Compression};
use parquet::file::metadata::{ParquetMetaDataReader, ParquetMetaDataWriter};
use parquet::file::properties::WriterProperties;
use potluck_core::encoding::{Bounds, Q};
use potluck_core::mixing::MixingKey;
use potluck_core::noise::{NOISED_SUM_LIMIT, add_noise};
use potluck_party::Table;
use potluck_release::{Draft, Study};
use rand_chacha::ChaCha20Rng;
use rand_core::{Rng, SeedableRng};
use support::{PARTY, Subject, audited, batch, integers, release, study};

fn subjects(rows: i64) -> Vec<Subject> {
    let mut rng = ChaCha20Rng::seed_from_u64(3);
    let mut number = |lo: f64, hi: f64| {
        let draw = rng.next_u32();
        (draw % 17 != 0).then(|| (lo + (hi - lo) * f64::from(draw) / f64::from(u32::MAX) * 1.2).round())
    };
    (0..rows)
        .map(|id| Subject {
            id: id * 7 - 20,
            age: number(0.0, 100.0),
            dose: number(-1.0, 1.0),
            smoker: [Some("no"), Some("yes"), None][id as usize % 3],
            region: [Some("north"), Some("south"), Some("elsewhere"), None][id as usize % 4],
        })
        .collect()
}

fn csv(subjects: &[Subject]) -> String {
    let mut text = "region,id,age,note,smoker,dose\n".to_owned();
    let show = |number: Option<f64>| number.map_or("NA".to_owned(), |number| number.to_string());
    for subject in subjects {
        text.push_str(&format!(
            "{},{},{},\"a, \"\"b\"\"\",{},{}\n",
            subject.region.unwrap_or(""),
            subject.id,
            show(subject.age),
            subject.smoker.unwrap_or("NA"),
            show(subject.dose),
        ));
    }
    text
}

fn open(path: &Path, bytes: &[u8]) -> Table {
    fs::write(path, bytes).unwrap();
    Table::open(path, &std::env::temp_dir()).unwrap()
}

fn parquet(batch: &RecordBatch) -> Vec<u8> {
    let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), None).unwrap();
    writer.write(batch).unwrap();
    writer.into_inner().unwrap()
}

/// The same in row groups of so many rows.
fn row_groups(batch: &RecordBatch, rows: usize) -> Vec<u8> {
    let properties = WriterProperties::builder().set_max_row_group_row_count(Some(rows)).build();
    let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties)).unwrap();
    writer.write(batch).unwrap();
    writer.into_inner().unwrap()
}

fn arrow_file(batch: &RecordBatch) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = arrow_ipc::writer::FileWriter::try_new(&mut bytes, &batch.schema()).unwrap();
    writer.write(batch).unwrap();
    writer.finish().unwrap();
    drop(writer);
    bytes
}

fn arrow_stream(batch: &RecordBatch) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = arrow_ipc::writer::StreamWriter::try_new(&mut bytes, &batch.schema()).unwrap();
    writer.write(batch).unwrap();
    writer.finish().unwrap();
    drop(writer);
    bytes
}

/// The audit file of a table, parsed.
fn sums(study: &Study, table: &Table, threads: usize) -> HashMap<(u64, String), i64> {
    audited(study, table, &[], threads)
        .into_iter()
        .map(|(row, column, sum)| ((row.parse().unwrap(), column), sum))
        .collect()
}

/// The same sums by the textbook: a dense mixing matrix times a dense table.
fn sums_by_definition(study: &Study, subjects: &[Subject]) -> HashMap<(u64, String), i64> {
    let (k, mixing) = (study.seal().k(), study.definition().mixing());
    let ball = study.first_stage(PARTY).unwrap().encoder.ball().unwrap();
    let names = study.definition().party(PARTY).unwrap().encoded_names();
    let mut sums = HashMap::new();
    for subject in subjects {
        let encode = |lo, hi, x: Option<f64>| Bounds::new(lo, hi).unwrap().encode(x.unwrap_or(f64::NAN));
        let level = |present: bool| if present { Q } else { 0 };
        let region = subject.region.map(|region| if region == "elsewhere" { "other" } else { region });
        let mut row = vec![
            encode(0.0, 100.0, subject.age),
            encode(-1.0, 1.0, subject.dose),
            level(subject.smoker == Some("yes")),
            level(region == Some("north")),
            level(region == Some("south")),
            level(region == Some("other")),
        ];
        ball.project(&mut row);
        let digest = study.seal().key().subject(subject.id.to_string().as_bytes());
        let mut words = vec![0; k.div_ceil(64) as usize];
        digest.bernoulli_signs(&mut words);
        for i in 0..k {
            let entry =
                match mixing {
                    potluck_core::mixing::Mixing::Sparse => {
                        let (bucket, sign) = digest.sparse_entry(k);
                        if bucket == i { sign } else { 0 }
                    }
                    potluck_core::mixing::Mixing::Bernoulli => {
                        if words[i as usize / 64] >> (i % 64) & 1 == 1 { 1 } else { -1 }
                    }
                    potluck_core::mixing::Mixing::Identity | potluck_core::mixing::Mixing::Buckets => {
                        unreachable!("format 1, and ids are integers here")
                    }
                };
            for (name, &q) in names.iter().zip(&row) {
                *sums.entry((i, name.clone())).or_insert(0) += entry * i64::from(q);
            }
        }
    }
    sums
}

#[test]
fn sums_do_not_depend_on_threads_batches_order_or_format() {
    let people = subjects(1000);
    let mut shuffled = people.clone();
    shuffled.reverse();
    shuffled.swap(3, 500);
    let folder = tempfile::tempdir().unwrap();
    for settings in ["id = \"integer\"\nk = 50", "id = \"integer\"\nmixing = \"bernoulli\"\nk = 130"] {
        let study = study(1000, settings, "clip_norm = 1.3");
        let expected = sums_by_definition(&study, &people);
        let mut gzipped = GzEncoder::new(Vec::new(), flate2::Compression::default());
        std::io::Write::write_all(&mut gzipped, csv(&people).as_bytes()).unwrap();
        let with_mark = [b"\xef\xbb\xbf".as_slice(), csv(&people).as_bytes()].concat();
        let files: Vec<(&str, Vec<u8>)> = vec![
            ("csv", csv(&people).into_bytes()),
            ("csv with a byte order mark", with_mark),
            ("gzipped csv", gzipped.finish().unwrap()),
            ("shuffled csv", csv(&shuffled).into_bytes()),
            ("parquet", parquet(&batch(&people))),
            ("shuffled parquet", parquet(&batch(&shuffled))),
            ("arrow file", arrow_file(&batch(&people))),
            ("arrow stream", arrow_stream(&batch(&people))),
        ];
        for (name, bytes) in files {
            let path = folder.path().join("table");
            assert!(sums(&study, &open(&path, &bytes), 2) == expected, "{name}");
        }
        for (rows, size) in [(1000, 100), (999, 8192), (300, 64), (37, 20), (1, 8192)] {
            let bytes = row_groups(&batch(&people), rows);
            for threads in [1, 2, 7] {
                let table = open(&folder.path().join("table"), &bytes).with_batch_size(size);
                assert!(sums(&study, &table, threads) == expected, "{threads} threads, groups of {rows}");
            }
        }
        for threads in [1, 2, 7] {
            for batch in [1, 3, 100, 8192] {
                let table =
                    open(&folder.path().join("table"), csv(&people).as_bytes()).with_batch_size(batch);
                assert!(sums(&study, &table, threads) == expected, "{threads} threads, batches of {batch}");
            }
        }
    }
}

/// The batches that other software would hand over, of so many rows.
fn reader(batch: &RecordBatch, rows: usize) -> Box<dyn RecordBatchReader> {
    let slice = |at: usize| Ok(batch.slice(at, rows.min(batch.num_rows() - at)));
    let batches: Vec<_> = (0..batch.num_rows()).step_by(rows).map(slice).collect();
    Box::new(RecordBatchIterator::new(batches, batch.schema()))
}

#[test]
fn batches_in_memory_have_the_sums_of_a_file() {
    let people = subjects(1000);
    let study = study(1000, "id = \"integer\"\nk = 50", "");
    let expected = sums_by_definition(&study, &people);
    let all = batch(&people);
    for (rows, size) in [(1000, 100), (1000, 8192), (999, 64), (37, 20), (1, 8192)] {
        for threads in [1, 2, 7] {
            let held = Table::hold("batches", reader(&all, rows), None).unwrap().with_batch_size(size);
            assert!(sums(&study, &held, threads) == expected, "{threads} threads, batches of {rows}");
        }
        let spooled =
            Table::spool_batches("batches", reader(&all, rows), None, &std::env::temp_dir()).unwrap();
        assert!(sums(&study, &spooled, 2) == expected, "spooled, batches of {rows}");
    }
    let keep: Vec<String> = ["age", "region", "id"].map(str::to_owned).to_vec();
    let kept = Table::hold("batches", reader(&all, 100), Some(&keep)).unwrap();
    assert_eq!(kept.column_names().unwrap(), ["id", "age", "region"]);
}

#[test]
fn a_stream_that_breaks_off_is_refused_without_quoting_it() {
    use arrow_schema::ArrowError;
    let all = batch(&subjects(10));
    let broken = || {
        let failed = Err(ArrowError::CastError("cannot cast secret".to_owned()));
        let reader: Box<dyn RecordBatchReader> =
            Box::new(RecordBatchIterator::new([Ok(all.clone()), failed], all.schema()));
        reader
    };
    let spooled = Table::spool_batches("batches", broken(), None, &std::env::temp_dir());
    for refused in [Table::hold("batches", broken(), None), spooled] {
        let message = refused.err().unwrap().to_string();
        assert!(message.contains("could not be read to its end") && !message.contains("secret"), "{message}");
    }
}

/// Threads read the one file that standard input was copied to, at many places at once.
#[test]
fn spooled_row_groups_do_not_get_mixed_up() {
    let people = subjects(2000);
    let study = study(2000, "id = \"integer\"\nk = 50", "");
    let expected = sums_by_definition(&study, &people);
    // Pages of the same length without compression: taking one for another would not show.
    let properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some(50))
        .set_dictionary_enabled(false)
        .build();
    let all = batch(&people);
    let mut writer = ArrowWriter::try_new(Vec::new(), all.schema(), Some(properties)).unwrap();
    writer.write(&all).unwrap();
    let bytes = writer.into_inner().unwrap();
    for threads in [2, 7] {
        for _ in 0..10 {
            let table = Table::spool(&mut bytes.as_slice(), "standard input", &std::env::temp_dir()).unwrap();
            assert!(sums(&study, &table, threads) == expected, "{threads} threads");
        }
    }
}

/// The bytes of a Parquet file that says of its first column that it is compressed like this.
fn claiming(bytes: &[u8], codec: Compression) -> Vec<u8> {
    let file = bytes::Bytes::copy_from_slice(bytes);
    let metadata = ParquetMetaDataReader::new().parse_and_finish(&file).unwrap();
    let mut groups = metadata.row_groups().to_vec();
    let mut columns = groups[0].columns().to_vec();
    columns[0] = columns[0].clone().into_builder().set_compression(codec).build().unwrap();
    groups[0] = groups[0].clone().into_builder().set_column_metadata(columns).build().unwrap();
    let metadata = metadata.into_builder().set_row_groups(groups).build();
    let footer = u32::from_le_bytes(bytes[bytes.len() - 8..][..4].try_into().unwrap()) as usize;
    let mut out = bytes[..bytes.len() - 8 - footer].to_vec();
    ParquetMetaDataWriter::new(&mut out, &metadata).finish().unwrap();
    out
}

#[test]
fn a_codec_that_is_not_read_is_named_with_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = parquet(&batch(&subjects(60)));
    let names = |bytes: &[u8]| open(&folder.path().join("table"), bytes).column_names();
    for (codec, name) in [(Compression::BROTLI(BrotliLevel::default()), "Brotli"), (Compression::LZO, "LZO")]
    {
        let error = names(&claiming(&bytes, codec)).unwrap_err().to_string();
        assert!(error.contains(&format!("is compressed with {name}, which is not supported")), "{error}");
        assert!(error.contains("zstd, snappy, gzip or lz4"), "{error}");
    }
    assert!(names(&claiming(&bytes, Compression::SNAPPY)).is_ok(), "the metadata is written as it was");
}

/// What a library writes for a column of levels in which nothing is known.
#[test]
fn dictionaries_may_be_empty() {
    use arrow_array::types::Int32Type;
    use arrow_array::{Array, DictionaryArray, StringArray};
    let mut people = subjects(60);
    for subject in &mut people {
        subject.smoker = None;
    }
    let study = study(60, "id = \"integer\"", "");
    let all = batch(&people);
    let nothing =
        DictionaryArray::<Int32Type>::new(vec![None; 60].into(), Arc::new(StringArray::new_null(0)));
    let at = all.schema().index_of("smoker").unwrap();
    let mut fields: Vec<_> = all.schema().fields().iter().map(|field| field.as_ref().clone()).collect();
    fields[at] = arrow_schema::Field::new("smoker", nothing.data_type().clone(), true);
    let mut columns = all.columns().to_vec();
    columns[at] = Arc::new(nothing);
    let with_dictionary = RecordBatch::try_new(Arc::new(arrow_schema::Schema::new(fields)), columns).unwrap();
    let folder = tempfile::tempdir().unwrap();
    for bytes in [parquet(&with_dictionary), arrow_file(&with_dictionary), arrow_stream(&with_dictionary)] {
        let table = open(&folder.path().join("table"), &bytes);
        assert!(sums(&study, &table, 2) == sums_by_definition(&study, &people));
    }
}

/// Of several bad rows the first is named, and of several duplicates the first that repeats an
/// earlier row.
#[test]
fn errors_do_not_depend_on_threads_or_row_groups() {
    let folder = tempfile::tempdir().unwrap();
    let lenient = study(400, "id = \"integer\"", "").to_toml();
    let strict = lenient.replacen("unknown = \"missing\"", "unknown = \"error\"", 1);
    let draft = Draft::parse(strict.split("[sealed]").next().unwrap()).unwrap();
    let study = draft.seal(MixingKey::new([7; 32])).unwrap();
    let mut bad = subjects(400);
    for row in [399, 250, 120, 130] {
        bad[row].smoker = Some("perhaps");
    }
    let mut repeated = subjects(400);
    for (row, earlier) in [(390, 1), (200, 3), (150, 9)] {
        repeated[row].id = repeated[earlier].id;
    }
    for (people, expected) in [(bad, "row 121"), (repeated, "the same as in row 10")] {
        for rows in [400, 30] {
            let bytes = row_groups(&batch(&people), rows);
            for threads in [1, 2, 7] {
                for _ in 0..5 {
                    let table = open(&folder.path().join("table"), &bytes).with_batch_size(11);
                    let error = release(&study, &table, threads, 9).err().unwrap().to_string();
                    assert!(error.contains(expected), "{threads} threads: {error}");
                }
            }
        }
    }
}

#[test]
fn a_release_is_the_audited_sums_plus_the_noise_that_was_drawn() {
    let people = subjects(300);
    let folder = tempfile::tempdir().unwrap();
    for settings in ["id = \"integer\"", "id = \"integer\"\nmixing = \"bernoulli\"\nk = 70"] {
        let study = study(300, settings, "");
        let table = open(&folder.path().join("table"), csv(&people).as_bytes());
        let audited = sums(&study, &table, 1);
        let names = study.definition().party(PARTY).unwrap().encoded_names();
        let mut expected: Vec<i64> = (0..study.seal().k())
            .flat_map(|row| names.iter().map(move |name| (row, name.clone())))
            .map(|coordinate| audited[&coordinate])
            .collect();
        add_noise(
            &mut expected,
            study.first_stage(PARTY).unwrap().noise[0].1,
            NOISED_SUM_LIMIT,
            &mut ChaCha20Rng::seed_from_u64(9),
        );
        for threads in [1, 2, 7] {
            let release = release(&study, &table, threads, 9).unwrap();
            assert!(integers(&release) == expected);
        }
    }
}

#[test]
fn identity_keeps_rows_in_their_place() {
    let people = subjects(40);
    let study = study(40, "id = \"row\"\nmethod = \"dgm\"", "");
    let folder = tempfile::tempdir().unwrap();
    let table = |batch| open(&folder.path().join("t"), csv(&people).as_bytes()).with_batch_size(batch);
    let expected = sums(&study, &table(40), 1);
    assert_eq!(
        expected[&(3, "age".to_owned())],
        i64::from(Bounds::new(0.0, 100.0).unwrap().encode(people[3].age.unwrap_or(f64::NAN)))
    );
    for threads in [1, 2, 7] {
        assert!(sums(&study, &table(7), threads) == expected);
    }
}

#[test]
fn columns_of_every_type_are_read_as_the_same_numbers() {
    use arrow_array::{ArrayRef, Float32Array, Int8Array, StringViewArray, UInt64Array};
    let people: Vec<Subject> = subjects(60)
        .into_iter()
        .map(|s| Subject { id: s.id + 20, age: s.age.map(|a| a.min(100.0)), ..s })
        .collect();
    let study = study(60, "id = \"integer\"", "");
    let folder = tempfile::tempdir().unwrap();
    let expected = sums_by_definition(&study, &people);
    let ages: ArrayRef = Arc::new(people.iter().map(|s| s.age.map(|a| a as i8)).collect::<Int8Array>());
    let decimals = {
        let values = people.iter().map(|s| s.age.map(|age| age as i128 * 100));
        let array: arrow_array::Decimal128Array = values.collect();
        Arc::new(array.with_precision_and_scale(10, 2).unwrap()) as ArrayRef
    };
    let days: ArrayRef =
        Arc::new(people.iter().map(|s| s.age.map(|age| age as i32)).collect::<arrow_array::Date32Array>());
    let strings =
        |values: Vec<Option<&str>>| -> ArrayRef { Arc::new(values.into_iter().collect::<StringViewArray>()) };
    let dictionary = |values: Vec<Option<&str>>| -> ArrayRef {
        Arc::new(values.into_iter().collect::<arrow_array::DictionaryArray<arrow_array::types::Int32Type>>())
    };
    for age in [ages, decimals, days] {
        let batch = RecordBatch::try_from_iter([
            ("id", Arc::new(UInt64Array::from_iter_values(people.iter().map(|s| s.id as u64))) as ArrayRef),
            ("age", age),
            ("dose", Arc::new(people.iter().map(|s| s.dose.map(|d| d as f32)).collect::<Float32Array>())),
            ("smoker", dictionary(people.iter().map(|s| s.smoker).collect())),
            ("region", strings(people.iter().map(|s| s.region).collect())),
        ])
        .unwrap();
        let table = open(&folder.path().join("t"), &arrow_file(&batch));
        assert!(sums(&study, &table, 2) == expected);
    }
}
