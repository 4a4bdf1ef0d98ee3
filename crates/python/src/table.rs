//! What Python calls a table: a file, or anything that hands over Arrow batches by the PyCapsule
//! interface.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use arrow_array::cast::AsArray;
use arrow_array::{
    Array, ArrayRef, GenericStringArray, OffsetSizeTrait, RecordBatch, RecordBatchIterator,
    RecordBatchOptions, RecordBatchReader, StringViewArray,
};
use arrow_schema::{ArrowError, DataType, Schema};
use potluck_party::Table;
use potluck_release::guard::guarded;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyString;
use pyo3_arrow::{PyArrayReader, PyRecordBatch, PySchema};

use crate::dataset::PublicDataset;
use crate::errors::{Error, is_ours, while_handing_over};
use crate::work::{self, handle_signals};

/// What becomes of a stream, which can be read only once, while it is needed several times.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keeping<'a> {
    /// Its batches are held in memory as they are.
    All,
    /// The same while they fit into so many bytes; beyond that they go to an unnamed private file
    /// in this folder.
    Memory(u64, &'a Path),
    /// They go to an unnamed private file in this folder.
    Disk(&'a Path),
}

impl<'a> Keeping<'a> {
    /// On disk if it shall be spooled.
    pub(crate) fn spooled(spool: bool, tmp: &'a Path) -> Self {
        if spool { Self::Disk(tmp) } else { Self::All }
    }
}

/// A table that was handed to us, of which no row has been read.
pub(crate) enum Given<'a, 'py> {
    /// The path of a file.
    File(PathBuf),
    /// An object that speaks the Arrow PyCapsule interface, and what to call it in messages.
    Object(&'a Bound<'py, PyAny>, String),
}

impl<'a, 'py> Given<'a, 'py> {
    /// Refuses what is no table.
    pub(crate) fn new(data: &'a Bound<'py, PyAny>) -> Result<Self, Error> {
        if data.is_instance_of::<PyString>() || data.hasattr("__fspath__")? {
            return Ok(Self::File(data.extract()?));
        }
        if data.is_instance_of::<PublicDataset>() {
            return Err(Error::Usage(
                "data is a PublicDataset, whose rows are mixed and stand for many people each; give a table with one row for each person"
                    .to_owned(),
            ));
        }
        let kind = data.get_type().name()?;
        if !data.hasattr("__arrow_c_stream__")? && !data.hasattr("__arrow_c_array__")? {
            return Err(PyTypeError::new_err(format!(
                "data is a {kind}; give the path of a CSV, Parquet or Arrow file, or a table that speaks the Arrow PyCapsule interface, such as one of pandas, polars, pyarrow or DuckDB"
            ))
            .into());
        }
        // Ours know what people call it.
        let name = data.getattr("_potluck_name").and_then(|name| name.extract());
        Ok(Self::Object(data, name.unwrap_or_else(|_| format!("the {kind}"))))
    }

    /// The path, if that is what it is.
    pub(crate) fn path(&self) -> Option<&Path> {
        match self {
            Self::File(path) => Some(path),
            Self::Object(..) => None,
        }
    }

    /// What to call it in messages, and the names of its columns if an object tells them without
    /// being read.
    pub(crate) fn names(&self, keep: Option<&[String]>) -> Result<Option<(&str, Vec<String>)>, Error> {
        let Self::Object(data, name) = self else { return Ok(None) };
        let own = data.extract::<PySchema>();
        // Ours tell what is wrong, before anybody is asked.
        if let Err(error) = &own
            && is_ours(data.py(), error)
        {
            return Err(error.clone_ref(data.py()).into());
        }
        // What pyarrow has.
        let schema = own.or_else(|_| data.getattr("schema").and_then(|schema| schema.extract::<PySchema>()));
        Ok(schema.ok().map(|schema| (name.as_str(), kept_names(schema.as_ref(), keep))))
    }

    /// Opens the file, or takes the batches of the object; with `keep`, only the columns of these
    /// names.
    pub(crate) fn open(
        self,
        py: Python<'py>,
        keep: Option<&[String]>,
        keeping: Keeping<'_>,
        tmp: &Path,
    ) -> Result<Table, Error> {
        let (data, name) = match self {
            Self::File(path) => {
                // A file of this name, not standard input.
                let path = if path == Path::new("-") { Path::new("./-").to_owned() } else { path };
                return work::away(py, || Table::open(&path, tmp));
            }
            Self::Object(data, name) => (data, name),
        };
        let batches = guarded(|| StructBatches::of(data))?.map_err(|error| {
            if error.is_instance_of::<PyValueError>(py) && has_columns_of_one_name(data) {
                return Error::Input(format!(
                    "{name} has several columns of the same name; rename or remove all but one of each"
                ));
            }
            while_handing_over(py, &name, error)
        })?;
        let kept = kept_names(&batches.schema, keep);
        let stopped = Mutex::new(None);
        let table = work::away(py, || {
            let reader = checked(batches, &name, &kept, &stopped);
            match keeping {
                Keeping::All => Table::hold(&name, reader, Some(&kept)),
                Keeping::Memory(most, tmp) => Table::gather(&name, reader, Some(&kept), most, tmp),
                Keeping::Disk(tmp) => Table::spool_batches(&name, reader, Some(&kept), tmp),
            }
        });
        match stopped.into_inner() {
            Ok(Some(error)) => Err(error),
            _ => table,
        }
    }
}

/// Opens a file, or takes the batches of an object; with `keep`, only the columns of these names.
pub(crate) fn open(
    data: &Bound<'_, PyAny>,
    keep: Option<&[String]>,
    keeping: Keeping<'_>,
    tmp: &Path,
) -> Result<Table, Error> {
    Given::new(data)?.open(data.py(), keep, keeping, tmp)
}

/// The columns that are asked for. The index that pandas adds to what it hands over is not a column
/// of the table.
fn kept_names(schema: &Schema, keep: Option<&[String]>) -> Vec<String> {
    let is_kept = |name: &&String| match keep {
        Some(keep) => keep.contains(name),
        None => !(name.starts_with("__index_level_") && name.ends_with("__")),
    };
    schema.fields().iter().map(|field| field.name()).filter(is_kept).cloned().collect()
}

/// Whether that is why a DataFrame of pandas cannot be handed over.
fn has_columns_of_one_name(data: &Bound<'_, PyAny>) -> bool {
    let unique = data.getattr("columns").and_then(|columns| columns.getattr("is_unique"));
    unique.and_then(|unique| unique.is_truthy()).is_ok_and(|unique| !unique)
}

/// The batches of an object, each a struct whose fields are the columns.
struct StructBatches {
    schema: Arc<Schema>,
    structs: Box<dyn Iterator<Item = Result<ArrayRef, ArrowError>> + Send>,
}

impl StructBatches {
    fn of(data: &Bound<'_, PyAny>) -> PyResult<Self> {
        if data.hasattr("__arrow_c_array__")? {
            let batch = data.extract::<PyRecordBatch>()?.into_inner();
            let (schema, rows) = (batch.schema(), arrow_array::StructArray::from(batch));
            return Ok(Self { schema, structs: Box::new(std::iter::once(Ok(Arc::new(rows) as ArrayRef))) });
        }
        let structs = data.extract::<PyArrayReader>()?.into_reader()?;
        let field = structs.field();
        let DataType::Struct(fields) = field.data_type() else {
            return Err(PyTypeError::new_err("a stream of something else than batches"));
        };
        Ok(Self { schema: Arc::new(Schema::new(fields.clone())), structs: Box::new(structs) })
    }

    fn batch(&self, rows: &ArrayRef) -> Result<RecordBatch, ArrowError> {
        let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
        RecordBatch::try_new_with_options(self.schema.clone(), rows.as_struct().columns().to_vec(), &options)
    }
}

/// The batches as a reader, which lets Python handle signals before each and believes the other
/// side nothing that would be undefined behaviour further on. It ends with an error where a handler
/// raises, or where a column of `kept` is not sound; which one goes to `stopped`.
fn checked<'a>(
    mut batches: StructBatches,
    name: &'a str,
    kept: &'a [String],
    stopped: &'a Mutex<Option<Error>>,
) -> Box<dyn RecordBatchReader + 'a> {
    let schema = batches.schema.clone();
    let stop = |error: Error| {
        if let Ok(mut stopped) = stopped.lock() {
            *stopped = Some(error);
        }
        Some(Err(ArrowError::ExternalError("stopped".into())))
    };
    let columns: Vec<usize> =
        (0..schema.fields().len()).filter(|&at| kept.contains(schema.field(at).name())).collect();
    let mut soundness: Vec<Soundness> = columns.iter().map(|_| Soundness::default()).collect();
    let next = move || {
        if let Err(error) = handle_signals() {
            return stop(error.into());
        }
        // Arrow asserts where an error comes without a message, or buffers are not there.
        let next = guarded(|| batches.structs.next());
        let rows = match next.unwrap_or_else(|_| Some(Err(ArrowError::CDataInterface(String::new()))))? {
            Ok(rows) => rows,
            Err(error) => return Some(Err(error)),
        };
        if rows.null_count() > 0 {
            return stop(Error::Input(format!("{name} has rows that are null as a whole; remove them")));
        }
        for (&at, soundness) in columns.iter().zip(&mut soundness) {
            if !soundness.of(rows.as_struct().column(at)) {
                return stop(Error::Input(format!(
                    "{name}, column {:?}: is not sound: it holds text that is not UTF-8, or what points to its values points elsewhere; make the column again, with text as UTF-8",
                    batches.schema.field(at).name()
                )));
            }
        }
        Some(batches.batch(&rows))
    };
    Box::new(RecordBatchIterator::new(std::iter::from_fn(next), schema))
}

