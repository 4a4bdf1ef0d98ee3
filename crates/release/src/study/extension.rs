//! Extensions: a study to which others add parties later.
//!
//! An extension lists new parties only. It inherits the mixing key, μ, shares and k of the study
//! that it extends, its base, so the rows of all parties are mixed alike and can be joined; and its
//! sealed document holds that of the base, so that nothing else is needed to verify it.

use serde_json::{Value, json};

use super::document::{PrivacySection, Source, StudySection};
use super::{Definition, Mistakes, Seal, Study, checks};
use crate::Error;
use crate::place::{Key, Place};
use crate::remedy::{Problem, Remedy};

/// Most studies in a lineage: each document holds the one before it, and readers of TOML and JSON
/// limit how deep.
const LONGEST_LINEAGE: usize = 16;

/// A checked study that is not sealed yet and extends a sealed one.
///
/// It takes its mixing key from its base, so none can be given to it.
#[derive(Clone, Debug)]
pub struct Extension {
    definition: Definition,
    base: Study,
    text: String,
}

impl Extension {
    /// Reads an unsealed study and checks it as an extension of `base`.
    pub fn parse(text: &str, base: &Study) -> Result<Self, Error> {
        Self::from_source(&Source::from_toml(text)?, base)
    }

    pub(super) fn from_source(source: &Source, base: &Study) -> Result<Self, Error> {
        if source.is_sealed() {
            return Err(Error::AlreadySealed);
        }
        Ok(Self { definition: source.definition(Some(base))?, base: base.clone(), text: source.text() })
    }

    /// The study as people wrote it.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The sealed study that it extends.
    pub fn base(&self) -> &Study {
        &self.base
    }

    /// What the study says; its parties are those of the base and the new ones.
    pub fn definition(&self) -> &Definition {
        &self.definition
    }

    /// Fixes the noise of the new parties; everything else is the base's.
    pub fn seal(&self) -> Result<Study, Error> {
        Study::extending(self.definition.clone(), self.base.clone())
    }

    /// The text of the sealed study: the extension as people wrote it, with the seal and the base
    /// behind it.
    pub fn sealed_text(&self, study: &Study) -> String {
        study.sealed_text(&self.text)
    }
}

/// Whether a study that is to extend `base` says so.
pub(super) fn check_extends(extends: Option<&str>, base: &Study, mistakes: &mut Mistakes) -> bool {
    let problem = match extends {
        Some(extends) if extends == base.id() => return true,
        Some(extends) => Problem::from(format!(
            "is {extends:?}, but the study given as its base has the id {}; give the sealed file of the study that is extended, or correct the id",
            base.id()
        )),
        None => Problem::with(
            "is missing, so the study extends no other",
            Remedy::Extend { base: base.id().to_owned() },
        ),
    };
    mistakes.note(Place::study(Key::Extends), problem);
    false
}

/// Whether new parties can release under the key, μ, shares and k of `base`, given what their study
/// says, with defaults filled in, and the number of encoded columns of all parties.
pub(super) fn check_base(
    base: &Study,
    (study, privacy): (&StudySection, &PrivacySection),
    width: Option<u64>,
    mistakes: &mut Mistakes,
) {
    let of_base = base.definition().to_document();
    let (own, theirs) = (json!(study), json!(of_base.study));
    for key in [Key::Rows, Key::Id, Key::IdColumns, Key::IdRules, Key::Preset, Key::Method, Key::Mixing] {
        must_agree(Place::study(key), key, &own[key.name()], &theirs[key.name()], mistakes);
    }
    let (own, theirs) = (json!(privacy), json!(of_base.privacy));
    for key in [Key::Epsilon, Key::Delta, Key::Calibration] {
        must_agree(Place::privacy(key), key, &own[key.name()], &theirs[key.name()], mistakes);
    }
    let k = base.seal().k();
    must_agree(Place::study(Key::K), Key::K, &json!(study.k), &json!(k), mistakes);
    if let Some(width) = width.filter(|&width| width > k) {
        mistakes.note(
            Key::Party.into(),
            format!(
                "with those of the study that this one extends there are {width} encoded columns, and its k = {k} released rows cannot tell so many apart; bring fewer columns, or agree on a new study"
            ),
        );
    }
    if base.lineage().count() >= LONGEST_LINEAGE {
        mistakes.note(
            Place::study(Key::Extends),
            format!(
                "a study can be extended {} times in a row, and this one has been; agree on a new study",
                LONGEST_LINEAGE - 1
            ),
        );
    }
}

