//! Rules that all parties apply alike to ids before they are hashed, so that ids that are written
//! differently are the same.
//!
//! They look at ASCII only, and each is one that every engine can do exactly.

use super::definition::IdRule;

/// What stands between the parts of an id that is made of several columns.
pub const ID_SEPARATOR: char = '\u{1f}';

impl IdRule {
    /// All rules, in the order in which they are applied.
    pub const ALL: [Self; 5] =
        [Self::Trim, Self::Lowercase, Self::StripZeros, Self::Alphanumeric, Self::Date];

    /// What becomes of a part of an id.
    fn apply(self, part: &str) -> String {
        match self {
            Self::Trim => part.trim_matches(is_blank).to_owned(),
            Self::Lowercase => part.to_ascii_lowercase(),
            Self::StripZeros => strip_zeros(part),
            Self::Alphanumeric => part.chars().filter(char::is_ascii_alphanumeric).collect(),
            Self::Date => date(part).unwrap_or_else(|| part.to_owned()),
        }
    }
}

/// What rules make of a part of an id. It is missing if nothing is left.
pub fn apply_all(rules: &[IdRule], part: &str) -> String {
    rules.iter().fold(part.to_owned(), |part, rule| rule.apply(&part))
}

fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\u{b}' | '\u{c}' | '\r')
}

/// Without the zeros that begin a run of digits, unless one is all there is of it.
fn strip_zeros(part: &str) -> String {
    let mut kept = String::with_capacity(part.len());
    let mut characters = part.chars().peekable();
    // Whether only zeros of a run, which may begin it, have been seen.
    let mut leading = true;
    while let Some(c) = characters.next() {
        let more = characters.peek().is_some_and(char::is_ascii_digit);
        if !(leading && c == '0' && more) {
            kept.push(c);
            leading = !c.is_ascii_digit();
        }
    }
    kept
}

/// A date of four digits, two and two, with or without one of `-`, `/`, `.` between, as
/// `YYYY-MM-DD`.
fn date(part: &str) -> Option<String> {
    let mut rest = part.as_bytes();
    let mut digits = |count: usize, last: bool| -> Option<String> {
        let (own, others) = rest.split_at_checked(count)?;
        rest = match others {
            [b'-' | b'/' | b'.', others @ ..] if !last => others,
            others => others,
        };
        let text = std::str::from_utf8(own).ok()?;
        text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.to_owned())
    };
    let (year, month, day) = (digits(4, false)?, digits(2, false)?, digits(2, true)?);
    rest.is_empty().then(|| format!("{year}-{month}-{day}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_that_are_written_differently_become_the_same() {
        use IdRule::{Alphanumeric, Date, Lowercase, StripZeros, Trim};
        let cases: [(&[IdRule], &str, &str); 16] = [
            (&[], " P007 ", " P007 "),
            (&[Trim], " \t P007\r\n", "P007"),
            (&[Trim], "\u{a0}P\u{a0}", "\u{a0}P\u{a0}"),
            (&[Lowercase], "PÄ7", "pÄ7"),
            (&[StripZeros], "P000007", "P7"),
            (&[StripZeros], "00a00b010-000", "0a0b10-0"),
            (&[StripZeros], "0", "0"),
            (&[StripZeros], "100200", "100200"),
            (&[Alphanumeric], "12-34/ü 5", "12345"),
            (&[Alphanumeric], "--", ""),
            (&[Date], "1987/06/05", "1987-06-05"),
            (&[Date], "19870605", "1987-06-05"),
            (&[Date], "1987.06-05", "1987-06-05"),
            (&[Date], "5.6.1987", "5.6.1987"),
            (&[Date], "1987-06-051", "1987-06-051"),
            (&[Trim, Lowercase, Alphanumeric, Date], " 1987-06-05 ", "1987-06-05"),
        ];
        for (rules, id, expected) in cases {
            assert_eq!(apply_all(rules, id), expected, "{id:?}");
        }
    }

    #[test]
    fn no_text_makes_rules_fail() {
        for id in ["", "é", "198é0605", "1987-é", "é0", "0é0", "１９８７"] {
            apply_all(&IdRule::ALL, id);
        }
    }
}
