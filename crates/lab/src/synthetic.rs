//! The paper's synthetic data: d = 10 uniform features, a label without noise, six parties.

use potluck_core::encoding::{Bounds, EncodedRows, Encoder, RowEncoder, Values};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::holdings::{Column, Holdings};
use crate::seeds::Seed;
use crate::table::Table;

/// Number of features.
const FEATURES: usize = 10;
/// Five parties with two features each, one with the label.
const LARGEST_PARTY: usize = 2;

/// Rows encoded at a time.
const BATCH: usize = 4096;

/// A uniform number in [−1, 1).
pub(crate) fn uniform(rng: &mut Xoshiro256PlusPlus) -> f64 {
    (rng.next_u64() >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
}

/// A table of n subjects with the weights that made its label.
pub(crate) fn table(n: usize, seed: Seed) -> (Table, Vec<f64>) {
    table_with(n, seed, 0.0, uniform)
}

/// The same with features drawn by `feature`, which gives values in [−1, 1], and a residual of this
/// size, drawn likewise, in the label.
pub(crate) fn table_with(
    n: usize,
    seed: Seed,
    residual: f64,
    mut feature: impl FnMut(&mut Xoshiro256PlusPlus) -> f64,
) -> (Table, Vec<f64>) {
    let mut rng = Xoshiro256PlusPlus::from_seed(seed.of("data").bytes());
    let weights: Vec<f64> = (0..FEATURES).map(|_| uniform(&mut rng) / FEATURES as f64).collect();
    let bounds = Bounds::new(-1.0, 1.0).expect("−1 is below 1");
    let mut columns: Vec<Vec<f64>> = (0..=FEATURES).map(|_| Vec::with_capacity(n)).collect();
    for _ in 0..n {
        let mut label = 0.0;
        for (weight, column) in weights.iter().zip(&mut columns) {
            let value = feature(&mut rng);
            label += weight * value;
            column.push(value);
        }
        if residual > 0.0 {
            label += residual * feature(&mut rng);
        }
        columns[FEATURES].push(label);
    }
    let encoder = RowEncoder::plain(&[Encoder::Numeric(bounds); FEATURES + 1]);
    let mut rows = Vec::with_capacity(n * (FEATURES + 1));
    let mut encoded = EncodedRows::default();
    for first in (0..n).step_by(BATCH) {
        let end = n.min(first + BATCH);
        let values: Vec<Values<'_>> =
            columns.iter().map(|column| Values::Numbers(&column[first..end])).collect();
        encoder.encode(&values, end - first, &mut encoded);
        encoded.append_rows(&mut rows);
    }
    let mut columns = columns.into_iter().map(|values| Column::Numbers { bounds, values });
    let mut parties: Vec<Vec<Column>> = Vec::new();
    loop {
        let party: Vec<Column> = columns.by_ref().take(LARGEST_PARTY).collect();
        if party.is_empty() {
            break;
        }
        parties.push(party);
    }
    (Table::new(FEATURES + 1, rows, LARGEST_PARTY, Holdings::new(n, parties)), weights)
}

/// ‖ŵ − w*‖.
pub(crate) fn distance(found: &[f64], weights: &[f64]) -> f64 {
    found.iter().zip(weights).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt()
}
