//! Which table of which engine a party's columns are in, and how they are stored there.

use std::fs;
use std::path::{Path, PathBuf};

use potluck_release::Study;
use potluck_release::files::{Audience, Existing, write_file};
use potluck_release::remedy::{Problem, Remedy};
use potluck_release::study::id_rules::ID_SEPARATOR;
use potluck_release::study::{Column, Domain, IdKind, IdRule};
use serde::{Deserialize, Serialize};

use super::dialect::{Dialect, TypeKind, shown_type};
use crate::{Error, Refusal};

/// The column that holds ids unless another is named.
const DEFAULT_ID: &str = "id";

/// Version of the file.
const FORMAT: u32 = 1;

/// What people say about a party's table in a database.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Description {
    /// The engine's SQL.
    #[serde(with = "dialect_name")]
    pub dialect: Dialect,
    /// The table, as [`TableName::parse`] reads it.
    pub table: String,
    /// The column that holds ids [default: `id`; none if ids are positions].
    pub id: Option<String>,
    /// Columns with bounds that are stored as booleans.
    pub booleans: Vec<String>,
    /// Columns with bounds that are stored as dates.
    pub dates: Vec<String>,
}

mod dialect_name {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    use super::Dialect;

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
    pub(super) fn serialize<S: Serializer>(dialect: &Dialect, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(dialect.name())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Dialect, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

/// The name of a table: `table`, `schema.table`, `catalog.schema.table`. Names are taken as they
/// stand, capitals included; one that has a dot in it stands in double quotes, and a double quote
/// within them is doubled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableName(Vec<String>);

impl TableName {
    /// Reads a name.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let wrong = |problem: &str| Error::Table { table: text.to_owned(), problem: problem.into() };
        let mut parts = vec![String::new()];
        let mut characters = text.chars().peekable();
        let mut quoted = false;
        // Whether a part began with a quote: then nothing but a dot may follow on the closing one.
        let mut closed = false;
        while let Some(c) = characters.next() {
            let part = parts.last_mut().expect("there is a first part");
            match c {
                '"' if quoted && characters.peek() == Some(&'"') => {
                    characters.next();
                    part.push('"');
                }
                '"' if quoted => (quoted, closed) = (false, true),
                c if quoted => part.push(c),
                '.' => {
                    parts.push(String::new());
                    closed = false;
                }
                '"' if part.is_empty() && !closed => quoted = true,
                c if !closed && c != '"' => part.push(c),
                _ => {
                    return Err(wrong("a quoted name is quoted from end to end: \"my schema\".\"my table\""));
                }
            }
        }
        if quoted {
            return Err(wrong("a quote is not closed"));
        }
        if parts.iter().any(|part| part.is_empty() || part.chars().any(char::is_control)) {
            return Err(wrong(
                "is not the name of a table; names are not empty, and one with a dot in it stands in double quotes",
            ));
        }
        Ok(Self(parts))
    }

    pub(super) fn parts(&self) -> &[String] {
        &self.0
    }

    /// As an engine names it.
    pub(crate) fn quoted(&self, dialect: Dialect) -> String {
        let quoted: Vec<String> = self.0.iter().map(|part| dialect.identifier(part)).collect();
        quoted.join(".")
    }
}

/// The query for columns of a table as they are stored, or for all.
pub fn rows_query(dialect: Dialect, table: &str, columns: Option<&[String]>) -> Result<String, Error> {
    let names =
        |columns: &[String]| -> Vec<String> { columns.iter().map(|name| dialect.identifier(name)).collect() };
    let columns = columns.map_or_else(|| "*".to_owned(), |columns| names(columns).join(", "));
    Ok(format!("SELECT {columns} FROM {}", TableName::parse(table)?.quoted(dialect)))
}

/// How the values of a column are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stored {
    /// Numbers of any type.
    Numbers,
    /// Booleans that stand for 0 and 1.
    Booleans,
    /// Dates that stand for days.
    Dates,
    /// Anything that levels are compared with.
    Levels,
}

/// A party's table in a database, checked against the study.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    description: Description,
    table: TableName,
    /// The columns that make up an id, and what becomes of each.
    ids: Vec<String>,
    rules: Vec<IdRule>,
    stored: Vec<Stored>,
}