/// Whether the batches of a column are what Arrow takes for granted: text is UTF-8, and offsets and
/// keys point to values.
#[derive(Default)]
struct Soundness {
    /// The dictionary that was looked at last: batches share one.
    dictionary: Option<ArrayRef>,
}

impl Soundness {
    fn of(&mut self, array: &ArrayRef) -> bool {
        match array.data_type() {
            DataType::Null | DataType::Boolean => true,
            // The lengths of their buffers follow from the number of values.
            kind if kind.is_primitive() => true,
            DataType::Utf8 => is_text(array.as_string::<i32>()),
            DataType::LargeUtf8 => is_text(array.as_string::<i64>()),
            DataType::Utf8View => {
                let views = array.as_string_view();
                let (buffers, nulls) = (views.data_buffers().to_vec(), views.nulls().cloned());
                StringViewArray::try_new(views.views().clone(), buffers, nulls).is_ok()
            }
            DataType::Dictionary(..) => {
                let values = array.as_any_dictionary().values();
                let known = |known: &ArrayRef| known.to_data().ptr_eq(&values.to_data());
                if !self.dictionary.as_ref().is_some_and(known) {
                    if !Self::default().of(values) {
                        return false;
                    }
                    self.dictionary = Some(values.clone());
                }
                // The keys.
                array.to_data().validate_values().is_ok()
            }
            _ => array.to_data().validate_full().is_ok(),
        }
    }
}

/// Looks only at the part of a longer text that belongs to the array.
fn is_text<O: OffsetSizeTrait>(array: &GenericStringArray<O>) -> bool {
    let offsets = array.value_offsets();
    let (first, last) = (offsets[0].as_usize(), offsets[offsets.len() - 1].as_usize());
    let Some(Ok(text)) = array.value_data().get(first..last).map(str::from_utf8) else { return false };
    offsets.is_sorted() && offsets.iter().all(|offset| text.is_char_boundary(offset.as_usize() - first))
}
