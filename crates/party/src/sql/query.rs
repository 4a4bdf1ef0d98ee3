//! One query a stage: its exact sums, and what has to be known of the table to trust them.
//!
//! A query is a chain of steps, each with a name, that follow crates/core/src/encoding/mod.rs
//! operation by operation:
//!
//! | step | of every row |
//! |---|---|
//! | `held` | what is stored: numbers as doubles (`x`), levels as text (`t`), the engine's hash of the id, its digest |
//! | `placed` | x clamped to its public bounds, minus their middle (`v`, NULL if missing); which level it is (`l`); where the subject is mixed to |
//! | `scaled` | v in the units of the stage (`y`) |
//! | `rounded` | integers (`q`) |
//! | `measured`, `pulled` | the factor that pulls the row into its ball, if it is outside; the row within it |
//! | `measured_again`, `pulled_again` | the same once more about the stage's centre |
//!
//! Cells of histograms are counted by steps of their own. The ids are read once more, to find
//! duplicates. What an engine reads there need not be what it
//! adds up (a view with a LIMIT has other rows every time), so both sides give two check sums over
//! the ids, and they must agree.
//!
//! Integers are sums of at most n terms of size C, and a study for which n·C reaches 2⁶² is
//! refused, so no 64-bit sum over the rows of a study can overflow; a table with more rows is
//! refused whatever its sums are.

use potluck_core::encoding::{Bins, Bounds, Encoder, NOWHERE, Presence, Q, Scaling};
use potluck_core::mixing::Mixing;
use potluck_core::stage::{Stage, Statistic, pairs};
use potluck_release::Study;
use potluck_release::remedy::{Problem, Remedy};
use potluck_release::study::{Column, Domain, IdKind, Unknown};
use sha2::{Digest, Sha256};

use super::dialect::{Dialect, whole};
use super::source::{Source, Stored};
use crate::Error;

/// Version of the result's form.
const FORMAT: u32 = 4;

/// The code of a missing level, and of a text that is no level.
const MISSING: i32 = -1;
const UNKNOWN: i32 = -2;

/// Quotients of this size and below count as 0, which they are after rounding in every stage
/// (docs/PRIVACY.md#engines).
const NEGLIGIBLE: f64 = 1e-100;

/// The engine's hashes of ids are added up modulo these: 2²⁶ and the largest prime below it.
/// Together they tell two sets of ids apart but for one case in 2⁵², and no sum over 2³⁷ rows
/// overflows.
pub(super) const MODULI: [u64; CHECKS] = [1 << 26, (1 << 26) - 5];

/// Rows of the part `cells` are numbered by this times the place of the column among those that are
/// counted, plus one more than the cell: more than there are cells.
pub(super) const CELLS: i64 = 1 << 10;

/// Number of check sums.
pub(super) const CHECKS: usize = 2;

/// The query of one stage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// The SQL, one statement, without a semicolon.
    pub text: String,
    /// What its result must carry to be taken for it.
    pub fingerprint: String,
    /// The stage's name.
    pub stage: &'static str,
    /// The stage's position, from 0.
    pub position: u32,
    /// The parts of its result beside the fingerprint.
    pub(super) parts: Vec<&'static str>,
    /// The same without what is added up: who the subjects are, and the types of the columns.
    pub of_ids: String,
    /// What gives every row to those that add it up themselves: the party's columns, those of the
    /// id, and the engine's hash of the id.
    pub of_rows: String,
}

impl Query {
    /// The query of the stage that follows on `earlier`, the noised sums of the stages before it.
    pub(super) fn new(
        study: &Study,
        party: &str,
        earlier: &[Vec<i64>],
        stage: &Stage,
        source: &Source,
    ) -> Result<Self, Error> {
        let writer = Writer::new(study, party, stage, source)?;
        let position = earlier.len() as u32;
        let body = writer.body(position);
        let mut hash = Sha256::new();
        // The body says what is computed from which table; the rest, for whom.
        for field in
            [&format!("potluck sql {FORMAT}"), study.id(), party, &position.to_string(), body.as_str()]
        {
            hash.update((field.len() as u64).to_le_bytes());
            hash.update(field);
        }
        let fingerprint = hex::encode(hash.finalize());
        let parts = writer.parts(position);
        let union = parts
            .iter()
            .map(|part| {
                format!("UNION ALL SELECT part, number, value FROM {}", step_name(&format!("{part}_part")))
            })
            .collect::<Vec<_>>()
            .join("\n");
        let text = format!(
            "-- potluck: stage {} ({}) of party {party}\n-- study {}\n{body}\nSELECT 'query' AS part, CAST(0 AS bigint) AS number, '{fingerprint}' AS value\n{}",
            position + 1,
            stage.name,
            study.id(),
            union
        );
        let mut of_ids = writer.ids().to_vec();
        of_ids.push(writer.types());
        let of_ids = format!(
            "WITH {}\nSELECT part, number, value FROM {}\nUNION ALL SELECT part, number, value FROM {}",
            of_ids.join(",\n"),
            step_name("types_part"),
            step_name("ids_part"),
        );
        let of_rows = writer.rows();
        Ok(Self { text, fingerprint, stage: stage.name, position, parts, of_ids, of_rows })
    }
}

