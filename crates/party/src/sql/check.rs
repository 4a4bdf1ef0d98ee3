//! What a validation counts, asked of an engine: one query before a release, which reads the table
//! twice and computes no sum that a release is made of.
//!
//! It follows crates/party/src/validation/tally.rs count by count, but for letters of ids, of which
//! it knows those of English only. It never asks for levels themselves.

use potluck_release::Study;
use potluck_release::study::{Domain, IdKind};
use sha2::{Digest, Sha256};

use super::query::{Writer, step_name};
use super::results::Results;
use super::source::Source;
use crate::validation::{ColumnCounts, Counted, FAR, Found, IdCounts, Kind, NARROW, Validation, nothing};
use crate::{Error, Refusal};

/// Version of the result's form.
const FORMAT: u32 = 1;

/// Counts of a column of numbers, and of one of levels.
const OF_NUMBERS: usize = 8;
const OF_LEVELS: usize = 3;
/// Counts of ids.
const OF_IDS: usize = 7;

/// The query of a validation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckQuery {
    /// The SQL, one statement, without a semicolon.
    pub text: String,
    /// What its result must carry to be taken for it.
    pub fingerprint: String,
}

impl CheckQuery {
    /// The query for a party's table; the study need not be sealed.
    pub fn new(study: &Study, party: &str, source: &Source) -> Result<Self, Error> {
        let stage = study.first_stage(party)?;
        let writer = Writer::new(study, party, &stage, source)?;
        let steps = [
            vec![writer.step("held", &writer.stored_values(), &source.quoted_table())],
            vec![writer.step("looked_at", &writer.looked_at(), &step_name("held"))],
            vec![writer.column_counts()],
            writer.id_counts(),
            vec![writer.types()],
        ];
        let body = format!("WITH {}", steps.concat().join(",\n"));
        let mut hash = Sha256::new();
        for field in [&format!("potluck check {FORMAT}"), party, body.as_str()] {
            hash.update((field.len() as u64).to_le_bytes());
            hash.update(field);
        }
        let fingerprint = hex::encode(hash.finalize());
        let parts: String = ["types", "ids", "columns"]
            .map(|part| {
                let name = step_name(&format!("{part}_part"));
                format!("\nUNION ALL SELECT part, number, value FROM {name}")
            })
            .concat();
        let text = format!(
            "-- potluck: counts for a validation by party {party}; nothing is released\n{body}\nSELECT 'query' AS part, CAST(0 AS bigint) AS number, '{fingerprint}' AS value{parts}"
        );
        Ok(Self { text, fingerprint })
    }

    /// What its result says of the table.
    pub fn take(
        &self,
        study: &Study,
        party: &str,
        source: &Source,
        results: &Results,
    ) -> Result<Validation, Error> {
        if results.fingerprint()? != self.fingerprint {
            return Err(results.problem(
                "is not the result of the query for this study, party and table; run the query again and hand in what it gives",
            ));
        }
        let party = study.own_party(party)?;
        let mut problems = Vec::new();
        if let Some(types) = results.optional("types")?
            && let Err(error) = source.check_types(study, party.name(), types)
        {
            problems.push(Found { error, more: 0 });
        }
        let ids = results.counts("ids")?;
        let &[rows, different, nameless, leading_zeros, capitals, small, blanks] = ids.as_slice() else {
            return Err(results.not_a_result());
        };
        let mut counts = results.counts("columns")?.into_iter();
        let mut columns = Vec::new();
        for (at, column) in party.columns().iter().enumerate() {
            let mut found = nothing(column, false);
            let width = if matches!(column.domain(), Domain::Numeric(_)) { OF_NUMBERS } else { OF_LEVELS };
            let own: Vec<u64> = counts.by_ref().take(width).collect();
            fill(&mut found, &own).ok_or_else(|| results.not_a_result())?;
            let refused = refused(&found, column.refuses_missing(), column.refuses_unknown());
            if refused > 0 {
                let error = source.refused_values(&party.columns()[at]).refusing(Refusal::Value);
                problems.push(Found { error, more: refused - 1 });
            }
            columns.push(found);
        }
        let of_id = |reason, problem: &str, rows: u64| Found {
            error: source.column_problem(&source.id_name(), problem).refusing(reason),
            more: rows - 1,
        };
        if nameless > 0 {
            problems.push(of_id(Refusal::Id, "ids are missing; every row needs one", nameless));
        }
        let duplicates = rows.saturating_sub(different).saturating_sub(nameless);
        if duplicates > 0 {
            let what = "the same id stands in several rows; a table has one row for each subject";
            problems.push(of_id(Refusal::DuplicateId, what, duplicates));
        }
        let counted = IdCounts { rows, duplicates, leading_zeros, capitals, small, blanks };
        let ids = (study.definition().id_kind() != IdKind::Row).then_some(counted);
        let counted = Counted { rows, ids, columns, problems };
        Ok(Validation::of_counts(study, party, source.name(), &source.id_name(), counted))
    }
}

/// How many values are refused.
fn refused(counts: &ColumnCounts, missing: bool, unknown: bool) -> u64 {
    let unknown = match &counts.kind {
        Kind::Levels(levels) if unknown => levels.unknown,
        // Those that count as missing are refused where missing ones are.
        Kind::Levels(levels) if missing && levels.unknown_is_missing() => levels.unknown,
        _ => 0,
    };
    unknown + if missing { counts.missing } else { 0 }
}