/// Notes a setting that differs from that of the study that is extended. Only the preset and what
/// is done to ids say something by their absence.
fn must_agree(place: Place, key: Key, own: &Value, of_base: &Value, mistakes: &mut Mistakes) {
    if own == of_base || (own.is_null() && !matches!(key, Key::Preset | Key::IdColumns | Key::IdRules)) {
        return;
    }
    let name = key.name();
    let is = if own.is_null() { "is not given".to_owned() } else { format!("is {own}") };
    let (was, remedy) = if of_base.is_null() {
        ("it is not given".to_owned(), format!("leave {name} out"))
    } else {
        (format!("it is {of_base}"), format!("set {name} = {of_base}"))
    };
    mistakes.note(
        place,
        format!(
            "{is}, but in the study that this one extends {was}; the releases would not go together: {remedy}, or agree on a new study"
        ),
    );
}

impl Study {
    /// The sealed study of this definition, which extends `base` and has been checked against it.
    fn extending(definition: Definition, base: Self) -> Result<Self, Error> {
        let seal = Seal::inherit(&definition, base.seal())?;
        Ok(Self::assemble(definition, seal, Some(Box::new(base))))
    }

    /// The same new parties as an extension of another base with the same parties.
    pub(super) fn onto(&self, base: Self) -> Result<Self, Error> {
        let definition = Definition {
            rows: base.definition().rows,
            k: self.definition().k.map(|_| base.seal().k()),
            extends: Some(base.id().to_owned()),
            ..self.definition().clone()
        };
        let definition = checks::checked(&definition.to_document(), Some(&base))?;
        Self::extending(definition, base)
    }
}

#[cfg(test)]
mod tests {
    use potluck_core::mixing::MixingKey;
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;
    use crate::canonical;
    use crate::dataset::{Completeness, PublicDataset};
    use crate::fit::{DEFAULT_RIDGE, Regression, fit};
    use crate::model::Learner;
    use crate::release::Release;
    use crate::statement::{self, Guarantee};
    use crate::study::{Draft, Party, Study};

    /// What all studies of a lineage say alike.
    const SETTINGS: &str = "rows = 2000\nid = \"integer\"\n";
    const PRIVACY: &str = "[privacy]\nepsilon = 1.0\ndelta = 1e-5\n";

    fn party(name: &str, columns: &[&str]) -> String {
        let column = |name: &&str| format!("[[party.column]]\nname = \"{name}\"\nlo = 0\nhi = 100\n");
        format!("[[party]]\nname = \"{name}\"\n{}", columns.iter().map(column).collect::<String>())
    }

    fn text(name: &str, settings: &str, parties: &str) -> String {
        format!("format = 1\n[study]\nname = \"{name}\"\n{settings}{PRIVACY}{parties}")
    }

    fn base_with(settings: &str) -> Study {
        let parties = party("north", &["age", "bmi"]) + &party("south", &["pressure"]);
        let text = text("base", &format!("{SETTINGS}{settings}"), &parties);
        Draft::parse(&text).unwrap().seal(MixingKey::new([1; 32])).unwrap()
    }

    fn base() -> Study {
        base_with("")
    }

    fn extension_text(base: &Study, settings: &str, parties: &str) -> String {
        text("later", &format!("{SETTINGS}extends = \"{}\"\n{settings}", base.id()), parties)
    }

    fn extend(base: &Study, settings: &str, name: &str, columns: &[&str]) -> Study {
        let text = extension_text(base, settings, &party(name, columns));
        Extension::parse(&text, base).unwrap().seal().unwrap()
    }

    /// Three studies, each of which extends the one before.
    fn lineage() -> Study {
        let second = extend(&base(), "", "east", &["salt"]);
        extend(&second, "", "west", &["sleep", "income"])
    }

    #[track_caller]
    fn refused<T>(result: Result<T, Error>, words: &[&str]) {
        let error = result.err().expect("it was accepted").to_string();
        for word in words {
            assert!(error.contains(word), "no {word:?} in: {error}");
        }
    }

    /// Noised sums of a release that somebody made up.
    fn release(study: &Study, party: &str) -> Release {
        let mut noised: Vec<Vec<i64>> = Vec::new();
        while let Some(stage) = study.stage(party, &noised).unwrap() {
            let sum = |i: i64| (i * 7919 + party.len() as i64) % 200_003 - 100_000;
            noised.push((0..stage.coordinates() as i64).map(sum).collect());
        }
        Release::new(study, party, &noised, None).unwrap()
    }

