//! Studies and releases of format 2, and what keeps them apart from those of format 1.
#![allow(clippy::unwrap_used)]
#![allow(clippy::float_cmp)] // the floats compared are exact

use potluck_core::mixing::MixingKey;
use potluck_fixtures::{sealed, sealed_with_text, study};
use potluck_release::files::Existing;
use potluck_release::study::{Format, IdRule, TableRows};
use potluck_release::{Draft, Error, Extension, Release, Study, fit};

/// Two clinics: the north has twice as many people as the study says, its smoker is never missing.
fn text(settings: &str, more: &str) -> String {
    let north =
        &["age lo = 18; hi = 100; typical = 60", "smoker levels = [\"no\", \"yes\"]; missing = \"never\""];
    let text = study("cohorts", 5000)
        .of_cohorts()
        .settings(settings)
        .party("north", north)
        .party("south", &["pressure lo = 80; hi = 200"])
        .to_string();
    text.replacen("name = \"north\"\n", "name = \"north\"\nrows = 10000\n", 1) + more
}

/// A release with made-up sums.
fn release(study: &Study, party: &str) -> Release {
    let mut noised: Vec<Vec<i64>> = Vec::new();
    while let Some(stage) = study.stage(party, &noised).unwrap() {
        noised.push((0..stage.coordinates() as i64).map(|i| 1000 * i % 7001 + 4000).collect());
    }
    Release::new(study, party, &noised, None).unwrap()
}

#[track_caller]
fn refused(text: &str, what: &[&str]) {
    let Err(Error::Study(mistakes)) = Draft::parse(text) else { panic!("it was accepted") };
    let said = mistakes.to_string();
    assert!(what.iter().all(|what| said.contains(what)), "{said}");
}

#[test]
fn a_study_of_format_2_says_what_format_1_cannot() {
    let settings = "overlap = [0.9, 1]\nid = \"text\"\nid_rules = [\"trim\", \"lowercase\"]";
    let more = "[[overlap]]\nparties = [\"south\", \"north\"]\nshare = \"all\"\n";
    let (study, whole) = sealed_with_text(&text(settings, more), 3);
    let definition = study.definition();
    assert_eq!(definition.format(), Format::Two);
    let [north, south] = definition.parties() else { panic!("two parties") };
    assert_eq!(definition.table_rows(north), TableRows::About(10_000));
    assert_eq!(definition.table_rows(south), TableRows::About(5000));
    assert_eq!((definition.table_rows(south).most(), definition.table_rows(south).fewest()), (20_000, 0));
    assert_eq!(definition.overlap("north", "south"), [1.0, 1.0]);
    assert_eq!(definition.overlap("north", "elsewhere"), [0.9, 1.0]);
    assert_eq!(definition.id_rules(), [IdRule::Trim, IdRule::Lowercase]);
    assert_eq!(north.columns()[0].typical(), Some(60.0));
    assert!(north.columns()[0].may_miss() && !north.columns()[1].may_miss());
    assert_eq!(north.published_names(), ["age", "smoker=yes", "present@north"]);
    assert_eq!(Study::parse(&whole).unwrap(), study);
    assert_eq!(Study::parse(&study.to_toml()).unwrap().id(), study.id());
    // What it leaves out stands in the document as it was meant.
    let filled = text(settings, more).replace("typical = 60", "typical = 60.0\nmissing = \"counted\"");
    assert_eq!(sealed(&filled, 3).id(), study.id());
    assert_ne!(sealed(&text(settings, ""), 3).id(), study.id());
}

#[test]
fn what_does_not_go_together_is_refused_with_a_remedy() {
    let change = |from: &str, to: &str| text("", "").replacen(from, to, 1);
    refused(&change("format = 2", "format = 3"), &["formats 1 to 2"]);
    refused(&text("method = \"rmgm\"", ""), &["method", "set format = 1"]);
    refused(&text("preset = \"paper\"", ""), &["leave method and preset out"]);
    refused(&text("id = \"row\"", ""), &["id", "set format = 1 if"]);
    refused(&change("missing = \"never\"", "missing = \"midpoint\""), &["counted"]);
    refused(&change("typical = 60", "typical = 101"), &["typical", "between lo and hi"]);
    refused(&change("rows = 10000", "rows = 1"), &["at least 2"]);
    refused(&change("\"age\"", "\"present@south\""), &["the same name"]);
    refused(&text("overlap = [0.9, 1.1]", ""), &["overlap", "least"]);
    refused(&text("overlap = \"some\"", ""), &["\"all\", or"]);
    refused(
        &text("", "[[overlap]]\nparties = [\"north\", \"west\"]\nshare = [0, 1]\n"),
        &["two different parties"],
    );
    refused(&text("id_rules = [\"trim\"]", ""), &["id = \"text\""]);
    let ids = |rules: &str| text(&format!("id = \"text\"\nid_rules = {rules}"), "");
    refused(&ids("[\"lowercase\", \"trim\"]"), &["in this order"]);
    refused(&ids("[\"uppercase\"]"), &["in this order"]);
    refused(&ids("[\"strip-zeros\", \"date\"]"), &["keep one"]);
    // Keys of format 2 in format 1.
    let old = |text: String| text.replacen("format = 2", "format = 1", 1);
    refused(&old(text("overlap = \"all\"", "")), &["rows", "overlap", "missing", "typical", "format 2"]);
    refused(&old(ids("[\"trim\"]")), &["id_rules", "set format = 2"]);
}

