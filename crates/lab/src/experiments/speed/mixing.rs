//! Mixing of encoded rows in memory: hashing the ids, signs and sums, on all threads.

use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::Result;
use potluck_core::encoding::Q;
use potluck_core::mixing::{MixingKey, SubjectDigest, add_bernoulli, add_sparse};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde_json::json;

use super::{AS_FAST, Contestant, Figure, NO_PEER, Setup, Timed, clock, count, duration, short};
use crate::machine::Peaks;
use crate::seeds::Seed;

/// Subjects that a thread takes at a time.
const BATCH: usize = 8192;

/// Encoded rows in memory.
struct Encoded {
    ids: Vec<i64>,
    rows: Vec<i32>,
    width: usize,
}

type Add = fn(&[SubjectDigest], &[i32], usize, u64, &mut [i64]);

impl Encoded {
    fn new(n: usize, width: usize) -> Self {
        let mut rng = Xoshiro256PlusPlus::from_seed(Seed::new(1).of("encoded rows").bytes());
        let rows = (0..n * width).map(|_| (rng.next_u32() % (2 * Q as u32 + 1)) as i32 - Q).collect();
        Self { ids: (0..n as i64).collect(), rows, width }
    }

    /// The mixed sums.
    fn mix(&self, add: Add, k: u64, threads: NonZero<usize>) -> Vec<i64> {
        let key = MixingKey::new([7; 32]);
        let next = AtomicUsize::new(0);
        let work = || {
            let mut sums = vec![0; k as usize * self.width];
            let mut subjects = Vec::new();
            loop {
                let first = next.fetch_add(BATCH, Ordering::Relaxed);
                if first >= self.ids.len() {
                    return sums;
                }
                let last = self.ids.len().min(first + BATCH);
                subjects.clear();
                key.add_numbered(self.ids[first..last].iter().copied(), &mut subjects);
                add(&subjects, &self.rows[first * self.width..last * self.width], self.width, k, &mut sums);
            }
        };
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..threads.get()).map(|_| scope.spawn(work)).collect();
            let mut sums = workers.into_iter().map(|worker| worker.join().expect("a worker does not panic"));
            let mut total = sums.next().expect("there is a worker");
            for part in sums {
                total.iter_mut().zip(part).for_each(|(sum, part)| *sum += part);
            }
            total
        })
    }
}

/// The shape of the paper's largest table, beside NumPy; and beside NumPy with signs drawn in the
/// fastest way found.
pub(super) fn bernoulli(setup: &Setup) -> Result<Vec<Figure>> {
    let (n, d, k) = (if setup.quick { 20_000 } else { 412_276 }, 91, 1000);
    let encoded = Encoded::new(n, d);
    let mut peers = Vec::new();
    if let Some(environment) = &setup.peers {
        for (draw, name) in
            [("integers", "NumPy float32"), ("bytes", "NumPy float32, signs by a table of bytes")]
        {
            let arguments = json!({ "n": n, "d": d, "k": k, "draw": draw });
            peers.push((name, environment.start("bernoulli.py", &arguments, setup.threads)?));
        }
    }
    let mut contestants =
        vec![Contestant::new(
            "potluck",
            || Ok(clock(|| Ok(encoded.mix(add_bernoulli, k, setup.threads)))?.0),
        )];
    for (name, peer) in &mut peers {
        contestants.push(Contestant::new(*name, || Ok(peer.run()?.0)));
    }
    let timed = setup.interleave("bernoulli mixing", contestants)?;
    let additions = (n * d) as f64 * k as f64 / timed[0].median();
    let peaks = Peaks::measure(setup.threads);
    let mut ours = format!("{}, {} G sign-additions/s", duration(timed[0].median()), short(additions / 1e9));
    if let Some(peaks) = &peaks {
        let times = additions / peaks.multiply_add;
        ours += &format!(", {} × the peak of multiply-add", short(times));
    }
    let name = format!("bernoulli mixing in memory, {}, d = {d}, k = {k}", count(n as u64));
    let figure = |peer: Option<&Timed>| {
        let beside =
            peer.map_or(NO_PEER.to_owned(), |peer| format!("{}: {}", peer.name, duration(peer.median())));
        let mut figure = Figure::new(&name, &ours).beside(beside).timed(timed.clone());
        figure.share_of_peak = peaks.as_ref().map(|peaks| additions / peaks.lookup);
        figure
    };
    let first = figure(timed.get(1)).at_least(timed.get(1).map(|peer| (&timed[0], peer)), 10.0);
    let others = timed
        .iter()
        .skip(2)
        .map(|peer| figure(Some(peer)).ratio(Some(timed[0].times_as_fast_as(peer)), AS_FAST));
    Ok(std::iter::once(first).chain(others).collect())
}

/// Sparse mixing beside the sketches of scikit-learn and SciPy, for information.
pub(super) fn sparse(setup: &Setup, n: usize, k: u64) -> Result<Vec<Figure>> {
    let d = 10;
    let encoded = Encoded::new(n, d);
    let mut peers = Vec::new();
    if let Some(environment) = &setup.peers {
        for by in ["scikit-learn", "scipy"] {
            let arguments = json!({ "by": by, "n": n, "d": d, "k": k });
            peers.push((by, environment.start("projection.py", &arguments, setup.threads)?));
        }
    }
    let mut contestants =
        vec![Contestant::new("potluck", || Ok(clock(|| Ok(encoded.mix(add_sparse, k, setup.threads)))?.0))];
    for (by, peer) in &mut peers {
        contestants.push(Contestant::new(*by, || Ok(peer.run()?.0)));
    }
    let timed = setup.interleave("sparse mixing", contestants)?;
    let name = format!("sparse mixing in memory, {}, d = {d}, k = {k}", count(n as u64));
    let ours = duration(timed[0].median());
    let figure = |peer: &Timed| {
        Figure::new(&name, &ours)
            .beside(format!("{} (draws instead of hashing ids): {}", peer.name, duration(peer.median())))
            .ratio(Some(timed[0].times_as_fast_as(peer)), AS_FAST)
            .timed(vec![timed[0].clone(), peer.clone()])
    };
    if peers.is_empty() {
        return Ok(vec![Figure::new(&name, &ours).beside(NO_PEER).timed(timed)]);
    }
    Ok(timed[1..].iter().map(figure).collect())
}
