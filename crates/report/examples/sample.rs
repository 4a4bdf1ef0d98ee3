//! Writes the report on a made-up study of three parties to standard output:
//! `cargo run -p potluck-report --example sample > report.html`.
//!
//! The people are drawn from a seed and go through the real encoding, mixing and noise, so the page is what
//! a study of this size would give. With `ols` or `debiased` behind `--`, the study uses the paper's method.

use std::error::Error;

use potluck_core::encoding::{EncodedRows, Values};
use potluck_core::learn::{Level, Ridge};
use potluck_core::mixing::{MixingKey, SubjectDigest};
use potluck_core::noise::add_noise;
use potluck_release::dataset::Completeness;
use potluck_release::fit::{DEFAULT_RIDGE, Regression, fit};
use potluck_release::model::Learner;
use potluck_release::signing::SigningKey;
use potluck_release::{Draft, PublicDataset, Release, Study};
use rand_chacha::ChaCha20Rng;
use rand_core::{Rng, SeedableRng};
use zeroize::Zeroizing;

const STUDY: &str = r#"
format = 1
[study]
name = "Heart and home"
rows = 1000000
id = "integer"
method = "METHOD"
[privacy]
epsilon = 1.0
delta = 1e-6
[[party]]
name = "county-hospital"
[[party.column]]
name = "systolic_bp"
lo = 80
hi = 200
unit = "mmHg"
description = "Systolic blood pressure, mean of two readings at rest."
[[party.column]]
name = "bmi"
lo = 15
hi = 45
unit = "kg/m²"
description = "Body mass index."
[[party.column]]
name = "smoker"
levels = ["no", "yes"]
description = "Smoked in the last twelve months."
[[party]]
name = "health-insurer"
[[party.column]]
name = "age"
lo = 20
hi = 100
unit = "years"
[[party.column]]
name = "visits"
lo = 0
hi = 40
unit = "visits"
description = "Visits to any doctor in a year."
[[party]]
name = "statistics-office"
[[party.column]]
name = "income"
lo = 0
hi = 120
unit = "k€"
description = "Household income of a year, after tax."
[[party.column]]
name = "home"
levels = ["city", "suburb", "country"]
description = "Where the household lives."
"#;

const FEATURES: [&str; 7] = ["bmi", "smoker=yes", "age", "visits", "income", "home=suburb", "home=country"];

/// A standard normal deviate, near enough for made-up people: a sum of twelve uniforms.
fn normal(rng: &mut impl Rng) -> f64 {
    (0..12).map(|_| f64::from(rng.next_u32()) / f64::from(u32::MAX)).sum::<f64>() - 6.0
}

/// The raw columns of many people, party after party.
struct People {
    numbers: [Vec<f64>; 5],
    levels: [Vec<u32>; 2],
}

impl People {
    fn new(count: u64, rng: &mut impl Rng) -> Self {
        let mut people = Self { numbers: Default::default(), levels: Default::default() };
        for _ in 0..count {
            let age = 60.0 + 19.0 * normal(rng);
            let income = 58.0 + 26.0 * normal(rng) - 0.15 * (age - 60.0);
            let bmi = 29.0 + 6.0 * normal(rng) + 0.04 * (age - 60.0) - 0.02 * (income - 58.0);
            let smoker = f64::from(rng.next_u32()) / f64::from(u32::MAX) < 0.3;
            let visits = 18.0 + 9.0 * normal(rng) + 0.1 * (age - 60.0);
            let pressure = 138.0 + 0.55 * (age - 60.0) + 1.5 * (bmi - 30.0) + if smoker { 9.0 } else { 0.0 }
                - 0.11 * (income - 60.0)
                + 9.0 * normal(rng);
            for (values, value) in people.numbers.iter_mut().zip([pressure, bmi, age, visits, income]) {
                values.push(value);
            }
            people.levels[0].push(u32::from(smoker));
            people.levels[1].push(rng.next_u32() % 3);
        }
        people
    }

    /// The columns of each party, in the study's order.
    fn parties(&self) -> [Vec<Values<'_>>; 3] {
        let [pressure, bmi, age, visits, income] = &self.numbers;
        let [smoker, home] = &self.levels;
        [
            vec![Values::Numbers(pressure), Values::Numbers(bmi), Values::Levels(smoker)],
            vec![Values::Numbers(age), Values::Numbers(visits)],
            vec![Values::Numbers(income), Values::Levels(home)],
        ]
    }
}

/// The noised sums of every stage of a party's release.
fn stages(
    study: &Study,
    party: &str,
    values: &[Values<'_>],
    subjects: &[SubjectDigest],
    rng: &mut ChaCha20Rng,
) -> Result<Vec<Vec<i64>>, Box<dyn Error>> {
    let mut published: Vec<Vec<i64>> = Vec::new();
    while let Some(stage) = study.stage(party, &published)? {
        let mut sums = vec![0; stage.coordinates()];
        let mut encoded = EncodedRows::default();
        stage.encode(values, subjects.len(), &mut encoded);
        stage.accumulate(subjects, 0, &encoded, &mut sums);
        let mut start = 0;
        for &(count, sigma) in &stage.noise {
            add_noise(&mut sums[start..start + count], sigma, stage.sum_limit(), rng);
            start += count;
        }
        published.push(sums);
    }
    Ok(published)
}

fn main() -> Result<(), Box<dyn Error>> {
    let (method, learner) = match std::env::args().nth(1).as_deref() {
        Some("ols") => ("rmgm", Learner::Ols),
        Some("debiased") => ("rmgm", Learner::Debiased),
        _ => ("calibrated", Learner::Posterior),
    };
    let key = MixingKey::new([7; 32]);
    let study = Draft::parse(&STUDY.replace("METHOD", method))?.seal(key.clone())?;
    let definition = study.definition();
    let mut rng = ChaCha20Rng::seed_from_u64(11);
    let people = People::new(definition.rows(), &mut rng);
    let subjects: Vec<SubjectDigest> =
        (0..definition.rows()).map(|id| key.subject(id.to_string().as_bytes())).collect();

    let mut releases = Vec::new();
    for (at, (party, values)) in definition.parties().iter().zip(people.parties()).enumerate() {
        let noised = stages(&study, party.name(), &values, &subjects, &mut rng)?;
        // The last party of the sample does not sign.
        let signing_key = (at < 2).then(|| SigningKey::from_seed(&Zeroizing::new([at as u8 + 1; 32])));
        releases.push(Release::new(&study, party.name(), &noised, signing_key.as_ref())?);
    }
    let dataset = PublicDataset::join(&study, &releases, Completeness::All)?;
    let regression = Regression {
        label: "systolic_bp".to_owned(),
        // Against life in the city: with an intercept, all levels together would be collinear.
        features: Some(FEATURES.map(str::to_owned).to_vec()),
        learner,
        ridge: Ridge::new(DEFAULT_RIDGE)?,
        level: Level::default(),
    };
    let model = fit(&dataset, &regression)?;
    println!("{}", potluck_report::page(&model, &dataset));
    Ok(())
}