impl Source {
    /// Checks a description against the study.
    pub fn new(study: &Study, party: &str, description: Description) -> Result<Self, Error> {
        let table = TableName::parse(&description.table)?;
        let columns = study.own_party(party)?.columns();
        let definition = study.definition();
        let refuse = |column: &str, problem: Problem| Error::Column {
            table: description.table.clone(),
            column: column.to_owned(),
            problem,
        };
        let problem = |column: &str, problem: &str| refuse(column, problem.into());
        let ids = match (&description.id, definition.id_kind(), definition.id_columns()) {
            (None, IdKind::Row, _) => {
                return Err(Error::Table {
                    table: description.table.clone(),
                    problem: Problem::with(
                        "rows of a database have no order, but the study's ids are positions",
                        Remedy::PositionColumn,
                    ),
                });
            }
            // As everywhere, the study's own go before that of a party.
            (_, _, of_study @ [_, ..]) => of_study.to_vec(),
            (named, ..) => vec![named.clone().unwrap_or_else(|| DEFAULT_ID.to_owned())],
        };
        if let Some(id) = ids.iter().find(|id| columns.iter().any(|column| column.name() == *id)) {
            let both = Problem::with("is both the id and a column of the study", Remedy::OtherIdColumn);
            return Err(refuse(id, both));
        }
        for column in description.booleans.iter().chain(&description.dates) {
            let known = columns.iter().find(|known| known.name() == column);
            if !known.is_some_and(|known| matches!(known.domain(), Domain::Numeric(_))) {
                return Err(problem(
                    column,
                    "is not a column with bounds of this party; only those need to be declared as booleans or dates",
                ));
            }
            if description.booleans.contains(column) && description.dates.contains(column) {
                return Err(problem(column, "cannot be both a boolean and a date"));
            }
        }
        let longest = description.dialect.longest_name();
        let names = columns.iter().map(Column::name).chain(ids.iter().map(String::as_str));
        for name in names.chain(table.parts().iter().map(String::as_str)) {
            if name.is_empty() || name.chars().any(char::is_control) {
                return Err(problem(name, "is not the name of a column"));
            }
            if description.dialect == Dialect::Spark && name.contains("${") {
                return Err(problem(
                    name,
                    "has ${ in its name, which Spark takes for a variable; give it another name in a view",
                ));
            }
            if name.len() > longest {
                return Err(problem(
                    name,
                    &format!(
                        "has a name of more than {longest} bytes, which {} cuts off; use a shorter name",
                        description.dialect
                    ),
                ));
            }
        }
        let names: Vec<&str> =
            columns.iter().map(Column::name).chain(ids.iter().map(String::as_str)).collect();
        for (at, name) in names.iter().enumerate().filter(|_| description.dialect.folds_names()) {
            if let Some(other) = names[..at].iter().find(|other| other.to_lowercase() == name.to_lowercase())
            {
                let folded = format!(
                    "differs from {other:?} in capitals only, and is the same column to {}",
                    description.dialect
                );
                return Err(refuse(name, Problem::with(folded, Remedy::Export)));
            }
        }
        let stored = |column: &Column| match column.domain() {
            Domain::Categorical { .. } => Stored::Levels,
            Domain::Numeric(_) if description.booleans.iter().any(|name| name == column.name()) => {
                Stored::Booleans
            }
            Domain::Numeric(_) if description.dates.iter().any(|name| name == column.name()) => Stored::Dates,
            Domain::Numeric(_) => Stored::Numbers,
        };
        let stored = columns.iter().map(stored).collect();
        let rules = definition.id_rules().to_vec();
        Ok(Self { description, table, ids, rules, stored })
    }

    /// The types of columns and id are those that the built-in reader takes.
    pub(super) fn check_types(&self, study: &Study, party: &str, types: &str) -> Result<(), Error> {
        let columns = study.own_party(party)?.columns();
        let (of_columns, of_ids) = self.split_types(columns, types)?;
        for ((column, stored), name) in columns.iter().zip(&self.stored).zip(of_columns) {
            let kind = self.dialect().kind(name);
            let problem = match (stored, kind) {
                (Stored::Numbers, Some(TypeKind::Integer | TypeKind::Number | TypeKind::Boolean))
                | (Stored::Booleans, Some(TypeKind::Boolean))
                | (Stored::Dates, Some(TypeKind::Date))
                | (Stored::Levels, Some(TypeKind::Text | TypeKind::Integer | TypeKind::Boolean)) => continue,
                (Stored::Numbers, Some(TypeKind::Text)) => {
                    "holds text, but the study gives it bounds; cast it to a number in a view, or give it levels"
                        .into()
                }
                (Stored::Booleans, _) => Problem::with("is not a boolean", Remedy::NoBoolean),
                (Stored::Dates, _) => Problem::with("is not a date", Remedy::NoDate),
                (Stored::Levels, _) => format!(
                    "has type {}, but the study gives it levels; levels are text, whole numbers or booleans: cast it in a view",
                    shown_type(name)
                )
                .into(),
                (Stored::Numbers, _) => format!(
                    "has type {}, which has no order of numbers; cast it to a number in a view",
                    shown_type(name)
                )
                .into(),
            };
            return Err(self.column_problem(column.name(), problem).refusing(Refusal::Type));
        }
        let is_made = self.makes_ids();
        for (id, name) in self.ids.iter().zip(of_ids) {
            let problem = match (study.definition().id_kind(), self.dialect().kind(name)) {
                (IdKind::Text, Some(TypeKind::Text))
                | (IdKind::Integer | IdKind::Row, Some(TypeKind::Integer)) => continue,
                (IdKind::Text, Some(TypeKind::Integer)) if is_made => continue,
                (IdKind::Text, Some(TypeKind::Date)) if is_made => {
                    "holds dates, which engines write in forms of their own; cast it to text in a view, as YYYY-MM-DD"
                        .to_owned()
                }
                (IdKind::Text, _) => format!(
                    "holds ids of type {}, but the study's ids are text; cast it to text in a view, exactly as the other parties write it",
                    shown_type(name)
                ),
                (IdKind::Integer | IdKind::Row, _) => format!(
                    "holds ids of type {}, but the study's ids are whole numbers; cast it to bigint in a view",
                    shown_type(name)
                ),
            };
            return Err(self.column_problem(id, problem).refusing(Refusal::Type));
        }
        Ok(())
    }

