//! Writes the report on a made-up study of three parties to standard output:
//! `cargo run -p potluck-report --example sample > report.html`.
//!
//! The people are drawn from a seed and go through the real encoding, mixing and noise, so the page is what
//! a study of this size would give.

use std::error::Error;

use potluck_core::encoding::{Bounds, Q};
use potluck_core::learn::{Level, Ridge};
use potluck_core::mixing::MixingKey;
use potluck_core::noise::{NOISED_SUM_LIMIT, Sigma, add_noise};
use potluck_release::dataset::Completeness;
use potluck_release::fit::{DEFAULT_RIDGE, Regression, fit};
use potluck_release::model::Learner;
use potluck_release::signing::SigningKey;
use potluck_release::{Draft, PublicDataset, Release};
use rand_chacha::ChaCha20Rng;
use rand_core::{Rng, SeedableRng};
use zeroize::Zeroizing;

const STUDY: &str = r#"
format = 1
[study]
name = "Heart and home"
rows = 1000000
id = "integer"
k = 600
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

/// A standard normal deviate, near enough for made-up people: a sum of twelve uniforms.
fn normal(rng: &mut impl Rng) -> f64 {
    (0..12).map(|_| f64::from(rng.next_u32()) / f64::from(u32::MAX)).sum::<f64>() - 6.0
}

/// The encoded columns of one person, party after party.
fn person(rng: &mut impl Rng) -> [Vec<i32>; 3] {
    let numeric = |lo: f64, hi: f64, value: f64| Bounds::new(lo, hi).map_or(0, |bounds| bounds.encode(value));
    let age = 60.0 + 19.0 * normal(rng);
    let income = 58.0 + 26.0 * normal(rng) - 0.15 * (age - 60.0);
    let home = rng.next_u32() % 3;
    let bmi = 29.0 + 6.0 * normal(rng) + 0.04 * (age - 60.0) - 0.02 * (income - 58.0);
    let smoker = f64::from(rng.next_u32()) / f64::from(u32::MAX) < 0.3;
    let visits = 18.0 + 9.0 * normal(rng) + 0.1 * (age - 60.0);
    let pressure = 138.0 + 0.55 * (age - 60.0) + 1.5 * (bmi - 30.0) + if smoker { 9.0 } else { 0.0 }
        - 0.11 * (income - 60.0)
        + 9.0 * normal(rng);
    let level = |own: u32| if home == own { Q } else { 0 };
    [
        vec![numeric(80.0, 200.0, pressure), numeric(15.0, 45.0, bmi), if smoker { Q } else { 0 }],
        vec![numeric(20.0, 100.0, age), numeric(0.0, 40.0, visits)],
        vec![numeric(0.0, 120.0, income), level(0), level(1), level(2)],
    ]
}

fn main() -> Result<(), Box<dyn Error>> {
    let key = MixingKey::new([7; 32]);
    let study = Draft::parse(STUDY)?.seal(key.clone())?;
    let definition = study.definition();
    let mut rng = ChaCha20Rng::seed_from_u64(11);

    let k = study.seal().k();
    let mut sums: Vec<Vec<i64>> =
        definition.parties().iter().map(|party| vec![0; k as usize * party.width()]).collect();
    for id in 0..definition.rows() {
        let (row, sign) = key.subject(id.to_string().as_bytes()).sparse_entry(k);
        for (own, values) in sums.iter_mut().zip(person(&mut rng)) {
            let start = row as usize * values.len();
            for (sum, value) in own[start..].iter_mut().zip(values) {
                *sum += sign * i64::from(value);
            }
        }
    }

    let mut releases = Vec::new();
    for (at, (party, mut noised)) in definition.parties().iter().zip(sums).enumerate() {
        add_noise(
            &mut noised,
            Sigma::new(study.mixed_rows(party.name())?.sigma)?,
            NOISED_SUM_LIMIT,
            &mut rng,
        );
        // The last party of the sample does not sign.
        let signing_key = (at < 2).then(|| SigningKey::from_seed(&Zeroizing::new([at as u8 + 1; 32])));
        releases.push(Release::new(&study, party.name(), &noised, signing_key.as_ref())?);
    }
    let dataset = PublicDataset::join(&study, &releases, Completeness::All)?;
    let learner = match std::env::args().nth(1).as_deref() {
        Some("ols") => Learner::Ols,
        _ => Learner::Debiased,
    };
    let regression = Regression {
        label: "systolic_bp".to_owned(),
        features: None,
        learner,
        ridge: Ridge::new(DEFAULT_RIDGE)?,
        level: Level::default(),
    };
    let model = fit(&dataset, &regression)?;
    println!("{}", potluck_report::page(&model, &dataset));
    Ok(())
}