    fn names(study: &Study) -> Vec<&str> {
        study.definition().parties().iter().map(Party::name).collect()
    }

    #[test]
    fn an_extension_inherits_what_mixing_needs_and_lists_all_parties() {
        let base = base();
        let later = extend(&base, "", "east", &["salt", "sugar", "fat", "fibre"]);
        assert_eq!(names(&later), ["north", "south", "east"]);
        assert_eq!(later.own_parties().len(), 1);
        assert_eq!(later.base(), Some(&base));
        assert_eq!(later.definition().extends(), Some(base.id()));
        let (seal, of_base) = (later.seal(), base.seal());
        assert_eq!(seal.key(), of_base.key());
        assert_eq!(seal.mu(), of_base.mu());
        assert_eq!(seal.shares(), of_base.shares());
        assert_eq!(seal.k(), of_base.k());
        assert_ne!(later.id(), base.id());
        // The rule would have given other shares to so wide a party: the inherited ones are used.
        let alone = text("alone", SETTINGS, &party("east", &["salt", "sugar", "fat", "fibre"]));
        let alone = Draft::parse(&alone).unwrap().seal(MixingKey::new([1; 32])).unwrap();
        assert_ne!(alone.seal().k(), seal.k());
        for party in ["north", "south"] {
            assert_eq!(later.stage(party, &[]).unwrap(), base.stage(party, &[]).unwrap());
            assert_eq!(later.study_of(party).unwrap(), &base);
        }
        assert_eq!(later.study_of("east").unwrap(), &later);
        assert!(matches!(later.study_of("nobody"), Err(Error::UnknownParty { .. })));
    }

    #[test]
    fn sealed_extensions_come_back_as_they_were_without_any_other_file() {
        let base = base();
        let text = extension_text(&base, "", &party("east", &["salt"]));
        let extension = Extension::parse(&text, &base).unwrap();
        let later = extension.seal().unwrap();
        let sealed = extension.sealed_text(&later);
        assert!(sealed.starts_with(text.trim_end()));
        assert_eq!(Study::parse(&sealed).unwrap(), later);
        assert_eq!(Study::from_json(&later.to_json()).unwrap(), later);
        assert!(matches!(Study::parse(&text), Err(Error::NotSealed)));
        assert!(matches!(Extension::parse(&sealed, &base), Err(Error::AlreadySealed)));
    }

    #[test]
    fn a_lineage_of_three_verifies_and_delegates() {
        let third = lineage();
        assert_eq!(names(&third), ["north", "south", "east", "west"]);
        assert_eq!(third.lineage().count(), 3);
        assert_eq!(third.origin(), &base());
        assert_eq!(Study::from_json(&third.to_json()).unwrap(), third);
        assert_eq!(third.study_of("south").unwrap().id(), base().id());
        assert_eq!(third.study_of("east").unwrap(), third.base().unwrap());
        assert_eq!(third.study_of("west").unwrap(), &third);
        // The same with other subjects and another key, down to the first study.
        let other = third.with_rows(5000).unwrap().with_key(MixingKey::new([2; 32])).unwrap();
        assert_eq!(names(&other), names(&third));
        assert_eq!(Study::from_json(&other.to_json()).unwrap(), other);
        assert_eq!(other.origin().definition().rows(), 5000);
        assert_eq!(other.origin().seal().key(), &MixingKey::new([2; 32]));
    }

    #[test]
    fn the_longest_lineage_can_still_be_read() {
        let mut study = base_with("k = 300\n");
        for at in 1..LONGEST_LINEAGE {
            study = extend(&study, "", &format!("p{at}"), &[&format!("c{at}")]);
        }
        assert_eq!(Study::from_json(&study.to_json()).unwrap(), study);
        let json = serde_json::to_string(&study.to_json()).unwrap();
        assert_eq!(Study::from_json(&serde_json::from_str(&json).unwrap()).unwrap(), study);
        assert_eq!(Study::parse(&toml::to_string(&study.document()).unwrap()).unwrap(), study);
        let text = extension_text(&study, "", &party("last", &["straw"]));
        refused(Extension::parse(&text, &study), &["study.extends", "15 times"]);
    }