    /// The names of the types of all columns, and of those of the id.
    fn split_types<'t>(
        &self,
        columns: &[Column],
        types: &'t str,
    ) -> Result<(Vec<&'t str>, Vec<&'t str>), Error> {
        let mut names: Vec<&str> = types.split(';').collect();
        if names.len() != columns.len() + self.ids.len() {
            return Err(Error::Table {
                table: self.description.table.clone(),
                problem:
                    "the engine does not name a type for each column; check that the dialect is the engine's"
                        .into(),
            });
        }
        let of_ids = names.split_off(columns.len());
        Ok((names, of_ids))
    }

    pub(super) fn column_problem(&self, column: &str, problem: impl Into<Problem>) -> Error {
        Error::Column {
            table: self.description.table.clone(),
            column: column.to_owned(),
            problem: problem.into(),
        }
    }

    /// A column has values that the study refuses.
    pub(super) fn refused_values(&self, column: &Column) -> Error {
        let problem = "has values that are missing or not among its levels, and the study refuses them; complete the table, or agree on missing = \"midpoint\" and unknown = \"missing\" or \"other\" (never on a level for the reason that it is in the table: levels are public)";
        self.column_problem(column.name(), problem)
    }

    /// A query for the types of the party's columns and its id, of one row with one text, or of
    /// none if the table is empty.
    pub fn types_query(&self, study: &Study, party: &str) -> Result<String, Error> {
        let columns = study.own_party(party)?.columns();
        let names: Vec<String> = columns
            .iter()
            .map(Column::name)
            .chain(self.ids.iter().map(String::as_str))
            .map(|name| self.dialect().identifier(name))
            .collect();
        Ok(format!("SELECT {} AS types FROM {} LIMIT 1", self.dialect().types(&names), self.quoted_table()))
    }

    /// The same table, with booleans and dates declared as the answer to [`Self::types_query`]
    /// says. Other types than a query can read are refused, and so is an empty table, which has no
    /// answer.
    pub fn with_types(&self, study: &Study, party: &str, types: Option<&str>) -> Result<Self, Error> {
        let own = study.own_party(party)?;
        let columns = own.columns();
        let rows = study.definition().table_rows(own);
        let types = types.ok_or_else(|| Error::empty(&self.description.table, rows))?;
        let (of_columns, _) = self.split_types(columns, types)?;
        let kinds: Vec<Option<TypeKind>> = of_columns.iter().map(|name| self.dialect().kind(name)).collect();
        let of_kind = |wanted: TypeKind| {
            let numeric = columns.iter().zip(&kinds).filter(|(column, kind)| {
                **kind == Some(wanted) && matches!(column.domain(), Domain::Numeric(_))
            });
            numeric.map(|(column, _)| column.name().to_owned()).collect()
        };
        let description = Description {
            booleans: of_kind(TypeKind::Boolean),
            dates: of_kind(TypeKind::Date),
            ..self.description.clone()
        };
        let typed = Self::new(study, party, description)?;
        typed.check_types(study, party, types)?;
        Ok(typed)
    }

    /// A query that gives no row, but the names of all columns.
    pub fn names_query(&self) -> String {
        format!("SELECT * FROM {} LIMIT 0", self.quoted_table())
    }

    /// Refuses a table that does not have, just once, every column that queries read.
    pub fn check_names(&self, study: &Study, party: &str, names: &[String]) -> Result<(), Error> {
        let columns = study.own_party(party)?.columns();
        for wanted in columns.iter().map(Column::name).chain(self.ids.iter().map(String::as_str)) {
            let problem = match names.iter().filter(|name| *name == wanted).count() {
                1 => continue,
                0 if self.ids.iter().any(|id| id == wanted) && study.definition().id_columns().is_empty() => {
                    Problem::with("is missing", Remedy::IdColumn)
                }
                0 => "is missing; the study expects it: check the spelling, capitals included".into(),
                _ => "is there several times; name just one column so".into(),
            };
            return Err(self.column_problem(wanted, problem));
        }
        Ok(())
    }

    /// What was said about it.
    pub fn description(&self) -> &Description {
        &self.description
    }

    pub(super) fn dialect(&self) -> Dialect {
        self.description.dialect
    }

    /// The table as people named it.
    pub(super) fn name(&self) -> &str {
        &self.description.table
    }

    /// The table as the engine names it.
    pub(super) fn quoted_table(&self) -> String {
        self.table.quoted(self.dialect())
    }

    /// The columns that make up an id.
    pub(super) fn ids(&self) -> &[String] {
        &self.ids
    }

    /// The same as people name them.
    pub(super) fn id_name(&self) -> String {
        self.ids.join(", ")
    }

    /// Whether ids are made by the study's rules, rather than taken as they stand in one column.
    pub(super) fn makes_ids(&self) -> bool {
        !self.rules.is_empty() || self.ids.len() > 1
    }

    /// The id of a row, before it is cast to what ids are told apart by: the column itself, or what
    /// the study's rules make of the columns. NULL where a part is missing.
    pub(super) fn id(&self) -> String {
        let dialect = self.dialect();
        let columns = self.ids.iter().map(|id| dialect.identifier(id));
        if !self.makes_ids() {
            return columns.collect();
        }
        let part = |column: String| {
            let text = dialect.plain_text_of(&column);
            let ruled = self.rules.iter().fold(text, |text, &rule| dialect.ruled(&text, rule));
            format!("nullif({ruled}, '')")
        };
        dialect.bytewise(&dialect.chained(&columns.map(part).collect::<Vec<_>>(), u32::from(ID_SEPARATOR)))
    }

    /// How each of the party's columns is stored, in the study's order.
    pub(super) fn stored(&self) -> &[Stored] {
        &self.stored
    }
}

