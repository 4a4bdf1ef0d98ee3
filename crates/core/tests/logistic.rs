//! Logistic regression from moments against the log odds that made the labels.
#![allow(clippy::unwrap_used)]

use faer::Mat;
use potluck_core::learn::{
    Between, Clipping, Evidence, Level, Logistic, Outcome, People, Released, Shape, explained_share, logistic,
};

const N: usize = 200_000;

/// Evenly spread numbers, always the same ones (`SplitMix64`: Steele, Lea and Flood 2014).
struct Sequence(u64);

impl Sequence {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 * 2.0_f64.powi(-53)
    }

    fn normal(&mut self) -> f64 {
        (-2.0 * (1.0 - self.uniform()).ln()).sqrt() * (2.0 * std::f64::consts::PI * self.uniform()).cos()
    }
}

/// A population: how features come from bells that are correlated with the one before, and the
/// log odds.
struct Population {
    /// The share of a level; of a number, nothing.
    levels: Vec<Option<f64>>,
    intercept: f64,
    slopes: Vec<f64>,
}

/// z below which a standard bell has this share, roughly, for levels of a known share.
fn cut(share: f64, sequence: &mut Sequence) -> f64 {
    let mut sample: Vec<f64> = (0..20_001).map(|_| sequence.normal()).collect();
    sample.sort_by(f64::total_cmp);
    sample[(20_000.0 * (1.0 - share)) as usize]
}

impl Population {
    /// Features row by row, and labels as 0 and 1.
    fn draw(&self, seed: u64) -> (Vec<Vec<f64>>, Vec<f64>) {
        let mut sequence = Sequence(seed);
        let cuts: Vec<Option<f64>> =
            self.levels.iter().map(|level| level.map(|share| cut(share, &mut sequence))).collect();
        let mut rows = Vec::with_capacity(N);
        let mut labels = Vec::with_capacity(N);
        for _ in 0..N {
            let mut before = sequence.normal();
            let row: Vec<f64> = cuts
                .iter()
                .map(|cut| {
                    before = 0.4 * before + 0.84_f64.sqrt() * sequence.normal();
                    cut.map_or(before, |cut| f64::from(before > cut))
                })
                .collect();
            let odds: f64 =
                self.intercept + row.iter().zip(&self.slopes).map(|(x, slope)| x * slope).sum::<f64>();
            labels.push(f64::from(sequence.uniform() < 1.0 / (1.0 + (-odds).exp())));
            rows.push(row);
        }
        (rows, labels)
    }

    /// What one party that holds all of it, without noise, would let a fit find.
    fn fit(&self) -> Logistic {
        let (rows, labels) = self.draw(5);
        let d = self.slopes.len();
        let value = |row: usize, j: usize| if j < d { rows[row][j] } else { labels[row] };
        let n = N as f64;
        let means: Vec<f64> = (0..=d).map(|j| (0..N).map(|row| value(row, j)).sum::<f64>() / n).collect();
        let covariance = Mat::from_fn(d + 1, d + 1, |i, j| {
            (0..N).map(|row| value(row, i) * value(row, j)).sum::<f64>() / n - means[i] * means[j]
        });
        // Rows mixed in twenty buckets; with everything in one party little depends on them.
        let k = 400;
        let mixed: Vec<Vec<f64>> = (0..=d)
            .map(|j| {
                let sum = |bucket: usize| (bucket..N).step_by(k).map(|row| value(row, j) - means[j]).sum();
                (0..k).map(sum).collect()
            })
            .collect();
        let columns: Vec<&[f64]> = mixed.iter().map(Vec::as_slice).collect();
        let noise = vec![0.0; d + 1];
        let released = Released::new(&columns, &noise, N as u64).unwrap();
        let evidence = Evidence {
            parties: vec![(0..=d).collect()],
            covariance,
            covariance_noise: vec![1e-6; d + 1],
            spurious: Mat::zeros(d + 1, d + 1),
            clipping: vec![Clipping::NONE; d + 1],
            people: People::everywhere(N as u64, d + 1, 1),
            between: Between::Mixed(released),
        };
        let features: Vec<usize> = (0..d).collect();
        let outcome = Outcome {
            share: means[d],
            error: 1e-6,
            unit: 1.0,
            explained: explained_share(&evidence, d, &features).unwrap(),
            people: n,
        };
        let shape = |(j, level): (usize, &Option<f64>)| match level {
            Some(_) => Shape::Level { share: means[j], unit: 1.0 },
            None => Shape::Clear,
        };
        let shapes: Vec<Shape> = self.levels.iter().enumerate().map(shape).collect();
        logistic(&evidence, d, &features, Level::default(), &outcome, &shapes).unwrap()
    }
}

fn assert_finds(population: &Population, most: f64) {
    let fit = population.fit();
    for (j, slope) in population.slopes.iter().enumerate() {
        let found = fit.posterior.estimate.weights()[j];
        assert!((found - slope).abs() < most, "{j}: {found} instead of {slope}");
        let interval = fit.posterior.intervals[j];
        assert!(interval.contains(*slope), "{j}: {interval:?} instead of {slope}");
        assert!((fit.posterior.weights[j] - slope).abs() < most, "to predict: {:?}", fit.posterior.weights);
    }
    assert!(fit.doubts.iter().all(Vec::is_empty), "{:?}", fit.doubts);
    assert!(fit.posterior.parts.iter().all(|parts| parts.approximation > 0.0));
}

/// A linear probability model would be off by a third here.
#[test]
fn bells_give_back_their_log_odds() {
    let slopes = vec![1.0, -0.8, 0.5, 0.0];
    assert_finds(&Population { levels: vec![None; 4], intercept: -1.5, slopes }, 0.04);
}

#[test]
fn levels_give_back_their_log_odds() {
    let levels = vec![Some(0.3), None, Some(0.1), Some(0.5)];
    assert_finds(&Population { levels, intercept: -1.0, slopes: vec![0.9, 0.6, -0.7, 0.4] }, 0.08);
}

/// How often a person with the label has higher odds than one without it, counted in the rows.
#[test]
fn the_area_is_that_of_the_rows() {
    let population =
        Population { levels: vec![None, None, Some(0.4)], intercept: -2.0, slopes: vec![0.9, -0.5, 0.8] };
    let (rows, labels) = population.draw(9);
    let mut scored: Vec<(f64, f64)> = rows
        .iter()
        .zip(&labels)
        .map(|(row, &label)| (row.iter().zip(&population.slopes).map(|(x, slope)| x * slope).sum(), label))
        .collect();
    scored.sort_by(|one, other| one.0.total_cmp(&other.0));
    let (mut below, mut area) = (0.0, 0.0);
    for (_, label) in &scored {
        if *label > 0.5 { area += below } else { below += 1.0 }
    }
    let area = area / (below * (N as f64 - below));
    let found = population.fit().discrimination;
    assert!((found.area - area).abs() < 0.01, "{found:?} instead of {area}");
    assert!(found.interval.contains(area), "{found:?} instead of {area}");
}

/// Where features tell nearly everybody apart there is no bound to log odds, and the fit says so.
#[test]
fn separated_labels_are_told() {
    let fit = Population { levels: vec![None, None], intercept: 0.0, slopes: vec![30.0, 20.0] }.fit();
    assert!(fit.doubts.iter().all(|doubts| !doubts.is_empty()), "{:?}", fit.doubts);
}
