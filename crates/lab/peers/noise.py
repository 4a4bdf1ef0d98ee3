"""Exact Gaussian noise on integers: OpenDP, one thread."""

import numpy as np
import opendp.prelude as dp
from peer import arguments, clock, serve

given = arguments()
dp.enable_features("contrib")
space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T="f64")
noise = dp.m.make_gaussian(*space, scale=float(given["sigma"]))
no_noise = dp.m.make_gaussian(*space, scale=0.0)
sums = np.zeros(given["samples"], dtype=np.int64)


def run():
    seconds, _ = clock(lambda: noise(sums))
    # The same call without noise: what crossing from Python and back costs is not the sampler's.
    crossing, _ = clock(lambda: no_noise(sums))
    return {"seconds": seconds - crossing}


serve(run)
