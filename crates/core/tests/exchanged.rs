//! The learner for exchanged blocks, against the truth that the blocks were made of.
#![allow(clippy::unwrap_used)]

use faer::Mat;
use faer::linalg::solvers::Solve as _;
use potluck_core::learn::{
    Between, Blocks, Clipping, Evidence, Level, People, Posterior, explained_share, posterior,
};
use potluck_core::noise::{Sigma, rounded_gaussian};
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;

/// Everybody, so many that being a sample does not matter.
const ROWS: u64 = 100_000_000;
/// Three parties; the label is the last column, alone or beside others.
const PARTIES: [&[usize]; 3] = [&[0, 1], &[2, 3], &[4, 5]];
const LABEL: usize = 5;
const FEATURES: [usize; 5] = [0, 1, 2, 3, 4];
const SLOPES: [f64; 5] = [0.3, -0.2, 0.25, 0.0, 0.1];
/// Of the noise in covariances within parties, and between them.
const NOISE: [f64; 2] = [0.004, 0.01];
const DRAWS: u64 = 300;

/// Covariance of the columns: features are correlated within and between parties.
fn truth() -> Mat<f64> {
    let of_features = |i: usize, j: usize| match (i, j) {
        _ if i == j => 1.0,
        (0, 2) | (2, 0) => 0.4,
        _ if i / 2 == j / 2 => 0.3,
        _ => 0.1,
    };
    let with_label = |i: usize| (0..5).map(|j| of_features(i, j) * SLOPES[j]).sum::<f64>();
    Mat::from_fn(6, 6, |i, j| match (i, j) {
        (5, 5) => 1.0,
        (5, i) | (i, 5) => with_label(i),
        (i, j) => of_features(i, j),
    })
}

fn party(column: usize) -> usize {
    PARTIES.iter().position(|members| members.contains(&column)).unwrap()
}

/// What three parties would publish, whose noise between them is said to be `said` times what it
/// is.
fn evidence(seed: u64, said: f64) -> Evidence<'static> {
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    let mut normal = || rounded_gaussian(Sigma::new(1 << 30).unwrap(), &mut rng) as f64 / f64::from(1 << 30);
    let truth = truth();
    let mut covariance = Mat::zeros(6, 6);
    let mut blocks = Blocks::new(ROWS, 6);
    for i in 0..6 {
        covariance[(i, i)] = truth[(i, i)] + 2_f64.sqrt() * NOISE[0] * normal();
        for j in 0..i {
            let [within, between] = NOISE;
            if party(i) == party(j) {
                covariance[(i, j)] = truth[(i, j)] + within * normal();
                covariance[(j, i)] = covariance[(i, j)];
            } else {
                blocks.insert((i, j), truth[(i, j)] + between * normal(), said * between);
            }
        }
    }
    Evidence {
        between: Between::Exchanged(blocks),
        parties: PARTIES.iter().map(|members| members.to_vec()).collect(),
        covariance,
        covariance_noise: vec![NOISE[0]; 6],
        spurious: Mat::zeros(6, 6),
        clipping: vec![Clipping::NONE; 6],
        people: People::everywhere(ROWS, 6, 3),
    }
}

fn fit(evidence: &Evidence<'_>) -> Posterior {
    posterior(evidence, LABEL, &FEATURES, Level::default()).unwrap()
}

fn covered(posterior: &Posterior) -> usize {
    let holds = |(interval, slope): (&potluck_core::learn::Interval, &f64)| {
        interval.lower <= *slope && *slope <= interval.upper
    };
    posterior.intervals.iter().zip(&SLOPES).filter(|&of| holds(of)).count()
}

#[test]
fn estimates_are_near_the_truth_and_their_mean_is_it() {
    let mut means = [0.0; 5];
    for seed in 0..DRAWS {
        for (mean, weight) in means.iter_mut().zip(fit(&evidence(seed, 1.0)).estimate.weights()) {
            *mean += weight / DRAWS as f64;
        }
    }
    for (mean, slope) in means.iter().zip(&SLOPES) {
        // A coefficient's error is about 0.015, that of the mean of 300 a seventeenth of it.
        assert!((mean - slope).abs() < 0.004, "{mean} instead of {slope}");
    }
}

#[test]
fn intervals_hold_and_would_not_if_noise_were_said_to_be_less() {
    let coverage = |said: f64| {
        let all: usize = (0..DRAWS).map(|seed| covered(&fit(&evidence(seed, said)))).sum();
        all as f64 / (5 * DRAWS) as f64
    };
    let honest = coverage(1.0);
    assert!((0.93..0.98).contains(&honest), "{honest}");
    let half = coverage(0.5);
    assert!(half < 0.88, "{half}");
}

#[test]
fn the_explained_share_is_that_of_the_truth() {
    let truth = truth();
    let h = truth.submatrix(0, 0, 5, 5);
    let c = truth.col(5).subrows(0, 5).to_owned();
    let explained = c.transpose() * h.partial_piv_lu().solve(&c);
    let (mut mean, mut held) = (0.0, 0);
    for seed in 0..DRAWS {
        let share = explained_share(&evidence(seed, 1.0), LABEL, &FEATURES).unwrap();
        let interval = share.interval(Level::default());
        mean += share.estimate / DRAWS as f64;
        held += usize::from(interval.lower <= explained && explained <= interval.upper);
    }
    assert!((mean - explained).abs() < 0.003, "{mean} instead of {explained}");
    assert!(held as f64 / DRAWS as f64 > 0.93, "{held} of {DRAWS}");
}

#[test]
fn a_block_that_is_missing_leaves_its_coefficients_open() {
    let mut without = evidence(7, 1.0);
    let mut blocks = Blocks::new(ROWS, 6);
    let truth = truth();
    for (i, j) in [(0, 2), (0, 3), (1, 2), (1, 3), (2, 4), (3, 4), (2, 5), (3, 5)] {
        blocks.insert((i, j), truth[(i, j)], NOISE[1]);
    }
    without.between = Between::Exchanged(blocks);
    let (all, some) = (fit(&evidence(7, 1.0)), fit(&without));
    let width = |of: &Posterior, j: usize| of.intervals[j].upper - of.intervals[j].lower;
    for j in [0, 1] {
        assert!(width(&some, j) > 10.0 * width(&all, j), "nothing is known of {j} and the label");
    }
    assert!(some.weights.iter().all(|weight| weight.abs() < 1.0), "{:?}", some.weights);
}
