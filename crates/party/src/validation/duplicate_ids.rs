//! Which rows have an id that an earlier row has.

use std::collections::HashMap;
use std::hash::RandomState;

use crate::pass::same_id;
use crate::table::convert::Converter;
use crate::{Error, Table};

use super::tally::Tally;

/// Repeated fingerprints whose ids are held at a time.
const AT_A_TIME: usize = 1 << 20;

/// Reads the ids with these fingerprints again: how many rows have the id of an earlier one, and
/// the error for the first of them.
pub(super) fn count_duplicates(
    table: &Table,
    id_columns: &[String],
    converter: &Converter<'_>,
    repeated: &[u64],
    hash: &RandomState,
) -> Result<(u64, Option<Error>), Error> {
    let mut duplicates = 0;
    let mut earliest: Option<(u64, u64)> = None;
    for repeated in repeated.chunks(AT_A_TIME) {
        let mut rows: HashMap<String, u64> = HashMap::new();
        let (_, batches) = table.batches(id_columns)?;
        let mut first = 0;
        for batch in batches {
            let batch = batch?;
            let mut ids = Tally::new(std::iter::empty(), false);
            ids.add_ids(converter, first, &batch, &mut |first, ids| {
                for (index, fingerprint) in ids.fingerprints(hash).iter().enumerate() {
                    if repeated.binary_search(fingerprint).is_err() {
                        continue;
                    }
                    let row = first + index as u64 + 1;
                    let known = *rows.entry(ids.text(index)).or_insert(row);
                    if known != row {
                        duplicates += 1;
                        if earliest.is_none_or(|(earliest, _)| row < earliest) {
                            earliest = Some((row, known));
                        }
                    }
                }
                Ok(())
            })?;
            first += batch.num_rows() as u64;
        }
    }
    Ok((
        duplicates,
        earliest.map(|(row, earlier)| same_id(table.name(), &id_columns.join(", "), row, earlier)),
    ))
}
