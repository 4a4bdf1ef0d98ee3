//! A release: what one party publishes, once, under a study.

use std::io::Write;
use std::path::Path;

use parquet::file::metadata::RowGroupMetaData;
use potluck_core::encoding::{Ball, Scaling};
use potluck_core::noise::Sigma;
use potluck_core::stage::{Stage, Statistic};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::Sha256;

use crate::columns::{Columns, ColumnsWriter, content_hash};
use crate::files::{Audience, Existing, PendingFile, holding};
use crate::signing::{PublicKey, Signature, SigningKey};
use crate::statement;
use crate::study::{Method, Study};
use crate::{Error, SOFTWARE, canonical};

const KIND: &str = "release";

/// One noised statistic of a release, as it stands in the manifest: every parameter exactly as
/// used.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StageRecord {
    /// Which statistic.
    name: String,
    /// Its part of μ², out of 2²⁰.
    share: u32,
    /// Noise scales, in the order of the sums.
    noise: Vec<NoiseRecord>,
    /// How each encoded column is scaled.
    columns: Vec<ScalingRecord>,
    /// Squared radius of the row-norm ball, in units of 1/Q².
    #[serde(default, skip_serializing_if = "Option::is_none")]
    norm_squared: Option<u64>,
    /// What is subtracted from rows within the ball, in units of 1/Q.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    centre: Vec<i32>,
    /// What a person with any value adds to the column of presence, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    presence: Option<i32>,
    /// The published sums.
    result: ResultRecord,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct NoiseRecord {
    /// So many sums …
    sums: u64,
    /// … have noise of this scale.
    sigma: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ScalingRecord {
    low: f64,
    high: f64,
    centre: f64,
    scale: f64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
enum ResultRecord {
    /// The noised integers themselves, as text: they may exceed what a JSON number holds.
    Sums(Vec<String>),
    /// The columns of this file: a value is the noised integer sum divided by `scale`.
    Columns {
        /// Number of rows of sums.
        rows: u64,
        /// Q√w.
        scale: f64,
    },
}

impl StageRecord {
    fn new(stage: &Stage, noised: &[i64]) -> Self {
        let scaling = |scaling: &Scaling| ScalingRecord {
            low: scaling.low,
            high: scaling.high,
            centre: scaling.centre,
            scale: scaling.scale,
        };
        let noise = |&(sums, sigma): &(usize, Sigma)| NoiseRecord { sums: sums as u64, sigma: sigma.get() };
        Self {
            name: stage.name.to_owned(),
            share: stage.share.parts(),
            noise: stage.noise.iter().map(noise).collect(),
            columns: stage.encoder.columns().iter().flat_map(|(_, own)| own).map(scaling).collect(),
            norm_squared: stage.encoder.ball().map(Ball::norm_squared),
            centre: stage.encoder.centre().to_vec(),
            presence: stage.encoder.weight(),
            result: match stage.statistic {
                Statistic::Mixed { k, .. } => ResultRecord::Columns { rows: k, scale: stage.scale() },
                _ => ResultRecord::Sums(noised.iter().map(i64::to_string).collect()),
            },
        }
    }

    /// The noised integers, if they stand in the record.
    fn sums(&self) -> Option<Vec<i64>> {
        match &self.result {
            ResultRecord::Sums(sums) => sums.iter().map(|sum| sum.parse().ok()).collect(),
            ResultRecord::Columns { .. } => None,
        }
    }
}

/// The manifest of a release without the study it belongs to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReleaseRecord {
    pub(crate) party: String,
    columns: Vec<String>,
    stages: Vec<StageRecord>,
    statement: Vec<String>,
    software: String,
    content_hash: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    signature: Option<Signature>,
}

impl ReleaseRecord {
    /// The record that follows from the study and the sums of the stages before the mixed rows,
    /// without hash and signature; and the stage of the mixed rows, if the study has it.
    fn expected(study: &Study, party: &str, sums: &[Vec<i64>]) -> Result<(Self, Option<Stage>), Error> {
        let columns = study.own_party(party)?.published_names();
        let mut stages = Vec::with_capacity(sums.len() + 1);
        for (position, noised) in sums.iter().enumerate() {
            let stage = study.stage(party, &sums[..position])?;
            stages.push(StageRecord::new(&stage.ok_or(Error::Stages)?, noised));
        }
        let mixed = study.stage(party, sums)?;
        match &mixed {
            Some(stage) if matches!(stage.statistic, Statistic::Mixed { .. }) => {
                stages.push(StageRecord::new(stage, &[]));
            }
            None if study.definition().method() == Method::Exchange => {}
            _ => return Err(Error::Stages),
        }
        let record = Self {
            party: party.to_owned(),
            columns,
            stages,
            statement: statement::of_release(study, party)?,
            software: SOFTWARE.to_owned(),
            content_hash: String::new(),
            signature: None,
        };
        Ok((record, mixed))
    }

    /// SHA-256 over the logical content, in hexadecimal.
    pub(crate) fn content_hash(&self) -> &str {
        &self.content_hash
    }

    /// The noised sums of the stages before the mixed rows.
    pub(crate) fn earlier_sums(&self) -> Option<Vec<Vec<i64>>> {
        let (last, earlier) = self.stages.split_last()?;
        let is_mixed = matches!(last.result, ResultRecord::Columns { .. });
        let with_sums = if is_mixed { earlier } else { &self.stages };
        with_sums.iter().map(StageRecord::sums).collect()
    }

    /// The whole manifest, in the form that is hashed or, with hash and signature, in the form that
    /// is stored.
    fn manifest(&self, study: &Study, sealed: bool) -> Value {
        manifest(KIND, study, self, if sealed { &[] } else { &["content_hash", "signature"] })
    }

    /// Checks everything that this record says about `columns` under `study`, and returns who
    /// signed it.
    pub(crate) fn verify(
        &self,
        study: &Study,
        columns: &Columns,
        path: &Path,
    ) -> Result<Option<PublicKey>, Error> {
        let unsound = || Error::tampered(path, "its stages are not those of the study");
        let sums = self.earlier_sums().ok_or_else(unsound)?;
        let (expected, mixed) = match Self::expected(study, &self.party, &sums) {
            Err(Error::Stages | Error::Study(_)) => return Err(unsound()),
            other => other?,
        };
        if self.columns != expected.columns || columns.names() != expected.columns {
            return Err(Error::tampered(path, "its columns are not those of the study"));
        }
        if self.software == expected.software && self.statement != expected.statement {
            return Err(Error::tampered(path, "its privacy statement is not that of the study"));
        }
        if self.stages != expected.stages {
            return Err(Error::tampered(path, "its noise or row norm is not that of the study"));
        }
        if columns.rows() * expected.columns.len() != mixed.as_ref().map_or(0, Stage::coordinates) {
            return Err(Error::tampered(path, "it does not have the study's number of rows"));
        }
        if let Some(mixed) = &mixed {
            let on_its_grid = |(at, column): (usize, &Vec<f64>)| {
                let scale = mixed.scale_of(at);
                column.iter().all(|&value| on_grid(value, scale, mixed.sum_limit()))
            };
            if !columns.values().iter().enumerate().all(on_its_grid) {
                return Err(Error::tampered(path, "a value is not a whole number of noise units"));
            }
        }
        let hash = content_hash(&self.manifest(study, false), columns.hashes());
        if hex::encode(hash) != self.content_hash {
            return Err(Error::tampered(path, "the content does not match its hash"));
        }
        match &self.signature {
            None => Ok(None),
            Some(signature) => match signature.signer(&hash) {
                Some(key) => Ok(Some(key)),
                None => Err(Error::tampered(path, "the signature is not valid")),
            },
        }
    }
}

/// Whether a published value is an integer sum divided by the scale.
fn on_grid(value: f64, scale: f64, limit: i64) -> bool {
    let sum = (value * scale).round();
    sum.abs() <= limit as f64 && (sum / scale).to_bits() == value.to_bits()
}

/// A release but for its mixed rows: all that its file says of how they come about.
pub struct Outline<'a> {
    study: &'a Study,
    /// Without hash and signature.
    record: ReleaseRecord,
    /// None where products are exchanged.
    mixed: Option<Stage>,
    signing_key: Option<&'a SigningKey>,
}

