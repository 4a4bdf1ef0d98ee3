//! One pass of each stage of a calibrated release over a batch of ten numeric columns: rows a
//! second.
#![allow(clippy::unwrap_used)]

use divan::Bencher;
use divan::counter::ItemsCount;
use potluck_core::accounting::Share;
use potluck_core::encoding::{Ball, Bounds, EncodedRows, Encoder, RowEncoder, Values};
use potluck_core::mixing::{Mixing, MixingKey, SubjectDigest};
use potluck_core::stage::{Stage, Statistic};

const COLUMNS: usize = 10;
const ROWS: usize = 8192;

fn stage(statistic: Statistic, ball: bool) -> Stage {
    let mut encoder = RowEncoder::plain(&[Encoder::Numeric(Bounds::new(-1.0, 2.0).unwrap()); COLUMNS]);
    if ball {
        encoder = encoder.within(Ball::of_radius(1.5).unwrap());
    }
    Stage { name: "bench", share: Share::WHOLE, encoder, statistic, noise: Vec::new() }
}

fn columns() -> Vec<Vec<f64>> {
    let mut state = 1_u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 11) as f64 / (1_u64 << 53) as f64 * 3.0 - 1.0
    };
    (0..COLUMNS).map(|_| (0..ROWS).map(|_| next()).collect()).collect()
}

fn bench(bencher: Bencher<'_, '_>, stage: &Stage) {
    let columns = columns();
    let values: Vec<Values<'_>> = columns.iter().map(|column| Values::Numbers(column)).collect();
    let key = MixingKey::new([1; 32]);
    let subjects: Vec<SubjectDigest> = (0..ROWS).map(|id| key.subject(id.to_string().as_bytes())).collect();
    let mut sums = vec![0; stage.coordinates()];
    let mut encoded = EncodedRows::default();
    bencher.counter(ItemsCount::new(ROWS)).bench_local(|| {
        stage.encode(&values, ROWS, &mut encoded);
        stage.accumulate(&subjects, 0, &encoded, &mut sums);
    });
}

#[divan::bench]
fn standardise(bencher: Bencher<'_, '_>) {
    bench(bencher, &stage(Statistic::Standardise { squares: (0..COLUMNS).collect() }, false));
}

#[divan::bench]
fn moments(bencher: Bencher<'_, '_>) {
    bench(bencher, &stage(Statistic::Moments, true));
}

#[divan::bench]
fn mixed(bencher: Bencher<'_, '_>) {
    bench(bencher, &stage(Statistic::Mixed { mixing: Mixing::Sparse, k: 2000 }, true));
}

fn main() {
    divan::main();
}
