//! Everything that is wrong in a study is said at once, in plain words, with its place.
#![allow(clippy::unwrap_used)]

use potluck_core::mixing::MixingKey;
use potluck_release::study::{Mistakes, Unsealed};
use potluck_release::{AnyStudy, Draft, Error, Extension, Study};
use proptest::prelude::*;
use serde_json::{Value, json};

const STUDY: &str = r#"format = 1

[study]
name = "three clinics"
rows = 1000
id = "integer"
method = "rmgm"
mixing = "sparse"
missing_tokens = ["", "NA"]

[privacy]
epsilon = 1.0
delta = 1e-5

[[party]]
name = "north"
clip_norm = 1.2

[[party.column]]
name = "age"
lo = 18
hi = 100
unit = "years"

[[party.column]]
name = "smoker"
levels = ["no", "yes"]
unknown = "missing"

[[party]]
name = "south"

[[party.column]]
name = "pressure"
lo = 80
hi = 200
missing = "midpoint"
"#;

fn mistakes<T>(read: Result<T, Error>) -> Mistakes {
    match read.err().expect("it was accepted") {
        Error::Study(mistakes) => mistakes,
        other => panic!("{other}"),
    }
}

/// What is wrong with the study after these changes, a mistake a line.
#[track_caller]
fn said(changes: &[(&str, &str)]) -> Vec<String> {
    let mut text = STUDY.to_owned();
    for (from, to) in changes {
        assert!(text.contains(from), "{from}");
        text = text.replacen(from, to, 1);
    }
    let mistakes = mistakes(AnyStudy::parse(&text, None));
    // Read as a draft or as a sealed study, it is refused for the same.
    assert_eq!(mistakes, self::mistakes(Draft::parse(&text)));
    assert_eq!(mistakes, self::mistakes(Study::parse(&text)));
    let line = |mistake: &potluck_release::study::Mistake| {
        let line = mistake.line().map_or_else(String::new, |line| format!("{line} "));
        format!("{line}{}: {}", mistake.place(), mistake.problem())
    };
    mistakes.iter().map(line).collect()
}

#[test]
fn eight_mistakes_are_eight_problems_in_the_order_of_the_document() {
    let said = said(&[
        ("rows = 1000", "rows = \"1000\""),
        ("id = \"integer\"", "id = \"integr\""),
        ("delta = 1e-5", "delta = 1.5\ncolour = \"red\""),
        ("lo = 18", "low = 18"),
        ("[\"no\", \"yes\"]", "[\"no\", \"no\"]"),
        ("[[party]]\nname = \"south\"", "[[party]]\nname = \"north\""),
        ("lo = 80\nhi = 200", "lo = 200\nhi = 80"),
    ]);
    assert_eq!(
        said,
        [
            "5 study.rows: is text; write a whole number in digits, without quotes",
            "6 study.id: is \"integr\"; write \"integer\" or \"text\" or \"row\"",
            "13 privacy.delta: delta must be above 0 and below 1, not 1.5; choose far less than one over the number of subjects",
            "14 privacy.colour: is not a key that belongs here; the keys here are epsilon, delta, calibration",
            "22 party \"north\", column \"age\": low: is not a key that belongs here; did you mean lo?",
            "28 party \"north\", column \"smoker\": levels: a level stands twice",
            "32 party \"north\": name: stands twice; give each party a name of its own",
            "37 party \"north\", column \"pressure\": hi: bounds must be finite numbers with lo < hi, at most 1e300 in size; choose the range the column is known to have",
        ]
    );
}

