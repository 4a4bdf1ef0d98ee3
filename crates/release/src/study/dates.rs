//! Dates as bounds: a column of dates holds days counted from the first of January 1970, as tables
//! with dates do.

use jiff::ToSpan;
use jiff::civil::{Date, date};

use super::definition::{Column, Domain};

/// The unit of a column whose bounds were given as dates.
pub const DAYS: &str = "days since 1970-01-01";

const FIRST: Date = date(1970, 1, 1);

/// The day of a date as `YYYY-MM-DD`, if it is one.
pub fn day_of(text: &str) -> Option<f64> {
    let has_form = text.len() == 10
        && text.bytes().enumerate().all(|(at, byte)| match at {
            4 | 7 => byte == b'-',
            _ => byte.is_ascii_digit(),
        });
    let date: Date = Some(text).filter(|_| has_form)?.parse().ok()?;
    Some((date.duration_since(FIRST).as_hours() / 24) as f64)
}

/// A day as a date; nothing if it is not a whole one, or thousands of years away.
pub fn date_of(day: f64) -> Option<String> {
    let whole = Some(day).filter(|day| day.fract() == 0.0 && day.abs() < 1e7)?;
    FIRST.checked_add((whole as i64).days()).ok().map(|date| date.to_string())
}

impl Column {
    /// The first and the last date, of a column whose bounds are dates.
    pub fn dates(&self) -> Option<[String; 2]> {
        let Domain::Numeric(bounds) = self.domain() else { return None };
        if self.unit() != Some(DAYS) {
            return None;
        }
        Some([date_of(bounds.lo())?, date_of(bounds.hi())?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_days_and_days_are_dates() {
        for (text, day) in
            [("1970-01-01", 0.0), ("1969-12-31", -1.0), ("2000-03-01", 11_017.0), ("0001-01-01", -719_162.0)]
        {
            assert_eq!(day_of(text), Some(day), "{text}");
            assert_eq!(date_of(day).as_deref(), Some(text));
        }
        for none in [
            "",
            "2001-02-29",
            "2001-13-01",
            "20010101",
            "2001-1-1",
            "01.02.2001",
            "2001-01-01T00:00",
            "２001-01-1",
        ] {
            assert_eq!(day_of(none), None, "{none:?}");
        }
        assert_eq!((date_of(0.5), date_of(f64::NAN), date_of(1e300)), (None, None, None));
    }
}
