//! Column names for a public study, from a party's private table.
//!
//! The schema of a Parquet or Arrow file is made of names. The first line of a CSV file is made of
//! names only if somebody wrote them there: without a header line it is a person, and a study is
//! public.

use std::path::Path;

use anyhow::Result;
use potluck_party::{Error, Table};

use super::Settings;

/// The names of a table's columns. Of a CSV file, only its first line is looked at, and only names
/// that somebody who can see them has confirmed are given: who passes `--yes-header`, or who is
/// asked.
pub(super) fn column_names(path: &Path, confirmed: bool, settings: &Settings<'_>) -> Result<Vec<String>> {
    let table = Table::open(path, &settings.resources.tmp)?;
    let names = table.column_names()?;
    if !table.names_are_a_line() {
        return Ok(names);
    }
    // The message tells where and never what.
    if let Some(at) = names.iter().position(|name| !can_be_a_name(name)) {
        return Err(Error::Table {
            table: table.name().to_owned(),
            problem: format!(
                "its first line does not hold column names: field {} is empty, or a number, a date or an address; add a header line",
                at + 1
            )
            .into(),
        }
        .into());
    }
    let question = || {
        format!(
            "The first line of {} says:\n  {}\nThese go into a public study. Are they names of columns, and not values of a person?",
            path.display(),
            names.join("\n  ")
        )
    };
    let unanswered = format!(
        "the first line of {} would go into a public study, and without a header line it is a person: look at it, and pass --yes-header if it holds names of columns",
        path.display()
    );
    settings.printer.confirm_shown(confirmed, question, unanswered)?;
    Ok(names)
}

/// Whether a field may be the name of a column rather than a value. What it lets through is still
/// asked about.
fn can_be_a_name(field: &str) -> bool {
    let field = field.trim();
    let has_letter = field.chars().any(char::is_alphabetic);
    has_letter
        && field.parse::<f64>().is_err()
        && !field.contains('@')
        && !field.chars().any(char::is_control)
        && !is_date(field)
        && !is_uuid(field)
}

/// Dates with letters in them; others have no letter at all.
fn is_date(field: &str) -> bool {
    const MONTHS: [&str; 12] =
        ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
    let digits = |at: usize, count: usize| {
        field.as_bytes().get(at..at + count).is_some_and(|bytes| bytes.iter().all(u8::is_ascii_digit))
    };
    // 1970-01-31T12:00:00Z
    if digits(0, 4) && digits(5, 2) && digits(8, 2) {
        return true;
    }
    // 31 Jan 1970
    let words: Vec<String> = words(field);
    let months = words.iter().filter(|word| MONTHS.iter().any(|month| word.starts_with(month)));
    let letters = words.iter().filter(|word| word.starts_with(char::is_alphabetic));
    months.count() == 1 && letters.count() == 1 && words.len() >= 3
}

/// Runs of letters and runs of digits, in small letters.
fn words(field: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut last = None;
    for character in field.chars() {
        let kind = character.is_alphanumeric().then(|| character.is_alphabetic());
        if kind.is_some() && kind != last {
            words.push(String::new());
        }
        if let (Some(_), Some(word)) = (kind, words.last_mut()) {
            word.extend(character.to_lowercase());
        }
        last = kind;
    }
    words
}

fn is_uuid(field: &str) -> bool {
    let lengths = field.split('-').map(str::len);
    lengths.eq([8, 4, 4, 4, 12]) && field.chars().all(|c| c == '-' || c.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_told_from_names() {
        for name in [
            "id",
            "age",
            "Age (years)",
            "q1",
            "t1_2",
            "Jahr",
            "größe",
            "体重",
            "bp_2020",
            "jan2020",
            "march",
            "no",
            "May",
            "income_€",
            "2nd_visit",
            "x",
            "deadbeef",
            "is smoker?",
            "x-y-z",
            "sales 2020 jan total 3",
        ] {
            assert!(can_be_a_name(name), "{name}");
        }
        for value in [
            "",
            "  ",
            "17",
            "-1.5",
            "1e5",
            "1,234.50",
            "12,5",
            "45%",
            "€ 12",
            "NaN",
            "inf",
            "1970-01-31",
            "31.01.1970",
            "01/31/70",
            "12:30",
            "1970-01-31T12:00:00Z",
            "1970/01/31 noon",
            "31 Jan 1970",
            "31-jan-70",
            "January 31, 1970",
            "31mar1970",
            "+44 20 7946 0958",
            "jane@example.org",
            "?",
            "-",
            "123e4567-e89b-12d3-a456-426614174000",
            "two\nlines",
        ] {
            assert!(!can_be_a_name(value), "{value}");
        }
    }
}
