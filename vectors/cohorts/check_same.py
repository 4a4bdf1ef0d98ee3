"""With everybody everywhere, nothing missing and everything declared the learner is that of ../calibrated/reference.py, to rounding.

Run: python check_same.py
"""

from types import SimpleNamespace

import numpy as np
import reference

base = reference.base


def everywhere(r):
    """A release of the reference as one in buckets."""
    b = len(r.parties)
    r.Z = r.Z - r.Z.mean(0)
    q = SimpleNamespace(**vars(r))
    q.n, q.rate, q.joint = np.full(b, float(r.n)), np.ones(r.p), np.ones((r.p, r.p))
    q.of_party = np.concatenate([[i] * len(P) for i, P in enumerate(r.parties)])
    q.P, q.noise_p = np.random.default_rng(0).normal(r.n / r.k, 1, (r.k, b)), np.ones(b)  # not looked at
    q.share = reference.declared(b, "all")
    return q


def main():
    layouts = [(20000, [[0, 1], [2, 3], [4, 5], [6]], 6), (20000, [[0, 1], [2, 3], [4, 5, 6]], 6), (5000, [[0, 1, 2], [3, 4, 5, 6]], 2)]
    for seed, (n, parties, label) in enumerate(layouts):
        rng = np.random.default_rng(seed)
        U = np.clip((rng.normal(size=(n, 7)) + 0.6 * rng.normal(size=(n, 1))) / 5, -1, 1)
        r = base.release(U, [[([c], "num") for c in P] for P in parties], base.mu_of(1.0), rng)
        q = everywhere(r)
        features = [j for j in range(7) if j != label]
        one, other = base.fit(r, label, features), reference.fit(q, label, features)
        apart = [np.abs(getattr(one, of) - getattr(other, of)).max() for of in ("weights", "b", "se", "low", "high", "parts")]
        apart += [abs(x - y) for x, y in zip(base.r_squared(r, label, features), reference.r_squared(q, label, features))]
        print("largest difference of weights, b, se, low, high, parts, R2:", *(f"{x:.1e}" for x in apart))
        assert max(apart) < 1e-12


main()
