//! Writes the report on a made-up study of three parties to standard output:
//! `cargo run -p potluck-report --example sample > report.html`.
//!
//! The people are drawn from a seed and go through the real encoding, mixing and noise, so the page
//! is what a study of this size would give. With `ols` or `debiased` behind `--`, the study uses
//! the paper's method.

use std::error::Error;

use potluck_core::mixing::MixingKey;
use potluck_release::dataset::Completeness;
use potluck_release::fit::{Regression, fit};
use potluck_release::model::Learner;
use potluck_release::signing::SigningKey;
use potluck_release::{Draft, PublicDataset, Release};
use potluck_simulation::{Column, Exact, People, Simulation, Subjects};
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

/// The columns of many people, party after party.
fn people(count: usize, rng: &mut impl Rng) -> People {
    let mut numbers: [Vec<f64>; 5] = Default::default();
    let mut levels: [Vec<u32>; 2] = Default::default();
    for _ in 0..count {
        let age = 60.0 + 19.0 * normal(rng);
        let income = 58.0 + 26.0 * normal(rng) - 0.15 * (age - 60.0);
        let bmi = 29.0 + 6.0 * normal(rng) + 0.04 * (age - 60.0) - 0.02 * (income - 58.0);
        let smoker = f64::from(rng.next_u32()) / f64::from(u32::MAX) < 0.3;
        let visits = 18.0 + 9.0 * normal(rng) + 0.1 * (age - 60.0);
        let pressure = 138.0 + 0.55 * (age - 60.0) + 1.5 * (bmi - 30.0) + if smoker { 9.0 } else { 0.0 }
            - 0.11 * (income - 60.0)
            + 9.0 * normal(rng);
        for (values, value) in numbers.iter_mut().zip([pressure, bmi, age, visits, income]) {
            values.push(value);
        }
        levels[0].push(u32::from(smoker));
        levels[1].push(rng.next_u32() % 3);
    }
    let [pressure, bmi, age, visits, income] = numbers.map(Column::Numbers);
    let [smoker, home] = levels.map(Column::Levels);
    People::new(count, vec![vec![pressure, bmi, smoker], vec![age, visits], vec![income, home]])
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
    let people = people(usize::try_from(definition.rows())?, &mut rng);
    let subjects = Subjects::new(key, people.rows());
    let sums = Simulation::new(&study, &people, &subjects)
        .sums(|_, _| Box::new(Exact(ChaCha20Rng::seed_from_u64(rng.next_u64()))), |_, _| ())?;

    let mut releases = Vec::new();
    for (at, (party, sums)) in definition.parties().iter().zip(&sums).enumerate() {
        // The last party of the sample does not sign.
        let signing_key = (at < 2).then(|| SigningKey::from_seed(&Zeroizing::new([at as u8 + 1; 32])));
        releases.push(Release::new(&study, party.name(), sums, signing_key.as_ref())?);
    }
    let dataset = PublicDataset::join(&study, &releases, Completeness::All)?;
    let regression = Regression {
        // Against life in the city: with an intercept, all levels together would be collinear.
        features: Some(FEATURES.map(str::to_owned).to_vec()),
        learner,
        ..Regression::of("systolic_bp")
    };
    let model = fit(&dataset, &regression)?;
    println!("{}", potluck_report::page(&model, &dataset));
    Ok(())
}