#[test]
fn what_is_missing_is_said_once_and_what_follows_from_a_mistake_is_not_said() {
    assert_eq!(
        said(&[("[privacy]\nepsilon = 1.0\ndelta = 1e-5\n", ""), ("name = \"three clinics\"\n", "")]),
        [
            "privacy: is missing; write a section that begins with [privacy]",
            "3 study.name: is missing; write text in quotes",
        ]
    );
    // A misspelt key is not missing; without the method it is not known whether the rest goes with
    // it.
    assert_eq!(
        said(&[("rows = 1000", "Rows = 1000"), ("method = \"rmgm\"", "method = \"dgmm\""), ("hi = 200", "")]),
        [
            "5 study.Rows: is not a key that belongs here; did you mean rows?",
            "7 study.method: is \"dgmm\"; write \"calibrated\" or \"rmgm\" or \"dgm\" or \"exchange\"",
            "33 party \"south\", column \"pressure\": needs public bounds lo and hi, or public levels; choose them from what is known without looking at the data",
        ]
    );
    assert_eq!(
        said(&[("clip_norm = 1.2", "clip_norm = 40"), ("name = \"pressure\"", "name = \"age\"")]),
        [
            "17 party \"north\": clip_norm: is larger than any row can be, √2; leave it out or lower it",
            "34 party \"south\", column \"age\": name: the same name stands elsewhere in the study, or in one that it extends; column names must be unique across all parties",
        ]
    );
    assert_eq!(
        said(&[("levels = [\"no\", \"yes\"]", "levels = [\"no\", 1, true]"), ("format = 1\n", "")]),
        [
            "format: is missing; begin the file with format = 1",
            "26 party \"north\", column \"smoker\", levels 2: is a whole number; write text in quotes",
            "26 party \"north\", column \"smoker\", levels 3: is true or false; write text in quotes",
        ]
    );
}

#[test]
fn an_extension_is_compared_with_its_base_however_much_is_wrong_with_it() {
    let base = Draft::parse(STUDY).unwrap().seal(MixingKey::new([1; 32])).unwrap();
    let later = STUDY.replace("[privacy]", &format!("extends = \"{}\"\n[privacy]", base.id()));
    let text = later.replace("rows = 1000", "rows = 999").replace("hi = 200", "hi = \"200\"");
    let words = mistakes(Extension::parse(&text, &base)).to_string();
    for word in [
        "7 things in the study are wrong:\n",
        "\n  line 5: study.rows: is 999, but in the study that this one extends it is 1000;",
        "\n  line 17: party \"north\": name: is a party of the study that this one extends;",
        "column \"age\": name: the same name",
        "column \"smoker\": name: the same name",
        "column \"pressure\": name: the same name",
        "\n  line 37: party \"south\", column \"pressure\": hi: is text;",
    ] {
        assert!(words.contains(word), "no {word:?} in {words}");
    }
    assert!(matches!(AnyStudy::parse(&later, None), Err(Error::BaseMissing { .. })));
}

#[test]
fn mistakes_of_the_base_within_a_sealed_study_are_placed_there() {
    let base = Draft::parse(STUDY).unwrap().seal(MixingKey::new([1; 32])).unwrap();
    let settings = "rows = 1000\nid = \"integer\"\nmethod = \"rmgm\"\n";
    let text = format!(
        "format = 1\n[study]\nname = \"later\"\nextends = \"{}\"\n{settings}[privacy]\nepsilon = 1.0\ndelta = 1e-5\n[[party]]\nname = \"east\"\n[[party.column]]\nname = \"salt\"\nlo = 0\nhi = 9\n",
        base.id()
    );
    let extension = Extension::parse(&text, &base).unwrap();
    let sealed = extension.sealed_text(&extension.seal().unwrap());
    let AnyStudy::Sealed { text: kept, .. } = AnyStudy::parse(&sealed, None).unwrap() else {
        panic!("it is sealed")
    };
    assert_eq!(kept, sealed);
    assert!(matches!(AnyStudy::parse(&sealed, Some(&base)), Err(Error::BaseNeedless)));
    let edited = sealed.replace("hi = 200.0", "hi = 2.0").replace("name = \"three", "name = \"\\u0007three");
    let places: Vec<String> = mistakes(AnyStudy::parse(&edited, None))
        .iter()
        .map(|mistake| {
            format!("{} {}", edited.lines().nth(mistake.line().unwrap() - 1).unwrap(), mistake.place())
        })
        .collect();
    assert_eq!(
        places,
        [
            "name = \"\\u0007three clinics\" sealed.base.study.name",
            "hi = 2.0 sealed.base, party \"south\", column \"pressure\": hi",
        ]
    );
    let unread = sealed.replace("mu = ", "mu = \"\" #");
    let words = mistakes(AnyStudy::parse(&unread, None)).to_string();
    assert!(words.contains("sealed.mu: is empty; write a number"), "{words}");
}

