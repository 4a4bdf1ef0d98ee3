//! What differs between engines: names, literals, casts and functions.
//!
//! Every expression stands for the same number in every engine. Doubles are written as text that
//! each engine reads back to the same bits; text is compared byte by byte, whatever collation a
//! column has; nothing is ever rounded by an engine's own `round`. No `%`, no `::` and no `?`,
//! which some drivers take for parameters. Functions are named with their schema where an engine
//! has one for its own, so that nobody's function of the same name is called with what is private.

use std::fmt;
use std::str::FromStr;

use potluck_release::study::IdRule;

/// Characters that rules of ids are about.
const DIGITS: &str = "0123456789";
const UPPER: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
const LOWER: &str = "abcdefghijklmnopqrstuvwxyz";

/// An engine's SQL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// PostgreSQL, from version 12 on.
    Postgres,
    /// DuckDB, from version 1 on.
    DuckDb,
    /// Spark SQL, from version 3.4 on, ANSI mode or not.
    Spark,
}

impl Dialect {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Postgres, Self::DuckDb, Self::Spark];

    /// Its name in commands and files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Postgres => "postgres",
            Self::DuckDb => "duckdb",
            Self::Spark => "spark",
        }
    }

    /// The longest name that the engine keeps whole, in bytes.
    pub(super) fn longest_name(self) -> usize {
        match self {
            // Longer ones are cut off, and may then be the name of something else.
            Self::Postgres => 63,
            Self::DuckDb | Self::Spark => usize::MAX,
        }
    }

    /// A name as it stands, whatever is in it.
    pub(crate) fn identifier(self, name: &str) -> String {
        match self {
            Self::Postgres | Self::DuckDb => format!("\"{}\"", name.replace('"', "\"\"")),
            Self::Spark => format!("`{}`", name.replace('`', "``")),
        }
    }

    /// Whether names that differ in capitals only are the same to it.
    pub(super) fn folds_names(self) -> bool {
        match self {
            Self::Postgres => false,
            Self::DuckDb | Self::Spark => true,
        }
    }

    /// A function of the engine's own.
    pub(super) fn function(self, name: &str) -> String {
        match self {
            Self::Postgres => format!("pg_catalog.{name}"),
            Self::DuckDb => format!("system.main.{name}"),
            Self::Spark => name.to_owned(),
        }
    }

    /// A function of the engine's own, called.
    pub(crate) fn call(self, name: &str, arguments: &[&str]) -> String {
        format!("{}({})", self.function(name), arguments.join(", "))
    }

    /// The smaller or larger of two doubles, neither of them NULL.
    pub(super) fn extreme(self, name: &str, one: &str, other: &str) -> String {
        match self {
            // A word of its syntax.
            Self::Postgres => format!("{name}({one}, {other})"),
            Self::DuckDb | Self::Spark => self.call(name, &[one, other]),
        }
    }

    /// A literal that stands for just these characters, to be compared with [`Self::text_of`].
    pub(crate) fn text(self, text: &str) -> String {
        match self {
            // An escaped string means the same whatever standard_conforming_strings says.
            Self::Postgres if text.contains('\\') => {
                format!("E'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
            }
            Self::Postgres => format!("'{}'", text.replace('\'', "''")),
            Self::DuckDb => self.call("encode", &[&format!("'{}'", text.replace('\'', "''"))]),
            // What a backslash means depends on a setting, and what a collation does on another;
            // bytes depend on none.
            Self::Spark => format!("X'{}'", hex::encode_upper(text)),
        }
    }

    /// The text of a column's value, in a form that is compared byte by byte.
    pub(super) fn text_of(self, column: &str) -> String {
        match self {
            Self::Postgres => format!("{} COLLATE pg_catalog.\"C\"", postgres_text(column)),
            Self::DuckDb => self.call("encode", &[&format!("CAST({column} AS VARCHAR)")]),
            Self::Spark => format!("CAST(CAST({column} AS STRING) AS BINARY)"),
        }
    }

    /// The text of a column's value, in a form that patterns are looked for in.
    pub(super) fn plain_text_of(self, column: &str) -> String {
        match self {
            Self::Postgres => self.text_of(column),
            Self::DuckDb => format!("CAST({column} AS VARCHAR)"),
            Self::Spark => format!("CAST({column} AS STRING)"),
        }
    }

    /// Whether a text has a part that a pattern describes, one of brackets and bars without a
    /// backslash.
    pub(super) fn matches(self, text: &str, pattern: &str) -> String {
        match self {
            Self::Postgres => self.call("textregexeq", &[text, &format!("'{pattern}'")]),
            Self::DuckDb => self.call("regexp_matches", &[text, &format!("'{pattern}'")]),
            Self::Spark => format!("{text} RLIKE '{pattern}'"),
        }
    }

    /// What a rule makes of a text, as `potluck_release::study::id_rules` does
    /// (docs/FORMAT.md#format-2-different-people). Characters are listed one by one, so that no
    /// collation can take others for one of them.
    pub(super) fn ruled(self, text: &str, rule: IdRule) -> String {
        match rule {
            IdRule::Trim => {
                let blanks = [9, 10, 11, 12, 13].map(|code| self.character(code));
                let blanks = self.concatenated(&[&["' '".to_owned()], &blanks[..]].concat());
                let name = if self == Self::DuckDb { "trim" } else { "btrim" };
                self.call(name, &[text, &blanks])
            }
            IdRule::Lowercase => {
                let [upper, lower] = [UPPER, LOWER].map(|letters| format!("'{letters}'"));
                self.call("translate", &[text, &upper, &lower])
            }
            IdRule::StripZeros => {
                let pattern = format!("(^|[^{DIGITS}])0+([{DIGITS}])");
                self.replaced(text, &pattern, &["1", "2"], "")
            }
            IdRule::Alphanumeric => self.replaced(text, &format!("[^{DIGITS}{UPPER}{LOWER}]"), &[], ""),
            IdRule::Date => {
                let (two, between) = (format!("([{DIGITS}]{{2}})"), "[-/.]{0,1}");
                // What ends the text here is no line break, before which Java's $ matches, too.
                let pattern = format!("^([{DIGITS}]{{4}}){between}{two}{between}{two};$");
                let ended = self.concatenated(&[text.to_owned(), "';'".to_owned()]);
                let date = self.replaced(&ended, &pattern, &["1", "2", "3"], "-");
                let is_date = self.matches(&ended, &pattern);
                format!("CASE WHEN {is_date} THEN {date} ELSE {text} END")
            }
        }
    }

    /// A text in which whatever a pattern describes is replaced by these groups of it, with
    /// something between them.
    fn replaced(self, text: &str, pattern: &str, groups: &[&str], between: &str) -> String {
        let mark = if self == Self::Spark { '$' } else { '\\' };
        let groups: Vec<String> = groups.iter().map(|group| format!("{mark}{group}")).collect();
        let by = groups.join(between);
        match self {
            // An escaped string means the same whatever standard_conforming_strings says.
            Self::Postgres => {
                let by = format!("E'{}'", by.replace('\\', "\\\\"));
                self.call("regexp_replace", &[text, &format!("'{pattern}'"), &by, "'g'"])
            }
            Self::DuckDb => {
                self.call("regexp_replace", &[text, &format!("'{pattern}'"), &format!("'{by}'"), "'g'"])
            }
            Self::Spark => self.call("regexp_replace", &[text, &format!("'{pattern}'"), &format!("'{by}'")]),
        }
    }

    /// Texts one after the other; NULL if one is.
    fn concatenated(self, texts: &[String]) -> String {
        match self {
            Self::Postgres | Self::DuckDb => format!("({})", texts.join(" || ")),
            Self::Spark => format!("{}({})", self.function("concat"), texts.join(", ")),
        }
    }

    /// Texts one after the other, with this character between them; NULL if one is.
    pub(super) fn chained(self, texts: &[String], separator: u32) -> String {
        let mut all = Vec::new();
        for (at, text) in texts.iter().enumerate() {
            all.extend((at > 0).then(|| self.character(separator)));
            all.push(text.clone());
        }
        if all.len() == 1 { all.remove(0) } else { self.concatenated(&all) }
    }

    /// An expression whose functions compare text byte by byte; NULL where a setting makes them do
    /// otherwise.
    pub(super) fn bytewise(self, expression: &str) -> String {
        match self {
            Self::Postgres | Self::DuckDb => expression.to_owned(),
            Self::Spark => format!("CASE WHEN 'a' = 'A' OR 'a' = 'a ' THEN NULL ELSE {expression} END"),
        }
    }

    /// The character with this code, below 128.
    fn character(self, code: u32) -> String {
        let name = if self == Self::Spark { "char" } else { "chr" };
        self.call(name, &[&code.to_string()])
    }

    /// The engine's own hash of what [`Self::text_of`] gave, as an integer.
    pub(super) fn hash_of_text(self, text: &str) -> String {
        match self {
            Self::Postgres => self.call("hashtextextended", &[text, "0"]),
            Self::DuckDb | Self::Spark => self.hash_of_integer(text),
        }
    }

    /// The engine's own hash of an integer, as an integer.
    pub(super) fn hash_of_integer(self, integer: &str) -> String {
        match self {
            Self::Postgres => self.call("hashint8extended", &[&format!("CAST({integer} AS bigint)"), "0"]),
            // It has no sign and all bits; one of them has to go.
            Self::DuckDb => whole(&format!("({} >> 1)", self.call("hash", &[integer]))),
            Self::Spark => self.call("xxhash64", &[integer]),
        }
    }

    /// A literal for just this double.
    pub(super) fn double(self, value: f64) -> String {
        // Rust writes the fewest digits that are read back to the same double.
        format!("CAST('{value:e}' AS {})", self.double_type())
    }

    /// A whole number or an expression as a double.
    pub(crate) fn as_double(self, expression: &str) -> String {
        format!("CAST({expression} AS {})", self.double_type())
    }

    pub(super) fn double_type(self) -> &'static str {
        match self {
            Self::Postgres => "double precision",
            Self::DuckDb | Self::Spark => "DOUBLE",
        }
    }

    /// A column of any type of numbers as a double.
    pub(super) fn number(self, column: &str) -> String {
        let double = self.as_double(column);
        match self {
            Self::Postgres | Self::Spark => double,
            // The text is rounded once, the value itself twice: first its digits, then the
            // quotient.
            Self::DuckDb => format!(
                "CASE WHEN {} OR {} THEN CAST(CAST({column} AS VARCHAR) AS DOUBLE) ELSE {double} END",
                self.call("starts_with", &[&self.call("typeof", &[column]), "'DECIMAL'"]),
                self.call("contains", &[&self.call("typeof", &[column]), "'HUGEINT'"]),
            ),
        }
    }

    /// A column of booleans as 0 and 1.
    pub(super) fn boolean(self, column: &str) -> String {
        match self {
            Self::Postgres | Self::DuckDb => self.as_double(&format!("CAST({column} AS integer)")),
            Self::Spark => self.as_double(&format!("CAST({column} AS INT)")),
        }
    }

    /// A column of dates as days since 1970-01-01; NULL if there is no such day.
    pub(super) fn date(self, column: &str) -> String {
        match self {
            Self::Postgres | Self::DuckDb => {
                let days = self.as_double(&format!("{column} - DATE '1970-01-01'"));
                format!("CASE WHEN {} THEN {days} END", self.call("isfinite", &[column]))
            }
            Self::Spark => self.as_double(&self.call("unix_date", &[column])),
        }
    }

    /// A double without its fraction, as an integer.
    pub(super) fn truncated(self, double: &str) -> String {
        match self {
            // Their casts round.
            Self::Postgres | Self::DuckDb => whole(&self.call("trunc", &[double])),
            // Its cast does not, and its `trunc` is about dates.
            Self::Spark => whole(double),
        }
    }

    /// What stands for a subject: the SHA-256 of `key`, a colon and the id.
    pub(super) fn digest(self, key: &str, id: &str) -> String {
        match self {
            Self::Postgres => {
                let subject = format!("'{key}:' || {}", postgres_text(id));
                let bytes = self.call("convert_to", &[&subject, "CAST('UTF8' AS pg_catalog.name)"]);
                self.call("sha256", &[&bytes])
            }
            Self::DuckDb => self.call("sha256", &[&format!("'{key}:' || CAST({id} AS VARCHAR)")]),
            Self::Spark => {
                let subject = self.call("concat", &[&self.text(&format!("{key}:")), &self.text_of(id)]);
                self.call("sha2", &[&subject, "256"])
            }
        }
    }

    /// The first 15 hexadecimal digits of a digest as an integer.
    pub(super) fn digest_head(self, digest: &str) -> String {
        match self {
            Self::Postgres => {
                let byte = |at: u32| self.call("get_byte", &[digest, &at.to_string()]);
                let bytes = (0..7).map(|at| format!("(CAST({} AS bigint) << {})", byte(at), 52 - 8 * at));
                let last = format!("CAST({} >> 4 AS bigint)", byte(7));
                bytes.chain([last]).collect::<Vec<_>>().join(" | ")
            }
            Self::DuckDb => format!("CAST('0x' || {} AS bigint)", self.call("substr", &[digest, "1", "15"])),
            Self::Spark => {
                let digits = self.call("substr", &[digest, "1", "15"]);
                format!("CAST({} AS bigint)", self.call("conv", &[&digits, "16", "10"]))
            }
        }
    }

    /// Whether the 16th hexadecimal digit of a digest is below 8.
    pub(super) fn digest_sign(self, digest: &str) -> String {
        match self {
            Self::Postgres => format!("({} & 15) < 8", self.call("get_byte", &[digest, "7"])),
            Self::DuckDb | Self::Spark => {
                let digit = self.call("substr", &[digest, "16", "1"]);
                format!("{digit} IN ('0', '1', '2', '3', '4', '5', '6', '7')")
            }
        }
    }

    /// Whole numbers as one text, with spaces between them.
    pub(super) fn joined(self, numbers: &[String]) -> String {
        match self {
            // A function has at most a hundred arguments; an array has no such limit.
            Self::Postgres => {
                let array =
                    format!("CAST(ARRAY[\n    {}\n  ] AS pg_catalog.text[])", numbers.join(",\n    "));
                self.call("array_to_string", &[&array, "' '"])
            }
            Self::DuckDb => {
                format!("{}(' ',\n    {}\n  )", self.function("concat_ws"), numbers.join(",\n    "))
            }
            Self::Spark => {
                let texts: Vec<String> =
                    numbers.iter().map(|number| format!("CAST({number} AS STRING)")).collect();
                format!("{}(' ',\n    {}\n  )", self.function("concat_ws"), texts.join(",\n    "))
            }
        }
    }

    /// The names of the types of columns as one text, with semicolons between them.
    pub(super) fn types(self, columns: &[String]) -> String {
        let of = |column: &String| match self {
            Self::Postgres => postgres_text(&self.call("pg_typeof", &[column])),
            // The name of an enumeration lists its values.
            Self::DuckDb => {
                let name = self.call("typeof", &[column]);
                let begins = self.call("starts_with", &[&name, "'ENUM('"]);
                let ends = self.call("ends_with", &[&name, "')'"]);
                format!("CASE WHEN {begins} AND {ends} THEN 'ENUM' ELSE {name} END")
            }
            Self::Spark => self.call("typeof", &[column]),
        };
        let types: Vec<String> = columns.iter().map(of).collect();
        let types = types.join(", ");
        match self {
            Self::Postgres => self.call("array_to_string", &[&format!("ARRAY[{types}]"), "';'"]),
            Self::DuckDb | Self::Spark => self.call("concat_ws", &["';'", &types]),
        }
    }

    /// How a step of the query begins: its name is only a name, and nothing is kept for it.
    pub(super) fn step(self, name: &str) -> String {
        match self {
            Self::Postgres | Self::DuckDb => format!("{name} AS NOT MATERIALIZED ("),
            Self::Spark => format!("{name} AS ("),
        }
    }

    /// Values of a row, a row for each, as `place` among them and `cell`.
    pub(super) fn one_by_one(self, values: &[String]) -> String {
        let places: Vec<String> = (0..values.len()).map(|place| place.to_string()).collect();
        let (places, values) = (places.join(", "), values.join(", "));
        match self {
            Self::Postgres => {
                let each = |list: &str| self.call("unnest", &[&format!("ARRAY[{list}]")]);
                format!("{} AS place, {} AS cell", each(&places), each(&values))
            }
            // Its own syntax, which no function of somebody's can stand for.
            Self::DuckDb => format!("unnest([{places}]) AS place, unnest([{values}]) AS cell"),
            Self::Spark => {
                let pairs: Vec<String> = places
                    .split(", ")
                    .zip(values.split(", "))
                    .map(|(place, value)| format!("{place}, {value}"))
                    .collect();
                format!("stack({}, {}) AS (place, cell)", pairs.len(), pairs.join(", "))
            }
        }
    }

    /// What keeps the steps of a query apart.
    pub(super) fn fence(self) -> &'static str {
        match self {
            // Without it the planner would write each expression out wherever it is used, and
            // compute it as often. OFFSET 0 would do so too, but then no step is computed by
            // several processes.
            Self::Postgres => "\n  OFFSET NULL",
            Self::DuckDb | Self::Spark => "",
        }
    }

    /// What is true and makes an expression one that is computed once a row.
    pub(super) fn and_once(self) -> &'static str {
        match self {
            // From version 2 on its planner writes an expression out wherever it is used, and once
            // more in the next step, until memory ends; but not one that might come out differently
            // every time.
            Self::DuckDb => " AND system.main.random() < 2",
            Self::Postgres | Self::Spark => "",
        }
    }

    /// What a type means for potluck; nothing if it is none that a table may have.
    pub(super) fn kind(self, name: &str) -> Option<TypeKind> {
        let decimal = |prefix: &str| name.starts_with(prefix) && name.ends_with(')');
        Some(match (self, name) {
            (Self::Postgres, "smallint" | "integer" | "bigint")
            | (Self::Spark, "tinyint" | "smallint" | "int" | "bigint")
            | (
                Self::DuckDb,
                "TINYINT" | "SMALLINT" | "INTEGER" | "BIGINT" | "UTINYINT" | "USMALLINT" | "UINTEGER"
                | "UBIGINT",
            ) => TypeKind::Integer,
            (Self::Postgres, "numeric" | "real" | "double precision")
            | (Self::Spark, "float" | "double" | "void")
            | (Self::DuckDb, "FLOAT" | "DOUBLE" | "HUGEINT" | "UHUGEINT" | "\"NULL\"") => TypeKind::Number,
            (Self::DuckDb, _) if decimal("DECIMAL(") => TypeKind::Number,
            (Self::Spark, _) if decimal("decimal(") => TypeKind::Number,
            (Self::Postgres | Self::Spark, "boolean") | (Self::DuckDb, "BOOLEAN") => TypeKind::Boolean,
            (Self::Postgres | Self::Spark, "date") | (Self::DuckDb, "DATE") => TypeKind::Date,
            // `character` pads with blanks, and whether they count is for its owner to say.
            (Self::Postgres, "text" | "character varying")
            | (Self::DuckDb, "VARCHAR" | "ENUM")
            | (Self::Spark, "string") => TypeKind::Text,
            (Self::Spark, _) if decimal("varchar(") || name.starts_with("string collate ") => TypeKind::Text,
            _ => return None,
        })
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// No such dialect.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("a dialect is postgres, duckdb or spark")]
pub struct UnknownDialect;

impl FromStr for Dialect {
    type Err = UnknownDialect;

    fn from_str(name: &str) -> Result<Self, UnknownDialect> {
        Self::ALL.into_iter().find(|dialect| dialect.name() == name).ok_or(UnknownDialect)
    }
}

/// A double that is a whole number, as an integer; Spark also cuts off a fraction.
pub(super) fn whole(double: &str) -> String {
    format!("CAST({double} AS bigint)")
}

/// PostgreSQL's text of a value. Other types that queries name are words of its syntax.
fn postgres_text(value: &str) -> String {
    format!("CAST({value} AS pg_catalog.text)")
}

/// A type's name without what stands in brackets, where an engine may list values.
pub(crate) fn shown_type(name: &str) -> &str {
    name.split(['(', '<']).next().unwrap_or_default()
}

/// What the values of a column are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TypeKind {
    Integer,
    Number,
    Boolean,
    Date,
    Text,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What stands between the quotes of a quoted name or literal, or nothing if a quote ends it
    /// early.
    fn unquoted(text: &str, quote: char) -> Option<String> {
        let inner = text.strip_prefix(quote)?.strip_suffix(quote)?;
        let doubled: String = [quote, quote].iter().collect();
        (!inner.replace(&doubled, "").contains(quote)).then(|| inner.replace(&doubled, &quote.to_string()))
    }

    proptest! {
        #[test]
        fn no_name_leaves_its_quotes(name in "[^\\x00]{1,40}") {
            for dialect in Dialect::ALL {
                let quote = if dialect == Dialect::Spark { '`' } else { '"' };
                prop_assert_eq!(unquoted(&dialect.identifier(&name), quote), Some(name.clone()));
            }
        }

        #[test]
        fn no_text_leaves_its_quotes(text in prop_oneof!["[^\\x00]{0,40}", "['\\\\;a-]{0,12}"]) {
            let duckdb = Dialect::DuckDb.text(&text);
            let inner = duckdb.strip_prefix("system.main.encode(").and_then(|text| text.strip_suffix(')')).unwrap();
            prop_assert_eq!(unquoted(inner, '\''), Some(text.clone()));
            let spark = Dialect::Spark.text(&text);
            let digits = spark.strip_prefix("X'").and_then(|text| text.strip_suffix('\'')).unwrap();
            prop_assert_eq!(hex::decode(digits).unwrap(), text.as_bytes());
            let postgres = Dialect::Postgres.text(&text);
            let (escaped, plain) = match postgres.strip_prefix('E') {
                Some(literal) => (true, unquoted(literal, '\'')),
                None => (false, unquoted(&postgres, '\'')),
            };
            prop_assert_eq!(escaped, text.contains('\\'));
            let plain = plain.unwrap();
            let read = if escaped { plain.replace("\\\\", "\\") } else { plain };
            prop_assert_eq!(read, text);
        }

        #[test]
        fn doubles_are_read_back_to_the_same_bits(value in any::<f64>().prop_filter("finite", |x| x.is_finite())) {
            for dialect in Dialect::ALL {
                let literal = dialect.double(value);
                let digits = literal.split('\'').nth(1).unwrap();
                prop_assert_eq!(digits.parse::<f64>().unwrap().to_bits(), value.to_bits());
            }
        }
    }

    #[test]
    fn literals_of_each_dialect() {
        assert_eq!(Dialect::Postgres.identifier("a\"; DROP TABLE t; --"), "\"a\"\"; DROP TABLE t; --\"");
        assert_eq!(Dialect::Spark.identifier("a`b\\é"), "`a``b\\é`");
        assert_eq!(Dialect::Postgres.text("it's"), "'it''s'");
        assert_eq!(Dialect::Postgres.text("a\\'b"), "E'a\\\\''b'");
        assert_eq!(Dialect::DuckDb.text("a\\'b"), "system.main.encode('a\\''b')");
        assert_eq!(Dialect::Spark.text("a'é"), "X'6127C3A9'");
        assert_eq!(Dialect::Spark.double(-0.1), "CAST('-1e-1' AS DOUBLE)");
        assert_eq!(Dialect::Postgres.double(5e-324), "CAST('5e-324' AS double precision)");
        assert_eq!("spark".parse(), Ok(Dialect::Spark));
        assert_eq!("mysql".parse::<Dialect>(), Err(UnknownDialect));
    }

    #[test]
    fn types_that_a_table_may_have() {
        use TypeKind::{Boolean, Date, Integer, Number, Text};
        for (dialect, name, kind) in [
            (Dialect::Postgres, "double precision", Some(Number)),
            (Dialect::Postgres, "character varying", Some(Text)),
            (Dialect::Postgres, "character", None),
            (Dialect::Postgres, "timestamp without time zone", None),
            (Dialect::DuckDb, "DECIMAL(18,3)", Some(Number)),
            (Dialect::DuckDb, "DECIMAL(18,3)[]", None),
            (Dialect::DuckDb, "ENUM('a')[]", None),
            (Dialect::DuckDb, "UBIGINT", Some(Integer)),
            (Dialect::DuckDb, "DATE", Some(Date)),
            (Dialect::Spark, "string", Some(Text)),
            (Dialect::Spark, "boolean", Some(Boolean)),
            (Dialect::Spark, "timestamp", None),
            (Dialect::Spark, "array<int>", None),
        ] {
            assert_eq!(dialect.kind(name), kind, "{dialect} {name}");
        }
    }
}
