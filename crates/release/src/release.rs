//! A release: what one party publishes, once, under a study.

use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::columns::Columns;
use crate::files::{Audience, Existing, write_file};
use crate::signing::{PublicKey, Signature, SigningKey};
use crate::statement;
use crate::study::{MIXED, MixedRows, Study};
use crate::{Error, FORMAT, SOFTWARE};

const KIND: &str = "release";

/// One noised statistic of a release, as it stands in the manifest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StageRecord {
    /// Which statistic.
    name: String,
    /// Its part of μ², out of 2²⁰.
    share: u32,
    /// Number of rows of sums.
    rows: u64,
    /// Squared radius of the row-norm ball, in units of 1/Q².
    norm_squared: u64,
    /// Noise scale of every sum.
    sigma: u64,
    /// A published value is the noised integer sum divided by this.
    scale: f64,
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
    /// The record that follows from the study, without hash and signature.
    fn expected(study: &Study, party: &str) -> Result<Self, Error> {
        let mixed = study.mixed_rows(party)?;
        Ok(Self {
            party: party.to_owned(),
            columns: mixed.names.clone(),
            stages: vec![StageRecord {
                name: MIXED.to_owned(),
                share: potluck_core::accounting::Share::WHOLE.parts(),
                rows: mixed.k,
                norm_squared: mixed.ball.norm_squared(),
                sigma: mixed.sigma,
                scale: mixed.scale(),
            }],
            statement: statement::of_release(study, party)?,
            software: SOFTWARE.to_owned(),
            content_hash: String::new(),
            signature: None,
        })
    }

    /// The whole manifest, in the form that is hashed or, with hash and signature, in the form that is stored.
    fn manifest(&self, study: &Study, sealed: bool) -> Value {
        manifest(KIND, study, self, if sealed { &[] } else { &["content_hash", "signature"] })
    }

    /// Checks everything that this record says about `columns` under `study`, and returns who signed it.
    pub(crate) fn verify(
        &self,
        study: &Study,
        columns: &Columns,
        path: &Path,
    ) -> Result<Option<PublicKey>, Error> {
        let expected = Self::expected(study, &self.party)?;
        if self.columns != expected.columns || columns.names() != expected.columns {
            return Err(Error::tampered(path, "its columns are not those of the study"));
        }
        if self.software == expected.software && self.statement != expected.statement {
            return Err(Error::tampered(path, "its privacy statement is not that of the study"));
        }
        if self.stages != expected.stages {
            return Err(Error::tampered(path, "its noise or row norm is not that of the study"));
        }
        let mixed = study.mixed_rows(&self.party)?;
        if columns.rows() as u64 != mixed.k {
            return Err(Error::tampered(path, "it does not have the study's number of rows"));
        }
        if !columns.values().iter().flatten().all(|&value| on_grid(value, &mixed)) {
            return Err(Error::tampered(path, "a value is not a whole number of noise units"));
        }
        let hash = columns.content_hash(&self.manifest(study, false));
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
fn on_grid(value: f64, mixed: &MixedRows) -> bool {
    let sum = (value * mixed.scale()).round();
    sum.abs() <= potluck_core::noise::NOISED_SUM_LIMIT as f64
        && (sum / mixed.scale()).to_bits() == value.to_bits()
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
    /// Puts together the release of `party` from its noised sums (row by row).
    pub fn new(
        study: &Study,
        party: &str,
        noised: &[i64],
        signing_key: Option<&SigningKey>,
    ) -> Result<Self, Error> {
        let mixed = study.mixed_rows(party)?;
        let width = mixed.names.len();
        assert_eq!(noised.len() as u64, mixed.k * width as u64, "one noised sum a row and column");
        let column =
            |j: usize| noised.iter().skip(j).step_by(width).map(|&sum| sum as f64 / mixed.scale()).collect();
        let columns = Columns::new(mixed.names.clone(), (0..width).map(column).collect());
        let mut record = ReleaseRecord::expected(study, party)?;
        let hash = columns.content_hash(&record.manifest(study, false));
        record.content_hash = hex::encode(hash);
        record.signature = signing_key.map(|key| key.sign(&hash));
        let signer = signing_key.map(SigningKey::public);
        Ok(Self { study: study.clone(), record, columns, signer })
    }

    /// Reads a release and verifies study, shape, grid, hash and signature.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let (columns, mut manifest) = Columns::read(path, KIND)?;
        let (study, record): (Study, ReleaseRecord) = split_manifest(&mut manifest, path)?;
        let signer = record.verify(&study, &columns, path)?;
        Ok(Self { study, record, columns, signer })
    }

    /// The file as bytes; the same release always gives the same bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.columns.to_parquet(&self.record.manifest(&self.study, true))
    }

    /// Writes the file.
    pub fn write(&self, path: &Path, existing: Existing) -> Result<(), Error> {
        write_file(path, &self.to_bytes(), existing, Audience::Public)
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

    pub(crate) fn record(&self) -> &ReleaseRecord {
        &self.record
    }
}