/// What is known of a release that was written.
#[derive(Clone, Debug, PartialEq)]
pub struct Written {
    /// SHA-256 over the logical content, in hexadecimal.
    pub content_hash: String,
    /// Whose signature it carries, if it is signed.
    pub signer: Option<PublicKey>,
}

impl<'a> Outline<'a> {
    /// The release of `party` that follows from the noised sums of the stages before the mixed
    /// rows.
    pub fn new(
        study: &'a Study,
        party: &str,
        earlier: &[Vec<i64>],
        signing_key: Option<&'a SigningKey>,
    ) -> Result<Self, Error> {
        let (record, mixed) = ReleaseRecord::expected(study, party, earlier)?;
        Ok(Self { study, record, mixed, signing_key })
    }

    /// Writes the release under its temporary name; nothing is pending if the file is there
    /// already, byte for byte.
    ///
    /// `mixed` gives the noised sums of the mixed rows, row by row, in pieces of any length. It is
    /// called again where a file is there but differs. One row group is in memory at a time, and
    /// the same sums give the same bytes.
    pub fn write<E: From<Error>, I: Iterator<Item = Result<Vec<i64>, E>>>(
        &self,
        path: &Path,
        existing: Existing,
        mixed: impl Fn() -> Result<I, E>,
    ) -> Result<(Option<PendingFile>, Written), E> {
        if let Some(written) = holding(path, |file| self.write_to(file, path, mixed()?))? {
            return Ok((None, written));
        }
        let write = |file: &mut _| self.write_to(file, path, mixed()?);
        let (pending, written) = PendingFile::fill(path, existing, Audience::Public, write)?;
        Ok((Some(pending), written))
    }

