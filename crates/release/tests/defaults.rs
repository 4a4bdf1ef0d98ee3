//! What a study means if it does not say it, then and now.
#![allow(clippy::unwrap_used)]

use potluck_core::mixing::MixingKey;
use potluck_release::study::{Domain, Unknown};
use potluck_release::{Draft, Error, Study, statement};

/// A file as version 0.1 sealed it: it leaves out what happens to unknown levels of `smoker`.
const SEALED_BY_0_1: &str = r#"format = 1

[study]
name = "sealed by version 0.1"
rows = 1000
id = "integer"
k = 20

[privacy]
epsilon = 1.0
delta = 1e-5

[[party]]
name = "clinic"

[[party.column]]
name = "smoker"
levels = ["no", "yes"]

[[party.column]]
name = "region"
levels = ["north", "south", "other"]
unknown = "other"

[[party]]
name = "registry"

[[party.column]]
name = "outcome"
lo = 0
hi = 1
# Written by `potluck study seal`; do not edit.
[sealed]
id = "4f7bbc421ae2b4547b9286045734bd0d169bf033070e9db31706a620c5164197"
mixing_key = "da4d7511b0267c30be1dc41a9ec2c5dc8947f4b1ac943d96964e0b7b8c89f915"
mu = 0.2680511230137199
shares = [131072, 131072, 262144, 524288]
k = 20

[[sealed.party]]
name = "clinic"

[sealed.party.sigma]
standardise-square = 2947731918
standardise-sum = 299439

[[sealed.party]]
name = "registry"

[sealed.party.sigma]
standardise-square = 3403747632
standardise-sum = 345763
"#;

const ID: &str = "4f7bbc421ae2b4547b9286045734bd0d169bf033070e9db31706a620c5164197";

fn draft() -> &'static str {
    SEALED_BY_0_1.split("# Written by").next().unwrap()
}

fn unknown(study: &Study, column: &str) -> Unknown {
    let (_, column) = study.definition().columns().find(|(_, found)| found.name() == column).unwrap();
    match column.domain() {
        Domain::Categorical { unknown, .. } => *unknown,
        Domain::Numeric(_) => panic!("it has levels"),
    }
}

#[test]
fn what_version_0_1_sealed_keeps_its_id_and_its_meaning() {
    let study = Study::parse(SEALED_BY_0_1).unwrap();
    assert_eq!(study.id(), ID);
    assert_eq!(unknown(&study, "smoker"), Unknown::Error);
    assert_eq!(unknown(&study, "region"), Unknown::Other);
    // From then on it is said.
    assert_eq!(Study::parse(&study.to_toml()).unwrap(), study);
    // Another id is still no id of it.
    for forged in [ID.replacen('4', "5", 1), "0".repeat(64)] {
        let refused = Study::parse(&SEALED_BY_0_1.replace(ID, &forged));
        assert!(matches!(refused, Err(Error::Seal { .. })));
    }
}

#[test]
fn a_draft_that_does_not_say_it_counts_unknown_levels_as_missing() {
    let draft = Draft::parse(draft()).unwrap();
    let study = draft.seal(MixingKey::new([7; 32])).unwrap();
    assert_eq!(unknown(&study, "smoker"), Unknown::Missing);
    let again = Study::parse(&draft.sealed_text(&study)).unwrap();
    assert_eq!(again, study);
    assert_ne!(study.with_key(Study::parse(SEALED_BY_0_1).unwrap().seal().key().clone()).unwrap().id(), ID);
}

#[test]
fn a_party_is_told_what_the_study_makes_it_refuse() {
    let warning = |more: &str| {
        let text =
            draft().replace("levels = [\"no\", \"yes\"]", &format!("levels = [\"no\", \"yes\"]\n{more}"));
        let study = Draft::parse(&text).unwrap().preview().unwrap();
        assert_eq!(statement::refusals(&study, "registry").unwrap(), None);
        statement::refusals(&study, "clinic").unwrap()
    };
    let unknown = "a value that is not among the levels of smoker";
    let missing = "a missing value of smoker";
    for (more, says_unknown, says_missing) in [
        ("", false, false),
        ("unknown = \"missing\"", false, false),
        ("unknown = \"error\"", true, false),
        ("missing = \"error\"", true, true),
        ("unknown = \"error\"\nmissing = \"error\"", true, true),
    ] {
        let warning = warning(more).unwrap_or_default();
        assert_eq!(warning.contains(unknown), says_unknown, "{more}: {warning}");
        assert_eq!(warning.contains(missing), says_missing, "{more}: {warning}");
        assert!(!warning.contains("region"), "{warning}");
    }
}
