//! Mixing kernels: signed additions a second. The rows are those of the paper's largest table (91
//! columns) and of its synthetic data (11 columns).

use divan::Bencher;
use divan::counter::ItemsCount;
use potluck_core::mixing::{MixingKey, SubjectDigest, add_bernoulli, add_sparse};

const SUBJECTS: usize = 9_600;

fn subjects() -> Vec<SubjectDigest> {
    let key = MixingKey::new([3; 32]);
    (0..SUBJECTS).map(|id| key.subject(id.to_string().as_bytes())).collect()
}

fn rows(width: usize) -> Vec<i32> {
    let mut state = 1_u32;
    let next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 17) as i32 - (1 << 14)
    };
    std::iter::repeat_with(next).take(SUBJECTS * width).collect()
}

/// Columns and mixed rows.
const SHAPES: [(usize, u64); 3] = [(91, 1000), (11, 3577), (11, 1000)];

#[divan::bench(args = SHAPES, sample_count = 100)]
fn bernoulli(bencher: Bencher<'_, '_>, (width, k): (usize, u64)) {
    let (subjects, rows) = (subjects(), rows(width));
    let mut sums = vec![0; k as usize * width];
    bencher
        .counter(ItemsCount::new(SUBJECTS * width * k as usize))
        .bench_local(|| add_bernoulli(&subjects, &rows, width, k, &mut sums));
}

#[divan::bench(args = SHAPES, sample_count = 100)]
fn sparse(bencher: Bencher<'_, '_>, (width, k): (usize, u64)) {
    let (subjects, rows) = (subjects(), rows(width));
    let mut sums = vec![0; k as usize * width];
    bencher
        .counter(ItemsCount::new(SUBJECTS * width))
        .bench_local(|| add_sparse(&subjects, &rows, width, k, &mut sums));
}

#[divan::bench]
fn hash_ids(bencher: Bencher<'_, '_>) {
    let key = MixingKey::new([3; 32]);
    let texts: Vec<String> = (0..SUBJECTS).map(|id| (1_000_000 + 7919 * id).to_string()).collect();
    let ids: Vec<&[u8]> = texts.iter().map(String::as_bytes).collect();
    let mut subjects = Vec::new();
    bencher.counter(ItemsCount::new(SUBJECTS)).bench_local(|| {
        subjects.clear();
        key.add_subjects(&ids, &mut subjects);
    });
}

#[divan::bench]
fn hash_ids_one_by_one(bencher: Bencher<'_, '_>) {
    let key = MixingKey::new([3; 32]);
    let texts: Vec<String> = (0..SUBJECTS).map(|id| (1_000_000 + 7919 * id).to_string()).collect();
    bencher
        .counter(ItemsCount::new(SUBJECTS))
        .bench_local(|| texts.iter().map(|id| key.subject(id.as_bytes())).collect::<Vec<_>>());
}

fn main() {
    divan::main();
}
