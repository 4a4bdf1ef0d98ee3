//! Exact Gaussian noise, beside OpenDP's.

use anyhow::Result;
use potluck_core::noise::{NOISED_SUM_LIMIT, Sigma, add_noise};
use potluck_party::entropy::secure_rng;
use serde_json::json;
use std::num::NonZero;

use super::{AS_FAST, Contestant, Figure, NO_PEER, Setup, clock, short};

/// Samples a second that one core must give.
const GOAL: f64 = 10e6;

/// A typical scale: 22 in published units.
const SIGMA: u64 = 22 << 14;

pub(super) fn exact(setup: &Setup) -> Result<Figure> {
    let samples = if setup.quick { 500_000 } else { 5_000_000 };
    // OpenDP takes some 50 µs for one.
    let peer_samples = if setup.quick { 5_000 } else { 50_000 };
    let sigma = Sigma::new(SIGMA)?;
    let mut sums = vec![0; samples];
    let mut rng = secure_rng()?;
    let mut peer = match &setup.peers {
        None => None,
        Some(peers) => Some(peers.start(
            "noise.py",
            &json!({ "samples": peer_samples, "sigma": SIGMA }),
            NonZero::<usize>::MIN,
        )?),
    };
    let mut contestants = vec![Contestant::new("potluck, one sample", || {
        sums.fill(0);
        let (seconds, ()) = clock(|| {
            add_noise(&mut sums, sigma, NOISED_SUM_LIMIT, &mut rng);
            Ok(())
        })?;
        Ok(seconds / samples as f64)
    })];
    if let Some(peer) = &mut peer {
        contestants
            .push(Contestant::new("OpenDP, one sample", || Ok(peer.run()?.0 / f64::from(peer_samples))));
    }
    let timed = setup.interleave("exact noise", contestants)?;
    let rate = 1.0 / timed[0].median();
    let value = |rate: f64| format!("{} M samples/s", short(rate / 1e6));
    let beside = timed
        .get(1)
        .map_or(NO_PEER.to_owned(), |peer| format!("OpenDP: {:.3} M samples/s", 1e-6 / peer.median()));
    let ratio = timed.get(1).map(|peer| timed[0].times_as_fast_as(peer));
    Ok(Figure::new("exact Gaussian noise, one core", value(rate))
        .beside(beside)
        .ratio(ratio, AS_FAST)
        .goal("≥ 10 M samples/s", Some(rate >= GOAL))
        .timed(timed))
}
