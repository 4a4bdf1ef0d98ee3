"""Makes fits.json and together.json: what reference.py beside this file says of releases that it made itself.

Needs from PyPI: numpy, scipy. Run: python make.py
"""

import json
import math
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import reference

base = reference.base


def numbers(values):
    return np.asarray(values, float).tolist()


def table(rng, n, specs):
    """Correlated numeric and categorical columns of each party in [-1, 1] or 0/1, and what all of them have in common."""
    common = rng.normal(size=n)
    tables = []
    for spec in specs:
        columns = []
        for width, kind in spec:
            latent = 0.6 * common[:, None] + rng.normal(size=(n, width))
            if kind == "num":
                columns.append(np.clip(latent / 4, -1, 1))
            elif width == 1:
                columns.append((latent > 1.2).astype(float))
            else:
                columns.append(np.eye(width)[latent.argmax(1)])
        tables.append(np.hstack(columns))
    return tables, common


def party(rng, values, spec, ids, missing):
    """missing: by entry of the spec, the share of values that are missing, or None where none may be."""
    U, at = values[ids].copy(), 0
    for (width, _), share in zip(spec, missing):
        if share:
            U[rng.random(len(ids)) < share, at : at + width] = np.nan
        at += width
    there = ~np.isnan(U).all(1)
    return SimpleNamespace(ids=ids[there], U=U[there], spec=spec, may_miss=[share is not None for share in missing])


def case(name, seed, n, specs, epsilon, label, features, share=1.0, chosen=None, missing=None, declared=None):
    """share: of all n people at each party; chosen: the party that holds more of those who have much of what all have in common."""
    rng = np.random.default_rng(seed)
    tables, common = table(rng, n, specs)
    missing = missing or [[None] * len(spec) for spec in specs]
    parties = []
    for index, (values, spec) in enumerate(zip(tables, specs)):
        chance = 1 / (1 + np.exp(-common)) if index == chosen else share
        parties.append(party(rng, values, spec, np.flatnonzero(rng.random(n) < chance), missing[index]))
    r = reference.release(parties, base.mu_of(epsilon), rng, share=declared)
    fit = reference.fit(r, label, features)
    estimate, error, quantile = reference.r_squared(r, label, features)
    m, m_sd, pairs = reference.overlaps(r)
    return {
        "name": name,
        "n": n,
        "parties": [[int(j) for j in P] for P in r.parties],
        "rows": numbers(r.Z.T),
        "noise": numbers(r.noise),
        "presence": numbers(r.P.T),
        "presence_noise": numbers(r.noise_p),
        "may_miss": [[bool(may) for may in counts[3]] for counts in r.counts],
        "counts": [[list(pair) for pair in zip(numbers(counts[0]), numbers(counts[1]))] for counts in r.counts],
        "pairs": [numbers(counts[2]) for counts in r.counts],
        "declared": [[int(i), int(j), *numbers(range_)] for (i, j), range_ in r.share.items() if i < j],
        "covariance": numbers(r.B - r.spurious),
        "spurious": numbers(r.spurious),
        "covariance_noise": numbers(r.eta),
        "attenuation": numbers(base.attenuation(r)),
        "box_part": numbers(base.box_factor(r)),
        "scale_error": numbers(base.whole_scale_error(r)),
        "kurtosis": numbers(base.kurtosis(r)),
        "tails": [numbers(part) for part in base.tails(r)],
        "believable_variance": numbers(base.believable_variance(r)),
        "numeric": [bool(numeric) for numeric in r.numeric],
        "label": label,
        "features": features,
        "expected": {
            "held": numbers(r.n),
            "missing": numbers(1 - r.rate),
            "people": [float(m[pair["at"]]) for pair in pairs],
            "observed": numbers([[pair["share"], pair["low"], pair["high"], pair["above"], pair["beyond"]] for pair in pairs]),
            "shifts": numbers(reference.column_shifts(r)),
            "findings": [[kind, numbers(of)] for kind, of in reference.findings(r)],
            "weights": numbers(fit.weights),
            "unshrunk": numbers(fit.b),
            "standard_errors": numbers(fit.se),
            "low": numbers(fit.low),
            "high": numbers(fit.high),
            "parts": numbers(fit.parts),
            "explained_share": [float(estimate), float(error), float(quantile * error)],
        },
    }


def together(seed, d):
    """What moments are multiplied by because people who have both values are cut more than those who have one."""
    rng = np.random.default_rng(seed)
    half = rng.normal(size=(d, 2 * d)) / np.sqrt(2 * d)
    present = rng.random((d, 5000)) < rng.uniform(0.5, 1, d)[:, None]
    r = SimpleNamespace(B=half @ half.T, spurious=np.zeros((d, d)), eta=np.full(d, 0.01), resolved=rng.uniform(0.7, 1, d))
    pair, radius = (present.astype(float) @ present.T), math.sqrt(1.5 * d)
    return {
        "pairs": numbers(pair),
        "resolved": numbers(r.resolved),
        "covariance": numbers(r.B),
        "noise": 0.01,
        "radius": radius,
        "expected": numbers(reference.clipped_together(r, list(range(d)), radius, pair)),
    }


def main():
    (Path(__file__).parent / "together.json").write_text(json.dumps([together(1, 3), together(2, 5)]) + "\n")
    numeric = [[(1, "num"), (1, "num")], [(1, "num"), (1, "num")], [(1, "num")]]
    mixed = [[(1, "num"), (1, "cat")], [(3, "cat"), (1, "num")], [(1, "num"), (1, "num")]]
    some = [[0.2, None], [0.1, 0.3], [0.15, 0.1]]
    most = [0, 1, 2, 3, 5, 6]
    cases = [
        case("everybody everywhere", 1, 20000, numeric, 1.0, 4, [0, 1, 2, 3]),
        case("half at random", 2, 40000, numeric, 1.0, 4, [0, 1, 2, 3], share=0.5),
        case("values missing", 3, 20000, mixed, 1.0, 7, most, missing=some),
        case("the label's people differ", 4, 40000, mixed, 3.0, 7, most, share=0.7, chosen=2),
        case("a feature's people differ", 5, 40000, mixed, 3.0, 7, [0, 6, 1, 2], share=0.7, chosen=0, missing=some),
        case("declared, and not so", 6, 40000, mixed, 1.0, 5, [0, 6, 1], share=0.6, declared={(0, 1): (1.0, 1.0), (1, 2): (0.9, 1.0)}),
        case("nobody in common", 7, 300000, numeric, 1.0, 4, [0, 1, 2, 3], share=0.03),
        case("a level as label", 8, 20000, mixed, 0.3, 1, [0, 2, 3, 5, 6, 7], share=0.9, missing=some),
    ]
    (Path(__file__).parent / "fits.json").write_text(json.dumps(cases) + "\n")


main()
