"""Makes fits.json: fits of the numerical reference on releases that it made itself.

Needs from PyPI: numpy, scipy. Run: python make.py PATH/TO/calibrated.py > fits.json
The reference is the floating-point program that the design was worked out with.
"""

import importlib.util
import json
import sys

import numpy as np


def load(path):
    spec = importlib.util.spec_from_file_location("calibrated", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def numbers(values):
    return np.asarray(values, float).tolist()


def table(rng, n, parties):
    """Correlated numeric and categorical columns in [-1, 1] or 0/1."""
    width = sum(len(columns) for party in parties for columns, _ in party)
    common = rng.normal(size=n)
    values = np.empty((n, width))
    for party in parties:
        for columns, kind in party:
            latent = 0.6 * common[:, None] + rng.normal(size=(n, len(columns)))
            if kind == "num":
                values[:, columns] = np.clip(latent / 4, -1, 1)
            elif len(columns) == 1:
                values[:, columns] = latent > 0.5
            else:
                values[:, columns] = np.eye(len(columns))[latent.argmax(1)]
    return values


def case(reference, name, seed, n, parties, epsilon, label, features):
    rng = np.random.default_rng(seed)
    release = reference.release(table(rng, n, parties), parties, reference.mu_of(epsilon), rng)
    fit = reference.fit(release, label, features, ci=True)
    slopes, intercept = reference.coefs(release, fit["w"], label, features)
    return {
        "name": name,
        "n": release["n"],
        "k": release["k"],
        "parties": release["parties"],
        "rows": numbers(release["Z"].T),
        "noise": numbers(release["s"]),
        "covariance": numbers(release["B"]),
        "covariance_noise": numbers(release["eta"]),
        "attenuation": numbers(reference.factors(release)),
        "label": label,
        "features": features,
        "expected": {
            "weights": numbers(fit["w"]),
            "unshrunk": numbers(fit["b"]),
            "standard_errors": numbers(fit["se"]),
            "low": numbers(fit["lo"]),
            "high": numbers(fit["hi"]),
            "slopes": numbers(slopes),
            "intercept": float(intercept),
        },
    }


def main():
    reference = load(sys.argv[1])
    numeric = [[([0], "num"), ([1], "num")], [([2], "num"), ([3], "num")], [([4], "num")]]
    mixed = [[([0], "num"), ([1], "cat")], [([2, 3, 4], "cat"), ([5], "num")], [([6], "num"), ([7], "num")]]
    one = [[([0], "num"), ([1], "num"), ([2], "num")]]
    cases = [
        case(reference, "label alone", 1, 20000, numeric, 1.0, 4, [0, 1, 2, 3]),
        case(reference, "label among features", 2, 20000, mixed, 1.0, 7, [0, 1, 2, 3, 4, 5, 6]),
        case(reference, "some features", 3, 20000, mixed, 0.3, 5, [0, 6, 1]),
        case(reference, "strong noise", 4, 3000, mixed, 0.1, 7, [0, 1, 2, 3, 4, 5, 6]),
        case(reference, "weak noise", 5, 8000, numeric, 3.0, 0, [1, 2, 3, 4]),
        case(reference, "one feature elsewhere", 6, 20000, numeric, 1.0, 4, [2]),
        case(reference, "one party", 7, 20000, one, 1.0, 0, [1, 2]),
    ]
    print(json.dumps(cases))


main()