fn fill(counts: &mut ColumnCounts, own: &[u64]) -> Option<()> {
    match (&mut counts.kind, own) {
        (Kind::Numbers(numbers), &[missing, below, above, at_low, at_high, far, constant, narrow]) => {
            counts.missing = missing;
            (numbers.below, numbers.above) = (below, above);
            (numbers.at_low, numbers.at_high) = (at_low, at_high);
            numbers.far = far;
            counts.constant = constant == 1;
            numbers.narrow = narrow == 1;
        }
        (Kind::Levels(levels), &[missing, unknown, constant]) => {
            counts.missing = missing;
            levels.unknown = unknown;
            counts.constant = constant == 1;
        }
        _ => return None,
    }
    Some(())
}

impl Results {
    /// The one row of a part, if there is any.
    fn optional(&self, part: &str) -> Result<Option<&str>, Error> {
        if self.has(part) { self.only(part).map(Some) } else { Ok(None) }
    }
}

impl Writer<'_> {
    /// Numbers that are no numbers become NULL; levels become whether they are known.
    fn looked_at(&self) -> Vec<(String, String)> {
        let (dialect, _) = self.speaks();
        let mut columns = Vec::new();
        for (i, column) in self.columns().iter().enumerate() {
            match column.domain() {
                Domain::Numeric(_) => {
                    let size = dialect.call("abs", &[&format!("x{i}")]);
                    let finite = format!("{size} <= {}", dialect.double(f64::MAX));
                    columns.push((format!("CASE WHEN {finite} THEN x{i} END"), format!("x{i}")));
                }
                Domain::Categorical { levels, .. } => {
                    let known: Vec<String> = levels.iter().map(|level| dialect.text(level)).collect();
                    let known = format!("t{i} IN ({})", known.join(", "));
                    columns.push((format!("t{i}"), format!("t{i}")));
                    columns.push((format!("CASE WHEN {known} THEN t{i} END"), format!("k{i}")));
                }
            }
        }
        columns
    }

    /// One row with the counts of all columns.
    fn column_counts(&self) -> String {
        let (dialect, _) = self.speaks();
        let mut counts = Vec::new();
        for (i, column) in self.columns().iter().enumerate() {
            match column.domain() {
                Domain::Numeric(bounds) => {
                    let (x, lo, hi) =
                        (format!("x{i}"), dialect.double(bounds.lo()), dialect.double(bounds.hi()));
                    let middle = dialect.double(bounds.midpoint());
                    let distance = dialect.call("abs", &[&format!("{x} - {middle}")]);
                    let (least, most) = (dialect.call("min", &[&x]), dialect.call("max", &[&x]));
                    let narrow = format!(
                        "{least} < {most} AND {least} >= {lo} AND {most} <= {hi} AND ({most} - {least}) * {} < {}",
                        dialect.double(NARROW),
                        dialect.double(bounds.hi() - bounds.lo())
                    );
                    counts.extend([
                        self.how_many(&format!("{x} IS NULL")),
                        self.how_many(&format!("{x} < {lo}")),
                        self.how_many(&format!("{x} > {hi}")),
                        self.how_many(&format!("{x} = {lo}")),
                        self.how_many(&format!("{x} = {hi}")),
                        self.how_many(&format!("{distance} > {}", dialect.double(FAR * bounds.half_width()))),
                        format!("CASE WHEN {least} = {most} THEN 1 ELSE 0 END"),
                        format!("CASE WHEN {narrow} THEN 1 ELSE 0 END"),
                    ]);
                }
                Domain::Categorical { .. } => {
                    let unknown = self.how_many(&format!("t{i} IS NOT NULL AND k{i} IS NULL"));
                    let known = dialect.call("count", &[&format!("DISTINCT k{i}")]);
                    counts.push(self.how_many(&format!("t{i} IS NULL")));
                    counts.push(unknown.clone());
                    counts.push(format!("CASE WHEN {known} = 1 AND {unknown} = 0 THEN 1 ELSE 0 END"));
                }
            }
        }
        self.part("columns", "CAST(0 AS bigint)", &dialect.joined(&counts), &step_name("looked_at"))
    }

    /// How many rows, different ids, rows without an id, and ids that others may write differently
    /// there are.
    fn id_counts(&self) -> Vec<String> {
        let (dialect, source) = self.speaks();
        let text = dialect.plain_text_of(&source.id());
        let held = [(self.id(), "id".to_owned()), (text, "written".to_owned())];
        let nameless = if self.id_is_text() { "id IS NULL OR written = ''" } else { "id IS NULL" };
        let different = format!("DISTINCT CASE WHEN {nameless} THEN NULL ELSE id END");
        let matches = |pattern: &str| self.how_many(&dialect.matches("written", pattern));
        let mut counts = vec![
            dialect.call("count", &["*"]),
            dialect.call("count", &[&different]),
            self.how_many(nameless),
        ];
        counts.extend(["(^|[^0-9])0[0-9]", "[A-Z]", "[a-z]", "[ \t]"].map(matches));
        assert_eq!(counts.len(), OF_IDS, "as many counts as are read");
        vec![
            self.step("ids", &held, &source.quoted_table()),
            self.part("ids", "CAST(0 AS bigint)", &dialect.joined(&counts), &step_name("ids")),
        ]
    }

    /// In how many rows something holds.
    fn how_many(&self, what: &str) -> String {
        self.speaks().0.call("count", &[&format!("CASE WHEN {what} THEN 1 END")])
    }
}
