//! A table in memory: Arrow batches as other software hands them over, without copying them.

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};

use super::{Batch, Batches, Parts};
use crate::Error;

/// Arrow batches of one schema. No `Debug`: these are the private values themselves.
pub(super) struct Held {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
}

impl Held {
    /// Takes all that a reader has.
    pub(super) fn take(reader: &mut dyn RecordBatchReader) -> Result<Self, ArrowError> {
        let schema = reader.schema();
        let mut batches = Vec::new();
        for batch in reader {
            let batch = batch?;
            if batch.num_rows() > 0 {
                batches.push(batch);
            }
        }
        Ok(Self { schema, batches })
    }

    pub(super) fn column_names(&self) -> Vec<String> {
        self.schema.fields().iter().map(|field| field.name().clone()).collect()
    }

    /// Batches are parts; each is handed on in slices of `size` rows, so that threads can share
    /// one.
    pub(super) fn parts<'a>(&'a self, name: &'a str, positions: Vec<usize>, size: usize) -> Parts<'a> {
        let mut first_rows = Vec::with_capacity(self.batches.len());
        let mut rows = 0;
        for batch in &self.batches {
            first_rows.push(rows);
            rows += batch.num_rows() as u64;
        }
        let open = move |part: Option<usize>| {
            let chosen = part.map_or(&self.batches[..], |part| std::slice::from_ref(&self.batches[part]));
            let projected = chosen.iter().map(|batch| batch.project(&positions));
            let projected = projected.collect::<Result<Vec<_>, _>>().map_err(|_| super::damaged(name))?;
            let batches: Batches = Box::new(projected.into_iter().flat_map(move |batch| slices(batch, size)));
            Ok(batches)
        };
        Parts { name, text: false, first_rows, rows: Some(rows), open: Box::new(open) }
    }
}

fn slices(batch: RecordBatch, size: usize) -> impl Iterator<Item = Result<Batch, Error>> + Send {
    let rows = batch.num_rows();
    (0..rows).step_by(size).map(move |at| Ok(Batch::Decoded(batch.slice(at, size.min(rows - at)))))
}
