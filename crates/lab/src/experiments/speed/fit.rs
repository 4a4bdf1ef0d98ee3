//! Fitting with 90 features in ten parties, as in the paper's largest table: the posterior learner
//! with intervals and R² beside plain least squares, and that beside NumPy's, on the same rows.

use std::num::NonZero;

use anyhow::{Result, ensure};
use faer::Mat;
use potluck_core::learn::{
    Between, Clipping, Evidence, Level, People, Released, Ridge, explained_share, ols, posterior,
};
use rand_core::SeedableRng;
use rand_distr::{Distribution, StandardNormal};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde_json::json;

use super::{AS_FAST, Contestant, Figure, NO_PEER, Setup, THE_TIME, clock, duration};
use crate::seeds::Seed;

const FEATURES: usize = 90;
const PARTIES: usize = 10;
const PEOPLE: u64 = 412_276;
const ROWS: usize = 800;
const NOISE: f64 = 22.0;

/// Seconds that a fit may take.
const GOAL: f64 = 0.1;

/// Mixed rows of features that share a factor, and of a label that they explain in part; the label
/// is the last column.
fn columns() -> Vec<Vec<f64>> {
    let mut rng = Xoshiro256PlusPlus::from_seed(Seed::new(1).of("fit").bytes());
    let mut normal = || -> f64 { StandardNormal.sample(&mut rng) };
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
    columns
}

fn evidence(released: Released<'_>) -> Evidence<'_> {
    let p = released.columns().len();
    let of = |column: usize| (column * PARTIES / p).min(PARTIES - 1);
    Evidence {
        parties: (0..PARTIES).map(|party| (0..p).filter(|&column| of(column) == party).collect()).collect(),
        covariance: Mat::from_fn(p, p, |i, j| if i == j { 1.0 } else { 0.16 }),
        covariance_noise: vec![5e-4; p],
        spurious: Mat::zeros(p, p),
        clipping: vec![Clipping { attenuation: 1.1, ..Clipping::NONE }; p],
        people: People::everywhere(PEOPLE, p, PARTIES),
        between: Between::Mixed(released),
    }
}

pub(super) fn figures(setup: &Setup) -> Result<Vec<Figure>> {
    let columns = columns();
    let slices: Vec<&[f64]> = columns.iter().map(Vec::as_slice).collect();
    let noise = vec![NOISE; FEATURES + 1];
    let released = Released::new(&slices, &noise, PEOPLE)?;
    let evidence = evidence(released);
    let features: Vec<usize> = (0..FEATURES).collect();
    let plain = || Ok(ols(&released, FEATURES, &features, Ridge::NONE)?);
    let weights = plain()?.coefficients.weights().to_vec();
    let mut peer = match &setup.peers {
        None => None,
        Some(peers) => {
            Some(peers.start("least_squares.py", &json!({ "columns": columns }), NonZero::<usize>::MIN)?)
        }
    };
    let mut contestants = vec![
        Contestant::new("posterior with intervals and R²", || {
            let fit = || {
                let fit = posterior(&evidence, FEATURES, &features, Level::default())?;
                Ok((fit.estimate.standard_errors(), explained_share(&evidence, FEATURES, &features)?))
            };
            Ok(clock(fit)?.0)
        }),
        Contestant::new("plain least squares", || Ok(clock(plain)?.0)),
    ];
    if let Some(peer) = &mut peer {
        contestants.push(Contestant::new("NumPy", || {
            let (seconds, answer) = peer.run()?;
            let found: Vec<f64> = serde_json::from_value(answer["weights"].clone())?;
            let same = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-8 * (1.0 + a.abs());
            ensure!(
                found.len() == weights.len() && weights.iter().zip(&found).all(same),
                "NumPy and potluck do not find the same least squares"
            );
            Ok(seconds)
        }));
    }
    let mut timed = setup.interleave("fit", contestants)?;
    let numpy = (timed.len() > 2).then(|| timed.remove(2));
    let (whole, plain) = (&timed[0], &timed[1]);
    let beside =
        numpy.as_ref().map_or(NO_PEER.to_owned(), |peer| format!("NumPy lstsq: {}", duration(peer.median())));
    let beside_numpy = Figure::new(format!("plain least squares, d = {FEATURES}"), duration(plain.median()))
        .beside(beside)
        .ratio(numpy.as_ref().map(|peer| plain.times_as_fast_as(peer)), AS_FAST)
        .timed(numpy.into_iter().collect());
    let fit = Figure::new(format!("fit with intervals and R², d = {FEATURES}"), duration(whole.median()))
        .beside(format!("plain least squares: {}", duration(plain.median())))
        .ratio(Some(whole.times_as_long_as(plain)), THE_TIME)
        .goal("≤ 100 ms", Some(whole.median() <= GOAL))
        .timed(timed);
    Ok(vec![fit, beside_numpy])
}