#[test]
fn a_stranger_cannot_make_more_of_a_list_than_people_can_read() {
    let column = json!({ "name": "", "lo": "x", "hi": [], "unit": 1 });
    let party = json!({ "name": "", "column": vec![column; 1000] });
    let document = json!({ "format": 1, "party": vec![party; 100] });
    let words = mistakes(Unsealed::from_json(&document, None)).to_string();
    assert_eq!(words.lines().count(), 102);
    assert!(words.ends_with(" more"), "{words}");
}

/// Words of the software that reads, not of people.
const FOREIGN: [&str; 9] = [
    "invalid type",
    "invalid value",
    "expected",
    "unknown field",
    "unknown variant",
    "missing field",
    "did not match",
    "data did",
    "map",
];

/// Where the parts of a document are.
fn pointers(value: &Value, at: &str, found: &mut Vec<String>) {
    found.push(at.to_owned());
    match value {
        Value::Object(entries) => {
            entries.iter().for_each(|(key, value)| pointers(value, &format!("{at}/{key}"), found));
        }
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(key, value)| pointers(value, &format!("{at}/{key}"), found));
        }
        _ => {}
    }
}

/// Another value for what is there, by what it was before.
fn retyped(value: &Value, how: usize) -> Value {
    let others = [
        json!(true),
        json!(-3),
        json!(2.5),
        json!("x"),
        json!([]),
        json!([1, "x"]),
        json!({}),
        json!(1_u64 << 60),
    ];
    if how < others.len() { others[how].clone() } else { json!([value]) }
}

/// Removes, retypes or renames a part of the document.
fn mutate(document: &mut Value, pointer: &str, how: usize) {
    let Some((outer, key)) = pointer.rsplit_once('/') else { return };
    let (key, outer) = (key.to_owned(), document.pointer_mut(outer).expect("it is there"));
    match outer {
        Value::Object(entries) => {
            let value = entries.remove(&key).expect("it is there");
            match how {
                0 => {}
                1 => drop(entries.insert(format!("{key}x"), value)),
                2 => drop(entries.insert("colour".to_owned(), value)),
                _ => drop(entries.insert(key, retyped(&value, how - 3))),
            }
        }
        Value::Array(items) => {
            let at: usize = key.parse().expect("a position");
            match how {
                0 => drop(items.remove(at)),
                1 | 2 => items.push(items[at].clone()),
                _ => items[at] = retyped(&items[at], how - 3),
            }
        }
        _ => unreachable!("it holds the value"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn no_message_speaks_the_language_of_the_software_that_reads(
        sealed in any::<bool>(),
        mutations in proptest::collection::vec((any::<prop::sample::Index>(), 0..12_usize), 1..6),
    ) {
        let study = Draft::parse(STUDY).unwrap().seal(MixingKey::new([1; 32])).unwrap();
        let mut document = study.to_json();
        if !sealed {
            document.as_object_mut().unwrap().remove("sealed");
        }
        for (which, how) in mutations {
            let mut parts = Vec::new();
            pointers(&document, "", &mut parts);
            if parts.len() > 1 {
                mutate(&mut document, &parts[1 + which.index(parts.len() - 1)], how);
            }
        }
        let text = toml::to_string(&document).unwrap();
        let (of_text, of_json) = (AnyStudy::parse(&text, None), Unsealed::from_json(&document, None));
        for error in [of_text.err(), of_json.err()].into_iter().flatten() {
            let words = error.to_string();
            for foreign in FOREIGN {
                prop_assert!(!words.contains(foreign), "{}", words);
            }
            if let Error::Study(mistakes) = error {
                prop_assert!(mistakes.iter().count() > 0);
                let place = |mistake: &potluck_release::study::Mistake| (mistake.line(), mistake.place().clone());
                prop_assert!(mistakes.iter().map(place).is_sorted());
            }
        }
    }
}
