//! What is wrong and what people can do about it, where that depends on what they work with.
//!
//! The command, the Python package and a hub's pages have different names for the same remedy, so
//! an error carries it as a value. Printed as it is, an error speaks to people at the command line;
//! whoever else passes it on gives it a [`Voice`].

use std::fmt;

/// What people can do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// Name another column that holds the ids.
    OtherIdColumn,
    /// Name the column that holds the ids.
    IdColumn,
    /// Name a column that holds positions.
    PositionColumn,
    /// Look at the spelling of a column and at the header line.
    CheckSpelling,
    /// Remove a column, or leave alone those that the study does not name.
    IgnoreExtra,
    /// Give one file, or what else can be read.
    OneFile,
    /// Wait until nobody writes to the table, then start again.
    WaitAndRepeat,
    /// Release exported columns.
    Export,
    /// Agree on a study with sparse mixing, or release exported columns.
    SparseOrExport,
    /// Release columns that were exported in their public order.
    ExportInOrder,
    /// Do not declare the column as booleans.
    NoBoolean,
    /// Do not declare the column as dates, or cast it.
    NoDate,
    /// Remove a damaged file of the state folder, and start again.
    RemoveState,
    /// Export again what the query gave.
    ExportResult,
    /// Hand in what the query at hand gives.
    ResultOfQuery,
    /// Make a signing key.
    NewKey,
    /// Use the public key that was made with the signing key.
    PublicKeyBeside,
    /// Add the release, or join what there is.
    JoinPartial,
    /// Say which study is extended, or give no base.
    Extend {
        /// The id of the study given as the base.
        base: String,
    },
    /// Look at the table at home, or say that it is meant so.
    AcceptLost,
    /// Write what a key of a study takes.
    Write(Shape),
}

/// What a key of a study takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Text.
    Text,
    /// A whole number, not below 0.
    Whole,
    /// Any number.
    Number,
    /// A number on a column's scale, or a date.
    Bound,
    /// One of these words.
    Word(&'static [&'static str]),
    /// A range of shares, or everybody.
    Share,
    /// Any number of these.
    List(&'static Shape),
    /// A section of its own, with this at its head.
    Section(&'static str),
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text => f.write_str("text in quotes"),
            Self::Whole => f.write_str("a whole number in digits, without quotes"),
            Self::Number => f.write_str("a number in digits, without quotes"),
            Self::Bound => f.write_str("a number in digits, without quotes, or a date such as 1990-01-31"),
            Self::Word(words) => write!(f, "\"{}\"", words.join("\" or \"")),
            Self::Share => f.write_str("\"all\", or the least and the largest share: [0.9, 1]"),
            Self::List(Self::Section(head)) => write!(f, "a section that begins with [[{head}]] for each"),
            Self::List(one) => write!(f, "a list in brackets, each entry {one}"),
            Self::Section(head) => write!(f, "a section that begins with [{head}]"),
        }
    }
}

/// Words for remedies.
pub trait Voice {
    /// A clause that tells people to do it.
    fn say(&self, remedy: &Remedy) -> String;
}

/// The words of the command.
pub struct Command;

impl Voice for Command {
    fn say(&self, remedy: &Remedy) -> String {
        let words = match remedy {
            Remedy::OtherIdColumn => "name another id column with --id",
            Remedy::IdColumn => "name the column that holds the ids with --id",
            Remedy::PositionColumn => "name with --id a column of whole numbers that holds them, from 0",
            Remedy::CheckSpelling => "the study expects it: check the spelling and the header line",
            Remedy::IgnoreExtra => "remove it, or pass --ignore-extra to leave such columns alone",
            Remedy::OneFile => "give one CSV, Parquet or Arrow file, or `-` to read standard input",
            Remedy::WaitAndRepeat => "wait until nobody writes to it, then run the command again",
            Remedy::Export => "export the columns and use `potluck release --data`",
            Remedy::SparseOrExport => {
                "agree on a study with mixing = \"sparse\", which has the same privacy and accuracy, or export the columns and use `potluck release --data`"
            }
            Remedy::ExportInOrder => {
                "export the columns in their public order and use `potluck release --data`"
            }
            Remedy::NoBoolean => "leave out --boolean for it",
            Remedy::NoDate => "leave out --date for it, or cast it to a date in a view",
            Remedy::RemoveState => "remove it and run `potluck sql` again",
            Remedy::ExportResult => "export again, as it came, what a query of `potluck sql` gave",
            Remedy::ResultOfQuery => "run `potluck sql` and hand in what its query gives",
            Remedy::NewKey => "make one with `potluck key new`",
            Remedy::PublicKeyBeside => "`potluck key new` writes one beside the private key",
            Remedy::JoinPartial => "add it, or join what there is with --partial",
            Remedy::AcceptLost => {
                "look at the table with `potluck validate`; if it is meant so, pass --accept-lost-values"
            }
            Remedy::Extend { base } => {
                return format!("add extends = \"{base}\" to [study], or leave --base out");
            }
            Remedy::Write(shape) => return format!("write {shape}"),
        };
        words.to_owned()
    }
}

/// What is wrong, in words that never depend on what people work with, and what to do where that
/// does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    what: String,
    remedy: Option<Remedy>,
}

impl Problem {
    /// What is wrong, and the remedy.
    pub fn with(what: impl Into<String>, remedy: Remedy) -> Self {
        Self { what: what.into(), remedy: Some(remedy) }
    }

    /// The remedy, if it depends on what people work with.
    pub fn remedy(&self) -> Option<&Remedy> {
        self.remedy.as_ref()
    }

    /// All of it as a clause.
    pub fn in_words(&self, voice: &impl Voice) -> String {
        match &self.remedy {
            Some(remedy) => format!("{}; {}", self.what, voice.say(remedy)),
            None => self.what.clone(),
        }
    }
}

impl From<String> for Problem {
    fn from(what: String) -> Self {
        Self { what, remedy: None }
    }
}

impl From<&str> for Problem {
    fn from(what: &str) -> Self {
        what.to_owned().into()
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.in_words(&Command))
    }
}
