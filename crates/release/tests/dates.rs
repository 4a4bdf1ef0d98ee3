//! Dates as bounds of columns: days since 1970, however they are written.
#![allow(clippy::unwrap_used)]

use potluck_core::mixing::MixingKey;
use potluck_fixtures::study;
use potluck_release::study::{DAYS, Domain};
use potluck_release::{AnyStudy, Error, Study};

/// A study in which a column says this of its values.
fn with(values: &str) -> String {
    study("births", 1000)
        .party("north", &[&format!("born {values}")])
        .party("south", &["weight lo = 0; hi = 10"])
        .to_string()
}

fn mistakes(values: &str) -> Vec<String> {
    let Err(Error::Study(mistakes)) = AnyStudy::parse(&with(values), None) else {
        panic!("{values} is accepted")
    };
    mistakes.iter().map(ToString::to_string).collect()
}

#[test]
fn a_study_with_dates_is_the_one_that_counts_the_days() {
    let sealed = |values: &str| {
        let AnyStudy::Unsealed(unsealed) = AnyStudy::parse(&with(values), None).unwrap() else {
            panic!("it has no seal")
        };
        unsealed.seal(|| Ok::<_, Error>(MixingKey::new([7; 32]))).unwrap()
    };
    let (dates, text) = sealed("lo = 1990-01-31\nhi = 2010-12-31");
    let column = &dates.definition().parties()[0].columns()[0];
    assert_eq!(column.dates().unwrap(), ["1990-01-31", "2010-12-31"]);
    assert_eq!(column.unit(), Some(DAYS));
    let Domain::Numeric(bounds) = column.domain() else { panic!("it has bounds") };
    assert_eq!((bounds.lo(), bounds.hi()), (7335.0, 14_974.0));
    // In quotes, or as days with their unit, it is the same study; so is its text, read again.
    let quoted = sealed("lo = \"1990-01-31\"\nhi = \"2010-12-31\"").0;
    let counted = sealed(&format!("lo = 7335\nhi = 14974\nunit = \"{DAYS}\"")).0;
    assert_eq!((dates.id(), &dates), (quoted.id(), &quoted));
    assert_eq!(dates.id(), counted.id());
    assert!(text.contains("lo = 1990-01-31"), "{text}");
    assert_eq!(Study::parse(&text).unwrap(), dates);
}

#[test]
fn what_is_no_date_is_explained() {
    for (values, words) in [
        ("lo = 1990-01-31\nhi = 14974", "hi: is a number where another bound is a date"),
        ("lo = 1990-01-31\nhi = 2010-12-31\nunit = \"years\"", "unit: is that of dates"),
        ("lo = 1990-01-31T00:00:00\nhi = 2010-12-31", "lo: is a time"),
        ("lo = \"31.01.1990\"\nhi = 2010-12-31", "or a date such as 1990-01-31"),
        ("lo = \"5%\"\nhi = 1", "is a percentage; write 0.05, or 5 if"),
        ("lo = \"0,5\"\nhi = 1", "is written with a comma; write 0.5"),
        ("lo = 2010-12-31\nhi = 1990-01-31", "hi"),
    ] {
        let said = mistakes(values).join("\n");
        assert!(said.contains(words), "{values}: no {words:?} in {said}");
    }
}