    #[test]
    fn what_must_be_alike_is_named_with_what_to_do() {
        let base = base();
        let good = extension_text(&base, "", &party("east", &["salt"]));
        Extension::parse(&good, &base).unwrap();
        // Harmless: only the new parties' tables are read with them.
        Extension::parse(&good.replace("[privacy]", "missing_tokens = [\"?\"]\n[privacy]"), &base).unwrap();
        let k = base.seal().k();
        Extension::parse(&good.replace("[privacy]", &format!("k = {k}\n[privacy]")), &base).unwrap();
        for (from, to, words) in [
            ("rows = 2000", "rows = 2001", ["study.rows: is 2001", "set rows = 2000"]),
            ("id = \"integer\"", "id = \"text\"", ["study.id", "set id = \"integer\""]),
            ("[privacy]", "method = \"rmgm\"\n[privacy]", ["study.method", "set method = \"calibrated\""]),
            ("[privacy]", "preset = \"paper\"\n[privacy]", ["study.preset", "leave preset out"]),
            ("[privacy]", "k = 40\n[privacy]", ["study.k: is 40", "agree on a new study"]),
            ("epsilon = 1.0", "epsilon = 0.5", ["privacy.epsilon: is 0.5", "set epsilon = 1.0"]),
            ("delta = 1e-5", "delta = 1e-6", ["privacy.delta", "set delta = 0.00001"]),
            ("[[party]]", "calibration = \"classical\"\n[[party]]", ["privacy.calibration", "analytic"]),
            ("name = \"east\"", "name = \"north\"", ["party \"north\"", "list new parties only"]),
            ("name = \"salt\"", "name = \"age\"", ["column \"age\"", "unique across all parties"]),
            ("extends = \"", "extends = \"0", ["study.extends", "correct the id"]),
        ] {
            assert!(good.contains(from), "{from}");
            refused(Extension::parse(&good.replacen(from, to, 1), &base), &words);
        }
        let alone = text("later", SETTINGS, &party("east", &["salt"]));
        refused(Extension::parse(&alone, &base), &["study.extends", base.id(), "leave --base out"]);
        let nobody = extension_text(&base, "", "").replace("format = 1", "format = 1\nparty = []");
        refused(Extension::parse(&nobody, &base), &["party: there is none"]);
        refused(Draft::parse(&good), &["extends", base.id(), "--base FILE"]);
        let few = base_with("method = \"rmgm\"\nk = 4\n");
        let wide = extension_text(&few, "method = \"rmgm\"\n", &party("east", &["salt", "fat"]));
        refused(Extension::parse(&wide, &few), &["5 encoded columns", "k = 4"]);
    }

    /// The study at the given depth of a document: 0 is itself, 1 its base, and so on.
    fn at(document: &mut Value, depth: usize) -> &mut Value {
        (0..depth).fold(document, |document, _| &mut document["sealed"]["base"])
    }

    /// Makes the ids, and what names them, right from the innermost study outwards, as a forger
    /// would.
    fn reseal(document: &mut Value) {
        if document["sealed"]["base"].is_object() {
            reseal(&mut document["sealed"]["base"]);
            document["study"]["extends"] = document["sealed"]["base"]["sealed"]["id"].clone();
        }
        document["sealed"].as_object_mut().unwrap().remove("id");
        let id = canonical::sha256_hex(&canonical::json(&*document));
        document["sealed"]["id"] = id.into();
    }

    #[test]
    fn forged_numbers_are_refused_anywhere_in_the_lineage_though_the_ids_are_right() {
        type Forgery = fn(&mut Value);
        let third = lineage();
        let mut untouched = third.to_json();
        reseal(&mut untouched);
        assert_eq!(untouched, third.to_json(), "resealing changes nothing by itself");
        let forgeries: [(&str, Forgery); 7] = [
            ("mixing_key", |study| study["sealed"]["mixing_key"] = "07".repeat(32).into()),
            ("k", |study| study["sealed"]["k"] = (study["sealed"]["k"].as_u64().unwrap() + 1).into()),
            ("mu", |study| study["sealed"]["mu"] = 1.0.into()),
            ("shares", |study| {
                let share = |study: &Value, at: usize| study["sealed"]["shares"][at].as_u64().unwrap();
                let (second, third) = (share(study, 1), share(study, 2));
                study["sealed"]["shares"][1] = (second - 4).into();
                study["sealed"]["shares"][2] = (third + 4).into();
            }),
            ("sigma", |study| {
                let sigma = &mut study["sealed"]["party"][0]["sigma"]["standardise-sum"];
                *sigma = (sigma.as_u64().unwrap() - 1).into();
            }),
            ("sigma", |study| study["sealed"]["party"][0]["name"] = "other".into()),
            ("sigma", |study| drop(study["sealed"]["party"].as_array_mut().unwrap().pop())),
        ];
        for depth in 0..3 {
            for (at_index, (word, forge)) in forgeries.iter().enumerate() {
                // A study that extends none may be mixed by any key; then those that extend it have
                // the wrong one.
                let mut forged = third.to_json();
                forge(at(&mut forged, depth));
                reseal(&mut forged);
                let error = Study::from_json(&forged).expect_err("it was accepted");
                assert!(
                    matches!(&error, Error::Seal { what } if what.contains(word)),
                    "{at_index} at {depth}: {error}"
                );
            }
        }
    }