/// What a state folder remembers of a release between its steps. The ledger is among it: sums that
/// are handed in twice, each time to another ledger, would be noised twice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remembered {
    /// Where the party's table is.
    pub source: Source,
    /// The ledger.
    pub ledger: PathBuf,
    /// The budget that is charged.
    pub budget: String,
}

impl Remembered {
    fn file(state: &Path, party: &str) -> PathBuf {
        state.join(format!("{party}.source.json"))
    }

    /// Writes it into the folder, which is made if it does not exist.
    pub fn save(&self, study: &Study, party: &str, state: &Path) -> Result<(), Error> {
        let path = Self::file(state, party);
        let failed = |source| Error::from(potluck_release::Error::Write { path: path.clone(), source });
        fs::create_dir_all(state).map_err(failed)?;
        let file = SourceFile {
            format: FORMAT,
            study_id: study.id().to_owned(),
            party: party.to_owned(),
            source: self.source.description.clone(),
            ledger: self.ledger.clone(),
            budget: self.budget.clone(),
        };
        let mut text = serde_json::to_vec_pretty(&file).expect("a source is plain data");
        text.push(b'\n');
        Ok(write_file(&path, &text, Existing::Replace, Audience::Owner)?)
    }

    /// What the folder remembers of the party's release; nothing if no query was written for it
    /// yet.
    pub fn load(study: &Study, party: &str, state: &Path) -> Result<Option<Self>, Error> {
        let path = Self::file(state, party);
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(potluck_release::Error::Read { path, source }.into()),
        };
        let file: SourceFile = serde_json::from_slice(&text).map_err(|_| Error::Table {
            table: path.display().to_string(),
            problem: Problem::with("is damaged", Remedy::RemoveState),
        })?;
        if file.format != FORMAT || file.study_id != study.id() || file.party != party {
            return Ok(None);
        }
        let source = Source::new(study, party, file.source)?;
        Ok(Some(Self { source, ledger: file.ledger, budget: file.budget }))
    }
}

/// The file in the state folder.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SourceFile {
    format: u32,
    study_id: String,
    party: String,
    source: Description,
    ledger: PathBuf,
    budget: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_names() {
        let parse = |text: &str| TableName::parse(text).map(|name| name.0).ok();
        assert_eq!(parse("people"), Some(vec!["people".to_owned()]));
        assert_eq!(parse("Clinic.my people"), Some(vec!["Clinic".to_owned(), "my people".to_owned()]));
        assert_eq!(parse("\"a.b\".\"say \"\"c\"\"\""), Some(vec!["a.b".to_owned(), "say \"c\"".to_owned()]));
        assert_eq!(parse("a;DROP TABLE b--"), Some(vec!["a;DROP TABLE b--".to_owned()]));
        for bad in ["", ".", "a.", ".a", "\"a", "\"a\"b", "a\"b\"", "\"\"", "a\nb", "\"a\"\""] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }
}