/// The manifest of a file of this kind: its record and the study, without some fields.
pub(crate) fn manifest(kind: &str, study: &Study, record: &impl Serialize, without: &[&str]) -> Value {
    let mut manifest = serde_json::to_value(record).expect("a record is plain data");
    let fields = manifest.as_object_mut().expect("a record is a JSON object");
    fields.insert("potluck".into(), kind.into());
    fields.insert("format".into(), FORMAT.into());
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
    fields.remove("format");
    let study = Study::from_json(&fields.remove("study").unwrap_or_default())?;
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
    use zeroize::Zeroizing;

    use super::*;
    use crate::dataset::{Completeness, PublicDataset};
    use crate::study::Draft;

    const STUDY: &str = "format = 1\n[study]\nname = \"t\"\nrows = 50\nid = \"integer\"\nk = 4\n[privacy]\nepsilon = 1.0\ndelta = 1e-5\n[[party]]\nname = \"north\"\n[[party.column]]\nname = \"age\"\nlo = 0\nhi = 100\n[[party]]\nname = \"south\"\n[[party.column]]\nname = \"pressure\"\nlo = 0\nhi = 200\n";

    fn study() -> Study {
        Draft::parse(STUDY).unwrap().seal(MixingKey::new([1; 32])).unwrap()
    }

    fn key() -> SigningKey {
        SigningKey::from_seed(&Zeroizing::new([9; 32]))
    }

    fn release(party: &str) -> Release {
        Release::new(&study(), party, &[5, -7, 100_000, 3], Some(&key())).unwrap()
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
        let back = read(&release.to_bytes(), Release::read).unwrap();
        assert_eq!(back.content_hash(), release.content_hash());
        assert_eq!(back.columns(), release.columns());
        assert_eq!(back.signer(), Some(&key().public()));
        assert_eq!(release.to_bytes(), back.to_bytes());
    }

    /// Whoever forges an unsigned release can make its hash right; what it says must still follow from the study.
    #[test]
    fn forged_records_are_refused_though_their_hash_is_right() {
        type Forgery = fn(&mut ReleaseRecord, &mut Columns);
        let forgeries: [(&str, Forgery); 5] = [
            ("noise", |record, _| record.stages[0].sigma = 1),
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
            record.content_hash = hex::encode(columns.content_hash(&record.manifest(&study, false)));
            refused(read(&columns.to_parquet(&record.manifest(&study, true)), Release::read), word);
        }
    }

    #[test]
    fn changed_values_hashes_and_signatures_are_refused() {
        let Release { study, record, columns, .. } = release("north");
        let other = Release::new(&study, "north", &[5, -7, 100_001, 3], None).unwrap();
        refused(read(&other.columns.to_parquet(&record.manifest(&study, true)), Release::read), "hash");

        let mut manifest = record.manifest(&study, true);
        let flip = |text: &str| {
            let digit = if text.starts_with('0') { "1" } else { "0" };
            format!("{digit}{}", &text[1..])
        };
        for field in ["signature", "public_key"] {
            let mut forged = manifest.clone();
            let text = flip(forged["signature"][field].as_str().unwrap());
            forged["signature"][field] = text.into();
            refused(read(&columns.to_parquet(&forged), Release::read), "signature");
        }
        manifest["study_id"] = flip(manifest["study_id"].as_str().unwrap()).into();
        refused(read(&columns.to_parquet(&manifest), Release::read), "id");
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
                "potluck": "dataset", "format": FORMAT, "study_id": study.id(), "study": study.to_json(),
                "releases": records, "software": SOFTWARE,
            });
            manifest["content_hash"] = hex::encode(columns.content_hash(&manifest)).into();
            read(&columns.to_parquet(&manifest), PublicDataset::read)
        };
        forge([&north, &south]).unwrap();
        refused(forge([&south, &north]), "order");
        refused(forge([&north, &north]), "order");
    }
}
