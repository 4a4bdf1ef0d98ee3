//! A study of method exchange from its sealing to its fit, in memory.
#![allow(clippy::unwrap_used)]

use potluck_core::mixing::MixingKey;
use potluck_release::block::Block;
use potluck_release::dataset::Completeness;
use potluck_release::files::Existing;
use potluck_release::fit::{Regression, fit};
use potluck_release::forecast::Asked;
use potluck_release::model::Learner;
use potluck_release::statement::{self, Guarantee};
use potluck_release::{Draft, Plan, PublicDataset, Release, Study};
use potluck_simulation::{Column, Exact, People, Simulation, Subjects};
use rand_chacha::ChaCha12Rng;
use rand_core::{Rng, SeedableRng};

const ROWS: usize = 20_000;
/// What pressure gains by a year of age, and by smoking.
const SLOPES: [f64; 2] = [0.6, 12.0];

fn text() -> String {
    let column = |name: &str, range: &str| format!("[[party.column]]\nname = {name:?}\n{range}\n");
    format!(
        "format = 1\n[study]\nname = \"t\"\nrows = {ROWS}\nid = \"integer\"\nmethod = \"exchange\"\n\
         [privacy]\nepsilon = 1.0\ndelta = 1e-6\n\
         [[party]]\nname = \"north\"\n{}[[party]]\nname = \"middle\"\n{}[[party]]\nname = \"south\"\n{}",
        column("age", "lo = 0\nhi = 100"),
        column("smoker", "levels = [\"no\", \"yes\"]"),
        column("pressure", "lo = 50\nhi = 250"),
    )
}

fn study() -> Study {
    Draft::parse(&text()).unwrap().seal(MixingKey::new([3; 32])).unwrap()
}

fn people() -> People {
    let mut rng = ChaCha12Rng::seed_from_u64(1);
    let mut uniform = || f64::from(rng.next_u32()) / 2_f64.powi(32);
    let (mut age, mut smoker, mut pressure) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROWS {
        let (a, s) = (20.0 + 60.0 * uniform(), u32::from(uniform() < 0.3));
        let residual: f64 = (0..12).map(|_| uniform() - 0.5).sum::<f64>() * 10.0;
        age.push(a);
        smoker.push(s);
        pressure.push(90.0 + SLOPES[0] * a + SLOPES[1] * f64::from(s) + residual);
    }
    let columns = [Column::Numbers(age), Column::Levels(smoker), Column::Numbers(pressure)];
    People::new(ROWS, columns.into_iter().map(|column| vec![column]).collect())
}

/// The releases and blocks of all parties, and what they give.
fn exchanged(study: &Study, seed: u64) -> (Vec<Release>, PublicDataset) {
    let (people, mut rng) = (people(), ChaCha12Rng::seed_from_u64(seed));
    let subjects = Subjects::new(study.seal().key().clone(), ROWS);
    let simulation = Simulation::new(study, &people, &subjects);
    let mut noise = |_: usize, _: &str| -> Box<dyn potluck_simulation::Noise> {
        Box::new(Exact(ChaCha12Rng::seed_from_u64(rng.next_u64())))
    };
    let dataset = simulation.dataset(&mut noise).unwrap();
    let sums: Vec<(String, Vec<Vec<i64>>)> =
        dataset.earlier_sums().map(|(party, sums)| (party.to_owned(), sums)).collect();
    let release = |(party, sums): &(String, Vec<Vec<i64>>)| Release::new(study, party, sums, None).unwrap();
    (sums.iter().map(release).collect(), dataset)
}