/// How many numbers stand before the sums of a row of the result: rows, the check sums of their
/// ids, then refused values of each column.
pub(super) fn leading_counts(columns: &[Column]) -> usize {
    1 + CHECKS + columns.len()
}

/// The name of a step, which no table of the party's has.
pub(super) fn step_name(name: &str) -> String {
    format!("potluck_{name}")
}

/// Terms with plus signs between them, as a balanced tree: engines limit how deep an expression may
/// be.
fn added(terms: &[String]) -> String {
    match terms {
        [] => "0".to_owned(),
        [term] => term.clone(),
        terms => {
            let (left, right) = terms.split_at(terms.len() / 2);
            format!("({} + {})", added(left), added(right))
        }
    }
}

/// Whether a column may hold values for which the table is refused.
fn refuses(column: &Column) -> bool {
    column.refuses_missing() || column.refuses_unknown()
}

/// Writes the query of a stage.
pub(super) struct Writer<'a> {
    dialect: Dialect,
    source: &'a Source,
    columns: &'a [Column],
    stage: &'a Stage,
    id_kind: IdKind,
    key: String,
    /// Number of mixed rows, if subjects are mixed.
    mixed: Option<u64>,
}

impl<'a> Writer<'a> {
    pub(super) fn new(
        study: &'a Study,
        party: &str,
        stage: &'a Stage,
        source: &'a Source,
    ) -> Result<Self, Error> {
        let refused = |what: &str, remedy| Error::Table {
            table: source.name().to_owned(),
            problem: Problem::with(what, remedy),
        };
        let mixed = match stage.statistic {
            Statistic::Standardise { .. } | Statistic::Moments => None,
            Statistic::Mixed { mixing: Mixing::Sparse | Mixing::Buckets, k } => Some(k),
            Statistic::Mixed { mixing: Mixing::Bernoulli, .. } => {
                return Err(refused(
                    "no engine can mix as the study's mixing = \"bernoulli\" asks (k signs a subject, from a ChaCha12 key stream)",
                    Remedy::SparseOrExport,
                ));
            }
            Statistic::Mixed { mixing: Mixing::Identity, .. } => {
                return Err(refused(
                    "a study with mixing = \"identity\" publishes a row for every subject, which is no sum that an engine could compute",
                    Remedy::ExportInOrder,
                ));
            }
        };
        Ok(Self {
            dialect: source.dialect(),
            source,
            columns: study.own_party(party)?.columns(),
            stage,
            id_kind: study.definition().id_kind(),
            key: study.seal().key().to_hex(),
            mixed,
        })
    }