    fn write_to<E: From<Error>>(
        &self,
        sink: impl Write + Send,
        path: &Path,
        mixed: impl Iterator<Item = Result<Vec<i64>, E>>,
    ) -> Result<Written, E> {
        let failed = |error| Error::write(path, error);
        let mut writer = ColumnsWriter::new(sink, &self.record.columns).map_err(failed)?;
        let scales = self.scales();
        let mut count = 0;
        for sums in mixed {
            for sum in sums? {
                writer.push(sum as f64 / scales[count % scales.len()]).map_err(failed)?;
                count += 1;
            }
        }
        self.check_count(count);
        let mut written = None;
        let manifest = |hashes| {
            let (record, signer) = self.seal(hashes);
            let manifest = record.manifest(self.study, true);
            written = Some(Written { content_hash: record.content_hash, signer });
            manifest
        };
        writer.close(manifest).map_err(failed)?;
        Ok(written.expect("a file that is closed has a manifest"))
    }

    /// What the sums of each published column are divided by.
    fn scales(&self) -> Vec<f64> {
        let of_column = |column| self.mixed.as_ref().map_or(1.0, |mixed| mixed.scale_of(column));
        (0..self.record.columns.len()).map(of_column).collect()
    }

    fn check_count(&self, count: usize) {
        let expected = self.mixed.as_ref().map_or(0, Stage::coordinates);
        assert_eq!(count, expected, "one noised sum a row and column");
    }

    /// The record with hash and signature.
    fn seal(&self, columns: Vec<Sha256>) -> (ReleaseRecord, Option<PublicKey>) {
        let hash = content_hash(&self.record.manifest(self.study, false), columns);
        let mut record = self.record.clone();
        record.content_hash = hex::encode(hash);
        record.signature = self.signing_key.map(|key| key.sign_release(&hash));
        (record, self.signing_key.map(SigningKey::public))
    }
}

/// What one party publishes: its mixed, noised columns, and how they came about. Verified.
#[derive(Clone, Debug)]
pub struct Release {
    study: Study,
    record: ReleaseRecord,
    columns: Columns,
    signer: Option<PublicKey>,
}

impl Release {
    /// The release of `party` in memory, from the noised sums of all its stages (those of the mixed
    /// rows, if there are any, row by row).
    pub fn new(
        study: &Study,
        party: &str,
        noised: &[Vec<i64>],
        signing_key: Option<&SigningKey>,
    ) -> Result<Self, Error> {
        let (noised, earlier) = match noised.split_last() {
            _ if study.definition().method() == Method::Exchange => (&[][..], noised),
            Some((mixed, earlier)) => (mixed.as_slice(), earlier),
            None => return Err(Error::Stages),
        };
        let outline = Outline::new(study, party, earlier, signing_key)?;
        outline.check_count(noised.len());
        let names = outline.record.columns.clone();
        let (width, scales) = (names.len(), outline.scales());
        let column = |j| noised.iter().skip(j).step_by(width).map(|&sum| sum as f64 / scales[j]).collect();
        let columns = Columns::new(names, (0..width).map(column).collect());
        let (record, signer) = outline.seal(columns.hashes());
        Ok(Self { study: study.clone(), record, columns, signer })
    }