#[test]
fn sums_of_many_more_people_than_expected_still_fit() {
    let rows = |rows: u64| text("", "").replacen("rows = 5000", &format!("rows = {rows}"), 1);
    Draft::parse(&rows(1 << 25)).unwrap().seal(MixingKey::new([1; 32])).unwrap();
    let refused = Draft::parse(&rows(1 << 32)).and_then(|draft| draft.seal(MixingKey::new([1; 32])));
    assert!(refused.unwrap_err().to_string().contains("overflow"));
}

#[test]
fn a_release_of_format_2_comes_back_as_it_was_and_cannot_be_forged() {
    let study = sealed(&text("k = 30", ""), 3);
    let release = release(&study, "north");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("north.parquet");
    let noised: Vec<i64> = {
        let (columns, stage) = (release.columns(), release.mixed_stage().unwrap());
        let sum = |row: usize, column: usize| {
            (columns.values()[column][row] * stage.scale_of(column)).round() as i64
        };
        (0..columns.rows())
            .flat_map(|row| (0..3).map(move |column| sum(row, column)).collect::<Vec<_>>())
            .collect()
    };
    let earlier = release.earlier_sums();
    let outline = potluck_release::release::Outline::new(&study, "north", &earlier, None).unwrap();
    let (pending, _) =
        outline.write(&path, Existing::Keep, || Ok::<_, Error>([Ok(noised.clone())].into_iter())).unwrap();
    pending.unwrap().publish().unwrap();
    let back = Release::read_for(&path, &study, "north").unwrap();
    assert_eq!(back.content_hash(), release.content_hash());
    assert_eq!(back.columns(), release.columns());
    assert_eq!(Release::read(&path).unwrap().earlier_sums(), earlier);

    // Names of stages and the weight of presence are part of what is hashed.
    let bytes = std::fs::read(&path).unwrap();
    let text = String::from_utf8_lossy(&bytes);
    assert!(text.contains("\"shapes\"") && text.contains("\"presence\":") && text.contains("\"format\":2"));
    for (from, to) in
        [("\"presence\":", "\"presencE\":"), ("\"shapes\"", "\"shapez\""), ("\"format\":2", "\"format\":1")]
    {
        let at = bytes.windows(from.len()).position(|window| window == from.as_bytes()).unwrap();
        let mut forged = bytes.clone();
        forged[at..at + to.len()].copy_from_slice(to.as_bytes());
        std::fs::write(&path, forged).unwrap();
        assert!(Release::read(&path).is_err(), "{to}");
    }
}

#[test]
fn datasets_have_the_presence_of_each_party_behind_its_columns() {
    use potluck_release::dataset::{Completeness, PublicDataset};
    let study = sealed(&text("", ""), 3);
    let releases = [release(&study, "north"), release(&study, "south")];
    let dataset = PublicDataset::join(&study, &releases, Completeness::All).unwrap();
    assert_eq!(
        dataset.columns().names(),
        ["age", "smoker=yes", "present@north", "pressure", "present@south"]
    );
    // Presence is no column that people brought.
    let model = fit::fit(&dataset, &fit::Regression::of("pressure")).unwrap();
    let terms: Vec<String> = model.coefficients.iter().map(|coefficient| coefficient.term.name()).collect();
    assert_eq!(terms, ["age", "smoker=yes"]);
    for feature in ["present@north", "present@south"] {
        let regression =
            fit::Regression { features: Some(vec![feature.to_owned()]), ..fit::Regression::of("pressure") };
        assert!(matches!(fit::fit(&dataset, &regression), Err(potluck_release::Error::UnknownColumn { .. })));
    }
}

#[test]
fn studies_are_extended_in_their_own_format() {
    let base = sealed(&text("id = \"text\"\nid_rules = [\"trim\"]", ""), 3);
    let later = |format: u64, settings: &str| {
        let settings = format!("id = \"text\"\nextends = \"{}\"\n{settings}", base.id());
        let text =
            study("later", 5000).settings(&settings).party("west", &["bmi lo = 10; hi = 60"]).to_string();
        text.replacen("format = 1", &format!("format = {format}"), 1)
    };
    let extended = Extension::parse(&later(2, "id_rules = [\"trim\"]"), &base).unwrap().seal().unwrap();
    assert_eq!(extended.seal().k(), base.seal().k());
    let own = extended.stage("west", &[]).unwrap().unwrap();
    assert_eq!(own.name, "shapes");
    release(&extended, "west");
    for (format, settings, what) in
        [(1, "", "format"), (2, "", "id_rules"), (2, "id_rules = [\"lowercase\"]", "id_rules")]
    {
        let error = Extension::parse(&later(format, settings), &base).unwrap_err().to_string();
        assert!(error.contains(what), "{error}");
    }
}