#[test]
fn slopes_are_found_where_mixed_rows_find_none() {
    let (_, dataset) = exchanged(&study(), 5);
    let model = fit(&dataset, &Regression::of("pressure")).unwrap();
    for (coefficient, slope) in model.coefficients.iter().zip(SLOPES) {
        let value = coefficient.value;
        assert!(value.low < slope && slope < value.high, "{}: {value:?}", coefficient.term.name());
        assert!(value.high - value.low < 0.3 * slope, "{}: {value:?}", coefficient.term.name());
        let parts = coefficient.parts.unwrap();
        assert!(parts.mixing == 0.0 && parts.privacy > 0.0, "{parts:?}");
    }
    let [low, high] = model.diagnostics.r_squared.unwrap().interval.unwrap();
    // 0.6²·300 + 12²·0.21 of that and 100.
    assert!(low < 0.582 && 0.582 < high && high - low < 0.2, "{low} to {high}");

    let usual = study().with_method(potluck_release::study::Method::Calibrated).unwrap();
    let (people, subjects) = (people(), Subjects::new(usual.seal().key().clone(), ROWS));
    let mut rng = ChaCha12Rng::seed_from_u64(5);
    let dataset = Simulation::new(&usual, &people, &subjects)
        .dataset(|_, _| Box::new(Exact(ChaCha12Rng::seed_from_u64(rng.next_u64()))))
        .unwrap();
    let wide = fit(&dataset, &Regression::of("pressure")).unwrap();
    for (exchanged, mixed) in model.coefficients.iter().zip(&wide.coefficients) {
        let width = |of: &potluck_release::model::Coefficient| of.value.high - of.value.low;
        assert!(width(exchanged) < 0.3 * width(mixed));
    }
}

#[test]
fn a_dataset_comes_back_as_it_was_and_not_if_a_block_was_changed() {
    let folder = tempfile::tempdir().unwrap();
    let (releases, dataset) = exchanged(&study(), 6);
    let path = folder.path().join("all.parquet");
    dataset.write(&path, Existing::Keep).unwrap();
    let back = PublicDataset::read(&path).unwrap();
    assert_eq!(back.blocks(), dataset.blocks());
    assert_eq!(back.content_hash(), dataset.content_hash());
    assert_eq!(back.columns().rows(), 0);

    let join = |blocks: &[Block], completeness| {
        PublicDataset::join_exchanged(&study(), &releases, blocks, completeness)
    };
    let blocks = dataset.blocks().to_vec();
    let shuffled: Vec<Block> = blocks.iter().rev().cloned().collect();
    assert_eq!(join(&shuffled, Completeness::All).unwrap().content_hash(), dataset.content_hash());
    let refused = |blocks: &[Block], word: &str| {
        let error = join(blocks, Completeness::All).unwrap_err().to_string();
        assert!(error.contains(word), "{error}");
    };
    refused(&blocks[1..], "the result of north with middle is missing");
    refused(&[&blocks[..], &blocks[..1]].concat(), "two results of north with middle");
    let other = |parties: [&str; 2], values: Vec<Option<i64>>| {
        [vec![Block::new(parties[0], parties[1], values)], blocks[1..].to_vec()].concat()
    };
    refused(&other(["north", "middle"], vec![Some(1); 2]), "a value for each two columns");
    refused(&other(["north", "middle"], vec![Some(1 << 39)]), "out of range");
    refused(&other(["middle", "north"], vec![Some(1)]), "is missing");
    // Without one block the rest can be used.
    let some = join(&blocks[1..], Completeness::Partial).unwrap();
    let model = fit(&some, &Regression::of("pressure")).unwrap();
    assert!(model.coefficients.iter().all(|coefficient| coefficient.value.estimate.is_finite()));
    // Without any, nothing is known between parties.
    let none = join(&[], Completeness::Partial).unwrap();
    let model = fit(&none, &Regression::of("pressure")).unwrap();
    let age = &model.coefficients[0].value;
    assert!(age.low < -1.0 && 1.0 < age.high, "{age:?}");
}

#[test]
fn learners_that_need_mixed_rows_say_so() {
    let (_, dataset) = exchanged(&study(), 7);
    for learner in [Learner::Ols, Learner::Debiased] {
        let refused = fit(&dataset, &Regression { learner, ..Regression::of("pressure") }).unwrap_err();
        assert!(refused.to_string().contains("no mixed rows"), "{refused}");
    }
}