    /// Reads a release and verifies study, shape, grid, hash and signature.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let (columns, mut manifest) = Columns::read(path, KIND)?;
        let (study, record): (Study, ReleaseRecord) = split_manifest(&mut manifest, path)?;
        let signer = record.verify(&study, &columns, path)?;
        Ok(Self { study, record, columns, signer })
    }

    /// Reads a release that `party` is expected to make under `study`, from somebody who may mean
    /// harm: as [`read`](Self::read), but what claims to be anything else, or to be larger, is
    /// refused before any of it is decoded.
    pub fn read_for(path: &Path, study: &Study, party: &str) -> Result<Self, Error> {
        let width = study.definition().party(party)?.published_width();
        let refuse = |what: &str| Err(Error::tampered(path, what));
        let (columns, mut manifest) = Columns::read_if(path, KIND, |manifest, file| {
            // As text: numbers such as 18 and 18.0 are the same there.
            if manifest["study_id"] != study.id()
                || canonical::json(&manifest["study"]) != canonical::json(&study.to_json())
            {
                return refuse("it belongs to another study");
            }
            if manifest["party"] != party {
                return refuse("it is the release of another party");
            }
            if u64::try_from(file.file_metadata().num_rows()) != Ok(study.seal().k())
                || file.file_metadata().schema_descr().num_columns() != width
            {
                return refuse("it does not have the study's number of rows and columns");
            }
            let decoded =
                file.row_groups().iter().map(|group| group.total_byte_size().max(0) as u64).sum::<u64>();
            let values = study.seal().k() * width as u64;
            if file.row_groups().iter().map(RowGroupMetaData::num_rows).sum::<i64>()
                != file.file_metadata().num_rows()
                || decoded > 9 * values + 4096 * (width * file.num_row_groups().max(1)) as u64
            {
                return refuse("its size is not that of its rows and columns");
            }
            Ok(())
        })?;
        let (_, record): (Study, ReleaseRecord) = split_manifest(&mut manifest, path)?;
        let signer = record.verify(study, &columns, path)?;
        // Another version of potluck may word it otherwise, and so may somebody who claims to be
        // one.
        if record.statement != statement::of_release(study, party)? {
            return Err(Error::tampered(
                path,
                "its privacy statement is not the one that this version of potluck makes; release with the same version",
            ));
        }
        Ok(Self { study: study.clone(), record, columns, signer })
    }

    /// The study it belongs to.
    pub fn study(&self) -> &Study {
        &self.study
    }

    /// Who published it.
    pub fn party(&self) -> &str {
        &self.record.party
    }

    /// The published columns.
    pub fn columns(&self) -> &Columns {
        &self.columns
    }

    /// SHA-256 over the logical content, in hexadecimal.
    pub fn content_hash(&self) -> &str {
        &self.record.content_hash
    }

    /// Whose valid signature it carries, if it is signed.
    pub fn signer(&self) -> Option<&PublicKey> {
        self.signer.as_ref()
    }

    /// The noised sums of the stages before the mixed rows.
    pub fn earlier_sums(&self) -> Vec<Vec<i64>> {
        self.record.earlier_sums().expect("a release is verified")
    }

    /// The noised sums of the stages before one of the release of `party` under `study`, counted
    /// from 1: what an auditor needs to recompute that stage. The last stage unless another is
    /// asked for.
    pub fn sums_before(
        &self,
        study: &Study,
        party: &str,
        stage: Option<usize>,
    ) -> Result<Vec<Vec<i64>>, Error> {
        if self.study.id() != study.id() || self.party() != party {
            return Err(Error::Audit(format!("the release is not that of {party} under this study")));
        }
        let mut earlier = self.earlier_sums();
        let last = self.record.stages.len();
        match stage.unwrap_or(last) {
            stage if (1..=last).contains(&stage) => earlier.truncate(stage - 1),
            _ => {
                return Err(Error::Audit(format!("the release has stages 1 to {last}; choose one of them")));
            }
        }
        Ok(earlier)
    }

    /// The stage of the mixed rows: how the published columns came about; none where products are
    /// exchanged.
    pub fn mixed_stage(&self) -> Option<Stage> {
        self.study.stage(self.party(), &self.earlier_sums()).expect("a release is verified")
    }

    pub(crate) fn record(&self) -> &ReleaseRecord {
        &self.record
    }
}

