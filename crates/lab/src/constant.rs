//! What predicting a constant must lose, given how well a release knows where the label lies.

/// Where a column lies: the distance of its mean from the middle of its public range, and its
/// variance.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub(crate) offset: f64,
    pub(crate) variance: f64,
}

/// Values of the noise that are averaged over, in standard deviations.
const REACH: f64 = 6.0;
const STEP: f64 = 0.05;

/// Mean squared error, in units of its variance, of the best guess of the label's mean from a
/// released one with noise of this standard deviation, for somebody who is told where the columns
/// of this very table lie but neither which of them is the label nor on which side of the middle
/// it lies. Averaged over labels no rule that treats columns alike, and both directions alike, can
/// have less.
pub(crate) fn least_excess(label: Place, columns: &[Place], noise: f64) -> f64 {
    let candidates: Vec<(f64, f64)> = columns
        .iter()
        .flat_map(|place| [(place.offset, place.variance), (-place.offset, place.variance)])
        .collect();
    let (mut total, mut mass) = (0.0, 0.0);
    let steps = (REACH / STEP) as i32;
    for step in -steps..=steps {
        let z = f64::from(step) * STEP;
        let seen = label.offset + noise * z;
        let surprise = |offset: f64| 0.5 * ((seen - offset) / noise).powi(2);
        let least = candidates.iter().map(|&(offset, _)| surprise(offset)).fold(f64::INFINITY, f64::min);
        let (mut sum, mut weights) = (0.0, 0.0);
        for &(offset, variance) in &candidates {
            let weight = (least - surprise(offset)).exp() / variance;
            sum += weight * offset;
            weights += weight;
        }
        let density = (-0.5 * z * z).exp();
        total += density * (sum / weights - label.offset).powi(2);
        mass += density;
    }
    total / mass / label.variance
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: [Place; 2] =
        [Place { offset: 0.2, variance: 0.01 }, Place { offset: 0.05, variance: 0.04 }];

    #[test]
    fn little_noise_costs_nothing_and_much_noise_costs_the_way_from_the_middle() {
        for label in COLUMNS {
            assert!(least_excess(label, &COLUMNS, 1e-3) < 1e-6);
            let middle = label.offset.powi(2) / label.variance;
            assert!((least_excess(label, &COLUMNS, 1e3) - middle).abs() < 1e-3 * middle);
        }
    }

    #[test]
    fn no_guess_that_treats_columns_and_directions_alike_is_better_on_average() {
        let average = |excess: &dyn Fn(Place) -> f64| COLUMNS.iter().map(|&label| excess(label)).sum::<f64>();
        for noise in [0.02, 0.1, 0.3] {
            let least = average(&|label| least_excess(label, &COLUMNS, noise));
            for keep in [0.0, 0.25, 0.5, 0.75, 1.0] {
                let variance = (keep * noise).powi(2);
                let linear =
                    average(&|label| (((1.0 - keep) * label.offset).powi(2) + variance) / label.variance);
                assert!(least < linear, "{noise} {keep}: {least} {linear}");
            }
        }
    }
}