    #[test]
    fn bases_that_do_not_belong_are_refused() {
        let third = lineage();
        let seal = |document: &Value, word: &str| {
            let error = Study::from_json(document).expect_err("it was accepted");
            assert!(matches!(&error, Error::Seal { what } if what.contains(word)), "{error}");
        };
        let mut changed = third.to_json();
        changed["study"]["extends"] = "00".repeat(32).into();
        seal(&changed, "base");
        let mut without = third.to_json();
        without["sealed"].as_object_mut().unwrap().remove("base");
        seal(&without, "base");
        let mut unnamed = third.to_json();
        unnamed["study"].as_object_mut().unwrap().remove("extends");
        seal(&unnamed, "base");
        let mut unsealed = third.to_json();
        unsealed["sealed"]["base"].as_object_mut().unwrap().remove("sealed");
        assert!(matches!(Study::from_json(&unsealed), Err(Error::NotSealed)));
        // Columns, bounds and budgets of the base are part of its id.
        for (pointer, value) in [
            ("/sealed/base/sealed/base/party/0/column/0/hi", Value::from(120.0)),
            ("/sealed/base/sealed/base/study/name", "another".into()),
            ("/sealed/base/party/0/column/0/name", "sugar".into()),
            ("/sealed/id", "00".repeat(32).into()),
        ] {
            let mut edited = third.to_json();
            *edited.pointer_mut(pointer).unwrap() = value;
            seal(&edited, "its id");
        }
        // With all ids made right, a larger budget for the latecomer alone is refused as well.
        let mut spending = third.to_json();
        spending["privacy"]["epsilon"] = 2.0.into();
        reseal(&mut spending);
        refused(Study::from_json(&spending), &["privacy.epsilon", "set epsilon = 1.0"]);
    }

    #[test]
    fn everyone_releases_under_the_study_that_lists_them() {
        let (base, third) = (base(), lineage());
        let second = third.base().unwrap();
        for (study, party, lists) in
            [(&third, "north", &base), (&third, "east", second), (second, "south", &base)]
        {
            let earlier = release(lists, party).earlier_sums();
            let mixed = vec![0; study.stage(party, &earlier).unwrap().unwrap().coordinates()];
            let noised = [earlier, vec![mixed]].concat();
            refused(
                Release::new(study, party, &noised, None),
                &[party, lists.id(), "sealed file of that study"],
            );
            Release::new(lists, party, &noised, None).unwrap();
        }
        refused(third.own_party("north"), &["base", base.id()]);
        assert_eq!(third.own_party("west").unwrap().name(), "west");
    }

    fn all_releases(third: &Study) -> Vec<Release> {
        names(third).iter().map(|party| release(third.study_of(party).unwrap(), party)).collect()
    }

    #[test]
    fn releases_of_a_lineage_are_joined_read_and_fitted() {
        let third = lineage();
        let releases = all_releases(&third);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("public.parquet");
        let joined = PublicDataset::join(&third, &releases, Completeness::All).unwrap();
        joined.write(&path, crate::files::Existing::Keep).unwrap();
        let dataset = PublicDataset::read(&path).unwrap();
        assert_eq!(dataset.study(), &third);
        assert_eq!(dataset.columns().names(), ["age", "bmi", "pressure", "salt", "sleep", "income"]);
        assert_eq!(crate::summary::of_dataset(&dataset).unwrap().len(), 4);
        let regression = Regression {
            label: "pressure".to_owned(),
            features: Some(vec!["income".to_owned(), "age".to_owned()]),
            kind: crate::model::Kind::Linear,
            learner: Learner::Posterior,
            ridge: potluck_core::learn::Ridge::new(DEFAULT_RIDGE).unwrap(),
            level: potluck_core::learn::Level::default(),
        };
        let model = fit(&dataset, &regression).unwrap();
        assert_eq!(model.coefficients[0].party, "west");
        assert_eq!(model.study_id, third.id());
        assert_eq!(model.privacy[4..], statement::joint(&third, 4));

        // The parties of the base alone, still as a dataset of the extension.
        PublicDataset::join(&third, &releases[..2], Completeness::Partial).unwrap();
        refused(PublicDataset::join(&third, &releases[..3], Completeness::All), &["west is missing"]);
        // Under the base, the latecomer has no place.
        refused(
            PublicDataset::join(&base(), &releases, Completeness::Partial),
            &["\"east\"", "extends this one: join all releases under it"],
        );
        // The same party under a study with the same numbers but another key, or another extension.
        let other = third.with_key(MixingKey::new([2; 32])).unwrap();
        for party in names(&third) {
            let strange = release(other.study_of(party).unwrap(), party);
            refused(
                PublicDataset::join(&third, &[strange], Completeness::Partial),
                &[party, "do not mix the same way"],
            );
        }
    }