    /// The parts of the result beside the fingerprint; only the first stage counts what is lost,
    /// and cells, if it has any.
    fn parts(&self, position: u32) -> Vec<&'static str> {
        let lost = (position == 0).then_some("lost");
        let cells = self.counted().next().map(|_| "cells");
        ["types", "ids"].into_iter().chain(lost).chain(cells).chain(["sums"]).collect()
    }

    /// The steps of the query of the stage at this position.
    fn body(&self, position: u32) -> String {
        let mut steps = vec![
            self.step("held", &self.held(), &self.source.quoted_table()),
            self.step("placed", &self.placed(), &step_name("held")),
            self.step("scaled", &self.scaled(), &step_name("placed")),
            self.step("rounded", &self.rounded(), &step_name("scaled")),
        ];
        let mut last = "rounded";
        if let Some(ball) = self.stage.encoder.ball() {
            let centre = self.stage.encoder.centre();
            steps.push(self.step("measured", &self.measured(ball.norm_squared()), &step_name(last)));
            steps.push(self.step("pulled", &self.pulled(centre), &step_name("measured")));
            last = "pulled";
            if !centre.is_empty() {
                let measured = self.measured(ball.norm_squared());
                steps.push(self.step("measured_again", &measured, &step_name(last)));
                steps.push(self.step("pulled_again", &self.pulled(&[]), &step_name("measured_again")));
                last = "pulled_again";
            }
        }
        steps.push(self.sums(&step_name(last)));
        if self.counted().next().is_some() {
            steps.extend(self.cells());
        }
        steps.extend(self.ids());
        if position == 0 {
            steps.extend(self.lost());
        }
        steps.push(self.types());
        format!("WITH {}", steps.join(",\n"))
    }

    /// A step: expressions with their names, over every row of another one.
    pub(super) fn step(&self, name: &str, columns: &[(String, String)], from: &str) -> String {
        let columns: Vec<String> = columns
            .iter()
            .map(
                |(expression, name)| {
                    if expression == name { name.clone() } else { format!("{expression} AS {name}") }
                },
            )
            .collect();
        format!(
            "{}\n  SELECT\n    {}\n  FROM {from}{}\n)",
            self.dialect.step(&step_name(name)),
            columns.join(",\n    "),
            self.dialect.fence()
        )
    }

    /// A step of the result: one of its parts.
    pub(super) fn part(&self, name: &str, number: &str, value: &str, from: &str) -> String {
        format!(
            "{}\n  SELECT '{name}' AS part, {number} AS number, {value} AS value\n  FROM {from}\n)",
            self.dialect.step(&step_name(&format!("{name}_part")))
        )
    }

    /// What else is known of every row: the check sums of its id, where it is mixed to, and which
    /// values are refused.
    fn marks(&self) -> Vec<(String, String)> {
        let mut marks = self.checks();
        if let Some(k) = self.mixed {
            // Somebody without an id is mixed to no row; the table is refused then.
            marks.push((format!("coalesce({}, -1)", self.remainder("head", k)), "bucket".to_owned()));
            if self.is_signed() {
                marks.push(("sign".to_owned(), "sign".to_owned()));
            }
        }
        marks.extend(self.presence());
        let refusing = self.columns.iter().enumerate().filter(|(_, column)| refuses(column));
        marks.extend(refusing.map(|(i, _)| (format!("bad{i}"), format!("bad{i}"))));
        marks
    }

    /// Whether subjects are mixed with signs.
    fn is_signed(&self) -> bool {
        matches!(self.stage.statistic, Statistic::Mixed { mixing: Mixing::Sparse, .. })
    }

    /// Which presence groups a subject has, as 1 and 0.
    fn presence(&self) -> Vec<(String, String)> {
        let Some(presence) = self.stage.encoder.presence() else { return Vec::new() };
        let mut groups = vec!["CAST(1 AS bigint)".to_owned(); presence.count()];
        for (i, (encoder, _)) in self.stage.encoder.columns().iter().enumerate() {
            if presence.may_miss(i) {
                let there = match encoder {
                    Encoder::Numeric(_) => format!("v{i} IS NOT NULL"),
                    Encoder::Categorical(_) => format!("l{i} >= 0"),
                };
                groups[presence.group(i)] =
                    format!("CASE WHEN {there} THEN CAST(1 AS bigint) ELSE CAST(0 AS bigint) END");
            }
        }
        groups.into_iter().enumerate().map(|(g, there)| (there, format!("m{g}"))).collect()
    }

    /// The numeric columns whose cells are counted, each with its cells.
    fn counted(&self) -> impl Iterator<Item = (usize, &'a Bins)> {
        let numeric =
            |(_, (encoder, _)): &(usize, &(Encoder, Vec<Scaling>))| matches!(encoder, Encoder::Numeric(_));
        let columns = self.stage.encoder.columns().iter().enumerate().filter(numeric);
        columns.map(|(i, _)| i).zip(self.stage.encoder.bins())
    }

    /// The marks as they go through the steps that follow.
    fn carried(&self) -> Vec<(String, String)> {
        self.marks().into_iter().map(|(_, name)| (name.clone(), name)).collect()
    }

    /// What a subject adds to each of the check sums.
    fn checks(&self) -> Vec<(String, String)> {
        let check = |(i, modulus): (u32, u64)| (self.remainder("hash", modulus), format!("check{i}"));
        (0..).zip(MODULI).map(check).collect()
    }

    fn remainder(&self, number: &str, modulus: u64) -> String {
        self.dialect.call("mod", &[number, &format!("CAST({modulus} AS bigint)")])
    }

    /// The id as it is told apart from others.
    pub(super) fn id(&self) -> String {
        let id = self.source.id();
        match self.id_kind {
            IdKind::Text => self.dialect.text_of(&id),
            IdKind::Integer | IdKind::Row => id,
        }
    }

    /// Every row as it is stored, and the engine's hash of its id.
    fn rows(&self) -> String {
        let mut columns: Vec<String> =
            self.columns.iter().map(|column| self.dialect.identifier(column.name())).collect();
        columns.extend(self.source.ids().iter().map(|id| self.dialect.identifier(id)));
        columns.push(format!("{} AS {}", self.hash(&self.id()), step_name("hash")));
        format!("SELECT {} FROM {}", columns.join(", "), self.source.quoted_table())
    }

    /// The engine's own hash of an id, which only ever meets others of the same query.
    fn hash(&self, id: &str) -> String {
        match self.id_kind {
            IdKind::Text => self.dialect.hash_of_text(id),
            IdKind::Integer | IdKind::Row => self.dialect.hash_of_integer(id),
        }
    }

    /// The party's columns.
    pub(super) fn columns(&self) -> &[Column] {
        self.columns
    }

    /// The dialect and the table.
    pub(super) fn speaks(&self) -> (Dialect, &Source) {
        (self.dialect, self.source)
    }

    /// Whether ids are text.
    pub(super) fn id_is_text(&self) -> bool {
        self.id_kind == IdKind::Text
    }

    /// The stored values of every row.
    pub(super) fn stored_values(&self) -> Vec<(String, String)> {
        let mut columns = Vec::new();
        for (i, (column, stored)) in self.columns.iter().zip(self.source.stored()).enumerate() {
            let name = self.dialect.identifier(column.name());
            columns.push(match stored {
                Stored::Numbers => (self.dialect.number(&name), format!("x{i}")),
                Stored::Booleans => (self.dialect.boolean(&name), format!("x{i}")),
                Stored::Dates => (self.dialect.date(&name), format!("x{i}")),
                Stored::Levels => (self.dialect.text_of(&name), format!("t{i}")),
            });
        }
        columns
    }

    /// The stored values of every row, and what stands for its subject.
    fn held(&self) -> Vec<(String, String)> {
        let mut columns = self.stored_values();
        columns.push((self.hash(&self.id()), "hash".to_owned()));
        if self.mixed.is_some() {
            columns.push((self.dialect.digest(&self.key, &self.source.id()), "digest".to_owned()));
        }
        columns
    }

    /// Numbers on their public range, levels as codes, subjects at their place in the mixing.
    fn placed(&self) -> Vec<(String, String)> {
        let mut columns = Vec::new();
        for (i, (encoder, _)) in self.stage.encoder.columns().iter().enumerate() {
            let column = &self.columns[i];
            match (encoder, column.domain()) {
                (Encoder::Numeric(bounds), _) => {
                    let finite = self.finite(i);
                    columns.push((self.about_middle(i, *bounds), format!("v{i}")));
                    if column.refuses_missing() {
                        columns.push((format!("CASE WHEN {finite} THEN 0 ELSE 1 END"), format!("bad{i}")));
                    }
                }
                (Encoder::Categorical(_), Domain::Categorical { levels, unknown }) => {
                    let cases: String = levels
                        .iter()
                        .enumerate()
                        .map(|(code, level)| format!(" WHEN t{i} = {} THEN {code}", self.dialect.text(level)))
                        .collect();
                    let other = match unknown {
                        Unknown::Error => UNKNOWN,
                        Unknown::Missing => MISSING,
                        Unknown::Other => levels
                            .iter()
                            .position(|level| level == "other")
                            .map_or(UNKNOWN, |code| code as i32),
                    };
                    columns.push((
                        format!("CASE WHEN t{i} IS NULL THEN {MISSING}{cases} ELSE {other} END"),
                        format!("l{i}"),
                    ));
                    if refuses(column) {
                        columns.push((self.bad_level(i, column, levels), format!("bad{i}")));
                    }
                }
                (Encoder::Categorical(_), Domain::Numeric(_)) => {
                    unreachable!("the stage follows the study's columns")
                }
            }
        }
        columns.push(("hash".to_owned(), "hash".to_owned()));
        if self.mixed.is_some() {
            columns.push((self.dialect.digest_head("digest"), "head".to_owned()));
        }
        if self.is_signed() {
            let sign = self.dialect.digest_sign("digest");
            columns.push((
                format!("CASE WHEN {sign} THEN CAST(1 AS bigint) ELSE CAST(-1 AS bigint) END"),
                "sign".to_owned(),
            ));
        }
        columns
    }

    /// Whether a number is there. NaN is larger than any number here, so this is false for it as
    /// for infinities.
    fn finite(&self, i: usize) -> String {
        let size = self.dialect.call("abs", &[&format!("x{i}")]);
        format!("{size} <= {}", self.dialect.double(f64::MAX))
    }

    /// A number clamped to its public bounds, minus their middle; NULL if it is missing.
    fn about_middle(&self, i: usize, bounds: Bounds) -> String {
        let clamped = self.clamped(&format!("x{i}"), bounds.lo(), bounds.hi());
        format!(
            "CASE WHEN {} THEN {clamped} - {} END",
            self.finite(i),
            self.dialect.double(bounds.midpoint())
        )
    }

    /// A double within its limits.
    fn clamped(&self, double: &str, low: f64, high: f64) -> String {
        let raised = self.dialect.extreme("GREATEST", double, &self.dialect.double(low));
        self.dialect.extreme("LEAST", &raised, &self.dialect.double(high))
    }

    /// 1 where a level is missing or unknown and the study refuses that.
    fn bad_level(&self, i: usize, column: &Column, levels: &[String]) -> String {
        let known: Vec<String> = levels.iter().map(|level| self.dialect.text(level)).collect();
        let if_missing = i32::from(column.refuses_missing());
        let if_unknown = i32::from(column.refuses_unknown());
        format!(
            "CASE WHEN t{i} IS NULL THEN {if_missing} WHEN t{i} IN ({}) THEN 0 ELSE {if_unknown} END",
            known.join(", ")
        )
    }

    /// How many values of each column are lost (crates/party/src/lost.rs). The table is read once
    /// more for it: an engine may allow too few columns to carry a mark for each.
    fn lost(&self) -> [String; 2] {
        let is_lost = |(i, column): (usize, &Column)| match column.domain() {
            Domain::Numeric(bounds) => {
                // Neither holds of NULL, nor both of NaN, which is above every bound.
                let (lo, hi) = (self.dialect.double(bounds.lo()), self.dialect.double(bounds.hi()));
                format!("CASE WHEN x{i} >= {lo} AND x{i} <= {hi} THEN NULL ELSE 1 END")
            }
            Domain::Categorical { unknown: Unknown::Other, .. } => {
                format!("CASE WHEN t{i} IS NULL THEN 1 END")
            }
            Domain::Categorical { levels, unknown: Unknown::Missing | Unknown::Error } => {
                let known: Vec<String> = levels.iter().map(|level| self.dialect.text(level)).collect();
                format!("CASE WHEN t{i} IN ({}) THEN NULL ELSE 1 END", known.join(", "))
            }
        };
        let counts: Vec<String> =
            self.columns.iter().enumerate().map(|at| self.dialect.call("count", &[&is_lost(at)])).collect();
        [
            self.step("seen", &self.stored_values(), &self.source.quoted_table()),
            self.part("lost", "CAST(0 AS bigint)", &self.dialect.joined(&counts), &step_name("seen")),
        ]
    }

    /// Numbers in the units of the stage.
    fn scaled(&self) -> Vec<(String, String)> {
        let mut columns = self.marks();
        for (i, (encoder, scalings)) in self.stage.encoder.columns().iter().enumerate() {
            match encoder {
                Encoder::Categorical(_) => columns.push((format!("l{i}"), format!("l{i}"))),
                Encoder::Numeric(bounds) => {
                    let y = self.in_units(&format!("v{i}"), bounds.half_width(), &scalings[0]);
                    let zero = self.dialect.double(0.0);
                    columns
                        .push((format!("CASE WHEN v{i} IS NULL THEN {zero} ELSE {y} END"), format!("y{i}")));
                }
            }
        }
        columns
    }

    /// v/half.
    fn unit(&self, v: &str, half_width: f64) -> String {
        let double = |value| self.dialect.double(value);
        let quotient = format!("{v} / {}", double(half_width));
        match self.dialect {
            // It fails where a quotient is too small for a double.
            Dialect::Postgres => format!(
                "CASE WHEN {} <= {} THEN {} ELSE {quotient} END",
                self.dialect.call("abs", &[v]),
                double(half_width * NEGLIGIBLE),
                double(0.0)
            ),
            Dialect::DuckDb | Dialect::Spark => quotient,
        }
    }

    /// ((clamp(v/half, low, high) − centre)/scale)·Q.
    fn in_units(&self, v: &str, half_width: f64, scaling: &Scaling) -> String {
        let double = |value| self.dialect.double(value);
        let unit = self.unit(v, half_width);
        format!(
            "(({} - {}) / {}) * {}",
            self.clamped(&unit, scaling.low, scaling.high),
            double(scaling.centre),
            double(scaling.scale),
            double(f64::from(Q))
        )
    }

    /// Whole numbers: sign(y)·⌊|y| + 0.5⌋ within the limit, and the two values of each level.
    fn rounded(&self) -> Vec<(String, String)> {
        let mut columns = self.carried();
        let mut at = 0;
        for (i, (encoder, scalings)) in self.stage.encoder.columns().iter().enumerate() {
            match encoder {
                Encoder::Numeric(_) => {
                    let half = self.dialect.double(0.5);
                    let limit = self.dialect.double(f64::from(scalings[0].limit));
                    let rounded = |size: String| {
                        whole(&self.dialect.call("floor", &[&self.dialect.extreme("LEAST", &size, &limit)]))
                    };
                    let (below, above) =
                        (rounded(format!("{half} - y{i}")), rounded(format!("y{i} + {half}")));
                    let zero = self.dialect.double(0.0);
                    columns.push((
                        format!("CASE WHEN y{i} < {zero} THEN -{below} ELSE {above} END"),
                        format!("q{at}"),
                    ));
                }
                Encoder::Categorical(levels) => {
                    for (place, (level, scaling)) in (levels.first_encoded()..).zip(scalings).enumerate() {
                        let (present, absent) = (scaling.encode(1.0), scaling.encode(0.0));
                        let value = format!(
                            "CAST(CASE l{i} WHEN {level} THEN {present} WHEN {MISSING} THEN 0 ELSE {absent} END AS bigint)"
                        );
                        columns.push((value, format!("q{}", at + place)));
                    }
                }
            }
            at += scalings.len();
        }
        columns
    }

    /// How many values lie in each cell of every numeric column, with the check sums of their
    /// subjects: a row for each cell that has any. The table is read once more for it: hundreds of
    /// sums in one row, each over every row of the table, take most engines far longer.
    fn cells(&self) -> Vec<String> {
        let counted: Vec<(usize, &Bins, Bounds)> = self
            .counted()
            .filter_map(|(i, bins)| match self.stage.encoder.columns()[i].0 {
                Encoder::Numeric(bounds) => Some((i, bins, bounds)),
                Encoder::Categorical(_) => None,
            })
            .collect();
        let named = |name: String| (name.clone(), name);
        let is_zero = |&(i, bins, _): &(usize, &Bins, Bounds)| bins.zeros().map(|_| format!("z{i}"));
        let with_hash = |mut columns: Vec<(String, String)>| {
            columns.push(named("hash".to_owned()));
            columns
        };
        let mut held: Vec<(String, String)> = self.stored_values();
        held.retain(|(_, name)| counted.iter().any(|(i, ..)| *name == format!("x{i}")));
        held.push((self.hash(&self.id()), "hash".to_owned()));
        let mut placed = Vec::new();
        let mut units = self.checks();
        let mut cells: Vec<(String, String)> = (0..CHECKS).map(|i| named(format!("check{i}"))).collect();
        for one in &counted {
            let &(i, bins, bounds) = one;
            placed.push((self.about_middle(i, bounds), format!("v{i}")));
            let unit = self.unit(&format!("v{i}"), bounds.half_width());
            units.push((format!("CASE WHEN v{i} IS NULL THEN NULL ELSE {unit} END"), format!("u{i}")));
            if let Some(name) = is_zero(one) {
                let zero = self.dialect.double(0.0);
                placed.push((format!("CASE WHEN x{i} = {zero} THEN 1 ELSE 0 END"), name.clone()));
                units.push(named(name));
            }
            cells.push((self.cell(i, bins), format!("c{i}")));
        }
        let all: Vec<String> = counted.iter().map(|(i, ..)| format!("c{i}")).collect();
        let checks: Vec<String> = (0..CHECKS).map(|i| format!("check{i}")).collect();
        let one_by_one = format!(
            "{}\n  SELECT {}, {}\n  FROM {}{}\n)",
            self.dialect.step(&step_name("cell_of_each")),
            self.dialect.one_by_one(&all),
            checks.join(", "),
            step_name("cell_of"),
            self.dialect.fence(),
        );
        let mut counts = vec![self.dialect.call("count", &["*"])];
        counts.extend(checks.iter().map(|check| self.dialect.call("sum", &[check])));
        vec![
            self.step("cell_held", &held, &self.source.quoted_table()),
            self.step("cell_placed", &with_hash(placed), &step_name("cell_held")),
            self.step("cell_scaled", &units, &step_name("cell_placed")),
            self.step("cell_of", &cells, &step_name("cell_scaled")),
            one_by_one,
            self.part(
                "cells",
                &format!("CAST(place AS bigint) * {CELLS} + cell + 1"),
                &self.dialect.joined(&counts),
                &format!("{}\n  GROUP BY place, cell", step_name("cell_of_each")),
            ),
        ]
    }

    /// The cell that a value is in.
    fn cell(&self, i: usize, bins: &Bins) -> String {
        let (encoder, may_miss) = (&self.stage.encoder, |presence: &Presence| presence.may_miss(i));
        let missing = match &encoder.columns()[i].0 {
            Encoder::Numeric(bounds) if !encoder.presence().is_none_or(may_miss) => {
                bins.place(bounds.midpoint())
            }
            _ => NOWHERE,
        };
        let zero = match bins.zeros() {
            Some(zeros) => format!(" WHEN z{i} = 1 THEN {zeros}"),
            None => String::new(),
        };
        let found = self.bin(&format!("u{i}"), bins, 0, bins.edges().len());
        format!("CASE WHEN u{i} IS NULL THEN {missing}{zero} ELSE {found} END")
    }

    /// The cell of a number that is at least as large as `first` of the edges and below all from
    /// `end` on, by halving.
    fn bin(&self, u: &str, bins: &Bins, first: usize, end: usize) -> String {
        if first == end {
            // From the cell of the zeros on, every bin is one cell further on.
            return (first + usize::from(bins.zeros().is_some_and(|zeros| zeros <= first))).to_string();
        }
        let middle = first.midpoint(end);
        format!(
            "CASE WHEN {u} >= {} THEN {} ELSE {} END",
            self.dialect.double(bins.edges()[middle]),
            self.bin(u, bins, middle + 1, end),
            self.bin(u, bins, first, middle)
        )
    }

    fn encoded(&self) -> impl Iterator<Item = String> {
        (0..self.value_width()).map(|j| format!("q{j}"))
    }

    /// Number of encoded columns, without that of presence.
    fn value_width(&self) -> usize {
        self.stage.encoder.columns().iter().map(|(_, scalings)| scalings.len()).sum()
    }

    /// The presence group of each encoded column.
    fn groups(&self) -> Vec<usize> {
        let Some(presence) = self.stage.encoder.presence() else { return Vec::new() };
        let columns = self.stage.encoder.columns().iter().enumerate();
        columns.flat_map(|(i, (_, scalings))| vec![presence.group(i); scalings.len()]).collect()
    }

    /// √(C/N) where N = Σq² exceeds C.
    fn measured(&self, norm_squared: u64) -> Vec<(String, String)> {
        let squares: Vec<String> = self.encoded().map(|q| format!("{q} * {q}")).collect();
        let norm = added(&squares);
        let share =
            format!("{} / {}", self.dialect.double(norm_squared as f64), self.dialect.as_double(&norm));
        let root = self.dialect.call("sqrt", &[&share]);
        let factor = format!("CASE WHEN {norm} > {norm_squared}{} THEN {root} END", self.dialect.and_once());
        let mut columns = self.carried();
        columns.extend(self.encoded().map(|q| (q.clone(), q)));
        columns.push((factor, "factor".to_owned()));
        columns
    }

    /// trunc(q·factor), minus the centre.
    fn pulled(&self, centre: &[i32]) -> Vec<(String, String)> {
        let (mut columns, groups) = (self.carried(), self.groups());
        for (j, q) in self.encoded().enumerate() {
            let inside = self.dialect.truncated(&format!("{} * factor", self.dialect.as_double(&q)));
            let mut value = format!("CASE WHEN factor IS NULL THEN {q} ELSE {inside} END");
            if let Some(&centre) = centre.get(j) {
                // A value that is missing stays 0.
                let there = groups.get(j).map_or_else(String::new, |g| format!(" * m{g}"));
                value = format!("{value} - ({centre}){there}");
            }
            columns.push((value, q));
        }
        columns
    }

    /// The sums, one row for each mixed row that somebody is mixed to, or one in all.
    fn sums(&self, from: &str) -> String {
        let sum = |terms: &str| self.dialect.call("sum", &[terms]);
        let mut sums = vec![self.dialect.call("count", &["*"])];
        sums.extend((0..CHECKS).map(|i| format!("coalesce({}, 0)", sum(&format!("check{i}")))));
        sums.extend(
            self.columns
                .iter()
                .enumerate()
                .map(|(i, column)| if refuses(column) { sum(&format!("bad{i}")) } else { "0".to_owned() }),
        );
        let square = |j: usize| sum(&format!("q{j} * q{j}"));
        let groups = self.stage.encoder.groups();
        let present = (0..groups).map(|g| sum(&format!("m{g}")));
        match &self.stage.statistic {
            Statistic::Standardise { squares } => {
                sums.extend(self.encoded().map(|q| sum(&q)));
                sums.extend(squares.iter().map(|&j| square(j)));
                sums.extend(present);
            }
            Statistic::Moments => {
                let width = self.stage.encoder.width();
                match groups {
                    0 => sums.extend(self.encoded().map(|q| sum(&q))),
                    _ => sums.extend(
                        (0..groups).flat_map(|g| self.encoded().map(move |q| sum(&format!("{q} * m{g}")))),
                    ),
                }
                sums.extend((0..width).map(square));
                sums.extend(pairs(width).map(|(i, j)| sum(&format!("q{i} * q{j}"))));
                sums.extend(present);
                sums.extend(pairs(groups).map(|(g, h)| sum(&format!("m{g} * m{h}"))));
            }
            Statistic::Mixed { .. } if self.is_signed() => {
                sums.extend(self.encoded().map(|q| sum(&format!("sign * {q}"))));
            }
            Statistic::Mixed { .. } => {
                sums.extend(self.encoded().map(|q| sum(&q)));
                let count = self.stage.encoder.presence().map_or(0, Presence::count);
                let groups: Vec<String> = (0..count).map(|g| format!("m{g}")).collect();
                let weight = self.stage.encoder.weight().unwrap_or_default();
                sums.push(sum(&format!("CASE WHEN {} > 0 THEN {weight} ELSE 0 END", added(&groups))));
            }
        }
        let value = self.dialect.joined(&sums);
        match self.mixed {
            Some(_) => self.part("sums", "bucket", &value, &format!("{from}\n  GROUP BY bucket")),
            None => self.part("sums", "CAST(0 AS bigint)", &value, from),
        }
    }

    /// How many rows, different ids and rows without an id there are; the check sums; the first and
    /// the last position.
    fn ids(&self) -> [String; 3] {
        let named = |name: &str| (name.to_owned(), name.to_owned());
        let grouped = format!(
            "{}\n  SELECT id, {} AS times\n  FROM (SELECT {} AS id FROM {}) AS ids\n  GROUP BY id\n)",
            self.dialect.step(&step_name("subjects")),
            self.dialect.call("count", &["*"]),
            self.id(),
            self.source.quoted_table()
        );
        let hashed = [named("id"), named("times"), (self.hash("id"), "hash".to_owned())];
        let sum = |terms: &str| format!("coalesce({}, 0)", self.dialect.call("sum", &[terms]));
        let nameless = match self.id_kind {
            IdKind::Text => format!("id IS NULL OR id = {}", self.dialect.text("")),
            IdKind::Integer | IdKind::Row => "id IS NULL".to_owned(),
        };
        let mut counts = vec![
            sum("times"),
            self.dialect.call("count", &["id"]),
            sum(&format!("CASE WHEN {nameless} THEN times ELSE 0 END")),
        ];
        counts.extend(self.checks().iter().map(|(check, _)| sum(&format!("times * {check}"))));
        if self.id_kind == IdKind::Row {
            let end = |name| format!("coalesce({}, 0)", self.dialect.call(name, &["id"]));
            counts.extend(["min", "max"].map(end));
        }
        [
            grouped,
            self.step("hashed", &hashed, &step_name("subjects")),
            self.part("ids", "CAST(0 AS bigint)", &self.dialect.joined(&counts), &step_name("hashed")),
        ]
    }

    /// The types of the columns and of the id.
    pub(super) fn types(&self) -> String {
        let mut columns: Vec<String> =
            self.columns.iter().map(|column| self.dialect.identifier(column.name())).collect();
        columns.extend(self.source.ids().iter().map(|id| self.dialect.identifier(id)));
        let from = format!("{}\n  LIMIT 1", self.source.quoted_table());
        self.part("types", "CAST(0 AS bigint)", &self.dialect.types(&columns), &from)
    }
}