/// The manifest of a file of this kind: its record and the study, without some fields.
pub(crate) fn manifest(kind: &str, study: &Study, record: &impl Serialize, without: &[&str]) -> Value {
    let mut manifest = serde_json::to_value(record).expect("a record is plain data");
    let fields = manifest.as_object_mut().expect("a record is a JSON object");
    fields.insert("potluck".into(), kind.into());
    fields.insert("format".into(), study.definition().format().number().into());
    fields.insert("study_id".into(), study.id().into());
    fields.insert("study".into(), study.to_json());
    for field in without {
        fields.remove(*field);
    }
    manifest
}

/// Takes the study and the record of type `T` out of a manifest.
pub(crate) fn split_manifest<T: serde::de::DeserializeOwned>(
    manifest: &mut Value,
    path: &Path,
) -> Result<(Study, T), Error> {
    let fields =
        manifest.as_object_mut().ok_or_else(|| Error::tampered(path, "the manifest is no object"))?;
    fields.remove("potluck");
    let format = fields.remove("format");
    let study = Study::from_json(&fields.remove("study").unwrap_or_default())?;
    // The hash is over the format that follows from the study.
    if format.as_ref().and_then(Value::as_u64) != Some(study.definition().format().number().into()) {
        return Err(Error::tampered(path, "its format is not that of its study"));
    }
    let id = fields.remove("study_id");
    if id.as_ref().and_then(Value::as_str) != Some(study.id()) {
        return Err(Error::tampered(path, "the study is not the one its id names"));
    }
    let record = T::deserialize(&*manifest)
        .map_err(|error| Error::tampered(path, format!("the manifest is not complete: {error}")))?;
    Ok((study, record))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use potluck_core::mixing::MixingKey;
    use potluck_fixtures::pair;
    use zeroize::Zeroizing;

    use super::*;
    use crate::dataset::{Completeness, PublicDataset};
    use crate::study::Draft;

    fn study() -> Study {
        Draft::parse(&pair().to_string()).unwrap().seal(MixingKey::new([1; 32])).unwrap()
    }

    fn key() -> SigningKey {
        SigningKey::from_seed(&Zeroizing::new([9; 32]))
    }

    fn release(party: &str) -> Release {
        Release::new(&study(), party, &[vec![5, -7, 100_000, 3]], Some(&key())).unwrap()
    }

    /// The file with these columns and this manifest.
    fn bytes(columns: &Columns, manifest: &Value) -> Vec<u8> {
        let mut bytes = Vec::new();
        columns.write(&mut bytes, manifest).unwrap();
        bytes
    }

    /// The file of a release.
    fn file(release: &Release) -> Vec<u8> {
        bytes(&release.columns, &release.record.manifest(&release.study, true))
    }

    /// Reads bytes back as a file.
    fn read<T>(bytes: &[u8], read: impl Fn(&Path) -> Result<T, Error>) -> Result<T, Error> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.parquet");
        fs::write(&path, bytes).unwrap();
        read(&path)
    }

    #[track_caller]
    fn refused<T>(result: Result<T, Error>, word: &str) {
        let error = result.err().expect("it was accepted").to_string();
        assert!(error.contains(word), "{error}");
    }

    #[test]
    fn a_release_comes_back_as_it_was() {
        let release = release("north");
        let back = read(&file(&release), Release::read).unwrap();
        assert_eq!(back.content_hash(), release.content_hash());
        assert_eq!(back.columns(), release.columns());
        assert_eq!(back.signer(), Some(&key().public()));
        assert!(file(&release) == file(&back));
    }

    /// The sums in pieces of some length.
    fn pieces(sums: &[i64], length: usize) -> impl Iterator<Item = Result<Vec<i64>, Error>> {
        sums.chunks(length).map(|piece| Ok(piece.to_vec()))
    }

    /// More rows than a row group holds: the file is that of the release in memory, whatever the
    /// pieces.
    #[test]
    fn a_release_is_written_as_its_sums_come() {
        const ROWS: usize = 600_001;
        let text = pair()
            .to_string()
            .replace("rows = 50", &format!("rows = {ROWS}"))
            .replace("id = \"integer\"\nmethod = \"rmgm\"\nk = 4", "id = \"row\"\nmethod = \"dgm\"")
            .replace("[[party]]\nname = \"south\"\n", "");
        let study = Draft::parse(&text).unwrap().seal(MixingKey::new([1; 32])).unwrap();
        let sums: Vec<i64> = (0..2 * ROWS as i64).map(|i| i * i % 1_000_003 - 500_000).collect();
        let (folder, key) = (tempfile::tempdir().unwrap(), key());
        let whole = Release::new(&study, "north", std::slice::from_ref(&sums), Some(&key)).unwrap();
        let outline = Outline::new(&study, "north", &[], Some(&key)).unwrap();
        let path = folder.path().join("a");
        for length in [1 << 17, 1000, 1_000_003, 2 * ROWS] {
            let (pending, written) =
                outline.write(&path, Existing::Replace, || Ok(pieces(&sums, length))).unwrap();
            assert_eq!(pending.is_some(), length == 1 << 17, "what is there already is not written again");
            if let Some(pending) = pending {
                pending.publish().unwrap();
            }
            assert_eq!(written.content_hash, whole.content_hash());
            assert_eq!(written.signer.as_ref(), whole.signer());
        }
        assert!(fs::read(&path).unwrap() == file(&whole));
        let file = fs::File::open(&path).unwrap();
        let builder = parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
        let groups = builder.metadata().row_groups().iter().map(|group| group.num_rows() as usize);
        assert!(groups.eq([1 << 19, ROWS - (1 << 19)]));
        let back = Release::read(&path).unwrap();
        assert!(back.columns() == whole.columns());

        // What differs anywhere is written anew if that is asked for, and never otherwise.
        let mut other = sums;
        *other.last_mut().unwrap() += 1;
        let kept = outline.write(&path, Existing::Keep, || Ok(pieces(&other, 1000)));
        assert!(matches!(kept, Err(Error::Exists { .. })));
        let (pending, written) =
            outline.write(&path, Existing::Replace, || Ok(pieces(&other, 1000))).unwrap();
        pending.unwrap().publish().unwrap();
        assert_ne!(written.content_hash, whole.content_hash());
        assert_eq!(Release::read(&path).unwrap().content_hash(), written.content_hash);

        // Sums that cannot be had leave nothing behind.
        let fail = || Ok([Ok(vec![1, 2]), Err(Error::Stages)].into_iter());
        let failed = outline.write(&folder.path().join("b"), Existing::Keep, fail);
        assert!(matches!(failed, Err(Error::Stages)));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    /// Whoever forges an unsigned release can make its hash right; what it says must still follow
    /// from the study.
    #[test]
    fn forged_records_are_refused_though_their_hash_is_right() {
        type Forgery = fn(&mut ReleaseRecord, &mut Columns);
        let forgeries: [(&str, Forgery); 5] = [
            ("noise", |record, _| record.stages[0].noise[0].sigma = 1),
            ("noise", |record, _| record.stages[0].share = 5),
            ("statement", |record, _| record.statement = vec!["ε = 0.0001".to_owned()]),
            ("columns", |record, _| record.columns = vec!["years".to_owned()]),
            ("noise units", |_, columns| {
                *columns = Columns::new(columns.names().to_vec(), vec![vec![0.1, 0.2, 0.3, 0.4]]);
            }),
        ];
        for (word, forge) in forgeries {
            let Release { study, mut record, mut columns, .. } = release("north");
            record.signature = None;
            forge(&mut record, &mut columns);
            record.content_hash =
                hex::encode(content_hash(&record.manifest(&study, false), columns.hashes()));
            refused(read(&bytes(&columns, &record.manifest(&study, true)), Release::read), word);
        }
    }

    /// A calibrated release with made-up sums.
    fn calibrated() -> Release {
        let text = pair().to_string().replace("method = \"rmgm\"\n", "");
        let study = Draft::parse(&text).unwrap().seal(MixingKey::new([1; 32])).unwrap();
        let mut noised = Vec::new();
        while let Some(stage) = study.stage("north", &noised).unwrap() {
            noised.push((0..stage.coordinates() as i64).map(|i| 1000 * i - 70_000).collect());
        }
        Release::new(&study, "north", &noised, None).unwrap()
    }

    #[test]
    fn a_calibrated_release_comes_back_as_it_was() {
        let release = calibrated();
        let back = read(&file(&release), Release::read).unwrap();
        assert_eq!(back.earlier_sums(), release.earlier_sums());
        assert_eq!(back.earlier_sums().len(), 3);
        assert_eq!(back.mixed_stage(), release.mixed_stage());
        assert!(file(&release) == file(&back));
    }

    #[test]
    fn forged_stages_are_refused_though_their_hash_is_right() {
        type Forgery = fn(&mut ReleaseRecord);
        fn sums(record: &mut ReleaseRecord, stage: usize) -> &mut Vec<String> {
            match &mut record.stages[stage].result {
                ResultRecord::Sums(sums) => sums,
                ResultRecord::Columns { .. } => unreachable!(),
            }
        }
        let forgeries: [(&str, Forgery); 9] = [
            // Sums that do not give the parameters of the next stage.
            ("noise", |record| sums(record, 1)[1] = "13000000000".to_owned()),
            ("noise", |record| sums(record, 2)[0] = "5".to_owned()),
            ("noise", |record| record.stages[1].noise[0].sigma -= 1),
            ("noise", |record| record.stages[2].share += 4),
            ("noise", |record| record.stages[3].norm_squared = Some(1)),
            ("noise", |record| record.stages[3].columns[0].scale *= 2.0),
            ("stages", |record| sums(record, 1).push("0".to_owned())),
            ("stages", |record| sums(record, 1)[0] = "1.5".to_owned()),
            ("stages", |record| drop(record.stages.remove(1))),
        ];
        for (word, forge) in forgeries {
            let Release { study, mut record, columns, .. } = calibrated();
            forge(&mut record);
            record.content_hash =
                hex::encode(content_hash(&record.manifest(&study, false), columns.hashes()));
            refused(read(&bytes(&columns, &record.manifest(&study, true)), Release::read), word);
        }
    }

    #[test]
    fn changed_values_hashes_and_signatures_are_refused() {
        let Release { study, record, columns, .. } = release("north");
        let other = Release::new(&study, "north", &[vec![5, -7, 100_001, 3]], None).unwrap();
        refused(read(&bytes(&other.columns, &record.manifest(&study, true)), Release::read), "hash");

        let mut manifest = record.manifest(&study, true);
        let flip = |text: &str| {
            let digit = if text.starts_with('0') { "1" } else { "0" };
            format!("{digit}{}", &text[1..])
        };
        for field in ["signature", "public_key"] {
            let mut forged = manifest.clone();
            let text = flip(forged["signature"][field].as_str().unwrap());
            forged["signature"][field] = text.into();
            refused(read(&bytes(&columns, &forged), Release::read), "signature");
        }
        manifest["study_id"] = flip(manifest["study_id"].as_str().unwrap()).into();
        refused(read(&bytes(&columns, &manifest), Release::read), "id");
    }

    #[test]
    fn datasets_keep_each_column_in_its_place() {
        let study = study();
        let (north, south) = (release("north"), release("south"));
        let dataset =
            PublicDataset::join(&study, &[south.clone(), north.clone()], Completeness::All).unwrap();
        assert_eq!(dataset.columns().names(), ["age", "pressure"]);
        // The same file with the parties exchanged, or one of them twice, and the hash made right.
        let forge = |releases: [&Release; 2]| {
            let mut columns = Columns::new(Vec::new(), Vec::new());
            for release in releases {
                columns.extend(&release.columns);
            }
            let records: Vec<Value> =
                releases.iter().map(|release| serde_json::to_value(&release.record).unwrap()).collect();
            let mut manifest = serde_json::json!({
                "potluck": "dataset", "format": crate::FORMAT, "study_id": study.id(), "study": study.to_json(),
                "releases": records, "software": SOFTWARE,
            });
            manifest["content_hash"] = hex::encode(content_hash(&manifest, columns.hashes())).into();
            read(&bytes(&columns, &manifest), PublicDataset::read)
        };
        forge([&north, &south]).unwrap();
        refused(forge([&south, &north]), "order");
        refused(forge([&north, &north]), "order");
    }
}