    #[test]
    fn the_joint_guarantee_counts_everyone() {
        let (base, third) = (base(), lineage());
        let joint = |study: &Study| Guarantee::joint(study, study.definition().parties().len());
        assert_eq!(
            third.joint_mu_squared(4),
            potluck_core::accounting::MuSquared::checked_sum(std::iter::repeat_n(base.mu().squared(), 4))
                .unwrap()
        );
        assert!(joint(&third).epsilon > joint(third.base().unwrap()).epsilon);
        assert!(joint(third.base().unwrap()).epsilon > joint(&base).epsilon);
        assert_eq!(Guarantee::of_party(&third), Guarantee::of_party(&base));
        let said = |study: &Study, party: &str| statement::of_release(study, party).unwrap().join(" ");
        let figure = |study: &Study| joint(study).in_numbers();
        assert!(
            said(&third, "west").contains(&figure(&third)) && said(&third, "west").contains("all 4 releases")
        );
        // What was promised then stays as it was said.
        assert!(
            said(&base, "north").contains(&figure(&base)) && !said(&base, "north").contains(&figure(&third))
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        /// For every method and any k: the latecomer's noise satisfies the inequality for the
        /// inherited k, and is the smallest that does.
        #[test]
        fn the_noise_of_latecomers_is_the_smallest_for_what_they_inherit(
            method in 0..4_usize,
            k in 12..500_u64,
            epsilon in 1_u32..40,
            width in 1..6_usize,
        ) {
            use potluck_core::accounting::satisfies;
            let settings = [
                format!("k = {k}\n"),
                format!("method = \"rmgm\"\nk = {k}\n"),
                format!("method = \"rmgm\"\nmixing = \"bernoulli\"\nk = {k}\n"),
                format!("preset = \"paper\"\nk = {k}\n"),
            ];
            let epsilon = if method == 3 { f64::from(epsilon) / 40.0 } else { f64::from(epsilon) / 10.0 };
            let budget = |text: String| text.replace("epsilon = 1.0", &format!("epsilon = {epsilon:?}"));
            let parties = party("north", &["age", "bmi"]);
            let first = budget(text("base", &format!("{SETTINGS}{}", settings[method]), &parties));
            let base = Draft::parse(&first).unwrap().seal(MixingKey::new([1; 32])).unwrap();
            let columns: Vec<String> = (0..width).map(|at| format!("c{at}")).collect();
            let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
            let later = budget(extension_text(&base, &settings[method], &party("east", &columns)));
            let later = Extension::parse(&later, &base).unwrap().seal().unwrap();
            let (mu, stage) = (later.mu(), later.first_stage("east").unwrap());
            prop_assert_eq!(mu, base.mu());
            let sum: u32 = later.seal().shares().iter().map(|share| share.parts()).sum();
            prop_assert_eq!(sum, potluck_core::accounting::SHARES);
            let q = u128::from(potluck_core::encoding::Q.unsigned_abs());
            let change = match stage.encoder.ball() {
                // The first standardisation round: 4 a numeric column.
                None => q * q * 4 * width as u128,
                Some(ball) => {
                    prop_assert!(u128::from(ball.norm_squared()) >= width as u128 * q * q);
                    4 * u128::from(ball.norm_squared()) * if method == 2 { u128::from(k) } else { 1 }
                }
            };
            let sigma = stage.noise[0].1;
            let less = potluck_core::noise::Sigma::new(sigma.get() - 1).unwrap();
            prop_assert!(satisfies(sigma, mu, stage.share, (change, 1)));
            prop_assert!(!satisfies(less, mu, stage.share, (change, 1)));
            prop_assert_eq!(Study::from_json(&later.to_json()).unwrap(), later);
        }
    }
}