#[test]
fn a_plan_says_what_parties_do_and_what_the_other_method_would_give() {
    let study = study();
    let plan = Plan::new(&study, true, &Asked::default()).unwrap();
    let does = |at: usize| (plan.exchange[at].offers_to.len(), plan.exchange[at].replies_to.len());
    assert_eq!([does(0), does(1), does(2)], [(2, 0), (1, 1), (0, 2)]);
    // 96·5 bytes a person and offer, 32·8 a reply.
    let bytes = |of_person: u64| ROWS as u64 * of_person;
    assert_eq!(plan.exchange[1].sends_bytes, bytes(480 + 256));
    assert_eq!(plan.exchange[0].sends_bytes, bytes(2 * 480));
    assert_eq!(plan.exchange[0].receives_bytes, bytes(2 * 256));
    let sent: u64 = plan.exchange.iter().map(|of| of.sends_bytes).sum();
    assert_eq!(sent, plan.exchange.iter().map(|of| of.receives_bytes).sum::<u64>());
    let usual = plan.otherwise.as_ref().unwrap();
    assert_eq!(usual.method, "calibrated");
    assert!(plan.outlook.recovered > usual.outlook.recovered);
    assert!(plan.outlook.coefficient_error < 0.3 * usual.outlook.coefficient_error);
    assert!(plan.joint.epsilon < usual.joint.epsilon, "the joint guarantee is better as well");
    assert!(plan.worst.as_ref().unwrap().epsilon >= plan.joint.epsilon);
    assert!(plan.warnings.iter().any(|warning| warning.contains("experimental")));

    // What the plan expects leaves out the allowance for clipping, most of what a fit says here.
    let model = fit(&exchanged(&study, 8).1, &Regression::of("pressure")).unwrap();
    let [age, label] = [17.3, 15.5];
    let error = model.coefficients[0].value.standard_error * age / label;
    let more = error / plan.outlook.coefficient_error;
    assert!((0.8..4.0).contains(&more), "{more}");
}

#[test]
fn parties_are_told_what_they_sign() {
    let study = study();
    let of = |party: &str| statement::of_release(&study, party).unwrap().join(" ");
    assert!(of("north").contains("leave your house, in their order, to middle and south."));
    assert!(of("middle").contains("leave your house, in their order, to south."));
    assert!(of("south").contains("No encrypted rows leave your house"));
    for party in ["north", "middle", "south"] {
        let text = of(party);
        for words in [
            "also against all its partners together",
            "partners know who is in your table",
            "keep it to itself",
            "experimental",
        ] {
            assert!(text.contains(words), "{party}: {words}");
        }
        assert!(!text.contains("and forever"), "{text}");
    }
    let worst = Guarantee::worst(&study).unwrap();
    assert!(of("north").contains(&worst.in_numbers()));
    let usual = study.with_method(potluck_release::study::Method::Calibrated).unwrap();
    assert!(Guarantee::worst(&usual).is_none());
    assert!(!statement::of_release(&usual, "north").unwrap().join(" ").contains("partners"));
}

#[test]
fn what_an_exchange_cannot_have_is_said() {
    let refused = |from: &str, to: &str, words: &str| {
        let error = Draft::parse(&text().replacen(from, to, 1)).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    };
    refused("id = \"integer\"", "id = \"row\"", "positions cannot tell");
    refused("id = \"integer\"", "id = \"integer\"\nmixing = \"sparse\"", "does not mix");
    refused("id = \"integer\"", "id = \"integer\"\nk = 100", "no mixed rows");
    refused("id = \"integer\"", "id = \"integer\"\npreset = \"paper\"", "rmgm and dgm");
    refused("format = 1", "format = 2", "format 1 only");
    refused("name = \"north\"", "name = \"north\"\nclip_norm = 1.0", "exchange finds the row norm itself");
}
