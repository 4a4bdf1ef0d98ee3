//! Fitting with 90 features in ten parties, as in the paper's largest table: the posterior learner with intervals and R²
//! beside plain least squares on the same rows.
#![allow(clippy::unwrap_used)]

use divan::Bencher;
use faer::Mat;
use potluck_core::calibrated::Clipping;
use potluck_core::learn::{Evidence, Released, Ridge, explained_share, ols, posterior};
use potluck_core::noise::{Sigma, rounded_gaussian};
use rand_chacha::ChaCha12Rng;
use rand_core::SeedableRng;

const FEATURES: usize = 90;
const PARTIES: usize = 10;
const PEOPLE: u64 = 412_276;
const ROWS: usize = 800;
const NOISE: f64 = 22.0;

struct Dataset {
    columns: Vec<Vec<f64>>,
    noise: Vec<f64>,
}

/// Mixed rows of features that share a factor, and of a label that they explain in part.
fn dataset() -> Dataset {
    let mut rng = ChaCha12Rng::seed_from_u64(1);
    let sigma = Sigma::new(1 << 20).unwrap();
    let mut normal = || rounded_gaussian(sigma, &mut rng) as f64 / f64::from(1 << 20);
    let per_row = (PEOPLE as f64 / ROWS as f64).sqrt();
    let mut columns = vec![Vec::new(); FEATURES + 1];
    for _ in 0..ROWS {
        let common = normal();
        let mut label = normal();
        for (j, column) in columns[..FEATURES].iter_mut().enumerate() {
            let x = 0.4 * common + 0.9 * normal();
            label += x / (1.0 + j as f64);
            column.push(per_row * x + NOISE * normal());
        }
        columns[FEATURES].push(per_row * label / 1.8 + NOISE * normal());
    }
    Dataset { columns, noise: vec![NOISE; FEATURES + 1] }
}

fn with_evidence<T>(dataset: &Dataset, run: impl FnOnce(&Evidence<'_>, &[usize]) -> T) -> T {
    let columns: Vec<&[f64]> = dataset.columns.iter().map(Vec::as_slice).collect();
    let p = columns.len();
    let of = |column: usize| (column * PARTIES / p).min(PARTIES - 1);
    let evidence = Evidence {
        released: Released::new(&columns, &dataset.noise, PEOPLE).unwrap(),
        parties: (0..PARTIES).map(|party| (0..p).filter(|&column| of(column) == party).collect()).collect(),
        covariance: Mat::from_fn(p, p, |i, j| if i == j { 1.0 } else { 0.16 }),
        covariance_noise: vec![5e-4; p],
        spurious: Mat::zeros(p, p),
        clipping: vec![Clipping { attenuation: 1.1, ..Clipping::NONE }; p],
    };
    let features: Vec<usize> = (0..FEATURES).collect();
    run(&evidence, &features)
}

#[divan::bench]
fn posterior_with_intervals_and_r_squared(bencher: Bencher<'_, '_>) {
    let dataset = dataset();
    with_evidence(&dataset, |evidence, features| {
        bencher.bench_local(|| {
            let fit = posterior(evidence, FEATURES, features).unwrap();
            (fit.estimate.standard_errors(), explained_share(evidence, FEATURES, features).unwrap())
        });
    });
}

#[divan::bench]
fn least_squares(bencher: Bencher<'_, '_>) {
    let dataset = dataset();
    with_evidence(&dataset, |evidence, features| {
        bencher.bench_local(|| ols(&evidence.released, FEATURES, features, Ridge::NONE).unwrap());
    });
}

fn main() {
    divan::main();
}
